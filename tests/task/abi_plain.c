/* SPDX-License-Identifier: MIT */
/*
 * The entry points as a compiler's back end sees them: no library header, every pointer a void *,
 * aggregates as words. The program must link and work.
 */
#include "harness.h"

#include <stdint.h>

struct config {
    uint64_t words[8];
};

struct pair {
    int64_t first, second;
};

void       *janus_scheduler_create(struct config config);
int         janus_scheduler_shutdown(void *scheduler);
int         janus_scheduler_spawn(void *function, void *argument);
int         janus_scheduler_yield(void);
void       *janus_nursery_create(void);
void       *janus_nursery_create_in(void *scheduler);
void       *janus_nursery_spawn(void *nursery, void *function, void *argument);
struct pair janus_nursery_await(void *nursery);
int         janus_nursery_destroy(void *nursery);

static int64_t add_one(void *argument)
{
    __atomic_fetch_add((int *)argument, 1, __ATOMIC_RELAXED);
    return janus_scheduler_yield();
}

static int64_t fail(void *argument)
{
    (void)argument;
    return -42;
}

/* nursery { spawn add_one, three times } as it is lowered. */
static int64_t body(void *argument)
{
    void *nursery = janus_nursery_create();
    CHECK(nursery != NULL);
    CHECK(janus_nursery_spawn(nursery, (void *)add_one, argument) != NULL);
    CHECK(janus_nursery_spawn(nursery, (void *)add_one, argument) != NULL);
    CHECK_EQ(janus_scheduler_spawn((void *)add_one, argument), 0);
    struct pair result = janus_nursery_await(nursery);
    CHECK_EQ(result.first, 0);
    CHECK_EQ(result.second, 0);
    CHECK_EQ(janus_nursery_destroy(nursery), 0);

    nursery = janus_nursery_create();
    CHECK(janus_nursery_spawn(nursery, (void *)fail, argument) != NULL);
    result = janus_nursery_await(nursery);
    CHECK_EQ((int32_t)result.first, 1); /* CHILD_FAILED */
    CHECK_EQ(result.first >> 32, 1);    /* one of them */
    CHECK_EQ(result.second, -42);
    CHECK_EQ(janus_nursery_destroy(nursery), 0);
    return 0;
}

TEST("generated code without the library's headers can run a nursery")
{
    int           sum = 0;
    struct config config = {{2}};
    void         *scheduler = janus_scheduler_create(config);
    CHECK(scheduler != NULL);
    void *root = janus_nursery_create_in(scheduler);
    CHECK(janus_nursery_spawn(root, (void *)body, &sum) != NULL);
    struct pair result = janus_nursery_await(root);
    CHECK_EQ(result.first, 0);
    CHECK_EQ(janus_nursery_destroy(root), 0);
    CHECK_EQ(janus_scheduler_shutdown(scheduler), 0);
    CHECK_EQ(sum, 3);
}

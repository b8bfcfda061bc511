/* SPDX-License-Identifier: MIT */
/* Fibers that change threads. Also built with -O3 and link-time optimisation, where a compiler
 * might keep a thread-local's address across the switch. */
#include "world.h"

#include "fiber/thread.h"

#include <pthread.h>

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { ROUNDS = 2000 };
#else
enum { ROUNDS = 100000 };
#endif

/* Passes fibers between two threads, one slot each way. */
struct slot {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    janus_fiber    *fiber;
    bool            closed;
};

#define SLOT {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, false}

static void slot_put(struct slot *slot, janus_fiber *fiber)
{
    pthread_mutex_lock(&slot->lock);
    while (slot->fiber != NULL) pthread_cond_wait(&slot->changed, &slot->lock);
    slot->fiber = fiber;
    slot->closed = slot->closed || fiber == NULL;
    pthread_cond_broadcast(&slot->changed);
    pthread_mutex_unlock(&slot->lock);
}

static janus_fiber *slot_get(struct slot *slot)
{
    pthread_mutex_lock(&slot->lock);
    while (slot->fiber == NULL && !slot->closed) pthread_cond_wait(&slot->changed, &slot->lock);
    janus_fiber *fiber = slot->fiber;
    slot->fiber = NULL;
    pthread_cond_broadcast(&slot->changed);
    pthread_mutex_unlock(&slot->lock);
    return fiber;
}

struct traveller {
    int                rounds;
    int                crossings; /* rounds after which the thread had changed */
    struct jrt_thread *threads[2];
};

/* In one function, so that an optimiser has every chance to keep an address. */
static int64_t travel(void *argument)
{
    struct traveller *traveller = argument;
    janus_fiber      *self = janus_fiber_current();
    for (int i = 0; i < traveller->rounds; i++) {
        struct jrt_thread *before = jrt_thread_self();
        CHECK(before->current == self);
        CHECK(janus_fiber_current() == self);
        if (janus_fiber_suspend(before, NULL) != JANUS_OK) return -1;
        struct jrt_thread *after = jrt_thread_self();
        CHECK(after->current == self);
        CHECK(janus_fiber_current() == self);
        if (after != before) traveller->crossings++;
    }
    return traveller->rounds;
}

struct station {
    struct slot *in, *out;
};

/* Resumes each fiber that arrives and sends it on until it ends. */
static void *run_station(void *argument)
{
    struct station *station = argument;
    janus_fiber    *fiber;
    while ((fiber = slot_get(station->in)) != NULL) {
        janus_outcome outcome = resume(fiber, NULL);
        if (outcome.state == JANUS_FIBER_STATE_SUSPENDED) {
            CHECK(outcome.value == jrt_thread_self());
            slot_put(station->out, fiber);
        } else {
            CHECK_EQ(outcome.state, JANUS_FIBER_STATE_COMPLETED);
            slot_put(station->out, NULL);
            return fiber;
        }
    }
    return NULL;
}

TEST("a fiber that changes threads at every suspend always finds the thread it runs on")
{
    struct slot       there = SLOT, back = SLOT;
    struct station    stations[2] = {{&there, &back}, {&back, &there}};
    struct traveller  traveller = {.rounds = ROUNDS};
    janus_fiber_pool *pool = pool_new();
    janus_fiber      *fiber = fiber_new(pool, travel, &traveller);
    pthread_t         threads[2];
    slot_put(&there, fiber);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run_station, &stations[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(traveller.crossings, ROUNDS);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    pool_close(pool);
}

static int64_t overflow_after_moving(void *argument)
{
    (void)argument;
    if (janus_fiber_suspend(NULL, NULL) != JANUS_OK) return -1;
    return dig(0);
}

static void *resume_it(void *argument)
{
    janus_outcome outcome = resume(argument, NULL);
    CHECK_EQ(outcome.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
    return NULL;
}

TEST("a fiber that moved to a new thread can overflow there")
{
    janus_fiber_pool *pool = pool_new();
    for (int i = 0; i < 50; i++) {
        janus_fiber *fiber = fiber_new(pool, overflow_after_moving, NULL);
        CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_SUSPENDED);
        pthread_t thread;
        pthread_create(&thread, NULL, resume_it, fiber);
        pthread_join(thread, NULL);
        janus_fiber_destroy(fiber);
    }
    CHECK_EQ(stats_of(pool).overflows, 50);
    pool_close(pool);
}

static int64_t twice(void *argument)
{
    if (janus_fiber_suspend(argument, NULL) != JANUS_OK) return -1;
    return 0;
}

/* Makes, resumes and destroys fibers, with many alive at a time. */
static void *churn(void *argument)
{
    janus_fiber_pool *pool = argument;
    janus_fiber      *alive[97] = {NULL};
    for (int i = 0; i < ROUNDS; i++) {
        janus_fiber **place = &alive[(unsigned)i * 31 % 97];
        if (*place != NULL) {
            if (i % 3 == 0) CHECK_EQ(resume(*place, NULL).state, JANUS_FIBER_STATE_COMPLETED);
            CHECK_EQ(janus_fiber_destroy(*place), JANUS_OK);
        }
        *place = fiber_new(pool, twice, NULL);
        CHECK_EQ(resume(*place, NULL).state, JANUS_FIBER_STATE_SUSPENDED);
        if (i % 1000 == 0) janus_fiber_pool_trim(pool, 10 << 14);
    }
    for (int i = 0; i < 97; i++) janus_fiber_destroy(alive[i]);
    return NULL;
}

TEST("many threads make, run and destroy fibers of one pool while it is trimmed")
{
    janus_fiber_pool *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.idle_stack_bytes = 20 << 14));
    pthread_t         threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, churn, pool);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(stats_of(pool).fibers_created, 4ull * ROUNDS);
    pool_close(pool);
}

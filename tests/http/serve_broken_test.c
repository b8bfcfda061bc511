/* SPDX-License-Identifier: MIT */
/* Servers and connections whose tasks are broken off: by a cancel, or in a pool that is used up. */
#include "talk.h"

#include <janusrt/memory.h>
#include <malloc.h>

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

static atomic_int begun;

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    atomic_store(&begun, 1);
    return janus_http_answer(http, 200, NULL, "Hello!", 6);
}

static void open_listener(struct talk *talk)
{
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &talk->at), JANUS_OK);
    CHECK_EQ(janus_listen(&talk->at, NULL, &talk->listener), JANUS_OK);
    CHECK_EQ(janus_io_local(talk->listener, &talk->at), JANUS_OK);
}

/* Asks on until the server is gone. Returns how many answers came. */
static int ask_on(const struct talk *talk, int most)
{
    char         text[512];
    size_t       got = 0;
    janus_io     io;
    int          answers = 0;
    janus_status status = janus_connect(&talk->at, NULL, &io);
    if (status != JANUS_OK) return 0;
    while (status == JANUS_OK && answers < most) {
        size_t have = 0;
        text[0] = '\0';
        status = janus_io_write(io, GET, sizeof GET - 1, NULL);
        while (status == JANUS_OK && strstr(text, "Hello!") == NULL) {
            status = janus_io_read(io, text + have, sizeof text - 1 - have, &got);
            have += got;
            text[have] = '\0';
        }
        answers += status == JANUS_OK;
    }
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    return answers;
}

static int64_t visit(void *argument)
{
    (void)ask_on(argument, 1000000);
    return 0;
}

enum { VISITORS = 6 };

/* The clients keep the pool's tasks busy until none has an op left. */
static int64_t use_up(void *argument)
{
    struct talk *talk = argument;
    janus_status status, visited;
    janus_budget pool = {.ops = 6000 + (uint64_t)talk->workers,
                         .memory = 4 << 20,
                         .spawn_count = 1000,
                         .channel_ops = 100,
                         .syscalls = 100000};
    open_listener(talk);
    JANUS_NURSERY(around, visited, .owner_apart = true)
    {
        for (int i = 0; i < VISITORS; i++) CHECK_EQ(janus_spawn(around, visit, talk), JANUS_OK);
        JANUS_NURSERY(n, status, .budget = &pool, .exhaustion = JANUS_EXHAUSTION_END,
                      .owner_apart = true)
        {
            CHECK_EQ(janus_spawn(n, talk_serve, talk), JANUS_OK);
        }
        CHECK(status != JANUS_OK || talk->served != JANUS_OK);
        CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    }
    CHECK_EQ(visited, JANUS_OK);
    return 0;
}

TEST("a server in a pool that is used up ends, and leaves nothing that others find")
{
    struct talk talk = {.handler = greet};
    for (uint32_t i = 0; i < 40; i++) { /* the last op goes to another task each time */
        talk.workers = i * 37;
        rig_run(2, use_up, &talk, 1);
    }
}

/* Cancels a server whose task is broken off where it waits. */
/* A task that serves is broken off while it has `others` connections and another one. */
static int64_t unwind_task(struct talk *talk, janus_entry *serves, int others)
{
    janus_status status;
    open_listener(talk);
    JANUS_NURSERY(n, status, .owner_apart = true)
    {
        CHECK_EQ(janus_spawn_with(n, serves, talk,
                                  JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
                 JANUS_OK);
        if (others > 0) CHECK_EQ(ask_on(talk, others), others);
        janus_io io = talk_open(talk);
        talk_put(io, GET);
        (void)talk_until(talk, io, "Hello!");
        CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
        CHECK_EQ(janus_io_close(io), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    return 0;
}

static int64_t unwind(void *argument)
{
    atomic_store(&begun, 0);
    return unwind_task(argument, talk_serve, 3);
}

TEST("a server whose task is broken off leaves no memory behind")
{
    static struct talk talk = {.handler = greet};
    if (JRT_ASAN || JRT_TSAN) SKIP("the sanitizer counts by itself, or allocates");
    enum { ROUNDS = 100 };
    rig_run(2, unwind, &talk, 1);
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    for (int i = 0; i < 10; i++) rig_do(scheduler, unwind, &talk);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < ROUNDS; i++) rig_do(scheduler, unwind, &talk);
    size_t after = mallinfo2().uordblks;
    CHECK(after < before + (size_t)ROUNDS * 512); /* a server has more than 1000 bytes */
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* One connection, served by a task that is broken off. */
static int64_t serve_single(void *argument)
{
    struct talk *talk = argument;
    janus_io     io;
    CHECK_EQ(janus_accept(talk->listener, &io, NULL), JANUS_OK);
    talk->served = janus_http_serve_one(io, greet, NULL, NULL);
    return 0;
}

static size_t mapped(void)
{
    size_t size = 0;
    FILE  *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%zu", &size), 1);
    CHECK_EQ(fclose(file), 0);
    return size;
}

static int64_t unwind_single(void *argument) { return unwind_task(argument, serve_single, 0); }

TEST("a task that is broken off while it serves one connection leaves no block behind")
{
    static struct talk talk = {.handler = greet};
    if (JRT_ASAN || JRT_TSAN) SKIP("the sanitizer maps as it likes");
    enum { ROUNDS = 100 };
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    for (int i = 0; i < 20; i++) rig_do(scheduler, unwind_single, &talk);
    size_t before = mapped();
    for (int i = 0; i < ROUNDS; i++) rig_do(scheduler, unwind_single, &talk);
    CHECK(mapped() < before + (size_t)ROUNDS * 4); /* pages; a block has nine */
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Shields that end at once. */

static int64_t cancel_in_traffic(void *argument)
{
    struct talk *talk = argument;
    janus_status status, visited;
    open_listener(talk);
    atomic_store(&begun, 0);
    talk->served = 77;
    JANUS_NURSERY(around, visited)
    {
        for (int i = 0; i < VISITORS; i++) CHECK_EQ(janus_spawn(around, visit, talk), JANUS_OK);
        JANUS_NURSERY(n, status, .owner_apart = true)
        {
            CHECK_EQ(janus_spawn(n, talk_serve, talk), JANUS_OK);
            CHECK(rig_wait(&begun));
            CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
        }
        CHECK_EQ(status, JANUS_CANCELLED);
        CHECK_EQ(talk->served, JANUS_CANCELLED); /* it returned */
        CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    }
    CHECK_EQ(visited, JANUS_OK);
    return 0;
}

TEST("a cancel that no shield holds off leaves the server's lists whole")
{
    static struct talk talk = {.handler = greet};
    janus_scheduler   *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 4, .grace_ns = 1));
    for (uint64_t i = 0; i < rig_few(RIG_SLOW ? 50 : 200); i++) {
        rig_do(scheduler, cancel_in_traffic, &talk);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

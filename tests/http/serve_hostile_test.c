/* SPDX-License-Identifier: MIT */
/* Handlers that panic, loop, leak, flood, and what their neighbours notice: nothing. */
#include "talk.h"

#include <janusrt/dump.h>
#include <janusrt/memory.h>
#include <janusrt/yield.h>

static const janus_budget small = {
    .ops = 100000, .memory = 1 << 20, .spawn_count = 50, .channel_ops = 100, .syscalls = 500};

static int64_t sleep_for_ever(void *argument)
{
    (void)argument;
    return janus_sleep(JANUS_IO_NEVER / 4);
}

static void flood(void)
{
    static janus_nursery n; /* in a frame it would be gone when the task ends */
    if (janus_nursery_open(&n, NULL) != JANUS_OK) return;
    while (janus_spawn(&n, sleep_for_ever, NULL) == JANUS_OK) {
    }
    janus_panic("no more spawns");
}

static volatile int deeper = 1;

__attribute__((noinline)) static int overflow(int depth)
{
    volatile char frame[512];
    frame[0] = (char)depth;
    return deeper ? overflow(depth + 1) + frame[0] : depth;
}

static atomic_int defers;

static void count_defer(void *argument)
{
    (void)argument;
    atomic_fetch_add(&defers, 1);
}

/* Leaves a nursery open in a frame that ends. */
__attribute__((noinline)) static void leave_open(void)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, sleep_for_ever, NULL), JANUS_OK);
}

static int64_t misbehave(janus_http *http, const janus_http_request *request)
{
    char sin = request->path.bytes > 1 ? request->path.at[1] : 'g';
    switch (sin) {
    case 'p': janus_panic("on purpose");
    case 'l':
        for (;;) janus_check_or_end(1);
    case 'm':
        for (;;) CHECK(janus_alloc(65536) != NULL);
    case 'f': flood(); return 0;
    case 'o': return overflow(0);
    case 'w': { /* writes without end */
        static const char bytes[4096];
        janus_status      status = janus_http_begin(http, 200, NULL, JANUS_HTTP_UNKNOWN);
        while (status == JANUS_OK) status = janus_http_write(http, bytes, sizeof bytes);
        return status;
    }
    case 'h': { /* panics in the middle */
        CHECK_EQ(janus_http_begin(http, 200, NULL, JANUS_HTTP_UNKNOWN), JANUS_OK);
        CHECK_EQ(janus_http_write(http, "half", 4), JANUS_OK);
        janus_panic("on purpose");
    }
    case 'a': /* panics after its answer */
        CHECK_EQ(janus_http_answer(http, 200, NULL, "done", 4), JANUS_OK);
        janus_panic("on purpose");
    case 'n':
        CHECK_EQ(janus_http_answer(http, 200, NULL, "left", 4), JANUS_OK);
        leave_open(); /* nothing is called after it */
        return 0;
    case 'D': /* leaves a hundred defers */
        for (int i = 0; i < 100; i++) CHECK_EQ(janus_defer(count_defer, NULL), JANUS_OK);
        return janus_http_answer(http, 200, NULL, "many", 4);
    case 'd': /* leaves a defer and a block */
        CHECK_EQ(janus_defer(count_defer, NULL), JANUS_OK);
        CHECK(janus_alloc(100) != NULL);
        return janus_http_answer(http, 200, NULL, "left", 4);
    default: return janus_http_answer(http, 200, NULL, "good", 4);
    }
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK_GOOD "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"
#define IS_500(text) (strncmp(text, "HTTP/1.1 500 ", 13) == 0)

/* A neighbour that was there before the sin, and goes on after it. */
struct neighbour {
    janus_io io;
};

static void ask_neighbour(struct talk *talk, janus_io io)
{
    talk_put(io, GET("/good"));
    CHECK_STR(talk_until(talk, io, "good"), OK_GOOD);
}

static void sin_beside(struct talk *talk)
{
    static const char *const sins[] = {GET("/panic"), GET("/loop"), GET("/memory"), GET("/flood")};
    janus_io                 io = talk_open(talk);
    for (uint64_t round = 0; round < (rig_simulated() ? 2 : 20); round++) {
        for (size_t i = 0; i < sizeof sins / sizeof sins[0]; i++) {
            ask_neighbour(talk, io);
            CHECK(IS_500(talk_ask(talk, sins[i])));
        }
    }
    /* Gathered answers before the sin arrive. */
    CHECK(strncmp(talk_ask(talk, GET("/good") GET("/panic") GET("/good")), OK_GOOD "HTTP/1.1 500 ",
                  strlen(OK_GOOD) + 13) == 0);
    CHECK_STR(talk_ask(talk, GET("/half")),
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    CHECK_STR(talk_ask(talk, GET("/after")), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
    ask_neighbour(talk, io);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a handler that panics, loops, leaks or floods gives 500, and its neighbours go on")
{
    talk_run(&(struct talk){.handler = misbehave,
                            .client = sin_beside,
                            .options = JANUS_HTTP_OPTIONS(.request_budget = &small)});
}

static void sin_without_pool(struct talk *talk)
{
    janus_io io = talk_open(talk);
    for (uint64_t round = 0; round < (rig_simulated() ? 1 : 3); round++) {
        ask_neighbour(talk, io);
        CHECK(IS_500(talk_ask(talk, GET("/panic"))));
        CHECK(IS_500(talk_ask(talk, GET("/memory"))));
        if (!rig_simulated()) CHECK(IS_500(talk_ask(talk, GET("/loop"))));
    }
    ask_neighbour(talk, io);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a handler without a pool of its own is bounded, too")
{
    talk_run(&(struct talk){.handler = misbehave, .client = sin_without_pool});
}

static void leave_nursery(struct talk *talk)
{
    janus_io io = talk_open(talk);
    for (int round = 0; round < 3; round++) {
        ask_neighbour(talk, io);
        CHECK_STR(talk_ask(talk, GET("/nursery") GET("/good")),
                  "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nleft");
    }
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a handler that leaves a nursery open ends its connection")
{
    if (JRT_ASAN) SKIP("AddressSanitizer uses the frame of the nursery again at once");
    talk_run(&(struct talk){.handler = misbehave, .client = leave_nursery});
    talk_run(&(struct talk){.handler = misbehave,
                            .client = leave_nursery,
                            .options = JANUS_HTTP_OPTIONS(.request_budget = &small)});
}

static void overflow_beside(struct talk *talk)
{
    janus_io io = talk_open(talk);
    for (int round = 0; round < 3; round++) {
        ask_neighbour(talk, io);
        CHECK(IS_500(talk_ask(talk, GET("/overflow"))));
    }
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a handler that overflows its stack gives 500")
{
    RIG_OVERFLOWS();
    if (JRT_ASAN) SKIP("AddressSanitizer reports the overflow");
    talk_run(&(struct talk){.handler = misbehave, .client = overflow_beside});
}

static void read_without_end(struct talk *talk)
{
    janus_io     io = talk_open(talk);
    size_t       got = 0;
    uint64_t     all = 0;
    janus_status status;
    talk_put(io, GET("/write"));
    while ((status = janus_io_read(io, talk->text, TALK_BYTES, &got)) == JANUS_OK) all += got;
    CHECK(all > 100000);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    CHECK_STR(talk_ask(talk, "GET / HTTP/1.0\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngood");
}

TEST("a handler that writes without end is cut off when its budget is used up")
{
    talk_run(&(struct talk){.handler = misbehave,
                            .client = read_without_end,
                            .options = JANUS_HTTP_OPTIONS(.request_budget = &small)});
}

static void leave_things(struct talk *talk)
{
    janus_io io = talk_open(talk);
    atomic_store(&defers, 0);
    for (int i = 0; i < 10; i++) {
        talk_put(io, GET("/defer"));
        CHECK_STR(talk_until(talk, io, "left"), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nleft");
        ask_neighbour(talk, io);
        CHECK_EQ(atomic_load(&defers), i + 1);
    }
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    CHECK_STR(talk_ask(talk, GET("/Defers") "GET / HTTP/1.0\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmany"
              "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngood");
    CHECK_EQ(atomic_load(&defers), 110);
}

TEST("defers of a handler run before the next request of the connection")
{
    talk_run(&(struct talk){.handler = misbehave, .client = leave_things});
    talk_run(&(struct talk){.handler = misbehave,
                            .client = leave_things,
                            .options = JANUS_HTTP_OPTIONS(.request_budget = &small)});
}

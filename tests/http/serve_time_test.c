/* SPDX-License-Identifier: MIT */
/* The server's deadlines, on a simulated clock: slow heads, slow bodies, slow readers, idlers. */
#include "http/server.h"
#include "talk.h"

#include <janusrt/memory.h>

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, NULL, "Hello!", 6);
}

static double seconds_since(uint64_t begun) { return (double)(janus_now_ns() - begun) / 1e9; }

static void creep(struct talk *talk)
{
    janus_io io = talk_open(talk);
    uint64_t begun = janus_now_ns();
    talk_put(io, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (;;) { /* a byte every second: no single read takes long */
        if (janus_sleep(JANUS_SECONDS) != JANUS_OK) break;
        if (janus_io_write(io, "X", 1, NULL) != JANUS_OK) break;
        char   byte;
        size_t got = 0;
        if (janus_io_try_read(io, &byte, 1, &got) != JANUS_WOULD_WAIT) {
            CHECK(got == 1 && byte == 'H');
            break;
        }
    }
    CHECK(seconds_since(begun) >= 10 && seconds_since(begun) < 12);
    CHECK(strncmp(talk_rest(talk, io), "TTP/1.1 408 ", 12) == 0);
}

TEST("a head that takes longer than 10 s in all gets 408")
{
    talk_run(&(struct talk){.handler = greet, .client = creep, .seed = 7});
}

static void say_nothing(struct talk *talk)
{
    janus_io io = talk_open(talk);
    uint64_t begun = janus_now_ns();
    CHECK_STR(talk_rest(talk, io), "");
    CHECK(seconds_since(begun) >= 10 && seconds_since(begun) < 11);
    io = talk_open(talk);
    talk_put(io, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(strstr(talk_until(talk, io, "Hello!"), "200") != NULL);
    begun = janus_now_ns();
    CHECK_STR(talk_rest(talk, io), "");
    CHECK(seconds_since(begun) >= 60 && seconds_since(begun) < 63);
}

TEST("a silent connection is closed after 10 s, and after a request after 60 s")
{
    talk_run(&(struct talk){.handler = greet, .client = say_nothing, .seed = 7});
}

static void come_one_by_one(struct talk *talk)
{
    enum { GUESTS = 4 };
    janus_io ios[GUESTS];
    uint64_t begun[GUESTS], asked;
    janus_io idler = talk_open(talk);
    talk_put(idler, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(strstr(talk_until(talk, idler, "Hello!"), "200") != NULL);
    asked = janus_now_ns();
    for (int i = 0; i < GUESTS; i++) {
        CHECK_EQ(janus_sleep(3 * JANUS_SECONDS), JANUS_OK);
        ios[i] = talk_open(talk);
        begun[i] = janus_now_ns();
    }
    for (int i = 0; i < GUESTS; i++) {
        CHECK_STR(talk_rest(talk, ios[i]), "");
        CHECK(seconds_since(begun[i]) >= 10 && seconds_since(begun[i]) < 10.5);
    }
    CHECK_STR(talk_rest(talk, idler), "");
    CHECK(seconds_since(asked) >= 60 && seconds_since(asked) < 63);
}

TEST("each silent connection is closed at its own time")
{
    talk_run(&(struct talk){.handler = greet, .client = come_one_by_one, .seed = 7});
}

static void pause_between(struct talk *talk)
{
    janus_io io = talk_open(talk);
    for (int i = 0; i < 5; i++) {
        talk_put(io, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        CHECK(strstr(talk_until(talk, io, "Hello!"), "200") != NULL);
        CHECK_EQ(janus_sleep((uint64_t)i * 14 * JANUS_SECONDS), JANUS_OK);
    }
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a connection that pauses for less than 60 s is served again each time")
{
    talk_run(&(struct talk){.handler = greet, .client = pause_between, .seed = 7});
}

struct slow {
    janus_status status;
    double       took;
};

static int64_t read_slowly_sent(janus_http *http, const janus_http_request *request)
{
    struct slow *slow = request->argument;
    uint64_t     begun = janus_now_ns();
    char        *body;
    size_t       bytes;
    slow->status = janus_http_read_all(http, &body, &bytes);
    slow->took = seconds_since(begun);
    return slow->status != JANUS_OK ? slow->status : janus_http_answer_text(http, 200, "fine");
}

static void send_slowly(struct talk *talk)
{
    struct slow *slow = talk->argument;
    janus_io     io = talk_open(talk);
    talk_put(io, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    while (janus_io_write(io, "0123456789", 10, NULL) == JANUS_OK && slow->status == JANUS_OK) {
        if (janus_sleep(JANUS_SECONDS) != JANUS_OK) break; /* 10 bytes a second */
    }
    CHECK_EQ(slow->status, JANUS_DEADLINE);
    CHECK(slow->took >= 5 && slow->took < 7);
    CHECK(strncmp(talk_rest(talk, io), "HTTP/1.1 408 ", 13) == 0);
}

TEST("a body below the lowest speed gets 408 soon after 5 s")
{
    struct slow slow = {0};
    talk_run(&(struct talk){
        .handler = read_slowly_sent, .argument = &slow, .client = send_slowly, .seed = 7});
}

static void send_steadily(struct talk *talk)
{
    struct slow *slow = talk->argument;
    janus_io     io = talk_open(talk);
    char         piece[300] = {'x'};
    memset(piece, 'x', sizeof piece);
    talk_put(io,
             "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 30000\r\n\r\n");
    for (int i = 0; i < 100; i++) { /* 300 bytes a second, for 100 s */
        CHECK_EQ(janus_io_write(io, piece, sizeof piece, NULL), JANUS_OK);
        CHECK_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    }
    CHECK(strstr(talk_rest(talk, io), "fine") != NULL);
    CHECK_EQ(slow->status, JANUS_OK);
    CHECK(slow->took >= 98);
}

TEST("a body that comes steadily may take as long as it needs")
{
    struct slow slow = {0};
    talk_run(&(struct talk){
        .handler = read_slowly_sent, .argument = &slow, .client = send_steadily, .seed = 7});
}

enum { MUCH = 1 << 20 };

static int64_t write_much(janus_http *http, const janus_http_request *request)
{
    struct slow *slow = request->argument;
    char        *much = janus_alloc(MUCH);
    uint64_t     begun = janus_now_ns();
    CHECK(much != NULL);
    memset(much, 'x', MUCH);
    slow->status = janus_http_answer(http, 200, NULL, much, MUCH);
    slow->took = seconds_since(begun);
    return 0;
}

static void read_nothing(struct talk *talk)
{
    struct slow *slow = talk->argument;
    janus_io     io = talk_open(talk);
    talk_put(io, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    while (slow->status == JANUS_OK) CHECK_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    CHECK_EQ(slow->status, JANUS_DEADLINE);
    CHECK(slow->took >= 30 && slow->took < 39);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a client that takes no byte for 30 s loses its connection")
{
    struct slow slow = {0};
    talk_run(&(struct talk){
        .handler = write_much, .argument = &slow, .client = read_nothing, .seed = 7});
}

static void read_slowly(struct talk *talk)
{
    struct slow *slow = talk->argument;
    janus_io     io = talk_open(talk);
    size_t       got = 0, have = 0;
    talk_put(io, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    while (janus_io_read(io, talk->text, 32768, &got) == JANUS_OK) {
        have += got;
        CHECK_EQ(janus_sleep(3 * JANUS_SECONDS), JANUS_OK); /* a read may get one byte */
    }
    CHECK(have > MUCH);
    CHECK_EQ(slow->status, JANUS_OK);
    CHECK(slow->took > 60);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a client that takes some bytes now and then gets the whole answer")
{
    struct slow slow = {0};
    talk_run(
        &(struct talk){.handler = write_much, .argument = &slow, .client = read_slowly, .seed = 7});
}

static int64_t sleep_long(janus_http *http, const janus_http_request *request)
{
    (void)http;
    (void)request;
    return janus_sleep(3600 * JANUS_SECONDS);
}

static void wait_for_the_end(struct talk *talk)
{
    uint64_t begun = janus_now_ns();
    CHECK(strncmp(talk_ask(talk, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 503 ", 13) == 0);
    CHECK(seconds_since(begun) >= 3 && seconds_since(begun) < 4);
}

TEST("a request that takes longer than handler_ns is cancelled and gets 503")
{
    talk_run(&(struct talk){.handler = sleep_long,
                            .client = wait_for_the_end,
                            .options = JANUS_HTTP_OPTIONS(.handler_ns = 3 * JANUS_SECONDS),
                            .seed = 7});
}

/* Waits for a body that does not come, or waits long and reads then. */
static int64_t take_body(janus_http *http, const janus_http_request *request)
{
    char   byte;
    size_t got = 0;
    if (talk_is(request->path, "/late")) CHECK_EQ(janus_sleep(JANUS_SECONDS * 9), JANUS_CANCELLED);
    janus_status status = janus_http_read(http, &byte, 1, &got);
    CHECK_EQ(status, JANUS_CANCELLED);
    return status;
}

#define HALF(path) "POST " path " HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"

static void send_no_body(struct talk *talk)
{
    CHECK(strncmp(talk_ask(talk, HALF("/")), "HTTP/1.1 503 ", 13) == 0);
    CHECK(strncmp(talk_ask(talk, HALF("/late")), "HTTP/1.1 503 ", 13) == 0);
}

TEST("a request that handler_ns ends while it reads its body gets 503, not the client's 400")
{
    talk_run(&(struct talk){.handler = take_body,
                            .client = send_no_body,
                            .options = JANUS_HTTP_OPTIONS(.handler_ns = 3 * JANUS_SECONDS),
                            .seed = 7});
}

static atomic_int written;

/* The tick ends a write by a deadline. The deadline may come late, in the next write. */
static int64_t set_old_deadlines(void *argument)
{
    const struct janus_http *http = jrt_http_block(argument);
    for (int i = 0; i < 3; i++) {
        janus_io_info info = JANUS_IO_INFO();
        do {
            CHECK_EQ(janus_yield(), JANUS_OK);
            if (atomic_load(&written) != 0) return 0;
            CHECK_EQ(janus_io_inspect(http->io, &info), JANUS_OK);
        } while ((info.waits & JANUS_IO_WRITE) == 0 || info.write_deadline == 1);
        CHECK_EQ(janus_io_set_deadline(http->io, JANUS_IO_WRITE, 1), JANUS_OK);
    }
    return 0;
}

static int64_t write_with_old_deadlines(janus_http *http, const janus_http_request *request)
{
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, set_old_deadlines, http), JANUS_OK);
        (void)write_much(http, request);
        atomic_store(&written, 1);
    }
    return status;
}

static void read_late(struct talk *talk)
{
    struct slow *slow = talk->argument;
    janus_io     io = talk_open(talk);
    size_t       got = 0, have = 0;
    talk_put(io, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    CHECK_EQ(janus_sleep(5 * JANUS_SECONDS), JANUS_OK);
    while (janus_io_read(io, talk->text, 32768, &got) == JANUS_OK) have += got;
    CHECK(have > MUCH);
    CHECK_EQ(slow->status, JANUS_OK);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a deadline that was meant for an earlier write ends no answer")
{
    struct slow slow = {0};
    atomic_store(&written, 0);
    talk_run(&(struct talk){
        .handler = write_with_old_deadlines, .argument = &slow, .client = read_late, .seed = 7});
}

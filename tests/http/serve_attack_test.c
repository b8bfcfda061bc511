/* SPDX-License-Identifier: MIT */
/* Clients that attack: with bodies nobody reads, with trickles, with places that they keep. */
#include "talk.h"

#include <janusrt/memory.h>

static atomic_int begun, go;

/* Answers with the body, if there is one. "/wait" waits for `go` before. "/drop" reads nothing. */
static int64_t echo(janus_http *http, const janus_http_request *request)
{
    char  *body = NULL;
    size_t bytes = 0;
    if (talk_is(request->path, "/drop")) return janus_http_answer(http, 200, NULL, "drop", 4);
    if (talk_is(request->path, "/wait")) {
        atomic_store(&begun, 1);
        if (!rig_wait(&go)) return -100;
    }
    janus_status status = janus_http_read_all(http, &body, &bytes);
    if (status != JANUS_OK) return status;
    status = janus_http_answer(http, 200, NULL, body, bytes);
    janus_free(body);
    return status;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define CHUNKED(path) "POST " path " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
#define OK_DROP "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndrop"

static void send_malformed_unread(struct talk *talk)
{
    CHECK_STR(talk_ask(talk, GET("/drop") CHUNKED("/drop") "5\r\nabcdef\r\n" GET("/")),
              OK_DROP OK_DROP);
    CHECK_STR(talk_ask(talk, GET("/drop") CHUNKED("/drop") "0\r\nHost: b\r\n\r\n" GET("/")),
              OK_DROP OK_DROP);
}

TEST("a malformed body that nobody reads costs no answer, and nothing behind it is a request")
{
    talk_run(&(struct talk){.handler = echo, .client = send_malformed_unread});
}

enum { BUFFER_BYTES = 16384 + 4096 };

/* Sends requests that come in one read. The head of the last one ends `short_of` the buffer. */
static void fill_buffer(struct talk *talk, size_t short_of)
{
    static char text[BUFFER_BYTES + 1];
    const char  last[] = CHUNKED("/"), chunks[] = "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n";
    size_t   end = BUFFER_BYTES - short_of, want = end - (sizeof last - 1), have = 0, requests = 0;
    janus_io io = talk_open(talk);
    atomic_store(&begun, 0);
    atomic_store(&go, 0);
    talk_put(io, GET("/wait"));
    CHECK(rig_wait(&begun));
    for (; want - have >= 2000; requests++) {
        size_t pad = want - have >= 4000 ? 1000 : want - have - 40;
        have += (size_t)sprintf(text + have, "GET /drop HTTP/1.1\r\nHost: a\r\nPad: ");
        memset(text + have, 'x', pad);
        have += pad;
        have += (size_t)sprintf(text + have, "\r\n\r\n");
    }
    while (have < want) { /* what is left goes into the last head but one */
        memmove(text + 40, text + 39, have - 39);
        have++;
    }
    have += (size_t)sprintf(text + have, "%s", last);
    CHECK_EQ(have, end);
    talk_put(io, text);
    talk_put(io, chunks);
    atomic_store(&go, 1);
    const char *answers = talk_until(talk, io, "abcde");
    for (size_t i = 0; i < requests; i++) {
        answers = strstr(answers, "drop");
        CHECK(answers != NULL);
        answers += 4;
    }
    CHECK_STR(answers, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde");
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

static void fill_buffers(struct talk *talk)
{
    for (size_t short_of = 0; short_of < 8; short_of++) fill_buffer(talk, short_of);
    fill_buffer(talk, 100);
    fill_buffer(talk, 5000);
}

TEST("a chunked request may begin anywhere in the bytes that come together")
{
    talk_run(&(struct talk){.handler = echo, .client = fill_buffers});
}

static void trickle_after_a_rush(struct talk *talk)
{
    janus_io     io = talk_open(talk);
    janus_status status = JANUS_OK;
    char         rush[50000];
    memset(rush, 'x', sizeof rush);
    talk_put(io, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(janus_io_write(io, rush, sizeof rush, NULL), JANUS_OK);
    }
    uint64_t from = janus_now_ns();
    for (int bytes = 0; bytes < 5 && status == JANUS_OK; bytes++) {
        status = janus_sleep(29 * JANUS_SECONDS);
        if (status == JANUS_OK) status = janus_io_write(io, "x", 1, NULL);
        char   byte;
        size_t got = 0;
        if (status == JANUS_OK && janus_io_try_read(io, &byte, 1, &got) == JANUS_OK) break;
    }
    CHECK(janus_now_ns() - from < 60 * JANUS_SECONDS);
    (void)janus_io_close(io);
}

TEST("half a megabyte that came fast does not pay for a trickle")
{
    talk_run(&(struct talk){.handler = echo, .client = trickle_after_a_rush, .seed = 7});
}

static const janus_http_options *two_places(void)
{
    static const janus_http_options options = {.struct_bytes = sizeof options,
                                               .max_connections = 2};
    return &options;
}

/* Asks on a connection of its own, and checks that it is not kept waiting for long. */
static void ask_in_time(struct talk *talk)
{
    uint64_t from = janus_now_ns();
    CHECK_STR(talk_ask(talk, "GET /drop HTTP/1.0\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndrop");
    CHECK(janus_now_ns() - from < 4 * JANUS_SECONDS);
}

static void take_all_places(struct talk *talk)
{
    for (int round = 0; round < 3; round++) {
        janus_io silent = talk_open(talk), idle = talk_open(talk);
        talk_put(idle, GET("/drop"));
        CHECK_STR(talk_until(talk, idle, "drop"), OK_DROP);
        for (int i = 0; i < 2; i++) ask_in_time(talk);
        CHECK_EQ(janus_io_close(silent), JANUS_OK);
        CHECK_EQ(janus_io_close(idle), JANUS_OK);
    }
}

TEST("silent and idle connections make way when others wait")
{
    talk_run(&(struct talk){
        .handler = echo, .client = take_all_places, .options = two_places(), .seed = 7});
}

static void keep_places(struct talk *talk)
{
    janus_io idle[2] = {talk_open(talk), talk_open(talk)};
    for (int i = 0; i < 8; i++) { /* nobody waits */
        talk_put(idle[i % 2], GET("/drop"));
        CHECK_STR(talk_until(talk, idle[i % 2], "drop"), OK_DROP);
        CHECK_EQ(janus_sleep((i < 2 ? 1 : 25) * JANUS_SECONDS), JANUS_OK);
    }
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_io_close(idle[i]), JANUS_OK);
}

TEST("idle connections of a full server stay while nobody waits")
{
    talk_run(
        &(struct talk){.handler = echo, .client = keep_places, .options = two_places(), .seed = 7});
}

/* Keeps a connection busy until the server says that it closes, or until `go`. */
static int64_t be_busy(void *argument)
{
    static const char request[] = GET("/drop");
    char              answer[512] = "";
    size_t            got = 0;
    janus_io          io = talk_open(argument);
    uint64_t          from = janus_now_ns();
    while (strstr(answer, "Connection: close") == NULL && atomic_load(&go) == 0) {
        CHECK_EQ(janus_io_write(io, request, sizeof request - 1, NULL), JANUS_OK);
        CHECK_EQ(janus_io_read(io, answer, sizeof answer - 1, &got), JANUS_OK);
        answer[got] = '\0';
        CHECK_EQ(janus_sleep(JANUS_SECONDS / 2), JANUS_OK);
    }
    CHECK(janus_now_ns() - from >= 5 * JANUS_SECONDS); /* it had its turn */
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    return 0;
}

static void wait_for_the_busy(struct talk *talk)
{
    janus_status status;
    atomic_store(&go, 0);
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(n, be_busy, talk), JANUS_OK);
        CHECK_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
        uint64_t from = janus_now_ns();
        CHECK(strstr(talk_ask(talk, "GET /drop HTTP/1.0\r\n\r\n"), "drop") != NULL);
        CHECK(janus_now_ns() - from < 10 * JANUS_SECONDS);
        CHECK_EQ(janus_sleep(5 * JANUS_SECONDS), JANUS_OK);
        atomic_store(&go, 1);
    }
    CHECK_EQ(status, JANUS_OK);
}

TEST("busy connections make way after a turn when others wait")
{
    talk_run(&(struct talk){
        .handler = echo, .client = wait_for_the_busy, .options = two_places(), .seed = 7});
}

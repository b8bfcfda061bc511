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

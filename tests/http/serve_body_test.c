/* SPDX-License-Identifier: MIT */
/* The server: bodies of requests, streams of answers. */
#include "talk.h"

#include <janusrt/memory.h>

#define OK_LAST(length, body)                                                                      \
    "HTTP/1.1 200 OK\r\nContent-Length: " length "\r\nConnection: close\r\n\r\n" body
#define CHUNKED "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"

/* Answers with the body, and the trailer "Sum". */
static int64_t echo(janus_http *http, const janus_http_request *request)
{
    char           *body;
    size_t          bytes;
    janus_http_text sum;
    janus_status    status = janus_http_read_all(http, &body, &bytes);
    if (status != JANUS_OK) return status;
    CHECK_EQ(strlen(body), bytes);
    if (janus_http_trailer(http, "sum", &sum) == JANUS_OK) {
        char text[16] = {0};
        CHECK(sum.bytes < sizeof text);
        memcpy(text, sum.at, sum.bytes);
        CHECK_EQ(janus_http_set_field(http, "Sum", text), JANUS_OK);
    }
    CHECK(request->content_length == JANUS_HTTP_UNKNOWN || request->content_length == bytes);
    return janus_http_answer(http, 200, NULL, body, bytes);
}

static void send_bodies(struct talk *talk)
{
    CHECK_STR(talk_ask(talk, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
                             "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" CHUNKED
                             "Connection: close\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nSum: 7\r\n"
                             "X: y\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
              "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
              "HTTP/1.1 200 OK\r\nSum: 7\r\nContent-Length: 7\r\nConnection: close\r\n\r\nabcdefg");
}

TEST("a body comes by its length or in chunks, with trailers")
{
    talk_run(&(struct talk){.handler = echo, .client = send_bodies});
}

static void send_wrong_bodies(struct talk *talk)
{
    CHECK(strncmp(talk_ask(talk, CHUNKED "\r\n5\r\nhelloXX0\r\n\r\n"), "HTTP/1.1 400 ", 13) == 0);
    CHECK(strncmp(talk_ask(talk, CHUNKED "\r\n5\nhello\r\n0\r\n\r\n"), "HTTP/1.1 400 ", 13) == 0);
    CHECK(strncmp(talk_ask(talk, CHUNKED "\r\n0\r\nContent-Length: 3\r\n\r\n"), "HTTP/1.1 400 ",
                  13) == 0);
    CHECK(strncmp(talk_ask(talk, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n"),
                  "HTTP/1.1 413 ", 13) == 0);
    CHECK(strncmp(talk_ask(talk, CHUNKED "\r\n65\r\n0"), "HTTP/1.1 413 ", 13) == 0);
    CHECK(strstr(talk->text, "the body has more than 100 bytes.\n") != NULL);
    janus_io io = talk_open(talk);
    talk_put(io, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
    CHECK_EQ(janus_io_shutdown(io, JANUS_IO_WRITE), JANUS_OK);
    CHECK(strncmp(talk_rest(talk, io), "HTTP/1.1 400 ", 13) == 0);
}

TEST("a body that is malformed, too long or cut off gets its status")
{
    talk_run(&(struct talk){.handler = echo,
                            .client = send_wrong_bodies,
                            .options = JANUS_HTTP_OPTIONS(.max_body_bytes = 100)});
}

/* A body that does not fit in one buffer. */
static int64_t sum_up(janus_http *http, const janus_http_request *request)
{
    char     piece[1000], text[32];
    size_t   got = 0;
    uint64_t sum = 0, all = 0;
    (void)request;
    CHECK_EQ(janus_http_limit_body(http, JANUS_HTTP_UNKNOWN), JANUS_OK);
    janus_status status;
    while ((status = janus_http_read(http, piece, sizeof piece, &got)) == JANUS_OK) {
        CHECK(got > 0);
        for (size_t i = 0; i < got; i++) sum = sum * 31 + (unsigned char)piece[i];
        all += got;
    }
    if (status != JANUS_CLOSED) return status;
    int bytes = snprintf(text, sizeof text, "%llu %016llx", (unsigned long long)all,
                         (unsigned long long)sum);
    return janus_http_answer(http, 200, NULL, text, (size_t)bytes);
}

enum { LONG_BODY = 200000 };

static void send_long_body(struct talk *talk, bool chunked)
{
    static char body[LONG_BODY];
    char        head[128], want[64];
    uint64_t    sum = 0;
    janus_io    io = talk_open(talk);
    for (size_t i = 0; i < LONG_BODY; i++) {
        body[i] = (char)(i * 7 + i / 256);
        sum = sum * 31 + (unsigned char)body[i];
    }
    talk_put(io, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
    if (!chunked) {
        (void)snprintf(head, sizeof head, "Content-Length: %d\r\n\r\n", LONG_BODY);
        talk_put(io, head);
        CHECK_EQ(janus_io_write(io, body, LONG_BODY, NULL), JANUS_OK);
    } else {
        talk_put(io, "Transfer-Encoding: chunked\r\n\r\n");
        for (size_t at = 0, piece = 1; at < LONG_BODY; at += piece, piece = piece * 3 + 1) {
            if (piece > LONG_BODY - at) piece = LONG_BODY - at;
            (void)snprintf(head, sizeof head, "%zx\r\n", piece);
            talk_put(io, head);
            CHECK_EQ(janus_io_write(io, body + at, piece, NULL), JANUS_OK);
            talk_put(io, "\r\n");
        }
        talk_put(io, "0\r\n\r\n");
    }
    (void)snprintf(want, sizeof want, "\r\n\r\n%d %016llx", LONG_BODY, (unsigned long long)sum);
    CHECK(strstr(talk_rest(talk, io), want) != NULL);
}

static void send_long_bodies(struct talk *talk)
{
    send_long_body(talk, false);
    send_long_body(talk, true);
}

TEST("a long body arrives whole, in pieces")
{
    talk_run(&(struct talk){.handler = sum_up, .client = send_long_bodies});
}

#define EXPECT_CONTINUE                                                                            \
    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"

static void wait_for_continue(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, EXPECT_CONTINUE);
    CHECK_STR(talk_until(talk, io, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    talk_put(io, "hello");
    CHECK_STR(talk_until(talk, io, "hello"), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a client that expects 100-continue gets it when the handler reads")
{
    talk_run(&(struct talk){.handler = echo, .client = wait_for_continue});
}

static int64_t ignore_body(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, NULL, "no", 2);
}

static void get_refused(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, EXPECT_CONTINUE);
    CHECK_STR(talk_rest(talk, io), OK_LAST("2", "no"));
    /* The body that came nevertheless is not a request. */
    CHECK_STR(talk_ask(talk, EXPECT_CONTINUE "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
              OK_LAST("2", "no"));
}

TEST("a client whose body is refused gets no 100, and its connection closes")
{
    talk_run(&(struct talk){.handler = ignore_body, .client = get_refused});
}

static void send_unread_bodies(struct talk *talk)
{
    CHECK_STR(talk_ask(talk, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" CHUNKED
                             "\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.0\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"
              "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno" OK_LAST("2", "no"));
    CHECK_STR(talk_ask(talk, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\nhello"),
              OK_LAST("2", "no"));
}

TEST("a short body that nobody reads is dropped, and a long one ends the connection")
{
    talk_run(&(struct talk){.handler = ignore_body, .client = send_unread_bodies});
}

/* Streams. */

static int64_t stream(janus_http *http, const janus_http_request *request)
{
    bool known = talk_is(request->path, "/known"), cut = talk_is(request->path, "/cut");
    CHECK_EQ(janus_http_flush(http), JANUS_STATE);
    CHECK_EQ(janus_http_begin(http, 200, "a/b", known ? 6 : JANUS_HTTP_UNKNOWN), JANUS_OK);
    CHECK_EQ(janus_http_begin(http, 200, "a/b", 6), JANUS_STATE);
    CHECK_EQ(janus_http_answer(http, 200, NULL, "x", 1), JANUS_STATE);
    CHECK_EQ(janus_http_write(http, "one", 3), JANUS_OK);
    CHECK_EQ(janus_http_flush(http), JANUS_OK);
    if (cut) return -100;
    if (talk_is(request->path, "/short")) return 0;
    CHECK_EQ(janus_http_write(http, "", 0), JANUS_OK);
    CHECK_EQ(janus_http_write(http, "two", 3), JANUS_OK);
    if (known) CHECK_EQ(janus_http_write(http, "!", 1), JANUS_FULL);
    CHECK_EQ(janus_http_set_trailer(http, "X", "y"), known ? JANUS_STATE : JANUS_OK);
    CHECK_EQ(janus_http_set_trailer(http, "X", "y\r\nZ: 1"), known ? JANUS_STATE : JANUS_INVALID);
    if (!known) CHECK_EQ(janus_http_set_trailer(http, "Content-Type", "a"), JANUS_INVALID);
    return 0;
}

#define STREAM_HEAD "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n"

static void get_streams(struct talk *talk)
{
    CHECK_STR(
        talk_ask(talk, "GET /known HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
                       "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        STREAM_HEAD
        "Content-Length: 6\r\n\r\nonetwo" STREAM_HEAD
        "Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\nX: y\r\n\r\n" STREAM_HEAD
        "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    CHECK_STR(talk_ask(talk, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
              STREAM_HEAD "Connection: close\r\n\r\nonetwo");
    CHECK_STR(talk_ask(talk, "GET /cut HTTP/1.1\r\nHost: a\r\n\r\n"),
              STREAM_HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    CHECK_STR(talk_ask(talk, "GET /short HTTP/1.0\r\n\r\n"),
              STREAM_HEAD "Connection: close\r\n\r\none");
}

TEST("a stream has a length, chunks, or the end of the connection, and a cut stream shows")
{
    talk_run(&(struct talk){.handler = stream, .client = get_streams});
}

static int64_t write_much(janus_http *http, const janus_http_request *request)
{
    enum { PIECE = 30000 };
    char *piece = janus_alloc(PIECE);
    bool  whole = talk_is(request->path, "/whole");
    CHECK(piece != NULL);
    for (int i = 0; i < PIECE; i++) piece[i] = (char)('a' + i % 26);
    if (whole) return janus_http_answer(http, 200, NULL, piece, PIECE);
    CHECK_EQ(janus_http_begin(http, 200, NULL, JANUS_HTTP_UNKNOWN), JANUS_OK);
    for (int at = 0, size = 1; at < PIECE; at += size, size = size * 2 + 1) {
        if (size > PIECE - at) size = PIECE - at;
        CHECK_EQ(janus_http_write(http, piece + at, (size_t)size), JANUS_OK);
    }
    return 0;
}

static void read_much(struct talk *talk)
{
    for (int round = 0; round < 2; round++) {
        const char *text =
            talk_ask(talk, round == 0 ? "GET /whole HTTP/1.0\r\n\r\n" : "GET / HTTP/1.0\r\n\r\n");
        const char *body = strstr(text, "\r\n\r\n");
        CHECK(body != NULL && strlen(body + 4) == 30000);
        for (int i = 0; i < 30000; i++) CHECK(body[4 + i] == 'a' + i % 26);
    }
}

TEST("an answer longer than the buffers arrives whole")
{
    talk_run(&(struct talk){.handler = write_much, .client = read_much});
}

/* Reads a long body with little memory, and then with enough. */
static int64_t read_twice(janus_http *http, const janus_http_request *request)
{
    char  *body = NULL, *hog = NULL;
    size_t bytes = 0;
    (void)request;
    janus_memory_info info = JANUS_MEMORY_INFO();
    CHECK_EQ(janus_memory_inspect(&info), JANUS_OK);
    CHECK(info.left_bytes > 40000);
    /* What is left is too little for the body. */
    CHECK_EQ(janus_try_alloc(info.left_bytes - 20000, (void **)&hog), JANUS_OK);
    CHECK_EQ(janus_http_read_all(http, &body, &bytes), JANUS_BUDGET_EXHAUSTED);
    janus_free(hog);
    CHECK_EQ(janus_http_read_all(http, &body, &bytes), JANUS_BUDGET_EXHAUSTED);
    CHECK(body == NULL);
    return janus_http_answer(http, 200, NULL, "no", 2);
}

static void send_long(struct talk *talk)
{
    static char chunk[4096];
    janus_io    io = talk_open(talk);
    talk_put(io, CHUNKED "\r\n");
    memset(chunk, 'a', sizeof chunk);
    for (int i = 0; i < 8; i++) {
        talk_put(io, "1000\r\n");
        CHECK_EQ(janus_io_write(io, chunk, sizeof chunk, NULL), JANUS_OK);
        talk_put(io, "\r\n");
    }
    talk_put(io, "0\r\n\r\n");
    CHECK_STR(talk_rest(talk, io), OK_LAST("2", "no"));
}

TEST("a body whose beginning was lost for want of memory is never taken for a whole one")
{
    static const janus_budget each = {
        .ops = 10000000, .memory = 4000000, .spawn_count = 5, .channel_ops = 100, .syscalls = 5000};
    static const janus_budget most = {.ops = 100000000,
                                      .memory = 10000000,
                                      .spawn_count = 500,
                                      .channel_ops = 10000,
                                      .syscalls = 50000};
    talk_run(&(struct talk){.handler = read_twice,
                            .client = send_long,
                            .max_budget = &most,
                            .options = JANUS_HTTP_OPTIONS(.request_budget = &each)});
}

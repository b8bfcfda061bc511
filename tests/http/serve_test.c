/* SPDX-License-Identifier: MIT */
/* The server: whole answers, connections that stay, order, limits, what handlers may not do. */
#include "talk.h"

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, "text/plain", "Hello!", 6);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define LAST(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
#define HELLO "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nHello!"
#define HELLO_LAST                                                                                 \
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\nConnection: "             \
    "close\r\n\r\nHello!"

static void ask_once(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, LAST("/"));
    char   raw[256];
    size_t got = 0, have = 0;
    while (janus_io_read(io, raw + have, sizeof raw - have, &got) == JANUS_OK) have += got;
    CHECK(have > 60 && memcmp(raw, "HTTP/1.1 200 OK\r\nDate: ", 23) == 0);
    CHECK(memcmp(raw + 48, " GMT\r\n", 6) == 0);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    CHECK_STR(talk_ask(talk, LAST("/")), HELLO_LAST);
}

TEST("an answer has a status, a date, a type, a length and its bytes")
{
    talk_run(&(struct talk){.handler = greet, .client = ask_once});
}

static void ask_often(struct talk *talk)
{
    janus_io io = talk_open(talk);
    for (int i = 0; i < 100; i++) {
        talk_put(io, GET("/"));
        CHECK_STR(talk_until(talk, io, "Hello!"), HELLO);
    }
    talk_put(io, LAST("/"));
    CHECK_STR(talk_rest(talk, io), HELLO_LAST);
}

TEST("a connection stays for the next request, until the client asks to close it")
{
    talk_run(&(struct talk){.handler = greet, .client = ask_often});
}

static void ask_old(struct talk *talk)
{
    CHECK_STR(talk_ask(talk, "GET / HTTP/1.0\r\n\r\n"), HELLO_LAST);
    janus_io io = talk_open(talk);
    talk_put(io, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n");
    CHECK_STR(talk_rest(talk, io),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\nConnection: "
              "keep-alive\r\n\r\nHello!" HELLO_LAST);
}

TEST("a connection of HTTP/1.0 closes, unless the client asks to keep it")
{
    talk_run(&(struct talk){.handler = greet, .client = ask_old});
}

/* Answers with the path. */
static int64_t tell_path(janus_http *http, const janus_http_request *request)
{
    return janus_http_answer(http, 200, NULL, request->path.at, request->path.bytes);
}

static void ask_in_a_row(struct talk *talk)
{
    enum { COUNT = 300 };
    static char all[COUNT * 64], want[COUNT * 128];
    size_t      have = 0, wanted = 0;
    for (int i = 0; i < COUNT; i++) {
        const char *method = i % 5 == 3 ? "HEAD" : "GET";
        have += (size_t)snprintf(all + have, sizeof all - have,
                                 "%s /%d HTTP/1.1\r\nHost: a\r\n\r\n", method, i + 1000);
        wanted += (size_t)snprintf(want + wanted, sizeof want - wanted,
                                   "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        if (i % 5 != 3)
            wanted += (size_t)snprintf(want + wanted, sizeof want - wanted, "/%d", i + 1000);
    }
    (void)snprintf(all + have, sizeof all - have, "GET / HTTP/1.1\r\nHost : a\r\n\r\n" GET("/no"));
    (void)snprintf(want + wanted, sizeof want - wanted, "HTTP/1.1 400 Bad Request\r\n");
    const char *got = talk_ask(talk, all);
    CHECK(strncmp(got, want, strlen(want)) == 0);
    CHECK(strstr(got + strlen(want), "HTTP/1.1") == NULL);
    CHECK(strstr(got, "Connection: close\r\n\r\n") != NULL);
}

TEST("answers keep the order of requests that came together, and end at the first mistake")
{
    talk_run(&(struct talk){.handler = tell_path, .client = ask_in_a_row});
}

static void ask_together(struct talk *talk)
{
    janus_io io = talk_open(talk);
    size_t   got = 0;
    talk_put(io, GET("/a") GET("/b") GET("/c"));
    CHECK_EQ(janus_io_read(io, talk->text, TALK_BYTES, &got), JANUS_OK);
    CHECK(memcmp(talk->text + got - 2, "/c", 2) == 0);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("answers to requests that came together leave in one write")
{
    RIG_REAL("the simulated network cuts reads");
    talk_run(&(struct talk){.handler = tell_path, .client = ask_together});
}

static void ask_byte_by_byte(struct talk *talk)
{
    static const char request[] = LAST("/slow");
    janus_io          io = talk_open(talk);
    for (size_t i = 0; i < sizeof request - 1; i++) {
        CHECK_EQ(janus_io_write(io, request + i, 1, NULL), JANUS_OK);
        JANUS_IGNORE(janus_yield());
    }
    CHECK_STR(talk_rest(talk, io),
              "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n/slow");
}

TEST("a head may come byte by byte")
{
    talk_run(&(struct talk){.handler = tell_path, .client = ask_byte_by_byte});
}

static void ask_thrice(struct talk *talk)
{
    CHECK_STR(talk_ask(talk, GET("/") GET("/") GET("/")), HELLO HELLO_LAST);
}

TEST("a connection closes after the most requests it may have")
{
    talk_run(&(struct talk){
        .handler = greet, .client = ask_thrice, .options = JANUS_HTTP_OPTIONS(.max_requests = 2)});
}

static void ask_long(struct talk *talk)
{
    char request[1024];
    (void)snprintf(request, sizeof request, "GET /%0600d HTTP/1.1\r\nHost: a\r\n\r\n", 1);
    CHECK(strncmp(talk_ask(talk, request), "HTTP/1.1 414 URI Too Long\r\n", 27) == 0);
    (void)snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: a\r\nA: %0600d\r\n\r\n", 1);
    CHECK(strncmp(talk_ask(talk, request), "HTTP/1.1 431 ", 13) == 0);
    (void)snprintf(request, sizeof request,
                   "GET / HTTP/1.1\r\nHost: a\r\nA: %0400d\r\nB: %0400d\r\n\r\n", 1, 1);
    CHECK(strncmp(talk_ask(talk, request), "HTTP/1.1 431 ", 13) == 0);
    CHECK(strncmp(talk_ask(talk, "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\nB: c\r\nC: d\r\n\r\n"),
                  "HTTP/1.1 431 ", 13) == 0);
    CHECK_STR(talk_ask(talk, LAST("/")), HELLO_LAST);
}

TEST("a long line, a long head and many fields are refused with their statuses")
{
    talk_run(&(struct talk){.handler = greet,
                            .client = ask_long,
                            .options = JANUS_HTTP_OPTIONS(.max_line_bytes = 512,
                                                          .max_head_bytes = 768, .max_fields = 3)});
}

/* What a handler sees and may not do. */
static int64_t look(janus_http *http, const janus_http_request *request)
{
    janus_http_text name, value;
    janus_address   peer;
    char            text[64];
    size_t          bytes = 0;
    CHECK_EQ(request->method, JANUS_HTTP_METHOD_OTHER);
    CHECK(talk_is(request->method_text, "PURGE") && talk_is(request->path, "/a%20b"));
    CHECK(talk_is(request->query, "x=1&y=a+b%21&z") && talk_is(request->host, "h:80"));
    CHECK(request->minor == 1 && request->content_length == 0);
    CHECK_EQ(*(int *)request->argument, 42);
    CHECK_EQ(janus_http_field(http, "x-A", &value), JANUS_OK);
    CHECK(talk_is(value, "one"));
    CHECK_EQ(janus_http_field(http, "X-B", &value), JANUS_NOT_FOUND);
    CHECK_EQ(janus_http_field_at(http, 1, &name, &value), JANUS_OK);
    CHECK(talk_is(name, "X-A") && talk_is(value, "one"));
    CHECK_EQ(janus_http_field_at(http, 4, &name, &value), JANUS_NOT_FOUND);
    CHECK_EQ(janus_http_query(request, "y", &value), JANUS_OK);
    CHECK_EQ(janus_http_decode(value, true, text, sizeof text, &bytes), JANUS_OK);
    CHECK_STR(text, "a b!");
    CHECK_EQ(janus_http_decode(value, true, text, 4, &bytes), JANUS_FULL);
    CHECK_EQ(janus_http_query(request, "z", &value), JANUS_OK);
    CHECK_EQ(value.bytes, 0);
    CHECK_EQ(janus_http_query(request, "x=1", &value), JANUS_NOT_FOUND);
    CHECK_EQ(janus_http_peer(http, &peer), JANUS_OK);
    CHECK_EQ(peer.family, JANUS_FAMILY_IPV4);

    CHECK_EQ(janus_http_set_field(http, "X", "a\r\nB: c"), JANUS_INVALID);
    CHECK_EQ(janus_http_set_field(http, "X: a\r\nB", "c"), JANUS_INVALID);
    CHECK_EQ(janus_http_set_field(http, "X", "a\x01"), JANUS_INVALID);
    CHECK_EQ(janus_http_set_field(http, "Content-Length", "3"), JANUS_INVALID);
    CHECK_EQ(janus_http_set_field(http, "transfer-encoding", "chunked"), JANUS_INVALID);
    CHECK_EQ(janus_http_set_field(http, "CONNECTION", "close"), JANUS_INVALID);
    CHECK_EQ(janus_http_set_field(http, "Date", "today"), JANUS_INVALID);
    CHECK_EQ(janus_http_answer(http, 99, NULL, NULL, 0), JANUS_INVALID);
    CHECK_EQ(janus_http_answer(http, 200, "a\nb", NULL, 0), JANUS_INVALID);
    CHECK_EQ(janus_http_answer(http, 204, NULL, "x", 1), JANUS_INVALID);
    CHECK_EQ(janus_http_write(http, "x", 1), JANUS_STATE);
    CHECK_EQ(janus_http_set_field(http, "X-C", "fine"), JANUS_OK);
    CHECK_EQ(janus_http_answer(http, 418, NULL, "tea", 3), JANUS_OK);
    CHECK_EQ(janus_http_answer(http, 200, NULL, "two", 3), JANUS_STATE);
    CHECK_EQ(janus_http_set_field(http, "X-D", "late"), JANUS_STATE);
    return 0;
}

static void ask_strangely(struct talk *talk)
{
    CHECK_STR(talk_ask(talk, "PURGE /a%20b?x=1&y=a+b%21&z HTTP/1.1\r\nHost: h:80\r\nX-A: one\r\n"
                             "x-a: two\r\nConnection: close\r\n\r\n"),
              "HTTP/1.1 418 \r\nServer: test\r\nX-C: fine\r\nContent-Length: 3\r\nConnection: "
              "close\r\n\r\ntea");
}

TEST("a handler sees the request, and cannot break the framing of its answer")
{
    int number = 42;
    talk_run(&(struct talk){.handler = look,
                            .argument = &number,
                            .client = ask_strangely,
                            .options = JANUS_HTTP_OPTIONS(.server = "test")});
}

static int64_t say_nothing(janus_http *http, const janus_http_request *request)
{
    (void)http;
    return talk_is(request->path, "/bad") ? -7 : 0;
}

static void ask_for_nothing(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, GET("/") GET("/bad") GET("/"));
    CHECK_STR(talk_rest(talk, io),
              "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 500 Internal Server Error\r\nContent-Type: "
              "text/plain\r\nContent-Length: 36\r\nConnection: close\r\n\r\nthe handler of this "
              "request failed.\n");
}

TEST("a handler that answers nothing gives 204, or 500 if it fails")
{
    talk_run(&(struct talk){.handler = say_nothing, .client = ask_for_nothing});
}

TEST("wrong options are refused")
{
    janus_io none = {{0, 0}};
    CHECK(janus_http_serve(none, greet, NULL, NULL) != JANUS_OK);
    CHECK_EQ(janus_http_serve(none, NULL, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_http_serve(none, greet, NULL, JANUS_HTTP_OPTIONS(.max_head_bytes = 60000)),
             JANUS_INVALID);
    CHECK_EQ(janus_http_serve(none, greet, NULL, JANUS_HTTP_OPTIONS(.server = "a\nb")),
             JANUS_INVALID);
    CHECK_EQ(janus_http_serve(none, greet, NULL, JANUS_HTTP_OPTIONS(.struct_bytes = 12)),
             JANUS_INVALID);
}

static int64_t serve_pair(void *argument)
{
    janus_io *ends = argument;
    return janus_http_serve_one(ends[1], greet, NULL, NULL);
}

static int64_t talk_over_a_pair(void *argument)
{
    static struct talk talk;
    janus_io           ends[2];
    janus_status       status;
    (void)argument;
    CHECK_EQ(janus_io_pair(NULL, ends), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, serve_pair, ends), JANUS_OK);
        talk_put(ends[0], GET("/") LAST("/"));
        CHECK_STR(talk_rest(&talk, ends[0]), HELLO HELLO_LAST);
    }
    CHECK_EQ(status, JANUS_OK);
    return 0;
}

TEST("one connection of any kind can be served alone") { rig_run(2, talk_over_a_pair, NULL, 1); }

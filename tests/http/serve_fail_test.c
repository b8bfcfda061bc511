/* SPDX-License-Identifier: MIT */
/* Requests that fail: the server reports each, with its reason. */
#include "talk.h"

#include <fcntl.h>
#include <janusrt/memory.h>
#include <janusrt/websocket.h>
#include <sys/mman.h>
#include <unistd.h>

#define ASK(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

/* Fails as the path says. */
static int64_t fail(janus_http *http, const janus_http_request *request)
{
    if (talk_is(request->path, "/ours")) return -100;
    if (talk_is(request->path, "/theirs")) return JANUS_NOT_FOUND;
    if (talk_is(request->path, "/panic")) janus_panic("on purpose");
    if (talk_is(request->path, "/socket")) {
        janus_websocket *socket;
        CHECK_EQ(janus_websocket_accept(http, NULL, &socket), JANUS_OK);
        for (;;) janus_check_or_end(1);
    }
    if (talk_is(request->path, "/loop")) {
        for (;;) janus_check_or_end(1);
    }
    if (talk_is(request->path, "/late")) return janus_sleep(3600 * JANUS_SECONDS);
    if (talk_is(request->path, "/cut")) {
        CHECK_EQ(janus_http_begin(http, 200, NULL, JANUS_HTTP_UNKNOWN), JANUS_OK);
        CHECK_EQ(janus_http_write(http, "half", 4), JANUS_OK);
        return -101;
    }
    if (talk_is(request->path, "/short")) {
        CHECK_EQ(janus_http_begin(http, 200, NULL, 9), JANUS_OK);
        return janus_http_write(http, "half", 4);
    }
    if (talk_is(request->path, "/body")) {
        char        *body;
        size_t       bytes;
        janus_status status = janus_http_read_all(http, &body, &bytes);
        if (status != JANUS_OK) return status;
    }
    return janus_http_answer(http, 200, NULL, "fine", 4);
}

static char told[8192];

static void on_failure(void *argument, const janus_http_failure *failure)
{
    CHECK_STR(argument, "mine");
    CHECK(strstr(failure->text, failure->reason) != NULL);
    CHECK(strstr(failure->text, failure->target) != NULL);
    CHECK(strncmp(failure->peer, "127.0.0.1:", 10) == 0);
    CHECK(failure->task != 0);
    size_t have = strlen(told);
    (void)snprintf(told + have, sizeof told - have, "%s %s %u%s: %s\n", failure->method,
                   failure->target, failure->status, failure->cut ? " cut" : "", failure->reason);
}

static void drop(struct talk *talk, const char *request)
{
    size_t   got;
    janus_io io = talk_open(talk);
    talk_put(io, request);
    while (janus_io_read(io, talk->text, TALK_BYTES, &got) == JANUS_OK) {
    }
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

static void ask_for_failures(struct talk *talk)
{
    static const char *const all[] = {ASK("/ours?a%20b"), ASK("/theirs"), ASK("/panic"),
                                      ASK("/loop"),       ASK("/late"),   ASK("/cut"),
                                      ASK("/short"),      ASK("/fine")};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) drop(talk, all[i]);
    drop(talk, "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    drop(talk, "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n");
}

static void fail_with(janus_http_options options, char *log)
{
    static const janus_budget each = {
        .ops = 100000, .memory = 1 << 20, .spawn_count = 5, .channel_ops = 100, .syscalls = 300};
    options.struct_bytes = sizeof options;
    options.request_budget = &each;
    options.handler_ns = 3 * JANUS_SECONDS;
    options.max_body_bytes = 1000;
    talk_run(&(struct talk){
        .handler = fail, .client = ask_for_failures, .options = &options, .seed = 7, .log = log});
}

TEST("the server reports each request that fails, with its reason and the limit to raise, and no "
     "other")
{
    told[0] = '\0';
    fail_with((janus_http_options){.on_failure = on_failure,
                                   .on_failure_argument = (void *)(uintptr_t)"mine"},
              NULL);
    const char *loop = strstr(told, "GET /loop 500: it used up its budget of ops: ");
    CHECK(loop != NULL && strstr(loop, "Raise ops in janus_http_options.request_budget") != NULL);
    CHECK(strstr(told, "GET /socket 101: it used up its budget of ops: ") != NULL);
    CHECK(strstr(told, "GET /ours?a%20b 500: its handler returned -100\n") != NULL);
    CHECK(strstr(told, "GET /theirs 500: its handler returned JANUS_NOT_FOUND: ") != NULL);
    CHECK(strstr(told, "GET /panic 500: its handler panicked: ") != NULL);
    CHECK(strstr(told, "on purpose") != NULL);
    CHECK(strstr(told, "GET /late 503: it took longer than handler_ns, which is 3000 ms") != NULL);
    CHECK(strstr(told, "GET /cut 200 cut: its handler returned -101\n") != NULL);
    CHECK(strstr(told, "GET /short 200 cut: its handler wrote 4 of the 9 bytes it ") != NULL);
    CHECK(strstr(told, "/fine") == NULL && strstr(told, "/body") == NULL);
}

TEST("the line of a request that failed in the log says why in a word, and whether it was cut")
{
    char log[TALK_LOG_BYTES];
    fail_with((janus_http_options){.quiet_failures = true}, log);
    static const char *const ends[][2] = {
        {"/ours", " returned -100\n"}, {"/theirs", " returned -20\n"},
        {"/panic", " panicked\n"},     {"/loop", " ops\n"},
        {"/late", " late\n"},          {"/cut", " returned -101 cut\n"},
        {"/short", " short cut\n"}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const char *line = strstr(log, ends[i][0]), *end = strchr(line, '\n') + 1;
        size_t      bytes = strlen(ends[i][1]);
        CHECK(memcmp(end - bytes, ends[i][1], bytes) == 0);
    }
}

/* What is written to stderr meanwhile. */
static size_t catch_stderr(void (*run)(void), char *text, size_t room)
{
    int saved = dup(2), file = memfd_create("stderr", 0);
    CHECK(saved >= 0 && file >= 0 && dup2(file, 2) == 2);
    run();
    CHECK(dup2(saved, 2) == 2);
    ssize_t got = pread(file, text, room - 1, 0);
    CHECK(got >= 0);
    text[got] = '\0';
    CHECK_EQ(close(saved), 0);
    CHECK_EQ(close(file), 0);
    return (size_t)got;
}

static void fail_often(struct talk *talk)
{
    for (int i = 0; i < 50; i++) drop(talk, ASK("/ours"));
    CHECK_EQ(janus_sleep(2 * JANUS_SECONDS), JANUS_OK);
    drop(talk, ASK("/ours"));
}

static bool quiet;

static void run_often(void)
{
    talk_run(&(struct talk){.handler = fail,
                            .client = fail_often,
                            .options = JANUS_HTTP_OPTIONS(.quiet_failures = quiet),
                            .seed = 7});
}

TEST("stderr gets at most 20 lines a second, and then how many were left out, or nothing")
{
    static char text[65536];
    quiet = false;
    (void)catch_stderr(run_often, text, sizeof text);
    size_t lines = 0;
    for (const char *at = text; (at = strstr(at, "GET /ours from 127.0.0.1:")) != NULL; at++) {
        CHECK(strstr(at, " failed (500): its handler returned -100\n") != NULL);
        lines++;
    }
    CHECK(lines >= 2 && lines < 50);
    CHECK(strstr(text, " failed requests are not shown: the limit is 20 lines a second\n") != NULL);
    quiet = true;
    CHECK_EQ(catch_stderr(run_often, text, sizeof text), 0);
}

static int64_t fill_up(janus_http *http, const janus_http_request *request)
{
    (void)request;
    CHECK_EQ(janus_http_set_field(http, "content-type", "a/b"), JANUS_OK);
    CHECK_EQ(janus_http_set_field(http, "Server", "mine"), JANUS_OK);
    CHECK_EQ(janus_http_set_field(http, "CACHE-CONTROL", "max-age=1"), JANUS_OK);
    if (talk_is(request->path, "/event")) return janus_http_event(http, NULL, NULL, "x");
    return janus_http_answer_text(http, 200, "x");
}

static size_t count(const char *text, const char *what)
{
    size_t found = 0;
    for (; (text = strcasestr(text, what)) != NULL; text++) found++;
    return found;
}

static void count_fields(struct talk *talk)
{
    static const char *const paths[] = {ASK("/text"), ASK("/event")};
    for (int i = 0; i < 2; i++) {
        const char *text = talk_ask(talk, paths[i]);
        CHECK(strstr(text, "content-type: a/b\r\n") != NULL && count(text, "content-type:") == 1);
        CHECK(strstr(text, "Server: mine\r\n") != NULL && count(text, "server:") == 1);
        CHECK(strstr(text, "max-age=1\r\n") != NULL && count(text, "cache-control:") == 1);
    }
}

TEST("a field that the handler has set replaces the library's field of that name")
{
    talk_run(&(struct talk){.handler = fill_up,
                            .client = count_fields,
                            .options = JANUS_HTTP_OPTIONS(.server = "theirs")});
}

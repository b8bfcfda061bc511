/* SPDX-License-Identifier: MIT */
/* The access log: each request has a line, or is counted among those that were dropped. */
#include "talk.h"

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define LAST "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

struct logged {
    struct talk              *talk;
    janus_io                  ends[2];  /* the server writes to the second */
    const janus_http_options *options;  /* without the log */
    uint64_t                  pause_ns; /* before the log is read */
    unsigned                  requests, lines, dropped;
    char                      rest[512]; /* a line that has not ended */
};

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, NULL, "Hello!", 6);
}

static int64_t serve_logged(void *argument)
{
    struct logged     *logged = argument;
    janus_http_options options = *logged->options;
    options.log = logged->ends[1];
    logged->talk->served = janus_http_serve(logged->talk->listener, greet, NULL, &options);
    CHECK_EQ(janus_io_close(logged->ends[1]), JANUS_OK);
    return 0;
}

/* Counts the lines. */
static int64_t read_log(void *argument)
{
    struct logged *logged = argument;
    size_t         have = 0, got = 0;
    CHECK_EQ(janus_sleep(logged->pause_ns), JANUS_OK);
    while (janus_io_read(logged->ends[0], logged->rest + have, 1, &got) == JANUS_OK) {
        CHECK(have < sizeof logged->rest - 1);
        if (logged->rest[have++] != '\n') continue;
        logged->rest[have] = '\0';
        unsigned dropped = 0;
        if (strstr(logged->rest, "dropped") != NULL) {
            CHECK_EQ(sscanf(logged->rest, "%u lines were dropped\n", &dropped), 1);
            logged->dropped += dropped;
        } else {
            CHECK(strstr(logged->rest, " GET / 200 6 ") != NULL);
            logged->lines++;
        }
        have = 0;
    }
    CHECK_EQ(have, 0);
    return 0;
}

static int64_t run_logged(void *argument)
{
    struct logged *logged = argument;
    struct talk   *talk = logged->talk;
    janus_status   status;
    CHECK_EQ(janus_io_pair(NULL, logged->ends), JANUS_OK);
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &talk->at), JANUS_OK);
    CHECK_EQ(janus_listen(&talk->at, NULL, &talk->listener), JANUS_OK);
    CHECK_EQ(janus_io_local(talk->listener, &talk->at), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, serve_logged, logged), JANUS_OK);
        CHECK_EQ(janus_spawn(n, read_log, logged), JANUS_OK);
        janus_io io = talk_open(talk);
        for (unsigned i = 1; i < logged->requests; i++) {
            talk_put(io, GET);
            CHECK(strstr(talk_until(talk, io, "Hello!"), "close") == NULL);
        }
        talk_put(io, LAST);
        CHECK(strstr(talk_rest(talk, io), "Hello!") != NULL);
        CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(talk->served, JANUS_OK);
    CHECK_EQ(logged->lines + logged->dropped, logged->requests);
    CHECK_EQ(janus_io_close(logged->ends[0]), JANUS_OK);
    return 0;
}

TEST("a line of the log costs the request none of its channel operations")
{
    static const janus_budget none = {
        .ops = 100000, .memory = 1 << 20, .spawn_count = 50, .channel_ops = 0, .syscalls = 500};
    struct talk   talk = {0};
    struct logged logged = {
        .talk = &talk, .options = JANUS_HTTP_OPTIONS(.request_budget = &none), .requests = 5};
    rig_run(2, run_logged, &logged, 1);
    CHECK_EQ(logged.lines, 5);
}

TEST("each request has a line in the log, or is counted with those that were dropped")
{
    struct talk   talk = {0};
    struct logged logged = {
        .talk = &talk, .options = JANUS_HTTP_OPTIONS(.log_lines = 1), .requests = 200};
    rig_run(2, run_logged, &logged, 1);
    CHECK(logged.lines > 0);
}

/* Two connections, one after the other, which use the same block of the server. */

struct peers {
    struct talk *talk;
    janus_io     ends[2];
    char         text[1024];
};

static int64_t serve_peers(void *argument)
{
    struct peers *peers = argument;
    peers->talk->served = janus_http_serve(peers->talk->listener, greet, NULL,
                                           JANUS_HTTP_OPTIONS(.log = peers->ends[1]));
    CHECK_EQ(janus_io_close(peers->ends[1]), JANUS_OK);
    return 0;
}

static void visit(struct talk *talk, char name[JANUS_ADDRESS_TEXT_BYTES])
{
    janus_address own;
    janus_io      io = talk_open(talk);
    CHECK_EQ(janus_io_local(io, &own), JANUS_OK);
    (void)janus_address_text(&own, name, JANUS_ADDRESS_TEXT_BYTES);
    talk_put(io, LAST);
    CHECK(strstr(talk_rest(talk, io), "Hello!") != NULL);
}

static int64_t visit_twice(void *argument)
{
    struct peers *peers = argument;
    struct talk  *talk = peers->talk;
    char          names[2][JANUS_ADDRESS_TEXT_BYTES];
    size_t        have = 0, got = 0;
    janus_status  status;
    CHECK_EQ(janus_io_pair(NULL, peers->ends), JANUS_OK);
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &talk->at), JANUS_OK);
    CHECK_EQ(janus_listen(&talk->at, NULL, &talk->listener), JANUS_OK);
    CHECK_EQ(janus_io_local(talk->listener, &talk->at), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, serve_peers, peers), JANUS_OK);
        for (int i = 0; i < 2; i++) visit(talk, names[i]);
        CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    while (janus_io_read(peers->ends[0], peers->text + have, sizeof peers->text - 1 - have, &got) ==
           JANUS_OK) {
        have += got;
    }
    for (int i = 0; i < 2; i++) CHECK(strstr(peers->text, names[i]) != NULL);
    CHECK_EQ(janus_io_close(peers->ends[0]), JANUS_OK);
    return 0;
}

TEST("a line names the client of its own connection")
{
    struct talk  talk = {0};
    struct peers peers = {.talk = &talk};
    rig_run(1, visit_twice, &peers, 1);
}

/* Writes until the budget of the request ends it, in the middle of a write. */
static int64_t flood(janus_http *http, const janus_http_request *request)
{
    static char part[8000];
    if (!talk_is(request->path, "/flood")) return greet(http, request);
    janus_status status = janus_http_begin(http, 200, NULL, JANUS_HTTP_UNKNOWN);
    while (status == JANUS_OK) status = janus_http_write(http, part, sizeof part);
    return status;
}

static void drink(struct talk *talk)
{
    size_t   got;
    janus_io io = talk_open(talk);
    talk_put(io, "GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
    while (janus_io_read(io, talk->text, TALK_BYTES, &got) == JANUS_OK) {
    }
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    CHECK(strstr(talk_ask(talk, LAST), "Hello!") != NULL);
}

TEST("a request that is cut off in the middle of a write has a line in the log")
{
    static const janus_budget each = {
        .ops = 500000, .memory = 1 << 20, .spawn_count = 5, .channel_ops = 100, .syscalls = 300};
    static const janus_budget most = {.ops = 100000000,
                                      .memory = 10000000,
                                      .spawn_count = 500,
                                      .channel_ops = 10000,
                                      .syscalls = 50000};
    char                      log[TALK_LOG_BYTES];
    talk_run(&(struct talk){.handler = flood,
                            .client = drink,
                            .max_budget = &most,
                            .options = JANUS_HTTP_OPTIONS(.request_budget = &each),
                            .log = log});
    CHECK(strstr(log, " GET /flood 200 ") != NULL);
    CHECK(strstr(log, " GET / 200 6 ") != NULL);
}

static void ask_once(struct talk *talk) { CHECK(strstr(talk_ask(talk, LAST), "Hello!") != NULL); }

TEST("in a simulated run a log to the standard output is left out, and the server runs")
{
    talk_run(&(struct talk){.handler = greet,
                            .client = ask_once,
                            .options = JANUS_HTTP_OPTIONS(.logs = true),
                            .seed = 7});
}

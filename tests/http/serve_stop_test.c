/* SPDX-License-Identifier: MIT */
/* The graceful stop: by closing the listener, by a signal, after its grace. */
#include "talk.h"

#include <janusrt/signal.h>
#include <janusrt/sync.h>
#include <signal.h>

static atomic_int begun, go;

static int64_t wait_for_go(janus_http *http, const janus_http_request *request)
{
    if (talk_is(request->path, "/wait")) {
        atomic_store(&begun, 1);
        if (!rig_wait(&go)) return -100;
    }
    if (talk_is(request->path, "/ever")) {
        atomic_store(&begun, 1);
        return janus_sleep(3600 * JANUS_SECONDS);
    }
    return janus_http_answer(http, 200, NULL, "done", 4);
}

/* Whether a text, which may be cut off, has this beginning. */
static bool begins_like(const char *text, const char *beginning)
{
    size_t bytes = strlen(text), all = strlen(beginning);
    return strncmp(text, beginning, bytes < all ? bytes : all) == 0;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void stop_in_the_middle(struct talk *talk)
{
    janus_io idle = talk_open(talk), used = talk_open(talk), busy = talk_open(talk), late;
    atomic_store(&begun, 0);
    atomic_store(&go, 0);
    talk_put(used, GET("/"));
    CHECK(strstr(talk_until(talk, used, "done"), "200") != NULL);
    talk_put(busy, GET("/wait"));
    CHECK(rig_wait(&begun));
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    CHECK_STR(talk_rest(talk, used), ""); /* idle ones are closed while a request runs */
    CHECK_STR(talk_rest(talk, idle), "");
    CHECK_EQ(janus_connect(&talk->at, NULL, &late), JANUS_REFUSED);
    atomic_store(&go, 1);
    CHECK_STR(talk_rest(talk, busy),
              "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone");
}

TEST("a stop closes idle connections and finishes requests")
{
    talk_run(&(struct talk){.handler = wait_for_go, .client = stop_in_the_middle});
}

static void stop_and_ask(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, GET("/"));
    CHECK(strstr(talk_until(talk, io, "done"), "keep") == NULL);
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    talk_put(io, GET("/")); /* it was on its way: it is answered */
    CHECK_STR(talk_rest(talk, io),
              "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone");
}

TEST("a request that arrives soon after the stop is answered")
{
    talk_run(&(struct talk){.handler = wait_for_go, .client = stop_and_ask, .seed = 3});
}

static void outlast_the_grace(struct talk *talk)
{
    janus_io io = talk_open(talk);
    uint64_t start;
    atomic_store(&begun, 0);
    talk_put(io, GET("/ever"));
    CHECK(rig_wait(&begun));
    start = janus_now_ns();
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    const char *text = talk_rest(talk, io);
    CHECK(begins_like(text, "HTTP/1.1 503 ")); /* a cancel may cut it off */
    CHECK(janus_now_ns() - start >= 5 * JANUS_SECONDS);
    CHECK(janus_now_ns() - start < 6 * JANUS_SECONDS);
}

TEST("a request that outlasts the grace is cancelled")
{
    talk_run(&(struct talk){.handler = wait_for_go,
                            .client = outlast_the_grace,
                            .options = JANUS_HTTP_OPTIONS(.grace_ns = 5 * JANUS_SECONDS),
                            .seed = 7});
}

static void stop_by_signal(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, GET("/"));
    CHECK(strstr(talk_until(talk, io, "done"), "200") != NULL);
    CHECK_EQ(janus_signal_raise(SIGTERM), JANUS_OK);
    CHECK_STR(talk_rest(talk, io), "");
}

TEST("SIGTERM stops the server")
{
    talk_run(&(struct talk){.handler = wait_for_go,
                            .client = stop_by_signal,
                            .options = JANUS_HTTP_OPTIONS(.stop_on_signals = true)});
}

TEST("a server that has answered a request gets SIGTERM, which does not end the process")
{
    for (uint32_t i = 0; i < 40; i++) {
        talk_run(&(struct talk){.handler = wait_for_go,
                                .client = stop_by_signal,
                                .workers = 1 + i % 4,
                                .options = JANUS_HTTP_OPTIONS(.stop_on_signals = true)});
    }
}

enum { GUESTS = 12 };

static void come_together(struct talk *talk)
{
    janus_io guests[GUESTS];
    for (int i = 0; i < GUESTS; i++) {
        guests[i] = talk_open(talk);
        talk_put(guests[i], "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    }
    for (int i = 0; i < GUESTS; i++) CHECK(strstr(talk_rest(talk, guests[i]), "done") != NULL);
}

TEST("connections above the limit wait for their turn")
{
    talk_run(&(struct talk){.handler = wait_for_go,
                            .client = come_together,
                            .options = JANUS_HTTP_OPTIONS(.max_connections = 3)});
}

static int64_t cancel_all(void *argument)
{
    struct talk *talk = argument;
    janus_status status;
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &talk->at), JANUS_OK);
    CHECK_EQ(janus_listen(&talk->at, NULL, &talk->listener), JANUS_OK);
    CHECK_EQ(janus_io_local(talk->listener, &talk->at), JANUS_OK);
    atomic_store(&begun, 0);
    JANUS_NURSERY(n, status, .owner_apart = true)
    {
        CHECK_EQ(janus_spawn(n, talk_serve, talk), JANUS_OK);
        janus_io io = talk_open(talk), other = talk_open(talk);
        talk_put(io, GET("/ever"));
        CHECK(rig_wait(&begun));
        CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
        char        byte;
        size_t      got;
        const char *text = talk_rest(talk, io);
        CHECK(begins_like(text, "HTTP/1.1 503 ")); /* a cancel may cut it off */
        CHECK(janus_io_read(other, &byte, 1, &got) != JANUS_OK);
        CHECK_EQ(janus_io_close(other), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK_EQ(talk->served, JANUS_CANCELLED);
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    return 0;
}

TEST("a cancel ends the server and its connections at once")
{
    static struct talk talk = {.handler = wait_for_go};
    rig_run(2, cancel_all, &talk, 1);
}

/* Clients that ask without a pause, until an answer says that it is the last. */
enum { CROWD = 20 };

struct crowd {
    const struct talk *talk;
    atomic_int         answers, last;
};

static int64_t keep_asking(void *argument)
{
    struct crowd *crowd = argument;
    janus_io      io = talk_open(crowd->talk);
    char          text[512];
    for (;;) {
        size_t have = 0, got = 0;
        talk_put(io, GET("/"));
        do {
            CHECK_EQ(janus_io_read(io, text + have, sizeof text - 1 - have, &got), JANUS_OK);
            have += got;
            text[have] = '\0';
        } while (strstr(text, "\r\n\r\ndone") == NULL);
        atomic_fetch_add(&crowd->answers, 1);
        if (strstr(text, "Connection: close") != NULL) break;
    }
    atomic_fetch_add(&crowd->last, 1);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    return 0;
}

static void stop_under_load(struct talk *talk)
{
    struct crowd crowd = {.talk = talk};
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(n, keep_asking, &crowd), JANUS_OK);
        while (atomic_load(&crowd.answers) < 50 * CROWD) JANUS_IGNORE(janus_yield());
        CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(atomic_load(&crowd.last), CROWD);
}

TEST("a stop under load fails no request: each client gets an answer that is the last")
{
    talk_run(&(struct talk){
        .handler = wait_for_go,
        .client = stop_under_load,
        .seed = 5, /* a real machine may stop a client for longer than the server waits */
        .options = JANUS_HTTP_OPTIONS(.max_requests = UINT32_MAX)});
}

/* Streams of events. */

static int64_t send_events(janus_http *http, const janus_http_request *request)
{
    janus_status status = JANUS_OK;
    (void)request;
    while (status == JANUS_OK) {
        status = janus_http_event(http, NULL, NULL, "tick");
        if (status == JANUS_OK) status = janus_sleep(10 * JANUS_SECONDS);
    }
    return status;
}

static const char *const events_asks[] = {"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                                          "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                                          "GET / HTTP/1.0\r\n\r\n"};

static void stop_events(struct talk *talk)
{
    janus_io ends[3];
    for (int i = 0; i < 3; i++) {
        ends[i] = talk_open(talk);
        talk_put(ends[i], events_asks[i]);
    }
    CHECK_EQ(janus_sleep(3500 * JANUS_MS), JANUS_OK);
    uint64_t from = janus_now_ns();
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        const char *text = talk_rest(talk, ends[i]), *last = strstr(text, "0\r\n\r\n");
        CHECK(strstr(text, "data: tick\n\n") != NULL);
        CHECK((last != NULL && last[5] == '\0') == (i < 2)); /* HTTP/1.0 has no chunks */
    }
    CHECK(janus_now_ns() - from < JANUS_SECONDS);
}

static void run_events(uint64_t seed, const janus_budget *each)
{
    static const janus_budget most = {.ops = 100000000,
                                      .memory = 10000000,
                                      .spawn_count = 500,
                                      .channel_ops = 10000,
                                      .syscalls = 50000};
    char                      log[TALK_LOG_BYTES];
    talk_run(&(struct talk){.handler = send_events,
                            .client = stop_events,
                            .max_budget = &most,
                            .options = JANUS_HTTP_OPTIONS(.request_budget = each),
                            .seed = seed,
                            .log = log});
    CHECK(strstr(log, "stopped") == NULL && strstr(log, "cut") == NULL);
}

TEST("a stop ends streams of events at once, and they end whole")
{
    static const janus_budget each = {
        .ops = 1000000, .memory = 1 << 20, .spawn_count = 5, .channel_ops = 100, .syscalls = 5000};
    for (uint64_t seed = 1; seed <= 5; seed++) run_events(seed, seed % 2 != 0 ? &each : NULL);
}

/* Uses up four fifths of what a request may use, before each of four events. */
static int64_t work_for_events(janus_http *http, const janus_http_request *request)
{
    janus_status status = JANUS_OK;
    (void)request;
    for (int i = 0; i < 4 && status == JANUS_OK; i++) {
        for (int j = 0; j < 4000 && status == JANUS_OK; j++) status = janus_check_n(10000);
        if (status == JANUS_OK) status = janus_http_event(http, NULL, NULL, "tick");
    }
    return status;
}

static void read_events(struct talk *talk)
{
    const char *text = talk_ask(talk, events_asks[1]);
    size_t      ticks = 0;
    for (; (text = strstr(text, "data: tick\n\n")) != NULL; text++) ticks++;
    CHECK_EQ(ticks, 4);
}

TEST("without a budget for requests, each event may use as much as a request")
{
    talk_run(&(struct talk){.handler = work_for_events, .client = read_events});
}

/* SPDX-License-Identifier: MIT */
/*
 * A server with all that it has, explored. It gets requests that are kept, pipelined, slow and
 * endless, WebSocket, and calls of a client. It writes a log. Connections go cold and warm. It is
 * stopped in three ways and at several moments, with all faults.
 *
 * More schedules: SCHEDULES=100000 build/gcc-release/tests/http/explore_stop_test
 */
#include "harness.h"
#include "part.h"

#include <janusrt/explore.h>
#include <janusrt/http.h>
#include <janusrt/http_client.h>
#include <janusrt/janus.h>
#include <janusrt/memory.h>
#include <janusrt/signal.h>
#include <janusrt/websocket.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 3, REQUESTS = 4 };
enum way { BY_CLOSE, BY_SIGNAL, BY_CANCEL };

static const uint64_t moments[] = {0, JANUS_MS, 500 * JANUS_MS, 2600 * JANUS_MS};

/* What one exploration does. */
static struct plan {
    enum way way;
    uint64_t moment;
    bool     faulty;
} plan;

struct world {
    janus_io           listener, log[2];
    janus_address      at;
    janus_http_client *client;
    janus_nursery     *serving;
    janus_status       served;
    uint64_t           stopped_ns, ended_ns;
    int                inside; /* handlers that have not returned */
};

#define GRACE_NS (5 * JANUS_SECONDS)

static int64_t echo_messages(janus_http *http)
{
    janus_websocket        *socket = NULL;
    janus_websocket_message message;
    janus_status            status = janus_websocket_accept(http, NULL, &socket);
    if (status != JANUS_OK) return status;
    while ((status = janus_websocket_read(socket, &message)) == JANUS_OK) {
        status = janus_websocket_send(socket, message.kind, message.bytes, message.count);
        janus_free(message.bytes);
        if (status != JANUS_OK) break;
    }
    janus_websocket_destroy(socket);
    return 0;
}

/* Answers with the path. Its first letter says what else. */
static int64_t answer(janus_http *http, const janus_http_request *request)
{
    char kind = request->path.bytes > 1 ? request->path.at[1] : 'a';
    if (kind == 'w') return echo_messages(http);
    if (kind == 's' && janus_sleep(JANUS_SECONDS) != JANUS_OK) return JANUS_CANCELLED;
    if (kind == 'e') return janus_sleep(36000 * JANUS_SECONDS);
    if (kind == 'l' && janus_alloc(100) == NULL) return -100; /* left behind */
    return janus_http_answer(http, 200, NULL, request->path.at, request->path.bytes);
}

static int64_t serve(void *argument)
{
    struct world *world = argument;
    world->served = janus_http_serve(world->listener, answer, NULL,
                                     JANUS_HTTP_OPTIONS(.grace_ns = GRACE_NS, .log = world->log[1],
                                                        .log_lines = 2, .max_connections = 3,
                                                        .stop_on_signals = plan.way == BY_SIGNAL));
    world->ended_ns = janus_now_ns();
    JANUS_IGNORE(janus_io_close(world->listener)); /* after a fault nobody did */
    JANUS_IGNORE(janus_io_close(world->log[1]));
    return 0;
}

/* A log that is slow at first. */
static int64_t read_log(void *argument)
{
    struct world *world = argument;
    char          text[64];
    size_t        got = 0;
    JANUS_IGNORE(janus_sleep(JANUS_SECONDS));
    while (janus_io_read(world->log[0], text, sizeof text, &got) == JANUS_OK) {
    }
    JANUS_IGNORE(janus_io_close(world->log[0]));
    return 0;
}

/* The bodies that came are those of the first requests, in their order. */
static int count_answers(const char *text)
{
    int         count = 0;
    const char *at = text;
    while ((at = strstr(at, "\r\n\r\n/")) != NULL) {
        if (at[5] == '\0' || at[6] == '\0') break; /* it is cut off */
        JANUS_EXPECT(at[6] == '0' + count);
        at += 6;
        count++;
    }
    return count;
}

/* Asks with pauses, so that the connection goes cold and warm again. */
static int64_t ask(void *argument)
{
    static const char *const kinds = "alsa";
    struct world            *world = argument;
    char                     text[2048], request[64];
    size_t                   have = 0, got = 0;
    janus_io                 io;
    int                      sent = 0, answered = 0;
    janus_status             status = janus_connect(&world->at, NULL, &io);
    if (status != JANUS_OK) return 0;
    JANUS_IGNORE(janus_io_set_deadline(io, JANUS_IO_BOTH, janus_now_ns() + 200 * JANUS_SECONDS));
    text[0] = '\0';
    while (status == JANUS_OK && answered < REQUESTS) {
        while (status == JANUS_OK && sent < REQUESTS && sent < answered + 2) { /* two at a time */
            int bytes = snprintf(request, sizeof request, "GET /%c%d HTTP/1.1\r\nHost: a\r\n\r\n",
                                 kinds[sent], sent);
            status = janus_io_write(io, request, (size_t)bytes, NULL);
            sent += status == JANUS_OK;
        }
        if (status == JANUS_OK) {
            status = janus_io_read(io, text + have, sizeof text - 1 - have, &got);
            have += got;
            text[have] = '\0';
        }
        int before = answered;
        answered = count_answers(text);
        if (answered == 2 && before < 2) JANUS_IGNORE(janus_sleep(3 * JANUS_SECONDS));
    }
    JANUS_EXPECT(answered <= sent);
    JANUS_EXPECT(janus_io_close(io) == JANUS_OK);
    return 0;
}

static int64_t wait_for_ever(void *argument)
{
    static const char request[] = "GET /e HTTP/1.1\r\nHost: a\r\n\r\n";
    struct world     *world = argument;
    char              text[256];
    size_t            got = 0;
    janus_io          io;
    if (janus_connect(&world->at, NULL, &io) != JANUS_OK) return 0;
    JANUS_IGNORE(janus_io_set_deadline(io, JANUS_IO_BOTH, janus_now_ns() + 200 * JANUS_SECONDS));
    if (janus_io_write(io, request, sizeof request - 1, NULL) == JANUS_OK) {
        while (janus_io_read(io, text, sizeof text, &got) == JANUS_OK) {
        }
    }
    JANUS_EXPECT(janus_io_close(io) == JANUS_OK);
    return 0;
}

/* Calls, then speaks until the server stops. */
static int64_t call(void *argument)
{
    struct world           *world = argument;
    char                    url[64];
    janus_http_reply       *reply = NULL;
    janus_websocket        *socket = NULL;
    janus_websocket_message message;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/a0", (unsigned)world->at.port);
    for (int i = 0; i < 2; i++) {
        if (janus_http_call(world->client, "GET", url, NULL, &reply) != JANUS_OK) continue;
        janus_http_reply_destroy(reply);
    }
    snprintf(url, sizeof url, "ws://127.0.0.1:%u/w", (unsigned)world->at.port);
    if (janus_websocket_connect(world->client, url, NULL, &socket) != JANUS_OK) return 0;
    if (janus_websocket_send(socket, JANUS_WEBSOCKET_KIND_TEXT, "hi", 2) == JANUS_OK) {
        while (janus_websocket_read(socket, &message) == JANUS_OK) {
            JANUS_EXPECT(message.count == 2 && memcmp(message.bytes, "hi", 2) == 0);
            janus_free(message.bytes);
        }
    }
    janus_websocket_destroy(socket);
    return 0;
}

static void stop(struct world *world)
{
    if (plan.moment > 0) JANUS_IGNORE(janus_sleep(plan.moment));
    world->stopped_ns = janus_now_ns();
    if (plan.way == BY_CANCEL) JANUS_IGNORE(janus_nursery_cancel(world->serving));
    if (plan.way == BY_CLOSE) JANUS_IGNORE(janus_io_close(world->listener));
    /* A signal may come before the server has begun. */
    for (int i = 0; plan.way == BY_SIGNAL && i < 60 && world->ended_ns == 0; i++) {
        JANUS_IGNORE(janus_signal_raise(i % 2 == 0 ? SIGTERM : SIGINT));
        JANUS_IGNORE(janus_sleep(JANUS_SECONDS));
    }
}

/* The server, and beside it the clients. */
static void run(struct world *world)
{
    janus_status status, visited;
    JANUS_NURSERY(around, visited, .owner_apart = true, .policy = JANUS_POLICY_WAIT_ALL)
    {
        JANUS_NURSERY(n, status, .owner_apart = true, .policy = JANUS_POLICY_WAIT_ALL)
        {
            world->serving = n;
            JANUS_IGNORE(janus_spawn(around, read_log, world));
            if (janus_spawn(n, serve, world) != JANUS_OK) break; /* a fault */
            JANUS_IGNORE(janus_spawn(around, ask, world));
            JANUS_IGNORE(janus_spawn(around, ask, world));
            JANUS_IGNORE(janus_spawn(around, wait_for_ever, world));
            JANUS_IGNORE(janus_spawn(around, call, world));
            stop(world);
        }
        if (world->ended_ns == 0) { /* it never began, or its task was broken off */
            JANUS_IGNORE(janus_io_close(world->listener));
            JANUS_IGNORE(janus_io_close(world->log[1]));
        }
    }
    JANUS_IGNORE(status);
    JANUS_IGNORE(visited);
}

static int64_t scene(void *argument)
{
    struct world world = {.served = JANUS_OK};
    (void)argument;
    JANUS_EXPECT(janus_address_parse("127.0.0.1:0", &world.at) == JANUS_OK);
    if (janus_listen(&world.at, NULL, &world.listener) != JANUS_OK) return 0; /* a fault */
    JANUS_EXPECT(janus_io_local(world.listener, &world.at) == JANUS_OK);
    if (janus_io_pair(NULL, world.log) != JANUS_OK ||
        janus_http_client_create(NULL, &world.client) != JANUS_OK) {
        return 0; /* a fault */
    }
    run(&world);
    if (world.ended_ns == 0) return 0; /* it never began */
    uint64_t took = world.ended_ns > world.stopped_ns ? world.ended_ns - world.stopped_ns : 0;
    uint64_t most = GRACE_NS + 9 * JANUS_SECONDS; /* a second to stop by signal, 5 for the log */
    JANUS_EXPECT(took <= most);
    if (plan.faulty) return 0;
    JANUS_EXPECT(world.served == (plan.way == BY_CANCEL ? JANUS_CANCELLED : JANUS_OK) ||
                 world.served == JANUS_STALE);
    return 0;
}

static void explore(enum way way, uint32_t faults)
{
    const char *more = getenv("SCHEDULES");
    enum { MOMENTS = sizeof moments / sizeof moments[0] };
    uint64_t schedules = more != NULL ? strtoull(more, NULL, 0) / MOMENTS : harness_part(60, 5);
    for (int i = 0; i < MOMENTS; i++) {
        janus_explore_result result = JANUS_EXPLORE_RESULT();
        plan = (struct plan){way, moments[i], faults != 0};
        janus_status status = janus_explore(
            JANUS_EXPLORE_OPTIONS(.schedules = schedules, .seed = 1 + (uint64_t)i * 1000000,
                                  .faults = faults, .faults_every = 60, .worker_count = 2,
                                  .max_steps = 3000000, .stale_allowed = true,
                                  .quiet = more == NULL),
            scene, NULL, &result);
        if (status != JANUS_OK) harness_fail(__FILE__, __LINE__, result.message);
    }
}

TEST("a server whose listener is closed ends within its grace") { explore(BY_CLOSE, 0); }
TEST("a server that gets SIGTERM ends within its grace") { explore(BY_SIGNAL, 0); }
TEST("a server that is cancelled ends at once") { explore(BY_CANCEL, 0); }

TEST("with all faults, a server whose listener is closed ends within its grace")
{
    explore(BY_CLOSE, JANUS_FAULT_ALL);
}
TEST("with all faults, a server that gets SIGTERM ends within its grace")
{
    explore(BY_SIGNAL, JANUS_FAULT_ALL);
}
TEST("with all faults, a server that is cancelled ends at once")
{
    explore(BY_CANCEL, JANUS_FAULT_ALL);
}

/* One signal, after the first answer. */

static int64_t ask_and_raise(void *argument)
{
    static const char request[] = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    struct world     *world = argument;
    char              text[256];
    size_t            got = 0;
    janus_io          io;
    JANUS_EXPECT(janus_connect(&world->at, NULL, &io) == JANUS_OK);
    JANUS_EXPECT(janus_io_write(io, request, sizeof request - 1, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_io_read(io, text, sizeof text, &got) == JANUS_OK);
    world->stopped_ns = janus_now_ns();
    JANUS_EXPECT(janus_signal_raise(SIGTERM) == JANUS_OK);
    while (janus_io_read(io, text, sizeof text, &got) == JANUS_OK) {
    }
    JANUS_EXPECT(janus_io_close(io) == JANUS_OK);
    JANUS_EXPECT(janus_now_ns() - world->stopped_ns < 10 * JANUS_SECONDS);
    JANUS_IGNORE(janus_io_close(world->listener)); /* if the signal did not */
    return 0;
}

static int64_t serve_plain(void *argument)
{
    struct world *world = argument;
    return janus_http_serve(world->listener, answer, NULL,
                            JANUS_HTTP_OPTIONS(.stop_on_signals = true));
}

static int64_t signal_scene(void *argument)
{
    struct world world = {.served = JANUS_OK};
    janus_status status;
    (void)argument;
    JANUS_EXPECT(janus_address_parse("127.0.0.1:0", &world.at) == JANUS_OK);
    JANUS_EXPECT(janus_listen(&world.at, NULL, &world.listener) == JANUS_OK);
    JANUS_EXPECT(janus_io_local(world.listener, &world.at) == JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        JANUS_EXPECT(janus_spawn(n, serve_plain, &world) == JANUS_OK);
        JANUS_EXPECT(janus_spawn(n, ask_and_raise, &world) == JANUS_OK);
    }
    return status;
}

TEST("a signal after the first answer stops the server, whatever of it has run")
{
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    janus_status         status = janus_explore(
        JANUS_EXPLORE_OPTIONS(.schedules = harness_part(400, 5), .strategy = JANUS_STRATEGY_PCT,
                                      .worker_count = 2, .stale_allowed = true, .quiet = true),
        signal_scene, NULL, &result);
    if (status != JANUS_OK) harness_fail(__FILE__, __LINE__, result.message);
}

/* SPDX-License-Identifier: MIT */
/*
 * Server and clients of HTTPS under many schedules, with all faults. Bytes of TLS are random. But
 * with a key of RSA all lengths are the same in each run of a process, and so are the steps.
 */
#include "secure.h"

#include <janusrt/explore.h>
#include <janusrt/websocket.h>

static int64_t mirror(janus_http *http, const janus_http_request *request)
{
    char        *body = NULL;
    size_t       bytes = 0;
    janus_status status = janus_http_read_all(http, &body, &bytes);
    if (status != JANUS_OK) return status;
    (void)request;
    status = janus_http_begin(http, 200, NULL, JANUS_HTTP_UNKNOWN);
    if (status == JANUS_OK) status = janus_http_write(http, body, bytes);
    janus_free(body);
    return status;
}

static int64_t echo(janus_http *http, const janus_http_request *request)
{
    janus_websocket        *socket = NULL;
    janus_websocket_message message;
    janus_status            status = janus_websocket_accept(http, NULL, &socket);
    (void)request;
    while (status == JANUS_OK) {
        status = janus_websocket_read(socket, &message);
        if (status != JANUS_OK) break;
        status = janus_websocket_send(socket, message.kind, message.bytes, message.count);
        janus_free(message.bytes);
    }
    janus_websocket_destroy(socket);
    return 0;
}

static const janus_http_route routes[] = {
    {JANUS_HTTP_METHOD_OTHER, "/mirror", mirror, NULL},
    {JANUS_HTTP_METHOD_GET, "/echo", echo, NULL},
    {0, NULL, NULL, NULL},
};

struct meeting {
    janus_io           listener;
    janus_address      at;
    janus_http_client *client;
};

static int64_t meet_server(void *argument)
{
    struct meeting *meeting = argument;
    JANUS_IGNORE(janus_http_serve(meeting->listener, NULL, NULL,
                                  JANUS_HTTP_OPTIONS(.grace_ns = JANUS_SECONDS, .routes = routes,
                                                     .wire = janus_tls_server_wire(tls_server))));
    return 0;
}

/* A call either fails, or brings back exactly what was sent. */
static int64_t meet_caller(void *argument)
{
    struct meeting *meeting = argument;
    char            body[64], *text = NULL;
    size_t          bytes = 0;
    for (int i = 0; i < 3; i++) {
        janus_http_reply *reply = NULL;
        int               length = snprintf(body, sizeof body, "call %d of %llx", i,
                                            (unsigned long long)janus_task_current_id());
        janus_status      status = janus_http_call(
            meeting->client, i == 1 ? "PUT" : "POST", "https://127.0.0.1:443/mirror",
            JANUS_HTTP_CALL_OPTIONS(.body = body, .body_bytes = (size_t)length), &reply);
        if (status != JANUS_OK) continue;
        if (janus_http_reply_status(reply) == 200 &&
            janus_http_reply_read_all(reply, 1000, &text, &bytes) == JANUS_OK) {
            JANUS_EXPECT(bytes == (size_t)length && memcmp(text, body, bytes) == 0);
            janus_free(text);
        }
        janus_http_reply_destroy(reply);
    }
    return 0;
}

static int64_t send_some(void *argument)
{
    for (int i = 0; i < 5; i++) {
        char text[2] = {(char)('0' + i), '\0'};
        if (janus_websocket_send(argument, JANUS_WEBSOCKET_KIND_TEXT, text, 1) != JANUS_OK) break;
    }
    return 0;
}

/* Messages come back in order, or an error does. */
static int64_t meet_sender(void *argument)
{
    struct meeting         *meeting = argument;
    janus_websocket        *socket = NULL;
    janus_websocket_message message;
    janus_status            status;
    if (janus_websocket_connect(meeting->client, "wss://127.0.0.1/echo", NULL, &socket) !=
        JANUS_OK) {
        return 0;
    }
    JANUS_NURSERY(n, status)
    {
        bool sends = janus_spawn(n, send_some, socket) == JANUS_OK;
        for (int i = 0; i < 5 && sends; i++) {
            if (janus_websocket_read(socket, &message) != JANUS_OK) break;
            JANUS_EXPECT(message.count == 1 && ((char *)message.bytes)[0] == '0' + i);
            janus_free(message.bytes);
        }
    }
    JANUS_IGNORE(status); /* a fault */
    janus_websocket_destroy(socket);
    return 0;
}

static int64_t meet(void *argument)
{
    struct meeting meeting = {0};
    janus_status   status;
    (void)argument;
    if (janus_address_parse("127.0.0.1:443", &meeting.at) != JANUS_OK) return -100;
    if (janus_listen(&meeting.at, NULL, &meeting.listener) != JANUS_OK) return 0; /* a fault */
    if (janus_http_client_create(
            JANUS_HTTP_CLIENT_OPTIONS(.max_per_host = 2, .wire = janus_tls_client_wire(tls_client)),
            &meeting.client) != JANUS_OK) {
        return 0; /* a fault */
    }
    JANUS_NURSERY(n, status)
    {
        janus_status calls;
        JANUS_IGNORE(janus_spawn(n, meet_server, &meeting));
        JANUS_NURSERY(clients, calls)
        {
            JANUS_IGNORE(janus_spawn(clients, meet_caller, &meeting));
            JANUS_IGNORE(janus_spawn(clients, meet_caller, &meeting));
            JANUS_IGNORE(janus_spawn(clients, meet_sender, &meeting));
        }
        JANUS_IGNORE(calls); /* a fault */
        JANUS_IGNORE(janus_io_close(meeting.listener));
    }
    JANUS_IGNORE(status); /* a fault */
    return 0;
}

/* Runs with a seed. Returns what identifies the execution. */
static uint64_t meet_with(uint64_t seed)
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.deterministic_seed = seed));
    rig_do(scheduler, meet, NULL);
    uint64_t hash = janus_scheduler_trace_hash(scheduler);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    return hash;
}

TEST("with a key of RSA, whose signatures have one length, a seed replays HTTPS exactly")
{
    tls_server = server_of(paper_rsa(authority(), NAMES, 2048), NULL);
    tls_client = trusting();
    uint64_t first = meet_with(7);
    for (int i = 0; i < 5; i++) CHECK_EQ(meet_with(7), first);
    CHECK(meet_with(8) != first);
    CHECK(look_tls(tls_server).handshakes >= 7);
    janus_tls_server_destroy(tls_server);
    janus_tls_client_destroy(tls_client);
}

static void explore(uint32_t faults, uint64_t schedules)
{
    const char          *more = getenv("SCHEDULES");
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    if (more != NULL) schedules = strtoull(more, NULL, 0);
    tls_server = server_of(paper_rsa(authority(), NAMES, 2048), NULL);
    tls_client = trusting();
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.schedules = schedules, .quiet = true,
                                                 .max_steps = 2000000, .stale_allowed = true,
                                                 .faults = faults, .faults_every = 60),
                           meet, NULL, &result),
             JANUS_OK);
    CHECK_EQ(result.schedules, schedules);
    CHECK(look_tls(tls_server).handshakes > schedules); /* most succeed */
    janus_tls_server_destroy(tls_server);
    janus_tls_client_destroy(tls_client);
}

TEST("explored with all faults, calls and messages over TLS bring what was sent, or an error")
{
    RIG_REAL("the explorer has its own seeds");
    explore(JANUS_FAULT_ALL, RIG_SLOW ? 20 : 200);
}

TEST("explored with faults of the network, calls over TLS bring what was sent, or an error")
{
    RIG_REAL("the explorer has its own seeds");
    explore(JANUS_FAULT_NETWORK, RIG_SLOW ? 20 : 100);
}

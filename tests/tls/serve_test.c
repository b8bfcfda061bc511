/* SPDX-License-Identifier: MIT */
/* HTTPS on a server and a client of ours: bodies of all sizes, WebSocket, many at once. */
#include "secure.h"

#include <janusrt/websocket.h>

enum { LARGE_BYTES = 200000 };

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, "text/plain", "Hello!\n", 7);
}

static void call_thrice(struct talk *talk)
{
    janus_http_client *client = secure_client();
    for (int i = 0; i < 3; i++) secure_get(talk, client, "/", "Hello!\n");
    CHECK_EQ(look(client).connects, 1);
    janus_http_client_destroy(client);
    CHECK_EQ(look_tls(tls_server).handshakes, 1);
}

static int64_t call_thrice_here(void *argument)
{
    call_thrice(argument);
    return 0;
}

/* In a task whose stack suffices. The stack of the caller does not. */
static void call_thrice_apart(struct talk *talk)
{
    janus_status       status, denied;
    const char        *why = NULL;
    janus_http_client *client = secure_client();
    (void)secure_call(talk, client, "GET", "/", JANUS_HTTP_CALL_OPTIONS(.out_why = &why), &denied);
    CHECK_EQ(denied, JANUS_UNAVAILABLE);
    CHECK_STR(why, "the stack of the calling task is too small for the wire");
    janus_http_client_destroy(client);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn_with(n, call_thrice_here, talk,
                                  JANUS_SPAWN_OPTIONS(.stack_bytes = JANUS_TLS_STACK_BYTES), NULL),
                 JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
}

TEST("a call over TLS gets its answer, and the connection serves the next call")
{
    secure_run((struct talk){.handler = greet, .client = call_thrice});
}

/* Gives the body back, whole or in parts. */
static int64_t mirror(janus_http *http, const janus_http_request *request)
{
    char  *body = NULL;
    size_t bytes = 0;
    CHECK_EQ(janus_http_limit_body(http, LARGE_BYTES), JANUS_OK);
    CHECK_EQ(janus_http_read_all(http, &body, &bytes), JANUS_OK);
    if (!talk_is(request->path, "/parts")) {
        return janus_http_answer(http, 200, NULL, body, bytes);
    }
    janus_status status = janus_http_begin(http, 200, NULL, JANUS_HTTP_UNKNOWN);
    for (size_t at = 0, part; at < bytes && status == JANUS_OK; at += part) {
        part = bytes - at < 10000 ? bytes - at : 10000;
        status = janus_http_write(http, body + at, part);
    }
    return status;
}

static void mirror_all(struct talk *talk)
{
    static const size_t sizes[] = {1, 100, 16383, 16384, 16385, 40000, LARGE_BYTES};
    char               *bytes = malloc(LARGE_BYTES);
    janus_http_client  *client = secure_client();
    CHECK(bytes != NULL);
    for (size_t i = 0; i < LARGE_BYTES; i++) bytes[i] = (char)('a' + i * 7 % 26);
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        janus_status status;
        size_t       size = sizes[i / 2];
        char        *text =
            secure_call(talk, client, "POST", i % 2 == 0 ? "/" : "/parts",
                        JANUS_HTTP_CALL_OPTIONS(.body = bytes, .body_bytes = size), &status);
        CHECK_EQ(status, JANUS_OK);
        CHECK_EQ(strlen(text), size);
        CHECK_EQ(memcmp(text, bytes, size), 0);
        janus_free(text);
    }
    CHECK_EQ(look(client).connects, 1);
    janus_http_client_destroy(client);
    free(bytes);
}

TEST("bodies of all sizes come back unchanged, whole and in parts")
{
    secure_run((struct talk){.handler = mirror, .client = mirror_all});
}

static int64_t echo(janus_http *http, const janus_http_request *request)
{
    janus_websocket        *socket = NULL;
    janus_websocket_message message;
    (void)request;
    if (janus_websocket_accept(http, NULL, &socket) != JANUS_OK) return -100;
    while (janus_websocket_read(socket, &message) == JANUS_OK) {
        janus_status status =
            janus_websocket_send(socket, message.kind, message.bytes, message.count);
        janus_free(message.bytes);
        if (status != JANUS_OK) break;
    }
    janus_websocket_destroy(socket);
    return 0;
}

enum { SENDERS = 4, MESSAGES = 50 };

struct crowd {
    janus_websocket *socket;
    int              got[SENDERS];
};

static int64_t send_many(void *argument)
{
    struct crowd *crowd = ((struct crowd **)argument)[0];
    int           number = (int)(intptr_t)((void **)argument)[1];
    char          text[3000];
    for (int i = 0; i < MESSAGES; i++) {
        memset(text, 'a' + number, sizeof text);
        size_t bytes = (size_t)(1 + i * 59);
        CHECK_EQ(janus_websocket_send(crowd->socket, JANUS_WEBSOCKET_KIND_TEXT, text, bytes),
                 JANUS_OK);
    }
    return 0;
}

static void crowd_client(struct talk *talk)
{
    char                    url[URL_BYTES];
    struct crowd            crowd = {.socket = NULL};
    janus_http_client      *client = secure_client();
    janus_status            status;
    janus_websocket_message message;
    void                   *arguments[SENDERS][2];
    (void)snprintf(url, sizeof url, "wss://127.0.0.1:%u/", (unsigned)talk->at.port);
    CHECK_EQ(janus_websocket_connect(client, url, NULL, &crowd.socket), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < SENDERS; i++) {
            arguments[i][0] = &crowd;
            arguments[i][1] = (void *)(intptr_t)i;
            CHECK_EQ(janus_spawn(n, send_many, arguments[i]), JANUS_OK);
        }
        for (int i = 0; i < SENDERS * MESSAGES; i++) {
            CHECK_EQ(janus_websocket_read(crowd.socket, &message), JANUS_OK);
            int *got = &crowd.got[((char *)message.bytes)[0] - 'a'];
            CHECK_EQ(message.count, 1 + *got * 59);
            ++*got;
            janus_free(message.bytes);
        }
    }
    CHECK_EQ(status, JANUS_OK);
    janus_websocket_destroy(crowd.socket);
    janus_http_client_destroy(client);
}

TEST("over wss, tasks send while another reads, and all messages come back in order")
{
    secure_run((struct talk){.handler = echo, .client = crowd_client, .workers = 4});
}

TEST("a handshake succeeds where no budget pays for a larger stack, and where stacks are small")
{
    secure_run((struct talk){.handler = greet, .client = call_thrice, .stack_bytes = 4 << 20});
    if (JRT_ASAN || JRT_TSAN) return; /* stacks are larger */
    secure_run((struct talk){.handler = greet, .client = call_thrice_apart, .stack_bytes = 16384});
}

enum { CROWD = 200 };

static int64_t call_alone(void *argument)
{
    struct talk       *talk = argument;
    janus_http_client *client = secure_client();
    for (int i = 0; i < 3; i++) secure_get(talk, client, "/", "Hello!\n");
    janus_http_client_destroy(client);
    return 0;
}

static void call_together(struct talk *talk)
{
    janus_status status;
    uint64_t     count = rig_few(CROWD);
    JANUS_NURSERY(n, status)
    {
        for (uint64_t i = 0; i < count; i++) {
            CHECK_EQ(janus_spawn(n, call_alone, talk), JANUS_OK);
        }
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(look_tls(tls_server).handshakes, count);
}

TEST("200 clients shake hands and call at once, and each gets its answers")
{
    secure_run((struct talk){.handler = greet,
                             .client = call_together,
                             .workers = 4,
                             .options = JANUS_HTTP_OPTIONS(.max_connections = CROWD)});
}

static void call_after_idling(struct talk *talk)
{
    janus_http_client *client = secure_client();
    secure_get(talk, client, "/", "Hello!\n");
    CHECK_EQ(janus_sleep(15 * JANUS_SECONDS), JANUS_OK); /* the connection is cold */
    secure_get(talk, client, "/", "Hello!\n");
    CHECK_EQ(look(client).connects, 1);
    CHECK_EQ(look(client).repeats, 0);
    janus_http_client_destroy(client);
}

TEST("a connection that has gone cold serves the next call")
{
    secure_run((struct talk){.handler = greet, .client = call_after_idling, .seed = 5});
}

static void stop_idle(struct talk *talk)
{
    janus_http_client *client = secure_client();
    secure_get(talk, client, "/", "Hello!\n");
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    uint64_t end = janus_now_ns() + 5 * JANUS_SECONDS;
    CHECK_EQ(janus_sleep_until(end), JANUS_OK);
    CHECK_EQ(look(client).connection_count, 1);
    janus_http_client_destroy(client);
}

TEST("a graceful stop ends idle connections of TLS")
{
    secure_run((struct talk){.handler = greet, .client = stop_idle, .seed = 6});
}

/* A program that accepts by itself. */
static int64_t serve_one(void *argument)
{
    struct talk *talk = argument;
    janus_io     io;
    CHECK_EQ(janus_accept(talk->listener, &io, NULL), JANUS_OK);
    talk->served = janus_http_serve_one(
        io, greet, NULL, JANUS_HTTP_OPTIONS(.wire = janus_tls_server_wire(tls_server)));
    return 0;
}

static int64_t serve_one_first(void *argument)
{
    struct talk *talk = argument;
    janus_status status;
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &talk->at), JANUS_OK);
    CHECK_EQ(janus_listen(&talk->at, NULL, &talk->listener), JANUS_OK);
    CHECK_EQ(janus_io_local(talk->listener, &talk->at), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, serve_one, talk), JANUS_OK);
        janus_http_client *client = secure_client();
        secure_get(talk, client, "/", "Hello!\n");
        secure_get(talk, client, "/", "Hello!\n");
        janus_http_client_destroy(client);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(talk->served, JANUS_OK);
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    return 0;
}

/* The stack of this task does not suffice. */
static int64_t serve_one_small(void *argument)
{
    janus_io ends[2];
    (void)argument;
    CHECK_EQ(janus_io_pair(NULL, ends), JANUS_OK);
    CHECK_EQ(janus_http_serve_one(ends[0], greet, NULL,
                                  JANUS_HTTP_OPTIONS(.wire = janus_tls_server_wire(tls_server))),
             JANUS_INVALID);
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    return 0;
}

TEST("a program that accepts by itself serves one connection of TLS, with a stack that suffices")
{
    static struct talk talk;
    tls_server = server_of(own_paper(), NULL);
    tls_client = trusting();
    rig_run(2, serve_one_first, &talk, 1);
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.stack_bytes = 16384));
    if (!JRT_ASAN && !JRT_TSAN) rig_do(scheduler, serve_one_small, NULL); /* stacks are larger */
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    janus_tls_server_destroy(tls_server);
    janus_tls_client_destroy(tls_client);
}

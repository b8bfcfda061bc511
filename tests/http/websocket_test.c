/* SPDX-License-Identifier: MIT */
/* WebSocket: messages both ways, the close, pings, slow ends, faults. */
#include "http/websocket.h"
#include "socket.h"

#include <janusrt/explore.h>

static void talk_both_ways(struct talk *talk)
{
    static char   many[200000];
    const char   *reason = NULL;
    static size_t counts[] = {1, 125, 126, 4082, 4083, 4096, 65535, 65536, sizeof many};
    client = client_with(NULL);
    janus_websocket        *socket = dial(talk, NULL);
    janus_websocket_message message;
    CHECK_STR(janus_websocket_protocol(socket), "");
    bounce(socket, JANUS_WEBSOCKET_KIND_TEXT, "Hello", 5);
    bounce(socket, JANUS_WEBSOCKET_KIND_TEXT, "", 0);
    bounce(socket, JANUS_WEBSOCKET_KIND_BINARY, "\xff\0\r\n", 4);
    for (size_t i = 0; i < sizeof many; i++) many[i] = (char)(i * 31);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        bounce(socket, JANUS_WEBSOCKET_KIND_BINARY, many, counts[i]);
    }
    CHECK_EQ(janus_websocket_send(socket, JANUS_WEBSOCKET_KIND_TEXT, "\xff", 1), JANUS_INVALID);
    CHECK_EQ(janus_websocket_send(socket, (janus_websocket_kind)8, "", 0), JANUS_INVALID);
    CHECK_EQ(janus_websocket_close(socket, 1005, NULL), JANUS_INVALID);
    CHECK_EQ(janus_websocket_close_code(socket, NULL), 0);
    CHECK_EQ(janus_websocket_send(socket, JANUS_WEBSOCKET_KIND_TEXT, "quit", 4), JANUS_OK);
    CHECK_EQ(janus_websocket_read(socket, &message), JANUS_CLOSED);
    CHECK_EQ(janus_websocket_read(socket, &message), JANUS_CLOSED);
    CHECK_EQ(janus_websocket_close_code(socket, &reason), 4000);
    CHECK_STR(reason, "as you like");
    CHECK_EQ(janus_websocket_send(socket, JANUS_WEBSOCKET_KIND_TEXT, "x", 1), JANUS_CLOSED);
    janus_websocket_destroy(socket);
    CHECK_EQ(look(client).connection_count, 0);
    janus_http_client_destroy(client);
}

TEST("messages of all sizes go both ways, until one end closes")
{
    talk_run(&(struct talk){.handler = echo, .client = talk_both_ways});
}

static void close_first(struct talk *talk)
{
    janus_websocket_message message;
    client = client_with(NULL);
    janus_websocket *socket = dial(talk, NULL);
    CHECK_EQ(janus_websocket_send(socket, JANUS_WEBSOCKET_KIND_TEXT, "last", 4), JANUS_OK);
    CHECK_EQ(janus_websocket_close(socket, 3001, NULL), JANUS_OK);
    CHECK_EQ(janus_websocket_close(socket, 3001, NULL), JANUS_CLOSED);
    CHECK_EQ(janus_websocket_read(socket, &message), JANUS_OK); /* it was on its way */
    janus_free(message.bytes);
    CHECK_EQ(janus_websocket_read(socket, &message), JANUS_CLOSED);
    CHECK_EQ(janus_websocket_close_code(socket, NULL), 3001);
    janus_websocket_destroy(socket);
    socket = dial(talk, NULL);
    janus_websocket_destroy(socket); /* says 1000 */
    janus_http_client_destroy(client);
}

TEST("an end that has closed reads on until the other end has closed, too")
{
    talk_run(&(struct talk){.handler = echo, .client = close_first});
    CHECK_EQ(atomic_load(&ended), JANUS_CLOSED);
    CHECK_EQ(atomic_load(&ended_code), 1000);
}

/* Sends more than the network holds. */
static int64_t send_much(janus_http *http, const janus_http_request *request)
{
    static char      much[1 << 20];
    janus_websocket *socket = NULL;
    (void)request;
    janus_status status =
        janus_websocket_accept(http, JANUS_WEBSOCKET_OPTIONS(.write_ns = JANUS_SECONDS), &socket);
    if (status != JANUS_OK) return 0;
    status = janus_websocket_send(socket, JANUS_WEBSOCKET_KIND_BINARY, much, sizeof much);
    atomic_store(&ended, status);
    janus_websocket_destroy(socket);
    return 0;
}

static void read_slowly(struct talk *talk)
{
    size_t   got = 0, have = 0;
    janus_io io = talk_open(talk);
    talk_put(io, ASK(WS SAMPLE V13));
    while (have < 1 << 20) { /* a part of the frame each 300 ms */
        CHECK_EQ(janus_sleep(300 * JANUS_MS), JANUS_OK);
        CHECK_EQ(janus_io_read(io, talk->text, sizeof talk->text, &got), JANUS_OK);
        have += got;
    }
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

static void read_nothing(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, ASK(WS SAMPLE V13));
    CHECK_EQ(janus_sleep(10 * JANUS_SECONDS), JANUS_OK);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("an end that reads slowly gets its message, and an end that reads nothing loses the socket")
{
    talk_run(&(struct talk){.handler = send_much, .client = read_slowly, .seed = 4});
    CHECK_EQ(atomic_load(&ended), JANUS_OK);
    talk_run(&(struct talk){.handler = send_much, .client = read_nothing, .seed = 4});
    CHECK_EQ(atomic_load(&ended), JANUS_DEADLINE);
}

/* Sends numbers while another task reads. */
static int64_t send_many(void *argument)
{
    janus_websocket *socket = argument;
    for (uint32_t i = 0; i < 300; i++) {
        CHECK_EQ(janus_websocket_send(socket, JANUS_WEBSOCKET_KIND_BINARY, &i, sizeof i), JANUS_OK);
    }
    return 0;
}

static void send_and_read(struct talk *talk)
{
    janus_status            status;
    janus_websocket_message message;
    client = client_with(NULL);
    janus_websocket *socket = dial(talk, NULL);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, send_many, socket), JANUS_OK);
        for (uint32_t i = 0; i < 300; i++) {
            CHECK_EQ(janus_websocket_read(socket, &message), JANUS_OK);
            CHECK_EQ(message.count, sizeof i);
            CHECK(memcmp(message.bytes, &i, sizeof i) == 0);
            janus_free(message.bytes);
        }
    }
    CHECK_EQ(status, JANUS_OK);
    janus_websocket_destroy(socket);
    janus_http_client_destroy(client);
}

TEST("one task reads while another sends, and the order stays")
{
    talk_run(&(struct talk){.handler = echo, .client = send_and_read});
}

static void stay_long(struct talk *talk)
{
    client = client_with(NULL);
    janus_websocket *socket = dial(talk, NULL);
    for (int i = 0; i < (RIG_SLOW ? 2000 : 60000); i++) {
        bounce(socket, JANUS_WEBSOCKET_KIND_TEXT, "again", 5);
    }
    janus_websocket_destroy(socket);
    janus_http_client_destroy(client);
}

TEST("a socket carries more messages than one request could pay for")
{
    RIG_REAL("it takes long");
    talk_run(&(struct talk){.handler = echo, .client = stay_long});
}

static void stop_while_open(struct talk *talk)
{
    janus_websocket_message message;
    client = client_with(NULL);
    janus_websocket *socket = dial(talk, NULL);
    bounce(socket, JANUS_WEBSOCKET_KIND_TEXT, "here", 4);
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    uint64_t start = janus_now_ns();
    CHECK_EQ(janus_websocket_read(socket, &message), JANUS_CLOSED);
    CHECK_EQ(janus_websocket_close_code(socket, NULL), 1001);
    CHECK(janus_now_ns() - start < 5 * JANUS_SECONDS); /* the grace is 30 s */
    janus_websocket_destroy(socket);
    janus_http_client_destroy(client);
}

TEST("a graceful stop of the server closes its sockets")
{
    talk_run(&(struct talk){.handler = echo, .client = stop_while_open, .seed = 9});
}

static void be_silent(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, ASK(WS SAMPLE V13));
    CHECK_STR(talk_until(talk, io, "\r\n\r\n"), ACCEPTED);
    char     frame[2];
    uint64_t start = janus_now_ns();
    CHECK_EQ(janus_io_read_full(io, frame, 2, NULL), JANUS_OK);
    CHECK(memcmp(frame, "\x89\0", 2) == 0);
    uint64_t pinged = janus_now_ns();
    CHECK(pinged - start >= 29 * JANUS_SECONDS && pinged - start < 31 * JANUS_SECONDS);
    CHECK_EQ(janus_io_write(io, "\x8a\x80\0\0\0", 6, NULL), JANUS_OK); /* a pong */
    CHECK_EQ(janus_io_read_full(io, frame, 2, NULL), JANUS_OK);
    CHECK(memcmp(frame, "\x89\0", 2) == 0);
    pinged = janus_now_ns();
    CHECK_EQ(janus_io_read_full(io, frame, 2, NULL), JANUS_OK); /* a close: we said nothing */
    CHECK(memcmp(frame, "\x88\x02", 2) == 0);
    uint64_t waited = janus_now_ns() - pinged;
    CHECK(waited >= 9 * JANUS_SECONDS && waited < 11 * JANUS_SECONDS);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a silent client gets a ping, and its socket ends if it does not answer")
{
    talk_run(&(struct talk){.handler = echo, .client = be_silent, .seed = 11});
    CHECK_EQ(atomic_load(&ended), JANUS_DEADLINE);
    CHECK_EQ(atomic_load(&ended_code), 1006);
}

static int64_t read_one(void *argument)
{
    janus_websocket_message message;
    atomic_store(&ended, 1);
    atomic_store(&ended_code, janus_websocket_read(argument, &message));
    return 0;
}

static void cancel_a_read(struct talk *talk)
{
    janus_status status;
    client = client_with(NULL);
    janus_websocket *socket = dial(talk, NULL);
    atomic_store(&ended, 0);
    JANUS_NURSERY(n, status, .owner_apart = true)
    {
        CHECK_EQ(janus_spawn(n, read_one, socket), JANUS_OK);
        CHECK(rig_wait(&ended));
        CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK_EQ(atomic_load(&ended_code), JANUS_CANCELLED);
    bounce(socket, JANUS_WEBSOCKET_KIND_TEXT, "still here", 10);
    janus_websocket_destroy(socket);
    janus_http_client_destroy(client);
}

TEST("a read that is cancelled between two messages loses nothing")
{
    talk_run(&(struct talk){.handler = echo, .client = cancel_a_read});
}

static atomic_int go;

static int64_t hear_late(janus_http *http, const janus_http_request *request)
{
    janus_websocket        *socket;
    janus_websocket_message message;
    (void)request;
    if (janus_websocket_accept(http, NULL, &socket) != JANUS_OK) return -100;
    if (!rig_wait(&go) || janus_websocket_read(socket, &message) != JANUS_OK) return -100;
    janus_websocket_destroy(socket);
    return 0;
}

static int64_t send_a_million(void *argument)
{
    static char much[1000000];
    return janus_websocket_send(argument, JANUS_WEBSOCKET_KIND_BINARY, much, sizeof much);
}

/* The tick of a server sets such a deadline, and it may come late. */
static void meet_an_old_deadline(struct talk *talk)
{
    janus_status status;
    atomic_store(&go, 0);
    client = client_with(NULL);
    janus_websocket *socket = dial(talk, NULL);
    janus_io_info    info = JANUS_IO_INFO();
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, send_a_million, socket), JANUS_OK);
        for (int i = 0; i < 2; i++) { /* of the second try no byte is taken */
            do {
                CHECK_EQ(janus_yield(), JANUS_OK);
                CHECK_EQ(janus_io_inspect(socket->io, &info), JANUS_OK);
            } while ((info.waits & JANUS_IO_WRITE) == 0 || info.write_deadline == 1);
            CHECK_EQ(janus_io_set_deadline(socket->io, JANUS_IO_WRITE, 1), JANUS_OK);
        }
        atomic_store(&go, 1);
    }
    CHECK_EQ(status, JANUS_OK); /* all was sent */
    janus_websocket_destroy(socket);
    janus_http_client_destroy(client);
}

TEST("a deadline that was meant for an earlier write ends no message")
{
    talk_run(&(struct talk){.handler = hear_late, .client = meet_an_old_deadline, .seed = 7});
}

/* Explored: sockets under all faults. */

struct meeting {
    janus_io           listener;
    janus_address      at;
    janus_http_client *client;
};

static int64_t meet_server(void *argument)
{
    struct meeting *meeting = argument;
    janus_status    status = janus_http_serve(meeting->listener, echo, NULL,
                                              JANUS_HTTP_OPTIONS(.grace_ns = JANUS_SECONDS));
    return status > JANUS_OK ? -100 : 0;
}

/* What comes back was sent, and in the same order. */
static int64_t meet_client(void *argument)
{
    struct meeting         *meeting = argument;
    char                    url[URL_BYTES], text[32];
    janus_websocket        *socket = NULL;
    janus_websocket_message message;
    if (janus_websocket_connect(meeting->client, ws_url(&meeting->at, "/", url), NULL, &socket) !=
        JANUS_OK) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        int count = snprintf(text, sizeof text, "message %d", i);
        if (janus_websocket_send(socket, JANUS_WEBSOCKET_KIND_TEXT, text, (size_t)count) !=
            JANUS_OK) {
            break;
        }
    }
    for (int i = 0; i < 3; i++) {
        int count = snprintf(text, sizeof text, "message %d", i);
        if (janus_websocket_read(socket, &message) != JANUS_OK) break;
        JANUS_EXPECT(message.count == (size_t)count);
        JANUS_EXPECT(memcmp(message.bytes, text, (size_t)count) == 0);
        janus_free(message.bytes);
    }
    janus_websocket_destroy(socket);
    return 0;
}

static int64_t meet(void *argument)
{
    struct meeting meeting = {0};
    janus_status   status;
    (void)argument;
    if (janus_address_parse("127.0.0.1:80", &meeting.at) != JANUS_OK) return -100;
    status = janus_listen(&meeting.at, NULL, &meeting.listener);
    if (status != JANUS_OK) return 0;                                          /* a fault */
    if (janus_http_client_create(NULL, &meeting.client) != JANUS_OK) return 0; /* a fault */
    JANUS_NURSERY(n, status)
    {
        janus_status calls;
        JANUS_IGNORE(janus_spawn(n, meet_server, &meeting));
        JANUS_NURSERY(clients, calls)
        {
            JANUS_IGNORE(janus_spawn(clients, meet_client, &meeting));
            JANUS_IGNORE(janus_spawn(clients, meet_client, &meeting));
        }
        JANUS_IGNORE(calls); /* a fault */
        janus_http_client_info info = JANUS_HTTP_CLIENT_INFO();
        if (janus_http_client_inspect(meeting.client, &info) == JANUS_OK)
            JANUS_EXPECT(info.connection_count == info.idle_count);
        JANUS_IGNORE(janus_io_close(meeting.listener));
    }
    return 0;
}

TEST("explored with all faults, messages come back in order, or an error does")
{
    RIG_REAL("the explorer has its own seeds");
    const char          *more = getenv("SCHEDULES");
    uint64_t             schedules = more != NULL ? strtoull(more, NULL, 0) : RIG_SLOW ? 30 : 300;
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.schedules = schedules, .quiet = true,
                                                 .max_steps = 2000000, .stale_allowed = true,
                                                 .faults = JANUS_FAULT_ALL, .faults_every = 40),
                           meet, NULL, &result),
             JANUS_OK);
    CHECK_EQ(result.schedules, schedules);
}

/* SPDX-License-Identifier: MIT */
/* Handlers that leave traps behind: shields, pointers, tasks. The next request notices nothing. */
#include "talk.h"

#include <janusrt/memory.h>
#include <janusrt/websocket.h>
#include <janusrt/wire.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define LAST(path) "GET " path " HTTP/1.0\r\n\r\n"
#define OK_SET "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nset"

__attribute__((noinline)) static void begin_until(void)
{
    janus_shield shield;
    janus_shield_begin_until(&shield, janus_now_ns() + 3600 * JANUS_SECONDS);
}

static int64_t leave_shield(janus_http *http, const janus_http_request *request)
{
    if (talk_is(request->path, "/ever")) return janus_sleep(3600 * JANUS_SECONDS);
    janus_status status = janus_http_answer(http, 200, NULL, "set", 3);
    if (talk_is(request->path, "/shield")) janus_shield_begin();
    if (talk_is(request->path, "/until")) begin_until(); /* its frame ends */
    return status;
}

static void stop_behind_shield(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, GET("/shield"));
    CHECK_STR(talk_until(talk, io, "set"), OK_SET);
    talk_put(io, GET("/ever"));
    uint64_t from = janus_now_ns();
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    CHECK(strncmp(talk_rest(talk, io), "HTTP/1.1 503 ", 13) == 0);
    CHECK(janus_now_ns() - from < 10 * JANUS_SECONDS);
}

static void ask_behind_dead_shield(struct talk *talk)
{
    for (int i = 0; i < 3; i++) {
        CHECK(strncmp(talk_ask(talk, GET("/until") LAST("/")), OK_SET OK_SET, 40) == 0);
    }
}

TEST("a shield that a handler leaves behind does not keep the server from stopping")
{
    talk_run(&(struct talk){.handler = leave_shield,
                            .client = stop_behind_shield,
                            .options = JANUS_HTTP_OPTIONS(.grace_ns = JANUS_SECONDS),
                            .seed = 7});
}

TEST("a shield in a frame that has ended ends before the next request")
{
    if (JRT_ASAN) SKIP("AddressSanitizer uses the frame of the shield again at once");
    talk_run(&(struct talk){.handler = leave_shield, .client = ask_behind_dead_shield});
    talk_run(&(struct talk){.handler = leave_shield,
                            .client = ask_behind_dead_shield,
                            .options = JANUS_HTTP_OPTIONS(.handler_ns = JANUS_SECONDS)});
}

static int64_t leave_pointer(janus_http *http, const janus_http_request *request)
{
    static int secret;
    void     **local = janus_task_local();
    bool       clean = *local == NULL;
    (void)request;
    *local = &secret;
    return janus_http_answer(http, 200, NULL, clean ? "new" : "old", 3);
}

static void ask_for_pointer(struct talk *talk)
{
    const char *text = talk_ask(talk, GET("/") GET("/") LAST("/"));
    CHECK(strstr(text, "new") != NULL && strstr(text, "old") == NULL);
}

TEST("each request begins without a local pointer")
{
    talk_run(&(struct talk){.handler = leave_pointer, .client = ask_for_pointer});
}

static int64_t sleep_for_ever(void *argument)
{
    (void)argument;
    return janus_sleep(3600 * JANUS_SECONDS);
}

static atomic_int flooding;

/* Starts children until it is refused, and so does each child. Then all wait for ever. */
static int64_t flood(void *argument)
{
    janus_nursery n;
    if (janus_nursery_open(&n, NULL) < JANUS_OK) return -100;
    while (janus_spawn(&n, argument != NULL ? flood : sleep_for_ever, NULL) == JANUS_OK) continue;
    if (argument != NULL) atomic_fetch_add(&flooding, 1);
    JANUS_IGNORE(sleep_for_ever(NULL));
    return janus_nursery_end(&n, NULL);
}

static int64_t flood_or_greet(janus_http *http, const janus_http_request *request)
{
    if (talk_is(request->path, "/flood")) return flood(http);
    return janus_http_answer(http, 200, NULL, "set", 3);
}

static void ask_beside_flood(struct talk *talk)
{
    janus_io floods[2];
    atomic_store(&flooding, 0);
    for (int i = 0; i < 2; i++) {
        floods[i] = talk_open(talk);
        talk_put(floods[i], GET("/flood"));
    }
    while (atomic_load(&flooding) < 2) CHECK_EQ(janus_yield(), JANUS_OK);
    for (int i = 0; i < 50; i++) {
        CHECK(strstr(talk_ask(talk, LAST("/")), "set") != NULL);
    }
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_io_close(floods[i]), JANUS_OK);
}

TEST("two handlers that flood leave tasks to the others")
{
    talk_run(&(struct talk){.handler = flood_or_greet,
                            .client = ask_beside_flood,
                            .max_tasks = 100,
                            .options = JANUS_HTTP_OPTIONS(.grace_ns = 1)});
}

static janus_http *_Atomic kept;
static atomic_int begun, go;

static int64_t answer_child(void *argument)
{
    return janus_http_answer(argument, 200, NULL, "set", 3);
}

/* "/keep" shows its name to others. "/wait" waits for `go`. "/child" answers from a child. */
static int64_t show_name(janus_http *http, const janus_http_request *request)
{
    janus_status status = JANUS_OK;
    if (talk_is(request->path, "/keep")) atomic_store(&kept, http);
    if (talk_is(request->path, "/wait")) {
        atomic_store(&begun, 1);
        if (!rig_wait(&go)) return -100;
    }
    if (!talk_is(request->path, "/child")) return janus_http_answer(http, 200, NULL, "set", 3);
    JANUS_NURSERY(n, status) { CHECK_EQ(janus_spawn(n, answer_child, http), JANUS_OK); }
    return status;
}

/* Every call with the name of a request that is over. */
static void use_kept(void)
{
    janus_http      *http = atomic_load(&kept);
    janus_http_text  text, name;
    janus_address    peer;
    char             byte, *all;
    size_t           bytes;
    janus_websocket *socket;
    CHECK_EQ(janus_http_answer(http, 200, NULL, "bad", 3), JANUS_STATE);
    CHECK_EQ(janus_http_answer_text(http, 200, "bad"), JANUS_STATE);
    CHECK_EQ(janus_http_begin(http, 200, NULL, 3), JANUS_STATE);
    CHECK_EQ(janus_http_write(http, "bad", 3), JANUS_STATE);
    CHECK_EQ(janus_http_flush(http), JANUS_STATE);
    CHECK_EQ(janus_http_event(http, NULL, NULL, "bad"), JANUS_STATE);
    CHECK_EQ(janus_http_set_field(http, "Bad", "bad"), JANUS_STATE);
    CHECK_EQ(janus_http_set_trailer(http, "Bad", "bad"), JANUS_STATE);
    CHECK_EQ(janus_http_limit_body(http, 1), JANUS_STATE);
    CHECK_EQ(janus_http_read(http, &byte, 1, &bytes), JANUS_STATE);
    CHECK_EQ(janus_http_read_all(http, &all, &bytes), JANUS_STATE);
    CHECK_EQ(janus_http_field(http, "Host", &text), JANUS_STATE);
    CHECK_EQ(janus_http_field_at(http, 0, &name, &text), JANUS_STATE);
    CHECK_EQ(janus_http_trailer(http, "Bad", &text), JANUS_STATE);
    CHECK_EQ(janus_http_peer(http, &peer), JANUS_STATE);
    CHECK_EQ(janus_http_answer_file(http, (janus_io){{0, 0}}, (janus_http_text){"/", 1}),
             JANUS_STATE);
    CHECK_EQ(janus_http_routes(http, &(janus_http_request){.argument = &text}), JANUS_STATE);
    CHECK_EQ(janus_websocket_accept(http, NULL, &socket), JANUS_STATE);
}

static void use_name_late(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, GET("/keep"));
    CHECK_STR(talk_until(talk, io, "set"), OK_SET);
    use_kept(); /* the block waits for the next request */
    for (int round = 0; round < 2; round++) {
        atomic_store(&begun, 0);
        atomic_store(&go, 0);
        talk_put(io, GET("/wait"));
        CHECK(rig_wait(&begun));
        use_kept(); /* another request uses the block, then another connection does */
        atomic_store(&go, 1);
        CHECK_STR(talk_until(talk, io, "set"), OK_SET);
        CHECK_EQ(janus_io_close(io), JANUS_OK);
        if (round == 0) io = talk_open(talk);
    }
    CHECK(strstr(talk_ask(talk, GET("/child") LAST("/child")), "set") != NULL);
}

TEST("the name of a request that is over is refused by every call")
{
    talk_run(&(struct talk){.handler = show_name, .client = use_name_late});
}

static void name_after_a_crowd(struct talk *talk)
{
    enum { CROWD = 100 };
    janus_io crowd[CROWD];
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = talk_open(talk);
        talk_put(crowd[i], GET("/keep"));
        CHECK_STR(talk_until(talk, crowd[i], "set"), OK_SET);
    }
    for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_io_close(crowd[i]), JANUS_OK);
    for (int i = 0; i < 5; i++) { /* the server gives the memory of blocks back */
        CHECK_EQ(janus_sleep(2 * JANUS_SECONDS), JANUS_OK);
        use_kept();
    }
    CHECK(strstr(talk_ask(talk, LAST("/")), "set") != NULL);
}

TEST("the name of a request whose memory is gone is refused")
{
    talk_run(&(struct talk){.handler = show_name, .client = name_after_a_crowd, .seed = 7});
}

/* Begins an answer, shows its name, and returns when another task is inside of a write. */
static int64_t invite(janus_http *http, const janus_http_request *request)
{
    if (!talk_is(request->path, "/invite")) return janus_http_answer(http, 200, NULL, "set", 3);
    CHECK_EQ(janus_http_begin(http, 200, NULL, JANUS_HTTP_UNKNOWN), JANUS_OK);
    atomic_store(&kept, http);
    if (!rig_wait(&begun)) return -100;
    return janus_sleep(JANUS_SECONDS);
}

static int64_t write_as_guest(void *argument)
{
    static char  bytes[65536];
    janus_status status = JANUS_OK;
    CHECK(argument != NULL);
    atomic_store(&begun, 1);
    while (status == JANUS_OK) status = janus_http_write(argument, bytes, sizeof bytes);
    CHECK(status != JANUS_STATE && status != JANUS_DEADLINE); /* it was inside */
    atomic_store(&go, 1);
    return 0;
}

static void be_guest(struct talk *talk)
{
    janus_status status;
    janus_io     io = talk_open(talk);
    atomic_store(&kept, NULL);
    atomic_store(&begun, 0);
    atomic_store(&go, 0);
    talk_put(io, GET("/invite"));
    while (atomic_load(&kept) == NULL) CHECK_EQ(janus_yield(), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, write_as_guest, atomic_load(&kept)), JANUS_OK);
        /* Nobody reads. The end of the request ends the write. */
        while (atomic_load(&go) == 0) CHECK_EQ(janus_sleep(JANUS_MS), JANUS_OK);
        use_kept();
        for (int i = 0; i < 10; i++) CHECK(strstr(talk_ask(talk, LAST("/")), "set") != NULL);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("another task inside of a write when the handler returns ends the connection alone")
{
    char log[TALK_LOG_BYTES];
    talk_run(&(struct talk){.handler = invite, .client = be_guest, .seed = 7, .log = log});
    CHECK(strstr(log, " GET /invite 200 ") != NULL);
}

/* A wire that changes nothing. Its handshake is a byte of the client. */
struct plain_wire {
    janus_wire  head;
    janus_io    io;
    atomic_bool gone;
};

static atomic_int used_after;

static janus_status plain_create(const janus_wire_maker *maker, janus_io io, const char *host,
                                 janus_wire **out)
{
    /* Static: a task that uses a wire late is seen, and touches no freed memory. */
    static struct plain_wire wires[64];
    static atomic_uint       made;
    struct plain_wire       *wire = &wires[atomic_fetch_add(&made, 1) % 64];
    (void)host;
    atomic_store(&wire->gone, false);
    wire->head.maker = maker;
    wire->io = io;
    *out = &wire->head;
    return JANUS_OK;
}

static janus_status plain_open(janus_wire *wire, const char **out_why)
{
    char   byte;
    size_t got = 0;
    (void)out_why;
    return janus_io_read(((struct plain_wire *)wire)->io, &byte, 1, &got);
}

static janus_status plain_read(janus_wire *wire, void *to, size_t max, size_t *out_got)
{
    return janus_io_read(((struct plain_wire *)wire)->io, to, max, out_got);
}

static janus_status plain_try_read(janus_wire *wire, void *to, size_t max, size_t *out_got)
{
    return janus_io_try_read(((struct plain_wire *)wire)->io, to, max, out_got);
}

static janus_status plain_wait(janus_wire *wire)
{
    return janus_io_wait(((struct plain_wire *)wire)->io, JANUS_IO_READ);
}

static janus_status plain_write(janus_wire *head, const janus_io_piece *pieces, uint32_t count,
                                size_t *out_done)
{
    struct plain_wire *wire = (struct plain_wire *)head;
    janus_status       status = janus_io_writev(wire->io, pieces, count, out_done);
    if (atomic_load(&wire->gone)) atomic_fetch_add(&used_after, 1);
    return status;
}

static janus_status plain_end(janus_wire *wire, bool waits)
{
    (void)waits;
    return janus_io_shutdown(((struct plain_wire *)wire)->io, JANUS_IO_WRITE);
}

static void plain_destroy(janus_wire *wire) { atomic_store(&((struct plain_wire *)wire)->gone, 1); }

static const janus_wire_maker plain_maker = {.struct_bytes = sizeof plain_maker,
                                             .create = plain_create,
                                             .open = plain_open,
                                             .read = plain_read,
                                             .try_read = plain_try_read,
                                             .wait = plain_wait,
                                             .write = plain_write,
                                             .end = plain_end,
                                             .destroy = plain_destroy};

static void be_guest_on_wire(struct talk *talk)
{
    janus_status status;
    janus_io     io = talk_open(talk);
    atomic_store(&kept, NULL);
    atomic_store(&begun, 0);
    atomic_store(&go, 0);
    atomic_store(&used_after, 0);
    talk_put(io, "!" GET("/invite"));
    while (atomic_load(&kept) == NULL) CHECK_EQ(janus_sleep(JANUS_MS), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, write_as_guest, atomic_load(&kept)), JANUS_OK);
        while (atomic_load(&go) == 0) CHECK_EQ(janus_sleep(JANUS_MS), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(atomic_load(&used_after), 0);
    CHECK(strstr(talk_ask(talk, "!" LAST("/")), "set") != NULL);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a wire lives until the last task has left it")
{
    talk_run(&(struct talk){.handler = invite,
                            .client = be_guest_on_wire,
                            .options = JANUS_HTTP_OPTIONS(.wire = &plain_maker),
                            .seed = 7});
}

static void stall_handshakes(struct talk *talk)
{
    janus_io stalled[2] = {talk_open(talk), talk_open(talk)};
    uint64_t from = janus_now_ns();
    CHECK(strstr(talk_ask(talk, "!" LAST("/")), "set") != NULL);
    CHECK(janus_now_ns() - from < 6 * JANUS_SECONDS); /* a handshake may take 10 s */
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_io_close(stalled[i]), JANUS_OK);
}

TEST("handshakes that stall make way when others wait")
{
    talk_run(
        &(struct talk){.handler = invite,
                       .client = stall_handshakes,
                       .options = JANUS_HTTP_OPTIONS(.wire = &plain_maker, .max_connections = 2),
                       .seed = 7});
}

static void serve_the_listener(struct talk *talk)
{
    CHECK_EQ(janus_http_serve_one(talk->listener, invite, NULL, NULL), JANUS_STATE);
    CHECK_EQ(janus_http_serve_one((janus_io){{7, 7}}, invite, NULL, NULL), JANUS_STALE);
    CHECK(strstr(talk_ask(talk, LAST("/")), "set") != NULL);
}

TEST("a listener that is served as a connection stays open")
{
    talk_run(&(struct talk){.handler = invite, .client = serve_the_listener});
}

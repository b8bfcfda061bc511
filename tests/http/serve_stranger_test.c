/* SPDX-License-Identifier: MIT */
/* Handlers that reach for what is not theirs: nurseries, names, connections, descriptors, locks. */
#include "http/server.h"
#include "talk.h"

#include <janusrt/abi.h>
#include <janusrt/async.h>
#include <janusrt/charge.h>
#include <janusrt/dump.h>
#include <janusrt/memory.h>
#include <janusrt/rwlock.h>
#include <janusrt/token.h>
#include <janusrt/websocket.h>
#include <sys/resource.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define LAST(path) "GET " path " HTTP/1.0\r\n\r\n"
#define OK_SET "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nset"

static const janus_budget pool = {
    .ops = 1000000, .memory = 1 << 20, .spawn_count = 20, .channel_ops = 100, .syscalls = 1000};

static janus_status greet(janus_http *http) { return janus_http_answer(http, 200, NULL, "set", 3); }

/* Nurseries. */

static int64_t do_nothing(void *argument)
{
    (void)argument;
    return 0;
}

static int64_t give_nothing(void *argument, void *value)
{
    (void)argument;
    (void)value;
    return 0;
}

static int64_t look_around(janus_http *http, const janus_http_request *request)
{
    janus_task_info    info = JANUS_TASK_INFO();
    janus_nursery_info inside = JANUS_NURSERY_INFO();
    janus_async        call;
    janus_nursery      n;
    (void)request;
    CHECK_EQ(janus_task_inspect_current(&info), JANUS_OK);
    CHECK(info.nursery == NULL && info.owned == NULL);
    CHECK_EQ(info.nurseries, 0);
    CHECK_STR(info.nursery_name, "requests");
    CHECK_EQ(janus_scheduler_spawn(do_nothing, NULL), JANUS_NO_NURSERY);
    CHECK_EQ(janus_async_start(NULL, &call, give_nothing, NULL, NULL), JANUS_NO_NURSERY);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_inspect(&n, &inside), JANUS_OK);
    CHECK(inside.parent == NULL);
    CHECK_EQ(janus_task_inspect_current(&info), JANUS_OK);
    CHECK(info.owned == &n);
    CHECK_EQ(info.nurseries, 1);
    CHECK_EQ(janus_scheduler_spawn(do_nothing, NULL), JANUS_OK); /* in its own */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return greet(http);
}

static void ask_twice(struct talk *talk)
{
    CHECK(strstr(talk_ask(talk, GET("/") LAST("/")), OK_SET) != NULL);
}

TEST("a handler finds no nursery of the server, and starts no task in one")
{
    talk_run(&(struct talk){.handler = look_around, .client = ask_twice});
    talk_run(&(struct talk){.handler = look_around,
                            .client = ask_twice,
                            .options = JANUS_HTTP_OPTIONS(.handler_ns = JANUS_SECONDS)});
    talk_run(&(struct talk){
        .handler = look_around,
        .client = ask_twice,
        .options = JANUS_HTTP_OPTIONS(.handler_ns = JANUS_SECONDS, .request_budget = &pool)});
}

/* Names. */

enum { NAMES = 12000 };

static janus_http *names[NAMES];
static atomic_int  name_count;

static int64_t note_name(janus_http *http, const janus_http_request *request)
{
    int number = atomic_fetch_add(&name_count, 1);
    (void)request;
    CHECK(number < NAMES);
    names[number] = http;
    return greet(http);
}

static int compare(const void *left, const void *right)
{
    uintptr_t one = (uintptr_t)*(janus_http *const *)left;
    uintptr_t two = (uintptr_t)*(janus_http *const *)right;
    return (one > two) - (one < two);
}

static void check_names(int least)
{
    int count = atomic_load(&name_count);
    CHECK(count >= least);
    qsort(names, (size_t)count, sizeof names[0], compare);
    for (int i = 1; i < count; i++) CHECK(names[i] != names[i - 1]);
}

/* Sends a crowd of requests on each of some connections, until the server closes them. */
static void use_up_names(struct talk *talk)
{
    enum { ROUNDS = 9, EACH = 500, CROWD = 80 };
    janus_io crowd[CROWD];
    atomic_store(&name_count, 0);
    for (uint64_t i = 0; i < rig_few(ROUNDS); i++) {
        janus_io io = talk_open(talk);
        for (int j = 0; j < EACH; j++) {
            talk_put(io, GET("/"));
            if (strstr(talk_until(talk, io, "set"), "close") != NULL) break;
        }
        CHECK_EQ(janus_io_close(io), JANUS_OK);
    }
    for (int round = 0; round < 3; round++) { /* blocks lose their memory, and get it again */
        for (int i = 0; i < CROWD; i++) {
            crowd[i] = talk_open(talk);
            talk_put(crowd[i], GET("/"));
            (void)talk_until(talk, crowd[i], "set");
        }
        for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_io_close(crowd[i]), JANUS_OK);
        if (talk->seed != 0) CHECK_EQ(janus_sleep(10 * JANUS_SECONDS), JANUS_OK);
    }
}

TEST("no two requests of a server have the same name")
{
    talk_run(&(struct talk){.handler = note_name, .client = use_up_names});
    check_names(rig_simulated() ? 500 : 4500);
    talk_run(&(struct talk){.handler = note_name, .client = use_up_names, .seed = 7});
    check_names(500);
}

TEST("a block whose names are used up retires")
{
    uint32_t usual = jrt_http_tags;
    jrt_http_tags = 2;
    talk_run(&(struct talk){.handler = note_name, .client = use_up_names, .seed = 7});
    check_names(240);
    jrt_http_tags = 1;
    talk_run(&(struct talk){.handler = note_name, .client = use_up_names});
    check_names(240);
    jrt_http_tags = usual;
}

/* Guests. */

static atomic_int called;

static int64_t read_for_ever(void *argument)
{
    char   byte;
    size_t got;
    return janus_http_read(argument, &byte, 1, &got);
}

static int64_t write_for_ever(void *argument)
{
    static const char bytes[1 << 20];
    janus_status      status = janus_http_begin(argument, 200, NULL, JANUS_HTTP_UNKNOWN);
    while (status == JANUS_OK) status = janus_http_write(argument, bytes, sizeof bytes);
    return status;
}

/* A child of the handler ends inside of a call, because it is cancelled. */
static void break_off(janus_http *http, janus_entry *entry)
{
    const struct janus_http *block = jrt_http_block(http);
    janus_nursery            n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, entry, http,
                              JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
             JANUS_OK);
    while (atomic_load(&block->guests) == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_sleep(100 * JANUS_MS), JANUS_OK); /* the child waits by then */
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(atomic_load(&block->guests), 0);
}

static int64_t lose_guest(janus_http *http, const janus_http_request *request)
{
    atomic_fetch_add(&called, 1);
    if (talk_is(request->path, "/write")) {
        break_off(http, write_for_ever);
        return janus_http_write(http, "more", 4) == JANUS_BROKEN ? 0 : -100;
    }
    break_off(http, read_for_ever);
    return greet(http);
}

static void ask_guests(struct talk *talk)
{
    for (int i = 0; i < 5; i++) {
        janus_io io = talk_open(talk);
        talk_put(io, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n");
        CHECK_STR(talk_until(talk, io, "set"), OK_SET);
        CHECK_EQ(janus_io_close(io), JANUS_OK);
    }
    janus_io io = talk_open(talk); /* nobody reads */
    atomic_store(&called, 0);
    talk_put(io, GET("/write"));
    while (atomic_load(&called) == 0) CHECK_EQ(janus_sleep(JANUS_MS), JANUS_OK);
    CHECK_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a task that ends inside of a call of another task's request is counted off")
{
    talk_run(&(struct talk){.handler = lose_guest, .client = ask_guests, .seed = 7});
}

static janus_status said;

static void answer_back(void *argument) { said = janus_http_answer(argument, 200, NULL, "bad", 3); }

static int64_t answer_blocking(void *argument)
{
    return janus_http_answer(argument, 200, NULL, "bad", 3);
}

static int64_t call_from_outside(janus_http *http, const janus_http_request *request)
{
    janus_token *token;
    int64_t      result = 0;
    (void)request;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, answer_back, http, NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(said, JANUS_STATE);
    janus_token_release(token);
    CHECK_EQ(janus_blocking(answer_blocking, http, &result), JANUS_OK);
    CHECK_EQ(result, JANUS_STATE);
    return greet(http);
}

TEST("callbacks and blocking calls do not use a request")
{
    talk_run(&(struct talk){.handler = call_from_outside, .client = ask_twice});
}

/* Sockets of others. */

#define UPGRADE                                                                                    \
    "GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"                  \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static janus_http *_Atomic shown;
static atomic_int go;

static int64_t accept_for(void *argument)
{
    janus_websocket *socket = NULL;
    CHECK_EQ(janus_websocket_accept(argument, NULL, &socket), JANUS_STATE);
    CHECK(socket == NULL);
    return 0;
}

static int64_t lend_name(janus_http *http, const janus_http_request *request)
{
    janus_websocket *socket = NULL;
    janus_status     status;
    if (!talk_is(request->path, "/a")) {
        while (atomic_load(&shown) == NULL) CHECK_EQ(janus_sleep(JANUS_MS), JANUS_OK);
        JANUS_IGNORE(accept_for(atomic_load(&shown)));
        atomic_store(&go, 1);
        return greet(http);
    }
    JANUS_NURSERY(n, status) { CHECK_EQ(janus_spawn(n, accept_for, http), JANUS_OK); }
    CHECK_EQ(status, JANUS_OK);
    atomic_store(&shown, http);
    while (atomic_load(&go) == 0) CHECK_EQ(janus_sleep(JANUS_MS), JANUS_OK);
    CHECK_EQ(janus_websocket_accept(http, NULL, &socket), JANUS_OK);
    janus_websocket_destroy(socket);
    return 0;
}

static void ask_for_socket(struct talk *talk)
{
    janus_io io = talk_open(talk);
    atomic_store(&shown, NULL);
    atomic_store(&go, 0);
    talk_put(io, UPGRADE);
    CHECK(strstr(talk_ask(talk, LAST("/b")), "set") != NULL);
    CHECK(strncmp(talk_rest(talk, io), "HTTP/1.1 101 ", 13) == 0);
}

TEST("only the request's own task accepts a WebSocket")
{
    talk_run(&(struct talk){.handler = lend_name, .client = ask_for_socket});
}

/* Descriptors. */

static atomic_int opened;

static int64_t open_all(janus_http *http, const janus_http_request *request)
{
    janus_address at;
    janus_io      io;
    janus_status  status = JANUS_OK;
    if (!talk_is(request->path, "/all")) return greet(http);
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &at), JANUS_OK);
    atomic_store(&opened, 0);
    while ((status = janus_listen(&at, NULL, &io)) == JANUS_OK) atomic_fetch_add(&opened, 1);
    CHECK_EQ(status, JANUS_HANDLE_LIMIT);
    atomic_store(&go, 1);
    CHECK_EQ(janus_sleep(3600 * JANUS_SECONDS), JANUS_CANCELLED);
    return 0;
}

static void ask_beside_greed(struct talk *talk)
{
    janus_io io = talk_open(talk);
    atomic_store(&go, 0);
    talk_put(io, GET("/all"));
    while (atomic_load(&go) == 0) CHECK_EQ(janus_sleep(JANUS_MS), JANUS_OK);
    CHECK(strstr(talk_ask(talk, LAST("/")), "set") != NULL);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

TEST("a handler that opens all it may leaves descriptors to others")
{
    struct rlimit usual, small;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
    small = usual;
    small.rlim_cur = usual.rlim_cur < 256 ? usual.rlim_cur : 256;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
    talk_run(&(struct talk){.handler = open_all,
                            .client = ask_beside_greed,
                            .options = JANUS_HTTP_OPTIONS(.grace_ns = 1)});
    CHECK(atomic_load(&opened) >= 4 && atomic_load(&opened) <= 32);
    talk_run(&(struct talk){.handler = open_all,
                            .client = ask_beside_greed,
                            .options = JANUS_HTTP_OPTIONS(.grace_ns = 1, .request_handles = 7)});
    CHECK_EQ(atomic_load(&opened), 7);
    talk_run(&(struct talk){.handler = open_all,
                            .client = ask_beside_greed,
                            .options = JANUS_HTTP_OPTIONS(.grace_ns = 1, .request_handles = 5,
                                                          .request_budget = &pool)});
    CHECK_EQ(atomic_load(&opened), 5);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

/* Locks. */

static janus_mutex  mutex;
static janus_rwlock rwlock;

/* "/mutex", "/read" and "/write" leave a lock. "/wait" waits for all of them. */
static int64_t leave_lock(janus_http *http, const janus_http_request *request)
{
    if (talk_is(request->path, "/mutex")) CHECK_EQ(janus_mutex_lock(&mutex), JANUS_OK);
    if (talk_is(request->path, "/read")) CHECK_EQ(janus_rwlock_read_lock(&rwlock), JANUS_OK);
    if (talk_is(request->path, "/write")) CHECK_EQ(janus_rwlock_write_lock(&rwlock), JANUS_OK);
    if (talk_is(request->path, "/wait")) {
        CHECK_EQ(janus_mutex_lock(&mutex), JANUS_OK);
        CHECK_EQ(janus_mutex_unlock(&mutex), JANUS_OK);
        CHECK_EQ(janus_rwlock_write_lock(&rwlock), JANUS_OK);
        CHECK_EQ(janus_rwlock_unlock(&rwlock), JANUS_OK);
    }
    return greet(http);
}

/* The client sends half of a body, which the handler does not read. */
static void ask_for_locks(struct talk *talk)
{
    static const char *const paths[] = {"/mutex", "/read", "/write"};
    char                     text[128];
    for (int i = 0; i < 3; i++) {
        janus_io io = talk_open(talk);
        (void)snprintf(text, sizeof text,
                       "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", paths[i]);
        talk_put(io, text);
        uint64_t from = janus_now_ns();
        CHECK(strstr(talk_ask(talk, GET("/wait") LAST("/")), OK_SET) != NULL);
        CHECK(janus_now_ns() - from < JANUS_SECONDS);
        CHECK(strstr(talk_rest(talk, io), "set") != NULL);
    }
}

TEST("a lock that a handler leaves is abandoned before the server waits for the client")
{
    janus_mutex_init(&mutex, "left");
    CHECK_EQ(janus_rwlock_init(&rwlock, "left"), JANUS_OK);
    talk_run(&(struct talk){.handler = leave_lock, .client = ask_for_locks, .seed = 7});
    talk_run(&(struct talk){
        .handler = leave_lock,
        .client = ask_for_locks,
        .options = JANUS_HTTP_OPTIONS(.handler_ns = 60 * JANUS_SECONDS, .request_budget = &pool),
        .seed = 7});
}

/* Long texts. */

enum { LONG_BYTES = 1 << 20 };

/* What a call costs the task. */
#define COST(call)                                                                                 \
    ({                                                                                             \
        uint64_t before_ = janus_budget_get_current().ops;                                         \
        call;                                                                                      \
        before_ - janus_budget_get_current().ops;                                                  \
    })

static int64_t talk_at_length(janus_http *http, const janus_http_request *request)
{
    janus_websocket *socket = NULL;
    char            *text = janus_alloc(LONG_BYTES);
    const uint64_t   least = LONG_BYTES / 64;
    CHECK(text != NULL);
    memset(text, 'a', LONG_BYTES);
    text[LONG_BYTES - 2] = '\n';
    text[LONG_BYTES - 1] = '\0';
    (void)request;
    CHECK(COST(CHECK_EQ(janus_http_event(http, text, NULL, "x"), JANUS_INVALID)) >= least);
    CHECK(COST(CHECK_EQ(janus_http_event(http, NULL, text, "x"), JANUS_INVALID)) >= least);
    CHECK(COST(CHECK_EQ(janus_http_set_field(http, "A", text), JANUS_FULL)) >= 4096 / 64);
    CHECK(COST(CHECK_EQ(janus_http_set_field(http, text, "a"), JANUS_FULL)) >= 4096 / 64);
    CHECK_EQ(janus_http_answer(http, 200, text, "", 0), JANUS_INVALID);
    CHECK_EQ(janus_websocket_accept(http, NULL, &socket), JANUS_OK);
    text[LONG_BYTES - 1] = '\xff';
    CHECK(COST(CHECK_EQ(janus_websocket_send(socket, JANUS_WEBSOCKET_KIND_TEXT, text, LONG_BYTES),
                        JANUS_INVALID)) >= least - 64);
    CHECK_EQ(janus_websocket_close(socket, 1000, text), JANUS_INVALID);
    janus_websocket_destroy(socket);
    return 0;
}

static void ask_at_length(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, UPGRADE);
    CHECK(strncmp(talk_rest(talk, io), "HTTP/1.1 101 ", 13) == 0);
}

TEST("calls that scan a long text pay for it")
{
    static const janus_budget large = {
        .ops = 10000000, .memory = 4 << 20, .spawn_count = 1, .syscalls = 1000};
    talk_run(&(struct talk){.handler = talk_at_length,
                            .client = ask_at_length,
                            .max_budget = &large,
                            .options = JANUS_HTTP_OPTIONS(.request_budget = &large)});
}

static int64_t tell_lines(janus_http *http, const janus_http_request *request)
{
    static char long_line[10000];
    (void)request;
    memset(long_line, 'l', sizeof long_line - 1);
    CHECK_EQ(janus_http_event(http, "e", "i", "one\ntwo\r\nthree\rfour\n"), JANUS_OK);
    CHECK_EQ(janus_http_event(http, NULL, NULL, ""), JANUS_OK);
    return janus_http_event(http, NULL, NULL, long_line);
}

static void ask_for_lines(struct talk *talk)
{
    const char *text = talk_ask(talk, LAST("/"));
    CHECK(strstr(text, "\r\n\r\nevent: e\nid: i\ndata: one\ndata: two\ndata: three\ndata: four\n"
                       "data: \n\ndata: \n\ndata: lll") != NULL);
    const char *line = strstr(text, "data: lll");
    CHECK_EQ(strlen(line), 6 + 9999 + 2);
}

TEST("an event has a line for each line of its data, however long they are")
{
    talk_run(&(struct talk){.handler = tell_lines, .client = ask_for_lines});
}

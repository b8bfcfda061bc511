/* SPDX-License-Identifier: MIT */
/* Servers that close, lie, stall or answer early, and faults of the network. */
#include "caller.h"

#include <janusrt/explore.h>

static janus_status call_once(struct script *script, janus_http_client *client, const char *method,
                              const janus_http_call_options *options)
{
    char              url[URL_BYTES], *text = NULL;
    size_t            bytes = 0;
    janus_http_reply *reply = NULL;
    janus_status      status =
        janus_http_call(client, method, url_of(&script->at, "/", url), options, &reply);
    if (status != JANUS_OK) return status;
    status = janus_http_reply_read_all(reply, 1000, &text, &bytes);
    if (status == JANUS_OK) {
        CHECK_STR(text, "ok");
        janus_free(text);
    }
    janus_http_reply_destroy(reply);
    return status;
}

static void repeat(struct script *script, janus_http_client *client)
{
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_OK);
    /* The second connection gets no answer, as if the server had closed at the same moment. */
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_OK);
}

TEST("a call on a kept connection that ends without an answer is repeated on a fresh one")
{
    struct script script = {
        .answers = {ANSWERS(OK_ANSWER("ok", "2"), ""), ANSWERS(OK_ANSWER("ok", "2"))},
        .client = repeat};
    script_run(&script);
    CHECK_EQ(atomic_load(&script.connections), 2);
}

static void repeat_not_after_100(struct script *script, janus_http_client *client)
{
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_OK);
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_RESET);
    CHECK_EQ(look(client).repeats, 0);
}

TEST("a call is not repeated after an interim answer, which is a sign of life")
{
    struct script script = {.answers = {ANSWERS(OK_ANSWER("ok", "2"), "HTTP/1.1 103 Hi\r\n\r\n"),
                                        ANSWERS(OK_ANSWER("ok", "2"))},
                            .client = repeat_not_after_100};
    script_run(&script);
    CHECK_EQ(atomic_load(&script.connections), 1);
}

static void repeat_not(struct script *script, janus_http_client *client)
{
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_OK);
    CHECK_EQ(call_once(script, client, "POST", NULL), JANUS_RESET);
    CHECK_EQ(look(client).repeats, 0);
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_OK);
    CHECK_EQ(call_once(script, client, "POST", JANUS_HTTP_CALL_OPTIONS(.repeatable = true)),
             JANUS_OK);
    CHECK_EQ(look(client).repeats, 1);
}

TEST("POST is not repeated, unless the caller says that it may be")
{
    struct script script = {.answers = {ANSWERS(OK_ANSWER("ok", "2"), ""),
                                        ANSWERS(OK_ANSWER("ok", "2"), ""),
                                        ANSWERS(OK_ANSWER("ok", "2"))},
                            .client = repeat_not};
    script_run(&script);
    CHECK_EQ(atomic_load(&script.connections), 3);
}

static void repeat_once(struct script *script, janus_http_client *client)
{
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_OK);
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_RESET);
    CHECK_EQ(look(client).repeats, 1);
    CHECK_EQ(look(client).connection_count, 0);
}

TEST("a request is sent twice at most, and not again after the first byte of an answer")
{
    struct script script = {.answers = {ANSWERS(OK_ANSWER("ok", "2"), ""), ANSWERS("")},
                            .client = repeat_once};
    script_run(&script);
    CHECK_EQ(atomic_load(&script.connections), 2);
}

static void repeat_none(struct script *script, janus_http_client *client)
{
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_RESET);
    CHECK_EQ(look(client).repeats, 0);
    CHECK_EQ(look(client).connects, 1);
}

TEST("a call on a fresh connection is not repeated")
{
    struct script script = {.answers = {ANSWERS(""), ANSWERS(OK_ANSWER("ok", "2"))},
                            .client = repeat_none};
    script_run(&script);
}

static void cut_off(struct script *script, janus_http_client *client)
{
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_RESET);
        CHECK_EQ(look(client).connection_count, 0);
    }
    CHECK_EQ(look(client).repeats, 0);
}

TEST("an answer that is cut off is an error, wherever it ends")
{
    struct script script = {
        .answers = {ANSWERS("H"), ANSWERS("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"),
                    ANSWERS("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"),
                    ANSWERS(
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n")},
        .client = cut_off};
    script_run(&script);
}

static void nonsense(struct script *script, janus_http_client *client)
{
    for (int i = 0; i < 7; i++) {
        const char *why = NULL;
        CHECK_EQ(call_once(script, client, "GET", JANUS_HTTP_CALL_OPTIONS(.out_why = &why)),
                 JANUS_INVALID);
        CHECK_EQ(why != NULL, i < 6);
        CHECK_EQ(look(client).connection_count, 0);
    }
}

TEST("a malformed answer is refused, and its connection is closed")
{
    struct script script = {
        .answers = {ANSWERS("HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
                    ANSWERS("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"),
                    ANSWERS("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: "
                            "chunked\r\n\r\nok"),
                    ANSWERS("ICY 200 OK\r\n\r\n"), ANSWERS("HTTP/2.0 200 OK\r\n\r\n"),
                    ANSWERS("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: "
                            "upgrade\r\n\r\n"),
                    ANSWERS("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\r\n")},
        .client = nonsense};
    script_run(&script);
}

static void too_much(struct script *script, janus_http_client *client)
{
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_OK);
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_OK); /* on another connection */
    CHECK_EQ(look(client).connects, 2);
    CHECK_EQ(look(client).repeats, 0);
}

TEST("a connection on which the server says more than its answer is not used again")
{
    RIG_REAL("the simulated network may bring the rest later");
    struct script script = {
        .answers = {ANSWERS(OK_ANSWER("ok", "2") OK_ANSWER("no", "2"), OK_ANSWER("no", "2")),
                    ANSWERS(OK_ANSWER("ok", "2"))},
        .client = too_much};
    script_run(&script);
}

static void never_begin(struct script *script, janus_http_client *client)
{
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_OK);
    CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_INVALID);
    CHECK_EQ(look(client).connection_count, 0);
}

#define INTERIM "HTTP/1.1 100 Continue\r\n\r\n"
#define INTERIM_8 INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM

TEST("a server that sends interim answers for ever is refused")
{
    struct script script = {.answers = {ANSWERS(INTERIM_8 INTERIM_8 OK_ANSWER("ok", "2"),
                                                INTERIM_8 INTERIM_8 INTERIM OK_ANSWER("ok", "2"))},
                            .client = never_begin};
    script_run(&script);
}

static void kinds(struct script *script, janus_http_client *client)
{
    for (int i = 0; i < 3; i++) CHECK_EQ(call_once(script, client, "GET", NULL), JANUS_OK);
    CHECK_EQ(look(client).connects, 3);
}

TEST("interim answers are skipped; answers that close and answers of HTTP/1.0 end a connection")
{
    struct script script = {
        .answers = {ANSWERS("HTTP/1.1 200 OK\r\n\r\nok"),
                    ANSWERS("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: "
                            "a\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: "
                            "2\r\n\r\nok"),
                    ANSWERS("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")},
        .client = kinds};
    script_run(&script);
}

static janus_status give_much(void *argument, void *to, size_t max, size_t *out_got)
{
    size_t *left = argument;
    if (*left == 0) return JANUS_CLOSED;
    *out_got = *left < max ? *left : max;
    memset(to, 'z', *out_got);
    *left -= *out_got;
    return JANUS_OK;
}

static int64_t refuse_body(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 413, NULL, "no", 2);
}

static void send_much(struct talk *talk)
{
    janus_http_client *client = client_with(NULL);
    char               url[URL_BYTES];
    janus_http_reply  *reply = NULL;
    size_t             left = 4 << 20;
    janus_status       status = janus_http_call(
        client, "POST", url_of(&talk->at, "/", url),
        JANUS_HTTP_CALL_OPTIONS(.source = give_much, .argument = &left, .length = left), &reply);
    CHECK(status == JANUS_OK || status == JANUS_RESET); /* a reset may overtake the answer */
    if (status == JANUS_OK) CHECK_EQ(janus_http_reply_status(reply), 413);
    janus_http_reply_destroy(reply);
    CHECK_EQ(look(client).connection_count, 0);
    janus_http_client_destroy(client);
}

TEST("an answer that comes before the body was sent is read, if no reset overtook it")
{
    talk_run(&(struct talk){.handler = refuse_body, .client = send_much});
}

static void stall(struct script *script, janus_http_client *client)
{
    uint64_t end = janus_now_ns() + 30 * JANUS_MS;
    CHECK_EQ(call_once(script, client, "GET", JANUS_HTTP_CALL_OPTIONS(.deadline_ns = end)),
             JANUS_DEADLINE);
    CHECK(janus_now_ns() >= end);
    CHECK_EQ(look(client).connection_count, 0);
}

static int64_t say_half(janus_http *http, const janus_http_request *request)
{
    janus_status status = janus_http_begin(http, 200, NULL, 10);
    (void)request;
    if (status == JANUS_OK) status = janus_http_write(http, "half", 4);
    if (status == JANUS_OK) status = janus_http_flush(http);
    return status == JANUS_OK ? janus_sleep(3600 * JANUS_SECONDS) : status;
}

static void wait_for_half(struct talk *talk)
{
    janus_http_client *client = client_with(NULL);
    struct script      script = {.at = talk->at};
    stall(&script, client);
    janus_http_client_destroy(client);
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
}

TEST("the deadline of a call ends the wait for the body, too")
{
    talk_run(&(struct talk){.handler = say_half,
                            .client = wait_for_half,
                            .options = JANUS_HTTP_OPTIONS(.grace_ns = JANUS_MS)});
}

static void call_nobody(struct talk *talk)
{
    janus_http_client *client = client_with(NULL);
    char               url[URL_BYTES];
    janus_http_reply  *reply = NULL;
    call_for(client, &talk->at, "/", 413, "no"); /* the server runs */
    janus_http_client_drop_idle(client);
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    janus_status status = janus_http_call(client, "GET", url_of(&talk->at, "/", url), NULL, &reply);
    /* The call may come while the system still closes. */
    CHECK(status == JANUS_REFUSED || status == JANUS_RESET);
    CHECK_EQ(look(client).connection_count, 0);
    janus_http_client_destroy(client);
}

TEST("a call to a port at which nobody listens is refused, and leaves no place")
{
    talk_run(&(struct talk){.handler = refuse_body, .client = call_nobody});
}

/* Explored: clients and a server, under all faults. */

static int64_t count_up(janus_http *http, const janus_http_request *request)
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

struct meeting {
    janus_io           listener;
    janus_address      at;
    janus_http_client *client;
};

static int64_t meet_server(void *argument)
{
    struct meeting *meeting = argument;
    janus_status    status = janus_http_serve(meeting->listener, count_up, NULL,
                                              JANUS_HTTP_OPTIONS(.grace_ns = JANUS_SECONDS));
    return status == JANUS_OK || status < JANUS_OK ? 0 : -100;
}

/* A call either fails, or brings back exactly what was sent. */
static int64_t meet_client(void *argument)
{
    struct meeting *meeting = argument;
    char            url[URL_BYTES], body[64], *text = NULL;
    size_t          bytes = 0;
    url_of(&meeting->at, "/", url);
    for (int i = 0; i < 3; i++) {
        janus_http_reply *reply = NULL;
        int               length = snprintf(body, sizeof body, "call %d of %llx", i,
                                            (unsigned long long)janus_task_current_id());
        janus_status      status = janus_http_call(
            meeting->client, i == 1 ? "PUT" : "POST", url,
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

static int64_t meet(void *argument)
{
    struct meeting meeting = {0};
    janus_status   status;
    (void)argument;
    if (janus_address_parse("127.0.0.1:80", &meeting.at) != JANUS_OK) return -100;
    status = janus_listen(&meeting.at, NULL, &meeting.listener);
    if (status != JANUS_OK) return 0; /* a fault */
    if (janus_http_client_create(JANUS_HTTP_CLIENT_OPTIONS(.max_per_host = 2), &meeting.client) !=
        JANUS_OK) {
        return 0; /* a fault */
    }
    JANUS_NURSERY(n, status)
    {
        janus_status calls;
        JANUS_IGNORE(janus_spawn(n, meet_server, &meeting));
        JANUS_NURSERY(clients, calls)
        {
            for (int i = 0; i < 3; i++) {
                JANUS_IGNORE(janus_spawn(clients, meet_client, &meeting));
            }
        }
        JANUS_IGNORE(calls); /* a fault */
        janus_http_client_info info = JANUS_HTTP_CLIENT_INFO();
        if (janus_http_client_inspect(meeting.client, &info) == JANUS_OK)
            JANUS_EXPECT(info.connection_count == info.idle_count && info.idle_count <= 2);
        JANUS_IGNORE(janus_io_close(meeting.listener));
    }
    return 0;
}

TEST("explored with all faults, a call brings its own answer or an error")
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

/* SPDX-License-Identifier: MIT */
/* Clients that break the rules, or are slow, and streams that are cut. */
#include "raw.h"

#include <janusrt/memory.h>
#include <malloc.h>

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, "text/plain", "Hello!\n", 7);
}

#define ASK "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
#define ANSWER                                                                                     \
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\nConnection: "             \
    "close\r\n\r\nHello!\n"

static struct raw dial(struct talk *talk) { return raw_make(talk_open(talk), NULL); }

/* Another client is served as if nothing had happened. */
static void ask_beside(struct talk *talk)
{
    struct raw raw = dial(talk);
    raw_start(&raw, false);
    CHECK(raw_shake(&raw));
    CHECK(raw_put(&raw, ASK));
    CHECK_EQ(raw_rest(&raw, talk->text, TALK_BYTES), SSL_ERROR_ZERO_RETURN);
    CHECK_STR(talk->text, ANSWER);
    raw_end(&raw);
}

static void ask(struct talk *talk)
{
    ask_beside(talk);
    CHECK_EQ(look_tls(tls_server).handshakes, 1);
}

TEST("the server says close_notify behind its last answer")
{
    secure_run((struct talk){.handler = greet, .client = ask});
}

/* Shakes hands with these protocols offered. Returns what was chosen, or "". */
static const char *offer(struct talk *talk, const char *protocols, int *reason)
{
    static char          chosen[16];
    const unsigned char *at = NULL;
    unsigned             bytes = 0;
    struct raw           raw = dial(talk);
    CHECK_EQ(SSL_CTX_set_alpn_protos(raw.context, (const unsigned char *)protocols,
                                     (unsigned)strlen(protocols)),
             0);
    raw_start(&raw, false);
    bool good = raw_shake(&raw);
    *reason = raw_reason;
    if (good) { /* the server has not seen the end of the handshake yet */
        CHECK(raw_put(&raw, ASK));
        CHECK_EQ(raw_rest(&raw, talk->text, TALK_BYTES), SSL_ERROR_ZERO_RETURN);
    }
    SSL_get0_alpn_selected(raw.ssl, &at, &bytes);
    (void)snprintf(chosen, sizeof chosen, "%.*s", good ? (int)bytes : 0, (const char *)at);
    raw_end(&raw);
    return chosen;
}

static void offer_all(struct talk *talk)
{
    int reason = 0;
    CHECK_STR(offer(talk, "\x02h2\x08http/1.1", &reason), "http/1.1");
    CHECK_STR(offer(talk, "\x08http/1.1", &reason), "http/1.1");
    CHECK_EQ(look_tls(tls_server).failures, 0);
    CHECK_STR(offer(talk, "\x02h2", &reason), "");
    CHECK_EQ(reason, SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL);
    CHECK_STR(offer(talk, "\x08http/1.0\x03spd", &reason), "");
    CHECK_EQ(look_tls(tls_server).failures, 2);
    ask_beside(talk);
}

TEST("ALPN: the server speaks http/1.1, and refuses a client that speaks only others")
{
    secure_run((struct talk){.handler = greet, .client = offer_all});
}

static void use_old(struct talk *talk)
{
    struct raw raw = dial(talk);
    CHECK_EQ(SSL_CTX_set_max_proto_version(raw.context, TLS1_1_VERSION), 1);
    raw_start(&raw, false);
    CHECK(!raw_shake(&raw));
    CHECK_EQ(raw_reason, SSL_AD_REASON_OFFSET + SSL_AD_PROTOCOL_VERSION);
    raw_end(&raw);
    raw = dial(talk);
    CHECK_EQ(SSL_CTX_set_max_proto_version(raw.context, TLS1_2_VERSION), 1);
    CHECK_EQ(SSL_CTX_set_cipher_list(raw.context, "AES128-SHA:ECDHE-ECDSA-AES128-SHA"), 1);
    raw_start(&raw, false);
    CHECK(!raw_shake(&raw));
    CHECK_EQ(raw_reason, SSL_AD_REASON_OFFSET + SSL_AD_HANDSHAKE_FAILURE);
    raw_end(&raw);
    ask_beside(talk);
}

TEST("TLS 1.1 and ciphers without forward secrecy or authentication are refused")
{
    secure_run((struct talk){.handler = greet, .client = use_old});
}

static void renegotiate(struct talk *talk)
{
    struct raw raw = dial(talk);
    CHECK_EQ(SSL_CTX_set_max_proto_version(raw.context, TLS1_2_VERSION), 1);
    raw_start(&raw, false);
    CHECK(raw_shake(&raw));
    CHECK_EQ(SSL_renegotiate(raw.ssl), 1);
    CHECK(!raw_shake(&raw));
    if (raw_reason != 0) CHECK_EQ(raw_reason, SSL_R_NO_RENEGOTIATION); /* 0: it was not sent yet */
    raw_end(&raw);
    CHECK_EQ(look_tls(tls_server).handshakes, 1);
    ask_beside(talk);
}

TEST("a client cannot renegotiate")
{
    secure_run((struct talk){.handler = greet, .client = renegotiate});
}

static void update_keys(struct talk *talk)
{
    struct raw raw = dial(talk);
    raw_start(&raw, false);
    CHECK(raw_shake(&raw));
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(SSL_key_update(raw.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        CHECK_EQ(SSL_do_handshake(raw.ssl), 1);
        CHECK(raw_flush(&raw));
    }
    CHECK(raw_put(&raw, ASK));
    CHECK_EQ(raw_rest(&raw, talk->text, TALK_BYTES), SSL_ERROR_ZERO_RETURN);
    CHECK_STR(talk->text, ANSWER);
    raw_end(&raw);
}

TEST("a client that updates its keys a thousand times is answered with one update")
{
    secure_run((struct talk){.handler = greet, .client = update_keys});
}

static void send_garbage(struct talk *talk)
{
    static const char *const lines[] = {
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 nothing of a hello",
        "SSH-2.0-OpenSSH_9.2\r\n", "\x15\x03\x01\x00\x02\x02\x28", "\x80\x80\x01\x03\x01",
        "\x16\x03\x01\xff\xff"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char     bytes[64];
        size_t   got = 0;
        janus_io io = talk_open(talk);
        CHECK_EQ(janus_io_write(io, lines[i], strlen(lines[i]) + 1, NULL), JANUS_OK);
        CHECK_EQ(janus_io_shutdown(io, JANUS_IO_WRITE), JANUS_OK);
        janus_status status = JANUS_OK;
        while (status == JANUS_OK) status = janus_io_read(io, bytes, sizeof bytes, &got);
        CHECK(status == JANUS_CLOSED || status == JANUS_RESET);
        CHECK_EQ(janus_io_close(io), JANUS_OK);
    }
    ask_beside(talk);
    CHECK_EQ(look_tls(tls_server).failures, 5);
    CHECK(look_tls(tls_server).last[0] != '\0');
}

TEST("garbage ends its connection alone, and the server counts it")
{
    secure_run((struct talk){.handler = greet, .client = send_garbage});
}

static void speak_plainly(struct talk *talk)
{
    CHECK_STR(talk_ask(talk, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
              "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: "
              "43\r\nConnection: close\r\n\r\nThis port speaks HTTPS. Use https:// here.\n");
    CHECK_STR(look_tls(tls_server).last, "http request");
    ask_beside(talk);
}

TEST("a client that speaks plain HTTP gets 400 and a sentence")
{
    secure_run((struct talk){.handler = greet, .client = speak_plainly});
}

/* Sends a byte of a hello each second. */
static void trickle(struct talk *talk)
{
    static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and so on for long";
    janus_io          slow = talk_open(talk), silent = talk_open(talk);
    uint64_t          began = janus_now_ns();
    janus_status      status = JANUS_OK;
    for (size_t i = 0; status == JANUS_OK && i < sizeof hello; i++) {
        status = janus_io_write(slow, hello + i, 1, NULL);
        CHECK_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    }
    uint64_t lasted = (janus_now_ns() - began) / JANUS_SECONDS;
    CHECK(status == JANUS_BROKEN || status == JANUS_RESET);
    CHECK(lasted >= 10 && lasted <= 14);
    char   byte;
    size_t got = 0;
    status = janus_io_read(silent, &byte, 1, &got);
    CHECK(status == JANUS_CLOSED || status == JANUS_RESET);
    CHECK_EQ(janus_io_close(slow), JANUS_OK);
    CHECK_EQ(janus_io_close(silent), JANUS_OK);
    ask_beside(talk);
}

TEST("a handshake has head_ns in all, however its bytes trickle")
{
    secure_run((struct talk){.handler = greet,
                             .client = trickle,
                             .seed = 3,
                             .options = JANUS_HTTP_OPTIONS(.max_connections = 2)});
}

/* Sends a byte of a record each 20 s, on a connection that stands. */
static void trickle_later(struct talk *talk)
{
    struct raw raw = dial(talk);
    char      *bytes = NULL;
    raw_start(&raw, false);
    CHECK(raw_shake(&raw));
    CHECK(SSL_write(raw.ssl, ASK, sizeof ASK - 1) > 0);
    long         count = BIO_get_mem_data(raw.out, &bytes), sent = 0;
    janus_status status = JANUS_OK;
    while (status == JANUS_OK && sent < count) {
        status = janus_io_write(raw.io, bytes + sent++, 1, NULL);
        CHECK_EQ(janus_sleep(20 * JANUS_SECONDS), JANUS_OK);
    }
    CHECK(status == JANUS_BROKEN || status == JANUS_RESET);
    CHECK(sent <= 6);
    raw_end(&raw);
}

TEST("a record that trickles does not keep a connection longer than idle_ns")
{
    secure_run((struct talk){.handler = greet, .client = trickle_later, .seed = 4});
}

/* Answers a request, and cuts the connection, with a farewell or without. */
struct cut {
    janus_io    listener;
    bool        farewell;
    const char *answer;
};

static int64_t serve_cut(void *argument)
{
    struct cut  *cut = argument;
    struct paper own = own_paper();
    char         text[1024];
    janus_io     io;
    CHECK_EQ(janus_accept(cut->listener, &io, NULL), JANUS_OK);
    struct raw raw = raw_make(io, &own);
    raw_start(&raw, true);
    CHECK(raw_shake(&raw));
    int got;
    do {
        got = SSL_read(raw.ssl, text, sizeof text);
    } while (got <= 0 && raw_again(&raw, raw_judge(&raw, got)));
    CHECK(got > 0);
    CHECK(raw_put(&raw, cut->answer));
    if (cut->farewell) (void)SSL_shutdown(raw.ssl);
    CHECK(raw_flush(&raw));
    CHECK_EQ(janus_io_shutdown(raw.io, JANUS_IO_WRITE), JANUS_OK);
    (void)raw_rest(&raw, text, sizeof text);
    raw_end(&raw);
    return 0;
}

static janus_status call_cut(const char *answer, bool farewell)
{
    struct cut   cut = {.farewell = farewell, .answer = answer};
    struct talk *talk = calloc(1, sizeof *talk);
    janus_status status, read = JANUS_OK;
    CHECK(talk != NULL);
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &talk->at), JANUS_OK);
    CHECK_EQ(janus_listen(&talk->at, NULL, &cut.listener), JANUS_OK);
    CHECK_EQ(janus_io_local(cut.listener, &talk->at), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        janus_http_client *client = secure_client();
        CHECK_EQ(janus_spawn(n, serve_cut, &cut), JANUS_OK);
        char *text = secure_call(talk, client, "GET", "/", NULL, &read);
        if (read == JANUS_OK) CHECK_STR(text, "half of it");
        janus_http_client_destroy(client);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(janus_io_close(cut.listener), JANUS_OK);
    free(talk);
    return read;
}

static int64_t cut_all(void *argument)
{
    (void)argument;
    CHECK_EQ(call_cut("HTTP/1.1 200 OK\r\n\r\nhalf of it", true), JANUS_OK);
    CHECK_EQ(call_cut("HTTP/1.1 200 OK\r\n\r\nhalf of it", false), JANUS_RESET);
    CHECK_EQ(call_cut("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf of it", false), JANUS_OK);
    CHECK_EQ(call_cut("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhalf of it", true),
             JANUS_RESET);
    return 0;
}

TEST("a body without a length that is cut without a close_notify is a RESET")
{
    tls_client = trusting();
    rig_run(2, cut_all, NULL, 1);
    janus_tls_client_destroy(tls_client);
    tls_client = NULL;
}

/* A bit of the request changes on its way. */
static void flip(struct talk *talk)
{
    struct raw raw = dial(talk);
    char      *bytes = NULL;
    raw_start(&raw, false);
    CHECK(raw_shake(&raw));
    CHECK(SSL_write(raw.ssl, ASK, sizeof ASK - 1) > 0);
    long count = BIO_get_mem_data(raw.out, &bytes);
    bytes[count / 2] ^= 1;
    CHECK(raw_flush(&raw));
    int error = raw_rest(&raw, talk->text, TALK_BYTES);
    if (error == SSL_ERROR_SSL) {
        CHECK_EQ(raw_reason, SSL_AD_REASON_OFFSET + SSL_AD_BAD_RECORD_MAC);
    } else { /* the server does not wait to send an alert */
        CHECK_EQ(error, SSL_ERROR_WANT_READ);
    }
    CHECK_STR(talk->text, "");
    raw_end(&raw);
    ask_beside(talk);
}

TEST("a bit that changes on its way ends the connection, and gives no byte")
{
    secure_run((struct talk){.handler = greet, .client = flip});
}

/* Answers with little stack left. The query says how much, and is about right. */
static int64_t answer_deep(janus_http *http, const janus_http_request *request)
{
    janus_memory_info own = JANUS_MEMORY_INFO();
    CHECK_EQ(janus_memory_inspect(&own), JANUS_OK);
    size_t used = own.stack_bytes * 9 / 8 + 4096 - strtoull(request->query.at, NULL, 10) * 512;
    volatile char *deep = __builtin_alloca(used);
    deep[used - 1] = 0;
    janus_status status = janus_http_begin(http, 200, NULL, 7);
    if (status == JANUS_OK) status = janus_http_write(http, "Hello!\n", 7);
    if (status == JANUS_OK) status = janus_http_flush(http);
    return deep[used - 1] == 0 ? status : -100;
}

static void ask_deep(struct talk *talk)
{
    int answered = 0, rounds = 100;
    for (int i = 0; i < rounds; i++) {
        char       line[128];
        struct raw raw = dial(talk);
        raw_start(&raw, false);
        CHECK(raw_shake(&raw));
        (void)snprintf(line, sizeof line,
                       "GET /?%d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", i);
        CHECK(raw_put(&raw, line));
        (void)raw_rest(&raw, talk->text, TALK_BYTES);
        answered += strstr(talk->text, "Hello!\n") != NULL;
        raw_end(&raw);
    }
    CHECK(answered > 5 && answered < rounds - 5);
    CHECK_EQ(look_tls(tls_server).handshakes, rounds);
}

TEST("a handler whose stack ends near TLS panics alone")
{
    RIG_OVERFLOWS();
    RIG_REAL("the stack of a request has more than it was promised");
    if (JRT_ASAN) SKIP("stacks are larger under AddressSanitizer");
    secure_run((struct talk){.handler = answer_deep, .client = ask_deep});
}

/* A handler that writes small pieces until its budget ends it, mostly while it encrypts. */
static int64_t flood(janus_http *http, const janus_http_request *request)
{
    static char  part[8000];
    janus_status status = janus_http_begin(http, 200, NULL, JANUS_HTTP_UNKNOWN);
    (void)request;
    while (status == JANUS_OK) status = janus_http_write(http, part, sizeof part);
    return status;
}

static void drink(const struct talk *talk, janus_http_client *client, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        char              url[URL_BYTES], text[4096];
        size_t            got = 0;
        janus_http_reply *reply = NULL;
        CHECK_EQ(janus_http_call(client, "GET", secure_url(talk, "/", url), NULL, &reply),
                 JANUS_OK);
        while (janus_http_reply_read(reply, text, sizeof text, &got) == JANUS_OK) {
        }
        janus_http_reply_destroy(reply);
    }
    CHECK_EQ(janus_sleep(3 * JANUS_SECONDS), JANUS_OK); /* the server gives back what it keeps */
}

static void drink_often(struct talk *talk)
{
    int                rounds = (int)harness_part(50, 5);
    janus_http_client *client = secure_client();
    drink(talk, client, (int)harness_part(20, 5));
    size_t before = mallinfo2().uordblks;
    drink(talk, client, rounds);
    CHECK(mallinfo2().uordblks < before + (size_t)rounds * 1000); /* a piece has 8000 bytes */
    janus_http_client_destroy(client);
}

TEST("a handler whose budget ends while it encrypts leaves no memory behind")
{
    static const janus_budget each = {
        .ops = 500000, .memory = 1 << 20, .spawn_count = 5, .channel_ops = 100, .syscalls = 5000};
    static const janus_budget most = {.ops = 100000000,
                                      .memory = 10000000,
                                      .spawn_count = 500,
                                      .channel_ops = 10000,
                                      .syscalls = 50000};
    secure_run((struct talk){.handler = flood,
                             .client = drink_often,
                             .max_budget = &most,
                             .options = JANUS_HTTP_OPTIONS(.request_budget = &each),
                             .seed = 5});
}

/* Cancels a server while clients are in the middle of a handshake. */
static int64_t serve_alone(void *argument)
{
    struct talk *talk = argument;
    talk->served = janus_http_serve(talk->listener, greet, NULL, talk->options);
    return talk->served;
}

static int64_t cancel_first(void *argument)
{
    struct talk         *talk = argument;
    janus_nursery        nursery;
    janus_nursery_result result;
    janus_io             clients[5];
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &talk->at), JANUS_OK);
    CHECK_EQ(janus_listen(&talk->at, NULL, &talk->listener), JANUS_OK);
    CHECK_EQ(janus_io_local(talk->listener, &talk->at), JANUS_OK);
    CHECK(janus_nursery_open(&nursery, NULL) >= JANUS_OK);
    CHECK_EQ(janus_spawn(&nursery, serve_alone, talk), JANUS_OK);
    for (int i = 0; i < 5; i++) {
        struct raw raw = dial(talk);
        raw_start(&raw, false);
        CHECK_EQ(SSL_do_handshake(raw.ssl), -1);
        char *bytes = NULL;
        long  count = BIO_get_mem_data(raw.out, &bytes);
        CHECK_EQ(janus_io_write(raw.io, bytes, (size_t)(count * i / 4), NULL), JANUS_OK);
        SSL_free(raw.ssl);
        SSL_CTX_free(raw.context);
        clients[i] = raw.io;
    }
    JANUS_IGNORE(janus_nursery_cancel(&nursery));
    CHECK_EQ(janus_nursery_end(&nursery, &result), JANUS_CANCELLED);
    CHECK(talk->served == JANUS_CANCELLED || talk->served == JANUS_OK); /* it may not have begun */
    for (int i = 0; i < 5; i++) CHECK_EQ(janus_io_close(clients[i]), JANUS_OK);
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    return 0;
}

TEST("a cancel ends a server in the middle of handshakes")
{
    static struct talk talk;
    tls_server = server_of(own_paper(), NULL);
    talk.options = JANUS_HTTP_OPTIONS(.wire = janus_tls_server_wire(tls_server));
    rig_run(2, cancel_first, &talk, 1);
    janus_tls_server_destroy(tls_server);
    tls_server = NULL;
}

/* SPDX-License-Identifier: MIT */
/* The handshake of WebSocket (RFC 6455, 4), on a server and on a client. */
#include "http/client.h"
#include "http/server.h"
#include "http/sha1.h"
#include "http/websocket.h"

#include <sys/random.h>

enum {
    NONCE_BYTES = 16,
    KEY_BYTES = 24,    /* the nonce in base64 */
    ACCEPT_BYTES = 28, /* a sum in base64 */
    LINES_BYTES = 512, /* of the client's request */
};

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

/* What proves that the server has read the key. */
static void accept_of(const char key[KEY_BYTES], char out[ACCEPT_BYTES])
{
    char    text[KEY_BYTES + sizeof GUID - 1];
    uint8_t sum[JRT_HTTP_SHA1_BYTES];
    memcpy(text, key, KEY_BYTES);
    memcpy(text + KEY_BYTES, GUID, sizeof GUID - 1);
    jrt_http_sha1(text, sizeof text, sum);
    (void)jrt_http_base64(sum, sizeof sum, out);
}

janus_status jrt_websocket_options(const janus_websocket_options *given,
                                   janus_websocket_options       *out)
{
    memset(out, 0, sizeof *out);
    if (given != NULL) {
        size_t bytes = given->struct_bytes;
        if (bytes < sizeof bytes || bytes > sizeof *out || bytes % 8 != 0) return JANUS_INVALID;
        memcpy(out, given, bytes);
    }
    if (out->max_bytes == 0) out->max_bytes = 1 << 20;
    if (out->max_frames == 0) out->max_frames = 1024;
    if (out->ping_ns == 0) out->ping_ns = 30 * JANUS_SECONDS;
    if (out->pong_ns == 0) out->pong_ns = 10 * JANUS_SECONDS;
    if (out->write_ns == 0) out->write_ns = 30 * JANUS_SECONDS;
    if (out->max_bytes > SIZE_MAX / 4) return JANUS_INVALID;
    for (size_t i = 0; out->protocols != NULL && out->protocols[i] != NULL; i++) {
        struct jrt_http_text name = jrt_http_up_to(out->protocols[i], JRT_WEBSOCKET_PROTOCOL_BYTES);
        JANUS_IGNORE(janus_check()); /* the list may be long */
        if (!jrt_http_is_token(name) || name.bytes >= JRT_WEBSOCKET_PROTOCOL_BYTES) {
            return JANUS_INVALID;
        }
    }
    return JANUS_OK;
}

/* The only field with this name. False: there are several, or none. */
static bool only(const struct jrt_http_head *head, const char *bytes, struct jrt_http_text name,
                 struct jrt_http_text *out)
{
    int first = jrt_http_find(head, bytes, name, 0);
    if (first < 0 || jrt_http_find(head, bytes, name, first + 1) >= 0) return false;
    *out = jrt_http_text_of(bytes, head->fields[first].value);
    return true;
}

/* Whether a page of the same host asks, or no page at all. */
static bool is_same_site(const struct janus_http *http, const char *bytes)
{
    struct jrt_http_text origin;
    struct jrt_http_text host = jrt_http_private(http->request.host);
    if (jrt_http_find(&http->head, bytes, JRT_HTTP_TEXT("origin"), 0) < 0) return true;
    if (!only(&http->head, bytes, JRT_HTTP_TEXT("origin"), &origin)) return false;
    const char *slashes = memmem(origin.at, origin.bytes, "://", 3);
    if (slashes == NULL) return false;
    size_t skipped = (size_t)(slashes + 3 - origin.at);
    return jrt_http_same((struct jrt_http_text){origin.at + skipped, origin.bytes - skipped}, host);
}

/* Names the protocol that is spoken here (RFC 9110, 15.5.22). Handlers may not set such fields. */
static void offer_upgrade(struct janus_http *http)
{
    struct jrt_http_out lines = {http->rare->lines, JRT_HTTP_LINES_BYTES, http->lines_bytes};
    if (jrt_http_put_field(&lines, JRT_HTTP_TEXT("Upgrade"), JRT_HTTP_TEXT("websocket")) ==
            JANUS_OK &&
        jrt_http_put_field(&lines, JRT_HTTP_TEXT("Connection"), JRT_HTTP_TEXT("Upgrade")) ==
            JANUS_OK) {
        http->lines_bytes = lines.bytes;
    }
}

/* Says no. */
static janus_status turn_down(struct janus_http *http, unsigned status, const char *why)
{
    if (status == 426) offer_upgrade(http);
    JANUS_IGNORE(jrt_http_do_answer_text(http, status, why));
    return status == 403 ? JANUS_DENIED : JANUS_UNAVAILABLE;
}

/* Checks the request of a client. */
static janus_status judge(struct janus_http *http, bool any_origin, struct jrt_http_text *key)
{
    const struct jrt_http_head *head = &http->head;
    const char                 *bytes = http->in + http->at;
    struct jrt_http_text        version;
    uint8_t                     nonce[NONCE_BYTES];
    if (!head->upgrade || http->request.method != JANUS_HTTP_METHOD_GET ||
        !jrt_http_has(head, bytes, JRT_HTTP_TEXT("upgrade"), JRT_HTTP_TEXT("websocket"))) {
        return turn_down(http, 426, "WebSocket is spoken here.\n");
    }
    if (!only(head, bytes, JRT_HTTP_TEXT("sec-websocket-version"), &version) ||
        !jrt_http_equal(version, JRT_HTTP_TEXT("13"))) {
        JANUS_IGNORE(jrt_http_do_set_field(http, "Sec-WebSocket-Version", "13"));
        return turn_down(http, 426, "This server speaks version 13 of WebSocket.\n");
    }
    if (!only(head, bytes, JRT_HTTP_TEXT("sec-websocket-key"), key) ||
        !jrt_http_unbase64(*key, nonce, sizeof nonce) || !http->body_over) {
        return turn_down(http, 400, "The handshake of WebSocket is wrong.\n");
    }
    if (!any_origin && !is_same_site(http, bytes)) {
        return turn_down(http, 403, "Pages of other sites must not connect.\n");
    }
    return JANUS_OK;
}

/* Whether the client offers this protocol, in just these letters. */
static bool offers(const struct jrt_http_head *head, const char *bytes, struct jrt_http_text name)
{
    struct jrt_http_text field = JRT_HTTP_TEXT("sec-websocket-protocol");
    for (int i = -1; (i = jrt_http_find(head, bytes, field, i + 1)) >= 0;) {
        struct jrt_http_text list = jrt_http_text_of(bytes, head->fields[i].value), member;
        while (jrt_http_list_next(&list, &member)) {
            if (jrt_http_equal(member, name)) return true;
        }
    }
    return false;
}

/* The first protocol of ours that the client offers. */
static const char *choose_protocol(const struct janus_http *http, const char *const *ours)
{
    for (size_t i = 0; ours != NULL && ours[i] != NULL; i++) {
        JANUS_IGNORE(janus_check_n(1 + (uint32_t)http->head.bytes / JRT_HTTP_OP_BYTES));
        if (offers(&http->head, http->in + http->at, jrt_http_of(ours[i]))) return ours[i];
    }
    return "";
}

/* Writes the answer into the buffer of the server, and sends it. */
static janus_status answer(struct janus_http *http, struct jrt_http_text key, const char *protocol)
{
    struct jrt_http_out *out = &http->out;
    char                 proof[ACCEPT_BYTES];
    janus_status         status = jrt_http_make_room(http, JRT_HTTP_OUT_BYTES / 2);
    accept_of(key.at, proof);
    if (status == JANUS_OK) status = jrt_http_put_status(out, 101);
    if (status == JANUS_OK)
        status = jrt_http_put_field(out, JRT_HTTP_TEXT("Connection"), JRT_HTTP_TEXT("Upgrade"));
    if (status == JANUS_OK)
        status = jrt_http_put_field(out, JRT_HTTP_TEXT("Upgrade"), JRT_HTTP_TEXT("websocket"));
    if (status == JANUS_OK)
        status = jrt_http_put_field(out, JRT_HTTP_TEXT("Sec-WebSocket-Accept"),
                                    (struct jrt_http_text){proof, sizeof proof});
    if (status == JANUS_OK && protocol[0] != '\0')
        status =
            jrt_http_put_field(out, JRT_HTTP_TEXT("Sec-WebSocket-Protocol"), jrt_http_of(protocol));
    if (status == JANUS_OK) status = jrt_http_put_end(out);
    return status == JANUS_OK ? jrt_http_flush_all(http) : status;
}

janus_status jrt_websocket_accept(struct janus_http *http, const janus_websocket_options *given,
                                  janus_websocket **out)
{
    janus_websocket_options options;
    struct jrt_http_text    key = {NULL, 0};
    janus_websocket        *socket = NULL;
    if (http == NULL || out == NULL) return JANUS_INVALID;
    janus_status status = jrt_websocket_options(given, &options);
    if (status != JANUS_OK) return status;
    if (http->stage != JRT_HTTP_STAGE_NONE) return JANUS_STATE;
    status = judge(http, options.any_origin, &key);
    if (status != JANUS_OK) return status;
    status = jrt_websocket_make(&options, http->connection->io, http->wire, true,
                                http->in + http->body, http->end - http->body, &socket);
    if (status != JANUS_OK) return status;
    const char *protocol = choose_protocol(http, options.protocols);
    memcpy(socket->protocol, protocol, strlen(protocol) + 1);
    socket->http = http;
    http->stage = JRT_HTTP_STAGE_OVER;
    http->status = 101;
    http->keep = false;
    http->read_deadline = 0; /* unknown to the server */
    atomic_store(&http->connection->upgraded, true);
    status = answer(http, key, protocol);
    if (status != JANUS_OK) {
        janus_websocket_destroy(socket);
        return status;
    }
    *out = socket;
    return JANUS_OK;
}

/* Writes the lines that ask for WebSocket. */
static janus_status ask(struct jrt_http_out *lines, const char key[KEY_BYTES],
                        const char *const *protocols)
{
    static const char *const first[][2] = {
        {"Connection", "Upgrade"}, {"Upgrade", "websocket"}, {"Sec-WebSocket-Version", "13"}};
    janus_status status = JANUS_OK;
    for (size_t i = 0; status == JANUS_OK && i < 3; i++) {
        status = jrt_http_put_field(lines, jrt_http_of(first[i][0]), jrt_http_of(first[i][1]));
    }
    if (status == JANUS_OK)
        status = jrt_http_put_field(lines, JRT_HTTP_TEXT("Sec-WebSocket-Key"),
                                    (struct jrt_http_text){key, KEY_BYTES});
    for (size_t i = 0; protocols != NULL && status == JANUS_OK && protocols[i] != NULL; i++) {
        status = jrt_http_put_field(lines, JRT_HTTP_TEXT("Sec-WebSocket-Protocol"),
                                    jrt_http_of(protocols[i]));
    }
    return status;
}

/* Checks the answer of a server. */
static janus_status check(const janus_http_reply *reply, const char key[KEY_BYTES],
                          const janus_websocket_options *options, const char **protocol)
{
    const struct jrt_http_head *head = &reply->head;
    struct jrt_http_text        proof, chosen;
    char                        wanted[ACCEPT_BYTES];
    *protocol = "";
    if (head->status != 101) {
        if (options->out_status != NULL) *options->out_status = head->status;
        return JANUS_UNAVAILABLE;
    }
    accept_of(key, wanted);
    if (!head->upgrade ||
        !jrt_http_has(head, reply->in, JRT_HTTP_TEXT("upgrade"), JRT_HTTP_TEXT("websocket")) ||
        !only(head, reply->in, JRT_HTTP_TEXT("sec-websocket-accept"), &proof) ||
        !jrt_http_equal(proof, (struct jrt_http_text){wanted, sizeof wanted}) ||
        jrt_http_find(head, reply->in, JRT_HTTP_TEXT("sec-websocket-extensions"), 0) >= 0) {
        return JANUS_INVALID;
    }
    if (jrt_http_find(head, reply->in, JRT_HTTP_TEXT("sec-websocket-protocol"), 0) < 0) {
        return JANUS_OK;
    }
    if (!only(head, reply->in, JRT_HTTP_TEXT("sec-websocket-protocol"), &chosen)) {
        return JANUS_INVALID;
    }
    for (size_t i = 0; options->protocols != NULL && options->protocols[i] != NULL; i++) {
        *protocol = options->protocols[i];
        if (jrt_http_equal(chosen, jrt_http_of(*protocol))) return JANUS_OK;
    }
    return JANUS_INVALID;
}

/* Makes a socket of an answer that was accepted. */
static janus_status take_over(janus_http_reply *reply, const janus_websocket_options *options,
                              const char *protocol, janus_websocket **out)
{
    janus_websocket *socket = NULL;
    janus_status     status =
        jrt_websocket_make(options, reply->line->io, reply->line->wire, false,
                           reply->in + reply->body, reply->end - reply->body, &socket);
    if (status != JANUS_OK) return status;
    memcpy(socket->protocol, protocol, strlen(protocol) + 1);
    socket->reply = reply;
    reply->keep = false;
    *out = socket;
    return JANUS_OK;
}

janus_status janus_websocket_connect(janus_http_client *client, const char *url,
                                     const janus_websocket_options *given, janus_websocket **out)
{
    struct jrt_client_request request = {.options = {.struct_bytes = sizeof request.options}};
    janus_websocket_options   options;
    janus_http_reply         *reply = NULL;
    uint8_t                   nonce[NONCE_BYTES];
    char                      key[KEY_BYTES], text[LINES_BYTES];
    struct jrt_http_out       lines = {text, sizeof text, 0};
    const char               *protocol = "";
    if (client == NULL || url == NULL || out == NULL) return JANUS_INVALID;
    janus_status status = jrt_websocket_options(given, &options);
    if (status != JANUS_OK) return status;
    request.options.fields = options.fields;
    request.options.field_count = options.field_count;
    request.options.deadline_ns = options.deadline_ns;
    if (getrandom(nonce, sizeof nonce, 0) != sizeof nonce) return JANUS_SYSTEM;
    (void)jrt_http_base64(nonce, sizeof nonce, key);
    status = ask(&lines, key, options.protocols);
    if (status != JANUS_OK) return status;
    request.upgrade = (struct jrt_http_text){text, lines.bytes};
    status = jrt_client_request_init(client, "GET", url, "ws", &request);
    if (status == JANUS_OK) status = jrt_client_call(client, &request, &reply);
    if (status != JANUS_OK) return status;
    status = check(reply, key, &options, &protocol);
    if (status == JANUS_OK) status = take_over(reply, &options, protocol, out);
    if (status != JANUS_OK) janus_http_reply_destroy(reply);
    return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * Redirects (RFC 9110, 15.4), if a call asks for them. The client follows one only if that can
 * neither tell a secret to a stranger nor do something twice. Otherwise the redirect itself is the
 * answer.
 */
#include "http/block.h"
#include "http/client.h"

#include <janusrt/memory.h>

enum { DROP_BYTES = 4096 }; /* of the body of a redirect, so that the connection serves again */

static bool is(struct jrt_http_text text, const char *other)
{
    return jrt_http_same(text, jrt_client_text(other));
}

bool jrt_client_may_send(const struct jrt_client_request *request, const char *name)
{
    static const char *const harmless[] = {"accept", "accept-language", "user-agent"};
    if (name == NULL) return true; /* refused later */
    struct jrt_http_text field = jrt_client_text(name);
    if (request->turned && field.bytes >= 8 && is((struct jrt_http_text){name, 8}, "content-")) {
        return false;
    }
    for (size_t i = 0; request->away && i < sizeof harmless / sizeof harmless[0]; i++) {
        if (is(field, harmless[i])) return true;
    }
    return !request->away;
}

static bool is_redirect(unsigned status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Whether the next request is a GET without a body, whatever the last one was. */
static bool becomes_get(struct jrt_http_text method, unsigned status)
{
    if (status == 303) return !jrt_http_equal(method, JRT_HTTP_TEXT("HEAD"));
    return (status == 301 || status == 302) && jrt_http_equal(method, JRT_HTTP_TEXT("POST"));
}

static void make_get(struct jrt_client_request *request)
{
    request->method = JRT_HTTP_TEXT("GET");
    request->turned = true;
    request->options.type = NULL;
    request->options.body = NULL;
    request->options.body_bytes = 0;
    request->options.source = NULL;
}

static bool is_same_origin(const struct jrt_http_url *one, const struct jrt_http_url *other)
{
    return strcmp(one->host, other->host) == 0 && strcmp(one->port, other->port) == 0 &&
           one->secure == other->secure;
}

/* Whether the request, changed for the redirect, may go to `url`. */
static bool may_go(const struct jrt_client_request *next, const struct jrt_http_url *url,
                   const janus_http_client *client)
{
    const struct jrt_http_url *from = &next->url;
    bool                       safe = jrt_http_equal(next->method, JRT_HTTP_TEXT("GET")) ||
                jrt_http_equal(next->method, JRT_HTTP_TEXT("HEAD"));
    if (next->options.source != NULL) return false; /* it cannot give its body again */
    if (from->secure && !url->secure) return false;
    if (url->secure && client->options.wire == NULL) return false;
    return is_same_origin(from, url) || (safe && next->options.body_bytes == 0);
}

/* Reads the address of a redirect. INVALID: it is malformed. UNAVAILABLE: it has another scheme. */
static janus_status read_location(struct jrt_client_request *request, struct jrt_http_text where,
                                  char **out_text, struct jrt_http_url *out)
{
    size_t       room = where.bytes + request->url.authority.bytes + request->url.target.bytes + 16;
    janus_status status = jrt_http_alloc(room, (void **)out_text);
    if (status != JANUS_OK) return status;
    status = jrt_http_url_resolve(&request->url, request->url.secure ? "https" : "http", where,
                                  *out_text, room);
    if (status == JANUS_OK) status = jrt_http_url_read(*out_text, "http", out, &request->why);
    if (status == JANUS_OK) return status;
    janus_free(*out_text);
    if (status == JANUS_INVALID) request->why = "the address of a redirect is malformed";
    return status;
}

/* Gives the answer back. A short rest of its body is read, so that its connection can stay. */
static void drop(janus_http_reply *reply)
{
    char   bytes[512];
    size_t got, all = 0;
    while (all < DROP_BYTES && reply->head.framing == JRT_HTTP_LENGTH && reply->left < DROP_BYTES &&
           janus_http_reply_read(reply, bytes, sizeof bytes, &got) == JANUS_OK) {
        all += got;
    }
    janus_http_reply_destroy(reply);
}

/* Changes the request as the answer asks. *follows: it did, and the answer is gone. */
static janus_status redirect(janus_http_reply *reply, struct jrt_client_request *request,
                             bool *follows)
{
    struct jrt_client_request next = *request;
    struct jrt_http_url       url;
    janus_http_text           where;
    char                     *text = NULL;
    *follows = false;
    if (!is_redirect(reply->head.status) ||
        janus_http_reply_field(reply, "Location", &where) != JANUS_OK) {
        return JANUS_OK;
    }
    janus_status status =
        read_location(request, (struct jrt_http_text){where.at, where.bytes}, &text, &url);
    if (status == JANUS_UNAVAILABLE) return JANUS_OK;
    if (status != JANUS_OK) return status;
    if (becomes_get(next.method, reply->head.status)) make_get(&next);
    if (!may_go(&next, &url, reply->client)) {
        janus_free(text);
        return JANUS_OK;
    }
    next.away = next.away || !is_same_origin(&next.url, &url);
    janus_free(next.address);
    next.address = text;
    next.url = url;
    *request = next;
    *follows = true;
    drop(reply);
    return JANUS_OK;
}

janus_status jrt_client_call_on(janus_http_client *client, struct jrt_client_request *request,
                                janus_http_reply **out)
{
    janus_status status;
    for (uint32_t left = request->options.max_redirects;; left--) {
        janus_http_reply *reply = NULL;
        bool              follows = false;
        status = jrt_client_call(client, request, &reply);
        if (status == JANUS_OK && left > 0) {
            status = redirect(reply, request, &follows);
            if (status != JANUS_OK) janus_http_reply_destroy(reply);
        }
        if (status == JANUS_OK && follows) continue;
        if (status == JANUS_OK) *out = reply;
        break;
    }
    janus_free(request->address);
    return status;
}

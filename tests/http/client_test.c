/* SPDX-License-Identifier: MIT */
/* The client: calls, bodies both ways, fields, trailers, what it refuses to send. */
#include "caller.h"

#include <janusrt/explain.h>

/* Answers with method, target, and the body that came. */
static int64_t echo(janus_http *http, const janus_http_request *request)
{
    char  *body = NULL, head[256];
    size_t bytes = 0;
    if (talk_is(request->path, "/long")) {
        CHECK_EQ(janus_http_limit_body(http, JANUS_HTTP_UNKNOWN), JANUS_OK);
    }
    janus_status status = janus_http_read_all(http, &body, &bytes);
    if (status != JANUS_OK) return status;
    janus_http_text kind = {"-", 1}, token = {"-", 1}, trailer = {"-", 1};
    JANUS_IGNORE(janus_http_field(http, "content-type", &kind));
    JANUS_IGNORE(janus_http_field(http, "x-token", &token));
    JANUS_IGNORE(janus_http_trailer(http, "x-sum", &trailer));
    int head_bytes =
        snprintf(head, sizeof head, "%.*s %.*s?%.*s %.*s %.*s ", (int)request->method_text.bytes,
                 request->method_text.at, (int)request->path.bytes, request->path.at,
                 (int)request->query.bytes, request->query.bytes > 0 ? request->query.at : "",
                 (int)kind.bytes, kind.at, (int)token.bytes, token.at);
    status = janus_http_begin(http, 200, "text/plain",
                              talk_is(request->path, "/chunked") ? JANUS_HTTP_UNKNOWN
                                                                 : (size_t)head_bytes + bytes);
    if (status == JANUS_OK) status = janus_http_write(http, head, (size_t)head_bytes);
    if (status == JANUS_OK) status = janus_http_write(http, body, bytes);
    if (status == JANUS_OK && talk_is(request->path, "/chunked"))
        status = janus_http_set_trailer(http, "X-Sum", "42");
    janus_free(body);
    return status;
}

static janus_http_client *client;

static const char *call_text(struct talk *talk, const char *method, const char *path,
                             const janus_http_call_options *options)
{
    char              url[URL_BYTES], *text = NULL;
    size_t            bytes = 0;
    janus_http_reply *reply = NULL;
    CHECK_EQ(janus_http_call(client, method, url_of(&talk->at, path, url), options, &reply),
             JANUS_OK);
    CHECK_EQ(janus_http_reply_status(reply), 200);
    CHECK_EQ(janus_http_reply_read_all(reply, 1 << 20, &text, &bytes), JANUS_OK);
    CHECK(bytes < sizeof talk->text);
    memcpy(talk->text, text, bytes + 1);
    janus_free(text);
    janus_http_reply_destroy(reply);
    return talk->text;
}

static void call_all(struct talk *talk)
{
    static const janus_http_pair fields[] = {{"X-Token", "secret"}, {"Accept", "text/html"}};
    client = client_with(NULL);
    CHECK_STR(call_text(talk, "GET", "", NULL), "GET /? - - ");
    CHECK_STR(call_text(talk, "GET", "?a", NULL), "GET /?a - - ");
    CHECK_STR(call_text(talk, "GET", "/a/b?c=d&e", NULL), "GET /a/b?c=d&e - - ");
    CHECK_STR(call_text(talk, "DELETE", "/a",
                        JANUS_HTTP_CALL_OPTIONS(.fields = fields, .field_count = 2)),
              "DELETE /a? - secret ");
    CHECK_STR(call_text(talk, "POST", "/a",
                        JANUS_HTTP_CALL_OPTIONS(.type = "a/b", .body = "hello", .body_bytes = 5)),
              "POST /a? a/b - hello");
    CHECK_STR(call_text(talk, "POST", "/chunked",
                        JANUS_HTTP_CALL_OPTIONS(.body = "hello", .body_bytes = 5)),
              "POST /chunked? - - hello");
    CHECK_STR(call_text(talk, "PUT", "/none", NULL), "PUT /none? - - ");
    janus_http_client_info info = look(client);
    CHECK_EQ(info.calls, 7);
    CHECK_EQ(info.connects, 1);
    CHECK_EQ(info.connection_count, 1);
    CHECK_EQ(info.idle_count, 1);
    janus_http_client_destroy(client);
}

TEST("calls send methods, targets, fields and bodies, over one connection")
{
    talk_run(&(struct talk){.handler = echo, .client = call_all});
}

static void call_by_name(struct talk *talk)
{
    char              url[URL_BYTES], *text = NULL;
    size_t            bytes = 0;
    janus_http_reply *reply = NULL;
    client = client_with(NULL);
    (void)snprintf(url, sizeof url, "http://LocalHost:%u/x", (unsigned)talk->at.port);
    CHECK_EQ(janus_http_call(client, "GET", url, NULL, &reply), JANUS_OK);
    CHECK_EQ(janus_http_reply_status(reply), 200);
    CHECK_EQ(janus_http_reply_read_all(reply, 100, &text, &bytes), JANUS_OK);
    janus_free(text);
    janus_http_reply_destroy(reply);
    (void)snprintf(url, sizeof url, "http://localhost:%u/x", (unsigned)talk->at.port);
    CHECK_EQ(janus_http_call(client, "HEAD", url, NULL, &reply), JANUS_OK);
    CHECK_EQ(janus_http_reply_length(reply), 0);
    janus_http_reply_destroy(reply);
    CHECK_EQ(look(client).connects, 1);
    janus_http_client_destroy(client);
}

TEST("a name is looked up, in any case of letters, and HEAD has no body")
{
    talk_run(&(struct talk){.handler = echo, .client = call_by_name});
}

struct flow {
    size_t       left;
    janus_status end;
};

/* Gives `left` bytes, then `end`. */
static janus_status give(void *argument, void *to, size_t max, size_t *out_got)
{
    struct flow *flow = argument;
    if (flow->left == 0) return flow->end;
    *out_got = flow->left < max ? flow->left : max;
    if (*out_got > 1000) *out_got = 1000;
    memset(to, 'x', *out_got);
    flow->left -= *out_got;
    return JANUS_OK;
}

static void stream_up(struct talk *talk)
{
    enum { BYTES = 40000 };
    static const uint64_t lengths[] = {BYTES, JANUS_HTTP_UNKNOWN};
    client = client_with(NULL);
    for (int i = 0; i < 2; i++) {
        struct flow flow = {BYTES, JANUS_CLOSED};
        const char *text = call_text(
            talk, "POST", i == 0 ? "/long" : "/chunked",
            JANUS_HTTP_CALL_OPTIONS(.source = give, .argument = &flow, .length = lengths[i]));
        CHECK_EQ(strlen(text), strlen(i == 0 ? "POST /long? - - " : "POST /chunked? - - ") + BYTES);
        CHECK_EQ(strspn(strrchr(text, ' ') + 1, "x"), BYTES);
    }
    CHECK_EQ(look(client).connects, 1);
    janus_http_client_destroy(client);
}

TEST("a body that comes from a function is sent with its length, or in chunks")
{
    talk_run(&(struct talk){.handler = echo, .client = stream_up});
}

static void stream_wrong(struct talk *talk)
{
    static const struct {
        struct flow  flow;
        uint64_t     length;
        janus_status status;
    } rows[] = {{{10, JANUS_CLOSED}, 20, JANUS_FULL},
                {{10, JANUS_CLOSED}, 5, JANUS_FULL},
                {{10, JANUS_DENIED}, JANUS_HTTP_UNKNOWN, JANUS_DENIED},
                {{10, (janus_status)-100}, 10, (janus_status)-100}};
    char              url[URL_BYTES];
    janus_http_reply *reply = NULL;
    client = client_with(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct flow flow = rows[i].flow;
        CHECK_EQ(janus_http_call(client, "POST", url_of(&talk->at, "/", url),
                                 JANUS_HTTP_CALL_OPTIONS(.source = give, .argument = &flow,
                                                         .length = rows[i].length),
                                 &reply),
                 rows[i].status);
        CHECK(reply == NULL);
        CHECK_EQ(look(client).connection_count, 0);
    }
    janus_http_client_destroy(client);
}

TEST("a source that fails, or gives another length, ends its call and the connection")
{
    talk_run(&(struct talk){.handler = echo, .client = stream_wrong});
}

static void stream_down(struct talk *talk)
{
    char              url[URL_BYTES], part[7];
    size_t            got = 0, have = 0;
    janus_http_reply *reply = NULL;
    janus_http_text   value, name;
    janus_status      status;
    client = client_with(NULL);
    CHECK_EQ(janus_http_call(client, "POST", url_of(&talk->at, "/chunked", url),
                             JANUS_HTTP_CALL_OPTIONS(.body = "0123456789", .body_bytes = 10),
                             &reply),
             JANUS_OK);
    CHECK_EQ(janus_http_reply_length(reply), JANUS_HTTP_UNKNOWN);
    CHECK_EQ(janus_http_reply_trailer(reply, "x-sum", &value), JANUS_STATE);
    while ((status = janus_http_reply_read(reply, part, sizeof part, &got)) == JANUS_OK) {
        CHECK(got > 0 && got <= sizeof part);
        have += got;
    }
    CHECK_EQ(status, JANUS_CLOSED);
    CHECK_EQ(have, strlen("POST /chunked? - - ") + 10);
    CHECK_EQ(janus_http_reply_trailer(reply, "x-sum", &value), JANUS_OK);
    CHECK(talk_is(value, "42"));
    CHECK_EQ(janus_http_reply_trailer(reply, "x-other", &value), JANUS_NOT_FOUND);
    CHECK_EQ(janus_http_reply_field(reply, "CONTENT-TYPE", &value), JANUS_OK);
    CHECK(talk_is(value, "text/plain"));
    CHECK_EQ(janus_http_reply_field_at(reply, 0, &name, &value), JANUS_OK);
    CHECK(talk_is(name, "Date"));
    CHECK_EQ(janus_http_reply_field_at(reply, 99, &name, &value), JANUS_NOT_FOUND);
    CHECK_EQ(look(client).idle_count, 1); /* the end of the body gave the connection back */
    janus_http_reply_destroy(reply);
    janus_http_client_destroy(client);
}

TEST("a body is read in parts, with its trailers behind it")
{
    talk_run(&(struct talk){.handler = echo, .client = stream_down});
}

static void limit_body(struct talk *talk)
{
    static char       body[5000];
    char              url[URL_BYTES], *text = NULL;
    size_t            bytes = 0;
    janus_http_reply *reply = NULL;
    client = client_with(NULL);
    memset(body, 'y', sizeof body);
    for (int i = 0; i < 4; i++) {
        size_t all = sizeof body + strlen(i % 2 == 0 ? "POST /long? - - " : "POST /chunked? - - ");
        bool   fits = i >= 2;
        CHECK_EQ(janus_http_call(
                     client, "POST", url_of(&talk->at, i % 2 == 0 ? "/long" : "/chunked", url),
                     JANUS_HTTP_CALL_OPTIONS(.body = body, .body_bytes = sizeof body), &reply),
                 JANUS_OK);
        CHECK_EQ(janus_http_reply_read_all(reply, fits ? all : all - 1, &text, &bytes),
                 fits ? JANUS_OK : JANUS_FULL);
        if (fits) CHECK_EQ(bytes, all);
        if (fits) janus_free(text);
        janus_http_reply_destroy(reply);
    }
    janus_http_client_destroy(client);
}

TEST("a whole body has at most as many bytes as its reader allows")
{
    talk_run(&(struct talk){.handler = echo, .client = limit_body});
}

static void refuse(struct talk *talk, const char *method, const char *url,
                   const janus_http_call_options *given, janus_status status)
{
    janus_http_call_options options = {.struct_bytes = sizeof options};
    const char             *why = NULL;
    janus_http_reply       *reply = NULL;
    (void)talk;
    if (given != NULL) options = *given;
    options.out_why = &why;
    CHECK_EQ(janus_http_call(client, method, url, &options, &reply), status);
    CHECK_EQ(why != NULL, status == JANUS_INVALID || status == JANUS_UNAVAILABLE);
    char text[512]; /* not the sentence of an earlier call */
    CHECK(why == NULL || (janus_explain(text, sizeof text) > 0 && strstr(text, why) != NULL));
    CHECK(reply == NULL);
}

static void call_wrongly(struct talk *talk)
{
    static const char *const names[] = {"Content-Length",
                                        "transfer-encoding",
                                        "Connection",
                                        "Host",
                                        "Upgrade",
                                        "TE",
                                        "Expect",
                                        "a b",
                                        "",
                                        "X:Y",
                                        "X\r\n"};
    char                     url[URL_BYTES];
    client = client_with(NULL);
    CHECK_STR(call_text(talk, "GET", "/", NULL), "GET /? - - "); /* the server runs */
    url_of(&talk->at, "/", url);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const janus_http_pair field = {names[i], "1"};
        refuse(talk, "GET", url, JANUS_HTTP_CALL_OPTIONS(.fields = &field, .field_count = 1),
               JANUS_INVALID);
    }
    const janus_http_pair injected = {"X-A", "b\r\nX-C: d"}, bell = {"X-A", "\a"};
    refuse(talk, "GET", url, JANUS_HTTP_CALL_OPTIONS(.fields = &injected, .field_count = 1),
           JANUS_INVALID);
    refuse(talk, "GET", url, JANUS_HTTP_CALL_OPTIONS(.fields = &bell, .field_count = 1),
           JANUS_INVALID);
    refuse(talk, "GET", url, JANUS_HTTP_CALL_OPTIONS(.type = "a/b\nX: y"), JANUS_INVALID);
    refuse(talk, "G ET", url, NULL, JANUS_INVALID);
    refuse(talk, "", url, NULL, JANUS_INVALID);
    refuse(talk, "CONNECT", url, NULL, JANUS_INVALID);
    refuse(talk, "GET", "http://127.0.0.1/a b", NULL, JANUS_INVALID);
    refuse(talk, "GET", "http://127.0.0.1/a\r\nX: y", NULL, JANUS_INVALID);
    refuse(talk, "GET", "http://127.0.0.1/%zz", NULL, JANUS_INVALID);
    refuse(talk, "GET", "https://127.0.0.1/", NULL, JANUS_UNAVAILABLE);
    CHECK_EQ(look(client).connects, 1);
    static char long_value[20000];
    memset(long_value, 'v', sizeof long_value - 1);
    const janus_http_pair longer = {"X-A", long_value};
    refuse(talk, "GET", url, JANUS_HTTP_CALL_OPTIONS(.fields = &longer, .field_count = 1),
           JANUS_FULL);
    CHECK_EQ(look(client).connects, 1);
    janus_http_client_destroy(client);
}

TEST("nothing that a caller passes can end a line, begin a field or frame a body")
{
    talk_run(&(struct talk){.handler = echo, .client = call_wrongly});
}

/* SPDX-License-Identifier: MIT */
/* A proxy: requests that are passed on, and answers that are passed back. */
#include "caller.h"

#define HEAD(method, path) method " " path " HTTP/1.1\r\nHost: a\r\nX-Proxy: yes\r\n"
#define LAST "Connection: close, X-Hop\r\n"

static janus_http_client *client;

/* What the server behind the proxy does. */
static int64_t behind(janus_http *http, const janus_http_request *request)
{
    char            text[512], *body = NULL;
    size_t          bytes = 0;
    janus_http_text via = {"-", 1}, hop = {"-", 1}, end = {"-", 1}, kind = {"-", 1};
    if (talk_is(request->path, "/cut")) {
        CHECK_EQ(janus_http_begin(http, 200, NULL, JANUS_HTTP_UNKNOWN), JANUS_OK);
        CHECK_EQ(janus_http_write(http, "half", 4), JANUS_OK);
        return -100;
    }
    if (talk_is(request->path, "/304")) return janus_http_answer(http, 304, NULL, NULL, 0);
    janus_status status = janus_http_read_all(http, &body, &bytes);
    if (status != JANUS_OK) return status;
    JANUS_IGNORE(janus_http_field(http, "via", &via));
    JANUS_IGNORE(janus_http_field(http, "x-hop", &hop));
    JANUS_IGNORE(janus_http_field(http, "x-end", &end));
    JANUS_IGNORE(janus_http_field(http, "content-type", &kind));
    int length =
        snprintf(text, sizeof text, "%.*s %.*s?%.*s via=%.*s hop=%.*s end=%.*s type=%.*s %s",
                 (int)request->method_text.bytes, request->method_text.at, (int)request->path.bytes,
                 request->path.at, (int)request->query.bytes,
                 request->query.at != NULL ? request->query.at : "", (int)via.bytes, via.at,
                 (int)hop.bytes, hop.at, (int)end.bytes, end.at, (int)kind.bytes, kind.at, body);
    CHECK_EQ(janus_http_set_field(http, "X-Answer", "yes"), JANUS_OK);
    unsigned code = talk_is(request->path, "/none") ? 404 : 200;
    if (!talk_is(request->path, "/stream"))
        return janus_http_answer(http, code, "a/b", text, (size_t)length);
    status = janus_http_begin(http, 200, "a/b", JANUS_HTTP_UNKNOWN);
    for (int i = 0; status == JANUS_OK && i < length; i++) {
        status = janus_http_write(http, text + i, 1);
        if (status == JANUS_OK) status = janus_http_flush(http);
    }
    return status;
}

/* Passes a request on to its own server, if it says so. */
static int64_t pass_on(janus_http *http, const janus_http_request *request)
{
    static const janus_http_pair asked[] = {{"X-Proxy", "no"}};
    const struct talk           *talk = request->argument;
    char                         url[URL_BYTES];
    janus_http_text              proxy;
    janus_http_reply            *reply = NULL;
    CHECK_EQ(janus_http_field(http, "x-proxy", &proxy), JANUS_OK);
    if (janus_http_text_equal(proxy, "no")) return behind(http, request);
    if (talk_is(request->path, "/read")) {
        char        byte;
        size_t      got;
        const char *why = "";
        CHECK_EQ(janus_http_read(http, &byte, 1, &got), JANUS_OK);
        CHECK_EQ(janus_http_call(client, NULL, url_of(&talk->at, "", url),
                                 JANUS_HTTP_CALL_OPTIONS(.forwards = http, .out_why = &why),
                                 &reply),
                 JANUS_INVALID);
        CHECK_STR(why, "the body of the request was read before");
        CHECK_EQ(janus_http_call(client, NULL, url, NULL, &reply), JANUS_INVALID);
        CHECK_EQ(janus_http_answer_reply(http, NULL), JANUS_INVALID);
        return janus_http_answer_text(http, 200, "no");
    }
    janus_status status = janus_http_call(
        client, NULL, url_of(&talk->at, "", url),
        JANUS_HTTP_CALL_OPTIONS(.forwards = http, .fields = asked, .field_count = 1), &reply);
    if (status != JANUS_OK) return status;
    return janus_http_answer_reply(http, reply);
}

static void use_the_proxy(struct talk *talk)
{
    client = client_with(NULL);
    CHECK_STR(talk_ask(talk, HEAD("GET", "/a%20b?c=d&e") LAST "X-Hop: 1\r\nX-End: 2\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nX-Answer: yes\r\nContent-Type: a/b\r\nContent-Length: 52\r\n"
              "Connection: close\r\n\r\nGET /a%20b?c=d&e via=1.1 janusrt hop=- end=2 type=- ");
    CHECK(strstr(talk_ask(talk, HEAD("POST", "/") LAST "Content-Type: x/y\r\nContent-Length: 5\r\n"
                                                       "\r\nhello"),
                 "POST /? via=1.1 janusrt hop=- end=- type=x/y hello") != NULL);
    CHECK(strstr(talk_ask(talk, HEAD("PATCH", "/") LAST "Transfer-Encoding: chunked\r\n\r\n"
                                                        "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"),
                 "PATCH /? via=1.1 janusrt hop=- end=- type=- hello") != NULL);
    CHECK(strstr(talk_ask(talk, HEAD("OPTIONS", "*") LAST "\r\n"), "OPTIONS *? via=") != NULL);
    CHECK(strstr(talk_ask(talk, HEAD("GET", "http://a?b") LAST "\r\n"), "GET /?b via=") != NULL);
    CHECK(strstr(talk_ask(talk, HEAD("HEAD", "/") LAST "\r\n"), "Content-Length: 4") != NULL);
    const char *text = talk_ask(talk, HEAD("GET", "/none") LAST "\r\n");
    CHECK(strncmp(text, "HTTP/1.1 404 ", 13) == 0 && strstr(text, "GET /none") != NULL);
    CHECK(strncmp(talk_ask(talk, HEAD("GET", "/304") LAST "\r\n"), "HTTP/1.1 304 ", 13) == 0);
    text = talk_ask(talk, HEAD("GET", "/stream") LAST "\r\n");
    CHECK(strstr(text, "Transfer-Encoding: chunked\r\n") != NULL);
    CHECK(strstr(text, "0\r\n\r\n") != NULL); /* whole */
    CHECK(strstr(talk_ask(talk, HEAD("POST", "/read") LAST "Content-Length: 2\r\n\r\nab"), "no"));
    janus_http_client_destroy(client);
}

TEST("a proxy passes on method, target, fields and bodies, and answers with what came back")
{
    static struct talk talk = {.handler = pass_on, .client = use_the_proxy};
    talk.argument = &talk;
    talk_run(&talk);
}

static void see_the_end(struct talk *talk)
{
    size_t   got = 0, have = 0;
    janus_io io = talk_open(talk);
    client = client_with(NULL);
    talk_put(io, HEAD("GET", "/cut") "\r\n");
    while (janus_io_read(io, talk->text + have, TALK_BYTES - 1 - have, &got) == JANUS_OK)
        have += got;
    talk->text[have] = '\0';
    CHECK(strstr(talk->text, "\r\n0\r\n") == NULL); /* no last chunk */
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    CHECK_EQ(look(client).connection_count, 0);
    janus_http_client_destroy(client);
}

TEST("an answer that is cut off behind the proxy is cut off in front of it")
{
    static struct talk talk = {.handler = pass_on, .client = see_the_end};
    talk.argument = &talk;
    talk_run(&talk);
}

/* A server with too many fields for the answer of a proxy: a proxy takes 4 KiB. */
static int64_t pass_much(janus_http *http, const janus_http_request *request)
{
    static char        value[1300];
    const struct talk *talk = request->argument;
    char               url[URL_BYTES];
    janus_http_text    via;
    janus_http_reply  *reply = NULL;
    if (janus_http_field(http, "via", &via) == JANUS_OK) {
        memset(value, 'v', sizeof value - 1);
        CHECK_EQ(janus_http_set_field(http, "X-Secret", "1"), JANUS_OK);
        for (int i = 0; i < 3; i++) CHECK_EQ(janus_http_set_field(http, "X", value), JANUS_OK);
        return janus_http_answer(http, 200, value + sizeof value - 201, "much", 4);
    }
    CHECK_EQ(janus_http_set_field(http, "X-Own", "2"), JANUS_OK);
    CHECK_EQ(janus_http_call(client, NULL, url_of(&talk->at, "", url),
                             JANUS_HTTP_CALL_OPTIONS(.forwards = http), &reply),
             JANUS_OK);
    CHECK_EQ(janus_http_answer_reply(http, reply), JANUS_FULL);
    return janus_http_answer_text(http, 502, "too much");
}

static void see_nothing_of_it(struct talk *talk)
{
    client = client_with(NULL);
    const char *text = talk_ask(talk, HEAD("GET", "/") LAST "\r\n");
    CHECK(strncmp(text, "HTTP/1.1 502 ", 13) == 0);
    CHECK(strstr(text, "X-Own: 2\r\n") != NULL && strstr(text, "X-Secret") == NULL);
    janus_http_client_destroy(client);
}

TEST("an answer that cannot be passed back leaves none of its fields in the proxy's own answer")
{
    static struct talk talk = {.handler = pass_much, .client = see_nothing_of_it};
    talk.argument = &talk;
    talk_run(&talk);
}

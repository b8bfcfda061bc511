/* SPDX-License-Identifier: MIT */
/* The client: redirects, and bodies that wait for the server. */
#include "caller.h"

/* Redirects "/307?where" to where, in which PORT is the own port. Shows all other requests. */
static int64_t redirect(janus_http *http, const janus_http_request *request)
{
    uint64_t           status;
    janus_http_text    code = {request->path.at + 1, request->path.bytes - 1};
    const struct talk *talk = request->argument;
    if (janus_http_text_number(code, &status) == JANUS_OK) {
        char where[256], *port;
        CHECK(request->query.bytes < 128);
        if (request->query.bytes > 0) memcpy(where, request->query.at, request->query.bytes);
        where[request->query.bytes] = '\0';
        if ((port = strstr(where, "PORT")) != NULL) {
            char rest[128];
            (void)snprintf(rest, sizeof rest, "%s", port + 4);
            port += snprintf(port, 8, "%u", (unsigned)talk->at.port);
            memcpy(port, rest, strlen(rest) + 1);
        }
        if (where[0] != '\0') CHECK_EQ(janus_http_set_field(http, "Location", where), JANUS_OK);
        return janus_http_answer_text(http, (unsigned)status, "elsewhere");
    }
    char            text[512], *body = NULL;
    size_t          bytes = 0;
    janus_http_text kind = {"-", 1}, token = {"-", 1}, agent = {"-", 1};
    CHECK_EQ(janus_http_read_all(http, &body, &bytes), JANUS_OK);
    JANUS_IGNORE(janus_http_field(http, "content-type", &kind));
    JANUS_IGNORE(janus_http_field(http, "authorization", &token));
    JANUS_IGNORE(janus_http_field(http, "user-agent", &agent));
    (void)snprintf(text, sizeof text, "%.*s %.*s %.*s %.*s %.*s %s",
                   (int)request->method_text.bytes, request->method_text.at,
                   (int)request->path.bytes, request->path.at, (int)kind.bytes, kind.at,
                   (int)token.bytes, token.at, (int)agent.bytes, agent.at, body);
    return janus_http_answer_text(http, 200, text);
}

static janus_http_client *client;

static const janus_http_pair fields[] = {{"Authorization", "secret"}, {"User-Agent", "me"}};

/* Calls with a body, or without, and returns the body of the answer. */
static const char *go(struct talk *talk, const char *method, const char *path, const char *body,
                      unsigned status)
{
    char              url[URL_BYTES], *text = NULL;
    size_t            bytes = 0;
    janus_http_reply *reply = NULL;
    CHECK_EQ(janus_http_call(client, method, url_of(&talk->at, path, url),
                             JANUS_HTTP_CALL_OPTIONS(.max_redirects = 3, .fields = fields,
                                                     .field_count = 2, .body = body,
                                                     .type = body != NULL ? "a/b" : NULL,
                                                     .body_bytes = body != NULL ? strlen(body) : 0),
                             &reply),
             JANUS_OK);
    CHECK_EQ(janus_http_reply_status(reply), status);
    CHECK_EQ(janus_http_reply_read_all(reply, sizeof talk->text - 1, &text, &bytes), JANUS_OK);
    memcpy(talk->text, text, bytes + 1);
    janus_free(text);
    janus_http_reply_destroy(reply);
    return talk->text;
}

static void follow(struct talk *talk)
{
    client = client_with(NULL);
    for (int i = 0; i < 5; i++) {
        static const char *const codes[] = {"/301?a", "/302?/a", "/303?x/../a", "/307?./a",
                                            "/308?/b/../a"};
        CHECK_STR(go(talk, "GET", codes[i], NULL, 200), "GET /a - secret me ");
    }
    CHECK_STR(go(talk, "POST", "/301?/a", "x", 200), "GET /a - secret me ");
    CHECK_STR(go(talk, "POST", "/302?/a", "x", 200), "GET /a - secret me ");
    CHECK_STR(go(talk, "PUT", "/303?/a", "x", 200), "GET /a - secret me ");
    CHECK_STR(go(talk, "POST", "/307?/a", "x", 200), "POST /a a/b secret me x");
    CHECK_STR(go(talk, "PUT", "/302?/a", "x", 200), "PUT /a a/b secret me x");
    CHECK_STR(go(talk, "POST", "/308?/a", "x", 200), "POST /a a/b secret me x");
    CHECK_STR(go(talk, "HEAD", "/303?/a", NULL, 200), "");
    CHECK_STR(go(talk, "GET", "/302?/302?/307?/a", NULL, 200), "GET /a - secret me ");
    CHECK_EQ(look(client).connects, 1); /* redirects keep the connection */
    janus_http_client_destroy(client);
}

TEST("redirects are followed, and a POST becomes a GET where it should")
{
    static struct talk talk = {.handler = redirect, .client = follow};
    talk.argument = &talk;
    talk_run(&talk);
}

static void follow_to_strangers(struct talk *talk)
{
    client = client_with(NULL);
    CHECK_STR(go(talk, "GET", "/302?http://localhost:PORT/a", NULL, 200), "GET /a - - me ");
    CHECK_STR(go(talk, "GET", "/302?//localhost:PORT/a", NULL, 200), "GET /a - - me ");
    /* What was left out once stays left out, also at home. */
    CHECK_STR(go(talk, "GET", "/302?http://localhost:PORT/302?http://127.0.0.1:PORT/a", NULL, 200),
              "GET /a - - me ");
    CHECK_STR(go(talk, "POST", "/303?http://localhost:PORT/a", "x", 200), "GET /a - - me ");
    CHECK_STR(go(talk, "POST", "/307?http://localhost:PORT/a", "x", 307), "elsewhere");
    CHECK_STR(go(talk, "DELETE", "/307?http://localhost:PORT/a", NULL, 307), "elsewhere");
    janus_http_client_destroy(client);
}

TEST("a stranger gets no body, no method that changes anything, and no field that may be secret")
{
    static struct talk talk = {.handler = redirect, .client = follow_to_strangers};
    talk.argument = &talk;
    talk_run(&talk);
}

static janus_status give_once(void *argument, void *to, size_t max, size_t *out_got)
{
    int *given = argument;
    (void)max;
    *out_got = 0;
    if ((*given)++ > 0) return JANUS_CLOSED;
    memcpy(to, "x", 1);
    *out_got = 1;
    return JANUS_OK;
}

static void follow_not(struct talk *talk)
{
    char              url[URL_BYTES];
    const char       *why = NULL;
    int               given = 0;
    janus_http_reply *reply = NULL;
    client = client_with(NULL);
    CHECK_STR(go(talk, "GET", "/302", NULL, 302), "elsewhere"); /* no Location */
    CHECK_STR(go(talk, "GET", "/306?/a", NULL, 306), "elsewhere");
    CHECK_STR(go(talk, "GET", "/300?/a", NULL, 300), "elsewhere");
    CHECK_STR(go(talk, "GET", "/302?ftp://a/", NULL, 302), "elsewhere");
    CHECK_STR(go(talk, "GET", "/302?mailto:a", NULL, 302), "elsewhere");
    CHECK_STR(go(talk, "GET", "/302?https://127.0.0.1:PORT/a", NULL, 302), "elsewhere");
    CHECK_STR(go(talk, "GET", "/302?/302?/302?/302?/a", NULL, 302), "elsewhere"); /* the fourth */
    CHECK_EQ(janus_http_call(client, "POST", url_of(&talk->at, "/307?/a", url),
                             JANUS_HTTP_CALL_OPTIONS(.max_redirects = 3, .source = give_once,
                                                     .argument = &given, .length = 1),
                             &reply),
             JANUS_OK);
    CHECK_EQ(janus_http_reply_status(reply), 307);
    janus_http_reply_destroy(reply);
    CHECK_EQ(given, 2);
    CHECK_EQ(janus_http_call(client, "GET", url_of(&talk->at, "/302?//a:b:c", url),
                             JANUS_HTTP_CALL_OPTIONS(.max_redirects = 3, .out_why = &why), &reply),
             JANUS_INVALID);
    CHECK_STR(why, "the address of a redirect is malformed");
    janus_http_client_destroy(client);
}

TEST("a redirect that is not followed is the answer, and a malformed one is an error")
{
    static struct talk talk = {.handler = redirect, .client = follow_not};
    talk.argument = &talk;
    talk_run(&talk);
}

/* Bodies that wait. */

static int64_t choose(janus_http *http, const janus_http_request *request)
{
    char  *body = NULL;
    size_t bytes = 0;
    if (talk_is(request->path, "/no")) return janus_http_answer_text(http, 403, "no");
    janus_status status = janus_http_read_all(http, &body, &bytes);
    return status == JANUS_OK ? janus_http_answer(http, 200, NULL, body, bytes) : status;
}

static void ask_first(struct talk *talk)
{
    char              url[URL_BYTES], *text = NULL;
    size_t            bytes = 0;
    int               given = 0;
    janus_http_reply *reply = NULL;
    client = client_with(NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(janus_http_call(
                     client, "POST", url_of(&talk->at, "/yes", url),
                     JANUS_HTTP_CALL_OPTIONS(.expects = true, .body = "hello", .body_bytes = 5),
                     &reply),
                 JANUS_OK);
        CHECK_EQ(janus_http_reply_read_all(reply, 100, &text, &bytes), JANUS_OK);
        CHECK_STR(text, "hello");
        janus_free(text);
        janus_http_reply_destroy(reply);
    }
    CHECK_EQ(look(client).connects, 1);
    CHECK_EQ(
        janus_http_call(client, "POST", url_of(&talk->at, "/no", url),
                        JANUS_HTTP_CALL_OPTIONS(.expects = true, .source = give_once,
                                                .argument = &given, .length = JANUS_HTTP_UNKNOWN),
                        &reply),
        JANUS_OK);
    CHECK_EQ(janus_http_reply_status(reply), 403);
    CHECK_EQ(janus_http_reply_read_all(reply, 100, &text, &bytes), JANUS_OK);
    CHECK_STR(text, "no");
    janus_free(text);
    janus_http_reply_destroy(reply);
    CHECK_EQ(given, 0); /* nobody asked for the body */
    CHECK_EQ(look(client).connection_count, 0);
    janus_http_client_destroy(client);
}

TEST("a body that waits is sent when the server asks for it, and not if it refuses")
{
    talk_run(&(struct talk){.handler = choose, .client = ask_first});
}

static void ask_the_silent(struct script *script, janus_http_client *caller)
{
    char              url[URL_BYTES], *text = NULL;
    size_t            bytes = 0;
    janus_http_reply *reply = NULL;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(janus_http_call(
                     caller, "POST", url_of(&script->at, "/", url),
                     JANUS_HTTP_CALL_OPTIONS(.expects = true, .body = "a\r\n\r\n", .body_bytes = 5),
                     &reply),
                 JANUS_OK);
        CHECK_EQ(janus_http_reply_status(reply), 200);
        CHECK_EQ(janus_http_reply_read_all(reply, 100, &text, &bytes), JANUS_OK);
        janus_free(text);
        janus_http_reply_destroy(reply);
    }
}

TEST("a server that says nothing gets the body after a second")
{
    /* A read of this server ends with an empty line: behind the head, and behind the body. */
    struct script script = {.answers = {ANSWERS("", "HTTP/1.1 103 Hi\r\n\r\n" OK_ANSWER("ok", "2"),
                                                "HTTP/1.1 103 A", "\r\n\r\n" OK_ANSWER("ok", "2"))},
                            .client = ask_the_silent};
    script_run(&script);
    CHECK_EQ(atomic_load(&script.connections), 1);
}

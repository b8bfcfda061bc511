/* SPDX-License-Identifier: MIT */
/* Routes: a table of methods and patterns. */
#include "http/server.h"

enum { METHODS = JANUS_HTTP_METHOD_TRACE + 1, ALLOW_BYTES = 96 };

static bool capture(janus_http_request *request, const char *from, const char *to)
{
    if (request->captured_count == JANUS_HTTP_CAPTURES) return false;
    request->captured[request->captured_count++] = (janus_http_text){from, (size_t)(to - from)};
    return true;
}

/* Whether the pattern fits the whole path. */
static bool fits(const char *pattern, janus_http_request *request)
{
    const char *at = request->path.at, *end = at + request->path.bytes;
    request->captured_count = 0;
    while (*pattern != '\0') {
        if (*pattern != '{') {
            if (at == end || *at != *pattern) return false;
            at++;
            pattern++;
            continue;
        }
        const char *close = strchr(pattern, '}');
        if (close == NULL) return false;
        if (strcmp(pattern, "{*}") == 0) return capture(request, at, end);
        const char *segment = at;
        while (at < end && *at != '/') at++;
        if (at == segment || !capture(request, segment, at)) return false;
        pattern = close + 1;
    }
    return at == end;
}

static bool serves(const janus_http_route *route, janus_http_method method)
{
    return route->method == JANUS_HTTP_METHOD_OTHER || route->method == method ||
           (route->method == JANUS_HTTP_METHOD_GET && method == JANUS_HTTP_METHOD_HEAD);
}

static void list(char out[ALLOW_BYTES], uint32_t methods)
{
    static const char *const names[METHODS] = {"",       "GET",     "HEAD",  "POST", "PUT",
                                               "DELETE", "OPTIONS", "PATCH", "TRACE"};
    char                    *at = out;
    for (unsigned i = 1; i < METHODS; i++) {
        if ((methods >> i & 1) == 0) continue;
        if (at != out) at = stpcpy(at, ", ");
        at = stpcpy(at, names[i]);
    }
    *at = '\0';
}

/* Answers for a path whose rows have other methods, or for which there is no row. */
static int64_t decline(struct janus_http *http, uint32_t methods)
{
    bool asks = http->request.method == JANUS_HTTP_METHOD_OPTIONS;
    bool all = http->request.path.bytes == 1 && http->request.path.at[0] == '*';
    if (asks && all) return jrt_http_do_answer(http, 204, NULL, NULL, 0);
    if (methods == 0) return jrt_http_do_answer_text(http, 404, "there is nothing here\n");
    char allow[ALLOW_BYTES];
    if ((methods >> JANUS_HTTP_METHOD_GET & 1) != 0) methods |= 1u << JANUS_HTTP_METHOD_HEAD;
    list(allow, methods | 1u << JANUS_HTTP_METHOD_OPTIONS);
    janus_status status = jrt_http_do_set_field(http, "Allow", allow);
    if (status != JANUS_OK) return status;
    if (asks) return jrt_http_do_answer(http, 204, NULL, NULL, 0);
    return jrt_http_do_answer_text(http, 405, "this path has no such method\n");
}

/* Calls the handler of the first row that fits. `argument`: for a row that has none. */
static int64_t follow(struct janus_http *http, const janus_http_route *route, void *argument)
{
    uint32_t methods = 0;
    for (; route->pattern != NULL; route++) {
        if (!fits(route->pattern, &http->request)) continue;
        if (serves(route, http->request.method)) {
            http->request.argument = route->argument != NULL ? route->argument : argument;
            return route->handler(jrt_http_name(http), &http->request);
        }
        methods |= 1u << route->method;
    }
    return decline(http, methods);
}

int64_t janus_http_routes(janus_http *name, const janus_http_request *request)
{
    if (name == NULL || request == NULL || request->argument == NULL) return JANUS_INVALID;
    if (!jrt_http_is_own(name)) return JANUS_STATE;
    return follow(jrt_http_block(name), request->argument, NULL);
}

int64_t jrt_http_follow(janus_http *name, const janus_http_request *request)
{
    struct janus_http *http = jrt_http_block(name);
    return follow(http, http->server->options.routes, request->argument);
}

/* Whether a pattern can fit a path at all. */
static bool is_pattern(const char *pattern)
{
    uint32_t captures = 0;
    if (strcmp(pattern, "*") == 0) return true;
    if (pattern[0] != '/') return false;
    while ((pattern = strchr(pattern, '{')) != NULL) {
        const char *close = strchr(pattern, '}');
        if (close == NULL || ++captures > JANUS_HTTP_CAPTURES) return false;
        if (close == pattern + 2 && pattern[1] == '*' && close[1] != '\0') return false;
        pattern = close;
    }
    return true;
}

bool jrt_http_routes_sane(const janus_http_route *route)
{
    for (; route->pattern != NULL; route++) {
        if (route->handler == NULL || !is_pattern(route->pattern)) return false;
        if ((unsigned)route->method >= METHODS) return false;
    }
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * Requests that fail: a line on the standard error, and a word in the access log.
 *
 * The file that learns why a request fails notes it (jrt_http_blame). The end of the request
 * reports it, when the status of the answer is known. The server does not report what the client
 * did: requests that get a status below 500, and clients that leave.
 *
 * As for panics, the standard error gets at most LINES_A_SECOND lines in a second of the clock, for
 * all servers of the process. The first line of a later second says how many were left out.
 */
#include "http/server.h"

#include <janusrt/explain.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { LINES_A_SECOND = 20, TARGET_BYTES = 120, METHOD_BYTES = 16, LINE_BYTES = 768 };

void jrt_http_blame(struct janus_http *http, const char *mark, const char *format, ...)
{
    va_list arguments;
    if (http->blamed) return;
    http->blamed = true;
    (void)snprintf(http->rare->mark, sizeof http->rare->mark, "%s", mark);
    va_start(arguments, format);
    (void)vsnprintf(http->rare->reason, sizeof http->rare->reason, format, arguments);
    va_end(arguments);
}

/* What janus_explain says about this status; "" if its sentence is about another one. */
static void explain(janus_status status, char *text, size_t room)
{
    const char *name = janus_status_name(status);
    text[0] = '\0';
    if (janus_explain(text, room) == 0 || strstr(text, name) == NULL) text[0] = '\0';
}

/* A handler that takes too long is cancelled, and often returns CANCELLED. */
static void blame_late(struct janus_http *http)
{
    jrt_http_blame(http, "late",
                   "it took longer than handler_ns, which is %llu ms. Raise "
                   "janus_http_options.handler_ns, or let the handler do less",
                   (unsigned long long)(http->server->options.handler_ns / JANUS_MS));
}

void jrt_http_blame_result(struct janus_http *http, int64_t result)
{
    char mark[JRT_HTTP_MARK_BYTES], why[JRT_HTTP_REASON_BYTES];
    bool known = result < 0 && result > -100;
    if (http->fault == 503) {
        blame_late(http);
    } else if (http->fault == 0 && result < 0 && janus_cancelled()) {
        jrt_http_blame(http, "stopped",
                       "the stop of the server cancelled it. Raise janus_http_options.grace_ns, or "
                       "let the handler return when a call returns JANUS_CANCELLED");
    } else if (http->fault == 0 && result < 0 && http->broken == JANUS_OK) {
        (void)snprintf(mark, sizeof mark, "returned %lld", (long long)result);
        if (known) explain((janus_status)result, why, sizeof why);
        if (known && why[0] != '\0') {
            jrt_http_blame(http, mark, "its handler returned %lld: %s", (long long)result, why);
        } else if (known) {
            jrt_http_blame(http, mark, "its handler returned %s: %s",
                           janus_status_name((janus_status)result),
                           janus_status_text((janus_status)result));
        } else {
            jrt_http_blame(http, mark, "its handler returned %lld", (long long)result);
        }
    }
}

void jrt_http_blame_child(struct janus_http *http, janus_nursery *requests)
{
    janus_nursery_result result;
    janus_failure        failure;
    if (!janus_nursery_try_await(requests, &result)) return;
    if (result.kind == JANUS_RESULT_KIND_CANCELLED) {
        jrt_http_blame_result(http, JANUS_CANCELLED);
    } else if (result.panic.kind != JANUS_PANIC_KIND_NONE) {
        char why[JRT_HTTP_REASON_BYTES];
        (void)janus_panic_text(&result.panic, why, sizeof why);
        jrt_http_blame(http, "panicked", "its handler panicked: %s", why);
    } else if (janus_nursery_failures(requests, &failure, 1) > 0 &&
               failure.lacks != JANUS_COMPONENT_NONE) {
        const char *lacks = janus_component_name(failure.lacks);
        jrt_http_blame(http, lacks,
                       "it used up its budget of %s: %llu of %llu. Raise %s in "
                       "janus_http_options.request_budget and in the scheduler's max_budget, or "
                       "let the handler do less",
                       lacks, (unsigned long long)failure.used, (unsigned long long)failure.limit,
                       lacks);
    } else {
        jrt_http_blame(http, "failed", "its task failed with %lld", (long long)result.error);
    }
}

void jrt_http_blame_room(struct janus_http *http, janus_status status)
{
    char why[JRT_HTTP_REASON_BYTES];
    explain(status, why, sizeof why);
    jrt_http_blame(http, "room", "no task could be started for it: %s",
                   why[0] != '\0' ? why : janus_status_text(status));
}

bool jrt_http_is_cut(const struct janus_http *http)
{
    return http->failed || http->stage == JRT_HTTP_STAGE_STREAM || http->broken != JANUS_OK ||
           atomic_load(&http->writing) % 2 != 0;
}

/* Whether a line may be printed. *left_out: the lines left out in the last second. */
static bool may_print(uint32_t *left_out)
{
    static _Atomic uint64_t rate; /* a second, and in its low half the number of lines in it */
    uint64_t                second = janus_now_ns() / JANUS_SECONDS << 32, next;
    uint64_t                seen = atomic_load(&rate);
    do {
        bool     same = seen >> 32 == second >> 32;
        uint32_t lines = (uint32_t)seen;
        *left_out = !same && lines > LINES_A_SECOND ? lines - LINES_A_SECOND : 0;
        next = same ? seen + (lines < UINT32_MAX) : second + 1;
    } while (!atomic_compare_exchange_weak(&rate, &seen, next)); /* seq_cst: rare */
    return (uint32_t)next <= LINES_A_SECOND;
}

static void print(const char *text)
{
    char     line[LINE_BYTES + 16];
    uint32_t left_out = 0;
    if (!may_print(&left_out)) return;
    if (left_out > 0) {
        (void)fprintf(stderr,
                      "janusrt: %u failed requests are not shown: the limit is %d lines a second\n",
                      left_out, LINES_A_SECOND);
    }
    int bytes = snprintf(line, sizeof line, "janusrt: %s\n", text);
    if (bytes > 0) (void)fwrite(line, 1, strlen(line), stderr); /* in one piece */
}

void jrt_http_tell(struct janus_http *http)
{
    const janus_http_options *options = &http->server->options;
    char                      method[METHOD_BYTES], target[TARGET_BYTES], text[LINE_BYTES], got[32];
    const char               *head = http->in + http->at;
    bool                      cut = jrt_http_is_cut(http);
    if (options->on_failure == NULL && options->quiet_failures) return;
    jrt_http_find_peer(http);
    jrt_http_escape(jrt_http_text_of(head, http->head.method_text), method, sizeof method);
    jrt_http_escape(jrt_http_text_of(head, http->head.target), target, sizeof target);
    (void)snprintf(got, sizeof got, "%u%s", http->status, cut ? ", cut off" : "");
    (void)snprintf(text, sizeof text, "%s %s from %s failed (%s): %s",
                   method[0] != '\0' ? method : "a request", target, http->rare->peer,
                   http->status != 0 ? got : "no answer", http->rare->reason);
    if (options->on_failure == NULL) {
        print(text);
        return;
    }
    const janus_http_failure failure = {.task = atomic_load(&http->task),
                                        .method = method,
                                        .target = target,
                                        .peer = http->rare->peer,
                                        .status = http->status,
                                        .cut = cut,
                                        .reason = http->rare->reason,
                                        .text = text};
    options->on_failure(options->on_failure_argument, &failure);
}

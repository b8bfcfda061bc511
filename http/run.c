/* SPDX-License-Identifier: MIT */
/* A whole program that serves: a scheduler, a listener, words for a person. */
#include "http/server.h"

#include <janusrt/explain.h>
#include <janusrt/scheduler.h>
#include <stdio.h>

enum { CONNECTIONS = 100 }; /* as many as the documents' web server has */

struct program {
    const char         *at;
    janus_http_handler *handler;
    void               *argument;
    janus_http_options  options;
    janus_address       bound;
};

/* Says why, with the sentence of janus_explain if that is about this status. */
static janus_status complain(const struct program *program, const char *what, janus_status status)
{
    char        why[512];
    const char *name = janus_status_name(status);
    bool        explained = janus_explain(why, sizeof why) > 0 && strstr(why, name) != NULL;
    (void)fprintf(stderr, "janusrt: %s %s: %s\n", what, program->at,
                  explained ? why : janus_status_text(status));
    return status;
}

/* The server has begun to serve. */
static void greet(void *argument)
{
    const struct program *program = argument;
    char                  text[JANUS_ADDRESS_TEXT_BYTES];
    (void)printf("open http%s://%s/ (Ctrl-C stops the server)\n",
                 program->options.wire != NULL ? "s" : "",
                 janus_address_text(&program->bound, text, sizeof text));
    (void)fflush(stdout);
}

/* The first task. */
static int64_t run(void *argument)
{
    struct program *program = argument;
    janus_address   at;
    janus_io        listener;
    janus_status    status = janus_address_parse(program->at, &at);
    if (status != JANUS_OK) {
        (void)fprintf(stderr,
                      "janusrt: '%s' is no address: give numbers, as 127.0.0.1:8080 or [::1]:8080. "
                      "Names as localhost are not looked up\n",
                      program->at);
        return status;
    }
    status = janus_listen(&at, NULL, &listener);
    if (status == JANUS_OK) status = janus_io_local(listener, &program->bound);
    if (status != JANUS_OK) return complain(program, "cannot listen at", status);
    status = jrt_http_serve_and_tell(listener, program->handler, program->argument,
                                     &program->options, greet, program);
    return status == JANUS_OK ? status : complain(program, "cannot serve", status);
}

/* The larger of both, in each component. */
static janus_budget larger(janus_budget a, janus_budget b)
{
    janus_budget less = janus_budget_min(a, b);
    return (janus_budget){.ops = a.ops - less.ops + b.ops,
                          .memory = a.memory - less.memory + b.memory,
                          .spawn_count = a.spawn_count - less.spawn_count + b.spawn_count,
                          .channel_ops = a.channel_ops - less.channel_ops + b.channel_ops,
                          .syscalls = a.syscalls - less.syscalls + b.syscalls};
}

janus_status janus_http_run(const char *at, janus_http_handler *handler, void *argument,
                            const janus_http_options *options)
{
    struct program          program = {.at = at, .handler = handler, .argument = argument};
    janus_scheduler_options scheduler = {.struct_bytes = sizeof scheduler};
    int64_t                 result = JANUS_OK;
    if (at == NULL) return JANUS_INVALID;
    if (options != NULL) {
        size_t bytes = options->struct_bytes;
        if (bytes < sizeof bytes || bytes > sizeof *options || bytes % 8 != 0) return JANUS_INVALID;
        memcpy(&program.options, options, bytes);
    }
    program.options.struct_bytes = sizeof program.options;
    program.options.stop_on_signals = true;
    if (program.options.max_connections == 0) program.options.max_connections = CONNECTIONS;
    scheduler.max_tasks = JANUS_HTTP_TASKS(program.options.max_connections);
    janus_budget most = janus_profile_limits(JANUS_PROFILE_SERVICE)->budget;
    if (program.options.request_budget != NULL) {
        /* The pool of a request is twice as large, see janus_http_options. */
        janus_budget each = *program.options.request_budget;
        most = larger(most, janus_budget_add(each, each));
        scheduler.max_budget = &most;
    }
    janus_status status = janus_run(&scheduler, run, &program, &result);
    return result < 0 ? (janus_status)result : status;
}

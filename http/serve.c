/* SPDX-License-Identifier: MIT */
/* A server: its options, the loop that accepts, the graceful stop. */
#include "http/server.h"

#include <janusrt/grant.h>
#include <janusrt/signal.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    HEAD_BYTES_MAX = 57344,
    FIELDS_MAX = 1024,
    CONNECTIONS_MAX = 10000, /* that a server has by default at most */
    OWN_TASKS = 5,           /* the server's own task, the tick, two signals, the log */
};

#define LOG_GRACE_NS (5 * JANUS_SECONDS) /* for a log that is slow, after the last connection */
#define CROWDED_NS (10 * JANUS_MS)       /* between two tries while handles are short */

static uint64_t number_or(uint64_t given, uint64_t other) { return given != 0 ? given : other; }

static void fill_in(janus_http_options *o)
{
    o->max_requests = (uint32_t)number_or(o->max_requests, 1000);
    o->max_line_bytes = (uint32_t)number_or(o->max_line_bytes, JRT_HTTP_LINE_BYTES);
    o->max_head_bytes = (uint32_t)number_or(o->max_head_bytes, JRT_HTTP_HEAD_BYTES);
    o->max_fields = (uint32_t)number_or(o->max_fields, 64);
    o->max_body_bytes = number_or(o->max_body_bytes, 1 << 20);
    o->head_ns = number_or(o->head_ns, 10 * JANUS_SECONDS);
    o->idle_ns = number_or(o->idle_ns, 60 * JANUS_SECONDS);
    o->body_ns = number_or(o->body_ns, 30 * JANUS_SECONDS);
    o->write_ns = number_or(o->write_ns, 30 * JANUS_SECONDS);
    o->min_rate = (uint32_t)number_or(o->min_rate, 240);
    o->grace_ns = number_or(o->grace_ns, 30 * JANUS_SECONDS);
    o->log_lines = (uint32_t)number_or(o->log_lines, 1024);
}

/* With a pool, a child has its share at once, and what it starts can have as much again. */
static void set_budget(struct jrt_http_server *server)
{
    static const janus_budget usual = {.ops = 50000000,
                                       .memory = 16 << 20,
                                       .spawn_count = 1000,
                                       .channel_ops = 1000000,
                                       .syscalls = 100000};
    const janus_budget       *given = server->options.request_budget;
    server->supervised = given == NULL;
    server->share = given != NULL ? *given : usual;
    server->pool = janus_budget_add(server->share, server->share);
    server->pool.spawn_count = janus_units_add(server->pool.spawn_count, 1); /* the child */
    server->options.request_budget = NULL;
}

static janus_status set_line(struct jrt_http_server *server)
{
    struct jrt_http_out line = {server->server_line, sizeof server->server_line, 0};
    if (server->options.server == NULL) return JANUS_OK;
    janus_status status =
        jrt_http_put_field(&line, JRT_HTTP_TEXT("Server"), jrt_http_of(server->options.server));
    server->server_line_bytes = line.bytes;
    server->options.server = NULL;
    return status == JANUS_OK ? JANUS_OK : JANUS_INVALID;
}

/* Decodes and refuses. */
static janus_status set_up(struct jrt_http_server *server, janus_http_handler *handler,
                           void *argument, const janus_http_options *given)
{
    janus_http_options *options = &server->options;
    memset(server, 0, sizeof *server);
    if (given != NULL) {
        size_t bytes = given->struct_bytes;
        if (bytes < sizeof bytes || bytes > sizeof *options || bytes % 8 != 0) return JANUS_INVALID;
        memcpy(options, given, bytes);
    }
    options->struct_bytes = sizeof *options;
    fill_in(options);
    if (options->max_head_bytes > HEAD_BYTES_MAX || options->max_fields > FIELDS_MAX ||
        options->max_line_bytes > options->max_head_bytes || !jrt_wire_fits(options->wire)) {
        return JANUS_INVALID;
    }
    if ((handler == NULL) == (options->routes == NULL)) return JANUS_INVALID;
    if (handler == NULL && !jrt_http_routes_sane(options->routes)) return JANUS_INVALID;
    server->handler = handler != NULL ? handler : jrt_http_follow;
    server->argument = argument;
    server->limits = (struct jrt_http_limits){.line_bytes = (uint16_t)options->max_line_bytes,
                                              .head_bytes = (uint16_t)options->max_head_bytes,
                                              .fields = (uint16_t)options->max_fields};
    server->in_bytes = (options->max_head_bytes + (size_t)JRT_HTTP_SPARE_BYTES + 15) / 16 * 16;
    server->block_bytes = sizeof(struct janus_http) +
                          options->max_fields * sizeof(struct jrt_http_field) + server->in_bytes +
                          JRT_HTTP_OUT_BYTES + sizeof(struct jrt_http_rare);
    set_budget(server);
    janus_mutex_init(&server->mutex, "http server");
    janus_event_init(&server->any_warm, JANUS_WAKER_TASKS, "warm connections");
    return set_line(server);
}

static void take_down(struct jrt_http_server *server)
{
    struct janus_http *block = server->blocks;
    while (block != NULL) {
        struct janus_http *next = block->next;
        (void)munmap(block, server->block_bytes);
        block = next;
    }
}

/* From the accept to the child. */
struct guest {
    janus_io                io;
    struct jrt_http_server *server;
};

static void turn_away(void *argument)
{
    struct guest *guest = argument;
    JANUS_IGNORE(janus_io_close(guest->io));
    free(guest);
}

static int64_t receive(void *argument)
{
    struct guest guest = *(struct guest *)argument;
    free(argument);
    if (janus_io_take(guest.io) == JANUS_OK) {
        jrt_http_connection_run(guest.server, guest.io);
    } else {
        JANUS_IGNORE(janus_io_close(guest.io));
    }
    return 0;
}

/* Starts the task of a connection. On an error the connection is closed. */
static janus_status welcome(struct jrt_http_server *server, janus_nursery *nursery, janus_io io)
{
    const janus_spawn_options each = {.struct_bytes = sizeof each,
                                      .name = "connection",
                                      .unjoinable = true,
                                      .drop = turn_away,
                                      .stack_bytes = server->wire_stack_bytes,
                                      .when_full = JANUS_WHEN_FULL_WAIT};
    struct guest             *guest = malloc(sizeof *guest);
    if (guest == NULL) {
        JANUS_IGNORE(janus_io_close(io));
        return JANUS_NO_MEMORY;
    }
    *guest = (struct guest){io, server};
    janus_status status = janus_spawn_with(nursery, receive, guest, &each, NULL);
    if (status != JANUS_OK) turn_away(guest);
    return status;
}

/* Whether an error of janus_accept may be over soon: the system is short of something. */
static bool may_pass(janus_status status)
{
    return status == JANUS_HANDLE_LIMIT || status == JANUS_NO_MEMORY || status == JANUS_FULL ||
           status == JANUS_SYSTEM || status == JANUS_RESET || status == JANUS_UNAVAILABLE;
}

static janus_status accept_all(struct jrt_http_server *server, janus_nursery *nursery,
                               janus_io listener)
{
    for (;;) {
        janus_io     io;
        janus_status status = janus_accept(listener, &io, NULL);
        if (status == JANUS_OK) status = welcome(server, nursery, io);
        if (may_pass(status)) status = janus_sleep(CROWDED_NS);
        if (status == JANUS_NO_MEMORY) status = janus_yield();
        if (status != JANUS_OK) return status;
    }
}

/* Wakes idle connections soon. Busy ones see the flag when they have answered. */
static void stop(struct jrt_http_server *server)
{
    uint64_t soon = janus_now_ns() + JRT_HTTP_STOP_NS;
    atomic_store(&server->stopping, true);
    janus_shield_begin();
    if (janus_mutex_lock(&server->mutex) == JANUS_OK) {
        for (struct jrt_http_connection *c = server->first; c != NULL; c = c->next) {
            bool waits = atomic_load(c->http != NULL ? &c->http->idle : &c->idle);
            if (!waits && !atomic_load(&c->upgraded)) continue;
            JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_READ, soon));
        }
        JANUS_IGNORE(janus_mutex_unlock(&server->mutex));
    }
    janus_shield_end();
}

static janus_status serve(struct jrt_http_server *server, janus_io listener)
{
    janus_nursery nursery;
    janus_status  status = janus_nursery_open(
        &nursery,
        JANUS_NURSERY_OPTIONS(.max_children = server->options.max_connections,
                               .when_full = JANUS_WHEN_FULL_WAIT, .policy = JANUS_POLICY_WAIT_ALL,
                               .exhaustion = JANUS_EXHAUSTION_END, .name = "connections"));
    if (status < JANUS_OK) return status;
    janus_status served = accept_all(server, &nursery, listener);
    stop(server);
    uint64_t end = jrt_http_after(janus_now_ns(), server->options.grace_ns);
    JANUS_IGNORE(janus_nursery_set_deadline(&nursery, end));
    status = janus_nursery_end(&nursery, NULL);
    if (served == JANUS_CLOSED || served == JANUS_STALE) return JANUS_OK;
    return served;
}

/* A task that closes the listener when a signal comes. */
struct watch {
    janus_io listener;
    int      number;
};

static int64_t stop_on_signal(void *argument)
{
    const struct watch *watch = argument;
    janus_status        status = janus_signal_wait(watch->number, JANUS_IO_NEVER);
    if (status == JANUS_OK) JANUS_IGNORE(janus_io_close(watch->listener));
    return status == JANUS_CANCELLED ? status : 0;
}

/* Starts the tasks beside the connections. */
static janus_status start_helpers(struct jrt_http_server *server, janus_nursery *helpers,
                                  struct watch watches[2])
{
    janus_status status = janus_spawn(helpers, jrt_http_tick, server);
    for (int i = 0; i < 2 && server->options.stop_on_signals && status == JANUS_OK; i++) {
        status = janus_spawn(helpers, stop_on_signal, &watches[i]);
    }
    return status;
}

static janus_status serve_with_helpers(struct jrt_http_server *server, janus_io listener,
                                       const janus_io *single)
{
    struct watch  watches[2] = {{listener, SIGTERM}, {listener, SIGINT}};
    janus_nursery helpers;
    janus_status  status = janus_nursery_open(
        &helpers, JANUS_NURSERY_OPTIONS(.name = "http", .exhaustion = JANUS_EXHAUSTION_END,
                                         .owner_apart = true));
    if (status < JANUS_OK) return status;
    status = jrt_http_wire_stack(server, &helpers);
    if (status == JANUS_OK) status = start_helpers(server, &helpers, watches);
    if (status == JANUS_OK && single == NULL) status = serve(server, listener);
    if (status == JANUS_OK && single != NULL) jrt_http_connection_run(server, *single);
    JANUS_IGNORE(janus_nursery_cancel(&helpers));
    JANUS_IGNORE(janus_nursery_end(&helpers, NULL));
    return status;
}

static bool is_none(janus_io io) { return io.opaque[0] == 0 && io.opaque[1] == 0; }

static janus_status serve_and_log(struct jrt_http_server *server, janus_io listener)
{
    janus_nursery logs;
    if (is_none(server->options.log)) return serve_with_helpers(server, listener, NULL);
    janus_status status = janus_nursery_open(
        &logs, JANUS_NURSERY_OPTIONS(.name = "log", .exhaustion = JANUS_EXHAUSTION_END));
    if (status < JANUS_OK) return status;
    status = jrt_http_log_open(server, &logs);
    if (status == JANUS_OK) {
        status = serve_with_helpers(server, listener, NULL);
        jrt_http_log_close(server);
        JANUS_IGNORE(janus_nursery_set_deadline(&logs, janus_now_ns() + LOG_GRACE_NS));
    }
    JANUS_IGNORE(janus_nursery_end(&logs, NULL));
    jrt_http_log_free(server);
    return status;
}

/*
 * Sees to it that the scheduler has tasks for all connections. If a connection could not start the
 * task of its request, all would wait for each other.
 */
static janus_status set_room(janus_http_options *options)
{
    janus_context_info context = JANUS_CONTEXT_INFO();
    janus_status       status = janus_context_inspect(&context);
    if (status != JANUS_OK) return status;
    uint64_t max = context.max_tasks != 0 ? context.max_tasks : CONNECTIONS_MAX * UINT64_C(3);
    if (max < OWN_TASKS + 2) return JANUS_TASK_LIMIT;
    uint64_t most = (max - OWN_TASKS) / 2, usual = max / 5 * 2;
    if (options->max_connections > most) return JANUS_TASK_LIMIT;
    if (options->max_connections != 0) return JANUS_OK;
    if (usual > CONNECTIONS_MAX) usual = CONNECTIONS_MAX;
    options->max_connections = (uint32_t)(usual < most && usual > 0 ? usual : most);
    return JANUS_OK;
}

/* Opens the standard output for the log, if the options ask for it. */
static janus_status open_log(janus_http_options *options, bool *opened)
{
    if (!options->logs || !is_none(options->log)) return JANUS_OK;
    janus_status status = janus_io_standard(1, NULL, &options->log);
    *opened = status == JANUS_OK;
    return status;
}

janus_status janus_http_serve(janus_io listener, janus_http_handler *handler, void *argument,
                              const janus_http_options *options)
{
    struct jrt_http_server *server = malloc(sizeof *server); /* the stack may be small */
    janus_io_info           info = JANUS_IO_INFO();
    bool                    own_log = false;
    if (server == NULL) return JANUS_NO_MEMORY;
    janus_status status = set_up(server, handler, argument, options);
    if (status == JANUS_OK) status = set_room(&server->options);
    /* Later on, STALE means that somebody has closed the listener. */
    if (status == JANUS_OK) status = janus_io_inspect(listener, &info);
    if (status == JANUS_OK && info.kind != JANUS_IO_KIND_LISTENER) status = JANUS_STATE;
    if (status == JANUS_OK) status = open_log(&server->options, &own_log);
    if (status == JANUS_OK) {
        status = serve_and_log(server, listener);
        take_down(server);
    }
    if (own_log) JANUS_IGNORE(janus_io_close(server->options.log));
    free(server);
    return status;
}

janus_status janus_http_serve_one(janus_io io, janus_http_handler *handler, void *argument,
                                  const janus_http_options *options)
{
    struct jrt_http_server *server = malloc(sizeof *server);
    if (server == NULL) return JANUS_NO_MEMORY;
    janus_status status = set_up(server, handler, argument, options);
    bool         alone = is_none(server->options.log) && !server->options.logs;
    if (status == JANUS_OK && (!alone || server->options.stop_on_signals)) {
        status = JANUS_UNAVAILABLE;
    }
    if (status == JANUS_OK && !jrt_http_wire_may(server)) status = JANUS_INVALID;
    if (status == JANUS_OK) {
        status = serve_with_helpers(server, io, &io);
        take_down(server);
    }
    free(server);
    return status;
}

/* SPDX-License-Identifier: MIT */
/* A server: its options, the loop that accepts, the graceful stop. */
#include "http/block.h"
#include "http/server.h"

#include <janusrt/dump.h>
#include <janusrt/explain.h>
#include <janusrt/explore.h>
#include <janusrt/grant.h>
#include <janusrt/signal.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
    HEAD_BYTES_MAX = 57344,
    FIELDS_MAX = 1024,
    CONNECTIONS_MAX = 10000, /* that a server has by default at most */
    TASKS_MAX = 1000,        /* that a request has started, by default at most */
    LOG_OPS = 64,            /* channel operations of a child, for the lines of its requests */
    OWN_TASKS = 5,           /* the server's own task, the tick, two signals, the log */
    OWN_HANDLES = 16,        /* the listener, the log, the poller, the standard streams and some */
    HANDLES_MIN = 4,         /* that a request may open, by default at least */
    HANDLES_MAX = 1000,      /* and at most */
};

#define LOG_GRACE_NS (5 * JANUS_SECONDS) /* for a log that is slow, after the last connection */
#define CROWDED_NS (10 * JANUS_MS)       /* between two tries while tasks or handles are short */
#define LOOK_NS (100 * JANUS_MS)         /* between two looks at the listener, while all is full */

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

static bool is_none(janus_io io) { return io.opaque[0] == 0 && io.opaque[1] == 0; }

static bool has_log(const janus_http_options *options)
{
    return options->logs || !is_none(options->log);
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
    if (has_log(&server->options)) {
        server->share.channel_ops = janus_units_add(server->share.channel_ops, LOG_OPS);
    }
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
        options->max_line_bytes > options->max_head_bytes ||
        options->max_connections > JANUS_PERMITS_MAX || !jrt_wire_fits(options->wire)) {
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
    server->tags = jrt_http_tags;
    set_budget(server);
    janus_semaphore_init(&server->lock, 1, JANUS_WAKER_TASKS, "http server");
    janus_event_init(&server->sooner, JANUS_WAKER_TASKS, "a tick");
    server->warm_at = JANUS_IO_NEVER;
    for (int i = 0; i < JRT_HTTP_QUEUES; i++) server->queues[i].end = &server->queues[i].first;
    return set_line(server);
}

static void free_blocks(struct janus_http *block)
{
    while (block != NULL) {
        struct janus_http *next = block->next;
        jrt_http_block_free(block);
        block = next;
    }
}

/* Gives a signal its old effect. */
static void unwatch(struct jrt_http_watch *watch)
{
    if (watch->caught) JANUS_IGNORE(janus_signal_release(watch->number));
    watch->caught = false;
}

/* Frees what the server has, after all of its tasks have ended. */
static void take_down(struct jrt_http_server *server)
{
    for (int i = 0; i < JRT_HTTP_QUEUES; i++) {
        struct jrt_http_connection *c = server->queues[i].first, *next;
        for (; c != NULL; c = next) { /* its task was broken off */
            next = c->next;
            if (i == JRT_HTTP_WARM) jrt_http_block_free(c->http);
            free(c);
        }
    }
    free_blocks(server->blocks);
    free_blocks(server->haunted);
    free_blocks(server->retired);
    while (server->empty_count > 0) {
        (void)munmap(server->empty[--server->empty_count].at, server->block_bytes);
    }
    free(server->empty);
    for (int i = 0; i < JRT_HTTP_SIGNALS; i++) unwatch(&server->watches[i]);
    jrt_http_log_free(server);
    janus_token_release(server->events);
    free(server);
}

/* Frees a server whose task is broken off. */
struct keeper {
    struct jrt_http_server *server; /* NULL: it is gone */
};

static void keeper_end(void *argument)
{
    struct keeper *keeper = argument;
    if (keeper->server != NULL) take_down(keeper->server);
    free(keeper);
}

/* Sees to it that the server ends with the task, if janus_http_serve does not return. */
static janus_status keep(struct jrt_http_server *server, struct keeper **out)
{
    struct keeper *keeper = malloc(sizeof *keeper);
    if (keeper == NULL) return JANUS_NO_MEMORY;
    keeper->server = server;
    janus_status status = janus_defer(keeper_end, keeper);
    if (status == JANUS_OK)
        *out = keeper;
    else
        free(keeper);
    return status;
}

/* The connection was never served. */
static void turn_away(void *argument)
{
    struct jrt_http_connection *c = argument;
    JANUS_IGNORE(janus_io_close(c->io));
    JANUS_IGNORE(janus_semaphore_release(&c->server->room, 1));
    free(c);
}

static int64_t receive(void *argument)
{
    struct jrt_http_connection *c = argument;
    struct jrt_http_server     *server = c->server;
    if (janus_io_take(c->io) != JANUS_OK) {
        turn_away(c);
        return 0;
    }
    jrt_http_connection_run(c);
    free(c);
    JANUS_IGNORE(janus_semaphore_release(&server->room, 1));
    return 0;
}

/* Whether somebody has closed the listener. */
static bool is_closed(janus_io listener)
{
    janus_io_info info = JANUS_IO_INFO();
    return janus_io_inspect(listener, &info) != JANUS_OK;
}

/* Sleeps while something is short. CLOSED: the listener was closed meanwhile. */
static janus_status sleep_crowded(janus_io listener)
{
    janus_status status = janus_sleep(CROWDED_NS);
    if (status == JANUS_NO_MEMORY) status = janus_yield();
    return status == JANUS_OK && is_closed(listener) ? JANUS_CLOSED : status;
}

/* Starts the task of a connection. On an error the connection is closed. */
static janus_status welcome(struct jrt_http_server *server, janus_nursery *nursery,
                            janus_io listener, janus_io io)
{
    const janus_spawn_options   each = {.struct_bytes = sizeof each,
                                        .name = "connection",
                                        .unjoinable = true,
                                        .drop = turn_away,
                                        .stack_bytes = server->wire_stack_bytes};
    struct jrt_http_connection *c = calloc(1, sizeof *c);
    if (c == NULL) {
        JANUS_IGNORE(janus_io_close(io));
        JANUS_IGNORE(janus_semaphore_release(&server->room, 1));
        return JANUS_NO_MEMORY;
    }
    c->io = io;
    c->server = server;
    c->since = janus_now_ns();
    janus_status status = janus_spawn_with(nursery, receive, c, &each, NULL);
    while (status == JANUS_TASK_LIMIT) {
        status = sleep_crowded(listener);
        if (status == JANUS_OK) status = janus_spawn_with(nursery, receive, c, &each, NULL);
    }
    if (status != JANUS_OK) turn_away(c);
    return status;
}

/* Waits for a permit for a moment. DEADLINE: it got no permit yet. */
static janus_status wait_a_moment(struct jrt_http_server *server, janus_nursery *nursery,
                                  janus_io listener)
{
    janus_nursery_info info = JANUS_NURSERY_INFO();
    janus_status status = janus_semaphore_acquire_until(&server->room, janus_now_ns() + LOOK_NS);
    if (jrt_http_try_again(status)) status = JANUS_DEADLINE; /* no memory for a timer */
    if (status != JANUS_DEADLINE) return status;
    /* The close of a listener does not end such a wait. */
    if (is_closed(listener)) return JANUS_CLOSED;
    /* A connection whose task was broken off gave no permit back. */
    bool lost = janus_nursery_inspect(nursery, &info) == JANUS_OK &&
                info.children < server->options.max_connections;
    if (!lost) return status;
    /* Or the connection has ended meanwhile, and gave its permit back before that. */
    status = janus_semaphore_try_acquire(&server->room);
    return status == JANUS_WOULD_WAIT ? JANUS_OK : status;
}

/*
 * Waits for room for a connection that was accepted. The connection that has been idle longest must
 * leave. Busy connections leave after a turn, see can_keep.
 */
static janus_status wait_for_room(struct jrt_http_server *server, janus_nursery *nursery,
                                  janus_io listener)
{
    janus_status status = janus_semaphore_try_acquire(&server->room);
    if (status != JANUS_WOULD_WAIT) return status;
    atomic_store(&server->crowded, true); /* seq_cst: rare */
    do {
        jrt_http_make_way(server);
        status = wait_a_moment(server, nursery, listener);
    } while (status == JANUS_DEADLINE);
    atomic_store(&server->crowded, false); /* seq_cst: rare */
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
        if (status == JANUS_OK) {
            status = wait_for_room(server, nursery, listener);
            if (status == JANUS_OK)
                status = welcome(server, nursery, listener, io);
            else
                JANUS_IGNORE(janus_io_close(io));
        }
        if (may_pass(status)) status = sleep_crowded(listener);
        if (status != JANUS_OK) return status;
    }
}

/* Wakes idle connections soon. Busy ones see the flag when they have answered. */
static void stop(struct jrt_http_server *server)
{
    uint64_t soon = janus_now_ns() + JRT_HTTP_STOP_NS;
    atomic_store(&server->stopping, true);
    JANUS_IGNORE(janus_token_cancel(server->events, JANUS_CANCEL_REASON_EXPLICIT));
    jrt_http_lock(server);
    for (int i = 0; i < JRT_HTTP_QUEUES; i++) {
        if (i == JRT_HTTP_SHAKING) continue;
        for (struct jrt_http_connection *c = server->queues[i].first; c != NULL; c = c->next) {
            bool waits = i != JRT_HTTP_WARM || atomic_load(&c->http->idle);
            if (!waits && !atomic_load(&c->upgraded)) continue;
            JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_READ, soon));
        }
    }
    jrt_http_unlock(server);
}

/* Ends a nursery, and cancels what is left of it at `end`, also if memory for a timer is short. */
static janus_status end_by(janus_nursery *nursery, uint64_t end)
{
    janus_nursery_result result;
    JANUS_IGNORE(janus_nursery_close(nursery));
    while (janus_nursery_set_deadline(nursery, end) == JANUS_NO_MEMORY &&
           !janus_nursery_try_await(nursery, &result)) {
        if (janus_now_ns() >= end) JANUS_IGNORE(janus_nursery_cancel(nursery));
        if (janus_yield() != JANUS_OK) break;
    }
    return janus_nursery_end(nursery, NULL);
}

static janus_status serve(struct jrt_http_server *server, janus_io listener)
{
    static const janus_nursery_options options = {.struct_bytes = sizeof options,
                                                  .policy = JANUS_POLICY_WAIT_ALL,
                                                  .exhaustion = JANUS_EXHAUSTION_END,
                                                  .name = "connections",
                                                  .hidden = true};
    janus_nursery                      nursery;
    janus_status                       status = janus_nursery_open(&nursery, &options);
    if (status < JANUS_OK) return status;
    if (server->began != NULL) server->began(server->began_argument);
    janus_status served = accept_all(server, &nursery, listener);
    stop(server);
    status = end_by(&nursery, jrt_http_after(janus_now_ns(), server->options.grace_ns));
    /* A task that was broken off has left its record. */
    for (int i = 0; i < JRT_HTTP_QUEUES; i++) {
        JANUS_EXPECT(status != JANUS_OK || server->queues[i].first == NULL);
    }
    if (served != JANUS_CLOSED && served != JANUS_STALE) return served;
    return janus_cancelled() ? JANUS_CANCELLED : JANUS_OK; /* a cancel closes the nursery, too */
}

/* A task that closes the listener when a signal comes. Afterwards the signal has its old effect. */
static int64_t stop_on_signal(void *argument)
{
    struct jrt_http_watch *watch = argument;
    janus_status           status;
    do {
        status = janus_signal_wait_next(watch->number, &watch->count, JANUS_IO_NEVER);
    } while (status != JANUS_OK && jrt_http_try_again(status));
    if (status != JANUS_OK) return status;
    unwatch(watch);
    JANUS_IGNORE(janus_io_close(watch->listener));
    return 0;
}

/* Catches the signals before the first connection comes, so that none has its usual effect. */
static janus_status watch_signals(struct jrt_http_server *server, janus_nursery *helpers,
                                  janus_io listener)
{
    static const int numbers[JRT_HTTP_SIGNALS] = {SIGTERM, SIGINT};
    janus_status     status = JANUS_OK;
    for (int i = 0; i < JRT_HTTP_SIGNALS && status == JANUS_OK; i++) {
        struct jrt_http_watch *watch = &server->watches[i];
        *watch = (struct jrt_http_watch){.listener = listener, .number = numbers[i]};
        status = janus_signal_catch(watch->number, &watch->count);
        watch->caught = status == JANUS_OK;
        if (status == JANUS_OK) status = janus_spawn(helpers, stop_on_signal, watch);
    }
    return status;
}

/* Starts the tasks beside the connections. */
static janus_status start_helpers(struct jrt_http_server *server, janus_nursery *helpers,
                                  janus_io listener)
{
    janus_status status = janus_spawn(helpers, jrt_http_tick, server);
    if (status != JANUS_OK || !server->options.stop_on_signals) return status;
    return watch_signals(server, helpers, listener);
}

static janus_status serve_with_helpers(struct jrt_http_server *server, janus_io listener)
{
    janus_nursery helpers;
    janus_status  status = janus_nursery_open(
        &helpers, JANUS_NURSERY_OPTIONS(.name = "http", .policy = JANUS_POLICY_WAIT_ALL,
                                         .exhaustion = JANUS_EXHAUSTION_END, .owner_apart = true));
    if (status < JANUS_OK) return status;
    status = jrt_http_wire_stack(server, &helpers);
    if (status == JANUS_OK) status = start_helpers(server, &helpers, listener);
    if (status == JANUS_OK && server->single == NULL) status = serve(server, listener);
    if (status == JANUS_OK && server->single != NULL) jrt_http_connection_run(server->single);
    JANUS_IGNORE(janus_nursery_cancel(&helpers));
    JANUS_IGNORE(janus_nursery_end(&helpers, NULL));
    return status;
}

static janus_status serve_and_log(struct jrt_http_server *server, janus_io listener)
{
    janus_nursery logs;
    if (is_none(server->options.log)) return serve_with_helpers(server, listener);
    janus_status status = janus_nursery_open(
        &logs, JANUS_NURSERY_OPTIONS(.name = "log", .exhaustion = JANUS_EXHAUSTION_END));
    if (status < JANUS_OK) return status;
    status = jrt_http_log_open(server, &logs);
    if (status == JANUS_OK) {
        status = serve_with_helpers(server, listener);
        jrt_http_log_close(server);
    }
    JANUS_IGNORE(end_by(&logs, janus_now_ns() + LOG_GRACE_NS));
    return status;
}

/* A request that floods leaves tasks to three others. */
static void set_share(struct jrt_http_server *server, uint64_t free_tasks)
{
    uint64_t share = free_tasks / 4 < TASKS_MAX ? free_tasks / 4 : TASKS_MAX;
    if (server->options.request_tasks != 0 || !server->supervised) return;
    server->options.request_tasks = share > 2 ? (uint32_t)share : 2;
}

static janus_status refuse_room(void)
{
    return janus_explain_as(JANUS_TASK_LIMIT, "janus_http_serve",
                            "the scheduler's max_tasks is too small: the server needs two tasks "
                            "for each of its max_connections, and five. Raise "
                            "janus_scheduler_options.max_tasks to JANUS_HTTP_TASKS(connections), "
                            "or lower janus_http_options.max_connections");
}

/*
 * A request may open an eighth of the descriptors that connections do not need. It may do so for
 * sockets, for files and for processes. So two requests that flood leave some to others.
 */
static void set_handles(struct jrt_http_server *server)
{
    struct rlimit limit = {.rlim_cur = OWN_HANDLES};
    uint64_t      taken = OWN_HANDLES + (uint64_t)server->options.max_connections;
    if (server->options.request_handles != 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    uint64_t share = limit.rlim_cur > taken ? (limit.rlim_cur - taken) / 8 : 0;
    if (share > HANDLES_MAX) share = HANDLES_MAX;
    server->options.request_handles = share > HANDLES_MIN ? (uint32_t)share : HANDLES_MIN;
}

/*
 * Sees to it that the scheduler has tasks for all connections. If a connection could not start the
 * task of its request, all would wait for each other.
 */
static janus_status set_room(struct jrt_http_server *server)
{
    janus_http_options *options = &server->options;
    janus_context_info  context = JANUS_CONTEXT_INFO();
    janus_status        status = janus_context_inspect(&context);
    if (status != JANUS_OK) return status;
    uint64_t max = context.max_tasks != 0 ? context.max_tasks : CONNECTIONS_MAX * UINT64_C(3);
    if (max < OWN_TASKS + 2) return refuse_room();
    uint64_t most = (max - OWN_TASKS) / 2, usual = max / 5 * 2;
    if (options->max_connections > most) return refuse_room();
    if (usual > CONNECTIONS_MAX) usual = CONNECTIONS_MAX;
    if (options->max_connections == 0)
        options->max_connections = (uint32_t)(usual < most && usual > 0 ? usual : most);
    janus_semaphore_init(&server->room, options->max_connections, JANUS_WAKER_TASKS,
                         "room for connections");
    set_share(server, max - OWN_TASKS - UINT64_C(2) * options->max_connections);
    set_handles(server);
    return JANUS_OK;
}

/* Opens the standard output for the log, if the options ask for it. */
static janus_status open_log(janus_http_options *options, bool *opened)
{
    if (!options->logs || !is_none(options->log)) return JANUS_OK;
    janus_status status = janus_io_standard(1, NULL, &options->log);
    *opened = status == JANUS_OK;
    if (status == JANUS_UNAVAILABLE) { /* a simulated run has no standard output */
        options->log = (janus_io){{0, 0}};
        return JANUS_OK;
    }
    return status;
}

/* Refuses a listener that cannot serve. Later on, STALE means that somebody has closed it. */
static janus_status check_listener(janus_io listener, const janus_http_options *options)
{
    janus_io_info info = JANUS_IO_INFO();
    janus_status  status = janus_io_inspect(listener, &info);
    if (status != JANUS_OK) return status;
    if (info.kind != JANUS_IO_KIND_LISTENER) return JANUS_STATE;
    if (options->stop_on_signals && (info.rights & JANUS_IO_MAY_CLOSE) == 0) return JANUS_CAP_RIGHT;
    return JANUS_OK;
}

janus_status janus_http_serve(janus_io listener, janus_http_handler *handler, void *argument,
                              const janus_http_options *options)
{
    return jrt_http_serve_and_tell(listener, handler, argument, options, NULL, NULL);
}

janus_status jrt_http_serve_and_tell(janus_io listener, janus_http_handler *handler, void *argument,
                                     const janus_http_options *options, void (*began)(void *),
                                     void *began_argument)
{
    struct keeper          *keeper = NULL;
    bool                    own_log = false;
    struct jrt_http_server *server = calloc(1, sizeof *server); /* the stack may be small */
    if (server == NULL) return JANUS_NO_MEMORY;
    janus_status status = set_up(server, handler, argument, options);
    server->began = began;
    server->began_argument = began_argument;
    if (status == JANUS_OK) status = set_room(server);
    if (status == JANUS_OK) status = check_listener(listener, &server->options);
    if (status == JANUS_OK) status = keep(server, &keeper);
    if (status == JANUS_OK) status = janus_token_create(&server->events);
    if (status == JANUS_OK) status = open_log(&server->options, &own_log);
    if (status == JANUS_OK) status = serve_and_log(server, listener);
    if (keeper != NULL) keeper->server = NULL;
    if (own_log) JANUS_IGNORE(janus_io_close(server->options.log));
    take_down(server);
    return status;
}

/* The server of one connection is memory of its task. */
struct single {
    struct jrt_http_server     server;
    struct jrt_http_connection connection;
};

janus_status janus_http_serve_one(janus_io io, janus_http_handler *handler, void *argument,
                                  const janus_http_options *options)
{
    struct single *single = NULL;
    janus_status   status = jrt_http_alloc(sizeof *single, (void **)&single);
    if (status != JANUS_OK) return status;
    struct jrt_http_server *server = &single->server;
    status = set_up(server, handler, argument, options);
    if (status == JANUS_OK && (has_log(&server->options) || server->options.stop_on_signals)) {
        status = JANUS_UNAVAILABLE;
    }
    if (status == JANUS_OK && !jrt_http_wire_may(server)) status = JANUS_INVALID;
    janus_io_info info = JANUS_IO_INFO();
    if (status == JANUS_OK) status = janus_io_inspect(io, &info);
    if (status == JANUS_OK && info.kind == JANUS_IO_KIND_LISTENER) status = JANUS_STATE;
    janus_context_info context = JANUS_CONTEXT_INFO();
    if (status == JANUS_OK) status = janus_context_inspect(&context);
    if (status == JANUS_OK) {
        set_share(server, context.max_tasks);
        set_handles(server);
        single->connection = (struct jrt_http_connection){.io = io, .server = server};
        server->single = &single->connection;
        status = serve_with_helpers(server, io);
    }
    free_blocks(server->blocks);
    free_blocks(server->haunted);
    free_blocks(server->retired);
    janus_free(single);
    return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * The task of a connection: cold, warm, and what remains of a request that failed.
 *
 * No pool is larger than the scheduler's max_budget, which is small by
 * default: 100 system calls. So without options.request_budget the child has no pool. The
 * connection's task recharges the child with portions, until one request has had all that a request
 * may use. What the handler itself starts has budgets as anywhere else in the program: the child
 * opens a nursery with the policy AUTO around its requests.
 */
#include "http/block.h"
#include "http/server.h"

#include <janusrt/memory.h>
#include <stdlib.h>
#include <sys/mman.h>

void jrt_http_lock(struct jrt_http_server *server)
{
    janus_shield shield;
    janus_status status;
    while (janus_semaphore_try_acquire(&server->lock) != JANUS_OK) { /* a try ignores a cancel */
        /* A shield with a deadline does not end with the scheduler's grace_ns. */
        janus_shield_begin_until(&shield, JANUS_IO_NEVER - 1);
        status = janus_semaphore_acquire(&server->lock);
        janus_shield_end();
        if (status == JANUS_OK) return;
    }
}

/* Puts a connection at the end of a queue. The caller holds the lock. */
static void join(struct jrt_http_connection *c, enum jrt_http_queue_name name)
{
    struct jrt_http_queue *queue = &c->server->queues[name];
    c->queue = (uint8_t)name & 15u;
    c->next = NULL;
    c->link = queue->end;
    *queue->end = c;
    queue->end = &c->next;
}

static void quit(struct jrt_http_connection *c)
{
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    else
        c->server->queues[c->queue].end = c->link;
}

/* The connection is cold from now on. The tick closes it after `duration`. */
static void join_cold(struct jrt_http_connection *c, enum jrt_http_queue_name name,
                      uint64_t duration)
{
    c->due = jrt_http_after(janus_now_ns(), duration);
    join(c, name);
    /* From now on the tick and the stop set deadlines. */
    JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_READ, JANUS_IO_NEVER));
    jrt_http_tick_by(c->server, c->due);
}

static void join_warm(struct jrt_http_connection *c)
{
    struct jrt_http_server *server = c->server;
    c->http->tick_requests = UINT32_MAX;
    c->http->tick_writing = 0;
    join(c, JRT_HTTP_WARM);
    /* seq_cst: rare */
    uint32_t count = atomic_fetch_add(&server->warm_count, 1) + 1;
    if (count > server->warm_peak) server->warm_peak = count;
    server->warmed++;
    if (server->warm_at != JANUS_IO_NEVER) return;
    server->warm_at = janus_now_ns() + JRT_HTTP_TICK_NS;
    jrt_http_tick_by(server, server->warm_at);
    jrt_http_date_set(server); /* nobody did while no connection was warm */
}

/*
 * Makes a block, at the place `http` of an empty one if that is not NULL. A single connection's
 * block is memory of its task.
 */
static struct janus_http *make_block(struct jrt_http_server *server, struct janus_http *http)
{
    if (server->single != NULL) {
        char  *origin = NULL;
        size_t wanted = server->block_bytes + JRT_HTTP_PLACE_BYTES - 1;
        if (jrt_http_alloc(wanted, (void **)&origin) != JANUS_OK) return NULL;
        http = (struct janus_http *)(void *)(origin + -(uintptr_t)origin % JRT_HTTP_PLACE_BYTES);
        memset(http, 0, sizeof *http);
        http->origin = origin;
    } else if (http == NULL) {
        void *mapped = mmap(NULL, server->block_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return NULL;
        if (!jrt_http_is_place(mapped)) { /* Linux does not give higher addresses unasked */
            (void)munmap(mapped, server->block_bytes);
            return NULL;
        }
        http = mapped;
    }
    char *buffers = (char *)(http->fields + server->options.max_fields);
    http->server = server;
    http->in = buffers;
    http->large = buffers + server->in_bytes;
    http->rare = (struct jrt_http_rare *)(void *)(http->large + JRT_HTTP_OUT_BYTES);
    jrt_http_head_init(&http->head, http->fields, (uint16_t)server->options.max_fields,
                       &server->limits);
    jrt_http_head_init(&http->trailers, http->rare->trailer_fields, JRT_HTTP_TRAILERS_MAX, NULL);
    return http;
}

void jrt_http_block_free(struct janus_http *http)
{
    if (http->origin != NULL)
        janus_free(http->origin);
    else
        (void)munmap(http, http->server->block_bytes);
}

/* Prepares a block for a connection. */
static void set_block(struct jrt_http_connection *c, struct janus_http *http)
{
    http->connection = c;
    http->io = c->io;
    http->wire = jrt_http_wire_of(c);
    http->read_deadline = 0; /* unknown */
    /* relaxed, all: nobody else sees the block yet. */
    atomic_store_explicit(&http->requests, c->requests, memory_order_relaxed);
    atomic_store_explicit(&http->writing, 0, memory_order_relaxed);  /* relaxed: as above */
    atomic_store_explicit(&http->stalled, 0, memory_order_relaxed);  /* relaxed: as above */
    atomic_store_explicit(&http->idle, false, memory_order_relaxed); /* relaxed: as above */
    http->at = http->body = http->end = 0;
    http->out = (struct jrt_http_out){http->small, JRT_HTTP_SMALL_BYTES, 0};
    if (c->early) http->in[http->end++] = c->first;
    c->early = false;
    http->active = false;
    http->broken = JANUS_OK;
    http->peer_known = false;
}

/* Takes a block that a guest has left. The caller holds the lock. NULL: there is no such block. */
static struct janus_http *take_haunted(struct jrt_http_server *server)
{
    struct janus_http **link = &server->haunted;
    while (*link != NULL && (atomic_load(&(*link)->guests) != 0 || jrt_http_is_used_up(*link))) {
        link = &(*link)->next;
    }
    struct janus_http *http = *link;
    if (http != NULL) *link = http->next;
    return http;
}

/* Makes room for another place. */
static bool grow_empty(struct jrt_http_server *server)
{
    uint32_t room = server->empty_room * 2 + JRT_HTTP_BLOCKS_KEPT;
    if (server->empty_count < server->empty_room) return true;
    struct jrt_http_place *empty = realloc(server->empty, room * sizeof *empty);
    if (empty == NULL) return false;
    server->empty = empty;
    server->empty_room = room;
    return true;
}

bool jrt_http_block_empty(struct jrt_http_server *server, struct janus_http *http)
{
    if (!grow_empty(server)) return false;
    server->empty[server->empty_count++] = (struct jrt_http_place){http, http->serial};
    (void)madvise(http, server->block_bytes, MADV_DONTNEED);
    return true;
}

/* The block gets no more requests. Its first page tells that its names are over. */
static void retire(struct jrt_http_server *server, struct janus_http *http)
{
    http->next = server->retired;
    server->retired = http;
    if (http->origin != NULL || server->block_bytes <= JRT_HTTP_PLACE_BYTES) return;
    (void)madvise((char *)http + JRT_HTTP_PLACE_BYTES, server->block_bytes - JRT_HTTP_PLACE_BYTES,
                  MADV_DONTNEED);
}

/* Puts a block away that its connection has left. The caller holds the lock. */
static void put_block(struct jrt_http_server *server, struct janus_http *http)
{
    struct janus_http **list = &server->blocks;
    if (atomic_load(&http->guests) != 0) {
        list = &server->haunted;
    } else if (jrt_http_is_used_up(http)) {
        retire(server, http);
        return;
    } else if (server->block_count >= JRT_HTTP_BLOCKS_KEPT && http->origin == NULL &&
               jrt_http_block_empty(server, http)) {
        return;
    } else {
        server->block_count++;
    }
    http->next = *list;
    *list = http;
}

/* Takes a block that nobody uses, or makes one. False: there is no memory. */
static bool take_block(struct jrt_http_connection *c)
{
    struct jrt_http_server *server = c->server;
    jrt_http_lock(server);
    struct janus_http *http = server->blocks;
    if (http != NULL) {
        server->blocks = http->next;
        server->block_count--;
    } else {
        http = take_haunted(server);
    }
    if (http == NULL) {
        struct jrt_http_place place = {NULL, 0};
        if (server->empty_count > 0) place = server->empty[--server->empty_count];
        jrt_http_unlock(server);
        http = make_block(server, place.at);
        if (http == NULL) return false;
        http->serial = place.serial;
        jrt_http_lock(server);
    }
    quit(c);
    set_block(c, http);
    c->http = http;
    join_warm(c);
    jrt_http_unlock(server);
    return true;
}

static void give_block(struct jrt_http_connection *c)
{
    struct jrt_http_server *server = c->server;
    struct janus_http      *http = c->http;
    c->requests = atomic_load(&http->requests);
    jrt_http_lock(server);
    atomic_fetch_sub(&server->warm_count, 1); /* seq_cst: rare */
    quit(c);
    join_cold(c, JRT_HTTP_IDLE, server->options.idle_ns);
    put_block(server, http);
    jrt_http_unlock(server);
}

static void read_until(const struct jrt_http_connection *c, uint64_t deadline)
{
    JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_READ, deadline));
}

/* Waits for the first byte of a request. False: the connection is over. */
static bool wait_cold(struct jrt_http_connection *c)
{
    if (atomic_load(&c->server->stopping)) read_until(c, janus_now_ns() + JRT_HTTP_STOP_NS);
    janus_status status = jrt_wire_wait(jrt_http_wire_of(c), c->io);
    if (status != JANUS_DEADLINE) return status == JANUS_OK;
    /* A request that came in time is answered, however late the tick or this task runs. */
    size_t got = 0;
    read_until(c, JANUS_IO_NEVER);
    c->early = jrt_wire_try_read(jrt_http_wire_of(c), c->io, &c->first, 1, &got) == JANUS_OK;
    return c->early;
}

/*
 * The child did not return. What it had written to the buffer is whole, unless it ended while it
 * was sending. An answer that had not begun becomes a 500.
 */
static void salvage(struct jrt_http_connection *c, janus_status ended)
{
    struct janus_http *http = c->http;
    c->then = JRT_HTTP_THEN_CLOSE;
    bool whole = ended != JANUS_CANCELLED && atomic_load(&http->writing) % 2 == 0 &&
                 http->broken == JANUS_OK;
    if (whole && http->active && http->stage == JRT_HTTP_STAGE_NONE) {
        whole = jrt_http_make_room(http, JRT_HTTP_ERROR_BYTES) == JANUS_OK;
        if (whole) jrt_http_answer_error(http, 500, "the handler of this request failed");
    }
    if (http->active) jrt_http_log_request(http);
    if (!whole) return;
    bool cut = http->stage == JRT_HTTP_STAGE_STREAM;
    if (jrt_http_flush_all(http) == JANUS_OK && !cut) c->then = JRT_HTTP_THEN_LEAVE;
}

/* The child has left the end of its answer to us. */
static void settle(struct jrt_http_connection *c)
{
    struct janus_http *http = c->http;
    jrt_http_answer_end(http, http->result);
    jrt_http_log_request(http);
    if (jrt_http_flush_all(http) == JANUS_OK && !http->failed) c->then = JRT_HTTP_THEN_LEAVE;
}

/* Gives an exhausted child another portion. It runs in the child. */
static janus_verdict recharge(void *argument, const janus_exhausted *child, janus_budget *grant)
{
    const struct jrt_http_connection *c = argument;
    struct janus_http                *http = c->http;
    const janus_budget               *most = &c->server->share;
    janus_budget                      given = janus_budget_add(http->given, http->portion);
    bool                              fits =
        (child->lacks == JANUS_COMPONENT_OPS && given.ops <= most->ops) ||
        (child->lacks == JANUS_COMPONENT_SYSCALLS && given.syscalls <= most->syscalls) ||
        (child->lacks == JANUS_COMPONENT_CHANNEL_OPS && given.channel_ops <= most->channel_ops);
    if (!fits) return JANUS_VERDICT_IGNORE; /* then it ends */
    http->given = given;
    *grant = http->portion;
    return JANUS_VERDICT_RECHARGE;
}

/* Half of a budget. */
static janus_budget half_of(janus_budget b)
{
    return janus_budget_of(b.ops / 2, b.memory / 2, b.spawn_count / 2, b.channel_ops / 2,
                           b.syscalls / 2);
}

/* Opens the nursery of the child. */
__attribute__((noinline)) static janus_status open_nursery(struct jrt_http_connection *c,
                                                           janus_budget               *granted)
{
    /* The child alone is in it, and no handler finds it. So nothing outlives the child. */
    janus_nursery_options options = {.struct_bytes = sizeof options,
                                     .name = "requests",
                                     .max_children = 1,
                                     .max_handles = c->server->options.request_handles,
                                     .hidden = true};
    if (c->server->supervised) {
        options.exhaustion = JANUS_EXHAUSTION_SUPERVISE;
        options.on_exhausted = recharge;
        options.on_exhausted_argument = c;
    } else {
        options.exhaustion = JANUS_EXHAUSTION_END;
        options.budget = &c->server->pool;
        options.granted = granted;
        uint32_t tasks = c->server->options.request_tasks;
        options.max_tasks = tasks != 0 ? tasks + 1 : 0; /* and the child itself */
    }
    return janus_nursery_open(c->http->nursery, &options);
}

/* Opens the nursery of the child. The child gets at most half of the pool, which may be smaller
 * than it should be. */
static janus_status open_requests(struct jrt_http_connection *c)
{
    struct janus_http *http = c->http;
    http->share = c->server->pool; /* a place for what is granted */
    janus_status status = open_nursery(c, &http->share);
    http->share = janus_budget_min(c->server->share, half_of(http->share));
    return status;
}

/* Answers that no child can be started, if a request has begun. Its first byte may be unread. */
static void excuse(struct jrt_http_connection *c, janus_status status)
{
    struct janus_http *http = c->http;
    if (http->end == http->at) {
        http->at = http->end = 0;
        read_until(c, JANUS_IO_NEVER);
        JANUS_IGNORE(
            jrt_wire_try_read(http->wire, http->io, http->in, c->server->in_bytes, &http->end));
    }
    if (http->end > http->at) {
        jrt_http_request_begin(&http->head);
        jrt_http_body_begin(http);
        jrt_http_blame_room(http, status);
        if (jrt_http_make_room(http, JRT_HTTP_ERROR_BYTES) != JANUS_OK) return;
        jrt_http_answer_error(http, 503, "the server has no room for this request");
        jrt_http_log_request(http);
    }
    if (jrt_http_flush_all(http) == JANUS_OK) c->then = JRT_HTTP_THEN_LEAVE;
}

/*
 * Spawns the child. If the scheduler has as many tasks as it may have, the spawn waits for as long
 * as a client may need for a head. Other connections may hold all the tasks and wait for the same.
 */
__attribute__((noinline)) static janus_status spawn_in_time(struct jrt_http_connection *c,
                                                            janus_spawn_options        *options)
{
    janus_nursery *nursery = c->http->nursery;
    janus_status   status = janus_spawn_with(nursery, jrt_http_exchange, c, options, NULL);
    if (status != JANUS_TASK_LIMIT) return status;
    uint64_t end = jrt_http_after(janus_now_ns(), c->server->options.head_ns);
    status = janus_nursery_set_deadline(nursery, end);
    if (status != JANUS_OK) return status;
    options->when_full = JANUS_WHEN_FULL_WAIT;
    status = janus_spawn_with(nursery, jrt_http_exchange, c, options, NULL);
    if (status == JANUS_OK) JANUS_IGNORE(janus_nursery_set_deadline(nursery, 0));
    return status;
}

/*
 * The child asks for a larger stack than the connection's task has, so that it cannot run on that
 * stack. Otherwise each handler would leave touched pages there, and an idle connection would need
 * more than one.
 */
__attribute__((noinline)) static size_t child_stack_bytes(const struct jrt_http_server *server)
{
    size_t            wanted = server->options.stack_bytes;
    janus_memory_info own = JANUS_MEMORY_INFO();
    if (janus_memory_inspect(&own) != JANUS_OK || wanted > own.stack_bytes) return wanted;
    return own.stack_bytes + 1;
}

__attribute__((noinline)) static janus_status start_child(struct jrt_http_connection *c)
{
    size_t              wanted = c->server->options.stack_bytes;
    janus_spawn_options options = {.struct_bytes = sizeof options,
                                   .budget = &c->http->share,
                                   .name = "request",
                                   .unjoinable = true,
                                   .stack_bytes = child_stack_bytes(c->server)};
    janus_status        status = spawn_in_time(c, &options);
    if (status != JANUS_SPAWN_BUDGET) return status;
    options.stack_bytes = wanted; /* the request's memory does not pay for the larger stack */
    return spawn_in_time(c, &options);
}

/*
 * Another task is inside of a call, and the request is over. Without the connection the call soon
 * returns. If it does not, as in a task that nobody lets run, the wire stays as it is.
 */
static void show_out(struct jrt_http_connection *c)
{
    janus_shield_begin();
    JANUS_IGNORE(janus_io_shutdown(c->io, JANUS_IO_BOTH));
    for (int i = 0; i < JRT_HTTP_PATIENCE && atomic_load(&c->http->guests) != 0; i++) {
        if (janus_sleep(JANUS_MS) != JANUS_OK) break;
    }
    janus_shield_end();
    if (atomic_load(&c->http->guests) != 0 && c->holder != NULL) c->holder->wire = NULL;
}

/*
 * Runs a child, which serves requests, and decides what comes then. The frames of the connection's
 * task must stay in one page. So what the start of a child needs is not in this frame.
 */
__attribute__((noinline)) static void run_child(struct jrt_http_connection *c)
{
    struct janus_http *http = c->http;
    janus_nursery      requests; /* not in the block, whose address is not the same in each run */
    c->then = JRT_HTTP_THEN_CLOSE;
    http->nursery = &requests;
    http->active = http->began = false;
    http->portion = http->given = janus_budget_zero();
    janus_status status = open_requests(c);
    if (status >= JANUS_OK) {
        status = start_child(c);
        janus_status ended = janus_nursery_await_with(&requests, NULL);
        if (ended != JANUS_OK && http->active) jrt_http_blame_child(http, &requests);
        ended = janus_nursery_end(&requests, NULL);
        if (!jrt_http_name_end(http)) {
            if (http->active) jrt_http_log_request(http); /* the child has ended, too */
            show_out(c);
            return;
        }
        if (status == JANUS_OK && ended != JANUS_OK && !http->began) status = ended; /* no stack */
        if (status == JANUS_OK && ended != JANUS_OK) salvage(c, ended);
        if (status == JANUS_OK && ended == JANUS_OK && http->active) settle(c);
    }
    if (status < JANUS_OK && !janus_cancelled()) excuse(c, status);
}

/*
 * Ends the direction to the client, then reads what the client still sends, and drops it. A socket
 * that is closed with unread bytes resets the connection, and the reset may overtake our answer.
 */
static void leave(struct jrt_http_connection *c)
{
    struct janus_http *http = c->http;
    size_t             got = 0, dropped = 0;
    JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_BOTH, janus_now_ns() + JRT_HTTP_LINGER_NS));
    if (jrt_wire_end(jrt_http_wire_of(c), c->io) != JANUS_OK) return;
    while (dropped < JRT_HTTP_DRAIN_BYTES &&
           janus_io_read(c->io, http->in, c->server->in_bytes, &got) == JANUS_OK) {
        dropped += got;
    }
}

/* Opens the wire, if there is one. False: the connection is over. Either way it is in a queue. */
static bool open_wire(struct jrt_http_connection *c)
{
    struct jrt_http_server *server = c->server;
    jrt_http_lock(server);
    if (server->options.wire != NULL) {
        join(c, JRT_HTTP_SHAKING);
        jrt_http_unlock(server);
        if (!jrt_http_shake(c)) return false;
        jrt_http_lock(server);
        quit(c);
    }
    join_cold(c, JRT_HTTP_FRESH, server->options.head_ns); /* the first head comes at once */
    jrt_http_unlock(server);
    return true;
}

void jrt_http_connection_run(struct jrt_http_connection *c)
{
    struct jrt_http_server *server = c->server;
    bool                    opened = open_wire(c);
    while (opened && wait_cold(c) && take_block(c)) {
        do {
            run_child(c);
        } while (c->then == JRT_HTTP_THEN_FRESH);
        if (c->then == JRT_HTTP_THEN_LEAVE) leave(c);
        give_block(c);
        opened = c->then == JRT_HTTP_THEN_COLD;
    }
    jrt_http_lock(server);
    quit(c);
    jrt_http_unlock(server);
    jrt_http_unwire(c);
    JANUS_IGNORE(janus_io_close(c->io));
}

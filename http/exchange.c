/* SPDX-License-Identifier: MIT */
/*
 * The child of a connection's task: one request after the other.
 *
 * A child serves the next request only if the last handler left the child as it was. It left no
 * memory, no handle, no defer, no shield, no open nursery, no lock, and at least half of the pool.
 * The check costs a tenth of another child. A child that is not clean ends, so that its defers run,
 * and the connection's task starts another one. If the handler holds a lock, the child ends before
 * it waits for the client, because others may wait for the lock. The connection's task ends the
 * answer then.
 *
 * The nurseries around a handler are hidden. It can neither end them nor start tasks in them.
 */
#include "http/server.h"

#include <janusrt/charge.h>
#include <janusrt/memory.h>
#include <janusrt/task.h>

janus_status jrt_http_fill(struct janus_http *http)
{
    size_t       room = http->server->in_bytes - http->end, got = 0;
    janus_status status;
    for (;;) {
        status = jrt_wire_read(http->wire, http->io, http->in + http->end, room, &got);
        if (status == JANUS_OK) http->end += got;
        if (status != JANUS_DEADLINE || janus_now_ns() >= http->read_deadline) return status;
        /* The tick or the stop meant an idle connection. */
        JANUS_IGNORE(janus_io_set_deadline(http->io, JANUS_IO_READ, http->read_deadline));
    }
}

static bool then(struct janus_http *http, enum jrt_http_then what)
{
    http->connection->then = (uint8_t)what & 15u;
    return false;
}

/* Answers for the client's mistake in a head, and ends. */
static bool refuse(struct janus_http *http, unsigned status, const char *why)
{
    jrt_http_body_begin(http);
    http->head.keep_alive = false;
    http->head.method = JRT_HTTP_OTHER;
    if (jrt_http_make_room(http, JRT_HTTP_ERROR_BYTES) != JANUS_OK)
        return then(http, JRT_HTTP_THEN_CLOSE);
    jrt_http_answer_error(http, status, why);
    jrt_http_log_request(http);
    if (jrt_http_flush_all(http) != JANUS_OK) return then(http, JRT_HTTP_THEN_CLOSE);
    return then(http, JRT_HTTP_THEN_LEAVE);
}

/* Whether the client has sent only one request so far. */
static bool is_guest(struct janus_http *http)
{
    /* relaxed: only this task writes it. */
    return atomic_load_explicit(&http->requests, memory_order_relaxed) < 2;
}

/* Reads the first bytes of the next request. False: none came. */
static bool read_first(struct janus_http *http)
{
    size_t got = 0;
    http->at = http->end = 0;
    /* relaxed: about the right number */
    uint32_t warm = atomic_load_explicit(&http->server->warm_count, memory_order_relaxed);
    if (warm > JRT_HTTP_GUESTS_MAX && http->served && (warm > JRT_HTTP_WARM_MAX || is_guest(http)))
        return then(http, JRT_HTTP_THEN_COLD);
    http->served = true;
    /* relaxed, both: the tick comes again, and a stop that is missed here is seen after it. */
    atomic_store_explicit(&http->idle, true, memory_order_relaxed);
    if (atomic_load_explicit(&http->server->stopping, memory_order_relaxed)) {
        jrt_http_read_until(http, janus_now_ns() + JRT_HTTP_STOP_NS);
    } else {
        jrt_http_read_until(http, JANUS_IO_NEVER);
    }
    janus_status status =
        jrt_wire_read(http->wire, http->io, http->in, http->server->in_bytes, &got);
    /* relaxed: if the tick or the stop still sets a deadline, the reads that follow see it. */
    atomic_store_explicit(&http->idle, false, memory_order_relaxed);
    http->end = got;
    if (status == JANUS_OK) return true;
    if (status != JANUS_DEADLINE) return then(http, JRT_HTTP_THEN_CLOSE);
    http->read_deadline = 0; /* unknown */
    if (!atomic_load(&http->server->stopping)) return then(http, JRT_HTTP_THEN_COLD);
    /* A request that came in time is answered, however late this task runs. */
    jrt_http_read_until(http, JANUS_IO_NEVER);
    status = jrt_wire_try_read(http->wire, http->io, http->in, http->server->in_bytes, &http->end);
    return status == JANUS_OK || then(http, JRT_HTTP_THEN_LEAVE);
}

/* Reads more of a head that is incomplete. */
static bool read_rest(struct janus_http *http, uint64_t *end)
{
    if (http->end == http->server->in_bytes) {
        memmove(http->in, http->in + http->at, http->end - http->at);
        http->end -= http->at;
        http->at = 0;
    }
    if (*end == 0) {
        *end = jrt_http_after(janus_now_ns(), http->server->options.head_ns);
    }
    jrt_http_read_until(http, *end);
    janus_status status = jrt_http_fill(http);
    if (status == JANUS_DEADLINE) return refuse(http, 408, "the head took too long");
    return status == JANUS_OK || then(http, JRT_HTTP_THEN_CLOSE);
}

/* Gets the next head. Answers leave when there is nothing left to parse. False: no head comes. */
static bool next_head(struct janus_http *http)
{
    uint64_t end = 0;
    jrt_http_request_begin(&http->head);
    for (;;) {
        if (http->end > http->at) {
            enum jrt_http_step step =
                jrt_http_parse(&http->head, http->in + http->at, http->end - http->at);
            if (step == JRT_HTTP_DONE) return true;
            if (step == JRT_HTTP_BAD) return refuse(http, http->head.status, http->head.why);
        }
        if (jrt_http_flush_all(http) != JANUS_OK) return then(http, JRT_HTTP_THEN_CLOSE);
        bool first = http->end == http->at;
        if (first ? !read_first(http) : !read_rest(http, &end)) return false;
    }
}

/* Chunks are decoded behind the head. If little room is left there, the head moves to the front. */
static void make_space(struct janus_http *http)
{
    size_t behind = http->server->in_bytes - http->at - http->head.bytes;
    if (http->head.framing != JRT_HTTP_CHUNKED || behind >= JRT_HTTP_SPARE_BYTES) return;
    memmove(http->in, http->in + http->at, http->end - http->at);
    http->end -= http->at;
    http->at = 0;
}

static void set_request(struct janus_http *http)
{
    const struct jrt_http_head *head = &http->head;
    const char                 *bytes = http->in + http->at;
    janus_http_request         *request = &http->request;
    request->method = (janus_http_method)head->method;
    request->minor = head->minor;
    request->method_text = jrt_http_public(jrt_http_text_of(bytes, head->method_text));
    request->path = jrt_http_public(jrt_http_text_of(bytes, head->path));
    request->query = jrt_http_public(jrt_http_text_of(bytes, head->query));
    if (!head->has_query) request->query = (janus_http_text){NULL, 0};
    request->host = jrt_http_public(jrt_http_text_of(bytes, head->host));
    request->content_length = head->framing == JRT_HTTP_CHUNKED  ? JANUS_HTTP_UNKNOWN
                              : head->framing == JRT_HTTP_LENGTH ? head->content_length
                                                                 : 0;
    request->argument = http->server->argument;
    request->captured_count = 0;
}

/*
 * Calls the handler some way down the stack. A nursery that the handler leaves open is in a frame
 * that has ended. The calls that find it must not write there.
 */
__attribute__((noinline)) static int64_t call_handler(struct janus_http *http)
{
    char    gap[1536];
    int64_t result;
    __asm__ volatile("" : : "r"(gap) : "memory"); /* the compiler must keep it */
    jrt_http_name_begin(http);
    result = http->server->handler(jrt_http_name(http), &http->request);
    __asm__ volatile("" : : "r"(gap) : "memory");
    return result;
}

/* Calls the handler. What ends its request is called above the gap. */
static int64_t call_named(struct janus_http *http)
{
    int64_t result = call_handler(http);
    http->intruded = !jrt_http_name_end(http);
    return result;
}

/* What the library holds for the task, to see what a handler leaves behind. */
static void look(struct jrt_http_left *out)
{
    janus_memory_info memory = JANUS_MEMORY_INFO();
    JANUS_IGNORE(janus_memory_inspect(&memory)); /* in a task it cannot fail */
    *out = (struct jrt_http_left){memory.record_bytes, memory.frame_count, memory.left_bytes,
                                  memory.lock_count};
}

/*
 * Ends shields that the handler left in frames that have ended, before calls write there. `own`
 * nurseries are ours. False: a nursery may be there, for which nothing can be done here.
 */
static bool end_shields(const struct janus_http *http, size_t own)
{
    const size_t         most = http->before.records + (own + 1) * sizeof(janus_nursery);
    struct jrt_http_left left;
    for (look(&left); left.frames != http->before.frames + own; look(&left)) {
        if (left.records >= most) return false;
        janus_shield_end();
    }
    return true;
}

/* Runs the handler with a time limit. False: it left a nursery open. */
static bool run_limited(struct janus_http *http, int64_t *result)
{
    uint64_t      end = jrt_http_after(janus_now_ns(), http->server->options.handler_ns);
    janus_nursery limit;
    janus_status  status = janus_nursery_open(
        &limit, JANUS_NURSERY_OPTIONS(.deadline_ns = end, .name = "handler", .hidden = true));
    *result = status;
    if (status < JANUS_OK) return true;
    *result = call_named(http);
    http->result = *result;
    if (!end_shields(http, 1)) return false;
    status = janus_nursery_end(&limit, NULL);
    if (status == JANUS_CANCELLED && http->fault == 0) {
        http->fault = 503;
        http->why = "the request took too long";
    }
    return true;
}

/* Runs the handler, and ends its answer. False: it left a nursery open, or a lock. */
static bool run_handler(struct janus_http *http)
{
    int64_t result;
    http->active = true;
    if (http->server->options.handler_ns != 0) {
        if (!run_limited(http, &result)) return false;
    } else {
        result = call_named(http);
    }
    if (http->intruded) {
        http->active = false;
        jrt_http_blame(http, "intruded",
                       "another task was inside of a call with its janus_http when the handler "
                       "returned. Await such tasks first");
        jrt_http_log_request(http);
        return then(http, JRT_HTTP_THEN_CLOSE);
    }
    *janus_task_local() = NULL; /* as for a fresh child */
    struct jrt_http_left left;
    look(&left);
    http->littered = left.records != http->before.records || left.memory != http->before.memory;
    http->result = result;
    /* If a nursery lies in a frame that has ended, little may be called here, so the connection's
     * task ends the answer. */
    if (left.frames != http->before.frames && !end_shields(http, 0)) return false;
    if (left.locks != 0) return false; /* they are abandoned at once */
    jrt_http_answer_end(http, result);
    http->active = false;
    return true;
}

/* Whether at least half of a share is left. A missing spawn of the child itself does not count. */
static bool is_half(const janus_budget *left, const janus_budget *share)
{
    return left->ops >= share->ops / 2 && left->syscalls >= share->syscalls / 2 &&
           left->channel_ops >= share->channel_ops / 2;
}

/* Whether at least half of the child's share and of its pool is left. */
__attribute__((noinline)) static bool has_half(struct janus_http *http)
{
    const janus_budget     *share = &http->share;
    janus_budget            left = janus_budget_get_current();
    janus_nursery_pool_info pool = JANUS_NURSERY_POOL_INFO();
    if (!is_half(&left, share)) return false;
    if (janus_nursery_pool_inspect(http->nursery, &pool) != JANUS_OK) return false;
    return is_half(&pool.left, share) && pool.left.memory >= share->memory / 2 &&
           pool.left.spawn_count >= share->spawn_count / 2;
}

static bool is_clean(struct janus_http *http)
{
    if (http->littered) return false;
    return http->server->supervised || has_half(http);
}

static void count_request(struct janus_http *http)
{
    /* relaxed, both: only this task writes it. */
    uint32_t requests = atomic_load_explicit(&http->requests, memory_order_relaxed);
    atomic_store_explicit(&http->requests, requests + 1,
                          memory_order_relaxed); /* relaxed: as above */
}

/* Sends the last answer of the child. The stop has cancelled a child with a stream of events. */
static janus_status flush_last(struct janus_http *http)
{
    janus_shield shield;
    if (!http->eventful) return jrt_http_flush_all(http);
    janus_shield_begin_until(&shield, janus_now_ns() + JRT_HTTP_LINGER_NS);
    janus_status status = jrt_http_flush_all(http);
    janus_shield_end();
    return status;
}

/* Serves a request whose head has come. False: the child ends. */
static bool serve(struct janus_http *http)
{
    make_space(http);
    http->body = http->at + http->head.bytes;
    count_request(http);
    set_request(http);
    jrt_http_body_begin(http);
    if (!run_handler(http)) return false;
    jrt_http_log_request(http);
    if (http->broken != JANUS_OK) return then(http, JRT_HTTP_THEN_CLOSE);
    if (!http->keep) {
        if (flush_last(http) != JANUS_OK || http->failed) return then(http, JRT_HTTP_THEN_CLOSE);
        return then(http, JRT_HTTP_THEN_LEAVE);
    }
    if (!http->body_over && !jrt_http_body_drain(http)) {
        bool sent = jrt_http_flush_all(http) == JANUS_OK;
        return then(http, sent ? JRT_HTTP_THEN_LEAVE : JRT_HTTP_THEN_CLOSE);
    }
    http->at = http->body;
    return is_clean(http) || then(http, JRT_HTTP_THEN_FRESH);
}

/* What only the beginning of a child needs is not in the frame that all requests have below them.
 * Then a request touches fewer pages. */
__attribute__((noinline)) static janus_status begin(struct jrt_http_connection *c,
                                                    janus_nursery              *shell)
{
    struct janus_http *http = c->http;
    janus_status       status;
    if (c->server->supervised) {
        status = janus_nursery_open(
            shell,
            JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_AUTO, .name = "handlers",
                                  .hidden = true, .max_tasks = c->server->options.request_tasks));
    } else {
        status =
            janus_nursery_open(shell, JANUS_NURSERY_OPTIONS(.name = "handlers", .hidden = true));
    }
    if (status < JANUS_OK) return status;
    http->shell = shell;
    look(&http->before);
    atomic_store(&http->task, janus_task_current_id()); /* seq_cst: rare */
    http->portion = janus_budget_get_current();
    http->portion.memory = http->portion.spawn_count = 0;
    http->served = false;
    http->began = true;
    return JANUS_OK;
}

int64_t jrt_http_exchange(void *argument)
{
    struct jrt_http_connection *c = argument;
    struct janus_http          *http = c->http;
    janus_nursery               shell; /* around all requests */
    janus_status                status = begin(c, &shell);
    if (status < JANUS_OK) return status;
    bool whole = true;
    while (whole && next_head(http)) whole = serve(http);
    /* STATE: the handler has left a nursery open, and the task panics when it returns. */
    JANUS_IGNORE(janus_nursery_end(&shell, NULL));
    return 0;
}

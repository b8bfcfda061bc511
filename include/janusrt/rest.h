/* SPDX-License-Identifier: MIT */
/*
 * Resting tasks: tasks that have no stack while they wait. A million of them need some 500 bytes
 * each, and their states, where a waiting task needs a stack. They suit what is idle most of the
 * time: subscribers, tickers, sessions.
 *
 *     static janus_rest on_price(void *state, janus_status woke)
 *     {
 *         struct subscriber *self = state;
 *         if (woke != JANUS_OK) return janus_rest_done(woke == JANUS_CLOSED ? 0 : woke);
 *         self->sum += self->price;
 *         return janus_rest_recv(self->prices, &self->price);
 *     }
 *
 *     // The scheduler has .max_tasks = 2000000; by default 100 tasks live at a time.
 *     for (int i = 0; i < 1000000 && status == JANUS_OK; i++) {
 *         janus_rest first = janus_rest_recv(all[i].prices, &all[i].price);
 *         status = janus_spawn_resting(&nursery, first, on_price, &all[i], NULL, NULL);
 *     }
 *
 * A resting task is a child of its nursery like any other. The nursery awaits it, and its failure
 * cancels the others. It has a budget, capabilities, an id, a name and a result, and counts under
 * every limit of tasks. What it does between two waits is its step: an ordinary stretch of a task,
 * on a stack of a worker. A step may call everything that a task may call. If it calls something
 * that waits, it keeps its stack meanwhile. A step returns what the task waits for next, or its
 * result. Then its frames are gone, so all that is to last lies in *state.
 *
 * The wait between two steps is the call that an ordinary task would make there: janus_sleep_until,
 * janus_channel_recv_until or janus_io_wait. It has the same rights, price, fairness and statuses.
 * The next step gets the status in `woke`. A cancel wakes the task with CANCELLED. The step then
 * returns janus_rest_done(JANUS_CANCELLED). If it rests again, that wait returns CANCELLED at once,
 * until the allowance for cleanup is used up. In the mode UNWIND the task ends without a step.
 *
 * A ticker that also takes orders receives with a deadline. The next step gets DEADLINE when it is
 * time for a tick, OK with an order, and CLOSED after janus_channel_close:
 *
 *     return janus_rest_recv_until(self->orders, &self->order, self->next_tick);
 *
 * A connection rests in janus_rest_io_wait. The deadline of the handle, set before, says how long
 * it may idle; then the step gets DEADLINE. The handle belongs to the task that accepted it, which
 * pays for it and whose end closes it. So a connection begins with janus_rest_sleep(0). Its first
 * step comes at once and takes the handle over, janus_io_take. A step that got CANCELLED may write
 * a last line under a shield. examples/14_idle.c is the whole program.
 *
 * A state on the heap. The step that ends the task frees it. But a task can also end elsewhere: in
 * the mode UNWIND, in a panic, or with a used-up budget. So let the first step register a defer
 * that frees the state, and give options.drop to free it if there is no first step.
 *
 * What a step leaves behind. Defers belong to the task and run at its end, as in any task. Locks
 * stay held. Shields end with the step. A nursery or a hold that is still open makes the task
 * panic, and so does a value that lies on the step's stack.
 */
#ifndef JANUSRT_REST_H
#define JANUSRT_REST_H

#include <janusrt/channel.h>
#include <janusrt/export.h>
#include <janusrt/io.h>
#include <janusrt/nursery.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <stdint.h>

/* What a task does after its step. */
typedef enum janus_rest_kind {
    JANUS_REST_KIND_DONE = 0, /* it ends with `result` */
    JANUS_REST_KIND_SLEEP,    /* it waits until `deadline_ns`: OK */
    JANUS_REST_KIND_RECV,     /* it receives *value from `channel`, until deadline_ns */
    JANUS_REST_KIND_IO,       /* it waits until it is worth trying to read from `io`, or to write */
} janus_rest_kind;

/* What a task does after its step, as the functions below make it. Fields that a kind does not name
 * do not matter. */
typedef struct janus_rest {
    janus_rest_kind kind;
    uint32_t        way;         /* IO: JANUS_IO_READ or JANUS_IO_WRITE */
    int64_t         result;      /* DONE: as what an entry returns */
    uint64_t        deadline_ns; /* SLEEP, RECV: on the clock of janus_now_ns; UINT64_MAX: none */
    janus_channel   channel;     /* RECV */
    void           *value;       /* RECV: borrowed until the next step; not on the step's stack */
    janus_io        io;          /* IO: borrowed until the next step */
} janus_rest;

/*
 * The library calls it each time the wait has ended. `woke` is what the wait returned: OK, or an
 * error of the call that it stands for.
 */
typedef janus_rest janus_rest_step(void *state, janus_status woke);

/* The task ends with that result. Below zero: it has failed. */
static inline janus_rest janus_rest_done(int64_t result)
{
    janus_rest rest = {JANUS_REST_KIND_DONE, 0, result, 0, {{0, 0}}, NULL, {{0, 0}}};
    return rest;
}

/* The task waits as janus_sleep_until does. */
static inline janus_rest janus_rest_sleep_until(uint64_t deadline_ns)
{
    janus_rest rest = {JANUS_REST_KIND_SLEEP, 0, 0, deadline_ns, {{0, 0}}, NULL, {{0, 0}}};
    return rest;
}

/* The task waits as janus_sleep does. The time begins now. */
static inline janus_rest janus_rest_sleep(uint64_t duration_ns)
{
    uint64_t now = janus_now_ns();
    return janus_rest_sleep_until(now + duration_ns < now ? UINT64_MAX : now + duration_ns);
}

/* The task waits as janus_channel_recv_until does. */
static inline janus_rest janus_rest_recv_until(janus_channel channel, void *out_value,
                                               uint64_t deadline_ns)
{
    janus_rest rest = {JANUS_REST_KIND_RECV, 0, 0, deadline_ns, {{0, 0}}, out_value, {{0, 0}}};
    rest.channel = channel;
    return rest;
}

/* The task waits as janus_channel_recv does. */
static inline janus_rest janus_rest_recv(janus_channel channel, void *out_value)
{
    return janus_rest_recv_until(channel, out_value, UINT64_MAX);
}

/* The task waits as janus_io_wait does. The deadline of the handle is that of the wait. The step
 * then calls janus_io_try_read, and rests again if that returns WOULD_WAIT. */
static inline janus_rest janus_rest_io_wait(janus_io io, uint32_t way)
{
    janus_rest rest = {JANUS_REST_KIND_IO, way, 0, 0, {{0, 0}}, NULL, {{0, 0}}};
    rest.io = io;
    return rest;
}

JANUS_BEGIN_DECLS

/*
 * Starts a resting task as a child of `nursery`. It waits as `first` says, and then its steps
 * begin. `options` and `out` may be NULL, and mean what they do for janus_spawn_with. options.drop
 * gets `state` if the child ends before its first step. Messages and dumps name the place of the
 * spawn only if options.site says it: JANUS_SPAWN_OPTIONS(.site = JANUS_SITE_HERE).
 *
 * Not all that goes wrong is a status. If a step returns a number that is no kind, its task panics,
 * and the message names the number. If the system refuses the stack for a step that has
 * options.stack_bytes, the task ends with NO_MEMORY without that step. errno does not outlast a
 * step.
 *
 * Context: as janus_spawn_with.
 * Yields:  as janus_spawn_with.
 * Owns:    *state stays the caller's, and must live until the child has ended.
 * Cost:    as janus_spawn_with, and a record of 300 bytes, until the child ends. As a
 *          stack, the record is a part of the task: the limits of tasks bound it. Each step costs
 *          an op, besides what it does.
 * Errors:  INVALID    `step` is NULL, or first.kind is not a kind
 *          STATE      the nursery's backend is BLOCKING or THREADED: their children keep a stack
 *          NO_MEMORY  memory for the record was refused
 *          and those of janus_spawn_with
 */
JANUS_NODISCARD JANUS_API janus_status janus_spawn_resting(janus_nursery *nursery, janus_rest first,
                                                           janus_rest_step *step, void *state,
                                                           const janus_spawn_options *options,
                                                           janus_task_id             *out);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * Resting tasks: tasks that have no stack while they wait. Each needs some 500 bytes besides its
 * state. A waiting task needs a stack, some 5 KiB. Resting tasks suit what is idle most of the
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
 *     for (int i = 0; i < 1000000 && status == JANUS_OK; i++) {
 *         janus_rest first = janus_rest_recv(all[i].prices, &all[i].price);
 *         status = janus_spawn_resting(&nursery, first, on_price, &all[i], NULL, NULL);
 *     }
 *
 * A channel gives each value to one receiver. To give each value to every subscriber, create a
 * channel for each subscriber, and send to all of them. A channel needs 512 bytes more, and room
 * for its values. Many tasks and channels need larger limits in the options of the scheduler:
 *
 *     max_tasks     by default 100 live at a time, or 10,000 in :cluster         TASK_LIMIT
 *     max_channels  by default 1,000 or 10,000; 2^20 in the process              CHANNEL_LIMIT
 *     task_budget   its memory pays for the channels that a task creates, until
 *                   they end: the default of 1 MiB for some 2,000                BUDGET_EXHAUSTED
 *
 * A resting task is a child of its nursery like any other. The nursery awaits it, and its failure
 * cancels the others. It has a budget, capabilities, an id, a name and a result, and counts under
 * every limit of tasks. What it does between two waits is its step: an ordinary stretch of a task,
 * on a stack of a worker. A step may call everything that a task may call. If it calls something
 * that waits, it keeps its stack meanwhile. A step returns what the task waits for next, or its
 * result. Then its frames are gone. So keep in *state what the next step needs.
 *
 * The wait between two steps is the call that an ordinary task would make there: janus_sleep_until,
 * janus_channel_recv_until or janus_io_wait. It has the same rights, price, fairness and statuses.
 * The next step gets the status in `woke`:
 *
 *     SLEEP  OK         the time has come
 *            CANCELLED, NO_MEMORY  see below
 *     RECV   OK         the value lies where `value` points
 *            CLOSED     the channel is closed and empty, or it ended meanwhile
 *            DEADLINE   the deadline of janus_rest_recv_until passed first
 *            DEADLOCK   every task waits, and no event can come
 *            STALE      the channel ended before, or the handle is forged
 *            CAP_RIGHT, INVALID, CANCELLED, NO_MEMORY
 *     IO     OK         it is worth trying; the end of a stream is OK, too
 *            DEADLINE   the deadline of the handle passed first
 *            CLOSED     the handle was closed meanwhile
 *            STALE      the handle was closed before, or is forged
 *            STATE      another task waits for the same direction
 *            CAP_RIGHT, INVALID, CANCELLED, NO_MEMORY, FULL, SYSTEM
 *
 * NO_MEMORY means that memory for the timer or the books of the task was refused. A cancel wakes
 * the task with CANCELLED. The step then returns janus_rest_done(JANUS_CANCELLED). If it rests
 * again, that wait returns CANCELLED at once, until the allowance for cleanup is used up. In the
 * mode UNWIND the task ends without a step.
 *
 * A task cannot rest for a select, a send, an accept, a join or an event. It cannot rest for two
 * things at once, except for a deadline beside a receive or a handle. Then let the step call the
 * function that waits: the step keeps its stack meanwhile. Or let the step start an ordinary task
 * that waits and sends what it got to a channel. The resting task rests for that channel. Start the
 * helper in a nursery around that of the resting task, and keep a pointer to it in *state. The
 * nursery of the resting task itself takes no more children once its owner awaits it.
 *
 * A ticker that also takes orders receives with a deadline. The next step gets DEADLINE when it is
 * time for a tick, OK with an order, and CLOSED after janus_channel_close:
 *
 *     return janus_rest_recv_until(self->orders, &self->order, self->next_tick);
 *
 * The first step. A task that prepares something begins with janus_rest_sleep(0), so its first step
 * comes at once. A flag in its state, `begun` below, says whether a step is the first. The first
 * step can also get CANCELLED, like any other.
 *
 * A connection rests in janus_rest_io_wait. The deadline of the handle, set before, says how long
 * it may idle; then the step gets DEADLINE. The task that accepted the connection owns its handle:
 * it pays for the handle, and its end closes it. So the first step takes the handle over with
 * janus_io_take. Until then the task that accepted it must not end. If that task opened the nursery
 * of the connections itself, it cannot end before them. If it is their sibling, let it accept until
 * it is cancelled. `first` may be janus_rest_io_wait, because a task may wait for a handle that
 * another task owns. But then the first step takes the handle only when bytes have come. A step
 * that got CANCELLED may write a last line under a shield. By default one failed connection cancels
 * the others, so a server opens the nursery with JANUS_POLICY_WAIT_ALL. examples/14_idle.c is the
 * whole program.
 *
 * A state on the heap. If the state is on the heap, the last step may free it. But a task can also
 * end without a last step: in the mode UNWIND, in a panic, or with a used-up budget. So let a defer
 * free the state. Then no step may free it. options.drop frees the state if there is no first step.
 * A task has a first step or its drop is called, never both. Also a first step that gets CANCELLED
 * owns the state:
 *
 *     static janus_rest on_order(void *state, janus_status woke)
 *     {
 *         struct session *self = state;
 *         if (!self->begun) {
 *             self->begun = true;
 *             janus_status status = janus_defer(free, self);
 *             if (status != JANUS_OK) {
 *                 free(self); // no defer will
 *                 return janus_rest_done(status);
 *             }
 *         }
 *         if (woke != JANUS_OK) return janus_rest_done(woke); // the defer frees self
 *         ...
 *
 *     status = janus_spawn_resting(n, janus_rest_sleep(0), on_order, session,
 *                                  JANUS_SPAWN_OPTIONS(.drop = free), NULL);
 *     if (status != JANUS_OK) free(session);
 *
 * The end of a task. First its defers run, the last registered first. They may still use the task's
 * handles and memory. Then the library abandons the locks that the task holds. Last it closes the
 * task's handles and channels, and frees the memory of janus_alloc.
 *
 * A budget for each resting task. A step costs an op, besides what it does. A rest for a channel
 * costs what a receive costs: an op and a channel_op, which comes back if nothing was received. A
 * rest for a handle costs an op. The following lines bound each task. A task that used up its
 * budget ends with BUDGET_EXHAUSTED, and the others go on:
 *
 *     const janus_budget each = JANUS_BUDGET(.ops = 1000, .channel_ops = 300);
 *     JANUS_NURSERY(n, status, .policy = JANUS_POLICY_WAIT_ALL,
 *                   .exhaustion = JANUS_EXHAUSTION_END)
 *     {
 *         started = janus_spawn_resting(n, first, on_price, &all[i],
 *                                       JANUS_SPAWN_OPTIONS(.budget = &each), NULL);
 *         ...
 *
 * What a step leaves behind. Defers belong to the task. Locks stay held. Shields end with the step.
 * A nursery or a hold that is still open makes the task panic. The task also panics if it rests
 * with a `value` pointer into the step's stack.
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

/* DONE: the task's result; below zero it has failed. */
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
 * Not all that goes wrong is a status. If a step returns an unknown kind, its task panics, and the
 * message names the kind. If the system refuses the stack for a step that has options.stack_bytes,
 * the task ends with NO_MEMORY without that step. Its defers run on a stack of ordinary size. If
 * the system refuses that, too, and no task is there that could return a stack, the defers are
 * lost. The next step does not see the errno of this one.
 *
 * Context: as janus_spawn_with.
 * Yields:  as janus_spawn_with.
 * Owns:    *state stays the caller's, and must live until the child has ended.
 * Cost:    as janus_spawn_with, and a record of 304 bytes, until the child ends. No budget pays for
 *          the record. max_tasks bounds how many there are. Each step costs an op, besides what it
 *          does.
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

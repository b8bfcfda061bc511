/* SPDX-License-Identifier: MIT */
/*
 * What is below channels, for chan_model.c: a lock, tasks that park and are woken, and the names
 * under which the shipped code calls them. Included once, after model.h.
 */
#ifndef JANUSRT_TESTS_CHAN_MODEL_FLOOR_H
#define JANUSRT_TESTS_CHAN_MODEL_FLOOR_H

static bool inside; /* bodies run */

/* Small limits, so that a few operations reach them. */
#define JRT_CHAN_CLOSE_BATCH 1
#define JRT_CHAN_KEPT_BYTES 0

/* The lock. A lock without contention is no step: no other thread can see it. */

#define JRT_CHAN_LOCK_H
enum { JRT_CHAN_ADOPTS_AFTER = 4096, JRT_CHAN_ADOPTS_AFTER_MAX = 1 << 20 };
struct jrt_bias;
struct jrt_chan_lock {
    bool             taken;
    uint32_t         until_adopts;
    struct jrt_bias *owner;
};

static bool is_free(void *lock) { return !((struct jrt_chan_lock *)lock)->taken; }

static bool jrt_chan_lock(struct jrt_chan_lock *lock, const struct jrt_bias *self)
{
    (void)self;
    if (inside) model_wait_for(lock, is_free, lock);
    lock->taken = true;
    return false;
}

static bool jrt_chan_lock_more(struct jrt_chan_lock *lock, const struct jrt_bias *self)
{
    return jrt_chan_lock(lock, self);
}

static void jrt_chan_unlock(struct jrt_chan_lock *lock, const struct jrt_bias *as_owner)
{
    (void)as_owner;
    lock->taken = false;
}

static _Atomic(uint32_t) *jrt_chan_lock_fast(struct jrt_chan_lock  *lock,
                                             const struct jrt_bias *self)
{
    (void)jrt_chan_lock(lock, self);
    return (_Atomic(uint32_t) *)(void *)lock; /* which one it is */
}

static bool jrt_chan_lock_owned(const struct jrt_chan_lock *lock, const _Atomic(uint32_t) *held)
{
    (void)lock, (void)held;
    return false;
}

static void jrt_chan_let_go(_Atomic(uint32_t) *held)
{
    jrt_chan_unlock((struct jrt_chan_lock *)(void *)held, NULL);
}

static void jrt_chan_lock_adopt(const struct jrt_chan_lock *lock, const struct jrt_bias *self)
{
    (void)lock, (void)self;
}

/* What is below: tasks that park and are woken. */

#include "cancel/cancel.h"
#include "cancel/park.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

/* No prices. */

#define JRT_CHAN_PAY_H
#include <janusrt/channel.h>

struct jrt_chan_charge {
    uint64_t bytes;
};

static janus_status jrt_chan_pay(struct jrt_worker **worker)
{
    (void)worker;
    return JANUS_OK;
}

static janus_status jrt_chan_pay_cases(struct jrt_worker **worker, uint32_t count)
{
    (void)worker, (void)count;
    return JANUS_OK;
}

static janus_status jrt_chan_settle(const struct jrt_task *task, janus_status status)
{
    (void)task;
    return status;
}

static bool jrt_chan_pay_fast(const struct jrt_task *task) { return task != NULL; }
static void jrt_chan_pay_back(const struct jrt_task *task) { (void)task; }

static janus_status jrt_chan_may_open(uint64_t capacity, uint64_t bytes, bool kept,
                                      struct jrt_chan_charge *out)
{
    (void)capacity, (void)kept;
    out->bytes = bytes;
    return JANUS_OK;
}

static void jrt_chan_opened(struct jrt_chan_charge *charge, janus_channel name,
                            void (*end)(const uint64_t name[2]))
{
    (void)charge, (void)name, (void)end;
}

static void jrt_chan_closed(struct jrt_chan_charge *charge) { (void)charge; }

enum { THREADS = MODEL_THREADS_MAX };

static struct jrt_task    tasks[THREADS];
static struct jrt_worker  workers[THREADS];
static struct jrt_strand  strands[THREADS], spare;
static struct jrt_nursery nursery;
static janus_scheduler   *scheduler;
static _Atomic(uint32_t)  cancelled[THREADS];
static bool               is_task[THREADS];

static struct jrt_worker *own_worker(void)
{
    return inside && is_task[model_self()] ? &workers[model_self()] : NULL;
}

static void park_begin(struct jrt_task *task, enum jrt_wait wait)
{
    (void)wait;
    jrt_store_relaxed(&task->park, (uint32_t)JRT_PARKED); /* relaxed: not published yet. */
}

static bool end_wait(struct jrt_task *task, janus_status status)
{
    uint32_t parked = JRT_PARKED;
    uint32_t awake = (uint32_t)(-(int)status) << 8 | JRT_AWAKE;
    if (!jrt_cas_acq_rel(&task->park, &parked, awake)) return false;
    (void)model_futex_wake(&task->park, 1);
    return true;
}

static janus_status park_now(struct jrt_task *task)
{
    /* seq_cst: [cancel-park]. */
    if (jrt_load_seq_cst(&cancelled[task - tasks]) != 0) (void)end_wait(task, JANUS_CANCELLED);
    uint32_t word;
    while ((word = jrt_load_acquire(&task->park)) == JRT_PARKED) {
        model_futex_wait(&task->park, JRT_PARKED);
    }
    return (janus_status) - (int)(word >> 8);
}

static janus_status park_then(struct jrt_worker *worker, struct jrt_task *task, jrt_finish *finish)
{
    return finish(worker, task, park_now(task));
}

static bool shortly; /* tasks take the fast path, where there is one */

static bool park_cancel(struct jrt_task *task) { return end_wait(task, JANUS_OK); }

/* Deliberate bugs. */
static bool claims_blindly, lets_go_twice;

static bool wake(struct jrt_task *task) { return end_wait(task, JANUS_OK) && !lets_go_twice; }

static bool serve_at_once(struct jrt_worker *worker, struct jrt_task *task)
{
    (void)worker;
    return wake(task);
}

static bool claim_step(_Atomic(uint32_t) *claimed, uint32_t *nobody, uint32_t who)
{
    bool first = jrt_cas_acq_rel(claimed, nobody, who);
    if (!first && claims_blindly) jrt_store_release(claimed, who); /* release: broken anyway. */
    return first || claims_blindly;
}

/* [chan-last]: a waker may write only into a call that has not returned, or into the place on its
 * strand. On a thread's stack that is the call that began next above. */
static struct {
    uintptr_t base;
    bool      live;
} calls[THREADS];

static void written(const volatile void *object)
{
    int       nearest = -1;
    uintptr_t at = (uintptr_t)object;
    for (int i = 0; i < THREADS; i++) {
        bool on_strand = at >= (uintptr_t)&strands[i] && at < (uintptr_t)(&strands[i] + 1);
        if (on_strand) {
            MODEL_CHECK(calls[i].live);
            return;
        }
        if (calls[i].base <= at) continue;
        if (nearest < 0 || calls[i].base < calls[nearest].base) nearest = i;
    }
    MODEL_CHECK(nearest >= 0 && calls[nearest].live);
}

/* The code of jrt_wait_as_thread, whose futex is not the model's. */
static janus_status wait_on(_Atomic(uint32_t) *word, uint64_t deadline_ns)
{
    (void)deadline_ns;
    while (jrt_load_acquire(word) == 0) model_futex_wait(word, 0); /* acquire: what was written. */
    return JANUS_OK;
}

/* A thread that would spin until another has done something waits for it instead. */
static bool is_done(void *word) { return atomic_load((_Atomic(uint32_t) *)word) != 0; }

#define jrt_worker_self own_worker
#define jrt_stack_check() ((void)0)
#define jrt_worker_stack_check(worker) ((void)0)
#define jrt_task_cancel_reason(task) ((void)(task), JANUS_CANCEL_REASON_NONE)
#define jrt_task_cancelled_or_end(task) ((void)(task), JANUS_CANCELLED)
#define jrt_task_is_clean(task) ((void)(task), true)
#define jrt_worker_stack_is_fine(worker) ((void)(worker), shortly)
#define jrt_task_park_begin park_begin
#define jrt_task_park_begin_fast park_begin
#define jrt_task_park_fast park_then
#define jrt_task_serve_fast serve_at_once
#define jrt_task_park_cancellable park_now
#define jrt_task_park_then park_then
#define jrt_task_park_undo park_cancel
#define jrt_task_serve_from_anywhere wake
#define jrt_worker_can_leave(worker) true
#define jrt_others_wait(worker) false
#define jrt_wait_as_thread wait_on
#define jrt_futex_wait_until(word, expected, until)                                                \
    ((void)(until), model_futex_wait(word, expected), true)
#define jrt_futex_wake(word, count) ((void)model_futex_wake(word, count))
#define jrt_thread_yield() model_wait_until(is_done, &party->done)

#include "base/rng.h"
#define jrt_rng_below(rng, n) ((void)(rng), model_choose(n))

#endif

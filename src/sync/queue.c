/* SPDX-License-Identifier: MIT */
/*
 * Objects that tasks and threads wait for.
 *
 * [sync-word]  one word: flags in the low bits, above them a value, or for a mutex its holder. If
 *   no thread waits and none is BUSY, a step is one compare-and-swap of the whole word. Everything
 *   else needs BUSY. While a thread has set BUSY, no other thread changes the word, and the queue
 *   belongs to that thread. WAITERS says that the queue is not empty. With it set, only a BUSY
 *   thread changes the word, so no newcomer overtakes. A thread holds BUSY for a few instructions
 *   and a wake-up, never across a wait.
 *
 * [sync-grant]  a thread that opens the object, under BUSY, gives the first waiter what it waits
 *   for, takes it off the queue and wakes it. So waiters are served in order, none starves, and
 *   each wait has one wake-up. (A mutex first nudges, [mutex-nudge]: the first waiter stays in the
 *   queue and is woken to try itself.)
 *
 *   A wait may end otherwise: by a cancel, a deadline or a deadlock. Then the waiter takes BUSY. If
 *   it is still in the queue, it leaves it, and nothing happened. If not, it was granted what it
 *   waited for at the same moment, and returns that: nothing is lost. Wakers wake under BUSY, so no
 *   late wake-up meets another wait.
 *
 * [sync-last]  a granted waiter waits until BUSY is clear before it returns. By then the granting
 *   thread has touched the object for the last time, and the waiter may free it. So objects need no
 *   destroy call.
 *
 * [sync-outside]  a task is not part of a deadlock if somebody outside its scheduler may end its
 *   wait. It counts in scheduler->outside. For a mutex this depends on the holder. For other
 *   objects their maker declares it.
 *
 * [sync-select]  a select waits in the queue too, by a waiter that lies in its case. To grant it, a
 *   thread claims the select, and wakes it if that succeeds. Either way the waiter is off the
 *   queue. The select takes BUSY before it returns, so [sync-last] holds for it too.
 *
 * models/sync_grant.pml tries all orders of a grant, a cancel, and the object's end.
 */
#include "sync/queue.h"

#include "cancel/wait.h"
#include "means/holder.h"
#include "rt/source.h"
#include "sync/queue.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

uint64_t jrt_sync_enter(struct jrt_sync *sync)
{
    uint64_t word;
    unsigned rounds = 0;
    while (!jrt_sync_try_enter(sync, &word)) jrt_spin_pause(&rounds);
    return word;
}

bool jrt_sync_try_enter(struct jrt_sync *sync, uint64_t *out_word)
{
    uint64_t word = jrt_load_relaxed(&sync->word); /* relaxed: the cas decides. */
    do {
        if ((word & JRT_SYNC_BUSY) != 0) return false;
        /* acq_rel: as a lock. It also publishes the first waiter's holder to threads that find
         * it. */
    } while (!jrt_cas_acq_rel(&sync->word, &word, word | JRT_SYNC_BUSY));
    *out_word = word;
    return true;
}

/* The queue. */

struct jrt_waiter *jrt_sync_first(struct jrt_sync *sync) { return sync->first; }

uint64_t jrt_sync_marked(const struct jrt_sync *sync, uint64_t word)
{
    word &= ~JRT_SYNC_WAITERS;
    return sync->first != NULL ? word | JRT_SYNC_WAITERS : word;
}

static void push(struct jrt_sync *sync, struct jrt_waiter *waiter)
{
    struct jrt_waiter *first = sync->first != NULL ? sync->first : waiter;
    if (first == waiter) waiter->prev = waiter;
    waiter->next = first;
    waiter->prev = first->prev;
    first->prev->next = waiter;
    first->prev = waiter;
    sync->first = first;
}

static void take_out(struct jrt_sync *sync, struct jrt_waiter *waiter)
{
    waiter->prev->next = waiter->next;
    waiter->next->prev = waiter->prev;
    if (sync->first == waiter) sync->first = waiter->next != waiter ? waiter->next : NULL;
}

void jrt_sync_count(struct jrt_waiter *waiter, bool outside)
{
    if (waiter->task == NULL || waiter->counted == outside) return;
    janus_scheduler *scheduler = waiter->task->nursery->scheduler;
    waiter->counted = outside;
    if (outside) {
        jrt_fetch_add_relaxed(&scheduler->outside, 1u); /* relaxed: a count. */
    } else {
        jrt_outside_less(scheduler);
    }
}

static void wake_task(struct jrt_task *task)
{
    janus_scheduler   *scheduler = task->nursery->scheduler;
    struct jrt_worker *worker = jrt_worker_self();
    bool               guest = worker == NULL || worker->scheduler != scheduler; /* [point-guest] */
    if (guest) jrt_fetch_add_relaxed(&scheduler->guests, 1u); /* relaxed: before the wake. */
    (void)jrt_task_wake(task, JANUS_OK);
    if (guest) jrt_fetch_sub_release(&scheduler->guests, 1u); /* release: the last touch. */
}

static void wake(struct jrt_waiter *waiter, enum jrt_woken how)
{
    struct jrt_task *task = waiter->task;
    jrt_store_release(&waiter->woken, (uint32_t)how); /* release: the outcome. */
    if (task != NULL) {
        wake_task(task);
    } else {
        jrt_futex_wake(&waiter->woken, 1);
    }
}

static void grant_lookout(struct jrt_waiter *waiter)
{
    struct jrt_lookout *lookout = waiter->lookout;
    jrt_store_relaxed(&waiter->woken, (uint32_t)JRT_GRANTED); /* relaxed: while BUSY. */
    if (lookout->claim(lookout)) lookout->wake(lookout);
}

void jrt_sync_grant(struct jrt_sync *sync, struct jrt_waiter *waiter, janus_status outcome)
{
    take_out(sync, waiter);
    waiter->outcome = outcome;
    if (jrt_unlikely(waiter->lookout != NULL)) {
        grant_lookout(waiter);
    } else {
        wake(waiter, JRT_GRANTED);
    }
}

void jrt_sync_nudge(struct jrt_waiter *waiter)
{
    /* relaxed: while BUSY. */
    if (jrt_load_relaxed(&waiter->woken) == JRT_NOT_WOKEN) wake(waiter, JRT_NUDGED);
}

/* Selects. */

_Static_assert(sizeof(struct jrt_waiter) <= sizeof((struct jrt_lookout *)0)->room, "it fits");

static struct jrt_waiter *waiter_in(struct jrt_lookout *lookout)
{
    return (struct jrt_waiter *)(void *)lookout->room;
}

bool jrt_sync_join(struct jrt_sync *sync, const struct jrt_sync_kind *kind,
                   struct jrt_lookout *lookout, bool *outside)
{
    struct jrt_waiter *waiter = waiter_in(lookout);
    *waiter = (struct jrt_waiter){.lookout = lookout}; /* see [sync-select] */
    uint64_t word = jrt_sync_enter(sync);
    bool     ready = kind->take(sync, &word, waiter);
    if (!ready) push(sync, waiter);
    *outside = (word & JRT_SYNC_TASKS) == 0;
    jrt_sync_leave(sync, jrt_sync_marked(sync, word));
    return !ready;
}

void jrt_sync_quit(struct jrt_sync *sync, struct jrt_lookout *lookout)
{
    struct jrt_waiter *waiter = waiter_in(lookout);
    uint64_t           word = jrt_sync_enter(sync);
    /* relaxed: while BUSY. */
    if (jrt_load_relaxed(&waiter->woken) != JRT_GRANTED) take_out(sync, waiter);
    jrt_debug_invariant("sync-select", sync->first != waiter);
    jrt_sync_leave(sync, jrt_sync_marked(sync, word));
}

/* Waiting. */

static bool is_late(const struct jrt_sync_call *call)
{
    return call->deadline_ns != JRT_NEVER && jrt_clock_now_ns() >= call->deadline_ns;
}

/* Joins the queue, or need not wait. In the second case *status is DEADLINE if the deadline has
 * passed. */
static bool join(const struct jrt_sync_call *call, struct jrt_waiter *waiter, janus_status *status)
{
    struct jrt_sync *sync = call->sync;
    bool             late = is_late(call);
    uint64_t         word = jrt_sync_enter(sync);
    bool             taken = call->kind->take(sync, &word, waiter);
    if (!taken && !late) {
        push(sync, waiter);
        if (call->kind->joined == NULL) {
            jrt_sync_count(waiter, (word & JRT_SYNC_TASKS) == 0);
        } else if (!call->kind->joined(sync, word, waiter)) {
            take_out(sync, waiter);
            taken = call->kind->take(sync, &word, waiter);
        }
    }
    jrt_sync_leave(sync, jrt_sync_marked(sync, word));
    *status = taken ? JANUS_OK : JANUS_DEADLINE;
    return !taken && !late;
}

static enum jrt_woken woken_how(const struct jrt_waiter *waiter)
{
    return (enum jrt_woken)jrt_load_acquire(&waiter->woken); /* acquire: the outcome. */
}

/* For a granted waiter: [sync-last]. */
static janus_status see_it_done(const struct jrt_sync *sync)
{
    unsigned rounds = 0;
    /* acquire: what was done while BUSY. */
    while ((jrt_load_acquire(&sync->word) & JRT_SYNC_BUSY) != 0) jrt_spin_pause(&rounds);
    return JANUS_OK;
}

/* Ends a wait that did not end with OK. */
static janus_status give_up(const struct jrt_sync_call *call, struct jrt_waiter *waiter,
                            janus_status ended)
{
    struct jrt_sync *sync = call->sync;
    uint64_t         word = jrt_sync_enter(sync);
    bool             queued = woken_how(waiter) != JRT_GRANTED;
    if (queued) {
        take_out(sync, waiter);
        word = jrt_sync_marked(sync, word);
        if (call->kind->left != NULL) call->kind->left(sync, word, waiter);
        word = jrt_sync_marked(sync, word); /* other waiters may have been granted */
    }
    jrt_sync_leave(sync, word);
    return queued ? ended : JANUS_OK;
}

/* A nudged waiter tries itself. True: it has the object, or was granted it meanwhile. */
static bool look_again(const struct jrt_sync_call *call, struct jrt_waiter *waiter)
{
    struct jrt_sync *sync = call->sync;
    uint64_t         word = jrt_sync_enter(sync);
    bool             done = woken_how(waiter) == JRT_GRANTED;
    if (!done) {
        done = call->kind->retry(sync, &word, waiter);
        if (done) take_out(sync, waiter);
        waiter->lost = !done;
        jrt_store_relaxed(&waiter->woken, (uint32_t)JRT_NOT_WOKEN); /* relaxed: while BUSY. */
    }
    jrt_sync_leave(sync, jrt_sync_marked(sync, word));
    return done;
}

struct stay {
    struct jrt_waiting          waiting; /* first */
    const struct jrt_sync_call *call;
    struct jrt_waiter          *waiter;
    bool                        joined;
};

/* Joins; or was woken to look itself, and then looks. */
static janus_status join_or_look(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct stay                *stay = (struct stay *)waiting;
    const struct jrt_sync_call *call = stay->call;
    janus_status                status = JANUS_OK;
    (void)task;
    if (stay->joined) {
        if (look_again(call, stay->waiter)) return JANUS_OK;
        return is_late(call) ? give_up(call, stay->waiter, JANUS_DEADLINE) : JANUS_WOULD_WAIT;
    }
    if (!join(call, stay->waiter, &status)) return status;
    if (call->between != NULL) call->between(call->argument);
    stay->joined = true;
    return JANUS_WOULD_WAIT;
}

static janus_status come_back(struct jrt_waiting *waiting, struct jrt_task *task,
                              janus_status ended)
{
    const struct stay *stay = (struct stay *)waiting;
    (void)task;
    if (ended != JANUS_OK) return give_up(stay->call, stay->waiter, ended);
    if (woken_how(stay->waiter) == JRT_GRANTED) return see_it_done(stay->call->sync);
    return JANUS_WOULD_WAIT; /* nudged, [wait-again] */
}

static janus_status park(const struct jrt_sync_call *call, struct jrt_worker *worker,
                         struct jrt_waiter *waiter)
{
    janus_scheduler *scheduler = worker->scheduler;
    struct stay      stay = {.waiting = {.why = call->kind->reason,
                                         .deadline_ns = call->deadline_ns,
                                         .join = join_or_look,
                                         .leave = come_back},
                             .call = call,
                             .waiter = waiter};
    janus_status     status = jrt_wait(worker, &stay.waiting);
    if (waiter->counted) {
        /* relaxed: a count. This task runs, so no deadlock is possible now. */
        uint32_t outside = jrt_fetch_sub_relaxed(&scheduler->outside, 1u);
        jrt_debug_invariant("sync-outside", outside > 0);
    }
    return status;
}

static janus_status sleep_thread(const struct jrt_sync_call *call, struct jrt_waiter *waiter)
{
    janus_status status = JANUS_OK;
    if (!join(call, waiter, &status)) return status;
    if (call->between != NULL) call->between(call->argument);
    for (;;) {
        enum jrt_woken how = woken_how(waiter);
        if (how == JRT_GRANTED) return see_it_done(call->sync);
        if (how == JRT_NUDGED && look_again(call, waiter)) return JANUS_OK;
        if (!jrt_futex_wait_until(&waiter->woken, JRT_NOT_WOKEN, call->deadline_ns)) {
            return give_up(call, waiter, JANUS_DEADLINE);
        }
    }
}

janus_status jrt_sync_wait(const struct jrt_sync_call *call, struct jrt_waiter *waiter)
{
    const struct jrt_want want = {.what = call->kind->what,
                                  .name = call->sync->name,
                                  .object = call->sync,
                                  .look = call->kind->look};
    struct jrt_worker    *worker = jrt_worker_self();
    if (jrt_thread_self()->calls_back) return JANUS_DEADLINE; /* [callback-plain] */
    waiter->outcome = JANUS_OK;
    waiter->counted = waiter->lost = false;
    jrt_store_relaxed(&waiter->woken, (uint32_t)JRT_NOT_WOKEN); /* relaxed: not published yet. */
    waiter->holder = jrt_holder_make(worker);
    if (waiter->holder == NULL) return JANUS_NO_MEMORY;
    if (worker == NULL) return sleep_thread(call, waiter);
    if (jrt_sync_cancelled(waiter->task)) return JANUS_CANCELLED;
    struct jrt_holder *self = waiter->holder;
    jrt_holder_wants(self, &want);
    janus_status status = park(call, worker, waiter);
    jrt_holder_wants(self, NULL);
    return status;
}

janus_status jrt_sync_wait_plain(struct jrt_sync *sync, const struct jrt_sync_kind *kind,
                                 struct jrt_task *task, uint64_t deadline_ns)
{
    struct jrt_waiter    waiter = {.task = task};
    struct jrt_sync_call call = {.sync = sync, .kind = kind, .deadline_ns = deadline_ns};
    janus_status         status = jrt_sync_wait(&call, &waiter);
    return jrt_sync_end(task, status == JANUS_OK ? waiter.outcome : status);
}

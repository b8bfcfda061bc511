/* SPDX-License-Identifier: MIT */
/*
 * Mutexes.
 *
 * [mutex-word]  0: free. Otherwise the holder's address (holder.c), with WAITERS while there is a
 *   queue. WAITERS alone: free, and the first of the queue is on its way ([mutex-nudge]).
 *
 *     lock         0 -> me                             one compare-and-swap
 *     unlock       me -> 0                             one compare-and-swap; it fails on WAITERS
 *     nudge        me|WAITERS -> WAITERS               while BUSY
 *     grab         WAITERS -> me|WAITERS               while BUSY, by a newcomer
 *     arrive       WAITERS -> the first|WAITERS?       while BUSY, by the nudged waiter
 *     hand over    me|WAITERS -> the first|WAITERS?    while BUSY
 *     inherit      dead|WAITERS -> the first|WAITERS?  while BUSY; abandoned
 *     take over    dead -> me                          while BUSY; abandoned
 *
 * [mutex-nudge]  if every unlock handed the mutex to the first waiter, it would mostly belong to a
 *   task that does not run yet. All newcomers would have to wait too, and so on for ever: a convoy,
 *   in which each lock costs two switches. So unlock only nudges the first waiter: it wakes it, and
 *   until it runs, others may grab the mutex. If it comes too late, it has lost and stays the
 *   first. Then the next unlock hands the mutex over. So newcomers overtake a waiter only until it
 *   has been on a CPU twice. A waiter that leaves the queue of a free mutex nudges the next one. So
 *   a free mutex with a queue always has a waiter on its way. models/mutex_nudge.pml tries all
 *   orders.
 *
 * [mutex-contest]  while the mutex has a holder and a queue, it is on its holder's list, so that
 *   the holder's end finds it. Both change while BUSY, the list also under the holder's lock. The
 *   holder's end has its own lock and tries for BUSY. If that fails, it releases its lock and
 *   starts again.
 *
 * [mutex-outside]  a holder may be no task of the waiter's own scheduler. Then the waiter counts as
 *   waiting for somebody outside, [sync-outside]. For a free mutex, the first of the queue counts
 *   as the holder. When that changes from one side to the other, all waiters are counted anew.
 *
 * [mutex-abandoned]  if lock returned a special status for an abandoned mutex, callers that take
 *   every status but OK for a refusal would keep it locked. So lock returns OK, and the mutex
 *   itself remembers that a holder ended with it. The thread that passes such a mutex on sets the
 *   mark while BUSY. Only a holder clears it. The mark stays until then, so a holder that ignores
 *   it hides nothing from the next one.
 */
#include "sync/mutex.h"

#include "cancel/cancel.h"
#include "means/call.h"
#include "means/holder.h"
#include "sync/mutex.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/turn.h"
#include "work/work.h"

#define HOLDER_MASK (~JRT_SYNC_FLAGS)

static struct jrt_mutex *mutex_of(struct jrt_sync *sync) { return (struct jrt_mutex *)sync; }

static struct jrt_holder *holder_in(uint64_t word)
{
    return (struct jrt_holder *)(uintptr_t)(word & HOLDER_MASK);
}

static uint64_t word_of(const struct jrt_holder *holder) { return (uint64_t)(uintptr_t)holder; }

/* The scheduler on which the holder's progress depends; NULL: a plain thread. While BUSY. */
static const janus_scheduler *home_of(const struct jrt_holder *holder)
{
    return holder->task != NULL ? holder->task->nursery->scheduler : NULL;
}

/* Enters and leaves the holder's list, while BUSY: [mutex-contest]. */

static void inherit(struct jrt_holder *dead, struct jrt_contest *contest);

/* False: the holder has ended. */
static bool contest_begin(struct jrt_mutex *mutex, struct jrt_holder *holder)
{
    struct jrt_contest *contest = &mutex->contest;
    jrt_spin_lock(&holder->lock);
    bool lives = !holder->dead;
    if (lives) {
        contest->inherit = inherit;
        contest->prev = NULL;
        contest->next = holder->contests;
        if (contest->next != NULL) contest->next->prev = contest;
        holder->contests = contest;
    }
    jrt_spin_unlock(&holder->lock);
    return lives;
}

/* The caller holds the holder's lock. */
static void contest_remove(struct jrt_mutex *mutex, struct jrt_holder *holder)
{
    struct jrt_contest *contest = &mutex->contest;
    jrt_invariant("mutex-contest", contest->prev != NULL || holder->contests == contest);
    if (contest->next != NULL) contest->next->prev = contest->prev;
    if (contest->prev != NULL) contest->prev->next = contest->next;
    if (contest->prev == NULL) holder->contests = contest->next;
}

static void contest_end(struct jrt_mutex *mutex, struct jrt_holder *holder)
{
    jrt_spin_lock(&holder->lock);
    contest_remove(mutex, holder);
    jrt_spin_unlock(&holder->lock);
}

/* Counts the waiters anew: they depend on `home` now, no longer on `before`, [mutex-outside]. */
static void count_anew(struct jrt_sync *sync, const janus_scheduler *home,
                       const janus_scheduler *before)
{
    struct jrt_waiter *at = jrt_sync_first(sync);
    if (at == NULL) return;
    if (home != NULL && home == before) {
        jrt_debug_invariant("mutex-outside", jrt_sync_is_counted(at, home));
        return;
    }
    struct jrt_waiter *last = at->prev;
    for (;; at = at->next) {
        jrt_sync_count(at, at->task != NULL && home != at->task->nursery->scheduler);
        if (at == last) return;
    }
}

static const janus_scheduler *own_home(void)
{
    const struct jrt_worker *worker = jrt_worker_self();
    return worker != NULL ? worker->scheduler : NULL;
}

/* Hands the mutex to the first of the queue, then leaves it. */
static void hand_over(struct jrt_mutex *mutex)
{
    struct jrt_sync       *sync = &mutex->sync;
    struct jrt_waiter     *first = jrt_sync_first(sync);
    struct jrt_holder     *next = first->holder;
    const janus_scheduler *home = home_of(next);
    jrt_sync_grant(sync, first, JANUS_OK); /* its frame stays until BUSY is clear, [sync-last] */
    if (jrt_sync_first(sync) != NULL) {
        bool lives = contest_begin(mutex, next);
        jrt_invariant("mutex-contest", lives); /* it has not returned from its wait */
    }
    count_anew(sync, home, own_home());
    jrt_sync_leave(sync, jrt_sync_marked(sync, word_of(next)));
}

/* While BUSY: the last holder has ended, at whatever depth. */
static void abandon(struct jrt_mutex *mutex)
{
    mutex->depth = 0;
    jrt_store_relaxed(&mutex->abandoned, (uint8_t)1); /* relaxed: the lock orders it. */
}

/* Called from the end of the holder. */
static void inherit(struct jrt_holder *dead, struct jrt_contest *contest)
{
    struct jrt_mutex *mutex = jrt_list_entry(contest, struct jrt_mutex, contest);
    uint64_t          word = 0;
    bool              entered = jrt_sync_try_enter(&mutex->sync, &word);
    if (!entered) { /* another thread changes the queue and needs our lock */
        jrt_spin_unlock(&dead->lock);
        return;
    }
    jrt_invariant("mutex-word", holder_in(word) == dead && (word & JRT_SYNC_WAITERS) != 0);
    contest_remove(mutex, dead);
    jrt_holder_heir(dead);
    abandon(mutex);
    hand_over(mutex);
}

/* The functions that the queue calls. */

static bool take_lock(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter)
{
    struct jrt_holder *holder = holder_in(*word);
    struct jrt_waiter *first = jrt_sync_first(sync);
    if (holder == waiter->holder) {
        waiter->outcome = JANUS_STATE;
        return true;
    }
    if (holder != NULL) {
        if (first != NULL) return false; /* the end of a dead holder passes it on, [holder-end] */
        jrt_spin_lock(&holder->lock);
        if (!holder->dead) {
            jrt_spin_unlock(&holder->lock);
            return false;
        }
        jrt_holder_heir(holder);
        abandon(mutex_of(sync));
    }
    if (first != NULL) { /* [mutex-nudge] */
        bool lives = contest_begin(mutex_of(sync), waiter->holder);
        jrt_invariant("mutex-contest", lives);
        count_anew(sync, home_of(waiter->holder), home_of(first->holder));
    }
    *word = jrt_sync_marked(sync, word_of(waiter->holder));
    return true;
}

/* The first of the queue arrives. */
static bool arrive(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter)
{
    if (holder_in(*word) != NULL) return false;
    if (waiter->next != waiter) {
        bool lives = contest_begin(mutex_of(sync), waiter->holder);
        jrt_invariant("mutex-contest", lives);
    }
    *word = word_of(waiter->holder);
    return true;
}

/* From the contest on, the holder's end waits for us, so its record may be read. */
static bool joined(struct jrt_sync *sync, uint64_t word, struct jrt_waiter *waiter)
{
    struct jrt_holder *holder = holder_in(word);
    if (jrt_sync_first(sync) == waiter && !contest_begin(mutex_of(sync), holder)) return false;
    if (waiter->task != NULL) {
        jrt_sync_count(waiter, home_of(holder) != waiter->task->nursery->scheduler);
    }
    return true;
}

static void left(struct jrt_sync *sync, uint64_t word, struct jrt_waiter *waiter)
{
    (void)waiter;
    struct jrt_holder *holder = holder_in(word);
    struct jrt_waiter *first = jrt_sync_first(sync);
    if (holder != NULL && first == NULL) contest_end(mutex_of(sync), holder);
    if (holder == NULL && first != NULL) { /* [mutex-nudge] */
        jrt_sync_nudge(first);
        count_anew(sync, home_of(first->holder), NULL);
    }
}

static void look(const struct jrt_want *want, const janus_scheduler *scheduler,
                 struct jrt_seen *out)
{
    struct jrt_sync   *sync = want->object;
    uint64_t           word = jrt_sync_enter(sync);
    struct jrt_holder *holder = holder_in(word);
    if (holder != NULL) jrt_holder_describe(holder, scheduler, out);
    jrt_sync_leave(sync, word);
}

const struct jrt_sync_kind jrt_mutex_kind = {.reason = JRT_WAIT_MUTEX,
                                             .what = "mutex",
                                             .take = take_lock,
                                             .joined = joined,
                                             .left = left,
                                             .retry = arrive,
                                             .look = look};

const struct jrt_sync_kind jrt_once_kind = {.reason = JRT_WAIT_ONCE,
                                            .what = "once",
                                            .take = take_lock,
                                            .joined = joined,
                                            .left = left,
                                            .retry = arrive,
                                            .look = look};

/* Locking. */

/* Called by the holder. */
static janus_status lock_deeper(struct jrt_mutex *mutex)
{
    if (mutex->depth == JANUS_MUTEX_DEPTH_MAX - 1) return JANUS_FULL;
    mutex->depth++;
    return JANUS_OK;
}

__attribute__((noinline)) static janus_status lock_slow(struct jrt_mutex           *mutex,
                                                        const struct jrt_sync_kind *kind,
                                                        uint64_t                    deadline_ns)
{
    jrt_stack_check(); /* [turn-call] */
    struct jrt_worker   *worker = jrt_worker_self();
    struct jrt_waiter    waiter = {.task = worker != NULL ? worker->current : NULL};
    struct jrt_sync_call call = {.sync = &mutex->sync, .kind = kind, .deadline_ns = deadline_ns};
    if (mutex->recursive && jrt_mutex_is_mine(mutex)) return lock_deeper(mutex);
    janus_status status = jrt_sync_wait(&call, &waiter);
    if (status == JANUS_OK) status = waiter.outcome;
    if (status == JANUS_OK) waiter.holder->held++;
    return status;
}

janus_status jrt_mutex_lock(struct jrt_mutex *mutex, const struct jrt_sync_kind *kind,
                            uint64_t deadline_ns)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_holder *self = jrt_holder_self(worker);
    uint64_t           word = 0;
    if (worker != NULL && jrt_task_cancel_reason(worker->current) != JANUS_CANCEL_REASON_NONE) {
        return JANUS_CANCELLED;
    }
    /* acq_rel: sees what the last holder wrote, and publishes our record for threads that find us
     * as the holder. */
    if (jrt_likely(self != NULL && jrt_cas_acq_rel(&mutex->sync.word, &word, word_of(self)))) {
        self->held++;
        return JANUS_OK;
    }
    return lock_slow(mutex, kind, deadline_ns);
}

bool jrt_mutex_is_mine(const struct jrt_mutex *mutex)
{
    const struct jrt_holder *self = jrt_holder_self(jrt_worker_self());
    /* relaxed: if it is ours, we wrote it, or the thread that granted it did. */
    return self != NULL && holder_in(jrt_load_relaxed(&mutex->sync.word)) == self;
}

janus_status jrt_mutex_unlock(struct jrt_mutex *mutex)
{
    struct jrt_holder *self = jrt_holder_self(jrt_worker_self());
    uint64_t           word = jrt_load_relaxed(&mutex->sync.word); /* relaxed: as is_mine. */
    if (self == NULL || holder_in(word) != self) return JANUS_STATE;
    if (jrt_unlikely(mutex->depth > 0)) {
        mutex->depth--;
        return JANUS_OK;
    }
    self->held--;
    word = word_of(self);
    /* release: publishes what we wrote to the next holder. */
    if (jrt_likely(jrt_cas_release(&mutex->sync.word, &word, UINT64_C(0)))) return JANUS_OK;
    word = jrt_sync_enter(&mutex->sync);
    struct jrt_waiter *first = jrt_sync_first(&mutex->sync);
    if (first == NULL) {
        jrt_sync_leave(&mutex->sync, 0);
        return JANUS_OK;
    }
    contest_end(mutex, self);
    if (first->lost) {
        hand_over(mutex);
    } else {
        jrt_sync_nudge(first); /* before the search for deadlocks runs */
        count_anew(&mutex->sync, home_of(first->holder), own_home());
        jrt_sync_leave(&mutex->sync, JRT_SYNC_WAITERS);
    }
    return JANUS_OK;
}

/* The public calls. */

static struct jrt_mutex *mutex_in(janus_mutex *mutex) { return (struct jrt_mutex *)(void *)mutex; }

void janus_mutex_init(janus_mutex *mutex, const char *name)
{
    jrt_contract(mutex != NULL, "janus_mutex_init: `mutex` is NULL");
    *mutex = (janus_mutex){.name = name};
}

void janus_mutex_init_recursive(janus_mutex *mutex, const char *name)
{
    jrt_contract(mutex != NULL, "janus_mutex_init_recursive: `mutex` is NULL");
    *mutex = (janus_mutex)JANUS_MUTEX_RECURSIVE_INIT(name);
}

janus_status janus_mutex_lock_until(janus_mutex *mutex, uint64_t deadline_ns)
{
    struct jrt_task *task = mutex != NULL ? jrt_sync_task() : jrt_sync_begin();
    if (mutex == NULL) return JANUS_INVALID;
    return jrt_sync_end(task, jrt_mutex_lock(mutex_in(mutex), &jrt_mutex_kind, deadline_ns));
}

janus_status janus_mutex_lock(janus_mutex *mutex)
{
    return janus_mutex_lock_until(mutex, JRT_NEVER);
}

janus_status janus_mutex_try_lock(janus_mutex *mutex)
{
    struct jrt_task   *task = jrt_sync_begin();
    struct jrt_waiter  waiter = {.task = task, .outcome = JANUS_OK};
    struct jrt_worker *worker = jrt_worker_self();
    if (mutex == NULL) return JANUS_INVALID;
    waiter.holder = jrt_holder_make(worker);
    if (waiter.holder == NULL) return JANUS_NO_MEMORY;
    struct jrt_mutex *inside = mutex_in(mutex);
    if (inside->recursive && jrt_mutex_is_mine(inside)) return lock_deeper(inside);
    struct jrt_sync *sync = &inside->sync;
    uint64_t         word = jrt_sync_enter(sync);
    bool             taken = take_lock(sync, &word, &waiter);
    jrt_sync_leave(sync, word);
    if (taken && waiter.outcome == JANUS_OK) waiter.holder->held++;
    return taken ? waiter.outcome : JANUS_WOULD_WAIT;
}

__attribute__((noinline)) static janus_status unlock_and_give_way(janus_mutex *mutex)
{
    janus_status status = mutex != NULL ? jrt_mutex_unlock(mutex_in(mutex)) : JANUS_INVALID;
    jrt_turn_call(jrt_worker_self());
    return status;
}

/* A task that locks and unlocks without end gives way here, without the lock, [turn-call]. */
janus_status janus_mutex_unlock(janus_mutex *mutex)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_likely(worker != NULL)) {
        jrt_worker_stack_check(worker); /* [stack-reserve] */
        if (jrt_unlikely(--worker->tolls < 0)) return unlock_and_give_way(mutex);
    } else {
        jrt_plain_check(1);
    }
    if (mutex == NULL) return JANUS_INVALID;
    return jrt_mutex_unlock(mutex_in(mutex));
}

bool janus_mutex_is_abandoned(const janus_mutex *mutex)
{
    const struct jrt_mutex *inside = (const struct jrt_mutex *)(const void *)mutex;
    jrt_point();
    /* relaxed: a holder sees what the lock ordered. For others it is out of date at once. */
    return mutex != NULL && jrt_load_relaxed(&inside->abandoned) != 0;
}

janus_status janus_mutex_repaired(janus_mutex *mutex)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (mutex == NULL) return JANUS_INVALID;
    if (!jrt_mutex_is_mine(mutex_in(mutex))) return JANUS_STATE;
    jrt_store_relaxed(&mutex_in(mutex)->abandoned, (uint8_t)0); /* relaxed: the lock orders it. */
    return JANUS_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * Mutexes.
 *
 * [mutex-word]  0: free; else the holder's address (holder.c), with WAITERS while there is a
 *   queue. WAITERS alone: free, and the first of the queue is on its way ([mutex-nudge]).
 *
 *     lock         0 -> me                             one compare-and-swap
 *     unlock       me -> 0                             one compare-and-swap; it fails on WAITERS
 *     nudge        me|WAITERS -> WAITERS               while BUSY
 *     grab         WAITERS -> me|WAITERS               while BUSY, by a newcomer
 *     arrive       WAITERS -> the first|WAITERS?       while BUSY, by the one that was nudged
 *     hand over    me|WAITERS -> the first|WAITERS?    while BUSY
 *     inherit      dead|WAITERS -> the first|WAITERS?  while BUSY; abandoned
 *     take over    dead -> me                          while BUSY; abandoned
 *
 * [mutex-nudge]  a mutex that is always handed to the one that waits belongs, most of the time, to
 *   a task that is not running yet; all who come meanwhile have to wait too, and so for ever on: a
 *   convoy, in which each lock costs two switches. So the first of the queue is only nudged: it is
 *   woken, and until it is there others may grab the mutex. If it comes too late it has lost, and
 *   stays the first; then the next unlock hands the mutex over. So nobody is overtaken by more
 *   than those who come until it has been on a CPU twice. Who leaves the queue while the mutex is
 *   free nudges the next: there is always somebody on his way to a free mutex with a queue.
 *   models/mutex_nudge.pml tries all orders.
 *
 * [mutex-contest]  while it has a holder and a queue, the mutex is on the list of its holder, so
 *   that the holder's end finds it. Both are changed while BUSY, the list under the holder's lock
 *   as well. The holder's end comes from the other side: it has its lock and tries for BUSY;
 *   failing, it lets go and begins again.
 *
 * [mutex-outside]  a task that waits for a holder that is no task of its own scheduler counts as
 *   waiting for somebody outside, [sync-outside]; of a free one, the first of the queue stands for
 *   the holder. When that changes from one side to the other all in the queue are counted anew.
 *
 * [mutex-abandoned]  a lock that returned a remark would be held by callers that take every status
 *   but OK for a refusal. So a lock returns OK, and the mutex itself remembers that a holder ended
 *   with it. Whoever passes such a mutex on sets the mark while BUSY; only a holder clears it. The
 *   mark stays until then, so a holder that ignores it hides nothing from the next one.
 */
#include "sync/mutex.h"

#define HOLDER_MASK (~JRT_SYNC_FLAGS)

static struct jrt_mutex *mutex_of(struct jrt_sync *sync) { return (struct jrt_mutex *)sync; }

static struct jrt_holder *holder_in(uint64_t word)
{
    return (struct jrt_holder *)(uintptr_t)(word & HOLDER_MASK);
}

static uint64_t word_of(const struct jrt_holder *holder) { return (uint64_t)(uintptr_t)holder; }

/* The scheduler that a holder's progress depends on; NULL: a thread's. While BUSY. */
static const janus_scheduler *home_of(const struct jrt_holder *holder)
{
    return holder->task != NULL ? holder->task->nursery->scheduler : NULL;
}

/* On the holder's list and off, while BUSY: see [mutex-contest]. */

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

/* Under the holder's lock. */
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

/* It depends on `home` now, no longer on `before`: [mutex-outside]. */
static void count_anew(struct jrt_sync *sync, const janus_scheduler *home,
                       const janus_scheduler *before)
{
    struct jrt_waiter *at = jrt_sync_first(sync);
    if (at == NULL || (home != NULL && home == before)) return;
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

/* The first of the queue gets it, from the caller. Lets go of the mutex. */
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

/* While BUSY: the last holder has ended, however often it had locked it. */
static void abandon(struct jrt_mutex *mutex)
{
    mutex->depth = 0;
    jrt_store_relaxed(&mutex->abandoned, (uint8_t)1); /* relaxed: the lock orders it. */
}

/* From the end of its holder. */
static void inherit(struct jrt_holder *dead, struct jrt_contest *contest)
{
    struct jrt_mutex *mutex = jrt_list_entry(contest, struct jrt_mutex, contest);
    uint64_t          word = 0;
    bool              entered = jrt_sync_try_enter(&mutex->sync, &word);
    if (!entered) { /* somebody joins or leaves the queue, and wants our lock */
        jrt_spin_unlock(&dead->lock);
        return;
    }
    jrt_invariant("mutex-word", holder_in(word) == dead && (word & JRT_SYNC_WAITERS) != 0);
    contest_remove(mutex, dead);
    jrt_holder_heir(dead);
    abandon(mutex);
    hand_over(mutex);
}

/* The parts that the queue asks for. */

static bool take_lock(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter)
{
    struct jrt_holder *holder = holder_in(*word);
    struct jrt_waiter *first = jrt_sync_first(sync);
    if (holder == waiter->holder) {
        waiter->outcome = JANUS_STATE;
        return true;
    }
    if (holder != NULL) {
        if (first != NULL) return false; /* a dead one's end sees to it, [holder-end] */
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

/* From the contest on, the holder's end waits for us: it can be looked at. */
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

/* By its holder. */
static janus_status lock_deeper(struct jrt_mutex *mutex)
{
    if (mutex->depth == JANUS_MUTEX_DEPTH_MAX - 1) return JANUS_FULL;
    mutex->depth++;
    return JANUS_OK;
}

__attribute__((noinline)) static janus_status lock_slowly(struct jrt_mutex           *mutex,
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
    if (worker != NULL && jrt_task_cancel_reason(worker->current) != JANUS_CANCEL_NONE) {
        return JANUS_CANCELLED;
    }
    /* acq_rel: what the last holder wrote; and who finds us as the holder can look at us. */
    if (jrt_likely(self != NULL && jrt_cas_acq_rel(&mutex->sync.word, &word, word_of(self)))) {
        self->held++;
        return JANUS_OK;
    }
    return lock_slowly(mutex, kind, deadline_ns);
}

bool jrt_mutex_is_mine(const struct jrt_mutex *mutex)
{
    const struct jrt_holder *self = jrt_holder_self(jrt_worker_self());
    /* relaxed: if it is ours, we wrote it, or were told by who did. */
    return self != NULL && holder_in(jrt_load_relaxed(&mutex->sync.word)) == self;
}

janus_status jrt_mutex_unlock(struct jrt_mutex *mutex)
{
    struct jrt_holder *self = jrt_holder_self(jrt_worker_self());
    uint64_t           word = jrt_load_relaxed(&mutex->sync.word); /* relaxed: as above. */
    if (self == NULL || holder_in(word) != self) return JANUS_STATE;
    if (jrt_unlikely(mutex->depth > 0)) {
        mutex->depth--;
        return JANUS_OK;
    }
    self->held--;
    word = word_of(self);
    /* release: what we wrote is for the next holder. */
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
        jrt_sync_nudge(first); /* before it may look like a deadlock */
        count_anew(&mutex->sync, home_of(first->holder), own_home());
        jrt_sync_leave(&mutex->sync, JRT_SYNC_WAITERS);
    }
    return JANUS_OK;
}

/* The public calls. */

static struct jrt_mutex *mutex_in(janus_mutex *mutex) { return (struct jrt_mutex *)(void *)mutex; }

void janus_mutex_init(janus_mutex *mutex, const char *name)
{
    *mutex = (janus_mutex){.name = name};
}

void janus_mutex_init_recursive(janus_mutex *mutex, const char *name)
{
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

/* Who locks and unlocks without end gives way here, without the lock, [turn-call]. */
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
    /* relaxed: a holder has what the lock ordered; for others it is out of date at once. */
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

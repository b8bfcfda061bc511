/* SPDX-License-Identifier: MIT */
/*
 * Reader-writer locks.
 *
 * [rwlock-body]  a held lock has a body, which belongs to the library and is never unmapped. The
 *   body has a ring of shares, one for each holder. A share is also on its holder's own list
 *   ([holder-share]). The end of a holder must not touch a lock without waiters, because its user
 *   may have freed it. So the end takes the share out of the body and touches nothing else. If the
 *   body then has no share left, its life ends, and the body returns to the pool. The next caller
 *   sees that the body's life differs from the life that the lock knows: so the lock has no holder.
 *   If it was held for writing, it is abandoned. Lives never repeat.
 *
 * [rwlock-contest]  while the lock has a queue, body->contested leads to the lock. A thread that
 *   changes this has BUSY and the body's lock. A holder's end has the body's lock and tries for
 *   BUSY. If that fails, it releases the body's lock and starts again. So the lock exists while the
 *   end looks at it: a waiter that leaves needs the body's lock first. A lock with a queue has a
 *   holder, or a BUSY thread is finding one.
 *
 * [rwlock-phase]  phase-fair. A reader joins the present readers only if nobody waits. The end of a
 *   writer lets all waiting readers in, or, if none waits, the first writer. The end of the last
 *   reader lets the first writer in. If the last waiting writer gives up, the readers behind it
 *   join the present readers.
 *
 * [rwlock-outside]  a waiting task depends on all holders. If they are not all tasks of its own
 *   scheduler, it counts as waiting for somebody outside, [sync-outside].
 *
 * A wait takes its records before it begins, so a grant never needs memory.
 *
 * Locks: BUSY, then a body's lock, then a holder's.
 */
#include "sync/queue.h"

#include <janusrt/rwlock.h>
#include <stdlib.h>
#include <string.h>

struct body;

/* One holder's share of one lock. */
struct share {
    struct jrt_share   link;        /* in the holder's list, in its spares, or in the pool */
    struct share      *next, *prev; /* in the body's ring; under the body's lock, as `body` */
    struct jrt_holder *holder;
    struct body       *body;
    uint32_t           depth; /* reads beyond the first; the holder's */
    bool               writes;
};

struct rwlock {
    struct jrt_sync   sync;
    struct body      *body;      /* NULL: no holder; while BUSY, as the next but `life` */
    _Atomic(uint64_t) life;      /* of the body */
    uint32_t          writers;   /* how many wait */
    bool              writing;   /* the body's only share writes */
    _Atomic(uint8_t)  abandoned; /* as [mutex-abandoned] */
};

struct body {
    struct jrt_share       link; /* in a holder's spares, or in the pool */
    _Atomic(uint32_t)      lock; /* guards all that follows */
    uint32_t               count;
    uint64_t               life;      /* 0: it belongs to no lock */
    struct rwlock         *contested; /* NULL: no waiters; [rwlock-contest] */
    struct share          *first;
    const janus_scheduler *home;  /* of the holders; NULL: a plain thread */
    bool                   mixed; /* the holders have different schedulers */
};

/* A request, in the caller's frame. */
struct ask {
    struct jrt_waiter waiter; /* first */
    struct share     *share;
    struct body      *body; /* for a lock without a holder; NULL once used */
};

enum { SPARES_MAX = 4, BLOCK_RECORDS = 63, RECORD_BYTES = 64, BLOCK_BYTES = 64 * 64 };

_Static_assert(sizeof(struct rwlock) <= sizeof(janus_rwlock), "it fits its storage");
_Static_assert(sizeof(struct share) <= RECORD_BYTES && sizeof(struct body) <= RECORD_BYTES, "");

static struct rwlock *rwlock_of(struct jrt_sync *sync) { return (struct rwlock *)sync; }
static struct ask    *ask_of(struct jrt_waiter *waiter) { return (struct ask *)waiter; }

/* Records. */

/* Bodies and shares have separate pools: a stale lock may read a body's lock and
 * life, [rwlock-body]. */
struct pool {
    pthread_mutex_t   lock;
    struct jrt_share *free;
    void             *blocks; /* owned, never freed; the first record of each is the link */
};

static struct pool bodies = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct pool shares = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The caller holds the pool's lock. */
static void add_block(struct pool *pool)
{
    char *block = jrt_aligned_alloc_for_ever(RECORD_BYTES, BLOCK_BYTES);
    if (block == NULL) return;
    memset(block, 0, BLOCK_BYTES);
    memcpy(block, &pool->blocks, sizeof pool->blocks);
    pool->blocks = block;
    for (int i = 1; i <= BLOCK_RECORDS; i++) {
        struct jrt_share *record =
            (struct jrt_share *)(void *)(block + (ptrdiff_t)i * RECORD_BYTES);
        record->next = pool->free;
        pool->free = record;
    }
}

static void give(struct pool *pool, struct jrt_share *record)
{
    jrt_lock(&pool->lock);
    record->next = pool->free;
    pool->free = record;
    jrt_unlock(&pool->lock);
}

static void give_body(struct jrt_share *record) { give(&bodies, record); }
static void give_share(struct jrt_share *record) { give(&shares, record); }

/* Takes a record from the holder's spares or the pool. NULL: no memory. */
static void *take_record(struct jrt_holder *self, struct pool *pool,
                         void (*over)(struct jrt_share *))
{
    struct jrt_share **at = &self->spares;
    while (*at != NULL && (*at)->over != over) at = &(*at)->next;
    struct jrt_share *record = *at;
    if (record != NULL) {
        *at = record->next;
        return record;
    }
    if (jrt_fails(JRT_FAULT_MEMORY)) return NULL; /* as for holders */
    jrt_lock(&pool->lock);
    if (pool->free == NULL) add_block(pool);
    record = pool->free;
    if (record != NULL) pool->free = record->next;
    jrt_unlock(&pool->lock);
    if (record != NULL) record->over = over;
    return record;
}

/* Returns a record to the spares or the pool. */
static void recycle(struct jrt_holder *self, struct jrt_share *record,
                    void (*over)(struct jrt_share *))
{
    int count = 0;
    if (record == NULL) return;
    for (const struct jrt_share *at = self->spares; at != NULL; at = at->next) count++;
    record->over = over;
    if (count >= SPARES_MAX) {
        over(record);
        return;
    }
    record->next = self->spares;
    self->spares = record;
}

/* Bodies, under their locks. */

/* The scheduler on which the holders' progress depends. */
static const janus_scheduler *home_of(const struct body *body)
{
    return body->mixed ? NULL : body->home;
}

static void see_home(struct body *body, const struct share *share)
{
    const struct jrt_task *task = share->holder->task;
    const janus_scheduler *home = task != NULL ? task->nursery->scheduler : NULL;
    if (share == body->first) {
        body->home = home;
        body->mixed = false;
    } else if (home != body->home) {
        body->mixed = true;
    }
}

static void add(struct rwlock *lock, struct body *body, struct share *share)
{
    struct share *first = body->first != NULL ? body->first : share;
    if (first == share) share->prev = share;
    share->next = first;
    share->prev = first->prev;
    first->prev->next = share;
    first->prev = share;
    body->first = first;
    body->count++;
    jrt_debug_invariant("rwlock-phase", body->count == 1 || !(share->writes || lock->writing));
    share->body = body;
    see_home(body, share);
    lock->writing = share->writes;
}

static void take_out(struct body *body, struct share *share)
{
    share->prev->next = share->next;
    share->next->prev = share->prev;
    if (body->first == share) body->first = share->next != share ? share->next : NULL;
    body->count--;
    jrt_debug_invariant("rwlock-body", (body->first == NULL) == (body->count == 0));
    if (!body->mixed || body->first == NULL) return;
    const struct share *at = body->first;
    do {
        see_home(body, at);
        at = at->next;
    } while (at != body->first);
}

/* While BUSY. */

/* Returns the body, locked. NULL: the lock has no holder. */
static struct body *lock_body(struct rwlock *lock)
{
    struct body *body = lock->body;
    if (body == NULL) return NULL;
    jrt_spin_lock(&body->lock);
    if (body->life == jrt_load_relaxed(&lock->life)) return body; /* relaxed: while BUSY. */
    jrt_spin_unlock(&body->lock);
    jrt_invariant("rwlock-contest", jrt_sync_first(&lock->sync) == NULL);
    /* relaxed: the lock orders it. */
    if (lock->writing) jrt_store_relaxed(&lock->abandoned, (uint8_t)1);
    lock->writing = false;
    lock->body = NULL;
    return NULL;
}

/* Counts the waiters anew: they depend on `home` now, no longer on `before`, [rwlock-outside]. */
static void count_anew(struct rwlock *lock, const janus_scheduler *home,
                       const janus_scheduler *before)
{
    struct jrt_waiter *at = jrt_sync_first(&lock->sync);
    if (at == NULL) return;
    if (home == before) {
        jrt_debug_invariant("rwlock-outside", jrt_sync_is_counted(at, home));
        return;
    }
    struct jrt_waiter *last = at->prev;
    for (;; at = at->next) {
        jrt_sync_count(at, at->task != NULL && home != at->task->nursery->scheduler);
        if (at == last) return;
    }
}

static void grant(struct rwlock *lock, struct jrt_waiter *waiter)
{
    struct share *share = ask_of(waiter)->share;
    if (share->writes) lock->writers--;
    jrt_spin_lock(&lock->body->lock);
    add(lock, lock->body, share);
    jrt_spin_unlock(&lock->body->lock);
    jrt_sync_grant(&lock->sync, waiter, JANUS_OK); /* its frame stays until BUSY is clear */
}

static void grant_readers(struct rwlock *lock)
{
    struct jrt_waiter *at = jrt_sync_first(&lock->sync);
    for (struct jrt_waiter *last = at->prev, *next;; at = next) {
        bool is_last = at == last;
        next = at->next;
        if (!ask_of(at)->share->writes) grant(lock, at);
        if (is_last) return;
    }
}

static void grant_writer(struct rwlock *lock)
{
    struct jrt_waiter *at = jrt_sync_first(&lock->sync);
    while (!ask_of(at)->share->writes) at = at->next;
    grant(lock, at);
}

/* Updates the counts after a change of the queue, or of the holders, which depended on `before`. */
static void settle(struct rwlock *lock, const janus_scheduler *before)
{
    struct body *body = lock->body;
    jrt_spin_lock(&body->lock);
    const janus_scheduler *home = home_of(body);
    if (jrt_sync_first(&lock->sync) == NULL) body->contested = NULL;
    jrt_spin_unlock(&body->lock);
    count_anew(lock, home, before);
}

/* Grants the next phase to a lock with waiters and without a holder, [rwlock-phase]. */
static void begin_phase(struct rwlock *lock, bool after_writer)
{
    struct jrt_waiter *first = jrt_sync_first(&lock->sync), *at = first;
    bool               readers = lock->writers == 0;
    do {
        readers = readers || (after_writer && !ask_of(at)->share->writes);
        at = at->next;
    } while (!readers && at != first);
    if (readers) {
        grant_readers(lock);
    } else {
        grant_writer(lock);
    }
}

/* Removes one holder. Returns the body if it has no holder left, otherwise NULL. */
static struct body *release(struct rwlock *lock, struct share *share)
{
    struct body *body = share->body;
    bool         waiting = jrt_sync_first(&lock->sync) != NULL;
    jrt_spin_lock(&body->lock);
    const janus_scheduler *before = home_of(body);
    take_out(body, share);
    bool over = body->first == NULL;
    if (over && !waiting) body->life = 0;
    jrt_spin_unlock(&body->lock);
    if (over && waiting) begin_phase(lock, share->writes);
    if (waiting) settle(lock, before);
    if (!over || waiting) return NULL;
    lock->body = NULL;
    lock->writing = false;
    return body;
}

/* Called from the end of the holder. */
static void share_over(struct jrt_share *record)
{
    struct share  *share = (struct share *)record;
    struct body   *body = share->body;
    struct rwlock *lock;
    uint64_t       word = 0;
    bool           over = false;
    unsigned       rounds = 0;
    for (;;) {
        jrt_spin_lock(&body->lock);
        lock = body->contested;
        if (lock == NULL || jrt_sync_try_enter(&lock->sync, &word)) break;
        jrt_spin_unlock(&body->lock); /* another thread is BUSY and needs the body */
        jrt_spin_pause(&rounds);
    }
    if (lock == NULL) { /* [rwlock-body] */
        take_out(body, share);
        over = body->first == NULL;
        if (over) body->life = 0;
    }
    jrt_spin_unlock(&body->lock);
    if (over) give_body(&body->link);
    if (lock != NULL) {
        /* relaxed: the lock orders it. */
        if (share->writes) jrt_store_relaxed(&lock->abandoned, (uint8_t)1);
        struct body *left = release(lock, share);
        jrt_invariant("rwlock-contest", left == NULL);
        jrt_sync_leave(&lock->sync, jrt_sync_marked(&lock->sync, word));
    }
    give_share(record);
}

/* The functions that the queue calls. */

static void begin_life(struct rwlock *lock, struct body *body)
{
    static _Atomic(uint64_t) lives;
    body->life = jrt_fetch_add_relaxed(&lives, UINT64_C(1)) + 1; /* relaxed: a number. */
    body->contested = NULL;
    body->count = 0;
    body->first = NULL;
    lock->body = body;
    jrt_store_relaxed(&lock->life, body->life); /* relaxed: to others it is a foreign life. */
}

static bool take(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter)
{
    struct rwlock *lock = rwlock_of(sync);
    struct ask    *ask = ask_of(waiter);
    struct body   *body = lock_body(lock);
    bool           free = body == NULL;
    (void)word;
    if (free) {
        body = ask->body;
        ask->body = NULL;
        jrt_spin_lock(&body->lock); /* a thread with a stale lock may read it */
        begin_life(lock, body);
    }
    bool taken = free || (!ask->share->writes && !lock->writing && jrt_sync_first(sync) == NULL);
    if (taken) add(lock, body, ask->share);
    jrt_spin_unlock(&body->lock);
    return taken;
}

static bool joined(struct jrt_sync *sync, uint64_t word, struct jrt_waiter *waiter)
{
    struct rwlock *lock = rwlock_of(sync);
    struct body   *body = lock->body;
    (void)word;
    jrt_spin_lock(&body->lock);
    /* relaxed: while BUSY. */
    bool                   lives = body->life == jrt_load_relaxed(&lock->life);
    const janus_scheduler *home = home_of(body);
    if (lives) body->contested = lock; /* from now on the holders' ends wait for us */
    jrt_spin_unlock(&body->lock);
    if (!lives) return false;
    if (ask_of(waiter)->share->writes) lock->writers++;
    jrt_sync_count(waiter, waiter->task != NULL && home != waiter->task->nursery->scheduler);
    return true;
}

static void left(struct jrt_sync *sync, uint64_t word, struct jrt_waiter *waiter)
{
    struct rwlock         *lock = rwlock_of(sync);
    const janus_scheduler *before = home_of(lock->body); /* constant while BUSY */
    (void)word;
    if (ask_of(waiter)->share->writes) lock->writers--;
    bool waiting = jrt_sync_first(sync) != NULL;
    if (waiting && !lock->writing && lock->writers == 0) grant_readers(lock);
    settle(lock, before);
}

static void look(const struct jrt_want *want, const janus_scheduler *scheduler,
                 struct jrt_seen *out)
{
    struct jrt_sync *sync = want->object;
    uint64_t         word = jrt_sync_enter(sync);
    struct body     *body = lock_body(rwlock_of(sync));
    uint32_t         tasks = 0;
    for (struct share *at = body != NULL ? body->first : NULL; at != NULL && tasks < JRT_SEEN_MAX;
         at = at->next != body->first ? at->next : NULL) {
        struct jrt_seen seen = {.held = false};
        jrt_holder_describe(at->holder, scheduler, &seen);
        if (seen.task != 0 && tasks > 0) out->others[tasks - 1] = seen.task;
        if (tasks == 0 && seen.held) *out = seen;
        tasks += seen.task != 0;
    }
    out->count = body != NULL ? body->count : 0;
    if (body != NULL) jrt_spin_unlock(&body->lock);
    jrt_sync_leave(sync, word);
}

static const struct jrt_sync_kind kind = {.reason = JRT_WAIT_RWLOCK,
                                          .what = "reader-writer lock",
                                          .take = take,
                                          .joined = joined,
                                          .left = left,
                                          .look = look};

/* Locking. */

/* The caller's share of the lock; NULL: it has none. */
static struct share *own_share(const struct jrt_holder *self, const struct rwlock *lock,
                               uint32_t *out_count)
{
    uint64_t life = jrt_load_relaxed(&lock->life); /* relaxed: if we hold it, it does not change. */
    *out_count = 0;
    for (struct jrt_share *at = self->shares; at != NULL; at = at->next) {
        struct share *share = (struct share *)at;
        ++*out_count;
        if (share->body->life == life) return share; /* a body in which we have a share lives on */
    }
    return NULL;
}

/* Called by a holder. */
static janus_status lock_deeper(struct share *share, bool writes)
{
    if (writes || share->writes) return JANUS_STATE;
    if (share->depth == JANUS_RWLOCK_DEPTH_MAX - 1) return JANUS_FULL;
    share->depth++;
    return JANUS_OK;
}

/* Locks with the records in `ask`. */
static janus_status lock_with(struct rwlock *lock, struct ask *ask, bool waits,
                              uint64_t deadline_ns)
{
    struct jrt_sync_call call = {.sync = &lock->sync, .kind = &kind, .deadline_ns = deadline_ns};
    uint64_t             word = jrt_sync_enter(&lock->sync);
    bool                 taken = take(&lock->sync, &word, &ask->waiter);
    jrt_sync_leave(&lock->sync, jrt_sync_marked(&lock->sync, word));
    if (taken) return JANUS_OK;
    return waits ? jrt_sync_wait(&call, &ask->waiter) : JANUS_WOULD_WAIT;
}

static janus_status lock_as(struct jrt_task *task, struct rwlock *lock, bool writes, bool waits,
                            uint64_t deadline_ns)
{
    struct jrt_holder *self = jrt_holder_make(jrt_worker_self());
    uint32_t           count = 0;
    if (self == NULL) return JANUS_NO_MEMORY;
    struct share *own = own_share(self, lock, &count);
    if (own != NULL) return lock_deeper(own, writes);
    if (count >= JANUS_RWLOCK_HOLDS_MAX) return JANUS_FULL;
    struct ask   ask = {.waiter = {.task = task, .holder = self}};
    janus_status status = JANUS_NO_MEMORY;
    ask.share = take_record(self, &shares, give_share);
    ask.body = take_record(self, &bodies, give_body);
    if (ask.share != NULL && ask.body != NULL) {
        ask.share->holder = self;
        ask.share->depth = 0;
        ask.share->writes = writes;
        status = lock_with(lock, &ask, waits, deadline_ns);
    }
    if (ask.body != NULL) recycle(self, &ask.body->link, give_body);
    if (status == JANUS_OK) {
        ask.share->link = (struct jrt_share){.next = self->shares, .over = share_over};
        self->shares = &ask.share->link;
    } else if (ask.share != NULL) {
        recycle(self, &ask.share->link, give_share);
    }
    return status;
}

/* The public calls. */

static struct rwlock *lock_in(janus_rwlock *lock) { return (struct rwlock *)(void *)lock; }

static janus_status lock_until(janus_rwlock *lock, bool writes, uint64_t deadline_ns)
{
    struct jrt_task *task = jrt_sync_begin();
    if (lock == NULL) return JANUS_INVALID;
    if (jrt_sync_cancelled(task)) return jrt_task_cancelled_or_end(task);
    return jrt_sync_end(task, lock_as(task, lock_in(lock), writes, true, deadline_ns));
}

static janus_status try_lock(janus_rwlock *lock, bool writes)
{
    struct jrt_task *task = jrt_sync_begin();
    if (lock == NULL) return JANUS_INVALID;
    return lock_as(task, lock_in(lock), writes, false, JRT_NEVER);
}

janus_status janus_rwlock_init(janus_rwlock *lock, const char *name)
{
    if (lock == NULL) return JANUS_INVALID;
    *lock = (janus_rwlock)JANUS_RWLOCK_INIT(name);
    return JANUS_OK;
}

janus_status janus_rwlock_read_lock_until(janus_rwlock *lock, uint64_t deadline_ns)
{
    return lock_until(lock, false, deadline_ns);
}

janus_status janus_rwlock_read_lock(janus_rwlock *lock)
{
    return lock_until(lock, false, JRT_NEVER);
}

janus_status janus_rwlock_try_read_lock(janus_rwlock *lock) { return try_lock(lock, false); }

janus_status janus_rwlock_write_lock_until(janus_rwlock *lock, uint64_t deadline_ns)
{
    return lock_until(lock, true, deadline_ns);
}

janus_status janus_rwlock_write_lock(janus_rwlock *lock)
{
    return lock_until(lock, true, JRT_NEVER);
}

janus_status janus_rwlock_try_write_lock(janus_rwlock *lock) { return try_lock(lock, true); }

janus_status janus_rwlock_unlock(janus_rwlock *given)
{
    struct rwlock *lock = lock_in(given);
    uint32_t       count;
    jrt_stack_check(); /* [stack-reserve] */
    if (lock == NULL) return JANUS_INVALID;
    struct jrt_holder *self = jrt_holder_self(jrt_worker_self());
    struct share      *share = self != NULL ? own_share(self, lock, &count) : NULL;
    if (share == NULL) return JANUS_STATE;
    if (share->depth > 0) {
        share->depth--;
        return JANUS_OK;
    }
    struct jrt_share **at = &self->shares;
    while (*at != &share->link) at = &(*at)->next;
    *at = share->link.next;
    uint64_t     word = jrt_sync_enter(&lock->sync);
    struct body *body = release(lock, share);
    jrt_sync_leave(&lock->sync, jrt_sync_marked(&lock->sync, word));
    recycle(self, &share->link, give_share);
    if (body != NULL) recycle(self, &body->link, give_body);
    return JANUS_OK;
}

bool janus_rwlock_is_abandoned(const janus_rwlock *lock)
{
    const struct rwlock *inside = (const struct rwlock *)(const void *)lock;
    jrt_point();
    /* relaxed: a holder sees what the lock ordered. For others it is out of date at once. */
    return lock != NULL && jrt_load_relaxed(&inside->abandoned) != 0;
}

janus_status janus_rwlock_repaired(janus_rwlock *given)
{
    struct rwlock *lock = lock_in(given);
    uint32_t       count;
    jrt_stack_check(); /* [stack-reserve] */
    if (lock == NULL) return JANUS_INVALID;
    const struct jrt_holder *self = jrt_holder_self(jrt_worker_self());
    const struct share      *share = self != NULL ? own_share(self, lock, &count) : NULL;
    if (share == NULL || !share->writes) return JANUS_STATE;
    jrt_store_relaxed(&lock->abandoned, (uint8_t)0); /* relaxed: the lock orders it. */
    return JANUS_OK;
}

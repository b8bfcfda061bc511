/* SPDX-License-Identifier: MIT */
/* The nursery inside janus_nursery. The essay is in nursery.c. */
#ifndef JRT_TASK_NURSERY_H
#define JRT_TASK_NURSERY_H

#include "fiber/exception.h"
#include "fiber/fiber.h"
#include "fiber/fuel.h"
#include "task/state.h"
#include "task/turn.h"
#include "task/worker.h"

/* Part of `pending` until the owner folds, [nursery-count]. */
#define JRT_NURSERY_BIAS (INT64_C(1) << 60)

/* Both bytes of `ending`. */
#define JRT_ENDING UINT16_C(0x0101)

/* A nursery that was opened in a shield is shielded, too; [shield-nursery]. */
enum jrt_cover {
    JRT_COVER_NONE = 0,
    JRT_COVER_FOR_GOOD,
    JRT_COVER_UNTIL, /* until the shield's deadline */
    JRT_COVER_OVER,  /* the deadline has passed */
};

/*
 * [nursery-ready]  Most nurseries are opened, have children that run in place, and end; nobody else
 *   ever looks. The lock and the fields it guards are initialised by their first user. That is the
 *   owner, a child that has to wait, or a child that ends elsewhere. A thread that finds them half
 *   initialised waits for the few stores. A root, and a nursery with options, is ready when it is
 *   opened.
 */
enum jrt_readiness {
    JRT_NOT_READY,
    JRT_GETTING_READY,
    JRT_READY,
};

/*
 * The owner changes some fields for every child, children elsewhere change others, and all only
 * read the rest. These groups lie at least a cache line apart.
 */
struct jrt_nursery {
    /* These hardly ever change while it is open. */
    janus_scheduler  *scheduler;
    struct jrt_task  *owner; /* NULL: a plain thread owns it */
    _Atomic(uint64_t) clean; /* [cancel-epoch] */
    union {
        struct {
            _Atomic(uint8_t) state;  /* janus_nursery_state, [nursery-moves] */
            _Atomic(uint8_t) reason; /* janus_cancel_reason; set before Cancelling */
            uint8_t          policy; /* janus_policy */
            _Atomic(uint8_t) cover;  /* enum jrt_cover: whether cancels from above stop here */
            uint32_t         birth;  /* of a child that asks for nothing */
        };
        _Atomic(uint32_t) plain;     /* the first four: zero if nothing is set */
        uint64_t          beginning; /* all of them */
    };

    /*
     * Bits that make its end, or its children's ends, more than counting.
     *
     * [nursery-bytes]  The bits of one byte are one memory location: a thread that writes one of
     *   them races with threads that read the others. So bits share a byte only if the same lock
     *   guards them, or if only the owner reads and writes them.
     */
    union {
        struct {
            bool          folded : 1;   /* [nursery-count]; the owner's */
            bool          beyond : 1;   /* the owner is in a scope inside it; the owner's */
            bool          timed : 1;    /* it has a deadline; the owner's */
            bool          unsorted : 1; /* [nursery-twice]; the owner's */
            bool          limited;      /* max_children; never changes */
            bool          on_terms;     /* its children start on terms, terms.h */
            bool          internal;     /* of a fork, fork.h: public calls do not use it */
            _Atomic(bool) registered;   /* [tree-lazy]; lock of the nursery above */
            bool          failed : 1;   /* there are errors; under the lock */
            bool          kept : 1;     /* ended children may be left to join; under the lock */
            bool          bound : 1;    /* a token, bindings or `singles`; under the lock */
            uint8_t       on_heap;      /* enum jrt_on_heap */
            _Atomic(bool) starving;     /* [exhaust-await]: a child was on `exhausted` */
        };
        uint32_t first_four; /* for jrt_nursery_is_apart */
        uint64_t special;    /* any of them */
    };
    struct jrt_terms             *terms; /* for children; NULL: implicit */
    _Atomic(struct jrt_nursery *) outer; /* the owner's next nursery around this; [nursery-outer] */
    union {
        const struct jrt_thread *thread; /* the owner, if it is a plain thread */
        int64_t inside; /* otherwise: how many more the owner may open, [nursery-nested] */
    };

    /* Valid only once `ready`, [nursery-ready], up to `failures`. */
    _Alignas(16) pthread_mutex_t lock;     /* guards what follows, up to link */
    struct jrt_list_node children;         /* linked ones, [tree-lazy] */
    struct jrt_task     *waiter;           /* the owner, while it waits in await */
    janus_task_id        joining;          /* the child that the owner joins; 0: none */
    struct jrt_list_node finished;         /* kept: joinable children that have ended, by sibling */
    struct janus_token  *token;            /* a reference; NULL: nobody asked for it */
    struct jrt_binding  *bindings;         /* tokens that cancel this nursery; only the owner's */
    _Atomic(struct jrt_singles *) singles; /* owned; children cancelled alone, [cancel-single] */
    struct jrt_list_node          exhausted; /* children that wait for budget, [exhaust-list] */
    uint64_t                      errors;
    const char                   *name;     /* clean, [name-clean]; NULL: none */
    janus_panic_detail           *panic;    /* owned; of the first failure, if it is a panic */
    struct jrt_failures          *failures; /* owned, [failure-kept]; NULL: none is kept */
    _Atomic(uint64_t) disturbed; /* children whose own scopes are cancelled, [scope-owner] */
    _Atomic(bool)     over;      /* Cancelling, and a reader saw all end, [nursery-seen] */
    bool              emptied;   /* lent, and no child is left, [nursery-lend] */
    _Alignas(16) int64_t local;  /* [nursery-count]; only the owner's, without the lock */
    union {
        struct {
            _Atomic(bool) closing; /* [nursery-closing]; only the owner writes, without the lock */
            _Atomic(bool) awaited; /* [exhaust-await]; only the owner writes */
        };
        _Atomic(uint16_t) ending; /* both: JRT_ENDING, or 0 */
    };
    bool              supervised; /* the waiter waits for exhausted children */
    _Atomic(uint8_t)  ready;      /* enum jrt_readiness */
    _Atomic(uint32_t) depth;      /* nurseries above, and this one; 0: not counted yet */
    _Alignas(16) int64_t error;
    janus_task_id        error_task;
    janus_panic_kind     panic_kind;
    _Atomic(bool)        called;   /* on_heap, a root: its thread waits inside a call */
    struct jrt_list_node spawners; /* when_full WAIT: spawners that wait for room, [room-hand] */
    struct jrt_alarm     deadline;
    uint64_t             deadline_ns; /* valid if timed; the owner's */
    struct jrt_alarm     uncover;     /* cover is, or was, UNTIL: its end */
    struct jrt_list_node link;        /* on owner->nurseries, or the scheduler's roots */

    struct jrt_nursery *next_visit;       /* belongs to the visitor */
    _Atomic(uint32_t)   joined;           /* futex: changes when the joined child has ended */
    uint8_t             when_full;        /* limited: janus_when_full */
    bool                owner_apart : 1;  /* the owner's own waits are not in the scope */
    bool                owners_alone : 1; /* only its owner cancels it, [cancel-right] */
    uint16_t            level;            /* covered: the owner's shields when it was opened */
    uint32_t            max_children;     /* 0: any number */
    _Atomic(uint32_t)   alive;            /* live children, if max_children limits them */
    _Atomic(uint32_t)   done;             /* futex: 1 when the state is final */
    _Atomic(uint32_t)   visitors;         /* [cancel-visit] */
    _Atomic(int64_t)    pending;          /* [nursery-count] */
    char                given[JANUS_NAME_BYTES]; /* a copy of the given name */
};

/* How a nursery on the heap was made. */
enum jrt_on_heap {
    JRT_NOT_ON_HEAP,
    JRT_ON_HEAP, /* by janus_nursery_create, or a fork */
    JRT_PAID,    /* by janus_nursery_create, and its task pays for it */
};

/* The first children that failed; failures.c. */
struct jrt_failures {
    uint32_t      room, count;
    janus_failure list[];
};

/* Keeps the failure that was counted last, if there is room. Under the nursery's lock. */
void jrt_failures_keep(struct jrt_nursery *n, const struct jrt_task *task);
void jrt_failures_free(struct jrt_nursery *n);

/* Frees an ended nursery with this on_heap. Refunds it if its task paid. In abi.c. */
void jrt_nursery_free(struct jrt_nursery *n, enum jrt_on_heap on_heap);

/*
 * [nursery-outer]  The owner links its nurseries from the inside out. A parallel call links a
 *   nursery around those that its task has open inside (fork.c), while their children look up. So
 *   the link is atomic. Its target outlives the nursery, because inner nurseries end first. The
 *   first function is for the owner, or for threads that the owner's wait orders. All others call
 *   the second.
 */
static inline struct jrt_nursery *jrt_nursery_outer(const struct jrt_nursery *n)
{
    /* relaxed: only the owner writes it, and the owner reads. */
    return jrt_load_relaxed(&n->outer);
}

static inline struct jrt_nursery *jrt_nursery_outer_of_other(const struct jrt_nursery *n)
{
    return jrt_load_acquire(&n->outer); /* acquire: what was written before it was linked. */
}

_Static_assert(offsetof(struct jrt_nursery, lock) >= 64 &&
                   offsetof(struct jrt_nursery, local) >= 128 &&
                   offsetof(struct jrt_nursery, pending) - offsetof(struct jrt_nursery, local) > 64,
               "lines apart");

_Static_assert(sizeof(struct jrt_nursery) <= sizeof(janus_nursery), "it fits its storage");

/* Initialises the rest, [nursery-ready]. In open.c. */
void jrt_nursery_make_ready(struct jrt_nursery *n);

static inline void jrt_nursery_ready(struct jrt_nursery *n)
{
    /* acquire: what was written then. */
    if (jrt_unlikely(jrt_load_acquire(&n->ready) != JRT_READY)) jrt_nursery_make_ready(n);
}

static inline void jrt_nursery_lock(struct jrt_nursery *n)
{
    jrt_nursery_ready(n);
    jrt_lock(&n->lock);
}

static inline void jrt_nursery_unlock(struct jrt_nursery *n)
{
    /* relaxed: the caller has the lock and saw it then. */
    jrt_debug_invariant("nursery-ready", jrt_load_relaxed(&n->ready) == JRT_READY);
    jrt_unlock(&n->lock);
}

/* Whether a spawn, or a child's end, is more than counting. */
static inline bool jrt_nursery_is_apart(const struct jrt_nursery *n)
{
    return (n->first_four & 0xffff03u) != 0; /* folded, beyond, limited, on_terms */
}

static inline struct jrt_nursery *jrt_nursery_of(janus_nursery *nursery)
{
    return (struct jrt_nursery *)(void *)nursery;
}

/* The given name, or "nursery" or "parallel"; clean, [name-clean]. */
static inline const char *jrt_nursery_name(const struct jrt_nursery *n)
{
    if (n->internal) return "parallel";
    /* acquire: the options were written before. */
    if (jrt_load_acquire(&n->ready) != JRT_READY || n->name == NULL) return "nursery";
    return n->name;
}

static inline janus_nursery_state jrt_nursery_state(const struct jrt_nursery *n)
{
    uint8_t state = jrt_load_acquire(&n->state); /* acquire: what led to it. */
    /* relaxed: [nursery-closing]. */
    if (state == JANUS_NURSERY_STATE_OPEN && jrt_load_relaxed(&n->closing))
        return JANUS_NURSERY_STATE_CLOSING;
    return (janus_nursery_state)state;
}

/* The state for any reader: Cancelled as soon as all children have ended, [nursery-seen]. */
janus_nursery_state jrt_nursery_seen(struct jrt_nursery *n);

/* The result; kind PENDING: the nursery has not ended. */
void jrt_nursery_result_of(struct jrt_nursery *n, janus_nursery_result *out);

static inline bool jrt_nursery_is_shielded(const struct jrt_nursery *n)
{
    uint8_t cover = jrt_load_acquire(&n->cover); /* acquire: [shield-nursery]. */
    return cover == JRT_COVER_FOR_GOOD || cover == JRT_COVER_UNTIL;
}

/* Arms its deadline. In open.c. */
bool jrt_nursery_arm(struct jrt_nursery *n, uint64_t deadline_ns);

static inline void jrt_nursery_disarm(struct jrt_nursery *n)
{
    if (n->timed) jrt_sched_timer_disarm(n->scheduler, &n->deadline.timer);
}

/* The number of the owner's shields when it opened the nursery. */
static inline uint16_t jrt_nursery_level(const struct jrt_nursery *n)
{
    uint8_t cover = jrt_load_acquire(&n->cover); /* acquire: the level was written before. */
    return cover == JRT_COVER_NONE ? 0 : n->level;
}

/* Whether its owner asked to stay outside of its scope. */
static inline bool jrt_nursery_owner_is_apart(const struct jrt_nursery *n)
{
    if (n->internal) return true; /* a parallel call reports to its caller itself */
    /* acquire: the options were written before. A nursery without options is not ready at first. */
    return jrt_load_acquire(&n->ready) == JRT_READY && n->owner_apart;
}

/* Begins a change of what nurseries below n saw. Nothing counts as clean until the change is
 * finished, [cancel-sticky]. Pass the returned count to jrt_cancels_finish. */
uint64_t jrt_cancels_begin(struct jrt_nursery *n);

/* Finishes a change. If it took place, readers that found n or a nursery below it clean look
 * again. */
void jrt_cancels_finish(struct jrt_nursery *n, uint64_t begun, bool took_place);

/* Why its children are cancelled: because of the nursery, its owner, or something around them up to
 * the next shield. NONE: they are not. */
janus_cancel_reason jrt_nursery_reason_above(struct jrt_nursery *n);

static inline bool jrt_nursery_cancelled_above(struct jrt_nursery *n)
{
    return jrt_nursery_reason_above(n) != JANUS_CANCEL_REASON_NONE;
}

/* Cancels it if something above is cancelled, so that its state shows that, too. */
void jrt_nursery_follow(struct jrt_nursery *n);

/* Notes a child, finds it, and frees the table, for [cancel-single]. In single.c. */
bool jrt_single_note(struct jrt_nursery *n, janus_task_id child);
bool jrt_single_find(const struct jrt_nursery *n, janus_task_id child);
void jrt_singles_free(struct jrt_nursery *n);

/* Whether a task was cancelled alone, by its id. */
static inline bool jrt_task_is_singled(const struct jrt_task *task)
{
    const struct jrt_nursery *n = task->nursery;
    /* acquire, both: what was written then. A nursery that is not ready has no table. */
    if (jrt_load_acquire(&n->ready) != JRT_READY) return false;
    if (jrt_likely(jrt_load_acquire(&n->singles) == NULL)) return false; /* acquire: as above. */
    return jrt_single_find(n, jrt_task_id(task));
}

/* Why a cancelled task's own nurseries are cancelled. */
static inline janus_cancel_reason jrt_task_reason_below(const struct jrt_task *task)
{
    return jrt_task_is_singled(task) ? JANUS_CANCEL_REASON_EXPLICIT : JANUS_CANCEL_REASON_PARENT;
}

/* Opens a nursery on no terms for `owner`, inside `around` and around all nurseries opened
 * since, [fork-nursery]. The owner runs here or has a child on top. In open.c. */
void jrt_nursery_open_around(struct jrt_nursery *n, struct jrt_worker *worker,
                             struct jrt_task *owner, const struct jrt_nursery *around);

/* Opens a parallel call's nursery as the innermost of the current task, on the terms there. The
 * task does not yield. False: refused, and nothing happened. In open.c. */
bool jrt_nursery_open_on_terms(struct jrt_nursery *n, struct jrt_worker *worker);

/* The innermost nursery that a task has opened itself; NULL: none. */
struct jrt_nursery *jrt_nursery_innermost(const struct jrt_task *task);

/* Starts a piece of a parallel call in a nursery that only counts. False: no room, or no memory.
 * The refusal is not recorded. In spawn.c. */
bool jrt_spawn_piece(struct jrt_nursery *n, struct jrt_worker *worker, janus_entry *entry,
                     void *argument, const char *name);

/* The scope around it. This is the owner's next nursery whose scope holds its owner, or else the
 * nursery that the owner is a child of. The nursery has an owner. */
struct jrt_nursery *jrt_nursery_above(const struct jrt_nursery *n);

/* Adds the owner's own count, so that the last child can make the nursery final. */
void jrt_nursery_fold(struct jrt_nursery *n);

/* Runs the owner's own children that no thread has taken, newest first, in place. Returns the
 * worker, which may be another one. */
struct jrt_worker *jrt_nursery_run_children(struct jrt_nursery *n, struct jrt_worker *worker,
                                            struct jrt_task *owner);

/* From here on the owner recharges no exhausted child, [exhaust-await]. */
void jrt_nursery_begin_waiting(struct jrt_nursery *n);

/* Notes that the count reached zero while the owner lends it, [nursery-lend]; under the lock. */
void jrt_nursery_emptied_locked(struct jrt_nursery *n);

/* Ends the scope of a nursery that ends: its owner's siblings may again remember that they are
 * clean. */
void jrt_scope_end(struct jrt_nursery *n);

/* Covers a nursery that is being opened, if its owner is in a shield. In shield.c. */
janus_status jrt_shield_cover(struct jrt_nursery *n, const struct jrt_task *owner);

/* Ends the cover of a nursery that ends. */
void               jrt_shield_end_cover(struct jrt_nursery *n);
static inline void jrt_shield_uncover(struct jrt_nursery *n)
{
    /* relaxed: the owner's, except for the step to OVER, which changes nothing here. */
    if (jrt_unlikely(jrt_load_relaxed(&n->cover) >= JRT_COVER_UNTIL)) jrt_shield_end_cover(n);
}

/* Limits, in room.c. The first takes room for one more child, if max_children is set: OK, FULL, or
 * the status of a wait. The second returns it. The third sends all waiting spawners away, under the
 * lock. */
janus_status jrt_room_take(struct jrt_nursery *n);
void         jrt_room_give(struct jrt_nursery *n);
void         jrt_room_close_locked(struct jrt_nursery *n);

/* Wakes the owner: the child that it joins has ended. Under the lock. In join.c. */
void jrt_join_ended(struct jrt_nursery *n);

/* For the deadlock check: the owner, a plain thread, begins and ends a wait for children. */
void jrt_nursery_thread_waits(struct jrt_nursery *n);
void jrt_nursery_thread_goes_on(struct jrt_nursery *n);

/* Counts one child off the shared count. The last one ends the nursery, which may then be gone. */
void jrt_nursery_count_off(struct jrt_nursery *n);

/* Whether certainly nothing around the task is cancelled. */
static inline bool jrt_task_is_clean(const struct jrt_task *task)
{
    const struct jrt_nursery *n = task->nursery;
    uint64_t epoch = jrt_load_acquire(&n->scheduler->cancels); /* acquire: [cancel-epoch]. */
    return jrt_load_relaxed(&n->clean) == epoch;               /* relaxed: [cancel-epoch]. */
}

/* Why the task itself is cancelled, apart from nurseries that it has open. NONE: it is not. */
static inline janus_cancel_reason jrt_task_cancelled_itself(const struct jrt_task *task)
{
    return jrt_likely(jrt_task_is_clean(task)) ? JANUS_CANCEL_REASON_NONE
                                               : jrt_task_look_above(task);
}

/* Why the calls of this task must return CANCELLED. NONE: they need not. */
static inline janus_cancel_reason jrt_task_cancel_reason(const struct jrt_task *task)
{
    return jrt_likely(jrt_task_is_clean(task)) ? JANUS_CANCEL_REASON_NONE : jrt_task_look_up(task);
}

/* The first fuel of a task that is not clean. In purse.c. */
int64_t jrt_purse_first_fuel(struct jrt_worker *worker, struct jrt_task *task);
/* Calls jrt_task_serve from any thread, even if it is no worker of the task's scheduler. */
static inline bool jrt_task_serve_from_anywhere(struct jrt_task *task)
{
    janus_scheduler   *scheduler = task->nursery->scheduler;
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_likely(worker != NULL && worker->scheduler == scheduler)) {
        return jrt_task_serve(worker, task);
    }
    jrt_fetch_add_relaxed(&scheduler->guests, 1u); /* relaxed: before the wake, [point-guest]. */
    bool woken = jrt_task_wake(task, JANUS_OK);
    jrt_fetch_sub_release(&scheduler->guests, 1u); /* release: the last touch. */
    return woken;
}

/* The rare cases of jrt_task_run: a task that was cancelled before it started, and a call that did
 * not end in the plainest way. They return the worker. */
struct jrt_worker *jrt_task_skip(struct jrt_worker *worker, struct jrt_task *task,
                                 struct jrt_task *below);
struct jrt_worker *jrt_task_ran_slow(struct jrt_task *task, int how, struct jrt_task *owner,
                                     int64_t below);

/* Calls a task's entry where exceptions may exist: puts those that the thread is handling aside. */
int jrt_task_call_aside(struct jrt_task *task);

/* Ends a child of n that has run in place, if nothing else is to be done. */
static inline void jrt_task_over_here(struct jrt_worker *worker, struct jrt_task *task,
                                      struct jrt_nursery *n)
{
    /* Otherwise nobody sees it: the record is free. */
    if (JRT_DEBUG) jrt_task_move(task, JANUS_TASK_STATE_COMPLETED);
    jrt_task_free_here(worker, task);
    jrt_quota_give(&worker->quota);
    jrt_debug_invariant("nursery-count", n->local > 0);
    n->local--;
}

/* Whether a task's call returned, and nothing has to be reported or taken apart. */
static inline bool jrt_task_ended_fast(const struct jrt_task *task, int how)
{
    if (jrt_unlikely(how != 0 || task->special != 0)) return false;
    return jrt_likely(task->landing.result >= 0);
}

/* It has run, for n's owner or NULL, whose fuel `below` was, and ended so; `traced` is a constant.
 */
static inline __attribute__((always_inline)) struct jrt_worker *jrt_task_ran(struct jrt_task *task,
                                                                             struct jrt_nursery *n,
                                                                             struct jrt_task *owner,
                                                                             int how, int64_t below,
                                                                             bool traced)
{
    bool plain = jrt_task_ended_fast(task, how);
    if (jrt_unlikely(owner == NULL || !plain || jrt_nursery_is_apart(n))) {
        return jrt_task_ran_slow(task, how, owner, below);
    }
    struct jrt_worker *worker = jrt_worker_self(); /* [worker-again] */
    worker->current = owner;
    if (traced && worker->trace != NULL) jrt_note_complete(worker, task);
    jrt_task_over_here(worker, task, n);
    jrt_fuel_set(below);
    return worker;
}

/* Checks the canary after a call on a watched strand, and returns how the call
 * counts, [strand-canary]. */
int jrt_task_look_below(struct jrt_task *task, const struct jrt_strand *strand, int how);

/* Both halves of jrt_task_run. `traced` is a constant; if true, the strand may be watched, too. */
static inline __attribute__((always_inline)) struct jrt_worker *jrt_task_run_as(
    struct jrt_worker *worker, struct jrt_task *task, struct jrt_nursery *n, struct jrt_task *owner,
    bool traced)
{
    jrt_debug_invariant("strand-canary", traced || !worker->strand->watched);
    if (jrt_unlikely(jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE)) {
        return jrt_task_skip(worker, task, owner);
    }
    int64_t below = jrt_fuel_get(); /* the owner's, [purse-fuel] */
    worker->current = task;
    jrt_count(&worker->stats.tasks_executed);
    jrt_task_move(task, JANUS_TASK_STATE_RUNNING);
    jrt_fuel_set(jrt_likely(task->special == 0) ? worker->slice
                                                : jrt_purse_first_fuel(worker, task));
    if (traced && worker->trace != NULL) jrt_note_start(worker, task, owner);
    const struct jrt_strand *strand = worker->strand;
    int                      how = 0;
    if (jrt_unlikely(jrt_exceptions_exist())) {
        how = jrt_task_call_aside(task);
    } else {
        how = jrt_ctx_call(&task->landing, task->entry, task->argument);
        JRT_TASK_LEFT_OPEN(task, how);
    }
    if (traced && strand->watched) how = jrt_task_look_below(task, strand, how);
    return jrt_task_ran(task, n, owner, how, below, traced);
}

/* Runs a task where there is a trace, or a canary. In ending.c. */
struct jrt_worker *jrt_task_run_traced(struct jrt_worker *worker, struct jrt_task *task,
                                       struct jrt_nursery *n, struct jrt_task *owner);

/*
 * Runs a task that never ran, here and now, on the current strand. The task is a child of n. It
 * runs for n's owner, or for the loop, if `owner` is NULL. Returns the worker, which may be
 * another one.
 */
static inline __attribute__((always_inline)) struct jrt_worker *jrt_task_run(
    struct jrt_worker *worker, struct jrt_task *task, struct jrt_nursery *n, struct jrt_task *owner)
{
    if (jrt_unlikely(worker->trace != NULL || worker->strand->watched)) {
        return jrt_task_run_traced(worker, task, n, owner);
    }
    return jrt_task_run_as(worker, task, n, owner, false);
}

/* Starts the first task of janus_run in its nursery. In spawn.c. */
janus_status jrt_spawn_first(janus_nursery *nursery, janus_entry *entry, void *argument);

/* Cancels it for a public call. If the owner called, an empty nursery is final at once. OK or
 * STATE. */
janus_status jrt_nursery_cancel_called(struct jrt_nursery *nursery, janus_cancel_reason reason);

/* Cancels it and everything below. False: it was cancelled before or is final. */
bool jrt_nursery_cancel(struct jrt_nursery *nursery, janus_cancel_reason reason);

/* Cancels it while locks are held. The caller calls jrt_tokens_flush once it holds none. */
bool jrt_nursery_cancel_locked(struct jrt_nursery *nursery, janus_cancel_reason reason);

/* Whether the caller may cancel it by a public call, [cancel-right]. In admit.c. */
bool jrt_nursery_may_cancel(const struct jrt_nursery *nursery);

/* Whether a record, free or not, is certainly a joinable child of this nursery with that id. In
 * peek.c. */
bool jrt_task_peek_joinable(const struct jrt_task *task, const struct jrt_nursery *n,
                            janus_task_id id);

/* Whether a record, free or not, is a child of this nursery with that id that has not ended.
 * *out_linked: the child is on the nursery's list. Under the nursery's lock. In peek.c. */
bool jrt_task_peek_child(const struct jrt_task *task, const struct jrt_nursery *n, janus_task_id id,
                         bool *out_linked);

/* Waits until no cancel is on its way to the nursery, which is on no list. */
void jrt_nursery_await_visitors(struct jrt_nursery *nursery);

/* Whether the caller is the nursery's owner, task or thread. */
static inline bool jrt_nursery_is_mine(const struct jrt_nursery *n)
{
    const struct jrt_thread *thread = jrt_thread_self();
    const struct jrt_worker *worker = thread->worker;
    if (n->owner != NULL) return worker != NULL && worker->current == n->owner;
    return worker == NULL && thread == n->thread && !thread->calls_back;
}

/* Makes it findable from its owner, from the top down. */
void jrt_nursery_register(struct jrt_nursery *nursery);

/* Notes that a root nursery has no children left, or is final. */
void jrt_root_done(janus_scheduler *scheduler);

/* Frees the record of a child that has ended and that nobody can join. */
void jrt_task_retire(janus_scheduler *scheduler, struct jrt_worker *worker, struct jrt_task *task);

/* Makes a task, and every nursery around it, findable from above: [tree-lazy]. */
void jrt_task_link(struct jrt_task *task);

#endif

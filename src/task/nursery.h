/* SPDX-License-Identifier: MIT */
/* The nursery inside janus_nursery. The essay is in nursery/nursery.c. */
#ifndef JRT_TASK_NURSERY_H
#define JRT_TASK_NURSERY_H

#include "task/state.h"
#include "task/worker.h"

/* Part of `pending` until the owner merges, [nursery-count]. */
#define JRT_NURSERY_BIAS (INT64_C(1) << 60)

/* Both bytes of `ending`. */
#define JRT_ENDING UINT16_C(0x0101)

/* A nursery that was opened in a shield is shielded, too; [shield-nursery]. */
enum jrt_shielded {
    JRT_SHIELDED_NONE = 0,
    JRT_SHIELDED_FOR_GOOD,
    JRT_SHIELDED_UNTIL, /* until the shield's deadline */
    JRT_SHIELDED_OVER,  /* the deadline has passed */
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
            _Atomic(uint8_t) state;    /* janus_nursery_state, [nursery-moves] */
            _Atomic(uint8_t) reason;   /* janus_cancel_reason; set before Cancelling */
            uint8_t          policy;   /* janus_policy */
            _Atomic(uint8_t) shielded; /* enum jrt_shielded: whether cancels from above stop here */
            uint32_t         initial;  /* of a child that asks for nothing */
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
            bool          merged : 1;   /* [nursery-count]; the owner's */
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
        uint32_t first_four; /* for jrt_nursery_is_apart and jrt_nursery_ends_slow */
        uint64_t any_flag;   /* any of them */
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
    uint64_t             deadline_ns;  /* valid if timed; the owner's */
    struct jrt_alarm     shield_alarm; /* shielded is, or was, UNTIL: its end */
    struct jrt_list_node link;         /* on owner->nurseries, or the scheduler's roots */

    struct jrt_nursery *next_visit;       /* belongs to the visitor */
    _Atomic(uint32_t)   joined;           /* futex: changes when the joined child has ended */
    uint8_t             when_full;        /* limited: janus_when_full */
    bool                owner_apart : 1;  /* the owner's own waits are not in the scope */
    bool                owners_alone : 1; /* only its owner cancels it, [cancel-right] */
    bool                hidden : 1;       /* no call shows or finds it, [nursery-hidden] */
    uint16_t            level;            /* shielded: the owner's shields when it was opened */
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
    JRT_ON_HEAP,    /* by janus_nursery_create, or a fork */
    JRT_PAID,       /* by janus_nursery_create, and its task pays for it */
    JRT_SUPERVISED, /* the beginning of a supervisor, actor/supervisor.h */
};

/* The first children that failed; failures.c. */
struct jrt_failures {
    uint32_t      room, count;
    janus_failure list[];
};

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
_Static_assert(offsetof(struct jrt_nursery, limited) ==
                       offsetof(struct jrt_nursery, any_flag) + 1 &&
                   offsetof(struct jrt_nursery, on_heap) ==
                       offsetof(struct jrt_nursery, registered) + 2,
               "[nursery-bytes] the owner's bits and those under the lock have a byte each");

/* Initialises the rest, [nursery-ready]. */
void jrt_nursery_make_ready(struct jrt_nursery *n);
void jrt_nursery_get_ready(struct jrt_nursery *n); /* the same before others know it */

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
    return (n->first_four & 0xffff03u) != 0; /* merged, beyond, limited, on_terms */
}

/* Whether janus_nursery_end must first look at what the nursery is. */
static inline bool jrt_nursery_ends_slow(const struct jrt_nursery *n)
{
    return (n->first_four & 0xff000001u) != 0; /* merged, internal */
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

static inline bool jrt_nursery_is_shielded(const struct jrt_nursery *n)
{
    uint8_t shielded = jrt_load_acquire(&n->shielded); /* acquire: [shield-nursery]. */
    return shielded == JRT_SHIELDED_FOR_GOOD || shielded == JRT_SHIELDED_UNTIL;
}

/* The number of the owner's shields when it opened the nursery. */
static inline uint16_t jrt_nursery_level(const struct jrt_nursery *n)
{
    uint8_t shielded = jrt_load_acquire(&n->shielded); /* acquire: the level was written before. */
    return shielded == JRT_SHIELDED_NONE ? 0 : n->level;
}

/* Whether its owner asked to stay outside of its scope. */
static inline bool jrt_nursery_owner_is_apart(const struct jrt_nursery *n)
{
    if (n->internal) return true; /* a parallel call reports to its caller itself */
    /* acquire: the options were written before. A nursery without options is not ready at first. */
    return jrt_load_acquire(&n->ready) == JRT_READY && n->owner_apart;
}

/*
 * [nursery-hidden]  A library runs a stranger's function in a task of its own, inside of nurseries
 *   that bound the function. The stranger could end them, move their deadlines, or start tasks in
 *   them that outlive the function. So it must not get their handles. Inspections leave out a
 *   hidden nursery, and no call takes it for the innermost one. Dumps show it, because they show
 *   names and no handles.
 */
static inline bool jrt_nursery_is_hidden(const struct jrt_nursery *n)
{
    /* acquire: the options were written before. A nursery without options is not ready at first. */
    return jrt_load_acquire(&n->ready) == JRT_READY && n->hidden;
}

/* Whether certainly nothing around the task is cancelled. */
static inline bool jrt_task_is_clean(const struct jrt_task *task)
{
    const struct jrt_nursery *n = task->nursery;
    uint64_t epoch = jrt_load_acquire(&n->scheduler->cancels); /* acquire: [cancel-epoch]. */
    return jrt_load_relaxed(&n->clean) == epoch;               /* relaxed: [cancel-epoch]. */
}

/* Whether a task's call returned, and nothing has to be reported or taken apart. */
static inline bool jrt_task_ended_fast(const struct jrt_task *task, int how)
{
    if (jrt_unlikely(how != 0 || task->any_flag != 0)) return false;
    return jrt_likely(task->landing.result >= 0);
}

/* Whether the caller is the nursery's owner, task or thread. */
static inline bool jrt_nursery_is_mine(const struct jrt_nursery *n)
{
    const struct jrt_thread *thread = jrt_thread_self();
    const struct jrt_worker *worker = thread->worker;
    if (n->owner != NULL) return worker != NULL && worker->current == n->owner;
    return worker == NULL && thread == n->thread && !thread->calls_back;
}

/* gcc would clear a loop's worth, or the whole, with `rep stos`, which costs more than all the
 * rest. */
typedef long long jrt_pair __attribute__((vector_size(16), aligned(8), may_alias));

static inline __attribute__((always_inline)) void jrt_clear(void *at, unsigned pairs)
{
    jrt_pair *to = at;
#pragma GCC unroll 16
    for (unsigned i = 0; i < pairs; i++) to[i] = (jrt_pair){0, 0};
}

#endif

/* SPDX-License-Identifier: MIT */
/* The nursery inside janus_nursery. The essay is in nursery.c. */
#ifndef JRT_TASK_NURSERY_H
#define JRT_TASK_NURSERY_H

#include "fiber/fiber.h"
#include "task/worker.h"

/* In `pending` until the owner folds, [nursery-count]. */
#define JRT_NURSERY_BIAS (INT64_C(1) << 60)

struct jrt_nursery {
    /* Never change while it is open. */
    janus_scheduler         *scheduler;
    struct jrt_task         *owner;  /* NULL: a plain thread */
    const struct jrt_thread *thread; /* the owner, where that is a plain thread */
    struct jrt_nursery      *outer;  /* the owner's next one around this */
    const char              *name;
    uint32_t                 max_children; /* 0: any number */
    uint8_t                  policy;
    uint8_t                  stack_class;
    bool                     shielded; /* opened in a shield: cancels from above stop here */
    bool                     on_heap;  /* janus_nursery_create made it */

    /* The owner's alone. */
    bool    folded; /* [nursery-count] */
    int64_t local;

    _Atomic(int64_t)    pending;    /* [nursery-count] */
    _Atomic(uint64_t)   clean;      /* [cancel-epoch] */
    _Atomic(uint8_t)    state;      /* janus_nursery_state, [nursery-moves] */
    _Atomic(uint8_t)    reason;     /* janus_cancel_reason; set before Cancelling */
    _Atomic(uint32_t)   alive;      /* children, where max_children limits them */
    _Atomic(uint32_t)   done;       /* futex: 1 when the state is final */
    _Atomic(uint32_t)   visitors;   /* [cancel-visit] */
    struct jrt_nursery *next_visit; /* the visitor's */

    pthread_mutex_t      lock;       /* guards all below */
    struct jrt_list_node children;   /* linked ones, [tree-lazy] */
    _Atomic(bool)        registered; /* it is */
    struct jrt_task     *waiter;     /* the owner, while it waits in await or join */
    struct jrt_task     *finished;   /* joinable children that have ended */
    struct janus_token  *token;      /* a reference of ours; NULL: nobody asked for it */
    struct jrt_binding  *bindings;   /* tokens that cancel us; the owner's alone */
    uint64_t             errors;
    struct jrt_alarm     deadline;
    int64_t              error;
    janus_task_id        error_task;
    struct jrt_list_node link;  /* on owner->nurseries, or the scheduler's roots */
    janus_panic_info     panic; /* kind NONE until the first failure is one */
};

_Static_assert(sizeof(struct jrt_nursery) <= sizeof(janus_nursery), "it fits its storage");

static inline struct jrt_nursery *jrt_nursery_of(janus_nursery *nursery)
{
    return (struct jrt_nursery *)(void *)nursery;
}

static inline janus_nursery_state jrt_nursery_state(const struct jrt_nursery *n)
{
    return (janus_nursery_state)jrt_load_acquire(&n->state); /* acquire: what led to it. */
}

/* One child less in the shared count; the last one ends the nursery, which may then be gone. */
void jrt_nursery_count_off(struct jrt_nursery *n);

/* Whether the calls of this task must say CANCELLED, and why. */
static inline janus_cancel_reason jrt_task_cancel_reason(const struct jrt_task *task)
{
    const struct jrt_nursery *n = task->nursery;
    uint64_t epoch = jrt_load_acquire(&n->scheduler->cancels); /* acquire: [cancel-epoch]. */
    /* relaxed: [cancel-epoch]. */
    if (jrt_likely(jrt_load_relaxed(&n->clean) == epoch)) return JANUS_CANCEL_NONE;
    return jrt_task_look_up(task);
}

/* Cancels it and everything below. False: it was cancelled before or is final. */
bool jrt_nursery_cancel(struct jrt_nursery *nursery, janus_cancel_reason reason);

/* The same while locks are held; jrt_tokens_flush is called when none is any more. */
bool jrt_nursery_cancel_locked(struct jrt_nursery *nursery, janus_cancel_reason reason);

/* Whether a record, free or not, is for certain a child of this nursery with that id that can be
 * joined; from dump.c. */
bool jrt_task_peek_joinable(const struct jrt_task *task, const struct jrt_nursery *n,
                            janus_task_id id);

/* Waits until nobody is on his way to it any more; it is on no list. */
void jrt_nursery_await_visitors(struct jrt_nursery *nursery);

/* Whether the caller is the nursery's owner, task or thread. */
static inline bool jrt_nursery_is_mine(const struct jrt_nursery *n)
{
    const struct jrt_thread *thread = jrt_thread_self();
    const struct jrt_worker *worker = thread->worker;
    if (n->owner != NULL) return worker != NULL && worker->current == n->owner;
    return worker == NULL && thread == n->thread;
}

/* Makes it findable from its owner; from the top down. */
void jrt_nursery_register(struct jrt_nursery *nursery);

/* A root nursery has no children left, or is final. */
void jrt_root_done(janus_scheduler *scheduler);

/* Frees the copy of a panic's message. */
void jrt_task_forget_message(struct jrt_task *task);

/* Makes a task, and every nursery around it, findable from above: [tree-lazy]. */
void jrt_task_link(struct jrt_task *task);

#endif

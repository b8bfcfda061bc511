/* SPDX-License-Identifier: MIT */
/* What all objects that tasks wait for have in common: a word and a queue. The essay is in
 * queue.c. */
#ifndef JRT_SYNC_QUEUE_H
#define JRT_SYNC_QUEUE_H

#include "means/holder.h"
#include "rt/source.h"
#include "task/nursery.h"

/* The word; see [sync-word]. */
#define JRT_SYNC_BUSY UINT64_C(1)    /* somebody has the object to himself */
#define JRT_SYNC_WAITERS UINT64_C(2) /* the queue is not empty */
#define JRT_SYNC_TASKS UINT64_C(4)   /* only tasks open it: JANUS_OPENED_BY_TASKS; never changes */
#define JRT_SYNC_FLAGS UINT64_C(63)
#define JRT_SYNC_ONE UINT64_C(64) /* the value, of those that have one, in these units */

static inline uint64_t jrt_sync_value(uint64_t word) { return word / JRT_SYNC_ONE; }

/* The beginning of every object. */
struct jrt_sync {
    const char        *name; /* or NULL */
    _Atomic(uint64_t)  word;
    struct jrt_waiter *first; /* of the queue, a ring; while BUSY */
};

/* One who waits; in its frame. All but the first three are for whoever has the object. */
struct jrt_waiter {
    struct jrt_task   *task;   /* NULL: a plain thread */
    struct jrt_holder *holder; /* its own */
    uint64_t           number; /* a broadcast's */
    struct jrt_waiter *next, *prev;
    janus_status       outcome; /* once it is off the queue */
    bool               counted; /* [sync-outside] */
    bool               lost;    /* it was nudged, and came too late */
    _Atomic(uint32_t)  woken;   /* futex: enum jrt_woken */

    struct jrt_lookout *lookout; /* of a select, in which the waiter lies; NULL: none */
};

enum jrt_woken {
    JRT_NOT_WOKEN = 0, /* in the queue */
    JRT_GRANTED,       /* off the queue, with the outcome */
    JRT_NUDGED,        /* in the queue, and on its way to look itself */
};

/* What differs from one kind of object to the other. The functions are called while BUSY. */
struct jrt_sync_kind {
    enum jrt_wait reason;
    const char   *what; /* "mutex" */
    /* Whether it need not wait: then all is done, and the outcome is set. */
    bool (*take)(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter);
    /* It has joined the queue; false: things have changed, it need not wait. It has left it
     * ungranted. NULL: nothing is to be done. */
    bool (*joined)(struct jrt_sync *sync, uint64_t word, struct jrt_waiter *waiter);
    void (*left)(struct jrt_sync *sync, uint64_t word, struct jrt_waiter *waiter);
    /* One that was nudged, and is in the queue: as take; it is taken off if so. */
    bool (*retry)(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter);
    void (*look)(const struct jrt_want *want, const janus_scheduler *scheduler,
                 struct jrt_seen *out);
};

/* Takes the object; returns the word without BUSY. */
uint64_t jrt_sync_enter(struct jrt_sync *sync);
bool     jrt_sync_try_enter(struct jrt_sync *sync, uint64_t *out_word);

/* Lets go of it with a new word. The last touch. */
static inline void jrt_sync_leave(struct jrt_sync *sync, uint64_t word)
{
    jrt_store_release(&sync->word, word); /* release: what was done while BUSY. */
}

/* The first of the queue gets what it waits for; while BUSY. NULL: there is none. */
struct jrt_waiter *jrt_sync_first(struct jrt_sync *sync);
void jrt_sync_grant(struct jrt_sync *sync, struct jrt_waiter *waiter, janus_status outcome);

/* It stays in the queue and is woken to look itself, unless it is on its way already. */
void jrt_sync_nudge(struct jrt_waiter *waiter);

/* The word with WAITERS as the queue is. */
uint64_t jrt_sync_marked(const struct jrt_sync *sync, uint64_t word);

/* A task in the queue is, or is not, waiting for somebody outside its scheduler. */
void jrt_sync_count(struct jrt_waiter *waiter, bool outside);

/* A wait that is under way. `between` is called when it can no longer be missed. */
struct jrt_sync_call {
    struct jrt_sync            *sync;
    const struct jrt_sync_kind *kind;
    uint64_t                    deadline_ns;
    void                        (*between)(void *argument);
    void                       *argument;
};

/*
 * Waits until it is granted. OK: the outcome is in waiter->outcome. Otherwise CANCELLED, which the
 * caller obeys, DEADLINE, DEADLOCK or NO_MEMORY: then nothing happened, and `between` was called
 * only if it had begun to wait. The caller fills task and number.
 */
janus_status jrt_sync_wait(const struct jrt_sync_call *call, struct jrt_waiter *waiter);

/* How a public call ends: a cancelled task obeys. */
static inline janus_status jrt_sync_end(struct jrt_task *task, janus_status status)
{
    if (jrt_unlikely(status == JANUS_CANCELLED && task != NULL)) return jrt_task_obey(task);
    return status;
}

/* The current task; NULL: a plain thread. The stack is looked at. */
static inline struct jrt_task *jrt_sync_task(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL) return NULL;
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    return worker->current;
}

/* The same, and a turn that is over ends, [turn-call]. */
static inline struct jrt_task *jrt_sync_begin(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_unlikely(worker == NULL)) {
        jrt_callback_check();
        return NULL;
    }
    struct jrt_task *task = worker->current;
    jrt_call_check(worker); /* [stack-reserve] */
    return task;
}

static inline bool jrt_sync_cancelled(const struct jrt_task *task)
{
    return task != NULL && jrt_task_cancel_reason(task) != JANUS_CANCEL_NONE;
}

/* What selects call, [sync-select]: join and leave of a source whose objects are of this kind, one
 * that gives nothing away. */
bool jrt_sync_join(struct jrt_sync *sync, const struct jrt_sync_kind *kind,
                   struct jrt_lookout *lookout, bool *outside);
void jrt_sync_quit(struct jrt_sync *sync, struct jrt_lookout *lookout);

/* The plain form: no hook, the outcome is the status. */
janus_status jrt_sync_wait_plainly(struct jrt_sync *sync, const struct jrt_sync_kind *kind,
                                   struct jrt_task *task, uint64_t deadline_ns);

#endif

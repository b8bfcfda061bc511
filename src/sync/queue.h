/* SPDX-License-Identifier: MIT */
/* What all objects that tasks wait for have in common: a word and a queue. The essay is in
 * queue.c. */
#ifndef JRT_SYNC_QUEUE_H
#define JRT_SYNC_QUEUE_H

#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "means/call.h"
#include "means/holder.h"
#include "nursery/nursery.h"
#include "rt/source.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/turn.h"
#include "work/work.h"

/* The word, [sync-word]. */
#define JRT_SYNC_BUSY UINT64_C(1)    /* one thread has the object to itself */
#define JRT_SYNC_WAITERS UINT64_C(2) /* the queue is not empty */
#define JRT_SYNC_TASKS UINT64_C(4)   /* only tasks open it: JANUS_WAKER_TASKS, constant */
#define JRT_SYNC_FLAGS UINT64_C(63)
#define JRT_SYNC_ONE UINT64_C(64) /* the unit of the value, for objects that have one */

static inline uint64_t jrt_sync_value(uint64_t word) { return word / JRT_SYNC_ONE; }

/* Every object begins with this. */
struct jrt_sync {
    const char        *name; /* or NULL */
    _Atomic(uint64_t)  word;
    struct jrt_waiter *first; /* of the queue, a ring; guarded by BUSY */
};

/* A waiter, in its frame. BUSY guards all fields but the first three. */
struct jrt_waiter {
    struct jrt_task   *task;   /* NULL: a plain thread */
    struct jrt_holder *holder; /* its own */
    uint64_t           number; /* for broadcasts */
    struct jrt_waiter *next, *prev;
    janus_status       outcome; /* valid once it is off the queue */
    bool               counted; /* [sync-outside] */
    bool               lost;    /* it was nudged and came too late */
    _Atomic(uint32_t)  woken;   /* futex: enum jrt_woken */

    struct jrt_lookout *lookout; /* of the select that holds the waiter; NULL: no select */
};

enum jrt_woken {
    JRT_NOT_WOKEN = 0, /* in the queue */
    JRT_GRANTED,       /* off the queue, with the outcome */
    JRT_NUDGED,        /* in the queue, and woken to try itself */
};

/* What differs between kinds of objects. The functions are called while BUSY. */
struct jrt_sync_kind {
    enum jrt_wait reason;
    const char   *what; /* "mutex" */
    /* Whether the caller need not wait. Then everything is done and the outcome is set. */
    bool (*take)(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter);
    /* joined: the waiter has joined the queue. False: it need not wait any more. left: it has left
     * the queue ungranted. NULL: nothing to do. */
    bool (*joined)(struct jrt_sync *sync, uint64_t word, struct jrt_waiter *waiter);
    void (*left)(struct jrt_sync *sync, uint64_t word, struct jrt_waiter *waiter);
    /* As take, for a nudged waiter in the queue. True: the caller takes it off. */
    bool (*retry)(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter);
    void (*look)(const struct jrt_want *want, const janus_scheduler *scheduler,
                 struct jrt_seen *out);
};

/* Sets BUSY and returns the word without BUSY. */
uint64_t jrt_sync_enter(struct jrt_sync *sync);
bool     jrt_sync_try_enter(struct jrt_sync *sync, uint64_t *out_word);

/* Clears BUSY with a new word. The last touch. */
static inline void jrt_sync_leave(struct jrt_sync *sync, uint64_t word)
{
    jrt_debug_invariant("sync-word", (word & JRT_SYNC_BUSY) == 0);
    jrt_debug_invariant("sync-word", ((word & JRT_SYNC_WAITERS) != 0) == (sync->first != NULL));
    jrt_store_release(&sync->word, word); /* release: what was done while BUSY. */
}

/* The first of the queue, or NULL; and grants a waiter what it waits for. While BUSY. */
struct jrt_waiter *jrt_sync_first(struct jrt_sync *sync);
void jrt_sync_grant(struct jrt_sync *sync, struct jrt_waiter *waiter, janus_status outcome);

/* Wakes a waiter that stays in the queue, to try itself, unless it is woken already. */
void jrt_sync_nudge(struct jrt_waiter *waiter);

/* The word with WAITERS set as the queue requires. */
uint64_t jrt_sync_marked(const struct jrt_sync *sync, uint64_t word);

/* Counts whether a waiting task depends on somebody outside its scheduler. */
void jrt_sync_count(struct jrt_waiter *waiter, bool outside);

/* Whether it is counted so: it depends on tasks of `home`, or NULL, somebody else. While BUSY. */
static inline bool jrt_sync_is_counted(const struct jrt_waiter *waiter, const janus_scheduler *home)
{
    if (waiter->task == NULL) return !waiter->counted;
    return waiter->counted == (home != waiter->task->nursery->scheduler);
}

/* A wait. `between` is called when the waiter can no longer miss a grant. */
struct jrt_sync_call {
    struct jrt_sync            *sync;
    const struct jrt_sync_kind *kind;
    uint64_t                    deadline_ns;
    void                        (*between)(void *argument);
    void                       *argument;
};

/*
 * Waits until granted. OK: the outcome is in waiter->outcome. CANCELLED, which the caller obeys,
 * DEADLINE, DEADLOCK or NO_MEMORY: nothing happened. Then `between` was called only if the wait had
 * begun. The caller fills task and number.
 */
janus_status jrt_sync_wait(const struct jrt_sync_call *call, struct jrt_waiter *waiter);

/* Ends a public call: a cancelled task obeys. */
static inline janus_status jrt_sync_end(struct jrt_task *task, janus_status status)
{
    if (jrt_unlikely(status == JANUS_CANCELLED && task != NULL))
        return jrt_task_cancelled_or_end(task);
    return status;
}

/* The current task; NULL: a plain thread. It checks the stack. */
static inline struct jrt_task *jrt_sync_task(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL) return NULL;
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    return worker->current;
}

/* The current task, as jrt_sync_task. It also ends a turn that is over, [turn-call]. */
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
    return task != NULL && jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE;
}

/* For selects, [sync-select]: join and leave a source of this kind, which gives nothing away. */
bool jrt_sync_join(struct jrt_sync *sync, const struct jrt_sync_kind *kind,
                   struct jrt_lookout *lookout, bool *outside);
void jrt_sync_quit(struct jrt_sync *sync, struct jrt_lookout *lookout);

/* Waits without a hook, and returns the outcome as the status. */
janus_status jrt_sync_wait_plain(struct jrt_sync *sync, const struct jrt_sync_kind *kind,
                                 struct jrt_task *task, uint64_t deadline_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A child's life: nurseries are opened and ended, children start, wait, learn of a cancel, and
 * end. The essays are in nursery.c, spawn.c and ending.c.
 */
#ifndef JRT_NURSERY_NURSERY_H
#define JRT_NURSERY_NURSERY_H

#include "nursery/run.h"
#include "task/nursery.h"
#include "task/purse.h"

/* A nursery on the heap that its task pays for. */
struct jrt_paid_nursery {
    janus_nursery      nursery; /* first */
    struct jrt_ledger *payer;
};

/* Frees an ended nursery with this on_heap. Refunds it if its task paid. */
void jrt_nursery_free(struct jrt_nursery *n, enum jrt_on_heap on_heap);

/* Ends a nursery of the caller, also that of a parallel call, which janus_nursery_end refuses. In
 * end.c. */
janus_status jrt_nursery_end(struct jrt_nursery *n, janus_nursery_result *out);

/* The state for any reader: Cancelled as soon as all children have ended, [nursery-seen]. */
janus_nursery_state jrt_nursery_seen(struct jrt_nursery *n);

/* The result; kind PENDING: the nursery has not ended. */
void jrt_nursery_result_of(struct jrt_nursery *n, janus_nursery_result *out);

/* Arms its deadline. In open.c. */
bool jrt_nursery_arm(struct jrt_nursery *n, uint64_t deadline_ns);

static inline void jrt_nursery_disarm(struct jrt_nursery *n)
{
    if (n->timed) jrt_sched_timer_disarm(n->scheduler, &n->deadline.timer);
}

/* Opens a nursery on no terms for `owner`, inside `around` and around all nurseries opened
 * since, [fork-nursery]. The owner runs here or has a child on top. In open.c. */
void jrt_nursery_open_around(struct jrt_nursery *n, struct jrt_worker *worker,
                             struct jrt_task *owner, const struct jrt_nursery *around);

/* Opens a nursery on the heap as the innermost of the current task. Neither yields nor ends the
 * task, unlike janus_nursery_open. False: refused, and nothing happened. In open.c. */
bool jrt_nursery_open_on_heap(struct jrt_nursery *n, struct jrt_worker *worker,
                              enum jrt_on_heap on_heap);

/* Opens a parallel call's nursery as the innermost of the current task, on the terms there. The
 * task does not yield. False: refused, and nothing happened. In open.c. */
bool jrt_nursery_open_on_terms(struct jrt_nursery *n, struct jrt_worker *worker);

/* The innermost nursery that a task has opened itself and does not hide; NULL: none. */
struct jrt_nursery *jrt_nursery_innermost(const struct jrt_task *task);

/* Starts a piece of a parallel call in a nursery that only counts. False: no room, or no memory.
 * The refusal is not recorded. In spawn.c. */
bool jrt_spawn_piece(struct jrt_nursery *n, struct jrt_worker *worker, janus_entry *entry,
                     void *argument, const char *name);

/* As janus_spawn_with, for an entry whose argument the library allocates. A spawn may end the
 * spawner while it pays or waits for room. So `maker` is called after that, and no argument is
 * lost. It returns memory of malloc, or NULL. If the child is not started, the memory is freed. In
 * spawn.c. */
typedef void *jrt_argument_maker(const void *recipe);
janus_status  jrt_spawn_made(janus_nursery *nursery, janus_entry *entry, jrt_argument_maker *maker,
                             const void *recipe, const janus_spawn_options *options,
                             janus_task_id *out);

/* Adds the owner's own count, so that the last child can make the nursery final. */
void jrt_nursery_merge(struct jrt_nursery *n);

/* Notes that the count reached zero while the owner lends it, [nursery-lend]; under the lock. */
void jrt_nursery_emptied_locked(struct jrt_nursery *n);

/* Takes room for one more child, where max_children is set: OK, FULL, or if it has to wait what
 * ended that. */
janus_status jrt_room_take(struct jrt_nursery *n);

/* Runs the owner's own children that no thread has taken, newest first, in place. Returns the
 * worker, which may be another one. */
struct jrt_worker *jrt_nursery_run_children(struct jrt_nursery *n, struct jrt_worker *worker,
                                            struct jrt_task *owner);

/* From here on the owner recharges no exhausted child, [exhaust-await]. */
void jrt_nursery_begin_waiting(struct jrt_nursery *n);

/* Wakes the owner: the child that it joins has ended. Under the lock. In join.c. */
void jrt_join_ended(struct jrt_nursery *n);

/* For the deadlock check: the owner, a plain thread, begins and ends a wait for children. */
void jrt_nursery_thread_waits(struct jrt_nursery *n);
void jrt_nursery_thread_goes_on(struct jrt_nursery *n);

/* Counts one child off the shared count. The last one ends the nursery, which may then be gone. */
void jrt_nursery_count_off(struct jrt_nursery *n);
/* Counts off several that ended on this worker, [crowd-count]. */
void jrt_nursery_count_off_some(struct jrt_nursery *n, int64_t children);

/* Ends a task, however its call ended. The nursery owns the record from here on. `below` is the
 * task that ran it in place, or NULL. In nursery.c. */
void jrt_nursery_child_done(struct jrt_worker *worker, struct jrt_task *task,
                            const struct jrt_task *below);

/* Waits until jrt_terms_take_child, which returned TASK_LIMIT or was not called, takes a child.
 * Returns its status, or CANCELLED, DEADLOCK, NO_MEMORY; TASK_LIMIT if the caller cannot wait. In
 * wish.c. */
janus_status jrt_wish_wait(struct jrt_nursery *n, const janus_budget *want,
                           struct jrt_admission *out);

/* Whether other spawns already wait for room under the scheduler's limit. */
bool jrt_wish_is_behind(const struct jrt_nursery *n);

/* Starts the first task of janus_run in its nursery. In spawn.c. */
janus_status jrt_spawn_first(janus_nursery *nursery, janus_entry *entry, void *argument);

/* Cancels it for a public call. If the owner called, an empty nursery is final at once. OK or
 * STATE. */
janus_status jrt_nursery_cancel_called(struct jrt_nursery *nursery, janus_cancel_reason reason);

/* Frees the record of a child that has ended and that nobody can join. */
void jrt_task_retire(janus_scheduler *scheduler, struct jrt_worker *worker, struct jrt_task *task);

/* Drops the argument of a task that will never start, if its spawn named a function. In
 * ending.c. */
void jrt_task_drop_argument(struct jrt_task *task);

/* Calls `drop` as a callback of the task, whose end is not counted yet. */
void jrt_task_drop(struct jrt_task *task, void (*drop)(void *), void *argument);

/* Ends the current task here, after its open nurseries. */
__attribute__((noreturn)) void jrt_task_break_off(struct jrt_task *task, enum jrt_ending how);

/* Gives an exhausted child more, on behalf of n's owner. As janus_nursery_recharge. In
 * exhaust.c. */
janus_status jrt_nursery_give(struct jrt_nursery *n, janus_task_id child,
                              const janus_budget *amount);

/* Cancels and awaits the task's open nurseries, innermost first. */
void jrt_nurseries_abandon(struct jrt_task *task);

/*
 * [cancel-patience]  A loop that ignores CANCELLED must neither keep its worker nor last for ever.
 *   Each CANCELLED that a call returns costs one op of the cleanup allowance ([purse-allowance]),
 *   and may end the turn. When the allowance is used up, the task ends in the call: it is unwound,
 *   and its defers run. In a defer, only the defer ends. An owner that gets CANCELLED because its
 *   own nursery was cancelled lives on. So it pays from its budget, like a loop of checks.
 */

/* Returns CANCELLED, or ends the task there, as its mode and its patience demand. */
janus_status jrt_task_cancelled_or_end(struct jrt_task *task);

/* Returns CANCELLED whatever the mode, or ends the task when its patience is used up. */
janus_status jrt_task_cancelled_again(struct jrt_task *task);

/* Returns CANCELLED whatever the mode, for waits that must first release something. */
janus_status jrt_task_cancelled_only(struct jrt_task *task);

/* Tasks at rest, and tasks whose end their supervisor handles. The essay is in rest.c. */

struct jrt_resident;

/* What a resident task asks its keeper. */
struct jrt_resident_rules {
    janus_entry *entry; /* its argument is the resident */
    /* The task is about to be started. */
    void (*begins)(struct jrt_resident *resident, struct jrt_task *task);
    /* The task has nothing to do and rests if the keeper agrees. The keeper then calls jrt_rest_now
     * under the lock that its wakers take. False: there is something to do. NULL: the task does not
     * rest any more, and JRT_REST is a result. */
    bool (*rests)(struct jrt_resident *resident, struct jrt_worker *worker, struct jrt_task *task);
    /* There is no stack for the next call. So the entry is called on another one, and must end at
     * once. NULL: the task ends without a call. */
    void (*refused)(struct jrt_resident *resident);
    /* The call has ended for good. The record and its purse are still there. */
    void (*ending)(struct jrt_resident *resident, struct jrt_task *task, bool cancelled);
    /* The record is free, and so is the child's room. The nursery still counts the child. */
    void (*ended)(struct jrt_resident *resident);
    bool is_child;     /* its failure is one of its nursery, [rest-end] */
    bool is_breakable; /* a deadlock ends its rest */
};

struct jrt_resident {
    janus_site                       site; /* first; the task's `site` */
    const struct jrt_resident_rules *rules;
};

/* What the entry of a resident task returns if it wants to rest. */
#define JRT_REST (INT64_MAX - 1)

static inline bool jrt_task_is_resident(const struct jrt_task *task)
{
    return task->dirty && task->resident;
}

static inline struct jrt_resident *jrt_resident_of(const struct jrt_task *task)
{
    return (struct jrt_resident *)(uintptr_t)task->site;
}

/* Whether a resident's call that ended so only rests. */
static inline bool jrt_rest_wanted(const struct jrt_task *task, int how)
{
    return how == JRT_ENDED_RETURNED && task->landing.result == JRT_REST &&
           jrt_resident_of(task)->rules->rests != NULL;
}

/* The current task, which nobody else knows yet, becomes resident. In rest.c. */
void jrt_rest_adopt(struct jrt_task *task, struct jrt_resident *resident);

/* A task that jrt_rest_adopt made resident has ended: it is an ordinary one again. */
void jrt_rest_disown(struct jrt_task *task, const janus_site *site);

/* The current task has returned JRT_REST: it rests, or runs again. `below` ran it in place, or is
 * NULL. Returns the worker. */
struct jrt_worker *jrt_rest(struct jrt_task *task, struct jrt_task *below);

/* The last step, under the keeper's lock. False: a cancel has woken the task. */
bool jrt_rest_now(struct jrt_worker *worker, struct jrt_task *task);

/* Starts a resident child on behalf of the nursery: no current task pays, and none restricts it.
 * `name` is clean, and stays as long as the child. `at_rest`: by jrt_rest_first. In spawn.c. */
janus_status jrt_spawn_resident(struct jrt_nursery *n, struct jrt_resident *resident,
                                const char *name, const janus_spawn_options *options, bool at_rest);

/* A new task begins at rest: its entry is called when somebody wakes it. */
void jrt_rest_first(struct jrt_worker *worker, struct jrt_task *task);

/* What a spawn takes before the child exists. The essay is in take.c. */

struct jrt_taken {
    struct jrt_admission admission;
    struct jrt_terms    *terms; /* with_cap; NULL: none */
    bool                 all;   /* the first task, without limits */
    uint64_t             stack; /* bytes that its share pays for a larger stack, [spawn-stack] */
};

/* Counts one more live child where there is a limit, and takes what it needs. May wait. */
janus_status jrt_taken_take(struct jrt_nursery *n, const janus_spawn_options *options,
                            struct jrt_taken *taken);

/* Whether the taken share pays for the stack. If not, the share goes back. */
janus_status jrt_taken_stack(struct jrt_nursery *n, const janus_spawn_options *options,
                             struct jrt_taken *taken);

/* Returns what a refused spawn has taken. `task` is its record, or NULL. */
void jrt_taken_return(struct jrt_nursery *n, struct jrt_worker *worker, struct jrt_task *task,
                      const struct jrt_taken *taken);

/* Gives the child its share and its terms, if it has any. False: no memory. */
bool jrt_taken_endow(struct jrt_task *task, const struct jrt_taken *taken);

#endif

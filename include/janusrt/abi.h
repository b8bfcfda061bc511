/* SPDX-License-Identifier: MIT */
/*
 * Entry points for generated code (SPEC-021 12.1 and the module README): few and small arguments,
 * plain numbers as results, no macros. They are thin wrappers. scheduler.h, nursery.h and task.h
 * have the rich forms. A program may mix both.
 *
 *     declare ptr  @janus_scheduler_create(ptr byval(%config))   ; aarch64: ptr to a copy
 *     declare i32  @janus_scheduler_shutdown(ptr)
 *     declare i32  @janus_scheduler_spawn(ptr, ptr)
 *     declare i32  @janus_scheduler_yield()
 *     declare ptr  @janus_nursery_create()
 *     declare ptr  @janus_nursery_create_in(ptr)
 *     declare ptr  @janus_nursery_spawn(ptr, ptr, ptr)
 *     declare {i64, i64} @janus_nursery_await(ptr)               ; kind and detail share the first
 *     declare i32  @janus_nursery_destroy(ptr)
 *
 * An int is 0 or a negative janus_status. Functions that tasks run are int64_t (void *).
 */
#ifndef JANUSRT_ABI_H
#define JANUSRT_ABI_H

#include <janusrt/export.h>
#include <janusrt/nursery.h>
#include <janusrt/scheduler.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <stdbool.h>
#include <stdint.h>

/* 64 bytes for ever. Zero in any field asks for the default named beside it. */
typedef struct janus_scheduler_config {
    uint32_t worker_count;       /* 0: the CPUs really available; at most 1024 */
    uint32_t profile;            /* janus_profile; 0: SERVICE */
    uint64_t deterministic_seed; /* 0: JANUSRT_SEED in the environment, else real threads */
    uint64_t stack_bytes;        /* 0: the profile's */
    uint32_t victims;            /* janus_victims; 0: RANDOM */
    uint32_t flags;              /* JANUS_CONFIG_*; 0: none */
    uint64_t max_tasks;          /* live at a time. 0: the profile's; UINT64_MAX: any number */
    uint32_t yield_interval;     /* iterations between checks; 0: the profile's */
    uint32_t exhaustion;         /* janus_exhaustion; 0: the profile's */
    uint64_t reserved[2];        /* must be 0 */
} janus_scheduler_config;

enum janus_config {
    JANUS_CONFIG_NO_STEALING = 1,
    JANUS_CONFIG_NO_DEADLOCK_CHECK = 2,
};

/* A janus_nursery_result in two registers. Fields that do not apply are 0. */
typedef struct janus_await_result {
    int32_t kind; /* a janus_result_kind; or, when the call was refused, a negative janus_status */
    int32_t detail; /* CHILD_FAILED: how many children did; CANCELLED: the reason */
    int64_t value;  /* CHILD_FAILED: result of the first; INT64_MIN: it panicked */
} janus_await_result;

/* Stands for a task. It is the task's id and points to nothing, so a stale one does no harm. */
typedef struct janus_task janus_task;

JANUS_BEGIN_DECLS

/*
 * Creates a scheduler and starts it.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    the result is the library's until janus_scheduler_shutdown.
 * Cost:    as janus_scheduler_create_with and janus_scheduler_start.
 * Errors:  NULL: a field is out of range or not known, the profile is CORE, or the system refused;
 *          janus_scheduler_create_with tells which
 */
JANUS_API janus_scheduler *janus_scheduler_create(janus_scheduler_config config);

/*
 * Cancels every task, waits until all have ended and frees everything. It also frees nurseries of
 * janus_nursery_create_in that nobody destroyed, whichever thread made them. A thread inside
 * janus_nursery_await or janus_nursery_destroy finishes that call first.
 *
 * Context: any thread that is not a worker of this scheduler. No other thread may begin a call with
 *          the scheduler or its nurseries any more.
 * Yields:  only if the turn is over; it blocks the thread until the last task has ended.
 * Owns:    takes `scheduler` when it returns 0; NULL does nothing.
 * Cost:    as long as the slowest task takes to notice.
 * Errors:  STATE  inside a task of this scheduler, or a nursery of janus_nursery_open_in is still
 *                 open. In the second case all tasks have ended; call again
 */
JANUS_API int janus_scheduler_shutdown(janus_scheduler *scheduler);

/*
 * Starts `function(argument)` in the innermost nursery that the current task has open.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    `argument` stays the caller's; it must live until the child has ended.
 * Cost:    as janus_spawn_at.
 * Errors:  STATE       not inside a task
 *          NO_NURSERY  the task has none open
 *          and those of janus_spawn_at
 */
JANUS_API int janus_scheduler_spawn(janus_entry *function, void *argument);

/*
 * janus_yield under the name that the specification gives it.
 *
 * Context: inside a task.
 * Yields:  always, if anything else is ready.
 * Owns:    nothing.
 * Cost:    as janus_yield.
 * Errors:  CANCELLED  the task was cancelled; it did not yield
 *          STATE      not inside a task
 */
JANUS_API int janus_scheduler_yield(void);

/*
 * Opens a nursery inside the current task, which becomes its innermost. If a panic or unwinding
 * ends the task first, the library cancels, awaits and destroys the nursery.
 *
 * Context: inside a task, which becomes its owner.
 * Yields:  only if the turn is over.
 * Owns:    the result is the library's until janus_nursery_destroy.
 * Cost:    an allocation. A task that has 16 of them open pays for further ones from its memory
 *          budget.
 * Errors:  NULL: not inside a task, memory was refused, or the task's memory budget has too little
 */
JANUS_API janus_nursery *janus_nursery_create(void);

/*
 * Opens a nursery from a plain thread.
 *
 * Context: any thread outside tasks, which becomes its owner, while the scheduler runs.
 * Yields:  only if the turn is over.
 * Owns:    the result is the library's until janus_nursery_destroy or janus_scheduler_shutdown.
 * Cost:    an allocation and a lock.
 * Errors:  NULL: inside a task, the scheduler does not run, or memory was refused
 */
JANUS_API janus_nursery *janus_nursery_create_in(janus_scheduler *scheduler);

/*
 * Starts `function(argument)` as a child. The library frees the task when it ends. So the result
 * serves janus_task_id_of only; nobody can join it.
 *
 * Context: the nursery's owner, or any task below it.
 * Yields:  only if the turn is over.
 * Owns:    `argument` stays the caller's; it must live until the child has ended. The result need
 *          not be given back.
 * Cost:    as janus_spawn_with.
 * Errors:  NULL: nothing was started, because an argument is NULL, the nursery is not open, or
 *          memory was refused
 */
JANUS_API janus_task *janus_nursery_spawn(janus_nursery *nursery, janus_entry *function,
                                          void *argument);

/*
 * janus_nursery_await_with in two registers.
 *
 * Context: the nursery's owner.
 * Yields:  if there is something to wait for; on a plain thread it blocks the thread.
 * Owns:    nothing.
 * Cost:    as janus_nursery_await_with.
 * Errors:  result.kind is INVALID for NULL, STATE when the caller is not the owner
 */
JANUS_API janus_await_result janus_nursery_await(janus_nursery *nursery);

/*
 * Awaits, then ends and frees a nursery of janus_nursery_create or janus_nursery_create_in.
 *
 * Context: the nursery's owner; inner nurseries before outer ones.
 * Yields:  as janus_nursery_await.
 * Owns:    takes `nursery` when it returns 0; NULL does nothing.
 * Cost:    as janus_nursery_await.
 * Errors:  STATE  not the owner, not the innermost, or not made by these two; nothing happened.
 *          How the children ended is no error of this call.
 */
JANUS_API int janus_nursery_destroy(janus_nursery *nursery);

/*
 * Cancels a nursery with the reason PARENT, as if its owner had been cancelled.
 *
 * Context: any thread or task, while the nursery has not ended.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    as janus_nursery_cancel.
 * Errors:  STATE    as janus_nursery_cancel; nothing happened
 *          INVALID  `nursery` is NULL
 */
JANUS_API int janus_nursery_propagate_cancel(janus_nursery *nursery);

/*
 * Whether the caller runs inside a task.
 *
 * Context: anyone, any thread. In a token's callback it is false.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a thread-local load.
 * Errors:  none.
 */
JANUS_API bool janus_in_task(void);

/*
 * The current task; the same before and after it changes threads.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    need not be given back.
 * Cost:    a thread-local load.
 * Errors:  NULL outside a task.
 */
JANUS_API janus_task *janus_task_current(void);

/*
 * The id that a task's handle stands for.
 *
 * Context: anyone, any thread, also when the task has ended.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    none.
 * Errors:  0 for NULL.
 */
JANUS_API janus_task_id janus_task_id_of(const janus_task *task);

/*
 * Whether a task in this state has ended: COMPLETED or CANCELLED.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a comparison.
 * Errors:  none.
 */
JANUS_API bool janus_task_is_finished(janus_task_state state);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * The calls upwards. A room calls itself and rooms below it (src/rooms.txt); where a lower room
 * must start what a higher one does, it calls one of these. None is on a path that is taken often.
 * The highest room fills them in: explore/upcalls.c.
 */
#ifndef JRT_TASK_UPCALLS_H
#define JRT_TASK_UPCALLS_H

#include <janusrt/scheduler.h>
#include <stdbool.h>

struct jrt_nursery;
struct jrt_purse;
struct jrt_run_end;
struct jrt_task;
struct jrt_worker;

struct jrt_upcalls {
    /* For work. What lies at the bottom of a strand, and of a rescue strand; a worker's thread. */
    void (*loop)(void *strand, int message);
    void (*rescue)(void *strand, int message);
    void (*worker_main)(void *worker);
    /* What a worker needs to run anything; for seats. */
    bool (*worker_open)(struct jrt_worker *worker);
    void (*worker_close)(struct jrt_worker *worker);
    /* The tolls of a cancelled task are used up, [cancel-patience]. It may end there. */
    void (*pay_patience)(struct jrt_task *task);
    /* Timers have rung: tokens of nurseries whose deadline passed are cancelled. */
    void     (*flush_tokens)(void);
    uint64_t (*take_owed)(const struct jrt_purse *purse); /* [callback-time] */
    /* All workers sleep: says whether any task waits, and ends the waits. */
    bool (*anybody_waits)(janus_scheduler *scheduler);
    bool (*break_deadlock)(janus_scheduler *scheduler);

    /* Timers have rung: what they mean to actors. */
    void (*flush_actors)(void);

    /* For rt. A worker is being closed: its spare question goes back. */
    void (*forget_question)(struct jrt_worker *worker);

    /* For nursery. A task ends without ending its supervisor: before and after the supervisor's
     * nursery ends. */
    void (*supervisor_abandon)(struct jrt_nursery *n);
    void (*supervisor_free)(struct jrt_nursery *n);

    /* For rt. Whether an explorer watches this process; the calls that it makes its own. */
    bool         (*explored)(void);
    janus_status (*explored_run)(const janus_scheduler_options *options, janus_entry *entry,
                                 void *argument, struct jrt_run_end *out);
    janus_status (*explored_open)(const janus_scheduler_options *options, janus_scheduler **out);
    void         (*explored_started)(void);
    void         (*explored_closed)(void);
};

extern const struct jrt_upcalls jrt_upcalls;

#endif

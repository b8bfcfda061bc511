/* SPDX-License-Identifier: MIT */
/* Seats: a thread of the system for one task, backend THREADED. The essay is in seat.c. */
#ifndef JRT_WORK_SEAT_H
#define JRT_WORK_SEAT_H

#include "task/worker.h"

/* Part of a task's `lane`: it runs on a seat, which its purse names, [seat-lane]. */
enum { JRT_LANE_SEATED = 0x80 };

/* The values of `worker.signal` on a seat, [seat-hand]. */
enum {
    JRT_SEAT_EMPTY = 0,  /* no task is ready */
    JRT_SEAT_HANDED = 1, /* `handed` is ready */
    JRT_SEAT_GONE = 2,   /* no thread looks here any more, for good */
};

struct jrt_seat {
    struct jrt_worker    worker;  /* first: the thread executes it, in no list of workers */
    struct jrt_list_node link;    /* on scheduler->seats; seats_lock */
    struct jrt_task     *task;    /* the task it was made for; constant once handed */
    struct jrt_task     *handed;  /* [seat-hand] */
    uint64_t             wake_ns; /* when its thread looks at the timers; the thread's own */
    _Atomic(bool)        over;    /* the task has ended */
    _Atomic(bool)        vacant;  /* the thread has freed everything and returns */
};

static inline bool jrt_task_is_seated(const struct jrt_task *task)
{
    return (task->lane & JRT_LANE_SEATED) != 0;
}

/* Opens a seat whose thread waits for a task. The caller hands one over next. NULL: memory, or a
 * thread, was refused. */
struct jrt_seat *jrt_seat_open(janus_scheduler *scheduler);

/* Assigns a task, which has a purse, to the seat, before anybody knows the task. */
void jrt_seat_assign(struct jrt_seat *seat, struct jrt_task *task);

/* Hands a ready task to the thread of its seat. */
void jrt_seat_hand(struct jrt_task *task);

/* Ends the seat of a task that has ended. The last touch by all but the seat's own thread. */
void jrt_seat_over(struct jrt_seat *seat);

/* The seat's thread waits for a task. NULL: the thread must end. */
struct jrt_task *jrt_seat_idle(struct jrt_worker *worker);

/* The seat's thread ends without a successor: its tasks go to all workers. */
void jrt_seat_lose(struct jrt_seat *seat);

/* The last call of the seat's thread. */
void jrt_seat_vacate(struct jrt_seat *seat);

/* Waits until all seats' threads have ended. All tasks have ended. */
void jrt_seats_end(janus_scheduler *scheduler);

/* For tests: the next `count` seats cannot have a thread. */
void jrt_seats_refuse(uint32_t count);

#endif

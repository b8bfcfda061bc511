/* SPDX-License-Identifier: MIT */
/* Seats: a thread of the system for one task, backend THREADED. The essay is in seat.c. */
#ifndef JRT_WORK_SEAT_H
#define JRT_WORK_SEAT_H

#include "task/worker.h"

/* In a task's `lane`: it runs on a seat, which its purse names; [seat-lane]. */
enum { JRT_LANE_SEATED = 0x80 };

/* What `worker.signal` says on a seat, [seat-hand]. */
enum {
    JRT_SEAT_EMPTY = 0,  /* nobody is ready */
    JRT_SEAT_HANDED = 1, /* `handed` is */
    JRT_SEAT_GONE = 2,   /* no thread looks here any more; for good */
};

struct jrt_seat {
    struct jrt_worker    worker;  /* first: what the thread executes; in no list of workers */
    struct jrt_list_node link;    /* on scheduler->seats; seats_lock */
    struct jrt_task     *task;    /* for which it was made; constant once it is handed */
    struct jrt_task     *handed;  /* [seat-hand] */
    uint64_t             wake_ns; /* when its thread looks at the timers; its own */
    _Atomic(bool)        over;    /* the task has ended */
    _Atomic(bool)        vacant;  /* the thread has given everything back and returns */
};

static inline bool jrt_task_is_seated(const struct jrt_task *task)
{
    return (task->lane & JRT_LANE_SEATED) != 0;
}

/* A seat with a thread that waits for a task, which is handed to it next. NULL: memory, or a
 * thread, was refused. */
struct jrt_seat *jrt_seat_open(janus_scheduler *scheduler);

/* Says that a task belongs there, before anybody knows it; it has a purse. */
void jrt_seat_assign(struct jrt_seat *seat, struct jrt_task *task);

/* A seated task is ready: its thread goes on with it. */
void jrt_seat_hand(struct jrt_task *task);

/* The task it was made for has ended. The last touch, for all but the seat's own thread. */
void jrt_seat_over(struct jrt_seat *seat);

/* The seat's thread waits for what is handed to it. NULL: it is to end. */
struct jrt_task *jrt_seat_idle(struct jrt_worker *worker);

/* The seat's thread ends, and no other will come: its tasks are for all workers. */
void jrt_seat_lose(struct jrt_seat *seat);

/* The last thing that the seat's thread does. */
void jrt_seat_vacate(struct jrt_seat *seat);

/* All tasks have ended: waits until all threads have. */
void jrt_seats_end(janus_scheduler *scheduler);

/* For tests. The next `count` seats cannot have a thread. */
void jrt_seats_refuse(uint32_t count);

#endif

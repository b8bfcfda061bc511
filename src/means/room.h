/* SPDX-License-Identifier: MIT */
/* Room in a nursery with max_children, and its queue. The essay is in nursery/room.c. */
#ifndef JRT_MEANS_ROOM_H
#define JRT_MEANS_ROOM_H

#include "task/nursery.h"

/* A task or thread that waits for room, in the frame of its spawn. */
struct jrt_spawner {
    struct jrt_waiting   waiting; /* first; a task */
    struct jrt_nursery  *nursery;
    struct jrt_list_node link;
    struct jrt_task     *task;    /* NULL: a plain thread */
    janus_status         outcome; /* once off the queue: OK or CLOSED */
    _Atomic(uint32_t)    woken;   /* futex: 1 once off the queue, under the lock */
};

/* Room for one more child, of a nursery that refuses: OK or FULL. */
janus_status jrt_room_take_or_refuse(struct jrt_nursery *n);

/* Room in a nursery that lets spawns wait: OK, CLOSED, or FULL. With FULL the entry, if there
 * is one, is queued. */
janus_status jrt_room_take_or_queue(struct jrt_nursery *n, struct jrt_spawner *spawner);

/* A child has ended, or was not started: its room is the first waiter's, or nobody's. */
void jrt_room_give(struct jrt_nursery *n);
void jrt_room_give_locked(struct jrt_nursery *n); /* under the nursery's lock */

/* Sends all waiting spawns away. Under the nursery's lock. */
void jrt_room_close_locked(struct jrt_nursery *n);

#endif

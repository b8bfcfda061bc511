/* SPDX-License-Identifier: MIT */
/*
 * Deadlines in order, by the million. Nothing here locks or waits: one owner has a jrt_timers and
 * calls under its own lock; the clock is the caller's too. The essay is in timer.c.
 */
#ifndef JRT_SCHED_TIMER_H
#define JRT_SCHED_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded in what waits; zeroed it is not armed. It stays put while it is armed. The fields are
 * the heap's; others may read them under the owner's lock. */
struct jrt_timer {
    uint64_t deadline_ns;
    uint64_t sequence; /* when it was armed; the smaller of two equal deadlines is due first */
    uint32_t index;    /* where in the heap; 0: not armed */
};

struct jrt_timer_entry {
    uint64_t          deadline_ns; /* the timer's, so that comparing does not leave the array */
    struct jrt_timer *timer;       /* borrowed */
};

struct jrt_timers {
    struct jrt_timer_entry *entries;  /* owned; NULL until the first is needed */
    uint32_t                count;    /* armed timers */
    uint32_t                capacity; /* timers that fit without asking for memory */
    uint32_t                reserved; /* capacity never falls below it again */
    uint64_t                sequence; /* of the next timer to be armed */
};

enum { JRT_TIMERS_ROOT = 3, JRT_TIMERS_MAX = 1 << 30 };

/* Empty, no memory taken. */
void jrt_timers_init(struct jrt_timers *timers);

/* Gives the memory back. No timer is armed. */
void jrt_timers_fini(struct jrt_timers *timers);

/* From now on, arming cannot fail while fewer than `count` timers are armed. False when memory
 * is refused or `count` is above JRT_TIMERS_MAX; then nothing changed. Larger wins. */
bool jrt_timers_reserve(struct jrt_timers *timers, uint32_t count);

/* Arms a timer, or moves an armed one, which cannot fail. It then counts as the newest of its
 * deadline. False when memory is refused; then nothing changed. O(log n). */
bool jrt_timer_arm(struct jrt_timers *timers, struct jrt_timer *timer, uint64_t deadline_ns);

/* Disarms a timer; one that is not armed stays so. O(log n). */
void jrt_timer_disarm(struct jrt_timers *timers, struct jrt_timer *timer);

/* Takes the earliest timer out if its deadline is not after `now_ns`; else NULL. It is no longer
 * armed. Equal deadlines come in the order of arming. O(log n). */
struct jrt_timer *jrt_timers_pop_due(struct jrt_timers *timers, uint64_t now_ns);

/* The earliest deadline; UINT64_MAX when nothing is armed. */
static inline uint64_t jrt_timers_next(const struct jrt_timers *timers)
{
    return timers->count > 0 ? timers->entries[JRT_TIMERS_ROOT].deadline_ns : UINT64_MAX;
}

static inline bool jrt_timer_armed(const struct jrt_timer *timer) { return timer->index != 0; }

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Millions of deadlines in order. Nothing here locks or waits. One owner has a jrt_timers, calls
 * under its own lock and passes the time. The essay is in timer.c.
 */
#ifndef JRT_SCHED_TIMER_H
#define JRT_SCHED_TIMER_H

#include "base/atomic.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded in what waits. A zeroed timer is not armed. It stays in place while it is armed. The
 * heap owns the fields; others may read them under the owner's lock. */
struct jrt_timer {
    uint64_t deadline_ns;
    uint64_t sequence; /* order of arming; of equal deadlines the lower is due first */
    uint32_t index;    /* place in the heap; 0: not armed */
    uint32_t set;      /* number of the set it was armed in, + 1; 0: in none. The user's */
};

/* A timer and what happens when it is due, under the lock of its set. The alarm ends a task's wait,
 * or calls `ring`. */
struct jrt_alarm {
    struct jrt_timer timer;                            /* first */
    int32_t          status;                           /* that ends the wait */
    void             (*ring)(struct jrt_alarm *alarm); /* NULL: `subject` is a task that waits */
    void            *subject;
};

struct jrt_timer_entry {
    uint64_t          deadline_ns; /* the timer's, so that a comparison stays in the array */
    struct jrt_timer *timer;       /* borrowed */
};

struct jrt_timers {
    struct jrt_timer_entry *entries;  /* owned; NULL until first needed */
    uint32_t                count;    /* armed timers */
    uint32_t                capacity; /* timers that fit without more memory */
    uint32_t                reserved; /* capacity never falls below it */
    uint64_t                sequence; /* of the next timer to be armed */
};

enum { JRT_TIMERS_ROOT = 3, JRT_TIMERS_MAX = 1 << 30 };

/* Timers that one worker arms. What a look without the lock reads is in the same line. */
struct jrt_timer_set {
    _Alignas(64) _Atomic(uint64_t) next; /* the earliest deadline, written under the lock */
    pthread_mutex_t   lock;
    struct jrt_timers timers;
};

/* Makes it empty. Takes no memory. */
void jrt_timers_init(struct jrt_timers *timers);

/* Frees the memory. No timer may be armed. */
void jrt_timers_fini(struct jrt_timers *timers);

/* Afterwards, arming cannot fail while fewer than `count` timers are armed. The largest reservation
 * counts. Returns false if there is no memory, or `count` is above JRT_TIMERS_MAX. Then nothing
 * changed. */
bool jrt_timers_reserve(struct jrt_timers *timers, uint32_t count);

/* Arms a timer, or moves an armed one, which cannot fail. It then counts as the newest of its
 * deadline. False: no memory, nothing changed. O(log n). */
bool jrt_timer_arm(struct jrt_timers *timers, struct jrt_timer *timer, uint64_t deadline_ns);

/* Disarms a timer, if it is armed. O(log n). */
void jrt_timer_disarm(struct jrt_timers *timers, struct jrt_timer *timer);

/* Takes out the earliest timer if its deadline is not after `now_ns`, otherwise returns NULL. The
 * timer is then not armed. Equal deadlines come in the order of arming. O(log n). */
struct jrt_timer *jrt_timers_pop_due(struct jrt_timers *timers, uint64_t now_ns);

/* The timer that jrt_timers_pop_due takes out next; NULL: nothing is armed. */
static inline struct jrt_timer *jrt_timers_first(const struct jrt_timers *timers)
{
    return timers->count > 0 ? timers->entries[JRT_TIMERS_ROOT].timer : NULL;
}

/* The earliest deadline; UINT64_MAX: nothing is armed. */
static inline uint64_t jrt_timers_next(const struct jrt_timers *timers)
{
    return timers->count > 0 ? timers->entries[JRT_TIMERS_ROOT].deadline_ns : UINT64_MAX;
}

static inline bool jrt_timer_armed(const struct jrt_timer *timer) { return timer->index != 0; }

#endif

/* SPDX-License-Identifier: MIT */
/* The simulated system; the essay is in world.c. */
#ifndef JRT_SIM_WORLD_H
#define JRT_SIM_WORLD_H

#include "base/fold.h"
#include "plat/world.h"

#include <stddef.h>

struct jrt_thread;

/* Who decides, where there is a choice. */
struct jrt_strategy {
    /* One of `count` > 1. `who` are the numbers of the threads that can go on, for CHOOSE_THREAD,
     * else NULL; `must`: the first of them, which runs, would rather not. */
    uint32_t (*decide)(struct jrt_strategy *strategy, enum jrt_choice kind, uint32_t count,
                       const uint32_t *who, bool must);
    void     (*passed)(struct jrt_strategy *strategy, uint32_t who); /* it waits for others, and is
                                                         asked again and again; NULL: so be it */
    uint32_t faults;       /* enum jrt_fault: what may fail */
    uint32_t faults_every; /* one in so many on average; 0: none */
};

/* How a simulated execution ended. */
enum jrt_world_end {
    JRT_WORLD_DONE,
    JRT_WORLD_STUCK,    /* nobody can go on, and nobody outside will help */
    JRT_WORLD_TOO_LONG, /* more steps than allowed */
    JRT_WORLD_TOO_LATE, /* more time than allowed */
    JRT_WORLD_DIED,     /* a contract or an invariant was broken: the process would have ended */
    JRT_WORLD_REFUSED,  /* no memory for it: nothing happened */
};

/*
 * Puts the calling thread into a world of its own, or counts it in once more. Random choices come
 * from `seed`; in a world that exists they stay as they are. NULL: memory refused.
 */
struct jrt_world *jrt_world_enter(uint64_t seed);

/* Once for each enter, by the same thread. The world ends with the last, or when its last other
 * thread was joined. */
void jrt_world_leave(struct jrt_world *world);

/*
 * A number for all that was noted there since it began: equal for equal executions, and different,
 * but by accident, for others. It starts from the seed, where there is one.
 */
static inline uint64_t jrt_world_hash(const struct jrt_world *world) { return world->hash; }

/* Notes what has happened. Neither may depend on an address, or on anything outside the world. */
static inline void jrt_world_note(struct jrt_world *world, uint64_t a, uint64_t b)
{
    world->hash = jrt_fold(jrt_fold(world->hash, a), b);
}

/* 1, 2, and so on: names for what has only an address. */
static inline uint32_t jrt_world_number(struct jrt_world *world) { return ++world->numbers; }

/* A thread of the world, seen from inside. */
struct jrt_world_view {
    uint32_t                 number;
    uint64_t                 steps;  /* of all, until now */
    const char              *name;   /* as long as it lives */
    const struct jrt_thread *record; /* as of when it ran last */
};

#define JRT_WORLD_CURRENT UINT32_MAX /* the number of who runs */

/* False: there is no such thread. */
bool jrt_world_look(const struct jrt_world *world, uint32_t number, struct jrt_world_view *out);

/* An execution that is given up where it does not end well. */
struct jrt_world_run {
    struct jrt_strategy *strategy;    /* decides */
    struct jrt_spare    *spare;       /* from and for others that follow; NULL: none do */
    uint64_t             steps_max;   /* so many steps, */
    uint64_t             time_max_ns; /* and so much simulated time */
    void                 (*main)(void *argument);
    void                *argument;
    /* Of jrt_world_begin: it is given up, on the stack of whoever runs. Does not return. */
    void                (*given_up)(struct jrt_world_run *run, enum jrt_world_end end);
    struct janus_trace *trace; /* of the first scheduler there, if it has none; or NULL. Where the
                                   execution was given up: jrt_trace_abandon */
    uint64_t            steps, time_ns; /* out: how many and how much there were, */
    uint64_t            hash;           /* and its jrt_world_hash, however it ended */
    const char         *what, *why;     /* out, of one that died: constant texts */
    const char         *file;
    int                 line;
};

/* Gives back what the last world of a sequence has left. */
void jrt_spare_drop(struct jrt_spare *spare);

/*
 * Calls run->main(run->argument) in a world in which nobody else takes part. On any end but DONE
 * all threads of the world are forgotten, with everything that they hold. The caller is in none.
 */
enum jrt_world_end jrt_world_run(struct jrt_world_run *run);

/*
 * The same world around what the calling thread does from here to jrt_world_finish, without `main`.
 * If the execution is given up, run->given_up is called. False: memory refused, nothing happened.
 */
bool jrt_world_begin(struct jrt_world_run *run);

/* Ends it, if everybody who entered it has left; else returns false, and it goes on. */
bool jrt_world_finish(struct jrt_world_run *run);

#endif

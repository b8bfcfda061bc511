/* SPDX-License-Identifier: MIT */
/* The simulated system. The essay is in world.c. */
#ifndef JRT_SIM_WORLD_H
#define JRT_SIM_WORLD_H

#include "base/hash.h"
#include "plat/world.h"

#include <stddef.h>

struct jrt_thread;

/* Decides every choice of a world. */
struct jrt_strategy {
    /* Returns one of `count` > 1. For CHOOSE_THREAD, `who` holds the numbers of the parts that can
     * run, otherwise it is NULL. `must`: the first of them, which runs, asks for another. */
    uint32_t (*decide)(struct jrt_strategy *strategy, enum jrt_choice kind, uint32_t count,
                       const uint32_t *who, bool must);
    void     (*passed)(struct jrt_strategy *strategy, uint32_t who); /* this part polls for others;
                                                                      * NULL: ignored */
    uint32_t faults;       /* enum jrt_fault: what may fail */
    uint32_t faults_every; /* inject at one in this many opportunities on average; 0: never */
};

/* How a simulated execution ended. */
enum jrt_world_end {
    JRT_WORLD_DONE,
    JRT_WORLD_STUCK,    /* no part can run, and no outside thread takes part */
    JRT_WORLD_TOO_LONG, /* more steps than allowed */
    JRT_WORLD_TOO_LATE, /* more time than allowed */
    JRT_WORLD_DIED,     /* a contract or an invariant broke: the process would have ended */
    JRT_WORLD_REFUSED,  /* no memory: nothing happened */
};

/*
 * Puts the calling thread into a world of its own, or counts one more entry if it is in one. Random
 * choices come from `seed`. An existing world keeps its choices. NULL: no memory.
 */
struct jrt_world *jrt_world_enter(uint64_t seed);

/* Injects faults into a world that was entered, at one in `every` opportunities. */
void jrt_world_break(struct jrt_world *world, uint32_t faults, uint32_t every);

/* Called once for each enter, by the same thread. The world ends with the last call, or when its
 * last other part was joined. */
void jrt_world_leave(struct jrt_world *world);

/*
 * A number for everything noted since the world began. Equal executions have equal numbers.
 * Different executions have different numbers, except by accident. It starts from the seed, if
 * there is one.
 */
static inline uint64_t jrt_world_hash(const struct jrt_world *world) { return world->hash; }

/* Notes an event. The numbers must not depend on an address, or on anything outside the world. */
static inline void jrt_world_note(struct jrt_world *world, uint64_t a, uint64_t b)
{
    world->hash = jrt_hash_add(jrt_hash_add(world->hash, a), b);
}

/* Returns 1, 2, and so on: names for objects that have only an address. */
static inline uint32_t jrt_world_number(struct jrt_world *world) { return ++world->numbers; }

/* A part of the world, seen from inside. */
struct jrt_world_view {
    uint32_t                 number;
    uint64_t                 steps;  /* of all parts so far */
    const char              *name;   /* valid while the part lives */
    const struct jrt_thread *record; /* from when it last ran */
};

#define JRT_WORLD_CURRENT UINT32_MAX /* the number of the running part */

/* False: there is no such part. */
bool jrt_world_look(const struct jrt_world *world, uint32_t number, struct jrt_world_view *out);

/* An execution that is given up if it does not end well. */
struct jrt_world_run {
    struct jrt_strategy *strategy;
    struct jrt_spare    *spare;       /* shared with earlier and later worlds; NULL: alone */
    uint64_t             max_steps;   /* limit of steps, */
    uint64_t             max_time_ns; /* and of simulated time */
    void                 (*main)(void *argument);
    void                *argument;
    /* For jrt_world_begin: called when the execution is given up, on the stack of the running part.
     * Does not return. */
    void                (*given_up)(struct jrt_world_run *run, enum jrt_world_end end);
    struct janus_trace *trace; /* for the first scheduler without a trace; or NULL. After the
                                * execution was given up: jrt_trace_abandon */
    uint64_t            steps, time_ns; /* out: how many steps and how much time, */
    uint64_t            hash;           /* and the jrt_world_hash, for every kind of end */
    const char         *what, *why;     /* out, if it died: constant texts */
    const char         *file;
    int                 line;
};

/* Frees what the last world of a sequence has kept. */
void jrt_spare_drop(struct jrt_spare *spare);

/*
 * Calls run->main(run->argument) in a world without outside threads. On any end but DONE it forgets
 * all parts, with everything that they hold. The caller must not be in a world.
 */
enum jrt_world_end jrt_world_run(struct jrt_world_run *run);

/*
 * Makes that world around what the calling thread does until jrt_world_finish, without `main`. If
 * the execution is given up, calls run->given_up. False: no memory, nothing happened.
 */
bool jrt_world_begin(struct jrt_world_run *run);

/* Ends the world if every enter has its leave. Otherwise returns false, and the world goes on. */
bool jrt_world_finish(struct jrt_world_run *run);

/* A scheduler of a world is driven by the thread that opened it, and used by no other: whether the
 * caller is another. NULL: no world. */
bool jrt_world_is_elsewhere(const struct jrt_world *world);

#endif

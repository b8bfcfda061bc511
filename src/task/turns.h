/* SPDX-License-Identifier: MIT */
/* What a worker knows of turns: the essays are in turn.c and aside.c. */
#ifndef JRT_TASK_TURNS_H
#define JRT_TASK_TURNS_H

#include <stdbool.h>
#include <stdint.h>

struct jrt_turns {
    uint64_t limit_ns;  /* how long a turn lasts, the scheduler's option turn_ns */
    uint64_t epoch;     /* of the turn, */
    uint64_t began_ns;  /* first looked at then; [turn-epoch] */
    uint64_t over;      /* the epoch of a turn that lasts too long; 0: none */
    uint64_t slice_ns;  /* when the last slice of the turn began */
    uint64_t ops;       /* of the turn */
    uint64_t looked_ns; /* when anybody last looked at the clock */
    uint32_t measured;  /* so many picks more, [turn-measure] */
    bool     each;      /* the last look said that each pick has to look */

    uint64_t ran_ns;   /* the thread, [turn-kernel], */
    uint64_t asked_ns; /* when the worker last asked */
    uint64_t taken_ns; /* when it did not run in a turn, so far */

    uint64_t aside_ns;      /* until then every pick looks, [aside-owe] */
    uint64_t fresh_ns;      /* until then new tasks come last, [aside-fresh] */
    uint64_t fresh_used_ns; /* by new tasks since then */
};

#endif

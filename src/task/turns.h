/* SPDX-License-Identifier: MIT */
/* What a worker knows of turns. The essays are in turn.c and aside.c. */
#ifndef JRT_TASK_TURNS_H
#define JRT_TASK_TURNS_H

#include <stdbool.h>
#include <stdint.h>

struct jrt_turns {
    uint64_t limit_ns;  /* length of a turn, the option turn_ns */
    uint64_t epoch;     /* of the current turn, [turn-epoch] */
    uint64_t began_ns;  /* time of its first look */
    uint64_t over;      /* epoch of a turn that is too long; 0: none */
    uint64_t slice_ns;  /* begin of the turn's last slice */
    uint64_t ops;       /* of the turn */
    uint64_t looked_ns; /* time of the last look at the clock */
    uint32_t measured;  /* picks left to measure, [turn-measure] */
    bool     each;      /* the last look demands that each pick looks */

    uint64_t ran_ns;   /* time that the thread ran, [turn-kernel] */
    uint64_t asked_ns; /* when the worker last asked the kernel */
    bool     unasked;  /* a long turn has passed since then */
    uint64_t taken_ns; /* time in turns in which it did not run, so far */

    uint64_t late_ns;       /* time in turns that were too long, so far */
    uint64_t aside_ns;      /* until then every pick looks; on the clock of [aside-clock] */
    uint64_t fresh_ns;      /* until then new tasks come last, [aside-fresh] */
    uint64_t fresh_used_ns; /* used by new tasks since then */
    bool     fresh_owes;    /* one of them had a turn that was too long */
};

#endif

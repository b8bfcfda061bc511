/* SPDX-License-Identifier: MIT */
/* Turns: how long a task keeps its worker. The essay is in turn.c. */
#ifndef JRT_TASK_TURN_H
#define JRT_TASK_TURN_H

#include "task/worker.h"

enum {
    JRT_SAMPLE_NS = 100000, /* picks that took less together are all short, [turn-measure] */
    JRT_TOLLS = 256,        /* of them, and somebody looks at the clock; one is about 16 ns */
};

/* What a call takes beyond the op that it costs, in tolls. */
enum {
    JRT_TOLL_REFUSED = 4, /* a spawn that is refused */
    JRT_TOLL_SHARE = 8,   /* a share, a purse */
    JRT_TOLL_TERMS = 16,  /* a nursery on terms of its own */
    JRT_TOLL_ENDING = 8,  /* a child that ended in place and left something behind */
    JRT_TOLL_PAGE = 16,   /* new memory, 4096 bytes */
    JRT_TOLL_TOLD = 4,    /* a call that returns CANCELLED once more */
    JRT_TOLL_FENCE = 64,  /* a fence that interrupts all workers */
    JRT_TOLL_CANCEL = 32, /* a nursery that is cancelled */
};

/* What a turn lasts when it counts as too long: its task owes the rest to others. */
static inline uint64_t jrt_turn_too_long(const struct jrt_worker *worker)
{
    return 2 * worker->turns.limit_ns;
}

/* The number of the turn that this worker is in, [turn-epoch]. */
static inline uint64_t jrt_turn_epoch(const struct jrt_worker *worker)
{
    /* relaxed, both: its own. */
    uint64_t switches = jrt_load_relaxed(&worker->stats.switches);
    return switches + jrt_load_relaxed(&worker->stats.tasks_by_loop); /* relaxed: as above. */
}

/* Whether somebody has looked at the clock and found the turn over; for calls that cost no op. */
static inline bool jrt_turn_is_over(const struct jrt_worker *worker)
{
    return worker->turns.over == jrt_turn_epoch(worker);
}

/*
 * For the pick that looks at the clock, [turn-measure]. The first is told how long the picks since
 * the last look took together. The second says whether each pick has to look. The third measures
 * the turn of the task that leaves the CPU, or has just ended; the fourth notes when the turn of
 * `next` begins.
 */
void jrt_turn_sample(struct jrt_worker *worker, uint64_t lasted_ns);
void jrt_turn_leave(struct jrt_worker *worker, uint64_t now);
void jrt_turn_begin_next(struct jrt_worker *worker, const struct jrt_task *next, uint64_t now);

/* The current task has given way and goes on. */
void jrt_turn_begin(struct jrt_worker *worker);

/* How long this turn has lasted since the first look, [turn-epoch]; 0: this is the first. */
uint64_t jrt_turn_lasted(struct jrt_worker *worker, uint64_t now);

static inline bool jrt_turn_measures(const struct jrt_worker *worker, uint64_t now)
{
    const struct jrt_turns *turns = &worker->turns;
    return turns->measured > 0 || now - turns->taken_ns < turns->aside_ns;
}

/* Looks at the clock: if the turn is over, the fuel word is emptied, and the next call that asks
 * by jrt_call_check ends the turn. */
void jrt_turn_look(struct jrt_worker *worker);

/* The current task has done something that takes long beside what it costs, [turn-toll]. */
static inline void jrt_turn_toll(struct jrt_worker *worker, uint32_t tolls)
{
    if (worker == NULL) return;
    worker->tolls -= (int32_t)tolls;
    if (jrt_unlikely(worker->tolls < 0)) jrt_turn_look(worker);
}

/* One step of a walk as long as the tree is deep. The next call that looks ends the turn. */
static inline void jrt_turn_step(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker != NULL) worker->tolls--;
}

/* The slice, or the budget, of the current task is used up: due timers ring, others run. */
void jrt_turn_end(struct jrt_task *task);

#endif

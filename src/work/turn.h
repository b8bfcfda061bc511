/* SPDX-License-Identifier: MIT */
/* Turns: how long a task keeps its worker. The essay is in turn.c. */
#ifndef JRT_WORK_TURN_H
#define JRT_WORK_TURN_H

#include "work/work.h"

/* Fuel above this is that of a callback, which costs nothing. */
#define JRT_FREE_OF_COST (INT64_MAX / 4)

enum {
    JRT_SAMPLE_NS = 100000, /* picks that took less together are all short, [turn-measure] */
    JRT_TOLLS = 256,        /* until a look at the clock; one is about 16 ns */
};

/* Tolls of calls that take longer than their op. */
enum {
    JRT_TOLL_REFUSED = 4,   /* a refused spawn, a refused call of an actor */
    JRT_TOLL_SHARE = 8,     /* a share, a purse */
    JRT_TOLL_TERMS = 16,    /* a nursery on terms of its own */
    JRT_TOLL_ENDING = 8,    /* a child that ended in place and left something behind */
    JRT_TOLL_PAGE = 16,     /* new memory, 4096 bytes */
    JRT_TOLL_TOLD = 4,      /* a call that returns CANCELLED once more */
    JRT_TOLL_SWEEP = 128,   /* the timers of an actor are looked through for answered asks */
    JRT_TOLL_CIRCLE = 48,   /* a circle of actors, with all names */
    JRT_TOLL_SENTENCE = 64, /* a failure, or an explanation, in words */
    JRT_TOLL_FENCE = 64,    /* a fence that interrupts all workers */
    JRT_TOLL_CANCEL = 32,   /* a cancelled nursery */
    JRT_TOLL_WORKER = 4,    /* an inspected worker: its counters and queues are on other lines */
};

/* The length from which a turn is too long: its task owes the time to others. */
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

/* Whether a look at the clock found the turn over. For calls that cost no op. */
static inline bool jrt_turn_is_over(const struct jrt_worker *worker)
{
    return worker->turns.over == jrt_turn_epoch(worker);
}

/*
 * For the pick that looks at the clock, [turn-measure]. The first gets the time that all picks
 * since the last look took together. The second measures the turn of the task that leaves the CPU,
 * or has just ended. The third notes when the turn of `next` begins.
 */
void jrt_turn_sample(struct jrt_worker *worker, uint64_t lasted_ns);
void jrt_turn_leave(struct jrt_worker *worker, uint64_t now);

/* The current task rests, and the next pick measures its turn, [turn-measure]: the task owes it. */
void jrt_turn_rests(struct jrt_worker *worker, struct jrt_task *task);

/* The current task is about to end. It first stands aside for the time of its callbacks
 * (callback.c). Others run meanwhile: ask for the worker again. */
void jrt_turn_ends(struct jrt_task *task);

void jrt_turn_begin_next(struct jrt_worker *worker, const struct jrt_task *next, uint64_t now);

/* Begins a new turn of the current task, which has yielded. */
void jrt_turn_begin(struct jrt_worker *worker);

/* Between two turns: asks the kernel how long the thread ran, [turn-kernel]. */
void jrt_turn_ask(struct jrt_worker *worker, uint64_t now);

/* The length of this turn since its first look, [turn-epoch]; 0: this is the first look. */
uint64_t jrt_turn_lasted(struct jrt_worker *worker, uint64_t now);

/* The worker's own time without turns that were too long, [aside-clock]. */
static inline uint64_t jrt_turns_fair(const struct jrt_turns *turns, uint64_t now)
{
    uint64_t left_out = turns->taken_ns + turns->late_ns;
    return now > left_out ? now - left_out : 0;
}

static inline bool jrt_turn_measures(const struct jrt_worker *worker, uint64_t now)
{
    const struct jrt_turns *turns = &worker->turns;
    return turns->measured > 0 || jrt_turns_fair(turns, now) < turns->aside_ns ||
           (turns->fresh_owes && now - turns->taken_ns < turns->fresh_ns);
}

/* Looks at the clock. If the turn is over, empties the fuel word. The next call that comes to
 * jrt_call_check ends the turn. */
void jrt_turn_look(struct jrt_worker *worker);

/* Takes tolls for a call of the current task that takes longer than its op, [turn-toll]. */
static inline void jrt_turn_toll(struct jrt_worker *worker, uint32_t tolls)
{
    if (worker == NULL) return;
    worker->tolls -= (int32_t)tolls;
    if (jrt_unlikely(worker->tolls < 0)) jrt_turn_look(worker);
}

/* Takes a toll for one step of a walk that is as long as the tree is deep. The next look ends the
 * turn. */
static inline void jrt_turn_step(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker != NULL) worker->tolls--;
}

/* Ends the turn: the slice, or the budget, is used up. Due timers ring, and others run. */
void jrt_turn_end(struct jrt_task *task);

/* The tolls of the current task are used up, [turn-call]. [worker-again] after it. */
void jrt_turn_call(struct jrt_worker *worker);

/* How a call of a task begins, [turn-call]. */
static inline void jrt_call_check(struct jrt_worker *worker)
{
    jrt_worker_stack_check(worker);
    if (jrt_unlikely((worker->tolls -= 4) < 0)) jrt_turn_call(worker);
}

/* Standing aside: a task that kept its worker too long lets the others run as long. The essay is in
 * aside.c. */

/* The current task is about to leave the CPU after a turn of `turn` ns, [aside-owe]. */
void jrt_aside_owe(struct jrt_worker *worker, struct jrt_task *task, uint64_t now, uint64_t turn);

/* A task has ended in a turn of `turn` ns, [aside-fresh]. */
void jrt_aside_ended(struct jrt_worker *worker, uint64_t now, uint64_t turn);

/* The current task gives way to a crowd: it waits until new tasks may run, [aside-fresh]. */
void jrt_aside_crowd(struct jrt_worker *worker, struct jrt_task *task);

/* Whether a pick takes new tasks last. `yields`: the current task has called janus_yield. */
bool jrt_aside_fresh_last(struct jrt_worker *worker, bool yields, uint64_t now);

/* Whether a picked task must let the others run once more, [aside-owe]. */
bool jrt_aside_owes(struct jrt_worker *worker, const struct jrt_task *task, uint64_t now);

/* How many rounds a task owes, and to owe fewer; [aside-least]. */
uint32_t jrt_aside_rounds(const struct jrt_task *task);
void     jrt_aside_forgive(const struct jrt_task *task, uint32_t rounds);

#endif

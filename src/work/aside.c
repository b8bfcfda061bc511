/* SPDX-License-Identifier: MIT */
/*
 * Standing aside.
 *
 * A task that neither checks nor yields for long keeps its worker for long, and no rule makes its
 * turn shorter. So it pays afterwards: the others get as many turns as it took.
 *
 * [aside-owe]  A task that leaves the CPU after a turn that was too long owes one round for each
 *   `turn_ns` of it. A pick that finds the task in its queue puts it back behind the others, and
 *   one round is paid. So others that compute get as much time as the task took, and others that
 *   only yield let it go soon. Every pick of the worker looks for such tasks meanwhile
 *   ([turn-measure]). No time is withheld: a pick takes a task that owes rounds if there is no
 *   other, or if any worker has nothing to do.
 *
 * [aside-clock]  Time that the task waited or slept counts, too: once that time has passed for each
 *   ready task, it owes nothing. Turns that were too long do not count as such time. Otherwise
 *   tasks that take turns in being late would pay for each other. The kernel may take the thread
 *   off its core between two turns, so the worker asks it before such a debt ends ([turn-kernel]).
 *   The clock is the worker's own. A task that went to another worker pays all its rounds.
 *
 * [aside-least]  If all tasks that wait owe rounds, the task with the fewest goes on. All then owe
 *   that many less, because no other task was better. Otherwise a task that owes much would wait
 *   for a long turn of another in each of its rounds.
 *
 * [aside-fresh]  A task that ended owes as well, but cannot pay. New tasks come first. So in a
 *   chain of tasks, where each starts the next, the others would get one short turn now and then.
 *   Therefore new tasks owe together: when they have used a turn, tasks that ran before come first
 *   for as long. A task that calls janus_yield ends that time: it may have started the new tasks.
 *   It cannot end it after a turn that was too long: a task could start one long child after the
 *   other, and yield to each. Meanwhile a task that has started a crowd stands aside, too.
 *   Otherwise it would bury a neighbour's child under its own ([crowd-way]).
 */

#include "task/purse.h"
#include "task/task.h"
#include "task/turns.h"
#include "task/worker.h"
#include "work/seat.h"
#include "work/turn.h"
#include "work/work.h"

enum {
    OTHERS = 1024,             /* the largest number of ready tasks counted */
    ROUNDS_MAX = (1 << 24) - 1 /* five minutes */
};

static const uint64_t longest_ns = UINT64_C(300000000000); /* a longer turn counts as this long */

/* The number of ready tasks on this worker that ran before. */
static uint64_t others(const struct jrt_worker *worker)
{
    uint64_t count = 0;
    for (unsigned lane = 0; lane < JRT_LANES; lane++) count += jrt_count_again(worker, lane);
    /* relaxed: a hint. */
    if (jrt_load_relaxed(&worker->scheduler->injected) != 0) count++;
    return count < OTHERS ? count : OTHERS;
}

/* The worker's own time, without what the kernel took, [turn-kernel]. */
static uint64_t own_time(const struct jrt_worker *worker, uint64_t now)
{
    jrt_debug_invariant("turn-kernel", worker->turns.taken_ns <= now);
    return now - worker->turns.taken_ns;
}

/* The task owes `turn` ns to the others. */
static void owe(struct jrt_worker *worker, struct jrt_task *task, uint64_t now, uint64_t turn)
{
    uint64_t count = others(worker);
    if (count == 0 || worker->seat != NULL || jrt_task_is_seated(task)) return;
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL) return; /* no memory: the task owes nothing */
    jrt_debug_invariant("aside-clock",
                        jrt_turns_fair(&worker->turns, now) <= own_time(worker, now));
    uint64_t many = turn / worker->turns.limit_ns;
    uint32_t rounds = many < ROUNDS_MAX ? (uint32_t)many : ROUNDS_MAX;
    if (rounds < purse->owed_rounds) return;
    purse->owed_rounds = rounds & ROUNDS_MAX;
    purse->owed_until_ns = jrt_turns_fair(&worker->turns, now) + turn * (count + 1);
    purse->owed_at = (uint8_t)worker->index;
    if (worker->turns.aside_ns < purse->owed_until_ns)
        worker->turns.aside_ns = purse->owed_until_ns;
    worker->others_every = worker->until_others = 1;
}

void jrt_aside_owe(struct jrt_worker *worker, struct jrt_task *task, uint64_t now, uint64_t turn)
{
    if (turn > longest_ns) turn = longest_ns;
    worker->turns.late_ns += turn;
    owe(worker, task, now, turn);
}

void jrt_aside_crowd(struct jrt_worker *worker, struct jrt_task *task)
{
    const struct jrt_turns *turns = &worker->turns;
    if (jrt_likely(!turns->fresh_owes)) return;
    uint64_t now = jrt_clock_now_ns(), own = own_time(worker, now);
    if (own < turns->fresh_ns) owe(worker, task, now, turns->fresh_ns - own);
}

void jrt_aside_ended(struct jrt_worker *worker, uint64_t now, uint64_t turn)
{
    struct jrt_turns *turns = &worker->turns;
    jrt_debug_invariant("aside-fresh", turns->fresh_used_ns < turns->limit_ns);
    turns->fresh_used_ns += turn < longest_ns ? turn : longest_ns;
    if (turns->fresh_used_ns < worker->turns.limit_ns) return;
    turns->fresh_ns = own_time(worker, now) + turns->fresh_used_ns;
    turns->fresh_used_ns = 0;
    turns->fresh_owes = turn >= jrt_turn_too_long(worker);
    if (turn < jrt_turn_too_long(worker)) return;
    worker->others_every = worker->until_others = 1;
}

bool jrt_aside_fresh_last(struct jrt_worker *worker, bool yields, uint64_t now)
{
    if (yields && !worker->turns.fresh_owes) worker->turns.fresh_ns = 0;
    return own_time(worker, now) < worker->turns.fresh_ns;
}

bool jrt_aside_owes(struct jrt_worker *worker, const struct jrt_task *task, uint64_t now)
{
    struct jrt_purse *purse = task->dirty ? task->purse : NULL;
    if (purse == NULL || purse->owed_rounds == 0 || worker->seat != NULL) return false;
    /* relaxed: a hint. The next pick looks again. */
    bool idle = !worker->alone && worker->scheduler->stealing &&
                jrt_load_relaxed(&worker->scheduler->idlers) != 0;
    if (idle) return false;
    jrt_debug_invariant("aside-owe", !jrt_task_is_seated(task) && purse->owed_until_ns != 0);
    purse->owed_rounds--;
    bool here = purse->owed_at == (uint8_t)worker->index; /* [aside-clock] */
    if (here && jrt_turns_fair(&worker->turns, now) >= purse->owed_until_ns &&
        purse->owed_rounds > 0) {
        jrt_turn_ask(worker, now); /* the kernel may have taken that time from all of them */
        if (jrt_turns_fair(&worker->turns, now) >= purse->owed_until_ns) purse->owed_rounds = 0;
    }
    return purse->owed_rounds > 0;
}

uint32_t jrt_aside_rounds(const struct jrt_task *task)
{
    return task->dirty && task->purse != NULL ? task->purse->owed_rounds : 0;
}

void jrt_aside_forgive(const struct jrt_task *task, uint32_t rounds)
{
    if (!task->dirty || task->purse == NULL) return;
    uint32_t owed = task->purse->owed_rounds;
    task->purse->owed_rounds = (owed > rounds ? owed - rounds : 0) & ROUNDS_MAX;
}

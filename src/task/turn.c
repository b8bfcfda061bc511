/* SPDX-License-Identifier: MIT */
/*
 * Turns.
 *
 * Budgets count operations; neighbours feel time. Ten thousand checks are three microseconds, ten
 * thousand refused spawns or new pages milliseconds: if a turn were a number of operations, who
 * does the dear ones would get a hundred times the CPU of who does the cheap ones. So a turn is at
 * most JANUS_SLICE operations and, wherever somebody looks, about JRT_TURN_NS; budgets stay exact,
 * since only the place of ops changes, between the fuel word and the purse ([purse-fuel]).
 *
 * [turn-epoch]  when a turn began is not noted at every switch: that would be the dearest part of a
 *   yield. A worker's count of switches and of tasks its loop has started changes whenever another
 *   turn begins; who looks at the clock and finds the count he knows knows how long this turn has
 *   lasted since the first look, and else is the first to look. Children that run on top of their
 *   owner are part of its turn.
 *
 * [turn-toll]  calls that take long beside their one op say so, in tolls. After some of them (a few
 *   microseconds) one looks at the clock; if the turn is over the fuel word is emptied into the
 *   purse, so that the next operation finds it empty and ends the turn. The call itself does not
 *   wait; spawns that a pool pays for, which cost their task no op, ask whether it is over. Tolls
 *   are no budget: nobody pays them. A task that yields before its slice is used up, so that nobody
 *   measures it, is bound by this all the same.
 *
 * [turn-pace]  what a task does between two checks may take long by itself. At the end of a slice
 *   that lasted much longer than a turn, the next ones of that task get less fuel, in proportion;
 *   after one that was much shorter, twice as much, up to JANUS_SLICE.
 *
 * [turn-rounds]  what a turn was too long, before anybody could look, is made good: for each
 *   JRT_TURN_NS the task lets the others go once, at most ROUNDS_MAX times. A thread that the
 *   kernel took off its core looks like a long turn and is none: where a turn seems long the kernel
 *   is asked, and if it did so since it was last asked the turn counts as twice too long only.
 *
 * [turn-fresh]  who starts a crowd of children is best left to it: they run on top of it when it
 *   awaits them, and only then. Where nobody waits but tasks that never ran, a turn may last ten
 *   times as long.
 *
 * [turn-balance]  who steals has nothing else to do. Where all workers are busy, one with two tasks
 *   would stay beside one with six, and a task's share would depend on where it was born. So at the
 *   end of every BALANCE_EVERYth slice a worker compares its number of tasks that take turns with
 *   that of another; who has clearly fewer takes half of the difference.
 *
 * Why 20 us: the shortest slices that do something, ten instructions and a check ten thousand
 * times, are as long; two looks at the clock and a switch, some 80 ns, are little beside it.
 */
#include "task/turn.h"

#include "task/nursery.h"
#include "task/purse.h"

enum { ROUNDS_MAX = 16, BALANCE_EVERY = 32 };

static const uint64_t too_long = 2 * (uint64_t)JRT_TURN_NS;
static const uint64_t fresh_ns = 10 * (uint64_t)JRT_TURN_NS; /* [turn-fresh] */
static const int64_t  free_of_cost = INT64_MAX / 4; /* above: a callback, which costs nothing */

static void begin(struct jrt_worker *worker, uint64_t now)
{
    worker->turn_epoch = jrt_turn_epoch(worker);
    worker->turn_began_ns = worker->slice_began_ns = now;
}

/* How long this turn has lasted since the first look, [turn-epoch]; 0: this is the first. */
static uint64_t lasted(struct jrt_worker *worker, uint64_t now)
{
    if (worker->turn_epoch == jrt_turn_epoch(worker)) return now - worker->turn_began_ns;
    begin(worker, now);
    return 0;
}

/* Leaves at most `most` in the fuel word of the current task. Not of one that cleans up: what it
 * got for that is in the word, and there is no more. */
static void trim(struct jrt_task *task, int64_t most)
{
    int64_t fuel = jrt_fuel_get();
    if (fuel <= most || fuel > free_of_cost || task->ending) return;
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL || purse->cleaning || purse->asking) return;
    purse->left.ops = janus_units_add(purse->left.ops, (uint64_t)(fuel - most));
    jrt_fuel_set(most);
}

void jrt_turn_look(struct jrt_worker *worker)
{
    worker->tolls = 0;
    if (worker->current == NULL) return;
    if (lasted(worker, jrt_clock_now_ns()) < JRT_TURN_NS) return;
    worker->turn_over = worker->turn_epoch;
    trim(worker->current, 0);
}

/* What a slice took that seems to have taken `ns`, without what the kernel took, [turn-rounds]. */
static uint64_t without_kernel(struct jrt_worker *worker, uint64_t ns)
{
    if (jrt_likely(ns < too_long)) return ns;
    uint64_t preemptions = jrt_thread_preemptions();
    bool     taken = preemptions != worker->preemptions;
    worker->preemptions = preemptions;
    return taken ? too_long : ns;
}

/* Less fuel from now on, or more: see [turn-pace]. */
static void set_pace(struct jrt_task *task, uint64_t ns)
{
    struct jrt_purse *purse = task->purse;
    if (ns >= too_long) purse = jrt_purse_need(task);
    if (purse == NULL || ns == 0) return;
    uint64_t slice = (uint64_t)jrt_purse_slice(purse);
    if (ns >= too_long) {
        slice = slice * JRT_TURN_NS / ns;
    } else if (ns < JRT_TURN_NS / 2) {
        slice *= 2;
    }
    if (slice == 0) slice = 1;
    purse->slice = (uint32_t)(slice < JANUS_SLICE ? slice : JANUS_SLICE);
    trim(task, (int64_t)purse->slice);
}

/* Lets others go first, once; false: there are none. */
static bool let_go(struct jrt_task *task)
{
    struct jrt_worker *before = jrt_worker_self();
    uint64_t           then = jrt_turn_epoch(before);
    jrt_task_give_way(before, task);
    const struct jrt_worker *worker = jrt_worker_self(); /* [worker-again] */
    return worker != before || jrt_turn_epoch(worker) != then;
}

void jrt_turn_end(struct jrt_task *task)
{
    struct jrt_worker *worker = jrt_worker_self();
    uint64_t           now = jrt_clock_now_ns(), turn = lasted(worker, now), slice = 0;
    if (turn != 0) slice = without_kernel(worker, now - worker->slice_began_ns);
    worker->slice_began_ns = now;
    worker->turn_over = 0; /* that number is before all turns */
    worker->tolls = 0;
    set_pace(task, slice);
    jrt_sched_timers_fire(worker->scheduler);
    if (jrt_unlikely(++worker->slices % BALANCE_EVERY == 0)) jrt_balance(worker);
    if (turn != 0 && turn < fresh_ns && !jrt_turn_wanted(worker)) return; /* [turn-fresh] */
    uint64_t rounds = slice / JRT_TURN_NS;
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    while (let_go(task) && rounds > 1) rounds--; /* [turn-rounds] */
    worker = jrt_worker_self();                  /* [worker-again] */
    worker->tolls = 0;
    begin(worker, jrt_clock_now_ns());
}

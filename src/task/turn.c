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
 * [turn-call]  calls that neither take an op nor wait begin with jrt_call_check, mostly through
 *   jrt_stack_check. It takes four tolls. When the tolls are used up, the call reads the clock; if
 *   the turn is over, the others run before the call does anything. The call keeps no lock there,
 *   and reads its worker afterwards. Library code that holds locks, or walks lists of its thread,
 *   does not call such a public function. Such calls do not tell a cancel; so a cancelled task pays
 *   an op for each of them, and ends when it has used up what it has to clean up with
 *   ([cancel-patience]).
 *
 * [turn-pace]  what a task does between two checks may take long by itself. Nobody knows a new
 *   task's pace, so its first slice is JRT_FIRST_SLICE operations, and the next one MEASURED or
 *   less if the first one's time is not known. At the end of a slice that lasted much longer than
 *   a turn, the next ones of that task get less fuel, in proportion. After a short one they get
 *   more, up to JANUS_SLICE. A slice that ends early ends no turn: a turn ends after JRT_TURN_NS or
 *   after JANUS_SLICE operations.
 *
 * [turn-credit]  a task that neither checks nor yields for long keeps its worker for long, and no
 *   rule makes its turn shorter. So the others get turns as long as its own. A task that gave way
 *   compares how long each turn of the others lasted, on average, with its own last turn. The
 *   difference is its credit: its next turn lasts so much longer. A credit shrinks by 1/16 at each
 *   turn, because of two tasks of which each believes that the other owes it time.
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

enum {
    ROUNDS_MAX = 16,
    BALANCE_EVERY = 32,
    MEASURED = 4,     /* operations, [turn-pace] */
    CREDIT_KEPT = 15, /* sixteenths, [turn-credit] */
};

static const uint64_t too_long = 2 * (uint64_t)JRT_TURN_NS;
static const uint64_t fresh_ns = 10 * (uint64_t)JRT_TURN_NS; /* [turn-fresh] */
static const uint64_t credit_max_ns = 20000000;              /* [turn-credit] */
static const int64_t  free_of_cost = INT64_MAX / 4; /* above: a callback, which costs nothing */

static void begin(struct jrt_worker *worker, uint64_t now)
{
    worker->turn_epoch = jrt_turn_epoch(worker);
    worker->turn_began_ns = worker->slice_began_ns = now;
    worker->turn_ops = 0;
}

/* How long this turn has lasted since the first look, [turn-epoch]; 0: this is the first. */
static uint64_t lasted(struct jrt_worker *worker, uint64_t now)
{
    if (worker->turn_epoch == jrt_turn_epoch(worker)) return now - worker->turn_began_ns;
    begin(worker, now);
    return 0;
}

/* Leaves at most `most` in the fuel word of the current task. */
static void trim(struct jrt_task *task, int64_t most)
{
    int64_t fuel = jrt_fuel_get();
    if (fuel <= most || fuel > free_of_cost) return;
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL || purse->asking) return;
    uint64_t *rest = purse->cleaning ? &purse->allowance : &purse->left.ops;
    *rest = janus_units_add(*rest, (uint64_t)(fuel - most));
    purse->handed -= fuel - most;
    jrt_fuel_set(most);
}

void jrt_turn_look(struct jrt_worker *worker)
{
    worker->tolls = JRT_TOLLS;
    if (worker->current == NULL) return;
    if (lasted(worker, jrt_clock_now_ns()) < JRT_TURN_NS) return;
    worker->tolls = 0;
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

/* Less fuel from now on, or more, after `used` operations that took `ns`: see [turn-pace]. */
static void set_pace(struct jrt_purse *purse, uint64_t used, uint64_t ns, bool known)
{
    uint64_t slice = (uint64_t)jrt_purse_slice(purse);
    if (!known) {
        if (purse->slice == 0) slice = used * JRT_TURN_NS / ns < MEASURED ? 1 : MEASURED;
    } else if (ns >= too_long) {
        slice = used * JRT_TURN_NS / ns;
    } else if (ns < JRT_TURN_NS / 2) {
        slice *= ns < JRT_TURN_NS / 16 ? 16 : 2;
    }
    if (slice == 0) slice = 1;
    purse->slice = (uint32_t)(slice < JANUS_SLICE ? slice : JANUS_SLICE);
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

/* A turn of `own` ns is over: lets the others go, `rounds` times at most. */
static void give_turns(struct jrt_task *task, uint64_t own, uint64_t rounds)
{
    struct jrt_worker *worker = jrt_worker_self();
    uint64_t           epoch = jrt_turn_epoch(worker), went = 1, left_ns = worker->looked_ns;
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    while (let_go(task) && went < rounds) went++;  /* [turn-rounds] */
    struct jrt_worker *now_on = jrt_worker_self(); /* [worker-again] */
    now_on->tolls = JRT_TOLLS;
    now_on->looked_ns = jrt_clock_now_ns();
    begin(now_on, now_on->looked_ns);
    struct jrt_purse *purse = task->purse;
    if (now_on != worker || purse == NULL) return;
    uint64_t turns = jrt_turn_epoch(worker) - epoch;
    turns = turns > 2 * went ? turns - went : went; /* of others: each of ours is counted, too */
    uint64_t theirs = (worker->looked_ns - left_ns) / turns + purse->credit_ns;
    uint64_t credit = theirs > own ? (theirs - own) * CREDIT_KEPT / 16 : 0;
    purse->credit_ns = credit < credit_max_ns ? credit : credit_max_ns;
}

static void end_turn(struct jrt_task *task)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_purse  *purse = task->purse;
    uint64_t           now = jrt_clock_now_ns(), looked = worker->looked_ns;
    bool               known = worker->turn_epoch == jrt_turn_epoch(worker);
    uint64_t           turn = lasted(worker, now), slice = now - looked, used = 0, credit = 0;
    /* When this turn began is not known, but it was after anybody last looked. */
    if (known) {
        slice = without_kernel(worker, now - worker->slice_began_ns);
    } else if (slice < JRT_TURN_NS) {
        known = true;
        turn = slice;
    }
    worker->slice_began_ns = worker->looked_ns = now;
    worker->turn_over = 0; /* that number is before all turns */
    worker->tolls = JRT_TOLLS;
    if (purse != NULL) {
        int64_t fuel = jrt_fuel_get();
        used = (uint64_t)(purse->handed > fuel ? purse->handed - fuel : 1);
        purse->handed = fuel;
        set_pace(purse, used, slice, known);
        credit = purse->credit_ns;
    }
    worker->turn_ops += used;
    jrt_sched_timers_fire(worker->scheduler);
    if (jrt_unlikely(++worker->slices % BALANCE_EVERY == 0)) jrt_balance(worker);
    if (known && turn < JRT_TURN_NS + credit && (credit > 0 || worker->turn_ops < JANUS_SLICE)) {
        return;
    }
    if (known && turn < fresh_ns && !jrt_turn_wanted(worker)) return; /* [turn-fresh] */
    bool over = known && credit == 0 && slice > too_long; /* beyond what it may, [turn-credit] */
    give_turns(task, known ? turn : JRT_TURN_NS, over ? slice / JRT_TURN_NS : 1);
}

void jrt_turn_end(struct jrt_task *task)
{
    int error = *jrt_worker_self()->error_at; /* [task-errno]; system calls may change it */
    end_turn(task);
    *jrt_worker_self()->error_at = error; /* [worker-again] */
}

static void end_call_turn(struct jrt_worker *worker)
{
    struct jrt_task *task = worker->current;
    worker->tolls = JRT_TOLLS;
    if (task == NULL) return;
    if (jrt_unlikely(jrt_task_cancelled_itself(task) != JANUS_CANCEL_NONE)) {
        int64_t fuel = jrt_fuel_get(), calls = JRT_TOLLS / 4; /* since it was last here, or fewer */
        if (fuel > 0 && fuel < free_of_cost) jrt_fuel_set(fuel > calls ? fuel - calls : 0);
        jrt_purse_bear(task);       /* [cancel-patience] */
        worker = jrt_worker_self(); /* [worker-again] */
    }
    uint64_t now = jrt_clock_now_ns(), turn = lasted(worker, now);
    uint64_t credit = task->purse != NULL ? task->purse->credit_ns : 0;
    if (turn < JRT_TURN_NS + credit) return;
    if (task->purse != NULL && task->purse->asking) return; /* a callback, with ops of its own */
    worker->turn_over = 0;
    worker->looked_ns = now;
    jrt_sched_timers_fire(worker->scheduler);
    if (turn < fresh_ns && !jrt_turn_wanted(worker)) return; /* [turn-fresh] */
    bool over = credit == 0 && turn > too_long;
    give_turns(task, turn, over ? without_kernel(worker, turn) / JRT_TURN_NS : 1);
}

void jrt_turn_call(struct jrt_worker *worker)
{
    int error = *worker->error_at; /* [task-errno] */
    end_call_turn(worker);
    *jrt_worker_self()->error_at = error; /* [worker-again] */
}

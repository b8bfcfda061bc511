/* SPDX-License-Identifier: MIT */
/*
 * Turns.
 *
 * Budgets count operations; neighbours feel time. Ten thousand checks take three microseconds, ten
 * thousand refused spawns or new pages take milliseconds. If turns counted operations only, a task
 * that makes expensive calls would get a hundred times more CPU than its neighbour.
 * So a turn ends after about `turn_ns` (an option of the scheduler, 20 us), wherever a call reads
 * the clock. It also ends with the slice in which the task has done `max_slice` operations.
 * Budgets stay exact: ops only move between the fuel word and the purse
 * ([purse-fuel]).
 *
 * [turn-epoch]  A switch does not read the clock: that would be its most expensive part. A worker
 *   counts its switches and the tasks its loop starts. The sum, the epoch, changes whenever
 *   another turn begins. A reader of the clock that finds the epoch it knows also knows when the
 *   turn began. Otherwise it is the first reader in this turn. A child that runs in place is part
 *   of its owner's turn.
 *
 * [turn-toll]  Calls that take long beside their price add tolls. After JRT_TOLLS of them, a few
 *   microseconds, the call reads the clock. If the turn is over, it moves the rest of the fuel
 *   word into the purse, so that the task's next operation ends the turn. The call itself does not
 *   wait. A spawn that a pool pays for takes no op from the task; it asks whether the turn is
 *   over. Tolls are no budget: nobody pays them.
 *
 * [turn-call]  Calls that neither take an op nor wait begin with jrt_call_check, mostly through
 *   jrt_stack_check. It takes four tolls. When the tolls are used up, the call reads the clock; if
 *   the turn is over, other tasks run before the call does anything. The call holds no lock there,
 *   and asks for its worker afterwards. Public calls of the rooms below begin with
 *   jrt_outside_call. Library code that holds locks, or walks lists of its thread, does not call
 *   such a public function. These calls do not return CANCELLED. So a cancelled task pays an op
 *   for each of them. When it has used up its cleanup allowance, the library unwinds it
 *   ([cancel-patience]).
 *
 * [turn-pace]  What a task does between two checks may take long by itself. Nobody knows the pace
 *   of a new task, so its first slice is JRT_FIRST_SLICE operations. If the time of that slice is
 *   not known, the next one is at most MEASURED. After a slice that lasted much longer than a
 *   turn, the task's next slices get less fuel, in proportion. After a short one they get more, up
 *   to JANUS_SLICE. The end of a slice is not the end of a turn.
 *   A round of a vector loop takes a quarter of a nanosecond, and the end of a slice a hundred. So
 *   a slice of JANUS_SLICE that is used up in less than half of a turn doubles, up to the
 *   scheduler's max_slice. The portions of an implicit budget grow with it, up to max_budget. In
 *   deterministic runs max_slice is JANUS_SLICE, because their clock counts operations.
 *   A turn ends with a slice, so the length of slices decides how fair turns are. A slice that
 *   lasts for half of a turn or longer changes by a little, so that one slice or two fill a turn. A
 *   turn ends with the slice whose end is nearest to `turn_ns`. Otherwise a task that checks every
 *   3 ns would have turns of 30 us beside turns of 11 us. Slices of a few long operations cannot be
 *   fitted, so their turns last for at least `turn_ns`.
 *
 * [turn-measure]  Yields and waits end a turn without reading the clock. So turns are sampled: the
 *   pick that looks at the timers ([queue-pace]) knows how long all turns since its last look took
 *   together. If that was long, the worker measures each turn for a while. It measures as many
 *   turns as stay cheap beside the lost time. It also measures each turn while a task owes time to
 *   the others ([aside-owe]). A task at rest is gone when that pick comes. So where the next pick
 *   measures, the turn of a task that rests is measured before.
 *
 * [turn-kernel]  A thread that the kernel took off its core looks like a long turn. Where a turn
 *   seems long, the worker asks the kernel how long its thread ran since its last question. The
 *   kernel takes a core for milliseconds, and the worker asks after every turn that long. So if the
 *   thread stood for half of the turn or longer, it stood in this turn. What a hypervisor takes is
 *   little at a time, in all turns. So of less, the worker subtracts the turn's part in proportion.
 *   To subtract all of it would forgive a task for what was taken from its neighbours. Where no
 *   task waits, a turn of less than asks_ns harms no task, and the worker does not ask. The next
 *   answer is then about several turns, and the worker subtracts a part in proportion. This does
 *   not detect a task that sleeps in a system call.
 *
 * A task that starts a crowd of children should go on: the children run on top of it when it awaits
 * them. So a turn may last FRESH_TURNS times as long while only tasks wait that never ran.
 *
 * [turn-balance]  Only idle workers steal. If all workers are busy, one with two tasks would stay
 *   beside one with six. A task's share would depend on where it was spawned. So at the end of
 *   every BALANCE_EVERYth slice a worker compares its number of ready tasks with another's. If it
 *   has clearly fewer, it takes half of the difference.
 *
 * Why 20 us: the shortest slice that does something, ten thousand times ten instructions and a
 * check, takes as long. Two reads of the clock and a switch, some 80 ns, are little beside it.
 */
#include "work/turn.h"

#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/tell.h"
#include "task/turns.h"
#include "task/upcalls.h"
#include "task/worker.h"
#include "work/work.h"

#include <errno.h>
#include <janusrt/counted.h>

enum {
    BALANCE_EVERY = 32,
    MEASURED = 4,          /* operations, [turn-pace] */
    SAMPLE_NS = 2000,      /* of a sample, for each measured turn, [turn-measure] */
    MEASURED_MAX = 100000, /* turns */
    FINE = 64,             /* operations of a slice that can be fitted, [turn-pace] */
    FRESH_TURNS = 10,      /* while only new tasks wait */
};

/* More fuel than this: a callback, which costs nothing. */

static void begin(struct jrt_worker *worker, uint64_t now)
{
    worker->turns.epoch = jrt_turn_epoch(worker);
    worker->turns.began_ns = worker->turns.slice_ns = now;
    worker->turns.ops = 0;
}

void jrt_turn_begin(struct jrt_worker *worker)
{
    worker->tolls = JRT_TOLLS;
    worker->turns.looked_ns = jrt_clock_now_ns();
    begin(worker, worker->turns.looked_ns);
}

uint64_t jrt_turn_lasted(struct jrt_worker *worker, uint64_t now)
{
    if (worker->turns.epoch == jrt_turn_epoch(worker)) {
        jrt_debug_invariant("turn-epoch", worker->turns.began_ns <= now);
        return now - worker->turns.began_ns;
    }
    begin(worker, now);
    return 0;
}

/* Leaves at most `most` in the fuel word of the current task. */
static void trim(struct jrt_task *task, int64_t most)
{
    int64_t fuel = jrt_fuel_get();
    if (fuel <= most || fuel > JRT_FREE_OF_COST) return;
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL || purse->asking) return;
    jrt_debug_invariant("purse-fuel", fuel > JANUS_SLICE || purse->handed >= fuel);
    uint64_t *rest = purse->cleaning ? &purse->allowance : &purse->left.ops;
    *rest = janus_units_add(*rest, (uint64_t)(fuel - most));
    purse->handed -= fuel - most;
    jrt_fuel_set(most);
}

void jrt_turn_look(struct jrt_worker *worker)
{
    worker->tolls = JRT_TOLLS;
    if (worker->current == NULL) return;
    if (jrt_turn_lasted(worker, jrt_clock_now_ns()) < worker->turns.limit_ns) return;
    worker->tolls = 0;
    worker->turns.over = worker->turns.epoch;
    trim(worker->current, 0);
    jrt_debug_invariant("turn-toll", jrt_turn_is_over(worker)); /* calls without an op ask that */
}

static const uint64_t asks_ns = 500000; /* between two questions about short turns */

/* How long the thread did not run since the worker last asked, [turn-kernel]. */
static uint64_t ask_kernel(struct jrt_worker *worker, uint64_t now)
{
    struct jrt_turns *turns = &worker->turns;
    uint64_t          ran_before = turns->ran_ns, passed = now - turns->asked_ns;
    turns->unasked = false;
    turns->ran_ns = jrt_thread_cpu_ns();
    turns->asked_ns = now;
    if (turns->ran_ns == 0) return 0;
    uint64_t ran = turns->ran_ns - ran_before, stood = passed > ran ? passed - ran : 0;
    turns->taken_ns += stood;
    return stood;
}

void jrt_turn_ask(struct jrt_worker *worker, uint64_t now) { (void)ask_kernel(worker, now); }

/* The length of the current turn; 0: nobody knows when it began. `harms`: others wait, or a hold
 * keeps the turn from ending. */
static uint64_t measure_as(struct jrt_worker *worker, uint64_t now, bool harms)
{
    if (worker->turns.epoch != jrt_turn_epoch(worker)) return 0;
    uint64_t ns = now - worker->turns.began_ns;
    if (jrt_likely(ns < jrt_turn_too_long(worker))) return ns;
    /* The kernel takes a thread off for longer. To ask it takes as long as a small system call. */
    if (ns < asks_ns && now - worker->turns.asked_ns < asks_ns) return ns;
    if (ns < asks_ns && !harms) {
        worker->turns.unasked = true;
        return ns;
    }
    bool     several = worker->turns.unasked;
    uint64_t passed = now - worker->turns.asked_ns, stood = ask_kernel(worker, now);
    uint64_t taken = stood;
    if ((stood < ns / 2 || several) && passed > ns) {
        taken = (uint64_t)((double)stood * (double)ns / (double)passed);
    }
    if (taken > ns) taken = ns;
    worker->turns.began_ns += taken;
    worker->turns.slice_ns += taken;
    if (worker->turns.slice_ns > now) worker->turns.slice_ns = now;
    return ns - taken;
}

static uint64_t measure(struct jrt_worker *worker, uint64_t now)
{
    return measure_as(worker, now, true);
}

void jrt_turn_sample(struct jrt_worker *worker, uint64_t lasted_ns)
{
    if (worker->turns.measured > 0) worker->turns.measured--;
    if (lasted_ns < JRT_SAMPLE_NS) return;
    uint64_t turns = lasted_ns / SAMPLE_NS;
    if (turns > MEASURED_MAX) turns = MEASURED_MAX;
    if (worker->turns.measured < turns) worker->turns.measured = (uint32_t)turns;
    jrt_debug_invariant("turn-measure", worker->turns.measured <= MEASURED_MAX);
}

/* The time that the task's callbacks took from others, [callback-time]. */
static uint64_t take_owed(const struct jrt_task *task)
{
    const struct jrt_purse *purse = task->dirty ? task->purse : NULL;
    return purse != NULL && purse->ledger != NULL ? jrt_upcalls.take_owed(purse) : 0;
}

void jrt_turn_ends(struct jrt_task *task)
{
    struct jrt_worker *worker = jrt_worker_self();
    uint64_t           owed = worker->seat == NULL ? take_owed(task) : 0;
    if (jrt_likely(owed < jrt_turn_too_long(worker))) return;
    jrt_aside_owe(worker, task, jrt_clock_now_ns(), owed);
    worker->turns.epoch = 0; /* not measured once more */
    jrt_task_give_way(worker, task);
}

void jrt_turn_leave(struct jrt_worker *worker, uint64_t now)
{
    uint64_t turn = measure(worker, now);
    if (worker->current != NULL) turn += take_owed(worker->current);
    worker->turns.looked_ns = now;
    bool over = worker->current == NULL || turn >= jrt_turn_too_long(worker);
    if (over) worker->turns.epoch = 0; /* not measured once more; 0 is before all turns */
    if (worker->current == NULL) {
        jrt_aside_ended(worker, now, turn);
    } else if (over) {
        jrt_aside_owe(worker, worker->current, now, turn);
    }
}

void jrt_turn_rests(struct jrt_worker *worker, struct jrt_task *task)
{
    uint64_t now = jrt_clock_now_ns(), turn = measure(worker, now) + take_owed(task);
    jrt_debug_invariant("turn-measure", worker->current == task);
    if (turn < jrt_turn_too_long(worker)) return;
    worker->turns.epoch = 0; /* not measured once more */
    jrt_aside_owe(worker, task, now, turn);
}

void jrt_turn_begin_next(struct jrt_worker *worker, const struct jrt_task *next, uint64_t now)
{
    if (next == NULL) return;
    /* First a loop's turn, then the task's. */
    bool strand_first = worker->current != NULL && !jrt_task_began(next);
    worker->turns.epoch = jrt_turn_epoch(worker) + (strand_first ? 2 : 1);
    worker->turns.began_ns = worker->turns.slice_ns = now;
    worker->turns.ops = 0;
}

/* A slice that follows a short one. Beyond JANUS_SLICE only what was used counts: a task that gets
 * little at a time does not get more because of it. */
static uint64_t longer(uint64_t slice, uint64_t used, uint64_t times)
{
    if (slice >= JANUS_SLICE) return used >= slice / 2 ? 2 * slice : slice;
    return slice * times < JANUS_SLICE ? slice * times : JANUS_SLICE;
}

/* The next slice, if the last slice took at least half of a turn. One or two such slices fill a
 * turn. */
static uint64_t fitting(uint64_t used, uint64_t ns, uint64_t limit_ns)
{
    return used * (ns < limit_ns / 4 * 3 ? limit_ns / 2 : limit_ns) / ns;
}

/* Changes the slice after `used` operations that took `ns`, [turn-pace]. */
static void set_pace(const struct jrt_worker *worker, struct jrt_purse *purse, uint64_t used,
                     uint64_t ns, bool known)
{
    uint64_t limit_ns = worker->turns.limit_ns;
    uint64_t slice = (uint64_t)jrt_purse_slice(purse);
    if (!known) {
        if (purse->slice == 0) slice = used * limit_ns / ns < MEASURED ? 1 : MEASURED;
    } else if (ns >= jrt_turn_too_long(worker)) {
        slice = used * limit_ns / ns;
    } else if (ns < limit_ns / 2) {
        slice = longer(slice, used, ns < limit_ns / 16 ? 16 : 2);
    } else if (used >= FINE) {
        slice = fitting(used, ns, limit_ns);
    }
    if (slice == 0) slice = 1;
    const uint64_t most = worker->scheduler->max_slice;
    purse->slice = (uint32_t)(slice < most ? slice : most);
}

/* Whether a hold keeps the turn, which has lasted `turn` ns, from ending, [hold-turn]. A hold that
 * lasts too long is void from then on. 0: the begin of the turn is unknown. The time since the last
 * look is no measure then: the thread may have waited for the lock, or for a core. */
static bool is_held(const struct jrt_worker *worker, struct jrt_purse *purse, uint64_t turn)
{
    if (jrt_likely(!jrt_purse_held(purse))) return false;
    purse->hold_due = true;
    if (turn < JANUS_HOLD_TURNS * worker->turns.limit_ns) return true;
    purse->hold_over = true;
    jrt_tell_line(worker->scheduler, jrt_task_name(worker->current),
                  "its hold has lasted for JANUS_HOLD_TURNS turns and is over: others run, and may "
                  "wait for what it holds");
    return false;
}

/* Ends a turn of `turn` ns: others run first. */
static void give_turn(struct jrt_worker *worker, struct jrt_task *task, uint64_t now, uint64_t turn)
{
    turn += take_owed(task);
    if (turn >= jrt_turn_too_long(worker)) {
        jrt_aside_owe(worker, task, now, turn);
        worker->turns.epoch = 0; /* not measured once more */
    }
    jrt_task_give_way(worker, task);
}

/* The library has looked after timers and stacks since `now`. If that took long, it is no part of
 * the turn. Less is the price of the turn's end. */
static void leave_out(struct jrt_worker *worker, uint64_t now)
{
    uint64_t spent = jrt_clock_now_ns() - now;
    if (jrt_likely(spent < worker->turns.limit_ns / 2)) return;
    worker->turns.began_ns += spent;
    worker->turns.slice_ns += spent;
    worker->turns.looked_ns += spent;
}

static void end_turn(struct jrt_task *task)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_purse  *purse = task->purse;
    uint64_t           now = jrt_clock_now_ns(), slice = now - worker->turns.looked_ns;
    bool               known = worker->turns.epoch == jrt_turn_epoch(worker);
    bool               harms = jrt_turn_wanted(worker) || jrt_purse_held(purse);
    uint64_t           turn = measure_as(worker, now, harms), held_ns = turn;
    if (known) {
        slice = now - worker->turns.slice_ns;
    } else {
        begin(worker, now);
        /* The begin of this turn is unknown, but it was after the last look. */
        known = slice < worker->turns.limit_ns;
        turn = slice;
    }
    uint64_t early = 0; /* how long before the limit the turn may end */
    worker->turns.slice_ns = worker->turns.looked_ns = now;
    worker->turns.over = 0; /* 0 is before all turns */
    worker->tolls = JRT_TOLLS;
    if (purse != NULL) {
        int64_t fuel = jrt_fuel_get();
        jrt_debug_invariant("turn-pace", purse->slice <= worker->scheduler->max_slice);
        uint64_t used = (uint64_t)(purse->handed > fuel ? purse->handed - fuel : 1);
        purse->handed = fuel;
        set_pace(worker, purse, used, slice, known);
        worker->turns.ops += used;
        if (used >= FINE) early = slice / 2;
    }
    jrt_sched_timers_fire(worker->scheduler);
    jrt_depot_look(worker->scheduler->depot, now);
    leave_out(worker, now);
    if (jrt_unlikely(++worker->slices % BALANCE_EVERY == 0)) jrt_balance(worker);
    if (jrt_unlikely(is_held(worker, purse, held_ns))) return;
    if (jrt_unlikely(worker->scheduler->preempts)) { /* [preempt-check] */
        give_turn(worker, task, now, known ? turn : 0);
        return;
    }
    if (known && turn + early < worker->turns.limit_ns &&
        worker->turns.ops < worker->scheduler->max_slice)
        return;
    if (known && turn < FRESH_TURNS * worker->turns.limit_ns && !jrt_turn_wanted(worker))
        return;                                /* only new tasks wait */
    if (!known) jrt_turn_sample(worker, turn); /* measures to find the long turn */
    give_turn(worker, task, now, known ? turn : 0);
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
    if (jrt_unlikely(!jrt_task_is_clean(task))) {
        jrt_upcalls.pay_patience(task); /* [cancel-patience] */
        worker = jrt_worker_self();     /* [worker-again] */
    }
    uint64_t now = jrt_clock_now_ns(), turn = jrt_turn_lasted(worker, now);
    if (turn < worker->turns.limit_ns) return;
    if (task->purse != NULL && task->purse->asking) return; /* a callback, with ops of its own */
    turn = measure(worker, now);
    worker->turns.over = 0;
    worker->turns.looked_ns = now;
    jrt_sched_timers_fire(worker->scheduler);
    leave_out(worker, now);
    if (turn < worker->turns.limit_ns || is_held(worker, task->purse, turn)) return;
    if (turn < FRESH_TURNS * worker->turns.limit_ns && !jrt_turn_wanted(worker))
        return; /* only new tasks wait */
    give_turn(worker, task, now, turn);
}

void jrt_turn_call(struct jrt_worker *worker)
{
    int error = *worker->error_at; /* [task-errno] */
    jrt_debug_invariant("worker-again", worker == jrt_worker_self());
    jrt_debug_invariant("task-errno", worker->error_at == &errno);
    jrt_debug_invariant("turn-call", jrt_locks_held() == 0);
    end_call_turn(worker);
    *jrt_worker_self()->error_at = error; /* [worker-again] */
}

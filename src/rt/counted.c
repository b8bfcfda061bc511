/* SPDX-License-Identifier: MIT */
/*
 * The slow paths of checks: by hand (yield.h) and in code that a compiler counted (counted.h).
 *
 * [fuel-sign]  Counted code looks at the borrow of its subtraction. If the word were negative when
 *   a check begins, it would count as a huge number, and 2^63 ops would be free. So the word is
 *   never negative while task code runs, except between a check and its slow path. A slow path
 *   first gives the cost back. If a task is broken off in between, as by an overflow of its stack,
 *   the library empties the word before the task's defers run. A switch asserts the sign of the
 *   word that it sets. Code that takes from the word and does not call the slow path breaks the
 *   rule for itself alone.
 *
 * [counted-signal]  A signal handler on an alternate stack may interrupt a task anywhere, also
 *   where the library holds a lock. It must not switch: a handler of the next task would use the
 *   same stack. So its slow path only restores the word. Its checks are free once the word is
 *   empty. Its holds do nothing: it switches nothing, and the task's holds are not its own.
 *
 * [hold-turn]  While a task holds, its turn does not end: end_turn and end_call_turn in turn.c
 *   return. So it stays on its thread, unless it calls something that waits. A cancel is not seen
 *   either. Ops that it cannot pay are lent, at most JANUS_SLICE, and at most what it ever got. So
 *   children that split a pool at most double it. The end of a slice marks the hold
 *   as due. The outermost end settles a hold that is due: it pays the loan and ends the turn. A
 *   task cannot escape. A larger loan, or a hold of JANUS_HOLD_TURNS turns, makes the hold void
 *   until its outermost end. For the time, the task owes turns ([aside-owe]).
 *   The loan is in no books. It is used up as soon as it is made, and paid from what comes next. A
 *   task that ends without paying has used it from nothing, once in its life.
 *
 * [strip-exact]  A strip pays for many rounds at once. If the task has less, it pays for the rounds
 *   that its own ops cover, and runs those. With less than one round it pays as a check does. So it
 *   always runs as many rounds as its whole budget covers.
 *
 * [check-exact]  Compilers add up the ops of a stretch of code and pay for them at once. The word
 *   may hold less than the sum. Then the slow path takes what is there, ends the slice, and takes
 *   the rest from the next one. So slices end after the same ops as if the code paid for each
 *   alone. A task is exhausted with nothing left, and under a seed the order of tasks does not
 *   depend on what the compiler added up. In deterministic runs strips end with the word, too. A
 *   cost above JANUS_SLICE is paid in one piece or in portions, because it would end too many
 *   slices.
 */
#include "rt/counted.h"

#include "base/assert.h"
#include "cancel/cancel.h"
#include "fiber/fuel.h"
#include "fiber/thread.h"
#include "means/call.h"
#include "means/purse.h"
#include "nursery/nursery.h"
#include "nursery/pay.h"
#include "nursery/run.h"
#include "plat/altstack.h"
#include "plat/world.h"
#include "stack/slab.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/turn.h"
#include "work/work.h"

#include <janusrt/counted.h>

/* No callback's slice covers this, and differences with it do not overflow. */
static const uint64_t most_cost = UINT64_C(1) << 62;

enum { PORTIONS_MAX = 65536 }; /* of an implicit budget, that one check may take; some 10 ms */

/* The stub calls this. */
void jrt_check_taken(uint64_t cost);

/*
 * Restores the word as it was before `cost` was taken. A word that is not negative was not found
 * empty: the caller took nothing, and gets nothing back. A cost of 2^63 or more leaves any sign;
 * then the word may only shrink.
 */
static void give_back(uint64_t cost)
{
    int64_t  fuel = jrt_fuel_get();
    uint64_t before = (uint64_t)fuel + cost;
    if (fuel >= 0 && (cost <= INT64_MAX || before > (uint64_t)fuel)) return;
    jrt_fuel_set(before <= INT64_MAX ? (int64_t)before : 0);
}

/* Whether the caller is a handler as in [counted-signal]. The stack of the running task is the
 * watched one, unless the program made another. */
static bool in_signal_handler(const struct jrt_worker *worker)
{
    const char             *frame = __builtin_frame_address(0);
    const struct jrt_stack *stack = worker->thread->watch.stack;
    if (jrt_likely(stack != NULL && frame < stack->top && frame >= jrt_stack_low(stack))) {
        return false;
    }
    return jrt_altstack_in_use();
}

/* Whether the caller is no task, or a handler above one: nothing is paid, or by a callback. */
static bool is_outside(const struct jrt_worker *worker, uint64_t cost)
{
    if (jrt_unlikely(worker == NULL || worker->current == NULL)) {
        if (jrt_thread_self()->callback == NULL) jrt_fuel_set(INT64_MAX / 2);
        jrt_plain_check((int64_t)(cost < most_cost ? cost : most_cost));
        return true;
    }
    if (jrt_likely(!in_signal_handler(worker))) return false;
    jrt_debug_invariant("counted-signal", jrt_fuel_get() >= 0);
    return true;
}

/* Pays a cost that no single portion of an implicit budget covers in many of them, because that
 * budget is replenished without end. */
static janus_status pay_in_portions(struct jrt_task *task, uint64_t *cost)
{
    const uint64_t most = task->nursery->scheduler->max_budget.ops;
    if (task->purse != NULL && task->purse->hard) return JANUS_OK;
    if (most == 0 || *cost / most > PORTIONS_MAX) return JANUS_OK;
    janus_status status = JANUS_OK;
    for (; status == JANUS_OK && *cost > most; *cost -= most) status = jrt_pay_ops(task, most);
    return status;
}

/* Pays for generated code, or ends the task. */
static void pay_or_end(struct jrt_task *task, uint64_t cost)
{
    janus_status status = pay_in_portions(task, &cost);
    if (status == JANUS_OK) status = jrt_pay_ops(task, cost);
    /* CANCELLED gave the defer an allowance to pay from. */
    if (status == JANUS_CANCELLED && task->ending) status = jrt_pay_ops(task, cost);
    if (jrt_unlikely(status == JANUS_NO_MEMORY)) jrt_task_break_off(task, JRT_ENDED_NO_MEMORY);
    if (status != JANUS_OK && !task->ending) jrt_task_break_off(task, JRT_ENDED_UNWOUND);
    jrt_invariant("fuel-sign", jrt_fuel_get() >= 0);
}

janus_status janus_check_slow(uint64_t cost)
{
    struct jrt_worker *worker = jrt_worker_self();
    give_back(cost);
    if (jrt_unlikely(is_outside(worker, cost))) return JANUS_OK;
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    struct jrt_task *task = worker->current;
    janus_status     status = jrt_pay_ops(task, cost);
    if (jrt_unlikely(status == JANUS_NO_MEMORY)) jrt_task_break_off(task, JRT_ENDED_NO_MEMORY);
    jrt_invariant("fuel-sign", jrt_fuel_get() >= 0);
    return status;
}

/* Pays op by op, as far as that can be noticed, [check-exact]. */
static void pay_exactly(struct jrt_task *task, uint64_t cost)
{
    while (cost > 0) {
        uint64_t fuel = (uint64_t)jrt_fuel_get();
        uint64_t taken = cost < fuel ? cost : fuel;
        jrt_fuel_set((int64_t)(fuel - taken));
        cost -= taken;
        if (cost == 0) return;
        jrt_debug_invariant("check-exact", jrt_fuel_get() == 0);
        jrt_worker_stack_check(jrt_worker_self()); /* [stack-reserve] */
        pay_or_end(task, 1);
        cost--;
    }
}

/* Nothing was taken from the word. */
static void check_or_end(uint64_t cost)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_unlikely(is_outside(worker, cost))) return;
    if (cost <= JANUS_SLICE && cost > (uint64_t)jrt_fuel_get()) {
        pay_exactly(worker->current, cost);
        return;
    }
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    pay_or_end(worker->current, cost);
}

void jrt_check_taken(uint64_t cost)
{
    give_back(cost);
    check_or_end(cost);
}

void janus_check_or_end_slow(uint64_t cost) { jrt_check_taken(cost); }

void janus_op(uint64_t cost)
{
    int64_t fuel = jrt_fuel_get();
    if (jrt_likely(fuel >= 0 && cost <= (uint64_t)fuel)) {
        jrt_fuel_set(fuel - (int64_t)cost);
        return;
    }
    check_or_end(cost);
}

/* How many rounds the task's own ops cover. */
static uint64_t covered(const struct jrt_task *task, uint64_t rounds, uint64_t cost)
{
    uint64_t can = jrt_purse_read(task).ops / cost;
    if (jrt_unlikely(task->nursery->scheduler->preempts)) { /* [preempt-check] */
        uint64_t most = (uint64_t)jrt_choose_slice() / cost + 1;
        if (can > most) can = most;
    }
    return can < rounds ? can : rounds;
}

/* Pays for more rounds, now that the task has got more. Returns how many. */
static uint64_t pay_more(struct jrt_task *task, uint64_t rounds, uint64_t cost)
{
    uint64_t           more = covered(task, rounds, cost);
    const janus_budget price = janus_price_loop(more * cost);
    if (more == 0 || jrt_pay_now(task, &price) != JANUS_COMPONENT_NONE) return 0;
    if (task->purse != NULL && !task->purse->cleaning) jrt_purse_fill(task->purse, jrt_fuel_get());
    return more;
}

/* Pays for the rounds that the word holds, or for one, [check-exact]. */
static uint64_t strip_of_word(uint64_t rounds, uint64_t cost)
{
    uint64_t fuel = (uint64_t)jrt_fuel_get(), paid = fuel / cost;
    if (paid == 0) {
        check_or_end(cost);
        return 1;
    }
    if (paid > rounds) paid = rounds;
    jrt_fuel_set((int64_t)(fuel - paid * cost));
    return paid;
}

uint64_t janus_strip_slow(uint64_t rounds, uint64_t cost)
{
    struct jrt_worker *worker = jrt_worker_self();
    uint64_t           whole;
    if (__builtin_mul_overflow(rounds, cost, &whole)) whole = UINT64_MAX;
    give_back(whole);
    if (jrt_unlikely(is_outside(worker, whole)) || whole == 0) return rounds;
    struct jrt_task *task = worker->current;
    if (jrt_unlikely(task->nursery->scheduler->world != NULL)) return strip_of_word(rounds, cost);
    jrt_worker_stack_check(worker);              /* [stack-reserve] */
    uint64_t paid = covered(task, rounds, cost); /* [strip-exact] */
    bool     none = paid == 0;
    if (none) paid = 1;
    none &&cost <= JANUS_SLICE ? pay_exactly(task, cost) : pay_or_end(task, paid * cost);
    if (none && rounds > 1) paid += pay_more(task, rounds - 1, cost);
    jrt_debug_invariant("strip-exact", paid >= 1 && paid <= rounds);
    return paid;
}

_Atomic(bool) jrt_code_is_counted;

/* relaxed: nothing else is passed on. */
void janus_counted_code(void) { jrt_store_relaxed(&jrt_code_is_counted, true); }

void janus_hold_begin(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL || worker->current == NULL) return;
    if (jrt_unlikely(in_signal_handler(worker))) return; /* [counted-signal] */
    jrt_call_check(worker);                              /* [turn-call] */
    struct jrt_task  *task = jrt_worker_self()->current; /* [worker-again] */
    struct jrt_purse *purse = jrt_purse_need(task);
    if (jrt_unlikely(purse == NULL)) jrt_task_break_off(task, JRT_ENDED_NO_MEMORY);
    if (jrt_unlikely(purse->holds == JANUS_HOLDS_MAX))
        janus_panic("more than JANUS_HOLDS_MAX holds are open: janus_hold_end is missing");
    purse->holds++;
}

/* The outermost hold has ended, and a slice had ended in it. */
static void settle_hold(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_purse *purse = task->purse;
    uint64_t          owed = purse->owed;
    purse->hold_due = purse->hold_over = false;
    purse->owed = 0;
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    bool cancelled = jrt_task_cancelled_itself(task) != JANUS_CANCEL_REASON_NONE;
    if (cancelled && !purse->cleaning && !task->ending) {
        (void)jrt_purse_stop(task);
        jrt_task_break_off(task, JRT_ENDED_UNWOUND);
    }
    pay_or_end(task, owed);
}

void janus_hold_end(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL || worker->current == NULL) return;
    if (jrt_unlikely(in_signal_handler(worker))) return; /* [counted-signal] */
    struct jrt_task *task = worker->current;
    /* The lock was taken before the task began, or by code that is not counted. */
    if (jrt_unlikely(task->purse == NULL || task->purse->holds == 0)) return;
    if (--task->purse->holds == 0 && task->purse->hold_due) settle_hold(worker, task);
}

bool janus_hold_pass(void)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_likely(world == NULL)) return false;
    world->pass(world);
    return true;
}

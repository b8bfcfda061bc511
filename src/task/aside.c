/* SPDX-License-Identifier: MIT */
/*
 * Standing aside.
 *
 * A task that neither checks nor yields for long keeps its worker for long, and no rule makes its
 * turn shorter. So it pays afterwards: the others get as much time as it took.
 *
 * [aside-owe]  A task that leaves the CPU after a turn of T, too long, owes T to each task that is
 *   ready on its worker. When a pick finds it again, and less time has passed than T for each task
 *   that is ready then, the pick puts it aside. Time that it waited or slept counts: others had it.
 *   Every pick of the worker looks for such tasks until that time has passed ([turn-measure]).
 *
 * [aside-list]  Tasks that stand aside are in a list of the worker's own, linked by their records.
 *   A pick looks at a few of them, in turn; one that owes nothing any more goes back to the queues.
 *   All may run as soon as their worker, or any other, has nothing else to do: time that nobody
 *   wants is never withheld. So a worker with such a list never sleeps.
 *
 * [aside-fresh]  A task that ended owes as well, but cannot pay. New tasks come first; so a chain
 *   of tasks, each of which starts the next, would leave the others one short turn now and then. So
 *   new tasks owe together: when they have used a turn, tasks that ran before come first for as
 *   long. A task that calls janus_yield ends that time: it may have started the new tasks.
 */
#include "task/aside.h"

#include "task/purse.h"
#include "task/seat.h"
#include "task/turn.h"

enum {
    LOOKS = 4,     /* at those who stand aside, for each pick */
    OTHERS = 1024, /* counted at most */
};

static const uint64_t longest_ns = 1000000000; /* a turn counts as that long at most */

/* Tasks that ran before and are ready on this worker, or stand aside. */
static uint64_t others(const struct jrt_worker *worker)
{
    uint64_t count = worker->turns.asides;
    for (unsigned lane = 0; lane < JRT_LANES; lane++) count += jrt_count_again(worker, lane);
    /* relaxed: a hint. */
    if (jrt_load_relaxed(&worker->scheduler->injected) != 0) count++;
    return count < OTHERS ? count : OTHERS;
}

/* The worker's own time: without what the kernel took, [turn-kernel]. */
static uint64_t own_time(const struct jrt_worker *worker, uint64_t now)
{
    return now - worker->turns.taken_ns;
}

static bool somebody_idles(const struct jrt_worker *worker)
{
    /* relaxed: a hint; the next pick looks again. */
    return !worker->alone && jrt_load_relaxed(&worker->scheduler->idlers) != 0;
}

void jrt_aside_owe(struct jrt_worker *worker, struct jrt_task *task, uint64_t now, uint64_t turn)
{
    uint64_t count = others(worker);
    if (count == 0 || worker->seat != NULL || jrt_task_is_seated(task)) return;
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL) return; /* no memory: it owes nothing */
    purse->long_ns = (turn < longest_ns ? turn : longest_ns) * 17 / 16; /* what nobody measured */
    purse->aside_ns = own_time(worker, now);
    uint64_t until = purse->aside_ns + purse->long_ns * count;
    if (worker->turns.aside_ns < until) worker->turns.aside_ns = until;
    worker->others_every = worker->until_others = 1;
}

void jrt_aside_ended(struct jrt_worker *worker, uint64_t now, uint64_t turn)
{
    struct jrt_turns *turns = &worker->turns;
    turns->fresh_used_ns += turn < longest_ns ? turn : longest_ns;
    if (turns->fresh_used_ns < JRT_TURN_NS) return;
    turns->fresh_ns = own_time(worker, now) + turns->fresh_used_ns;
    turns->fresh_used_ns = 0;
    if (turn < JRT_TOO_LONG_NS) return;
    if (turns->aside_ns < turns->fresh_ns) turns->aside_ns = turns->fresh_ns;
    worker->others_every = worker->until_others = 1;
}

bool jrt_aside_fresh_last(struct jrt_worker *worker, bool yields, uint64_t now)
{
    if (yields) worker->turns.fresh_ns = 0;
    return own_time(worker, now) < worker->turns.fresh_ns;
}

/* Whether a ready task must not run yet, with so many others. */
static bool owes(const struct jrt_task *task, uint64_t time, uint64_t count)
{
    struct jrt_purse *purse = task->touched ? task->purse : NULL;
    if (purse == NULL || purse->long_ns == 0) return false;
    /* Of another worker's time, maybe: then the difference means nothing, and is large. */
    if (time - purse->aside_ns < purse->long_ns * count) return true;
    purse->long_ns = 0;
    return false;
}

bool jrt_aside_put(struct jrt_worker *worker, struct jrt_task *task, bool stays, uint64_t now)
{
    uint64_t time = own_time(worker, now), count = others(worker) + stays;
    if (worker->seat != NULL || !owes(task, time, count)) return false;
    if (somebody_idles(worker)) return false;
    task->record.next = NULL;
    if (worker->turns.aside_last != NULL) {
        worker->turns.aside_last->record.next = &task->record;
    } else {
        worker->turns.aside_first = task;
    }
    worker->turns.aside_last = task;
    worker->turns.asides++;
    return true;
}

struct jrt_task *jrt_aside_take(struct jrt_worker *worker)
{
    struct jrt_task *task = worker->turns.aside_first;
    if (task == NULL) return NULL;
    worker->turns.aside_first = jrt_task_next(task);
    if (worker->turns.aside_first == NULL) worker->turns.aside_last = NULL;
    worker->turns.asides--;
    return task;
}

void jrt_aside_release(struct jrt_worker *worker, bool stays, uint64_t now)
{
    bool all = somebody_idles(worker);
    for (uint32_t looks = all ? worker->turns.asides : LOOKS; looks > 0 && worker->turns.asides > 0;
         looks--) {
        struct jrt_task *task = jrt_aside_take(worker);
        if (all || !jrt_aside_put(worker, task, stays, now)) jrt_submit_again(worker, task);
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * Taking tasks from other workers: thieves, rescuers, and workers that balance.
 *
 * A thief has nothing to run. It tries a bounded number of victims. From each it takes the most
 * urgent lane, and the oldest tasks of that. What is on the victim's deque comes first. A raid also
 * takes up to half of a shelf, which only its owner uses otherwise ([queue-shelf] in queue.c). The
 * thief keeps several tasks at once, because each visit disturbs the victim.
 *
 * A rescuer has other tasks. It looks at one worker after the other, now and then. A worker that
 * computes without a call keeps the tasks that wait at it. Idle workers raid it, but a worker that
 * always has some short task never idles. If two looks find that nothing has moved there, the
 * rescuer takes some of the tasks. A worker on patrol looks in the same way ([crew-patrol]).
 *
 * A worker at the end of a turn balances: it takes tasks from a worker that has clearly more
 * ([turn-balance] in turn.c).
 *
 * While tasks move they are in no queue, and a worker that is about to sleep does not find them. So
 * the worker that moved them tells idle ones afterwards, if some are left.
 */
#include "task/note.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/seat.h"
#include "work/work.h"

/* Whether the victim has a lone task that nobody saw there before, [queue-served]. */
static bool is_passing(struct jrt_worker *victim)
{
    if (jrt_shelf_size(&victim->again_shelf) != 1) return false;
    uint64_t oldest = jrt_load_relaxed(&victim->again_shelf.oldest) + 1; /* relaxed, all: hints. */
    if (jrt_load_relaxed(&victim->lone_seen) == oldest) return false;    /* relaxed: as above. */
    jrt_store_relaxed(&victim->lone_seen, oldest);                       /* relaxed: as above. */
    return true;
}

static void stole(struct jrt_worker *thief, const struct jrt_worker *victim,
                  const struct jrt_task *task)
{
    jrt_debug_invariant("seat-lane", !jrt_task_is_seated(task) && thief->seat == NULL);
    jrt_count(&thief->stats.tasks_stolen);
    jrt_note(thief, JRT_TRACE_STEAL, task, victim->index, 0);
}

/* How many tasks to take at once. Where tasks are short, enough to see whether they still are. */
static uint32_t steal_max(const struct jrt_worker *thief)
{
    return thief->short_steals < JRT_SHORT_STEALS ? JRT_RAID_MAX : JRT_SHORT_STEAL_MAX;
}

/* Where to put the tasks of a large raid; NULL: the raid is not large, or memory was refused. */
static void **room_for_crowd(struct jrt_worker *thief, const struct jrt_shelf *shelf)
{
    if (jrt_likely(jrt_shelf_size(shelf) / 2 <= JRT_RAID_MAX)) return NULL;
    if (steal_max(thief) < JRT_RAID_MAX) return NULL;
    if (thief->booty == NULL) thief->booty = jrt_malloc(JRT_RAID_CROWD * sizeof *thief->booty);
    return thief->booty;
}

/* Takes up to half of a victim's shelf: the oldest to run, the rest for the thief's own. A raid of
 * a crowd takes many, because each raid holds both workers up for as long. */
static struct jrt_task *raid(struct jrt_worker *thief, const struct jrt_worker *victim,
                             struct jrt_shelf *shelf, struct jrt_shelf *own)
{
    void *few[JRT_RAID_MAX];
    if (jrt_shelf_size(shelf) == 0) return NULL;
    void **crowd = own == &thief->again_shelf ? room_for_crowd(thief, shelf) : NULL;
    void **tasks = crowd != NULL ? crowd : few;
    size_t count = jrt_shelf_raid(shelf, tasks, crowd != NULL ? JRT_RAID_CROWD : steal_max(thief));
    if (count == 0) return NULL;
    for (size_t i = 1; i < count; i++) {
        stole(thief, victim, tasks[i]);
        if (!jrt_shelf_push(own, tasks[i])) jrt_inject(thief->scheduler, tasks[i]);
    }
    if (count > 1) thief->lanes |= JRT_IN_NORMAL;
    return tasks[0];
}

/* Takes the oldest of a victim's deque, and a part of the others for the thief's own: fewer visits
 * disturb the victim less. The tasks are there for searchers, and each takes its share. A thief
 * that does not search, because it yielded, takes half. */
static struct jrt_task *steal_some(struct jrt_worker *thief, const struct jrt_worker *victim,
                                   struct jrt_deque *deque, struct jrt_shelf *own)
{
    bool     lost;
    uint64_t idlers = jrt_load_relaxed(&thief->scheduler->idlers); /* relaxed: a hint. */
    uint32_t searching = jrt_searching(idlers);
    uint32_t more = jrt_deque_size(deque) / (searching != 0 ? searching : 2);
    if (more >= steal_max(thief)) more = steal_max(thief) - 1;
    struct jrt_task *first = jrt_deque_steal(deque, &lost);
    struct jrt_task *task = first;
    for (uint32_t i = 0; own != NULL && task != NULL && i < more; i++) {
        task = jrt_deque_steal(deque, &lost);
        if (task == NULL) break;
        stole(thief, victim, task);
        if (!jrt_shelf_push(own, task)) jrt_inject(thief->scheduler, task);
        thief->lanes |= JRT_IN_NORMAL;
    }
    return first;
}

struct jrt_task *jrt_steal_from(struct jrt_worker *thief, struct jrt_worker *victim, bool raids)
{
    struct jrt_task *task = NULL;
    for (unsigned lane = 0; lane < JRT_LANES && task == NULL; lane++) {
        bool normal = lane == JRT_LANE_NORMAL; /* the only lane with shelves */
        if (!jrt_deque_seems_empty(&victim->again[lane])) {
            task = steal_some(thief, victim, &victim->again[lane],
                              normal ? &thief->again_shelf : NULL);
        }
        if (task == NULL && !jrt_deque_seems_empty(&victim->fresh[lane])) {
            task = steal_some(thief, victim, &victim->fresh[lane],
                              normal ? &thief->fresh_shelf : NULL);
        }
    }
    if (task == NULL && raids && !is_passing(victim)) {
        task = raid(thief, victim, &victim->again_shelf, &thief->again_shelf);
    }
    if (task == NULL && raids)
        task = raid(thief, victim, &victim->fresh_shelf, &thief->fresh_shelf);
    if (task != NULL) {
        stole(thief, victim, task);
        thief->prey = victim->index;
    } else {
        jrt_count(&thief->stats.steals_failed);
    }
    /* A worker may have looked while the tasks were in no queue. */
    if (thief->lanes != 0) jrt_idle_notify(thief->scheduler);
    return task;
}

struct jrt_task *jrt_steal(struct jrt_worker *thief, bool raids)
{
    janus_scheduler *scheduler = thief->scheduler;
    uint32_t         count = scheduler->worker_count;
    if (count < 2 || !scheduler->stealing) return NULL;
    uint32_t attempts = count - 1 < JRT_STEAL_ATTEMPTS ? count - 1 : JRT_STEAL_ATTEMPTS;
    for (uint32_t i = 0; i < attempts; i++) {
        unsigned         victim = jrt_victim_choose(thief, i);
        struct jrt_task *task = jrt_steal_from(thief, &scheduler->workers[victim], raids);
        if (task != NULL) return task;
    }
    return NULL;
}

static void keep(struct jrt_worker *worker, const struct jrt_worker *from, void **tasks,
                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        stole(worker, from, tasks[i]);
        if (!jrt_shelf_push(&worker->again_shelf, tasks[i]))
            jrt_inject(worker->scheduler, tasks[i]);
    }
    if (count > 0) worker->lanes |= JRT_IN_NORMAL;
    /* A worker may have looked while the tasks were in no queue. */
    if (count > 0) jrt_idle_notify(worker->scheduler);
}

size_t jrt_pull_public(struct jrt_worker *worker, struct jrt_worker *from, size_t want)
{
    struct jrt_deque *deque = &from->again[JRT_LANE_NORMAL];
    void             *tasks[JRT_RAID_MAX];
    size_t            count = 0;
    bool              lost;
    while (count < want && count < JRT_RAID_MAX && !jrt_deque_seems_empty(deque)) {
        struct jrt_task *task = jrt_deque_steal(deque, &lost);
        if (task == NULL) break;
        tasks[count++] = task;
    }
    keep(worker, from, tasks, count);
    return count;
}

/* Takes up to `want` tasks that ran before: public ones, otherwise some from the shelf. */
static void pull(struct jrt_worker *worker, struct jrt_worker *from, size_t want)
{
    void *tasks[JRT_RAID_MAX];
    if (want > JRT_RAID_MAX) want = JRT_RAID_MAX;
    if (jrt_pull_public(worker, from, want) > 0) return;
    keep(worker, from, tasks, jrt_shelf_raid(&from->again_shelf, tasks, want));
}

/* Stands for what a worker has done with the tasks that wait there; 0: none wait. Two looks see the
 * same number if no task left a queue, and the worker ran none. What came meanwhile does not count:
 * a task that only queues others would hide those that wait. */
static uint64_t waiting_mark(const struct jrt_worker *worker)
{
    const struct jrt_shelf *shelves[] = {&worker->again_shelf, &worker->fresh_shelf};
    const uint64_t          prime = UINT64_C(1099511628211);
    uint64_t                mark = 0, count = 0;
    for (unsigned i = 0; i < 2; i++) {
        count += jrt_shelf_size(shelves[i]);
        mark = mark * prime + jrt_load_relaxed(&shelves[i]->oldest); /* relaxed: a hint. */
    }
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        count += jrt_deque_size(&worker->again[lane]) + jrt_deque_size(&worker->fresh[lane]);
        mark =
            mark * prime + jrt_load_relaxed(&worker->again[lane].top); /* relaxed, both: hints. */
        mark = mark * prime + jrt_load_relaxed(&worker->fresh[lane].top);
    }
    mark = mark * prime + jrt_load_relaxed(&worker->stats.switches); /* relaxed, both: hints. */
    mark = mark * prime + jrt_load_relaxed(&worker->stats.tasks_by_loop);
    return count != 0 ? mark | 1u : 0;
}

struct jrt_task *jrt_steal_stuck(struct jrt_worker *thief, uint32_t victim, bool notes)
{
    struct jrt_worker *other = &thief->scheduler->workers[victim];
    uint64_t           mark = waiting_mark(other);
    bool stuck = mark != 0 && mark == jrt_load_relaxed(&other->patrol_mark); /* relaxed: a hint. */
    if (notes) jrt_store_relaxed(&other->patrol_mark, mark);                 /* relaxed: a hint. */
    return stuck ? jrt_steal_from(thief, other, true) : NULL;
}

void jrt_rescue(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    if (worker->alone || !scheduler->stealing || worker->seat != NULL) return;
    struct jrt_worker *other = &scheduler->workers[worker->watched % scheduler->worker_count];
    uint64_t           mark = other != worker ? waiting_mark(other) : 0;
    if (mark != 0 && mark != worker->watched_mark) {
        worker->watched_mark = mark;
        return;
    }
    if (mark != 0) {
        struct jrt_task *task = jrt_steal_from(worker, other, true);
        if (task != NULL) jrt_submit_again(worker, task);
    }
    worker->watched++;
    worker->watched_mark = 0;
}

void jrt_balance(struct jrt_worker *worker)
{
    enum { MARGIN = 3, PART = 16 };
    janus_scheduler *scheduler = worker->scheduler;
    if (scheduler->worker_count < 2 || !scheduler->stealing || worker->seat != NULL) return;
    struct jrt_worker *other = &scheduler->workers[jrt_victim_choose(worker, 0)];
    uint64_t           ours = jrt_count_again(worker, JRT_LANE_NORMAL);
    uint64_t           theirs = jrt_count_again(other, JRT_LANE_NORMAL);
    if (theirs < ours + MARGIN + ours / PART) return;
    jrt_debug_invariant("turn-balance", other != worker && theirs > ours);
    pull(worker, other, (size_t)(theirs - ours) / 2);
}

unsigned jrt_victim_choose(struct jrt_worker *thief, uint32_t attempt)
{
    janus_scheduler *scheduler = thief->scheduler;
    uint32_t         count = scheduler->worker_count;
    if (thief->loads != NULL) { /* LEAST_LOADED */
        for (uint32_t i = 0; i < count; i++) {
            uint64_t load = 0;
            for (unsigned lane = 0; lane < JRT_LANES; lane++) {
                load += jrt_count_fresh(&scheduler->workers[i], lane);
                load += jrt_count_again(&scheduler->workers[i], lane);
            }
            thief->loads[i] = load < UINT32_MAX ? (uint32_t)load : UINT32_MAX;
        }
    }
    return jrt_victim_next(&thief->victims, thief->index, count, attempt, thief->loads);
}

/* SPDX-License-Identifier: MIT */
/*
 * Where tasks wait for a worker, and in what order a worker looks (the essay is in worker.c).
 */
#include "task/worker.h"

enum {
    FIFO_EVERY = 61,
    NORMAL_EVERY = 8,
    LOW_EVERY = 32,
    RECORD_BATCH = 64,
    RECORDS_MAX = 1024,
};

static struct jrt_task *as_task(struct jrt_record *record) { return (struct jrt_task *)record; }

/* Records. */

struct jrt_task *jrt_task_alloc(janus_scheduler *scheduler, struct jrt_worker *worker)
{
    if (worker == NULL) return as_task(jrt_records_take(&scheduler->records, 1));
    if (jrt_unlikely(worker->free == NULL)) {
        worker->free = as_task(jrt_records_take(&scheduler->records, RECORD_BATCH));
        struct jrt_record *record = worker->free != NULL ? &worker->free->record : NULL;
        for (; record != NULL; record = record->next) worker->free_count++;
        if (worker->free == NULL) return NULL;
    }
    struct jrt_task *task = worker->free;
    worker->free = as_task(task->record.next);
    worker->free_count--;
    return task;
}

void jrt_task_free(janus_scheduler *scheduler, struct jrt_worker *worker, struct jrt_task *task)
{
    /* relaxed: from here on the old id is stale; whoever looks it up does so under a lock. */
    uint32_t generation = jrt_load_relaxed(&task->record.generation);
    jrt_store_relaxed(&task->record.generation, generation + 1); /* relaxed: as above. */
    if (worker == NULL) {
        task->record.next = NULL;
        jrt_records_give(&scheduler->records, &task->record);
        return;
    }
    task->record.next = worker->free != NULL ? &worker->free->record : NULL;
    worker->free = task;
    if (jrt_likely(++worker->free_count <= RECORDS_MAX)) return;
    struct jrt_record *last = &worker->free->record;
    for (int i = 1; i < RECORD_BATCH && last->next != NULL; i++) last = last->next;
    struct jrt_record *rest = last->next;
    last->next = NULL;
    worker->free_count = RECORD_BATCH;
    jrt_records_give(&scheduler->records, rest);
}

/* The queue for everybody. */

static void inject(janus_scheduler *scheduler, struct jrt_task *task)
{
    unsigned lane = task->lane;
    task->record.next = NULL;
    pthread_mutex_lock(&scheduler->inject_lock);
    if (scheduler->inject_last[lane] == NULL) {
        scheduler->inject_first[lane] = task;
    } else {
        scheduler->inject_last[lane]->record.next = &task->record;
    }
    scheduler->inject_last[lane] = task;
    /* relaxed: a hint for a look without the lock; [idle-submit] orders it for sleepers. */
    jrt_fetch_add_relaxed(&scheduler->injected, 1u);
    pthread_mutex_unlock(&scheduler->inject_lock);
}

/* Which lane a pick looks at first. */
static unsigned first_lane(uint32_t tick)
{
    if (tick % LOW_EVERY == 0) return 2;
    return tick % NORMAL_EVERY == 0 ? 1 : 0;
}

static struct jrt_task *take_injected(janus_scheduler *scheduler)
{
    struct jrt_task *task = NULL;
    if (jrt_load_relaxed(&scheduler->injected) == 0) return NULL; /* relaxed: a hint. */
    pthread_mutex_lock(&scheduler->inject_lock);
    uint32_t tick = ++scheduler->inject_tick;
    unsigned first = first_lane(tick);
    for (unsigned i = 0; i < JRT_LANES && task == NULL; i++) {
        unsigned lane = (first + i) % JRT_LANES;
        task = scheduler->inject_first[lane];
        if (task == NULL) continue;
        scheduler->inject_first[lane] = as_task(task->record.next);
        if (task->record.next == NULL) scheduler->inject_last[lane] = NULL;
        jrt_fetch_sub_relaxed(&scheduler->injected, 1u); /* relaxed: as in inject. */
    }
    pthread_mutex_unlock(&scheduler->inject_lock);
    return task;
}

/* Submitting. */

void jrt_submit_fresh(struct jrt_worker *worker, struct jrt_task *task)
{
    unsigned lane = task->lane; /* once pushed it may be stolen, ended and used again */
    if (jrt_unlikely(!jrt_deque_push(&worker->fresh[lane], task))) {
        inject(worker->scheduler, task); /* no memory to grow: the list needs none */
    }
    worker->lanes |= 1u << lane;
    if (!worker->alone) jrt_idle_notify(worker->scheduler);
}

void jrt_submit_again(janus_scheduler *scheduler, struct jrt_task *task)
{
    struct jrt_worker *worker = jrt_worker_self();
    unsigned           lane = task->lane; /* as above */
    if (worker == NULL || worker->scheduler != scheduler) {
        inject(scheduler, task);
        jrt_idle_notify(scheduler);
        return;
    }
    if (jrt_unlikely(!jrt_deque_push(&worker->again[lane], task))) inject(scheduler, task);
    worker->lanes |= 1u << lane;
    if (!worker->alone) jrt_idle_notify(scheduler);
}

/* Picking. */

static struct jrt_task *take_oldest(struct jrt_worker *worker, struct jrt_deque *deque)
{
    if (jrt_deque_seems_empty(deque)) return NULL; /* the owner's look is exact but for thieves */
    if (worker->alone) return jrt_deque_take_alone(deque);
    bool  lost = false;
    void *task;
    do task = jrt_deque_steal(deque, &lost);
    while (task == NULL && lost);
    return task;
}

static struct jrt_task *pick_lane(struct jrt_worker *worker, unsigned lane, bool oldest_first)
{
    struct jrt_task *task = NULL;
    /* Where more and more come to wait, the two kinds take turns, or the queue would only grow. */
    if ((worker->tick & 1u) && jrt_deque_size(&worker->again[lane]) > FIFO_EVERY) {
        oldest_first = true;
    }
    if (oldest_first) task = take_oldest(worker, &worker->again[lane]);
    if (task == NULL) task = jrt_take_newest(worker, lane);
    if (task == NULL && !oldest_first) task = take_oldest(worker, &worker->again[lane]);
    if (task == NULL) worker->lanes &= ~(1u << lane);
    return task;
}

struct jrt_task *jrt_pick(struct jrt_worker *worker)
{
    uint32_t         tick = ++worker->tick;
    bool             others_first = --worker->until_others == 0;
    unsigned         first = first_lane(tick);
    struct jrt_task *task = NULL;
    if (jrt_unlikely(others_first)) {
        worker->until_others = FIFO_EVERY;
        jrt_sched_timers_fire(worker->scheduler);
        task = take_injected(worker->scheduler);
        if (task != NULL) return task;
    }
    for (unsigned i = 0; i < JRT_LANES && worker->lanes != 0; i++) {
        unsigned lane = (first + i) % JRT_LANES;
        if (!(worker->lanes >> lane & 1u)) continue;
        task = pick_lane(worker, lane, others_first);
        if (task != NULL) return task;
    }
    return take_injected(worker->scheduler);
}

bool jrt_others_wait(struct jrt_worker *worker)
{
    if (--worker->until_others != 0) return false;
    worker->until_others = FIFO_EVERY;
    jrt_sched_timers_fire(worker->scheduler);
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        if (!jrt_deque_seems_empty(&worker->again[lane])) return true;
    }
    return jrt_load_relaxed(&worker->scheduler->injected) != 0; /* relaxed: a hint. */
}

/* Stealing: a bounded number of victims, from each the most urgent lane, oldest first. */

static struct jrt_task *steal_from(struct jrt_worker *thief, struct jrt_worker *victim)
{
    bool lost;
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        struct jrt_deque *both[] = {&victim->again[lane], &victim->fresh[lane]};
        for (unsigned i = 0; i < 2; i++) {
            if (jrt_deque_seems_empty(both[i])) continue;
            struct jrt_task *task = jrt_deque_steal(both[i], &lost);
            if (task == NULL) continue;
            jrt_count(&thief->stats.tasks_stolen);
            return task;
        }
    }
    jrt_count(&thief->stats.steals_failed);
    return NULL;
}

struct jrt_task *jrt_steal(struct jrt_worker *thief)
{
    janus_scheduler *scheduler = thief->scheduler;
    uint32_t         count = scheduler->worker_count;
    if (count < 2 || !scheduler->stealing) return NULL;
    uint32_t attempts = count - 1 < JRT_STEAL_ATTEMPTS ? count - 1 : JRT_STEAL_ATTEMPTS;
    for (uint32_t i = 0; i < attempts; i++) {
        unsigned         victim = jrt_victim_choose(thief, i);
        struct jrt_task *task = steal_from(thief, &scheduler->workers[victim]);
        if (task != NULL) return task;
    }
    return NULL;
}

unsigned jrt_victim_choose(struct jrt_worker *thief, uint32_t attempt)
{
    janus_scheduler *scheduler = thief->scheduler;
    uint32_t         count = scheduler->worker_count;
    if (thief->loads != NULL) { /* LEAST_LOADED */
        for (uint32_t i = 0; i < count; i++) {
            uint32_t load = 0;
            for (unsigned lane = 0; lane < JRT_LANES; lane++) {
                load += jrt_deque_size(&scheduler->workers[i].fresh[lane]);
                load += jrt_deque_size(&scheduler->workers[i].again[lane]);
            }
            thief->loads[i] = load;
        }
    }
    return jrt_victim_next(&thief->victims, thief->index, count, attempt, thief->loads);
}

/* Whether there is anything this worker could run. For those about to sleep. */
bool jrt_work_for(const struct jrt_worker *worker)
{
    const janus_scheduler *scheduler = worker->scheduler;
    if (jrt_load_relaxed(&scheduler->injected) != 0) return true; /* relaxed: after a fence. */
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        if (!scheduler->stealing && i != worker->index) continue;
        for (unsigned lane = 0; lane < JRT_LANES; lane++) {
            if (!jrt_deque_seems_empty(&scheduler->workers[i].fresh[lane])) return true;
            if (!jrt_deque_seems_empty(&scheduler->workers[i].again[lane])) return true;
        }
    }
    return false;
}

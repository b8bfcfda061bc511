/* SPDX-License-Identifier: MIT */
/*
 * Task records.
 *
 * A task that has not started is only its record, so this is the cost of a million waiting tasks.
 * Records are carved from blocks in order of address. They are never unmapped while the scheduler
 * lives. So a stale id leads to a record that shows this ([task-clean] keeps its generation),
 * never to unmapped memory.
 *
 * [roster-home]  When the scheduler is closed, every record is here.
 *
 * Workers take and return batches, each as one list: one step under the lock for 64 tasks.
 *
 * Blocks have the size and the alignment of a huge page. From the third block on, the roster asks
 * for huge pages. The first touch of a crowd then costs a fault for every 10,000 tasks instead of
 * every 21. One batch of a million tasks takes a third of the time. With fewer tasks, most of a
 * huge page may stay unused.
 *
 * Locks: only roster->lock.
 */
#include "task/roster.h"

#include "base/assert.h"
#include "plat/memory.h"
#include "plat/world.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES = 2 << 20,
    BLOCK_RECORDS = BLOCK_BYTES / (int)sizeof(struct jrt_task),
};

bool jrt_roster_init(struct jrt_roster *roster)
{
    *roster = (struct jrt_roster){.carved = BLOCK_RECORDS};
    return pthread_mutex_init(&roster->lock, NULL) == 0;
}

void jrt_roster_fini(struct jrt_roster *roster)
{
    jrt_invariant("roster-home", roster->out == 0);
    for (size_t i = 0; i < roster->block_count; i++) {
        bool   last = i + 1 == roster->block_count;
        size_t used = last ? roster->carved * sizeof(struct jrt_task) : BLOCK_BYTES;
        if (jrt_unlikely(jrt_world_now() != NULL)) memset(roster->blocks[i], 0, used);
        jrt_map_release_aligned(roster->blocks[i], BLOCK_BYTES); /* zeroed in a world, as it was */
    }
    free(roster->blocks);
    pthread_mutex_destroy(&roster->lock);
}

/* Adds a block. False: memory refused. */
static bool add_block(struct jrt_roster *roster)
{
    if (roster->block_count == roster->block_room) {
        size_t room = roster->block_room > 0 ? roster->block_room * 2 : 16;
        char **larger = jrt_realloc(roster->blocks, room * sizeof *larger);
        if (larger == NULL) return false;
        roster->blocks = larger;
        roster->block_room = room;
    }
    char *block = jrt_map_reserve_aligned(BLOCK_BYTES, roster->block_count > 1); /* zeroed */
    if (block == NULL) return false;
    roster->blocks[roster->block_count++] = block;
    roster->carved = 0;
    return true;
}

static struct jrt_task *at(const struct jrt_roster *roster, size_t block, uint32_t within)
{
    return (struct jrt_task *)(void *)(roster->blocks[block] + within * sizeof(struct jrt_task));
}

/* Up to `count` new records, as a list. Fewer where a block ends. */
static struct jrt_task *carve(struct jrt_roster *roster, uint32_t count)
{
    if (roster->carved == BLOCK_RECORDS && !add_block(roster)) return NULL;
    size_t           block = roster->block_count - 1;
    uint32_t         left = BLOCK_RECORDS - roster->carved;
    uint32_t         first = roster->carved;
    struct jrt_task *list = NULL;
    if (count > left) count = left;
    for (uint32_t i = count; i > 0; i--) {
        struct jrt_task *task = at(roster, block, first + i - 1);
        task->record.index = (uint32_t)block * BLOCK_RECORDS + first + i - 1;
        task->record.next = (struct jrt_record *)list;
        list = task;
    }
    roster->carved += count;
    return list;
}

static void put_loose(struct jrt_roster *roster, struct jrt_task *list)
{
    while (list != NULL) {
        struct jrt_task *task = list;
        list = jrt_task_next(task);
        task->record.next = (struct jrt_record *)roster->loose;
        roster->loose = task;
        roster->loose_count++;
    }
}

/* Makes a batch of the single records, which are enough. */
static struct jrt_task *bundle(struct jrt_roster *roster)
{
    struct jrt_task *list = roster->loose;
    struct jrt_task *last = list;
    jrt_invariant("roster-home", last != NULL);
    for (int i = 1; i < JRT_ROSTER_BATCH; i++) last = jrt_task_next(last);
    roster->loose = jrt_task_next(last);
    roster->loose_count -= JRT_ROSTER_BATCH;
    last->record.next = NULL;
    return list;
}

/* A batch; NULL: memory refused. Under the lock. */
static struct jrt_task *find_batch(struct jrt_roster *roster)
{
    struct jrt_task *list = roster->batches;
    if (list != NULL) {
        roster->batches = (struct jrt_task *)list->record.batch;
        list->record.batch = NULL; /* no holder from now on, [task-clean] */
        return list;
    }
    while (roster->loose_count < JRT_ROSTER_BATCH) {
        list = carve(roster, JRT_ROSTER_BATCH);
        if (list == NULL) return NULL;
        bool whole = list->record.index % BLOCK_RECORDS <= BLOCK_RECORDS - JRT_ROSTER_BATCH;
        if (whole) return list;
        put_loose(roster, list); /* the end of a block */
    }
    return bundle(roster);
}

struct jrt_task *jrt_roster_take_batch(struct jrt_roster *roster)
{
    jrt_lock(&roster->lock);
    struct jrt_task *list = find_batch(roster);
    if (list != NULL) roster->out += JRT_ROSTER_BATCH;
    jrt_unlock(&roster->lock);
    return list;
}

struct jrt_task *jrt_roster_take(struct jrt_roster *roster)
{
    jrt_lock(&roster->lock);
    if (roster->loose == NULL) put_loose(roster, find_batch(roster));
    struct jrt_task *task = roster->loose;
    if (task != NULL) {
        roster->loose = jrt_task_next(task);
        roster->loose_count--;
        roster->out++;
    }
    jrt_unlock(&roster->lock);
    return task;
}

void jrt_roster_give(struct jrt_roster *roster, struct jrt_task *list)
{
    jrt_lock(&roster->lock);
    uint32_t before = roster->loose_count;
    put_loose(roster, list);
    roster->out -= (int64_t)(roster->loose_count - before);
    jrt_unlock(&roster->lock);
}

void jrt_roster_give_batch(struct jrt_roster *roster, struct jrt_task *list)
{
    jrt_lock(&roster->lock);
    list->record.batch = (struct jrt_record *)roster->batches;
    roster->batches = list;
    roster->out -= JRT_ROSTER_BATCH;
    jrt_unlock(&roster->lock);
}

void jrt_roster_drop(struct jrt_roster *roster, struct jrt_task *task)
{
    (void)task;
    jrt_lock(&roster->lock);
    roster->out--;
    jrt_unlock(&roster->lock);
}

struct jrt_task *jrt_roster_find(struct jrt_roster *roster, uint32_t index)
{
    struct jrt_task *task = NULL;
    size_t           block = index / BLOCK_RECORDS;
    uint32_t         within = index % BLOCK_RECORDS;
    jrt_lock(&roster->lock);
    bool last = block + 1 == roster->block_count;
    if (block < roster->block_count && (!last || within < roster->carved)) {
        task = at(roster, block, within);
    }
    jrt_unlock(&roster->lock);
    return task;
}

size_t jrt_roster_count(struct jrt_roster *roster)
{
    jrt_lock(&roster->lock);
    size_t full = roster->block_count > 0 ? roster->block_count - 1 : 0;
    size_t count = full * BLOCK_RECORDS + (roster->block_count > 0 ? roster->carved : 0);
    jrt_unlock(&roster->lock);
    return count;
}

/* Free records. A worker keeps some records and at most one batch. When both are full, it keeps the
 * records used last and puts the batch aside. When it has none, it takes a batch. So a worker whose
 * number of tasks varies by less than that does neither. */

bool jrt_worker_free_refill(struct jrt_worker *worker)
{
    worker->free = worker->free_batch;
    worker->free_batch = NULL;
    if (worker->free == NULL) worker->free = jrt_roster_take_batch(&worker->scheduler->roster);
    if (worker->free == NULL) return false;
    worker->free_room = JRT_FREE_MAX - JRT_ROSTER_BATCH;
    return true;
}

struct jrt_task *jrt_task_alloc(janus_scheduler *scheduler, struct jrt_worker *worker)
{
    if (worker == NULL || worker->scheduler != scheduler) {
        return jrt_roster_take(&scheduler->roster);
    }
    if (jrt_unlikely(worker->free == NULL) && !jrt_worker_free_refill(worker)) return NULL;
    struct jrt_task *task = worker->free;
    worker->free = jrt_task_next(task);
    worker->free_room++;
    return task;
}

void jrt_worker_free_full(struct jrt_worker *worker)
{
    if (worker->free_batch != NULL) {
        jrt_roster_give_batch(&worker->scheduler->roster, worker->free_batch);
    }
    struct jrt_task *last = worker->free; /* the last record that stays */
    for (uint32_t i = 1; i < JRT_FREE_KEPT; i++) last = jrt_task_next(last);
    worker->free_batch = jrt_task_next(last);
    last->record.next = NULL;
    worker->free_room = JRT_FREE_MAX - JRT_FREE_KEPT;
}

void jrt_task_free(janus_scheduler *scheduler, struct jrt_worker *worker, struct jrt_task *task)
{
    if (worker != NULL && worker->scheduler == scheduler) {
        jrt_task_free_here(worker, task);
        return;
    }
    /* relaxed: as in jrt_task_free_here. */
    uint32_t generation = jrt_load_relaxed(&task->record.generation) + 1;
    jrt_store_relaxed(&task->record.generation, generation); /* relaxed: as above. */
    if (jrt_unlikely(generation == 0)) {
        jrt_roster_drop(&scheduler->roster, task);
        return;
    }
    task->record.next = NULL;
    jrt_roster_give(&scheduler->roster, task);
}

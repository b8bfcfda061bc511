/* SPDX-License-Identifier: MIT */
/*
 * The children of a nursery that were cancelled alone: a table of ids, [cancel-single] in
 * cancel.c.
 *
 * [single-table]  The table holds ids, not records, so that a child that ends meanwhile does no
 *   harm: its id never comes again. Only the owner writes, or a
 *   supervisor under its lock; tasks read without a lock. An id stands
 *   in one of PROBES places after its hash. A new id takes the place of an id whose task is gone.
 *   If all of these tasks live, the owner makes a table of twice the size. The old table stays
 *   until the nursery ends, because others may be reading it. So the memory follows the largest
 *   number of such children that lived at the same time, however many follow one another.
 */
#include "cancel/cancel.h"
#include "task/nursery.h"
#include "task/roster.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdlib.h>

enum { FIRST = 16, PROBES = 8 };

struct jrt_singles {
    struct jrt_singles *older;
    uint64_t            mask;
    _Atomic(uint64_t)   ids[];
};

/* The place number `probe` of an id, [single-table]. */
static uint64_t place_of(const struct jrt_singles *table, janus_task_id id, unsigned probe)
{
    uint64_t hash = id * UINT64_C(0x9e3779b97f4a7c15);
    return ((hash >> 32) + probe) & table->mask;
}

bool jrt_single_find(const struct jrt_nursery *n, janus_task_id child)
{
    const struct jrt_singles *table = jrt_load_acquire(&n->singles); /* acquire: what is in it. */
    for (unsigned probe = 0; probe < PROBES; probe++) {
        /* relaxed: the count of cancels orders it, [cancel-single]. */
        uint64_t id = jrt_load_relaxed(&table->ids[place_of(table, child, probe)]);
        if (id == child) return true;
        if (id == 0) return false;
    }
    return false;
}

static bool lives(struct jrt_nursery *n, janus_task_id id)
{
    const struct jrt_task *task = jrt_roster_find(&n->scheduler->roster, (uint32_t)(id >> 32) - 1);
    /* relaxed: a task that is just ending counts as alive. */
    return jrt_load_relaxed(&task->record.generation) == (uint32_t)id;
}

/* Puts an id into the table. False: there is no place. */
static bool put(struct jrt_nursery *n, struct jrt_singles *table, janus_task_id child)
{
    _Atomic(uint64_t) *free_place = NULL;
    for (unsigned probe = 0; probe < PROBES; probe++) {
        _Atomic(uint64_t) *place = &table->ids[place_of(table, child, probe)];
        uint64_t           id = jrt_load_relaxed(place); /* relaxed: only the owner writes. */
        if (id == child) return true;
        if (free_place == NULL && (id == 0 || !lives(n, id))) free_place = place;
        if (id == 0) break;
    }
    if (free_place == NULL) return false;
    jrt_store_relaxed(free_place, child); /* relaxed: as in jrt_single_find. */
    return true;
}

/* A table of `size` places with all living ids. NULL: memory refused, or some id has no place. */
static struct jrt_singles *copy(struct jrt_nursery *n, struct jrt_singles *old, uint64_t size)
{
    struct jrt_singles *table = jrt_calloc(1, sizeof *table + size * sizeof *table->ids);
    if (table == NULL) return NULL;
    table->older = old;
    table->mask = size - 1;
    for (uint64_t i = 0; old != NULL && i <= old->mask; i++) {
        uint64_t id = jrt_load_relaxed(&old->ids[i]); /* relaxed: only the owner writes. */
        if (id == 0 || !lives(n, id) || put(n, table, id)) continue;
        free(table);
        return NULL;
    }
    return table;
}

bool jrt_single_note(struct jrt_nursery *n, janus_task_id child)
{
    struct jrt_singles *table = jrt_load_relaxed(&n->singles); /* relaxed: its own. */
    uint64_t            size = table != NULL ? 2 * (table->mask + 1) : FIRST;
    jrt_debug_invariant("single-table", jrt_nursery_is_mine(n) || n->on_heap == JRT_SUPERVISED);
    if (table != NULL && put(n, table, child)) return true;
    /* Eight living ids side by side are rare where a quarter of the places is used. Two or three
     * doublings are enough, or there is no memory. */
    for (unsigned attempt = 0; attempt < 4; attempt++, size *= 2) {
        struct jrt_singles *larger = copy(n, table, size);
        if (larger == NULL) continue;
        if (!put(n, larger, child)) {
            free(larger);
            continue;
        }
        n->bound = true;
        jrt_store_release(&n->singles, larger); /* release: what is in it. */
        return true;
    }
    return false;
}

void jrt_singles_free(struct jrt_nursery *n)
{
    struct jrt_singles *table = jrt_load_relaxed(&n->singles); /* relaxed: the owner's. */
    while (table != NULL) {
        struct jrt_singles *older = table->older;
        free(table);
        table = older;
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * [place-list]  A waiting task does not write down its channel: sending and receiving must stay
 *   cheap. So a dump asks the channels. It collects the tasks in their queues, one channel after
 *   the other, before it takes the locks of nurseries. A task may have gone on since, so a dump
 *   shows a channel only for a task that waits for one. In a deadlock no task moves, and the list
 *   is exact. The list has PLACES_MAX entries. Tasks beyond that are shown without the channel's
 *   name. Handles are asked in the same way: what a task reads from is its other end.
 *
 * Locks: one channel's at a time.
 */
#include "look/places.h"

#include "plat/world.h"
#include "task/task.h"

#include <stdlib.h>

enum { PLACES_MAX = 4096 };

_Atomic(jrt_places_teller *) jrt_places_here[JRT_PLACES_TELLERS];

static bool take_down(void *subject, const struct jrt_task *task, const char *name)
{
    struct jrt_places *places = subject;
    if (places->count == PLACES_MAX) return false;
    struct jrt_place *place = &places->list[places->count];
    place->task = task;
    place->order = (unsigned)places->count++;
    jrt_name_again(place->name, sizeof place->name, name);
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct jrt_place *one = a, *two = b;
    if (one->task != two->task) return (uintptr_t)one->task < (uintptr_t)two->task ? -1 : 1;
    return one->order < two->order ? -1 : one->order > two->order;
}

void jrt_places_collect(struct jrt_places *places)
{
    jrt_debug_invariant("place-list", jrt_locks_held() == 0);
    *places = (struct jrt_places){.count = 0};
    for (int i = 0; i < JRT_PLACES_TELLERS; i++) {
        jrt_places_teller *teller = jrt_load_acquire(&jrt_places_here[i]); /* acquire: a table. */
        if (teller == NULL) continue;
        if (places->list == NULL) places->list = jrt_malloc(PLACES_MAX * sizeof *places->list);
        if (places->list == NULL) return;
        teller(take_down, places);
    }
    if (places->list == NULL) return;
    qsort(places->list, places->count, sizeof *places->list, compare);
}

void jrt_places_free(struct jrt_places *places) { free(places->list); }

const char *jrt_places_find(const struct jrt_places *places, const struct jrt_task *task)
{
    size_t low = 0, high = places->count;
    while (low < high) { /* the first entry that is not below */
        size_t middle = (low + high) / 2;
        if ((uintptr_t)places->list[middle].task < (uintptr_t)task) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < places->count && places->list[low].task == task;
    return found ? places->list[low].name : NULL;
}

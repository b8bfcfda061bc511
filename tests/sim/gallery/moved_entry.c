/* SPDX-License-Identifier: MIT */
/*
 * A task removes the first entry of a list and moves the others up, one in each round. Another task
 * looks for an entry that is never removed. The entry moves past it, and it finds nothing.
 */
#include "gallery.h"

enum { ENTRIES = 5, WANTED = 3 };

struct list {
    janus_mutex lock;
    atomic_int  count;
    atomic_int  entries[ENTRIES];
    bool        mended;
};

static int64_t remover(void *argument)
{
    struct list *list = argument;
    if (list->mended) JANUS_EXPECT(janus_mutex_lock(&list->lock) == JANUS_OK);
    int count = atomic_load_explicit(&list->count, memory_order_relaxed);
    for (int i = 1; i < count; i++) {
        janus_check_or_end(1);
        int entry = atomic_load_explicit(&list->entries[i], memory_order_relaxed);
        atomic_store_explicit(&list->entries[i - 1], entry, memory_order_relaxed);
    }
    atomic_store_explicit(&list->count, count - 1, memory_order_relaxed);
    if (list->mended) (void)janus_mutex_unlock(&list->lock);
    return 0;
}

static int64_t finder(void *argument)
{
    struct list *list = argument;
    bool         found = false;
    if (list->mended) JANUS_EXPECT(janus_mutex_lock(&list->lock) == JANUS_OK);
    for (int i = 0; i < atomic_load_explicit(&list->count, memory_order_relaxed); i++) {
        janus_check_or_end(1);
        found |= atomic_load_explicit(&list->entries[i], memory_order_relaxed) == WANTED;
    }
    if (list->mended) (void)janus_mutex_unlock(&list->lock);
    JANUS_EXPECT(found);
    return 0;
}

static int64_t moved_entry(void *mended)
{
    struct list list = {.lock = JANUS_MUTEX_INIT("list"),
                        .count = ENTRIES,
                        .entries = {0, 1, 2, WANTED, 4},
                        .mended = mended != NULL};
    JANUS_EXPECT(gallery_both(remover, finder, &list) == JANUS_OK);
    return 0;
}

const struct gallery_bug gallery_moved_entry = {
    "moved_entry", "a search misses an entry that another loop moves up meanwhile", moved_entry};

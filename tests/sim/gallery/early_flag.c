/* SPDX-License-Identifier: MIT */
/*
 * A table is filled when it is first needed. The flag that says so is set before the loop that
 * fills it, so that no other task fills it, too. A task that comes during the loop reads an empty
 * entry.
 */
#include "gallery.h"

enum { ENTRIES = 6 };

struct table {
    janus_mutex lock;
    atomic_int  ready;
    atomic_int  squares[ENTRIES];
    bool        mended;
};

static void fill(struct table *table)
{
    if (atomic_load_explicit(&table->ready, memory_order_relaxed)) return;
    atomic_store_explicit(&table->ready, 1, memory_order_relaxed);
    for (int i = 0; i < ENTRIES; i++) {
        janus_check_or_end(1);
        atomic_store_explicit(&table->squares[i], i * i, memory_order_relaxed);
    }
}

static int64_t user(void *argument)
{
    struct table *table = argument;
    int           sum = 0;
    if (table->mended) JANUS_EXPECT(janus_mutex_lock(&table->lock) == JANUS_OK);
    fill(table);
    if (table->mended) (void)janus_mutex_unlock(&table->lock);
    for (int i = 0; i < ENTRIES; i++) {
        janus_check_or_end(1);
        sum += atomic_load_explicit(&table->squares[i], memory_order_relaxed);
    }
    JANUS_EXPECT(sum == 0 + 1 + 4 + 9 + 16 + 25);
    return 0;
}

static int64_t early_flag(void *mended)
{
    struct table table = {.lock = JANUS_MUTEX_INIT("table"), .mended = mended != NULL};
    JANUS_EXPECT(gallery_both(user, user, &table) == JANUS_OK);
    return 0;
}

const struct gallery_bug gallery_early_flag = {
    "early_flag", "a table counts as filled before the loop that fills it has ended", early_flag};

/* SPDX-License-Identifier: MIT */
/*
 * A task writes a new version of a record, word by word. Another task copies the record in the same
 * way. Its copy has words of both versions.
 */
#include "gallery.h"

enum { WORDS = 4 };

struct record {
    janus_mutex lock;
    atomic_int  words[WORDS];
    bool        mended;
};

static int64_t writer(void *argument)
{
    struct record *record = argument;
    if (record->mended) JANUS_EXPECT(janus_mutex_lock(&record->lock) == JANUS_OK);
    for (int i = 0; i < WORDS; i++) {
        janus_check_or_end(1);
        atomic_store_explicit(&record->words[i], 7, memory_order_relaxed);
    }
    if (record->mended) (void)janus_mutex_unlock(&record->lock);
    return 0;
}

static int64_t reader(void *argument)
{
    struct record *record = argument;
    int            copy[WORDS];
    if (record->mended) JANUS_EXPECT(janus_mutex_lock(&record->lock) == JANUS_OK);
    for (int i = 0; i < WORDS; i++) {
        janus_check_or_end(1);
        copy[i] = atomic_load_explicit(&record->words[i], memory_order_relaxed);
    }
    if (record->mended) (void)janus_mutex_unlock(&record->lock);
    for (int i = 1; i < WORDS; i++) JANUS_EXPECT(copy[i] == copy[0]);
    return 0;
}

static int64_t half_copy(void *mended)
{
    struct record record = {.lock = JANUS_MUTEX_INIT("record"), .mended = mended != NULL};
    JANUS_EXPECT(gallery_both(writer, reader, &record) == JANUS_OK);
    return 0;
}

const struct gallery_bug gallery_half_copy = {
    "half_copy", "a record is copied word by word while another task writes it", half_copy};

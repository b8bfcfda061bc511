/* SPDX-License-Identifier: MIT */
/*
 * Fiber records.
 *
 * A fiber that has not started consists only of its record, so a million waiting tasks cost a
 * million records. Chunks are mapped, not malloc'ed, so that the memory of a burst returns to the
 * system. Records are carved in order of address and touched only when they are given.
 *
 * One wholly free chunk stays. Otherwise a pool that grows and shrinks around a chunk's edge would
 * map and unmap each time.
 *
 * Locks: records->lock alone.
 */
#include "fiber/record.h"

#include "base/assert.h"
#include "plat/memory.h"
#include "plat/world.h"

static const size_t chunk_bytes = (size_t)256 << 10;

/* Offset of the first record; whole cache lines. */
enum { CHUNK_FRONT = 64 };

_Static_assert(sizeof(struct jrt_record_chunk) <= CHUNK_FRONT, "the chunk's own fields fit");

bool jrt_records_init(struct jrt_records *records, size_t record_bytes)
{
    *records = (struct jrt_records){
        .record_bytes = record_bytes,
        .chunk_records = (uint32_t)((chunk_bytes - CHUNK_FRONT) / record_bytes),
    };
    jrt_list_init(&records->partial);
    jrt_list_init(&records->full);
    return pthread_mutex_init(&records->lock, NULL) == 0;
}

static void place(struct jrt_records *records, struct jrt_record_chunk *chunk)
{
    bool full = chunk->free_list == NULL && chunk->carved == records->chunk_records;
    struct jrt_list_node *where = full ? &records->full : &records->partial;
    if (where == chunk->where) return;
    jrt_list_remove(&chunk->link);
    jrt_list_push_front(where, &chunk->link);
    chunk->where = where;
}

static void release(struct jrt_records *records, struct jrt_record_chunk *chunk)
{
    jrt_list_remove(&chunk->link);
    jrt_map_release(chunk, chunk_bytes);
    records->chunks--;
}

static void release_idle(struct jrt_records *records)
{
    struct jrt_list_node *node = records->partial.next;
    while (node != &records->partial) {
        struct jrt_record_chunk *chunk = jrt_list_entry(node, struct jrt_record_chunk, link);
        node = node->next;
        if (chunk->given == 0) release(records, chunk);
    }
}

void jrt_records_trim(struct jrt_records *records)
{
    jrt_lock(&records->lock);
    release_idle(records);
    jrt_unlock(&records->lock);
}

void jrt_records_fini(struct jrt_records *records)
{
    release_idle(records);
    jrt_invariant("records-home", records->chunks == 0);
    pthread_mutex_destroy(&records->lock);
}

static struct jrt_record_chunk *add_chunk(struct jrt_records *records)
{
    struct jrt_record_chunk *chunk = jrt_map_reserve(chunk_bytes); /* zeroed */
    if (chunk == NULL) return NULL;
    jrt_list_init(&chunk->link);
    chunk->number = (uint32_t)records->chunks++;
    place(records, chunk);
    return chunk;
}

static struct jrt_record *take_one(struct jrt_records *records)
{
    struct jrt_record_chunk *chunk;
    if (!jrt_list_empty(&records->partial)) {
        chunk = jrt_list_entry(records->partial.next, struct jrt_record_chunk, link);
    } else {
        chunk = add_chunk(records);
        if (chunk == NULL) return NULL;
    }
    struct jrt_record *record = chunk->free_list;
    if (record != NULL) {
        chunk->free_list = record->next;
    } else {
        size_t offset = CHUNK_FRONT + chunk->carved * records->record_bytes;
        record = (struct jrt_record *)((char *)chunk + offset);
        record->chunk = chunk;
        record->index = chunk->number * records->chunk_records + chunk->carved++;
    }
    chunk->given++;
    place(records, chunk);
    return record;
}

struct jrt_record *jrt_records_take(struct jrt_records *records, uint32_t count)
{
    struct jrt_record  *list = NULL;
    struct jrt_record **end = &list;
    jrt_lock(&records->lock);
    for (uint32_t i = 0; i < count; i++) {
        struct jrt_record *record = take_one(records);
        if (record == NULL) break;
        *end = record;
        end = &record->next;
    }
    *end = NULL;
    jrt_unlock(&records->lock);
    return list;
}

void jrt_records_give(struct jrt_records *records, struct jrt_record *list)
{
    jrt_lock(&records->lock);
    while (list != NULL) {
        struct jrt_record       *record = list;
        struct jrt_record_chunk *chunk = record->chunk;
        list = list->next; /* the chunk may be unmapped below */
        /* [records-home] a record returns to the chunk it was carved from. A chunk is unmapped only
         * when all its records are back. */
        jrt_invariant("records-home", chunk->given > 0);
        record->next = chunk->free_list;
        chunk->free_list = record;
        chunk->given--;
        place(records, chunk);
        bool only_one =
            records->partial.next == &chunk->link && records->partial.prev == &chunk->link;
        if (chunk->given == 0 && !only_one) release(records, chunk);
    }
    jrt_unlock(&records->lock);
}

size_t jrt_records_bytes(struct jrt_records *records)
{
    jrt_lock(&records->lock);
    size_t bytes = records->chunks * chunk_bytes;
    jrt_unlock(&records->lock);
    return bytes;
}

/* SPDX-License-Identifier: MIT */
/*
 * Chunks come from malloc and return to it. They need no alignment, because a block knows its
 * distance from the chunk, and malloc merges freed memory. Caches keep about as many chunks of each
 * size as a burst of tasks needs. They exchange half of that with the depot. So a worker that only
 * ends heaps feeds a worker that only begins them, with one lock for many chunks.
 */
#include "heap/chunk.h"

#include "heap/poison.h"
#include "plat/world.h"

#include <stdlib.h>
#include <string.h>

/* For each kind: 64, 128, 256 KiB and 2 MiB. */
static const uint32_t cached_max[JRT_CHUNK_KINDS] = {64, 32, 16, 32};

static void push(struct jrt_chunk **list, struct jrt_chunk *chunk)
{
    chunk->next = *list;
    *list = chunk;
}

static struct jrt_chunk *pop(struct jrt_chunk **list)
{
    struct jrt_chunk *chunk = *list;
    if (chunk != NULL) *list = chunk->next;
    return chunk;
}

static void give_back(struct jrt_chunk *list)
{
    for (struct jrt_chunk *chunk; (chunk = pop(&list)) != NULL;) free(chunk);
}

void jrt_heap_depot_init(struct jrt_heap_depot *depot, size_t max_bytes)
{
    *depot = (struct jrt_heap_depot){.max_bytes = max_bytes / JRT_CHUNK_KINDS};
    (void)pthread_mutex_init(&depot->lock, NULL);
}

void jrt_heap_depot_fini(struct jrt_heap_depot *depot)
{
    for (unsigned kind = 0; kind < JRT_CHUNK_KINDS; kind++) give_back(depot->idle[kind]);
    (void)pthread_mutex_destroy(&depot->lock);
}

void jrt_heap_cache_init(struct jrt_heap_cache *cache, struct jrt_heap_depot *depot)
{
    *cache = (struct jrt_heap_cache){.depot = depot};
}

/* Moves chunks from the cache to the depot until the cache has `keep`. If the depot is full, frees
 * them. */
static void shed(struct jrt_heap_cache *cache, unsigned kind, uint32_t keep)
{
    struct jrt_heap_depot *depot = cache->depot;
    struct jrt_chunk      *surplus = NULL;
    if (depot != NULL) (void)jrt_lock(&depot->lock);
    for (; cache->count[kind] > keep; cache->count[kind]--) {
        struct jrt_chunk *chunk = pop(&cache->idle[kind]);
        if (depot != NULL && depot->bytes[kind] + jrt_chunk_bytes(kind) <= depot->max_bytes) {
            depot->bytes[kind] += jrt_chunk_bytes(kind);
            push(&depot->idle[kind], chunk);
        } else {
            push(&surplus, chunk);
        }
    }
    if (depot != NULL) (void)jrt_unlock(&depot->lock);
    give_back(surplus);
}

void jrt_heap_cache_fini(struct jrt_heap_cache *cache)
{
    for (unsigned kind = 0; kind < JRT_CHUNK_KINDS; kind++) shed(cache, kind, 0);
}

/* Fills the cache to half from the depot. */
static void fetch(struct jrt_heap_cache *cache, unsigned kind)
{
    struct jrt_heap_depot *depot = cache->depot;
    if (depot == NULL) return;
    (void)jrt_lock(&depot->lock);
    while (depot->idle[kind] != NULL && cache->count[kind] < cached_max[kind] / 2) {
        push(&cache->idle[kind], pop(&depot->idle[kind]));
        depot->bytes[kind] -= jrt_chunk_bytes(kind);
        cache->count[kind]++;
    }
    (void)jrt_unlock(&depot->lock);
}

struct jrt_chunk *jrt_chunk_take(struct jrt_heap_cache *cache, unsigned kind)
{
    struct jrt_chunk *chunk = NULL;
    if (cache != NULL) {
        if (cache->idle[kind] == NULL) fetch(cache, kind);
        chunk = pop(&cache->idle[kind]);
        if (chunk != NULL) cache->count[kind]--;
    }
    if (chunk == NULL) chunk = jrt_malloc(jrt_chunk_bytes(kind));
    if (chunk != NULL) {
        *chunk = (struct jrt_chunk){.kind = (uint8_t)kind};
        jrt_poison((char *)chunk + JRT_CHUNK_HEAD, jrt_chunk_bytes(kind) - JRT_CHUNK_HEAD);
    }
    return chunk;
}

void jrt_chunk_give(struct jrt_heap_cache *cache, struct jrt_chunk *chunk)
{
    unsigned kind = chunk->kind;
    jrt_unpoison(chunk, jrt_chunk_bytes(kind));
    if (chunk->scrub) memset(chunk + 1, 0, jrt_chunk_bytes(kind) - sizeof *chunk);
    if (cache == NULL) {
        free(chunk);
        return;
    }
    if (cache->count[kind] == cached_max[kind]) shed(cache, kind, cached_max[kind] / 2);
    push(&cache->idle[kind], chunk);
    cache->count[kind]++;
}

/* SPDX-License-Identifier: MIT */
/*
 * Chunks: what heaps consist of, in four sizes. A heap takes them from the cache of the worker it
 * runs on and returns them to the cache of the worker it ends on. Caches exchange chunks with a
 * depot. A depot above its limit returns them to the system.
 */
#ifndef JRT_HEAP_CHUNK_H
#define JRT_HEAP_CHUNK_H

#include "base/atomic.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JRT_CHUNK_KINDS = 4 }; /* 1, 4, 16 and 64 KiB, less what malloc adds */

static inline size_t jrt_chunk_bytes(unsigned kind) { return ((size_t)1024 << (2 * kind)) - 16; }

/*
 * The head of a chunk; the rest are blocks.
 *
 * [chunk-away]  blocks given to other tasks stay in their chunk, and threads that do not own the
 *   chunk free them. Such a thread pushes the block on `returned`, then decrements `away`. The
 *   owner may take `returned` at any time. A chunk is given back when its heap has ended
 *   (JRT_AWAY_ORPHAN) and `away` is 0. If `away` is 0 at the heap's end, the heap gives it back.
 *   Otherwise the thread that decrements `away` to 0 does, and nothing touches the chunk
 *   afterwards.
 */
struct jrt_chunk {
    struct jrt_chunk *next;        /* in its heap, a cache or the depot */
    struct jrt_chunk *next_lender; /* in its heap, if it lends */
    _Atomic(void *)   returned;    /* blocks that came home, linked */
    _Atomic(uint32_t) away;        /* blocks that are away, or whose return is not finished */
    uint32_t          carved; /* once another chunk is current: bytes that are or were blocks */
    uint8_t           kind;
    bool              lends;  /* has had a block away */
    bool              doomed; /* a sweep will give it back */
    bool              scrub;  /* zero it before another heap gets it */
};

enum { JRT_CHUNK_HEAD = 40 };
#define JRT_AWAY_ORPHAN 0x80000000u

_Static_assert(sizeof(struct jrt_chunk) == JRT_CHUNK_HEAD, "a block's header fits behind it");

/* Between the caches. Any thread may use it. */
struct jrt_heap_depot {
    pthread_mutex_t   lock; /* guards the rest */
    struct jrt_chunk *idle[JRT_CHUNK_KINDS];
    size_t            bytes[JRT_CHUNK_KINDS];
    size_t            max_bytes; /* of each kind */
};

/* One for each worker. One thread uses it at a time. Holds up to about 2.5 MiB. */
struct jrt_heap_cache {
    struct jrt_heap_depot *depot; /* NULL: none */
    struct jrt_chunk      *idle[JRT_CHUNK_KINDS];
    uint32_t               count[JRT_CHUNK_KINDS];
    uint64_t               opened; /* heaps opened so far, for their cookies */
};

/* Keeps at most `max_bytes`, a quarter of it in chunks of each size. */
void jrt_heap_depot_init(struct jrt_heap_depot *depot, size_t max_bytes);

/* Returns everything to the system. No cache may use the depot afterwards. */
void jrt_heap_depot_fini(struct jrt_heap_depot *depot);

void jrt_heap_cache_init(struct jrt_heap_cache *cache, struct jrt_heap_depot *depot);

/* Moves everything to the depot, or back to the system. */
void jrt_heap_cache_fini(struct jrt_heap_cache *cache);

/* Take returns a chunk with a fresh head; NULL: no memory. Without a cache both use the system. */
struct jrt_chunk *jrt_chunk_take(struct jrt_heap_cache *cache, unsigned kind);
void              jrt_chunk_give(struct jrt_heap_cache *cache, struct jrt_chunk *chunk);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Chunks: what heaps are made of, in four sizes. A heap takes them from the cache of the worker it
 * runs on and gives them to the cache of the worker it ends on; caches exchange them with a depot,
 * a depot past its bound gives them back to the system.
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
 * [chunk-away]  blocks that were given to other tasks go on living here, and are freed by threads
 *   that do not own the chunk: they push the block on `returned`, then count `away` down. The owner
 *   may look at `returned` whenever it likes. A chunk is nobody's, and given back, when its heap
 *   has ended (JRT_AWAY_ORPHAN) and `away` is 0: by the heap, if it is 0 at that moment, else by
 *   whoever counts it down to 0, whose last look at the chunk that is.
 */
struct jrt_chunk {
    struct jrt_chunk *next;        /* in its heap, a cache or the depot */
    struct jrt_chunk *next_lender; /* in its heap, if it lends */
    _Atomic(void *)   returned;    /* blocks that came home, linked */
    _Atomic(uint32_t) away;        /* blocks that are, or seem, away */
    uint32_t          carved;      /* once it is left: bytes that are or were blocks */
    uint8_t           kind;
    bool              lends;  /* had a block away */
    bool              doomed; /* by a sweep */
    bool              scrub;  /* zeroed before another heap gets it */
};

enum { JRT_CHUNK_HEAD = 40 };
#define JRT_AWAY_ORPHAN 0x80000000u

_Static_assert(sizeof(struct jrt_chunk) == JRT_CHUNK_HEAD, "a block's header fits behind it");

/* Between caches; any thread. */
struct jrt_heap_depot {
    pthread_mutex_t   lock; /* guards the rest */
    struct jrt_chunk *idle[JRT_CHUNK_KINDS];
    size_t            bytes[JRT_CHUNK_KINDS];
    size_t            bytes_max; /* of each kind */
};

/* One per worker; used by one thread at a time. Holds up to about 2.5 MiB. */
struct jrt_heap_cache {
    struct jrt_heap_depot *depot; /* NULL: none */
    struct jrt_chunk      *idle[JRT_CHUNK_KINDS];
    uint32_t               count[JRT_CHUNK_KINDS];
    uint64_t               opened; /* heaps, for their cookies */
};

/* It keeps at most `bytes_max`, a quarter of that in chunks of each size. */
void jrt_heap_depot_init(struct jrt_heap_depot *depot, size_t bytes_max);

/* Gives everything back to the system. No cache may use it any more. */
void jrt_heap_depot_fini(struct jrt_heap_depot *depot);

void jrt_heap_cache_init(struct jrt_heap_cache *cache, struct jrt_heap_depot *depot);

/* Everything to the depot, or back to the system. */
void jrt_heap_cache_fini(struct jrt_heap_cache *cache);

/* A chunk with a fresh head; NULL: no memory. Without a cache, from and to the system. */
struct jrt_chunk *jrt_chunk_take(struct jrt_heap_cache *cache, unsigned kind);
void              jrt_chunk_give(struct jrt_heap_cache *cache, struct jrt_chunk *chunk);

#endif

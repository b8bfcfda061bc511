/* SPDX-License-Identifier: MIT */
/*
 * Threads with a heap each allocate, free, and hand blocks to one another through a few shared
 * places. Now and then a thread ends its heap and begins another, while its blocks are detached or
 * belong to others. Contents stay, owners' books balance, and at the end nothing is left.
 */
#include "harness.h"

#include "base/rng.h"
#include "heap/block.h"

#include <pthread.h>
#include <stdatomic.h>

#if JRT_TSAN || defined(__aarch64__)
enum { ROUNDS = 30000 };
#else
enum { ROUNDS = 300000 };
#endif
enum { THREADS = 4, PLACES = 64, SLOTS = 40 };

static struct jrt_heap_depot depot;
static _Atomic(void *)       places[PLACES];
static _Atomic(uint64_t)     handed, refused;

struct worker {
    struct jrt_rng        rng;
    struct jrt_heap_cache cache;
    struct jrt_heap      *heap;
    size_t                spent, limit;
    uint32_t             *slots[SLOTS];
};

static bool may(void *owner, size_t bytes)
{
    struct worker *worker = owner;
    if (worker->spent + bytes > worker->limit) return false;
    worker->spent += bytes;
    return true;
}

static void back(void *owner, size_t bytes)
{
    struct worker *worker = owner;
    CHECK(worker->spent >= bytes);
    worker->spent -= bytes;
}

static const struct jrt_heap_rules rules = {.may = may, .back = back};

/* A block holds its length in words in the first word, and that number in all others. */
static uint32_t *make(struct worker *worker)
{
    uint32_t  most = jrt_rng_below(&worker->rng, 64) != 0 ? 300 : 4000;
    uint32_t  words = 1 + jrt_rng_below(&worker->rng, most);
    uint32_t *block = jrt_heap_alloc(worker->heap, &worker->cache, words * sizeof *block);
    if (block == NULL) return NULL;
    for (uint32_t i = 0; i < words; i++) block[i] = words;
    return block;
}

static void look(const uint32_t *block)
{
    for (uint32_t i = 0; i < block[0]; i++) CHECK_EQ(block[i], block[0]);
}

static void drop(struct worker *worker, uint32_t **slot)
{
    if (*slot == NULL) return;
    look(*slot);
    jrt_heap_free(worker->heap, &worker->cache, *slot);
    *slot = NULL;
}

/* Puts a block into a shared slot and takes the block that lies there. */
static void hand_over(struct worker *worker, uint32_t **slot)
{
    if (*slot != NULL) jrt_heap_detach(worker->heap, *slot);
    *slot = atomic_exchange(&places[jrt_rng_below(&worker->rng, PLACES)], *slot);
    if (*slot == NULL) return;
    look(*slot);
    if (jrt_heap_adopt(worker->heap, *slot)) {
        atomic_fetch_add_explicit(&handed, 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
    jrt_heap_discard(&worker->cache, *slot);
    *slot = NULL;
}

/* Makes the heap sweep while some of its blocks are away. */
static void burst(struct worker *worker)
{
    enum { COUNT = 300 };
    uint32_t *blocks[COUNT];
    worker->limit = 1 << 20;
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = make(worker);
        if (i % 30 == 0) hand_over(worker, &blocks[i]);
    }
    for (int i = 0; i < COUNT; i++) drop(worker, &blocks[i * 7 % COUNT]);
    worker->limit = 40000;
}

static void begin(struct worker *worker)
{
    worker->heap = jrt_heap_open(&worker->cache, &rules, worker);
    CHECK(worker->heap != NULL);
    for (int i = 0; i < SLOTS; i++) worker->slots[i] = NULL;
}

static void end(struct worker *worker)
{
    jrt_heap_close(worker->heap, &worker->cache);
    CHECK_EQ(worker->spent, 0);
}

static void *run(void *argument)
{
    static struct worker workers[THREADS];
    struct worker       *worker = &workers[(uintptr_t)argument];
    jrt_rng_seed(&worker->rng, (uintptr_t)argument + 1);
    jrt_heap_cache_init(&worker->cache, &depot);
    worker->limit = 40000;
    begin(worker);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t **slot = &worker->slots[jrt_rng_below(&worker->rng, SLOTS)];
        switch (jrt_rng_below(&worker->rng, 4)) {
        case 0: drop(worker, slot); break;
        case 1: hand_over(worker, slot); break;
        default:
            if (*slot == NULL)
                *slot = make(worker);
            else
                look(*slot);
            break;
        }
        if (jrt_rng_below(&worker->rng, 300) == 0) burst(worker);
        if (jrt_rng_below(&worker->rng, 1500) == 0) {
            end(worker);
            begin(worker);
        }
    }
    end(worker);
    jrt_heap_cache_fini(&worker->cache);
    return NULL;
}

TEST("blocks handed between threads keep their content, and all memory comes back")
{
    pthread_t threads[THREADS];
    jrt_heap_depot_init(&depot, 4 << 20);
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, run, (void *)i), 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < PLACES; i++) {
        void *block = atomic_load(&places[i]);
        if (block != NULL) jrt_heap_discard(NULL, block);
    }
    CHECK(atomic_load(&handed) > ROUNDS / 10);
    CHECK(atomic_load(&refused) > 0);
    jrt_heap_depot_fini(&depot);
}

/* SPDX-License-Identifier: MIT */
/*
 * What does memory that one task owns cost, beside malloc?
 *
 * Timed: for each block, an allocation and its free. Pair: free at once. LIFO, random: 1000 blocks,
 *        then all are freed in that order. Task: open a heap, take 100 (1000) blocks and close the
 *        heap; malloc has to free each. The heap charges each block, one op and the bytes. Each
 *        block's first byte is written. malloc may keep its memory; otherwise it would return the
 *        top in every round of large blocks.
 * Moves it: whether lists of free blocks are in the cache. malloc's own cache of seven blocks a
 *        size. The two indirect calls of the hooks.
 * Expect: 0.8 to 1.0 of malloc in pairs, 0.4 to 0.8 beyond its cache, 0.2 to 0.5 for a task's life.
 *        1.6 to 1.8 for 4 MB in blocks of 4096 that are all freed each time, because the heap
 *        returns them to its worker.
 */
#include "bench.h"
#include "budget/account.h"
#include "heap/heap.h"

#include <malloc.h>

enum { BLOCKS = 1000, ROUNDS = 100, FEW = 100 };

static struct jrt_heap_depot depot;
static struct jrt_heap_cache cache;
static struct jrt_heap      *heap;
static janus_budget          left;
static size_t                size; /* 0: mixed */
static size_t                sizes[BLOCKS];
static int                   order[BLOCKS];
static void                 *blocks[BLOCKS];

/* As a task's hooks: one op and the bytes. */
static bool may(void *owner, size_t bytes)
{
    return janus_budget_charge(owner, janus_price_alloc(bytes)) == JANUS_COMPONENT_NONE;
}

static void back(void *owner, size_t bytes) { ((janus_budget *)owner)->memory += bytes; }

static const struct jrt_heap_rules rules = {.may = may, .back = back};

static void *ours(int i)
{
    char *block = jrt_heap_alloc(heap, &cache, sizes[i]);
    *(volatile char *)block = 1;
    return block;
}

static void *theirs(int i)
{
    char *block = malloc(sizes[i]);
    *(volatile char *)block = 1;
    return block;
}

static void ours_free(void *block) { jrt_heap_free(heap, &cache, block); }

static void theirs_free(void *block) { free(block); }

static double per_block(uint64_t start)
{
    return (double)(bench_now_ns() - start) / ((double)BLOCKS * (double)ROUNDS);
}

/* The same loops for both, each with its calls inlined. */
#define CONTENDER(who, take, give)                                                                 \
    static double who##_pair(void)                                                                 \
    {                                                                                              \
        uint64_t start = bench_now_ns();                                                           \
        for (int r = 0; r < ROUNDS; r++) {                                                         \
            for (int i = 0; i < BLOCKS; i++) give(take(i));                                        \
        }                                                                                          \
        return per_block(start);                                                                   \
    }                                                                                              \
    static double who##_lifo(void)                                                                 \
    {                                                                                              \
        uint64_t start = bench_now_ns();                                                           \
        for (int r = 0; r < ROUNDS; r++) {                                                         \
            for (int i = 0; i < BLOCKS; i++) blocks[i] = take(i);                                  \
            for (int i = BLOCKS - 1; i >= 0; i--) give(blocks[i]);                                 \
        }                                                                                          \
        return per_block(start);                                                                   \
    }                                                                                              \
    static double who##_random(void)                                                               \
    {                                                                                              \
        uint64_t start = bench_now_ns();                                                           \
        for (int r = 0; r < ROUNDS; r++) {                                                         \
            for (int i = 0; i < BLOCKS; i++) blocks[i] = take(i);                                  \
            for (int i = 0; i < BLOCKS; i++) give(blocks[order[i]]);                               \
        }                                                                                          \
        return per_block(start);                                                                   \
    }

CONTENDER(theirs, theirs, theirs_free)
CONTENDER(ours, ours, ours_free)

static int life; /* blocks of one task */

static double theirs_life(void)
{
    uint64_t start = bench_now_ns();
    for (int r = 0; r < ROUNDS * (BLOCKS / life); r++) {
        for (int i = 0; i < life; i++) blocks[i] = theirs(i);
        for (int i = 0; i < life; i++) theirs_free(blocks[i]);
    }
    return per_block(start);
}

static double ours_life(void)
{
    struct jrt_heap *kept = heap;
    uint64_t         start = bench_now_ns();
    for (int r = 0; r < ROUNDS * (BLOCKS / life); r++) {
        heap = jrt_heap_open(&cache, &rules, &left);
        for (int i = 0; i < life; i++) blocks[i] = ours(i);
        jrt_heap_close(heap, &cache);
    }
    heap = kept;
    return per_block(start);
}

static void race(const char *what, double (*them)(void), double (*us)(void))
{
    char name[2][80], of[32] = "mixed";
    if (size != 0) (void)snprintf(of, sizeof of, "%zu B", size);
    (void)snprintf(name[0], sizeof name[0], "malloc, %s, %s", what, of);
    (void)snprintf(name[1], sizeof name[1], "heap, %s, %s", what, of);
    struct contender contenders[] = {{.name = name[0], .run = them}, {.name = name[1], .run = us}};
    heap = jrt_heap_open(&cache, &rules, &left);
    bench_race("heap", contenders, 2);
    jrt_heap_close(heap, &cache);
}

/* Takes a share of a pool and settles it, as a task with an explicit budget does. */
static struct jrt_pool_account pool;

static double plain_share(void)
{
    janus_budget want = janus_budget_default(), share;
    uint64_t     start = bench_now_ns();
    for (int i = 0; i < BLOCKS * ROUNDS; i++) {
        if (janus_budget_split(&left, want, &share) != JANUS_COMPONENT_NONE) abort();
        left = janus_budget_add(left, share);
    }
    return per_block(start);
}

static double account_share(void)
{
    janus_budget want = janus_budget_default(), share;
    uint64_t     start = bench_now_ns();
    for (int i = 0; i < BLOCKS * ROUNDS; i++) {
        if (jrt_account_split(&pool, &want, &share) != JANUS_COMPONENT_NONE) abort();
        jrt_account_settle(&pool, &share, &share);
    }
    return per_block(start);
}

static void shuffle(void)
{
    unsigned dice = 1;
    for (int i = 0; i < BLOCKS; i++) order[i] = i;
    for (int i = BLOCKS - 1; i > 0; i--) {
        dice = dice * 1103515245u + 12345u;
        int other = (int)((dice >> 16) % (unsigned)(i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

int main(void)
{
    static const size_t all[] = {16, 64, 256, 1024, 4096, 0};
    static const size_t mix[] = {16, 24, 32, 48, 64, 80, 100, 128, 200, 256, 400, 640, 1024, 1500};
    const janus_budget  plenty = {UINT64_MAX / 2, UINT64_MAX / 2, UINT64_MAX / 2, 1000, 1000};
    (void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
    jrt_heap_depot_init(&depot, 16 << 20);
    jrt_heap_cache_init(&cache, &depot);
    shuffle();
    left = plenty;
    for (size_t s = 0; s < sizeof all / sizeof all[0]; s++) {
        size = all[s];
        for (int i = 0; i < BLOCKS; i++) {
            sizes[i] = size != 0 ? size : mix[(unsigned)order[i] % (sizeof mix / sizeof mix[0])];
        }
        race("pair", theirs_pair, ours_pair);
        race("LIFO", theirs_lifo, ours_lifo);
        race("random order", theirs_random, ours_random);
        life = FEW;
        race("a task of 100", theirs_life, ours_life);
        life = BLOCKS;
        race("a task of 1000", theirs_life, ours_life);
    }
    left = plenty;
    (void)jrt_account_open(&pool, NULL, &plenty);
    struct contender shares[] = {{.name = "a share of a plain budget", .run = plain_share},
                                 {.name = "a share of an account", .run = account_share}};
    bench_race("account", shares, 2);
    jrt_account_close(&pool);
    jrt_account_fini(&pool);
    jrt_heap_cache_fini(&cache);
    jrt_heap_depot_fini(&depot);
    return 0;
}

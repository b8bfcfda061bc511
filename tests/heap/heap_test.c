/* SPDX-License-Identifier: MIT */
/* One heap at a time. Includes the code itself, so that the test can refuse it memory. */
#include "harness.h"
#include "plat/world.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static int allocations_left = -1; /* negative: no limit */

static bool granted(void)
{
    if (allocations_left == 0) return false;
    if (allocations_left > 0) allocations_left--;
    return true;
}

static void *limited_malloc(size_t bytes) { return granted() ? malloc(bytes) : NULL; }

static void *limited_calloc(size_t count, size_t bytes)
{
    return granted() ? calloc(count, bytes) : NULL;
}

static void *limited_realloc(void *old, size_t bytes)
{
    return granted() ? realloc(old, bytes) : NULL;
}

#define jrt_malloc limited_malloc
#define jrt_calloc limited_calloc
#define jrt_realloc limited_realloc
#include "heap/chunk.c"
#include "heap/heap.c"
#include "heap/large.c"
#include "heap/sweep.c"
#include "heap/transfer.c"
#undef jrt_malloc
#undef jrt_calloc
#undef jrt_realloc

/* An owner with this many bytes. */
struct purse {
    size_t left, start;
    int    asked, refunds;
};

static bool may(void *owner, size_t bytes)
{
    struct purse *purse = owner;
    purse->asked++;
    if (purse->left < bytes) return false;
    purse->left -= bytes;
    return true;
}

static void back(void *owner, size_t bytes)
{
    struct purse *purse = owner;
    purse->refunds++;
    purse->left += bytes;
    CHECK(purse->left <= purse->start);
}

static const struct jrt_heap_rules rules = {.may = may, .back = back};
static const struct jrt_heap_rules scrubbing = {.scrub = true};

static struct jrt_heap_depot depot;
static struct jrt_heap_cache cache;
static struct purse          purse;

static struct jrt_heap *heap_new(size_t bytes)
{
    purse = (struct purse){.left = bytes, .start = bytes};
    jrt_heap_depot_init(&depot, 1 << 20);
    jrt_heap_cache_init(&cache, &depot);
    struct jrt_heap *heap = jrt_heap_open(&cache, &rules, &purse);
    CHECK(heap != NULL);
    return heap;
}

static void heap_end(struct jrt_heap *heap)
{
    jrt_heap_close(heap, &cache);
    CHECK_EQ(purse.left, purse.start);
    jrt_heap_cache_fini(&cache);
    jrt_heap_depot_fini(&depot);
}

static struct jrt_heap_stats stats(const struct jrt_heap *heap)
{
    struct jrt_heap_stats now;
    jrt_heap_read(heap, &now);
    return now;
}

static void fill(void *block, size_t size, size_t seed)
{
    for (size_t i = 0; i < size; i++) ((unsigned char *)block)[i] = (unsigned char)(seed + i * 7);
}

static bool filled(const void *block, size_t size, size_t seed)
{
    for (size_t i = 0; i < size; i++) {
        if (((const unsigned char *)block)[i] != (unsigned char)(seed + i * 7)) return false;
    }
    return true;
}

TEST("every size has the smallest class that holds it, and classes waste at most a quarter")
{
    for (size_t size = 0; size <= JRT_SMALL_MAX; size++) {
        unsigned grade = jrt_class_of(size);
        CHECK(grade < JRT_CLASSES);
        CHECK(jrt_strides[grade] >= size + 8);
        CHECK(grade == 0 || jrt_strides[grade - 1] < size + 8);
        CHECK(size < 256 || (size_t)jrt_strides[grade] * 4 <= (size + 8) * 5 + 64);
    }
    for (unsigned grade = 0; grade < JRT_CLASSES; grade++) CHECK_EQ(jrt_strides[grade] % 16, 0);
}

TEST("blocks of every size are aligned, lie apart and keep what is written to them")
{
    enum { COUNT = 600, STEP = 37 };
    static char     *blocks[COUNT];
    struct jrt_heap *heap = heap_new(1 << 30);
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = jrt_heap_alloc(heap, &cache, i * STEP);
        CHECK(blocks[i] != NULL && (uintptr_t)blocks[i] % 16 == 0);
        CHECK(jrt_heap_usable(heap, blocks[i]) >= i * STEP);
        fill(blocks[i], i * STEP, i);
    }
    for (size_t i = 0; i < COUNT; i++) CHECK(filled(blocks[i], i * STEP, i));
    for (size_t i = 0; i < COUNT; i += 2) jrt_heap_free(heap, &cache, blocks[i]);
    for (size_t i = 0; i < COUNT; i += 2) {
        blocks[i] = jrt_heap_alloc(heap, &cache, i * STEP + 1);
        fill(blocks[i], i * STEP + 1, i);
    }
    for (size_t i = 1; i < COUNT; i += 2) CHECK(filled(blocks[i], i * STEP, i));
    heap_end(heap);
}

TEST("a block is charged by its size rounded up to 16, and freeing refunds the same")
{
    static const size_t rows[][2] = {{0, 16},      {1, 16},      {16, 16},          {17, 32},
                                     {64, 64},     {100, 112},   {4096, 4096},      {8200, 8208},
                                     {8201, 8208}, {8209, 8224}, {1000000, 1000000}};
    struct jrt_heap    *heap = heap_new(1 << 30);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *block = jrt_heap_alloc(heap, &cache, rows[i][0]);
        CHECK_EQ(jrt_heap_cost(rows[i][0]), rows[i][1]);
        CHECK_EQ(purse.start - purse.left, rows[i][1]);
        CHECK_EQ(stats(heap).live_bytes, rows[i][1]);
        jrt_heap_free(heap, &cache, block);
        CHECK_EQ(purse.left, purse.start);
    }
    jrt_heap_free(heap, &cache, NULL);
    heap_end(heap);
}

TEST("an owner that refuses gets NULL, and nothing happened")
{
    struct jrt_heap      *heap = heap_new(100);
    void                 *block = jrt_heap_alloc(heap, &cache, 64);
    struct jrt_heap_stats before = stats(heap);
    CHECK(jrt_heap_alloc(heap, &cache, 48) == NULL);
    CHECK(jrt_heap_alloc(heap, &cache, 100000) == NULL);
    CHECK(jrt_heap_alloc_zeroed(heap, &cache, 48) == NULL);
    CHECK(jrt_heap_alloc_aligned(heap, &cache, 64, 48) == NULL);
    CHECK(jrt_heap_realloc(heap, &cache, block, 112) == NULL);
    CHECK(jrt_heap_realloc(heap, &cache, block, 100000) == NULL);
    struct jrt_heap_stats after = stats(heap);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    CHECK_EQ(purse.left, 36);
    /* Only the difference is charged, though both blocks exist for a moment. */
    block = jrt_heap_realloc(heap, &cache, block, 96);
    CHECK(block != NULL);
    CHECK_EQ(purse.left, 4);
    heap_end(heap);
}

TEST("closing frees everything with one refund")
{
    struct jrt_heap *heap = heap_new(1 << 24);
    for (size_t i = 0; i < 5000; i++) CHECK(jrt_heap_alloc(heap, &cache, i % 900) != NULL);
    for (int i = 0; i < 10; i++) CHECK(jrt_heap_alloc(heap, &cache, 20000) != NULL);
    CHECK_EQ(purse.refunds, 0);
    heap_end(heap);
    CHECK_EQ(purse.refunds, 1);
}

TEST("a heap without an owner, and without a cache, works the same")
{
    struct jrt_heap *heap = jrt_heap_open(NULL, NULL, NULL);
    void            *block = NULL;
    for (size_t i = 1; i < 3000; i++) {
        block = jrt_heap_realloc(heap, NULL, block, i * 9);
        CHECK(block != NULL);
    }
    jrt_heap_free(heap, NULL, block);
    for (int i = 0; i < 100; i++) CHECK(jrt_heap_alloc(heap, NULL, 4000) != NULL);
    CHECK_EQ(stats(heap).live_bytes, 400000);
    jrt_heap_close(heap, NULL);
}

TEST("a block keeps its content when it grows and shrinks, and is charged for its size")
{
    static const size_t sizes[] = {1,    20,    24,   25,     100,  90,   60, 500,   8200,
                                   8201, 20000, 9000, 400000, 8200, 3000, 10, 70000, 1};
    struct jrt_heap    *heap = heap_new(1 << 24);
    size_t              had = 0;
    char               *block = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        block = jrt_heap_realloc(heap, &cache, block, sizes[i]);
        CHECK(block != NULL && (uintptr_t)block % 16 == 0);
        CHECK(filled(block, had < sizes[i] ? had : sizes[i], 5));
        CHECK_EQ(purse.start - purse.left, jrt_heap_cost(sizes[i]));
        had = sizes[i];
        fill(block, had, 5);
    }
    char *aligned = jrt_heap_alloc_aligned(heap, &cache, 4096, 10000);
    fill(aligned, 10000, 9);
    aligned = jrt_heap_realloc(heap, &cache, aligned, 30000);
    CHECK(filled(aligned, 10000, 9));
    heap_end(heap);
}

TEST("zeroed memory is zero, also where another task wrote before")
{
    struct jrt_heap *heap = heap_new(1 << 24);
    for (size_t size = 1; size < 20000; size = size * 3 + 5) {
        char *dirty = jrt_heap_alloc(heap, &cache, size);
        memset(dirty, 0xff, size);
        jrt_heap_free(heap, &cache, dirty);
        char *clean = jrt_heap_alloc_zeroed(heap, &cache, size);
        for (size_t i = 0; i < size; i++) CHECK_EQ(clean[i], 0);
    }
    heap_end(heap);
}

TEST("a block can be aligned to any power of two")
{
    struct jrt_heap *heap = heap_new(1 << 24);
    for (size_t alignment = 1; alignment <= 1 << 16; alignment *= 2) {
        for (size_t size = 1; size < 10000; size = size * 7 + 3) {
            char *block = jrt_heap_alloc_aligned(heap, &cache, alignment, size);
            CHECK(block != NULL && (uintptr_t)block % alignment == 0);
            fill(block, size, 1);
            if (size % 2 == 0) jrt_heap_free(heap, &cache, block);
        }
    }
    heap_end(heap);
}

TEST("sizes beyond all memory are refused, and the owner is not asked")
{
    struct jrt_heap    *heap = heap_new(SIZE_MAX);
    void               *block = jrt_heap_alloc(heap, &cache, 10);
    int                 asked = purse.asked;
    static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 8, SIZE_MAX - 15, (size_t)PTRDIFF_MAX};
    for (int i = 0; i < 4; i++) {
        CHECK(jrt_heap_alloc(heap, &cache, huge[i]) == NULL);
        CHECK(jrt_heap_alloc_zeroed(heap, &cache, huge[i]) == NULL);
        CHECK(jrt_heap_alloc_aligned(heap, &cache, 64, huge[i]) == NULL);
        CHECK(jrt_heap_realloc(heap, &cache, block, huge[i]) == NULL);
    }
    CHECK_EQ(purse.asked, asked);
    heap_end(heap);
}

TEST("if the system refuses memory, nothing is charged and the heap works on")
{
    struct jrt_heap *heap = heap_new(1 << 24);
    char            *small = jrt_heap_alloc(heap, &cache, 100);
    char            *large = jrt_heap_alloc(heap, &cache, 10000);
    fill(small, 100, 1), fill(large, 10000, 2);
    size_t left = purse.left;
    allocations_left = 0;
    CHECK(jrt_heap_alloc(heap, &cache, 5000) == NULL);
    CHECK(jrt_heap_alloc(heap, &cache, 50000) == NULL);
    CHECK(jrt_heap_alloc_zeroed(heap, &cache, 50000) == NULL);
    CHECK(jrt_heap_alloc_aligned(heap, &cache, 256, 10) == NULL);
    CHECK(jrt_heap_realloc(heap, &cache, small, 5000) == NULL);
    CHECK(jrt_heap_realloc(heap, &cache, small, 50000) == NULL);
    CHECK(jrt_heap_realloc(heap, &cache, large, 90000) == NULL);
    CHECK(jrt_heap_open(&cache, &rules, &purse) == NULL);
    jrt_heap_detach(heap, small);
    CHECK(!jrt_heap_adopt(heap, small));
    allocations_left = -1;
    CHECK(jrt_heap_adopt(heap, small));
    CHECK_EQ(purse.left, left);
    CHECK(filled(small, 100, 1) && filled(large, 10000, 2));
    heap_end(heap);
}

enum mistake {
    TWICE,
    TWICE_ADOPTED,
    FOREIGN,
    STALE,
    INSIDE,
    ODD,
    OVERWRITTEN,
    GIVEN,
    KEPT,
    MISTAKES
};

static void make_mistake(void *argument)
{
    struct jrt_heap *heap = heap_new(1 << 20), *other = jrt_heap_open(&cache, NULL, NULL);
    char            *block = jrt_heap_alloc(heap, &cache, 100);
    switch (*(enum mistake *)argument) {
    case TWICE: jrt_heap_free(heap, &cache, block); break;
    case TWICE_ADOPTED:
        jrt_heap_detach(heap, block);
        if (jrt_heap_adopt(heap, block)) jrt_heap_free(heap, &cache, block);
        break;
    case FOREIGN: block = jrt_heap_alloc(other, &cache, 100); break;
    case STALE:
        block = jrt_heap_alloc(other, &cache, 100);
        jrt_heap_close(other, &cache);
        break;
    case INSIDE: block += 16; break;
    case ODD: block += 3; break;
    case OVERWRITTEN: jrt_block_mark(block, 0x6161616161616161); break;
    case GIVEN: jrt_heap_detach(heap, block); break;
    case KEPT: jrt_heap_discard(&cache, block); break;
    case MISTAKES: break;
    }
    jrt_heap_free(heap, &cache, block);
}

TEST("freeing a pointer that is not a live block of the heap aborts with the reason")
{
    static const char *const texts[MISTAKES] = {
        [TWICE] = "freed already",
        [TWICE_ADOPTED] = "not a block of this task",
        [FOREIGN] = "not a block of this task",
        [STALE] = "not a block of this task",
        [INSIDE] = "not a block of this task",
        [ODD] = "not aligned",
        [OVERWRITTEN] = "not a block of this task",
        [GIVEN] = "given away",
        [KEPT] = "only memory that was given away",
    };
    for (enum mistake mistake = 0; mistake < MISTAKES; mistake++) {
        int         status;
        const char *text = harness_child(make_mistake, &mistake, &status);
        CHECK(status != 0);
        if (strstr(text, texts[mistake]) == NULL) CHECK_STR(text, texts[mistake]);
    }
}

TEST("a task with a few hundred bytes holds one KiB")
{
    struct jrt_heap *heap = heap_new(1 << 20);
    for (size_t size = 16; size <= 64; size += 16) CHECK(jrt_heap_alloc(heap, &cache, size));
    CHECK_EQ(stats(heap).chunks, 1);
    CHECK(stats(heap).held_bytes <= 1024);
    heap_end(heap);
}

TEST("freed memory goes back to the system, whatever its sizes and in whatever order")
{
    enum { COUNT = 4000 };
    static void     *blocks[COUNT];
    struct jrt_heap *heap = heap_new(1 << 30);
    for (size_t size = 16; size <= 8000; size = size * 2 + 8) {
        for (int i = 0; i < COUNT; i++) blocks[i] = jrt_heap_alloc(heap, &cache, size);
        CHECK(stats(heap).held_bytes >= COUNT * size);
        for (int i = 0; i < COUNT; i++) {
            jrt_heap_free(heap, &cache, blocks[(i * 1237) % COUNT]);
        }
        CHECK_EQ(stats(heap).live_bytes, 0);
        /* What is too little for a sweep, and chunks that always stay. */
        CHECK(stats(heap).held_bytes <= JRT_SWEEP_MIN + 3 * 65536);
    }
    heap_end(heap);
}

TEST("blocks survive the sweeps around them")
{
    enum { COUNT = 3000, KEEP = 50 };
    static char     *blocks[COUNT], *kept[KEEP * 20];
    struct jrt_heap *heap = heap_new(1 << 30);
    int              many = 0;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < COUNT; i++) {
            blocks[i] = jrt_heap_alloc(heap, &cache, 50 + (size_t)(i % 7) * 100);
        }
        for (int i = 0; i < COUNT; i++) {
            if (i % (COUNT / KEEP) == round) {
                fill(blocks[i], 50, (size_t)many);
                kept[many++] = blocks[i];
            } else {
                jrt_heap_free(heap, &cache, blocks[i]);
            }
        }
    }
    for (int i = 0; i < many; i++) CHECK(filled(kept[i], 50, (size_t)i));
    for (int i = 0; i < many; i++) jrt_heap_free(heap, &cache, kept[i]);
    CHECK_EQ(stats(heap).live_bytes, 0);
    heap_end(heap);
}

TEST("caches and the depot keep no more than their bounds")
{
    enum { HEAPS = 200 };
    static struct jrt_heap *heaps[HEAPS];
    struct jrt_heap        *heap = heap_new(1 << 30);
    for (int i = 0; i < HEAPS; i++) {
        heaps[i] = jrt_heap_open(&cache, NULL, NULL);
        for (int k = 0; k < 40; k++) CHECK(jrt_heap_alloc(heaps[i], &cache, 4000) != NULL);
    }
    for (int i = 0; i < HEAPS; i++) jrt_heap_close(heaps[i], &cache);
    for (unsigned kind = 0; kind < JRT_CHUNK_KINDS; kind++) {
        CHECK(cache.count[kind] <= cached_max[kind]);
        CHECK(depot.bytes[kind] <= depot.max_bytes);
    }
    CHECK(depot.bytes[0] > 0 && depot.bytes[3] > 0);

    /* Another worker begins with the chunks that this one returned. */
    struct jrt_heap_cache second;
    size_t                before = depot.bytes[0];
    jrt_heap_cache_init(&second, &depot);
    allocations_left = 0;
    struct jrt_heap *fed = jrt_heap_open(&second, NULL, NULL);
    allocations_left = -1;
    CHECK(fed != NULL && depot.bytes[0] < before);
    jrt_heap_close(fed, &second);
    jrt_heap_cache_fini(&second);
    heap_end(heap);
}

TEST("a scrubbing heap leaves nothing behind")
{
    heap_end(heap_new(1 << 20));
    jrt_heap_depot_init(&depot, 1 << 20);
    jrt_heap_cache_init(&cache, &depot);
    struct jrt_heap *heap = jrt_heap_open(&cache, &scrubbing, NULL);
    for (int i = 0; i < 50; i++) memset(jrt_heap_alloc(heap, &cache, 400), 0x5a, 400);
    jrt_heap_close(heap, &cache);
    for (unsigned kind = 0; kind < JRT_CHUNK_KINDS; kind++) {
        for (struct jrt_chunk *c = cache.idle[kind]; c != NULL; c = c->next) {
            for (size_t i = JRT_CHUNK_HEAD; i < jrt_chunk_bytes(kind); i++) {
                CHECK_EQ(((char *)c)[i], 0);
            }
        }
    }
    jrt_heap_cache_fini(&cache);
    jrt_heap_depot_fini(&depot);
}

static volatile char sink;

static void use_after_free(void *argument)
{
    struct jrt_heap *heap = heap_new(1 << 20);
    char            *block = jrt_heap_alloc(heap, &cache, 100);
    if (*(int *)argument == 0) jrt_heap_free(heap, &cache, block);
    sink = block[*(int *)argument];
}

TEST("AddressSanitizer reports a use after free and a read past the end inside a chunk")
{
    if (!JRT_ASAN) SKIP("built without AddressSanitizer");
    for (int at = 0; at <= 100; at += 100) {
        int         status;
        const char *text = harness_child(use_after_free, &at, &status);
        CHECK(status != 0);
        CHECK(strstr(text, "use-after-poison") != NULL);
    }
}

TEST("random allocating, growing and freeing keeps contents and the owner's books")
{
    enum { SLOTS = 300, STEPS = 60000 };
    static struct {
        char  *block;
        size_t size, seed;
    } slots[SLOTS];
    struct jrt_rng rng;
    jrt_rng_seed(&rng, 11);
    struct jrt_heap *heap = heap_new(1 << 22);
    size_t           live = 0;
    for (int i = 0; i < STEPS; i++) {
        size_t at = jrt_rng_below(&rng, SLOTS);
        size_t size = jrt_rng_below(&rng, jrt_rng_below(&rng, 50) == 0 ? 40000 : 600);
        if (slots[at].block != NULL) {
            CHECK(filled(slots[at].block, slots[at].size, slots[at].seed));
            live -= jrt_heap_cost(slots[at].size);
        }
        if (jrt_rng_below(&rng, 3) == 0) {
            jrt_heap_free(heap, &cache, slots[at].block);
            slots[at].block = NULL;
        } else {
            char *block = jrt_heap_realloc(heap, &cache, slots[at].block, size);
            if (block == NULL) { /* the purse is small on purpose */
                if (slots[at].block != NULL) live += jrt_heap_cost(slots[at].size);
            } else {
                size_t had = slots[at].block != NULL ? slots[at].size : 0;
                CHECK(filled(block, had < size ? had : size, slots[at].seed));
                fill(block, size, at);
                slots[at].block = block, slots[at].size = size, slots[at].seed = at;
                live += jrt_heap_cost(size);
            }
        }
        CHECK_EQ(purse.start - purse.left, live);
        CHECK_EQ(stats(heap).live_bytes, live);
    }
    heap_end(heap);
}

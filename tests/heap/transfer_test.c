/* SPDX-License-Identifier: MIT */
/* Blocks that change owners, on one thread. heap_stress.c uses many threads. */
#include "harness.h"

#include "heap/block.h"

#include <stdint.h>
#include <string.h>

struct purse {
    size_t left, start;
};

static bool may(void *owner, size_t bytes)
{
    struct purse *purse = owner;
    if (purse->left < bytes) return false;
    purse->left -= bytes;
    return true;
}

static void back(void *owner, size_t bytes)
{
    struct purse *purse = owner;
    purse->left += bytes;
    CHECK(purse->left <= purse->start);
}

static const struct jrt_heap_rules rules = {.may = may, .back = back};
static struct jrt_heap_depot       depot;
static struct jrt_heap_cache       here, there; /* the workers of giver and taker */
static struct purse                giver_purse, taker_purse;
static struct jrt_heap            *giver, *taker;

static void begin(size_t taker_bytes)
{
    giver_purse = (struct purse){1 << 24, 1 << 24};
    taker_purse = (struct purse){taker_bytes, taker_bytes};
    jrt_heap_depot_init(&depot, 1 << 20);
    jrt_heap_cache_init(&here, &depot);
    jrt_heap_cache_init(&there, &depot);
    giver = jrt_heap_open(&here, &rules, &giver_purse);
    taker = jrt_heap_open(&there, &rules, &taker_purse);
}

static void end_giver(void)
{
    jrt_heap_close(giver, &here);
    CHECK_EQ(giver_purse.left, giver_purse.start);
}

static void end_taker(void)
{
    jrt_heap_close(taker, &there);
    CHECK_EQ(taker_purse.left, taker_purse.start);
}

static void end(void)
{
    jrt_heap_cache_fini(&here);
    jrt_heap_cache_fini(&there);
    jrt_heap_depot_fini(&depot);
}

static struct jrt_heap_stats stats(const struct jrt_heap *heap)
{
    struct jrt_heap_stats now;
    jrt_heap_read(heap, &now);
    return now;
}

static const size_t sizes[] = {1, 100, 1000, 8200, 8201, 100000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

TEST("a detached block keeps its place and content, and its price moves with it")
{
    for (int i = 0; i < SIZES; i++) {
        begin(1 << 24);
        char *block = jrt_heap_alloc(giver, &here, sizes[i]);
        memset(block, 7, sizes[i]);
        jrt_heap_detach(giver, block);
        CHECK_EQ(giver_purse.left, giver_purse.start);
        CHECK_EQ(taker_purse.left, taker_purse.start);
        CHECK(jrt_heap_adopt(taker, block));
        CHECK_EQ(taker_purse.start - taker_purse.left, jrt_heap_cost(sizes[i]));
        CHECK(jrt_heap_usable(taker, block) >= sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++) CHECK_EQ(block[k], 7);
        jrt_heap_free(taker, &there, block);
        CHECK_EQ(taker_purse.left, taker_purse.start);
        end_giver();
        end_taker();
        end();
    }
}

TEST("a block outlives the heap that made it, and its last owner's end frees it")
{
    begin(1 << 24);
    char *blocks[SIZES];
    for (int i = 0; i < SIZES; i++) {
        blocks[i] = jrt_heap_alloc(giver, &here, sizes[i]);
        memset(blocks[i], i, sizes[i]);
        jrt_heap_detach(giver, blocks[i]);
    }
    end_giver(); /* while they are detached */
    for (int i = 0; i < SIZES; i++) CHECK(jrt_heap_adopt(taker, blocks[i]));
    for (int i = 0; i < SIZES; i++) {
        for (size_t k = 0; k < sizes[i]; k++) CHECK_EQ(blocks[i][k], i);
    }
    jrt_heap_free(taker, &there, blocks[1]);
    end_taker();
    uint32_t chunks = 0;
    for (unsigned kind = 0; kind < JRT_CHUNK_KINDS; kind++) chunks += here.count[kind];
    for (unsigned kind = 0; kind < JRT_CHUNK_KINDS; kind++) chunks += there.count[kind];
    CHECK(chunks >= 4); /* the chunks of both heaps */
    end();
}

TEST("a block that its adopter refused stays detached, and can be adopted or discarded")
{
    for (int i = 0; i < SIZES; i++) {
        begin(jrt_heap_cost(sizes[i]) - 1);
        void *block = jrt_heap_alloc(giver, &here, sizes[i]);
        jrt_heap_detach(giver, block);
        CHECK(!jrt_heap_adopt(taker, block));
        CHECK_EQ(taker_purse.left, taker_purse.start);
        if (i % 2 == 0) {
            jrt_heap_discard(&there, block);
        } else {
            CHECK(jrt_heap_adopt(giver, block)); /* back to its first owner */
            jrt_heap_free(giver, &here, block);
        }
        end_giver();
        end_taker();
        end();
    }
}

TEST("tasks may hand a block on again and again")
{
    begin(1 << 24);
    for (int i = 0; i < SIZES; i++) {
        char *block = jrt_heap_alloc(giver, &here, sizes[i]);
        *block = (char)i;
        for (int round = 0; round < 10; round++) {
            jrt_heap_detach(giver, block);
            CHECK(jrt_heap_adopt(taker, block));
            jrt_heap_detach(taker, block);
            CHECK(jrt_heap_adopt(giver, block));
        }
        CHECK_EQ(*block, i);
        if (i % 2 == 0) jrt_heap_free(giver, &here, block);
    }
    CHECK_EQ(stats(taker).live_bytes, 0);
    CHECK_EQ(stats(taker).adopted, 0);
    end_giver();
    end_taker();
    end();
}

TEST("an adopted block can grow and shrink")
{
    begin(1 << 24);
    char *block = jrt_heap_alloc(giver, &here, 40);
    memset(block, 3, 40);
    jrt_heap_detach(giver, block);
    CHECK(jrt_heap_adopt(taker, block));
    static const size_t to[] = {44, 30, 3000, 20000, 64};
    for (int i = 0; i < 5; i++) {
        block = jrt_heap_realloc(taker, &there, block, to[i]);
        for (int k = 0; k < 30; k++) CHECK_EQ(block[k], 3);
        CHECK_EQ(taker_purse.start - taker_purse.left, jrt_heap_cost(to[i]));
    }
    end_giver();
    end_taker();
    end();
}

TEST("the register of adopted blocks survives freeing in any order")
{
    enum { COUNT = 500 };
    static uint32_t *blocks[COUNT];
    begin(1 << 24);
    for (uint32_t i = 0; i < COUNT; i++) {
        blocks[i] = jrt_heap_alloc(giver, &here, 24);
        *blocks[i] = i;
        jrt_heap_detach(giver, blocks[i]);
        CHECK(jrt_heap_adopt(taker, blocks[i]));
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t at = i * 211 % COUNT;
        CHECK_EQ(*blocks[at], at);
        jrt_heap_free(taker, &there, blocks[at]);
        CHECK_EQ(stats(taker).adopted, COUNT - 1 - i);
    }
    end_giver();
    end_taker();
    end();
}

TEST("a task that gives every block away for ever does not grow")
{
    begin(1 << 24);
    for (int i = 0; i < 200000; i++) {
        void *block = jrt_heap_alloc(giver, &here, 16 + (size_t)(i % 5) * 50);
        jrt_heap_detach(giver, block);
        CHECK(jrt_heap_adopt(taker, block));
        jrt_heap_free(taker, &there, block);
    }
    CHECK(stats(giver).held_bytes <= 512 * 1024);
    CHECK(stats(taker).held_bytes <= 2048);
    end_giver();
    end_taker();
    end();
}

TEST("a heap that swept keeps the chunks whose blocks other tasks own")
{
    enum { COUNT = 4000 };
    static char *blocks[COUNT];
    begin(1 << 24);
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = jrt_heap_alloc(giver, &here, 200);
        memset(blocks[i], i, 200);
        if (i % 400 == 0) {
            jrt_heap_detach(giver, blocks[i]);
            CHECK(jrt_heap_adopt(taker, blocks[i]));
        }
    }
    for (int i = 0; i < COUNT; i++) {
        if (i % 400 != 0) jrt_heap_free(giver, &here, blocks[i]);
    }
    for (int i = 0; i < COUNT; i += 400) {
        for (int k = 0; k < 200; k++) CHECK_EQ(blocks[i][k], (char)i);
        jrt_heap_free(taker, &there, blocks[i]);
    }
    /* The next sweep finds all blocks back. */
    for (int i = 0; i < COUNT; i++) blocks[i] = jrt_heap_alloc(giver, &here, 200);
    for (int i = 0; i < COUNT; i++) jrt_heap_free(giver, &here, blocks[i]);
    CHECK(stats(giver).held_bytes <= JRT_SWEEP_MIN + 3 * 65536);
    end_giver();
    end_taker();
    end();
}

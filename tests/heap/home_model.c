/* SPDX-License-Identifier: MIT */
/*
 * Blocks return to their chunk ([chunk-away]) while their heap sweeps or ends, in all orders of all
 * atomic steps. The code is the shipped code, except for what happens to a chunk that is given
 * back. Each chunk is given back at most once, and no thread touches it afterwards. Broken variants
 * show that the model finds mistakes.
 *
 * checks: [chunk-away], [home-push]
 */
#include "model.h"

#include "heap/block.h"

#include <stdlib.h>

static void give(struct jrt_heap_cache *cache, struct jrt_chunk *chunk);

#define jrt_chunk_give give
#include "heap/heap.c"
#include "heap/large.c"
#include "heap/sweep.c"
#include "heap/transfer.c"

/* A broken sweep that does not ask whether a block is on its way back. */
#define is_empty broken_is_empty
#define doom broken_doom
#define filter broken_filter
#define next_sweep broken_next_sweep
#define is_quiet broken_is_quiet
#define carved_bytes broken_carved_bytes
#define survey broken_survey
#define start_over broken_start_over
#define bytes_on_lists broken_bytes_on_lists
#define give_doomed broken_give_doomed
#define jrt_heap_sweep broken_sweep
#undef jrt_load_acquire
#define jrt_load_acquire(object) ((void)(object), 0u)
void broken_sweep(struct jrt_heap *heap, struct jrt_heap_cache *cache);
#include "heap/sweep.c"
#undef jrt_heap_sweep

enum { AWAY = 2, GONE_MAX = 16, GONE = 0x5a5a };

static struct {
    struct jrt_heap  *heap;
    void             *blocks[AWAY]; /* of the second chunk */
    struct jrt_chunk *chunk;
    struct jrt_chunk *gone[GONE_MAX];
    int               gone_count;
    int               sweeps;
    void              (*sweep)(struct jrt_heap *heap, struct jrt_heap_cache *cache);
    bool              ends;
} world;

/* After this, a thread that still counts there changes the number. */
static void give(struct jrt_heap_cache *cache, struct jrt_chunk *chunk)
{
    (void)cache;
    jrt_unpoison(chunk, jrt_chunk_bytes(chunk->kind));
    for (int i = 0; i < world.gone_count; i++) MODEL_CHECK(world.gone[i] != chunk);
    world.gone[world.gone_count++] = chunk;
    atomic_store(&chunk->away, GONE);
    atomic_store(&chunk->returned, NULL);
}

static bool is_gone(const struct jrt_chunk *chunk)
{
    for (int i = 0; i < world.gone_count; i++) {
        if (world.gone[i] == chunk) return true;
    }
    return false;
}

/* Four chunks. Two blocks of the second are away, and all others are free. */
static void set_up(void *state)
{
    enum { BLOCKS = 40, SIZE = 500 };
    void *blocks[BLOCKS];
    (void)state;
    world.gone_count = 0;
    world.heap = jrt_heap_open(NULL, NULL, NULL);
    for (int i = 0; i < BLOCKS; i++) blocks[i] = jrt_heap_alloc(world.heap, NULL, SIZE);
    CHECK_EQ(world.heap->chunk_count, 4);
    world.chunk = jrt_block_chunk(blocks[3], jrt_block_word(blocks[3]));
    for (int i = 0, away = 0; i < BLOCKS; i++) {
        bool here = jrt_block_chunk(blocks[i], jrt_block_word(blocks[i])) == world.chunk;
        if (here && away < AWAY) {
            world.blocks[away++] = blocks[i];
            jrt_heap_detach(world.heap, blocks[i]);
        } else {
            jrt_heap_free(world.heap, NULL, blocks[i]);
        }
    }
    CHECK_EQ(world.gone_count, 0);
}

static void owner(void *state, int self)
{
    (void)state, (void)self;
    for (int i = 0; i < world.sweeps; i++) world.sweep(world.heap, NULL);
    if (world.ends) jrt_heap_close(world.heap, NULL);
}

static void first(void *state, int self)
{
    (void)state, (void)self;
    jrt_heap_discard(NULL, world.blocks[0]);
}

static void second(void *state, int self)
{
    (void)state, (void)self;
    jrt_heap_discard(NULL, world.blocks[1]);
}

static void check(void *state)
{
    (void)state;
    if (!world.ends) {
        jrt_heap_sweep(world.heap, NULL); /* all blocks are back: it finds the chunk empty */
        MODEL_CHECK(is_gone(world.chunk));
        jrt_heap_close(world.heap, NULL);
    }
    MODEL_CHECK(world.gone_count == 4);
    for (int i = 0; i < world.gone_count; i++) {
        MODEL_CHECK(atomic_load(&world.gone[i]->away) == GONE);
        MODEL_CHECK(atomic_load(&world.gone[i]->returned) == NULL);
    }
}

static void tear_down(void *state)
{
    (void)state;
    for (int i = 0; i < world.gone_count; i++) free(world.gone[i]);
}

static struct model_scenario scenario(const char *name)
{
    return (struct model_scenario){
        .name = name,
        .state = &world,
        .setup = set_up,
        .bodies = {owner, first, second},
        .names = {"owner", "first", "second"},
        .check = check,
        .teardown = tear_down,
        .memory = MODEL_PSO,
    };
}

TEST("a chunk whose blocks return while its heap ends is given back once, by the last thread")
{
    struct model_scenario ending = scenario("two come home, the heap ends");
    world.sweep = jrt_heap_sweep, world.sweeps = 0, world.ends = true;
    model_pass(&ending);
}

TEST("a heap that sweeps keeps a chunk while a block is on its way back to it")
{
    struct model_scenario sweeping = scenario("two come home, the heap sweeps twice");
    world.sweep = jrt_heap_sweep, world.sweeps = 2, world.ends = false;
    model_pass(&sweeping);
}

TEST("sweeping and then ending gives every chunk back once")
{
    struct model_scenario both = scenario("two come home, the heap sweeps and ends");
    world.sweep = jrt_heap_sweep, world.sweeps = 1, world.ends = true;
    model_pass(&both);
}

TEST("the model finds a sweep that ignores blocks on their way back")
{
    struct model_scenario broken = scenario("a careless sweep");
    world.sweep = broken_sweep, world.sweeps = 2, world.ends = true;
    model_find(&broken, "GONE");
}

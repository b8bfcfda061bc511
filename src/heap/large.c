/* SPDX-License-Identifier: MIT */
/*
 * Large and over-aligned blocks. malloc serves each, with a record before it that links it to its
 * heap. They move between heaps by relinking.
 */
#include "heap/block.h"
#include "plat/world.h"

#include <stdlib.h>
#include <string.h>

void jrt_large_link(struct jrt_heap *heap, void *block)
{
    struct jrt_large *large = jrt_large_of(block);
    jrt_list_push_front(&heap->large, &large->link);
    large->word = jrt_block_tag(heap->cookie, block) | jrt_word_sized(0, JRT_CLASS_LARGE);
    heap->held += large->held;
}

void jrt_large_unlink(struct jrt_heap *heap, void *block)
{
    struct jrt_large *large = jrt_large_of(block);
    jrt_list_remove(&large->link);
    heap->held -= large->held;
}

void *jrt_large_take(struct jrt_heap *heap, size_t alignment, size_t size, bool zeroed)
{
    size_t cost = jrt_heap_cost(size);
    size_t slack = alignment > JRT_UNIT ? alignment - JRT_UNIT : 0;
    size_t held = sizeof(struct jrt_large) + slack + cost;
    char  *base = zeroed ? jrt_calloc(1, held) : jrt_malloc(held);
    if (base == NULL) return NULL;
    char *block = base + sizeof(struct jrt_large);
    block += -(uintptr_t)block & (alignment - 1);
    *jrt_large_of(block) =
        (struct jrt_large){.base = base, .cost = cost, .held = held, .scrub = heap->scrub};
    jrt_large_link(heap, block);
    return block;
}

void jrt_large_give(struct jrt_heap *heap, void *block)
{
    jrt_large_unlink(heap, block);
    jrt_large_drop(block);
}

void jrt_large_drop(void *block)
{
    struct jrt_large *large = jrt_large_of(block);
    void             *base = large->base;
    large->word &= ~JRT_STATE_MASK; /* FREE: a second free is detected until malloc reuses it */
    if (large->scrub) memset(block, 0, large->cost);
    free(base);
}

void *jrt_large_resize(struct jrt_heap *heap, void *block, size_t size)
{
    struct jrt_large *large = jrt_large_of(block);
    size_t            cost = jrt_heap_cost(size), held = sizeof *large + cost;
    if (large->base != large || large->scrub) { /* realloc would lose the alignment, or leave a copy
                                                 * of the content */
        void *moved = jrt_large_take(heap, JRT_UNIT, size, false);
        if (moved == NULL) return NULL;
        memcpy(moved, block, large->cost < size ? large->cost : size);
        jrt_large_give(heap, block);
        return moved;
    }
    jrt_large_unlink(heap, block);
    struct jrt_large *moved = jrt_realloc(large, held);
    if (moved != NULL) {
        moved->base = moved;
        moved->cost = cost;
        moved->held = held;
        large = moved;
    }
    jrt_large_link(heap, large + 1);
    return moved == NULL ? NULL : (void *)(moved + 1);
}

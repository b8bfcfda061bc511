/* SPDX-License-Identifier: MIT */
/*
 * A heap of small blocks.
 *
 * A block is the next bytes of the current chunk, or the youngest in the free list of its class.
 * The word before it names its chunk, class, charge and owner ([block-word]). Freeing checks the
 * word and pushes the block. It touches neither the chunk nor neighbouring blocks. When a task
 * ends, its heap returns the chunks without looking at blocks.
 *
 * Chunks grow from 1 KiB to 64 KiB. The heap itself shares the first one with the first blocks. So
 * a million tasks with a few hundred bytes each need a million KiB, and a task with megabytes needs
 * few chunks. If a block does not fit, the heap cuts the rest of the chunk into free blocks.
 *
 * Rejected: chunks of one class each, as thread caches have them. They return memory block by
 * block, but a task with one block of each of ten sizes holds ten pages. Instead a heap with much
 * idle memory sweeps (sweep.c).
 *
 * Rejected: merging neighbours. It would double the cost of a free, and the end of the task does
 * the same for nothing.
 *
 * Limits: once a small block is reused, nothing detects a use after free, not even ASan. The cookie
 * detects mistakes, not attacks.
 */
#include "heap/block.h"

#include "base/rng.h"
#include "plat/peek.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint16_t jrt_strides[JRT_CLASSES] = {
    32,   48,   64,   80,   96,   112,  128,  144,  160,  176,  192,  208,
    224,  240,  256,  272,  336,  400,  464,  528,  656,  784,  912,  1040,
    1296, 1552, 1808, 2064, 2576, 3088, 3600, 4112, 5136, 6160, 7184, 8208,
};

/* No request is that large, and sums with it do not wrap. */
#define SIZE_LIMIT ((size_t)PTRDIFF_MAX / 2)

static _Atomic(uint64_t) opened_without_cache;

void jrt_heap_complain(const struct jrt_heap *heap, const void *block, uint64_t word)
{
    char        what[160];
    const char *why = "it is not a block of this task, or its header was overwritten";
    uint64_t    live = jrt_block_tag(heap->cookie, block) & JRT_OWNER_MASK;
    if ((word & JRT_OWNER_MASK) == (live & JRT_TAG_MASK)) {
        why = "it was freed already";
    } else if (((word ^ jrt_block_tag(JRT_COOKIE_AWAY, block)) & JRT_OWNER_MASK) == 0) {
        why = "it was given away";
    }
    (void)snprintf(what, sizeof what, "memory %p cannot be freed or used: %s", block, why);
    jrt_contract_broken(what, __FILE__, __LINE__);
}

static inline uint64_t checked_word(const void *block)
{
    jrt_contract((uintptr_t)block % JRT_UNIT == 0,
                 "a pointer that is not aligned to 16 bytes is not a block");
    return (uint64_t)jrt_peek_word((const uint64_t *)block - 1); /* the pointer may be invalid */
}

static inline bool is_live(const struct jrt_heap *heap, const void *block, uint64_t word)
{
    return jrt_likely(((word ^ jrt_block_tag(heap->cookie, block)) & JRT_OWNER_MASK) == 0);
}

/* Whether the block is in the register of adopted blocks. For a pointer that is not a block of this
 * heap, does not return. */
static bool is_adopted(const struct jrt_heap *heap, const void *block, uint64_t word)
{
    uint64_t place = word & JRT_TAG_MASK;
    if ((word & JRT_STATE_MASK) != JRT_STATE(JRT_BLOCK_ADOPTED) || place >= heap->adopted_count ||
        heap->adopted[place] != block) {
        jrt_heap_complain(heap, block, word);
    }
    return true;
}

static uint64_t new_cookie(const struct jrt_heap *heap, struct jrt_heap_cache *cache)
{
    /* relaxed: only needs numbers that differ. */
    uint64_t number = cache != NULL ? ++cache->opened
                                    : jrt_fetch_add_relaxed(&opened_without_cache, 1) | 1ull << 63;
    number ^= (uintptr_t)heap << 8;
    return (jrt_splitmix64(&number) & JRT_TAG_MASK) | JRT_STATE(JRT_BLOCK_LIVE);
}

/* The offset of the first block of a chunk, `reserved` bytes behind its head. */
static inline size_t first_block(size_t reserved)
{
    return (JRT_CHUNK_HEAD + reserved + 8 + JRT_UNIT - 1) & ~(size_t)(JRT_UNIT - 1);
}

static void begin_chunk(struct jrt_heap *heap, struct jrt_chunk *chunk, size_t reserved)
{
    chunk->next = heap->chunks;
    chunk->scrub = heap->scrub;
    heap->chunks = heap->current = chunk;
    heap->chunk_count++;
    heap->held += jrt_chunk_bytes(chunk->kind);
    heap->bump = (char *)chunk + first_block(reserved);
    heap->limit = (char *)chunk + jrt_chunk_bytes(chunk->kind) + 8; /* where the word of a next
                                                                     * block would end */
}

void jrt_heap_rewind(struct jrt_heap *heap)
{
    struct jrt_chunk *first = heap->chunks;
    heap->chunks = NULL;
    heap->chunk_count = 0;
    heap->held -= jrt_chunk_bytes(first->kind);
    begin_chunk(heap, first, sizeof *heap);
}

struct jrt_heap *jrt_heap_open(struct jrt_heap_cache *cache, const struct jrt_heap_rules *rules,
                               void *owner)
{
    struct jrt_chunk *chunk = jrt_chunk_take(cache, 0);
    if (chunk == NULL) return NULL;
    struct jrt_heap *heap = (struct jrt_heap *)(chunk + 1);
    jrt_unpoison(heap, sizeof *heap);
    *heap = (struct jrt_heap){.owner = owner, .sweep_at = JRT_SWEEP_MIN};
    if (rules != NULL) {
        heap->may = rules->may;
        heap->back = rules->back;
        heap->scrub = rules->scrub;
    }
    jrt_list_init(&heap->large);
    heap->cookie = new_cookie(heap, cache);
    begin_chunk(heap, chunk, sizeof *heap);
    return heap;
}

void jrt_heap_close(struct jrt_heap *heap, struct jrt_heap_cache *cache)
{
    if (heap->live > 0) jrt_heap_refund(heap, heap->live);
    while (!jrt_list_empty(&heap->large)) {
        jrt_large_give(heap, jrt_list_entry(heap->large.next, struct jrt_large, link) + 1);
    }
    for (uint32_t i = 0; i < heap->adopted_count; i++) {
        jrt_block_send_home(cache, heap->adopted[i], jrt_block_word(heap->adopted[i]));
    }
    free(heap->adopted);
    for (struct jrt_chunk *chunk = heap->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next; /* the last chunk holds the heap itself */
        if (chunk->lends) {
            /* acq_rel: see [chunk-away]. It pairs with jrt_block_send_home. */
            if (jrt_fetch_or_acq_rel(&chunk->away, JRT_AWAY_ORPHAN) != 0) continue;
        }
        jrt_chunk_give(cache, chunk);
    }
}

size_t jrt_heap_carved(const struct jrt_heap *heap)
{
    size_t reserved = heap->current->next == NULL ? sizeof *heap : 0;
    return (size_t)(heap->bump - (char *)heap->current) - first_block(reserved);
}

/* Leaves the current chunk and cuts its rest into free blocks. */
static void end_chunk(struct jrt_heap *heap)
{
    size_t rest;
    while ((rest = (size_t)(heap->limit - heap->bump)) >= jrt_strides[0]) {
        uint32_t units = (uint32_t)(rest / JRT_UNIT);
        unsigned grade = units >= 513 ? JRT_CLASSES - 1 : jrt_class_of_units(units);
        if (jrt_strides[grade] > rest) grade--;
        uint64_t offset = (uint64_t)(heap->bump - (char *)heap->current) / JRT_UNIT;
        jrt_block_mark(heap->bump, offset << JRT_OFFSET_SHIFT | jrt_word_sized(0, grade));
        jrt_block_link(heap->bump, heap->free[grade]);
        heap->free[grade] = heap->bump;
        heap->idle += jrt_strides[grade];
        heap->bump += jrt_strides[grade];
    }
    heap->current->carved = (uint32_t)jrt_heap_carved(heap);
}

/* Makes sure that a block of this class is available. False: no memory. */
__attribute__((noinline)) static bool refill(struct jrt_heap *heap, struct jrt_heap_cache *cache,
                                             unsigned grade)
{
    enum { LOOK_AT = 8 }; /* chunks that lend; later refills look at the others */
    for (int i = 0; i < LOOK_AT && heap->lenders != NULL; i++) {
        if (heap->lender == NULL) heap->lender = heap->lenders;
        jrt_heap_collect(heap, heap->lender);
        heap->lender = heap->lender->next_lender;
        if (heap->free[grade] != NULL) return true;
    }
    unsigned kind = heap->chunk_count < JRT_CHUNK_KINDS ? heap->chunk_count : JRT_CHUNK_KINDS - 1;
    while (jrt_chunk_bytes(kind) < (size_t)jrt_strides[grade] * 2 + 64 &&
           kind < JRT_CHUNK_KINDS - 1) {
        kind++;
    }
    struct jrt_chunk *chunk = jrt_chunk_take(cache, kind);
    if (chunk == NULL) return false;
    end_chunk(heap);
    begin_chunk(heap, chunk, 0);
    return true;
}

/* Takes a small block; the caller charges. */
static inline void *take(struct jrt_heap *heap, struct jrt_heap_cache *cache, size_t size)
{
    unsigned grade = jrt_class_of(size);
    size_t   stride = jrt_strides[grade];
    uint64_t offset;
    char    *block = heap->free[grade];
    if (block == NULL && jrt_unlikely((size_t)(heap->limit - heap->bump) < stride)) {
        if (!refill(heap, cache, grade)) return NULL;
        block = heap->free[grade];
    }
    if (block != NULL) {
        heap->free[grade] = jrt_block_next(block);
        heap->idle -= stride;
        offset = jrt_block_word(block) & JRT_OFFSET_MASK;
    } else {
        block = heap->bump;
        heap->bump += stride;
        offset = (uint64_t)(block - (char *)heap->current) / JRT_UNIT << JRT_OFFSET_SHIFT;
    }
    jrt_block_mark(block, jrt_block_tag(heap->cookie, block) | offset |
                              jrt_word_sized(jrt_heap_cost(size), grade));
    jrt_unpoison(block, size);
    return block;
}

/* Puts a live small block back; the caller refunds. */
static inline void put(struct jrt_heap *heap, struct jrt_heap_cache *cache, void *block,
                       uint64_t word)
{
    unsigned grade = jrt_word_class(word);
    jrt_block_mark(block, word & ~JRT_STATE_MASK); /* FREE */
    jrt_block_link(block, heap->free[grade]);
    heap->free[grade] = block;
    heap->idle += jrt_strides[grade];
    jrt_poison(block, jrt_strides[grade] - 8u);
    if (jrt_unlikely(heap->idle > heap->sweep_at)) jrt_heap_sweep(heap, cache);
}

void *jrt_heap_alloc(struct jrt_heap *heap, struct jrt_heap_cache *cache, size_t size)
{
    if (jrt_unlikely(size > JRT_SMALL_MAX)) {
        return jrt_heap_alloc_aligned(heap, cache, JRT_UNIT, size);
    }
    if (!jrt_heap_charge(heap, jrt_heap_cost(size))) return NULL;
    void *block = take(heap, cache, size);
    if (jrt_unlikely(block == NULL)) jrt_heap_refund(heap, jrt_heap_cost(size));
    return block;
}

void *jrt_heap_alloc_zeroed(struct jrt_heap *heap, struct jrt_heap_cache *cache, size_t size)
{
    void *block;
    if (size <= JRT_SMALL_MAX) {
        block = jrt_heap_alloc(heap, cache, size);
        return block == NULL ? NULL : memset(block, 0, size);
    }
    if (size > SIZE_LIMIT || !jrt_heap_charge(heap, jrt_heap_cost(size))) return NULL;
    block = jrt_large_take(heap, JRT_UNIT, size, true);
    if (block == NULL) jrt_heap_refund(heap, jrt_heap_cost(size));
    return block;
}

void *jrt_heap_alloc_aligned(struct jrt_heap *heap, struct jrt_heap_cache *cache, size_t alignment,
                             size_t size)
{
    jrt_demand(alignment != 0 && (alignment & (alignment - 1)) == 0,
               "the alignment must be a power of two");
    if (alignment <= JRT_UNIT && size <= JRT_SMALL_MAX) return jrt_heap_alloc(heap, cache, size);
    if (size > SIZE_LIMIT || alignment > SIZE_LIMIT / 2) return NULL;
    if (!jrt_heap_charge(heap, jrt_heap_cost(size))) return NULL;
    void *block = jrt_large_take(heap, alignment, size, false);
    if (block == NULL) jrt_heap_refund(heap, jrt_heap_cost(size));
    return block;
}

void jrt_heap_free(struct jrt_heap *heap, struct jrt_heap_cache *cache, void *block)
{
    if (block == NULL) return;
    uint64_t word = checked_word(block);
    if (jrt_likely(is_live(heap, block, word))) {
        if (jrt_likely(jrt_word_class(word) != JRT_CLASS_LARGE)) {
            jrt_heap_refund(heap, jrt_word_cost(word));
            put(heap, cache, block, word);
        } else {
            jrt_heap_refund(heap, jrt_large_of(block)->cost);
            jrt_large_give(heap, block);
        }
    } else if (is_adopted(heap, block, word)) {
        jrt_heap_refund(heap, jrt_word_cost(word));
        jrt_adopted_forget(heap, block, word);
        jrt_block_send_home(cache, block, word);
    }
}

size_t jrt_heap_usable(struct jrt_heap *heap, void *block)
{
    uint64_t word = checked_word(block);
    if (!is_live(heap, block, word)) (void)is_adopted(heap, block, word);
    if (jrt_word_class(word) == JRT_CLASS_LARGE) return jrt_large_of(block)->cost;
    jrt_unpoison(block, jrt_word_usable(word));
    return jrt_word_usable(word);
}

/* Whether a small block with this word can get this size without moving. */
static bool fits(uint64_t word, size_t size)
{
    unsigned grade = jrt_word_class(word);
    if (size > JRT_SMALL_MAX || grade == JRT_CLASS_LARGE) return false;
    unsigned wanted = jrt_class_of(size);
    return wanted == grade || (wanted < grade && jrt_strides[wanted] * 2 > jrt_strides[grade]);
}

/* Moves the content to a new block and frees the old one; the caller charges. */
static void *move(struct jrt_heap *heap, struct jrt_heap_cache *cache, void *block, uint64_t word,
                  size_t size)
{
    bool  large = jrt_word_class(word) == JRT_CLASS_LARGE;
    void *to = size > JRT_SMALL_MAX ? jrt_large_take(heap, JRT_UNIT, size, false)
                                    : take(heap, cache, size);
    if (to == NULL) return NULL;
    size_t had = large ? jrt_large_of(block)->cost : jrt_word_usable(word);
    if (!large) jrt_unpoison(block, had);
    memcpy(to, block, had < size ? had : size);
    if (large) {
        jrt_large_give(heap, block);
    } else if ((word & JRT_STATE_MASK) == JRT_STATE(JRT_BLOCK_LIVE)) {
        put(heap, cache, block, word);
    } else {
        jrt_adopted_forget(heap, block, word);
        jrt_block_send_home(cache, block, word);
    }
    return to;
}

void *jrt_heap_realloc(struct jrt_heap *heap, struct jrt_heap_cache *cache, void *block,
                       size_t size)
{
    if (block == NULL) return jrt_heap_alloc(heap, cache, size);
    uint64_t word = checked_word(block);
    if (!is_live(heap, block, word)) (void)is_adopted(heap, block, word);
    if (size > SIZE_LIMIT) return NULL;

    bool   large = jrt_word_class(word) == JRT_CLASS_LARGE;
    size_t had = large ? jrt_large_of(block)->cost : jrt_word_cost(word);
    size_t cost = jrt_heap_cost(size);
    if (cost > had && !jrt_heap_charge(heap, cost - had)) return NULL;

    void *result = block;
    if (fits(word, size)) {
        jrt_block_mark(block, (word & ~JRT_COST_MASK) | jrt_word_sized(cost, 0));
        jrt_poison(block, jrt_strides[jrt_word_class(word)] - 8u);
        jrt_unpoison(block, size);
    } else if (large && size > JRT_SMALL_MAX) {
        result = jrt_large_resize(heap, block, size);
    } else {
        result = move(heap, cache, block, word, size);
    }
    if (result == NULL && cost > had) jrt_heap_refund(heap, cost - had);
    if (result != NULL && cost < had) jrt_heap_refund(heap, had - cost);
    return result;
}

void jrt_heap_read(const struct jrt_heap *heap, struct jrt_heap_stats *out)
{
    *out = (struct jrt_heap_stats){
        .live_bytes = heap->live,
        .held_bytes = heap->held,
        .idle_bytes = heap->idle,
        .chunks = heap->chunk_count,
        .adopted = heap->adopted_count,
    };
}

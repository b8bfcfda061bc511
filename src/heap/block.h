/* SPDX-License-Identifier: MIT */
/*
 * Blocks: the word before each block, and the size classes. For the files of this room.
 */
#ifndef JRT_HEAP_BLOCK_H
#define JRT_HEAP_BLOCK_H

#include "base/assert.h"
#include "base/list.h"
#include "heap/chunk.h"
#include "heap/heap.h"
#include "heap/poison.h"

/*
 * [block-word]  the eight bytes before a block describe it:
 *
 *     bits 0-33   tag: the block's address, mixed with its heap's cookie. If adopted: its place in
 *                 the heap's register
 *     bits 34-45  the distance from the start of its chunk, in units of 16
 *     bits 46-55  the charged size, in units of 16
 *     bits 56-61  size class (its grade); JRT_CLASS_LARGE: a struct jrt_large lies before it
 *     bits 62-63  enum jrt_block_state
 *
 *   Freeing compares tag and state at once. The comparison fails for a pointer that is not a block,
 *   for a block of another or an ended heap, and for a free block. One wrong pointer in 2^34
 *   passes.
 */
enum jrt_block_state {
    JRT_BLOCK_FREE = 0,
    JRT_BLOCK_LIVE = 1,    /* belongs to the heap that made it */
    JRT_BLOCK_ADOPTED = 2, /* belongs to another heap; always small */
    JRT_BLOCK_AWAY = 3,    /* between two heaps */
};

#define JRT_TAG_MASK ((UINT64_C(1) << 34) - 1)
#define JRT_OFFSET_SHIFT 34
#define JRT_OFFSET_MASK (UINT64_C(0xfff) << JRT_OFFSET_SHIFT)
#define JRT_COST_SHIFT 46
#define JRT_COST_MASK (UINT64_C(0x3ff) << JRT_COST_SHIFT)
#define JRT_CLASS_SHIFT 56
#define JRT_CLASS_MASK (UINT64_C(0x3f) << JRT_CLASS_SHIFT)
#define JRT_STATE_SHIFT 62
#define JRT_STATE_MASK (UINT64_C(3) << JRT_STATE_SHIFT)
#define JRT_OWNER_MASK (JRT_STATE_MASK | JRT_TAG_MASK)

#define JRT_STATE(state) ((uint64_t)(state) << JRT_STATE_SHIFT)
#define JRT_COOKIE_AWAY (JRT_STATE(JRT_BLOCK_AWAY) | UINT64_C(0x2a57e1b2c))

enum {
    JRT_UNIT = 16,
    JRT_CLASSES = 36,
    JRT_CLASS_LARGE = 63,
    JRT_SMALL_MAX = 8208 - 8,   /* bytes; malloc serves larger blocks */
    JRT_SWEEP_MIN = 256 * 1024, /* [heap-idle] */
};

/* Bytes from one block of a class to the next: in steps of 16 up to 272, then four classes to each
 * doubling. The extra 16 bytes let a power of two and its word just fit. */
extern const uint16_t jrt_strides[JRT_CLASSES];

/* The class for blocks of `units` * 16 bytes, 2 to 513 units. The units include the word. */
static inline unsigned jrt_class_of_units(uint32_t units)
{
    if (jrt_likely(units <= 17)) return units - 2;
    unsigned log2 = 31 - (unsigned)__builtin_clz(units - 2);
    return 16 + (log2 - 4) * 4 + (((units - 2) >> (log2 - 2)) & 3);
}

static inline unsigned jrt_class_of(size_t size)
{
    uint32_t units = (uint32_t)(size + 8 + JRT_UNIT - 1) / JRT_UNIT;
    return jrt_class_of_units(units < 2 ? 2 : units);
}

static JRT_UNCHECKED uint64_t jrt_block_word(const void *block)
{
    return ((const uint64_t *)block)[-1];
}

static JRT_UNCHECKED void jrt_block_mark(void *block, uint64_t word)
{
    ((uint64_t *)block)[-1] = word;
}

static JRT_UNCHECKED void *jrt_block_next(const void *block) { return *(void *const *)block; }

static JRT_UNCHECKED void jrt_block_link(void *block, void *next) { *(void **)block = next; }

static inline uint64_t jrt_block_tag(uint64_t cookie, const void *block)
{
    return cookie ^ (((uintptr_t)block >> 4) & JRT_TAG_MASK);
}

static inline unsigned jrt_word_class(uint64_t word)
{
    return (unsigned)((word & JRT_CLASS_MASK) >> JRT_CLASS_SHIFT);
}

static inline size_t jrt_word_cost(uint64_t word)
{
    return (size_t)((word & JRT_COST_MASK) >> JRT_COST_SHIFT) * JRT_UNIT;
}

static inline uint64_t jrt_word_sized(size_t cost, unsigned grade)
{
    return (uint64_t)(cost / JRT_UNIT) << JRT_COST_SHIFT | (uint64_t)grade << JRT_CLASS_SHIFT;
}

static inline struct jrt_chunk *jrt_block_chunk(void *block, uint64_t word)
{
    size_t offset = (size_t)((word & JRT_OFFSET_MASK) >> JRT_OFFSET_SHIFT) * JRT_UNIT;
    return (struct jrt_chunk *)((char *)block - offset);
}

/* How many bytes a small block with this word can hold. */
static inline size_t jrt_word_usable(uint64_t word)
{
    size_t cost = jrt_word_cost(word), room = jrt_strides[jrt_word_class(word)] - 8u;
    return cost < room ? cost : room;
}

/* Lies before a large block. The last field is the block's word. */
struct jrt_large {
    struct jrt_list_node link; /* in heap->large */
    void                *base; /* from malloc */
    size_t               cost; /* bytes charged, which is also its capacity */
    size_t               held; /* bytes requested from malloc */
    uint64_t             scrub;
    void                *tab; /* for the detacher, while the block is detached */
    uint64_t             word;
};

_Static_assert(sizeof(struct jrt_large) == 64, "its end is a block's begin");

static inline struct jrt_large *jrt_large_of(void *block) { return (struct jrt_large *)block - 1; }

/*
 * The heap lies in its first chunk.
 *
 * A new block of any size is the next bytes of the current chunk. A freed block waits in the list
 * of its class. The heap does not merge blocks and does not keep chunks by class. So a task with a
 * few blocks of many sizes needs one small chunk.
 */
struct jrt_heap {
    char             *bump, *limit; /* in the current chunk: next block, end */
    struct jrt_chunk *current;
    uint64_t          cookie; /* with JRT_BLOCK_LIVE; [block-word] */
    bool              (*may)(void *owner, size_t bytes);
    void              (*back)(void *owner, size_t bytes);
    void             *owner;
    size_t            live;     /* bytes charged */
    size_t            idle;     /* bytes on free lists */
    size_t            sweep_at; /* the next sweep starts at this many idle bytes */
    void             *free[JRT_CLASSES];

    struct jrt_chunk    *chunks;  /* newest first; the last one holds the heap */
    struct jrt_chunk    *lenders; /* the chunks among them that lend */
    struct jrt_chunk    *lender;  /* the next one to look at */
    struct jrt_list_node large;
    void               **adopted; /* the register: blocks of other heaps that this heap owns */
    uint32_t             adopted_count, adopted_room;
    uint32_t             chunk_count;
    bool                 scrub;
    size_t               held; /* bytes of chunks, large blocks and the register */
};

/* heap.c */
size_t jrt_heap_carved(const struct jrt_heap *heap); /* bytes of the current chunk */
void   jrt_heap_rewind(struct jrt_heap *heap);       /* keeps only the first chunk, all free */
__attribute__((noreturn, cold)) void jrt_heap_complain(const struct jrt_heap *heap,
                                                       const void *block, uint64_t word);

static inline bool jrt_heap_charge(struct jrt_heap *heap, size_t cost)
{
    if (heap->may != NULL && !heap->may(heap->owner, cost)) return false;
    heap->live += cost;
    return true;
}

static inline void jrt_heap_refund(struct jrt_heap *heap, size_t cost)
{
    heap->live -= cost;
    if (heap->back != NULL) heap->back(heap->owner, cost);
}

/* large.c; the caller charges. */
void *jrt_large_take(struct jrt_heap *heap, size_t alignment, size_t size, bool zeroed);
void  jrt_large_give(struct jrt_heap *heap, void *block);
void *jrt_large_resize(struct jrt_heap *heap, void *block, size_t size);
void  jrt_large_drop(void *block);
void  jrt_large_link(struct jrt_heap *heap, void *block);
void  jrt_large_unlink(struct jrt_heap *heap, void *block);

/* transfer.c */
void jrt_adopted_forget(struct jrt_heap *heap, void *block, uint64_t word);
void jrt_block_send_home(struct jrt_heap_cache *cache, void *block, uint64_t word);
void jrt_heap_collect(struct jrt_heap *heap, struct jrt_chunk *chunk);

/* sweep.c */
void jrt_heap_sweep(struct jrt_heap *heap, struct jrt_heap_cache *cache);

#endif

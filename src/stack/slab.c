/* SPDX-License-Identifier: MIT */
/*
 * Slabs of stacks.
 *
 *     | book page(s) | gap | guard | stack 0 | guard | stack 1 | ...
 *
 * One mapping of about 32 MiB of address space holds up to 125 stacks. Its first page holds the
 * book about them. Memory is committed when it is touched. So a slab costs its book page, and a
 * started fiber costs the pages it touched. Guards are installed in batches when stacks are first
 * needed. The first slab uses batches of 16, so a program with three fibers pays for 16 guards.
 * Later slabs install all at once, because by then there are many fibers.
 *
 * The gap is never touched. It keeps a frame that is so large that it steps over the first guard
 * from writing into the book.
 *
 * Stacks return in any order. A wholly idle slab can be unmapped, which also frees its page tables.
 * In a partly used slab only the pages of idle stacks can be dropped. Idle neighbours are dropped
 * together, and the guards between them stay.
 *
 * Rejected:
 * - One mapping for each stack: the usual limit is 65,530 mappings.
 * - A book outside the slab: in the allocator's free lists it would outlive the memory it
 *   describes.
 * - Populating the first pages of a batch ahead of use: finding each page costs what it saves in
 *   faults. It takes 0.99 to 1.05 times as long as touching them, for 16 to 1000 at once, and
 *   commits memory that may stay unused.
 *
 * [slab-idle]  a slab is unmapped only when all its stacks are on its free list.
 *
 * Locks: everything here runs under the depot's lock, but for jrt_slab_unmap.
 */
#include "stack/slab.h"

#include "base/assert.h"
#include "stack/sanitizer.h"

enum {
    CARVE_FIRST = 16,
    SLAB_STACKS_MAX = 125, /* the books then fit in one page of 4 KiB */
};

_Static_assert(sizeof(struct jrt_slab) + SLAB_STACKS_MAX * sizeof(struct jrt_stack) <= 4096,
               "one page of books");
_Static_assert((int)SLAB_STACKS_MAX <= (int)JRT_RANGES_MAX, "a slab's ranges fit in one call");

static const size_t slab_bytes_wanted = (size_t)32 << 20;
static const size_t gap_bytes = (size_t)1 << 20;

static size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

void jrt_stack_class_init(struct jrt_stack_class *class, size_t promised_bytes, size_t more_bytes,
                          size_t guard_bytes)
{
    size_t stack_bytes = promised_bytes + more_bytes;
    size_t spacing = stack_bytes + guard_bytes;
    size_t count = slab_bytes_wanted / spacing;
    if (count < 1) count = 1;
    if (count > SLAB_STACKS_MAX) count = SLAB_STACKS_MAX;
    class->promised_bytes = promised_bytes;
    class->stack_bytes = stack_bytes;
    class->guard_bytes = guard_bytes;
    class->spacing = spacing;
    class->slab_stacks = (uint32_t)count;
    jrt_list_init(&class->partial);
    jrt_list_init(&class->full);
    jrt_list_init(&class->empty);
}

struct jrt_slab *jrt_slab_create(struct jrt_stack_class *class)
{
    size_t books = sizeof(struct jrt_slab) + class->slab_stacks * sizeof(struct jrt_stack);
    size_t front = round_up(books, jrt_page_bytes()) + gap_bytes;
    size_t bytes = front + class->slab_stacks * class->spacing;
    char  *mapping = jrt_map_reserve(bytes);
    if (mapping == NULL) return NULL;
    struct jrt_slab *slab = (struct jrt_slab *)mapping; /* zeroed by the kernel */
    slab->class = class;
    slab->base = mapping + front;
    slab->bytes = bytes;
    jrt_list_init(&slab->link);
    jrt_list_init(&slab->leaving);
    return slab;
}

void jrt_slab_retire(struct jrt_slab *slab, struct jrt_ladder *ladder)
{
    jrt_invariant("slab-idle", slab->given == 0);
    for (uint32_t i = 0; i < slab->carved; i++) {
        jrt_ladder_forget(ladder, (janus_guard)slab->stacks[i].guard, 1);
        jrt_sanitizer_stack_gone(&slab->stacks[i].valgrind_id);
    }
}

void jrt_slab_unmap(struct jrt_slab *slab) { jrt_map_release(slab, slab->bytes); }

janus_status jrt_slab_carve(struct jrt_slab *slab, struct jrt_ladder *ladder, struct iovec *scratch)
{
    const struct jrt_stack_class *class = slab->class;
    struct iovec *guards = scratch;
    size_t        wanted = class->slab_stacks - slab->carved;
    bool          first_slab = jrt_list_empty(&class->full);
    if (first_slab && wanted > CARVE_FIRST) wanted = CARVE_FIRST;
    char *first = slab->base + slab->carved * class->spacing;
    for (size_t i = 0; i < wanted; i++) {
        guards[i] = (struct iovec){first + i * class->spacing, class->guard_bytes};
    }

    janus_guard  rung;
    janus_status status;
    size_t       count = jrt_ladder_guard(ladder, guards, wanted, &rung, &status);
    if (count == 0) return status;
    /* The last stack first, so that the list gives them in the order of their addresses. */
    for (size_t i = count; i-- > 0;) {
        struct jrt_stack *stack = &slab->stacks[slab->carved + i];
        stack->top = first + (i + 1) * class->spacing;
        stack->slab = slab;
        stack->guard = (uint8_t)rung;
        stack->free = true;
        stack->next = slab->free_list;
        slab->free_list = stack;
        jrt_sanitizer_stack_born(&stack->valgrind_id, stack->top - class->stack_bytes, stack->top);
    }
    slab->carved += (uint32_t)count;
    return JANUS_OK;
}

size_t jrt_slab_purge(struct jrt_slab *slab, struct iovec *scratch)
{
    struct iovec *runs = scratch;
    size_t        count = 0;
    size_t        dropped = slab->idle_bytes;
    bool          in_run = false;
    for (uint32_t i = 0; i < slab->carved; i++) {
        struct jrt_stack *stack = &slab->stacks[i];
        bool              drop = stack->free && stack->warmth != JRT_COLD;
        if (drop && !in_run) runs[count++] = (struct iovec){jrt_stack_low(stack), 0};
        if (drop) {
            struct iovec *run = &runs[count - 1];
            run->iov_len = (size_t)(stack->top - (char *)run->iov_base);
            stack->warmth = JRT_COLD;
        }
        in_run = drop;
    }
    /* Refused for locked memory: the pages stay, and the next attempt comes after the stack's next
     * use. */
    if (count > 0 && !jrt_map_discard(runs, count)) dropped = 0;
    slab->idle_warm = 0;
    slab->idle_bytes = 0;
    return dropped;
}

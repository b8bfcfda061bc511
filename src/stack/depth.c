/* SPDX-License-Identifier: MIT */
/*
 * How deep a stack has been used. The stack's bytes show it afterwards.
 *
 * Fresh memory is zero and not resident. The lowest resident page with a byte other than zero marks
 * the depth. The error is at most the zeros at the lower end of a frame. The running fiber pays
 * nothing. A painted pattern would commit the whole stack.
 */
#include "stack/sanitizer.h"
#include "stack/stack.h"

#include <string.h>

enum {
    PAGES_AT_ONCE = 128, /* a small buffer: the caller may run on a small stack */
    CANARY_BYTES = 256,  /* frames with holes may step over fewer */
};

/* Volatile: another fiber owns the memory, so the compiler must read it as it is. */
JRT_SEES_FOREIGN_STACKS static const char *first_nonzero(const char *from, const char *to)
{
    jrt_sanitizer_scan_begin();
    const volatile uint64_t *word = (const volatile uint64_t *)from;
    const volatile uint64_t *end = (const volatile uint64_t *)to;
    while (word < end && *word == 0) word++;
    jrt_sanitizer_scan_end();
    return (const char *)word;
}

/* The lowest written address in a range of whole pages, or the range's end. */
static char *lowest_in(char *from, char *to)
{
    size_t        page = jrt_page_bytes();
    unsigned char resident[PAGES_AT_ONCE];
    for (char *at = from; at < to;) {
        size_t pages = (size_t)(to - at) / page;
        if (pages > PAGES_AT_ONCE) pages = PAGES_AT_ONCE;
        bool known = jrt_map_resident(at, pages * page, resident);
        for (size_t i = 0; i < pages; i++, at += page) {
            if (known && !(resident[i] & 1)) continue;
            const char *used = first_nonzero(at, at + page);
            if (used < at + page) return at + (used - at);
        }
    }
    return to;
}

size_t jrt_stack_high_water(const struct jrt_stack *stack)
{
    return (size_t)(stack->top - lowest_in(jrt_stack_low(stack), stack->top));
}

/* Not memset: this stack may carry another fiber's redzones. Pages that are zero already are not
 * written, so that they stay uncommitted. */
JRT_SEES_FOREIGN_STACKS static void zero(char *from, char *to)
{
    jrt_sanitizer_scan_begin();
    volatile uint64_t *word = (volatile uint64_t *)from;
    for (; word < (volatile uint64_t *)to; word++) {
        if (*word != 0) *word = 0;
    }
    jrt_sanitizer_scan_end();
}

/* Drops the pages, or writes zeros if the system refuses (locked memory). */
static void clear(char *from, char *to)
{
    struct iovec range = {from, (size_t)(to - from)};
    if (range.iov_len > 0 && !jrt_map_discard(&range, 1)) zero(from, to);
}

void jrt_stack_scrub(struct jrt_stack *stack)
{
    /* The top page will be used again at once, so it is zeroed in place. Deeper pages are dropped
     * without a look: a check for resident pages would miss swapped ones. */
    char *warm = stack->top - jrt_page_bytes();
    clear(jrt_stack_low(stack), warm);
    zero(warm, stack->top);
}

bool jrt_stack_intact(const struct jrt_stack *stack)
{
    if (stack->guard != JANUS_GUARD_CANARY) return true;
    const char *low = jrt_stack_low(stack);
    return first_nonzero(low - CANARY_BYTES, low) == low;
}

bool jrt_stack_intact_all(const struct jrt_stack *stack)
{
    if (stack->guard != JANUS_GUARD_CANARY) return true;
    char *low = jrt_stack_low(stack);
    return lowest_in(low - stack->slab->class->guard_bytes, low) == low;
}

void jrt_stack_mend(struct jrt_stack *stack)
{
    char *low = jrt_stack_low(stack);
    clear(low - stack->slab->class->guard_bytes, low);
}

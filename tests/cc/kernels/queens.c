/* SPDX-License-Identifier: MIT */
/* Queens on a board: recursion through a function pointer, bits, and an early return. */
#include "kernel.h"

typedef uint64_t (*place)(uint32_t columns, uint32_t left, uint32_t right, uint32_t full);

static uint64_t row(uint32_t columns, uint32_t left, uint32_t right, uint32_t full);

static volatile place next_row = row;

static uint64_t row(uint32_t columns, uint32_t left, uint32_t right, uint32_t full)
{
    if (columns == full) return 1;
    uint64_t found = 0;
    place    next = next_row;
    for (uint32_t free = full & ~(columns | left | right); free != 0; free &= free - 1) {
        uint32_t bit = free & -free;
        found += next(columns | bit, (left | bit) << 1, (right | bit) >> 1, full);
    }
    return found;
}

uint64_t kernel(void) { return row(0, 0, 0, (1u << ROUNDS(11, 7)) - 1); }

/* SPDX-License-Identifier: MIT */
/*
 * Each kernel is one file with one function. Its result shows that it computed the right thing.
 *
 * Races run kernels at full size. Tests define KERNEL_SHORT, and take a fraction of the time.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef KERNEL_SHORT
#define ROUNDS(full, few) (few)
#else
#define ROUNDS(full, few) (full)
#endif

uint64_t kernel(void);

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

#endif

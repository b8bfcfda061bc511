/* SPDX-License-Identifier: MIT */
/* One number for a sequence of numbers. Every bit of each number changes it, and so does their
 * order. It detects accidents. It does not resist a person that looks for two sequences with one
 * result. */
#ifndef JRT_BASE_HASH_H
#define JRT_BASE_HASH_H

#include <stdint.h>

/* Returns `hash` with one more number added. The odd factor loses no bits. The shift moves high
 * bits back down. */
static inline uint64_t jrt_hash_add(uint64_t hash, uint64_t number)
{
    uint64_t mixed = (hash ^ number) * UINT64_C(0xd6e8feb86659fd93) + UINT64_C(0x9e3779b97f4a7c15);
    return mixed ^ mixed >> 32;
}

#endif

/* SPDX-License-Identifier: MIT */
/* One number for a sequence of numbers: every bit of each, and their order, changes it. Against
 * accidents, not against those who look for two sequences with the same. */
#ifndef JRT_BASE_FOLD_H
#define JRT_BASE_FOLD_H

#include <stdint.h>

/* What comes after `hash` with one number more. An odd factor loses nothing; the shift brings what
 * the multiplication moved up back down. */
static inline uint64_t jrt_fold(uint64_t hash, uint64_t number)
{
    uint64_t mixed = (hash ^ number) * UINT64_C(0xd6e8feb86659fd93) + UINT64_C(0x9e3779b97f4a7c15);
    return mixed ^ mixed >> 32;
}

#endif

/* SPDX-License-Identifier: MIT */
/* The word that yield checks count down, for code that switches tasks. It is defined in ctx_*.S,
 * because assembly in C names it. */
#ifndef JRT_FIBER_FUEL_H
#define JRT_FIBER_FUEL_H

#include "base/assert.h"

#include <janusrt/yield.h>
#include <stdbool.h>

/* 0: a library without checks, to measure their cost. */
#ifndef JRT_CHECKED
#define JRT_CHECKED 1
#endif

static inline __attribute__((always_inline)) int64_t jrt_fuel_get(void)
{
    if (!JRT_CHECKED) return 0;
    uint64_t at;
    int64_t  left;
    JANUS_FUEL_OFFSET(at);
#if defined(__x86_64__)
    __asm__ volatile("movq %%fs:(%1), %0" : "=r"(left) : "r"(at));
#else
    __asm__ volatile("mrs %0, tpidr_el0\n\tldr %0, [%0, %1]" : "=&r"(left) : "r"(at));
#endif
    return left;
}

static inline __attribute__((always_inline)) void jrt_fuel_set(int64_t fuel)
{
    if (!JRT_CHECKED) return;
    uint64_t at;
    JANUS_FUEL_OFFSET(at);
#if defined(__x86_64__)
    __asm__ volatile("movq %1, %%fs:(%0)" : : "r"(at), "r"(fuel));
#else
    uint64_t thread;
    __asm__ volatile("mrs %0, tpidr_el0\n\tstr %2, [%0, %1]" : "=&r"(thread) : "r"(at), "r"(fuel));
#endif
}

/* Puts back a unit that was taken and not used. */
static inline __attribute__((always_inline)) void jrt_fuel_put_back(void)
{
    if (JRT_CHECKED) jrt_fuel_set(jrt_fuel_get() + 1);
}

/* Takes one unit. False: none was left, and none was taken. On x86-64 the flags decide: xadd, which
 * also returns the rest, takes six times as long. */
static inline __attribute__((always_inline)) bool jrt_fuel_one(void)
{
    if (!JRT_CHECKED) return true;
#if defined(__x86_64__)
    uint64_t at;
    bool     paid;
    JANUS_FUEL_OFFSET(at);
    __asm__ volatile("subq $1, %%fs:(%1)" : "=@ccns"(paid) : "r"(at));
#else
    bool paid = janus_fuel_take(1) >= 0;
#endif
    if (jrt_likely(paid)) return true;
    jrt_fuel_put_back();
    return false;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Tells AddressSanitizer which bytes of a chunk are in use. So it reports a use after free, or a
 * write past a block's end, as for any other memory. The heap's own words between the blocks are
 * poisoned too. Only functions that are exempt from the checks read and write them.
 */
#ifndef JRT_HEAP_POISON_H
#define JRT_HEAP_POISON_H

#include <stddef.h>

#if JRT_ASAN
#include <sanitizer/asan_interface.h>
#define JRT_UNCHECKED __attribute__((no_sanitize("address"), noinline, unused))
#else
#define JRT_UNCHECKED inline __attribute__((always_inline))
#endif

static inline void jrt_poison(const void *at, size_t bytes)
{
    (void)at, (void)bytes;
#if JRT_ASAN
    __asan_poison_memory_region(at, bytes);
#endif
}

static inline void jrt_unpoison(const void *at, size_t bytes)
{
    (void)at, (void)bytes;
#if JRT_ASAN
    __asan_unpoison_memory_region(at, bytes);
#endif
}

#endif

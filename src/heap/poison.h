/* SPDX-License-Identifier: MIT */
/*
 * Tells AddressSanitizer which bytes of a chunk belong to somebody, so that it reports a use after
 * free, or a write past the end of a block, as for any other memory. The heap's own words lie
 * between the blocks and are poisoned too; they are read and written by functions that are not
 * checked.
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

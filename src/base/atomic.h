/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations with the memory order in their name. A caller writes, beside each, why that
 * order is enough and what it pairs with; tools/tidy.py counts.
 */
#ifndef JRT_BASE_ATOMIC_H
#define JRT_BASE_ATOMIC_H

#include <stdatomic.h>

#define jrt_load_relaxed(object) atomic_load_explicit(object, memory_order_relaxed)
#define jrt_load_acquire(object) atomic_load_explicit(object, memory_order_acquire)
#define jrt_store_relaxed(object, value) atomic_store_explicit(object, value, memory_order_relaxed)
#define jrt_store_release(object, value) atomic_store_explicit(object, value, memory_order_release)
#define jrt_fetch_add_relaxed(object, value)                                                       \
    atomic_fetch_add_explicit(object, value, memory_order_relaxed)
#define jrt_fetch_sub_relaxed(object, value)                                                       \
    atomic_fetch_sub_explicit(object, value, memory_order_relaxed)
#define jrt_cas_relaxed(object, expected, value)                                                   \
    atomic_compare_exchange_strong_explicit(object, expected, value, memory_order_relaxed,         \
                                            memory_order_relaxed)
#define jrt_exchange_acquire(object, value)                                                        \
    atomic_exchange_explicit(object, value, memory_order_acquire)

#endif

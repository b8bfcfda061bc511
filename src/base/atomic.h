/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations with the memory order in their name. Beside each, the caller writes why the
 * order is enough and what it pairs with. tools/tidy.py checks this.
 *
 * All operations consist of the five macros in capital letters. A model test replaces these five,
 * so that every other thread may run before each operation (tests/harness/model.h).
 */
#ifndef JRT_BASE_ATOMIC_H
#define JRT_BASE_ATOMIC_H

#include <stdatomic.h>

#define JRT_LOAD(object, order) atomic_load_explicit(object, memory_order_##order)
#define jrt_load_relaxed(object) JRT_LOAD(object, relaxed)
#define jrt_load_acquire(object) JRT_LOAD(object, acquire)
#define jrt_load_seq_cst(object) JRT_LOAD(object, seq_cst)

#define JRT_STORE(object, value, order) atomic_store_explicit(object, value, memory_order_##order)
#define jrt_store_relaxed(object, value) JRT_STORE(object, value, relaxed)
#define jrt_store_release(object, value) JRT_STORE(object, value, release)
#if JRT_QEMU
/* QEMU emulates seq_cst stores and loads of 64-bit ARM as release and acquire: a later load may
 * overtake the store. So a fence follows there. */
#define jrt_store_seq_cst(object, value)                                                           \
    (JRT_STORE(object, value, seq_cst), atomic_thread_fence(memory_order_seq_cst))
#else
#define jrt_store_seq_cst(object, value) JRT_STORE(object, value, seq_cst)
#endif

#define JRT_RMW(verb, object, value, order)                                                        \
    atomic_##verb##_explicit(object, value, memory_order_##order)
#define jrt_exchange_relaxed(object, value) JRT_RMW(exchange, object, value, relaxed)
#define jrt_exchange_acquire(object, value) JRT_RMW(exchange, object, value, acquire)
#define jrt_exchange_release(object, value) JRT_RMW(exchange, object, value, release)
#define jrt_exchange_acq_rel(object, value) JRT_RMW(exchange, object, value, acq_rel)
#define jrt_exchange_seq_cst(object, value) JRT_RMW(exchange, object, value, seq_cst)
#define jrt_fetch_add_relaxed(object, value) JRT_RMW(fetch_add, object, value, relaxed)
#define jrt_fetch_add_acq_rel(object, value) JRT_RMW(fetch_add, object, value, acq_rel)
#define jrt_fetch_add_seq_cst(object, value) JRT_RMW(fetch_add, object, value, seq_cst)
#define jrt_fetch_sub_relaxed(object, value) JRT_RMW(fetch_sub, object, value, relaxed)
#define jrt_fetch_sub_release(object, value) JRT_RMW(fetch_sub, object, value, release)
#define jrt_fetch_sub_acq_rel(object, value) JRT_RMW(fetch_sub, object, value, acq_rel)
#define jrt_fetch_sub_seq_cst(object, value) JRT_RMW(fetch_sub, object, value, seq_cst)
#define jrt_fetch_or_relaxed(object, value) JRT_RMW(fetch_or, object, value, relaxed)
#define jrt_fetch_or_release(object, value) JRT_RMW(fetch_or, object, value, release)
#define jrt_fetch_or_acq_rel(object, value) JRT_RMW(fetch_or, object, value, acq_rel)
#define jrt_fetch_or_seq_cst(object, value) JRT_RMW(fetch_or, object, value, seq_cst)
#define jrt_fetch_and_acq_rel(object, value) JRT_RMW(fetch_and, object, value, acq_rel)
#define jrt_fetch_and_seq_cst(object, value) JRT_RMW(fetch_and, object, value, seq_cst)

/*
 * Add to an object of 64 bits, and add 1 to one of 32 bits, with a load and a store. Only the
 * calling thread may write the object. On x86-64 that is one instruction without a lock. The second
 * also says whether the sum is zero. Relaxed.
 */
#if defined(__x86_64__) && !JRT_TSAN && !JRT_ASAN
#define jrt_own_add(object, value)                                                                 \
    __asm__("addq %1, %0" : "+m"(*(object)) : "er"((int64_t)(value)) : "cc")
#define jrt_own_next_is_zero(object)                                                               \
    __extension__({                                                                                \
        bool zero_;                                                                                \
        __asm__("addl $1, %0" : "+m"(*(object)), "=@ccz"(zero_));                                  \
        zero_;                                                                                     \
    })
#else
#define jrt_own_add(object, value)                                                                 \
    atomic_store_explicit(object, atomic_load_explicit(object, memory_order_relaxed) + (value),    \
                          memory_order_relaxed)
#define jrt_own_next_is_zero(object)                                                               \
    (jrt_own_add(object, 1), atomic_load_explicit(object, memory_order_relaxed) == 0)
#endif

/* A strong compare-and-swap. The name gives the order of success. The order of failure drops the
 * release: relaxed for relaxed and release, acquire for acquire and acq_rel, seq_cst for
 * seq_cst. */
#define JRT_CAS(object, expected, value, order, failed)                                            \
    atomic_compare_exchange_strong_explicit(object, expected, value, memory_order_##order,         \
                                            memory_order_##failed)
#define jrt_cas_relaxed(object, expected, value) JRT_CAS(object, expected, value, relaxed, relaxed)
#define jrt_cas_acquire(object, expected, value) JRT_CAS(object, expected, value, acquire, acquire)
#define jrt_cas_release(object, expected, value) JRT_CAS(object, expected, value, release, relaxed)
#define jrt_cas_acq_rel(object, expected, value) JRT_CAS(object, expected, value, acq_rel, acquire)
#define jrt_cas_seq_cst(object, expected, value) JRT_CAS(object, expected, value, seq_cst, seq_cst)

/* Use a fence only where no other operation will do: ThreadSanitizer does not see fences. */
#define JRT_FENCE(order) atomic_thread_fence(memory_order_##order)
#define jrt_fence_seq_cst() JRT_FENCE(seq_cst)

/* Orders what the compiler emits. It does not order the CPU. */
#define jrt_fence_compiler_seq_cst() atomic_signal_fence(memory_order_seq_cst)

#endif

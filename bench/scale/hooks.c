/* SPDX-License-Identifier: MIT */
/*
 * What gcc calls with -fsanitize=thread: before plain accesses, and instead of atomic operations.
 * The library of ThreadSanitizer is not linked. These are its functions.
 *
 * An atomic operation is done when its core is the one behind. So the operations of all cores are
 * done in the order of their clocks.
 */
#include "machine.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define WHO __builtin_return_address(0)

#define PLAIN(bytes)                                                                               \
    void __tsan_read##bytes(void *at)                                                              \
    {                                                                                              \
        if (machine_on) machine_read(at, WHO);                                                     \
    }                                                                                              \
    void __tsan_write##bytes(void *at)                                                             \
    {                                                                                              \
        if (machine_on) machine_write(at, WHO);                                                    \
    }                                                                                              \
    void __tsan_unaligned_read##bytes(void *at)                                                    \
    {                                                                                              \
        if (machine_on) machine_read(at, WHO);                                                     \
    }                                                                                              \
    void __tsan_unaligned_write##bytes(void *at)                                                   \
    {                                                                                              \
        if (machine_on) machine_write(at, WHO);                                                    \
    }                                                                                              \
    void __tsan_volatile_read##bytes(void *at)                                                     \
    {                                                                                              \
        if (machine_on) machine_read(at, WHO);                                                     \
    }                                                                                              \
    void __tsan_volatile_write##bytes(void *at)                                                    \
    {                                                                                              \
        if (machine_on) machine_write(at, WHO);                                                    \
    }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_init(void) {}
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void) {}
void __tsan_vptr_update(void **at, void *value) { (void)at, (void)value; }

void __tsan_read_range(void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes && machine_on; i += 64) machine_read((char *)at + i, WHO);
}

void __tsan_write_range(void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes && machine_on; i += 64) machine_write((char *)at + i, WHO);
}

static void before_load(const volatile void *at, const void *who)
{
    if (!machine_on) return;
    machine_point();
    machine_read(at, who);
    machine_point();
}

static void before_change(const volatile void *at, const void *who)
{
    if (!machine_on) return;
    machine_rmw(at, who);
    machine_point();
}

#define CHANGE(bits, type, verb)                                                                   \
    type __tsan_atomic##bits##_##verb(volatile type *at, type value, int order)                    \
    {                                                                                              \
        (void)order;                                                                               \
        before_change(at, WHO);                                                                    \
        return __atomic_##verb(at, value, __ATOMIC_SEQ_CST);                                       \
    }

#define ATOMIC(bits, type)                                                                         \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)                            \
    {                                                                                              \
        (void)order;                                                                               \
        before_load(at, WHO);                                                                      \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                              \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                     \
    {                                                                                              \
        if (!machine_on) {                                                                         \
            __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                         \
        } else if (order == __ATOMIC_SEQ_CST) {                                                    \
            before_change(at, WHO);                                                                \
            __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                         \
        } else {                                                                                   \
            machine_store(at, value, bits / 8, WHO);                                               \
        }                                                                                          \
    }                                                                                              \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order)                  \
    {                                                                                              \
        (void)order;                                                                               \
        before_change(at, WHO);                                                                    \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                              \
    CHANGE(bits, type, fetch_add)                                                                  \
    CHANGE(bits, type, fetch_sub)                                                                  \
    CHANGE(bits, type, fetch_and)                                                                  \
    CHANGE(bits, type, fetch_or)                                                                   \
    CHANGE(bits, type, fetch_xor)                                                                  \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected,           \
                                                      type value, int order, int failed)           \
    {                                                                                              \
        (void)order, (void)failed;                                                                 \
        before_change(at, WHO);                                                                    \
        return __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST,               \
                                           __ATOMIC_SEQ_CST);                                      \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *expected, type value, \
                                                    int order, int failed)                         \
    {                                                                                              \
        (void)order, (void)failed;                                                                 \
        before_change(at, WHO);                                                                    \
        return __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST,               \
                                           __ATOMIC_SEQ_CST);                                      \
    }

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order)
{
    if (!machine_on || order != __ATOMIC_SEQ_CST) return;
    machine_drain();
    machine_spend(machine_costs.fence);
}

void __tsan_atomic_signal_fence(int order) { (void)order; }

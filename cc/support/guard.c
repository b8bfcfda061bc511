/* SPDX-License-Identifier: MIT */
/*
 * The guards of C++'s static locals. Another task that comes by on the same thread, while one
 * initialises, would wait for itself. This file is linked only into programs that have such locals.
 */
#include "cc/support/support.h"

#include <stdbool.h>

int  __cxa_guard_acquire(uint64_t *guard);
void __cxa_guard_release(uint64_t *guard);
void __cxa_guard_abort(uint64_t *guard);

int  janus_cc___cxa_guard_acquire(uint64_t *guard);
void janus_cc___cxa_guard_release(uint64_t *guard);
void janus_cc___cxa_guard_abort(uint64_t *guard);

/* libstdc++: another task initialises, and a deterministic run must not wait for it. */
static bool is_pending(const uint64_t *guard)
{
    uint64_t state = __atomic_load_n(guard, __ATOMIC_RELAXED);
    return (state & 0xff) == 0 && (state & 0x100) != 0;
}

int janus_cc___cxa_guard_acquire(uint64_t *guard)
{
    janus_hold_begin();
    while (is_pending(guard) && janus_hold_pass()) {
    }
    int result = __cxa_guard_acquire(guard);
    if (result == 0) janus_hold_end(); /* it is initialised already */
    return result;
}

void janus_cc___cxa_guard_release(uint64_t *guard)
{
    __cxa_guard_release(guard);
    janus_hold_end();
}

void janus_cc___cxa_guard_abort(uint64_t *guard)
{
    __cxa_guard_abort(guard);
    janus_hold_end();
}

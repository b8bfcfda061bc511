/* SPDX-License-Identifier: MIT */
/*
 * The guards of C++'s static locals. Another task that comes by on the same thread, while one
 * initialises, would wait for itself. This file is linked only into programs that have such locals.
 */
#include "cc/support/support.h"

int  __cxa_guard_acquire(uint64_t *guard);
void __cxa_guard_release(uint64_t *guard);
void __cxa_guard_abort(uint64_t *guard);

int  janus_cc___cxa_guard_acquire(uint64_t *guard);
void janus_cc___cxa_guard_release(uint64_t *guard);
void janus_cc___cxa_guard_abort(uint64_t *guard);

int janus_cc___cxa_guard_acquire(uint64_t *guard)
{
    janus_hold_begin();
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

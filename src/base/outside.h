/* SPDX-License-Identifier: MIT */
/*
 * Things that no task's limits bound: schedulers, pools of fibers, tables of capabilities, logs,
 * traces. A task that a capability, a pool or a scope restricts makes one only with the right
 * executor.configure; else it would be free in a world of its own. The rooms that make them lie
 * below the room that knows tasks, so they ask through here.
 */
#ifndef JRT_BASE_OUTSIDE_H
#define JRT_BASE_OUTSIDE_H

#include "base/atomic.h"

#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>

/* Who knows whether the caller may; the first scheduler sets it. NULL: there are no tasks yet. */
extern _Atomic(janus_status (*)(void)) jrt_outside_hook;

/* OK, or why the caller must not make such a thing: NO_EXECUTOR_CAP, CAP_…. */
static inline janus_status jrt_outside_ask(void)
{
    /* acquire: pairs with its being set. */
    janus_status (*hook)(void) = jrt_load_acquire(&jrt_outside_hook);
    return hook != NULL ? hook() : JANUS_OK;
}

/* Ends the caller's turn if it is over, [turn-call]; set with the hook above. */
extern _Atomic(void (*)(bool takes_long)) jrt_outside_turn_hook;

/*
 * How a public call of a room below tasks begins: it tolls. A call that may take longer than a
 * microsecond says so, and looks at the clock. The task may go on on another thread afterwards:
 * the caller holds no lock, and reads what belongs to its thread after this call.
 */
static inline void jrt_outside_call(void)
{
    /* acquire: pairs with its being set. */
    void (*hook)(bool) = jrt_load_acquire(&jrt_outside_turn_hook);
    if (hook != NULL) hook(false);
}

static inline void jrt_outside_call_long(void)
{
    /* acquire: pairs with its being set. */
    void (*hook)(bool) = jrt_load_acquire(&jrt_outside_turn_hook);
    if (hook != NULL) hook(true);
}

#endif

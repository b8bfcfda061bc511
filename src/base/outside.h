/* SPDX-License-Identifier: MIT */
/*
 * Things that no task's limits bound: schedulers, pools of fibers, tables of capabilities, logs and
 * traces. A task restricted by a capability, a pool or a scope needs the right executor.configure
 * to make one. Otherwise it could escape its limits in a scheduler of its own. The rooms that make
 * these things lie below the room of tasks, so they ask through these hooks.
 */
#ifndef JRT_BASE_OUTSIDE_H
#define JRT_BASE_OUTSIDE_H

#include "base/atomic.h"

#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>

/* Decides whether the caller may make such a thing. The first scheduler sets it. NULL: there are no
 * tasks yet. */
extern _Atomic(janus_status (*)(void)) jrt_outside_hook;

/* Returns OK, or why the caller may not make such a thing: NO_EXECUTOR_CAP, CAP_…. */
static inline janus_status jrt_outside_ask(void)
{
    /* acquire: pairs with the store that sets the hook. */
    janus_status (*hook)(void) = jrt_load_acquire(&jrt_outside_hook);
    return hook != NULL ? hook() : JANUS_OK;
}

/* Ends the caller's turn if it is over, [turn-call]. Set together with the hook above. */
extern _Atomic(void (*)(bool takes_long)) jrt_outside_turn_hook;

/*
 * A public call of a room below tasks begins with this: it counts a toll. A call that may take
 * longer than a microsecond uses the long version, which reads the clock. Afterwards the task may
 * run on another thread. So the caller holds no lock, and reads data of its thread only after this
 * call.
 */
static inline void jrt_outside_call(void)
{
    /* acquire: pairs with the store that sets the hook. */
    void (*hook)(bool) = jrt_load_acquire(&jrt_outside_turn_hook);
    if (hook != NULL) hook(false);
}

static inline void jrt_outside_call_long(void)
{
    /* acquire: pairs with the store that sets the hook. */
    void (*hook)(bool) = jrt_load_acquire(&jrt_outside_turn_hook);
    if (hook != NULL) hook(true);
}

#endif

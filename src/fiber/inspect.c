/* SPDX-License-Identifier: MIT */
/* Questions about fibers, and texts for reports. */
#include "base/atomic.h"
#include "base/options.h"
#include "base/outside.h"
#include "fiber/fiber.h"

#include <inttypes.h>
#include <stdio.h>

uint64_t janus_fiber_id(const janus_fiber *fiber) { return fiber != NULL ? fiber->id : 0; }

const char *janus_fiber_name(const janus_fiber *fiber)
{
    return fiber != NULL ? fiber->name : NULL;
}

janus_fiber_state janus_fiber_state_of(const janus_fiber *fiber)
{
    if (fiber == NULL) return JANUS_FIBER_STATE_COMPLETED;
    /* relaxed: the state of a moment that may have passed. */
    return (janus_fiber_state)jrt_load_relaxed(&fiber->state);
}

const char *janus_fiber_state_name(janus_fiber_state state)
{
    switch (state) {
    case JANUS_FIBER_STATE_NEW: return "new";
    case JANUS_FIBER_STATE_RUNNING: return "running";
    case JANUS_FIBER_STATE_SUSPENDED: return "suspended";
    case JANUS_FIBER_STATE_COMPLETED: return "completed";
    case JANUS_FIBER_STATE_PANICKED: return "panicked";
    }
    return "?";
}

janus_status janus_fiber_stack_inspect(const janus_fiber *fiber, janus_fiber_stack_info *out)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (fiber == NULL || out == NULL) return JANUS_INVALID;
    if (!jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    const struct jrt_stack_class *class = &fiber->pool->depot.classes[fiber->stack_class];
    janus_fiber_stack_info info = {
        .reserved_bytes = class->stack_bytes,
        .guard_bytes = class->guard_bytes,
    };
    const struct jrt_stack *stack = fiber->stack;
    if (stack != NULL) {
        info.high_water_bytes = jrt_stack_high_water(stack);
        info.low = jrt_stack_low(stack);
        info.guard = (janus_guard)stack->guard;
    }
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

/* Writes "task 0x200000001 "name"", as in dumps, or "fiber 7 "name"". */
static void put_who(const janus_panic_detail *panic, char *buffer, size_t size)
{
    if (panic->task) {
        (void)snprintf(buffer, size, "task %#" PRIx64 " \"%s\"", panic->fiber_id, panic->name);
    } else {
        (void)snprintf(buffer, size, "fiber %" PRIu64 " \"%s\"", panic->fiber_id, panic->name);
    }
}

size_t janus_panic_text(const janus_panic_detail *panic, char *buffer, size_t size)
{
    jrt_outside_call(); /* [turn-call] */
    char who[32 + sizeof panic->name];
    int  length = 0;
    if (panic != NULL) put_who(panic, who, sizeof who);
    janus_panic_kind kind = panic != NULL ? panic->kind : JANUS_PANIC_KIND_NONE;
    switch (kind) {
    case JANUS_PANIC_KIND_NONE: length = snprintf(buffer, size, "no panic"); break;
    case JANUS_PANIC_KIND_EXPLICIT:
        length = snprintf(buffer, size, "%s panicked: %s", who, panic->message);
        break;
    case JANUS_PANIC_KIND_STACK_OVERFLOW:
        length = snprintf(buffer, size,
                          "%s overflowed its %zu KiB stack (%s guard, at %p, code %p): look for "
                          "unbounded recursion or large locals, or give it more by %s.stack_bytes",
                          who, panic->stack_bytes / 1024, janus_guard_name(panic->guard),
                          panic->fault_address, panic->code_address,
                          panic->task ? "janus_spawn_options" : "janus_fiber_options");
        break;
    }
    return length > 0 ? (size_t)length : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Stacks, seen from outside: what guards their lower end, how much is in use, how deep a fiber has
 * been. A fiber gets its stack when it first runs and gives it back when it ends.
 *
 * A task has at least the stack_bytes that it was promised, wherever it runs: alone, on its
 * parent's stack, or on another worker. A task may have up to an eighth more.
 */
#ifndef JANUSRT_STACK_H
#define JANUSRT_STACK_H

#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A guard stops every frame that is not larger than the guard. Compile code with larger frames with
 * -fstack-clash-protection, which touches every page on the way down.
 *
 * The guard ladder: what lies below each stack. AUTO takes the first rung that this kernel offers.
 * When a rung is used up, new stacks get the next one. janus_fiber_pool_info shows the rung in use,
 * and janus_fiber_stack_info that of one fiber.
 */
typedef enum janus_guard {
    JANUS_GUARD_AUTO = 0, /* the best rung that works here */
    JANUS_GUARD_MARKER,   /* guard markers in the page table (Linux 6.13 and later), for any number
                             of stacks. They split no mapping. An overflow faults at once */
    JANUS_GUARD_MPROTECT, /* inaccessible pages. Each stack takes two mappings, so their number is
                             limited to about vm.max_map_count / 2. An overflow faults at once */
    JANUS_GUARD_CANARY,   /* no protection. The library reads the bytes below the stack when the
                             fiber suspends or ends, and when the task makes a waiting call or
                             ends. Only then does it notice an overflow, which is a panic as on
                             the other rungs. An overflow deeper than guard_bytes damages another
                             stack, and the library cannot see it */
} janus_guard;

/* The stack of one fiber. */
typedef struct janus_fiber_stack_info {
    size_t      struct_bytes;     /* sizeof this struct; JANUS_FIBER_STACK_INFO sets it */
    size_t      reserved_bytes;   /* usable address space; at least what was asked for */
    size_t      guard_bytes;      /* below it */
    size_t      high_water_bytes; /* deepest use seen so far, see janus_fiber_stack_inspect */
    const void *low;              /* lowest usable address; NULL while no stack is attached */
    janus_guard guard;            /* the rung this stack got; AUTO while no stack is attached */
} janus_fiber_stack_info;
#define JANUS_FIBER_STACK_INFO() JANUS_SIZED_(janus_fiber_stack_info)

/* The default for how much memory of idle stacks a pool or a scheduler keeps. */
#define JANUS_IDLE_STACK_BYTES ((size_t)128 * 1024 * 1024)

/* The stacks of a scheduler at one moment. Workers may change them meanwhile. */
typedef struct janus_scheduler_stacks_info {
    size_t      struct_bytes;   /* sizeof this struct; JANUS_SCHEDULER_STACKS_INFO sets it */
    size_t      stacks_used;    /* of waiting and running tasks, and at hand of workers */
    size_t      stacks_idle;    /* kept for the next task */
    size_t      idle_bytes;     /* memory of idle stacks, at most; they may have touched less */
    size_t      max_idle_bytes; /* past it, idle stacks go back to the system when a worker is idle,
                                   or after a second */
    size_t      reserved_bytes; /* address space of all, guards included */
    size_t      stacks_marker;  /* stacks that are mapped, by their guard rung */
    size_t      stacks_mprotect;
    size_t      stacks_canary;
    uint64_t    slabs_released; /* groups of stacks that went back to the system */
    janus_guard guard;          /* the rung that the next new stack will get */
} janus_scheduler_stacks_info;
#define JANUS_SCHEDULER_STACKS_INFO() JANUS_SIZED_(janus_scheduler_stacks_info)

JANUS_BEGIN_DECLS

/*
 * A rung's name: "marker", "mprotect", "canary", "auto".
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  none; a number that is no rung gives "?".
 */
JANUS_API const char *janus_guard_name(janus_guard guard);

/*
 * Whether this machine supports a rung. The call tries the rung on a page and does not trust
 * version numbers.
 *
 * Context: anyone, any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a few system calls, about 10 us.
 * Errors:  false also for a number that is no rung.
 */
JANUS_API bool janus_guard_available(janus_guard guard);

/*
 * Offers a SIGSEGV to the library. True: it was a stack overflow of the current fiber, and the
 * library has handled it. The handler must return at once. False: the fault has another cause.
 *
 * Only for programs that set JANUS_SIGNAL_MODE_MANUAL, or install their own SIGSEGV handler *after*
 * creating a pool. Their handler calls this first. It must be an SA_SIGINFO handler on an alternate
 * stack (SA_ONSTACK).
 *
 * Context: inside a SIGSEGV handler only; async-signal-safe.
 * Yields:  never. After true, returning from the handler continues in the resumer of the fiber.
 * Owns:    the three arguments stay the caller's; *ucontext is changed when true is returned.
 * Cost:    a few comparisons.
 * Errors:  none.
 */
JANUS_API bool janus_fault_claim(int signal_number, void *siginfo, void *ucontext);

JANUS_END_DECLS
#endif

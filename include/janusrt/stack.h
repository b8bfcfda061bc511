/* SPDX-License-Identifier: MIT */
/*
 * Stacks, seen from outside: what protects their lower end, how much is in use, how deep a fiber
 * has been. Nobody allocates one by hand: a fiber gets its stack when it first runs and gives it
 * back when it ends.
 *
 * A task has at least the stack_bytes that it was promised, wherever it runs: alone, on its
 * parent's stack, or on another worker. A task may have up to an eighth more.
 */
#ifndef JANUSRT_STACK_H
#define JANUSRT_STACK_H

#include <janusrt/export.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A guard stops every frame that is no larger than it. Compile code with larger ones with
 * -fstack-clash-protection, which touches every page on the way down.
 *
 * The guard ladder: what stands below each stack. AUTO takes the first rung this kernel offers,
 * and steps down, for new stacks only, when a rung is used up. Which one is in use is in
 * janus_pool_stats and, for one fiber, in janus_stack_info.
 */
typedef enum janus_guard {
    JANUS_GUARD_AUTO = 0, /* the best rung that works here */
    JANUS_GUARD_MARKER,   /* guard markers in the page table (Linux 6.13 and later): any number
                             of stacks, no mapping is split; an overflow faults at once */
    JANUS_GUARD_MPROTECT, /* an inaccessible page range: two mappings a stack, so their number
                             ends near vm.max_map_count / 2; an overflow faults at once */
    JANUS_GUARD_CANARY,   /* no protection: the library reads the bytes below the stack when the
                             fiber suspends or ends, when the task makes a call that may wait, and
                             when the task ends. Only then does it notice an overflow, which is a
                             panic as on the other rungs. No other stack is damaged unless the
                             overflow is deeper than guard_bytes; the library cannot see that */
} janus_guard;

/* What is known about one fiber's stack. */
typedef struct janus_stack_info {
    size_t      reserved_bytes;   /* usable address space; at least what was asked for */
    size_t      guard_bytes;      /* below it */
    size_t      high_water_bytes; /* deepest use seen so far, see janus_fiber_stack */
    const void *low;              /* lowest usable address; NULL while no stack is attached */
    janus_guard guard;            /* the rung this stack got; AUTO while no stack is attached */
} janus_stack_info;

/* Idle stacks that a pool or a scheduler keeps, in bytes of memory, unless its options say
 * otherwise. */
#define JANUS_IDLE_STACK_BYTES ((size_t)128 * 1024 * 1024)

/* The stacks of a scheduler at one moment; others may be moving them. */
typedef struct janus_stack_stats {
    size_t      struct_bytes;   /* in: sizeof this struct; the call fills no more than that */
    size_t      stacks_used;    /* of waiting and running tasks, and at hand of workers */
    size_t      stacks_idle;    /* kept for the next task */
    size_t      idle_bytes;     /* memory of idle stacks, at most; they may have touched less */
    size_t      idle_bytes_max; /* past it, idle stacks go back to the system */
    size_t      reserved_bytes; /* address space of all, guards included */
    size_t      stacks_marker;  /* stacks that are mapped, by their guard rung */
    size_t      stacks_mprotect;
    size_t      stacks_canary;
    uint64_t    slabs_released; /* groups of stacks that went back to the system */
    janus_guard guard;          /* the rung that the next new stack will get */
} janus_stack_stats;

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
 * Whether this machine can do a rung at all. The answer is found by trying it on a page of its
 * own, not by a version number.
 *
 * Context: anyone, any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a few system calls, about 10 us.
 * Errors:  false also for a number that is no rung.
 */
JANUS_API bool janus_guard_available(janus_guard guard);

/*
 * Offers a SIGSEGV to the runtime: true means it was the current fiber's stack overflow and has
 * been dealt with, so the handler must return at once; false means it is somebody else's.
 *
 * Only for programs that install a SIGSEGV handler of their own *after* creating a pool, or that
 * set JANUS_FAULT_MANUAL: their handler asks here first. It must run on an alternate stack
 * (SA_ONSTACK) and be an SA_SIGINFO handler.
 *
 * Context: inside a SIGSEGV handler only; async-signal-safe.
 * Yields:  never; after true, returning from the handler lands in whoever resumed the fiber.
 * Owns:    the three arguments stay the caller's; *ucontext is changed when true is returned.
 * Cost:    a few comparisons.
 * Errors:  none.
 */
JANUS_API bool janus_fault_claim(int signal_number, void *siginfo, void *ucontext);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * A program for a debugger. switch_test.py and fiber_test.py know its functions by name. Together
 * these take every way through the switch:
 *
 * - into a new context, between two contexts, and out for good
 * - with equal and with different floating-point control words
 * - out of a signal handler
 *
 * The fibers call each other as real ones do. The bare contexts after them leave with a pattern in
 * every register that a switch must preserve. So a register restored from the wrong place shows.
 */
#include "fiber/ctx.h"
#include "fiber/registers.h"

#include <fenv.h>
#include <janusrt/janus.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* A function with its own name, called and not jumped to. */
#if defined(__clang__)
#define FRAME __attribute__((noinline))
#else
#define FRAME __attribute__((noipa))
#endif
#define STAY __asm__ volatile("" : : : "memory") /* after a call: so it is not a tail call */

static void expect(bool as_it_should, const char *what)
{
    if (as_it_should) return;
    fprintf(stderr, "two_fibers: %s\n", what);
    exit(1);
}

/* Fibers. */

static janus_fiber_pool *pool;

/* fiber_test.py reads these. */
static janus_fiber *first, *second, *third;

static FRAME void leave(void)
{
    expect(janus_fiber_suspend(NULL, NULL) == JANUS_OK, "suspend");
    STAY;
}

static FRAME janus_outcome enter(janus_fiber *fiber)
{
    janus_outcome outcome;
    expect(janus_fiber_resume(fiber, NULL, &outcome) == JANUS_OK, "resume");
    return outcome;
}

static FRAME int first_inner(int number)
{
    expect(fesetround(FE_UPWARD) == 0, "fesetround");
    leave();
    expect(fegetround() == FE_UPWARD, "first has its rounding mode");
    (void)enter(second); /* from fiber to fiber */
    leave();
    STAY;
    return number + 1;
}

static FRAME int first_outer(int number)
{
    int inner = first_inner(number + 1);
    STAY;
    return inner + 1;
}

static int64_t first_entry(void *argument)
{
    int outer = first_outer(*(volatile int *)argument);
    STAY;
    return outer;
}

static FRAME int second_inner(int number)
{
    leave();
    leave();
    leave();
    STAY;
    expect(fegetround() == FE_TONEAREST, "second has its rounding mode");
    return number + 1;
}

static FRAME int second_outer(int number)
{
    int inner = second_inner(number + 1);
    STAY;
    return inner + 1;
}

static int64_t second_entry(void *argument)
{
    int outer = second_outer(*(volatile int *)argument);
    STAY;
    return outer;
}

static FRAME int dig(int depth)
{
    static volatile bool bottomless = true;
    volatile char        room[400];
    room[0] = (char)depth;
    return (bottomless ? dig(depth + 1) : 0) + room[0];
}

static int64_t third_entry(void *argument)
{
    leave();
    return dig(*(int *)argument);
}

/* A breakpoint: first is suspended, second waits to be resumed, third is new. */
static FRAME void look_here(void) { STAY; }

static janus_fiber *make(janus_entry *entry, const char *name)
{
    static volatile int number = 7;
    janus_fiber        *fiber = NULL;
    expect(janus_fiber_create(pool, entry, (void *)&number, JANUS_FIBER_OPTIONS(.name = name),
                              &fiber) == JANUS_OK,
           "create");
    return fiber;
}

static FRAME void drive_fibers(void)
{
    /* Not guard markers: gdb leaves mappings with markers out of its core files. */
    janus_fiber_pool_options *options = JANUS_FIBER_POOL_OPTIONS(.guard = JANUS_GUARD_MPROTECT);
    expect(janus_fiber_pool_create(options, &pool) == JANUS_OK, "pool");
    first = make(first_entry, "first");
    second = make(second_entry, "second");
    third = make(third_entry, "third");

    (void)enter(first);
    (void)enter(second);
    look_here();
    (void)enter(first); /* enters second */
    (void)enter(second);
    expect(enter(first).result == 10, "first is complete");
    expect(enter(second).result == 10, "second is complete");
    (void)enter(third);
    expect(enter(third).panic.kind == JANUS_PANIC_KIND_STACK_OVERFLOW, "third overflows");
    look_here();

    (void)janus_fiber_destroy(first);
    (void)janus_fiber_destroy(second);
    (void)janus_fiber_destroy(third);
    expect(janus_fiber_pool_destroy(pool) == JANUS_OK, "everything is gone");
}

/* Bare contexts. */

static _Alignas(16) char bare_stack[64 * 1024];
static void *main_sp, *bare_sp;

static void land(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    jrt_ctx_land_from_signal(context, main_sp, 0);
}

static void bare_main(void *argument, int message)
{
    (void)argument, (void)message;
    expect(registers_lost(&bare_sp, &main_sp, UINT64_C(0x2222000000000000)) == 0, "its registers");
    expect(fesetround(FE_UPWARD) == 0, "fesetround");
    expect(registers_lost(&bare_sp, &main_sp, UINT64_C(0x3333000000000000)) == 0, "its registers");
    raise(SIGUSR1);
    abort();
}

static FRAME void drive_bare(void)
{
    struct sigaction action = {.sa_sigaction = land, .sa_flags = SA_SIGINFO};
    expect(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
    bare_sp = jrt_ctx_make(bare_stack + sizeof bare_stack, bare_main, NULL);
    expect(fesetround(FE_DOWNWARD) == 0, "fesetround"); /* unlike the new context */
    for (uint64_t i = 1; i <= 3; i++) {
        uint64_t seed = UINT64_C(0x1111000000000000) + (i << 32);
        expect(registers_lost(&main_sp, &bare_sp, seed) == 0, "our registers");
    }
    expect(fegetround() == FE_DOWNWARD, "our rounding mode");
    expect(fesetround(FE_TONEAREST) == 0, "fesetround");
}

int main(void)
{
    drive_fibers();
    drive_bare();
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* The switch itself, below fibers: raw stacks, raw stack pointers. */
#include "fiber/ctx.h"

#include "harness.h"
#include "registers.h"

#include <fenv.h>
#include <stdint.h>
#include <string.h>

enum { STACK_BYTES = 64 * 1024 };

static _Alignas(16) char stack_a[STACK_BYTES];
static void *main_sp, *fiber_sp;

/* Sanitizers keep their own picture of the stack, and these raw switches do not inform them. */
#if JRT_ASAN || JRT_TSAN
#define SKIP_UNDER_SANITIZERS SKIP("raw switches are unknown to sanitizers; fiber_test covers them")
#else
#define SKIP_UNDER_SANITIZERS ((void)0)
#endif

static void echo(void *argument, int message)
{
    int *seen = argument;
    for (;;) {
        *seen = message;
        message = jrt_ctx_switch(&fiber_sp, main_sp, message * 2);
    }
}

TEST("a message passed to a switch arrives on the other side, in both directions")
{
    SKIP_UNDER_SANITIZERS;
    int seen = 0;
    fiber_sp = jrt_ctx_make(stack_a + STACK_BYTES, echo, &seen);
    for (int i = -500; i < 500; i++) {
        int answer = jrt_ctx_switch(&main_sp, fiber_sp, i);
        CHECK_EQ(seen, i);
        CHECK_EQ(answer, i * 2);
    }
}

static uint64_t fiber_lost;

static void fill_and_leave(void *argument, int message)
{
    (void)argument, (void)message;
    for (uint64_t seed = UINT64_C(0x5555000000000000);; seed += 64) {
        fiber_lost += registers_lost(&fiber_sp, &main_sp, seed);
    }
}

TEST("every callee-saved register survives a switch, on both sides")
{
    SKIP_UNDER_SANITIZERS;
    fiber_lost = 0;
    fiber_sp = jrt_ctx_make(stack_a + STACK_BYTES, fill_and_leave, NULL);
    for (uint64_t i = 0; i < 1000; i++) {
        CHECK_EQ(registers_lost(&main_sp, &fiber_sp, UINT64_C(0x1234000000000000) + i * 64), 0);
    }
    CHECK_EQ(fiber_lost, 0);
}

static int fiber_rounding;

static void change_rounding(void *argument, int message)
{
    (void)argument, (void)message;
    fiber_rounding = fegetround();
    fesetround(FE_UPWARD);
    for (;;) {
        (void)jrt_ctx_switch(&fiber_sp, main_sp, 0);
        fiber_rounding = fegetround();
    }
}

/* 1/3 computed so that the compiler cannot fold it, which also tests the computing unit. */
static double third(void)
{
    volatile double one = 1.0;
    volatile double three = 3.0;
    return one / three;
}

#if defined(__x86_64__)
static long double third_x87(void)
{
    volatile long double one = 1.0L;
    volatile long double three = 3.0L;
    return one / three;
}
#else
static long double third_x87(void) { return third(); }
#endif

TEST("a fiber's rounding mode is its own, and a new fiber starts with its maker's")
{
    SKIP_UNDER_SANITIZERS;
    fesetround(FE_DOWNWARD);
    fiber_sp = jrt_ctx_make(stack_a + STACK_BYTES, change_rounding, NULL);
    double      before = third();
    long double before_x87 = third_x87();
    (void)jrt_ctx_switch(&main_sp, fiber_sp, 0);
    CHECK_EQ(fiber_rounding, FE_DOWNWARD);
    CHECK_EQ(fegetround(), FE_DOWNWARD);
    CHECK(third() == before && third_x87() == before_x87);
    fesetround(FE_TOWARDZERO);
    (void)jrt_ctx_switch(&main_sp, fiber_sp, 0);
    CHECK_EQ(fiber_rounding, FE_UPWARD);
    CHECK_EQ(fegetround(), FE_TOWARDZERO);
    fesetround(FE_TONEAREST);
}

static uintptr_t entry_misalignment;

static void look_at_alignment(void *argument, int message)
{
    (void)argument, (void)message;
    _Alignas(16) volatile char aligned[16]; /* aligned only if the stack is */
    entry_misalignment = (uintptr_t)aligned % 16;
#if defined(__x86_64__)
    /* The frame address is below the return address: 16-byte aligned by the ABI. */
    entry_misalignment |= (uintptr_t)__builtin_frame_address(0) % 16;
#endif
    for (;;) (void)jrt_ctx_switch(&fiber_sp, main_sp, 0);
}

TEST("a new context enters its function with the stack alignment that the ABI requires")
{
    SKIP_UNDER_SANITIZERS;
    entry_misalignment = 99;
    fiber_sp = jrt_ctx_make(stack_a + STACK_BYTES - 64, look_at_alignment, NULL);
    (void)jrt_ctx_switch(&main_sp, fiber_sp, 0);
    CHECK_EQ(entry_misalignment, 0);
}

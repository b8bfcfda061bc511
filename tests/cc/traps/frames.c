/* SPDX-License-Identifier: MIT */
/* Large frames on small stacks. `janusrt cc` compiles this file at every level. */
#include "rig.h"

static volatile int zero; /* the compiler does not know it */

__attribute__((noinline)) static uint64_t large_frame(uint64_t value)
{
    volatile char frame[1 << 20];
    frame[zero] = (char)value; /* the far end, beyond every guard */
    return (uint64_t)frame[zero];
}

__attribute__((noinline)) static uint64_t large_array(uint64_t bytes)
{
    volatile char frame[bytes];
    frame[zero] = 1;
    return (uint64_t)frame[zero];
}

__attribute__((noinline)) static uint64_t deep(uint64_t n) /* not a tail call */
{
    if (n == UINT64_MAX) return 0;
    volatile uint64_t here = n;
    return deep(n + 1) + here;
}

static int64_t overflow(void *argument)
{
    switch (*(int *)argument) {
    case 0: return (int64_t)large_frame(1);
    case 1: return (int64_t)large_array((uint64_t)(1 << 20) + (uint64_t)zero);
    default: return (int64_t)deep(0);
    }
}

static int64_t see_overflow(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.stack_bytes = 64 << 10)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, overflow, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
    return 0;
}

TEST("a frame of 1 MiB on a stack of 64 KiB is an overflow that its nursery reports")
{
    for (int i = 0; i < 3; i++) rig_run(1, see_overflow, &i, 1);
}

/* SPDX-License-Identifier: MIT */
/*
 * Values that live in registers across checks. The slow paths promise to keep them, also while
 * other tasks use the same registers. `janusrt cc` compiles this file.
 */
#define RIG_TURN_NS JANUS_TURN_NS
#include "rig.h"

#include <stdatomic.h>

enum { TASKS = 6 };

struct values {
    double   seed, sum;
    uint64_t words;
};

/* The number of rounds depends on the values, so that each round has a check. All values are live
 * at it, those of arguments too. */
#define COMPUTE                                                                                    \
    double a = v.seed, b = a * 1.25, c = a * 1.5, d = a * 1.75, e = a + 2, f = a + 3, x = 0;       \
    while (x < 400000) {                                                                           \
        a = a * 0.999 + b * 0.001, b = b * 0.998 + c * 0.002, c = c * 0.997 + d * 0.003;           \
        d = d * 0.996 + e * 0.004, e = e * 0.995 + f * 0.005, f = f * 0.994 + a * 0.006;           \
        p = p * 3 + q, q = q * 5 + r, r = r * 7 + s, s = s * 9 + p;                                \
        x += a > 0 ? 1 : 2;                                                                        \
    }                                                                                              \
    v.sum = a + b + c + d + e + f;                                                                 \
    v.words = p ^ q ^ r ^ s;                                                                       \
    return v

__attribute__((noinline)) static struct values compute(struct values v, uint64_t p, uint64_t q,
                                                       uint64_t r, uint64_t s)
{
    COMPUTE;
}

#if defined(__x86_64__)
__attribute__((noinline, target("avx2"))) static struct values compute_wide(struct values v,
                                                                            uint64_t p, uint64_t q,
                                                                            uint64_t r, uint64_t s)
{
    COMPUTE;
}
static bool is_wide(void) { return __builtin_cpu_supports("avx2"); }
#else
#define compute_wide compute
static bool is_wide(void) { return false; }
#endif

static struct values expected[TASKS];
static atomic_int    next;

static struct values compute_nth(int number, bool wide)
{
    struct values v = {number + 1, 0, 0};
    uint64_t      n = (uint64_t)number;
    return wide ? compute_wide(v, n, n + 1, n + 2, n + 3) : compute(v, n, n + 1, n + 2, n + 3);
}

static int64_t compute_again(void *argument)
{
    int           number = atomic_fetch_add(&next, 1) % TASKS;
    struct values v = compute_nth(number, *(const bool *)argument);
    CHECK(v.sum == expected[number].sum);
    CHECK_EQ(v.words, expected[number].words);
    return 0;
}

static int64_t all_at_once(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(&n, compute_again, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("values in registers are the same after checks at which other tasks ran")
{
    for (int wide = 0; wide <= is_wide(); wide++) {
        bool argument = wide;
        for (int i = 0; i < TASKS; i++) expected[i] = compute_nth(i, argument);
        rig_run(1, all_at_once, &argument, 2);
        rig_run(2, all_at_once, &argument, 2);
    }
}

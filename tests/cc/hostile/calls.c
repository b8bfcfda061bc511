/* SPDX-License-Identifier: MIT */
/* Calls, jumps out of frames, and large frames. */
#include "hostile.h"

#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static int twice(uint64_t n) { return n == 0 ? 1 : twice(n - 1) + twice(n - 1); }

static uint64_t recursion(uint64_t n) { return (uint64_t)twice(n); }

static uint64_t (*volatile self)(uint64_t);

static uint64_t through_pointer(uint64_t n)
{
    TICK();
    return n == 0 ? 1 : self(n - 1) + self(n - 1);
}

static uint64_t indirect_recursion(uint64_t n)
{
    self = through_pointer;
    return self(n);
}

static uint64_t pong(uint64_t n, uint64_t sum);
static uint64_t ping(uint64_t n, uint64_t sum)
{
    TICK();
    if (n == 0) return sum;
    __attribute__((musttail)) return pong(n - 1, sum + n);
}
static uint64_t pong(uint64_t n, uint64_t sum)
{
    TICK();
    if (n == 0) return ~sum;
    __attribute__((musttail)) return ping(n - 1, sum ^ n);
}
static uint64_t tail_calls(uint64_t n) { return ping(n, 0); }

static int tak(int x, int y, int z)
{
    return y >= x ? z : tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y));
}
static uint64_t takes(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += (uint64_t)tak(18, 12 - hostile_zero, 6);
    return sum;
}

static uint64_t down_b(uint64_t n);
static uint64_t down_c(uint64_t n);
static uint64_t down_a(uint64_t n) { return n == 0 ? 1 : down_b(n - 1) + 1; }
static uint64_t down_b(uint64_t n) { return n == 0 ? 2 : down_c(n - 1) * 3; }
static uint64_t down_c(uint64_t n) { return n == 0 ? 3 : down_a(n - 1) ^ n; }
static uint64_t ring_of_three(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += down_a(i % 50);
    return sum;
}

static uint64_t plus(uint64_t n) { return n + 1; }
static uint64_t times(uint64_t n) { return n * 7; }
static uint64_t minus(uint64_t n) { return n - 3; }
static uint64_t (*volatile const table[])(uint64_t) = {plus, times, minus, plus};
static uint64_t pointer_table(uint64_t n)
{
    uint64_t sum = 1;
    for (uint64_t i = 0; i < n; i++) sum = table[sum & 3](sum);
    return sum;
}

__attribute__((noinline)) static uint64_t sum_of(int count, ...)
{
    va_list  list;
    uint64_t sum = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++) sum = sum * 3 + va_arg(list, uint64_t);
    va_end(list);
    return sum;
}
static uint64_t variadic(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += sum_of(4, i, sum, i ^ 3, UINT64_C(9));
    return sum;
}

static uint64_t long_jumps(uint64_t n)
{
    jmp_buf           place;
    volatile uint64_t rounds = 0;
    setjmp(place);
    TICK();
    rounds = rounds + 1;
    if (rounds < n) longjmp(place, 1);
    return rounds;
}

static uint64_t signal_jumps(uint64_t n)
{
    sigjmp_buf        place;
    volatile uint64_t rounds = 0;
    sigsetjmp(place, 0);
    TICK();
    rounds = rounds + 1;
    if (rounds < n) siglongjmp(place, 1);
    return rounds;
}

static uint8_t bytes[8192];

__attribute__((noinline)) static void strip_and_jump(jmp_buf place, uint64_t value)
{
    for (size_t i = 0; i < 3000 + (value & 7); i++) bytes[i] = (uint8_t)(bytes[i] + value);
    longjmp(place, 1);
}
static uint64_t jump_from_strip(uint64_t n)
{
    jmp_buf           place;
    volatile uint64_t rounds = 0;
    memset(bytes, 0, sizeof bytes);
    if (setjmp(place) != 0) rounds = rounds + 1;
    if (rounds < n) strip_and_jump(place, rounds);
    return bytes[0] + 256u * bytes[3005];
}

static jmp_buf                            outer;
__attribute__((noinline)) static uint64_t deep(uint64_t n, uint64_t value)
{
    if (n == 0) longjmp(outer, 1);
    return deep(n - 1, value * 3) + value; /* owes for the call */
}
static uint64_t jump_over_frames(uint64_t n)
{
    volatile uint64_t rounds = 0, sum = 0;
    if (setjmp(outer) != 0) {
        rounds = rounds + 1;
        sum = sum * 5 + rounds;
    }
    if (rounds < n) sum = sum + deep(rounds % 40, 1);
    return sum;
}

static uint64_t variable_arrays(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t list[1 + i % 500];
        for (size_t j = 0; j < sizeof list / sizeof list[0]; j++) list[j] = (uint32_t)(i * j);
        sum += list[i % (sizeof list / sizeof list[0])];
    }
    return sum;
}

__attribute__((noinline)) static uint64_t use_alloca(uint64_t i)
{
    uint8_t *list = alloca(64 + i % 1000);
    list[0] = (uint8_t)i;
    for (size_t j = 1; j < 64; j++) list[j] = (uint8_t)(list[j - 1] * 3 + 1);
    return list[63];
}
static uint64_t allocas(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += use_alloca(i);
    return sum;
}

struct large {
    uint64_t words[512]; /* 4 KiB: a copy costs 64 */
};
__attribute__((noinline)) static struct large change(struct large large)
{
    large.words[large.words[0] & 511] += 5;
    large.words[0]++;
    return large;
}
static uint64_t large_values(uint64_t n)
{
    struct large large = {{0}};
    uint64_t     sum = 0;
    for (uint64_t i = 0; i < n; i++) large = change(large);
    for (int i = 0; i < 512; i++) sum = sum * 3 + large.words[i];
    return sum;
}

static inline __attribute__((always_inline)) uint64_t inlined(uint64_t n) { return n * 5 + 1; }
__attribute__((noinline, const)) static uint64_t      pure(uint64_t n) { return n ^ n >> 3; }
static uint64_t                                       small_calls(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += inlined(i) + pure(n);
    return sum;
}

static int endless_compare(const void *a, const void *b)
{
    for (;;) TICK();
    return (int)((const char *)a - (const char *)b);
}
static uint64_t endless_callback(uint64_t n)
{
    uint32_t list[] = {3, 1, 2, (uint32_t)n};
    qsort(list, 4, sizeof list[0], endless_compare);
    return list[0];
}

static int searched(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    for (int i = 0; i < 20; i++) TICK();
    return x < y ? -1 : x > y;
}
static uint64_t searches(uint64_t n)
{
    static uint32_t list[1000];
    uint64_t        sum = 0;
    for (uint32_t i = 0; i < 1000; i++) list[i] = i * 2;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t        key = i % 2000;
        const uint32_t *at = bsearch(&key, list, 1000, sizeof list[0], searched);
        sum += at == NULL ? 1 : (uint64_t)(at - list);
    }
    return sum;
}

static uint64_t wrapped_pointer(uint64_t n)
{
    static char text[2048];
    size_t      (*volatile length)(const char *) = strlen;
    uint64_t    sum = 0;
    memset(text, 'x', sizeof text - 1);
    for (uint64_t i = 0; i < n; i++) sum += length(text + (i & 1023));
    return sum;
}

const struct hostile hostile_calls[] = {
    {"recursion", recursion, 20, 0},
    {"indirect_recursion", indirect_recursion, 20, 1},
    {"tail_calls", tail_calls, 1500000, 1},
    {"takes", takes, 30, 0},
    {"ring_of_three", ring_of_three, 80000, 0},
    {"pointer_table", pointer_table, 800000, 0},
    {"variadic", variadic, 300000, 0},
    {"long_jumps", long_jumps, 1500000, 1},
    {"signal_jumps", signal_jumps, 1500000, 1},
    {"jump_from_strip", jump_from_strip, 500, 0},
    {"jump_over_frames", jump_over_frames, 80000, 0},
    {"variable_arrays", variable_arrays, 8000, 0},
    {"allocas", allocas, 30000, 0},
    {"large_values", large_values, 15000, 0},
    {"small_calls", small_calls, 600000, 0},
    {"endless_callback", endless_callback, HOSTILE_ENDLESS, 1},
    {"searches", searches, 10000, 1},
    {"wrapped_pointer", wrapped_pointer, 700000, 0},
    {0},
};

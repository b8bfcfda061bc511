/* SPDX-License-Identifier: MIT */
/* Loops, calls, memory functions and jumps, each with its number of ops. Built with the pass. */
#include "exact.h"

#include "counting.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))

static volatile uint64_t sink;
static uint32_t          numbers[10240];

/* Loops. */

static void empty_loop(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
    }
}

static void volatile_loop(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) sink = i;
}

static void closed_form(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += i;
    sink = sum;
}

static void vector_sum(uint64_t n)
{
    uint32_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += numbers[i] * 3;
    sink = sum;
}

static void memset_idiom(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) numbers[i] = 0;
}

static void do_while(uint64_t n)
{
    uint64_t i = 0;
    do sink = i;
    while (++i < n);
}

static void do_while_vector(uint64_t n)
{
    uint64_t i = 0;
    do numbers[i] += 7;
    while (++i < n);
}

static void do_while_mixed(uint64_t n)
{
    uint64_t i = 0;
    do {
        janus_op(2);
        numbers[i] += 7;
    } while (++i < n);
}

static void nested(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < 10; j++) sum += numbers[i] + j;
    sink = sum;
}

static void triangle(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < i; j++) sum += numbers[j];
    sink = sum;
}

static void with_continue(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (i % 3 == 0) continue;
        sink = i;
    }
}

static void with_break(uint64_t n)
{
    for (uint64_t i = 0;; i++) {
        if (i == n) break;
        sink = i;
    }
}

static void switch_loop(uint64_t n)
{
    int state = 0;
    while (n > 0) {
        switch (state) {
        case 0: state = 1; continue;
        case 1: state = 2; continue;
        default:
            state = 0;
            n--;
            break;
        }
    }
}

static void goto_loop(uint64_t n)
{
again:
    sink = n;
    if (--n > 0) goto again;
}

static void two_entries(uint64_t n)
{
    if (n % 2 == 1) goto second;
first:
    sink = n;
    n--;
second:
    sink = n + 1;
    if (n > 0) goto first;
}

static void behind_cycle(uint64_t n) /* ops before, in and behind a cycle with two entries */
{
    janus_op(5);
    if (n % 2 == 1) goto second;
first:
    sink = n;
second:
    janus_op(3);
    if (n-- > 0) goto first;
    janus_op(7);
}

static void computed(uint64_t n)
{
    static const void *const targets[] = {&&back, &&out};
back:
    n--;
    goto *targets[n == 0];
out:
    sink = n;
}

static void assembly_goto(uint64_t n)
{
back:
    if (--n == 0) return;
    __asm__ goto("" : : : "memory" : back);
    goto back;
}

static void narrow(uint64_t n)
{
    for (uint8_t i = 0; i < (uint8_t)n; i++) sink = i;
}

static void up_to(uint64_t n)
{
    for (uint64_t i = 0; i <= n; i++) numbers[i] += 3;
}

static void narrow_up_to(uint64_t n)
{
    for (uint8_t i = 3; i <= (uint8_t)n; i++) numbers[i] += 3;
}

static void downward(uint64_t n)
{
    for (uint32_t *at = numbers + n; at > numbers;) (*--at)++;
}

static void search(uint64_t n)
{
    numbers[n] = UINT32_MAX;
    uint64_t i = 0;
    while (numbers[i] != UINT32_MAX) i++;
    numbers[n] = 0;
}

/* Calls. */

__attribute__((noinline)) static void             callee(uint64_t n) { sink = n; }
static inline void                                inlined(uint64_t n) { sink = n; }
static inline __attribute__((always_inline)) void forced(uint64_t n) { sink = n; }
static void                                       (*volatile pointer)(uint64_t) = callee;

static void direct_calls(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) callee(i);
}

static void inlined_calls(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) inlined(i);
}

static void forced_calls(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) forced(i);
}

static void indirect_calls(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) pointer(i);
}

static uint64_t sum_of(int count, ...)
{
    va_list  list;
    uint64_t sum = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++) sum += va_arg(list, uint64_t);
    va_end(list);
    return sum;
}

static void variadic_calls(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) sink = sum_of(3, i, i, i);
}

static uint64_t fibonacci(uint64_t n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
static void     recursion(uint64_t n) { sink = fibonacci(n); }

static uint64_t factorial(uint64_t n) { return n == 0 ? 1 : n * factorial(n - 1); }
static void     tail_recursion(uint64_t n) { sink = factorial(n); }

static void                           odd(uint64_t n);
__attribute__((noinline)) static void even(uint64_t n)
{
    sink = n;
    if (n > 0) __attribute__
        ((musttail)) return odd(n - 1);
}
__attribute__((noinline)) static void odd(uint64_t n)
{
    sink = n;
    if (n > 0) __attribute__
        ((musttail)) return even(n - 1);
}
static void must_tail(uint64_t n) { even(n); }

__attribute__((noinline, pure)) static uint64_t pure_loop(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += numbers[i];
    return sum;
}

static void pure_calls(uint64_t n) /* equal calls of a function that says that it is pure */
{
    sink = pure_loop(n) + pure_loop(n);
    pure_loop(n);
}

static void library_calls(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        errno = 0; /* calls __errno_location */
        sink = strtoull("17", NULL, 10);
    }
}

NO_OPS static void free_function(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) callee(i);
}

static void calls_free(uint64_t n) { free_function(n); }

/* The loop ends only behind its second half, which runs less often than the first. */
static void seldom_half(uint64_t n)
{
    uint64_t i = 0;
    for (;;) {
        sink = i;
        if (++i % 4 != 0) continue;
        janus_op(10);
        sink = i + 1;
        if (i >= n) break;
    }
}

static void explicit_ops(uint64_t n)
{
    janus_op(7);
    janus_op(n);
    for (uint64_t i = 0; i < 10; i++) janus_op(3);
}

/* It pays by janus_op alone, and each payment stays between its calls. */
__attribute__((annotate("janus.own_ops"))) static void own_function(uint64_t n)
{
    uint64_t begin = count_spent(), wrong = 0;
    for (uint64_t i = 1; i <= n; i++) {
        callee(i);
        janus_op(2);
        if (count_spent() != begin + 5 * i - 3) wrong++;
        janus_op(3);
    }
    sink = wrong;
    if (wrong > 0) janus_op(1000000);
}

static void calls_own(uint64_t n) { own_function(n); }

/* Memory. */

static char from[1000064], to[1000064];

static void copy_63(uint64_t n) { memcpy(to, from, 63 + 0 * n); }
static void copy_constants(uint64_t n)
{
    (void)n;
    memcpy(to, from, 63);
    memcpy(to, from, 64);
    memmove(to, from, 65);
    memset(to, 1, 128);
    memcpy(to, from, 1000000);
}
static void copy(uint64_t n) { memcpy(to, from, n); }
static void move(uint64_t n) { memmove(to + 1, to, n); }
static void fill(uint64_t n) { memset(to, 3, n); }

struct large {
    char bytes[640];
};
static void copy_struct(uint64_t n)
{
    static struct large a, b;
    a = b;
    a.bytes[0] = (char)n;
}

/* Some CPUs pass a large struct by a copy that stands in the code, and others do not. */
__attribute__((noinline)) static char first_of(struct large value) { return value.bytes[0]; }
static void                           pass_struct(uint64_t n)
{
    static struct large a;
    char                sum = 0;
    for (uint64_t i = 0; i < n; i++) sum = (char)(sum + first_of(a));
    a.bytes[0] = sum;
}

/* Jumps. */

static jmp_buf    place;
static sigjmp_buf signal_place;

static void jump_loop(uint64_t n)
{
    volatile uint64_t rounds = 0;
    setjmp(place);
    rounds = rounds + 1;
    if (rounds <= n) longjmp(place, 1);
}

static void signal_jump_loop(uint64_t n)
{
    volatile uint64_t rounds = 0;
    sigsetjmp(signal_place, 0);
    rounds = rounds + 1;
    if (rounds <= n) siglongjmp(signal_place, 1);
}

static void jump_from_loop(uint64_t n)
{
    if (setjmp(place) != 0) return;
    for (uint64_t i = 0; i < 2000000; i++) {
        if (i == n) longjmp(place, 1);
        sink = i;
    }
}

__attribute__((noinline)) static void jumper(void) { longjmp(place, 1); }
__attribute__((noinline)) static void jumps_over(void)
{
    callee(1);
    jumper();
    callee(2);
    callee(3);
}
static void jump_over_frame(uint64_t n)
{
    (void)n;
    if (setjmp(place) == 0) jumps_over();
}

/* Callbacks of libraries. */

static uint64_t compared;
static int      compare(const void *a, const void *b)
{
    compared++;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sort_and_find(uint64_t n) /* the library's calls of compare cost nothing here */
{
    for (uint64_t i = 0; i < n; i++) numbers[i] = (uint32_t)(i * 7919 % 1009);
    qsort(numbers, n, sizeof numbers[0], compare);
    uint32_t key = numbers[n / 2];
    if (bsearch(&key, numbers, n, sizeof key, compare) == NULL) abort();
}

#define LOOP(function)                                                                             \
    {#function, function, 0, 0, 0}, {#function, function, 1, 1, 0},                                \
        {#function, function, 1023, 1023, 0}, {#function, function, 1024, 1024, 0},                \
        {#function, function, 1025, 1025, 0}, {#function, function, 2049, 2049, 0},                \
        {#function, function, 10000, 10000, 0}
#define LATER(function, factor)                                                                    \
    {#function, function, 1, 0 + (factor), 0}, {#function, function, 2, 1 + 2 * (factor), 0},      \
        {#function, function, 1024, 1023 + 1024 * (factor), 0},                                    \
        {#function, function, 1025, 1024 + 1025 * (factor), 0},                                    \
        {#function, function, 1026, 1025 + 1026 * (factor), 0},                                    \
        {#function, function, 10000, 9999 + 10000 * (factor), 0}
#define BYTES(function, first)                                                                     \
    {#function, function, 0, (first), 0}, {#function, function, 63, (first), 0},                   \
        {#function, function, 64, (first) + 1, 0}, {#function, function, 65, (first) + 1, 0},      \
        {#function, function, 1000000, (first) + 15625, 0}

const struct exact exact_cases[] = {
    LOOP(empty_loop),
    LOOP(volatile_loop),
    LOOP(closed_form),
    LOOP(vector_sum),
    LOOP(memset_idiom),
    LOOP(with_continue),
    LOOP(with_break),
    LOOP(downward),
    LOOP(search),
    LATER(do_while, 0),
    LATER(do_while_vector, 0),
    LATER(do_while_mixed, 2),
    LATER(goto_loop, 0),
    {"nested", nested, 100, 1100, 0},
    {"triangle", triangle, 2000, 2000 + 1999000, 0},
    {"switch_loop", switch_loop, 10, 30, 0},
    {"narrow", narrow, 200, 200, 0},
    {"up_to", up_to, 0, 1, 0},
    {"up_to", up_to, 1022, 1023, 0},
    {"up_to", up_to, 1023, 1024, 0},
    {"up_to", up_to, 1024, 1025, 0},
    {"up_to", up_to, 10000, 10001, 0},
    {"narrow_up_to", narrow_up_to, 2, 0, 0},
    {"narrow_up_to", narrow_up_to, 3, 1, 0},
    {"narrow_up_to", narrow_up_to, 254, 252, 0},
    {"two_entries", two_entries, 100, 100, 0},
    {"two_entries", two_entries, 101, 101, 0},
    {"behind_cycle", behind_cycle, 100, 5 + 303 + 7 + 101, 0},
    {"behind_cycle", behind_cycle, 101, 5 + 306 + 7 + 101, 0},
    {"computed", computed, 100, 100, 0},
    {"assembly_goto", assembly_goto, 100, 198, 0},
    {"direct_calls", direct_calls, 1000, 2000, 0},
    {"inlined_calls", inlined_calls, 1000, 2000, 0},
    {"forced_calls", forced_calls, 1000, 2000, 0},
    {"indirect_calls", indirect_calls, 1000, 2000, 0},
    {"variadic_calls", variadic_calls, 1000, 5000, 0},
    {"recursion", recursion, 20, 21891, 0},
    {"tail_recursion", tail_recursion, 2000, 2001, 0},
    {"must_tail", must_tail, 100000, 100001, 0},
    {"pure_calls", pure_calls, 5000, 15003, 0},
    {"library_calls", library_calls, 1000, 3000, 0},
    {"calls_free", calls_free, 1000, 1, 0},
    {"explicit_ops", explicit_ops, 11, 7 + 11 + 40, 0},
    {"calls_own", calls_own, 100, 1 + 5 * 100, 0},
    {"seldom_half", seldom_half, 100, 99 + 25 * 10, 0},
    {"copy_63", copy_63, 0, 1, 0},
    {"copy_constants", copy_constants, 0, 0 + 1 + 1 + 2 + 15625, 0},
    BYTES(copy, 1),
    BYTES(move, 1),
    BYTES(fill, 1),
    {"copy_struct", copy_struct, 1, 10, 0},
    {"pass_struct", pass_struct, 1000, 2000, 0},
    {"jump_loop", jump_loop, 1000, 1001, 0},
    {"signal_jump_loop", signal_jump_loop, 1000, 1001, 0},
    {"jump_from_loop", jump_from_loop, 5000, 5002, 0},
    {"jump_over_frame", jump_over_frame, 0, 5, 2},
    {"sort_and_find", sort_and_find, 500, 500 + 2, 0},
};
const unsigned exact_count = LENGTH(exact_cases);

/* SPDX-License-Identifier: MIT */
/*
 * Ways to run for ever, or nearly. `forever N` runs the N-th; `forever` prints how many there are.
 * With a budget each must end with exactly that budget spent. Built with the pass.
 */
#include "counting.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile uint64_t sink;
static volatile int      zero, one = 1;
static uint8_t           touched[1 << 20];

static void while_one(void)
{
    while (1) {
    }
}
static void for_ever(void)
{
    for (;;) sink++;
}
static void jump_back(void)
{
again:
    sink++;
    goto again;
}
static void two_entries(void)
{
    if (zero) goto second;
first:
    sink++;
    if (sink == UINT64_MAX) return;
second:
    sink += 2;
    goto first;
}
static void computed(void)
{
    static const void *const targets[] = {&&even, &&odd};
even:
    sink++;
    goto *targets[sink & 1];
odd:
    sink++;
    goto *targets[sink & 1];
}
static void states(void)
{
    int state = 0;
    for (;;) {
        switch (state) {
        case 0: state = 1; continue;
        case 1: state = 2; continue;
        case 2: state = 0; continue;
        }
    }
}
static int  twice(int n) { return n == 0 ? 0 : twice(n - one) + twice(n - one); }
static void recursion(void) { sink = (uint64_t)twice(60); }
static void (*self)(int);
static void through_pointer(int n)
{
    if (n > 0) {
        self(n - 1);
        self(n - 1);
    }
}
static void indirect_recursion(void)
{
    self = through_pointer;
    self(60);
}
static void pong(uint64_t n);
static void ping(uint64_t n)
{
    sink = n;
    __attribute__((musttail)) return pong(n + 1);
}
static void pong(uint64_t n)
{
    sink = n;
    __attribute__((musttail)) return ping(n + 1);
}
static void    tail_calls(void) { ping(0); }
static jmp_buf place;
static void    long_jumps(void)
{
    volatile int rounds = 0;
    setjmp(place);
    rounds = rounds + 1;
    longjmp(place, 1);
}
static void zero_step(void)
{
    for (int i = 0; i < 10; i += zero) sink++;
}
static void always_true(void)
{
    for (uint64_t i = 0; i <= UINT64_MAX; i++) sink++;
}
static void byte_wraps(void)
{
    for (uint8_t i = 0; i < 256; i++) sink++;
}
static void up_to_all(void)
{
    uint64_t last = UINT64_MAX - (uint64_t)zero;
    for (uint64_t i = 0; i <= last; i++) sink += i;
}
static void up_to_byte(void)
{
    uint8_t last = (uint8_t)(255 - zero);
    for (uint8_t i = 0; i <= last; i++) sink += i;
}
static void empty_huge(void)
{
    for (uint64_t i = 0; i < UINT64_MAX; i++) {
    }
}
static void closed_form(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < UINT64_C(1) << 62; i++) sum += i;
    sink = sum;
}
static void do_ever(void)
{
    do sink++;
    while (one);
}
static void nest(void)
{
    for (int a = 0; a < 1000; a++)
        for (int b = 0; b < 1000; b++)
            for (int c = 0; c < 1000; c++)
                for (int d = 0; d < 1000; d++) sink = (uint64_t)d;
}
static void small_nest(void) /* each loop alone is folded */
{
    for (int a = 0; a < 100; a++)
        for (int b = 0; b < 100; b++)
            for (int c = 0; c < 100; c++)
                for (int d = 0; d < 100; d++)
                    for (int e = 0; e < 100; e++) sink = (uint64_t)e;
}
static void memory(void)
{
    static char bytes[1 << 24];
    for (;;) memset(bytes, (int)sink, sizeof bytes - (size_t)zero);
}
static void cyclic_list(void)
{
    struct node {
        struct node *next;
    } a, b;
    a.next = &b;
    b.next = &a;
    struct node *volatile start = &a;
    for (struct node *at = start; at != NULL; at = at->next) {
    }
    sink = 1;
}
static void assembly_goto(void)
{
again:
    __asm__ goto("" : : : "memory" : again);
    if (one) goto again;
}
static void strip(void) /* one op for each byte: what was paid was done, and no more */
{
    for (uint64_t i = 0; i < sizeof touched; i++) touched[i] = 1;
}
static void registers(void)
{
    for (uint64_t i = 0; touched[i] == 0; i++) touched[i] = 1;
}
static void ops(void)
{
    for (;;) janus_op(1);
}
static int compare(const void *a, const void *b)
{
    for (;;) sink += *(const uint8_t *)a + *(const uint8_t *)b;
    return 0;
}
static void callback(void) { qsort(touched, 100, 1, compare); }

/* Costs whose sum or product wraps to 0. */
static void negative_ops(void)
{
    for (;;) janus_op(UINT64_MAX);
}
static void negative_variable(void)
{
    uint64_t cost = UINT64_MAX - (uint64_t)zero;
    for (;;) janus_op(cost);
}
static void folded_ops(void)
{
    for (;;)
        for (int i = 0; i < 16; i++) janus_op((UINT64_C(1) << 60) - 1);
}

/* Calls of functions with such names cost nothing. */
void janus_pong(uint64_t n);
void janus_ping(uint64_t n)
{
    sink = n;
    __attribute__((musttail)) return janus_pong(n + 1);
}
void janus_pong(uint64_t n)
{
    sink = n;
    __attribute__((musttail)) return janus_ping(n + 1);
}
static void free_names(void) { janus_ping(0); }
static void janus_inner(uint64_t n)
{
    sink = n;
    __attribute__((musttail)) return janus_inner(n + 1);
}
static void free_inner_names(void) { janus_inner(0); }

/* setjmp and longjmp that the compiler does not know. */
extern int  labelled_setjmp(void *) __asm__("_setjmp");
extern void labelled_longjmp(void *, int) __asm__("longjmp");
static void labelled_jumps(void)
{
    labelled_setjmp(place);
    sink++;
    labelled_longjmp(place, 1);
}
#if defined(__x86_64__)
static void                          *built_in[5];
static __attribute__((noinline)) void jump_built_in(void) { __builtin_longjmp(built_in, 1); }
static void                           built_in_jumps(void)
{
    __builtin_setjmp(built_in);
    sink++;
    jump_built_in();
}
#else
static void built_in_jumps(void) { for_ever(); }
#endif

static void (*const all[])(void) = {
    while_one,
    for_ever,
    jump_back,
    two_entries,
    computed,
    states,
    recursion,
    indirect_recursion,
    tail_calls,
    long_jumps,
    zero_step,
    always_true,
    byte_wraps,
    empty_huge,
    closed_form,
    do_ever,
    nest,
    small_nest,
    memory,
    cyclic_list,
    assembly_goto,
    strip,
    registers,
    ops,
    callback,
    up_to_all,
    up_to_byte,
    negative_ops,
    negative_variable,
    folded_ops,
    free_names,
    free_inner_names,
    labelled_jumps,
    built_in_jumps,
};

NO_OPS void count_at_end(void) /* at exhaustion: the rounds that ran */
{
    uint64_t rounds = 0;
    for (size_t i = 0; i < sizeof touched; i++) rounds += touched[i];
    printf("touched %llu\n", (unsigned long long)rounds);
}

NO_OPS int main(int count, char **arguments)
{
    if (count < 2) {
        printf("%zu\n", sizeof all / sizeof all[0]);
        return 0;
    }
    all[atoi(arguments[1])]();
    printf("it ended\n");
    return 0;
}

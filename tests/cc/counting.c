/* SPDX-License-Identifier: MIT */
/*
 * A runtime that only counts. It has the symbols that instrumented code needs, and no tasks. Tests
 * of the pass link it, so that they run in a plain process and know each op.
 *
 *     COUNT_SLICE=n    ops handed out at a time; 10,000 without it
 *     COUNT_BUDGET=n   all ops; then the process prints what it spent and exits with 3
 *     COUNT_DISTANCE   on exit, print the most ops that one slow path was asked for
 *
 * At exit it prints "ops N" to stderr, if COUNT_TELL is set.
 */
#include "counting.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__thread int64_t janus_fuel __attribute__((tls_model("initial-exec")));

static uint64_t slice = 10000, budget = UINT64_MAX, handed, largest;

uint64_t count_spent(void) { return handed - (uint64_t)janus_fuel; }

__attribute__((weak)) void count_at_end(void) {}

static void exhausted(void)
{
    count_at_end();
    printf("exhausted after %llu\n", (unsigned long long)count_spent());
    fflush(stdout);
    _exit(3);
}

/* Puts fuel into the word, until it holds `cost` or the budget is used up. */
static void refill(uint64_t cost)
{
    while ((uint64_t)janus_fuel < cost && handed < budget) {
        uint64_t lacks = cost - (uint64_t)janus_fuel;
        uint64_t more = lacks > slice ? lacks : slice;
        if (more > budget - handed) more = budget - handed;
        handed += more;
        janus_fuel += (int64_t)more;
    }
}

/* What the assembly below calls. */
__attribute__((used)) void count_slow(uint64_t cost)
{
    janus_fuel += (int64_t)cost;
    if (janus_fuel < 0) abort(); /* the word was negative before the check */
    if (cost > largest) largest = cost;
    refill(cost);
    if ((uint64_t)janus_fuel < cost) {
        janus_fuel = 0; /* the op that does not fit takes the rest */
        exhausted();
    }
    janus_fuel -= (int64_t)cost;
}

uint64_t janus_strip_slow(uint64_t rounds, uint64_t cost)
{
    if (janus_fuel < 0 || rounds == 0 || rounds > 1024 || (uint64_t)janus_fuel >= rounds * cost)
        abort();
    if (rounds * cost > largest) largest = rounds * cost;
    refill(rounds * cost);
    uint64_t paid = (uint64_t)janus_fuel / cost;
    if (paid == 0) {
        janus_fuel = 0;
        exhausted();
    }
    if (paid > rounds) paid = rounds;
    janus_fuel -= (int64_t)(paid * cost);
    return paid;
}

void janus_op(uint64_t cost)
{
    if ((uint64_t)janus_fuel < cost) refill(cost);
    if ((uint64_t)janus_fuel < cost) {
        janus_fuel = 0;
        exhausted();
    }
    janus_fuel -= (int64_t)cost;
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl janus_check_stub\n"
        ".type janus_check_stub,@function\n"
        "janus_check_stub:\n"
        "    pushq %rbp\n"
        "    movq %rsp, %rbp\n"
        "    pushq %rax\n    pushq %rcx\n    pushq %rdx\n    pushq %rsi\n    pushq %rdi\n"
        "    pushq %r8\n    pushq %r9\n    pushq %r10\n"
        "    andq $-16, %rsp\n"
        "    call count_slow\n"
        "    leaq -64(%rbp), %rsp\n"
        "    popq %r10\n    popq %r9\n    popq %r8\n"
        "    popq %rdi\n    popq %rsi\n    popq %rdx\n    popq %rcx\n    popq %rax\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size janus_check_stub, .-janus_check_stub\n");
#define SMALL(cost)                                                                                \
    __asm__(".globl janus_cc_pay_" #cost "\n"                                                      \
            "janus_cc_pay_" #cost ":\n"                                                            \
            "    pushq %rdi\n    movl $" #cost ", %edi\n    jmp count_and_keep\n")
SMALL(1);
SMALL(2);
SMALL(3);
SMALL(4);
SMALL(5);
SMALL(6);
SMALL(7);
SMALL(8);
__asm__("count_and_keep:\n"
        "    subq $256, %rsp\n"
        ".irp at, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "    movups %xmm\\at, 16*\\at(%rsp)\n"
        ".endr\n"
        "    call janus_check_stub\n"
        ".irp at, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "    movups 16*\\at(%rsp), %xmm\\at\n"
        ".endr\n"
        "    addq $256, %rsp\n"
        "    popq %rdi\n"
        "    ret\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl janus_check_stub\n"
        ".type janus_check_stub,%function\n"
        "janus_check_stub:\n"
        "    stp x29, x30, [sp, #-160]!\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n    stp x2, x3, [sp, #32]\n    stp x4, x5, [sp, #48]\n"
        "    stp x6, x7, [sp, #64]\n    stp x8, x9, [sp, #80]\n    stp x10, x11, [sp, #96]\n"
        "    stp x12, x13, [sp, #112]\n    stp x14, x15, [sp, #128]\n    str x18, [sp, #144]\n"
        "    bl count_slow\n"
        "    ldp x0, x1, [sp, #16]\n    ldp x2, x3, [sp, #32]\n    ldp x4, x5, [sp, #48]\n"
        "    ldp x6, x7, [sp, #64]\n    ldp x8, x9, [sp, #80]\n    ldp x10, x11, [sp, #96]\n"
        "    ldp x12, x13, [sp, #112]\n    ldp x14, x15, [sp, #128]\n    ldr x18, [sp, #144]\n"
        "    ldp x29, x30, [sp], #160\n"
        "    ret\n"
        ".size janus_check_stub, .-janus_check_stub\n");
#endif

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

__attribute__((constructor)) static void begin(void)
{
    slice = number("COUNT_SLICE", slice);
    budget = number("COUNT_BUDGET", budget);
}

__attribute__((destructor)) static void end(void)
{
    if (getenv("COUNT_TELL")) fprintf(stderr, "ops %llu\n", (unsigned long long)count_spent());
    if (getenv("COUNT_DISTANCE")) fprintf(stderr, "largest %llu\n", (unsigned long long)largest);
}

/* SPDX-License-Identifier: MIT */
/* The slow paths of counted code: registers, unwinding, strips, large costs, and code outside of
 * tasks. */
#include "energy.h"

#include <janusrt/counted.h>
#include <pthread.h>
#include <signal.h>
#include <unwind.h>

/* Registers. */

/*
 * Calls the stub for a cost of 1, which the word does not hold, with a value of its own in every
 * general register. Returns a bit for each that has changed.
 */
uint64_t counted_registers(void);

#if defined(__x86_64__)
__asm__("    .text\n"
        "    .type counted_registers, @function\n"
        "counted_registers:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n"
        "    pushq %r15\n"
        "    .cfi_adjust_cfa_offset 48\n"
        "    .cfi_rel_offset %rbp, 40\n    .cfi_rel_offset %rbx, 32\n"
        "    .cfi_rel_offset %r12, 24\n    .cfi_rel_offset %r13, 16\n"
        "    .cfi_rel_offset %r14, 8\n    .cfi_rel_offset %r15, 0\n"
        "    movq janus_fuel@gottpoff(%rip), %rax\n"
        "    movq $0, %fs:(%rax)\n"
        "    subq $1, %fs:(%rax)\n"
        "    movl $1, %edi\n" /* the cost */
        "    movl $101, %eax\n    movl $102, %ebx\n    movl $103, %ecx\n    movl $104, %edx\n"
        "    movl $105, %esi\n    movl $106, %ebp\n    movl $108, %r8d\n    movl $109, %r9d\n"
        "    movl $110, %r10d\n    movl $112, %r12d\n    movl $113, %r13d\n"
        "    movl $114, %r14d\n    movl $115, %r15d\n"
        "    call janus_check_stub\n" /* the stack is misaligned here, on purpose */
        "    xorq $101, %rax\n    xorq $102, %rbx\n    xorq $103, %rcx\n    xorq $104, %rdx\n"
        "    xorq $105, %rsi\n    xorq $106, %rbp\n    xorq $1, %rdi\n    xorq $108, %r8\n"
        "    xorq $109, %r9\n    xorq $110, %r10\n    xorq $112, %r12\n    xorq $113, %r13\n"
        "    xorq $114, %r14\n    xorq $115, %r15\n"
        "    orq %rbx, %rax\n    orq %rcx, %rax\n    orq %rdx, %rax\n    orq %rsi, %rax\n"
        "    orq %rbp, %rax\n    orq %rdi, %rax\n    orq %r8, %rax\n    orq %r9, %rax\n"
        "    orq %r10, %rax\n    orq %r12, %rax\n    orq %r13, %rax\n    orq %r14, %rax\n"
        "    orq %r15, %rax\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n"
        "    popq %rbp\n"
        "    .cfi_adjust_cfa_offset -48\n"
        "    ret\n"
        "    .cfi_endproc\n"
        "    .size counted_registers, . - counted_registers\n");
#elif defined(__aarch64__)
#define EACH(each)                                                                                 \
    each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9) each(10) each(11)      \
        each(12) each(13) each(14) each(15) each(19) each(20) each(21) each(22) each(23) each(24)  \
            each(25) each(26) each(27) each(28)
#define FILL(n) "    mov x" #n ", #" #n "00\n"
#define LOOK(n) "    mov x16, #" #n "00\n    eor x16, x16, x" #n "\n    orr x17, x17, x16\n"
__asm__("    .text\n"
        "    .type counted_registers, %function\n"
        "counted_registers:\n"
        "    .cfi_startproc\n"
        "    stp x29, x30, [sp, #-96]!\n"
        "    .cfi_adjust_cfa_offset 96\n    .cfi_rel_offset x29, 0\n    .cfi_rel_offset x30, 8\n"
        "    stp x19, x20, [sp, #16]\n    stp x21, x22, [sp, #32]\n    stp x23, x24, [sp, #48]\n"
        "    stp x25, x26, [sp, #64]\n    stp x27, x28, [sp, #80]\n"
        "    .cfi_rel_offset x19, 16\n    .cfi_rel_offset x20, 24\n    .cfi_rel_offset x21, 32\n"
        "    .cfi_rel_offset x22, 40\n    .cfi_rel_offset x23, 48\n    .cfi_rel_offset x24, 56\n"
        "    .cfi_rel_offset x25, 64\n    .cfi_rel_offset x26, 72\n    .cfi_rel_offset x27, 80\n"
        "    .cfi_rel_offset x28, 88\n"
        "    mrs x1, tpidr_el0\n"
        "    adrp x2, :gottprel:janus_fuel\n    ldr x2, [x2, #:gottprel_lo12:janus_fuel]\n"
        "    mov x3, #-1\n    str x3, [x1, x2]\n"
        "    mov x0, #1\n    mov x29, #2900\n" EACH(
            FILL) "    bl janus_check_stub\n"
                  "    eor x17, x0, #1\n    mov x16, #2900\n    eor x16, x16, x29\n    orr x17, "
                  "x17, x16\n" EACH(
                      LOOK) "    mov x0, x17\n"
                            "    ldp x19, x20, [sp, #16]\n    ldp x21, x22, [sp, #32]\n    ldp "
                            "x23, x24, [sp, #48]\n"
                            "    ldp x25, x26, [sp, #64]\n    ldp x27, x28, [sp, #80]\n"
                            "    ldp x29, x30, [sp], #96\n"
                            "    .cfi_def_cfa sp, 0\n    .cfi_restore x29\n    .cfi_restore x30\n"
                            "    ret\n"
                            "    .cfi_endproc\n"
                            "    .size counted_registers, . - counted_registers\n");
#endif

struct storm {
    atomic_long rounds, moves;
    atomic_int  live;
    long        most;
};

static int64_t keep_registers(void *argument)
{
    struct storm *storm = argument;
    int           place = rig_place();
    for (long i = 0; i < storm->most; i++) {
        CHECK_EQ(counted_registers(), 0);
        CHECK_EQ(janus_yield(), JANUS_OK);
        atomic_fetch_add(&storm->rounds, 1);
        if (rig_place() != place) atomic_fetch_add(&storm->moves, 1);
        place = rig_place();
    }
    return 0;
}

static int64_t keep_all_registers(void *argument)
{
    struct storm *storm = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 9; i++) CHECK_EQ(janus_spawn(&n, keep_registers, storm), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("the stub keeps every general register of the contract, also if the task continues elsewhere")
{
    struct storm storm = {.most = 200};
    uint64_t     limit = janus_now_ns() + rig_patience;
    rig_run(1, keep_all_registers, &storm, 1);
    while (atomic_load(&storm.moves) == 0 && !rig_simulated()) {
        rig_run(2, keep_all_registers, &storm, 50);
        CHECK(janus_now_ns() < limit);
    }
}

TEST("the stub keeps the registers on a plain thread") { CHECK_EQ(counted_registers(), 0); }

/* Unwinding. */

struct walk {
    bool stub, caller, entry;
};

static uint64_t through_stub(void);
static int64_t  walk_entry(void *argument);

static _Unwind_Reason_Code see_frame(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;
    void        *at = _Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context));
    walk->stub |= at == (void *)janus_check_stub;
    walk->caller |= at == (void *)counted_registers;
    walk->entry |= at == (void *)walk_entry;
    return _URC_NO_REASON;
}

static janus_verdict walk_stack(void *argument, const janus_exhausted *child, janus_budget *grant)
{
    (void)child;
    *grant = janus_budget_of(100, 0, 0, 0, 0);
    (void)_Unwind_Backtrace(see_frame, argument);
    return JANUS_VERDICT_RECHARGE;
}

__attribute__((noinline)) static uint64_t through_stub(void)
{
    uint64_t changed = counted_registers();
    __asm__ volatile(""); /* no tail call */
    return changed;
}

__attribute__((noinline)) static int64_t walk_entry(void *argument)
{
    const struct walk *walk = argument;
    while (!walk->stub) CHECK_EQ(through_stub(), 0);
    return 0;
}

static int64_t walk_in_callback(void *argument)
{
    janus_nursery n;
    janus_budget pool = JANUS_BUDGET(.ops = 1000, .spawn_count = 1), share = JANUS_BUDGET(.ops = 2);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool,
                                                          .exhaustion = JANUS_EXHAUSTION_SUPERVISE,
                                                          .on_exhausted = walk_stack,
                                                          .on_exhausted_argument = argument)),
             JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&n, walk_entry, argument, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
        JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("an unwinder walks from inside a slow path through the stub to the task's entry")
{
    struct walk walk = {false, false, false};
    rig_run(1, walk_in_callback, &walk, 1);
    CHECK(walk.stub);
    CHECK(walk.caller);
    CHECK(walk.entry);
}

/* Runs a task whose pools may have any number of ops. */
static void run_rich(uint32_t workers, janus_entry *entry, void *argument)
{
    janus_budget most = janus_budget_of(UINT64_C(1) << 62, 1 << 30, 1000, 1000, 1000);
    rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_budget = &most), entry,
              argument);
}

/* Strips. */

/* Pays as a stripped loop does. */
static uint64_t pay_strip(uint64_t rounds, uint64_t cost)
{
    if (janus_fuel_take((uint32_t)(rounds * cost)) >= 0) return rounds;
    return janus_strip_slow(rounds, cost);
}

struct strips {
    uint64_t    ops, cost, total; /* the budget, of a round, rounds to do */
    atomic_long rounds;           /* paid */
    atomic_int  defers;
};

static void note_defer(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

static int64_t run_strips(void *argument)
{
    struct strips *strips = argument;
    CHECK_EQ(janus_defer(note_defer, &strips->defers), JANUS_OK);
    for (uint64_t left = strips->total; left > 0;) {
        uint64_t wanted = left < 1024 ? left : 1024, paid = pay_strip(wanted, strips->cost);
        CHECK(paid >= 1 && paid <= wanted);
        atomic_fetch_add(&strips->rounds, (long)paid);
        left -= paid;
    }
    return 0;
}

/* The child gets the ops of a pool in portions. */
static int64_t in_pool(void *argument)
{
    struct strips          *strips = argument;
    janus_nursery           n;
    janus_nursery_pool_info info = JANUS_NURSERY_POOL_INFO();
    janus_nursery_result    result = {.kind = JANUS_RESULT_KIND_PENDING};
    janus_budget            pool = JANUS_BUDGET(.ops = strips->ops + 1, .spawn_count = 1);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, run_strips, strips), JANUS_OK);
    JANUS_IGNORE(janus_nursery_await_with(&n, NULL));
    CHECK_EQ(janus_nursery_pool_inspect(&n, &info), JANUS_OK);
    uint64_t rounds = strips->ops / strips->cost;
    bool     enough = rounds >= strips->total;
    if (enough) rounds = strips->total;
    CHECK_EQ(janus_nursery_end(&n, &result), enough ? JANUS_OK : JANUS_CHILD_FAILED);
    if (!enough) CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(atomic_load(&strips->rounds), rounds);
    /* A task is exhausted with nothing left, unless a round costs more than a slice has. */
    bool rest = enough || strips->cost > JANUS_SLICE;
    CHECK_EQ(info.spent.ops, (rest ? rounds * strips->cost : strips->ops) + 1);
    CHECK_EQ(atomic_load(&strips->defers), 1);
    return 0;
}

TEST("a stripped loop runs exactly the rounds that its budget covers")
{
    static const uint64_t budgets[] = {1,    31,   33,    671,   1023,  1024,
                                       1025, 9999, 10000, 10001, 99999, 123456};
    static const uint64_t costs[] = {1, 2, 3, 7, 1000, 9999, 10001};
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        for (size_t j = 0; j < sizeof costs / sizeof costs[0]; j++) {
            struct strips strips = {.ops = budgets[i], .cost = costs[j], .total = 1u << 20};
            run_rich(1 + (j & 1), in_pool, &strips);
        }
    }
    struct strips exactly = {.ops = 30000, .cost = 3, .total = 10000};
    run_rich(1, in_pool, &exactly);
}

static int64_t recharge_strips(void *argument)
{
    struct strips *strips = argument;
    janus_nursery  n;
    janus_budget   share = JANUS_BUDGET(.ops = 777);
    CHECK_EQ(
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
        JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, run_strips, strips, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
             JANUS_OK);
    uint64_t given = 777;
    for (int i = 0; i < 50; i++) {
        janus_exhausted child = await_exhausted(&n);
        CHECK_EQ(atomic_load(&strips->rounds), given / strips->cost);
        CHECK_EQ(child.lacks, JANUS_COMPONENT_OPS);
        uint64_t more = 1 + 501 * (uint64_t)i;
        CHECK_EQ(janus_nursery_recharge(&n, child.task, JANUS_BUDGET(.ops = more)), JANUS_OK);
        given += more;
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(atomic_load(&strips->rounds), given / strips->cost);
    CHECK_EQ(atomic_load(&strips->defers), 1);
    return 0;
}

TEST("a stripped loop that is recharged goes on with what it had and what it got")
{
    for (uint64_t cost = 1; cost <= 400; cost = cost * 3 + 1) {
        struct strips strips = {.cost = cost, .total = UINT64_MAX};
        rig_run(1, recharge_strips, &strips, 1);
    }
}

static int64_t cancel_strips(void *argument)
{
    struct strips *strips = argument;
    janus_nursery  n;
    uint64_t       limit = janus_now_ns() + rig_patience;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, run_strips, strips), JANUS_OK);
    while (atomic_load(&strips->rounds) < 100000) {
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK(janus_now_ns() < limit);
    }
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK_EQ(atomic_load(&strips->defers), 1);
    return 0;
}

TEST("an endless stripped loop on an implicit budget goes on, and ends when it is cancelled")
{
    for (uint64_t cost = 1; cost <= 20000; cost = cost * 20 + 1) {
        struct strips strips = {.cost = cost, .total = UINT64_MAX};
        rig_run(1, cancel_strips, &strips, 1);
        rig_run(2, cancel_strips, &(struct strips){.cost = cost, .total = UINT64_MAX}, 1);
    }
}

/* Large costs. */

static int64_t pay_at_once(void *argument)
{
    janus_op(*(const uint64_t *)argument);
    return 0;
}

/* Takes the cost as generated code does. */
static int64_t pay_by_stub(void *argument)
{
    uint64_t cost = *(const uint64_t *)argument, rest = cost;
    for (; rest > UINT32_MAX; rest -= UINT32_MAX) (void)janus_fuel_take(UINT32_MAX);
    (void)janus_fuel_take((uint32_t)rest);
    janus_check_stub(cost);
    return 0;
}

static uint64_t spent_for(janus_entry *entry, uint64_t cost, uint64_t ops, int64_t *error)
{
    janus_nursery           n;
    janus_nursery_pool_info info = JANUS_NURSERY_POOL_INFO();
    janus_nursery_result    result = {.kind = JANUS_RESULT_KIND_PENDING};
    janus_budget            pool = JANUS_BUDGET(.ops = ops + 1, .spawn_count = 1);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, entry, &cost), JANUS_OK);
    JANUS_IGNORE(janus_nursery_await_with(&n, NULL));
    CHECK_EQ(janus_nursery_pool_inspect(&n, &info), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, &result));
    *error = result.kind == JANUS_RESULT_KIND_CHILD_FAILED ? result.error : 0;
    return info.spent.ops - 1;
}

static int64_t pay_large(void *argument)
{
    int64_t error;
    (void)argument;
    CHECK_EQ(spent_for(pay_at_once, 50000, 50000, &error), 50000);
    CHECK_EQ(error, 0);
    CHECK_EQ(spent_for(pay_at_once, UINT64_C(1) << 40, UINT64_C(1) << 41, &error), UINT64_C(1)
                                                                                       << 40);
    CHECK_EQ(error, 0);
    static const uint64_t costs[] = {
        50001, UINT64_C(1) << 40, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX - 20, UINT64_MAX};
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        CHECK_EQ(spent_for(pay_at_once, costs[i], 50000, &error), 0);
        CHECK_EQ(error, JANUS_BUDGET_EXHAUSTED);
    }
    CHECK_EQ(spent_for(pay_by_stub, UINT64_C(1) << 40, 50000, &error), 0);
    CHECK_EQ(error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(spent_for(pay_by_stub, UINT64_C(1) << 40, UINT64_C(1) << 41, &error), UINT64_C(1)
                                                                                       << 40);
    CHECK_EQ(error, 0);
    return 0;
}

TEST("one op of any cost is paid, or ends the task and takes nothing")
{
    run_rich(1, pay_large, NULL);
}

static int64_t pay_implicit(void *argument)
{
    uint64_t       cost = UINT64_C(1) << 24; /* 1 GiB set, at 64 bytes an op */
    janus_nursery  n;
    const uint64_t more = UINT64_C(1) << 60;
    (void)argument;
    CHECK_EQ(pay_at_once(&cost), 0);
    CHECK_EQ(pay_by_stub(&cost), 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, pay_at_once, (void *)(uintptr_t)&more), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("an implicit budget pays for a large op in portions, and not for one of 2^60")
{
    rig_run(1, pay_implicit, NULL, 1);
}

/* Outside of tasks. */

static int built; /* by a constructor */

static void call_all(void)
{
    for (int i = 0; i < 1000; i++) {
        janus_op(1u << 30);
        janus_op(UINT64_MAX);
        janus_check_or_end(1000);
        CHECK_EQ(janus_strip_slow(1024, 7), 1024);
        CHECK_EQ(counted_registers(), 0);
    }
    CHECK(janus_fuel >= 0);
}

__attribute__((constructor)) static void count_in_constructor(void)
{
    call_all();
    built = 1;
}

static void *count_in_thread(void *argument)
{
    call_all();
    *(int *)argument = 1;
    return NULL;
}

TEST("counted code runs in constructors, in threads without a task and in the main thread")
{
    pthread_t thread;
    int       done = 0;
    call_all();
    CHECK_EQ(built, 1);
    CHECK_EQ(pthread_create(&thread, NULL, count_in_thread, &done), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(done, 1);
}

/* The sign of the word. */

static atomic_int defer_spent;

static void spend_in_defer(void *argument)
{
    (void)argument;
    CHECK(janus_fuel >= 0);
    for (;;) {
        janus_check_or_end(1); /* until the allowance is used up */
        atomic_fetch_add(&defer_spent, 1);
    }
}

static int64_t end_in_check(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_defer(spend_in_defer, NULL), JANUS_OK);
    (void)janus_fuel_take(UINT32_MAX);
    janus_panic("between a check and its slow path");
}

static int64_t mend_word(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, end_in_check, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    /* The rest of its own budget, and the allowance. */
    CHECK(atomic_load(&defer_spent) <= 2 * JANUS_SLICE);
    return 0;
}

TEST("a task that is broken off between a check and its slow path cleans up with a word of zero")
{
    atomic_store(&defer_spent, 0);
    rig_run(1, mend_word, NULL, 1);
}

/* SPDX-License-Identifier: MIT */
/* Stack overflow: one fiber ends, and all others go on. */
#include "world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__) /* instrumented or emulated: slower */
enum { MANY = 2000 };
#else
enum { MANY = 100000 };
#endif

static int64_t overflow(void *argument)
{
    (void)argument;
    return dig(0);
}

/* The rungs that detect an overflow at the fault, if this machine has them. */
static janus_guard const hard_rungs[] = {JANUS_GUARD_MARKER, JANUS_GUARD_MPROTECT};

TEST("an overflow ends its fiber with a panic that names it, and the process lives on")
{
    for (size_t i = 0; i < 2; i++) {
        if (!janus_guard_available(hard_rungs[i])) continue;
        janus_fiber_pool      *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.guard = hard_rungs[i]));
        janus_fiber           *fiber = NULL;
        janus_fiber_stack_info info = JANUS_FIBER_STACK_INFO();
        CHECK_EQ(
            janus_fiber_create(pool, overflow, NULL, JANUS_FIBER_OPTIONS(.name = "digger"), &fiber),
            JANUS_OK);
        CHECK_EQ(janus_fiber_stack_inspect(fiber, &info), JANUS_OK);
        janus_outcome outcome = resume(fiber, NULL);
        CHECK_EQ(outcome.state, JANUS_FIBER_STATE_PANICKED);
        CHECK_EQ(outcome.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
        CHECK_STR(outcome.panic.name, "digger");
        CHECK_EQ(outcome.panic.fiber_id, janus_fiber_id(fiber));
        CHECK_EQ(outcome.panic.stack_bytes, info.reserved_bytes);
        CHECK_EQ(outcome.panic.guard, hard_rungs[i]);
        CHECK(outcome.panic.fault_address != NULL);
        CHECK(outcome.panic.code_address != NULL);
        char text[512];
        janus_panic_text(&outcome.panic, text, sizeof text);
        CHECK(strstr(text, "\"digger\" overflowed its ") != NULL);
        CHECK(strstr(text, "KiB stack") != NULL);
        CHECK_EQ(janus_fiber_state_of(fiber), JANUS_FIBER_STATE_PANICKED);
        CHECK_EQ(stats_of(pool).overflows, 1);
        janus_fiber_destroy(fiber);
        pool_close(pool);
    }
}

TEST("any number of overflows in a row are each reported once and leak nothing")
{
    janus_fiber_pool *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.stack_bytes = 16 * 1024));
    (void)run_once(pool, overflow, NULL);
    janus_fiber_pool_info before = stats_of(pool);
    for (int i = 0; i < MANY; i++) {
        janus_outcome outcome = run_once(pool, overflow, NULL);
        CHECK_EQ(outcome.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
        CHECK(outcome.panic.fiber_id != 0);
    }
    janus_fiber_pool_info after = stats_of(pool);
    CHECK_EQ(after.overflows, before.overflows + MANY);
    CHECK_EQ(after.reserved_bytes, before.reserved_bytes);
    CHECK_EQ(after.record_bytes, before.record_bytes);
    pool_close(pool);
}

static int64_t keep_secret(void *argument)
{
    volatile uint64_t secret[64];
    for (int i = 0; i < 64; i++) secret[i] = (uint64_t)(uintptr_t)argument + (uint64_t)i;
    if (janus_fiber_suspend(NULL, NULL) != JANUS_OK) return -1;
    for (int i = 0; i < 64; i++) {
        if (secret[i] != (uint64_t)(uintptr_t)argument + (uint64_t)i) return -1;
    }
    return 0;
}

TEST("neighbours' stacks are untouched by an overflow between them")
{
    janus_fiber_pool *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.stack_bytes = 16 * 1024));
    janus_fiber      *left = fiber_new(pool, keep_secret, (void *)0x1000);
    (void)resume(left, NULL);
    janus_fiber *digger = fiber_new(pool, overflow, NULL);
    janus_fiber *right = fiber_new(pool, keep_secret, (void *)0x2000);
    (void)resume(right, NULL);
    CHECK_EQ(resume(digger, NULL).state, JANUS_FIBER_STATE_PANICKED);
    CHECK_EQ(resume(left, NULL).result, 0);
    CHECK_EQ(resume(right, NULL).result, 0);
    janus_fiber_destroy(left);
    janus_fiber_destroy(digger);
    janus_fiber_destroy(right);
    pool_close(pool);
}

static int64_t host(void *argument)
{
    janus_fiber_pool *pool = argument;
    janus_outcome     outcome = run_once(pool, overflow, NULL);
    CHECK_EQ(outcome.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
    CHECK(janus_fiber_current() != NULL);
    return 7;
}

TEST("an overflow in a nested fiber lands in the fiber that resumed it")
{
    janus_fiber_pool *pool = pool_new();
    CHECK_EQ(run_once(pool, host, pool).result, 7);
    pool_close(pool);
}

/* Uses the library at every depth, so that the stack overflows inside a call of the library. */
__attribute__((noinline)) static int64_t dig_with_calls(janus_fiber_pool *pool, int64_t depth)
{
    static volatile bool bottomless = true;
    volatile char        room[200];
    room[0] = (char)depth;
    janus_fiber *fiber = NULL;
    CHECK_EQ(janus_fiber_create(pool, overflow, NULL, NULL, &fiber), JANUS_OK);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    janus_fiber_pool_trim(pool, 1);
    return (bottomless ? dig_with_calls(pool, depth + 1) : 0) + room[0];
}

static int64_t overflow_in_calls(void *argument) { return dig_with_calls(argument, 0); }

TEST("an overflow inside a call to the library leaves no lock behind")
{
    janus_fiber_pool *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.stack_bytes = 32 * 1024));
    janus_fiber_pool *other = pool_new();
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(run_once(pool, overflow_in_calls, other).state, JANUS_FIBER_STATE_PANICKED);
        CHECK_EQ(stats_of(other).fibers_live, 0);
    }
    pool_close(other);
    pool_close(pool);
}

static int64_t strike(void *argument)
{
    *(volatile int *)argument = 1;
    return 0;
}

static void strike_in_a_fiber(void *address)
{
    janus_fiber_pool *pool = pool_new();
    (void)run_once(pool, strike, address);
}

TEST("a fault elsewhere in a fiber ends the process as it would without the library")
{
#if JRT_ASAN || JRT_TSAN
    SKIP("the sanitizer's own handler exits instead of dying by the signal");
#endif
    int status = 0;
    harness_child(strike_in_a_fiber, (void *)16, &status);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGSEGV);
}

static volatile sig_atomic_t handled;
static void *volatile handled_address;
static void *mended_page;

static void mend(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    handled++;
    handled_address = info->si_addr;
    if (mprotect(mended_page, 4096, PROT_READ | PROT_WRITE) != 0) _exit(3);
}

TEST("a fault elsewhere goes to the earlier handler, with its address, and resumes")
{
    long page = sysconf(_SC_PAGESIZE);
    mended_page = mmap(NULL, (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mended_page != MAP_FAILED);
    struct sigaction mine = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO}, before, after;
    CHECK_EQ(sigaction(SIGSEGV, &mine, &before), 0);
    handled = 0;

    janus_fiber_pool *pool = pool_new();
    CHECK_EQ(run_once(pool, strike, (char *)mended_page + 8).result, 0);
    CHECK_EQ(handled, 1);
    CHECK(handled_address == (char *)mended_page + 8);
    CHECK_EQ(run_once(pool, overflow, NULL).panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
    CHECK_EQ(handled, 1);
    pool_close(pool);

    CHECK_EQ(sigaction(SIGSEGV, &before, &after), 0);
    CHECK(after.sa_sigaction == mend); /* the last pool restored it */
    munmap(mended_page, (size_t)page);
}

static void ask_first(int number, siginfo_t *info, void *context)
{
    handled++;
    if (!janus_fault_claim(number, info, context)) _exit(4);
}

TEST("a program's own handler can offer faults to the library")
{
    stack_t altstack = {.ss_sp = malloc(256 * 1024), .ss_size = 256 * 1024};
    stack_t old;
    CHECK_EQ(sigaltstack(&altstack, &old), 0);
    struct sigaction mine = {.sa_sigaction = ask_first, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction before;
    CHECK_EQ(sigaction(SIGSEGV, &mine, &before), 0);
    handled = 0;
    janus_fiber_pool *pool =
        pool_with(JANUS_FIBER_POOL_OPTIONS(.signal_mode = JANUS_SIGNAL_MODE_MANUAL));
    CHECK_EQ(run_once(pool, overflow, NULL).panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
    CHECK_EQ(handled, 1);
    pool_close(pool);
    CHECK_EQ(sigaction(SIGSEGV, &before, NULL), 0);
    CHECK_EQ(sigaltstack(&old, NULL), 0);
    free(altstack.ss_sp);
}

static struct sigaction chained;

static void chain(int number, siginfo_t *info, void *context)
{
    handled++;
    if (handled > 3) _exit(5);
    chained.sa_sigaction(number, info, context);
}

static void fault_in_a_ring(void *argument)
{
    (void)argument;
    janus_fiber_pool *pool = pool_new();
    struct sigaction  mine = {.sa_sigaction = chain, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK_EQ(sigaction(SIGSEGV, &mine, &chained), 0);
    CHECK_EQ(janus_fiber_pool_destroy(pool), JANUS_OK);
    pool = pool_new(); /* replaces chain(), which forwards to our handler */
    (void)run_once(pool, strike, (void *)16);
}

TEST("two handlers that forward to each other do not loop for ever")
{
#if JRT_ASAN || JRT_TSAN
    SKIP("the sanitizer's own handler exits instead of dying by the signal");
#endif
    int status = 0;
    harness_child(fault_in_a_ring, NULL, &status);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGSEGV);
}

/* Deep enough to leave the stack, shallow enough to stay in the zone below it. */
__attribute__((noinline)) static int64_t dig_to(int64_t depth)
{
    char room[400];
    memset(room, 1, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory"); /* otherwise it becomes a loop */
    int64_t deeper = depth > 0 ? dig_to(depth - 1) : 0;
    __asm__ volatile("" : : "r"(room) : "memory");
    return deeper + room[0];
}

struct digger {
    int64_t depth;
    bool    suspends;
};

static int64_t dig_a_little(void *argument)
{
    struct digger *digger = argument;
    int64_t        sum = dig_to(digger->depth);
    if (digger->suspends && janus_fiber_suspend(NULL, NULL) != JANUS_OK) return -1;
    return sum;
}

TEST("without guard pages the canary reports an overflow at the next switch")
{
#if JRT_ASAN || JRT_TSAN
    SKIP("instrumented frames have no known size");
#endif
    janus_fiber_pool *pool =
        pool_with(JANUS_FIBER_POOL_OPTIONS(.guard = JANUS_GUARD_CANARY, .stack_bytes = 16 * 1024,
                                           .guard_bytes = 64 * 1024));
    struct digger cases[] = {{60, true}, {60, false}};
    for (int i = 0; i < 2; i++) {
        janus_outcome outcome = run_once(pool, dig_a_little, &cases[i]);
        CHECK_EQ(outcome.state, JANUS_FIBER_STATE_PANICKED);
        CHECK_EQ(outcome.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
        CHECK_EQ(outcome.panic.guard, JANUS_GUARD_CANARY);
        CHECK(outcome.panic.fault_address == NULL);
    }
    struct digger shallow = {5, true};
    CHECK_EQ(run_once(pool, dig_a_little, &shallow).state, JANUS_FIBER_STATE_SUSPENDED);
    CHECK_EQ(stats_of(pool).overflows, 2);
    pool_close(pool);
}

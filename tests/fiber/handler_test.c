/* SPDX-License-Identifier: MIT */
/* The SIGSEGV handler among foreign handlers, masks and stacks. Each case has a process of its own,
 * because these belong to the process. */
#include "world.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if JRT_ASAN || JRT_TSAN
#define NEEDS_PLAIN_SIGNALS SKIP("sanitizers have handlers and stacks of their own")
#else
#define NEEDS_PLAIN_SIGNALS ((void)0)
#endif

static volatile char *volatile nowhere = (volatile char *)16; /* opaque to compilers */
static volatile sig_atomic_t calls;

static int64_t overflow(void *argument)
{
    (void)argument;
    return dig(0);
}

static void overflow_is_contained(janus_fiber_pool *pool)
{
    CHECK_EQ(run_once(pool, overflow, NULL).panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
}

static int in_child(void (*body)(void *))
{
    int status = 0;
    harness_child(body, NULL, &status);
    return status;
}

static sigjmp_buf back;

static void jump_back(int number)
{
    (void)number;
    calls++;
    siglongjmp(back, 1);
}

__attribute__((noinline)) static int readable(volatile char *address)
{
    if (sigsetjmp(back, 1) != 0) return 0;
    (void)*address;
    return 1;
}

__attribute__((noinline)) static int readable_from(int depth, volatile char *address)
{
    volatile char room[500];
    room[0] = 0;
    int answer = depth > 0 ? readable_from(depth - 1, address) : readable(address);
    return answer + room[0];
}

static void probe_addresses(void *argument)
{
    (void)argument;
    signal(SIGSEGV, jump_back);
    janus_fiber_pool *pool = pool_new();
    for (int depth = 0; depth < 20; depth += 5) CHECK_EQ(readable_from(depth, nowhere), 0);
    overflow_is_contained(pool);
    for (int depth = 20; depth > 0; depth -= 5) CHECK_EQ(readable_from(depth, nowhere), 0);
    CHECK_EQ(calls, 8);
}

TEST("an earlier handler may leave by longjmp, any number of times")
{
    NEEDS_PLAIN_SIGNALS;
    CHECK_EQ(in_child(probe_addresses), 0);
}

static void count(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    if (++calls > 1) _exit(9);
}

static void fault_with_one_shot_handler(void *argument)
{
    (void)argument;
    struct sigaction once = {.sa_sigaction = count, .sa_flags = SA_SIGINFO | (int)SA_RESETHAND};
    CHECK_EQ(sigaction(SIGSEGV, &once, NULL), 0);
    (void)pool_new();
    *nowhere = 1;
}

TEST("an earlier handler with SA_RESETHAND runs once, then the default acts")
{
    NEEDS_PLAIN_SIGNALS;
    int status = in_child(fault_with_one_shot_handler);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGSEGV);
}

static void fault_with_reentrant_handler(void *argument)
{
    (void)argument;
    struct sigaction reentrant = {.sa_handler = jump_back, .sa_flags = SA_NODEFER};
    CHECK_EQ(sigaction(SIGSEGV, &reentrant, NULL), 0);
    (void)pool_new();
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 0) == 0) *nowhere = 1; /* the mask is not saved */
    }
    CHECK_EQ(calls, 3);
}

TEST("an earlier handler with SA_NODEFER finds the signal unblocked")
{
    NEEDS_PLAIN_SIGNALS;
    CHECK_EQ(in_child(fault_with_reentrant_handler), 0);
}

static void send_ignored_signal(void *argument)
{
    (void)argument;
    signal(SIGSEGV, SIG_IGN);
    janus_fiber_pool *pool = pool_new();
    kill(getpid(), SIGSEGV);
    overflow_is_contained(pool);
}

TEST("a SIGSEGV that was sent and is ignored stays ignored")
{
    NEEDS_PLAIN_SIGNALS;
    CHECK_EQ(in_child(send_ignored_signal), 0);
}

static struct sigaction below;

static void pass_down(int number, siginfo_t *info, void *context)
{
    below.sa_sigaction(number, info, context);
}

static void end_well(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    _exit(42);
}

static void chain_of_handlers(void *argument)
{
    (void)argument;
    struct sigaction first = {.sa_sigaction = end_well, .sa_flags = SA_SIGINFO};
    struct sigaction on_top = {.sa_sigaction = pass_down, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK_EQ(sigaction(SIGSEGV, &first, NULL), 0);
    janus_fiber_pool *pool = pool_new();
    CHECK_EQ(sigaction(SIGSEGV, &on_top, &below), 0);
    pool_close(pool);
    pool = pool_new();
    overflow_is_contained(pool);
    *nowhere = 1;
}

TEST("a chain of handlers around the library's stays whole when pools come and go")
{
    NEEDS_PLAIN_SIGNALS;
    int status = in_child(chain_of_handlers);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 42);
}

static void with_all_signals_blocked(void *argument)
{
    (void)argument;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    overflow_is_contained(pool_new());
}

TEST("a thread that blocks all signals can still run a fiber that overflows")
{
    NEEDS_PLAIN_SIGNALS;
    CHECK_EQ(in_child(with_all_signals_blocked), 0);
}

static void with_a_small_altstack(void *argument)
{
    (void)argument;
    char *memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    stack_t small = {.ss_sp = memory, .ss_size = (size_t)MINSIGSTKSZ + 4096};
    CHECK_EQ(sigaltstack(&small, NULL), 0);
    overflow_is_contained(pool_new());
}

TEST("an alternate stack that is too small is replaced")
{
    NEEDS_PLAIN_SIGNALS;
    CHECK_EQ(in_child(with_a_small_altstack), 0);
}

static void *resume_while_cancelled(void *pool)
{
    pthread_cancel(pthread_self());
    (void)run_once(pool, overflow, NULL);
    pthread_testcancel();
    return NULL;
}

TEST("a thread with a cancellation pending is not unwound inside the library")
{
    janus_fiber_pool *pool = pool_new();
    pthread_t         thread;
    CHECK_EQ(pthread_create(&thread, NULL, resume_while_cancelled, pool), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(stats_of(pool).overflows, 1);
    pool_close(pool);
}

#if defined(__x86_64__)
static void on_user_signal(int number)
{
    (void)number;
    calls++;
}

/* Uses nearly all of the stack, then gets a signal whose frame does not fit. */
static int64_t signal_near_the_end(void *argument)
{
    (void)argument;
    janus_fiber_stack_info info = JANUS_FIBER_STACK_INFO();
    CHECK_EQ(janus_fiber_stack_inspect(janus_fiber_current(), &info), JANUS_OK);
    size_t         left = (size_t)((char *)__builtin_frame_address(0) - (const char *)info.low);
    volatile char *frame = __builtin_alloca(left - 1500);
    frame[0] = 1;
    long number = 62; /* kill, without a libc frame */
    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"((long)*(pid_t *)argument), "S"((long)SIGUSR1)
                     : "rcx", "r11", "memory");
    return frame[0];
}

static void signal_frame_does_not_fit(void *argument)
{
    (void)argument;
    pid_t self = getpid();
    signal(SIGUSR1, on_user_signal);
    janus_fiber_pool *pool = pool_new();
    janus_outcome     outcome = run_once(pool, signal_near_the_end, &self);
    CHECK_EQ(outcome.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
    overflow_is_contained(pool); /* the handler is still there */
}

TEST("a signal that does not fit on a fiber's stack is that fiber's overflow")
{
    NEEDS_PLAIN_SIGNALS;
    CHECK_EQ(in_child(signal_frame_does_not_fit), 0);
}

/* Overflows with the direction flag set, a full x87 stack, or alignment checks on. */
static int64_t overflow_strangely(void *argument)
{
    switch ((intptr_t)argument) {
    case 1: __asm__ volatile("std"); break;
    case 2:
        for (int i = 0; i < 8; i++) __asm__ volatile("fld1");
        break;
    case 3: __asm__ volatile("pushfq; orq $0x40000, (%%rsp); popfq" ::: "memory", "cc"); break;
    default: break;
    }
    __asm__ volatile("1: pushq $0; jmp 1b");
    return 0;
}

TEST("whatever the flags and the x87 stack were, the resumer gets them as the ABI requires")
{
    NEEDS_PLAIN_SIGNALS;
    janus_fiber_pool *pool = pool_new();
    for (intptr_t i = 0; i < 4; i++) {
        CHECK_EQ(run_once(pool, overflow_strangely, (void *)i).panic.kind,
                 JANUS_PANIC_KIND_STACK_OVERFLOW);
        uint64_t flags;
        __asm__ volatile("pushfq; popq %0" : "=r"(flags));
        CHECK_EQ(flags & 0x40400, 0);
        volatile long double x = 1.5L;
        for (int k = 0; k < 9; k++) x = x * 2.0L; /* a full x87 stack would give NaN */
        CHECK(x == 768.0L);
    }
    pool_close(pool);
}
#endif

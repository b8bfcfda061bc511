/* SPDX-License-Identifier: MIT */
/*
 * The real system: Linux.
 *
 * Sleeping. A futex sleeper may wake for no reason, and every caller loops anyway. So a signal
 * (EINTR) counts as such a wake-up. Deadlines are absolute, and the kernel gets them unchanged
 * (FUTEX_WAIT_BITSET, CLOCK_MONOTONIC). A loop that wakes and sleeps again does not drift.
 *
 * [futex-errors]  the kernel ends a wait for one of four reasons: a wake, a word that differs, a
 *   signal, a deadline. Any other error means that the address is wrong or that a filter forbids
 *   sleeping. To continue would turn every sleep into a spin.
 *
 * [thread-mask]  threads started here block every signal except SIGPROF and the faults of an
 *   instruction. A handler would run on the current stack, which may be a fiber's 16 KiB. It would
 *   also interrupt system calls of code that never asked for signals. So the program's own threads
 *   receive the signals sent to the process. SIGPROF stays, because a profiler needs the thread
 *   that uses the CPU. Its handler should use SA_ONSTACK.
 *   The price: a program that such a thread starts by fork and exec inherits the mask. It ignores
 *   requests to terminate until it unblocks them. To avoid this, set the mask in the child
 *   (posix_spawnattr_setsigmask).
 *
 * [fence-mode]  jrt_fences_membarrier changes at most once, from false to true. A heavy fence
 *   decides before it fences. So if a light fence can read true, every heavy fence uses membarrier.
 *   That puts a full fence into each running thread of the process, even between the two sides of a
 *   light fence. A light fence that reads false is a full fence, and membarrier includes a full
 *   fence for its caller. So both pairs hold. The flag cannot return to false, because a light
 *   fence may just have read it. If the system refuses membarrier later (a filter installed too
 *   late), the process ends.
 *
 * Rejected: mprotect, or a write to every thread's page, as the heavy side where membarrier is
 * missing (before Linux 4.14, under Valgrind). It is hard to get right, for systems that are hardly
 * used.
 *
 * Locks: none.
 */
#include "plat/seam.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000 };

extern _Thread_local struct jrt_world *jrt_world_here
    __attribute__((visibility("hidden"), tls_model("initial-exec")));

__attribute__((noinline)) void jrt_world_set(struct jrt_world *world) { jrt_world_here = world; }

uint64_t jrt_clock_now_ns(void)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) return world->now_ns(world);
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t jrt_clock_coarse_ns(void)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) return world->now_ns(world);
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now); /* cannot fail */
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

bool jrt_random_fill(void *out, size_t bytes)
{
    ssize_t got;
    do { /* getrandom fills up to 256 bytes, or fails while the kernel has too little entropy */
        got = getrandom(out, bytes, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes;
}

ptrdiff_t jrt_fd_write(int fd, const void *bytes, size_t count)
{
    const struct jrt_world *world = jrt_world_now();
    long                    took;
    if (jrt_unlikely(world != NULL && world->mute && fd == STDERR_FILENO)) return (ptrdiff_t)count;
    do { /* by syscall: write() is a cancellation point, and callers hold locks */
        took = syscall(SYS_write, fd, bytes, count);
    } while (took < 0 && errno == EINTR);
    return took;
}

void jrt_futex_wait(_Atomic(uint32_t) *word, uint32_t expected)
{
    (void)jrt_futex_wait_until(word, expected, JRT_NEVER);
}

bool jrt_futex_wait_until(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) return world->wait(world, word, expected, deadline_ns);
    return jrt_real_wait_until(word, expected, deadline_ns);
}

static long wait_until(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                                .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    return syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                   deadline_ns == JRT_NEVER ? NULL : &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* The thread sanitizer runs handlers of signals in calls that it knows. So a wait, which it does
 * not know, is short there, and a call that it knows follows. */
static bool wait_sanitized(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
    uint64_t soon = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec + NS_PER_S / 50;
    long     result = wait_until(word, expected, deadline_ns < soon ? deadline_ns : soon);
    bool     late = result != 0 && errno == ETIMEDOUT && deadline_ns < soon;
    (void)usleep(0);
    return !late;
}

bool jrt_real_wait_until(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
    if (JRT_TSAN) return wait_sanitized(word, expected, deadline_ns);
    if (wait_until(word, expected, deadline_ns) == 0) return true;
    if (errno == ETIMEDOUT) return false;
    jrt_invariant("futex-errors", errno == EAGAIN || errno == EINTR);
    return true;
}

void jrt_futex_wake(_Atomic(uint32_t) *word, int count)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) {
        world->wake(world, word, count);
        return;
    }
    jrt_real_wake(word, count);
    jrt_bell_ring();
}

void jrt_real_wake(_Atomic(uint32_t) *word, int count)
{
    /* This fails only if the address is unmapped by now, and then no thread sleeps there. */
    (void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0);
}

/*
 * [bell]  a world in which no part can run waits for outside threads. It counts itself in `bells`,
 *   then reads the words of its sleeping parts again. An outside thread changes a word, wakes its
 *   sleepers, and then reads `bells`. seq_cst on both sides: one of them sees the other's write.
 */
_Atomic(uint32_t) jrt_bells, jrt_bell;

void jrt_bell_ring(void)
{
    jrt_fences_full();                             /* seq_cst: [bell]. */
    if (jrt_load_relaxed(&jrt_bells) == 0) return; /* relaxed: after the fence. */
    (void)jrt_fetch_add_seq_cst(&jrt_bell, 1u);    /* seq_cst: after the change of the word. */
    jrt_real_wake(&jrt_bell, JRT_WAKE_ALL);
}

void jrt_thread_yield(void)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) {
        world->pass(world);
    } else {
        (void)sched_yield();
    }
}

uint64_t jrt_thread_cpu_ns(void)
{
    struct timespec ran;
    if (jrt_unlikely(jrt_world_now() != NULL)) return 0;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran) != 0) return 0;
    return (uint64_t)ran.tv_sec * 1000000000u + (uint64_t)ran.tv_nsec;
}

/* Functions, so that no caller keeps the address of the number across a switch of threads. */
static _Thread_local int locks_held;

void jrt_locks_count(int more) { locks_held += more; }
int  jrt_locks_held(void) { return jrt_world_now() == NULL ? locks_held : 0; }

/* Whether the calling thread leaves signals to the program and gets its own faults. */
static bool is_masked(void)
{
    sigset_t now;
    if (pthread_sigmask(SIG_BLOCK, NULL, &now) != 0) return false;
    return sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGUSR1) == 1 &&
           sigismember(&now, SIGSEGV) == 0 && sigismember(&now, SIGPROF) == 0;
}

static void *thread_main(void *argument)
{
    struct jrt_os_thread *thread = argument;
    jrt_debug_invariant("thread-mask", is_masked());
    (void)pthread_setname_np(pthread_self(), thread->name);
    /* By default the kernel extends a timed sleep by up to 50 us, to save wake-ups. */
    (void)prctl(PR_SET_TIMERSLACK, 1000L, 0L, 0L, 0L);
    thread->main(thread->argument);
    return NULL;
}

bool jrt_os_thread_start(struct jrt_os_thread *thread, void (*main)(void *argument), void *argument,
                         const char *name)
{
    static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF};
    thread->main = main;
    thread->argument = argument;
    size_t length = strnlen(name, sizeof thread->name - 1);
    memcpy(thread->name, name, length);
    thread->name[length] = '\0';
    thread->part = NULL;
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) return world->start(world, thread);

    /* The new thread inherits our mask, so it never runs with another. */
    sigset_t theirs, ours;
    sigfillset(&theirs); /* [thread-mask] */
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) sigdelset(&theirs, kept[i]);
    (void)pthread_sigmask(SIG_SETMASK, &theirs, &ours);
    int error = pthread_create(&thread->id, NULL, thread_main, thread);
    (void)pthread_sigmask(SIG_SETMASK, &ours, NULL);
    return error == 0;
}

void jrt_os_thread_join(struct jrt_os_thread *thread)
{
    if (jrt_unlikely(thread->part != NULL)) {
        jrt_world_now()->join(jrt_world_now(), thread);
        return;
    }
    int state;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    int error = pthread_join(thread->id, NULL);
    (void)pthread_setcancelstate(state, NULL);
    jrt_demand(error == 0, "jrt_os_thread_join of a thread that cannot be joined");
}

bool jrt_os_thread_try_join(struct jrt_os_thread *thread)
{
    if (jrt_unlikely(thread->part != NULL)) {
        struct jrt_world *world = jrt_world_now();
        if (!world->has_ended(world, thread)) return false;
        world->join(world, thread);
        return true;
    }
    int error = pthread_tryjoin_np(thread->id, NULL);
    jrt_demand(error == 0 || error == EBUSY,
               "jrt_os_thread_try_join of a thread that cannot be joined");
    return error == 0;
}

_Atomic(bool)         jrt_fences_membarrier;
_Atomic(uint32_t)     jrt_fences_meeting;
static pthread_once_t fences_once = PTHREAD_ONCE_INIT;

static bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

static void fences_decide(void)
{
    if (JRT_TSAN) return;
    if (!membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) return;
    if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
    jrt_store_relaxed(&jrt_fences_membarrier, true); /* relaxed: see [fence-mode]. */
}

bool jrt_fences_asymmetric(void)
{
    (void)pthread_once(&fences_once, fences_decide);
    return jrt_load_relaxed(&jrt_fences_membarrier); /* relaxed: pthread_once orders it. */
}

bool jrt_thread_is_alone(void) { return __libc_single_threaded != 0; }

/* seq_cst: the header promises it, by [fence-mode]. */
void jrt_fence_heavy_seq_cst(void)
{
    struct jrt_world *world = jrt_world_now();
    /* A closed world has one thread, and so has a world in a process without others. */
    if (jrt_unlikely(world != NULL && (world->closed || jrt_thread_is_alone()))) return;
    if (!jrt_fences_asymmetric()) {
        jrt_fences_full();
        return;
    }
    bool fenced = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    jrt_invariant("fence-mode", fenced);
}

/* SPDX-License-Identifier: MIT */
/*
 * The real world: Linux.
 *
 * Sleeping. A futex sleeper may wake for no reason; every caller loops anyway, so a signal
 * (EINTR) is passed off as such a wake-up and not hidden here. Deadlines are absolute and go to
 * the kernel as they are (FUTEX_WAIT_BITSET, CLOCK_MONOTONIC): a loop that wakes and sleeps again
 * does not drift.
 *
 * [futex-errors]  The kernel answers a wait with: woken, the word differs, a signal, the deadline
 *                 passed. Anything else means that the word is no word, or that a filter forbids
 *                 sleeping; going on would turn every sleep into a spin.
 *
 * [thread-mask]   Threads started here block every signal but the faults of an instruction and
 *                 SIGPROF. A handler would run on whatever stack the thread is on, and that may
 *                 be a fiber's 16 KiB; it would also interrupt system calls of code that never
 *                 asked for signals. Signals sent to the process thus go to the threads that the
 *                 program made itself, one of which called us. SIGPROF stays, since a profiler
 *                 wants the thread that burns the time; its handler should ask for SA_ONSTACK.
 *                 The price: a program started by fork and exec from such a thread inherits the
 *                 mask and cannot be asked to terminate until it unblocks; whoever does that sets
 *                 the mask in the child (posix_spawnattr_setsigmask).
 *
 * [fence-mode]    jrt_fences_membarrier goes once from false to true, or never. A heavy fence
 *                 decides before it fences, so whenever a light fence may read true, every heavy
 *                 fence uses membarrier: it puts a full fence into each running thread of the
 *                 process, wherever that thread is, also between a light fence's two sides. A
 *                 light fence that still reads false is a full fence, and membarrier includes one
 *                 for its caller: both pairs hold. Once true it cannot be taken back, for a light
 *                 fence may just have read it; a system that then refuses membarrier (a filter
 *                 installed too late) ends the process.
 *
 * Rejected: mprotect or a write to every thread's page as the heavy side where membarrier is
 * missing (before Linux 4.14, under Valgrind): slow to get right for systems nobody runs.
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
    do { /* up to 256 bytes come whole, or not at all while the kernel has not gathered enough */
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

bool jrt_real_wait_until(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                                .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    long            result =
        syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                deadline_ns == JRT_NEVER ? NULL : &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
    if (result == 0) return true;
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
    /* Fails only where the address is unmapped by now, and then nobody sleeps there. */
    (void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0);
}

/*
 * [bell]  a world in which nobody can go on waits for threads outside. It counts itself in `bells`
 *   and looks at the words its threads sleep on once more; whoever changes a word outside, and then
 *   wakes its sleepers, looks at `bells` afterwards. seq_cst on both sides: one sees the other.
 */
_Atomic(uint32_t) jrt_bells, jrt_bell;

void jrt_bell_ring(void)
{
    jrt_fences_full();                             /* seq_cst: [bell]. */
    if (jrt_load_relaxed(&jrt_bells) == 0) return; /* relaxed: after the fence. */
    (void)jrt_fetch_add_seq_cst(&jrt_bell, 1u);    /* seq_cst: what was changed comes first. */
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

static void *thread_main(void *argument)
{
    struct jrt_os_thread *thread = argument;
    (void)pthread_setname_np(pthread_self(), thread->name);
    /* The kernel would let a timed sleep last up to 50 us longer, to save wake-ups. */
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

    /* The new thread begins with our mask; so there is no moment in which it has another. */
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
    jrt_demand(error == 0 || error == EBUSY, "jrt_os_thread_try_join of no thread");
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

/* seq_cst: what the header promises of it, by [fence-mode]. */
void jrt_fence_heavy_seq_cst(void)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL && world->closed)) return; /* there is one thread */
    if (!jrt_fences_asymmetric()) {
        jrt_fences_full();
        return;
    }
    bool fenced = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    jrt_invariant("fence-mode", fenced);
}

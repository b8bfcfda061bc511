/* SPDX-License-Identifier: MIT */
/* The real system behind the seam: clock, futex, threads, fences. */
#include "harness.h"
#include "plat/seam.h"

#include <signal.h>
#include <string.h>

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { DEKKER_ROUNDS = 3000 };
#else
enum { DEKKER_ROUNDS = 30000 };
#endif

TEST("the clock does not go back")
{
    uint64_t last = jrt_clock_now_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = jrt_clock_now_ns();
        CHECK(now >= last);
        last = now;
    }
}

TEST("the coarse clock is the same clock, at most a tick late")
{
    const uint64_t tick = 10000000;
    uint64_t       last = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t before = jrt_clock_now_ns();
        uint64_t coarse = jrt_clock_coarse_ns();
        CHECK(coarse >= last);
        CHECK(coarse + tick >= before && coarse <= jrt_clock_now_ns());
        last = coarse;
    }
}

TEST("a wait on a word that has already changed returns at once")
{
    _Atomic(uint32_t) word = 1;
    jrt_futex_wait(&word, 0);
    CHECK(jrt_futex_wait_until(&word, 0, JRT_NEVER));
}

TEST("a deadline in the past returns at once")
{
    _Atomic(uint32_t) word = 0;
    CHECK(!jrt_futex_wait_until(&word, 0, 0));
    CHECK(!jrt_futex_wait_until(&word, 0, 1));
    CHECK(!jrt_futex_wait_until(&word, 0, jrt_clock_now_ns()));
}

TEST("a wait without a wake-up ends at its deadline and not before")
{
    _Atomic(uint32_t) word = 0;
    uint64_t          deadline_ns = jrt_clock_now_ns() + 2000000;
    while (jrt_futex_wait_until(&word, 0, deadline_ns)) CHECK(jrt_clock_now_ns() < deadline_ns);
    CHECK(jrt_clock_now_ns() >= deadline_ns);
}

struct sleeper {
    struct jrt_os_thread thread;
    _Atomic(uint32_t)    ready; /* futex: 1 just before it sleeps */
    _Atomic(uint32_t)    word;  /* futex: it sleeps until this is 1 */
    uint64_t             deadline_ns;
    bool                 timed_out;
};

static void sleep_on_word(void *argument)
{
    struct sleeper *sleeper = argument;
    atomic_store(&sleeper->ready, 1);
    jrt_futex_wake(&sleeper->ready, JRT_WAKE_ALL);
    while (atomic_load(&sleeper->word) == 0) {
        if (!jrt_futex_wait_until(&sleeper->word, 0, sleeper->deadline_ns)) {
            sleeper->timed_out = true;
        }
    }
}

static void sleeper_start(struct sleeper *sleeper, uint64_t deadline_ns)
{
    memset(sleeper, 0, sizeof *sleeper);
    sleeper->deadline_ns = deadline_ns;
    CHECK(jrt_os_thread_start(&sleeper->thread, sleep_on_word, sleeper, "sleeper"));
    while (atomic_load(&sleeper->ready) == 0) jrt_futex_wait(&sleeper->ready, 0);
}

static void sleeper_end(struct sleeper *sleeper)
{
    atomic_store(&sleeper->word, 1);
    jrt_futex_wake(&sleeper->word, JRT_WAKE_ALL);
    jrt_os_thread_join(&sleeper->thread);
}

TEST("a sleeper wakes when its word changes and is woken")
{
    for (int i = 0; i < 100; i++) {
        struct sleeper sleeper;
        sleeper_start(&sleeper, i % 2 == 0 ? JRT_NEVER : jrt_clock_now_ns() + 3600000000000u);
        sleeper_end(&sleeper);
        CHECK(!sleeper.timed_out);
    }
}

static _Atomic(int) interrupts;

static void on_prof(int number)
{
    (void)number;
    atomic_fetch_add(&interrupts, 1);
}

TEST("a sleeper that a signal interrupts sleeps on")
{
    if (JRT_TSAN) SKIP("ThreadSanitizer keeps a signal until the next call it knows");
    struct sigaction action = {.sa_handler = on_prof}, old; /* no SA_RESTART: futex gets EINTR */
    CHECK(sigaction(SIGPROF, &action, &old) == 0);
    struct sleeper sleeper;
    sleeper_start(&sleeper, JRT_NEVER);
    for (int i = 1; i <= 20; i++) {
        CHECK(pthread_kill(sleeper.thread.id, SIGPROF) == 0);
        while (atomic_load(&interrupts) < i) jrt_thread_yield();
    }
    sleeper_end(&sleeper);
    CHECK(!sleeper.timed_out);
    CHECK(sigaction(SIGPROF, &old, NULL) == 0);
}

struct seen {
    sigset_t mask;
    char     name[16];
};

static void look_around(void *argument)
{
    struct seen *seen = argument;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &seen->mask) == 0);
    CHECK(pthread_getname_np(pthread_self(), seen->name, sizeof seen->name) == 0);
}

TEST("a thread gets faults and SIGPROF, leaves other signals to the program, and has its name")
{
    struct jrt_os_thread thread;
    struct seen          seen;
    sigset_t             before, after;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &before) == 0);
    CHECK(jrt_os_thread_start(&thread, look_around, &seen, "janus worker 12345"));
    jrt_os_thread_join(&thread);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &after) == 0);

    CHECK(!sigismember(&seen.mask, SIGSEGV) && !sigismember(&seen.mask, SIGBUS));
    CHECK(!sigismember(&seen.mask, SIGFPE) && !sigismember(&seen.mask, SIGPROF));
    CHECK(sigismember(&seen.mask, SIGINT) && sigismember(&seen.mask, SIGTERM));
    CHECK(sigismember(&seen.mask, SIGALRM) && sigismember(&seen.mask, SIGCHLD));
    CHECK_STR(seen.name, "janus worker 12");
    for (int i = 1; i < SIGRTMIN; i++) CHECK_EQ(sigismember(&before, i), sigismember(&after, i));
}

TEST("the kind of fence is decided once, and is symmetric under ThreadSanitizer")
{
    bool asymmetric = jrt_fences_asymmetric();
    CHECK_EQ(jrt_fences_asymmetric(), asymmetric);
    CHECK_EQ(atomic_load(&jrt_fences_membarrier), asymmetric);
    if (JRT_TSAN) CHECK(!asymmetric);
}

/* Dekker: each thread raises its flag, fences, and reads the other's flag. Each round has its own
 * flags, so that none is ever lowered. */
struct dekker {
    _Atomic(int) arrived;
    struct {
        _Alignas(64) _Atomic(int) flag;
        bool saw_other;
    } sides[2][DEKKER_ROUNDS];
};

static struct dekker dekker;

static void dekker_run(int me)
{
    for (int i = 0; i < DEKKER_ROUNDS; i++) {
        atomic_fetch_add(&dekker.arrived, 1);
        for (int spins = 1; atomic_load(&dekker.arrived) < 2 * (i + 1); spins++) {
            if (spins % 256 == 0) {
                jrt_thread_yield();
            } else {
                jrt_cpu_relax();
            }
        }
        atomic_store_explicit(&dekker.sides[me][i].flag, 1, memory_order_relaxed);
        if (me == 0) {
            jrt_fence_light_seq_cst();
        } else {
            jrt_fence_heavy_seq_cst();
        }
        dekker.sides[me][i].saw_other =
            atomic_load_explicit(&dekker.sides[1 - me][i].flag, memory_order_relaxed) != 0;
    }
}

static void dekker_heavy(void *argument)
{
    (void)argument;
    dekker_run(1);
}

TEST("at least one of a light and a heavy side sees the other's flag")
{
    struct jrt_os_thread heavy;
    CHECK(jrt_os_thread_start(&heavy, dekker_heavy, NULL, "heavy"));
    dekker_run(0);
    jrt_os_thread_join(&heavy);
    for (int i = 0; i < DEKKER_ROUNDS; i++) {
        CHECK(dekker.sides[0][i].saw_other || dekker.sides[1][i].saw_other);
    }
}

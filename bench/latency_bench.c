/* SPDX-License-Identifier: MIT */
/*
 * How long until a task runs that was just woken, or just started while its worker stays busy?
 *
 * Timed:
 *        wake, same worker      from a child's last instruction until its parent's join returns
 *        wake, other worker     from a cancel until the sleeping task runs on another worker,
 *                               because the caller stays busy; and that call alone
 *        wake, helper thread    from the end of a blocking call until its task runs
 *        wake, clock            from a deadline until the sleeper runs; the worker sleeps
 *        steal                  from a spawn until the child runs on another worker, because the
 *                               parent stays busy without entering the library
 *        a futex wake           one thread wakes another that sleeps: the floor of "asleep"
 *        For the race: wake, from a send until the receiver runs on another worker, which slept;
 *        and steal, with a thief that searches. As the line says, the worker that will run the task
 *        searches, or its thread sleeps. It searches if it ran out of work 1 to 20 us before. The
 *        bench asks the kernel whether a thread sleeps. Nothing here waits by sleeping.
 * Moves it: the futex wake and the kernel's own way to a sleeping thread (most of every "asleep"),
 *        the pauses of a searching worker, the heavy fence of a cancel, other load on the machine.
 * Expect: well below 1 us on the same worker and for searchers, and below 10 us from sleep.
 */
#include "runner.h"

#include <fcntl.h>
#include <janusrt/janus.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS_FULL = 5000, ROUNDS_QUICK = 1000, WARM = 10, SETTLE_NS = 3000 };

#define PATIENCE_NS UINT64_C(5000000000)

static const uint64_t far = UINT64_MAX / 2;

static double samples[ROUNDS_FULL];
static double calls[ROUNDS_FULL];

static int rounds(void) { return runner.quick ? ROUNDS_QUICK : ROUNDS_FULL; }

/* Spins as the peers do: by the clock, without a pause for the other thread of a core. */

static void spin_for(uint64_t ns)
{
    uint64_t start = bench_now_ns();
    while (bench_now_ns() - start < ns) continue;
}

/* A time stamp that one task leaves for another. */
static void spin_until_set(_Atomic(uint64_t) *stamp)
{
    uint64_t start = bench_now_ns();
    while (atomic_load(stamp) == 0) {
        runner_need(bench_now_ns() - start < PATIENCE_NS,
                    "a task did not run although a worker was free");
    }
}

static void tell_at(const char *what, int percent, const char *unit, const double *sorted,
                    double scale)
{
    char metric[128];
    if (percent == 0) {
        snprintf(metric, sizeof metric, "%s, min", what);
    } else {
        snprintf(metric, sizeof metric, "%s, p%d", what, percent);
    }
    runner_say(metric, unit, sorted[(rounds() - 1) * percent / 100] / scale);
}

static void tell(const char *what, double *values)
{
    qsort(values, (size_t)rounds(), sizeof values[0], bench_compare);
    tell_at(what, 0, "us", values, 1000);
    tell_at(what, 50, "us", values, 1000);
    tell_at(what, 99, "us", values, 1000);
}

/* The other worker's thread, and whether it sleeps in the kernel. */

static uint64_t other_thread;
static int      other_file = -1;

static uint64_t this_thread(void) { return (uint64_t)syscall(SYS_gettid); }

static void watch_thread(uint64_t thread)
{
    char path[64];
    if (thread == other_thread && other_file >= 0) return;
    other_thread = thread;
    snprintf(path, sizeof path, "/proc/self/task/%llu/stat", (unsigned long long)thread);
    if (other_file >= 0) close(other_file);
    other_file = open(path, O_RDONLY | O_CLOEXEC);
    runner_need(other_file >= 0, "cannot look at a thread");
}

static bool other_sleeps(void)
{
    char    line[256];
    ssize_t got = pread(other_file, line, sizeof line - 1, 0);
    line[got > 0 ? got : 0] = 0;
    const char *state = strrchr(line, ')');
    return state != NULL && state[1] == ' ' && state[2] == 'S';
}

/* Checks twice in a row: at the first check the thread may have waited for a lock. */
static void until_other_sleeps(void)
{
    uint64_t start = bench_now_ns();
    for (int seen = 0; seen < 2; seen = other_sleeps() ? seen + 1 : 0) {
        runner_need(bench_now_ns() - start < PATIENCE_NS, "an idle worker does not sleep");
    }
    spin_for(SETTLE_NS);
}

static bool asleep; /* the worker that will run the task sleeps first; otherwise it searches */

static void prepare_other(int round)
{
    if (asleep) {
        until_other_sleeps();
    } else {
        /* The worker has just ended a task. The delay varies from 1 to 20 us, because pauses may
         * grow while it searches. */
        spin_for(1000 + (uint64_t)(round + WARM) * 7919 % 19000);
    }
}

/* Steal. */

static _Atomic(uint64_t) started;
static uint64_t          started_on;

static int64_t stamp_start(void *argument)
{
    (void)argument;
    uint64_t now = bench_now_ns();
    started_on = this_thread();
    atomic_store(&started, now);
    return 0;
}

static int64_t steal(void *argument)
{
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = -WARM; i < rounds(); i++) {
            if (i > -WARM) prepare_other(i);
            atomic_store(&started, 0);
            uint64_t start = bench_now_ns();
            JANUS_IGNORE(janus_spawn(n, stamp_start, NULL));
            spin_until_set(&started);
            watch_thread(started_on);
            if (i >= 0) samples[i] = (double)(atomic_load(&started) - start);
        }
    }
    return ended;
}

/* Wake on another worker. */

static _Atomic(uint64_t) about_to_sleep, woken;

static int64_t sleeper(void *argument)
{
    (void)argument;
    atomic_store(&about_to_sleep, this_thread());
    janus_status status = janus_sleep_until(far);
    atomic_store(&woken, bench_now_ns());
    return status;
}

static int64_t wake_other(void *argument)
{
    (void)argument;
    for (int i = -WARM; i < rounds(); i++) {
        janus_status ended;
        JANUS_NURSERY(n, ended)
        {
            atomic_store(&about_to_sleep, 0);
            atomic_store(&woken, 0);
            JANUS_IGNORE(janus_spawn(n, sleeper, NULL));
            spin_until_set(&about_to_sleep);
            watch_thread(atomic_load(&about_to_sleep));
            prepare_other(i);
            uint64_t start = bench_now_ns();
            (void)janus_nursery_cancel(n);
            uint64_t called = bench_now_ns();
            spin_until_set(&woken);
            if (i >= 0) samples[i] = (double)(atomic_load(&woken) - start);
            if (i >= 0) calls[i] = (double)(called - start);
        }
        runner_need(ended == JANUS_CANCELLED, "the sleeper was not cancelled");
    }
    return 0;
}

/* Wake by a message, for the race. */

static janus_channel letters;

static int64_t receiver(void *argument)
{
    int64_t letter = 0;
    for (;;) {
        atomic_store(&about_to_sleep, this_thread());
        if (janus_channel_recv(letters, &letter) != JANUS_OK) break;
        atomic_store(&woken, bench_now_ns());
    }
    return argument == NULL ? 0 : -1;
}

/* From the send to the receiver's first instruction. */
static double send_one(void)
{
    int64_t letter = 0;
    until_other_sleeps();
    atomic_store(&about_to_sleep, 0);
    atomic_store(&woken, 0);
    uint64_t start = bench_now_ns();
    runner_need(janus_channel_send(letters, &letter) == JANUS_OK, "a send failed");
    spin_until_set(&woken);
    spin_until_set(&about_to_sleep);
    return (double)(atomic_load(&woken) - start);
}

static int64_t wake_by_send(void *argument)
{
    runner_need(janus_channel_create(sizeof(int64_t), 1, NULL, &letters) == JANUS_OK, "no channel");
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        atomic_store(&about_to_sleep, 0);
        JANUS_IGNORE(janus_spawn(n, receiver, NULL));
        spin_until_set(&about_to_sleep);
        for (int i = -WARM; i < rounds();) {
            /* If the sender's turn ends in its send, the receiver runs on the same worker. That is
             * not a wake, and the other worker sleeps on. */
            if (atomic_load(&about_to_sleep) != this_thread()) {
                watch_thread(atomic_load(&about_to_sleep));
            }
            double spent = send_one();
            if (atomic_load(&about_to_sleep) == this_thread()) continue;
            if (i >= 0) samples[i] = spent;
            i++;
        }
        (void)janus_channel_close(letters);
    }
    runner_need(ended == JANUS_OK, "a child failed");
    (void)janus_channel_destroy(letters);
    return argument == NULL ? 0 : -1;
}

/* Wake on the same worker. */

static int64_t stamp_end(void *argument)
{
    (void)argument;
    atomic_store_explicit(&started, bench_now_ns(), memory_order_relaxed);
    return 0;
}

static int64_t wake_same(void *argument)
{
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = -WARM; i < rounds(); i++) {
            janus_task_id child;
            janus_status  status = janus_spawn_with(n, stamp_end, NULL, NULL, &child);
            if (status == JANUS_OK) status = janus_join(n, child, NULL);
            uint64_t now = bench_now_ns();
            runner_need(status == JANUS_OK, "a join failed");
            if (i >= 0) samples[i] = (double)(now - atomic_load(&started));
        }
    }
    return ended;
}

/* Wake by a helper thread, with a single worker that has nothing else to do. */

static int64_t blocking_call(void *argument)
{
    prepare_other(*(int *)argument);
    return (int64_t)bench_now_ns();
}

static int64_t wake_helper(void *argument)
{
    (void)argument;
    watch_thread(this_thread());
    for (int i = -WARM; i < rounds(); i++) {
        int64_t ended = 0;
        runner_need(janus_blocking(blocking_call, &i, &ended) == JANUS_OK, "a call failed");
        if (i >= 0) samples[i] = (double)(bench_now_ns() - (uint64_t)ended);
    }
    return 0;
}

/* Wake by the clock. The pause is longer than a worker searches. */
static int64_t wake_clock(void *argument)
{
    (void)argument;
    for (int i = -WARM; i < rounds(); i++) {
        uint64_t deadline = janus_now_ns() + 300000;
        runner_need(janus_sleep_until(deadline) == JANUS_OK, "a sleep failed");
        if (i >= 0) samples[i] = (double)(janus_now_ns() - deadline);
    }
    return 0;
}

/* How long the kernel alone takes to wake a thread. */

static _Atomic(uint32_t) word, over;

static void *wait_in_kernel(void *argument)
{
    (void)argument;
    started_on = this_thread();
    atomic_store(&started, 1);
    for (uint32_t seen = 0; atomic_load(&over) == 0; seen = atomic_load(&word)) {
        while (atomic_load(&word) == seen) {
            syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        }
        atomic_store(&woken, bench_now_ns());
    }
    return NULL;
}

static void run_kernel(void)
{
    pthread_t thread;
    runner.workers = 2;
    atomic_store(&started, 0);
    runner_need(pthread_create(&thread, NULL, wait_in_kernel, NULL) == 0, "no thread");
    spin_until_set(&started);
    watch_thread(started_on);
    for (int i = -WARM; i < rounds(); i++) {
        until_other_sleeps();
        atomic_store(&woken, 0);
        if (i + 1 == rounds()) atomic_store(&over, 1);
        uint64_t start = bench_now_ns();
        atomic_fetch_add(&word, 1);
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        spin_until_set(&woken);
        if (i >= 0) samples[i] = (double)(atomic_load(&woken) - start);
    }
    pthread_join(thread, NULL);
    tell("a futex wake, the kernel alone", samples);
}

static void collect(unsigned workers, janus_entry *entry, bool sleeps)
{
    runner.workers = workers;
    asleep = sleeps;
    janus_status status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_tasks = JANUS_UNLIMITED),
                  entry, NULL, NULL);
    runner_need(status == JANUS_OK, janus_status_text(status));
}

static void measure(const char *what, unsigned workers, janus_entry *entry, bool sleeps)
{
    collect(workers, entry, sleeps);
    tell(what, samples);
}

/* The two works of the race, in nanoseconds. */

static void race(const char *what, janus_entry *entry, bool sleeps)
{
    collect(2, entry, sleeps);
    qsort(samples, (size_t)rounds(), sizeof samples[0], bench_compare);
    tell_at(what, 50, "ns", samples, 1);
    tell_at(what, 99, "ns", samples, 1);
}

static void run_wake(void) { race("a sleeping worker wakes", wake_by_send, true); }
static void run_steal(void) { race("a thief takes a task", steal, false); }

static void run_latency(void)
{
    run_kernel();
    measure("steal, thief searching", 2, steal, false);
    measure("steal, thief asleep", 2, steal, true);
    measure("wake, same worker", 1, wake_same, false);
    measure("wake, other worker searching", 2, wake_other, false);
    tell("cancel of one sleeper, the call", calls);
    measure("wake, other worker asleep", 2, wake_other, true);
    measure("wake by a helper thread, worker searching", 1, wake_helper, false);
    measure("wake by a helper thread, worker asleep", 1, wake_helper, true);
    measure("wake by the clock, worker asleep", 1, wake_clock, true);
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {
        {"wake", 2, run_wake},
        {"steal", 2, run_steal},
        {"latency", 2, run_latency},
        {NULL, 0, NULL},
    };
    return runner_main(argc, argv, "janusrt", JANUS_VERSION_STRING, works);
}

/* SPDX-License-Identifier: MIT */
/*
 * What does a lock cost a task, alone and in a crowd? And what does it cost that no task starves?
 *
 * Timed: lock and unlock by one task, beside pthread_mutex in a thread, and a semaphore's acquire
 *        and release. Then a crowd on two workers in which all tasks want one mutex. They do a
 *        little work inside and more outside, and yield after each round and in every 16th also
 *        inside. The contestants: our mutex, which others may grab until the woken waiter runs, but
 *        not twice; a rival for tasks that any task may always grab; pthread_mutex with as many
 *        threads as workers, and as tasks. For the crowd the bench also reports how many of a
 *        million waited while others had the mutex more than 64 times.
 * Moves it: atomic operations. For the crowd, the price of a switch and how often there is one.
 * Expect: 12 to 20 ns alone. In the crowd 100 to 250 ns a round. A wait is long if the task was
 *        woken on a worker whose thread has lost its CPU, or waits behind such a task.
 */
#include "bench.h"

#include <janusrt/janus.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    ROUNDS = 1000000,
    CROWD = 8,
    CROWD_ROUNDS = 20000,
    HELD = 20,
    OWN = 80,
    WORKERS = 2,
    LONG = 64
};

static void check(bool works)
{
    if (works) return;
    fprintf(stderr, "sync_bench: a call failed\n");
    exit(1);
}

static double each(uint64_t spent_ns, int count) { return (double)spent_ns / count; }

static janus_mutex     mutex = JANUS_MUTEX_INIT("bench");
static janus_semaphore semaphore = JANUS_SEMAPHORE_INIT(1, JANUS_WAKER_TASKS, "bench");
static pthread_mutex_t rival = PTHREAD_MUTEX_INITIALIZER;
static double          measured;

/* Alone. */

static int64_t lock_alone(void *argument)
{
    (void)argument;
    uint64_t start = bench_now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        check(janus_mutex_lock(&mutex) == JANUS_OK);
        check(janus_mutex_unlock(&mutex) == JANUS_OK);
    }
    measured = each(bench_now_ns() - start, ROUNDS);
    return 0;
}

static int64_t acquire_alone(void *argument)
{
    (void)argument;
    uint64_t start = bench_now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        check(janus_semaphore_acquire(&semaphore) == JANUS_OK);
        check(janus_semaphore_release(&semaphore, 1) == JANUS_OK);
    }
    measured = each(bench_now_ns() - start, ROUNDS);
    return 0;
}

static double run_task(janus_entry *entry)
{
    const janus_scheduler_options options = {.struct_bytes = sizeof options, .worker_count = 1};
    check(janus_run(&options, entry, NULL, NULL) == JANUS_OK);
    return measured;
}

static double ours_alone(void) { return run_task(lock_alone); }
static double ours_acquire(void) { return run_task(acquire_alone); }

static double ours_on_thread(void)
{
    (void)lock_alone(NULL);
    return measured;
}

static double theirs_alone(void)
{
    uint64_t start = bench_now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        check(pthread_mutex_lock(&rival) == 0);
        check(pthread_mutex_unlock(&rival) == 0);
    }
    return each(bench_now_ns() - start, ROUNDS);
}

/* The rival for tasks: unlock wakes the first waiter, which tries again. */

struct grabber {
    struct grabber *next;
    janus_waitpoint point;
};

static struct {
    atomic_int      locked, waiters;
    atomic_flag     busy;
    struct grabber *first, *last;
} grab = {.busy = ATOMIC_FLAG_INIT};

static void grab_enter(void)
{
    while (atomic_flag_test_and_set_explicit(&grab.busy, memory_order_acquire)) sched_yield();
}

static void grab_leave(void) { atomic_flag_clear_explicit(&grab.busy, memory_order_release); }

static bool grab_try(void)
{
    int expected = 0;
    return atomic_compare_exchange_strong(&grab.locked, &expected, 1);
}

static void grab_lock(void)
{
    while (!grab_try()) {
        struct grabber me = {.next = NULL};
        janus_waitpoint_init(&me.point, JANUS_WAKER_ANYBODY);
        grab_enter();
        atomic_fetch_add(&grab.waiters, 1);
        if (grab_try()) {
            atomic_fetch_sub(&grab.waiters, 1);
            grab_leave();
            return;
        }
        if (grab.first == NULL) grab.first = &me;
        if (grab.first != &me) grab.last->next = &me;
        grab.last = &me;
        grab_leave();
        check(janus_waitpoint_wait(&me.point, "the rival") == JANUS_OK);
    }
}

static void grab_unlock(void)
{
    atomic_store(&grab.locked, 0);
    if (atomic_load(&grab.waiters) == 0) return;
    grab_enter();
    struct grabber *first = grab.first;
    if (first != NULL) {
        grab.first = first->next;
        atomic_fetch_sub(&grab.waiters, 1);
    }
    grab_leave();
    if (first != NULL) janus_waitpoint_wake(&first->point);
}

/* The crowd. */

static atomic_int  arrived, crowd_size;
static atomic_long guarded;                   /* written by the mutex's holder */
static long        long_waits, rounds_of_all; /* of all turns; written by the holder too */

static void spend(int steps)
{
    for (volatile int i = 0; i < steps; i++) continue;
}

static long rounds_so_far(void) { return atomic_load_explicit(&guarded, memory_order_relaxed); }

static void note_wait(long asked)
{
    long waited = rounds_so_far() - asked;
    if (waited > LONG) long_waits++;
    rounds_of_all++;
}

static void give_way(bool task)
{
    if (task) check(janus_yield() == JANUS_OK);
    if (!task) sched_yield();
}

static void work(long asked, bool task)
{
    note_wait(asked);
    spend(HELD);
    long round = rounds_so_far();
    atomic_store_explicit(&guarded, round + 1, memory_order_relaxed);
    if (round % 16 == 0) give_way(task);
}

static void ours_round(void)
{
    long asked = rounds_so_far();
    check(janus_mutex_lock(&mutex) == JANUS_OK);
    work(asked, true);
    check(janus_mutex_unlock(&mutex) == JANUS_OK);
}

static void grab_round(void)
{
    long asked = rounds_so_far();
    grab_lock();
    work(asked, true);
    grab_unlock();
}

static void thread_round(void)
{
    long asked = rounds_so_far();
    check(pthread_mutex_lock(&rival) == 0);
    work(asked, false);
    check(pthread_mutex_unlock(&rival) == 0);
}

static void (*one_round)(void);

static void take_part(bool task)
{
    atomic_fetch_add(&arrived, 1);
    while (arrived < crowd_size) give_way(task);
    for (int i = 0; i < CROWD_ROUNDS; i++) {
        one_round();
        spend(OWN);
        give_way(task);
    }
}

static int64_t task_member(void *argument)
{
    (void)argument;
    take_part(true);
    return 0;
}

static void *thread_member(void *argument)
{
    (void)argument;
    take_part(false);
    return NULL;
}

static void begin_crowd(int size, void (*round)(void))
{
    one_round = round;
    crowd_size = size;
    arrived = 0;
    guarded = 0;
}

static int64_t task_crowd(void *argument)
{
    (void)argument;
    uint64_t     start = bench_now_ns();
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < CROWD; i++) check(janus_spawn(n, task_member, NULL) == JANUS_OK);
    }
    check(ended == JANUS_OK);
    measured = each(bench_now_ns() - start, CROWD * CROWD_ROUNDS);
    check(guarded == (long)CROWD * CROWD_ROUNDS);
    return 0;
}

static double tasks_in_crowd(void (*round)(void))
{
    const janus_scheduler_options options = {.struct_bytes = sizeof options,
                                             .worker_count = WORKERS};
    begin_crowd(CROWD, round);
    check(janus_run(&options, task_crowd, NULL, NULL) == JANUS_OK);
    return measured;
}

static double threads_in_crowd(int size)
{
    pthread_t threads[CROWD];
    begin_crowd(size, thread_round);
    uint64_t start = bench_now_ns();
    for (int i = 0; i < size; i++) {
        check(pthread_create(&threads[i], NULL, thread_member, NULL) == 0);
    }
    for (int i = 0; i < size; i++) check(pthread_join(threads[i], NULL) == 0);
    check(guarded == (long)size * CROWD_ROUNDS);
    return each(bench_now_ns() - start, size * CROWD_ROUNDS);
}

static double ours_crowd(void) { return tasks_in_crowd(ours_round); }
static double grab_crowd(void) { return tasks_in_crowd(grab_round); }
static double few_threads(void) { return threads_in_crowd(WORKERS); }
static double many_threads(void) { return threads_in_crowd(CROWD); }

static void race_crowd(const char *name, double (*run)(void))
{
    char             text[80];
    struct contender one[] = {{name, run, {0}}};
    long_waits = rounds_of_all = 0;
    bench_race("sync_crowd", one, 1);
    (void)snprintf(text, sizeof text, "long waits, %s", name);
    bench_say("sync_crowd", text, (double)long_waits * 1e6 / (double)rounds_of_all, "in a million");
}

int main(void)
{
    struct contender alone[] = {{"pthread_mutex lock, unlock", theirs_alone, {0}},
                                {"janus_mutex in a task", ours_alone, {0}},
                                {"janus_mutex on a thread", ours_on_thread, {0}},
                                {"janus_semaphore in a task", ours_acquire, {0}}};
    bench_race("sync_alone", alone, sizeof alone / sizeof alone[0]);
    race_crowd("8 tasks, janus_mutex", ours_crowd);
    race_crowd("8 tasks, always grabbed", grab_crowd);
    race_crowd("2 threads, pthread_mutex", few_threads);
    race_crowd("8 threads, pthread_mutex", many_threads);
    return 0;
}

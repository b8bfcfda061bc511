/* SPDX-License-Identifier: MIT */
/* The helper threads for blocking calls. Jobs block at a gate that the test opens. */
#include "harness.h"
#include "plat/seam.h"
#include "sched/blocking.h"

#include <stdlib.h>
#include <string.h>

/* Jobs wait here until the test opens it. */
struct gate {
    _Atomic(uint32_t) open;
};

static void gate_pass(struct gate *gate)
{
    while (atomic_load(&gate->open) == 0) jrt_futex_wait(&gate->open, 0);
}

static void gate_open(struct gate *gate)
{
    atomic_store(&gate->open, 1);
    jrt_futex_wake(&gate->open, JRT_WAKE_ALL);
}

struct task {
    struct jrt_blocking_job job;   /* first */
    struct gate            *gate;  /* NULL: does not block */
    int                     place; /* in the order of beginning, from 1; 0: did not run */
    pthread_t               ran_on;
    _Atomic(uint32_t)       done; /* futex */
};

static _Atomic(int) begun, active, active_high;

static void task_run(struct jrt_blocking_job *job)
{
    struct task *task = (struct task *)job;
    CHECK_EQ(task->place, 0);
    task->place = atomic_fetch_add(&begun, 1) + 1;
    task->ran_on = pthread_self();
    int now = atomic_fetch_add(&active, 1) + 1;
    int high = atomic_load(&active_high);
    while (now > high && !atomic_compare_exchange_weak(&active_high, &high, now)) continue;
    if (task->gate != NULL) gate_pass(task->gate);
    atomic_fetch_sub(&active, 1);
}

static void task_done(struct jrt_blocking_job *job)
{
    struct task *task = (struct task *)job;
    CHECK(pthread_equal(task->ran_on, pthread_self()));
    atomic_store(&task->done, 1);
    jrt_futex_wake(&task->done, JRT_WAKE_ALL);
}

static struct task task_new(struct gate *gate)
{
    return (struct task){.job = {.run = task_run, .done = task_done}, .gate = gate};
}

static void task_wait(struct task *task)
{
    while (atomic_load(&task->done) == 0) jrt_futex_wait(&task->done, 0);
}

static void pool_open(struct jrt_blocking *pool, unsigned max_threads, unsigned queue_max)
{
    begun = active = active_high = 0;
    CHECK_EQ(jrt_blocking_init(pool, max_threads, 0, queue_max), JANUS_OK);
}

static void wait_for_running(struct jrt_blocking *pool, unsigned running)
{
    while (jrt_blocking_stats_read(pool).running != running) jrt_thread_yield();
}

static void wait_for_threads(struct jrt_blocking *pool, unsigned threads)
{
    while (jrt_blocking_stats_read(pool).threads != threads) jrt_thread_yield();
}

TEST("no thread starts before it is needed, and an idle one is used again")
{
    struct jrt_blocking pool;
    pool_open(&pool, 4, 4);
    CHECK_EQ(jrt_blocking_stats_read(&pool).threads, 0);
    for (int i = 0; i < 10; i++) {
        struct task task = task_new(NULL);
        CHECK_EQ(jrt_blocking_submit(&pool, &task.job), JANUS_OK);
        task_wait(&task);
        CHECK(!pthread_equal(task.ran_on, pthread_self()));
        for (bool idle = false; !idle;) {
            pthread_mutex_lock(&pool.lock);
            idle = pool.idle != NULL;
            pthread_mutex_unlock(&pool.lock);
            if (!idle) jrt_thread_yield();
        }
    }
    CHECK_EQ(jrt_blocking_stats_read(&pool).threads_high, 1);
    CHECK_EQ(jrt_blocking_stats_read(&pool).jobs, 10);
    jrt_blocking_fini(&pool);
}

TEST("a pool that was never used closes")
{
    struct jrt_blocking pool;
    pool_open(&pool, 4, 4);
    jrt_blocking_fini(&pool);
}

TEST("at most as many jobs run at once as there may be threads")
{
    enum { JOBS = 20, THREADS = 3 };
    struct jrt_blocking pool;
    struct gate         gate = {0};
    struct task         tasks[JOBS];
    pool_open(&pool, THREADS, JOBS);
    for (int i = 0; i < JOBS; i++) {
        tasks[i] = task_new(&gate);
        CHECK_EQ(jrt_blocking_submit(&pool, &tasks[i].job), JANUS_OK);
    }
    while (atomic_load(&active) != THREADS) jrt_thread_yield(); /* all are at the gate */
    struct jrt_blocking_stats stats = jrt_blocking_stats_read(&pool);
    CHECK_EQ(stats.threads, THREADS);
    CHECK_EQ(stats.queued, JOBS - THREADS);
    CHECK(stats.queued_high >= JOBS - THREADS);
    gate_open(&gate);
    for (int i = 0; i < JOBS; i++) task_wait(&tasks[i]);
    CHECK_EQ(active_high, THREADS);
    stats = jrt_blocking_stats_read(&pool);
    CHECK_EQ(stats.threads_high, THREADS);
    CHECK_EQ(stats.queued, 0);
    jrt_blocking_fini(&pool);
}

TEST("jobs begin in the order of their submits")
{
    enum { JOBS = 50 };
    struct jrt_blocking pool;
    struct gate         gate = {0};
    struct task         first = task_new(&gate);
    struct task         tasks[JOBS];
    pool_open(&pool, 1, JOBS);
    CHECK_EQ(jrt_blocking_submit(&pool, &first.job), JANUS_OK);
    wait_for_running(&pool, 1);
    for (int i = 0; i < JOBS; i++) {
        tasks[i] = task_new(NULL);
        CHECK_EQ(jrt_blocking_submit(&pool, &tasks[i].job), JANUS_OK);
    }
    gate_open(&gate);
    for (int i = 0; i < JOBS; i++) {
        task_wait(&tasks[i]);
        CHECK_EQ(tasks[i].place, i + 2);
    }
    jrt_blocking_fini(&pool);
}

TEST("a job that has not begun can be withdrawn, once, and a job that has begun cannot")
{
    struct jrt_blocking pool;
    struct gate         gate = {0};
    struct task         running = task_new(&gate), a = task_new(NULL), b = a, c = a;
    pool_open(&pool, 1, 3);
    CHECK_EQ(jrt_blocking_submit(&pool, &running.job), JANUS_OK);
    wait_for_running(&pool, 1);
    CHECK_EQ(jrt_blocking_submit(&pool, &a.job), JANUS_OK);
    CHECK_EQ(jrt_blocking_submit(&pool, &b.job), JANUS_OK);
    CHECK_EQ(jrt_blocking_submit(&pool, &c.job), JANUS_OK);
    CHECK(!jrt_blocking_withdraw(&pool, &running.job));
    CHECK(jrt_blocking_withdraw(&pool, &b.job));
    CHECK(!jrt_blocking_withdraw(&pool, &b.job));
    CHECK_EQ(jrt_blocking_stats_read(&pool).queued, 2);
    gate_open(&gate);
    task_wait(&c);
    CHECK_EQ(a.place, 2);
    CHECK_EQ(c.place, 3);
    CHECK_EQ(b.place, 0);
    CHECK_EQ(jrt_blocking_submit(&pool, &b.job), JANUS_OK);
    task_wait(&b);
    CHECK(!jrt_blocking_withdraw(&pool, &b.job));
    jrt_blocking_fini(&pool);
}

TEST("a full queue refuses a job, and has room again after a withdrawal")
{
    struct jrt_blocking pool;
    struct gate         gate = {0};
    struct task         running = task_new(&gate), a = task_new(NULL), b = a, c = a;
    pool_open(&pool, 1, 2);
    CHECK_EQ(jrt_blocking_submit(&pool, &running.job), JANUS_OK);
    wait_for_running(&pool, 1);
    CHECK_EQ(jrt_blocking_submit(&pool, &a.job), JANUS_OK);
    CHECK_EQ(jrt_blocking_submit(&pool, &b.job), JANUS_OK);
    CHECK_EQ(jrt_blocking_submit(&pool, &c.job), JANUS_FULL);
    CHECK(jrt_blocking_withdraw(&pool, &a.job));
    CHECK_EQ(jrt_blocking_submit(&pool, &c.job), JANUS_OK);
    gate_open(&gate);
    task_wait(&b);
    task_wait(&c);
    CHECK_EQ(a.place, 0);
    jrt_blocking_fini(&pool);
}

TEST("jobs for arriving threads do not count as waiting")
{
    enum { THREADS = 4 };
    struct jrt_blocking pool;
    for (unsigned queue_max = 0; queue_max < 20; queue_max++) {
        struct gate gate = {0};
        struct task tasks[THREADS + 20], more = task_new(NULL);
        pool_open(&pool, THREADS, queue_max);
        for (unsigned i = 0; i < THREADS + queue_max; i++) {
            tasks[i] = task_new(&gate);
            CHECK_EQ(jrt_blocking_submit(&pool, &tasks[i].job), JANUS_OK);
        }
        CHECK_EQ(jrt_blocking_submit(&pool, &more.job), JANUS_FULL);
        gate_open(&gate);
        for (unsigned i = 0; i < THREADS + queue_max; i++) task_wait(&tasks[i]);
        jrt_blocking_fini(&pool);
    }
}

TEST("idle threads end, and later jobs get new ones")
{
    struct jrt_blocking pool;
    pool_open(&pool, 3, 3);
    pool.idle_ns = 1;
    for (int i = 0; i < 20; i++) {
        struct gate gate = {0};
        struct task tasks[3];
        for (int k = 0; k < 3; k++) {
            tasks[k] = task_new(&gate);
            CHECK_EQ(jrt_blocking_submit(&pool, &tasks[k].job), JANUS_OK);
        }
        gate_open(&gate);
        for (int k = 0; k < 3; k++) task_wait(&tasks[k]);
        wait_for_threads(&pool, 0);
    }
    jrt_blocking_fini(&pool);
}

static void job_slow(struct jrt_blocking_job *job)
{
    struct task *task = (struct task *)job;
    for (int i = 0; i < 200; i++) jrt_thread_yield();
    task->ran_on = pthread_self();
    task->place = 1;
}

TEST("closing the pool waits for the running job")
{
    struct jrt_blocking pool;
    struct task         task = task_new(NULL);
    task.job.run = job_slow;
    pool_open(&pool, 1, 1);
    CHECK_EQ(jrt_blocking_submit(&pool, &task.job), JANUS_OK);
    while (jrt_blocking_stats_read(&pool).jobs == 0) jrt_thread_yield(); /* it may have ended */
    jrt_blocking_fini(&pool);
    CHECK_EQ(task.place, 1);
    CHECK_EQ(task.done, 1);
}

/* From here on no thread gets a stack: it would not fit into the address space. */
static void refuse_threads(pthread_attr_t *out_old)
{
    pthread_attr_t huge;
    CHECK(pthread_getattr_default_np(out_old) == 0);
    CHECK(pthread_attr_init(&huge) == 0);
    CHECK(pthread_attr_setstacksize(&huge, (size_t)1 << 60) == 0);
    CHECK(pthread_setattr_default_np(&huge) == 0);
    pthread_attr_destroy(&huge);
}

static void allow_threads(pthread_attr_t *old)
{
    CHECK(pthread_setattr_default_np(old) == 0);
    pthread_attr_destroy(old);
}

TEST("if no thread can be started, a job is refused, unless another thread will run it")
{
    struct jrt_blocking pool;
    struct gate         gate = {0};
    struct task         a = task_new(&gate), b = task_new(NULL);
    pthread_attr_t      old;
    pool_open(&pool, 2, 1);
    refuse_threads(&old);
    CHECK_EQ(jrt_blocking_submit(&pool, &a.job), JANUS_NO_MEMORY);
    CHECK_EQ(jrt_blocking_stats_read(&pool).queued, 0);
    allow_threads(&old);
    CHECK_EQ(jrt_blocking_submit(&pool, &a.job), JANUS_OK);
    wait_for_running(&pool, 1);
    refuse_threads(&old);
    CHECK_EQ(jrt_blocking_submit(&pool, &b.job), JANUS_OK);
    CHECK_EQ(jrt_blocking_stats_read(&pool).threads, 1);
    allow_threads(&old);
    gate_open(&gate);
    task_wait(&b);
    jrt_blocking_fini(&pool);
}

enum { SUBMITTERS = 4, EACH = 500 };

static struct jrt_blocking crowd_pool;

struct submitter {
    struct jrt_os_thread thread;
    struct task         *tasks;
    int                  withdrawn, full;
};

static void submit_many(void *argument)
{
    struct submitter *self = argument;
    for (int i = 0; i < EACH; i++) {
        struct task *task = &self->tasks[i];
        *task = task_new(NULL);
        while (jrt_blocking_submit(&crowd_pool, &task->job) == JANUS_FULL) {
            self->full++;
            jrt_thread_yield();
        }
        if (i % 3 == 0 && jrt_blocking_withdraw(&crowd_pool, &task->job)) {
            self->withdrawn++;
            atomic_store(&task->done, 2);
        }
    }
    for (int i = 0; i < EACH; i++) {
        task_wait(&self->tasks[i]);
        CHECK_EQ(self->tasks[i].place != 0, atomic_load(&self->tasks[i].done) == 1);
    }
}

TEST("each job of many submitters is run once or withdrawn")
{
    struct submitter submitters[SUBMITTERS];
    int              withdrawn = 0;
    pool_open(&crowd_pool, 3, 8);
    crowd_pool.idle_ns = 20000; /* so that threads end in between */
    memset(submitters, 0, sizeof submitters);
    for (int i = 0; i < SUBMITTERS; i++) {
        submitters[i].tasks = calloc(EACH, sizeof(struct task));
        CHECK(submitters[i].tasks != NULL);
        CHECK(jrt_os_thread_start(&submitters[i].thread, submit_many, &submitters[i], "submits"));
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        jrt_os_thread_join(&submitters[i].thread);
        withdrawn += submitters[i].withdrawn;
    }
    wait_for_running(&crowd_pool, 0);
    CHECK_EQ(begun + withdrawn, SUBMITTERS * EACH);
    CHECK_EQ(jrt_blocking_stats_read(&crowd_pool).jobs, begun);
    CHECK(active_high <= 3);
    jrt_blocking_fini(&crowd_pool);
    for (int i = 0; i < SUBMITTERS; i++) free(submitters[i].tasks);
}

static bool somebody_is_idle(struct jrt_blocking *pool)
{
    jrt_lock(&pool->lock);
    bool idle = pool->idle != NULL;
    jrt_unlock(&pool->lock);
    return idle;
}

TEST("a queue is full even while a thread above max_threads idles and may begin nothing")
{
    struct jrt_blocking       pool;
    struct jrt_blocking_party parties[2] = {{.queued = 0}};
    struct gate               gate = {0}, other = {0};
    struct task               jobs[5];
    begun = active = active_high = 0;
    CHECK_EQ(jrt_blocking_init(&pool, 1, 2, 1), JANUS_OK);
    for (int i = 0; i < 5; i++) jobs[i] = task_new(i == 1 ? &other : &gate);
    for (int i = 0; i < 2; i++) jobs[i].job.party = &parties[i];
    for (int i = 0; i < 3; i++) { /* one of max_threads, and two of parties that run nothing yet */
        CHECK_EQ(jrt_blocking_submit(&pool, &jobs[i].job), JANUS_OK);
        wait_for_running(&pool, (unsigned)i + 1);
    }
    gate_open(&other);
    task_wait(&jobs[1]);
    while (!somebody_is_idle(&pool)) jrt_thread_yield();
    CHECK_EQ(jrt_blocking_submit(&pool, &jobs[3].job), JANUS_OK); /* it waits */
    while (!somebody_is_idle(&pool)) jrt_thread_yield();
    CHECK_EQ(jrt_blocking_submit(&pool, &jobs[4].job), JANUS_FULL);
    gate_open(&gate);
    for (int i = 0; i < 4; i++) task_wait(&jobs[i]);
    wait_for_running(&pool, 0);
    jrt_blocking_fini(&pool);
}

/* SPDX-License-Identifier: MIT */
/* Workers: what can be inspected, where they look for work, and from which worker they steal. */
#include "rig.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

#include <stdlib.h>
#include <string.h>

static uint32_t here(void)
{
    janus_task_info info = JANUS_TASK_INFO();
    CHECK_EQ(janus_task_inspect_current(&info), JANUS_OK);
    return info.worker;
}

static janus_worker_info worker_of(const janus_scheduler *scheduler, uint32_t index)
{
    janus_worker_info info = JANUS_WORKER_INFO();
    CHECK_EQ(janus_worker_inspect(scheduler, index, &info), JANUS_OK);
    return info;
}

static int64_t own_queue(void *argument)
{
    janus_scheduler *scheduler = argument;
    janus_nursery    n;
    uint32_t         mine = here();
    CHECK_EQ(worker_of(scheduler, mine).index, mine);
    CHECK_EQ(worker_of(scheduler, mine).task, janus_task_current_id());
    CHECK_EQ(worker_of(scheduler, mine).queued, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (uint64_t i = 1; i <= 3; i++) {
        CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
        CHECK_EQ(worker_of(scheduler, mine).queued, i);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(worker_of(scheduler, mine).queued, 0);
    return 0;
}

TEST("a task's children go to its worker's queue, and a thread's to the queue for all")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    janus_nursery    n;
    struct gate      gate = {0};
    rig_do(scheduler, own_queue, scheduler);
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, keep_worker, &gate), JANUS_OK);
    while (!atomic_load(&gate.arrived)) rig_spin();
    for (uint32_t i = 1; i <= 3; i++) {
        CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
        CHECK_EQ(worker_of(scheduler, 0).queued, 0);
        CHECK_EQ(atomic_load(&scheduler->injected), i);
    }
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static int64_t where_am_i(void *argument)
{
    janus_scheduler *scheduler = argument;
    for (int i = 0; i < 20; i++) {
        /* No call between the two looks yields, so both see the same worker. */
        CHECK_EQ(worker_of(scheduler, here()).task, janus_task_current_id());
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

TEST("each worker has a number, a current task, and a flag whether it steals")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        for (int stealing = 0; stealing < 2; stealing++) {
            janus_nursery    n;
            janus_scheduler *scheduler = rig_open(
                JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .no_stealing = !stealing));
            for (uint32_t i = 0; i < workers; i++) {
                CHECK_EQ(worker_of(scheduler, i).index, i);
                CHECK_EQ(worker_of(scheduler, i).task, 0);
                CHECK_EQ(worker_of(scheduler, i).stealing, stealing && workers > 1);
            }
            CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
            for (int i = 0; i < 50; i++) CHECK_EQ(janus_spawn(&n, where_am_i, scheduler), JANUS_OK);
            CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
            CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        }
    }
}

/*
 * The rest is done by hand, on schedulers that are not started: a worker's queues and choices are
 * the same without its thread.
 */

enum { WORKERS_MOST = 8 };

static janus_scheduler *make(const janus_scheduler_options *options)
{
    janus_scheduler *scheduler = NULL;
    CHECK_EQ(janus_scheduler_create_with(options, &scheduler), JANUS_OK);
    return scheduler;
}

static struct jrt_task *make_task(janus_scheduler *scheduler)
{
    struct jrt_task *task = jrt_task_alloc(scheduler, NULL);
    CHECK(task != NULL);
    task->lane = 1;
    return task;
}

static janus_worker_info books(const janus_scheduler *scheduler, uint32_t worker)
{
    janus_worker_info stats = JANUS_WORKER_INFO();
    CHECK_EQ(janus_worker_inspect(scheduler, worker, &stats), JANUS_OK);
    return stats;
}

TEST("a worker looks at its own queue, then at the queue for all, then at others' queues")
{
    janus_scheduler   *scheduler = make(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    struct jrt_worker *worker = &scheduler->workers[0], *other = &scheduler->workers[1];
    struct jrt_task   *own = make_task(scheduler), *ours = make_task(scheduler);
    struct jrt_task   *theirs = make_task(scheduler);
    jrt_submit_fresh(other, theirs);
    jrt_submit_outside(scheduler, ours);
    jrt_submit_fresh(worker, own);
    CHECK(jrt_pick(worker, false) == own);
    CHECK(jrt_pick(worker, false) == ours);
    CHECK(jrt_pick(worker, false) == NULL);
    CHECK(jrt_steal(worker, true) == theirs);
    CHECK(jrt_pick(worker, false) == NULL && jrt_steal(worker, true) == NULL);
    jrt_task_free(scheduler, NULL, own);
    jrt_task_free(scheduler, NULL, ours);
    jrt_task_free(scheduler, NULL, theirs);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a cycle of stealing asks four other workers, or all, and none without the flag")
{
    static const uint32_t counts[] = {1, 2, 3, 4, 5, 8, 64};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (int flag = 0; flag < 2; flag++) {
            uint32_t         count = counts[i], bound = count - 1 < 4 ? count - 1 : 4;
            janus_scheduler *scheduler =
                make(JANUS_SCHEDULER_OPTIONS(.worker_count = count, .no_stealing = !flag));
            for (uint64_t cycle = 1; cycle <= 10; cycle++) {
                CHECK(jrt_steal(&scheduler->workers[0], true) == NULL);
                CHECK_EQ(books(scheduler, 0).steals_failed, flag ? cycle * bound : 0);
            }
            CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        }
    }
}

/* The first victims of each of eight workers, fifty times. */
static void first_victims(uint64_t seed, unsigned out[WORKERS_MOST][50])
{
    janus_scheduler *scheduler =
        make(JANUS_SCHEDULER_OPTIONS(.worker_count = WORKERS_MOST, .deterministic_seed = seed));
    for (int i = 0; i < WORKERS_MOST; i++) {
        for (int k = 0; k < 50; k++) {
            out[i][k] = jrt_victim_choose(&scheduler->workers[i], 0);
            CHECK(out[i][k] < WORKERS_MOST && out[i][k] != (unsigned)i);
        }
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("the seed decides from which worker each steals, by its own generator")
{
    static unsigned first[WORKERS_MOST][50], again[WORKERS_MOST][50], other[WORKERS_MOST][50];
    first_victims(42, first);
    first_victims(42, again);
    first_victims(43000, other);
    CHECK(memcmp(first, again, sizeof first) == 0);
    CHECK(memcmp(first, other, sizeof first) != 0);
    for (unsigned i = 0; i < WORKERS_MOST; i++) {
        struct jrt_rng rng;
        jrt_rng_seed(&rng, 42 + i);
        for (int k = 0; k < 50; k++) {
            CHECK_EQ(first[i][k], (i + 1 + jrt_rng_below(&rng, WORKERS_MOST - 1)) % WORKERS_MOST);
        }
    }
}

TEST("LEAST_LOADED steals from the longest queue, ROUND_ROBIN from one after another")
{
    static const int loads[] = {0, 2, 5, 3};
    for (int victims = JANUS_VICTIMS_ROUND_ROBIN; victims <= JANUS_VICTIMS_LEAST_LOADED;
         victims++) {
        bool             longest = victims == JANUS_VICTIMS_LEAST_LOADED;
        struct jrt_task *oldest[4] = {NULL}, *tasks[10];
        int              made = 0;
        janus_scheduler *scheduler =
            make(JANUS_SCHEDULER_OPTIONS(.worker_count = 4, .victims = (janus_victims)victims));
        for (int i = 0; i < 4; i++) {
            for (int k = 0; k < loads[i]; k++) {
                tasks[made] = make_task(scheduler);
                if (k == 0) oldest[i] = tasks[made];
                jrt_submit_fresh(&scheduler->workers[i], tasks[made++]);
            }
        }
        CHECK(jrt_steal(&scheduler->workers[0], true) == oldest[longest ? 2 : 1]);
        if (!longest) CHECK(jrt_steal(&scheduler->workers[0], true) == oldest[2]);
        while (jrt_steal(&scheduler->workers[0], true) != NULL) continue;
        /* Tasks that came with them. */
        while (jrt_pick(&scheduler->workers[0], false) != NULL) continue;
        while (made > 0) jrt_task_free(scheduler, NULL, tasks[--made]);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* Idle ones. */

/* Waits until every worker has gone to sleep once. */
static void wait_asleep(janus_scheduler *scheduler)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        while (books(scheduler, i).parks == 0) {
            CHECK(janus_now_ns() < limit);
            jrt_thread_yield();
        }
    }
}

TEST("before it sleeps a worker makes a few rounds of attempts, and then none")
{
    enum { ROUNDS = 8 };
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = WORKERS_MOST));
    wait_asleep(scheduler);
    /* Workers that have no processor make none, [crew-full]. */
    CHECK(books(scheduler, UINT32_MAX).steals_failed >= 1);
    for (uint32_t i = 0; i < WORKERS_MOST; i++) {
        janus_worker_info stats = books(scheduler, i);
        CHECK(stats.steals_failed <= stats.parks * ROUNDS * JRT_STEAL_ATTEMPTS);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a task for eight sleeping workers wakes one, which wakes one more to search")
{
    enum { TASKS = 100 };
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = WORKERS_MOST));
    janus_nursery    n;
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    wait_asleep(scheduler);
    uint64_t began = janus_now_ns();
    for (int i = 0; i < TASKS; i++) {
        atomic_int ran = 0;
        CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
        while (!atomic_load(&ran)) jrt_thread_yield();
    }
    /* Spare ones may get up once more, and one each millisecond, [crew-patrol]. */
    uint64_t patrols = (janus_now_ns() - began) / rig_ms + 1;
    CHECK(books(scheduler, UINT32_MAX).parks <= 2 * WORKERS_MOST + 2 * TASKS + 2 * patrols);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

enum { CROWD = 600 }; /* more than fetch_ahead calls few */

static atomic_int crowd_waits, crowd_woke;

static int64_t stand(void *argument)
{
    (void)argument;
    atomic_fetch_add(&crowd_waits, 1);
    CHECK_EQ(janus_sleep_until(UINT64_MAX / 2), JANUS_CANCELLED);
    CHECK(janus_cancelled());
    atomic_fetch_add(&crowd_woke, 1);
    return 0;
}

static int64_t wake_crowd(void *argument)
{
    (void)argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(&n, stand, NULL), JANUS_OK);
    while (atomic_load(&crowd_waits) < CROWD) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(atomic_load(&crowd_woke), CROWD);
    return 0;
}

TEST("every task of a crowd that is woken at once goes on, even while others steal from its queue")
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
        atomic_store(&crowd_waits, 0);
        atomic_store(&crowd_woke, 0);
        rig_do(scheduler, wake_crowd, NULL);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

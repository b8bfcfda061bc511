/* SPDX-License-Identifier: MIT */
/* Workers and their sets: busy, idle and replaced ones, and where descriptors are placed. */
#include "wire.h"

#include "../task/slumber.h"
#include "work/poll.h"

#include <pthread.h>
#include <stdio.h>

/* A worker that computes without a call: others look at its set, [poll-others]. */

enum { PAIRS = 40 };

struct busy {
    janus_io    ends[PAIRS][2];
    atomic_int  waiting, got, rest;
    struct gate gate;
};

struct reader {
    struct busy *busy;
    int          which;
};

static int64_t wait_for_byte(void *argument)
{
    struct reader *self = argument;
    atomic_fetch_add(&self->busy->waiting, 1);
    CHECK_EQ(wire_get(self->busy->ends[self->which][1]), 'b');
    if (atomic_fetch_add(&self->busy->got, 1) + 1 == PAIRS) atomic_store(&self->busy->rest, 1);
    return 0;
}

static int64_t send_all(void *argument)
{
    struct busy *busy = argument;
    for (int i = 0; i < PAIRS; i++) wire_put(busy->ends[i][0], "b", 1);
    return 0;
}

static int64_t one_computes(void *argument)
{
    (void)argument;
    static struct busy   busy;
    static struct reader readers[PAIRS];
    janus_status         status;
    memset(&busy, 0, sizeof busy);
    for (int i = 0; i < PAIRS; i++) wire_pair(busy.ends[i]);
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < PAIRS; i++) {
            readers[i] = (struct reader){&busy, i};
            CHECK_EQ(janus_spawn(n, wait_for_byte, &readers[i]), JANUS_OK);
        }
        for (int i = 0; i < PAIRS; i++) wire_await_waiter(busy.ends[i][1], JANUS_IO_READ);
        CHECK_EQ(janus_spawn(n, keep_worker, &busy.gate), JANUS_OK);
        CHECK(rig_wait(&busy.gate.arrived)); /* one worker of two computes now */
        CHECK_EQ(janus_spawn(n, send_all, &busy), JANUS_OK);
        CHECK(rig_wait(&busy.rest)); /* all were served, half of them from its set */
        CHECK_EQ(atomic_load(&busy.gate.open), 0);
        atomic_store(&busy.gate.open, 1);
    }
    CHECK_EQ(status, JANUS_OK);
    for (int i = 0; i < PAIRS; i++) wire_close(busy.ends[i]);
    return 0;
}

TEST("while a task computes without a call, others serve the descriptors of its worker's set")
{
    RIG_REAL("a task that computes while others run");
    rig_run(2, one_computes, NULL, 3);
}

/* A task that only yields: its worker is never idle. */

struct yielding {
    janus_io   ends[2];
    atomic_int got;
};

static int64_t get_one(void *argument)
{
    struct yielding *self = argument;
    CHECK_EQ(wire_get(self->ends[1]), 'y');
    atomic_store(&self->got, 1);
    return 0;
}

static int64_t one_yields(void *argument)
{
    (void)argument;
    struct yielding self = {.got = 0};
    janus_status    status;
    wire_pair(self.ends);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, get_one, &self), JANUS_OK);
        wire_await_waiter(self.ends[1], JANUS_IO_READ);
        wire_put(self.ends[0], "y", 1);
        CHECK(rig_wait(&self.got)); /* alone in the queue, and yields */
    }
    CHECK_EQ(status, JANUS_OK);
    wire_close(self.ends);
    return 0;
}

TEST("a lone task that yields again and again does not keep its worker from the set")
{
    rig_all(one_yields, NULL, 10);
}

/* All idle. */

/* Voluntary context switches of all threads but this one. */
static uint64_t wake_ups(void)
{
    uint64_t       sum = 0;
    DIR           *folder = opendir("/proc/self/task");
    struct dirent *entry;
    CHECK(folder != NULL);
    while ((entry = readdir(folder)) != NULL) {
        char          path[300], line[128];
        unsigned long count = 0;
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == gettid()) continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL) continue;
        while (fgets(line, sizeof line, file) != NULL) {
            if (sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1) sum += count;
        }
        fclose(file);
    }
    closedir(folder);
    return sum;
}

enum { IDLE = 1000 };

struct idle {
    janus_io   ends[IDLE][2];
    atomic_int go;
};

static int64_t idle_reader(void *argument)
{
    JANUS_IGNORE(wire_get(*(janus_io *)argument));
    return 0;
}

static int64_t idle_town(void *argument)
{
    struct idle *idle = argument;
    janus_status status;
    for (int i = 0; i < IDLE; i++) {
        CHECK_EQ(janus_io_pair(JANUS_IO_OPTIONS(.kept = true), idle->ends[i]), JANUS_OK);
    }
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < IDLE; i++) {
            CHECK_EQ(janus_spawn(n, idle_reader, &idle->ends[i][1]), JANUS_OK);
        }
        for (int i = 0; i < IDLE; i++) wire_await_waiter(idle->ends[i][1], JANUS_IO_READ);
        atomic_store(&idle->go, 1);
    }
    return status;
}

TEST("with 1000 waiting descriptors and nothing to do, no worker wakes up")
{
    RIG_REAL("context switches of threads");
    static struct idle idle;
    if (RIG_SLOW) SKIP("sanitizers have threads of their own");
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
        janus_nursery    root;
        atomic_store(&idle.go, 0);
        CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&root, idle_town, &idle), JANUS_OK);
        while (!atomic_load(&idle.go)) sched_yield();
        slumber_until(scheduler, 1);
        /* All sleep. A watch may still be armed, and rings once; then nothing ever happens. */
        uint64_t limit = janus_now_ns() + rig_patience, since = 0, count = UINT64_MAX;
        do {
            CHECK(janus_now_ns() < limit);
            sched_yield();
            uint64_t now = wake_ups();
            if (now != count) since = janus_now_ns();
            count = now;
        } while (janus_now_ns() < since + 200 * rig_ms);
        for (int i = 0; i < IDLE; i++) {
            CHECK_EQ(janus_io_write(idle.ends[i][0], "x", 1, NULL), JANUS_OK);
        }
        CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        for (int i = 0; i < IDLE; i++) wire_close(idle.ends[i]);
    }
}

/* Replaced threads. */

static int64_t end_thread(void *argument)
{
    (void)argument;
    pthread_exit(NULL);
}

static int64_t replaced(void *argument)
{
    (void)argument;
    static struct busy   busy;
    static struct reader readers[PAIRS];
    janus_nursery        n, dying;
    memset(&busy, 0, sizeof busy);
    for (int i = 0; i < PAIRS; i++) wire_pair(busy.ends[i]);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < PAIRS; i++) {
        readers[i] = (struct reader){&busy, i};
        CHECK_EQ(janus_spawn(&n, wait_for_byte, &readers[i]), JANUS_OK);
    }
    for (int i = 0; i < PAIRS; i++) wire_await_waiter(busy.ends[i][1], JANUS_IO_READ);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(janus_nursery_open(&dying, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&dying, end_thread, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&dying, NULL), JANUS_CHILD_FAILED);
    }
    CHECK_EQ(send_all(&busy), 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&busy.got), PAIRS);
    for (int i = 0; i < PAIRS; i++) wire_close(busy.ends[i]);
    return 0;
}

/* The threads of all workers die, as JRT_FAULT_DEATH does it, while their sets have members. */
static int64_t all_die(void *argument)
{
    (void)argument;
    static struct busy   busy;
    static struct reader readers[PAIRS];
    janus_nursery        n, others;
    janus_scheduler     *scheduler = jrt_worker_self()->scheduler;
    memset(&busy, 0, sizeof busy);
    for (int i = 0; i < PAIRS; i++) wire_pair(busy.ends[i]);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < PAIRS; i++) {
        readers[i] = (struct reader){&busy, i};
        CHECK_EQ(janus_spawn(&n, wait_for_byte, &readers[i]), JANUS_OK);
    }
    for (int i = 0; i < PAIRS; i++) wire_await_waiter(busy.ends[i][1], JANUS_IO_READ);
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        struct jrt_poller *poller = jrt_poll_of(&scheduler->workers[i]);
        CHECK(poller != NULL && atomic_load(&poller->members) > 0);
        atomic_store(&scheduler->workers[i].doomed, true); /* it ends before its next pick */
    }
    CHECK_EQ(janus_nursery_open(&others, NULL), JANUS_OK);
    for (int i = 0; i < 100; i++) CHECK_EQ(janus_spawn(&others, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&others, NULL), JANUS_OK);
    CHECK_EQ(send_all(&busy), 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&busy.got), PAIRS);
    uint32_t doomed = 0;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        doomed += atomic_load(&scheduler->workers[i].doomed);
    }
    CHECK(doomed < scheduler->worker_count); /* some have died, and were replaced */
    for (int i = 0; i < PAIRS; i++) wire_close(busy.ends[i]);
    return 0;
}

TEST("reads that wait in sets go on when the threads of all workers have died")
{
    RIG_REAL("threads that end");
    if (JRT_TSAN) SKIP("ThreadSanitizer does not know fibers of a thread that has ended");
    freopen("/dev/null", "w", stderr); /* the library reports each thread */
    rig_run(1, all_die, NULL, 20);
    rig_run(2, all_die, NULL, 20);
    rig_run(8, all_die, NULL, 20);
}

TEST("reads that wait in the set of a worker go on when its thread was replaced")
{
    RIG_REAL("threads that end");
    if (JRT_TSAN) SKIP("ThreadSanitizer does not know fibers of a thread that has ended");
    freopen("/dev/null", "w", stderr); /* the library reports each thread */
    rig_all(replaced, NULL, 2);
}

/* Placement. */

enum { PLACED = 500 };

struct placing {
    janus_io   client[PLACED], served[PLACED];
    atomic_int done, workers;
};

static int64_t wait_served(void *argument)
{
    JANUS_IGNORE(wire_get(*(janus_io *)argument));
    return 0;
}

static int64_t placed(void *argument)
{
    static struct placing placing;
    janus_scheduler      *scheduler = janus_scheduler_current();
    janus_address         at;
    janus_status          status;
    uint32_t              workers = *(uint32_t *)argument;
    janus_io              listener = wire_listen(&at);
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < PLACED; i++) { /* one task accepts all */
            CHECK_EQ(janus_connect(&at, NULL, &placing.client[i]), JANUS_OK);
            CHECK_EQ(janus_accept(listener, &placing.served[i], NULL), JANUS_OK);
            CHECK_EQ(janus_spawn(n, wait_served, &placing.served[i]), JANUS_OK);
            wire_await_waiter(placing.served[i], JANUS_IO_READ);
        }
        uint32_t members = 0;
        for (uint32_t i = 0; i < workers; i++) {
            const struct jrt_poller *poller = jrt_poll_of(&scheduler->workers[i]);
            members += poller != NULL ? jrt_load_relaxed(&poller->members) : 0;
        }
        CHECK(members >= PLACED);
        for (uint32_t i = 0; i < workers; i++) {
            const struct jrt_poller *poller = jrt_poll_of(&scheduler->workers[i]);
            CHECK(poller != NULL);
            uint32_t mine = jrt_load_relaxed(&poller->members), mean = members / workers;
            CHECK(mine * 10 >= mean * 8 && mine * 10 <= mean * 12 + 20);
        }
        for (int i = 0; i < PLACED; i++) wire_put(placing.client[i], "p", 1);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
    for (int i = 0; i < PLACED; i++) {
        CHECK_EQ(janus_io_close(placing.client[i]), JANUS_OK);
        CHECK_EQ(janus_io_close(placing.served[i]), JANUS_OK);
    }
    return 0;
}

TEST("connections that one task accepts are spread over all sets")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) rig_run(workers, placed, &workers, 1);
}

/* A plain thread wakes a worker that sleeps in its set. */

struct hail {
    janus_channel channel;
    janus_io      ends[2];
    uint64_t      rounds;
};

static int64_t hear(void *argument)
{
    struct hail *hail = argument;
    for (uint64_t i = 0; i < hail->rounds; i++) {
        uint64_t value = 0;
        CHECK_EQ(janus_channel_recv(hail->channel, &value), JANUS_OK);
        CHECK_EQ(value, i);
    }
    wire_put(hail->ends[0], "e", 1);
    return 0;
}

static int64_t sleeps_in_set(void *argument)
{
    struct hail *hail = argument;
    CHECK_EQ(wire_get(hail->ends[1]), 'e'); /* its worker has a set */
    return 0;
}

static int64_t make_pair(void *argument)
{
    struct hail *hail = argument;
    CHECK_EQ(janus_io_pair(JANUS_IO_OPTIONS(.kept = true), hail->ends), JANUS_OK);
    return 0;
}

TEST("a plain thread reaches workers that sleep in their sets, every time")
{
    RIG_REAL("a plain thread beside the scheduler");
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        struct hail      hail = {.rounds = RIG_SLOW ? 2000 : 20000};
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
        janus_nursery    root;
        CHECK_EQ(janus_channel_create(sizeof(uint64_t), 1, NULL, &hail.channel), JANUS_OK);
        rig_do(scheduler, make_pair, &hail);
        CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&root, sleeps_in_set, &hail), JANUS_OK);
        CHECK_EQ(janus_spawn(&root, hear, &hail), JANUS_OK);
        for (uint64_t i = 0; i < hail.rounds; i++) {
            CHECK_EQ(janus_channel_send(hail.channel, &i), JANUS_OK);
        }
        CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
        CHECK_EQ(janus_channel_destroy(hail.channel), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        wire_close(hail.ends);
    }
}

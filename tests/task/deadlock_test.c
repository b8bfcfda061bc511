/* SPDX-License-Identifier: MIT */
/*
 * Deadlocks are found and reported once, and no other task is taken for a part of one. Nothing in
 * the library waits for ever yet, so the tests park tasks by hand.
 */
#include "cancel/cancel.h"
#include "cancel/park.h"
#include "plat/seam.h"
#include "rig.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char heading[] = "janusrt: deadlock: every task waits\n";

static void park_until_told(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = worker->current;
    CHECK(jrt_worker_can_leave(worker));
    jrt_task_park_begin(task, JRT_WAIT_JOIN);
    jrt_task_link(task);
    CHECK_EQ(jrt_task_park(worker, task), JANUS_DEADLOCK);
}

static int64_t wait_for_ever(void *argument)
{
    (void)argument;
    park_until_told();
    return 0;
}

/* All workers come to look at about the same time. */

enum { TIMES = RIG_SLOW ? 100 : 500, SLEEPS = 3 };

static int64_t wait_and_clean_up(void *argument)
{
    (void)argument;
    park_until_told();
    for (int i = 0; i < SLEEPS; i++) CHECK_EQ(janus_sleep(rig_ms / 20), JANUS_OK);
    return 0;
}

static unsigned headings(int fd)
{
    static char text[1 << 20];
    ssize_t     bytes = pread(fd, text, sizeof text - 1, 0);
    unsigned    count = 0;
    CHECK(bytes >= 0 && bytes < (ssize_t)sizeof text - 1);
    text[bytes] = '\0';
    for (const char *at = text; (at = strstr(at, heading)) != NULL; at++) count++;
    return count;
}

TEST("a deadlock is reported, and waits that begin afterwards go on")
{
    FILE *file = tmpfile();
    int   saved = dup(STDERR_FILENO);
    CHECK(file != NULL && saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    rig_run(4, wait_and_clean_up, NULL, TIMES);
    CHECK(dup2(saved, STDERR_FILENO) >= 0);
    CHECK(headings(fileno(file)) >= rig_few(TIMES)); /* more, if a worker got up in between */
    (void)close(saved);
    (void)fclose(file);
}

/* A thread that could act goes away. */

enum { KEPT = RIG_SLOW ? 20000 : 200000 };

static int64_t end_at_once(void *argument)
{
    (void)argument;
    return 0;
}

struct witness {
    janus_scheduler *scheduler;
    janus_token     *token;
    atomic_int       ready, waiting;
};

/* Ending its nursery takes long, and it releases the token only at the very end. */
static void *go_away_slowly(void *argument)
{
    struct witness *witness = argument;
    janus_nursery   n;
    janus_task_id   id;
    CHECK_EQ(janus_nursery_open_in(witness->scheduler, &n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_on(&n, witness->token), JANUS_OK);
    for (int i = 0; i < KEPT; i++) {
        CHECK_EQ(janus_spawn_with(&n, end_at_once, NULL, NULL, &id), JANUS_OK);
    }
    atomic_store(&witness->ready, 1);
    while (!atomic_load(&witness->waiting)) jrt_thread_yield();
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return NULL;
}

static int64_t note_and_wait(void *argument)
{
    struct witness *witness = argument;
    atomic_store(&witness->waiting, 1);
    park_until_told();
    return 0;
}

static void wait_with_a_witness(void *argument)
{
    (void)argument;
    pthread_t      thread;
    struct witness witness = {.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2))};
    CHECK_EQ(janus_token_create(&witness.token), JANUS_OK);
    CHECK_EQ(pthread_create(&thread, NULL, go_away_slowly, &witness), 0);
    while (!atomic_load(&witness.ready)) jrt_thread_yield();
    rig_do(witness.scheduler, note_and_wait, &witness);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    janus_token_release(witness.token);
    CHECK_EQ(janus_scheduler_destroy(witness.scheduler), JANUS_OK);
}

TEST("a deadlock is found when the last thread that could have ended it is gone")
{
    RIG_REAL("a thread outside takes part");
    int         status = -1;
    const char *text = harness_child(wait_with_a_witness, NULL, &status);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, heading) != NULL);
}

/* A thread that starts something during the report of a deadlock. */

enum { CROWD = 200, SLEEP_MS = 30 };

static struct {
    janus_scheduler *scheduler;
    int              pipe[2]; /* stderr; holds less than the crowd's description */
    atomic_int       told, over;
} late;

static int64_t gather_crowd(void *argument)
{
    (void)argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(&n, wait_for_ever, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t sleep_a_little(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_sleep(SLEEP_MS * rig_ms), JANUS_OK);
    return 0;
}

/* Reads the report from the moment on when the sleeper sleeps. */
static void *read_all(void *argument)
{
    (void)argument;
    char bytes[512];
    int  waiting = 0;
    while (jrt_sched_timers_next(late.scheduler) == JRT_NEVER) jrt_thread_yield();
    while (!atomic_load(&late.over) || waiting > 0) {
        CHECK_EQ(ioctl(late.pipe[0], FIONREAD, &waiting), 0);
        if (waiting > 0) CHECK(read(late.pipe[0], bytes, sizeof bytes) > 0);
        jrt_thread_yield();
    }
    return NULL;
}

static void *sleep_meanwhile(void *argument)
{
    (void)argument;
    for (int waiting = 0; waiting == 0; jrt_thread_yield()) {
        CHECK_EQ(ioctl(late.pipe[0], FIONREAD, &waiting), 0);
    }
    rig_do(late.scheduler, sleep_a_little, NULL);
    return NULL;
}

static void be_late(void *argument)
{
    (void)argument;
    pthread_t reader, sleeper;
    int       saved = dup(STDERR_FILENO);
    CHECK(saved >= 0 && pipe(late.pipe) == 0);
    CHECK(fcntl(late.pipe[1], F_SETPIPE_SZ, 4096) >= 0);
    CHECK(dup2(late.pipe[1], STDERR_FILENO) >= 0);
    late.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    CHECK_EQ(pthread_create(&reader, NULL, read_all, NULL), 0);
    CHECK_EQ(pthread_create(&sleeper, NULL, sleep_meanwhile, NULL), 0);
    rig_do(late.scheduler, gather_crowd, NULL);
    CHECK_EQ(pthread_join(sleeper, NULL), 0);
    CHECK_EQ(janus_scheduler_destroy(late.scheduler), JANUS_OK);
    atomic_store(&late.over, 1);
    CHECK_EQ(pthread_join(reader, NULL), 0);
    CHECK(dup2(saved, STDERR_FILENO) >= 0);
}

TEST("tasks that begin during the report of a deadlock are no part of it")
{
    RIG_REAL("a thread outside takes part");
    int         status = -1;
    const char *text = harness_child(be_late, NULL, &status);
    if (status != 0) printf("# %s\n", text);
    CHECK_EQ(status, 0);
}

static int64_t obey_a_deadlock(void *argument)
{
    janus_waitpoint point;
    (void)argument;
    janus_waitpoint_init(&point, JANUS_WAKER_TASKS);
    CHECK_EQ(janus_waitpoint_wait(&point, "nobody"), JANUS_DEADLOCK);
    return 0;
}

static void run_deadlocked(void *argument)
{
    *(janus_status *)argument = janus_run(NULL, obey_a_deadlock, NULL, NULL);
    if (*(janus_status *)argument != JANUS_DEADLOCK) _exit(3);
}

TEST("janus_run returns DEADLOCK after a deadlock was broken, even if all tasks succeeded")
{
    janus_status result = JANUS_OK;
    int          status = 0;
    (void)harness_child(run_deadlocked, &result, &status);
    CHECK_EQ(status, 0);
}

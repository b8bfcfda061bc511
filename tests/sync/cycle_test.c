/* SPDX-License-Identifier: MIT */
/* Circles of tasks that wait for each other are found, told, and broken; others are left alone. */
#include "../task/town.h"

#include "task/worker.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TIMES = TOWN_SLOW ? 5 : 50 };

static char said[1 << 20];

/* Runs it with the standard error output kept in `said`. */
static void listen_to(uint32_t workers, janus_entry *entry, void *argument)
{
    FILE *file = tmpfile();
    int   saved = dup(STDERR_FILENO);
    CHECK(file != NULL && saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    town_run(workers, entry, argument, 1);
    CHECK(dup2(saved, STDERR_FILENO) >= 0);
    ssize_t bytes = pread(fileno(file), said, sizeof said - 1, 0);
    CHECK(bytes >= 0);
    said[bytes] = '\0';
    (void)close(saved);
    (void)fclose(file);
}

static unsigned times_said(const char *text)
{
    unsigned count = 0;
    for (const char *at = said; (at = strstr(at, text)) != NULL; at++) count++;
    return count;
}

/* Each takes its own, then wants its neighbour's. */

enum { RING_MAX = 40 };

struct ring {
    janus_mutex locks[RING_MAX];
    atomic_int  holding, broken;
    int         size;
};

struct seat {
    struct ring *ring;
    int          number;
};

static int64_t philosopher(void *argument)
{
    struct seat *seat = argument;
    struct ring *ring = seat->ring;
    CHECK_EQ(janus_mutex_lock(&ring->locks[seat->number]), JANUS_OK);
    atomic_fetch_add(&ring->holding, 1);
    while (atomic_load(&ring->holding) < ring->size) CHECK_EQ(janus_yield(), JANUS_OK);
    janus_mutex *other = &ring->locks[(seat->number + 1) % ring->size];
    janus_status status = janus_mutex_lock(other);
    if (status == JANUS_DEADLOCK) atomic_fetch_add(&ring->broken, 1);
    if (status == JANUS_OK) CHECK_EQ(janus_mutex_unlock(other), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&ring->locks[seat->number]), JANUS_OK);
    return 0;
}

static int64_t dine(void *argument)
{
    struct ring *ring = argument;
    struct seat  seats[RING_MAX];
    for (int i = 0; i < ring->size; i++) janus_mutex_init(&ring->locks[i], i == 0 ? "fork" : NULL);
    JANUS_NURSERY(n)
    {
        for (int i = 0; i < ring->size; i++) {
            seats[i] = (struct seat){ring, i};
            CHECK_EQ(janus_spawn(n, philosopher, &seats[i]), JANUS_OK);
        }
    }
    CHECK(ring->broken >= 1); /* who is told gives up its own, which another may get in time */
    for (int i = 0; i < ring->size; i++) {
        CHECK_EQ(janus_mutex_try_lock(&ring->locks[i]), JANUS_OK);
        CHECK_EQ(janus_mutex_unlock(&ring->locks[i]), JANUS_OK);
    }
    return 0;
}

TEST("tasks that wait for each other's mutexes are told as a circle, with what and where")
{
    for (uint32_t workers = 1; workers <= 4; workers *= 4) {
        for (int size = 2; size <= RING_MAX; size += 19) {
            struct ring ring = {.size = size};
            char        heading[80];
            listen_to(workers, dine, &ring);
            (void)snprintf(heading, sizeof heading,
                           "janusrt: %d tasks wait for each other in a circle:\n", size);
            CHECK_EQ(times_said(heading), 1);
            CHECK_EQ(times_said("in a circle"), 1);
            CHECK_EQ(times_said("waits for mutex \"fork\", held by:\n"), 1);
            CHECK(times_said("waits for a mutex, held by:\n") == (unsigned)size - 1);
            CHECK_EQ(times_said("waits for mutex \"fork\" held by task \"task\" 0x"), 1);
            CHECK(times_said("tests/sync/cycle_test.c:") >= (unsigned)size);
        }
    }
}

/* A parent that waits for its child, which waits for the parent's mutex. */

struct family {
    janus_mutex lock;
    bool        join;
    atomic_int  broken;
};

static int64_t child(void *argument)
{
    struct family *family = argument;
    if (janus_mutex_lock(&family->lock) == JANUS_DEADLOCK) atomic_store(&family->broken, 1);
    return 0;
}

static int64_t parent(void *argument)
{
    struct family *family = argument;
    janus_nursery  n;
    janus_task_id  id;
    CHECK_EQ(janus_mutex_lock(&family->lock), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, child, family, JANUS_SPAWN_OPTIONS(.name = "child"), &id),
             JANUS_OK);
    if (family->join) CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&family->lock), JANUS_OK);
    CHECK_EQ(family->broken, 1);
    return 0;
}

TEST("a child that waits for what its waiting parent holds is a circle")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        struct family family = {.lock = JANUS_MUTEX_INIT("inherited")};
        listen_to(workers, parent, &family);
        CHECK_EQ(times_said("janusrt: 2 tasks wait for each other in a circle:\n"), 1);
        CHECK_EQ(times_said("waits for its children, among them:\n"), 1);
        CHECK_EQ(times_said("waits for mutex \"inherited\", held by:\n"), 1);
    }
}

TEST("a child that waits for what the parent that joins it holds is a circle")
{
    struct family family = {.lock = JANUS_MUTEX_INIT("joined"), .join = true};
    listen_to(2, parent, &family);
    CHECK_EQ(times_said("janusrt: 2 tasks wait for each other in a circle:\n"), 1);
    CHECK_EQ(times_said("waits for a child:\n"), 1);
    CHECK_EQ(times_said("waits for mutex \"joined\", held by:\n"), 1);
}

/* No circle. */

static int64_t wait_in_vain(void *argument)
{
    CHECK_EQ(janus_semaphore_acquire(argument), JANUS_DEADLOCK);
    return 0;
}

TEST("a wait that nobody ends is a deadlock without a circle")
{
    janus_semaphore semaphore = JANUS_SEMAPHORE_INIT(0, JANUS_OPENED_BY_TASKS, "empty");
    listen_to(2, wait_in_vain, &semaphore);
    CHECK_EQ(times_said("janusrt: deadlock: every task waits\n"), 1);
    CHECK_EQ(times_said("waits for semaphore \"empty\""), 1);
    CHECK_EQ(times_said("circle"), 0);
}

/* A thread holds it, or comes to hold it: no deadlock. */

struct outside {
    janus_mutex                lock;
    atomic_int                 taken, waiting;
    _Atomic(janus_scheduler *) scheduler;
};

/* Whether all workers sleep, and so have looked for a deadlock, or are about to. */
static bool all_sleep(janus_scheduler *scheduler)
{
    return jrt_sleeping(atomic_load(&scheduler->idlers)) == janus_scheduler_worker_count(scheduler);
}

static bool has_queue(const janus_mutex *lock)
{
    return (__atomic_load_n(&lock->opaque[0], __ATOMIC_RELAXED) & 2) != 0;
}

static int64_t wait_for_thread(void *argument)
{
    struct outside *outside = argument;
    atomic_fetch_add(&outside->waiting, 1);
    CHECK_EQ(janus_mutex_lock(&outside->lock), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&outside->lock), JANUS_OK);
    return 0;
}

static void *hold_for_a_while(void *argument)
{
    struct outside *outside = argument;
    CHECK_EQ(janus_mutex_lock(&outside->lock), JANUS_OK);
    atomic_store(&outside->taken, 1);
    while (atomic_load(&outside->waiting) < 2) jrt_thread_yield();
    while (!all_sleep(atomic_load(&outside->scheduler))) jrt_thread_yield();
    CHECK_EQ(janus_mutex_unlock(&outside->lock), JANUS_OK);
    return NULL;
}

static int64_t have_it_taken(void *argument)
{
    struct outside *outside = argument;
    atomic_store(&outside->scheduler, jrt_worker_self()->scheduler);
    JANUS_NURSERY(n)
    {
        for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(n, wait_for_thread, outside), JANUS_OK);
    }
    return 0;
}

TEST("waiting for a mutex that a thread holds is no deadlock")
{
    TOWN_REAL("a thread outside takes part");
    for (int i = 0; i < TIMES; i++) {
        struct outside outside = {.lock = JANUS_MUTEX_INIT("outside")};
        pthread_t      thread;
        CHECK_EQ(pthread_create(&thread, NULL, hold_for_a_while, &outside), 0);
        while (!atomic_load(&outside.taken)) jrt_thread_yield();
        listen_to(2, have_it_taken, &outside);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(said[0], '\0');
    }
}

/* The task hands it to a thread that waits, while others wait behind the thread. */

static int64_t hand_to_thread(void *argument)
{
    struct outside *outside = argument;
    pthread_t       thread;
    atomic_store(&outside->scheduler, jrt_worker_self()->scheduler);
    CHECK_EQ(janus_mutex_lock(&outside->lock), JANUS_OK);
    CHECK_EQ(pthread_create(&thread, NULL, hold_for_a_while, outside), 0);
    while (!has_queue(&outside->lock)) CHECK_EQ(janus_yield(), JANUS_OK); /* the thread is first */
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, wait_for_thread, outside), JANUS_OK);
    while (atomic_load(&outside->waiting) < 2) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&outside->lock), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return 0;
}

TEST("waiting for a mutex that a thread came to hold is no deadlock")
{
    TOWN_REAL("a thread outside takes part");
    for (int i = 0; i < TIMES; i++) {
        struct outside outside = {.lock = JANUS_MUTEX_INIT("handed")};
        listen_to(2, hand_to_thread, &outside);
        CHECK_EQ(said[0], '\0');
    }
}

/* Dumps of tasks that come and go. */

struct crowd {
    janus_mutex lock;
    atomic_int  stop;
};

static int64_t come_and_go(void *argument)
{
    struct crowd *crowd = argument;
    while (!atomic_load(&crowd->stop)) {
        CHECK_EQ(janus_mutex_lock(&crowd->lock), JANUS_OK);
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_mutex_unlock(&crowd->lock), JANUS_OK);
    }
    return 0;
}

static int64_t brief(void *argument)
{
    struct crowd *crowd = argument;
    janus_mutex   own = JANUS_MUTEX_INIT("own");
    CHECK_EQ(janus_mutex_lock(&own), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&crowd->lock), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&crowd->lock), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&own), JANUS_OK);
    return 0;
}

static int64_t spawn_brief(void *argument)
{
    struct crowd *crowd = argument;
    while (!atomic_load(&crowd->stop)) {
        JANUS_NURSERY(n)
        {
            for (int i = 0; i < 8; i++) CHECK_EQ(janus_spawn(n, brief, crowd), JANUS_OK);
        }
    }
    return 0;
}

TEST("dumps can be made while tasks lock, wait, end and free what they waited for")
{
    struct crowd     crowd = {.lock = JANUS_MUTEX_INIT("busy")};
    janus_scheduler *scheduler = town_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 4));
    janus_nursery    root;
    int              fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&root, come_and_go, &crowd), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, spawn_brief, &crowd), JANUS_OK);
    for (int i = 0; i < (TOWN_SLOW ? 100 : 1000); i++) {
        CHECK_EQ(janus_scheduler_dump(scheduler, fd), JANUS_OK);
    }
    atomic_store(&crowd.stop, 1);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_close(scheduler), JANUS_OK);
    (void)close(fd);
}

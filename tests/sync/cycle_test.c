/* SPDX-License-Identifier: MIT */
/* The library finds circles of waiting tasks, reports and breaks them. It leaves other waits
 * alone. */
#include "listen.h"

#include <fcntl.h>
#include <sched.h>

/* Each task takes its own mutex, then wants its neighbour's. */

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
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < ring->size; i++) {
            seats[i] = (struct seat){ring, i};
            CHECK_EQ(janus_spawn(n, philosopher, &seats[i]), JANUS_OK);
        }
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK(ring->broken >= 1); /* a task unlocks its own after DEADLOCK, and another may get it */
    for (int i = 0; i < ring->size; i++) {
        CHECK_EQ(janus_mutex_try_lock(&ring->locks[i]), JANUS_OK);
        CHECK_EQ(janus_mutex_unlock(&ring->locks[i]), JANUS_OK);
    }
    return 0;
}

TEST("tasks that wait for each other's mutexes are reported as a circle, with what and where")
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

/* A long circle, reported in the order of its waits. */

enum { LONG_RING = RIG_SLOW ? 60 : 600 };

struct link {
    janus_mutex  lock;
    struct link *next;
    atomic_int  *holding;
    char         name[24];
};

static int64_t hold_and_want_next(void *argument)
{
    struct link *link = argument;
    CHECK_EQ(janus_mutex_lock(&link->lock), JANUS_OK);
    atomic_fetch_add(link->holding, 1);
    while (atomic_load(link->holding) < LONG_RING) CHECK_EQ(janus_yield(), JANUS_OK);
    janus_status status = janus_mutex_lock(&link->next->lock);
    if (status == JANUS_OK) CHECK_EQ(janus_mutex_unlock(&link->next->lock), JANUS_OK);
    CHECK(status == JANUS_OK || status == JANUS_DEADLOCK);
    CHECK_EQ(janus_mutex_unlock(&link->lock), JANUS_OK);
    return 0;
}

static int64_t form_chain(void *argument)
{
    struct link *links = argument;
    atomic_int   holding = 0;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < LONG_RING; i++) {
            struct link *link = &links[i];
            (void)snprintf(link->name, sizeof link->name, "link %d", i);
            janus_mutex_init(&link->lock, link->name);
            link->next = &links[(i + 1) % LONG_RING];
            link->holding = &holding;
            CHECK_EQ(janus_spawn_with(n, hold_and_want_next, link,
                                      JANUS_SPAWN_OPTIONS(.name = link->name), NULL),
                     JANUS_OK);
        }
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("a long circle is reported in the order of its waits, with the first task again at the end")
{
    static struct link links[LONG_RING];
    int                first = -1, told = 0;
    char               start[32], end[48];
    listen_to(1, form_chain, links);
    const char *at = strstr(said, "tasks wait for each other in a circle:\n");
    CHECK(at != NULL && times_said("in a circle") == 1);
    at = strchr(at, '\n') + 1;
    CHECK_EQ(sscanf(at, "  task \"link %d\"", &first), 1);
    for (; told <= LONG_RING; told++) {
        int number = (first + told) % LONG_RING, next = (number + 1) % LONG_RING;
        int length = snprintf(start, sizeof start, "  task \"link %d\" 0x", number);
        (void)snprintf(end, sizeof end, "waits for mutex \"link %d\", held by:\n", next);
        CHECK_EQ(strncmp(at, start, (size_t)length), 0);
        const char *told_end = strstr(at, end), *line_end = strchr(at, '\n');
        CHECK(line_end != NULL);
        bool waits = told_end != NULL && told_end + strlen(end) == line_end + 1;
        CHECK_EQ(waits, told < LONG_RING);
        at = line_end + 1;
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

TEST("a wait that no task can end is a deadlock without a circle")
{
    janus_semaphore semaphore = JANUS_SEMAPHORE_INIT(0, JANUS_WAKER_TASKS, "empty");
    listen_to(2, wait_in_vain, &semaphore);
    CHECK_EQ(times_said("janusrt: deadlock: every task waits\n"), 1);
    CHECK_EQ(times_said("waits for semaphore \"empty\""), 1);
    CHECK_EQ(times_said("circle"), 0);
}

/* A parent with children in two nurseries waits for only one of them. */

static int64_t wait_beside(void *argument)
{
    CHECK_EQ(janus_mutex_lock(argument), JANUS_DEADLOCK);
    return 0;
}

static int64_t wait_for_inner(void *argument)
{
    janus_semaphore semaphore = JANUS_SEMAPHORE_INIT(0, JANUS_WAKER_TASKS, "inner");
    janus_mutex     lock = JANUS_MUTEX_INIT("beside");
    janus_nursery   outer, inner;
    (void)argument;
    CHECK_EQ(janus_mutex_lock(&lock), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&outer, wait_beside, &lock), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, wait_in_vain, &semaphore), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&lock), JANUS_OK);
    return 0;
}

TEST("a child of a nursery that its parent does not wait for yet closes no circle")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        listen_to(workers, wait_for_inner, NULL);
        CHECK_EQ(times_said("janusrt: deadlock: every task waits\n"), 1);
        CHECK_EQ(times_said("waits for mutex \"beside\" held by"), 1);
        CHECK_EQ(times_said("circle"), 0);
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
        janus_status ended;
        JANUS_NURSERY(n, ended)
        {
            for (int i = 0; i < 8; i++) CHECK_EQ(janus_spawn(n, brief, crowd), JANUS_OK);
        }
        CHECK_EQ(ended, JANUS_OK);
    }
    return 0;
}

TEST("dumps can be made while tasks lock, wait, end and free what they waited for")
{
    struct crowd     crowd = {.lock = JANUS_MUTEX_INIT("busy")};
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 4));
    janus_nursery    root;
    int              fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&root, come_and_go, &crowd), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, spawn_brief, &crowd), JANUS_OK);
    for (int i = 0; i < (RIG_SLOW ? 100 : 1000); i++) {
        CHECK_EQ(janus_scheduler_dump(scheduler, fd), JANUS_OK);
    }
    atomic_store(&crowd.stop, 1);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    (void)close(fd);
}

TEST("where workers have no processor, a circle is reported once, too")
{
    RIG_REAL("its processors are not the machine's");
    cpu_set_t all, one;
    size_t    first = 0;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    while (!CPU_ISSET(first, &all)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    for (int i = 0; i < 20; i++) {
        struct ring ring = {.size = 2};
        listen_to(4, dine, &ring);
        CHECK_EQ(times_said("in a circle"), 1);
    }
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
}

/* SPDX-License-Identifier: MIT */
/* Reader-writer locks whose holders end. Also bounds, deadlocks, dumps, and all schedules. */
#include "listen.h"

#include "sync/queue.h"

#include <pthread.h>

static bool has_waiter(janus_rwlock *lock)
{
    struct jrt_sync *sync = (struct jrt_sync *)(void *)lock;
    uint64_t         word = jrt_sync_enter(sync);
    bool             waits = jrt_sync_first(sync) != NULL;
    jrt_sync_leave(sync, word);
    return waits;
}

/* Holders that end. */

struct heritage {
    janus_rwlock lock;
    atomic_int   held;
    bool         writes, panics, contested, heir_writes;
};

static void hold(struct heritage *heritage)
{
    CHECK_EQ(heritage->writes ? janus_rwlock_write_lock(&heritage->lock)
                              : janus_rwlock_read_lock(&heritage->lock),
             JANUS_OK);
    if (!heritage->writes) CHECK_EQ(janus_rwlock_read_lock(&heritage->lock), JANUS_OK);
    atomic_fetch_add(&heritage->held, 1);
}

static int64_t end_with_it(void *argument)
{
    struct heritage *heritage = argument;
    hold(heritage);
    while (heritage->contested && !has_waiter(&heritage->lock)) {
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    if (heritage->panics) janus_panic("with the lock");
    return 0;
}

static void inherit(struct heritage *heritage)
{
    CHECK_EQ(heritage->heir_writes ? janus_rwlock_write_lock(&heritage->lock)
                                   : janus_rwlock_read_lock(&heritage->lock),
             JANUS_OK);
    CHECK_EQ(janus_rwlock_is_abandoned(&heritage->lock), heritage->writes);
    CHECK_EQ(janus_rwlock_repaired(&heritage->lock),
             heritage->heir_writes ? JANUS_OK : JANUS_STATE);
    CHECK_EQ(janus_rwlock_is_abandoned(&heritage->lock),
             heritage->writes && !heritage->heir_writes);
    CHECK_EQ(janus_rwlock_unlock(&heritage->lock), JANUS_OK);
}

static int64_t heir(void *argument)
{
    struct heritage *heritage = argument;
    CHECK(rig_wait(&heritage->held));
    inherit(heritage);
    return 0;
}

static void one_end(struct heritage heritage)
{
    int           holders = heritage.writes ? 1 : 3;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < holders; i++) CHECK_EQ(janus_spawn(&n, end_with_it, &heritage), JANUS_OK);
    if (heritage.contested) {
        while (atomic_load(&heritage.held) < holders) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, heir, &heritage), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), heritage.panics ? JANUS_CHILD_FAILED : JANUS_OK);
    if (!heritage.contested) inherit(&heritage);
    CHECK_EQ(janus_rwlock_try_write_lock(&heritage.lock), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&heritage.lock), JANUS_OK);
}

static int64_t all_ends(void *argument)
{
    (void)argument;
    for (int i = 0; i < 16; i++) {
        struct heritage heritage = {.writes = i & 1,
                                    .panics = (i & 2) != 0,
                                    .contested = (i & 4) != 0,
                                    .heir_writes = (i & 8) != 0};
        if (heritage.contested && !heritage.writes) heritage.heir_writes = true;
        one_end(heritage);
    }
    return 0;
}

TEST("a task that ends with the lock releases it, and only a writer abandons it, until repaired")
{
    rig_all(all_ends, NULL, 2);
}

static void *thread_ends(void *argument)
{
    struct heritage *heritage = argument;
    hold(heritage);
    while (heritage->contested && !has_waiter(&heritage->lock)) (void)sched_yield();
    return NULL;
}

TEST("a thread that ends with the lock releases it")
{
    RIG_REAL("threads outside");
    for (int i = 0; i < 8; i++) {
        struct heritage heritage = {
            .writes = i & 1, .contested = (i & 2) != 0, .heir_writes = (i & 4) != 0};
        pthread_t thread;
        if (heritage.contested && !heritage.writes) heritage.heir_writes = true;
        CHECK_EQ(pthread_create(&thread, NULL, thread_ends, &heritage), 0);
        while (!atomic_load(&heritage.held)) (void)sched_yield();
        if (!heritage.contested) CHECK_EQ(pthread_join(thread, NULL), 0);
        inherit(&heritage);
        if (heritage.contested) CHECK_EQ(pthread_join(thread, NULL), 0);
    }
}

/* Locks that are freed while they are held, and the bound. */

static int64_t forget_many(void *argument)
{
    atomic_int  *forgotten = argument;
    janus_rwlock one = JANUS_RWLOCK_INIT(NULL);
    for (int i = 0; i < JANUS_RWLOCK_HOLDS_MAX; i++) {
        janus_rwlock *lock = malloc(sizeof *lock);
        CHECK(lock != NULL);
        CHECK_EQ(janus_rwlock_init(lock, "forgotten"), JANUS_OK);
        CHECK_EQ(janus_rwlock_unlock(lock), JANUS_STATE); /* also where one was held before */
        CHECK_EQ(i % 2 != 0 ? janus_rwlock_read_lock(lock) : janus_rwlock_write_lock(lock),
                 JANUS_OK);
        free(lock);
    }
    CHECK_EQ(janus_rwlock_read_lock(&one), JANUS_FULL);
    CHECK_EQ(janus_rwlock_try_write_lock(&one), JANUS_FULL);
    atomic_fetch_add(forgotten, 1);
    return 0;
}

static int64_t forget_often(void *argument)
{
    atomic_int    forgotten = 0;
    janus_nursery n;
    (void)argument;
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, forget_many, &forgotten), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    CHECK_EQ(forgotten, 10);
    return 0;
}

TEST("a task's end touches no lock that was freed, and a task holds JANUS_RWLOCK_HOLDS_MAX locks")
{
    rig_all(forget_often, NULL, 1);
}

/* Deadlocks. */

struct cross {
    janus_rwlock table;
    janus_mutex  log;
    atomic_int   reading, broken;
};

static int64_t read_then_log(void *argument)
{
    struct cross *cross = argument;
    CHECK_EQ(janus_rwlock_read_lock(&cross->table), JANUS_OK);
    atomic_fetch_add(&cross->reading, 1);
    janus_status status = janus_mutex_lock(&cross->log);
    if (status == JANUS_DEADLOCK) atomic_fetch_add(&cross->broken, 1);
    if (status == JANUS_OK) CHECK_EQ(janus_mutex_unlock(&cross->log), JANUS_OK);
    return janus_rwlock_unlock(&cross->table);
}

static int64_t log_then_write(void *argument)
{
    struct cross *cross = argument;
    CHECK_EQ(janus_mutex_lock(&cross->log), JANUS_OK);
    while (atomic_load(&cross->reading) < 2) CHECK_EQ(janus_yield(), JANUS_OK);
    janus_status status = janus_rwlock_write_lock(&cross->table);
    if (status == JANUS_DEADLOCK) atomic_fetch_add(&cross->broken, 1);
    if (status == JANUS_OK) CHECK_EQ(janus_rwlock_unlock(&cross->table), JANUS_OK);
    return janus_mutex_unlock(&cross->log);
}

static int64_t cross_over(void *argument)
{
    struct cross *cross = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, log_then_write, cross), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, read_then_log, cross), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(cross->broken >= 1);
    return 0;
}

TEST("readers that wait for what a waiting writer holds are circles, with the lock's name")
{
    struct cross cross = {.table = JANUS_RWLOCK_INIT("table"), .log = JANUS_MUTEX_INIT("log")};
    listen_to(1, cross_over, &cross);
    CHECK_EQ(times_said("janusrt: 2 tasks wait for each other in a circle:\n"), 2);
    CHECK_EQ(times_said("waits for reader-writer lock \"table\", held by:\n"), 2);
    CHECK_EQ(times_said("waits for reader-writer lock \"table\" held by task \"task\" 0x"), 1);
    CHECK_EQ(times_said(" and 1 more"), 1);
}

/* A thread outside may unlock: no deadlock. */

static int64_t write_it(void *argument)
{
    CHECK_EQ(janus_rwlock_write_lock(argument), JANUS_OK);
    return janus_rwlock_unlock(argument);
}

TEST("a task that waits for a lock that a thread reads is not in a deadlock")
{
    RIG_REAL("threads outside");
    janus_rwlock     lock = JANUS_RWLOCK_INIT("outside");
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    janus_nursery    root;
    CHECK_EQ(janus_rwlock_read_lock(&lock), JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    unsigned before = jrt_load_relaxed(&scheduler->outside); /* relaxed: a count. */
    CHECK_EQ(janus_spawn(&root, write_it, &lock), JANUS_OK);
    while (!has_waiter(&lock)) (void)sched_yield();
    CHECK_EQ(jrt_load_relaxed(&scheduler->outside), before + 1);
    CHECK_EQ(janus_rwlock_unlock(&lock), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* All schedules: holders end, a writer is cancelled, and others go on. */

struct scene {
    janus_rwlock  lock;
    janus_nursery doomed;
    long          first, second;
    int           got;
};

static int64_t scene_reader(void *argument)
{
    struct scene *scene = argument;
    JANUS_EXPECT(janus_rwlock_read_lock(&scene->lock) == JANUS_OK);
    long first = scene->first;
    janus_point();
    JANUS_EXPECT(first == scene->second);
    return 0; /* with the lock */
}

static int64_t scene_writer(void *argument)
{
    struct scene *scene = argument;
    JANUS_EXPECT(janus_rwlock_write_lock(&scene->lock) == JANUS_OK);
    scene->first++;
    janus_point();
    scene->second++;
    scene->got++;
    return 0; /* with the lock */
}

static int64_t scene_doomed(void *argument)
{
    struct scene *scene = argument;
    janus_status  status = janus_rwlock_write_lock(&scene->lock);
    if (status != JANUS_OK) return status;
    JANUS_EXPECT(scene->first == scene->second);
    return janus_rwlock_unlock(&scene->lock);
}

static int64_t play(void *argument)
{
    struct scene  scene = {.lock = JANUS_RWLOCK_INIT("scene")};
    janus_nursery n;
    (void)argument;
    JANUS_EXPECT(janus_nursery_open(&n, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_nursery_open(&scene.doomed, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&n, scene_reader, &scene) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&scene.doomed, scene_doomed, &scene) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&n, scene_writer, &scene) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&n, scene_reader, &scene) == JANUS_OK);
    JANUS_EXPECT(janus_nursery_cancel(&scene.doomed) == JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&scene.doomed, NULL));
    janus_status status = janus_nursery_end(&n, NULL);
    JANUS_EXPECT(janus_rwlock_try_write_lock(&scene.lock) == JANUS_OK);
    JANUS_EXPECT(janus_rwlock_is_abandoned(&scene.lock) && scene.got == 1);
    JANUS_EXPECT(janus_rwlock_unlock(&scene.lock) == JANUS_OK);
    return status;
}

TEST("in a thousand schedules, ending holders and cancelled writers block no task")
{
    RIG_REAL("explores by itself");
    const uint64_t schedules = RIG_SLOW ? 20 : 1000; /* one thread: sanitizers learn little */
    for (int strategy = JANUS_STRATEGY_RANDOM; strategy <= JANUS_STRATEGY_PCT; strategy++) {
        CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.strategy = (janus_strategy)strategy,
                                                     .worker_count = 3, .schedules = schedules),
                               play, NULL, NULL),
                 JANUS_OK);
    }
}

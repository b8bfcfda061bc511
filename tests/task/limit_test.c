/* SPDX-License-Identifier: MIT */
/* The limit of live tasks: exact, whichever task or thread starts them, and free again when some
 * have ended. */
#include "energy.h"
#include "work/limit.h"

#include <pthread.h>

/* By itself. */

static int64_t tell_full(void *argument)
{
    check_budget(janus_budget_get_current(), 10000, 1 << 20, 0, 100, 10);
    return at_gate(argument);
}

/* C6, C7. */
TEST("a plain thread starts exactly a hundred live tasks in :service, each with a full budget")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        janus_scheduler *scheduler = NULL;
        janus_nursery    n;
        struct gate      gate = {0};
        CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = workers),
                                             &scheduler),
                 JANUS_OK);
        CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
        for (int i = 0; i < 100; i++) CHECK_EQ(janus_spawn(&n, tell_full, &gate), JANUS_OK);
        for (int i = 0; i < 10; i++) {
            CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_TASK_LIMIT);
            check_explained("100 of 100", "JANUS_TASK_LIMIT");
        }
        while (atomic_load(&gate.arrived) < 100) rig_spin(); /* all of them live, at once */
        atomic_store(&gate.open, 1);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(jrt_limit_alive(scheduler), 0);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

static int64_t a_hundred(void *argument)
{
    janus_nursery n;
    struct gate   gate = {0};
    (void)argument;
    for (int round = 0; round < 3; round++) {
        atomic_store(&gate.open, 0);
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (int i = 0; i < 99; i++) CHECK_EQ(janus_spawn(&n, tell_full, &gate), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_TASK_LIMIT); /* this task is one of them */
        CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, NULL), JANUS_TASK_LIMIT);
        check_explained("100 of 100", "max_tasks");
        atomic_store(&gate.open, 1);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

static int64_t in_sequence(void *argument)
{
    janus_nursery n;
    janus_task_id id;
    int           count = *(int *)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, &id), JANUS_OK);
        CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* C6, C7, SCHED:8.1.2/2. */
TEST("under the profile's limit 10,000 tasks run one after another, and the 101st live one is "
     "refused")
{
    int many = (int)rig_few(RIG_SLOW ? 2000 : 10000);
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), a_hundred, NULL, NULL),
                 JANUS_OK);
        CHECK_EQ(
            janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), in_sequence, &many, NULL),
            JANUS_OK);
    }
}

/* C7. A task that has joined a child has its room, however small the limit. */
TEST("with room for one child, each joined child makes room for the next")
{
    int many = (int)rig_few(RIG_SLOW ? 2000 : 20000);
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_tasks = 2),
                           in_sequence, &many, NULL),
                 JANUS_OK);
    }
}

/* To the limit. */

struct crowd {
    janus_scheduler *scheduler;
    struct gate      gate;
    atomic_int       started, refused, begun;
    int              starters;
};

/* Starts as many as there is room for. */
static int64_t fill_up(struct crowd *crowd, janus_nursery *n)
{
    janus_status status;
    atomic_fetch_add(&crowd->begun, 1);
    while (atomic_load(&crowd->begun) < crowd->starters) {
        if (janus_task_current_id() != 0) CHECK_EQ(janus_yield(), JANUS_OK);
    }
    while ((status = janus_spawn(n, at_gate, &crowd->gate)) == JANUS_OK) {
        atomic_fetch_add(&crowd->started, 1);
    }
    CHECK_EQ(status, JANUS_TASK_LIMIT);
    atomic_fetch_add(&crowd->refused, 1);
    while (!atomic_load(&crowd->gate.open)) {
        if (janus_task_current_id() != 0) CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return janus_nursery_end(n, NULL);
}

static int64_t fill_up_inside(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    return fill_up(argument, &n);
}

static void *fill_up_outside(void *argument)
{
    struct crowd *crowd = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open_in(crowd->scheduler, &n, NULL), JANUS_OK);
    CHECK_EQ(fill_up(crowd, &n), JANUS_OK);
    return NULL;
}

/* This many tasks and threads start children until all are refused. */
static void crowd_in(uint32_t workers, uint64_t max, int inside, int outside)
{
    struct crowd  crowd = {.starters = inside + outside};
    pthread_t     threads[8];
    janus_nursery n;
    crowd.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_tasks = max));
    CHECK_EQ(janus_nursery_open_in(crowd.scheduler, &n, NULL), JANUS_OK);
    for (int i = 0; i < inside; i++) CHECK_EQ(janus_spawn(&n, fill_up_inside, &crowd), JANUS_OK);
    for (int i = 0; i < outside; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, fill_up_outside, &crowd), 0);
    }
    while (atomic_load(&crowd.refused) < crowd.starters) rig_spin();
    CHECK_EQ(crowd.started, (long long)max - inside);
    CHECK_EQ(jrt_limit_alive(crowd.scheduler), max);
    atomic_store(&crowd.gate.open, 1);
    for (int i = 0; i < outside; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(jrt_limit_alive(crowd.scheduler), 0);
    CHECK_EQ(janus_scheduler_destroy(crowd.scheduler), JANUS_OK);
}

/* C36, C7. */
TEST("eight threads together start exactly as many tasks as the limit allows")
{
    RIG_REAL("a thread outside takes part");
    for (int i = 0; i < (RIG_SLOW ? 5 : 20); i++) crowd_in(2, 50 + (uint64_t)i, 0, 8);
}

/* C36, C7. */
TEST("eight tasks on one, two and eight workers start exactly as many tasks as the limit allows")
{
    for (int i = 0; i < (RIG_SLOW ? 3 : 10); i++) {
        crowd_in(1, 50 + (uint64_t)i, 8, 0);
        crowd_in(2, 50 + (uint64_t)i, 8, 0);
        crowd_in(8, 50 + (uint64_t)i, 8, 0);
    }
}

/* C36, C7. */
TEST("tasks and threads together start exactly as many tasks as the limit allows")
{
    RIG_REAL("a thread outside takes part");
    for (int i = 0; i < (RIG_SLOW ? 3 : 10); i++) {
        crowd_in(2, 9 + (uint64_t)i * 30, 4, 4);
        crowd_in(8, 9 + (uint64_t)i * 30, 4, 4);
    }
}

/* Capabilities. */

static int64_t ten_of_fifty(void *argument)
{
    janus_authority *root;
    janus_nursery    outer, inner;
    struct gate      gate = {0};
    janus_cap_limits fifty = {.spawn = {.max_tasks = 50, .task_budget = {.ops = 10000}}};
    janus_cap_limits ten = {.spawn = {.max_tasks = 10, .task_budget = {.ops = 10000}}};
    (void)argument;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    janus_cap wide = mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, fifty);
    janus_cap narrow = mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, ten);
    CHECK_EQ(janus_nursery_open(&outer, JANUS_NURSERY_OPTIONS(.spawn_cap = wide)), JANUS_OK);
    for (int i = 0; i < 45; i++) CHECK_EQ(janus_spawn(&outer, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.spawn_cap = narrow)), JANUS_OK);
    for (int i = 0; i < 5; i++) CHECK_EQ(janus_spawn(&inner, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, nothing, NULL), JANUS_TASK_LIMIT); /* ten, but out of the fifty */
    check_explained("50", "JANUS_TASK_LIMIT");
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);

    atomic_store(&gate.open, 0);
    CHECK_EQ(janus_nursery_open(&outer, JANUS_NURSERY_OPTIONS(.spawn_cap = wide)), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.spawn_cap = narrow)), JANUS_OK);
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_spawn(&inner, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, nothing, NULL), JANUS_TASK_LIMIT);
    check_explained("10 of 10", "JANUS_TASK_LIMIT");
    for (int i = 0; i < 40; i++) CHECK_EQ(janus_spawn(&outer, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&outer, nothing, NULL), JANUS_TASK_LIMIT);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    return 0;
}

TEST("a capability for ten inside one for fifty takes its tasks from both")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .yield_interval = 100,
                                          .profile = JANUS_PROFILE_SOVEREIGN),
                  ten_of_fifty, NULL);
    }
}

/* A chain of nurseries below a limit: each task starts the next one, and waits. */
struct chain {
    int        left;
    atomic_int alive;
};

static int64_t grow_chain(void *argument)
{
    struct chain *chain = argument;
    janus_nursery n;
    janus_status  status;
    atomic_fetch_add(&chain->alive, 1);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    status = janus_spawn(&n, grow_chain, chain);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return status == JANUS_OK || status == JANUS_TASK_LIMIT ? 0 : status;
}

static int64_t end_at_once(void *argument)
{
    (void)argument;
    return 0;
}

static int64_t bound_chain(void *argument)
{
    struct chain *chain = argument;
    janus_nursery n;
    for (int round = 0; round < 3; round++) { /* places come back */
        atomic_store(&chain->alive, 0);
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.max_tasks = 5)), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, grow_chain, chain), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(atomic_load(&chain->alive), 5);
    }
    /* The narrower limit holds, and a spawn can wait for a place. */
    janus_nursery inner;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.max_tasks = 5)), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.max_tasks = 2)), JANUS_OK);
    atomic_store(&chain->alive, 0);
    CHECK_EQ(janus_spawn(&inner, grow_chain, chain), JANUS_OK);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(janus_spawn_wait(&inner, end_at_once, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(atomic_load(&chain->alive) <= 2);
    return 0;
}

TEST("max_tasks of a nursery bounds the tasks in all nurseries below it")
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        struct chain     chain = {0};
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
        rig_do(scheduler, bound_chain, &chain);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* [limit-seize]: rooms that gathered on a worker go back to the centre when it has no task. */
TEST("workers without a task keep at most half of a small limit")
{
    enum { MAX = 100, WORKERS = 2, KEEPS = 2 * (MAX / (4 * WORKERS)) };
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = WORKERS, .max_tasks = MAX));
    janus_nursery n;
    struct gate   gate = {0};
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    for (int i = 0; i < 90; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    atomic_store(&gate.open, 1); /* tasks of a plain thread take from the centre, end on workers */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    while (jrt_load_acquire(&scheduler->asleep) < WORKERS) rig_spin();
    jrt_lock(&scheduler->limit.lock);
    int64_t central = scheduler->limit.central;
    jrt_unlock(&scheduler->limit.lock);
    CHECK(central >= MAX - WORKERS * KEEPS);
    CHECK_EQ(jrt_limit_alive(scheduler), 0);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static int64_t ask_meekly(void *argument)
{
    struct jrt_worker *self = jrt_worker_self();
    struct jrt_worker *other = argument;
    struct jrt_limit  *limit = &self->scheduler->limit;
    if (other == self) other = &self->scheduler->workers[1];
    jrt_lock(&limit->lock);
    int64_t all = limit->central;
    limit->central = 0;
    jrt_store_relaxed(&other->quota.base, jrt_load_relaxed(&other->quota.base) + all);
    int64_t mine = jrt_load_relaxed(&self->quota.used);
    jrt_store_relaxed(&self->quota.base, mine); /* no room here */
    int64_t theirs = jrt_load_relaxed(&other->quota.base);
    jrt_unlock(&limit->lock);
    CHECK(!jrt_quota_take_meekly(&self->quota, self));
    CHECK_EQ(jrt_load_relaxed(&other->quota.base), theirs);
    CHECK(jrt_quota_take(&self->quota, self));
    CHECK(jrt_load_relaxed(&other->quota.base) < theirs);
    jrt_quota_give(&self->quota);
    return 0;
}

TEST(
    "a piece of a parallel call leaves another worker's room alone, and an ordinary spawn takes it")
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_tasks = 100));
    rig_do(scheduler, ask_meekly, &scheduler->workers[0]);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* SPDX-License-Identifier: MIT */
/* A child is cancelled by its id, whatever it does, and its siblings go on. */
#include "backends.h"

/* A child that runs until it gets CANCELLED, and siblings that must not get it. */

struct life {
    janus_nursery n;
    janus_mutex   mutex;
    janus_channel channel;
    struct gate   gate;   /* of the siblings */
    atomic_int    began;  /* the child, or a task below it */
    atomic_int    ended;  /* a task below it */
    atomic_int    opened; /* shielded: it may go on */
};

static int64_t wait_for_ever(void *argument)
{
    struct life *life = argument;
    atomic_store(&life->began, 1);
    return janus_sleep(UINT64_MAX);
}

static int64_t compute(void *argument)
{
    struct life *life = argument;
    atomic_store(&life->began, 1);
    while (!janus_cancelled()) rig_spin();
    return JANUS_CANCELLED;
}

static int64_t give_way(void *argument)
{
    struct life *life = argument;
    janus_status status;
    atomic_store(&life->began, 1);
    while ((status = janus_yield()) == JANUS_OK) continue;
    return status;
}

static int64_t receive(void *argument)
{
    struct life *life = argument;
    int          value;
    atomic_store(&life->began, 1);
    return janus_channel_recv(life->channel, &value);
}

static int64_t lock(void *argument)
{
    struct life *life = argument;
    atomic_store(&life->began, 1);
    return janus_mutex_lock(&life->mutex);
}

static int64_t sleep_below(void *argument)
{
    struct life *life = argument;
    atomic_store(&life->began, 1);
    janus_status status = janus_sleep(UINT64_MAX);
    if (status == JANUS_CANCELLED) atomic_fetch_add(&life->ended, 1);
    return status;
}

static int64_t await_child(void *argument)
{
    struct life         *life = argument;
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, sleep_below, argument), JANUS_OK);
    janus_status status = janus_nursery_end(&n, &result);
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK_EQ(result.reason, JANUS_CANCEL_REASON_EXPLICIT);
    CHECK_EQ(atomic_load(&life->ended), 1);
    return status;
}

/* A nursery in the other, and a grandchild that never waits. */
static int64_t compute_below(void *argument)
{
    struct life *life = argument;
    (void)compute(argument);
    atomic_fetch_add(&life->ended, 1);
    return JANUS_CANCELLED;
}

static int64_t await_deeply(void *argument)
{
    struct life         *life = argument;
    janus_nursery        outer, inner;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, compute_below, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&inner, &result), JANUS_CANCELLED);
    CHECK_EQ(result.reason, JANUS_CANCEL_REASON_EXPLICIT);
    CHECK_EQ(atomic_load(&life->ended), 1);
    CHECK(janus_nursery_is_cancelled(&outer));
    JANUS_IGNORE(janus_nursery_end(&outer, NULL)); /* OK: it had no children */
    return janus_yield();
}

static int64_t shielded(void *argument)
{
    struct life *life = argument;
    janus_shield_begin();
    atomic_store(&life->began, 1);
    while (!atomic_load(&life->opened)) CHECK_EQ(janus_yield(), JANUS_OK);
    janus_shield_end();
    return janus_sleep(UINT64_MAX);
}

static int64_t shielded_until(void *argument)
{
    struct life *life = argument;
    janus_shield shield;
    janus_shield_begin_until(&shield, janus_now_ns() + rig_ms);
    atomic_store(&life->began, 1);
    janus_status status = janus_sleep(UINT64_MAX);
    janus_shield_end();
    return status;
}

static int64_t quietly(void *argument)
{
    struct life *life = argument;
    atomic_store(&life->began, 1);
    janus_shield_begin();
    while (!atomic_load(&life->opened)) JANUS_IGNORE(janus_yield());
    janus_shield_end();
    return JANUS_CANCELLED; /* no call told it */
}

static janus_entry *const lives[] = {wait_for_ever,  compute,     give_way,     receive,
                                     lock,           await_child, await_deeply, shielded,
                                     shielded_until, quietly};
enum { LIVES = sizeof lives / sizeof *lives };

static void cancel_one(struct life *life, janus_entry *entry, const janus_nursery_options *options)
{
    janus_nursery_result result;
    janus_task_info      info = JANUS_TASK_INFO();
    janus_task_id        id, sibling;
    int64_t              number = 0;
    janus_mutex_init(&life->mutex, NULL);
    CHECK_EQ(janus_mutex_lock(&life->mutex), JANUS_OK);
    if (entry == receive) {
        CHECK_EQ(janus_channel_create(sizeof(int), 0, NULL, &life->channel), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_open(&life->n, options), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&life->n, at_gate, &life->gate, NULL, &sibling), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&life->n, entry, life, NULL, &id), JANUS_OK);
    CHECK(rig_wait(&life->began));
    CHECK(rig_wait(&life->gate.arrived));
    CHECK_EQ(janus_nursery_cancel_child(&life->n, id), JANUS_OK);
    CHECK_EQ(janus_task_inspect(&life->n, id, &info), JANUS_OK);
    CHECK_EQ(info.cancel, JANUS_CANCEL_REASON_EXPLICIT);
    atomic_store(&life->opened, 1);
    CHECK_EQ(janus_join(&life->n, id, &number), JANUS_CHILD_CANCELLED);
    CHECK_EQ(number, JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_cancel_child(&life->n, id), JANUS_STALE);
    CHECK(!janus_nursery_is_cancelled(&life->n));
    CHECK_EQ(janus_task_inspect(&life->n, sibling, &info), JANUS_OK);
    CHECK_EQ(info.cancel, JANUS_CANCEL_REASON_NONE);
    atomic_store(&life->gate.open, 1);
    CHECK_EQ(janus_join(&life->n, sibling, &number), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&life->n, nothing, NULL, NULL, &id), JANUS_OK); /* still open */
    CHECK_EQ(janus_nursery_end(&life->n, &result), JANUS_OK);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_SUCCESS);
    if (entry == receive) CHECK_EQ(janus_channel_destroy(life->channel), JANUS_OK);
    janus_mutex_unlock(&life->mutex);
}

static int64_t cancel_each(void *argument)
{
    (void)argument;
    for (int i = 0; i < LIVES; i++) {
        struct life life = {.gate.result = 7};
        cancel_one(&life, lives[i], NULL);
    }
    return 0;
}

TEST("a child that is cancelled by its id ends, whatever it does, and its sibling goes on")
{
    /* On one worker, a child that computes without yielding keeps its owner from going on. */
    rig_run(2, cancel_each, NULL, 20);
    rig_run(8, cancel_each, NULL, 20);
}

static int64_t cancel_waiting(void *argument)
{
    (void)argument;
    for (int i = 0; i < LIVES; i++) {
        struct life life = {.gate.result = 7};
        if (lives[i] != compute && lives[i] != await_deeply) cancel_one(&life, lives[i], NULL);
    }
    return 0;
}

TEST("a child that waits is cancelled by its id on one worker, too")
{
    rig_run(1, cancel_waiting, NULL, 20);
}

static int64_t cancel_threads(void *argument)
{
    (void)argument;
    for (int i = 0; i < LIVES; i++) {
        struct life life = {.gate.result = 7};
        if (lives[i] == receive) continue; /* there is no channel without a capability */
        cancel_one(&life, lives[i],
                   JANUS_NURSERY_OPTIONS(.spawn_cap = first_caps.spawn,
                                         .budget_cap = first_caps.budget,
                                         .executor_cap = first_caps.executor,
                                         .backend = JANUS_BACKEND_SET(JANUS_BACKEND_THREADED)));
    }
    return 0;
}

TEST("a child that has a thread of its own is cancelled by its id")
{
    backend_run(2, cancel_threads, NULL);
}

/* Before it begins. */

static int64_t cancel_queued(void *argument)
{
    enum { MANY = 200 };
    janus_nursery n;
    janus_task_id ids[MANY];
    atomic_int    ran = 0;
    int64_t       number;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(janus_spawn_with(&n, count_me, &ran, NULL, &ids[i]), JANUS_OK);
    }
    int expected = 0, cancelled = 0;
    for (int i = 0; i < MANY; i += 2) {
        janus_status status = janus_nursery_cancel_child(&n, ids[i]);
        CHECK(status == JANUS_OK || status == JANUS_STALE); /* it may have run meanwhile */
        if (status == JANUS_OK) cancelled++;
    }
    for (int i = 0; i < MANY; i++) {
        janus_status status = janus_join(&n, ids[i], &number);
        CHECK(status == JANUS_OK || (i % 2 == 0 && status == JANUS_CHILD_CANCELLED));
        if (status == JANUS_OK) expected++;
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(ran, expected);
    CHECK(expected >= MANY / 2);
    if (*(const int *)argument == 1) CHECK_EQ(expected, MANY - cancelled);
    return 0;
}

TEST("a child that is cancelled by its id before it begins never begins, and all others do")
{
    int workers = 1;
    rig_run(1, cancel_queued, &workers, 20);
    workers = 2;
    rig_run(2, cancel_queued, &workers, 20);
    workers = 8;
    rig_run(8, cancel_queued, &workers, 20);
}

/* In place: the owner ends the nursery and runs the child there. */
static int64_t cancel_and_end(void *argument)
{
    janus_nursery       n;
    janus_spawn_options options = {.struct_bytes = sizeof options, .unjoinable = true};
    janus_task_id       id;
    atomic_int          ran = 0;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, count_me, &ran, &options, &id), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_child(&n, id), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_child(&n, id), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(ran, 2);
    return 0;
}

TEST("a child that cannot be joined can be cancelled by its id")
{
    rig_run(1, cancel_and_end, NULL, 50);
}

/* Many, one after another and at once. */

static int64_t crowd(void *argument)
{
    enum { MANY = 300 };
    janus_nursery n;
    janus_task_id ids[MANY];
    struct life   life = {.began = 0};
    int64_t       number;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            CHECK_EQ(janus_spawn_with(&n, wait_for_ever, &life, NULL, &ids[i]), JANUS_OK);
        }
        for (int i = 0; i < MANY; i++) {
            CHECK_EQ(janus_nursery_cancel_child(&n, ids[(i * 7) % MANY]), JANUS_OK);
        }
        for (int i = 0; i < MANY; i++) {
            CHECK_EQ(janus_join(&n, ids[i], &number), JANUS_CHILD_CANCELLED);
        }
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("any number of children can be cancelled one by one, and the nursery goes on")
{
    rig_all(crowd, NULL, 10);
}

/* Exhausted. */

static int64_t use_up(void *argument)
{
    janus_status status = JANUS_OK;
    (void)argument;
    for (int i = 0; i < 25 && status == JANUS_OK; i++) status = janus_check();
    return status;
}

static int64_t cancel_starved(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    janus_exhausted      child;
    janus_task_id        id;
    int64_t              number;
    janus_budget         share = janus_budget_of(10, 0, 0, 0, 0);
    janus_spawn_options  options = {.struct_bytes = sizeof options, .budget = &share};
    (void)argument;
    CHECK_EQ(
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
        JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, use_up, NULL, &options, &id), JANUS_OK);
    while (!janus_nursery_poll_exhausted(&n, &child)) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(child.task, id);
    CHECK_EQ(janus_nursery_cancel_child(&n, id), JANUS_OK);
    CHECK(!janus_nursery_poll_exhausted(&n, &child));
    CHECK_EQ(janus_join(&n, id, &number), JANUS_CHILD_CANCELLED);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_OK);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_SUCCESS);
    return 0;
}

TEST("an exhausted child that is cancelled by its id ends as cancelled")
{
    rig_all(cancel_starved, NULL, 10);
}

/* The right to cancel. */

struct owned {
    janus_nursery *n;
    janus_task_id  id;
};

static int64_t cancel_sibling(void *argument)
{
    struct owned *owned = argument;
    CHECK_EQ(janus_nursery_cancel_child(owned->n, owned->id), JANUS_STATE);
    CHECK_EQ(janus_nursery_cancel_child(owned->n, janus_task_current_id()), JANUS_STATE);
    return 0;
}

static int64_t refuse(void *argument)
{
    struct gate   gate = {0};
    janus_nursery n, inner;
    struct owned  owned = {.n = &n};
    int64_t       number;
    (void)argument;
    CHECK_EQ(janus_nursery_cancel_child(NULL, 1), JANUS_INVALID);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, at_gate, &gate, NULL, &owned.id), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, cancel_sibling, &owned), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_child(&n, 0), JANUS_STALE);
    CHECK_EQ(janus_nursery_cancel_child(&n, owned.id + 1), JANUS_STALE);
    CHECK_EQ(janus_nursery_cancel_child(&n, UINT64_MAX), JANUS_STALE);
    CHECK_EQ(janus_nursery_cancel_child(&n, janus_task_current_id()),
             JANUS_STALE); /* no child of its own */
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_child(&inner, owned.id), JANUS_STALE); /* of another nursery */
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK(rig_wait(&gate.arrived));
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_join(&n, owned.id, &number), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("only the owner cancels a child by its id, and only a child of that nursery that lives")
{
    rig_all(refuse, NULL, 5);
}

TEST("a thread cancels a child of its nursery by its id")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    struct life      life = {.began = 0};
    janus_nursery    root;
    janus_task_id    id;
    int64_t          number;
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&root, await_child, &life, NULL, &id), JANUS_OK);
    while (!atomic_load(&life.began)) rig_spin();
    CHECK_EQ(janus_nursery_cancel_child(&root, id), JANUS_OK);
    CHECK_EQ(janus_join(&root, id, &number), JANUS_CHILD_CANCELLED);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Races: the child ends, waits or starts others meanwhile. */

static int64_t restless(void *argument)
{
    janus_nursery n;
    janus_status  status = JANUS_OK;
    (void)argument;
    for (int i = 0; i < 3 && status == JANUS_OK; i++) {
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        if (janus_spawn(&n, give_way, argument) == JANUS_OK && i < 2) {
            (void)janus_nursery_cancel(&n);
        }
        status = janus_nursery_end(&n, NULL);
        if (status == JANUS_CANCELLED) status = janus_yield();
    }
    return status;
}

static int64_t race(void *argument)
{
    enum { MANY = 16 };
    janus_nursery        n;
    janus_nursery_result result;
    janus_task_id        ids[MANY];
    struct life          life = {.began = 0};
    int64_t              number;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(janus_spawn_with(&n, restless, &life, NULL, &ids[i]), JANUS_OK);
    }
    for (int i = 0; i < MANY; i++) {
        if (i % 3 == 0) JANUS_IGNORE(janus_yield());
        CHECK_EQ(janus_nursery_cancel_child(&n, ids[i]), JANUS_OK);
    }
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(janus_join(&n, ids[i], &number), JANUS_CHILD_CANCELLED);
    }
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_OK);
    CHECK_EQ(result.errors, 0);
    return 0;
}

TEST("children that start, wait and cancel while they are cancelled by their ids all end")
{
    rig_all(race, NULL, RIG_SLOW ? 50 : 500);
}

/* SPDX-License-Identifier: MIT */
/* Arguments of children that never run are dropped, once. A nursery is opened once. Shutdown takes
 * over what a thread leaves behind. */
#include "rig.h"

#include <pthread.h>
#include <string.h>

static void alone(uint32_t workers, janus_entry *entry)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .quiet_panics = true),
                       entry, NULL, NULL),
             JANUS_OK);
}

/* One argument: exactly one of the two happens to it. */
struct parcel {
    atomic_int ran, dropped;
};

static int64_t take_parcel(void *argument)
{
    struct parcel *parcel = argument;
    atomic_fetch_add(&parcel->ran, 1);
    return 0;
}

static void drop_parcel(void *argument)
{
    struct parcel *parcel = argument;
    atomic_fetch_add(&parcel->dropped, 1);
}

enum { PARCELS = 20 };

static int64_t cancel_before(void *argument)
{
    struct parcel parcels[PARCELS];
    janus_nursery n;
    (void)argument;
    memset(parcels, 0, sizeof parcels);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < PARCELS; i++) {
        janus_task_id id;
        CHECK_EQ(janus_spawn_with(&n, take_parcel, &parcels[i],
                                  JANUS_SPAWN_OPTIONS(.drop = drop_parcel), i % 2 ? &id : NULL),
                 JANUS_OK);
    }
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    for (int i = 0; i < PARCELS; i++) {
        CHECK_EQ(atomic_load(&parcels[i].ran) + atomic_load(&parcels[i].dropped), 1);
    }
    return atomic_load(&parcels[PARCELS - 1].ran);
}

static int64_t never_ran(void *argument)
{
    CHECK_EQ(cancel_before(argument), 0); /* the only worker was busy spawning */
    return 0;
}

static int64_t some_ran(void *argument)
{
    for (uint64_t i = 0; i < rig_few(1000); i++) (void)cancel_before(argument);
    return 0;
}

TEST("the argument of a child is dropped once if the child never ran, and not otherwise")
{
    alone(1, never_ran);
    alone(2, some_ran);
    alone(8, some_ran);
}

static int64_t run_all(void *argument)
{
    struct parcel parcel = {0};
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < PARCELS; i++) {
        CHECK_EQ(janus_spawn_with(&n, take_parcel, &parcel,
                                  JANUS_SPAWN_OPTIONS(.drop = drop_parcel), NULL),
                 JANUS_OK);
    }
    CHECK_EQ(janus_nursery_close(&n), JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&n, take_parcel, &parcel, JANUS_SPAWN_OPTIONS(.drop = drop_parcel), NULL),
        JANUS_CLOSED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&parcel.ran), PARCELS);
    CHECK_EQ(atomic_load(&parcel.dropped), 0);
    return 0;
}

TEST("neither a child that ran nor a refused spawn drops the argument")
{
    alone(1, run_all);
    alone(2, run_all);
}

TEST("a scheduler that is stopped drops the arguments of children that never ran")
{
    struct parcel    parcels[PARCELS];
    janus_nursery    root;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    memset(parcels, 0, sizeof parcels);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    for (int i = 0; i < PARCELS; i++) {
        CHECK_EQ(janus_spawn_with(&root, take_parcel, &parcels[i],
                                  JANUS_SPAWN_OPTIONS(.drop = drop_parcel), NULL),
                 JANUS_OK);
    }
    CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_OK);
    for (int i = 0; i < PARCELS; i++) {
        CHECK_EQ(atomic_load(&parcels[i].ran) + atomic_load(&parcels[i].dropped), 1);
    }
    JANUS_IGNORE(janus_nursery_end(&root, NULL));
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Drops that do forbidden things. */

static janus_nursery *_Atomic outside;
static atomic_int dropped_badly;

static void drop_and_panic(void *argument)
{
    (void)argument;
    atomic_fetch_add(&dropped_badly, 1);
    janus_panic("in a drop");
}

static void drop_and_work(void *argument)
{
    (void)argument;
    atomic_fetch_add(&dropped_badly, 1);
    for (;;) JANUS_IGNORE(janus_check());
}

static void drop_and_wait(void *argument)
{
    (void)argument;
    CHECK(janus_sleep(1) < 0);
    CHECK_EQ(janus_nursery_cancel(atomic_load(&outside)), JANUS_STATE);
    atomic_fetch_add(&dropped_badly, 1);
}

static int64_t bad_drops(void *argument)
{
    static janus_drop *const drops[] = {drop_and_panic, drop_and_work, drop_and_wait};
    janus_nursery            n, other;
    struct parcel            parcel = {0};
    (void)argument;
    for (int i = 0; i < 3; i++) {
        atomic_store(&dropped_badly, 0);
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&other, NULL), JANUS_OK); /* not around the child */
        atomic_store(&outside, &other);
        CHECK_EQ(
            janus_spawn_with(&n, take_parcel, &parcel, JANUS_SPAWN_OPTIONS(.drop = drops[i]), NULL),
            JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        while (atomic_load(&dropped_badly) == 0) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_nursery_state_of(&other), JANUS_NURSERY_STATE_OPEN);
        CHECK_EQ(janus_nursery_end(&other, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    }
    CHECK_EQ(atomic_load(&parcel.ran), 0);
    return 0;
}

TEST("a drop that panics or never ends ends alone, and a drop that waits or breaks out is refused")
{
    alone(1, bad_drops);
}

/* Task-local values. */

static int64_t look_at_local(void *argument)
{
    CHECK(*janus_task_local() == argument);
    return 0;
}

static int64_t inherit(void *argument)
{
    static int    value;
    janus_nursery n;
    (void)argument;
    *janus_task_local() = &value;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, look_at_local, &value, JANUS_SPAWN_OPTIONS(.inherit_local = true),
                              NULL),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, look_at_local, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a child has its spawner's task-local pointer only if the spawn asks for it")
{
    alone(1, inherit);
    alone(2, inherit);
}

/* Opening an open one. */

static int64_t reopen(void *argument)
{
    struct parcel parcel = {0};
    janus_nursery outer, inner;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&outer, take_parcel, &parcel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_STATE);
    CHECK_EQ(janus_nursery_open(&outer, JANUS_NURSERY_OPTIONS(.name = "again")), JANUS_STATE);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.name = "inner")), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, take_parcel, &parcel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_STATE);
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_STATE);
    janus_shield_begin();
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_STATE);
    janus_shield_end();
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK); /* it had ended */
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&parcel.ran), 2);
    return 0;
}

TEST("a task that opens an open nursery again is refused, and no child is lost")
{
    alone(1, reopen);
    alone(2, reopen);
}

TEST("a thread that opens an open nursery again is refused, and no child is lost")
{
    struct parcel    parcel = {0};
    janus_nursery    root;
    janus_scheduler *scheduler = rig_open(NULL);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, take_parcel, &parcel), JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_STATE);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&parcel.ran), 1);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* What threads leave behind. */

static void *leave_a_nursery(void *argument)
{
    static struct parcel parcel;
    janus_nursery       *nursery = janus_nursery_create_in(argument);
    CHECK(nursery != NULL);
    CHECK(janus_nursery_spawn(nursery, take_parcel, &parcel) != NULL);
    return NULL;
}

static atomic_int asleep;

/* Says so when the owner is inside its call, which closes the nursery first. */
static int64_t sleep_long(void *argument)
{
    while (janus_nursery_state_of(argument) == JANUS_NURSERY_STATE_OPEN) {
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    atomic_store(&asleep, 1);
    return janus_sleep(UINT64_MAX);
}

static void *await_a_nursery(void *argument)
{
    janus_nursery *nursery = janus_nursery_create_in(argument);
    CHECK(nursery != NULL);
    CHECK(janus_nursery_spawn(nursery, sleep_long, nursery) != NULL);
    CHECK_EQ(janus_nursery_await(nursery).kind, JANUS_RESULT_KIND_CANCELLED);
    return NULL;
}

TEST("shutdown takes over nurseries that other threads made, gone or waiting")
{
    RIG_REAL("other threads");
    janus_scheduler *scheduler = janus_scheduler_create((janus_scheduler_config){0});
    pthread_t        gone, waiting;
    CHECK(scheduler != NULL);
    atomic_store(&asleep, 0);
    CHECK_EQ(pthread_create(&gone, NULL, leave_a_nursery, scheduler), 0);
    CHECK_EQ(pthread_join(gone, NULL), 0);
    CHECK_EQ(pthread_create(&waiting, NULL, await_a_nursery, scheduler), 0);
    while (atomic_load(&asleep) == 0) rig_spin();
    CHECK_EQ(janus_scheduler_shutdown(scheduler), JANUS_OK);
    CHECK_EQ(pthread_join(waiting, NULL), 0);
}

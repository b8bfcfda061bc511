/* SPDX-License-Identifier: MIT */
/* What observers see of a cancelled nursery: it is Cancelled when its last child has ended,
 * whatever its owner does meanwhile. */
#define RIG_TURN_NS JANUS_TURN_NS
#include "rig.h"

/* A nursery, its owner and an observer. */
struct scene {
    janus_nursery n;
    atomic_int    begun; /* the nursery is there, with its children */
    atomic_int    seen;  /* the observer has seen what it waits for */
    int           children;
    bool          computes; /* the owner does so, otherwise it waits */
    janus_event   released;
};

static int64_t cancel_it(void *argument)
{
    struct scene *scene = argument;
    CHECK(rig_wait(&scene->begun));
    CHECK_EQ(janus_nursery_cancel(&scene->n), JANUS_OK);
    return 0;
}

/* The owner does not look at the nursery until the observer has seen its end. */
static int64_t own(void *argument)
{
    struct scene *scene = argument;
    CHECK_EQ(janus_nursery_open(&scene->n, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    for (int i = 0; i < scene->children; i++) {
        CHECK_EQ(janus_spawn(&scene->n, i == 0 ? cancel_it : yield_for_ever,
                             i == 0 ? (void *)scene : NULL),
                 JANUS_OK);
    }
    atomic_store(&scene->begun, 1);
    if (scene->computes) {
        while (!atomic_load(&scene->seen)) rig_spin();
    } else {
        CHECK_EQ(janus_event_wait(&scene->released), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&scene->n, NULL), JANUS_CANCELLED);
    return 0;
}

static void observe(struct scene *scene)
{
    janus_nursery_result result;
    CHECK(rig_wait(&scene->begun));
    uint64_t limit = janus_now_ns() + rig_patience;
    while (janus_nursery_state_of(&scene->n) != JANUS_NURSERY_STATE_CANCELLED) {
        CHECK(janus_now_ns() < limit);
        JANUS_IGNORE(janus_yield());
    }
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(janus_nursery_state_of(&scene->n), JANUS_NURSERY_STATE_CANCELLED);
        JANUS_IGNORE(janus_yield());
    }
    CHECK(janus_nursery_try_await(&scene->n, &result));
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_CANCELLED);
    CHECK_EQ(result.reason, JANUS_CANCEL_REASON_EXPLICIT);
    atomic_store(&scene->seen, 1);
    janus_event_set(&scene->released);
}

static int64_t play(void *argument)
{
    const struct scene *like = argument;
    struct scene        scene = {.children = like->children, .computes = like->computes};
    janus_status        status;
    janus_event_init(&scene.released, JANUS_WAKER_TASKS, NULL);
    JANUS_NURSERY(around, status)
    {
        CHECK_EQ(janus_spawn(around, own, &scene), JANUS_OK);
        observe(&scene);
    }
    CHECK_EQ(status, JANUS_OK);
    return 0;
}

TEST("a nursery is Cancelled for others while its owner waits for something else")
{
    for (int children = 1; children < 5; children++) {
        rig_all(play, &(struct scene){.children = children}, 50);
    }
}

TEST("a nursery is Cancelled for others while its owner computes")
{
    for (int children = 1; children < 5; children++) {
        struct scene like = {.children = children, .computes = true};
        rig_run(2, play, &like, 50);
        rig_run(8, play, &like, 50);
    }
}

/* Of a plain thread. */

static int64_t observe_root(void *argument)
{
    observe(argument);
    return 0;
}

static void play_root(uint32_t workers, int children)
{
    struct scene     scene = {.children = children};
    janus_nursery    others;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
    janus_event_init(&scene.released, JANUS_WAKER_TASKS, NULL);
    CHECK_EQ(janus_nursery_open_in(scheduler, &others, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &scene.n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&others, observe_root, &scene), JANUS_OK);
    for (int i = 0; i < children; i++) {
        CHECK_EQ(janus_spawn(&scene.n, i == 0 ? cancel_it : yield_for_ever,
                             i == 0 ? (void *)&scene : NULL),
                 JANUS_OK);
    }
    atomic_store(&scene.begun, 1);
    while (!atomic_load(&scene.seen)) rig_spin();
    CHECK_EQ(janus_nursery_end(&others, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&scene.n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a thread's nursery is Cancelled for others while the thread does something else")
{
    for (uint64_t i = 0; i < rig_few(50); i++) {
        play_root(1, 1 + (int)i % 4);
        play_root(2, 1 + (int)i % 4);
    }
}

/* The owner goes on starting children while the nursery is cancelled. */

struct race {
    janus_nursery n;
    janus_token  *token;
    atomic_int    begun, seen, late, over;
};

/* A child that has not begun: it ends after an observer saw the end of all. */
static void drop(void *argument)
{
    struct race *race = argument;
    if (atomic_load(&race->seen)) atomic_store(&race->late, 1);
}

static int64_t run_or_drop(void *argument)
{
    drop(argument);
    return 0;
}

static int64_t start_many(void *argument)
{
    struct race *race = argument;
    janus_status with = JANUS_OK, plain = JANUS_OK;
    CHECK_EQ(janus_nursery_open(&race->n, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_on(&race->n, race->token), JANUS_OK);
    atomic_store(&race->begun, 1);
    while (!atomic_load(&race->seen) || with == JANUS_OK || plain == JANUS_OK) {
        plain = janus_spawn(&race->n, nothing, NULL);
        with =
            janus_spawn_with(&race->n, run_or_drop, race, JANUS_SPAWN_OPTIONS(.drop = drop), NULL);
        CHECK(plain == JANUS_OK || plain == JANUS_CLOSED);
        CHECK(with == JANUS_OK || with == JANUS_CLOSED);
        if (plain == JANUS_CLOSED) CHECK_EQ(with, JANUS_CLOSED);
        rig_spin();
    }
    while (!atomic_load(&race->over)) JANUS_IGNORE(janus_yield());
    CHECK_EQ(janus_nursery_end(&race->n, NULL), JANUS_CANCELLED);
    return 0;
}

static int64_t watch(void *argument)
{
    struct race        *race = argument;
    janus_nursery_state last = JANUS_NURSERY_STATE_OPEN;
    CHECK(rig_wait(&race->begun));
    for (int after = 0; after < 100;) {
        janus_nursery_state state = janus_nursery_state_of(&race->n);
        CHECK(state >= last);
        if (state == JANUS_NURSERY_STATE_CANCELLED) {
            atomic_store(&race->seen, 1);
            after++;
        }
        last = state;
        JANUS_IGNORE(janus_yield());
    }
    return 0;
}

static int64_t race_them(void *argument)
{
    struct race  race = {.begun = 0};
    janus_status status, watched = JANUS_OK;
    (void)argument;
    CHECK_EQ(janus_token_create(&race.token), JANUS_OK);
    JANUS_NURSERY(around, status)
    {
        CHECK_EQ(janus_spawn(around, start_many, &race), JANUS_OK);
        JANUS_NURSERY(watchers, watched)
        {
            CHECK_EQ(janus_spawn(watchers, watch, &race), JANUS_OK);
            CHECK_EQ(janus_spawn(watchers, watch, &race), JANUS_OK);
            CHECK(rig_wait(&race.begun));
            for (int i = 0; i < 3; i++) CHECK_EQ(janus_yield(), JANUS_OK);
            CHECK_EQ(janus_token_cancel(race.token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
        }
        atomic_store(&race.over, 1);
    }
    janus_token_release(race.token);
    CHECK_EQ(watched, JANUS_OK);
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(atomic_load(&race.late), 0);
    return 0;
}

TEST("no child ends after an observer saw its nursery Cancelled, and the state never goes back")
{
    rig_run(2, race_them, NULL, RIG_SLOW ? 50 : 500);
    rig_run(8, race_them, NULL, RIG_SLOW ? 20 : 100);
}

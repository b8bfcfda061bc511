/* SPDX-License-Identifier: MIT */
/* Calls on helper threads: cancelled before they begin, and while they run. */
#include "io/io.h"
#include "wire.h"

struct call {
    atomic_int    begun, go, ended; /* the function on the helper */
    atomic_int    returned;
    janus_task_id id;
};

static void hold(void *argument)
{
    struct call *call = argument;
    uint64_t     limit = janus_now_ns() + rig_patience;
    atomic_store(&call->begun, 1);
    while (!atomic_load(&call->go)) {
        rig_spin();
        CHECK(janus_now_ns() < limit);
    }
    atomic_store(&call->ended, 1);
}

static int64_t call_helper(void *argument)
{
    struct call *call = argument;
    CHECK_EQ(jrt_io_help(hold, call), JANUS_OK);
    CHECK_EQ(atomic_load(&call->ended), 1); /* the helper used the caller's frame until then */
    atomic_store(&call->returned, 1);
    return 0;
}

/* Lets the other tasks go on. */
static void let_others(void)
{
    janus_shield_begin();
    for (int i = 0; i < 200; i++) JANUS_IGNORE(janus_yield());
    janus_shield_end();
}

static int64_t cancel_twice(void *argument)
{
    struct call   call = {.begun = 0};
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, call_helper, &call, NULL, &call.id), JANUS_OK);
    CHECK(rig_wait(&call.begun));
    CHECK_EQ(janus_nursery_cancel_child(&n, call.id), JANUS_OK);
    let_others();
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    let_others();
    CHECK_EQ(atomic_load(&call.returned), 0);
    atomic_store(&call.go, 1);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK_EQ(atomic_load(&call.returned), 1);
    return 0;
}

TEST("a call that a helper has begun outlasts a second cancel of its task")
{
    rig_all(cancel_twice, NULL, 20);
}

/* SPDX-License-Identifier: MIT */
/* Hidden nurseries: no call shows them, and none takes them for the innermost. */
#include "rig.h"

#include <janusrt/abi.h>
#include <janusrt/async.h>

static janus_task_info self(void)
{
    janus_task_info info = JANUS_TASK_INFO();
    CHECK_EQ(janus_task_inspect_current(&info), JANUS_OK);
    return info;
}

static janus_nursery *parent_of(janus_nursery *nursery)
{
    janus_nursery_info info = JANUS_NURSERY_INFO();
    CHECK_EQ(janus_nursery_inspect(nursery, &info), JANUS_OK);
    return info.parent;
}

static int64_t do_nothing(void *argument)
{
    (void)argument;
    return 0;
}

static int64_t give_nothing(void *argument, void *value)
{
    (void)argument;
    (void)value;
    return 0;
}

/* A child of a hidden nursery. */
static int64_t look_from_below(void *argument)
{
    janus_nursery n;
    CHECK(self().nursery == NULL);
    CHECK_STR(self().nursery_name, argument);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK(parent_of(&n) == NULL);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t hide(void *argument)
{
    janus_nursery   seen, hidden, inside;
    janus_async     call;
    janus_task_info info;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&hidden, JANUS_NURSERY_OPTIONS(.hidden = true, .name = "dark")),
             JANUS_OK);
    info = self();
    CHECK(info.owned == NULL && info.nurseries == 0);
    CHECK_EQ(janus_scheduler_spawn(do_nothing, NULL), JANUS_NO_NURSERY);
    CHECK_EQ(janus_async_start(NULL, &call, give_nothing, NULL, NULL), JANUS_NO_NURSERY);
    CHECK_EQ(janus_spawn(&hidden, look_from_below, "dark"), JANUS_OK); /* by its handle */
    CHECK_EQ(janus_nursery_end(&hidden, NULL), JANUS_OK);

    CHECK_EQ(janus_nursery_open(&seen, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&hidden, JANUS_NURSERY_OPTIONS(.hidden = true)), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inside, NULL), JANUS_OK);
    CHECK(parent_of(&inside) == &seen && parent_of(&hidden) == &seen);
    info = self();
    CHECK(info.owned == &inside && info.nurseries == 2);
    CHECK_EQ(janus_nursery_end(&inside, NULL), JANUS_OK);
    CHECK(self().owned == &seen);
    CHECK_EQ(janus_scheduler_spawn(do_nothing, NULL), JANUS_OK); /* in `seen` */
    CHECK_EQ(janus_nursery_end(&hidden, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&seen, NULL), JANUS_OK);
    return 0;
}

TEST("no inspection shows a hidden nursery, and no call starts a task in it")
{
    rig_all(hide, NULL, 20);
}

static atomic_int waiting, go;

static int64_t wait_to_go(void *argument)
{
    CHECK(rig_wait(argument));
    return 0;
}

static int64_t own_hidden(void *argument)
{
    janus_nursery n, inside;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.hidden = true)), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inside, JANUS_NURSERY_OPTIONS(.hidden = true)), JANUS_OK);
    CHECK_EQ(janus_spawn(&inside, wait_to_go, &go), JANUS_OK);
    atomic_store(&waiting, 1);
    CHECK_EQ(janus_nursery_end(&inside, NULL), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

static int64_t inspect_owner(void *argument)
{
    janus_task_info info = JANUS_TASK_INFO();
    janus_task_id   id;
    janus_nursery   n;
    (void)argument;
    atomic_store(&waiting, 0);
    atomic_store(&go, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, own_hidden, NULL, NULL, &id), JANUS_OK);
    CHECK(rig_wait(&waiting));
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(janus_task_inspect(&n, id, &info), JANUS_OK);
        CHECK(info.owned == NULL && info.nurseries == 0);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    atomic_store(&go, 1);
    return janus_nursery_end(&n, NULL);
}

TEST("an inspection of another task does not show its hidden nurseries")
{
    rig_all(inspect_owner, NULL, 20);
}

/* SPDX-License-Identifier: MIT */
/* Inspection of a task, a nursery and a worker, and the right to it. */
#include "look/peek.h"
#include "rig.h"
#include "task/task.h"
#include "task/worker.h"

#include <string.h>

static janus_task_info task_of(janus_nursery *nursery, janus_task_id id)
{
    janus_task_info info = JANUS_TASK_INFO();
    CHECK_EQ(janus_task_inspect(nursery, id, &info), JANUS_OK);
    CHECK_EQ(info.struct_bytes, sizeof info);
    CHECK_EQ(info.id, id);
    return info;
}

static janus_task_info self(void)
{
    janus_task_info info = JANUS_TASK_INFO();
    CHECK_EQ(janus_task_inspect_current(&info), JANUS_OK);
    return info;
}

static janus_nursery_info look(janus_nursery *nursery)
{
    janus_nursery_info info = JANUS_NURSERY_INFO();
    CHECK_EQ(janus_nursery_inspect(nursery, &info), JANUS_OK);
    return info;
}

/* Under sanitizers stacks are larger than what is asked for. */
static bool fits(size_t given, size_t asked)
{
    return JRT_ASAN || JRT_TSAN ? given >= asked : given == asked;
}

/* Yields until a child is in that state. */
static janus_task_info wait_for(janus_nursery *nursery, janus_task_id id, janus_task_state state)
{
    uint64_t        limit = janus_now_ns() + rig_patience;
    janus_task_info info = task_of(nursery, id);
    while (info.state != state && janus_now_ns() < limit) {
        CHECK_EQ(janus_yield(), JANUS_OK);
        info = task_of(nursery, id);
    }
    CHECK_EQ(info.state, state);
    return info;
}

/* Opens a nursery in used memory. An inspection shows no field that nobody has initialised. */

static int64_t look_at_once(void *argument)
{
    janus_nursery n;
    memset(&n, 0xab, sizeof n);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    janus_nursery_info info = look(&n);
    CHECK_EQ(info.max_children, 0);
    CHECK_EQ(info.children, 0);
    CHECK_EQ(info.errors, 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return argument == NULL ? 0 : -1;
}

TEST("a nursery in used memory shows nothing of the old content")
{
    rig_run(1, look_at_once, NULL, 1);
}

/* A task. */

static int64_t all_of_a_task(void *argument)
{
    (void)argument;
    static const janus_site site = {"there.c", 7};
    janus_nursery           n;
    janus_task_id           id;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = "home")), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, sleep_an_hour, NULL,
                              JANUS_SPAWN_OPTIONS(.name = "sleeper", .site = &site,
                                                  .priority = JANUS_PRIORITY_LOW,
                                                  .stack_bytes = 512 * 1024),
                              &id),
             JANUS_OK);
    janus_task_info info = wait_for(&n, id, JANUS_TASK_STATE_BLOCKED);
    CHECK_STR(info.wait, "the clock");
    CHECK_STR(info.name, "sleeper");
    CHECK_STR(info.site.file, "there.c");
    CHECK_EQ(info.site.line, 7);
    CHECK_EQ(info.priority, JANUS_PRIORITY_LOW);
    CHECK(fits(info.stack_bytes, 512 * 1024));
    CHECK(info.nursery == &n);
    CHECK_STR(info.nursery_name, "home");
    CHECK_EQ(info.parent, janus_task_current_id());
    CHECK_EQ(info.nurseries, 0);
    CHECK(info.owned == NULL);
    CHECK_EQ(info.cancel, JANUS_CANCEL_REASON_NONE);
    CHECK(info.worker < jrt_worker_self()->scheduler->worker_count);
    CHECK(info.state_ns > 0 && !info.at_most);
    CHECK(!info.has_result);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(task_of(&n, id).cancel, JANUS_CANCEL_REASON_EXPLICIT);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CANCELLED);
    info = task_of(&n, id);
    CHECK_EQ(info.state, JANUS_TASK_STATE_CANCELLED);
    CHECK(info.has_result);
    CHECK_EQ(info.result, JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("every field of a task can be inspected while it waits and after its end")
{
    rig_all(all_of_a_task, NULL, RIG_SLOW ? 10 : 100);
}

static int64_t defaults(void *argument)
{
    (void)argument;
    janus_nursery n, small;
    janus_task_id plain, own;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK(fits(look(&n).stack_bytes, janus_profile_stack_bytes(JANUS_PROFILE_SERVICE)));
    CHECK_STR(look(&n).name, "nursery");
    CHECK_EQ(janus_nursery_open(&small, JANUS_NURSERY_OPTIONS(.stack_bytes = 64 * 1024)), JANUS_OK);
    CHECK(fits(look(&small).stack_bytes, 64 * 1024));
    CHECK(look(&small).stack_bytes < look(&n).stack_bytes);
    CHECK_EQ(janus_spawn_with(&small, nothing, NULL, NULL, &plain), JANUS_OK);
    CHECK_EQ(janus_spawn_with(
                 &small, nothing, NULL,
                 JANUS_SPAWN_OPTIONS(.stack_bytes = 512 * 1024, .priority = JANUS_PRIORITY_HIGH),
                 &own),
             JANUS_OK);
    CHECK_EQ(task_of(&small, plain).stack_bytes, look(&small).stack_bytes);
    CHECK_EQ(task_of(&small, plain).priority, JANUS_PRIORITY_NORMAL);
    CHECK_STR(task_of(&small, plain).name, "task");
    CHECK(fits(task_of(&small, own).stack_bytes, 512 * 1024));
    CHECK_EQ(task_of(&small, own).priority, JANUS_PRIORITY_HIGH);
    CHECK_EQ(janus_nursery_end(&small, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a child without options has the profile's stack and NORMAL priority")
{
    rig_all(defaults, NULL, 5);
}

/* States. */

static int64_t all_states(void *argument)
{
    (void)argument;
    janus_nursery n, m;
    janus_task_id held, queued, sleeper, quick, skipped;
    struct gate   gate = {0};
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, sleep_an_hour, NULL, NULL, &sleeper), JANUS_OK);
    CHECK_EQ(wait_for(&n, sleeper, JANUS_TASK_STATE_BLOCKED).has_result, false);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, &quick), JANUS_OK);
    CHECK(wait_for(&n, quick, JANUS_TASK_STATE_COMPLETED).has_result);
    CHECK_EQ(janus_spawn_with(&n, keep_worker, &gate, NULL, &held), JANUS_OK);
    /* The other worker runs it: this one is free. */
    while (!atomic_load(&gate.arrived)) rig_spin();
    janus_task_info info = task_of(&n, held);
    CHECK_EQ(info.state, JANUS_TASK_STATE_RUNNING);
    CHECK(info.worker < 2 && info.worker != self().worker);
    CHECK_EQ(janus_nursery_open(&m, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&m, nothing, NULL, NULL, &queued), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&m, nothing, NULL, NULL, &skipped), JANUS_OK);
    CHECK_EQ(task_of(&m, queued).state, JANUS_TASK_STATE_READY);
    CHECK_EQ(task_of(&m, queued).worker, UINT32_MAX);
    CHECK_EQ(janus_nursery_cancel(&m), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&m, NULL), JANUS_CANCELLED);
    CHECK_EQ(task_of(&m, skipped).state, JANUS_TASK_STATE_CANCELLED);
    CHECK_EQ(task_of(&m, skipped).result, JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_end(&m, NULL), JANUS_CANCELLED);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("ready, running, blocked, completed and cancelled can be seen from outside")
{
    rig_run(2, all_states, NULL, RIG_SLOW ? 10 : 100);
}

static int64_t time_in_state(void *argument)
{
    (void)argument;
    /* A tick of the kernel is 10 ms at most, but the kernel may be late with it. */
    const uint64_t tick = 100 * rig_ms, enough = 300 * rig_ms;
    janus_nursery  n;
    janus_task_id  id;
    uint64_t       before = janus_now_ns();
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, sleep_an_hour, NULL, NULL, &id), JANUS_OK);
    janus_task_info info = wait_for(&n, id, JANUS_TASK_STATE_BLOCKED);
    uint64_t        blocked = janus_now_ns(), last = 0;
    while (info.state_ns < enough) {
        CHECK(info.state_ns >= last);
        last = info.state_ns;
        CHECK(info.state_ns <= janus_now_ns() - before + tick);
        CHECK_EQ(janus_yield(), JANUS_OK);
        uint64_t least = janus_now_ns() - blocked;
        info = task_of(&n, id);
        CHECK(info.state_ns + tick >= least);
    }
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CANCELLED);
    info = task_of(&n, id);
    CHECK(info.at_most && info.state_ns >= enough);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("the time a task has been blocked is right to some ticks, and afterwards a bound")
{
    rig_run(2, time_in_state, NULL, 2);
}

/* Results, and the right to see them. */

static int64_t panic_now(void *argument)
{
    (void)argument;
    janus_panic("on purpose");
}

static int64_t forty_two(void *argument)
{
    (void)argument;
    return 42;
}

static int64_t results(void *argument)
{
    (void)argument;
    janus_nursery n;
    janus_task_id good, bad, panics;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, forty_two, NULL, NULL, &good), JANUS_OK);
    CHECK_EQ(wait_for(&n, good, JANUS_TASK_STATE_COMPLETED).result, 42);
    CHECK_EQ(janus_spawn_with(&n, minus_seven, NULL, NULL, &bad), JANUS_OK);
    CHECK_EQ(wait_for(&n, bad, JANUS_TASK_STATE_COMPLETED).result, -7);
    CHECK_EQ(janus_spawn_with(&n, panic_now, NULL, NULL, &panics), JANUS_OK);
    CHECK_EQ(wait_for(&n, panics, JANUS_TASK_STATE_COMPLETED).panic, JANUS_PANIC_KIND_EXPLICIT);
    CHECK_EQ(task_of(&n, bad).panic, JANUS_PANIC_KIND_NONE);
    janus_nursery_info info = look(&n);
    CHECK_EQ(info.errors, 2);
    CHECK_EQ(info.error, -7);
    CHECK_EQ(info.error_task, bad);
    CHECK_EQ(info.policy, JANUS_POLICY_WAIT_ALL);
    janus_task_info gone = JANUS_TASK_INFO();
    CHECK_EQ(janus_join(&n, good, NULL), JANUS_OK);
    CHECK_EQ(janus_task_inspect(&n, good, &gone), JANUS_STALE);
    CHECK_EQ(janus_task_inspect(&n, good + 1, &gone), JANUS_STALE); /* the record's next name */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("a child's result or panic can be inspected until it is joined")
{
    rig_all(results, NULL, RIG_SLOW ? 10 : 100);
}

static int64_t cancelled_around(void *argument)
{
    struct gate   gate = {0};
    janus_nursery around, within;
    janus_task_id child;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&around, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&within, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&within, at_gate, &gate, NULL, &child), JANUS_OK);
    CHECK(rig_wait(&gate.arrived)); /* it never leaves the CPU to wait */
    CHECK_EQ(janus_nursery_cancel(&around), JANUS_OK);
    CHECK_EQ(task_of(&within, child).cancel, JANUS_CANCEL_REASON_PARENT);
    atomic_store(&gate.open, 1);
    JANUS_IGNORE(janus_nursery_end(&within, NULL));
    CHECK_EQ(janus_nursery_end(&around, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a child of an inner nursery shows that the nursery around it was cancelled")
{
    rig_all(cancelled_around, NULL, 2);
}

struct secret {
    janus_nursery *nursery;
    janus_task_id  id;
};

static int64_t pry(void *argument)
{
    struct secret     *secret = argument;
    janus_task_info    task = {.struct_bytes = sizeof task, .result = 77};
    janus_nursery_info nursery = JANUS_NURSERY_INFO();
    int64_t            result = 77;
    CHECK_EQ(janus_task_inspect(secret->nursery, secret->id, &task), JANUS_STATE);
    CHECK_EQ(janus_nursery_inspect(secret->nursery, &nursery), JANUS_STATE);
    CHECK_EQ(janus_join(secret->nursery, secret->id, &result), JANUS_STATE);
    janus_status ended;
    JANUS_NURSERY(mine, ended)
    {
        CHECK_EQ(janus_task_inspect(mine, secret->id, &task), JANUS_STALE);
        CHECK_EQ(janus_join(mine, secret->id, &result), JANUS_STALE);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK(task.result == 77 && result == 77);
    return 0;
}

static int64_t keep_secret(void *argument)
{
    (void)argument;
    janus_nursery n, other;
    struct secret secret = {.nursery = &n};
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&other, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, forty_two, NULL, NULL, &secret.id), JANUS_OK);
    (void)wait_for(&n, secret.id, JANUS_TASK_STATE_COMPLETED);
    CHECK_EQ(janus_spawn(&other, pry, &secret), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&other, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, pry, &secret), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("siblings, strangers and other nurseries cannot inspect a child's result")
{
    rig_all(keep_secret, NULL, RIG_SLOW ? 10 : 100);
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    janus_nursery    root;
    struct secret    secret = {.nursery = &root};
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&root, forty_two, NULL, NULL, &secret.id), JANUS_OK);
    while (!task_of(&root, secret.id).has_result) continue; /* this thread may */
    CHECK_EQ(task_of(&root, secret.id).result, 42);
    rig_do(scheduler, pry, &secret);
    CHECK_EQ(look(&root).owner, 0);
    CHECK(look(&root).parent == NULL);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Both ways. */

struct family {
    janus_nursery *outer;
    janus_task_id  father, son;
    janus_nursery *inner;
    struct gate    gate;
    atomic_int     inside;
};

static int64_t grandchild(void *argument)
{
    struct family  *family = argument;
    janus_task_info me = self();
    CHECK(me.nursery == family->inner);
    CHECK_EQ(me.parent, family->son);
    atomic_fetch_add(&family->inside, 1);
    return janus_sleep(3600 * 1000 * rig_ms);
}

static int64_t son(void *argument)
{
    struct family *family = argument;
    janus_nursery  n;
    CHECK_EQ(self().nurseries, 0);
    CHECK(self().owned == NULL);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = "inner")), JANUS_OK);
    family->inner = &n;
    family->son = janus_task_current_id();
    CHECK_EQ(look(&n).children, 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, grandchild, family), JANUS_OK);
    CHECK_EQ(look(&n).children, 3);
    janus_task_info me = self();
    CHECK_EQ(me.id, janus_task_current_id());
    CHECK_EQ(me.state, JANUS_TASK_STATE_RUNNING);
    CHECK(me.nursery == family->outer);
    CHECK_EQ(me.parent, family->father);
    CHECK(me.owned == &n);
    CHECK_EQ(me.nurseries, 1);
    CHECK_EQ(look(&n).owner, me.id);
    CHECK(look(&n).parent == family->outer);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK_EQ(self().nurseries, 0);
    return JANUS_CANCELLED;
}

static int64_t father(void *argument)
{
    (void)argument;
    janus_nursery n;
    struct family family = {.outer = &n, .father = janus_task_current_id()};
    janus_task_id id;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = "outer")), JANUS_OK);
    CHECK_EQ(look(&n).owner, family.father);
    CHECK(look(&n).parent == self().nursery);
    CHECK_EQ(janus_spawn_with(&n, son, &family, NULL, &id), JANUS_OK);
    while (atomic_load(&family.inside) < 3) CHECK_EQ(janus_yield(), JANUS_OK);
    /* The three sleep. Their parent waits for them, or lies below one of them. */
    janus_task_info info = wait_for(&n, id, JANUS_TASK_STATE_BLOCKED);
    CHECK_STR(info.wait, "its children");
    CHECK(info.owned == family.inner);
    CHECK_EQ(info.nurseries, 1);
    CHECK_EQ(look(&n).children, 1); /* not the grandchildren */
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(look(&n).reason, JANUS_CANCEL_REASON_EXPLICIT);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(look(&n).state, JANUS_NURSERY_STATE_CANCELLED);
    CHECK_EQ(look(&n).children, 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("inspection leads from a task to its nursery, and from a nursery to its owner and parent")
{
    rig_all(father, NULL, RIG_SLOW ? 10 : 100);
}

static int64_t sixty_four_deep(void *argument)
{
    enum { DEPTH = 64 };
    (void)argument;
    static janus_nursery nest[DEPTH]; /* one user at a time */
    janus_nursery       *around = self().nursery;
    for (int i = 0; i < DEPTH; i++) {
        CHECK_EQ(janus_nursery_open(&nest[i], NULL), JANUS_OK);
        CHECK(look(&nest[i]).parent == around);
        CHECK_EQ(look(&nest[i]).owner, janus_task_current_id());
        CHECK_EQ(self().nurseries, i + 1);
        CHECK(self().owned == &nest[i]);
        around = &nest[i];
    }
    for (int i = DEPTH - 1; i >= 0; i--) {
        if (i > 0) CHECK_EQ(janus_nursery_end(&nest[0], NULL), JANUS_STATE);
        CHECK_EQ(janus_nursery_end(&nest[i], NULL), JANUS_OK);
        CHECK_EQ(self().nurseries, i);
    }
    return 0;
}

TEST("a task may have 64 nurseries open, each the parent of the next, ended in that order only")
{
    rig_all(sixty_four_deep, NULL, 3);
}

/* A nursery's children. */

static int64_t see_myself(void *argument)
{
    struct jrt_task *task = jrt_worker_self()->current;
    CHECK(jrt_peek_children(task->nursery) >= 1);
    atomic_fetch_add((atomic_int *)argument, 1);
    return 0;
}

static int64_t count_children(void *argument)
{
    (void)argument;
    janus_nursery n;
    atomic_int    seen = 0;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.max_children = 200)), JANUS_OK);
    CHECK_EQ(look(&n).state, JANUS_NURSERY_STATE_OPEN);
    CHECK_EQ(look(&n).children, 0);
    CHECK_EQ(look(&n).max_children, 200);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(janus_spawn(&n, see_myself, &seen), JANUS_OK);
        CHECK(look(&n).children <= (uint64_t)i + 1);
    }
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
    CHECK_EQ(look(&n).state, JANUS_NURSERY_STATE_CLOSED);
    CHECK_EQ(look(&n).children, 0);
    CHECK_EQ(seen, 100);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a child is in its nursery's count before it begins and until it has ended")
{
    rig_all(count_children, NULL, RIG_SLOW ? 10 : 100);
}

/* Arguments. */

static int64_t sizes(void *argument)
{
    (void)argument;
    janus_nursery   n;
    janus_task_id   id;
    janus_task_info info;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, &id), JANUS_OK);
    for (size_t bytes = 0; bytes <= sizeof info + 64; bytes += sizeof(size_t)) {
        union {
            janus_task_info info;
            unsigned char   bytes[sizeof(janus_task_info) + 64];
        } room;
        memset(&room, 0xee, sizeof room);
        room.info.struct_bytes = bytes;
        bool sane = bytes > 0 && bytes <= sizeof info;
        CHECK_EQ(janus_task_inspect(&n, id, &room.info), sane ? JANUS_OK : JANUS_INVALID);
        CHECK_EQ(room.info.struct_bytes, bytes);
        size_t filled = sane ? bytes : sizeof(size_t);
        for (size_t i = filled; i < sizeof room; i++) CHECK_EQ(room.bytes[i], 0xee);
    }
    CHECK_EQ(janus_task_inspect(NULL, id, &info), JANUS_INVALID);
    CHECK_EQ(janus_nursery_inspect(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_nursery_inspect(&n, &(janus_nursery_info){0}), JANUS_INVALID);
    CHECK_EQ(janus_task_inspect_current(&(janus_task_info){0}), JANUS_INVALID);
    CHECK_EQ(janus_task_inspect_current(NULL), JANUS_INVALID);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a shorter struct is filled as far as it goes, and a bad size is refused")
{
    rig_run(1, sizes, NULL, 1);
    janus_task_info   info = JANUS_TASK_INFO();
    janus_worker_info worker = JANUS_WORKER_INFO();
    janus_scheduler  *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    CHECK_EQ(janus_task_inspect_current(&info), JANUS_STATE);
    CHECK_EQ(janus_worker_inspect(NULL, 0, &worker), JANUS_INVALID);
    CHECK_EQ(janus_worker_inspect(scheduler, 0, NULL), JANUS_INVALID);
    CHECK_EQ(janus_worker_inspect(scheduler, 2, &worker), JANUS_INVALID);
    CHECK_EQ(janus_worker_inspect(scheduler, 0, &(janus_worker_info){0}), JANUS_INVALID);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* While everything moves. */

static int64_t restless(void *argument)
{
    intptr_t kind = (intptr_t)argument;
    if (kind % 4 == 1) return janus_yield();
    if (kind % 4 == 2) return janus_sleep(1000);
    if (kind % 4 == 3) {
        janus_status ended;
        JANUS_NURSERY(n, ended)
        {
            for (intptr_t i = 0; i < 2; i++) CHECK_EQ(janus_spawn(n, restless, (void *)i), 0);
        }
        CHECK_EQ(ended, JANUS_OK);
    }
    return kind;
}

static int64_t watch_children(void *argument)
{
    enum { CHILDREN = 16 };
    janus_nursery n;
    janus_task_id ids[CHILDREN];
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (intptr_t i = 0; i < CHILDREN; i++) {
        CHECK_EQ(janus_spawn_with(&n, restless, (void *)i, NULL, &ids[i]), JANUS_OK);
    }
    for (int ended = 0; ended < CHILDREN;) {
        ended = 0;
        for (int i = 0; i < CHILDREN; i++) {
            janus_task_info info = task_of(&n, ids[i]);
            CHECK(info.nursery == &n);
            CHECK_EQ(info.has_result, janus_task_is_finished(info.state));
            if (info.has_result) CHECK_EQ(info.result, i % 4 == 0 || i % 4 == 3 ? i : 0);
            ended += info.has_result;
        }
        CHECK(look(&n).children <= CHILDREN);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    for (int i = 0; i < CHILDREN; i++) CHECK_EQ(janus_join(&n, ids[i], NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("children may be inspected while they run, wait and end")
{
    rig_all(watch_children, NULL, RIG_SLOW ? 30 : 1000);
}

/* SPDX-License-Identifier: MIT */
/*
 * Capabilities of tasks: the authority, minting, delegating, revoking. What they allow is in
 * terms_test; tables by themselves are in tests/cap.
 */
#include "caps.h"

#include <string.h>

/* The authority. */

static int64_t take_none(void *argument)
{
    janus_authority *root = NULL;
    CHECK_EQ(janus_authority_take(argument, &root), JANUS_NO_AUTHORITY);
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_NO_AUTHORITY);
    CHECK(root == NULL);
    return 0;
}

/* CAP:12.1.1/create, C31. */
TEST("the maker of a scheduler takes the authority once, before it is started")
{
    janus_scheduler *scheduler;
    janus_authority *root = NULL, *again = NULL;
    CHECK_EQ(janus_scheduler_create_with(NULL, &scheduler), JANUS_OK);
    CHECK_EQ(janus_authority_take(scheduler, NULL), JANUS_INVALID);
    CHECK_EQ(janus_authority_take(scheduler, &root), JANUS_OK);
    CHECK(root != NULL);
    CHECK_EQ(janus_authority_take(scheduler, &again), JANUS_NO_AUTHORITY);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    CHECK_EQ(janus_authority_take(scheduler, &again), JANUS_NO_AUTHORITY);
    rig_do(scheduler, take_none, scheduler);
    CHECK(again == NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* CAP:12.1.1/create. */
TEST("nobody gets the authority of a running scheduler, inside or outside")
{
    janus_scheduler *scheduler = rig_open(NULL);
    janus_authority *root = NULL;
    CHECK_EQ(janus_authority_take(scheduler, &root), JANUS_NO_AUTHORITY);
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_NO_AUTHORITY);
    rig_do(scheduler, take_none, scheduler);
    CHECK(root == NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static int64_t first_takes(void *argument)
{
    janus_authority *root = NULL;
    janus_nursery    n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 20; i++) CHECK_EQ(janus_spawn(&n, take_none, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    return take_none(NULL);
}

/* CAP:12.1.1/create. */
TEST("with janus_run the first task takes the authority, and nobody else, before or after")
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        CHECK_EQ(
            janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), first_takes, NULL, NULL),
            JANUS_OK);
    }
}

static int64_t mint_nothing(void *argument)
{
    const janus_cap_limits limits = {.spawn = {.max_tasks = 1}};
    const janus_cap        none = {0};
    janus_cap              cap = none;
    (void)argument;
    CHECK_EQ(janus_cap_mint(NULL, 0,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
                                            .rights = JANUS_RIGHTS_ALL, .limits = &limits),
                            &cap),
             JANUS_NO_AUTHORITY);
    CHECK(memcmp(&cap, &none, sizeof cap) == 0);
    return 0;
}

/* CAP:12.1.1/create. */
TEST("without the authority no capability is minted") { rig_all(mint_nothing, NULL, 1); }

static int64_t use_others(void *argument)
{
    janus_cap    *strange = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = *strange)),
             JANUS_CAP_FORGED);
    CHECK_EQ(janus_cap_check(*strange, JANUS_CAP_KIND_SPAWN, 0), JANUS_CAP_FORGED);
    return 0;
}

static int64_t mint_for_other(void *argument)
{
    janus_authority *other = argument;
    janus_cap        strange = caps_spawn(other, 3);
    (void)caps_spawn(caps_root(), 3); /* a handle in the same place here */
    return use_others(&strange);
}

/* CAP:12.1.1/forge. */
TEST("a capability minted with another scheduler's authority is refused here")
{
    janus_scheduler *other;
    janus_authority *root;
    CHECK_EQ(janus_scheduler_create_with(NULL, &other), JANUS_OK);
    CHECK_EQ(janus_authority_take(other, &root), JANUS_OK);
    CHECK_EQ(janus_run(NULL, mint_for_other, root, NULL), JANUS_OK);
    CHECK_EQ(caps_stats(other).minted, 1);
    CHECK_EQ(caps_stats(other).refused_forged, 0);
    CHECK_EQ(janus_scheduler_destroy(other), JANUS_OK);
}

/* Reading. */

/* `bytes`: size of the union's member that counts. */
static void check_read(const janus_authority *root, janus_cap_kind kind,
                       const janus_cap_limits *limits, size_t bytes)
{
    janus_cap      cap = caps_mint(root, kind, JANUS_RIGHTS_ALL, limits);
    janus_cap_info info = JANUS_CAP_INFO();
    CHECK_EQ(janus_cap_inspect(cap, &info), JANUS_OK);
    CHECK_EQ(info.kind, kind);
    CHECK_EQ(info.rights, janus_cap_kind_rights(kind));
    CHECK_EQ(info.delegation_depth, 0);
    CHECK_EQ(info.depth, 0);
    CHECK(memcmp(&info.limits, limits, bytes) == 0);
}

static int64_t read_all(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits spawn = {.spawn = {50, {10000, 1 << 20, 1, 2, 3}}};
    const janus_cap_limits budget = {.budget = {1, 2, 3, 4, 5}};
    const janus_cap_limits channel = {.channel = {100, 7}};
    const janus_cap_limits executor = {.executor = {JANUS_BACKEND_SET(JANUS_BACKEND_THREADED) |
                                                    JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE)}};
    (void)argument;
    check_read(root, JANUS_CAP_KIND_SPAWN, &spawn, sizeof spawn.spawn);
    check_read(root, JANUS_CAP_KIND_BUDGET, &budget, sizeof budget.budget);
    check_read(root, JANUS_CAP_KIND_CHANNEL, &channel, sizeof channel.channel);
    check_read(root, JANUS_CAP_KIND_EXECUTOR, &executor, sizeof executor.executor);
    return 0;
}

/* CAP:3.1.1, CAP:4.1.1, CAP:5.1.1, CAP:6.1.1. */
TEST("a task reads back the limits of its capabilities of each kind")
{
    caps_sovereign(1, read_all, NULL);
}

static int64_t no_such_backend(void *argument)
{
    const janus_cap_limits limits = {.executor = {JANUS_BACKEND_SET(JANUS_BACKEND_COUNT)}};
    janus_cap              cap;
    (void)argument;
    CHECK_EQ(janus_cap_mint(caps_root(), 0,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_EXECUTOR,
                                            .rights = JANUS_RIGHTS_ALL, .limits = &limits),
                            &cap),
             JANUS_INVALID);
    return 0;
}

/* CAP:6.1.1. */
TEST("a backend that does not exist cannot be granted")
{
    caps_sovereign(1, no_such_backend, NULL);
}

/* Copies. */

static int64_t use_copy(void *argument)
{
    janus_cap      cap = *(janus_cap *)argument, out;
    janus_cap_info info = JANUS_CAP_INFO();
    janus_nursery  n;
    CHECK_EQ(janus_cap_check(cap, JANUS_CAP_KIND_SPAWN, 0), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_inspect(cap, &info), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_attenuate(cap, JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL), &out),
             JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_delegate(cap, janus_task_current_id(), NULL, &out), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_revoke(cap, cap), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_release(cap), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = cap)), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, JANUS_SPAWN_OPTIONS(.spawn_cap = cap), NULL),
             JANUS_CAP_FOREIGN);
    return janus_nursery_end(&n, NULL);
}

static int64_t share_copy(void *argument)
{
    janus_cap     shared = caps_spawn(caps_root(), 5);
    janus_nursery n;
    (void)argument;
    caps_open(&n, shared);
    CHECK_EQ(janus_spawn(&n, use_copy, &shared), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_cap_check(shared, JANUS_CAP_KIND_SPAWN, 0), JANUS_OK);
    return janus_cap_release(shared);
}

/* CAP:12.1.1/ref, CAP:12.2.1/pass, CAP:12.2.1/store. */
TEST("a handle in shared memory works only for its holder, in every call")
{
    caps_all(share_copy, NULL);
}

/* Delegation. */

struct heir {
    janus_cap  cap; /* written before `ready` */
    atomic_int ready, revoked, done;
};

static int64_t inherit(void *argument)
{
    struct heir  *heir = argument;
    janus_nursery n;
    janus_cap     out;
    atomic_int    ran = 0;
    CHECK(rig_wait(&heir->ready));
    CHECK_EQ(janus_cap_delegate(heir->cap, janus_task_current_id() + 1, NULL, &out),
             JANUS_NOT_DELEGATABLE);
    caps_open(&n, heir->cap);
    CHECK_EQ(caps_context().cap_ids[JANUS_CAP_KIND_SPAWN], caps_id(heir->cap));
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
    atomic_store(&heir->done, 1);
    CHECK(rig_wait(&heir->revoked));
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_CAP_REVOKED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(ran, 1);
    CHECK_EQ(janus_cap_check(heir->cap, JANUS_CAP_KIND_SPAWN, 0), JANUS_CAP_REVOKED);
    return 0;
}

static int64_t bequeath(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.spawn = {10, janus_budget_default()}};
    janus_cap              kept = caps_spawn(root, 10), given, out;
    struct heir            heir = {.ready = 0};
    janus_nursery          n;
    janus_task_id          to;
    (void)argument;
    CHECK_EQ(
        janus_cap_mint(root, 0,
                       JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = JANUS_RIGHTS_ALL,
                                       .limits = &limits, .delegation_depth = 1),
                       &given),
        JANUS_OK);
    caps_open(&n, kept);
    CHECK_EQ(janus_spawn_with(&n, inherit, &heir, NULL, &to), JANUS_OK);
    CHECK_EQ(janus_cap_delegate(kept, to, NULL, &out), JANUS_NOT_DELEGATABLE);
    CHECK_EQ(janus_cap_delegate(given, to, NULL, &heir.cap), JANUS_OK);
    /* The heir's, not this task's. */
    CHECK_EQ(janus_cap_check(heir.cap, JANUS_CAP_KIND_SPAWN, 0), JANUS_CAP_FOREIGN);
    atomic_store(&heir.ready, 1);
    CHECK(rig_wait(&heir.done));
    CHECK_EQ(janus_cap_revoke(heir.cap, kept), JANUS_CAP_FOREIGN); /* not derived from it */
    CHECK_EQ(janus_cap_revoke(heir.cap, given), JANUS_OK);
    atomic_store(&heir.revoked, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_cap_check(given, JANUS_CAP_KIND_SPAWN, 0), JANUS_OK);
    return 0;
}

/* CAP:12.2.1/pass, CAP:12.2.2, C31. */
TEST("a task delegates a right only if it may, and can revoke it from the new holder")
{
    caps_all(bequeath, NULL);
}

static int64_t narrow(void *argument)
{
    janus_cap        wide = caps_spawn(caps_root(), 10), half, out;
    janus_cap_limits limits = {.spawn = {5, janus_budget_default()}};
    (void)argument;
    CHECK_EQ(janus_cap_attenuate(
                 wide, JANUS_CAP_GRANT(.rights = JANUS_RIGHT_SPAWN_TASK, .limits = &limits), &half),
             JANUS_OK);
    limits.spawn.max_tasks = 6;
    CHECK_EQ(janus_cap_attenuate(
                 half, JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL, .limits = &limits), &out),
             JANUS_CAP_WIDENS);
    CHECK_EQ(janus_cap_attenuate(half, JANUS_CAP_GRANT(.rights = JANUS_RIGHT_SPAWN_NURSERY), &out),
             JANUS_CAP_WIDENS);
    CHECK_EQ(janus_cap_check(half, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_NURSERY),
             JANUS_CAP_RIGHT);
    CHECK_EQ(janus_cap_check(half, JANUS_CAP_KIND_BUDGET, 0), JANUS_CAP_KIND);
    CHECK_EQ(janus_cap_revoke(half, wide), JANUS_OK);
    CHECK_EQ(janus_cap_check(half, JANUS_CAP_KIND_SPAWN, 0), JANUS_CAP_REVOKED);
    CHECK_EQ(janus_cap_release(wide), JANUS_OK);
    CHECK_EQ(janus_cap_check(wide, JANUS_CAP_KIND_SPAWN, 0), JANUS_CAP_STALE);
    return 0;
}

/* C31 (widening). */
TEST("a task derives narrower capabilities, and no wider ones") { caps_sovereign(1, narrow, NULL); }

/* Revoking. */

static int64_t revoke_under_way(void *argument)
{
    janus_cap     spawn = caps_spawn(caps_root(), 20);
    struct gate   gate = {.open = 0};
    janus_nursery n, inner;
    (void)argument;
    caps_open(&n, spawn);
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_cap_revoke(spawn, spawn), JANUS_OK);
    for (int i = 0; i < 100; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_CAP_REVOKED);
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_CAP_REVOKED);
    CHECK_EQ(caps_context().tasks_alive, 10);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK); /* tasks that run go on to their end */
    CHECK_EQ(gate.arrived, 10);
    return 0;
}

/* CAP:12.2.1 (taking back), CAP:11.1.1/spawn. */
TEST("when a capability is revoked its tasks go on, and no new one starts")
{
    caps_all(revoke_under_way, NULL);
}

struct spawners {
    janus_nursery *in;
    atomic_int     revoked, late, ran, ended;
};

static int64_t spawn_until_revoked(void *argument)
{
    struct spawners *all = argument;
    for (;;) {
        int          before = atomic_load(&all->revoked);
        janus_status status = janus_spawn(all->in, count_me, &all->ran);
        if (status == JANUS_OK && before) atomic_fetch_add(&all->late, 1);
        if (status == JANUS_CAP_REVOKED) return count_me(&all->ended);
        CHECK(status == JANUS_OK || status == JANUS_TASK_LIMIT);
        if (janus_yield() != JANUS_OK) return JANUS_CANCELLED;
    }
}

static int64_t revoke_in_the_storm(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits rich = {.spawn = {100, {.ops = 1 << 30}}};
    janus_cap              spawn = caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &rich);
    janus_cap              storm = caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &rich);
    janus_nursery          n, makers;
    struct spawners        all = {.in = &n};
    (void)argument;
    caps_open(&makers, storm);
    caps_open(&n, spawn); /* inside: further out they could start nothing */
    for (int i = 0; i < 8; i++) CHECK_EQ(janus_spawn(&makers, spawn_until_revoked, &all), JANUS_OK);
    while (atomic_load(&all.ran) < 1000) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_cap_revoke(spawn, spawn), JANUS_OK);
    atomic_store(&all.revoked, 1);
    while (atomic_load(&all.ended) < 8) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(all.late, 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return janus_nursery_end(&makers, NULL);
}

/* CAP:11.1.1/spawn. */
TEST("no spawn that begins after a revocation has returned succeeds, from any worker")
{
    caps_all(revoke_in_the_storm, NULL);
}

/* Outside. */

TEST("outside of tasks the calls for tasks return STATE")
{
    const janus_cap    none = {0};
    janus_cap          cap;
    janus_cap_info     info = JANUS_CAP_INFO();
    janus_context_info context = JANUS_CONTEXT_INFO();
    CHECK_EQ(janus_cap_attenuate(none, JANUS_CAP_GRANT(.rights = 1), &cap), JANUS_STATE);
    CHECK_EQ(janus_cap_delegate(none, 5, NULL, &cap), JANUS_STATE);
    CHECK_EQ(janus_cap_check(none, JANUS_CAP_KIND_SPAWN, 0), JANUS_STATE);
    CHECK_EQ(janus_cap_inspect(none, &info), JANUS_STATE);
    CHECK_EQ(janus_cap_revoke(none, none), JANUS_STATE);
    CHECK_EQ(janus_cap_release(none), JANUS_STATE);
    CHECK_EQ(janus_context_inspect(&context), JANUS_STATE);
    context.struct_bytes = 1;
    CHECK_EQ(janus_context_inspect(&context), JANUS_INVALID);
    CHECK_EQ(janus_context_inspect(NULL), JANUS_INVALID);
    CHECK_EQ(janus_scheduler_caps_inspect(NULL, NULL), JANUS_INVALID);
}

/* SCHED:10.2.4, C31. */
TEST("a thread starts tasks of a sovereign scheduler under a capability minted for outside threads")
{
    janus_scheduler *scheduler;
    janus_authority *root;
    janus_nursery    n;
    atomic_int       ran = 0;
    CHECK_EQ(janus_scheduler_create_with(
                 JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN, .yield_interval = 100),
                 &scheduler),
             JANUS_OK);
    CHECK_EQ(janus_authority_take(scheduler, &root), JANUS_OK);
    janus_cap spawn = caps_spawn(root, 2); /* outside of tasks: of outside threads */
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_NO_SPAWN_CAP);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(ran, 1);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

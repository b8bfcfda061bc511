/* SPDX-License-Identifier: MIT */
/* Exhaustion: which tasks wait, go on or end, and that nothing hangs because of it. */
#include "energy.h"
#include "task/task.h"
#include "task/worker.h"

/* Nothing hangs. */

enum how_to_wait { BY_END, BY_WAIT, BY_JOIN };

struct way {
    janus_scheduler    *scheduler; /* the owner is a thread; NULL: a task */
    janus_exhaustion    policy;
    janus_on_exhausted *callback;
    enum how_to_wait    how;
    bool                pool;   /* the nursery has a pool; else only the child has a budget */
    bool                before; /* exhausted before the owner waits; otherwise perhaps in place */
    bool                generated;
};

static janus_verdict ignore(void *argument, const janus_exhausted *child, janus_budget *grant)
{
    (void)argument;
    (void)child;
    (void)grant;
    return JANUS_VERDICT_IGNORE;
}

static void open_way(const struct way *way, janus_nursery *n)
{
    janus_budget           pool = janus_budget_of(1001, 0, 1, 0, 0);
    janus_nursery_options *options =
        JANUS_NURSERY_OPTIONS(.exhaustion = way->policy, .on_exhausted = way->callback,
                              .budget = way->pool ? &pool : NULL);
    CHECK_EQ(way->scheduler != NULL ? janus_nursery_open_in(way->scheduler, n, options)
                                    : janus_nursery_open(n, options),
             JANUS_OK);
}

static int64_t go_way(void *argument)
{
    const struct way    *way = argument;
    janus_nursery        n;
    janus_nursery_result result = {.kind = JANUS_RESULT_KIND_PENDING};
    janus_task_id        id;
    janus_budget         share = janus_budget_of(1000, 0, 0, 0, 0);
    atomic_long          count = 0;
    int64_t              error = 0;
    open_way(way, &n);
    CHECK_EQ(janus_spawn_with(&n, way->generated ? spin_generated : spin, &count,
                              JANUS_SPAWN_OPTIONS(.budget = &share), &id),
             JANUS_OK);
    if (way->before) CHECK_EQ(await_exhausted(&n).task, id);
    if (way->how == BY_JOIN) {
        CHECK_EQ(janus_join(&n, id, &error), JANUS_CHILD_FAILED);
        CHECK_EQ(error, JANUS_BUDGET_EXHAUSTED);
    }
    if (way->how == BY_WAIT) CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(result.errors, 1);
    CHECK_EQ(count, 1000); /* to the last */
    return 0;
}

/* All ways with one policy. */
static void go_all_ways(uint32_t workers, janus_exhaustion policy, janus_on_exhausted *callback)
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
    for (unsigned i = 0; i < 3 * 16; i++) {
        struct way way = {.policy = policy,
                          .callback = callback,
                          .how = (enum how_to_wait)(i / 16),
                          .pool = i & 1,
                          .before = i & 2,
                          .generated = i & 4,
                          .scheduler = i & 8 ? scheduler : NULL};
        if (i & 8) {
            CHECK_EQ(go_way(&way), 0);
        } else {
            rig_do(scheduler, go_way, &way);
        }
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static void with_workers(janus_exhaustion policy, janus_on_exhausted *callback)
{
    go_all_ways(1, policy, callback);
    go_all_ways(2, policy, callback);
    go_all_ways(8, policy, callback);
}

/*
 * C8, SCHED:8.1.3/2. Each owner is a task or a thread. It uses end, wait or join, in place or not.
 */
TEST("AUTO: an exhausted child that nobody recharges uses exactly its budget and ends when its "
     "owner waits")
{
    with_workers(JANUS_EXHAUSTION_AUTO, NULL);
}

TEST("SUPERVISE: an exhausted child that nobody recharges ends when its owner waits")
{
    with_workers(JANUS_EXHAUSTION_SUPERVISE, NULL);
}

TEST("SUPERVISE: an exhausted child that the callback ignores ends when its owner waits")
{
    with_workers(JANUS_EXHAUSTION_SUPERVISE, ignore);
}

TEST("MANUAL: an exhausted child that nobody recharges ends when its owner waits")
{
    with_workers(JANUS_EXHAUSTION_MANUAL, NULL);
}

static int64_t wait_for_room(void *argument)
{
    janus_nursery n;
    janus_budget  share = janus_budget_of(10, 0, 0, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_MANUAL,
                                                          .max_children = 1,
                                                          .when_full = JANUS_WHEN_FULL_WAIT)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, spin, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
             JANUS_OK);
    janus_status status = janus_spawn(&n, nothing, NULL);
    CHECK(status == JANUS_DEADLOCK || status == JANUS_CLOSED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("an owner that waits for room behind an exhausted child gets an error and does not hang")
{
    rig_all(wait_for_room, NULL, 3);
}

TEST("an exhausted task ends when the scheduler stops, cancelled")
{
    for (int i = 0; i < 10; i++) {
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
        janus_nursery    n;
        janus_budget     share = janus_budget_of(10, 0, 0, 0, 0);
        CHECK_EQ(janus_nursery_open_in(
                     scheduler, &n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_MANUAL)),
                 JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, spin, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
                 JANUS_OK);
        (void)await_exhausted(&n);
        CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* Runaways. */

static int64_t runaway(void *argument)
{
    janus_nursery n;
    atomic_int    finished = 0;
    atomic_long   ops = 0;
    janus_budget  share = janus_budget_of(10000, 0, 0, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, spin, &ops, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
             JANUS_OK);
    for (int i = 0; i < 20; i++) CHECK_EQ(janus_spawn(&n, count_me, &finished), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_nursery_failures(&n, NULL, 0), 1);
    CHECK_EQ(failure_of(&n).error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(finished, 20);
    CHECK_EQ(ops, 10000);
    return 0;
}

/* SCHED:1.1.1d, C8. */
TEST("an endless loop with 10,000 ops ends after exactly those, and all others finish")
{
    rig_all(runaway, NULL, 5);
}

static int64_t busy_neighbours(void *argument)
{
    janus_nursery n, busy;
    atomic_int    finished = 0;
    atomic_long   ops = 0;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&busy, NULL), JANUS_OK);
    for (int i = 0; i < 9; i++) CHECK_EQ(janus_spawn(&busy, spin, &ops), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 50; i++) CHECK_EQ(janus_spawn(&n, count_me, &finished), JANUS_OK);
    while (atomic_load(&ops) < 300000) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(finished, 50);
    CHECK_EQ(janus_nursery_state_of(&busy), JANUS_NURSERY_STATE_OPEN); /* none of them has failed */
    CHECK_EQ(janus_nursery_cancel(&busy), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&busy, NULL), JANUS_CANCELLED);
    return 0;
}

/* C8, SCHED:8.3.1. */
TEST(
    "default children that spin never end and keep nobody from finishing, until they are cancelled")
{
    rig_all(busy_neighbours, NULL, 1);
}

/* Each component. */

static janus_status use(janus_component component)
{
    switch (component) {
    case JANUS_COMPONENT_OPS: return janus_check();
    case JANUS_COMPONENT_MEMORY: return janus_alloc(16) != NULL ? JANUS_OK : JANUS_CANCELLED;
    case JANUS_COMPONENT_SPAWN_COUNT: return janus_charge(janus_price_spawn());
    case JANUS_COMPONENT_CHANNEL_OPS: return janus_charge(janus_price_send());
    case JANUS_COMPONENT_SYSCALLS: return janus_charge(janus_price_file_io());
    default: return JANUS_INVALID;
    }
}

struct user {
    janus_component component;
    atomic_int      used;
    int             times;
};

static int64_t use_often(void *argument)
{
    struct user *user = argument;
    for (int i = 0; i < user->times; i++) {
        janus_status status = use(user->component);
        if (status != JANUS_OK) return status;
        atomic_fetch_add(&user->used, 1);
    }
    return 0;
}

static janus_budget so_much(janus_component component, uint64_t amount, uint64_t ops)
{
    uint64_t of[6] = {0, ops, 0, 0, 0, 0};
    of[component] = amount;
    return janus_budget_of(of[1], of[2], of[3], of[4], of[5]);
}

/* Three uses are paid, the fourth is not. Then a recharge allows one more, then the rest. */
static void use_up(janus_component component)
{
    janus_nursery   n;
    struct user     user = {.component = component, .times = 6};
    uint64_t        unit = component == JANUS_COMPONENT_MEMORY ? 16 : 1;
    janus_budget    share = so_much(component, 3 * unit, 100);
    janus_budget    pool = janus_budget_of(10000, 10000, 100, 100, 100);
    janus_task_id   id;
    janus_task_info info = JANUS_TASK_INFO();
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_MANUAL, .budget = &pool)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, use_often, &user,
                              JANUS_SPAWN_OPTIONS(.budget = &share, .name = "user"), &id),
             JANUS_OK);
    janus_exhausted child = await_exhausted(&n);
    CHECK_EQ(child.task, id);
    CHECK_STR(child.name, "user");
    CHECK_EQ(child.lacks, component);
    CHECK_EQ(child.needs, unit);
    CHECK_EQ(janus_budget_get(&child.left, component), 0);
    CHECK(janus_budget_equal(child.granted, share));
    CHECK_EQ(user.used, 3);
    for (int i = 0; i < 100; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    do { /* it may be on its way there */
        CHECK_EQ(janus_task_inspect(&n, id, &info), JANUS_OK);
    } while (info.state != JANUS_TASK_STATE_BUDGET_EXHAUSTED);
    CHECK_EQ(user.used, 3);

    janus_nursery_pool_info before = books_of(&n);
    janus_budget more = so_much(component, unit, component == JANUS_COMPONENT_OPS ? 1 : 0);
    CHECK_EQ(janus_nursery_recharge(&n, id, more), JANUS_OK);
    CHECK(janus_budget_equal(less(before.left, books_of(&n).left), more));
    CHECK_EQ(await_exhausted(&n).task, id);
    CHECK_EQ(user.used, 4);
    CHECK_EQ(janus_nursery_recharge(&n, id, so_much(component, 2 * unit, 2)), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(user.used, 6);
}

static int64_t use_all(void *argument)
{
    (void)argument;
    for (unsigned c = JANUS_COMPONENT_OPS; c <= JANUS_COMPONENT_SYSCALLS; c++) {
        use_up((janus_component)c);
    }
    return 0;
}

/* SCHED:3.2.1, 3.2.2, 3.2.3a, 14.1.1/MemoryBudgetExhausted, R:budget, G:budget/exhaust, C4, C8. */
TEST("each component, used up, stops its task there until it is recharged from the pool")
{
    rig_all(use_all, NULL, 5);
}

static int64_t compute(void *argument)
{
    for (int i = 0; i < 900; i++) CHECK_EQ(janus_check(), JANUS_OK);
    atomic_store((atomic_int *)argument, 1);
    return janus_charge(janus_price_file_io());
}

static int64_t zeros(void *argument)
{
    janus_nursery n;
    atomic_int    computed = 0;
    janus_budget  share = janus_budget_of(1000, 0, 0, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, compute, &computed, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(computed, 1);
    CHECK_EQ(failure_of(&n).lacks, JANUS_COMPONENT_SYSCALLS);
    check_failure_says(&n, "syscalls", "JANUS_BUDGET_EXHAUSTED");
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

/* C4. */
TEST("components at zero stop nothing that does not need them") { rig_all(zeros, NULL, 5); }

/* Moves. */

static struct {
    atomic_uint_fast64_t watched;
    atomic_int           count;
    char                 path[64];
} moves;

static void note_move(const struct jrt_task *task, janus_task_state from, janus_task_state to)
{
    (void)from;
    if (jrt_task_id(task) != atomic_load(&moves.watched)) return;
    int at = atomic_fetch_add(&moves.count, 1);
    if (at < 63) moves.path[at] = "RrBECX"[to];
}

static int64_t watch_me(void *argument)
{
    atomic_store(&moves.watched, janus_task_current_id());
    return use_often(argument);
}

static int64_t moved(void *argument)
{
    janus_nursery n;
    struct user   user = {.component = JANUS_COMPONENT_OPS, .times = 3};
    janus_task_id id;
    janus_budget  share = janus_budget_of(2, 0, 0, 0, 0);
    bool          automatic = argument != NULL;
    memset(moves.path, 0, sizeof moves.path);
    atomic_store(&moves.count, 0);
    if (automatic) user.times = 20001; /* in twos */
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.exhaustion = automatic ? JANUS_EXHAUSTION_AUTO
                                                                   : JANUS_EXHAUSTION_MANUAL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, watch_me, &user,
                              JANUS_SPAWN_OPTIONS(.budget = automatic ? NULL : &share), &id),
             JANUS_OK);
    if (!automatic) {
        CHECK_EQ(await_exhausted(&n).task, id);
        CHECK_EQ(janus_nursery_recharge(&n, id, share), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_STR(moves.path, automatic ? "ERrERrC" : "ERrC");
    return 0;
}

/* SCHED:5.2.2/Running→BudgetExhausted, BudgetExhausted→Ready. On one worker no other task waits, so
 * nothing else moves it. */
TEST("a task that cannot pay moves to exhausted, after a recharge to ready, and then to running")
{
    janus_scheduler *scheduler = NULL;
    if (!JRT_DEBUG) SKIP("only debug builds tell");
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), &scheduler),
             JANUS_OK);
    scheduler->on_move = note_move;
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    rig_do(scheduler, moved, NULL);
    rig_do(scheduler, moved, &moves);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Cancelled tasks. */

static const uint64_t forever = UINT64_MAX;

struct end {
    atomic_int begun, cleaned, order;
    uint64_t   spins; /* of the first defer */
    bool       told;
};

static void clean_after(void *argument)
{
    struct end *end = argument;
    for (uint64_t i = 0; i < end->spins; i++) JANUS_IGNORE(janus_check());
    CHECK_EQ(atomic_fetch_add(&end->order, 1), 0);
    atomic_fetch_add(&end->cleaned, 1);
}

static void clean_last(void *argument)
{
    struct end *end = argument;
    atomic_fetch_add(&end->order, 1);
    atomic_fetch_add(&end->cleaned, 1);
}

static int64_t spend_with_defers(void *argument)
{
    struct end *end = argument;
    CHECK_EQ(janus_defer(clean_last, end), JANUS_OK);
    CHECK_EQ(janus_defer(clean_after, end), JANUS_OK);
    atomic_store(&end->begun, 1);
    while (janus_check() == JANUS_OK) continue;
    end->told = true;
    return JANUS_CANCELLED;
}

struct stop {
    janus_exhaustion  policy;
    janus_cancel_mode mode;
    uint64_t          spins;
    bool              exhausted; /* it was exhausted when it was cancelled */
};

static int64_t stop_child(void *argument)
{
    const struct stop *stop = argument;
    struct end         end = {.spins = stop->spins};
    janus_nursery      n;
    janus_budget       share = janus_budget_of(JANUS_SLICE, 0, 0, 0, 0);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = stop->policy)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, spend_with_defers, &end,
                              JANUS_SPAWN_OPTIONS(.cancel = stop->mode,
                                                  .budget = stop->exhausted ? &share : NULL),
                              NULL),
             JANUS_OK);
    if (stop->exhausted) (void)await_exhausted(&n);
    CHECK(rig_wait(&end.begun));
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    janus_status status = janus_nursery_end(&n, NULL);
    bool         endless = stop->spins == forever;
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK_EQ(end.cleaned, endless ? 1 : 2); /* the first was broken off, the other ran */
    CHECK_EQ(end.told, stop->mode == JANUS_CANCEL_MODE_RETURN);
    return 0;
}

static void stop_all(uint64_t spins)
{
    for (unsigned i = 0; i < 8; i++) {
        struct stop stop = {.policy = i & 1 ? JANUS_EXHAUSTION_MANUAL : JANUS_EXHAUSTION_SUPERVISE,
                            .mode = i & 2 ? JANUS_CANCEL_MODE_UNWIND : JANUS_CANCEL_MODE_RETURN,
                            .spins = spins,
                            .exhausted = true};
        if (i & 4) stop.policy = JANUS_EXHAUSTION_AUTO;
        if (i & 4) stop.exhausted = i & 1;
        rig_all(stop_child, &stop, 3);
    }
}

/* C12, C14, SCHED:8.3.1/3. */
TEST("an exhausted child that is cancelled gets CANCELLED, and has enough ops to clean up")
{
    stop_all(0);
    stop_all(5000);
}

/* C12. */
TEST("a defer that spins is broken off when the cleanup allowance is used up")
{
    stop_all(forever);
}

static int64_t stop_with_grace(void *argument)
{
    struct stop stop = {.policy = JANUS_EXHAUSTION_MANUAL, .spins = forever, .exhausted = true};
    CHECK_EQ(stop_child(&stop), 0);
    stop.mode = JANUS_CANCEL_MODE_UNWIND;
    CHECK_EQ(stop_child(&stop), 0);
    stop.policy = JANUS_EXHAUSTION_AUTO;
    stop.exhausted = false;
    CHECK_EQ(stop_child(&stop), 0);
    return argument != NULL;
}

/* C12. The grace is over at once: from then on its checks return CANCELLED. */
TEST("a defer that spins and ignores CANCELLED is broken off when its grace is over")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .grace_ns = 1), stop_with_grace,
                  NULL);
    }
}

static int64_t deaf(void *argument)
{
    janus_entry *const entries[] = {spin, spin_generated, spin_until_told};
    (void)argument;
    for (unsigned i = 0; i < 12; i++) {
        janus_nursery n;
        atomic_long   count = 0;
        janus_budget  large = janus_budget_of(100000, 0, 0, 0, 0);
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (int k = 0; k < 3; k++) {
            CHECK_EQ(
                janus_spawn_with(&n, entries[i % 3], &count,
                                 JANUS_SPAWN_OPTIONS(.budget = i < 6 ? NULL : &large,
                                                     .cancel = i & 1 ? JANUS_CANCEL_MODE_UNWIND
                                                                     : JANUS_CANCEL_MODE_RETURN),
                                 NULL),
                JANUS_OK);
        }
        while (atomic_load(&count) == 0) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        long before = atomic_load(&count);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
        /* Each may end its current slice, gets CANCELLED, and gets one more slice. */
        CHECK(atomic_load(&count) - before <= 3L * 2 * (JANUS_SLICE + 1));
    }
    return 0;
}

/* C12. */
TEST("a cancelled spinner that ignores CANCELLED ends within two slices")
{
    rig_all(deaf, NULL, 3);
}

struct shielded {
    atomic_long count;
    atomic_int  left;
};

static int64_t spin_in_shield(void *argument)
{
    struct shielded *shielded = argument;
    janus_shield_begin();
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(janus_check(), JANUS_OK);
        atomic_fetch_add(&shielded->count, 1);
    }
    janus_shield_end();
    atomic_store(&shielded->left, 1);
    return janus_yield();
}

static int64_t exhausted_in_shield(void *argument)
{
    bool             recharge = argument != NULL;
    janus_nursery    n;
    struct shielded  shielded = {0};
    janus_budget     share = janus_budget_of(50, 0, 0, 0, 0);
    janus_exhaustion manual = JANUS_EXHAUSTION_MANUAL;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = manual)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, spin_in_shield, &shielded, JANUS_SPAWN_OPTIONS(.budget = &share),
                              NULL),
             JANUS_OK);
    janus_exhausted child = await_exhausted(&n);
    CHECK_EQ(shielded.count, 50);
    if (recharge) CHECK_EQ(janus_nursery_recharge(&n, child.task, share), JANUS_OK);
    if (!recharge) CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_end(&n, &result), recharge ? JANUS_OK : JANUS_CHILD_FAILED);
    if (!recharge) CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(shielded.count, recharge ? 100 : 50);
    CHECK_EQ(shielded.left, recharge);
    return 0;
}

/* C8, C12. Nobody recharges the children of a cancelled nursery, so a task must not wait in a
 * shield there. */
TEST("in a shield, too, a recharge ends exhaustion, and a cancel ends an exhausted task")
{
    rig_all(exhausted_in_shield, NULL, 5);
    rig_all(exhausted_in_shield, &moves, 5);
}

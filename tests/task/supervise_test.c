/* SPDX-License-Identifier: MIT */
/* Supervisors: how they learn of exhausted children, and what they may do. */
#include "energy.h"

#define SUPERVISED(...) JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_SUPERVISE, __VA_ARGS__)

static const janus_budget ten = {10, 0, 0, 0, 0};

/* A child with ten ops and an id. */
static janus_task_id spawn_ten(janus_nursery *n, janus_entry *entry, void *argument)
{
    janus_task_id id;
    CHECK_EQ(janus_spawn_with(n, entry, argument,
                              JANUS_SPAWN_OPTIONS(.budget = &ten, .name = "ten"), &id),
             JANUS_OK);
    return id;
}

/* Twenty-five ops. */
static int64_t needs_more(void *argument)
{
    for (int i = 0; i < 25; i++) {
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
    }
    return argument != NULL ? count_me(argument) : 0;
}

/* Polling. */

struct gates {
    struct gate gate[3];
};

static int64_t exhaust_at_gate(void *argument)
{
    CHECK_EQ(at_gate(argument), 0);
    return needs_more(NULL);
}

static int64_t poll_in_order(void *argument)
{
    struct gates    gates = {0};
    janus_task_id   ids[3];
    janus_exhausted child;
    janus_nursery   n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.policy = JANUS_POLICY_WAIT_ALL)), JANUS_OK);
    CHECK(!janus_nursery_poll_exhausted(&n, &child));
    CHECK_EQ(janus_supervisor_poll_exhausted(), 0);
    for (int i = 0; i < 3; i++) ids[i] = spawn_ten(&n, exhaust_at_gate, &gates.gate[i]);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 3; i++) { /* 1, 2, 0: each is exhausted before the next runs */
            int             which = (i + 1) % 3;
            janus_task_info info = JANUS_TASK_INFO();
            atomic_store(&gates.gate[which].open, 1);
            do {
                CHECK_EQ(janus_yield(), JANUS_OK);
                CHECK_EQ(janus_task_inspect(&n, ids[which], &info), JANUS_OK);
            } while (info.state != JANUS_TASK_STATE_BUDGET_EXHAUSTED);
        }
        if (turn > 0) break;
        CHECK(janus_nursery_poll_exhausted(&n, &child));
        CHECK_EQ(child.task, ids[1]);
        CHECK_EQ(child.lacks, JANUS_COMPONENT_OPS);
        CHECK_STR(child.name, "ten");
        CHECK_EQ(janus_supervisor_poll_exhausted(), ids[2]);
        CHECK_EQ(janus_supervisor_poll_exhausted(), ids[0]);
        CHECK_EQ(janus_supervisor_poll_exhausted(), 0); /* each once */
        CHECK(!janus_nursery_poll_exhausted(&n, &child));
        CHECK_EQ(janus_nursery_recharge(&n, ids[2], ten), JANUS_OK);
        CHECK_EQ(await_exhausted(&n).task, ids[2]); /* and again when it is exhausted again */
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_supervisor_poll_exhausted(), 0);
    return 0;
}

/* CAP:8.2.1/1, 8.2.1/2, 8.3.1/poll. */
TEST("exhausted children are reported in order, once for each exhaustion")
{
    rig_all(poll_in_order, NULL, 5);
    CHECK_EQ(janus_supervisor_poll_exhausted(), 0);
}

/* The three verdicts, by waiting. */

static void defer_count(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

struct worker {
    atomic_int done, cleaned;
};

static int64_t work(void *argument)
{
    struct worker *worker = argument;
    CHECK_EQ(janus_defer(defer_count, &worker->cleaned), JANUS_OK);
    return needs_more(&worker->done);
}

static int64_t three_verdicts(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    struct worker        workers[3] = {0};
    janus_task_id        ids[3], seen[3];
    janus_exhausted      child;
    janus_budget         pool = janus_budget_of(1000, 0, 3, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.budget = &pool, .policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < 3; i++) ids[i] = spawn_ten(&n, work, &workers[i]);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_OK);
        seen[i] = child.task;
    }
    for (int i = 0; i < 3; i++) CHECK(seen[i] == ids[0] || seen[i] == ids[1] || seen[i] == ids[2]);
    janus_nursery_pool_info before = books_of(&n);
    CHECK_EQ(janus_nursery_recharge(&n, ids[0], janus_price_loop(15)), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_exhausted(&n, ids[1]), JANUS_OK);
    CHECK_EQ(janus_join(&n, ids[0], NULL), JANUS_OK);
    CHECK_EQ(workers[0].done, 1);
    CHECK_EQ(less(before.left, books_of(&n).left).ops, 15);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED); /* the ignored child */
    CHECK_EQ(result.errors, 1);
    CHECK_EQ(result.task, ids[2]);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    for (int i = 0; i < 3; i++) CHECK_EQ(workers[i].cleaned, 1);
    CHECK_EQ(workers[1].done + workers[2].done, 0);
    return 0;
}

/* CAP:8.2.1/2, 8.2.1/3, 8.2.1/4, 8.2.1/5. */
TEST("of three exhausted children one is recharged, one cancelled, one left alone; the pool pays")
{
    rig_all(three_verdicts, NULL, 20);
}

static int64_t keep_going(void *argument)
{
    janus_nursery   n;
    janus_exhausted child;
    janus_status    status;
    atomic_int      done = 0;
    int             told = 0;
    janus_budget    pool = janus_budget_of(1000, 0, 8, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.budget = &pool)), JANUS_OK);
    for (int i = 0; i < 8; i++) (void)spawn_ten(&n, needs_more, &done);
    while ((status = janus_nursery_wait_exhausted(&n, &child)) == JANUS_OK) {
        told++;
        CHECK_EQ(janus_nursery_recharge(&n, child.task, ten), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CLOSED);
    CHECK_EQ(told, 16); /* twice each */
    CHECK_EQ(done, 8);
    CHECK_EQ(books_of(&n).spent.ops, 8 * 26);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* CAP:8.2.1/2, 8.2.1/4. */
TEST("a waiting supervisor learns of every exhausted child until no child is left")
{
    rig_all(keep_going, NULL, RIG_SLOW ? 20 : 100);
}

static int64_t start_more(void *argument)
{
    janus_nursery   n;
    janus_exhausted child;
    atomic_int      done = 0;
    janus_budget    pool = janus_budget_of(1000, 0, 12, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.budget = &pool)), JANUS_OK);
    for (int round = 0; round < 4; round++) {
        janus_status status;
        int          told = 0;
        for (int i = 0; i < 2; i++) (void)spawn_ten(&n, needs_more, &done);
        while ((status = janus_nursery_wait_exhausted(&n, &child)) == JANUS_OK) {
            CHECK_EQ(janus_nursery_state_of(&n), JANUS_NURSERY_STATE_OPEN);
            CHECK_EQ(janus_nursery_recharge(&n, child.task, ten), JANUS_OK);
            if (told++ == 0) (void)spawn_ten(&n, needs_more, &done); /* in the middle */
        }
        CHECK_EQ(status, JANUS_CLOSED);
        CHECK_EQ(told, 6); /* twice each */
        CHECK_EQ(done, 3 * (round + 1));
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("after a wait a supervisor can start more children until it ends the nursery")
{
    rig_all(start_more, NULL, RIG_SLOW ? 20 : 100);
}

static int64_t wait_for_nobody(void *argument)
{
    janus_nursery   n;
    janus_exhausted child;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.name = "empty")), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_CLOSED);
        CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_close(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_CLOSED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a supervisor with no child left does not wait, and the nursery stays as it is")
{
    rig_all(wait_for_nobody, NULL, 20);
}

static int64_t cancel_and_end(void *argument)
{
    for (int i = 0; i < 3; i++) JANUS_IGNORE(janus_yield());
    (void)janus_nursery_cancel(argument);
    return 0;
}

static int64_t cancelled_while_lent(void *argument)
{
    janus_nursery   n;
    janus_exhausted child;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.owner_apart = true)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, yield_for_ever, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, cancel_and_end, &n), JANUS_OK);
    CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_CLOSED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a nursery that is cancelled while its supervisor waits ends as any other")
{
    rig_all(cancelled_while_lent, NULL, RIG_SLOW ? 50 : 500);
}

static int64_t wait_in_vain(void *argument)
{
    janus_nursery   n;
    janus_exhausted child;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.policy = JANUS_POLICY_WAIT_ALL)), JANUS_OK);
    (void)spawn_ten(&n, needs_more, NULL);
    CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_OK);
    janus_status status = janus_nursery_wait_exhausted(&n, &child); /* it learned of all */
    CHECK(status == JANUS_DEADLOCK || status == JANUS_CLOSED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("a supervisor that recharges nobody and waits for more does not hang")
{
    rig_all(wait_in_vain, NULL, 3);
}

struct cancelled {
    atomic_int waits;
};

static int64_t wait_to_be_cancelled(void *argument)
{
    struct cancelled *cancelled = argument;
    struct gate       gate = {0};
    janus_exhausted   child;
    janus_nursery     n;
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.name = "inner")), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    CHECK(rig_wait(&gate.arrived));
    atomic_store(&cancelled->waits, 1);
    CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_CANCELLED);
    atomic_store(&gate.open, 1);
    JANUS_IGNORE(janus_nursery_end(&n, NULL)); /* CANCELLED, unless the child was faster */
    uint64_t start = janus_now_ns();           /* no late wake meets another wait */
    janus_shield_begin();
    CHECK_EQ(janus_sleep(rig_ms / 10), JANUS_OK);
    janus_shield_end();
    CHECK(janus_now_ns() - start >= rig_ms / 10);
    return JANUS_CANCELLED;
}

static int64_t cancel_supervisor(void *argument)
{
    janus_nursery    n;
    struct cancelled cancelled = {0};
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_to_be_cancelled, &cancelled), JANUS_OK);
    CHECK(rig_wait(&cancelled.waits));
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a waiting supervisor gets CANCELLED when it is cancelled")
{
    rig_all(cancel_supervisor, NULL, RIG_SLOW ? 20 : 200);
}

/* Callbacks. */

struct boss {
    janus_verdict verdict;
    janus_budget  grant;
    atomic_int    calls;
    int           times; /* it ignores the child after this many calls */
};

static janus_verdict decide(void *argument, const janus_exhausted *child, janus_budget *grant)
{
    struct boss *boss = argument;
    int          call = atomic_fetch_add(&boss->calls, 1) + 1;
    CHECK_EQ(child->task, janus_task_current_id()); /* in the child */
    CHECK_STR(child->name, "ten");
    CHECK_EQ(child->lacks, JANUS_COMPONENT_OPS);
    CHECK_EQ(child->needs, 1);
    CHECK_EQ(child->left.ops, 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_check(), JANUS_OK); /* the child pays, if it can */
    if (call > boss->times) return JANUS_VERDICT_IGNORE;
    *grant = boss->grant;
    return boss->verdict;
}

static int64_t boss_recharges(void *argument)
{
    struct boss   boss = {.verdict = JANUS_VERDICT_RECHARGE, .grant = ten, .times = 100};
    janus_nursery n;
    atomic_int    done = 0;
    janus_budget  pool = janus_budget_of(12 + 25, 0, 1, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.budget = &pool, .on_exhausted = decide,
                                               .on_exhausted_argument = &boss)),
             JANUS_OK);
    (void)spawn_ten(&n, needs_more, &done);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
    CHECK_EQ(done, 1);
    CHECK_EQ(boss.calls, 2);
    CHECK_EQ(books_of(&n).spent.ops, 26 + 2 * 2); /* two calls of two ops */
    CHECK_EQ(books_of(&n).left.ops, 11 - 2 * 2);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t boss_cancels(void *argument)
{
    struct boss   boss = {.verdict = JANUS_VERDICT_CANCEL, .times = 100};
    struct worker worker = {0};
    atomic_int    neighbour = 0;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(
        janus_nursery_open(&n, SUPERVISED(.on_exhausted = decide, .on_exhausted_argument = &boss)),
        JANUS_OK);
    (void)spawn_ten(&n, work, &worker);
    CHECK_EQ(janus_spawn(&n, count_me, &neighbour), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK); /* only this child; that is no failure */
    CHECK_EQ(boss.calls, 1);
    CHECK_EQ(worker.cleaned, 1);
    CHECK_EQ(worker.done, 0);
    CHECK_EQ(neighbour, 1);
    return 0;
}

static int64_t boss_has_little(void *argument)
{
    struct boss   boss = {.verdict = JANUS_VERDICT_RECHARGE, .grant = ten, .times = 100};
    janus_nursery n;
    janus_budget  pool = janus_budget_of(11 + 9, 0, 1, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.budget = &pool, .on_exhausted = decide,
                                               .on_exhausted_argument = &boss)),
             JANUS_OK);
    (void)spawn_ten(&n, needs_more, NULL);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(books_of(&n).left.ops, 9); /* all or nothing */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(boss.calls, 1);
    return 0;
}

/* SCHED:3.2.3b, CAP:8.2.1/2, 8.2.1/3, 8.2.1/5. */
TEST("a callback runs once for each exhaustion, in the child, which pays, and its verdict holds")
{
    rig_all(boss_recharges, NULL, 10);
    rig_all(boss_cancels, NULL, 10);
    rig_all(boss_has_little, NULL, 10);
}

/* Refused like janus_nursery_recharge: the units are new, and the limit is 100,000. */
static int64_t boss_overreaches(void *argument)
{
    struct boss   boss = {.verdict = JANUS_VERDICT_RECHARGE, .times = 100};
    janus_nursery n;
    (void)argument;
    boss.grant = janus_price_loop(100001);
    CHECK_EQ(
        janus_nursery_open(&n, SUPERVISED(.on_exhausted = decide, .on_exhausted_argument = &boss)),
        JANUS_OK);
    (void)spawn_ten(&n, needs_more, NULL);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(boss.calls, 1);
    return 0;
}

static int64_t boss_without_cap(void *argument)
{
    struct boss      boss = {.verdict = JANUS_VERDICT_RECHARGE, .grant = ten, .times = 100};
    janus_authority *root;
    janus_nursery    n;
    janus_cap_limits limits = {.spawn = {.max_tasks = 2, .task_budget = {.ops = 10000}}};
    (void)argument;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    janus_cap spawn = mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, limits);
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.on_exhausted = decide, .spawn_cap = spawn,
                                               .on_exhausted_argument = &boss)),
             JANUS_OK);
    (void)spawn_ten(&n, needs_more, NULL);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(boss.calls, 1);
    return 0;
}

/* CAP:8.1.2/cap, 8.1.2/limit. */
TEST("a callback cannot give what its nursery's owner could not")
{
    rig_all(boss_overreaches, NULL, 3);
    rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .yield_interval = 100,
                                      .profile = JANUS_PROFILE_SOVEREIGN),
              boss_without_cap, NULL);
}

/* The right to recharge. */

static int64_t recharge_others(void *argument)
{
    return janus_nursery_recharge(argument, janus_task_current_id(), ten);
}

struct scene {
    janus_nursery *nursery;
    janus_task_id  exhausted, running, gone;
    janus_cap      all, weak, other, foreign, revoked, forged;
};

/* Capabilities that are wrong in every way, and one good one. */
static void mint_all(struct scene *scene, const janus_authority *root)
{
    janus_cap_limits spawn_limits = {.spawn = {.max_tasks = 1}};
    janus_cap_limits budget_limits = {.budget = {.cpu_budget = 50}};
    scene->all = mint_budget(root, JANUS_RIGHTS_ALL, 50);
    scene->weak = mint_budget(root, JANUS_RIGHT_BUDGET_RECHARGE, 50);
    scene->other = mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, spawn_limits);
    scene->forged = scene->all;
    scene->forged.nonce ^= 1;
    CHECK_EQ(janus_cap_attenuate(scene->all, JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL),
                                 &scene->revoked),
             JANUS_OK);
    CHECK_EQ(janus_cap_revoke(scene->revoked, scene->all), JANUS_OK);
    CHECK_EQ(janus_cap_mint(root, scene->running,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_BUDGET,
                                            .rights = JANUS_RIGHTS_ALL, .limits = &budget_limits),
                            &scene->foreign),
             JANUS_OK);
}

static void go_wrong(const struct scene *scene)
{
    janus_task_id  id = scene->exhausted;
    janus_nursery *n = scene->nursery;
    CHECK_EQ(janus_budget_recharge_child(id, ten, NULL), JANUS_NO_BUDGET_CAP);
    check_explained("JANUS_NO_BUDGET_CAP", "task");
    CHECK_EQ(janus_budget_recharge_child(id, ten, &(janus_cap){0}), JANUS_NO_BUDGET_CAP);
    CHECK_EQ(janus_budget_recharge_child(id, ten, &scene->forged), JANUS_CAP_FORGED);
    CHECK_EQ(janus_budget_recharge_child(id, ten, &scene->revoked), JANUS_CAP_REVOKED);
    CHECK_EQ(janus_budget_recharge_child(id, ten, &scene->foreign), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_budget_recharge_child(id, ten, &scene->other), JANUS_CAP_KIND);
    CHECK_EQ(janus_budget_recharge_child(id, ten, &scene->weak), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_budget_recharge_child(id, janus_price_loop(51), &scene->all), JANUS_CAP_LIMIT);
    check_explained("JANUS_CAP_LIMIT", "less");
    CHECK_EQ(janus_budget_recharge_child(scene->running, ten, &scene->all), JANUS_STATE);
    CHECK_EQ(janus_budget_recharge_child(janus_task_current_id(), ten, &scene->all), JANUS_STATE);
    CHECK_EQ(janus_budget_recharge_child(scene->gone, ten, &scene->all), JANUS_STALE);
    CHECK_EQ(janus_budget_recharge_child(0, ten, &scene->all), JANUS_STALE);
    CHECK_EQ(janus_nursery_recharge(n, id, janus_price_loop(101)), JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_nursery_recharge(n, scene->running, ten), JANUS_STATE);
    CHECK_EQ(janus_nursery_recharge(n, scene->gone, ten), JANUS_STALE);
    CHECK_EQ(janus_nursery_recharge(NULL, id, ten), JANUS_INVALID);
    CHECK_EQ(janus_nursery_cancel_exhausted(n, scene->running), JANUS_STALE);
}

/* One exhausted child in a pool of 100, and every wrong way to recharge it. */
static int64_t all_wrong(const janus_authority *root)
{
    janus_nursery n;
    struct scene  scene = {.nursery = &n};
    struct gate   gate = {0};
    int64_t       result = 0;
    janus_budget  pool = janus_budget_of(100, 0, 9, 0, 0);
    CHECK_EQ(janus_nursery_open(&n, SUPERVISED(.budget = &pool, .policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    scene.exhausted = spawn_ten(&n, needs_more, NULL);
    CHECK_EQ(await_exhausted(&n).task, scene.exhausted);
    scene.running = spawn_ten(&n, at_gate, &gate);
    scene.gone = spawn_ten(&n, recharge_others, &n);
    CHECK(rig_wait(&gate.arrived));
    CHECK_EQ(janus_join(&n, scene.gone, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result, JANUS_STATE); /* not the owner */
    mint_all(&scene, root);
    janus_nursery_pool_info before = books_of(&n);
    go_wrong(&scene);
    janus_nursery_pool_info after = books_of(&n);
    CHECK(memcmp(&before, &after, sizeof before) == 0);

    CHECK_EQ(janus_budget_recharge_child(scene.exhausted, janus_price_loop(15), &scene.all),
             JANUS_OK);
    CHECK_EQ(janus_join(&n, scene.exhausted, NULL), JANUS_OK);
    CHECK_EQ(less(before.left, books_of(&n).left).ops, 15);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

static int64_t take_and_go_wrong(void *argument)
{
    janus_authority *root;
    (void)argument;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    return all_wrong(root);
}

/* CAP:8.1.1, 8.1.2/cap, 8.1.2/state, 8.1.2/limit, 8.3.1/recharge, C32. */
TEST("in :service a child is recharged under a capability only, and on any error nothing happens")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), take_and_go_wrong, NULL);
    }
    CHECK_EQ(janus_budget_recharge_child(1, ten, NULL), JANUS_STATE);
}

static int64_t in_cluster(void *argument)
{
    janus_nursery      n, inner;
    janus_context_info context = JANUS_CONTEXT_INFO();
    janus_task_id      id;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_context_inspect(&context), JANUS_OK);
    CHECK_EQ(context.exhaustion, JANUS_EXHAUSTION_SUPERVISE);
    id = spawn_ten(&n, needs_more, NULL);
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK); /* the child's is not the innermost */
    do {
        CHECK_EQ(janus_yield(), JANUS_OK);
    } while (janus_supervisor_poll_exhausted() != id);
    CHECK_EQ(janus_budget_recharge_child(id, janus_price_loop(1000001), NULL), JANUS_CAP_LIMIT);
    CHECK_EQ(janus_budget_recharge_child(id, janus_price_loop(15), NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* SCHED:3.2.3b, CAP:8.1.1. */
TEST(
    "in :cluster supervision is the default, and a supervisor recharges its children within limits")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        rig_first(
            JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .profile = JANUS_PROFILE_CLUSTER),
            in_cluster, NULL);
    }
}

TEST("a plain thread polls, recharges and cancels the children of its nursery")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    janus_budget     pool = janus_budget_of(100, 0, 9, 0, 0);
    for (int i = 0; i < 20; i++) {
        janus_nursery   n;
        janus_exhausted child;
        atomic_int      done = 0;
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, SUPERVISED(.budget = i & 1 ? &pool : NULL)),
                 JANUS_OK);
        janus_task_id first = spawn_ten(&n, needs_more, &done);
        CHECK_EQ(await_exhausted(&n).task, first);
        CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_STATE);
        CHECK_EQ(janus_nursery_recharge(&n, first, janus_price_loop(15)), JANUS_OK);
        CHECK_EQ(janus_join(&n, first, NULL), JANUS_OK);
        janus_task_id second = spawn_ten(&n, needs_more, &done);
        CHECK_EQ(await_exhausted(&n).task, second);
        CHECK_EQ(janus_nursery_cancel_exhausted(&n, second), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(done, 1);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

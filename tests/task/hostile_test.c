/* SPDX-License-Identifier: MIT */
/*
 * Hostile tasks, one by one, each beside neighbours that must finish: SCHED:15.1.1. All run in
 * :service with its limits, in a nursery of their own. The report of each end names the task.
 */
#define RIG_TURN_NS JANUS_TURN_NS /* as a service has it */
#include "energy.h"

enum { NEIGHBOURS = 20 };

/* A neighbour computes, allocates and starts a child of its own. */
static int64_t honest(void *argument)
{
    for (int i = 0; i < 200; i++) {
        char *block = janus_alloc(1000);
        CHECK(block != NULL);
        block[999] = 1;
        janus_free(block);
        for (int k = 0; k < 10; k++) CHECK_EQ(janus_check(), JANUS_OK);
        if (i % 50 == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return count_me(argument);
}

struct attack {
    const char         *name;
    janus_entry        *entry;
    void               *argument;
    const janus_budget *pool;    /* NULL: implicit budgets */
    const janus_budget *share;   /* NULL: the default */
    bool                endless; /* the test must cancel it; otherwise it ends by itself */
    const char         *why;     /* words in the message about its end */
};

/* The attack in its nursery, neighbours in another; the neighbours finish first. */
static int64_t contain(void *argument)
{
    static const janus_site here = {__FILE__, __LINE__};
    const struct attack    *attack = argument;
    janus_nursery           bad, good;
    atomic_int              finished = 0;
    CHECK_EQ(janus_nursery_open(&good, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&bad, JANUS_NURSERY_OPTIONS(.budget = attack->pool, .name = "bad",
                                                            .policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(
                 &bad, attack->entry, attack->argument,
                 JANUS_SPAWN_OPTIONS(.name = attack->name, .site = &here, .budget = attack->share),
                 NULL),
             JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    for (int i = 0; i < NEIGHBOURS; i++) {
        janus_status status;
        while ((status = janus_spawn(&good, honest, &finished)) == JANUS_TASK_LIMIT) {
            CHECK_EQ(janus_yield(), JANUS_OK); /* a bomb holds all room for a while */
        }
        CHECK_EQ(status, JANUS_OK);
    }
    CHECK_EQ(janus_nursery_await_with(&good, NULL), JANUS_OK);
    CHECK_EQ(finished, NEIGHBOURS);
    if (attack->endless) CHECK_EQ(janus_nursery_cancel(&bad), JANUS_OK);
    janus_status status = janus_nursery_await_with(&bad, NULL);
    if (attack->why != NULL) {
        CHECK_EQ(status, JANUS_CHILD_FAILED);
        check_failure_says(&bad, attack->name, attack->why);
        check_failure_says(&bad, "hostile_test", "bad");
    }
    if (attack->endless) CHECK_EQ(status, JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_end(&bad, NULL), status);
    CHECK_EQ(janus_nursery_end(&good, NULL), JANUS_OK);
    return 0;
}

static void attack_with(struct attack attack)
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(
            janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), contain, &attack, NULL),
            JANUS_OK);
    }
}

static const janus_budget small_pool = {20000, 1 << 20, 5, 0, 0};

/* Spinners. */

TEST("a loop of checks ends when its explicit budget is used up, or without one when cancelled")
{
    attack_with((struct attack){
        .name = "spinner", .entry = spin, .pool = &small_pool, .why = "ops, 19999 of 19999 used"});
    attack_with((struct attack){.name = "spinner", .entry = spin, .endless = true});
}

TEST("a loop of generated checks ends when its explicit budget is used up, or when cancelled")
{
    attack_with((struct attack){.name = "generated",
                                .entry = spin_generated,
                                .pool = &small_pool,
                                .why = "ops, 19999 of 19999 used"});
    attack_with((struct attack){.name = "generated", .entry = spin_generated, .endless = true});
}

static int64_t spin_by_paying(void *argument)
{
    (void)argument;
    for (;;) JANUS_IGNORE(janus_charge(janus_price_loop(7)));
    return 0;
}

static int64_t spin_by_yielding(void *argument)
{
    (void)argument;
    for (;;) {
        if (janus_yield() != JANUS_OK && janus_check() != JANUS_OK) return JANUS_CANCELLED;
    }
}

TEST("a loop of charges and a loop of yields keep nobody from finishing")
{
    attack_with((struct attack){
        .name = "payer", .entry = spin_by_paying, .pool = &small_pool, .why = "ops"});
    attack_with((struct attack){.name = "payer", .entry = spin_by_paying, .endless = true});
    attack_with((struct attack){.name = "yielder", .entry = spin_by_yielding, .endless = true});
}

/* Fork bombs. */

struct bomb {
    atomic_int started, refused;
    int        most;
};

/* Starts spinners until it is refused, and then goes on trying. */
static int64_t direct_bomb(void *argument)
{
    struct bomb  *bomb = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = "bomb")), JANUS_OK);
    while (janus_check() == JANUS_OK) {
        janus_status status = janus_spawn(&n, spin_until_told, NULL);
        if (status == JANUS_OK) {
            atomic_fetch_add(&bomb->started, 1);
            continue;
        }
        if (status == JANUS_CANCELLED || status == JANUS_CLOSED) break;
        CHECK(status == JANUS_TASK_LIMIT || status == JANUS_SPAWN_BUDGET);
        check_explained("direct", janus_status_name(status));
        if (atomic_fetch_add(&bomb->refused, 1) > 1000) break;
    }
    (void)janus_nursery_cancel(&n);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

/* Each starts two more of itself. */
static int64_t nested_bomb(void *argument)
{
    struct bomb  *bomb = argument;
    janus_nursery n;
    if (janus_nursery_open(&n, NULL) < 0) return 0;
    for (int i = 0; i < 2; i++) {
        if (atomic_load(&bomb->started) > 20000) break;
        janus_status status = janus_spawn(&n, nested_bomb, argument);
        if (status == JANUS_OK) {
            atomic_fetch_add(&bomb->started, 1);
            continue;
        }
        CHECK(status == JANUS_TASK_LIMIT || status == JANUS_SPAWN_BUDGET ||
              status == JANUS_CANCELLED || status == JANUS_CLOSED);
        atomic_fetch_add(&bomb->refused, 1);
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

/* Each opens a pool inside the pool, as large as it can, and starts itself there. */
static int64_t pool_bomb(void *argument)
{
    struct bomb  *bomb = argument;
    janus_nursery n;
    janus_budget  pool = janus_budget_get_current();
    pool.spawn_count = 2;
    while (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)) < 0) {
        atomic_fetch_add(&bomb->refused, 1);
        if (pool.ops < 2) return 0;
        pool = janus_budget_of(pool.ops / 2, pool.memory / 2, pool.spawn_count / 2, 0, 0);
    }
    for (int i = 0; i < 3; i++) {
        if (janus_spawn(&n, pool_bomb, argument) == JANUS_OK) {
            atomic_fetch_add(&bomb->started, 1);
        } else {
            atomic_fetch_add(&bomb->refused, 1);
        }
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

TEST("a fork bomb gets TASK_LIMIT at the limit of live tasks, and neighbours get room")
{
    struct bomb bomb = {0};
    attack_with((struct attack){.name = "direct", .entry = direct_bomb, .argument = &bomb});
    CHECK(bomb.started <= 4 * 99 && bomb.refused > 0);
}

TEST("a fork bomb in a pool uses up the pool's spawns and no more")
{
    struct bomb        bomb = {0};
    const janus_budget pool = janus_budget_of(20000, 1 << 20, 5, 0, 0);
    const janus_budget share = janus_budget_of(5000, 0, 0, 0, 0);
    attack_with((struct attack){
        .name = "direct", .entry = direct_bomb, .argument = &bomb, .pool = &pool, .share = &share});
    CHECK(bomb.started <= 4 * 4 && bomb.refused > 0); /* one of the five is this task */
}

TEST("a fork bomb of fork bombs is contained, with implicit budgets and in a pool")
{
    struct bomb        bomb = {0};
    const janus_budget pool = janus_budget_of(90000, 1 << 20, 50, 0, 0);
    const janus_budget share = janus_budget_of(100, 0, 0, 0, 0);
    attack_with((struct attack){.name = "nested", .entry = nested_bomb, .argument = &bomb});
    CHECK(bomb.refused > 0);
    bomb = (struct bomb){0};
    attack_with((struct attack){
        .name = "nested", .entry = nested_bomb, .argument = &bomb, .pool = &pool, .share = &share});
    CHECK(bomb.started <= 4 * 49 && bomb.refused > 0);
}

TEST("a bomb of nested pools cannot start more than the outermost pool has spawns")
{
    struct bomb        bomb = {0};
    const janus_budget pool = janus_budget_of(90000, 1 << 20, 30, 0, 0);
    const janus_budget share = janus_budget_of(1000, 1000, 0, 0, 0);
    attack_with((struct attack){
        .name = "pools", .entry = pool_bomb, .argument = &bomb, .pool = &pool, .share = &share});
    CHECK(bomb.started > 0 && bomb.started <= 4 * 29 && bomb.refused > 0);
}

/* Allocation bombs. */

static int64_t many_small(void *argument)
{
    (void)argument;
    for (;;) {
        if (janus_alloc(1000) == NULL) return JANUS_CANCELLED;
    }
}

static int64_t one_huge(void *argument)
{
    volatile size_t huge = (size_t)1 << 46;
    (void)argument;
    return janus_alloc(huge) != NULL;
}

static int64_t most_of_all(void *argument)
{
    volatile size_t most = SIZE_MAX - 8;
    (void)argument;
    return janus_alloc(most) != NULL;
}

static int64_t grow_for_ever(void *argument)
{
    char *block = NULL;
    (void)argument;
    for (size_t size = 16;; size *= 2) {
        char *larger = janus_realloc(block, size);
        if (larger == NULL) return JANUS_CANCELLED;
        block = larger;
    }
}

TEST("tasks that allocate many small, one huge or growing blocks end when their memory budget is "
     "used up")
{
    janus_entry *const bombs[] = {many_small, one_huge, most_of_all, grow_for_ever};
    for (int i = 0; i < 4; i++) {
        attack_with((struct attack){.name = "allocator", .entry = bombs[i], .why = "memory"});
        attack_with((struct attack){
            .name = "allocator", .entry = bombs[i], .pool = &small_pool, .why = "memory"});
    }
}

/* The pool's memory is one mebibyte; the child that asks for more has none. */
static int64_t poor_but_honest(void *argument)
{
    CHECK(janus_alloc(500000) != NULL); /* from the pool */
    return count_me(argument);
}

static int64_t pool_of_two(void *argument)
{
    janus_nursery n;
    atomic_int    finished = 0;
    janus_budget  pool = janus_budget_of(50000, 1 << 20, 2, 0, 0), none = {10000, 0, 0, 0, 0};
    (void)argument;
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.budget = &pool, .policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, one_huge, NULL, JANUS_SPAWN_OPTIONS(.budget = &none), NULL),
             JANUS_OK);
    (void)await_exhausted(&n);
    CHECK_EQ(books_of(&n).left.memory, 1 << 20); /* it took nothing */
    CHECK_EQ(janus_spawn_with(&n, poor_but_honest, &finished, JANUS_SPAWN_OPTIONS(.budget = &none),
                              NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(finished, 1);
    return 0;
}

TEST("a request for more than a pool has takes nothing from it") { rig_all(pool_of_two, NULL, 5); }

struct mine {
    void *blocks[64];
};

static int64_t adopt_all(void *argument)
{
    struct mine *mine = argument;
    int          adopted = 0;
    for (int i = 0; i < 64; i++) {
        janus_status status = janus_adopt(mine->blocks[i]);
        if (status != JANUS_OK) {
            CHECK_EQ(status, JANUS_BUDGET_EXHAUSTED);
            check_explained("adopter", "memory");
            janus_discard(mine->blocks[i]);
            continue;
        }
        adopted++;
    }
    CHECK_EQ(adopted, 10); /* of 100,000 bytes each */
    return 0;
}

/* It pays for them until it ends. */
static int64_t leave_eight(void *argument)
{
    void **blocks = argument;
    for (int i = 0; i < 8; i++) {
        blocks[i] = janus_detach(janus_alloc(100000));
        CHECK(blocks[i] != NULL);
    }
    return 0;
}

static int64_t adopt_bomb(void *argument)
{
    struct mine   mine;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 64; i += 8) {
        CHECK_EQ(janus_spawn(&n, leave_eight, &mine.blocks[i]), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, adopt_all, &mine, JANUS_SPAWN_OPTIONS(.name = "adopter"), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a task that adopts without end gets what its budget allows") { rig_all(adopt_bomb, NULL, 3); }

/* Beyond the limits. */

static int64_t recharge_for_ever(void *argument)
{
    janus_budget granted, all = janus_budget_zero();
    janus_budget ask = janus_budget_of(UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    janus_budget most = janus_budget_service_default();
    bool         implicit = argument != NULL;
    for (int i = 0; i < 100; i++) {
        janus_status status = janus_budget_recharge_current(ask, &granted);
        CHECK_EQ(status, implicit ? JANUS_CLAMPED : JANUS_NO_BUDGET_CAP);
        if (implicit) all = janus_budget_add(all, granted);
        if (!implicit) check_explained("charger", "JANUS_NO_BUDGET_CAP");
    }
    CHECK(janus_budget_equal(all, implicit ? most : janus_budget_zero()));
    return spin(NULL);
}

TEST("a task that recharges itself without end gets the limit once, and with an explicit budget "
     "nothing")
{
    attack_with((struct attack){
        .name = "charger", .entry = recharge_for_ever, .argument = "implicit", .endless = true});
    attack_with((struct attack){
        .name = "charger", .entry = recharge_for_ever, .pool = &small_pool, .why = "ops"});
}

static int64_t mint_without(void *argument)
{
    janus_authority *root = NULL;
    janus_cap        cap = {0}, forged = {1, 1, 12345};
    janus_cap_limits limits = {.spawn = {.max_tasks = 1000000}};
    janus_cap_grant *grant = JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
                                             .rights = JANUS_RIGHTS_ALL, .limits = &limits);
    janus_nursery    n;
    (void)argument;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_NO_AUTHORITY);
    check_explained("minter", "JANUS_NO_AUTHORITY");
    CHECK(root == NULL);
    CHECK_EQ(janus_cap_mint(NULL, 0, grant, &cap), JANUS_NO_AUTHORITY);
    CHECK_EQ(janus_cap_attenuate(forged, grant, &cap), JANUS_CAP_FORGED);
    CHECK_EQ(janus_cap_delegate(forged, janus_task_current_id(), grant, &cap), JANUS_CAP_FORGED);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = forged)), JANUS_CAP_FORGED);
    check_explained("minter", "JANUS_CAP_FORGED");
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget_cap = forged)), JANUS_CAP_FORGED);
    return 0;
}

TEST("a task without the authority gets no capability by minting, deriving or guessing")
{
    attack_with((struct attack){.name = "minter", .entry = mint_without});
}

static void defer_spin(void *argument) { (void)spin(argument); }

static int64_t die_slowly(void *argument)
{
    for (int i = 0; i < 20; i++) CHECK_EQ(janus_defer(defer_spin, argument), JANUS_OK);
    return 0;
}

static int64_t shield_and_spin(void *argument)
{
    janus_shield_begin();
    return spin(argument);
}

TEST("a task that spins in defers, or behind a shield in a pool, ends")
{
    attack_with((struct attack){.name = "defers",
                                .entry = die_slowly,
                                .pool = &small_pool,
                                .why = "JANUS_BUDGET_EXHAUSTED"});
    attack_with((struct attack){.name = "defers", .entry = die_slowly, .why = "BUDGET_EXHAUSTED"});
    attack_with((struct attack){
        .name = "shielded", .entry = shield_and_spin, .pool = &small_pool, .why = "ops"});
}

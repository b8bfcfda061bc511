/* SPDX-License-Identifier: MIT */
/* One nursery tries to fill the scheduler's table of capabilities by deriving. */
#include "caps.h"

#include <string.h>

enum { MOST = 50 };

static janus_authority *root;

struct deriver {
    const char *whose;   /* whose limit it reaches; NULL: nobody's */
    int         wanted;  /* how many it derives */
    atomic_int  arrived; /* derivers that keep theirs */
    atomic_int  open;
};

static janus_cap derive_from(janus_cap cap)
{
    janus_cap out = {0};
    CHECK_EQ(janus_cap_attenuate(cap, JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL), &out), JANUS_OK);
    return out;
}

/* Derives up to the limit, and stays until the test lets it end. */
static int64_t derive(void *argument)
{
    struct deriver *deriver = argument;
    janus_cap       own = caps_spawn(root, 10), out;
    char            text[500];
    for (int i = 0; i < deriver->wanted; i++) (void)derive_from(own);
    if (deriver->whose != NULL) {
        const janus_cap_grant *grant = JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL);
        CHECK_EQ(janus_cap_attenuate(own, grant, &out), JANUS_FULL);
        CHECK(janus_explain(text, sizeof text) < sizeof text);
        CHECK(strstr(text, deriver->whose) != NULL);
        CHECK(strstr(text, "50 of 50 used") != NULL);
        CHECK(strstr(text, "max_derived_caps") != NULL);
        CHECK_EQ(janus_cap_delegate(own, janus_task_current_id(), NULL, &out),
                 JANUS_NOT_DELEGATABLE);
    }
    atomic_fetch_add(&deriver->arrived, 1);
    while (!atomic_load(&deriver->open)) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_cap_release(own), JANUS_OK);
    return 0;
}

/* Starts a deriver, and waits until it has derived. */
static void start(janus_nursery *n, janus_entry *entry, struct deriver *deriver)
{
    CHECK_EQ(janus_spawn(n, entry, deriver), JANUS_OK);
    CHECK(rig_wait(&deriver->arrived));
}

static void with_limit(janus_entry *entry)
{
    static const uint32_t workers[] = {1, 2, 8};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers[i],
                                                   .yield_interval = 512, .max_derived_caps = MOST),
                           entry, NULL, NULL),
                 JANUS_OK);
    }
}

static uint64_t live(void) { return caps_stats(janus_scheduler_current()).live; }

static void open_named(janus_nursery *n, const char *name)
{
    CHECK_EQ(janus_nursery_open(
                 n, JANUS_NURSERY_OPTIONS(.spawn_cap = caps_spawn(root, 100), .name = name)),
             JANUS_OK);
}

/* Opens a nursery of its own, which lies beside others. */
static int64_t derive_in(void *argument)
{
    janus_nursery   n;
    struct deriver *deriver = argument;
    open_named(&n, deriver->whose != NULL ? "greedy" : "modest");
    CHECK_EQ(janus_spawn(&n, derive, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t beside(void *argument)
{
    struct deriver greedy = {.whose = "derived capabilities of nursery \"greedy\"", .wanted = MOST};
    struct deriver modest = {.wanted = MOST - 1};
    janus_nursery  n;
    (void)argument;
    root = caps_root();
    janus_cap own = caps_spawn(root, 10);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    start(&n, derive_in, &greedy);
    start(&n, derive_in, &modest);
    for (int i = 0; i < 2 * MOST; i++) (void)derive_from(own); /* nothing restricts the owner */
    atomic_store(&greedy.open, 1);
    atomic_store(&modest.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a refusal at a nursery's limit of derived capabilities names the nursery, and others still "
     "derive")
{
    with_limit(beside);
}

static int64_t derive_inside(void *argument)
{
    struct deriver inner = {.whose = "derived capabilities of nursery \"outer\"",
                            .wanted = MOST / 2};
    janus_nursery  n;
    (void)argument;
    open_named(&n, "inner");
    start(&n, derive, &inner);
    atomic_store(&inner.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t nested(void *argument)
{
    struct deriver first = {.wanted = MOST / 2};
    janus_nursery  n;
    (void)argument;
    root = caps_root();
    open_named(&n, "outer");
    start(&n, derive, &first);
    janus_task_id second;
    CHECK_EQ(janus_spawn_with(&n, derive_inside, NULL, NULL, &second), JANUS_OK);
    CHECK_EQ(janus_join(&n, second, NULL), JANUS_OK);
    atomic_store(&first.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a nursery inside a nursery derives no more than the outer one has left")
{
    with_limit(nested);
}

static janus_cap handed; /* delegated out of a nursery */

/* A capability of the current task that it may delegate. */
static janus_cap mint_own(void)
{
    janus_cap        own = {0};
    janus_cap_limits limits = {.spawn = {.max_tasks = 1}};
    CHECK_EQ(
        janus_cap_mint(root, 0,
                       JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = JANUS_RIGHTS_ALL,
                                       .limits = &limits, .delegation_depth = 5),
                       &own),
        JANUS_OK);
    return own;
}

static int64_t derive_and_leave(void *argument)
{
    janus_task_id to = *(const janus_task_id *)argument;
    janus_cap     own = mint_own(), out;
    for (int i = 0; i < MOST / 2; i++) {
        out = derive_from(own);
        if (i % 3 == 0) CHECK_EQ(janus_cap_release(out), JANUS_OK);
    }
    CHECK_EQ(janus_cap_delegate(own, to, NULL, &handed), JANUS_OK);
    CHECK_EQ(janus_cap_release(own), JANUS_OK);
    return 0;
}

static int64_t come_and_go(void *argument)
{
    janus_task_id me = janus_task_current_id();
    uint64_t      before = 0;
    (void)argument;
    root = caps_root();
    for (int i = 0; i < 20; i++) {
        janus_nursery n;
        janus_cap     spawn = caps_spawn(root, 100), out;
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn)), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, derive_and_leave, &me), JANUS_OK);
        CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_cap_check(handed, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_TASK), JANUS_OK);
        out = derive_from(handed);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_cap_check(handed, JANUS_CAP_KIND_SPAWN, 0), JANUS_CAP_REVOKED);
        CHECK_EQ(janus_cap_check(out, JANUS_CAP_KIND_SPAWN, 0), JANUS_CAP_REVOKED);
        CHECK_EQ(janus_cap_release(spawn), JANUS_OK);
        if (i == 0) before = live();
        CHECK_EQ(live(), before);
    }
    return 0;
}

TEST("capabilities that a nursery's children derived end with it, and nothing is left behind")
{
    with_limit(come_and_go);
}

static int64_t child_alone(void *argument)
{
    struct deriver child = {.whose = "derived capabilities of this task", .wanted = MOST};
    janus_nursery  n;
    (void)argument;
    root = caps_root();
    janus_cap own = caps_spawn(root, 100);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    atomic_store(&child.open, 1);
    uint64_t before = live();
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(janus_spawn_with(&n, derive, &child, JANUS_SPAWN_OPTIONS(.spawn_cap = own), NULL),
                 JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(live(), before);
    return 0;
}

TEST("a child with its own capabilities has its own limit, and what it derived ends with it")
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_derived_caps = MOST),
                       child_alone, NULL, NULL),
             JANUS_OK);
}

/* Another task ends what a nursery derived while the nursery ends. */

struct race {
    janus_task_id to;
    atomic_int    given, ended; /* rounds */
    janus_cap     cap;
};

enum { ROUNDS = 200 };

static int64_t give_away(void *argument)
{
    struct race *race = argument;
    janus_cap    own = mint_own();
    CHECK_EQ(janus_cap_delegate(own, race->to, NULL, &race->cap), JANUS_OK);
    CHECK_EQ(janus_cap_release(own), JANUS_OK);
    atomic_fetch_add(&race->given, 1);
    return 0;
}

static int64_t give_up(void *argument)
{
    struct race *race = argument;
    for (int i = 1; i <= ROUNDS; i++) {
        while (atomic_load(&race->given) < i) CHECK_EQ(janus_yield(), JANUS_OK);
        janus_status status = janus_cap_release(race->cap);
        CHECK(status == JANUS_OK || status == JANUS_CAP_REVOKED);
        atomic_store(&race->ended, i);
    }
    return 0;
}

static int64_t end_beside(void *argument)
{
    struct race   race = {0};
    janus_nursery n, pool;
    (void)argument;
    root = caps_root();
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, give_up, &race, NULL, &race.to), JANUS_OK);
    for (int i = 1; i <= ROUNDS; i++) {
        open_named(&pool, "pool");
        CHECK_EQ(janus_spawn(&pool, give_away, &race), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&pool, NULL), JANUS_OK);
        while (atomic_load(&race.ended) < i) CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("others may release a nursery's derived capabilities while the nursery ends") /* under tsan */
{
    with_limit(end_beside);
}

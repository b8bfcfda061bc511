/* SPDX-License-Identifier: MIT */
/*
 * Random programs of parallel calls, nurseries, waits, failures and panics, all at once on more
 * workers than CPUs. Each counts what it has begun and what has ended. When a call has returned,
 * nothing of it is left, however it ended.
 */
#include "rig.h"

enum { DEPTH = 6, PROGRAMS = RIG_SLOW ? 10 : 400, WORKERS = 4 };

struct grove {
    atomic_int running; /* calls that have not ended */
    atomic_int calls;
    bool       breaks; /* some fail, and some panic */
};

struct tree {
    struct grove *grove;
    uint64_t      seed;
    int           depth;
};

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static int64_t grow(void *argument);

static void leave(void *argument) { atomic_fetch_sub((atomic_int *)argument, 1); }

static int64_t grow_range(void *argument, uint64_t begin, uint64_t end)
{
    const struct tree *tree = argument;
    for (uint64_t i = begin; i < end; i++) {
        struct tree branch = {tree->grove, tree->seed + i * 977, tree->depth - 1};
        int64_t     status = grow(&branch);
        if (status < 0) return status;
    }
    return 0;
}

static int64_t fold_range(void *argument, uint64_t begin, uint64_t end, void *value)
{
    *(uint64_t *)value += end - begin;
    return grow_range(argument, begin, end);
}

static int64_t sum(void *argument, void *value, const void *right)
{
    (void)argument;
    *(uint64_t *)value += *(const uint64_t *)right;
    return 0;
}

static int64_t grow_children(struct tree *tree)
{
    janus_nursery n;
    struct tree   branches[2] = {{tree->grove, tree->seed + 1, tree->depth - 1},
                                 {tree->grove, tree->seed + 2, tree->depth - 1}};
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    janus_status spawned = janus_spawn(&n, grow, &branches[0]);
    CHECK(spawned == JANUS_OK || spawned == JANUS_CANCELLED || spawned == JANUS_CLOSED);
    int64_t      own = grow(&branches[1]);
    janus_status ended = janus_nursery_end(&n, NULL);
    /* Its own part may only have learned that the child failed. */
    return own >= 0 || ended == JANUS_CHILD_FAILED ? ended : own;
}

static int64_t grow_leaf(struct tree *tree)
{
    uint64_t kind = next(&tree->seed) % 64;
    if (kind < 20) return janus_yield();
    if (kind < 26) return janus_sleep(1000 * (kind - 19));
    if (kind < 30) return janus_check_n(3000);
    if (tree->grove->breaks && kind == 30) return -5;
    if (tree->grove->breaks && kind == 31) janus_panic("a leaf broke");
    return 0;
}

static int64_t grow_inside(struct tree *tree)
{
    if (tree->depth == 0) return grow_leaf(tree);
    struct tree left = {tree->grove, next(&tree->seed), tree->depth - 1};
    struct tree right = {tree->grove, next(&tree->seed), tree->depth - 1};
    uint64_t    total = 0;
    int64_t     status;
    switch (next(&tree->seed) % 8) {
    case 0: return janus_for(janus_range_by(0, 5, 1), grow_range, tree);
    case 1: return janus_for(janus_range_of(0, 4), grow_range, tree);
    case 2:
        status = janus_reduce(janus_range_by(0, 6, 2), fold_range, sum, tree, &total, sizeof total);
        if (status == 0) CHECK_EQ(total, 6);
        return status;
    case 3: return grow_children(tree);
    case 4: return grow_leaf(tree);
    default: return janus_both(grow, &left, grow, &right);
    }
}

/* A defer counts off a call that may panic, in a task of its own. Others count themselves. */
static int64_t grow(void *argument)
{
    struct tree *tree = argument;
    if (!tree->grove->breaks) atomic_fetch_add(&tree->grove->running, 1);
    atomic_fetch_add(&tree->grove->calls, 1);
    int64_t status = grow_inside(tree);
    if (!tree->grove->breaks) atomic_fetch_sub(&tree->grove->running, 1);
    return status;
}

static int64_t plant(void *argument)
{
    struct tree *tree = argument;
    if (tree->grove->breaks) {
        atomic_fetch_add(&tree->grove->running, 1);
        CHECK_EQ(janus_defer(leave, &tree->grove->running), JANUS_OK);
    }
    return grow(tree);
}

/* Three programs beside each other; checks that nothing is left when all have ended. */
static int64_t programs(void *argument)
{
    struct tree         *seeds = argument;
    janus_nursery        n;
    janus_nursery_result result;
    struct grove         grove = {.breaks = seeds->depth != 0};
    struct tree          trees[3];
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < 3; i++) {
        trees[i] = (struct tree){&grove, next(&seeds->seed), DEPTH};
        CHECK_EQ(janus_spawn(&n, plant, &trees[i]), JANUS_OK);
    }
    janus_status status = janus_nursery_end(&n, &result);
    if (!grove.breaks) CHECK_EQ(status, JANUS_OK);
    if (status == JANUS_CHILD_FAILED && result.panic.kind != JANUS_PANIC_KIND_NONE) {
        CHECK_STR(result.panic.message, "a leaf broke");
    } else if (status != JANUS_OK) {
        CHECK(result.error == -5 || result.error == JANUS_CHILD_FAILED);
    }
    CHECK_EQ(grove.running, 0);
    int calls = grove.calls;
    JANUS_IGNORE(janus_yield());
    CHECK_EQ(grove.calls, calls);
    return 0;
}

TEST("random parallel programs end, and none of their calls goes on afterwards")
{
    struct tree seeds = {.seed = 1};
    rig_run(WORKERS, programs, &seeds, PROGRAMS);
    rig_run(2, programs, &seeds, PROGRAMS);
}

TEST("random parallel programs whose calls fail and panic end, and report that")
{
    struct tree seeds = {.seed = 2, .depth = 1};
    rig_run(WORKERS, programs, &seeds, PROGRAMS);
    rig_run(2, programs, &seeds, PROGRAMS);
}

/* SPDX-License-Identifier: MIT */
/*
 * Tasks show guessed, altered, stale or copied handles to start children. Each is refused and
 * counted.
 */
#include "base/rng.h"
#include "caps.h"
#include "task/worker.h"

static janus_scheduler *here(void) { return jrt_worker_self()->scheduler; }

static uint64_t refused(const janus_cap_table_info *stats)
{
    return stats->refused_none + stats->refused_forged + stats->refused_stale +
           stats->refused_foreign + stats->refused_revoked + stats->refused_kind +
           stats->refused_right + stats->refused_limit + stats->refused_widens +
           stats->refused_delegation + stats->refused_authority + stats->refused_audit;
}

/* Shows the handle in the i-th way, and returns the status. */
static janus_status show(janus_nursery *n, janus_cap cap, unsigned way)
{
    janus_nursery inner;
    switch (way % 4) {
    case 0: return janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.spawn_cap = cap));
    case 1: return janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.budget_cap = cap));
    case 2: return janus_spawn_with(n, nothing, NULL, JANUS_SPAWN_OPTIONS(.spawn_cap = cap), NULL);
    default:
        return janus_spawn_with(n, nothing, NULL, JANUS_SPAWN_OPTIONS(.budget_cap = cap), NULL);
    }
}

static bool is_refusal(janus_status status)
{
    return status == JANUS_CAP_FORGED || status == JANUS_CAP_STALE;
}

/* A million. */

static int64_t guess(void *argument)
{
    const int            tries = RIG_SLOW ? 40000 : 1000000;
    struct jrt_rng       rng;
    janus_nursery        n;
    janus_cap_table_info before, after;
    (void)argument;
    const janus_authority *root = caps_root();
    janus_cap              real[8];
    for (int i = 0; i < 8; i++) real[i] = caps_spawn(root, 100);
    caps_open(&n, real[0]);
    jrt_rng_seed(&rng, 20261115);
    before = caps_stats(here());
    for (int i = 0; i < tries; i++) {
        uint64_t  bits = jrt_rng_next(&rng);
        janus_cap cap = {.slot = (uint32_t)bits % 10, /* most of them name used places */
                         .generation = (uint32_t)(bits >> 32) % 3, /* and possible generations */
                         .nonce = jrt_rng_next(&rng)};             /* but not the nonce */
        if (i % 8 == 0) cap.slot = (uint32_t)(bits >> 8);
        if (i % 16 == 0) cap.generation = (uint32_t)(bits >> 32);
        janus_status status = show(&n, cap, (unsigned)i);
        CHECK(is_refusal(status));
    }
    after = caps_stats(here());
    CHECK_EQ(refused(&after) - refused(&before), tries);
    CHECK_EQ(after.refused_forged + after.refused_stale - before.refused_forged -
                 before.refused_stale,
             tries);
    CHECK_EQ(after.live, 8);
    CHECK_EQ(caps_context().tasks_alive, 0);
    return janus_nursery_end(&n, NULL);
}

/* CAP:12.1.1/forge, SCHED:15.1.2. */
TEST("of a million guessed handles none starts a task or opens a nursery, and all are counted")
{
    caps_sovereign(1, guess, NULL);
}

/* Flipped. */

static janus_cap flip(janus_cap cap, unsigned bit)
{
    if (bit < 32) cap.slot ^= 1u << bit;
    if (bit >= 32 && bit < 64) cap.generation ^= 1u << (bit - 32);
    if (bit >= 64) cap.nonce ^= UINT64_C(1) << (bit - 64);
    return cap;
}

static int64_t alter(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              real = caps_spawn(root, 100);
    janus_nursery          n;
    uint64_t               shown = 0;
    (void)argument;
    for (int i = 0; i < 70; i++) (void)caps_spawn(root, 1); /* neighbours to hit */
    caps_open(&n, real);
    janus_cap_table_info before = caps_stats(here());
    for (unsigned one = 0; one < 128; one++) {
        for (unsigned two = one; two < 128; two++) {
            janus_cap cap = flip(real, one);
            if (two != one) cap = flip(cap, two);
            CHECK(is_refusal(show(&n, cap, two)));
            shown++;
        }
    }
    janus_cap_table_info after = caps_stats(here());
    CHECK_EQ(refused(&after) - refused(&before), shown);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

/* CAP:12.1.1/forge. */
TEST("a handle with one or two changed bits is refused like a guessed one")
{
    caps_sovereign(1, alter, NULL);
}

/* Kept too long. */

static int64_t keep_old(void *argument)
{
    enum { KEPT = 64 };
    const janus_authority *root = caps_root();
    janus_cap              old[KEPT], gone = caps_spawn(root, 5);
    janus_nursery          n;
    (void)argument;
    caps_open(&n, caps_spawn(root, 100));
    for (int i = 0; i < KEPT; i++) {
        old[i] = caps_spawn(root, 5);
        CHECK_EQ(janus_cap_release(old[i]), JANUS_OK);
    }
    for (int i = 0; i < KEPT; i++) (void)caps_spawn(root, 5); /* their places are used again */
    CHECK_EQ(janus_cap_revoke(gone, gone), JANUS_OK);
    janus_cap_table_info before = caps_stats(here());
    for (unsigned i = 0; i < KEPT; i++) CHECK_EQ(show(&n, old[i], i), JANUS_CAP_STALE);
    for (unsigned i = 0; i < 4; i++) CHECK_EQ(show(&n, gone, i), JANUS_CAP_REVOKED);
    janus_cap_table_info after = caps_stats(here());
    CHECK_EQ(after.refused_stale - before.refused_stale, KEPT);
    CHECK_EQ(after.refused_revoked - before.refused_revoked, 4);
    return janus_nursery_end(&n, NULL);
}

/* CAP:12.1.1/forge. */
TEST("a released or revoked handle stays invalid when its place is used again")
{
    caps_sovereign(1, keep_old, NULL);
}

/* Of another kind, or nothing. */

static int64_t confuse(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              spawn = caps_spawn(root, 5);
    janus_cap              budget = caps_budget(root, JANUS_RIGHTS_ALL, 10, 10);
    janus_nursery          n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    janus_cap_table_info before = caps_stats(here());
    CHECK_EQ(show(&n, budget, 0), JANUS_CAP_KIND);
    CHECK_EQ(show(&n, spawn, 1), JANUS_CAP_KIND);
    CHECK_EQ(show(&n, budget, 2), JANUS_CAP_KIND);
    CHECK_EQ(show(&n, spawn, 3), JANUS_CAP_KIND);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_NO_SPAWN_CAP);
    janus_cap_table_info after = caps_stats(here());
    CHECK_EQ(after.refused_kind - before.refused_kind, 4);
    CHECK_EQ(after.refused_none - before.refused_none, 1);
    return janus_nursery_end(&n, NULL);
}

/* CAP:12.1.1/forge, C33. */
TEST("a capability of another kind is refused, and a spawn without any is counted, too")
{
    caps_sovereign(1, confuse, NULL);
}

/* Copied; many at once. */

struct thief {
    const janus_cap *loot;
    atomic_int       tries;
};

static int64_t steal(void *argument)
{
    struct thief *thief = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (unsigned i = 0; i < (RIG_SLOW ? 200 : 5000); i++) {
        CHECK_EQ(show(&n, *thief->loot, i * 2), JANUS_CAP_FOREIGN); /* as a spawn capability */
        atomic_fetch_add(&thief->tries, 1);
    }
    return janus_nursery_end(&n, NULL);
}

static int64_t be_robbed(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              ours = caps_spawn(root, 100);
    struct thief           thief = {.loot = &ours};
    janus_nursery          n;
    (void)argument;
    caps_open(&n, caps_spawn(root, 8));
    janus_cap_table_info before = caps_stats(here());
    for (int i = 0; i < 8; i++) CHECK_EQ(janus_spawn(&n, steal, &thief), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    janus_cap_table_info after = caps_stats(here());
    CHECK_EQ(after.refused_foreign - before.refused_foreign, thief.tries);
    CHECK_EQ(refused(&after) - refused(&before), thief.tries);
    return 0;
}

/* CAP:12.1.1/ref. */
TEST("a handle copied by eight tasks at once starts nothing, and every try is counted")
{
    caps_all(be_robbed, NULL);
}

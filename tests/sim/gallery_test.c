/* SPDX-License-Identifier: MIT */
/*
 * Random schedules and PCT find every bug of the gallery within a stated number of schedules, and
 * replay it. With the fix no schedule fails. docs/gallery.md has the measured numbers. The numbers
 * stated here are about four times the median. A single seed may miss them, so most of several
 * seeds must keep them.
 */
#include "../task/rig.h"
#include "gallery/gallery.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In slow builds the executions are the same, so a few of each are enough. They check that nothing
 * breaks, not how soon a bug is found. */
enum {
    STARTS = RIG_SLOW ? 1 : 5,
    ENOUGH = RIG_SLOW ? 0 : 3,
    FEWER = JRT_TSAN   ? 25
            : RIG_SLOW ? 10
                       : 1,    /* times */
    SMALL = RIG_SLOW ? 1 : 14, /* bugs that are minimised, for the first seed */
    APART = 1000000,
};

static const struct row {
    const struct gallery_bug *bug;
    janus_failing             failing;
    uint64_t                  random, pct; /* schedules */
} rows[] = {
    {&gallery_lost_wakeup, JANUS_FAILING_DEADLOCK, 20, 25},
    {&gallery_stolen_wakeup, JANUS_FAILING_EXPECTATION, 55, 395},
    {&gallery_aba, JANUS_FAILING_EXPECTATION, 30, 275},
    {&gallery_double_complete, JANUS_FAILING_EXPECTATION, 10, 30},
    {&gallery_check_then_act, JANUS_FAILING_EXPECTATION, 10, 20},
    {&gallery_lock_order, JANUS_FAILING_DEADLOCK, 15, 30},
    {&gallery_close_race, JANUS_FAILING_EXPECTATION, 60, 25},
    {&gallery_cancel_complete, JANUS_FAILING_EXPECTATION, 10, 20},
    {&gallery_forgotten_await, JANUS_FAILING_CONTRACT, 10, 10},
    {&gallery_use_after_end, JANUS_FAILING_STALE, 75, 30},
    {&gallery_unfair_select, JANUS_FAILING_EXPECTATION, 60, 95},
    {&gallery_double_refund, JANUS_FAILING_EXPECTATION, 20, 50},
    {&gallery_torn_update, JANUS_FAILING_EXPECTATION, 10, 20},
    {&gallery_late_release, JANUS_FAILING_EXPECTATION, 10, 15},
    {&gallery_new_mailbox, JANUS_FAILING_DEADLOCK, 20, 15},
    {&gallery_early_down, JANUS_FAILING_EXPECTATION, 25, 25},
    {&gallery_late_watch, JANUS_FAILING_DEADLOCK, 25, 20},
    {&gallery_late_reply, JANUS_FAILING_EXPECTATION, 50, 15},
    {&gallery_two_deciders, JANUS_FAILING_EXPECTATION, 10, 15},
    {&gallery_stop_in_delay, JANUS_FAILING_DEADLOCK, 10, 10},
    {&gallery_two_restarts, JANUS_FAILING_EXPECTATION, 15, 10},
    {&gallery_deaf_sender, JANUS_FAILING_DEADLOCK, 40, 25},
    {&gallery_adopted_twice, JANUS_FAILING_CONTRACT, 10, 20},
    {&gallery_paid_twice, JANUS_FAILING_EXPECTATION, 10, 20},
    {&gallery_ignored_place, JANUS_FAILING_DEADLOCK, 10, 15},
    {&gallery_lost_credit, JANUS_FAILING_DEADLOCK, 15, 15},
    {&gallery_lost_sum, JANUS_FAILING_EXPECTATION, 10, 10},
    {&gallery_half_copy, JANUS_FAILING_EXPECTATION, 30, 35},
    {&gallery_early_flag, JANUS_FAILING_EXPECTATION, 15, 15},
    {&gallery_moved_entry, JANUS_FAILING_EXPECTATION, 420, 1015},
    {&gallery_overdraft, JANUS_FAILING_EXPECTATION, 10, 10},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

#define COUNT(name) +1
_Static_assert(ROWS == 0 GALLERY(COUNT), "all of the gallery");
#undef COUNT

static uint64_t schedules_of(const struct row *row, janus_strategy strategy)
{
    uint64_t schedules = strategy == JANUS_STRATEGY_PCT ? row->pct : row->random;
    return (schedules + FEWER - 1) / FEWER;
}

/* Whether it is found from this seed on. `out` says how. */
static bool find(const struct row *row, janus_strategy strategy, uint64_t seed,
                 janus_explore_result *out)
{
    *out = (janus_explore_result){.struct_bytes = sizeof *out};
    janus_status status =
        janus_explore(JANUS_EXPLORE_OPTIONS(.strategy = strategy, .seed = seed, .quiet = true,
                                            .no_minimising = seed != 1 || row >= rows + SMALL,
                                            .schedules = schedules_of(row, strategy),
                                            .scheduler = gallery_options(row->bug)),
                      row->bug->entry, NULL, out);
    if (status == JANUS_OK) return false;
    CHECK_EQ(status, JANUS_CHILD_FAILED);
    CHECK_EQ(out->failing, row->failing);
    return true;
}

static void replay(const struct row *row, const char *text, uint64_t hash)
{
    janus_explore_result again = JANUS_EXPLORE_RESULT();
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.replay = text, .quiet = true,
                                                 .scheduler = gallery_options(row->bug)),
                           row->bug->entry, NULL, &again),
             JANUS_CHILD_FAILED);
    CHECK_EQ(again.schedules, 1);
    CHECK_EQ(again.failing, row->failing);
    CHECK_EQ(again.hash, hash);
    free(again.replay);
}

static void find_and_replay(const struct row *row, janus_strategy strategy)
{
    int found = 0;
    for (uint64_t i = 0; i < STARTS; i++) {
        janus_explore_result result;
        if (!find(row, strategy, 1 + i * APART, &result)) continue;
        found++;
        for (int times = 0; times < 2; times++) replay(row, result.replay, result.hash);
        free(result.replay);
    }
    if (found < ENOUGH) {
        printf("# %s: found from %d of %d seeds on\n", row->bug->name, found, STARTS);
    }
    CHECK(found >= ENOUGH);
}

TEST("random schedules find each bug within its number of schedules, and replay it")
{
    for (int i = 0; i < ROWS; i++) find_and_replay(&rows[i], JANUS_STRATEGY_RANDOM);
}

TEST("PCT finds each bug within its number of schedules, and replays it")
{
    for (int i = 0; i < ROWS; i++) find_and_replay(&rows[i], JANUS_STRATEGY_PCT);
}

static void survive(const struct row *row, janus_strategy strategy)
{
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    uint64_t             schedules = schedules_of(row, strategy) * 2;
    janus_status         status =
        janus_explore(JANUS_EXPLORE_OPTIONS(.strategy = strategy, .schedules = schedules,
                                            .quiet = true, .scheduler = gallery_options(row->bug)),
                      row->bug->entry, GALLERY_MENDED, &result);
    if (status != JANUS_OK) {
        printf("# %s: %s; replay %s\n", row->bug->name, result.message, result.replay);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(result.schedules, schedules);
}

TEST("with the fix, none of as many schedules fails")
{
    for (int i = 0; i < ROWS; i++) {
        survive(&rows[i], JANUS_STRATEGY_RANDOM);
        survive(&rows[i], JANUS_STRATEGY_PCT);
    }
}

TEST("races of loops that only check need schedules that stop them at checks")
{
    for (int i = 0; i < ROWS; i++) {
        janus_explore_result result = JANUS_EXPLORE_RESULT();
        if (gallery_options(rows[i].bug) == NULL) continue;
        CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.schedules = 50, .quiet = true),
                               rows[i].bug->entry, NULL, &result),
                 JANUS_OK);
    }
}

static void find_and_print(void *argument)
{
    janus_explore_result result;
    for (uint64_t seed = 1; !find(argument, JANUS_STRATEGY_RANDOM, seed, &result); seed += APART) {
    }
    printf("%" PRIx64 " %s\n", result.hash, result.replay);
    fflush(stdout);
    free(result.replay);
}

TEST("a replay text works in another process than the finder's")
{
    for (int i = 0; i < ROWS; i += FEWER) {
        int         ended;
        const char *told = harness_child(find_and_print, (void *)(uintptr_t)&rows[i], &ended);
        uint64_t    hash;
        char        text[HARNESS_TEXT_BYTES];
        CHECK_EQ(ended, 0);
        CHECK_EQ(sscanf(told, "%" SCNx64 " %4095s", &hash, text), 2);
        replay(&rows[i], text, hash);
    }
}

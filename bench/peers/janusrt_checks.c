/* SPDX-License-Identifier: MIT */
/*
 * What do the checks cost that others do not have: of the turn and the budget, and of a capability?
 *
 * Timed: a loop of about 20 instructions a round, a walk along a chain, with janus_check in each
 *        round and without ("unchecked"), side by side in one task; janus_cap_check_in of one
 *        capability.
 * Moves it: where the loop's code lies, some percent either way. The time includes the ends of
 *        slices. The argument of a capability's check depends on the result before.
 * Expect: at most 1.03 of the loop without, and 2 to 3 ns for a capability. check_bench.c and
 *        cap_bench.c have other loops, other ways to check, and the cost of changing capabilities.
 */
#include "chain.h"
#include "runner.h"

#include <janusrt/janus.h>

enum { HOLDER = 1 };

#define LOOP "a loop with a check in it, a turn"

static volatile uint64_t sink;
static janus_cap_table  *table;
static janus_cap         caps[1];

static uint64_t rounds(void) { return runner.quick ? 1000000 : 5000000; }

static __attribute__((noinline, aligned(64))) uint64_t plain_loop(uint64_t turns)
{
    uint64_t state = 1;
    for (uint64_t i = 0; i < turns; i++) state = chain_walk(state, i);
    return state;
}

static __attribute__((noinline, aligned(64))) uint64_t checked_loop(uint64_t turns)
{
    uint64_t state = 1;
    for (uint64_t i = 0; i < turns; i++) {
        if (janus_check() != JANUS_OK) return 0;
        state = chain_walk(state, i);
    }
    return state;
}

static double timed(uint64_t (*loop)(uint64_t turns))
{
    uint64_t start = bench_now_ns();
    uint64_t found = loop(rounds());
    double   spent = (double)(bench_now_ns() - start) / (double)rounds();
    runner_need(sink == 0 || sink == found, "the loops differ");
    sink = found;
    return spent;
}

static double plain(void) { return timed(plain_loop); }
static double checked(void) { return timed(checked_loop); }

static double capability(void)
{
    uint64_t start = bench_now_ns(), wrong = 0;
    for (uint64_t i = 0; i < rounds(); i++) {
        __asm__ volatile("" : "+r"(i), "+r"(wrong) : : "memory");
        wrong |= (uint64_t)(int64_t)janus_cap_check_in(table, caps[wrong], JANUS_CAP_KIND_SPAWN, 1,
                                                       HOLDER);
    }
    double spent = (double)(bench_now_ns() - start) / (double)rounds();
    runner_need(wrong == 0, "a capability was refused");
    return spent;
}

static int64_t turns(void *argument)
{
    static const struct runner_side sides[] = {
        {"janusrt", JANUS_VERSION_STRING, LOOP, checked},
        {"unchecked", JANUS_VERSION_STRING, LOOP, plain},
        {"janusrt", JANUS_VERSION_STRING, "a capability check", capability},
    };
    runner_sides(sides, sizeof sides / sizeof sides[0]);
    return argument == NULL ? 0 : -1;
}

static void run_checks(void)
{
    janus_authority *root = NULL;
    janus_cap_limits limits = {.spawn = {.max_tasks = 1000}};
    runner_need(janus_cap_table_create(NULL, &table, &root) == JANUS_OK, "no table");
    janus_status status =
        janus_cap_mint_in(table, root, HOLDER,
                          JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = JANUS_RIGHTS_ALL,
                                          .limits = &limits),
                          &caps[0]);
    chain_make();
    if (status == JANUS_OK) {
        status = janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), turns, NULL, NULL);
    }
    runner_need(status == JANUS_OK, janus_status_text(status));
    runner_need(janus_cap_table_destroy(table, root) == JANUS_OK, "the table cannot be destroyed");
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {{"checks", 1, run_checks}, {NULL, 0, NULL}};
    return runner_main(argc, argv, "janusrt", JANUS_VERSION_STRING, works);
}

/* SPDX-License-Identifier: MIT */
/*
 * What does a capability cost where it is used?
 *
 * Timed: a check, beside an empty loop and a call of an empty function. Checks of many
 *        capabilities, with limits, and with the audit log; a refusal; making and ending a
 *        capability. The argument of each check depends on the result before, so that checks do not
 *        overlap.
 * Moves it: whether the entry is in the cache (one line each), the clock (log events), the lock.
 * Expect: 2 to 3 ns above the empty loop for a check. Calls that take the lock cost tens of
 *        nanoseconds.
 */
#include "bench.h"

#include "cap/gate.h"

enum { ROUNDS = 2000000, FEW = 100000, CAPS = 1024, CROWD = 1000000, HOLDER = 1 };

static janus_cap_table     *table, *logged;
static janus_authority     *root, *logged_root;
static janus_audit         *audit;
static struct jrt_cap_actor actor = {.holder = HOLDER};
static janus_cap            caps[CAPS], logged_cap, *crowd;
static volatile uint64_t    sum;

static bool drop(void *argument, const char *line, size_t bytes)
{
    (void)argument, (void)line;
    sum += bytes;
    return true;
}

__attribute__((noinline)) static janus_status nothing(janus_cap_table *at, janus_cap cap,
                                                      janus_cap_kind kind, uint32_t rights,
                                                      uint64_t holder)
{
    __asm__ volatile("" : : "r"(at), "r"(cap.nonce), "r"(kind), "r"(rights), "r"(holder));
    return JANUS_OK;
}

/* `expression` uses `i`, which the compiler must take as new each time, and `wrong`, 0. */
#define TIMED(rounds, expression)                                                                  \
    uint64_t begin = bench_now_ns(), wrong = 0;                                                    \
    for (uint64_t i = 0; i < (rounds); i++) {                                                      \
        __asm__ volatile("" : "+r"(i), "+r"(wrong) : : "memory");                                  \
        wrong |= (uint64_t)(int64_t)(expression);                                                  \
    }                                                                                              \
    double ns = (double)(bench_now_ns() - begin) / (double)(rounds);                               \
    sum += wrong;                                                                                  \
    return ns

static double run_empty(void) { TIMED(ROUNDS, i == UINT64_MAX); }

static double run_call(void)
{
    TIMED(ROUNDS, nothing(table, caps[wrong], JANUS_CAP_KIND_SPAWN, 1, HOLDER));
}

static double run_check(void)
{
    TIMED(ROUNDS, jrt_cap_check(table, caps[wrong], JANUS_CAP_KIND_SPAWN, 1, HOLDER));
}

static double run_check_many(void)
{
    TIMED(ROUNDS,
          jrt_cap_check(table, caps[(i * 389 + wrong) % CAPS], JANUS_CAP_KIND_SPAWN, 1, HOLDER));
}

static double run_check_crowd(void)
{
    TIMED(ROUNDS / 4,
          jrt_cap_check(table, crowd[(i * 7919 + wrong) % CROWD], JANUS_CAP_KIND_SPAWN, 1, HOLDER));
}

static double run_check_public(void)
{
    TIMED(ROUNDS, janus_cap_check_in(table, caps[wrong], JANUS_CAP_KIND_SPAWN, 1, HOLDER));
}

static double run_check_limits(void)
{
    janus_cap_limits limits;
    TIMED(ROUNDS,
          jrt_cap_check_limits(table, caps[wrong], JANUS_CAP_KIND_SPAWN, 1, HOLDER, &limits));
}

static double run_gate(void)
{
    static struct jrt_cap_use use;
    janus_cap_limits          out;
    TIMED(ROUNDS, (jrt_cap_gate_spawn(table, caps[wrong], &actor, &use, &out) == JANUS_OK)
                      ? (jrt_cap_give_task(&use), 0)
                      : 1);
}

static double run_check_logged(void)
{
    TIMED(ROUNDS, jrt_cap_use_right(logged, logged_cap, JANUS_CAP_KIND_SPAWN, 1, &actor, NULL));
}

static double run_refused(void)
{
    janus_cap forged = caps[0];
    forged.nonce++;
    TIMED(ROUNDS, jrt_cap_check(table, forged, JANUS_CAP_KIND_SPAWN, 1, HOLDER) == JANUS_OK);
}

static double run_denied_logged(void)
{
    janus_cap forged = logged_cap;
    forged.nonce++;
    TIMED(FEW,
          jrt_cap_use_right(logged, forged, JANUS_CAP_KIND_SPAWN, 1, &actor, NULL) == JANUS_OK);
}

static const janus_cap_limits limits_all = {.spawn = {.max_tasks = 1000}};

static double run_mint(void)
{
    janus_cap       cap;
    janus_cap_grant grant = {.struct_bytes = sizeof grant,
                             .kind = JANUS_CAP_KIND_SPAWN,
                             .rights = JANUS_RIGHTS_ALL,
                             .limits = &limits_all};
    TIMED(FEW, janus_cap_mint_in(table, root, HOLDER, &grant, &cap) |
                   janus_cap_release_in(table, cap, HOLDER));
}

static double run_attenuate(void)
{
    janus_cap       cap;
    janus_cap_grant grant = {.struct_bytes = sizeof grant, .rights = JANUS_RIGHT_SPAWN_TASK};
    TIMED(FEW, janus_cap_attenuate_in(table, caps[0], HOLDER, &grant, &cap) |
                   janus_cap_revoke_in(table, cap, cap, HOLDER));
}

static double run_event(void)
{
    TIMED(FEW, jrt_audit_budget(actor.writer, JRT_AUDIT_RECHARGE, HOLDER, JRT_AUDIT_OPS, i, i,
                                "bench") != JANUS_OK);
}

static double run_clock(void) { TIMED(FEW, jrt_clock_now_ns() == 0); }

/* Derives a million from one capability, and revokes them at once. */
static void say_crowd(void)
{
    uint64_t begin = bench_now_ns();
    if (janus_authority_revoke(table, root, crowd[0]) != JANUS_OK) exit(1);
    bench_say("cap", "revoking a branch of a million", (double)(bench_now_ns() - begin) / 1e6,
              "ms");
}

static void prepare(void)
{
    janus_cap_grant         grant = {.struct_bytes = sizeof grant,
                                     .kind = JANUS_CAP_KIND_SPAWN,
                                     .rights = JANUS_RIGHTS_ALL,
                                     .limits = &limits_all};
    janus_cap_table_options options = {.struct_bytes = sizeof options, .max_caps = 2 * CROWD};
    if (janus_cap_table_create(&options, &table, &root) != JANUS_OK) exit(1);
    for (int i = 0; i < CAPS; i++) {
        if (janus_cap_mint_in(table, root, HOLDER, &grant, &caps[i]) != JANUS_OK) exit(1);
    }
    crowd = malloc(CROWD * sizeof *crowd);
    if (crowd == NULL) exit(1);
    for (int i = 0; i < CROWD; i++) {
        janus_status status =
            i == 0 ? janus_cap_mint_in(table, root, HOLDER, &grant, &crowd[0])
                   : janus_cap_attenuate_in(table, crowd[i / 10], HOLDER, &grant, &crowd[i]);
        if (status != JANUS_OK) exit(1);
    }
    janus_audit_options log = {.struct_bytes = sizeof log, .sink = drop, .ring_events = 1 << 16};
    if (janus_audit_create(&log, &audit) != JANUS_OK) exit(1);
    options = (janus_cap_table_options){.struct_bytes = sizeof options, .audit = audit};
    if (janus_cap_table_create(&options, &logged, &logged_root) != JANUS_OK) exit(1);
    if (janus_cap_mint_in(logged, logged_root, HOLDER, &grant, &logged_cap) != JANUS_OK) exit(1);
    if (jrt_audit_writer_open(audit, &actor.writer) != JANUS_OK) exit(1);
}

int main(void)
{
    static struct contender contenders[] = {
        {.name = "an empty loop", .run = run_empty},
        {.name = "a call that does nothing", .run = run_call},
        {.name = "check, inlined", .run = run_check},
        {.name = "check, one of 1024", .run = run_check_many},
        {.name = "check, one of a million, no cache", .run = run_check_crowd},
        {.name = "check, public call", .run = run_check_public},
        {.name = "check with limits", .run = run_check_limits},
        {.name = "spawn gate, and giving back", .run = run_gate},
        {.name = "check, use counted for the log", .run = run_check_logged},
        {.name = "check refused", .run = run_refused},
        {.name = "check refused, denial logged", .run = run_denied_logged},
        {.name = "an event for the log", .run = run_event},
        {.name = "of which the clock", .run = run_clock},
        {.name = "mint and release", .run = run_mint},
        {.name = "attenuate and revoke", .run = run_attenuate},
    };
    prepare();
    puts("One use of a capability:");
    bench_race("cap", contenders, sizeof contenders / sizeof contenders[0]);
    say_crowd();
    free(crowd);
    jrt_audit_writer_close(actor.writer);
    if (janus_cap_table_destroy(logged, logged_root) != JANUS_OK) return 1;
    if (janus_cap_table_destroy(table, root) != JANUS_OK) return 1;
    return janus_audit_destroy(audit) == JANUS_OK ? 0 : 1;
}

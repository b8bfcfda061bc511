/* SPDX-License-Identifier: MIT */
/*
 * What is left for well-behaved tasks beside neighbours that misbehave?
 *
 * Timed: a crew of CPU-bound tasks that check once for each unit of work, alone and beside
 *        attackers, in turns. The bench reports how much the crew does in a second of the process's
 *        CPU time. It divides that by what the crew does alone and by its fair share: its tasks by
 *        all ready tasks. 1: exactly the fair share. More: the attackers waste their time. Units
 *        have two sizes, about 2 ns and 100 ns, so that ten thousand of them are short or long
 *        beside ten thousand operations of an attacker.
 * Moves it: how long an attacker's turn takes, although every turn has the same maximum of
 *        operations. The locks that attackers hold. Which worker runs which task.
 * Expect: a median of at least 0.80 on an otherwise idle machine. With two workers the kernel's
 *        shares count too.
 */
#include "bench.h"

#include <janusrt/janus.h>
#include <stdatomic.h>

enum {
    CREW = 4,
    ATTACKERS = 4,
    LIMIT = 64,
    ROUNDS = 5,
    WINDOW_NS = 100000000,
    SETTLE_NS = 40000000
};

static atomic_bool stop;
static _Alignas(64) struct {
    _Atomic uint64_t units;
    char             rest[56];
} crew[CREW];
static uint64_t          unit_rounds;
static uint32_t          workers;
static volatile uint64_t sink;

static bool over(void) { return atomic_load_explicit(&stop, memory_order_relaxed); }

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The crew. */

static int64_t member(void *argument)
{
    _Atomic uint64_t *units = argument;
    uint64_t          state = 1, done = 0;
    while (!over() && janus_check() == JANUS_OK) {
        for (uint64_t i = 0; i < unit_rounds; i++) {
            state = (state ^ i) * UINT64_C(0x9e3779b97f4a7c15);
            state ^= state >> 29;
        }
        atomic_store_explicit(units, ++done, memory_order_relaxed);
    }
    sink = state;
    return 0;
}

/* The attackers. Each runs until the window is over and is one ready task, unless it says
 * otherwise. */

static int64_t spin(void *argument)
{
    (void)argument;
    while (!over()) JANUS_IGNORE(janus_check());
    return 0;
}

static int64_t asleep(void *argument)
{
    (void)argument;
    return janus_sleep(UINT64_MAX);
}

/* Has as many sleeping children as it may, and keeps trying to spawn. */
static int64_t refused(void *argument)
{
    (void)argument;
    janus_nursery n;
    if (janus_nursery_open(&n, NULL) != JANUS_OK) return -1;
    while (!over()) JANUS_IGNORE(janus_spawn(&n, asleep, NULL));
    (void)janus_nursery_cancel(&n);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

/* Keeps trying to spawn from a pool without spawns. */
static int64_t refused_by_pool(void *argument)
{
    (void)argument;
    janus_budget  pool = JANUS_BUDGET(.spawn_count = 0);
    janus_nursery n;
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)) != JANUS_OK) return -1;
    while (!over()) {
        JANUS_IGNORE(janus_spawn(&n, asleep, NULL));
        JANUS_IGNORE(janus_check());
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

static int64_t nothing(void *argument)
{
    (void)argument;
    return 0;
}

/* Starts and awaits empty children. */
static int64_t breeder(void *argument)
{
    (void)argument;
    while (!over()) {
        janus_nursery n;
        if (janus_nursery_open(&n, NULL) != JANUS_OK) return -1;
        for (int i = 0; i < 20 && janus_spawn(&n, nothing, NULL) == JANUS_OK; i++) continue;
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
    return 0;
}

/* A fork bomb: every child is like its parent, up to the limit of tasks. All are ready. */
static int64_t bomb(void *argument)
{
    janus_nursery n;
    if (janus_nursery_open(&n, NULL) != JANUS_OK) return -1;
    while (!over()) {
        JANUS_IGNORE(janus_spawn(&n, bomb, argument));
        JANUS_IGNORE(janus_check());
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

static int64_t gobble(void *argument)
{
    (void)argument;
    for (;;) {
        char *block = janus_alloc(1000);
        if (block == NULL) return 0;
        block[0] = block[999] = 1;
    }
}

/* Takes all the memory it may, ends, and is started again. */
static int64_t gobblers(void *argument)
{
    (void)argument;
    while (!over()) {
        janus_nursery n;
        if (janus_nursery_open(&n, NULL) != JANUS_OK) return -1;
        JANUS_IGNORE(janus_spawn(&n, gobble, NULL));
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
    return 0;
}

/* One op that causes much work for the kernel. */
static int64_t big_blocks(void *argument)
{
    (void)argument;
    while (!over()) {
        char *block = janus_alloc(900000);
        if (block == NULL) return 0;
        for (size_t at = 0; at < 900000; at += 4096) block[at] = 1;
        janus_free(block);
    }
    return 0;
}

static janus_verdict generous(void *argument, const janus_exhausted *child, janus_budget *grant)
{
    (void)argument, (void)child;
    *grant = janus_price_loop(1000);
    return JANUS_VERDICT_RECHARGE;
}

/* Is recharged again and again in small amounts. */
static int64_t recharged(void *argument)
{
    janus_budget  pool = JANUS_BUDGET(.ops = 100000, .spawn_count = 1);
    janus_budget  share = JANUS_BUDGET(.ops = 1000);
    janus_nursery n;
    while (!over()) {
        janus_status status = janus_nursery_open(
            &n, JANUS_NURSERY_OPTIONS(.budget = &pool, .exhaustion = JANUS_EXHAUSTION_SUPERVISE,
                                      .on_exhausted = generous));
        if (status < 0) return -1;
        status = janus_spawn_with(&n, spin, argument, JANUS_SPAWN_OPTIONS(.budget = &share), NULL);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
        if (status != JANUS_OK) return -1;
    }
    return 0;
}

static int64_t charger(void *argument)
{
    (void)argument;
    while (!over()) JANUS_IGNORE(janus_charge(janus_price_send()));
    return 0;
}

static const struct {
    const char  *name;
    janus_entry *entry;
    int          count;
    int          ready; /* ready tasks; 0: LIMIT, less the others */
} attacks[] = {
    {"spinners", spin, ATTACKERS, ATTACKERS},
    {"spawns that are refused, limit", refused, ATTACKERS, ATTACKERS},
    {"spawns that are refused, pool", refused_by_pool, ATTACKERS, ATTACKERS},
    {"spawns of what ends at once", breeder, ATTACKERS, ATTACKERS},
    {"fork bomb", bomb, 1, 0},
    {"allocation bombs", gobblers, ATTACKERS, ATTACKERS},
    {"large blocks", big_blocks, ATTACKERS, ATTACKERS},
    {"exhausted and recharged", recharged, ATTACKERS, ATTACKERS},
    {"charges of channel operations", charger, ATTACKERS, ATTACKERS},
};

/* One window. */

struct window {
    janus_entry *entry; /* NULL: nobody */
    int          count;
    double       units_per_ns;
};

static uint64_t all_units(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < CREW; i++) {
        sum += atomic_load_explicit(&crew[i].units, memory_order_relaxed);
    }
    return sum;
}

static int64_t open_window(void *argument)
{
    struct window *window = argument;
    janus_nursery  n;
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)) !=
        JANUS_OK) {
        return -1;
    }
    atomic_store(&stop, false);
    for (int i = 0; i < CREW; i++) {
        atomic_store(&crew[i].units, 0);
        if (janus_spawn(&n, member, &crew[i].units) != JANUS_OK) return -1;
    }
    for (int i = 0; i < window->count; i++) {
        if (janus_spawn(&n, window->entry, NULL) != JANUS_OK) return -1;
    }
    JANUS_IGNORE(janus_sleep(SETTLE_NS));
    uint64_t units = all_units(), begin = cpu_ns();
    JANUS_IGNORE(janus_sleep(WINDOW_NS));
    window->units_per_ns = (double)(all_units() - units) / (double)(cpu_ns() - begin);
    atomic_store(&stop, true);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

static double measure(janus_entry *entry, int count)
{
    struct window window = {entry, count, 0};
    janus_status  status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_tasks = LIMIT), open_window,
                  &window, NULL);
    if (status != JANUS_OK) {
        fprintf(stderr, "neighbour_bench: %s\n", janus_status_text(status));
        exit(1);
    }
    return window.units_per_ns;
}

static void attack(size_t which, const char *units)
{
    double ratios[ROUNDS];
    int    ready = attacks[which].ready;
    if (ready == 0) ready = LIMIT - CREW - 1; /* the measuring task sleeps */
    double share = (double)CREW / (CREW + ready);
    for (int round = 0; round < ROUNDS; round++) {
        double alone = measure(NULL, 0);
        double beside = measure(attacks[which].entry, attacks[which].count);
        ratios[round] = beside / alone / share;
    }
    qsort(ratios, ROUNDS, sizeof ratios[0], bench_compare);
    printf("%-34s %s units, %u worker%s  worst %5.2f  median %5.2f of the fair share\n",
           attacks[which].name, units, workers, workers > 1 ? "s" : " ", ratios[0],
           ratios[ROUNDS / 2]);
    printf("{\"bench\":\"neighbour\",\"name\":\"%s, %s units\",\"workers\":%u,\"worst\":%.3f,"
           "\"median\":%.3f}\n",
           attacks[which].name, units, workers, ratios[0], ratios[ROUNDS / 2]);
    fflush(stdout);
}

int main(void)
{
    for (workers = 1; workers <= 2; workers++) {
        for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
            unit_rounds = 1;
            attack(i, "short");
            unit_rounds = 50;
            attack(i, " long");
        }
    }
    return 0;
}

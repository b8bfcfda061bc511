/* SPDX-License-Identifier: MIT */
/* Shares: a neighbour on the same worker gets half of the CPU, whatever a task does. */
#include "beside.h"

#include <stdio.h>

enum { LASTS_MS = 200, TRIES = 20 };

static const double least = 0.45;
/* A debt of a hundred rounds is paid in a hundred turns. What the switches between them take counts
 * for nobody. */
static const double least_in_rounds = 0.42;

/* On a scheduler with one worker. */
static void check_share_for(int lasts_ms, janus_entry *entry, void *argument, double enough)
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    double           share = 0;
    /* A busy machine may disturb a measurement. A task that starves does so each time. */
    for (int i = 0; i < TRIES && share < enough; i++) {
        share = beside_share(scheduler, entry, argument, (uint64_t)lasts_ms * rig_ms);
        printf("# share %.3f\n", share);
        fflush(stdout);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK(share >= enough);
}

static void check_share_of(janus_entry *entry, void *argument, double enough)
{
    check_share_for(LASTS_MS, entry, argument, enough);
}

static void check_share(janus_entry *entry, void *argument)
{
    check_share_of(entry, argument, least);
}

/* Native work of `argument` ns between two calls. */

static uint64_t work_ns(const struct beside *beside) { return *(const uint64_t *)beside->argument; }

static int64_t yield_between(void *argument)
{
    struct beside *beside = argument;
    while (!beside_over(beside)) {
        beside_work(work_ns(beside));
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

TEST("a task that works for 5 ms between two yields leaves its neighbour half")
{
    RIG_REAL("shares of real time are compared");
    check_share(yield_between, &(uint64_t){5000000});
}

static int64_t check_between(void *argument)
{
    struct beside *beside = argument;
    while (!beside_over(beside)) {
        beside_work(work_ns(beside));
        CHECK_EQ(janus_check(), JANUS_OK);
    }
    return 0;
}

TEST("a task that works for 100 us, or 1 ms, between two checks leaves its neighbour half")
{
    RIG_REAL("shares of real time are compared");
    check_share(check_between, &(uint64_t){100000});
    check_share_of(check_between, &(uint64_t){1000000}, least_in_rounds);
}

static int64_t child(void *argument)
{
    if (work_ns(argument) > 0) beside_work(work_ns(argument));
    return 0;
}

static int64_t await_fresh(void *argument)
{
    struct beside *beside = argument;
    while (!beside_over(beside)) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, child, beside), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

static int64_t join_fresh(void *argument)
{
    struct beside *beside = argument;
    while (!beside_over(beside)) {
        janus_nursery n;
        janus_task_id id;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, child, beside, NULL, &id), JANUS_OK);
        CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

static int64_t await_async(void *argument)
{
    struct beside *beside = argument;
    janus_nursery  n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    while (!beside_over(beside)) {
        janus_async call;
        CHECK_EQ(janus_async_start_number(&n, &call, child, beside), JANUS_OK);
        CHECK_EQ(janus_await(&call, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a parent that awaits one fresh child after another leaves its neighbour half")
{
    RIG_REAL("shares of real time are compared");
    for (int i = 0; i < 3; i++) {
        uint64_t ns = (uint64_t[]){0, 1000, 100000}[i];
        check_share(await_fresh, &ns);
        check_share(join_fresh, &ns);
        check_share(await_async, &ns);
    }
}

/* Several tasks that are late in turn, and the neighbour alone beside them. */

struct crew {
    struct beside *beside;
    uint64_t       spin_ns, nap_ns; /* nap_ns 0: it checks, and does not wait */
};

static int64_t spin_in_turn(void *argument)
{
    const struct crew *crew = argument;
    while (!beside_over(crew->beside)) {
        beside_work(crew->spin_ns);
        CHECK_EQ(crew->nap_ns != 0 ? janus_sleep(crew->nap_ns) : janus_check(), JANUS_OK);
    }
    return 0;
}

static janus_rest rest_in_turn(void *state, janus_status woke)
{
    const struct crew *crew = state;
    if (woke != JANUS_OK || beside_over(crew->beside)) return janus_rest_done(woke);
    beside_work(crew->spin_ns);
    return janus_rest_sleep(crew->nap_ns);
}

struct shift {
    int      tasks;
    uint64_t spin_ns, nap_ns;
    bool     rests;
};

static int64_t take_turns(void *argument)
{
    struct beside      *beside = argument;
    const struct shift *shift = beside->argument;
    struct crew         crew = {beside, shift->spin_ns, shift->nap_ns};
    janus_nursery       n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < shift->tasks; i++) {
        janus_status status = shift->rests ? janus_spawn_resting(&n, janus_rest_sleep(0),
                                                                 rest_in_turn, &crew, NULL, NULL)
                                           : janus_spawn(&n, spin_in_turn, &crew);
        CHECK_EQ(status, JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* The first slice of a new task has many checks, so its first turn takes long. */
static void check_shift(struct shift shift)
{
    check_share_for(5 * LASTS_MS, take_turns, &shift, 0.8 / (shift.tasks + 1));
}

TEST("two or six tasks that work for 1 ms between two checks do not pay for each other")
{
    RIG_REAL("shares of real time are compared");
    check_shift((struct shift){2, rig_ms, 0, false});
    check_shift((struct shift){6, rig_ms, 0, false});
}

TEST("tasks that are late in turn do not become free of their debts while the others are late")
{
    RIG_REAL("shares of real time are compared");
    check_shift((struct shift){6, rig_ms, 4 * rig_ms, false});
    check_shift((struct shift){6, rig_ms, 4 * rig_ms, true});
    check_shift((struct shift){10, rig_ms, 9 * rig_ms, false});
}

/* Callbacks of children that end soon after them. */

enum { CALLBACKS = 1000, CALLBACK_NS = 3000 };

static void spin_a_little(void *argument)
{
    (void)argument;
    beside_work(CALLBACK_NS);
}

static int64_t leave_callbacks(void *argument)
{
    janus_nursery n;
    janus_token  *token = NULL;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = janus_now_ns() + rig_ms)),
             JANUS_OK);
    CHECK_EQ(janus_nursery_token(&n, &token), JANUS_OK);
    int left = CALLBACKS;
    while (left-- > 0 && janus_token_on_cancel(token, spin_a_little, NULL, NULL) == JANUS_OK) {
        continue;
    }
    JANUS_IGNORE(janus_sleep(2 * rig_ms));
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    janus_token_release(token);
    return 0;
}

static int64_t start_and_leave(void *argument)
{
    struct beside *beside = argument;
    while (!beside_over(beside)) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, leave_callbacks, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

TEST("a task that ends owes the time that its callbacks took from others")
{
    RIG_REAL("shares of real time are compared");
    check_share_of(start_and_leave, NULL, 0.4);
}

/* A neighbour's child below the children of another task. */

enum { PILE_MAX = 1000 };

struct pile {
    atomic_bool   over;
    atomic_int    started, ran;
    janus_nursery piled;
};

static int64_t last_long(void *argument)
{
    struct pile *pile = argument;
    if (!atomic_load(&pile->over)) beside_work(rig_ms);
    atomic_fetch_add(&pile->ran, 1);
    return 0;
}

static int64_t pile_up(void *argument)
{
    struct pile *pile = argument;
    while (!atomic_load(&pile->over)) {
        if (atomic_load(&pile->started) - atomic_load(&pile->ran) < PILE_MAX) {
            atomic_fetch_add(&pile->started, 1);
            CHECK_EQ(janus_spawn(&pile->piled, last_long, pile), JANUS_OK);
        }
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

static int64_t compute_on(void *argument)
{
    struct pile *pile = argument;
    while (!atomic_load(&pile->over)) {
        beside_work(5000);
        CHECK_EQ(janus_check(), JANUS_OK);
    }
    return 0;
}

static int64_t end_at_once(void *argument) { return argument == NULL ? 0 : -1; }

static int64_t join_below(void *argument)
{
    struct pile  *pile = argument;
    janus_nursery n;
    janus_task_id id;
    CHECK_EQ(janus_sleep(100 * rig_ms), JANUS_OK);
    int before = atomic_load(&pile->ran);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, end_at_once, NULL, NULL, &id), JANUS_OK);
    CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    int ran = atomic_load(&pile->ran) - before;
    printf("# %d children ran before a neighbour's\n", ran);
    CHECK(ran < 2000);
    atomic_store(&pile->over, true);
    return 0;
}

static int64_t pile_beside(void *argument)
{
    struct pile  *pile = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&pile->piled, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, pile_up, pile), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, compute_on, pile), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, join_below, pile), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&pile->piled, NULL), JANUS_OK);
    return 0;
}

TEST("a neighbour's child runs, however many children another task has started before and after it")
{
    RIG_REAL("children take real time");
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_tasks = 2 * PILE_MAX));
    struct pile pile = {.over = false};
    rig_do(scheduler, pile_beside, &pile);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Sleeps of a millisecond beside tasks that work for 5 ms between two yields. */
struct punctual {
    int           yielders;
    atomic_int    after, late; /* yields since the deadline; the maximum */
    atomic_bool   over;
    atomic_ullong due_ns;
};

static int64_t sleep_on_time(void *argument)
{
    struct punctual *punctual = argument;
    for (int i = 0; i < 10; i++) {
        uint64_t due_ns = janus_now_ns() + rig_ms;
        atomic_store(&punctual->due_ns, due_ns);
        atomic_store(&punctual->after, 0);
        CHECK_EQ(janus_sleep_until(due_ns), JANUS_OK);
        int after = atomic_load(&punctual->after);
        if (i > 0 && after > atomic_load(&punctual->late)) atomic_store(&punctual->late, after);
    }
    atomic_store(&punctual->over, true);
    return 0;
}

static int64_t yield_slowly(void *argument)
{
    struct punctual *punctual = argument;
    while (!atomic_load(&punctual->over)) {
        for (uint64_t until = janus_now_ns() + 5 * rig_ms; janus_now_ns() < until;) continue;
        if (janus_now_ns() >= atomic_load(&punctual->due_ns)) atomic_fetch_add(&punctual->after, 1);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

static int64_t sleep_beside(void *argument)
{
    janus_nursery    n;
    struct punctual *punctual = argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < punctual->yielders; i++) {
        CHECK_EQ(janus_spawn(&n, yield_slowly, punctual), JANUS_OK);
    }
    CHECK_EQ(janus_spawn(&n, sleep_on_time, punctual), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a sleep of 1 ms ends at the next yield of a task that works for 5 ms between two")
{
    for (int yielders = 1; yielders <= 2; yielders++) {
        struct punctual punctual = {.yielders = yielders};
        rig_run(1, sleep_beside, &punctual, 1);
        printf("# late by %d yields\n", atomic_load(&punctual.late));
        CHECK(atomic_load(&punctual.late) <= 1 + yielders);
    }
}

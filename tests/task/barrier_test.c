/* SPDX-License-Identifier: MIT */
/* The barrier and the cancel under load: nothing is missed, torn, late or left behind. */
#include "cancel/park.h"
#include "rig.h"
#include "task/roster.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

#include <string.h>

/* Slots: the owner can read what children wrote without atomics when the nursery has ended. */

enum { SLOTS = 1000 };

struct slot {
    int number, value, finished;
};

static int64_t fill_slot(void *argument)
{
    struct slot *slot = argument;
    uint32_t     random = (uint32_t)slot->number * 2654435761u >> 24;
    if (random % 4 == 1) CHECK_EQ(janus_yield(), JANUS_OK);
    if (random % 4 == 2) CHECK_EQ(janus_sleep(random * 100), JANUS_OK);
    slot->value = slot->number * 3;
    slot->finished = 1;
    return slot->number;
}

static void check_slots(const struct slot *slots)
{
    long long sum = 0;
    for (int i = 0; i < SLOTS; i++) {
        CHECK_EQ(slots[i].finished, 1);
        sum += slots[i].value;
    }
    CHECK_EQ(sum, 3LL * SLOTS * (SLOTS - 1) / 2);
}

static void spawn_slots(janus_nursery *n, struct slot *slots)
{
    for (int i = 0; i < SLOTS; i++) {
        slots[i] = (struct slot){.number = i};
        CHECK_EQ(janus_spawn(n, fill_slot, &slots[i]), JANUS_OK);
    }
}

static int64_t slots_in_a_task(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    spawn_slots(&n, argument);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    check_slots(argument);
    return 0;
}

TEST("a task that has awaited a thousand children, randomly delayed, sees all their plain writes")
{
    static struct slot slots[SLOTS];
    rig_all(slots_in_a_task, slots, RIG_SLOW ? 3 : 30);
}

TEST("a thread that has awaited a thousand children sees all their plain writes")
{
    static struct slot slots[SLOTS];
    janus_scheduler   *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 4));
    for (int i = 0; i < (RIG_SLOW ? 3 : 30); i++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
        spawn_slots(&n, slots);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        check_slots(slots);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Awaiting again and again: no wake-up is lost. */

enum { AWAITS = RIG_SLOW || JRT_DEBUG ? 6000 : 1000000 };

/* HIGH, so that its parent does not run it in place: the parent blocks, and the child wakes it. */
static int64_t await_often(void *argument)
{
    int times = *(int *)argument;
    for (int i = 0; i < times; i++) {
        janus_nursery n;
        atomic_int    ran = 0;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, count_me, &ran,
                                  JANUS_SPAWN_OPTIONS(.priority = JANUS_PRIORITY_HIGH), NULL),
                 JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(ran, 1);
    }
    return 0;
}

TEST("a million waits for a child that another worker may run all return")
{
    int times = (int)rig_few(AWAITS / 2);
    rig_run(1, await_often, &times, 1);
    rig_run(2, await_often, &times, 1);
}

/* While the owner waits, the nursery is closing and the owner is blocked. */
struct waiting {
    janus_nursery *nursery;
    atomic_int     saw;
};

static int64_t see_closing(void *argument)
{
    struct waiting *waiting = argument;
    CHECK(rig_wait_state(waiting->nursery, JANUS_NURSERY_STATE_CLOSING));
    CHECK_EQ(janus_spawn(waiting->nursery, nothing, NULL), JANUS_CLOSED);
    atomic_store(&waiting->saw, 1);
    return 0;
}

static int64_t wait_closes(void *argument)
{
    (void)argument;
    janus_nursery  n;
    struct waiting waiting = {.nursery = &n};
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, see_closing, &waiting,
                              JANUS_SPAWN_OPTIONS(.priority = JANUS_PRIORITY_HIGH), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(waiting.saw, 1);
    return 0;
}

TEST("a nursery whose owner waits is closing and takes no more children")
{
    rig_all(wait_closes, NULL, RIG_SLOW ? 10 : 100);
}

static int64_t wait_closes_in_place(void *argument)
{
    (void)argument;
    static const janus_priority priorities[] = {JANUS_PRIORITY_NORMAL, JANUS_PRIORITY_LOW};
    for (int i = 0; i < 4; i++) {
        janus_nursery  n;
        struct waiting waiting = {.nursery = &n};
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, see_closing, &waiting,
                                  JANUS_SPAWN_OPTIONS(.priority = priorities[i % 2]), NULL),
                 JANUS_OK);
        CHECK_EQ(i < 2 ? janus_nursery_end(&n, NULL) : janus_nursery_await_with(&n, NULL),
                 JANUS_OK);
        CHECK_EQ(waiting.saw, 1);
        if (i >= 2) CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

TEST("a nursery whose owner waits is closing and takes no more children, whichever worker runs the "
     "child")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        rig_run(workers, wait_closes_in_place, NULL, RIG_SLOW ? 20 : 200);
    }
}

/* The first error. */

enum { FAILURES = 8 };

struct failing {
    atomic_int   *start;
    int64_t       code;
    janus_task_id id;
};

static int64_t fail_together(void *argument)
{
    struct failing *failing = argument;
    failing->id = janus_task_current_id();
    atomic_fetch_add(failing->start, 1);
    while (atomic_load(failing->start) < FAILURES) JANUS_IGNORE(janus_yield());
    return failing->code;
}

static int64_t all_fail(void *argument)
{
    (void)argument;
    janus_nursery        n;
    janus_nursery_result result;
    atomic_int           start = 0;
    struct failing       all[FAILURES];
    int                  winners = 0;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < FAILURES; i++) {
        all[i] = (struct failing){.start = &start, .code = -1000 - i};
        CHECK_EQ(janus_spawn(&n, fail_together, &all[i]), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, FAILURES);
    for (int i = 0; i < FAILURES; i++) {
        if (result.error != all[i].code) continue;
        CHECK_EQ(result.task, all[i].id);
        winners++;
    }
    CHECK_EQ(winners, 1);
    return 0;
}

TEST("if eight children fail at once, the result has the code and the id of the same child")
{
    rig_run(8, all_fail, NULL, RIG_SLOW ? 15 : 1000);
}

/* States never go back. */

struct watched {
    janus_nursery *nursery;
    atomic_int     watching, seen_final;
};

static int64_t watch_state(void *argument)
{
    struct watched *watched = argument;
    int             last = JANUS_NURSERY_STATE_OPEN;
    atomic_fetch_add(&watched->watching, 1);
    while (last < JANUS_NURSERY_STATE_CLOSED) {
        int state = (int)janus_nursery_state_of(watched->nursery);
        CHECK(state >= last);
        CHECK(!(last == JANUS_NURSERY_STATE_CANCELLING && state == JANUS_NURSERY_STATE_CLOSED));
        last = state;
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(janus_nursery_state_of(watched->nursery), last);
        CHECK_EQ(janus_nursery_cancel(watched->nursery), JANUS_STATE);
        CHECK_EQ(janus_spawn(watched->nursery, nothing, NULL), JANUS_CLOSED);
    }
    atomic_fetch_add(&watched->seen_final, 1);
    return 0;
}

static int64_t yield_a_little(void *argument)
{
    (void)argument;
    for (int i = 0; i < 5; i++) {
        if (janus_yield() != JANUS_OK) return JANUS_CANCELLED;
    }
    return 0;
}

static int64_t cancel_now(void *argument)
{
    (void)janus_nursery_cancel(argument);
    return 0;
}

static int64_t never_back(void *argument)
{
    static atomic_uint round;
    enum { WATCHERS = 4 };
    (void)argument;
    janus_nursery  n, watchers;
    unsigned       kind = atomic_fetch_add(&round, 1) % 4;
    struct watched watched = {.nursery = &n};
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&watchers, NULL), JANUS_OK);
    for (int i = 0; i < WATCHERS; i++) {
        CHECK_EQ(janus_spawn(&watchers, watch_state, &watched), JANUS_OK);
    }
    while (atomic_load(&watched.watching) < WATCHERS) CHECK_EQ(janus_yield(), JANUS_OK);
    for (int i = 0; i < 4; i++) {
        JANUS_IGNORE(janus_spawn(&n, i == 2 && kind == 3 ? minus_seven : yield_a_little, NULL));
    }
    if (kind >= 1) CHECK_EQ(janus_spawn(&watchers, cancel_now, &n), JANUS_OK);
    if (kind >= 2) (void)janus_nursery_close(&n);
    JANUS_IGNORE(janus_nursery_await_with(&n, NULL));
    CHECK_EQ(janus_nursery_close(&n), JANUS_STATE);
    while (atomic_load(&watched.seen_final) < WATCHERS) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_state_of(&n) >= JANUS_NURSERY_STATE_CLOSED, 1);
    CHECK_EQ(janus_nursery_end(&watchers, NULL), JANUS_OK); /* first: they use the other one */
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

TEST("while it is closed, cancelled and spawned into, a nursery's state never goes back")
{
    rig_all(never_back, NULL, RIG_SLOW ? 15 : 1000);
}

/* A cancel reaches every kind of wait. */

static atomic_int waiting_now;

static int64_t wait_in_join(void *argument)
{
    janus_nursery n;
    janus_task_id id;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, sleep_an_hour, &waiting_now, NULL, &id), JANUS_OK);
    janus_status status = janus_join(&n, id, NULL);
    CHECK(status == JANUS_CANCELLED || status == JANUS_CHILD_CANCELLED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return JANUS_CANCELLED;
}

static int64_t wait_in_nursery(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, sleep_an_hour, &waiting_now), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

static int64_t cancel_all_kinds(void *argument)
{
    static janus_entry *const kinds[] = {sleep_an_hour, wait_in_join, wait_in_nursery,
                                         yield_for_ever};
    enum { KINDS = 4 };
    (void)argument;
    janus_nursery        n;
    janus_nursery_result result;
    janus_task_id        ids[KINDS];
    atomic_store(&waiting_now, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < KINDS; i++) {
        CHECK_EQ(janus_spawn_with(&n, kinds[i], &waiting_now, NULL, &ids[i]), JANUS_OK);
    }
    while (atomic_load(&waiting_now) < KINDS) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    for (int i = 0; i < KINDS; i++) {
        janus_task_info info = JANUS_TASK_INFO();
        CHECK_EQ(janus_task_inspect(&n, ids[i], &info), JANUS_OK);
        CHECK_EQ(info.cancel, JANUS_CANCEL_REASON_EXPLICIT); /* at once */
    }
    CHECK_EQ(janus_nursery_await_with(&n, &result), JANUS_CANCELLED);
    CHECK_EQ(result.errors, 0);
    for (int i = 0; i < KINDS; i++) {
        janus_task_info info = JANUS_TASK_INFO();
        CHECK_EQ(janus_task_inspect(&n, ids[i], &info), JANUS_OK);
        CHECK_EQ(info.state, JANUS_TASK_STATE_CANCELLED);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a cancel ends sleeping, joining, awaiting and yielding children, and all end as cancelled")
{
    rig_all(cancel_all_kinds, NULL, RIG_SLOW ? 20 : 200);
}

/* It waits for a child that never checks, and nobody interrupts that wait. */
static int64_t no_preemption(void *argument)
{
    (void)argument;
    janus_nursery n;
    struct gate   gate = {.result = 5};
    janus_task_id id;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, keep_worker, &gate, NULL, &id), JANUS_OK);
    while (!atomic_load(&gate.arrived)) rig_spin();
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(janus_nursery_state_of(&n), JANUS_NURSERY_STATE_CANCELLING);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CANCELLED);
    int64_t result = 0;
    CHECK_EQ(janus_join(&n, id, &result), JANUS_OK);
    CHECK_EQ(result, 5);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a cancelled child that never checks runs to its end, and its owner waits for it")
{
    rig_run(2, no_preemption, NULL, RIG_SLOW ? 20 : 200);
}

/* Nothing is left behind. */

struct held {
    size_t records, stacks;
};

static struct held held_by(janus_scheduler *scheduler)
{
    struct held held = {.records = jrt_roster_count(&scheduler->roster)};
    pthread_mutex_lock(&scheduler->depot->lock);
    for (size_t i = 0; i <= JANUS_GUARD_CANARY; i++) held.stacks += scheduler->depot->carved[i];
    pthread_mutex_unlock(&scheduler->depot->lock);
    return held;
}

static int64_t start_and_cancel(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, sleep_an_hour, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, yield_for_ever, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_in_nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("ten thousand nurseries started and cancelled hold no more records and stacks than a hundred")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
        for (int i = 0; i < 100; i++) rig_do(scheduler, start_and_cancel, NULL);
        struct held before = held_by(scheduler);
        for (int i = 0; i < (RIG_SLOW ? 150 : 10000); i++) {
            rig_do(scheduler, start_and_cancel, NULL);
        }
        struct held after = held_by(scheduler);
        /* Each worker keeps up to two batches for its own use; a leak would be many more. */
        CHECK(after.records <= before.records + workers * 2 * JRT_ROSTER_BATCH);
        CHECK(after.stacks <= before.stacks + workers * 64); /* caches, batches */
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* The guide's tree: a supervisor, its agents, their scanners. */

struct company {
    bool       stay; /* scanners run until they are cancelled */
    atomic_int scanned, scanning, agents, supervisors;
};

static int64_t scanner(void *argument)
{
    struct company *company = argument;
    atomic_fetch_add(&company->scanning, 1);
    while (company->stay) {
        if (janus_yield() != JANUS_OK) return JANUS_CANCELLED;
    }
    atomic_fetch_add(&company->scanned, 1);
    return 0;
}

static int64_t agent(void *argument)
{
    struct company *company = argument;
    janus_nursery   n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&n, scanner, company), JANUS_OK);
    janus_status status = janus_nursery_end(&n, NULL);
    atomic_fetch_add(&company->agents, 1);
    return status;
}

static int64_t supervisor(void *argument)
{
    struct company *company = argument;
    janus_nursery   n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, agent, company), JANUS_OK);
    janus_status status = janus_nursery_end(&n, NULL);
    CHECK_EQ(company->agents, 3); /* inner nurseries first */
    atomic_fetch_add(&company->supervisors, 1);
    return status;
}

static int64_t run_company(void *argument)
{
    struct company company = {.stay = argument != NULL};
    janus_nursery  n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, supervisor, &company), JANUS_OK);
    if (company.stay) {
        while (atomic_load(&company.scanning) < 12) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), company.stay ? JANUS_CANCELLED : JANUS_OK);
    CHECK_EQ(company.scanned, company.stay ? 0 : 12);
    CHECK_EQ(company.supervisors, 1);
    return 0;
}

TEST("a supervisor's agents and their scanners all complete")
{
    rig_all(run_company, NULL, RIG_SLOW ? 20 : 200);
}

TEST("cancelling a supervisor cancels its agents, and these their scanners")
{
    rig_all(run_company, "stay", RIG_SLOW ? 10 : 200);
}

/* Asking. */

struct asking {
    janus_nursery *nursery;
    janus_token   *token;
    atomic_int     asked;
};

static int64_t ask_until_cancelled(void *argument)
{
    struct asking *asking = argument;
    CHECK(!janus_nursery_is_cancelled(asking->nursery));
    CHECK(!janus_token_is_cancelled(asking->token));
    CHECK(!janus_cancelled());
    atomic_fetch_add(&asking->asked, 1);
    while (!janus_nursery_is_cancelled(asking->nursery)) JANUS_IGNORE(janus_yield());
    while (!janus_token_is_cancelled(asking->token)) continue; /* the token follows the state */
    CHECK(janus_cancelled());
    return JANUS_CANCELLED;
}

static int64_t ask(void *argument)
{
    bool                 error = argument != NULL;
    janus_nursery        n;
    janus_nursery_result result;
    struct asking        asking = {.nursery = &n};
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_token(&n, &asking.token), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, ask_until_cancelled, &asking), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, ask_until_cancelled, &asking), JANUS_OK);
    while (atomic_load(&asking.asked) < 2) CHECK_EQ(janus_yield(), JANUS_OK);
    if (error) CHECK_EQ(janus_spawn(&n, minus_seven, NULL), JANUS_OK);
    if (!error) CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), error ? JANUS_CHILD_FAILED : JANUS_CANCELLED);
    CHECK_EQ(result.errors, error);
    CHECK_EQ(janus_token_reason(asking.token),
             error ? JANUS_CANCEL_REASON_SIBLING_ERROR : JANUS_CANCEL_REASON_EXPLICIT);
    janus_token_release(asking.token);
    return 0;
}

TEST("a child's nursery, its token and the child itself report the cancel, and not before")
{
    rig_all(ask, NULL, RIG_SLOW ? 20 : 200);
}

TEST("a child's failure cancels the token, and its siblings see that")
{
    rig_all(ask, "error", RIG_SLOW ? 20 : 200);
}

/* A wake that comes before the switch. */
static int64_t wake_first(void *argument)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = worker->current;
    (void)argument;
    CHECK(jrt_worker_can_leave(worker));
    jrt_task_park_begin(task, JRT_WAIT_JOIN);
    CHECK(jrt_task_wake(task, JANUS_CLOSED));
    CHECK(!jrt_task_wake(task, JANUS_OK)); /* only one */
    CHECK_EQ(jrt_task_park(worker, task), JANUS_CLOSED);
    CHECK(!jrt_task_wake(task, JANUS_OK));
    return 0;
}

TEST("a task that is woken before it has left the CPU stays, and gets the waker's status")
{
    rig_all(wake_first, NULL, 10);
}

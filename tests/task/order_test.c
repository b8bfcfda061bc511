/* SPDX-License-Identifier: MIT */
/* The order of tasks: fairness, lanes, turns. One worker, so that only the scheduler decides. */
#include "rig.h"

#include <string.h>

enum { LOG_MAX = 4096 };

struct log {
    atomic_int count;
    char       letters[LOG_MAX];
};

struct writer {
    struct log *log;
    char        letter;
    int         turns;
};

static void put(struct log *log, char letter)
{
    int at = atomic_fetch_add(&log->count, 1);
    if (at < LOG_MAX) log->letters[at] = letter;
}

static int64_t write_once(void *argument)
{
    struct writer *writer = argument;
    put(writer->log, writer->letter);
    return 0;
}

/* Turns. */

static int64_t write_and_yield(void *argument)
{
    struct writer *writer = argument;
    for (int i = 0; i < writer->turns; i++) {
        put(writer->log, writer->letter);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

static int64_t take_turns(void *argument)
{
    struct log   *log = argument;
    struct writer a = {log, 'a', 500}, b = {log, 'b', 500};
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, write_and_yield, &a), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, write_and_yield, &b), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("two tasks that yield take turns, one by one")
{
    static struct log log;
    log.count = 0;
    rig_run(1, take_turns, &log, 1);
    CHECK_EQ(log.count, 1000);
    int repeats = 0;
    for (int i = 1; i < 1000; i++) repeats += log.letters[i] == log.letters[i - 1];
    /* In real time a turn may be too long, and then its task lets the other run more than once. */
    CHECK(repeats <= (rig_simulated() ? 0 : RIG_SLOW ? 500 : 50));
}

/* Fairness. In real time, turns that last long are measured, and then tasks share time and not
 * picks: slow builds and busy machines do that. The deterministic engine counts. */

static uint64_t picks(janus_scheduler *scheduler)
{
    janus_worker_info stats = JANUS_WORKER_INFO();
    CHECK_EQ(janus_worker_inspect(scheduler, JANUS_ALL_WORKERS, &stats), JANUS_OK);
    return stats.yields + stats.tasks_executed;
}

struct fair {
    janus_scheduler *scheduler;
    janus_nursery   *nursery;
    uint64_t         picks;
    atomic_int       done;
    int              turns;
};

static int64_t few_turns(void *argument)
{
    struct fair *fair = argument;
    uint64_t     before = picks(fair->scheduler);
    for (int i = 0; i < fair->turns; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    fair->picks = picks(fair->scheduler) - before;
    atomic_store(&fair->done, 1);
    return 0;
}

static int64_t finite_among_yielders(void *argument)
{
    struct fair  *fair = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, yield_for_ever, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, few_turns, fair), JANUS_OK);
    while (!atomic_load(&fair->done)) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("beside two endless yielders a task gets every fourth turn")
{
    struct fair fair = {.turns = 1000};
    fair.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    rig_do(fair.scheduler, finite_among_yielders, &fair);
    CHECK(fair.picks <= 4 * 1000 + (rig_simulated() ? 10 : 4000));
    CHECK_EQ(janus_scheduler_destroy(fair.scheduler), JANUS_OK);
}

/* Always leaves a fresh task behind. */
static int64_t breed(void *argument)
{
    struct fair *fair = argument;
    if (!atomic_load(&fair->done)) CHECK_EQ(janus_spawn(fair->nursery, breed, fair), JANUS_OK);
    return 0;
}

static int64_t finite_among_breeders(void *argument)
{
    struct fair  *fair = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    fair->nursery = &n;
    CHECK_EQ(janus_spawn(&n, few_turns, fair), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, breed, fair), JANUS_OK);
    while (!atomic_load(&fair->done)) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("an endless supply of fresh tasks does not starve a yielding task")
{
    struct fair fair = {.turns = 50};
    fair.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    rig_do(fair.scheduler, finite_among_breeders, &fair);
    if (rig_simulated()) CHECK(fair.picks <= 50 * 2 * 62); /* else it ends at all */
    CHECK_EQ(janus_scheduler_destroy(fair.scheduler), JANUS_OK);
}

struct outsider {
    atomic_int started, done;
    uint64_t   yields;
};

static int64_t yield_until_done(void *argument)
{
    struct outsider *outsider = argument;
    atomic_fetch_add(&outsider->started, 1);
    while (!atomic_load(&outsider->done)) CHECK_EQ(janus_yield(), JANUS_OK);
    return 0;
}

static int64_t set_done(void *argument)
{
    atomic_store(&((struct outsider *)argument)->done, 1);
    return 0;
}

TEST("a task from outside runs although the worker's own queue is never empty")
{
    struct outsider  outsider = {0};
    janus_nursery    n;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, yield_until_done, &outsider), JANUS_OK);
    while (atomic_load(&outsider.started) < 3) rig_spin();
    CHECK_EQ(janus_spawn(&n, set_done, &outsider), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* An endless loop of nurseries that end in place lets others run, too. */
static int64_t nurseries_until_done(void *argument)
{
    struct outsider *outsider = argument;
    uint64_t         limit = janus_now_ns() + rig_patience;
    atomic_store(&outsider->started, 1);
    while (!atomic_load(&outsider->done) && janus_now_ns() < limit) {
        janus_status ended;
        JANUS_NURSERY(n, ended) JANUS_IGNORE(janus_spawn(n, nothing, NULL));
        CHECK_EQ(ended, JANUS_OK);
    }
    return atomic_load(&outsider->done) ? 0 : -1;
}

TEST("a task that only waits for children that run in place lets others run")
{
    struct outsider  outsider = {0};
    janus_nursery    n;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nurseries_until_done, &outsider), JANUS_OK);
    while (atomic_load(&outsider.started) == 0) rig_spin();
    CHECK_EQ(janus_spawn(&n, set_done, &outsider), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* A busy task beside two that wait for each other's messages. */

struct mixed {
    janus_channel there, back;
    atomic_int    hops;
    atomic_bool   over;
    int           turns;   /* checks of the busy task after which messages had moved */
    long          longest; /* checks of the busy task between two messages */
};

enum { TRIPS = 500 };

static int64_t stay_busy(void *argument)
{
    struct mixed *mixed = argument;
    long          checks = 0;
    for (int seen = 0; !atomic_load(&mixed->over);) {
        int now = atomic_load(&mixed->hops);
        mixed->turns += now != seen;
        checks = now != seen ? 0 : checks + 1;
        if (checks > mixed->longest) mixed->longest = checks;
        seen = now;
        CHECK_EQ(janus_check(), JANUS_OK);
    }
    return 0;
}

static int64_t answer(void *argument)
{
    struct mixed *mixed = argument;
    int64_t       value = 0;
    for (int i = 0; i < TRIPS; i++) {
        CHECK_EQ(janus_channel_recv(mixed->there, &value), JANUS_OK);
        atomic_fetch_add(&mixed->hops, 1);
        CHECK_EQ(janus_channel_send(mixed->back, &value), JANUS_OK);
    }
    return 0;
}

static int64_t ask(void *argument)
{
    struct mixed *mixed = argument;
    int64_t       value = 7;
    for (int i = 0; i < TRIPS; i++) {
        CHECK_EQ(janus_channel_send(mixed->there, &value), JANUS_OK);
        CHECK_EQ(janus_channel_recv(mixed->back, &value), JANUS_OK);
        atomic_fetch_add(&mixed->hops, 1);
    }
    atomic_store(&mixed->over, true);
    return 0;
}

static int64_t busy_beside_messages(void *argument)
{
    struct mixed *mixed = argument;
    janus_nursery n;
    CHECK_EQ(janus_channel_create(sizeof(int64_t), 0, NULL, &mixed->there), JANUS_OK);
    CHECK_EQ(janus_channel_create(sizeof(int64_t), 0, NULL, &mixed->back), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, stay_busy, mixed), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, answer, mixed), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, ask, mixed), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(mixed->there), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(mixed->back), JANUS_OK);
    return 0;
}

/* SCHED:1.1.1c. With a seed, so that the machine's other work changes nothing. */
TEST("a busy task and two tasks that exchange messages take turns on one worker")
{
    for (uint64_t seed = 1; seed <= harness_part(5, 5); seed++) {
        struct mixed     mixed = {.turns = 0};
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .deterministic_seed = seed));
        rig_do(scheduler, busy_beside_messages, &mixed);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        CHECK_EQ(mixed.hops, 2 * TRIPS);
        CHECK(mixed.turns >= mixed.hops / 2);
        CHECK(mixed.longest <= 3L * JANUS_SLICE);
    }
}

/* Lanes. */

static const janus_priority priorities[] = {JANUS_PRIORITY_LOW, JANUS_PRIORITY_DEFAULT,
                                            JANUS_PRIORITY_HIGH};
static const char           letters[] = "LNH";

/* Tasks that a thread queues while the worker is held wait together, however many. A task may have
 * to yield after the 32 operations of its first slice, and then some run before all are queued. */
enum { OF_EACH = 40, OF_EACH_CHILD = 10 };

/* Counts a letter before the last H. */
static int before_last_high(const struct log *log, char letter)
{
    int last = 0, count = 0;
    for (int i = 0; i < log->count; i++) {
        if (log->letters[i] == 'H') last = i;
    }
    for (int i = 0; i < last; i++) count += log->letters[i] == letter;
    return count;
}

static int64_t three_lanes(void *argument)
{
    struct log   *log = argument;
    struct writer writers[3];
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < OF_EACH_CHILD * 3; i++) {
        int lane = i / OF_EACH_CHILD;
        writers[lane] = (struct writer){log, letters[lane], 1};
        CHECK_EQ(janus_spawn_with(&n, write_once, &writers[lane],
                                  JANUS_SPAWN_OPTIONS(.priority = priorities[lane]), NULL),
                 JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static void check_lanes(const struct log *log, int of_each)
{
    CHECK_EQ(log->count, of_each * 3);
    CHECK(before_last_high(log, 'N') <= of_each / 7 + 2);
    CHECK(before_last_high(log, 'L') <= of_each / 31 + 2);
    int normal = 0, low = 0;
    for (int i = 0; i < log->count; i++) {
        if (log->letters[i] == 'N') normal += i;
        if (log->letters[i] == 'L') low += i;
    }
    CHECK(normal < low);
}

TEST("a task's HIGH children run before the NORMAL ones, and these before the LOW ones")
{
    static struct log log;
    log.count = 0;
    rig_run(1, three_lanes, &log, 1);
    check_lanes(&log, OF_EACH_CHILD);
}

static int64_t hold_worker(void *argument)
{
    struct outsider *outsider = argument;
    atomic_store(&outsider->started, 1);
    while (!atomic_load(&outsider->done)) rig_spin();
    return 0;
}

/* Queues tasks from this thread while the only worker is held, then releases the worker. */
static void from_outside(struct log *log, int low, int normal, int high)
{
    static struct writer writers[3];
    int                  counts[] = {low, normal, high};
    struct outsider      holder = {0};
    janus_nursery        n;
    janus_scheduler     *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, hold_worker, &holder), JANUS_OK);
    while (atomic_load(&holder.started) == 0) rig_spin();
    for (int lane = 0; lane < 3; lane++) {
        writers[lane] = (struct writer){log, letters[lane], 1};
        for (int i = 0; i < counts[lane]; i++) {
            CHECK_EQ(janus_spawn_with(&n, write_once, &writers[lane],
                                      JANUS_SPAWN_OPTIONS(.priority = priorities[lane]), NULL),
                     JANUS_OK);
        }
    }
    atomic_store(&holder.done, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a thread's HIGH tasks run before the NORMAL ones, and these before the LOW ones")
{
    static struct log log;
    log.count = 0;
    from_outside(&log, OF_EACH, OF_EACH, OF_EACH);
    check_lanes(&log, OF_EACH);
}

TEST("a LOW task from a thread is not starved by HIGH tasks from there")
{
    static struct log log;
    log.count = 0;
    from_outside(&log, 1, 0, 3000);
    int at = 0;
    while (log.letters[at] != 'L') at++;
    CHECK(at < 200);
}

struct flood {
    janus_nursery *nursery;
    atomic_int     low_ran;
    int            high_count;
};

static int64_t high_for_ever(void *argument)
{
    struct flood *flood = argument;
    if (atomic_load(&flood->low_ran) || ++flood->high_count > 100000) return 0;
    CHECK_EQ(janus_spawn_with(flood->nursery, high_for_ever, flood,
                              JANUS_SPAWN_OPTIONS(.priority = JANUS_PRIORITY_HIGH), NULL),
             JANUS_OK);
    return 0;
}

static int64_t low_once(void *argument)
{
    atomic_store(&((struct flood *)argument)->low_ran, 1);
    return 0;
}

static int64_t low_below_high(void *argument)
{
    struct flood *flood = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    flood->nursery = &n;
    janus_spawn_options *low = JANUS_SPAWN_OPTIONS(.priority = JANUS_PRIORITY_LOW);
    CHECK_EQ(janus_spawn_with(&n, low_once, flood, low, NULL), JANUS_OK);
    CHECK_EQ(high_for_ever(flood), 0);
    while (!atomic_load(&flood->low_ran) && flood->high_count <= 100000) {
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a LOW task is not starved by an endless supply of HIGH ones")
{
    struct flood flood = {0};
    rig_run(1, low_below_high, &flood, 1);
    CHECK(flood.low_ran);
    CHECK(flood.high_count < 200);
}

/* A task that computes keeps its worker. Its child waits there, and only the other worker, whose
 * tasks all yield, can run it. */
struct held {
    int            yielders;
    bool           timer; /* one is set, for later */
    janus_priority priority;
    atomic_int     ran, begun;
    atomic_long    yields;
};

static bool held_too_long(struct held *held) { return atomic_load(&held->yields) > 5000000; }

static int64_t run_held(void *argument)
{
    atomic_store(&((struct held *)argument)->ran, 1);
    return 0;
}

static int64_t yield_beside(void *argument)
{
    struct held *held = argument;
    while (!atomic_load(&held->ran) && !held_too_long(held)) {
        JANUS_IGNORE(janus_yield());
        if (atomic_load(&held->begun)) atomic_fetch_add(&held->yields, 1);
    }
    return 0;
}

static int64_t compute_above(void *argument)
{
    struct held  *held = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&n, run_held, held, JANUS_SPAWN_OPTIONS(.priority = held->priority), NULL),
        JANUS_OK);
    atomic_store(&held->begun, 1);
    while (!atomic_load(&held->ran) && !held_too_long(held)) rig_spin();
    CHECK(!held_too_long(held));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t sleep_long(void *argument)
{
    (void)argument;
    return janus_sleep(UINT64_C(3600) * JANUS_SECONDS);
}

static int64_t hold_child(void *argument)
{
    struct held   held = *(const struct held *)argument;
    janus_nursery n, sleeper;
    CHECK_EQ(janus_nursery_open(&sleeper, NULL), JANUS_OK);
    if (held.timer) CHECK_EQ(janus_spawn(&sleeper, sleep_long, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 1; i < held.yielders; i++) {
        CHECK_EQ(janus_spawn(&n, yield_beside, &held), JANUS_OK);
    }
    for (int i = 0; i < 50; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, compute_above, &held), JANUS_OK);
    CHECK_EQ(yield_beside(&held), 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    if (held.timer) CHECK_EQ(janus_nursery_cancel(&sleeper), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&sleeper, NULL), held.timer ? JANUS_CANCELLED : JANUS_OK);
    return 0;
}

TEST("the child of a task that computes is not starved by another worker's lone yielding task")
{
    rig_run(2, hold_child, &(struct held){.yielders = 1}, 20);
    rig_run(2, hold_child, &(struct held){.yielders = 1, .timer = true}, 20);
}

TEST("the child of a task that computes is not starved by another worker's yielding tasks")
{
    for (int yielders = 2; yielders < 5; yielders++) {
        rig_run(2, hold_child, &(struct held){.yielders = yielders}, 5);
    }
    rig_run(2, hold_child, &(struct held){.yielders = 4, .timer = true}, 5);
    rig_run(2, hold_child, &(struct held){.yielders = 4, .priority = JANUS_PRIORITY_LOW}, 5);
}

/* SPDX-License-Identifier: MIT */
/* Which task runs when tasks serve each other. */
#define RIG_TURN_NS JANUS_TURN_NS
#include "channels.h"

#include "task/worker.h"

#include <stdio.h>
#include <time.h>

/* Taking turns. */

struct hog {
    janus_channel channel;
    atomic_int    others;
    bool          selects;
};

static int64_t talk_to_itself(void *argument)
{
    struct hog *hog = argument;
    int64_t     value = 0;
    uint64_t    limit = janus_now_ns() + rig_patience;
    while (!atomic_load(&hog->others)) {
        CHECK_EQ(janus_channel_send(hog->channel, &value), JANUS_OK);
        CHECK_EQ(janus_channel_recv(hog->channel, &value), JANUS_OK);
        CHECK(janus_now_ns() < limit);
    }
    return 0;
}

static int64_t run_after_yield(void *argument)
{
    struct hog *hog = argument;
    CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_store(&hog->others, 1);
    return 0;
}

static int64_t share(void *argument)
{
    struct hog hog = {.channel = open_channel(1)};
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn(n, talk_to_itself, &hog), JANUS_OK);
        CHECK_EQ(janus_spawn(n, run_after_yield, &hog), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    destroy(hog.channel);
    return 0;
}

TEST("a task whose channel is always ready lets others run") { rig_run(1, share, NULL, 3); }

/* A sender that computes for longer than a turn before each message. The other worker sleeps
 * meanwhile. It gets the receiver, unless the sender's turn ends in the send. */

struct alarm_clock {
    janus_channel   channel;
    atomic_int      received, elsewhere;
    _Atomic(void *) sender; /* its worker */
};

static int64_t receive_elsewhere(void *argument)
{
    struct alarm_clock *clock = argument;
    int64_t             value;
    while (janus_channel_recv(clock->channel, &value) == JANUS_OK) {
        bool elsewhere = atomic_load(&clock->sender) != jrt_worker_self();
        if (elsewhere) atomic_fetch_add(&clock->elsewhere, 1);
        atomic_fetch_add(&clock->received, 1);
    }
    return 0;
}

static int64_t send_rarely(void *argument)
{
    enum { MESSAGES = 100 };
    struct alarm_clock clock = {.channel = open_channel(1)};
    janus_status       ended;
    (void)argument;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn(n, receive_elsewhere, &clock), JANUS_OK);
        for (int64_t i = 0; i < MESSAGES; i++) {
            uint64_t until = janus_now_ns() + 300000, limit = until + rig_patience;
            while (janus_now_ns() < until) continue;
            atomic_store(&clock.sender, jrt_worker_self());
            CHECK_EQ(janus_channel_send(clock.channel, &i), JANUS_OK);
            while (atomic_load(&clock.received) <= i) CHECK(janus_now_ns() < limit);
        }
        CHECK_EQ(janus_channel_close(clock.channel), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK(clock.elsewhere >= MESSAGES / 2);
    destroy(clock.channel);
    return 0;
}

TEST("a sender that computed for long goes on when its message wakes another worker")
{
    RIG_REAL("no time passes while a task computes");
    rig_run(2, send_rarely, NULL, 1);
}

/* No budget ends its turn: it must end after this many operations at most, if each takes long. */

enum { OPERATIONS_MAX = 1000 }; /* a slice has JANUS_SLICE, ten times as many */

static int64_t talk_slowly(void *argument)
{
    struct hog       *hog = argument;
    int64_t           value = 0;
    int               operations = 0;
    janus_select_case in = {
        .channel = hog->channel, .kind = JANUS_SELECT_KIND_SEND, .value = &value};
    janus_select_case out = {
        .channel = hog->channel, .kind = JANUS_SELECT_KIND_RECV, .value = &value};
    while (!atomic_load(&hog->others)) {
        uint64_t until = janus_now_ns() + 1000;
        if (hog->selects) {
            CHECK_EQ(janus_select(&in, 1, NULL), JANUS_OK);
            CHECK_EQ(janus_select(&out, 1, NULL), JANUS_OK);
        } else {
            CHECK_EQ(janus_channel_send(hog->channel, &value), JANUS_OK);
            CHECK_EQ(janus_channel_recv(hog->channel, &value), JANUS_OK);
        }
        operations += 2;
        CHECK(operations <= OPERATIONS_MAX);
        while (janus_now_ns() < until) continue;
    }
    return 0;
}

static int64_t share_slowly(void *argument)
{
    (void)argument;
    for (int selects = 0; selects < 2; selects++) {
        struct hog   hog = {.channel = open_channel(1), .selects = selects != 0};
        janus_status ended;
        JANUS_NURSERY(n, ended)
        {
            CHECK_EQ(janus_spawn(n, run_after_yield, &hog), JANUS_OK);
            CHECK_EQ(janus_yield(), JANUS_OK); /* it has begun, and waits for its turn */
            CHECK_EQ(janus_spawn(n, talk_slowly, &hog), JANUS_OK);
        }
        CHECK_EQ(ended, JANUS_OK);
        destroy(hog.channel);
    }
    return 0;
}

TEST("a task whose channel is always ready lets others run long before its slice is used up")
{
    const janus_budget much = JANUS_BUDGET(.ops = 1000000000, .memory = 1 << 20,
                                           .spawn_count = 1000, .channel_ops = 1000000000);
    janus_scheduler   *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .task_budget = &much));
    for (int i = 0; i < 20; i++) rig_do(scheduler, share_slowly, NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Selects with very many cases. */

enum { CASES = 10000 };

#define A_THIRD 0.33

struct crowd {
    janus_channel      channel;
    janus_select_case *cases;
    atomic_bool        over;
    atomic_long        rounds;  /* of the neighbour */
    double             seconds; /* of the worker, in which it counted them */
};

static int64_t select_often(void *argument)
{
    struct crowd *crowd = argument;
    while (!atomic_load(&crowd->over)) {
        CHECK_EQ(janus_try_select(crowd->cases, CASES, NULL), JANUS_WOULD_WAIT);
    }
    return 0;
}

/* What the only worker's thread has used, however busy the machine is. */
static double cpu_seconds(void)
{
    struct timespec used;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Counts until the worker has used a tenth of a second. */
static int64_t count_rounds(void *argument)
{
    struct crowd *crowd = argument;
    double        began = cpu_seconds(), used = 0;
    for (int i = 1; used < 0.1; i++) {
        CHECK_EQ(janus_check(), JANUS_OK);
        atomic_fetch_add(&crowd->rounds, 1);
        if (i % 64 == 0) used = cpu_seconds() - began;
    }
    crowd->seconds = used;
    atomic_store(&crowd->over, true);
    return 0;
}

/* Rounds of the neighbour in a second of the worker, alone or beside the selects. */
static double rounds_beside(struct crowd *crowd, bool selects)
{
    janus_nursery n;
    atomic_store(&crowd->over, false);
    atomic_store(&crowd->rounds, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, count_rounds, crowd), JANUS_OK);
    if (selects) CHECK_EQ(janus_spawn(&n, select_often, crowd), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return (double)atomic_load(&crowd->rounds) / crowd->seconds;
}

static int64_t share_with_selects(void *argument)
{
    double      *best = argument;
    int64_t      value = 0;
    struct crowd crowd = {.channel = open_channel(0),
                          .cases = calloc(CASES, sizeof(janus_select_case))};
    CHECK(crowd.cases != NULL);
    for (int i = 0; i < CASES; i++) {
        crowd.cases[i] = (janus_select_case){
            .channel = crowd.channel, .kind = JANUS_SELECT_KIND_RECV, .value = &value};
    }
    /* A busy machine may disturb a measurement. A task that starves does so each time. */
    for (int i = 0; i < 30 && *best < A_THIRD; i++) {
        double share = rounds_beside(&crowd, true) / rounds_beside(&crowd, false);
        if (share > *best) *best = share;
    }
    free(crowd.cases);
    destroy(crowd.channel);
    return 0;
}

TEST("a neighbour of a task that selects among 10,000 cases gets a third of the worker")
{
    RIG_REAL("it measures time");
    if (RIG_SLOW) SKIP("shares of CPU time are measured in optimised builds");
    double best = 0;
    rig_run(1, share_with_selects, &best, 1);
    printf("# share %.2f\n", best);
    CHECK(best >= A_THIRD);
}

/* A task is served by a task that does not wait afterwards. */

struct busy {
    janus_channel channel;
    atomic_int    ran;
};

static int64_t be_served(void *argument)
{
    struct busy *busy = argument;
    int64_t      value = 0;
    CHECK_EQ(janus_channel_recv(busy->channel, &value), JANUS_OK);
    atomic_store(&busy->ran, 1);
    return 0;
}

static int64_t serve_and_keep_worker(void *argument)
{
    struct busy *busy = argument;
    int64_t      value = 1;
    uint64_t     limit = janus_now_ns() + rig_patience;
    await_waiting(busy->channel, 0, 1);
    CHECK_EQ(janus_channel_send(busy->channel, &value), JANUS_OK);
    while (!atomic_load(&busy->ran)) CHECK(janus_now_ns() < limit); /* without giving way */
    return 0;
}

static int64_t keep_all_busy(void *argument)
{
    int          pairs = *(int *)argument;
    struct busy  busy[3];
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < pairs; i++) {
            busy[i].channel = open_channel(0);
            atomic_store(&busy[i].ran, 0);
            CHECK_EQ(janus_spawn(n, be_served, &busy[i]), JANUS_OK);
            CHECK_EQ(janus_spawn(n, serve_and_keep_worker, &busy[i]), JANUS_OK);
        }
    }
    CHECK_EQ(ended, JANUS_OK);
    for (int i = 0; i < pairs; i++) destroy(busy[i].channel);
    return 0;
}

TEST("a task served by a task that keeps its worker runs on another worker")
{
    for (int pairs = 1; pairs < 4; pairs++) {
        rig_run((uint32_t)pairs + 1, keep_all_busy, &pairs, REPEATS);
    }
}

/* SPDX-License-Identifier: MIT */
/* The timers of several workers: which worker fires them, in which order, and what they meet. */
#include "cancel/cancel.h"
#include "plat/seam.h"
#include "rig.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

#include <stdlib.h>

/* [timer-late]  A worker that computes without a call does not delay its timers. */

struct stuck {
    atomic_int woken, over;
    bool       beside; /* the other worker always has a task */
};

static int64_t sleep_long(void *argument)
{
    struct stuck *stuck = argument;
    atomic_fetch_add(&stuck->over, 1); /* it is about to sleep */
    CHECK_EQ(janus_sleep(3600 * JANUS_SECONDS), JANUS_CANCELLED);
    atomic_store(&stuck->woken, 1);
    return JANUS_CANCELLED;
}

static int64_t yield_on(void *argument)
{
    struct stuck *stuck = argument;
    while (!atomic_load(&stuck->woken)) JANUS_IGNORE(janus_yield());
    return 0;
}

/* Arms a deadline on this worker, and keeps the worker until somebody has fired it. */
static int64_t arm_and_stay(void *argument)
{
    struct stuck *stuck = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, sleep_long, stuck), JANUS_OK);
    CHECK(rig_wait(&stuck->over));
    uint64_t start = jrt_clock_now_ns();
    CHECK_EQ(janus_nursery_set_deadline(&n, start + rig_ms), JANUS_OK);
    while (!atomic_load(&stuck->woken)) CHECK(jrt_clock_now_ns() - start < 100 * rig_patience);
    CHECK(jrt_clock_now_ns() >= start + rig_ms);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

static int64_t stuck_beside(void *argument)
{
    struct stuck *stuck = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    if (stuck->beside) CHECK_EQ(janus_spawn(&n, yield_on, stuck), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, arm_and_stay, stuck), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("an idle worker fires the timers of a worker that computes without a call")
{
    RIG_REAL("a thread that computes must be overtaken");
    for (int i = 0; i < 20; i++) {
        struct stuck stuck = {.beside = false};
        rig_run(2, stuck_beside, &stuck, 1);
    }
}

TEST("a busy worker fires the late timers of a worker that computes without a call")
{
    RIG_REAL("a thread that computes must be overtaken");
    for (int i = 0; i < 20; i++) {
        struct stuck stuck = {.beside = true};
        rig_run(2, stuck_beside, &stuck, 1);
    }
}

/* Memory. An alarm that rang in the set of one worker is armed again on another, whose set has no
 * room yet. */

static _Thread_local bool refuses;

/* The library calls this one. */
void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *out = NULL;
    if (refuses) return NULL;
    return posix_memalign(&out, alignment, bytes) == 0 ? out : NULL;
}

struct again {
    janus_scheduler *scheduler;
    struct jrt_alarm alarm;
    atomic_int       rang, arrived;
};

static void note_ring(struct jrt_alarm *alarm)
{
    atomic_store(&((struct again *)alarm->subject)->rang, 1);
}

/* Both tasks are on the CPU at once, so one of them is on worker 1. */
static int64_t arm_again(void *argument)
{
    struct again *again = argument;
    uint64_t      limit = janus_now_ns() + rig_patience;
    atomic_fetch_add(&again->arrived, 1);
    while (atomic_load(&again->arrived) < 2) CHECK(janus_now_ns() < limit);
    if (jrt_worker_self()->index == 0) return 0;
    struct jrt_timer other = {.deadline_ns = 0};
    refuses = true;
    bool has_room = jrt_sched_timer_arm(again->scheduler, &other, JRT_NEVER - 1);
    bool armed = jrt_sched_timer_arm(again->scheduler, &again->alarm.timer, JRT_NEVER - 1);
    refuses = false;
    CHECK(!has_room);
    CHECK(armed);
    jrt_sched_timer_disarm(again->scheduler, &again->alarm.timer);
    return 0;
}

static int64_t arm_on_both(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, arm_again, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("an alarm that rang has room in the set where it rang, if there is no memory elsewhere")
{
    RIG_REAL("two workers at once");
    if (JRT_ASAN || JRT_TSAN) SKIP("the sanitizer has its own aligned_alloc");
    struct again again = {.rang = 0};
    again.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    again.alarm = (struct jrt_alarm){.ring = note_ring, .subject = &again};
    /* A plain thread arms in the first set. */
    CHECK(jrt_sched_timer_arm(again.scheduler, &again.alarm.timer, jrt_clock_now_ns()));
    CHECK(rig_wait(&again.rang));
    rig_do(again.scheduler, arm_on_both, &again);
    CHECK_EQ(janus_scheduler_destroy(again.scheduler), JANUS_OK);
}

/* Order. Tasks on all workers arm alarms, which note when they ring. */

enum { ARMERS = 8, EACH = 16, ALARMS = ARMERS * EACH };

struct ordered {
    struct jrt_alarm alarms[ALARMS];
    uint64_t         armed[ALARMS]; /* the number of its arming */
    atomic_int       armings;
    int              rung[ALARMS];
    atomic_int       count;
    uint64_t         base_ns;
    atomic_int       ready;
};

static void note(struct jrt_alarm *alarm)
{
    struct ordered *all = alarm->subject;
    CHECK(jrt_clock_now_ns() >= alarm->timer.deadline_ns);
    all->rung[atomic_fetch_add(&all->count, 1)] = (int)(alarm - all->alarms);
}

struct armer {
    struct ordered *all;
    int             first;
};

static int64_t arm_some(void *argument)
{
    struct armer    *armer = argument;
    struct ordered  *all = armer->all;
    janus_scheduler *scheduler =
        janus_scheduler_current(); /* not between a number and its arming */
    for (int i = armer->first; i < armer->first + EACH; i++) {
        struct jrt_alarm *alarm = &all->alarms[i];
        uint64_t          deadline_ns = all->base_ns + (uint64_t)(i * 7919 % 11) * 1000;
        alarm->ring = note;
        alarm->subject = all;
        all->armed[i] = (uint64_t)atomic_fetch_add(&all->armings, 1);
        CHECK(jrt_sched_timer_arm(scheduler, &alarm->timer, deadline_ns));
        JANUS_IGNORE(janus_yield());
    }
    return 0;
}

static void check_order(const struct ordered *all)
{
    for (int i = 1; i < ALARMS; i++) {
        int      earlier = all->rung[i - 1], later = all->rung[i];
        uint64_t before = all->alarms[earlier].timer.deadline_ns;
        uint64_t after = all->alarms[later].timer.deadline_ns;
        bool     same_set = all->alarms[earlier].timer.set == all->alarms[later].timer.set;
        if (!rig_simulated() && !same_set) continue; /* sets are fired one after the other */
        CHECK(before <= after);
        if (before == after) CHECK(all->armed[earlier] < all->armed[later]);
    }
}

static int64_t arm_in_order(void *argument)
{
    struct ordered *all = calloc(1, sizeof *all);
    struct armer    armers[ARMERS];
    janus_nursery   n;
    (void)argument;
    CHECK(all != NULL);
    /* Late enough that in a world all are armed before the first is due. */
    all->base_ns = janus_now_ns() + 50 * rig_ms;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < ARMERS; i++) {
        armers[i] = (struct armer){all, i * EACH};
        CHECK_EQ(janus_spawn(&n, arm_some, &armers[i]), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    bool in_time = janus_now_ns() < all->base_ns;
    while (atomic_load(&all->count) < ALARMS) CHECK_EQ(janus_sleep(rig_ms), JANUS_OK);
    for (int i = 0; i < ALARMS; i++) { /* after it, nobody rings or holds a lock */
        jrt_sched_timer_disarm(janus_scheduler_current(), &all->alarms[i].timer);
    }
    if (in_time && rig_simulated()) check_order(all);
    free(all);
    return 0;
}

TEST("timers of all workers fire; in a world in the order of deadlines and of arming")
{
    rig_all(arm_in_order, NULL, 3);
}

/* Cancels, deadlines and messages that meet. */

enum { MEETINGS = RIG_SLOW ? 200 : 2000, MEETERS = 8 };

struct meeting {
    janus_channel there;
    uint64_t      seed;
    atomic_int    sent, received, late;
};

static uint64_t some_ns(struct meeting *meeting, int i)
{
    uint64_t mix = (meeting->seed + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15);
    return mix >> 32 & 0x3fff; /* up to 16 us: often already over */
}

static int64_t receive_until(void *argument)
{
    struct meeting *meeting = argument;
    int64_t         value;
    for (uint64_t i = 0; i < rig_few(MEETINGS); i++) {
        uint64_t     until = janus_now_ns() + some_ns(meeting, (int)i);
        janus_status status = janus_channel_recv_until(meeting->there, &value, until);
        if (status == JANUS_OK) atomic_fetch_add(&meeting->received, 1);
        if (status == JANUS_DEADLINE) {
            CHECK(janus_now_ns() >= until);
            atomic_fetch_add(&meeting->late, 1);
        }
        CHECK(status == JANUS_OK || status == JANUS_DEADLINE);
    }
    return 0;
}

static int64_t send_until(void *argument)
{
    struct meeting *meeting = argument;
    for (uint64_t i = 0; i < rig_few(MEETINGS); i++) {
        int64_t  value = (int64_t)i;
        uint64_t until = janus_now_ns() + some_ns(meeting, (int)i * 3 + 1);
        if (janus_channel_send_until(meeting->there, &value, until) == JANUS_OK) {
            atomic_fetch_add(&meeting->sent, 1);
        }
    }
    return 0;
}

static int64_t meet(void *argument)
{
    struct meeting meetings[MEETERS] = {0};
    janus_nursery  n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < MEETERS; i++) {
        meetings[i].seed = (uint64_t)i * 1000;
        CHECK_EQ(janus_channel_create(sizeof(int64_t), 0, NULL, &meetings[i].there), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, receive_until, &meetings[i]), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, send_until, &meetings[i]), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    for (int i = 0; i < MEETERS; i++) {
        CHECK_EQ(atomic_load(&meetings[i].sent), atomic_load(&meetings[i].received));
        CHECK_EQ(janus_channel_destroy(meetings[i].there), JANUS_OK);
    }
    return 0;
}

TEST("a deadline that meets an answer ends the wait once, on every worker")
{
    rig_all(meet, NULL, 1);
}

static int64_t nap(void *argument)
{
    uint64_t     rest_ns = (uint64_t)(uintptr_t)argument % 7 * 3000;
    janus_status status = JANUS_OK;
    for (int i = 0; i < 5 && status == JANUS_OK; i++) {
        uint64_t until = janus_now_ns() + rest_ns;
        status = janus_sleep_until(until);
        if (status == JANUS_OK) CHECK(janus_now_ns() >= until);
    }
    CHECK(status == JANUS_OK || status == JANUS_CANCELLED);
    return status;
}

static int64_t cancel_naps(void *argument)
{
    (void)argument;
    for (uint64_t i = 0; i < rig_few(MEETINGS); i++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (uintptr_t k = 0; k < 6; k++) {
            CHECK_EQ(janus_spawn(&n, nap, (void *)(i + k)), JANUS_OK);
        }
        /* Moved while it may ring, perhaps on another worker than before. */
        CHECK_EQ(janus_nursery_set_deadline(&n, janus_now_ns() + i % 5 * 4000), JANUS_OK);
        if (i % 2 == 0) JANUS_IGNORE(janus_yield());
        JANUS_IGNORE(janus_nursery_set_deadline(&n, janus_now_ns() + i % 3 * 9000));
        if (i % 3 == 0) JANUS_IGNORE(janus_nursery_cancel(&n));
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
    return 0;
}

static int64_t cancel_all_over(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&n, cancel_naps, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("cancels, moved deadlines and sleepers' timers meet, and nobody sleeps too short or for ever")
{
    rig_all(cancel_all_over, NULL, 1);
}

/* SPDX-License-Identifier: MIT */
/*
 * Random histories. A few parties, tasks and plain threads, do a few random operations on two
 * channels at once. Some have deadlines, some are cancelled in the middle. The channels are of all
 * kinds, opened by a thread or by a task. The task's worker, if it is the only one, owns their
 * locks until others come ([chan-bias]). When all parties have returned, there must be a story
 * (story.h) that keeps the order of operations that did not overlap. A failure prints the seed.
 */
#include "channels.h"

#include "base/rng.h"
#include "chan/chan.h"
#include "story.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { HISTORIES = RIG_SLOW ? 200 : 800 };

static struct op         cases[STORY_PARTIES][STORY_OPS][STORY_CASES];
static _Atomic(unsigned) ticks;
static atomic_int        arrived;
static uint64_t          seed;

static void draw_op(struct jrt_rng *rng, int party, int number)
{
    static const char verbs[] = "sssrrrSRSRxxXc";
    struct op        *op = &story.ops[party][number];
    int               value = party * 100 + number * 10;
    *op = (struct op){.verb = verbs[jrt_rng_below(rng, sizeof verbs - 1)],
                      .channel = (int)jrt_rng_below(rng, STORY_CHANNELS),
                      .value = value + 1,
                      .cases = cases[party][number],
                      .deadline_ns = 1};
    if (op->verb == 'c' && jrt_rng_below(rng, 3) != 0) op->verb = 'r';
    if (op->verb != 'x' && op->verb != 'X') return;
    op->count = 1 + (int)jrt_rng_below(rng, STORY_CASES);
    for (int i = 0; i < op->count; i++) {
        op->cases[i] = (struct op){.verb = jrt_rng_below(rng, 2) != 0 ? 's' : 'r',
                                   .channel = (int)jrt_rng_below(rng, STORY_CHANNELS),
                                   .value = value + 2 + i};
    }
}

static void draw_channel(struct jrt_rng *rng, int c)
{
    janus_overflow overflows[] = {JANUS_OVERFLOW_BLOCK, JANUS_OVERFLOW_BLOCK, JANUS_OVERFLOW_FAIL,
                                  JANUS_OVERFLOW_DROP_OLDEST};
    story.overflow[c] = overflows[jrt_rng_below(rng, 4)];
    story.unbounded[c] = jrt_rng_below(rng, 4) == 0;
    uint64_t least = story.unbounded[c] || story.overflow[c] == JANUS_OVERFLOW_DROP_OLDEST ? 1 : 0;
    story.capacity[c] = least + jrt_rng_below(rng, 3);
}

static void draw_all(struct jrt_rng *rng)
{
    story.timed = true;
    story.parties = 2 + (int)jrt_rng_below(rng, STORY_PARTIES - 1);
    for (int c = 0; c < STORY_CHANNELS; c++) draw_channel(rng, c);
    for (int i = 0; i < story.parties; i++) {
        story.counts[i] = 1 + (int)jrt_rng_below(rng, STORY_OPS);
        for (int k = 0; k < story.counts[i]; k++) draw_op(rng, i, k);
    }
    atomic_store(&ticks, 0);
    atomic_store(&arrived, 0);
}

static int64_t open_as_task(void *argument)
{
    struct jrt_worker *worker = jrt_worker_self();
    (void)argument;
    story_open(true);
    for (int c = 0; c < STORY_CHANNELS; c++) { /* tests the owner's path */
        struct jrt_bias *owner = atomic_load(&jrt_chan_of(story_channels[c])->lock.owner);
        CHECK(owner == (worker->alone ? worker->bias : NULL));
    }
    return 0;
}

/* All begin together. */
static void act(int party)
{
    atomic_fetch_add(&arrived, 1);
    uint64_t limit = janus_now_ns() + rig_patience;
    while (atomic_load(&arrived) < story.parties) {
        CHECK(janus_now_ns() < limit);
        janus_shield_begin();
        if (janus_yield() == JANUS_STATE) sched_yield(); /* a plain thread */
        janus_shield_end();
    }
    for (int k = 0; k < story.counts[party]; k++) {
        struct op *op = &story.ops[party][k];
        op->deadline_ns = janus_now_ns() + 20000 + (uint64_t)party * 7000;
        op->began = atomic_fetch_add(&ticks, 1);
        story_do(op);
        op->ended = atomic_fetch_add(&ticks, 1);
    }
}

static int64_t act_as_task(void *argument)
{
    act((int)(intptr_t)argument);
    return 0;
}

static void *act_as_thread(void *argument)
{
    act((int)(intptr_t)argument);
    return NULL;
}

static void check_story(uint64_t number)
{
    for (int c = 0; c < STORY_CHANNELS; c++) {
        janus_channel_info info = look(story_channels[c]);
        int64_t            value = 0;
        CHECK_EQ(info.senders + info.receivers, 0);
        CHECK(info.high_water <= story.capacity[c]);
        story.closed[c] = info.closed;
        story.dropped[c] = (int)info.dropped;
        story.left_count[c] = 0;
        while (janus_channel_try_recv(story_channels[c], &value) == JANUS_OK) {
            story.left[c][story.left_count[c]++] = value;
        }
        CHECK_EQ(story.left_count[c], (int)info.length);
        destroy(story_channels[c]);
    }
    bool there_is_a_story = story_holds((struct model){0});
    if (there_is_a_story) return;
    printf("# seed %llu, history %llu\n", (unsigned long long)seed, (unsigned long long)number);
    for (int c = 0; c < STORY_CHANNELS; c++) {
        printf("# channel %d: capacity %d%s, overflow %d, left %d, dropped %d, closed %d\n", c,
               (int)story.capacity[c], story.unbounded[c] ? " by bytes" : "",
               (int)story.overflow[c], story.left_count[c], story.dropped[c], story.closed[c]);
    }
    for (int i = 0; i < story.parties; i++) {
        for (int k = 0; k < story.counts[i]; k++) {
            const struct op *op = &story.ops[i][k];
            printf("# party %d: %u-%u %c channel %d value %d: %s, case %d, got %d\n", i, op->began,
                   op->ended, op->verb, op->channel, op->value, janus_status_name(op->status),
                   (int)op->chosen, (int)op->got);
        }
    }
    fflush(stdout);
    CHECK(there_is_a_story);
}

/* One history. The last `plain` parties are threads. The tasks are cancelled or not. */
static void happen(janus_scheduler *scheduler, struct jrt_rng *rng, uint64_t number)
{
    pthread_t     threads[STORY_PARTIES];
    janus_nursery root;
    draw_all(rng);
    int plain = jrt_rng_below(rng, 2) == 0 ? (int)jrt_rng_below(rng, 3) : 0;
    if (rig_simulated()) plain = 0;
    if (jrt_rng_below(rng, 2) == 0) {
        rig_do(scheduler, open_as_task, NULL);
    } else {
        story_open(true);
    }
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    for (int i = 0; i < story.parties; i++) {
        void *which = (void *)(intptr_t)i;
        if (i < story.parties - plain) {
            CHECK_EQ(janus_spawn(&root, act_as_task, which), JANUS_OK);
        } else {
            CHECK_EQ(pthread_create(&threads[i], NULL, act_as_thread, which), 0);
        }
    }
    if (jrt_rng_below(rng, 4) == 0) {
        uint64_t limit = janus_now_ns() + rig_patience;
        while (atomic_load(&arrived) < story.parties) {
            CHECK(janus_now_ns() < limit);
            sched_yield();
        }
        (void)janus_nursery_cancel(&root);
    }
    JANUS_IGNORE(janus_nursery_end(&root, NULL));
    for (int i = story.parties - plain; i < story.parties; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    check_story(number);
}

static void many(uint32_t workers)
{
    struct jrt_rng   rng;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
    seed = rig_simulated() ? strtoull(getenv("JANUSRT_SEED"), NULL, 0) : janus_now_ns();
    jrt_rng_seed(&rng, seed);
    for (uint64_t i = 0; i < (rig_simulated() ? 100 : HISTORIES); i++) happen(scheduler, &rng, i);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("random histories on one worker are linearizable") { many(1); }

TEST("random histories on three workers are linearizable") { many(3); }

static void clear_story(void)
{
    memset(&story, 0, sizeof story);
    story.timed = true;
    story.parties = 2;
    story.capacity[0] = 2;
    story.counts[0] = story.counts[1] = 2;
    for (int k = 0; k < 2; k++) {
        story.ops[0][k] = (struct op){.verb = 's', .value = k + 1, .began = 0, .ended = 9};
        story.ops[1][k] = (struct op){.verb = 'r', .got = k + 1, .began = 0, .ended = 9};
    }
}

TEST("the checker finds a history in which a value comes twice, is lost or overtakes")
{
    clear_story();
    CHECK(story_holds((struct model){0}));
    story.ops[1][1].got = 1; /* twice */
    CHECK(!story_holds((struct model){0}));
    story.ops[1][0].got = 2; /* overtakes */
    CHECK(!story_holds((struct model){0}));
    story.ops[1][0].got = 1;
    story.counts[1] = 1; /* 2 is lost */
    CHECK(!story_holds((struct model){0}));
    story.left_count[0] = 1;
    story.left[0][0] = 2;
    CHECK(story_holds((struct model){0}));
    story.ops[0][0].began = 10; /* received before it was sent */
    story.ops[0][0].ended = 11;
    CHECK(!story_holds((struct model){0}));
}

TEST("the checker accepts a full channel that fails or drops, and no other")
{
    clear_story();
    story.capacity[0] = 1;
    story.ops[0][1].ended = 1; /* both were sent before anything was received */
    story.ops[1][0].began = 2;
    CHECK(!story_holds((struct model){0}));
    story.ops[0][1].status = JANUS_FULL;
    story.counts[1] = 1;
    CHECK(!story_holds((struct model){0})); /* it waits */
    story.overflow[0] = JANUS_OVERFLOW_FAIL;
    CHECK(story_holds((struct model){0}));
    story.ops[0][1].status = JANUS_DEADLINE;
    CHECK(!story_holds((struct model){0})); /* it does not wait */
    story.ops[0][1].status = JANUS_FULL;
    story.capacity[0] = 2;
    CHECK(!story_holds((struct model){0})); /* there was room */
    story.capacity[0] = 1;
    story.overflow[0] = JANUS_OVERFLOW_DROP_OLDEST;
    CHECK(!story_holds((struct model){0}));
    story.ops[0][1].status = JANUS_OK;
    story.ops[1][0].got = 2;
    CHECK(!story_holds((struct model){0})); /* it is counted */
    story.dropped[0] = 1;
    CHECK(story_holds((struct model){0}));
    story.ops[1][0].got = 1;
    CHECK(!story_holds((struct model){0})); /* not the oldest */
}

/* SPDX-License-Identifier: MIT */
/*
 * The shipped channels and selects, in all orders of their steps, with up to four threads. A script
 * is what one thread does, one operation after the other. Every execution must have a story
 * (story.h).
 *
 * Threads may be tasks: then a step can cancel them while they wait, at any moment. Of the room
 * below, parking and waking, the model has only what [task-park] and [cancel-park] promise. The
 * channel's lock is a plain one here; lock_model.c has the shipped one. Broken variants show that
 * the model finds mistakes.
 *
 * checks: [chan-waits], [chan-claim], [chan-last], [chan-close]
 */
#include "model.h"

#include "plat/seam.h"

#include <stdlib.h>
#include <string.h>

#include "model_floor.h"
#include "story.h"

/* The shipped code. */

#undef jrt_cas_acq_rel
#undef jrt_store_release
#define jrt_cas_acq_rel claim_step
#define jrt_store_release(object, value)                                                           \
    (JRT_STORE(object, value, release), written(object)) /* release: as in base/atomic.h. */
#include "chan/chan.c"
#undef jrt_cas_acq_rel
#undef jrt_store_release
#define jrt_cas_acq_rel(object, expected, value) JRT_CAS(object, expected, value, acq_rel, acquire)
#define jrt_store_release(object, value) JRT_STORE(object, value, release)
#include "chan/open.c"
#include "chan/pool.c"
#include "chan/transfer.c"
#define wait_as_task select_as_task
#define wait_as_thread select_as_thread
#define step_or_queue select_or_queue
#define come_back select_comes_back
#include "chan/select.c"

static _Atomic(unsigned) ticks;

static unsigned stamp(void)
{
    if (!story.timed) return 0;
    return jrt_fetch_add_seq_cst(&ticks, 1u) + 1; /* seq_cst: an order of all. */
}

static void body(void *state, int self)
{
    (void)state;
    calls[self].base = (uintptr_t)__builtin_frame_address(0);
    for (int i = 0; i < story.counts[self]; i++) {
        calls[self].live = true;
        story.ops[self][i].began = stamp();
        story_do(&story.ops[self][i]);
        story.ops[self][i].ended = stamp();
        calls[self].live = false;
    }
}

/* Cancels thread 0. */
static void canceller(void *state, int self)
{
    (void)state, (void)self;
    jrt_store_seq_cst(&cancelled[0], 1u); /* seq_cst: [cancel-park]. */
    (void)end_wait(&tasks[0], JANUS_CANCELLED);
}

static void set_up(void *state)
{
    (void)state;
    scheduler = (janus_scheduler *)(void *)calloc(1, sizeof *scheduler);
    nursery.scheduler = scheduler;
    for (int i = 0; i < THREADS; i++) {
        memset(&tasks[i], 0, sizeof tasks[i]);
        tasks[i].nursery = &nursery;
        workers[i].current = &tasks[i];
        workers[i].scheduler = scheduler;
        workers[i].strand = &strands[i];
        workers[i].spare = &spare;
        workers[i].until_others = UINT32_MAX;
        atomic_store(&tasks[i].linked, true);
        jrt_rng_seed(&workers[i].choices, 1);
        atomic_store(&cancelled[i], 0);
    }
    atomic_store(&ticks, 0);
    memset(calls, 0, sizeof calls);
    story_open(false);
    inside = true;
}

static void check(void *state)
{
    (void)state;
    inside = false;
    for (int c = 0; c < STORY_CHANNELS; c++) {
        struct jrt_chan *chan = jrt_chan_of(story_channels[c]);
        MODEL_CHECK(chan->senders.count == 0 && chan->receivers.count == 0);
        story.closed[c] = chan->closed;
        story.dropped[c] = (int)chan->dropped;
        story.left_count[c] = (int)chan->length;
        for (uint64_t i = 0; i < chan->length; i++) {
            memcpy(&story.left[c][i], jrt_chan_slot(chan, i), 8);
        }
    }
    bool there_is_a_story = story_holds((struct model){0});
    MODEL_CHECK(there_is_a_story);
}

static void tear_down(void *state)
{
    (void)state;
    inside = false;
    for (int c = STORY_CHANNELS - 1; c >= 0; c--) { /* the same addresses every time */
        struct jrt_chan *chan = jrt_chan_of(story_channels[c]);
        free(chan->ring); /* a failed thread may hold it */
        chan->ring = NULL;
        free(chan->cold);
        chan->lock.taken = false;
        jrt_chan_drop_keys(chan); /* [chan-key] */
        jrt_chan_give(chan);
    }
    free(scheduler);
}

/* Runs the script of `world`. Thread 0 is a task if it can be cancelled. */
static struct model_scenario scenario(const char *name, bool cancels)
{
    struct model_scenario all = {.name = name,
                                 .state = NULL,
                                 .setup = set_up,
                                 .check = check,
                                 .teardown = tear_down,
                                 .memory = MODEL_SC};
    story.parties = 0;
    for (int i = 0; i < THREADS && story.ops[i][0].verb != 0; i++) {
        int count = 0;
        while (count < STORY_OPS && story.ops[i][count].verb != 0) count++;
        story.counts[i] = count;
        all.bodies[i] = body;
        story.parties++;
    }
    if (cancels) all.bodies[story.parties] = canceller;
    for (int i = 0; i < THREADS; i++) is_task[i] = shortly || (cancels && i == 0);
    return all;
}

static void clear(uint64_t first_capacity, uint64_t second_capacity, bool timed)
{
    memset(story.ops, 0, sizeof story.ops);
    memset(story.counts, 0, sizeof story.counts);
    memset(story.overflow, 0, sizeof story.overflow);
    memset(story.unbounded, 0, sizeof story.unbounded);
    story.capacity[0] = first_capacity;
    story.capacity[1] = second_capacity;
    story.timed = timed;
}

#define SCRIPT(thread, ...)                                                                        \
    do {                                                                                           \
        const struct op script[] = {__VA_ARGS__};                                                  \
        memcpy(story.ops[thread], script, sizeof script);                                          \
    } while (0)

/* First with threads and, if there is a cancel, a task on the slow path. Then with tasks on the
 * fast path. */
static void pass(const char *name, bool cancels)
{
    for (int way = 0; way < 2; way++) {
        shortly = way == 1;
        struct model_scenario all = scenario(name, cancels);
        model_pass(&all);
    }
    shortly = false;
}

TEST("sends and receives in a channel without room are linearizable")
{
    clear(0, 0, true);
    SCRIPT(0, {.verb = 's', .value = 1});
    SCRIPT(1, {.verb = 'r'});
    pass("one sends, one receives", false);
    clear(0, 0, false);
    SCRIPT(0, {.verb = 's', .value = 1});
    SCRIPT(1, {.verb = 's', .value = 3});
    SCRIPT(2, {.verb = 'r'}, {.verb = 'r'});
    pass("two send, one receives", false);
    clear(0, 0, false);
    SCRIPT(0, {.verb = 's', .value = 1});
    SCRIPT(1, {.verb = 'r'});
    SCRIPT(2, {.verb = 'S', .value = 3}, {.verb = 'R'}, {.verb = 'c'});
    pass("somebody tries in between and closes", false);
}

TEST("a channel with room is a queue")
{
    clear(1, 0, true);
    SCRIPT(0, {.verb = 's', .value = 1}, {.verb = 's', .value = 2});
    SCRIPT(1, {.verb = 'r'}, {.verb = 'r'});
    pass("two values through one place", false);
    clear(1, 0, false);
    SCRIPT(0, {.verb = 's', .value = 1}, {.verb = 's', .value = 2});
    SCRIPT(1, {.verb = 's', .value = 3});
    SCRIPT(2, {.verb = 'r'}, {.verb = 'R'}, {.verb = 'r'});
    pass("two send three, one receives and tries", false);
    clear(2, 0, false);
    SCRIPT(0, {.verb = 's', .value = 1}, {.verb = 's', .value = 2}, {.verb = 's', .value = 3});
    SCRIPT(1, {.verb = 'r'}, {.verb = 'r'});
    SCRIPT(2, {.verb = 'R'}, {.verb = 'S', .value = 4});
    pass("one place more", false);
}

TEST("a close is one moment: values sent before are received, and nothing is sent after")
{
    clear(0, 0, true);
    SCRIPT(0, {.verb = 's', .value = 1});
    SCRIPT(1, {.verb = 'r'});
    SCRIPT(2, {.verb = 'c'});
    pass("without room", false);
    clear(1, 0, false);
    SCRIPT(0, {.verb = 's', .value = 1}, {.verb = 's', .value = 2});
    SCRIPT(1, {.verb = 'r'}, {.verb = 'r'}, {.verb = 'r'});
    SCRIPT(2, {.verb = 'c'}, {.verb = 'c'});
    pass("with room", false);
}

TEST("after a close no value of a waiting sender is taken, while the senders are woken one by one")
{
    clear(1, 0, false);
    SCRIPT(0, {.verb = 's', .value = 1}, {.verb = 's', .value = 2});
    SCRIPT(1, {.verb = 's', .value = 3});
    SCRIPT(2, {.verb = 'c'});
    SCRIPT(3, {.verb = 'S', .value = 4}, {.verb = 'R'});
    pass("who was told that it is closed receives what lay in it", false);
    clear(0, 0, false);
    SCRIPT(0, {.verb = 'r'});
    SCRIPT(1, {.verb = 'r'});
    SCRIPT(2, {.verb = 'c'});
    SCRIPT(3, {.verb = 'R'}, {.verb = 'S', .value = 4});
    pass("receivers", false);
}

TEST("a full channel fails or drops the oldest value, in all orders")
{
    clear(1, 0, false);
    story.overflow[0] = JANUS_OVERFLOW_FAIL;
    SCRIPT(0, {.verb = 's', .value = 1}, {.verb = 's', .value = 2});
    SCRIPT(1, {.verb = 'R'}, {.verb = 'R'});
    SCRIPT(2, {.verb = 'S', .value = 3});
    pass("it fails", false);
    clear(1, 0, false);
    story.overflow[0] = JANUS_OVERFLOW_DROP_OLDEST;
    SCRIPT(0, {.verb = 's', .value = 1}, {.verb = 's', .value = 2});
    SCRIPT(1, {.verb = 'r'}, {.verb = 'R'});
    SCRIPT(2, {.verb = 'S', .value = 3});
    pass("it drops", false);
}

TEST("an unbounded channel grows and shrinks while others use it")
{
    static struct op either[] = {{.verb = 's', .channel = 0, .value = 5},
                                 {.verb = 'r', .channel = 1}};
    clear(2, 0, false);
    story.unbounded[0] = true;
    SCRIPT(0, {.verb = 's', .value = 1}, {.verb = 's', .value = 2});
    SCRIPT(1, {.verb = 'r'}, {.verb = 'r'});
    pass("one sends, one receives", false);
    clear(2, 0, false);
    story.unbounded[0] = true;
    SCRIPT(0, {.verb = 's', .value = 1});
    SCRIPT(1, {.verb = 'S', .value = 2});
    SCRIPT(2, {.verb = 'R'});
    pass("two send, one receives", false);
    clear(1, 0, false);
    story.unbounded[0] = true;
    SCRIPT(0, {.verb = 'x', .cases = either, .count = 2});
    SCRIPT(1, {.verb = 'S', .value = 1}, {.verb = 'R'});
    pass("a select sends", false);
}

TEST("a select does one of its cases and leaves the others unchanged")
{
    static struct op receive[] = {{.verb = 'r', .channel = 0}, {.verb = 'r', .channel = 1}};
    static struct op turn[] = {{.verb = 's', .channel = 0, .value = 5},
                               {.verb = 'r', .channel = 1}};
    static struct op back[] = {{.verb = 's', .channel = 1, .value = 6},
                               {.verb = 'r', .channel = 0}};
    clear(0, 0, false);
    SCRIPT(0, {.verb = 'x', .cases = receive, .count = 2},
           {.verb = 'x', .cases = receive, .count = 2});
    SCRIPT(1, {.verb = 's', .channel = 0, .value = 1});
    SCRIPT(2, {.verb = 's', .channel = 1, .value = 2});
    pass("two senders, one selects twice", false);
    clear(0, 0, false);
    SCRIPT(0, {.verb = 'x', .cases = turn, .count = 2});
    SCRIPT(1, {.verb = 'x', .cases = back, .count = 2});
    pass("two selects meet in one of two channels", false);
    clear(1, 0, false);
    SCRIPT(0, {.verb = 'x', .cases = turn, .count = 2});
    SCRIPT(1, {.verb = 'X', .cases = receive, .count = 2});
    SCRIPT(2, {.verb = 'c', .channel = 1});
    pass("one tries, one closes", false);
    clear(1, 1, false); /* one of the two has something at every moment */
    SCRIPT(0, {.verb = 's', .channel = 0, .value = 1}, {.verb = 'X', .cases = receive, .count = 2});
    SCRIPT(1, {.verb = 's', .channel = 1, .value = 2}, {.verb = 'R', .channel = 0});
    pass("there is a moment at which nothing can be done", false);
}

TEST("a cancelled task has done what it reports and nothing else")
{
    static struct op receive[] = {{.verb = 'r', .channel = 0}, {.verb = 'r', .channel = 1}};
    clear(0, 0, false);
    SCRIPT(0, {.verb = 'r'});
    SCRIPT(1, {.verb = 'S', .value = 1});
    pass("a receiver", true);
    clear(1, 0, false);
    SCRIPT(0, {.verb = 's', .value = 1}, {.verb = 's', .value = 2});
    SCRIPT(1, {.verb = 'r'});
    pass("a sender", true);
    clear(0, 0, false);
    SCRIPT(0, {.verb = 'r'}, {.verb = 'r'});
    SCRIPT(1, {.verb = 'c'});
    SCRIPT(2, {.verb = 'S', .value = 1});
    pass("a receiver, while somebody closes", true);
    clear(0, 0, false);
    SCRIPT(0, {.verb = 'x', .cases = receive, .count = 2});
    SCRIPT(1, {.verb = 'S', .channel = 0, .value = 1});
    SCRIPT(2, {.verb = 'S', .channel = 1, .value = 2});
    pass("a select", true);
}

static void find(const char *name, bool cancels, const char *word)
{
    struct model_scenario all = scenario(name, cancels);
    model_find(&all, word);
}

TEST("the model finds a claim without asking, and a touch after letting go")
{
    static struct op receive[] = {{.verb = 'r', .channel = 0}, {.verb = 'r', .channel = 1}};
    clear(0, 0, false);
    SCRIPT(0, {.verb = 'x', .cases = receive, .count = 2});
    SCRIPT(1, {.verb = 'S', .channel = 0, .value = 1});
    SCRIPT(2, {.verb = 'S', .channel = 1, .value = 2});
    claims_blindly = true;
    find("a select that is claimed twice", true, "");
    SCRIPT(1, {.verb = 's', .channel = 0, .value = 1});
    shortly = true;
    find("a select that is claimed twice, once on the short way", true, "");
    shortly = false;
    claims_blindly = false;
    clear(0, 0, false);
    SCRIPT(0, {.verb = 'r'});
    SCRIPT(1, {.verb = 'S', .value = 1});
    lets_go_twice = true;
    find("a waker that always lets go", true, "live");
    SCRIPT(1, {.verb = 's', .value = 1});
    shortly = true;
    find("the same on the short way", true, "live");
    shortly = false;
    lets_go_twice = false;
}

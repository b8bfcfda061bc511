/* SPDX-License-Identifier: MIT */
/*
 * Channels and selects as they are shipped, all orders of their steps, up to four threads. A script
 * is what one thread does, one operation after the other:
 *
 *     s send   r receive   S try to send   R try to receive   c close   x select   X try to select
 *
 * Whatever the order, there must be a story: the same operations one at a time, each thread's in
 * its order, with the same results on a plain queue; in a channel without room a send and a receive
 * happen together. One that was cancelled has done nothing. What is left at the end is the story's
 * end. In timed scenarios an operation that ended before another began comes before it in the
 * story too.
 *
 * Threads may be tasks: then they can be cancelled while they wait, by a step at any moment. Of the
 * room below, parking and waking, there is only what [task-park] and [cancel-park] promise. The
 * channel's own lock is a plain one here; lock_model.c has the shipped one. Broken variants show
 * that the model would notice.
 */
#include "model.h"

#include "plat/seam.h"

#include <stdlib.h>
#include <string.h>

#include "model_floor.h"

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

/* Scripts. */

enum { OPS_MAX = 3, CHANNELS = 2, CASES_MAX_HERE = 3 };

struct op {
    char       verb;
    int        channel;
    int        value; /* to send */
    struct op *cases; /* of a select: s and r */
    int        count;
    /* What came of it. */
    janus_status status;
    size_t       chosen;
    int64_t      got;
    unsigned     began, ended;
};

static struct {
    uint64_t          capacity[CHANNELS];
    janus_channel     channels[CHANNELS];
    struct op         ops[THREADS][OPS_MAX];
    int               counts[THREADS], threads;
    bool              timed;
    _Atomic(unsigned) clock;
    int64_t           left[CHANNELS][8]; /* at the end */
    int               left_count[CHANNELS];
    bool              closed[CHANNELS];
} world;

static unsigned stamp(void)
{
    if (!world.timed) return 0;
    return jrt_fetch_add_seq_cst(&world.clock, 1u) + 1; /* seq_cst: an order of all. */
}

static janus_status do_select_op(struct op *op, bool waits)
{
    janus_select_case cases[CASES_MAX_HERE];
    int64_t           values[CASES_MAX_HERE] = {0};
    for (int i = 0; i < op->count; i++) {
        values[i] = op->cases[i].value;
        cases[i] = (janus_select_case){.channel = world.channels[op->cases[i].channel],
                                       .kind = op->cases[i].verb == 's' ? JANUS_SELECT_SEND
                                                                        : JANUS_SELECT_RECV,
                                       .value = &values[i]};
    }
    janus_status status = waits ? janus_select(cases, (size_t)op->count, &op->chosen)
                                : janus_try_select(cases, (size_t)op->count, &op->chosen);
    if (status == JANUS_OK) op->got = values[op->chosen];
    return status;
}

__attribute__((noinline)) static void do_op(struct op *op)
{
    janus_channel channel = world.channels[op->channel];
    int64_t       value = op->value;
    op->began = stamp();
    switch (op->verb) {
    case 's': op->status = janus_channel_send(channel, &value); break;
    case 'r': op->status = janus_channel_recv(channel, &value); break;
    case 'S': op->status = janus_channel_try_send(channel, &value); break;
    case 'R': op->status = janus_channel_try_recv(channel, &value); break;
    case 'c': op->status = janus_channel_close(channel); break;
    case 'x': op->status = do_select_op(op, true); break;
    case 'X': op->status = do_select_op(op, false); break;
    default: CHECK(false);
    }
    if (op->verb == 'r' || op->verb == 'R') op->got = value;
    op->ended = stamp();
}

static void body(void *state, int self)
{
    (void)state;
    calls[self].base = (uintptr_t)__builtin_frame_address(0);
    for (int i = 0; i < world.counts[self]; i++) {
        calls[self].live = true;
        do_op(&world.ops[self][i]);
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
        workers[i].spare = &spare;
        jrt_rng_seed(&workers[i].choices, 1);
        atomic_store(&cancelled[i], 0);
    }
    atomic_store(&world.clock, 0);
    memset(calls, 0, sizeof calls);
    for (int i = 0; i < CHANNELS; i++) {
        CHECK_EQ(janus_channel_open(8, world.capacity[i], NULL, &world.channels[i]), JANUS_OK);
    }
    inside = true;
}

/* The story. */

struct tale {
    int64_t queue[CHANNELS][8];
    int     length[CHANNELS];
    bool    closed[CHANNELS];
    int     next[THREADS];
};

/* A select that did something is what it did. */
static struct op as_done(const struct op *op)
{
    struct op done = *op;
    bool      chose = op->status == JANUS_OK || op->status == JANUS_CLOSED;
    if ((op->verb != 'x' && op->verb != 'X') || !chose) return done;
    done = op->cases[op->chosen];
    done.status = op->status;
    done.got = op->got;
    return done;
}

static bool can_send(const struct tale *tale, int channel)
{
    return tale->closed[channel] || (uint64_t)tale->length[channel] < world.capacity[channel];
}

static bool can_receive(const struct tale *tale, int channel)
{
    return tale->closed[channel] || tale->length[channel] > 0;
}

/* One operation alone; false: it does not fit here. */
static bool tell_one(struct tale *tale, const struct op *op)
{
    struct op done = as_done(op);
    int       c = done.channel;
    bool      sends = done.verb == 's' || done.verb == 'S';
    switch (done.status) {
    case JANUS_CANCELLED: return true;
    case JANUS_WOULD_WAIT:
        if (done.verb == 'S') return !can_send(tale, c);
        if (done.verb == 'R') return !can_receive(tale, c);
        for (int i = 0; i < op->count; i++) {
            const struct op *one = &op->cases[i];
            if (one->verb == 's' ? can_send(tale, one->channel) : can_receive(tale, one->channel))
                return false;
        }
        return true;
    case JANUS_CLOSED: return tale->closed[c] && (sends || tale->length[c] == 0);
    case JANUS_OK: break;
    default: return false;
    }
    if (done.verb == 'c') {
        tale->closed[c] = true;
        return true;
    }
    if (sends) {
        if (tale->closed[c] || !can_send(tale, c)) return false;
        tale->queue[c][tale->length[c]++] = done.value;
        return true;
    }
    if (tale->length[c] == 0 || tale->queue[c][0] != done.got) return false;
    memmove(tale->queue[c], tale->queue[c] + 1, sizeof tale->queue[c] - sizeof tale->queue[c][0]);
    tale->length[c]--;
    return true;
}

/* Two that meet. */
static bool tell_two(const struct tale *tale, const struct op *left, const struct op *right)
{
    struct op send = as_done(left), receive = as_done(right);
    return (send.verb == 's' || send.verb == 'S') && send.status == JANUS_OK &&
           (receive.verb == 'r' || receive.verb == 'R') && receive.status == JANUS_OK &&
           send.channel == receive.channel && world.capacity[send.channel] == 0 &&
           !tale->closed[send.channel] && send.value == receive.got;
}

static bool ends_right(const struct tale *tale)
{
    for (int c = 0; c < CHANNELS; c++) {
        if (tale->length[c] != world.left_count[c] || tale->closed[c] != world.closed[c])
            return false;
        for (int i = 0; i < tale->length[c]; i++) {
            if (tale->queue[c][i] != world.left[c][i]) return false;
        }
    }
    return true;
}

/* Whether thread i's next operation may come now, though others have not been told. */
static bool in_time(const struct tale *tale, int i)
{
    unsigned began = world.ops[i][tale->next[i]].began;
    for (int k = 0; k < world.threads && world.timed; k++) {
        if (k == i || tale->next[k] == world.counts[k]) continue;
        if (world.ops[k][tale->next[k]].ended < began) return false;
    }
    return true;
}

static bool tell(struct tale tale)
{
    bool all = true;
    for (int i = 0; i < world.threads; i++) {
        if (tale.next[i] == world.counts[i]) continue;
        all = false;
        if (!in_time(&tale, i)) continue;
        const struct op *op = &world.ops[i][tale.next[i]];
        struct tale      then = tale;
        then.next[i]++;
        if (tell_one(&then, op) && tell(then)) return true;
        for (int k = 0; k < world.threads; k++) {
            if (k == i || tale.next[k] == world.counts[k] || !in_time(&tale, k)) continue;
            if (!tell_two(&tale, op, &world.ops[k][tale.next[k]])) continue;
            then = tale;
            then.next[i]++, then.next[k]++;
            if (tell(then)) return true;
        }
    }
    return all && ends_right(&tale);
}

static void check(void *state)
{
    (void)state;
    inside = false;
    for (int c = 0; c < CHANNELS; c++) {
        struct jrt_chan *chan = jrt_chan_of(world.channels[c]);
        MODEL_CHECK(chan->senders.count == 0 && chan->receivers.count == 0);
        world.closed[c] = chan->closed;
        world.left_count[c] = (int)chan->length;
        for (uint64_t i = 0; i < chan->length; i++) {
            memcpy(&world.left[c][i], jrt_chan_slot(chan, i), 8);
        }
    }
    bool there_is_a_story = tell((struct tale){0});
    MODEL_CHECK(there_is_a_story);
}

static void tear_down(void *state)
{
    (void)state;
    inside = false;
    for (int c = CHANNELS - 1; c >= 0; c--) { /* the same addresses every time */
        struct jrt_chan *chan = jrt_chan_of(world.channels[c]);
        free(chan->ring); /* who failed may be inside */
        chan->ring = NULL;
        chan->lock.taken = false;
        jrt_chan_give(chan);
    }
    free(scheduler);
}

/* Runs what `world` says: thread 0 a task if it can be cancelled. */
static struct model_scenario scenario(const char *name, bool cancels)
{
    struct model_scenario all = {.name = name,
                                 .state = &world,
                                 .setup = set_up,
                                 .check = check,
                                 .teardown = tear_down,
                                 .memory = MODEL_SC};
    world.threads = 0;
    for (int i = 0; i < THREADS && world.ops[i][0].verb != 0; i++) {
        int count = 0;
        while (count < OPS_MAX && world.ops[i][count].verb != 0) count++;
        world.counts[i] = count;
        all.bodies[i] = body;
        world.threads++;
    }
    if (cancels) all.bodies[world.threads] = canceller;
    memset(is_task, 0, sizeof is_task);
    is_task[0] = cancels;
    return all;
}

static void clear(uint64_t first_capacity, uint64_t second_capacity, bool timed)
{
    memset(world.ops, 0, sizeof world.ops);
    memset(world.counts, 0, sizeof world.counts);
    world.capacity[0] = first_capacity;
    world.capacity[1] = second_capacity;
    world.timed = timed;
}

#define SCRIPT(thread, ...)                                                                        \
    do {                                                                                           \
        const struct op script[] = {__VA_ARGS__};                                                  \
        memcpy(world.ops[thread], script, sizeof script);                                          \
    } while (0)

static void pass(const char *name, bool cancels)
{
    struct model_scenario all = scenario(name, cancels);
    model_pass(&all);
}

TEST("senders and receivers that meet in a channel without room have a story")
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

TEST("closing is one moment: what was sent before is received, nothing is sent after")
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

TEST("a select does one of its cases, the others it leaves as they were")
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

TEST("who is cancelled has done what it says and nothing else")
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

TEST("claiming without asking, or touching what was let go, is found out")
{
    static struct op receive[] = {{.verb = 'r', .channel = 0}, {.verb = 'r', .channel = 1}};
    clear(0, 0, false);
    SCRIPT(0, {.verb = 'x', .cases = receive, .count = 2});
    SCRIPT(1, {.verb = 'S', .channel = 0, .value = 1});
    SCRIPT(2, {.verb = 'S', .channel = 1, .value = 2});
    claims_blindly = true;
    find("a select that is claimed twice", true, "");
    claims_blindly = false;
    clear(0, 0, false);
    SCRIPT(0, {.verb = 'r'});
    SCRIPT(1, {.verb = 'S', .value = 1});
    lets_go_twice = true;
    find("a waker that always lets go", true, "live");
    lets_go_twice = false;
}

/* SPDX-License-Identifier: MIT */
/* Selects: they do one of several cases, each equally likely, and none twice. */
#include "channels.h"

#include <pthread.h>
#include <string.h>

static janus_select_case recv_from(janus_channel channel, int64_t *value)
{
    return (janus_select_case){.channel = channel, .kind = JANUS_SELECT_KIND_RECV, .value = value};
}

static janus_select_case send_to(janus_channel channel, int64_t *value)
{
    return (janus_select_case){.channel = channel, .kind = JANUS_SELECT_KIND_SEND, .value = value};
}

static int64_t at_once(void *argument)
{
    janus_channel     empty = open_outside(0), one = open_outside(1), closed = open_outside(1);
    int64_t           in = 5, out = 0;
    size_t            chosen = 99;
    janus_select_case cases[3] = {recv_from(empty, &out), recv_from(one, &out),
                                  send_to(empty, &in)};
    janus_select_case nobody[2] = {recv_from((janus_channel){{0, 0}}, &out),
                                   recv_from(empty, &out)};
    (void)argument;
    CHECK_EQ(janus_try_select(cases, 3, &chosen), JANUS_WOULD_WAIT);
    CHECK_EQ(janus_select_until(cases, 3, &chosen, 0), JANUS_DEADLINE);
    CHECK_EQ(janus_select_until(nobody, 2, &chosen, janus_now_ns() + rig_ms / 4), JANUS_DEADLINE);
    CHECK_EQ(janus_select_until(NULL, 0, &chosen, janus_now_ns() + rig_ms / 4), JANUS_DEADLINE);
    CHECK_EQ(janus_try_select(NULL, 0, &chosen), JANUS_WOULD_WAIT);
    CHECK_EQ(chosen, 99);
    CHECK_EQ(janus_channel_send(one, &in), JANUS_OK);
    CHECK_EQ(janus_select(cases, 3, &chosen), JANUS_OK);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(out, 5);
    cases[0] = send_to(one, &in);
    CHECK_EQ(janus_try_select(cases, 3, &chosen), JANUS_OK); /* its room, or its value */
    CHECK_EQ(chosen, 0);
    CHECK_EQ(janus_try_select(cases, 3, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_close(closed), JANUS_OK);
    cases[0] = recv_from(closed, &out);
    cases[1] = recv_from(empty, &out);
    CHECK_EQ(janus_select(cases, 3, &chosen), JANUS_CLOSED);
    CHECK_EQ(chosen, 0);
    cases[0] = send_to(closed, &in);
    CHECK_EQ(janus_select(cases, 3, &chosen), JANUS_CLOSED);
    cases[2].kind = 7;
    CHECK_EQ(janus_select(cases, 3, &chosen), JANUS_INVALID);
    CHECK_EQ(chosen, 2);
    cases[2] = recv_from(empty, NULL);
    cases[0] = recv_from(empty, &out);
    CHECK_EQ(janus_try_select(cases, 3, &chosen), JANUS_INVALID);
    CHECK_EQ(chosen, 2);
    CHECK_EQ(look(empty).senders + look(empty).receivers + look(one).senders, 0);
    destroy(empty);
    destroy(one);
    destroy(closed);
    return 0;
}

TEST("a select does a possible case at once, or reports WOULD_WAIT or the wrong case")
{
    CHECK_EQ(at_once(NULL), 0);
    rig_all(at_once, NULL, REPEATS);
}

/* Fairness. */

enum { CASES = 6, DRAWS = 6000 };

static int64_t count_choices(void *argument)
{
    int              *counts = argument;
    janus_channel     channels[CASES];
    janus_select_case cases[CASES];
    int64_t           value = 0;
    memset(counts, 0, CASES * sizeof *counts);
    for (int i = 0; i < CASES; i++) {
        channels[i] = open_outside(1);
        cases[i] = recv_from(channels[i], &value);
    }
    for (int k = 0; k < DRAWS; k++) {
        for (int i = 0; i < CASES; i++) { /* all but the first two and the fourth are ready */
            bool empty = i > 1 && i != 3 && look(channels[i]).length == 0;
            if (empty) CHECK_EQ(janus_channel_send(channels[i], &value), JANUS_OK);
        }
        size_t chosen = 99;
        CHECK_EQ(janus_select(cases, CASES, &chosen), JANUS_OK);
        counts[chosen]++;
    }
    for (int i = 0; i < CASES; i++) destroy(channels[i]);
    return 0;
}

static void check_even(const int *counts)
{
    for (int i = 0; i < CASES; i++) {
        int expected = i > 1 && i != 3 ? DRAWS / 3 : 0;
        CHECK(counts[i] >= expected - expected / 10 && counts[i] <= expected + expected / 10);
    }
}

TEST("all possible cases are equally likely, wherever they stand")
{
    int counts[CASES];
    CHECK_EQ(count_choices(counts), 0);
    check_even(counts);
    rig_run(1, count_choices, counts, 1);
    check_even(counts);
}

/* A select that waits with two cases on one channel: a step finds both in the queue. */

struct pair {
    janus_channel channel;
    bool          sends;
    int           counts[2];
};

static int64_t wait_twice(void *argument)
{
    struct pair      *pair = argument;
    int64_t           value = 0;
    janus_select_case cases[2] = {recv_from(pair->channel, &value),
                                  recv_from(pair->channel, &value)};
    if (pair->sends) cases[0].kind = cases[1].kind = JANUS_SELECT_KIND_SEND;
    for (int i = 0; i < DRAWS / 3; i++) {
        size_t chosen = 99;
        CHECK_EQ(janus_select(cases, 2, &chosen), JANUS_OK);
        pair->counts[chosen]++;
    }
    return 0;
}

static int64_t serve_twice(void *argument)
{
    struct pair *pair = argument;
    int64_t      value = 0;
    for (int i = 0; i < DRAWS / 3; i++) {
        await_waiting(pair->channel, pair->sends ? 2 : 0, pair->sends ? 0 : 2);
        CHECK_EQ(pair->sends ? janus_channel_recv(pair->channel, &value)
                             : janus_channel_send(pair->channel, &value),
                 JANUS_OK);
    }
    return 0;
}

static int64_t count_pairs(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_twice, argument), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, serve_twice, argument), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("a select that waits with two cases on one channel gets each of them equally often")
{
    for (int sends = 0; sends < 2; sends++) {
        struct pair pair = {.channel = open_channel(0), .sends = sends == 1};
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .deterministic_seed = 12),
                           count_pairs, &pair, NULL),
                 JANUS_OK);
        int expected = DRAWS / 3 / 2; /* seven standard deviations of 22 are not chance */
        CHECK_EQ(pair.counts[0] + pair.counts[1], 2 * expected);
        CHECK(pair.counts[0] > expected - 160 && pair.counts[0] < expected + 160);
        destroy(pair.channel);
    }
}

struct draws {
    size_t chosen[64];
};

static int64_t note_choices(void *argument)
{
    struct draws     *draws = argument;
    janus_channel     channel = open_outside(1);
    int64_t           value = 0;
    janus_select_case cases[8];
    for (int i = 0; i < 8; i++) cases[i] = recv_from(channel, &value);
    for (int k = 0; k < 64; k++) {
        CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
        CHECK_EQ(janus_select(cases, 8, &draws->chosen[k]), JANUS_OK);
    }
    destroy(channel);
    return 0;
}

TEST("the seed decides the choices")
{
    struct draws draws[3];
    for (uint64_t i = 0; i < 3; i++) {
        janus_scheduler *scheduler = rig_open(
            JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .deterministic_seed = i < 2 ? 11 : 12));
        rig_do(scheduler, note_choices, &draws[i]);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
    CHECK_EQ(memcmp(&draws[0], &draws[1], sizeof draws[0]), 0);
    CHECK(memcmp(&draws[0], &draws[2], sizeof draws[0]) != 0);
}

/* Waiting. */

struct selector {
    janus_select_case *cases;
    size_t             count, chosen;
    janus_status       status;
    atomic_int         returned;
};

static int64_t select_there(void *argument)
{
    struct selector *selector = argument;
    selector->status = janus_select(selector->cases, selector->count, &selector->chosen);
    atomic_store(&selector->returned, 1);
    return 0;
}

static void *select_thread(void *argument)
{
    (void)select_there(argument);
    return NULL;
}

static void await_any(janus_channel channel, uint64_t number)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (look(channel).senders + look(channel).receivers != number) {
        CHECK(janus_now_ns() < limit);
        if (janus_yield() == JANUS_STATE)
            JANUS_IGNORE(janus_sleep(rig_ms / 10)); /* a plain thread */
    }
}

enum { MANY = 300 };

struct crowd {
    janus_channel     channels[MANY];
    janus_select_case cases[MANY];
    int64_t           values[MANY];
};

/* Serves the case `k` of a selector that waits at all of them: odd ones send. */
static void serve(struct crowd *crowd, struct selector *selector, size_t k)
{
    int64_t value = 1000 + (int64_t)k;
    if (k % 2 != 0) {
        CHECK_EQ(janus_channel_recv(crowd->channels[k], &value), JANUS_OK);
        CHECK_EQ(value, (int64_t)k);
    } else {
        CHECK_EQ(janus_channel_send(crowd->channels[k], &value), JANUS_OK);
    }
    CHECK(rig_wait(&selector->returned));
    CHECK_EQ(selector->status, JANUS_OK);
    CHECK_EQ(selector->chosen, k);
    if (k % 2 == 0) CHECK_EQ(crowd->values[k], 1000 + (int64_t)k);
    for (size_t i = 0; i < selector->count; i++) {
        CHECK_EQ(look(crowd->channels[i]).senders + look(crowd->channels[i]).receivers, 0);
    }
}

static void set_up(struct crowd *crowd, struct selector *selector, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        crowd->values[i] = (int64_t)i;
        crowd->cases[i] = i % 2 != 0 ? send_to(crowd->channels[i], &crowd->values[i])
                                     : recv_from(crowd->channels[i], &crowd->values[i]);
    }
    *selector = (struct selector){.cases = crowd->cases, .count = count, .chosen = 99999};
}

static int64_t wait_for_one(void *argument)
{
    struct crowd   *crowd = argument;
    struct selector selector;
    size_t          counts[] = {1, 2, 7, MANY};
    for (size_t i = 0; i < MANY; i++) crowd->channels[i] = open_outside(0);
    for (size_t c = 0; c < 4; c++) {
        for (size_t k = 0; k < counts[c]; k += counts[c] / 7 + 1) {
            janus_status ended;
            JANUS_NURSERY(n, ended)
            {
                set_up(crowd, &selector, counts[c]);
                CHECK_EQ(janus_spawn(n, select_there, &selector), JANUS_OK);
                for (size_t i = 0; i < counts[c]; i++) await_any(crowd->channels[i], 1);
                serve(crowd, &selector, k);
            }
            CHECK_EQ(ended, JANUS_OK);
        }
    }
    for (size_t i = 0; i < MANY; i++) destroy(crowd->channels[i]);
    return 0;
}

TEST("a select that waits, over one case or 300, is served once and leaves all queues")
{
    static struct crowd crowd;
    rig_all(wait_for_one, &crowd, 2);
}

TEST("a plain thread's select waits, is served, and has a deadline")
{
    RIG_REAL("a thread outside takes part");
    static struct crowd crowd;
    struct selector     selector;
    for (size_t i = 0; i < 3; i++) crowd.channels[i] = open_outside(0);
    for (size_t k = 0; k < 3; k++) {
        pthread_t thread;
        set_up(&crowd, &selector, 3);
        uint64_t soon = janus_now_ns() + rig_ms;
        CHECK_EQ(janus_select_until(crowd.cases, 3, NULL, soon), JANUS_DEADLINE);
        CHECK(janus_now_ns() >= soon);
        CHECK_EQ(pthread_create(&thread, NULL, select_thread, &selector), 0);
        for (size_t i = 0; i < 3; i++) await_any(crowd.channels[i], 1);
        serve(&crowd, &selector, k);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    for (size_t i = 0; i < 3; i++) destroy(crowd.channels[i]);
}

static int64_t both_ways(void *argument)
{
    janus_channel     channel = open_outside(0);
    int64_t           mine = 1, got[2] = {0, 0};
    janus_select_case left[2] = {send_to(channel, &mine), recv_from(channel, &got[0])};
    janus_select_case right[2] = {recv_from(channel, &got[1]), send_to(channel, &mine)};
    struct selector   one = {.cases = left, .count = 2}, two = {.cases = right, .count = 2};
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn(n, select_there, &one), JANUS_OK);
        await_any(channel, 2); /* it does not meet itself */
        CHECK_EQ(atomic_load(&one.returned), 0);
        CHECK_EQ(janus_spawn(n, select_there, &two), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(one.status, JANUS_OK);
    CHECK_EQ(two.status, JANUS_OK);
    CHECK_EQ(one.chosen, two.chosen); /* one sends where the other receives */
    CHECK_EQ(got[0] + got[1], 1);
    CHECK_EQ(look(channel).senders + look(channel).receivers, 0);
    destroy(channel);
    return 0;
}

TEST("two selects that send and receive on one channel meet, and no select meets itself")
{
    rig_all(both_ways, NULL, REPEATS);
}

static int64_t closed_meanwhile(void *argument)
{
    janus_channel     channels[3];
    int64_t           value = 7;
    janus_select_case cases[3];
    (void)argument;
    for (size_t k = 0; k < 3; k++) {
        for (int destroyed = 0; destroyed < 2; destroyed++) {
            for (int i = 0; i < 3; i++) {
                channels[i] = open_outside(0);
                cases[i] = i == 1 ? send_to(channels[i], &value) : recv_from(channels[i], &value);
            }
            struct selector selector = {.cases = cases, .count = 3};
            janus_status    ended;
            JANUS_NURSERY(n, ended)
            {
                CHECK_EQ(janus_spawn(n, select_there, &selector), JANUS_OK);
                for (int i = 0; i < 3; i++) await_any(channels[i], 1);
                if (destroyed) {
                    destroy(channels[k]);
                } else {
                    CHECK_EQ(janus_channel_close(channels[k]), JANUS_OK);
                }
            }
            CHECK_EQ(ended, JANUS_OK);
            CHECK_EQ(selector.status, JANUS_CLOSED);
            CHECK_EQ(selector.chosen, k);
            CHECK_EQ(value, 7);
            for (size_t i = 0; i < 3; i++) {
                if (i != k || !destroyed) destroy(channels[i]);
            }
        }
    }
    return 0;
}

TEST("closing or destroying one of its channels ends a select with that case")
{
    rig_all(closed_meanwhile, NULL, REPEATS);
}

static int64_t cancel_select(void *argument)
{
    janus_channel     channels[3] = {open_outside(0), open_outside(0), open_outside(0)};
    int64_t           value = 7;
    janus_select_case cases[3] = {recv_from(channels[0], &value), send_to(channels[1], &value),
                                  recv_from(channels[2], &value)};
    struct selector   selector = {.cases = cases, .count = 3};
    janus_nursery     nursery;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&nursery, select_there, &selector), JANUS_OK);
    for (int i = 0; i < 3; i++) await_any(channels[i], 1);
    CHECK_EQ(janus_nursery_cancel(&nursery), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    CHECK_EQ(selector.status, JANUS_CANCELLED);
    CHECK_EQ(value, 7);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(look(channels[i]).senders + look(channels[i]).receivers, 0);
        CHECK_EQ(janus_channel_try_send(channels[i], &value), JANUS_WOULD_WAIT);
        CHECK_EQ(janus_channel_try_recv(channels[i], &value), JANUS_WOULD_WAIT);
        destroy(channels[i]);
    }
    return 0;
}

TEST("a cancel ends a select and takes it off all queues")
{
    rig_all(cancel_select, NULL, REPEATS);
}

/* What a send would do without a select. */

static int64_t other_overflows(void *argument)
{
    janus_channel failing, dropping, growing;
    int64_t       value = 1, out = 0;
    (void)argument;
    CHECK_EQ(janus_channel_create(8, 1, JANUS_CHANNEL_OPTIONS(.overflow = JANUS_OVERFLOW_FAIL),
                                  &failing),
             JANUS_OK);
    CHECK_EQ(janus_channel_create(
                 8, 1, JANUS_CHANNEL_OPTIONS(.overflow = JANUS_OVERFLOW_DROP_OLDEST), &dropping),
             JANUS_OK);
    CHECK_EQ(janus_channel_create_unbounded(8, 800, NULL, &growing), JANUS_OK);
    janus_select_case one = send_to(failing, &value);
    CHECK_EQ(janus_try_select(&one, 1, NULL), JANUS_OK);
    CHECK_EQ(janus_try_select(&one, 1, NULL), JANUS_WOULD_WAIT);
    one = send_to(dropping, &value);
    for (value = 0; value < 5; value++) CHECK_EQ(janus_select(&one, 1, NULL), JANUS_OK);
    CHECK_EQ(look(dropping).dropped, 4);
    one = send_to(growing, &value);
    for (value = 0; value < 100; value++) CHECK_EQ(janus_select(&one, 1, NULL), JANUS_OK);
    CHECK_EQ(janus_try_select(&one, 1, NULL), JANUS_WOULD_WAIT);
    for (int64_t i = 0; i < 100; i++) {
        CHECK_EQ(janus_channel_recv(growing, &out), JANUS_OK);
        CHECK_EQ(out, i);
    }
    destroy(failing);
    destroy(dropping);
    destroy(growing);
    return 0;
}

TEST("in a select a failing channel waits for room, a dropping one drops, a growing one grows")
{
    rig_run(2, other_overflows, NULL, 2);
}

/* Refused memory is the fault of no case. */

static int64_t cannot_grow(void *argument)
{
    janus_channel     huge = *(janus_channel *)argument, empty = open_outside(0);
    int64_t           value = 3, out = 0;
    size_t            chosen = 99;
    janus_select_case cases[3] = {recv_from(empty, &out), send_to(huge, &value),
                                  recv_from(empty, &out)};
    CHECK_EQ(janus_try_select(cases, 3, &chosen), JANUS_NO_MEMORY);
    CHECK_EQ(janus_select(cases, 3, &chosen), JANUS_NO_MEMORY);
    CHECK_EQ(janus_select_until(cases, 3, &chosen, 0), JANUS_NO_MEMORY);
    CHECK_EQ(chosen, 99);
    CHECK_EQ(janus_channel_send(huge, &value), JANUS_NO_MEMORY);
    CHECK_EQ(janus_channel_try_send(huge, &value), JANUS_NO_MEMORY);
    CHECK_EQ(look(huge).length + look(empty).receivers, 0);
    CHECK_EQ(janus_channel_close(empty), JANUS_OK);
    cases[1].kind = JANUS_SELECT_KIND_RECV;
    CHECK_EQ(janus_select(cases, 2, &chosen), JANUS_CLOSED);
    CHECK_EQ(chosen, 0);
    destroy(empty);
    return 0;
}

TEST("a select whose channel cannot grow reports that and names no case")
{
    const size_t  item_bytes = (size_t)1 << 62; /* never touched */
    janus_channel huge;
    if (JRT_ASAN || JRT_TSAN) SKIP("sanitizers end the process where memory is refused");
    CHECK_EQ(janus_channel_create_unbounded(item_bytes, item_bytes,
                                            JANUS_CHANNEL_OPTIONS(.outside = true), &huge),
             JANUS_OK);
    CHECK_EQ(cannot_grow(&huge), 0);
    rig_run(1, cannot_grow, &huge, 1);
    rig_run(2, cannot_grow, &huge, 1);
    destroy(huge);
}

/* SPDX-License-Identifier: MIT */
/*
 * Everything at once: senders and receivers of all kinds, on tasks and plain threads. They are
 * cancelled or too late in the middle, and their channels are closed and destroyed. A value whose
 * send returned OK is received exactly once, and no other value is received.
 */
#include "channels.h"

#include "base/rng.h"

#include <pthread.h>
#include <string.h>

enum {
    VALUES = 1 << 20,
    CHANNELS = 3,
    GROUP = 6,
    THREADS = 2,
};

static const uint64_t run_ns = (RIG_SLOW ? UINT64_C(700) : UINT64_C(700)) * 1000000;

static struct {
    janus_channel    channels[CHANNELS];
    _Atomic(int64_t) next;         /* the next value to send */
    _Atomic(uint8_t) sent[VALUES]; /* how often */
    _Atomic(uint8_t) got[VALUES];
    atomic_int       stop, number;
    atomic_int       seen[16]; /* which statuses occurred, by number */
} sea;

static void note(janus_status status) { atomic_fetch_add(&sea.seen[-status & 15], 1); }

/* One of the ways to send or receive. */
static janus_status send_once(struct jrt_rng *rng, int64_t value)
{
    janus_channel     channel = sea.channels[jrt_rng_below(rng, CHANNELS)];
    janus_select_case cases[CHANNELS];
    switch (jrt_rng_below(rng, 5)) {
    case 0: return janus_channel_try_send(channel, &value);
    case 1: return janus_channel_send_until(channel, &value, janus_now_ns() + 20000);
    case 2: return janus_channel_send_until(channel, &value, janus_now_ns() + 5 * rig_ms);
    case 3: {
        for (int i = 0; i < CHANNELS; i++) {
            cases[i] = (janus_select_case){
                .channel = sea.channels[i], .kind = JANUS_SELECT_KIND_SEND, .value = &value};
        }
        return janus_select_until(cases, CHANNELS, NULL, janus_now_ns() + 5 * rig_ms);
    }
    default: return janus_channel_send(channel, &value);
    }
}

static janus_status receive_once(struct jrt_rng *rng, int64_t *out)
{
    janus_channel     channel = sea.channels[jrt_rng_below(rng, CHANNELS)];
    janus_select_case cases[CHANNELS];
    switch (jrt_rng_below(rng, 5)) {
    case 0: return janus_channel_try_recv(channel, out);
    case 1: return janus_channel_recv_until(channel, out, janus_now_ns() + 20000);
    case 2: return janus_channel_recv_until(channel, out, janus_now_ns() + 5 * rig_ms);
    case 3: {
        for (int i = 0; i < CHANNELS; i++) {
            cases[i] = (janus_select_case){.channel = sea.channels[i], .value = out};
        }
        return janus_select_until(cases, CHANNELS, NULL, janus_now_ns() + 5 * rig_ms);
    }
    default: return janus_channel_recv(channel, out);
    }
}

static bool goes_on(janus_status status)
{
    note(status);
    return status == JANUS_OK || status == JANUS_WOULD_WAIT || status == JANUS_DEADLINE;
}

static int64_t keep_sending(void *argument)
{
    struct jrt_rng rng;
    janus_status   status = JANUS_OK;
    (void)argument;
    jrt_rng_seed(&rng, (uint64_t)atomic_fetch_add(&sea.number, 1));
    while (goes_on(status) && !atomic_load(&sea.stop)) {
        int64_t value = atomic_fetch_add(&sea.next, 1);
        if (value >= VALUES) break;
        status = send_once(&rng, value);
        if (status == JANUS_OK) atomic_fetch_add(&sea.sent[value], 1);
        if (status == JANUS_WOULD_WAIT && janus_yield() == JANUS_CANCELLED) break;
    }
    return 0;
}

static int64_t keep_receiving(void *argument)
{
    struct jrt_rng rng;
    janus_status   status = JANUS_OK;
    (void)argument;
    jrt_rng_seed(&rng, (uint64_t)atomic_fetch_add(&sea.number, 1));
    while (goes_on(status)) {
        int64_t value = -1;
        status = receive_once(&rng, &value);
        if (status == JANUS_OK) {
            CHECK(value >= 0 && value < VALUES);
            atomic_fetch_add(&sea.got[value], 1);
        } else {
            CHECK_EQ(value, -1);
        }
        if (status == JANUS_WOULD_WAIT && janus_yield() == JANUS_CANCELLED) break;
    }
    return 0;
}

/* Starts a group and cancels it after a while, again and again. */
static int64_t churn(void *argument)
{
    janus_entry   *entry = argument != NULL ? keep_sending : keep_receiving;
    struct jrt_rng rng;
    uint64_t       end = janus_now_ns() + rig_few(run_ns);
    jrt_rng_seed(&rng, (uint64_t)atomic_fetch_add(&sea.number, 1));
    while (janus_now_ns() < end) {
        janus_nursery group;
        CHECK_EQ(janus_nursery_open(&group, NULL), JANUS_OK);
        for (int i = 0; i < GROUP; i++) CHECK_EQ(janus_spawn(&group, entry, NULL), JANUS_OK);
        CHECK_EQ(janus_sleep(jrt_rng_below(&rng, 2000000)), JANUS_OK);
        (void)janus_nursery_cancel(&group);
        JANUS_IGNORE(janus_nursery_end(&group, NULL));
    }
    return 0;
}

static void *thread_sends(void *argument)
{
    (void)keep_sending(argument);
    return NULL;
}

static void *thread_receives(void *argument)
{
    (void)keep_receiving(argument);
    return NULL;
}

static int64_t all_at_once(void *argument)
{
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn(n, churn, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(n, churn, &sea), JANUS_OK);
        CHECK_EQ(janus_spawn(n, churn, &sea), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

static void close_all(void)
{
    for (int i = 0; i < CHANNELS; i++) CHECK_EQ(janus_channel_close(sea.channels[i]), JANUS_OK);
}

static void run(uint32_t workers)
{
    pthread_t threads[2 * THREADS];
    memset(&sea, 0, sizeof sea);
    for (int i = 0; i < CHANNELS; i++) sea.channels[i] = open_outside((uint64_t)i);
    int count = rig_simulated() ? 0 : THREADS; /* no outside threads in a world */
    for (int i = 0; i < count; i++) {
        CHECK_EQ(pthread_create(&threads[2 * i], NULL, thread_sends, NULL), 0);
        CHECK_EQ(pthread_create(&threads[2 * i + 1], NULL, thread_receives, NULL), 0);
    }
    rig_run(workers, all_at_once, NULL, 1);
    atomic_store(&sea.stop, 1);
    close_all();
    for (int i = 0; i < 2 * count; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < CHANNELS; i++) { /* the rest is still in the channels */
        int64_t value = -1;
        while (janus_channel_recv(sea.channels[i], &value) == JANUS_OK) {
            atomic_fetch_add(&sea.got[value], 1);
        }
        janus_channel_info info = look(sea.channels[i]);
        CHECK_EQ(info.senders + info.receivers + info.length, 0);
        CHECK(info.high_water <= (uint64_t)i);
        destroy(sea.channels[i]);
    }
    int64_t sent = 0;
    for (int i = 0; i < VALUES; i++) {
        CHECK_EQ(atomic_load(&sea.sent[i]), atomic_load(&sea.got[i]));
        CHECK(atomic_load(&sea.got[i]) <= 1);
        sent += atomic_load(&sea.sent[i]);
    }
    if (rig_simulated()) return; /* short, and another seed takes another way */
    CHECK(sent > 100);
    CHECK(atomic_load(&sea.seen[-JANUS_CANCELLED]) > 0);
    CHECK(atomic_load(&sea.seen[-JANUS_DEADLINE]) > 0);
    CHECK(atomic_load(&sea.seen[-JANUS_CLOSED]) > 0);
}

TEST("with one worker no value is lost or comes twice, whichever task is cancelled") { run(1); }
TEST("with two workers no value is lost or comes twice, whichever task is cancelled") { run(2); }
TEST("with eight workers no value is lost or comes twice, whichever task is cancelled") { run(8); }

/* Channels that are made and destroyed while others use them. */

enum { USERS = 6 };

static struct {
    _Atomic(uint64_t) first, second; /* a handle, sometimes torn */
    atomic_int        stop, stale, closed;
} wreck;

static int64_t use_it(void *argument)
{
    struct jrt_rng rng;
    (void)argument;
    jrt_rng_seed(&rng, (uint64_t)atomic_fetch_add(&sea.number, 1));
    while (!atomic_load(&wreck.stop)) {
        janus_channel     channel = {{atomic_load(&wreck.first), atomic_load(&wreck.second)}};
        int64_t           value = 1;
        uint64_t          soon = janus_now_ns() + 50000;
        janus_select_case one = {.channel = channel, .value = &value};
        janus_status      status = JANUS_OK;
        switch (jrt_rng_below(&rng, 3)) {
        case 0: status = janus_channel_send_until(channel, &value, soon); break;
        case 1: status = janus_channel_recv_until(channel, &value, soon); break;
        default: status = janus_select_until(&one, 1, NULL, soon);
        }
        if (status == JANUS_STALE) atomic_fetch_add(&wreck.stale, 1);
        if (status == JANUS_CLOSED) atomic_fetch_add(&wreck.closed, 1);
        CHECK(status == JANUS_OK || status == JANUS_STALE || status == JANUS_CLOSED ||
              status == JANUS_DEADLINE);
        if (janus_yield() == JANUS_CANCELLED) break;
    }
    return 0;
}

static void *use_it_as_thread(void *argument)
{
    (void)use_it(argument);
    return NULL;
}

static int64_t make_and_destroy(void *argument)
{
    uint64_t end = janus_now_ns() + rig_few(run_ns);
    (void)argument;
    while (janus_now_ns() < end) {
        janus_channel channel = open_outside(atomic_load(&wreck.stale) % 2 != 0 ? 1 : 0);
        atomic_store(&wreck.first, channel.opaque[0]);
        atomic_store(&wreck.second, channel.opaque[1]);
        CHECK_EQ(janus_sleep(100000), JANUS_OK);
        destroy(channel);
    }
    atomic_store(&wreck.stop, 1);
    return 0;
}

static int64_t wreckers(void *argument)
{
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < USERS; i++) CHECK_EQ(janus_spawn(n, use_it, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(n, make_and_destroy, NULL), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("users of a destroyed channel get STALE or CLOSED, and nothing breaks")
{
    for (uint32_t workers = 1; workers < 4; workers += 2) {
        pthread_t     thread;
        janus_channel first = open_outside(1);
        memset(&wreck, 0, sizeof wreck);
        atomic_store(&wreck.first, first.opaque[0]);
        atomic_store(&wreck.second, first.opaque[1]);
        bool outside = !rig_simulated();
        if (outside) CHECK_EQ(pthread_create(&thread, NULL, use_it_as_thread, NULL), 0);
        rig_run(workers, wreckers, NULL, 1);
        if (outside) CHECK_EQ(pthread_join(thread, NULL), 0);
        destroy(first);
        CHECK(!outside || atomic_load(&wreck.stale) > 0);
        CHECK(!outside || atomic_load(&wreck.closed) > 0);
    }
}

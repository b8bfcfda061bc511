/* SPDX-License-Identifier: MIT */
/* Locks of channels that come to belong to a worker, and are taken away again, [chan-adopt]. */
#include "channels.h"

#include "chan/chan.h"
#include "task/worker.h"

#include <pthread.h>

enum { BURST = JRT_CHAN_ADOPTS_AFTER + 2000 };

static struct jrt_bias *owner_of(janus_channel channel)
{
    return atomic_load(&jrt_chan_of(channel)->lock.owner);
}

/* Values go in and out. */
static void use(janus_channel channel, int times)
{
    for (int64_t i = 0, value; i < times; i++) {
        CHECK_EQ(janus_channel_send(channel, &i), JANUS_OK);
        CHECK_EQ(janus_channel_recv(channel, &value), JANUS_OK);
        CHECK_EQ(value, i);
    }
}

/* Uses a channel on one of two workers. The other has no task, so nobody else enters. Returns
 * whether the worker has become the owner. It has not if the task was stolen in the middle. */
static bool adopt(janus_channel channel)
{
    use(channel, BURST);
    const struct jrt_bias *owner = owner_of(channel);
    if (owner == NULL || owner != jrt_worker_self()->bias) return false;
    (void)look(channel);
    CHECK(owner_of(channel) == owner);
    return true;
}

static int64_t adopt_often(void *argument)
{
    enum { CHANNELS = 20 };
    janus_channel channels[CHANNELS];
    int           adopted = 0;
    (void)argument;
    for (int i = 0; i < CHANNELS; i++) {
        channels[i] = open_channel(4);
        CHECK(owner_of(channels[i]) == NULL); /* no channel has lived at this place before */
    }
    for (int i = 0; i < CHANNELS; i++) adopted += adopt(channels[i]);
    for (int i = 0; i < CHANNELS; i++) destroy(channels[i]);
    CHECK(adopted > 0);
    return 0;
}

TEST("a worker that is the only one to use a channel becomes the owner of its lock")
{
    RIG_REAL("the fast path is not taken in a world");
    if (JRT_DEBUG || JRT_TSAN || JRT_ASAN) SKIP("the fast path is not taken in this build");
    rig_run(2, adopt_often, NULL, 1);
}

/* Tasks of all workers and a plain thread, each in bursts. All values must come out. */

enum { PARTIES = 4, ROUNDS = RIG_SLOW ? 3 : 12 };

struct crossing {
    janus_channel channels[2];
    atomic_llong  sum;
};

static void burst(struct crossing *crossing, int64_t seed, int times)
{
    for (int64_t i = 0; i < times; i++) {
        janus_channel channel = crossing->channels[(seed + i / 1000) % 2];
        int64_t       value = seed + i;
        /* With a value of its own inside, a party never finds the channel empty for long. */
        if (janus_channel_try_send(channel, &value) == JANUS_OK) {
            atomic_fetch_add(&crossing->sum, value);
        }
        if (janus_channel_try_recv(channel, &value) == JANUS_OK) {
            atomic_fetch_sub(&crossing->sum, value);
        }
    }
}

static void select_both(struct crossing *crossing)
{
    int64_t           values[2] = {0, 0};
    janus_select_case cases[2];
    for (int i = 0; i < 2; i++) {
        cases[i] = (janus_select_case){
            .channel = crossing->channels[i], .kind = JANUS_SELECT_KIND_RECV, .value = &values[i]};
    }
    size_t       which = 0;
    janus_status status = janus_try_select(cases, 2, &which);
    if (status == JANUS_OK) atomic_fetch_sub(&crossing->sum, values[which]);
}

static int64_t cross(void *argument)
{
    for (int round = 0; round < ROUNDS; round++) {
        burst(argument, round, BURST);
        select_both(argument);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

static void *cross_outside(void *argument)
{
    for (int round = 0; round < ROUNDS; round++) {
        burst(argument, round, 100);
        select_both(argument);
    }
    return NULL;
}

static int64_t meet(void *argument)
{
    struct crossing crossing = {.channels = {open_outside(8), open_outside(8)}};
    pthread_t       thread;
    janus_status    ended;
    (void)argument;
    bool plain = !rig_simulated();
    if (plain) CHECK_EQ(pthread_create(&thread, NULL, cross_outside, &crossing), 0);
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < PARTIES; i++) CHECK_EQ(janus_spawn(n, cross, &crossing), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    if (plain) CHECK_EQ(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 2; i++) {
        int64_t value;
        while (janus_channel_try_recv(crossing.channels[i], &value) == JANUS_OK) {
            atomic_fetch_sub(&crossing.sum, value);
        }
        destroy(crossing.channels[i]);
    }
    CHECK_EQ(crossing.sum, 0);
    return 0;
}

TEST("no value is lost while the ownership of locks goes from worker to worker")
{
    rig_all(meet, NULL, 2);
}

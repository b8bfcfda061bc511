/* SPDX-License-Identifier: MIT */
/* Closing with more waiters than a batch, [chan-close]: it takes effect at one moment. */
#include "channels.h"

#include <pthread.h>

enum { SENDERS = RIG_SLOW ? 300 : 1000, ROOM = 3, ROUNDS = RIG_SLOW ? 3 : 20 };

struct crowd {
    janus_channel channel;
    atomic_int    served, told;
    int           received; /* after the close */
};

static int64_t send_in_crowd(void *argument)
{
    struct crowd *crowd = argument;
    int64_t       value = 100;
    janus_status  status = janus_channel_send(crowd->channel, &value);
    CHECK(status == JANUS_OK || status == JANUS_CLOSED);
    atomic_fetch_add(status == JANUS_OK ? &crowd->served : &crowd->told, 1);
    return 0;
}

/* Receives everything there is, from the moment of the close on. */
static void *receive_once_closed(void *argument)
{
    struct crowd *crowd = argument;
    int64_t       value = -1;
    uint64_t      limit = janus_now_ns() + rig_patience;
    janus_status  status;
    while (!look(crowd->channel).closed) CHECK(janus_now_ns() < limit);
    while ((status = janus_channel_try_recv(crowd->channel, &value)) == JANUS_OK) {
        CHECK_EQ(value, crowd->received++);
    }
    CHECK_EQ(status, JANUS_CLOSED);
    return NULL;
}

static int64_t close_on_senders(void *argument)
{
    struct crowd crowd = {.channel = open_outside(ROOM)};
    pthread_t    thread;
    (void)argument;
    for (int64_t i = 0; i < ROOM; i++) CHECK_EQ(janus_channel_send(crowd.channel, &i), JANUS_OK);
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < SENDERS; i++) CHECK_EQ(janus_spawn(n, send_in_crowd, &crowd), JANUS_OK);
        await_waiting(crowd.channel, SENDERS, 0);
        CHECK_EQ(pthread_create(&thread, NULL, receive_once_closed, &crowd), 0);
        CHECK_EQ(janus_channel_close(crowd.channel), JANUS_OK);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(crowd.received, ROOM);
    CHECK_EQ(atomic_load(&crowd.served), 0);
    CHECK_EQ(atomic_load(&crowd.told), SENDERS);
    CHECK_EQ(look(crowd.channel).length, 0);
    destroy(crowd.channel);
    return 0;
}

TEST("after a close no value of a crowd of waiting senders is taken")
{
    rig_run(1, close_on_senders, NULL, ROUNDS);
    rig_run(2, close_on_senders, NULL, ROUNDS);
}

/* SPDX-License-Identifier: MIT */
/* What the tests of channels share. */
#ifndef JANUSRT_TESTS_CHAN_CHANNELS_H
#define JANUSRT_TESTS_CHAN_CHANNELS_H

#include "../task/rig.h"

enum { REPEATS = RIG_SLOW ? 3 : 20 };

static inline janus_channel open_channel(uint64_t capacity)
{
    janus_channel channel;
    CHECK_EQ(janus_channel_create(sizeof(int64_t), capacity, NULL, &channel), JANUS_OK);
    return channel;
}

static inline janus_channel open_outside(uint64_t capacity)
{
    janus_channel channel;
    CHECK_EQ(janus_channel_create(sizeof(int64_t), capacity, JANUS_CHANNEL_OPTIONS(.outside = true),
                                  &channel),
             JANUS_OK);
    return channel;
}

static inline void destroy(janus_channel channel)
{
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
}

static inline janus_channel_info look(janus_channel channel)
{
    janus_channel_info info = JANUS_CHANNEL_INFO();
    CHECK_EQ(janus_channel_inspect(channel, &info), JANUS_OK);
    CHECK_EQ(info.struct_bytes, sizeof info);
    return info;
}

/* Gives way until this many wait. */
static inline void await_waiting(janus_channel channel, uint64_t senders, uint64_t receivers)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    for (;;) {
        janus_channel_info info = look(channel);
        if (info.senders == senders && info.receivers == receivers) return;
        CHECK(janus_now_ns() < limit);
        janus_shield_begin();
        if (janus_yield() == JANUS_STATE)
            JANUS_IGNORE(janus_sleep(rig_ms / 10)); /* a plain thread */
        janus_shield_end();
    }
}

#endif

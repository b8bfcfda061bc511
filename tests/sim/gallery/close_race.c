/* SPDX-License-Identifier: MIT */
/*
 * Several tasks send into a channel, and the last of them closes it. Each uncounts itself before
 * its last send. So the last one may close the channel while another still has to send.
 */
#include "gallery.h"

enum { VALUES = 2 }; /* of each */

struct pipe {
    janus_channel values;
    atomic_int    writers, sum;
    bool          mended;
};

static int64_t writer(void *argument)
{
    struct pipe *pipe = argument;
    bool         last = false;
    for (int i = 1; i <= VALUES; i++) {
        if (i == VALUES && !pipe->mended) last = atomic_fetch_sub(&pipe->writers, 1) == 1;
        JANUS_EXPECT(janus_channel_send(pipe->values, &i) == JANUS_OK);
    }
    if (pipe->mended) last = atomic_fetch_sub(&pipe->writers, 1) == 1;
    return last ? janus_channel_close(pipe->values) : 0;
}

static int64_t close_race(void *mended)
{
    struct pipe   pipe = {.writers = 2, .mended = mended != NULL};
    janus_nursery nursery;
    int           value, count = 0;
    JANUS_EXPECT(janus_channel_create(sizeof value, 2 * VALUES, NULL, &pipe.values) == JANUS_OK);
    JANUS_EXPECT(janus_nursery_open(&nursery, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, writer, &pipe) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, writer, &pipe) == JANUS_OK);
    while (janus_channel_recv(pipe.values, &value) == JANUS_OK) count++;
    JANUS_EXPECT(janus_nursery_end(&nursery, NULL) == JANUS_OK);
    JANUS_EXPECT(count == 2 * VALUES);
    return janus_channel_destroy(pipe.values);
}

const struct gallery_bug gallery_close_race = {
    "close_race", "a channel is closed while another sender still has something", close_race};

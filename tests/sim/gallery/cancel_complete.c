/* SPDX-License-Identifier: MIT */
/*
 * A pump takes jobs from one channel and puts them into another until it is cancelled. If the
 * cancel comes between the two, the job is in neither.
 */
#include "gallery.h"

enum { JOBS = 3 };

struct line {
    janus_channel in, out; /* each has room for all */
    bool          mended;
};

static int64_t pump(void *argument)
{
    struct line *line = argument;
    int          job;
    janus_status status;
    while ((status = janus_channel_recv(line->in, &job)) == JANUS_OK) {
        if (line->mended) janus_shield_begin();
        status = janus_channel_send(line->out, &job);
        if (line->mended) janus_shield_end();
        if (status != JANUS_OK) break;
    }
    return status;
}

static int drain(janus_channel channel)
{
    int job, count = 0;
    while (janus_channel_try_recv(channel, &job) == JANUS_OK) count++;
    return count;
}

static int64_t cancel_complete(void *mended)
{
    struct line   line = {.mended = mended != NULL};
    janus_nursery nursery;
    int           job;
    JANUS_EXPECT(janus_channel_create(sizeof job, JOBS, NULL, &line.in) == JANUS_OK);
    JANUS_EXPECT(janus_channel_create(sizeof job, JOBS, NULL, &line.out) == JANUS_OK);
    for (int i = 0; i < JOBS; i++) JANUS_EXPECT(janus_channel_send(line.in, &i) == JANUS_OK);
    JANUS_EXPECT(janus_nursery_open(&nursery, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, pump, &line) == JANUS_OK);
    JANUS_EXPECT(janus_channel_recv(line.out, &job) == JANUS_OK); /* one job is enough */
    (void)janus_nursery_cancel(&nursery);
    JANUS_EXPECT(janus_nursery_end(&nursery, NULL) == JANUS_CANCELLED);
    JANUS_EXPECT(1 + drain(line.in) + drain(line.out) == JOBS);
    (void)janus_channel_destroy(line.in);
    return janus_channel_destroy(line.out);
}

const struct gallery_bug gallery_cancel_complete = {
    "cancel_complete", "cancelled after it took a job and before it passed it on", cancel_complete};

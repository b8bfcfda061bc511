/* SPDX-License-Identifier: MIT */
/*
 * A supervisor starts a server again after a delay. Each life of the server begins with a fresh
 * event for its stop. A stop that came during the delay is gone then, and the server runs for ever.
 */
#include "gallery.h"

struct host {
    janus_event stop;
    bool        mended;
};

static int64_t supervise(void *argument)
{
    struct host *host = argument;
    JANUS_IGNORE(janus_yield()); /* the first life, which fails */
    if (janus_event_is_set(&host->stop)) return 0;
    JANUS_EXPECT(janus_sleep(JANUS_MS) == JANUS_OK);
    if (!host->mended) janus_event_reset(&host->stop);
    return janus_event_wait(&host->stop); /* the second life */
}

static int64_t stop(void *argument)
{
    struct host *host = argument;
    JANUS_EXPECT(janus_sleep(JANUS_MS) == JANUS_OK);
    janus_event_set(&host->stop);
    return 0;
}

static int64_t stop_in_delay(void *mended)
{
    struct host host = {.mended = mended != NULL};
    janus_event_init(&host.stop, JANUS_WAKER_TASKS, "stop");
    return gallery_both(supervise, stop, &host);
}

const struct gallery_bug gallery_stop_in_delay = {
    "stop_in_delay", "a stop that comes during the delay before a restart is lost", stop_in_delay};

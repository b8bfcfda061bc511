/* SPDX-License-Identifier: MIT */
/*
 * A consumer tries two channels by itself, always first the data and then the stop signal. While
 * there is data it never notices the signal.
 */
#include "gallery.h"

enum { DATA = 40, PATIENCE = 5 };

struct desk {
    janus_channel data, stop;
    atomic_bool   stopped;
    bool          mended;
};

static int64_t consumer(void *argument)
{
    struct desk *desk = argument;
    int          value, late = 0;
    for (unsigned turn = 0;; turn++) {
        bool stop_first = desk->mended && turn % 2 == 0;
        if (stop_first && janus_channel_try_recv(desk->stop, NULL) == JANUS_OK) break;
        bool stopped = atomic_load(&desk->stopped); /* the signal came before this value was
                                                     * taken */
        if (janus_channel_try_recv(desk->data, &value) == JANUS_OK) {
            late += stopped;
            JANUS_EXPECT(late < PATIENCE);
            continue;
        }
        if (!stop_first && janus_channel_try_recv(desk->stop, NULL) == JANUS_OK) break;
        if (janus_yield() != JANUS_OK) break;
    }
    return janus_channel_close(desk->data);
}

static int64_t producer(void *argument)
{
    struct desk *desk = argument;
    for (int i = 0; i < DATA; i++) {
        if (janus_channel_send(desk->data, &i) != JANUS_OK) break;
    }
    return 0;
}

static int64_t unfair_select(void *mended)
{
    struct desk   desk = {.mended = mended != NULL};
    janus_nursery nursery;
    JANUS_EXPECT(janus_channel_create(sizeof(int), 1, NULL, &desk.data) == JANUS_OK);
    JANUS_EXPECT(janus_channel_create(0, 1, NULL, &desk.stop) == JANUS_OK);
    JANUS_EXPECT(janus_nursery_open(&nursery, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, consumer, &desk) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, producer, &desk) == JANUS_OK);
    JANUS_EXPECT(janus_channel_send(desk.stop, NULL) == JANUS_OK);
    atomic_store(&desk.stopped, true);
    janus_status status = janus_nursery_end(&nursery, NULL);
    (void)janus_channel_destroy(desk.data);
    (void)janus_channel_destroy(desk.stop);
    return status;
}

const struct gallery_bug gallery_unfair_select = {
    "unfair_select", "the first of two channels is always tried first", unfair_select};

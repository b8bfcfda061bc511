/* SPDX-License-Identifier: MIT */
/*
 * Two tasks take from a shelf, and one puts items on it. A task that finds it empty waits for the
 * signal and then takes without checking again. The other may have come first.
 */
#include "gallery.h"

struct shelf {
    janus_mutex     lock;
    janus_condition filled;
    int             count;
    bool            mended;
};

static int64_t taker(void *argument)
{
    struct shelf *shelf = argument;
    JANUS_EXPECT(janus_mutex_lock(&shelf->lock) == JANUS_OK);
    if (shelf->mended) {
        while (shelf->count == 0) {
            JANUS_EXPECT(janus_condition_wait(&shelf->filled, &shelf->lock) == JANUS_OK);
        }
    } else if (shelf->count == 0) {
        JANUS_EXPECT(janus_condition_wait(&shelf->filled, &shelf->lock) == JANUS_OK);
    }
    shelf->count--;
    JANUS_EXPECT(shelf->count >= 0);
    return janus_mutex_unlock(&shelf->lock);
}

static int64_t putter(void *argument)
{
    struct shelf *shelf = argument;
    for (int i = 0; i < 2; i++) {
        JANUS_EXPECT(janus_mutex_lock(&shelf->lock) == JANUS_OK);
        shelf->count++;
        janus_condition_signal(&shelf->filled);
        (void)janus_mutex_unlock(&shelf->lock);
    }
    return 0;
}

static int64_t stolen_wakeup(void *mended)
{
    struct shelf  shelf = {.lock = JANUS_MUTEX_INIT("shelf"),
                           .filled = JANUS_CONDITION_INIT(JANUS_WAKER_TASKS, "filled"),
                           .mended = mended != NULL};
    janus_nursery nursery;
    JANUS_EXPECT(janus_nursery_open(&nursery, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, taker, &shelf) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, taker, &shelf) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, putter, &shelf) == JANUS_OK);
    return janus_nursery_end(&nursery, NULL);
}

const struct gallery_bug gallery_stolen_wakeup = {
    "stolen_wakeup", "`if` where a condition wants `while`: another came first", stolen_wakeup};

/* SPDX-License-Identifier: MIT */
/*
 * A visitor waits until the porter has opened the door. It checks the door before it takes the
 * lock. If the porter opens and signals in between, the signal is lost and the visitor waits on.
 */
#include "gallery.h"

struct door {
    janus_mutex     lock;
    janus_condition opened;
    atomic_bool     open;
    bool            mended;
};

static int64_t visitor(void *argument)
{
    struct door *door = argument;
    janus_status status = JANUS_OK;
    if (!door->mended && atomic_load(&door->open)) return 0;
    JANUS_EXPECT(janus_mutex_lock(&door->lock) == JANUS_OK);
    if (door->mended) {
        while (status == JANUS_OK && !atomic_load(&door->open)) {
            status = janus_condition_wait(&door->opened, &door->lock);
        }
    } else {
        status = janus_condition_wait(&door->opened, &door->lock);
    }
    (void)janus_mutex_unlock(&door->lock);
    return status;
}

static int64_t porter(void *argument)
{
    struct door *door = argument;
    JANUS_EXPECT(janus_mutex_lock(&door->lock) == JANUS_OK);
    atomic_store(&door->open, true);
    janus_condition_signal(&door->opened);
    (void)janus_mutex_unlock(&door->lock);
    return 0;
}

static int64_t lost_wakeup(void *mended)
{
    struct door door = {.lock = JANUS_MUTEX_INIT("door"),
                        .opened = JANUS_CONDITION_INIT(JANUS_WAKER_TASKS, "opened"),
                        .mended = mended != NULL};
    return gallery_both(visitor, porter, &door);
}

const struct gallery_bug gallery_lost_wakeup = {
    "lost_wakeup", "a flag is looked at before the lock is taken; the signal comes in between",
    lost_wakeup};

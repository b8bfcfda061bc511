/* SPDX-License-Identifier: MIT */
/*
 * Two tasks use the only permit, or do without it after some time. They return it in either case.
 * So a task that came too late returns what it never had.
 */
#include "gallery.h"

enum { PATIENCE_NS = 1000 };

struct gate {
    janus_semaphore permits;
    atomic_int      inside;
    bool            mended;
};

static int64_t guest(void *argument)
{
    struct gate *gate = argument;
    janus_status status =
        janus_semaphore_acquire_until(&gate->permits, janus_now_ns() + PATIENCE_NS);
    if (status == JANUS_OK) {
        JANUS_EXPECT(atomic_fetch_add(&gate->inside, 1) == 0);
        for (int i = 0; i < 4; i++) janus_point();
        atomic_fetch_sub(&gate->inside, 1);
    }
    if (status == JANUS_OK || !gate->mended) (void)janus_semaphore_release(&gate->permits, 1);
    return 0;
}

static int64_t late_release(void *mended)
{
    struct gate gate = {
        .permits = JANUS_SEMAPHORE_INIT(1, JANUS_WAKER_TASKS, "gate"),
        .mended = mended != NULL,
    };
    JANUS_EXPECT(gallery_both(guest, guest, &gate) == JANUS_OK);
    JANUS_EXPECT(janus_semaphore_permits(&gate.permits) == 1);
    return 0;
}

const struct gallery_bug gallery_late_release = {
    "late_release", "a task that got no permit gives one back", late_release};

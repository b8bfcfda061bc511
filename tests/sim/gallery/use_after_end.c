/* SPDX-License-Identifier: MIT */
/*
 * Jobs run one after the other, each in a nursery in the same place. A watchdog stops the first by
 * cancelling its nursery, if it still runs. The nursery may have ended in between, and the next may
 * be there: a job that nobody wanted to stop is stopped.
 */
#include "gallery.h"

struct slot {
    janus_nursery nursery;
    janus_token  *stop; /* mended: of the first job, whatever is in the slot */
    atomic_int    job;  /* which one runs; 0: none */
    bool          mended;
};

static int64_t watchdog(void *argument)
{
    struct slot *slot = argument;
    if (slot->mended) {
        (void)janus_token_cancel(slot->stop, JANUS_CANCEL_EXPLICIT);
    } else if (atomic_load(&slot->job) == 1) {
        (void)janus_nursery_cancel(&slot->nursery);
    }
    return 0;
}

static int64_t work(void *argument)
{
    (void)argument;
    return janus_yield();
}

static janus_status run(struct slot *slot, int job)
{
    JANUS_EXPECT(janus_nursery_open(&slot->nursery, NULL) == JANUS_OK);
    if (slot->mended && job == 1) {
        JANUS_EXPECT(janus_nursery_cancel_with(&slot->nursery, slot->stop) == JANUS_OK);
    }
    atomic_store(&slot->job, job);
    janus_status status = janus_spawn(&slot->nursery, work, NULL);
    JANUS_EXPECT(status == JANUS_OK || job == 1);
    status = janus_nursery_end(&slot->nursery, NULL);
    atomic_store(&slot->job, 0);
    return status;
}

static int64_t use_after_end(void *mended)
{
    static struct slot slots[1]; /* lives on, whoever still uses it */
    struct slot       *slot = slots;
    *slot = (struct slot){.mended = mended != NULL};
    if (slot->mended) JANUS_EXPECT(janus_token_create(&slot->stop) == JANUS_OK);
    JANUS_NURSERY(nursery)
    {
        JANUS_EXPECT(janus_spawn(nursery, watchdog, slot) == JANUS_OK);
        (void)run(slot, 1);
        JANUS_EXPECT(run(slot, 2) == JANUS_OK);
    }
    janus_token_release(slot->stop);
    return 0;
}

const struct gallery_bug gallery_use_after_end = {
    "use_after_end", "a nursery that has ended is cancelled, and it is the next one by then",
    use_after_end};

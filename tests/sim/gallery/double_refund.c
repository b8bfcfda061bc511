/* SPDX-License-Identifier: MIT */
/*
 * A job takes units from a pool and returns them when it is done. If it is cancelled, a callback of
 * its token returns them. Both check whether there is anything to return.
 */
#include "gallery.h"

enum { POOL = 100, SHARE = 30 };

struct job {
    atomic_int   pool, share;
    janus_token *stop;
    bool         mended;
};

static void refund(void *argument)
{
    struct job *job = argument;
    if (job->mended) {
        atomic_fetch_add(&job->pool, atomic_exchange(&job->share, 0));
    } else {
        int share = atomic_load(&job->share);
        janus_point();
        atomic_store(&job->share, 0);
        atomic_fetch_add(&job->pool, share);
    }
}

static int64_t work(void *argument)
{
    struct job *job = argument;
    atomic_fetch_sub(&job->pool, SHARE);
    atomic_store(&job->share, SHARE);
    JANUS_EXPECT(janus_token_on_cancel(job->stop, refund, job, NULL) == JANUS_OK);
    refund(job);
    return 0;
}

static int64_t stop(void *argument)
{
    struct job *job = argument;
    return janus_token_cancel(job->stop, JANUS_CANCEL_REASON_EXPLICIT);
}

static int64_t double_refund(void *mended)
{
    struct job job = {.pool = POOL, .mended = mended != NULL};
    JANUS_EXPECT(janus_token_create(&job.stop) == JANUS_OK);
    JANUS_EXPECT(gallery_both(work, stop, &job) == JANUS_OK);
    janus_token_release(job.stop);
    JANUS_EXPECT(atomic_load(&job.pool) == POOL);
    return 0;
}

const struct gallery_bug gallery_double_refund = {
    "double_refund", "units go back to their pool twice: by the job and by its cancel",
    double_refund};

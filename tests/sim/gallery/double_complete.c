/* SPDX-License-Identifier: MIT */
/*
 * A request's answer or its timer completes it, whichever comes first. Both check that it is
 * pending, and then complete it. Both may find it pending.
 */
#include "gallery.h"

struct request {
    janus_channel done; /* has room for one completion */
    atomic_bool   pending;
    bool          mended;
};

static void complete(struct request *request, int how)
{
    if (request->mended) {
        if (!atomic_exchange(&request->pending, false)) return;
    } else {
        if (!atomic_load(&request->pending)) return;
        janus_point();
        atomic_store(&request->pending, false);
    }
    JANUS_EXPECT(janus_channel_try_send(request->done, &how) == JANUS_OK);
}

static int64_t answer(void *argument)
{
    complete(argument, 'a');
    return 0;
}

static int64_t timer(void *argument)
{
    complete(argument, 't');
    return 0;
}

static int64_t double_complete(void *mended)
{
    struct request request = {.pending = true, .mended = mended != NULL};
    int            how = 0;
    JANUS_EXPECT(janus_channel_create(sizeof how, 1, NULL, &request.done) == JANUS_OK);
    JANUS_EXPECT(gallery_both(answer, timer, &request) == JANUS_OK);
    JANUS_EXPECT(janus_channel_recv(request.done, &how) == JANUS_OK);
    JANUS_EXPECT(janus_channel_try_recv(request.done, &how) == JANUS_WOULD_WAIT);
    return janus_channel_destroy(request.done);
}

const struct gallery_bug gallery_double_complete = {
    "double_complete", "the answer and the timer both find the request pending", double_complete};

/* SPDX-License-Identifier: MIT */
/*
 * A receive whose task has no frame while it waits: [chan-rest] in channel.c. rest.c calls
 * these in this order: begin, and while that returns WOULD_WAIT join and leave, or join and again.
 */
#ifndef JRT_REST_CHANNEL_H
#define JRT_REST_CHANNEL_H

#include "chan/chan.h"

/* Lies in the record of the resting task. */
struct jrt_chan_rest {
    struct jrt_chan      *chan;
    struct jrt_chan_entry entry;
    struct jrt_chan_party party;
    bool                  outside; /* plain threads may end the wait */
};

/* Receives as janus_channel_recv does, for the current task, but does not wait. WOULD_WAIT: it has
 * paid. */
janus_status jrt_chan_rest_begin(struct jrt_chan_rest *rest, janus_channel channel, void *value);

/* Tries once more. The receive has paid. */
janus_status jrt_chan_rest_again(struct jrt_chan_rest *rest, janus_channel channel, void *value);

/* Returns what was paid for a receive that ends with this status. Returns the status. */
janus_status jrt_chan_rest_settle(const struct jrt_task *task, janus_status status);

/* Enters the queue. The task has set PARKING. False: something can be done now, and nothing was. */
bool jrt_chan_rest_join(struct jrt_chan_rest *rest, struct jrt_worker *worker,
                        struct jrt_task *task, janus_channel channel, void *value);

/* The wait has ended with `ended`. Leaves the queue, and returns the status of the receive.
 * `worker` is NULL if the task does not run any more. */
janus_status jrt_chan_rest_leave(struct jrt_chan_rest *rest, struct jrt_worker *worker,
                                 janus_scheduler *scheduler, janus_status ended);

#endif

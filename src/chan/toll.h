/* SPDX-License-Identifier: MIT */
/* What channels cost their users: asked before anything happens. Nothing is charged yet. */
#ifndef JRT_CHAN_TOLL_H
#define JRT_CHAN_TOLL_H

#include "task/worker.h"

/* One send, receive or select of the current task. Anything but OK: it does not take place. */
static inline janus_status jrt_chan_pay(struct jrt_worker *worker)
{
    (void)worker;
    return JANUS_OK;
}

/* A channel for so many values is to be made; one was destroyed. */
static inline janus_status jrt_chan_may_open(uint64_t capacity)
{
    (void)capacity;
    return JANUS_OK;
}

static inline void jrt_chan_closed(uint64_t capacity) { (void)capacity; }

#endif

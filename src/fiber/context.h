/* SPDX-License-Identifier: MIT */
/* A stack that can be left and entered: a fiber's stack, or a thread's own. */
#ifndef JRT_FIBER_CONTEXT_H
#define JRT_FIBER_CONTEXT_H

#include "fiber/ctx.h"
#include "stack/sanitizer.h"

struct jrt_context {
    void                *sp; /* while suspended: its jrt_ctx_frame */
    struct jrt_sanitizer sanitizer;
};

/*
 * Why a context was entered: the message of the switch. The entered side acts on it, because only
 * it knows that the other stack is no longer in use.
 */
enum jrt_arrival {
    JRT_ARRIVED_RESUMED,    /* a resumer entered this fiber */
    JRT_ARRIVED_SUSPENDED,  /* the fiber we resumed suspended */
    JRT_ARRIVED_COMPLETED,  /* the fiber's entry returned */
    JRT_ARRIVED_PANICKED,   /* the fiber called janus_panic */
    JRT_ARRIVED_OVERFLOWED, /* the fiber hit its guard, and a signal handler brought us here */
};

/* Leaves `from` and enters `to`. Returns when `from` is entered again, with the reason. The caller
 * then calls jrt_context_arrive or, after OVERFLOWED, jrt_sanitizer_land. */
static inline __attribute__((always_inline)) enum jrt_arrival jrt_context_switch(
    struct jrt_context *from, struct jrt_context *to, enum jrt_arrival why)
{
    bool last = why == JRT_ARRIVED_COMPLETED || why == JRT_ARRIVED_PANICKED;
    jrt_sanitizer_leave(&from->sanitizer, &to->sanitizer, last);
    return (enum jrt_arrival)jrt_ctx_switch(&from->sp, to->sp, (int)why);
}

#endif

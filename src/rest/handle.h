/* SPDX-License-Identifier: MIT */
/*
 * A janus_io_wait whose task has no frame while it waits: [io-rest] in handle.c. rest.c calls
 * these in this order: begin, and while that returns WOULD_WAIT alarm, join, leave and again. When
 * one of begin, leave and again returns another status, the call has ended.
 */
#ifndef JRT_REST_HANDLE_H
#define JRT_REST_HANDLE_H

#include "io/io.h"

/* Lies in the record of the resting task. */
struct jrt_io_rest {
    struct jrt_io     *io; /* the call is inside */
    enum jrt_ready_way way;
    bool               lazy;        /* the handle's own alarm ends the wait */
    uint64_t           deadline_ns; /* of the handle, as it was before the wait */
};

/* Begins the call, for the current task. WOULD_WAIT: it is inside, and has to wait. */
janus_status jrt_io_rest_begin(struct jrt_io_rest *rest, janus_io handle, uint32_t way);

/* Looks once more. */
janus_status jrt_io_rest_again(struct jrt_io_rest *rest);

/* Returns when the task's own alarm has to ring; JRT_NEVER: it need not. */
uint64_t jrt_io_rest_alarm(struct jrt_io_rest *rest, const struct jrt_worker *worker);

/* Registers the task, which has set PARKING. WOULD_WAIT: it waits. OK: it looks again.
 * NO_MEMORY. */
janus_status jrt_io_rest_join(struct jrt_io_rest *rest, struct jrt_worker *worker,
                              struct jrt_task *task);

/* The wait has ended with `ended`. WOULD_WAIT: the task looks again. */
janus_status jrt_io_rest_leave(struct jrt_io_rest *rest, struct jrt_task *task, janus_status ended);

/* Ends a call that is inside with this status, and returns the status. */
janus_status jrt_io_rest_end(struct jrt_io_rest *rest, janus_status status);

#endif

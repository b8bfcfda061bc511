/* SPDX-License-Identifier: MIT */
/* How parallel calls report failures. */
#ifndef JRT_PARALLEL_FAILURE_H
#define JRT_PARALLEL_FAILURE_H

#include <janusrt/parallel.h>

/* Fills *out, unless it is NULL, and returns the error. */
static inline int64_t jrt_failure(janus_parallel_failure *out, int64_t error, uint64_t begin,
                                  uint64_t end, janus_task_id task)
{
    if (out != NULL) *out = (janus_parallel_failure){error, begin, end, task};
    return error;
}

#endif

/* SPDX-License-Identifier: MIT */
/* Blocks of memory of the current task. */
#ifndef JANUSRT_HTTP_BLOCK_H
#define JANUSRT_HTTP_BLOCK_H

#include <janusrt/budget.h>
#include <janusrt/charge.h>
#include <janusrt/memory.h>

/*
 * As janus_try_alloc. But a task that only lacks operations gets more here, or ends here, as in any
 * other call. So BUDGET_EXHAUSTED means that the memory does not suffice.
 */
static inline janus_status jrt_http_alloc(size_t bytes, void **out)
{
    janus_status status = janus_try_alloc(bytes, out);
    if (status != JANUS_BUDGET_EXHAUSTED) return status;
    status = janus_charge(janus_budget_of(1, 0, 0, 0, 0));
    return status == JANUS_OK ? janus_try_alloc(bytes, out) : status;
}

#endif

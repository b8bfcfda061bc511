/* SPDX-License-Identifier: MIT */
/* Waiting: the essay is in wait.h. */
#include "cancel/wait.h"

#include "work/work.h"

janus_status jrt_wait_as_thread(_Atomic(uint32_t) *word, uint64_t deadline_ns)
{
    if (jrt_thread_self()->calls_back) deadline_ns = 0;
    while (jrt_load_acquire(word) == 0) { /* acquire: what the waker wrote. */
        if (!jrt_futex_wait_until(word, 0, deadline_ns)) return JANUS_DEADLINE;
    }
    return JANUS_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * How much of a capability is in use. The counters belong to the context that uses the capability,
 * not to the capability itself. So a limit of numbers holds for each context.
 *
 * [use-exact]  a counter never exceeds the limit that it was taken under, not even for a moment. A
 *   free place is never refused because another attempt just failed.
 */
#ifndef JRT_CAP_USE_H
#define JRT_CAP_USE_H

#include "base/assert.h"
#include "base/atomic.h"

#include <janusrt/status.h>
#include <stdint.h>

struct jrt_cap_use {
    _Atomic(uint64_t) tasks;    /* alive */
    _Atomic(uint64_t) channels; /* alive */
};

/* Takes one more if there are fewer than `limit`, by [use-exact]. */
static inline bool jrt_cap_take(_Atomic(uint64_t) *active, uint64_t limit)
{
    uint64_t count = jrt_load_relaxed(active); /* relaxed: the exchange below reads it again. */
    do {
        if (count >= limit) return false;
        /* relaxed: only the number counts. It publishes nothing else. */
    } while (!jrt_cas_relaxed(active, &count, count + 1));
    return true;
}

static inline void jrt_cap_give(_Atomic(uint64_t) *active)
{
    uint64_t before = jrt_fetch_sub_relaxed(active, 1); /* relaxed: only the number counts. */
    jrt_invariant("use-exact", before > 0);
}

static inline janus_status jrt_cap_take_task(struct jrt_cap_use *use, uint64_t max_tasks)
{
    return jrt_cap_take(&use->tasks, max_tasks) ? JANUS_OK : JANUS_TASK_LIMIT;
}

static inline void jrt_cap_give_task(struct jrt_cap_use *use) { jrt_cap_give(&use->tasks); }

static inline janus_status jrt_cap_take_channel(struct jrt_cap_use *use, uint64_t max_channels)
{
    return jrt_cap_take(&use->channels, max_channels) ? JANUS_OK : JANUS_CHANNEL_LIMIT;
}

static inline void jrt_cap_give_channel(struct jrt_cap_use *use) { jrt_cap_give(&use->channels); }

#endif

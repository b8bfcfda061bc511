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

#include <janusrt/cap.h>
#include <janusrt/status.h>
#include <stdint.h>

/* The kinds that count handles: net, file, process. */
enum { JRT_CAP_HANDLES = JANUS_CAP_KIND_PROCESS + 1 - JANUS_CAP_KIND_NET };

static inline bool jrt_cap_counts_handles(janus_cap_kind kind)
{
    return kind >= JANUS_CAP_KIND_NET && kind <= JANUS_CAP_KIND_PROCESS;
}

static inline unsigned jrt_cap_handle_index(janus_cap_kind kind)
{
    return (unsigned)kind - JANUS_CAP_KIND_NET;
}

struct jrt_cap_use {
    _Atomic(uint64_t) tasks;                    /* alive */
    _Atomic(uint64_t) channels;                 /* alive */
    _Atomic(uint64_t) handles[JRT_CAP_HANDLES]; /* alive, by jrt_cap_handle_index */
    _Atomic(uint64_t) written;                  /* bytes in files; never less */
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

static inline janus_status jrt_cap_take_handle(struct jrt_cap_use *use, janus_cap_kind kind,
                                               uint64_t max_handles)
{
    bool taken = jrt_cap_take(&use->handles[jrt_cap_handle_index(kind)], max_handles);
    return taken ? JANUS_OK : JANUS_HANDLE_LIMIT;
}

static inline void jrt_cap_give_handle(struct jrt_cap_use *use, janus_cap_kind kind)
{
    jrt_cap_give(&use->handles[jrt_cap_handle_index(kind)]);
}

/* Takes `bytes` of what may be written, by [use-exact]; all of them or none. */
static inline bool jrt_cap_take_bytes(struct jrt_cap_use *use, uint64_t bytes, uint64_t limit)
{
    uint64_t count = jrt_load_relaxed(&use->written); /* relaxed: the exchange reads it again. */
    do {
        if (count > limit || bytes > limit - count) return false;
        /* relaxed: only the number counts. It publishes nothing else. */
    } while (!jrt_cas_relaxed(&use->written, &count, count + bytes));
    return true;
}

/* Returns bytes that were not written. */
static inline void jrt_cap_give_bytes(struct jrt_cap_use *use, uint64_t bytes)
{
    uint64_t before = jrt_fetch_sub_relaxed(&use->written, bytes); /* relaxed: as above. */
    jrt_invariant("use-exact", before >= bytes);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The guard ladder.
 *
 * A stack that grows past its end must not write into its neighbour. The best guard is a marker in
 * the page table. It costs no mapping, so a million stacks share one mapping. Older kernels have
 * only mprotect. It splits the mapping twice for each stack and ends near vm.max_map_count / 2. The
 * rest of the process needs mappings too, so the ladder stops at a budget. The last rung has no
 * guard. There the words just below the stack must stay zero. They are checked whenever the fiber
 * suspends or ends.
 *
 * The ladder tests a rung by trying it, not by a kernel version: emulators and sandboxes accept
 * unknown advice and do nothing. After it has marked a page, it asks the kernel to write there.
 *
 * Rejected: painting the canary with a pattern. It would commit the lowest page of each stack, 4
 * KiB more for every fiber. Fresh memory is zero already, and reading it commits nothing.
 */
#include "stack/guard.h"

#include "base/atomic.h"
#include "base/outside.h"

#include <errno.h>

/* The process has one limit of mappings, so all pools count together. */
static _Atomic(size_t) process_guarded;

static bool marker_works(void)
{
    size_t bytes = jrt_page_bytes();
    void  *page = jrt_map_reserve(bytes);
    if (page == NULL) return false;
    struct iovec range = {.iov_base = page, .iov_len = bytes};
    bool         works = jrt_map_mark(&range, 1) == 0 && !jrt_map_accessible(page);
    jrt_map_release(page, bytes);
    return works;
}

bool janus_guard_available(janus_guard guard)
{
    jrt_outside_call_long(); /* [turn-call] */
    switch (guard) {
    case JANUS_GUARD_MARKER: return marker_works();
    case JANUS_GUARD_AUTO:
    case JANUS_GUARD_MPROTECT:
    case JANUS_GUARD_CANARY: return true;
    }
    return false;
}

const char *janus_guard_name(janus_guard guard)
{
    switch (guard) {
    case JANUS_GUARD_AUTO: return "auto";
    case JANUS_GUARD_MARKER: return "marker";
    case JANUS_GUARD_MPROTECT: return "mprotect";
    case JANUS_GUARD_CANARY: return "canary";
    }
    return "?";
}

janus_status jrt_ladder_open(struct jrt_ladder *ladder, janus_guard wanted, size_t guarded_max)
{
    if (!janus_guard_available(wanted)) return JANUS_UNAVAILABLE;
    bool fixed = wanted != JANUS_GUARD_AUTO;
    if (!fixed) wanted = marker_works() ? JANUS_GUARD_MARKER : JANUS_GUARD_MPROTECT;
    size_t process_max = jrt_map_count_max() / 4;
    *ladder = (struct jrt_ladder){
        .process_max = process_max,
        .rung = wanted,
        .fixed = fixed,
        .guarded_max = guarded_max > 0 ? guarded_max : process_max,
    };
    return JANUS_OK;
}

janus_guard jrt_ladder_next(const struct jrt_ladder *ladder)
{
    if (ladder->rung != JANUS_GUARD_MPROTECT || ladder->fixed) return ladder->rung;
    return ladder->guarded < ladder->guarded_max ? JANUS_GUARD_MPROTECT : JANUS_GUARD_CANARY;
}

/* Counts one more protected stack against the budgets of the pool and the process. */
static bool within_budget(const struct jrt_ladder *ladder)
{
    if (ladder->guarded >= ladder->guarded_max) return false;
    /* relaxed: a count that guards no memory. A few too many do no harm. */
    if (jrt_fetch_add_relaxed(&process_guarded, (size_t)1) < ladder->process_max) return true;
    jrt_fetch_sub_relaxed(&process_guarded, (size_t)1); /* relaxed: a count. */
    return false;
}

/* Protects one range after the other, within the budgets. */
static size_t protect(struct jrt_ladder *ladder, const struct iovec *ranges, size_t count,
                      janus_status *out_status)
{
    size_t done = 0;
    for (; done < count; done++) {
        *out_status = JANUS_FULL;
        if (!within_budget(ladder)) break;
        *out_status = JANUS_NO_MEMORY;
        if (!jrt_map_protect(ranges[done].iov_base, ranges[done].iov_len)) {
            jrt_fetch_sub_relaxed(&process_guarded, (size_t)1); /* relaxed: a count. */
            break;
        }
        ladder->guarded++;
    }
    /* The kernel would refuse again until some guards are given back. */
    if (done < count && !ladder->fixed) ladder->guarded_max = ladder->guarded;
    return done;
}

size_t jrt_ladder_guard(struct jrt_ladder *ladder, const struct iovec *ranges, size_t count,
                        janus_guard *out_rung, janus_status *out_status)
{
    *out_rung = ladder->rung;
    if (*out_rung == JANUS_GUARD_MARKER) {
        int error = jrt_map_mark(ranges, count);
        if (error == 0) return count;
        *out_status = JANUS_NO_MEMORY;
        if (error == ENOMEM || ladder->fixed) return 0;
        /* Locked memory (mlockall) cannot have markers. Use the next rung from now on. */
        ladder->rung = *out_rung = JANUS_GUARD_MPROTECT;
    }
    if (*out_rung == JANUS_GUARD_MPROTECT) {
        size_t done = protect(ladder, ranges, count, out_status);
        if (done > 0 || ladder->fixed) return done;
        *out_rung = JANUS_GUARD_CANARY;
    }
    return count; /* fresh memory is the canary: it is zero */
}

void jrt_ladder_forget(struct jrt_ladder *ladder, janus_guard rung, size_t count)
{
    if (rung != JANUS_GUARD_MPROTECT) return;
    ladder->guarded -= count;
    jrt_fetch_sub_relaxed(&process_guarded, count); /* relaxed: a count, as in within_budget. */
}

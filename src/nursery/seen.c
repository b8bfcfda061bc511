/* SPDX-License-Identifier: MIT */
/*
 * What any caller sees of a nursery: its state and its result.
 *
 * [nursery-seen]  A nursery that another task cancels stays Cancelling until its owner merges the
 *   counts. Meanwhile the owner may compute, or wait elsewhere. So other askers count for
 *   themselves: a Cancelling nursery without a child is Cancelled. They read `local`, which the
 *   owner writes, with these orders:
 *    owner     counts a child it starts, light fence, looks at the state; takes the count back
 *              unless it is Open
 *    asker     finds Cancelling, heavy fence, reads `local`, heavy fence, reads `pending`
 *   So after the first fence no child of the owner is missing from `local`. From then on `local`
 *   only shrinks, apart from counts that are taken back. A child that ran in place and started
 *   another counted that in `pending` before it left `local`. The second fence makes this visible.
 *   If the two numbers say that no child is left, that is so, and stays so. The first asker that
 *   finds it writes `over`. So later askers never see a count that is being taken back.
 */
#include "base/assert.h"
#include "base/atomic.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "plat/peek.h"
#include "plat/seam.h"
#include "plat/world.h"
#include "task/nursery.h"

#include <string.h>

static const int64_t bias = JRT_NURSERY_BIAS;

static bool is_final(janus_nursery_state state) { return state >= JANUS_NURSERY_STATE_CLOSED; }

/* Children that seem not to have ended. `sure`: not too few, if the nursery is Cancelling. */
static int64_t count_children(struct jrt_nursery *n, bool sure)
{
    if (sure) jrt_fence_heavy_seq_cst(); /* seq_cst, both: [nursery-seen]. */
    int64_t local = jrt_peek_word(&n->local);
    if (sure) jrt_fence_heavy_seq_cst();             /* seq_cst: as above. */
    int64_t pending = jrt_load_acquire(&n->pending); /* acquire: what children wrote. */
    return pending < bias / 2 ? pending : local + (pending - bias);
}

janus_nursery_state jrt_nursery_seen(struct jrt_nursery *n)
{
    janus_nursery_state state = jrt_nursery_state(n);
    if (jrt_likely(state != JANUS_NURSERY_STATE_CANCELLING)) return state;
    jrt_nursery_ready(n);
    if (!jrt_load_acquire(&n->over)) { /* acquire: what children wrote. */
        /* The fences interrupt all workers: pass them only where they can matter. */
        if (count_children(n, false) != 0 || count_children(n, true) != 0) return state;
        jrt_store_release(&n->over, true); /* release: what children wrote. */
    }
    return JANUS_NURSERY_STATE_CANCELLED;
}

void jrt_nursery_result_of(struct jrt_nursery *n, janus_nursery_result *out)
{
    memset(out, 0, sizeof *out);
    janus_nursery_state state = jrt_nursery_seen(n);
    jrt_nursery_lock(n); /* the thread that made it final has also released it */
    if (!is_final(state)) state = jrt_nursery_state(n);
    out->errors = n->errors;
    out->kind = JANUS_RESULT_KIND_SUCCESS;
    if (!is_final(state)) {
        out->kind = JANUS_RESULT_KIND_PENDING;
    } else if (n->errors > 0) {
        out->kind = JANUS_RESULT_KIND_CHILD_FAILED;
        out->error = n->error;
        out->task = n->error_task;
        if (n->panic != NULL) out->panic = *n->panic;
        out->panic.kind = n->panic_kind;
    } else if (state == JANUS_NURSERY_STATE_CANCELLED) {
        out->kind = JANUS_RESULT_KIND_CANCELLED;
        /* relaxed: set before the state, which was acquired. */
        out->reason = (janus_cancel_reason)jrt_load_relaxed(&n->reason);
    }
    jrt_nursery_unlock(n);
}

bool janus_nursery_try_await(janus_nursery *nursery, janus_nursery_result *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    janus_nursery_result result;
    if (nursery == NULL) return false;
    (void)janus_nursery_state_of(nursery); /* the owner's part, after another's cancel */
    jrt_nursery_result_of(jrt_nursery_of(nursery), &result);
    if (out != NULL) *out = result;
    return result.kind != JANUS_RESULT_KIND_PENDING;
}

janus_nursery_state janus_nursery_state_of(const janus_nursery *nursery)
{
    struct jrt_nursery *n = (struct jrt_nursery *)(uintptr_t)nursery;
    jrt_stack_check(); /* [stack-reserve] */
    jrt_point();
    if (n == NULL) return JANUS_NURSERY_STATE_CLOSED; /* what is not there has ended */
    if (jrt_nursery_state(n) == JANUS_NURSERY_STATE_CANCELLING && jrt_nursery_is_mine(n))
        jrt_nursery_merge(n);
    return jrt_nursery_seen(n);
}

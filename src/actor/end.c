/* SPDX-License-Identifier: MIT */
/* The end of a supervisor, and supervisors below others. The essay is in step.c. */
#include "actor/supervisor.h"

#include "base/options.h"
#include "cancel/cancel.h"
#include "means/call.h"
#include "means/terms.h"
#include "nursery/nursery.h"
#include "work/work.h"

#include <string.h>

/* Waits until all children have ended, whatever happens to the task meanwhile. */
static void await_over(janus_supervisor *supervisor)
{
    janus_waitpoint point;
    janus_waitpoint_init(&point, JANUS_WAKER_ANYBODY);
    jrt_lock(&supervisor->lock);
    jrt_supervisor_go_on(supervisor);
    bool over = supervisor->plan == JRT_PLAN_OVER;
    if (!over) supervisor->over = &point;
    jrt_supervisor_unlock(supervisor);
    if (over) return;
    janus_shield_begin();
    while (janus_waitpoint_wait(&point, "its supervised children") != JANUS_OK) {
    }
    janus_shield_end();
}

/* The places that are left go. */
static void clear(janus_supervisor *supervisor)
{
    jrt_lock(&supervisor->lock);
    while (supervisor->last != NULL) {
        jrt_debug_invariant("step-plan", !jrt_place_runs(supervisor->last));
        jrt_place_remove(supervisor->last);
    }
    jrt_supervisor_unlock(supervisor);
}

/* [supervisor-books]  All children have ended. So each unit of the supervisor's own pool was spent,
 * or is left: no share is open, and the sums are right. */
static void audit(struct jrt_nursery *n)
{
    struct jrt_account_fault fault;
    struct jrt_account_books books;
    struct jrt_terms        *terms = n->terms;
    if (terms == NULL || terms->of != n || !terms->owns_account) return;
    jrt_account_read(&terms->own, &books);
    jrt_invariant("supervisor-books", janus_budget_is_zero(books.shares));
    jrt_invariant("supervisor-books", jrt_account_check(&terms->own, &fault));
}

/* Ends it, after its children. Returns the status for the owner. */
static janus_status end(janus_supervisor *supervisor, janus_supervisor_result *out)
{
    struct jrt_nursery *n = jrt_supervisor_nursery(supervisor);
    await_over(supervisor);
    bool cancelled = jrt_nursery_cancelled_above(n);
    clear(supervisor);
    audit(n);
    supervisor->result.struct_bytes = sizeof supervisor->result;
    /* A supervisor that gave up has cancelled its own scope; that is no cancel from outside. */
    janus_status given = supervisor->gives_up ? supervisor->result.status : JANUS_OK;
    if (given == JANUS_OK && cancelled && !supervisor->gives_up) given = JANUS_CANCELLED;
    supervisor->result.status = given;
    if (out != NULL) jrt_struct_give(out, &supervisor->result);
    (void)jrt_nursery_end(n, NULL);
    jrt_supervisor_release(supervisor);
    return given;
}

/* Begins to stop all children. With the lock. */
static void begin(janus_supervisor *supervisor)
{
    bool cancelled = jrt_nursery_cancelled_above(jrt_supervisor_nursery(supervisor));
    jrt_supervisor_stop_all(supervisor,
                            cancelled ? JANUS_STOP_HOW_AFTER_THIS : JANUS_STOP_HOW_DRAIN);
}

janus_status janus_supervisor_end(janus_supervisor *supervisor, janus_supervisor_result *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_task *task = jrt_task_current();
    if (supervisor == NULL) return JANUS_INVALID;
    if (out != NULL && !jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    struct jrt_nursery *n = jrt_supervisor_nursery(supervisor);
    /* Only then it is there, [supervisor-around]. */
    if (task == NULL || task->innermost != n || n->on_heap != JRT_SUPERVISED) return JANUS_STATE;
    jrt_debug_invariant("supervisor-around", task == supervisor->owner);
    jrt_lock(&supervisor->lock);
    begin(supervisor);
    jrt_supervisor_unlock(supervisor);
    return end(supervisor, out);
}

janus_status janus_supervisor_stop(janus_supervisor *supervisor)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (supervisor == NULL) return JANUS_INVALID;
    janus_status status = jrt_supervisor_may_manage(supervisor);
    if (status != JANUS_OK) return status;
    jrt_lock(&supervisor->lock);
    begin(supervisor);
    jrt_supervisor_go_on(supervisor);
    jrt_supervisor_unlock(supervisor);
    return JANUS_OK;
}

void jrt_supervisor_abandon(struct jrt_nursery *n)
{
    janus_supervisor *supervisor = (janus_supervisor *)(void *)n;
    jrt_lock(&supervisor->lock);
    supervisor->abandoned = true;
    jrt_supervisor_stop_all(supervisor, JANUS_STOP_HOW_AT_ONCE);
    jrt_supervisor_go_on(supervisor);
    jrt_supervisor_unlock(supervisor);
}

void jrt_supervisor_free(struct jrt_nursery *n)
{
    janus_supervisor *supervisor = (janus_supervisor *)(void *)n;
    clear(supervisor);
    jrt_supervisor_release(supervisor);
}

/* A supervisor below another. */

int64_t jrt_supervisor_main(struct jrt_actor_place *place)
{
    janus_supervisor       *supervisor;
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    struct jrt_actor_waiter waiter = {.what = JRT_AWAIT_TOLD};
    int64_t opened = jrt_supervisor_open_below(place->spec->child.supervisor, place, &supervisor);
    janus_status status = JANUS_OK;
    if (opened != JANUS_OK) { /* [place-moves]: it failed, or had nothing to do */
        (void)jrt_place_started(place, opened);
        return opened < 0 ? opened : 0;
    }
    janus_waitpoint_init(&waiter.point, JANUS_WAKER_TASKS);
    jrt_lock(&supervisor->lock);
    jrt_place_lock(place);
    jrt_waiter_link(place, &waiter);
    jrt_place_unlock(place);
    bool over = supervisor->plan == JRT_PLAN_OVER; /* it gave up before the waiter was there */
    jrt_supervisor_unlock(supervisor);
    (void)jrt_place_started(place, 0);
    jrt_place_lock(place);
    bool told = over || place->stops != 0; /* before anybody could find the waiter */
    jrt_place_unlock(place);
    do {
        if (!told) status = janus_waitpoint_wait(&waiter.point, "its supervised children");
    } while (status == JANUS_DEADLOCK);
    jrt_place_lock(place);
    bool done = waiter.done;
    if (!done) jrt_waiter_unlink(&waiter);
    jrt_place_unlock(place);
    if (done && status != JANUS_OK) {
        janus_shield_begin();
        while (janus_waitpoint_wait(&waiter.point, "its supervisor") != JANUS_OK) {
        }
        janus_shield_end();
    } else if (done && told) {
        while (janus_waitpoint_wait(&waiter.point, "its supervisor") != JANUS_OK) {
        }
    }
    status = janus_supervisor_end(supervisor, &result);
    if (result.by_itself && result.cause.kind == JANUS_END_KIND_FAILED) return result.cause.error;
    if (result.by_itself && status == JANUS_OK) return 0;
    return status;
}

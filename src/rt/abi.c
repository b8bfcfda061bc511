/* SPDX-License-Identifier: MIT */
/* The entry points for generated code. Each checks its arguments and calls the full form. */
#include <janusrt/abi.h>

#include "base/outside.h"
#include "look/peek.h"
#include "means/call.h"
#include "means/ledger.h"
#include "nursery/nursery.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdlib.h>

_Static_assert(sizeof(janus_scheduler_config) == 64, "generated code knows its size");
_Static_assert(sizeof(janus_await_result) == 16, "it fits two registers");
_Static_assert(sizeof(janus_task *) >= sizeof(janus_task_id), "a handle holds an id");

static bool config_known(const janus_scheduler_config *config)
{
    const uint32_t flags = JANUS_CONFIG_NO_STEALING | JANUS_CONFIG_NO_DEADLOCK_CHECK;
    uint64_t       rest = config->flags & ~flags;
    for (size_t i = 0; i < 2; i++) rest |= config->reserved[i];
    return rest == 0;
}

janus_scheduler *janus_scheduler_create(janus_scheduler_config config)
{
    janus_scheduler *scheduler;
    if (!config_known(&config)) return NULL;
    janus_scheduler_options options = {
        .struct_bytes = sizeof options,
        .worker_count = config.worker_count,
        .profile = (janus_profile)config.profile,
        .deterministic_seed = config.deterministic_seed,
        .victims = (janus_victims)config.victims,
        .no_stealing = config.flags & JANUS_CONFIG_NO_STEALING,
        .stack_bytes = config.stack_bytes,
        .no_deadlock_check = config.flags & JANUS_CONFIG_NO_DEADLOCK_CHECK,
        .max_tasks = config.max_tasks,
        .yield_interval = config.yield_interval,
        .exhaustion = (janus_exhaustion)config.exhaustion,
    };
    if (janus_scheduler_create_with(&options, &scheduler) != JANUS_OK) return NULL;
    if (janus_scheduler_start(scheduler) == JANUS_OK) return scheduler;
    (void)janus_scheduler_destroy(scheduler);
    return NULL;
}

/*
 * [shutdown-heir]  Shutdown takes over the nurseries of janus_nursery_create_in, whichever thread
 *   made them: that thread may be gone. All children have ended. A thread inside
 *   janus_nursery_await or janus_nursery_destroy still uses its nursery, but not for long: that
 *   call no longer waits for anybody. Shutdown takes the nursery over after the call, if it still
 *   exists.
 */

/* Returns a root that janus_nursery_create_in made, which the caller now owns, or NULL. *out_busy:
 * the threads of some roots are inside a call. */
static struct jrt_nursery *inherit_root(janus_scheduler *scheduler, bool *out_busy)
{
    struct jrt_nursery *found = NULL;
    *out_busy = false;
    jrt_lock(&scheduler->roots_lock);
    struct jrt_list_node *node = scheduler->roots.next;
    for (; node != &scheduler->roots && found == NULL; node = node->next) {
        struct jrt_nursery *n = jrt_list_entry(node, struct jrt_nursery, link);
        if (!n->on_heap) continue;
        bool called = jrt_load_acquire(&n->called); /* acquire: what the call wrote. */
        jrt_debug_invariant("shutdown-heir", jrt_peek_children(n) == 0);
        if (!called) found = n;
        *out_busy |= called;
    }
    if (found != NULL && jrt_worker_self() == NULL) found->thread = jrt_thread_self();
    jrt_unlock(&scheduler->roots_lock);
    return found;
}

int janus_scheduler_shutdown(janus_scheduler *scheduler)
{
    if (scheduler == NULL) return JANUS_OK;
    janus_status status = janus_scheduler_stop(scheduler);
    if (status != JANUS_OK) return status;
    for (bool busy = true; busy;) {
        struct jrt_nursery *root = inherit_root(scheduler, &busy);
        if (root == NULL && busy) jrt_thread_yield();
        if (root == NULL) continue;
        status = janus_nursery_destroy((janus_nursery *)(void *)root);
        if (status != JANUS_OK) return status; /* inside a task of another scheduler */
        busy = true;                           /* look again */
    }
    return janus_scheduler_destroy(scheduler);
}

int janus_scheduler_spawn(janus_entry *function, void *argument)
{
    struct jrt_task *task = jrt_task_current();
    if (task == NULL) return JANUS_STATE;
    struct jrt_nursery *innermost = jrt_nursery_innermost(task);
    if (innermost == NULL) return JANUS_NO_NURSERY;
    return janus_spawn_at((janus_nursery *)(void *)innermost, function, argument, NULL);
}

int janus_scheduler_yield(void) { return janus_yield(); }

/* A task may have this many such nurseries open at no cost, so that a task without memory can have
 * them, too. */
enum { NURSERIES_UNPAID = 16 };

/* Whether the task pays for one more nursery on the heap. They end in turn, so open ones lie inside
 * each other. */
static bool has_many(const struct jrt_task *task)
{
    unsigned            open = 0;
    struct jrt_nursery *n = task->innermost;
    for (; n != NULL && open < NURSERIES_UNPAID; n = jrt_nursery_outer(n)) open += n->on_heap != 0;
    return open >= NURSERIES_UNPAID;
}

janus_nursery *janus_nursery_create(void)
{
    jrt_stack_check(); /* [stack-reserve]; it may end the task, so it comes before the memory */
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_ledger *payer = NULL;
    if (worker == NULL) return NULL;
    bool                     paid = has_many(worker->current);
    enum jrt_on_heap         on_heap = paid ? JRT_PAID : JRT_ON_HEAP;
    struct jrt_paid_nursery *made = jrt_malloc(paid ? sizeof *made : sizeof made->nursery);
    if (made == NULL) return NULL;
    if (paid && jrt_ledger_charge(sizeof *made, &payer) != JANUS_OK) {
        free(made);
        return NULL;
    }
    if (paid) made->payer = payer;
    if (!jrt_nursery_open_on_heap(jrt_nursery_of(&made->nursery), worker, on_heap)) {
        jrt_nursery_free((struct jrt_nursery *)(void *)made, on_heap);
        return NULL;
    }
    return &made->nursery;
}

janus_nursery *janus_nursery_create_in(janus_scheduler *scheduler)
{
    jrt_outside_call(); /* [turn-call] */
    janus_nursery *nursery = jrt_malloc(sizeof *nursery);
    if (nursery == NULL) return NULL;
    if (janus_nursery_open_in(scheduler, nursery, NULL) != JANUS_OK) {
        free(nursery);
        return NULL;
    }
    jrt_lock(&scheduler->roots_lock); /* others can find it already */
    jrt_nursery_of(nursery)->on_heap = true;
    jrt_unlock(&scheduler->roots_lock);
    return nursery;
}

janus_task *janus_nursery_spawn(janus_nursery *nursery, janus_entry *function, void *argument)
{
    janus_task_id       id = 0;
    janus_spawn_options options = {.struct_bytes = sizeof options, .unjoinable = true};
    if (janus_spawn_with(nursery, function, argument, &options, &id) != JANUS_OK) return NULL;
    return (janus_task *)(uintptr_t)id;
}

/* Marks the begin or the end of a call in which a thread waits with its own
 * nursery, [shutdown-heir]. */
static void set_called(janus_nursery *nursery, bool called)
{
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (n->owner != NULL || !jrt_nursery_is_mine(n)) return;
    jrt_store_release(&n->called, called); /* release: what the call wrote. */
}

static janus_await_result await(janus_nursery *nursery)
{
    janus_nursery_result result = {.kind = JANUS_RESULT_KIND_SUCCESS};
    if (janus_nursery_await_with(nursery, &result) == JANUS_STATE) {
        return (janus_await_result){.kind = JANUS_STATE};
    }
    janus_await_result out = {.kind = (int32_t)result.kind};
    if (result.kind == JANUS_RESULT_KIND_CHILD_FAILED) {
        out.detail = result.errors < INT32_MAX ? (int32_t)result.errors : INT32_MAX;
        out.value = result.error;
    } else if (result.kind == JANUS_RESULT_KIND_CANCELLED) {
        out.detail = (int32_t)result.reason;
    }
    return out;
}

janus_await_result janus_nursery_await(janus_nursery *nursery)
{
    if (nursery == NULL) return (janus_await_result){.kind = JANUS_INVALID};
    set_called(nursery, true);
    janus_await_result result = await(nursery);
    set_called(nursery, false);
    return result;
}

int janus_nursery_destroy(janus_nursery *nursery)
{
    if (nursery == NULL) return JANUS_OK;
    if (!jrt_nursery_of(nursery)->on_heap) return JANUS_STATE;
    set_called(nursery, true);
    enum jrt_on_heap on_heap = (enum jrt_on_heap)jrt_nursery_of(nursery)->on_heap;
    if (janus_nursery_end(nursery, NULL) == JANUS_STATE) return JANUS_STATE;
    jrt_nursery_free((struct jrt_nursery *)(void *)nursery, on_heap);
    return JANUS_OK;
}

int janus_nursery_propagate_cancel(janus_nursery *nursery)
{
    jrt_stack_check(); /* [turn-call] */
    if (nursery == NULL) return JANUS_INVALID;
    return jrt_nursery_cancel_called(jrt_nursery_of(nursery), JANUS_CANCEL_REASON_PARENT);
}

bool janus_in_task(void) { return jrt_task_current() != NULL; }

janus_task *janus_task_current(void) { return (janus_task *)(uintptr_t)janus_task_current_id(); }

janus_task_id janus_task_id_of(const janus_task *task) { return (uintptr_t)task; }

bool janus_task_is_finished(janus_task_state state)
{
    return state == JANUS_TASK_STATE_COMPLETED || state == JANUS_TASK_STATE_CANCELLED;
}

/* SPDX-License-Identifier: MIT */
/* Inspects one task, nursery or worker for programs. dump.c shows all of them, to people. */
#include "base/options.h"
#include "cancel/cancel.h"
#include "look/peek.h"
#include "means/call.h"
#include "means/purse.h"
#include "means/terms.h"
#include "task/nursery.h"
#include "task/roster.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/seat.h"

#include <janusrt/dump.h>
#include <string.h>

/* The handle of a nursery. NULL: there is no nursery, or it is hidden, [nursery-hidden]. */
static janus_nursery *handle_of(struct jrt_nursery *n)
{
    return n != NULL && !jrt_nursery_is_hidden(n) ? (janus_nursery *)(void *)n : NULL;
}

/* Tasks. */

/* Why calls of an unshielded task would return CANCELLED. Everything above the task is linked. */
static janus_cancel_reason cancel_of(const struct jrt_task *task)
{
    if (jrt_task_is_singled(task)) return JANUS_CANCEL_REASON_EXPLICIT;
    return jrt_nursery_reason_above(task->nursery);
}

/* A child that can be found; under the nursery's lock. */
static struct jrt_task *find_child(struct jrt_nursery *n, janus_task_id id)
{
    uint32_t         index = (uint32_t)(id >> 32);
    struct jrt_task *task = NULL;
    if (index != 0) task = jrt_roster_find(&n->scheduler->roster, index - 1);
    if (task == NULL) return NULL;
    if (jrt_task_peek_joinable(task, n, id)) {
        return task; /* only the owner releases it, and the owner is the caller */
    }
    struct jrt_list_node *node = n->children.next;
    for (; node != &n->children; node = node->next) {
        task = jrt_list_entry(node, struct jrt_task, sibling);
        if (jrt_task_id(task) == id) return task;
    }
    return NULL;
}

/* Fills in what never changes, or only the caller changes. */
static void describe(const struct jrt_task *task, janus_task_info *info)
{
    struct jrt_nursery *n = task->nursery;
    info->id = jrt_task_id(task);
    jrt_name_again(info->name, sizeof info->name, jrt_task_name(task));
    if (task->site != NULL) info->site = *task->site;
    info->priority = (janus_priority)((task->lane & ~JRT_LANE_SEATED) + 1);
    info->stack_bytes = n->scheduler->depot->classes[task->stack_class].promised_bytes;
    info->nursery = handle_of(n);
    jrt_name_again(info->nursery_name, sizeof info->nursery_name, jrt_nursery_name(n));
    info->parent = n->owner != NULL ? jrt_task_id(n->owner) : 0;
    info->cancel = cancel_of(task);
}

/* Counts a nursery of the task, unless it is hidden. The innermost comes first. */
static void count_owned(struct jrt_nursery *n, janus_task_info *info)
{
    janus_nursery *handle = handle_of(n);
    if (info->owned == NULL) info->owned = handle;
    info->nurseries += handle != NULL;
}

/* Fills in what changes; under the nursery's lock. */
static void look_at(struct jrt_task *task, janus_task_info *info)
{
    struct jrt_sight sight;
    jrt_peek_task(task, &sight);
    bool ended =
        sight.state == JANUS_TASK_STATE_COMPLETED || sight.state == JANUS_TASK_STATE_CANCELLED;
    info->has_result = ended && task->kept;
    if (ended && !info->has_result) {
        sight.state = JANUS_TASK_STATE_RUNNING; /* it is about to end */
    }
    info->state = sight.state;
    memcpy(info->wait, sight.wait, sizeof info->wait);
    info->worker = sight.worker;
    info->state_ns = sight.state_ns;
    info->at_most = sight.at_most;
    if (sight.state == JANUS_TASK_STATE_BUDGET_EXHAUSTED) {
        info->budget_known = jrt_exhausted_read(task, &info->budget, &info->lacks);
    }
    if (info->has_result) {
        info->result = task->landing.result;
        info->panic = (janus_panic_kind)task->panic;
    }
    if (!jrt_load_relaxed(&task->linked)) return; /* relaxed: under the lock. */
    if (jrt_list_empty(&task->nurseries)) return;
    struct jrt_list_node *node = task->nurseries.next;
    for (; node != &task->nurseries; node = node->next) {
        count_owned(jrt_list_entry(node, struct jrt_nursery, link), info);
    }
}

janus_status janus_task_inspect(janus_nursery *nursery, janus_task_id id, janus_task_info *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (nursery == NULL || out == NULL) return JANUS_INVALID;
    if (!jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (!jrt_nursery_is_mine(n)) return JANUS_STATE;
    janus_task_info info = {0};
    jrt_point();
    jrt_nursery_lock(n);
    struct jrt_task *task = find_child(n, id);
    if (task != NULL) {
        describe(task, &info);
        look_at(task, &info);
    }
    jrt_nursery_unlock(n);
    if (task == NULL) return JANUS_STALE;
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

janus_status janus_task_inspect_current(janus_task_info *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_worker *worker = jrt_worker_self();
    if (out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    if (worker == NULL) return JANUS_STATE;
    struct jrt_task *task = worker->current;
    janus_task_info  info = {.state = JANUS_TASK_STATE_RUNNING, .wait = "nothing"};
    describe(task, &info);
    info.worker = worker->index;
    info.at_most = true;
    info.budget_known = true;
    info.budget = jrt_purse_read(task);
    for (struct jrt_nursery *n = task->innermost; n != NULL; n = jrt_nursery_outer(n)) {
        count_owned(n, &info);
    }
    jrt_debug_invariant("nursery-hidden",
                        info.owned == NULL || !jrt_nursery_is_hidden(jrt_nursery_of(info.owned)));
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

/* Nurseries. */

/* The parent of a nursery: the nursery that was current when n was opened. A hidden one is left
 * out. */
static struct jrt_nursery *parent_of(const struct jrt_nursery *n)
{
    struct jrt_nursery *outer = jrt_nursery_outer(n);
    while (outer != NULL && jrt_nursery_is_hidden(outer)) outer = jrt_nursery_outer(outer);
    if (outer != NULL) return outer;
    return n->owner != NULL ? n->owner->nursery : NULL;
}

janus_status janus_nursery_inspect(janus_nursery *nursery, janus_nursery_info *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (nursery == NULL || out == NULL) return JANUS_INVALID;
    if (!jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (!jrt_nursery_is_mine(n)) return JANUS_STATE;
    janus_nursery_info info = {
        .state = janus_nursery_state_of(nursery),
        .reason = (janus_cancel_reason)jrt_load_relaxed(&n->reason), /* relaxed: after the state. */
        .policy = (janus_policy)n->policy,
        .max_children = n->limited ? n->max_children : 0, /* [nursery-ready] */
        .stack_bytes = n->scheduler->depot->classes[jrt_initial_class(n->initial)].promised_bytes,
        .owner = n->owner != NULL ? jrt_task_id(n->owner) : 0,
        .parent = handle_of(parent_of(n)),
    };
    jrt_name_again(info.name, sizeof info.name, jrt_nursery_name(n));
    jrt_nursery_lock(n);
    info.children = (uint64_t)jrt_peek_children(n);
    info.errors = n->errors;
    if (n->errors != 0) info.error = n->error;
    if (n->errors != 0) info.error_task = n->error_task;
    jrt_nursery_unlock(n);
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

/* Workers. */

/* What was counted by threads of single tasks that have ended. */
static void add_seats(const struct jrt_counts *seats, janus_worker_info *sum, uint64_t *by_loop)
{
    /* relaxed, all: they move while they are read. */
    sum->tasks_executed += jrt_load_relaxed(&seats->tasks_executed);   /* relaxed */
    *by_loop += jrt_load_relaxed(&seats->tasks_by_loop);               /* relaxed */
    sum->tasks_cancelled += jrt_load_relaxed(&seats->tasks_cancelled); /* relaxed */
    sum->switches += jrt_load_relaxed(&seats->switches);               /* relaxed */
    sum->parks += jrt_load_relaxed(&seats->parks);                     /* relaxed */
    sum->yields += jrt_load_relaxed(&seats->yields);                   /* relaxed */
    sum->restarts += jrt_load_relaxed(&seats->restarts);               /* relaxed */
    sum->exhaustions += jrt_load_relaxed(&seats->exhaustions);         /* relaxed */
    sum->recharges += jrt_load_relaxed(&seats->recharges);             /* relaxed */
    sum->refusals += jrt_load_relaxed(&seats->refusals);               /* relaxed */
}

/* The counters of one worker, or of all. */
static void put_counts(const janus_scheduler *scheduler, uint32_t worker, janus_worker_info *sum)
{
    bool     all = worker == JANUS_ALL_WORKERS;
    uint64_t by_loop = 0;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        if (!all && worker != i) continue;
        const struct jrt_counts *stats = &scheduler->workers[i].stats;
        /* relaxed, all: they move while they are read. */
        sum->tasks_executed += jrt_load_relaxed(&stats->tasks_executed);   /* relaxed */
        by_loop += jrt_load_relaxed(&stats->tasks_by_loop);                /* relaxed */
        sum->tasks_cancelled += jrt_load_relaxed(&stats->tasks_cancelled); /* relaxed */
        sum->tasks_stolen += jrt_load_relaxed(&stats->tasks_stolen);       /* relaxed */
        sum->steals_failed += jrt_load_relaxed(&stats->steals_failed);     /* relaxed */
        sum->switches += jrt_load_relaxed(&stats->switches);               /* relaxed */
        sum->parks += jrt_load_relaxed(&stats->parks);                     /* relaxed */
        sum->yields += jrt_load_relaxed(&stats->yields);                   /* relaxed */
        sum->restarts += jrt_load_relaxed(&stats->restarts);               /* relaxed */
        sum->exhaustions += jrt_load_relaxed(&stats->exhaustions);         /* relaxed */
        sum->recharges += jrt_load_relaxed(&stats->recharges);             /* relaxed */
        sum->refusals += jrt_load_relaxed(&stats->refusals);               /* relaxed */
    }
    if (all) add_seats(&scheduler->seat_stats, sum, &by_loop);
    if (sum->tasks_executed > by_loop) sum->tasks_in_place = sum->tasks_executed - by_loop;
}

/* What one worker does now. */
static void put_now(const janus_scheduler *scheduler, uint32_t index, janus_worker_info *info)
{
    const struct jrt_worker *worker = &scheduler->workers[index];
    info->stealing |= scheduler->stealing && !worker->alone;
    info->queued += jrt_peek_queued(worker);
}

janus_status janus_worker_inspect(const janus_scheduler *scheduler, uint32_t worker,
                                  janus_worker_info *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (scheduler == NULL || out == NULL) return JANUS_INVALID;
    if (!jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    bool all = worker == JANUS_ALL_WORKERS;
    if (!all && worker >= scheduler->worker_count) return JANUS_INVALID;
    janus_worker_info info = {.index = worker};
    uint32_t          count = all ? scheduler->worker_count : 1;
    jrt_turn_toll(jrt_worker_self(), count * JRT_TOLL_WORKER);
    jrt_point();
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        if (all || worker == i) put_now(scheduler, i, &info);
    }
    if (!all) info.task = jrt_peek_current(&scheduler->workers[worker]);
    put_counts(scheduler, worker, &info);
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

size_t janus_nursery_failures(janus_nursery *nursery, janus_failure *out, size_t room)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (nursery == NULL || !jrt_nursery_is_mine(n) || (out == NULL && room > 0)) return 0;
    jrt_nursery_lock(n);
    size_t kept = n->failures != NULL ? n->failures->count : 0;
    size_t count = kept < room ? kept : room;
    if (count > 0) memcpy(out, n->failures->list, count * sizeof *out);
    jrt_nursery_unlock(n);
    return kept;
}

janus_status janus_nursery_pool_inspect(janus_nursery *nursery, janus_nursery_pool_info *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (nursery == NULL || out == NULL) return JANUS_INVALID;
    if (!jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    const struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (n->terms == NULL || n->terms->account == NULL) return JANUS_STATE;
    struct jrt_account_books books;
    jrt_account_read(n->terms->account, &books);
    janus_nursery_pool_info info = {.granted = books.granted,
                                    .left = books.left,
                                    .shares = books.shares,
                                    .nested = books.nested,
                                    .spent = books.spent,
                                    .refunded = books.refunded};
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

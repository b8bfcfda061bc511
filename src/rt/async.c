/* SPDX-License-Identifier: MIT */
/*
 * Calls with a value: a joinable child, and a place for its value.
 *
 * [async-value]  The int64 that a task returns stays a status. The value lies in the caller's
 *   memory. The short form has its place in the call itself, and its child returns 0: there, a
 *   negative number is no failure. The join that ends an await orders the child's writes before
 *   the caller's reads.
 */
#include "base/options.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "task/nursery.h"
#include "task/worker.h"

#include <janusrt/async.h>
#include <string.h>

struct async {
    janus_nursery *nursery;
    janus_task_id  task;
    union {
        janus_async_entry *entry;
        janus_entry       *function; /* of the short form */
    };
    void   *argument;
    void   *value;
    int64_t number;
    bool    numbered;
};

_Static_assert(sizeof(struct async) <= sizeof(janus_async), "it fits its storage");

static struct async *async_of(janus_async *call) { return (struct async *)(void *)call; }

static int64_t run_entry(void *argument)
{
    struct async *async = argument;
    return async->entry(async->argument, async->value);
}

static int64_t run_function(void *argument)
{
    struct async *async = argument;
    async->number = async->function(async->argument); /* [async-value] */
    return 0;
}

/* The given nursery, or the innermost; NULL: none is open. */
static janus_nursery *nursery_or_innermost(janus_nursery *given)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (given != NULL || worker == NULL) return given;
    return (janus_nursery *)(void *)jrt_nursery_innermost(worker->current);
}

/* The child may run before the spawn returns, so the call is written first. On an error the old
 * content comes back. */
static janus_status begin(janus_nursery *nursery, janus_async *call, const struct async *wanted,
                          janus_entry *run, const janus_spawn_options *options)
{
    struct async  before;
    janus_task_id id;
    if (nursery == NULL) return JANUS_NO_NURSERY;
    if (!jrt_nursery_is_mine(jrt_nursery_of(nursery))) return JANUS_STATE;
    if (options != NULL && jrt_struct_sane(options->struct_bytes, sizeof *options)) {
        size_t end = offsetof(janus_spawn_options, unjoinable) + sizeof options->unjoinable;
        if (options->struct_bytes >= end && options->unjoinable) return JANUS_INVALID;
    }
    memcpy(&before, call, sizeof before);
    memcpy(call, wanted, sizeof *wanted);
    async_of(call)->nursery = nursery;
    janus_status status = janus_spawn_with(nursery, run, call, options, &id);
    if (status != JANUS_OK) {
        memcpy(call, &before, sizeof before);
    } else {
        async_of(call)->task = id; /* the child does not read it */
    }
    return status;
}

janus_status janus_async_start_with(janus_nursery *nursery, janus_async *call,
                                    janus_async_entry *entry, void *argument, void *value,
                                    const janus_spawn_options *options)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (call == NULL || entry == NULL) return JANUS_INVALID;
    struct async wanted = {.entry = entry, .argument = argument, .value = value};
    return begin(nursery_or_innermost(nursery), call, &wanted, run_entry, options);
}

janus_status janus_async_start_number_with(janus_nursery *nursery, janus_async *call,
                                           janus_entry *function, void *argument,
                                           const janus_spawn_options *options)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (call == NULL || function == NULL) return JANUS_INVALID;
    struct async wanted = {.function = function, .argument = argument, .numbered = true};
    return begin(nursery_or_innermost(nursery), call, &wanted, run_function, options);
}

janus_status janus_await(janus_async *call, int64_t *out_number)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (call == NULL) return JANUS_INVALID;
    struct async *async = async_of(call);
    int64_t       result = 0;
    janus_status  status = janus_join(async->nursery, async->task, &result);
    bool          ended = status == JANUS_CHILD_FAILED || status == JANUS_CHILD_CANCELLED;
    if (status != JANUS_OK && !ended) return status;
    jrt_debug_invariant("async-value", !async->numbered || ended || result == 0);
    if (async->numbered && status == JANUS_OK) result = async->number;
    if (out_number != NULL) *out_number = result;
    return status;
}

janus_task_id janus_async_task(const janus_async *call)
{
    return call != NULL ? ((const struct async *)(const void *)call)->task : 0;
}

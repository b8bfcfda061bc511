/* SPDX-License-Identifier: MIT */
/*
 * What a spawn takes before the child exists, so that a refusal leaves nothing behind.
 *
 * [spawn-stack]  A stack of the scheduler's size is part of a task: max_tasks, or the spawn
 *   capability, bounds their number. A larger stack, which the spawn or the nursery's options ask
 *   for, is memory of the child. The child's share pays for the part beyond the scheduler's size
 *   before the child exists. It gets that back when the child ends. A share without it is refused
 *   with SPAWN_BUDGET. The size is the promised one, rounded up to a power of two. Builds with
 *   sanitizers have larger stacks at the same price.
 */
#include "fiber/fiber.h"
#include "means/purse.h"
#include "means/room.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "task/worker.h"
#include "work/turn.h"
#include "work/work.h"

/* Counts one more live child where the nursery has a limit. */
static inline janus_status count_in(struct jrt_nursery *n)
{
    return jrt_likely(!n->limited) ? JANUS_OK : jrt_room_take(n);
}

/* The price of a child's stack under these options. */
static uint64_t stack_price(const struct jrt_nursery *n, const janus_spawn_options *options)
{
    const struct jrt_stack_class *classes = n->scheduler->depot->classes;
    unsigned                      usual = n->scheduler->stack_class;
    unsigned class = options->stack_bytes != 0 ? jrt_pool_stack_class(options->stack_bytes)
                                               : jrt_initial_class(n->initial);
    if (jrt_likely(class <= usual)) return 0;
    return (classes[class].promised_bytes - classes[usual].promised_bytes) / JRT_STACK_FACTOR;
}

/* Whether the taken share pays for the stack. If not, the share goes back. */
janus_status jrt_taken_stack(struct jrt_nursery *n, const janus_spawn_options *options,
                             struct jrt_taken *taken)
{
    const struct jrt_admission *admission = &taken->admission;
    taken->stack = stack_price(n, options);
    uint64_t memory =
        admission->account != NULL ? admission->share.memory : n->scheduler->task_budget.memory;
    if (jrt_likely(taken->stack <= memory)) return JANUS_OK;
    jrt_admission_return(admission);
    jrt_terms_leave(n, jrt_worker_self());
    return jrt_trouble(JANUS_SPAWN_BUDGET, JANUS_COMPONENT_MEMORY, taken->stack, memory);
}

static uint64_t cap_bits(const janus_cap *cap)
{
    return (uint64_t)cap->slot | cap->generation | cap->nonce;
}

/* Whether the options give the child a capability of its own. Few do. */
static bool shows_cap(const janus_spawn_options *options)
{
    return (cap_bits(&options->spawn_cap) | cap_bits(&options->budget_cap) |
            cap_bits(&options->channel_cap) | cap_bits(&options->executor_cap) |
            cap_bits(&options->net_cap) | cap_bits(&options->file_cap) |
            cap_bits(&options->process_cap) | cap_bits(&options->name_cap)) != 0;
}

/* with_cap: makes terms for the child. */
static janus_status narrow(struct jrt_nursery *n, const janus_spawn_options *options,
                           struct jrt_taken *taken)
{
    const struct jrt_caps caps = {{[JANUS_CAP_KIND_SPAWN] = options->spawn_cap,
                                   [JANUS_CAP_KIND_BUDGET] = options->budget_cap,
                                   [JANUS_CAP_KIND_CHANNEL] = options->channel_cap,
                                   [JANUS_CAP_KIND_EXECUTOR] = options->executor_cap,
                                   [JANUS_CAP_KIND_NET] = options->net_cap,
                                   [JANUS_CAP_KIND_FILE] = options->file_cap,
                                   [JANUS_CAP_KIND_PROCESS] = options->process_cap,
                                   [JANUS_CAP_KIND_NAME] = options->name_cap}};
    return jrt_terms_narrow(n, &caps, &taken->terms);
}

/* Counts one more live child where there is a limit, and takes what it needs. */
janus_status jrt_taken_take(struct jrt_nursery *n, const janus_spawn_options *options,
                            struct jrt_taken *taken)
{
    *taken = (struct jrt_taken){.terms = NULL};
    janus_status status = shows_cap(options) ? narrow(n, options, taken) : JANUS_OK;
    if (status != JANUS_OK) return status;
    status = count_in(n);
    if (status == JANUS_OK) {
        /* After a wait for room, the task may be on another worker. */
        bool waits = options->when_full == JANUS_WHEN_FULL_WAIT;
        status = JANUS_TASK_LIMIT;
        taken->admission.full = NULL;
        if (!waits || !jrt_wish_is_behind(n)) {
            status = jrt_terms_take_child(n, jrt_worker_self(), options->budget, &taken->admission);
        }
        if (status == JANUS_TASK_LIMIT && waits) {
            status = jrt_wish_wait(n, options->budget, &taken->admission);
        }
        if (status == JANUS_OK) status = jrt_taken_stack(n, options, taken);
        if (status != JANUS_OK) {
            jrt_turn_toll(jrt_worker_self(), JRT_TOLL_REFUSED);
        } else if (taken->admission.account != NULL) {
            jrt_turn_toll(jrt_worker_self(), JRT_TOLL_SHARE);
        }
        if (status != JANUS_OK && n->limited) jrt_room_give(n);
    }
    if (status != JANUS_OK) jrt_terms_put(taken->terms);
    /* A wait was cancelled. Only now, because this may end the task: it holds no room. */
    struct jrt_task *task = status == JANUS_CANCELLED ? jrt_task_current() : NULL;
    return task != NULL ? jrt_task_cancelled_or_end(task) : status;
}

/* Returns what a refused spawn has taken. */
void jrt_taken_return(struct jrt_nursery *n, struct jrt_worker *worker, struct jrt_task *task,
                      const struct jrt_taken *taken)
{
    if (task != NULL && task->purse != NULL) {
        task->purse->account = NULL; /* the share goes back as it came */
        jrt_purse_close(worker, task);
    } else {
        jrt_terms_put(taken->terms);
    }
    jrt_admission_return(&taken->admission);
    if (task != NULL) jrt_task_retire(n->scheduler, worker, task);
    jrt_terms_leave(n, worker);
    if (n->limited) jrt_room_give(n);
}

/* Gives the child its share and its terms, if it has any. */
bool jrt_taken_endow(struct jrt_task *task, const struct jrt_taken *taken)
{
    struct jrt_admission admission = taken->admission;
    bool                 plain = taken->terms == NULL && !taken->all && taken->stack == 0;
    if (admission.account == NULL && plain) return true;
    if (admission.account == NULL) admission.share = task->nursery->scheduler->task_budget;
    if (taken->all) {
        admission.share = janus_budget_of(JANUS_UNLIMITED, JANUS_UNLIMITED, JANUS_UNLIMITED,
                                          JANUS_UNLIMITED, JANUS_UNLIMITED);
    }
    struct jrt_purse *purse = jrt_purse_make(task, &admission);
    if (purse == NULL) return false;
    purse->terms = taken->terms;
    jrt_debug_invariant("spawn-stack", purse->left.memory >= taken->stack);
    purse->left.memory -= taken->stack;
    purse->stack = taken->stack;
    return true;
}

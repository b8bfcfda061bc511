/* SPDX-License-Identifier: MIT */
/*
 * Names under terms.
 *
 * A task's capability is asked when it registers a name and each time it finds one. As with
 * handles, every capability around that was bound is asked, so a revocation further out counts.
 *
 * [name-pool]  A name is visible in the whole scheduler, and only one actor has it. A task in a
 *   pool could register the name of another pool's actor before that actor does, and get its
 *   messages. So a task in a pool registers only with a capability, whose prefix keeps pools apart.
 *   Finding a name takes nothing from others, so the profile's right is enough.
 */
#include "means/terms.h"
#include "means/trouble.h"
#include "task/task.h"
#include "task/worker.h"

static struct jrt_cap_actor actor_of(const janus_scheduler *scheduler, const struct jrt_task *task)
{
    const struct jrt_worker *worker = jrt_worker_self();
    struct jrt_cap_actor     actor = jrt_actor_in(scheduler, worker);
    if (actor.writer != NULL && worker->current != task) {
        actor.writer = jrt_terms_writer(task, worker->audit);
    }
    actor.holder = jrt_task_id(task);
    return actor;
}

/* Asks every capability around. */
static janus_status ask_held(janus_scheduler *scheduler, const struct jrt_terms *terms,
                             struct jrt_cap_actor actor, uint32_t right, const char *name)
{
    janus_cap_limits limits;
    for (; terms != NULL; terms = terms->outer) {
        if ((terms->bound & 1u << JANUS_CAP_KIND_NAME) == 0) continue;
        const struct jrt_held *held = &terms->held[JANUS_CAP_KIND_NAME];
        actor.holder = held->holder;
        janus_status status =
            jrt_cap_gate_name(scheduler->caps, held->cap, &actor, right, name, &limits);
        if (status != JANUS_OK) return jrt_trouble_name(status, right, name, &limits.name);
    }
    return JANUS_OK;
}

/* Whether the profile gives the right, [name-pool]. */
static bool is_implicit(const janus_scheduler *scheduler, const struct jrt_terms *terms,
                        uint32_t right)
{
    uint32_t implicit = terms != NULL ? terms->implicit : scheduler->implicit;
    if ((implicit & 1u << JANUS_CAP_KIND_NAME) == 0) return false;
    return right != JANUS_RIGHT_NAME_REGISTER || !jrt_terms_in_pool(terms);
}

janus_status jrt_terms_name(const struct jrt_task *task, uint32_t right, const char *name)
{
    if (jrt_thread_self()->callback != NULL) return JANUS_STATE; /* [callback-account] */
    if (task == NULL) return JANUS_OK;
    janus_scheduler     *scheduler = task->nursery->scheduler;
    struct jrt_terms    *terms = jrt_terms_here(task);
    struct jrt_cap_actor actor = actor_of(scheduler, task);
    bool                 held = jrt_terms_holds(task, JANUS_CAP_KIND_NAME);
    if (held) return ask_held(scheduler, terms, actor, right, name);
    if (jrt_likely(is_implicit(scheduler, terms, right))) {
        jrt_debug_invariant("name-pool", right == JANUS_RIGHT_NAME_FIND || terms == NULL ||
                                             terms->account == NULL);
        return JANUS_OK;
    }
    const struct jrt_cap_wish wish = {.kind = JANUS_CAP_KIND_NAME, .right = right, .name = name};
    struct jrt_cap_target     target;
    jrt_cap_wish_target(&wish, &target);
    janus_status status = jrt_terms_deny_at(scheduler, &actor, JANUS_CAP_KIND_NAME, right,
                                            JANUS_NO_NAME_CAP, &target);
    return jrt_trouble_name(status, right, name, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Channels under terms. Terms count channels as they count tasks (terms.c). A channel counts for
 * the terms whose channel capability it was made under. It also counts for all terms around those
 * that hold one themselves. Where no capability is held, it counts against the scheduler's limit.
 * A channel may outlive its nursery, so it keeps the terms.
 *
 * [channel-pool]  Where no capability is held, each pool counts its channels by itself. A channel
 *   counts for all terms around it that have a pool of their own. Each of these allows as many
 *   channels as the scheduler does. Only channels outside of all pools count against the
 *   scheduler's own limit. So a pool that is used up refuses nobody in another pool. A pool inside
 *   a pool cannot have more channels than the pool around it.
 *
 * [common-share]  Places of actors and questions lie in tables of the process. Such a table has a
 *   fixed size, because handles name its entries by number. A pool has at most a quarter of it,
 *   together with the pools inside. So a plugin in a pool cannot fill the table for others. Tasks
 *   outside of every pool have no share: the program trusts them.
 */
#include "means/terms.h"
#include "means/trouble.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"

static const uint32_t bit = 1u << JANUS_CAP_KIND_CHANNEL;

/* Returns one channel in the terms below `end`; NULL: in all. */
static void give_up_to(struct jrt_terms *terms, const struct jrt_terms *end)
{
    for (; terms != end; terms = terms->outer) {
        if ((terms->bound & bit) != 0) jrt_cap_give_channel(&terms->use);
    }
}

/* Takes one channel in all terms that count it; on any error in none of them. */
static janus_status take(janus_scheduler *scheduler, struct jrt_terms *terms, uint64_t buffer)
{
    struct jrt_cap_actor actor = jrt_actor(jrt_worker_self());
    for (struct jrt_terms *at = terms; at != NULL; at = at->outer) {
        if ((at->bound & bit) == 0) continue;
        const struct jrt_held *held = &at->held[JANUS_CAP_KIND_CHANNEL];
        actor.holder = held->holder;
        janus_status status =
            jrt_cap_gate_channel(scheduler->caps, held->cap, &actor, &at->use, buffer);
        if (status == JANUS_OK) continue;
        give_up_to(terms, at);
        return status;
    }
    return JANUS_OK;
}

/* Whether terms count channels that were made without a capability, [channel-pool]. */
static bool counts(const struct jrt_terms *terms) { return terms->owns_account; }

static bool any_counts(const struct jrt_terms *terms)
{
    while (terms != NULL && !counts(terms)) terms = terms->outer;
    return terms != NULL;
}

/* Returns one channel in the pools below `end`; NULL: in all. */
static void give_pools_up_to(struct jrt_terms *terms, const struct jrt_terms *end)
{
    for (; terms != end; terms = terms->outer) {
        if (counts(terms)) jrt_cap_give_channel(&terms->use);
    }
}

/* Takes one channel in every pool around; on any error in none of them. */
static janus_status take_pools(struct jrt_terms *terms, uint64_t max, struct jrt_terms **out_full)
{
    for (struct jrt_terms *at = terms; at != NULL; at = at->outer) {
        if (!counts(at) || jrt_cap_take_channel(&at->use, max) == JANUS_OK) continue;
        give_pools_up_to(terms, at);
        *out_full = at;
        return JANUS_CHANNEL_LIMIT;
    }
    return JANUS_OK;
}

static janus_status take_implicit(janus_scheduler *scheduler, struct jrt_terms *terms, bool held,
                                  uint64_t buffer)
{
    struct jrt_cap_actor        actor = jrt_actor(jrt_worker_self());
    const janus_channel_limits *limits = &scheduler->channel_limits;
    janus_status                status = JANUS_NO_CHANNEL_CAP;
    struct jrt_terms           *full = terms;
    uint64_t                    used = 0, limit = 0;
    if (held && buffer > limits->max_buffer_size) {
        status = JANUS_CAP_LIMIT;
        used = buffer;
        limit = limits->max_buffer_size;
    } else if (held) {
        status = terms != scheduler->counter
                     ? take_pools(terms, limits->max_channels, &full)
                     : jrt_cap_take_channel(&terms->use, limits->max_channels);
        if (status != JANUS_OK) used = limit = limits->max_channels;
    }
    if (status == JANUS_OK) return JANUS_OK;
    (void)jrt_terms_deny(scheduler, &actor, JANUS_CAP_KIND_CHANNEL, JANUS_RIGHT_CHANNEL_CREATE,
                         status);
    if (status == JANUS_CHANNEL_LIMIT) {
        return jrt_trouble_full(status, JRT_TABLE_CHANNELS, full, used, limit);
    }
    return jrt_trouble(status, JANUS_COMPONENT_NONE, used, limit);
}

janus_status jrt_terms_channel(const struct jrt_task *task, uint64_t buffer, struct jrt_terms **out)
{
    janus_scheduler  *scheduler = task->nursery->scheduler;
    struct jrt_terms *terms = jrt_terms_here(task);
    janus_status      status;
    if (terms != NULL && terms->held[JANUS_CAP_KIND_CHANNEL].holder != 0) {
        status = take(scheduler, terms, buffer);
    } else {
        uint32_t implicit = terms != NULL ? terms->implicit : scheduler->implicit;
        if (!any_counts(terms)) terms = scheduler->counter;
        status = take_implicit(scheduler, terms, (implicit & bit) != 0, buffer);
    }
    if (status != JANUS_OK) return jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    jrt_fetch_add_relaxed(&terms->refs, 1u); /* relaxed: it is alive. */
    *out = terms;
    return JANUS_OK;
}

void jrt_terms_channel_gone(struct jrt_terms *terms)
{
    if (terms->held[JANUS_CAP_KIND_CHANNEL].holder != 0) {
        give_up_to(terms, NULL);
    } else if (any_counts(terms)) {
        give_pools_up_to(terms, NULL);
    } else {
        jrt_debug_invariant("channel-pool", terms->outer == NULL && terms->of == NULL);
        jrt_cap_give_channel(&terms->use); /* the scheduler's counter */
    }
    jrt_terms_put(terms);
}

struct jrt_terms *jrt_terms_around(const struct jrt_task *task)
{
    struct jrt_terms         *terms = task->nursery->terms;
    const struct jrt_nursery *n = task->innermost;
    /* The terms of the task's own nurseries do not restrict it, except in a scope. */
    while (n != NULL && (n->terms == NULL || !n->terms->scope)) n = jrt_nursery_outer(n);
    if (n != NULL) {
        terms = n->terms;
    } else if (task->purse != NULL && task->purse->terms != NULL) {
        terms = task->purse->terms;
    }
    return terms != task->nursery->scheduler->terms ? terms : NULL;
}

static struct jrt_audit_writer *writer_of(const janus_scheduler *scheduler, struct jrt_terms *terms)
{
    while (terms->outer != NULL && terms->outer != scheduler->terms) terms = terms->outer;
    /* acquire: what its maker wrote. */
    struct jrt_audit_writer *writer = jrt_load_acquire(&terms->audit), *made;
    if (jrt_likely(writer != NULL)) return writer;
    made = jrt_audit_party_open(scheduler->audit,
                                terms->of != NULL ? jrt_nursery_name(terms->of) : "");
    /* acq_rel: as above, in both directions. */
    if (jrt_cas_acq_rel(&terms->audit, &writer, made)) return made;
    jrt_audit_party_close(made);
    return writer;
}

struct jrt_audit_writer *jrt_terms_writer(const struct jrt_task   *task,
                                          struct jrt_audit_writer *otherwise)
{
    struct jrt_terms *terms = jrt_terms_around(task);
    return terms != NULL ? writer_of(task->nursery->scheduler, terms) : otherwise;
}

void jrt_terms_over(janus_scheduler *scheduler, struct jrt_terms *terms)
{
    struct jrt_cap_actor actor = {.holder = 0};
    if (jrt_unlikely(terms->derived.used)) { /* no task derives any more, [quota-gone] */
        if (scheduler->audit != NULL) actor.writer = writer_of(scheduler, terms);
        jrt_cap_quota_end(scheduler->caps, &terms->derived, &actor);
    }
    struct jrt_audit_writer *writer = jrt_load_acquire(&terms->audit); /* acquire: as above. */
    if (jrt_likely(writer == NULL)) return;
    jrt_store_relaxed(&terms->audit, NULL); /* relaxed: nobody else reads it any more. */
    jrt_audit_party_close(writer);
}

/* The terms that have a share of helper threads for the task. NULL: none has. */
static struct jrt_terms *sharing(const struct jrt_task *task)
{
    enum { PARTIES_MAX = 16 }; /* nested terms with a share each; searches recurse */
    struct jrt_terms *terms = jrt_terms_around(task);
    while (terms != NULL && terms->depth >= PARTIES_MAX) terms = terms->outer;
    return terms != task->nursery->scheduler->terms ? terms : NULL;
}

struct jrt_blocking_party *jrt_terms_blocking(const struct jrt_task *task)
{
    struct jrt_terms *terms = sharing(task);
    return terms != NULL ? &terms->blocking : NULL;
}

struct jrt_terms *jrt_terms_names(const struct jrt_task *task)
{
    struct jrt_terms *terms = sharing(task);
    if (terms == NULL) terms = task->nursery->scheduler->counter;
    jrt_fetch_add_relaxed(&terms->refs, 1u); /* relaxed: it is alive. */
    return terms;
}

janus_status jrt_terms_blocking_refused(janus_scheduler               *scheduler,
                                        const struct jrt_blocking_job *job, janus_status status)
{
    const struct jrt_blocking_party *party = job->full;
    if (party == NULL) return jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    bool everybody = party == &scheduler->blocking.all;
    return jrt_trouble_full(status, JRT_TABLE_BLOCKING,
                            everybody ? NULL : jrt_list_entry(party, struct jrt_terms, blocking),
                            job->waiting, scheduler->blocking.queue_max);
}

/* Common tables, [common-share]. */

/* Returns one entry in the pools below `end`; NULL: in all. */
static void give_common(struct jrt_terms *terms, const struct jrt_terms *end, enum jrt_common table)
{
    for (; terms != end; terms = terms->outer) {
        if (terms->owns_account) jrt_cap_give(&terms->common[table]);
    }
}

bool jrt_common_take(struct jrt_terms *terms, enum jrt_common table, uint64_t entries,
                     struct jrt_terms **out_full)
{
    for (struct jrt_terms *at = terms; at != NULL; at = at->outer) {
        if (!at->owns_account) continue;
        bool taken = jrt_cap_take(&at->common[table], entries / 4);
        /* relaxed: only the number counts. */
        jrt_debug_invariant("common-share", jrt_load_relaxed(&at->common[table]) <= entries / 4);
        if (taken) continue;
        give_common(terms, at, table);
        *out_full = at;
        return false;
    }
    return true;
}

void jrt_common_give(struct jrt_terms *terms, enum jrt_common table)
{
    give_common(terms, NULL, table);
}

/* SPDX-License-Identifier: MIT */
/*
 * Channels under terms: as terms.c says of tasks, a channel counts for the terms whose channel
 * capability it was made under and for all around those that hold one themselves; where none is
 * held, against the scheduler's limit. It may outlive the nursery, so it keeps the terms.
 */
#include "task/terms.h"
#include "task/trouble.h"

static const uint32_t bit = 1u << JANUS_CAP_CHANNEL;

/* Below `end`; NULL: in all. */
static void give_up_to(struct jrt_terms *terms, const struct jrt_terms *end)
{
    for (; terms != end; terms = terms->outer) {
        if ((terms->bound & bit) != 0) jrt_cap_give_channel(&terms->use);
    }
}

/* In all terms that count it; on any error in none. */
static janus_status take(janus_scheduler *scheduler, struct jrt_terms *terms, uint64_t buffer)
{
    struct jrt_cap_actor actor = jrt_actor(jrt_worker_self());
    for (struct jrt_terms *at = terms; at != NULL; at = at->outer) {
        if ((at->bound & bit) == 0) continue;
        const struct jrt_held *held = &at->held[JANUS_CAP_CHANNEL];
        actor.holder = held->holder;
        janus_status status =
            jrt_cap_gate_channel(scheduler->caps, held->cap, &actor, &at->use, buffer);
        if (status == JANUS_OK) continue;
        give_up_to(terms, at);
        return status;
    }
    return JANUS_OK;
}

static janus_status take_implicit(janus_scheduler *scheduler, bool held, uint64_t buffer)
{
    struct jrt_cap_actor        actor = jrt_actor(jrt_worker_self());
    const janus_channel_limits *limits = &scheduler->channel_limits;
    janus_status                status = JANUS_NO_CHANNEL_CAP;
    uint64_t                    used = 0, limit = 0;
    if (held && buffer > limits->max_buffer_size) {
        status = JANUS_CAP_LIMIT;
        used = buffer;
        limit = limits->max_buffer_size;
    } else if (held) {
        status = jrt_cap_take_channel(&scheduler->counter->use, limits->max_channels);
    }
    if (status == JANUS_OK) return JANUS_OK;
    (void)jrt_terms_deny(scheduler, &actor, JANUS_CAP_CHANNEL, JANUS_RIGHT_CHANNEL_CREATE, status);
    return jrt_trouble(status, JANUS_COMPONENT_NONE, used, limit);
}

janus_status jrt_terms_channel(const struct jrt_task *task, uint64_t buffer, struct jrt_terms **out)
{
    janus_scheduler  *scheduler = task->nursery->scheduler;
    struct jrt_terms *terms = jrt_terms_here(task);
    janus_status      status;
    if (terms != NULL && terms->held[JANUS_CAP_CHANNEL].holder != 0) {
        status = take(scheduler, terms, buffer);
    } else {
        uint32_t implicit = terms != NULL ? terms->implicit : scheduler->implicit;
        status = take_implicit(scheduler, (implicit & bit) != 0, buffer);
        terms = scheduler->counter;
    }
    if (status != JANUS_OK) return jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    jrt_fetch_add_relaxed(&terms->refs, 1u); /* relaxed: it is alive. */
    *out = terms;
    return JANUS_OK;
}

void jrt_terms_channel_gone(struct jrt_terms *terms)
{
    if (terms->held[JANUS_CAP_CHANNEL].holder != 0) {
        give_up_to(terms, NULL);
    } else {
        jrt_cap_give_channel(&terms->use); /* the scheduler's counter */
    }
    jrt_terms_put(terms);
}

janus_status jrt_terms_buffer(janus_scheduler *scheduler, uint64_t bytes, struct jrt_terms **out)
{
    struct jrt_terms *counter = scheduler->counter;
    uint64_t          most = scheduler->adrift_max; /* as for other memory that is nobody's */
    /* relaxed, all: only the numbers count. */
    uint64_t before = jrt_fetch_add_relaxed(&counter->bytes, bytes);
    if (before + bytes > most) {
        jrt_fetch_sub_relaxed(&counter->bytes, bytes); /* relaxed: as above. */
        return jrt_trouble(JANUS_BUDGET_EXHAUSTED, JANUS_COMPONENT_MEMORY, before, most);
    }
    jrt_fetch_add_relaxed(&counter->refs, 1u); /* relaxed: it is alive. */
    *out = counter;
    return JANUS_OK;
}

void jrt_terms_buffer_gone(struct jrt_terms *counter, uint64_t bytes)
{
    jrt_fetch_sub_relaxed(&counter->bytes, bytes); /* relaxed: as above. */
    jrt_terms_put(counter);
}

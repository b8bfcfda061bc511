/* SPDX-License-Identifier: MIT */
/*
 * A scheduler's own means: the implicit budget, the limit of implicit tasks, the table of
 * capabilities, and the bank that explicit budgets come from. So is the table of names.
 *
 * [bank-balance]  When a scheduler is closed, no share and no pool is open. Every unit that was
 *   ever made is spent, or is back in the bank.
 */
#include "means/implicit.h"

#include "host/file.h"
#include "means/terms.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdlib.h>

/* What a worker has where there is no limit; sums of shares stay below JRT_LIMIT_PLENTY. */
static const int64_t share = (int64_t)1 << 40;

/* The bound on ledgers where a profile gives nothing implicitly. */
#define UNOWNED_LEAST (UINT64_C(64) << 20)

bool jrt_implicit_sane(const janus_scheduler_options *options)
{
    const janus_limits *limits = janus_profile_limits(options->profile);
    bool                interval = options->yield_interval != 0 || limits->yield_interval != 0;
    return interval && (unsigned)options->exhaustion <= JANUS_EXHAUSTION_END;
}

static janus_exhaustion policy_of(janus_profile profile)
{
    if (profile == JANUS_PROFILE_CLUSTER) return JANUS_EXHAUSTION_SUPERVISE;
    if (profile == JANUS_PROFILE_SOVEREIGN) return JANUS_EXHAUSTION_MANUAL;
    return JANUS_EXHAUSTION_AUTO;
}

static void set_limits(janus_scheduler *scheduler, const janus_scheduler_options *options)
{
    const janus_cap_defaults *defaults = janus_profile_cap_defaults(options->profile);
    uint64_t max = options->max_tasks != 0 ? options->max_tasks : defaults->spawn.max_tasks;
    scheduler->implicit = defaults->kinds;
    scheduler->supervisors = defaults->supervisor_recharge;
    scheduler->backends = defaults->executor.allowed_backends;
    scheduler->channel_limits = defaults->channel;
    if (options->max_channels != 0) {
        scheduler->channel_limits.max_channels = options->max_channels;
    }
    if (options->max_channel_values != 0) {
        scheduler->channel_limits.max_buffer_size = options->max_channel_values;
    }
    const janus_cap_defaults *most = janus_profile_cap_defaults(JANUS_PROFILE_SERVICE);
    uint64_t                  handles = options->max_handles, processes = options->max_processes;
    scheduler->max_handles = handles != 0 ? handles : most->net.max_handles;
    scheduler->pool_handles = scheduler->max_handles;
    if (handles == 0 && jrt_world_now() == NULL) { /* [handle-share] */
        uint64_t quarter = jrt_descriptors_max() / 4;
        if (quarter < scheduler->pool_handles) scheduler->pool_handles = quarter;
    }
    scheduler->max_processes = processes != 0 ? processes : most->process.max_processes;
    scheduler->task_budget = defaults->spawn.task_budget;
    scheduler->max_budget = janus_budget_limits_to_budget(&defaults->budget);
    if (options->task_budget != NULL) scheduler->task_budget = *options->task_budget;
    if (options->max_budget != NULL) scheduler->max_budget = *options->max_budget;
    scheduler->exhaustion = (uint8_t)options->exhaustion;
    if (options->exhaustion == 0) scheduler->exhaustion = (uint8_t)policy_of(options->profile);
    scheduler->yield_interval =
        janus_profile_yield_interval(options->profile, options->yield_interval);
    if (max == 0) max = JANUS_UNLIMITED; /* no task starts without a capability */
    scheduler->limit.max = max < (uint64_t)JRT_LIMIT_PLENTY ? (int64_t)max : JRT_LIMIT_PLENTY;
    scheduler->limit.central = scheduler->limit.max;
    scheduler->unowned_max = janus_units_times(scheduler->task_budget.memory, max);
    if (scheduler->unowned_max < UNOWNED_LEAST) scheduler->unowned_max = UNOWNED_LEAST;
    scheduler->audit = options->audit;
    scheduler->derived_max = options->max_derived_caps;
}

static struct jrt_terms *make_terms(const janus_scheduler *scheduler)
{
    struct jrt_terms *terms = jrt_calloc(1, sizeof *terms);
    if (terms == NULL) return NULL;
    jrt_store_relaxed(&terms->refs, 1u); /* relaxed: nobody knows it yet. */
    terms->task_budget = scheduler->task_budget;
    terms->exhaustion = scheduler->exhaustion;
    terms->backend = JANUS_BACKEND_COOPERATIVE;
    return terms;
}

/* In :sovereign nothing is implicit, so root nurseries are on terms that hold nothing. */
static bool set_terms(janus_scheduler *scheduler)
{
    bool implicit = (scheduler->implicit & 1u << JANUS_CAP_KIND_SPAWN) != 0;
    scheduler->counter = make_terms(scheduler);
    if (!implicit) scheduler->terms = make_terms(scheduler);
    return scheduler->counter != NULL && (implicit || scheduler->terms != NULL);
}

janus_status jrt_implicit_open(janus_scheduler *scheduler, const janus_scheduler_options *options)
{
    const janus_cap_table_options table = {
        .struct_bytes = sizeof table, .profile = options->profile, .audit = options->audit};
    set_limits(scheduler, options);
    if (!jrt_names_init(&scheduler->names)) return JANUS_UNAVAILABLE;
    pthread_mutex_init(&scheduler->limit.lock, NULL);
    jrt_heap_depot_init(&scheduler->heaps, (size_t)64 << 20);
    jrt_account_open_bank(&scheduler->bank);
    scheduler->implicit_open = true;
    if (!set_terms(scheduler)) return JANUS_NO_MEMORY;
    return jrt_cap_table_create(&table, &scheduler->caps, &scheduler->authority);
}

bool jrt_implicit_open_worker(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    worker->slice = jrt_first_slice(scheduler);
    if (scheduler->limit.max == JRT_LIMIT_PLENTY && worker->seat == NULL) {
        jrt_store_relaxed(&worker->quota.base, share); /* relaxed: nobody knows it yet. */
        scheduler->limit.central -= share;
    }
    if (scheduler->audit == NULL) return true;
    return jrt_audit_writer_open(scheduler->audit, &worker->audit) == JANUS_OK;
}

/* Debug builds and explored runs check that the books balance, [bank-balance]. */
static void audit_bank(janus_scheduler *scheduler)
{
    struct jrt_account_fault fault;
    struct jrt_account_books books;
    if (!JRT_DEBUG && (jrt_world_now() == NULL || !jrt_world_now()->audits)) return;
    jrt_invariant("bank-balance", jrt_account_check(&scheduler->bank, &fault));
    jrt_account_read(&scheduler->bank, &books);
    jrt_invariant("bank-balance", janus_budget_is_zero(books.shares));
    jrt_invariant("bank-balance", janus_budget_is_zero(books.nested));
}

void jrt_implicit_close(janus_scheduler *scheduler)
{
    if (!scheduler->implicit_open) return;
    audit_bank(scheduler);
    if (scheduler->caps != NULL) jrt_cap_table_destroy(scheduler->caps);
    jrt_account_close(&scheduler->bank);
    jrt_account_fini(&scheduler->bank);
    jrt_terms_put(scheduler->terms);
    jrt_terms_put(scheduler->counter);
    jrt_heap_depot_fini(&scheduler->heaps);
    jrt_names_fini(&scheduler->names);
    pthread_mutex_destroy(&scheduler->limit.lock);
}

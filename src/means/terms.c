/* SPDX-License-Identifier: MIT */
/*
 * Terms.
 *
 * [terms-narrow]  Terms lie within terms: those of a nursery within those of the nursery, or the
 *   task, around it. Options that are not given are inherited. Options that are given can only be
 *   narrower. The exception: if nothing is held around it, the capability that the opener shows is
 *   all the authority there is.
 *
 * [terms-count]  A task counts for the terms whose spawn capability it was started under, and for
 *   all terms around those that hold one themselves. A sandbox of ten tasks inside a limit of
 *   fifty takes ten of the fifty. Tasks that were started without a capability count against the
 *   scheduler's limit (limit.c). Channels count in the same way, with channel capabilities
 *   (channels.c). A nursery's terms outlive its children. Channels may outlive the nursery, so they
 *   keep the terms, and terms keep the terms around them.
 *
 * [terms-place]  A task takes a place in each nursery around it that has max_tasks.
 *
 * [terms-inside]  A task spawns only where all its own restrictions hold. These are those of its
 *   spawn, of the nurseries around it, and of a scope that it is in. Every capability restricts,
 *   and so does a pool. A blocking call is restricted like its task. While a task is in a scope,
 *   its nurseries around the scope are marked (`beyond`). Its spawns there take the slow path,
 *   which asks.
 *
 * [terms-energy]  This rule says where shares come from.
 *   - A nursery's own pool is carved from the pool around it. Without a pool around, the
 *     scheduler's bank makes a new one, as far as the budget capability allows.
 *   - Without a pool, a child that was started under a capability gets that capability's
 *     task_budget, in units of the bank.
 *   - Both are explicit: finite, and in books that balance. Only an unlimited component is in no
 *     books.
 *   - Without either, a child has the scheduler's implicit budget, which replenishes and is in no
 *     books.
 *
 * Terms change only while they are made. The counters in them are atomic, and the account has a
 * lock.
 */
#include "means/terms.h"

#include "means/ledger.h"
#include "means/purse.h"
#include "means/trouble.h"
#include "means/ward.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/poll.h"
#include "work/turn.h"

#include <stdlib.h>
#include <string.h>

static bool is_null(janus_cap cap) { return (cap.slot | cap.generation | cap.nonce) == 0; }

static bool none_given(const struct jrt_caps *caps)
{
    for (unsigned kind = 1; kind < JRT_KINDS; kind++) {
        if (!is_null(caps->of[kind])) return false;
    }
    return true;
}

static struct jrt_caps caps_of(const janus_nursery_options *options)
{
    return (struct jrt_caps){{[JANUS_CAP_KIND_SPAWN] = options->spawn_cap,
                              [JANUS_CAP_KIND_BUDGET] = options->budget_cap,
                              [JANUS_CAP_KIND_CHANNEL] = options->channel_cap,
                              [JANUS_CAP_KIND_EXECUTOR] = options->executor_cap,
                              [JANUS_CAP_KIND_NET] = options->net_cap,
                              [JANUS_CAP_KIND_FILE] = options->file_cap,
                              [JANUS_CAP_KIND_PROCESS] = options->process_cap,
                              [JANUS_CAP_KIND_NAME] = options->name_cap}};
}

bool jrt_terms_wanted(const janus_nursery_options *options)
{
    struct jrt_caps caps = caps_of(options);
    return options->budget != NULL || options->exhaustion != 0 || options->on_exhausted != NULL ||
           options->scope || options->backend != 0 || options->max_threads != 0 ||
           options->max_tasks != 0 || options->max_handles != 0 || !none_given(&caps);
}

struct jrt_terms *jrt_terms_here(const struct jrt_task *task)
{
    if (task->innermost != NULL) return task->innermost->terms;
    if (task->purse != NULL && task->purse->terms != NULL) return task->purse->terms;
    return task->nursery->terms;
}

/* Initialises terms with what holds where no option is given. */
static void begin(struct jrt_terms *terms, janus_scheduler *scheduler, struct jrt_terms *outer)
{
    memset(terms, 0, sizeof *terms);
    jrt_store_relaxed(&terms->refs, 1u); /* relaxed: nobody knows it yet. */
    terms->outer = outer;
    terms->derived.max = scheduler->derived_max;
    if (outer != NULL) jrt_fetch_add_relaxed(&outer->refs, 1u); /* relaxed: it is alive. */
    if (outer == NULL) {
        terms->implicit = scheduler->implicit;
        terms->task_budget = scheduler->task_budget;
        terms->exhaustion = scheduler->exhaustion;
        terms->backend = JANUS_BACKEND_COOPERATIVE;
        return;
    }
    terms->depth = outer->depth + 1;
    if (outer != scheduler->terms) {
        terms->blocking.outer = &outer->blocking;
        terms->names.outer = &outer->names;
        terms->derived.outer = &outer->derived;
    }
    memcpy(terms->held, outer->held, sizeof terms->held);
    terms->implicit = outer->implicit;
    terms->task_budget = outer->task_budget;
    terms->account = outer->account;
    terms->exhaustion = outer->exhaustion;
    terms->draws_none = outer->draws_none;
    terms->backend = outer->backend;
    terms->on_exhausted = outer->on_exhausted;
    terms->argument = outer->argument;
    terms->counts = outer->counts;
    terms->places = outer->places;
}

/* Whether the capability held around allows all these rights and limits. */
static bool is_within(const janus_cap_table *table, const struct jrt_held *held,
                      janus_cap_kind kind, uint32_t rights, const janus_cap_limits *limits)
{
    janus_cap_limits    around;
    struct jrt_cap_view view = jrt_cap_look(table, held->cap, &around);
    return jrt_cap_view_allows(&view, held->cap, kind, rights, held->holder) &&
           jrt_cap_limits_within(kind, limits, &around);
}

/* Binds one of the caller's capabilities, [terms-narrow]. */
static janus_status bind(struct jrt_terms *terms, janus_scheduler *scheduler, janus_cap_kind kind,
                         janus_cap cap, const struct jrt_cap_actor *actor)
{
    janus_cap_table    *table = scheduler->caps;
    janus_cap_limits    limits;
    struct jrt_cap_view view = jrt_cap_look(table, cap, &limits);
    janus_status        status = JANUS_OK;
    if (!jrt_cap_view_allows(&view, cap, kind, 0, actor->holder)) {
        status = jrt_cap_refuse(table, cap, view, kind, 0, actor->holder);
    } else if (terms->held[kind].holder != 0 &&
               !is_within(table, &terms->held[kind], kind, (uint32_t)view.scope, &limits)) {
        jrt_cap_count(table, JRT_CAP_REFUSED_WIDENS);
        status = JANUS_CAP_WIDENS;
    }
    if (status != JANUS_OK) return jrt_cap_deny(table, actor, cap, kind, 0, status);
    status = jrt_cap_used(table, cap, kind, 0, actor);
    if (status != JANUS_OK) return status;
    terms->held[kind] = (struct jrt_held){cap, actor->holder};
    terms->implicit &= ~(1u << kind);
    terms->bound |= 1u << kind;
    if (kind == JANUS_CAP_KIND_SPAWN) terms->task_budget = limits.spawn.task_budget;
    if (jrt_cap_counts_handles(kind)) {
        terms->handles_max[jrt_cap_handle_index(kind)] = jrt_cap_handles_max(kind, &limits);
    }
    if (kind == JANUS_CAP_KIND_FILE) terms->written_max = limits.file.max_written;
    return JANUS_OK;
}

static janus_status bind_all(struct jrt_terms *terms, janus_scheduler *scheduler,
                             const struct jrt_caps *caps)
{
    struct jrt_cap_actor actor = jrt_actor_in(scheduler, jrt_worker_self());
    for (unsigned kind = 1; kind < JRT_KINDS; kind++) {
        if (is_null(caps->of[kind])) continue;
        janus_status status = bind(terms, scheduler, (janus_cap_kind)kind, caps->of[kind], &actor);
        if (status != JANUS_OK) return status;
    }
    return JANUS_OK;
}

/* Budgets. */

janus_status jrt_terms_request(janus_scheduler *scheduler, const struct jrt_terms *terms,
                               uint32_t right, const janus_budget *amount, janus_budget *out)
{
    const struct jrt_worker *worker = jrt_worker_self();
    const uint32_t           bit = 1u << JANUS_CAP_KIND_BUDGET;
    if (terms != NULL && terms->held[JANUS_CAP_KIND_BUDGET].holder != 0) {
        const struct jrt_held *held = &terms->held[JANUS_CAP_KIND_BUDGET];
        struct jrt_cap_actor   actor = jrt_actor_in(scheduler, worker);
        actor.holder = held->holder;
        return jrt_cap_gate_budget(scheduler->caps, held->cap, &actor, right, amount, out);
    }
    if (((terms != NULL ? terms->implicit : scheduler->implicit) & bit) == 0) {
        struct jrt_cap_actor actor = jrt_actor_in(scheduler, worker);
        return jrt_terms_deny(scheduler, &actor, JANUS_CAP_KIND_BUDGET, right, JANUS_NO_BUDGET_CAP);
    }
    *out = *amount;
    return janus_budget_clamp(out, scheduler->max_budget) ? JANUS_CLAMPED : JANUS_OK;
}

janus_status jrt_terms_budget(const struct jrt_task *task, uint32_t right,
                              const janus_budget *amount, janus_budget *out)
{
    return jrt_terms_request(task->nursery->scheduler, jrt_terms_here(task), right, amount, out);
}

janus_status jrt_terms_transfer(const struct jrt_nursery *n, const janus_budget *amount,
                                janus_budget *out)
{
    return jrt_terms_request(n->scheduler, n->terms, JANUS_RIGHT_BUDGET_TRANSFER, amount, out);
}

janus_status jrt_terms_supervise(const struct jrt_task *task, const janus_cap *cap,
                                 const janus_budget *amount)
{
    janus_scheduler     *scheduler = task->nursery->scheduler;
    struct jrt_cap_actor actor = jrt_actor_in(scheduler, jrt_worker_self());
    janus_budget         granted;
    janus_status         status;
    if (cap != NULL && !is_null(*cap)) {
        status = jrt_cap_gate_budget(scheduler->caps, *cap, &actor, JANUS_RIGHT_BUDGET_TRANSFER,
                                     amount, &granted);
    } else if (jrt_terms_holds(task, JANUS_CAP_KIND_BUDGET) || scheduler->supervisors) {
        status = jrt_terms_budget(task, JANUS_RIGHT_BUDGET_TRANSFER, amount, &granted);
    } else {
        status = jrt_terms_deny(scheduler, &actor, JANUS_CAP_KIND_BUDGET,
                                JANUS_RIGHT_BUDGET_TRANSFER, JANUS_NO_BUDGET_CAP);
    }
    return status == JANUS_CLAMPED ? JANUS_CAP_LIMIT : status;
}

bool jrt_terms_holds(const struct jrt_task *task, janus_cap_kind kind)
{
    const struct jrt_terms *terms = jrt_terms_here(task);
    return terms != NULL && terms->held[kind].holder != 0;
}

janus_budget jrt_share_booked(const janus_budget *share)
{
    janus_budget b = *share;
    uint64_t    *parts[] = {&b.ops, &b.memory, &b.spawn_count, &b.channel_ops, &b.syscalls};
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (*parts[i] == JANUS_UNLIMITED) *parts[i] = 0;
    }
    return b;
}

/* Opens a pool of the terms' own, [terms-energy]. */
__attribute__((noinline)) static janus_status open_pool(struct jrt_terms   *terms,
                                                        janus_scheduler    *scheduler,
                                                        const janus_budget *asked)
{
    janus_budget amount;
    janus_status status =
        jrt_terms_request(scheduler, terms, JANUS_RIGHT_BUDGET_REQUEST, asked, &amount);
    if (status < 0) return status;
    struct jrt_pool_account *parent = terms->account != NULL ? terms->account : &scheduler->bank;
    janus_component          lacks = jrt_account_open(&terms->own, parent, &amount);
    if (lacks != JANUS_COMPONENT_NONE) {
        struct jrt_account_books books;
        jrt_account_read(parent, &books);
        return jrt_trouble(JANUS_BUDGET_EXHAUSTED, lacks,
                           janus_budget_get(&books.granted, lacks) -
                               janus_budget_get(&books.left, lacks),
                           janus_budget_get(&books.granted, lacks));
    }
    terms->account = &terms->own;
    terms->owns_account = true;
    terms->kept_max = amount.memory;
    return JANUS_OK;
}

/* Takes a share of exactly `amount`. Without a pool, the bank makes it. */
static janus_component take_share(struct jrt_terms *terms, janus_scheduler *scheduler,
                                  const janus_budget *amount, struct jrt_admission *out)
{
    bool root = terms->account == NULL;
    *out = (struct jrt_admission){
        .share = *amount, .booked = jrt_share_booked(amount), .account = terms->account};
    if (!root) { /* an unlimited component gets what the pool has left */
        struct jrt_account_books books;
        jrt_account_read(out->account, &books);
#define X(name, field)                                                                             \
    if (amount->field == JANUS_UNLIMITED) out->booked.field = books.left.field;
        JANUS_COMPONENT_MAP(X)
#undef X
        out->share = out->booked;
        return jrt_account_take(out->account, &out->booked);
    }
    out->account = &scheduler->bank;
    return jrt_account_take(out->account, &out->booked);
}

/* Marks the owner's nurseries around n, [terms-inside]. Nurseries around another scope stay
 * marked. */
static void mark_beyond(struct jrt_nursery *n, bool beyond)
{
    for (struct jrt_nursery *at = jrt_nursery_outer(n); at != NULL; at = jrt_nursery_outer(at)) {
        at->beyond = beyond;
        if (at->on_terms && at->terms->of == at && at->terms->scope) return;
    }
}

static uint64_t live_bytes(struct jrt_purse *purse)
{
    jrt_ledger_settle(purse);
    struct jrt_heap_stats stats = {0};
    if (purse->heap != NULL) jrt_heap_read(purse->heap, &stats);
    return stats.live_bytes + purse->held;
}

/* Gives the scope's owner the capability's task_budget until the scope ends. Of memory it gets no
 * more than it has itself, because what it allocates stays. A cancelled or ending task is refused:
 * every scope would be a new life. */
__attribute__((noinline)) static janus_status enter_scope(struct jrt_terms   *terms,
                                                          struct jrt_nursery *n, bool cancelled)
{
    struct jrt_task     *task = n->owner;
    struct jrt_admission admission;
    if (task == NULL || (terms->bound & 1u << JANUS_CAP_KIND_SPAWN) == 0) return JANUS_INVALID;
    if (cancelled || task->ending) return JANUS_CANCELLED;
    struct jrt_purse *aside = jrt_purse_need(task);
    if (aside == NULL) return JANUS_NO_MEMORY;
    struct jrt_purse_rare *rare = NULL;
    if (aside->rare != NULL && (rare = jrt_calloc(1, sizeof *rare)) == NULL) {
        return JANUS_NO_MEMORY;
    }
    if (rare != NULL) rare->recharged = aside->rare->recharged;
    janus_budget amount = terms->task_budget;
    if (amount.memory > aside->left.memory) amount.memory = aside->left.memory;
    if (take_share(terms, n->scheduler, &amount, &admission) != JANUS_COMPONENT_NONE) {
        free(rare);
        return JANUS_BUDGET_EXHAUSTED;
    }
    struct jrt_purse *purse = jrt_purse_make(task, &admission);
    if (purse == NULL) {
        free(rare);
        jrt_admission_return(&admission);
        return JANUS_NO_MEMORY;
    }
    purse->rare = rare;
    terms->scope = true;
    terms->aside = aside;
    terms->aside_fuel = jrt_fuel_get();
    terms->aside_live = live_bytes(aside);
    purse->heap = aside->heap; /* its blocks stay when the scope ends */
    purse->ledger = aside->ledger;
    purse->held = aside->held;
    aside->ledger = NULL;
    aside->held = 0;
    purse->seat = aside->seat;
    purse->cleaning = aside->cleaning;
    jrt_purse_carry(aside, purse);
    mark_beyond(n, true);
    jrt_fuel_set(jrt_purse_first_fuel(jrt_worker_self(), task));
    return JANUS_OK;
}

static void leave_scope(struct jrt_terms *terms, struct jrt_nursery *n)
{
    struct jrt_task  *task = n->owner;
    struct jrt_purse *purse = task->purse;
    uint64_t          live = live_bytes(purse), was = terms->aside_live;
    /* The owner pays for the scope's memory that it keeps, and gets back what it freed of its
     * own. */
    uint64_t      more = live > was ? live - was : 0, less = live > was ? 0 : was - live;
    janus_budget *mine = &terms->aside->left, *its = &purse->left;
    mine->memory =
        janus_units_add(mine->memory - (more < mine->memory ? more : mine->memory), less);
    its->memory = janus_units_add(its->memory - (less < its->memory ? less : its->memory), more);
    mark_beyond(n, false);
    jrt_purse_carry(purse, terms->aside);
    terms->aside->heap = purse->heap;
    purse->heap = NULL;
    terms->aside->ledger = purse->ledger;
    terms->aside->held = purse->held;
    purse->ledger = NULL;
    purse->held = 0;
    terms->aside->cleaning |= purse->cleaning;
    terms->aside->dismissed |= purse->dismissed;
    jrt_purse_close_scope(jrt_worker_self(), task, terms->aside);
    jrt_fuel_set(terms->aside_fuel);
}

/* Opening and closing. */

/* Whether the holder may choose, or configure, a backend. */
static janus_status may_use(const struct jrt_terms *terms, janus_scheduler *scheduler,
                            janus_backend backend, uint32_t right)
{
    const struct jrt_worker *worker = jrt_worker_self();
    const struct jrt_held   *held = &terms->held[JANUS_CAP_KIND_EXECUTOR];
    struct jrt_cap_actor     actor = jrt_actor_in(scheduler, worker);
    janus_status             status = JANUS_OK;
    if (held->holder != 0) {
        actor.holder = held->holder;
        return jrt_cap_gate_backend(scheduler->caps, held->cap, &actor, right, backend);
    }
    if ((terms->implicit & 1u << JANUS_CAP_KIND_EXECUTOR) == 0)
        status = JANUS_NO_EXECUTOR_CAP;
    else if ((scheduler->backends & JANUS_BACKEND_SET(backend)) == 0)
        status = JANUS_CAP_LIMIT;
    if (status == JANUS_OK) return JANUS_OK;
    return jrt_terms_deny(scheduler, &actor, JANUS_CAP_KIND_EXECUTOR, right, status);
}

static janus_status choose_backend(struct jrt_terms *terms, janus_scheduler *scheduler,
                                   uint64_t set)
{
    if ((set & (set - 1)) != 0 || set >= JANUS_BACKEND_SET(JANUS_BACKEND_COUNT))
        return JANUS_INVALID;
    janus_backend backend = (janus_backend)__builtin_ctzll(set);
    janus_status  status = may_use(terms, scheduler, backend, JANUS_RIGHT_EXECUTOR_SELECT);
    if (status == JANUS_OK && backend == JANUS_BACKEND_EVENTED) {
        status = jrt_poll_promise(scheduler);
    }
    if (status != JANUS_OK) return status;
    terms->backend = (uint8_t)backend;
    return JANUS_OK;
}

/* Sets the terms' own limit of threads. The limits around it hold as well. */
static janus_status set_threads(struct jrt_terms *terms, janus_scheduler *scheduler, uint32_t max)
{
    const janus_backend backend = JANUS_BACKEND_THREADED;
    if (terms->backend != backend) return JANUS_INVALID;
    janus_status status = may_use(terms, scheduler, backend, JANUS_RIGHT_EXECUTOR_CONFIGURE);
    if (status == JANUS_OK) terms->max_threads = max;
    return status;
}

/* Whether the supervisor of a pool would not be asked. END asks nobody, as AUTO. */
static bool asks_less(janus_exhaustion policy, unsigned around)
{
    unsigned asks = policy == JANUS_EXHAUSTION_END ? JANUS_EXHAUSTION_AUTO : (unsigned)policy;
    return asks < (around == JANUS_EXHAUSTION_END ? JANUS_EXHAUSTION_AUTO : around);
}

/* Calls that few options need are not inlined: their frames would cost a page of the stack. */
static janus_status fill_in(struct jrt_terms *terms, struct jrt_nursery *n,
                            const janus_nursery_options *options, bool cancelled)
{
    struct jrt_caps caps = caps_of(options);
    janus_status    status = bind_all(terms, n->scheduler, &caps);
    if (status != JANUS_OK) return status;
    bool shares_pool = terms->account != NULL && options->budget == NULL;
    bool ends = options->exhaustion == JANUS_EXHAUSTION_END;
    if (options->exhaustion != 0 && asks_less(options->exhaustion, terms->exhaustion)) {
        if (shares_pool && !ends) return JANUS_CAP_WIDENS;
        terms->draws_none |= shares_pool;
    }
    terms->draws_none &= shares_pool;
    if (options->exhaustion != 0) {
        terms->exhaustion = (uint8_t)options->exhaustion;
        terms->on_exhausted = NULL;
    }
    if (options->on_exhausted != NULL) {
        terms->on_exhausted = options->on_exhausted;
        terms->argument = options->on_exhausted_argument;
    }
    terms->counts |= (terms->max_tasks = options->max_tasks) != 0;
    terms->places |= (terms->max_handles = options->max_handles) != 0;
    if (options->backend != 0) status = choose_backend(terms, n->scheduler, options->backend);
    if (status == JANUS_OK && options->max_threads != 0) {
        status = set_threads(terms, n->scheduler, options->max_threads);
    }
    if (status == JANUS_OK && options->budget != NULL) {
        bool hard = n->owner != NULL && n->owner->purse != NULL && n->owner->purse->hard;
        bool held = terms->account != NULL || terms->held[JANUS_CAP_KIND_BUDGET].holder != 0;
        if (hard && !held) { /* the profile's capability enlarges no explicit budget */
            struct jrt_cap_actor actor = jrt_actor_in(n->scheduler, jrt_worker_self());
            return jrt_terms_deny(n->scheduler, &actor, JANUS_CAP_KIND_BUDGET,
                                  JANUS_RIGHT_BUDGET_REQUEST, JANUS_NO_BUDGET_CAP);
        }
        status = open_pool(terms, n->scheduler, options->budget);
    }
    if (status == JANUS_OK && options->scope) status = enter_scope(terms, n, cancelled);
    return status;
}

/* Checks the right to open a nursery, where a capability is held. */
static janus_status may_open(const struct jrt_terms *terms, janus_scheduler *scheduler)
{
    const struct jrt_held *held = &terms->held[JANUS_CAP_KIND_SPAWN];
    struct jrt_cap_actor   actor = jrt_actor_in(scheduler, jrt_worker_self());
    if (held->holder == 0) return JANUS_OK; /* only implicit children, or none, can start in it */
    actor.holder = held->holder;
    return jrt_cap_use_right(scheduler->caps, held->cap, JANUS_CAP_KIND_SPAWN,
                             JANUS_RIGHT_SPAWN_NURSERY, &actor, NULL);
}

janus_status jrt_terms_inherit(struct jrt_nursery *n)
{
    return jrt_trouble(may_open(n->terms, n->scheduler), JANUS_COMPONENT_NONE, 0, 0);
}

void jrt_terms_put(struct jrt_terms *terms)
{
    /* acq_rel: what others did with it comes before its end. */
    while (terms != NULL && jrt_fetch_sub_acq_rel(&terms->refs, 1u) == 1) {
        struct jrt_terms *outer = terms->outer;
        free(terms);
        terms = outer;
    }
}

/* A task may have this many nurseries with terms open at no cost, so that a task without memory can
 * have them, too. */
enum { TERMS_UNPAID = 16 };

static janus_status charge_terms(struct jrt_task *owner, struct jrt_ledger **payer, bool *unpaid)
{
    struct jrt_purse *purse = owner != NULL ? jrt_purse_need(owner) : NULL;
    *payer = NULL;
    *unpaid = purse != NULL && purse->unpaid < TERMS_UNPAID;
    if (owner == NULL) return JANUS_OK;
    if (purse == NULL) return JANUS_NO_MEMORY;
    if (!*unpaid) return jrt_ledger_charge(sizeof(struct jrt_terms), payer);
    purse->unpaid++;
    return JANUS_OK;
}

static void drop(struct jrt_terms *terms, struct jrt_task *owner)
{
    struct jrt_ledger *payer = terms->payer;
    if (terms->unpaid) owner->purse->unpaid--;
    if (terms->owns_account) {
        jrt_account_close(&terms->own);
        jrt_account_fini(&terms->own);
    }
    jrt_terms_put(terms);
    jrt_ledger_refund(payer, sizeof *terms);
}

/* Whether nothing is implicit that was shown here, or that is not implicit around. */
static bool is_narrower(const struct jrt_terms *terms)
{
    uint32_t around = terms->outer != NULL ? terms->outer->implicit : terms->implicit;
    return (terms->implicit & (terms->bound | ~around)) == 0;
}

janus_status jrt_terms_open(struct jrt_nursery *n, const janus_nursery_options *options,
                            bool cancelled)
{
    if ((unsigned)options->exhaustion > JANUS_EXHAUSTION_END) return JANUS_INVALID;
    struct jrt_terms *terms = jrt_malloc(sizeof *terms);
    if (terms == NULL) return JANUS_NO_MEMORY;
    struct jrt_ledger *payer;
    bool               unpaid;
    janus_status       status = charge_terms(n->owner, &payer, &unpaid);
    if (status != JANUS_OK) {
        free(terms);
        return status;
    }
    jrt_turn_toll(jrt_worker_self(), JRT_TOLL_TERMS);
    begin(terms, n->scheduler, n->terms);
    terms->payer = payer;
    terms->unpaid = unpaid;
    status = fill_in(terms, n, options, cancelled);
    if (status == JANUS_OK) {
        janus_status may = may_open(terms, n->scheduler);
        if (may != JANUS_OK && terms->scope) leave_scope(terms, n);
        if (may != JANUS_OK) status = may;
    }
    if (status != JANUS_OK) {
        drop(terms, n->owner);
        return jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    }
    jrt_debug_invariant("terms-narrow", is_narrower(terms));
    terms->of = n;
    n->terms = terms;
    return JANUS_OK;
}

void jrt_terms_close(struct jrt_nursery *n)
{
    struct jrt_terms *terms = n->terms;
    if (terms->of != n) return; /* inherited from around n */
    if (terms->scope) leave_scope(terms, n);
    jrt_wards_end_terms(terms);
    jrt_terms_over(n->scheduler, terms);
    drop(terms, n->owner);
}

janus_status jrt_terms_narrow(struct jrt_nursery *n, const struct jrt_caps *caps,
                              struct jrt_terms **out)
{
    *out = NULL;
    if (none_given(caps)) return JANUS_OK;
    struct jrt_terms *terms = jrt_malloc(sizeof *terms);
    if (terms == NULL) return JANUS_NO_MEMORY;
    begin(terms, n->scheduler, n->terms);
    janus_status status = bind_all(terms, n->scheduler, caps);
    if (status != JANUS_OK) {
        jrt_terms_put(terms);
        return jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    }
    *out = terms;
    return JANUS_OK;
}

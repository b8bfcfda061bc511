/* SPDX-License-Identifier: MIT */
/*
 * Handles of sockets, files and processes under terms.
 *
 * A task's capability is asked when it makes a handle. Afterwards the handle is enough for every
 * task, as with channels. So revoking a capability stops new handles, and live ones go on.
 *
 * A handle counts as a channel does, by [terms-count] and [channel-pool]. Under a capability it
 * counts for the terms that bound one, and for all terms around those that bound one themselves.
 * Without a capability it counts in every pool around, or outside of pools against the scheduler's
 * limit. A handle that needs no right also counts there, even where nothing is implicit. So every
 * descriptor is bounded by something.
 *
 * [handle-share]  The process has one table of descriptors, and a pool may need no capability for a
 *   pipe. So a pool has at most a quarter of the table, of sockets and of files each, unless the
 *   program gives another number.
 *
 * [handle-place]  Beside all that, a handle takes a place in each nursery around its task that has
 *   max_handles. Such a limit holds whatever capability or pool the task has.
 *
 * [handle-move]  When a task takes a handle, the handle stops to count where it did, and counts
 *   where the task's own handles count. Terms that are around both do not change their number, so a
 *   move inside a full limit succeeds. The new places are taken before the old ones are returned.
 *   The taker needs no right and no live capability, only a place: terms remember their limits.
 */
#include "means/handles.h"

#include "means/terms.h"
#include "means/trouble.h"
#include "means/ward.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"

/* The calling task or thread. */

struct caller {
    struct jrt_task *task;     /* NULL: a plain thread */
    bool             callback; /* it has no account, [callback-account] */
};

static struct caller caller_now(void)
{
    const struct jrt_thread *thread = jrt_thread_self();
    const struct jrt_worker *worker = thread->worker;
    return (struct caller){.task = worker != NULL ? worker->current : thread->behalf,
                           .callback = thread->callback != NULL};
}

static bool is_held(const struct jrt_terms *terms, janus_cap_kind kind)
{
    return terms != NULL && terms->held[kind].holder != 0;
}

static const enum jrt_table tables[JRT_CAP_HANDLES] = {JRT_TABLE_SOCKETS, JRT_TABLE_FILES,
                                                       JRT_TABLE_PROCESSES};

/* Counting. */

/* Returns one handle in the terms with a capability below `end`; NULL: in all. */
static void give_held(struct jrt_terms *terms, const struct jrt_terms *end, janus_cap_kind kind)
{
    for (; terms != end; terms = terms->outer) {
        if ((terms->bound & 1u << kind) != 0) jrt_cap_give_handle(&terms->use, kind);
    }
}

/* Asks every capability around, and takes one handle in each unless `counts` is false. On any error
 * it takes none. */
static janus_status ask_held(janus_scheduler *scheduler, struct jrt_terms *terms,
                             const struct jrt_cap_wish *wish, bool counts)
{
    struct jrt_cap_actor actor = jrt_actor(jrt_worker_self());
    janus_cap_limits     limits;
    for (struct jrt_terms *at = terms; at != NULL; at = at->outer) {
        if ((at->bound & 1u << wish->kind) == 0) continue;
        const struct jrt_held *held = &at->held[wish->kind];
        actor.holder = held->holder;
        janus_status status = jrt_cap_gate_handle(scheduler->caps, held->cap, &actor,
                                                  counts ? &at->use : NULL, wish, &limits);
        if (jrt_likely(status == JANUS_OK)) continue;
        if (counts) give_held(terms, at, wish->kind);
        if (status != JANUS_HANDLE_LIMIT) return jrt_trouble_handle(status, wish, &limits);
        uint64_t most = jrt_cap_handles_max(wish->kind, &limits);
        return jrt_trouble_full(status, tables[jrt_cap_handle_index(wish->kind)], at, most, most);
    }
    return JANUS_OK;
}

/* Returns one handle in the pools below `end`; NULL: in all. */
static void give_pools(struct jrt_terms *terms, const struct jrt_terms *end, janus_cap_kind kind)
{
    for (; terms != end; terms = terms->outer) {
        if (terms->owns_account) jrt_cap_give_handle(&terms->use, kind);
    }
}

/* The limit in these terms, which have a pool or are the scheduler's, [handle-share]. */
static uint64_t implicit_max(const janus_scheduler *scheduler, const struct jrt_terms *terms,
                             janus_cap_kind kind)
{
    if (kind == JANUS_CAP_KIND_PROCESS) return scheduler->max_processes;
    bool pool = terms != scheduler->counter;
    jrt_debug_invariant("handle-share", scheduler->pool_handles <= scheduler->max_handles);
    return pool ? scheduler->pool_handles : scheduler->max_handles;
}

/* The terms that count a handle without a capability: those with a pool, or the scheduler's. */
static struct jrt_terms *counting(janus_scheduler *scheduler, struct jrt_terms *terms)
{
    return jrt_terms_in_pool(terms) ? terms : scheduler->counter;
}

/* Takes one handle in the pools below `end`, or in the scheduler's counter. On any error in none;
 * *out_full then has no room. */
static bool take_implicit(janus_scheduler *scheduler, struct jrt_terms *terms,
                          const struct jrt_terms *end, janus_cap_kind kind,
                          struct jrt_terms **out_full)
{
    uint64_t max = implicit_max(scheduler, terms, kind);
    *out_full = terms;
    if (terms == scheduler->counter) {
        return terms == end || jrt_cap_take_handle(&terms->use, kind, max) == JANUS_OK;
    }
    for (struct jrt_terms *at = terms; at != end; at = at->outer) {
        if (!at->owns_account || jrt_cap_take_handle(&at->use, kind, max) == JANUS_OK) continue;
        give_pools(terms, at, kind);
        *out_full = at;
        return false;
    }
    return true;
}

/* Refuses where no capability was asked. */
static janus_status refuse(janus_scheduler *scheduler, const struct jrt_cap_wish *wish,
                           janus_status status, const struct jrt_terms *full, uint64_t max)
{
    struct jrt_cap_actor  actor = jrt_actor(jrt_worker_self());
    struct jrt_cap_target target;
    jrt_cap_wish_target(wish, &target);
    (void)jrt_terms_deny_at(scheduler, &actor, wish->kind, wish->right, status, &target);
    if (status != JANUS_HANDLE_LIMIT) return jrt_trouble_handle(status, wish, NULL);
    return jrt_trouble_full(status, tables[jrt_cap_handle_index(wish->kind)], full, max, max);
}

/* Whether the right concerns the whole process: any descriptor by its number, or its signals. No
 * task in a pool has it by the profile. */
static bool is_for_trusted(const struct jrt_cap_wish *wish)
{
    return (wish->kind == JANUS_CAP_KIND_NET && wish->right == JANUS_RIGHT_NET_ADOPT) ||
           (wish->kind == JANUS_CAP_KIND_PROCESS && wish->right == JANUS_RIGHT_PROCESS_SIGNAL);
}

/* Whether the task has the right by its profile, or needs none. */
static bool is_implicit(const janus_scheduler *scheduler, const struct jrt_terms *terms,
                        const struct jrt_cap_wish *wish)
{
    uint32_t implicit = terms != NULL ? terms->implicit : scheduler->implicit;
    if (wish->right == 0) return true;
    return (implicit & 1u << wish->kind) != 0 &&
           (!is_for_trusted(wish) || !jrt_terms_in_pool(terms));
}

/* Returns the places of a handle in the terms below `end`; NULL: in all. */
static void give_places(struct jrt_terms *terms, const struct jrt_terms *end, janus_cap_kind kind)
{
    for (; terms != end; terms = terms->outer) {
        if (terms->max_handles != 0) jrt_cap_give(&terms->handles[jrt_cap_handle_index(kind)]);
    }
}

/* Takes a place in all terms with max_handles below `end`, [handle-place]. On HANDLE_LIMIT it takes
 * none. */
static janus_status take_places(janus_scheduler *scheduler, struct jrt_terms *terms,
                                const struct jrt_terms *end, const struct jrt_cap_wish *wish)
{
    unsigned index = jrt_cap_handle_index(wish->kind);
    for (struct jrt_terms *at = terms; at != end; at = at->outer) {
        if (at->max_handles == 0) continue;
        bool taken = jrt_cap_take(&at->handles[index], at->max_handles);
        /* relaxed: only the number counts. */
        jrt_debug_invariant("handle-place",
                            jrt_load_relaxed(&at->handles[index]) <= at->max_handles);
        if (taken) continue;
        give_places(terms, at, wish->kind);
        return refuse(scheduler, wish, JANUS_HANDLE_LIMIT, at, at->max_handles);
    }
    return JANUS_OK;
}

/* The terms in which the task's handles take places; NULL: in none. */
static struct jrt_terms *places_of(const struct jrt_task *task)
{
    struct jrt_terms *here = jrt_terms_here(task);
    return jrt_unlikely(here != NULL && here->places) ? here : NULL;
}

/* Counts one more handle of the task, [terms-count]. *out are the terms that do. */
static janus_status count(const struct jrt_task *task, const struct jrt_cap_wish *wish,
                          struct jrt_terms **out)
{
    janus_scheduler  *scheduler = task->nursery->scheduler;
    struct jrt_terms *terms = jrt_terms_here(task), *full;
    if (is_held(terms, wish->kind)) {
        janus_status status = ask_held(scheduler, terms, wish, true);
        if (status != JANUS_OK) return status;
    } else {
        if (!is_implicit(scheduler, terms, wish)) {
            return refuse(scheduler, wish, jrt_cap_none(wish->kind), NULL, 0);
        }
        terms = counting(scheduler, terms);
        if (!take_implicit(scheduler, terms, NULL, wish->kind, &full)) {
            return refuse(scheduler, wish, JANUS_HANDLE_LIMIT, full,
                          implicit_max(scheduler, full, wish->kind));
        }
    }
    jrt_fetch_add_relaxed(&terms->refs, 1u); /* relaxed: it is alive. */
    *out = terms;
    return JANUS_OK;
}

/* Returns one handle in the terms below `end`; NULL: in all. */
static void give(struct jrt_terms *terms, const struct jrt_terms *end, janus_cap_kind kind)
{
    if (is_held(terms, kind)) {
        give_held(terms, end, kind);
    } else if (jrt_terms_in_pool(terms)) {
        give_pools(terms, end, kind);
    } else if (terms != end) {
        jrt_cap_give_handle(&terms->use, kind); /* the scheduler's counter */
    }
}

/* Counts one more handle of the task, everywhere. On an error nowhere. */
static janus_status count_in(const struct jrt_task *task, const struct jrt_cap_wish *wish,
                             struct jrt_handle_toll *toll)
{
    struct jrt_terms *place = places_of(task);
    janus_status      status = JANUS_OK;
    if (place != NULL) status = take_places(task->nursery->scheduler, place, NULL, wish);
    if (status != JANUS_OK) return status;
    status = count(task, wish, &toll->terms);
    if (status != JANUS_OK) {
        give_places(place, NULL, wish->kind);
        return status;
    }
    if (place != NULL) jrt_fetch_add_relaxed(&place->refs, 1u); /* relaxed: it is alive. */
    toll->place = place;
    return JANUS_OK;
}

static void uncount(struct jrt_handle_toll *toll)
{
    if (toll->place != NULL) {
        give_places(toll->place, NULL, toll->kind);
        jrt_terms_put(toll->place);
        toll->place = NULL;
    }
    if (toll->terms == NULL) return;
    give(toll->terms, NULL, toll->kind);
    jrt_terms_put(toll->terms);
    toll->terms = NULL;
}

/* Memory and owner. */

static janus_status charge(struct jrt_purse *purse, uint64_t bytes)
{
    if (purse->left.memory < bytes) jrt_wards_collect(purse);
    if (purse->left.memory < bytes) {
        uint64_t had = purse->granted.memory, left = purse->left.memory;
        return jrt_trouble(JANUS_BUDGET_EXHAUSTED, JANUS_COMPONENT_MEMORY,
                           had > left ? had - left : 0, had);
    }
    if (purse->left.memory != JANUS_UNLIMITED) purse->left.memory -= bytes;
    return JANUS_OK;
}

/* Names the owner, which has paid. */
static void assign(struct jrt_handle_toll *toll, struct jrt_purse *purse, struct jrt_terms *here)
{
    while (here != NULL && here->of == NULL) here = here->outer; /* [ward-life] */
    toll->ward.bytes = toll->bytes;
    toll->ward.purse = purse;
    toll->ward.terms = here;
}

janus_status jrt_handle_may_open(janus_cap_kind kind, uint32_t right,
                                 const struct jrt_handle_ask *ask, bool kept,
                                 struct jrt_handle_toll *out)
{
    static const struct jrt_handle_ask nothing;
    if (ask == NULL) ask = &nothing;
    *out = (struct jrt_handle_toll){.ward = {.kept = kept}, .bytes = ask->bytes, .kind = kind};
    struct caller caller = caller_now();
    if (caller.callback) return JANUS_STATE;
    if (caller.task == NULL) return JANUS_OK;
    struct jrt_purse *purse = jrt_purse_need(caller.task);
    if (purse == NULL) return jrt_trouble(JANUS_NO_MEMORY, JANUS_COMPONENT_NONE, 0, 0);
    const struct jrt_cap_wish wish = {kind, right, ask->address, ask->name};
    janus_status              status = count_in(caller.task, &wish, out);
    if (jrt_unlikely(status != JANUS_OK)) return status;
    status = charge(purse, ask->bytes);
    if (jrt_unlikely(status != JANUS_OK)) {
        uncount(out);
        return status;
    }
    assign(out, purse, out->terms);
    return JANUS_OK;
}

void jrt_handle_opened(struct jrt_handle_toll *toll, const uint64_t name[2],
                       void (*end)(const uint64_t name[2]))
{
    toll->ward.name[0] = name[0];
    toll->ward.name[1] = name[1];
    toll->ward.end = end;
    if (toll->ward.purse != NULL) jrt_ward_join(&toll->ward, toll->ward.purse);
}

void jrt_handle_closed(struct jrt_handle_toll *toll)
{
    jrt_ward_leave(&toll->ward);
    uncount(toll);
}

bool jrt_handle_is_owned(const struct jrt_handle_toll *toll)
{
    return jrt_ward_is_owned(&toll->ward);
}

bool jrt_handle_is_bounded(const struct jrt_handle_toll *toll)
{
    return toll->terms != NULL &&
           (is_held(toll->terms, toll->kind) || jrt_terms_in_pool(toll->terms));
}

/* Moving. */

/* Takes one handle in the terms below `end`, without asking a capability. */
static bool take(janus_scheduler *scheduler, struct jrt_terms *terms, const struct jrt_terms *end,
                 janus_cap_kind kind, struct jrt_terms **out_full)
{
    unsigned index = jrt_cap_handle_index(kind);
    if (!is_held(terms, kind)) return take_implicit(scheduler, terms, end, kind, out_full);
    for (struct jrt_terms *at = terms; at != end; at = at->outer) {
        if ((at->bound & 1u << kind) == 0) continue;
        if (jrt_cap_take_handle(&at->use, kind, at->handles_max[index]) == JANUS_OK) continue;
        give_held(terms, at, kind);
        *out_full = at;
        return false;
    }
    return true;
}

/* The terms that count for both a and b in the same way, [handle-move]. NULL: none. */
static struct jrt_terms *shared(struct jrt_terms *a, struct jrt_terms *b, janus_cap_kind kind)
{
    if (a == NULL || is_held(a, kind) != is_held(b, kind)) return NULL;
    return jrt_terms_common(a, b);
}

/* Counts the handle for the task, and no longer where it counted, but for its places. */
static janus_status recount(struct jrt_handle_toll *toll, const struct jrt_task *task)
{
    janus_scheduler  *scheduler = task->nursery->scheduler;
    struct jrt_terms *terms = jrt_terms_here(task), *old = toll->terms, *full;
    janus_cap_kind    kind = toll->kind;
    if (!is_held(terms, kind)) terms = counting(scheduler, terms);
    const struct jrt_terms *both = shared(old, terms, kind);
    if (!take(scheduler, terms, both, kind, &full)) {
        const struct jrt_cap_wish wish = {.kind = kind};
        uint64_t                  max = implicit_max(scheduler, full, kind);
        if (is_held(terms, kind)) max = full->handles_max[jrt_cap_handle_index(kind)];
        return refuse(scheduler, &wish, JANUS_HANDLE_LIMIT, full, max);
    }
    jrt_fetch_add_relaxed(&terms->refs, 1u); /* relaxed: it is alive. */
    if (old != NULL) {
        give(old, both, kind);
        jrt_terms_put(old);
    }
    toll->terms = terms;
    return JANUS_OK;
}

/* Counts the handle for the task, everywhere, and no longer where it counted. */
static janus_status recount_all(struct jrt_handle_toll *toll, const struct jrt_task *task)
{
    const struct jrt_cap_wish wish = {.kind = toll->kind};
    struct jrt_terms         *place = places_of(task), *old = toll->place;
    const struct jrt_terms   *both = jrt_terms_common(old, place);
    janus_status              status = take_places(task->nursery->scheduler, place, both, &wish);
    if (status != JANUS_OK) return status;
    status = recount(toll, task);
    give_places(status == JANUS_OK ? old : place, both, toll->kind);
    if (status != JANUS_OK) return status;
    if (place != NULL) jrt_fetch_add_relaxed(&place->refs, 1u); /* relaxed: it is alive. */
    jrt_terms_put(old);
    toll->place = place;
    return JANUS_OK;
}

janus_status jrt_handle_move(struct jrt_handle_toll *toll)
{
    struct caller caller = caller_now();
    if (caller.callback || caller.task == NULL) return JANUS_STATE;
    struct jrt_purse *purse = jrt_purse_need(caller.task);
    if (purse == NULL) return jrt_trouble(JANUS_NO_MEMORY, JANUS_COMPONENT_NONE, 0, 0);
    if (jrt_ward_claim(&toll->ward, purse)) return JANUS_OK;
    janus_status status = charge(purse, toll->bytes);
    if (status != JANUS_OK) return status;
    status = recount_all(toll, caller.task);
    if (status != JANUS_OK) {
        purse->left.memory = janus_units_add(purse->left.memory, toll->bytes);
        return status;
    }
    jrt_ward_leave(&toll->ward);
    toll->ward.kept = false;
    assign(toll, purse, toll->terms);
    jrt_ward_join(&toll->ward, purse);
    jrt_debug_invariant("handle-move", toll->ward.purse == purse && toll->terms != NULL);
    return JANUS_OK;
}

/* Rights without a handle, and bytes of files. */

janus_status jrt_handle_check(janus_cap_kind kind, uint32_t right, const struct jrt_handle_ask *ask)
{
    struct caller caller = caller_now();
    if (caller.callback) return JANUS_STATE;
    if (caller.task == NULL) return JANUS_OK;
    janus_scheduler          *scheduler = caller.task->nursery->scheduler;
    struct jrt_terms         *terms = jrt_terms_here(caller.task);
    const struct jrt_cap_wish wish = {kind, right, ask != NULL ? ask->address : NULL,
                                      ask != NULL ? ask->name : NULL};
    if (jrt_unlikely(is_held(terms, kind))) return ask_held(scheduler, terms, &wish, false);
    if (jrt_likely(is_implicit(scheduler, terms, &wish))) return JANUS_OK;
    return refuse(scheduler, &wish, jrt_cap_none(kind), NULL, 0);
}

void jrt_handle_hold(const struct jrt_handle_toll *toll, struct jrt_handle_toll *out)
{
    *out = (struct jrt_handle_toll){.terms = toll->terms, .kind = toll->kind};
    if (out->terms != NULL)
        jrt_fetch_add_relaxed(&out->terms->refs, 1u); /* relaxed: it is alive. */
}

void jrt_handle_let_go(const struct jrt_handle_toll *held) { jrt_terms_put(held->terms); }

/* Returns bytes in the terms below `end`; NULL: in all. */
static void give_bytes(struct jrt_terms *terms, const struct jrt_terms *end, uint64_t bytes)
{
    for (; terms != end; terms = terms->outer) {
        if ((terms->bound & 1u << JANUS_CAP_KIND_FILE) == 0) continue;
        jrt_cap_give_bytes(&terms->use, bytes);
    }
}

bool jrt_handle_is_metered(const struct jrt_handle_toll *toll)
{
    if (toll->kind != JANUS_CAP_KIND_FILE || !is_held(toll->terms, toll->kind)) return false;
    const struct jrt_terms *at = toll->terms;
    while (at != NULL &&
           ((at->bound & 1u << JANUS_CAP_KIND_FILE) == 0 || at->written_max == JANUS_UNLIMITED)) {
        at = at->outer;
    }
    return at != NULL;
}

janus_status jrt_handle_take_bytes(const struct jrt_handle_toll *toll, uint64_t bytes)
{
    if (toll->kind != JANUS_CAP_KIND_FILE || !is_held(toll->terms, toll->kind)) return JANUS_OK;
    for (struct jrt_terms *at = toll->terms; at != NULL; at = at->outer) {
        if ((at->bound & 1u << JANUS_CAP_KIND_FILE) == 0) continue;
        if (jrt_cap_take_bytes(&at->use, bytes, at->written_max)) continue;
        give_bytes(toll->terms, at, bytes);
        /* relaxed: for the message. */
        return jrt_trouble_full(JANUS_CAP_LIMIT, JRT_TABLE_WRITTEN, at,
                                jrt_load_relaxed(&at->use.written), at->written_max);
    }
    return JANUS_OK;
}

void jrt_handle_give_bytes(const struct jrt_handle_toll *toll, uint64_t bytes)
{
    if (toll->kind != JANUS_CAP_KIND_FILE || !is_held(toll->terms, toll->kind)) return;
    give_bytes(toll->terms, NULL, bytes);
}

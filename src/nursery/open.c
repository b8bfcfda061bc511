/* SPDX-License-Identifier: MIT */
/* Opens nurseries: writes a few words, and decodes options if there are any. */
#include "base/options.h"
#include "base/outside.h"
#include "cancel/cancel.h"
#include "fiber/fiber.h"
#include "means/call.h"
#include "means/ledger.h"
#include "means/terms.h"
#include "nursery/nursery.h"
#include "sim/world.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/upcalls.h"
#include "task/worker.h"
#include "work/work.h"

#include <string.h>

#include <stdlib.h>

_Static_assert(offsetof(struct jrt_nursery, terms) == offsetof(struct jrt_nursery, any_flag) + 8,
               "a pair");
_Static_assert(offsetof(struct jrt_nursery, error) == offsetof(struct jrt_nursery, local) + 16,
               "a pair");
_Static_assert(offsetof(struct jrt_nursery, pending) ==
                   offsetof(struct jrt_nursery, max_children) + 16,
               "a pair");

__attribute__((noinline)) static janus_status decode(const janus_nursery_options *given,
                                                     janus_nursery_options       *options)
{
    memset(options, 0, sizeof *options);
    if (given == NULL) return JANUS_OK;
    if (!jrt_struct_sane(given->struct_bytes, sizeof *options)) return JANUS_INVALID;
    memcpy(options, given, given->struct_bytes);
    if ((unsigned)options->when_full > JANUS_WHEN_FULL_WAIT) return JANUS_INVALID;
    if (options->result != NULL) return JANUS_INVALID; /* only a block has one: block.h */
    return (unsigned)options->policy <= JANUS_POLICY_WAIT_ALL ? JANUS_OK : JANUS_INVALID;
}

static void ring_deadline(struct jrt_alarm *alarm)
{
    /* Under the timers' lock. */
    (void)jrt_nursery_cancel_locked(alarm->subject, JANUS_CANCEL_REASON_DEADLINE);
}

bool jrt_nursery_arm(struct jrt_nursery *n, uint64_t deadline_ns)
{
    struct jrt_alarm alarm = {.ring = ring_deadline, .subject = n};
    if (deadline_ns == JRT_NEVER) deadline_ns = JRT_NEVER - 1;
    n->deadline = alarm;
    n->deadline_ns = deadline_ns;
    n->timed = jrt_sched_timer_arm(n->scheduler, &n->deadline.timer, deadline_ns);
    return n->timed;
}

uint64_t janus_nursery_deadline(const janus_nursery *nursery)
{
    const struct jrt_nursery *n = jrt_nursery_of((janus_nursery *)(uintptr_t)nursery);
    return nursery != NULL && jrt_nursery_is_mine(n) && n->timed ? n->deadline_ns : 0;
}

janus_status janus_nursery_set_deadline(janus_nursery *nursery, uint64_t deadline_ns)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (nursery == NULL) return JANUS_INVALID;
    if (!jrt_nursery_is_mine(n)) return JANUS_STATE;
    jrt_nursery_ready(n);
    if (deadline_ns == JRT_NEVER) deadline_ns = JRT_NEVER - 1;
    if (deadline_ns == 0) {
        jrt_nursery_disarm(n); /* it rings no more */
        n->timed = false;
    } else if (n->timed) {
        /* Moves the timer, which cannot fail. If the timer has rung, the nursery is not open. */
        (void)jrt_sched_timer_arm(n->scheduler, &n->deadline.timer, deadline_ns);
        n->deadline_ns = deadline_ns;
    }
    janus_nursery_state state = jrt_nursery_state(n);
    if (state != JANUS_NURSERY_STATE_OPEN && state != JANUS_NURSERY_STATE_CLOSING) {
        jrt_nursery_disarm(n);
        n->timed = false;
        return JANUS_STATE;
    }
    if (n->timed || deadline_ns == 0) return JANUS_OK;
    return jrt_nursery_arm(n, deadline_ns) ? JANUS_OK : JANUS_NO_MEMORY;
}

static inline void init(struct jrt_nursery *n, janus_scheduler *scheduler)
{
    n->scheduler = scheduler;
    jrt_clear(&n->any_flag, 1);                       /* and no terms */
    jrt_clear(&n->local, 1);                          /* and the next word: not ready */
    jrt_store_relaxed(&n->pending, JRT_NURSERY_BIAS); /* relaxed: nobody knows it yet. */
}

/* Initialises a task's nursery, on no terms. */
static inline void init_owned(struct jrt_nursery *n, janus_scheduler *scheduler,
                              struct jrt_task *owner, struct jrt_nursery *outer, int64_t inside)
{
    init(n, scheduler);
    n->owner = owner;
    jrt_store_relaxed(&n->outer, outer); /* relaxed: nobody knows it yet. */
    n->inside = inside;
    jrt_debug_invariant("nursery-nested", inside >= 0 && inside <= scheduler->max_nesting);
    /* Zeros mean: Open, no reason, CANCEL_ON_ERROR, not covered. */
    n->beginning = (uint64_t)scheduler->initial << 32;
    /* relaxed: what is clean for the owner is clean here, [cancel-epoch]. */
    jrt_store_relaxed(&n->clean, jrt_load_relaxed(&owner->nursery->clean));
}

/*
 * [nursery-twice]  A task that opens a nursery which it already has open would tie its nurseries
 *   into a ring, so the library refuses that. The walk over all its open nurseries is rarely
 *   needed. Nurseries mostly lie on the stack, inner ones below outer ones. A nursery is
 *   `unsorted` if it is not below the next one around it, or if an unsorted one is around it. A
 *   nursery below a sorted one is not among those around it.
 *
 * [nursery-nested]  Calls of a task look at its open nurseries, and so do cancels by others. So a
 *   task has at most options.max_nesting of them open. The nurseries of parallel calls do not
 *   count: the stack bounds them. `inside` says how many more nurseries the owner may open inside
 *   this one. If a nursery is unsorted, or on terms, LOOK is subtracted from its `inside`. So one
 *   word tells janus_nursery_open whether it must look at more.
 */
#define LOOK (INT64_C(1) << 40)

static bool is_open_already(const struct jrt_nursery *n, const struct jrt_task *owner)
{
    const struct jrt_nursery *at = owner->innermost;
    while (at != NULL && at != n) at = jrt_nursery_outer(at);
    return at != NULL;
}

static inline bool is_perhaps_open(const struct jrt_nursery *n, const struct jrt_task *owner)
{
    const struct jrt_nursery *inner = owner->innermost;
    bool perhaps = inner != NULL && ((uintptr_t)n >= (uintptr_t)inner || inner->unsorted);
    jrt_debug_invariant("nursery-twice", perhaps || !is_open_already(n, owner));
    return perhaps;
}

/* Makes janus_nursery_open look at more when the owner opens a nursery inside this one. */
static void look_inside(struct jrt_nursery *n)
{
    if (n->inside > -LOOK / 2) n->inside -= LOOK;
}

/* The number of nurseries that a task may still open inside `inner`; NULL: it has none open. */
static int64_t inside_of(const struct jrt_nursery *inner, const janus_scheduler *scheduler)
{
    if (inner == NULL) return scheduler->max_nesting;
    return inner->inside > -LOOK / 2 ? inner->inside : inner->inside + LOOK;
}

void jrt_nursery_open_around(struct jrt_nursery *n, struct jrt_worker *worker,
                             struct jrt_task *owner, const struct jrt_nursery *around)
{
    struct jrt_nursery *inner = NULL, *outer = owner->innermost;
    for (; outer != around; outer = jrt_nursery_outer(outer)) {
        jrt_debug_invariant("fork-nursery", outer != NULL);
        inner = outer;
        inner->unsorted = true; /* perhaps not below this one */
        look_inside(inner);
    }
    init_owned(n, worker->scheduler, owner, outer, inside_of(outer, worker->scheduler));
    n->unsorted = true;
    look_inside(n);
    n->on_heap = n->internal = true; /* before children inside can find it on their way up */
    if (inner != NULL) {
        jrt_store_release(&inner->outer, n); /* release: [nursery-outer]. */
    } else {
        owner->innermost = n;
    }
}

struct jrt_nursery *jrt_nursery_innermost(const struct jrt_task *task)
{
    struct jrt_nursery *n = task->innermost;
    while (n != NULL && (n->internal || jrt_nursery_is_hidden(n))) n = jrt_nursery_outer(n);
    return n;
}

/* Initialises the nursery of a plain thread. */
static void init_root(struct jrt_nursery *n, janus_scheduler *scheduler)
{
    init(n, scheduler);
    jrt_nursery_get_ready(n);
    n->owner = NULL;
    n->outer = NULL;
    n->terms = scheduler->terms;
    n->beginning = (uint64_t)scheduler->initial << 32;
    jrt_store_relaxed(&n->clean, (uint64_t)0); /* relaxed, both: nobody knows it yet. */
    jrt_store_relaxed(&n->joined, 0u);         /* relaxed: as above. */
    n->thread = jrt_thread_self();
    jrt_store_relaxed(&n->called, false); /* relaxed: as above. */
}

_Static_assert(offsetof(struct jrt_nursery, initial) ==
                       offsetof(struct jrt_nursery, beginning) + 4 &&
                   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the beginning");

static janus_status set_options(struct jrt_nursery *n, const janus_nursery_options *options)
{
    if (options->stack_bytes != 0) {
        unsigned class = jrt_pool_stack_class(options->stack_bytes);
        if (class >= JRT_STACK_CLASSES) return JANUS_INVALID;
        n->initial = jrt_initial(class);
    }
    n->policy = (uint8_t)options->policy;
    n->max_children = options->max_children;
    n->limited = options->max_children != 0;
    n->when_full = (uint8_t)options->when_full;
    n->owner_apart = options->owner_apart;
    n->owners_alone = options->cancel_by_owner;
    n->hidden = options->hidden;
    jrt_list_init(&n->spawners);
    if (options->name != NULL) {
        (void)jrt_name_copy(n->given, sizeof n->given, options->name);
        n->name = n->given;
    }
    if (options->deadline_ns == 0) return JANUS_OK;
    return jrt_nursery_arm(n, options->deadline_ns) ? JANUS_OK : JANUS_NO_MEMORY;
}

/* Sets the nursery's own terms, or those around it. */
static janus_status set_terms(struct jrt_nursery *n, const janus_nursery_options *options,
                              bool cancelled)
{
    janus_status status = JANUS_OK;
    if (jrt_terms_wanted(options)) {
        status = jrt_terms_open(n, options, cancelled);
    } else if (n->terms != NULL) {
        status = jrt_terms_inherit(n);
    }
    /* Children with larger stacks pay for them, [spawn-stack]. */
    n->on_terms = n->terms != NULL || jrt_initial_class(n->initial) > n->scheduler->stack_class;
    if (n->owner != NULL && n->terms != NULL) look_inside(n);
    return status;
}

/* Opens with options, in a shield, on terms. On an error nothing is left of it. */
static janus_status open_with(struct jrt_nursery *n, struct jrt_task *owner,
                              const janus_nursery_options *given, janus_budget **out_granted)
{
    janus_nursery_options options;
    if (decode(given, &options) != JANUS_OK) return JANUS_INVALID;
    *out_granted = options.granted;
    bool cancelled =
        options.scope && owner != NULL && jrt_task_cancel_reason(owner) != JANUS_CANCEL_REASON_NONE;
    janus_status status = set_options(n, &options);
    if (status == JANUS_OK && owner != NULL) status = jrt_shield_nursery(n, owner);
    if (status == JANUS_OK) {
        status = set_terms(n, &options, cancelled);
        if (status != JANUS_OK) jrt_shield_nursery_leave(n);
    }
    if (status != JANUS_OK) jrt_nursery_disarm(n);
    /* Only now, because this may end the task: no timer may be left of the nursery. */
    if (cancelled && status == JANUS_CANCELLED) return jrt_task_cancelled_again(owner);
    return status;
}

/* Reports the pool that an open nursery got, [terms-energy]. It may be less than was asked for. */
static void tell_granted(const struct jrt_nursery *n, janus_budget *granted)
{
    struct jrt_account_books books;
    if (granted == NULL) return;
    *granted = janus_budget_zero();
    if (n->terms == NULL || !n->terms->owns_account) return;
    jrt_account_read(&n->terms->own, &books);
    *granted = books.granted;
}

/* Initialises n after a look at the owner's open nurseries. False: n is open, or too many are. */
static bool init_inside(struct jrt_nursery *n, janus_scheduler *scheduler, struct jrt_task *owner)
{
    bool    unsorted = is_perhaps_open(n, owner);
    int64_t inside = inside_of(owner->innermost, scheduler) - 1;
    if (inside < 0 || (unsorted && is_open_already(n, owner))) return false;
    init_owned(n, scheduler, owner, owner->innermost, inside);
    n->unsorted = unsorted;
    if (unsorted) look_inside(n);
    return true;
}

/* Opens with options for the current task, which stays on the CPU. */
static janus_status open_here(struct jrt_nursery *n, struct jrt_worker *worker,
                              const janus_nursery_options *options)
{
    struct jrt_task *owner = worker->current;
    if (!init_inside(n, worker->scheduler, owner)) {
        bool open = is_perhaps_open(n, owner) && is_open_already(n, owner);
        return open ? JANUS_STATE : JANUS_FULL;
    }
    n->terms = jrt_terms_here(owner);
    jrt_nursery_get_ready(n);
    janus_budget *granted;
    janus_status  status = open_with(n, owner, options, &granted);
    if (status != JANUS_OK) return status;
    owner->innermost = n;
    tell_granted(n, granted);
    return JANUS_OK;
}

__attribute__((noinline)) static janus_status open_slow(struct jrt_nursery          *n,
                                                        const janus_nursery_options *options)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (n == NULL) return JANUS_INVALID;
    if (jrt_worker_self() == NULL) return JANUS_STATE;
    return open_here(n, jrt_worker_self(), options); /* [worker-again] */
}

bool jrt_nursery_open_on_heap(struct jrt_nursery *n, struct jrt_worker *worker,
                              enum jrt_on_heap on_heap)
{
    if (open_here(n, worker, NULL) != JANUS_OK) return false;
    n->on_heap = (uint8_t)on_heap; /* it is the innermost: nobody knows it yet */
    return true;
}

bool jrt_nursery_open_on_terms(struct jrt_nursery *n, struct jrt_worker *worker)
{
    if (!jrt_nursery_open_on_heap(n, worker, JRT_ON_HEAP)) return false;
    n->internal = true;
    return true;
}

/* Whether a dirty task is in a shield, or was given terms. */
static inline bool is_on_more(const struct jrt_task *owner)
{
    const struct jrt_purse *purse = owner->purse;
    if (jrt_unlikely(jrt_load_relaxed(&owner->shield) > 0)) return true; /* relaxed: its own. */
    return owner->innermost == NULL && purse != NULL && purse->terms != NULL;
}

/* Usually writes a few words, without a call, and so without a frame. */
JRT_HOT janus_status janus_nursery_open(janus_nursery               *nursery,
                                        const janus_nursery_options *options)
{
    struct jrt_worker  *worker = jrt_worker_self();
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (jrt_unlikely(options != NULL || worker == NULL)) return open_slow(n, options);
    struct jrt_task    *owner = worker->current;
    struct jrt_nursery *inner = owner->innermost;
    janus_scheduler    *scheduler = worker->scheduler;
    int64_t             inside;
    if (owner->dirty && jrt_unlikely(is_on_more(owner))) return open_slow(n, NULL);
    if (jrt_unlikely(n == NULL)) return open_slow(n, NULL);
    if (inner == NULL) {
        if (jrt_unlikely(owner->nursery->terms != NULL)) return open_slow(n, NULL);
        inside = scheduler->max_nesting;
    } else {
        inside = inner->inside;
        if (jrt_unlikely((uintptr_t)n >= (uintptr_t)inner)) return open_slow(n, NULL);
    }
    if (jrt_unlikely(--inside < 0)) return open_slow(n, NULL);
    jrt_debug_invariant("nursery-twice", !is_open_already(n, owner));
    init_owned(n, scheduler, owner, inner, inside);
    owner->innermost = n;
    return JANUS_OK;
}

/* Whether some thread has this nursery open. */
static bool is_open_root(const struct jrt_nursery *n, janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->roots_lock);
    const struct jrt_list_node *node = scheduler->roots.next;
    while (node != &scheduler->roots && node != &n->link) node = node->next;
    bool found = node == &n->link;
    jrt_unlock(&scheduler->roots_lock);
    return found;
}

janus_status janus_nursery_open_in(janus_scheduler *scheduler, janus_nursery *nursery,
                                   const janus_nursery_options *options)
{
    jrt_stack_check(); /* [turn-call] */
    if (scheduler == NULL || nursery == NULL) return JANUS_INVALID;
    if (jrt_worker_self() != NULL || jrt_world_is_elsewhere(scheduler->world)) return JANUS_STATE;
    janus_status may = jrt_outside_ask(); /* in a blocking call, or a callback, of a task */
    if (may != JANUS_OK) return may;
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (is_open_root(n, scheduler)) return JANUS_STATE;
    init_root(n, scheduler);
    janus_budget *granted;
    janus_status  status = open_with(n, NULL, options, &granted);
    if (status != JANUS_OK) return status;
    jrt_lock(&scheduler->roots_lock);
    bool runs = scheduler->started && !scheduler->stopped;
    if (runs) {
        jrt_list_push_front(&scheduler->roots, &n->link);
        jrt_store_relaxed(&n->registered, true);        /* relaxed: under the lock. */
        jrt_fetch_add_relaxed(&scheduler->outside, 1u); /* relaxed: a count, read under locks. */
    }
    jrt_unlock(&scheduler->roots_lock);
    if (runs) {
        tell_granted(n, granted);
        return JANUS_OK;
    }
    jrt_nursery_disarm(n);
    jrt_nursery_drop_terms(n);
    return JANUS_STATE;
}

void jrt_nursery_free(struct jrt_nursery *n, enum jrt_on_heap on_heap)
{
    if (on_heap == JRT_SUPERVISED) {
        jrt_upcalls.supervisor_free(n);
        return;
    }
    struct jrt_ledger *payer =
        on_heap == JRT_PAID ? ((struct jrt_paid_nursery *)(void *)n)->payer : NULL;
    free(n);
    jrt_ledger_refund(payer, sizeof(struct jrt_paid_nursery));
}

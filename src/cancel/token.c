/* SPDX-License-Identifier: MIT */
/*
 * Cancel tokens.
 *
 * [token-flip]  A token flips from not cancelled to cancelled once, under its lock. The thread that
 *   flips it owns the rest: the token's place in a walk (`queued`) and its callbacks. After the
 *   flip nobody registers a callback or a child, so both lists only shrink.
 *
 * [token-walk]  A cancel first flips everything below, breadth first through `queued`, without
 *   recursion. Then it runs callbacks from the front. A child is flipped under its parent's lock,
 *   which keeps the child's memory. The last release of a child takes it off the parent's list
 *   under that lock before it frees the child. The walk leaves out a child that is being released.
 *
 * [token-remove]  A callback is off the list before it runs, and `running` names it until it has
 *   returned. A thread that removes it sees one or the other under the lock, and waits on
 *   `finished`.
 *
 * [token-handle]  A handle is a place and its generation. A place with the last possible generation
 *   is never used again, so no handle ever comes twice.
 *
 * callback.c says how a callback is called, and which task pays for it.
 *
 * A nursery's token is noted while locks are held (cancel_below). jrt_tokens_flush cancels it when
 * the thread holds no lock. The thread keeps the list.
 *
 * Order of locks: a nursery's, a token's, those of its children. Under a token's lock nobody takes
 * a nursery's.
 */
#include "cancel/token.h"

#include "cancel/cancel.h"
#include "means/call.h"
#include "means/callback.h"
#include "means/ledger.h"
#include "plat/seam.h"
#include "task/nursery.h"
#include "task/worker.h"
#include "work/work.h"

#include <stdlib.h>
#include <string.h>

struct hook {
    struct jrt_callback callback; /* a free place has no function */
    uint32_t            generation;
    /* By number from 1; 0: none. Free places are linked by `older`. */
    uint32_t older, newer;
};

/* The charge for one callback: its place, which the token makes by doubling. */
enum { HOOK_BYTES = 2 * sizeof(struct hook) };

struct janus_token {
    _Atomic(uint32_t)  refs;
    _Atomic(uint32_t)  finished; /* futex: callbacks that have returned */
    _Atomic(uint8_t)   reason;   /* janus_cancel_reason; NONE: not cancelled. Set under the lock */
    janus_token       *parent;   /* a reference; NULL: none */
    struct jrt_ledger *payer;    /* ledger of the task that made it; NULL: a thread made it */

    pthread_mutex_t      lock;     /* guards all fields up to `sibling` */
    struct jrt_list_node children; /* no references */
    struct hook         *hooks;    /* owned */
    uint32_t             hook_room, hook_newest, hook_free;
    uint32_t             first_generation;
    janus_token_handle   running; /* [token-remove] */
    const void          *runner;  /* the thread that runs the callback */
    bool                 awaited; /* a thread waits for its end */

    struct jrt_list_node sibling;   /* on parent->children; under the parent's lock */
    janus_token         *queued;    /* belongs to the thread that flipped it, [token-walk] */
    janus_token         *collected; /* belongs to the thread that cancelled its nursery */
    janus_cancel_reason  collected_reason;
};

/* Making and releasing. */

static janus_status make(janus_token **out)
{
    struct jrt_ledger *payer;
    janus_status       status = jrt_ledger_charge(sizeof(janus_token), &payer);
    if (status != JANUS_OK) return status;
    janus_token *token = jrt_calloc(1, sizeof *token);
    if (token == NULL) {
        jrt_ledger_refund(payer, sizeof *token);
        return JANUS_NO_MEMORY;
    }
    token->payer = payer;
    jrt_store_relaxed(&token->refs, 1u); /* relaxed: nobody knows it yet. */
    pthread_mutex_init(&token->lock, NULL);
    jrt_list_init(&token->children);
    jrt_list_init(&token->sibling);
    *out = token;
    return JANUS_OK;
}

void jrt_token_wear(janus_token *token, uint32_t generation)
{
    token->first_generation = generation;
}

janus_status janus_token_create(janus_token **out)
{
    jrt_stack_check(); /* [stack-reserve] */
    return out != NULL ? make(out) : JANUS_INVALID;
}

static janus_cancel_reason reason_in(const janus_token *token)
{
    if (token == NULL) return JANUS_CANCEL_REASON_NONE;
    return (janus_cancel_reason)jrt_load_acquire(&token->reason); /* acquire: what led to it. */
}

janus_status janus_token_create_child(janus_token *parent, janus_token **out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (parent == NULL || out == NULL) return JANUS_INVALID;
    janus_token *token;
    janus_status status = make(&token);
    if (status != JANUS_OK) return status;
    jrt_lock(&parent->lock);
    if (reason_in(parent) != JANUS_CANCEL_REASON_NONE) {
        /* relaxed: nobody knows it yet. */
        jrt_store_relaxed(&token->reason, (uint8_t)JANUS_CANCEL_REASON_PARENT);
    } else {
        token->parent = janus_token_retain(parent);
        jrt_list_push_front(&parent->children, &token->sibling);
    }
    jrt_unlock(&parent->lock);
    *out = token;
    return JANUS_OK;
}

janus_token *janus_token_retain(janus_token *token)
{
    /* relaxed: the caller holds a reference, so it has seen the token before. */
    if (token != NULL) jrt_fetch_add_relaxed(&token->refs, 1u);
    return token;
}

/* Takes a reference to a token that may be about to end. False: it has ended. */
static bool retain_if_alive(janus_token *token)
{
    uint32_t refs = jrt_load_relaxed(&token->refs); /* relaxed: the cas decides. */
    do {
        if (refs == 0) return false;
    } while (!jrt_cas_relaxed(&token->refs, &refs, refs + 1)); /* relaxed: the lock orders. */
    return true;
}

static void destroy(janus_token *token)
{
    struct jrt_ledger *payer = token->payer;
    for (uint32_t at = token->hook_newest; at != 0; at = token->hooks[at - 1].older) {
        jrt_callback_drop(&token->hooks[at - 1].callback, HOOK_BYTES);
    }
    pthread_mutex_destroy(&token->lock);
    free(token->hooks);
    free(token);
    jrt_ledger_refund(payer, sizeof *token);
}

/* For the library, which must not yield where it calls this, [turn-call]. */
static void put(janus_token *token)
{
    while (token != NULL) { /* a loop over the parents, not a recursion */
        /* acq_rel: what others did with the token comes before its end. */
        if (jrt_fetch_sub_acq_rel(&token->refs, 1u) != 1) return;
        janus_token *parent = token->parent;
        if (parent != NULL) {
            jrt_lock(&parent->lock); /* [token-walk] */
            jrt_list_remove(&token->sibling);
            jrt_unlock(&parent->lock);
        }
        destroy(token);
        token = parent;
    }
}

void janus_token_release(janus_token *token)
{
    jrt_stack_check(); /* [stack-reserve] */
    put(token);
}

/* Asking. */

janus_cancel_reason janus_token_reason(const janus_token *token)
{
    jrt_point();
    return reason_in(token);
}

bool janus_token_is_cancelled(const janus_token *token)
{
    return janus_token_reason(token) != JANUS_CANCEL_REASON_NONE;
}

janus_status janus_token_check(const janus_token *token)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (!janus_token_is_cancelled(token)) return JANUS_OK;
    if (worker != NULL && worker->current != NULL) { /* [nursery-obey] */
        worker->current->saw_cancel = worker->current->dirty = true;
    }
    return JANUS_CANCELLED;
}

/* Callbacks. */

static janus_token_handle handle_of(uint32_t number, const struct hook *hook)
{
    return (uint64_t)number << 32 | hook->generation;
}

/* Takes a hook off the list and frees its place. The caller owns its callback. Under the lock. */
static void take_hook(janus_token *token, uint32_t number)
{
    struct hook *hook = &token->hooks[number - 1];
    if (hook->older != 0) token->hooks[hook->older - 1].newer = hook->newer;
    if (hook->newer != 0) token->hooks[hook->newer - 1].older = hook->older;
    if (token->hook_newest == number) token->hook_newest = hook->older;
    hook->callback.function = NULL;
    if (hook->generation == UINT32_MAX) return; /* [token-handle] */
    hook->generation++;
    hook->older = token->hook_free;
    token->hook_free = number;
}

/* Makes a free place; under the lock. False: memory refused. */
static bool hook_room(janus_token *token)
{
    if (token->hook_free != 0) return true;
    uint32_t room = token->hook_room > 0 ? token->hook_room * 2 : 4;
    if (room <= token->hook_room || room == UINT32_MAX) return false;
    struct hook *larger = jrt_realloc(token->hooks, room * sizeof *larger);
    if (larger == NULL) return false;
    memset(larger + token->hook_room, 0, (room - token->hook_room) * sizeof *larger);
    for (uint32_t i = room; i > token->hook_room; i--) {
        larger[i - 1].generation = token->first_generation;
        larger[i - 1].older = token->hook_free;
        token->hook_free = i;
    }
    token->hooks = larger;
    token->hook_room = room;
    return true;
}

/* Registers the callback; 0: no memory. Under the lock. */
static janus_token_handle add_hook(janus_token *token, const struct jrt_callback *callback)
{
    jrt_debug_invariant("token-flip", reason_in(token) == JANUS_CANCEL_REASON_NONE);
    if (!hook_room(token)) return 0;
    uint32_t     number = token->hook_free;
    struct hook *hook = &token->hooks[number - 1];
    jrt_debug_invariant("token-handle", hook->callback.function == NULL);
    token->hook_free = hook->older;
    *hook = (struct hook){*callback, hook->generation, token->hook_newest, 0};
    if (hook->older != 0) token->hooks[hook->older - 1].newer = number;
    token->hook_newest = number;
    return handle_of(number, hook);
}

/* Registers a callback of the caller, or of the library itself. Charges nobody. */
static janus_status register_callback(janus_token *token, struct jrt_callback *callback,
                                      janus_token_handle *out)
{
    janus_token_handle handle = 0;
    jrt_lock(&token->lock);
    bool cancelled = reason_in(token) != JANUS_CANCEL_REASON_NONE;
    if (!cancelled) handle = add_hook(token, callback);
    /* Before anybody can run it: the callback may use its own handle. */
    if (handle != 0 && out != NULL) *out = handle;
    jrt_unlock(&token->lock);
    if (handle != 0) return JANUS_OK;
    if (cancelled) jrt_callback_run(callback);
    jrt_callback_drop(callback, HOOK_BYTES);
    if (!cancelled) return JANUS_NO_MEMORY;
    if (out != NULL) *out = 0;
    return JANUS_OK;
}

janus_status janus_token_on_cancel(janus_token *token, void (*function)(void *), void *argument,
                                   janus_token_handle *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (token == NULL || function == NULL) return JANUS_INVALID;
    struct jrt_callback callback;
    janus_status        status = jrt_callback_make(&callback, function, argument, HOOK_BYTES);
    return status == JANUS_OK ? register_callback(token, &callback, out) : status;
}

/* The number of a live hook with that handle; 0: no hook has it. Under the lock. */
static uint32_t find_hook(const janus_token *token, janus_token_handle handle)
{
    uint64_t number = handle >> 32;
    if (number == 0 || number > token->hook_room) return 0;
    const struct hook *hook = &token->hooks[number - 1];
    bool live = hook->callback.function != NULL && handle_of((uint32_t)number, hook) == handle;
    return live ? (uint32_t)number : 0;
}

/* For the library, too: does not yield. */
static janus_status remove_callback(janus_token *token, janus_token_handle handle)
{
    const struct jrt_thread *self = jrt_thread_self();
    janus_status             status = JANUS_STALE;
    jrt_lock(&token->lock);
    uint32_t number = find_hook(token, handle);
    if (number != 0) {
        struct jrt_callback callback = token->hooks[number - 1].callback;
        take_hook(token, number);
        jrt_unlock(&token->lock);
        jrt_callback_drop(&callback, HOOK_BYTES);
        return JANUS_OK;
    }
    while (handle != 0 && token->running == handle && token->runner != self) {
        uint32_t seen = jrt_load_relaxed(&token->finished); /* relaxed: under the lock. */
        if (self->calls_back) { /* two callbacks would wait for each other */
            status = JANUS_STATE;
            break;
        }
        token->awaited = true;
        jrt_unlock(&token->lock);
        jrt_futex_wait(&token->finished, seen);
        jrt_lock(&token->lock);
    }
    jrt_unlock(&token->lock);
    return status;
}

janus_status janus_token_remove(janus_token *token, janus_token_handle handle)
{
    jrt_stack_check(); /* [stack-reserve] */
    return token != NULL ? remove_callback(token, handle) : JANUS_INVALID;
}

/* Cancelling. */

/* The step of [token-flip]; under the lock. */
static bool flip(janus_token *token, janus_cancel_reason reason)
{
    if (reason_in(token) != JANUS_CANCEL_REASON_NONE) return false;
    jrt_store_release(&token->reason, (uint8_t)reason); /* release: what led to it. */
    token->queued = NULL;
    return true;
}

/* Flips the children of a flipped token and puts them at the end of the walk. */
static janus_token *flip_children(janus_token *token, janus_token *last)
{
    jrt_lock(&token->lock);
    jrt_debug_invariant("token-walk", reason_in(token) != JANUS_CANCEL_REASON_NONE);
    struct jrt_list_node *node = token->children.next;
    for (; node != &token->children; node = node->next) {
        janus_token *child = jrt_list_entry(node, janus_token, sibling);
        jrt_lock(&child->lock);
        bool ours = flip(child, JANUS_CANCEL_REASON_PARENT) && retain_if_alive(child);
        jrt_unlock(&child->lock);
        if (!ours) continue;
        last->queued = child;
        last = child;
    }
    jrt_unlock(&token->lock);
    return last;
}

/* Runs the callbacks of a token that the caller flipped. */
static void run_hooks(janus_token *token)
{
    jrt_lock(&token->lock);
    while (token->hook_newest != 0) {
        uint32_t    number = token->hook_newest;
        struct hook hook = token->hooks[number - 1];
        token->running = handle_of(number, &hook);
        token->runner = jrt_thread_self();
        take_hook(token, number);
        jrt_debug_invariant("token-remove", find_hook(token, token->running) == 0);
        jrt_unlock(&token->lock);
        jrt_callback_run(&hook.callback);
        jrt_callback_drop(&hook.callback, HOOK_BYTES);
        jrt_lock(&token->lock);
        token->running = 0;
        if (!token->awaited) continue;
        token->awaited = false;
        jrt_fetch_add_relaxed(&token->finished, 1u); /* relaxed: under the lock. */
        jrt_futex_wake(&token->finished, JRT_WAKE_ALL);
    }
    jrt_unlock(&token->lock);
}

/* For the library, too: does not yield. */
static janus_status cancel(janus_token *token, janus_cancel_reason reason)
{
    jrt_lock(&token->lock);
    bool ours = flip(token, reason);
    jrt_unlock(&token->lock);
    if (!ours) return JANUS_STATE;
    janus_token *last = janus_token_retain(token);
    for (janus_token *at = token; at != NULL; at = at->queued) last = flip_children(at, last);
    while (token != NULL) {
        run_hooks(token);
        janus_token *next = token->queued;
        put(token);
        token = next;
    }
    return JANUS_OK;
}

janus_status janus_token_cancel(janus_token *token, janus_cancel_reason reason)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (token == NULL || reason == JANUS_CANCEL_REASON_NONE) return JANUS_INVALID;
    if ((unsigned)reason > JANUS_CANCEL_REASON_SHUTDOWN) return JANUS_INVALID;
    return cancel(token, reason);
}

/* Nurseries. */

void jrt_token_collect(janus_token *token, janus_cancel_reason reason)
{
    struct jrt_thread *thread = jrt_thread_self();
    token->collected = thread->cancelled;
    token->collected_reason = reason;
    thread->cancelled = janus_token_retain(token);
}

void jrt_tokens_flush(void)
{
    struct jrt_thread *thread = jrt_thread_self();
    while (jrt_unlikely(thread->cancelled != NULL)) { /* a callback may cancel and flush, too */
        janus_token *token = thread->cancelled;
        thread->cancelled = token->collected;
        (void)cancel(token, token->collected_reason);
        put(token);
    }
}

/* Why a nursery is cancelled; NONE: it is not. The question does not count as a task's learning of
 * it. */
static janus_cancel_reason reason_of(struct jrt_nursery *n)
{
    if (jrt_nursery_state(n) == JANUS_NURSERY_STATE_CLOSED) return JANUS_CANCEL_REASON_NONE;
    return jrt_nursery_reason_above(n); /* up to the next shield */
}

janus_status janus_nursery_token(janus_nursery *nursery, janus_token **out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (nursery == NULL || out == NULL) return JANUS_INVALID;
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    janus_token        *spare;
    janus_status        status = make(&spare);
    if (status != JANUS_OK) return status;
    jrt_nursery_register(n); /* a cancel from above must find it */
    jrt_nursery_lock(n);
    if (n->token == NULL) {
        n->token = spare;
        n->bound = true;
        spare = NULL;
    }
    janus_token *token = janus_token_retain(n->token);
    jrt_nursery_unlock(n);
    put(spare);
    /* Sees a cancel that passed before the token existed: it set the state before it took the locks
     * that this thread took later. */
    janus_cancel_reason reason = reason_of(n);
    if (reason != JANUS_CANCEL_REASON_NONE) (void)cancel(token, reason);
    *out = token;
    return JANUS_OK;
}

/* A token that cancels a nursery. It is on n->bindings, which only the owner touches. */
struct jrt_binding {
    struct jrt_binding *next;
    struct jrt_nursery *nursery;
    janus_token        *token; /* a reference */
    janus_token_handle  handle;
    struct jrt_ledger  *payer; /* ledger of the nursery's owner; NULL: a thread */
};

enum { BINDING_BYTES = sizeof(struct jrt_binding) + HOOK_BYTES };

static void cancel_bound(void *argument)
{
    struct jrt_binding *binding = argument;
    (void)jrt_nursery_cancel(binding->nursery, janus_token_reason(binding->token));
}

janus_status janus_nursery_cancel_on(janus_nursery *nursery, janus_token *token)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (nursery == NULL || token == NULL) return JANUS_INVALID;
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (!jrt_nursery_is_mine(n)) return JANUS_STATE;
    struct jrt_ledger *payer;
    janus_status       status = jrt_ledger_charge(BINDING_BYTES, &payer);
    if (status != JANUS_OK) return status;
    struct jrt_binding *binding = jrt_malloc(sizeof *binding);
    if (binding == NULL) {
        jrt_ledger_refund(payer, BINDING_BYTES);
        return JANUS_NO_MEMORY;
    }
    jrt_nursery_ready(n);
    *binding = (struct jrt_binding){n->bindings, n, token, 0, payer};
    /* The library's. */
    struct jrt_callback callback = {.function = cancel_bound, .argument = binding};
    janus_token_handle  handle = 0;
    status = register_callback(token, &callback, &handle);
    /* Failed, or the token was cancelled and n has been, too. */
    if (status != JANUS_OK || handle == 0) {
        jrt_ledger_refund(payer, BINDING_BYTES);
        free(binding);
        return status;
    }
    binding->handle = handle;
    (void)janus_token_retain(token);
    n->bindings = binding;
    jrt_nursery_lock(n); /* [nursery-bytes]; a child may ask for the nursery's token now */
    n->bound = true;
    jrt_nursery_unlock(n);
    jrt_fetch_add_relaxed(&n->scheduler->outside, 1u); /* relaxed: a count. */
    return JANUS_OK;
}

void jrt_nursery_tokens_end(struct jrt_nursery *n)
{
    while (n->bindings != NULL) {
        struct jrt_binding *binding = n->bindings;
        n->bindings = binding->next;
        (void)remove_callback(binding->token, binding->handle);
        put(binding->token);
        jrt_ledger_refund(binding->payer, BINDING_BYTES);
        free(binding);
        jrt_outside_less(n->scheduler);
    }
    put(n->token);
    n->token = NULL;
    jrt_singles_free(n);
}

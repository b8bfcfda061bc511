/* SPDX-License-Identifier: MIT */
/*
 * Cancel tokens.
 *
 * [token-flip]  a token goes from not cancelled to cancelled once, under its lock, and whoever does
 *   it owns the rest: the token's place in a walk (`queued`) and its callbacks. After the flip
 *   nobody registers a callback or a child any more, so both lists only shrink.
 *
 * [token-walk]  a cancel first flips everything below, breadth first through `queued`, without
 *   recursion, then runs callbacks from the front. A child is flipped under its parent's lock; its
 *   memory is good there, because the last release of a child takes it off the parent's list under
 *   the same lock before it goes. A child that is being released is left out.
 *
 * [token-remove]  a callback is off the list before it runs, and `running` names it until it has
 *   returned. Whoever removes it sees one or the other under the lock, and waits on `finished`.
 *
 * [token-plain]  callbacks run in the middle of whatever the thread was doing: in a task, in a
 *   worker's loop with no task at all, while a task is being parked. So the thread is made a plain
 *   one for the time: nothing in a callback can leave the CPU or touch the task that was there.
 *
 * Nurseries. A nursery's token is noted while locks are held (cancel_below) and cancelled when the
 * thread holds none (jrt_tokens_flush); the thread keeps the list.
 *
 * Locks: a token's, then those of its children. Inside, nothing of nurseries. Outside, a nursery's.
 */
#include "task/token.h"

#include "fiber/exit.h"
#include "plat/seam.h"
#include "task/tell.h"

#include <stdlib.h>
#include <string.h>

struct hook {
    void     (*function)(void *); /* NULL: free */
    void    *argument;
    uint32_t generation;
    uint32_t older, newer; /* by number from 1; 0: none. Free ones are linked by `older` */
};

struct janus_token {
    _Atomic(uint32_t) refs;
    _Atomic(uint32_t) finished; /* futex: callbacks that have returned */
    _Atomic(uint8_t)  reason;   /* janus_cancel_reason; NONE: not cancelled. Set under the lock */
    janus_token      *parent;   /* a reference of ours; NULL: none */

    pthread_mutex_t      lock;     /* guards all below */
    struct jrt_list_node children; /* not kept */
    struct hook         *hooks;    /* owned */
    uint32_t             hook_room, hook_newest, hook_free;
    janus_token_handle   running; /* [token-remove] */
    const void          *runner;  /* the thread it runs on */
    bool                 awaited; /* somebody waits for its end */

    struct jrt_list_node sibling;   /* on parent->children; the parent's lock */
    janus_token         *queued;    /* of whoever flipped it, [token-walk] */
    janus_token         *collected; /* of the thread that cancelled its nursery */
    janus_cancel_reason  collected_reason;
};

/* Making and releasing. */

static janus_token *make(void)
{
    janus_token *token = jrt_calloc(1, sizeof *token);
    if (token == NULL) return NULL;
    jrt_store_relaxed(&token->refs, 1u); /* relaxed: nobody knows it yet. */
    pthread_mutex_init(&token->lock, NULL);
    jrt_list_init(&token->children);
    jrt_list_init(&token->sibling);
    return token;
}

janus_status janus_token_create(janus_token **out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL) return JANUS_INVALID;
    janus_token *token = make();
    if (token == NULL) return JANUS_NO_MEMORY;
    *out = token;
    return JANUS_OK;
}

static janus_cancel_reason reason_in(const janus_token *token)
{
    if (token == NULL) return JANUS_CANCEL_NONE;
    return (janus_cancel_reason)jrt_load_acquire(&token->reason); /* acquire: what led to it. */
}

janus_status janus_token_child(janus_token *parent, janus_token **out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (parent == NULL || out == NULL) return JANUS_INVALID;
    janus_token *token = make();
    if (token == NULL) return JANUS_NO_MEMORY;
    jrt_lock(&parent->lock);
    if (reason_in(parent) != JANUS_CANCEL_NONE) {
        /* relaxed: nobody knows it yet. */
        jrt_store_relaxed(&token->reason, (uint8_t)JANUS_CANCEL_PARENT);
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
    /* relaxed: whoever retains holds a reference, so it cannot be the first to see it. */
    if (token != NULL) jrt_fetch_add_relaxed(&token->refs, 1u);
    return token;
}

/* A reference to a token that may be on its way out. */
static bool retain_if_alive(janus_token *token)
{
    uint32_t refs = jrt_load_relaxed(&token->refs); /* relaxed: the cas decides. */
    do {
        if (refs == 0) return false;
    } while (!jrt_cas_relaxed(&token->refs, &refs, refs + 1)); /* relaxed: the lock orders. */
    return true;
}

void janus_token_release(janus_token *token)
{
    jrt_stack_check();      /* [stack-reserve] */
    while (token != NULL) { /* a chain of parents, not a recursion */
        /* acq_rel: what others did with the token comes before its end. */
        if (jrt_fetch_sub_acq_rel(&token->refs, 1u) != 1) return;
        janus_token *parent = token->parent;
        if (parent != NULL) {
            jrt_lock(&parent->lock); /* [token-walk] */
            jrt_list_remove(&token->sibling);
            jrt_unlock(&parent->lock);
        }
        pthread_mutex_destroy(&token->lock);
        free(token->hooks);
        free(token);
        token = parent;
    }
}

/* Asking. */

janus_cancel_reason janus_token_reason(const janus_token *token)
{
    jrt_point();
    return reason_in(token);
}

bool janus_token_is_cancelled(const janus_token *token)
{
    return janus_token_reason(token) != JANUS_CANCEL_NONE;
}

janus_status janus_token_check(const janus_token *token)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (!janus_token_is_cancelled(token)) return JANUS_OK;
    if (worker != NULL && worker->current != NULL) { /* [nursery-obey] */
        worker->current->saw_cancel = worker->current->touched = true;
    }
    return JANUS_CANCELLED;
}

/* Callbacks. */

struct plain_call {
    void  (*function)(void *);
    void *argument;
};

static int64_t do_plain_call(void *argument)
{
    const struct plain_call *call = argument;
    call->function(call->argument);
    return 0;
}

/* It belongs to no task that could fail, and we are in the middle of a walk: it is told, and the
 * walk goes on. */
static void tell_broken_callback(const struct jrt_thread *thread, enum jrt_guarded_end end)
{
    const char *why = thread->panic_message;
    if (end == JRT_GUARDED_EXITED) why = "it ended its thread (pthread_exit or pthread_cancel)";
    if (end == JRT_GUARDED_OVERFLOWED) why = "it used up the stack";
    jrt_tell_callback("a token's callback", why);
}

/* As [token-plain] wants it. */
static void call_plainly(void (*function)(void *), void *argument)
{
    struct jrt_thread *thread = jrt_thread_self();
    struct jrt_worker *worker = thread->worker;
    const void        *helps = thread->helps;
    bool               calls_back = thread->calls_back;
    void               (*on_panic)(const char *) = thread->on_panic;
    thread->worker = NULL;
    if (worker != NULL) thread->helps = worker->scheduler; /* which must not be stopped from here */
    thread->on_panic = NULL;
    thread->calls_back = true;
    struct plain_call       call = {function, argument};
    int64_t                 result;
    const struct jrt_stack *stack = worker != NULL ? thread->watch.stack : NULL;
    enum jrt_guarded_end    end = jrt_call_guarded(do_plain_call, &call, stack, &result);
    thread->on_panic = on_panic;
    thread->worker = worker;
    thread->helps = helps;
    thread->calls_back = calls_back;
    if (jrt_likely(end == JRT_GUARDED_RETURNED)) return;
    if (end == JRT_GUARDED_EXITED) {
        /* A thread that others own cannot go on, nor end here. A worker ends it in its loop. */
        jrt_demand(worker != NULL, "a token's callback ended its thread (pthread_exit)");
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        jrt_store_relaxed(&worker->doomed, true); /* relaxed: our own, [replace-doom]. */
    }
    tell_broken_callback(thread, end);
}

static janus_token_handle handle_of(uint32_t number, const struct hook *hook)
{
    return (uint64_t)number << 32 | hook->generation;
}

/* Takes a hook off the list and frees its place; under the lock. */
static void drop_hook(janus_token *token, uint32_t number)
{
    struct hook *hook = &token->hooks[number - 1];
    if (hook->older != 0) token->hooks[hook->older - 1].newer = hook->newer;
    if (hook->newer != 0) token->hooks[hook->newer - 1].older = hook->older;
    if (token->hook_newest == number) token->hook_newest = hook->older;
    hook->function = NULL;
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
        larger[i - 1].older = token->hook_free;
        token->hook_free = i;
    }
    token->hooks = larger;
    token->hook_room = room;
    return true;
}

janus_status janus_token_on_cancel(janus_token *token, void (*function)(void *), void *argument,
                                   janus_token_handle *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (token == NULL || function == NULL) return JANUS_INVALID;
    janus_token_handle handle = 0;
    jrt_lock(&token->lock);
    bool cancelled = reason_in(token) != JANUS_CANCEL_NONE;
    bool room = cancelled || hook_room(token);
    if (room && !cancelled) {
        uint32_t     number = token->hook_free;
        struct hook *hook = &token->hooks[number - 1];
        token->hook_free = hook->older;
        *hook = (struct hook){function, argument, hook->generation, token->hook_newest, 0};
        if (hook->older != 0) token->hooks[hook->older - 1].newer = number;
        token->hook_newest = number;
        handle = handle_of(number, hook);
        /* Before anybody can run it: the callback may want its own name. */
        if (out != NULL) *out = handle;
    }
    jrt_unlock(&token->lock);
    if (!room) return JANUS_NO_MEMORY;
    if (!cancelled) return JANUS_OK;
    call_plainly(function, argument);
    if (out != NULL) *out = 0;
    return JANUS_OK;
}

janus_status janus_token_remove(janus_token *token, janus_token_handle handle)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (token == NULL) return JANUS_INVALID;
    const void *self = jrt_thread_self();
    uint64_t    number = handle >> 32;
    jrt_lock(&token->lock);
    if (number > 0 && number <= token->hook_room) {
        struct hook *hook = &token->hooks[number - 1];
        if (hook->function != NULL && handle_of((uint32_t)number, hook) == handle) {
            drop_hook(token, (uint32_t)number);
            jrt_unlock(&token->lock);
            return JANUS_OK;
        }
    }
    while (handle != 0 && token->running == handle && token->runner != self) {
        uint32_t seen = jrt_load_relaxed(&token->finished); /* relaxed: under the lock. */
        token->awaited = true;
        jrt_unlock(&token->lock);
        jrt_futex_wait(&token->finished, seen);
        jrt_lock(&token->lock);
    }
    jrt_unlock(&token->lock);
    return JANUS_STALE;
}

/* Cancelling. */

/* The one step of [token-flip]; under the lock. */
static bool flip(janus_token *token, janus_cancel_reason reason)
{
    if (reason_in(token) != JANUS_CANCEL_NONE) return false;
    jrt_store_release(&token->reason, (uint8_t)reason); /* release: what led to it. */
    token->queued = NULL;
    return true;
}

/* Flips the children of a flipped token and puts them at the end of the walk. */
static janus_token *flip_children(janus_token *token, janus_token *last)
{
    jrt_lock(&token->lock);
    struct jrt_list_node *node = token->children.next;
    for (; node != &token->children; node = node->next) {
        janus_token *child = jrt_list_entry(node, janus_token, sibling);
        jrt_lock(&child->lock);
        bool ours = flip(child, JANUS_CANCEL_PARENT) && retain_if_alive(child);
        jrt_unlock(&child->lock);
        if (!ours) continue;
        last->queued = child;
        last = child;
    }
    jrt_unlock(&token->lock);
    return last;
}

/* Runs what is registered; we flipped the token. */
static void run_hooks(janus_token *token)
{
    jrt_lock(&token->lock);
    while (token->hook_newest != 0) {
        uint32_t    number = token->hook_newest;
        struct hook hook = token->hooks[number - 1];
        token->running = handle_of(number, &hook);
        token->runner = jrt_thread_self();
        drop_hook(token, number);
        jrt_unlock(&token->lock);
        call_plainly(hook.function, hook.argument);
        jrt_lock(&token->lock);
        token->running = 0;
        if (!token->awaited) continue;
        token->awaited = false;
        jrt_fetch_add_relaxed(&token->finished, 1u); /* relaxed: under the lock. */
        jrt_futex_wake(&token->finished, JRT_WAKE_ALL);
    }
    jrt_unlock(&token->lock);
}

janus_status janus_token_cancel(janus_token *token, janus_cancel_reason reason)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (token == NULL || reason == JANUS_CANCEL_NONE) return JANUS_INVALID;
    if ((unsigned)reason > JANUS_CANCEL_SHUTDOWN) return JANUS_INVALID;
    jrt_lock(&token->lock);
    bool ours = flip(token, reason);
    jrt_unlock(&token->lock);
    if (!ours) return JANUS_STATE;
    janus_token *last = janus_token_retain(token);
    for (janus_token *at = token; at != NULL; at = at->queued) last = flip_children(at, last);
    while (token != NULL) {
        run_hooks(token);
        janus_token *next = token->queued;
        janus_token_release(token);
        token = next;
    }
    return JANUS_OK;
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
        (void)janus_token_cancel(token, token->collected_reason);
        janus_token_release(token);
    }
}

/* Why a nursery is cancelled, NONE: it is not. A task that merely asks is not told by it. */
static janus_cancel_reason reason_of(const struct jrt_nursery *n)
{
    for (const struct jrt_nursery *at = n;; at = at->owner->nursery) {
        uint8_t state = jrt_load_acquire(&at->state); /* acquire: the reason was set before. */
        if (state == JANUS_NURSERY_CANCELLING || state == JANUS_NURSERY_CANCELLED) {
            if (at != n) return JANUS_CANCEL_PARENT;
            return (janus_cancel_reason)jrt_load_relaxed(&n->reason); /* relaxed: see above. */
        }
        if (state == JANUS_NURSERY_CLOSED || at->owner == NULL) return JANUS_CANCEL_NONE;
    }
}

janus_status janus_nursery_token(janus_nursery *nursery, janus_token **out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (nursery == NULL || out == NULL) return JANUS_INVALID;
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    janus_token        *spare = make();
    if (spare == NULL) return JANUS_NO_MEMORY;
    jrt_nursery_register(n); /* so that a cancel from above finds it */
    jrt_nursery_lock(n);
    if (n->token == NULL) {
        n->token = spare;
        n->bound = true;
        spare = NULL;
    }
    janus_token *token = janus_token_retain(n->token);
    jrt_nursery_unlock(n);
    janus_token_release(spare);
    /* A cancel that passed before the token was there is seen here: it set the state before it
     * took the locks that we took after it. */
    janus_cancel_reason reason = reason_of(n);
    if (reason != JANUS_CANCEL_NONE) (void)janus_token_cancel(token, reason);
    *out = token;
    return JANUS_OK;
}

/* A token that cancels a nursery; on n->bindings, the owner's alone. */
struct jrt_binding {
    struct jrt_binding *next;
    struct jrt_nursery *nursery;
    janus_token        *token; /* a reference of ours */
    janus_token_handle  handle;
};

static void cancel_bound(void *argument)
{
    struct jrt_binding *binding = argument;
    (void)jrt_nursery_cancel(binding->nursery, janus_token_reason(binding->token));
}

janus_status janus_nursery_cancel_with(janus_nursery *nursery, janus_token *token)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (nursery == NULL || token == NULL) return JANUS_INVALID;
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (!jrt_nursery_is_mine(n)) return JANUS_STATE;
    struct jrt_binding *binding = jrt_malloc(sizeof *binding);
    if (binding == NULL) return JANUS_NO_MEMORY;
    jrt_nursery_ready(n);
    *binding = (struct jrt_binding){n->bindings, n, token, 0};
    janus_token_handle handle = 0;
    janus_status       status = janus_token_on_cancel(token, cancel_bound, binding, &handle);
    if (status != JANUS_OK || handle == 0) { /* failed, or it was cancelled and has been told */
        free(binding);
        return status;
    }
    binding->handle = handle;
    (void)janus_token_retain(token);
    n->bindings = binding;
    n->bound = true;
    jrt_fetch_add_relaxed(&n->scheduler->outside, 1u); /* relaxed: a count. */
    return JANUS_OK;
}

void jrt_nursery_tokens_end(struct jrt_nursery *n)
{
    while (n->bindings != NULL) {
        struct jrt_binding *binding = n->bindings;
        n->bindings = binding->next;
        (void)janus_token_remove(binding->token, binding->handle);
        janus_token_release(binding->token);
        free(binding);
        jrt_outside_less(n->scheduler);
    }
    janus_token_release(n->token);
    n->token = NULL;
}

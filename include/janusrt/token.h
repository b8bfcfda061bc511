/* SPDX-License-Identifier: MIT */
/*
 * Cancel tokens: a flag that is raised once, with callbacks. Tokens are independent of tasks and
 * schedulers. Any thread may hold, query and cancel a token.
 *
 *     janus_token *token;
 *     if (janus_token_create(&token) != JANUS_OK) ...
 *     janus_nursery_cancel_on(nursery, token); // from now on the token ends the nursery
 *     ... any thread: janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT);
 *     janus_token_release(token);
 *
 * References are counted. create, child, retain and janus_nursery_token each give the caller one
 * reference, which it gives back with release. A child holds its parent, but a parent does not hold
 * its children. Without references the token is freed, and its callbacks never run.
 *
 * A cancel first marks the token and everything below it. Then it runs the callbacks, the token's
 * before its children's, and for each token the last registered first.
 *
 * A callback runs at most once, on the thread that cancels, with no lock held. For a nursery's
 * deadline that is a worker's thread. Inside a callback the thread counts as a plain thread, even
 * if a task cancelled. The callback may cancel, wake, spawn and use tokens. It never waits: calls
 * that would wait return DEADLINE. If it panics or overflows the stack, it ends alone. The library
 * reports that as a panic, and the other callbacks run.
 *
 * A callback that a task registers runs for that task:
 * - The task pays for the registration with its memory budget.
 * - The callback spawns only where the task may spawn.
 * - It makes nothing: calls that make tokens, callbacks or channels return STATE.
 * - It has 1,000 ops; each check and each call of the library costs one. If it uses them up, it
 *   ends there, and the canceller goes on.
 * - It runs only while the task lives. The task's end waits for a callback that runs.
 */
#ifndef JANUSRT_TOKEN_H
#define JANUSRT_TOKEN_H

#include <janusrt/export.h>
#include <janusrt/nursery.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct janus_token janus_token;

/* Names one callback of one token. 0 names none. The library refuses a stale handle. */
typedef uint64_t janus_token_handle;

JANUS_BEGIN_DECLS

/*
 * Creates a token that is not cancelled.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    *out is a reference for the caller, to be given to janus_token_release.
 * Cost:    an allocation.
 * Errors:  INVALID    `out` is NULL
 *          NO_MEMORY  memory was refused
 *          BUDGET_EXHAUSTED  the calling task's memory budget has too little left
 *          STATE      inside a callback that a task registered
 */
JANUS_NODISCARD JANUS_API janus_status janus_token_create(janus_token **out);

/*
 * Creates a token that is cancelled with its parent (reason PARENT), and can be cancelled alone. If
 * the parent is already cancelled, so is the child.
 *
 * Context: any thread or task that holds a reference to `parent`.
 * Yields:  only if the turn is over.
 * Owns:    *out is a reference for the caller; the child holds its parent.
 * Cost:    an allocation.
 * Errors:  INVALID    an argument is NULL
 *          NO_MEMORY, BUDGET_EXHAUSTED, STATE  as janus_token_create
 */
JANUS_NODISCARD JANUS_API janus_status janus_token_create_child(janus_token  *parent,
                                                                janus_token **out);

/*
 * Takes one more reference and returns `token`.
 *
 * Context: any thread or task that holds a reference.
 * Yields:  never.
 * Owns:    the new reference is the caller's.
 * Cost:    an atomic operation.
 * Errors:  none; NULL gives NULL.
 */
JANUS_API janus_token *janus_token_retain(janus_token *token);

/*
 * Gives one reference back. The last one frees the token, and its callbacks never run.
 *
 * Context: any thread or task; inside a callback too.
 * Yields:  only if the turn is over.
 * Owns:    takes the caller's reference; NULL does nothing.
 * Cost:    an atomic operation; the last reference takes the parent's lock.
 * Errors:  none.
 */
JANUS_API void janus_token_release(janus_token *token);

/*
 * Whether the token was cancelled.
 *
 * Context: any thread or task that holds a reference.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; NULL gives false.
 */
JANUS_API bool janus_token_is_cancelled(const janus_token *token);

/*
 * Reports a cancel of the token as a status. A task that got CANCELLED here and returns it has
 * obeyed and has not failed.
 *
 * Context: any thread or task that holds a reference.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  CANCELLED  it was cancelled
 */
JANUS_NODISCARD JANUS_API janus_status janus_token_check(const janus_token *token);

/*
 * Why the token was cancelled; NONE while it is not. PARENT: a token above it was cancelled.
 *
 * Context: any thread or task that holds a reference.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; NULL gives NONE.
 */
JANUS_API janus_cancel_reason janus_token_reason(const janus_token *token);

/*
 * Cancels the token and everything below it, and runs their callbacks. The first call decides the
 * reason. Cancelling a nursery's token does not cancel the nursery.
 *
 * Context: any thread or task that holds a reference; inside a callback too.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock for each token below, and the callbacks.
 * Errors:  STATE    the token was cancelled before; nothing happened
 *          INVALID  `token` is NULL, or `reason` is not a reason to cancel
 */
JANUS_API janus_status janus_token_cancel(janus_token *token, janus_cancel_reason reason);

/*
 * Registers `function(argument)` to run when the token is cancelled. If the token is already
 * cancelled, the function runs at once. A token takes any number of callbacks. *out (NULL: not
 * wanted) names the callback for janus_token_remove; it is 0 if the function has run.
 *
 * Context: any thread or task that holds a reference; inside a callback too.
 * Yields:  only if the turn is over.
 * Owns:    `argument` stays the caller's and must live until the callback has run, was removed, or
 *          the token was freed. The registration does not hold the token.
 * Cost:    a lock; memory grows by doubling.
 * Errors:  INVALID    `token` or `function` is NULL
 *          NO_MEMORY  memory was refused; not registered
 *          BUDGET_EXHAUSTED, STATE  as janus_token_create; not registered
 */
JANUS_NODISCARD JANUS_API janus_status janus_token_on_cancel(janus_token *token,
                                                             void         (*function)(void *),
                                                             void        *argument,
                                                             janus_token_handle *out);

/*
 * Removes a callback. When the call returns, the callback is not running and never will. If another
 * thread runs it, the call waits for its end. Inside the callback itself it does not wait.
 *
 * Context: any thread or task that holds a reference; not while holding what the callback waits
 *          for.
 * Yields:  only if the turn is over; it may block the thread for as long as the callback takes.
 * Owns:    the argument given to janus_token_on_cancel is free again.
 * Cost:    a lock.
 * Errors:  STALE    the callback has run, it runs and made this call, or the handle is unknown
 *          STATE    the callback runs on another thread, and the caller is a callback, which does
 *                   not wait
 *          INVALID  `token` is NULL
 */
JANUS_API janus_status janus_token_remove(janus_token *token, janus_token_handle handle);

/*
 * Gets the nursery's token. It is cancelled when the nursery, or any around it, is cancelled, with
 * the same reason. All calls give the same token. It may outlive the nursery. If the nursery ends
 * without a cancel, the token is never cancelled.
 *
 * Context: the nursery's owner, or any task below it.
 * Yields:  only if the turn is over.
 * Owns:    *out is a reference for the caller, to be given to janus_token_release.
 * Cost:    the first time an allocation, and a lock for each nursery around; then a lock.
 * Errors:  INVALID    an argument is NULL
 *          NO_MEMORY, BUDGET_EXHAUSTED, STATE  as janus_token_create
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_token(janus_nursery *nursery,
                                                           janus_token  **out);

/*
 * Binds the nursery to a token. When the token is cancelled, the nursery is, with the token's
 * reason; at once if it already is. A nursery takes any number of tokens, and a token any number of
 * nurseries.
 *
 * Context: the nursery's owner.
 * Yields:  only if the turn is over.
 * Owns:    the nursery holds the token until it ends.
 * Cost:    an allocation and a lock. Until the nursery ends, the scheduler reports no deadlock,
 *          because a holder of the token can still act.
 * Errors:  STATE      not the owner
 *          INVALID    an argument is NULL
 *          NO_MEMORY  memory was refused; not bound
 *          BUDGET_EXHAUSTED  as janus_token_create; not bound
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_cancel_on(janus_nursery *nursery,
                                                               janus_token   *token);

/*
 * Cancels one child; its siblings go on. The child's waits return CANCELLED, and all nurseries that
 * it has open are cancelled, with the reason EXPLICIT. A child that has not begun never begins. An
 * exhausted child wakes and gets one slice of ops to clean up. A child that then returns CANCELLED
 * has obeyed: the nursery's result does not change, and janus_join returns CHILD_CANCELLED. A
 * second cancel of the same child changes nothing.
 *
 * Context: the owner, task or thread. `child` comes from janus_spawn_with or janus_task_current_id.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    three locks, a barrier on all workers, and a visit to each task below the child that
 *          ever waited. From then on each wait of a child of this nursery costs some ns more.
 * Errors:  STALE      no such child, or it has ended; nothing happened
 *          STATE      not the owner
 *          INVALID    `nursery` is NULL
 *          NO_MEMORY  memory was refused; nothing happened
 */
JANUS_API janus_status janus_nursery_cancel_child(janus_nursery *nursery, janus_task_id child);

JANUS_END_DECLS
#endif

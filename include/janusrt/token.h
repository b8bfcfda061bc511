/* SPDX-License-Identifier: MIT */
/*
 * Cancel tokens: a flag that is raised once, and whom to tell. Tokens are independent of tasks and
 * schedulers; any thread may hold, ask and cancel one.
 *
 *     janus_token *token;
 *     if (janus_token_create(&token) != JANUS_OK) ...
 *     janus_nursery_cancel_with(nursery, token); // from now on the token ends the nursery
 *     ... any thread: janus_token_cancel(token, JANUS_CANCEL_EXPLICIT);
 *     janus_token_release(token);
 *
 * References are counted. create, child, retain and janus_nursery_token each give the caller one
 * reference, which it gives back with release. A child keeps its parent, a parent does not keep its
 * children. A token that nobody holds any more is gone, and its callbacks with it: they never run.
 *
 * Cancelling marks the token and everything below it first, then runs the callbacks, the token's
 * before its children's and of each token the last registered first.
 *
 * A callback runs at most once, on the thread that cancels (for a nursery's deadline that is one of
 * the workers), with no lock held. Inside, the thread counts as a plain one, not as a task, whoever
 * called: the callback may cancel, wake, spawn and use tokens, this one too. It waits for nothing:
 * calls that would wait return DEADLINE. A callback that panics or uses up the stack ends alone. It
 * is reported as a panic of a task is, and the other callbacks run.
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

/* Names one callback of one token for ever; 0 names none. A stale one is refused. */
typedef uint64_t janus_token_handle;

JANUS_BEGIN_DECLS

/*
 * Makes a token that is not cancelled.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    *out is a reference of the caller's, for janus_token_release.
 * Cost:    an allocation.
 * Errors:  INVALID    `out` is NULL
 *          NO_MEMORY  memory was refused
 *          BUDGET_EXHAUSTED  the calling task's memory budget has too little left
 *          STATE      inside a callback that a task registered
 */
JANUS_NODISCARD JANUS_API janus_status janus_token_create(janus_token **out);

/*
 * Makes a token that is cancelled with its parent (reason PARENT), and can be cancelled alone. If
 * the parent was cancelled already, so is the child.
 *
 * Context: any thread or task that holds a reference to `parent`.
 * Yields:  only if the turn is over.
 * Owns:    *out is a reference of the caller's; the child keeps the parent by itself.
 * Cost:    an allocation.
 * Errors:  INVALID    an argument is NULL
 *          NO_MEMORY, BUDGET_EXHAUSTED, STATE  as janus_token_create
 */
JANUS_NODISCARD JANUS_API janus_status janus_token_child(janus_token *parent, janus_token **out);

/*
 * One more reference; returns `token`.
 *
 * Context: any thread or task that holds a reference.
 * Yields:  never.
 * Owns:    the new reference is the caller's.
 * Cost:    an atomic operation.
 * Errors:  none; NULL gives NULL.
 */
JANUS_API janus_token *janus_token_retain(janus_token *token);

/*
 * Gives one reference back. With the last the token is gone, and its callbacks never run.
 *
 * Context: any thread or task; inside a callback too.
 * Yields:  only if the turn is over.
 * Owns:    takes the caller's reference; NULL does nothing.
 * Cost:    an atomic operation; the last one takes the parent's lock.
 * Errors:  none.
 */
JANUS_API void janus_token_release(janus_token *token);

/*
 * Whether it was cancelled.
 *
 * Context: any thread or task that holds a reference.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; NULL gives false.
 */
JANUS_API bool janus_token_is_cancelled(const janus_token *token);

/*
 * The same as a status, to be returned as it is: a task that was told so, and returns CANCELLED,
 * has obeyed and has not failed.
 *
 * Context: any thread or task that holds a reference.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  CANCELLED  it was cancelled
 */
JANUS_API janus_status janus_token_check(const janus_token *token);

/*
 * Why it was cancelled; NONE while it is not. PARENT: something above it was.
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
 * Errors:  STATE    it was cancelled before; nothing happened
 *          INVALID  `token` is NULL, or `reason` is NONE or unknown
 */
JANUS_API janus_status janus_token_cancel(janus_token *token, janus_cancel_reason reason);

/*
 * Has `function(argument)` called when the token is cancelled. If it was already, the call happens
 * here and now. Any number can be registered. *out (NULL: not wanted) names the callback for
 * janus_token_remove; it is 0 when the call has happened.
 *
 * Context: any thread or task that holds a reference; inside a callback too.
 * Yields:  only if the turn is over.
 * Owns:    `argument` stays the caller's and must live until the callback has run, was removed, or
 *          the token is gone. The registration does not keep the token.
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
 * Takes a callback back. When it returns, the callback is not running and never will: if another
 * thread is in it, this one waits for its end. Only inside the callback itself it does not wait.
 *
 * Context: any thread or task that holds a reference; not while holding what the callback waits
 *          for.
 * Yields:  only if the turn is over; it may block the thread for as long as the callback takes.
 * Owns:    the argument given to janus_token_on_cancel is free again.
 * Cost:    a lock.
 * Errors:  STALE    it ran, or runs and called this; or there is none of that name
 *          STATE    it runs on another thread, and the caller is a callback, which does not wait
 *          INVALID  `token` is NULL
 */
JANUS_API janus_status janus_token_remove(janus_token *token, janus_token_handle handle);

/*
 * The nursery's token: it is cancelled when the nursery is, by itself or by something around it,
 * with the same reason. All calls give the same token. It outlives the nursery; after a nursery
 * that ended without being cancelled it is never cancelled.
 *
 * Context: the nursery's owner, or any task below it.
 * Yields:  only if the turn is over.
 * Owns:    *out is a reference of the caller's, for janus_token_release.
 * Cost:    the first time an allocation, and a lock for each nursery around; then a lock.
 * Errors:  INVALID    an argument is NULL
 *          NO_MEMORY, BUDGET_EXHAUSTED, STATE  as janus_token_create
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_token(janus_nursery *nursery,
                                                           janus_token  **out);

/*
 * Cancels the nursery when the token is, with the token's reason; at once if it was already. Any
 * number of tokens may be set on a nursery, and one token on any number of nurseries.
 *
 * Context: the nursery's owner.
 * Yields:  only if the turn is over.
 * Owns:    the nursery keeps the token until it ends.
 * Cost:    an allocation and a lock. While it lasts the scheduler sees no deadlock, because
 *          whoever holds the token can still act.
 * Errors:  STATE      not the owner
 *          INVALID    an argument is NULL
 *          NO_MEMORY  memory was refused; not bound
 *          BUDGET_EXHAUSTED  as janus_token_create; not bound
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_cancel_with(janus_nursery *nursery,
                                                                 janus_token   *token);

/*
 * Tells one child to end; its siblings go on. The child's waits return CANCELLED, and all nurseries
 * that it has open are cancelled, with the reason EXPLICIT. A child that has not begun never does.
 * One that is exhausted is woken, and gets a little to clean up with. A child that then returns
 * CANCELLED has obeyed: the nursery's result does not change, and janus_join returns
 * CHILD_CANCELLED. A second cancel of the same child changes nothing.
 *
 * Context: the owner, task or thread; `child` as janus_spawn_with or janus_task_current_id told it.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    three locks, a barrier on all workers, and a visit to each task below the child that
 *          ever waited. From then on each wait of a child of this nursery costs some ns more.
 * Errors:  STALE      no such child, or it has ended; nothing happened
 *          STATE      not the owner
 *          INVALID    `nursery` is NULL
 *          NO_MEMORY  no memory to note it; nothing happened
 */
JANUS_API janus_status janus_nursery_cancel_child(janus_nursery *nursery, janus_task_id child);

JANUS_END_DECLS
#endif

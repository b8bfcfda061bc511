/* SPDX-License-Identifier: MIT */
/*
 * Capabilities inside a scheduler. Only the root authority can fill its table. The creator of the
 * scheduler takes the authority once, before anything runs; with janus_run, the first task does. A
 * task holds what was minted for it or delegated to it. It binds a capability to a nursery
 * (janus_nursery_options.spawn_cap) or to one child (janus_spawn_options), and everything below
 * inherits it.
 *
 *     static int64_t sandbox(void *argument)              // :sovereign, the first task
 *     {
 *         janus_authority *root;
 *         janus_cap        spawn;
 *         janus_cap_limits limits = {.spawn = {.max_tasks = 10, .task_budget = {.ops = 50000}}};
 *         janus_authority_take(NULL, &root);
 *         janus_cap_mint(root, 0, JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
 *                        .rights = JANUS_RIGHTS_ALL, .limits = &limits), &spawn);
 *         janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn));
 *         ...
 *
 * The calls are those of cap.h, for the scheduler's table. The library fills in the holder: the
 * current task, or JANUS_HOLDER_OUTSIDE for plain threads, which name the scheduler.
 */
#ifndef JANUSRT_GRANT_H
#define JANUSRT_GRANT_H

#include <janusrt/cap.h>
#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/scheduler.h>
#include <janusrt/status.h>
#include <janusrt/task.h>

/* The holder that stands for all plain threads together. */
#define JANUS_HOLDER_OUTSIDE UINT64_C(1)

/* What a task, or the children of a nursery, may do. */
typedef struct janus_context_info {
    size_t           struct_bytes; /* sizeof this struct; JANUS_CONTEXT_INFO sets it */
    uint32_t         kinds;        /* bits 1 << janus_cap_kind, implicit ones included */
    uint32_t         implicit;     /* of these, the kinds that the profile gives */
    uint64_t         cap_ids[JANUS_CAP_KINDS]; /* by kind, generation << 32 | slot; 0: not held */
    uint64_t         tasks_alive; /* started under the spawn capability in this context */
    janus_budget     task_budget; /* of a child that asks for no budget */
    janus_exhaustion exhaustion;
    janus_backend    backend;
    uint64_t         max_tasks; /* of the scheduler, alive at a time; 2^60: any number. 0: the kind
                                   spawn is not implicit here, so a capability limits it */
} janus_context_info;
#define JANUS_CONTEXT_INFO() JANUS_SIZED_(janus_context_info)

JANUS_BEGIN_DECLS

/*
 * Takes the root authority, which only one caller gets. Its owner can make any capability and
 * delegate it.
 *
 * Context: the thread that opened `scheduler`, before janus_scheduler_start. With NULL, the first
 *          task of janus_run.
 * Yields:  only if the turn is over.
 * Owns:    *out lives as long as the scheduler.
 * Cost:    a lock.
 * Errors:  NO_AUTHORITY  too late, taken before, or not the first task
 *          INVALID       `out` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_authority_take(janus_scheduler  *scheduler,
                                                            janus_authority **out);

/*
 * Mints a capability with the authority. `holder` is a task's id, JANUS_HOLDER_OUTSIDE, or 0 for
 * the caller.
 *
 * Context: any task or thread that has the authority.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cap_mint_in.
 * Cost:    as janus_cap_mint_in.
 * Errors:  as janus_cap_mint_in
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_mint(const janus_authority *authority,
                                                      uint64_t holder, const janus_cap_grant *grant,
                                                      janus_cap *out);

/*
 * Derives a narrower capability from a capability of the current task. If the task is a child of a
 * nursery with terms, the end of that nursery revokes it. If the task was given its own
 * capabilities, its end does.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cap_attenuate_in.
 * Cost:    as janus_cap_attenuate_in.
 * Errors:  as janus_cap_attenuate_in, and
 *          STATE  not inside a task
 *          FULL   a nursery around the task has max_derived_caps derived capabilities, or the table
 *                 is full; janus_explain says which
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_attenuate(janus_cap              cap,
                                                           const janus_cap_grant *grant,
                                                           janus_cap             *out);

/*
 * Derives a capability for another task, if the original may be delegated.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cap_delegate_in.
 * Cost:    as janus_cap_delegate_in.
 * Errors:  as janus_cap_delegate_in; STATE and FULL as janus_cap_attenuate
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_delegate(janus_cap cap, janus_task_id to,
                                                          const janus_cap_grant *grant,
                                                          janus_cap             *out);

/*
 * Checks a capability of the current task: see janus_cap_check_in.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    as janus_cap_check_in.
 * Errors:  as janus_cap_check_in; STATE  not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_check(janus_cap cap, janus_cap_kind kind,
                                                       uint32_t rights);

/*
 * Reads a capability of the current task: see janus_cap_inspect_in.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    as janus_cap_inspect_in.
 * Errors:  as janus_cap_inspect_in; STATE  not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_inspect(janus_cap cap, janus_cap_info *out);

/*
 * Revokes `victim` and everything derived from it: see janus_cap_revoke_in. The current task holds
 * `with`, and `victim` is `with` or was derived from it. Tasks that run under `victim` go on, but
 * nothing new starts.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    as janus_cap_revoke_in.
 * Errors:  as janus_cap_revoke_in; STATE  not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_revoke(janus_cap victim, janus_cap with);

/*
 * Gives a capability back: see janus_cap_release_in. When a task ends, its capabilities become
 * useless but keep their places in the table. A revocation from above, or the end of the nursery
 * under whose terms they were derived, frees the places.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    takes the capability.
 * Cost:    as janus_cap_release_in.
 * Errors:  as janus_cap_release_in; STATE  not inside a task
 */
JANUS_API janus_status janus_cap_release(janus_cap cap);

/*
 * Reads the context of the current task: the capabilities and limits under which it starts children
 * by default.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; set out->struct_bytes before.
 * Cost:    some loads.
 * Errors:  STATE  not inside a task; INVALID  `out` is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_context_inspect(janus_context_info *out);

/*
 * Reads the counters of the scheduler's table: see janus_cap_table_inspect.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    a lock.
 * Errors:  as janus_cap_table_inspect
 */
JANUS_NODISCARD JANUS_API janus_status janus_scheduler_caps_inspect(janus_scheduler      *scheduler,
                                                                    janus_cap_table_info *out);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * Capabilities inside a scheduler. Its table is filled only with the root authority, which whoever
 * makes the scheduler takes once, before anything runs; or, with janus_run, the first task. Tasks
 * hold what was minted for them or delegated to them; they start children under what they bind to a
 * nursery (janus_nursery_options.spawn_cap ...) or to one child (janus_spawn_options, with_cap);
 * everything below inherits it.
 *
 *     static int64_t sandbox(void *argument)              // :sovereign, the first task
 *     {
 *         janus_authority *root;
 *         janus_cap        spawn;
 *         janus_cap_limits limits = {.spawn = {.max_tasks = 10, .task_budget = {.ops = 50000}}};
 *         janus_authority_take(NULL, &root);
 *         janus_own_mint(root, 0, JANUS_CAP_GRANT(.kind = JANUS_CAP_SPAWN,
 *                        .rights = JANUS_RIGHTS_ALL, .limits = &limits), &spawn);
 *         janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn));
 *         ...
 *
 * The calls are those of cap.h for the scheduler's table; who asks is filled in: the current task,
 * or JANUS_HOLDER_OUTSIDE for threads that are no workers, which name the scheduler.
 */
#ifndef JANUSRT_GRANT_H
#define JANUSRT_GRANT_H

#include <janusrt/cap.h>
#include <janusrt/export.h>
#include <janusrt/scheduler.h>
#include <janusrt/status.h>
#include <janusrt/task.h>

/* All threads that are no workers, together. */
#define JANUS_HOLDER_OUTSIDE UINT64_C(1)

/* What a task, or a nursery's children, may do; of each kind. */
typedef struct janus_context_info {
    size_t           struct_bytes; /* in: sizeof this struct */
    uint32_t         kinds;        /* bits 1 << janus_cap_kind: what is held, implicitly or not */
    uint32_t         implicit;     /* of these, what the profile gives without a capability */
    uint64_t         cap_ids[5];   /* by kind: generation << 32 | slot of what is held; else 0 */
    uint64_t         tasks_alive;  /* started under the spawn capability, here */
    janus_budget     task_budget;  /* a child's, where it asks for nothing */
    janus_exhaustion exhaustion;
    janus_backend    backend;
} janus_context_info;

JANUS_BEGIN_DECLS

/*
 * Takes the root authority. Once: whoever has it can make any capability and hand it on.
 *
 * Context: the thread that made `scheduler`, before janus_scheduler_start; or with NULL, the first
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
 * Makes a capability from nothing but the authority. `holder`: a task's id, JANUS_HOLDER_OUTSIDE,
 * or 0, who calls.
 *
 * Context: anyone who has the authority.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cap_mint.
 * Cost:    as janus_cap_mint.
 * Errors:  as janus_cap_mint
 */
JANUS_NODISCARD JANUS_API janus_status janus_own_mint(const janus_authority *authority,
                                                      uint64_t holder, const janus_cap_grant *grant,
                                                      janus_cap *out);

/*
 * Derives a narrower capability from one that the current task holds. What a child of a nursery
 * with terms derives is revoked when that nursery ends; what a child with capabilities of its own
 * derives is revoked when the child ends.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cap_attenuate.
 * Cost:    as janus_cap_attenuate.
 * Errors:  as janus_cap_attenuate; STATE  not inside a task
 *          FULL  the nursery's terms, or those around, have options.max_derived_caps derived
 *                capabilities, or the table is full; janus_explain names whose limit was met
 */
JANUS_NODISCARD JANUS_API janus_status janus_own_attenuate(janus_cap              cap,
                                                           const janus_cap_grant *grant,
                                                           janus_cap             *out);

/*
 * Derives one for another task, if that is allowed.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cap_delegate.
 * Cost:    as janus_cap_delegate.
 * Errors:  as janus_cap_delegate; STATE  not inside a task; FULL  as janus_own_attenuate
 */
JANUS_NODISCARD JANUS_API janus_status janus_own_delegate(janus_cap cap, janus_task_id to,
                                                          const janus_cap_grant *grant,
                                                          janus_cap             *out);

/*
 * Whether the current task may: see janus_cap_check.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    as janus_cap_check.
 * Errors:  as janus_cap_check; STATE  not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_own_check(janus_cap cap, janus_cap_kind kind,
                                                       uint32_t rights);

/*
 * What a capability of the current task is: see janus_cap_read.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    as janus_cap_read.
 * Errors:  as janus_cap_read; STATE  not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_own_read(janus_cap cap, janus_cap_info *out);

/*
 * Revokes `victim` and all that was derived from it, with `with`, which the current task holds and
 * which `victim` is or was derived from: see janus_cap_revoke. What runs under it goes on; nothing
 * new is started.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    as janus_cap_revoke.
 * Errors:  as janus_cap_revoke; STATE  not inside a task
 */
JANUS_API janus_status janus_own_revoke(janus_cap victim, janus_cap with);

/*
 * Gives a capability up: see janus_cap_release. Those of a task that has ended are of no use to
 * anybody. Their places are lost until they are released or revoked from above, or the terms end
 * under which they were derived.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    takes the capability.
 * Cost:    as janus_cap_release.
 * Errors:  as janus_cap_release; STATE  not inside a task
 */
JANUS_API janus_status janus_own_release(janus_cap cap);

/*
 * The context of the current task: what it starts things under where it says nothing.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; set out->struct_bytes before.
 * Cost:    some loads.
 * Errors:  STATE  not inside a task; INVALID  `out` is NULL or too short
 */
JANUS_API janus_status janus_context_read(janus_context_info *out);

/*
 * The books of the scheduler's table: see janus_cap_stats_read.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    a lock.
 * Errors:  as janus_cap_stats_read
 */
JANUS_API janus_status janus_scheduler_cap_stats(janus_scheduler *scheduler, janus_cap_stats *out);

JANUS_END_DECLS
#endif

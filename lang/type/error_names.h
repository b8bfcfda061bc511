/* SPDX-License-Identifier: MIT */
/* The names of the runtime's statuses as errors of the language: error.Closed. */
#ifndef JANUSRT_LANG_TYPE_ERROR_NAMES_H
#define JANUSRT_LANG_TYPE_ERROR_NAMES_H

#include <janusrt/status.h>

/* clang-format off */
#define JL_ERROR_NAMES(X) \
    X(Cancelled, JANUS_CANCELLED) \
    X(Invalid, JANUS_INVALID) \
    X(State, JANUS_STATE) \
    X(NoMemory, JANUS_NO_MEMORY) \
    X(Full, JANUS_FULL) \
    X(Unavailable, JANUS_UNAVAILABLE) \
    X(Closed, JANUS_CLOSED) \
    X(Stale, JANUS_STALE) \
    X(Profile, JANUS_PROFILE) \
    X(ChildFailed, JANUS_CHILD_FAILED) \
    X(Deadlock, JANUS_DEADLOCK) \
    X(NurseryNotActive, JANUS_NO_NURSERY) \
    X(Deadline, JANUS_DEADLINE) \
    X(WouldWait, JANUS_WOULD_WAIT) \
    X(ChildCancelled, JANUS_CHILD_CANCELLED) \
    X(Reset, JANUS_RESET) \
    X(Refused, JANUS_REFUSED) \
    X(Unreachable, JANUS_UNREACHABLE) \
    X(InUse, JANUS_IN_USE) \
    X(NotFound, JANUS_NOT_FOUND) \
    X(Exists, JANUS_EXISTS) \
    X(Denied, JANUS_DENIED) \
    X(Broken, JANUS_BROKEN) \
    X(System, JANUS_SYSTEM) \
    X(HandleLimitExceeded, JANUS_HANDLE_LIMIT) \
    X(Gone, JANUS_GONE) \
    X(Restarted, JANUS_RESTARTED) \
    X(NoReply, JANUS_NO_REPLY) \
    X(Starting, JANUS_STARTING) \
    X(Stuck, JANUS_STUCK) \
    X(TooOften, JANUS_TOO_OFTEN) \
    X(Ignored, JANUS_IGNORED) \
    X(NoNameCapability, JANUS_NO_NAME_CAP) \
    X(NoNetCapability, JANUS_NO_NET_CAP) \
    X(NoFileCapability, JANUS_NO_FILE_CAP) \
    X(NoProcessCapability, JANUS_NO_PROCESS_CAP) \
    X(NoSpawnCapability, JANUS_NO_SPAWN_CAP) \
    X(NoBudgetCapability, JANUS_NO_BUDGET_CAP) \
    X(NoChannelCapability, JANUS_NO_CHANNEL_CAP) \
    X(NoExecutorCapability, JANUS_NO_EXECUTOR_CAP) \
    X(CapabilityForged, JANUS_CAP_FORGED) \
    X(CapabilityStale, JANUS_CAP_STALE) \
    X(CapabilityForeign, JANUS_CAP_FOREIGN) \
    X(CapabilityRevoked, JANUS_CAP_REVOKED) \
    X(CapabilityKind, JANUS_CAP_KIND) \
    X(CapabilityRight, JANUS_CAP_RIGHT) \
    X(BudgetLimitExceeded, JANUS_CAP_LIMIT) \
    X(CapabilityWidens, JANUS_CAP_WIDENS) \
    X(NotDelegatable, JANUS_NOT_DELEGATABLE) \
    X(NoAuthority, JANUS_NO_AUTHORITY) \
    X(TaskLimitExceeded, JANUS_TASK_LIMIT) \
    X(ChannelLimitExceeded, JANUS_CHANNEL_LIMIT) \
    X(AuditFull, JANUS_AUDIT_FULL) \
    X(BudgetExhausted, JANUS_BUDGET_EXHAUSTED) \
    X(SpawnBudgetExhausted, JANUS_SPAWN_BUDGET)
/* clang-format on */

#endif

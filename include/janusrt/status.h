/* SPDX-License-Identifier: MIT */
/*
 * The list of statuses. Every call that can fail returns one. The library keeps none in a global
 * and never uses errno. Zero is success. A negative status means that the call was refused or
 * failed. The only positive status is CLAMPED: a request for an amount was granted in part. No call
 * that acquires something (opens, locks, takes) returns a positive status: `if (status != JANUS_OK)
 * return status;` never leaks.
 *
 * -1 to -99 belong to the library. A program uses -100 and below for its own errors, so that a task
 * can return both.
 */
#ifndef JANUSRT_STATUS_H
#define JANUSRT_STATUS_H

#include <janusrt/export.h>

/* clang-format off */
#define JANUS_STATUS_MAP(X)                                                                        \
    X(OK,          0, "success")                                                                   \
    X(CANCELLED,  -1, "cancelled before it was done")                                              \
    X(INVALID,    -2, "an argument is outside what the call accepts")                              \
    X(STATE,      -3, "the object is not in a state that allows this")                             \
    X(NO_MEMORY,  -4, "the system refused memory")                                                 \
    X(FULL,       -5, "a limit set at creation is reached")                                        \
    X(UNAVAILABLE,-6, "this machine or build cannot do it")                                        \
    X(CLOSED,     -7, "it is closed and takes no more")                                            \
    X(STALE,      -8, "the object of this handle has ended")                                       \
    X(PROFILE,    -9, "the profile does not allow this")                                           \
    X(CHILD_FAILED,-10, "a child task failed; the result says which and how")                      \
    X(DEADLOCK,  -11, "every task waits, and no event can come")                                   \
    X(NO_NURSERY,-12, "no nursery is open here")                                                   \
    X(DEADLINE,  -13, "the deadline passed first")                                                 \
    X(WOULD_WAIT,-14, "the call would have to wait")                                               \
    X(CHILD_CANCELLED,-15, "the child was cancelled, and ended for that reason")                   \
    X(RESET,     -16, "the other end has reset the connection")                                    \
    X(REFUSED,   -17, "nobody takes the connection there")                                         \
    X(UNREACHABLE,-18, "there is no way to the address, or nobody answers")                        \
    X(IN_USE,    -19, "somebody else uses this address or name")                                   \
    X(NOT_FOUND, -20, "there is nothing with this name")                                           \
    X(EXISTS,    -21, "there is something with this name already")                                 \
    X(DENIED,    -22, "the system does not permit this")                                           \
    X(BROKEN,    -23, "nobody reads at the other end any more")                                    \
    X(SYSTEM,    -24, "the system reported an error; janus_explain names it")                      \
    X(HANDLE_LIMIT,-25, "as many handles live as the limit allows")                                \
    X(GONE,      -26, "the actor ended before it answered")                                        \
    X(RESTARTED, -27, "the actor failed before it answered, and is started again")                 \
    X(NO_REPLY,  -28, "the actor handled the message and gives no answer")                         \
    X(STARTING,  -29, "it is just being started")                                                  \
    X(STUCK,     -30, "it was told to end and does not")                                           \
    X(TOO_OFTEN, -31, "it failed more often than its supervisor allows")                           \
    X(IGNORED,   -32, "it found nothing to do and was not started")                                \
    X(NO_NAME_CAP,    -36, "no capability for names is held here")                                 \
    X(NO_NET_CAP,     -37, "no capability for the network is held here")                           \
    X(NO_FILE_CAP,    -38, "no capability for files is held here")                                 \
    X(NO_PROCESS_CAP, -39, "no capability for processes is held here")                             \
    X(NO_SPAWN_CAP,   -40, "no capability to spawn is held here")                                  \
    X(NO_BUDGET_CAP,  -41, "no capability for budgets is held here")                               \
    X(NO_CHANNEL_CAP, -42, "no capability for channels is held here")                              \
    X(NO_EXECUTOR_CAP,-43, "no capability for executors is held here")                             \
    X(CAP_FORGED,     -44, "the library never gave out this handle")                               \
    X(CAP_STALE,      -45, "the capability was released, or its place is used again")              \
    X(CAP_FOREIGN,    -46, "the capability belongs to another holder")                             \
    X(CAP_REVOKED,    -47, "the capability was revoked")                                           \
    X(CAP_KIND,       -48, "the capability is of another kind")                                    \
    X(CAP_RIGHT,      -49, "the capability lacks a right that this needs")                         \
    X(CAP_LIMIT,      -50, "the capability's limits do not allow this")                            \
    X(CAP_WIDENS,     -51, "a derived capability can only be narrower")                            \
    X(NOT_DELEGATABLE,-52, "the capability must not be given to another holder")                   \
    X(NO_AUTHORITY,   -53, "only the root authority may do this")                                  \
    X(TASK_LIMIT,     -54, "as many tasks live as the limit allows")                               \
    X(CHANNEL_LIMIT,  -55, "the limit of live channels is reached")                                \
    X(AUDIT_FULL,     -56, "the audit log is full and must record this")                           \
    X(BUDGET_EXHAUSTED,-57, "the budget does not allow this, and nobody gives more")               \
    X(SPAWN_BUDGET,   -58, "the pool has no budget for another child")                             \
    X(CLAMPED,          1, "granted, but less than was asked for")
/* clang-format on */

typedef enum janus_status {
#define JANUS_STATUS_ENUM(name, value, text) JANUS_##name = (value),
    JANUS_STATUS_MAP(JANUS_STATUS_ENUM)
#undef JANUS_STATUS_ENUM
} janus_status;

JANUS_BEGIN_DECLS

/*
 * What a status means, in a few words: "the system refused memory".
 *
 * Context: anyone, any thread, signal handlers too.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  none; a number that is no status gives "not a janus_status".
 */
JANUS_API const char *janus_status_text(janus_status status);

/*
 * The name of a status as the header spells it: "JANUS_NO_MEMORY".
 *
 * Context: anyone, any thread, signal handlers too.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  none; a number that is no status gives "JANUS_?".
 */
JANUS_API const char *janus_status_name(janus_status status);

JANUS_END_DECLS
#endif

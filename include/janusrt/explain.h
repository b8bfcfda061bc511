/* SPDX-License-Identifier: MIT */
/* Why something was refused, or failed, in a sentence for people. */
#ifndef JANUSRT_EXPLAIN_H
#define JANUSRT_EXPLAIN_H

#include <janusrt/export.h>
#include <janusrt/nursery.h>
#include <stddef.h>

JANUS_BEGIN_DECLS

/*
 * What went wrong with the calling task's, or thread's, last call into the library that was refused
 * for want of a capability, a limit or a budget: which task, where it was started, the nurseries
 * around it, what was short, how much is used of how much, and what to do about it. Ask before the
 * next call that may wait.
 *
 *     task 0x100000001 "plugin" (host.c:41) in run > plugins: as many tasks live as the limit
 *     allows: 100 of 100 used (JANUS_TASK_LIMIT). Wait for some to end, raise
 *     janus_scheduler_options.max_tasks, or start them under a spawn capability that allows more.
 *
 * Context: anyone, any thread.
 * Yields:  only if the turn is over.
 * Owns:    writes at most `size` bytes to `buffer`, always terminated if `size` is not 0.
 * Cost:    some snprintf.
 * Errors:  none; returns the length the whole text has, 0 if nothing was refused.
 */
JANUS_API size_t janus_explain(char *buffer, size_t size);

/*
 * The same for a child that failed: a budget that ran out, a panic, a status.
 *
 * Context: the nursery's owner, before janus_nursery_end.
 * Yields:  only if the turn is over.
 * Owns:    as janus_explain.
 * Cost:    as janus_explain.
 * Errors:  none; returns the length the whole text has.
 */
JANUS_API size_t janus_failure_text(janus_nursery *nursery, const janus_failure *failure,
                                    char *buffer, size_t size);

/*
 * A kind of result in words: "a child failed".
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    the text is constant.
 * Cost:    a load.
 * Errors:  "?" for a number that is no kind.
 */
JANUS_API const char *janus_result_kind_text(janus_result_kind kind);

JANUS_END_DECLS
#endif

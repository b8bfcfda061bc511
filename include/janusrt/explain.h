/* SPDX-License-Identifier: MIT */
/* Why a call was refused, or why a task failed, in a sentence. */
#ifndef JANUSRT_EXPLAIN_H
#define JANUSRT_EXPLAIN_H

#include <janusrt/export.h>
#include <janusrt/nursery.h>
#include <stddef.h>

JANUS_BEGIN_DECLS

/*
 * Explains the caller's last call that a capability, a limit or a budget refused. It also explains
 * each failed call for I/O (io.h, net.h, file.h, process.h, signal.h), and each failed call of an
 * actor (actor.h) but those with WOULD_WAIT. The last of all counts. The sentence names the task,
 * where it was started, and the nurseries around it. It says what was short, how much was used, and
 * what to do. For I/O it also names the call, and the path, the address or the handle. Ask before
 * the next call that may wait. A call that fails for another reason, as a send to a closed channel,
 * explains nothing. Then the sentence is that of an earlier call: compare the status at its end.
 *
 *     task 0x100000001 "plugin" (host.c:41) in run > plugins: as many tasks live as the limit
 *     allows: 100 of 100 used (JANUS_TASK_LIMIT). Wait until some tasks end, raise
 *     janus_scheduler_options.max_tasks, or start tasks under a spawn capability that allows more.
 *
 * Context: anyone, any thread.
 * Yields:  only if the turn is over.
 * Owns:    writes at most `size` bytes to `buffer`, always terminated if `size` is not 0.
 * Cost:    some snprintf.
 * Errors:  none. Returns the length of the whole text, 0 if nothing was refused.
 */
JANUS_API size_t janus_explain(char *buffer, size_t size);

/*
 * Explains why a child failed: its budget ran out, it panicked, or it returned an error.
 *
 * Context: the nursery's owner, before janus_nursery_end.
 * Yields:  only if the turn is over.
 * Owns:    as janus_explain.
 * Cost:    as janus_explain.
 * Errors:  none. Returns the length of the whole text, 0 if `nursery` or `failure` is NULL.
 */
JANUS_API size_t janus_failure_text(janus_nursery *nursery, const janus_failure *failure,
                                    char *buffer, size_t size);

/*
 * Notes why a call of another library fails, so that janus_explain says it. A library on top of
 * this one calls it just before it returns an error. The note replaces that of an earlier call.
 *
 *     return janus_explain_as(JANUS_INVALID, "feed_open", "the address has no port");
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    `call` and `why` are constant texts; `why` has no full stop. NULL: none, and the
 *          status in words.
 * Cost:    some stores.
 * Errors:  returns `status`. If it is not negative, nothing is noted.
 */
JANUS_NODISCARD JANUS_API janus_status janus_explain_as(janus_status status, const char *call,
                                                        const char *why);

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

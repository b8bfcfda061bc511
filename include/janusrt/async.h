/* SPDX-License-Identifier: MIT */
/*
 * Calls that run beside the caller and return a value: begin one, go on, await it.
 *
 *     struct page page;
 *     janus_async call;
 *     if (janus_async_start(nursery, &call, fetch, "/index", &page) == JANUS_OK) {
 *         render_header();
 *         if (janus_await(&call, NULL) == JANUS_OK) render(&page);
 *     }
 *
 * The function returns a status, as every task does. A negative status is a failure, and the
 * nursery's policy decides about the siblings. The value is separate: the function writes it where
 * its second argument points. A function whose value is a number has a short form. Its number may
 * be negative:
 *
 *     janus_async_start_number(nursery, &call, balance_of, account);   // may be -5
 *     status = janus_await(&call, &balance);
 */
#ifndef JANUSRT_ASYNC_H
#define JANUSRT_ASYNC_H

#include <janusrt/export.h>
#include <janusrt/nursery.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <stdint.h>

/* The function of a call. It returns a status and writes its value to *value. */
typedef int64_t janus_async_entry(void *argument, void *value);

/* A call under way, in the caller's memory. Its fields are private. */
typedef struct janus_async {
    uint64_t opaque[8];
} janus_async;

JANUS_BEGIN_DECLS

/*
 * Starts `entry(argument, value)` as a child of `nursery`. NULL means the innermost nursery that
 * the current task has open. `options` as for janus_spawn_with.
 *
 * Context: the nursery's owner. Only the owner can await the call.
 * Yields:  as janus_spawn_with.
 * Owns:    *call, `argument` and *value stay the caller's; they must stay where they are until the
 *          call was awaited or the nursery has ended.
 * Cost:    as janus_spawn_with.
 * Errors:  NO_NURSERY  `nursery` is NULL, and none is open here
 *          STATE       not the owner
 *          and those of janus_spawn_with. On any error nothing was started and *call is untouched.
 */
JANUS_NODISCARD JANUS_API janus_status janus_async_start_with(janus_nursery     *nursery,
                                                              janus_async       *call,
                                                              janus_async_entry *entry,
                                                              void *argument, void *value,
                                                              const janus_spawn_options *options);

/*
 * Begins a call whose value is the number that the function returns. Every number is a success. The
 * child fails only if it panics, or if a cancel came before it began.
 *
 * Context: as janus_async_start_with.
 * Yields:  as janus_async_start_with.
 * Owns:    as janus_async_start_with.
 * Cost:    as janus_async_start_with.
 * Errors:  as janus_async_start_with
 */
JANUS_NODISCARD JANUS_API janus_status
janus_async_start_number_with(janus_nursery *nursery, janus_async *call, janus_entry *function,
                              void *argument, const janus_spawn_options *options);

/* The short forms pass the file and line of the call, which dumps show. */
#ifndef __cplusplus
#define JANUS_SPAWN_OPTIONS_HERE                                                                   \
    __extension__({                                                                                \
        static const janus_site          janus_site_here = {__FILE__, __LINE__};                   \
        static const janus_spawn_options janus_options_here = {                                    \
            .struct_bytes = sizeof(janus_spawn_options), .site = &janus_site_here};                \
        &janus_options_here;                                                                       \
    })
#else
#define JANUS_SPAWN_OPTIONS_HERE JANUS_SPAWN_OPTIONS(.site = JANUS_SITE_HERE)
#endif

#define janus_async_start(nursery, call, entry, argument, value)                                   \
    janus_async_start_with(nursery, call, entry, argument, value, JANUS_SPAWN_OPTIONS_HERE)

#define janus_async_start_number(nursery, call, function, argument)                                \
    janus_async_start_number_with(nursery, call, function, argument, JANUS_SPAWN_OPTIONS_HERE)

/*
 * Waits until a call has ended. *out_number (NULL: not wanted) is what the function returned: its
 * number in the short form, else its status. Then the caller may read the value.
 *
 * Context: the nursery's owner, before the nursery ends.
 * Yields:  if it has not ended.
 * Owns:    gives *call back; a second await returns STALE.
 * Cost:    as janus_join.
 * Errors:  CHILD_FAILED  the call panicked, or returned a negative status, which is in *out_number.
 *                        Do not use the value
 *          CHILD_CANCELLED  it was cancelled and returned CANCELLED, or never ran. Do not use the
 *                           value
 *          CANCELLED     the waiting task was cancelled; the call can be awaited again
 *          STALE         it was awaited before
 *          and those of janus_join
 */
JANUS_NODISCARD JANUS_API janus_status janus_await(janus_async *call, int64_t *out_number);

/*
 * The task of a call, for janus_task_inspect.
 *
 * Context: as janus_await.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; of a call that was awaited it is stale, and of NULL it is 0.
 */
JANUS_API janus_task_id janus_async_task(const janus_async *call);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * Data parallelism: two calls, loops and reductions that idle workers share.
 *
 *     static int64_t scale(void *argument, uint64_t begin, uint64_t end)
 *     {
 *         double *values = argument;
 *         for (uint64_t i = begin; i < end; i++) values[i] *= 2;
 *         return 0;
 *     }
 *
 *     int64_t status = janus_for(janus_range_of(0, count), scale, values);
 *     if (status < 0) return status;
 *
 * Work is divided lazily. The caller runs everything itself, by plain calls on its own stack. If
 * another worker could take work, the caller splits off a piece. The piece is the second call of
 * the oldest janus_both, or half of the rest of a loop. Without idle workers a loop costs what it
 * costs without this library.
 *
 * These rules hold however the work is divided:
 *
 *  - Errors. A call that returns a negative number has failed. No further call begins, the others
 *    are cancelled, and janus_both, janus_for and janus_reduce return that number. If several calls
 *    failed, they return the one that comes first in the program's order: `f` before `g`, lower
 *    indices before higher. A call that is cancelled and returns JANUS_CANCELLED has merely obeyed.
 *  - Panics. A panic or a stack overflow in a call becomes the caller's. The library cancels and
 *    awaits the other calls. Then the caller's task ends with that panic, kind and message
 *    included.
 *  - Cancellation. If the caller is cancelled, so are all pieces. The calls return CANCELLED at the
 *    next piece; a running body learns of it from the library calls that it makes.
 *  - Budgets. janus_both costs one operation, loops and reductions one for each index. The task
 *    that runs a piece pays for it.
 *  - Rights. A piece that was split off is a child of the caller: it counts against the limit of
 *    tasks, and needs what a spawn needs there. Where a spawn would be refused, the caller runs the
 *    piece itself. So these functions need no capability and never fail for want of tasks.
 *  - Order. janus_reduce divides its range in the same places and combines in the same order,
 *    whichever workers run the pieces. So a sum of floating-point numbers is the same each time.
 *
 * A piece may run as a task of its own, with its own id, while the caller's other calls run. So
 * calls must not assume that they share a thread, and data that they share needs a lock or an
 * atomic. The library copies the value of janus_task_local into a piece. A call that spawns must
 * name its nursery, because a piece does not see the caller's innermost nursery. `f` must not wait
 * for `g`, nor a body for a higher index: that piece may begin only when this one has ended.
 *
 * The caller runs everything itself where no worker could help or no child would be safe:
 *
 *  - on one worker, and under the backends THREADED and BLOCKING
 *  - inside a fiber that the task resumed, and in a shield
 *  - in a task with an explicit budget outside of a pool
 *  - where exhausted children would wait for a supervisor, because the caller is that supervisor
 */
#ifndef JANUSRT_PARALLEL_H
#define JANUSRT_PARALLEL_H

#include <janusrt/export.h>
#include <janusrt/fiber.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <stddef.h>
#include <stdint.h>

/* The indices begin, begin + 1, ... end - 1, and how many of them make a call. */
typedef struct janus_range {
    uint64_t begin, end; /* empty if end <= begin */
    uint64_t grain;      /* indices of a call; 0: automatic */
} janus_range;

/*
 * A range with an automatic grain. A call of janus_for lasts about 10 us, and a reduction has at
 * most 256 leaves.
 */
static inline janus_range janus_range_of(uint64_t begin, uint64_t end)
{
    janus_range range = {begin, end, 0};
    return range;
}

/* A range that gives `grain` indices to each call, and maybe fewer to the last. */
static inline janus_range janus_range_by(uint64_t begin, uint64_t end, uint64_t grain)
{
    janus_range range = {begin, end, grain};
    return range;
}

/* The body of a loop, for the indices from `begin` to `end` - 1. A negative result is a failure. */
typedef int64_t janus_body(void *argument, uint64_t begin, uint64_t end);

/* The body of a reduction. It adds the indices to *value. A negative result is a failure. */
typedef int64_t janus_fold(void *argument, uint64_t begin, uint64_t end, void *value);

/*
 * Combines the results of two neighbouring ranges into *value. `right` belongs to the higher
 * indices. The function must be associative, but need not be commutative. A negative result is a
 * failure.
 */
typedef int64_t janus_combine(void *argument, void *value, const void *right);

/* The failed call. If several failed, it is the first in the program's order. */
typedef struct janus_parallel_failure {
    int64_t       error;      /* what it returned; 0: none failed */
    uint64_t      begin, end; /* its indices. janus_both: 0, 1 is `f` and 1, 2 is `g`. Equal: no
                                 call failed, the work was cancelled between two calls */
    janus_task_id task;       /* in which it ran; 0: outside of tasks */
} janus_parallel_failure;

JANUS_BEGIN_DECLS

/*
 * Calls f(a) and g(b) and returns when both have returned. An idle worker may run `g` meanwhile;
 * otherwise the caller runs `f`, then `g`. If `f` fails before `g` has begun, `g` is not called.
 *
 *     static int64_t sort(void *argument)
 *     {
 *         struct part *part = argument, left, right;
 *         if (part->count < 1000) return sort_serially(part);
 *         divide(part, &left, &right);
 *         return janus_both(sort, &left, sort, &right);
 *     }
 *
 * Context: anyone; outside of tasks the two calls run one after the other. A branch must return
 *          with the nurseries closed that it opened, and must not leave by longjmp or an exception.
 * Yields:  when the turn is used up; at the end, if another worker still runs `g`.
 * Owns:    `a` and `b` stay the caller's and must live until it returns.
 * Cost:    about 4 ns and one op; a branch that is split off costs what a child does.
 * Errors:  0          both returned zero or more
 *          negative   what the first failed branch returned
 *          CANCELLED  the caller is cancelled; a branch may not have been called
 *          INVALID    `f` or `g` is NULL; neither was called
 *          NO_MEMORY  `g` was split off, and then the system refused a stack for it
 */
JANUS_NODISCARD JANUS_API int64_t janus_both(janus_entry *f, void *a, janus_entry *g, void *b);

/*
 * janus_both that also reports the failure: *out (NULL: not wanted) says which branch, in which
 * task.
 *
 * Context: as janus_both.
 * Yields:  as janus_both.
 * Owns:    *out is the caller's; it is written also if nothing failed.
 * Cost:    as janus_both.
 * Errors:  as janus_both
 */
JANUS_NODISCARD JANUS_API int64_t janus_both_with(janus_entry *f, void *a, janus_entry *g, void *b,
                                                  janus_parallel_failure *out);

/*
 * Calls body(argument, begin, end) for parts of the range, each index in exactly one call, until
 * all have returned. Calls of one task come in the order of their indices.
 *
 * With an automatic grain the first call gets one index. Later calls get as many as take about 10
 * us, at most JANUS_SLICE. In deterministic runs, where the clock stands still, a call gets a
 * sixteenth of the range.
 *
 * Context: anyone; outside of tasks all calls come from the caller. A body must return with the
 *          nurseries closed that it opened, and must not leave by longjmp or an exception.
 * Yields:  between calls when the turn is used up; at the end, if other workers still run pieces.
 * Owns:    `argument` stays the caller's and must live until it returns.
 * Cost:    one op for each index, and about 50 ns for each call. A piece that is split off costs
 *          what a child does.
 * Errors:  0          every call returned zero or more
 *          negative   what the first failed call returned; other indices may not have been reached
 *          CANCELLED  the caller is cancelled; indices may not have been reached
 *          INVALID    `body` is NULL; nothing was called
 *          NO_MEMORY  a piece was split off, and then the system refused a stack for it
 */
JANUS_NODISCARD JANUS_API int64_t janus_for(janus_range range, janus_body *body, void *argument);

/*
 * janus_for that also reports the failure: *out (NULL: not wanted) says at which indices, in which
 * task.
 *
 * Context: as janus_for.
 * Yields:  as janus_for.
 * Owns:    *out is the caller's; it is written also if nothing failed.
 * Cost:    as janus_for.
 * Errors:  as janus_for
 */
JANUS_NODISCARD JANUS_API int64_t janus_for_with(janus_range range, janus_body *body,
                                                 void *argument, janus_parallel_failure *out);

/*
 * Reduces a range to one value of `bytes` bytes. *value is the neutral element before (0 of a sum,
 * an empty set) and the result after.
 *
 *     static int64_t add(void *argument, uint64_t begin, uint64_t end, void *value)
 *     {
 *         const double *numbers = argument;
 *         double       *sum = value;
 *         for (uint64_t i = begin; i < end; i++) *sum += numbers[i];
 *         return 0;
 *     }
 *
 *     static int64_t plus(void *argument, void *value, const void *right)
 *     {
 *         (void)argument;
 *         *(double *)value += *(const double *)right;
 *         return 0;
 *     }
 *
 *     double sum = 0;
 *     status = janus_reduce(janus_range_of(0, count), add, plus, numbers, &sum, sizeof sum);
 *
 * The range is cut into leaves of `grain` indices, with an automatic grain into at most 256 equal
 * ones. Each leaf begins with a copy of the neutral element and is folded in order, by calls of at
 * most JANUS_SLICE indices. The leaves are combined as a balanced tree. Both depend on the range
 * and the grain alone.
 *
 * Context: anyone; outside of tasks all calls come from the caller. As for janus_for.
 * Yields:  as janus_for.
 * Owns:    `argument` and *value stay the caller's. Values are copied as bytes and dropped where a
 *          call fails; they must not own memory then.
 * Cost:    one op for each index; a call of janus_both, two copies and a call of `combine` for each
 *          leaf. Values of more than 64 bytes take memory of the task, two for each level.
 * Errors:  0          the result is in *value
 *          negative   what the first failed call returned; *value is unspecified
 *          CANCELLED  the caller is cancelled; *value is unspecified
 *          INVALID    `fold`, `combine` or `value` is NULL, or `bytes` is 0; nothing was called
 *          NO_MEMORY  no memory for values, or as janus_for; *value is unspecified
 */
JANUS_NODISCARD JANUS_API int64_t janus_reduce(janus_range range, janus_fold *fold,
                                               janus_combine *combine, void *argument, void *value,
                                               size_t bytes);

/*
 * janus_reduce that also reports the failure: *out (NULL: not wanted) says at which indices, in
 * which task. A failed combination is reported with the indices of both its sides.
 *
 * Context: as janus_reduce.
 * Yields:  as janus_reduce.
 * Owns:    *out is the caller's; it is written also if nothing failed.
 * Cost:    as janus_reduce.
 * Errors:  as janus_reduce
 */
JANUS_NODISCARD JANUS_API int64_t janus_reduce_with(janus_range range, janus_fold *fold,
                                                    janus_combine *combine, void *argument,
                                                    void *value, size_t bytes,
                                                    janus_parallel_failure *out);

JANUS_END_DECLS
#endif

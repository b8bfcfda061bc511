/* SPDX-License-Identifier: MIT */
/* Blocks with a nursery around them. Part of nursery.h, which includes it. */
#ifndef JANUSRT_BLOCK_H
#define JANUSRT_BLOCK_H

#include <janusrt/nursery.h>

#ifdef __cplusplus
#include <exception>
#endif

/*
 * A block with a nursery. The nursery opens before the block and ends after it. `status` is a
 * variable of the caller, which the closing brace sets. Fields of janus_nursery_options may follow.
 *
 *     janus_status status;
 *     JANUS_NURSERY(n, status, .max_children = 4, .name = "fetchers")
 *     {
 *         ...
 *     }
 *     return status;
 *
 * To learn which child failed, and how, pass `.result`. It is what janus_nursery_end would give:
 *
 *     janus_nursery_result result;
 *     JANUS_NURSERY(n, status, .result = &result) { ... }
 *     if (status == JANUS_CHILD_FAILED) report(result.task, result.error, &result.panic);
 *
 * The result has the first failure. To read the others, await the children in the block:
 *
 *     JANUS_NURSERY(n, status, .policy = JANUS_POLICY_WAIT_ALL)
 *     {
 *         ...
 *         JANUS_IGNORE(janus_nursery_await_with(n, NULL));
 *         count = janus_nursery_failures(n, failures, JANUS_FAILURES_KEPT);
 *     }
 *
 * If the nursery cannot be opened, the block does not run, and `status` is what janus_nursery_open
 * returned. The result is untouched. Otherwise `status` is what janus_nursery_end returned.
 *
 * `break` and `continue` leave the block and end the nursery as its closing brace does. So do
 * `return`, `goto` and, in C++, an exception. These skip the assignment of `status`. So if a child
 * has failed, the task panics (janus_nursery_leave). An exception cancels the nursery first.
 *
 * The closing brace sets `status` and overwrites what the block put there. If a spawn is refused,
 * `return` its status, or keep it in another variable and `break`.
 *
 * A caller that never reads `status` gets -Wunused-but-set-variable, part of -Wall.
 */
#define JANUS_NURSERY(name, ...)                                                                   \
    JANUS_PASTE_(JANUS_NURSERY_, JANUS_ONE_OR_MANY_(__VA_ARGS__))(name, __VA_ARGS__)

/*
 * A block with a time limit. When `duration_ns` have passed, the waits in it return CANCELLED, and
 * `status` becomes DEADLINE. If the task or a scope around the block was cancelled first, `status`
 * is CANCELLED. Otherwise it is OK. Code that does not wait goes on until it waits or asks
 * janus_cancelled.
 *
 *     JANUS_TIMEOUT(status, 50 * 1000000) received = janus_channel_recv(channel, &value);
 */
#define JANUS_TIMEOUT(status, duration_ns)                                                         \
    JANUS_TIMEOUT_(JANUS_PASTE_(janus_timeout_, __LINE__), status, duration_ns)

/* The rest implements the blocks. Programs do not use it directly. */

static inline uint64_t janus_deadline_after_(uint64_t duration_ns)
{
    uint64_t now = janus_now_ns();
    return now + duration_ns < now ? UINT64_MAX : now + duration_ns;
}

/* The block fills the result itself, so the nursery is opened without it. */
static inline janus_status janus_block_begin_(janus_nursery               *room,
                                              const janus_nursery_options *options)
{
    if (options == NULL || options->result == NULL) return janus_nursery_open(room, options);
    janus_nursery_options others = *options;
    others.result = NULL;
    return janus_nursery_open(room, &others);
}

/* `open` is NULL once the nursery has ended, or if it was never open. */
typedef struct janus_block_ {
    janus_nursery        *open;
    janus_nursery_result *result; /* NULL: not wanted */
    janus_status          said;
#ifdef __cplusplus
    int thrown;
    janus_block_(janus_nursery *room, const janus_nursery_options *options)
        : open(nullptr), result(options != nullptr ? options->result : nullptr),
          said(janus_block_begin_(room, options)), thrown(std::uncaught_exceptions())
    {
        if (said >= JANUS_OK) open = room;
    }
    janus_block_(const janus_block_ &) = delete;
    janus_block_ &operator=(const janus_block_ &) = delete;
    ~janus_block_()
    {
        if (open == nullptr) return;
        if (std::uncaught_exceptions() == thrown) {
            janus_nursery_leave(open);
            return;
        }
        static_cast<void>(janus_nursery_cancel(open));
        JANUS_IGNORE(janus_nursery_end(open, nullptr));
    }
#endif
} janus_block_;

static inline janus_status janus_block_end_(janus_block_ *block)
{
    janus_nursery *nursery = block->open;
    block->open = NULL;
    return janus_nursery_end(nursery, block->result);
}

static inline janus_status janus_timeout_end_(janus_block_ *block)
{
    janus_nursery_result result;
    janus_nursery       *nursery = block->open;
    block->open = NULL;
    janus_status status = janus_nursery_end(nursery, &result);
    bool         late = status == JANUS_CANCELLED && result.reason == JANUS_CANCEL_REASON_DEADLINE;
    return late ? JANUS_DEADLINE : status;
}

#ifndef __cplusplus
static inline janus_block_ janus_block_open_(janus_nursery               *room,
                                             const janus_nursery_options *options)
{
    janus_status opened = janus_block_begin_(room, options);
    janus_block_ block = {opened >= JANUS_OK ? room : NULL,
                          options != NULL ? options->result : NULL, opened};
    return block;
}

static inline void janus_block_left_(const janus_block_ *block)
{
    if (block->open != NULL) janus_nursery_leave(block->open);
}
#define JANUS_BLOCK_(block, room, options)                                                         \
    janus_block_ block __attribute__((cleanup(janus_block_left_))) =                               \
        janus_block_open_(room, options)
#else
#define JANUS_BLOCK_(block, room, options) janus_block_ block(room, options)
#endif

/* Without options the nursery is opened the fast way. */
#define JANUS_NURSERY_ONE(name, status) JANUS_NURSERY_BLOCK_(name, status, NULL)
#define JANUS_NURSERY_MANY(name, status, ...)                                                      \
    JANUS_NURSERY_BLOCK_(name, status, JANUS_NURSERY_OPTIONS(__VA_ARGS__))

#define JANUS_TIMEOUT_(self, status, duration_ns)                                                  \
    JANUS_ANY_BLOCK_(self, status, janus_timeout_end_,                                             \
                     JANUS_NURSERY_OPTIONS(.deadline_ns = janus_deadline_after_(duration_ns),      \
                                           .name = "timeout"))

#define JANUS_NURSERY_BLOCK_(name, status, options)                                                \
    JANUS_ANY_BLOCK_(name, status, janus_block_end_, options)

#define JANUS_ANY_BLOCK_(name, status, end, options)                                               \
    for (janus_nursery janus_room_##name, *name = &janus_room_##name; name != NULL; name = NULL)   \
        for (JANUS_BLOCK_(janus_block_##name, name, options); name != NULL; name = NULL)           \
            for (status = janus_block_##name.said; janus_block_##name.open != NULL;                \
                 status = end(&janus_block_##name))                                                \
                for (int janus_in_##name = 1; janus_in_##name; janus_in_##name = 0)

#endif

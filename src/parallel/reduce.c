/* SPDX-License-Identifier: MIT */
/*
 * Reductions: a balanced tree of janus_both over leaves of equal length. Only the range and the
 * grain decide where the tree is cut and what is combined with what. The workers have no influence.
 * So a result that depends on the order of additions is the same each time.
 */
#include "means/call.h"
#include "parallel/failure.h"
#include "task/worker.h"

#include <janusrt/memory.h>
#include <janusrt/yield.h>
#include <string.h>

enum { LEAVES = 256, SMALL = 64 };

struct reduction {
    uint64_t       begin, end, grain;
    janus_fold    *fold;
    janus_combine *combine;
    void          *argument;
    const void    *neutral;
    size_t         bytes;
};

/* A part of the tree. */
struct node {
    const struct reduction *whole;
    uint64_t                first, count; /* leaves */
    void                   *value;
    janus_parallel_failure  failure;
};

/* A value: in the frame if it is small, otherwise from the task's memory. */
struct room {
    _Alignas(16) char small[SMALL];
    void *large;
};

static void *take(struct room *room, size_t bytes)
{
    room->large = NULL;
    if (bytes <= SMALL) return room->small;
    bool in_task = jrt_worker_self() != NULL;
    room->large = in_task ? janus_alloc(bytes) : jrt_malloc(bytes);
    return room->large;
}

static void give(struct room *room)
{
    if (room->large == NULL) return;
    if (jrt_worker_self() != NULL) {
        janus_free(room->large);
    } else {
        free(room->large);
    }
}

/* Where a leaf begins. */
static uint64_t edge(const struct reduction *whole, uint64_t leaf)
{
    uint64_t left = whole->end - whole->begin;
    return leaf > left / whole->grain ? whole->end : whole->begin + leaf * whole->grain;
}

static int64_t fold_leaf(struct node *node)
{
    const struct reduction *whole = node->whole;
    uint64_t                begin = edge(whole, node->first);
    uint64_t                end = edge(whole, node->first + 1);
    memcpy(node->value, whole->neutral, whole->bytes);
    while (begin < end) {
        uint64_t     count = end - begin < JANUS_SLICE ? end - begin : JANUS_SLICE;
        janus_status status = janus_check_n((uint32_t)count);
        if (status != JANUS_OK) {
            return jrt_failure(&node->failure, status, begin, begin, janus_task_current_id());
        }
        int64_t result = whole->fold(whole->argument, begin, begin + count, node->value);
        if (result < 0) {
            return jrt_failure(&node->failure, result, begin, begin + count,
                               janus_task_current_id());
        }
        begin += count;
    }
    return 0;
}

static int64_t reduce_node(void *argument);

static int64_t reduce_halves(struct node *node, void *value)
{
    const struct reduction *whole = node->whole;
    uint64_t                half = node->count - node->count / 2;
    struct node             left = {whole, node->first, half, node->value, {.error = 0}};
    struct node right = {whole, node->first + half, node->count - half, value, {.error = 0}};
    janus_parallel_failure branch;
    int64_t result = janus_both_with(reduce_node, &left, reduce_node, &right, &branch);
    if (result < 0) {
        node->failure = branch.begin == 0 ? left.failure : right.failure;
        if (node->failure.error != result) { /* it did not reach its end, or did not begin */
            uint64_t at = edge(whole, branch.begin == 0 ? left.first : right.first);
            (void)jrt_failure(&node->failure, result, at, at, branch.task);
        }
        return result;
    }
    result = whole->combine(whole->argument, node->value, value);
    if (result >= 0) return 0;
    return jrt_failure(&node->failure, result, edge(whole, node->first),
                       edge(whole, node->first + node->count), janus_task_current_id());
}

static int64_t reduce_node(void *argument)
{
    struct node *node = argument;
    struct room  room;
    if (node->count == 1) return fold_leaf(node);
    void *value = take(&room, node->whole->bytes);
    if (value == NULL) {
        uint64_t at = edge(node->whole, node->first);
        return jrt_failure(&node->failure, JANUS_NO_MEMORY, at, at, janus_task_current_id());
    }
    int64_t result = reduce_halves(node, value);
    give(&room);
    return result;
}

int64_t janus_reduce_with(janus_range range, janus_fold *fold, janus_combine *combine,
                          void *argument, void *value, size_t bytes, janus_parallel_failure *out)
{
    if (out != NULL) *out = (janus_parallel_failure){.error = 0};
    jrt_stack_check(); /* [stack-reserve] */
    if (fold == NULL || combine == NULL || value == NULL || bytes == 0) return JANUS_INVALID;
    if (range.begin >= range.end) return 0;
    uint64_t         count = range.end - range.begin;
    uint64_t         grain = range.grain != 0 ? range.grain : (count - 1) / LEAVES + 1;
    struct reduction whole = {.begin = range.begin,
                              .end = range.end,
                              .grain = grain,
                              .fold = fold,
                              .combine = combine,
                              .argument = argument,
                              .bytes = bytes};
    struct room      room;
    void            *neutral = take(&room, bytes);
    if (neutral == NULL) {
        return jrt_failure(out, JANUS_NO_MEMORY, range.begin, range.begin, janus_task_current_id());
    }
    memcpy(neutral, value, bytes);
    whole.neutral = neutral;
    struct node root = {&whole, 0, (count - 1) / grain + 1, value, {.error = 0}};
    int64_t     result = reduce_node(&root);
    if (out != NULL) *out = root.failure;
    give(&room);
    return result;
}

int64_t janus_reduce(janus_range range, janus_fold *fold, janus_combine *combine, void *argument,
                     void *value, size_t bytes)
{
    return janus_reduce_with(range, fold, combine, argument, value, bytes, NULL);
}

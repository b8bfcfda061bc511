/* SPDX-License-Identifier: MIT */
/*
 * A stack without locks, of nodes that return. A task that takes the top reads the node below it,
 * then exchanges the top if it is still the same. But it may be the same again: another task took
 * it, took the node below too, and put the first one back. Then the node below has changed since
 * the read.
 */
#include "gallery.h"

enum { NODES = 3, ROUNDS = 2 };

struct stack {
    _Atomic(uint64_t) top; /* lower half: a node. Upper half, if mended: a count of changes */
    atomic_uint       below[NODES + 1];
    atomic_int        users[NODES + 1];
    bool              mended;
};

static bool change_top(struct stack *stack, uint64_t *top, unsigned node)
{
    uint64_t tag = stack->mended ? ((*top >> 32) + 1) << 32 : 0;
    return atomic_compare_exchange_strong(&stack->top, top, tag | node);
}

static unsigned take(struct stack *stack)
{
    uint64_t top = atomic_load(&stack->top);
    unsigned node;
    do {
        node = (unsigned)top;
        if (node == 0) return 0;
        unsigned below = atomic_load(&stack->below[node]);
        janus_point();
        if (change_top(stack, &top, below)) break;
    } while (true);
    JANUS_EXPECT(atomic_fetch_add(&stack->users[node], 1) == 0);
    return node;
}

static void give(struct stack *stack, unsigned node)
{
    if (node == 0) return;
    atomic_fetch_sub(&stack->users[node], 1);
    uint64_t top = atomic_load(&stack->top);
    do {
        atomic_store(&stack->below[node], (unsigned)top);
        janus_point();
    } while (!change_top(stack, &top, node));
}

static int64_t user(void *argument)
{
    struct stack *stack = argument;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned one = take(stack), other = take(stack);
        give(stack, one);
        give(stack, other);
    }
    return 0;
}

static int64_t aba(void *mended)
{
    struct stack stack = {.mended = mended != NULL};
    for (unsigned i = NODES; i > 0; i--) {
        stack.users[i] = 1;
        give(&stack, i);
    }
    return gallery_both(user, user, &stack);
}

const struct gallery_bug gallery_aba = {
    "aba", "a stack over compare-and-swap: the same top, but not the same stack", aba};

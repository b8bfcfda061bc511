/* SPDX-License-Identifier: MIT */
/* The flow graph of a function: order, reachability and dominators. */
#include "qtjir/inner.h"

#include <stdlib.h>
#include <string.h>

uint32_t qt_successors(const struct qt_function *f, uint32_t block, uint32_t out[2])
{
    const struct qt_block *b = &f->blocks[block];
    if (b->count == 0 || b->nodes[b->count - 1] >= f->node_count) return 0;
    const struct qt_node *n = &f->nodes[b->nodes[b->count - 1]];
    uint32_t              count, first = qt_blocks_at((enum qt_op)n->op, &count), found = 0;
    for (uint32_t i = 0; i < count && first + i < n->operand_count; i++)
        if (n->operands[first + i].kind == QT_BLOCK &&
            n->operands[first + i].index < f->block_count)
            out[found++] = n->operands[first + i].index;
    return found;
}

/* Depth first, without recursion. Fills order, sequence, preds and the tree's parents. */
static void walk(const struct qt_function *f, struct qt_flow *flow, uint32_t *parent,
                 uint32_t *stack, uint8_t *taken)
{
    uint32_t depth = 0, next = flow->count, to[2];
    stack[depth++] = 0;
    parent[0] = 0;
    flow->order[0] = 0;
    while (depth > 0) {
        uint32_t block = stack[depth - 1], count = qt_successors(f, block, to);
        if (taken[block] >= count) {
            flow->sequence[--next] = block;
            depth--;
            continue;
        }
        uint32_t target = to[taken[block]++];
        flow->preds[target]++;
        if (flow->order[target] != UINT32_MAX) continue;
        flow->order[target] = 0;
        parent[target] = block;
        stack[depth++] = target;
    }
    flow->reached = flow->count - next;
    memmove(flow->sequence, flow->sequence + next, flow->reached * sizeof *flow->sequence);
    for (uint32_t i = 0; i < flow->reached; i++) flow->order[flow->sequence[i]] = i;
}

/*
 * Dominators after Lengauer and Tarjan, in the simple form. Numbers here are positions in reverse
 * postorder of the walk's tree: a parent comes before its children, but the order is no preorder.
 * So `walk` is run once more for preorder numbers.
 */
struct tree {
    uint32_t *vertex, *number, *parent; /* by preorder number; by block; by number */
    uint32_t *semi, *label, *ancestor, *dom, *bucket, *link, *stack;
    uint32_t *edges, *first; /* predecessors by number: first[n] to first[n + 1] */
};

static void preorder(const struct qt_function *f, struct tree *t, uint8_t *taken, uint32_t count)
{
    uint32_t depth = 0, next = 0, to[2];
    for (uint32_t i = 0; i < count; i++) t->number[i] = UINT32_MAX, taken[i] = 0;
    t->stack[depth++] = 0;
    t->number[0] = 0;
    t->vertex[next++] = 0;
    t->parent[0] = 0;
    while (depth > 0) {
        uint32_t block = t->stack[depth - 1], n = qt_successors(f, block, to);
        if (taken[block] >= n) {
            depth--;
            continue;
        }
        uint32_t target = to[taken[block]++];
        if (t->number[target] != UINT32_MAX) continue;
        t->number[target] = next;
        t->vertex[next] = target;
        t->parent[next++] = t->number[block];
        t->stack[depth++] = target;
    }
}

static void list_edges(const struct qt_function *f, struct tree *t, uint32_t reached)
{
    uint32_t to[2];
    for (uint32_t n = 0; n < reached; n++)
        for (uint32_t i = qt_successors(f, t->vertex[n], to); i > 0; i--)
            t->first[t->number[to[i - 1]] + 1]++;
    for (uint32_t n = 0; n < reached; n++) t->first[n + 1] += t->first[n];
    for (uint32_t n = 0; n < reached; n++) t->link[n] = t->first[n];
    for (uint32_t n = 0; n < reached; n++)
        for (uint32_t i = qt_successors(f, t->vertex[n], to); i > 0; i--)
            t->edges[t->link[t->number[to[i - 1]]]++] = n;
}

/* The vertex with the least semidominator on the way up, with the way made short. */
static uint32_t evaluate(struct tree *t, uint32_t v)
{
    if (t->ancestor[v] == UINT32_MAX) return v;
    uint32_t depth = 0;
    for (uint32_t u = v; t->ancestor[t->ancestor[u]] != UINT32_MAX; u = t->ancestor[u])
        t->stack[depth++] = u;
    while (depth > 0) {
        uint32_t u = t->stack[--depth], a = t->ancestor[u];
        if (t->semi[t->label[a]] < t->semi[t->label[u]]) t->label[u] = t->label[a];
        t->ancestor[u] = t->ancestor[a];
    }
    return t->label[v];
}

static void dominate(struct tree *t, uint32_t reached)
{
    for (uint32_t n = 0; n < reached; n++) {
        t->semi[n] = t->label[n] = n;
        t->ancestor[n] = t->bucket[n] = UINT32_MAX;
    }
    for (uint32_t w = reached - 1; w > 0 && reached > 0; w--) {
        for (uint32_t e = t->first[w]; e < t->first[w + 1]; e++) {
            uint32_t u = evaluate(t, t->edges[e]);
            if (t->semi[u] < t->semi[w]) t->semi[w] = t->semi[u];
        }
        t->link[w] = t->bucket[t->semi[w]];
        t->bucket[t->semi[w]] = w;
        uint32_t p = t->parent[w];
        t->ancestor[w] = p;
        for (uint32_t v = t->bucket[p]; v != UINT32_MAX; v = t->link[v]) {
            uint32_t u = evaluate(t, v);
            t->dom[v] = t->semi[u] < t->semi[v] ? u : p;
        }
        t->bucket[p] = UINT32_MAX;
    }
    t->dom[0] = 0;
    for (uint32_t w = 1; w < reached; w++)
        if (t->dom[w] != t->semi[w]) t->dom[w] = t->dom[t->dom[w]];
}

/* Intervals: a dominator has a lower number, so children are counted from the end. */
static void intervals(struct qt_flow *flow, const struct tree *t)
{
    uint32_t *size = t->semi, *next = t->label;
    for (uint32_t n = 0; n < flow->reached; n++) size[n] = 1;
    for (uint32_t n = flow->reached - 1; n > 0; n--) size[t->dom[n]] += size[n];
    for (uint32_t n = 0; n < flow->reached; n++) {
        uint32_t block = t->vertex[n], from = n == 0 ? 0 : next[t->dom[n]];
        flow->idom[block] = t->vertex[t->dom[n]];
        flow->enter[block] = from;
        flow->leave[block] = from + size[n];
        next[n] = from + 1;
        if (n > 0) next[t->dom[n]] = from + size[n];
    }
}

bool qt_flow_make(const struct qt_function *f, struct qt_flow *flow)
{
    size_t    n = f->block_count;
    uint32_t *memory = calloc(6 * n + 13 * n + 8, sizeof *memory);
    uint8_t  *taken = calloc(n + 1, 1);
    *flow = (struct qt_flow){.count = f->block_count, .order = memory};
    if (memory == NULL || taken == NULL || n == 0) {
        free(taken);
        qt_flow_free(flow);
        return false;
    }
    flow->sequence = memory + n;
    flow->idom = memory + 2 * n;
    flow->enter = memory + 3 * n;
    flow->leave = memory + 4 * n;
    flow->preds = memory + 5 * n;
    uint32_t   *rest = memory + 6 * n;
    struct tree t = {rest,         rest + n,     rest + 2 * n,      rest + 3 * n,
                     rest + 4 * n, rest + 5 * n, rest + 6 * n,      rest + 7 * n,
                     rest + 8 * n, rest + 9 * n, rest + 10 * n + 1, NULL};
    t.first = calloc(n + 2, sizeof *t.first);
    if (t.first != NULL) {
        memset(flow->order, 0xff, n * sizeof *flow->order);
        walk(f, flow, t.parent, t.stack, taken);
        preorder(f, &t, taken, flow->count);
        list_edges(f, &t, flow->reached);
        dominate(&t, flow->reached);
        intervals(flow, &t);
    }
    bool made = t.first != NULL;
    free(t.first);
    free(taken);
    if (!made) qt_flow_free(flow);
    return made;
}

void qt_flow_free(struct qt_flow *flow)
{
    free(flow->order);
    flow->order = NULL;
}

bool qt_dominates(const struct qt_flow *flow, uint32_t by, uint32_t block)
{
    return flow->enter[by] <= flow->enter[block] && flow->enter[block] < flow->leave[by];
}

/* SPDX-License-Identifier: MIT */
/* Effects: what a function does is what it does itself and what it calls does. */
#include "meaning/check.h"

#include <stdlib.h>

struct node {
    struct jl_function *function;
    uint32_t            first, is_queued; /* first: of its callers in `callers` */
};

static int by_address(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)((const struct node *)left)->function;
    uintptr_t b = (uintptr_t)((const struct node *)right)->function;
    return a < b ? -1 : a > b;
}

static uint32_t index_of(const struct node *nodes, uint32_t count, struct jl_function *function)
{
    struct node        key = {.function = function};
    const struct node *found = bsearch(&key, nodes, count, sizeof key, by_address);
    return found ? (uint32_t)(found - nodes) : UINT32_MAX;
}

/* Lists the callers of each node. */
static uint32_t *list_callers(struct jl_arena *arena, struct node *nodes, uint32_t count,
                              const struct jl_edge *edges, uint32_t edge_count)
{
    uint32_t *callers = jl_new(arena, edge_count * sizeof *callers + 1);
    for (uint32_t i = 0; i < edge_count; i++) {
        uint32_t to = index_of(nodes, count, edges[i].to);
        if (to != UINT32_MAX) nodes[to].first++;
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i <= count; i++) { /* first: one past the last for now */
        sum += nodes[i].first;
        nodes[i].first = sum;
    }
    for (uint32_t i = 0; i < edge_count; i++) {
        uint32_t to = index_of(nodes, count, edges[i].to);
        if (to != UINT32_MAX) callers[--nodes[to].first] = index_of(nodes, count, edges[i].from);
    }
    return callers;
}

/* A function is queued again whenever it gains an effect, at most once for each bit. */
void jl_spread(struct jl_unit *unit, const struct jl_edge *edges, uint32_t edge_count,
               uint32_t mask)
{
    uint32_t     count = unit->all_count;
    struct node *nodes = jl_new(unit->arena, (count + 1) * sizeof *nodes);
    uint32_t    *queue = jl_new(unit->arena, (count + 1) * sizeof *queue);
    for (uint32_t i = 0; i < count; i++) nodes[i].function = unit->all[i];
    qsort(nodes, count, sizeof nodes[0], by_address);
    uint32_t *callers = list_callers(unit->arena, nodes, count, edges, edge_count);
    for (uint32_t i = 0; i < count; i++) {
        queue[i] = i;
        nodes[i].is_queued = 1;
    }
    for (uint32_t length = count; length;) {
        struct node *node = &nodes[queue[--length]];
        node->is_queued = 0;
        for (uint32_t i = node[0].first; i < node[1].first; i++) {
            if (callers[i] == UINT32_MAX) continue;
            struct node *caller = &nodes[callers[i]];
            uint32_t     gained = node->function->effects & mask & ~caller->function->effects;
            if (!gained) continue;
            caller->function->effects |= gained;
            if (!caller->is_queued) queue[length++] = callers[i];
            caller->is_queued = 1;
        }
    }
}

void jl_spread_effects(struct jl_checker *c)
{
    jl_spread(c->unit, c->calls, c->call_count, ~(uint32_t)JL_EFFECT_FAILS);
}

void jl_add_effect(struct jl_checker *c, uint32_t effects)
{
    if (c->frame) c->frame->function->effects |= effects & ~(uint32_t)JL_EFFECT_FAILS;
}

void jl_add_call(struct jl_checker *c, struct jl_function *callee)
{
    if (c->frame)
        JL_PUSH(c->arena, c->calls, c->call_count, c->call_room) =
            (struct jl_edge){c->frame->function, callee};
}

static const char *const words[] = {
    "spawn", "nursery", "await", "channel", "alloc", "io", "mint", "recharge", "native", "fails",
};

static void print_one(const struct jl_function *function, FILE *out)
{
    if (function->actor) fprintf(out, "%s.", function->actor->name.text);
    fprintf(out, "%s:", function->kind == JL_F_UNIT ? "main" : function->name.text);
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        if (function->effects >> i & 1) fprintf(out, " %s", words[i]);
    fprintf(out, "%s\n", function->effects ? "" : " none");
}

void jl_print_effects(const struct jl_unit *unit, FILE *out)
{
    for (uint32_t i = 0; i < unit->all_count; i++) {
        const struct jl_function *function = unit->all[i];
        bool is_declared = function->kind == JL_F_DECLARED || function->kind == JL_F_METHOD ||
                           function->kind == JL_F_UNIT;
        if (is_declared && (function->kind == JL_F_UNIT || function->name.text))
            print_one(function, out);
    }
}

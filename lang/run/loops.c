/* SPDX-License-Identifier: MIT */
/*
 * What loops need not do again.
 *
 * Loads that are used in other blocks than their own. Such a value is its variable, if no path goes
 * from a Store to a use without the Load between them. The loop variable of `for` is the case that
 * pays.
 *
 * Constants that no instruction can hold are set once, when the function begins.
 */
#include "run/make.h"

#include <stdlib.h>

enum { USES_MAX = 64, STEPS_MAX = 200000, HOISTED_MAX = 64 };

struct place {
    uint32_t block, position;
};

struct search {
    struct maker *k;
    uint32_t     *first; /* uses of a node: users[first[node]] to users[first[node + 1]] */
    uint32_t     *users;
    uint32_t     *seen; /* by block: the round that saw it */
    uint32_t     *stack;
    uint32_t      round, steps;
    struct place  uses[USES_MAX];
    uint32_t      use_count;
};

static void list_users(struct search *s)
{
    const struct qt_function *f = s->k->f;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < f->node_count; i++) {
            if (s->k->plans[i].block == NO_SLOT) continue;
            for (uint32_t o = 0; o < f->nodes[i].operand_count; o++) {
                if (f->nodes[i].operands[o].kind != QT_NODE) continue;
                uint32_t value = f->nodes[i].operands[o].index;
                if (round == 0)
                    s->first[value + 2]++;
                else
                    s->users[s->first[value + 1]++] = i;
            }
        }
        if (round == 0)
            for (uint32_t i = 0; i < f->node_count; i++) s->first[i + 2] += s->first[i + 1];
    }
}

/* All uses, also through aliases. False: too many. */
static bool find_uses(struct search *s, uint32_t value, uint32_t depth)
{
    if (depth > 8) return false;
    for (uint32_t i = s->first[value]; i < s->first[value + 1]; i++) {
        uint32_t           user = s->users[i];
        const struct plan *p = &s->k->plans[user];
        if (s->use_count == USES_MAX) return false;
        s->uses[s->use_count++] = (struct place){p->block, p->position};
        if (p->alias == value + 1 && !find_uses(s, user, depth + 1)) return false;
    }
    return true;
}

/* Looks at a block from `from` on. False: there is a use. *ends: the Load stands before the end. */
static bool is_free(const struct search *s, uint32_t block, uint32_t from, const struct plan *load,
                    bool *ends)
{
    *ends = load->block == block && load->position >= from;
    uint32_t to = *ends ? load->position : UINT32_MAX;
    for (uint32_t i = 0; i < s->use_count; i++)
        if (s->uses[i].block == block && s->uses[i].position >= from && s->uses[i].position < to)
            return false;
    return true;
}

static bool is_free_after(struct search *s, uint32_t store, const struct plan *load)
{
    const struct qt_function *f = s->k->f;
    const struct plan        *p = &s->k->plans[store];
    uint32_t                  depth = 0, block = p->block, from = p->position + 1;
    bool                      ends;
    for (s->round++;; from = 0) {
        if (++s->steps > STEPS_MAX || !is_free(s, block, from, load, &ends)) return false;
        const struct qt_block *b = &f->blocks[block];
        const struct qt_node  *last = &f->nodes[b->nodes[b->count - 1]];
        for (uint32_t o = 0; !ends && o < last->operand_count; o++) {
            if (last->operands[o].kind != QT_BLOCK) continue;
            uint32_t next = last->operands[o].index;
            if (s->seen[next] == s->round) continue;
            s->seen[next] = s->round;
            s->stack[depth++] = next;
        }
        if (depth == 0) return true;
        block = s->stack[--depth];
    }
}

static void alias(struct search *s, uint32_t load)
{
    struct plan *p = &s->k->plans[load];
    uint32_t     local = operand(s->k, load, 0);
    s->use_count = 0;
    if (!find_uses(s, load, 0)) return;
    for (uint32_t i = s->first[local]; i < s->first[local + 1]; i++) {
        uint32_t user = s->users[i];
        if (node_at(s->k, user)->op == QT_Load) continue;
        if (!is_free_after(s, user, p)) return;
    }
    if (is_free_after(s, local, p)) p->alias = 1 + local; /* the Local itself sets zero */
}

void jl_run_alias_loads(struct maker *k)
{
    const struct qt_function *f = k->f;
    uint32_t                  operands = 0, crossing = 0;
    for (uint32_t i = 0; i < f->node_count; i++) {
        operands += f->nodes[i].operand_count;
        crossing += f->nodes[i].op == QT_Load && k->plans[i].crosses;
    }
    if (crossing == 0) return;
    struct search s = {.k = k};
    s.first = calloc((size_t)f->node_count + 3, sizeof *s.first);
    s.users = calloc((size_t)operands + 1, sizeof *s.users);
    s.seen = calloc(2 * ((size_t)f->block_count + 1), sizeof *s.seen);
    if (s.first != NULL && s.users != NULL && s.seen != NULL) {
        s.stack = s.seen + f->block_count + 1;
        list_users(&s);
        for (uint32_t i = 0; i < f->node_count; i++)
            if (f->nodes[i].op == QT_Load && k->plans[i].crosses && k->plans[i].alias == 0 &&
                k->plans[i].block != NO_SLOT)
                alias(&s, i);
    }
    free(s.first);
    free(s.users);
    free(s.seen);
}

/* Blocks from the target of a jump back to the jump are a loop, as programs are laid out. */
static bool mark_loops(const struct qt_function *f, int32_t *depth)
{
    bool any = false;
    for (uint32_t b = 0; b < f->block_count; b++) {
        const struct qt_block *block = &f->blocks[b];
        const struct qt_node  *last = &f->nodes[block->nodes[block->count - 1]];
        for (uint32_t o = 0; o < last->operand_count; o++) {
            if (last->operands[o].kind != QT_BLOCK || last->operands[o].index > b) continue;
            depth[last->operands[o].index]++;
            depth[b + 1]--;
            any = true;
        }
    }
    for (uint32_t b = 0; b < f->block_count; b++) depth[b + 1] += depth[b];
    return any;
}

void jl_run_hoist(struct maker *k)
{
    const struct qt_function *f = k->f;
    int32_t                  *depth = calloc((size_t)f->block_count + 2, sizeof *depth);
    uint32_t                  count = 0;
    if (depth != NULL && mark_loops(f, depth))
        for (uint32_t i = 0; i < f->node_count && count < HOISTED_MAX; i++) {
            struct plan *p = &k->plans[i];
            if (f->nodes[i].op != QT_Const || p->uses == 0 || depth[p->block] == 0) continue;
            p->crosses = p->hoisted = true;
            count++;
        }
    free(depth);
}

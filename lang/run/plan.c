/* SPDX-License-Identifier: MIT */
/* Which slots the values of a function get. */
#include "run/make.h"

enum { FAR = 64, SLOTS_MAX = 60000, NURSERY_WORDS = sizeof(struct jl_nursery) / 8 + 1 };

static uint32_t node_in(const struct maker *k, uint32_t block, uint32_t position)
{
    return k->f->blocks[block].nodes[position];
}

/* Constants that instructions can hold. */

static bool fits(int64_t number, unsigned bits)
{
    int64_t most = (INT64_C(1) << (bits - 1)) - 1;
    return number >= -most && number <= most;
}

bool jl_run_is_constant(const struct maker *k, uint32_t user, uint32_t position)
{
    const struct qt_node *n = node_at(k, user), *v = node_at(k, operand(k, user, position));
    bool other = n->operand_count == 2 && n->operands[1 - position].kind == QT_NODE &&
                 node_at(k, operand(k, user, 1 - position))->op == QT_Const;
    bool signed_words = v->type != JL_F64 && v->type != JL_U64;
    if (v->op != QT_Const) return false;
    switch (n->op) {
    case QT_Store: return position == 1;
    case QT_Call: return true;
    case QT_Call_Value: return position > 0;
    case QT_Return: return !k->f->fails && v->type != JL_F64 && fits(v->literal, 32);
    case QT_Add:
    case QT_Mul: return signed_words && fits(v->literal, 32) && (position == 1 || !other);
    case QT_Sub: return signed_words && position == 1 && fits(v->literal, 32);
    case QT_Div:
    case QT_Rem: return signed_words && position == 1 && fits(v->literal, 32) && v->literal > 0;
    case QT_Eq:
    case QT_Ne:
    case QT_Lt:
    case QT_Le: return signed_words && fits(v->literal, 16) && (position == 1 || !other);
    default: return false;
    }
}

/* Uses. */

static void note_use(struct maker *k, uint32_t value, uint32_t block, uint32_t position)
{
    struct plan *p = &k->plans[value];
    if (p->block != block) p->crosses = true;
    if (!p->crosses && position > p->last) p->last = position;
}

/* What an alias is used for, its base is used for. */
static void note_alias(struct maker *k, uint32_t node)
{
    const struct plan *p = &k->plans[node];
    uint32_t           base = p->alias - 1;
    struct plan       *b = &k->plans[base];
    if (p->crosses || p->block != b->block) b->crosses = true;
    if (!b->crosses && p->last > b->last) b->last = p->last;
}

static uint32_t alias_offset(const struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    if (n->op == QT_Value_Of || n->op == QT_Slice_Len || n->op == QT_Str_Len) return 1;
    if (n->op == QT_Error_Of) return 0;
    if (n->op != QT_Field_Get) return NO_SLOT;
    jl_type owner = operand_type(k, node, 0);
    if (owner == JL_BUDGET) return NO_SLOT;
    const struct jl_field *field = &jl_info(k->types, owner)->fields[n->literal];
    uint32_t               bytes = jl_size(k->types, field->type);
    if (field->offset % 8 != 0 || bytes == 0 || bytes % 8 != 0) return NO_SLOT;
    return field->offset / 8;
}

static void count_uses(struct maker *k)
{
    for (uint32_t b = 0; b < k->f->block_count; b++)
        for (uint32_t i = 0; i < k->f->blocks[b].count; i++) {
            uint32_t     node = node_in(k, b, i);
            struct plan *p = &k->plans[node];
            p->block = b;
            p->position = p->last = i;
            p->words = jl_run_words(k->types, node_at(k, node)->type);
        }
    for (uint32_t b = 0; b < k->f->block_count; b++)
        for (uint32_t i = 0; i < k->f->blocks[b].count; i++) {
            uint32_t              node = node_in(k, b, i);
            const struct qt_node *n = node_at(k, node);
            for (uint32_t o = 0; o < n->operand_count; o++)
                if (n->operands[o].kind == QT_NODE) {
                    if (!jl_run_is_constant(k, node, o)) k->plans[n->operands[o].index].uses++;
                    note_use(k, n->operands[o].index, b, i);
                }
            uint32_t offset = alias_offset(k, node);
            if (offset == NO_SLOT) continue;
            k->plans[node].alias = 1 + operand(k, node, 0);
            k->plans[node].offset = offset;
        }
    /* An alias stands after its base, in the text or in dominance; chains are short. */
    for (uint32_t b = k->f->block_count; b-- > 0;)
        for (uint32_t i = k->f->blocks[b].count; i-- > 0;)
            for (uint32_t node = node_in(k, b, i), steps = 0;
                 k->plans[node].alias != 0 && steps < FAR; steps++) {
                note_alias(k, node);
                node = k->plans[node].alias - 1;
            }
}

/* Loads and stores. */

static bool touches(const struct maker *k, uint32_t node, uint32_t local)
{
    const struct qt_node *n = node_at(k, node);
    return node == local || (n->op == QT_Store && operand(k, node, 0) == local);
}

/* A Load is its variable, if nothing changes the variable while the value is used. */
static void alias_load(struct maker *k, uint32_t node)
{
    struct plan *p = &k->plans[node];
    uint32_t     local = operand(k, node, 0);
    if (p->crosses || p->last > p->position + FAR) return;
    for (uint32_t i = p->position + 1; i < p->last; i++)
        if (touches(k, node_in(k, p->block, i), local)) return;
    p->alias = 1 + local;
}

/* Whether the instructions of the opcode write their result last. */
static bool writes_last(const struct qt_node *n)
{
    switch (n->op) {
    case QT_Add:
    case QT_Sub:
    case QT_Mul:
    case QT_Div:
    case QT_Rem:
    case QT_Neg:
    case QT_Eq:
    case QT_Ne:
    case QT_Lt:
    case QT_Le:
    case QT_And:
    case QT_Or:
    case QT_Not:
    case QT_Convert:
    case QT_Concat:
    case QT_Slice_Get:
    case QT_Slice_New:
    case QT_Slice_Part:
    case QT_Call:
    case QT_Call_Value: return true;
    default: return false;
    }
}

static bool uses_variable(const struct maker *k, uint32_t node, uint32_t local)
{
    const struct qt_node *n = node_at(k, node);
    if (n->op == QT_Load && operand(k, node, 0) == local) return true;
    for (uint32_t o = 0; o < n->operand_count; o++) {
        if (n->operands[o].kind != QT_NODE) continue;
        uint32_t v = n->operands[o].index;
        for (uint32_t steps = 0; k->plans[v].alias != 0 && steps < FAR; steps++)
            v = k->plans[v].alias - 1;
        if (v == local) return true;
    }
    return touches(k, node, local);
}

/* A value that is only stored is computed in the variable. */
static void join_store(struct maker *k, uint32_t store)
{
    uint32_t     local = operand(k, store, 0), value = operand(k, store, 1);
    struct plan *s = &k->plans[store], *v = &k->plans[value];
    if (v->uses != 1 || v->crosses || v->block != s->block || v->slot != NO_SLOT) return;
    if (!writes_last(node_at(k, value)) || s->position > v->position + FAR) return;
    for (uint32_t i = v->position + 1; i < s->position; i++)
        if (uses_variable(k, node_in(k, v->block, i), local)) return;
    v->slot = k->plans[local].slot;
}

/* An argument that is only passed is computed where the callee wants it. */
static void join_argument(struct maker *k, uint32_t call, uint32_t position, uint32_t slot)
{
    uint32_t     value = operand(k, call, position);
    struct plan *c = &k->plans[call], *v = &k->plans[value];
    if (v->uses != 1 || v->crosses || v->block != c->block || v->slot != NO_SLOT) return;
    if (!writes_last(node_at(k, value)) || c->position > v->position + FAR) return;
    for (uint32_t i = v->position + 1; i < c->position; i++) {
        unsigned op = node_at(k, node_in(k, v->block, i))->op;
        if (op == QT_Call || op == QT_Call_Value) return;
    }
    v->slot = slot;
}

static void join_arguments(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    uint32_t              at = 0;
    if (n->op == QT_Call) {
        const struct fn *callee = &k->code->functions[n->operands[0].index];
        for (uint32_t i = 1; i < n->operand_count; i++)
            join_argument(k, node, i, k->fn->base + callee->params[i - 1].slot);
        return;
    }
    for (uint32_t i = 1; i < n->operand_count; i++) {
        join_argument(k, node, i, k->fn->base + at);
        at += k->plans[operand(k, node, i)].words;
    }
}

static void count_outgoing(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    uint32_t              count = 0;
    for (uint32_t i = 1; i < n->operand_count; i++)
        count += jl_run_words(k->types, operand_type(k, node, i));
    if (count > k->outgoing) k->outgoing = count;
}

/* A comparison directly before the branch on it becomes one instruction with it. */
static void fuse_branch(struct maker *k, uint32_t block)
{
    uint32_t last = k->f->blocks[block].count - 1, branch = node_in(k, block, last);
    if (node_at(k, branch)->op != QT_Branch || last == 0) return;
    uint32_t cond = operand(k, branch, 0);
    if (node_in(k, block, last - 1) != cond || k->plans[cond].uses != 1) return;
    jl_type type = is_compare(node_at(k, cond)->op) ? operand_type(k, cond, 0) : JL_STR;
    bool    equal = node_at(k, cond)->op == QT_Eq || node_at(k, cond)->op == QT_Ne;
    if ((jl_is_integer(type) && type != JL_U64) || type == JL_BOOL || type == JL_ERROR ||
        (equal && type == JL_U64)) {
        k->plans[cond].fused = true;
        for (uint32_t o = 0; o < 2; o++) note_use(k, operand(k, cond, o), block, last);
    }
}

/* Slots that live on, then slots of values that live in one block. */

static bool needs_slot(const struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    const struct plan    *p = &k->plans[node];
    if (p->slot != NO_SLOT || p->alias != 0 || p->fused || !qt_has_value(n)) return false;
    return n->op != QT_Const || p->uses > 0;
}

static void give_lasting(struct maker *k)
{
    for (uint32_t b = 0; b < k->f->block_count; b++)
        for (uint32_t i = 0; i < k->f->blocks[b].count; i++) {
            uint32_t     node = node_in(k, b, i);
            unsigned     op = node_at(k, node)->op;
            struct plan *p = &k->plans[node];
            uint32_t     words = p->words;
            if (op == QT_Nursery_Begin || op == QT_Nursery_Open)
                words = NURSERY_WORDS;
            else if (op != QT_Local && !(p->crosses && needs_slot(k, node)))
                continue;
            p->slot = k->slots;
            if (k->slots < SLOTS_MAX) k->slots += words;
        }
}

struct pool {
    uint32_t free[2][FAR], count[2]; /* slots of one word and pairs */
    uint32_t busy[FAR], busy_count;  /* nodes whose slots are taken */
};

static void release(struct maker *k, struct pool *pool, uint32_t position)
{
    for (uint32_t i = 0; i < pool->busy_count;) {
        const struct plan *p = &k->plans[pool->busy[i]];
        uint32_t           kind = p->words - 1;
        if (p->last >= position || pool->count[kind] == FAR) {
            i++;
            continue;
        }
        pool->free[kind][pool->count[kind]++] = p->slot;
        pool->busy[i] = pool->busy[--pool->busy_count];
    }
}

static void give_passing(struct maker *k, uint32_t block)
{
    static const struct pool none;
    struct pool              pool = none;
    for (uint32_t i = 0; i < k->f->blocks[block].count; i++) {
        uint32_t     node = node_in(k, block, i);
        struct plan *p = &k->plans[node];
        if (!needs_slot(k, node)) continue;
        release(k, &pool, i);
        if (p->words >= 1 && p->words <= 2 && pool.count[p->words - 1] > 0) {
            p->slot = pool.free[p->words - 1][--pool.count[p->words - 1]];
        } else {
            p->slot = k->slots;
            if (k->slots < SLOTS_MAX) k->slots += p->words;
        }
        if (p->words >= 1 && p->words <= 2 && pool.busy_count < FAR)
            pool.busy[pool.busy_count++] = node;
    }
}

static void join_block(struct maker *k, uint32_t block)
{
    for (uint32_t i = 0; i < k->f->blocks[block].count; i++)
        if (node_at(k, node_in(k, block, i))->op == QT_Store) join_store(k, node_in(k, block, i));
}

bool jl_run_plain;

bool jl_run_plan(struct maker *k)
{
    const struct qt_function *f = k->f;
    for (uint32_t i = 0; i < f->node_count; i++) {
        k->plans[i] = (struct plan){.slot = NO_SLOT, .block = NO_SLOT};
        if (i >= f->param_count) continue;
        k->plans[i].slot = k->fn->params[i].slot;
        k->plans[i].words = k->fn->params[i].words;
    }
    count_uses(k);
    for (uint32_t b = 0; b < f->block_count; b++) {
        if (!jl_run_plain) fuse_branch(k, b);
        for (uint32_t i = 0; i < f->blocks[b].count; i++) {
            unsigned op = node_at(k, node_in(k, b, i))->op;
            if (op == QT_Load && !jl_run_plain) alias_load(k, node_in(k, b, i));
            if (op == QT_Call || op == QT_Call_Value) count_outgoing(k, node_in(k, b, i));
        }
    }
    if (!jl_run_plain) jl_run_alias_loads(k);
    if (!jl_run_plain) jl_run_hoist(k);
    give_lasting(k);
    for (uint32_t b = 0; b < f->block_count && !jl_run_plain; b++) join_block(k, b);
    /* A callee's frame begins behind all slots, whose number is not known yet. So joined arguments
     * get slots behind SLOTS_MAX first, and move at the end. */
    k->fn->base = SLOTS_MAX + 1;
    for (uint32_t b = 0; b < f->block_count && !jl_run_plain; b++)
        for (uint32_t i = 0; i < f->blocks[b].count; i++) {
            unsigned op = node_at(k, node_in(k, b, i))->op;
            if (op == QT_Call || op == QT_Call_Value) join_arguments(k, node_in(k, b, i));
        }
    uint32_t common = k->slots, most = k->slots;
    for (uint32_t b = 0; b < f->block_count; b++) {
        k->slots = common;
        give_passing(k, b);
        if (k->slots > most) most = k->slots;
    }
    k->slots = most;
    k->fn->base = most + 1;
    k->fn->frame = most + 1 + k->outgoing;
    for (uint32_t i = 0; i < f->node_count; i++)
        if (k->plans[i].slot != NO_SLOT && k->plans[i].slot > SLOTS_MAX)
            k->plans[i].slot += k->fn->base - (SLOTS_MAX + 1);
    return k->fn->frame < SLOTS_MAX || jl_run_refuse(k, "needs too many registers");
}

uint32_t jl_run_slot(const struct maker *k, uint32_t node)
{
    uint32_t offset = 0;
    while (k->plans[node].alias != 0) {
        offset += k->plans[node].offset;
        node = k->plans[node].alias - 1;
    }
    return k->plans[node].slot + offset;
}

/* SPDX-License-Identifier: MIT */
/*
 * The verifier: rules of the module, of heads and of single nodes.
 *
 *     Q2001 head            the interval, the profile, main, errors
 *     Q2002 names           functions and values have words as names, each its own
 *     Q2003 fields          what a struct and an actor's state may hold
 *     Q2004 actor           an actor's functions fit its type
 *     Q2005 function-head   parameters, captures and results
 *     Q2006 blocks          each holds nodes of the function, at least one
 *     Q2007 terminator      one in each block, last
 *     Q2008 level           opcodes of the module's level only
 *     Q2009 flags           flags that the opcode knows
 *     Q2010 literal         numbers in their range
 *     Q2011 operands        their number, kinds and indexes
 *     Q2012 types           of operands
 *     Q2013 result-type     the type of a value is what the opcode gives
 *     Q2014 reachable       a path leads to each block
 *     Q2015 dominance       values are defined before their use, on every path
 *     Q2016 variables       Locals are used by Load and Store only
 *     Q2017 fallible        one Branch_Error before a value or an error is taken
 *     Q2018 handles         nurseries, starts and what Spawn gives are no values
 *     Q2019 nursery-open    spawns stand in a nursery
 *     Q2020 nursery-order   nurseries end once, inner before outer
 *     Q2021 nursery-end     on every way out of the function
 *     Q2022 nursery-join    the same are open on all paths to a block
 *     Q2023 defers          each is popped, on every path
 *     Q2025 task-handles    stay in the nursery of their task
 *     Q2026 back-end        CPU tenancies only
 *     Q2027 crossing        CPU_Serial to CPU_Parallel where a task begins only
 *     Q2028 core            has no concurrency
 *     Q2029 budget-cycle    each cycle pays (Mid, Low)
 *     Q2030 budget-call     each call pays, each spawn has a check (Mid, Low)
 */
#include "qtjir/inner.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool qt_broken(struct qt_check *c, const char *rule, uint32_t node, const char *format, ...)
{
    char    text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    struct jl_arena *arena = c->module->arena;
    if (c->function == UINT32_MAX)
        c->why = jl_format(arena, "%s: %s", rule, text);
    else if (node == UINT32_MAX)
        c->why = jl_format(arena, "%s: @%s: %s", rule, c->f->name, text);
    else
        c->why = jl_format(arena, "%s: @%s: %s: %s", rule, c->f->name,
                           qt_node_text(c->module, c->function, node), text);
    return false;
}

/* Q2001 to Q2004: the module. */

static bool check_actor(struct qt_check *c, const struct qt_actor *a)
{
    const struct qt_module    *m = c->module;
    const char                *rule = "Q2004 actor";
    const struct jl_type_info *info = jl_info(m->types, a->type);
    if (info->kind != JL_ACTOR || a->method_count != info->method_count)
        return qt_broken(c, rule, 0, "an actor and its type do not agree");
    if (a->init >= m->function_count || m->functions[a->init].actor != a->type ||
        m->functions[a->init].param_count != 0 || m->functions[a->init].result != JL_VOID)
        return qt_broken(c, rule, 0, "%s has an init that does not fit", info->name);
    for (uint32_t i = 0; i < a->method_count; i++) {
        const struct jl_type_info *fn = jl_info(m->types, info->methods[i].fn);
        bool                       fits = a->methods[i] < m->function_count && fn->kind == JL_FN &&
                    m->functions[a->methods[i]].actor == a->type;
        const struct qt_function *f = fits ? &m->functions[a->methods[i]] : NULL;
        /* The method's type has the plain result, also if it fails. */
        fits = fits && f->param_count == fn->param_count &&
               (fn->of == f->result || (f->fails && fn->of == jl_fallible_of(m->types, f->result)));
        fits = fits && qt_may_travel(m, f->result);
        for (uint32_t k = 0; fits && k < f->param_count; k++)
            fits = qt_may_travel(m, f->params[k]) &&
                   f->params[k] == jl_info(m->types, info->methods[i].fn)->params[k];
        if (!fits)
            return qt_broken(c, rule, 0, "the method %s.%s has a function that does not fit",
                             info->name, info->methods[i].name);
    }
    return true;
}

static bool check_fields(struct qt_check *c)
{
    const struct jl_types *types = c->module->types;
    for (jl_type t = JL_SIMPLE_KINDS; t < types->count; t++) {
        const struct jl_type_info *info = jl_info(types, t);
        if (info->kind != JL_STRUCT && info->kind != JL_ACTOR) continue;
        if (!jl_layout(c->module->types, t))
            return qt_broken(c, "Q2003 fields", 0, "%s is too large", info->name);
        for (uint32_t i = 0; i < info->field_count; i++)
            if (!qt_is_storable(types, info->fields[i].type) ||
                (info->kind == JL_ACTOR && qt_holds_task(c->module, info->fields[i].type)))
                return qt_broken(c, "Q2003 fields", 0, "%s.%s cannot be %s", info->name,
                                 info->fields[i].name,
                                 qt_type_text(c->module, info->fields[i].type));
    }
    return true;
}

bool qt_check_module(struct qt_check *c)
{
    const struct qt_module *m = c->module;
    struct qt_map           names = {0};
    bool                    is_new;
    if (m->interval == 0) return qt_broken(c, "Q2001 head", 0, "the interval must not be 0");
    if (m->profile < 0 || m->profile > 3 || m->level > QT_LOW)
        return qt_broken(c, "Q2001 head", 0, "unknown profile or level");
    if (m->main > m->function_count) return qt_broken(c, "Q2001 head", 0, "main does not exist");
    if (m->main > 0) {
        const struct qt_function *f = &m->functions[m->main - 1];
        bool                      result = f->result == JL_VOID || f->result == JL_I64;
        if (f->param_count > 0 || f->actor != 0 || !result)
            return qt_broken(c, "Q2001 head", 0, "main takes nothing and returns i64 or nothing");
    }
    for (uint32_t i = 0; i < m->function_count; i++) {
        const char *name = m->functions[i].name;
        if (!qt_is_word(name, true))
            return qt_broken(c, "Q2002 names", 0, "a function's name is no word");
        qt_map_at(m->arena, &names, 0, jl_intern(m->names, name, strlen(name)), &is_new);
        if (!is_new) return qt_broken(c, "Q2002 names", 0, "there are two functions @%s", name);
    }
    for (uint32_t i = 0; i < m->error_count; i++)
        if (m->errors[i].number >= 0)
            return qt_broken(c, "Q2001 head", 0, "the error %s is not below 0", m->errors[i].name);
    if (!check_fields(c)) return false;
    for (uint32_t i = 0; i < m->actor_count; i++)
        if (!check_actor(c, &m->actors[i])) return false;
    return true;
}

/* Q2005, Q2006: a function's head and the names of its values. */

static bool check_head_types(struct qt_check *c)
{
    const struct qt_function *f = c->f;
    const struct jl_types    *types = c->module->types;
    const char               *rule = "Q2005 function-head";
    for (uint32_t i = 0; i < f->param_count; i++) {
        const struct qt_node *n = i < f->node_count ? &f->nodes[i] : NULL;
        if (n == NULL || n->op != QT_Param || n->type != f->params[i] || n->literal != i ||
            n->name == NULL || f->param_names[i] != n->name)
            return qt_broken(c, rule, UINT32_MAX, "parameter %u has no Param node", i + 1);
        if (!qt_is_storable(types, f->params[i]))
            return qt_broken(c, rule, UINT32_MAX, "%%%s cannot be %s", n->name,
                             qt_type_text(c->module, f->params[i]));
    }
    enum jl_kind result = jl_kind_of(types, f->result);
    if (result != JL_VOID && result != JL_NEVER && !qt_is_storable(types, f->result))
        return qt_broken(c, rule, UINT32_MAX, "a result cannot be %s",
                         qt_type_text(c->module, f->result));
    if (f->capture_count > f->param_count)
        return qt_broken(c, rule, UINT32_MAX, "it has more captures than parameters");
    if (f->actor != 0 && jl_kind_of(types, f->actor) != JL_ACTOR)
        return qt_broken(c, rule, UINT32_MAX, "it belongs to no actor");
    return true;
}

static bool check_names(struct qt_check *c)
{
    struct qt_function *f = c->f;
    struct qt_map       names = {0};
    bool                is_new;
    for (uint32_t i = 0; i < f->node_count; i++) {
        const char *name = f->nodes[i].name;
        if (name == NULL) continue;
        if (!qt_is_word(name, false))
            return qt_broken(c, "Q2002 names", UINT32_MAX, "a value's name is no word");
        qt_map_at(c->module->arena, &names, 0, jl_intern(c->module->names, name, strlen(name)),
                  &is_new);
        if (!is_new)
            return qt_broken(c, "Q2002 names", UINT32_MAX, "there are two values %%%s", name);
    }
    return true;
}

bool qt_check_head(struct qt_check *c)
{
    struct qt_function *f = c->f;
    if (!check_head_types(c) || !check_names(c)) return false;
    if (f->block_count == 0) return qt_broken(c, "Q2006 blocks", UINT32_MAX, "it has no block");
    c->block_of = jl_new(c->module->arena, ((size_t)f->node_count + 1) * sizeof(uint32_t));
    c->place_of = jl_new(c->module->arena, ((size_t)f->node_count + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; i < f->node_count; i++) c->block_of[i] = UINT32_MAX;
    for (uint32_t b = 0; b < f->block_count; b++) {
        const struct qt_block *block = &f->blocks[b];
        if (block->count == 0) return qt_broken(c, "Q2006 blocks", UINT32_MAX, "bb%u is empty", b);
        for (uint32_t i = 0; i < block->count; i++) {
            uint32_t node = block->nodes[i];
            if (node >= f->node_count || c->block_of[node] != UINT32_MAX ||
                f->nodes[node].op >= QT_OP_COUNT || f->nodes[node].op == QT_Param)
                return qt_broken(c, "Q2006 blocks", UINT32_MAX, "bb%u holds what is no node", b);
            c->block_of[node] = b;
            c->place_of[node] = i;
            bool last = i + 1 == block->count;
            bool ends = (qt_ops[f->nodes[node].op].flags & QT_TERMINATOR) != 0;
            if (ends && !last)
                return qt_broken(c, "Q2007 terminator", node, "it does not stand last in bb%u", b);
            if (last && !ends)
                return qt_broken(c, "Q2007 terminator", node, "bb%u does not end with a terminator",
                                 b);
        }
    }
    return true;
}

/* Q2008 to Q2013: single nodes. */

static uint8_t allowed_flags(enum qt_op op)
{
    switch (op) {
    case QT_Spawn: return QT_F_TRY | QT_F_WITH_CAP;
    case QT_Task_Create: return QT_F_TRY | QT_F_WITH_CAP | QT_F_ASYNC;
    case QT_Nursery_Begin:
    case QT_Nursery_Open: return QT_F_WITH_CAP;
    case QT_Cap_New: return QT_F_PARENT | QT_F_DELEGATABLE;
    default: return 0;
    }
}

static bool fits(jl_type type, int64_t literal)
{
    if (type == JL_BOOL) return literal == 0 || literal == 1;
    unsigned bits = jl_bits(type);
    if (bits == 0 || bits == 64) return true;
    if (jl_is_signed(type)) return literal >= -(1LL << (bits - 1)) && literal < 1LL << (bits - 1);
    return literal >= 0 && literal < 1LL << bits;
}

static bool check_literal(struct qt_check *c, const struct qt_node *n, uint32_t node)
{
    const char *rule = "Q2010 literal";
    switch (n->op) {
    case QT_Const:
        return fits(n->type, n->literal) ||
               qt_broken(c, rule, node, "the number does not fit in %s",
                         qt_type_text(c->module, n->type));
    case QT_Error: return n->literal < 0 || qt_broken(c, rule, node, "an error is below 0");
    case QT_Str:
        return n->text != NULL || n->text_length == 0 || qt_broken(c, rule, node, "it has no text");
    case QT_Defer_Pop:
        return (n->literal > 0 && n->literal <= 1 << 20) ||
               qt_broken(c, rule, node, "it pops at least one defer");
    case QT_Budget_Decrement:
        return (n->literal >= 0 && n->literal <= 1LL << 40) ||
               qt_broken(c, rule, node, "a cost is not negative");
    case QT_Budget_Check:
        return (n->literal >= 0 && n->literal <= UINT32_MAX) ||
               qt_broken(c, rule, node, "an interval is not negative");
    case QT_Actor_New:
        for (uint32_t i = 0; i < c->module->actor_count; i++)
            if (jl_kind_of(c->module->types, n->type) == JL_START &&
                c->module->actors[i].type == jl_info(c->module->types, n->type)->of)
                return true;
        return qt_broken(c, rule, node, "the actor has no functions");
    default: return true;
    }
}

static bool check_node(struct qt_check *c, uint32_t node)
{
    const struct qt_node *n = &c->f->nodes[node];
    const char           *why = NULL;
    static const char    *levels[] = {"High", "Mid", "Low"};
    if ((qt_ops[n->op].levels >> c->module->level & 1) == 0)
        return qt_broken(c, "Q2008 level", node, "the opcode does not exist at level %s",
                         levels[c->module->level]);
    if (n->flags & ~allowed_flags((enum qt_op)n->op))
        return qt_broken(c, "Q2009 flags", node, "it has a flag that the opcode does not know");
    if (!qt_shape_holds(c->module, c->function, node, &why))
        return qt_broken(c, "Q2011 operands", node, "%s", why);
    jl_type type = qt_rule_type(c->module, c->function, node, &why);
    if (type == JL_BAD) return qt_broken(c, "Q2012 types", node, "%s", why);
    if (type != n->type)
        return qt_broken(c, "Q2013 result-type", node, "its type is %s",
                         qt_type_text(c->module, type));
    return check_literal(c, n, node);
}

bool qt_check_nodes(struct qt_check *c)
{
    for (uint32_t b = 0; b < c->f->block_count; b++)
        for (uint32_t i = 0; i < c->f->blocks[b].count; i++)
            if (!check_node(c, c->f->blocks[b].nodes[i])) return false;
    return true;
}

static bool check_function(struct qt_check *c)
{
    if (!qt_check_head(c) || !qt_check_nodes(c)) return false;
    if (!qt_flow_make(c->f, &c->flow))
        return qt_broken(c, "Q2006 blocks", UINT32_MAX, "memory was refused");
    bool right = qt_check_uses(c) && qt_check_scopes(c) && qt_check_handles(c) &&
                 qt_check_tenancy(c) && (c->module->level == QT_HIGH || qt_check_budget(c));
    qt_flow_free(&c->flow);
    return right;
}

bool qt_verify(struct qt_module *module, const char **why)
{
    struct qt_check c = {.module = module, .function = UINT32_MAX};
    bool            right = qt_check_module(&c);
    for (uint32_t i = 0; right && i < module->function_count; i++) {
        c.function = i;
        c.f = &module->functions[i];
        right = check_function(&c);
    }
    if (why != NULL) *why = c.why;
    return right;
}

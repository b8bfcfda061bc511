/* SPDX-License-Identifier: MIT */
/*
 * Which functions fail. This is found before any body is checked, because a call's type depends on
 * it. So it is found from the words alone: `!T`, `try`, `return error.X`, and `await` of what can
 * fail. Of `await x.m()` the method's name decides: it can fail if any method of that name can.
 */
#include "meaning/check.h"

#include <string.h>

struct walk {
    struct jl_checker  *c;
    struct jl_function *function;
    uint32_t            depth;
};

static void walk_block(struct walk *w, const struct jl_block *block);
static void walk_expr(struct walk *w, const struct jl_expr *e);

static void fail(struct walk *w)
{
    if (w->function->kind != JL_F_DEFER) w->function->effects |= JL_EFFECT_FAILS;
}

static void walk_function(struct walk *w, struct jl_function *function, struct jl_function *outer)
{
    struct jl_unit *unit = w->c->unit;
    function->outer = outer;
    if (function->kind != JL_F_SIGNATURE && function->body)
        JL_PUSH(w->c->arena, unit->all, unit->all_count, unit->all_room) = function;
    struct jl_function *before = w->function;
    w->function = function;
    if (function->result && function->result->kind == JL_WRITTEN_FALLIBLE) fail(w);
    if (function->body) walk_block(w, function->body);
    w->function = before;
}

static void await_name(struct walk *w, const char *name)
{
    struct jl_checker      *c = w->c;
    const struct jl_symbol *symbol = jl_look_up(c, name);
    if (symbol && symbol->kind == JL_SYMBOL_FUNCTION)
        JL_PUSH(c->arena, c->awaits, c->await_count, c->await_room) =
            (struct jl_edge){w->function, symbol->function};
    else if (symbol && symbol->kind == JL_SYMBOL_HOST_FUNCTION) {
        jl_type fn = c->host->entries[symbol->index].fn;
        if (jl_is_fallible(c, jl_info(c->types, fn)->of)) fail(w);
    } else {
        fail(w);
    }
}

static void walk_await(struct walk *w, const struct jl_expr *operand)
{
    const struct jl_expr *callee = operand && operand->kind == JL_E_CALL ? operand->left : NULL;
    if (callee && callee->kind == JL_E_NAME)
        await_name(w, callee->name.text);
    else if (callee && callee->kind == JL_E_MEMBER) {
        if (jl_map_get(&w->c->member_fails, callee->name.text) != 1) fail(w);
    } else {
        fail(w);
    }
}

static void walk_expr(struct walk *w, const struct jl_expr *e)
{
    if (!e || w->depth > JL_CHECK_DEPTH) return;
    w->depth++;
    if (e->kind == JL_E_TRY) fail(w);
    if (e->kind == JL_E_AWAIT) walk_await(w, e->left);
    walk_expr(w, e->left);
    walk_expr(w, e->right);
    walk_expr(w, e->cap);
    for (uint32_t i = 0; i < e->arg_count; i++) walk_expr(w, e->args[i].value);
    if (e->function) walk_function(w, e->function, w->function);
    w->depth--;
}

static void walk_statement(struct walk *w, const struct jl_statement *s)
{
    bool returns_error = s->kind == JL_S_RETURN && s->value && s->value->kind == JL_E_ERROR;
    if (returns_error) fail(w);
    walk_expr(w, s->target);
    walk_expr(w, s->value);
    if (s->body) walk_block(w, s->body);
    if (s->otherwise) walk_block(w, s->otherwise);
    if (s->function) walk_function(w, s->function, w->function);
}

static void walk_block(struct walk *w, const struct jl_block *block)
{
    if (w->depth > JL_CHECK_DEPTH) return;
    w->depth++;
    for (uint32_t i = 0; i < block->count; i++) walk_statement(w, block->statements[i]);
    w->depth--;
}

static void know_member(struct jl_checker *c, const char *name, bool fails)
{
    if (!name) return;
    uint32_t *known = jl_map_at(c, &c->member_fails, name);
    if (fails || !*known) *known = fails ? 2 : 1;
}

static void know_members(struct jl_checker *c)
{
    know_member(c, jl_intern(c->names, "send", 4), true);
    know_member(c, jl_intern(c->names, "recv", 4), true);
    for (uint32_t i = 0; i < c->unit->actor_count; i++) {
        const struct jl_actor *actor = c->unit->actors[i];
        for (uint32_t k = 0; k < actor->method_count; k++)
            know_member(c, actor->methods[k]->name.text, true);
    }
    for (uint32_t i = 0; c->host && i < c->host->count; i++) {
        const struct jl_host_entry *entry = &c->host->entries[i];
        if (entry->kind == JL_HOST_FUNCTION && entry->receiver)
            know_member(c, entry->name, jl_is_fallible(c, jl_info(c->types, entry->fn)->of));
    }
}

void jl_find_failing(struct jl_checker *c)
{
    struct jl_unit *unit = c->unit;
    struct walk     walk = {.c = c};
    know_members(c);
    for (uint32_t i = 0; i < unit->function_count; i++)
        walk_function(&walk, unit->functions[i], NULL);
    for (uint32_t i = 0; i < unit->actor_count; i++) {
        struct jl_actor *actor = unit->actors[i];
        for (uint32_t k = 0; k < actor->method_count; k++) {
            actor->methods[k]->actor = actor;
            walk_function(&walk, actor->methods[k], NULL);
        }
    }
    if (unit->statements) walk_function(&walk, unit->statements, NULL);
    for (uint32_t i = 0; i < unit->all_count; i++) {
        struct jl_function *function = unit->all[i];
        bool                is_main = function->kind == JL_F_UNIT || function == unit->main;
        if (is_main) function->effects |= JL_EFFECT_FAILS;
    }
    jl_spread(unit, c->awaits, c->await_count, JL_EFFECT_FAILS);
    for (uint32_t i = 0; i < unit->all_count; i++)
        unit->all[i]->fails = unit->all[i]->effects & JL_EFFECT_FAILS;
}

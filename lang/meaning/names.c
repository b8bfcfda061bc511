/* SPDX-License-Identifier: MIT */
/* Scopes and symbols. */
#include "meaning/check.h"

#include <string.h>

static uint32_t hash_of(const char *key)
{
    uint64_t bits = (uint64_t)(uintptr_t)key;
    return (uint32_t)((bits * 0x9E3779B97F4A7C15u) >> 32);
}

static uint32_t slot_of(const struct jl_map *map, const char *key)
{
    uint32_t slot = hash_of(key) & (map->room - 1);
    while (map->keys[slot] && map->keys[slot] != key) slot = (slot + 1) & (map->room - 1);
    return slot;
}

static void grow(struct jl_checker *c, struct jl_map *map)
{
    struct jl_map old = *map;
    map->room = old.room ? 2 * old.room : 64;
    map->keys = jl_new(c->arena, map->room * sizeof *map->keys);
    map->values = jl_new(c->arena, map->room * sizeof *map->values);
    for (uint32_t i = 0; i < old.room; i++) {
        if (!old.keys[i]) continue;
        uint32_t slot = slot_of(map, old.keys[i]);
        map->keys[slot] = old.keys[i];
        map->values[slot] = old.values[i];
    }
}

uint32_t *jl_map_at(struct jl_checker *c, struct jl_map *map, const char *key)
{
    if (2 * map->count >= map->room) grow(c, map);
    uint32_t slot = slot_of(map, key);
    if (!map->keys[slot]) {
        map->keys[slot] = key;
        map->count++;
    }
    return &map->values[slot];
}

uint32_t jl_map_get(const struct jl_map *map, const char *key)
{
    return map->room && key ? map->values[slot_of(map, key)] : 0;
}

struct jl_scope jl_scope_open(struct jl_checker *c)
{
    struct jl_scope scope = {c->scope_begin, c->cap_count, c->binding_count};
    c->scope_begin = c->binding_count;
    return scope;
}

void jl_scope_close(struct jl_checker *c, struct jl_scope scope)
{
    while (c->binding_count > scope.count) {
        struct jl_binding *binding = &c->bindings[--c->binding_count];
        *jl_map_at(c, &c->bound, binding->name) = binding->hidden;
    }
    c->cap_count = scope.caps;
    c->scope_begin = scope.begin;
}

struct jl_symbol *jl_new_symbol(struct jl_checker *c, enum jl_symbol_kind kind, struct jl_name name,
                                jl_type type)
{
    struct jl_known *known = jl_new(c->arena, sizeof *known);
    known->symbol = (struct jl_symbol){
        .kind = kind,
        .name = name.text,
        .at = name.at,
        .type = type,
        .function = c->frame ? c->frame->function : NULL,
    };
    known->nurseries = c->frame ? c->frame->nurseries : 0;
    jl_note_slot(c, &known->symbol.type);
    return &known->symbol;
}

/* Whether the name may be bound here. */
static void check_unbound(struct jl_checker *c, struct jl_name name)
{
    uint32_t found = jl_map_get(&c->bound, name.text);
    if (!found) return;
    const struct jl_symbol *old = c->bindings[found - 1].symbol;
    if (old->kind == JL_SYMBOL_BUILTIN) {
        JL_WRONG(c, "N1009", name.at, "`%s` is a name of the language and cannot be declared again",
                 name.text)
            ->help = "choose another name";
    } else if (found - 1 >= c->scope_begin) {
        struct jl_diagnostic *wrong = JL_WRONG(c, "N1004", name.at, "`%s` is declared twice%s",
                                               name.text, c->frame ? " in one block" : "");
        wrong->help = c->frame ? "choose another name, or assign to the first one with `=`"
                               : "choose another name";
        if (old->at.end) {
            wrong->also = old->at;
            wrong->also_text = "the first declaration is here";
        }
    }
}

struct jl_symbol *jl_declare(struct jl_checker *c, enum jl_symbol_kind kind, struct jl_name name,
                             jl_type type)
{
    struct jl_symbol *symbol = jl_new_symbol(c, kind, name, type);
    if (!name.text || !strcmp(name.text, "_")) return symbol;
    if (kind != JL_SYMBOL_BUILTIN && kind != JL_SYMBOL_HOST_FUNCTION) check_unbound(c, name);
    uint32_t          *bound = jl_map_at(c, &c->bound, name.text);
    struct jl_binding *binding = &JL_PUSH(c->arena, c->bindings, c->binding_count, c->binding_room);
    *binding = (struct jl_binding){name.text, symbol, *bound};
    *bound = c->binding_count;
    bool is_local = kind <= JL_SYMBOL_LOOP;
    if (is_local && jl_is_cap(type)) JL_PUSH(c->arena, c->caps, c->cap_count, c->cap_room) = symbol;
    return symbol;
}

struct jl_symbol *jl_look_up(const struct jl_checker *c, const char *name)
{
    uint32_t found = jl_map_get(&c->bound, name);
    return found ? c->bindings[found - 1].symbol : NULL;
}

/* Captures. */

static const char *const crossing[] = {
    [JL_F_CLOSURE] = "a closure",
    [JL_F_SPAWN] = "a spawned block",
    [JL_F_DEFER] = "a `defer`",
};

static void report_var(struct jl_checker *c, const struct jl_symbol *symbol, struct jl_span at,
                       enum jl_function_kind kind)
{
    struct jl_diagnostic *wrong =
        JL_WRONG(c, "T4030", at, "`%s` is a variable that changes, so %s cannot use it",
                 symbol->name, crossing[kind]);
    if (symbol->kind == JL_SYMBOL_STATE)
        wrong->help = jl_format(c->arena, "copy it first: `let %.40s_now = %.40s`", symbol->name,
                                symbol->name);
    else
        wrong->help = jl_format(c->arena,
                                "copy it into a `let`, or send values through a channel: "
                                "`let %.40s_now = %.40s`",
                                symbol->name, symbol->name);
}

static bool add_capture(struct jl_checker *c, struct jl_function *function,
                        struct jl_symbol *symbol, struct jl_span at)
{
    for (uint32_t i = 0; i < function->capture_count; i++)
        if (function->captures[i] == symbol) return true;
    if (function->capture_count == JL_MEMBERS_MAX) {
        JL_WRONG(c, "T4027", at, "%s uses more than %d names of the function around it",
                 crossing[function->kind], JL_MEMBERS_MAX)
            ->help = "put the values into a struct";
        return false;
    }
    JL_PUSH(c->arena, function->captures, function->capture_count, function->capture_room) = symbol;
    return true;
}

/* What belongs to one task, and what to one nursery. */
static bool may_cross(struct jl_checker *c, const struct jl_symbol *symbol, struct jl_span at,
                      enum jl_function_kind kind)
{
    uint64_t refused = (uint64_t)1 << JL_TASK;
    if (kind != JL_F_DEFER) refused |= 1u << JL_SUPERVISOR; /* a closure can become a task */
    if (!jl_holds(c, symbol->type, refused)) return true;
    JL_WRONG(c, "T4031", at, "`%s` (%s) belongs to the task that made it, so %s cannot use it",
             symbol->name, jl_show(c, symbol->type), crossing[kind])
        ->help = "use it outside of the block, and hand over what it gives";
    return false;
}

void jl_capture(struct jl_checker *c, struct jl_symbol *symbol, struct jl_span at)
{
    bool is_state = symbol->kind == JL_SYMBOL_STATE;
    if (symbol->kind > JL_SYMBOL_LOOP && !is_state) return;
    for (struct jl_frame *frame = c->frame; frame; frame = frame->outer) {
        struct jl_function *function = frame->function;
        if (is_state) {
            if (function->kind != JL_F_CLOSURE && function->kind != JL_F_SPAWN) continue;
            report_var(c, symbol, at, function->kind);
            return;
        }
        if (function == symbol->function) return;
        if (symbol->kind == JL_SYMBOL_VAR) {
            report_var(c, symbol, at, function->kind);
            return;
        }
        if (!may_cross(c, symbol, at, function->kind)) return;
        if (!add_capture(c, function, symbol, at)) return;
    }
}

struct jl_symbol *jl_use(struct jl_checker *c, struct jl_name name)
{
    struct jl_symbol *symbol = jl_look_up(c, name.text);
    if (!symbol) {
        if (!name.text) return NULL;
        const char           *near = jl_suggest_name(c, name.text);
        struct jl_diagnostic *wrong =
            JL_WRONG(c, "N1003", name.at, "the name `%.60s` is unknown", name.text);
        wrong->help = jl_did_you_mean(c, near);
        if (!near)
            wrong->help = "declare it with `let` or `func`; the host offers nothing of this name";
        return NULL;
    }
    symbol->is_used = true;
    jl_capture(c, symbol, name.at);
    return symbol;
}

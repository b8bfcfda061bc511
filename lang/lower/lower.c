/* SPDX-License-Identifier: MIT */
/* A module from a unit: heads first, because calls look at them, and then the bodies. */
#include "lower/body.h"

#include <string.h>

static uint32_t add_function(struct jl_lowering *low, const char *name)
{
    (void)JL_PUSH(low->arena, low->given, low->given_count, low->given_room);
    return qt_add_function(low->module, jl_intern(low->unit->names, name, strlen(name)));
}

uint32_t jl_low_add_child(struct jl_lowering *low, uint32_t outer, const char *what, unsigned kind)
{
    uint32_t number = ++low->given[outer].of_kind[kind];
    return add_function(
        low, jl_format(low->arena, "%s.%s%u", low->module->functions[outer].name, what, number));
}

/* Heads. */

static uint32_t add_named(struct jl_lowering *low, const struct jl_function *function)
{
    enum { SPAWN, CLOSURE, DEFER };
    const struct jl_unit *unit = low->unit;
    uint32_t              outer = function->outer ? function->outer->lowered - 1 : 0;
    switch (function->kind) {
    case JL_F_METHOD:
        return add_function(
            low, jl_format(low->arena, "%s.%s", function->actor->name.text, function->name.text));
    case JL_F_SPAWN: return jl_low_add_child(low, outer, "spawn", SPAWN);
    case JL_F_CLOSURE: return jl_low_add_child(low, outer, "closure", CLOSURE);
    case JL_F_DEFER: return jl_low_add_child(low, outer, "defer", DEFER);
    case JL_F_UNIT: return add_function(low, unit->main == function ? "main" : "statements");
    default: return add_function(low, function->name.text);
    }
}

/* The actor whose state a function may use: of a method, and of its defers. */
static jl_type actor_of(const struct jl_function *function)
{
    while (function->kind == JL_F_DEFER && function->outer) function = function->outer;
    return function->kind == JL_F_METHOD && function->actor ? function->actor->type : 0;
}

static void add_head(struct jl_lowering *low, struct jl_function *function)
{
    uint32_t            index = add_named(low, function);
    struct qt_function *made = &low->module->functions[index];
    function->lowered = index + 1;
    bool has_result = function->kind != JL_F_DEFER && function->kind != JL_F_SPAWN;
    made->result = has_result ? function->result_type : (jl_type)JL_VOID; /* nobody takes it */
    made->fails = function->fails && function->kind != JL_F_DEFER;
    made->is_async = function->is_async;
    made->actor = actor_of(function);
    made->line = jl_low_line(low, function->at);
    for (uint32_t i = 0; i < function->capture_count; i++)
        qt_add_param(low->module, index, function->captures[i]->name, function->captures[i]->type);
    low->module->functions[index].capture_count = function->capture_count;
    for (uint32_t i = 0; i < function->param_count; i++)
        qt_add_param(low->module, index, function->params[i].name.text,
                     function->params[i].symbol->type);
}

/* Bodies. */

static void lower_function(struct jl_lowering *low, const struct jl_function *function)
{
    struct jl_body body;
    jl_low_begin(&body, low, function->lowered - 1);
    body.is_unit = function->kind == JL_F_UNIT;
    for (uint32_t i = 0; i < function->capture_count; i++)
        jl_low_bind(&body, function->captures[i], i, false);
    for (uint32_t i = 0; i < function->param_count; i++)
        jl_low_bind(&body, function->params[i].symbol, function->capture_count + i, false);
    jl_low_at(&body, function->at);
    jl_low_block(&body, function->body, JL_NO_NODE);
    if (!body.dead) jl_low_return(&body, JL_NO_NODE);
    jl_low_finish(&body);
}

static uint32_t lower_init(struct jl_lowering *low, const struct jl_actor *actor)
{
    struct jl_body body;
    uint32_t       index = add_function(low, jl_format(low->arena, "%s.init", actor->name.text));
    low->module->functions[index].actor = actor->type;
    low->module->functions[index].line = jl_low_line(low, actor->at);
    jl_low_begin(&body, low, index);
    for (uint32_t i = 0; i < actor->state_count; i++) {
        uint32_t value = jl_low_expr(&body, actor->state[i]->value);
        uint32_t set = jl_low_emit(&body, QT_State_Set, JL_VOID, value, JL_NO_NODE, JL_NO_NODE);
        jl_low_node(&body, set)->literal = i;
    }
    jl_low_end(&body, QT_Return, JL_NO_NODE);
    jl_low_finish(&body);
    return index;
}

static void add_actor(struct jl_lowering *low, const struct jl_actor *actor)
{
    struct qt_module *module = low->module;
    struct qt_actor   made = {
          .type = actor->type,
          .init = lower_init(low, actor),
          .methods = jl_new(low->arena, actor->method_count * sizeof(uint32_t)),
          .method_count = actor->method_count,
    };
    for (uint32_t i = 0; i < actor->method_count; i++)
        made.methods[i] = actor->methods[i]->lowered - 1;
    JL_PUSH(low->arena, module->actors, module->actor_count, module->actor_room) = made;
}

void jl_lower(struct jl_unit *unit, struct qt_module *module)
{
    struct jl_lowering low = {
        .unit = unit, .module = module, .types = module->types, .arena = module->arena};
    module->source = unit->source->path;
    module->profile = (int)unit->profile;
    module->level = QT_HIGH;
    for (uint32_t i = 0; i < unit->error_count; i++)
        qt_add_error(module, unit->errors[i].name, unit->errors[i].number);
    for (uint32_t i = 0; i < unit->all_count; i++) add_head(&low, unit->all[i]);
    for (uint32_t i = 0; i < unit->actor_count; i++) add_actor(&low, unit->actors[i]);
    for (uint32_t i = 0; i < unit->all_count; i++) lower_function(&low, unit->all[i]);
    if (unit->main) module->main = unit->main->lowered;
    qt_place_tenancies(module);
}

void jl_low_push_captures(struct jl_body *body, uint32_t node, const struct jl_function *function)
{
    for (uint32_t i = 0; i < function->capture_count; i++)
        jl_low_add(body, node, jl_low_symbol(body, function->captures[i]));
}

/* SPDX-License-Identifier: MIT */
/* What the runtime calls: entries of tasks, closures, defers and actors. */
#include "emit/c.h"

enum { AS_CLOSURE = 1, AS_SPAWN = 2, AS_ASYNC = 4, AS_DEFER = 8 };

/* In which ways each function is used. */
static uint8_t *uses_of(struct jl_emitter *e)
{
    const struct qt_module *module = e->module;
    uint8_t                *uses = jl_new(module->arena, module->function_count);
    for (uint32_t f = 0; f < module->function_count; f++) {
        const struct qt_function *function = &module->functions[f];
        for (uint32_t n = 0; n < function->node_count; n++) {
            const struct qt_node *node = &function->nodes[n];
            uint8_t               use = node->op == QT_Closure_New  ? AS_CLOSURE
                                        : node->op == QT_Spawn      ? AS_SPAWN
                                        : node->op == QT_Async_Call ? AS_ASYNC
                                        : node->op == QT_Defer_Push ? AS_DEFER
                                                                    : 0;
            if (use) uses[node->operands[0].index] |= use;
        }
    }
    return uses;
}

static void put_fields(struct jl_emitter *e, const struct qt_function *f, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        jl_c_put(e, "    ");
        jl_c_put_type(e, f->params[i]);
        jl_c_put(e, " a%u;\n", i);
    }
}

static void put_arguments_struct(struct jl_emitter *e, uint32_t function)
{
    const struct qt_function *f = &e->module->functions[function];
    if (f->param_count == 0) return;
    jl_c_put(e, "struct ");
    jl_c_put_function_name(e, "A", function);
    jl_c_put(e, " {\n");
    put_fields(e, f, f->param_count);
    jl_c_put(e, "};\n");
}

static void put_environment_struct(struct jl_emitter *e, uint32_t function, bool with_self,
                                   uint32_t count)
{
    if (count == 0 && !with_self) return;
    jl_c_put(e, "struct ");
    jl_c_put_function_name(e, "E", function);
    jl_c_put(e, " {\n");
    if (with_self)
        jl_c_put(e, "    struct actor_%u *self;\n", e->module->functions[function].actor);
    put_fields(e, &e->module->functions[function], count);
    jl_c_put(e, "};\n");
}

/* "    return f4_x(...);" with what lies in `from`, then parameters from `first` on. */
static void put_inner_call(struct jl_emitter *e, uint32_t function, const char *out,
                           const char *from, uint32_t first)
{
    const struct qt_function *f = &e->module->functions[function];
    bool                      any = false;
    jl_c_put_function_name(e, "f", function);
    jl_c_put(e, "(");
    if (f->fails && jl_c_has_value(e, f->result)) {
        jl_c_put(e, "%s", out);
        any = true;
    }
    for (uint32_t i = 0; i < f->param_count; i++) {
        jl_c_put(e, "%s", any ? ", " : "");
        any = true;
        if (i < first) {
            jl_c_put(e, "%sa%u", from, i);
        } else {
            jl_c_put(e, "p%u", i);
        }
    }
    jl_c_put(e, ")");
}

/* Copies the arguments to this frame, and gives the record back. */
static void put_unpacking(struct jl_emitter *e, uint32_t function)
{
    if (e->module->functions[function].param_count > 0) {
        jl_c_put(e, "    struct ");
        jl_c_put_function_name(e, "A", function);
        jl_c_put(e, " a = *(struct ");
        jl_c_put_function_name(e, "A", function);
        jl_c_put(e, " *)argument;\n");
    }
    jl_c_put(e, "    jl_record_done(argument);\n");
}

static void put_spawn_entry(struct jl_emitter *e, uint32_t function)
{
    const struct qt_function *f = &e->module->functions[function];
    bool                      out = f->fails && jl_c_has_value(e, f->result);
    jl_c_put(e, "\nJANUS_OWN_OPS static int64_t ");
    jl_c_put_function_name(e, "s", function);
    jl_c_put(e, "(void *argument)\n{\n");
    put_unpacking(e, function);
    if (out) {
        jl_c_put(e, "    ");
        jl_c_put_type(e, f->result);
        jl_c_put(e, " value;\n");
    }
    jl_c_put(e, f->fails ? "    return " : "    (void)");
    put_inner_call(e, function, "&value", "a.", UINT32_MAX);
    jl_c_put(e, f->fails ? ";\n}\n" : ";\n    return 0;\n}\n");
}

static void put_async_entry(struct jl_emitter *e, uint32_t function)
{
    const struct qt_function *f = &e->module->functions[function];
    bool                      has = jl_c_has_value(e, f->result);
    jl_c_put(e, "\nJANUS_OWN_OPS static int64_t ");
    jl_c_put_function_name(e, "a", function);
    jl_c_put(e, "(void *argument)\n{\n");
    if (has) {
        jl_c_put(e, "    ");
        jl_c_put_type(e, f->result);
        jl_c_put(e, " *value = jl_call_value_of(argument);\n");
    }
    put_unpacking(e, function);
    jl_c_put(e, f->fails ? "    int64_t error = " : has ? "    *value = " : "    ");
    put_inner_call(e, function, "value", "a.", UINT32_MAX);
    jl_c_put(e, ";\n");
    if (f->fails) jl_c_put(e, "    if (error != 0) return error;\n");
    if (has) {
        jl_c_put(e, "    jl_pack(value, ");
        jl_c_put_shape(e, f->result);
        jl_c_put(e, ");\n");
    }
    jl_c_put(e, "    return 0;\n}\n");
}

static void put_closure_entry(struct jl_emitter *e, uint32_t function)
{
    const struct qt_function *f = &e->module->functions[function];
    bool                      has = jl_c_has_value(e, f->result);
    jl_c_put(e, "\nJANUS_OWN_OPS static ");
    if (f->fails) {
        jl_c_put(e, "int64_t");
    } else if (has) {
        jl_c_put_type(e, f->result);
    } else {
        jl_c_put(e, "void");
    }
    jl_c_put(e, " ");
    jl_c_put_function_name(e, "c", function);
    jl_c_put(e, "(");
    if (f->fails && has) {
        jl_c_put_type(e, f->result);
        jl_c_put(e, " *result, ");
    }
    jl_c_put(e, "void *environment");
    for (uint32_t i = f->capture_count; i < f->param_count; i++) {
        jl_c_put(e, ", ");
        jl_c_put_type(e, f->params[i]);
        jl_c_put(e, " p%u", i);
    }
    jl_c_put(e, ")\n{\n");
    if (f->capture_count > 0) {
        jl_c_put(e, "    const struct ");
        jl_c_put_function_name(e, "E", function);
        jl_c_put(e, " *captures = environment;\n");
    } else {
        jl_c_put(e, "    (void)environment;\n");
    }
    jl_c_put(e, f->fails || has ? "    return " : "    ");
    put_inner_call(e, function, "result", "captures->", f->capture_count);
    jl_c_put(e, ";\n}\n");
}

static void put_defer_entry(struct jl_emitter *e, uint32_t function)
{
    const struct qt_function *f = &e->module->functions[function];
    bool                      any = f->actor != 0 || f->param_count > 0;
    jl_c_put(e, "\nJANUS_OWN_OPS static void ");
    jl_c_put_function_name(e, "d", function);
    jl_c_put(e, "(void *environment)\n{\n");
    if (any) {
        jl_c_put(e, "    struct ");
        jl_c_put_function_name(e, "E", function);
        jl_c_put(e, " *captures = environment;\n    ");
    } else {
        jl_c_put(e, "    (void)environment;\n    ");
    }
    jl_c_put_function_name(e, "f", function);
    jl_c_put(e, "(%s", f->actor ? "captures->self" : "");
    for (uint32_t i = 0; i < f->param_count; i++) {
        jl_c_put(e, "%scaptures->a%u", i > 0 || f->actor ? ", " : "", i);
    }
    jl_c_put(e, ");\n}\n");
}

void jl_c_put_entries(struct jl_emitter *e)
{
    const uint8_t *uses = uses_of(e);
    for (uint32_t f = 0; f < e->module->function_count; f++) {
        const struct qt_function *function = &e->module->functions[f];
        if (uses[f] & (AS_SPAWN | AS_ASYNC)) put_arguments_struct(e, f);
        if (uses[f] & AS_CLOSURE) put_environment_struct(e, f, false, function->capture_count);
        if (uses[f] & AS_DEFER) {
            put_environment_struct(e, f, function->actor != 0, function->param_count);
        }
    }
    for (uint32_t f = 0; f < e->module->function_count; f++) {
        if (uses[f] & AS_SPAWN) put_spawn_entry(e, f);
        if (uses[f] & AS_ASYNC) put_async_entry(e, f);
        if (uses[f] & AS_CLOSURE) put_closure_entry(e, f);
        if (uses[f] & AS_DEFER) put_defer_entry(e, f);
    }
}

/* Actors. */

static void put_message_struct(struct jl_emitter *e, const struct qt_actor *actor, uint32_t method)
{
    const struct qt_function *f = &e->module->functions[actor->methods[method]];
    if (f->param_count == 0) return;
    jl_c_put(e, "struct message_%u_%u {\n", actor->type, method);
    put_fields(e, f, f->param_count);
    jl_c_put(e, "};\n");
    for (uint32_t i = 0; i < f->param_count; i++) {
        if (jl_kind_of(e->types, f->params[i]) == JL_FN) {
            jl_c_cannot(e, "a function cannot be sent to an actor: @%s", f->name);
        }
    }
}

/* The shape of a message, whose offsets the C compiler knows. */
static bool put_message_shape(struct jl_emitter *e, const struct qt_actor *actor, uint32_t method)
{
    const struct qt_function *f = &e->module->functions[actor->methods[method]];
    struct jl_types          *types = e->types;
    jl_type                   made = jl_named(types, JL_STRUCT, "message");
    struct jl_type_info      *info = &types->infos[made];
    info->fields = jl_new(types->arena, f->param_count * sizeof *info->fields);
    info->field_count = f->param_count;
    for (uint32_t i = 0; i < f->param_count; i++) {
        info->fields[i] = (struct jl_field){.name = "a", .type = f->params[i]};
    }
    if (!jl_layout(types, made)) jl_c_cannot(e, "a message of @%s is too large", f->name);
    return jl_c_put_shape_of(e, made, actor->type, method);
}

static void put_method_row(struct jl_emitter *e, const struct qt_actor *actor, uint32_t method,
                           bool shaped)
{
    const struct qt_function *f = &e->module->functions[actor->methods[method]];
    if (shaped) {
        jl_c_put(e, "    {&shape_%u_%u, ", actor->type, method);
    } else {
        jl_c_put(e, "    {NULL, ");
    }
    jl_c_put_shape(e, f->result);
    if (f->param_count > 0) {
        jl_c_put(e, ", sizeof(struct message_%u_%u), ", actor->type, method);
    } else {
        jl_c_put(e, ", 0, ");
    }
    jl_c_put(e, "%u},\n", jl_c_has_value(e, f->result) ? jl_size(e->types, f->result) : 0);
}

static void put_case(struct jl_emitter *e, const struct qt_actor *actor, uint32_t method)
{
    const struct qt_function *f = &e->module->functions[actor->methods[method]];
    bool                      has = jl_c_has_value(e, f->result);
    jl_c_put(e, "    case %u: {\n", method);
    if (f->param_count > 0) {
        jl_c_put(e, "        const struct message_%u_%u *a = arguments;\n", actor->type, method);
    }
    if (has) {
        jl_c_put(e, "        ");
        jl_c_put_type(e, f->result);
        jl_c_put(e, " value;\n");
    }
    jl_c_put(e, f->fails ? "        int64_t error = " : has ? "        value = " : "        ");
    jl_c_put_function_name(e, "f", actor->methods[method]);
    jl_c_put(e, "(%sself", f->fails && has ? "&value, " : "");
    for (uint32_t i = 0; i < f->param_count; i++) jl_c_put(e, ", a->a%u", i);
    jl_c_put(e, ");\n");
    if (f->fails) jl_c_put(e, "        if (error != 0) return error;\n");
    if (has) jl_c_put(e, "        if (reply) memcpy(reply, &value, sizeof value);\n");
    jl_c_put(e, "        return 0;\n    }\n");
}

static void put_actor(struct jl_emitter *e, const struct qt_actor *actor)
{
    const struct jl_type_info *info = jl_info(e->types, actor->type);
    const struct qt_function  *init = &e->module->functions[actor->init];
    jl_c_put(e, "\nJANUS_OWN_OPS static int64_t init_%u(void *state, const void *context)\n{\n",
             actor->type);
    jl_c_put(e, "    (void)context;\n    %s", init->fails ? "return " : "");
    jl_c_put_function_name(e, "f", actor->init);
    jl_c_put(e, "(state);\n%s}\n", init->fails ? "" : "    return 0;\n");
    jl_c_put(e,
             "\nJANUS_OWN_OPS static int64_t handle_%u(void *state, uint32_t method, "
             "const void *arguments, void *reply,\n                          const void *context)\n"
             "{\n    struct actor_%u *self = state;\n    (void)arguments;\n    (void)reply;\n"
             "    (void)context;\n    switch (method) {\n",
             actor->type, actor->type);
    for (uint32_t i = 0; i < actor->method_count; i++) put_case(e, actor, i);
    jl_c_put(e, "    default: (void)self; return JANUS_INVALID;\n    }\n}\n");
    jl_c_put(e,
             "static const struct jl_actor_type type_%u = {\"%s\", sizeof(struct actor_%u), "
             "rows_%u, %u, init_%u, handle_%u, NULL};\n",
             actor->type, info->name, actor->type, actor->type, actor->method_count, actor->type,
             actor->type);
}

void jl_c_put_actors(struct jl_emitter *e)
{
    for (uint32_t a = 0; a < e->module->actor_count; a++) {
        const struct qt_actor *actor = &e->module->actors[a];
        uint8_t               *shaped = jl_new(e->module->arena, actor->method_count + 1);
        for (uint32_t i = 0; i < actor->method_count; i++) {
            put_message_struct(e, actor, i);
            shaped[i] = put_message_shape(e, actor, i);
        }
        jl_c_put(e, "static const struct jl_actor_method rows_%u[] = {\n", actor->type);
        for (uint32_t i = 0; i < actor->method_count; i++) put_method_row(e, actor, i, shaped[i]);
        if (actor->method_count == 0) jl_c_put(e, "    {NULL, NULL, 0, 0},\n");
        jl_c_put(e, "};\n");
        put_actor(e, actor);
    }
}

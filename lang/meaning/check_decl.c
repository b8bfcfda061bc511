/* SPDX-License-Identifier: MIT */
/* Declarations, and the order in which a unit is checked. */
#include "meaning/check.h"

#include <string.h>

const char *jl_function_text(const struct jl_checker *c, const struct jl_function *function)
{
    while (function->outer) function = function->outer;
    if (function->kind == JL_F_UNIT) return "the program";
    if (function->actor && function->kind == JL_F_METHOD)
        return jl_format(c->arena, "`%.60s.%.60s`", function->actor->name.text,
                         function->name.text ? function->name.text : "?");
    return jl_format(c->arena, "`%.60s`", function->name.text ? function->name.text : "?");
}

/* The names that every unit has. */

static void declare_builtin(struct jl_checker *c, const char *text, jl_type type, uint32_t index)
{
    struct jl_name    name = {jl_intern(c->names, text, strlen(text)), {0, 0}};
    struct jl_symbol *symbol = jl_declare(c, JL_SYMBOL_BUILTIN, name, type);
    symbol->index = index;
}

static void declare_builtins(struct jl_checker *c)
{
    for (jl_type type = JL_BOOL; type <= JL_STR; type++)
        declare_builtin(c, jl_type_text(c->types, type), type, JL_BUILTIN_TYPE);
    for (jl_type type = JL_BUDGET; type <= JL_SUPERVISOR; type++)
        declare_builtin(c, jl_type_text(c->types, type), type, JL_BUILTIN_TYPE);
    declare_builtin(c, "array", JL_BAD, JL_BUILTIN_ARRAY);
    declare_builtin(c, "cancel", JL_BAD, JL_BUILTIN_CANCEL);
    declare_builtin(c, "panic", JL_BAD, JL_BUILTIN_PANIC);
}

static void declare_host(struct jl_checker *c)
{
    for (uint32_t i = 0; c->host && i < c->host->count; i++) {
        const struct jl_host_entry *entry = &c->host->entries[i];
        if (entry->receiver) continue;
        enum jl_symbol_kind kind = entry->kind == JL_HOST_FUNCTION ? JL_SYMBOL_HOST_FUNCTION
                                   : entry->kind == JL_HOST_VALUE  ? JL_SYMBOL_HOST_VALUE
                                                                   : JL_SYMBOL_HOST_TYPE;
        jl_type             type = entry->kind == JL_HOST_FUNCTION ? entry->fn : entry->type;
        struct jl_name      name = {entry->name, {0, 0}};
        struct jl_symbol   *symbol = jl_declare(c, kind, name, type);
        symbol->index = i;
    }
}

/* Named types: first the names, then what they contain. */

static jl_type new_type(struct jl_checker *c, enum jl_kind kind, enum jl_symbol_kind symbol,
                        struct jl_name name)
{
    jl_type type = jl_named(c->types, kind, name.text ? name.text : "?");
    jl_declare(c, symbol, name, type);
    return type;
}

static void declare_types(struct jl_checker *c)
{
    struct jl_unit *unit = c->unit;
    for (uint32_t i = 0; i < unit->struct_count; i++)
        unit->structs[i]->type = new_type(c, JL_STRUCT, JL_SYMBOL_STRUCT, unit->structs[i]->name);
    for (uint32_t i = 0; i < unit->actor_count; i++)
        unit->actors[i]->type = new_type(c, JL_ACTOR, JL_SYMBOL_ACTOR, unit->actors[i]->name);
    for (uint32_t i = 0; i < unit->interface_count; i++)
        unit->interfaces[i]->type =
            new_type(c, JL_IFACE, JL_SYMBOL_INTERFACE, unit->interfaces[i]->name);
}

static bool is_too_many(struct jl_checker *c, struct jl_name name, uint32_t count, const char *what)
{
    if (count <= JL_MEMBERS_MAX) return false;
    JL_WRONG(c, "T4027", name.at, "`%.60s` has more than %d %s", name.text ? name.text : "?",
             JL_MEMBERS_MAX, what)
        ->help = "put some of them into a struct";
    return true;
}

static void report_twice(struct jl_checker *c, struct jl_name name, struct jl_span first)
{
    struct jl_diagnostic *wrong =
        JL_WRONG(c, "N1004", name.at, "`%.60s` is declared twice", name.text);
    wrong->help = "choose another name";
    wrong->also = first;
    wrong->also_text = "the first declaration is here";
}

static jl_type field_type(struct jl_checker *c, struct jl_written *written)
{
    if (!written) return JL_BAD;
    jl_type  type = jl_read_type(c, written, 0);
    uint64_t refused = (uint64_t)1 << JL_TASK;
    if (type == JL_VOID) {
        JL_WRONG(c, "T4015", written->at, "void has no values, so no field can have this type")
            ->help = "remove the field";
        return JL_BAD;
    }
    if (!jl_holds(c, type, refused)) return type;
    JL_WRONG(c, "T4024", written->at, "a task handle stays in its nursery, so no field can hold it")
        ->help = "keep the handle in a `let` of the nursery's block";
    return JL_BAD;
}

static void fill_struct(struct jl_checker *c, struct jl_struct *declared)
{
    if (is_too_many(c, declared->name, declared->field_count, "fields"))
        declared->field_count = JL_MEMBERS_MAX;
    uint32_t         count = declared->field_count;
    struct jl_field *fields = jl_new(c->arena, count * sizeof *fields);
    for (uint32_t i = 0; i < count; i++) {
        struct jl_struct_field *field = &declared->fields[i];
        fields[i].name = field->name.text;
        fields[i].at = field->name.at;
        fields[i].type = field_type(c, field->written);
        for (uint32_t k = 0; k < i; k++)
            if (fields[k].name && fields[k].name == fields[i].name)
                report_twice(c, field->name, fields[k].at);
    }
    struct jl_type_info *info = &c->types->infos[declared->type];
    info->fields = fields;
    info->field_count = count;
}

static jl_type param_type(struct jl_checker *c, const struct jl_param *param)
{
    jl_type type = jl_read_type(c, param->written, 0);
    if (param->written && type == JL_VOID) {
        JL_WRONG(c, "T4015", param->written->at, "void has no values, so no parameter can be void")
            ->help = "remove the parameter";
        return JL_BAD;
    }
    return param->written ? type : JL_BAD;
}

/* The type of a function from its head; `fails` is known already, or the head says it. */
static jl_type head_type(struct jl_checker *c, struct jl_function *function, bool with_fails)
{
    if (function->is_async) jl_need_tasks(c, function->head, "async");
    if (is_too_many(c, function->name, function->param_count, "parameters"))
        function->param_count = JL_MEMBERS_MAX;
    uint32_t count = function->param_count;
    jl_type *params = jl_new(c->arena, count * sizeof *params);
    for (uint32_t i = 0; i < count; i++) params[i] = param_type(c, &function->params[i]);
    jl_type result = jl_read_type(c, function->result, JL_AS_RESULT);
    function->result_type = jl_value_type(c, result);
    bool fails = jl_is_fallible(c, result) || (with_fails && function->fails);
    if (function->kind == JL_F_SIGNATURE) function->fails = fails;
    if (jl_holds(c, function->result_type, (uint64_t)1 << JL_TASK)) {
        JL_WRONG(c, "T4024", function->result->at,
                 "a task handle stays in its nursery, so no function returns it")
            ->help = "await it, and return what it gives";
        function->result_type = JL_BAD;
    }
    jl_type type = function->result_type;
    if (fails && with_fails && (type || !function->result)) type = jl_fallible_of(c->types, type);
    return jl_fn_of(c->types, params, count, type);
}

/* Only these cross to a plugin. */
static void check_crossing(struct jl_checker *c, const struct jl_function *signature, jl_type fn)
{
    for (uint32_t i = 0; i <= signature->param_count; i++) {
        bool    is_result = i == signature->param_count;
        jl_type type = is_result ? signature->result_type : jl_info(c->types, fn)->params[i];
        jl_type element =
            jl_kind_of(c->types, type) == JL_SLICE ? jl_info(c->types, type)->of : type;
        bool crosses = jl_is_number(element) || element == JL_BOOL || type == JL_STR ||
                       type == JL_BAD || (is_result ? type == JL_VOID : jl_is_cap(type));
        const struct jl_written *at = is_result ? signature->result : signature->params[i].written;
        if (!crosses && at)
            JL_WRONG(c, "T4023", at->at, "%s cannot cross to a plugin", jl_show(c, type))->help =
                "use numbers, bool, str, or slices of numbers";
    }
    if (signature->param_count > 8)
        JL_WRONG(c, "T4027", signature->name.at,
                 "a method of an interface has at most 8 parameters")
            ->help = "put numbers of one type into a slice";
}

/* A message and its answer are copied between tasks. */
static void check_message(struct jl_checker *c, const struct jl_function *method, jl_type fn)
{
    for (uint32_t i = 0; i <= method->param_count; i++) {
        bool    is_result = i == method->param_count;
        jl_type type = is_result ? method->result_type : jl_info(c->types, fn)->params[i];
        const struct jl_written *at = is_result ? method->result : method->params[i].written;
        if (at && !jl_crosses(c, type))
            JL_WRONG(c, "T4031", at->at,
                     "%s cannot be copied to another task, so no message has it", jl_show(c, type))
                ->help = "send numbers, str, slices or structs of these";
    }
}

static void fill_methods(struct jl_checker *c, jl_type type, struct jl_function **methods,
                         uint32_t count)
{
    bool                   is_interface = jl_kind_of(c->types, type) == JL_IFACE;
    struct jl_method_type *list = jl_new(c->arena, count * sizeof *list);
    for (uint32_t i = 0; i < count; i++) {
        struct jl_name name = methods[i]->name;
        list[i].name = name.text;
        list[i].fn = head_type(c, methods[i], is_interface);
        if (is_interface)
            check_crossing(c, methods[i], list[i].fn);
        else
            check_message(c, methods[i], list[i].fn);
        for (uint32_t k = 0; k < i; k++)
            if (name.text && list[k].name == name.text) report_twice(c, name, methods[k]->name.at);
    }
    c->types->infos[type].methods = list;
    c->types->infos[type].method_count = count;
}

static void fill_actor(struct jl_checker *c, struct jl_actor *actor)
{
    jl_need_tasks(c, actor->name.at, "actor");
    if (is_too_many(c, actor->name, actor->state_count, "variables"))
        actor->state_count = JL_MEMBERS_MAX;
    if (is_too_many(c, actor->name, actor->method_count, "methods"))
        actor->method_count = JL_MEMBERS_MAX;
    fill_methods(c, actor->type, actor->methods, actor->method_count);
}

static void fill_types(struct jl_checker *c)
{
    struct jl_unit *unit = c->unit;
    for (uint32_t i = 0; i < unit->struct_count; i++) fill_struct(c, unit->structs[i]);
    for (uint32_t i = 0; i < unit->struct_count; i++) {
        struct jl_struct *declared = unit->structs[i];
        if (jl_layout(c->types, declared->type)) continue;
        JL_WRONG(c, "T4018", declared->name.at, "`%.60s` contains itself or is too large",
                 declared->name.text)
            ->help =
            jl_format(c->arena, "hold the others in a slice: `[]%.60s`", declared->name.text);
        c->types->infos[declared->type].field_count = 0;
        (void)jl_layout(c->types, declared->type);
    }
    for (uint32_t i = 0; i < unit->interface_count; i++) {
        struct jl_interface *interface = unit->interfaces[i];
        if (is_too_many(c, interface->name, interface->method_count, "methods"))
            interface->method_count = JL_MEMBERS_MAX;
        fill_methods(c, interface->type, interface->methods, interface->method_count);
    }
    for (uint32_t i = 0; i < unit->actor_count; i++) fill_actor(c, unit->actors[i]);
}

/* Functions. */

static bool is_main(const struct jl_function *function)
{
    return function->name.text && !strcmp(function->name.text, "main");
}

static void declare_functions(struct jl_checker *c)
{
    struct jl_unit *unit = c->unit;
    unit->main = unit->statements;
    for (uint32_t i = 0; i < unit->function_count; i++) {
        struct jl_function *function = unit->functions[i];
        function->symbol = jl_declare(c, JL_SYMBOL_FUNCTION, function->name, JL_BAD);
        function->symbol->function = function;
        if (!is_main(function)) continue;
        if (unit->statements)
            JL_WRONG(c, "N1006", function->name.at,
                     "a program has either `main` or bare statements, not both")
                ->help = "move the statements into `main`";
        unit->main = function;
    }
    jl_find_failing(c);
    for (uint32_t i = 0; i < unit->function_count; i++)
        unit->functions[i]->symbol->type = head_type(c, unit->functions[i], true);
}

static void check_main(struct jl_checker *c)
{
    const struct jl_function *main = c->unit->main;
    if (!main || main->kind == JL_F_UNIT) return;
    jl_type result = main->result_type;
    if (main->param_count)
        JL_WRONG(c, "N1010", main->params[0].name.at, "`main` takes no parameters")->help =
            "main holds the root authority, and makes what it needs itself";
    else if (result != JL_VOID && result != JL_I64 && result != JL_BAD)
        JL_WRONG(c, "N1010", main->result->at, "`main` gives nothing, or the exit status as i64")
            ->help = "write `-> i64`, or no result";
}

static void declare_params(struct jl_checker *c, struct jl_function *function, jl_type fn)
{
    for (uint32_t i = 0; i < function->param_count; i++) {
        jl_type type = jl_info(c->types, fn)->params[i];
        function->params[i].symbol = jl_declare(c, JL_SYMBOL_PARAM, function->params[i].name, type);
        function->params[i].symbol->index = i;
    }
}

static void report_no_return(struct jl_checker *c, const struct jl_function *function)
{
    if (c->muted_count) return; /* a syntax error may have taken the `return` */
    JL_WRONG(c, "T4016", function->name.at, "%s can reach its end without returning its %s",
             jl_function_text(c, function), jl_show(c, function->result_type))
        ->help = "end it with `return`";
}

static void check_top(struct jl_checker *c, struct jl_function *function, jl_type fn)
{
    struct jl_frame frame = {.function = function, .infers = function->kind == JL_F_UNIT};
    struct jl_scope scope = jl_scope_open(c);
    c->frame = &frame;
    if (function->kind == JL_F_UNIT) function->result_type = JL_VOID;
    declare_params(c, function, fn);
    if (function->body) {
        jl_check_block(c, function->body);
        jl_type result = function->result_type;
        if (result != JL_VOID && result != JL_BAD && function->kind != JL_F_UNIT &&
            !jl_block_ends(function->body))
            report_no_return(c, function);
    }
    c->frame = NULL;
    jl_scope_close(c, scope);
    jl_settle(c);
}

static void check_state(struct jl_checker *c, struct jl_actor *actor)
{
    struct jl_function *init = jl_new(c->arena, sizeof *init);
    struct jl_field    *fields = jl_new(c->arena, actor->state_count * sizeof *fields);
    struct jl_frame     frame = {.function = init, .is_state = true};
    *init = (struct jl_function){
        .kind = JL_F_METHOD, .name = actor->name, .at = actor->at, .actor = actor};
    c->frame = &frame;
    for (uint32_t i = 0; i < actor->state_count; i++) {
        struct jl_statement *s = actor->state[i];
        jl_type              written = s->written ? field_type(c, s->written) : 0;
        if (!s->value) continue;
        if (s->written)
            jl_check_is(c, s->value, written, NULL);
        else
            written = jl_check_value(c, s->value, 0);
        jl_check_outward(c, s->value, "the state of an actor, which its messages share");
        fields[i] = (struct jl_field){.name = s->name.text, .type = written, .at = s->name.at};
        jl_note_slot(c, &fields[i].type);
    }
    c->frame = NULL;
    jl_settle(c);
    c->types->infos[actor->type].fields = fields;
    c->types->infos[actor->type].field_count = actor->state_count;
    if (!jl_layout(c->types, actor->type))
        JL_WRONG(c, "T4018", actor->name.at, "the state of `%.60s` is too large", actor->name.text)
            ->help = "hold large values in slices";
}

static void check_actor(struct jl_checker *c, struct jl_actor *actor)
{
    check_state(c, actor);
    struct jl_scope scope = jl_scope_open(c);
    c->actor = actor;
    for (uint32_t i = 0; i < actor->state_count; i++) {
        struct jl_statement *s = actor->state[i];
        s->symbol =
            jl_declare(c, JL_SYMBOL_STATE, s->name, jl_info(c->types, actor->type)->fields[i].type);
        s->symbol->index = i;
    }
    for (uint32_t i = 0; i < actor->method_count; i++) {
        struct jl_function *method = actor->methods[i];
        method->symbol = jl_new_symbol(c, JL_SYMBOL_FUNCTION, method->name,
                                       jl_info(c->types, actor->type)->methods[i].fn);
        method->symbol->function = method;
    }
    for (uint32_t i = 0; i < actor->method_count; i++)
        check_top(c, actor->methods[i], jl_info(c->types, actor->type)->methods[i].fn);
    c->actor = NULL;
    jl_scope_close(c, scope);
}

static void check_bodies(struct jl_checker *c)
{
    struct jl_unit *unit = c->unit;
    for (uint32_t i = 0; i < unit->actor_count; i++) check_actor(c, unit->actors[i]);
    for (uint32_t i = 0; i < unit->function_count; i++)
        check_top(c, unit->functions[i], unit->functions[i]->symbol->type);
    if (unit->statements) check_top(c, unit->statements, jl_fn_of(c->types, NULL, 0, JL_VOID));
}

bool jl_check(struct jl_unit *unit, const struct jl_check_options *options,
              struct jl_diagnostics *diagnostics)
{
    if (!unit->types) {
        unit->types = jl_new(unit->arena, sizeof *unit->types);
        jl_types_init(unit->types, unit->arena);
    }
    if (options->override_profile) unit->profile = options->profile;
    struct jl_checker c = {
        .unit = unit,
        .host = options->host,
        .types = unit->types,
        .arena = unit->arena,
        .names = unit->names,
        .diagnostics = diagnostics,
        .profile = unit->profile,
    };
    jl_mute_lines(&c);
    declare_builtins(&c);
    declare_host(&c);
    (void)jl_scope_open(&c);
    declare_types(&c);
    fill_types(&c);
    declare_functions(&c);
    check_main(&c);
    check_bodies(&c);
    jl_check_flows(&c);
    jl_check_stores(&c);
    return diagnostics->errors == 0;
}

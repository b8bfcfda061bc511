/* SPDX-License-Identifier: MIT */
/* The unit, its declarations, and written types. */
#include "syntax/parse.h"

#include <string.h>

/* Types. */

static struct jl_written *new_written(struct jl_parser *parser, enum jl_written_kind kind)
{
    struct jl_written *written = jl_new(parser->arena, sizeof *written);
    written->kind = kind;
    written->at = parser->token.at;
    return written;
}

/* `!` alone: `!void`. */
static struct jl_written *void_type(struct jl_parser *parser)
{
    struct jl_written *written = new_written(parser, JL_WRITTEN_NAME);
    written->at.end = written->at.begin;
    written->name = jl_intern(parser->unit->names, "void", 4);
    return written;
}

static void bad_type(struct jl_parser *parser, struct jl_written *written, const char *text,
                     const char *help)
{
    written->kind = JL_WRITTEN_BAD;
    jl_complain(parser, "S1010", parser->token.at, "%s", text)->help = help;
    jl_panic_here(parser);
}

static void parse_slice_type(struct jl_parser *parser, struct jl_written *written)
{
    written->kind = JL_WRITTEN_SLICE;
    jl_advance(parser);
    if (!jl_take_sign(parser, ']')) {
        bad_type(parser, written, "a slice type has empty brackets", "write `[]T`");
        return;
    }
    written->of = jl_parse_type(parser);
}

static void parse_fn_type(struct jl_parser *parser, struct jl_written *written)
{
    uint32_t room = 0;
    written->kind = JL_WRITTEN_FN;
    jl_advance(parser);
    if (!jl_at_sign(parser, '(')) {
        jl_missing(parser, "`(`");
        return;
    }
    struct jl_brackets before = jl_open_brackets(parser);
    while (!jl_at_sign(parser, ')') && !parser->panicking && parser->token.kind != JL_T_END) {
        struct jl_written *param = jl_parse_type(parser);
        JL_PUSH(parser->arena, written->params, written->param_count, room) = param;
        if (!jl_take_sign(parser, ',')) break;
    }
    if (!jl_close_brackets(parser, before, ')', "`)`")) return;
    if (jl_take_sign(parser, JL_SIGN2('-', '>'))) written->of = jl_parse_type(parser);
}

static void parse_channel_type(struct jl_parser *parser, struct jl_written *written)
{
    written->kind = JL_WRITTEN_CHANNEL;
    jl_advance(parser);
    if (!jl_at_sign(parser, '(')) {
        written->of = jl_parse_type(parser);
        return;
    }
    struct jl_brackets before = jl_open_brackets(parser);
    written->of = jl_parse_type(parser);
    jl_close_brackets(parser, before, ')', "`)`");
}

static void parse_name_type(struct jl_parser *parser, struct jl_written *written)
{
    struct jl_token next = jl_peek(parser);
    bool            is_of = (next.kind == JL_T_WORD && !next.keyword) || next.keyword == JL_K_fn ||
                 next.keyword == JL_K_error ||
                 (next.kind == JL_T_SIGN && (next.sign == '[' || next.sign == '!'));
    if (jl_at_name(parser, "channel") && (is_of || (next.kind == JL_T_SIGN && next.sign == '('))) {
        parse_channel_type(parser, written);
        return;
    }
    if (jl_at_name(parser, "task") && is_of && next.sign != '!') {
        written->kind = JL_WRITTEN_TASK;
        jl_advance(parser);
        written->of = jl_parse_type(parser);
        return;
    }
    written->kind = JL_WRITTEN_NAME;
    written->name = parser->token.name;
    jl_advance(parser);
    if (jl_at_sign(parser, '<'))
        bad_type(parser, written, "generics are not in this subset of Janus",
                 "write the types out: `[]i32`, `fn(i32) -> i32`");
    else if (jl_at_sign(parser, '.'))
        bad_type(parser, written, "modules are not in this subset of Janus",
                 "write the name of the type alone");
}

static void parse_other_type(struct jl_parser *parser, struct jl_written *written)
{
    uint32_t sign = parser->token.kind == JL_T_SIGN ? parser->token.sign : 0;
    written->kind = JL_WRITTEN_BAD;
    if (sign == '?')
        bad_type(parser, written, "optional types are not in this subset of Janus",
                 "use `!T`: a value or an error");
    else if (sign == '*' || sign == '&')
        bad_type(parser, written, "Janus has no pointers",
                 "values are copied; a slice `[]T` shares its elements");
    else if (sign == '(')
        bad_type(parser, written, "tuples are not in this subset of Janus",
                 "declare `struct Name do field: T end`");
    else
        jl_missing(parser, "a type");
}

struct jl_written *jl_parse_type(struct jl_parser *parser)
{
    struct jl_written *written = new_written(parser, JL_WRITTEN_BAD);
    if (!jl_enter(parser)) {
        jl_leave(parser);
        return written;
    }
    if (jl_at_sign(parser, '[')) {
        parse_slice_type(parser, written);
    } else if (jl_take_sign(parser, '!')) {
        written->kind = JL_WRITTEN_FALLIBLE;
        if (parser->token.kind == JL_T_WORD ? !jl_at_word(parser, JL_K_do)
                                            : jl_at_sign(parser, '['))
            written->of = jl_parse_type(parser);
        else
            written->of = void_type(parser);
    } else if (jl_at_word(parser, JL_K_fn)) {
        parse_fn_type(parser, written);
    } else if (parser->token.kind == JL_T_WORD &&
               (!parser->token.keyword || jl_at_word(parser, JL_K_error))) {
        parse_name_type(parser, written);
    } else {
        parse_other_type(parser, written);
    }
    if (!parser->panicking && written->kind != JL_WRITTEN_FALLIBLE &&
        jl_at_sign(parser, '!')) { /* T ! E */
        struct jl_written *fallible = new_written(parser, JL_WRITTEN_FALLIBLE);
        fallible->at.begin = written->at.begin;
        fallible->of = written;
        written->at.end = parser->end;
        jl_advance(parser);
        if (parser->token.kind == JL_T_WORD &&
            (!parser->token.keyword || jl_at_word(parser, JL_K_error)))
            jl_advance(parser);
        written = fallible;
    }
    if (parser->end > written->at.begin) written->at.end = parser->end;
    jl_leave(parser);
    return written;
}

/* Functions. */

struct jl_function *jl_new_function(struct jl_parser *parser, enum jl_function_kind kind)
{
    struct jl_function *function = jl_new(parser->arena, sizeof *function);
    function->kind = kind;
    function->at = function->head = parser->token.at;
    return function;
}

static void parse_params(struct jl_parser *parser, struct jl_function *function)
{
    uint32_t           room = 0;
    struct jl_brackets before = jl_open_brackets(parser);
    while (!jl_at_sign(parser, ')') && !parser->panicking && parser->token.kind != JL_T_END) {
        if (jl_at_name(parser, "self")) {
            jl_complain(parser, "S1012", parser->token.at, "a method has no parameter `self`")
                ->help = "leave it out: a method names the actor's variables directly";
            jl_advance(parser);
            if (!jl_take_sign(parser, ',')) break;
            continue;
        }
        struct jl_param param = {.name = jl_expect_name(parser, "a parameter")};
        bool            is_bare = jl_at_sign(parser, ',') || jl_at_sign(parser, ')');
        if (param.name.text && is_bare && !parser->panicking) {
            jl_complain(parser, "S1001", param.name.at, "the parameter `%s` has no type",
                        param.name.text)
                ->help = jl_format(parser->arena, "write `%s: i64`", param.name.text);
        } else if (jl_expect_sign(parser, ':', "`:`")) {
            param.written = jl_parse_type(parser);
        }
        JL_PUSH(parser->arena, function->params, function->param_count, room) = param;
        if (!jl_take_sign(parser, ',')) break;
    }
    jl_close_brackets(parser, before, ')', "`)`");
}

/* `[async] func name(params) [-> type]` */
static struct jl_function *parse_head(struct jl_parser *parser, enum jl_function_kind kind)
{
    struct jl_function *function = jl_new_function(parser, kind);
    function->is_async = jl_take_word(parser, JL_K_async);
    jl_advance(parser);
    function->name = jl_expect_name(parser, "a name");
    if (jl_at_sign(parser, '<') && !parser->panicking) {
        jl_complain(parser, "S1010", parser->token.at, "generics are not in this subset of Janus")
            ->help = "write one function for each type";
        while (!jl_at_sign(parser, '>') && !jl_at_sign(parser, '(') &&
               parser->token.kind != JL_T_NEWLINE && parser->token.kind != JL_T_END)
            jl_advance(parser);
        jl_take_sign(parser, '>');
    }
    if (!jl_at_sign(parser, '('))
        jl_missing(parser, "`(`");
    else if (!parser->panicking)
        parse_params(parser, function);
    if (!parser->panicking && jl_at_sign(parser, ':')) {
        jl_complain(parser, "S1012", parser->token.at, "a result type stands after `->`")->help =
            "write `-> T`";
        parser->token.sign = JL_SIGN2('-', '>');
    }
    if (!parser->panicking && jl_take_sign(parser, JL_SIGN2('-', '>')))
        function->result = jl_parse_type(parser);
    if (!parser->panicking && !function->result && jl_at_sign(parser, '!')) { /* f() ! E */
        function->result = new_written(parser, JL_WRITTEN_FALLIBLE);
        function->result->of = void_type(parser);
        jl_advance(parser);
        if (parser->token.kind == JL_T_WORD && !parser->token.keyword) jl_advance(parser);
        function->result->at.end = parser->end;
    }
    function->head.end = function->at.end = parser->end;
    return function;
}

static struct jl_function *parse_function(struct jl_parser *parser, enum jl_function_kind kind)
{
    struct jl_function *function = parse_head(parser, kind);
    function->body = jl_parse_block(parser, "the head of the function", false);
    function->at.end = parser->end;
    return function;
}

/* Items of declarations. `name` is what is declared; a broken head still has its items read. */

static struct jl_name parse_declared(struct jl_parser *parser)
{
    jl_advance(parser);
    return jl_expect_name(parser, "a name");
}

/* What stands where no item can: it is passed over. */
static void bad_item(struct jl_parser *parser, const char *text)
{
    uint32_t begin = parser->token.at.begin, indent = parser->token.indent;
    jl_complain(parser, "S1014", parser->token.at, "%s", text)->help =
        "move it out of the declaration, or remove it";
    jl_panic_here(parser);
    jl_synchronise(parser, indent);
    if (parser->token.at.begin == begin) jl_advance(parser);
}

static bool is_further_in(const struct jl_parser *parser, const struct jl_open *open)
{
    return !parser->token.is_first || parser->token.indent > open->indent;
}

static bool at_function(const struct jl_parser *parser)
{
    return jl_at_declaration(parser) &&
           (jl_at_word(parser, JL_K_func) || jl_at_word(parser, JL_K_async));
}

static void bad_end(struct jl_parser *parser)
{
    jl_complain(parser, "S1001", parser->token.at, "the line should end here")->help =
        "put what follows on a line of its own";
    jl_panic_here(parser);
}

/* After an item: its line must be over. */
static void end_item(struct jl_parser *parser, uint32_t indent)
{
    bool is_over = parser->token.kind == JL_T_NEWLINE || parser->token.kind == JL_T_END ||
                   jl_at_word(parser, JL_K_end) || jl_at_sign(parser, '}') ||
                   (parser->token.is_first && jl_at_declaration(parser)); /* a block had no end */
    if (!parser->panicking && !is_over) bad_end(parser);
    if (parser->panicking) jl_synchronise(parser, indent);
}

static void parse_actor_item(struct jl_parser *parser, struct jl_actor *actor)
{
    uint32_t indent = parser->token.indent;
    if (at_function(parser)) {
        struct jl_function *method = parse_function(parser, JL_F_METHOD);
        JL_PUSH(parser->arena, actor->methods, actor->method_count, actor->method_room) = method;
    } else if (jl_at_word(parser, JL_K_var) || jl_at_word(parser, JL_K_let)) {
        if (jl_at_word(parser, JL_K_let))
            jl_complain(parser, "S1014", parser->token.at, "the state of an actor is `var`")->help =
                "write `var`";
        struct jl_statement *state = jl_parse_variable(parser);
        state->kind = JL_S_VAR;
        state->at.end = parser->end;
        JL_PUSH(parser->arena, actor->state, actor->state_count, actor->state_room) = state;
    } else {
        bad_item(parser, "an actor has `var` and `func`, and nothing else");
        return;
    }
    end_item(parser, indent);
}

static bool ends_early(struct jl_parser *parser, struct jl_open *open)
{
    return jl_at_declaration(parser) && !is_further_in(parser, open);
}

static void parse_actor(struct jl_parser *parser)
{
    struct jl_actor *actor = jl_new(parser->arena, sizeof *actor);
    struct jl_unit  *unit = parser->unit;
    struct jl_open   open;
    actor->at = parser->token.at;
    actor->name = parse_declared(parser);
    if (jl_open_block(parser, &open, "the name of the actor")) {
        while (jl_block_goes_on(parser, &open) && !ends_early(parser, &open))
            parse_actor_item(parser, actor);
        if (!open.closed) jl_report_open(parser, &open);
        parser->open = open.outer;
    }
    actor->at.end = parser->end;
    JL_PUSH(parser->arena, unit->actors, unit->actor_count, unit->actor_room) = actor;
}

static void parse_signature(struct jl_parser *parser, struct jl_interface *iface)
{
    uint32_t indent = parser->token.indent;
    if (!at_function(parser)) {
        bad_item(parser, "an interface has signatures: `func name(a: T) -> R`");
        return;
    }
    struct jl_function *method = parse_head(parser, JL_F_SIGNATURE);
    if (!parser->panicking && jl_at_block(parser)) {
        jl_complain(parser, "S1014", parser->token.at, "a method of an interface has no body")
            ->help = "end the line after the result; an `actor` has methods with bodies";
        jl_parse_block(parser, "", false);
    }
    JL_PUSH(parser->arena, iface->methods, iface->method_count, iface->method_room) = method;
    end_item(parser, indent);
}

static void parse_interface(struct jl_parser *parser)
{
    struct jl_interface *iface = jl_new(parser->arena, sizeof *iface);
    struct jl_unit      *unit = parser->unit;
    struct jl_open       open;
    iface->at = parser->token.at;
    iface->name = parse_declared(parser);
    if (jl_open_block(parser, &open, "the name of the interface")) {
        while (jl_block_goes_on(parser, &open) && !ends_early(parser, &open))
            parse_signature(parser, iface);
        if (!open.closed) jl_report_open(parser, &open);
        parser->open = open.outer;
    }
    iface->at.end = parser->end;
    JL_PUSH(parser->arena, unit->interfaces, unit->interface_count, unit->interface_room) = iface;
}

static void parse_field(struct jl_parser *parser, struct jl_struct *decl)
{
    uint32_t indent = parser->token.indent;
    if (parser->token.kind != JL_T_WORD || parser->token.keyword) {
        bad_item(parser, "a struct has fields: `name: T`");
        return;
    }
    struct jl_struct_field field = {.name = jl_expect_name(parser, "a field")};
    if (jl_expect_sign(parser, ':', "`:`")) field.written = jl_parse_type(parser);
    JL_PUSH(parser->arena, decl->fields, decl->field_count, decl->field_room) = field;
    if (!parser->panicking && jl_take_sign(parser, ',')) return;
    end_item(parser, indent);
}

static void parse_struct(struct jl_parser *parser)
{
    struct jl_struct *decl = jl_new(parser->arena, sizeof *decl);
    struct jl_unit   *unit = parser->unit;
    struct jl_open    open;
    decl->at = parser->token.at;
    decl->name = parse_declared(parser);
    if (jl_open_block(parser, &open, "the name of the struct")) {
        while (jl_block_goes_on(parser, &open) && !ends_early(parser, &open))
            parse_field(parser, decl);
        if (!open.closed) jl_report_open(parser, &open);
        parser->open = open.outer;
    }
    decl->at.end = parser->end;
    JL_PUSH(parser->arena, unit->structs, unit->struct_count, unit->struct_room) = decl;
}

void jl_parse_declaration(struct jl_parser *parser)
{
    struct jl_unit *unit = parser->unit;
    if (!jl_enter(parser)) {
        jl_leave(parser);
        return;
    }
    if (jl_at_word(parser, JL_K_actor)) {
        parse_actor(parser);
    } else if (jl_at_word(parser, JL_K_interface)) {
        parse_interface(parser);
    } else if (jl_at_word(parser, JL_K_struct)) {
        parse_struct(parser);
    } else {
        struct jl_function *function = parse_function(parser, JL_F_DECLARED);
        JL_PUSH(parser->arena, unit->functions, unit->function_count, unit->function_room) =
            function;
    }
    jl_leave(parser);
}

/* `{.profile: service.}` */
static void parse_pragma(struct jl_parser *parser, bool is_first)
{
    static const char *const names[] = {"core", "service", "cluster", "sovereign"};
    struct jl_span           at = parser->token.at;
    uint32_t                 indent = parser->token.indent, i = 0;
    if (!is_first)
        jl_complain(parser, "S1021", at, "the pragma is the first item of a file")->help =
            "move it to the first line";
    jl_advance(parser);
    if (!jl_at_name(parser, "profile")) {
        jl_complain(parser, "S1021", parser->token.at, "the only pragma is `profile`")->help =
            "write `{.profile: service.}`";
        jl_panic_here(parser);
    } else {
        jl_advance(parser);
        jl_expect_sign(parser, ':', "`:`");
        jl_take_sign(parser, ':');
        while (i < 4 && !jl_at_name(parser, names[i])) i++;
    }
    if (!parser->panicking && i == 4) {
        jl_complain(parser, "S1021", parser->token.at, "this profile is unknown")->help =
            "the profiles are core, service, cluster and sovereign";
        jl_panic_here(parser);
    }
    if (!parser->panicking) {
        jl_advance(parser);
        jl_expect_sign(parser, JL_SIGN2('.', '}'), "`.}`");
    }
    if (is_first && i < 4) {
        parser->unit->has_pragma = true;
        parser->unit->profile = (enum jl_profile)i;
        parser->unit->pragma = (struct jl_span){at.begin, parser->end};
    }
    while (parser->panicking && parser->token.kind != JL_T_NEWLINE &&
           parser->token.kind != JL_T_END)
        jl_advance(parser);
    end_item(parser, indent);
}

static void parse_extra_end(struct jl_parser *parser)
{
    bool is_brace = jl_at_sign(parser, '}');
    if (!parser->extra_end)
        jl_complain(parser, "S1003", parser->token.at, "this `%s` closes no block",
                    is_brace ? "}" : "end")
            ->help = "leave it out, or find the block before that ends too early";
    parser->extra_end = true;
    jl_advance(parser);
}

static void parse_top_statement(struct jl_parser *parser)
{
    uint32_t             begin = parser->token.at.begin;
    struct jl_unit      *unit = parser->unit;
    struct jl_statement *statement = jl_parse_statement(parser);
    if (statement) {
        if (!unit->statements) {
            unit->statements = jl_new_function(parser, JL_F_UNIT);
            unit->statements->is_async = true;
            unit->statements->body = jl_new(parser->arena, sizeof *unit->statements->body);
            unit->statements->at = unit->statements->body->at = statement->at;
            unit->statements->head = statement->keyword;
        }
        struct jl_block *body = unit->statements->body;
        JL_PUSH(parser->arena, body->statements, body->count, body->room) = statement;
        body->at.end = unit->statements->at.end = statement->at.end;
    }
    if (parser->token.at.begin == begin && !jl_at_declaration(parser) &&
        parser->token.kind != JL_T_END)
        jl_advance(parser);
}

void jl_parse_top(struct jl_parser *parser)
{
    bool is_first = true;
    for (jl_skip_newlines(parser); parser->token.kind != JL_T_END; jl_skip_newlines(parser)) {
        uint32_t indent = parser->token.indent;
        if (jl_at_sign(parser, JL_SIGN2('{', '.'))) {
            parse_pragma(parser, is_first);
        } else if (jl_at_declaration(parser)) {
            jl_parse_declaration(parser);
            end_item(parser, indent);
        } else if (jl_at_word(parser, JL_K_end) || jl_at_sign(parser, '}')) {
            parse_extra_end(parser);
        } else {
            parse_top_statement(parser);
        }
        is_first = false;
        parser->brackets = parser->lost = 0;
        parser->quiet = parser->is_head = parser->panicking = false;
        parser->open = NULL;
    }
}

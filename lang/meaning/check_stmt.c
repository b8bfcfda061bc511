/* SPDX-License-Identifier: MIT */
/* Statements. */
#include "meaning/check.h"

static void check_let(struct jl_checker *c, struct jl_statement *s)
{
    jl_type type;
    if (s->written) {
        type = jl_read_type(c, s->written, 0);
        if (type == JL_VOID) {
            JL_WRONG(c, "T4015", s->written->at, "void has no values, so no name can stand for one")
                ->help = "remove the declaration";
            type = JL_BAD;
        }
        jl_check_is(c, s->value, type, NULL);
    } else {
        type = jl_check_value(c, s->value, 0);
    }
    enum jl_symbol_kind kind = s->kind == JL_S_LET ? JL_SYMBOL_LET : JL_SYMBOL_VAR;
    s->symbol = jl_declare(c, kind, s->name, type);
    jl_learn_cap(s->symbol, s->value);
    jl_note_own(s->symbol, s->value);
    if (s->value->kind == JL_E_CLOSURE && s->value->function) {
        const struct jl_function *function = s->value->function;
        for (uint32_t i = 0; i < function->capture_count; i++) {
            struct jl_known *known = jl_known_of(function->captures[i]);
            if (known->carries_cap || (jl_is_cap(known->symbol.type) && !known->delegatable))
                jl_known_of(s->symbol)->carries_cap = true;
        }
    }
}

/* A task handle must not get into a variable that lives longer than its nursery. */
static void check_stays(struct jl_checker *c, const struct jl_statement *s)
{
    const struct jl_expr *root = s->target;
    if (!root || !jl_holds(c, s->value->type, (uint64_t)1 << JL_TASK)) return;
    while (root && (root->kind == JL_E_MEMBER || root->kind == JL_E_INDEX)) root = root->left;
    bool is_near = root && root->kind == JL_E_NAME && root->symbol &&
                   jl_known_of(root->symbol)->nurseries >= c->frame->nurseries;
    if (!is_near)
        JL_WRONG(c, "T4024", s->target->at,
                 "a task handle stays in its nursery, and this place outlives it")
            ->help = "await the handle, and store what it gives";
}

static void check_assign(struct jl_checker *c, struct jl_statement *s)
{
    jl_type type = jl_check_expr(c, s->target, 0);
    if (type != JL_BAD && !jl_check_place(c, s->target)) type = JL_BAD;
    jl_check_is(c, s->value, type, NULL);
    type = jl_resolve(c, type);
    if (type == JL_BAD || s->value->type == JL_BAD) return;
    check_stays(c, s);
    jl_note_store(c, s);
    if (!s->compound) return;
    if (jl_is_var(c, type)) {
        JL_PUSH(c->arena, c->later, c->later_count, c->later_room) = (struct jl_later){
            .kind = JL_LATER_NUMBER, .type = type, .at = s->target->at, .binary = s->binary};
    } else if (!jl_operator_takes(s->binary, type)) {
        jl_report_operator(c, s->target->at, s->binary, type);
    } else if (type == JL_STR) {
        jl_add_effect(c, JL_EFFECT_ALLOC);
    }
}

/* A statement drops the value of its expression. */
static void check_dropped(struct jl_checker *c, const struct jl_expr *e)
{
    enum jl_call call = e->kind == JL_E_CALL ? e->call : JL_CALL_UNKNOWN;
    if (e->kind == JL_E_ASYNC && e->type != JL_BAD) {
        JL_WARN(c, "W6001", e->at, "nobody awaits this task, so its value is lost")->help =
            jl_format(c->arena, "write `spawn %s`, or keep the handle with `let`",
                      jl_snip(c, e->left->at));
    } else if (jl_is_fallible(c, e->type)) {
        if (call == JL_CALL_ACTOR_SEND) return;
        JL_WARN(c, "W6001", e->at, "this call can fail, and its error is lost")->help =
            jl_format(c->arena, "write `try %s`", jl_snip(c, e->at));
    } else if (e->kind != JL_E_CALL && e->kind != JL_E_SPAWN && e->kind != JL_E_TRY &&
               e->kind != JL_E_AWAIT && e->kind != JL_E_BAD && e->type != JL_BAD) {
        JL_WARN(c, "W6002", e->at, "this value is not used")->help =
            "assign it, or remove the statement";
    }
}

static void check_for(struct jl_checker *c, struct jl_statement *s)
{
    jl_type item = JL_BAD;
    if (s->value->kind == JL_E_RANGE) {
        item = jl_check_range(c, s->value, 0);
    } else {
        jl_type type = jl_check_value(c, s->value, 0);
        switch (jl_kind_of(c->types, type)) {
        case JL_CHANNEL: jl_add_effect(c, JL_EFFECT_CHANNEL); /* fall through */
        case JL_SLICE: item = jl_info(c->types, type)->of; break;
        case JL_BAD:
            if (jl_is_var(c, type)) jl_report_unknown(c, s->value->at, type);
            break;
        default:
            JL_WRONG(c, "T4009", s->value->at, "`for` cannot go through %s", jl_show(c, type))
                ->help = jl_is_integer(type) ? "write a range: `for i in 0..n`"
                                             : "give it a range, a slice or a channel";
        }
    }
    struct jl_scope scope = jl_scope_open(c);
    s->symbol = jl_declare(c, JL_SYMBOL_LOOP, s->name, item);
    c->frame->loops++;
    jl_check_block(c, s->body);
    c->frame->loops--;
    jl_scope_close(c, scope);
}

static void check_condition(struct jl_checker *c, struct jl_expr *e)
{
    jl_type type = jl_check_value(c, e, JL_BOOL);
    if (type == JL_BOOL || type == JL_BAD) return;
    JL_WRONG(c, "T4021", e->at, "a condition is bool, but this is %s", jl_show(c, type))->help =
        jl_is_integer(type) ? "write a comparison, as `n != 0`" : "write a comparison";
}

/* The first `return` of a closure or of the unit says what the result is. */
static void infer_result(struct jl_checker *c, struct jl_statement *s)
{
    struct jl_frame    *frame = c->frame;
    struct jl_function *function = frame->function;
    bool                is_unit = function->kind == JL_F_UNIT;
    jl_type             type = JL_VOID;
    if (frame->inferred) {
        if (!s->value) return;
        jl_check_is(c, s->value, function->result_type, "the result");
        return;
    }
    if (s->value && is_unit)
        type = jl_check_is(c, s->value, JL_I64, "the exit status") ? JL_I64 : JL_BAD;
    else if (s->value)
        type = jl_check_expr(c, s->value, 0);
    if (jl_is_fallible(c, type)) type = jl_check_value(c, s->value, 0);
    if (type == JL_ERROR && function->fails) return; /* says nothing of the value */
    if (type == JL_NEVER) return;
    function->result_type = type;
    frame->inferred = true;
    jl_note_slot(c, &function->result_type);
}

static void check_return_value(struct jl_checker *c, struct jl_statement *s)
{
    struct jl_function *function = c->frame->function;
    jl_type             result = function->result_type;
    if (result == JL_VOID) {
        jl_type type = jl_check_expr(c, s->value, 0);
        if (jl_is_fallible(c, type)) type = jl_check_value(c, s->value, 0);
        if (type == JL_VOID || type == JL_BAD || type == JL_NEVER) return;
        if (type == JL_ERROR && function->fails) return;
        JL_WRONG(c, "T4001", s->value->at, "%s has no result, but a value is returned here",
                 jl_function_text(c, function))
            ->help = jl_format(c->arena, "write `-> %s` before the body, or a bare `return`",
                               jl_show(c, type));
        return;
    }
    if (s->value->kind == JL_E_ERROR || (function->fails && s->value->kind == JL_E_NAME)) {
        jl_type type = jl_check_value(c, s->value, result);
        if (type == JL_ERROR && function->fails) return;
        if (jl_unify(c, result, type)) return;
    }
    jl_check_is(c, s->value, result, "the result");
}

static void check_return(struct jl_checker *c, struct jl_statement *s)
{
    struct jl_function *function = c->frame->function;
    if (!jl_not_in_defer(c, s->keyword, "return")) return;
    if (c->frame->infers) {
        infer_result(c, s);
    } else if (s->value) {
        check_return_value(c, s);
    } else if (function->result_type != JL_VOID && function->result_type != JL_BAD) {
        JL_WRONG(c, "T4016", s->keyword, "this `return` gives no value, but the result is %s",
                 jl_show(c, function->result_type))
            ->help = "write the value after `return`";
    }
    if (s->value && s->value->type && jl_holds(c, s->value->type, (uint64_t)1 << JL_TASK))
        JL_WRONG(c, "T4024", s->value->at,
                 "a task handle stays in its nursery, so it cannot be returned")
            ->help = "await it, and return what it gives";
}

static void check_defer(struct jl_checker *c, struct jl_statement *s)
{
    if (!s->function) return;
    struct jl_frame frame = {.function = s->function, .outer = c->frame};
    struct jl_scope scope = jl_scope_open(c);
    jl_add_call(c, s->function);
    s->function->result_type = JL_VOID;
    c->frame = &frame;
    jl_check_block(c, s->function->body);
    c->frame = frame.outer;
    jl_scope_close(c, scope);
}

static void check_jump(struct jl_checker *c, const struct jl_statement *s)
{
    if (c->frame->loops) return;
    const char *word = s->kind == JL_S_BREAK ? "break" : "continue";
    bool        is_block = c->frame->outer && c->frame->outer->loops;
    JL_WRONG(c, "N1005", s->keyword, "`%s` stands outside of a loop", word)->help =
        is_block ? "the loop around this block belongs to another function; use `return`"
                 : "put it into `for`, `while` or `loop`";
}

static void check_loop(struct jl_checker *c, struct jl_statement *s)
{
    if (s->kind == JL_S_WHILE) check_condition(c, s->value);
    c->frame->loops++;
    jl_check_block(c, s->body);
    c->frame->loops--;
}

/* After a syntax error a part may be missing. */
static void fill_parts(struct jl_checker *c, struct jl_statement *s)
{
    switch (s->kind) {
    case JL_S_ASSIGN: jl_fill(c, &s->target, s->at); /* fall through */
    case JL_S_LET:
    case JL_S_VAR:
    case JL_S_EXPR:
    case JL_S_FOR:
    case JL_S_WHILE:
    case JL_S_IF: jl_fill(c, &s->value, s->at); break;
    default: break;
    }
}

static void check_statement(struct jl_checker *c, struct jl_statement *s)
{
    fill_parts(c, s);
    switch (s->kind) {
    case JL_S_BAD: break;
    case JL_S_LET:
    case JL_S_VAR: check_let(c, s); break;
    case JL_S_ASSIGN: check_assign(c, s); break;
    case JL_S_EXPR:
        jl_check_expr(c, s->value, 0);
        check_dropped(c, s->value);
        break;
    case JL_S_NURSERY: jl_check_nursery(c, s); break;
    case JL_S_FOR: check_for(c, s); break;
    case JL_S_WHILE:
    case JL_S_LOOP: check_loop(c, s); break;
    case JL_S_IF:
        check_condition(c, s->value);
        jl_check_block(c, s->body);
        if (s->otherwise) jl_check_block(c, s->otherwise);
        break;
    case JL_S_RETURN: check_return(c, s); break;
    case JL_S_DEFER: check_defer(c, s); break;
    case JL_S_YIELD: jl_need_tasks(c, s->keyword, "yield"); break;
    case JL_S_BREAK:
    case JL_S_CONTINUE: check_jump(c, s); break;
    }
}

void jl_check_block(struct jl_checker *c, struct jl_block *block)
{
    if (!block) return;
    if (c->depth >= JL_CHECK_DEPTH) {
        JL_WRONG(c, "T4026", block->at, "blocks are nested more than %d times", JL_CHECK_DEPTH)
            ->help = "move the inner part into a function";
        return;
    }
    struct jl_scope scope = jl_scope_open(c);
    c->depth++;
    for (uint32_t i = 0; i < block->count; i++) check_statement(c, block->statements[i]);
    c->depth--;
    jl_scope_close(c, scope);
}

/* Ends. */

static bool has_break(const struct jl_block *block)
{
    for (uint32_t i = 0; block && i < block->count; i++) {
        const struct jl_statement *s = block->statements[i];
        if (s->kind == JL_S_BREAK) return true;
        bool is_inside = s->kind == JL_S_IF || s->kind == JL_S_NURSERY;
        if (is_inside && (has_break(s->body) || has_break(s->otherwise))) return true;
    }
    return false;
}

static bool statement_ends(const struct jl_statement *s)
{
    switch (s->kind) {
    case JL_S_BAD:
    case JL_S_RETURN:
    case JL_S_BREAK:
    case JL_S_CONTINUE: return true;
    case JL_S_EXPR: return s->value->type == JL_NEVER || s->value->kind == JL_E_BAD;
    case JL_S_LOOP: return !has_break(s->body);
    case JL_S_WHILE: return s->value->kind == JL_E_BOOL && s->value->value && !has_break(s->body);
    case JL_S_IF: return s->otherwise && jl_block_ends(s->body) && jl_block_ends(s->otherwise);
    case JL_S_NURSERY: return jl_block_ends(s->body);
    default: return false;
    }
}

bool jl_block_ends(const struct jl_block *block)
{
    for (uint32_t i = 0; block && i < block->count; i++)
        if (statement_ends(block->statements[i])) return true;
    return false;
}

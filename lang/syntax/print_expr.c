/* SPDX-License-Identifier: MIT */
/* The canonical printer: expressions and types. Parentheses stand where the tree needs them. */
#include "syntax/print.h"

#include <string.h>

enum { RANGE, OR, AND, COMPARE, SUM, PRODUCT, UNARY, POSTFIX };

static int binds(enum jl_binary binary)
{
    switch (binary) {
    case JL_OR: return OR;
    case JL_AND: return AND;
    case JL_ADD:
    case JL_SUB: return SUM;
    case JL_MUL:
    case JL_DIV:
    case JL_REM: return PRODUCT;
    default: return COMPARE;
    }
}

static bool is_short_closure(const struct jl_expr *expr)
{
    const struct jl_block *body = expr->function->body;
    return body->count == 1 && body->statements[0]->kind == JL_S_RETURN &&
           body->statements[0]->keyword.begin == body->statements[0]->keyword.end;
}

static int level_of(const struct jl_expr *expr)
{
    switch (expr->kind) {
    case JL_E_RANGE:
    case JL_E_CLOSURE: return RANGE;
    case JL_E_BINARY: return binds(expr->binary);
    case JL_E_UNARY:
    case JL_E_TRY:
    case JL_E_AWAIT:
    case JL_E_ASYNC:
    case JL_E_SPAWN: return UNARY;
    default: return POSTFIX;
    }
}

static void put_at(struct jl_printer *printer, const struct jl_expr *expr, int least);

static void put_list(struct jl_printer *printer, const struct jl_argument *args, uint32_t count,
                     uint32_t begin, uint32_t end)
{
    bool is_head = printer->is_head;
    bool is_long = count && jl_has_line_between(printer, begin,
                                                args[0].name.text ? args[0].name.at.begin
                                                                  : args[0].value->at.begin);
    printer->is_head = false;
    if (is_long) {
        jl_end_line(printer, begin);
        printer->indent++;
        printer->is_first = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct jl_argument *arg = &args[i];
        if (is_long)
            jl_begin_line(printer, arg->name.text ? arg->name.at.begin : arg->value->at.begin);
        if (arg->name.text) {
            jl_put(printer, arg->name.text);
            jl_put(printer, ": ");
        }
        put_at(printer, arg->value, RANGE);
        if (i + 1 < count) jl_put(printer, is_long ? "," : ", ");
        if (is_long) jl_end_line(printer, arg->value->at.end);
    }
    if (is_long) {
        jl_put_comments(printer, end);
        printer->is_first = false;
        printer->indent--;
        fprintf(printer->out, "%*s", (int)printer->indent * 4, "");
    }
    printer->is_head = is_head;
}

/* Where the first bracket after `at` ends. */
static uint32_t after_sign(const struct jl_printer *printer, uint32_t at, char sign)
{
    const char *text = printer->source->text;
    while (at < printer->source->length && text[at] != sign) at++;
    return at + 1;
}

static void put_struct(struct jl_printer *printer, const struct jl_expr *expr)
{
    bool needs = printer->is_head;
    jl_put(printer, needs ? "(" : "");
    jl_put(printer, expr->name.text);
    uint32_t begin = after_sign(printer, expr->name.at.end, '{');
    bool     is_long =
        expr->arg_count && jl_has_line_between(printer, begin, expr->args[0].name.at.begin);
    jl_put(printer, !expr->arg_count || is_long ? "{" : "{ ");
    put_list(printer, expr->args, expr->arg_count, begin, expr->at.end);
    jl_put(printer, !expr->arg_count || is_long ? "}" : " }");
    jl_put(printer, needs ? ")" : "");
}

static void put_call(struct jl_printer *printer, const struct jl_expr *expr)
{
    put_at(printer, expr->left, POSTFIX);
    jl_put(printer, "(");
    if (expr->written) {
        jl_put_type(printer, expr->written);
        jl_put(printer, ", ");
    }
    put_list(printer, expr->args, expr->arg_count, after_sign(printer, expr->left->at.end, '('),
             expr->at.end);
    jl_put(printer, ")");
}

static void put_closure(struct jl_printer *printer, const struct jl_expr *expr)
{
    const struct jl_function *function = expr->function;
    jl_put(printer, "|");
    for (uint32_t i = 0; i < function->param_count; i++) {
        jl_put(printer, i ? ", " : "");
        jl_put(printer, function->params[i].name.text);
        if (!function->params[i].written) continue;
        jl_put(printer, ": ");
        jl_put_type(printer, function->params[i].written);
    }
    jl_put(printer, "|");
    jl_put_result(printer, function->result);
    jl_put(printer, " ");
    if (is_short_closure(expr))
        put_at(printer, function->body->statements[0]->value, RANGE);
    else
        jl_put_block(printer, function->body);
}

static void put_spawn(struct jl_printer *printer, const struct jl_expr *expr)
{
    bool is_head = printer->is_head, needs = is_head && expr->function;
    jl_put(printer, needs ? "(spawn " : "spawn ");
    if (expr->cap) {
        jl_put(printer, "with_cap(");
        printer->is_head = false;
        put_at(printer, expr->cap, RANGE);
        jl_put(printer, ") ");
    }
    if (expr->function) {
        jl_put_block(printer, expr->function->body);
    } else {
        printer->is_head = true;
        put_at(printer, expr->left, POSTFIX);
    }
    printer->is_head = is_head;
    jl_put(printer, needs ? ")" : "");
}

static void put_binary(struct jl_printer *printer, const struct jl_expr *expr)
{
    static const char *const signs[] = {
        [JL_ADD] = " + ", [JL_SUB] = " - ",   [JL_MUL] = " * ", [JL_DIV] = " / ", [JL_REM] = " % ",
        [JL_EQ] = " == ", [JL_NE] = " != ",   [JL_LT] = " < ",  [JL_LE] = " <= ", [JL_GT] = " > ",
        [JL_GE] = " >= ", [JL_AND] = " and ", [JL_OR] = " or ",
    };
    int level = binds(expr->binary);
    put_at(printer, expr->left, level == COMPARE ? level + 1 : level);
    jl_put(printer, signs[expr->binary]);
    put_at(printer, expr->right, level + 1);
}

static void put_unary(struct jl_printer *printer, const struct jl_expr *expr)
{
    bool is_twice = expr->unary == JL_NEGATE && expr->left->kind == JL_E_UNARY &&
                    expr->left->unary == JL_NEGATE;
    jl_put(printer, expr->unary == JL_NOT ? "not " : "-");
    put_at(printer, expr->left, is_twice ? POSTFIX : UNARY);
}

static void put_prefix(struct jl_printer *printer, const char *word, const struct jl_expr *expr,
                       int least)
{
    jl_put(printer, word);
    put_at(printer, expr->left, least);
}

static void put_index(struct jl_printer *printer, const struct jl_expr *expr)
{
    bool is_head = printer->is_head;
    put_at(printer, expr->left, POSTFIX);
    jl_put(printer, "[");
    printer->is_head = false;
    put_at(printer, expr->right, RANGE);
    printer->is_head = is_head;
    jl_put(printer, "]");
}

static void put_channel(struct jl_printer *printer, const struct jl_expr *expr)
{
    bool is_head = printer->is_head;
    printer->is_head = false;
    jl_put(printer, "channel(");
    jl_put_type(printer, expr->written);
    jl_put(printer, ", ");
    put_at(printer, expr->left, RANGE);
    jl_put(printer, ")");
    printer->is_head = is_head;
}

static void put_array(struct jl_printer *printer, const struct jl_expr *expr)
{
    jl_put(printer, "[");
    put_list(printer, expr->args, expr->arg_count, after_sign(printer, expr->at.begin, '['),
             expr->at.end);
    jl_put(printer, "]");
}

static void put_kind(struct jl_printer *printer, const struct jl_expr *expr)
{
    switch (expr->kind) {
    case JL_E_BAD:
    case JL_E_NULL:
    case JL_E_INT:
    case JL_E_FLOAT:
    case JL_E_STRING: jl_put_span(printer, expr->at); break;
    case JL_E_BOOL: jl_put(printer, expr->value ? "true" : "false"); break;
    case JL_E_NAME: jl_put(printer, expr->name.text); break;
    case JL_E_MEMBER:
        put_at(printer, expr->left, POSTFIX);
        jl_put(printer, ".");
        jl_put(printer, expr->name.text);
        break;
    case JL_E_INDEX: put_index(printer, expr); break;
    case JL_E_CALL: put_call(printer, expr); break;
    case JL_E_UNARY: put_unary(printer, expr); break;
    case JL_E_BINARY: put_binary(printer, expr); break;
    case JL_E_RANGE:
        put_at(printer, expr->left, OR);
        jl_put(printer, expr->inclusive ? "..=" : "..");
        put_at(printer, expr->right, OR);
        break;
    case JL_E_TRY: put_prefix(printer, "try ", expr, UNARY); break;
    case JL_E_AWAIT: put_prefix(printer, "await ", expr, UNARY); break;
    case JL_E_ASYNC: put_prefix(printer, "async ", expr, POSTFIX); break;
    case JL_E_SPAWN: put_spawn(printer, expr); break;
    case JL_E_ARRAY: put_array(printer, expr); break;
    case JL_E_STRUCT: put_struct(printer, expr); break;
    case JL_E_CLOSURE: put_closure(printer, expr); break;
    case JL_E_ERROR:
        jl_put(printer, "error.");
        jl_put(printer, expr->name.text);
        break;
    case JL_E_CHANNEL: put_channel(printer, expr); break;
    }
}

/* Whether a closure without a block stands at the right edge: it would take what follows. */
static bool is_greedy(const struct jl_expr *expr)
{
    while (expr) {
        if (expr->kind == JL_E_CLOSURE) return is_short_closure(expr);
        bool is_prefix =
            expr->kind == JL_E_UNARY || expr->kind == JL_E_TRY || expr->kind == JL_E_AWAIT;
        expr = is_prefix                                               ? expr->left
               : expr->kind == JL_E_BINARY || expr->kind == JL_E_RANGE ? expr->right
                                                                       : NULL;
    }
    return false;
}

static void put_at(struct jl_printer *printer, const struct jl_expr *expr, int least)
{
    bool needs = level_of(expr) < least;
    /* A closure as the right operand is legal, but parentheses show how far it goes. */
    if (least > RANGE && is_greedy(expr)) needs = true;
    bool is_head = printer->is_head;
    if (needs) printer->is_head = false;
    jl_put(printer, needs ? "(" : "");
    put_kind(printer, expr);
    jl_put(printer, needs ? ")" : "");
    printer->is_head = is_head;
}

void jl_put_expr(struct jl_printer *printer, const struct jl_expr *expr)
{
    put_at(printer, expr, RANGE);
}

void jl_put_head(struct jl_printer *printer, const struct jl_expr *expr)
{
    bool is_head = printer->is_head;
    printer->is_head = true;
    put_at(printer, expr, RANGE);
    printer->is_head = is_head;
}

/* Types. */

void jl_put_type(struct jl_printer *printer, const struct jl_written *written)
{
    switch (written->kind) {
    case JL_WRITTEN_BAD: jl_put_span(printer, written->at); break;
    case JL_WRITTEN_NAME: jl_put(printer, written->name); break;
    case JL_WRITTEN_SLICE:
        jl_put(printer, "[]");
        jl_put_type(printer, written->of);
        break;
    case JL_WRITTEN_FN:
        jl_put(printer, "fn(");
        for (uint32_t i = 0; i < written->param_count; i++) {
            jl_put(printer, i ? ", " : "");
            jl_put_type(printer, written->params[i]);
        }
        jl_put(printer, ")");
        jl_put_result(printer, written->of);
        break;
    case JL_WRITTEN_FALLIBLE:
        if (printer->source->text[written->at.begin] == '!') {
            jl_put(printer, "!");
            jl_put_type(printer, written->of);
        } else { /* T ! E */
            jl_put_type(printer, written->of);
            uint32_t sign = after_sign(printer, written->of->at.end, '!');
            while (printer->source->text[sign] == ' ') sign++;
            jl_put(printer, sign < written->at.end ? " ! " : "!");
            if (sign < written->at.end)
                jl_put_span(printer, (struct jl_span){sign, written->at.end});
        }
        break;
    case JL_WRITTEN_CHANNEL:
        jl_put(printer, "channel ");
        jl_put_type(printer, written->of);
        break;
    case JL_WRITTEN_TASK:
        jl_put(printer, "task ");
        jl_put_type(printer, written->of);
        break;
    }
}

void jl_put_result(struct jl_printer *printer, const struct jl_written *written)
{
    if (!written) return;
    jl_put(printer, " -> ");
    jl_put_type(printer, written);
}

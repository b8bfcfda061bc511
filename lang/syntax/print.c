/* SPDX-License-Identifier: MIT */
/* The canonical printer: declarations, statements and comments. */
#include "syntax/print.h"

#include <stdlib.h>
#include <string.h>

enum { INDENT = 4 };

void jl_put(struct jl_printer *printer, const char *text) { fputs(text, printer->out); }

void jl_put_span(struct jl_printer *printer, struct jl_span at)
{
    fwrite(printer->source->text + at.begin, 1, at.end - at.begin, printer->out);
}

bool jl_has_line_between(const struct jl_printer *printer, uint32_t begin, uint32_t end)
{
    return end > begin && memchr(printer->source->text + begin, '\n', end - begin);
}

/* Comments. */

static void next_comment(struct jl_printer *printer)
{
    printer->has_comment =
        jl_next_comment(printer->source, &printer->comment_at, &printer->comment);
}

static void take_comment(struct jl_printer *printer)
{
    jl_put_span(printer, printer->comment);
    if (printer->comment.end > printer->last) printer->last = printer->comment.end;
    next_comment(printer);
}

/* One empty line where the source has some. */
static void put_gap(struct jl_printer *printer, uint32_t begin)
{
    const char *text = printer->source->text;
    unsigned    lines = 0;
    for (uint32_t i = printer->last; i < begin; i++) lines += text[i] == '\n';
    if (lines > 1 && !printer->is_first) jl_put(printer, "\n");
    printer->is_first = false;
}

static void put_indent(struct jl_printer *printer)
{
    fprintf(printer->out, "%*s", (int)printer->indent * INDENT, "");
}

void jl_put_comments(struct jl_printer *printer, uint32_t before)
{
    while (printer->has_comment && printer->comment.begin < before) {
        put_gap(printer, printer->comment.begin);
        put_indent(printer);
        take_comment(printer);
        jl_put(printer, "\n");
    }
}

void jl_begin_line(struct jl_printer *printer, uint32_t begin)
{
    jl_put_comments(printer, begin);
    put_gap(printer, begin);
    put_indent(printer);
}

void jl_end_line(struct jl_printer *printer, uint32_t end)
{
    bool is_more = false;
    if (end > printer->last) printer->last = end;
    while (printer->has_comment &&
           (printer->comment.begin < end ||
            (!is_more && !jl_has_line_between(printer, end, printer->comment.begin)))) {
        jl_put(printer, is_more ? "\n" : "  ");
        if (is_more) put_indent(printer);
        take_comment(printer);
        is_more = true;
    }
    jl_put(printer, "\n");
}

/* Blocks. */

static bool is_short(const struct jl_printer *printer, const struct jl_block *block)
{
    if (block->count > 1) return false;
    if (jl_has_line_between(printer, block->at.begin, block->at.end)) return false;
    if (!block->count) return true;
    switch (block->statements[0]->kind) {
    case JL_S_LET:
    case JL_S_VAR:
    case JL_S_ASSIGN:
    case JL_S_EXPR:
    case JL_S_RETURN:
    case JL_S_YIELD:
    case JL_S_BREAK:
    case JL_S_CONTINUE: return true;
    default: return false;
    }
}

static void put_body(struct jl_printer *printer, const struct jl_block *block, uint32_t before)
{
    printer->indent++;
    printer->is_first = true;
    for (uint32_t i = 0; i < block->count; i++) {
        const struct jl_statement *statement = block->statements[i];
        jl_begin_line(printer, statement->at.begin);
        jl_put_statement(printer, statement);
        jl_end_line(printer, statement->at.end);
    }
    jl_put_comments(printer, before);
    printer->is_first = false;
    printer->indent--;
    put_indent(printer);
}

void jl_put_block(struct jl_printer *printer, const struct jl_block *block)
{
    bool is_head = printer->is_head;
    printer->is_head = false;
    if (is_short(printer, block)) {
        jl_put(printer, block->braces ? "{" : "do");
        if (block->count) {
            jl_put(printer, " ");
            jl_put_statement(printer, block->statements[0]);
            jl_put(printer, " ");
        } else if (!block->braces) {
            jl_put(printer, " ");
        }
    } else {
        jl_put(printer, block->braces ? "{" : "do");
        jl_end_line(printer, block->at.begin + (block->braces ? 1 : 2));
        put_body(printer, block, block->at.end);
    }
    jl_put(printer, block->braces ? "}" : "end");
    if (block->at.end > printer->last) printer->last = block->at.end;
    printer->is_head = is_head;
}

/* Statements. */

static const char *const compound_signs[] = {
    [JL_ADD] = " += ", [JL_SUB] = " -= ", [JL_MUL] = " *= ", [JL_DIV] = " /= ", [JL_REM] = " %= ",
};

static bool is_chain(const struct jl_block *block)
{
    return block->count == 1 && block->statements[0]->kind == JL_S_IF &&
           block->statements[0]->at.begin > block->at.begin;
}

/* `do ... else ... end`: one `end` for all. */
static void put_shared(struct jl_printer *printer, const struct jl_statement *statement)
{
    const struct jl_block *other = statement->otherwise;
    const char            *text = printer->source->text;
    jl_put(printer, "do");
    jl_end_line(printer, statement->body->at.begin + 2);
    put_body(printer, statement->body, other->at.begin);
    jl_put(printer, "else");
    bool is_else = !strncmp(text + other->at.begin, "else", 4);
    if (is_chain(other) && is_else) {
        jl_put(printer, " ");
        printer->last = other->at.begin + 4;
        jl_put_statement(printer, other->statements[0]);
        return;
    }
    jl_end_line(printer, other->at.begin + (is_else ? 4 : 2));
    put_body(printer, other, other->at.end);
    jl_put(printer, "end");
}

static void put_if(struct jl_printer *printer, const struct jl_statement *statement)
{
    const struct jl_block *other = statement->otherwise;
    jl_put(printer, "if ");
    jl_put_head(printer, statement->value);
    jl_put(printer, " ");
    if (other && !statement->body->braces && !other->braces) {
        put_shared(printer, statement);
        return;
    }
    jl_put_block(printer, statement->body);
    if (!other) return;
    jl_put(printer, " else ");
    if (is_chain(other))
        jl_put_statement(printer, other->statements[0]);
    else
        jl_put_block(printer, other);
}

static void put_variable(struct jl_printer *printer, const struct jl_statement *statement)
{
    jl_put(printer, statement->kind == JL_S_LET ? "let " : "var ");
    jl_put(printer, statement->name.text);
    if (statement->written) {
        jl_put(printer, ": ");
        jl_put_type(printer, statement->written);
    }
    jl_put(printer, " = ");
    jl_put_expr(printer, statement->value);
}

static void put_word(struct jl_printer *printer, const char *word, const struct jl_expr *value)
{
    jl_put(printer, word);
    if (!value) return;
    jl_put(printer, " ");
    jl_put_expr(printer, value);
}

static void put_with_block(struct jl_printer *printer, const char *word,
                           const struct jl_statement *statement)
{
    jl_put(printer, word);
    if (statement->value) jl_put_head(printer, statement->value);
    jl_put(printer, statement->value ? " " : "");
    jl_put_block(printer, statement->body);
}

static void put_defer(struct jl_printer *printer, const struct jl_block *body)
{
    bool is_call = body->count == 1 && body->at.begin == body->statements[0]->at.begin &&
                   body->statements[0]->kind == JL_S_EXPR;
    jl_put(printer, "defer ");
    if (is_call)
        jl_put_expr(printer, body->statements[0]->value);
    else
        jl_put_block(printer, body);
}

static void put_assignment(struct jl_printer *printer, const struct jl_statement *statement)
{
    jl_put_expr(printer, statement->target);
    jl_put(printer, statement->compound ? compound_signs[statement->binary] : " = ");
    jl_put_expr(printer, statement->value);
}

void jl_put_statement(struct jl_printer *printer, const struct jl_statement *statement)
{
    switch (statement->kind) {
    case JL_S_BAD: break;
    case JL_S_LET:
    case JL_S_VAR: put_variable(printer, statement); break;
    case JL_S_ASSIGN: put_assignment(printer, statement); break;
    case JL_S_EXPR: jl_put_expr(printer, statement->value); break;
    case JL_S_NURSERY:
        put_with_block(printer, statement->value ? "nursery with " : "nursery ", statement);
        break;
    case JL_S_FOR:
        jl_put(printer, "for ");
        jl_put(printer, statement->name.text);
        put_with_block(printer, " in ", statement);
        break;
    case JL_S_WHILE: put_with_block(printer, "while ", statement); break;
    case JL_S_LOOP: put_with_block(printer, "loop ", statement); break;
    case JL_S_IF: put_if(printer, statement); break;
    case JL_S_RETURN: put_word(printer, "return", statement->value); break;
    case JL_S_DEFER: put_defer(printer, statement->function->body); break;
    case JL_S_YIELD: jl_put(printer, "yield"); break;
    case JL_S_BREAK: jl_put(printer, "break"); break;
    case JL_S_CONTINUE: jl_put(printer, "continue"); break;
    }
}

/* Declarations. */

static void put_signature(struct jl_printer *printer, const struct jl_function *function)
{
    jl_put(printer, function->is_async ? "async func " : "func ");
    jl_put(printer, function->name.text);
    jl_put(printer, "(");
    for (uint32_t i = 0; i < function->param_count; i++) {
        jl_put(printer, i ? ", " : "");
        jl_put(printer, function->params[i].name.text);
        jl_put(printer, ": ");
        jl_put_type(printer, function->params[i].written);
    }
    jl_put(printer, ")");
    jl_put_result(printer, function->result);
}

static void put_function(struct jl_printer *printer, const struct jl_function *function)
{
    put_signature(printer, function);
    if (!function->body) return;
    jl_put(printer, " ");
    jl_put_block(printer, function->body);
}

static uint32_t opener_end(const struct jl_printer *printer, struct jl_span name)
{
    const char *text = printer->source->text;
    uint32_t    i = name.end;
    while (text[i] == ' ' || text[i] == '\t') i++;
    return i + (text[i] == '{' ? 1 : 2);
}

static void open_declaration(struct jl_printer *printer, const char *word, struct jl_name name)
{
    jl_put(printer, word);
    jl_put(printer, name.text);
    jl_put(printer, " do");
    jl_end_line(printer, opener_end(printer, name.at));
    printer->indent++;
    printer->is_first = true;
}

static void close_declaration(struct jl_printer *printer, struct jl_span at)
{
    jl_put_comments(printer, at.end);
    printer->indent--;
    printer->is_first = false;
    put_indent(printer);
    jl_put(printer, "end");
}

/* What stands at top level, by its place. */
struct item {
    enum { FUNCTION, ACTOR, INTERFACE, STRUCT, STATEMENT } kind;
    struct jl_span at;
    const void    *what;
};

static int by_place(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    return a->at.begin < b->at.begin ? -1 : a->at.begin > b->at.begin;
}

static void put_actor(struct jl_printer *printer, const struct jl_actor *actor)
{
    uint32_t state = 0, method = 0;
    open_declaration(printer, "actor ", actor->name);
    while (state < actor->state_count || method < actor->method_count) {
        const struct jl_statement *variable = NULL;
        const struct jl_function  *function = NULL;
        if (state < actor->state_count) variable = actor->state[state];
        if (method < actor->method_count) function = actor->methods[method];
        if (!variable && !function) break;
        bool is_variable = variable && (!function || variable->at.begin < function->at.begin);
        struct jl_span at = is_variable ? variable->at : function->at;
        jl_begin_line(printer, at.begin);
        if (is_variable)
            jl_put_statement(printer, variable);
        else
            put_function(printer, function);
        jl_end_line(printer, at.end);
        state += is_variable;
        method += !is_variable;
    }
    close_declaration(printer, actor->at);
}

static void put_interface(struct jl_printer *printer, const struct jl_interface *iface)
{
    open_declaration(printer, "interface ", iface->name);
    for (uint32_t i = 0; i < iface->method_count; i++) {
        jl_begin_line(printer, iface->methods[i]->at.begin);
        put_signature(printer, iface->methods[i]);
        jl_end_line(printer, iface->methods[i]->at.end);
    }
    close_declaration(printer, iface->at);
}

static void put_struct(struct jl_printer *printer, const struct jl_struct *decl)
{
    open_declaration(printer, "struct ", decl->name);
    for (uint32_t i = 0; i < decl->field_count; i++) {
        const struct jl_struct_field *field = &decl->fields[i];
        jl_begin_line(printer, field->name.at.begin);
        jl_put(printer, field->name.text);
        jl_put(printer, ": ");
        jl_put_type(printer, field->written);
        jl_end_line(printer, field->written->at.end);
    }
    close_declaration(printer, decl->at);
}

static void put_item(struct jl_printer *printer, const struct item *item)
{
    jl_begin_line(printer, item->at.begin);
    switch (item->kind) {
    case FUNCTION: put_function(printer, item->what); break;
    case ACTOR: put_actor(printer, item->what); break;
    case INTERFACE: put_interface(printer, item->what); break;
    case STRUCT: put_struct(printer, item->what); break;
    case STATEMENT: jl_put_statement(printer, item->what); break;
    }
    jl_end_line(printer, item->at.end);
}

static uint32_t collect(const struct jl_unit *unit, struct item **out)
{
    const struct jl_block *body = unit->statements ? unit->statements->body : NULL;
    uint32_t               count = 0;
    uint32_t               room = unit->function_count + unit->actor_count + unit->interface_count +
                    unit->struct_count + (body ? body->count : 0);
    struct item *items = *out = jl_new(unit->arena, room * sizeof *items);
    for (uint32_t i = 0; i < unit->function_count; i++)
        items[count++] = (struct item){FUNCTION, unit->functions[i]->at, unit->functions[i]};
    for (uint32_t i = 0; i < unit->actor_count; i++)
        items[count++] = (struct item){ACTOR, unit->actors[i]->at, unit->actors[i]};
    for (uint32_t i = 0; i < unit->interface_count; i++)
        items[count++] = (struct item){INTERFACE, unit->interfaces[i]->at, unit->interfaces[i]};
    for (uint32_t i = 0; i < unit->struct_count; i++)
        items[count++] = (struct item){STRUCT, unit->structs[i]->at, unit->structs[i]};
    for (uint32_t i = 0; body && i < body->count; i++)
        items[count++] = (struct item){STATEMENT, body->statements[i]->at, body->statements[i]};
    if (count) qsort(items, count, sizeof *items, by_place);
    return count;
}

void jl_print_unit(const struct jl_unit *unit, FILE *out)
{
    static const char *const profiles[] = {"core", "service", "cluster", "sovereign"};
    struct jl_printer        printer = {
               .unit = unit, .source = unit->source, .out = out, .is_first = true};
    struct item *items;
    uint32_t     count = collect(unit, &items);
    next_comment(&printer);
    if (unit->has_pragma && unit->pragma.end) {
        jl_begin_line(&printer, unit->pragma.begin);
        fprintf(out, "{.profile: %s.}", profiles[unit->profile]);
        jl_end_line(&printer, unit->pragma.end);
    }
    for (uint32_t i = 0; i < count; i++) put_item(&printer, &items[i]);
    jl_put_comments(&printer, UINT32_MAX);
}

/* SPDX-License-Identifier: MIT */
/* How nodes and blocks are made. */
#include "lower/body.h"

#include <string.h>

static struct qt_function *function_of(struct jl_body *body)
{
    return &body->module->functions[body->index];
}

struct qt_node *jl_low_node(struct jl_body *body, uint32_t node)
{
    return &function_of(body)->nodes[node];
}

void jl_low_begin(struct jl_body *body, struct jl_lowering *low, uint32_t index)
{
    *body =
        (struct jl_body){.low = low, .module = low->module, .types = low->types, .index = index};
    body->fails = function_of(body)->fails;
    jl_low_start(body, jl_low_new_block(body));
}

/* Line and column are found by going on from the last place, because a line may be long. */
uint32_t jl_low_line(struct jl_lowering *low, struct jl_span at)
{
    const struct jl_source *source = low->unit->source;
    uint32_t                last = low->place_offset, line = low->place_line;
    bool is_near = line && source->lines[line - 1] <= at.begin && at.begin <= source->length &&
                   (line == source->line_count || at.begin < source->lines[line]);
    if (is_near) {
        for (uint32_t i = last; i < at.begin; i++)
            low->place_column += ((unsigned char)source->text[i] & 0xC0) != 0x80;
        for (uint32_t i = at.begin; i < last; i++)
            low->place_column -= ((unsigned char)source->text[i] & 0xC0) != 0x80;
    } else {
        jl_source_place(source, at.begin, &low->place_line, &low->place_column);
    }
    low->place_offset = at.begin;
    return low->place_line;
}

void jl_low_at(struct jl_body *body, struct jl_span at)
{
    body->line = jl_low_line(body->low, at);
    body->column = body->low->place_column;
}

uint32_t jl_low_open(struct jl_body *body, enum qt_op op, jl_type type)
{
    uint32_t        node = qt_add_node(body->module, body->index, body->block, op, type);
    struct qt_node *made = jl_low_node(body, node);
    made->line = body->line;
    made->column = body->column;
    return node;
}

void jl_low_add(struct jl_body *body, uint32_t node, uint32_t operand)
{
    qt_add_operand(body->module, body->index, node, QT_NODE, operand);
}

void jl_low_add_function(struct jl_body *body, uint32_t node, uint32_t function)
{
    qt_add_operand(body->module, body->index, node, QT_FUNCTION, function);
}

uint32_t jl_low_type(struct jl_body *body, uint32_t node)
{
    jl_type type = qt_rule_type(body->module, body->index, node, NULL);
    jl_low_node(body, node)->type = type;
    return node;
}

uint32_t jl_low_emit(struct jl_body *body, enum qt_op op, jl_type type, uint32_t one, uint32_t two,
                     uint32_t three)
{
    uint32_t node = jl_low_open(body, op, type);
    if (one != JL_NO_NODE) jl_low_add(body, node, one);
    if (two != JL_NO_NODE) jl_low_add(body, node, two);
    if (three != JL_NO_NODE) jl_low_add(body, node, three);
    if (type == JL_BAD) jl_low_type(body, node);
    return node;
}

uint32_t jl_low_const(struct jl_body *body, jl_type type, int64_t value)
{
    uint32_t node = jl_low_open(body, QT_Const, type);
    jl_low_node(body, node)->literal = value;
    return node;
}

/* Blocks. */

uint32_t jl_low_new_block(struct jl_body *body) { return qt_add_block(body->module, body->index); }

void jl_low_start(struct jl_body *body, uint32_t block)
{
    JL_PUSH(body->low->arena, body->order, body->order_count, body->order_room) = block;
    body->block = block;
    body->dead = false;
}

/* What follows a terminator is put into a block that nothing leads to. */
static void bury(struct jl_body *body)
{
    if (!body->dead) body->block = jl_low_new_block(body);
    body->dead = true;
}

void jl_low_jump(struct jl_body *body, uint32_t block)
{
    uint32_t node = jl_low_open(body, QT_Jump, JL_VOID);
    qt_add_operand(body->module, body->index, node, QT_BLOCK, block);
    bury(body);
}

void jl_low_branch(struct jl_body *body, enum qt_op op, uint32_t value, uint32_t one, uint32_t two)
{
    uint32_t node = jl_low_open(body, op, JL_VOID);
    jl_low_add(body, node, value);
    qt_add_operand(body->module, body->index, node, QT_BLOCK, one);
    qt_add_operand(body->module, body->index, node, QT_BLOCK, two);
    bury(body);
}

void jl_low_end(struct jl_body *body, enum qt_op op, uint32_t value)
{
    uint32_t node = jl_low_open(body, op, JL_VOID);
    if (value != JL_NO_NODE) jl_low_add(body, node, value);
    bury(body);
}

/* The blocks that the block's last node leads to. */
static struct qt_operand *targets(struct qt_function *function, uint32_t block, uint32_t *count)
{
    const struct qt_block *at = &function->blocks[block];
    *count = 0;
    if (!at->count) return NULL;
    struct qt_node *last = &function->nodes[at->nodes[at->count - 1]];
    if (last->op == QT_Jump) {
        *count = 1;
        return last->operands;
    }
    if (last->op != QT_Branch && last->op != QT_Branch_Error) return NULL;
    *count = 2;
    return last->operands + 1;
}

void jl_low_finish(struct jl_body *body)
{
    struct qt_function *function = function_of(body);
    struct jl_arena    *arena = body->low->arena;
    uint32_t            count, room = function->block_count, todo = 1, kept = 0;
    uint32_t           *number = jl_new(arena, room * sizeof *number); /* 1: reached */
    uint32_t           *stack = jl_new(arena, (room + 1) * sizeof *stack);
    number[0] = 1;
    while (todo) {
        struct qt_operand *to = targets(function, stack[--todo], &count);
        for (uint32_t i = 0; i < count; i++) {
            if (number[to[i].index]) continue;
            number[to[i].index] = 1;
            stack[todo++] = to[i].index;
        }
    }
    struct qt_block *blocks = jl_new(arena, room * sizeof *blocks);
    for (uint32_t i = 0; i < body->order_count; i++) {
        uint32_t block = body->order[i];
        if (!number[block]) continue;
        blocks[kept++] = function->blocks[block];
        number[block] = kept; /* 1 + its new number */
    }
    function->blocks = blocks;
    function->block_count = kept;
    function->block_room = room;
    for (uint32_t i = 0; i < kept; i++) {
        struct qt_operand *to = targets(function, i, &count);
        for (uint32_t k = 0; k < count; k++) to[k].index = (number[to[k].index] - 1) & 0x3fffffffu;
    }
}

/* Names. */

void jl_low_name(struct jl_body *body, uint32_t node, const char *name)
{
    if (node == JL_NO_NODE || body->dead || jl_low_node(body, node)->name) return;
    qt_name_node(body->module, body->index, node, name);
}

void jl_low_bind(struct jl_body *body, struct jl_symbol *symbol, uint32_t node, bool is_local)
{
    struct jl_binding *binding = jl_new(body->low->arena, sizeof *binding);
    *binding = (struct jl_binding){.node = node, .is_local = is_local};
    symbol->lowered = binding;
}

struct jl_binding *jl_low_binding(const struct jl_symbol *symbol) { return symbol->lowered; }

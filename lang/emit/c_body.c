/* SPDX-License-Identifier: MIT */
/* Functions in C: heads, blocks, and what control flow needs. */
#include "emit/c.h"

#include <inttypes.h>
#include <string.h>

void jl_c_put_head(struct jl_emitter *e, uint32_t function)
{
    const struct qt_function *f = &e->module->functions[function];
    bool                      any = false;
    jl_c_put(e, "JANUS_OWN_OPS static ");
    if (f->fails) {
        jl_c_put(e, "int64_t");
    } else if (jl_c_has_value(e, f->result)) {
        jl_c_put_type(e, f->result);
    } else {
        jl_c_put(e, "void");
    }
    jl_c_put(e, " ");
    jl_c_put_function_name(e, "f", function);
    jl_c_put(e, "(");
    if (f->fails && jl_c_has_value(e, f->result)) {
        jl_c_put_type(e, f->result);
        jl_c_put(e, " *result");
        any = true;
    }
    if (f->actor) {
        jl_c_put(e, "%sstruct actor_%u *self", any ? ", " : "", f->actor);
        any = true;
    }
    const struct qt_function *before = e->function;
    e->function = f;
    for (uint32_t i = 0; i < f->param_count; i++) {
        jl_c_put(e, "%s", any ? ", " : "");
        jl_c_put_type(e, f->params[i]);
        jl_c_put(e, " ");
        jl_c_put_value(e, i);
        any = true;
    }
    e->function = before;
    jl_c_put(e, "%s)", any ? "" : "void");
}

/* The declaration of a node's value, if it has one. */
static void put_declaration(struct jl_emitter *e, uint32_t index)
{
    const struct qt_node *node = &e->function->nodes[index];
    if (node->op == QT_Nursery_Begin) {
        jl_c_put(e, "    struct jl_nursery ");
        jl_c_put_value(e, index);
        jl_c_put(e, ";\n");
        return;
    }
    if (node->op == QT_Spawn && (node->flags & QT_F_TRY) == 0) return;
    if (jl_kind_of(e->types, node->type) == JL_FALLIBLE) {
        jl_c_put(e, "    int64_t ");
        jl_c_put_value(e, index);
        jl_c_put(e, "_error;\n");
    }
    if (!jl_c_has_value(e, node->type)) return;
    jl_c_put(e, "    ");
    jl_c_put_type(e, node->type);
    jl_c_put(e, " ");
    jl_c_put_value(e, index);
    jl_c_put(e, ";\n");
}

static void put_line(struct jl_emitter *e)
{
    if (e->node->line == 0 || e->node->line == e->line) return;
    e->line = e->node->line;
    jl_c_put(e, "#line %u ", e->line);
    jl_c_put_string(e, e->module->source, strlen(e->module->source));
    jl_c_put(e, "\n");
}

static void put_goto(struct jl_emitter *e, uint32_t operand, uint32_t next)
{
    uint32_t target = e->node->operands[operand].index;
    if (target == next) {
        jl_c_put(e, ";\n");
    } else {
        jl_c_put(e, "goto bb%u;\n", target);
    }
}

/* "    if (c) goto bb1; else goto bb2;" without a jump to the next block. */
static void put_branch(struct jl_emitter *e, const char *after, uint32_t next)
{
    uint32_t yes = e->node->operands[1].index, no = e->node->operands[2].index;
    jl_c_put(e, yes == next ? "    if (!(" : "    if (");
    jl_c_put_operand(e, 0);
    jl_c_put(e, "%s", after);
    jl_c_put(e, yes == next ? ")) goto bb%u;\n" : ") goto bb%u;\n", yes == next ? no : yes);
    if (yes != next && no != next) jl_c_put(e, "    goto bb%u;\n", no);
}

static void put_return(struct jl_emitter *e)
{
    bool has = e->node->operand_count > 0 && jl_c_has_value(e, e->function->result);
    if (e->function->fails) {
        if (has) {
            jl_c_put(e, "    *result = ");
            jl_c_put_operand(e, 0);
            jl_c_put(e, ";\n");
        }
        jl_c_put(e, "    return 0;\n");
        return;
    }
    jl_c_put(e, "    return");
    if (has) {
        jl_c_put(e, " ");
        jl_c_put_operand(e, 0);
    }
    jl_c_put(e, ";\n");
}

static void put_end(struct jl_emitter *e, const char *call)
{
    jl_c_put(e, "    %s(", call);
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", ");
    jl_c_put_place(e);
    jl_c_put(e, ");\n");
}

static void put_terminator(struct jl_emitter *e, uint32_t next)
{
    switch (e->node->op) {
    case QT_Jump:
        jl_c_put(e, "    ");
        put_goto(e, 0, next);
        break;
    case QT_Branch: put_branch(e, "", next); break;
    case QT_Branch_Error: put_branch(e, "_error != 0", next); break;
    case QT_Return: put_return(e); break;
    case QT_Fail: {
        bool begins = e->function->nodes[e->node->operands[0].index].op == QT_Error;
        put_end(e, begins ? "return jl_fail" : "return jl_fail_on");
        break;
    }
    case QT_End_Task: put_end(e, "jl_end_task"); break;
    case QT_Panic: put_end(e, "jl_panic"); break;
    default: jl_c_put(e, "    __builtin_trap();\n"); break;
    }
}

static bool has_no_effect(const struct jl_emitter *e)
{
    switch (e->node->op) {
    case QT_Load:
    case QT_Local:
    case QT_Value_Of:
    case QT_State_Get: return !jl_c_has_value(e, e->node->type);
    default: return false;
    }
}

static void put_node(struct jl_emitter *e, uint32_t next)
{
    if (has_no_effect(e)) return;
    put_line(e);
    switch (e->node->op) {
    case QT_Budget_Decrement:
        if (e->module->profile != 0) jl_c_put(e, "    janus_op(%" PRId64 ");\n", e->node->literal);
        break;
    case QT_Budget_Check: break; /* janus_op has checked */
    case QT_Host_Value:
    case QT_Call:
    case QT_Call_Value:
    case QT_Call_Host:
    case QT_Interface_Call:
    case QT_To_Interface:
    case QT_Closure_New:
    case QT_Defer_Push: jl_c_put_call(e); break;
    case QT_Actor_New:
    case QT_Actor_Send:
    case QT_Actor_Call:
    case QT_Supervisor_New:
    case QT_Supervisor_Spawn:
    case QT_Cap_New:
    case QT_Cap_Budget:
    case QT_Budget_New: jl_c_put_actor(e); break;
    default:
        if (qt_ops[e->node->op].flags & QT_TERMINATOR) {
            put_terminator(e, next);
        } else if (e->node->op == QT_Defer_Pop || (qt_ops[e->node->op].flags & QT_CONCURRENT)) {
            jl_c_put_task(e);
        } else {
            jl_c_put_data(e);
        }
        break;
    }
}

/* Marks the blocks that another place jumps to than the end of the block above. */
static uint8_t *labels_of(struct jl_emitter *e)
{
    const struct qt_function *f = e->function;
    uint8_t                  *labels = jl_new(e->module->arena, f->block_count);
    for (uint32_t b = 0; b < f->block_count; b++) {
        const struct qt_node *last = &f->nodes[f->blocks[b].nodes[f->blocks[b].count - 1]];
        for (uint32_t i = 0; i < last->operand_count; i++) {
            if (last->operands[i].kind != QT_BLOCK || last->operands[i].index == b + 1) continue;
            labels[last->operands[i].index] = 1;
        }
    }
    return labels;
}

void jl_c_put_body(struct jl_emitter *e, uint32_t function)
{
    const struct qt_function *f = &e->module->functions[function];
    e->function = f;
    e->line = 0;
    jl_c_put(e, "\n/* @");
    jl_c_put_comment(e, f->name);
    jl_c_put(e, " */\n");
    jl_c_put_head(e, function);
    jl_c_put(e, "\n{\n");
    const uint8_t *labels = labels_of(e);
    for (uint32_t b = 0; b < f->block_count; b++) {
        for (uint32_t i = 0; i < f->blocks[b].count; i++) {
            put_declaration(e, f->blocks[b].nodes[i]);
        }
    }
    for (uint32_t b = 0; b < f->block_count && !e->why; b++) {
        if (labels[b]) jl_c_put(e, "bb%u:;\n", b);
        for (uint32_t i = 0; i < f->blocks[b].count; i++) {
            e->node = &f->nodes[f->blocks[b].nodes[i]];
            put_node(e, b + 1);
        }
    }
    jl_c_put(e, "}\n");
}

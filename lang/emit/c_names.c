/* SPDX-License-Identifier: MIT */
/* Names, values and constants in C. */
#include "emit/c.h"

#include <inttypes.h>

static bool is_plain(unsigned char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Names need not differ after this: each has a number before it. */
void jl_c_put_word(struct jl_emitter *e, const char *word)
{
    for (const char *at = word ? word : ""; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (is_plain(c)) {
            jl_c_put(e, "%c", c);
        } else if (c == '.') {
            jl_c_put(e, "_");
        } else {
            jl_c_put(e, "%02x", c);
        }
    }
}

/* A path or a name in a comment, which it cannot end. */
void jl_c_put_comment(struct jl_emitter *e, const char *text)
{
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        jl_c_put(e, "%c", is_plain(c) || c == '.' || c == '/' || c == '-' || c == ' ' ? c : '_');
    }
}

void jl_c_put_function_name(struct jl_emitter *e, const char *prefix, uint32_t function)
{
    jl_c_put(e, "%s%u_", prefix, function);
    jl_c_put_word(e, e->module->functions[function].name);
}

void jl_c_put_value(struct jl_emitter *e, uint32_t node)
{
    const struct qt_node *of = &e->function->nodes[node];
    jl_c_put(e, "%c%u", of->op == QT_Param ? 'p' : 'v', node);
    if (of->name) {
        jl_c_put(e, "_");
        jl_c_put_word(e, of->name);
    }
}

void jl_c_put_operand(struct jl_emitter *e, uint32_t index)
{
    jl_c_put_value(e, e->node->operands[index].index);
}

uint32_t jl_c_node_index(const struct jl_emitter *e)
{
    return (uint32_t)(e->node - e->function->nodes);
}

void jl_c_put_result(struct jl_emitter *e) { jl_c_put_value(e, jl_c_node_index(e)); }

jl_type jl_c_operand_type(const struct jl_emitter *e, uint32_t index)
{
    return e->function->nodes[e->node->operands[index].index].type;
}

void jl_c_put_string(struct jl_emitter *e, const char *text, size_t length)
{
    jl_c_put(e, "\"");
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\' || c == '?' || c < ' ' || c > '~') {
            jl_c_put(e, "\\%03o", c);
        } else {
            jl_c_put(e, "%c", c);
        }
    }
    jl_c_put(e, "\"");
}

void jl_c_put_place(struct jl_emitter *e)
{
    jl_c_put(e, "PLACE(%u, %u)", e->node->line, e->node->column);
}

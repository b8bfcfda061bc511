/* SPDX-License-Identifier: MIT */
/* What the files of the emitter share. */
#ifndef JANUSRT_LANG_EMIT_C_H
#define JANUSRT_LANG_EMIT_C_H

#include "emit/emit.h"

/*
 * How a value is written:
 *
 *     p3_items      a parameter      v12, v12_sum   another node; of a type !T also v12_error
 *     f4_main       a function       S23_Point      the struct of type 23
 *
 * A function that fails returns an error or 0, and writes its value where its first parameter
 * points. A method has its actor's state as the first parameter.
 */
struct jl_emitter {
    struct qt_module         *module;
    struct jl_types          *types;
    FILE                     *out;
    const char               *why; /* not NULL: it cannot be emitted */
    const struct qt_function *function;
    uint32_t                  line;   /* of the last #line */
    uint8_t                  *states; /* by type: 0, 1 written */
    const struct qt_node     *node;   /* that is being written */
};

void jl_c_put(struct jl_emitter *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void jl_c_cannot(struct jl_emitter *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Types. */
bool jl_c_has_value(const struct jl_emitter *e, jl_type type); /* of !T: whether T has one */
void jl_c_put_type(struct jl_emitter *e, jl_type type);
void jl_c_put_structs(struct jl_emitter *e);
void jl_c_put_shape(struct jl_emitter *e, jl_type type); /* "&shape_7" or "NULL" */
void jl_c_put_shapes(struct jl_emitter *e);
/* Writes shape_FIRST_SECOND. False: the type has no shape. */
bool    jl_c_put_shape_of(struct jl_emitter *e, jl_type type, uint32_t first, uint32_t second);
void    jl_c_put_interfaces(struct jl_emitter *e);
jl_type jl_c_value_type(const struct jl_emitter *e, jl_type type); /* of !T: T */

/* Names and values. */
void     jl_c_put_word(struct jl_emitter *e, const char *word);
void     jl_c_put_comment(struct jl_emitter *e, const char *text);
void     jl_c_put_function_name(struct jl_emitter *e, const char *prefix, uint32_t function);
void     jl_c_put_value(struct jl_emitter *e, uint32_t node);
void     jl_c_put_operand(struct jl_emitter *e, uint32_t index);
void     jl_c_put_result(struct jl_emitter *e); /* the name of the node that is being written */
void     jl_c_put_string(struct jl_emitter *e, const char *text, size_t length);
void     jl_c_put_place(struct jl_emitter *e); /* line << 32 | column */
jl_type  jl_c_operand_type(const struct jl_emitter *e, uint32_t index);
uint32_t jl_c_node_index(const struct jl_emitter *e); /* of the node that is being written */

/* Nodes. */
void jl_c_put_data(struct jl_emitter *e);
void jl_c_put_call(struct jl_emitter *e);
void jl_c_put_task(struct jl_emitter *e);
void jl_c_put_actor(struct jl_emitter *e);
void jl_c_put_body(struct jl_emitter *e, uint32_t function);
/* The head of a function, without a semicolon. */
void jl_c_put_head(struct jl_emitter *e, uint32_t function);
/* What closures, spawns, defers and actors call, after all heads. */
void jl_c_put_entries(struct jl_emitter *e);
void jl_c_put_actors(struct jl_emitter *e);

#endif

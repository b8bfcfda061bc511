/* SPDX-License-Identifier: MIT */
/* Lowering's parts. One function of the module is made at a time. */
#ifndef JANUSRT_LANG_BODY_H
#define JANUSRT_LANG_BODY_H

#include "lower/lower.h"

enum { JL_NO_NODE = UINT32_MAX };

/* What a symbol is in the function that is being made. */
struct jl_binding {
    uint32_t node;
    bool     is_local; /* a variable: used by Load and Store */
};

struct jl_names_given { /* spawn1, closure1, defer1, thunk1 of one function */
    uint32_t of_kind[4];
};

struct jl_lowering {
    struct jl_unit        *unit;
    struct qt_module      *module;
    struct jl_types       *types;
    struct jl_arena       *arena;
    struct jl_names_given *given; /* by function */
    uint32_t               given_count, given_room;
    uint32_t               place_offset, place_line, place_column; /* the last that was looked up */
};

/* A block of the source, or a loop around one. */
struct jl_scope_of {
    struct jl_scope_of *outer;
    uint32_t            nursery; /* the node, if the block is a nursery's; else JL_NO_NODE */
    uint32_t            defers;  /* that are pushed */
    bool                is_loop;
    uint32_t            at_break, at_continue; /* blocks */
};

struct jl_body {
    struct jl_lowering *low;
    struct qt_module   *module;
    struct jl_types    *types;
    bool                fails;
    bool                is_unit; /* bare statements */
    uint32_t            index;   /* of the function */
    uint32_t            block;   /* where nodes are added */
    bool                dead;    /* no path leads here */
    struct jl_scope_of *scope;
    uint32_t           *order; /* blocks, as they were started */
    uint32_t            order_count, order_room;
    uint32_t            line, column;
};

/* node.c */
void     jl_low_begin(struct jl_body *body, struct jl_lowering *low, uint32_t index);
void     jl_low_finish(struct jl_body *body); /* drops blocks that nothing leads to */
void     jl_low_at(struct jl_body *body, struct jl_span at);
uint32_t jl_low_line(struct jl_lowering *low, struct jl_span at);
/* Adds a node with up to three node operands (JL_NO_NODE: none). Type 0: by the opcode's rule. */
uint32_t jl_low_emit(struct jl_body *body, enum qt_op op, jl_type type, uint32_t one, uint32_t two,
                     uint32_t three);
/* Adds one that gets its operands by jl_low_add, and then its type by jl_low_type. */
uint32_t        jl_low_open(struct jl_body *body, enum qt_op op, jl_type type);
void            jl_low_add(struct jl_body *body, uint32_t node, uint32_t operand);
void            jl_low_add_function(struct jl_body *body, uint32_t node, uint32_t function);
uint32_t        jl_low_type(struct jl_body *body, uint32_t node);
struct qt_node *jl_low_node(struct jl_body *body, uint32_t node);
uint32_t        jl_low_const(struct jl_body *body, jl_type type, int64_t value);
uint32_t        jl_low_new_block(struct jl_body *body);
void            jl_low_start(struct jl_body *body, uint32_t block);
void            jl_low_jump(struct jl_body *body, uint32_t block);
/* Branch or Branch_Error. */
void jl_low_branch(struct jl_body *body, enum qt_op op, uint32_t value, uint32_t one, uint32_t two);
void jl_low_end(struct jl_body *body, enum qt_op op, uint32_t value); /* Return, Fail, ... */
void jl_low_name(struct jl_body *body, uint32_t node, const char *name);
void jl_low_bind(struct jl_body *body, struct jl_symbol *symbol, uint32_t node, bool is_local);
struct jl_binding *jl_low_binding(const struct jl_symbol *symbol);

/* scope.c */
void jl_low_enter(struct jl_body *body, struct jl_scope_of *scope);
void jl_low_close(struct jl_body *body); /* ends the nursery, runs the defers */
/* Leaves the scopes inside of `target`, as a jump does. */
void jl_low_leave(struct jl_body *body, struct jl_scope_of *target);
/* The error leaves the function, or ends the task. */
void jl_low_fail(struct jl_body *body, uint32_t error);
/* The value of what may fail; an error leaves. JL_NO_NODE: it has no value. */
uint32_t jl_low_unwrap(struct jl_body *body, uint32_t node);

/* function.c */
uint32_t jl_low_add_child(struct jl_lowering *low, uint32_t outer, const char *what,
                          unsigned kind); /* "main.spawn1" */
void jl_low_push_captures(struct jl_body *body, uint32_t node, const struct jl_function *function);

/* stmt.c */
void jl_low_block(struct jl_body *body, const struct jl_block *block, uint32_t nursery);
/* Return; the unit's statements return 0 if they are to return a number and there is none. */
void jl_low_return(struct jl_body *body, uint32_t value);
void jl_low_statement(struct jl_body *body, const struct jl_statement *statement);

/* loop.c */
void jl_low_for(struct jl_body *body, const struct jl_statement *statement);
void jl_low_while(struct jl_body *body, const struct jl_statement *statement);

/* place.c */
void     jl_low_assign(struct jl_body *body, const struct jl_statement *statement);
uint32_t jl_low_binary_of(struct jl_body *body, enum jl_binary binary, jl_type type, uint32_t left,
                          uint32_t right);

/* expr.c */
uint32_t jl_low_expr(struct jl_body *body, const struct jl_expr *expr);
void jl_low_condition(struct jl_body *body, const struct jl_expr *expr, uint32_t yes, uint32_t no);
uint32_t jl_low_symbol(struct jl_body *body, const struct jl_symbol *symbol);

/* data.c */
uint32_t jl_low_struct(struct jl_body *body, const struct jl_expr *expr);
uint32_t jl_low_array(struct jl_body *body, const struct jl_expr *expr);
uint32_t jl_low_closure(struct jl_body *body, const struct jl_expr *expr);

/* call.c, task.c */
uint32_t jl_low_call(struct jl_body *body, const struct jl_expr *expr);
uint32_t jl_low_spawn(struct jl_body *body, const struct jl_expr *expr);
uint32_t jl_low_async(struct jl_body *body, const struct jl_expr *call);
uint32_t jl_low_await(struct jl_body *body, const struct jl_expr *expr);
uint32_t jl_low_try(struct jl_body *body, const struct jl_expr *expr);
void     jl_low_cancel(struct jl_body *body);

#endif

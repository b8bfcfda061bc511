/* SPDX-License-Identifier: MIT */
/*
 * The tree of a program. The parser makes it. The checker (meaning/) fills the fields below each
 * "Checked" line, and nothing else. Lowering reads both.
 *
 * A list is an array with a count. All memory lies in the arena of the compilation.
 */
#ifndef JANUSRT_LANG_AST_H
#define JANUSRT_LANG_AST_H

#include "text/text.h"
#include "type/type.h"

struct jl_block;
struct jl_expr;
struct jl_function;
struct jl_symbol;

/* A name with its place. `text` is interned. */
struct jl_name {
    const char    *text; /* NULL: there is none */
    struct jl_span at;
};

/* A type as it is written. */
enum jl_written_kind {
    JL_WRITTEN_BAD,
    JL_WRITTEN_NAME,     /* i32, Counter, CapSpawn */
    JL_WRITTEN_SLICE,    /* []T */
    JL_WRITTEN_FN,       /* fn(T, U) -> R */
    JL_WRITTEN_FALLIBLE, /* !T, or T ! E: the name of the error set is accepted and ignored */
    JL_WRITTEN_CHANNEL,  /* channel T, or channel(T) */
    JL_WRITTEN_TASK,     /* task T */
};
struct jl_written {
    enum jl_written_kind kind;
    struct jl_span       at;
    const char          *name;
    struct jl_written   *of;     /* element, or result of a function (NULL: none) */
    struct jl_written  **params; /* FN */
    uint32_t             param_count;
};

enum jl_binary {
    JL_ADD,
    JL_SUB,
    JL_MUL,
    JL_DIV,
    JL_REM,
    JL_EQ,
    JL_NE,
    JL_LT,
    JL_LE,
    JL_GT,
    JL_GE,
    JL_AND,
    JL_OR,
};
enum jl_unary { JL_NEGATE, JL_NOT };

/* What a call does. The checker decides it from the callee. */
enum jl_call {
    JL_CALL_UNKNOWN,
    JL_CALL_FUNCTION,         /* `callee_function` */
    JL_CALL_VALUE,            /* the callee is an expression of a function type */
    JL_CALL_HOST,             /* `host`; a method's receiver is args[-1], see `receiver` */
    JL_CALL_CONVERT,          /* i32(x), f64(x), str(x): to `type` */
    JL_CALL_ARRAY,            /* array(n), array(T, n) */
    JL_CALL_CANCEL,           /* cancel(): the innermost nursery of the function */
    JL_CALL_PANIC,            /* panic(text) */
    JL_CALL_SEND,             /* channel.send(v) */
    JL_CALL_RECV,             /* channel.recv() */
    JL_CALL_CLOSE,            /* channel.close() */
    JL_CALL_ACTOR_NEW,        /* Counter.new() */
    JL_CALL_ACTOR_SEND,       /* counter.increment(): a method without result */
    JL_CALL_ACTOR_CALL,       /* counter.get(): a method with a result */
    JL_CALL_SELF,             /* a method of the same actor, inside of it: `callee_function` */
    JL_CALL_SUPERVISOR_NEW,   /* Supervisor.new() */
    JL_CALL_SUPERVISOR_SPAWN, /* supervisor.spawn(X.new()) */
    JL_CALL_INTERFACE,        /* plugin.process(data): `method` */
    JL_CALL_CAP_NEW,          /* CapSpawn.delegatable(max_tasks: 10): `literal` has the fields */
    JL_CALL_TO_BUDGET,        /* cap.toBudget() */
    JL_CALL_WITH,             /* budget.with_syscalls(0): `method` is the field's index, 0 to 4 */
};

struct jl_argument {
    struct jl_name  name; /* named: max_tasks: 10 */
    struct jl_expr *value;
};

enum jl_expr_kind {
    JL_E_BAD,
    JL_E_INT, /* value; 1MB is 1048576 */
    JL_E_FLOAT,
    JL_E_STRING,  /* text, length: after escapes */
    JL_E_BOOL,    /* value */
    JL_E_NULL,    /* refused with a sentence */
    JL_E_NAME,    /* name */
    JL_E_MEMBER,  /* left.name */
    JL_E_INDEX,   /* left[right]; right may be a range: a part of the slice */
    JL_E_CALL,    /* left(args) */
    JL_E_UNARY,   /* unary left */
    JL_E_BINARY,  /* left binary right */
    JL_E_RANGE,   /* left..right; inclusive: ..= */
    JL_E_TRY,     /* try left */
    JL_E_AWAIT,   /* await left */
    JL_E_ASYNC,   /* async left; left is a call */
    JL_E_SPAWN,   /* spawn [with_cap(cap)] left, or a block: `function` */
    JL_E_ARRAY,   /* [args] */
    JL_E_STRUCT,  /* Name{ field: value } : name, args */
    JL_E_CLOSURE, /* |x| expr, or a block: `function` */
    JL_E_ERROR,   /* error.Name */
    JL_E_CHANNEL, /* channel(T, n): written, left */
};

struct jl_expr {
    enum jl_expr_kind   kind;
    struct jl_span      at;
    struct jl_name      name;
    struct jl_expr     *left, *right;
    struct jl_expr     *cap; /* spawn with_cap */
    struct jl_argument *args;
    uint32_t            arg_count;
    enum jl_binary      binary;
    enum jl_unary       unary;
    bool                inclusive;
    bool                try_spawn; /* spawn directly below try: refused at once, never waits */
    uint64_t            value;
    double              number;
    const char         *text;
    uint32_t            length;
    uint32_t            height;   /* 1 + that of the tallest part; <= JL_HEIGHT_MAX */
    struct jl_function *function; /* of a closure, or the block of a spawn */
    struct jl_written  *written;  /* CHANNEL: T; a CALL of array(T, n): T, and args is n alone */

    /* Checked. */
    jl_type             type;   /* of the value; VOID: none. FALLIBLE below try or await */
    jl_type             coerce; /* what it is turned into for its user; 0: nothing. A handle of a
                                    plugin into an interface; a literal has its type already */
    struct jl_symbol   *symbol; /* NAME */
    enum jl_call        call;   /* CALL */
    struct jl_function *callee_function;
    uint32_t            host;      /* index in the host table: CALL_HOST, NAME of a host value */
    struct jl_expr     *receiver;  /* of a method */
    uint32_t            method;    /* index of a method; of a struct's field in MEMBER */
    bool                is_len;    /* MEMBER: items.len, text.len */
    struct jl_symbol   *authority; /* a capability literal: what it attenuates; NULL: the root */
    struct jl_expr    **fields;    /* STRUCT, CAP_NEW: one for each field in order; NULL: default */
    uint32_t            field_count;
    int64_t             error;  /* ERROR: its number, below 0 */
    bool                direct; /* AWAIT of a call outside of a nursery: an ordinary call */
};

enum jl_statement_kind {
    JL_S_BAD,
    JL_S_LET, /* name: written = value; also S_VAR */
    JL_S_VAR,
    JL_S_ASSIGN,  /* target = value, or with `binary` if `compound` */
    JL_S_EXPR,    /* value */
    JL_S_NURSERY, /* with value (NULL: none): body */
    JL_S_FOR,     /* name in value: body; value is a range, a slice or a channel */
    JL_S_WHILE,   /* value: body */
    JL_S_LOOP,    /* body */
    JL_S_IF,      /* value: body, otherwise */
    JL_S_RETURN,  /* value or NULL */
    JL_S_DEFER,   /* `function`: its body */
    JL_S_YIELD,
    JL_S_BREAK,
    JL_S_CONTINUE,
};

struct jl_statement {
    enum jl_statement_kind kind;
    struct jl_span         at;      /* of the whole statement */
    struct jl_span         keyword; /* of its first word */
    struct jl_name         name;
    struct jl_written     *written;
    struct jl_expr        *target, *value;
    enum jl_binary         binary;
    bool                   compound;
    struct jl_block       *body;
    struct jl_block       *otherwise; /* else; `else if` is a block with one statement */
    struct jl_function    *function;

    /* Checked. */
    struct jl_symbol *symbol; /* LET, VAR, FOR */
};

struct jl_block {
    struct jl_statement **statements;
    uint32_t              count, room;
    struct jl_span        at;
    bool                  braces; /* for the printer */
};

struct jl_param {
    struct jl_name     name;
    struct jl_written *written; /* of a closure: may be NULL */
    struct jl_symbol  *symbol;  /* Checked */
};

/* What a function does, beside its result. meaning/effects.c infers it. */
enum jl_effect {
    JL_EFFECT_SPAWN = 1,
    JL_EFFECT_NURSERY = 2,
    JL_EFFECT_AWAIT = 4,
    JL_EFFECT_CHANNEL = 8,
    JL_EFFECT_ALLOC = 16,
    JL_EFFECT_IO = 32,
    JL_EFFECT_MINT = 64,
    JL_EFFECT_RECHARGE = 128,
    JL_EFFECT_NATIVE = 256,
    JL_EFFECT_FAILS = 512,
};

/* A declared function, a method, a closure, the block of a spawn or a defer, or the statements of
 * the unit. */
enum jl_function_kind {
    JL_F_DECLARED,
    JL_F_METHOD,    /* of an actor */
    JL_F_SIGNATURE, /* of an interface: no body */
    JL_F_CLOSURE,
    JL_F_SPAWN,
    JL_F_DEFER,
    JL_F_UNIT, /* bare statements: an async main without a name */
};
struct jl_function {
    enum jl_function_kind kind;
    struct jl_name        name;
    struct jl_span        at, head; /* all; up to the body */
    bool                  is_async;
    struct jl_param      *params;
    uint32_t              param_count;
    struct jl_written    *result; /* NULL: none, or to be inferred (closures) */
    struct jl_block      *body;   /* `|x| expr` is a block with a return */

    /* Checked. */
    struct jl_function *outer;       /* the function around it; NULL: none */
    struct jl_actor    *actor;       /* of a method */
    struct jl_symbol   *symbol;      /* DECLARED */
    jl_type             result_type; /* of the value, never FALLIBLE */
    bool                fails;       /* it may return an error */
    struct jl_symbol  **captures;    /* what it uses of the functions around it, by value */
    uint32_t            capture_count, capture_room;
    uint32_t            effects;
    bool                is_task; /* spawned or awaited somewhere: CPU_Parallel */
    uint32_t            lowered; /* for lower/ */
};

struct jl_actor {
    struct jl_name        name;
    struct jl_span        at;
    struct jl_statement **state; /* S_VAR */
    uint32_t              state_count, state_room;
    struct jl_function  **methods;
    uint32_t              method_count, method_room;
    /* Checked. */
    jl_type type;
};

struct jl_interface {
    struct jl_name       name;
    struct jl_span       at;
    struct jl_function **methods; /* SIGNATURE */
    uint32_t             method_count, method_room;
    /* Checked. */
    jl_type type;
};

struct jl_struct_field {
    struct jl_name     name;
    struct jl_written *written;
};
struct jl_struct {
    struct jl_name          name;
    struct jl_span          at;
    struct jl_struct_field *fields;
    uint32_t                field_count, field_room;
    /* Checked. */
    jl_type type;
};

enum jl_profile { JL_CORE, JL_SERVICE, JL_CLUSTER, JL_SOVEREIGN };

struct jl_unit {
    struct jl_arena        *arena;
    const struct jl_source *source;
    struct jl_names        *names;

    bool            has_pragma;
    enum jl_profile profile; /* of the pragma, or of the command line; default CORE */
    struct jl_span  pragma;

    struct jl_function  **functions;
    uint32_t              function_count, function_room;
    struct jl_actor     **actors;
    uint32_t              actor_count, actor_room;
    struct jl_interface **interfaces;
    uint32_t              interface_count, interface_room;
    struct jl_struct    **structs;
    uint32_t              struct_count, struct_room;
    struct jl_function   *statements; /* F_UNIT: bare statements; NULL: none */

    /* Checked. */
    struct jl_types     *types;
    struct jl_function **all; /* every function with a body, closures and blocks included */
    uint32_t             all_count, all_room;
    struct jl_function  *main;   /* declared main, or `statements`; NULL: none */
    struct jl_error     *errors; /* error.Name of the program */
    uint32_t             error_count, error_room;
};

struct jl_error {
    const char *name;
    int64_t     number;
};

/* What a name stands for. */
enum jl_symbol_kind {
    JL_SYMBOL_LET,
    JL_SYMBOL_VAR,
    JL_SYMBOL_PARAM,
    JL_SYMBOL_LOOP,  /* the variable of a for */
    JL_SYMBOL_STATE, /* a variable of the actor; `index` */
    JL_SYMBOL_FUNCTION,
    JL_SYMBOL_ACTOR,
    JL_SYMBOL_INTERFACE,
    JL_SYMBOL_STRUCT,
    JL_SYMBOL_HOST_FUNCTION, /* `index` in the host table */
    JL_SYMBOL_HOST_VALUE,
    JL_SYMBOL_HOST_TYPE,
    JL_SYMBOL_BUILTIN,
};
struct jl_symbol {
    enum jl_symbol_kind kind;
    const char         *name;
    struct jl_span      at;
    jl_type             type;
    struct jl_function *function; /* FUNCTION: itself; else the function it is declared in */
    uint32_t            index;
    bool                is_used;
    void               *lowered; /* for lower/ */
};

#endif

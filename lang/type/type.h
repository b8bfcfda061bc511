/* SPDX-License-Identifier: MIT */
/*
 * Types, and how their values lie in memory. The checker, QTJIR and both executors use one table,
 * so that a value has the same bytes everywhere, and an allocation the same price.
 */
#ifndef JANUSRT_LANG_TYPE_H
#define JANUSRT_LANG_TYPE_H

#include "text/text.h"

/* The number of a type in its table. Simple types have the number of their kind. */
typedef uint32_t jl_type;

enum jl_kind {
    JL_BAD, /* an expression with an error; the checker is silent about it */
    JL_VOID,
    JL_NEVER, /* what does not come back: panic() */
    JL_BOOL,
    JL_I8,
    JL_I16,
    JL_I32,
    JL_I64,
    JL_U8,
    JL_U16,
    JL_U32,
    JL_U64,
    JL_F64,
    JL_STR,       /* struct jl_text: UTF-8 bytes that nobody changes */
    JL_ERROR,     /* int64_t below 0: a janus_status, or an error of the program, -100 and below */
    JL_NURSERY,   /* QTJIR only */
    JL_BUDGET,    /* janus_budget, 40 bytes */
    JL_CAP_SPAWN, /* janus_cap, 16 bytes; also the next three */
    JL_CAP_BUDGET,
    JL_CAP_CHANNEL,
    JL_CAP_EXECUTOR,
    JL_SUPERVISOR, /* a pointer of the support library */
    JL_SIMPLE_KINDS,

    JL_SLICE = JL_SIMPLE_KINDS, /* []T: struct jl_slice */
    JL_FN,                      /* fn(P...) -> R: struct jl_closure */
    JL_STRUCT,                  /* declared in the program: laid out as in C */
    JL_FALLIBLE, /* !T: T or an error. Only as a result; never stored in a variable or a field */
    JL_TASK,     /* task T: a pointer to a call under way, see host/support.h */
    JL_CHANNEL,  /* channel T: janus_channel, 16 bytes */
    JL_ACTOR,    /* a running actor: janus_actor, 16 bytes */
    JL_START,    /* X.new(): an actor to be started; no bytes */
    JL_IFACE,    /* an instance of an interface: a pointer of the support library */
    JL_HOST,     /* a type of the host table, as Connection: struct jl_handle, 16 bytes */
};

struct jl_field {
    const char    *name;
    jl_type        type;
    uint32_t       offset; /* filled when the struct is laid out */
    struct jl_span at;     /* of its declaration */
};

struct jl_method_type { /* a method of an interface or an actor */
    const char *name;
    jl_type     fn; /* JL_FN, without self */
};

struct jl_type_info {
    enum jl_kind           kind;
    const char            *name; /* STRUCT, ACTOR, START, IFACE, HOST; else NULL */
    jl_type                of;   /* SLICE, FALLIBLE, TASK, CHANNEL; FN: the result; START: actor */
    jl_type               *params; /* FN */
    uint32_t               param_count;
    struct jl_field       *fields; /* STRUCT; ACTOR: its state */
    uint32_t               field_count;
    struct jl_method_type *methods; /* ACTOR, IFACE */
    uint32_t               method_count;
    uint32_t               size, align; /* bytes; of an ACTOR: those of the handle */
    uint32_t               state_size;  /* ACTOR: those of its state, laid out as a struct */
    bool                   laid_out;
    bool                   is_plain; /* STRUCT, once it is laid out: see jl_is_plain */
};

struct jl_types {
    struct jl_arena     *arena;
    struct jl_type_info *infos; /* by number */
    uint32_t             count, room;
};

void jl_types_init(struct jl_types *types, struct jl_arena *arena);
static inline const struct jl_type_info *jl_info(const struct jl_types *types, jl_type type)
{
    return &types->infos[type];
}
static inline enum jl_kind jl_kind_of(const struct jl_types *types, jl_type type)
{
    return types->infos[type].kind;
}

/* These return the one number of the type. */
jl_type jl_slice_of(struct jl_types *types, jl_type element);
jl_type jl_fallible_of(struct jl_types *types, jl_type value); /* of a fallible type: itself */
jl_type jl_task_of(struct jl_types *types, jl_type value);
jl_type jl_channel_of(struct jl_types *types, jl_type element);
jl_type jl_start_of(struct jl_types *types, jl_type actor);
jl_type jl_fn_of(struct jl_types *types, const jl_type *params, uint32_t count, jl_type result);
/* A new type with a name of its own: STRUCT, ACTOR, IFACE, HOST. Fields and methods are added by
 * the caller before the first jl_layout. */
jl_type jl_named(struct jl_types *types, enum jl_kind kind, const char *name);

/* Fills offsets and sizes. A struct that contains itself is refused: false. */
bool     jl_layout(struct jl_types *types, jl_type type);
uint32_t jl_size(const struct jl_types *types, jl_type type); /* bytes of a value; VOID: 0 */
uint32_t jl_align(const struct jl_types *types, jl_type type);

bool     jl_is_integer(jl_type type);
bool     jl_is_signed(jl_type type);
bool     jl_is_number(jl_type type); /* an integer or f64 */
bool     jl_is_cap(jl_type type);
unsigned jl_bits(jl_type type); /* of an integer */
/* Whether a task may own the value alone: it contains no slice, closure, task, or pointer. */
bool jl_is_plain(const struct jl_types *types, jl_type type);

/* "[]i32", "fn(i32) -> i32", "!str", "channel i64", "CapSpawn", "Point". In the table's arena. */
const char *jl_type_text(const struct jl_types *types, jl_type type);

#endif

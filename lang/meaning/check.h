/* SPDX-License-Identifier: MIT */
/*
 * What the files of this room share. One checker lives for one call of jl_check.
 *
 * Types that are not known yet (`array(n)`, `[1, 2]`) are type variables: entries of the table of
 * types of kind BAD with a number in `of`. At the end of each top-level function every variable is
 * replaced in the tree, or reported.
 */
#ifndef JANUSRT_LANG_MEANING_CHECK_H
#define JANUSRT_LANG_MEANING_CHECK_H

#include "meaning/meaning.h"

enum {
    JL_CHECK_DEPTH = 1000, /* of an expression's tree; a chain of operators is as deep as long */
    JL_MEMBERS_MAX = 255,  /* fields, methods, captures */
    JL_LIMITS = 6,         /* numbers in a capability: max_tasks, and the five of a budget */
};

/* A name to a number above 0. Keys are interned. */
struct jl_map {
    const char **keys;
    uint32_t    *values;
    uint32_t     count, room;
};

/* A symbol, and what only the checker knows about it. */
struct jl_known {
    struct jl_symbol symbol;            /* first: a symbol's address is that of its jl_known */
    bool             delegatable;       /* a capability that may leave the program */
    bool             is_own;            /* a slice that its function made */
    bool             learned;           /* made by a literal: what is known of it is all true */
    bool             needs_delegatable; /* a parameter that its function gives outward */
    bool             carries_cap;       /* a closure that captured such as may not leave */
    uint32_t         nurseries;         /* open in its function where it was declared */
    uint32_t         limits_known;      /* bits */
    int64_t          limits[JL_LIMITS];
    uint32_t         flows; /* 1 + the first flow to it; 0: none */
};

struct jl_binding {
    const char       *name;
    struct jl_symbol *symbol;
    uint32_t          hidden; /* 1 + the binding of this name that it hides; 0: none */
};

struct jl_scope { /* what to restore */
    uint32_t begin, caps, count;
};

/* The function that is being checked. */
struct jl_frame {
    struct jl_function *function;
    struct jl_frame    *outer;
    uint32_t            nurseries, loops; /* open */
    const void         *nursery;          /* the outermost that is open */
    bool                infers;           /* the result is what the first `return` gives */
    bool                inferred;
    bool                is_state; /* the initial values of an actor */
};

struct jl_edge {
    struct jl_function *from, *to; /* caller, callee */
};

struct jl_var {                 /* a type variable */
    jl_type        type, bound; /* bound 0: not yet */
    bool           is_bad;      /* it stands for JL_BAD */
    bool           is_number;   /* an integer literal has it: the default is i64 */
    bool           is_array;    /* array(n): its elements need a zero value */
    const char    *param;       /* of a closure: the parameter's name */
    struct jl_span at;
};

enum jl_later_kind { JL_LATER_FITS, JL_LATER_NUMBER, JL_LATER_EQUALS };
struct jl_later { /* checked when the type is known */
    enum jl_later_kind kind;
    jl_type            type;
    struct jl_span     at;
    struct jl_expr    *literal;
    uint64_t           magnitude;
    bool               negative;
    enum jl_binary     binary;
};

/* A capability that goes to a parameter of a function of the program. */
struct jl_flow {
    struct jl_symbol   *from; /* NULL: not a name */
    struct jl_span      at;
    struct jl_function *callee;
    uint32_t            index, next; /* of the parameter; 1 + the next flow to it */
    jl_type             type;
    bool                delegatable;
};

struct jl_store { /* an assignment to an element of a slice */
    struct jl_function   *function;
    const struct jl_expr *slice, *value;
    const void           *nursery; /* the outermost around it, or NULL */
    bool                  is_own;  /* the function made the slice */
};
struct jl_started { /* a task: a call, or a block */
    struct jl_expr     *at, *call;
    struct jl_function *function; /* NULL: a closure */
    const void         *nursery;
};
struct jl_meanwhile { /* a call in a nursery, while its tasks run */
    const void         *nursery;
    struct jl_function *function; /* NULL: a closure */
};

struct jl_checker {
    struct jl_unit             *unit;
    const struct jl_host_table *host;
    struct jl_types            *types;
    struct jl_arena            *arena;
    struct jl_names            *names;
    struct jl_diagnostics      *diagnostics;
    struct jl_diagnostics       muted;       /* takes what is not shown */
    struct jl_span             *muted_lines; /* with a syntax error */
    uint32_t                    muted_count, muted_room;
    enum jl_profile             profile;

    struct jl_binding *bindings;
    uint32_t           binding_count, binding_room, scope_begin;
    struct jl_map      bound; /* name to 1 + binding */
    struct jl_symbol **caps;  /* bindings that are capabilities */
    uint32_t           cap_count, cap_room;
    struct jl_map      errors;       /* name to index in unit->errors, + 1 */
    struct jl_map      member_fails; /* method names: 1 none of them can fail, 2 some can */

    struct jl_frame      *frame;
    struct jl_actor      *actor; /* whose methods are checked */
    const struct jl_expr *tried; /* the operand of the `try` that is being checked */
    uint32_t              depth;

    struct jl_edge *calls, *awaits;
    uint32_t        call_count, call_room, await_count, await_room;

    struct jl_var   *vars;
    uint32_t         var_count, var_room, var_used; /* used: by this top-level function */
    jl_type        **slots; /* places in the tree whose type has a variable */
    uint32_t         slot_count, slot_room;
    struct jl_later *later;
    uint32_t         later_count, later_room;
    struct jl_flow  *flows;
    uint32_t         flow_count, flow_room;

    struct jl_store      *stores;
    uint32_t              store_count, store_room;
    struct jl_started    *started;
    uint32_t              started_count, started_room;
    struct jl_meanwhile  *meanwhile;
    uint32_t              meanwhile_count, meanwhile_room;
    const struct jl_expr *starting;     /* the call that `spawn` or `async` starts */
    struct jl_map         nursery_bits; /* what is stored while the tasks of a nursery run */
    struct jl_function  **values;       /* functions that are used as values */
    uint32_t              value_count, value_room;
    jl_type              *stored; /* types of slices that are stored to, by bit */
    uint32_t              stored_count, stored_room;

    uint32_t *marks; /* by type: the last search that saw it */
    uint32_t  mark_room, mark;
};

enum jl_builtin { JL_BUILTIN_TYPE = 1, JL_BUILTIN_ARRAY, JL_BUILTIN_CANCEL, JL_BUILTIN_PANIC };

#define JL_WRONG(c, code, at, ...)                                                                 \
    jl_report(jl_errors_at(c, at), JL_ERROR_SEVERITY, code, at, __VA_ARGS__)
#define JL_WARN(c, code, at, ...)                                                                  \
    jl_report(jl_warnings(c), JL_WARNING_SEVERITY, code, at, __VA_ARGS__)

/* mute.c: what a syntax error would cause is not reported */
void                   jl_mute_lines(struct jl_checker *c);
struct jl_diagnostics *jl_errors_at(struct jl_checker *c, struct jl_span at);
struct jl_diagnostics *jl_warnings(struct jl_checker *c);

/* names.c */
uint32_t         *jl_map_at(struct jl_checker *c, struct jl_map *map, const char *key);
uint32_t          jl_map_get(const struct jl_map *map, const char *key); /* 0: none */
struct jl_scope   jl_scope_open(struct jl_checker *c);
void              jl_scope_close(struct jl_checker *c, struct jl_scope scope);
struct jl_symbol *jl_new_symbol(struct jl_checker *c, enum jl_symbol_kind kind, struct jl_name name,
                                jl_type type);
struct jl_symbol *jl_declare(struct jl_checker *c, enum jl_symbol_kind kind, struct jl_name name,
                             jl_type type);
struct jl_symbol *jl_look_up(const struct jl_checker *c, const char *name);
/* Finds a name, marks it used and captured. NULL: reported. */
struct jl_symbol *jl_use(struct jl_checker *c, struct jl_name name);
void              jl_capture(struct jl_checker *c, struct jl_symbol *symbol, struct jl_span at);
static inline struct jl_known *jl_known_of(struct jl_symbol *symbol)
{
    return (struct jl_known *)symbol;
}

/* suggest.c: "did you mean" */
struct jl_guess {
    const char *name, *best;
    unsigned    distance;
};
struct jl_guess jl_guess_of(const char *name);
void            jl_guess(struct jl_guess *guess, const char *candidate);
const char     *jl_suggest_name(struct jl_checker *c, const char *name); /* NULL: nothing near */
const char     *jl_own_type(const char *name);                           /* i64 for "int"; NULL */
const char     *jl_did_you_mean(struct jl_checker *c, const char *best); /* NULL if best is */

/* types.c */
enum { JL_AS_RESULT = 1 }; /* `!T` is allowed */
jl_type        jl_read_type(struct jl_checker *c, const struct jl_written *written, unsigned flags);
jl_type        jl_new_var(struct jl_checker *c, struct jl_span at);
bool           jl_is_var(const struct jl_checker *c, jl_type type);
struct jl_var *jl_var_of(struct jl_checker *c, jl_type type);
jl_type        jl_resolve(struct jl_checker *c, jl_type type);
void           jl_note_slot(struct jl_checker *c, jl_type *slot);
bool           jl_unify(struct jl_checker *c, jl_type wanted, jl_type found);
void           jl_report_unknown(struct jl_checker *c, struct jl_span at, jl_type var);
const char    *jl_show(struct jl_checker *c, jl_type type);
bool           jl_is_fallible(const struct jl_checker *c, jl_type type);
jl_type        jl_value_type(const struct jl_checker *c, jl_type type); /* without ! */
/* Whether values of the type contain one of a kind (bits 1 << kind). */
bool jl_holds(struct jl_checker *c, jl_type type, uint64_t kinds);
bool jl_has_zero(struct jl_checker *c, jl_type type);
bool jl_crosses(struct jl_checker *c, jl_type type); /* a copy can be given to another task */
bool jl_is_deep(struct jl_checker *c, jl_type type, struct jl_span at); /* reported */
/* settle.c: the end of a top-level function */
void jl_settle(struct jl_checker *c);
bool jl_literal_fits(jl_type type, uint64_t magnitude, bool negative);
void jl_report_literal(struct jl_checker *c, struct jl_span at, jl_type type, bool negative);
bool jl_operator_takes(enum jl_binary binary, jl_type type);
void jl_report_operator(struct jl_checker *c, struct jl_span at, enum jl_binary binary,
                        jl_type type);
extern const char *const jl_binary_text[];

/* fails.c: finds the functions that fail, and fills unit->all */
void jl_find_failing(struct jl_checker *c);
/* effects.c */
void jl_spread(struct jl_unit *unit, const struct jl_edge *edges, uint32_t count, uint32_t mask);
void jl_spread_effects(struct jl_checker *c);
void jl_add_effect(struct jl_checker *c, uint32_t effects);
void jl_add_call(struct jl_checker *c, struct jl_function *callee);

/* check_decl.c */
void        jl_check_function(struct jl_checker *c, struct jl_function *function);
const char *jl_function_text(const struct jl_checker *c, const struct jl_function *function);

/* check_stmt.c */
void jl_check_block(struct jl_checker *c, struct jl_block *block); /* in a scope of its own */
bool jl_block_ends(const struct jl_block *block);                  /* its end cannot be reached */

/* check_expr.c. `wanted` is a hint, 0: none. The result may be VOID or fallible. */
void    jl_fill(struct jl_checker *c, struct jl_expr **e, struct jl_span at); /* NULL: BAD */
jl_type jl_check_expr(struct jl_checker *c, struct jl_expr *e, jl_type wanted);
/* The expression must have a value: neither VOID nor fallible. */
jl_type jl_check_value(struct jl_checker *c, struct jl_expr *e, jl_type wanted);
/* The value must have the type. `what` says for what, as "the condition"; NULL. */
bool        jl_check_is(struct jl_checker *c, struct jl_expr *e, jl_type wanted, const char *what);
jl_type     jl_check_closure(struct jl_checker *c, struct jl_expr *e, jl_type wanted);
const char *jl_snip(struct jl_checker *c, struct jl_span at); /* source text, at most 40 bytes */

/* check_data.c: members, indexes, arrays, structs */
jl_type jl_check_member(struct jl_checker *c, struct jl_expr *e);
jl_type jl_check_index(struct jl_checker *c, struct jl_expr *e);
jl_type jl_check_array(struct jl_checker *c, struct jl_expr *e, jl_type wanted);
jl_type jl_check_struct(struct jl_checker *c, struct jl_expr *e);
jl_type jl_check_range(struct jl_checker *c, struct jl_expr *e, jl_type wanted);
bool    jl_check_place(struct jl_checker *c, struct jl_expr *e); /* after jl_check_expr */
void    jl_check_no_member(struct jl_checker *c, struct jl_expr *member, jl_type type);

/* check_call.c */
jl_type jl_check_call(struct jl_checker *c, struct jl_expr *e, jl_type wanted);
/* Arguments against a function type. `outward`: the callee is not of this program. */
void jl_check_args(struct jl_checker *c, struct jl_expr *e, jl_type fn, const char **names,
                   const char *callee, bool outward, struct jl_function *function);
/* check_method.c */
jl_type jl_check_method(struct jl_checker *c, struct jl_expr *e);

/* check_task.c */
jl_type jl_check_try(struct jl_checker *c, struct jl_expr *e, jl_type wanted);
jl_type jl_check_await(struct jl_checker *c, struct jl_expr *e, jl_type wanted);
jl_type jl_check_async(struct jl_checker *c, struct jl_expr *e);
jl_type jl_check_spawn(struct jl_checker *c, struct jl_expr *e);
jl_type jl_check_channel(struct jl_checker *c, struct jl_expr *e);
bool    jl_need_nursery(struct jl_checker *c, struct jl_span at, const char *word);
void    jl_check_nursery(struct jl_checker *c, struct jl_statement *s);
bool    jl_not_in_defer(struct jl_checker *c, struct jl_span at, const char *word);

/* profile.c. False: reported. */
bool jl_need_tasks(struct jl_checker *c, struct jl_span at, const char *word); /* not :core */
bool jl_may_hold_caps(struct jl_checker *c, struct jl_span at, const char *name);
bool jl_may_mint(struct jl_checker *c, struct jl_span at, jl_type type);
void jl_check_host_effects(struct jl_checker *c, struct jl_expr *e,
                           const struct jl_host_entry *entry);

/* caps.c, flow.c */
/* A literal of a capability or a Budget. */
jl_type jl_check_cap(struct jl_checker *c, struct jl_expr *e, jl_type type, bool delegatable);
extern const char *const jl_budget_fields[5];
/* :sovereign: the capability in scope that an operation uses. NULL: reported, or not :sovereign. */
struct jl_symbol *jl_need_cap(struct jl_checker *c, jl_type kind, struct jl_span at,
                              const char *does);
/* A value that leaves the program, or its task. */
void jl_check_outward(struct jl_checker *c, struct jl_expr *value, const char *to);
void jl_note_flow(struct jl_checker *c, struct jl_expr *value, struct jl_function *callee,
                  uint32_t index);
void jl_check_flows(struct jl_checker *c);
void jl_learn_cap(struct jl_symbol *symbol, struct jl_expr *value); /* let symbol = value */

/* stores.c: values that a task would leave in a slice of another task */
void jl_note_store(struct jl_checker *c, const struct jl_statement *s);
void jl_note_own(struct jl_symbol *symbol, const struct jl_expr *value);
/* A call in a function; function NULL: of a closure. */
void jl_note_call(struct jl_checker *c, const struct jl_expr *call, struct jl_function *function);
void jl_note_task(struct jl_checker *c, struct jl_expr *at, struct jl_expr *call,
                  struct jl_function *function);
void jl_check_stores(struct jl_checker *c); /* also spreads the effects */

/* errors.c */
int64_t jl_error_number(struct jl_checker *c, const char *name);

#endif

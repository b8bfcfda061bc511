/* SPDX-License-Identifier: MIT */
/*
 * What a program may use of its host: types, functions, methods and values. The prelude is such a
 * table (host/prelude.c), and a C program that embeds Janus adds its own.
 *
 * A function is declared by its signature, written as Janus writes it:
 *
 *     {.signature = "bind(address: str) -> !Server", .code = my_bind, .effects = "io"}
 *     {.signature = "Server.accept() -> !Connection", .code = my_accept, .effects = "io await"}
 *     {.signature = "process(body: str) -> str", .code = my_process}
 *     {.signature = "scan(cap: CapSpawn, path: str) -> i64", .code = my_scan, .effects = "spawn"}
 *     {.value = "input_data: []u8", .code = &my_slice}
 *     {.type = "Server"}
 *
 * The code is a C function: int64_t code(void *result, const void *const *arguments). arguments[i]
 * points to the value of the i-th argument, laid out as type.h says (a receiver comes first).
 * `result` points to room for the value. It returns 0, or an error below 0 if the signature says !.
 * A function without ! whose code returns an error makes its task panic, with the function's name.
 */
#ifndef JANUSRT_LANG_HOST_TABLE_H
#define JANUSRT_LANG_HOST_TABLE_H

#include "type/type.h"

typedef int64_t jl_host_code(void *result, const void *const *arguments);

/* One row, as a host writes it. */
struct jl_host_row {
    const char   *signature; /* a function or a method */
    const char   *value;     /* or a value */
    const char   *type;      /* or a type: 16 bytes, struct jl_handle */
    jl_host_code *code;      /* of a function */
    const void   *address;   /* of a value */
    const char   *effects;   /* words of enum jl_effect in small letters; NULL: none */
    /* The C name of `code` or of the value, for `janusrt build`. NULL: the function is called
     * through the table, and built programs do not have it. */
    const char *symbol;
    /* It may be given capabilities that are not delegatable. */
    bool trusted_only;
};

/* The same, understood. */
enum jl_host_kind { JL_HOST_FUNCTION, JL_HOST_VALUE, JL_HOST_TYPE };
struct jl_host_entry {
    enum jl_host_kind         kind;
    const char               *name;     /* interned; of a method without the type */
    jl_type                   receiver; /* of a method; else 0 */
    jl_type                   fn;       /* FUNCTION: JL_FN without the receiver; result may be !T */
    jl_type                   type;     /* VALUE, TYPE */
    const char              **param_names; /* interned */
    uint32_t                  effects;
    const struct jl_host_row *row;
};
struct jl_host_table {
    struct jl_host_entry *entries;
    uint32_t              count, room;
};

/* Adds rows. Rows are read in order, types before their use. False: *why names the row and what is
 * wrong with it. */
bool jl_host_add(struct jl_host_table *table, struct jl_types *types, struct jl_names *names,
                 const struct jl_host_row *rows, uint32_t count, const char **why);

#endif

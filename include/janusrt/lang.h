/* SPDX-License-Identifier: MIT */
/*
 * The language Janus inside of a C program. Link with libjanusrt-lang, libjanusrt-lang-support and
 * libjanusrt, in this order; there are static libraries only. A program that checks and runs a
 * text, and offers it a function of its own:
 *
 *     static int64_t scan(void *result, const void *const *arguments)
 *     {
 *         const janus_lang_text *path = arguments[0];
 *         *(int64_t *)result = scan_folder(path->bytes, path->length);
 *         return 0;
 *     }
 *     static const janus_lang_row rows[] = {
 *         {.signature = "scan(path: str) -> i64", .code = scan, .effects = "io"}};
 *
 *     int exit_status;
 *     status = janus_lang_run(JANUS_LANG_OPTIONS(.rows = rows, .row_count = 1), "rules.jan", text,
 *                             &exit_status);
 *
 * The program runs in a scheduler of its own, as janus_run does. Its profile decides what it may
 * do. Messages about errors go to standard error.
 */
#ifndef JANUSRT_LANG_H
#define JANUSRT_LANG_H

#include <janusrt/budget.h>
#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/profile.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The code of a host function. arguments[i] points to the i-th argument; the receiver of a method
 * comes first. `result` points to room for the result. The code returns 0, or an error below 0 if
 * the signature says `!`. An error without `!` makes the task panic.
 *
 *     bool i8 ... u64 f64     the C type of this name
 *     str                     janus_lang_text; []T: janus_lang_slice
 *     CapSpawn ...            janus_cap
 *     a type of a row         16 bytes of the host
 *
 * The function runs in the task that called it, and may wait. A result's memory is the host's, or
 * the task's (janus_alloc).
 */
typedef int64_t janus_lang_code(void *result, const void *const *arguments);

/* The values of str and []T. */
typedef struct janus_lang_text {
    const char *bytes; /* UTF-8, not ended by NUL */
    int64_t     length;
} janus_lang_text;
typedef struct janus_lang_slice {
    void   *items;
    int64_t length;
} janus_lang_slice;

/* One name that the host offers: a function or a method, a value, or a type. */
typedef struct janus_lang_row {
    const char      *signature; /* "scan(path: str) -> !i64", "Reader.next() -> str" */
    const char      *value;     /* "input: []u8" */
    const char      *type;      /* "Reader" */
    janus_lang_code *code;      /* of a function */
    const void      *address;   /* of a value */
    const char      *effects;   /* words of `janusrt check --effects`, as "io await". NULL: none */
    const char      *symbol;    /* its C name, for `janusrt build`. NULL: it has none */
    bool             trusted;   /* it may be given capabilities that are not delegatable */
} janus_lang_row;

/* Zero in any field selects the default named beside it. */
typedef struct janus_lang_options {
    size_t                struct_bytes; /* sizeof this struct; JANUS_LANG_OPTIONS sets it */
    const janus_lang_row *rows;         /* beside the prelude. NULL: none */
    uint32_t              row_count;
    janus_profile         profile; /* instead of the pragma's. 0: the pragma's, without it CORE */
    uint32_t              yield_interval; /* iterations between checks. 0: the profile's */
    const janus_budget   *budget;         /* a pool for the whole program. NULL: none */
} janus_lang_options;

#define JANUS_LANG_OPTIONS(...) JANUS_OPTIONS_(janus_lang_options, __VA_ARGS__)

JANUS_BEGIN_DECLS

/*
 * Checks a program, as `janusrt check`. Messages about errors go to standard error. `options` may
 * be NULL.
 *
 * Context: a plain thread with a stack of 1 MiB or more.
 * Yields:  never.
 * Owns:    nothing; `name` is what messages call the program.
 * Cost:    about a microsecond for each line.
 * Errors:  REFUSED    the program has errors
 *          INVALID    an argument is NULL, a row or another option is wrong, or the text has more
 *                     than 16 MiB; janus_explain says which
 *          NO_MEMORY  memory was refused, or the program needs more than 1 GiB to be checked
 */
JANUS_NODISCARD JANUS_API janus_status janus_lang_check(const janus_lang_options *options,
                                                        const char *name, const char *text);

/*
 * Checks a program, interprets it and waits for its end. `options` may be NULL.
 *
 * Context: as janus_lang_check.
 * Yields:  never; it blocks the thread until the program has ended.
 * Owns:    *out_exit is the caller's (NULL: not wanted). It gets the number of main, from 0 to 255.
 *          It is 1 after an error or a panic, 3 if a budget is exhausted, 4 after a deadlock.
 * Cost:    as janus_lang_check, and creating a scheduler.
 * Errors:  as janus_lang_check
 */
JANUS_NODISCARD JANUS_API janus_status janus_lang_run(const janus_lang_options *options,
                                                      const char *name, const char *text,
                                                      int *out_exit);

JANUS_END_DECLS
#endif

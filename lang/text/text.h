/* SPDX-License-Identifier: MIT */
/*
 * Sources, places in them, diagnostics, and the memory of one compilation.
 *
 * Everything that a compilation allocates lies in its arena and is freed together. A compilation
 * runs on one thread, so nothing here has a lock.
 */
#ifndef JANUSRT_LANG_TEXT_H
#define JANUSRT_LANG_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Memory that is freed all at once. */
struct jl_arena {
    struct jl_arena_chunk *chunks;
    size_t                 used, max_bytes; /* max_bytes: a limit; 0: 1 GiB */
};

/* Allocates zeroed memory, aligned to 16. It never returns NULL: if memory is refused or the limit
 * is reached, the process prints one line and exits with status 2. An embedding host sets
 * `jl_arena_full` to a function that does not return (longjmp) instead. */
void *jl_new(struct jl_arena *arena, size_t bytes);
char *jl_copy_text(struct jl_arena *arena, const char *text, size_t length); /* ends with NUL */
__attribute__((format(printf, 2, 3), nonnull(2))) char *jl_format(struct jl_arena *arena,
                                                                  const char      *format, ...);
void                                                    jl_arena_free(struct jl_arena *arena);
extern _Thread_local void                               (*jl_arena_full)(void);

/* Grows an array in the arena: returns room for one more element, zeroed. *items may move. */
#define JL_PUSH(arena, items, count, room)                                                         \
    (*(__typeof__(&(items)[0]))jl_push_((arena), (void **)&(items), sizeof *(items), &(count),     \
                                        &(room)))
void *jl_push_(struct jl_arena *arena, void **items, size_t bytes, uint32_t *count, uint32_t *room);

/* Texts that are equal have the same pointer after interning. */
struct jl_names {
    struct jl_arena *arena;
    const char     **slots;
    uint32_t         count, room;
};
const char *jl_intern(struct jl_names *names, const char *text, size_t length);

/* A place: a byte range of the source. Line and column are found when a diagnostic is printed. */
struct jl_span {
    uint32_t begin, end; /* end: one past the last byte */
};

struct jl_source {
    const char *path; /* as messages show it */
    const char *text; /* NUL after `length` bytes; may contain NUL bytes itself */
    uint32_t    length;
    uint32_t   *lines; /* the offset of each line's first byte */
    uint32_t    line_count;
};

enum { JL_SOURCE_MAX = 16 << 20 }; /* bytes; a larger file is refused */

/* Reads a file. False: *why says what happened, in the arena. "-" is standard input. */
bool jl_source_read(struct jl_arena *arena, const char *path, struct jl_source *out,
                    const char **why);
void jl_source_of(struct jl_arena *arena, const char *path, const char *text, size_t length,
                  struct jl_source *out);
/* Both begin with 1. Columns count bytes of UTF-8 code points: a code point is one column. */
void jl_source_place(const struct jl_source *source, uint32_t offset, uint32_t *line,
                     uint32_t *column);

enum jl_severity { JL_ERROR_SEVERITY, JL_WARNING_SEVERITY };

struct jl_diagnostic {
    enum jl_severity severity;
    char             code[8]; /* "C3002" */
    struct jl_span   at;
    const char      *text; /* the rule in words, one sentence without a final period */
    const char      *help; /* one line, or NULL */
    struct jl_span   also; /* a second place, as the pragma; empty (0, 0): none */
    const char      *also_text;
};

enum { JL_DIAGNOSTICS_MAX = 20 }; /* errors shown; the rest is counted */

struct jl_diagnostics {
    struct jl_arena        *arena;
    const struct jl_source *source;
    struct jl_diagnostic   *items; /* in the order in which they were found; printed by place */
    uint32_t                count, room;
    uint32_t                errors, warnings; /* all, also those beyond the limit */
};

/* Adds a diagnostic and returns it, so that the caller can set `help` and `also`. Two errors at the
 * same place: the second is dropped (a static dummy is returned). */
__attribute__((format(printf, 5, 6), nonnull(5))) struct jl_diagnostic *jl_report(
    struct jl_diagnostics *diagnostics, enum jl_severity severity, const char *code,
    struct jl_span at, const char *format, ...);

enum jl_diagnostic_format { JL_DIAGNOSTIC_TEXT, JL_DIAGNOSTIC_COLOUR, JL_DIAGNOSTIC_JSON };

/*
 *     x.jan:3:9: error[C3002]: `parallel_map` requires CapSpawn as its first argument
 *       3 |     let r = parallel_map(items, f)
 *         |             ^~~~~~~~~~~~
 *     help: pass a capability: `parallel_map(cap, items, f)`
 */
void jl_diagnostics_print(const struct jl_diagnostics *diagnostics,
                          enum jl_diagnostic_format format, FILE *out);

#endif

/* SPDX-License-Identifier: MIT */
/* A program, from its text to QTJIR and to its end. The command and C hosts begin here. */
#ifndef JANUSRT_LANG_EMBED_EMBED_H
#define JANUSRT_LANG_EMBED_EMBED_H

#include "qtjir/qtjir.h"
#include "syntax/ast.h"

/* What a compilation begins with. Zero selects the default. */
struct jl_request {
    const char               *path; /* "-": standard input. Also what messages show */
    const char               *text; /* instead of reading the file; NULL: the file is read */
    size_t                    length;
    const struct jl_host_row *rows; /* beside the prelude */
    uint32_t                  row_count;
    bool                      override_profile;
    enum jl_profile           profile;
    uint32_t                  interval; /* 0: the profile's */
    enum qt_level             level;    /* how far it goes */
};

struct jl_program_text {
    struct jl_arena       arena;
    struct jl_names       names;
    struct jl_types       types;
    struct jl_host_table  host;
    struct jl_source      source;
    struct jl_diagnostics diagnostics;
    struct jl_unit       *unit; /* NULL: the source was QTJIR */
    struct qt_module      module;
};

/*
 * The steps. Each returns false if the program has errors. Then `diagnostics` has them, or *why is
 * a sentence if the fault has no place in the source.
 */
bool jl_program_read(struct jl_program_text *program, const struct jl_request *request,
                     const char **why);
bool jl_program_check(struct jl_program_text *program, const struct jl_request *request);
/* A path that ends in ".ir" is QTJIR at any level up to the one that is wanted. */
bool jl_program_make(struct jl_program_text *program, const struct jl_request *request,
                     const char **why);
void jl_program_free(struct jl_program_text *program);

#endif

/* SPDX-License-Identifier: MIT */
/* A program, from its text to QTJIR. */
#include "embed/embed.h"

#include "host/prelude.h"
#include "lower/lower.h"
#include "meaning/meaning.h"
#include "syntax/syntax.h"

#include <string.h>

static bool is_ir(const char *path)
{
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".ir") == 0;
}

bool jl_program_read(struct jl_program_text *program, const struct jl_request *request,
                     const char **why)
{
    memset(program, 0, sizeof *program);
    program->names.arena = &program->arena;
    jl_types_init(&program->types, &program->arena);
    program->diagnostics.arena = &program->arena;
    program->diagnostics.source = &program->source;
    if (!jl_host_add(&program->host, &program->types, &program->names, jl_prelude_rows,
                     jl_prelude_row_count, why) ||
        !jl_host_add(&program->host, &program->types, &program->names, request->rows,
                     request->row_count, why)) {
        return false;
    }
    if (request->text) {
        jl_source_of(&program->arena, request->path, request->text, request->length,
                     &program->source);
        return true;
    }
    return jl_source_read(&program->arena, request->path, &program->source, why);
}

bool jl_program_check(struct jl_program_text *program, const struct jl_request *request)
{
    const struct jl_check_options options = {
        .host = &program->host,
        .override_profile = request->override_profile,
        .profile = request->profile,
    };
    program->unit =
        jl_parse(&program->source, &program->arena, &program->names, &program->diagnostics);
    program->unit->types = &program->types;
    return jl_check(program->unit, &options, &program->diagnostics);
}

static uint32_t interval_of(const struct jl_request *request, int profile)
{
    if (request->interval != 0) return request->interval;
    return profile == JL_CLUSTER ? 512 : 1024;
}

/* From the level that the module has to the one that is wanted; each step is verified. */
static bool raise_level(struct qt_module *module, const struct jl_request *request,
                        const char **why)
{
    if (!qt_verify(module, why)) return false;
    if (module->level == QT_HIGH && request->level >= QT_MID) {
        qt_place_tenancies(module);
        if (!qt_insert_budget(module, why) || !qt_verify(module, why)) return false;
    }
    if (module->level == QT_MID && request->level == QT_LOW) {
        if (!qt_lower_tasks(module, why) || !qt_verify(module, why)) return false;
    }
    return true;
}

bool jl_program_make(struct jl_program_text *program, const struct jl_request *request,
                     const char **why)
{
    struct qt_module *module = &program->module;
    *why = NULL;
    qt_module_init(module, &program->arena, &program->types, &program->names, &program->host);
    module->source = program->source.path;
    if (is_ir(request->path)) {
        if (!qt_parse(module, &program->source, &program->diagnostics)) return false;
        return raise_level(module, request, why);
    }
    if (!jl_program_check(program, request)) return false;
    module->profile = (int)program->unit->profile;
    module->interval = interval_of(request, module->profile);
    module->level = QT_HIGH;
    jl_lower(program->unit, module);
    qt_place_tenancies(module);
    if (raise_level(module, request, why)) return true;
    *why = jl_format(&program->arena, "this is a bug of the compiler: %s", *why);
    return false;
}

void jl_program_free(struct jl_program_text *program) { jl_arena_free(&program->arena); }

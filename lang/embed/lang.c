/* SPDX-License-Identifier: MIT */
/* The language inside of a C program. */
#include <janusrt/lang.h>

#include "embed/embed.h"
#include "host/prelude.h"
#include "run/run.h"

#include <janusrt/explain.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local jmp_buf full; /* where the arena goes when it has no memory */

__attribute__((noreturn)) static void arena_is_full(void) { longjmp(full, 1); }

static janus_status refuse(const char *call, const char *why)
{
    return janus_explain_as(JANUS_INVALID, call, why);
}

/* Rows of the host table, which say the same in the words of the front end. */
static struct jl_host_row *rows_of(const janus_lang_options *options)
{
    struct jl_host_row *rows = calloc(options->row_count + 1U, sizeof *rows);
    for (uint32_t i = 0; rows && i < options->row_count; i++) {
        const janus_lang_row *from = &options->rows[i];
        rows[i] = (struct jl_host_row){
            .signature = from->signature,
            .value = from->value,
            .type = from->type,
            .code = from->code,
            .address = from->address,
            .effects = from->effects,
            .symbol = from->symbol,
            .trusted_only = from->trusted,
        };
    }
    return rows;
}

static bool take_profile(struct jl_request *request, janus_profile profile)
{
    switch (profile) {
    case JANUS_PROFILE_DEFAULT: return true;
    case JANUS_PROFILE_CORE: request->profile = JL_CORE; break;
    case JANUS_PROFILE_SERVICE: request->profile = JL_SERVICE; break;
    case JANUS_PROFILE_CLUSTER: request->profile = JL_CLUSTER; break;
    case JANUS_PROFILE_SOVEREIGN: request->profile = JL_SOVEREIGN; break;
    default: return false;
    }
    request->override_profile = true;
    return true;
}

static janus_status make_and_run(struct jl_program_text *program, const struct jl_request *request,
                                 const janus_budget *budget, int *out_exit)
{
    const char *why = NULL;
    if (!jl_program_read(program, request, &why)) {
        fprintf(stderr, "janusrt: %s: %s\n", request->path, why);
        return refuse("janus_lang", "a row of the host table, or the text, is wrong");
    }
    bool            good = jl_program_make(program, request, &why);
    struct jl_code *code = NULL;
    if (program->diagnostics.count > 0) {
        jl_diagnostics_print(&program->diagnostics, JL_DIAGNOSTIC_TEXT, stderr);
    }
    if (good && out_exit) {
        good = jl_code_make(&program->module, &code, &why);
        if (good && program->module.main == 0) why = "there is no main, so nothing can run";
    }
    if (why) fprintf(stderr, "janusrt: %s: %s\n", request->path, why);
    if (!good || why) return JANUS_REFUSED;
    if (!out_exit) return JANUS_OK;
    jl_set_budget(budget);
    *out_exit = jl_code_run(code);
    jl_set_budget(NULL);
    return JANUS_OK;
}

static janus_status guarded(struct jl_program_text *program, const struct jl_request *request,
                            const janus_budget *budget, int *out_exit)
{
    if (setjmp(full) != 0) return JANUS_NO_MEMORY;
    return make_and_run(program, request, budget, out_exit);
}

static janus_status begin(const janus_lang_options *options, const char *call, const char *name,
                          const char *text, int *out_exit)
{
    static const janus_lang_options none = {.struct_bytes = sizeof none};
    struct jl_request               request = {.path = name, .text = text, .level = QT_MID};
    struct jl_program_text          program;
    if (!options) options = &none;
    if (!name || !text) return refuse(call, "the name or the text is NULL");
    if (options->struct_bytes != sizeof *options) return refuse(call, "struct_bytes is wrong");
    if (options->row_count > 0 && !options->rows) return refuse(call, "rows is NULL");
    if (!take_profile(&request, options->profile)) return refuse(call, "the profile is no profile");
    request.length = strlen(text);
    if (request.length > JL_SOURCE_MAX) return refuse(call, "the text has more than 16 MiB");
    request.interval = options->yield_interval;
    struct jl_host_row *rows = rows_of(options);
    if (!rows) return JANUS_NO_MEMORY;
    request.rows = rows;
    request.row_count = options->row_count;
    memset(&program, 0, sizeof program);
    void (*before)(void) = jl_arena_full;
    jl_arena_full = arena_is_full;
    janus_status status = guarded(&program, &request, options->budget, out_exit);
    jl_arena_full = before;
    jl_program_free(&program);
    free(rows);
    return status;
}

janus_status janus_lang_check(const janus_lang_options *options, const char *name, const char *text)
{
    return begin(options, "janus_lang_check", name, text, NULL);
}

janus_status janus_lang_run(const janus_lang_options *options, const char *name, const char *text,
                            int *out_exit)
{
    int          exit_status = 0;
    janus_status status = begin(options, "janus_lang_run", name, text, &exit_status);
    if (out_exit) *out_exit = exit_status;
    return status;
}

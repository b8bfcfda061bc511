/* SPDX-License-Identifier: MIT */
/* The whole C file. */
#include "emit/c.h"

#include <string.h>

static const char head[] = "#include <janusrt/lang_support.h>\n"
                           "#include <string.h>\n"
                           "\n"
                           "/* Not everything that a program declares is used. */\n"
                           "#pragma GCC diagnostic ignored \"-Wpragmas\"\n"
                           "#pragma GCC diagnostic ignored \"-Wunknown-warning-option\"\n"
                           "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
                           "#pragma GCC diagnostic ignored \"-Wunused-const-variable\"\n"
                           "#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n"
                           "#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n"
                           "#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
                           "#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n"
                           "#pragma GCC diagnostic ignored \"-Wtautological-compare\"\n"
                           "#pragma GCC diagnostic ignored \"-Wtype-limits\"\n"
                           "\n"
                           "#define PLACE(line, column) ((uint64_t)(line) << 32 | (column))\n"
                           "#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)\n"
                           "/* The compiler's plugin pays for several operations at once. Without "
                           "it each pays inline. */\n"
                           "#ifndef JANUS_COUNTS\n"
                           "#define janus_op(count) janus_check_or_end(count)\n"
                           "#endif\n";

static void put_host(struct jl_emitter *e)
{
    const struct jl_host_table *host = e->module->host;
    uint8_t                    *used = jl_new(e->module->arena, host->count + 1);
    for (uint32_t f = 0; f < e->module->function_count; f++) {
        const struct qt_function *function = &e->module->functions[f];
        for (uint32_t n = 0; n < function->node_count; n++) {
            const struct qt_node *node = &function->nodes[n];
            if (node->op == QT_Call_Host || node->op == QT_Host_Value) used[node->literal] = 1;
        }
    }
    for (uint32_t i = 0; i < host->count; i++) {
        const struct jl_host_entry *entry = &host->entries[i];
        if (!used[i] || !entry->row->symbol) continue;
        if (entry->kind == JL_HOST_FUNCTION) {
            jl_c_put(e, "int64_t %s(void *result, const void *const *arguments);\n",
                     entry->row->symbol);
        } else {
            jl_c_put(e, "extern ");
            jl_c_put_type(e, entry->type);
            jl_c_put(e, " %s;\n", entry->row->symbol);
        }
    }
}

static void put_main_call(struct jl_emitter *e)
{
    uint32_t                  main = e->module->main - 1;
    const struct qt_function *f = &e->module->functions[main];
    bool                      has = jl_c_has_value(e, f->result);
    jl_c_put(e, "\nJANUS_OWN_OPS static int64_t run_main(void *context, int64_t *value)\n{\n"
                "    (void)context;\n");
    if (has) {
        jl_c_put(e, "    ");
        jl_c_put_type(e, f->result);
        jl_c_put(e, " result;\n");
    }
    jl_c_put(e, f->fails ? "    int64_t error = " : has ? "    result = " : "    ");
    jl_c_put_function_name(e, "f", main);
    jl_c_put(e, "(%s);\n", f->fails && has ? "&result" : "");
    if (f->fails) jl_c_put(e, "    if (error != 0) return error;\n");
    jl_c_put(e, "    *value = %s;\n    return 0;\n}\n", has ? "(int64_t)result" : "0");
}

static void put_main(struct jl_emitter *e)
{
    const struct qt_module *module = e->module;
    put_main_call(e);
    jl_c_put(e, "\nstatic const char *const error_names[] = {");
    for (uint32_t i = 0; i < module->error_count; i++)
        jl_c_put(e, "\"%s\", ", module->errors[i].name);
    jl_c_put(e,
             "NULL};\n\nint main(int count, char **words)\n{\n    static const struct jl_program "
             "program = {\n        .source = ");
    jl_c_put_string(e, module->source, strlen(module->source));
    jl_c_put(e,
             ",\n        .profile = %d,\n        .main = run_main,\n"
             "        .error_names = error_names,\n        .error_count = %u,\n"
             "        .interval = %u,\n    };\n"
             "    jl_set_arguments(count > 0 ? count - 1 : 0, words + 1);\n"
             "    return jl_run_program(&program);\n}\n",
             module->profile, module->error_count, module->interval);
}

bool jl_emit_c(struct qt_module *module, FILE *out, const char **why)
{
    struct jl_emitter e = {.module = module, .types = module->types, .out = out};
    if (module->level != QT_MID) {
        *why = "C is emitted from level Mid only";
        return false;
    }
    if (module->main == 0) {
        *why = "the program has no main";
        return false;
    }
    e.states = jl_new(module->arena, module->types->count);
    jl_c_put(&e, "/* From ");
    jl_c_put_comment(&e, module->source);
    jl_c_put(&e, ". Do not change it: change the source. */\n%s\n", head);
    jl_c_put_structs(&e);
    jl_c_put_shapes(&e);
    jl_c_put_interfaces(&e);
    put_host(&e);
    for (uint32_t f = 0; f < module->function_count; f++) {
        jl_c_put_head(&e, f);
        jl_c_put(&e, ";\n");
    }
    jl_c_put_actors(&e);
    jl_c_put_entries(&e);
    for (uint32_t f = 0; f < module->function_count && !e.why; f++) jl_c_put_body(&e, f);
    put_main(&e);
    *why = e.why;
    return !e.why;
}

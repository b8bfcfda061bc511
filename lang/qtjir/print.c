/* SPDX-License-Identifier: MIT */
/* From modules to text. It may be called with a module that no verifier has seen. */
#include "qtjir/inner.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_DEPTH_MAX = 64 };

static void print_type(const struct jl_types *types, jl_type type, FILE *out, unsigned depth)
{
    static const char *const simple[JL_SIMPLE_KINDS] = {
        "bad",       "void",       "never",       "bool",      "i8",     "i16",
        "i32",       "i64",        "u8",          "u16",       "u32",    "u64",
        "f64",       "str",        "error",       "nursery",   "Budget", "CapSpawn",
        "CapBudget", "CapChannel", "CapExecutor", "Supervisor"};
    if (type >= types->count || depth > TYPE_DEPTH_MAX) {
        fputs("bad", out);
        return;
    }
    const struct jl_type_info *info = jl_info(types, type);
    switch (info->kind) {
    case JL_SLICE: fputs("[]", out); break;
    case JL_FALLIBLE: fputs("!", out); break;
    case JL_TASK: fputs("task ", out); break;
    case JL_CHANNEL: fputs("channel ", out); break;
    case JL_START: fputs("start ", out); break;
    case JL_FN:
        fputs("fn(", out);
        for (uint32_t i = 0; i < info->param_count; i++) {
            if (i > 0) fputs(", ", out);
            print_type(types, info->params[i], out, depth + 1);
        }
        fputs(") -> ", out);
        break;
    case JL_STRUCT:
    case JL_ACTOR:
    case JL_IFACE:
    case JL_HOST: fputs(info->name, out); return;
    default: fputs(type < JL_SIMPLE_KINDS ? simple[type] : "bad", out); return;
    }
    print_type(types, info->of, out, depth + 1);
}

void qt_print_type(const struct jl_types *types, jl_type type, FILE *out)
{
    print_type(types, type, out, 0);
}

const char *qt_type_text(const struct qt_module *module, jl_type type)
{
    char  *text = NULL;
    size_t length = 0;
    FILE  *out = open_memstream(&text, &length);
    if (out == NULL) return "?";
    qt_print_type(module->types, type, out);
    fclose(out);
    const char *copy = jl_copy_text(module->arena, text, length);
    free(text);
    return copy;
}

static void print_text(const char *text, size_t length, FILE *out)
{
    fputc('"', out);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\n')
            fputs("\\n", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

/* Numbers. A float is written so that it reads back the same; others than numbers as bits. */
static void print_number(jl_type type, int64_t literal, FILE *out)
{
    double value;
    char   text[40];
    switch (type) {
    case JL_BOOL:
        if (literal == 0 || literal == 1) {
            fputs(literal ? "true" : "false", out);
            return;
        }
        break;
    case JL_U64: fprintf(out, "%" PRIu64, (uint64_t)literal); return;
    case JL_F64:
        memcpy(&value, &literal, sizeof value);
        if (!isfinite(value)) {
            fprintf(out, "0x%016" PRIx64, (uint64_t)literal);
            return;
        }
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, value);
            if (strtod(text, NULL) == value) break;
        }
        fputs(text, out);
        if (strpbrk(text, ".e") == NULL) fputs(".0", out);
        return;
    default: break;
    }
    fprintf(out, "%" PRId64, literal);
}

uint32_t *qt_number_nodes(const struct qt_module *module, const struct qt_function *f)
{
    uint32_t *numbers = jl_new(module->arena, ((size_t)f->node_count + 1) * sizeof *numbers);
    uint32_t  next = 1;
    for (uint32_t b = 0; b < f->block_count; b++)
        for (uint32_t i = 0; i < f->blocks[b].count; i++) {
            uint32_t node = f->blocks[b].nodes[i];
            if (node < f->node_count && f->nodes[node].name == NULL &&
                qt_has_value(&f->nodes[node]))
                numbers[node] = next++;
        }
    return numbers;
}

static void print_operand(const struct qt_module *module, const struct qt_function *f,
                          const uint32_t *numbers, struct qt_operand o, FILE *out)
{
    if (o.kind == QT_BLOCK)
        fprintf(out, "bb%u", (unsigned)o.index);
    else if (o.kind == QT_FUNCTION && o.index < module->function_count)
        fprintf(out, "@%s", module->functions[o.index].name);
    else if (o.kind == QT_NODE && o.index < f->node_count && f->nodes[o.index].name != NULL)
        fprintf(out, "%%%s", f->nodes[o.index].name);
    else if (o.kind == QT_NODE && o.index < f->node_count)
        fprintf(out, "%%%u", numbers[o.index]);
    else
        fputs("%0", out);
}

static jl_type first_type(const struct qt_function *f, const struct qt_node *n)
{
    if (n->operand_count == 0 || n->operands[0].kind != QT_NODE) return JL_BAD;
    return n->operands[0].index < f->node_count ? f->nodes[n->operands[0].index].type : JL_BAD;
}

/* The name of a field, a method or a row that `literal` means; NULL: there is none. */
static const char *member(const struct qt_module *module, const struct qt_function *f,
                          const struct qt_node *n, jl_type *owner)
{
    bool state = n->op == QT_State_Get || n->op == QT_State_Set;
    *owner = state ? f->actor : first_type(f, n);
    if (*owner >= module->types->count || n->literal < 0) return NULL;
    const struct jl_type_info *info = jl_info(module->types, *owner);
    uint64_t                   i = (uint64_t)n->literal;
    switch (n->op) {
    case QT_Actor_Send:
    case QT_Actor_Call:
    case QT_Interface_Call: return i < info->method_count ? info->methods[i].name : NULL;
    default:
        if (*owner == JL_BUDGET) return i < 5 ? qt_budget_fields[i] : NULL;
        return i < info->field_count ? info->fields[i].name : NULL;
    }
}

/* What stands between the opcode and the operands. */
static bool print_literal(const struct qt_module *module, const struct qt_function *f,
                          const struct qt_node *n, FILE *out)
{
    const struct jl_host_entry *row;
    jl_type                     owner;
    const char                 *name;
    switch (n->op) {
    case QT_Const: fputc(' ', out), print_number(n->type, n->literal, out); return false;
    case QT_Str: fputc(' ', out), print_text(n->text, n->text_length, out); return false;
    case QT_Error:
    case QT_Defer_Pop:
    case QT_Budget_Decrement:
    case QT_Budget_Check: fprintf(out, " %" PRId64, n->literal); return false;
    case QT_Host_Value:
    case QT_Call_Host:
        fputs(" \"", out);
        if (module->host != NULL && n->literal >= 0 && n->literal < module->host->count) {
            row = &module->host->entries[n->literal];
            if (row->receiver != 0)
                qt_print_type(module->types, row->receiver, out), fputc('.', out);
            fputs(row->name, out);
        }
        fputc('"', out);
        return n->operand_count > 0;
    case QT_State_Get:
    case QT_State_Set:
    case QT_Field_Get:
    case QT_Field_With:
        name = member(module, f, n, &owner);
        fprintf(out, " .%s", name == NULL ? "?" : name);
        return n->operand_count > 0;
    case QT_Actor_Send:
    case QT_Actor_Call:
    case QT_Interface_Call:
        name = member(module, f, n, &owner);
        fputs(" @", out);
        if (name != NULL) qt_print_type(module->types, owner, out);
        fprintf(out, ".%s", name == NULL ? "?" : name);
        return true;
    default: return false;
    }
}

static bool has_cap_at_end(const struct qt_node *n)
{
    return n->operand_count > 0 &&
           ((n->flags & QT_F_WITH_CAP) != 0 || (n->op == QT_Cap_New && (n->flags & QT_F_PARENT)));
}

void qt_print_node(const struct qt_module *module, const struct qt_function *f,
                   const uint32_t *numbers, uint32_t node, FILE *out)
{
    const struct qt_node *n = &f->nodes[node];
    if (n->name != NULL && qt_ops[n->op].result != QT_R_NONE)
        fprintf(out, "%%%s = ", n->name);
    else if (qt_has_value(n))
        fprintf(out, "%%%u = ", numbers[node]);
    fputs(qt_ops[n->op].name, out);
    if (n->flags & QT_F_TRY) fputs(" try", out);
    if (n->flags & QT_F_ASYNC) fputs(" async", out);
    bool     comma = print_literal(module, f, n, out);
    bool     cap = has_cap_at_end(n);
    uint32_t plain = n->operand_count - (cap ? 1 : 0);
    for (uint32_t i = 0; i < plain; i++) {
        fputs(comma ? ", " : " ", out);
        print_operand(module, f, numbers, n->operands[i], out);
        comma = true;
    }
    if (cap) {
        fputs(n->op == QT_Cap_New ? " from " : " with ", out);
        print_operand(module, f, numbers, n->operands[plain], out);
    }
    if (n->flags & QT_F_DELEGATABLE) fputs(" delegatable", out);
    if (qt_ops[n->op].result == QT_R_WRITTEN) {
        fputs(" : ", out);
        qt_print_type(module->types, n->type, out);
    }
    if (n->tenancy != qt_usual_tenancy(f, n->op))
        fprintf(out, " tenancy %s", qt_tenancy_names[n->tenancy & 3]);
}

const char *qt_node_text(const struct qt_module *module, uint32_t function, uint32_t node)
{
    char  *text = NULL;
    size_t length = 0;
    FILE  *out = open_memstream(&text, &length);
    if (out == NULL) return "?";
    const struct qt_function *f = &module->functions[function];
    qt_print_node(module, f, qt_number_nodes(module, f), node, out);
    fclose(out);
    const char *copy = jl_copy_text(module->arena, text, length < 200 ? length : 200);
    free(text);
    return copy;
}

static void print_head(const struct qt_module *module, const struct qt_function *f, FILE *out)
{
    fprintf(out, "%sfunc @%s(", f->is_async ? "async " : "", f->name);
    for (uint32_t i = 0; i < f->param_count; i++) {
        fprintf(out, "%s%%%s: ", i > 0 ? ", " : "", f->param_names[i]);
        qt_print_type(module->types, f->params[i], out);
    }
    fprintf(out, ") -> %s", f->fails ? "!" : "");
    qt_print_type(module->types, f->result, out);
    fprintf(out, " tenancy %s", qt_tenancy_names[f->tenancy & 3]);
    if (f->capture_count > 0) fprintf(out, " captures %u", f->capture_count);
    if (f->actor != 0) fputs(" of ", out), qt_print_type(module->types, f->actor, out);
    fputs(" {", out);
}

void qt_print_function(const struct qt_module *module, uint32_t function, bool places, FILE *out)
{
    const struct qt_function *f = &module->functions[function];
    const uint32_t           *numbers = qt_number_nodes(module, f);
    print_head(module, f, out);
    if (places && f->line > 0) fprintf(out, " ; %u:1", f->line);
    fputc('\n', out);
    for (uint32_t b = 0; b < f->block_count; b++) {
        fprintf(out, "bb%u:\n", b);
        for (uint32_t i = 0; i < f->blocks[b].count; i++) {
            uint32_t node = f->blocks[b].nodes[i];
            if (node >= f->node_count) continue;
            fputs("  ", out);
            qt_print_node(module, f, numbers, node, out);
            if (places && f->nodes[node].line > 0)
                fprintf(out, " ; %u:%u", f->nodes[node].line, f->nodes[node].column);
            fputc('\n', out);
        }
    }
    fputs("}\n", out);
}

static void print_fields(const struct qt_module *module, const struct jl_type_info *info, FILE *out)
{
    fputs(info->field_count > 0 ? " { " : " {", out);
    for (uint32_t i = 0; i < info->field_count; i++) {
        fprintf(out, "%s%s: ", i > 0 ? ", " : "", info->fields[i].name);
        qt_print_type(module->types, info->fields[i].type, out);
    }
    fputs(info->field_count > 0 ? " }" : "}", out);
}

static const char *name_of(const struct qt_module *module, uint32_t function)
{
    return function < module->function_count ? module->functions[function].name : "?";
}

static void print_methods(const struct qt_module *module, const struct jl_type_info *info,
                          const struct qt_actor *actor, FILE *out)
{
    fputs(info->method_count > 0 ? " { " : " {", out);
    for (uint32_t i = 0; i < info->method_count; i++) {
        fprintf(out, "%s%s: ", i > 0 ? ", " : "", info->methods[i].name);
        qt_print_type(module->types, info->methods[i].fn, out);
        if (actor != NULL && i < actor->method_count)
            fprintf(out, " = @%s", name_of(module, actor->methods[i]));
    }
    fputs(info->method_count > 0 ? " }\n" : "}\n", out);
}

static bool print_declarations(const struct qt_module *module, FILE *out)
{
    bool any = false;
    for (jl_type t = JL_SIMPLE_KINDS; t < module->types->count; t++) {
        const struct jl_type_info *info = jl_info(module->types, t);
        if (info->kind == JL_STRUCT) {
            fprintf(out, "struct %s", info->name);
            print_fields(module, info, out);
            fputc('\n', out);
        } else if (info->kind == JL_IFACE) {
            fprintf(out, "interface %s", info->name);
            print_methods(module, info, NULL, out);
        } else if (info->kind == JL_ACTOR) {
            const struct qt_actor *actor = NULL;
            for (uint32_t i = 0; i < module->actor_count; i++)
                if (module->actors[i].type == t) actor = &module->actors[i];
            fprintf(out, "actor %s", info->name);
            print_fields(module, info, out);
            if (actor != NULL) fprintf(out, " init @%s", name_of(module, actor->init));
            print_methods(module, info, actor, out);
        } else {
            continue;
        }
        any = true;
    }
    return any;
}

void qt_print(const struct qt_module *module, bool places, FILE *out)
{
    fputs("module ", out);
    print_text(module->source, strlen(module->source), out);
    fprintf(out, " profile %s level %s interval %u\n", qt_profile_names[module->profile & 3],
            qt_level_names[module->level % 3], module->interval);
    fputc('\n', out);
    bool any = print_declarations(module, out);
    for (uint32_t i = 0; i < module->error_count; i++, any = true)
        fprintf(out, "error %s %" PRId64 "\n", module->errors[i].name, module->errors[i].number);
    if (module->main > 0 && module->main <= module->function_count) {
        fprintf(out, "main @%s\n", module->functions[module->main - 1].name);
        any = true;
    }
    for (uint32_t i = 0; i < module->function_count; i++) {
        if (any) fputc('\n', out);
        any = true;
        qt_print_function(module, i, places, out);
    }
}

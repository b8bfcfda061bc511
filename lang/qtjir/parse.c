/* SPDX-License-Identifier: MIT */
/* From text to modules: the head, declarations and functions. Any bytes may come. */
#include "qtjir/read.h"

#include <string.h>

enum { TYPE_DEPTH_MAX = 60 };

static jl_type read_type(struct qt_reader *p, unsigned depth);

static jl_type no_type(struct qt_reader *p, const char *what)
{
    qt_wrong(p, "Q1008", "%s", what);
    return JL_BAD;
}

static jl_type read_fn(struct qt_reader *p, unsigned depth)
{
    jl_type  params[QT_PARAMS_MAX];
    uint32_t count = 0;
    if (!qt_need_sign(p, '(')) return JL_BAD;
    while (!qt_at_sign(p, ')')) {
        if (count == QT_PARAMS_MAX) return no_type(p, "the function has too many parameters");
        params[count] = read_type(p, depth + 1);
        if (params[count++] == JL_BAD) return JL_BAD;
        if (!qt_take_sign(p, ',')) break;
    }
    if (!qt_need_sign(p, ')') || !qt_need_sign(p, '>')) return JL_BAD;
    jl_type result = read_type(p, depth + 1);
    return result == JL_BAD ? result : jl_fn_of(p->module->types, params, count, result);
}

/* A type by its word: of this module, of the host, or a simple one. */
static jl_type named_type(struct qt_reader *p, const char *word)
{
    struct jl_types *types = p->module->types;
    uint32_t         declared = qt_map_get(&p->names, 0, word);
    if (declared != 0) return declared;
    for (jl_type t = JL_VOID; t < types->count; t++) {
        const struct jl_type_info *info = jl_info(types, t);
        if ((t < JL_SIMPLE_KINDS || info->kind == JL_HOST) && strcmp(info->name, word) == 0)
            return t;
    }
    qt_wrong(p, "Q1008", "there is no type %.60s", word);
    return JL_BAD;
}

static bool begins_type(const struct qt_reader *p)
{
    return p->token == QT_T_WORD || qt_at_sign(p, '[') || qt_at_sign(p, '!');
}

static jl_type read_type(struct qt_reader *p, unsigned depth)
{
    struct jl_types *types = p->module->types;
    jl_type          of;
    if (depth > TYPE_DEPTH_MAX || types->count > QT_TYPES_MAX)
        return no_type(p, "there are too many types");
    if (qt_take_sign(p, '[')) {
        if (!qt_need_sign(p, ']')) return JL_BAD;
        of = read_type(p, depth + 1);
        return of == JL_BAD ? of : jl_slice_of(types, of);
    }
    if (qt_take_sign(p, '!')) {
        of = read_type(p, depth + 1);
        return of == JL_BAD ? of : jl_fallible_of(types, of);
    }
    const char *word = qt_need(p, QT_T_WORD, "a type");
    if (word == NULL) return JL_BAD;
    if (strcmp(word, "fn") == 0 && qt_at_sign(p, '(')) return read_fn(p, depth);
    bool task = strcmp(word, "task") == 0, channel = strcmp(word, "channel") == 0;
    bool start = strcmp(word, "start") == 0;
    if ((task || channel || start) && begins_type(p) && !qt_at_word(p, "tenancy")) {
        of = read_type(p, depth + 1);
        if (of == JL_BAD) return of;
        if (start && jl_kind_of(types, of) != JL_ACTOR) return no_type(p, "here must be an actor");
        return task      ? jl_task_of(types, of)
               : channel ? jl_channel_of(types, of)
                         : jl_start_of(types, of);
    }
    return named_type(p, word);
}

jl_type qt_read_type(struct qt_reader *p) { return read_type(p, 0); }

static bool read_head(struct qt_reader *p)
{
    struct qt_module *m = p->module;
    uint32_t          level, profile;
    qt_skip_lines(p);
    if (!qt_take_word(p, "module")) return qt_wrong(p, "Q1002", "the text begins with `module`");
    m->source = qt_need(p, QT_T_TEXT, "the source's path in quotes");
    if (m->source == NULL) return false;
    if (!qt_take_word(p, "profile")) return qt_wrong(p, "Q1002", "here must stand `profile`");
    if (!qt_read_choice(p, qt_profile_names, 4, "a profile", &profile)) return false;
    if (!qt_take_word(p, "level")) return qt_wrong(p, "Q1002", "here must stand `level`");
    if (!qt_read_choice(p, qt_level_names, 3, "High, Mid or Low", &level)) return false;
    if (!qt_take_word(p, "interval")) return qt_wrong(p, "Q1002", "here must stand `interval`");
    m->profile = (int)profile;
    m->level = (enum qt_level)level;
    return qt_read_u32(p, &m->interval);
}

static bool read_params(struct qt_reader *p)
{
    bool is_new;
    if (!qt_need_sign(p, '(')) return false;
    while (!qt_at_sign(p, ')')) {
        const char *name = qt_need(p, QT_T_VALUE, "a parameter");
        if (name == NULL || !qt_need_sign(p, ':')) return false;
        jl_type type = qt_read_type(p);
        if (type == JL_BAD) return false;
        if (p->module->functions[p->function].param_count == QT_PARAMS_MAX)
            return qt_wrong(p, "Q1009", "the function has too many parameters");
        uint32_t *slot = qt_map_at(p->module->arena, &p->names, 2 + p->function, name, &is_new);
        if (!is_new || !qt_is_word(name, false))
            return qt_wrong(p, "Q1005", "%%%.60s is no name for a parameter", name);
        *slot = qt_add_param(p->module, p->function, name, type) + 1;
        p->nodes++;
        if (!qt_take_sign(p, ',')) break;
    }
    return qt_need_sign(p, ')');
}

static bool read_function_head(struct qt_reader *p, bool is_async)
{
    bool        is_new;
    uint32_t    tenancy;
    const char *name = qt_need(p, QT_T_AT, "the function's name");
    if (name == NULL) return false;
    if (p->module->function_count >= QT_FUNCTIONS_MAX)
        return qt_wrong(p, "Q1009", "there are too many functions");
    uint32_t *slot = qt_map_at(p->module->arena, &p->names, 1, name, &is_new);
    if (!is_new) return qt_wrong(p, "Q1005", "there are two functions @%.60s", name);
    p->function = qt_add_function(p->module, name);
    JL_PUSH(p->module->arena, p->starts, p->start_count, p->start_room) = p->begin;
    *slot = p->function + 1;
    if (!read_params(p) || !qt_need_sign(p, '>')) return false;
    struct qt_function *f = &p->module->functions[p->function];
    f->is_async = is_async;
    f->fails = qt_take_sign(p, '!');
    f->result = qt_read_type(p);
    if (f->result == JL_BAD) return false;
    if (!qt_take_word(p, "tenancy")) return qt_wrong(p, "Q1002", "here must stand `tenancy`");
    if (!qt_read_choice(p, qt_tenancy_names, 4, "a tenancy", &tenancy)) return false;
    f->tenancy = (uint8_t)tenancy;
    for (uint32_t i = 0; i < f->param_count; i++) f->nodes[i].tenancy = f->tenancy;
    if (qt_take_word(p, "captures") && !qt_read_u32(p, &f->capture_count)) return false;
    if (qt_take_word(p, "of")) {
        f->actor = qt_read_type(p);
        if (f->actor == JL_BAD) return false;
    }
    return qt_need_sign(p, '{');
}

/* "bb3:" */
static bool read_label(struct qt_reader *p)
{
    uint32_t block = qt_add_block(p->module, p->function);
    char     label[16];
    snprintf(label, sizeof label, "bb%u", block);
    if (strcmp(p->word, label) != 0) return qt_wrong(p, "Q1006", "the next block is %s", label);
    qt_next(p);
    return qt_need_sign(p, ':');
}

static void resolve_values(struct qt_reader *p)
{
    struct qt_function *f = &p->module->functions[p->function];
    for (uint32_t i = 0; i < p->value_count; i++) {
        const struct qt_fix *fix = &p->values[i];
        struct qt_operand   *o = &f->nodes[fix->node].operands[fix->operand];
        p->begin = p->end = fix->begin;
        if (o->kind == QT_BLOCK) {
            if (o->index >= f->block_count)
                qt_wrong(p, "Q1004", "there is no block bb%u", o->index);
            continue;
        }
        uint32_t found = fix->name != NULL ? qt_map_get(&p->names, 2 + p->function, fix->name)
                         : fix->number <= p->numbered_count ? p->numbered[fix->number - 1]
                                                            : 0;
        if (found == 0)
            qt_wrong(p, "Q1004", "there is no such value in @%.60s", f->name);
        else
            o->index = (found - 1) & 0x3fffffffu;
    }
    p->value_count = 0;
}

static bool read_function(struct qt_reader *p, bool is_async)
{
    p->place_line = 0;
    if (!read_function_head(p, is_async)) return false;
    p->numbered_count = p->value_count = 0;
    qt_skip_line(p);
    p->module->functions[p->function].line = p->place_line;
    bool right = true;
    for (qt_skip_lines(p); !qt_at_sign(p, '}'); qt_skip_lines(p)) {
        uint32_t blocks = p->module->functions[p->function].block_count;
        if (p->token == QT_T_END) return qt_wrong(p, "Q1001", "here must stand `}`");
        bool label = p->token == QT_T_WORD && strncmp(p->word, "bb", 2) == 0;
        bool line = label        ? read_label(p)
                    : blocks > 0 ? qt_read_node(p, blocks - 1)
                                 : qt_wrong(p, "Q1006", "the function begins with the label bb0");
        if (line && p->token != QT_T_LINE && !qt_at_sign(p, '}'))
            line = qt_wrong(p, "Q1001", "here the line must end");
        if (!line && p->diagnostics->errors >= JL_DIAGNOSTICS_MAX) return false;
        if (!line) qt_skip_line(p);
        right = right && line;
    }
    qt_next(p);
    if (right) resolve_values(p);
    return right;
}

static bool read_item(struct qt_reader *p)
{
    bool known, is_async = qt_take_word(p, "async");
    if (qt_take_word(p, "func")) return read_function(p, is_async);
    bool right = !is_async && qt_read_declaration(p, &known);
    if (!is_async && known) return right;
    return qt_wrong(p, "Q1001",
                    "here must stand `func`, `struct`, `actor`, `interface`, `error` or "
                    "`main`");
}

bool qt_parse(struct qt_module *module, const struct jl_source *source,
              struct jl_diagnostics *diagnostics)
{
    struct qt_reader p = {.module = module, .source = source, .diagnostics = diagnostics};
    uint32_t         before = diagnostics->errors;
    qt_next(&p);
    if (read_head(&p)) {
        qt_declare_types(&p);
        for (qt_skip_lines(&p); p.token != QT_T_END; qt_skip_lines(&p)) {
            if (!read_item(&p)) qt_skip_line(&p);
            if (diagnostics->errors - before >= JL_DIAGNOSTICS_MAX) break;
            if (p.token != QT_T_LINE && p.token != QT_T_END) {
                qt_wrong(&p, "Q1001", "here the line must end");
                qt_skip_line(&p);
            }
        }
        if (diagnostics->errors == before) qt_finish_functions(&p);
    }
    return diagnostics->errors == before;
}

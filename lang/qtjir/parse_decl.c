/* SPDX-License-Identifier: MIT */
/* Declarations of the text form, and what is found once all functions are known. */
#include "qtjir/read.h"

#include <string.h>

enum { FILLED = UINT32_MAX - 1, NOWHERE = UINT32_MAX, NAMED_MAX = 1000, FIELDS_MAX = 20000 };

static const char *const declaring[] = {"struct ", "actor ", "interface "};

/* Types may be used before they are declared, so their names are taken first. */
void qt_declare_types(struct qt_reader *p)
{
    const char *text = p->source->text, *end = text + p->source->length;
    bool        is_new;
    uint32_t    count = 0;
    while (text < end && count < NAMED_MAX) {
        for (unsigned k = 0; k < 3; k++) {
            size_t length = strlen(declaring[k]);
            if ((size_t)(end - text) <= length || memcmp(text, declaring[k], length) != 0) continue;
            const char *from = text + length, *to = from;
            while (to < end && qt_is_word_byte((unsigned char)*to)) to++;
            const char *name = jl_intern(p->module->names, from, (size_t)(to - from));
            uint32_t   *slot = qt_map_at(p->module->arena, &p->names, 0, name, &is_new);
            if (is_new && *name != 0) {
                *slot = jl_named(p->module->types,
                                 k == 0   ? JL_STRUCT
                                 : k == 1 ? JL_ACTOR
                                          : JL_IFACE,
                                 name);
                count++;
            }
        }
        const char *line = memchr(text, '\n', (size_t)(end - text));
        text = line == NULL ? end : line + 1;
    }
}

static bool read_fields(struct qt_reader *p, jl_type type)
{
    struct jl_field *fields = NULL;
    uint32_t         count = 0, room = 0;
    if (!qt_need_sign(p, '{')) return false;
    while (!qt_at_sign(p, '}')) {
        const char *name = qt_need(p, QT_T_WORD, "a field");
        if (name == NULL || !qt_need_sign(p, ':')) return false;
        jl_type of = qt_read_type(p);
        if (of == JL_BAD) return false;
        if (++p->fields > FIELDS_MAX) return qt_wrong(p, "Q1009", "there are too many fields");
        struct jl_field *field = &JL_PUSH(p->module->arena, fields, count, room);
        field->name = name;
        field->type = of;
        if (!qt_take_sign(p, ',')) break;
    }
    p->module->types->infos[type].fields = fields;
    p->module->types->infos[type].field_count = count;
    return qt_need_sign(p, '}');
}

static bool read_function_name(struct qt_reader *p, uint32_t node, uint32_t operand)
{
    uint32_t    begin = p->begin;
    const char *name = qt_need(p, QT_T_AT, "a function");
    if (name == NULL) return false;
    JL_PUSH(p->module->arena, p->fixes, p->fix_count, p->fix_room) =
        (struct qt_fix){NOWHERE, node, operand, name, 0, begin};
    return true;
}

static bool read_methods(struct qt_reader *p, jl_type type, uint32_t actor)
{
    struct jl_method_type *methods = NULL;
    uint32_t               count = 0, room = 0;
    if (!qt_need_sign(p, '{')) return false;
    while (!qt_at_sign(p, '}')) {
        const char *name = qt_need(p, QT_T_WORD, "a method");
        if (name == NULL || !qt_need_sign(p, ':')) return false;
        jl_type fn = qt_read_type(p);
        if (fn == JL_BAD) return false;
        if (++p->fields > FIELDS_MAX) return qt_wrong(p, "Q1009", "there are too many methods");
        struct jl_method_type *method = &JL_PUSH(p->module->arena, methods, count, room);
        method->name = name;
        method->fn = fn;
        if (actor != NOWHERE && (!qt_need_sign(p, '=') || !read_function_name(p, actor, count - 1)))
            return false;
        if (!qt_take_sign(p, ',')) break;
    }
    p->module->types->infos[type].methods = methods;
    p->module->types->infos[type].method_count = count;
    if (actor != NOWHERE) {
        p->module->actors[actor].method_count = count;
        p->module->actors[actor].methods =
            jl_new(p->module->arena, ((size_t)count + 1) * sizeof(uint32_t));
    }
    return qt_need_sign(p, '}');
}

static bool read_actor(struct qt_reader *p, jl_type type)
{
    struct qt_module *m = p->module;
    if (!read_fields(p, type)) return false;
    if (!qt_take_word(p, "init")) return qt_wrong(p, "Q1002", "here must stand `init`");
    struct qt_actor *a = &JL_PUSH(m->arena, m->actors, m->actor_count, m->actor_room);
    a->type = type;
    if (!read_function_name(p, m->actor_count - 1, NOWHERE)) return false;
    return read_methods(p, type, m->actor_count - 1);
}

static bool read_type_declaration(struct qt_reader *p, enum jl_kind kind)
{
    bool        is_new;
    const char *name = qt_need(p, QT_T_WORD, "a name");
    if (name == NULL) return false;
    jl_type type = qt_map_get(&p->names, 0, name);
    if (type == 0 || jl_kind_of(p->module->types, type) != kind)
        return qt_wrong(p, "Q1005", "the type %.60s cannot be declared here", name);
    qt_map_at(p->module->arena, &p->names, (uint32_t)FILLED, name, &is_new);
    if (!is_new) return qt_wrong(p, "Q1005", "there are two types %.60s", name);
    if (kind == JL_STRUCT) return read_fields(p, type);
    return kind == JL_IFACE ? read_methods(p, type, NOWHERE) : read_actor(p, type);
}

static bool read_error(struct qt_reader *p)
{
    int64_t     number;
    const char *name = qt_need(p, QT_T_WORD, "the error's name");
    if (name == NULL || !qt_read_number(p, JL_I64, &number)) return false;
    uint32_t count = p->module->error_count;
    if (count == 1000) return qt_wrong(p, "Q1009", "there are too many errors");
    qt_add_error(p->module, name, number);
    return p->module->error_count > count || qt_wrong(p, "Q1005", "the error has a name already");
}

bool qt_read_declaration(struct qt_reader *p, bool *known)
{
    *known = true;
    if (qt_take_word(p, "struct")) return read_type_declaration(p, JL_STRUCT);
    if (qt_take_word(p, "actor")) return read_type_declaration(p, JL_ACTOR);
    if (qt_take_word(p, "interface")) return read_type_declaration(p, JL_IFACE);
    if (qt_take_word(p, "error")) return read_error(p);
    if (qt_take_word(p, "main")) return read_function_name(p, NOWHERE, 0);
    *known = false;
    return false;
}

static void set_function(struct qt_reader *p, const struct qt_fix *fix)
{
    struct qt_module *m = p->module;
    uint32_t          found = qt_map_get(&p->names, 1, fix->name);
    p->begin = p->end = fix->begin;
    if (found == 0)
        qt_wrong(p, "Q1004", "there is no function @%.60s", fix->name);
    else if (fix->function != NOWHERE)
        m->functions[fix->function].nodes[fix->node].operands[fix->operand].index =
            (found - 1) & 0x3fffffffu;
    else if (fix->node == NOWHERE)
        m->main = found;
    else if (fix->operand == NOWHERE)
        m->actors[fix->node].init = found - 1;
    else
        m->actors[fix->node].methods[fix->operand] = found - 1;
}

static int64_t field_index(const struct qt_module *m, jl_type owner, const char *name)
{
    const struct jl_type_info *info = jl_info(m->types, owner);
    if (owner == JL_BUDGET) {
        for (int64_t i = 0; i < 5; i++)
            if (strcmp(qt_budget_fields[i], name) == 0) return i;
        return -1;
    }
    for (uint32_t i = 0; i < info->field_count; i++)
        if (info->fields[i].name == name) return i;
    return -1;
}

/* "Counter.get" */
static int64_t method_index(const struct qt_module *m, jl_type owner, const char *name)
{
    const struct jl_type_info *info = jl_info(m->types, owner);
    const char                *dot = strrchr(name, '.');
    if (dot == NULL || info->name == NULL || strlen(info->name) != (size_t)(dot - name) ||
        memcmp(info->name, name, (size_t)(dot - name)) != 0)
        return -1;
    for (uint32_t i = 0; i < info->method_count; i++)
        if (strcmp(info->methods[i].name, dot + 1) == 0) return i;
    return -1;
}

static void find_member(struct qt_reader *p, struct qt_function *f, struct qt_node *n)
{
    bool    state = n->op == QT_State_Get || n->op == QT_State_Set;
    jl_type owner = JL_BAD;
    if (state)
        owner = f->actor;
    else if (n->operand_count > 0 && n->operands[0].kind == QT_NODE)
        owner = f->nodes[n->operands[0].index].type;
    bool method = n->op == QT_Actor_Send || n->op == QT_Actor_Call || n->op == QT_Interface_Call;
    n->literal =
        method ? method_index(p->module, owner, n->text) : field_index(p->module, owner, n->text);
    n->text = NULL;
}

static void find_type(struct qt_reader *p, uint32_t function, uint32_t node)
{
    struct qt_function *f = &p->module->functions[function];
    struct qt_node     *n = &f->nodes[node];
    bool                assigned = n->scope != 0;
    n->scope = 0;
    if (n->text != NULL && n->op != QT_Str) find_member(p, f, n);
    if (qt_ops[n->op].result != QT_R_WRITTEN) {
        n->type = qt_rule_type(p->module, function, node, NULL);
        if (n->type == JL_BAD && !assigned) n->type = JL_VOID; /* the verifier says why */
    }
    if (assigned == qt_has_value(n)) return;
    if (assigned)
        qt_wrong(p, "Q1006", "@%.60s: %s has no value", f->name, qt_ops[n->op].name);
    else
        qt_wrong(p, "Q1006", "@%.60s: the value of %s has no name", f->name, qt_ops[n->op].name);
}

/* Types are found in an order in which definitions come before uses, if there is one. */
static void find_types(struct qt_reader *p, uint32_t function)
{
    struct qt_function *f = &p->module->functions[function];
    struct qt_flow      flow;
    if (f->block_count == 0 || !qt_flow_make(f, &flow)) return;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < (pass == 0 ? flow.reached : flow.count); i++) {
            uint32_t block = pass == 0 ? flow.sequence[i] : i;
            if (pass == 1 && flow.order[block] != UINT32_MAX) continue;
            for (uint32_t k = 0; k < f->blocks[block].count; k++)
                find_type(p, function, f->blocks[block].nodes[k]);
        }
    qt_flow_free(&flow);
}

void qt_finish_functions(struct qt_reader *p)
{
    for (uint32_t i = 0; i < p->fix_count; i++) set_function(p, &p->fixes[i]);
    struct jl_types *types = p->module->types;
    for (jl_type t = JL_SIMPLE_KINDS; t < types->count; t++) {
        enum jl_kind kind = jl_kind_of(types, t);
        if ((kind == JL_STRUCT || kind == JL_ACTOR) && !jl_layout(types, t))
            qt_wrong(p, "Q1008", "the type %.60s is too large or contains itself",
                     jl_info(types, t)->name);
    }
    for (uint32_t i = 0; i < p->module->function_count; i++) {
        p->begin = p->end = p->starts[i];
        find_types(p, i);
    }
}

/* SPDX-License-Identifier: MIT */
/* The table of opcodes, and how modules are made. */
#include "qtjir/inner.h"

#include <string.h>

#define QT_ROW(name, least, most, result, fixed, levels, flags)                                    \
    {#name, least, most, result, fixed, levels, flags},
const struct qt_op_info qt_ops[QT_OP_COUNT] = {QT_OPS(QT_ROW)};
#undef QT_ROW

const char *const qt_level_names[3] = {"High", "Mid", "Low"};
const char *const qt_tenancy_names[4] = {"CPU_Serial", "CPU_Parallel", "NPU_Tensor", "QPU_Quantum"};
const char *const qt_profile_names[4] = {"core", "service", "cluster", "sovereign"};
const char *const qt_budget_fields[5] = {"ops", "memory", "spawn_count", "channel_ops", "syscalls"};

void qt_module_init(struct qt_module *module, struct jl_arena *arena, struct jl_types *types,
                    struct jl_names *names, const struct jl_host_table *host)
{
    memset(module, 0, sizeof *module);
    module->arena = arena;
    module->types = types;
    module->names = names;
    module->host = host;
    module->source = "";
    module->interval = 1024;
    module->task_types = jl_new(arena, sizeof *module->task_types);
}

uint32_t qt_add_function(struct qt_module *module, const char *name)
{
    struct qt_function *f =
        &JL_PUSH(module->arena, module->functions, module->function_count, module->function_room);
    f->name = name;
    f->result = JL_VOID;
    return module->function_count - 1;
}

/* Room for one more: arrays without a field for their room have 4, 8, 16 ... */
static void *with_room(struct qt_module *module, void *items, uint32_t count, size_t bytes)
{
    if (count != 0 && (count < 4 || (count & (count - 1)) != 0)) return items;
    void *more = jl_new(module->arena, (count == 0 ? 4 : 2 * (size_t)count) * bytes);
    if (count > 0) memcpy(more, items, count * bytes);
    return more;
}

uint32_t qt_add_param(struct qt_module *module, uint32_t function, const char *name, jl_type type)
{
    struct qt_function *f = &module->functions[function];
    uint32_t            index = f->param_count;
    f->params = with_room(module, f->params, index, sizeof *f->params);
    f->param_names = with_room(module, f->param_names, index, sizeof *f->param_names);
    f->params[index] = type;
    f->param_count++;
    struct qt_node *n = &JL_PUSH(module->arena, f->nodes, f->node_count, f->node_room);
    n->op = QT_Param;
    n->type = type;
    n->literal = index;
    n->tenancy = f->tenancy;
    uint32_t node = f->node_count - 1;
    qt_name_node(module, function, node, name);
    f->param_names[index] = f->nodes[node].name;
    return node;
}

uint32_t qt_add_block(struct qt_module *module, uint32_t function)
{
    struct qt_function *f = &module->functions[function];
    (void)JL_PUSH(module->arena, f->blocks, f->block_count, f->block_room);
    return f->block_count - 1;
}

uint8_t qt_usual_tenancy(const struct qt_function *function, enum qt_op op)
{
    return qt_may_cross(op) ? (uint8_t)QT_CPU_PARALLEL : function->tenancy;
}

uint32_t qt_add_node(struct qt_module *module, uint32_t function, uint32_t block, enum qt_op op,
                     jl_type type)
{
    struct qt_function *f = &module->functions[function];
    struct qt_block    *b = &f->blocks[block];
    struct qt_node     *n = &JL_PUSH(module->arena, f->nodes, f->node_count, f->node_room);
    n->op = (uint8_t)op;
    n->type = type;
    n->tenancy = qt_usual_tenancy(f, op);
    JL_PUSH(module->arena, b->nodes, b->count, b->room) = f->node_count - 1;
    return f->node_count - 1;
}

void qt_add_operand(struct qt_module *module, uint32_t function, uint32_t node,
                    enum qt_operand_kind kind, uint32_t index)
{
    struct qt_node *n = &module->functions[function].nodes[node];
    uint32_t        count = n->operand_count;
    n->operands = with_room(module, n->operands, count, sizeof *n->operands);
    n->operands[count].kind = (uint32_t)kind & 3u;
    n->operands[count].index = index & 0x3fffffffu;
    n->operand_count++;
}

/* A table with open addressing: from a scope and an interned name to a number. */
struct qt_map_slot {
    const char *name; /* NULL: empty */
    uint32_t    scope, value;
};

static struct qt_map_slot *map_slot(const struct qt_map *map, uint32_t scope, const char *name)
{
    uint64_t hash = (((uint64_t)(uintptr_t)name >> 4) + (uint64_t)scope * 0xc2b2ae3d27d4eb4fu) *
                    0x9e3779b97f4a7c15u;
    for (uint32_t i = (uint32_t)(hash >> 32);; i++) {
        struct qt_map_slot *s = &map->slots[i & (map->room - 1)];
        if (s->name == NULL || (s->name == name && s->scope == scope)) return s;
    }
}

uint32_t *qt_map_at(struct jl_arena *arena, struct qt_map *map, uint32_t scope, const char *name,
                    bool *is_new)
{
    if (2 * map->count >= map->room) {
        struct qt_map more = {.room = map->room == 0 ? 64 : 2 * map->room, .count = map->count};
        more.slots = jl_new(arena, more.room * sizeof *more.slots);
        for (uint32_t i = 0; i < map->room; i++)
            if (map->slots[i].name != NULL)
                *map_slot(&more, map->slots[i].scope, map->slots[i].name) = map->slots[i];
        *map = more;
    }
    struct qt_map_slot *s = map_slot(map, scope, name);
    *is_new = s->name == NULL;
    if (s->name == NULL) {
        *s = (struct qt_map_slot){name, scope, 0};
        map->count++;
    }
    return &s->value;
}

uint32_t qt_map_get(const struct qt_map *map, uint32_t scope, const char *name)
{
    if (map->room == 0) return 0;
    const struct qt_map_slot *s = map_slot(map, scope, name);
    return s->name == NULL ? 0 : s->value;
}

void qt_name_node(struct qt_module *module, uint32_t function, uint32_t node, const char *name)
{
    if (module->node_names == NULL)
        module->node_names = jl_new(module->arena, sizeof *module->node_names);
    const char *base = jl_intern(module->names, name, strlen(name)), *candidate = base;
    bool        is_new;
    qt_map_at(module->arena, module->node_names, function, candidate, &is_new);
    while (!is_new) { /* the value of `base` counts the attempts */
        uint32_t    next = ++*qt_map_at(module->arena, module->node_names, function, base, &is_new);
        const char *text = jl_format(module->arena, "%s.%u", name, next + 1);
        candidate = jl_intern(module->names, text, strlen(text));
        qt_map_at(module->arena, module->node_names, function, candidate, &is_new);
    }
    module->functions[function].nodes[node].name = candidate;
}

void qt_add_error(struct qt_module *module, const char *name, int64_t number)
{
    for (uint32_t i = 0; i < module->error_count; i++)
        if (module->errors[i].number == number) return;
    struct qt_error *e =
        &JL_PUSH(module->arena, module->errors, module->error_count, module->error_room);
    e->name = name;
    e->number = number;
}

bool qt_has_value(const struct qt_node *node)
{
    return qt_ops[node->op].result != QT_R_NONE && node->type != JL_VOID && node->type != JL_NEVER;
}

bool qt_may_cross(enum qt_op op)
{
    return op == QT_Spawn || op == QT_Task_Create || op == QT_Async_Call || op == QT_Actor_New ||
           op == QT_Actor_Send || op == QT_Actor_Call || op == QT_Supervisor_Spawn;
}

uint32_t qt_function_at(enum qt_op op)
{
    switch (op) {
    case QT_Closure_New:
    case QT_Call:
    case QT_Spawn:
    case QT_Async_Call:
    case QT_Defer_Push: return 0;
    case QT_Task_Create: return 1;
    default: return UINT32_MAX;
    }
}

uint32_t qt_blocks_at(enum qt_op op, uint32_t *count)
{
    *count = op == QT_Jump ? 1 : op == QT_Branch || op == QT_Branch_Error ? 2 : 0;
    return op == QT_Jump ? 0 : 1;
}

/* The operand kind that an opcode wants at a position. */
enum qt_operand_kind qt_kind_at(enum qt_op op, uint32_t position)
{
    uint32_t count, first = qt_blocks_at(op, &count);
    if (position == qt_function_at(op)) return QT_FUNCTION;
    return count > 0 && position >= first && position < first + count ? QT_BLOCK : QT_NODE;
}

bool qt_is_word(const char *text, bool digits_first)
{
    if (text == NULL || *text == 0) return false;
    if (!digits_first && *text >= '0' && *text <= '9') return false;
    for (const char *p = text; *p != 0; p++)
        if (!qt_is_word_byte((unsigned char)*p)) return false;
    return true;
}

bool qt_is_word_byte(unsigned char c)
{
    return c == '_' || c == '.' || c == '$' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || c >= 0x80;
}

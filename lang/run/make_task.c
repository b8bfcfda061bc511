/* SPDX-License-Identifier: MIT */
/* Register code of tasks, channels, actors and interfaces. */
#include "run/make.h"
#include "run/slow.h"

#include <string.h>

static struct slow *put(struct maker *k, uint32_t node,
                        void (*run)(struct machine *, union slot *, const struct slow *))
{
    struct slow *s = jl_run_put_slow(k, run);
    if (qt_has_value(node_at(k, node))) s->a = jl_run_slot(k, node);
    return s;
}

static void set_slots(struct maker *k, struct slow *s, uint32_t node, uint32_t first, uint32_t end)
{
    s->slots = jl_run_slots(k, node, first, end - first);
    s->count = end - first;
}

/* The value of a fallible result. */
static struct field value_field(const struct maker *k, uint32_t node)
{
    return jl_run_field(k->types, jl_info(k->types, node_at(k, node)->type)->of);
}

static bool make_nursery(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    struct slow          *s;
    switch (n->op) {
    case QT_Nursery_Begin:
    case QT_Nursery_Open:
        s = put(k, node, jl_slow_nursery_begin);
        s->c = n->operand_count > 0;
        if (s->c) s->b = slot_of(k, node, 0);
        s->d = (n->flags & QT_F_WITH_CAP) != 0;
        return true;
    case QT_Nursery_End:
    case QT_Nursery_Await: put(k, node, jl_slow_nursery_end)->b = slot_of(k, node, 0); return true;
    default: put(k, node, jl_slow_nursery_cancel)->b = slot_of(k, node, 0); return true;
    }
}

static bool make_spawn(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    bool                  create = n->op == QT_Task_Create, with = (n->flags & QT_F_WITH_CAP) != 0;
    bool                  async = n->op == QT_Async_Call || (n->flags & QT_F_ASYNC) != 0;
    uint32_t              first = create ? 3 : 1, end = n->operand_count - (with ? 1 : 0);
    uint32_t              index = operand(k, node, create ? 1 : 0);
    struct fn            *fn = &k->code->functions[index];
    struct slow          *s = put(k, node, async ? jl_slow_async : jl_slow_spawn);
    s->p = fn;
    s->flags = n->flags;
    s->b = jl_run_slot(k, create ? operand(k, node, 0) : n->scope - 1);
    for (uint32_t i = 0; i < fn->param_count; i++) s->d += fn->params[i].words;
    if (with) s->c = slot_of(k, node, end);
    set_slots(k, s, node, first, end);
    if (async) fn->result_shape = jl_shape_of(k->types, k->module->functions[index].result);
    return true;
}

static bool make_channel(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    bool                  is_new = n->op == QT_Channel_New;
    jl_type      element = jl_info(k->types, is_new ? n->type : operand_type(k, node, 0))->of;
    struct slow *s;
    switch (n->op) {
    case QT_Channel_New:
        s = put(k, node, jl_slow_channel_new);
        s->b = slot_of(k, node, 0);
        s->d = n->operand_count > 1;
        if (s->d) s->c = slot_of(k, node, 1);
        s->p = jl_shape_of(k->types, element);
        s->field = jl_run_field(k->types, element);
        return true;
    case QT_Channel_Send:
    case QT_Channel_Recv:
        s = put(k, node, n->op == QT_Channel_Send ? jl_slow_channel_send : jl_slow_channel_recv);
        s->b = slot_of(k, node, 0);
        if (n->op == QT_Channel_Send) s->c = slot_of(k, node, 1);
        s->p = jl_shape_of(k->types, element);
        s->field = jl_run_field(k->types, element);
        return true;
    default: put(k, node, jl_slow_channel_close)->b = slot_of(k, node, 0); return true;
    }
}

static const struct actor *actor_of(const struct maker *k, jl_type type)
{
    for (uint32_t i = 0; i < k->module->actor_count; i++)
        if (k->module->actors[i].type == type) return &k->code->actors[i];
    return NULL;
}

static bool make_actor(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    bool                  spawn = n->op == QT_Supervisor_Spawn, call = n->op == QT_Actor_Call;
    jl_type               type = operand_type(k, node, spawn ? 1 : 0);
    const struct actor   *actor = actor_of(k, spawn ? jl_info(k->types, type)->of : type);
    struct slow          *s;
    if (actor == NULL) return jl_run_refuse(k, "uses an actor without functions");
    s = put(k, node,
            spawn  ? jl_slow_supervisor_spawn
            : call ? jl_slow_actor_call
                   : jl_slow_actor_send);
    s->p = actor;
    if (spawn) {
        s->b = jl_run_slot(k, n->scope - 1);
        s->c = slot_of(k, node, 0);
        return true;
    }
    s->b = slot_of(k, node, 0);
    s->c = (uint32_t)n->literal;
    s->d = actor->methods[s->c]->argument_bytes;
    if (s->d > RUN_MESSAGE_MAX) return jl_run_refuse(k, "sends an actor more than 16 KiB");
    set_slots(k, s, node, 1, n->operand_count);
    if (call) s->field = value_field(k, node);
    return true;
}

/* How a type crosses to a plugin. */
static bool cross(const struct jl_types *types, jl_type type, uint8_t *kind, uint8_t *bytes)
{
    enum jl_kind k = jl_kind_of(types, type);
    jl_type      element = k == JL_SLICE ? jl_info(types, type)->of : (jl_type)JL_U8;
    if (k == JL_FALLIBLE) return cross(types, jl_info(types, type)->of, kind, bytes);
    if (type == JL_VOID) {
        *kind = JL_CROSS_VOID;
    } else if (jl_is_integer(type) || type == JL_BOOL) {
        *kind = JL_CROSS_WORD;
        *bytes = (uint8_t)(jl_size(types, type) | (jl_is_signed(type) ? 0 : JL_CROSS_UNSIGNED));
    } else if (type == JL_F64) {
        *kind = JL_CROSS_F64;
        *bytes = 8;
    } else if (type == JL_STR || (k == JL_SLICE && (jl_is_number(element) || element == JL_BOOL))) {
        *kind = JL_CROSS_SLICE;
        *bytes = (uint8_t)jl_size(types, element);
    } else {
        return false;
    }
    return true;
}

static bool set_method(struct maker *k, struct jl_method *m, const struct jl_method_type *type)
{
    const struct jl_type_info *fn = jl_info(k->types, type->fn);
    m->name = type->name;
    m->param_count = fn->param_count;
    bool right =
        fn->param_count <= 8 && cross(k->types, fn->of, &m->result.cross, &m->result.bytes);
    for (uint32_t i = 0; right && i < fn->param_count; i++)
        right = cross(k->types, fn->params[i], &m->params[i].cross, &m->params[i].bytes);
    return right || jl_run_refuse(k, "uses an interface with a type that cannot cross");
}

static bool make_interface(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    struct slow          *s;
    if (n->op == QT_Interface_Call) {
        if (n->operand_count > 9) return jl_run_refuse(k, "passes too many arguments to a plugin");
        s = put(k, node, jl_slow_interface_call);
        s->b = slot_of(k, node, 0);
        s->c = (uint32_t)n->literal;
        s->field = value_field(k, node);
        set_slots(k, s, node, 1, n->operand_count);
        return true;
    }
    const struct jl_type_info *info = jl_info(k->types, n->type);
    struct jl_interface_type  *type = jl_new(k->code->arena, sizeof *type);
    struct jl_method          *methods =
        jl_new(k->code->arena, ((size_t)info->method_count + 1) * sizeof *methods);
    *type = (struct jl_interface_type){info->name, methods, info->method_count};
    for (uint32_t i = 0; i < info->method_count; i++)
        if (!set_method(k, &methods[i], &info->methods[i])) return false;
    s = put(k, node, jl_slow_to_interface);
    s->b = slot_of(k, node, 0);
    s->p = type;
    return true;
}

bool jl_run_make_task(struct maker *k, uint32_t node)
{
    struct slow *s;
    switch (node_at(k, node)->op) {
    case QT_Nursery_Begin:
    case QT_Nursery_Open:
    case QT_Nursery_End:
    case QT_Nursery_Await:
    case QT_Nursery_Cancel: return make_nursery(k, node);
    case QT_Spawn:
    case QT_Async_Call:
    case QT_Task_Create: return make_spawn(k, node);
    case QT_Await:
    case QT_Task_Join:
        s = put(k, node, jl_slow_await);
        s->b = slot_of(k, node, 0);
        s->field = value_field(k, node);
        return true;
    case QT_Yield: put(k, node, jl_slow_yield); return true;
    case QT_Channel_New:
    case QT_Channel_Send:
    case QT_Channel_Recv:
    case QT_Channel_Close: return make_channel(k, node);
    case QT_Supervisor_New: put(k, node, jl_slow_supervisor_new); return true;
    case QT_Supervisor_Spawn:
    case QT_Actor_Send:
    case QT_Actor_Call: return make_actor(k, node);
    case QT_To_Interface:
    case QT_Interface_Call: return make_interface(k, node);
    case QT_Actor_New:
    case QT_Budget_Default: return true;
    default: return jl_run_refuse(k, "has an opcode that the interpreter does not know");
    }
}

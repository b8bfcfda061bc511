/* SPDX-License-Identifier: MIT */
/* The types of calls, tasks, actors and capabilities. */
#include "qtjir/inner.h"

static const struct qt_function *callee_of(const struct qt_rule *r)
{
    return &r->module->functions[r->node->operands[qt_function_at((enum qt_op)r->node->op)].index];
}

static jl_type result_of(const struct qt_rule *r, const struct qt_function *f)
{
    return f->fails ? jl_fallible_of(r->module->types, f->result) : f->result;
}

/* The type of a call of a function type, whose arguments begin at `first`. */
static jl_type fn_rule(struct qt_rule *r, uint32_t first, jl_type fn, const char *what)
{
    const struct jl_type_info *info = jl_info(r->module->types, fn);
    if (info->kind != JL_FN) return qt_refuse(r, "%s is no function", what);
    if (!qt_wants_all(r, first, r->node->operand_count - first, info->params, info->param_count,
                      what))
        return JL_BAD;
    return jl_info(r->module->types, fn)->of;
}

static jl_type closure_rule(struct qt_rule *r)
{
    const struct qt_function  *f = callee_of(r);
    const struct jl_type_info *info = jl_info(r->module->types, r->node->type);
    if (info->kind != JL_FN)
        return qt_refuse(r, "%s is no function type", qt_type_text(r->module, r->node->type));
    if (f->capture_count > f->param_count || f->actor != 0)
        return qt_refuse(r, "@%s cannot become a closure", f->name);
    if (!qt_wants_all(r, 1, r->node->operand_count - 1, f->params, f->capture_count, "the closure"))
        return JL_BAD;
    bool same =
        info->param_count == f->param_count - f->capture_count && info->of == result_of(r, f);
    for (uint32_t i = 0; same && i < info->param_count; i++)
        same = info->params[i] == f->params[f->capture_count + i];
    return same ? r->node->type
                : qt_refuse(r, "@%s is no %s", f->name, qt_type_text(r->module, r->node->type));
}

static jl_type defer_rule(struct qt_rule *r)
{
    if (r->node->op == QT_Defer_Pop)
        return r->node->literal > 0 ? JL_VOID : qt_refuse(r, "it must pop at least one");
    const struct qt_function *f = callee_of(r);
    if (f->result != JL_VOID || f->fails || (f->actor != 0 && f->actor != r->function->actor))
        return qt_refuse(r, "@%s cannot be a defer", f->name);
    return qt_wants_all(r, 1, r->node->operand_count - 1, f->params, f->param_count, "the defer")
               ? JL_VOID
               : JL_BAD;
}

static jl_type host_rule(struct qt_rule *r)
{
    const struct jl_host_table *host = r->module->host;
    if (host == NULL || r->node->literal < 0 || r->node->literal >= host->count)
        return qt_refuse(r, "the host has no such name");
    const struct jl_host_entry *entry = &host->entries[r->node->literal];
    if (r->node->op == QT_Host_Value)
        return entry->kind == JL_HOST_VALUE ? entry->type
                                            : qt_refuse(r, "%s is no value", entry->name);
    if (entry->kind != JL_HOST_FUNCTION) return qt_refuse(r, "%s is no function", entry->name);
    uint32_t first = entry->receiver != 0 ? 1 : 0;
    if (r->node->operand_count < first) return qt_refuse(r, "the receiver is missing");
    if (first == 1 && !qt_wants(r, 0, entry->receiver)) return JL_BAD;
    return fn_rule(r, first, entry->fn, entry->name);
}

/* A method of an actor or an interface; the sentence says if there is none. */
static jl_type method_of(struct qt_rule *r, enum jl_kind kind)
{
    jl_type                    first = qt_operand_type(r, 0);
    const struct jl_type_info *info = jl_info(r->module->types, first);
    if (info->kind != kind)
        return qt_refuse(r, "%s has no methods here", qt_type_text(r->module, first));
    if (r->node->literal < 0 || r->node->literal >= info->method_count)
        return qt_refuse(r, "%s has no such method", info->name);
    return info->methods[r->node->literal].fn;
}

jl_type qt_rule_call(struct qt_rule *r)
{
    struct jl_types          *types = r->module->types;
    const struct qt_function *f;
    jl_type                   fn;
    switch (r->node->op) {
    case QT_Call:
        f = callee_of(r);
        if (f->actor != 0 && f->actor != r->function->actor)
            return qt_refuse(r, "@%s belongs to an actor", f->name);
        if (!qt_wants_all(r, 1, r->node->operand_count - 1, f->params, f->param_count, f->name))
            return JL_BAD;
        return result_of(r, f);
    case QT_Call_Value: return fn_rule(r, 1, qt_operand_type(r, 0), "the closure");
    case QT_Closure_New: return closure_rule(r);
    case QT_Defer_Push:
    case QT_Defer_Pop: return defer_rule(r);
    case QT_To_Interface:
        if (jl_kind_of(types, r->node->type) != JL_IFACE)
            return qt_refuse(r, "%s is no interface", qt_type_text(r->module, r->node->type));
        if (jl_kind_of(types, qt_operand_type(r, 0)) != JL_HOST)
            return qt_refuse(r, "operand 1 is no handle of the host");
        return r->node->type;
    case QT_Interface_Call:
        fn = method_of(r, JL_IFACE);
        if (fn != JL_BAD) fn = fn_rule(r, 1, fn, "the method");
        return fn == JL_BAD ? fn : jl_fallible_of(types, fn);
    default: return host_rule(r);
    }
}

/* Spawn, Async_Call, Task_Create: the arguments begin at `first`. */
static jl_type spawn_rule(struct qt_rule *r, uint32_t first, bool async)
{
    const struct qt_function *f = callee_of(r);
    uint32_t                  count = r->node->operand_count;
    if (f->actor != 0) return qt_refuse(r, "@%s belongs to an actor", f->name);
    if (r->node->flags & QT_F_WITH_CAP) {
        if (count <= first) return qt_refuse(r, "the capability is missing");
        if (!qt_wants(r, --count, JL_CAP_SPAWN)) return JL_BAD;
    }
    if (!qt_wants_all(r, first, count - first, f->params, f->param_count, f->name)) return JL_BAD;
    if (async && (r->node->flags & (QT_F_TRY | QT_F_WITH_CAP)) != 0)
        return qt_refuse(r, "an async call takes no `try` and no capability");
    if (async && !qt_may_travel(r->module, f->result))
        return qt_refuse(r, "%s cannot go to another task", qt_type_text(r->module, f->result));
    if (async) return jl_task_of(r->module->types, f->result);
    if (r->node->flags & QT_F_TRY) return jl_fallible_of(r->module->types, JL_VOID);
    return jl_task_of(r->module->types, JL_VOID);
}

static jl_type create_rule(struct qt_rule *r)
{
    if (!qt_wants(r, 0, JL_NURSERY) || !qt_wants(r, 2, JL_BUDGET)) return JL_BAD;
    if (r->function->nodes[r->node->operands[2].index].op != QT_Budget_Default)
        return qt_refuse(r, "the budget must be Budget_Default");
    return spawn_rule(r, 3, (r->node->flags & QT_F_ASYNC) != 0);
}

static jl_type channel_rule(struct qt_rule *r)
{
    struct jl_types *types = r->module->types;
    jl_type channel = r->node->op == QT_Channel_New ? r->node->type : qt_operand_type(r, 0);
    if (jl_kind_of(types, channel) != JL_CHANNEL)
        return qt_refuse(r, "%s is no channel", qt_type_text(r->module, channel));
    jl_type element = jl_info(types, channel)->of;
    switch (r->node->op) {
    case QT_Channel_New:
        if (!qt_is_storable(types, element) || !qt_may_travel(r->module, element))
            return qt_refuse(r, "a channel cannot carry %s", qt_type_text(r->module, element));
        if (!qt_wants(r, 0, JL_I64)) return JL_BAD;
        if (r->node->operand_count > 1 && !qt_wants(r, 1, JL_CAP_CHANNEL)) return JL_BAD;
        return channel;
    case QT_Channel_Send:
        return qt_wants(r, 1, element) ? jl_fallible_of(types, JL_VOID) : (jl_type)JL_BAD;
    case QT_Channel_Recv: return jl_fallible_of(types, element);
    default: return JL_VOID; /* Channel_Close */
    }
}

jl_type qt_rule_task(struct qt_rule *r)
{
    struct jl_types *types = r->module->types;
    jl_type          first = qt_operand_type(r, 0);
    switch (r->node->op) {
    case QT_Nursery_Begin:
    case QT_Nursery_Open:
        if (r->node->operand_count > 0 && !qt_wants(r, 0, JL_CAP_SPAWN)) return JL_BAD;
        if (r->node->operand_count == 0 && (r->node->flags & QT_F_WITH_CAP) != 0)
            return qt_refuse(r, "the capability is missing");
        return JL_NURSERY;
    case QT_Nursery_End:
    case QT_Nursery_Await:
        return qt_wants(r, 0, JL_NURSERY) ? jl_fallible_of(types, JL_VOID) : (jl_type)JL_BAD;
    case QT_Nursery_Cancel: return qt_wants(r, 0, JL_NURSERY) ? JL_VOID : JL_BAD;
    case QT_Spawn: return spawn_rule(r, 1, false);
    case QT_Async_Call: return spawn_rule(r, 1, true);
    case QT_Task_Create: return create_rule(r);
    case QT_Await:
    case QT_Task_Join:
        if (jl_kind_of(types, first) != JL_TASK)
            return qt_refuse(r, "%s is no task", qt_type_text(r->module, first));
        return jl_fallible_of(types, jl_info(types, first)->of);
    case QT_Yield: return JL_VOID;
    case QT_Budget_Default: return JL_BUDGET;
    default: return channel_rule(r);
    }
}

static jl_type cap_rule(struct qt_rule *r)
{
    static const jl_type spawn[] = {JL_I64, JL_BUDGET};
    static const jl_type numbers[] = {JL_I64, JL_I64, JL_I64, JL_I64, JL_I64};
    uint32_t             count = r->node->operand_count;
    if (r->node->flags & QT_F_PARENT) {
        count--;
        if (!jl_is_cap(qt_operand_type(r, count)))
            return qt_refuse(r, "what follows `from` is no capability");
    }
    bool right;
    switch (r->node->type) {
    case JL_CAP_SPAWN: right = qt_wants_all(r, 0, count, spawn, 2, "CapSpawn"); break;
    case JL_CAP_BUDGET: right = qt_wants_all(r, 0, count, numbers, 5, "CapBudget"); break;
    case JL_CAP_CHANNEL: right = qt_wants_all(r, 0, count, numbers, 2, "CapChannel"); break;
    case JL_CAP_EXECUTOR: right = qt_wants_all(r, 0, count, numbers, 1, "CapExecutor"); break;
    default: return qt_refuse(r, "%s is no capability", qt_type_text(r->module, r->node->type));
    }
    return right ? r->node->type : (jl_type)JL_BAD;
}

jl_type qt_rule_actor(struct qt_rule *r)
{
    struct jl_types *types = r->module->types;
    jl_type          fn;
    switch (r->node->op) {
    case QT_Actor_New:
        if (jl_kind_of(types, r->node->type) != JL_START)
            return qt_refuse(r, "%s starts no actor", qt_type_text(r->module, r->node->type));
        return r->node->type;
    case QT_Actor_Send:
    case QT_Actor_Call:
        fn = method_of(r, JL_ACTOR);
        if (fn != JL_BAD) fn = fn_rule(r, 1, fn, "the method");
        if (fn == JL_BAD) return fn;
        return jl_fallible_of(types, r->node->op == QT_Actor_Send ? (jl_type)JL_VOID : fn);
    case QT_Supervisor_New: return JL_SUPERVISOR;
    case QT_Supervisor_Spawn:
        if (!qt_wants(r, 0, JL_SUPERVISOR)) return JL_BAD;
        if (jl_kind_of(types, qt_operand_type(r, 1)) != JL_START)
            return qt_refuse(r, "operand 2 starts no actor");
        return jl_fallible_of(types, jl_info(types, qt_operand_type(r, 1))->of);
    case QT_Cap_New: return cap_rule(r);
    case QT_Cap_Budget: return qt_wants(r, 0, JL_CAP_BUDGET) ? JL_BUDGET : JL_BAD;
    default:
        for (uint32_t i = 0; i < 5; i++)
            if (!qt_wants(r, i, JL_I64)) return JL_BAD;
        return JL_BUDGET;
    }
}

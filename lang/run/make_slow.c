/* SPDX-License-Identifier: MIT */
/* Register code of nodes that become calls of C functions. */
#include "run/make.h"
#include "run/slow.h"

#include <string.h>

/* The slots of operands a call wants: result, then the first three. */
static struct slow *put(struct maker *k, uint32_t node,
                        void (*run)(struct machine *, union slot *, const struct slow *))
{
    const struct qt_node *n = node_at(k, node);
    struct slow          *s = jl_run_put_slow(k, run);
    uint32_t             *fields[] = {&s->b, &s->c, &s->d};
    if (qt_has_value(n)) s->a = jl_run_slot(k, node);
    for (uint32_t i = 0; i < 3 && i < n->operand_count; i++)
        if (n->operands[i].kind == QT_NODE) *fields[i] = slot_of(k, node, i);
    return s;
}

static void set_slots(struct maker *k, struct slow *s, uint32_t node, uint32_t first,
                      uint32_t count)
{
    s->slots = jl_run_slots(k, node, first, count);
    s->count = count;
}

static struct field element_field(const struct maker *k, jl_type slice)
{
    return jl_run_field(k->types, slice == JL_STR ? (jl_type)JL_U8 : jl_info(k->types, slice)->of);
}

static void make_slice(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    jl_type               first = n->operand_count > 0 ? operand_type(k, node, 0) : n->type;
    struct slow          *s;
    switch (n->op) {
    case QT_Slice_New: put(k, node, jl_slow_slice_new)->field = element_field(k, n->type); break;
    case QT_Slice_Of:
        s = put(k, node, jl_slow_slice_of);
        s->field = element_field(k, n->type);
        set_slots(k, s, node, 0, n->operand_count);
        break;
    case QT_Slice_Part:
        s = put(k, node, first == JL_STR ? jl_slow_text_part : jl_slow_slice_part);
        s->field = element_field(k, first);
        break;
    case QT_Slice_Get: put(k, node, jl_slow_element_get)->field = element_field(k, first); break;
    default: /* Slice_Set */
        s = put(k, node, jl_slow_element_set);
        s->a = slot_of(k, node, 2);
        s->field = element_field(k, first);
    }
}

static bool make_data(struct maker *k, uint32_t node)
{
    const struct qt_node  *n = node_at(k, node);
    struct slow           *s;
    const struct jl_field *field;
    switch (n->op) {
    case QT_Rem: put(k, node, jl_slow_rem)->d = jl_bits(n->type); return true;
    case QT_Neg: put(k, node, jl_slow_negate); return true;
    case QT_Eq:
    case QT_Ne: put(k, node, jl_slow_equal)->d = n->op == QT_Eq; return true;
    case QT_Convert:
        s = put(k, node, n->type == JL_STR ? jl_slow_text_of : jl_slow_cut);
        s->d = n->type == JL_STR ? operand_type(k, node, 0) : n->type;
        return true;
    case QT_Concat: put(k, node, jl_slow_concat); return true;
    case QT_State_Get:
    case QT_State_Set:
        field = &jl_info(k->types, k->f->actor)->fields[n->literal];
        s = put(k, node, n->op == QT_State_Get ? jl_slow_state_get : jl_slow_state_set);
        s->field = jl_run_field(k->types, field->type);
        s->field.offset = field->offset;
        if (n->op == QT_State_Set) s->a = slot_of(k, node, 0);
        return true;
    case QT_Field_Get: put(k, node, jl_slow_budget_get)->c = (uint32_t)n->literal; return true;
    case QT_Field_With:
        s = put(k, node, jl_slow_budget_with);
        s->d = s->c;
        s->c = (uint32_t)n->literal;
        return true;
    default: make_slice(k, node); return true;
    }
}

static bool make_host(struct maker *k, uint32_t node)
{
    const struct qt_node       *n = node_at(k, node);
    const struct jl_host_entry *e = &k->module->host->entries[n->literal];
    struct slow                *s;
    jl_type                     type;
    if (n->op == QT_Host_Value) {
        if (e->row->address == NULL) return jl_run_refuse(k, "uses a value that the host lacks");
        s = put(k, node, jl_slow_host_value);
        s->p = e->row->address;
        s->field = jl_run_field(k->types, n->type);
        return true;
    }
    if (n->operand_count > 64) return jl_run_refuse(k, "passes too many arguments to the host");
    if (e->row->code == NULL) return jl_run_refuse(k, "calls a function that the host lacks");
    s = put(k, node, jl_slow_host_call);
    set_slots(k, s, node, 0, n->operand_count);
    memcpy(&s->p, &e->row->code, sizeof s->p);
    s->q = e->name;
    type = n->type;
    s->d = jl_kind_of(k->types, type) == JL_FALLIBLE;
    if (s->d) type = jl_info(k->types, type)->of;
    s->field = jl_run_field(k->types, type);
    return true;
}

static enum jl_cap_kind cap_kind(jl_type type)
{
    return type == JL_CAP_SPAWN     ? JL_CAP_OF_SPAWN
           : type == JL_CAP_BUDGET  ? JL_CAP_OF_BUDGET
           : type == JL_CAP_CHANNEL ? JL_CAP_OF_CHANNEL
                                    : JL_CAP_OF_EXECUTOR;
}

static void make_cap(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    bool                  from = (n->flags & QT_F_PARENT) != 0;
    struct slow          *s = put(k, node, jl_slow_cap_new);
    s->flags = n->flags;
    s->b = cap_kind(n->type);
    s->c = s->b;
    if (from) {
        s->d = slot_of(k, node, n->operand_count - 1);
        s->c = cap_kind(operand_type(k, node, n->operand_count - 1));
    }
    set_slots(k, s, node, 0, n->operand_count - (from ? 1 : 0));
}

static bool make_function_value(struct maker *k, uint32_t node)
{
    const struct qt_node     *n = node_at(k, node);
    uint32_t                  index = operand(k, node, 0);
    struct fn                *fn = &k->code->functions[index];
    const struct qt_function *f = &k->module->functions[index];
    bool                      defer = n->op == QT_Defer_Push;
    struct slow              *s = put(k, node, defer ? jl_slow_defer_push : jl_slow_closure);
    s->p = fn;
    set_slots(k, s, node, 1, n->operand_count - 1);
    if (!defer) return true;
    fn->deferred = jl_new(k->code->arena, ((size_t)fn->param_count + 1) * sizeof *fn->deferred);
    memcpy(fn->deferred, fn->params, fn->param_count * sizeof *fn->deferred);
    s->d = jl_run_lay_out(k->types, fn->deferred, f->params, fn->param_count, fn->in_actor ? 8 : 0);
    if (fn->param_count == 0 && !fn->in_actor) s->d = 0;
    return true;
}

bool jl_run_make_slow(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    struct slow          *s;
    switch (n->op) {
    case QT_Host_Value:
    case QT_Call_Host: return make_host(k, node);
    case QT_Closure_New:
    case QT_Defer_Push: return make_function_value(k, node);
    case QT_Cap_New: make_cap(k, node); return true;
    case QT_Cap_Budget: put(k, node, jl_slow_cap_budget); return true;
    case QT_Budget_New:
        s = put(k, node, jl_slow_budget_new);
        set_slots(k, s, node, 0, 5);
        return true;
    case QT_Panic: put(k, node, jl_slow_panic)->a = slot_of(k, node, 0); return true;
    case QT_Fail:
        s = put(k, node, jl_slow_fail);
        s->a = slot_of(k, node, 0);
        s->d = node_at(k, operand(k, node, 0))->op == QT_Error;
        return true;
    case QT_End_Task: put(k, node, jl_slow_end_task)->a = slot_of(k, node, 0); return true;
    case QT_Defer_Pop: put(k, node, jl_slow_defer_pop)->a = (uint32_t)n->literal; return true;
    default: break;
    }
    return n->op < QT_Jump ? make_data(k, node) : jl_run_make_task(k, node);
}

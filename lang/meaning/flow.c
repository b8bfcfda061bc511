/* SPDX-License-Identifier: MIT */
/*
 * Capabilities that leave the program: only delegatable ones may. A parameter that its function
 * gives outward asks this of every caller.
 */
#include "meaning/check.h"

static const uint64_t all_caps =
    1u << JL_CAP_SPAWN | 1u << JL_CAP_BUDGET | 1u << JL_CAP_CHANNEL | 1u << JL_CAP_EXECUTOR;

static bool is_delegatable(const struct jl_expr *value)
{
    if (value->kind == JL_E_NAME && value->symbol) return jl_known_of(value->symbol)->delegatable;
    return value->kind == JL_E_CALL && value->call == JL_CALL_CAP_NEW;
}

/* A parameter whose callers are all known. */
static bool is_open(const struct jl_symbol *symbol)
{
    return symbol->kind == JL_SYMBOL_PARAM && symbol->function &&
           (symbol->function->kind == JL_F_DECLARED || symbol->function->kind == JL_F_METHOD);
}

static void report(struct jl_checker *c, struct jl_span at, jl_type type, const char *to)
{
    const char *name = jl_show(c, type);
    JL_WRONG(c, "C3005", at, "a %s that is not delegatable cannot be given to %s", name, to)->help =
        jl_format(c->arena, "make it with `%s.delegatable(...)`", name);
}

static void report_holder(struct jl_checker *c, struct jl_span at, jl_type type, const char *to)
{
    JL_WRONG(c, "C3005", at, "a value of %s holds capabilities, so it cannot be given to %s",
             jl_show(c, type), to)
        ->help = "give delegatable capabilities by themselves";
}

/* A closure with a capability among its captures. */
static void check_closure(struct jl_checker *c, struct jl_expr *value, const char *to)
{
    const struct jl_function *function = value->kind == JL_E_CLOSURE ? value->function : NULL;
    bool                      carries =
        value->kind == JL_E_NAME && value->symbol && jl_known_of(value->symbol)->carries_cap;
    for (uint32_t i = 0; function && i < function->capture_count; i++) {
        struct jl_symbol *symbol = function->captures[i];
        if (jl_holds(c, symbol->type, all_caps) && !jl_known_of(symbol)->delegatable)
            carries = true;
    }
    if (!carries) return;
    JL_WRONG(c, "C3005", value->at,
             "this closure holds a capability that is not delegatable, so it cannot be given to %s",
             to)
        ->help = "make the capability with `.delegatable(...)`, or give the closure no capability";
}

void jl_check_outward(struct jl_checker *c, struct jl_expr *value, const char *to)
{
    jl_type type = jl_resolve(c, value->type);
    if (jl_kind_of(c->types, type) == JL_FN) {
        check_closure(c, value, to);
        return;
    }
    if (!jl_holds(c, type, all_caps)) return;
    if (!jl_is_cap(type)) {
        report_holder(c, value->at, type, to);
    } else if (!is_delegatable(value)) {
        struct jl_symbol *symbol = value->kind == JL_E_NAME ? value->symbol : NULL;
        if (symbol && is_open(symbol))
            jl_known_of(symbol)->needs_delegatable = true;
        else
            report(c, value->at, type, to);
    }
}

void jl_note_flow(struct jl_checker *c, struct jl_expr *value, struct jl_function *callee,
                  uint32_t index)
{
    JL_PUSH(c->arena, c->flows, c->flow_count, c->flow_room) = (struct jl_flow){
        .from = value->kind == JL_E_NAME ? value->symbol : NULL,
        .at = value->at,
        .callee = callee,
        .index = index,
        .type = value->type,
        .delegatable = is_delegatable(value),
    };
}

static struct jl_known *target(const struct jl_flow *flow)
{
    const struct jl_function *callee = flow->callee;
    if (flow->index >= callee->param_count || !callee->params[flow->index].symbol) return NULL;
    return jl_known_of(callee->params[flow->index].symbol);
}

void jl_check_flows(struct jl_checker *c)
{
    struct jl_known **queue = jl_new(c->arena, (c->flow_count + 1) * sizeof(struct jl_known *));
    uint32_t          length = 0;
    for (uint32_t i = 0; i < c->flow_count; i++) {
        struct jl_known *to = target(&c->flows[i]);
        if (!to) continue;
        if (!to->flows && to->needs_delegatable) queue[length++] = to;
        c->flows[i].next = to->flows;
        to->flows = i + 1;
    }
    while (length) {
        struct jl_known *to = queue[--length];
        for (uint32_t i = to->flows; i; i = c->flows[i - 1].next) {
            struct jl_flow *flow = &c->flows[i - 1];
            if (flow->delegatable) continue;
            if (flow->from && is_open(flow->from)) {
                struct jl_known *from = jl_known_of(flow->from);
                if (!from->needs_delegatable && from->flows) queue[length++] = from;
                from->needs_delegatable = true;
                continue;
            }
            report(c, flow->at, flow->type,
                   jl_format(c->arena, "`%s`, which gives it outside of the program",
                             flow->callee->name.text));
        }
    }
}

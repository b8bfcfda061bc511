/* SPDX-License-Identifier: MIT */
/* What a profile forbids. */
#include "meaning/check.h"

#include <string.h>

static const char *const profile_names[] = {":core", ":service", ":cluster", ":sovereign"};

/* Points at the pragma, or says how to write one. */
static void point(struct jl_checker *c, struct jl_diagnostic *wrong, const char *better)
{
    if (c->unit->has_pragma) {
        wrong->also = c->unit->pragma;
        wrong->also_text = "the profile is chosen here";
        wrong->help = jl_format(c->arena, "write `{.profile: %s.}` in the first line", better);
    } else {
        wrong->help = jl_format(c->arena, "add `{.profile: %s.}` as the first line", better);
    }
}

bool jl_need_tasks(struct jl_checker *c, struct jl_span at, const char *word)
{
    if (c->profile != JL_CORE) return true;
    point(
        c,
        JL_WRONG(c, "P2001", at, "`%s` needs profile :service or higher; this file is :core", word),
        "service");
    return false;
}

bool jl_may_hold_caps(struct jl_checker *c, struct jl_span at, const char *name)
{
    bool is_cap = !strncmp(name, "Cap", 3);
    if (!is_cap || c->profile != JL_CORE) return true;
    point(c,
          JL_WRONG(c, "P2002", at, "%s needs profile :service or higher; :core has no capabilities",
                   name),
          "service");
    return false;
}

bool jl_may_mint(struct jl_checker *c, struct jl_span at, jl_type type)
{
    if (!jl_may_hold_caps(c, at, jl_show(c, type))) return false;
    if (type != JL_CAP_EXECUTOR || c->profile != JL_SERVICE) return true;
    point(c,
          JL_WRONG(c, "P2011", at,
                   "profile :service has a fixed executor, so a program cannot choose one"),
          "sovereign");
    return false;
}

static bool has_supervisor(const struct jl_checker *c)
{
    for (uint32_t i = c->binding_count; i-- > 0;) {
        const struct jl_symbol *symbol = c->bindings[i].symbol;
        if (symbol->kind > JL_SYMBOL_STATE) return false; /* the unit's names begin here */
        if (symbol->type == JL_SUPERVISOR) return true;
    }
    return false;
}

static void check_recharge(struct jl_checker *c, struct jl_span at, const char *name,
                           bool by_supervisor)
{
    if (c->profile == JL_SOVEREIGN) {
        jl_need_cap(c, JL_CAP_BUDGET, at, "recharges budgets");
    } else if (c->profile != JL_CLUSTER) {
        point(c,
              JL_WRONG(c, "P2010", at, "`%s` recharges a budget, but this file is %s", name,
                       profile_names[c->profile]),
              "cluster");
    } else if (!by_supervisor && !has_supervisor(c)) {
        JL_WRONG(c, "P2010", at, "`%s` recharges a budget, which only a supervisor may do", name)
            ->help = "add a parameter `supervisor: Supervisor`, or make one: "
                     "`let supervisor = Supervisor.new()`";
    }
}

static bool takes(const struct jl_checker *c, jl_type fn, jl_type type)
{
    const struct jl_type_info *info = jl_info(c->types, fn);
    for (uint32_t i = 0; i < info->param_count; i++)
        if (info->params[i] == type) return true;
    return false;
}

void jl_check_host_effects(struct jl_checker *c, struct jl_expr *e,
                           const struct jl_host_entry *entry)
{
    uint32_t tasks = JL_EFFECT_SPAWN | JL_EFFECT_NURSERY;
    uint32_t effects = entry->effects;
    if (effects & (tasks | JL_EFFECT_CHANNEL)) jl_need_tasks(c, e->left->at, entry->name);
    if (effects & JL_EFFECT_RECHARGE)
        check_recharge(c, e->left->at, entry->name, entry->receiver == JL_SUPERVISOR);
    if ((effects & tasks) && !takes(c, entry->fn, JL_CAP_SPAWN))
        jl_need_cap(c, JL_CAP_SPAWN, e->left->at, "starts tasks");
    if ((effects & JL_EFFECT_CHANNEL) && !takes(c, entry->fn, JL_CAP_CHANNEL))
        jl_need_cap(c, JL_CAP_CHANNEL, e->left->at, "makes channels");
    jl_add_effect(c, effects);
}

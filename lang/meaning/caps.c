/* SPDX-License-Identifier: MIT */
/* Capabilities: where one is needed, and what one may be made from. */
#include "meaning/check.h"

#include <string.h>

const char *const jl_budget_fields[5] = {"ops", "memory", "spawn_count", "channel_ops", "syscalls"};

enum { SPAWN_LIMIT = 3 }; /* of a CapBudget, in jl_known.limits */

struct field {
    const char *name;
    jl_type     type;
    unsigned    limit; /* in jl_known.limits; of a Budget the first of five */
};

static const struct field of_budget[] = {{"ops", JL_I64, 1},
                                         {"memory", JL_I64, 2},
                                         {"spawn_count", JL_I64, 3},
                                         {"channel_ops", JL_I64, 4},
                                         {"syscalls", JL_I64, 5}};
static const struct field of_cap_spawn[] = {{"max_tasks", JL_I64, 0},
                                            {"task_budget", JL_BUDGET, 1}};
static const struct field of_cap_budget[] = {{"cpu_budget", JL_I64, 1},
                                             {"memory_budget", JL_I64, 2},
                                             {"spawn_limit", JL_I64, 3},
                                             {"channel_budget", JL_I64, 4},
                                             {"syscall_budget", JL_I64, 5}};
static const struct field of_cap_channel[] = {{"max_buffer_size", JL_I64, 0},
                                              {"max_channels", JL_I64, 1}};
static const struct field of_cap_executor[] = {{"allowed_backends", JL_I64, 0}};

static const struct field *fields_of(jl_type type, uint32_t *count)
{
    switch (type) {
    case JL_BUDGET: *count = 5; return of_budget;
    case JL_CAP_SPAWN: *count = 2; return of_cap_spawn;
    case JL_CAP_BUDGET: *count = 5; return of_cap_budget;
    case JL_CAP_CHANNEL: *count = 2; return of_cap_channel;
    default: *count = 1; return of_cap_executor;
    }
}

static bool is_in_main(const struct jl_checker *c)
{
    const struct jl_frame *frame = c->frame;
    while (frame && frame->outer) frame = frame->outer;
    return frame && (frame->function->kind == JL_F_UNIT || frame->function == c->unit->main);
}

/* The innermost capability of a kind that this function can use. */
static struct jl_symbol *find_cap(const struct jl_checker *c, jl_type kind)
{
    for (uint32_t i = c->cap_count; i-- > 0;) {
        struct jl_symbol *symbol = c->caps[i];
        bool is_reachable = symbol->kind != JL_SYMBOL_VAR || symbol->function == c->frame->function;
        if (symbol->type == kind && is_reachable) return symbol;
    }
    return NULL;
}

static const char *const examples[] = {
    [JL_CAP_SPAWN] = "CapSpawn{ max_tasks: 10 }",
    [JL_CAP_BUDGET] = "CapBudget{ cpu_budget: 10000 }",
    [JL_CAP_CHANNEL] = "CapChannel{ max_channels: 10 }",
    [JL_CAP_EXECUTOR] = "CapExecutor{ allowed_backends: 4 }",
};

struct jl_symbol *jl_need_cap(struct jl_checker *c, jl_type kind, struct jl_span at,
                              const char *does)
{
    if (c->profile != JL_SOVEREIGN) return NULL;
    struct jl_symbol *symbol = find_cap(c, kind);
    if (symbol) {
        symbol->is_used = true;
        jl_capture(c, symbol, at);
        return symbol;
    }
    struct jl_diagnostic *wrong =
        JL_WRONG(c, "C3001", at, "%s %s but holds no %s", jl_function_text(c, c->frame->function),
                 does, jl_show(c, kind));
    wrong->help = is_in_main(c)
                      ? jl_format(c->arena, "make one first: `let cap = %s`", examples[kind])
                      : jl_format(c->arena, "add a parameter `cap: %s`", jl_show(c, kind));
    return NULL;
}

/* What is known of a value's limits before the program runs. */

static bool constant_of(const struct jl_expr *e, int64_t *value)
{
    if (!e || e->kind != JL_E_INT || e->type != JL_I64) return false;
    *value = (int64_t)e->value;
    return true;
}

static void know(struct jl_known *known, unsigned limit, int64_t value)
{
    known->limits_known |= 1u << limit;
    known->limits[limit] = value;
}

static void learn_value(struct jl_known *known, const struct jl_expr *e, unsigned depth);

static void learn_fields(struct jl_known *known, const struct jl_expr *e, unsigned depth)
{
    uint32_t            count;
    const struct field *fields = fields_of(e->type, &count);
    for (uint32_t i = 0; i < count && i < e->field_count; i++) {
        int64_t value;
        if (fields[i].type == JL_BUDGET && e->fields[i])
            learn_value(known, e->fields[i], depth + 1);
        else if (constant_of(e->fields[i], &value))
            know(known, fields[i].limit, value);
    }
}

static void learn_value(struct jl_known *known, const struct jl_expr *e, unsigned depth)
{
    int64_t value;
    if (depth > 50) return;
    if (e->kind == JL_E_STRUCT || (e->kind == JL_E_CALL && e->call == JL_CALL_CAP_NEW)) {
        learn_fields(known, e, depth);
    } else if (e->kind == JL_E_NAME && e->symbol && e->symbol->kind == JL_SYMBOL_LET) {
        const struct jl_known *other = jl_known_of(e->symbol);
        known->limits_known = other->limits_known;
        memcpy(known->limits, other->limits, sizeof known->limits);
    } else if (e->kind == JL_E_CALL && e->call == JL_CALL_TO_BUDGET) {
        learn_value(known, e->receiver, depth + 1);
    } else if (e->kind == JL_E_CALL && e->call == JL_CALL_WITH) {
        learn_value(known, e->receiver, depth + 1);
        known->limits_known &= ~(1u << (e->method + 1));
        if (e->arg_count && constant_of(e->args[0].value, &value))
            know(known, e->method + 1, value);
    }
}

static bool is_literal(const struct jl_expr *e)
{
    return e->kind == JL_E_STRUCT || (e->kind == JL_E_CALL && e->call == JL_CALL_CAP_NEW);
}

void jl_learn_cap(struct jl_symbol *symbol, struct jl_expr *value)
{
    struct jl_known *known = jl_known_of(symbol);
    if (symbol->kind != JL_SYMBOL_LET) return;
    if (!jl_is_cap(symbol->type) && symbol->type != JL_BUDGET) return;
    learn_value(known, value, 0);
    if (is_literal(value)) {
        known->learned = true;
        known->delegatable = value->kind == JL_E_CALL;
    } else if (value->kind == JL_E_NAME && value->symbol) {
        known->learned = jl_known_of(value->symbol)->learned;
        known->delegatable = jl_known_of(value->symbol)->delegatable;
    }
}

/* Literals. */

static void check_wider(struct jl_checker *c, const struct jl_expr *e, jl_type type,
                        bool delegatable)
{
    const struct jl_known *from = jl_known_of(e->authority);
    struct jl_known        made = {0}, base = *from;
    learn_fields(&made, e, 0);
    if (delegatable && from->learned && !from->delegatable)
        JL_WRONG(c, "C3004", e->at, "`%s` is not delegatable, so nothing made from it can be",
                 from->symbol.name)
            ->help = jl_format(c->arena, "make `%s` with `%s.delegatable(...)`", from->symbol.name,
                               jl_show(c, from->symbol.type));
    /* A CapSpawn of a CapBudget has no more tasks than that one has spawns. */
    if (type != from->symbol.type && (from->limits_known >> SPAWN_LIMIT & 1))
        know(&base, 0, from->limits[SPAWN_LIMIT]);
    uint32_t both = made.limits_known & base.limits_known;
    for (unsigned i = 0; i < JL_LIMITS; i++) {
        if (!(both >> i & 1) || made.limits[i] <= base.limits[i]) continue;
        JL_WRONG(c, "C3004", e->at,
                 "this %s allows %lld where `%s`, which it is made from, has %lld",
                 jl_show(c, type), (long long)made.limits[i], from->symbol.name,
                 (long long)base.limits[i])
            ->help =
            jl_format(c->arena, "a new capability can only be narrower: write at most %lld",
                      (long long)base.limits[i]);
        return;
    }
}

static void check_authority(struct jl_checker *c, struct jl_expr *e, jl_type type, bool delegatable)
{
    if (!c->frame || is_in_main(c)) {
        jl_add_effect(c, JL_EFFECT_MINT);
        return;
    }
    struct jl_symbol *from = find_cap(c, type);
    if (!from && type == JL_CAP_SPAWN) from = find_cap(c, JL_CAP_BUDGET);
    jl_add_effect(c, JL_EFFECT_MINT);
    if (!from) {
        const char *name = jl_show(c, type);
        JL_WRONG(c, "C3003", e->at, "%s makes a %s but holds no capability to make it from",
                 jl_function_text(c, c->frame->function), name)
            ->help = jl_format(c->arena, "add a parameter `cap: %s`, or make it in `main`", name);
        return;
    }
    from->is_used = true;
    jl_capture(c, from, e->at);
    e->authority = from;
    check_wider(c, e, type, delegatable);
}

static void report_field(struct jl_checker *c, struct jl_name name, jl_type type,
                         const struct field *fields, uint32_t count)
{
    struct jl_guess guess = jl_guess_of(name.text);
    const char     *list = "";
    for (uint32_t i = 0; i < count; i++) {
        jl_guess(&guess, fields[i].name);
        list = jl_format(c->arena, "%s%s%s", list, i ? ", " : "", fields[i].name);
    }
    struct jl_diagnostic *wrong =
        JL_WRONG(c, "T4017", name.at, "%s has no field `%.60s`", jl_show(c, type), name.text);
    wrong->help = guess.best ? jl_did_you_mean(c, guess.best)
                             : jl_format(c->arena, "its fields are %s", list);
}

static void check_field(struct jl_checker *c, struct jl_expr *e, jl_type type,
                        const struct jl_argument *arg)
{
    uint32_t            count, i = 0;
    const struct field *fields = fields_of(type, &count);
    int64_t             value;
    if (!arg->name.text) {
        JL_WRONG(c, "T4022", arg->value->at, "each limit of a %s has its name before it",
                 jl_show(c, type))
            ->help =
            jl_format(c->arena, "write `%s: %s`", fields[0].name, jl_snip(c, arg->value->at));
        return;
    }
    while (i < count && strcmp(fields[i].name, arg->name.text) != 0) i++;
    if (i == count) {
        report_field(c, arg->name, type, fields, count);
        jl_check_value(c, arg->value, 0);
        return;
    }
    if (e->fields[i])
        JL_WRONG(c, "T4017", arg->name.at, "the field `%s` is given twice", fields[i].name)->help =
            "remove one of them";
    jl_check_is(c, arg->value, fields[i].type, NULL);
    e->fields[i] = arg->value;
    if (constant_of(arg->value, &value) && value < 0)
        JL_WRONG(c, "T4002", arg->value->at, "a limit is never below 0")->help =
            "write 0 to allow nothing";
}

jl_type jl_check_cap(struct jl_checker *c, struct jl_expr *e, jl_type type, bool delegatable)
{
    bool may = type == JL_BUDGET || jl_may_mint(c, e->at, type);
    e->type = type;
    fields_of(type, &e->field_count);
    e->fields = jl_new(c->arena, e->field_count * sizeof(struct jl_expr *));
    for (uint32_t i = 0; i < e->arg_count; i++) check_field(c, e, type, &e->args[i]);
    if (type != JL_BUDGET && may) check_authority(c, e, type, delegatable);
    return type;
}

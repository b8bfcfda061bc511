/* SPDX-License-Identifier: MIT */
/*
 * Memory belongs to the task that allocated it, and ends with it. A spawned task may share a slice
 * with its parent and may store numbers in it. If it stored a str, a slice or a closure, the parent
 * would find memory that is gone. It could also find half of an old value and half of a new one. So
 * this is refused, and so is such a store of the parent while its tasks run.
 *
 * The checker finds these functions as it finds effects. Each type of slice that a function stores
 * to has a bit above the effects. The bits spread over the call graph. A task is refused if it
 * stores to a type of slice, and was given a slice of this type.
 */
#include "meaning/check.h"

enum {
    FIRST_BIT = 10, /* above the last effect, FAILS */
    LAST_BIT = 30,  /* all types that come after 20 others */
};
static const uint32_t calls_value = 1u << 31; /* a closure: that of any closure */
static const uint32_t effects_mask = (1u << FIRST_BIT) - 1;

void jl_note_store(struct jl_checker *c, const struct jl_statement *s)
{
    const struct jl_expr *place = s->target;
    while (place && place->kind == JL_E_MEMBER) place = place->left;
    if (!place || place->kind != JL_E_INDEX) return;
    const struct jl_expr *slice = place->left;
    bool is_own = slice->kind == JL_E_NAME && slice->symbol && jl_known_of(slice->symbol)->is_own &&
                  slice->symbol->function == c->frame->function;
    JL_PUSH(c->arena, c->stores, c->store_count, c->store_room) =
        (struct jl_store){c->frame->function, slice, s->value, c->frame->nursery, is_own};
}

void jl_note_own(struct jl_symbol *symbol, const struct jl_expr *value)
{
    bool is_new =
        value->kind == JL_E_ARRAY || (value->kind == JL_E_CALL && value->call == JL_CALL_ARRAY);
    if (symbol->kind == JL_SYMBOL_LET && is_new) jl_known_of(symbol)->is_own = true;
}

void jl_note_call(struct jl_checker *c, const struct jl_expr *call, struct jl_function *function)
{
    if (!c->frame) return;
    if (!function) c->frame->function->effects |= calls_value;
    if (c->frame->nursery && call != c->starting)
        JL_PUSH(c->arena, c->meanwhile, c->meanwhile_count, c->meanwhile_room) =
            (struct jl_meanwhile){c->frame->nursery, function};
}

void jl_note_task(struct jl_checker *c, struct jl_expr *at, struct jl_expr *call,
                  struct jl_function *function)
{
    JL_PUSH(c->arena, c->started, c->started_count, c->started_room) =
        (struct jl_started){at, call, function, c->frame->nursery};
}

/* Types that are known now become bits. */
static uint32_t bit_of(struct jl_checker *c, jl_type slice)
{
    uint32_t i = 0;
    while (i < c->stored_count && c->stored[i] != slice) i++;
    if (i == c->stored_count && i < LAST_BIT - FIRST_BIT)
        JL_PUSH(c->arena, c->stored, c->stored_count, c->stored_room) = slice;
    return 1u << (FIRST_BIT + i);
}

static uint32_t *bits_of_nursery(struct jl_checker *c, const void *nursery)
{
    return jl_map_at(c, &c->nursery_bits, nursery);
}

static void set_bits(struct jl_checker *c)
{
    for (uint32_t i = 0; i < c->store_count; i++) {
        const struct jl_store *store = &c->stores[i];
        jl_type                type = store->value->type, slice = store->slice->type;
        if (type == JL_BAD || slice == JL_BAD || jl_is_plain(c->types, type)) continue;
        uint32_t bit = bit_of(c, slice);
        if (!store->is_own) store->function->effects |= bit;
        if (store->nursery) *bits_of_nursery(c, store->nursery) |= bit;
    }
}

static bool contains(struct jl_checker *c, jl_type type, jl_type slice)
{
    const struct jl_type_info *info = jl_info(c->types, type);
    if (type == slice) return true;
    if (type < JL_SIMPLE_KINDS || c->marks[type] == c->mark) return false;
    c->marks[type] = c->mark;
    if (info->kind == JL_SLICE) return contains(c, info->of, slice);
    for (uint32_t i = 0; info->kind == JL_STRUCT && i < info->field_count; i++)
        if (contains(c, info->fields[i].type, slice)) return true;
    return false;
}

/* The type that a task stores in a slice it was given; BAD: none. */
static jl_type shared_store(struct jl_checker *c, jl_type given, uint32_t bits,
                            uint32_t of_closures)
{
    bool has_closure = jl_holds(c, given, (uint64_t)1 << JL_FN);
    for (uint32_t i = 0; i < c->stored_count; i++) {
        if (!(bits >> (FIRST_BIT + i) & 1)) continue;
        (void)jl_holds(c, given, 0); /* makes room for marks, and sets some */
        c->mark++;
        if (contains(c, given, c->stored[i])) return jl_info(c->types, c->stored[i])->of;
        if (has_closure && (of_closures >> (FIRST_BIT + i) & 1))
            return jl_info(c->types, c->stored[i])->of;
    }
    bool is_other = bits >> LAST_BIT & 1;
    return is_other && jl_holds(c, given, (uint64_t)1 << JL_SLICE) ? JL_STR : JL_BAD;
}

static void point_at_store(const struct jl_checker *c, struct jl_diagnostic *wrong, jl_type element)
{
    for (uint32_t i = 0; i < c->store_count; i++) {
        const struct jl_store *store = &c->stores[i];
        if (jl_info(c->types, store->slice->type)->of != element) continue;
        wrong->also = (struct jl_span){store->slice->at.begin, store->value->at.end};
        wrong->also_text = "it is stored here";
        return;
    }
}

/* What is stored in a slice that the task was given; BAD: nothing. */
static jl_type given_store(struct jl_checker *c, const struct jl_started *started, uint32_t bits,
                           uint32_t of_closures)
{
    const struct jl_expr *call = started->call;
    jl_type               found = JL_BAD;
    if (bits & calls_value) bits |= of_closures;
    bits &= ~effects_mask & ~calls_value;
    if (!bits) return JL_BAD;
    if (call && !started->function && call->call == JL_CALL_VALUE)
        found = shared_store(c, call->left->type, bits, of_closures);
    for (uint32_t i = 0; call && !found && i < call->arg_count; i++)
        found = shared_store(c, call->args[i].value->type, bits, of_closures);
    uint32_t captures = !call && started->function ? started->function->capture_count : 0;
    for (uint32_t i = 0; !found && i < captures; i++)
        found = shared_store(c, started->function->captures[i]->type, bits, of_closures);
    return found;
}

static void check_started(struct jl_checker *c, const struct jl_started *started,
                          uint32_t of_closures)
{
    bool     is_host = started->call && started->call->call == JL_CALL_HOST;
    uint32_t own = started->function ? started->function->effects : is_host ? 0 : calls_value;
    jl_type  found = given_store(c, started, own, of_closures);
    if (found) {
        struct jl_diagnostic *wrong =
            JL_WRONG(c, "T4032", started->at->at,
                     "this task stores %s in a slice of another task, where only numbers may be "
                     "stored",
                     jl_show(c, found));
        wrong->help = "send the values through a channel, or return them from an async call";
        point_at_store(c, wrong, found);
        return;
    }
    if (!started->nursery) return;
    found = given_store(c, started, *bits_of_nursery(c, started->nursery), of_closures);
    if (!found) return;
    struct jl_diagnostic *wrong = JL_WRONG(
        c, "T4033", started->at->at,
        "the nursery's own code stores %s in a slice while this task shares it", jl_show(c, found));
    wrong->help = "store before the nursery begins, or after its end";
    point_at_store(c, wrong, found);
}

/* What the calls in a nursery store, while its tasks run. */
static void add_meanwhile(struct jl_checker *c)
{
    for (uint32_t i = 0; i < c->meanwhile_count; i++) {
        const struct jl_meanwhile *call = &c->meanwhile[i];
        uint32_t                   bits = call->function ? call->function->effects : calls_value;
        *bits_of_nursery(c, call->nursery) |= bits & ~effects_mask;
    }
}

void jl_check_stores(struct jl_checker *c)
{
    uint32_t of_closures = 0;
    set_bits(c);
    jl_spread_effects(c);
    for (uint32_t i = 0; i < c->unit->all_count; i++) {
        const struct jl_function *function = c->unit->all[i];
        if (function->kind == JL_F_CLOSURE) of_closures |= function->effects;
    }
    for (uint32_t i = 0; i < c->value_count; i++) of_closures |= c->values[i]->effects;
    of_closures &= ~effects_mask & ~calls_value;
    add_meanwhile(c);
    for (uint32_t i = 0; i < c->started_count; i++) check_started(c, &c->started[i], of_closures);
    for (uint32_t i = 0; i < c->unit->all_count; i++) c->unit->all[i]->effects &= effects_mask;
}

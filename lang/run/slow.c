/* SPDX-License-Identifier: MIT */
/* Values that the loop leaves to C functions: text, slices, closures, the host. */
#include "run/slow.h"

#include <math.h>
#include <string.h>

enum { ARGUMENTS_MAX = 66 };

static struct jl_text text_at(const union slot *r) { return (struct jl_text){r[0].c, r[1].i}; }

static void set_text(union slot *r, struct jl_text text)
{
    r[0].c = text.bytes;
    r[1].i = text.length;
}

static struct jl_slice slice_at(const union slot *r) { return (struct jl_slice){r[0].p, r[1].i}; }

static void set_slice(union slot *r, struct jl_slice slice)
{
    r[0].p = slice.items;
    r[1].i = slice.length;
}

void jl_slow_need(const struct slow *s, const void *pointer, const char *text)
{
    struct jl_text t = {text, (int64_t)strlen(text)};
    if (pointer == NULL) jl_panic(t, s->place);
}

void jl_slow_fill(char *record, const union slot *r, const uint16_t *slots,
                  const struct field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        jl_run_store(record + fields[i].offset, r + slots[i], &fields[i]);
}

/* a: result; b, c: operands; d: bits of the signed type. */
void jl_slow_rem(struct machine *m, union slot *r, const struct slow *s)
{
    int64_t x = r[s->b].i, y = r[s->c].i;
    (void)m;
    if (y == 0) jl_trap_zero(s->place);
    if (y == -1 && x == -(INT64_C(1) << (s->d - 1))) jl_trap_overflow("%", s->place);
    r[s->a].i = x % y;
}

/* a: result; b: operand of an unsigned type. */
void jl_slow_negate(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    if (r[s->b].i != 0) jl_trap_overflow("-", s->place);
    r[s->a].i = 0;
}

/* a: result; b, c: texts; d: whether equal. */
void jl_slow_equal(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    r[s->a].i = jl_text_equal(text_at(r + s->b), text_at(r + s->c)) == (s->d != 0);
}

/* a: text; b: value; d: its type. */
void jl_slow_text_of(struct machine *m, union slot *r, const struct slow *s)
{
    const union slot *v = r + s->b;
    struct jl_text    text;
    (void)m;
    switch (s->d) {
    case JL_STR: text = text_at(v); break;
    case JL_F64: text = jl_text_of_f64(v->f); break;
    case JL_BOOL: text = jl_text_of_bool(v->i != 0); break;
    case JL_ERROR: text = jl_text_of_error(v->i); break;
    default: text = jl_is_signed(s->d) ? jl_text_of_i64(v->i) : jl_text_of_u64(v->u);
    }
    set_text(r + s->a, text);
}

/* a: result; b: f64; d: the integer type. What is behind the point is cut off. */
void jl_slow_cut(struct machine *m, union slot *r, const struct slow *s)
{
    double value = r[s->b].f;
    int    bits = (int)jl_bits(s->d);
    bool   is_signed = jl_is_signed(s->d);
    double high = ldexp(1.0, is_signed ? bits - 1 : bits), low = is_signed ? -high : 0;
    bool   fits = (bits == 64 && is_signed ? value >= low : value > low - 1) && value < high;
    (void)m;
    if (s->d == JL_F64) {
        r[s->a].f = value;
        return;
    }
    if (!fits) jl_trap_overflow(jl_run_whats[WHAT_TYPES + s->d - JL_I8], s->place);
    if (is_signed)
        r[s->a].i = (int64_t)value;
    else
        r[s->a].u = (uint64_t)value;
}

/* a: text; b, c: texts. */
void jl_slow_concat(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    set_text(r + s->a, jl_concat(text_at(r + s->b), text_at(r + s->c)));
}

/* a: slice; b: length; field: an element. */
void jl_slow_slice_new(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    set_slice(r + s->a, jl_slice_new(r[s->b].i, s->field.bytes, s->place));
}

/* a: slice; slots: the elements; field: an element. */
void jl_slow_slice_of(struct machine *m, union slot *r, const struct slow *s)
{
    struct jl_slice slice = jl_slice_new(s->count, s->field.bytes, s->place);
    (void)m;
    for (uint32_t i = 0; i < s->count; i++)
        jl_run_store((char *)slice.items + (size_t)i * s->field.bytes, r + s->slots[i], &s->field);
    set_slice(r + s->a, slice);
}

/* a: result; b: slice; c, d: from, to; field: an element. */
void jl_slow_slice_part(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    set_slice(r + s->a,
              jl_slice_part(slice_at(r + s->b), r[s->c].i, r[s->d].i, s->field.bytes, s->place));
}

void jl_slow_text_part(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    set_text(r + s->a, jl_text_part(text_at(r + s->b), r[s->c].i, r[s->d].i, s->place));
}

static char *element_of(union slot *r, const struct slow *s)
{
    int64_t index = r[s->c].i, length = r[s->b + 1].i;
    if ((uint64_t)index >= (uint64_t)length) jl_trap_index(index, length, s->place);
    return (char *)r[s->b].p + (size_t)index * s->field.bytes;
}

/* a: value; b: slice; c: index; field: an element. */
void jl_slow_element_get(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    jl_run_load(r + s->a, element_of(r, s), &s->field);
}

void jl_slow_element_set(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    jl_run_store(element_of(r, s), r + s->a, &s->field);
}

/* a: closure; p: the function; slots: captures. */
void jl_slow_closure(struct machine *m, union slot *r, const struct slow *s)
{
    const struct fn *fn = s->p;
    char            *environment = NULL;
    (void)m;
    if (fn->capture_count > 0) environment = jl_environment(fn->environment_bytes);
    jl_slow_fill(environment, r, s->slots, fn->params, s->count);
    r[s->a].c = fn;
    r[s->a + 1].p = environment;
}

/* a: value; field: the state's field. */
void jl_slow_state_get(struct machine *m, union slot *r, const struct slow *s)
{
    jl_run_load(r + s->a, (const char *)m->state + s->field.offset, &s->field);
}

void jl_slow_state_set(struct machine *m, union slot *r, const struct slow *s)
{
    jl_run_store((char *)m->state + s->field.offset, r + s->a, &s->field);
}

/* a: value; p: its address. */
void jl_slow_host_value(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    jl_run_load(r + s->a, s->p, &s->field);
}

/* a: result; p: the code; q: its name; slots: arguments; field: the value; d: whether it may fail.
 */
void jl_slow_host_call(struct machine *m, union slot *r, const struct slow *s)
{
    union slot    nothing[2] = {{0}, {0}};
    const void   *arguments[ARGUMENTS_MAX];
    jl_host_code *code;
    (void)m;
    memcpy(&code, &s->p, sizeof code);
    for (uint32_t i = 0; i < s->count; i++) arguments[i] = r + s->slots[i];
    union slot *value = s->field.width == W_NONE ? nothing : r + s->a + (s->d != 0);
    if (s->field.width != W_NONE) memset(value, 0, 8 * (size_t)s->field.words);
    int64_t error = code(value, arguments);
    if (error < 0 && s->d == 0) jl_host_failed(s->q, error, s->place);
    jl_run_load(value, value, &s->field);
    if (s->d != 0) r[s->a].i = error < 0 ? error : 0;
}

/* a: result; b: budget; c: field. */
void jl_slow_budget_get(struct machine *m, union slot *r, const struct slow *s)
{
    janus_budget budget;
    (void)m;
    memcpy(&budget, r + s->b, sizeof budget);
    r[s->a].i = jl_budget_get(budget, s->c);
}

void jl_slow_budget_with(struct machine *m, union slot *r, const struct slow *s)
{
    janus_budget budget;
    (void)m;
    memcpy(&budget, r + s->b, sizeof budget);
    budget = jl_budget_with(budget, s->c, r[s->d].i);
    memcpy(r + s->a, &budget, sizeof budget);
}

/* a: budget; slots: five numbers. */
void jl_slow_budget_new(struct machine *m, union slot *r, const struct slow *s)
{
    int64_t numbers[5];
    (void)m;
    for (uint32_t i = 0; i < 5; i++) numbers[i] = r[s->slots[i]].i;
    janus_budget budget = jl_budget_new(numbers);
    memcpy(r + s->a, &budget, sizeof budget);
}

/* a: capability; b: kind; c: the parent's kind; d: the parent's slot; slots: fields. */
void jl_slow_cap_new(struct machine *m, union slot *r, const struct slow *s)
{
    struct jl_cap_fields fields = {.numbers = {0}};
    janus_cap            parent, cap;
    bool                 from = (s->flags & QT_F_PARENT) != 0;
    (void)m;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->b == JL_CAP_OF_SPAWN && i == 1)
            memcpy(&fields.budget, r + s->slots[i], sizeof fields.budget);
        else
            fields.numbers[i] = r[s->slots[i]].i;
    }
    if (from) memcpy(&parent, r + s->d, sizeof parent);
    cap = jl_cap_new((enum jl_cap_kind)s->b, &fields, from ? &parent : NULL, (enum jl_cap_kind)s->c,
                     (s->flags & QT_F_DELEGATABLE) != 0, s->place);
    memcpy(r + s->a, &cap, sizeof cap);
}

/* a: budget; b: CapBudget. */
void jl_slow_cap_budget(struct machine *m, union slot *r, const struct slow *s)
{
    janus_cap cap;
    (void)m;
    memcpy(&cap, r + s->b, sizeof cap);
    janus_budget budget = jl_cap_to_budget(cap, s->place);
    memcpy(r + s->a, &budget, sizeof budget);
}

/* a: text. */
void jl_slow_panic(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    jl_panic(text_at(r + s->a), s->place);
}

/* a: error; d: whether it begins here. */
void jl_slow_fail(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    (void)(s->d ? jl_fail(r[s->a].i, s->place) : jl_fail_on(r[s->a].i, s->place));
}

void jl_slow_end_task(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    jl_end_task(r[s->a].i, s->place);
}

/* SPDX-License-Identifier: MIT */
/* From QTJIR to register code: cells, functions, modules. */
#include "run/make.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 1 << 16, CELLS_MAX = 1 << 24 };

uint32_t jl_run_words(const struct jl_types *types, jl_type type)
{
    const struct jl_type_info *info = jl_info(types, type);
    if (info->kind == JL_FALLIBLE) return 1 + jl_run_words(types, info->of);
    uint32_t words = info->size / 8 + (info->size % 8 != 0);
    return words < WORDS_MAX ? words : WORDS_MAX;
}

struct field jl_run_field(const struct jl_types *types, jl_type type)
{
    static const uint8_t widths[] = {
        [JL_BOOL] = W_U8, [JL_I8] = W_I8,  [JL_I16] = W_I16, [JL_I32] = W_I32,
        [JL_I64] = W_64,  [JL_U8] = W_U8,  [JL_U16] = W_U16, [JL_U32] = W_U32,
        [JL_U64] = W_64,  [JL_F64] = W_64, [JL_ERROR] = W_64};
    struct field f = {.bytes = jl_size(types, type)};
    f.words = (uint16_t)jl_run_words(types, type);
    if (type < sizeof widths && widths[type] != 0)
        f.width = widths[type];
    else
        f.width = f.bytes == 0 ? W_NONE : f.bytes == 8 ? W_64 : W_BYTES;
    return f;
}

bool jl_run_refuse(struct maker *k, const char *why)
{
    if (k->code->why == NULL) k->code->why = jl_format(k->code->arena, "@%s %s", k->f->name, why);
    return false;
}

/* Cells. */

uint32_t jl_run_put(struct maker *k, unsigned op, uint32_t a, uint32_t b, int32_t c)
{
    struct jl_code *code = k->code;
    struct cell    *cell = &JL_PUSH(code->arena, code->cells, code->cell_count, code->cell_room);
    JL_PUSH(code->arena, code->places, code->place_count, code->place_room) = k->place;
    JL_PUSH(code->arena, code->whats, code->what_count, code->what_room) = 0;
    cell->op = op;
    cell->a = (uint16_t)a;
    cell->b = (uint16_t)b;
    cell->c = c;
    return code->cell_count - 1;
}

void jl_run_put_number(struct maker *k, int64_t number)
{
    uint32_t cell = jl_run_put(k, 0, 0, 0, 0);
    k->code->cells[cell].number = number;
}

void jl_run_what(struct maker *k, unsigned what)
{
    k->code->whats[k->code->what_count - 1] = (uint8_t)what;
}

void jl_run_move(struct maker *k, uint32_t to, uint32_t from, uint32_t words)
{
    if (to == from || words == 0) return;
    if (words <= 2)
        jl_run_put(k, words == 1 ? R_Mov : R_Mov2, to, from, 0);
    else
        jl_run_put(k, R_MovN, to, from, (int32_t)words);
}

void jl_run_constant(struct maker *k, uint32_t to, int64_t number)
{
    if (number >= INT32_MIN && number <= INT32_MAX) {
        jl_run_put(k, R_MovK, to, 0, (int32_t)number);
        return;
    }
    jl_run_put(k, R_MovK64, to, 0, 0);
    jl_run_put_number(k, number);
}

void jl_run_jump(struct maker *k, uint32_t cell, uint32_t block)
{
    struct patch *p = &JL_PUSH(k->code->arena, k->patches, k->patch_count, k->patch_room);
    p->cell = cell;
    p->block = block;
}

struct slow *jl_run_put_slow(struct maker *k,
                             void (*run)(struct machine *, union slot *, const struct slow *))
{
    struct slow *s = jl_new(k->code->arena, sizeof *s);
    s->run = run;
    s->place = k->place;
    jl_run_put(k, R_Slow, 0, 0, 0);
    uint32_t cell = jl_run_put(k, 0, 0, 0, 0);
    k->code->cells[cell].slow = s;
    return s;
}

const uint16_t *jl_run_slots(struct maker *k, uint32_t node, uint32_t first, uint32_t count)
{
    uint16_t *slots = jl_new(k->code->arena, ((size_t)count + 1) * sizeof *slots);
    for (uint32_t i = 0; i < count; i++) slots[i] = (uint16_t)slot_of(k, node, first + i);
    return slots;
}

/* Functions. */

uint32_t jl_run_lay_out(const struct jl_types *types, struct field *fields, const jl_type *list,
                        uint32_t count, uint32_t before)
{
    uint64_t bytes = before;
    uint32_t largest = before > 0 ? before : 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t align = jl_align(types, list[i]);
        if (align > largest) largest = align;
        bytes = (bytes + align - 1) / align * align;
        fields[i].offset = (uint32_t)bytes;
        bytes += fields[i].bytes;
    }
    bytes = (bytes + largest - 1) / largest * largest;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* Arguments come first in the frame, then captures: a call of a closure knows only arguments. */
static bool set_params(struct maker *k)
{
    struct fn                *fn = k->fn;
    const struct qt_function *f = k->f;
    uint32_t                  slot = 0, captures = f->capture_count, count = f->param_count;
    fn->params = jl_new(k->code->arena, ((size_t)count + 1) * sizeof *fn->params);
    for (uint32_t i = 0; i < count; i++) fn->params[i] = jl_run_field(k->types, f->params[i]);
    for (uint32_t i = 0; i < count; i++) {
        struct field *p = &fn->params[i < count - captures ? captures + i : i - (count - captures)];
        p->slot = (uint16_t)slot;
        slot += p->words;
        if (slot >= WORDS_MAX) return jl_run_refuse(k, "has too large parameters");
    }
    fn->param_count = count;
    fn->capture_count = captures;
    fn->environment_bytes = jl_run_lay_out(k->types, fn->params, f->params, captures, 0);
    if (captures == 0) fn->environment_bytes = 0;
    fn->argument_bytes =
        jl_run_lay_out(k->types, fn->params + captures, f->params + captures, count - captures, 0);
    if (count == captures) fn->argument_bytes = 0;
    return true;
}

static bool prepare(struct maker *k)
{
    struct fn *fn = k->fn;
    fn->code = k->code;
    fn->name = k->f->name;
    fn->fails = k->f->fails;
    fn->in_actor = k->f->actor != 0;
    fn->result = jl_run_field(k->types, k->f->result);
    return set_params(k);
}

static bool make_block(struct maker *k, uint32_t block)
{
    const struct qt_block *b = &k->f->blocks[block];
    k->block = block;
    k->pay = false;
    k->starts[block] = k->code->cell_count;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct qt_node *n = node_at(k, b->nodes[i]);
        k->position = i;
        k->place = (uint64_t)n->line << 32 | n->column;
        if (!jl_run_make_node(k, b->nodes[i])) return false;
    }
    return true;
}

static bool make_function(struct maker *k)
{
    struct jl_code *code = k->code;
    k->slots = k->outgoing = k->patch_count = 0;
    for (uint32_t i = 0; i < k->fn->param_count; i++) k->slots += k->fn->params[i].words;
    k->plans = calloc((size_t)k->f->node_count + 1, sizeof *k->plans);
    k->starts = calloc((size_t)k->f->block_count + 1, sizeof *k->starts);
    bool right = k->plans != NULL && k->starts != NULL && jl_run_plan(k);
    k->fn->entry_index = code->cell_count;
    k->place = 0;
    for (uint32_t i = 0; right && i < k->f->node_count; i++)
        if (k->plans[i].hoisted) jl_run_constant(k, k->plans[i].slot, node_at(k, i)->literal);
    for (uint32_t b = 0; right && b < k->f->block_count; b++) right = make_block(k, b);
    right = right && code->why == NULL;
    if (right && code->cell_count > CELLS_MAX) right = jl_run_refuse(k, "is too long");
    for (uint32_t i = 0; right && i < k->patch_count; i++) {
        struct patch *p = &k->patches[i];
        code->cells[p->cell].c = (int32_t)k->starts[p->block] - (int32_t)p->cell;
    }
    free(k->plans);
    free(k->starts);
    return right;
}

/* Opcodes become labels. Second cells of instructions have no opcode. */
static void finish(struct jl_code *code)
{
    const void *const *labels;
    jl_run_step(NULL, NULL, NULL, &labels);
    for (uint32_t i = 0; i < code->cell_count; i++) {
        uint64_t op = code->cells[i].op;
        code->cells[i].label = labels[op];
        if (op == R_MovK64 || op == R_Slow || op == R_Call || op == R_CallPay) i++;
    }
    for (uint32_t i = 0; i < code->module->function_count; i++)
        code->functions[i].entry = code->cells + code->functions[i].entry_index;
}

bool jl_code_make(struct qt_module *module, struct jl_code **out, const char **why)
{
    struct jl_code *code = jl_new(module->arena, sizeof *code);
    struct maker    k = {.code = code, .module = module, .types = module->types};
    code->module = module;
    code->arena = module->arena;
    code->functions =
        jl_new(module->arena, ((size_t)module->function_count + 1) * sizeof *code->functions);
    bool right = module->level != QT_HIGH;
    if (!right) code->why = "only levels Mid and Low can be executed";
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; right && i < module->function_count; i++) {
            k.f = &module->functions[i];
            k.fn = &code->functions[i];
            right = pass == 0 ? prepare(&k) : make_function(&k);
        }
        if (pass == 0 && right) right = jl_run_make_actors(code);
    }
    if (right) {
        k.place = 0;
        code->stub = jl_run_put(&k, R_Stuck, 0, 1, 0); /* stands for a call */
        jl_run_put(&k, R_Stuck, 0, 0, 0);
        jl_run_put(&k, R_Halt, 0, 0, 0);
        finish(code);
    }
    *out = code;
    if (why != NULL) *why = code->why;
    return right;
}

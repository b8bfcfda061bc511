/* SPDX-License-Identifier: MIT */
/* From QTJIR to register code: what the passes share. */
#ifndef JANUSRT_LANG_RUN_MAKE_H
#define JANUSRT_LANG_RUN_MAKE_H

#include "run/code.h"

#define NO_SLOT UINT32_MAX

/* What is planned for the value of a node. */
struct plan {
    uint32_t slot; /* NO_SLOT: not decided, or a constant that stands in instructions */
    uint32_t words;
    uint32_t uses;   /* that need a slot */
    uint32_t alias;  /* 1 + the node whose slots these are; 0: none */
    uint32_t offset; /* of an alias: words */
    uint32_t last;   /* the last use's position, if all uses are in its block */
    uint32_t block, position;
    bool     crosses; /* used in other blocks */
    bool     fused;   /* a comparison that stands in the branch */
    bool     hoisted; /* a constant that is set when the function begins */
};

struct maker {
    struct jl_code           *code;
    struct qt_module         *module;
    struct jl_types          *types;
    const struct qt_function *f;
    struct fn                *fn;
    struct plan              *plans;
    uint32_t                  slots;    /* taken so far */
    uint32_t                  outgoing; /* the most slots that a call passes */
    uint32_t                 *starts;   /* first cell of each block */
    struct patch {
        uint32_t cell, block;
    }       *patches;
    uint32_t patch_count, patch_room;
    uint32_t block; /* being made */
    uint32_t position;
    bool     pay; /* the next call or jump pays 1 */
    uint64_t place;
};

bool jl_run_plan(struct maker *k);
void jl_run_alias_loads(struct maker *k);
void jl_run_hoist(struct maker *k);
bool jl_run_make_node(struct maker *k, uint32_t node);
bool jl_run_make_slow(struct maker *k, uint32_t node);
bool jl_run_make_task(struct maker *k, uint32_t node);
bool jl_run_make_control(struct maker *k, uint32_t node);
void jl_run_make_call(struct maker *k, uint32_t node);
bool jl_run_refuse(struct maker *k, const char *why);
/* Offsets as in a C struct, from `bytes` on. Returns its size. */
uint32_t jl_run_lay_out(const struct jl_types *types, struct field *fields, const jl_type *list,
                        uint32_t count, uint32_t bytes);

/* Cells. */
uint32_t jl_run_put(struct maker *k, unsigned op, uint32_t a, uint32_t b, int32_t c);
void     jl_run_put_number(struct maker *k, int64_t number);
void     jl_run_what(struct maker *k, unsigned what); /* of the last cell */
void     jl_run_move(struct maker *k, uint32_t to, uint32_t from, uint32_t words);
void     jl_run_constant(struct maker *k, uint32_t to, int64_t number);
void     jl_run_jump(struct maker *k, uint32_t cell, uint32_t block);
/* A call of a C function. The caller fills what the function wants. */
struct slow *jl_run_put_slow(struct maker *k,
                             void (*run)(struct machine *, union slot *, const struct slow *));

static inline const struct qt_node *node_at(const struct maker *k, uint32_t node)
{
    return &k->f->nodes[node];
}
static inline uint32_t operand(const struct maker *k, uint32_t node, uint32_t position)
{
    return k->f->nodes[node].operands[position].index;
}
static inline jl_type operand_type(const struct maker *k, uint32_t node, uint32_t position)
{
    return k->f->nodes[operand(k, node, position)].type;
}
/* The slot of a value. */
uint32_t               jl_run_slot(const struct maker *k, uint32_t node);
static inline uint32_t slot_of(const struct maker *k, uint32_t node, uint32_t position)
{
    return jl_run_slot(k, operand(k, node, position));
}
/* The slots of operands from `first` on. */
const uint16_t *jl_run_slots(struct maker *k, uint32_t node, uint32_t first, uint32_t count);

/* Whether an operand can stand in the instruction, and its number. */
bool                  jl_run_is_constant(const struct maker *k, uint32_t user, uint32_t position);
static inline int64_t constant(const struct maker *k, uint32_t node, uint32_t position)
{
    return k->f->nodes[operand(k, node, position)].literal;
}
static inline bool is_compare(unsigned op) { return op >= QT_Eq && op <= QT_Le; }

#endif

/* SPDX-License-Identifier: MIT */
/* What the files of this room share. */
#ifndef JANUSRT_LANG_QTJIR_INNER_H
#define JANUSRT_LANG_QTJIR_INNER_H

#include "qtjir/qtjir.h"

extern const char *const qt_level_names[3];
extern const char *const qt_tenancy_names[4];
extern const char *const qt_profile_names[4];
extern const char *const qt_budget_fields[5];

/* The opcodes at which control may go from CPU_Serial to CPU_Parallel. */
bool qt_may_cross(enum qt_op op);
/* The position of the function among the operands; UINT32_MAX: the opcode has none. */
uint32_t qt_function_at(enum qt_op op);
/* The position of the first block, and how many there are. */
uint32_t             qt_blocks_at(enum qt_op op, uint32_t *count);
enum qt_operand_kind qt_kind_at(enum qt_op op, uint32_t position);
/* Words of names: letters, digits, `_`, `.`, `$` and bytes of UTF-8. */
bool qt_is_word(const char *text, bool digits_first);
bool qt_is_word_byte(unsigned char c);

/* From a scope and an interned name to a number, 0 at first. */
struct qt_map {
    struct qt_map_slot *slots;
    uint32_t            count, room;
};
uint32_t *qt_map_at(struct jl_arena *arena, struct qt_map *map, uint32_t scope, const char *name,
                    bool *is_new);
uint32_t  qt_map_get(const struct qt_map *map, uint32_t scope, const char *name);

/* "task i64", "start Counter", "nursery": as the text form writes a type. */
void        qt_print_type(const struct jl_types *types, jl_type type, FILE *out);
const char *qt_type_text(const struct qt_module *module, jl_type type);

/* Whether a variable, a field, an element or a message may have the type. */
bool qt_is_storable(const struct jl_types *types, jl_type type);
/* Whether a value of the type holds a task handle. */
bool qt_holds_task(const struct qt_module *module, jl_type type);
/* Whether values of the type may go to another task, which gets a copy. */
bool qt_may_travel(const struct qt_module *module, jl_type type);
struct qt_task_types {
    uint8_t  *holds; /* by type; the first `count` are known */
    uint32_t  count;
    uint32_t *weights; /* of types that may travel; 0: not known */
    uint32_t  weight_count;
};

/* Whether the operands' number, kinds and indexes are right. */
bool qt_shape_holds(const struct qt_module *module, uint32_t function, uint32_t node,
                    const char **why);

/* The rules of one group of opcodes. They return BAD and set the sentence, or the type. */
struct qt_rule {
    const struct qt_module   *module;
    const struct qt_function *function;
    const struct qt_node     *node;
    const char               *why;
};
jl_type                                       qt_rule_data(struct qt_rule *r);
jl_type                                       qt_rule_call(struct qt_rule *r);
jl_type                                       qt_rule_task(struct qt_rule *r);
jl_type                                       qt_rule_actor(struct qt_rule *r);
__attribute__((format(printf, 2, 3))) jl_type qt_refuse(struct qt_rule *r, const char *format, ...);
jl_type qt_operand_type(const struct qt_rule *r, uint32_t position);
/* Whether an operand has a type; if not, the sentence says it. */
bool qt_wants(struct qt_rule *r, uint32_t position, jl_type type);
/* Whether operands from `first` on, `count` of them, have the types. */
bool qt_wants_all(struct qt_rule *r, uint32_t first, uint32_t count, const jl_type *types,
                  uint32_t type_count, const char *what);

/* "%4 Nursery_End %1", in the module's arena. */
const char *qt_node_text(const struct qt_module *module, uint32_t function, uint32_t node);
/* numbers[node]: the number that the text shows, or 0. */
uint32_t *qt_number_nodes(const struct qt_module *module, const struct qt_function *f);
void      qt_print_node(const struct qt_module *module, const struct qt_function *f,
                        const uint32_t *numbers, uint32_t node, FILE *out);

/*
 * The flow graph of a function. Blocks that the entry does not reach have order UINT32_MAX. The
 * arrays are malloced together and freed by qt_flow_free.
 */
struct qt_flow {
    uint32_t  count, reached;
    uint32_t *order;         /* position of a block in reverse postorder */
    uint32_t *sequence;      /* blocks in reverse postorder */
    uint32_t *idom;          /* the immediate dominator; of the entry: itself */
    uint32_t *enter, *leave; /* intervals in the dominator tree */
    uint32_t *preds;         /* number of edges into a block */
};
bool qt_flow_make(const struct qt_function *f, struct qt_flow *flow);
void qt_flow_free(struct qt_flow *flow);
/* Whether every path to `block` goes through `by`. Both are reached. */
bool     qt_dominates(const struct qt_flow *flow, uint32_t by, uint32_t block);
uint32_t qt_successors(const struct qt_function *f, uint32_t block, uint32_t out[2]);

/* Verifying. */
struct qt_check {
    struct qt_module   *module;
    struct qt_function *f;
    uint32_t            function;
    struct qt_flow      flow;
    uint32_t           *block_of; /* by node; UINT32_MAX: in no block */
    uint32_t           *place_of; /* by node: position in its block */
    const char         *why;
};
/* Refuses: sets the sentence and returns false. node UINT32_MAX: the function; function
 * UINT32_MAX: the module. */
__attribute__((format(printf, 4, 5))) bool qt_broken(struct qt_check *c, const char *rule,
                                                     uint32_t node, const char *format, ...);
bool                                       qt_check_module(struct qt_check *c);
bool                                       qt_check_head(struct qt_check *c);
bool                                       qt_check_nodes(struct qt_check *c);
bool                                       qt_check_uses(struct qt_check *c);
bool                                       qt_check_scopes(struct qt_check *c);
bool                                       qt_check_handles(struct qt_check *c);
bool                                       qt_check_budget(struct qt_check *c);
bool                                       qt_check_tenancy(struct qt_check *c);

#endif

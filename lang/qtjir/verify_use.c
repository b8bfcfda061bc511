/* SPDX-License-Identifier: MIT */
/* Rules of uses: reachability, definitions before uses, values that can fail, variables. */
#include "qtjir/inner.h"

/* Whether `value` is known wherever `user` stands. */
static bool is_defined(const struct qt_check *c, uint32_t value, uint32_t user)
{
    uint32_t from = c->block_of[value], to = c->block_of[user];
    if (from == UINT32_MAX) return c->f->nodes[value].op == QT_Param;
    if (from == to) return c->place_of[value] < c->place_of[user];
    return qt_dominates(&c->flow, from, to);
}

static bool has_nursery_use(enum qt_op op)
{
    return op == QT_Nursery_End || op == QT_Nursery_Await || op == QT_Nursery_Cancel ||
           op == QT_Task_Create;
}

/* Q2016 to Q2018: what a value of some kind may be used for. */
static bool check_use(struct qt_check *c, const struct qt_node *value, uint32_t user, uint32_t at)
{
    enum qt_op   op = (enum qt_op)c->f->nodes[user].op;
    enum jl_kind kind = jl_kind_of(c->module->types, value->type);
    if (value->op == QT_Local && !(at == 0 && (op == QT_Load || op == QT_Store)))
        return qt_broken(c, "Q2016 variables", user, "a Local is used by Load and Store only");
    if (at == 0 && (op == QT_Load || op == QT_Store) && value->op != QT_Local)
        return qt_broken(c, "Q2016 variables", user, "operand 1 is no Local");
    if (kind == JL_FALLIBLE && op != QT_Branch_Error && op != QT_Error_Of && op != QT_Value_Of)
        return qt_broken(c, "Q2017 fallible", user, "operand %u can fail and was not branched on",
                         at + 1);
    if (kind == JL_NURSERY && !has_nursery_use(op))
        return qt_broken(c, "Q2018 handles", user, "a nursery is no value");
    if (kind == JL_START && op != QT_Supervisor_Spawn)
        return qt_broken(c, "Q2018 handles", user, "an actor's start is for Supervisor_Spawn only");
    bool spawned =
        value->op == QT_Spawn || (value->op == QT_Task_Create && (value->flags & QT_F_ASYNC) == 0);
    if (kind == JL_TASK && spawned)
        return qt_broken(c, "Q2018 handles", user, "what Spawn gives has no use");
    return true;
}

/* branches[value]: 1 + its Branch_Error. There is one at most, so a look-up is enough. */
static bool find_branches(struct qt_check *c, uint32_t *branches)
{
    for (uint32_t b = 0; b < c->f->block_count; b++) {
        uint32_t              last = c->f->blocks[b].nodes[c->f->blocks[b].count - 1];
        const struct qt_node *n = &c->f->nodes[last];
        if (n->op != QT_Branch_Error) continue;
        if (branches[n->operands[0].index] != 0)
            return qt_broken(c, "Q2017 fallible", last, "operand 1 was branched on before");
        if (n->operands[1].index == n->operands[2].index)
            return qt_broken(c, "Q2017 fallible", last, "both ways lead to one block");
        branches[n->operands[0].index] = last + 1;
    }
    return true;
}

/* Whether each path to `user` took the edge of the Branch_Error that `user` is for. */
static bool is_after_branch(const struct qt_check *c, uint32_t value, uint32_t user,
                            const uint32_t *branches)
{
    if (branches[value] == 0) return false;
    const struct qt_node *n = &c->f->nodes[branches[value] - 1];
    uint32_t              head = n->operands[c->f->nodes[user].op == QT_Error_Of ? 1 : 2].index;
    return head != 0 && c->flow.preds[head] == 1 && qt_dominates(&c->flow, head, c->block_of[user]);
}

static bool check_operands(struct qt_check *c, uint32_t user, const uint32_t *branches)
{
    const struct qt_node *n = &c->f->nodes[user];
    for (uint32_t i = 0; i < n->operand_count; i++) {
        if (n->operands[i].kind != QT_NODE) continue;
        uint32_t value = n->operands[i].index;
        if (!is_defined(c, value, user))
            return qt_broken(c, "Q2015 dominance", user,
                             "operand %u is not defined on every path to here", i + 1);
        if (!check_use(c, &c->f->nodes[value], user, i)) return false;
    }
    if (n->op != QT_Error_Of && n->op != QT_Value_Of) return true;
    return is_after_branch(c, n->operands[0].index, user, branches) ||
           qt_broken(c, "Q2017 fallible", user, "no Branch_Error of operand 1 leads here");
}

bool qt_check_uses(struct qt_check *c)
{
    const struct qt_function *f = c->f;
    for (uint32_t b = 0; b < f->block_count; b++)
        if (c->flow.order[b] == UINT32_MAX)
            return qt_broken(c, "Q2014 reachable", UINT32_MAX, "no path leads to bb%u", b);
    uint32_t *branches = jl_new(c->module->arena, ((size_t)f->node_count + 1) * sizeof *branches);
    if (!find_branches(c, branches)) return false;
    for (uint32_t b = 0; b < f->block_count; b++)
        for (uint32_t i = 0; i < f->blocks[b].count; i++)
            if (!check_operands(c, f->blocks[b].nodes[i], branches)) return false;
    return true;
}

/* Q2025: handles of tasks stay in the nursery in which they were made. */

/* Whether the nursery `inner` (1 + node, or 0) lies in `outer`, or is it. */
static bool lies_in(const struct qt_check *c, uint32_t inner, uint32_t outer)
{
    for (; outer != 0 && inner != outer; inner = c->f->nodes[inner - 1].scope)
        if (inner == 0) return false;
    return true;
}

static bool may_hold(enum qt_op op)
{
    switch (op) {
    case QT_Await:
    case QT_Task_Join:
    case QT_Store:
    case QT_Load:
    case QT_Struct_New:
    case QT_Field_Get:
    case QT_Field_With:
    case QT_Slice_Of:
    case QT_Slice_Len:
    case QT_Slice_Get:
    case QT_Slice_Part:
    case QT_Call: return true;
    default: return false;
    }
}

static bool check_handle(struct qt_check *c, uint32_t user, uint32_t at)
{
    const struct qt_node *n = &c->f->nodes[user], *value = &c->f->nodes[n->operands[at].index];
    const char           *rule = "Q2025 task-handles";
    if (!qt_holds_task(c->module, value->type)) return true;
    if (!may_hold((enum qt_op)n->op))
        return qt_broken(c, rule, user, "a handle of a task cannot leave its function");
    if (!lies_in(c, n->scope, value->scope))
        return qt_broken(c, rule, user, "the nursery of the task has ended");
    if (n->op == QT_Store && at == 1 &&
        !lies_in(c, c->f->nodes[n->operands[0].index].scope, value->scope))
        return qt_broken(c, rule, user, "the variable outlives the nursery of the task");
    return true;
}

bool qt_check_handles(struct qt_check *c)
{
    if (qt_holds_task(c->module, c->f->result))
        return qt_broken(c, "Q2025 task-handles", UINT32_MAX,
                         "a handle of a task cannot leave its function");
    for (uint32_t b = 0; b < c->f->block_count; b++)
        for (uint32_t i = 0; i < c->f->blocks[b].count; i++) {
            uint32_t user = c->f->blocks[b].nodes[i];
            for (uint32_t k = 0; k < c->f->nodes[user].operand_count; k++)
                if (c->f->nodes[user].operands[k].kind == QT_NODE && !check_handle(c, user, k))
                    return false;
        }
    return true;
}

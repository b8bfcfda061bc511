/* SPDX-License-Identifier: MIT */
/* Register code of jumps, calls and payments. */
#include "run/make.h"

#include <string.h>

/* The opposite of a branch; the two operands of Lt and Le change places. */
static unsigned opposite(unsigned op, bool *swap)
{
    *swap = op == R_BrLt || op == R_BrLe;
    switch (op) {
    case R_BrEq: return R_BrNe;
    case R_BrNe: return R_BrEq;
    case R_BrLt: return R_BrLe;
    case R_BrLe: return R_BrLt;
    case R_BrEqK: return R_BrNeK;
    case R_BrNeK: return R_BrEqK;
    case R_BrLtK: return R_BrGeK;
    case R_BrLeK: return R_BrGtK;
    case R_BrGtK: return R_BrLeK;
    case R_BrGeK: return R_BrLtK;
    case R_BrIf: return R_BrNot;
    default: return R_BrIf;
    }
}

/* A branch to `then`, or on to the next cell or to `other`. */
static void put_branch(struct maker *k, unsigned op, uint32_t a, uint32_t b, uint32_t then,
                       uint32_t other)
{
    bool swap;
    if (then == k->block + 1) {
        uint32_t way = then;
        then = other;
        other = way;
        op = opposite(op, &swap);
        if (swap) way = a, a = b, b = way;
    }
    jl_run_jump(k, jl_run_put(k, op, a, b, 0), then);
    if (other != k->block + 1) jl_run_jump(k, jl_run_put(k, R_Jump, 0, 0, 0), other);
}

static void put_compared(struct maker *k, uint32_t cond, uint32_t then, uint32_t other)
{
    static const uint8_t slots[] = {R_BrEq, R_BrNe, R_BrLt, R_BrLe};
    static const uint8_t right[] = {R_BrEqK, R_BrNeK, R_BrLtK, R_BrLeK};
    static const uint8_t left[] = {R_BrEqK, R_BrNeK, R_BrGtK, R_BrGeK};
    unsigned             which = (unsigned)(node_at(k, cond)->op - QT_Eq);
    if (jl_run_is_constant(k, cond, 1))
        put_branch(k, right[which], slot_of(k, cond, 0), (uint16_t)constant(k, cond, 1), then,
                   other);
    else if (jl_run_is_constant(k, cond, 0))
        put_branch(k, left[which], slot_of(k, cond, 1), (uint16_t)constant(k, cond, 0), then,
                   other);
    else
        put_branch(k, slots[which], slot_of(k, cond, 0), slot_of(k, cond, 1), then, other);
}

static void put_pay(struct maker *k, int64_t ops)
{
    k->pay = false;
    for (; ops > INT32_MAX; ops -= INT32_MAX) jl_run_put(k, R_Pay, 0, 0, INT32_MAX);
    if (ops > 0) jl_run_put(k, R_Pay, 0, 0, (int32_t)ops);
}

/* Whether `block` is made and is one comparison with a branch: a loop's head. */
static const struct cell *head_of(const struct maker *k, uint32_t block)
{
    if (block > k->block || k->starts[block] == k->code->cell_count) return NULL;
    const struct cell *c = &k->code->cells[k->starts[block]];
    return c->op >= R_BrEq && c->op <= R_BrGeK ? c : NULL;
}

/*
 * Back to the head of a loop. The head's comparison stands here once more, with the payment, so
 * that a round has one instruction for both.
 */
static void put_back(struct maker *k, uint32_t target)
{
    const struct cell *head = head_of(k, target);
    uint32_t           last, first;
    if (head == NULL) {
        jl_run_jump(k, jl_run_put(k, R_PayJump, 0, 0, 0), target);
        return;
    }
    const struct qt_block *b = &k->f->blocks[target];
    last = b->nodes[b->count - 1];
    uint32_t then = operand(k, last, 1), other = operand(k, last, 2);
    unsigned op = (unsigned)head->op;
    bool     swap;
    uint32_t x = head->a, y = head->b;
    /* The head's branch may be the opposite: it goes on to the block behind it. */
    first = then == target + 1 ? other : then;
    if (first != then) {
        op = opposite(op, &swap);
        if (swap) x = head->b, y = head->a;
    }
    jl_run_jump(k, jl_run_put(k, op - R_BrEq + R_PayBrEq, x, y, 0), then);
    jl_run_jump(k, jl_run_put(k, R_Jump, 0, 0, 0), other);
}

static void put_jump(struct maker *k, uint32_t target)
{
    bool pay = k->pay;
    k->pay = false;
    if (pay)
        put_back(k, target);
    else if (target != k->block + 1)
        jl_run_jump(k, jl_run_put(k, R_Jump, 0, 0, 0), target);
}

static void put_return(struct maker *k, uint32_t node)
{
    bool fails = k->f->fails;
    if (node_at(k, node)->operand_count == 0) {
        jl_run_put(k, fails ? R_RetOk0 : R_Ret0, 0, 0, 0);
        return;
    }
    if (jl_run_is_constant(k, node, 0)) {
        jl_run_put(k, R_RetK, 0, 0, (int32_t)constant(k, node, 0));
        return;
    }
    uint32_t words = jl_run_words(k->types, k->f->result), from = slot_of(k, node, 0);
    uint32_t value = operand(k, node, 0);
    if (!fails && node_at(k, value)->op == QT_Add && k->plans[value].uses == 1 &&
        k->plans[value].block == k->block && k->plans[value].position + 1 == k->position) {
        struct cell *last = &k->code->cells[k->code->cell_count - 1];
        if (last->op == R_Add && last->a == from) { /* the sum is what is returned */
            last->op = R_RetAdd;
            return;
        }
    }
    if (words == 1)
        jl_run_put(k, fails ? R_RetOk1 : R_Ret1, from, 0, 0);
    else
        jl_run_put(k, fails ? R_RetOkN : R_RetN, from, 0, (int32_t)words);
}

/* Arguments that were not computed in their place are moved there. */
static void put_argument(struct maker *k, uint32_t node, uint32_t position, uint32_t slot)
{
    uint32_t value = operand(k, node, position);
    if (jl_run_is_constant(k, node, position))
        jl_run_constant(k, slot, node_at(k, value)->literal);
    else
        jl_run_move(k, slot, jl_run_slot(k, value),
                    jl_run_words(k->types, node_at(k, value)->type));
}

void jl_run_make_call(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    uint32_t              to = k->plans[node].slot == NO_SLOT ? 0 : k->plans[node].slot, at = 0;
    bool                  pay = k->pay;
    k->pay = false;
    if (n->op == QT_Call) {
        const struct fn *callee = &k->code->functions[n->operands[0].index];
        for (uint32_t i = 1; i < n->operand_count; i++)
            put_argument(k, node, i, k->fn->base + callee->params[i - 1].slot);
        jl_run_put(k, pay ? R_CallPay : R_Call, to, k->fn->base, 0);
        uint32_t cell = jl_run_put(k, 0, 0, 0, 0);
        k->code->cells[cell].fn = callee;
        return;
    }
    if (pay) put_pay(k, 1);
    for (uint32_t i = 1; i < n->operand_count; i++) {
        put_argument(k, node, i, k->fn->base + at);
        at += jl_run_words(k->types, operand_type(k, node, i));
    }
    jl_run_put(k, R_CallValue, to, k->fn->base, (int32_t)slot_of(k, node, 0));
    jl_run_put(k, R_Stuck, 0, 0, 0); /* calls return behind two cells */
}

/* Whether the payment at this position belongs to the call or jump that follows. */
static bool is_joined(const struct maker *k, int64_t ops)
{
    const struct qt_block *b = &k->f->blocks[k->block];
    uint32_t               i = k->position + 1;
    if (ops != 1) return false;
    while (i < b->count && node_at(k, b->nodes[i])->op == QT_Budget_Check) i++;
    unsigned op = i < b->count ? node_at(k, b->nodes[i])->op : (unsigned)QT_Unreachable;
    return op == QT_Call || op == QT_Call_Value || op == QT_Jump;
}

bool jl_run_make_control(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    switch (n->op) {
    case QT_Budget_Check: return true;
    case QT_Budget_Decrement:
        if (is_joined(k, n->literal))
            k->pay = true;
        else
            put_pay(k, n->literal);
        return true;
    case QT_Jump: put_jump(k, operand(k, node, 0)); return true;
    case QT_Branch:
        if (k->plans[operand(k, node, 0)].fused)
            put_compared(k, operand(k, node, 0), operand(k, node, 1), operand(k, node, 2));
        else
            put_branch(k, R_BrIf, slot_of(k, node, 0), 0, operand(k, node, 1), operand(k, node, 2));
        return true;
    case QT_Branch_Error:
        put_branch(k, R_BrIf, slot_of(k, node, 0), 0, operand(k, node, 1), operand(k, node, 2));
        return true;
    case QT_Return: put_return(k, node); return true;
    case QT_Fail:
        if (!jl_run_make_slow(k, node)) return false;
        jl_run_put(k, R_RetError, slot_of(k, node, 0), 0, 0);
        return true;
    case QT_Unreachable: jl_run_put(k, R_Stuck, 0, 0, 0); return true;
    default: jl_run_make_call(k, node); return true;
    }
}

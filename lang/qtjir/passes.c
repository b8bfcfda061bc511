/* SPDX-License-Identifier: MIT */
/* Passes: High to Mid, Mid to Low, and tenancies. */
#include "qtjir/inner.h"

#include <string.h>

/* A new node of the function that lies in no block yet. */
static uint32_t loose_node(struct qt_module *m, struct qt_function *f, enum qt_op op, jl_type type,
                           const struct qt_node *like)
{
    struct qt_node *n = &JL_PUSH(m->arena, f->nodes, f->node_count, f->node_room);
    n->op = (uint8_t)op;
    n->type = type;
    n->tenancy = qt_usual_tenancy(f, op);
    if (like != NULL) {
        n->line = like->line;
        n->column = like->column;
        n->scope = like->scope;
    }
    return f->node_count - 1;
}

static void put(struct qt_module *m, struct qt_block *b, uint32_t node)
{
    JL_PUSH(m->arena, b->nodes, b->count, b->room) = node;
}

static void put_budget(struct qt_module *m, struct qt_function *f, struct qt_block *b,
                       uint32_t before, bool pay, uint32_t interval)
{
    struct qt_node like = f->nodes[before];
    if (pay) {
        uint32_t node = loose_node(m, f, QT_Budget_Decrement, JL_VOID, &like);
        f->nodes[node].literal = 1;
        put(m, b, node);
    }
    uint32_t node = loose_node(m, f, QT_Budget_Check, JL_VOID, &like);
    f->nodes[node].literal = interval;
    put(m, b, node);
}

/*
 * An edge that goes back in the walk's order closes a cycle. The payment stands at its end, before
 * the terminator, if that is a Jump. Else the edge gets a block of its own.
 */
static void pay_edges(struct qt_module *m, uint32_t function, const struct qt_flow *flow)
{
    struct qt_function *f = &m->functions[function];
    uint32_t            blocks = f->block_count;
    for (uint32_t b = 0; b < blocks; b++) {
        uint32_t last = f->blocks[b].nodes[f->blocks[b].count - 1];
        uint32_t count, first = qt_blocks_at((enum qt_op)f->nodes[last].op, &count);
        for (uint32_t i = first; i < first + count; i++) {
            uint32_t target = f->nodes[last].operands[i].index;
            if (flow->order[target] > flow->order[b]) continue;
            if (count == 1) {
                f->blocks[b].count--;
                put_budget(m, f, &f->blocks[b], last, true, m->interval);
                put(m, &f->blocks[b], last);
                continue;
            }
            uint32_t edge = qt_add_block(m, function);
            put_budget(m, f, &f->blocks[edge], last, true, m->interval);
            struct qt_node like = f->nodes[last];
            uint32_t       jump = loose_node(m, f, QT_Jump, JL_VOID, &like);
            qt_add_operand(m, function, jump, QT_BLOCK, target);
            put(m, &f->blocks[edge], jump);
            f->nodes[last].operands[i].index = edge & 0x3fffffffu;
        }
    }
}

static bool pays_for_itself(enum qt_op op)
{
    return op == QT_Spawn || op == QT_Async_Call || op == QT_Task_Create;
}

static bool is_paid_call(enum qt_op op)
{
    return op == QT_Call || op == QT_Call_Value || op == QT_Call_Host || op == QT_Interface_Call;
}

static void pay_calls(struct qt_module *m, struct qt_function *f)
{
    for (uint32_t b = 0; b < f->block_count; b++) {
        struct qt_block old = f->blocks[b], fresh = {0};
        for (uint32_t i = 0; i < old.count; i++) {
            enum qt_op op = (enum qt_op)f->nodes[old.nodes[i]].op;
            if (is_paid_call(op) || pays_for_itself(op))
                put_budget(m, f, &fresh, old.nodes[i], is_paid_call(op), 0);
            put(m, &fresh, old.nodes[i]);
        }
        f->blocks[b] = fresh;
    }
}

bool qt_insert_budget(struct qt_module *module, const char **why)
{
    if (module->level != QT_HIGH) {
        *why = "the module has budget operations already";
        return false;
    }
    if (module->interval == 0) {
        *why = "the interval must not be 0";
        return false;
    }
    for (uint32_t i = 0; i < module->function_count; i++) {
        struct qt_flow flow;
        if (!qt_flow_make(&module->functions[i], &flow)) {
            *why = "memory was refused";
            return false;
        }
        pay_edges(module, i, &flow);
        qt_flow_free(&flow);
        pay_calls(module, &module->functions[i]);
    }
    module->level = QT_MID;
    return qt_verify(module, why);
}

/* Mid to Low. */

static void make_create(struct qt_module *m, uint32_t function, uint32_t node, uint32_t budget)
{
    struct qt_node  old = m->functions[function].nodes[node];
    struct qt_node *n = &m->functions[function].nodes[node];
    if (old.op == QT_Async_Call) n->flags |= QT_F_ASYNC;
    n->op = QT_Task_Create;
    n->operands = NULL;
    n->operand_count = 0;
    qt_add_operand(m, function, node, QT_NODE, old.scope - 1);
    qt_add_operand(m, function, node, QT_FUNCTION, old.operands[0].index);
    qt_add_operand(m, function, node, QT_NODE, budget);
    for (uint32_t i = 1; i < old.operand_count; i++)
        qt_add_operand(m, function, node, QT_NODE, old.operands[i].index);
}

static void lower_block(struct qt_module *m, uint32_t function, uint32_t block)
{
    struct qt_function *f = &m->functions[function];
    struct qt_block     old = f->blocks[block], fresh = {0};
    for (uint32_t i = 0; i < old.count; i++) {
        uint32_t node = old.nodes[i], budget;
        switch (f->nodes[node].op) {
        case QT_Spawn:
        case QT_Async_Call: {
            /* Budget_Check stays directly before the call that it belongs to. */
            struct qt_node like = f->nodes[node];
            budget = loose_node(m, f, QT_Budget_Default, JL_BUDGET, &like);
            uint32_t check = fresh.count > 0 ? fresh.nodes[--fresh.count] : node;
            put(m, &fresh, budget);
            if (check != node) put(m, &fresh, check);
            make_create(m, function, node, budget);
            break;
        }
        case QT_Await: f->nodes[node].op = QT_Task_Join; break;
        case QT_Nursery_Begin: f->nodes[node].op = QT_Nursery_Open; break;
        case QT_Nursery_End: f->nodes[node].op = QT_Nursery_Await; break;
        default: break;
        }
        put(m, &fresh, node);
    }
    f->blocks[block] = fresh;
}

bool qt_lower_tasks(struct qt_module *module, const char **why)
{
    if (module->level != QT_MID) {
        *why = "only level Mid becomes Low";
        return false;
    }
    if (!qt_verify(module, why)) return false;
    for (uint32_t i = 0; i < module->function_count; i++)
        for (uint32_t b = 0; b < module->functions[i].block_count; b++) lower_block(module, i, b);
    module->level = QT_LOW;
    return qt_verify(module, why);
}

/* Tenancies. */

static void mark(struct qt_module *m, uint32_t function, uint32_t *queue, uint32_t *count)
{
    struct qt_function *f = &m->functions[function];
    if (f->tenancy == QT_CPU_PARALLEL) return;
    f->tenancy = QT_CPU_PARALLEL;
    queue[(*count)++] = function;
}

/* Functions that start tasks, or may be carried into one. */
static void mark_called(struct qt_module *m, uint32_t function, bool all, uint32_t *queue,
                        uint32_t *count)
{
    for (uint32_t i = 0; i < m->functions[function].node_count; i++) {
        const struct qt_node *n = &m->functions[function].nodes[i];
        uint32_t              at = qt_function_at((enum qt_op)n->op);
        if (at == UINT32_MAX || at >= n->operand_count) continue;
        bool carried = n->op == QT_Closure_New && m->profile != 0;
        if (all || carried || qt_may_cross((enum qt_op)n->op))
            mark(m, n->operands[at].index, queue, count);
    }
}

void qt_place_tenancies(struct qt_module *module)
{
    uint32_t *queue = jl_new(module->arena, ((size_t)module->function_count + 1) * sizeof *queue);
    uint32_t  count = 0;
    for (uint32_t i = 0; i < module->function_count; i++)
        module->functions[i].tenancy = QT_CPU_SERIAL;
    for (uint32_t i = 0; i < module->function_count; i++) {
        if (module->functions[i].actor != 0) mark(module, i, queue, &count);
        mark_called(module, i, false, queue, &count);
    }
    for (uint32_t k = 0; k < count; k++) mark_called(module, queue[k], true, queue, &count);
    for (uint32_t i = 0; i < module->function_count; i++) {
        struct qt_function *f = &module->functions[i];
        for (uint32_t n = 0; n < f->node_count; n++)
            f->nodes[n].tenancy = qt_usual_tenancy(f, (enum qt_op)f->nodes[n].op);
    }
}

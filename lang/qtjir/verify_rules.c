/* SPDX-License-Identifier: MIT */
/* Rules of tenancies, of profile core, and of budget operations. */
#include "qtjir/inner.h"

/* Q2026 to Q2028. */

static bool check_node_tenancy(struct qt_check *c, uint32_t node)
{
    const struct qt_node *n = &c->f->nodes[node];
    if (n->tenancy > QT_CPU_PARALLEL)
        return qt_broken(c, "Q2026 back-end", node, "there is no back end for %s",
                         qt_tenancy_names[n->tenancy & 3]);
    if (n->tenancy != qt_usual_tenancy(c->f, (enum qt_op)n->op))
        return qt_broken(c, "Q2027 crossing", node,
                         "control changes tenancy only at Spawn, Task_Create, Async_Call and the "
                         "opcodes of actors");
    uint32_t at = qt_function_at((enum qt_op)n->op);
    if (at != UINT32_MAX) {
        const struct qt_function *f = &c->module->functions[n->operands[at].index];
        bool starts = qt_may_cross((enum qt_op)n->op) || c->f->tenancy == QT_CPU_PARALLEL;
        if (starts && f->tenancy == QT_CPU_SERIAL)
            return qt_broken(c, "Q2027 crossing", node, "@%s runs in tasks, but is CPU_Serial",
                             f->name);
    }
    if (c->module->profile == 0 && (qt_ops[n->op].flags & QT_CONCURRENT) != 0)
        return qt_broken(c, "Q2028 core", node, "profile core has no concurrency");
    return true;
}

bool qt_check_tenancy(struct qt_check *c)
{
    if (c->f->tenancy > QT_CPU_PARALLEL)
        return qt_broken(c, "Q2026 back-end", UINT32_MAX, "there is no back end for %s",
                         qt_tenancy_names[c->f->tenancy & 3]);
    if (c->f->actor != 0 && c->f->tenancy != QT_CPU_PARALLEL)
        return qt_broken(c, "Q2027 crossing", UINT32_MAX,
                         "it belongs to an actor, but is CPU_Serial");
    for (uint32_t b = 0; b < c->f->block_count; b++)
        for (uint32_t i = 0; i < c->f->blocks[b].count; i++)
            if (!check_node_tenancy(c, c->f->blocks[b].nodes[i])) return false;
    return true;
}

/* Q2029, Q2030. Budget operations stand as pairs: Budget_Decrement n, Budget_Check. */

static const struct qt_node *before(const struct qt_check *c, uint32_t block, uint32_t place,
                                    uint32_t back)
{
    if (place < back) return NULL;
    return &c->f->nodes[c->f->blocks[block].nodes[place - back]];
}

/* Whether a pair ends at `place`, and pays for something. */
static bool pays(const struct qt_check *c, uint32_t block, uint32_t place)
{
    const struct qt_node *check = before(c, block, place, 0), *pay = before(c, block, place, 1);
    return check->op == QT_Budget_Check && pay != NULL && pay->op == QT_Budget_Decrement &&
           pay->literal > 0;
}

static bool block_pays(const struct qt_check *c, uint32_t block)
{
    for (uint32_t i = 0; i < c->f->blocks[block].count; i++)
        if (pays(c, block, i)) return true;
    return false;
}

static bool check_calls(struct qt_check *c)
{
    for (uint32_t b = 0; b < c->f->block_count; b++)
        for (uint32_t i = 0; i < c->f->blocks[b].count; i++) {
            uint32_t              node = c->f->blocks[b].nodes[i];
            const struct qt_node *check = before(c, b, i, 1);
            bool                  right = true;
            switch (c->f->nodes[node].op) {
            case QT_Call:
            case QT_Call_Value:
            case QT_Call_Host:
            case QT_Interface_Call: right = i > 0 && pays(c, b, i - 1); break;
            case QT_Spawn:
            case QT_Async_Call:
            case QT_Task_Create: right = check != NULL && check->op == QT_Budget_Check; break;
            default: break;
            }
            if (!right)
                return qt_broken(c, "Q2030 budget-call", node,
                                 "no Budget_Check stands directly before it");
        }
    return true;
}

/* Blocks that pay are taken out; what is left must have no cycle. Kahn's way. */
static bool check_cycles(struct qt_check *c)
{
    uint32_t  count = c->f->block_count, left = 0, ready = 0, to[2];
    uint32_t *ways = jl_new(c->module->arena, 2 * (size_t)count * sizeof *ways);
    uint32_t *queue = ways + count;
    uint8_t  *paid = jl_new(c->module->arena, count);
    for (uint32_t b = 0; b < count; b++) paid[b] = block_pays(c, b);
    for (uint32_t b = 0; b < count; b++)
        for (uint32_t i = paid[b] ? 0 : qt_successors(c->f, b, to); i > 0; i--) ways[to[i - 1]]++;
    for (uint32_t b = 0; b < count; b++)
        if (!paid[b] && ++left > 0 && ways[b] == 0) queue[ready++] = b;
    for (uint32_t k = 0; k < ready; k++)
        for (uint32_t i = qt_successors(c->f, queue[k], to); i > 0; i--)
            if (--ways[to[i - 1]] == 0 && !paid[to[i - 1]]) queue[ready++] = to[i - 1];
    if (ready == left) return true;
    for (uint32_t b = 0; b < count; b++)
        if (!paid[b] && ways[b] > 0)
            return qt_broken(c, "Q2029 budget-cycle", UINT32_MAX,
                             "a cycle through bb%u has no Budget_Decrement and Budget_Check", b);
    return true;
}

bool qt_check_budget(struct qt_check *c) { return check_calls(c) && check_cycles(c); }

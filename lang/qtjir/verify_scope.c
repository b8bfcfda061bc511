/* SPDX-License-Identifier: MIT */
/* Rules of nurseries and defers: what is open at each place, on every path. */
#include "qtjir/inner.h"

#include <string.h>

/* The open nurseries are a chain: the innermost, and `scope` of its Begin node is the next. */
struct state {
    uint32_t nursery; /* 1 + node, or 0 */
    uint32_t defers;
    uint32_t depth; /* of nurseries */
};
static const uint32_t depth_max = 100;

static bool needs_nursery(enum qt_op op)
{
    return op == QT_Spawn || op == QT_Async_Call || op == QT_Task_Create ||
           op == QT_Supervisor_Spawn;
}

static bool is_open(const struct qt_check *c, uint32_t innermost, uint32_t nursery)
{
    for (; innermost != 0; innermost = c->f->nodes[innermost - 1].scope)
        if (innermost == nursery + 1) return true;
    return false;
}

static bool end_nursery(struct qt_check *c, uint32_t node, struct state *s)
{
    const char *rule = "Q2020 nursery-order";
    uint32_t    ended = c->f->nodes[node].operands[0].index;
    if (s->nursery == ended + 1) {
        s->nursery = c->f->nodes[ended].scope;
        s->depth--;
        return true;
    }
    if (is_open(c, s->nursery, ended))
        return qt_broken(c, rule, node, "it ends an outer nursery before an inner one");
    return qt_broken(c, rule, node, "the nursery is not open here");
}

static bool leave(struct qt_check *c, uint32_t node, const struct state *s)
{
    if (s->nursery != 0)
        return qt_broken(c, "Q2021 nursery-end", node, "the nursery of %s is still open",
                         qt_node_text(c->module, c->function, s->nursery - 1));
    if (s->defers != 0)
        return qt_broken(c, "Q2023 defers", node, "%u defers were not popped", s->defers);
    return true;
}

static bool step(struct qt_check *c, uint32_t node, struct state *s)
{
    struct qt_node *n = &c->f->nodes[node];
    n->scope = s->nursery;
    if (needs_nursery((enum qt_op)n->op) && s->nursery == 0)
        return qt_broken(c, "Q2019 nursery-open", node, "no nursery is open here");
    switch (n->op) {
    case QT_Nursery_Begin:
    case QT_Nursery_Open:
        s->nursery = node + 1;
        if (s->depth++ < depth_max) return true;
        return qt_broken(c, "Q2019 nursery-open", node, "too many nurseries are open");
    case QT_Nursery_End:
    case QT_Nursery_Await: return end_nursery(c, node, s);
    case QT_Nursery_Cancel:
        return is_open(c, s->nursery, n->operands[0].index) ||
               qt_broken(c, "Q2019 nursery-open", node, "the nursery is not open here");
    case QT_Task_Create:
        return s->nursery == (uint32_t)n->operands[0].index + 1 ||
               qt_broken(c, "Q2019 nursery-open", node, "operand 1 is not the innermost nursery");
    case QT_Defer_Push: s->defers++; return true;
    case QT_Defer_Pop:
        if (n->literal > (int64_t)s->defers)
            return qt_broken(c, "Q2023 defers", node, "only %u defers are pushed", s->defers);
        s->defers -= (uint32_t)n->literal;
        return true;
    case QT_Return:
    case QT_Fail: return leave(c, node, s);
    default: return true;
    }
}

static bool join(struct qt_check *c, uint32_t node, uint32_t target, const struct state *s,
                 struct state *at, uint8_t *seen)
{
    if (!seen[target]) {
        at[target] = *s;
        seen[target] = 1;
        return true;
    }
    if (at[target].nursery != s->nursery)
        return qt_broken(c, "Q2022 nursery-join", node,
                         "the paths into bb%u have different nurseries open", target);
    if (at[target].defers != s->defers)
        return qt_broken(c, "Q2023 defers", node,
                         "the paths into bb%u have different defers pushed", target);
    return true;
}

/* Blocks come in reverse postorder, so one way into each is known. The other ways must agree. */
bool qt_check_scopes(struct qt_check *c)
{
    struct qt_function *f = c->f;
    struct state       *at = jl_new(c->module->arena, f->block_count * sizeof *at);
    uint8_t            *seen = jl_new(c->module->arena, f->block_count);
    uint32_t            to[2];
    seen[0] = 1;
    for (uint32_t i = 0; i < f->node_count; i++) f->nodes[i].scope = 0;
    for (uint32_t i = 0; i < c->flow.reached; i++) {
        uint32_t               block = c->flow.sequence[i];
        const struct qt_block *b = &f->blocks[block];
        struct state           s = at[block];
        for (uint32_t k = 0; k < b->count; k++)
            if (!step(c, b->nodes[k], &s)) return false;
        uint32_t count = qt_successors(f, block, to);
        for (uint32_t k = 0; k < count; k++)
            if (!join(c, b->nodes[b->count - 1], to[k], &s, at, seen)) return false;
    }
    return true;
}

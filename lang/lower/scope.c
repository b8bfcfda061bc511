/* SPDX-License-Identifier: MIT */
/*
 * Ways out of blocks. Each nursery on the way is ended first, inner to outer, and then the defers
 * of its body run. An error that leaves a nursery's body cancels it, and goes on as it was.
 */
#include "lower/body.h"

void jl_low_enter(struct jl_body *body, struct jl_scope_of *scope)
{
    scope->outer = body->scope;
    body->scope = scope;
}

static void pop_defers(struct jl_body *body, const struct jl_scope_of *scope)
{
    if (!scope->defers) return;
    uint32_t node = jl_low_open(body, QT_Defer_Pop, JL_VOID);
    jl_low_node(body, node)->literal = scope->defers;
}

/* The scope must not be the present one any more. */
static void end_scope(struct jl_body *body, const struct jl_scope_of *scope)
{
    if (scope->nursery == JL_NO_NODE) {
        pop_defers(body, scope);
        return;
    }
    uint32_t result = jl_low_emit(body, QT_Nursery_End, 0, scope->nursery, JL_NO_NODE, JL_NO_NODE);
    pop_defers(body, scope);
    jl_low_unwrap(body, result);
}

void jl_low_close(struct jl_body *body)
{
    struct jl_scope_of *scope = body->scope;
    body->scope = scope->outer;
    if (!body->dead) end_scope(body, scope);
}

void jl_low_leave(struct jl_body *body, struct jl_scope_of *target)
{
    struct jl_scope_of *before = body->scope;
    while (body->scope != target) {
        struct jl_scope_of *scope = body->scope;
        body->scope = scope->outer;
        end_scope(body, scope);
    }
    body->scope = before;
}

void jl_low_fail(struct jl_body *body, uint32_t error)
{
    if (!body->fails) { /* the task's end ends its nurseries and runs its defers */
        jl_low_end(body, QT_End_Task, error);
        return;
    }
    for (const struct jl_scope_of *scope = body->scope; scope; scope = scope->outer) {
        if (scope->nursery != JL_NO_NODE) {
            jl_low_emit(body, QT_Nursery_Cancel, JL_VOID, scope->nursery, JL_NO_NODE, JL_NO_NODE);
            jl_low_emit(body, QT_Nursery_End, 0, scope->nursery, JL_NO_NODE, JL_NO_NODE);
        }
        pop_defers(body, scope);
    }
    jl_low_end(body, QT_Fail, error);
}

uint32_t jl_low_unwrap(struct jl_body *body, uint32_t node)
{
    if (node == JL_NO_NODE) return node;
    const struct jl_type_info *info = jl_info(body->types, jl_low_node(body, node)->type);
    if (info->kind != JL_FALLIBLE) return node;
    jl_type  value = info->of;
    uint32_t wrong = jl_low_new_block(body), right = jl_low_new_block(body);
    jl_low_branch(body, QT_Branch_Error, node, wrong, right);
    jl_low_start(body, wrong);
    jl_low_fail(body, jl_low_emit(body, QT_Error_Of, JL_ERROR, node, JL_NO_NODE, JL_NO_NODE));
    jl_low_start(body, right);
    if (value == JL_VOID || value == JL_NEVER) return JL_NO_NODE;
    return jl_low_emit(body, QT_Value_Of, value, node, JL_NO_NODE, JL_NO_NODE);
}

/* SPDX-License-Identifier: MIT */
/* Tasks: try, await, async, spawn, nurseries, channels. */
#include "meaning/check.h"

bool jl_not_in_defer(struct jl_checker *c, struct jl_span at, const char *word)
{
    if (c->frame->is_state) {
        JL_WRONG(c, "N1012", at, "`%s` cannot stand in the initial value of an actor's variable",
                 word)
            ->help = "begin with a plain value, and set it in a method";
        return false;
    }
    if (c->frame->function->kind != JL_F_DEFER) return true;
    JL_WRONG(c, "N1012", at, "`%s` cannot stand in a `defer`, which also runs after a cancel", word)
        ->help = "do it before the end of the block";
    return false;
}

bool jl_need_nursery(struct jl_checker *c, struct jl_span at, const char *word)
{
    if (!jl_need_tasks(c, at, word)) return false;
    if (!jl_not_in_defer(c, at, word)) return false;
    if (c->frame->nurseries) return true;
    bool around = false;
    for (const struct jl_frame *frame = c->frame->outer; frame; frame = frame->outer)
        around = around || frame->nurseries;
    JL_WRONG(c, "N1001", at, "`%s` stands outside of a nursery", word)->help =
        around ? "the nursery around this block belongs to another task: open one here with "
                 "`nursery do ... end`"
               : "write `nursery do ... end` around it; the nursery waits for the task";
    return false;
}

static struct jl_span keyword_of(const struct jl_expr *e, uint32_t length)
{
    return (struct jl_span){e->at.begin, e->at.begin + length};
}

/* try */

jl_type jl_check_try(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    struct jl_expr *left = e->left;
    if (!left) return JL_BAD;
    c->tried = left;
    if (left->kind == JL_E_SPAWN) left->try_spawn = true;
    jl_type type = jl_check_expr(c, left, wanted);
    c->tried = NULL;
    bool may = jl_not_in_defer(c, keyword_of(e, 3), "try");
    if (type == JL_BAD || left->kind == JL_E_SPAWN || left->kind == JL_E_AWAIT || !may) return type;
    if (jl_is_fallible(c, type)) return jl_info(c->types, type)->of;
    JL_WRONG(c, "T4013", e->at, "nothing after this `try` can fail")->help = "remove `try`";
    return type;
}

/* await */

static void report_no_task(struct jl_checker *c, const struct jl_expr *left, jl_type type)
{
    bool        is_call = left->kind == JL_E_CALL;
    const char *help = "await a handle of `async f(x)`, an async function or a channel";
    if (is_call && left->call == JL_CALL_FUNCTION)
        help = jl_format(c->arena, "remove `await`, or declare `async func %.60s`",
                         left->callee_function->name.text);
    else if (is_call)
        help = jl_is_fallible(c, type) ? "write `try` instead" : "remove `await`";
    JL_WRONG(c, "T4011", left->at,
             is_call ? "this call is no task, so nothing can be awaited"
                     : "`await` needs a task, but this is %s",
             jl_show(c, type))
        ->help = help;
}

static bool may_await(struct jl_checker *c, struct jl_expr *e)
{
    const struct jl_function *function = c->frame->function;
    struct jl_span            at = keyword_of(e, 5);
    if (!jl_need_tasks(c, at, "await") || !jl_not_in_defer(c, at, "await")) return false;
    if (function->is_async || function->kind == JL_F_UNIT || function->kind == JL_F_SPAWN)
        return true;
    struct jl_diagnostic *wrong =
        JL_WRONG(c, "N1002", at, "`await` stands in %s, which is not async",
                 function->kind == JL_F_CLOSURE ? "a closure" : jl_function_text(c, function));
    wrong->help = function->kind == JL_F_CLOSURE
                      ? "await before the closure, and use the value in it"
                      : jl_format(c->arena, "declare it as `async func %.60s`",
                                  function->name.text ? function->name.text : "?");
    return false;
}

/* Whether a call can be awaited. */
static bool is_awaitable(struct jl_checker *c, struct jl_expr *e, struct jl_expr *call)
{
    switch (call->call) {
    case JL_CALL_FUNCTION:
        if (!call->callee_function->is_async) return false;
        e->direct = c->frame->nurseries == 0 || !jl_crosses(c, call->callee_function->result_type);
        if (!e->direct) {
            call->callee_function->is_task = true;
            jl_add_effect(c, JL_EFFECT_SPAWN);
            jl_note_task(c, e, call, call->callee_function);
        }
        return true;
    case JL_CALL_SELF: e->direct = true; return call->callee_function->is_async;
    case JL_CALL_HOST: return c->host->entries[call->host].effects & JL_EFFECT_AWAIT;
    case JL_CALL_SEND:
    case JL_CALL_RECV:
    case JL_CALL_ACTOR_SEND:
    case JL_CALL_ACTOR_CALL: return true;
    default: return false;
    }
}

jl_type jl_check_await(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    struct jl_expr *left = e->left;
    if (!left) return JL_BAD;
    bool may = may_await(c, e);
    jl_add_effect(c, JL_EFFECT_AWAIT);
    jl_type type = jl_check_expr(c, left, wanted);
    if (type == JL_BAD || !may) return jl_value_type(c, type);
    if (left->kind == JL_E_CALL && is_awaitable(c, e, left)) return jl_value_type(c, type);
    if (jl_kind_of(c->types, type) == JL_TASK) return jl_info(c->types, type)->of;
    report_no_task(c, left, type);
    return JL_BAD;
}

/* spawn and async */

/* What a task may be given: a copy, not what belongs to its parent. */
static void check_crossing(struct jl_checker *c, const struct jl_expr *call)
{
    uint64_t bound = (uint64_t)1 << JL_TASK | 1u << JL_SUPERVISOR;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const struct jl_expr *value = call->args[i].value;
        if (!jl_holds(c, value->coerce ? value->coerce : value->type, bound)) continue;
        JL_WRONG(c, "T4031", value->at,
                 "%s belongs to the task that made it, so no other can use it",
                 jl_show(c, value->type))
            ->help = "give the task what it needs of it";
    }
}

jl_type jl_check_async(struct jl_checker *c, struct jl_expr *e)
{
    struct jl_expr *call = e->left;
    if (!call) return JL_BAD;
    jl_need_nursery(c, keyword_of(e, 5), "async");
    jl_add_effect(c, JL_EFFECT_SPAWN);
    c->starting = call;
    jl_type type = jl_value_type(c, jl_check_expr(c, call, 0));
    if (type == JL_BAD) return JL_BAD;
    if (call->kind != JL_E_CALL || call->call != JL_CALL_FUNCTION) {
        JL_WRONG(c, "T4014", call->at, "`async` takes a call of a function of this program")->help =
            "put the call into a function, and write `async f(x)`";
        return JL_BAD;
    }
    check_crossing(c, call);
    call->callee_function->is_task = true;
    jl_note_task(c, e, call, call->callee_function);
    if (!jl_crosses(c, type)) {
        JL_WRONG(c, "T4031", call->at, "%s cannot be copied to another task, so no task returns it",
                 jl_show(c, type))
            ->help = "call the function directly, or return numbers, str, slices or structs";
        return JL_BAD;
    }
    return jl_task_of(c->types, type);
}

static void spawn_block(struct jl_checker *c, struct jl_expr *e)
{
    struct jl_frame frame = {.function = e->function, .outer = c->frame, .infers = true};
    struct jl_scope scope = jl_scope_open(c);
    jl_add_call(c, e->function);
    e->function->is_task = true;
    e->function->result_type = JL_VOID;
    c->frame = &frame;
    jl_check_block(c, e->function->body);
    c->frame = frame.outer;
    jl_scope_close(c, scope);
    jl_note_task(c, e, NULL, e->function);
}

static void spawn_call(struct jl_checker *c, struct jl_expr *e, struct jl_expr *call)
{
    c->starting = call;
    jl_type type = jl_check_expr(c, call, 0);
    if (type == JL_BAD) return;
    bool is_call = call->kind == JL_E_CALL;
    bool is_function = is_call && (call->call == JL_CALL_FUNCTION || call->call == JL_CALL_HOST ||
                                   call->call == JL_CALL_VALUE);
    if (!is_function) {
        JL_WRONG(c, "T4014", call->at, "`spawn` takes a call of a function, or a block")->help =
            "write `spawn do ... end` around it";
        return;
    }
    check_crossing(c, call);
    if (call->callee_function) call->callee_function->is_task = true;
    jl_note_task(c, e, call, call->callee_function);
}

jl_type jl_check_spawn(struct jl_checker *c, struct jl_expr *e)
{
    jl_need_nursery(c, keyword_of(e, 5), "spawn");
    jl_add_effect(c, JL_EFFECT_SPAWN);
    if (e->cap) {
        jl_type type = jl_check_value(c, e->cap, 0);
        if (type != JL_BAD && type != JL_CAP_SPAWN)
            JL_WRONG(c, "T4020", e->cap->at, "`with_cap` takes a CapSpawn, but this is %s",
                     jl_show(c, type))
                ->help = "make one: `CapSpawn{ max_tasks: 10 }`";
    }
    if (e->function)
        spawn_block(c, e);
    else if (e->left)
        spawn_call(c, e, e->left);
    return JL_VOID;
}

/* Nurseries and channels. */

void jl_check_nursery(struct jl_checker *c, struct jl_statement *s)
{
    bool may = jl_need_tasks(c, s->keyword, "nursery") && jl_not_in_defer(c, s->keyword, "nursery");
    jl_add_effect(c, JL_EFFECT_NURSERY);
    if (s->value) {
        jl_type type = jl_check_value(c, s->value, 0);
        if (type != JL_BAD && type != JL_CAP_SPAWN)
            JL_WRONG(c, "T4020", s->value->at, "`nursery with` takes a CapSpawn, but this is %s",
                     jl_show(c, type))
                ->help = "make one: `CapSpawn{ max_tasks: 10 }`";
    } else if (may) {
        s->symbol = jl_need_cap(c, JL_CAP_SPAWN, s->keyword, "starts tasks");
    }
    if (!c->frame->nurseries) c->frame->nursery = s;
    c->frame->nurseries++;
    jl_check_block(c, s->body);
    c->frame->nurseries--;
    if (!c->frame->nurseries) c->frame->nursery = NULL;
}

jl_type jl_check_channel(struct jl_checker *c, struct jl_expr *e)
{
    struct jl_written written = {.kind = JL_WRITTEN_CHANNEL, .at = e->at, .of = e->written};
    jl_type           type = jl_read_type(c, &written, 0);
    jl_add_effect(c, JL_EFFECT_CHANNEL | JL_EFFECT_ALLOC);
    if (e->left) jl_check_is(c, e->left, JL_I64, "the capacity of a channel");
    if (c->profile != JL_CORE) e->symbol = jl_need_cap(c, JL_CAP_CHANNEL, e->at, "makes a channel");
    return type;
}

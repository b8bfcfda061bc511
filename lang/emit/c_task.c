/* SPDX-License-Identifier: MIT */
/* Nurseries, tasks, channels, actors and capabilities in C. */
#include "emit/c.h"

static void begin_error(struct jl_emitter *e)
{
    jl_c_put(e, "    ");
    jl_c_put_result(e);
    jl_c_put(e, "_error = ");
}

/* The innermost open nursery, which verify.c has found. */
static void put_nursery(struct jl_emitter *e)
{
    if (e->node->scope == 0) {
        jl_c_cannot(e, "%s stands in no nursery", qt_ops[e->node->op].name);
        return;
    }
    jl_c_put(e, "&");
    jl_c_put_value(e, e->node->scope - 1);
}

static void put_nursery_begin(struct jl_emitter *e)
{
    bool has_cap = e->node->operand_count > 0;
    jl_c_put(e, "    jl_nursery_begin(&");
    jl_c_put_result(e);
    jl_c_put(e, ", ");
    if (has_cap) {
        jl_c_put(e, "&");
        jl_c_put_operand(e, 0);
    } else {
        jl_c_put(e, "NULL");
    }
    jl_c_put(e, ", %s, ", has_cap && (e->node->flags & QT_F_WITH_CAP) ? "true" : "false");
    jl_c_put_place(e);
    jl_c_put(e, ");\n");
}

/* "        struct A4_work *record = ..." with its arguments. */
static void put_record(struct jl_emitter *e, uint32_t function, uint32_t count)
{
    if (count == 0) {
        jl_c_put(e, "        void *record = jl_record(");
        put_nursery(e);
        jl_c_put(e, ", 0);\n");
        return;
    }
    jl_c_put(e, "        struct ");
    jl_c_put_function_name(e, "A", function);
    jl_c_put(e, " *record = jl_record(");
    put_nursery(e);
    jl_c_put(e, ", sizeof *record);\n");
    for (uint32_t i = 0; i < count; i++) {
        jl_c_put(e, "        record->a%u = ", i);
        jl_c_put_operand(e, i + 1);
        jl_c_put(e, ";\n");
    }
}

static void put_spawn(struct jl_emitter *e)
{
    uint32_t function = e->node->operands[0].index;
    bool     with_cap = (e->node->flags & QT_F_WITH_CAP) != 0;
    bool     tries = (e->node->flags & QT_F_TRY) != 0;
    jl_c_put(e, "    {\n");
    put_record(e, function, e->node->operand_count - 1 - with_cap);
    jl_c_put(e, "        ");
    if (tries) {
        jl_c_put_result(e);
        jl_c_put(e, "_error = ");
    } else {
        jl_c_put(e, "(void)");
    }
    jl_c_put(e, "jl_spawn(");
    put_nursery(e);
    jl_c_put(e, ", ");
    jl_c_put_function_name(e, "s", function);
    jl_c_put(e, ", record, \"%s\", ", e->module->functions[function].name);
    jl_c_put_place(e);
    if (with_cap) {
        jl_c_put(e, ", &");
        jl_c_put_operand(e, e->node->operand_count - 1);
    } else {
        jl_c_put(e, ", NULL");
    }
    jl_c_put(e, ", %s);\n    }\n", tries ? "false" : "true");
}

static void put_async(struct jl_emitter *e)
{
    uint32_t                  function = e->node->operands[0].index;
    const struct qt_function *callee = &e->module->functions[function];
    jl_c_put(e, "    {\n");
    put_record(e, function, e->node->operand_count - 1);
    jl_c_put(e, "        ");
    jl_c_put_result(e);
    jl_c_put(e, " = jl_async(");
    put_nursery(e);
    jl_c_put(e, ", ");
    jl_c_put_function_name(e, "a", function);
    jl_c_put(e, ", record, %u, ",
             jl_c_has_value(e, callee->result) ? jl_size(e->types, callee->result) : 0);
    jl_c_put_shape(e, callee->result);
    jl_c_put(e, ", \"%s\", ", callee->name);
    jl_c_put_place(e);
    jl_c_put(e, ");\n    }\n");
}

static void put_await(struct jl_emitter *e)
{
    jl_c_put(e, "    {\n        const void *value;\n        ");
    jl_c_put_result(e);
    jl_c_put(e, "_error = jl_await(");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", &value);\n");
    if (jl_c_has_value(e, e->node->type)) {
        jl_c_put(e, "        if (");
        jl_c_put_result(e);
        jl_c_put(e, "_error == 0) memcpy(&");
        jl_c_put_result(e);
        jl_c_put(e, ", value, sizeof ");
        jl_c_put_result(e);
        jl_c_put(e, ");\n");
    }
    jl_c_put(e, "    }\n");
}

static void put_channel_new(struct jl_emitter *e)
{
    jl_type element = jl_info(e->types, e->node->type)->of;
    jl_c_put(e, "    ");
    jl_c_put_result(e);
    jl_c_put(e, " = jl_channel_new(%u, ", jl_size(e->types, element));
    jl_c_put_shape(e, element);
    jl_c_put(e, ", ");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", ");
    if (e->node->operand_count > 1) {
        jl_c_put(e, "&");
        jl_c_put_operand(e, 1);
    } else {
        jl_c_put(e, "NULL");
    }
    jl_c_put(e, ", ");
    jl_c_put_place(e);
    jl_c_put(e, ");\n");
}

static void put_channel_call(struct jl_emitter *e, bool sends)
{
    jl_type element = jl_info(e->types, jl_c_operand_type(e, 0))->of;
    begin_error(e);
    jl_c_put(e, sends ? "jl_channel_send(" : "jl_channel_recv(");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", &");
    if (sends) {
        jl_c_put_operand(e, 1);
    } else {
        jl_c_put_result(e);
    }
    jl_c_put(e, ", ");
    jl_c_put_shape(e, element);
    jl_c_put(e, ");\n");
}

static void put_simple(struct jl_emitter *e, const char *call, bool address)
{
    jl_c_put(e, "    %s(%s", call, address ? "&" : "");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ");\n");
}

void jl_c_put_task(struct jl_emitter *e)
{
    switch (e->node->op) {
    case QT_Nursery_Begin: put_nursery_begin(e); break;
    case QT_Nursery_End:
        begin_error(e);
        jl_c_put(e, "jl_nursery_end(&");
        jl_c_put_operand(e, 0);
        jl_c_put(e, ");\n");
        break;
    case QT_Nursery_Cancel: put_simple(e, "jl_nursery_cancel", true); break;
    case QT_Spawn: put_spawn(e); break;
    case QT_Async_Call: put_async(e); break;
    case QT_Await: put_await(e); break;
    case QT_Yield: jl_c_put(e, "    jl_yield();\n"); break;
    case QT_Defer_Pop: jl_c_put(e, "    jl_defer_pop(%u);\n", (unsigned)e->node->literal); break;
    case QT_Channel_New: put_channel_new(e); break;
    case QT_Channel_Send: put_channel_call(e, true); break;
    case QT_Channel_Recv: put_channel_call(e, false); break;
    case QT_Channel_Close: put_simple(e, "jl_channel_close", false); break;
    default: jl_c_cannot(e, "%s has no form in C", qt_ops[e->node->op].name); break;
    }
}

/* Actors. */

static void put_message(struct jl_emitter *e, bool calls)
{
    jl_type  actor = jl_c_operand_type(e, 0);
    uint32_t count = e->node->operand_count - 1;
    unsigned method = (unsigned)e->node->literal;
    jl_c_put(e, "    {\n");
    if (count > 0) {
        jl_c_put(e, "        struct message_%u_%u message;\n", actor, method);
        jl_c_put(e, "        memset(&message, 0, sizeof message);\n");
    }
    for (uint32_t i = 0; i < count; i++) {
        jl_c_put(e, "        message.a%u = ", i);
        jl_c_put_operand(e, i + 1);
        jl_c_put(e, ";\n");
    }
    jl_c_put(e, "        ");
    jl_c_put_result(e);
    jl_c_put(e, "_error = %s(", calls ? "jl_actor_call" : "jl_actor_send");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", &type_%u, %u, %s", actor, method, count > 0 ? "&message" : "NULL");
    if (calls) {
        jl_c_put(e, jl_c_has_value(e, e->node->type) ? ", &" : ", NULL");
        if (jl_c_has_value(e, e->node->type)) jl_c_put_result(e);
    }
    jl_c_put(e, ");\n    }\n");
}

static void put_supervisor_spawn(struct jl_emitter *e)
{
    begin_error(e);
    jl_c_put(e, "jl_supervisor_spawn(");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", ");
    put_nursery(e);
    jl_c_put(e, ", &type_%u, &", jl_c_value_type(e, e->node->type));
    jl_c_put_result(e);
    jl_c_put(e, ");\n");
}

static const char *kind_name(jl_type type)
{
    switch (type) {
    case JL_CAP_SPAWN: return "JL_CAP_OF_SPAWN";
    case JL_CAP_BUDGET: return "JL_CAP_OF_BUDGET";
    case JL_CAP_CHANNEL: return "JL_CAP_OF_CHANNEL";
    default: return "JL_CAP_OF_EXECUTOR";
    }
}

static void put_cap_new(struct jl_emitter *e)
{
    bool     has_parent = (e->node->flags & QT_F_PARENT) != 0;
    uint32_t count = e->node->operand_count - has_parent;
    jl_c_put(e, "    {\n        struct jl_cap_fields fields = {{0}, {0, 0, 0, 0, 0}};\n");
    for (uint32_t i = 0; i < count; i++) {
        if (jl_c_operand_type(e, i) == JL_BUDGET) {
            jl_c_put(e, "        fields.budget = ");
        } else {
            jl_c_put(e, "        fields.numbers[%u] = ", i);
        }
        jl_c_put_operand(e, i);
        jl_c_put(e, ";\n");
    }
    jl_c_put(e, "        ");
    jl_c_put_result(e);
    jl_c_put(e, " = jl_cap_new(%s, &fields, ", kind_name(e->node->type));
    if (has_parent) {
        jl_c_put(e, "&");
        jl_c_put_operand(e, count);
        jl_c_put(e, ", %s", kind_name(jl_c_operand_type(e, count)));
    } else {
        jl_c_put(e, "NULL, %s", kind_name(e->node->type));
    }
    jl_c_put(e, ", %s, ", (e->node->flags & QT_F_DELEGATABLE) ? "true" : "false");
    jl_c_put_place(e);
    jl_c_put(e, ");\n    }\n");
}

static void put_budget_new(struct jl_emitter *e)
{
    jl_c_put(e, "    ");
    jl_c_put_result(e);
    jl_c_put(e, " = jl_budget_new((const int64_t[]){");
    for (uint32_t i = 0; i < 5; i++) {
        jl_c_put(e, "%s", i > 0 ? ", " : "");
        jl_c_put_operand(e, i);
    }
    jl_c_put(e, "});\n");
}

void jl_c_put_actor(struct jl_emitter *e)
{
    switch (e->node->op) {
    case QT_Actor_New: break; /* what is started is in its type */
    case QT_Actor_Send: put_message(e, false); break;
    case QT_Actor_Call: put_message(e, true); break;
    case QT_Supervisor_New:
        jl_c_put(e, "    ");
        jl_c_put_result(e);
        jl_c_put(e, " = jl_supervisor_new();\n");
        break;
    case QT_Supervisor_Spawn: put_supervisor_spawn(e); break;
    case QT_Cap_New: put_cap_new(e); break;
    case QT_Cap_Budget:
        jl_c_put(e, "    ");
        jl_c_put_result(e);
        jl_c_put(e, " = jl_cap_to_budget(");
        jl_c_put_operand(e, 0);
        jl_c_put(e, ", ");
        jl_c_put_place(e);
        jl_c_put(e, ");\n");
        break;
    default: put_budget_new(e); break;
    }
}

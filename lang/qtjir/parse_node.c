/* SPDX-License-Identifier: MIT */
/* One node of the text form: one line. */
#include "qtjir/read.h"

#include <stdlib.h>
#include <string.h>

enum { OPS = UINT32_MAX }; /* the scope of opcodes in `names` */

static struct qt_node *node_of(struct qt_reader *p, uint32_t node)
{
    return &p->module->functions[p->function].nodes[node];
}

static uint32_t op_of(struct qt_reader *p, const char *word)
{
    bool is_new;
    if (qt_map_get(&p->names, (uint32_t)OPS, jl_intern(p->module->names, "Const", 5)) == 0)
        for (uint32_t op = 0; op < QT_OP_COUNT; op++)
            *qt_map_at(p->module->arena, &p->names, (uint32_t)OPS,
                       jl_intern(p->module->names, qt_ops[op].name, strlen(qt_ops[op].name)),
                       &is_new) = op + 1;
    return qt_map_get(&p->names, (uint32_t)OPS, word);
}

static bool digits(const char *text) { return *text >= '0' && *text <= '9'; }

static uint32_t small_number(const char *text)
{
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        value = value * 10 + (uint64_t)(*text - '0');
        if (value > 0x3fffffff) return 0;
    }
    return *text == 0 ? (uint32_t)value : 0;
}

static bool fix_later(struct qt_reader *p, uint32_t node, const char *name, uint32_t number)
{
    struct qt_fix *fix = &JL_PUSH(p->module->arena, p->values, p->value_count, p->value_room);
    fix->function = p->function;
    fix->node = node;
    fix->operand = node_of(p, node)->operand_count - 1;
    fix->name = name;
    fix->number = number;
    fix->begin = p->begin;
    return true;
}

static bool read_value(struct qt_reader *p, uint32_t node)
{
    const char *word = p->word;
    uint32_t    number = digits(word) ? small_number(word) : 0, found;
    if (number > 0)
        found = number <= p->numbered_count ? p->numbered[number - 1] : 0;
    else
        found = qt_map_get(&p->names, 2 + p->function, word);
    if (*word == 0 || (digits(word) && number == 0))
        return qt_wrong(p, "Q1004", "%%%.60s is no value", word);
    qt_add_operand(p->module, p->function, node, QT_NODE, found > 0 ? found - 1 : 0);
    if (found == 0) fix_later(p, node, number > 0 ? NULL : word, number);
    qt_next(p);
    return true;
}

static bool read_operand(struct qt_reader *p, uint32_t node)
{
    if (node_of(p, node)->operand_count > 100000)
        return qt_wrong(p, "Q1009", "the node has too many operands");
    if (p->token == QT_T_VALUE) return read_value(p, node);
    if (p->token == QT_T_AT && *p->word != 0) {
        qt_add_operand(p->module, p->function, node, QT_FUNCTION, 0);
        struct qt_fix *fix = &JL_PUSH(p->module->arena, p->fixes, p->fix_count, p->fix_room);
        *fix = (struct qt_fix){.function = p->function,
                               .node = node,
                               .operand = node_of(p, node)->operand_count - 1,
                               .name = p->word,
                               .begin = p->begin};
        qt_next(p);
        return true;
    }
    if (p->token == QT_T_WORD && strncmp(p->word, "bb", 2) == 0 && digits(p->word + 2)) {
        uint32_t block = small_number(p->word + 2);
        if (block == 0 && strcmp(p->word, "bb0") != 0)
            return qt_wrong(p, "Q1004", "there is no block %.60s", p->word);
        qt_add_operand(p->module, p->function, node, QT_BLOCK, block);
        fix_later(p, node, NULL, 0);
        qt_next(p);
        return true;
    }
    return qt_wrong(p, "Q1001", "here must stand a value, a function or a block");
}

static bool read_row(struct qt_reader *p, struct qt_node *n)
{
    const struct jl_host_table *host = p->module->host;
    struct jl_span              at = {p->begin, p->end};
    const char                 *name = qt_need(p, QT_T_TEXT, "a name of the host in quotes");
    if (name == NULL) return false;
    const char *dot = strchr(name, '.');
    for (uint32_t i = 0; host != NULL && i < host->count; i++) {
        const struct jl_host_entry *e = &host->entries[i];
        enum jl_host_kind kind = n->op == QT_Host_Value ? JL_HOST_VALUE : JL_HOST_FUNCTION;
        if (e->kind != kind || (e->receiver != 0) != (dot != NULL)) continue;
        const char *owner = dot != NULL ? qt_type_text(p->module, e->receiver) : "";
        size_t      length = strlen(owner);
        if (strcmp(e->name, dot != NULL ? dot + 1 : name) == 0 &&
            (dot == NULL || (length == (size_t)(dot - name) && memcmp(owner, name, length) == 0))) {
            n->literal = i;
            return true;
        }
    }
    p->begin = at.begin;
    p->end = at.end;
    return qt_wrong(p, "Q1004", "the host has no \"%.60s\"", name);
}

/* What stands between the opcode and the operands. Members are looked up when types are known. */
static bool read_literal(struct qt_reader *p, struct qt_node *n)
{
    switch (n->op) {
    case QT_Str:
        n->text_length = p->word_length;
        n->text = qt_need(p, QT_T_TEXT, "a text in quotes");
        return n->text != NULL;
    case QT_Error:
    case QT_Defer_Pop:
    case QT_Budget_Decrement:
    case QT_Budget_Check: return qt_read_number(p, JL_I64, &n->literal);
    case QT_Host_Value:
    case QT_Call_Host: return read_row(p, n);
    case QT_State_Get:
    case QT_State_Set:
    case QT_Field_Get:
    case QT_Field_With:
        if (!qt_need_sign(p, '.')) return false;
        n->text = qt_need(p, QT_T_WORD, "a field");
        return n->text != NULL;
    case QT_Actor_Send:
    case QT_Actor_Call:
    case QT_Interface_Call: n->text = qt_need(p, QT_T_AT, "a method"); return n->text != NULL;
    default: return true;
    }
}

static bool has_literal(enum qt_op op)
{
    return op == QT_Call_Host || op == QT_State_Set || op == QT_Field_Get || op == QT_Field_With ||
           op == QT_Actor_Send || op == QT_Actor_Call || op == QT_Interface_Call;
}

static bool read_operands(struct qt_reader *p, uint32_t node)
{
    enum qt_op op = (enum qt_op)node_of(p, node)->op;
    bool       more = has_literal(op) ? qt_take_sign(p, ',')
                                      : p->token == QT_T_VALUE || p->token == QT_T_AT ||
                                      (p->token == QT_T_WORD && strncmp(p->word, "bb", 2) == 0);
    while (more) {
        if (!read_operand(p, node)) return false;
        more = qt_take_sign(p, ',');
    }
    uint8_t flags = 0;
    if (op == QT_Cap_New && qt_take_word(p, "from"))
        flags |= QT_F_PARENT;
    else if (op != QT_Cap_New && qt_take_word(p, "with"))
        flags |= QT_F_WITH_CAP;
    if (flags != 0 && (p->token != QT_T_VALUE || !read_value(p, node)))
        return qt_wrong(p, "Q1001", "here must stand a capability");
    if (qt_take_word(p, "delegatable")) flags |= QT_F_DELEGATABLE;
    node_of(p, node)->flags |= flags;
    return true;
}

/* The number of a Const, at `mark`, once its type is known. */
static bool read_constant(struct qt_reader *p, struct qt_node *n, uint32_t mark)
{
    uint32_t after = p->begin;
    p->at = mark;
    qt_next(p);
    bool right = qt_read_number(p, n->type, &n->literal);
    if (right && p->token != QT_T_SIGN) right = qt_wrong(p, "Q1001", "here must stand `:`");
    p->at = after;
    qt_next(p);
    return right;
}

static bool read_end(struct qt_reader *p, uint32_t node, uint32_t mark)
{
    struct qt_node *n = node_of(p, node);
    uint32_t        tenancy;
    if (qt_ops[n->op].result == QT_R_WRITTEN) {
        if (!qt_need_sign(p, ':')) return false;
        n->type = qt_read_type(p);
        if (n->type == JL_BAD) return false;
        if (n->op == QT_Const && !read_constant(p, n, mark)) return false;
    }
    if (qt_take_word(p, "tenancy")) {
        if (!qt_read_choice(p, qt_tenancy_names, 4, "a tenancy", &tenancy)) return false;
        n->tenancy = (uint8_t)tenancy;
    }
    return true;
}

/* "%3 =": gives the value its name or number. */
static bool name_value(struct qt_reader *p, uint32_t node, const char *word)
{
    bool is_new;
    if (digits(word)) {
        if (small_number(word) != p->numbered_count + 1)
            return qt_wrong(p, "Q1006", "the next number is %%%u", p->numbered_count + 1);
        JL_PUSH(p->module->arena, p->numbered, p->numbered_count, p->numbered_room) = node + 1;
        return true;
    }
    uint32_t *slot = qt_map_at(p->module->arena, &p->names, 2 + p->function, word, &is_new);
    if (!is_new) return qt_wrong(p, "Q1005", "there are two values %%%.60s", word);
    *slot = node + 1;
    node_of(p, node)->name = word;
    return true;
}

bool qt_read_node(struct qt_reader *p, uint32_t block)
{
    const char *value = NULL;
    p->place_line = p->place_column = 0;
    if (p->token == QT_T_VALUE) {
        value = qt_need(p, QT_T_VALUE, "a value");
        if (value == NULL || !qt_need_sign(p, '=')) return false;
    }
    uint32_t op = p->token == QT_T_WORD ? op_of(p, p->word) : 0;
    if (op == 0 || op == QT_Param + 1) return qt_wrong(p, "Q1003", "here must stand an opcode");
    if (++p->nodes > QT_NODES_MAX) return qt_wrong(p, "Q1009", "there are too many nodes");
    qt_next(p);
    uint32_t node = qt_add_node(p->module, p->function, block, (enum qt_op)(op - 1), JL_BAD);
    uint32_t mark = p->begin;
    node_of(p, node)->scope = value != NULL; /* until the types are known */
    if (qt_take_word(p, "try")) node_of(p, node)->flags |= QT_F_TRY;
    if (qt_take_word(p, "async")) node_of(p, node)->flags |= QT_F_ASYNC;
    if (op == QT_Const + 1)
        qt_next(p);
    else if (!read_literal(p, node_of(p, node)) || !read_operands(p, node))
        return false;
    if (!read_end(p, node, mark)) return false;
    node_of(p, node)->line = p->place_line;
    node_of(p, node)->column = p->place_column;
    return value == NULL || name_value(p, node, value);
}

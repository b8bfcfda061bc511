/* SPDX-License-Identifier: MIT */
/*
 * QTJIR: the intermediate representation. A module is a list of functions, a function a list of
 * blocks, a block a list of nodes; the last node of a block is its terminator.
 *
 *     module "pair.jan" profile service level High interval 1024
 *
 *     func @fetch_both(%x: i64, %y: i64) -> !void tenancy CPU_Serial {
 *     bb0:
 *       %1 = Nursery_Begin
 *       %2 = Spawn @compute, %x
 *       %3 = Spawn @compute, %y
 *       %4 = Nursery_End %1
 *       Branch_Error %4, bb1, bb2
 *     bb1:
 *       %5 = Error_Of %4
 *       Fail %5
 *     bb2:
 *       Return
 *     }
 *
 * Above the functions stand the module's types, errors and main:
 *
 *     struct Point { x: i64, y: i64 }
 *     interface Plugin { process: fn([]u8) -> []u8 }
 *     actor Counter { count: i64 } init @Counter.init { get: fn() -> i64 = @Counter.get }
 *     error Negative -100
 *     main @main
 *
 * A function's head may end in "captures 2" (of a closure) and "of Counter" (of an actor), and
 * begin with "async". `; 12:5` at the end of a line is the place in the source.
 *
 * Parameters and `let`s keep their names. Other nodes with a value are numbered from 1 in the order
 * of the text, without gaps. Nodes without a value have no number.
 *
 * Levels. High: as written. Mid: budget operations are explicit; both executors take this. Low:
 * Spawn, Async_Call and Await are Task_Create and Task_Join, and nurseries are calls of the
 * runtime; the interpreter takes it too.
 *
 * A value of a fallible type (!T) is used by Branch_Error, Error_Of and Value_Of only, and
 * Value_Of and Error_Of stand in blocks that a Branch_Error of that value leads to.
 */
#ifndef JANUSRT_LANG_QTJIR_H
#define JANUSRT_LANG_QTJIR_H

#include "text/text.h"
#include "type/host_table.h"
#include "type/type.h"

enum qt_level { QT_HIGH, QT_MID, QT_LOW };
enum qt_tenancy { QT_CPU_SERIAL, QT_CPU_PARALLEL, QT_NPU_TENSOR, QT_QPU_QUANTUM };

/* How the type of a node's value is found. */
enum qt_result {
    QT_R_NONE,    /* no value */
    QT_R_WRITTEN, /* ": type" stands at the end of the line */
    QT_R_FIRST,   /* that of the first operand */
    QT_R_FIXED,   /* the table says which */
    QT_R_RULE,    /* verify.c computes it: from a function, a field, an element */
};

/*
 * The opcodes: X(name, operands: least, most (QT_MANY: any), result, fixed type, levels, flags).
 * Operands are nodes unless the comment says otherwise.
 */
#define QT_MANY 255
#define QT_L_ALL 7
#define QT_L_MID 6 /* Mid and Low */
#define QT_L_HM 3  /* High and Mid */
#define QT_L_LOW 4
enum { QT_TERMINATOR = 1, QT_CONCURRENT = 2, QT_CALLS = 4, QT_YIELDS = 8, QT_PURE = 16 };

/* clang-format off */
#define QT_OPS(X)                                                                                  \
    /* values. Const: `literal` is the number; of f64 its bits. Str: `text`. */                    \
    X(Const, 0, 0, QT_R_WRITTEN, 0, QT_L_ALL, QT_PURE)                                             \
    X(Str, 0, 0, QT_R_FIXED, JL_STR, QT_L_ALL, QT_PURE)                                            \
    X(Error, 0, 0, QT_R_FIXED, JL_ERROR, QT_L_ALL, QT_PURE) /* literal: its number */              \
    X(Param, 0, 0, QT_R_WRITTEN, 0, QT_L_ALL, QT_PURE) /* literal: index in the head */            \
    X(Local, 0, 0, QT_R_WRITTEN, 0, QT_L_ALL, 0) /* a variable, zeroed; used by Load and Store */  \
    X(Load, 1, 1, QT_R_FIRST, 0, QT_L_ALL, 0)                                                      \
    X(Store, 2, 2, QT_R_NONE, 0, QT_L_ALL, 0) /* variable, value */                                \
    X(State_Get, 0, 0, QT_R_RULE, 0, QT_L_ALL, 0) /* literal: field of the actor's state */        \
    X(State_Set, 1, 1, QT_R_NONE, 0, QT_L_ALL, 0)                                                  \
    X(Host_Value, 0, 0, QT_R_RULE, 0, QT_L_ALL, QT_PURE) /* literal: row; printed "name" */        \
    /* integers trap on overflow, Div and Rem also on zero; f64 as in C */                         \
    X(Add, 2, 2, QT_R_FIRST, 0, QT_L_ALL, 0)                                                       \
    X(Sub, 2, 2, QT_R_FIRST, 0, QT_L_ALL, 0)                                                       \
    X(Mul, 2, 2, QT_R_FIRST, 0, QT_L_ALL, 0)                                                       \
    X(Div, 2, 2, QT_R_FIRST, 0, QT_L_ALL, 0)                                                       \
    X(Rem, 2, 2, QT_R_FIRST, 0, QT_L_ALL, 0)                                                       \
    X(Neg, 1, 1, QT_R_FIRST, 0, QT_L_ALL, 0)                                                       \
    /* of integers, f64, bool; Eq and Ne also of str and error */                                  \
    X(Eq, 2, 2, QT_R_FIXED, JL_BOOL, QT_L_ALL, QT_PURE)                                            \
    X(Ne, 2, 2, QT_R_FIXED, JL_BOOL, QT_L_ALL, QT_PURE)                                            \
    X(Lt, 2, 2, QT_R_FIXED, JL_BOOL, QT_L_ALL, QT_PURE)                                            \
    X(Le, 2, 2, QT_R_FIXED, JL_BOOL, QT_L_ALL, QT_PURE)                                            \
    X(And, 2, 2, QT_R_FIXED, JL_BOOL, QT_L_ALL, QT_PURE) /* both operands are evaluated */         \
    X(Or, 2, 2, QT_R_FIXED, JL_BOOL, QT_L_ALL, QT_PURE)                                            \
    X(Not, 1, 1, QT_R_FIXED, JL_BOOL, QT_L_ALL, QT_PURE)                                           \
    /* number to number, traps if it does not fit; number, bool, error or str to str (alloc) */    \
    X(Convert, 1, 1, QT_R_WRITTEN, 0, QT_L_ALL, 0)                                                 \
    X(Concat, 2, 2, QT_R_FIXED, JL_STR, QT_L_ALL, 0) /* allocates */                               \
    X(Str_Len, 1, 1, QT_R_FIXED, JL_I64, QT_L_ALL, QT_PURE)                                        \
    /* data */                                                                                     \
    X(Struct_New, 0, QT_MANY, QT_R_WRITTEN, 0, QT_L_ALL, QT_PURE) /* a value for each field */     \
    X(Field_Get, 1, 1, QT_R_RULE, 0, QT_L_ALL, QT_PURE) /* literal: the field; also of budgets */  \
    X(Field_With, 2, 2, QT_R_FIRST, 0, QT_L_ALL, QT_PURE) /* struct, value: a changed copy */      \
    X(Slice_New, 1, 1, QT_R_WRITTEN, 0, QT_L_ALL, 0) /* length, i64; zeroed; allocates */          \
    X(Slice_Of, 0, QT_MANY, QT_R_WRITTEN, 0, QT_L_ALL, 0) /* the elements; allocates */            \
    X(Slice_Len, 1, 1, QT_R_FIXED, JL_I64, QT_L_ALL, QT_PURE)                                      \
    X(Slice_Get, 2, 2, QT_R_RULE, 0, QT_L_ALL, 0) /* slice or str, index; traps outside. str: u8 */\
    X(Slice_Set, 3, 3, QT_R_NONE, 0, QT_L_ALL, 0)                                                  \
    X(Slice_Part, 3, 3, QT_R_FIRST, 0, QT_L_ALL, 0) /* slice or str, from, to; shares the bytes */ \
    X(Closure_New, 1, QT_MANY, QT_R_WRITTEN, 0, QT_L_ALL, 0) /* @function, captures */             \
    /* control */                                                                                  \
    X(Jump, 1, 1, QT_R_NONE, 0, QT_L_ALL, QT_TERMINATOR)                                           \
    X(Branch, 3, 3, QT_R_NONE, 0, QT_L_ALL, QT_TERMINATOR) /* bool, block, block */                \
    X(Branch_Error, 3, 3, QT_R_NONE, 0, QT_L_ALL, QT_TERMINATOR) /* !T, error block, ok block */   \
    X(Return, 0, 1, QT_R_NONE, 0, QT_L_ALL, QT_TERMINATOR)                                         \
    X(Fail, 1, 1, QT_R_NONE, 0, QT_L_ALL, QT_TERMINATOR) /* error: the function returns it */      \
    X(End_Task, 1, 1, QT_R_NONE, 0, QT_L_ALL, QT_TERMINATOR) /* error: the task ends with it */    \
    X(Panic, 1, 1, QT_R_NONE, 0, QT_L_ALL, QT_TERMINATOR) /* str */                                \
    X(Unreachable, 0, 0, QT_R_NONE, 0, QT_L_ALL, QT_TERMINATOR)                                    \
    X(Error_Of, 1, 1, QT_R_FIXED, JL_ERROR, QT_L_ALL, QT_PURE)                                     \
    X(Value_Of, 1, 1, QT_R_RULE, 0, QT_L_ALL, QT_PURE)                                             \
    X(Call, 1, QT_MANY, QT_R_RULE, 0, QT_L_ALL, QT_CALLS) /* @function, arguments */               \
    X(Call_Value, 1, QT_MANY, QT_R_RULE, 0, QT_L_ALL, QT_CALLS) /* closure, arguments */           \
    X(Call_Host, 0, QT_MANY, QT_R_RULE, 0, QT_L_ALL, QT_CALLS) /* literal: row; "name", args */    \
    /* tasks. The nursery is the innermost that is open; verify.c finds it: `scope`. */            \
    /* [CapSpawn]. With QT_F_WITH_CAP it is the scope of C37, else it is for children only. */     \
    X(Nursery_Begin, 0, 1, QT_R_FIXED, JL_NURSERY, QT_L_HM, QT_CONCURRENT)                         \
    X(Nursery_End, 1, 1, QT_R_RULE, 0, QT_L_HM, QT_CONCURRENT | QT_YIELDS) /* -> !void */          \
    X(Nursery_Cancel, 1, 1, QT_R_NONE, 0, QT_L_ALL, QT_CONCURRENT)                                 \
    /* @function, arguments. with_cap: the last operand is a capability. It waits for room, and    \
     * its value (task void) has no use; with QT_F_TRY it is refused instead: !void */             \
    X(Spawn, 1, QT_MANY, QT_R_RULE, 0, QT_L_HM, QT_CONCURRENT | QT_CALLS | QT_YIELDS)              \
    X(Async_Call, 1, QT_MANY, QT_R_RULE, 0, QT_L_HM, QT_CONCURRENT | QT_CALLS | QT_YIELDS)         \
    X(Await, 1, 1, QT_R_RULE, 0, QT_L_HM, QT_CONCURRENT | QT_YIELDS) /* task T -> !T */            \
    X(Yield, 0, 0, QT_R_NONE, 0, QT_L_ALL, QT_CONCURRENT | QT_YIELDS)                              \
    X(Defer_Push, 1, QT_MANY, QT_R_NONE, 0, QT_L_ALL, 0) /* @function, captures */                 \
    X(Defer_Pop, 0, 0, QT_R_NONE, 0, QT_L_ALL, QT_CALLS) /* runs the last literal ones */          \
    /* capacity, i64; optional CapChannel -> channel T */                                          \
    X(Channel_New, 1, 2, QT_R_WRITTEN, 0, QT_L_ALL, QT_CONCURRENT)                                 \
    X(Channel_Send, 2, 2, QT_R_RULE, 0, QT_L_ALL, QT_CONCURRENT | QT_YIELDS) /* -> !void */        \
    X(Channel_Recv, 1, 1, QT_R_RULE, 0, QT_L_ALL, QT_CONCURRENT | QT_YIELDS) /* -> !T */           \
    X(Channel_Close, 1, 1, QT_R_NONE, 0, QT_L_ALL, QT_CONCURRENT)                                  \
    /* actors. Actor_New: literal is the actor's number. Send, Call: the actor, arguments; literal \
     * is the method's index, printed as @Counter.get */                                           \
    X(Actor_New, 0, 0, QT_R_WRITTEN, 0, QT_L_ALL, QT_CONCURRENT)                                   \
    X(Actor_Send, 1, QT_MANY, QT_R_RULE, 0, QT_L_ALL, QT_CONCURRENT | QT_YIELDS) /* -> !void */    \
    X(Actor_Call, 1, QT_MANY, QT_R_RULE, 0, QT_L_ALL, QT_CONCURRENT | QT_YIELDS) /* -> !T */       \
    X(Supervisor_New, 0, 0, QT_R_FIXED, JL_SUPERVISOR, QT_L_ALL, QT_CONCURRENT)                    \
    X(Supervisor_Spawn, 2, 2, QT_R_RULE, 0, QT_L_ALL, QT_CONCURRENT | QT_YIELDS) /* -> !Actor */   \
    X(To_Interface, 1, 1, QT_R_WRITTEN, 0, QT_L_ALL, 0) /* a handle of a plugin; traps */          \
    X(Interface_Call, 1, QT_MANY, QT_R_RULE, 0, QT_L_ALL, QT_CALLS) /* literal: method; -> !T */   \
    /* budgets (SPEC-021 11.1) */                                                                  \
    X(Budget_Decrement, 0, 0, QT_R_NONE, 0, QT_L_MID, 0) /* literal: ops */                        \
    X(Budget_Check, 0, 0, QT_R_NONE, 0, QT_L_MID, QT_YIELDS) /* literal: the interval, or 0 */     \
    /* Low. Task_Create: nursery, @function, Budget_Default, arguments; its flags as Spawn's */    \
    X(Task_Create, 3, QT_MANY, QT_R_RULE, 0, QT_L_LOW, QT_CONCURRENT | QT_CALLS | QT_YIELDS)       \
    X(Task_Join, 1, 1, QT_R_RULE, 0, QT_L_LOW, QT_CONCURRENT | QT_YIELDS)                          \
    X(Budget_Default, 0, 0, QT_R_FIXED, JL_BUDGET, QT_L_LOW, QT_PURE) /* what the nursery gives */ \
    X(Nursery_Open, 0, 1, QT_R_FIXED, JL_NURSERY, QT_L_LOW, QT_CONCURRENT)                         \
    X(Nursery_Await, 1, 1, QT_R_RULE, 0, QT_L_LOW, QT_CONCURRENT | QT_YIELDS)                      \
    /* capabilities. Cap_New: CapSpawn (max_tasks i64, task_budget Budget), CapBudget (five i64 in \
     * the order of janus_budget), CapChannel (max_buffer_size, max_channels i64), CapExecutor     \
     * (a set of backends, i64). With QT_F_PARENT the last operand is the capability that it is    \
     * made from, else it is made from the root authority. QT_F_DELEGATABLE */                     \
    X(Cap_New, 1, 6, QT_R_WRITTEN, 0, QT_L_ALL, 0)                                                 \
    X(Cap_Budget, 1, 1, QT_R_FIXED, JL_BUDGET, QT_L_ALL, 0) /* CapBudget.toBudget() */             \
    X(Budget_New, 5, 5, QT_R_FIXED, JL_BUDGET, QT_L_ALL, QT_PURE) /* five i64 */
/* clang-format on */

enum qt_op {
#define QT_ENUM(name, ...) QT_##name,
    QT_OPS(QT_ENUM)
#undef QT_ENUM
        QT_OP_COUNT
};

struct qt_op_info {
    const char    *name;
    uint8_t        least, most;
    enum qt_result result;
    jl_type        fixed;
    uint8_t        levels, flags;
};
extern const struct qt_op_info qt_ops[QT_OP_COUNT];

enum qt_node_flag {
    QT_F_TRY = 1,         /* Spawn: printed "Spawn try @f" */
    QT_F_WITH_CAP = 2,    /* Spawn, Nursery_Begin: the last operand is a capability: "with %cap" */
    QT_F_DELEGATABLE = 4, /* Cap_New: printed "delegatable" */
    QT_F_PARENT = 8,      /* Cap_New: printed "from %cap" */
    QT_F_ASYNC = 16,      /* Task_Create: it was an Async_Call; printed "async" */
};

enum qt_operand_kind { QT_NODE, QT_BLOCK, QT_FUNCTION };
struct qt_operand {
    uint32_t kind : 2;
    uint32_t index : 30; /* of a node or a block of the function, of a function of the module */
};

struct qt_node {
    uint8_t            op, tenancy, flags;
    jl_type            type; /* of the value; VOID: none */
    const char        *name; /* of a parameter or a let; NULL: numbered. Unique in the function */
    struct qt_operand *operands;
    uint32_t           operand_count;
    int64_t            literal;
    const char        *text; /* Str */
    uint32_t           text_length;
    uint32_t           line, column; /* in the source; 0: unknown. Printed as "; 12:5" if asked */
    uint32_t           scope; /* verify.c: 1 + the node of the innermost open nursery; 0: none */
};

struct qt_block {
    uint32_t *nodes; /* indexes in the function, in order */
    uint32_t  count, room;
};

struct qt_function {
    const char      *name;   /* "main", "main.spawn1", "Counter.get", "Counter.init" */
    jl_type         *params; /* of a closure, a spawned block, a defer: captures come first */
    const char     **param_names;
    uint32_t         param_count, capture_count;
    jl_type          result; /* the value's type */
    bool             fails;  /* its result is !result */
    bool             is_async;
    uint8_t          tenancy;
    jl_type          actor; /* of a method or init, whose State_ nodes mean its state; else 0 */
    struct qt_node  *nodes; /* in the order of their making; Params are the first */
    uint32_t         node_count, node_room;
    struct qt_block *blocks; /* blocks[0] is the entry */
    uint32_t         block_count, block_room;
    uint32_t         line;
};

/* An actor's functions. `init` sets the state by State_Set; a method's index is its type's. */
struct qt_actor {
    jl_type   type;
    uint32_t  init;    /* function */
    uint32_t *methods; /* functions, in the order of the type's methods */
    uint32_t  method_count;
};

struct qt_error {
    const char *name;
    int64_t     number;
};

struct qt_module {
    struct jl_arena            *arena;
    struct jl_types            *types;
    struct jl_names            *names;
    const struct jl_host_table *host;
    const char                 *source;  /* path */
    int                         profile; /* enum jl_profile */
    enum qt_level               level;
    uint32_t                    interval; /* YIELD_INTERVAL; not 0 */
    struct qt_function         *functions;
    uint32_t                    function_count, function_room;
    struct qt_actor            *actors;
    uint32_t                    actor_count, actor_room;
    struct qt_error            *errors;
    uint32_t                    error_count, error_room;
    uint32_t                    main;       /* 1 + function; 0: none */
    struct qt_map              *node_names; /* node.c */
    struct qt_task_types       *task_types; /* rule.c */
};

/* Making. Pointers to functions and nodes are valid until the next one is made. */
void     qt_module_init(struct qt_module *module, struct jl_arena *arena, struct jl_types *types,
                        struct jl_names *names, const struct jl_host_table *host);
uint32_t qt_add_function(struct qt_module *module, const char *name);
/* Adds a parameter to the head, and its Param node, which lies in no block. Before other nodes. */
uint32_t qt_add_param(struct qt_module *module, uint32_t function, const char *name, jl_type type);
uint32_t qt_add_block(struct qt_module *module, uint32_t function);
/* Adds a node without operands to the end of a block. Its type is what the caller says. */
uint32_t qt_add_node(struct qt_module *module, uint32_t function, uint32_t block, enum qt_op op,
                     jl_type type);
void     qt_add_operand(struct qt_module *module, uint32_t function, uint32_t node,
                        enum qt_operand_kind kind, uint32_t index);
/* Names a node: `name`, or "name.2", "name.3" if the function has that name already. */
void qt_name_node(struct qt_module *module, uint32_t function, uint32_t node, const char *name);
/* Adds a runtime error's or a program error's name and number, once. */
void qt_add_error(struct qt_module *module, const char *name, int64_t number);
/* Whether the node has a value, so that its line begins with "%n =". */
bool qt_has_value(const struct qt_node *node);
/* The tenancy that a node has if nothing is written: that of its function, or CPU_Parallel. */
uint8_t qt_usual_tenancy(const struct qt_function *function, enum qt_op op);
/* The type of a node by its rule; BAD if the rule does not hold. *why (may be NULL) says it. */
jl_type qt_rule_type(const struct qt_module *module, uint32_t function, uint32_t node,
                     const char **why);

/* Text. Printing and parsing again gives the same text, at every level. */
void qt_print(const struct qt_module *module, bool places, FILE *out);
void qt_print_function(const struct qt_module *module, uint32_t function, bool places, FILE *out);
/* Reads a module that qt_module_init has prepared. False: `diagnostics` has errors (Q1xxx). It may
 * be called with any bytes. */
bool qt_parse(struct qt_module *module, const struct jl_source *source,
              struct jl_diagnostics *diagnostics);

/*
 * Checks every rule of a level and fills `scope`. False: *why is one sentence that names the rule,
 * the function and the node, as "Q2007 nursery-order: @f: %4 Nursery_End %1 ends an outer nursery
 * before an inner one". Executors and passes take verified modules only.
 */
bool qt_verify(struct qt_module *module, const char **why);

/* High to Mid: makes budget operations explicit.
 *   back-edge     Budget_Decrement 1; Budget_Check interval
 *   call, spawn   Budget_Decrement 1; Budget_Check 0; Call ...
 * The runtime itself charges spawns, channel operations, allocations and I/O. */
bool qt_insert_budget(struct qt_module *module, const char **why);
/* Mid to Low. */
bool qt_lower_tasks(struct qt_module *module, const char **why);
/* Gives each function and node its tenancy: functions that are spawned or awaited, and what they
 * call, are CPU_Parallel. */
void qt_place_tenancies(struct qt_module *module);

#endif

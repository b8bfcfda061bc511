/* SPDX-License-Identifier: MIT */
/*
 * Register code. A function has a frame of 8-byte slots on the register stack of its task. Values
 * lie in slots as in memory, but integers are extended to 64 bits. A fallible value is a slot with
 * 0 or the error, and the value behind it.
 *
 * A frame: parameters, variables, values, then one slot for the return address of a call, then the
 * callee's frame, which begins with its arguments. So the arguments are written where the callee
 * wants them.
 */
#ifndef JANUSRT_LANG_RUN_CODE_H
#define JANUSRT_LANG_RUN_CODE_H

#include "host/shape.h"
#include "host/support.h"
#include "run/run.h"

union slot {
    int64_t     i;
    uint64_t    u;
    double      f;
    void       *p;
    const void *c;
};

/* An instruction is one cell, or two if it has a constant of 64 bits. */
struct cell {
    union {
        const void        *label; /* where the loop executes it */
        uint64_t           op;    /* before the code is finished */
        const struct fn   *fn;
        const struct slow *slow;
        int64_t            number;
    };
    uint16_t a, b; /* slots; b may be a small constant */
    int32_t  c;    /* a slot, a constant, or a distance in cells */
};

/* clang-format off */
/* Compare and branch: to c, if a is related to b (a slot, or with K a constant). */
#define RUN_BRANCHES(X) X(BrEq) X(BrNe) X(BrLt) X(BrLe)
#define RUN_BRANCHES_K(X) X(BrEqK) X(BrNeK) X(BrLtK) X(BrLeK) X(BrGtK) X(BrGeK)
#define RUN_PAID(X) \
    X(PayBrEq) X(PayBrNe) X(PayBrLt) X(PayBrLe) \
    X(PayBrEqK) X(PayBrNeK) X(PayBrLtK) X(PayBrLeK) X(PayBrGtK) X(PayBrGeK)
#define RUN_OPS(X) \
    X(Mov) X(Mov2) X(MovN) X(MovK) X(MovK64) \
    X(Add) X(Sub) X(Mul) X(Div) X(Rem) X(AddK) X(SubK) X(MulK) X(DivK) X(RemK) X(Neg) \
    X(Add32) X(Sub32) X(Mul32) X(AddK32) X(SubK32) X(MulK32) \
    X(AddU) X(SubU) X(MulU) X(DivU) X(RemU) \
    X(AddF) X(SubF) X(MulF) X(DivF) X(NegF) \
    X(FitI8) X(FitU8) X(FitI16) X(FitU16) X(FitI32) X(FitU32) X(FitU64) \
    X(Eq) X(Ne) X(Lt) X(Le) X(LtU) X(LeU) X(EqF) X(NeF) X(LtF) X(LeF) \
    X(EqK) X(NeK) X(LtK) X(LeK) X(GtK) X(GeK) X(And) X(Or) X(Not) \
    X(IntToF) X(UnsignedToF) \
    X(GetI8) X(GetU8) X(GetI16) X(GetU16) X(GetI32) X(GetU32) X(Get64) X(GetBytes) \
    X(Put8) X(Put16) X(Put32) X(Put64) X(PutBytes) \
    X(IndexI8) X(IndexU8) X(IndexI16) X(IndexU16) X(IndexI32) X(IndexU32) X(Index64) \
    X(SetIndex8) X(SetIndex16) X(SetIndex32) X(SetIndex64) \
    X(Jump) X(PayJump) X(Pay) X(BrIf) X(BrNot) \
    RUN_BRANCHES(X) RUN_BRANCHES_K(X) RUN_PAID(X) \
    X(Call) X(CallPay) X(CallValue) X(Ret0) X(Ret1) X(RetAdd) X(RetK) X(RetN) \
    X(RetOk0) X(RetOk1) X(RetOkN) X(RetError) X(Slow) X(Stuck) X(Halt)
/* clang-format on */

enum {
#define RUN_ENUM(name) R_##name,
    RUN_OPS(RUN_ENUM)
#undef RUN_ENUM
        R_COUNT
};

/* How a value goes between memory and slots. */
enum width { W_NONE, W_I8, W_U8, W_I16, W_U16, W_I32, W_U32, W_64, W_BYTES };
struct field {
    uint32_t offset, bytes; /* in a record, as a C struct is laid out */
    uint16_t slot, words;
    uint8_t  width;
};

struct fn {
    const struct jl_code  *code;
    const char            *name;
    const struct cell     *entry;
    uint32_t               entry_index;
    uint32_t               frame; /* slots, with room for what calls pass */
    uint32_t               base;  /* where callees' frames begin, after the return address */
    uint32_t               param_count, capture_count;
    struct field          *params; /* offsets of arguments count from the first one */
    struct field           result;
    uint32_t               environment_bytes; /* captures, as a C struct */
    uint32_t               argument_bytes;    /* the others, likewise */
    struct field          *deferred;          /* the parameters in the environment of a defer */
    bool                   fails, in_actor;
    const struct jl_shape *result_shape;
};

struct machine {
    const struct jl_code *code;
    union slot           *limit;
    void                 *state; /* of the actor */
};

/* An instruction that is a call of a C function. */
struct slow {
    void            (*run)(struct machine *m, union slot *r, const struct slow *s);
    uint64_t        place;
    uint32_t        a, b, c, d; /* slots, or what the function wants */
    uint32_t        count;      /* of `slots` */
    const uint16_t *slots;
    struct field    field;
    const void     *p, *q;
    uint8_t         flags;
};

struct actor {
    struct jl_actor_type type;
    const struct fn     *init;
    const struct fn    **methods;
};

struct jl_code {
    struct qt_module *module;
    struct jl_arena  *arena;
    struct fn        *functions;
    struct actor     *actors;
    struct cell      *cells;
    uint32_t          cell_count, cell_room;
    uint64_t         *places; /* by cell */
    uint32_t          place_count, place_room;
    uint8_t          *whats; /* by cell: the operator, for traps */
    uint32_t          what_count, what_room;
    uint32_t          stub; /* the cell that a task returns to */
    const char       *why;
};

extern const char *const jl_run_whats[];
enum what { WHAT_ADD, WHAT_SUB, WHAT_MUL, WHAT_DIV, WHAT_REM, WHAT_I8, WHAT_TYPES = WHAT_I8 };

/* The loop. It returns when `r`'s function does. NULL machine: *labels gets the table of labels. */
void jl_run_step(struct machine *m, const struct cell *ip, union slot *r,
                 const void *const **labels);

/* A value from memory into slots, and back. */
void         jl_run_load(union slot *to, const void *from, const struct field *f);
void         jl_run_store(void *to, const union slot *from, const struct field *f);
struct field jl_run_field(const struct jl_types *types, jl_type type);
uint32_t     jl_run_words(const struct jl_types *types, jl_type type);

/* Entries. */
int64_t jl_run_task(void *record);
int64_t jl_run_async(void *record);
void    jl_run_defer(const void *fn, void *environment);
int64_t jl_run_init(void *state, const void *context);
int64_t jl_run_handle(void *state, uint32_t method, const void *arguments, void *reply,
                      const void *context);
struct task_record {
    const struct fn *fn;
    uint64_t         pad;
    union slot       slots[];
};
enum { RUN_MESSAGE_MAX = 16384 }; /* bytes of arguments */
bool jl_run_make_actors(struct jl_code *code);

#endif

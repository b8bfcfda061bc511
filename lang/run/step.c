/* SPDX-License-Identifier: MIT */
/* The loop: each instruction jumps to the next one's label. */
#include "run/code.h"

#include <janusrt/janus.h>
#include <janusrt/yield.h>
#include <string.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define A r[ip->a]
#define B r[ip->b]
#define C r[ip->c]
#define K ((int64_t)ip->c)
#define CASE(name) L_##name:
#define NEXT_AT(cells)                                                                             \
    do {                                                                                           \
        ip += (cells);                                                                             \
        goto * ip->label;                                                                          \
    } while (0)
#define NEXT NEXT_AT(1)
#define BYTES ((char *)r + ip->c)

/* A task's memory of places is needed in traps only. */
static __attribute__((noreturn, noinline, cold)) void trap_overflow(const struct machine *m,
                                                                    const struct cell    *ip)
{
    size_t at = (size_t)(ip - m->code->cells);
    jl_trap_overflow(jl_run_whats[m->code->whats[at]], m->code->places[at]);
}

static __attribute__((noreturn, noinline, cold)) void trap_division(const struct machine *m,
                                                                    const struct cell    *ip,
                                                                    int64_t               divisor)
{
    size_t at = (size_t)(ip - m->code->cells);
    if (divisor == 0) jl_trap_zero(m->code->places[at]);
    trap_overflow(m, ip);
}

static __attribute__((noreturn, noinline, cold)) void trap_index(const struct machine *m,
                                                                 const struct cell    *ip,
                                                                 int64_t index, int64_t length)
{
    jl_trap_index(index, length, m->code->places[ip - m->code->cells]);
}

static __attribute__((noreturn, noinline, cold)) void trap_text(const struct machine *m,
                                                                const struct cell    *ip,
                                                                const char           *text)
{
    struct jl_text t = {text, (int64_t)strlen(text)};
    jl_panic(t, m->code->places[ip - m->code->cells]);
}

#define TOO_DEEP "calls are nested too deep for the stack of the task"

/* Enters a closure: its captures come behind the arguments. */
static const struct fn *enter_closure(const struct machine *m, const struct cell *ip,
                                      const union slot *r, union slot *next)
{
    const struct fn *fn = r[ip->c].c;
    if (fn == NULL) trap_text(m, ip, "a function value was used before it was set");
    if (next + fn->frame > m->limit) trap_text(m, ip, TOO_DEEP);
    const char *environment = r[ip->c + 1].c;
    for (uint32_t i = 0; i < fn->capture_count; i++)
        jl_run_load(next + fn->params[i].slot, environment + fn->params[i].offset, &fn->params[i]);
    return fn;
}

#define CHECKED(name, builtin, left, right, to)                                                    \
    CASE(name)                                                                                     \
    {                                                                                              \
        if (UNLIKELY(builtin(left, right, &to))) trap_overflow(m, ip);                             \
        NEXT;                                                                                      \
    }
/* Of i32: the check that the result fits is part of it. */
#define CHECKED32(name, builtin, right)                                                            \
    CASE(name)                                                                                     \
    {                                                                                              \
        int32_t v;                                                                                 \
        if (UNLIKELY(builtin((int32_t)B.i, (int32_t)(right), &v))) trap_overflow(m, ip);           \
        A.i = v;                                                                                   \
        NEXT;                                                                                      \
    }
#define SIMPLE(name, statement)                                                                    \
    CASE(name)                                                                                     \
    {                                                                                              \
        statement;                                                                                 \
        NEXT;                                                                                      \
    }
#define FIT(name, type)                                                                            \
    CASE(name)                                                                                     \
    {                                                                                              \
        int64_t v = B.i;                                                                           \
        if (UNLIKELY(v != (type)v)) trap_overflow(m, ip);                                          \
        A.i = v;                                                                                   \
        NEXT;                                                                                      \
    }
#define DIVIDE(name, right, op)                                                                    \
    CASE(name)                                                                                     \
    {                                                                                              \
        int64_t x = B.i, y = (right);                                                              \
        if (UNLIKELY((uint64_t)y + 1 <= 1) && (y == 0 || x == INT64_MIN)) trap_division(m, ip, y); \
        A.i = x op y;                                                                              \
        NEXT;                                                                                      \
    }
#define GET(name, type) SIMPLE(name, type v; memcpy(&v, BYTES, sizeof v); A.i = (int64_t)v)
#define INDEX(name, type)                                                                          \
    CASE(name)                                                                                     \
    {                                                                                              \
        int64_t i = C.i, n = r[ip->b + 1].i;                                                       \
        if (UNLIKELY((uint64_t)i >= (uint64_t)n)) trap_index(m, ip, i, n);                         \
        type v;                                                                                    \
        memcpy(&v, (const char *)B.c + (size_t)i * sizeof v, sizeof v);                            \
        A.i = (int64_t)v;                                                                          \
        NEXT;                                                                                      \
    }
#define SET_INDEX(name, bytes)                                                                     \
    CASE(name)                                                                                     \
    {                                                                                              \
        int64_t i = B.i, n = r[ip->a + 1].i;                                                       \
        if (UNLIKELY((uint64_t)i >= (uint64_t)n)) trap_index(m, ip, i, n);                         \
        memcpy((char *)A.p + (size_t)i * (bytes), &C, bytes);                                      \
        NEXT;                                                                                      \
    }
#define BRANCH(name, condition)                                                                    \
    CASE(name)                                                                                     \
    {                                                                                              \
        if (condition) NEXT_AT(ip->c);                                                             \
        NEXT;                                                                                      \
    }                                                                                              \
    CASE(Pay##name)                                                                                \
    {                                                                                              \
        janus_check_or_end(1);                                                                     \
        if (condition) NEXT_AT(ip->c);                                                             \
        NEXT;                                                                                      \
    }
#define SMALL ((int64_t)(int16_t)ip->b)
#define RETURN(statement)                                                                          \
    do {                                                                                           \
        const struct cell *at = r[-1].c;                                                           \
        union slot        *to = r - at->b + at->a;                                                 \
        statement;                                                                                 \
        r -= at->b;                                                                                \
        ip = at;                                                                                   \
        (void)to;                                                                                  \
        NEXT_AT(2);                                                                                \
    } while (0)
#define CALL                                                                                       \
    do {                                                                                           \
        const struct fn *fn = ip[1].fn;                                                            \
        union slot      *next = r + ip->b;                                                         \
        if (UNLIKELY(next + fn->frame > limit)) trap_text(m, ip, TOO_DEEP);                        \
        next[-1].c = ip;                                                                           \
        r = next;                                                                                  \
        ip = fn->entry;                                                                            \
        NEXT_AT(0);                                                                                \
    } while (0)

#define RUN_LABEL(name) &&L_##name,

/* One function on purpose: each instruction ends in a jump of its own. */
#define STEP_VALUES                                                                                \
    SIMPLE(Mov, A = B)                                                                             \
    SIMPLE(Mov2, union slot v = r[ip->b + 1]; A = B; r[ip->a + 1] = v)                             \
    SIMPLE(MovK, A.i = K)                                                                          \
    CASE(MovK64)                                                                                   \
    {                                                                                              \
        A.i = ip[1].number;                                                                        \
        NEXT_AT(2);                                                                                \
    }                                                                                              \
    CASE(MovN)                                                                                     \
    {                                                                                              \
        if (ip->c < 0)                                                                             \
            memset(&A, 0, (size_t)-ip->c * 8);                                                     \
        else                                                                                       \
            memmove(&A, &B, (size_t)ip->c * 8);                                                    \
        NEXT;                                                                                      \
    }                                                                                              \
    CHECKED(Add, __builtin_add_overflow, B.i, C.i, A.i)                                            \
    CHECKED(Sub, __builtin_sub_overflow, B.i, C.i, A.i)                                            \
    CHECKED(Mul, __builtin_mul_overflow, B.i, C.i, A.i)                                            \
    CHECKED(AddK, __builtin_add_overflow, B.i, K, A.i)                                             \
    CHECKED(SubK, __builtin_sub_overflow, B.i, K, A.i)                                             \
    CHECKED(MulK, __builtin_mul_overflow, B.i, K, A.i)                                             \
    CHECKED(Neg, __builtin_sub_overflow, (int64_t)0, B.i, A.i)                                     \
    CHECKED32(Add32, __builtin_add_overflow, C.i)                                                  \
    CHECKED32(Sub32, __builtin_sub_overflow, C.i)                                                  \
    CHECKED32(Mul32, __builtin_mul_overflow, C.i)                                                  \
    CHECKED32(AddK32, __builtin_add_overflow, K)                                                   \
    CHECKED32(SubK32, __builtin_sub_overflow, K)                                                   \
    CHECKED32(MulK32, __builtin_mul_overflow, K)                                                   \
    CHECKED(AddU, __builtin_add_overflow, B.u, C.u, A.u)                                           \
    CHECKED(SubU, __builtin_sub_overflow, B.u, C.u, A.u)                                           \
    CHECKED(MulU, __builtin_mul_overflow, B.u, C.u, A.u)                                           \
    DIVIDE(Div, C.i, /)                                                                            \
    DIVIDE(Rem, C.i, %)                                                                            \
    SIMPLE(DivK, A.i = B.i / K)                                                                    \
    SIMPLE(RemK, A.i = B.i % K)                                                                    \
    SIMPLE(DivU, if (C.u == 0) trap_division(m, ip, 0); A.u = B.u / C.u)                           \
    SIMPLE(RemU, if (C.u == 0) trap_division(m, ip, 0); A.u = B.u % C.u)                           \
    SIMPLE(AddF, A.f = B.f + C.f)                                                                  \
    SIMPLE(SubF, A.f = B.f - C.f)                                                                  \
    SIMPLE(MulF, A.f = B.f * C.f)                                                                  \
    SIMPLE(DivF, A.f = B.f / C.f)                                                                  \
    SIMPLE(NegF, A.f = -B.f)                                                                       \
    FIT(FitI8, int8_t)                                                                             \
    FIT(FitU8, uint8_t)                                                                            \
    FIT(FitI16, int16_t)                                                                           \
    FIT(FitU16, uint16_t)                                                                          \
    FIT(FitI32, int32_t)                                                                           \
    FIT(FitU32, uint32_t)                                                                          \
    SIMPLE(FitU64, if (UNLIKELY(B.i < 0)) trap_overflow(m, ip); A = B)                             \
    SIMPLE(IntToF, A.f = (double)B.i)                                                              \
    SIMPLE(UnsignedToF, A.f = (double)B.u)

#define STEP_COMPARES                                                                              \
    SIMPLE(Eq, A.i = B.i == C.i)                                                                   \
    SIMPLE(Ne, A.i = B.i != C.i)                                                                   \
    SIMPLE(Lt, A.i = B.i < C.i)                                                                    \
    SIMPLE(Le, A.i = B.i <= C.i)                                                                   \
    SIMPLE(LtU, A.i = B.u < C.u)                                                                   \
    SIMPLE(LeU, A.i = B.u <= C.u)                                                                  \
    SIMPLE(EqF, A.i = B.f == C.f)                                                                  \
    SIMPLE(NeF, A.i = B.f != C.f)                                                                  \
    SIMPLE(LtF, A.i = B.f < C.f)                                                                   \
    SIMPLE(LeF, A.i = B.f <= C.f)                                                                  \
    SIMPLE(EqK, A.i = B.i == K)                                                                    \
    SIMPLE(NeK, A.i = B.i != K)                                                                    \
    SIMPLE(LtK, A.i = B.i < K)                                                                     \
    SIMPLE(LeK, A.i = B.i <= K)                                                                    \
    SIMPLE(GtK, A.i = B.i > K)                                                                     \
    SIMPLE(GeK, A.i = B.i >= K)                                                                    \
    SIMPLE(And, A.i = B.i & C.i)                                                                   \
    SIMPLE(Or, A.i = B.i | C.i)                                                                    \
    SIMPLE(Not, A.i = !B.i)                                                                        \
    BRANCH(BrEq, A.i == B.i)                                                                       \
    BRANCH(BrNe, A.i != B.i)                                                                       \
    BRANCH(BrLt, A.i < B.i)                                                                        \
    BRANCH(BrLe, A.i <= B.i)                                                                       \
    BRANCH(BrEqK, A.i == SMALL)                                                                    \
    BRANCH(BrNeK, A.i != SMALL)                                                                    \
    BRANCH(BrLtK, A.i < SMALL)                                                                     \
    BRANCH(BrLeK, A.i <= SMALL)                                                                    \
    BRANCH(BrGtK, A.i > SMALL)                                                                     \
    BRANCH(BrGeK, A.i >= SMALL)

#define STEP_DATA                                                                                  \
    GET(GetI8, int8_t)                                                                             \
    GET(GetU8, uint8_t)                                                                            \
    GET(GetI16, int16_t)                                                                           \
    GET(GetU16, uint16_t)                                                                          \
    GET(GetI32, int32_t)                                                                           \
    GET(GetU32, uint32_t)                                                                          \
    GET(Get64, int64_t)                                                                            \
    SIMPLE(GetBytes, memmove(&A, BYTES, ip->b))                                                    \
    SIMPLE(Put8, memcpy(BYTES, &A, 1))                                                             \
    SIMPLE(Put16, memcpy(BYTES, &A, 2))                                                            \
    SIMPLE(Put32, memcpy(BYTES, &A, 4))                                                            \
    SIMPLE(Put64, memcpy(BYTES, &A, 8))                                                            \
    SIMPLE(PutBytes, memmove(BYTES, &A, ip->b))                                                    \
    INDEX(IndexI8, int8_t)                                                                         \
    INDEX(IndexU8, uint8_t)                                                                        \
    INDEX(IndexI16, int16_t)                                                                       \
    INDEX(IndexU16, uint16_t)                                                                      \
    INDEX(IndexI32, int32_t)                                                                       \
    INDEX(IndexU32, uint32_t)                                                                      \
    INDEX(Index64, int64_t)                                                                        \
    SET_INDEX(SetIndex8, 1)                                                                        \
    SET_INDEX(SetIndex16, 2)                                                                       \
    SET_INDEX(SetIndex32, 4)                                                                       \
    SET_INDEX(SetIndex64, 8)

#define STEP_CONTROL                                                                               \
    CASE(Jump) NEXT_AT(ip->c);                                                                     \
    CASE(PayJump)                                                                                  \
    {                                                                                              \
        janus_check_or_end(1);                                                                     \
        NEXT_AT(ip->c);                                                                            \
    }                                                                                              \
    SIMPLE(Pay, janus_check_or_end((uint32_t)ip->c))                                               \
    CASE(BrIf)                                                                                     \
    {                                                                                              \
        if (A.i != 0) NEXT_AT(ip->c);                                                              \
        NEXT;                                                                                      \
    }                                                                                              \
    CASE(BrNot)                                                                                    \
    {                                                                                              \
        if (A.i == 0) NEXT_AT(ip->c);                                                              \
        NEXT;                                                                                      \
    }                                                                                              \
    CASE(CallPay) janus_check_or_end(1);                                                           \
    CASE(Call) CALL;                                                                               \
    CASE(CallValue)                                                                                \
    {                                                                                              \
        union slot      *next = r + ip->b;                                                         \
        const struct fn *fn = enter_closure(m, ip, r, next);                                       \
        next[-1].c = ip;                                                                           \
        r = next;                                                                                  \
        ip = fn->entry;                                                                            \
        NEXT_AT(0);                                                                                \
    }                                                                                              \
    CASE(Ret0) RETURN((void)0);                                                                    \
    CASE(Ret1) RETURN(*to = A);                                                                    \
    CASE(RetAdd)                                                                                   \
    {                                                                                              \
        int64_t v;                                                                                 \
        if (UNLIKELY(__builtin_add_overflow(B.i, C.i, &v))) trap_overflow(m, ip);                  \
        RETURN(to->i = v);                                                                         \
    }                                                                                              \
    CASE(RetK) RETURN(to->i = K);                                                                  \
    CASE(RetN) RETURN(memmove(to, &A, (size_t)ip->c * 8));                                         \
    CASE(RetOk0) RETURN(to->i = 0);                                                                \
    CASE(RetOk1) RETURN(union slot v = A; to->i = 0; to[1] = v);                                   \
    CASE(RetOkN) RETURN(memmove(to + 1, &A, (size_t)ip->c * 8); to->i = 0);                        \
    CASE(RetError) RETURN(*to = A);                                                                \
    CASE(Slow)                                                                                     \
    {                                                                                              \
        const struct slow *s = ip[1].slow;                                                         \
        s->run(m, r, s);                                                                           \
        NEXT_AT(2);                                                                                \
    }                                                                                              \
    CASE(Stuck) trap_text(m, ip, "this place cannot be reached");                                  \
    CASE(Halt) return;

void jl_run_step(struct machine *m, const struct cell *ip, union slot *r,
                 const void *const **labels)
{
    static const void *const table[] = {RUN_OPS(RUN_LABEL)};
    if (m == NULL) {
        *labels = table;
        return;
    }
    union slot *const limit = m->limit;
    NEXT_AT(0);
    STEP_VALUES
    STEP_COMPARES
    STEP_DATA
    STEP_CONTROL
}

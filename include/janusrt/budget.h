/* SPDX-License-Identifier: MIT */
/*
 * Budgets: how much a task may still do, as five plain numbers passed by value.
 *
 *     ops           abstract instructions; every operation costs at least one
 *     memory        live bytes; freeing gives them back
 *     spawn_count   children, over a lifetime
 *     channel_ops   sends and receives
 *     syscalls      file and network operations
 *
 * A component at zero stops only what needs it: a task without syscalls computes on, and its first
 * read exhausts it. Addition stops at the largest number instead of wrapping. Subtraction takes all
 * or nothing and names the first component that is missing.
 *
 *     janus_budget left = janus_budget_default();
 *     if (janus_budget_charge(&left, janus_price_alloc(4096)) == JANUS_COMPONENT_MEMORY) ...
 *
 * The inline functions are arithmetic on the caller's own values. They take no lock, never wait and
 * may be called from anywhere.
 */
#ifndef JANUSRT_BUDGET_H
#define JANUSRT_BUDGET_H

#include <janusrt/export.h>
#include <janusrt/profile.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct janus_budget {
    uint64_t ops;
    uint64_t memory; /* bytes */
    uint64_t spawn_count;
    uint64_t channel_ops;
    uint64_t syscalls;
} janus_budget;

/* The components, in the order in which a charge checks them. */
#define JANUS_COMPONENT_MAP(X)                                                                     \
    X(OPS, ops)                                                                                    \
    X(MEMORY, memory)                                                                              \
    X(SPAWN_COUNT, spawn_count)                                                                    \
    X(CHANNEL_OPS, channel_ops)                                                                    \
    X(SYSCALLS, syscalls)

typedef enum janus_component {
    JANUS_COMPONENT_NONE = 0, /* nothing is missing */
#define JANUS_COMPONENT_ENUM(name, field) JANUS_COMPONENT_##name,
    JANUS_COMPONENT_MAP(JANUS_COMPONENT_ENUM)
#undef JANUS_COMPONENT_ENUM
} janus_component;

/* The budget of a task that was given none: Budget.default(), Budget.childDefault(). */
#define JANUS_DEFAULT_OPS UINT64_C(10000)
#define JANUS_DEFAULT_MEMORY (UINT64_C(1) << 20)
#define JANUS_DEFAULT_SPAWN_COUNT UINT64_C(0)
#define JANUS_DEFAULT_CHANNEL_OPS UINT64_C(100)
#define JANUS_DEFAULT_SYSCALLS UINT64_C(10)

/* Loop iterations between two yield checks, by profile. :sovereign has no default. */
#define JANUS_YIELD_INTERVAL_SERVICE 1024
#define JANUS_YIELD_INTERVAL_CLUSTER 512

static inline janus_budget janus_budget_of(uint64_t ops, uint64_t memory, uint64_t spawn_count,
                                           uint64_t channel_ops, uint64_t syscalls)
{
    janus_budget budget = {ops, memory, spawn_count, channel_ops, syscalls};
    return budget;
}

/* Nothing at all: Budget.zero(), for :core. */
static inline janus_budget janus_budget_zero(void) { return janus_budget_of(0, 0, 0, 0, 0); }

/* 10,000 ops, 1 MiB, no spawns, 100 channel operations, 10 system calls. */
static inline janus_budget janus_budget_default(void)
{
    return janus_budget_of(JANUS_DEFAULT_OPS, JANUS_DEFAULT_MEMORY, JANUS_DEFAULT_SPAWN_COUNT,
                           JANUS_DEFAULT_CHANNEL_OPS, JANUS_DEFAULT_SYSCALLS);
}

/* One child's share of a pool. It equals janus_budget_default. */
static inline janus_budget janus_budget_child_default(void) { return janus_budget_default(); }

/* 100,000 ops, 10 MiB, no spawns, 1000 channel operations, 100 system calls. */
static inline janus_budget janus_budget_actor_default(void)
{
    return janus_budget_of(100000, UINT64_C(10) << 20, 0, 1000, 100);
}

/* 100,000 ops, 10 MiB, 100 spawns, 1000 channel operations, 100 system calls. */
static inline janus_budget janus_budget_service_default(void)
{
    return janus_budget_of(100000, UINT64_C(10) << 20, 100, 1000, 100);
}

/* 1,000,000 ops, 100 MiB, 1000 spawns, 10,000 channel operations, 1000 system calls. */
static inline janus_budget janus_budget_cluster_default(void)
{
    return janus_budget_of(1000000, UINT64_C(100) << 20, 1000, 10000, 1000);
}

/*
 * A budget with the named fields, and the default's numbers in the others: JANUS_BUDGET(.ops = 500,
 * .syscalls = 0).
 */
#ifndef __cplusplus
#define JANUS_BUDGET(...)                                                                          \
    __extension__({                                                                                \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"")       \
            janus_budget janus_budget_made = {.ops = JANUS_DEFAULT_OPS,                            \
                                              .memory = JANUS_DEFAULT_MEMORY,                      \
                                              .spawn_count = JANUS_DEFAULT_SPAWN_COUNT,            \
                                              .channel_ops = JANUS_DEFAULT_CHANNEL_OPS,            \
                                              .syscalls = JANUS_DEFAULT_SYSCALLS,                  \
                                              __VA_ARGS__};                                        \
        _Pragma("GCC diagnostic pop") janus_budget_made;                                           \
    })
#else
template <class F> inline janus_budget janus_budget_with_(F fill)
{
    janus_budget budget = janus_budget_default();
    fill(budget);
    return budget;
}
#define JANUS_BUDGET(...)                                                                          \
    janus_budget_with_(                                                                            \
        [&](janus_budget &janus_budget_set_) { JANUS_SET_ALL_(janus_budget_set_, __VA_ARGS__) })
#endif

/* Arithmetic of add and scale, which stops at the largest number. */
static inline uint64_t janus_units_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t janus_units_times(uint64_t a, uint64_t b)
{
    return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

static inline uint64_t janus_units_min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static inline bool janus_budget_equal(janus_budget a, janus_budget b)
{
    return a.ops == b.ops && a.memory == b.memory && a.spawn_count == b.spawn_count &&
           a.channel_ops == b.channel_ops && a.syscalls == b.syscalls;
}

static inline bool janus_budget_is_zero(janus_budget a)
{
    return (a.ops | a.memory | a.spawn_count | a.channel_ops | a.syscalls) == 0;
}

/* The first component that `have` lacks to cover `need`. NONE: it covers all of them. */
static inline janus_component janus_budget_lacks(janus_budget have, janus_budget need)
{
    if (have.ops < need.ops) return JANUS_COMPONENT_OPS;
    if (have.memory < need.memory) return JANUS_COMPONENT_MEMORY;
    if (have.spawn_count < need.spawn_count) return JANUS_COMPONENT_SPAWN_COUNT;
    if (have.channel_ops < need.channel_ops) return JANUS_COMPONENT_CHANNEL_OPS;
    if (have.syscalls < need.syscalls) return JANUS_COMPONENT_SYSCALLS;
    return JANUS_COMPONENT_NONE;
}

/* The sum. A component that would overflow becomes UINT64_MAX. */
static inline janus_budget janus_budget_add(janus_budget a, janus_budget b)
{
    return janus_budget_of(janus_units_add(a.ops, b.ops), janus_units_add(a.memory, b.memory),
                           janus_units_add(a.spawn_count, b.spawn_count),
                           janus_units_add(a.channel_ops, b.channel_ops),
                           janus_units_add(a.syscalls, b.syscalls));
}

/* `count` times the budget. A component that would overflow becomes UINT64_MAX. */
static inline janus_budget janus_budget_scale(janus_budget a, uint64_t count)
{
    return janus_budget_of(janus_units_times(a.ops, count), janus_units_times(a.memory, count),
                           janus_units_times(a.spawn_count, count),
                           janus_units_times(a.channel_ops, count),
                           janus_units_times(a.syscalls, count));
}

/*
 * Takes `amount` out of *from, all of it or nothing. Returns the first missing component, or NONE.
 * If the price is a constant, the compiler drops the comparisons with zero.
 */
static inline janus_component janus_budget_charge(janus_budget *from, janus_budget amount)
{
    janus_component missing = janus_budget_lacks(*from, amount);
    if (missing != JANUS_COMPONENT_NONE) return missing;
    from->ops -= amount.ops;
    from->memory -= amount.memory;
    from->spawn_count -= amount.spawn_count;
    from->channel_ops -= amount.channel_ops;
    from->syscalls -= amount.syscalls;
    return JANUS_COMPONENT_NONE;
}

/* The smaller of each component. */
static inline janus_budget janus_budget_min(janus_budget a, janus_budget b)
{
    return janus_budget_of(janus_units_min(a.ops, b.ops), janus_units_min(a.memory, b.memory),
                           janus_units_min(a.spawn_count, b.spawn_count),
                           janus_units_min(a.channel_ops, b.channel_ops),
                           janus_units_min(a.syscalls, b.syscalls));
}

/* Lowers *amount to the limit where it is above. Returns whether it changed anything. */
static inline bool janus_budget_clamp(janus_budget *amount, janus_budget limit)
{
    janus_budget clamped = janus_budget_min(*amount, limit);
    bool         changed = !janus_budget_equal(clamped, *amount);
    *amount = clamped;
    return changed;
}

/*
 * The price list. Each price is a budget to charge. A loop pays for many iterations at once.
 */
static inline janus_budget janus_price_loop(uint64_t iterations)
{
    return janus_budget_of(iterations, 0, 0, 0, 0);
}

static inline janus_budget janus_price_call(void) { return janus_budget_of(1, 0, 0, 0, 0); }

static inline janus_budget janus_price_alloc(uint64_t bytes)
{
    return janus_budget_of(1, bytes, 0, 0, 0);
}

static inline janus_budget janus_price_spawn(void) { return janus_budget_of(1, 0, 1, 0, 0); }

static inline janus_budget janus_price_send(void) { return janus_budget_of(1, 0, 0, 1, 0); }

static inline janus_budget janus_price_recv(void) { return janus_budget_of(1, 0, 0, 1, 0); }

static inline janus_budget janus_price_file_io(void) { return janus_budget_of(1, 0, 0, 0, 1); }

static inline janus_budget janus_price_network_io(void) { return janus_budget_of(1, 0, 0, 0, 1); }

/*
 * Takes a new child's share from an explicit pool. The pool pays the price of the spawn. Then it
 * gives the child what it wants, or what is left. On NONE, *pool is reduced by share and price, and
 * *out is the share. Otherwise nothing changed, and the result is what the pool lacks: SPAWN_COUNT
 * or OPS. OPS also means that the child would get no op.
 */
static inline janus_component janus_budget_split(janus_budget *pool, janus_budget want,
                                                 janus_budget *out)
{
    janus_budget    rest = *pool;
    janus_component missing = janus_budget_charge(&rest, janus_price_spawn());
    if (missing != JANUS_COMPONENT_NONE) return missing;
    if (rest.ops == 0) return JANUS_COMPONENT_OPS;
    *out = janus_budget_min(rest, want);
    (void)janus_budget_charge(&rest, *out);
    *pool = rest;
    return JANUS_COMPONENT_NONE;
}

/*
 * What a profile gives to a program that asks for nothing. In :sovereign and :core all fields are
 * 0: nothing is implicit. The struct may grow at its end.
 */
typedef struct janus_limits {
    uint64_t     max_tasks;          /* live children of an implicit nursery */
    janus_budget task_budget;        /* of each of them */
    janus_budget budget;             /* the most that a request gets without a budget capability */
    uint64_t     max_channel_values; /* elements */
    uint64_t     max_channels;       /* at a time */
    uint32_t     yield_interval;     /* loop iterations between checks */
    uint32_t     reserved;
} janus_limits;

JANUS_BEGIN_DECLS

/*
 * The limits that a profile implies.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    the struct is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  NULL for a number that is no profile.
 */
JANUS_API const janus_limits *janus_profile_limits(janus_profile profile);

/*
 * The pool of a nursery without a budget: task_budget for each of max_tasks children.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a table look-up.
 * Errors:  a zero budget for a number that is no profile, and for profiles without limits.
 */
JANUS_API janus_budget janus_profile_pool(janus_profile profile);

/*
 * The number of loop iterations between two yield checks: `asked`, or if that is 0 the profile's.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a table look-up.
 * Errors:  0 for :core, for :sovereign unless `asked`, and for a number that is no profile.
 */
JANUS_API uint32_t janus_profile_yield_interval(janus_profile profile, uint32_t asked);

/*
 * The name of a component as the struct spells it: "spawn_count".
 *
 * Context: anyone, any thread, signal handlers too.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  "none" for NONE, "?" for a number that is no component.
 */
JANUS_API const char *janus_component_name(janus_component component);

/*
 * One component of a budget.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a branch or two.
 * Errors:  0 for a number that is no component.
 */
JANUS_API uint64_t janus_budget_get(const janus_budget *budget, janus_component component);

/*
 * Writes a budget as text: "ops 9990, memory 1 MiB, spawn_count 0, channel_ops 100, syscalls
 * unlimited". Memory has the largest exact unit. UINT64_MAX is "unlimited".
 *
 * Context: anyone, any thread.
 * Yields:  only if the turn is over.
 * Owns:    writes at most `size` bytes to `buffer`, always terminated if `size` is not 0.
 * Cost:    an snprintf.
 * Errors:  none. Returns the length of the whole text, as snprintf does.
 */
JANUS_API size_t janus_budget_text(const janus_budget *budget, char *buffer, size_t size);

JANUS_END_DECLS
#endif

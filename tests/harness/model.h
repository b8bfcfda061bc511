/* SPDX-License-Identifier: MIT */
/*
 * Tries every order in which threads can step through code that meets in atomic operations.
 *
 *     #include "model.h"            first: it redirects base/atomic.h
 *     #include "sched/deque.c"      the code that is shipped
 *
 *     static const struct model_scenario last_item = {
 *         .name = "one item, owner and thief", .state = &world, .setup = fill,
 *         .bodies = {owner, thief}, .check = taken_once, .teardown = empty,
 *     };
 *     TEST("the last item is taken once") { model_pass(&last_item); }
 *
 * The bodies run as coroutines of one thread. A body stops *before* each atomic operation and
 * announces it. The engine then chooses which body steps next. It runs the scenario again and
 * again, each time with another choice somewhere, until no choice is left. Two orders may differ
 * only in neighbouring steps that touch different objects, or that both only read. They have the
 * same result, and the engine runs only one of them (dynamic partial-order reduction). `every`
 * turns this off.
 *
 * What a body does between two atomic operations is one step with the first of them.
 * ThreadSanitizer checks other memory for races. Everything else must be deterministic: no clock,
 * no addresses as values. A check must not depend on the order of unrelated steps. If an order
 * matters, make it part of the model by model_point on an object of its own.
 */
#ifndef JANUSRT_TESTS_MODEL_H
#define JANUSRT_TESTS_MODEL_H

#include "base/atomic.h"
#include "harness.h"

#include <stdint.h>

enum { MODEL_THREADS_MAX = 4 };

/*
 * When others see a store. Stores that are not seq_cst wait in a buffer of their thread. A seq_cst
 * store, a read-modify-write and a fence first wait until their own thread's buffer is empty.
 */
enum model_memory {
    MODEL_SC,  /* at once */
    MODEL_TSO, /* later, in order: as on x86 */
    MODEL_PSO, /* later; a release store after all earlier ones, others in any order of objects */
};

struct model_scenario {
    const char       *name;
    void             *state;
    void              (*setup)(void *state);                               /* or NULL */
    void              (*bodies[MODEL_THREADS_MAX])(void *state, int self); /* NULL ends the list */
    const char       *names[MODEL_THREADS_MAX]; /* or NULL, of the bodies */
    void              (*check)(void *state);    /* or NULL; when all bodies have returned */
    void              (*teardown)(void *state); /* or NULL; always, also after a failure */
    enum model_memory memory;
    bool              every; /* no reduction: for small scenarios, and to test the engine */
};

struct model_result {
    uint64_t    executions; /* from the first step to the last */
    uint64_t    redundant;  /* of these, equal to an earlier one */
    uint64_t    steps;      /* in all of them */
    const char *failure;    /* the reason and the steps that led there; NULL: no failure */
};

/* Runs all executions, or all up to the first failure. */
struct model_result model_explore(const struct model_scenario *scenario);

/* Runs all executions and prints what was tried. A failure prints its steps and fails the test. */
void model_pass(const struct model_scenario *scenario);

/* Runs a scenario that must fail with a description that contains `word`. Otherwise fails the
 * test. */
void model_find(const struct model_scenario *scenario, const char *word);

/* In bodies and checks: fails this execution unless the expression is true. */
#define MODEL_CHECK(expression)                                                                    \
    ((expression) ? (void)0 : model_fail(#expression, __FILE__, __LINE__))

__attribute__((noreturn)) void model_fail(const char *what, const char *file, int line);

/* In bodies: returns one of 0 … count - 1. The engine tries every one. */
unsigned model_choose(unsigned count);

/* In bodies: waits until `ready` returns true. It may read anything. If no body can step and one
 * waits, the execution has failed. */
void model_wait_until(bool (*ready)(void *argument), void *argument);

/* Waits as model_wait_until. `ready` reads only `object`, and the code up to the next operation
 * writes only `object`. */
void model_wait_for(const volatile void *object, bool (*ready)(void *argument), void *argument);

/* futex(2), FUTEX_WAIT and FUTEX_WAKE. Which sleeper a wake meets is a choice. */
void     model_futex_wait(_Atomic(uint32_t) *word, uint32_t expected);
unsigned model_futex_wake(_Atomic(uint32_t) *word, unsigned count);

/* membarrier(2): afterwards all threads see everything that other threads stored before. It reaches
 * them one after the other, in an order that is a choice. */
void model_membarrier(void);

/* In bodies: the number of the running body. */
int model_self(void);

enum model_access {
    MODEL_LOCAL, /* touches nothing that others touch */
    MODEL_READ,
    MODEL_WRITE,
    MODEL_ANY /* may touch anything */
};

struct model_at {
    const char *what, *file;
    int         line;
};

/* For the macros: others may step before what follows. `drains`: waits for the own stores. */
void model_point(enum model_access access, const volatile void *object, bool drains,
                 struct model_at at);
void model_load(const volatile void *object, void *out, size_t bytes, struct model_at at);
void model_store(volatile void *object, const void *value, size_t bytes, memory_order order,
                 struct model_at at);

/* The operations of base/atomic.h. Arguments are evaluated first, because they may be operations
 * too. */
#pragma GCC diagnostic ignored "-Wshadow"

#define MODEL_AT(what) ((struct model_at){what, __FILE__, __LINE__})

#undef JRT_LOAD
#define JRT_LOAD(object, order)                                                                    \
    ({                                                                                             \
        __typeof__(object)             model_object = (object);                                    \
        __typeof__((void)0, *(object)) model_value;                                                \
        model_load(model_object, &model_value, sizeof model_value, MODEL_AT("load " #object));     \
        model_value;                                                                               \
    })

#undef JRT_STORE
#define JRT_STORE(object, value, order)                                                            \
    ({                                                                                             \
        __typeof__(object)             model_object = (object);                                    \
        __typeof__((void)0, *(object)) model_value = (value);                                      \
        model_store(model_object, &model_value, sizeof model_value, memory_order_##order,          \
                    MODEL_AT("store " #object));                                                   \
    })

#undef JRT_RMW
#define JRT_RMW(verb, object, value, order)                                                        \
    ({                                                                                             \
        __typeof__(object)           model_object = (object);                                      \
        __typeof__((void)0, (value)) model_value = (value);                                        \
        model_point(MODEL_WRITE, model_object, true, MODEL_AT(#verb " " #object));                 \
        atomic_##verb(model_object, model_value);                                                  \
    })

#undef JRT_CAS
#define JRT_CAS(object, expected, value, order, failed)                                            \
    ({                                                                                             \
        __typeof__(object)             model_object = (object);                                    \
        __typeof__(expected)           model_expected = (expected);                                \
        __typeof__((void)0, *(object)) model_value = (value);                                      \
        model_point(MODEL_WRITE, model_object, true, MODEL_AT("cas " #object));                    \
        atomic_compare_exchange_strong(model_object, model_expected, model_value);                 \
    })

#undef JRT_FENCE
#define JRT_FENCE(order) model_point(MODEL_LOCAL, NULL, true, MODEL_AT("fence"))

#endif

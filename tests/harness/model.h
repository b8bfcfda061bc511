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
 * The bodies run as coroutines of one thread. At each atomic operation a body stops *before* it
 * and says what it is about to do; the engine then chooses who steps next. It runs the scenario
 * again and again, each time with another choice somewhere, until no choice is left. Two orders
 * that differ only in neighbours that do not touch the same object, or both only read it, have the
 * same result, and only one of them is run (dynamic partial-order reduction); `every` turns this
 * off.
 *
 * What a body does between two atomic operations is one step with the first of them; that other
 * memory is not raced for is ThreadSanitizer's to find out. All else must be deterministic: no
 * clock, no addresses as values. A check must not depend on the order of unrelated steps: what
 * happened before what can be made a part of the model by model_point on an object of its own.
 */
#ifndef JANUSRT_TESTS_MODEL_H
#define JANUSRT_TESTS_MODEL_H

#include "base/atomic.h"
#include "harness.h"

#include <stdint.h>

enum { MODEL_THREADS_MAX = 4 };

/*
 * When others see a store. Stores that are not seq_cst wait in a buffer of their thread; a seq_cst
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
    uint64_t    redundant;  /* of these, found on the way to be like an earlier one */
    uint64_t    steps;      /* in all of them */
    const char *failure;    /* what, and the steps that led there; NULL: all went well */
};

/* Runs all executions, or all up to the first that fails. */
struct model_result model_explore(const struct model_scenario *scenario);

/* The same; prints what was tried. A failure prints its steps and fails the test. */
void model_pass(const struct model_scenario *scenario);

/* The same for what must fail: fails the test when no execution does, or one for another reason:
 * its description must contain `word`. */
void model_find(const struct model_scenario *scenario, const char *word);

/* In bodies and checks: this execution has failed. */
#define MODEL_CHECK(expression)                                                                    \
    ((expression) ? (void)0 : model_fail(#expression, __FILE__, __LINE__))

__attribute__((noreturn)) void model_fail(const char *what, const char *file, int line);

/* In bodies: one of 0 … count - 1; every one is tried. */
unsigned model_choose(unsigned count);

/* In bodies: waits until `ready` says so, which may read anything. When nobody can step and
 * somebody waits, the execution has failed. */
void model_wait_until(bool (*ready)(void *argument), void *argument);

/* The same where `ready` reads, and what follows up to the next operation writes, only `object`. */
void model_wait_for(const volatile void *object, bool (*ready)(void *argument), void *argument);

/* futex(2), FUTEX_WAIT and FUTEX_WAKE; whom a wake meets is a choice. */
void     model_futex_wait(_Atomic(uint32_t) *word, uint32_t expected);
unsigned model_futex_wake(_Atomic(uint32_t) *word, unsigned count);

/* membarrier(2): whatever other threads stored before is seen by all afterwards. They are reached
 * one after the other, in an order that is a choice. */
void model_membarrier(void);

/* In bodies: which of them runs. */
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

/* Behind the macros: others may step in before what follows. `drains`: waits for the own stores. */
void model_point(enum model_access access, const volatile void *object, bool drains,
                 struct model_at at);
void model_load(const volatile void *object, void *out, size_t bytes, struct model_at at);
void model_store(volatile void *object, const void *value, size_t bytes, memory_order order,
                 struct model_at at);

/* The operations of base/atomic.h. Arguments are evaluated first: they may be operations too. */
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

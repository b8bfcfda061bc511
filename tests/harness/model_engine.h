/* SPDX-License-Identifier: MIT */
/* What model.c (threads and memory) and model_search.c (orders, the essay) share. */
#ifndef JANUSRT_TESTS_MODEL_ENGINE_H
#define JANUSRT_TESTS_MODEL_ENGINE_H

#include "model.h"

#include "fiber/context.h"

enum {
    STORES_MAX = 15, /* waiting stores of one thread in one run */
    ACTORS = MODEL_THREADS_MAX * (1 + STORES_MAX),
    STEPS_MAX = 1000,
};

_Static_assert(ACTORS <= 64, "sets of actors are 64-bit masks");

typedef uint64_t actor_set;

struct clock {
    int16_t last[ACTORS];
};

struct action {
    enum model_access    access;
    bool                 waits; /* it may have to wait */
    const volatile void *object;
    struct model_at      at;
};

struct step {
    struct action action;
    int           actor;
    unsigned      choice, choices; /* model_choose: which of how many. Otherwise choices is 0 */
    actor_set     enabled, backtrack, sleep;
    struct clock  clock;
};

struct store {
    unsigned       follows; /* a set of earlier stores of its thread: they are seen before it */
    volatile void *object;
    uint64_t       value;
    size_t         bytes;
};

struct thread {
    struct jrt_context context;
    void               (*job)(void *state, int self);
    bool               done, drains, asleep;
    bool               (*ready)(void *argument);
    void              *ready_argument;
    struct clock       drained; /* all its stores that no longer wait */
    struct store       stores[STORES_MAX];
    int                store_count;
    unsigned           waiting; /* a set of stores: others do not see them yet */
};

struct model_engine {
    const struct model_scenario *scenario; /* NULL: nothing is explored */
    int                          thread_count;
    struct thread                threads[MODEL_THREADS_MAX];
    struct thread               *current; /* the body that runs; NULL: the engine, or a check */

    struct action next[ACTORS];  /* each actor's next action, if it has one */
    struct clock  known[ACTORS]; /* what comes before each actor's last action */

    struct step steps[STEPS_MAX];
    int         depth, prefix;
    bool        failed;
};

extern struct model_engine model;

static inline actor_set bit(int actor) { return (actor_set)1 << actor; }

static inline int store_actor(const struct thread *thread, int store)
{
    return MODEL_THREADS_MAX + (int)(thread - model.threads) * STORES_MAX + store;
}

static inline struct thread *owner_of(int actor)
{
    return actor < MODEL_THREADS_MAX ? &model.threads[actor]
                                     : &model.threads[(actor - MODEL_THREADS_MAX) / STORES_MAX];
}

static inline void join(struct clock *clock, const struct clock *other)
{
    for (int i = 0; i < ACTORS; i++) {
        int16_t mine = clock->last[i], theirs = other->last[i];
        clock->last[i] = mine < theirs ? theirs : mine;
    }
}

/* model.c */
void      model_threads_make(void);
void      model_threads_drop(void);
void      model_enter(struct thread *thread);
void      model_store_step(struct thread *thread, int index);
actor_set model_enabled(void);

/* model_search.c: notes a failure and the steps that led to it. */
void model_note(const char *what, const char *file, int line);

#endif

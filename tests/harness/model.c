/* SPDX-License-Identifier: MIT */
/* The world of a model: threads that are coroutines, and memory that may show stores late. */
#include "model_engine.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 128 * 1024 };

struct model_engine model;

static char              *stacks;
static struct jrt_context engine;

/* Coroutines. */

static void leave(struct thread *self)
{
    (void)jrt_context_switch(&self->context, &engine, JRT_ARRIVED_SUSPENDED);
    jrt_sanitizer_arrive(&self->context.sanitizer, &engine.sanitizer);
}

void model_enter(struct thread *thread)
{
    (void)jrt_context_switch(&engine, &thread->context, JRT_ARRIVED_RESUMED);
    jrt_sanitizer_arrive(&engine.sanitizer, &thread->context.sanitizer);
    model.current = NULL;
}

static void thread_main(void *argument, int message)
{
    struct thread *self = argument;
    (void)message;
    jrt_sanitizer_arrive(&self->context.sanitizer, &engine.sanitizer);
    for (;;) {
        self->job(model.scenario->state, (int)(self - model.threads));
        self->done = true;
        leave(self);
    }
}

void model_threads_make(void)
{
    jrt_sanitizer_adopt_thread(&engine.sanitizer);
    stacks = aligned_alloc(64, (size_t)model.thread_count * STACK_BYTES);
    CHECK(stacks != NULL);
    for (int i = 0; i < model.thread_count; i++) {
        char *low = stacks + (size_t)i * STACK_BYTES;
        model.threads[i].context.sp =
            jrt_ctx_make(low + STACK_BYTES, thread_main, &model.threads[i]);
        jrt_sanitizer_attach(&model.threads[i].context.sanitizer, low, STACK_BYTES);
    }
}

void model_threads_drop(void)
{
    for (int i = 0; i < model.thread_count; i++) {
        char *low = stacks + (size_t)i * STACK_BYTES;
        jrt_sanitizer_detach(&model.threads[i].context.sanitizer, low, STACK_BYTES);
    }
    free(stacks);
}

void model_fail(const char *what, const char *file, int line)
{
    model_note(what, file, line);
    struct thread *self =
        model.current != NULL ? model.current : &model.threads[0]; /* runs the check */
    for (;;) leave(self);
}

_Thread_local void (*jrt_die_hook)(const char *kind, const char *what, const char *file, int line);

/* A broken contract or invariant of the code under test fails the execution, not the process. */
void jrt_die(const char *kind, const char *what, const char *file, int line)
{
    if (model.scenario != NULL && model.current != NULL) model_fail(what, file, line);
    fprintf(stderr, "%s: %s (%s:%d)\n", kind, what, file, line);
    abort();
}

/* What bodies call. */

static void announce(enum model_access access, const volatile void *object, bool drains,
                     struct model_at at)
{
    struct thread *self = model.current;
    int            actor = (int)(self - model.threads);
    model.next[actor] = (struct action){access, self->ready != NULL, object, at};
    self->drains = drains && model.scenario->memory != MODEL_SC;
    leave(self);
}

void model_point(enum model_access access, const volatile void *object, bool drains,
                 struct model_at at)
{
    if (model.current != NULL) announce(access, object, drains, at);
}

unsigned model_choose(unsigned count)
{
    if (count <= 1) return 0;
    CHECK(model.current != NULL && model.depth < STEPS_MAX);
    struct step *step = &model.steps[model.depth];
    if (model.depth >= model.prefix) {
        memset(step, 0, sizeof *step);
        step->actor = (int)(model.current - model.threads);
        step->choices = count;
        step->action.at = MODEL_AT("choose");
    }
    CHECK_EQ(step->choices, count); /* deterministic */
    model.depth++;
    return step->choice;
}

void model_wait_until(bool (*ready)(void *argument), void *argument)
{
    model.current->ready = ready;
    model.current->ready_argument = argument;
    announce(MODEL_ANY, NULL, false, MODEL_AT("wait until"));
    model.current->ready = NULL;
}

void model_wait_for(const volatile void *object, bool (*ready)(void *argument), void *argument)
{
    model.current->ready = ready;
    model.current->ready_argument = argument;
    announce(MODEL_WRITE, object, true, MODEL_AT("wait for"));
    model.current->ready = NULL;
}

static bool is_awake(void *argument) { return !((struct thread *)argument)->asleep; }

void model_futex_wait(_Atomic(uint32_t) *word, uint32_t expected)
{
    announce(MODEL_WRITE, word, true, MODEL_AT("futex_wait"));
    if (atomic_load(word) != expected) return;
    struct thread *self = model.current;
    self->asleep = true;
    self->ready = is_awake;
    self->ready_argument = self;
    announce(MODEL_READ, word, false, MODEL_AT("futex_wait returns"));
    self->ready = NULL;
}

unsigned model_futex_wake(_Atomic(uint32_t) *word, unsigned count)
{
    unsigned woken = 0;
    announce(MODEL_WRITE, word, true, MODEL_AT("futex_wake"));
    for (; woken < count; woken++) {
        struct thread *sleepers[MODEL_THREADS_MAX];
        unsigned       found = 0;
        for (int i = 0; i < model.thread_count; i++) {
            if (model.threads[i].asleep && model.next[i].object == word)
                sleepers[found++] = &model.threads[i];
        }
        if (found == 0) break;
        sleepers[model_choose(found)]->asleep = false;
    }
    return woken;
}

static bool nothing_waits(void *argument) { return ((struct thread *)argument)->waiting == 0; }

void model_membarrier(void)
{
    struct thread *self = model.current, *others[MODEL_THREADS_MAX];
    unsigned       left = 0;
    announce(MODEL_LOCAL, NULL, true, MODEL_AT("membarrier"));
    if (model.scenario->memory == MODEL_SC) return;
    for (int i = 0; i < model.thread_count; i++) {
        if (&model.threads[i] != self) others[left++] = &model.threads[i];
    }
    self->ready = nothing_waits;
    while (left > 0) {
        unsigned which = model_choose(left);
        self->ready_argument = others[which];
        others[which] = others[--left];
        announce(MODEL_ANY, NULL, false, MODEL_AT("membarrier has reached another"));
    }
    self->ready = NULL;
}

int model_self(void) { return (int)(model.current - model.threads); }

/* Memory. */

static uint64_t memory_read(const volatile void *object, size_t bytes)
{
    switch (bytes) {
    case 1: return __atomic_load_n((const volatile uint8_t *)object, __ATOMIC_SEQ_CST);
    case 2: return __atomic_load_n((const volatile uint16_t *)object, __ATOMIC_SEQ_CST);
    case 4: return __atomic_load_n((const volatile uint32_t *)object, __ATOMIC_SEQ_CST);
    default: return __atomic_load_n((const volatile uint64_t *)object, __ATOMIC_SEQ_CST);
    }
}

static void memory_write(volatile void *object, uint64_t value, size_t bytes)
{
    switch (bytes) {
    case 1: __atomic_store_n((volatile uint8_t *)object, (uint8_t)value, __ATOMIC_SEQ_CST); break;
    case 2: __atomic_store_n((volatile uint16_t *)object, (uint16_t)value, __ATOMIC_SEQ_CST); break;
    case 4: __atomic_store_n((volatile uint32_t *)object, (uint32_t)value, __ATOMIC_SEQ_CST); break;
    default: __atomic_store_n((volatile uint64_t *)object, value, __ATOMIC_SEQ_CST); break;
    }
}

void model_load(const volatile void *object, void *out, size_t bytes, struct model_at at)
{
    model_point(MODEL_READ, object, false, at);
    uint64_t value = memory_read(object, bytes);
    if (model.current != NULL) { /* a thread sees its own store first */
        for (unsigned set = model.current->waiting; set != 0; set &= set - 1) {
            const struct store *store = &model.current->stores[__builtin_ctz(set)];
            if (store->object == object) value = store->value;
        }
    }
    memcpy(out, &value, bytes); /* little-endian */
}

/* The earlier stores of a thread that must be seen before the new one. */
static unsigned followed_by(const struct thread *thread, const volatile void *object, bool in_order)
{
    unsigned all = (1u << thread->store_count) - 1, set = 0;
    if (in_order) return all;
    for (int i = 0; i < thread->store_count; i++) {
        if (thread->stores[i].object == object) set |= 1u << i;
    }
    return set;
}

void model_store(volatile void *object, const void *value, size_t bytes, memory_order order,
                 struct model_at at)
{
    uint64_t word = 0;
    memcpy(&word, value, bytes);
    if (model.current == NULL || model.scenario->memory == MODEL_SC ||
        order == memory_order_seq_cst) {
        model_point(MODEL_WRITE, object, true, at);
        memory_write(object, word, bytes);
        return;
    }
    struct thread *self = model.current;
    CHECK(self->store_count < STORES_MAX);
    int           actor = store_actor(self, self->store_count);
    bool          in_order = model.scenario->memory == MODEL_TSO || order == memory_order_release;
    struct store *store = &self->stores[self->store_count];
    *store = (struct store){.follows = followed_by(self, object, in_order),
                            .object = object,
                            .value = word,
                            .bytes = bytes};
    model.known[actor] = model.known[self - model.threads];
    for (unsigned set = store->follows & ~self->waiting; set != 0; set &= set - 1)
        join(&model.known[actor], &model.known[store_actor(self, __builtin_ctz(set))]);
    self->waiting |= 1u << self->store_count++;
    model.next[actor] = (struct action){MODEL_WRITE, false, object, at};
}

/* Moves one store of a thread to memory. */
void model_store_step(struct thread *thread, int index)
{
    struct store       *store = &thread->stores[index];
    const struct clock *clock = &model.known[store_actor(thread, index)];
    memory_write(store->object, store->value, store->bytes);
    thread->waiting &= ~(1u << index);
    join(&thread->drained, clock);
    for (unsigned set = thread->waiting; set != 0; set &= set - 1) {
        int later = __builtin_ctz(set);
        if ((thread->stores[later].follows & 1u << index) != 0)
            join(&model.known[store_actor(thread, later)], clock);
    }
}

actor_set model_enabled(void)
{
    actor_set enabled = 0;
    for (int i = 0; i < model.thread_count; i++) {
        struct thread *thread = &model.threads[i];
        for (unsigned set = thread->waiting; set != 0; set &= set - 1) {
            int store = __builtin_ctz(set);
            if ((thread->stores[store].follows & thread->waiting) == 0)
                enabled |= bit(store_actor(thread, store));
        }
        if (thread->done || (thread->drains && thread->waiting != 0)) continue;
        if (thread->ready != NULL && !thread->ready(thread->ready_argument)) continue;
        enabled |= bit(i);
    }
    return enabled;
}

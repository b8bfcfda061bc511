/* SPDX-License-Identifier: MIT */
/*
 * Fibers: make, resume, leave, end.
 *
 * The entered side acts. A fiber that leaves only passes the reason (the message of the switch) and
 * switches to its resumer. The resumer marks it SUSPENDED or takes its stack, because only then is
 * the stack off the CPU. If the fiber did this itself, another thread could enter the stack while
 * its last instructions still run there.
 *
 * [fiber-moves]  the legal changes of state. Any other change is a bug of the library.
 *
 *     NEW -> RUNNING          first resume: a stack is attached
 *     RUNNING -> SUSPENDED    it called suspend; set by the resumer
 *     SUSPENDED -> RUNNING    resumed, possibly by another thread
 *     RUNNING -> COMPLETED    the entry returned; the stack is given back
 *     RUNNING -> PANICKED     janus_panic, or the guard was hit
 *
 * The state detects sequential mistakes, as resuming a fiber that runs or has ended. It is not a
 * lock: the users of a fiber order its moves between threads.
 *
 * A stack overflow takes the same path. A signal handler makes the interrupted thread continue in
 * the resumer, with OVERFLOWED as the message (fault.c). The dead fiber's frames stay untouched
 * until the resumer returns the stack.
 *
 * Stack colours: the tops of all stacks have the same low address bits. So the hot frames of many
 * fibers would compete for a few cache sets. Each stack begins up to 15 lines lower. That makes a
 * round over 20,000 fibers 14 % faster.
 */
#include "fiber/fiber.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/options.h"
#include "base/outside.h"
#include "fiber/exception.h"
#include "fiber/exit.h"
#include "plat/name.h"

#include <stdio.h>
#include <string.h>

enum {
    ID_BLOCK = 1024,   /* ids that a shard takes at once */
    RECORD_BATCH = 32, /* records moved between a shard and the store */
    RECORDS_MAX = 64,  /* records that a shard keeps */
    COLOURS = 16,      /* of 64 bytes each */
};

_Static_assert((int)JRT_ARRIVED_RESUMED == (int)JANUS_OK, "what suspend returns");
_Static_assert(sizeof((struct jrt_thread *)0)->panic_message ==
                   sizeof((janus_panic_detail *)0)->message,
               "copied whole");

static const uint8_t moves[] = {
    [JANUS_FIBER_STATE_NEW] = 1u << JANUS_FIBER_STATE_RUNNING,
    [JANUS_FIBER_STATE_RUNNING] = 1u << JANUS_FIBER_STATE_SUSPENDED |
                                  1u << JANUS_FIBER_STATE_COMPLETED |
                                  1u << JANUS_FIBER_STATE_PANICKED,
    [JANUS_FIBER_STATE_SUSPENDED] = 1u << JANUS_FIBER_STATE_RUNNING,
    [JANUS_FIBER_STATE_COMPLETED] = 0,
    [JANUS_FIBER_STATE_PANICKED] = 0,
};

static inline void move(struct janus_fiber *fiber, janus_fiber_state from, janus_fiber_state to)
{
    jrt_invariant("fiber-moves", moves[from] >> to & 1u);
    /* relaxed: only detects mistakes. The users of the fiber order its moves between threads. */
    jrt_store_relaxed(&fiber->state, (uint8_t)to);
}

/* Make and destroy. */

static struct jrt_record *take_record(janus_fiber_pool *pool, struct jrt_shard *shard)
{
    if (jrt_unlikely(shard->records == NULL)) {
        shard->records = jrt_records_take(&pool->records, RECORD_BATCH);
        for (struct jrt_record *r = shard->records; r != NULL; r = r->next) shard->record_count++;
        if (shard->records == NULL) return NULL;
    }
    struct jrt_record *record = shard->records;
    shard->records = record->next;
    shard->record_count--;
    return record;
}

static void give_record(janus_fiber_pool *pool, struct jrt_shard *shard, struct jrt_record *record)
{
    record->next = shard->records;
    shard->records = record;
    if (++shard->record_count <= RECORDS_MAX) return;
    struct jrt_record *last_kept = shard->records;
    for (int i = 1; i < RECORD_BATCH; i++) last_kept = last_kept->next;
    struct jrt_record *rest = last_kept->next;
    last_kept->next = NULL;
    shard->record_count = RECORD_BATCH;
    jrt_records_give(&pool->records, rest);
}

static uint64_t next_id(janus_fiber_pool *pool, struct jrt_shard *shard)
{
    if (shard->next_id == shard->ids_end) {
        /* relaxed: the addition alone makes the block ours. */
        shard->next_id = jrt_fetch_add_relaxed(&pool->ids_given, (uint64_t)ID_BLOCK) + 1;
        shard->ids_end = shard->next_id + ID_BLOCK;
    }
    return shard->next_id++;
}

/* Counts one more fiber if there is a limit. Returns false if the limit is reached. */
static bool count_in(janus_fiber_pool *pool)
{
    if (pool->max_fibers == 0) return true;
    size_t live = jrt_load_relaxed(&pool->live); /* relaxed: a count that guards no memory. */
    do {
        if (live >= pool->max_fibers) return false;
    } while (!jrt_cas_relaxed(&pool->live, &live, live + 1)); /* relaxed: a count. */
    return true;
}

static void count_out(janus_fiber_pool *pool)
{
    if (pool->max_fibers == 0) return;
    /* relaxed: a count, as in count_in. */
    jrt_fetch_sub_relaxed(&pool->live, (size_t)1);
}

static janus_status decode(const janus_fiber_pool *pool, const janus_fiber_options *given,
                           janus_fiber_options *options, unsigned *out_class)
{
    memset(options, 0, sizeof *options);
    if (given != NULL) {
        if (!jrt_struct_sane(given->struct_bytes, sizeof *options)) return JANUS_INVALID;
        memcpy(options, given, given->struct_bytes);
    }
    if (options->name == NULL) options->name = "fiber";
    *out_class = pool->stack_class;
    if (options->stack_bytes != 0) *out_class = jrt_pool_stack_class(options->stack_bytes);
    return *out_class < JRT_STACK_CLASSES ? JANUS_OK : JANUS_INVALID;
}

janus_status janus_fiber_create(janus_fiber_pool *pool, janus_entry *entry, void *argument,
                                const janus_fiber_options *given, janus_fiber **out)
{
    jrt_outside_call(); /* [turn-call] */
    janus_fiber_options options;
    unsigned class;
    if (pool == NULL || entry == NULL || out == NULL) return JANUS_INVALID;
    if (decode(pool, given, &options, &class) != JANUS_OK) return JANUS_INVALID;
    jrt_ctx_probe();
    if (!count_in(pool)) return JANUS_FULL;

    struct jrt_thread *thread = jrt_thread_self();
    struct jrt_shard  *shard = jrt_shard_lock(pool, thread);
    struct jrt_record *record = take_record(pool, shard);
    uint64_t           id = 0;
    if (record != NULL) {
        id = next_id(pool, shard);
        shard->created++;
    }
    jrt_shard_unlock(shard, thread);
    if (record == NULL) {
        count_out(pool);
        return JANUS_NO_MEMORY;
    }

    struct janus_fiber *fiber = (struct janus_fiber *)record;
    fiber->resumer = NULL;
    fiber->stack = NULL;
    fiber->value = NULL;
    fiber->out_value = NULL;
    fiber->result = 0;
    fiber->entry = entry;
    fiber->argument = argument;
    fiber->pool = pool;
    fiber->name = options.name;
    fiber->id = id;
    fiber->stack_class = (uint8_t)class;
    fiber->canary = false;
    /* relaxed: no other thread knows this fiber yet. */
    jrt_store_relaxed(&fiber->state, (uint8_t)JANUS_FIBER_STATE_NEW);
    *out = fiber;
    return JANUS_OK;
}

/* Takes the stack of a fiber that will not run again. */
static void detach_stack(struct janus_fiber *fiber, struct jrt_thread *thread, bool overflowed)
{
    janus_fiber_pool *pool = fiber->pool;
    struct jrt_stack *stack = fiber->stack;
    size_t            depth = pool->measure ? jrt_stack_high_water(stack) : 0;
    fiber->stack = NULL;
    char *low = jrt_stack_low(stack);
    jrt_sanitizer_detach(&fiber->context.sanitizer, low, (size_t)(stack->top - low));
    if (overflowed && fiber->canary) jrt_stack_mend(stack);
    if (pool->scrub) jrt_stack_scrub(stack);

    struct jrt_shard *shard = jrt_shard_lock(pool, thread);
    jrt_stack_give(&shard->stacks, &pool->depot, fiber->stack_class, stack);
    shard->detached++;
    shard->overflows += overflowed;
    if (shard->high_water_bytes < depth) shard->high_water_bytes = depth;
    jrt_shard_unlock(shard, thread);
}

janus_status janus_fiber_destroy(janus_fiber *fiber)
{
    jrt_outside_call(); /* [turn-call] */
    if (fiber == NULL) return JANUS_OK;
    /* relaxed: only detects mistakes. */
    if (jrt_load_relaxed(&fiber->state) == JANUS_FIBER_STATE_RUNNING) return JANUS_STATE;
    jrt_ctx_probe();
    janus_fiber_pool  *pool = fiber->pool;
    struct jrt_thread *thread = jrt_thread_self();
    if (fiber->stack != NULL) detach_stack(fiber, thread, false);
    struct jrt_shard *shard = jrt_shard_lock(pool, thread);
    give_record(pool, shard, &fiber->record);
    shard->destroyed++;
    jrt_shard_unlock(shard, thread);
    count_out(pool);
    return JANUS_OK;
}

/* Run. */

__attribute__((noreturn)) static void leave_for_good(struct janus_fiber *fiber,
                                                     enum jrt_arrival    why)
{
    (void)jrt_context_switch(&fiber->context, fiber->resumer, why);
    jrt_die("invariant [fiber-moves] broken", "an ended fiber was entered", __FILE__, __LINE__);
}

static void fiber_main(void *argument, int message)
{
    struct janus_fiber *fiber = argument;
    (void)message;
    jrt_sanitizer_arrive(&fiber->context.sanitizer, &fiber->resumer->sanitizer);
    fiber->result = fiber->entry(fiber->argument);
    leave_for_good(fiber, JRT_ARRIVED_COMPLETED);
}

/* Gives a new fiber its stack. On failure the fiber stays NEW. */
__attribute__((noinline)) static janus_status attach_stack(struct janus_fiber *fiber,
                                                           struct jrt_thread  *thread)
{
    janus_fiber_pool *pool = fiber->pool;
    struct jrt_stack *stack = NULL;
    struct jrt_shard *shard = jrt_shard_lock(pool, thread);
    janus_status status = jrt_stack_take(&shard->stacks, &pool->depot, fiber->stack_class, &stack);
    if (status == JANUS_OK) shard->attached++;
    jrt_shard_unlock(shard, thread);
    if (status != JANUS_OK) return status;

    fiber->stack = stack;
    fiber->canary = stack->guard == JANUS_GUARD_CANARY;
    char *low = jrt_stack_low(stack);
    jrt_sanitizer_attach(&fiber->context.sanitizer, low, (size_t)(stack->top - low));
    /* 16 bytes stay free, because Valgrind looks for a frame above the first. */
    size_t colour = (size_t)(stack - stack->slab->stacks) % COLOURS * 64;
    fiber->context.sp = jrt_ctx_make(stack->top - colour - 16, fiber_main, fiber);
    return JANUS_OK;
}

static void fill_panic(janus_panic_detail *panic, const struct janus_fiber *fiber,
                       janus_panic_kind kind, const struct jrt_thread *thread)
{
    memset(panic, 0, sizeof *panic);
    panic->kind = kind;
    panic->fiber_id = fiber->id;
    panic->stack_bytes = fiber->stack->slab->class->stack_bytes;
    (void)jrt_name_copy(panic->name, sizeof panic->name, fiber->name); /* borrowed */
    if (kind == JANUS_PANIC_KIND_EXPLICIT) {
        memcpy(panic->message, thread->panic_message, sizeof panic->message);
        return;
    }
    panic->guard = (janus_guard)fiber->stack->guard;
    if (fiber->canary) return;
    panic->fault_address = thread->fault_address;
    panic->code_address = thread->fault_code;
}

/* Ends a fiber that will not run again: reports why and takes its stack. */
__attribute__((noinline)) static void conclude(struct janus_fiber *fiber, struct jrt_thread *thread,
                                               janus_panic_kind panic, janus_outcome *out)
{
    bool              ended_well = panic == JANUS_PANIC_KIND_NONE;
    janus_fiber_state state = ended_well ? JANUS_FIBER_STATE_COMPLETED : JANUS_FIBER_STATE_PANICKED;
    if (out != NULL) {
        out->state = state;
        out->result = fiber->result;
        out->value = NULL;
        if (!ended_well) fill_panic(&out->panic, fiber, panic, thread);
    }
    detach_stack(fiber, thread, panic == JANUS_PANIC_KIND_STACK_OVERFLOW);
    move(fiber, JANUS_FIBER_STATE_RUNNING, state);
}

static bool canary_died(const struct janus_fiber *fiber)
{
    return (char *)fiber->context.sp < jrt_stack_low(fiber->stack) ||
           !jrt_stack_intact(fiber->stack);
}

/* The resumer is back: records what happened to the fiber. */
static void settle(struct janus_fiber *fiber, struct jrt_thread *thread, enum jrt_arrival why,
                   janus_outcome *out)
{
    if (jrt_unlikely(fiber->canary) && canary_died(fiber)) why = JRT_ARRIVED_OVERFLOWED;
    if (jrt_likely(why == JRT_ARRIVED_SUSPENDED)) {
        if (out != NULL) {
            out->state = JANUS_FIBER_STATE_SUSPENDED;
            out->value = fiber->value;
        }
        move(fiber, JANUS_FIBER_STATE_RUNNING, JANUS_FIBER_STATE_SUSPENDED);
        return;
    }
    janus_panic_kind panic = JANUS_PANIC_KIND_NONE;
    if (why == JRT_ARRIVED_PANICKED) panic = JANUS_PANIC_KIND_EXPLICIT;
    if (why == JRT_ARRIVED_OVERFLOWED) panic = JANUS_PANIC_KIND_STACK_OVERFLOW;
    conclude(fiber, thread, panic, out);
}

janus_status janus_fiber_resume(janus_fiber *fiber, void *value, janus_outcome *out)
{
    struct jrt_thread *thread = jrt_thread_self();
    if (jrt_unlikely(thread->worker != NULL)) {
        jrt_outside_call(); /* [turn-call] */
        thread = jrt_thread_self();
    }
    if (fiber == NULL) return JANUS_INVALID;
    /* relaxed: only detects mistakes. */
    janus_fiber_state state = (janus_fiber_state)jrt_load_relaxed(&fiber->state);
    if (jrt_unlikely(!(moves[state] >> JANUS_FIBER_STATE_RUNNING & 1u))) return JANUS_STATE;
    jrt_ctx_probe();
    if (jrt_unlikely(!jrt_thread_attach(thread))) return JANUS_NO_MEMORY;
    if (state == JANUS_FIBER_STATE_NEW) {
        janus_status status = attach_stack(fiber, thread);
        if (status != JANUS_OK) return status;
    }

    if (fiber->out_value != NULL) *fiber->out_value = value; /* for suspend */
    struct janus_fiber *caller = thread->current;
    struct jrt_context  mine; /* not in the thread: a task may change threads meanwhile */
    struct jrt_context *here = caller != NULL ? &caller->context : &mine;
    if (caller == NULL) jrt_sanitizer_adopt_thread(&mine.sanitizer);
    fiber->resumer = here;
    move(fiber, state, JANUS_FIBER_STATE_RUNNING);
    struct jrt_watch watch = thread->watch;
    thread->current = fiber;
    thread->watch = (struct jrt_watch){fiber->stack, &here->sp};
    struct jrt_exceptions handled = {0};
    if (jrt_unlikely(jrt_exceptions_exist())) handled = jrt_exceptions_take();
    enum jrt_arrival why = jrt_context_switch(here, &fiber->context, JRT_ARRIVED_RESUMED);

    /* The fiber may have waited in a scheduler and continued on another thread, and its resumer
     * with it. */
    thread = jrt_thread_self();
    if (jrt_unlikely(why == JRT_ARRIVED_OVERFLOWED)) {
        jrt_sanitizer_land(&here->sanitizer, &fiber->context.sanitizer);
    } else {
        jrt_sanitizer_arrive(&here->sanitizer, &fiber->context.sanitizer);
    }
    thread->current = caller;
    thread->watch = watch;
    if (jrt_unlikely(jrt_exceptions_exist())) jrt_exceptions_put(handled);
    settle(fiber, thread, why, out);
    return JANUS_OK;
}

static inline janus_status leave_for_resumer(struct janus_fiber *fiber)
{
    enum jrt_arrival why =
        jrt_context_switch(&fiber->context, fiber->resumer, JRT_ARRIVED_SUSPENDED);
    jrt_sanitizer_arrive(&fiber->context.sanitizer, &fiber->resumer->sanitizer);
    return (janus_status)why;
}

__attribute__((noinline)) static janus_status leave_with_exceptions(struct janus_fiber *fiber)
{
    struct jrt_exceptions mine = jrt_exceptions_take();
    janus_status          status = leave_for_resumer(fiber);
    jrt_exceptions_put(mine);
    return status;
}

janus_status janus_fiber_suspend(void *value, void **out_value)
{
    struct janus_fiber *fiber = jrt_thread_self()->current;
    if (fiber == NULL) return JANUS_STATE;
    fiber->value = value;
    fiber->out_value = out_value;
    if (jrt_unlikely(jrt_exceptions_exist())) return leave_with_exceptions(fiber);
    /* Nothing is left to do, so the compiler makes the switch a tail call. The resume then
     * continues right behind our caller's call, and no `ret` is mispredicted. */
    return leave_for_resumer(fiber);
}

void janus_panic(const char *message)
{
    struct jrt_thread  *thread = jrt_thread_self();
    struct janus_fiber *fiber = thread->current;
    if (message == NULL) message = "";
    jrt_guarded_panic(thread, message);
    if (fiber == NULL && thread->on_panic != NULL) thread->on_panic(message);
    if (fiber == NULL) jrt_die("panic outside a fiber", message, __FILE__, __LINE__);
    /* Not on the fiber's stack: sanitizers may remove locals together with the fiber. */
    jrt_thread_keep_message(thread, message);
    leave_for_good(fiber, JRT_ARRIVED_PANICKED);
}

/* Ends the task, guarded call or fiber that broke a contract. If the thread holds a lock of the
 * library, it returns. */
static void on_contract(const char *what)
{
    char                     message[JRT_MESSAGE_BYTES];
    const struct jrt_thread *thread = jrt_thread_self();
    bool contained = thread->current != NULL || thread->on_panic != NULL || thread->guarded != NULL;
    if (!contained || thread->holding != 0) return;
    (void)snprintf(message, sizeof message, "contract broken: %s", what);
    janus_panic(message);
}

void jrt_contract_watch(void)
{
    jrt_store_release(&jrt_contract_hook, on_contract); /* release: the same value each time. */
}

janus_fiber *janus_fiber_current(void) { return jrt_thread_self()->current; }

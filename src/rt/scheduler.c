/* SPDX-License-Identifier: MIT */
/*
 * Schedulers: making, starting, stopping.
 *
 * [sched-stop]  A stop first refuses new root nurseries. It cancels every root nursery, waits until
 *   no root has a child left, and only then ends the workers. Nothing is dropped: queued tasks are
 *   skipped as cancelled, and counted.
 */
#include "base/options.h"
#include "base/outside.h"
#include "cancel/cancel.h"
#include "cancel/token.h"
#include "fiber/exception.h"
#include "fiber/fiber.h"
#include "look/dump.h"
#include "means/call.h"
#include "means/holder.h"
#include "means/implicit.h"
#include "means/terms.h"
#include "nursery/run.h"
#include "plat/cpus.h"
#include "plat/signal.h"
#include "rt/counted.h"
#include "rt/environ.h"
#include "rt/run.h"
#include "sim/world.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/roster.h"
#include "task/task.h"
#include "task/upcalls.h"
#include "task/worker.h"
#include "work/crew.h"
#include "work/limit.h"
#include "work/poll.h"
#include "work/work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WORKERS_MAX = 1024,
    SIMULATED_WORKERS = 4, /* by default; the same on every machine */
};

static const uint64_t turn_least_ns = 1000, turn_most_ns = 3600 * JANUS_SECONDS;

static janus_status decode(const janus_scheduler_options *given, janus_scheduler_options *options)
{
    memset(options, 0, sizeof *options);
    if (given != NULL) {
        if (!jrt_struct_sane(given->struct_bytes, sizeof *options)) return JANUS_INVALID;
        memcpy(options, given, given->struct_bytes);
    }
    if (options->profile == JANUS_PROFILE_CORE) return JANUS_PROFILE;
    if (options->deterministic_seed == 0 && !jrt_environ_seed(&options->deterministic_seed)) {
        return JANUS_INVALID;
    }
    if (janus_profile_stack_bytes(options->profile) == 0) return JANUS_INVALID;
    if (options->worker_count > WORKERS_MAX) return JANUS_INVALID;
    bool simulated = options->deterministic_seed != 0 || jrt_world_now() != NULL;
    if (options->worker_count == 0 && simulated) options->worker_count = SIMULATED_WORKERS;
    if (options->worker_count == 0) options->worker_count = jrt_cpus_available();
    if (options->worker_count > WORKERS_MAX) options->worker_count = WORKERS_MAX;
    if (options->stack_bytes == 0) {
        options->stack_bytes = janus_profile_stack_bytes(options->profile);
    }
    if (jrt_pool_stack_class(options->stack_bytes) >= JRT_STACK_CLASSES) return JANUS_INVALID;
    if (options->idle_stack_bytes == 0) options->idle_stack_bytes = JANUS_IDLE_STACK_BYTES;
    if (options->max_blocking_threads == 0) options->max_blocking_threads = 64;
    if (options->max_blocking_extra == 0) options->max_blocking_extra = 256;
    if (options->max_threads == 0) options->max_threads = 256;
    if (options->max_derived_caps == 0) options->max_derived_caps = 1024;
    if (options->max_nesting == 0) options->max_nesting = 1000;
    if (options->max_blocking_queue == 0) options->max_blocking_queue = 65536;
    if (options->turn_ns == 0) options->turn_ns = JANUS_TURN_NS;
    if (options->turn_ns < turn_least_ns || options->turn_ns > turn_most_ns) return JANUS_INVALID;
    /* relaxed: a program says it before it creates schedulers. */
    if (jrt_load_relaxed(&jrt_code_is_counted)) options->preempt_checks = true;
    if (options->max_slice == 0) options->max_slice = simulated ? JANUS_SLICE : JANUS_SLICE_MAX;
    if (options->max_slice < JANUS_SLICE || options->max_slice > JANUS_SLICE_MAX)
        return JANUS_INVALID;
    bool known = (unsigned)options->victims <= JANUS_VICTIMS_LEAST_LOADED &&
                 (unsigned)options->guard <= JANUS_GUARD_CANARY;
    return known && jrt_implicit_sane(options) ? JANUS_OK : JANUS_INVALID;
}

void jrt_worker_close(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    if (worker->rescue != NULL) jrt_strand_drop(worker, worker->rescue);
    if (worker->last != NULL) jrt_strand_drop(worker, worker->last);
    if (worker->spare != NULL) jrt_strand_drop(worker, worker->spare);
    jrt_stack_cache_flush(&worker->stacks, scheduler->depot);
    jrt_heap_cache_fini(&worker->heaps);
    jrt_purses_drop(worker);
    jrt_quota_close(worker);
    jrt_bias_give(worker->bias);
    if (worker->audit != NULL) jrt_audit_writer_close(worker->audit);
    jrt_roster_give(&scheduler->roster, worker->free);
    jrt_roster_give(&scheduler->roster, worker->free_batch);
    if (worker->fresh_shelf.slots != NULL) jrt_shelf_fini(&worker->fresh_shelf);
    if (worker->again_shelf.slots != NULL) jrt_shelf_fini(&worker->again_shelf);
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        if (worker->deques_open > lane * 2) jrt_deque_fini(&worker->fresh[lane]);
        if (worker->deques_open > lane * 2 + 1) jrt_deque_fini(&worker->again[lane]);
    }
    free(worker->loads);
    free((void *)worker->booty);
    jrt_poll_close(worker);
    jrt_holder_forget(worker);
    jrt_upcalls.forget_question(worker);
}

static uint8_t plainness(const struct jrt_worker *worker)
{
    bool simulated = worker->scheduler->world != NULL;
    if (worker->trace != NULL || simulated || jrt_exceptions_exist()) return JRT_NOT_PLAIN;
    return jrt_fences_asymmetric() ? JRT_PLAIN : JRT_PLAIN_FENCED;
}

static uint8_t forking(const struct jrt_worker *worker)
{
    if (worker->scheduler->world != NULL) return JRT_FORKS_SEEN;
    bool stolen_from = !worker->alone && worker->scheduler->stealing;
    return stolen_from ? JRT_FORKS_OFTEN : JRT_FORKS_NEVER;
}

bool jrt_worker_open(struct jrt_worker *worker)
{
    worker->until_others = worker->others_every = 8;
    worker->until_timers = 64;
    worker->turns.limit_ns = worker->scheduler->turn_ns;
    worker->free_room = JRT_FREE_MAX;
    worker->until_split = worker->split_every = 1;
    worker->forks = forking(worker);
    worker->preempts = worker->scheduler->preempts;
    worker->trace = jrt_trace_lane(&worker->scheduler->tracer,
                                   worker->seat == NULL ? worker->index : JRT_TRACE_OUTSIDE);
    worker->plain = plainness(worker);
    jrt_heap_cache_init(&worker->heaps, &worker->scheduler->heaps);
    worker->bias = worker->seat == NULL ? jrt_bias_take() : &jrt_bias_none;
    if (!jrt_implicit_open_worker(worker)) return false;
    if (!jrt_worker_rescue_ready(worker) || !jrt_worker_last_ready(worker)) return false;
    worker->spare = jrt_strand_take(worker);
    return worker->spare != NULL;
}

static bool open_worker(struct jrt_worker *worker, const janus_scheduler_options *options)
{
    enum jrt_victim_strategy strategy = JRT_VICTIM_RANDOM;
    if (!jrt_worker_open(worker)) return false;
    if (options->victims == JANUS_VICTIMS_ROUND_ROBIN) strategy = JRT_VICTIM_ROUND_ROBIN;
    if (options->victims == JANUS_VICTIMS_LEAST_LOADED) {
        strategy = JRT_VICTIM_LEAST_LOADED;
        worker->loads = jrt_calloc(options->worker_count, sizeof *worker->loads);
        if (worker->loads == NULL) return false;
    }
    jrt_victims_init(&worker->victims, strategy, options->deterministic_seed + worker->index);
    jrt_rng_seed(&worker->choices, options->deterministic_seed + worker->index);
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        if (!jrt_deque_init(&worker->fresh[lane])) return false;
        worker->deques_open++;
        if (!jrt_deque_init(&worker->again[lane])) return false;
        worker->deques_open++;
    }
    return jrt_shelf_init(&worker->fresh_shelf) && jrt_shelf_init(&worker->again_shelf);
}

static void free_all(janus_scheduler *scheduler)
{
    jrt_dump_off(scheduler);
    for (uint32_t i = 0; i < scheduler->workers_open; i++) jrt_worker_close(&scheduler->workers[i]);
    if (scheduler->blocking_open) jrt_blocking_fini(&scheduler->blocking);
    jrt_trace_end(&scheduler->tracer);
    jrt_implicit_close(scheduler);
    if (scheduler->roster_open) jrt_roster_fini(&scheduler->roster);
    if (scheduler->depot != NULL) jrt_depot_close(scheduler->depot);
    if (scheduler->fault_open) jrt_fault_close();
    jrt_sched_timers_close(scheduler);
    pthread_mutex_destroy(&scheduler->inject_lock);
    pthread_mutex_destroy(&scheduler->idle_lock);
    pthread_mutex_destroy(&scheduler->threads_lock);
    pthread_mutex_destroy(&scheduler->seats_lock);
    pthread_mutex_destroy(&scheduler->roots_lock);
    pthread_mutex_destroy(&scheduler->reach.lock);
    struct jrt_world *world = scheduler->world;
    free(scheduler);
    if (world != NULL) jrt_world_leave(world);
}

/* Opens the trace of the options, or else the world's, which the first scheduler gets. */
static janus_status open_trace(janus_scheduler *scheduler, const janus_scheduler_options *options)
{
    struct jrt_world *world = scheduler->world;
    janus_trace      *trace = options->trace;
    if (trace == NULL && world != NULL) {
        trace = world->trace;
        world->trace = NULL;
    }
    return jrt_trace_begin(&scheduler->tracer, trace, world, options->deterministic_seed,
                           options->worker_count);
}

static janus_status open_all(janus_scheduler *scheduler, const janus_scheduler_options *options)
{
    janus_status status =
        jrt_depot_open(options->guard, options->idle_stack_bytes, &scheduler->depot);
    if (status != JANUS_OK) return status;
    for (unsigned class = 0; class < JRT_STACK_CLASSES; class ++) {
        scheduler->room[class] =
            scheduler->depot->classes[class].promised_bytes + JRT_CALL_BYTES; /* [stack-eighth] */
        if (scheduler->world != NULL) scheduler->room[class] = SIZE_MAX;      /* [room-world] */
    }
    scheduler->roster_open = jrt_roster_init(&scheduler->roster);
    if (!scheduler->roster_open) return JANUS_NO_MEMORY;
    status = jrt_blocking_init(&scheduler->blocking, options->max_blocking_threads,
                               options->max_blocking_extra, options->max_blocking_queue);
    if (status != JANUS_OK) return status;
    scheduler->blocking_open = true;
    scheduler->fault_open = jrt_fault_open();
    if (!scheduler->fault_open) return JANUS_UNAVAILABLE;
    (void)jrt_fences_asymmetric(); /* decides for the process, before anything depends on it */
    status = jrt_implicit_open(scheduler, options);
    if (status != JANUS_OK) return status;
    status = open_trace(scheduler, options);
    if (status != JANUS_OK) return status;
    for (uint32_t i = 0; i < options->worker_count; i++) {
        struct jrt_worker *worker = &scheduler->workers[i];
        worker->scheduler = scheduler;
        worker->index = i;
        worker->alone = options->worker_count == 1;
        scheduler->workers_open++;
        if (!open_worker(worker, options)) return JANUS_NO_MEMORY;
    }
    return JANUS_OK;
}

/* Runs behind jrt_outside_call. Plain threads pass no point there: they have no turn. */
static void outside_call(bool takes_long)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL && jrt_thread_self()->callback == NULL) return;
    if (worker != NULL && takes_long) worker->tolls = 0;
    jrt_stack_check();
}

/* Enters the simulated system, or makes it, with the faults that the environment asks for. */
static janus_status enter_world(const janus_scheduler_options *options, bool simulated,
                                struct jrt_world **out)
{
    struct jrt_environ_faults wanted;
    bool                      fresh = jrt_world_now() == NULL;
    if (!jrt_environ_faults(&wanted)) return JANUS_INVALID;
    if (!simulated) {
        if (wanted.faults == 0) return JANUS_OK;
        jrt_environ_complain();
        return JANUS_INVALID;
    }
    *out = jrt_world_enter(options->deterministic_seed);
    if (*out == NULL) return JANUS_NO_MEMORY;
    if (fresh) jrt_world_break(*out, wanted.faults, wanted.every);
    return JANUS_OK;
}

janus_status jrt_scheduler_open(const janus_scheduler_options *given, janus_scheduler **out)
{
    janus_scheduler_options options;
    if (out == NULL) return JANUS_INVALID;
    janus_status status = decode(given, &options);
    jrt_store_release(&jrt_outside_hook, jrt_terms_outside); /* release: pairs with its readers. */
    jrt_store_release(&jrt_outside_turn_hook, outside_call); /* release: as above. */
    if (status == JANUS_OK) status = jrt_outside_ask();
    if (status != JANUS_OK) return status;
    size_t bytes = sizeof(janus_scheduler) + options.worker_count * sizeof(struct jrt_worker);
    bytes = (bytes + 63) / 64 * 64;
    struct jrt_world *world = NULL;
    bool              simulated = options.deterministic_seed != 0 || jrt_world_now() != NULL;
    if (simulated && jrt_world_now() == NULL && jrt_worker_self() != NULL) return JANUS_STATE;
    status = enter_world(&options, simulated, &world);
    if (status != JANUS_OK) return status;
    janus_scheduler *scheduler = jrt_aligned_alloc(64, bytes);
    if (scheduler == NULL) {
        if (simulated) jrt_world_leave(world);
        return JANUS_NO_MEMORY;
    }
    memset(scheduler, 0, bytes);
    scheduler->world = world;
    scheduler->worker_count = options.worker_count;
    scheduler->profile = options.profile;
    scheduler->stack_class = jrt_pool_stack_class(options.stack_bytes);
    scheduler->initial = jrt_initial(scheduler->stack_class);
    scheduler->stealing = !options.no_stealing;
    scheduler->deadlock_check = !options.no_deadlock_check;
    scheduler->turn_ns = options.turn_ns;
    scheduler->max_slice = options.max_slice;
    scheduler->preempts = simulated && options.preempt_checks;
    scheduler->grace_ns = options.grace_ns;
    scheduler->max_nesting = options.max_nesting;
    scheduler->on_panic = options.on_panic;
    scheduler->on_panic_argument = options.on_panic_argument;
    scheduler->quiet_panics = options.quiet_panics;
    jrt_store_relaxed(&scheduler->cancels, JRT_CANCELS_ONE); /* relaxed: nobody knows it. */
    jrt_store_relaxed(&jrt_poller_forked, false); /* relaxed: [poller-fork], one thread's. */
    jrt_sched_timers_open(scheduler);
    jrt_list_init(&scheduler->roots);
    pthread_mutex_init(&scheduler->inject_lock, NULL);
    pthread_mutex_init(&scheduler->idle_lock, NULL);
    pthread_mutex_init(&scheduler->threads_lock, NULL);
    pthread_mutex_init(&scheduler->seats_lock, NULL);
    jrt_list_init(&scheduler->seats);
    scheduler->max_threads = options.max_threads;
    pthread_mutex_init(&scheduler->roots_lock, NULL);
    pthread_mutex_init(&scheduler->reach.lock, NULL);
    status = open_all(scheduler, &options);
    if (status != JANUS_OK) {
        free_all(scheduler);
        return status;
    }
    *out = scheduler;
    return JANUS_OK;
}

janus_status jrt_scheduler_start(janus_scheduler *scheduler)
{
    if (jrt_world_is_elsewhere(scheduler->world)) return JANUS_STATE;
    jrt_lock(&scheduler->roots_lock);
    bool first = !scheduler->started && !scheduler->stopped;
    if (first) scheduler->started = true;
    jrt_unlock(&scheduler->roots_lock);
    if (!first) return JANUS_STATE;
    struct jrt_arrivals arrivals = {0};
    uint32_t            count = 0;
    bool                ready = true;
    while (ready && count < scheduler->worker_count) {
        struct jrt_worker *worker = &scheduler->workers[count];
        char               name[24];
        snprintf(name, sizeof name, "janus-%u", count);
        worker->arrivals = scheduler->world == NULL ? &arrivals : NULL; /* [replace-arrive] */
        ready = jrt_os_thread_start(&worker->os_thread, jrt_worker_main, worker, name);
        if (ready) count++;
    }
    if (scheduler->world == NULL && !jrt_arrivals_wait(&arrivals, count)) ready = false;
    if (ready) return JANUS_OK;
    jrt_workers_end(scheduler, count);
    scheduler->stopped = true;
    return JANUS_NO_MEMORY;
}

/* Whether some root still has children; under roots_lock. */
static bool roots_busy(janus_scheduler *scheduler)
{
    struct jrt_list_node *node = scheduler->roots.next;
    for (; node != &scheduler->roots; node = node->next) {
        struct jrt_nursery *n = jrt_list_entry(node, struct jrt_nursery, link);
        int64_t             pending = jrt_load_acquire(&n->pending); /* acquire: what they wrote. */
        if ((pending & (JRT_NURSERY_BIAS - 1)) != 0) return true;
    }
    return false;
}

janus_scheduler *janus_scheduler_current(void)
{
    jrt_stack_check(); /* [turn-call] */
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL || worker->current == NULL || jrt_outside_ask() != JANUS_OK) return NULL;
    return jrt_worker_self()->scheduler; /* [worker-again] */
}

janus_status janus_scheduler_stop(janus_scheduler *scheduler)
{
    jrt_outside_call(); /* [turn-call] */
    struct jrt_worker *worker = jrt_worker_self();
    if (scheduler == NULL) return JANUS_INVALID;
    if (worker != NULL && worker->scheduler == scheduler) return JANUS_STATE;
    if (jrt_thread_self()->helps == scheduler) return JANUS_STATE; /* it would wait for itself */
    if (jrt_thread_self()->calls_back) return JANUS_STATE;         /* [callback-plain] */
    if (jrt_world_is_elsewhere(scheduler->world)) return JANUS_STATE;
    jrt_lock(&scheduler->roots_lock);
    bool running = scheduler->started && !scheduler->stopped;
    scheduler->stopped = true; /* [sched-stop]: refuses new roots from here on */
    struct jrt_list_node *node = scheduler->roots.next;
    for (; running && node != &scheduler->roots; node = node->next) {
        struct jrt_nursery *n = jrt_list_entry(node, struct jrt_nursery, link);
        (void)jrt_nursery_cancel_locked(n, JANUS_CANCEL_REASON_SHUTDOWN);
    }
    jrt_unlock(&scheduler->roots_lock);
    jrt_tokens_flush();
    if (!running) return JANUS_OK;
    for (;;) {
        uint32_t seen = jrt_load_acquire(&scheduler->root_done); /* acquire: pairs below. */
        jrt_lock(&scheduler->roots_lock);
        bool busy = roots_busy(scheduler);
        jrt_unlock(&scheduler->roots_lock);
        if (!busy) break;
        jrt_futex_wait(&scheduler->root_done, seen);
    }
    jrt_workers_end(scheduler, scheduler->worker_count);
    /* relaxed: the workers have ended. */
    jrt_debug_invariant("sched-stop", jrt_load_relaxed(&scheduler->injected) == 0);
    return JANUS_OK;
}

janus_status jrt_scheduler_close(janus_scheduler *scheduler)
{
    if (scheduler == NULL) return JANUS_OK;
    janus_status status = janus_scheduler_stop(scheduler);
    if (status != JANUS_OK) return status;
    jrt_lock(&scheduler->roots_lock);
    bool open = !jrt_list_empty(&scheduler->roots);
    jrt_unlock(&scheduler->roots_lock);
    if (open) return JANUS_STATE;
    /* acquire: what a guest did is over, [point-guest]. */
    while (jrt_load_acquire(&scheduler->guests) != 0) jrt_thread_yield();
    free_all(scheduler);
    return JANUS_OK;
}

uint32_t janus_scheduler_worker_count(const janus_scheduler *scheduler)
{
    return scheduler != NULL ? scheduler->worker_count : 0;
}

size_t janus_scheduler_trim(janus_scheduler *scheduler, size_t keep_bytes)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (scheduler == NULL || jrt_world_is_elsewhere(scheduler->world)) return 0;
    jrt_store_relaxed(&scheduler->trim_bytes, keep_bytes); /* relaxed: the count follows. */
    jrt_fetch_add_acq_rel(&scheduler->trims, 1u);          /* acq_rel: what was written. */
    struct jrt_worker *worker = jrt_worker_self();
    if (worker != NULL && worker->scheduler == scheduler) {
        jrt_stack_cache_flush(&worker->stacks, scheduler->depot);
    }
    size_t given = jrt_depot_trim(scheduler->depot, keep_bytes);
    jrt_idle_wake_all(scheduler);
    return given;
}

janus_status janus_scheduler_stacks_inspect(janus_scheduler             *scheduler,
                                            janus_scheduler_stacks_info *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (scheduler == NULL || out == NULL) return JANUS_INVALID;
    if (!jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    janus_scheduler_stacks_info info = {0};
    jrt_depot_stats(scheduler->depot, &info);
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

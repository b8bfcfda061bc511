/* SPDX-License-Identifier: MIT */
/*
 * Pools: the source of fibers, and its books.
 *
 * A pool has one depot of stacks and one store of records, each with its own lock. Sixteen shards
 * stand in front of them. A thread always uses the same shard, by its number. So two threads rarely
 * meet at a shard's lock, and at the depot's lock only once in sixteen fibers.
 *
 * Lock order: shard, then depot or records. No thread holds a lock across a switch. Public calls
 * probe the stack before they lock, so that a fiber does not overflow while it holds a lock. If it
 * does, the process ends with a message ([fault-locked]).
 */
#include "base/assert.h"
#include "base/atomic.h"
#include "base/options.h"
#include "base/outside.h"
#include "fiber/fiber.h"
#include "plat/world.h"

#include <stdlib.h>
#include <string.h>

unsigned jrt_pool_stack_class(size_t stack_bytes)
{
    if (stack_bytes < JANUS_STACK_BYTES_MIN || stack_bytes > JANUS_STACK_BYTES_MAX) {
        return JRT_STACK_CLASSES;
    }
    return jrt_stack_class_of(stack_bytes * JRT_STACK_FACTOR);
}

struct jrt_shard *jrt_shard_lock(janus_fiber_pool *pool, struct jrt_thread *thread)
{
    struct jrt_shard *shard = &pool->shards[jrt_thread_number(thread) % JRT_SHARDS];
    thread->holding++;
    jrt_lock(&shard->lock);
    return shard;
}

void jrt_shard_unlock(struct jrt_shard *shard, struct jrt_thread *thread)
{
    jrt_unlock(&shard->lock);
    thread->holding--;
}

/* Copies the fields that the caller's struct has, so that older callers with a shorter struct
 * work. */
static janus_status decode(const janus_fiber_pool_options *given, janus_fiber_pool_options *options)
{
    memset(options, 0, sizeof *options);
    if (given != NULL) {
        if (!jrt_struct_sane(given->struct_bytes, sizeof *options)) return JANUS_INVALID;
        memcpy(options, given, given->struct_bytes);
    }
    if (options->profile == JANUS_PROFILE_DEFAULT) options->profile = JANUS_PROFILE_SERVICE;
    if (options->stack_bytes == 0) {
        options->stack_bytes = janus_profile_stack_bytes(options->profile);
    }
    if (options->idle_stack_bytes == 0) options->idle_stack_bytes = JANUS_IDLE_STACK_BYTES;
    options->scrub =
        options->scrub || options->measure || options->profile == JANUS_PROFILE_SOVEREIGN;
    bool known = janus_profile_stack_bytes(options->profile) != 0 &&
                 (unsigned)options->guard <= JANUS_GUARD_CANARY &&
                 (unsigned)options->signal_mode <= JANUS_SIGNAL_MODE_MANUAL;
    bool fits = jrt_pool_stack_class(options->stack_bytes) < JRT_STACK_CLASSES &&
                options->guard_bytes <= JANUS_GUARD_BYTES_MAX;
    return known && fits ? JANUS_OK : JANUS_INVALID;
}

static janus_status open_rooms(janus_fiber_pool *pool, const janus_fiber_pool_options *options)
{
    const struct jrt_depot_options stacks = {.guard = options->guard,
                                             .guard_bytes = options->guard_bytes,
                                             .mappings_max = options->max_guard_mappings,
                                             .idle_bytes = options->idle_stack_bytes};
    janus_status                   status = jrt_depot_init(&pool->depot, &stacks);
    if (status != JANUS_OK) return status;
    if (!jrt_records_init(&pool->records, sizeof(struct janus_fiber))) {
        jrt_depot_fini(&pool->depot);
        return JANUS_NO_MEMORY;
    }
    if (options->signal_mode == JANUS_SIGNAL_MODE_HANDLER && !jrt_fault_open()) {
        jrt_records_fini(&pool->records);
        jrt_depot_fini(&pool->depot);
        return JANUS_UNAVAILABLE;
    }
    return JANUS_OK;
}

janus_status janus_fiber_pool_create(const janus_fiber_pool_options *given, janus_fiber_pool **out)
{
    jrt_outside_call_long(); /* [turn-call] */
    janus_fiber_pool_options options;
    janus_status             status = decode(given, &options);
    if (status != JANUS_OK || out == NULL) return JANUS_INVALID;
    status = jrt_outside_ask();
    if (status != JANUS_OK) return status;
    jrt_ctx_probe();

    size_t            bytes = (sizeof(janus_fiber_pool) + 63) / 64 * 64;
    janus_fiber_pool *pool = jrt_aligned_alloc(64, bytes);
    if (pool == NULL) return JANUS_NO_MEMORY;
    memset(pool, 0, bytes);
    pool->signal_mode = options.signal_mode;
    pool->scrub = options.scrub;
    pool->measure = options.measure;
    pool->stack_class = jrt_pool_stack_class(options.stack_bytes);
    pool->max_fibers = options.max_fibers;
    status = open_rooms(pool, &options);
    if (status != JANUS_OK) {
        free(pool);
        return status;
    }
    for (unsigned i = 0; i < JRT_SHARDS; i++) {
        /* This cannot fail on Linux: a default mutex needs no memory. */
        int failed = pthread_mutex_init(&pool->shards[i].lock, NULL);
        jrt_invariant("pool-locks", failed == 0);
    }
    *out = pool;
    return JANUS_OK;
}

/* Moves everything in the shards to the depot and the store. */
static void flush(janus_fiber_pool *pool)
{
    for (unsigned i = 0; i < JRT_SHARDS; i++) {
        struct jrt_shard *shard = &pool->shards[i];
        jrt_lock(&shard->lock);
        struct jrt_record *records = shard->records;
        shard->records = NULL;
        shard->record_count = 0;
        jrt_stack_cache_flush(&shard->stacks, &pool->depot);
        jrt_records_give(&pool->records, records);
        jrt_unlock(&shard->lock);
    }
}

/* [pool-locks] a thread reads and writes a shard only under the shard's lock. */
static void add_shards(janus_fiber_pool *pool, janus_fiber_pool_info *sum)
{
    uint64_t destroyed = 0;
    uint64_t attached = 0;
    uint64_t detached = 0;
    for (unsigned i = 0; i < JRT_SHARDS; i++) {
        struct jrt_shard *shard = &pool->shards[i];
        jrt_lock(&shard->lock);
        sum->fibers_created += shard->created;
        destroyed += shard->destroyed;
        attached += shard->attached;
        detached += shard->detached;
        sum->overflows += shard->overflows;
        if (sum->high_water_bytes < shard->high_water_bytes) {
            sum->high_water_bytes = shard->high_water_bytes;
        }
        for (unsigned class = 0; class < JRT_STACK_CLASSES; class ++) {
            sum->stacks_idle += shard->stacks.hot[class].count;
        }
        sum->idle_bytes += shard->stacks.bytes;
        jrt_unlock(&shard->lock);
    }
    /* A fiber may be made through a shard after its counters were read, and destroyed through
     * another before that. The difference must not fall below zero. */
    sum->fibers_live = sum->fibers_created > destroyed ? sum->fibers_created - destroyed : 0;
    sum->stacks_attached = attached > detached ? attached - detached : 0;
}

janus_status janus_fiber_pool_inspect(janus_fiber_pool *pool, janus_fiber_pool_info *out)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (pool == NULL || out == NULL) return JANUS_INVALID;
    if (!jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    jrt_ctx_probe();
    janus_fiber_pool_info sum = {0};
    struct jrt_thread    *thread = jrt_thread_self();
    thread->holding++;
    add_shards(pool, &sum);
    janus_scheduler_stacks_info stacks;
    jrt_depot_stats(&pool->depot, &stacks);
    sum.stacks_idle += stacks.stacks_idle;
    sum.idle_bytes += stacks.idle_bytes;
    sum.stacks_marker = stacks.stacks_marker;
    sum.stacks_mprotect = stacks.stacks_mprotect;
    sum.stacks_canary = stacks.stacks_canary;
    sum.reserved_bytes = stacks.reserved_bytes;
    sum.slabs_released = stacks.slabs_released;
    sum.guard = stacks.guard;
    sum.record_bytes = jrt_records_bytes(&pool->records);
    thread->holding--;
    jrt_struct_give(out, &sum);
    return JANUS_OK;
}

size_t janus_fiber_pool_trim(janus_fiber_pool *pool, size_t keep_bytes)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (pool == NULL) return 0;
    jrt_ctx_probe();
    struct jrt_thread *thread = jrt_thread_self();
    thread->holding++;
    flush(pool);
    size_t dropped = jrt_depot_trim(&pool->depot, keep_bytes);
    jrt_records_trim(&pool->records);
    thread->holding--;
    return dropped;
}

janus_status janus_fiber_pool_destroy(janus_fiber_pool *pool)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (pool == NULL) return JANUS_OK;
    jrt_ctx_probe();
    janus_fiber_pool_info sum = JANUS_FIBER_POOL_INFO();
    add_shards(pool, &sum);
    if (sum.fibers_live > 0) return JANUS_STATE;
    flush(pool);
    if (pool->signal_mode == JANUS_SIGNAL_MODE_HANDLER) jrt_fault_close();
    jrt_records_fini(&pool->records);
    jrt_depot_fini(&pool->depot);
    for (unsigned i = 0; i < JRT_SHARDS; i++) pthread_mutex_destroy(&pool->shards[i].lock);
    free(pool);
    return JANUS_OK;
}

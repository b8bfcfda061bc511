/* SPDX-License-Identifier: MIT */
/*
 * Traces: recording.
 *
 * One thread at a time writes events to a lane. Each worker has a lane. Threads that are not
 * workers, and those of single tasks, share one lane and its lock. No writer waits for a reader. In
 * a world all workers are one thread and share a lane. So its events are in the order of the
 * execution, and its hash, computed as they come, is the execution's. That lane exists even without
 * a trace, and then keeps no events.
 *
 * [trace-ring]  the writer writes event k to slot k modulo the size, its words by release stores.
 *   Then it sets `head` to k + 1, by a release store. A reader reads head, copies, and reads head
 *   again. Its copy of event k is good if head is then at most k + size - 1. Proof: the event k +
 *   size overwrites k. A reader that read a word of it has acquired the stores before it, and so
 *   sees a head of at least k + size.
 *
 * [trace-all]  a lane that keeps all events has chunks. A release store links a chunk before `head`
 *   counts its first event, and nothing is written twice. Once there is no room for another chunk,
 *   the lane only counts. So a trace has no holes except at its end.
 *
 * [trace-pure]  in a world, recording must not change what happens. It makes no choice and passes
 *   no point, and its allocations do not fail by the world's will. An outside thread records
 *   nothing in a world, because it has no part in the repeatable execution.
 *
 * Rejected: one ring for all workers, with an atomic step for each event, which would order them.
 * The workers would all write to the same cache lines, and the recorder would invent the order.
 *
 * Locks: a trace's, then a shared lane's.
 */
#include "base/options.h"
#include "base/outside.h"
#include "base/rng.h"
#include "plat/seam.h"
#include "sim/world.h"
#include "trace/lane.h"

#include <stdlib.h>
#include <string.h>

enum {
    RING_EVENTS = 4096,
    RING_EVENTS_MAX = 1 << 24,
    BYTES_MIN = 65536,
};

/* Writing. */

static void slot_write(struct jrt_trace_slot *slot, const struct jrt_trace_event *event)
{
    /* release, all: [trace-ring]. */
    jrt_store_release(&slot->words[0], event->time_ns);
    jrt_store_release(&slot->words[1], event->task);
    jrt_store_release(&slot->words[2], event->object);
    jrt_store_release(&slot->words[3], event->rest);
}

/* Takes the bytes of a chunk from the room of all lanes. */
static bool take_room(_Atomic(uint64_t) *room)
{
    uint64_t left = jrt_load_relaxed(room); /* relaxed: a count that guards no memory. */
    do {
        if (left < sizeof(struct jrt_trace_chunk)) return false;
    } while (!jrt_cas_relaxed(room, &left, left - sizeof(struct jrt_trace_chunk))); /* relaxed */
    return true;
}

/* The slot for the event with this number. NULL: there is no room any more. */
static struct jrt_trace_slot *chunk_slot(struct jrt_trace_lane *lane, uint64_t number)
{
    uint64_t                within = number % JRT_TRACE_CHUNK_EVENTS;
    struct jrt_trace_chunk *chunk = lane->last;
    /* relaxed: ours. */
    jrt_debug_invariant("trace-all", within == 0 || jrt_load_relaxed(&lane->missed) == 0);
    if (within != 0) return &chunk->slots[within];
    /* relaxed: ours. A lane that has missed an event keeps none, [trace-all]. */
    if (jrt_load_relaxed(&lane->missed) != 0 || !take_room(lane->room)) return NULL;
    chunk = malloc(sizeof *chunk); /* [trace-pure] */
    if (chunk == NULL) return NULL;
    jrt_store_relaxed(&chunk->next, NULL); /* relaxed: not published yet. */
    if (lane->last == NULL) {
        lane->first = chunk; /* published by `head` */
    } else {
        jrt_store_release(&lane->last->next, chunk); /* release: [trace-all]. */
    }
    lane->last = chunk;
    return &chunk->slots[0];
}

static void hash_event(struct jrt_trace_lane *lane, const struct jrt_trace_event *event)
{
    uint64_t what = jrt_hash_add(event->task, event->object);
    uint64_t hash = jrt_load_relaxed(&lane->hash); /* relaxed, both: one writer. */
    hash = jrt_hash_add(jrt_hash_add(hash, what), event->rest);
    jrt_store_relaxed(&lane->hash, hash); /* relaxed: one writer. */
    if (lane->world != NULL) jrt_world_note(lane->world, what, event->rest);
}

static void write_event(struct jrt_trace_lane *lane, const struct jrt_trace_event *event)
{
    uint64_t               head = jrt_load_relaxed(&lane->head); /* relaxed: one writer. */
    struct jrt_trace_slot *slot = NULL;
    jrt_debug_invariant("trace-pure", lane->world == NULL || lane->world == jrt_world_now());
    hash_event(lane, event);
    if (lane->ring != NULL) {
        slot = &lane->ring[head & lane->mask];
    } else if (lane->room != NULL) {
        slot = chunk_slot(lane, head);
    }
    if (slot != NULL) {
        slot_write(slot, event);
        jrt_store_release(&lane->head, head + 1); /* release: [trace-ring]. */
    } else {
        /* relaxed, both: one writer. */
        jrt_store_relaxed(&lane->missed, jrt_load_relaxed(&lane->missed) + 1);
    }
}

void jrt_trace_record(struct jrt_trace_lane *lane, enum jrt_trace_kind kind, uint32_t worker,
                      uint64_t task, uint64_t object, uint64_t amount)
{
    bool kept = lane->ring != NULL || lane->room != NULL;
    if (lane->world != NULL && lane->world != jrt_world_now()) return; /* [trace-pure] */
    struct jrt_trace_event event = {
        .task = task, .object = object, .rest = jrt_trace_rest(kind, worker, amount)};
    if (lane->shared) jrt_lock(&lane->lock);
    if (kept)
        event.time_ns = jrt_clock_now_ns(); /* under the lock: a lane's times do not go back */
    write_event(lane, &event);
    if (lane->shared) jrt_unlock(&lane->lock);
}

/* Lanes. */

static void lanes_free(struct jrt_trace_lane *lanes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct jrt_trace_chunk *chunk = lanes[i].first;
        while (chunk != NULL) {
            struct jrt_trace_chunk *next = jrt_load_relaxed(&chunk->next); /* relaxed: ours. */
            free(chunk);
            chunk = next;
        }
        free(lanes[i].ring);
        pthread_mutex_destroy(&lanes[i].lock);
    }
    free(lanes);
}

static struct jrt_trace_lane *lanes_make(uint32_t count, struct jrt_world *world, uint64_t seed)
{
    struct jrt_trace_lane *lanes = aligned_alloc(64, count * sizeof *lanes); /* [trace-pure] */
    if (lanes == NULL) return NULL;
    memset(lanes, 0, count * sizeof *lanes);
    for (uint32_t i = 0; i < count; i++) {
        lanes[i].world = world;
        lanes[i].shared = world == NULL && i == count - 1;
        pthread_mutex_init(&lanes[i].lock, NULL);
        jrt_store_relaxed(&lanes[i].hash, jrt_hash_add(i, seed)); /* relaxed: not published yet. */
    }
    return lanes;
}

/* Makes room for the events of each lane. False: no memory. */
static bool lanes_equip(janus_trace *trace, struct jrt_trace_lane *lanes, uint32_t count,
                        uint64_t ring_events)
{
    jrt_store_relaxed(&trace->room, trace->max_bytes); /* relaxed: no thread writes yet. */
    for (uint32_t i = 0; i < count; i++) {
        if (trace->max_bytes != 0) {
            lanes[i].room = &trace->room;
            continue;
        }
        lanes[i].mask = ring_events - 1;
        lanes[i].ring = calloc(ring_events, sizeof *lanes[i].ring); /* [trace-pure] */
        if (lanes[i].ring == NULL) return false;
    }
    return true;
}

static uint64_t power_of_two(uint64_t at_least)
{
    uint64_t power = 1;
    while (power < at_least) power *= 2;
    return power;
}

/* The caller holds the lock. */
static janus_status take_trace(janus_trace *trace, struct jrt_tracer *tracer, uint32_t count,
                               uint32_t workers, bool simulated)
{
    uint64_t each = trace->ring_events;
    if (trace->taken || trace->frozen) return JANUS_STATE;
    if (simulated) each = power_of_two(each * workers); /* one ring for all */
    if (!lanes_equip(trace, tracer->lanes, count, each)) return JANUS_NO_MEMORY;
    if (trace->lanes != NULL) lanes_free(trace->lanes, trace->lane_count);
    trace->lanes = tracer->lanes;
    trace->lane_count = count;
    trace->taken = true;
    tracer->trace = trace;
    return JANUS_OK;
}

janus_status jrt_trace_begin(struct jrt_tracer *tracer, janus_trace *trace, struct jrt_world *world,
                             uint64_t seed, uint32_t workers)
{
    bool     simulated = world != NULL;
    uint32_t count = simulated ? 1 : workers + 1;
    *tracer = (struct jrt_tracer){.workers = simulated ? 0 : workers};
    if (trace == NULL && !simulated) return JANUS_OK;
    tracer->lanes = lanes_make(count, world, simulated ? seed : 0);
    if (tracer->lanes == NULL) return JANUS_NO_MEMORY;
    if (trace == NULL) return JANUS_OK;
    pthread_mutex_lock(&trace->lock); /* its holders pass no point, so it is never taken */
    janus_status status = take_trace(trace, tracer, count, workers, simulated);
    if (status == JANUS_OK) {
        trace->copy = (struct jrt_trace_copy){.seed = simulated ? seed : 0,
                                              .began_ns = jrt_clock_now_ns(),
                                              .workers = workers,
                                              .deterministic = simulated};
    }
    pthread_mutex_unlock(&trace->lock);
    if (status != JANUS_OK) {
        lanes_free(tracer->lanes, count);
        tracer->lanes = NULL;
    }
    return status;
}

void jrt_trace_abandon(janus_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    trace->taken = false;
    pthread_mutex_unlock(&trace->lock);
}

void jrt_trace_end(struct jrt_tracer *tracer)
{
    if (tracer->trace != NULL) {
        jrt_trace_abandon(tracer->trace); /* the trace keeps the lanes */
    } else if (tracer->lanes != NULL) {
        lanes_free(tracer->lanes, 1);
    }
    tracer->lanes = NULL;
    tracer->trace = NULL;
}

struct jrt_trace_lane *jrt_trace_lane(const struct jrt_tracer *tracer, uint32_t worker)
{
    if (tracer->lanes == NULL) return NULL;
    return &tracer->lanes[worker < tracer->workers ? worker : tracer->workers];
}

uint64_t jrt_trace_hash(const struct jrt_tracer *tracer)
{
    struct jrt_trace_copy all = {.hash = 0};
    if (tracer->lanes == NULL) return 0;
    jrt_trace_count(tracer->lanes, tracer->workers + 1, &all);
    return all.hash;
}

/* Opening and closing. */

static janus_status decode(const janus_trace_options *given, janus_trace_options *options)
{
    *options = (janus_trace_options){.struct_bytes = sizeof *options};
    if (given != NULL) {
        if (!jrt_struct_sane(given->struct_bytes, sizeof *options)) return JANUS_INVALID;
        memcpy(options, given, given->struct_bytes);
    }
    if (options->ring_events > RING_EVENTS_MAX) return JANUS_INVALID;
    if (options->ring_events == 0) options->ring_events = RING_EVENTS;
    bool too_few = options->max_bytes != 0 && options->max_bytes < BYTES_MIN;
    return too_few ? JANUS_INVALID : JANUS_OK;
}

janus_status janus_trace_create(const janus_trace_options *given, janus_trace **out)
{
    jrt_outside_call_long(); /* [turn-call] */
    janus_trace_options options;
    if (out == NULL || decode(given, &options) != JANUS_OK) return JANUS_INVALID;
    janus_status may = jrt_outside_ask();
    if (may != JANUS_OK) return may;
    janus_trace *trace = calloc(1, sizeof *trace); /* [trace-pure] */
    if (trace == NULL) return JANUS_NO_MEMORY;
    pthread_mutex_init(&trace->lock, NULL);
    trace->ring_events = (uint32_t)power_of_two(options.ring_events);
    trace->max_bytes = options.max_bytes;
    *out = trace;
    return JANUS_OK;
}

janus_status janus_trace_destroy(janus_trace *trace)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (trace == NULL) return JANUS_OK;
    pthread_mutex_lock(&trace->lock);
    bool taken = trace->taken;
    pthread_mutex_unlock(&trace->lock);
    if (taken) return JANUS_STATE;
    if (trace->lanes != NULL) lanes_free(trace->lanes, trace->lane_count);
    pthread_mutex_destroy(&trace->lock);
    free(trace->copy.events);
    free(trace);
    return JANUS_OK;
}

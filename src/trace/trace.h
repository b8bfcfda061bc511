/* SPDX-License-Identifier: MIT */
/* Traces, as other rooms write to them. The essay is in trace.c. */
#ifndef JRT_TRACE_TRACE_H
#define JRT_TRACE_TRACE_H

#include "base/atomic.h"
#include "plat/world.h"

#include <janusrt/trace.h>

/* What can happen. Numbers are in files: the list only grows. */
#define JRT_TRACE_MAP(X)                                                                           \
    X(GAP, "gap")                                                                                  \
    X(SPAWN, "spawn")                                                                              \
    X(START, "start")                                                                              \
    X(RESUME, "resume")                                                                            \
    X(YIELD, "yield")                                                                              \
    X(PARK, "park")                                                                                \
    X(WAKE, "wake")                                                                                \
    X(STEAL, "steal")                                                                              \
    X(CANCEL, "cancel")                                                                            \
    X(EXHAUST, "exhaust")                                                                          \
    X(RECHARGE, "recharge")                                                                        \
    X(SEND, "send")                                                                                \
    X(RECV, "recv")                                                                                \
    X(CLOSE, "close")                                                                              \
    X(SELECT, "select")                                                                            \
    X(TIMER, "timer")                                                                              \
    X(COMPLETE, "complete")

enum jrt_trace_kind {
#define X(name, text) JRT_TRACE_##name,
    JRT_TRACE_MAP(X)
#undef X
        JRT_TRACE_KINDS,
};

/* The amount of a COMPLETE. */
#define JRT_TRACE_ENDS_MAP(X)                                                                      \
    X(OK, "ok")                                                                                    \
    X(FAILED, "failed")                                                                            \
    X(CANCELLED, "cancelled")                                                                      \
    X(PANICKED, "panicked")                                                                        \
    X(OVERFLOWED, "overflowed")                                                                    \
    X(EXHAUSTED, "exhausted")

enum jrt_trace_end {
#define X(name, text) JRT_TRACE_END_##name,
    JRT_TRACE_ENDS_MAP(X)
#undef X
};

/* One event. Of a PARK the object is a channel, the amount an enum jrt_wait; trace.h of the public
 * headers says of which kind what is told. */
struct jrt_trace_event {
    uint64_t time_ns;
    uint64_t task;   /* janus_task_id, or 0 */
    uint64_t object; /* another task, a channel, a worker, a component, a count */
    uint64_t rest;   /* kind: 8 bits; worker: 16; amount: 40 */
};

#define JRT_TRACE_OUTSIDE UINT32_C(0xffff) /* in place of a worker */
#define JRT_TRACE_AMOUNT_MAX ((UINT64_C(1) << 40) - 1)

static inline uint64_t jrt_trace_rest(enum jrt_trace_kind kind, uint32_t worker, uint64_t amount)
{
    if (amount > JRT_TRACE_AMOUNT_MAX) amount = JRT_TRACE_AMOUNT_MAX;
    return (uint64_t)kind | (uint64_t)(worker & 0xffff) << 8 | amount << 24;
}

static inline enum jrt_trace_kind jrt_trace_kind_of(const struct jrt_trace_event *event)
{
    return (enum jrt_trace_kind)(event->rest & 0xff);
}

static inline uint32_t jrt_trace_worker_of(const struct jrt_trace_event *event)
{
    return (uint32_t)(event->rest >> 8) & 0xffff;
}

static inline uint64_t jrt_trace_amount_of(const struct jrt_trace_event *event)
{
    return event->rest >> 24;
}

/* Where events are written, by one thread at a time. */
struct jrt_trace_lane;

/* A scheduler's. */
struct jrt_tracer {
    janus_trace           *trace;   /* borrowed; NULL: only the hash, or nothing */
    struct jrt_trace_lane *lanes;   /* of the trace, or else ours; NULL: nothing is recorded */
    uint32_t               workers; /* lanes, and one more; in a world: 0, all in one */
};

/*
 * Begins to record what a scheduler does, in `trace` or, in a world, as a hash alone; with neither
 * it records nothing. `seed`: of a world. STATE: another scheduler has the trace, or it was read
 * from a file. NO_MEMORY.
 */
janus_status jrt_trace_begin(struct jrt_tracer *tracer, janus_trace *trace, struct jrt_world *world,
                             uint64_t seed, uint32_t workers);
void         jrt_trace_end(struct jrt_tracer *tracer);

/* The scheduler that had it was given up with its world: somebody else can have it, or close it. */
void jrt_trace_abandon(janus_trace *trace);

/* A worker's lane, or with JRT_TRACE_OUTSIDE that of all other threads; NULL: nothing is recorded.
 */
struct jrt_trace_lane *jrt_trace_lane(const struct jrt_tracer *tracer, uint32_t worker);

/* Of all lanes together; 0: nothing is recorded. */
uint64_t jrt_trace_hash(const struct jrt_tracer *tracer);

/* One event, now. */
void jrt_trace_record(struct jrt_trace_lane *lane, enum jrt_trace_kind kind, uint32_t worker,
                      uint64_t task, uint64_t object, uint64_t amount);

#endif

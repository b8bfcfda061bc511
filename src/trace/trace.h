/* SPDX-License-Identifier: MIT */
/* Traces, for the rooms that write to them. The essay is in trace.c. */
#ifndef JRT_TRACE_TRACE_H
#define JRT_TRACE_TRACE_H

#include "base/atomic.h"
#include "plat/world.h"

#include <janusrt/trace.h>

/* The kinds of events. Files hold these numbers, so the list only grows. */
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

/* How a task ended: the amount of a COMPLETE. */
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

/* One event. For a PARK the object is a channel and the amount an enum jrt_wait. The public trace.h
 * describes the fields of each kind. */
struct jrt_trace_event {
    uint64_t time_ns;
    uint64_t task;   /* janus_task_id, or 0 */
    uint64_t object; /* another task, a channel, a worker, a component, a count */
    uint64_t rest;   /* 8 bits of kind, 16 of worker, 40 of amount */
};

#define JRT_TRACE_OUTSIDE UINT32_C(0xffff) /* instead of a worker */
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

/* One thread at a time writes events to it. */
struct jrt_trace_lane;

/* A scheduler's recorder. */
struct jrt_tracer {
    janus_trace           *trace;   /* borrowed; NULL: only the hash, or nothing */
    struct jrt_trace_lane *lanes;   /* the trace's, or owned; NULL: nothing is recorded */
    uint32_t               workers; /* workers with a lane; in a world 0, all share one */
};

/*
 * Begins to record a scheduler: in `trace`, or in a world at least as a hash. Without both it
 * records nothing. `seed`: of a world. STATE: another scheduler uses the trace, or it was read from
 * a file. NO_MEMORY.
 */
janus_status jrt_trace_begin(struct jrt_tracer *tracer, janus_trace *trace, struct jrt_world *world,
                             uint64_t seed, uint32_t workers);
void         jrt_trace_end(struct jrt_tracer *tracer);

/* The world of the trace's scheduler was given up. Another scheduler may use the trace, or the
 * program may close it. */
void jrt_trace_abandon(janus_trace *trace);

/* A worker's lane, or with JRT_TRACE_OUTSIDE the lane of all other threads. NULL: nothing is
 * recorded. */
struct jrt_trace_lane *jrt_trace_lane(const struct jrt_tracer *tracer, uint32_t worker);

/* The hash of all lanes together; 0: nothing is recorded. */
uint64_t jrt_trace_hash(const struct jrt_tracer *tracer);

/* Records one event, with the current time. */
void jrt_trace_record(struct jrt_trace_lane *lane, enum jrt_trace_kind kind, uint32_t worker,
                      uint64_t task, uint64_t object, uint64_t amount);

#endif

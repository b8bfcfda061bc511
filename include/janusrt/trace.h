/* SPDX-License-Identifier: MIT */
/*
 * Traces: what a scheduler did, event by event.
 *
 *     janus_trace *trace;
 *     janus_trace_create(NULL, &trace);
 *     janus_run(JANUS_SCHEDULER_OPTIONS(.trace = trace), main_task, NULL, NULL);
 *     janus_trace_write(trace, JANUS_TRACE_FORMAT_PERFETTO, fd); // for ui.perfetto.dev
 *     janus_trace_destroy(trace);
 *
 * The text format has a line for each event: the time in microseconds, the worker, the event, the
 * task.
 *
 *     # janusrt trace: 2 workers, seed 7, 12 events, 0 lost, hash 0x4cf1de5c04a2b88f
 *            0.300 w0 start    0x100000000
 *            0.300 w0 spawn    0x200000000 by 0x100000000
 *            0.400 w0 park     0x100000000 waits for its children
 *            0.500 w1 steal    0x200000000 from w0
 *            0.500 w1 start    0x200000000
 *            0.600 w1 send     0x200000000 channel 1
 *            0.700 w1 complete 0x200000000 ok
 *            0.700 w1 wake     0x100000000
 *            0.800 w0 resume   0x100000000
 *
 *     spawn     by which task; w- is a plain thread
 *     start     on which task, if it runs on the stack of the task that awaits it
 *     resume    it goes on after a yield or a park
 *     yield     it let another task run; a yield that found no other task is not recorded
 *     park      it waits: for what, and for which channel or descriptor
 *     wake      its wait ended: by which task (none: a timer, the end of another), with what
 *     steal     from which worker
 *     cancel    a nursery of this task (0: of a thread) was cancelled: by which task, why
 *     exhaust   it could not pay: which component
 *     recharge  it got more: which component, how much
 *     send, recv, close   with which channel; `waited`: it had to wait
 *     select    which of how many cases; the send or recv stands before it
 *     timer     a timer fired, this many ns late
 *     complete  ok, failed, cancelled, panicked, overflowed or exhausted
 *     gap       this many events of this worker are missing here
 *
 * Each worker writes to its own ring, and all other threads to one more. No writer ever waits, so a
 * program can leave a trace on as a flight recorder. The rings keep the newest events. A gap counts
 * those that were overwritten. A program can write out a trace at any time, also while it records:
 * that is a snapshot, which stops no worker. The clock orders the lines of different workers.
 *
 * In a deterministic run (options.deterministic_seed) all events are in their exact order, and the
 * hash identifies the execution. The same program with the same seed, input, workers and budgets
 * has the same hash in every run and every build, recorded or not. Channels are numbered in the
 * order of creation. In other runs the hash has no meaning.
 */
#ifndef JANUSRT_TRACE_H
#define JANUSRT_TRACE_H

#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct janus_scheduler;

typedef struct janus_trace janus_trace;

/* Options of a trace. Zero in any field selects the default named beside it. */
typedef struct janus_trace_options {
    size_t   struct_bytes; /* sizeof this struct; JANUS_TRACE_OPTIONS sets it */
    uint32_t ring_events;  /* for each worker, 32 bytes an event. 0: 4096; rounded up to a power of
                              two, at most 16777216 */
    uint64_t max_bytes;    /* not 0: no rings. Keep all events from the first on, up to this many
                              bytes, at least 65536. 0: rings */
} janus_trace_options;

#define JANUS_TRACE_OPTIONS(...) JANUS_OPTIONS_(janus_trace_options, __VA_ARGS__)

/* The formats of a trace. */
typedef enum janus_trace_format {
    JANUS_TRACE_FORMAT_TEXT = 0, /* lines, as above */
    JANUS_TRACE_FORMAT_PERFETTO, /* JSON, the trace event format: for ui.perfetto.dev */
    JANUS_TRACE_FORMAT_BINARY,   /* for janus_trace_read; 32 bytes an event */
} janus_trace_format;

typedef struct janus_trace_info {
    size_t   struct_bytes;  /* sizeof this struct; JANUS_TRACE_INFO sets it */
    uint64_t hash;          /* of all events, lost ones included */
    uint64_t events;        /* how many were recorded */
    uint64_t lost;          /* of these, overwritten or not kept */
    uint64_t seed;          /* of a deterministic run */
    uint32_t workers;       /* 0: no scheduler has used it yet */
    bool     deterministic; /* the hash can be compared */
} janus_trace_info;
#define JANUS_TRACE_INFO() JANUS_SIZED_(janus_trace_info)

JANUS_BEGIN_DECLS

/*
 * Creates an empty trace, for the option `trace` of a scheduler. One scheduler at a time can have
 * it. Creating the next scheduler with it empties it.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is the library's until janus_trace_destroy; `options` is only read.
 * Cost:    nothing until a scheduler is created with it; then its rings. An event costs about 30
 *          ns, most of it for reading the clock.
 * Errors:  INVALID    a field is out of range, or `out` is NULL
 *          NO_EXECUTOR_CAP  a restricted task without executor.configure, see scheduler.h
 *          NO_MEMORY  memory was refused
 *          On any error *out is untouched.
 */
JANUS_NODISCARD JANUS_API janus_status janus_trace_create(const janus_trace_options *options,
                                                          janus_trace              **out);

/*
 * Destroys a trace.
 *
 * Context: any thread, when no other thread uses it any more.
 * Yields:  only if the turn is over.
 * Owns:    takes `trace` when it returns OK; NULL does nothing.
 * Cost:    freeing memory.
 * Errors:  STATE  its scheduler is not destroyed
 */
JANUS_API janus_status janus_trace_destroy(janus_trace *trace);

/*
 * Writes the present content of a trace to a file descriptor.
 *
 * Context: any thread or task, while it records or later.
 * Yields:  only if the turn is over; writing may block the thread, but no lock is held then.
 * Owns:    `fd` stays the caller's. If it can be a broken pipe, the program ignores SIGPIPE.
 * Cost:    a copy of all events, and about 0.2 us for each line.
 * Errors:  INVALID    `trace` is NULL, no such format, or `fd` cannot be written to
 *          NO_MEMORY  memory was refused
 */
JANUS_NODISCARD JANUS_API janus_status janus_trace_write(janus_trace       *trace,
                                                         janus_trace_format format, int fd);

/*
 * Reads a BINARY trace, so that it can be written in another format.
 *
 * Context: any thread.
 * Yields:  only if the turn is over; reading may block the thread.
 * Owns:    *out is the library's until janus_trace_destroy; no scheduler can have it. `fd` stays
 *          the caller's; the call reads up to the end of the trace.
 * Cost:    32 bytes for each event.
 * Errors:  INVALID    it is no trace, has another version, is cut off or damaged, or `out` is NULL
 *          NO_MEMORY  memory was refused
 *          On any error *out is untouched.
 */
JANUS_NODISCARD JANUS_API janus_status janus_trace_read(int fd, janus_trace **out);

/*
 * Reads the number of events and the hash of a trace.
 *
 * Context: any thread or task. Numbers may change while it records.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    a few loads for each worker.
 * Errors:  INVALID  an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_trace_inspect(janus_trace      *trace,
                                                           janus_trace_info *out);

/*
 * The hash of what a scheduler has done so far. A deterministic run has a hash also without a
 * trace.
 *
 * Context: any thread. For a deterministic scheduler only the thread that created it.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load for each worker.
 * Errors:  none. 0 if nothing is recorded, or `scheduler` is NULL.
 */
JANUS_API uint64_t janus_scheduler_trace_hash(const struct janus_scheduler *scheduler);

JANUS_END_DECLS
#endif

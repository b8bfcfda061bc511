/* SPDX-License-Identifier: MIT */
/* Inside of traces: lanes, and what was copied from them. The essay is in trace.c. */
#ifndef JRT_TRACE_LANE_H
#define JRT_TRACE_LANE_H

#include "trace/trace.h"

/* An event where others may read it. The same four words. */
struct jrt_trace_slot {
    _Atomic(uint64_t) words[4];
};

_Static_assert(sizeof(struct jrt_trace_slot) == 32, "32 bytes an event");
_Static_assert(sizeof(struct jrt_trace_event) == sizeof(struct jrt_trace_slot), "the same words");

enum { JRT_TRACE_CHUNK_EVENTS = 1023 };

struct jrt_trace_chunk {
    _Atomic(struct jrt_trace_chunk *) next;
    uint64_t                          unused[3];
    struct jrt_trace_slot             slots[JRT_TRACE_CHUNK_EVENTS];
};

struct jrt_trace_lane {
    struct jrt_world       *world; /* whose events these are; NULL: nobody simulates */
    struct jrt_trace_slot  *ring;  /* owned; NULL: chunks, or nothing is kept */
    uint64_t                mask;
    struct jrt_trace_chunk *first, *last; /* owned; events from the first on */
    _Atomic(uint64_t)      *room;   /* bytes for chunks that are left, of all lanes; or NULL */
    _Atomic(uint64_t)       head;   /* events that were written, [trace-ring] */
    _Atomic(uint64_t)       missed; /* that could not be */
    _Atomic(uint64_t)       hash;
    bool                    shared; /* several threads write: under the lock */
    pthread_mutex_t         lock;
} __attribute__((aligned(64)));

/* Events, copied: nobody writes there any more. */
struct jrt_trace_copy {
    struct jrt_trace_event *events; /* owned */
    size_t                  count;  /* with gaps */
    uint64_t                hash, happened, lost;
    uint64_t                seed, began_ns;
    uint32_t                workers;
    bool                    deterministic;
};

struct janus_trace {
    pthread_mutex_t        lock; /* guards all below; writers of events need none of it */
    uint32_t               ring_events;
    uint64_t               bytes_max;
    bool                   taken;  /* by a scheduler */
    bool                   frozen; /* read from a file: only `copy` is there */
    struct jrt_trace_lane *lanes;  /* owned; of the last scheduler */
    uint32_t               lane_count;
    _Atomic(uint64_t)      room; /* bytes left for chunks */
    struct jrt_trace_copy  copy; /* what is known but for the events; frozen: they too */
};

/* All that is there now; the copy's events are to be freed. False: memory refused. */
bool jrt_trace_take_copy(janus_trace *trace, struct jrt_trace_copy *out);

/* How many, how many of them lost, and their hash. Under the lock. */
void jrt_trace_count(const struct jrt_trace_lane *lanes, uint32_t count,
                     struct jrt_trace_copy *out);

/* Text that is written as it grows. */
struct jrt_trace_out {
    int    fd;
    bool   failed;
    size_t used;
    char   bytes[8192];
};

__attribute__((format(printf, 2, 3))) void jrt_trace_put(struct jrt_trace_out *out,
                                                         const char           *format, ...);
void jrt_trace_put_bytes(struct jrt_trace_out *out, const void *bytes, size_t count);

/* Writes what is left. False: something could not be written. */
bool jrt_trace_flush(struct jrt_trace_out *out);

/* The three formats. NO_MEMORY, or OK; `out` knows the rest. */
void         jrt_trace_put_text(struct jrt_trace_out *out, const struct jrt_trace_copy *copy);
janus_status jrt_trace_put_perfetto(struct jrt_trace_out *out, const struct jrt_trace_copy *copy);
void         jrt_trace_put_binary(struct jrt_trace_out *out, const struct jrt_trace_copy *copy);

/* An event in words, without its time, worker and kind; "" where there is nothing to say. */
enum { JRT_TRACE_WORDS_BYTES = 160 };
void        jrt_trace_words(const struct jrt_trace_event *event, char *words);
const char *jrt_trace_kind_name(enum jrt_trace_kind kind);

#endif

/* SPDX-License-Identifier: MIT */
/* The inside of traces: lanes, and copies of them. The essay is in trace.c. */
#ifndef JRT_TRACE_LANE_H
#define JRT_TRACE_LANE_H

#include "trace/trace.h"

/* An event that others may read: the four words of struct jrt_trace_event. */
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
    struct jrt_world       *world; /* the world that writes here; NULL: the real system */
    struct jrt_trace_slot  *ring;  /* owned; NULL: chunks, or nothing is kept */
    uint64_t                mask;
    struct jrt_trace_chunk *first, *last; /* owned; events from the first on */
    _Atomic(uint64_t)      *room;         /* bytes left for chunks, of all lanes; or NULL */
    _Atomic(uint64_t)       head;         /* events written, [trace-ring] */
    _Atomic(uint64_t)       missed;       /* events without room */
    _Atomic(uint64_t)       hash;
    bool                    shared; /* several threads write, under the lock */
    pthread_mutex_t         lock;
} __attribute__((aligned(64)));

/* Copied events, which no thread writes any more. */
struct jrt_trace_copy {
    struct jrt_trace_event *events; /* owned */
    size_t                  count;  /* includes gaps */
    uint64_t                hash, happened, lost;
    uint64_t                seed, began_ns;
    uint32_t                workers;
    bool                    deterministic;
};

struct janus_trace {
    pthread_mutex_t        lock; /* guards all below; writers of events do not need it */
    uint32_t               ring_events;
    uint64_t               max_bytes;
    bool                   taken;  /* by a scheduler */
    bool                   frozen; /* read from a file: only `copy` is valid */
    struct jrt_trace_lane *lanes;  /* owned; of the last scheduler */
    uint32_t               lane_count;
    _Atomic(uint64_t)      room; /* bytes left for chunks */
    struct jrt_trace_copy  copy; /* everything but the events; if frozen, the events too */
};

/* Copies all events so far. The caller frees the copy's events. False: no memory. */
bool jrt_trace_take_copy(janus_trace *trace, struct jrt_trace_copy *out);

/* Counts all events and the lost ones, and computes the hash. The caller holds the lock. */
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

/* Writes the rest. False: something could not be written. */
bool jrt_trace_flush(struct jrt_trace_out *out);

/* The three formats. They return OK or NO_MEMORY; `out` records failed writes. */
void         jrt_trace_put_text(struct jrt_trace_out *out, const struct jrt_trace_copy *copy);
janus_status jrt_trace_put_perfetto(struct jrt_trace_out *out, const struct jrt_trace_copy *copy);
void         jrt_trace_put_binary(struct jrt_trace_out *out, const struct jrt_trace_copy *copy);

/* Describes an event in words, without its time, worker and kind. "" if there is nothing to add. */
enum { JRT_TRACE_WORDS_BYTES = 160 };
void        jrt_trace_words(const struct jrt_trace_event *event, char *words);
const char *jrt_trace_kind_name(enum jrt_trace_kind kind);

#endif

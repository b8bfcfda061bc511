/* SPDX-License-Identifier: MIT */
/*
 * Traces: reading. A reader copies all lanes, one after the other, while their owners write on. It
 * leaves out events that were overwritten meanwhile, [trace-ring], and puts a gap before the oldest
 * event that is left. Then it sorts by time. Times of one lane never go back, so the events of a
 * lane keep their order.
 */
#include "base/options.h"
#include "base/outside.h"
#include "plat/signal.h"
#include "trace/lane.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counting. */

void jrt_trace_count(const struct jrt_trace_lane *lanes, uint32_t count, struct jrt_trace_copy *out)
{
    out->hash = out->happened = out->lost = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct jrt_trace_lane *lane = &lanes[i];
        /* relaxed, all: they change during the read. */
        uint64_t head = jrt_load_relaxed(&lane->head);     /* relaxed */
        uint64_t missed = jrt_load_relaxed(&lane->missed); /* relaxed */
        uint64_t over = lane->ring != NULL && head > lane->mask + 1 ? head - lane->mask - 1 : 0;
        out->hash += jrt_load_relaxed(&lane->hash); /* relaxed */
        out->happened += head + missed;
        out->lost += over + missed;
    }
}

/* Copying. */

static void read_slot(struct jrt_trace_slot *slot, struct jrt_trace_event *out)
{
    /* acquire, all: [trace-ring]. */
    out->time_ns = jrt_load_acquire(&slot->words[0]);
    out->task = jrt_load_acquire(&slot->words[1]);
    out->object = jrt_load_acquire(&slot->words[2]);
    out->rest = jrt_load_acquire(&slot->words[3]);
}

static size_t put_gap(struct jrt_trace_event *out, uint64_t time_ns, uint32_t worker,
                      uint64_t missing)
{
    *out = (struct jrt_trace_event){.time_ns = time_ns,
                                    .rest = jrt_trace_rest(JRT_TRACE_GAP, worker, missing)};
    return 1;
}

/* Whether times do not go back, as in a lane without torn events. */
static bool is_in_order(const struct jrt_trace_event *events, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (events[i].time_ns < events[i - 1].time_ns) return false;
    }
    return true;
}

/* Copies the newest events with a gap before them, and returns how many are now in `out`.
 * `written`: a thread may be writing. */
static size_t copy_ring(struct jrt_trace_lane *lane, uint32_t worker, struct jrt_trace_event *out,
                        bool written)
{
    uint64_t head = jrt_load_acquire(&lane->head); /* acquire: the events that it counts. */
    uint64_t size = lane->mask + 1;
    uint64_t from = head > size ? head - size : 0;
    for (uint64_t k = from; k < head; k++) {
        read_slot(&lane->ring[k & lane->mask], &out[1 + k - from]);
    }
    uint64_t now = jrt_load_acquire(&lane->head); /* acquire: read after the copies. */
    uint64_t good = written && now >= size ? now - size + 1 : from;
    if (good > head) good = head;
    size_t kept = (size_t)(head - good);
    jrt_debug_invariant("trace-ring", is_in_order(out + 1 + (good - from), kept));
    if (good == 0) {
        memmove(out, out + 1, kept * sizeof *out);
        return kept;
    }
    memmove(out + 1, out + 1 + (good - from), kept * sizeof *out);
    return kept + put_gap(out, kept > 0 ? out[1].time_ns : 0, worker, good);
}

static size_t copy_chunks(struct jrt_trace_lane *lane, uint32_t worker, struct jrt_trace_event *out,
                          uint64_t head)
{
    struct jrt_trace_chunk *chunk = head > 0 ? lane->first : NULL;
    for (uint64_t k = 0; k < head; k++) {
        uint64_t within = k % JRT_TRACE_CHUNK_EVENTS;
        /* acquire: [trace-all]. */
        if (k > 0 && within == 0) chunk = jrt_load_acquire(&chunk->next);
        read_slot(&chunk->slots[within], &out[k]);
    }
    uint64_t missed = jrt_load_relaxed(&lane->missed); /* relaxed: a count. */
    if (missed == 0) return (size_t)head;
    return (size_t)head + put_gap(&out[head], head > 0 ? out[head - 1].time_ns : 0, worker, missed);
}

/* Merges two sorted runs. If times are equal, the left event comes first. */
static void merge(const struct jrt_trace_event *left, size_t lefts,
                  const struct jrt_trace_event *right, size_t rights, struct jrt_trace_event *out)
{
    while (lefts > 0 || rights > 0) {
        bool take_left = rights == 0 || (lefts > 0 && left->time_ns <= right->time_ns);
        *out++ = take_left ? *left++ : *right++;
        if (take_left) {
            lefts--;
        } else {
            rights--;
        }
    }
}

/* Sorts the lanes' events. `starts` says where each lane begins and ends. `spare` is as large as
 * the events. Returns the array that holds the result. */
static struct jrt_trace_event *sort(struct jrt_trace_event *events, struct jrt_trace_event *spare,
                                    size_t *starts, uint32_t runs)
{
    while (runs > 1) {
        uint32_t made = 0;
        for (uint32_t i = 0; i < runs; i += 2) {
            size_t from = starts[i], middle = starts[i + 1];
            size_t to = i + 1 < runs ? starts[i + 2] : middle;
            merge(events + from, middle - from, events + middle, to - middle, spare + from);
            starts[made++] = from;
            starts[made] = to;
        }
        struct jrt_trace_event *other = events;
        events = spare;
        spare = other;
        runs = made;
    }
    return events;
}

/* Room for the copy: for each lane a gap, and a ring or its events so far. */
struct buffers {
    struct jrt_trace_event *events, *spare;
    uint64_t               *heads;
    size_t                 *starts;
};

static void buffers_free(struct buffers *buffers)
{
    free(buffers->events);
    free(buffers->spare);
    free(buffers->heads);
    free(buffers->starts);
}

/* The caller holds the trace's lock. */
static bool buffers_make(const janus_trace *trace, struct buffers *out)
{
    size_t total = 0;
    *out = (struct buffers){.heads = calloc(trace->lane_count + 1, sizeof *out->heads),
                            .starts = calloc(trace->lane_count + 1, sizeof *out->starts)};
    if (out->heads == NULL || out->starts == NULL) return false;
    for (uint32_t i = 0; i < trace->lane_count; i++) {
        const struct jrt_trace_lane *lane = &trace->lanes[i];
        out->heads[i] = jrt_load_acquire(&lane->head); /* acquire: the events it counts. */
        total += (size_t)(lane->ring != NULL ? lane->mask + 1 : out->heads[i]) + 1;
    }
    out->events = malloc((total + 1) * sizeof *out->events);
    out->spare = malloc((total + 1) * sizeof *out->spare);
    return out->events != NULL && out->spare != NULL;
}

static bool copy_lanes(janus_trace *trace, struct jrt_trace_copy *out)
{
    struct buffers buffers;
    size_t         at = 0;
    bool           made = buffers_make(trace, &buffers);
    for (uint32_t i = 0; made && i < trace->lane_count; i++) {
        struct jrt_trace_lane *lane = &trace->lanes[i];
        bool                   last = i == trace->lane_count - 1;
        uint32_t               worker = last ? JRT_TRACE_OUTSIDE : i;
        buffers.starts[i] = at;
        struct jrt_trace_event *to = buffers.events + at;
        at += lane->ring != NULL ? copy_ring(lane, worker, to, trace->taken)
                                 : copy_chunks(lane, worker, to, buffers.heads[i]);
    }
    if (made) {
        buffers.starts[trace->lane_count] = at;
        struct jrt_trace_event *sorted =
            sort(buffers.events, buffers.spare, buffers.starts, trace->lane_count);
        if (sorted == buffers.spare) buffers.spare = buffers.events;
        buffers.events = NULL;
        out->events = sorted;
        out->count = at;
    }
    buffers_free(&buffers);
    return made;
}

bool jrt_trace_take_copy(janus_trace *trace, struct jrt_trace_copy *out)
{
    bool copied = true;
    pthread_mutex_lock(&trace->lock); /* its holders pass no point */
    *out = trace->copy;
    out->events = NULL;
    if (trace->frozen) {
        out->events = malloc((trace->copy.count + 1) * sizeof *out->events);
        copied = out->events != NULL;
        if (copied && out->count > 0) {
            memcpy(out->events, trace->copy.events, out->count * sizeof *out->events);
        }
    } else {
        copied = copy_lanes(trace, out);
        jrt_trace_count(trace->lanes, trace->lane_count, out);
    }
    pthread_mutex_unlock(&trace->lock);
    return copied;
}

/* Asking. */

janus_status janus_trace_inspect(janus_trace *trace, janus_trace_info *out)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (trace == NULL || out == NULL) return JANUS_INVALID;
    if (!jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    pthread_mutex_lock(&trace->lock);
    struct jrt_trace_copy copy = trace->copy;
    if (!trace->frozen) jrt_trace_count(trace->lanes, trace->lane_count, &copy);
    pthread_mutex_unlock(&trace->lock);
    janus_trace_info info = {.hash = copy.hash,
                             .events = copy.happened,
                             .lost = copy.lost,
                             .seed = copy.seed,
                             .workers = copy.workers,
                             .deterministic = copy.deterministic};
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

/* Writing it out. */

bool jrt_trace_flush(struct jrt_trace_out *out)
{
    if (!out->failed) out->failed = !jrt_write_all(out->fd, out->bytes, out->used);
    out->used = 0;
    return !out->failed;
}

void jrt_trace_put_bytes(struct jrt_trace_out *out, const void *bytes, size_t count)
{
    if (count > sizeof out->bytes - out->used) (void)jrt_trace_flush(out);
    memcpy(out->bytes + out->used, bytes, count);
    out->used += count;
}

void jrt_trace_put(struct jrt_trace_out *out, const char *format, ...)
{
    char    line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > 0) jrt_trace_put_bytes(out, line, (size_t)length);
}

janus_status janus_trace_write(janus_trace *trace, janus_trace_format format, int fd)
{
    jrt_outside_call_long(); /* [turn-call] */
    struct jrt_trace_copy copy;
    if (trace == NULL || fd < 0 || (unsigned)format > JANUS_TRACE_FORMAT_BINARY)
        return JANUS_INVALID;
    struct jrt_trace_out *out = malloc(sizeof *out); /* too large for a task's stack */
    if (out == NULL) return JANUS_NO_MEMORY;
    *out = (struct jrt_trace_out){.fd = fd};
    janus_status status = jrt_trace_take_copy(trace, &copy) ? JANUS_OK : JANUS_NO_MEMORY;
    if (status == JANUS_OK) {
        switch (format) {
        case JANUS_TRACE_FORMAT_TEXT: jrt_trace_put_text(out, &copy); break;
        case JANUS_TRACE_FORMAT_PERFETTO: status = jrt_trace_put_perfetto(out, &copy); break;
        case JANUS_TRACE_FORMAT_BINARY: jrt_trace_put_binary(out, &copy); break;
        }
        if (!jrt_trace_flush(out) && status == JANUS_OK) status = JANUS_INVALID;
    }
    free(copy.events);
    free(out);
    return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * A trace as JSON in the trace event format, which Perfetto and Chrome read.
 *
 * Each worker is a track. A task is a slice there, from its start or resume until it yields, parks
 * or ends. A task that runs in place, on top of the task that awaits it, is a slice inside the
 * other's slice. If it leaves the CPU, all tasks below leave with it, and later return with it. So
 * the drawing remembers from the start which task is below which. Every other event is an instant.
 * An arrow leads from a wake to the place where the task continues.
 *
 * [trace-nest]  slices of a track close in the reverse order of opening, whatever the trace says. A
 *   trace may begin in the middle, have gaps, or come from a forged file.
 */
#include "trace/lane.h"

#include <stdlib.h>

enum {
    TRACKS = 65536,   /* one for each value of a worker's 16 bits */
    DEPTH_MAX = 1024, /* how many nested tasks are shown */
};

struct known {
    uint64_t task;  /* 0: the place is empty */
    uint64_t below; /* the task it runs on top of; 0: none */
    uint64_t arrow; /* from its wake; 0: none */
};

struct track {
    uint64_t *open; /* owned; tasks, the outermost first */
    uint32_t  depth, room;
    bool      named;
};

struct drawing {
    struct jrt_trace_out        *out;
    const struct jrt_trace_copy *copy;
    struct known                *known; /* owned; a table with open addressing, never half full */
    uint64_t                     mask;
    struct track                *tracks; /* owned; by worker */
    uint64_t                     wanted[DEPTH_MAX];
    uint64_t                     now_ns;
    bool                         any; /* the next entry needs a comma */
    bool                         short_of_memory;
};

static struct known *find(struct drawing *d, uint64_t task)
{
    uint64_t at = (task * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
    while (d->known[at & d->mask].task != task && d->known[at & d->mask].task != 0) at++;
    d->known[at & d->mask].task = task;
    return &d->known[at & d->mask];
}

/* Writes the beginning of an entry, up to its place and time. */
static void put_head(struct drawing *d, const char *phase, uint32_t worker)
{
    unsigned tid = worker == JRT_TRACE_OUTSIDE ? TRACKS : worker + 1;
    jrt_trace_put(d->out, "%s{\"ph\":\"%s\",\"pid\":1,\"tid\":%u,\"ts\":%llu.%03u",
                  d->any ? ",\n" : "", phase, tid, (unsigned long long)(d->now_ns / 1000),
                  (unsigned)(d->now_ns % 1000));
    d->any = true;
}

static void name_track(struct drawing *d, uint32_t worker)
{
    if (d->tracks[worker].named) return;
    d->tracks[worker].named = true;
    put_head(d, "M", worker);
    if (worker == JRT_TRACE_OUTSIDE) {
        jrt_trace_put(d->out, ",\"name\":\"thread_name\",\"args\":{\"name\":\"outside\"}}");
    } else {
        jrt_trace_put(d->out, ",\"name\":\"thread_name\",\"args\":{\"name\":\"%s %u\"}}",
                      worker < d->copy->workers ? "worker" : "thread", worker);
    }
}

static void close_one(struct drawing *d, uint32_t worker)
{
    jrt_debug_invariant("trace-nest", d->tracks[worker].depth > 0);
    d->tracks[worker].depth--;
    put_head(d, "E", worker);
    jrt_trace_put(d->out, "}");
}

static void close_down_to(struct drawing *d, uint32_t worker, uint32_t depth)
{
    while (d->tracks[worker].depth > depth) close_one(d, worker);
}

static void open_one(struct drawing *d, uint32_t worker, uint64_t task)
{
    struct track *track = &d->tracks[worker];
    if (track->depth == track->room) {
        uint32_t  room = track->room > 0 ? track->room * 2 : 4;
        uint64_t *larger = realloc(track->open, room * sizeof *larger);
        if (larger == NULL) {
            d->short_of_memory = true;
            return;
        }
        track->open = larger;
        track->room = room;
    }
    track->open[track->depth++] = task;
    put_head(d, "B", worker);
    jrt_trace_put(d->out, ",\"cat\":\"task\",\"name\":\"task %#llx\"}", (unsigned long long)task);
}

/* Shows that the worker now runs this task, on top of the tasks below it. */
static void show(struct drawing *d, uint32_t worker, uint64_t task)
{
    uint32_t count = 0, same = 0;
    for (; task != 0 && count < DEPTH_MAX; task = find(d, task)->below) d->wanted[count++] = task;
    const struct track *track = &d->tracks[worker];
    while (same < count && same < track->depth && track->open[same] == d->wanted[count - 1 - same])
        same++;
    close_down_to(d, worker, same);
    for (; same < count; same++) open_one(d, worker, d->wanted[count - 1 - same]);
}

static void put_arrow(struct drawing *d, const char *phase, uint32_t worker, uint64_t arrow)
{
    put_head(d, phase, worker);
    jrt_trace_put(d->out, ",\"cat\":\"wake\",\"name\":\"wake\",\"id\":%llu%s}",
                  (unsigned long long)arrow, phase[0] == 'f' ? ",\"bp\":\"e\"" : "");
}

static void put_instant(struct drawing *d, uint32_t worker, const struct jrt_trace_event *event)
{
    char words[JRT_TRACE_WORDS_BYTES];
    jrt_trace_words(event, words);
    put_head(d, "i", worker);
    jrt_trace_put(d->out, ",\"s\":\"t\",\"cat\":\"event\",\"name\":\"%s\",\"args\":{",
                  jrt_trace_kind_name(jrt_trace_kind_of(event)));
    if (event->task != 0) {
        jrt_trace_put(d->out, "\"task\":\"%#llx\",", (unsigned long long)event->task);
    }
    jrt_trace_put(d->out, "\"what\":\"%s\"}}", words[0] == ' ' ? words + 1 : words);
}

static void begin(struct drawing *d, uint32_t worker, uint64_t task)
{
    struct known *known = find(d, task);
    show(d, worker, task);
    if (known->arrow != 0) put_arrow(d, "f", worker, known->arrow);
    known->arrow = 0;
}

static void complete(struct drawing *d, uint32_t worker, uint64_t task)
{
    const struct track *track = &d->tracks[worker];
    if (track->depth > 0 && track->open[track->depth - 1] == task) close_one(d, worker);
    find(d, task)->below = find(d, task)->arrow = 0;
}

static void draw(struct drawing *d, size_t number)
{
    const struct jrt_trace_event *event = &d->copy->events[number];
    uint32_t                      worker = jrt_trace_worker_of(event);
    uint64_t                      began = d->copy->began_ns;
    d->now_ns = event->time_ns > began ? event->time_ns - began : 0;
    name_track(d, worker);
    switch (jrt_trace_kind_of(event)) {
    case JRT_TRACE_START:
        if (event->task == 0) break;
        find(d, event->task)->below = event->object;
        begin(d, worker, event->task);
        break;
    case JRT_TRACE_RESUME:
        if (event->task != 0) begin(d, worker, event->task);
        break;
    case JRT_TRACE_PARK:
        put_instant(d, worker, event);
        close_down_to(d, worker, 0);
        break;
    case JRT_TRACE_YIELD: close_down_to(d, worker, 0); break;
    case JRT_TRACE_COMPLETE:
        put_instant(d, worker, event);
        if (event->task != 0) complete(d, worker, event->task);
        break;
    case JRT_TRACE_WAKE:
        put_instant(d, worker, event);
        if (event->task == 0) break;
        find(d, event->task)->arrow = number + 1;
        put_arrow(d, "s", worker, number + 1);
        break;
    default: put_instant(d, worker, event); break;
    }
}

janus_status jrt_trace_put_perfetto(struct jrt_trace_out *out, const struct jrt_trace_copy *copy)
{
    struct drawing *d = calloc(1, sizeof *d);
    if (d == NULL) return JANUS_NO_MEMORY;
    d->out = out;
    d->copy = copy;
    d->mask = 63;
    while (d->mask < copy->count * 4) d->mask = d->mask * 2 + 1; /* up to two tasks an event */
    d->known = calloc(d->mask + 1, sizeof *d->known);
    d->tracks = calloc(TRACKS, sizeof *d->tracks);
    d->short_of_memory = d->known == NULL || d->tracks == NULL;
    if (!d->short_of_memory) {
        jrt_trace_put(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"hash\":\"0x%016llx\",",
                      (unsigned long long)copy->hash);
        jrt_trace_put(out, "\"seed\":\"%llu\",\"events\":\"%llu\",\"lost\":\"%llu\"},\n",
                      (unsigned long long)copy->seed, (unsigned long long)copy->happened,
                      (unsigned long long)copy->lost);
        jrt_trace_put(out, "\"traceEvents\":[\n");
        for (size_t i = 0; i < copy->count; i++) draw(d, i);
        for (uint32_t i = 0; i < TRACKS; i++) close_down_to(d, i, 0); /* [trace-nest] */
        jrt_trace_put(out, "\n]}\n");
    }
    janus_status status = d->short_of_memory ? JANUS_NO_MEMORY : JANUS_OK;
    for (uint32_t i = 0; d->tracks != NULL && i < TRACKS; i++) free(d->tracks[i].open);
    free(d->tracks);
    free(d->known);
    free(d);
    return status;
}

/* SPDX-License-Identifier: MIT */
/* Traces of real runs: rings that are read while they are written. */
#include "../task/backends.h"
#include "traced.h"

#include "trace/lane.h"

enum { SNAPSHOTS = RIG_SLOW ? 12 : 30 };

/* The ring itself: every copied event was written like this. */

struct scribe {
    struct jrt_trace_lane *lane;
    uint32_t               worker;
    atomic_bool            stop;
    uint64_t               count;
};

static void *scribble(void *argument)
{
    struct scribe *scribe = argument;
    for (uint64_t k = 0; !atomic_load_explicit(&scribe->stop, memory_order_relaxed); k++) {
        jrt_trace_record(scribe->lane, JRT_TRACE_SPAWN, scribe->worker, k, ~k, k);
        scribe->count++;
    }
    return NULL;
}

/* Each event is whole, and the events of a lane are consecutive, after at most one gap. */
static size_t check_copy(const struct jrt_trace_copy *copy, uint32_t workers)
{
    uint64_t next[8] = {0}, time_ns = 0;
    bool     begun[8] = {false};
    size_t   whole = 0;
    for (size_t i = 0; i < copy->count; i++) {
        const struct jrt_trace_event *event = &copy->events[i];
        uint32_t                      worker = jrt_trace_worker_of(event);
        CHECK(worker < workers);
        CHECK(event->time_ns >= time_ns);
        time_ns = event->time_ns;
        if (jrt_trace_kind_of(event) == JRT_TRACE_GAP) {
            CHECK(!begun[worker]);
            next[worker] = jrt_trace_amount_of(event);
            begun[worker] = true;
            continue;
        }
        CHECK_EQ(jrt_trace_kind_of(event), JRT_TRACE_SPAWN);
        CHECK_EQ(event->task, next[worker]);
        CHECK_EQ(event->object, ~event->task);
        CHECK_EQ(jrt_trace_amount_of(event), event->task & JRT_TRACE_AMOUNT_MAX);
        begun[worker] = true;
        next[worker]++;
        whole++;
    }
    return whole;
}

static void check_scribes(const janus_trace_options *options, uint32_t workers)
{
    janus_trace      *trace = open_trace(options);
    struct jrt_tracer tracer;
    struct scribe     scribes[4];
    pthread_t         threads[4];
    size_t            whole = 0;
    CHECK_EQ(jrt_trace_begin(&tracer, trace, NULL, 0, workers), JANUS_OK);
    for (uint32_t i = 0; i < workers; i++) {
        scribes[i] = (struct scribe){.lane = jrt_trace_lane(&tracer, i), .worker = i};
        CHECK_EQ(pthread_create(&threads[i], NULL, scribble, &scribes[i]), 0);
    }
    for (int i = 0; i < SNAPSHOTS * 30 || (whole == 0 && i < 1000000); i++) {
        struct jrt_trace_copy copy;
        CHECK(jrt_trace_take_copy(trace, &copy));
        whole += check_copy(&copy, workers);
        free(copy.events);
    }
    uint64_t written_events = 0;
    for (uint32_t i = 0; i < workers; i++) atomic_store(&scribes[i].stop, true);
    for (uint32_t i = 0; i < workers; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        written_events += scribes[i].count;
    }
    jrt_trace_end(&tracer);
    struct jrt_trace_copy copy;
    CHECK(jrt_trace_take_copy(trace, &copy));
    CHECK_EQ(copy.happened, written_events);
    CHECK_EQ(check_copy(&copy, workers), copy.happened - copy.lost); /* all writers have ended */
    CHECK(whole > 0);
    free(copy.events);
    close_trace(trace);
}

TEST("a copy has only whole events, in order, however fast they are overwritten")
{
    check_scribes(JANUS_TRACE_OPTIONS(.ring_events = 8), 1);
    check_scribes(JANUS_TRACE_OPTIONS(.ring_events = 64), 2);
}

TEST("events of several workers are sorted by time")
{
    janus_trace          *trace = open_trace(JANUS_TRACE_OPTIONS(.ring_events = 8));
    struct jrt_tracer     tracer;
    struct jrt_trace_copy copy;
    CHECK_EQ(jrt_trace_begin(&tracer, trace, NULL, 0, 3), JANUS_OK);
    for (uint64_t k = 0; k < 8; k++) {
        for (uint32_t i = 0; i < 3; i++) {
            jrt_trace_record(jrt_trace_lane(&tracer, i), JRT_TRACE_SPAWN, i, k, ~k, k);
        }
    }
    jrt_trace_end(&tracer);
    CHECK(jrt_trace_take_copy(trace, &copy));
    CHECK_EQ(check_copy(&copy, 3), 24);
    CHECK_EQ(jrt_trace_worker_of(&copy.events[0]), 0);
    CHECK_EQ(jrt_trace_worker_of(&copy.events[23]), 2);
    free(copy.events);
    close_trace(trace);
}

/* Schedulers. */

struct pool {
    janus_trace *trace;
    atomic_bool  stop;
    atomic_int   rounds;
};

static int64_t echo(void *argument)
{
    janus_channel *pair = argument;
    int64_t        value;
    while (janus_channel_recv(pair[0], &value) == JANUS_OK) {
        if (janus_channel_send(pair[1], &value) != JANUS_OK) break;
    }
    return 0;
}

/* Spawns, hands off and yields until it must stop. */
static int64_t toil(void *argument)
{
    struct pool  *pool = argument;
    janus_channel pair[2];
    janus_nursery n;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(janus_channel_create(sizeof(int64_t), 0, NULL, &pair[i]), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, echo, pair), JANUS_OK);
    while (!atomic_load(&pool->stop)) {
        int64_t value = 1;
        CHECK_EQ(janus_channel_send(pair[0], &value), JANUS_OK);
        CHECK_EQ(janus_channel_recv(pair[1], &value), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
        CHECK_EQ(janus_yield(), JANUS_OK);
        atomic_fetch_add(&pool->rounds, 1);
    }
    CHECK_EQ(janus_channel_close(pair[0]), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_channel_destroy(pair[i]), JANUS_OK);
    return 0;
}

/* Checks each line, and that a worker's times do not go back. */
static void check_lines(const char *text, uint32_t workers)
{
    double last[8] = {0};
    for (const char *line = strchr(text, '\n') + 1; *line != '\0'; line = strchr(line, '\n') + 1) {
        double   us;
        char     where[8], kind[16];
        unsigned worker = 7;
        CHECK_EQ(sscanf(line, "%lf %7s %15s", &us, where, kind), 3);
        if (strcmp(where, "w-") != 0) CHECK_EQ(sscanf(where, "w%u", &worker), 1);
        CHECK(worker < workers || worker == 7);
        CHECK(us >= last[worker]);
        last[worker] = us;
        CHECK(strcmp(kind, "?") != 0);
    }
}

static void check_flight(uint32_t workers, const janus_trace_options *options)
{
    struct pool      pool = {.trace = open_trace(options)};
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .trace = pool.trace));
    janus_nursery root;
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    for (uint32_t i = 0; i < workers + 1; i++) CHECK_EQ(janus_spawn(&root, toil, &pool), JANUS_OK);
    for (int i = 0; i < SNAPSHOTS; i++) {
        janus_trace_format format = (janus_trace_format)(i % 3);
        char              *text = text_of(pool.trace, format);
        if (format == JANUS_TRACE_FORMAT_TEXT) check_lines(text, workers);
        free(text);
    }
    atomic_store(&pool.stop, true);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK(janus_scheduler_trace_hash(scheduler) != 0);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    char *text = text_of(pool.trace, JANUS_TRACE_FORMAT_TEXT);
    check_lines(text, workers);
    CHECK(strstr(text, "complete") != NULL);
    free(text);
    CHECK_EQ(ask(pool.trace).workers, workers);
    CHECK(!ask(pool.trace).deterministic);
    CHECK(ask(pool.trace).events >= (uint64_t)atomic_load(&pool.rounds) * 5);
    close_trace(pool.trace);
}

TEST("two workers write on while snapshots of their rings are written")
{
    check_flight(2, JANUS_TRACE_OPTIONS(.ring_events = 64));
}

TEST("four workers write on while snapshots of their rings are written")
{
    check_flight(4, JANUS_TRACE_OPTIONS(.ring_events = 256));
}

TEST("two workers write on while a trace keeps all events up to a limit")
{
    check_flight(2, JANUS_TRACE_OPTIONS(.max_bytes = 100000));
}

/* What is lost. */

static int64_t yield_often(void *argument)
{
    for (int i = 0; i < *(int *)argument; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    return 0;
}

static int64_t yield_both(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, yield_often, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* How many lines there are without the first. */
static uint64_t lines_of(janus_trace *trace, const char *last)
{
    char    *text = text_of(trace, JANUS_TRACE_FORMAT_TEXT);
    uint64_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) lines++;
    if (last != NULL) CHECK(strstr(text, last) != NULL);
    free(text);
    return lines - 1;
}

TEST("a ring keeps the newest events, counts the others and shows a gap")
{
    int          times = 1000;
    char         gap[64];
    janus_trace *trace = open_trace(JANUS_TRACE_OPTIONS(.ring_events = 100)); /* 128 */
    CHECK_EQ(run_traced(trace, 1, 1, yield_both, &times), JANUS_OK);
    janus_trace_info info = ask(trace);
    CHECK(info.events > 4000);
    CHECK_EQ(info.lost, info.events - 128);
    snprintf(gap, sizeof gap, "gap      %llu events are missing here",
             (unsigned long long)info.lost);
    CHECK_EQ(lines_of(trace, gap), 129);
    close_trace(trace);
}

TEST("a full trace that keeps all events keeps the first ones, and counts the others")
{
    int          times = 1000;
    char         gap[64];
    janus_trace *trace = open_trace(JANUS_TRACE_OPTIONS(.max_bytes = 65536));
    CHECK_EQ(run_traced(trace, 1, 1, yield_both, &times), JANUS_OK);
    janus_trace_info info = ask(trace);
    uint64_t         kept = 2 * JRT_TRACE_CHUNK_EVENTS;
    CHECK_EQ(info.lost, info.events - kept);
    snprintf(gap, sizeof gap, "gap      %llu events are missing here\n",
             (unsigned long long)info.lost);
    CHECK_EQ(lines_of(trace, gap), kept + 1);
    CHECK_EQ(lines_of(trace, "spawn"), kept + 1);
    close_trace(trace);
}

/* Threads of single tasks share a ring with all other threads. */

static int64_t on_threads(void *argument)
{
    janus_nursery n;
    int           times = 20;
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .name = "threads");
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&n, yield_often, &times), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("tasks with threads of their own are recorded under the threads' numbers")
{
    for (uint64_t seed = 0; seed < 2; seed++) {
        janus_trace        *trace = open_trace(NULL);
        struct backend_case first = {on_threads, NULL};
        CHECK_EQ(
            janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .profile = JANUS_PROFILE_SOVEREIGN,
                                              .yield_interval = 100, .deterministic_seed = seed,
                                              .trace = trace),
                      backend_first, &first, NULL),
            JANUS_OK);
        char *text = text_of(trace, JANUS_TRACE_FORMAT_TEXT);
        for (int i = 2; i < 6; i++) {
            char line[32];
            snprintf(line, sizeof line, " w%d start ", i);
            CHECK(strstr(text, line) != NULL);
        }
        free(text);
        close_trace(trace);
    }
}

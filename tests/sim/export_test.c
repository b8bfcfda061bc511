/* SPDX-License-Identifier: MIT */
/* Traces as files: binary and back, JSON that can be drawn, and refused input. */
#include "traced.h"

#include "trace/lane.h"

#include <ctype.h>
#include <fcntl.h>

static int64_t nap(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_yield(), JANUS_OK);
    return janus_sleep(1000);
}

/* Children that run in place and wait, so that slices nest and leave together. */
static int64_t nest(void *argument)
{
    long          depth = (long)(intptr_t)argument;
    janus_nursery n;
    if (depth == 0) return nap(NULL);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nap, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nest, (void *)(intptr_t)(depth - 1)), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static janus_trace *nested(uint32_t workers, const janus_trace_options *options)
{
    janus_trace *trace = open_trace(options);
    CHECK_EQ(run_traced(trace, workers, 3, nest, (void *)6), JANUS_OK);
    return trace;
}

/* Binary. */

TEST("a binary trace is read back the same, in every format")
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        janus_trace *trace = nested(workers, NULL), *back = NULL;
        int          fd = written(trace, JANUS_TRACE_FORMAT_BINARY);
        CHECK_EQ(janus_trace_read(fd, &back), JANUS_OK);
        (void)close(fd);
        janus_trace_info one = ask(trace), other = ask(back);
        CHECK(memcmp(&one, &other, sizeof one) == 0);
        for (int format = JANUS_TRACE_FORMAT_TEXT; format <= JANUS_TRACE_FORMAT_PERFETTO;
             format++) {
            char *before = text_of(trace, (janus_trace_format)format);
            char *after = text_of(back, (janus_trace_format)format);
            CHECK_STR(before, after);
            free(before);
            free(after);
        }
        CHECK_EQ(run_traced(back, 1, 1, nap, NULL), JANUS_STATE);
        close_trace(trace);
        close_trace(back);
    }
}

/* A file with these bytes. */
static int file_of(const char *bytes, size_t count)
{
    int fd = memfd_create("bytes", 0);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, bytes, count), (ssize_t)count);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void check_refused(const char *bytes, size_t count)
{
    janus_trace *back = NULL;
    int          fd = file_of(bytes, count);
    CHECK_EQ(janus_trace_read(fd, &back), JANUS_INVALID);
    CHECK(back == NULL);
    (void)close(fd);
}

TEST("a file that is cut, damaged or promises too much is refused")
{
    janus_trace *trace = open_trace(JANUS_TRACE_OPTIONS(.ring_events = 16));
    CHECK_EQ(run_traced(trace, 1, 3, nest, (void *)2), JANUS_OK);
    int   fd = written(trace, JANUS_TRACE_FORMAT_BINARY);
    off_t length = lseek(fd, 0, SEEK_END);
    CHECK_EQ(length, 80 + 32 * 17); /* sixteen and a gap */
    char *bytes = malloc((size_t)length);
    CHECK(bytes != NULL);
    CHECK_EQ(pread(fd, bytes, (size_t)length, 0), length);
    for (off_t cut = 0; cut < length; cut++) check_refused(bytes, (size_t)cut);
    for (off_t at = 0; at < length; at++) {
        bytes[at] = (char)(bytes[at] ^ 0x10);
        check_refused(bytes, (size_t)length);
        bytes[at] = (char)(bytes[at] ^ 0x10);
    }
    memset(bytes + 64, 0x7f, 8); /* this many events */
    check_refused(bytes, (size_t)length);
    free(bytes);
    (void)close(fd);
    close_trace(trace);
}

/* A file of forged events, with a correct sum. */
static janus_trace *made_up(struct jrt_trace_event *events, size_t count)
{
    struct jrt_trace_copy copy = {.events = events, .count = count, .workers = 1};
    struct jrt_trace_out *out = calloc(1, sizeof *out);
    janus_trace          *trace = NULL;
    CHECK(out != NULL);
    out->fd = memfd_create("made up", 0);
    jrt_trace_put_binary(out, &copy);
    CHECK(jrt_trace_flush(out));
    CHECK_EQ(lseek(out->fd, 0, SEEK_SET), 0);
    CHECK_EQ(janus_trace_read(out->fd, &trace), JANUS_OK);
    (void)close(out->fd);
    free(out);
    return trace;
}

/* JSON: enough of a reader to check that it is valid. */

static const char *skip_space(const char *at)
{
    while (isspace((unsigned char)*at)) at++;
    return at;
}

static const char *skip_string(const char *at)
{
    CHECK(*at == '"');
    for (at++; *at != '"'; at++) CHECK((unsigned char)*at >= ' ' && *at != '\\');
    return at + 1;
}

static const char *skip_value(const char *at, int depth)
{
    at = skip_space(at);
    CHECK(depth < 10);
    if (*at == '"') return skip_string(at);
    if (*at == '{' || *at == '[') {
        char end = *at == '{' ? '}' : ']';
        at = skip_space(at + 1);
        for (bool first = true; *at != end; first = false) {
            if (!first) {
                CHECK(*at == ',');
                at = skip_space(at + 1);
            }
            if (end == '}') {
                at = skip_space(skip_string(at));
                CHECK(*at == ':');
                at++;
            }
            at = skip_space(skip_value(at, depth + 1));
        }
        return at + 1;
    }
    char *end;
    (void)strtod(at, &end);
    CHECK(end != at);
    return end;
}

struct tracks {
    int    depth[8];
    double last[8];
    int    slices, deepest, arrows, ends;
};

/* Follows one entry of traceEvents. Each stands on a line of its own. */
static void follow(struct tracks *tracks, const char *line)
{
    unsigned tid;
    char     phase;
    double   ts;
    CHECK_EQ(sscanf(line, "{\"ph\":\"%c\",\"pid\":1,\"tid\":%u,\"ts\":%lf", &phase, &tid, &ts), 3);
    if (tid >= 8) tid = 7; /* outside */
    CHECK(ts >= tracks->last[tid]);
    tracks->last[tid] = ts;
    if (phase == 'B') {
        tracks->slices++;
        if (++tracks->depth[tid] > tracks->deepest) tracks->deepest = tracks->depth[tid];
    }
    if (phase == 'E') CHECK(--tracks->depth[tid] >= 0);
    if (phase == 's') tracks->arrows++;
    if (phase == 'f') tracks->ends++;
    CHECK(strchr("BEisfM", phase) != NULL);
}

static struct tracks follow_all(janus_trace *trace)
{
    char         *json = text_of(trace, JANUS_TRACE_FORMAT_PERFETTO);
    struct tracks tracks = {.slices = 0};
    CHECK(*skip_space(skip_value(json, 0)) == '\0');
    const char *line = strstr(json, "\"traceEvents\":[\n");
    CHECK(line != NULL);
    for (line = strchr(line, '\n') + 1; *line == '{'; line = strchr(line, '\n') + 1) {
        follow(&tracks, line);
    }
    for (int i = 0; i < 8; i++) CHECK_EQ(tracks.depth[i], 0);
    free(json);
    return tracks;
}

TEST("the JSON is valid, its slices nest, and its arrows end where they should")
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        janus_trace  *trace = nested(workers, NULL);
        struct tracks tracks = follow_all(trace);
        CHECK(tracks.slices >= 14);
        if (workers == 1) CHECK(tracks.deepest >= 2); /* in place; several workers may share them */
        CHECK(tracks.arrows > 0 && tracks.arrows == tracks.ends);
        close_trace(trace);
    }
}

/* The slices and arrows of a trace, one after the other: "B1@2" opens a slice on track 1 at 2
 * us. */
static void outline(janus_trace *trace, char *out, size_t room)
{
    char  *json = text_of(trace, JANUS_TRACE_FORMAT_PERFETTO);
    size_t used = 0;
    out[0] = '\0';
    for (const char *line = json; line != NULL; line = strchr(line, '\n')) {
        unsigned tid, us;
        char     phase;
        line += *line == '\n';
        int read = sscanf(line, "{\"ph\":\"%c\",\"pid\":1,\"tid\":%u,\"ts\":%u", &phase, &tid, &us);
        if (read != 3 || phase == 'M' || phase == 'i') continue;
        used += (size_t)snprintf(out + used, room - used, "%c%u@%u ", phase, tid, us);
        CHECK(used < room);
    }
    free(json);
}

TEST("a running task is a slice inside the slice of the task below it, wherever it continues")
{
    struct jrt_trace_event events[] = {
        {1000, 5, 0, jrt_trace_rest(JRT_TRACE_START, 0, 0)},
        {2000, 6, 5, jrt_trace_rest(JRT_TRACE_START, 0, 0)}, /* on top of the first */
        {3000, 6, 0, jrt_trace_rest(JRT_TRACE_PARK, 0, 3)},  /* both leave */
        {4000, 7, 0, jrt_trace_rest(JRT_TRACE_START, 1, 0)},
        {5000, 6, 7, jrt_trace_rest(JRT_TRACE_WAKE, 1, 0)},
        {6000, 7, 0, jrt_trace_rest(JRT_TRACE_YIELD, 1, 0)},
        {7000, 6, 0, jrt_trace_rest(JRT_TRACE_RESUME, 1, 0)}, /* both continue on another worker */
        {8000, 6, 0, jrt_trace_rest(JRT_TRACE_COMPLETE, 1, 0)},
        {9000, 5, 0, jrt_trace_rest(JRT_TRACE_COMPLETE, 1, 0)},
    };
    char         outlined[256];
    janus_trace *trace = made_up(events, sizeof events / sizeof *events);
    outline(trace, outlined, sizeof outlined);
    CHECK_STR(outlined, "B1@1 B1@2 E1@3 E1@3 B2@4 s2@5 E2@6 B2@7 B2@7 f2@7 E2@8 E2@9 ");
    close_trace(trace);
}

TEST("a trace that begins in the middle, or is forged, is drawn too")
{
    for (uint32_t events = 1; events <= 64; events *= 2) {
        janus_trace *trace = nested(2, JANUS_TRACE_OPTIONS(.ring_events = events));
        (void)follow_all(trace);
        close_trace(trace);
    }
    struct jrt_trace_event circle[] = {
        {1, 5, 6, jrt_trace_rest(JRT_TRACE_START, 0, 0)},
        {2, 6, 5, jrt_trace_rest(JRT_TRACE_START, 0, 0)}, /* on each other */
        {3, 5, 0, jrt_trace_rest(JRT_TRACE_RESUME, 0, 0)},
        {4, 9, 0, jrt_trace_rest(JRT_TRACE_COMPLETE, 0, 77)},
        {5, 0, 0, jrt_trace_rest(JRT_TRACE_START, 0, 0)},
        {6, 0, 0, jrt_trace_rest(JRT_TRACE_WAKE, 0, 1000)},
        {7, 1, UINT64_MAX, jrt_trace_rest(JRT_TRACE_PARK, 65534, JRT_TRACE_AMOUNT_MAX)},
        {8, 1, UINT64_MAX, jrt_trace_rest(JRT_TRACE_EXHAUST, 1, 1)},
        {9, UINT64_MAX, UINT64_MAX, jrt_trace_rest(JRT_TRACE_CANCEL, 1, JRT_TRACE_AMOUNT_MAX)},
    };
    janus_trace *trace = made_up(circle, sizeof circle / sizeof *circle);
    (void)follow_all(trace);
    char *text = text_of(trace, JANUS_TRACE_FORMAT_TEXT);
    CHECK(strstr(text, "waits for ?") != NULL);
    free(text);
    close_trace(trace);
}

/* Limits. */

TEST("impossible options and missing arguments are refused")
{
    janus_trace *trace = NULL;
    CHECK_EQ(janus_trace_create(JANUS_TRACE_OPTIONS(.ring_events = (1 << 24) + 1), &trace),
             JANUS_INVALID);
    CHECK_EQ(janus_trace_create(JANUS_TRACE_OPTIONS(.max_bytes = 65535), &trace), JANUS_INVALID);
    CHECK_EQ(janus_trace_create(&(janus_trace_options){.struct_bytes = 3}, &trace), JANUS_INVALID);
    CHECK_EQ(janus_trace_create(NULL, NULL), JANUS_INVALID);
    CHECK(trace == NULL);
    CHECK_EQ(janus_trace_destroy(NULL), JANUS_OK);
    CHECK_EQ(janus_trace_read(-1, &trace), JANUS_INVALID);
    CHECK_EQ(janus_trace_read(0, NULL), JANUS_INVALID);
    trace = open_trace(NULL);
    CHECK_EQ(janus_trace_write(NULL, JANUS_TRACE_FORMAT_TEXT, 1), JANUS_INVALID);
    CHECK_EQ(janus_trace_write(trace, (janus_trace_format)3, 1), JANUS_INVALID);
    CHECK_EQ(janus_trace_write(trace, JANUS_TRACE_FORMAT_TEXT, -1), JANUS_INVALID);
    int fd = open("/dev/null", O_RDONLY);
    CHECK_EQ(janus_trace_write(trace, JANUS_TRACE_FORMAT_TEXT, fd), JANUS_INVALID);
    (void)close(fd);
    CHECK_EQ(janus_trace_inspect(trace, NULL), JANUS_INVALID);
    CHECK_EQ(janus_trace_inspect(trace, &(janus_trace_info){.struct_bytes = 1}), JANUS_INVALID);
    close_trace(trace);
}

TEST("an empty trace can be written in every format")
{
    janus_trace *trace = open_trace(NULL), *back = NULL;
    CHECK_EQ(ask(trace).events, 0);
    CHECK_EQ(ask(trace).workers, 0);
    char *text = text_of(trace, JANUS_TRACE_FORMAT_TEXT);
    CHECK_STR(text, "# janusrt trace: 0 workers, 0 events, 0 lost, hash 0x0000000000000000\n");
    free(text);
    CHECK_EQ(follow_all(trace).slices, 0);
    int fd = written(trace, JANUS_TRACE_FORMAT_BINARY);
    CHECK_EQ(janus_trace_read(fd, &back), JANUS_OK);
    (void)close(fd);
    close_trace(trace);
    close_trace(back);
}

TEST("one scheduler at a time uses a trace, and the trace outlives it")
{
    janus_trace     *trace = open_trace(NULL);
    janus_scheduler *other = NULL;
    for (uint64_t seed = 0; seed < 2; seed++) {
        janus_scheduler_options *options =
            JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .deterministic_seed = seed, .trace = trace);
        janus_scheduler *scheduler = rig_open(options);
        CHECK_EQ(janus_scheduler_create_with(options, &other), JANUS_STATE);
        CHECK(other == NULL);
        CHECK_EQ(janus_trace_destroy(trace), JANUS_STATE);
        rig_do(scheduler, nap, NULL);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        CHECK(ask(trace).events >= 3 && ask(trace).lost == 0);
        CHECK_EQ(ask(trace).deterministic, seed != 0);
    }
    close_trace(trace);
}

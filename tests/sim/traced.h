/* SPDX-License-Identifier: MIT */
/* What the tests of traces share: a trace as text, and as a outline without times and numbers. */
#ifndef JANUSRT_TESTS_SIM_TRACED_H
#define JANUSRT_TESTS_SIM_TRACED_H

#include "../task/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static inline janus_trace *open_trace(const janus_trace_options *options)
{
    janus_trace *trace = NULL;
    CHECK_EQ(janus_trace_create(options, &trace), JANUS_OK);
    return trace;
}

static inline void close_trace(janus_trace *trace)
{
    CHECK_EQ(janus_trace_destroy(trace), JANUS_OK);
}

static inline janus_trace_info ask(janus_trace *trace)
{
    janus_trace_info info = JANUS_TRACE_INFO();
    CHECK_EQ(janus_trace_inspect(trace, &info), JANUS_OK);
    CHECK_EQ(info.struct_bytes, sizeof info);
    return info;
}

/* A file in memory with the trace in it, at its beginning. */
static inline int written(janus_trace *trace, janus_trace_format format)
{
    int fd = memfd_create("trace", 0);
    CHECK(fd >= 0);
    CHECK_EQ(janus_trace_write(trace, format, fd), JANUS_OK);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

/* All of the trace with a zero at the end. The caller frees it. */
static inline char *text_of(janus_trace *trace, janus_trace_format format)
{
    int   fd = written(trace, format);
    off_t length = lseek(fd, 0, SEEK_END);
    char *text = calloc(1, (size_t)length + 1);
    CHECK(text != NULL);
    CHECK_EQ(pread(fd, text, (size_t)length, 0), length);
    (void)close(fd);
    return text;
}

/* Names tasks A, B and so on, in the order in which they appear. */
struct cast {
    unsigned long long ids[26];
    int                count;
};

static inline char letter_of(struct cast *cast, unsigned long long id)
{
    for (int i = 0; i < cast->count; i++) {
        if (cast->ids[i] == id) return (char)('A' + i);
    }
    CHECK(cast->count < 26);
    cast->ids[cast->count++] = id;
    return (char)('A' + cast->count - 1);
}

/* One line without its time, with one space between words. */
static inline size_t copy_line(struct cast *cast, const char *line, size_t length, char *out)
{
    char  *to = out;
    size_t at = 0;
    while (at < length && line[at] == ' ') at++;
    while (at < length && line[at] != ' ') at++; /* the time */
    while (at < length && line[at] == ' ') at++;
    while (at < length) {
        if (line[at] == ' ' && to[-1] == ' ') {
            at++;
        } else if (line[at] == '0' && at + 1 < length && line[at + 1] == 'x') {
            char *end;
            *to++ = letter_of(cast, strtoull(line + at, &end, 16));
            at = (size_t)(end - line);
        } else {
            *to++ = line[at++];
        }
    }
    *to++ = '\n';
    return (size_t)(to - out);
}

/* All lines but the first. The caller frees it. */
static inline char *outline_of(janus_trace *trace)
{
    char       *text = text_of(trace, JANUS_TRACE_FORMAT_TEXT);
    char       *outline = calloc(1, strlen(text) + 1), *to = outline;
    const char *line = strchr(text, '\n');
    struct cast cast = {.count = 0};
    CHECK(outline != NULL && line != NULL);
    for (line++; *line != '\0';) {
        const char *end = strchr(line, '\n');
        CHECK(end != NULL);
        to += copy_line(&cast, line, (size_t)(end - line), to);
        line = end + 1;
    }
    free(text);
    return outline;
}

/* Runs and records it. */
static inline janus_status run_traced(janus_trace *trace, uint32_t workers, uint64_t seed,
                                      janus_entry *entry, void *argument)
{
    return janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .deterministic_seed = seed,
                                             .max_tasks = JANUS_UNLIMITED, .trace = trace),
                     entry, argument, NULL);
}

#endif

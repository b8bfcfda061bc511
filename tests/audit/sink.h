/* SPDX-License-Identifier: MIT */
/* A sink that keeps lines, and can refuse them. */
#ifndef JANUSRT_TESTS_SINK_H
#define JANUSRT_TESTS_SINK_H

#include "audit/audit.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SINK_LINES = 4096 };

struct sink {
    char *lines[SINK_LINES];
    int   count;
    int   room; /* lines it still takes; -1: any number */
};

static inline bool sink_take(void *argument, const char *line, size_t bytes)
{
    struct sink *sink = argument;
    if (sink->room == 0) return false;
    if (sink->room > 0) sink->room--;
    CHECK(sink->count < SINK_LINES);
    CHECK_EQ(strlen(line), bytes);
    CHECK(line[bytes - 1] == '\n');
    CHECK(strchr(line, '\n') == line + bytes - 1);
    sink->lines[sink->count++] = strdup(line);
    return true;
}

static inline void sink_empty(struct sink *sink)
{
    for (int i = 0; i < sink->count; i++) free(sink->lines[i]);
    sink->count = 0;
}

/* Returns how many lines contain the text. *out is the last of them, unless out is NULL. */
static inline int sink_count(const struct sink *sink, const char *text, const char **out)
{
    int count = 0;
    for (int i = 0; i < sink->count; i++) {
        if (strstr(sink->lines[i], text) == NULL) continue;
        if (out != NULL) *out = sink->lines[i];
        count++;
    }
    return count;
}

/* The number behind "key":, or -1. */
static inline long long line_number(const char *line, const char *key)
{
    char want[64];
    (void)snprintf(want, sizeof want, "\"%s\":", key);
    const char *at = strstr(line, want);
    return at == NULL ? -1 : atoll(at + strlen(want));
}

#endif

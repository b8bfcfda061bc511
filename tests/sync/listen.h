/* SPDX-License-Identifier: MIT */
/* What tests of deadlocks share: the standard error output of a scheduler, in memory. */
#ifndef JANUSRT_TESTS_SYNC_LISTEN_H
#define JANUSRT_TESTS_SYNC_LISTEN_H

#include "../task/rig.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char said[1 << 20];

/* Runs it and keeps the standard error output in `said`. */
static inline void listen_to(uint32_t workers, janus_entry *entry, void *argument)
{
    FILE *file = tmpfile();
    int   saved = dup(STDERR_FILENO);
    CHECK(file != NULL && saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    rig_run(workers, entry, argument, 1);
    CHECK(dup2(saved, STDERR_FILENO) >= 0);
    ssize_t bytes = pread(fileno(file), said, sizeof said - 1, 0);
    CHECK(bytes >= 0);
    said[bytes] = '\0';
    (void)close(saved);
    (void)fclose(file);
}

static inline unsigned times_said(const char *text)
{
    unsigned count = 0;
    for (const char *at = said; (at = strstr(at, text)) != NULL; at++) count++;
    return count;
}

#endif

/* SPDX-License-Identifier: MIT */
/* The dump of a scheduler as text. */
#ifndef JANUSRT_TESTS_TASK_DUMPED_H
#define JANUSRT_TESTS_TASK_DUMPED_H

#include "rig.h"

#include <sys/mman.h>

/* The caller frees it. */
static inline char *dumped(janus_scheduler *scheduler)
{
    int fd = memfd_create("dump", 0);
    CHECK(fd >= 0);
    CHECK_EQ(janus_scheduler_dump(scheduler, fd), JANUS_OK);
    off_t length = lseek(fd, 0, SEEK_CUR);
    char *text = calloc(1, (size_t)length + 1);
    CHECK(text != NULL);
    CHECK_EQ(pread(fd, text, (size_t)length, 0), length);
    (void)close(fd);
    return text;
}

#endif

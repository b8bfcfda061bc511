/* SPDX-License-Identifier: MIT */
/* One directory for a plugin, and nothing else, where the profile would give it all files. */
#include "../task/caps.h"
#include "wire.h"

#include <janusrt/file.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64];

static const janus_io nowhere;

static janus_io open_file(janus_io dir, const char *path, uint32_t how)
{
    janus_io file;
    CHECK_EQ(janus_file_open(dir, path, how, NULL, &file), JANUS_OK);
    return file;
}

static void put_file(janus_io dir, const char *path, const char *text)
{
    janus_io file = open_file(dir, path, JANUS_OPEN_WRITE | JANUS_OPEN_CREATE);
    if (*text != '\0') wire_put(file, text, strlen(text));
    CHECK_EQ(janus_io_close(file), JANUS_OK);
}

/* A plugin of :service with a directory. */
static int64_t stay_below(void *argument)
{
    janus_io *dir = argument, file, other;
    CHECK_EQ(janus_file_open(nowhere, "/etc/passwd", JANUS_OPEN_READ, NULL, &file),
             JANUS_CAP_RIGHT);
    file = open_file(*dir, "given", JANUS_OPEN_READ | JANUS_OPEN_WRITE);
    CHECK_EQ(janus_file_truncate(file, 0), JANUS_OK); /* the one byte that it may write */
    CHECK_EQ(janus_file_truncate(file, 0), JANUS_CAP_LIMIT);
    CHECK_EQ(janus_dir_open("/", JANUS_RIGHT_FILE_LIST, NULL, &other), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_file_open(*dir, "kept", JANUS_OPEN_WRITE | JANUS_OPEN_TRUNCATE, NULL, &other),
             JANUS_CAP_LIMIT);
    file = open_file(*dir, "kept", JANUS_OPEN_READ);
    CHECK_EQ(wire_get(file), '1'); /* it is as it was */
    return 0;
}

static int64_t give_directory(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.file = {2, 1}};
    janus_cap     cap = caps_mint(root, JANUS_CAP_KIND_FILE, JANUS_RIGHT_FILE_BELOW, &limits);
    janus_nursery n;
    janus_io      dir;
    (void)argument;
    CHECK_EQ(janus_dir_open(folder,
                            JANUS_RIGHT_FILE_READ | JANUS_RIGHT_FILE_WRITE |
                                JANUS_RIGHT_FILE_CREATE | JANUS_RIGHT_FILE_REMOVE,
                            NULL, &dir),
             JANUS_OK);
    put_file(dir, "given", "");
    put_file(dir, "kept", "12345");
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.file_cap = cap)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, stay_below, &dir), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_file_remove(dir, "given"), JANUS_OK);
    CHECK_EQ(janus_file_remove(dir, "kept"), JANUS_OK);
    return janus_io_close(dir);
}

TEST("with file.below alone a task reaches what is below its directory, within the limits")
{
    snprintf(folder, sizeof folder, "/tmp/janusrt_below_test.XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), give_directory, NULL, NULL),
             JANUS_OK);
    CHECK_EQ(rmdir(folder), 0);
}

/* SPDX-License-Identifier: MIT */
/* Handles that outlive their simulated run name nothing in a later one. */
#include "wire.h"

#include <janusrt/janus.h>
#include <janusrt/net.h>

static janus_io old[3], fresh[2]; /* the third is a listener */

static int64_t leave_handles(void *argument)
{
    janus_address at = loopback(80);
    CHECK_EQ(janus_io_pair(JANUS_IO_OPTIONS(.kept = true), old), JANUS_OK);
    CHECK_EQ(janus_listen(&at, JANUS_LISTEN_OPTIONS(.kept = true), &old[2]), JANUS_OK);
    CHECK_EQ(janus_io_write(old[0], "x", 1, NULL), JANUS_OK);
    while (argument != NULL) JANUS_IGNORE(janus_sleep(1000000000)); /* until the world gives up */
    return 0;
}

static int64_t use_old_handles(void *argument)
{
    janus_io      listener, made;
    janus_address at = loopback(80);
    janus_io_info info = JANUS_IO_INFO();
    char          byte;
    size_t        got;
    (void)argument;
    CHECK_EQ(janus_io_pair(NULL, fresh), JANUS_OK); /* the same numbers */
    CHECK_EQ(janus_listen(&at, NULL, &listener), JANUS_OK);
    CHECK_EQ(janus_io_write(fresh[1], "y", 1, NULL), JANUS_OK);
    CHECK_EQ(janus_io_write(old[1], "z", 1, NULL), JANUS_STALE);
    CHECK_EQ(janus_io_read(old[0], &byte, 1, &got), JANUS_STALE);
    CHECK_EQ(janus_io_inspect(old[0], &info), JANUS_STALE);
    CHECK_EQ(janus_accept(old[2], &made, NULL), JANUS_STALE);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_io_close(old[i]), JANUS_STALE);
    CHECK_EQ(janus_io_read(fresh[0], &byte, 1, &got), JANUS_OK);
    CHECK_EQ(byte, 'y');
    CHECK_EQ(janus_io_inspect(listener, &info), JANUS_OK);
    return 0;
}

static void run_as_task(janus_entry *entry, void *argument)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), entry, argument, NULL),
             JANUS_OK);
}

static void leave_some(void *argument)
{
    (void)argument;
    run_as_task(leave_handles, NULL);
}

static void give_up(void *argument) { run_as_task(leave_handles, argument); }

static void use_them(void *argument)
{
    (void)argument;
    run_as_task(use_old_handles, NULL);
}

TEST("a kept handle is stale once its simulated run has ended")
{
    wire_run_well(&(struct wire){0}, leave_some);
    wire_run_well(&(struct wire){0}, use_them);
}

TEST("a handle is stale once its simulated run was given up")
{
    struct wire wire = {0};
    if (JRT_ASAN) SKIP("a world that is given up leaks what it held");
    wire_run(&wire, give_up);
    CHECK(wire.end != JRT_WORLD_DONE);
    wire_run_well(&(struct wire){0}, use_them);
}

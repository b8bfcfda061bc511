/* SPDX-License-Identifier: MIT */
/* Explanations of failed I/O calls: they are about the last one, and name what it was about. */
#include "../task/caps.h"
#include "wire.h"

#include <janusrt/process.h>
#include <janusrt/signal.h>
#include <stdio.h>
#include <sys/stat.h>

static bool says(const char *what)
{
    char text[512];
    (void)janus_explain(text, sizeof text);
    if (strstr(text, what) != NULL) return true;
    printf("# it says: %s\n", text);
    return false;
}

/* After this, the sentence is about a connect. */
static void be_refused(void)
{
    janus_address at;
    janus_io      io;
    CHECK_EQ(janus_address_parse("127.0.0.1:9", &at), JANUS_OK);
    CHECK_EQ(janus_connect(&at, NULL, &io), JANUS_REFUSED);
    CHECK(says("janus_connect: nobody listens at 127.0.0.1:9"));
}

static int64_t narrow(void *argument)
{
    janus_io                ends[2], reader;
    const janus_io_options *options = JANUS_IO_OPTIONS(.name = "link");
    (void)argument;
    be_refused();
    CHECK_EQ(janus_io_pair(options, ends), JANUS_OK);
    CHECK_EQ(janus_io_attenuate(ends[0], JANUS_IO_MAY_READ, &reader), JANUS_OK);
    CHECK_EQ(janus_io_write(reader, "x", 1, NULL), JANUS_CAP_RIGHT);
    CHECK(says("janus_io_write: the handle \"link\" lacks the right write"));
    be_refused();
    CHECK_EQ(janus_io_close(reader), JANUS_CAP_RIGHT);
    CHECK(says("janus_io_close: the handle \"link\" lacks the right close"));
    be_refused();
    CHECK_EQ(janus_accept(reader, &ends[1], NULL), JANUS_CAP_RIGHT);
    CHECK(says("janus_accept: the handle \"link\" lacks the right accept"));
    wire_close(ends);
    return 0;
}

TEST("the explanation of a narrowed handle names the right, the handle and the call")
{
    rig_run(1, narrow, NULL, 1);
}

/* Each of these fails, and notes nothing by itself. */
static int64_t fail_plainly(void *argument)
{
    janus_io      ends[2];
    char          byte;
    size_t        got;
    janus_address at;
    uint64_t      count = 0;
    (void)argument;
    CHECK_EQ(janus_io_pair(NULL, ends), JANUS_OK);
    be_refused();
    CHECK_EQ(janus_io_read(ends[0], NULL, 1, &got), JANUS_INVALID);
    CHECK(says("janus_io_read: an argument"));
    be_refused();
    CHECK_EQ(janus_io_write(ends[0], NULL, 1, NULL), JANUS_INVALID);
    CHECK(says("janus_io_write: an argument"));
    be_refused();
    CHECK_EQ(janus_io_try_read(ends[0], &byte, 1, &got), JANUS_WOULD_WAIT);
    CHECK(says("janus_io_try_read: the call would have to wait (JANUS_WOULD_WAIT)"));
    be_refused();
    CHECK_EQ(janus_io_set_deadline(ends[0], JANUS_IO_READ, 1), JANUS_OK);
    CHECK_EQ(janus_io_read(ends[0], &byte, 1, &got), JANUS_DEADLINE);
    CHECK(says("(JANUS_DEADLINE)"));
    CHECK_EQ(janus_io_set_deadline(ends[0], JANUS_IO_READ, UINT64_MAX), JANUS_OK);
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    be_refused();
    CHECK_EQ(janus_io_read(ends[0], &byte, 1, &got), JANUS_CLOSED);
    CHECK(says("janus_io_read: it is closed"));
    be_refused();
    CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_STALE);
    CHECK(says("janus_io_read: the handle was closed"));
    be_refused();
    CHECK_EQ(janus_io_local(ends[1], &at), JANUS_STALE);
    CHECK(says("janus_io_local: the handle was closed"));
    be_refused();
    CHECK_EQ(janus_resolve("localhost", "99999", &at, 1, &got), JANUS_INVALID);
    CHECK(says("janus_resolve: an argument"));
    be_refused();
    CHECK_EQ(janus_signal_wait_next(0, &count, 1), JANUS_INVALID);
    CHECK(says("janus_signal_wait_next: an argument"));
    be_refused();
    CHECK_EQ(janus_process_signal(ends[0], 9), JANUS_STATE);
    CHECK(says("janus_process_signal: "));
    be_refused();
    CHECK_EQ(janus_file_seek(ends[0], 9), JANUS_UNAVAILABLE);
    CHECK(says("janus_file_seek: "));
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
    return 0;
}

TEST("a failed call replaces the explanation of an earlier one, also if it has little to say")
{
    rig_run(1, fail_plainly, NULL, 1);
}

static int64_t use_paths(void *argument)
{
    enum { ALL = JANUS_RIGHT_FILE_READ | JANUS_RIGHT_FILE_WRITE | JANUS_RIGHT_FILE_LIST };
    const char *folder = argument;
    char        missing[80];
    janus_io    dir, reads, file;
    CHECK_EQ(janus_dir_open(folder, ALL, NULL, &dir), JANUS_OK);
    CHECK_EQ(janus_dir_open(folder, JANUS_RIGHT_FILE_WRITE, NULL, &reads), JANUS_OK);
    CHECK_EQ(janus_file_open(dir, "a/b", JANUS_OPEN_READ, NULL, &file), JANUS_NOT_FOUND);
    CHECK(says("janus_file_open: there is nothing named a/b below the directory"));
    CHECK_EQ(janus_file_open(dir, "../secret.txt", JANUS_OPEN_READ, NULL, &file), JANUS_DENIED);
    CHECK(says("../secret.txt leads out of the directory"));
    CHECK(!says("permissions"));
    snprintf(missing, sizeof missing, "%s/none", folder);
    CHECK_EQ(janus_dir_open(missing, ALL, NULL, &file), JANUS_NOT_FOUND);
    CHECK(says("there is nothing named /tmp/janusrt_explain_test"));
    CHECK_EQ(janus_file_remove(dir, "x"), JANUS_CAP_RIGHT);
    CHECK(says("the directory's handle lacks the right file.remove: x"));
    CHECK_EQ(janus_file_open(dir, "sub", JANUS_OPEN_WRITE, NULL, &file), JANUS_STATE);
    CHECK(says("janus_file_open: "));
    CHECK(says("sub"));
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    CHECK_EQ(janus_io_close(reads), JANUS_OK);
    return 0;
}

TEST("the explanation of a failed file call names the path, and says if it leads outside")
{
    char folder[64], below[80];
    snprintf(folder, sizeof folder, "/tmp/janusrt_explain_test.%d", (int)getpid());
    snprintf(below, sizeof below, "%s/sub", folder);
    CHECK_EQ(mkdir(folder, 0700), 0);
    CHECK_EQ(mkdir(below, 0700), 0);
    rig_run(1, use_paths, folder, 1);
    CHECK_EQ(rmdir(below), 0);
    CHECK_EQ(rmdir(folder), 0);
}

static int64_t use_the_system(void *argument)
{
    static const char *const words[] = {"true", NULL};
    janus_io                 io;
    (void)argument;
    CHECK_EQ(janus_process_start("/bin/true", words, NULL, &io, NULL), JANUS_UNAVAILABLE);
    CHECK(says("child processes do not exist in a simulated run (JANUS_UNAVAILABLE)"));
    CHECK_EQ(janus_io_adopt(0, NULL, &io), JANUS_UNAVAILABLE);
    CHECK(says("raw descriptors do not exist in a simulated run"));
    CHECK_EQ(janus_io_standard(0, NULL, &io), JANUS_UNAVAILABLE);
    CHECK(says("standard streams do not exist in a simulated run"));
    CHECK_EQ(janus_io_wait_fd(0, JANUS_IO_READ, 1, NULL), JANUS_UNAVAILABLE);
    CHECK(says("raw descriptors do not exist in a simulated run"));
    return 0;
}

TEST("the explanation says what does not exist in a simulated run")
{
    int64_t result;
    CHECK_EQ(
        janus_run(JANUS_SCHEDULER_OPTIONS(.deterministic_seed = 5), use_the_system, NULL, &result),
        JANUS_OK);
    CHECK_EQ(result, 0);
}

/* SPDX-License-Identifier: MIT */
/* Child processes: how they end, what they get, and that nothing of them stays. */
#include "../task/caps.h"
#include "host/process.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <janusrt/process.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>

#define REAL() RIG_REAL("processes of the system")
#define PIPE JANUS_PROCESS_STREAM_PIPE

static const char *const idle[] = {"sleep", "100000", NULL};

/* A shell that runs `command`. */
static janus_io start_shell(const char *command, const janus_process_options *options,
                            janus_io *out_pipes)
{
    const char *const arguments[] = {"sh", "-c", command, NULL};
    janus_io          process;
    CHECK_EQ(janus_process_start("/bin/sh", arguments, options, &process, out_pipes), JANUS_OK);
    return process;
}

static janus_io start_idle(bool detached)
{
    janus_io process;
    CHECK_EQ(janus_process_start("/bin/sleep", idle, JANUS_PROCESS_OPTIONS(.detached = detached),
                                 &process, NULL),
             JANUS_OK);
    return process;
}

static janus_process_end end_of(janus_io process)
{
    janus_process_end end = {-1, -1};
    CHECK_EQ(janus_process_wait(process, &end), JANUS_OK);
    return end;
}

static int64_t id_of(janus_io process)
{
    janus_process_info info = JANUS_PROCESS_INFO();
    CHECK_EQ(janus_process_inspect(process, &info), JANUS_OK);
    return info.id;
}

static bool exists(int64_t id) { return kill((pid_t)id, 0) == 0 || errno != ESRCH; }

/* Until the process is gone, and no zombie. */
static void await_gone(int64_t id)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (exists(id) && janus_now_ns() < limit) JANUS_IGNORE(janus_yield());
    CHECK(!exists(id));
}

/* What a shell prints. */
static void shell_prints(const char *command, const janus_process_options *options,
                         char out[static 512])
{
    janus_io pipes[3];
    janus_io process = start_shell(command, options, pipes);
    size_t   got = 0;
    memset(out, 0, 512);
    CHECK_EQ(janus_io_read_full(pipes[1], out, 511, &got), JANUS_CLOSED);
    CHECK_EQ(end_of(process).code, 0);
    CHECK_EQ(janus_io_close(pipes[1]), JANUS_OK);
    CHECK_EQ(janus_io_close(process), JANUS_OK);
}

/* In tasks, and on a plain thread. Nothing is left. */
static void everywhere(janus_entry *entry)
{
    int before = wire_descriptors();
    rig_all(entry, NULL, 1);
    CHECK_EQ(entry(NULL), 0);
    uint64_t limit = janus_now_ns() + rig_patience;
    while (jrt_process_abandoned() > 0 && janus_now_ns() < limit) sched_yield();
    CHECK_EQ(jrt_process_abandoned(), 0);
    while (wire_descriptors() > before && janus_now_ns() < limit) sched_yield(); /* the reaper's */
    CHECK_EQ(wire_descriptors(), before);
}

/* Ends. */

static int64_t ends(void *argument)
{
    janus_io           process = start_shell("exit 7", NULL, NULL);
    janus_process_info info = JANUS_PROCESS_INFO();
    janus_io_info      about = JANUS_IO_INFO();
    (void)argument;
    CHECK_EQ(janus_io_inspect(process, &about), JANUS_OK);
    CHECK_EQ(about.kind, JANUS_IO_KIND_PROCESS);
    for (int i = 0; i < 3; i++) { /* the same answer again */
        CHECK_EQ(end_of(process).code, 7);
        CHECK_EQ(end_of(process).signal, 0);
    }
    CHECK_EQ(janus_process_inspect(process, &info), JANUS_OK);
    CHECK(info.ended && info.end.code == 7);
    CHECK_EQ(janus_process_signal(process, SIGTERM), JANUS_CLOSED);
    CHECK_EQ(janus_io_close(process), JANUS_OK);
    process = start_idle(false);
    CHECK_EQ(janus_process_signal(process, 0), JANUS_OK);
    CHECK_EQ(janus_process_signal(process, SIGTERM), JANUS_OK);
    CHECK_EQ(end_of(process).signal, SIGTERM);
    CHECK_EQ(end_of(process).code, 0);
    CHECK_EQ(janus_io_close(process), JANUS_OK);
    return 0;
}

TEST("a wait reports the code or the signal that a process ended with, as often as it is asked")
{
    REAL();
    everywhere(ends);
}

static int64_t pipes(void *argument)
{
    janus_io          io[3];
    const char *const cat[] = {"cat", NULL};
    janus_io          process;
    char              bytes[8];
    size_t            got;
    (void)argument;
    CHECK_EQ(janus_process_start("cat", cat,
                                 JANUS_PROCESS_OPTIONS(.search = true, .streams = {PIPE, PIPE}),
                                 &process, io),
             JANUS_OK);
    for (int i = 0; i < 20; i++) {
        wire_put(io[0], "hello", 5);
        CHECK_EQ(janus_io_read_full(io[1], bytes, 5, &got), JANUS_OK);
        CHECK(memcmp(bytes, "hello", 5) == 0);
    }
    CHECK_EQ(janus_io_close(io[0]), JANUS_OK);
    CHECK_EQ(janus_io_read(io[1], bytes, 1, &got), JANUS_CLOSED);
    CHECK_EQ(end_of(process).code, 0);
    CHECK_EQ(janus_io_close(io[2]), JANUS_OK); /* names none */
    CHECK_EQ(janus_io_close(io[1]), JANUS_OK);
    CHECK_EQ(janus_io_close(process), JANUS_OK);
    return 0;
}

TEST("bytes go to a process and come back through pipes")
{
    REAL();
    everywhere(pipes);
}

static int64_t surroundings(void *argument)
{
    const char *const environment[] = {"COLOUR=blue", NULL};
    char              text[512];
    janus_io          dir, ends[2];
    (void)argument;
    CHECK_EQ(janus_dir_open("/usr", JANUS_RIGHT_FILE_READ, NULL, &dir), JANUS_OK);
    shell_prints(
        "pwd; echo $COLOUR$HOME",
        JANUS_PROCESS_OPTIONS(.streams = {0, PIPE}, .directory = dir, .environment = environment),
        text);
    CHECK(strcmp(text, "/usr\nblue\n") == 0);
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    CHECK_EQ(janus_io_pipe(NULL, ends), JANUS_OK); /* a handle of ours as its output */
    janus_io process = start_shell("echo given; echo error >&2",
                                   JANUS_PROCESS_OPTIONS(.streams = {0, JANUS_PROCESS_STREAM_HANDLE,
                                                                     JANUS_PROCESS_STREAM_HANDLE},
                                                         .handles = {ends[0], ends[1], ends[1]}),
                                   NULL);
    CHECK_EQ(end_of(process).code, 0);
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    size_t got = 0;
    CHECK_EQ(janus_io_read_full(ends[0], text, sizeof text, &got), JANUS_CLOSED);
    CHECK(got == 12 && memcmp(text, "given\nerror\n", got) == 0);
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
    CHECK_EQ(janus_io_close(process), JANUS_OK);
    return 0;
}

TEST("a process gets its directory, environment and streams")
{
    REAL();
    everywhere(surroundings);
}

static bool open_before[1024]; /* what this process had from its own parent, and passes on */

static int64_t inherits_nothing(void *argument)
{
    janus_io pair[2], tcp[2];
    char     text[512], *at = text;
    (void)argument;
    wire_pair(pair);
    wire_tcp(tcp);
    /* Those of the shell, not of ls. The last command keeps the shell from becoming ls. */
    shell_prints("ls /proc/$$/fd; true", JANUS_PROCESS_OPTIONS(.streams = {0, PIPE}), text);
    while (*at != '\0') {
        long fd = strtol(at, &at, 10);
        at += *at == '\n';
        CHECK(fd <= 2 || open_before[fd]);
    }
    signal(SIGPIPE, SIG_IGN);
    shell_prints("grep -E 'SigBlk|SigIgn' /proc/self/status",
                 JANUS_PROCESS_OPTIONS(.streams = {0, PIPE}), text);
    signal(SIGPIPE, SIG_DFL);
    unsigned long long blocked = 1, ignored = 1u << (SIGPIPE - 1);
    CHECK_EQ(sscanf(text, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
    CHECK_EQ(blocked, 0);
    CHECK_EQ(ignored >> (SIGPIPE - 1) & 1, 0);
    wire_close(pair);
    wire_close(tcp);
    return 0;
}

TEST("a process gets no descriptor of ours, an empty signal mask, and SIGPIPE")
{
    REAL();
    for (int fd = 0; fd < 1024; fd++) open_before[fd] = fcntl(fd, F_GETFD) == 0;
    everywhere(inherits_nothing);
}

static int64_t refused(void *argument)
{
    const char *const arguments[] = {"x", NULL};
    janus_io          process, ends[2];
    (void)argument;
    CHECK_EQ(janus_process_start("/no/such/program", arguments, NULL, &process, NULL),
             JANUS_NOT_FOUND);
    CHECK_EQ(janus_process_start("/etc/passwd", arguments, NULL, &process, NULL), JANUS_DENIED);
    CHECK_EQ(janus_process_start(NULL, arguments, NULL, &process, NULL), JANUS_INVALID);
    CHECK_EQ(janus_process_start("/bin/sh", NULL, NULL, &process, NULL), JANUS_INVALID);
    CHECK_EQ(janus_process_start("/bin/sh", arguments, NULL, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_process_start("/bin/sh", arguments, JANUS_PROCESS_OPTIONS(.streams = {PIPE}),
                                 &process, NULL),
             JANUS_INVALID); /* nowhere to put the pipe */
    wire_pair(ends);
    CHECK_EQ(janus_process_start("/bin/sh", arguments, JANUS_PROCESS_OPTIONS(.directory = ends[0]),
                                 &process, NULL),
             JANUS_STATE);
    CHECK_EQ(janus_process_wait(ends[0], &(janus_process_end){0, 0}), JANUS_STATE);
    CHECK_EQ(janus_process_signal(ends[0], SIGTERM), JANUS_STATE);
    wire_close(ends);
    process = start_idle(false);
    char   byte;
    size_t got;
    int    fd;
    CHECK_EQ(janus_io_read(process, &byte, 1, &got), JANUS_UNAVAILABLE);
    CHECK_EQ(janus_io_release(process, &fd), JANUS_UNAVAILABLE);
    CHECK_EQ(janus_process_signal(process, 65), JANUS_INVALID);
    CHECK_EQ(janus_io_attenuate(process, JANUS_IO_MAY_READ, &ends[0]), JANUS_OK);
    CHECK_EQ(janus_process_signal(ends[0], SIGTERM), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_io_close(process), JANUS_OK);
    CHECK_EQ(janus_process_wait(process, &(janus_process_end){0, 0}), JANUS_STALE);
    return 0;
}

TEST("a program that cannot run gets a status, and nothing is left of the attempt")
{
    REAL();
    everywhere(refused);
}

/* Closing. */

static int64_t close_kills(void *argument)
{
    janus_io process = start_idle(false);
    int64_t  id = id_of(process);
    (void)argument;
    CHECK(exists(id));
    CHECK_EQ(janus_io_close(process), JANUS_OK);
    await_gone(id);
    process = start_idle(true);
    id = id_of(process);
    CHECK_EQ(janus_io_close(process), JANUS_OK);
    CHECK(exists(id)); /* detached */
    CHECK_EQ(kill((pid_t)id, SIGKILL), 0);
    await_gone(id); /* the library collects it */
    return 0;
}

TEST("closing a process kills it, unless it is detached, and leaves no zombie")
{
    REAL();
    everywhere(close_kills);
}

static atomic_llong started;

static int64_t start_and_end(void *argument)
{
    (void)argument;
    atomic_store(&started, id_of(start_idle(false)));
    return 0;
}

TEST("a task's end kills the processes that it started")
{
    REAL();
    rig_run(2, start_and_end, NULL, 1);
    await_gone(atomic_load(&started));
}

static int64_t wait_for(void *argument)
{
    janus_process_end end;
    return janus_process_wait(*(janus_io *)argument, &end);
}

static int64_t waits_end(void *argument)
{
    janus_io          process = start_idle(false);
    janus_process_end end;
    janus_nursery     n;
    (void)argument;
    CHECK_EQ(janus_io_set_deadline(process, JANUS_IO_READ, janus_now_ns() + rig_ms), JANUS_OK);
    CHECK_EQ(janus_process_wait(process, &end), JANUS_DEADLINE);
    CHECK_EQ(janus_io_set_deadline(process, JANUS_IO_READ, JANUS_IO_NEVER), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_for, &process), JANUS_OK);
    wire_await_waiter(process, JANUS_IO_READ);
    CHECK_EQ(janus_process_wait(process, &end), JANUS_STATE);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_process_signal(process, 0), JANUS_OK); /* it goes on */
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_for, &process), JANUS_OK);
    wire_await_waiter(process, JANUS_IO_READ);
    CHECK_EQ(janus_io_close(process), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_CLOSED);
    return 0;
}

TEST("a cancel, a deadline and a close end the wait for a process")
{
    REAL();
    rig_all(waits_end, NULL, 1);
}

/* Many. */

static int64_t run_some(void *argument)
{
    (void)argument;
    for (int i = 0; i < 10; i++) {
        char command[32];
        snprintf(command, sizeof command, "exit %d", i);
        janus_io process = start_shell(command, NULL, NULL);
        if (i % 3 != 0) CHECK_EQ(end_of(process).code, i);
        CHECK_EQ(janus_io_close(process), JANUS_OK); /* sometimes while it runs */
    }
    return 0;
}

static int64_t run_many(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 8; i++) CHECK_EQ(janus_spawn(&n, run_some, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("processes that many tasks start at once each have their own end")
{
    REAL();
    rig_all(run_many, NULL, 1);
    uint64_t limit = janus_now_ns() + rig_patience;
    while (jrt_process_abandoned() > 0 && janus_now_ns() < limit) sched_yield();
    CHECK_EQ(jrt_process_abandoned(), 0); /* no zombie */
}

/* Rights. */

static int64_t bounded(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.process = {2}};
    janus_cap              cap = caps_mint(root, JANUS_CAP_KIND_PROCESS, JANUS_RIGHTS_ALL, &limits);
    janus_nursery          n;
    janus_io               process[3];
    (void)argument;
    CHECK_EQ(janus_process_start("/bin/sleep", idle, NULL, &process[0], NULL),
             JANUS_NO_PROCESS_CAP);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.process_cap = cap)), JANUS_OK);
    process[0] = start_idle(false);
    process[1] = start_idle(false);
    CHECK_EQ(janus_process_start("/bin/sleep", idle, NULL, &process[2], NULL), JANUS_HANDLE_LIMIT);
    CHECK_EQ(janus_io_close(process[0]), JANUS_OK);
    CHECK_EQ(janus_process_start("/bin/sleep", idle, JANUS_PROCESS_OPTIONS(.detached = true),
                                 &process[2], NULL),
             JANUS_CAP_LIMIT);
    process[0] = start_idle(false);
    CHECK_EQ(janus_io_close(process[0]), JANUS_OK);
    CHECK_EQ(janus_io_close(process[1]), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("in :sovereign a process needs the capability, and counts against its limit")
{
    REAL();
    caps_all(bounded, NULL);
}

static int64_t simulated(void *argument)
{
    janus_io process;
    (void)argument;
    CHECK_EQ(janus_process_start("/bin/sleep", idle, NULL, &process, NULL), JANUS_UNAVAILABLE);
    return 0;
}

TEST("a simulated run starts no process")
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .deterministic_seed = 1));
    rig_do(scheduler, simulated, NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

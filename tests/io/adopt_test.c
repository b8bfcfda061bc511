/* SPDX-License-Identifier: MIT */
/* Descriptors that others have opened: adopted, waited for, and the standard streams. */
#include "../task/caps.h"
#include "wire.h"

#include <fcntl.h>
#include <janusrt/file.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define REAL() RIG_REAL("descriptors of the system")

static janus_io adopt(int fd)
{
    janus_io io;
    CHECK_EQ(janus_io_adopt(fd, NULL, &io), JANUS_OK);
    return io;
}

static janus_io_info info_of(janus_io io)
{
    janus_io_info info = JANUS_IO_INFO();
    CHECK_EQ(janus_io_inspect(io, &info), JANUS_OK);
    return info;
}

/* Adopting. */

static int64_t adopt_kinds(void *argument)
{
    int pair[2], ends[2], file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)argument;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQ(pipe(ends), 0);
    janus_io io = adopt(pair[0]);
    CHECK_EQ(info_of(io).kind, JANUS_IO_KIND_STREAM);
    CHECK((fcntl(pair[0], F_GETFL) & O_NONBLOCK) == 0); /* others share this flag */
    CHECK((fcntl(pair[0], F_GETFD) & FD_CLOEXEC) != 0);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    close(pair[1]);
    io = adopt(ends[0]);
    CHECK_EQ(info_of(io).kind, JANUS_IO_KIND_PIPE);
    CHECK_EQ(info_of(io).rights, JANUS_IO_MAY_READ | JANUS_IO_MAY_CLOSE);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    close(ends[1]);
    io = adopt(file);
    CHECK_EQ(info_of(io).rights, JANUS_IO_MAY_READ | JANUS_IO_MAY_CLOSE);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQ(bind(listener, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t)), 0);
    CHECK_EQ(listen(listener, 1), 0);
    CHECK_EQ(janus_io_adopt(listener, NULL, &io), JANUS_INVALID); /* it blocks */
    CHECK_EQ(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
    io = adopt(listener);
    CHECK_EQ(info_of(io).kind, JANUS_IO_KIND_LISTENER);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    CHECK_EQ(janus_io_adopt(-1, NULL, &io), JANUS_INVALID);
    CHECK_EQ(janus_io_adopt(100000, NULL, &io), JANUS_INVALID);
    return 0;
}

TEST("an adopted descriptor has its kind and its rights, and keeps its flags")
{
    REAL();
    int before = wire_descriptors();
    rig_all(adopt_kinds, NULL, 1);
    adopt_kinds(NULL);
    CHECK_EQ(wire_descriptors(), before);
}

static void *write_bytes(void *argument)
{
    int fd = *(int *)argument;
    for (int i = 0; i < 1000; i++) {
        unsigned char byte = wire_byte((uint64_t)i);
        CHECK_EQ(write(fd, &byte, 1), 1);
    }
    return NULL;
}

static int64_t read_blocking_pipe(void *argument)
{
    int       ends[2];
    pthread_t thread;
    (void)argument;
    CHECK_EQ(pipe(ends), 0);
    janus_io io = adopt(ends[0]);
    CHECK_EQ(pthread_create(&thread, NULL, write_bytes, &ends[1]), 0);
    for (uint64_t i = 0; i < 1000; i++) CHECK_EQ(wire_get(io), wire_byte(i));
    pthread_join(thread, NULL);
    close(ends[1]);
    char   byte;
    size_t got;
    CHECK_EQ(janus_io_read(io, &byte, 1, &got), JANUS_CLOSED);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    return 0;
}

TEST("a task reads an adopted pipe that blocks, and only the task waits")
{
    REAL();
    rig_all(read_blocking_pipe, NULL, 2);
    read_blocking_pipe(NULL);
}

/* Pipes without RWF_NOWAIT, [net-nowait]. */

enum { MUCH = 300000 };

static int64_t write_much(void *argument)
{
    static unsigned char block[MUCH];
    wire_fill(block, MUCH, 0);
    wire_put(*(janus_io *)argument, block, MUCH);
    return janus_io_close(*(janus_io *)argument);
}

static void carry_much(janus_io reader, janus_io writer)
{
    unsigned char bytes[5000];
    size_t        got;
    uint64_t      all = 0;
    janus_status  status, read;
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, write_much, &writer), JANUS_OK);
        while ((read = janus_io_read(reader, bytes, sizeof bytes, &got)) == JANUS_OK) {
            wire_check(bytes, got, all);
            all += got;
        }
        CHECK_EQ(read, JANUS_CLOSED);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(all, MUCH);
    CHECK_EQ(janus_io_close(reader), JANUS_OK);
}

static int64_t old_pipes(void *argument)
{
    char         folder[] = "/tmp/janusrt-pipe-XXXXXX", path[64];
    janus_io     none = {{0, 0}}, reader, writer;
    struct iovec piece = {"", 1};
    int          ends[2], nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)argument;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/pipe", folder);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_EQ(janus_file_open(none, path, JANUS_OPEN_READ, NULL, &reader), JANUS_OK);
    CHECK_EQ(janus_file_open(none, path, JANUS_OPEN_WRITE, NULL, &writer), JANUS_OK);
    carry_much(reader, writer);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(folder), 0);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0); /* it blocks */
    CHECK_EQ(vmsplice(ends[1], &piece, 1, 0), 1);
    CHECK_EQ(splice(ends[0], NULL, nowhere, NULL, 1, 0), 1);
    close(nowhere);
    carry_much(adopt(ends[0]), adopt(ends[1]));
    return 0;
}

TEST("named pipes, and pipes that were spliced, carry bytes as others do")
{
    REAL();
    rig_all(old_pipes, NULL, 1);
}

static int64_t release_it(void *argument)
{
    int ends[2], fd = -1;
    (void)argument;
    CHECK_EQ(pipe(ends), 0);
    janus_io io = adopt(ends[0]);
    CHECK_EQ(janus_io_release(io, &fd), JANUS_OK);
    CHECK_EQ(fd, ends[0]);
    CHECK_EQ(janus_io_close(io), JANUS_STALE);
    CHECK_EQ(fcntl(fd, F_GETFD) >= 0, true);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

TEST("a released descriptor is open, and its handle is stale")
{
    REAL();
    rig_all(release_it, NULL, 1);
}

static int64_t not_allowed(void *argument)
{
    janus_io io;
    (void)argument;
    CHECK_EQ(janus_io_adopt(0, NULL, &io), JANUS_NO_NET_CAP);
    CHECK_EQ(janus_io_wait_fd(0, JANUS_IO_READ, JANUS_IO_NEVER, NULL), JANUS_NO_NET_CAP);
    CHECK_EQ(janus_io_standard(1, NULL, &io), JANUS_NO_FILE_CAP);
    return 0;
}

TEST("in :sovereign descriptors of others need capabilities")
{
    REAL();
    caps_all(not_allowed, NULL);
}

static int64_t simulated(void *argument)
{
    janus_io io;
    (void)argument;
    CHECK_EQ(janus_io_adopt(0, NULL, &io), JANUS_UNAVAILABLE);
    CHECK_EQ(janus_io_standard(0, NULL, &io), JANUS_UNAVAILABLE);
    CHECK_EQ(janus_io_wait_fd(0, JANUS_IO_READ, JANUS_IO_NEVER, NULL), JANUS_UNAVAILABLE);
    return 0;
}

TEST("a simulated run has no descriptors of the system")
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .deterministic_seed = 1));
    rig_do(scheduler, simulated, NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Foreign descriptors. */

struct foreign {
    int        fds[2];
    atomic_int waiting;
};

static int64_t wait_for_byte(void *argument)
{
    struct foreign *foreign = argument;
    uint32_t        ready = 0;
    atomic_fetch_add(&foreign->waiting, 1);
    janus_status status = janus_io_wait_fd(foreign->fds[0], JANUS_IO_READ, JANUS_IO_NEVER, &ready);
    if (status == JANUS_OK) CHECK_EQ(ready, JANUS_IO_READ);
    return status;
}

static int64_t wait_foreign(void *argument)
{
    struct foreign foreign = {.waiting = 0};
    janus_nursery  n;
    uint32_t       ready = 0;
    char           byte;
    (void)argument;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, foreign.fds), 0);
    int before = wire_sockets();
    CHECK_EQ(janus_io_wait_fd(foreign.fds[0], JANUS_IO_BOTH, JANUS_IO_NEVER, &ready), JANUS_OK);
    CHECK_EQ(ready, JANUS_IO_WRITE);
    CHECK_EQ(janus_io_wait_fd(foreign.fds[0], JANUS_IO_READ, janus_now_ns() + rig_ms, &ready),
             JANUS_DEADLINE);
    CHECK_EQ(janus_io_wait_fd(foreign.fds[0], 0, JANUS_IO_NEVER, &ready), JANUS_INVALID);
    CHECK_EQ(janus_io_wait_fd(-1, JANUS_IO_READ, JANUS_IO_NEVER, &ready), JANUS_INVALID);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, wait_for_byte, &foreign), JANUS_OK);
    while (atomic_load(&foreign.waiting) < 3) JANUS_IGNORE(janus_yield());
    CHECK_EQ(write(foreign.fds[1], "x", 1), 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK); /* all three saw it */
    CHECK_EQ(read(foreign.fds[0], &byte, 1), 1);     /* and took nothing */
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_for_byte, &foreign), JANUS_OK);
    while (atomic_load(&foreign.waiting) < 4) JANUS_IGNORE(janus_yield());
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_io_wait_fd(foreign.fds[0], JANUS_IO_BOTH, JANUS_IO_NEVER, &ready), JANUS_OK);
    CHECK_EQ(wire_sockets(), before);
    close(foreign.fds[0]);
    close(foreign.fds[1]);
    return 0;
}

TEST("tasks wait for a descriptor of another library, which stays its own")
{
    REAL();
    rig_all(wait_foreign, NULL, 5);
}

static int64_t ping(void *argument)
{
    struct foreign *foreign = argument;
    for (int i = 0; i < 2000; i++) {
        uint32_t ready;
        char     byte = 0;
        CHECK_EQ(janus_io_wait_fd(foreign->fds[0], JANUS_IO_READ, JANUS_IO_NEVER, &ready),
                 JANUS_OK);
        CHECK_EQ(read(foreign->fds[0], &byte, 1), 1);
        CHECK_EQ(write(foreign->fds[0], &byte, 1), 1);
    }
    return 0;
}

static int64_t ping_pong(void *argument)
{
    struct foreign a = {.waiting = 0}, b = {.waiting = 0};
    janus_nursery  n;
    (void)argument;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a.fds), 0);
    b.fds[0] = a.fds[1];
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, ping, &a), JANUS_OK);
    CHECK_EQ(write(a.fds[1], "x", 1), 1);
    CHECK_EQ(janus_spawn(&n, ping, &b), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    close(a.fds[0]);
    close(a.fds[1]);
    return 0;
}

TEST("no edge of a foreign descriptor is lost between a look and a wait")
{
    REAL();
    rig_all(ping_pong, NULL, 1);
}

/* Standard streams, of a child process whose descriptors this test chooses. */

static int64_t copy_input(void *argument)
{
    janus_io in, out;
    char     bytes[64];
    size_t   got;
    (void)argument;
    janus_status status = janus_io_standard(0, NULL, &in);
    if (status != JANUS_OK) return -100 + (int)status;
    if (janus_io_standard(1, NULL, &out) != JANUS_OK) return -200;
    while ((status = janus_io_read(in, bytes, sizeof bytes, &got)) == JANUS_OK) {
        if (janus_io_write(out, bytes, got, NULL) != JANUS_OK) return -201;
        if (memchr(bytes, '.', got) != NULL) break; /* a terminal has no end */
    }
    if (janus_io_close(in) != JANUS_OK || janus_io_close(out) != JANUS_OK) return -202;
    if (fcntl(0, F_GETFD) < 0 || fcntl(1, F_GETFD) < 0) return -203; /* still open */
    return status == JANUS_OK || status == JANUS_CLOSED ? 0 : -204;
}

static pid_t start_copy(int in, int out)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) return child;
    if (in >= 0)
        dup2(in, 0);
    else
        close(0);
    dup2(out, 1);
    int64_t      result = 0;
    janus_status status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), copy_input, NULL, &result);
    _exit(status == JANUS_OK ? 0 : (int)(-result % 100) + 1);
}

static void check_copy(int in, int out, int result)
{
    int   status = 0;
    pid_t child = start_copy(in, out);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status) == 0, result == 0);
}

static void check_output(int fd)
{
    char bytes[64];
    CHECK_EQ(read(fd, bytes, sizeof bytes), 6);
    CHECK(memcmp(bytes, "hello.", 6) == 0);
}

TEST("the standard streams work as pipe, socket and file, and keep O_NONBLOCK as it was")
{
    REAL();
    int ends[2], pair[2], out[2];
    CHECK_EQ(pipe(out), 0);
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(write(ends[1], "hello.", 6), 6);
    check_copy(ends[0], out[1], 0);
    check_output(out[0]);
    CHECK((fcntl(ends[0], F_GETFL) & O_NONBLOCK) == 0);
    CHECK((fcntl(out[1], F_GETFL) & O_NONBLOCK) == 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQ(write(pair[1], "hello.", 6), 6);
    check_copy(pair[0], pair[0], 0);
    check_output(pair[1]);
    CHECK((fcntl(pair[0], F_GETFL) & O_NONBLOCK) == 0);
    FILE *file = tmpfile();
    CHECK(file != NULL);
    fputs("hello.", file);
    rewind(file);
    check_copy(fileno(file), out[1], 0);
    check_output(out[0]);
    fclose(file);
    check_copy(-1, out[1], 1); /* closed */
    for (int i = 0; i < 2; i++) close(ends[i]), close(pair[i]), close(out[i]);
}

TEST("a terminal works as the standard input and output")
{
    REAL();
    int master, slave, status = 0;
    CHECK_EQ(openpty(&master, &slave, NULL, NULL, NULL), 0);
    pid_t child = start_copy(slave, slave);
    CHECK_EQ(write(master, "hello.\n", 7), 7);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK((fcntl(slave, F_GETFL) & O_NONBLOCK) == 0);
    char   bytes[64];
    size_t got = (size_t)read(master, bytes, sizeof bytes); /* its echo, and perhaps the copy */
    CHECK(got >= 6 && memcmp(bytes, "hello.", 6) == 0);
    close(master);
    close(slave);
}

static int64_t read_terminal(void *argument)
{
    char   byte;
    size_t got;
    return janus_io_read(*(janus_io *)argument, &byte, 1, &got);
}

static int64_t cancel_terminal(void *argument)
{
    int           master, slave;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(openpty(&master, &slave, NULL, NULL, NULL), 0);
    janus_io io = adopt(slave);
    CHECK_EQ(info_of(io).kind, JANUS_IO_KIND_TERMINAL);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, read_terminal, &io), JANUS_OK);
    wire_await_waiter(io, JANUS_IO_READ);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(write(master, "z\n", 2), 2);
    CHECK_EQ(wire_get(io), 'z');
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    close(master);
    return 0;
}

TEST("a cancel ends a read of a terminal, and the next read gets the byte")
{
    REAL();
    rig_all(cancel_terminal, NULL, 1);
}

static int64_t read_event(void *argument)
{
    uint64_t value = 0;
    size_t   got;
    (void)argument;
    janus_io io = adopt(eventfd(0, 0)); /* it blocks */
    wire_put(io, &(uint64_t){7}, sizeof value);
    CHECK_EQ(janus_io_try_read(io, &value, sizeof value, &got), JANUS_OK);
    CHECK_EQ(value, 7);
    CHECK_EQ(janus_io_try_read(io, &value, sizeof value, &got), JANUS_WOULD_WAIT);
    CHECK_EQ(janus_io_set_deadline(io, JANUS_IO_READ, janus_now_ns() + rig_ms), JANUS_OK);
    CHECK_EQ(janus_io_read(io, &value, sizeof value, &got), JANUS_DEADLINE);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    return 0;
}

TEST("an eventfd that blocks is polled first")
{
    REAL();
    rig_all(read_event, NULL, 1);
}

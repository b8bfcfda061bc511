/* SPDX-License-Identifier: MIT */
/* Handles that travel over Unix streams, among other bytes and from other programs. */
#include "wire.h"

#include <fcntl.h>
#include <sys/socket.h>

#define REAL() RIG_REAL("descriptors travel only in the system")

static const uint8_t all_rights = JANUS_IO_MAY_ALL;

/* A handle, and a descriptor of the program for the other end. */
static janus_io half(int *out_other)
{
    int      ends[2];
    janus_io io;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_EQ(janus_io_adopt(ends[0], NULL, &io), JANUS_OK);
    *out_other = ends[1];
    return io;
}

/* Sends bytes with copies of a descriptor, as another program may do. */
static void send_copies(int to, int passed, size_t copies, const void *bytes, size_t count)
{
    enum { MOST = 8 };
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(MOST * sizeof(int))] = {0};
    CHECK(copies <= MOST);
    struct iovec    piece = {(void *)bytes, count};
    struct msghdr   message = {.msg_iov = &piece,
                               .msg_iovlen = 1,
                               .msg_control = control,
                               .msg_controllen = CMSG_SPACE(copies * sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(copies * sizeof(int));
    for (size_t i = 0; i < copies; i++) {
        memcpy(CMSG_DATA(header) + i * sizeof passed, &passed, sizeof passed);
    }
    CHECK_EQ(sendmsg(to, &message, 0), (ssize_t)count);
}

/* Lets the worker look at its set while nobody waits: edges become notes. */
static void let_look(void) { CHECK_EQ(janus_sleep(rig_ms), JANUS_OK); }

static janus_status read_some(janus_io io, size_t *out_got)
{
    char bytes[64];
    CHECK_EQ(janus_io_set_deadline(io, JANUS_IO_READ, janus_now_ns() + rig_patience), JANUS_OK);
    return janus_io_read(io, bytes, sizeof bytes, out_got);
}

/* Registers the handle, with nothing to read. */
static void wait_in_vain(janus_io io)
{
    char   byte;
    size_t got;
    CHECK_EQ(janus_io_set_deadline(io, JANUS_IO_READ, janus_now_ns() + rig_ms), JANUS_OK);
    CHECK_EQ(janus_io_read(io, &byte, 1, &got), JANUS_DEADLINE);
}

static int64_t pass_one(void *argument)
{
    janus_io ends[2], way[2], narrow, got;
    (void)argument;
    wire_pair(ends);
    wire_pair(way);
    CHECK_EQ(janus_io_attenuate(ends[1], JANUS_IO_MAY_READ, &narrow), JANUS_OK);
    CHECK_EQ(janus_io_send_handle(way[0], narrow), JANUS_OK);
    CHECK_EQ(janus_io_receive_handle(way[1], NULL, &got), JANUS_OK);
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    wire_put(ends[0], "p", 1);
    CHECK_EQ(wire_get(got), 'p');
    CHECK_EQ(janus_io_write(got, "x", 1, NULL), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
    wire_close(way);
    return 0; /* the end of the task closes what it received */
}

TEST("a handle that travelled is the same thing with the same rights")
{
    REAL();
    int before = wire_sockets();
    rig_all(pass_one, NULL, 10);
    CHECK_EQ(wire_sockets(), before);
}

static int64_t receive_many(void *argument)
{
    int      other, passed = open("/dev/null", O_RDONLY | O_CLOEXEC);
    janus_io io = half(&other), got;
    int      before = wire_descriptors();
    (void)argument;
    for (size_t copies = 1; copies <= 8; copies++) {
        send_copies(other, passed, copies, &all_rights, 1);
        CHECK_EQ(janus_io_receive_handle(io, NULL, &got), JANUS_OK);
        CHECK_EQ(janus_io_close(got), JANUS_OK);
        send_copies(other, passed, copies, "x", 1); /* read as a byte: nobody wants them */
        CHECK_EQ(wire_get(io), 'x');
    }
    CHECK_EQ(wire_descriptors(), before);
    close(passed);
    close(other);
    return janus_io_close(io);
}

TEST("a message with several descriptors leaves only one open")
{
    REAL();
    rig_run(1, receive_many, NULL, 5);
}

/* Short transfers, [io-drained]. */

static int64_t read_behind(void *argument)
{
    int      other;
    size_t   got;
    janus_io io = half(&other);
    (void)argument;
    wait_in_vain(io);
    send_copies(other, other, 1, "a", 1); /* the system ends a read here */
    CHECK_EQ(write(other, "bcd", 3), 3);
    let_look();
    CHECK_EQ(read_some(io, &got), JANUS_OK);
    CHECK_EQ(got, 1);
    CHECK_EQ(read_some(io, &got), JANUS_OK);
    CHECK_EQ(got, 3);
    close(other);
    return janus_io_close(io);
}

TEST("bytes behind a descriptor that nobody asked for are read without another edge")
{
    REAL();
    rig_all(read_behind, NULL, 5);
}

static int64_t read_after_handle(void *argument)
{
    int      other;
    size_t   got;
    janus_io io = half(&other), made;
    (void)argument;
    wait_in_vain(io);
    CHECK_EQ(write(other, "head", 4), 4);
    CHECK_EQ(read_some(io, &got), JANUS_OK); /* short: the system has no more */
    send_copies(other, other, 1, &all_rights, 1);
    CHECK_EQ(write(other, "tail", 4), 4);
    let_look(); /* one note for both */
    CHECK_EQ(janus_io_receive_handle(io, NULL, &made), JANUS_OK);
    CHECK_EQ(read_some(io, &got), JANUS_OK);
    CHECK_EQ(got, 4);
    CHECK_EQ(janus_io_close(made), JANUS_OK);
    close(other);
    return janus_io_close(io);
}

TEST("bytes that came with a handle are read after it without another edge")
{
    REAL();
    rig_all(read_after_handle, NULL, 5);
}

static int64_t write_after_handle(void *argument)
{
    static char block[1 << 20];
    int         other;
    size_t      done;
    janus_io    io = half(&other);
    (void)argument;
    CHECK_EQ(janus_io_set_deadline(io, JANUS_IO_WRITE, janus_now_ns() + rig_ms), JANUS_OK);
    CHECK_EQ(janus_io_write(io, block, sizeof block, &done), JANUS_DEADLINE); /* until it is full */
    for (size_t left = done; left > 0;) {
        ssize_t got = read(other, block, sizeof block);
        CHECK(got > 0);
        left -= (size_t)got;
    }
    let_look();
    CHECK_EQ(janus_io_set_deadline(io, JANUS_IO_WRITE, janus_now_ns() + rig_patience), JANUS_OK);
    CHECK_EQ(janus_io_send_handle(io, io), JANUS_OK);
    CHECK_EQ(janus_io_write(io, "x", 1, &done), JANUS_OK);
    close(other);
    return janus_io_close(io);
}

TEST("a write after a handle that found room needs no further edge")
{
    REAL();
    rig_all(write_after_handle, NULL, 5);
}

static int64_t receive_listener(void *argument)
{
    int      other, listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    janus_io io = half(&other), made;
    (void)argument;
    CHECK_EQ(bind(listener, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t)), 0);
    CHECK_EQ(listen(listener, 1), 0);
    send_copies(other, listener, 1, &all_rights, 1);
    int before = wire_descriptors();
    CHECK_EQ(janus_io_receive_handle(io, NULL, &made), JANUS_INVALID); /* it blocks */
    CHECK_EQ(wire_descriptors(), before);
    CHECK_EQ(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
    send_copies(other, listener, 1, &all_rights, 1);
    CHECK_EQ(janus_io_receive_handle(io, NULL, &made), JANUS_OK);
    CHECK_EQ(janus_io_close(made), JANUS_OK);
    close(listener);
    close(other);
    return janus_io_close(io);
}

TEST("a listener whose accept would block its worker is not received")
{
    REAL();
    rig_run(1, receive_listener, NULL, 2);
}

/* SPDX-License-Identifier: MIT */
/* Datagrams: several users of one socket, and datagrams of no bytes. */
#include "wire.h"

struct socket {
    janus_io      io;
    janus_address at;
    atomic_int    ended;
};

static void open_socket(struct socket *out)
{
    janus_address at;
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &at), JANUS_OK);
    CHECK_EQ(janus_datagram_open(&at, JANUS_FAMILY_IPV4, NULL, &out->io), JANUS_OK);
    CHECK_EQ(janus_io_local(out->io, &out->at), JANUS_OK);
}

static int64_t read_until_closed(void *argument)
{
    struct socket *socket = argument;
    char           byte;
    size_t         got;
    CHECK_EQ(janus_io_read(socket->io, &byte, 1, &got), JANUS_CLOSED);
    atomic_fetch_add(&socket->ended, 1);
    return 0;
}

static int64_t receive_until_closed(void *argument)
{
    struct socket *socket = argument;
    char           byte;
    size_t         got;
    CHECK_EQ(janus_datagram_receive(socket->io, &byte, 1, &got, NULL, NULL), JANUS_CLOSED);
    atomic_fetch_add(&socket->ended, 1);
    return 0;
}

static int64_t mix_calls(void *argument)
{
    for (int reads_first = 0; reads_first < 2; reads_first++) {
        struct socket socket = {.ended = 0};
        char          byte;
        size_t        got;
        janus_status  status;
        (void)argument;
        open_socket(&socket);
        JANUS_NURSERY(n, status)
        {
            CHECK_EQ(
                janus_spawn(n, reads_first ? read_until_closed : receive_until_closed, &socket),
                JANUS_OK);
            wire_await_waiter(socket.io, JANUS_IO_READ);
            if (reads_first) {
                CHECK_EQ(janus_datagram_receive(socket.io, &byte, 1, &got, NULL, NULL),
                         JANUS_STATE);
            } else {
                CHECK_EQ(janus_io_read(socket.io, &byte, 1, &got), JANUS_STATE);
                CHECK_EQ(janus_io_wait(socket.io, JANUS_IO_READ), JANUS_STATE);
            }
            CHECK_EQ(atomic_load(&socket.ended), 0);
            CHECK_EQ(janus_io_close(socket.io), JANUS_OK);
        }
        CHECK_EQ(status, JANUS_OK);
    }
    return 0;
}

TEST("two tasks that read and receive datagrams of one socket do not wait in one place")
{
    rig_all(mix_calls, NULL, 5);
}

static int64_t read_nothing(void *argument)
{
    struct socket socket = {.ended = 0};
    char          byte = 0;
    size_t        got = 1;
    (void)argument;
    open_socket(&socket);
    CHECK_EQ(janus_datagram_send(socket.io, "", 0, &socket.at), JANUS_OK);
    CHECK_EQ(janus_io_read(socket.io, &byte, 1, &got), JANUS_OK);
    CHECK_EQ(got, 0);
    CHECK_EQ(janus_datagram_send(socket.io, "x", 1, &socket.at), JANUS_OK);
    CHECK_EQ(janus_io_read(socket.io, &byte, 1, &got), JANUS_OK);
    CHECK_EQ(got, 1);
    CHECK_EQ(byte, 'x');
    return janus_io_close(socket.io);
}

TEST("a datagram of no bytes does not end a socket") { rig_all(read_nothing, NULL, 5); }

static int64_t receive_the_second(void *argument)
{
    struct socket socket = {.ended = 0};
    char          byte;
    size_t        got;
    (void)argument;
    open_socket(&socket);
    CHECK_EQ(janus_io_set_deadline(socket.io, JANUS_IO_READ, janus_now_ns() + rig_ms), JANUS_OK);
    CHECK_EQ(janus_io_read(socket.io, &byte, 1, &got), JANUS_DEADLINE); /* nothing is there */
    CHECK_EQ(janus_io_set_deadline(socket.io, JANUS_IO_READ, janus_now_ns() + rig_patience),
             JANUS_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(janus_datagram_send(socket.io, "y", 1, &socket.at), JANUS_OK);
    }
    CHECK_EQ(janus_sleep(100 * rig_ms), JANUS_OK); /* simulated ones have arrived: one note */
    CHECK_EQ(janus_datagram_receive(socket.io, &byte, 1, &got, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_io_read(socket.io, &byte, 1, &got), JANUS_OK);
    return janus_io_close(socket.io);
}

TEST("a read finds the second of two datagrams whose edge an earlier receive has taken")
{
    rig_all(receive_the_second, NULL, 2);
}

/* SPDX-License-Identifier: MIT */
/*
 * The simulated network and the real one, beside each other: what calls return, and which events
 * come. Each test runs on loopback and in a world.
 */
#include "wire.h"

#include <janusrt/status.h>
#include <time.h>

static const uint32_t RW = JRT_NET_READ | JRT_NET_WRITE;
static const uint64_t patience_ns = UINT64_C(300) * 1000000000; /* on a busy machine */

static void on_both(void (*main)(void *))
{
    wire_run_well(&(struct wire){0}, main);
    main(NULL);
}

static struct jrt_set set_of(int fd, uint64_t cookie)
{
    struct jrt_set set;
    CHECK_EQ(net()->set_open(&set), 0);
    CHECK_EQ(net()->set_add(&set, fd, cookie), 0);
    return set;
}

/* Takes events until one says exactly `wanted`. */
static void await_event(struct jrt_set *set, uint64_t cookie, uint32_t wanted)
{
    struct jrt_net_event event = {0};
    uint64_t             until = now() + patience_ns;
    while (event.what != wanted) {
        int count = net()->set_wait(set, &event, 1, until);
        CHECK_EQ(count, 1);
        CHECK_EQ(event.cookie, cookie);
        CHECK_EQ(event.what & ~wanted, 0); /* nothing that does not belong there */
    }
}

static void expect_no_event(struct jrt_set *set)
{
    struct jrt_net_event event;
    CHECK_EQ(net()->set_wait(set, &event, 1, 0), 0);
}

static ptrdiff_t put_at(int fd, const char *bytes, size_t count)
{
    struct iovec piece = {(void *)(uintptr_t)bytes, count};
    return net()->send(fd, true, &piece, 1);
}

/* Receives, after a wait if necessary. */
static ptrdiff_t get_at(int fd, char *bytes, size_t max)
{
    struct iovec        piece = {bytes, max};
    struct jrt_net_bell bell;
    CHECK_EQ(net()->bell_open(&bell), 0);
    CHECK_EQ(net()->wait_one(fd, JANUS_IO_READ, now() + patience_ns, &bell), 0);
    net()->bell_close(&bell);
    return net()->receive(fd, true, &piece, 1);
}

static void await_way(int fd, uint32_t way)
{
    struct jrt_net_bell bell;
    CHECK_EQ(net()->bell_open(&bell), 0);
    CHECK_EQ(net()->wait_one(fd, way, now() + patience_ns, &bell), 0);
    net()->bell_close(&bell);
}

/* A listener at a free port, and its address. */
static int listener_at(janus_address *out)
{
    int fd = net()->socket(JANUS_FAMILY_IPV4, SOCK_STREAM);
    *out = loopback(0);
    CHECK(fd >= 0);
    CHECK_EQ(net()->bind(fd, out), 0);
    CHECK_EQ(net()->listen(fd, 16), 0);
    CHECK_EQ(net()->local(fd, out), 0);
    CHECK(out->port != 0);
    return fd;
}

static void connected(int out[2])
{
    janus_address at;
    int           listener = listener_at(&at);
    out[0] = net()->socket(JANUS_FAMILY_IPV4, SOCK_STREAM);
    CHECK_EQ(net()->connect(out[0], &at), -EINPROGRESS);
    await_way(listener, JANUS_IO_READ);
    out[1] = net()->accept(listener, NULL);
    CHECK(out[1] >= 0);
    await_way(out[0], JANUS_IO_WRITE);
    CHECK_EQ(net()->connect(out[0], &at), 0);
    CHECK_EQ(net()->error(out[0]), 0);
    CHECK_EQ(net()->close(listener), 0);
}

static void close_two(const int ends[2])
{
    CHECK_EQ(net()->close(ends[0]), 0);
    CHECK_EQ(net()->close(ends[1]), 0);
}

/* Before and while connecting. */

static void refused(void *argument)
{
    janus_address at;
    char          byte;
    int           fd = listener_at(&at);
    (void)argument;
    CHECK_EQ(net()->close(fd), 0); /* now nobody listens there */
    fd = net()->socket(JANUS_FAMILY_IPV4, SOCK_STREAM);
    struct jrt_set set = set_of(fd, 1);
    await_event(&set, 1, JRT_NET_WRITE | JRT_NET_HUP);
    CHECK_EQ(net()->peer(fd, &at), -ENOTCONN);
    CHECK_EQ(net()->shutdown(fd, JANUS_IO_WRITE), -ENOTCONN);
    struct iovec piece = {&byte, 1};
    CHECK_EQ(net()->receive(fd, true, &piece, 1), -ENOTCONN);
    CHECK_EQ(put_at(fd, "x", 1), -EPIPE);
    int error = net()->connect(fd, &at);
    CHECK(error == -EINPROGRESS || error == -ECONNREFUSED);
    if (error == -EINPROGRESS) {
        await_event(&set, 1, RW | JRT_NET_RDHUP | JRT_NET_HUP | JRT_NET_ERR);
        CHECK_EQ(net()->error(fd), -ECONNREFUSED);
    }
    CHECK_EQ(net()->error(fd), 0);
    net()->set_close(&set);
    CHECK_EQ(net()->close(fd), 0);
}

TEST("a socket without a connection, and a refused one, are the same on both networks")
{
    on_both(refused);
}

static void listening(void *argument)
{
    janus_address at, peer;
    char          byte;
    struct iovec  piece = {&byte, 1};
    int listener = listener_at(&at), client = net()->socket(JANUS_FAMILY_IPV4, SOCK_STREAM);
    (void)argument;
    struct jrt_set set = set_of(listener, 1);
    expect_no_event(&set);
    CHECK_EQ(net()->accept(listener, NULL), -EAGAIN);
    CHECK_EQ(net()->accept(client, NULL), -EINVAL);
    CHECK_EQ(net()->receive(listener, true, &piece, 1), -ENOTCONN);
    CHECK_EQ(net()->connect(client, &at), -EINPROGRESS);
    await_event(&set, 1, JRT_NET_READ);
    int server = net()->accept(listener, &peer);
    CHECK(server >= 0);
    expect_no_event(&set);
    CHECK_EQ(net()->local(client, &at), 0);
    CHECK_EQ(at.port, peer.port);
    CHECK_EQ(memcmp(at.bytes, peer.bytes, 4), 0);
    CHECK_EQ(net()->bind(client, &at), -EINVAL);
    CHECK_EQ(net()->close(server), 0);
    CHECK_EQ(net()->close(client), 0);
    CHECK_EQ(net()->close(listener), 0);
    net()->set_close(&set);
}

TEST("a listener is the same on both networks") { on_both(listening); }

/* Ends. */

static void data_and_end(void *argument)
{
    int  ends[2];
    char bytes[16];
    (void)argument;
    connected(ends);
    struct jrt_set set = set_of(ends[1], 1);
    await_event(&set, 1, JRT_NET_WRITE);
    expect_no_event(&set);
    CHECK_EQ(put_at(ends[0], "last", 4), 4);
    CHECK_EQ(net()->shutdown(ends[0], JANUS_IO_WRITE), 0);
    CHECK_EQ(put_at(ends[0], "x", 1), -EPIPE);
    await_event(&set, 1, RW | JRT_NET_RDHUP);
    CHECK_EQ(get_at(ends[1], bytes, sizeof bytes), 4);
    expect_no_event(&set); /* K1 */
    CHECK_EQ(get_at(ends[1], bytes, sizeof bytes), 0);
    CHECK_EQ(put_at(ends[1], "still", 5), 5);
    CHECK_EQ(get_at(ends[0], bytes, sizeof bytes), 5);
    CHECK_EQ(net()->shutdown(ends[1], JANUS_IO_WRITE), 0);
    await_event(&set, 1, RW | JRT_NET_RDHUP | JRT_NET_HUP);
    net()->set_close(&set);
    close_two(ends);
}

TEST("an end, and half a close, are the same on both networks") { on_both(data_and_end); }

static void reset(void *argument)
{
    int  ends[2];
    char bytes[16];
    (void)argument;
    connected(ends);
    struct jrt_set set = set_of(ends[0], 1);
    await_event(&set, 1, JRT_NET_WRITE);
    CHECK_EQ(put_at(ends[1], "kept", 4), 4);
    CHECK_EQ(put_at(ends[0], "unread", 6), 6);
    await_way(ends[1], JANUS_IO_READ);
    CHECK_EQ(net()->close(ends[1]), 0);
    await_event(&set, 1, RW | JRT_NET_RDHUP | JRT_NET_HUP | JRT_NET_ERR);
    CHECK_EQ(get_at(ends[0], bytes, sizeof bytes), 4);
    CHECK_EQ(get_at(ends[0], bytes, sizeof bytes), -ECONNRESET);
    CHECK_EQ(get_at(ends[0], bytes, sizeof bytes), 0);
    CHECK_EQ(put_at(ends[0], "x", 1), -EPIPE);
    CHECK_EQ(net()->shutdown(ends[0], JANUS_IO_WRITE), -ENOTCONN);
    net()->set_close(&set);
    CHECK_EQ(net()->close(ends[0]), 0);
}

TEST("a reset by unread bytes is the same on both networks") { on_both(reset); }

static void late_write(void *argument)
{
    int  ends[2];
    char byte;
    (void)argument;
    connected(ends);
    struct jrt_set set = set_of(ends[0], 1);
    await_event(&set, 1, JRT_NET_WRITE);
    CHECK_EQ(net()->close(ends[1]), 0);
    await_event(&set, 1, RW | JRT_NET_RDHUP);
    CHECK_EQ(put_at(ends[0], "x", 1), 1);
    await_event(&set, 1, RW | JRT_NET_RDHUP | JRT_NET_HUP | JRT_NET_ERR);
    CHECK_EQ(get_at(ends[0], &byte, 1), 0);
    CHECK_EQ(put_at(ends[0], "x", 1), -EPIPE);
    CHECK_EQ(put_at(ends[0], "x", 1), -EPIPE);
    net()->set_close(&set);
    CHECK_EQ(net()->close(ends[0]), 0);
}

TEST("a write after the other end's close is the same on both networks") { on_both(late_write); }

/* Pairs and pipes. */

static void pairs(void *argument)
{
    int  ends[2];
    char bytes[16];
    (void)argument;
    CHECK_EQ(net()->pair(ends), 0);
    struct jrt_set set = set_of(ends[1], 1);
    await_event(&set, 1, JRT_NET_WRITE);
    CHECK_EQ(put_at(ends[0], "one", 3), 3);
    await_event(&set, 1, RW);
    CHECK_EQ(put_at(ends[1], "unread", 6), 6);
    CHECK_EQ(net()->close(ends[0]), 0);
    await_event(&set, 1, RW | JRT_NET_RDHUP | JRT_NET_HUP | JRT_NET_ERR);
    CHECK_EQ(put_at(ends[1], "x", 1), -EPIPE);
    CHECK_EQ(get_at(ends[1], bytes, sizeof bytes), 3);
    CHECK_EQ(get_at(ends[1], bytes, sizeof bytes), -ECONNRESET);
    CHECK_EQ(get_at(ends[1], bytes, sizeof bytes), 0);
    net()->set_close(&set);
    CHECK_EQ(net()->close(ends[1]), 0);
    CHECK_EQ(net()->pair(ends), 0);
    set = set_of(ends[1], 2);
    await_event(&set, 2, JRT_NET_WRITE);
    CHECK_EQ(net()->shutdown(ends[0], JANUS_IO_WRITE), 0);
    await_event(&set, 2, RW | JRT_NET_RDHUP);
    CHECK_EQ(net()->shutdown(ends[0], JANUS_IO_READ), 0);
    await_event(&set, 2, RW | JRT_NET_RDHUP | JRT_NET_HUP);
    CHECK_EQ(put_at(ends[1], "x", 1), -EPIPE);
    net()->set_close(&set);
    close_two(ends);
}

TEST("a pair is the same on both networks") { on_both(pairs); }

static void pipes(void *argument)
{
    int           ends[2];
    char          bytes[16];
    janus_address at;
    struct iovec  to = {bytes, sizeof bytes}, from = {"hello", 5};
    (void)argument;
    CHECK_EQ(net()->pipe(ends), 0);
    struct jrt_set reader = set_of(ends[0], 1), writer = set_of(ends[1], 2);
    expect_no_event(&reader);
    await_event(&writer, 2, JRT_NET_WRITE);
    CHECK_EQ(net()->receive(ends[0], false, &to, 1), -EAGAIN);
    CHECK_EQ(net()->receive(ends[1], false, &to, 1), -EBADF);
    CHECK_EQ(net()->send(ends[0], false, &from, 1), -EBADF);
    CHECK_EQ(net()->receive(ends[0], true, &to, 1), -ENOTSOCK);
    CHECK_EQ(net()->local(ends[0], &at), -ENOTSOCK);
    CHECK_EQ(net()->shutdown(ends[0], JANUS_IO_READ), -ENOTSOCK);
    CHECK_EQ(net()->send(ends[1], false, &from, 1), 5);
    await_event(&reader, 1, JRT_NET_READ);
    CHECK_EQ(net()->close(ends[1]), 0);
    await_event(&reader, 1, JRT_NET_READ | JRT_NET_HUP);
    CHECK_EQ(net()->receive(ends[0], false, &to, 1), 5);
    CHECK_EQ(net()->receive(ends[0], false, &to, 1), 0);
    CHECK_EQ(net()->close(ends[0]), 0);
    CHECK_EQ(net()->pipe(ends), 0);
    CHECK_EQ(net()->set_add(&writer, ends[1], 3), 0);
    await_event(&writer, 3, JRT_NET_WRITE);
    CHECK_EQ(net()->close(ends[0]), 0);
    await_event(&writer, 3, JRT_NET_WRITE | JRT_NET_ERR);
    CHECK_EQ(net()->send(ends[1], false, &from, 1), -EPIPE);
    CHECK_EQ(net()->close(ends[1]), 0);
    net()->set_close(&reader);
    net()->set_close(&writer);
}

TEST("a pipe is the same on both networks") { on_both(pipes); }

/* Names of Unix sockets. */

static void names(void *argument)
{
    janus_address path = named(JANUS_FAMILY_UNIX, "/no-such-folder/x"), local;
    janus_address name = named(JANUS_FAMILY_ABSTRACT, "janusrt both_test");
    int           fd = net()->socket(JANUS_FAMILY_UNIX, SOCK_STREAM);
    int           listener = net()->socket(JANUS_FAMILY_ABSTRACT, SOCK_STREAM);
    (void)argument;
    CHECK_EQ(net()->connect(fd, &path), -ENOENT);
    CHECK_EQ(net()->connect(fd, &name), -ECONNREFUSED);
    CHECK_EQ(net()->listen(fd, 1), -EINVAL);
    CHECK_EQ(net()->bind(listener, &name), 0);
    CHECK_EQ(net()->bind(fd, &name), -EADDRINUSE);
    CHECK_EQ(net()->connect(fd, &name), -ECONNREFUSED); /* bound is not listening */
    CHECK_EQ(net()->listen(listener, 0), 0);
    CHECK_EQ(net()->local(listener, &local), 0);
    CHECK_EQ(local.family, JANUS_FAMILY_ABSTRACT);
    CHECK_EQ(local.count, name.count);
    CHECK_EQ(net()->connect(fd, &name), 0);
    int other = net()->socket(JANUS_FAMILY_UNIX, SOCK_STREAM);
    CHECK_EQ(net()->connect(other, &name), -EAGAIN); /* the backlog is full */
    int server = net()->accept(listener, &local);
    CHECK(server >= 0);
    CHECK_EQ(local.family, JANUS_FAMILY_NONE); /* the client has no name */
    CHECK_EQ(net()->close(server), 0);
    CHECK_EQ(net()->close(other), 0);
    CHECK_EQ(net()->close(fd), 0);
    CHECK_EQ(net()->close(listener), 0);
}

TEST("names of Unix sockets are the same on both networks") { on_both(names); }

/* Datagrams. */

static void datagrams(void *argument)
{
    static char   large[70000];
    janus_address at = loopback(0), from;
    char          bytes[4];
    bool          cut = false;
    struct iovec  to = {bytes, sizeof bytes}, whole = {"hello", 5}, much = {large, sizeof large};
    int           a = net()->socket(JANUS_FAMILY_IPV4, SOCK_DGRAM);
    int           b = net()->socket(JANUS_FAMILY_IPV4, SOCK_DGRAM);
    (void)argument;
    CHECK_EQ(net()->bind(b, &at), 0);
    CHECK_EQ(net()->local(b, &at), 0);
    CHECK_EQ(net()->listen(b, 1), -EOPNOTSUPP);
    CHECK_EQ(net()->send_to(a, &whole, NULL), -EDESTADDRREQ);
    CHECK_EQ(net()->send_to(a, &much, &at), -EMSGSIZE);
    CHECK_EQ(net()->receive_from(b, &to, &from, &cut), -EAGAIN);
    struct jrt_set set = set_of(b, 1);
    await_event(&set, 1, JRT_NET_WRITE);
    CHECK_EQ(net()->send_to(a, &whole, &at), 5);
    await_event(&set, 1, RW);
    CHECK_EQ(net()->receive_from(b, &to, &from, &cut), 4);
    CHECK(cut);
    CHECK_EQ(net()->local(a, &at), 0);
    CHECK_EQ(at.port, from.port);
    CHECK_EQ(from.bytes[0], 127);
    net()->set_close(&set);
    CHECK_EQ(net()->close(a), 0);
    CHECK_EQ(net()->close(b), 0);
}

TEST("datagrams are the same on both networks") { on_both(datagrams); }

/* Room. */

static void rooms(void *argument)
{
    static char bytes[1 << 20];
    int         ends[2];
    ptrdiff_t   sent = 0, done;
    (void)argument;
    connected(ends);
    struct jrt_set set = set_of(ends[0], 1);
    await_event(&set, 1, JRT_NET_WRITE);
    while ((done = put_at(ends[0], bytes, sizeof bytes)) > 0) sent += done;
    CHECK_EQ(done, -EAGAIN);
    while (sent > 0) { /* events of room come while the other end reads */
        ptrdiff_t got = get_at(ends[1], bytes, sizeof bytes);
        CHECK(got > 0);
        sent -= got;
    }
    await_event(&set, 1, JRT_NET_WRITE);
    CHECK_EQ(put_at(ends[0], bytes, 1), 1);
    net()->set_close(&set);
    close_two(ends);
}

TEST("a sender that found no room gets an event for new room on both networks") { on_both(rooms); }

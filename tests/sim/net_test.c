/* SPDX-License-Identifier: MIT */
/* Streams of the simulated network: connecting, bytes, ends. */
#include "wire.h"

#include <stdlib.h>

/* Connecting. */

static void refuse_alone(void *argument)
{
    uint64_t begun = now();
    int      fd = dial(loopback(80), -EINPROGRESS);
    (void)argument;
    await(fd, JANUS_IO_WRITE);
    CHECK_EQ(net()->error(fd), -ECONNREFUSED);
    CHECK(now() - begun >= 50 * wire_us);
    CHECK_EQ(net()->error(fd), 0);
    CHECK_EQ(put(fd, "x", 1), -EPIPE);
    CHECK_EQ(net()->close(fd), 0);
}

TEST("a connect to an address where nobody listens is refused after a delay")
{
    wire_run_well(&(struct wire){0}, refuse_alone);
}

static void fill_backlog(void *argument)
{
    int fd = net()->socket(JANUS_FAMILY_IPV4, SOCK_STREAM), clients[3];
    (void)argument;
    janus_address at = loopback(80);
    CHECK_EQ(net()->bind(fd, &at), 0);
    CHECK_EQ(net()->listen(fd, 1), 0);
    for (int i = 0; i < 3; i++) clients[i] = dial(at, -EINPROGRESS);
    for (int i = 0; i < 3; i++) {
        await(clients[i], JANUS_IO_WRITE);
        CHECK_EQ(net()->error(clients[i]), i < 2 ? 0 : -ECONNREFUSED);
        CHECK_EQ(net()->close(clients[i]), 0);
    }
    CHECK_EQ(net()->close(fd), 0);
}

TEST("a connect is refused when the backlog is full")
{
    wire_run_well(&(struct wire){0}, fill_backlog);
}

static void exchange(void *argument)
{
    int           ends[2];
    janus_address local, peer;
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(net()->local(ends[0], &local), 0);
    CHECK_EQ(local.port, 32768);
    CHECK_EQ(net()->peer(ends[1], &peer), 0);
    CHECK_EQ(memcmp(&local, &peer, sizeof peer), 0);
    CHECK_EQ(net()->peer(ends[0], &peer), 0);
    CHECK_EQ(peer.port, 80);
    CHECK_EQ(put(ends[0], "hello", 5), 5);
    char byte;
    CHECK_EQ(get(ends[1], &byte, 1), -EAGAIN); /* it is on its way */
    uint64_t sent = now();
    await(ends[1], JANUS_IO_READ);
    CHECK(now() - sent >= 49 * wire_us);
    expect(ends[1], "hello");
    CHECK_EQ(get(ends[1], &byte, 1), -EAGAIN);
    close_both(ends);
}

TEST("bytes arrive in order, after a delay, at an accepted connection")
{
    wire_run_well(&(struct wire){0}, exchange);
}

static void close_listener(void *argument)
{
    int  listener = listen_at(loopback(80)), early = dial(loopback(80), -EINPROGRESS);
    char byte;
    (void)argument;
    await(early, JANUS_IO_WRITE);
    int late = dial(loopback(80), -EINPROGRESS);
    CHECK_EQ(net()->close(listener), 0);
    await(late, JANUS_IO_WRITE);
    CHECK_EQ(net()->error(late), -ECONNREFUSED);
    await(early, JANUS_IO_READ);
    CHECK_EQ(get(early, &byte, 1), -ECONNRESET);
    CHECK_EQ(net()->close(early), 0);
    CHECK_EQ(net()->close(late), 0);
}

TEST("closing a listener resets connections that nobody accepted, and refuses those on their way")
{
    wire_run_well(&(struct wire){0}, close_listener);
}

/* Short transfers. */

static void read_shortly(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(put(ends[0], "abcdefgh", 8), 8);
    await(ends[1], JANUS_IO_READ);
    expect(ends[1], "a");
    char byte;
    CHECK_EQ(get(ends[1], &byte, 1), -EAGAIN); /* so a short read means that nothing is left */
    await(ends[1], JANUS_IO_READ);
    expect(ends[1], "bcd"); /* half of 7 */
    await(ends[1], JANUS_IO_READ);
    expect(ends[1], "efg"); /* all but one */
    await(ends[1], JANUS_IO_READ);
    expect(ends[1], "h"); /* one byte leaves no choice */
    close_both(ends);
}

TEST("a read gets one byte, half, or all but one, and the rest arrives later with an event")
{
    /* The first cut is that of the write. */
    struct wire wire = {.cuts = {0, 1, 2, 3}};
    wire_run_well(&wire, read_shortly);
    CHECK_STR(wire.words, "server 1's third read got 3 bytes of 4");
}

static void write_shortly(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(put(ends[0], "abcdefgh", 8), 1);
    CHECK_EQ(put(ends[0], "bcdefgh", 7), -EAGAIN); /* so a short write means: no room */
    await(ends[0], JANUS_IO_WRITE);
    CHECK_EQ(put(ends[0], "bcdefgh", 7), 3);
    await(ends[0], JANUS_IO_WRITE);
    CHECK_EQ(put(ends[0], "efgh", 4), 3);
    await(ends[0], JANUS_IO_WRITE);
    CHECK_EQ(put(ends[0], "h", 1), 1);
    pass_ns(100 * wire_us);
    expect(ends[1], "abcdefgh");
    close_both(ends);
}

TEST("a write takes one byte, half, or all but one, and there is room again later")
{
    struct wire wire = {.cuts = {1, 2, 3}};
    wire_run_well(&wire, write_shortly);
    CHECK_STR(wire.words, "client 1's third write took 3 bytes of 4");
}

static void travel(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends); /* its delay is the first */
    uint64_t begun = now();
    CHECK_EQ(put(ends[0], "slow", 4), 4);
    CHECK_EQ(put(ends[0], "fast", 4), 4);
    await(ends[1], JANUS_IO_READ);
    CHECK(now() - begun >= 20000 * wire_us);
    CHECK(now() - begun < 20100 * wire_us);
    expect(ends[1], "slowfast");
    close_both(ends);
}

TEST("no segment overtakes another")
{
    struct wire wire = {.delays = {0, 3, 0}};
    wire_run_well(&wire, travel);
    CHECK_STR(wire.words, "client 1's first write travelled for 20 ms");
}

/* Room. */

static void fill_up(void *argument)
{
    static char bytes[100000];
    int         ends[2];
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(put(ends[0], bytes, sizeof bytes), 65536);
    CHECK_EQ(put(ends[0], bytes, sizeof bytes), -EAGAIN);
    pass_ns(100 * wire_us);
    CHECK_EQ(net()->wait_one(ends[0], JANUS_IO_WRITE, now() + 1000, NULL), -ETIMEDOUT);
    CHECK_EQ(get(ends[1], bytes, 1000), 1000);
    CHECK_EQ(net()->wait_one(ends[0], JANUS_IO_WRITE, now() + 100 * wire_us, NULL), -ETIMEDOUT);
    CHECK_EQ(get(ends[1], bytes, 30000), 30000);
    CHECK_EQ(put(ends[0], bytes, 1), -EAGAIN); /* the news is on its way */
    await(ends[0], JANUS_IO_WRITE);
    CHECK_EQ(put(ends[0], bytes, sizeof bytes), 31000);
    CHECK_EQ(net()->close(ends[0]), 0);
    pass_ns(100 * wire_us);
    size_t    left = 0;
    ptrdiff_t got;
    while ((got = get(ends[1], bytes, 777)) > 0) left += (size_t)got;
    CHECK_EQ(got, 0);
    CHECK_EQ(left, 65536);
    CHECK_EQ(net()->close(ends[1]), 0);
}

TEST("64 KiB fit into a direction, and a sender that found no room learns of a third")
{
    wire_run_well(&(struct wire){0}, fill_up);
}

/* Ends. */

static void half_close(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(put(ends[0], "last", 4), 4);
    CHECK_EQ(net()->shutdown(ends[0], JANUS_IO_WRITE), 0);
    CHECK_EQ(put(ends[0], "x", 1), -EPIPE);
    await(ends[1], JANUS_IO_READ);
    expect(ends[1], "last");
    expect(ends[1], "");
    expect(ends[1], "");
    CHECK_EQ(put(ends[1], "answer", 6), 6);
    await(ends[0], JANUS_IO_READ);
    expect(ends[0], "answer");
    CHECK_EQ(net()->close(ends[1]), 0);
    await(ends[0], JANUS_IO_READ);
    expect(ends[0], "");
    CHECK_EQ(net()->close(ends[0]), 0);
}

TEST("after a half-close the other direction still works")
{
    wire_run_well(&(struct wire){0}, half_close);
}

static void close_unread(void *argument)
{
    int  ends[2];
    char byte;
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(put(ends[1], "kept", 4), 4);
    CHECK_EQ(put(ends[0], "unread", 6), 6);
    pass_ns(100 * wire_us);
    CHECK_EQ(net()->close(ends[1]), 0);
    pass_ns(100 * wire_us);
    expect(ends[0], "kept"); /* what arrived before the reset is still there */
    CHECK_EQ(get(ends[0], &byte, 1), -ECONNRESET);
    expect(ends[0], "");
    CHECK_EQ(put(ends[0], "x", 1), -EPIPE);
    CHECK_EQ(net()->close(ends[0]), 0);
}

TEST("a close with unread bytes resets the connection, behind the bytes that were sent")
{
    wire_run_well(&(struct wire){0}, close_unread);
}

static void write_to_nobody(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(net()->close(ends[1]), 0);
    CHECK_EQ(put(ends[0], "x", 1), 1); /* nobody knows yet */
    pass_ns(200 * wire_us);
    CHECK_EQ(put(ends[0], "x", 1), -EPIPE);
    expect(ends[0], "");
    CHECK_EQ(net()->close(ends[0]), 0);
}

TEST("a write to a closed connection succeeds once, and then breaks")
{
    wire_run_well(&(struct wire){0}, write_to_nobody);
}

/* Pairs, pipes and Unix streams. */

static void use_pair(void *argument)
{
    int  ends[2];
    char byte;
    (void)argument;
    CHECK_EQ(net()->pair(ends), 0);
    uint64_t begun = now();
    CHECK_EQ(put(ends[0], "hello", 5), 5);
    expect(ends[1], "hello"); /* at once */
    CHECK_EQ(now(), begun);
    CHECK_EQ(net()->shutdown(ends[0], JANUS_IO_WRITE), 0);
    expect(ends[1], "");
    CHECK_EQ(put(ends[1], "back", 4), 4);
    CHECK_EQ(net()->close(ends[0]), 0); /* with unread bytes */
    CHECK_EQ(get(ends[1], &byte, 1), -ECONNRESET);
    CHECK_EQ(get(ends[1], &byte, 1), 0);
    CHECK_EQ(put(ends[1], "x", 1), -EPIPE);
    CHECK_EQ(net()->close(ends[1]), 0);
}

TEST("bytes of a pair arrive at once, and its ends close as those of Unix sockets do")
{
    wire_run_well(&(struct wire){0}, use_pair);
}

static void use_pipe(void *argument)
{
    static char  bytes[65536];
    int          ends[2];
    struct iovec piece = {bytes, 4096}, all = {bytes, sizeof bytes}, one = {bytes, 1};
    (void)argument;
    CHECK_EQ(net()->pipe(ends), 0);
    CHECK_EQ(net()->receive(ends[0], true, &one, 1), -ENOTSOCK);
    CHECK_EQ(net()->receive(ends[1], false, &one, 1), -EBADF);
    CHECK_EQ(net()->send(ends[0], false, &one, 1), -EBADF);
    CHECK_EQ(net()->send(ends[1], false, &piece, 1), 4096); /* never divided */
    all.iov_len = sizeof bytes - 4096 - 100;
    CHECK_EQ(net()->send(ends[1], false, &all, 1), sizeof bytes - 4096 - 100);
    CHECK_EQ(net()->send(ends[1], false, &piece, 1), -EAGAIN);
    all.iov_len = sizeof bytes;
    CHECK_EQ(net()->close(ends[1]), 0);
    CHECK_EQ(net()->receive(ends[0], false, &all, 1), sizeof bytes - 100);
    CHECK_EQ(net()->receive(ends[0], false, &all, 1), 0);
    CHECK_EQ(net()->close(ends[0]), 0);
    CHECK_EQ(net()->pipe(ends), 0);
    CHECK_EQ(net()->close(ends[0]), 0);
    CHECK_EQ(net()->send(ends[1], false, &one, 1), -EPIPE);
    CHECK_EQ(net()->close(ends[1]), 0);
}

TEST("a pipe takes small writes whole, ends after its bytes, and breaks without a reader")
{
    struct wire wire = {.cuts = {0}};
    wire_run_well(&wire, use_pipe);
}

static void use_unix(void *argument)
{
    janus_address path = named(JANUS_FAMILY_UNIX, "/run/x");
    janus_address name = named(JANUS_FAMILY_ABSTRACT, "x");
    (void)argument;
    CHECK_EQ(net()->close(dial(path, -ENOENT)), 0);
    CHECK_EQ(net()->close(dial(name, -ECONNREFUSED)), 0);
    int listener = listen_at(path), other = listen_at(name);
    int client = dial(path, 0), server = net()->accept(listener, NULL);
    CHECK(server >= 0);
    CHECK_EQ(put(client, "hello", 5), 5);
    expect(server, "hello");
    CHECK_EQ(net()->close(client), 0);
    CHECK_EQ(net()->close(server), 0);
    CHECK_EQ(net()->close(listener), 0);
    CHECK_EQ(net()->close(other), 0);
    CHECK_EQ(net()->close(dial(path, -ECONNREFUSED)), 0); /* the path is still there */
    int again = net()->socket(JANUS_FAMILY_UNIX, SOCK_STREAM);
    CHECK_EQ(net()->bind(again, &path), -EADDRINUSE);
    CHECK_EQ(net()->bind(again, &name), 0); /* a name is free again */
    CHECK_EQ(net()->close(again), 0);
    CHECK_EQ(jrt_sim_unlink(&path), 0);
    CHECK_EQ(net()->close(dial(path, -ENOENT)), 0);
}

TEST("Unix sockets connect at once, and a path outlives its socket")
{
    wire_run_well(&(struct wire){0}, use_unix);
}

/* Addresses. */

static void bind_twice(void *argument)
{
    janus_address at = loopback(80), any = v4(0, 0, 0, 0, 80), other = v4(10, 0, 0, 1, 80);
    int           listener = listen_at(at);
    int           fd = net()->socket(JANUS_FAMILY_IPV4, SOCK_STREAM);
    (void)argument;
    CHECK_EQ(net()->bind(fd, &at), -EADDRINUSE);
    CHECK_EQ(net()->bind(fd, &any), -EADDRINUSE);
    CHECK_EQ(net()->bind(fd, &other), 0);
    CHECK_EQ(net()->close(fd), 0);
    CHECK_EQ(net()->close(listener), 0);
    for (int i = 0; i < 2; i++) { /* ports are the network's */
        janus_address zero = loopback(0), local;
        fd = listen_at(zero);
        CHECK_EQ(net()->local(fd, &local), 0);
        CHECK_EQ(local.port, 32768 + i);
        CHECK_EQ(net()->close(fd), 0);
    }
}

TEST("an address is in use once, and free ports are given out in order")
{
    wire_run_well(&(struct wire){0}, bind_twice);
}

static void meet_families(void *argument)
{
    janus_address any = {.family = JANUS_FAMILY_IPV6, .count = 16, .port = 80}, peer;
    int           listener = listen_at(any);
    int           client = dial(loopback(80), -EINPROGRESS);
    (void)argument;
    await(listener, JANUS_IO_READ);
    int server = net()->accept(listener, &peer);
    CHECK(server >= 0);
    CHECK_EQ(peer.family, JANUS_FAMILY_IPV6);
    CHECK_EQ(memcmp(peer.bytes, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16), 0);
    CHECK_EQ(net()->close(server), 0);
    CHECK_EQ(net()->close(client), 0);
    CHECK_EQ(net()->close(listener), 0);
    listener = net()->socket(JANUS_FAMILY_IPV6, SOCK_STREAM);
    CHECK_EQ(net()->option(listener, JRT_NET_ONLY_V6, 1), 0);
    CHECK_EQ(net()->bind(listener, &any), 0);
    CHECK_EQ(net()->listen(listener, 16), 0);
    client = dial(loopback(80), -EINPROGRESS);
    await(client, JANUS_IO_WRITE);
    CHECK_EQ(net()->error(client), -ECONNREFUSED);
    CHECK_EQ(net()->close(client), 0);
    CHECK_EQ(net()->close(listener), 0);
}

TEST("a listener at any IPv6 address takes IPv4 clients, unless it must not")
{
    wire_run_well(&(struct wire){0}, meet_families);
}

static void share_port(void *argument)
{
    int           listeners[2], served[2] = {0, 0};
    janus_address at = loopback(80);
    (void)argument;
    for (int i = 0; i < 2; i++) {
        listeners[i] = net()->socket(JANUS_FAMILY_IPV4, SOCK_STREAM);
        CHECK_EQ(net()->option(listeners[i], JRT_NET_REUSE_PORT, 1), 0);
        CHECK_EQ(net()->bind(listeners[i], &at), 0);
        CHECK_EQ(net()->listen(listeners[i], 16), 0);
    }
    int clients[10];
    for (int i = 0; i < 10; i++) clients[i] = dial(at, -EINPROGRESS);
    pass_ns(100 * wire_us);
    for (int i = 0; i < 2; i++) {
        for (int fd; (fd = net()->accept(listeners[i], NULL)) >= 0; served[i]++) {
            CHECK_EQ(net()->close(fd), 0);
        }
        CHECK_EQ(net()->close(listeners[i]), 0);
    }
    CHECK_EQ(served[0], 5);
    CHECK_EQ(served[1], 5);
    for (int i = 0; i < 10; i++) CHECK_EQ(net()->close(clients[i]), 0);
}

TEST("listeners that share a port take turns") { wire_run_well(&(struct wire){0}, share_port); }

static void use_closed(void *argument)
{
    int ends[2];
    (void)argument;
    CHECK_EQ(net()->pair(ends), 0);
    close_both(ends);
    CHECK_EQ(net()->close(ends[0]), -EBADF);
    CHECK_EQ(put(ends[0], "x", 1), -EBADF);
    CHECK_EQ(net()->socket(JANUS_FAMILY_IPV4, SOCK_STREAM), ends[1]); /* the last one closed */
    CHECK_EQ(net()->close(ends[1]), 0);
    CHECK_EQ(net()->socket(JANUS_FAMILY_NONE, SOCK_STREAM), -EAFNOSUPPORT);
    CHECK_EQ(put(1, "x", 1), -EBADF); /* a real one */
}

TEST("a closed descriptor is bad, and the first that is given out again")
{
    wire_run_well(&(struct wire){0}, use_closed);
}

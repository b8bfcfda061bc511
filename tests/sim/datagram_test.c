/* SPDX-License-Identifier: MIT */
/* Datagrams and names of the simulated network. */
#include "wire.h"

static int mail_at(janus_address at)
{
    int fd = net()->socket((janus_family)at.family, SOCK_DGRAM);
    CHECK(fd >= JRT_NET_SIMULATED);
    CHECK_EQ(net()->bind(fd, &at), 0);
    return fd;
}

static ptrdiff_t mail(int fd, const char *text, janus_address to)
{
    struct iovec piece = {(void *)(uintptr_t)text, strlen(text)};
    return net()->send_to(fd, &piece, &to);
}

/* Receives a datagram, and compares it with a text. */
static janus_address expect_mail(int fd, const char *text)
{
    char          bytes[64] = "";
    bool          cut = true;
    janus_address from;
    struct iovec  piece = {bytes, sizeof bytes - 1};
    CHECK_EQ(net()->receive_from(fd, &piece, &from, &cut), (ptrdiff_t)strlen(text));
    CHECK_STR(bytes, text);
    CHECK(!cut);
    return from;
}

static void expect_no_mail(int fd)
{
    char          byte;
    bool          cut;
    janus_address from;
    struct iovec  piece = {&byte, 1};
    CHECK_EQ(net()->receive_from(fd, &piece, &from, &cut), -EAGAIN);
}

static void overtake(void *argument)
{
    int a = net()->socket(JANUS_FAMILY_IPV4, SOCK_DGRAM), b = mail_at(loopback(53));
    (void)argument;
    CHECK_EQ(mail(a, "first", loopback(53)), 5);
    CHECK_EQ(mail(a, "second", loopback(53)), 6);
    expect_no_mail(b);
    await(b, JANUS_IO_READ);
    janus_address from = expect_mail(b, "second");
    CHECK_EQ(from.port, 32768);
    CHECK_EQ(memcmp(from.bytes, (uint8_t[]){127, 0, 0, 1}, 4), 0);
    expect_no_mail(b);
    await(b, JANUS_IO_READ);
    (void)expect_mail(b, "first");
    CHECK_EQ(mail(b, "", from), 0); /* an empty one is a datagram, too */
    await(a, JANUS_IO_READ);
    (void)expect_mail(a, "");
    CHECK_EQ(net()->close(a), 0);
    CHECK_EQ(net()->close(b), 0);
}

TEST("a datagram that travels longer is overtaken by the next")
{
    struct wire wire = {.delays = {3, 0}};
    wire_run_well(&wire, overtake);
    CHECK_STR(wire.words, "socket 1's first datagram travelled for 20 ms");
}

static void limits(void *argument)
{
    static char   bytes[65508];
    int           a = mail_at(loopback(52)), b = mail_at(loopback(53));
    bool          cut = false;
    janus_address to = loopback(53), from;
    struct iovec  all = {bytes, sizeof bytes}, few = {bytes, 10}, half = {bytes, 40000};
    (void)argument;
    CHECK_EQ(net()->send_to(a, &all, &to), -EMSGSIZE);
    CHECK_EQ(net()->send_to(a, &half, &to), 40000);
    CHECK_EQ(net()->send_to(a, &half, &to), 40000); /* has no room, and is lost */
    pass_ns(100 * wire_us);
    CHECK_EQ(net()->receive_from(b, &few, &from, &cut), 10);
    CHECK(cut);
    expect_no_mail(b);
    CHECK_EQ(net()->close(a), 0);
    CHECK_EQ(net()->close(b), 0);
}

TEST("a datagram is cut to the buffer, refused if too large, and lost where there is no room")
{
    wire_run_well(&(struct wire){0}, limits);
}

static void connected(void *argument)
{
    int           a = net()->socket(JANUS_FAMILY_IPV4, SOCK_DGRAM), b = mail_at(loopback(53));
    janus_address to = loopback(53), nowhere = loopback(54), local;
    (void)argument;
    CHECK_EQ(put(a, "x", 1), -EDESTADDRREQ);
    CHECK_EQ(net()->connect(a, &to), 0);
    CHECK_EQ(put(a, "hello", 5), 5);
    await(b, JANUS_IO_READ);
    expect(b, "hello");
    int c = mail_at(loopback(55)); /* a stranger */
    CHECK_EQ(net()->local(a, &local), 0);
    local.bytes[0] = 127, local.bytes[3] = 1;
    CHECK_EQ(mail(c, "no", local), 2);
    CHECK_EQ(mail(b, "yes", local), 3);
    pass_ns(100 * wire_us);
    (void)expect_mail(a, "yes");
    expect_no_mail(a);
    CHECK_EQ(net()->connect(a, &nowhere), 0);
    CHECK_EQ(put(a, "hello", 5), 5);
    await(a, JANUS_IO_READ);
    CHECK_EQ(put(a, "hello", 5), -ECONNREFUSED); /* of the one before */
    CHECK_EQ(net()->close(a), 0);
    CHECK_EQ(net()->close(b), 0);
    CHECK_EQ(net()->close(c), 0);
}

TEST("a connected datagram socket takes its peer's datagrams only, and learns that nobody is there")
{
    wire_run_well(&(struct wire){0}, connected);
}

static void local_mail(void *argument)
{
    static char    bytes[40000];
    janus_address  at = named(JANUS_FAMILY_ABSTRACT, "post");
    int            a = net()->socket(JANUS_FAMILY_UNIX, SOCK_DGRAM);
    struct iovec   half = {bytes, sizeof bytes};
    struct jrt_set set;
    (void)argument;
    CHECK_EQ(mail(a, "x", at), -ECONNREFUSED);
    CHECK_EQ(mail(a, "x", named(JANUS_FAMILY_UNIX, "/post")), -ENOENT);
    int b = mail_at(at);
    CHECK_EQ(net()->send_to(a, &half, &at), (ptrdiff_t)sizeof bytes);
    CHECK_EQ(net()->set_open(&set), 0);
    CHECK_EQ(net()->set_add(&set, a, 7), 0);
    CHECK_EQ(look(&set, 7), JRT_NET_WRITE);
    CHECK_EQ(net()->send_to(a, &half, &at), -EAGAIN); /* never lost */
    CHECK_EQ(look(&set, 7), 0);
    CHECK_EQ(get(b, bytes, sizeof bytes), (ptrdiff_t)sizeof bytes);
    CHECK_EQ(look(&set, 7), JRT_NET_WRITE);
    net()->set_close(&set);
    CHECK_EQ(net()->close(a), 0);
    CHECK_EQ(net()->close(b), 0);
}

TEST("Unix datagrams are never lost: their sender waits for room")
{
    wire_run_well(&(struct wire){.fault = JRT_FAULT_LOST}, local_mail);
}

static void lose_one(void *argument)
{
    int a = mail_at(loopback(52)), b = mail_at(loopback(53));
    (void)argument;
    CHECK_EQ(mail(a, "lost", loopback(53)), 4);
    CHECK_EQ(mail(a, "kept", loopback(53)), 4);
    pass_ns(100 * wire_us);
    (void)expect_mail(b, "kept");
    expect_no_mail(b);
    CHECK_EQ(net()->close(a), 0);
    CHECK_EQ(net()->close(b), 0);
}

static void double_one(void *argument)
{
    int a = mail_at(loopback(52)), b = mail_at(loopback(53));
    (void)argument;
    CHECK_EQ(mail(a, "twice", loopback(53)), 5);
    pass_ns(100 * wire_us);
    (void)expect_mail(b, "twice");
    (void)expect_mail(b, "twice");
    expect_no_mail(b);
    CHECK_EQ(net()->close(a), 0);
    CHECK_EQ(net()->close(b), 0);
}

TEST("a fault loses a datagram, or delivers it twice")
{
    struct wire wire = {.fault = JRT_FAULT_LOST};
    wire_run_well(&wire, lose_one);
    CHECK_STR(wire.words, "socket 1's first datagram was lost");
    wire = (struct wire){.fault = JRT_FAULT_LOST, .skip = 1};
    wire_run_well(&wire, double_one);
    CHECK_STR(wire.words, "socket 1's first datagram came twice");
}

/* Names. */

static void look_up(void *argument)
{
    janus_address out[4], first = v4(10, 0, 0, 1, 0), second = v4(10, 0, 0, 2, 0);
    (void)argument;
    uint64_t begun = now();
    CHECK_EQ(net()->look_up("10.1.2.3", "80", out, 4), 1);
    CHECK_EQ(memcmp(out[0].bytes, (uint8_t[]){10, 1, 2, 3}, 4), 0);
    CHECK_EQ(out[0].port, 80);
    CHECK_EQ(net()->look_up("::1", "https", out, 4), 1);
    CHECK_EQ(out[0].family, JANUS_FAMILY_IPV6);
    CHECK_EQ(out[0].port, 443);
    CHECK_EQ(net()->look_up("localhost", NULL, out, 4), 2);
    CHECK_EQ(now(), begun); /* nobody was asked */
    CHECK_EQ(net()->look_up("db.example", "80", out, 4), -ENOENT);
    CHECK(now() - begun >= 50 * wire_us);
    CHECK_EQ(jrt_sim_host_add("db.example", &first), 0);
    CHECK_EQ(jrt_sim_host_add("db.example", &second), 0);
    CHECK_EQ(net()->look_up("db.example", "80", out, 4), 2);
    CHECK_EQ(out[0].bytes[3], 1);
    CHECK_EQ(out[1].bytes[3], 2);
    CHECK_EQ(out[1].port, 80);
    CHECK_EQ(net()->look_up("db.example", "80", out, 1), 1);
    CHECK_EQ(net()->look_up("db.example", "no-such-service", out, 4), -ENOENT);
    CHECK_EQ(net()->look_up("db.example", "65536", out, 4), -ENOENT);
}

TEST("names are numbers, localhost, or in a table that the program fills")
{
    wire_run_well(&(struct wire){0}, look_up);
    janus_address at = loopback(0);
    CHECK_EQ(jrt_sim_host_add("elsewhere", &at), -ENOSYS);
}

static void look_up_in_vain(void *argument)
{
    janus_address out;
    (void)argument;
    CHECK_EQ(net()->look_up("db.example", "80", &out, 1), -EAGAIN);
}

TEST("a fault keeps a look-up from its answer")
{
    struct wire wire = {.fault = JRT_FAULT_REFUSE};
    wire_run_well(&wire, look_up_in_vain);
    CHECK_STR(wire.words, "a look-up got no answer");
}

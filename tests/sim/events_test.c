/* SPDX-License-Identifier: MIT */
/* Events of the simulated network, as an edge-triggered epoll set reports them. */
#include "wire.h"

static const uint32_t RW = JRT_NET_READ | JRT_NET_WRITE;

static struct jrt_set open_set(int fd, uint64_t cookie)
{
    struct jrt_set set;
    CHECK_EQ(net()->set_open(&set), 0);
    CHECK_EQ(net()->set_add(&set, fd, cookie), 0);
    return set;
}

static void add(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(put(ends[0], "early", 5), 5);
    pass_ns(100 * wire_us);
    struct jrt_set set = open_set(ends[1], 7);
    CHECK_EQ(net()->set_add(&set, ends[1], 8), -EEXIST);
    CHECK_EQ(look(&set, 7), RW);
    CHECK_EQ(look(&set, 7), 0); /* once */
    net()->set_remove(&set, ends[1]);
    CHECK_EQ(net()->set_add(&set, ends[1], 9), 0);
    CHECK_EQ(look(&set, 9), RW);
    net()->set_close(&set);
    close_both(ends);
}

TEST("a set reports once what is ready when a descriptor is added")
{
    wire_run_well(&(struct wire){0}, add);
}

static void edges(void *argument)
{
    int  ends[2];
    char bytes[16];
    (void)argument;
    join_over_tcp(ends);
    struct jrt_set set = open_set(ends[1], 7);
    CHECK_EQ(look(&set, 7), JRT_NET_WRITE);
    CHECK_EQ(put(ends[0], "one", 3), 3);
    CHECK_EQ(look(&set, 7), 0); /* on its way */
    CHECK_EQ(look_forward(&set, 7), RW);
    CHECK_EQ(put(ends[0], "two", 3), 3); /* the first is not read yet: one more edge */
    CHECK_EQ(look_forward(&set, 7), RW);
    CHECK_EQ(get(ends[1], bytes, sizeof bytes), 6);
    CHECK_EQ(put(ends[0], "three", 5), 5);
    pass_ns(100 * wire_us);
    CHECK_EQ(get(ends[1], bytes, sizeof bytes), 5); /* before the event was taken */
    CHECK_EQ(look(&set, 7), JRT_NET_WRITE);         /* it says what is true now */
    net()->set_close(&set);
    close_both(ends);
}

TEST("each arrival is one event, and an event reports what is true when it is taken")
{
    wire_run_well(&(struct wire){0}, edges);
}

/* K1. */
static void data_and_end(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends);
    struct jrt_set set = open_set(ends[1], 7);
    CHECK_EQ(look(&set, 7), JRT_NET_WRITE);
    CHECK_EQ(put(ends[0], "last", 4), 4);
    CHECK_EQ(net()->close(ends[0]), 0);
    CHECK_EQ(look_forward(&set, 7), RW | JRT_NET_RDHUP);
    expect(ends[1], "last");
    pass_ns(1000 * wire_us);
    CHECK_EQ(look(&set, 7), 0); /* no further edge */
    expect(ends[1], "");
    CHECK_EQ(net()->close(ends[1]), 0);
    net()->set_close(&set);
}

TEST("bytes and the end that arrive together are one event")
{
    wire_run_well(&(struct wire){0}, data_and_end);
}

static void cut_at_end(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(put(ends[0], "last", 4), 4);
    CHECK_EQ(net()->close(ends[0]), 0);
    await(ends[1], JANUS_IO_READ);
    expect(ends[1], "l");
    expect(ends[1], "ast"); /* a reader that saw RDHUP tries again: no event would come */
    expect(ends[1], "");
    CHECK_EQ(net()->close(ends[1]), 0);
}

TEST("a read that is cut after the end has arrived leaves the rest readable")
{
    struct wire wire = {.cuts = {0, 1}};
    wire_run_well(&wire, cut_at_end);
}

static void hang_up(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends);
    struct jrt_set set = open_set(ends[1], 7);
    CHECK_EQ(look(&set, 7), JRT_NET_WRITE);
    CHECK_EQ(net()->shutdown(ends[0], JANUS_IO_WRITE), 0);
    CHECK_EQ(look_forward(&set, 7), RW | JRT_NET_RDHUP); /* reading only */
    CHECK_EQ(net()->shutdown(ends[1], JANUS_IO_WRITE), 0);
    CHECK_EQ(look(&set, 7), RW | JRT_NET_RDHUP | JRT_NET_HUP);
    net()->set_close(&set);
    close_both(ends);
}

TEST("RDHUP concerns reading, and HUP both directions")
{
    wire_run_well(&(struct wire){0}, hang_up);
}

static void be_reset(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends);
    struct jrt_set set = open_set(ends[0], 7);
    CHECK_EQ(look(&set, 7), JRT_NET_WRITE);
    CHECK_EQ(put(ends[0], "unread", 6), 6);
    pass_ns(100 * wire_us);
    CHECK_EQ(net()->close(ends[1]), 0);
    CHECK_EQ(look_forward(&set, 7), RW | JRT_NET_RDHUP | JRT_NET_HUP | JRT_NET_ERR);
    CHECK_EQ(net()->error(ends[0]), -ECONNRESET);
    net()->set_close(&set);
    CHECK_EQ(net()->close(ends[0]), 0);
}

TEST("a reset is one event with all bits") { wire_run_well(&(struct wire){0}, be_reset); }

static void connects(void *argument)
{
    int            listener = listen_at(loopback(80));
    struct jrt_set set = open_set(listener, 1);
    (void)argument;
    CHECK_EQ(look(&set, 1), 0);
    int client = dial(loopback(80), -EINPROGRESS);
    CHECK_EQ(net()->set_add(&set, client, 2), 0);
    struct jrt_net_event events[4];
    CHECK_EQ(net()->set_wait(&set, events, 4, JRT_NEVER), 2);
    CHECK_EQ(events[0].what + events[1].what, RW);
    int refused = dial(loopback(81), -EINPROGRESS);
    CHECK_EQ(net()->set_add(&set, refused, 3), 0);
    CHECK_EQ(look_forward(&set, 3), RW | JRT_NET_RDHUP | JRT_NET_HUP | JRT_NET_ERR);
    int fresh = net()->socket(JANUS_FAMILY_IPV4, SOCK_STREAM);
    CHECK_EQ(net()->set_add(&set, fresh, 4), 0);
    CHECK_EQ(look(&set, 4), JRT_NET_WRITE | JRT_NET_HUP);
    CHECK_EQ(net()->close(fresh), 0); /* leaves the set */
    CHECK_EQ(net()->close(refused), 0);
    CHECK_EQ(net()->close(client), 0);
    CHECK_EQ(net()->close(listener), 0);
    pass_ns(1000 * wire_us);
    CHECK_EQ(look(&set, 0), 0);
    net()->set_close(&set);
}

TEST("connections and refusals are events, and a closed descriptor has none")
{
    wire_run_well(&(struct wire){0}, connects);
}

static void room(void *argument)
{
    static char bytes[65536];
    int         ends[2];
    (void)argument;
    join_over_tcp(ends);
    struct jrt_set set = open_set(ends[0], 7);
    CHECK_EQ(look(&set, 7), JRT_NET_WRITE);
    CHECK_EQ(put(ends[0], bytes, sizeof bytes), (ptrdiff_t)sizeof bytes);
    pass_ns(100 * wire_us);
    CHECK_EQ(get(ends[1], bytes, 40000), 40000);
    pass_ns(100 * wire_us);
    CHECK_EQ(look(&set, 7), 0); /* it has not met the limit */
    CHECK_EQ(put(ends[0], bytes, sizeof bytes), 40000);
    pass_ns(100 * wire_us);
    CHECK_EQ(get(ends[1], bytes, sizeof bytes), (ptrdiff_t)sizeof bytes);
    CHECK_EQ(look_forward(&set, 7), JRT_NET_WRITE);
    net()->set_close(&set);
    close_both(ends);
}

TEST("a sender gets an event for new room only after it found none")
{
    wire_run_well(&(struct wire){0}, room);
}

static void pipes(void *argument)
{
    int ends[2];
    (void)argument;
    CHECK_EQ(net()->pipe(ends), 0);
    struct jrt_set reader = open_set(ends[0], 1), writer = open_set(ends[1], 2);
    CHECK_EQ(look(&reader, 1), 0);
    CHECK_EQ(look(&writer, 2), JRT_NET_WRITE);
    struct iovec piece = {"hello", 5};
    CHECK_EQ(net()->send(ends[1], false, &piece, 1), 5);
    CHECK_EQ(look(&reader, 1), JRT_NET_READ);
    CHECK_EQ(net()->close(ends[1]), 0);
    CHECK_EQ(look(&reader, 1), JRT_NET_READ | JRT_NET_HUP);
    CHECK_EQ(net()->close(ends[0]), 0);
    CHECK_EQ(net()->pipe(ends), 0);
    CHECK_EQ(net()->set_add(&writer, ends[1], 3), 0);
    CHECK_EQ(look(&writer, 3), JRT_NET_WRITE);
    CHECK_EQ(net()->close(ends[0]), 0);
    CHECK_EQ(look(&writer, 3), JRT_NET_WRITE | JRT_NET_ERR);
    CHECK_EQ(net()->close(ends[1]), 0);
    net()->set_close(&reader);
    net()->set_close(&writer);
}

TEST("a pipe hangs up without a writer, and errs without a reader")
{
    wire_run_well(&(struct wire){0}, pipes);
}

/* Waiting. */

static void deadlines(void *argument)
{
    int                  ends[2];
    struct jrt_net_event event;
    (void)argument;
    join_over_tcp(ends);
    struct jrt_set set = open_set(ends[1], 7);
    CHECK_EQ(look(&set, 7), JRT_NET_WRITE);
    CHECK(net()->is_quiet());
    uint64_t until = now() + 3000 * wire_us;
    CHECK_EQ(net()->set_wait(&set, &event, 1, until), 0);
    CHECK(now() >= until);
    CHECK(now() < until + wire_us);
    net()->set_ring(&set);
    CHECK_EQ(look(&set, 7), 0); /* a look does not take the ring */
    until = now();
    CHECK_EQ(net()->set_wait(&set, &event, 1, JRT_NEVER), 0); /* it came before */
    CHECK_EQ(now(), until);
    CHECK_EQ(put(ends[0], "x", 1), 1);
    CHECK(!net()->is_quiet());
    CHECK_EQ(net()->set_wait(&set, &event, 1, now() + 10 * wire_us), 0); /* too early */
    CHECK_EQ(look_forward(&set, 7), RW);
    net()->set_close(&set);
    close_both(ends);
}

TEST("a wait ends at its deadline, at the next arrival or by a ring")
{
    wire_run_well(&(struct wire){0}, deadlines);
}

struct sleeper {
    struct jrt_os_thread thread;
    struct jrt_set       set;
    struct jrt_net_bell  bell;
    int                  fd, count;
    uint64_t             woke;
    uint32_t             what;
};

static void sleep_in_set(void *argument)
{
    struct sleeper      *sleeper = argument;
    struct jrt_net_event event = {0};
    sleeper->count = net()->set_wait(&sleeper->set, &event, 1, JRT_NEVER);
    sleeper->woke = now();
    sleeper->what = event.what;
}

static void wake_sleepers(void *argument)
{
    int            ends[2];
    struct sleeper sleeper = {0};
    (void)argument;
    join_over_tcp(ends);
    sleeper.set = open_set(ends[1], 7);
    CHECK_EQ(look(&sleeper.set, 7), JRT_NET_WRITE);
    CHECK(jrt_os_thread_start(&sleeper.thread, sleep_in_set, &sleeper, "sleeper"));
    pass_ns(1000 * wire_us);
    uint64_t sent = now();
    CHECK_EQ(put(ends[0], "x", 1), 1);
    pass_ns(1000 * wire_us);
    jrt_os_thread_join(&sleeper.thread);
    CHECK_EQ(sleeper.count, 1);
    CHECK_EQ(sleeper.what, RW);
    CHECK(sleeper.woke - sent >= 49 * wire_us && sleeper.woke - sent < 55 * wire_us);
    CHECK(jrt_os_thread_start(&sleeper.thread, sleep_in_set, &sleeper, "sleeper"));
    pass_ns(1000 * wire_us);
    net()->set_ring(&sleeper.set);
    jrt_os_thread_join(&sleeper.thread);
    CHECK_EQ(sleeper.count, 0);
    net()->set_close(&sleeper.set);
    close_both(ends);
}

TEST("a thread that sleeps in a set wakes when bytes that were sent later arrive, and by a ring")
{
    wire_run_well(&(struct wire){0}, wake_sleepers);
}

static void sleep_for_one(void *argument)
{
    struct sleeper *sleeper = argument;
    sleeper->count =
        net()->wait_one(sleeper->fd, JANUS_IO_READ, now() + 5000 * wire_us, &sleeper->bell);
    sleeper->woke = now();
}

static void start(struct sleeper *sleeper)
{
    CHECK(jrt_os_thread_start(&sleeper->thread, sleep_for_one, sleeper, "sleeper"));
    pass_ns(1000 * wire_us);
}

static void wake_ones(void *argument)
{
    int            ends[2];
    struct sleeper sleeper = {0};
    (void)argument;
    join_over_tcp(ends);
    sleeper.fd = ends[1];
    CHECK_EQ(net()->bell_open(&sleeper.bell), 0);
    start(&sleeper); /* nothing comes */
    jrt_os_thread_join(&sleeper.thread);
    CHECK_EQ(sleeper.count, -ETIMEDOUT);
    start(&sleeper); /* a byte comes */
    uint64_t sent = now();
    CHECK_EQ(put(ends[0], "x", 1), 1);
    jrt_os_thread_join(&sleeper.thread);
    CHECK_EQ(sleeper.count, 0);
    CHECK(sleeper.woke - sent >= 49 * wire_us && sleeper.woke - sent < 55 * wire_us);
    expect(ends[1], "x");
    start(&sleeper); /* it is closed */
    CHECK_EQ(net()->close(ends[1]), 0);
    jrt_os_thread_join(&sleeper.thread);
    CHECK_EQ(sleeper.count, 0);
    sleeper.fd = ends[0];
    pass_ns(100 * wire_us);
    expect(ends[0], "");
    CHECK_EQ(net()->close(ends[0]), 0);
    CHECK_EQ(net()->pair(ends), 0);
    sleeper.fd = ends[0];
    start(&sleeper); /* the bell rings */
    sent = now();
    net()->bell_ring(&sleeper.bell);
    jrt_os_thread_join(&sleeper.thread);
    CHECK_EQ(sleeper.count, 0);
    CHECK(sleeper.woke - sent < 10 * wire_us);
    net()->bell_close(&sleeper.bell);
    close_both(ends);
}

TEST("a thread that waits for one descriptor wakes by bytes, a close, its bell or its deadline")
{
    wire_run_well(&(struct wire){0}, wake_ones);
}

static void wait_in_vain(void *argument)
{
    int                  ends[2];
    struct jrt_net_event event;
    (void)argument;
    join_over_tcp(ends);
    struct jrt_set set = open_set(ends[1], 7);
    CHECK_EQ(look(&set, 7), JRT_NET_WRITE);
    (void)net()->set_wait(&set, &event, 1, JRT_NEVER);
}

TEST("a world in which everybody waits for bytes that nobody sends is stuck")
{
    struct wire wire = {0};
    wire_run(&wire, wait_in_vain);
    CHECK_EQ(wire.end, JRT_WORLD_STUCK);
}

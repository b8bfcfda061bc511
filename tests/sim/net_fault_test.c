/* SPDX-License-Identifier: MIT */
/* Faults of the simulated network, what reports say about them, and what a world leaves open. */
#include "wire.h"

#include <janusrt/explore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void reset_at_receive(void *argument)
{
    int  ends[2];
    char byte;
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(get(ends[0], &byte, 1), -ECONNRESET);
    CHECK_EQ(get(ends[0], &byte, 1), 0);
    CHECK_EQ(put(ends[0], "x", 1), -EPIPE);
    await(ends[1], JANUS_IO_READ);
    CHECK_EQ(put(ends[1], "x", 1), -ECONNRESET);
    close_both(ends);
}

static void reset_at_send(void *argument)
{
    int  ends[2];
    char byte;
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(put(ends[0], "lost", 4), 4);
    CHECK_EQ(put(ends[0], "too", 3), 3); /* nothing follows a reset, and no end */
    CHECK_EQ(net()->shutdown(ends[0], JANUS_IO_WRITE), 0);
    await(ends[1], JANUS_IO_READ);
    CHECK_EQ(get(ends[1], &byte, 1), -ECONNRESET);
    CHECK_EQ(get(ends[0], &byte, 1), -ECONNRESET);
    close_both(ends);
}

TEST("a fault resets a connection: a read notices at once, a write at the next call")
{
    struct wire wire = {.fault = JRT_FAULT_RESET};
    wire_run_well(&wire, reset_at_receive);
    CHECK_STR(wire.words, "connection 1 was reset");
    wire_run_well(&(struct wire){.fault = JRT_FAULT_RESET}, reset_at_send);
}

static void stall(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends);
    uint64_t begun = now();
    CHECK_EQ(put(ends[0], "late", 4), 4);
    CHECK_EQ(put(ends[1], "late", 4), 4); /* both directions */
    await(ends[1], JANUS_IO_READ);
    CHECK(now() - begun >= 20000000 * wire_us);
    CHECK(now() - begun < 20001000 * wire_us);
    expect(ends[1], "late");
    await(ends[0], JANUS_IO_READ);
    expect(ends[0], "late");
    CHECK(now() - begun < 20001000 * wire_us);
    close_both(ends);
}

TEST("a fault stalls a connection in both directions")
{
    struct wire wire = {.fault = JRT_FAULT_STALL, .delays = {0, 2}};
    wire_run_well(&wire, stall);
    CHECK_STR(wire.words, "the stall at client 1 lasted 20 s");
}

static void refuse(void *argument)
{
    int listener = listen_at(loopback(80)), client = dial(loopback(80), -EINPROGRESS);
    (void)argument;
    await(client, JANUS_IO_WRITE);
    CHECK_EQ(net()->error(client), -ECONNREFUSED);
    CHECK_EQ(net()->accept(listener, NULL), -EAGAIN);
    janus_address at = loopback(80);
    CHECK_EQ(net()->connect(client, &at), -EINPROGRESS); /* may try again */
    await(client, JANUS_IO_WRITE);
    CHECK_EQ(net()->error(client), 0);
    CHECK_EQ(net()->close(accept_one(listener)), 0);
    CHECK_EQ(net()->close(client), 0);
    CHECK_EQ(net()->close(listener), 0);
}

TEST("a fault refuses a connect")
{
    struct wire wire = {.fault = JRT_FAULT_REFUSE};
    wire_run_well(&wire, refuse);
    CHECK_STR(wire.words, "client 1's connect was refused");
}

/* The opportunity at which the fault happens. */
static void no_descriptor(void *argument)
{
    struct wire   *wire = argument;
    janus_address  at = loopback(80);
    struct jrt_set set;
    int            ends[2];
    switch (wire->skip) {
    case 0: CHECK_EQ(net()->socket(JANUS_FAMILY_IPV4, SOCK_STREAM), -EMFILE); return;
    case 1:
        CHECK_EQ(net()->pair(ends), 0);
        close_both(ends);
        CHECK_EQ(net()->pipe(ends), -EMFILE);
        return;
    default: break;
    }
    int listener = listen_at(at), client = dial(at, -EINPROGRESS);
    if (wire->skip == 0) CHECK_EQ(net()->set_open(&set), -EMFILE);
    CHECK_EQ(net()->set_open(&set), 0);
    CHECK_EQ(net()->set_add(&set, listener, 1), 0);
    CHECK_EQ(look_forward(&set, 1), JRT_NET_READ);
    if (wire->fault != 0) CHECK_EQ(net()->accept(listener, NULL), -EMFILE);
    CHECK_EQ(look(&set, 1), 0); /* K13: no edge */
    int server = net()->accept(listener, NULL);
    CHECK(server >= 0); /* it was still there */
    net()->set_close(&set);
    CHECK_EQ(net()->close(server), 0);
    CHECK_EQ(net()->close(client), 0);
    CHECK_EQ(net()->close(listener), 0);
}

TEST("a fault takes all descriptors, and a connection that cannot be accepted stays in the queue")
{
    for (uint32_t skip = 0; skip < 4; skip++) {
        struct wire wire = {.fault = JRT_FAULT_DESCRIPTOR, .skip = skip};
        wire_run_well(&wire, no_descriptor);
        CHECK_EQ(wire.fault, 0);
        CHECK_STR(wire.words, "the system had no descriptor left");
    }
}

static void spurious(void *argument)
{
    int            ends[2];
    struct jrt_set set;
    char           byte;
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(net()->set_open(&set), 0);
    CHECK_EQ(net()->set_add(&set, ends[0], 7), 0);
    CHECK_EQ(look(&set, 7), JRT_NET_WRITE);
    CHECK_EQ(look_forward(&set, 7), JRT_NET_READ | JRT_NET_WRITE);
    CHECK_EQ(get(ends[0], &byte, 1), -EAGAIN);
    net()->set_close(&set);
    close_both(ends);
}

static void spurious_wait(void *argument)
{
    int  ends[2];
    char byte;
    (void)argument;
    CHECK_EQ(net()->pair(ends), 0);
    await(ends[0], JANUS_IO_READ);
    CHECK_EQ(get(ends[0], &byte, 1), -EAGAIN);
    close_both(ends);
}

TEST("a fault is an event without a reason")
{
    struct wire wire = {.fault = JRT_FAULT_EDGE, .skip = 1}; /* the wait for a connection */
    wire_run_well(&wire, spurious);
    CHECK_STR(wire.words, "client 1 had an event for no reason");
    wire = (struct wire){.fault = JRT_FAULT_EDGE};
    wire_run_well(&wire, spurious_wait);
    CHECK_STR(wire.words, "pair 1's first end had an event for no reason");
}

/* Leaks. */

/* What a call writes to standard error. The caller frees it. */
static char *heard(void (*call)(void *), void *argument)
{
    int   file = memfd_create("stderr", 0), before = dup(2);
    char *text = calloc(1, 8192);
    CHECK(file >= 0 && before >= 0 && text != NULL);
    CHECK_EQ(fflush(stderr), 0);
    CHECK_EQ(dup2(file, 2), 2);
    call(argument);
    CHECK_EQ(fflush(stderr), 0);
    CHECK_EQ(dup2(before, 2), 2);
    CHECK(pread(file, text, 8191, 0) >= 0);
    (void)close(file);
    (void)close(before);
    return text;
}

static void leave_open(void *argument)
{
    int ends[2];
    (void)argument;
    join_over_tcp(ends);
    CHECK_EQ(put(ends[0], "unread", 6), 6);
    jrt_sim_label(ends[1], "shop.c:12");
    CHECK_EQ(net()->socket(JANUS_FAMILY_IPV4, SOCK_DGRAM), JRT_NET_SIMULATED);
}

static void leave_all_open(void *argument) { wire_run_well(argument, leave_open); }

static void be_given_up(void *argument)
{
    int ends[2];
    (void)argument;
    CHECK_EQ(net()->pair(ends), 0);
    await(ends[0], JANUS_IO_READ);
}

static void leave_in_the_middle(void *argument)
{
    wire_run(argument, be_given_up);
    CHECK_EQ(((struct wire *)argument)->end, JRT_WORLD_STUCK);
}

TEST("a world reports the descriptors that it ends with, unless it was given up")
{
    struct wire wire = {0};
    char       *text = heard(leave_all_open, &wire);
    CHECK_STR(text, "janusrt: a simulated run ended: 3 descriptors were not closed: socket 1, "
                    "client 1, server 1 (shop.c:12) with 6 unread bytes\n");
    free(text);
    text = heard(leave_in_the_middle, &wire);
    CHECK_STR(text, "");
    free(text);
}

/* Exploring. */

static int64_t leak(void *argument)
{
    int ends[2];
    (void)argument;
    CHECK_EQ(net()->pair(ends), 0);
    (void)net()->close(ends[0]);
    return 0;
}

TEST("an explorer counts an open descriptor as a leak")
{
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.quiet = true), leak, NULL, &result),
             JANUS_CHILD_FAILED);
    CHECK_EQ(result.failing, JANUS_FAILING_LEAK);
    CHECK_STR(result.message, "1 descriptor was not closed: pair 1's second end");
    free(result.replay);
}

/* Expects that a read gets all that was written. */
static int64_t trust_reads(void *argument)
{
    char bytes[64];
    int  ends[2];
    (void)argument;
    join_over_tcp(ends);
    CHECK(put(ends[0], "0123456789", 10) != 0);
    await(ends[1], JANUS_IO_READ);
    ptrdiff_t got = get(ends[1], bytes, sizeof bytes);
    close_both(ends);
    return got == 10 ? 0 : -100;
}

/* Expects that connections hold. */
static int64_t trust_connections(void *argument)
{
    char      byte;
    int       ends[2];
    ptrdiff_t got = 0;
    (void)argument;
    join_over_tcp(ends);
    for (int i = 0; i < 5 && got >= 0; i++) {
        CHECK(put(ends[0], "x", 1) != 0);
        (void)net()->wait_one(ends[1], JANUS_IO_READ, JRT_NEVER, NULL);
        got = get(ends[1], &byte, 1);
    }
    close_both(ends);
    return got == -ECONNRESET ? -100 : 0;
}

static void explore_reads(void *argument)
{
    CHECK_EQ(janus_explore(NULL, trust_reads, NULL, argument), JANUS_CHILD_FAILED);
}

static void explore_connections(void *argument)
{
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.faults = JANUS_FAULT_RESET, .faults_every = 10),
                           trust_connections, NULL, argument),
             JANUS_CHILD_FAILED);
}

TEST("an explorer minimises to one sentence about the network, and replays it")
{
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    char                *text = heard(explore_reads, &result);
    CHECK_EQ(result.choices_kept, 1);
    CHECK(strstr(text, ": server 1's first read got ") != NULL ||
          strstr(text, ": client 1's first write took ") != NULL);
    free(text);
    janus_explore_result again = JANUS_EXPLORE_RESULT();
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.quiet = true, .replay = result.replay),
                           trust_reads, NULL, &again),
             JANUS_CHILD_FAILED);
    CHECK_EQ(again.hash, result.hash);
    free(again.replay);
    free(result.replay);
    text = heard(explore_connections, &result);
    CHECK_EQ(result.choices_kept, 1);
    CHECK(strstr(text, ": connection 1 was reset\n") != NULL);
    free(text);
    free(result.replay);
}

TEST("a search of all schedules tries short transfers and delays, and ends")
{
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.quiet = true, .depth = 1,
                                                 .strategy = JANUS_STRATEGY_EXHAUSTIVE),
                           trust_reads, NULL, &result),
             JANUS_CHILD_FAILED);
    free(result.replay);
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.quiet = true, .depth = 1, .worker_count = 1,
                                                 .strategy = JANUS_STRATEGY_EXHAUSTIVE),
                           trust_connections, NULL, &result),
             JANUS_OK);
    CHECK(result.complete);
}

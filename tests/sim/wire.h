/* SPDX-License-Identifier: MIT */
/* What the tests of the simulated network share: a world whose choices a test lists, and short
 * names for the calls of the network. */
#ifndef JANUSRT_TESTS_SIM_WIRE_H
#define JANUSRT_TESTS_SIM_WIRE_H

#include "harness.h"
#include "sim/net.h"
#include "sim/world.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { WIRE_ANSWERS = 16 };

static const uint64_t wire_us = 1000;

/* Decides as listed; every other choice is the usual one. */
struct wire {
    struct jrt_strategy strategy; /* first */
    uint32_t            cuts[WIRE_ANSWERS], delays[WIRE_ANSWERS];
    uint32_t            fault; /* enum jrt_fault: happens once, */
    uint32_t            skip;  /* after this many opportunities */
    uint32_t            cut_count, delay_count;
    char                words[JRT_SIM_WORDS]; /* of the last unusual choice */
    uint64_t            hash;
    enum jrt_world_end  end;
};

static inline uint32_t wire_answer(struct wire *wire, enum jrt_choice kind)
{
    switch (kind) {
    case JRT_CHOOSE_CUT: return wire->cut_count < WIRE_ANSWERS ? wire->cuts[wire->cut_count++] : 0;
    case JRT_CHOOSE_DELAY:
        return wire->delay_count < WIRE_ANSWERS ? wire->delays[wire->delay_count++] : 0;
    case JRT_CHOOSE_FAULT:
        if (jrt_world_now()->fault != wire->fault) return 0;
        if (wire->skip > 0) return wire->skip--, 0;
        wire->fault = 0;
        return 1;
    default: return 0;
    }
}

static inline uint32_t wire_decide(struct jrt_strategy *strategy, enum jrt_choice kind,
                                   uint32_t count, const uint32_t *who, bool must)
{
    struct wire *wire = (struct wire *)strategy;
    uint32_t     answer = wire_answer(wire, kind);
    (void)who, (void)must;
    if (answer != 0) {
        (void)jrt_sim_words(jrt_world_now(), kind, answer, wire->words, sizeof wire->words);
    }
    return answer < count ? answer : 0;
}

/* Runs `main` in a world. */
static inline void wire_run(struct wire *wire, void (*main)(void *))
{
    wire->strategy =
        (struct jrt_strategy){.decide = wire_decide, .faults = wire->fault, .faults_every = 2};
    struct jrt_world_run run = {.strategy = &wire->strategy,
                                .max_steps = 100000000,
                                .max_time_ns = UINT64_C(3600) * 1000000000,
                                .main = main,
                                .argument = wire};
    wire->end = jrt_world_run(&run);
    wire->hash = run.hash;
}

static inline void wire_run_well(struct wire *wire, void (*main)(void *))
{
    wire_run(wire, main);
    CHECK_EQ(wire->end, JRT_WORLD_DONE);
}

/* The network. */

static inline const struct jrt_net *net(void) { return jrt_net(); }

static inline uint64_t now(void) { return jrt_clock_now_ns(); }

/* Lets simulated time pass. */
static inline void pass_ns(uint64_t ns)
{
    _Atomic(uint32_t) word = 0;
    uint64_t          until = now() + ns;
    while (now() < until) (void)jrt_futex_wait_until(&word, 0, until);
}

static inline ptrdiff_t put(int fd, const char *bytes, size_t count)
{
    struct iovec piece = {(void *)(uintptr_t)bytes, count};
    return net()->send(fd, true, &piece, 1);
}

static inline ptrdiff_t get(int fd, char *bytes, size_t max)
{
    struct iovec piece = {bytes, max};
    return net()->receive(fd, true, &piece, 1);
}

/* Receives, and compares with a text. */
static inline void expect(int fd, const char *text)
{
    char      bytes[256] = "";
    ptrdiff_t got = get(fd, bytes, sizeof bytes - 1);
    CHECK_EQ(got, (ptrdiff_t)strlen(text));
    CHECK_STR(bytes, text);
}

static inline janus_address v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port)
{
    return (janus_address){
        .family = JANUS_FAMILY_IPV4, .count = 4, .port = port, .bytes = {a, b, c, d}};
}

static inline janus_address loopback(uint16_t port) { return v4(127, 0, 0, 1, port); }

static inline janus_address named(janus_family family, const char *name)
{
    janus_address at = {.family = (uint8_t)family, .count = (uint8_t)strlen(name)};
    memcpy(at.bytes, name, strlen(name));
    return at;
}

static inline int listen_at(janus_address at)
{
    int fd = net()->socket((janus_family)at.family, SOCK_STREAM);
    CHECK(fd >= JRT_NET_SIMULATED);
    CHECK_EQ(net()->bind(fd, &at), 0);
    CHECK_EQ(net()->listen(fd, 16), 0);
    return fd;
}

/* Begins to connect. */
static inline int dial(janus_address to, int expected)
{
    int fd = net()->socket((janus_family)to.family, SOCK_STREAM);
    CHECK(fd >= JRT_NET_SIMULATED);
    CHECK_EQ(net()->connect(fd, &to), expected);
    return fd;
}

static inline void await(int fd, uint32_t ways)
{
    CHECK_EQ(net()->wait_one(fd, ways, JRT_NEVER, NULL), 0);
}

static inline int accept_one(int listener)
{
    await(listener, JANUS_IO_READ);
    int fd = net()->accept(listener, NULL);
    CHECK(fd >= 0);
    return fd;
}

/* out[0] is the client, out[1] the server's end. */
static inline void join_over_tcp(int out[2])
{
    int listener = listen_at(loopback(80));
    out[0] = dial(loopback(80), -EINPROGRESS);
    out[1] = accept_one(listener);
    await(out[0], JANUS_IO_WRITE);
    CHECK_EQ(net()->error(out[0]), 0);
    CHECK_EQ(net()->close(listener), 0);
}

static inline void close_both(const int ends[2])
{
    CHECK_EQ(net()->close(ends[0]), 0);
    CHECK_EQ(net()->close(ends[1]), 0);
}

/* Looks at a set and returns what its only event says; 0: no event has come. */
static inline uint32_t look(struct jrt_set *set, uint64_t cookie)
{
    struct jrt_net_event events[4];
    int                  count = net()->set_wait(set, events, 4, 0);
    if (count == 0) return 0;
    CHECK_EQ(count, 1);
    CHECK_EQ(events[0].cookie, cookie);
    return events[0].what;
}

/* Waits in a set and returns what its only event says. */
static inline uint32_t look_forward(struct jrt_set *set, uint64_t cookie)
{
    struct jrt_net_event events[4];
    CHECK_EQ(net()->set_wait(set, events, 4, JRT_NEVER), 1);
    CHECK_EQ(events[0].cookie, cookie);
    return events[0].what;
}

#endif

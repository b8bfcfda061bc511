/* SPDX-License-Identifier: MIT */
/* Many clients of the simulated network, in one thread: the same seed gives the same run, no byte
 * is lost, and it is fast. */
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CLIENTS = 64, BYTES = 100, SMALL = 1000, REQUESTS = JRT_ASAN || JRT_TSAN ? 5000 : 100000 };

/* One end of a connection. A client sends BYTES and reads them back; the server echoes. */
struct end {
    int      fd;
    bool     client;
    uint32_t number; /* of the request */
    uint32_t sent, got;
    uint32_t to_echo;
    char     bytes[BYTES];
};

struct load {
    struct jrt_set set;
    struct end    *ends[2 * CLIENTS + 1];
    uint32_t       count, clients;
    int            listener;
    uint32_t       requests, done;
    uint64_t       calls;
};

static char byte_of(uint32_t number, uint32_t at) { return (char)(number * 31 + at * 7); }

static ptrdiff_t load_put(struct load *load, struct end *end, const char *bytes, uint32_t count)
{
    load->calls++;
    return put(end->fd, bytes, count);
}

static ptrdiff_t load_get(struct load *load, struct end *end, char *bytes, uint32_t count)
{
    load->calls++;
    return get(end->fd, bytes, count);
}

static void add_end(struct load *load, int fd, bool client)
{
    struct end *end = calloc(1, sizeof *end);
    CHECK(end != NULL && load->count < sizeof load->ends / sizeof load->ends[0]);
    end->fd = fd;
    end->client = client;
    load->ends[load->count] = end;
    CHECK_EQ(net()->set_add(&load->set, fd, ++load->count), 0);
    load->calls += 2;
}

static void finish(struct load *load, struct end *end)
{
    CHECK_EQ(net()->close(end->fd), 0);
    end->fd = -1;
    load->clients -= end->client;
    load->calls++;
}

/* Writes until the socket takes no more. */
static void write_client(struct load *load, struct end *end)
{
    while (end->sent < BYTES) {
        ptrdiff_t took = load_put(load, end, end->bytes + end->sent, BYTES - end->sent);
        if (took < 0) return;
        end->sent += (uint32_t)took;
    }
}

static void ask(struct load *load, struct end *end)
{
    if (load->requests == 0) {
        finish(load, end);
        return;
    }
    end->number = load->requests--;
    end->sent = end->got = 0;
    for (uint32_t i = 0; i < BYTES; i++) end->bytes[i] = byte_of(end->number, i);
    write_client(load, end);
}

static void run_client(struct load *load, struct end *end)
{
    char      bytes[BYTES];
    ptrdiff_t got;
    if (end->number == 0) ask(load, end);
    while (end->fd >= 0 && (got = load_get(load, end, bytes, BYTES - end->got)) > 0) {
        for (ptrdiff_t i = 0; i < got; i++) {
            CHECK_EQ(bytes[i], byte_of(end->number, end->got + (uint32_t)i));
        }
        end->got += (uint32_t)got;
        if (end->got < BYTES) continue;
        load->done++;
        ask(load, end);
    }
    if (end->fd >= 0) write_client(load, end);
}

static void run_server(struct load *load, struct end *end)
{
    for (;;) {
        while (end->sent < end->to_echo) {
            ptrdiff_t took = load_put(load, end, end->bytes + end->sent, end->to_echo - end->sent);
            if (took < 0) return;
            end->sent += (uint32_t)took;
        }
        ptrdiff_t got = load_get(load, end, end->bytes, BYTES);
        if (got == 0) finish(load, end);
        if (got <= 0) return;
        end->sent = 0;
        end->to_echo = (uint32_t)got;
    }
}

static void take_event(struct load *load, const struct jrt_net_event *event)
{
    if (event->cookie == 0) {
        for (int fd; (fd = net()->accept(load->listener, NULL)) >= 0;) add_end(load, fd, false);
        return;
    }
    struct end *end = load->ends[event->cookie - 1];
    if (end->fd < 0) return;
    if (end->client) {
        run_client(load, end);
    } else {
        run_server(load, end);
    }
}

/* Returns the hash of the world. */
static uint64_t run_load(struct load *load, uint64_t seed, uint32_t requests)
{
    struct jrt_world    *world = jrt_world_enter(seed);
    struct jrt_net_event events[32];
    *load = (struct load){.requests = requests, .clients = CLIENTS};
    CHECK(world != NULL);
    CHECK_EQ(net()->set_open(&load->set), 0);
    load->listener = listen_at(loopback(80));
    CHECK_EQ(net()->listen(load->listener, CLIENTS), 0);
    CHECK_EQ(net()->set_add(&load->set, load->listener, 0), 0);
    for (int i = 0; i < CLIENTS; i++) add_end(load, dial(loopback(80), -EINPROGRESS), true);
    for (uint32_t open = 1; open > 0;) {
        int count = net()->set_wait(&load->set, events, 32, JRT_NEVER);
        for (int i = 0; i < count; i++) take_event(load, &events[i]);
        load->calls++;
        open = load->clients;
        for (uint32_t i = 0; open == 0 && i < load->count; i++) open += load->ends[i]->fd >= 0;
    }
    CHECK_EQ(load->done, requests);
    net()->set_close(&load->set);
    CHECK_EQ(net()->close(load->listener), 0);
    for (uint32_t i = 0; i < load->count; i++) free(load->ends[i]);
    uint64_t hash = jrt_world_hash(world);
    jrt_world_leave(world);
    return hash;
}

/* Every build and every machine has the same run. A change of the network changes the number. */
static const uint64_t known_hash = UINT64_C(0x74e98d05dcde9966);

TEST("the same seed gives the same run in every build, and another seed another one")
{
    struct load load;
    uint64_t    first = run_load(&load, 7, SMALL);
    CHECK_EQ(first, known_hash);
    uint64_t calls = load.calls;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(run_load(&load, 7, SMALL), first);
        CHECK_EQ(load.calls, calls);
    }
    for (uint64_t seed = 8; seed < 20; seed++) CHECK(run_load(&load, seed, SMALL) != first);
}

static uint64_t cpu_ns(void)
{
    struct timespec time;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

TEST("64 clients make 100,000 requests with short transfers and delays, and no byte is lost")
{
    struct load load;
    uint64_t    begun = cpu_ns();
    (void)run_load(&load, 1, REQUESTS);
    double seconds = (double)(cpu_ns() - begun) / 1e9;
    printf("# %llu calls in %.2f s of CPU time: %.2f million a second\n",
           (unsigned long long)load.calls, seconds, (double)load.calls / seconds / 1e6);
}

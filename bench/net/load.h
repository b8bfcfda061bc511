/* SPDX-License-Identifier: MIT */
/*
 * A client that keeps a server busy: a number of connections, each with one request under way, over
 * epoll. Either a connection serves all its requests, or each request has its own.
 *
 * The client checks every answer. It gives up when a server has not answered for LOAD_PATIENCE_NS.
 */
#ifndef JANUSRT_BENCH_NET_LOAD_H
#define JANUSRT_BENCH_NET_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_PATIENCE_NS UINT64_C(10000000000)

struct load_plan {
    uint16_t port;
    bool     hello;       /* or echo */
    bool     http;        /* hello, and a server of HTTP decides about the head of its answer */
    bool     each_opens;  /* a connection for each request */
    unsigned connections; /* at a time, together */
    unsigned threads;
};

/* Latencies, in buckets that are 1/32 wide. */
enum { LOAD_BUCKETS = 60 * 32 };
struct load_report {
    uint64_t requests;
    uint64_t ns; /* until the last answer was there */
    uint64_t latency[LOAD_BUCKETS];
};

struct load;

/* Opens the connections and sends one request over each. Exits with a message if it cannot. */
struct load *load_open(const struct load_plan *plan);

/* Sends requests for `ns`, waits for the last answers, and adds to the report. */
void load_run(struct load *load, uint64_t ns, struct load_report *report);

void load_close(struct load *load);

/* Adds a latency to the buckets. */
void load_record(struct load_report *report, uint64_t ns);

/* Connects to 127.0.0.1 from 127.0.1.1 or one of the next addresses, by `source`, without waiting.
 * Returns the descriptor, or -1; errno says why. */
int load_connect(uint16_t port, unsigned source);

/* The latency that this share of the requests does not exceed, in nanoseconds. */
double load_percentile(const struct load_report *report, double percent);

/* Opens `count` connections to an echo server, or with `http` to a server of HTTP, from as many
 * source addresses as it takes. Sends one request over each, and leaves them open. `out` has room
 * for the descriptors. Returns how many it opened before the system refused one; errno says why. */
unsigned load_idle(uint16_t port, bool http, unsigned count, int *out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A client that sends requests at times of a schedule, whether or not earlier answers have come
 * (an open loop). The latency of a request counts from its time in the schedule. So a server that
 * stops for a while is charged for all requests of that while, also for those that the client could
 * not send. The times are those of a Poisson process, the same for all servers.
 *
 * Beside these requests others may disturb the server. The handlers of some connections compute
 * (/burn). Another connection streams (/stream).
 */
#ifndef JANUSRT_BENCH_NET_OPEN_H
#define JANUSRT_BENCH_NET_OPEN_H

#include "load.h"

struct open_plan {
    uint16_t port;
    unsigned connections; /* of the requests that count */
    unsigned burners;     /* further connections */
    bool     streams;     /* one more */
};

struct open_report {
    struct load_report others; /* the requests that count */
    uint64_t           burnt, streamed_bytes;
};

struct open_load;

/* Opens all connections. Exits with a message if it cannot. */
struct open_load *open_load_open(const struct open_plan *plan);

/* Sends requests for `ns`, waits for the last answers, and adds to the report. `rate` is how many
 * in a second; 0: each connection always has one under way, and its latency counts from the
 * sending. With `crowd` the burners and the stream run, too. */
void open_load_run(struct open_load *load, double rate, uint64_t ns, bool crowd,
                   struct open_report *report);

void open_load_close(struct open_load *load);

#endif

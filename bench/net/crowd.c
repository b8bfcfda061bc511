/* SPDX-License-Identifier: MIT */
/*
 * A contestant of the works `http_load` and `http_fair`: a server of HTTP, NET_SERVER, and in
 * `http_load` "raw epoll", NET_BASE, beside it.
 *
 * http_load: the latency of hello at 10, 50 and 100 % of load, and at 10,000 requests a second. All
 *     of a load is what the server answers when 64 connections always have a request under way,
 *     measured just before. A fast server answers as many as the client can ask for; then the
 *     client's queue is a part of the latency. An open loop sends the requests (open.h), over 64
 *     connections. Raw epoll takes turns at the same rate.
 *
 *     Timed: p50, p99            against raw epoll at the same rate
 *            p50 time, p99 time  absolute
 *            interval            between two requests, on average
 *
 * http_fair: 1000 connections. One of them streams a gigabyte, ten have handlers that compute for
 *     some milliseconds, again and again, and the others say hello. The others take turns of being
 *     alone and in this crowd. "busy": each of them always has a request under way. "calm": they
 *     send 1000 requests a second, all together, as an open loop.
 *
 *     Timed: p99             in the crowd, against alone
 *            p50 and p99, alone and in the crowd: absolute
 *            a MiB streamed, a burn: the time that each took, on average
 *
 *     nginx has no handlers. A location that compresses a text with gzip stands for those that
 *     compute. NET_FAIR is 0 for servers that know neither.
 */
#include "../runner.h"
#include "open.h"
#include "process.h"
#include "protocol.h"

#define MS_NS UINT64_C(1000000)

enum { CONNECTIONS = 64, CROWD = 1000, BURNERS = 10, STEADY_RATE = 10000, CALM_RATE = 1000 };

struct side {
    struct process     process;
    struct open_load  *load;
    struct open_report alone, crowded;
};

static int turns(void) { return runner.quick ? 2 : 5; }

static void open_side(struct side *side, const char *path, const struct open_plan *wanted)
{
    cpu_set_t        server, client;
    struct open_plan plan = *wanted;
    process_choose_cores(1, &server, &client);
    memset(side, 0, sizeof *side);
    process_start(&side->process, path, "http", 1, &server);
    runner_need(sched_setaffinity(0, sizeof client, &client) == 0, "cannot choose a core");
    plan.port = side->process.port;
    side->load = open_load_open(&plan);
}

static void close_side(struct side *side)
{
    open_load_close(side->load);
    process_stop(&side->process);
}

static void tell(const struct side *side, const char *label, const char *what, const char *unit,
                 double value)
{
    char metric[128];
    snprintf(metric, sizeof metric, "%s: %s", label, what);
    runner_say_as(side->process.name, side->process.version, metric, unit, value);
}

/* Requests in a second, when all connections always have one under way. */
static double all_of_load(struct side *side)
{
    struct open_report warm = {.burnt = 0}, report = {.burnt = 0};
    open_load_run(side->load, 0, 50 * MS_NS, false, &warm);
    open_load_run(side->load, 0, 150 * MS_NS, false, &report);
    return (double)report.others.requests / (double)report.others.ns * 1e9;
}

static void race_at(struct side *base, struct side *side, const char *label, double rate)
{
    const uint64_t slot = 100 * MS_NS;
    memset(&base->alone, 0, sizeof base->alone);
    memset(&side->alone, 0, sizeof side->alone);
    for (int turn = 0; turn < turns(); turn++) {
        open_load_run(base->load, rate, slot, false, &base->alone);
        open_load_run(side->load, rate, slot, false, &side->alone);
        open_load_run(side->load, rate, slot, false, &side->alone);
        open_load_run(base->load, rate, slot, false, &base->alone);
    }
    double p50 = load_percentile(&side->alone.others, 50);
    double p99 = load_percentile(&side->alone.others, 99);
    tell(side, label, "p50", "x raw epoll", p50 / load_percentile(&base->alone.others, 50));
    tell(side, label, "p99", "x raw epoll", p99 / load_percentile(&base->alone.others, 99));
    tell(side, label, "p50 time", "us", p50 / 1000);
    tell(side, label, "p99 time", "us", p99 / 1000);
    tell(side, label, "interval", "us", 1e6 / rate);
}

static void run_load(void)
{
    static const int shares[] = {10, 50, 100};
    struct open_plan plan = {.connections = CONNECTIONS};
    struct side      base, side;
    char             label[64];
    open_side(&base, NET_BASE, &plan);
    open_side(&side, NET_SERVER, &plan);
    double all = all_of_load(&side);
    (void)all_of_load(&base);
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        snprintf(label, sizeof label, "hello, %d %% of load", shares[i]);
        race_at(&base, &side, label, all * shares[i] / 100);
    }
    snprintf(label, sizeof label, "hello, %d requests a second", STEADY_RATE);
    race_at(&base, &side, label, STEADY_RATE);
    close_side(&side);
    close_side(&base);
}

static void race_crowd(struct side *side, const char *label, double rate)
{
    const uint64_t slot = 300 * MS_NS;
    memset(&side->alone, 0, sizeof side->alone);
    memset(&side->crowded, 0, sizeof side->crowded);
    for (int turn = 0; turn < turns(); turn++) {
        open_load_run(side->load, rate, slot, false, &side->alone);
        open_load_run(side->load, rate, slot, true, &side->crowded);
        open_load_run(side->load, rate, slot, true, &side->crowded);
        open_load_run(side->load, rate, slot, false, &side->alone);
    }
    double alone = load_percentile(&side->alone.others, 99);
    double crowded = load_percentile(&side->crowded.others, 99);
    double us = (double)side->crowded.others.ns / 1000;
    double mib = (double)side->crowded.streamed_bytes / (1 << 20);
    tell(side, label, "p99", "x alone", crowded / alone);
    tell(side, label, "p50 alone", "us", load_percentile(&side->alone.others, 50) / 1000);
    tell(side, label, "p50 in the crowd", "us", load_percentile(&side->crowded.others, 50) / 1000);
    tell(side, label, "p99 alone", "us", alone / 1000);
    tell(side, label, "p99 in the crowd", "us", crowded / 1000);
    tell(side, label, "a MiB streamed", "us", mib > 0 ? us / mib : us);
    tell(side, label, "a burn", "us",
         us / (double)(side->crowded.burnt > 0 ? side->crowded.burnt : 1));
}

static void run_fair(void)
{
    struct open_plan plan = {
        .connections = CROWD - BURNERS - 1, .burners = BURNERS, .streams = true};
    struct side        side;
    struct open_report warm = {.burnt = 0};
    open_side(&side, NET_SERVER, &plan);
    open_load_run(side.load, 0, 100 * MS_NS, true, &warm);
    race_crowd(&side, "busy", 0);
    race_crowd(&side, "calm", CALM_RATE);
    close_side(&side);
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {{"http_load", 1, run_load},
#if NET_FAIR
                                               {"http_fair", 1, run_fair},
#endif
                                               {NULL, 0, NULL}};
    (void)run_fair;
    return runner_main(argc, argv, NET_SERVER, "", works);
}

/* SPDX-License-Identifier: MIT */
/*
 * A contestant of the works `echo`, `accept` and `idle`: a server, NET_SERVER, beside "raw epoll",
 * NET_BASE, which uses no library. Raw epoll also races with itself: its ratios of about 1 show how
 * exact the others are.
 *
 * Timed: CPU           the server's CPU time for a request, against that of raw epoll
 *        CPU time      the same, absolute
 *        p99           the client's latency, against that with raw epoll
 *        p50 time, p99 time, wall time: absolute; wall time is 1/throughput
 *        system calls  of the server for a request, counted in a run of their own
 * for echo    1, 64 and 512 connections that stay open (two workers: 64), echo and hello
 *     accept  hello with a connection for each request, 64 at a time
 *     idle    bytes for each idle connection that has made one request, RSS and page tables; the
 *             CPU time of a second in which nothing happens
 *
 * With NET_HTTP the server is one of HTTP. Its works are `http`, which is hello and accept, and
 * `http_idle`, which has fewer connections than idle.
 * A peer there also has NET_OURS, our server, which takes a turn of its own:
 *
 *        ours          the CPU time of our server for a request, against that of the peer
 *
 * Slots of 50 ms take turns: raw epoll, the server, the server, raw epoll (ABBA), and so on. With
 * ours it is ABCCBA. So a drift of the machine hits all. A server with one worker has one core, and
 * the client another. Two workers and the client's two threads share two cores.
 *
 * The CPU time is the process's CPU clock. It includes the kernel's work for a call, and leaves out
 * the time that a thread waits for a core. Other programs on the machine disturb wall time and
 * latency more.
 */
#include "../runner.h"
#include "load.h"
#include "process.h"
#include "protocol.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)
#define SLOT_NS (50 * MS_NS)

#ifndef NET_HTTP
#define NET_HTTP 0
#endif
#ifndef NET_WORKERS_MAX
#define NET_WORKERS_MAX 2
#endif
#ifndef NET_OURS
#define NET_OURS NULL
#endif

enum { IDLE_FEW = 10000, IDLE_MANY = 100000, SPARE_DESCRIPTORS = 64 };

static int turns(void) { return runner.quick ? 2 : 5; } /* of four slots */

struct shape {
    bool     hello, each_opens;
    unsigned connections;
};

/* A server and its client. */
struct side {
    struct process     process;
    struct load       *load;
    struct load_report report;
    uint64_t           cpu_ns;
};

static const char *mode_of(bool hello) { return NET_HTTP ? "http" : hello ? "hello" : "echo"; }

static void open_side(struct side *side, const char *path, const struct shape *shape)
{
    cpu_set_t server, client;
    process_choose_cores(runner.workers, &server, &client);
    memset(side, 0, sizeof *side);
    process_start(&side->process, path, mode_of(shape->hello), runner.workers, &server);
    runner_need(sched_setaffinity(0, sizeof client, &client) == 0, "cannot choose a core");
    struct load_plan plan = {.port = side->process.port,
                             .hello = shape->hello,
                             .http = NET_HTTP,
                             .each_opens = shape->each_opens,
                             .connections = shape->connections,
                             .threads = runner.workers > 1 && shape->connections > 1 ? 2 : 1};
    side->load = load_open(&plan);
}

static void close_side(struct side *side)
{
    load_close(side->load);
    process_stop(&side->process);
}

static void slot(struct side *side)
{
    uint64_t before = process_cpu_ns(&side->process);
    load_run(side->load, SLOT_NS, &side->report);
    side->cpu_ns += process_cpu_ns(&side->process) - before;
}

static void warm_up(struct side *side)
{
    slot(side);
    memset(&side->report, 0, sizeof side->report);
    side->cpu_ns = 0;
}

static double cpu_of_request(const struct side *side)
{
    return (double)side->cpu_ns / (double)side->report.requests;
}

static void tell(const struct side *side, const char *label, const char *what, const char *unit,
                 double value)
{
    char metric[128];
    snprintf(metric, sizeof metric, "%s: %s", label, what);
    runner_say_as(side->process.name, side->process.version, metric, unit, value);
}

static void tell_calls(struct side *side, const char *label)
{
    struct load_report report = {0};
    if (!process_count_calls(&side->process)) {
        fprintf(stderr,
                "note: system calls are not counted: no tracepoint raw_syscalls:sys_enter here "
                "(root: mount -t tracefs none /sys/kernel/tracing)\n");
        return;
    }
    load_run(side->load, 2 * SLOT_NS, &report);
    double calls = (double)process_calls(&side->process);
    tell(side, label, "system calls", "calls", calls / (double)report.requests);
}

enum { BASE, SERVER, OURS, SIDES };

static void tell_all(struct side *sides, int count, const char *label)
{
    struct side *base = &sides[BASE], *side = &sides[SERVER];
    double       p99 = load_percentile(&side->report, 99), cpu = cpu_of_request(side);
    tell(side, label, "CPU", "x raw epoll", cpu / cpu_of_request(base));
    if (count > OURS) tell(side, label, "ours", "x its CPU", cpu_of_request(&sides[OURS]) / cpu);
    tell(side, label, "p99", "x raw epoll", p99 / load_percentile(&base->report, 99));
    tell_calls(side, label);
    tell(side, label, "CPU time", "ns", cpu);
    tell(side, label, "wall time", "ns", (double)side->report.ns / (double)side->report.requests);
    tell(side, label, "p50 time", "us", load_percentile(&side->report, 50) / 1000);
    tell(side, label, "p99 time", "us", p99 / 1000);
}

static void race(const char *label, const struct shape *shape)
{
    const char *const paths[SIDES] = {NET_BASE, NET_SERVER, NET_OURS};
    struct side       sides[SIDES];
    int               count = NET_OURS == NULL ? OURS : SIDES;
    for (int i = 0; i < count; i++) open_side(&sides[i], paths[i], shape);
    for (int i = 0; i < count; i++) warm_up(&sides[i]);
    for (int turn = 0; turn < turns(); turn++) {
        for (int i = 0; i < count; i++) slot(&sides[i]);
        for (int i = count; i-- > 0;) slot(&sides[i]);
    }
    tell_all(sides, count, label);
    for (int i = count; i-- > 0;) close_side(&sides[i]);
}

static void run_echo(void)
{
    static const unsigned counts[] = {1, 64, 512};
    for (int hello = NET_HTTP; hello < 2; hello++) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            struct shape shape = {.hello = hello, .connections = counts[i]};
            char         label[64];
            if (runner.workers > 1 && counts[i] != 64) continue;
            snprintf(label, sizeof label, "%s, %u connection%s", hello ? "hello" : "echo",
                     counts[i], counts[i] > 1 ? "s" : "");
            race(label, &shape);
        }
    }
}

static void run_accept(void)
{
    struct shape shape = {.hello = true, .each_opens = true, .connections = 64};
    race("a connection for each request, 64 at a time", &shape);
}

/* Waits until the server has used no CPU time for a while. */
static void settle(const struct process *process)
{
    struct timespec while_ = {.tv_nsec = 50 * (long)MS_NS};
    uint64_t        start = bench_now_ns(), before = 0, now = process_cpu_ns(process);
    do {
        before = now;
        nanosleep(&while_, NULL);
        now = process_cpu_ns(process);
    } while (now != before && bench_now_ns() - start < LOAD_PATIENCE_NS / 2);
}

static void idle(unsigned wanted)
{
    struct side     side = {.cpu_ns = 0};
    struct timespec second = {.tv_sec = 1};
    cpu_set_t       server, client;
    char            label[64];
    int            *fds = calloc(wanted, sizeof *fds);
    runner_need(fds != NULL, "no memory");
    process_choose_cores(runner.workers, &server, &client);
    process_start(&side.process, NET_SERVER, mode_of(false), runner.workers, &server);
    runner_need(load_idle(side.process.port, NET_HTTP, 1, fds) == 1, "the server does not answer");
    close(fds[0]);
    settle(&side.process);
    double   before = process_footprint(&side.process);
    unsigned count = load_idle(side.process.port, NET_HTTP, wanted, fds);
    runner_need(count > 0, "the server does not answer");
    for (int i = 0; i < 4 * NET_HTTP; i++) nanosleep(&second, NULL); /* buffers are kept for 2 s */
    settle(&side.process);
    double bytes = process_footprint(&side.process) - before;
    snprintf(label, sizeof label, "%u idle connections", wanted);
    if (count < wanted) snprintf(label, sizeof label, "%u idle connections, the limit", count);
    tell(&side, label, "memory of each", "B", bytes / count);
    side.cpu_ns = process_cpu_ns(&side.process);
    nanosleep(&second, NULL);
    double spent = (double)(process_cpu_ns(&side.process) - side.cpu_ns);
    tell(&side, label, "CPU time of a second", "us", spent / 1000);
    for (unsigned i = 0; i < count; i++) close(fds[i]);
    free(fds);
    process_stop(&side.process);
}

/* How many connections the limit of descriptors allows. The server needs some descriptors more. */
static unsigned allowed(unsigned wanted)
{
    struct rlimit limit;
    runner_need(getrlimit(RLIMIT_NOFILE, &limit) == 0, "cannot see the limit of descriptors");
    struct rlimit more = {.rlim_cur = wanted + SPARE_DESCRIPTORS, .rlim_max = limit.rlim_max};
    if (more.rlim_max < more.rlim_cur) more.rlim_max = more.rlim_cur;
    if (more.rlim_cur <= limit.rlim_cur || setrlimit(RLIMIT_NOFILE, &more) == 0) return wanted;
    limit.rlim_cur = limit.rlim_max;
    runner_need(setrlimit(RLIMIT_NOFILE, &limit) == 0, "cannot raise the limit of descriptors");
    fprintf(stderr, "note: %u idle connections: not all, RLIMIT_NOFILE is %llu\n", wanted,
            (unsigned long long)limit.rlim_cur);
    return (unsigned)(limit.rlim_cur - SPARE_DESCRIPTORS);
}

static void run_idle(void)
{
    idle(allowed(IDLE_FEW));
    unsigned many = allowed(IDLE_MANY);
    if (many > IDLE_FEW) idle(many);
}

static void run_http(void)
{
    run_echo();
    if (runner.workers == 1) run_accept();
}

static void run_http_idle(void) { idle(allowed(IDLE_FEW)); }

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {
        {"echo", 2, run_echo}, {"accept", 1, run_accept}, {"idle", 1, run_idle}, {NULL, 0, NULL}};
    static const struct runner_work http[] = {
        {"http", NET_WORKERS_MAX, run_http}, {"http_idle", 1, run_http_idle}, {NULL, 0, NULL}};
    return runner_main(argc, argv, NET_SERVER, "", NET_HTTP ? http : works);
}

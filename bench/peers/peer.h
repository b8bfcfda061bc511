/* SPDX-License-Identifier: MIT */
/*
 * What several peers in C and C++ need beyond runner.h: other threads, percentiles.
 */
#ifndef JANUSRT_BENCH_PEER_H
#define JANUSRT_BENCH_PEER_H

#include "runner.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Latencies: rounds that warm up, rounds that count. */

enum { PEER_WARM = 10, PEER_ROUNDS_FULL = 5000, PEER_ROUNDS_QUICK = 1000 };

#define PEER_PATIENCE_NS UINT64_C(5000000000)

static inline int peer_rounds(void) { return runner.quick ? PEER_ROUNDS_QUICK : PEER_ROUNDS_FULL; }

static inline void peer_spin_for(uint64_t ns)
{
    uint64_t start = bench_now_ns();
    while (bench_now_ns() - start < ns) continue;
}

/* The thief ran out of work 1 to 20 us ago. The time varies, because pauses may grow while it
 * searches. */
static inline void peer_vary_pause(int round)
{
    peer_spin_for(1000 + (uint64_t)(round + PEER_WARM) * 7919 % 19000);
}

/* Waits for a time stamp that another thread leaves. Acquire: what was written before is seen. */
static inline uint64_t peer_spin_until_set(const uint64_t *stamp)
{
    uint64_t start = bench_now_ns(), value = 0;
    while ((value = __atomic_load_n(stamp, __ATOMIC_ACQUIRE)) == 0) {
        runner_need(bench_now_ns() - start < PEER_PATIENCE_NS,
                    "a task did not run although a worker was free");
    }
    return value;
}

/* Release: pairs with peer_spin_until_set. */
static inline void peer_set(uint64_t *stamp, uint64_t value)
{
    __atomic_store_n(stamp, value, __ATOMIC_RELEASE);
}

/* Whether all other threads of this process sleep in the kernel. */
static inline bool peer_others_sleep(void)
{
    bool asleep = true;
    DIR *threads = opendir("/proc/self/task");
    runner_need(threads != NULL, "cannot list threads");
    for (struct dirent *entry; asleep && (entry = readdir(threads)) != NULL;) {
        char path[300], line[256];
        if (entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == syscall(SYS_gettid)) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        int     file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = file < 0 ? 0 : read(file, line, sizeof line - 1);
        if (file >= 0) close(file);
        line[got > 0 ? got : 0] = 0;
        const char *state = strrchr(line, ')');
        asleep = state != NULL && state[1] == ' ' && state[2] == 'S';
    }
    closedir(threads);
    return asleep;
}

/* Checks twice in a row: at the first check a thread may have waited for a lock. */
static inline void peer_until_others_sleep(void)
{
    uint64_t start = bench_now_ns();
    for (int seen = 0; seen < 2; seen = peer_others_sleep() ? seen + 1 : 0) {
        runner_need(bench_now_ns() - start < PEER_PATIENCE_NS, "an idle worker does not sleep");
    }
    peer_spin_for(3000);
}

static inline void peer_tell(const char *what, double *samples)
{
    char metric[128];
    int  last = peer_rounds() - 1;
    qsort(samples, (size_t)peer_rounds(), sizeof samples[0], bench_compare);
    snprintf(metric, sizeof metric, "%s, p50", what);
    runner_say(metric, "ns", samples[last * 50 / 100]);
    snprintf(metric, sizeof metric, "%s, p99", what);
    runner_say(metric, "ns", samples[last * 99 / 100]);
}

#endif

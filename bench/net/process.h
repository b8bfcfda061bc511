/* SPDX-License-Identifier: MIT */
/*
 * A server as a child process, seen from outside: its CPU time, its memory, its system calls.
 */
#ifndef JANUSRT_BENCH_NET_PROCESS_H
#define JANUSRT_BENCH_NET_PROCESS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum { PROCESS_THREADS_MAX = 256 };

struct process {
    pid_t     pid;
    uint16_t  port;
    char      name[32], version[32];
    clockid_t clock;
    unsigned  counters; /* perf events, one for each thread */
    int       counter[PROCESS_THREADS_MAX];
};

/* With one worker the first core that we may use is the server's, and the second the client's. With
 * more they share all cores. Exits with a message if there are not two. */
void process_choose_cores(unsigned workers, cpu_set_t *server, cpu_set_t *client);

/* Starts a server (protocol.h) on these cores, and waits for its line. It dies with this thread.
 * Exits with a message if it cannot. */
void process_start(struct process *process, const char *path, const char *mode, unsigned workers,
                   const cpu_set_t *cores);
void process_stop(struct process *process);

/* The CPU time of all its threads, also of those that have ended. */
uint64_t process_cpu_ns(const struct process *process);

/* VmRSS + VmPTE, in bytes. */
double process_footprint(const struct process *process);

/* Counts the system calls of the threads that live now, and of those they start, by the kernel's
 * tracepoint raw_syscalls:sys_enter. False: this machine does not let us. */
bool     process_count_calls(struct process *process);
uint64_t process_calls(struct process *process); /* so far; stops counting */

#endif

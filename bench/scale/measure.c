/* SPDX-License-Identifier: MIT */
/*
 * Measures what the machine of machine.h must know about this one, on two cores, and the works
 * themselves, for comparison. Prints NAME=VALUE, as `scale` takes them; times in ps.
 */
#include "works.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 7, FEW = 20000, MANY = 400000 };

static _Alignas(128) _Atomic(uint32_t) word;
static _Alignas(128) _Atomic(uint32_t) other_word;
static _Alignas(128) _Atomic(bool) stop;
static _Alignas(128) _Atomic(uint64_t) spins;
static int ends[2], set = -1;

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void relax(void) { __asm__ volatile("pause"); }

static long futex(_Atomic(uint32_t) *at, int verb, uint32_t value)
{
    return syscall(SYS_futex, at, verb | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

/* One step of each. */
static void step_rmw(void) { (void)atomic_fetch_add_explicit(&word, 1, memory_order_relaxed); }
static void step_fence(void) { atomic_thread_fence(memory_order_seq_cst); }
static void step_heavy(void) { (void)membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }
static void step_clock(void) { (void)now_ns(); }
static void step_yield(void) { (void)sched_yield(); }
static void step_call(void) { (void)futex(&other_word, FUTEX_WAKE, 1); }
static void step_look(void)
{
    struct epoll_event events[8];
    (void)syscall(SYS_epoll_pwait, set, events, 8, 0, NULL, 0);
}

static void step_send(void)
{
    char bytes[64] = "";
    if (send(ends[0], bytes, sizeof bytes, MSG_DONTWAIT) != (ssize_t)sizeof bytes) abort();
}

static void step_receive(void)
{
    char bytes[64];
    if (recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT) != (ssize_t)sizeof bytes) abort();
}

/* ps for each step; the shortest turn. */
static uint64_t time_of(void (*step)(void), int count)
{
    uint64_t best = UINT64_MAX;
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t start = now_ns();
        for (int i = 0; i < count; i++) step();
        uint64_t ps = (now_ns() - start) * 1000 / (uint64_t)count;
        if (ps < best) best = ps;
    }
    return best;
}

static void say(const char *name, uint64_t ps) { printf("%s=%llu ", name, (unsigned long long)ps); }

/* A second thread. */

static void *spin(void *unused)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        (void)atomic_fetch_add_explicit(&spins, 1, memory_order_relaxed);
    return unused;
}

static void *answer(void *unused)
{
    for (uint32_t turn = 1; !atomic_load_explicit(&stop, memory_order_relaxed); turn += 2) {
        while (atomic_load_explicit(&word, memory_order_acquire) != turn) {
            if (atomic_load_explicit(&stop, memory_order_relaxed)) return unused;
        }
        atomic_store_explicit(&word, turn + 1, memory_order_release);
    }
    return unused;
}

static void *answer_asleep(void *unused)
{
    for (uint32_t turn = 1;; turn += 2) {
        while (atomic_load(&word) != turn) {
            if (atomic_load(&stop)) return unused;
            (void)futex(&word, FUTEX_WAIT, turn - 1);
        }
        atomic_store(&word, turn + 1);
        (void)futex(&word, FUTEX_WAKE, 1);
    }
}

static pthread_t begin(void *(*main)(void *))
{
    pthread_t thread;
    atomic_store(&stop, false);
    atomic_store(&word, 0);
    if (pthread_create(&thread, NULL, main, NULL) != 0) abort();
    uint64_t start = now_ns();
    while (now_ns() - start < 2000000) relax();
    return thread;
}

static void end(pthread_t thread)
{
    atomic_store(&stop, true);
    (void)futex(&word, FUTEX_WAKE, 1);
    (void)pthread_join(thread, NULL);
}

/* A message there and back moves the line four times: each side takes it to write, and the other
 * one to read. */
static uint64_t transfer(void)
{
    pthread_t thread = begin(answer);
    uint64_t  best = UINT64_MAX;
    uint32_t  turn = 1;
    for (int round = 0; round < TURNS; round++) {
        uint64_t start = now_ns();
        for (int i = 0; i < FEW; i++, turn += 2) {
            atomic_store_explicit(&word, turn, memory_order_release);
            while (atomic_load_explicit(&word, memory_order_acquire) != turn + 1) continue;
        }
        uint64_t ps = (now_ns() - start) * 1000 / FEW / 4;
        if (ps < best) best = ps;
    }
    end(thread);
    return best;
}

/* Two threads change one word. The time for each change says how many of them a core makes before
 * the other one gets the line. So it says how long a core keeps a line that another one wants. */
static void *change(void *unused)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) step_rmw();
    return unused;
}

static uint64_t linger(uint64_t moved, uint64_t rmw)
{
    pthread_t thread = begin(change);
    uint32_t  before = atomic_load(&word);
    uint64_t  start = now_ns();
    for (int i = 0; i < MANY; i++) step_rmw();
    uint64_t spent = (now_ns() - start) * 1000;
    uint64_t each = spent / (atomic_load(&word) - before);
    end(thread);
    uint64_t run = moved + rmw;
    return each < run ? (run - each) * rmw / each : 0;
}

/* The wake, for the waker, and then until the sleeper runs. */
static void wakes(void)
{
    enum { WAKES = 3000 };
    static uint64_t waker[WAKES], both[WAKES];
    pthread_t       thread = begin(answer_asleep);
    uint32_t        turn = 1;
    for (int i = 0; i < WAKES; i++, turn += 2) {
        uint64_t pause = now_ns();
        while (now_ns() - pause < 10000) relax(); /* until the other one sleeps */
        uint64_t start = now_ns();
        atomic_store(&word, turn);
        (void)futex(&word, FUTEX_WAKE, 1);
        waker[i] = now_ns() - start;
        while (atomic_load(&word) != turn + 1) continue;
        both[i] = now_ns() - start;
    }
    end(thread);
    for (int k = 0; k < 2; k++) {
        uint64_t *times = k == 0 ? waker : both;
        for (int i = 1; i < WAKES; i++) { /* sorts */
            uint64_t time = times[i];
            int      at = i;
            for (; at > 0 && times[at - 1] > time; at--) times[at] = times[at - 1];
            times[at] = time;
        }
    }
    uint64_t wake = waker[WAKES / 2], all = both[WAKES / 2];
    say("wake", wake * 1000);
    say("woken", (all > wake ? all - wake : 0) * 1000);
}

/* membarrier alone, beside a thread that runs, and what it takes from that thread. */
static void heavies(void)
{
    if (!membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) return;
    uint64_t  alone = time_of(step_heavy, FEW);
    pthread_t thread = begin(spin);
    uint64_t  quiet, start = now_ns(), before = atomic_load(&spins);
    while (now_ns() - start < 50000000) continue;
    quiet = (atomic_load(&spins) - before) / 50; /* a millisecond */
    start = now_ns();
    before = atomic_load(&spins);
    int count = 0;
    for (; now_ns() - start < 50000000; count++) step_heavy();
    uint64_t spent = (now_ns() - start) * 1000;
    uint64_t ran = (atomic_load(&spins) - before) * 1000000000 / quiet;
    end(thread);
    say("heavy", alone);
    uint64_t beside = spent / (uint64_t)count;
    say("heavy_first", beside > alone ? beside - alone : 0);
    say("stolen", spent > ran ? (spent - ran) / (uint64_t)count : 0);
}

/* As the library uses connections: both ends are in a set, for edges. */
static void connections(void)
{
    enum { MESSAGES = 3000 };
    uint64_t spent[3] = {0};
    set = epoll_create1(0);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
    for (int i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
        if (epoll_ctl(set, EPOLL_CTL_ADD, ends[i], &event) != 0) abort();
    }
    uint64_t clock = time_of(step_clock, FEW);
    for (int i = 0; i < MESSAGES; i++) {
        uint64_t start = now_ns();
        step_send();
        uint64_t sent = now_ns();
        step_look();
        uint64_t looked = now_ns();
        step_receive();
        uint64_t received = now_ns();
        spent[0] += sent - start;
        spent[1] += received - looked;
        spent[2] += looked - sent;
    }
    say("send", spent[0] * 1000 / MESSAGES - clock);
    say("receive", spent[1] * 1000 / MESSAGES - clock);
    say("look", spent[2] * 1000 / MESSAGES - clock);
}

static void costs(void)
{
    uint64_t rmw = time_of(step_rmw, MANY);
    say("rmw", rmw);
    say("fence", time_of(step_fence, MANY));
    uint64_t moved = transfer();
    say("transfer", moved);
    say("linger", linger(moved, rmw));
    say("far", moved);
    heavies();
    say("call", time_of(step_call, FEW));
    say("clock", time_of(step_clock, MANY));
    say("relax", time_of(relax, MANY));
    say("yield", time_of(step_yield, FEW));
    say("sleep", time_of(step_call, FEW));
    wakes();
    connections();
    printf("\n");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "costs") == 0) {
        costs();
        return 0;
    }
    if (argc == 5) {
        for (const struct work *work = works; work->name != NULL; work++) {
            if (strcmp(work->name, argv[1]) != 0) continue;
            uint64_t ps = works_time(work, (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]),
                                     (unsigned)atoi(argv[4]));
            printf("%.2f\n", (double)ps / 1000);
            return 0;
        }
    }
    (void)fprintf(stderr, "usage: %s costs | WORK WORKERS SIZE TURNS\n", argv[0]);
    return 2;
}

/* SPDX-License-Identifier: MIT */
/*
 * Exploring: running concurrent code under many schedules, and replaying the schedule that broke
 * it.
 *
 *     static int64_t transfer(void *argument)        // creates all it needs, runs, checks
 *     {
 *         struct bank  bank = {.left = 100};
 *         janus_status status;
 *         JANUS_NURSERY(n, status) {
 *             JANUS_EXPECT(janus_spawn(n, move_ten, &bank) == JANUS_OK);
 *             JANUS_EXPECT(janus_spawn(n, move_ten, &bank) == JANUS_OK);
 *         }
 *         JANUS_EXPECT(bank.left + bank.right == 100);
 *         return status;
 *     }
 *
 *     int main(void) { return janus_explore(NULL, transfer, NULL, NULL) == JANUS_OK ? 0 : 1; }
 *
 * Each schedule is a run of the deterministic engine (scheduler.h, `deterministic_seed`): several
 * workers, one thread, a clock that only moves when it must. Another task may go on where a call of
 * this library begins, and at the janus_check that ends a slice. With the scheduler's option
 * `preempt_checks` any check may end a slice. Between two such points a task makes one step. The
 * strategy decides which task goes on.
 *
 * janus_failing lists how a schedule can fail: by its result, a panic, a broken expectation or
 * contract, a deadlock, a leak and more. The explorer then removes the choices that do not matter,
 * and prints the schedule as a text. The text replays exactly that schedule, as `replay` below or
 * in the environment of the same program.
 *
 *     JANUSRT_REPLAY='…' ./program
 *
 * The command janusrt explores whole programs, which need not include this header.
 *
 * Only calls of this library make schedules differ. Other threads, the real clock, random numbers
 * and addresses must not decide what the entry does.
 */
#ifndef JANUSRT_EXPLORE_H
#define JANUSRT_EXPLORE_H

#include <janusrt/export.h>
#include <janusrt/fiber.h>
#include <janusrt/options.h>
#include <janusrt/scheduler.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the next task is chosen. */
typedef enum janus_strategy {
    JANUS_STRATEGY_DEFAULT = 0, /* RANDOM */
    JANUS_STRATEGY_RANDOM,      /* each ready task is equally likely */
    JANUS_STRATEGY_PCT,         /* priorities change at `depth` - 1 random steps: finds a bug of
                                   `depth` ordered steps with a known probability */
    JANUS_STRATEGY_EXHAUSTIVE,  /* all schedules with at most `depth` preemptions, one by one; with
                                  more than two workers these are millions */
} janus_strategy;

/*
 * Faults that the explorer injects, from the first step of the entry on. They can be combined. The
 * faults of NETWORK concern sockets and look-ups only. Short reads, short writes and delays are no
 * faults: every schedule has them.
 */
enum janus_fault {
    JANUS_FAULT_MEMORY = 1,   /* the system refuses memory to the library, */
    JANUS_FAULT_MAPPING = 2,  /* address space, as for stacks, */
    JANUS_FAULT_THREAD = 4,   /* or a thread */
    JANUS_FAULT_BLOCKING = 8, /* a blocking call is refused, or takes long */
    JANUS_FAULT_WAKE = 16,    /* a thread wakes up for no reason */
    JANUS_FAULT_DEATH = 32,   /* a worker's thread ends, and is replaced */

    JANUS_FAULT_RESET = 64,       /* a connection is reset */
    JANUS_FAULT_STALL = 128,      /* nothing arrives on a connection, for 1 s to 1 min */
    JANUS_FAULT_REFUSE = 256,     /* a connect is refused, or a look-up gets no answer */
    JANUS_FAULT_DESCRIPTOR = 512, /* the system has no descriptor left */
    JANUS_FAULT_EDGE = 1024,      /* a task that waits to read or write wakes for no reason */
    JANUS_FAULT_LOST = 2048,      /* a UDP datagram is lost, or comes twice */

    JANUS_FAULT_NETWORK = 4032, /* the six of the network */
    JANUS_FAULT_ALL = 4095,
};

/* How a schedule failed. */
typedef enum janus_failing {
    JANUS_FAILING_NOT = 0,
    JANUS_FAILING_EXPECTATION, /* JANUS_EXPECT */
    JANUS_FAILING_RESULT,      /* the entry returned a negative number */
    JANUS_FAILING_PANIC,       /* a task panicked, or overflowed its stack */
    JANUS_FAILING_DEADLOCK,    /* every task waits for another */
    JANUS_FAILING_STEPS,       /* it took more than max_steps steps */
    JANUS_FAILING_TIME,        /* it took more than max_time_ns of simulated time */
    JANUS_FAILING_CONTRACT,    /* a broken contract of a caller, or invariant of the library */
    JANUS_FAILING_LEAK,        /* tasks, channels, descriptors or budgets are left over */
    JANUS_FAILING_STALE,  /* a handle (channel, capability, task, I/O) was used after its end */
    JANUS_FAILING_EXIT,   /* a program exited with a status other than 0, */
    JANUS_FAILING_SIGNAL, /* or was ended by a signal */
} janus_failing;

/* Options of an exploration. Zero in any field selects the default named beside it. */
typedef struct janus_explore_options {
    size_t         struct_bytes;   /* sizeof this struct; JANUS_EXPLORE_OPTIONS sets it */
    janus_strategy strategy;       /* 0: RANDOM */
    uint64_t       seed;           /* of the first schedule; each further one adds 1. 0: 1 */
    uint64_t       schedules;      /* at most this many. 0: 1,000; EXHAUSTIVE: all */
    uint32_t       worker_count;   /* 0: 4; EXHAUSTIVE: 2 */
    uint32_t       depth;          /* 0: 3; EXHAUSTIVE: 2 */
    uint64_t       max_steps;      /* in one schedule. 0: 100,000 */
    uint64_t       max_time_ns;    /* in one schedule, simulated. 0: an hour */
    uint64_t       wall_ns;        /* for all schedules, in real time. 0: no limit */
    uint32_t       faults;         /* JANUS_FAULT_*; 0: none */
    uint32_t       faults_every;   /* inject a fault at one in this many opportunities. 0: 100 */
    bool           stale_allowed;  /* calls that return STALE do not fail a schedule */
    bool           panics_allowed; /* tasks that panic do not fail a schedule */
    bool           no_minimising;  /* report the schedule as it was found */
    bool           quiet;          /* print nothing */
    const char    *replay;         /* run only this schedule. NULL: that of JANUSRT_REPLAY */
    const janus_scheduler_options *scheduler; /* other options. NULL: the defaults */
} janus_explore_options;

#define JANUS_EXPLORE_OPTIONS(...) JANUS_OPTIONS_(janus_explore_options, __VA_ARGS__)

/* The result of an exploration. */
typedef struct janus_explore_result {
    size_t        struct_bytes; /* sizeof this struct; JANUS_EXPLORE_RESULT sets it */
    uint64_t      schedules;    /* how many ran, without those of minimising */
    uint64_t      steps;        /* in all schedules */
    bool          complete;     /* EXHAUSTIVE: all schedules were run */
    bool          unsteady;     /* a replay differed: something outside of the schedule decides
                                   what the entry does */
    janus_failing failing;      /* how the last schedule failed */
    uint64_t      seed;         /* of the last schedule */
    uint64_t      hash;         /* of the trace of `replay`; see trace.h */
    uint64_t      choices;      /* of the last schedule */
    uint64_t      choices_kept; /* of these, the ones that matter, after minimising */
    char          message[256]; /* one line: what and where */
    char         *replay;       /* the caller frees it. NULL: no schedule failed */
} janus_explore_result;
#define JANUS_EXPLORE_RESULT() JANUS_SIZED_(janus_explore_result)

JANUS_BEGIN_DECLS

/*
 * Runs `entry(argument)` under one schedule after the other until one fails. It prints the seed
 * first, then its progress and its result, to standard error.
 *
 * Context: a plain thread that uses no deterministic scheduler.
 * Yields:  only if the turn is over; all runs on the calling thread.
 * Owns:    `argument` stays the caller's. out->replay is the caller's; `out` may be NULL.
 * Cost:    about 50 us a schedule: 1,000 schedules of a small test take 50 ms. A schedule that
 *          fails is abandoned with all that it holds. LeakSanitizer ignores allocations in
 *          schedules.
 * Errors:  OK            no schedule failed
 *          CHILD_FAILED  a schedule failed; *out and standard error say how
 *          INVALID       an option is out of range, or the text to replay is no schedule
 *          NO_MEMORY     memory was refused to the explorer itself
 *          STATE         called in a task, or while a deterministic scheduler exists here
 *          and those of janus_scheduler_create_with, for options->scheduler
 */
JANUS_NODISCARD JANUS_API janus_status janus_explore(const janus_explore_options *options,
                                                     janus_entry *entry, void *argument,
                                                     janus_explore_result *out);

/*
 * Lets another task go on here, in the deterministic engine. Elsewhere it does nothing. Code that
 * shares memory without this library calls it between a load and the store that depends on it.
 *
 * Context: anywhere.
 * Yields:  in the sense above.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none.
 */
JANUS_API void janus_point(void);

/*
 * Reports a false JANUS_EXPECT. Under an explorer the schedule has failed and ends. Otherwise the
 * task panics with the text, or on a plain thread the process ends.
 *
 * Context: anywhere.
 * Yields:  it does not return.
 * Owns:    the texts are the caller's.
 * Cost:    none that matters.
 * Errors:  none.
 */
__attribute__((noreturn, cold)) JANUS_API void janus_expect_failed(const char *text,
                                                                   const char *file, int line);

#define JANUS_EXPECT(condition)                                                                    \
    (__builtin_expect(!!(condition), 1) ? (void)0                                                  \
                                        : janus_expect_failed(#condition, __FILE__, __LINE__))

JANUS_END_DECLS
#endif

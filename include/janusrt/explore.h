/* SPDX-License-Identifier: MIT */
/*
 * Exploring: running concurrent code under many schedules, and again under the one that broke it.
 *
 *     static int64_t transfer(void *argument)        // makes all it needs, runs, looks
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
 * workers, one thread, a clock that only moves when it must. Another task may go on wherever a call
 * of this library begins, janus_point among them, and at the janus_check that ends a slice; what a
 * task does in between is one step. What decides who goes on is the strategy.
 *
 * A schedule has failed when the entry returns a negative number, or any task panics; an
 * expectation, a contract or an invariant of the library is broken; all tasks wait; it takes too
 * many steps or too much simulated time; something is left behind; or a handle is used after its
 * end. It is then made small, as far as that goes, and told with a text from which that schedule,
 * and no other, is run again: as `replay` below, or in the environment of the same program.
 *
 *     JANUSRT_REPLAY='…' ./program
 *
 * The command janusrt explores whole programs, which need not know of this header.
 *
 * What makes schedules differ is what goes through this library. Threads made otherwise, the real
 * clock, random numbers and addresses must not decide what the entry does.
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

/* Who decides. */
typedef enum janus_strategy {
    JANUS_STRATEGY_DEFAULT = 0, /* RANDOM */
    JANUS_STRATEGY_RANDOM,      /* each that can go on is as likely as every other */
    JANUS_STRATEGY_PCT,        /* by priorities that change at `depth` - 1 random steps: finds a bug
                                   that needs `depth` steps in one order with a known probability */
    JANUS_STRATEGY_EXHAUSTIVE, /* all schedules with at most `depth` preemptions, one by one; with
                                  more than two workers these are millions */
} janus_strategy;

/* What else may go wrong in a schedule, from the first step of the entry on; or them together. */
enum {
    JANUS_FAULT_MEMORY = 1,   /* the library is refused memory */
    JANUS_FAULT_MAPPING = 2,  /* or address space, as for stacks */
    JANUS_FAULT_THREAD = 4,   /* or a thread */
    JANUS_FAULT_BLOCKING = 8, /* a blocking call is refused, or takes long */
    JANUS_FAULT_WAKE = 16,    /* a thread wakes up for no reason */
    JANUS_FAULT_DEATH = 32,   /* a worker's thread ends, and is replaced */
};

/* How a schedule failed. */
typedef enum janus_failing {
    JANUS_FAILING_NOT = 0,
    JANUS_FAILING_EXPECTATION, /* JANUS_EXPECT */
    JANUS_FAILING_RESULT,      /* the entry returned a negative number */
    JANUS_FAILING_PANIC,       /* a task panicked, or its stack was used up */
    JANUS_FAILING_DEADLOCK,    /* every task waits for another */
    JANUS_FAILING_STEPS,       /* it goes on and on */
    JANUS_FAILING_TIME,        /* and so does the clock */
    JANUS_FAILING_CONTRACT,    /* what a header asks of its caller, or the library of itself */
    JANUS_FAILING_LEAK,        /* tasks, channels or budgets are left over */
    JANUS_FAILING_STALE,       /* a channel, a capability, a task to join was used after its end */
    JANUS_FAILING_EXIT,        /* of a program: it ended with another status than 0, */
    JANUS_FAILING_SIGNAL,      /* or by a signal */
} janus_failing;

/* How to explore. Zero in any field asks for the default named beside it. */
typedef struct janus_explore_options {
    size_t         struct_bytes;   /* sizeof this struct; JANUS_EXPLORE_OPTIONS sets it */
    janus_strategy strategy;       /* 0: RANDOM */
    uint64_t       seed;           /* of the first schedule; the next has the next. 0: 1 */
    uint64_t       schedules;      /* most. 0: 1,000; EXHAUSTIVE: until all are done */
    uint32_t       worker_count;   /* 0: 4; EXHAUSTIVE: 2 */
    uint32_t       depth;          /* 0: 3; EXHAUSTIVE: 2 */
    uint64_t       steps_max;      /* of a schedule. 0: 100,000 */
    uint64_t       time_max_ns;    /* of a schedule, simulated. 0: an hour */
    uint64_t       wall_ns;        /* of all, in real time. 0: any */
    uint32_t       faults;         /* JANUS_FAULT_*; 0: none */
    uint32_t       faults_every;   /* so many chances there are for each. 0: 100 */
    bool           stale_allowed;  /* calls that return STALE are part of the test */
    bool           panics_allowed; /* so are tasks that panic */
    bool           no_minimising;  /* tell the schedule as it was found */
    bool           quiet;          /* print nothing */
    const char    *replay;         /* only this schedule. NULL: what JANUSRT_REPLAY says */
    const janus_scheduler_options *scheduler; /* what else each has. NULL: the defaults */
} janus_explore_options;

#define JANUS_EXPLORE_OPTIONS(...) JANUS_OPTIONS_(janus_explore_options, __VA_ARGS__)

/* What was found. */
typedef struct janus_explore_result {
    size_t        struct_bytes; /* in: sizeof this struct */
    uint64_t      schedules;    /* that were run, without those that minimising took */
    uint64_t      steps;        /* of all of them */
    bool          complete;     /* EXHAUSTIVE: there are no others */
    bool          unsteady;     /* the same schedule was not the same twice: other things than it
                                   decide what the entry does */
    janus_failing failing;      /* how the last of them failed */
    uint64_t      seed;         /* which one that was */
    uint64_t      hash;         /* of the trace of what `replay` runs; trace.h */
    uint64_t      choices;      /* how many it made, */
    uint64_t      choices_kept; /* and how many of these matter, after minimising */
    char          message[256]; /* one line: what and where */
    char         *replay;       /* owned by the caller: free(). NULL: it did not fail */
} janus_explore_result;

JANUS_BEGIN_DECLS

/*
 * Runs `entry(argument)` under one schedule after the other until one fails. Prints to stderr what
 * it is about to do, seed first, how far it is, and what it found.
 *
 * Context: a thread that is no worker and uses no deterministic scheduler.
 * Yields:  only if the turn is over; all runs on the calling thread.
 * Owns:    `argument` stays the caller's. out->replay is the caller's; `out` may be NULL.
 * Cost:    some 50 us for a small test, of which 1,000 schedules thus take no longer than a test.
 *          A schedule that fails is given up where it stands, with all that it holds;
 *          LeakSanitizer is told not to look at what is allocated in schedules.
 * Errors:  OK            no schedule failed
 *          CHILD_FAILED  one did: *out, and stderr, say how
 *          INVALID       an option, or the text to replay, is none
 *          NO_MEMORY     memory was refused to the explorer itself
 *          STATE         called in a task, or while a deterministic scheduler is open here
 *          and those of janus_scheduler_open, for options->scheduler
 */
JANUS_API janus_status janus_explore(const janus_explore_options *options, janus_entry *entry,
                                     void *argument, janus_explore_result *out);

/*
 * Another task may go on here, in a run of the deterministic engine; elsewhere nothing. For code
 * that shares memory by other means than this library's: between a load and the store that it
 * decides.
 *
 * Context: anywhere.
 * Yields:  in the sense above.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none.
 */
JANUS_API void janus_point(void);

/*
 * What JANUS_EXPECT calls: under an explorer it ends the schedule, which has failed; else the task
 * panics, or on a plain thread the process ends, with the same text.
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

/* SPDX-License-Identifier: MIT */
/* The result of a schedule. A child process may have run it, so there are no pointers here, and the
 * memory is shared. */
#ifndef JRT_EXPLORE_LOG_H
#define JRT_EXPLORE_LOG_H

#include "explore/plan.h"

#include <janusrt/explore.h>

enum {
    JRT_LOG_ROOM = 1 << 20, /* choices; untouched memory costs nothing */
    JRT_LOG_TOLD = 32,
    JRT_LOG_NAME = 24,
    JRT_LOG_WORDS = 112,
};

/* One choice among others, for the search of all schedules. */
struct jrt_log_step {
    uint32_t               rank, count; /* which of how many; the usual one is the first */
    bool                   costs;       /* any answer but the first is a preemption or a fault */
    struct jrt_choice_made made;        /* in the form of a plan */
};

/* A part, and the task that it runs. */
struct jrt_log_who {
    char     thread[16];
    uint64_t task; /* 0: none */
    char     name[JRT_LOG_NAME];
};

/* A choice, for a report. */
struct jrt_log_told {
    uint32_t           number, kind, count;
    uint32_t           value; /* of a fault: enum jrt_fault */
    uint64_t           step;
    struct jrt_log_who left, usual, chosen;  /* the running, the usual and the chosen part */
    char               words[JRT_LOG_WORDS]; /* a choice of the network: what it did. "": none */
};

struct jrt_log {
    janus_failing       failing;
    char                message[256];
    janus_status        status; /* what janus_run returned */
    uint64_t            steps, hash;
    uint64_t            choices; /* choices made, */
    uint64_t            threads; /* and how many of them between threads while a task ran */
    uint32_t            kept;    /* entries of `made`, or of `path` */
    bool                full;    /* there were more */
    bool                refused; /* it cannot be explored; `message` says why */
    bool                differs; /* a search did not reach the place it had reached before */
    uint32_t            prefix;  /* of `path`: the beginning that the next schedule repeats */
    uint32_t            told_count;
    struct jrt_log_told told[JRT_LOG_TOLD];
    union {
        struct jrt_choice_made made[JRT_LOG_ROOM]; /* unusual choices */
        struct jrt_log_step    path[JRT_LOG_ROOM]; /* of a search: all choices */
    };
};

/* Makes memory that children share. NULL: refused. */
struct jrt_log *jrt_log_make(void);
void            jrt_log_free(struct jrt_log *log);

/* Called before a schedule runs. A search's path stays. */
void jrt_log_clear(struct jrt_log *log);

/* Moves to the next path with at most `depth` choices that cost. False: there are no more. */
bool jrt_log_next(struct jrt_log *log, uint32_t depth);

/* Replaces the path by a list of choices. */
void jrt_log_unroll(struct jrt_log *log);

#endif

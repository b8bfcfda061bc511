/* SPDX-License-Identifier: MIT */
/* What is known of a schedule once it was run. It may have been run by a child process, so there
 * are no pointers here, and the memory is shared. */
#ifndef JRT_EXPLORE_LOG_H
#define JRT_EXPLORE_LOG_H

#include "explore/plan.h"

#include <janusrt/explore.h>

enum {
    JRT_LOG_ROOM = 1 << 20, /* choices; what nobody touches costs nothing */
    JRT_LOG_TOLD = 32,
    JRT_LOG_NAME = 24,
};

/* One choice among others, for the search of all schedules. */
struct jrt_log_step {
    uint32_t               rank, count; /* which of how many, the usual one being the first */
    bool                   costs;       /* any but the first is a preemption, or a fault */
    struct jrt_choice_made made;        /* the same as a plan has it */
};

/* Who went on, or was to. */
struct jrt_log_who {
    char     thread[16];
    uint64_t task; /* 0: none */
    char     name[JRT_LOG_NAME];
};

/* A choice in words. */
struct jrt_log_told {
    uint32_t           number, kind, count;
    uint32_t           value; /* of a fault: enum jrt_fault */
    uint64_t           step;
    struct jrt_log_who left, usual, chosen; /* who ran; of threads: who else would have gone on */
};

struct jrt_log {
    janus_failing       failing;
    char                message[256];
    janus_status        status; /* what janus_run returned */
    uint64_t            steps, hash;
    uint64_t            choices; /* how many were made, */
    uint64_t            threads; /* and how many of these between threads, while a task ran */
    uint32_t            kept;    /* entries of `made`, or of `path` */
    bool                full;    /* there were more */
    bool                refused; /* it cannot be explored; `message` says why */
    bool                differs; /* a search did not come where it has been before */
    uint32_t            prefix;  /* of `path`: where the next schedule goes first */
    uint32_t            told_count;
    struct jrt_log_told told[JRT_LOG_TOLD];
    union {
        struct jrt_choice_made made[JRT_LOG_ROOM]; /* those that were not the usual ones */
        struct jrt_log_step    path[JRT_LOG_ROOM]; /* of a search: all */
    };
};

/* Memory that children share. NULL: refused. */
struct jrt_log *jrt_log_make(void);
void            jrt_log_free(struct jrt_log *log);

/* Before a schedule is run. A search's path stays. */
void jrt_log_clear(struct jrt_log *log);

/* Goes to the next path with at most `depth` choices that cost; false: there is none. */
bool jrt_log_next(struct jrt_log *log, uint32_t depth);

/* The path as a list of choices, in place of it. */
void jrt_log_unroll(struct jrt_log *log);

#endif

/* SPDX-License-Identifier: MIT */
/* Exploring: runs one schedule after the other, and keeps what is found. */
#ifndef JRT_EXPLORE_EXPLORER_H
#define JRT_EXPLORE_EXPLORER_H

#include "explore/log.h"

/* How a schedule is run. */
enum jrt_how {
    JRT_HOW_FAST, /* nothing is logged */
    JRT_HOW_KEEP, /* the choices are logged */
    JRT_HOW_TELL, /* and the parts they concern; deadlocks go to stderr */
};

struct jrt_explorer {
    janus_explore_options options; /* zeros replaced by defaults; replay NULL: none */
    struct jrt_log       *log;
    /* Runs a schedule. The log holds the result. False: no memory to begin. */
    bool (*attempt)(struct jrt_explorer *explorer, const struct jrt_plan *plan, enum jrt_how how);
    /* The schedule that failed, after jrt_explore_all. */
    struct jrt_plan         plan; /* its `made` is the next field */
    struct jrt_choice_made *made; /* owned */
    janus_failing           failing;
    char                    message[256];
    uint64_t                schedules, steps, hash, choices;
    uint64_t                tries; /* tries of the minimiser */
    bool                    complete, minimised, unsteady;
    /* Progress. */
    uint64_t began_ns, told_ns;
    bool     terminal, line_open;
};

/* Copies the caller's options and fills in defaults. JANUSRT_EXPLORE and, if `replay`,
 * JANUSRT_REPLAY override them. INVALID: an option or variable is not valid. */
janus_status jrt_explore_decode(const janus_explore_options *given, janus_explore_options *out);

/* Reads the value of JANUSRT_EXPLORE: "seed=7,workers=2". */
bool jrt_explore_environment(const char *text, janus_explore_options *options);

/* Reports to the command, if it started this process, that the program explores, and whether its
 * request was understood. */
void jrt_explore_begun(bool well);

/* Runs schedules until one fails or there are no more. OK, CHILD_FAILED, NO_MEMORY, or the status
 * of a scheduler that cannot be opened. */
janus_status jrt_explore_all(struct jrt_explorer *explorer);

/* Reads options.replay, and takes over what it allows. False: not a valid text. */
bool jrt_explore_read(struct jrt_explorer *explorer, struct jrt_plan *out);

/* Runs only the schedule of options.replay. Also INVALID. */
janus_status jrt_explore_replay(struct jrt_explorer *explorer);

void jrt_explorer_fini(struct jrt_explorer *explorer);

/* Whether the log describes the failing that was found. */
bool jrt_explorer_same(const struct jrt_explorer *explorer);

/* minimise.c: finds fewer choices that fail in the same way. */
bool jrt_minimise(struct jrt_explorer *explorer);

/* report.c: prints. Nothing if options.quiet. */
void jrt_report_refused(const struct jrt_explorer *explorer); /* options.replay is not valid */
void jrt_report_begin(struct jrt_explorer *explorer);
void jrt_report_progress(struct jrt_explorer *explorer);
void jrt_report_end(struct jrt_explorer *explorer, const char *replay);

#endif

/* SPDX-License-Identifier: MIT */
/* Exploring: one schedule after the other, and what is found. */
#ifndef JRT_EXPLORE_EXPLORER_H
#define JRT_EXPLORE_EXPLORER_H

#include "explore/log.h"

/* How a schedule is run. */
enum jrt_how {
    JRT_HOW_FAST, /* nothing is written down */
    JRT_HOW_KEEP, /* what was chosen is */
    JRT_HOW_TELL, /* and who it was about; deadlocks are told on stderr */
};

struct jrt_explorer {
    janus_explore_options options; /* without zeros; replay NULL: none */
    struct jrt_log       *log;
    /* Runs it; the log says how that went. False: no memory to begin with. */
    bool (*attempt)(struct jrt_explorer *explorer, const struct jrt_plan *plan, enum jrt_how how);
    /* The one that failed, after jrt_explore_all. */
    struct jrt_plan         plan; /* its made: */
    struct jrt_choice_made *made; /* owned */
    janus_failing           failing;
    char                    message[256];
    uint64_t                schedules, steps, hash, choices;
    uint64_t                tries; /* that minimising took */
    bool                    complete, minimised, unsteady;
    /* Progress. */
    uint64_t began_ns, told_ns;
    bool     terminal, line_open;
};

/* As much of the options as the caller knows, with defaults; and what JANUSRT_EXPLORE and, if
 * `replay`, JANUSRT_REPLAY say instead. INVALID: something in there is none. */
janus_status jrt_explore_decode(const janus_explore_options *given, janus_explore_options *out);

/* Reads what JANUSRT_EXPLORE says: "seed=7,workers=2". */
bool jrt_explore_environment(const char *text, janus_explore_options *options);

/* Tells the command, if it has started us, that there is something to explore, and whether what it
 * asks for was understood. */
void jrt_explore_begun(bool well);

/* Until one fails, or there are no more. OK, CHILD_FAILED, NO_MEMORY, or what a scheduler that
 * cannot be opened says. */
janus_status jrt_explore_all(struct jrt_explorer *explorer);

/* Reads options.replay; what it allows is allowed. False: it is none. */
bool jrt_explore_read(struct jrt_explorer *explorer, struct jrt_plan *out);

/* Only what options.replay says. Also INVALID. */
janus_status jrt_explore_replay(struct jrt_explorer *explorer);

void jrt_explorer_fini(struct jrt_explorer *explorer);

/* Whether what the log tells of is the failing that was found. */
bool jrt_explorer_same(const struct jrt_explorer *explorer);

/* minimise.c: fewer choices that fail in the same way. */
bool jrt_minimise(struct jrt_explorer *explorer);

/* report.c: what is printed. Nothing where options.quiet. */
void jrt_report_refused(const struct jrt_explorer *explorer); /* options.replay is none */
void jrt_report_begin(struct jrt_explorer *explorer);
void jrt_report_progress(struct jrt_explorer *explorer);
void jrt_report_end(struct jrt_explorer *explorer, const char *replay);

#endif

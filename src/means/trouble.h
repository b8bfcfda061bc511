/* SPDX-License-Identifier: MIT */
/* The last refusal, for janus_explain. It holds facts; janus_explain makes the sentence. */
#ifndef JRT_MEANS_TROUBLE_H
#define JRT_MEANS_TROUBLE_H

#include "cap/gate.h"
#include "fiber/thread.h"

#include <janusrt/budget.h>
#include <janusrt/status.h>

struct janus_failure;
struct jrt_nursery;
struct jrt_terms;

/* Tables that many tasks share, and may find full. */
enum jrt_table {
    JRT_TABLE_NONE,
    JRT_TABLE_BLOCKING, /* blocking calls that wait */
    JRT_TABLE_THREADS,  /* children with a thread of their own */
    JRT_TABLE_CHANNELS,
    JRT_TABLE_CAPS, /* derived capabilities */
    JRT_TABLE_KEPT, /* bytes held for tasks, ledger.c */
    JRT_TABLE_SOCKETS,
    JRT_TABLE_FILES,
    JRT_TABLE_PROCESSES,
    JRT_TABLE_WRITTEN, /* bytes written to files */
    JRT_TABLE_PLACES,  /* of actors */
    JRT_TABLE_QUESTIONS,
    JRT_TABLES,
    JRT_TROUBLE_PLACE = JRT_TABLES, /* no table: `used` is the right, `whose` an address */
    JRT_TROUBLE_NAMED,              /* no table: `used` is the right, `whose` a name */
    JRT_TROUBLE_SYSTEM,             /* no table: `used` is an errno, `limit` what `whose` names */
    JRT_TROUBLE_HANDLE,    /* no table: `used` are lacking rights, `whose` the handle's name */
    JRT_TROUBLE_DIRECTORY, /* no table: `used` is the right, `whose` a path below it */
    JRT_TROUBLE_SIMULATED, /* no table: `whose` does not exist in a simulated run */
    JRT_TROUBLE_SAID,      /* no table: `whose` says it */
    JRT_TROUBLE_NAME,      /* no table: `used` is the right, `whose` a name and, at `limit` unless
                            * that is 0, the prefix that it lacks */
    JRT_TROUBLE_TOLD,      /* no table: `told` is the sentence of another library */
};

/* What an error of the system is about. */
enum jrt_subject {
    JRT_SUBJECT_NONE,
    JRT_SUBJECT_PATH,  /* anywhere */
    JRT_SUBJECT_BELOW, /* a path below a directory */
    JRT_SUBJECT_MOVE,  /* a path that is renamed */
    JRT_SUBJECT_ADDRESS,
    JRT_SUBJECT_HOST,
};

/* Writes the sentence about a failed child of `n`. `why` is the reason of a panic. It needs no lock
 * before the child is counted off: the nurseries around the child cannot end. */
void jrt_failure_sentence(struct jrt_nursery *n, const struct janus_failure *failure,
                          const char *why, char *buffer, size_t size);

/* The slow path of jrt_trouble. */
void jrt_trouble_note(janus_status status, janus_component component, uint64_t used,
                      uint64_t limit);

/* Notes that a table is full, for the terms whose limit was reached. NULL, or the scheduler's
 * counter: for all tasks that no terms count. Returns the status. */
janus_status jrt_trouble_full(janus_status status, enum jrt_table table,
                              const struct jrt_terms *terms, uint64_t used, uint64_t limit);

/* Notes a refusal of a handle. With CAP_LIMIT, `limits` are those that forbid the address. Returns
 * the status. */
janus_status jrt_trouble_handle(janus_status status, const struct jrt_cap_wish *wish,
                                const janus_cap_limits *limits);

/* Notes a refusal of a name. With CAP_LIMIT, `limits` are those that forbid it. Returns the
 * status. */
janus_status jrt_trouble_name(janus_status status, uint32_t right, const char *name,
                              const janus_name_limits *limits);

/* Notes an error of the system. Returns the status. */
janus_status jrt_trouble_system(janus_status status, int error);

/* Adds what the error of the system that was just noted is about. Returns the status. */
janus_status jrt_trouble_about(janus_status status, enum jrt_subject subject, const char *text);

/* Notes what a handle lacks: rights (JANUS_IO_MAY_, with CAP_RIGHT), or life (STALE). */
janus_status jrt_trouble_lacks(janus_status status, uint32_t rights, const char *name);

/* Notes that a directory's handle lacks a right (JANUS_RIGHT_FILE_). Returns CAP_RIGHT. */
janus_status jrt_trouble_directory(uint32_t right, const char *path);

/* Notes that something does not exist in a simulated run. Returns UNAVAILABLE. */
janus_status jrt_trouble_simulated(const char *what);

/* Notes a clause that says what was wrong and what to do, without a full stop. Returns the
 * status. */
janus_status jrt_trouble_said(janus_status status, const char *clause);

/* A public call ends with an error. If nothing was noted in it, this note replaces the one of an
 * earlier call. Returns the status. */
janus_status jrt_trouble_end(janus_status status, const char *call);

/* Notes a refusal, with the amount used and the limit (0 and 0: no numbers). A note without numbers
 * does not replace one with numbers and the same status. Returns the status. */
static inline janus_status jrt_trouble(janus_status status, janus_component component,
                                       uint64_t used, uint64_t limit)
{
    if (jrt_unlikely(status < 0)) jrt_trouble_note(status, component, used, limit);
    return status;
}

#endif

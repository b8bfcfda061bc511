/* SPDX-License-Identifier: MIT */
/*
 * The audit log: what happened to capabilities and budgets, as lines of JSON.
 *
 *     {"writer":0,"seq":7,"mono_ns":812,"event":"denial","cap":"3.1","kind":"spawn","holder":"9",
 *      "wanted":"spawn.task","status":"JANUS_CAP_FOREIGN","name":"plugin"}
 *
 * Events: creation, attenuation, delegation, revocation, release, denial, exhaustion, recharge, and
 * use. The log counts uses of one capability and writes them together, with the first and the last
 * time. Each denial is an event, even if no capability was held: a spawn over the scheduler's
 * max_tasks. A recharge is a line for each component. Replenishing an implicit budget is no event,
 * and neither is a child's share of its pool.
 *
 * Each worker is a writer, and all foreign threads together are one. The tasks of an outermost
 * nursery with terms are a writer with its own ring. If that ring is full, only their events are
 * lost or refused. Events of one writer have consecutive numbers. A line "gap" reports a hole:
 * "lost" counts the events, "pool" names the nursery. 1024 rings of nurseries can be in use or
 * unread. The tasks of further nurseries write where foreign threads do.
 *
 * The log names a capability by slot and generation. It never writes the nonce of a handle.
 *
 * Writers put events into bounded rings. janus_audit_drain, or a thread if the options ask for one,
 * turns them into lines. If the sink refuses a line, the rings fill. When a ring is full, the log
 * counts lost events. A log that fails closed refuses the operation with AUDIT_FULL instead. It
 * never refuses an operation that takes rights away: revoking, releasing, a denial.
 */
#ifndef JANUSRT_AUDIT_H
#define JANUSRT_AUDIT_H

#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct janus_audit janus_audit;

/*
 * Takes one line, which ends in a newline and a zero; `bytes` counts the newline. If it returns
 * false, the log passes the same line again later.
 */
typedef bool (*janus_audit_sink)(void *argument, const char *line, size_t bytes);

typedef struct janus_audit_options {
    size_t           struct_bytes;  /* sizeof this struct; JANUS_AUDIT_OPTIONS sets it */
    janus_audit_sink sink;          /* NULL: lines go to fd */
    void            *argument;      /* the sink's */
    int              fd;            /* 0: 2, standard error. If it can be a broken pipe, the program
                                       ignores SIGPIPE */
    uint32_t         ring_events;   /* room of each ring, 128 bytes an event. 0: 1024; rounded up to
                                       a power of two, at most 1048576 */
    uint64_t         max_use_count; /* uses in one event. 0: 65536 */
    uint64_t         interval_ns;   /* a thread drains this often, and when a ring is half full.
                                       0: no thread, the program calls janus_audit_drain */
    bool             fail_closed;   /* refuse what cannot be recorded */
    uint32_t         pool_events;   /* room of a pool's ring. 0: a quarter of ring_events; rounded
                                       up to a power of two, at least 8, at most 1048576 */
} janus_audit_options;

#define JANUS_AUDIT_OPTIONS(...) JANUS_OPTIONS_(janus_audit_options, __VA_ARGS__)

typedef struct janus_audit_info {
    size_t   struct_bytes; /* sizeof this struct; JANUS_AUDIT_INFO sets it */
    uint64_t recorded;     /* events put into rings */
    uint64_t lost;         /* events for which there was no room */
    uint64_t refused;      /* operations refused for the same reason */
    uint64_t written;      /* lines the sink took, or that wait in the buffer before the fd */
} janus_audit_info;
#define JANUS_AUDIT_INFO() JANUS_SIZED_(janus_audit_info)

JANUS_BEGIN_DECLS

/*
 * Creates a log.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is the library's until janus_audit_destroy; the fd and the sink's argument stay the
 *          caller's and must live as long.
 * Cost:    a ring's memory.
 * Errors:  INVALID    a field is out of range, `out` is NULL
 *          NO_MEMORY  memory, or the thread, was refused
 *          NO_EXECUTOR_CAP  a restricted task without executor.configure, see scheduler.h
 */
JANUS_NODISCARD JANUS_API janus_status janus_audit_create(const janus_audit_options *options,
                                                          janus_audit              **out);

/*
 * Writes what the rings hold. Uses that a worker is still counting follow with its next use, or
 * when it goes to sleep.
 *
 * Context: any thread. One thread drains at a time, the others wait. Not from within the sink.
 * Yields:  only if the turn is over; it blocks the thread as long as the sink does.
 * Owns:    nothing.
 * Cost:    about a microsecond for each event.
 * Errors:  UNAVAILABLE  the sink refused a line; the rest comes next time
 *          INVALID      `audit` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_audit_drain(janus_audit *audit);

/*
 * Reads the counters at one moment.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  INVALID  an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_audit_inspect(janus_audit      *audit,
                                                           janus_audit_info *out);

/*
 * Drains once more and ends the log.
 *
 * Context: any thread; no table uses the log any more.
 * Yields:  only if the turn is over.
 * Owns:    takes the log.
 * Cost:    as janus_audit_drain.
 * Errors:  UNAVAILABLE  the sink refused the rest, which is lost; the log has ended
 *          INVALID      `audit` is NULL
 */
JANUS_API janus_status janus_audit_destroy(janus_audit *audit);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * The audit log: what happened to capabilities and budgets, as lines of JSON.
 *
 *     {"writer":0,"seq":7,"mono_ns":812,"event":"denial","cap":"3.1","kind":"spawn","holder":"9",
 *      "wanted":"spawn.task","status":"JANUS_CAP_FOREIGN","name":"plugin"}
 *
 * Events: creation, attenuation, delegation, revocation, release, denial, exhaustion, recharge, and
 * use. Uses of one capability are counted and written together, with the first and the last time;
 * a denial is always an event of its own, also where nobody held a capability: a spawn over the
 * scheduler's max_tasks. A recharge is a line for each component. What nobody asks for is no event:
 * an implicit budget that replenishes, a child's part of its nursery's pool.
 * Events of one writer have consecutive numbers; a hole is told by a line "gap" with "lost". Each
 * worker is a writer, and so are all foreign threads together. The tasks of an outermost nursery
 * with terms are a writer, with a ring of their own: what they do too often is lost, or refused, to
 * them alone, and their gap has "pool", the nursery's name. 1024 such rings can be in use or
 * unread; the tasks of further nurseries then write where foreign threads do.
 * A capability is named by slot and generation. The nonce of its handle is never written.
 *
 * Writers put events into bounded rings; janus_audit_drain, or a thread if one is asked for, turns
 * them into lines. A sink that takes no more stops that; then rings fill. When a ring is full,
 * events are counted as lost; or, if the log fails closed, the operation is refused with
 * AUDIT_FULL. What takes rights away (revoking, releasing, a denial) is never refused.
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

/* Takes one line, which ends in a newline and a zero; `bytes` counts the newline. False: it cannot
 * now; the same line comes again. */
typedef bool (*janus_audit_sink)(void *argument, const char *line, size_t bytes);

typedef struct janus_audit_options {
    size_t           struct_bytes;  /* sizeof this struct; JANUS_AUDIT_OPTIONS sets it */
    janus_audit_sink sink;          /* NULL: lines go to fd */
    void            *argument;      /* the sink's */
    int              fd;            /* 0: 2, standard error. If it can be a broken pipe, the program
                                       ignores SIGPIPE */
    uint32_t         ring_events;   /* room of each ring, 128 bytes an event. 0: 1024; rounded up to
                                       a power of two, at most 1048576 */
    uint64_t         use_count_max; /* uses in one event. 0: 65536 */
    uint64_t         interval_ns;   /* a thread drains this often, and when a ring is half full.
                                       0: no thread, the program calls janus_audit_drain */
    bool             fail_closed;   /* refuse what cannot be recorded */
    uint32_t         pool_events;   /* room of a pool's ring. 0: a quarter of ring_events; rounded
                                       up to a power of two, at least 8, at most 1048576 */
} janus_audit_options;

#define JANUS_AUDIT_OPTIONS(...) JANUS_OPTIONS_(janus_audit_options, __VA_ARGS__)

typedef struct janus_audit_stats {
    size_t   struct_bytes; /* in: sizeof this struct */
    uint64_t recorded;     /* events put into rings */
    uint64_t lost;         /* events for which there was no room */
    uint64_t refused;      /* operations refused for the same reason */
    uint64_t written;      /* lines the sink took, or that wait in the buffer before the fd */
} janus_audit_stats;

JANUS_BEGIN_DECLS

/*
 * Makes a log.
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
 * Writes what the rings hold. Uses that a worker is still counting come with its next use after
 * this, or when it goes to sleep.
 *
 * Context: any thread; one at a time works, others wait. Not from within the sink.
 * Yields:  only if the turn is over; it blocks the thread as long as the sink does.
 * Owns:    nothing.
 * Cost:    about a microsecond for each event.
 * Errors:  UNAVAILABLE  the sink took no more; nothing is lost by that, the rest comes next time
 *          INVALID      `audit` is NULL
 */
JANUS_API janus_status janus_audit_drain(janus_audit *audit);

/*
 * The books at one moment.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  INVALID  an argument is NULL, out->struct_bytes cannot be
 */
JANUS_API janus_status janus_audit_stats_read(janus_audit *audit, janus_audit_stats *out);

/*
 * Drains once more and ends the log.
 *
 * Context: any thread; no table uses the log any more.
 * Yields:  only if the turn is over.
 * Owns:    takes the log.
 * Cost:    as janus_audit_drain.
 * Errors:  UNAVAILABLE  the sink did not take the rest, which is lost; the log is gone all the same
 *          INVALID      `audit` is NULL
 */
JANUS_API janus_status janus_audit_destroy(janus_audit *audit);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * Channels: values of one size from those who send to those who receive, in order.
 *
 *     janus_channel jobs;
 *     if (janus_channel_open(sizeof(struct job), 64, NULL, &jobs) != JANUS_OK) return -1;
 *     janus_status status;
 *     JANUS_NURSERY(n, status)
 *     {
 *         // while (janus_channel_recv(*jobs, &job) == JANUS_OK)
 *         if (janus_spawn(n, worker, &jobs) != JANUS_OK) break;
 *         for (int i = 0; i < count; i++) {
 *             if (janus_channel_send(jobs, &job[i]) != JANUS_OK) break;
 *         }
 *         janus_channel_close(jobs);         // who receives gets what is left, then CLOSED
 *     }
 *     janus_channel_destroy(jobs);
 *     return status;
 *
 * With capacity 0 a send waits for its receiver. Otherwise up to `capacity` values lie in between;
 * what happens at one more is the channel's `overflow`. Values are copied; a value is received once
 * or, where a send said anything but OK, still the sender's.
 *
 * Handles. A janus_channel is a small value, copied freely, also into other tasks and threads. It
 * says what its holder may do: send, receive, close. A narrower one is made by
 * janus_channel_attenuate and none can be widened: a changed handle is STALE. Whoever has a handle
 * needs nothing else. Handles cannot be computed from each other: their keys are results of a
 * keyed function, and a forged handle is refused, whatever it is.
 *
 * Life. A channel lives until janus_channel_destroy, and at most as long as the task that opened it
 * (inside a nursery with `scope`: as long as that nursery). A channel that a task forgets thus ends
 * with it: tasks that wait there are told CLOSED, later calls STALE. Closing alone frees nothing,
 * since receivers still take what is left. With the option `kept` a channel outlives its task; it
 * then ends with the nursery on whose terms it was opened (one with a pool, a capability or a
 * backend of its own, around the task), and without such a nursery only by janus_channel_destroy.
 * Channels of plain threads are kept.
 *
 * Limits. Each channel that a task opens counts until it has ended, and its memory is charged to
 * the task: 512 bytes and the room for its values, returned when the channel ends. At most
 *
 *     1,000 channels live at once      janus_scheduler_options.max_channels         CHANNEL_LIMIT
 *     10,000 values lie in one         janus_scheduler_options.max_channel_values   CAP_LIMIT
 *
 * (:cluster: 10,000 and 100,000; :sovereign: none without a capability). Tasks under a channel
 * capability have its limits instead. Tasks under a nursery with a pool of its own have as many
 * channels for that pool alone: what one pool has used up refuses nobody outside of it. Plain
 * threads have no limit but that of the process, 2^20 channels.
 *
 * Plain threads can do all that tasks can; they block. Deadlocks: where every task of a scheduler
 * waits and nothing can happen any more, waits at channels end with DEADLOCK. Channels that others
 * use too, plain threads or tasks of another scheduler, say so when they are opened (`outside`);
 * waiting there is never a deadlock.
 */
#ifndef JANUSRT_CHANNEL_H
#define JANUSRT_CHANNEL_H

#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nothing in it is for users. All zero: no channel, which a select never chooses. */
typedef struct janus_channel {
    uint64_t opaque[2];
} janus_channel;

/* What the holder of a handle may do; or them together. */
enum {
    JANUS_CHANNEL_MAY_SEND = 1,
    JANUS_CHANNEL_MAY_RECV = 2,
    JANUS_CHANNEL_MAY_CLOSE = 4,
    JANUS_CHANNEL_MAY_ALL = 7,
};

/* What a send does where there is no room. */
typedef enum janus_overflow {
    JANUS_OVERFLOW_BLOCK = 0,   /* it waits */
    JANUS_OVERFLOW_FAIL,        /* it returns FULL; in a select it waits */
    JANUS_OVERFLOW_DROP_OLDEST, /* the oldest makes room and is counted; not with capacity 0 */
} janus_overflow;

enum { JANUS_CHANNEL_NAME_BYTES = 32 }; /* of a name, with the zero at its end */

/* How a channel is made. Zero in any field asks for the default named beside it. */
typedef struct janus_channel_options {
    size_t         struct_bytes; /* sizeof this struct; JANUS_CHANNEL_OPTIONS sets it */
    janus_overflow overflow;     /* 0: BLOCK */
    bool           outside;      /* plain threads or other schedulers use it too */
    bool           kept;         /* it outlives the task that opens it, see above */
    const char    *name;         /* for dumps; copied as names of tasks are, 31 bytes. NULL: none */
} janus_channel_options;

#define JANUS_CHANNEL_OPTIONS(...) JANUS_OPTIONS_(janus_channel_options, __VA_ARGS__)

/* A channel at one moment. */
typedef struct janus_channel_info {
    size_t         struct_bytes; /* in: sizeof this struct; out: how much of it was filled */
    size_t         item_bytes;
    uint64_t       capacity;   /* values; of an unbounded one, how many its byte cap allows */
    uint64_t       length;     /* values that lie in it */
    uint64_t       high_water; /* the largest length so far */
    uint64_t       dropped;    /* values that DROP_OLDEST has thrown away */
    uint64_t       senders;    /* that wait, selects included */
    uint64_t       receivers;
    uint32_t       rights; /* of the handle */
    janus_overflow overflow;
    bool           unbounded;
    bool           closed;
    char           name[JANUS_CHANNEL_NAME_BYTES]; /* as kept; "": none */
} janus_channel_info;

/* What a case of a select does, and when it can be done. */
typedef enum janus_select_kind {
    JANUS_SELECT_RECV = 0,
    JANUS_SELECT_SEND,
    JANUS_SELECT_TIMER, /* nothing, once the clock (janus_now_ns) has reached deadline_ns */
    JANUS_SELECT_EVENT, /* nothing, once an event is set or a group is done: janus_case_event and
                           janus_case_group make such a case */
} janus_select_kind;

struct janus_event;
struct janus_group;
struct janus_select_source;

/* One case. Zero in each field that its kind does not use. */
typedef struct janus_select_case {
    janus_channel     channel; /* RECV, SEND; all zero: a case that is never chosen */
    janus_select_kind kind;
    void             *value;       /* what to send, or where to receive; EVENT: the object */
    uint64_t          deadline_ns; /* TIMER */
    const struct janus_select_source *source; /* EVENT: what kind of object it is */
    uint64_t opaque[26];                      /* used while the select waits; 256 bytes in all */
} janus_select_case;

JANUS_BEGIN_DECLS

/*
 * Cases, as values:
 *
 *     janus_select_case cases[] = {
 *         janus_case_recv(jobs, &job),
 *         janus_case_event(&stop),
 *         janus_case_at(next_tick),          // a ticker: next_tick += period whenever it is chosen
 *     };
 *     size_t       chosen;
 *     janus_status status = janus_select(cases, 3, &chosen);
 */

static inline janus_select_case janus_case_of(janus_select_kind kind)
{
    janus_select_case made = {{{0, 0}}, kind, NULL, 0, NULL, {0}};
    return made;
}

static inline janus_select_case janus_case_recv(janus_channel channel, void *out_value)
{
    janus_select_case made = janus_case_of(JANUS_SELECT_RECV);
    made.channel = channel;
    made.value = out_value;
    return made;
}

static inline janus_select_case janus_case_send(janus_channel channel, const void *value)
{
    janus_select_case made = janus_case_of(JANUS_SELECT_SEND);
    made.channel = channel;
    made.value = (void *)(uintptr_t)value;
    return made;
}

static inline janus_select_case janus_case_at(uint64_t deadline_ns)
{
    janus_select_case made = janus_case_of(JANUS_SELECT_TIMER);
    made.deadline_ns = deadline_ns;
    return made;
}

/*
 * A case that can be done while the event is set, and does nothing. Events are in sync.h.
 *
 * Context: any thread or task.
 * Yields:  never.
 * Owns:    the event stays the caller's, and lives until the select has returned.
 * Cost:    a few stores.
 * Errors:  none; with NULL the select returns INVALID.
 */
JANUS_API janus_select_case janus_case_event(struct janus_event *event);

/*
 * A case that can be done while nothing of the group is left, and does nothing. Groups are in
 * sync.h.
 *
 * Context: any thread or task.
 * Yields:  never.
 * Owns:    the group stays the caller's, and lives until the select has returned.
 * Cost:    a few stores.
 * Errors:  none; with NULL the select returns INVALID.
 */
JANUS_API janus_select_case janus_case_group(struct janus_group *group);

/*
 * Makes a channel for values of `item_bytes` bytes (0: only signals), of which `capacity` can lie
 * in it; 0: none, senders and receivers meet. The handle has all rights.
 *
 * Context: any task or thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is a value; the channel is the library's until it ends, see "Life".
 * Cost:    512 bytes and the room for `capacity` values, charged to the task as memory.
 * Errors:  INVALID    `out` is NULL, an option is out of range, DROP_OLDEST with capacity 0, or
 *                     more than half of the address space
 *          NO_MEMORY  memory was refused
 *          UNAVAILABLE  the system has no random numbers for the keys of handles yet
 *          NO_CHANNEL_CAP, CAP_…  as janus_cap_check, in a task
 *          CHANNEL_LIMIT     as many channels live as are allowed, see above
 *          CAP_LIMIT         the capacity is larger than allowed, see above
 *          BUDGET_EXHAUSTED  the task has not so much memory left
 *          On any error *out is untouched and nothing was made.
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_open(size_t item_bytes, uint64_t capacity,
                                                          const janus_channel_options *options,
                                                          janus_channel               *out);

/*
 * Makes one without a capacity of its own: it grows with what lies in it, up to `bytes_max` bytes
 * of values; there, `overflow` decides. A signal counts as one byte.
 *
 * Context: any task or thread.
 * Yields:  only if the turn is over.
 * Owns:    as janus_channel_open.
 * Cost:    512 bytes; from the first value on room for 16, later up to twice what lay in it at
 *          most, moved when it doubles. Empty again, it keeps at most 64 KiB. The task is charged
 *          for `bytes_max` at once.
 * Errors:  as janus_channel_open; INVALID also if `bytes_max` is less than one value. The limit of
 *          values is that of `bytes_max` divided by `item_bytes`.
 */
JANUS_NODISCARD JANUS_API janus_status
janus_channel_open_unbounded(size_t item_bytes, uint64_t bytes_max,
                             const janus_channel_options *options, janus_channel *out);

/*
 * Closes it for good, and ends it: whoever waits there is told CLOSED, values that lie in it are
 * gone, and all handles are STALE.
 *
 * Context: any task or thread; the handle that janus_channel_open gave, or one with all rights.
 * Yields:  only if the turn is over.
 * Owns:    takes the channel: it no longer counts, and its memory is returned to the task that
 *          opened it, if that lives. All zero does nothing.
 * Cost:    a wake-up for each who waits.
 * Errors:  CAP_RIGHT  the handle has not all rights
 *          STALE      it has ended before
 */
JANUS_API janus_status janus_channel_destroy(janus_channel channel);

/*
 * A handle for the same channel that may do less.
 *
 * Context: any task or thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is a value.
 * Cost:    a lock.
 * Errors:  INVALID     `rights` is 0 or has unknown bits, `channel` is all zero, or `out` is NULL
 *          CAP_WIDENS  `rights` has one that `channel` has not
 *          STALE       the channel was destroyed, or the handle is none
 *          On any error *out is untouched.
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_attenuate(janus_channel channel,
                                                               uint32_t rights, janus_channel *out);

/*
 * Sends a copy of *value: straight to a receiver that waits, or into the channel. Where neither is
 * possible it does what the channel's `overflow` says.
 *
 * Context: a task, or a plain thread, which is blocked while it waits and cannot be cancelled.
 * Yields:  while it waits; and now and then where it has not waited for long, to let others run.
 * Owns:    `value` is only read, until the call returns.
 * Cost:    1 op, 1 channel_op. A lock, a copy; if a receiver waits, its wake-up.
 * Errors:  CLOSED     it is, or was closed meanwhile
 *          FULL       no room, and `overflow` is FAIL
 *          CANCELLED  the task was cancelled
 *          DEADLOCK   nothing can happen any more
 *          CAP_RIGHT  the handle may not send
 *          STALE      the channel was destroyed, or the handle is none
 *          INVALID    `channel` is all zero, or `value` is NULL and values are not empty
 *          NO_MEMORY  no memory for a stack to go on with, or for an unbounded channel to grow
 *          On any error nothing was sent and the value is the caller's.
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_send(janus_channel channel, const void *value);

/*
 * The same, at the latest until the clock (janus_now_ns) reaches `deadline_ns`. What can be done at
 * once is done also when the deadline has passed.
 *
 * Context: as janus_channel_send.
 * Yields:  as janus_channel_send.
 * Owns:    as janus_channel_send.
 * Cost:    as janus_channel_send, and a timer if it waits.
 * Errors:  DEADLINE  it passed first
 *          and those of janus_channel_send
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_send_until(janus_channel channel,
                                                                const void   *value,
                                                                uint64_t      deadline_ns);

/*
 * The same without waiting; a task that is cancelled can do it too, as long as it has ops.
 *
 * Context: any task or thread.
 * Yields:  only if the task's turn, or its budget, is used up.
 * Owns:    as janus_channel_send.
 * Cost:    1 op, 1 channel_op. A lock, a copy; if a receiver waits, its wake-up.
 * Errors:  WOULD_WAIT  no room, or with capacity 0 no receiver that waits
 *          and those of janus_channel_send but DEADLOCK
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_try_send(janus_channel channel,
                                                              const void   *value);

/*
 * Receives the oldest value that lies in it, or that of the sender who has waited longest.
 *
 * Context: a task, or a plain thread, which is blocked while it waits and cannot be cancelled.
 * Yields:  as janus_channel_send.
 * Owns:    *out_value is written when OK is returned, and otherwise never.
 * Cost:    1 op, 1 channel_op. A lock, a copy; if a sender waits, its wake-up.
 * Errors:  CLOSED     it is closed and nothing is left in it
 *          CANCELLED  the task was cancelled
 *          DEADLOCK   nothing can happen any more
 *          CAP_RIGHT  the handle may not receive
 *          STALE      the channel was destroyed, or the handle is none
 *          INVALID    `channel` is all zero, or `out_value` is NULL and values are not empty
 *          NO_MEMORY  no memory for a stack to go on with
 *          On any error nothing was received.
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_recv(janus_channel channel, void *out_value);

/*
 * The same, at the latest until the clock (janus_now_ns) reaches `deadline_ns`. What can be done at
 * once is done also when the deadline has passed.
 *
 * Context: as janus_channel_recv.
 * Yields:  as janus_channel_recv.
 * Owns:    as janus_channel_recv.
 * Cost:    as janus_channel_recv, and a timer if it waits.
 * Errors:  DEADLINE  it passed first
 *          and those of janus_channel_recv
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_recv_until(janus_channel channel,
                                                                void         *out_value,
                                                                uint64_t      deadline_ns);

/*
 * The same without waiting; a task that is cancelled can do it too, as long as it has ops.
 *
 * Context: any task or thread.
 * Yields:  only if the task's turn, or its budget, is used up.
 * Owns:    as janus_channel_recv.
 * Cost:    1 op, 1 channel_op. A lock, a copy; if a sender waits, its wake-up.
 * Errors:  WOULD_WAIT  nothing lies in it and no sender waits
 *          and those of janus_channel_recv but DEADLOCK
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_try_recv(janus_channel channel,
                                                              void         *out_value);

/*
 * Closes it: no more values are taken. Senders that wait are told CLOSED and keep theirs; receivers
 * get what is left, then CLOSED. Closing a closed one does nothing.
 *
 * Context: any task or thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing; the channel is there until janus_channel_destroy.
 * Cost:    a wake-up for each who waits.
 * Errors:  CAP_RIGHT  the handle may not close
 *          STALE      the channel was destroyed, or the handle is none
 *          INVALID    `channel` is all zero
 */
JANUS_API janus_status janus_channel_close(janus_channel channel);

/*
 * Reads what there is to know about it.
 *
 * Context: any task or thread; any handle. Out of date as soon as it is told.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    a lock.
 * Errors:  INVALID  `channel` is all zero, or `out` is NULL or has no room
 *          STALE    the channel was destroyed, or the handle is none
 */
JANUS_API janus_status janus_channel_inspect(janus_channel channel, janus_channel_info *out);

/*
 * Does exactly one of `count` cases, as soon as one can be done. If several can, each is as likely
 * as every other; the choice comes from the scheduler's seed. A case on a closed channel can be
 * done: it says CLOSED. Timers and events are looked at one after the other, channels all at one
 * moment.
 *
 * Context: a task, or a plain thread, which is blocked while it waits and cannot be cancelled.
 * Yields:  as janus_channel_send.
 * Owns:    `cases` stays the caller's; the library writes in their `opaque` until the call returns.
 *          *out_chosen (NULL: not wanted) is set when OK or CLOSED is returned, and where a case is
 *          at fault (CAP_RIGHT, STALE, INVALID but for `cases`): its index; otherwise never. Values
 *          as in send and receive.
 * Cost:    an op for each case, 1 channel_op. A lock for each case up to the one that is done; if
 *          it waits, all locks at once, in order (n log n), and each once more.
 * Errors:  CLOSED     the case that was chosen is of a closed channel
 *          CANCELLED  the task was cancelled
 *          DEADLOCK   nothing can happen any more
 *          CAP_RIGHT  a handle lacks the right
 *          STALE      a channel was destroyed, or a handle is none
 *          INVALID    a value is NULL, a kind is none, an EVENT has no source, `cases` is NULL, or
 *                     2^31 cases and more
 *          NO_MEMORY  no memory for a stack to go on with, or for an unbounded channel to grow
 *          On any error but CLOSED nothing was sent or received.
 */
JANUS_NODISCARD JANUS_API janus_status janus_select(janus_select_case *cases, size_t count,
                                                    size_t *out_chosen);

/*
 * The same, at the latest until the clock (janus_now_ns) reaches `deadline_ns`.
 *
 * Context: as janus_select.
 * Yields:  as janus_select.
 * Owns:    as janus_select.
 * Cost:    as janus_select, and a timer if it waits.
 * Errors:  DEADLINE  it passed first
 *          and those of janus_select
 */
JANUS_NODISCARD JANUS_API janus_status janus_select_until(janus_select_case *cases, size_t count,
                                                          size_t *out_chosen, uint64_t deadline_ns);

/*
 * The same without waiting: the default case. WOULD_WAIT means that there was a moment at which no
 * case could be done.
 *
 * Context: any task or thread; a task that is cancelled too, as long as it has ops.
 * Yields:  only if the task's turn, or its budget, is used up.
 * Owns:    as janus_select.
 * Cost:    as janus_select.
 * Errors:  WOULD_WAIT  no case can be done
 *          and those of janus_select but DEADLOCK
 */
JANUS_NODISCARD JANUS_API janus_status janus_try_select(janus_select_case *cases, size_t count,
                                                        size_t *out_chosen);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * Channels: queues of values of one size, from senders to receivers, in order.
 *
 *     janus_channel jobs;
 *     if (janus_channel_create(sizeof(struct job), 64, NULL, &jobs) != JANUS_OK) return -100;
 *     janus_status status;
 *     JANUS_NURSERY(n, status)
 *     {
 *         // while (janus_channel_recv(*jobs, &job) == JANUS_OK)
 *         if (janus_spawn(n, worker, &jobs) != JANUS_OK) break;
 *         for (int i = 0; i < count; i++) {
 *             if (janus_channel_send(jobs, &job[i]) != JANUS_OK) break;
 *         }
 *         janus_channel_close(jobs);         // receivers get what is left, then CLOSED
 *     }
 *     janus_channel_destroy(jobs);
 *     return status;
 *
 * With capacity 0 a send waits for a receiver. Otherwise the channel holds up to `capacity` values,
 * and `overflow` decides about one more. The channel copies values. Each value is received at most
 * once. If a send does not return OK, the sender still owns the value.
 *
 * Handles. A janus_channel is a small value. A program may copy it, also to other tasks and
 * threads. Each handle has rights: send, receive, close. Its holder needs no capability.
 * janus_channel_attenuate makes a handle with fewer rights. Nobody can widen a handle or compute
 * one from another: the channel refuses a changed or forged handle as STALE.
 *
 * Life. A channel lives until janus_channel_destroy, and at most as long as the task that created
 * it. Inside a nursery with `scope` it lives at most as long as that nursery. When a channel ends,
 * its waiting tasks get CLOSED, and later calls return STALE. Closing frees nothing, because
 * receivers still take what is left.
 *
 * With the option `kept` a channel outlives its task. It then ends with the nursery around the task
 * that has a pool, a capability or a backend. Without such a nursery only janus_channel_destroy
 * ends it. Channels of plain threads are always kept.
 *
 * Limits. Each channel counts until it has ended. The task that created it pays 512 bytes and the
 * room for its values, until the channel ends. A default budget of 1 MiB pays for some 2,000
 * channels; janus_scheduler_options.task_budget sets another. The limits are
 *
 *     1,000 channels live at once      janus_scheduler_options.max_channels         CHANNEL_LIMIT
 *     10,000 values lie in one         janus_scheduler_options.max_channel_values   CAP_LIMIT
 *
 * The profile :cluster has 10,000 and 100,000. In :sovereign a task needs a capability. Tasks under
 * a channel capability have its limits instead. Each nursery with a pool counts its own channels,
 * so one pool cannot use up those of another. Plain threads have only the limit of the process,
 * 2^20 channels.
 *
 * Plain threads can do all that tasks can; they block.
 *
 * Deadlocks. If every task of a scheduler waits and no event can come, waits at channels return
 * DEADLOCK. If plain threads or another scheduler use a channel too, create it with `outside`. A
 * wait there is never a deadlock.
 */
#ifndef JANUSRT_CHANNEL_H
#define JANUSRT_CHANNEL_H

#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Its fields are private. All zero means no channel; a select never chooses it. */
typedef struct janus_channel {
    uint64_t opaque[2];
} janus_channel;

/* The rights of a handle. They can be combined. */
enum janus_channel_may {
    JANUS_CHANNEL_MAY_SEND = 1,
    JANUS_CHANNEL_MAY_RECV = 2,
    JANUS_CHANNEL_MAY_CLOSE = 4,
    JANUS_CHANNEL_MAY_ALL = 7,
};

/* What a send does if the channel is full. */
typedef enum janus_overflow {
    JANUS_OVERFLOW_BLOCK = 0,   /* it waits */
    JANUS_OVERFLOW_FAIL,        /* it returns FULL; in a select it waits */
    JANUS_OVERFLOW_DROP_OLDEST, /* it drops and counts the oldest value; not with capacity 0 */
} janus_overflow;

/* The bytes of a name with its zero. */
#define JANUS_CHANNEL_NAME_BYTES 32

/* Options of a channel. Zero in any field selects the default named beside it. */
typedef struct janus_channel_options {
    size_t         struct_bytes; /* sizeof this struct; JANUS_CHANNEL_OPTIONS sets it */
    janus_overflow overflow;     /* 0: BLOCK */
    bool           outside;      /* plain threads or other schedulers use it too */
    bool           kept;         /* it outlives the task that creates it, see above */
    const char    *name;         /* for dumps; copied, at most 31 bytes. NULL: none */
} janus_channel_options;

#define JANUS_CHANNEL_OPTIONS(...) JANUS_OPTIONS_(janus_channel_options, __VA_ARGS__)

/* A channel at one moment. */
typedef struct janus_channel_info {
    size_t         struct_bytes; /* sizeof this struct; JANUS_CHANNEL_INFO sets it */
    size_t         item_bytes;
    uint64_t       capacity;   /* values; if unbounded, as many as max_bytes allows */
    uint64_t       length;     /* values that lie in it */
    uint64_t       high_water; /* the largest length so far */
    uint64_t       dropped;    /* values that DROP_OLDEST has thrown away */
    uint64_t       senders;    /* waiting senders, selects included */
    uint64_t       receivers;
    uint32_t       rights; /* of the handle */
    janus_overflow overflow;
    bool           unbounded;
    bool           closed;
    char           name[JANUS_CHANNEL_NAME_BYTES]; /* as kept; "": none */
} janus_channel_info;
#define JANUS_CHANNEL_INFO() JANUS_SIZED_(janus_channel_info)

/* The kinds of cases in a select. */
typedef enum janus_select_kind {
    JANUS_SELECT_KIND_RECV = 0,
    JANUS_SELECT_KIND_SEND,
    JANUS_SELECT_KIND_TIMER, /* chosen once the clock (janus_now_ns) has reached deadline_ns */
    JANUS_SELECT_KIND_EVENT, /* chosen once an event is set or a group is done; made by
                           janus_case_event and janus_case_group */
} janus_select_kind;

struct janus_event;
struct janus_group;
struct janus_select_source;

/* One case of a select. Fields that its kind does not use are zero. */
typedef struct janus_select_case {
    janus_channel     channel; /* RECV, SEND; if all zero, never chosen */
    janus_select_kind kind;
    void             *value;       /* what to send, or where to receive; EVENT: the object */
    uint64_t          deadline_ns; /* TIMER */
    const struct janus_select_source *source; /* EVENT: the kind of object */
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
    janus_select_case made = janus_case_of(JANUS_SELECT_KIND_RECV);
    made.channel = channel;
    made.value = out_value;
    return made;
}

static inline janus_select_case janus_case_send(janus_channel channel, const void *value)
{
    janus_select_case made = janus_case_of(JANUS_SELECT_KIND_SEND);
    made.channel = channel;
    made.value = (void *)(uintptr_t)value;
    return made;
}

static inline janus_select_case janus_case_at(uint64_t deadline_ns)
{
    janus_select_case made = janus_case_of(JANUS_SELECT_KIND_TIMER);
    made.deadline_ns = deadline_ns;
    return made;
}

/*
 * Makes a case that is ready while the event is set. Events are in sync.h.
 *
 * Context: any thread or task.
 * Yields:  never.
 * Owns:    the event stays the caller's, and lives until the select has returned.
 * Cost:    a few stores.
 * Errors:  none; with NULL the select returns INVALID.
 */
JANUS_API janus_select_case janus_case_event(struct janus_event *event);

/*
 * Makes a case that is ready while the group is done. Groups are in sync.h.
 *
 * Context: any thread or task.
 * Yields:  never.
 * Owns:    the group stays the caller's, and lives until the select has returned.
 * Cost:    a few stores.
 * Errors:  none; with NULL the select returns INVALID.
 */
JANUS_API janus_select_case janus_case_group(struct janus_group *group);

/*
 * Creates a channel for values of `item_bytes` bytes (0: only signals) with room for `capacity`
 * values (0: sender and receiver meet). The handle has all rights.
 *
 * Context: any task or thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is a value; the channel is the library's until it ends, see "Life".
 * Cost:    512 bytes and the room for `capacity` values, charged to the task as memory.
 * Errors:  INVALID    `out` is NULL, an option is out of range, DROP_OLDEST has capacity 0, or the
 *                     values need more than half of the address space
 *          NO_MEMORY  memory was refused
 *          UNAVAILABLE  the system has no random numbers for the keys of handles yet
 *          NO_CHANNEL_CAP, CAP_…  as janus_cap_check_in, in a task
 *          CHANNEL_LIMIT     the limit of channels is reached, see above
 *          CAP_LIMIT         the capacity is larger than allowed, see above
 *          BUDGET_EXHAUSTED  the task's memory budget has too little left
 *          On any error *out is untouched and nothing was made.
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_create(size_t item_bytes, uint64_t capacity,
                                                            const janus_channel_options *options,
                                                            janus_channel               *out);

/*
 * Creates a channel that grows with its values, up to `max_bytes` bytes. Then `overflow` decides. A
 * signal counts as one byte.
 *
 * Context: any task or thread.
 * Yields:  only if the turn is over.
 * Owns:    as janus_channel_create.
 * Cost:    512 bytes, then room for 16 values, which doubles as needed. An empty channel keeps at
 *          most 64 KiB. The task pays for `max_bytes` at once.
 * Errors:  as janus_channel_create; INVALID also if `max_bytes` is less than one value. The limit
 *          of values applies to `max_bytes` divided by `item_bytes`.
 */
JANUS_NODISCARD JANUS_API janus_status
janus_channel_create_unbounded(size_t item_bytes, uint64_t max_bytes,
                               const janus_channel_options *options, janus_channel *out);

/*
 * Ends a channel. Waiting tasks get CLOSED, values in the channel are lost, and all handles become
 * STALE.
 *
 * Context: any task or thread; the handle that janus_channel_create gave, or one with all rights.
 * Yields:  only if the turn is over.
 * Owns:    takes the channel. It no longer counts, and the task that created it gets its memory
 *          back. All zero does nothing.
 * Cost:    a wake-up for each waiting task.
 * Errors:  CAP_RIGHT  the handle does not have all rights
 *          STALE      it has ended already
 */
JANUS_API janus_status janus_channel_destroy(janus_channel channel);

/*
 * Makes a handle for the same channel with fewer rights.
 *
 * Context: any task or thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is a value.
 * Cost:    a lock.
 * Errors:  INVALID     `rights` is 0 or has unknown bits, `channel` is all zero, or `out` is NULL
 *          CAP_WIDENS  `rights` has more than `channel` has
 *          STALE       the channel was destroyed, or the handle is forged
 *          On any error *out is untouched.
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_attenuate(janus_channel channel,
                                                               uint32_t rights, janus_channel *out);

/*
 * Sends a copy of *value, to a waiting receiver or into the channel. If neither is possible, it
 * does what the channel's `overflow` says.
 *
 * Context: a task, or a plain thread, which blocks and cannot be cancelled.
 * Yields:  while it waits. A task that never has to wait yields now and then, to let others run.
 * Owns:    `value` is only read, until the call returns.
 * Cost:    1 op, 1 channel_op. A lock, a copy; if a receiver waits, its wake-up.
 * Errors:  CLOSED     the channel is closed, or was closed meanwhile
 *          FULL       the channel is full, and `overflow` is FAIL
 *          CANCELLED  the task was cancelled
 *          DEADLOCK   every task waits, and no event can come
 *          CAP_RIGHT  the handle may not send
 *          STALE      the channel was destroyed, or the handle is forged
 *          INVALID    `channel` is all zero, or `value` is NULL and values are not empty
 *          NO_MEMORY  memory for a stack, or for an unbounded channel, was refused
 *          On any error nothing was sent, and the caller owns the value.
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_send(janus_channel channel, const void *value);

/*
 * Sends as janus_channel_send, but waits at most until the clock (janus_now_ns) reaches
 * `deadline_ns`. If the channel has room, it sends also after the deadline.
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
 * Sends as janus_channel_send, but never waits. A cancelled task may call it while it has ops.
 *
 * Context: any task or thread.
 * Yields:  only if the task's turn, or its budget, is used up.
 * Owns:    as janus_channel_send.
 * Cost:    1 op, 1 channel_op. A lock, a copy; if a receiver waits, its wake-up.
 * Errors:  WOULD_WAIT  the channel is full, or with capacity 0 no receiver waits
 *          and those of janus_channel_send but DEADLOCK
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_try_send(janus_channel channel,
                                                              const void   *value);

/*
 * Receives the oldest value in the channel, or that of the longest waiting sender.
 *
 * Context: a task, or a plain thread, which blocks and cannot be cancelled.
 * Yields:  as janus_channel_send.
 * Owns:    *out_value is written when OK is returned, and otherwise never.
 * Cost:    1 op, 1 channel_op. A lock, a copy; if a sender waits, its wake-up.
 * Errors:  CLOSED     the channel is closed and empty
 *          CANCELLED  the task was cancelled
 *          DEADLOCK   every task waits, and no event can come
 *          CAP_RIGHT  the handle may not receive
 *          STALE      the channel was destroyed, or the handle is forged
 *          INVALID    `channel` is all zero, or `out_value` is NULL and values are not empty
 *          NO_MEMORY  memory for a stack was refused
 *          On any error nothing was received.
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_recv(janus_channel channel, void *out_value);

/*
 * Receives as janus_channel_recv, but waits at most until the clock (janus_now_ns) reaches
 * `deadline_ns`. If a value is there, it receives also after the deadline.
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
 * Receives as janus_channel_recv, but never waits. A cancelled task may call it while it has ops.
 *
 * Context: any task or thread.
 * Yields:  only if the task's turn, or its budget, is used up.
 * Owns:    as janus_channel_recv.
 * Cost:    1 op, 1 channel_op. A lock, a copy; if a sender waits, its wake-up.
 * Errors:  WOULD_WAIT  the channel is empty and no sender waits
 *          and those of janus_channel_recv but DEADLOCK
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_try_recv(janus_channel channel,
                                                              void         *out_value);

/*
 * Closes a channel: it takes no more values. Waiting senders get CLOSED and keep their values.
 * Receivers get what is left, then CLOSED. Closing a closed channel does nothing.
 *
 * Context: any task or thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing; the channel is there until janus_channel_destroy.
 * Cost:    a wake-up for each waiting task.
 * Errors:  CAP_RIGHT  the handle may not close
 *          STALE      the channel was destroyed, or the handle is forged
 *          INVALID    `channel` is all zero
 */
JANUS_API janus_status janus_channel_close(janus_channel channel);

/*
 * Reads the state of a channel.
 *
 * Context: any task or thread, with any handle. The answer may be out of date at once.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    a lock.
 * Errors:  INVALID  `channel` is all zero, or `out` is NULL or has no room
 *          STALE    the channel was destroyed, or the handle is forged
 */
JANUS_NODISCARD JANUS_API janus_status janus_channel_inspect(janus_channel       channel,
                                                             janus_channel_info *out);

/*
 * Waits until a case of `count` cases is ready, and does exactly that case. If several are ready,
 * each is equally likely; the scheduler's seed decides. A case of a closed channel is ready and
 * returns CLOSED. The call looks at all channels at one moment, and at timers and events one after
 * the other.
 *
 * Context: a task, or a plain thread, which blocks and cannot be cancelled.
 * Yields:  as janus_channel_send.
 * Owns:    `cases` stays the caller's; the library writes in their `opaque` until the call returns.
 *          *out_chosen (NULL: not wanted) is the index of the case, on OK and CLOSED. On CAP_RIGHT,
 *          STALE and INVALID it is the index of the case at fault. Otherwise it is untouched.
 *          Values as in send and receive.
 * Cost:    an op for each case, 1 channel_op. A lock for each case up to the chosen one. A wait
 *          takes all locks at once, in order (n log n), and each once more.
 * Errors:  CLOSED     the chosen case has a closed channel
 *          CANCELLED  the task was cancelled
 *          DEADLOCK   every task waits, and no event can come
 *          CAP_RIGHT  a handle lacks the right
 *          STALE      a channel was destroyed, or a handle is forged
 *          INVALID    a value is NULL, a kind does not exist, an EVENT has no source, `cases` is
 *                     NULL, or there are 2^31 cases or more
 *          NO_MEMORY  memory for a stack, or for an unbounded channel, was refused
 *          On any error but CLOSED nothing was sent or received.
 */
JANUS_NODISCARD JANUS_API janus_status janus_select(janus_select_case *cases, size_t count,
                                                    size_t *out_chosen);

/*
 * Selects as janus_select, but waits at most until the clock (janus_now_ns) reaches `deadline_ns`.
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
 * Selects as janus_select, but never waits: the default case of other languages. WOULD_WAIT means
 * that at one moment no case was ready.
 *
 * Context: any task or thread; a task that is cancelled too, as long as it has ops.
 * Yields:  only if the task's turn, or its budget, is used up.
 * Owns:    as janus_select.
 * Cost:    as janus_select.
 * Errors:  WOULD_WAIT  no case is ready
 *          and those of janus_select but DEADLOCK
 */
JANUS_NODISCARD JANUS_API janus_status janus_try_select(janus_select_case *cases, size_t count,
                                                        size_t *out_chosen);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * Actors: state that one message at a time may change.
 *
 *     struct add { int64_t amount; };
 *     struct counter { int64_t count; };
 *
 *     static int64_t count(void *state, janus_letter *letter)
 *     {
 *         struct counter   *self = state;
 *         const struct add *add = letter->message;
 *         if (add == NULL) return JANUS_ACTOR_GO_ON; // a notice
 *         self->count += add->amount;
 *         if (janus_letter_is_call(letter)) JANUS_IGNORE(janus_reply(letter, &self->count));
 *         return JANUS_ACTOR_GO_ON;
 *     }
 *     static const janus_behaviour counter = {.struct_bytes = sizeof counter, .name = "counter",
 *         .state_bytes = sizeof(struct counter), .message_bytes = sizeof(struct add),
 *         .reply_bytes = sizeof(int64_t), .handle = count};
 *
 *     janus_supervisor *supervisor;                                    // supervisor.h
 *     janus_actor       actor;
 *     int64_t           sum;
 *     status = janus_supervisor_open(NULL, &supervisor);
 *     status = janus_supervisor_add(supervisor, JANUS_CHILD(.behaviour = &counter), &actor);
 *     status = janus_cast(actor, &(struct add){1});
 *     status = janus_call(actor, &(struct add){0}, &sum, janus_now_ns() + JANUS_SECONDS);
 *     status = janus_supervisor_end(supervisor, NULL); // handles what is queued, then ends
 *
 * Between messages an actor is a task without frames: it has no stack. A handler may wait, as any
 * task; meanwhile its messages queue up. The library calls the handlers of one actor one after the
 * other, never two at once.
 *
 * A handle names a place, not what sits there. If the actor fails, its supervisor starts it again
 * in the same place, with fresh state and the messages that were not handled yet. The message that
 * failed does not come again.
 *
 * Two lanes. Notices (the end of a watched actor, a timer, the reply to an ask) are never refused
 * and come before messages. Messages have a bounded mailbox, and keep their order between one
 * sender and one actor. A cast into a full mailbox waits for room, unless its options say
 * otherwise. Each message ends in exactly one way: handled, returned to its sender by a status, or
 * counted as a dead letter.
 *
 * A circle of calls, or of casts that wait for room, could never end. The call that would close
 * such a circle returns DEADLOCK at once, and janus_explain names the actors in it.
 *
 * What a handler leaves behind ends with the handler: defers run, locks are given up as abandoned,
 * shields end. A nursery that it leaves open makes it panic. Memory of janus_alloc stays until the
 * actor ends or is restarted.
 *
 * Workers run actors, so the backend around them is COOPERATIVE or EVENTED. In every call here a
 * deadline_ns of 0 means that there is no deadline.
 *
 * In C++ the macros of options end with their expression (options.h), also one inside another. So
 * name the options of an actor first, and then write JANUS_CHILD(.options = &options):
 *
 *     const janus_actor_options options = *JANUS_ACTOR_OPTIONS(.max_messages = 8);
 */
#ifndef JANUSRT_ACTOR_H
#define JANUSRT_ACTOR_H

#include <janusrt/budget.h>
#include <janusrt/channel.h>
#include <janusrt/export.h>
#include <janusrt/letter.h>
#include <janusrt/options.h>
#include <janusrt/scheduler.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the holder of a handle may do. */
enum janus_actor_right {
    JANUS_ACTOR_MAY_CAST = 1,
    JANUS_ACTOR_MAY_CALL = 2,
    JANUS_ACTOR_MAY_WATCH = 4, /* and await, inspect */
    JANUS_ACTOR_MAY_STOP = 8,  /* and suspend, resume, describe */
    JANUS_ACTOR_MAY_ALL = 15,
};

/*
 * What init and handle return. A negative number is a failure. So is a number of handle that is not
 * listed here, and it becomes the actor's error. Of init such a number means IGNORE.
 */
enum janus_actor_next {
    JANUS_ACTOR_GO_ON = 0,
    JANUS_ACTOR_STOP = 1,   /* the actor ends, NORMAL */
    JANUS_ACTOR_LATER = 2,  /* of handle: it puts the message aside until janus_actor_take_up. For a
                               notice it means GO_ON */
    JANUS_ACTOR_IGNORE = 3, /* of init: there is nothing to do, and nothing is started */
};

/* Makes an actor of zeroed state; `argument` is that of the child's specification. */
typedef int64_t janus_actor_init(void *state, void *argument);

/* Handles a letter. */
typedef int64_t janus_actor_handle(void *state, janus_letter *letter);

/*
 * Runs when an incarnation ends whose init had succeeded, in a shield that lasts for the
 * scheduler's grace_ns. It does not run after a panic, an overflow or an exhaustion, because the
 * state may be half changed. Whatever it does, `end` stays the reason.
 */
typedef void janus_actor_terminate(void *state, const janus_end *end);

/* Writes a line about the state for janus_actor_describe; returns its length, as snprintf. */
typedef size_t janus_actor_describe_state(const void *state, char *buffer, size_t size);

/* What all actors of one sort have in common. It must outlive them; usually it is static const. */
typedef struct janus_behaviour {
    size_t                      struct_bytes;  /* sizeof this struct */
    const char                 *name;          /* for dumps and reports; NULL: "actor" */
    size_t                      state_bytes;   /* at most 1 MiB; zeroed before each init */
    size_t                      message_bytes; /* at most 4096 */
    size_t                      reply_bytes;   /* at most 4096; 0: it answers no calls */
    janus_actor_init           *init;          /* NULL: zeroed state is ready */
    janus_actor_handle         *handle;
    janus_actor_terminate      *terminate; /* NULL: there is nothing to do */
    janus_actor_describe_state *describe;  /* NULL: it has nothing to tell */
} janus_behaviour;

/* Its initial value, in C and in C++17 alike, also outside of functions:
 *     static const janus_behaviour till = JANUS_BEHAVIOUR(.name = "till", .handle = handle); */
#define JANUS_BEHAVIOUR(...) JANUS_INITIAL_(janus_behaviour, __VA_ARGS__)

/* A refill: `amount` for each period in which the actor runs out. All zero: none. */
typedef struct janus_allowance {
    janus_budget amount;
    uint64_t     period_ns;
} janus_allowance;

/* Options of one actor. Zero in any field selects the default named beside it. */
typedef struct janus_actor_options {
    size_t              struct_bytes; /* sizeof this struct; JANUS_ACTOR_OPTIONS sets it */
    uint32_t            max_messages; /* in its mailbox, with those put aside. 0: 64 */
    janus_overflow      overflow;  /* when the mailbox is full. 0: BLOCK. DROP_OLDEST makes a dead
                                           letter of the oldest cast, and never of a call */
    uint64_t            max_bytes; /* of detached blocks in its mailbox. 0: 1 MiB */
    const janus_budget *budget;    /* explicit, for its life, over all incarnations. NULL: as any
                                      task of the supervisor's nursery */
    const janus_budget *message_budget; /* for one letter: an actor that needs more ends EXHAUSTED.
                                      It is a limit, and gives nothing: the actor's budget and its
                                      refills pay. Only with `budget`, or under a supervisor with a
                                      pool. NULL: no such limit */
    janus_allowance     allowance;      /* only under a supervisor with a pool, an allowance or
                                      on_exhausted. 0: the supervisor's */
    size_t              stack_bytes;    /* if it waits. 0: the nursery's */
    janus_priority      priority;       /* 0: NORMAL; as janus_spawn_options.priority */
    bool                outside; /* plain threads answer the calls that it keeps, or make it answer
                                      them. So to wait for it is never a deadlock */
    const char *name; /* at most 63 bytes, copied; registered while it runs, see janus_actor_find.
                         The supervisor needs a name capability with name.register; outside of
                         pools :service and :cluster give one. NULL: none */
} janus_actor_options;

#define JANUS_ACTOR_OPTIONS(...) JANUS_OPTIONS_(janus_actor_options, __VA_ARGS__)

/* Options of one cast. Zero in any field selects the default named beside it. */
typedef struct janus_cast_options {
    size_t   struct_bytes; /* sizeof this struct; JANUS_CAST_OPTIONS sets it */
    void    *block;        /* detached by janus_detach; it travels with the message. NULL: none */
    uint64_t deadline_ns;  /* for room in the mailbox. 0: none */
    bool     refuses;      /* the cast never waits for room, it returns WOULD_WAIT */
} janus_cast_options;

#define JANUS_CAST_OPTIONS(...) JANUS_OPTIONS_(janus_cast_options, __VA_ARGS__)

/* Where a place stands. */
typedef enum janus_actor_state {
    JANUS_ACTOR_STATE_EMPTY = 0, /* nothing runs there; the specification is kept */
    JANUS_ACTOR_STATE_STARTING,  /* init runs, or has yet to run */
    JANUS_ACTOR_STATE_RUNNING,
    JANUS_ACTOR_STATE_DELAYED,  /* it waits to be started again */
    JANUS_ACTOR_STATE_STOPPING, /* its supervisor, or janus_actor_stop, ends it */
    JANUS_ACTOR_STATE_STUCK,    /* it was cancelled, and has not ended a second later */
    JANUS_ACTOR_STATE_GONE,     /* for good */
} janus_actor_state;

typedef struct janus_actor_info {
    size_t            struct_bytes; /* sizeof this struct; JANUS_ACTOR_INFO sets it */
    janus_actor_state state;
    bool              suspended;
    uint32_t          incarnation; /* how often it was started */
    janus_task_id     task;        /* that it is now; 0: none */
    const char       *behaviour;   /* its name; of a task or a supervisor "task", "supervisor" */
    uint32_t          messages;    /* in the mailbox now, with those put aside */
    uint32_t          max_messages;
    uint64_t          sent;     /* messages that the mailbox took */
    uint64_t          handled;  /* of these: handled, with the message in hand */
    uint64_t          returned; /* of these: calls that ended without being handled */
    uint64_t          dead;     /* of these: dead letters */
    uint64_t          notices;  /* handled */
    uint64_t          failures; /* incarnations that ended by themselves, and not NORMAL */
    janus_end         last;     /* how the last incarnation ended, if there was one */
} janus_actor_info;
#define JANUS_ACTOR_INFO() JANUS_SIZED_(janus_actor_info)

/* How an actor is to end. */
typedef enum janus_stop_how {
    JANUS_STOP_HOW_AFTER_THIS = 0, /* after the letter in hand; queued casts become dead letters */
    JANUS_STOP_HOW_DRAIN,          /* it takes no more messages and handles those in its mailbox;
                                      those put aside become dead letters */
    JANUS_STOP_HOW_AT_ONCE,        /* it is cancelled: its waits return CANCELLED */
} janus_stop_how;

JANUS_BEGIN_DECLS

/*
 * Sends a message. If the mailbox is full, the options of the actor say what happens.
 *
 * Context: anyone with MAY_CAST. A plain thread, a callback or a task of another scheduler does not
 *          wait for room: it gets FULL.
 * Yields:  while there is no room, and when the turn is over.
 * Owns:    the library copies message_bytes from `message`.
 * Cost:    1 op and 1 channel operation here, the same for the actor.
 * Errors:  STALE      the handle names no actor any more
 *          CAP_RIGHT  the handle lacks MAY_CAST
 *          CLOSED     the actor takes no more messages: it is ending, or nothing runs there
 *          FULL       the mailbox is full, and the sender does not wait; or the block would exceed
 *                     max_bytes
 *          DEADLOCK   to wait for room would close a circle
 *          CANCELLED  this task was cancelled, before it waited or while it did
 *          NO_MEMORY  memory for the mailbox was refused
 *          INVALID    `message` is NULL, and the behaviour has messages
 *          On any error the message was not sent.
 */
JANUS_NODISCARD JANUS_API janus_status janus_cast(janus_actor actor, const void *message);

/*
 * Sends a message as janus_cast, but never waits.
 *
 * Context: as janus_cast.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cast.
 * Cost:    as janus_cast.
 * Errors:  WOULD_WAIT  there is no room, whatever `overflow` says but DROP_OLDEST
 *          and those of janus_cast
 */
JANUS_NODISCARD JANUS_API janus_status janus_try_cast(janus_actor actor, const void *message);

/*
 * Sends a message with options. The actor adopts a detached block (janus_detach, memory.h) before
 * its handler is called. Until then the task that detached the block pays for it. If the message
 * becomes a dead letter, or the actor cannot pay for the block, the library frees the block.
 *
 * Context: as janus_cast. With a block: inside a task.
 * Yields:  as janus_cast.
 * Owns:    takes options.block, if this returns OK.
 * Cost:    as janus_cast; with a block, a few hundred ns.
 * Errors:  DEADLINE    options.deadline_ns passed
 *          WOULD_WAIT  there is no room, and options.refuses
 *          STATE       a block outside of a task
 *          and those of janus_cast. On any error the block is still the caller's, detached.
 */
JANUS_NODISCARD JANUS_API janus_status janus_cast_with(janus_actor actor, const void *message,
                                                       const janus_cast_options *options);

/*
 * Sends a message and waits for its answer, at the latest until `deadline_ns` (0: none). The actor
 * skips a call whose deadline has passed in the mailbox.
 *
 * Context: anyone with MAY_CALL. A plain thread blocks. A callback is refused.
 * Yields:  until the answer.
 * Owns:    `reply` stays the caller's (NULL: not wanted); reply_bytes are written there.
 * Cost:    as janus_cast, and a switch to and fro.
 * Errors:  DEADLINE   too late. The actor may have done it
 *          GONE       the actor ended before it answered, or nothing runs there (where a cast
 *                     returns CLOSED)
 *          RESTARTED  the actor failed before it answered, and is started again
 *          NO_REPLY   its handler returned without an answer
 *          DEADLOCK   the call would close a circle, or the actor calls itself. Or every task
 *                     waits, and no event can come: see `outside` of the actor's options
 *          CANCELLED  this task was cancelled. The actor may have done it
 *          STATE      in a callback, or the behaviour answers no calls
 *          and those of janus_cast
 */
JANUS_NODISCARD JANUS_API janus_status janus_call(janus_actor actor, const void *message,
                                                  void *reply, uint64_t deadline_ns);

/*
 * Calls several actors with one message and one deadline (0: none). statuses[i] and the i-th of
 * `replies`, which are reply_bytes apart, say what became of the i-th. It does not wait for room: a
 * full mailbox gives WOULD_WAIT in its status.
 *
 * Context: as janus_call, inside a task.
 * Yields:  until the last answer.
 * Owns:    `replies` (NULL: not wanted) and `statuses` stay the caller's.
 * Cost:    as a janus_call for each.
 * Errors:  INVALID    an argument is NULL, or there are more than 4096
 *          STATE      not inside a task
 *          NO_MEMORY  memory for the calls was refused
 *          On any error nothing was sent. Otherwise OK, and each status is one of janus_call.
 */
JANUS_NODISCARD JANUS_API janus_status janus_call_all(const janus_actor *actors, size_t count,
                                                      const void *message, void *replies,
                                                      size_t reply_bytes, janus_status *statuses,
                                                      uint64_t deadline_ns);

/*
 * Makes a handle with fewer rights.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    some ns.
 * Errors:  CAP_WIDENS  `actor` lacks one of `rights`
 *          STALE       the handle names no actor any more
 *          INVALID     no such right, or `out` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_attenuate(janus_actor actor, unsigned rights,
                                                             janus_actor *out);

/*
 * Waits until nothing will be started in that place any more, at the latest until `deadline_ns` (0:
 * none). *out (NULL: not wanted) says how the last incarnation ended. A caller that comes after the
 * end gets the same answer, until the library uses the place for another child.
 *
 * Context: anyone with MAY_WATCH. A plain thread blocks. A callback is refused.
 * Yields:  until then.
 * Owns:    *out stays the caller's.
 * Cost:    a wait.
 * Errors:  DEADLINE   the deadline passed first
 *          CANCELLED  this task was cancelled
 *          DEADLOCK   an actor awaits itself, or every task waits
 *          STATE      in a callback
 *          CAP_RIGHT  the handle lacks MAY_WATCH
 *          STALE      the actor has ended, and its place is used again
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_await(janus_actor actor, janus_end *out,
                                                         uint64_t deadline_ns);

/*
 * Ends an actor for good, whatever its specification says, and does not wait for the end. After
 * `within_ns` (0: the specification's stop_within_ns) the actor is cancelled. An actor that obeys
 * ends STOPPED, a cancelled actor ends CANCELLED.
 *
 * Context: anyone with MAY_STOP.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  STALE      it has ended
 *          CAP_RIGHT  the handle lacks MAY_STOP
 *          INVALID    `how` has no such value
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_stop(janus_actor actor, janus_stop_how how,
                                                        uint64_t within_ns);

/*
 * Lets an actor rest: until janus_actor_resume it handles no letter, and its mailbox fills. It can
 * be described and stopped. A restart ends the suspension.
 *
 * Context: anyone with MAY_STOP.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  STALE, CAP_RIGHT; STATE  it is not running, or is suspended
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_suspend(janus_actor actor);

/*
 * Ends janus_actor_suspend.
 *
 * Context: as janus_actor_suspend.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  as janus_actor_suspend; STATE  it is not suspended
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_resume(janus_actor actor);

/*
 * Asks the actor for a line about its state, between two letters, and waits for it, at the latest
 * until `deadline_ns` (0: none). The text ends with NUL.
 *
 * Context: a task with MAY_STOP.
 * Yields:  until the actor has answered.
 * Owns:    `buffer` stays the caller's; at most 255 bytes and NUL are written.
 * Cost:    as janus_call.
 * Errors:  STATE     the behaviour has no `describe`, another task asks just now, the actor asks
 *                    itself, or the caller is no task
 *          NO_REPLY  `describe` panicked. The actor goes on
 *          GONE      the actor does not run
 *          INVALID   `buffer` is NULL, or `size` is 0
 *          and those of janus_call
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_describe(janus_actor actor, char *buffer,
                                                            size_t size, uint64_t deadline_ns);

/*
 * Looks at an actor.
 *
 * Context: anyone with MAY_WATCH.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; set out->struct_bytes before.
 * Cost:    a lock.
 * Errors:  STALE, CAP_RIGHT
 *          INVALID  `out` is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_inspect(janus_actor       actor,
                                                           janus_actor_info *out);

/*
 * The handle of the actor that has registered `name` (janus_actor_options.name). A name is visible
 * from the end of a successful init until the incarnation ends.
 *
 * Context: inside a task whose context has a name capability with name.find for this name.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's. It has MAY_CAST, MAY_CALL and MAY_WATCH.
 * Cost:    a lock.
 * Errors:  NOT_FOUND    no actor has this name
 *          NO_NAME_CAP, CAP_…  as janus_cap_check_in; CAP_LIMIT: outside of the capability's prefix
 *          STATE        not inside a task
 *          INVALID      an argument is NULL, or the name is empty or longer than 63 bytes
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_find(const char *name, janus_actor *out);

/*
 * The name of a place's state: "empty", "starting", "running", "delayed", "stopping", "stuck",
 * "gone".
 *
 * Context: anyone.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  none; a number that is no state gives "?".
 */
JANUS_API const char *janus_actor_state_name(janus_actor_state state);

JANUS_END_DECLS

/*
 * Makes the type counter_actor and the functions counter_cast, counter_try_cast and counter_call of
 * JANUS_ACTOR_TYPE(counter, struct add, int64_t). A message of another type does not compile.
 */
#define JANUS_ACTOR_TYPE(prefix, message_type, reply_type)                                         \
    typedef struct prefix##_actor {                                                                \
        janus_actor actor;                                                                         \
    } prefix##_actor;                                                                              \
    JANUS_NODISCARD __attribute__((unused)) static inline janus_status prefix##_cast(              \
        prefix##_actor to, const message_type *message)                                            \
    {                                                                                              \
        return janus_cast(to.actor, message);                                                      \
    }                                                                                              \
    JANUS_NODISCARD __attribute__((unused)) static inline janus_status prefix##_try_cast(          \
        prefix##_actor to, const message_type *message)                                            \
    {                                                                                              \
        return janus_try_cast(to.actor, message);                                                  \
    }                                                                                              \
    JANUS_NODISCARD __attribute__((unused)) static inline janus_status prefix##_call(              \
        prefix##_actor to, const message_type *message, reply_type *reply, uint64_t deadline_ns)   \
    {                                                                                              \
        return janus_call(to.actor, message, reply, deadline_ns);                                  \
    }                                                                                              \
    struct prefix##_actor_end_

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Letters: what the handler of an actor gets, and what it can do with it. actor.h says what an
 * actor is; supervisor.h starts it.
 *
 *     static int64_t handle(void *state, janus_letter *letter)
 *     {
 *         if (letter->kind == JANUS_LETTER_KIND_DOWN) return end_order(state, letter->tag);
 *         if (letter->kind != JANUS_LETTER_KIND_MESSAGE) return JANUS_ACTOR_GO_ON;
 *         const struct order *order = letter->message;
 *         ...
 *         if (janus_letter_is_call(letter)) JANUS_IGNORE(janus_reply(letter, &answer));
 *         return JANUS_ACTOR_GO_ON;
 *     }
 *
 * A handler that returns without an answer to a call gives its caller NO_REPLY, unless it has kept
 * the right to answer (janus_reply_keep).
 */
#ifndef JANUSRT_LETTER_H
#define JANUSRT_LETTER_H

#include <janusrt/budget.h>
#include <janusrt/export.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A handle of an actor's place, with rights. All zero: none. */
typedef struct janus_actor {
    uint64_t opaque[2];
} janus_actor;

/* Why a handler is called: for a message, or for a notice. */
typedef enum janus_letter_kind {
    JANUS_LETTER_KIND_MESSAGE = 0, /* a message */
    JANUS_LETTER_KIND_DOWN,        /* a watched actor has ended: see letter->end */
    JANUS_LETTER_KIND_TIMER,       /* janus_actor_after */
    JANUS_LETTER_KIND_IDLE,        /* no letter came for as long as janus_actor_idle_after said */
    JANUS_LETTER_KIND_REPLY,       /* the answer to janus_ask: see letter->status and ->reply */
    JANUS_LETTER_KIND_CONTINUE,    /* janus_actor_continue */
} janus_letter_kind;

/* How an incarnation of an actor ended. */
typedef enum janus_end_kind {
    JANUS_END_KIND_NORMAL = 0, /* it returned STOP */
    JANUS_END_KIND_STOPPED,    /* its supervisor, or janus_actor_stop, ended it, also by DRAIN */
    JANUS_END_KIND_FAILED,     /* init or handle returned a negative, or an unknown, number */
    JANUS_END_KIND_PANICKED,
    JANUS_END_KIND_OVERFLOWED, /* its stack */
    JANUS_END_KIND_EXHAUSTED,  /* its budget, or that of one message */
    JANUS_END_KIND_CANCELLED,  /* by AT_ONCE, from outside, or because it did not stop in time */
    JANUS_END_KIND_NEVER,      /* the handle named no actor when it was watched */
} janus_end_kind;

typedef struct janus_end {
    janus_end_kind  kind;
    bool            final;       /* nothing will be started in that place again */
    janus_component lacks;       /* EXHAUSTED: the missing component; else NONE */
    uint32_t        incarnation; /* which one it was, from 1 */
    int64_t         error;       /* FAILED: what it returned, or a status of the library */
} janus_end;

/* What a handler gets. It is the library's, until the handler returns. */
typedef struct janus_letter {
    const void       *message; /* message_bytes of the behaviour; NULL: a notice */
    void             *block;   /* came with the message, and is now memory of the actor; NULL: no
                                  block came */
    janus_letter_kind kind;
    janus_status      status; /* REPLY: OK, or why there is no reply */
    const void       *reply;  /* REPLY: reply_bytes of the other behaviour, if status is OK */
    uint64_t          tag;    /* of a notice: what the watch, the timer or the ask was given */
    janus_end         end;    /* DOWN */
    uint64_t          opaque[4];
} janus_letter;

/* The right to answer one call. It can be given to any task, and to plain threads if the options of
 * the actor say `outside`. Otherwise its caller may get DEADLOCK when all tasks wait. */
typedef struct janus_kept_reply {
    uint64_t opaque[2];
} janus_kept_reply;

typedef struct janus_watch {
    uint64_t opaque[2];
} janus_watch;

typedef struct janus_actor_timer {
    uint64_t opaque[2];
} janus_actor_timer;

JANUS_BEGIN_DECLS

/*
 * Asks from inside a handler, without waiting. One notice REPLY with `tag` follows. Its status is
 * OK, or says why the answer does not come: DEADLINE after `deadline_ns` (0: none), GONE, RESTARTED
 * or NO_REPLY. The notice does not come if this incarnation ends first.
 *
 * Context: a handler of an actor, in its own task.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cast.
 * Cost:    as janus_cast, and memory for the answer.
 * Errors:  WOULD_WAIT  there is no room
 *          STATE       not a handler, or the behaviour answers no calls
 *          FULL        the actor has 1024 timers; an ask with a deadline needs one
 *          and those of janus_call but DEADLOCK. On any error no notice follows.
 */
JANUS_NODISCARD JANUS_API janus_status janus_ask(janus_actor actor, const void *message,
                                                 uint64_t tag, uint64_t deadline_ns);

/*
 * Whether somebody waits for an answer to this letter.
 *
 * Context: the handler that got the letter.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; false for NULL.
 */
JANUS_API bool janus_letter_is_call(const janus_letter *letter);

/*
 * Answers a call, once.
 *
 * Context: the handler that got the letter.
 * Yields:  only if the turn is over.
 * Owns:    the library copies reply_bytes from `reply`.
 * Cost:    a wake-up.
 * Errors:  STALE    nobody waits any more, or it was answered or kept before
 *          STATE    not a call
 *          INVALID  an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_reply(janus_letter *letter, const void *reply);

/*
 * Keeps the right to answer, beyond the end of the handler. If the actor ends first, the caller
 * gets GONE or RESTARTED.
 *
 * Context: the handler that got the letter.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    some ns.
 * Errors:  STATE      not a call, or it was answered or kept
 *          NO_MEMORY  memory was refused, or the actor owes 4096 answers
 *          INVALID    an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_reply_keep(janus_letter     *letter,
                                                        janus_kept_reply *out);

/*
 * Answers a call with a kept right.
 *
 * Context: every holder of the right.
 * Yields:  only if the turn is over.
 * Owns:    the library copies reply_bytes from `reply`.
 * Cost:    a wake-up.
 * Errors:  as janus_reply
 */
JANUS_NODISCARD JANUS_API janus_status janus_reply_to(janus_kept_reply kept, const void *reply);

/*
 * The actor whose handler runs, with all rights.
 *
 * Context: a handler, init or terminate of an actor, in its own task.
 * Yields:  never.
 * Owns:    *out is the caller's.
 * Cost:    some ns.
 * Errors:  STATE  not in an actor; INVALID  `out` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_current(janus_actor *out);

/*
 * Sends the current actor a notice TIMER after `delay_ns`. It ends with the incarnation.
 *
 * Context: a handler or init of an actor, in its own task.
 * Yields:  only if the turn is over.
 * Owns:    *out (NULL: not wanted) is the caller's.
 * Cost:    memory, and a timer.
 * Errors:  STATE  not in an actor
 *          FULL   the actor has 1024 timers
 *          NO_MEMORY
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_after(uint64_t delay_ns, uint64_t tag,
                                                         janus_actor_timer *out);

/*
 * Cancels a timer of the current actor. Afterwards no notice of it comes.
 *
 * Context: as janus_actor_after.
 * Yields:  only if the turn is over.
 * Owns:    takes the timer.
 * Cost:    a lock.
 * Errors:  STALE  its notice was handled, or it was cancelled; STATE  not in an actor
 */
JANUS_API janus_status janus_actor_cancel_timer(janus_actor_timer timer);

/*
 * Sends the current actor a notice IDLE when no letter has come for `delay_ns`; once. 0 takes it
 * back.
 *
 * Context: as janus_actor_after.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a timer.
 * Errors:  STATE  not in an actor; NO_MEMORY
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_idle_after(uint64_t delay_ns, uint64_t tag);

/*
 * Sends the current actor a notice CONTINUE, which comes before every other letter. An init uses it
 * to finish its work without keeping its starter waiting.
 *
 * Context: as janus_actor_after.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    some ns.
 * Errors:  STATE      not in an actor, or a CONTINUE is pending
 *          NO_MEMORY
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_continue(uint64_t tag);

/*
 * Puts all messages that were put aside (JANUS_ACTOR_LATER) back, before those in the mailbox, in
 * the order in which they came.
 *
 * Context: a handler of an actor, in its own task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    some ns for each.
 * Errors:  STATE      not in an actor
 *          NO_MEMORY  the mailbox could not grow. Those that did not fit stay aside
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_take_up(void);

/*
 * Watches an actor. When the incarnation that sits there ends, the current actor gets one notice
 * DOWN with `tag`. If nothing runs there, the watch holds for the next incarnation. The name of the
 * ended actor is free by then. If the place is gone, DOWN comes at once.
 *
 * Context: a handler or init of an actor, in its own task.
 * Yields:  only if the turn is over.
 * Owns:    *out (NULL: not wanted) is the caller's. A watch ends with the incarnation that made it.
 * Cost:    memory.
 * Errors:  STATE      not in an actor
 *          CAP_RIGHT  the handle lacks MAY_WATCH
 *          FULL       the actor has 1024 watches
 *          NO_MEMORY
 */
JANUS_NODISCARD JANUS_API janus_status janus_actor_watch(janus_actor actor, uint64_t tag,
                                                         janus_watch *out);

/*
 * Ends a watch. Afterwards no DOWN of it comes.
 *
 * Context: as janus_actor_watch.
 * Yields:  only if the turn is over.
 * Owns:    takes the watch.
 * Cost:    a lock.
 * Errors:  STALE  its DOWN was handled, or it was ended; STATE  not in an actor
 */
JANUS_API janus_status janus_actor_unwatch(janus_watch watch);

/*
 * The name of an end: "normal", "stopped", "failed", "panicked", "overflowed", "exhausted",
 * "cancelled", "never".
 *
 * Context: anyone.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  none; a number that is no kind gives "?".
 */
JANUS_API const char *janus_end_kind_name(janus_end_kind kind);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * Places: where actors sit. The essay on places is in place.c, on letters in mail.c and ring.c, on
 * answers in question.c, on supervisors in step.c.
 *
 * Order of locks: a supervisor's, the lock of watches, a place's, a question's, the timers',
 * nurseries'.
 */
#ifndef JRT_ACTOR_PLACE_H
#define JRT_ACTOR_PLACE_H

#include "base/atomic.h"
#include "chan/lock.h"
#include "means/holder.h"
#include "nursery/nursery.h"
#include "sched/timer.h"
#include "task/worker.h"

#include <janusrt/actor.h>
#include <janusrt/supervisor.h>
#include <string.h>

enum {
    JRT_ACTOR_MESSAGE_MAX = 4096,
    JRT_ACTOR_STATE_MAX = 1 << 20,
    JRT_ACTOR_MESSAGES = 64, /* a mailbox's size if nothing was asked for */
    JRT_ACTOR_MESSAGES_MAX = 1 << 20,
    JRT_ACTOR_BLOCKS = 1 << 20,
    JRT_ACTOR_FREE = 8192, /* bytes of a mailbox that nobody pays for */
    JRT_ACTOR_TIMERS_MAX = 1024,
    JRT_ACTOR_WATCHES_MAX = 1024,
    JRT_ACTOR_KEPT_MAX = 4096, /* answers that an actor owes, or waits for */
    JRT_LETTER_LONE = 24,      /* bytes */
    JRT_STATE_SMALL = 16,
};

struct jrt_question;

/* A letter in a ring, before the message. */
struct jrt_letter_head {
    union {
        struct jrt_question *question; /* a call, with its key; NULL: none */
        void                *block;    /* a cast, with its bytes */
    };
    uint64_t key : 63; /* of a question, or the bytes of a block */
    uint64_t is_call : 1;
};

/* A notice, waiting for its actor. The kinds that come often are parts of larger structs. */
struct jrt_notice {
    struct jrt_notice *next;
    janus_letter_kind  kind;
    janus_status       status;
    uint64_t           tag;
    janus_end          end;
    struct jrt_ledger *ledger;      /* that pays for the notice, or NULL */
    uint32_t           bytes;       /* of the whole struct, as charged */
    uint32_t           reply_bytes; /* behind the struct */
};

static inline char *jrt_notice_reply(struct jrt_notice *notice) { return (char *)(notice + 1); }

/* A specification; children that ask for the same share it. Constant. */
struct jrt_spec {
    uint32_t            refs;  /* the supervisor's lock */
    janus_child         asked; /* as it was given, to compare */
    janus_child         child; /* `behaviour` is that below, or NULL */
    janus_behaviour     behaviour;
    janus_actor_options options;
    janus_budget        budget, message_budget; /* if options name them */
    char               *id, *name;              /* owned; NULL: none */
    const char         *title;                  /* the id, else the sort, as a clean name */
    bool                owns_title;
    bool                plain;  /* a behaviour without id and options */
    struct jrt_ledger  *ledger; /* that pays for it, [place-price]; NULL: nobody */
};

struct jrt_actor_timer {
    struct jrt_actor_timer *next; /* by deadline */
    uint64_t                deadline_ns, number;
    struct jrt_question    *question; /* the deadline of an ask, with its key; NULL: a timer */
    uint64_t                key;
    struct jrt_notice       notice; /* last */
};

struct jrt_actor_watch;
struct jrt_actor_waiter;

/* An answer that an actor owes, or waits for: valid while the key is the question's. */
struct jrt_debt {
    struct jrt_question *question;
    uint64_t             key;
};

struct jrt_debts {
    struct jrt_debt *list; /* owned */
    uint32_t         count, room;
};

/* What few places need. Made when first needed; it stays until the place is gone. */
struct jrt_actor_rare {
    struct jrt_alarm        alarm;              /* first; rings for the earliest of what follows */
    bool                    armed, due;         /* due: it has rung, [actor-due] */
    uint64_t                serial, due_serial; /* of the place, when it was armed and rang */
    struct jrt_actor_place *due_next;
    struct jrt_actor_timer *timers;
    uint32_t                timer_count;
    uint64_t                timer_number;               /* of the last timer or watch */
    uint64_t                idle_ns, idle_tag, idle_at; /* idle_at 0: not armed */
    struct jrt_notice       idle;
    uint64_t                step_at;                /* the supervisor's next step; 0: none */
    uint64_t                refill_at, refilled_at; /* of the allowance; 0: never */
    uint64_t                short_since;            /* exhaustions, for max_exhaustions */
    uint32_t                short_count;
    bool                    continues;
    uint64_t                continue_tag;
    struct jrt_debts        asks, kept;
    struct jrt_notice      *in_hand;                /* owned; its handler runs. The actor's */
    struct jrt_sender      *senders, **senders_end; /* that wait for room, the oldest first */
    /* Watches of this incarnation or the next, and of the incarnation that has just ended; the
     * lock of watches. */
    struct jrt_actor_watch *watched, *watched_then;
    struct jrt_actor_watch *watches; /* that this incarnation made; the lock of watches */
    uint32_t                watch_count;
    char                   *aside; /* letters put aside, as in the ring; owned */
    uint32_t                aside_count, aside_room;
    struct jrt_question    *describes; /* asked for a line */
    uint64_t                describes_key;
    uint64_t                block_bytes;         /* in the mailbox */
    uint64_t                delay_ns, failed_at; /* of restarts; the supervisor's lock */
    janus_budget            spent, last_spent;   /* explicit budget: in all, by the last one */
    janus_budget            apart;               /* of the budget, while a letter has its own */
    uint64_t                tag;                 /* of the notice in hand */
    bool                    is_apart;
    uint8_t                 decision;  /* of on_end, if it was asked */
    uint64_t                chosen_ns; /* the delay that it chose */
};

/* Where a place stands for its own actor. */
enum jrt_actor_phase {
    JRT_PHASE_INIT,  /* init has not returned */
    JRT_PHASE_WORK,  /* it handles letters */
    JRT_PHASE_CLOSE, /* terminate runs, or has run */
};

/*
 * A place. First come the fields that senders write, last those that the actor writes for each
 * message. So a sender and an actor on two workers do not write to one cache line.
 */
struct jrt_actor_place {
    struct jrt_resident  resident; /* first; the line of its site is the place's number */
    struct jrt_chan_lock lock;     /* guards all but what is marked */
    uint64_t             sent;     /* [mail-count]; also the number of the next message */
    char                *ring;     /* owned, or `lone`; NULL: no message */
    uint32_t           until; /* up to this number casts need no closer look; never behind `sent` */
    bool               as_owner; /* how the lock is held, [chan-bias] */
    bool               resting : 1, open : 1, suspended : 1;
    bool               forced : 1;    /* an exhausted actor that is started again, whatever it is */
    bool               dismissed : 1; /* exhausted, and cancelled for that */
    bool               told : 1;      /* its first dead letter was reported */
    bool               spent : 1;     /* its explicit budget, all of it */
    uint8_t            room_log;      /* of the ring */
    uint8_t            last_log;      /* with which the next ring begins */
    _Atomic(uint64_t)  keys[2];       /* of all rights; of those that janus_actor_find gives */
    uint64_t           serial;        /* 0: nothing */
    janus_supervisor  *supervisor;
    struct jrt_task   *task; /* NULL: none */
    struct jrt_spec   *spec;
    uint32_t           reserved; /* [mail-room] */
    uint32_t           incarnation;
    struct jrt_notice *notices;             /* the newest, whose `next` is the oldest; NULL: none */
    struct jrt_actor_place  *next, *before; /* in the supervisor's list, or free; its lock */
    struct jrt_actor_waiter *waiters;
    struct jrt_ledger       *ledger; /* that pays for the place */
    uint32_t                 returned, dead;
    uint32_t                 notice_count, failures;
    janus_end                end;                   /* of the last incarnation */
    char                     lone[JRT_LETTER_LONE]; /* a ring for one short message, [mail-lone] */
    uint16_t                 message_bytes;         /* as the behaviour says */
    uint8_t                  state; /* janus_actor_state; written with the supervisor's lock, too */
    uint8_t                  stops; /* janus_stop_how + 1; 0: it was not told to end */
    /* The supervisor's lock guards these. */
    bool starts : 1;    /* a plan starts it again */
    bool fresh : 1;     /* it has never been RUNNING */
    bool named : 1;     /* its name is registered */
    bool manual : 1;    /* somebody waits for its start */
    bool nameless : 1;  /* it got no name */
    bool asked : 1;     /* on_end has decided */
    bool late : 1;      /* init took too long */
    bool refused : 1;   /* the last start failed at once */
    bool cancelled : 1; /* it did not stop in time, and was cancelled */
    bool stopped : 1;   /* by janus_actor_stop: for good */
    /* The actor's, which reads them without the lock. */
    uint8_t       phase;  /* enum jrt_actor_phase; only the actor writes */
    _Atomic(bool) urgent; /* it takes the lock before the next message, [mail-window] */
    /* The messages from `at` to `head` are the actor's, [mail-window]. Only the actor writes, or
     * the holder of the lock when the actor does not run. */
    _Atomic(uint32_t) at;
    uint32_t          head;
    _Atomic(uint64_t) handled; /* [mail-count]; only the actor writes */
    _Atomic(uint64_t) waits;   /* [actor-circle]: place << 32 | version */
    /* Once made it stays until the place is gone. */
    _Atomic(struct jrt_actor_rare *) rare;
    void                            *self; /* its state; NULL: none. The actor's */
    struct jrt_letter_head           hand; /* the call in hand; question NULL: none. The actor's */
    _Alignas(16) char small[JRT_STATE_SMALL]; /* a small state */
};

_Static_assert(sizeof(struct jrt_actor_place) <= 304, "with its task's record, 496 bytes");
_Static_assert(offsetof(struct jrt_actor_place, until) < 64 &&
                   offsetof(struct jrt_actor_place, urgent) >= 192,
               "senders and actor write to different lines, wherever the place begins");

/* Its number in the table. */
static inline uint32_t jrt_place_index(const struct jrt_actor_place *place)
{
    return (uint32_t)place->resident.site.line;
}

/* How many messages lie in the mailbox. Under the lock; the actor may take more meanwhile. */
static inline uint32_t jrt_mail_count(const struct jrt_actor_place *place)
{
    /* acquire: the actor has read what it took, so its room can be used. */
    return (uint32_t)place->sent - jrt_load_acquire(&place->at);
}

/* The actor adds to its count. */
static inline void jrt_mail_handled(struct jrt_actor_place *place, int64_t more)
{
    uint64_t handled = jrt_load_relaxed(&place->handled); /* relaxed, both: only it writes. */
    jrt_store_relaxed(&place->handled, handled + (uint64_t)more); /* relaxed: as above. */
}

/* The lock of a channel: of a scheduler with one worker, it needs no locked instruction. */
static inline void jrt_place_lock(struct jrt_actor_place *place)
{
    place->as_owner = jrt_chan_lock_more(&place->lock, jrt_worker_bias(jrt_worker_self()));
}
static inline void jrt_place_unlock(struct jrt_actor_place *place)
{
    jrt_chan_unlock(&place->lock, place->as_owner ? jrt_worker_self()->bias : NULL);
}

/* The table of places: place.c. */

/* Takes a place that the ledger pays for. OK, NO_MEMORY, FULL, UNAVAILABLE. */
janus_status jrt_place_take(struct jrt_ledger *ledger, struct jrt_actor_place **out);
/* Makes the handles stale, and gives the place back. */
void jrt_place_give(struct jrt_actor_place *place);
/* Handles are valid between these two. The second: under the lock. */
void jrt_place_publish(struct jrt_actor_place *place);
void jrt_place_hide(struct jrt_actor_place *place);

/* The place that a handle names, locked, if the handle has `rights`. NULL: *out_status says why. */
struct jrt_actor_place *jrt_place_find(janus_actor actor, unsigned rights,
                                       janus_status *out_status);
/* The table, [actor-place]. */
struct jrt_actor_table {
    _Atomic(struct jrt_actor_place *) base;
    _Atomic(uint32_t)                 places; /* 0: not made yet */
};
extern struct jrt_actor_table jrt_actor_table;

/* NULL: there is no such place. */
static inline struct jrt_actor_place *jrt_place_at(uint32_t index)
{
    uint32_t places = jrt_load_acquire(&jrt_actor_table.places); /* acquire: the base. */
    if (jrt_unlikely(index >= places)) return NULL;
    return jrt_load_relaxed(&jrt_actor_table.base) + index; /* relaxed: after the number. */
}
/* How the last actor of a place that is free ended, [actor-past]. False: it is used again. */
bool jrt_place_past(janus_actor actor, unsigned rights, janus_end *out);
/* A handle with these rights. */
janus_actor jrt_place_handle(const struct jrt_actor_place *place, unsigned rights);

/* The rare part, made if necessary. Under the lock, or before others know the place. NULL: no
 * memory. */
struct jrt_actor_rare *jrt_place_rare(struct jrt_actor_place *place);

/* The place whose actor is the current task; NULL: none. */
extern const struct jrt_resident_rules jrt_actor_rules;

static inline struct jrt_actor_place *jrt_place_of(const struct jrt_task *task)
{
    if (task == NULL) return NULL;
    /* acquire, then relaxed: as in jrt_place_at. A task's site never changes, so any thread that
     * knows the task may look; a resident's is its place. */
    size_t places = jrt_load_acquire(&jrt_actor_table.places);
    char  *base = (char *)jrt_load_relaxed(&jrt_actor_table.base); /* relaxed: as above. */
    size_t offset = (uintptr_t)task->site - (uintptr_t)base;
    bool   inside = offset < places * sizeof(struct jrt_actor_place);
    return inside ? (struct jrt_actor_place *)(uintptr_t)task->site : NULL;
}
static inline struct jrt_actor_place *jrt_place_current(void)
{
    return jrt_place_of(jrt_task_current());
}

static inline const janus_behaviour *jrt_place_behaviour(const struct jrt_actor_place *place)
{
    return place->spec->child.behaviour;
}

/* `counter "till"`, for reports: its sort, and its id if it has one. */
void jrt_place_label(const struct jrt_actor_place *place, char *out, size_t size);

/* A line on stderr, unless the scheduler is quiet: the place's label, and `what`. In report.c. */
void jrt_actor_tell(const struct jrt_actor_place *place, const char *what);

/* Its behaviour's name, "task" or "supervisor". */
const char               *jrt_spec_sort(const struct jrt_spec *spec);
static inline const char *jrt_place_sort(const struct jrt_actor_place *place)
{
    return jrt_spec_sort(place->spec);
}

/* Letters: mail.c. */

/* Copies a message. Most are a few words. */
static inline void jrt_letter_copy(void *to, const void *from, size_t bytes)
{
    if (jrt_likely(bytes == 8)) {
        memcpy(to, from, 8);
    } else if (jrt_likely(bytes == 16)) {
        memcpy(to, from, 16);
    } else if (bytes != 0) {
        memcpy(to, from, bytes);
    }
}

/* Bytes of a message in a ring, with its head. */
static inline size_t jrt_letter_bytes(const struct jrt_actor_place *place)
{
    return sizeof(struct jrt_letter_head) + ((size_t)place->message_bytes + 7) / 8 * 8;
}

/* A wait as others see it, [actor-circle]. */
struct jrt_circle_wait {
    struct jrt_actor_place *self; /* NULL: no actor waits */
    uint64_t                word;
};

/* A sender that waits for room, in its frame. */
struct jrt_sender {
    struct jrt_sender *next, **link; /* in the queue */
    struct jrt_task   *task;
    bool               served;   /* room was made for it, or there will be none */
    bool               reserved; /* [mail-room] */

    struct jrt_circle_wait circle;
};

/* Sends a letter with the `right` of the handle. */
janus_status jrt_mail_send(janus_actor actor, unsigned right, const struct jrt_letter_head *head,
                           const void *message, uint64_t deadline_ns, bool tries);
/* Sends the letter of a call, if that is easy. False: nothing happened. *out_task: the task of an
 * actor of this scheduler whose rest this has ended. The caller queues it. */
bool jrt_mail_call_fast(janus_actor actor, const struct jrt_letter_head *head, const void *message,
                        struct jrt_task **out_task);
/* What a letter costs its sender; and its refund, if `status` says that it was not sent. */
janus_status jrt_mail_pay(void);
janus_status jrt_mail_settle(janus_status status, const char *call);
/* Notes why a public call fails, for janus_explain. Returns the status. In look.c. */
janus_status jrt_actor_explain(janus_status status, const char *call);
/* The caller is no actor. Returns STATE. */
janus_status jrt_actor_outside(const char *call);

/* A ring, before its first message. */
struct jrt_ring_head {
    char *old; /* the ring before, in which the actor may still read; owned, or NULL */
};
enum { JRT_RING_HEAD = 16 };
_Static_assert(sizeof(struct jrt_ring_head) <= JRT_RING_HEAD, "a ring begins aligned");

static inline char *jrt_ring_slot(char *ring, uint8_t room_log, size_t each, uint32_t number)
{
    return ring + (size_t)(number & ((UINT32_C(1) << room_log) - 1)) * each;
}

/* Takes the oldest message, without itself if `message` is NULL. False: the mailbox is empty.
 * Under the lock; no window is open. */
bool jrt_mail_take(struct jrt_actor_place *place, struct jrt_letter_head *head, void *message);
/* The messages of an open window are in the mailbox again. Under the lock, by the actor or when it
 * does not run. */
void jrt_mail_close_window(struct jrt_actor_place *place);
/* All messages that lie there become the actor's, if nothing keeps it from taking them one after
 * the other, [mail-window]. Under the lock. False: they are not. */
bool jrt_mail_open_window(struct jrt_actor_place *place);
/* Casts need a closer look from now on. Under the lock. */
static inline void jrt_mail_bar(struct jrt_actor_place *place)
{
    place->until = (uint32_t)place->sent;
}
/* The actor takes the lock before its next message. Under the lock. */
static inline void jrt_mail_urge(struct jrt_actor_place *place)
{
    jrt_store_relaxed(&place->urgent, true); /* relaxed: the fences of [mail-window] order it. */
}
/* Lets the oldest sender go on, if there is room; or all, because there will be none. Under the
 * lock. */
void jrt_senders_serve(struct jrt_actor_place *place, bool all);
/* All messages become dead letters; their callers get `status`. The caller holds no lock. */
void jrt_mail_drop(struct jrt_actor_place *place, janus_status status);
/* Puts the messages that were put aside back to the front. OK, NO_MEMORY. */
janus_status jrt_mail_take_up(struct jrt_actor_place *place);
/* Frees an empty ring. Under the lock. */
void jrt_mail_rest(struct jrt_actor_place *place);

/* Queues a notice, if that incarnation still sits there. Otherwise frees it. The caller holds no
 * lock of a place. */
void jrt_notice_push_to(struct jrt_actor_place *place, uint64_t serial, uint32_t incarnation,
                        struct jrt_notice *notice);
/* Takes the oldest; there is one. Under the lock. */
struct jrt_notice *jrt_notice_take(struct jrt_actor_place *place);
void               jrt_notice_free(struct jrt_notice *notice);
/* Makes a notice of `more` bytes beyond the struct, which the current task pays for. */
janus_status jrt_notice_make(size_t more, struct jrt_notice **out);

/* The actor has something to do: ends its rest. Under the lock. Not NULL: the caller queues the
 * task by jrt_place_queue when it holds no lock. */
struct jrt_task   *jrt_place_rouse(struct jrt_actor_place *place);
void               jrt_place_queue(struct jrt_task *task);
static inline void jrt_place_unlock_and_queue(struct jrt_actor_place *place, struct jrt_task *task)
{
    jrt_place_unlock(place);
    if (task != NULL) jrt_place_queue(task);
}

/* Notes that the current actor waits for `target`, and looks for a circle, [actor-circle]. False:
 * there is one, and nothing is noted. jrt_circle_leave takes it back. */
bool jrt_circle_enter(const struct jrt_actor_place *target);
void jrt_circle_leave(void);
/* Whether the task, or thread (NULL), is no actor and works for none. Then its waits are part of no
 * circle, and need no note. */
static inline bool jrt_circle_never(const struct jrt_task *task)
{
    return task == NULL || (task->nursery->owner == NULL && jrt_place_of(task) == NULL);
}
/* Its two parts. The caller of the second holds no lock of a place. */
void jrt_circle_note(const struct jrt_actor_place *target);
bool jrt_circle_look(const struct jrt_actor_place *target);
/* The wait that the current actor has noted. The task or thread that ends the wait says so, before
 * the actor can go on. */
struct jrt_circle_wait jrt_circle_now(void);
void                   jrt_circle_over(const struct jrt_circle_wait *wait);

/* A deadline of a public call; 0: none. */
static inline uint64_t jrt_deadline(uint64_t given) { return given != 0 ? given : JRT_NEVER; }

/* Answers: question.c. */

/* Ends a question with a status. True: it was this question's end. */
bool jrt_question_end(struct jrt_question *question, uint64_t key, janus_status status,
                      const void *reply, size_t reply_bytes);
bool jrt_question_lives(const struct jrt_question *question, uint64_t key);
/* Whether its caller waits no more, or will not when the actor could answer. */
bool jrt_question_is_late(const struct jrt_question *question, uint64_t key);
/* Forgets a question that nobody waits for any more: an ask of an actor that ended. */
void jrt_question_drop(struct jrt_question *question, uint64_t key);
/* The debts of an incarnation end. */
void jrt_debts_end(struct jrt_debts *debts, janus_status status, bool asks);
bool jrt_debt_add(struct jrt_debts *debts, struct jrt_question *question, uint64_t key);

/* Timers and watches: notice.c. */

/* The question of an ask ends with DEADLINE then. */
janus_status jrt_ask_deadline(struct jrt_actor_place *self, struct jrt_question *question,
                              uint64_t key, uint64_t deadline_ns);

/* Frees the timers of asks that are over. Under the lock. In question.c. */
void jrt_asks_forget(struct jrt_actor_rare *rare);

/* Arms the alarm for the earliest time of the place. Under the lock. False: no memory. */
bool jrt_place_arm(struct jrt_actor_place *place);
/* Disarms the alarm for good. Under the lock. */
void jrt_place_forget_due(struct jrt_actor_place *place);
/* Whatever is due becomes a notice, or a step of the supervisor. Flushes what rang. */
void jrt_actors_flush(void);
/* Idle time begins when the actor rests, and ends with a letter. Under the lock. */
void jrt_place_idle(struct jrt_actor_place *place, bool begins);
/* An incarnation has ended: later watches are of the next. jrt_watches_tell follows. */
void jrt_watches_collect(struct jrt_actor_place *place);
/* Watchers of that incarnation get DOWN; if the end is final, all do. */
void jrt_watches_tell(struct jrt_actor_place *place, const janus_end *end);
/* Ends the watches and timers that an incarnation made, and frees its notices. */
void jrt_notices_end(struct jrt_actor_place *place);

/* What a place costs the task that adds it, beside the specification. */
static inline size_t jrt_spec_bytes(const struct jrt_spec *spec)
{
    size_t bytes = sizeof(struct jrt_actor_place);
    if (spec->child.behaviour == NULL) return bytes;
    /* A mailbox up to JRT_ACTOR_FREE bytes costs nothing. */
    size_t each = sizeof(struct jrt_letter_head) + spec->behaviour.message_bytes + 7;
    size_t most = spec->options.max_messages != 0 ? spec->options.max_messages : JRT_ACTOR_MESSAGES;
    size_t ring = most * each;
    return bytes + spec->behaviour.state_bytes +
           (ring > JRT_ACTOR_FREE ? ring - JRT_ACTOR_FREE : 0);
}

janus_scheduler *jrt_supervisor_scheduler(const janus_supervisor *supervisor);
/* Reports the first dead letter of an actor. With the supervisor's lock. In look.c. */
void jrt_dead_letter_tell(struct jrt_actor_place *place);
/* Reports it for a sender, which has only the place's lock at first, [step-visit]. In look.c. */
janus_supervisor *jrt_supervisor_visit(struct jrt_actor_place *place);
void jrt_supervisor_dropped(janus_supervisor *supervisor, struct jrt_actor_place *place,
                            uint64_t serial);

#endif

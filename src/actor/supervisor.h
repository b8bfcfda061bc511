/* SPDX-License-Identifier: MIT */
/* Supervisors, inside. The essay is in step.c. */
#ifndef JRT_ACTOR_SUPERVISOR_H
#define JRT_ACTOR_SUPERVISOR_H

#include "actor/place.h"
#include "base/rng.h"
#include "cancel/token.h"

#include <janusrt/waitpoint.h>

enum { JRT_DESCRIBE_BYTES = 256 };

/* What somebody waits for at a place, in its frame. Under the place's lock. */
enum jrt_awaited {
    JRT_AWAIT_START, /* init has returned, or failed */
    JRT_AWAIT_END,   /* nothing runs there, or it is stuck */
    JRT_AWAIT_GONE,  /* nothing will run there */
    JRT_AWAIT_TOLD,  /* a supervisor that is a child: it is to end, or has given up */
};

struct jrt_actor_waiter {
    struct jrt_actor_waiter *next, **link; /* at its place */
    enum jrt_awaited         what;
    bool                     done; /* somebody will wake the point */
    janus_status             status;
    janus_end                end;
    janus_waitpoint          point;
    char                     label[JANUS_NAME_BYTES]; /* START: of the place */
};

/* What the supervisor is doing with several children. */
enum jrt_plan {
    JRT_PLAN_NONE,
    JRT_PLAN_RESTART_STOP,  /* stops children from `from` on, to start them again */
    JRT_PLAN_RESTART_START, /* starts them, one after the other */
    JRT_PLAN_STOP,          /* stops all, for good */
    JRT_PLAN_OVER,          /* all have ended, for good */
};

struct jrt_ids;

struct janus_supervisor {
    janus_nursery            nursery; /* first */
    janus_scheduler         *scheduler;
    struct jrt_task         *owner;
    pthread_mutex_t          lock; /* guards the rest */
    janus_supervisor_options options;
    janus_budget             pool;
    struct jrt_actor_place  *first, *last; /* in the order of adding */
    uint64_t                 count;
    struct jrt_ids          *ids;  /* owned; children with an id */
    struct jrt_spec         *spec; /* of the last child that was added; a reference */
    enum jrt_plan            plan;
    struct jrt_actor_place  *from;     /* RESTART: the first of its children */
    struct jrt_actor_place  *cursor;   /* the next to be stopped, or to be started; NULL: none */
    struct jrt_actor_place  *deciding; /* its end is being decided; NULL: none, or it went */
    uint64_t                 live, stopping; /* children with a task; of these, STOPPING */
    janus_stop_how           stop_how;       /* STOP */
    bool                     gives_up;       /* STOP: not asked for by the owner */
    bool                     abandoned;      /* its owner has left it */
    uint64_t                *restarts;       /* owned; times of the last ones, a ring */
    uint32_t                 restarts_room, restarts_count, restarts_next;
    janus_restart_info      *history; /* owned; a ring */
    uint32_t                 history_room, history_count, history_next;
    struct jrt_rng           rng;
    janus_supervisor_result  result;
    janus_waitpoint         *over;   /* the owner waits for OVER there; NULL: it does not */
    struct jrt_actor_place  *host;   /* where it is a child; NULL: nowhere */
    struct jrt_ledger       *ledger; /* pays for the supervisor */
    size_t                   bytes;
    _Atomic(uint32_t)        visitors; /* threads that came by a place's lock, [step-visit] */
    bool                     told;     /* a failure was reported within this period */
    uint64_t                 told_at, untold;
};

/* [step-visit]  A place's lock keeps its supervisor. A thread that needs the supervisor's lock
 * counts itself as a visitor first. The end of the supervisor waits for visitors. */
static inline janus_supervisor *jrt_supervisor_enter(const struct jrt_actor_place *place)
{
    jrt_fetch_add_relaxed(&place->supervisor->visitors, 1u); /* relaxed: the place's lock. */
    return place->supervisor;
}
static inline void jrt_supervisor_leave(janus_supervisor *supervisor)
{
    /* release: the last touch. */
    uint32_t had = jrt_fetch_sub_release(&supervisor->visitors, 1u);
    jrt_debug_invariant("step-visit", had != 0);
    (void)had;
}

static inline struct jrt_nursery *jrt_supervisor_nursery(janus_supervisor *supervisor)
{
    return jrt_nursery_of(&supervisor->nursery);
}

/* A cancel under the lock collects tokens; their callbacks run without it. */
static inline void jrt_supervisor_unlock(janus_supervisor *supervisor)
{
    jrt_unlock(&supervisor->lock);
    jrt_tokens_flush();
}

/* Steps: step.c. The functions take the lock, unless they say otherwise. */

/* The incarnation's init has returned. False: the actor must end. */
bool jrt_place_started(struct jrt_actor_place *place, int64_t result);
/* The rules of residents. */
void jrt_place_ending(struct jrt_resident *resident, struct jrt_task *task, bool cancelled);
void jrt_place_ended(struct jrt_resident *resident);
/* A time of the supervisor has come. */
void jrt_place_step(struct jrt_actor_place *place, uint64_t serial);
/* The next period of an exhausted actor's allowance has begun. In exhaustion.c. */
void jrt_place_refill(struct jrt_actor_place *place, uint64_t serial);
/* Asked when a child is exhausted. In exhaustion.c. */
janus_verdict jrt_supervisor_on_exhausted(void *supervisor, const janus_exhausted *child,
                                          janus_budget *grant);
/* Whether the actor has something to do. Under its lock. In run.c. */
bool jrt_place_has_letters(const struct jrt_actor_place *place);
/* Makes the state of an incarnation. False: no memory. In run.c. */
bool jrt_place_make_state(struct jrt_actor_place *place);
/* Puts the parts of an actor's budget together, [actor-apart]. In run.c. */
void jrt_place_together(struct jrt_actor_place *place, struct jrt_task *task);

/* With the lock: */

/* Starts what the specification says. OK: it is STARTING, or RUNNING. */
janus_status jrt_place_start(struct jrt_actor_place *place);
/* Tells the child to end. */
void jrt_place_stop(struct jrt_actor_place *place, janus_stop_how how, uint64_t within_ns);
/* Arms the supervisor's time for the place; 0: none. False: no memory. */
bool jrt_place_set_time(struct jrt_actor_place *place, uint64_t after_ns);
/* The children from this one on, as the strategy says, are stopped and started again. */
void jrt_place_plan_restart(struct jrt_actor_place *place);
/* Moves a place, [place-moves]. */
void jrt_place_move(struct jrt_actor_place *place, janus_actor_state to);
/* A start that failed at once is treated as an end. */
void jrt_place_start_failed(struct jrt_actor_place *place);
/* Nothing runs there: the place stays EMPTY, or goes. */
void jrt_place_settle(struct jrt_actor_place *place);
/* A child that the supervisor has stopped has ended. */
void jrt_place_told_and_ended(struct jrt_actor_place *place);
/* A plan would have started it: it does not. */
void jrt_place_close(struct jrt_actor_place *place);
/* Takes the place out of its supervisor, for good. Nothing runs there. */
void jrt_place_remove(struct jrt_actor_place *place);
/* Begins to stop all, unless that has begun. The caller calls jrt_supervisor_go_on. */
void jrt_supervisor_stop_all(janus_supervisor *supervisor, janus_stop_how how);
/* Stops all by itself: `status` and the end of `cause` (NULL: none) say why. */
void jrt_supervisor_give_up(janus_supervisor *supervisor, janus_status status,
                            const struct jrt_actor_place *cause);
/* Goes on with the plan. */
void jrt_supervisor_go_on(janus_supervisor *supervisor);
/* A child has failed to start, or has ended by itself. [step-decide] In decide.c. */
void jrt_place_after_end(struct jrt_actor_place *place);
/* Restarts within the last period; the delay before the next restart of a child that failed. */
uint32_t jrt_supervisor_recent(const janus_supervisor *supervisor);
uint64_t jrt_place_next_delay(struct jrt_actor_place *place);
/* Whether the supervisor starts nothing any more. */
bool jrt_supervisor_is_ending(janus_supervisor *supervisor);
/* Its restart, never DEFAULT; whether it stays when nothing runs there. */
janus_restart jrt_place_restart(const struct jrt_actor_place *place);
bool          jrt_place_is_kept(const struct jrt_actor_place *place);
void          jrt_history_add(janus_supervisor *supervisor, const struct jrt_actor_place *place,
                              bool restarted);
/* Wakes those that wait for this at the place. */
void jrt_place_notify(struct jrt_actor_place *place, enum jrt_awaited what, janus_status status);

/* The times of its specification, with the defaults. */
uint64_t jrt_place_start_within(const struct jrt_actor_place *place);
uint64_t jrt_place_stop_within(const struct jrt_actor_place *place);

static inline bool jrt_place_runs(const struct jrt_actor_place *place)
{
    return place->state >= JANUS_ACTOR_STATE_STARTING && place->state <= JANUS_ACTOR_STATE_STUCK &&
           place->state != JANUS_ACTOR_STATE_DELAYED;
}

/* What a supervisor below another runs in its task. In supervisor.c. */
int64_t jrt_supervisor_main(struct jrt_actor_place *place);

/* A waiter joins those of a place, and leaves them. Under the place's lock. */
static inline void jrt_waiter_link(struct jrt_actor_place *place, struct jrt_actor_waiter *waiter)
{
    waiter->next = place->waiters;
    waiter->link = &place->waiters;
    if (waiter->next != NULL) waiter->next->link = &waiter->next;
    place->waiters = waiter;
}
static inline void jrt_waiter_unlink(struct jrt_actor_waiter *waiter)
{
    *waiter->link = waiter->next;
    if (waiter->next != NULL) waiter->next->link = waiter->link;
}

/* Waits at a place, for what `what` says: the first under the place's lock, the second without.
 * Whatever else it returns, the awaited thing has happened if waiter->done. In manage.c. */
void         jrt_waiter_begin(struct jrt_actor_place *place, struct jrt_actor_waiter *waiter,
                              enum jrt_awaited what);
janus_status jrt_waiter_wait(struct jrt_actor_place *place, struct jrt_actor_waiter *waiter,
                             const char *reason, uint64_t deadline_ns);
/* Whether the supervisor is a scope around the current task, [supervisor-around]. In manage.c. */
bool jrt_supervisor_is_around(const janus_supervisor *supervisor);
/* Whether the current task is the owner, or inside, on no narrower terms. In manage.c. */
janus_status jrt_supervisor_may_manage(const janus_supervisor *supervisor);
/* Starts a child for a caller that waits, and waits. The first with the lock; WOULD_WAIT: the
 * second follows. In supervisor.c. */
janus_status jrt_start_begin(struct jrt_actor_place *place, struct jrt_actor_waiter *waiter);
janus_status jrt_start_wait(janus_supervisor *supervisor, struct jrt_actor_place *place,
                            struct jrt_actor_waiter *waiter, uint64_t serial);

/* Reads and checks options, and fills in the defaults. INVALID: janus_explain names the field. */
janus_status jrt_supervisor_decode(const janus_supervisor_options *given,
                                   janus_supervisor_options       *options);
/* Opens a supervisor that is a child, in the current task. A status, or IGNORE or the failure of
 * its init. In supervisor.c. */
int64_t jrt_supervisor_open_below(const janus_supervisor_options *given,
                                  struct jrt_actor_place *host, janus_supervisor **out);
/* Frees a supervisor whose nursery has ended. In supervisor.c. */
void jrt_supervisor_release(janus_supervisor *supervisor);

/* The owner ends without ending its supervisor: before and after its nursery ends. In end.c. */
void jrt_supervisor_abandon(struct jrt_nursery *n);
void jrt_supervisor_free(struct jrt_nursery *n);

/* Specifications: spec.c. */

/* Checks a specification, and makes a copy, or shares the supervisor's last one. INVALID:
 * janus_explain names the field. With the lock. If *out_made, the caller charges for the copy,
 * without the lock, or forgets it. */
janus_status jrt_spec_make(janus_supervisor *supervisor, const janus_child *given,
                           struct jrt_spec **out, bool *out_made);
janus_status jrt_spec_charge(struct jrt_spec *spec);
/* Drops a reference. With the lock. */
void jrt_spec_put(struct jrt_spec *spec);
/* The supervisor does not share the specification any longer. With the lock. */
void jrt_spec_forget(janus_supervisor *supervisor, struct jrt_spec *spec);

/* Ids of children. With the lock. False: no memory. */
bool                    jrt_ids_add(janus_supervisor *supervisor, struct jrt_actor_place *place);
void                    jrt_ids_remove(janus_supervisor *supervisor, struct jrt_actor_place *place);
struct jrt_actor_place *jrt_ids_find(const janus_supervisor *supervisor, const char *id);
void                    jrt_ids_free(janus_supervisor *supervisor);

/* Names: names.c. OK, EXISTS, NO_MEMORY, NO_NAME_CAP... */
janus_status jrt_place_name(struct jrt_actor_place *place);
void         jrt_place_unname(struct jrt_actor_place *place);
/* Whether another actor has its name. */
bool jrt_place_name_taken(const struct jrt_actor_place *place);

/* A child's failure, for the reports. `gives_up` says why the supervisor ends now. OK: it goes on.
 * With the lock. In look.c. */
void jrt_report_failure(janus_supervisor *supervisor, const struct jrt_actor_place *place,
                        bool restarts, janus_status gives_up);
void jrt_report_stuck(const struct jrt_actor_place *place);

#endif

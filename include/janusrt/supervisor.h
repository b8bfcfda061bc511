/* SPDX-License-Identifier: MIT */
/*
 * Supervisors: they start actors, tasks and further supervisors, learn how each ended, and start it
 * again or not.
 *
 *     static int64_t shop(void *argument)
 *     {
 *         janus_supervisor *supervisor;
 *         janus_actor       till, stock;
 *         janus_status      status = janus_supervisor_open(
 *             JANUS_SUPERVISOR_OPTIONS(.name = "shop", .strategy = JANUS_SUPERVISION_REST_FOR_ONE,
 *                                      .max_restarts = 3, .delay_ns = 10 * JANUS_MS),
 *             &supervisor);
 *         if (status != JANUS_OK) return status;
 *         status = janus_supervisor_add(supervisor, JANUS_CHILD(.behaviour = &stock_b), &stock);
 *         if (status == JANUS_OK)
 *             status = janus_supervisor_add(supervisor,
 *                 JANUS_CHILD(.id = "till", .behaviour = &till_b, .argument = &stock), &till);
 *         ...
 *         janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
 *         return janus_supervisor_end(supervisor, &result); // all have ended here
 *     }
 *
 * A supervisor is a scope of its task, as a nursery is: no child outlives it. Inside are its
 * children, and all tasks of nurseries that were opened after it. They may use its pointer; for
 * every other task, and after its end, each call with it returns STATE. It has no task and no
 * stack of its own, and never waits. The thread that sees a child end, or a timer ring, takes the
 * supervisor's next step.
 *
 *     EMPTY -> STARTING -> RUNNING -> STOPPING -> EMPTY      started, told to end, ended
 *                  \          \           \-> STUCK -> EMPTY it did not end in time
 *                   \          +-> DELAYED -> STARTING       it failed, and is started again
 *                    +-> EMPTY                               init failed, or had nothing to do
 *
 * Restarts are bounded three times. More than max_restarts within period_ns end the supervisor with
 * TOO_OFTEN. Each restart costs `price` out of the pool, and a pool that cannot pay ends it with
 * BUDGET_EXHAUSTED. Delays double from delay_ns up to max_delay_ns.
 *
 * A supervisor that gives up stops its children. Then it cancels the scope of its task: the task's
 * waits return CANCELLED, and janus_supervisor_end says why. A supervisor below another fails with
 * the error of the child that began it, so the first cause reaches the top unchanged.
 *
 * What an actor spent stays spent. A new incarnation has what is left of its budget.
 *
 * A supervisor reports the first failure of its children in one line on stderr. Further lines come
 * at most every 10 s, with the number of failures since the last line. A failure without a restart
 * always has a line. A child that is STUCK has one, too, and so has the first dead letter of an
 * actor. A supervisor that is ending reports only children that are STUCK. Schedulers with
 * quiet_panics or on_panic, and simulated runs, write nothing.
 *
 * In C++ one macro inside another dangles: name the options first, see actor.h.
 */
#ifndef JANUSRT_SUPERVISOR_H
#define JANUSRT_SUPERVISOR_H

#include <janusrt/actor.h>
#include <janusrt/budget.h>
#include <janusrt/cap.h>
#include <janusrt/export.h>
#include <janusrt/nursery.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct janus_supervisor janus_supervisor;

/* Which children are started again when one is. */
typedef enum janus_supervision {
    JANUS_SUPERVISION_ONE_FOR_ONE = 0, /* that one */
    JANUS_SUPERVISION_ONE_FOR_ALL,     /* all: the others are stopped first */
    JANUS_SUPERVISION_REST_FOR_ONE,    /* that one and all that were added later */
} janus_supervision;

/* When a child is started again. */
typedef enum janus_restart {
    JANUS_RESTART_DEFAULT = 0, /* PERMANENT */
    JANUS_RESTART_PERMANENT,   /* always */
    JANUS_RESTART_TRANSIENT,   /* unless it ended NORMAL or STOPPED */
    JANUS_RESTART_TEMPORARY,   /* never; its place is gone when it ends */
} janus_restart;

/* When the end of significant children ends the supervisor. */
typedef enum janus_auto_stop {
    JANUS_AUTO_STOP_NEVER = 0,
    JANUS_AUTO_STOP_ANY, /* when one of them has ended by itself, and is not started again */
    JANUS_AUTO_STOP_ALL, /* when the last of them has */
} janus_auto_stop;

#define JANUS_ANY_TIME UINT64_MAX      /* stop_within_ns: there is no limit */
#define JANUS_NO_TIME (UINT64_MAX - 1) /* stop_within_ns: it is cancelled at once */
#define JANUS_NO_RESTARTS UINT32_MAX   /* max_restarts: the first is one too many */

struct janus_supervisor_options;

/* How a child is started: by an actor's behaviour, a task's entry, or a supervisor's options. */
typedef struct janus_child {
    size_t                 struct_bytes; /* sizeof this struct; JANUS_CHILD sets it */
    const char            *id;           /* unique in the supervisor; copied, at most 63 bytes.
                                                NULL: anonymous */
    const janus_behaviour *behaviour;    /* an actor; or: */
    janus_entry           *task;         /* a task; or: */
    const struct janus_supervisor_options *supervisor; /* a supervisor below this one */
    void                      *argument;        /* of init, or of the task; it is used again at each
                                                restart, so it must outlive the place */
    const janus_actor_options *options;         /* of an actor or a task. NULL: defaults */
    janus_restart              restart;         /* 0: PERMANENT */
    bool                       significant;     /* see auto_stop; not with PERMANENT */
    bool                       drops_mail;      /* a restart makes dead letters of queued casts */
    uint64_t                   start_within_ns; /* for init. 0: 5 s */
    uint64_t                   stop_within_ns;  /* 0: 5 s; of a supervisor JANUS_ANY_TIME */
} janus_child;

#define JANUS_CHILD(...) JANUS_OPTIONS_(janus_child, __VA_ARGS__)

/* What a supervisor does about a child that ended, or that cannot pay. */
typedef enum janus_decision {
    JANUS_DECISION_DEFAULT = 0, /* by the specification */
    JANUS_DECISION_RESTART,
    JANUS_DECISION_LEAVE,   /* it stays ended */
    JANUS_DECISION_GIVE_UP, /* the supervisor ends */
} janus_decision;

/* A child has ended. */
typedef struct janus_child_event {
    janus_actor  actor; /* its place, with all rights */
    const char  *id;    /* NULL: anonymous */
    const char  *behaviour;
    janus_end    end;
    uint32_t     restarts; /* of this supervisor within period_ns, before this one */
    janus_budget spent;    /* by the incarnation that ended; explicit budgets only */
    uint64_t     tag;      /* of the letter that it was handling, if that was a notice */
} janus_child_event;

/*
 * Decides about a child that ran and has ended by itself. It may change *delay_ns, the time before
 * the restart.
 *
 * It runs as a callback of the ended child, with the rights of that child. It must not wait, and
 * has a small slice of operations. If it panics, its decision is DEFAULT.
 */
typedef janus_decision janus_on_end(void *argument, const janus_child_event *event,
                                    uint64_t *delay_ns);

/*
 * Says whether the supervisor has something to do, before it starts any child. It returns
 * JANUS_ACTOR_GO_ON, JANUS_ACTOR_IGNORE, or a negative number: a failure. It runs in the task that
 * opens the supervisor; below another supervisor, at each restart again.
 */
typedef int64_t janus_supervisor_init(void *argument);

/* Options of a supervisor. Zero in any field selects the default named beside it. */
typedef struct janus_supervisor_options {
    size_t            struct_bytes; /* sizeof this struct; JANUS_SUPERVISOR_OPTIONS sets it */
    const char       *name;         /* NULL: "supervisor"; copied, see JANUS_NAME_BYTES */
    janus_supervision strategy;     /* 0: ONE_FOR_ONE */
    uint32_t          max_restarts; /* within period_ns. 0: 1; JANUS_NO_RESTARTS: none */
    uint64_t          period_ns;    /* 0: 5 s */
    uint64_t          delay_ns; /* before a restart; doubled for each failure in a row, with up to
                                    a tenth of jitter from the seed. 0: at once */
    uint64_t          max_delay_ns; /* 0: 60 times delay_ns */
    uint64_t          healthy_ns;   /* without a failure, before the delay is delay_ns again. 0:
                                    period_ns */
    uint64_t          price;     /* ops that each restart takes from the pool. 0: 100, if there is a
                                    pool */
    janus_auto_stop   auto_stop; /* 0: NEVER */
    bool              stop_together; /* children are stopped at once. false: in reverse order */
    uint32_t          history;       /* restarts that are remembered. 0: 16, at most 1024 */
    janus_on_end     *on_end;        /* NULL: the specification decides */
    void             *on_end_argument;

    /* Budgets, as janus_nursery_options. */
    const janus_budget *budget;    /* a pool for the children, as far as a budget capability or the
                                     profile allows: see `granted`. NULL: as around it. A child
                                     without options.budget begins with a task's default out of
                                     it. 1000 channel operations are enough for ten children */
    janus_allowance     allowance; /* of each child without one of its own; the pool pays it. 0: a
                                     child draws small portions until the pool is empty. In
                                     :cluster it gets a tenth of the default budget for each
                                     100 ms */
    janus_on_exhausted *on_exhausted; /* asked before the allowance; child->name is the id, or the
                                     behaviour's name. IGNORE: the allowance decides. RECHARGE: the
                                     child gets what the pool has of *grant; if that does not help
                                     it, it ends EXHAUSTED. NULL: nobody */
    void               *on_exhausted_argument;
    bool                polls; /* the task of the supervisor decides about exhausted children
                                   (janus_supervisor_poll_exhausted); allowances are not used */
    uint32_t max_exhaustions;  /* of one child within period_ns, before it counts as failed. A child
                                 that waits for its allowance is exhausted; a portion from the pool
                                 does not count. 0: 100 */

    /* Capabilities of the opener, as janus_nursery_options. Zero: as around it. */
    janus_cap spawn_cap, budget_cap, channel_cap, executor_cap, net_cap, file_cap, process_cap,
        name_cap;

    const janus_child *children; /* of a supervisor below another: started with it, in this order */
    size_t             child_count;
    janus_supervisor_init *init; /* NULL: it always has something to do */
    void                  *init_argument;
    janus_budget          *granted; /* out: the pool it got, as janus_nursery_options.granted. Of a
                                   supervisor below another it must outlive the place. NULL: not
                                   wanted */
} janus_supervisor_options;

#define JANUS_SUPERVISOR_OPTIONS(...) JANUS_OPTIONS_(janus_supervisor_options, __VA_ARGS__)

/* How a supervisor ended. */
typedef struct janus_supervisor_result {
    size_t       struct_bytes;            /* sizeof this struct; JANUS_SUPERVISOR_RESULT sets it */
    janus_status status;                  /* as janus_supervisor_end returns it */
    bool         by_itself;               /* auto_stop, or it gave up */
    janus_end    cause;                   /* it gave up: how the child ended that began it */
    char         child[JANUS_NAME_BYTES]; /* id or behaviour of that child */
    uint64_t     restarts;                /* in its whole life */
    uint64_t     sent, handled, returned, dead; /* messages of all its actors; sent is the sum */
} janus_supervisor_result;
#define JANUS_SUPERVISOR_RESULT() JANUS_SIZED_(janus_supervisor_result)

/* One child, for janus_supervisor_children. */
typedef struct janus_child_info {
    size_t            struct_bytes;         /* sizeof this struct */
    janus_actor       actor;                /* its place, with all rights */
    char              id[JANUS_NAME_BYTES]; /* "": anonymous */
    const char       *behaviour;
    janus_actor_state state;
    uint32_t          incarnation;
    uint64_t          restarts;
    janus_restart     restart; /* as specified, never DEFAULT */
    bool              significant;
    uint64_t          start_within_ns, stop_within_ns; /* as specified, with the defaults */
} janus_child_info;
#define JANUS_CHILD_INFO() JANUS_SIZED_(janus_child_info)

typedef struct janus_supervisor_info {
    size_t   struct_bytes;               /* sizeof this struct; JANUS_SUPERVISOR_INFO sets it */
    uint64_t specified;                  /* children with a specification */
    uint64_t running;                    /* of these: starting, running or stopping */
    uint64_t actors, tasks, supervisors; /* specified, by sort */
    uint64_t stuck;
    uint64_t restarts; /* in its whole life */

    /* Options, with the defaults. */
    janus_supervision strategy;
    janus_auto_stop   auto_stop;
    uint32_t          max_restarts, history, max_exhaustions;
    uint64_t          period_ns, delay_ns, max_delay_ns, healthy_ns, price;
} janus_supervisor_info;
#define JANUS_SUPERVISOR_INFO() JANUS_SIZED_(janus_supervisor_info)

/* One end of a child, for janus_supervisor_history. */
typedef struct janus_restart_info {
    size_t       struct_bytes; /* sizeof this struct */
    janus_actor  actor;
    char         child[JANUS_NAME_BYTES]; /* id or behaviour */
    janus_end    end;
    bool         restarted;
    uint64_t     at_ns; /* on the clock of janus_now_ns */
    uint64_t     tag;   /* of the notice in hand, if it was one */
    janus_budget spent; /* explicit budgets only */
} janus_restart_info;
#define JANUS_RESTART_INFO() JANUS_SIZED_(janus_restart_info)

JANUS_BEGIN_DECLS

/*
 * Creates a supervisor as the innermost scope of the current task, and starts options.children in
 * order. `options` may be NULL.
 *
 * Context: inside a task, which becomes the owner. The backend there is COOPERATIVE or EVENTED.
 * Yields:  until options.children have started.
 * Owns:    *out is the library's until janus_supervisor_end.
 * Cost:    about 4 KiB with the default history, charged to the task's memory.
 * Errors:  STATE      not inside a task
 *          INVALID    a field is out of range; janus_explain names it
 *          UNAVAILABLE  the backend is not COOPERATIVE or EVENTED
 *          FULL       the task has as many scopes open as max_nesting allows
 *          IGNORED    options.init returned IGNORE
 *          CHILD_FAILED  options.init returned a failure
 *          and those of janus_nursery_open and janus_supervisor_add. On any error nothing is left.
 */
JANUS_NODISCARD JANUS_API janus_status
janus_supervisor_open(const janus_supervisor_options *options, janus_supervisor **out);

/*
 * Adds a child and starts it. *out (NULL: not wanted) is its handle, with all rights.
 *
 * Context: the owner, or a task inside the supervisor.
 * Yields:  until its init has returned.
 * Owns:    the library copies the specification, but for what its pointers name.
 * Cost:    a spawn. The task that adds the child pays about 300 bytes and the state for its place,
 *          until the place is gone. It also pays for a specification unlike that of the child
 *          before, about 500 bytes.
 * Errors:  EXISTS     a child with this id exists, and *out is its handle. Or an actor has its
 *                     name, and *out stays as it is
 *          IGNORED    its init returned IGNORE. The specification is kept if it has an id and is
 *                     not TEMPORARY
 *          DEADLINE   init took longer than start_within_ns
 *          CHILD_FAILED  init failed; janus_explain says how
 *          NO_NAME_CAP, CAP_LIMIT  the actor has a name, and no capability here registers it
 *          CLOSED     the supervisor is ending
 *          STARTING   the supervisor starts all children again just now; try later
 *          INVALID    a field of the specification is out of range; janus_explain names it
 *          CANCELLED  this task was cancelled; the child may have been started
 *          STATE      the caller is neither the owner nor inside, or the supervisor has ended
 *          CAP_WIDENS the caller has narrower terms than the supervisor: a budget, a capability or
 *                     a limit, of a nursery between or of its own
 *          FULL       the process has no place left, or the pool has a quarter of them
 *          and those of janus_spawn_with; janus_explain says why. On any other error no child is
 *          left.
 */
JANUS_NODISCARD JANUS_API janus_status janus_supervisor_add(janus_supervisor  *supervisor,
                                                            const janus_child *child,
                                                            janus_actor       *out);

/*
 * Stops a child. Its specification stays, unless it is anonymous or TEMPORARY.
 *
 * Context: the owner, or a task inside the supervisor, but not the child itself.
 * Yields:  until the child has ended.
 * Owns:    nothing.
 * Cost:    a wait.
 * Errors:  STALE  no such child of this supervisor
 *          STUCK  it was cancelled, and has not ended a second later
 *          CANCELLED  this task was cancelled; the child goes on ending
 *          DEADLOCK   the child called this, or waits for the caller
 */
JANUS_NODISCARD JANUS_API janus_status janus_supervisor_stop_child(janus_supervisor *supervisor,
                                                                   janus_actor       child);

/*
 * Starts a child again that was stopped, or has ended.
 *
 * Context: as janus_supervisor_add.
 * Yields:  until its init has returned.
 * Owns:    nothing.
 * Cost:    a spawn.
 * Errors:  STALE     no such child
 *          STATE     it runs
 *          STARTING  it is being started, or waits for its delay
 *          and those of janus_supervisor_add
 */
JANUS_NODISCARD JANUS_API janus_status janus_supervisor_start_child(janus_supervisor *supervisor,
                                                                    janus_actor       child);

/*
 * Forgets the specification of a child that does not run.
 *
 * Context: the owner, or a task inside the supervisor.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  STALE     no such child
 *          STATE     it runs
 *          STARTING  it is being started, or waits for its delay
 */
JANUS_NODISCARD JANUS_API janus_status janus_supervisor_remove_child(janus_supervisor *supervisor,
                                                                     janus_actor       child);

/*
 * Finds a child by its id.
 *
 * Context: the owner, or a task inside the supervisor.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    a lock.
 * Errors:  NOT_FOUND, INVALID
 */
JANUS_NODISCARD JANUS_API janus_status janus_supervisor_find_child(janus_supervisor *supervisor,
                                                                   const char       *id,
                                                                   janus_actor      *out);

/*
 * Lists the children in the order of adding.
 *
 * Context: the owner, or a task inside the supervisor.
 * Yields:  only if the turn is over.
 * Owns:    `out` stays the caller's; the call writes up to `room` infos.
 * Cost:    a lock, and some ns for each.
 * Errors:  none. Returns how many there are; 0 where other calls return an error.
 */
JANUS_API size_t janus_supervisor_children(janus_supervisor *supervisor, janus_child_info *out,
                                           size_t room);

/*
 * Reads how children ended, the newest first.
 *
 * Context: the owner, or a task inside the supervisor.
 * Yields:  only if the turn is over.
 * Owns:    `out` stays the caller's; the call writes up to `room` infos.
 * Cost:    a lock.
 * Errors:  none. Returns how many are remembered; 0 where other calls return an error.
 */
JANUS_API size_t janus_supervisor_history(janus_supervisor *supervisor, janus_restart_info *out,
                                          size_t room);

/*
 * Counts the children.
 *
 * Context: the owner, or a task inside the supervisor.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; set out->struct_bytes before.
 * Cost:    a lock, and some ns for each child.
 * Errors:  INVALID  an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_supervisor_inspect(janus_supervisor      *supervisor,
                                                                janus_supervisor_info *out);

/*
 * Begins to end the supervisor, as janus_supervisor_end does, and does not wait for the children.
 * The owner can wait for them with a deadline (janus_supervisor_wait). It still has to call
 * janus_supervisor_end. To begin again changes nothing.
 *
 * Context: the owner, or any task below it.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock, and some ns for each child.
 * Errors:  STATE      the caller is neither the owner nor below it
 *          CAP_WIDENS as janus_supervisor_add
 *          INVALID    `supervisor` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_supervisor_stop(janus_supervisor *supervisor);

/*
 * Waits until all children have ended for good: the supervisor gave up, auto_stop ended it, or
 * janus_supervisor_stop did. The wait ends at `deadline_ns` (0: no deadline). A deadline that
 * passes stops nothing: what has begun to end goes on.
 *
 * Context: the owner.
 * Yields:  until then, or until the deadline.
 * Owns:    nothing.
 * Cost:    a wait.
 * Errors:  DEADLINE   the deadline passed first
 *          CANCELLED  this task was cancelled
 *          DEADLOCK   every task waits, and no event can come
 *          STATE      not the owner
 */
JANUS_NODISCARD JANUS_API janus_status janus_supervisor_wait(janus_supervisor *supervisor,
                                                             uint64_t          deadline_ns);

/*
 * Ends the supervisor. It stops the children in reverse order, one after the other, or all at once
 * with stop_together. An actor's mailbox closes, the actor handles what is queued there, and ends
 * STOPPED. Each child has stop_within_ns, then it is cancelled. In a cancelled task the actors
 * handle nothing more. At the end the call frees the supervisor.
 *
 * Context: the owner; inner scopes before outer ones.
 * Yields:  until all children have ended. A child that is STUCK keeps it waiting without limit, and
 *          a line on stderr says so.
 * Owns:    takes the supervisor. *out (NULL: not wanted) is the caller's; set out->struct_bytes.
 * Cost:    a wait.
 * Errors:  TOO_OFTEN         children failed more often than max_restarts allows
 *          BUDGET_EXHAUSTED  the pool could not pay for a restart
 *          CANCELLED         the scope was cancelled from outside
 *          CHILD_FAILED      it gave up for another reason: see out->cause
 *          STATE             not the owner, or not the innermost scope; nothing happened
 *          INVALID           out->struct_bytes is no size of it; nothing happened
 */
JANUS_NODISCARD JANUS_API janus_status janus_supervisor_end(janus_supervisor        *supervisor,
                                                            janus_supervisor_result *out);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * The task and the strand: what is scheduled, and what it runs on.
 *
 * A strand is a stack with a worker's loop at its bottom. A task runs in place: its entry is called
 * by the loop, or by the await of its parent, on the strand that is there. Only when a task has to
 * wait in the middle does its strand leave the CPU with it; the worker goes on with the strand of
 * another task, or with a loop on a fresh stack. So a task that never waits costs neither a stack
 * nor a switch.
 */
#ifndef JRT_TASK_TASK_H
#define JRT_TASK_TASK_H

#include "base/atomic.h"
#include "base/list.h"
#include "base/wait.h"
#include "fiber/context.h"
#include "fiber/record.h"
#include "fiber/stack.h"
#include "plat/name.h"
#include "sched/timer.h"

#include <janusrt/nursery.h>
#include <janusrt/scheduler.h>
#include <janusrt/task.h>

/* Operations of a task's first slice, [turn-pace]. */
enum { JRT_FIRST_SLICE = 32 };

struct jrt_nursery;
struct jrt_purse;
struct jrt_task;
struct jrt_worker;

/*
 * [task-finish]  every return after a switch is one that the CPU has not foreseen: it remembers
 *   the calls of who was left. So a call that waits often ends in the switch, by a jump, and has no
 *   frame then; who arrives on its strand calls `finish`, and goes on, by a jump, where the call
 *   was made, with what that says. What the call would have had in its frame lies in `place`, of
 *   which a strand needs one: only the task on top of it can wait, and for one thing at a time.
 *   `finish` is set by who leaves and cleared by who arrives, before it is called; the place is
 *   free again when it calls what may wait.
 */
enum { JRT_PLACE_WORDS = 12 };

typedef janus_status jrt_finish(struct jrt_worker *worker, struct jrt_task *task,
                                janus_status ended);

/* Of a list of forks, fork.h. */
struct jrt_link {
    struct jrt_link *outer, *newer;
};

/* Whether calls may be divided, fork.h, on a worker. */
enum jrt_forking {
    JRT_FORKS_SEEN,  /* in a world: a call is a point, and every fork is looked at */
    JRT_FORKS_NEVER, /* nobody steals from it */
    JRT_FORKS_OFTEN,
};

/* Lies at the top of its own stack. */
struct jrt_strand {
    struct jrt_context context; /* suspended: where it goes on */
    struct jrt_stack  *stack;
    uint8_t class;               /* of the stack */
    bool                watched; /* nothing but a canary guards it, [strand-canary] */
    bool                last;    /* it is the worker's last one, [strand-last] */
    int                 error;   /* suspended: errno of the task on top, [task-errno] */
    struct jrt_context *left;    /* the context that was left with it: its own, or a fiber's */
    uintptr_t           brink;  /* the address below which a call must not begin, [stack-reserve] */
    uintptr_t           ample;  /* the one above which an ordinary child has room; never below it */
    int64_t             fuel;   /* suspended: of the task on top, [purse-fuel] */
    jrt_finish         *finish; /* suspended: what it does first; NULL: nothing */
    void               *place[JRT_PLACE_WORDS]; /* for what it waits with, [task-finish] */
    struct jrt_link    *forks;                  /* the newest; [fork-list] */
    struct jrt_link    *unsplit;                /* the newest with nothing left to divide */
    struct jrt_link     no_fork;                /* the end of the list */
};

/* Whole lines at the top of the stack. Who only yields needs the first of them, unless a sanitizer
 * wants to know more. */
enum { JRT_STRAND_BYTES = (sizeof(struct jrt_strand) + 63) / 64 * 64 };
_Static_assert(offsetof(struct jrt_strand, place) - sizeof(struct jrt_sanitizer) <= 64, "a line");

/*
 * [task-park]  the park word: who may put the task back on a queue.
 *
 *     AWAKE     it runs, or is on a queue
 *     PARKING   it said it will wait; its strand may still be on the CPU
 *     PARKED    its strand is off the CPU
 *
 *     the task     AWAKE -> PARKING, before anybody can know that it waits
 *     the arriver  PARKING -> PARKED, when the strand is off the CPU; failing that, somebody has
 *                  woken it meanwhile, and the arriver queues it
 *     a waker      PARKING -> AWAKE, and leaves the queueing to the arriver, or
 *                  PARKED -> AWAKE, and queues it; in both cases with the status the wait returns
 *
 *   Exactly one waker gets to do either; the others see AWAKE and go away.
 *
 * [task-interrupt]  a cancel may end only waits that say so: not the wait for
 *   children, which end by themselves, nor for a blocking call, which cannot be stopped, nor any
 *   in a shield; a deadlock ends those too. It is a bit of the same word, so that it cannot
 *   belong to another wait than the one that is ended. The end of a shield's deadline sets it in
 *   the middle of a wait ([shield-end]), so whoever changes the word from PARKING tries again when
 *   only the bit did.
 */
enum jrt_park {
    JRT_AWAKE = 0,
    JRT_PARKING = 1,
    JRT_PARKED = 2,
    JRT_PARK_MASK = 3,
    JRT_INTERRUPTIBLE = 4, /* [task-interrupt] */
    JRT_BREAKABLE = 8, /* a deadlock may end it: all but those for children and blocking calls */
    JRT_SCOPED = 16,   /* in shields, whose number is in the bits of the status: [scope-shield] */
};

struct jrt_defer {
    struct jrt_defer *next;
    void              (*function)(void *);
    void             *argument;
};

/* A shield with a deadline, in its caller's frame; the essay is in shield.c. */
struct jrt_shield {
    struct jrt_shield *outer; /* the next one with a deadline; plain ones are only counted */
    uint64_t           deadline_ns;
    uint64_t           depth; /* it is the so-manieth of the task's shields */
};

/*
 * Three cache lines. A task that never waits needs only the first; one that opens nurseries, yields
 * or has something of its own also the second; one that waits all three.
 *
 * [task-clean]  a record that is free, or new, has zeros in everything below `special`. Who writes
 *   there says so in `special`, and what is special is wiped before the record is free again. So
 *   starting a task writes a few words of one line.
 */
struct jrt_task {
    struct jrt_record record; /* first; its `next` also links the task in queues */
    union {
        struct { /* until it starts */
            janus_entry *entry;
            void        *argument;
        };
        struct jrt_landing landing; /* from then on; the result stays */
    };
    struct jrt_nursery *nursery; /* borrowed; outlives us */
    const janus_site   *site;
    union {
        struct {
            union {
                struct {
                    _Atomic(uint8_t) state; /* janus_task_state */
                    uint8_t          lane;
                    uint8_t          stack_class;
                    uint8_t          cancel_mode;
                };
                uint32_t birth; /* all four, as the nursery gives them */
            };
            union {
                struct {
                    bool          touched;  /* the second or third line is not clean */
                    _Atomic(bool) linked;   /* [tree-lazy] */
                    bool          joinable; /* its id was asked for: the record outlives it */
                    bool kept; /* it has ended and waits to be joined; the nursery's lock */
                };
                uint32_t special; /* any of them, [task-clean] */
            };
        };
        uint64_t beginning; /* both: the birth, where nothing is special */
    };

    struct jrt_strand  *strand;    /* waiting or ready again: where it lies; NULL: never ran */
    struct jrt_nursery *innermost; /* of the nurseries we have open; ours alone */
    struct jrt_defer   *defers;
    void               *local;
    const char         *name;           /* clean, [name-clean]; NULL: none */
    _Atomic(uint32_t)   park;           /* enum jrt_park | status << 8 */
    _Atomic(uint8_t)    wait;           /* enum jrt_wait */
    uint8_t             panic;          /* janus_panic_kind */
    bool                saw_cancel : 1; /* a call told it that it is cancelled */
    bool                owns_name : 1;  /* the name was given; else it is a literal of ours */
    bool                ending;         /* it has ended and is being cleaned up */
    _Atomic(uint16_t)   shield;         /* how many are begun */
    _Atomic(uint16_t)   worker;         /* it last left to wait, if `since` tells */
    _Atomic(uint32_t)   since;          /* when, in units of JRT_SINCE_NS; 0: never */
    struct jrt_shield  *bounds;         /* shield > 0: the innermost with a deadline; ours alone */

    struct jrt_list_node  sibling;   /* on nursery->children, once linked; the nursery's lock */
    struct jrt_list_node  nurseries; /* registered ones of ours; the nursery's lock */
    _Atomic(const char *) reason;    /* what it last waited for at a waitpoint, or NULL */
    const void *fault_data; /* an overflow's address, or a panic's message, which is ours */
    union {
        void        (*drop)(void *); /* until it starts: for its argument, [ending-drop]; or NULL */
        const void *fault_code;      /* an overflow's instruction */
    };
    struct jrt_purse *purse; /* owned; NULL: an implicit budget, hardly touched */
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct jrt_task, strand) == 64, "a line to start and run");
_Static_assert(offsetof(struct jrt_task, sibling) == 128, "a line to run further");
_Static_assert(sizeof(struct jrt_task) == 192, "three lines");

/* Whether it has been running and lies on a strand of its own. */
static inline bool jrt_task_began(const struct jrt_task *task)
{
    return task->touched && task->strand != NULL;
}

static inline janus_task_id jrt_task_id(const struct jrt_task *task)
{
    /* relaxed: it changes only when the record is given back. */
    uint32_t generation = jrt_load_relaxed(&task->record.generation);
    return (uint64_t)(task->record.index + 1) << 32 | generation;
}

/* The name it was given, or "task"; clean, [name-clean]. It lives as long as the task. */
static inline const char *jrt_task_name(const struct jrt_task *task)
{
    return task->name != NULL ? task->name : "task";
}

/* Announces that the current task is about to wait. Before it is registered anywhere. */
void jrt_task_park_begin(struct jrt_task *task, enum jrt_wait wait);

/* Leaves the CPU until woken; returns the waker's status. A wake since park_begin counts. */
janus_status jrt_task_park(struct jrt_worker *worker, struct jrt_task *task);

/* It will not wait after all. False: somebody has woken it already; then park must be called,
 * which comes back. */
bool jrt_task_park_cancel(struct jrt_task *task);

/* Ends a task's wait with a status. False: it was awake, or another was first. The caller knows
 * that it is the wait it means: it holds what the task must take before it can wait again. */
bool jrt_task_wake(struct jrt_task *task, janus_status status);

/* The same with OK, by a worker of its scheduler, for one that waited for what the caller has done:
 * see [queue-served]. */
bool jrt_task_serve(struct jrt_worker *worker, struct jrt_task *task);

/* The same, of one that was taken off where it waited and so will not be served by another; false:
 * nothing happened, and jrt_task_serve is to be asked. It ends in a call, if in any. */
bool jrt_task_serve_at_once(struct jrt_worker *worker, struct jrt_task *task);

/* The same, only if the wait is one that may be interrupted. */
bool jrt_task_interrupt(struct jrt_task *task, janus_status status);

/* Ends it with DEADLOCK, also in a shield: nothing else ever will. */
bool jrt_task_break_wait(struct jrt_task *task);

/*
 * Parks the current task, which is registered where somebody will wake it and has said PARKING. The
 * other half of [cancel-park]. OK comes from a waker alone; on anything else (CANCELLED, DEADLOCK,
 * NO_MEMORY, a waker's own word) its registration may still be there.
 */
janus_status jrt_task_park_cancellable(struct jrt_task *task);

/*
 * The same as the last thing that a call does: returns, where that was made, what finish(worker,
 * task, ended) says, which is called on the strand when the wait has ended so, [task-finish].
 */
janus_status jrt_task_park_then(struct jrt_worker *worker, struct jrt_task *task,
                                jrt_finish *finish);

/*
 * The same for one that has what it needs to leave, is linked, in no shield and not in a fiber of
 * its own, and on a worker without a trace. Its park_begin is the second; with the channel's lock
 * or whatever it is registered under.
 */
janus_status jrt_task_park_straight(struct jrt_worker *worker, struct jrt_task *task,
                                    jrt_finish *finish);

static inline void jrt_task_park_begin_straight(struct jrt_task *task, enum jrt_wait wait)
{
    jrt_store_relaxed(&task->wait, (uint8_t)wait); /* relaxed: for those who ask. */
    /* relaxed: nobody knows yet that it waits; registering makes it visible. */
    jrt_store_relaxed(&task->park, (uint32_t)(JRT_PARKING | JRT_INTERRUPTIBLE | JRT_BREAKABLE));
}

/* Begins a shield without a deadline, ends the innermost; from shield.c. */
void jrt_shield_begin(struct jrt_task *task);
void jrt_shield_end(struct jrt_task *task);

/* The shield that defers run in, the only one then; `grace` lives as long as they run. The second
 * ends all that a defer has begun and left. */
void jrt_shield_for_cleanup(struct jrt_task *task, struct jrt_shield *grace);
void jrt_shield_only(struct jrt_task *task, struct jrt_shield *grace);

/* The call is broken off: instead of its shields there is one without a deadline, until its
 * nurseries have ended. */
void jrt_shield_whole(struct jrt_task *task);

/* Whether the innermost shield, of which there is one, still holds. */
bool jrt_shield_holds(const struct jrt_task *task);

/* As jrt_task_park_cancellable, in a shield. */
janus_status jrt_shield_park(struct jrt_task *task);

/* Ends the wait of the owner of a nursery that is cancelled, unless it is in a shield that it began
 * after it opened the nursery, with `level` shields begun. */
void jrt_task_interrupt_owner(struct jrt_task *task, uint16_t level);

/* Whether the calls of this task must say CANCELLED, and why; the slow part. */
janus_cancel_reason jrt_task_look_up(const struct jrt_task *task);

/* The same, without the nurseries that the task has open itself. */
janus_cancel_reason jrt_task_look_above(const struct jrt_task *task);

/* The innermost nursery the task has open that is cancelled and holds the task in its scope, or
 * NULL. The caller is the task, or knows that the task waits. */
struct jrt_nursery *jrt_task_cancelled_scope(const struct jrt_task *task);

/* Cancels what the task has open inside of `scope`, or all if that is NULL, up to a shield. */
void jrt_scopes_tell(struct jrt_task *task, const struct jrt_nursery *scope);

/* Whether the task is told CANCELLED because of a nursery of its own alone. */
bool jrt_task_only_in_scope(const struct jrt_task *task);

/*
 * [cancel-patience]  a loop that ignores CANCELLED must neither keep its worker nor last for ever.
 *   Each CANCELLED that a call returns costs one op of what the task has to clean up with
 *   ([purse-allowance]), and may end its turn. When that is used up the task ends in the call: it
 *   is unwound, and its defers run. In a defer, the defer ends. An owner that is told because its
 *   own nursery was cancelled lives on, so it pays from its budget like a loop of checks.
 */

/* Returns CANCELLED, or ends the task there, as its mode and its patience want. */
janus_status jrt_task_obey(struct jrt_task *task);

/* The same, but for the mode. */
janus_status jrt_task_remind(struct jrt_task *task);

/* Returns CANCELLED whatever the mode: for waits that must let go of something first. */
janus_status jrt_task_told(struct jrt_task *task);

/* How a task's call came to its end. */
enum jrt_ending {
    JRT_ENDED_RETURNED = 0,
    JRT_ENDED_PANICKED = JRT_ARRIVED_PANICKED,
    JRT_ENDED_OVERFLOWED = JRT_ARRIVED_OVERFLOWED,
    JRT_ENDED_UNWOUND = 16,
    JRT_ENDED_EXHAUSTED = 17,
    JRT_ENDED_NO_MEMORY = 19, /* for its books, [purse-none] */
    JRT_ENDED_RESCUED = 18,   /* a panic that the rescue strand has dealt with, [ending-open] */
};

/*
 * After jrt_ctx_call, in the function that called it and before any other call: where the task has
 * left a nursery open, `how` becomes JRT_ENDED_RESCUED. A macro: a function would write on the
 * stack, [ending-open].
 */
#define JRT_TASK_LEFT_OPEN(task, how)                                                              \
    do {                                                                                           \
        if (jrt_unlikely((task)->innermost != NULL && (how) == JRT_ENDED_RETURNED)) {              \
            void **rescue_ = JRT_CTX_OWN_WORD(offsetof(struct jrt_thread, rescue));                \
            if (rescue_ == NULL) jrt_die("out of memory", "no stack", __FILE__, __LINE__);         \
            (how) = jrt_ctx_switch(&(task)->landing.sp, *rescue_, JRT_ENDED_RESCUED);              \
        }                                                                                          \
    } while (0)

/* The task will never start: drops its argument, if its spawn said how; from ending.c. */
void jrt_task_drop_argument(struct jrt_task *task);

/* Ends the current task here, after its open nurseries. */
__attribute__((noreturn)) void jrt_task_break_off(struct jrt_task *task, enum jrt_ending how);

/* Cancels and awaits what the task has open, innermost first; from cancel.c. */
void jrt_nurseries_abandon(struct jrt_task *task);

/* Cancels what was noted. The thread holds no lock. */
void jrt_tokens_flush(void);

#endif

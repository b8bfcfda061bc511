/* SPDX-License-Identifier: MIT */
/*
 * The task and the strand: what is scheduled, and what it runs on.
 *
 * A strand is a stack with a worker's loop at its bottom. A task runs in place: the loop, or the
 * await of its parent, calls its entry on the current strand. Only when a task has to wait in the
 * middle does its strand leave the CPU with it. The worker goes on with the strand of another
 * task, or with a loop on a fresh stack. So a task that never waits costs neither a stack nor a
 * switch.
 */
#ifndef JRT_TASK_TASK_H
#define JRT_TASK_TASK_H

#include "base/atomic.h"
#include "base/list.h"
#include "base/wait.h"
#include "fiber/context.h"
#include "fiber/record.h"
#include "plat/name.h"
#include "sched/timer.h"
#include "stack/stack.h"

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
 * [task-finish]  After a switch every return is mispredicted: the return predictor still holds the
 *   old stack's calls. So a call that waits often ends in the switch, by a jump, and then has no
 *   frame. The worker that arrives on its strand calls `finish`, and continues by a jump in the
 *   caller, with the result of `finish`. What the call would have had in its frame lies in
 *   `place`. A strand needs only one place: only the task on top of it can wait, and for one thing
 *   at a time. The leaving code sets `finish`. The arriving code clears it before it calls it. The
 *   place is free again when `finish` calls something that may wait.
 */
enum { JRT_PLACE_WORDS = 12 };

typedef janus_status jrt_finish(struct jrt_worker *worker, struct jrt_task *task,
                                janus_status ended);

/* An element of a list of forks, fork.h. */
struct jrt_link {
    struct jrt_link *outer, *newer;
};

/* Whether calls on a worker may be divided, fork.h. */
enum jrt_forking {
    JRT_FORKS_SEEN,  /* in a world: a call is a point, and every fork is a look */
    JRT_FORKS_NEVER, /* nobody steals from it */
    JRT_FORKS_OFTEN,
};

/* What is above a strand, [purse-lodged]. */
enum jrt_lodging {
    JRT_LODGING_FREE,
    JRT_LODGING_USED,   /* the purse of a task that runs here */
    JRT_LODGING_BARRED, /* a rescuer runs here, for a task that ends on another strand */
};

/* Lies at the top of its own stack, below its lodging. */
struct jrt_strand {
    struct jrt_context context; /* suspended: where it goes on */
    struct jrt_stack  *stack;
    uint8_t class;                   /* class of the stack */
    bool                watched;     /* only a canary guards it, [strand-canary] */
    bool                last;        /* the worker's last one, [strand-last] */
    uint8_t             lodging;     /* enum jrt_lodging */
    int                 error;       /* suspended: errno of the task on top, [task-errno] */
    struct jrt_context *left;        /* the context that was left with it: its own, or a fiber's */
    uintptr_t           floor;       /* a call must not begin below this address, [stack-reserve] */
    uintptr_t           child_floor; /* above it an ordinary child has room; never below `floor` */
    int64_t             fuel;        /* suspended: fuel of the task on top, [purse-fuel] */
    jrt_finish         *finish;      /* suspended: runs first, or NULL */
    void               *place[JRT_PLACE_WORDS]; /* memory for a wait, [task-finish] */
    struct jrt_link    *forks;                  /* the newest; [fork-list] */
    struct jrt_link    *unsplit;                /* the newest with nothing left to divide */
    struct jrt_link     no_fork;                /* the end of the list */
};

/* Whole cache lines at the top of the stack. A task that only yields needs the first of them,
 * unless a sanitizer needs more. */
enum { JRT_STRAND_BYTES = (sizeof(struct jrt_strand) + 63) / 64 * 64 };
enum { JRT_LODGING_BYTES = 5 * 64 };
_Static_assert(offsetof(struct jrt_strand, place) - sizeof(struct jrt_sanitizer) <= 64, "a line");

/*
 * [task-park]  The park word decides which thread may put the task back on a queue.
 *
 *     AWAKE     it runs, or is on a queue
 *     PARKING   it is about to wait; its strand may still be on the CPU
 *     PARKED    its strand is off the CPU
 *
 *     the task     AWAKE -> PARKING, before anybody can know that it waits
 *     the arriver  PARKING -> PARKED, when the strand is off the CPU; if that fails, a waker
 *                  has come meanwhile, and the arriver queues the task
 *     a waker      PARKING -> AWAKE, and leaves the queueing to the arriver, or
 *                  PARKED -> AWAKE, and queues it; in both cases with the status the wait returns
 *
 *   Exactly one waker makes either step. The others see AWAKE and do nothing.
 *
 * [task-interrupt]  A cancel may end only waits that allow it. It may not end the wait for
 *   children, which end by themselves, nor for a blocking call, which cannot be stopped. Nor may
 *   it end a wait in a shield; a deadlock ends that, too. The permission is a bit of the same
 *   word, so that it always belongs to the wait that ends. The end of a shield's deadline sets the
 *   bit in the middle of a wait ([shield-end]). So code that changes the word from PARKING tries
 *   again if only the bit changed.
 */
enum jrt_park {
    JRT_AWAKE = 0,
    JRT_PARKING = 1,
    JRT_PARKED = 2,
    JRT_PARK_MASK = 3,
    JRT_INTERRUPTIBLE = 4, /* [task-interrupt] */
    /* A deadlock may end it: all waits but those for children and blocking calls. */
    JRT_BREAKABLE = 8,
    JRT_SCOPED = 16, /* in shields; the status bits hold their number, [scope-shield] */
};

/* How a task joins the waiting tasks, and leaves them: [wait-order] in cancel/wait.h. */
struct jrt_waiting {
    enum jrt_wait why;
    bool          to_its_end;  /* no cancel ends it: it waits for children, or a native call */
    bool          outside;     /* `join` may set it: others than tasks can end it */
    bool          sleeps;      /* it waits for the deadline: OK, not DEADLINE */
    uint64_t      deadline_ns; /* JRT_NEVER: none */

    /* WOULD_WAIT: the task is registered. The call returns any other status. */
    janus_status (*join)(struct jrt_waiting *waiting, struct jrt_task *task);

    /* Runs when the wait ended with `ended`, perhaps on another worker. Returns the status of the
     * call. The caller obeys a cancel, which may unwind the task, only after jrt_wait. */
    janus_status (*leave)(struct jrt_waiting *waiting, struct jrt_task *task, janus_status ended);
};

struct jrt_defer {
    struct jrt_defer *next;
    void              (*function)(void *);
    void             *argument;
};

/* A shield with a deadline, in its caller's frame. The essay is in shield.c. */
struct jrt_shield {
    struct jrt_shield *outer; /* the next one with a deadline; plain ones are only counted */
    uint64_t           deadline_ns;
    uint64_t           depth; /* its number among the task's shields */
};

/*
 * Three cache lines. A task that never waits needs only the first. A task that opens nurseries,
 * yields or has something of its own also needs the second. A task that waits needs all three.
 *
 * [task-clean]  A free or new record has zeros in everything below `any_flag`. Code that writes
 *   there marks that in `any_flag`. A marked record is wiped before it is free again. So starting a
 *   task writes a few words of one line.
 */
struct jrt_task {
    struct jrt_record record; /* first; its `next` also links the task in queues */
    union {
        struct { /* until it starts */
            janus_entry *entry;
            void        *argument;
        };
        struct jrt_landing landing; /* from its start on; the result stays */
    };
    struct jrt_nursery *nursery; /* borrowed; outlives the task */
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
                uint32_t initial; /* all four, as the nursery gives them */
            };
            union {
                struct {
                    bool          dirty;    /* the second or third line is not clean */
                    _Atomic(bool) linked;   /* [tree-lazy] */
                    bool          joinable; /* its id was asked for: the record outlives it */
                    bool kept; /* it has ended and waits to be joined; the nursery's lock */
                };
                uint32_t any_flag; /* any of them, [task-clean] */
            };
        };
        uint64_t beginning; /* both: `initial`, if no flag is set */
    };

    struct jrt_strand  *strand;    /* of a waiting or resumed task; NULL: never ran */
    struct jrt_nursery *innermost; /* of its open nurseries; only the task's */
    struct jrt_defer   *defers;
    void               *local;
    const char         *name;           /* clean, [name-clean]; NULL: none */
    _Atomic(uint32_t)   park;           /* enum jrt_park | status << 8 */
    _Atomic(uint8_t)    wait;           /* enum jrt_wait */
    uint8_t             panic;          /* janus_panic_kind */
    bool                saw_cancel : 1; /* a call reported its cancel to it */
    bool                owns_name : 1;  /* a copy of a given name; else a literal */
    bool                resident : 1;   /* `site` is that of a jrt_resident, nursery.h */
    bool                herds : 1;      /* at the last look, [herd-gather] */
    bool                ending;         /* its call has ended, and it is cleaning up */
    _Atomic(uint16_t)   shield;         /* number of shields begun */
    _Atomic(uint16_t)   worker;         /* that it last left to wait; valid if `since` is not 0 */
    _Atomic(uint32_t)   since;          /* when, in units of JRT_SINCE_NS; 0: never */
    struct jrt_shield  *bounds;         /* shield > 0: innermost with a deadline; only the task's */

    struct jrt_list_node  sibling;    /* on nursery->children, once linked; nursery's lock */
    struct jrt_list_node  nurseries;  /* its registered nurseries; the nursery's lock */
    _Atomic(const char *) reason;     /* of its last wait at a waitpoint, or NULL */
    const void           *fault_data; /* address of an overflow, or owned message of a panic */
    union {
        /* Until it starts: drops the argument, [ending-drop], or NULL. */
        void        (*drop)(void *);
        const void *fault_code; /* instruction of an overflow */
    };
    struct jrt_purse *purse; /* owned; NULL: an implicit budget, hardly touched */
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct jrt_task, strand) == 64, "a line to start and run");
_Static_assert(offsetof(struct jrt_task, sibling) == 128, "a line to run further");
_Static_assert(sizeof(struct jrt_task) == 192, "three lines");

/* Where it was started; NULL: unknown. */
static inline const janus_site *jrt_task_site(const struct jrt_task *task)
{
    return task->site != NULL && task->site->file != NULL ? task->site : NULL;
}

/* Whether it has run before and lies on a strand of its own. */
static inline bool jrt_task_began(const struct jrt_task *task)
{
    return task->dirty && task->strand != NULL;
}

static inline janus_task_id jrt_task_id(const struct jrt_task *task)
{
    /* relaxed: it changes only when the record is freed. */
    uint32_t generation = jrt_load_relaxed(&task->record.generation);
    return (uint64_t)(task->record.index + 1) << 32 | generation;
}

/* The given name, or "task"; clean, [name-clean]. It lives as long as the task. */
static inline const char *jrt_task_name(const struct jrt_task *task)
{
    return task->name != NULL ? task->name : "task";
}

#endif

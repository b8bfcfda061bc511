/* SPDX-License-Identifier: MIT */
/* Calls that can be divided: janus_both, janus_for. The essay is in fork.c. */
#ifndef JRT_NURSERY_FORK_H
#define JRT_NURSERY_FORK_H

#include "task/nursery.h"

/* The largest number of forks between two looks for thieves. */
enum { JRT_FORK_LOOKS = 64 };

struct jrt_fork_failure {
    int64_t       error;
    janus_task_id task;
};

enum jrt_division {
    JRT_DIVIDED_LAST, /* a piece was started, and nothing is left to divide */
    JRT_DIVIDED_MORE, /* a piece was started, and there is more */
    JRT_INDIVISIBLE,  /* nothing is left to divide */
    JRT_DIVISION_REFUSED,
};

/*
 * One divisible call. It lies in the frame of the call, on its strand's list of forks.
 * `link.newer` is valid unless the fork is the newest.
 */
struct jrt_fork {
    struct jrt_link     link;
    struct jrt_task    *task;    /* the calling task */
    struct jrt_nursery *around;  /* its innermost nursery when the call began, or NULL */
    struct jrt_nursery *nursery; /* of the pieces, on the heap; NULL: no piece was split off */

    /* Divides the call: starts a piece with jrt_fork_start. NULL: a janus_both. */
    enum jrt_division (*split)(struct jrt_fork *fork, struct jrt_worker *worker);
    janus_entry      *second; /* second branch of a janus_both */
    void             *argument;
    void             *piece; /* once split off: struct jrt_both_piece */
};

/* Puts a fork of the current task on its strand's list. Its fields are filled in. */
static inline void jrt_fork_push(struct jrt_strand *strand, struct jrt_fork *fork)
{
    struct jrt_link *head = strand->forks;
    fork->link.outer = head;
    head->newer = &fork->link;
    strand->forks = &fork->link;
}

/* Takes off the newest fork, which nobody has tried to divide. */
static inline void jrt_fork_pop(struct jrt_strand *strand, struct jrt_fork *fork)
{
    jrt_debug_invariant("fork-list",
                        strand->forks == &fork->link && strand->unsplit != &fork->link);
    strand->forks = fork->link.outer;
}

/* Takes off the newest fork, divided or not. */
static inline void jrt_fork_pop_any(struct jrt_strand *strand, struct jrt_fork *fork)
{
    jrt_debug_invariant("fork-list", strand->forks == &fork->link);
    strand->forks = fork->link.outer;
    if (strand->unsplit == &fork->link) strand->unsplit = fork->link.outer;
}

/* Whether the current task's calls can be divided. If not, they run as plain calls. */
static inline bool jrt_fork_possible(const struct jrt_worker *worker)
{
    return worker->forks != JRT_FORKS_NEVER && worker->thread->current == NULL &&
           worker->current != NULL;
}

/* Divides the oldest call on the strand if thieves would find nothing. Runs every few forks. */
void jrt_fork_look(struct jrt_worker *worker);

/* Whether it is time for jrt_fork_look. */
static inline bool jrt_fork_is_time(struct jrt_worker *worker)
{
    return jrt_unlikely(--worker->until_split == 0);
}

/* Divides the oldest call on the strand now, unless the worker has work for thieves. */
void jrt_fork_offer(struct jrt_worker *worker);

/*
 * Returns the nursery of a fork's pieces. If necessary, opens it at the head of a block of `bytes`
 * on the heap. NULL: no piece may be started.
 */
struct jrt_nursery *jrt_fork_open(struct jrt_fork *fork, struct jrt_worker *worker, size_t bytes);

/* Starts entry(argument) in the fork's nursery, as a child like the caller. False: refused, and
 * nothing happened. */
bool jrt_fork_start(struct jrt_fork *fork, struct jrt_worker *worker, janus_entry *entry,
                    void *argument, const char *name);

/*
 * Waits for the pieces of a fork that is off the list. If a piece panicked, the caller panics with
 * it. *failure is the piece that failed first: its task and error, or zeros. The pieces' memory
 * exists until jrt_fork_free.
 */
void jrt_fork_join(struct jrt_fork *fork, struct jrt_fork_failure *failure);
void jrt_fork_free(struct jrt_fork *fork);

/* The error of a piece that did not return. `piece` is its task; 0: it never began, because it was
 * cancelled or the system refused a stack. */
static inline int64_t jrt_fork_error(const struct jrt_fork_failure *failure, janus_task_id piece)
{
    bool its = piece != 0 ? failure->task == piece : failure->error == JANUS_NO_MEMORY;
    return its ? failure->error : JANUS_CANCELLED;
}

/* Cancels the pieces of a fork, because a call that the caller made has failed. */
void jrt_fork_cancel(struct jrt_fork *fork);

/* Whether a piece has failed, or the pieces were cancelled otherwise. */
static inline bool jrt_fork_is_over(const struct jrt_fork *fork)
{
    return fork->nursery != NULL &&
           /* acquire: what led to it. */
           jrt_load_acquire(&fork->nursery->state) == JANUS_NURSERY_STATE_CANCELLING;
}

/* Drops the forks of a task that is being broken off from this strand, before their nurseries are
 * awaited. */
void jrt_forks_drop(struct jrt_strand *strand, const struct jrt_task *task);

#define JRT_NOT_RETURNED INT64_MIN

/* The second branch of a janus_both, once it is split off. Its nursery comes first. */
struct jrt_both_piece {
    janus_nursery nursery;
    janus_entry  *entry;
    void         *argument;
    void         *local;
    int64_t       result; /* JRT_NOT_RETURNED: not called, or ended otherwise */
    janus_task_id task;   /* that ran the branch; 0: none */
};

#endif

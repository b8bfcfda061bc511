/* SPDX-License-Identifier: MIT */
/* A world and its parts, for the files of this room. The essay is in world.c. */
#ifndef JRT_SIM_INSIDE_H
#define JRT_SIM_INSIDE_H

#include "base/rng.h"
#include "fiber/exception.h"
#include "fiber/thread.h"
#include "plat/seam.h"
#include "sim/world.h"

enum { JRT_PART_BYTES = 512 * 1024 * JRT_STACK_FACTOR }; /* of a part's stack */

/* The clock of every world starts here. */
static const uint64_t jrt_world_began_ns = UINT64_C(1000000000000);

enum part_state {
    PART_READY,
    PART_SLEEPS,
    PART_ENDED,
};

struct jrt_sim;

struct part {
    struct jrt_context    context;
    struct jrt_thread     record; /* these four: while another part runs, [sim-own] */
    int64_t               fuel;
    int                   error;
    struct jrt_exceptions exceptions;
    struct jrt_os_thread *thread; /* NULL: part 0 */
    char                 *stack;  /* owned; the lowest byte */
    struct part          *joins;  /* asleep: until that part has ended, or NULL */
    _Atomic(uint32_t)    *word;   /* asleep: on this word, or NULL, */
    uint32_t              expected;
    uint64_t              deadline_ns; /* and until this time */
    bool                  in_time;     /* a waker woke it, not its deadline */
    enum part_state       state;
    uint32_t              number;
};

struct world {
    struct jrt_world      interface; /* first */
    struct part         **parts;     /* owned; by number, without those that were joined */
    uint32_t              count, room, numbers;
    struct part          *current;
    struct part          *left;  /* the part that was left last */
    uint32_t             *ready; /* owned; numbers of the parts that can run, for the strategy */
    uint32_t              entered;
    uint64_t              now_ns, steps, max_steps;
    struct jrt_strategy  *strategy;
    struct jrt_strategy   walk; /* if no other strategy decides: */
    struct jrt_rng        random;
    struct part         **found;   /* owned; scratch, for the parts found */
    struct jrt_sim       *network; /* owned, in net.c; NULL: unused */
    struct jrt_world_run *run;     /* NULL: it is never given up */
    struct jrt_landing    landing;
    struct jrt_thread     record; /* the thread's record before it entered, [sim-own] */
    struct jrt_exceptions exceptions;
    int64_t               fuel;
};

/* Returns a stack for a part. NULL: refused. */
char *jrt_part_stack(void);

/* Frees a part that does not run. */
void jrt_part_free(struct part *part);

/* Saves what the thread needs back if the execution is given up. */
void jrt_part_save(struct world *world);

/* Called on the stack of the entered part. The part that was left is off the CPU. */
void jrt_part_arrive(struct world *world);

/* Chooses one of `count`, as struct jrt_strategy does. */
uint32_t jrt_world_decide(struct world *world, enum jrt_choice kind, uint32_t count,
                          const uint32_t *who, bool must);

/* Chooses the next part and switches to it. `must`: another part than this one, if any can run. */
void jrt_world_schedule(struct world *world, bool must, bool for_good);

/* Stores the steps, the time and the hash in its run. */
void jrt_world_account(const struct world *world);

/* Returns to where the execution began, if the world can be given up. Then it does not return
 * here. */
void jrt_world_give_up(struct world *world, enum jrt_world_end why);

#endif

/* SPDX-License-Identifier: MIT */
/* A world and its parts, for those who make it up; the essay is in world.c. */
#ifndef JRT_SIM_INSIDE_H
#define JRT_SIM_INSIDE_H

#include "base/rng.h"
#include "fiber/exception.h"
#include "fiber/thread.h"
#include "plat/seam.h"
#include "sim/world.h"

enum { JRT_PART_BYTES = 512 * 1024 * JRT_STACK_FACTOR }; /* of stack; blocking calls run there */

/* When every world begins. */
static const uint64_t jrt_world_began_ns = UINT64_C(1000000000000);

enum part_state {
    PART_READY,
    PART_SLEEPS,
    PART_ENDED,
};

struct part {
    struct jrt_context    context;
    struct jrt_thread     record; /* these four: while another runs, [sim-own] */
    int64_t               fuel;
    int                   error;
    struct jrt_exceptions exceptions;
    struct jrt_os_thread *thread; /* NULL: part 0 */
    char                 *stack;  /* owned; the lowest byte */
    struct part          *joins;  /* asleep: until it has ended, or NULL */
    _Atomic(uint32_t)    *word;   /* asleep: on which, or NULL, */
    uint32_t              expected;
    uint64_t              deadline_ns; /* and until when */
    bool                  in_time;     /* woken, and not by its deadline */
    enum part_state       state;
    uint32_t              number;
};

struct world {
    struct jrt_world      interface; /* first */
    struct part         **parts;     /* owned; by number, ended and joined ones are gone */
    uint32_t              count, room, numbers;
    struct part          *current;
    struct part          *left;  /* who was left last */
    uint32_t             *ready; /* owned; numbers of those that can go on, for who decides */
    uint32_t              entered;
    uint64_t              now_ns, steps, steps_max;
    struct jrt_strategy  *strategy;
    struct jrt_strategy   walk; /* where nobody else decides: */
    struct jrt_rng        random;
    struct part         **found; /* owned; scratch, for those looked for */
    struct jrt_world_run *run;   /* NULL: it is never given up */
    struct jrt_landing    landing;
    struct jrt_thread     record; /* of the thread that entered, as it was, [sim-own] */
    struct jrt_exceptions exceptions;
    int64_t               fuel;
};

/* A stack for a part. NULL: refused. */
char *jrt_part_stack(void);

/* Forgets one that does not run. */
void jrt_part_free(struct part *part);

/* Keeps what the thread is to have again, should all be given up. */
void jrt_part_save(struct world *world);

/* As the part that was entered: the one that was left is off the stack. */
void jrt_part_arrive(struct world *world);

/* One of `count`, as struct jrt_strategy. */
uint32_t jrt_world_decide(struct world *world, enum jrt_choice kind, uint32_t count,
                          const uint32_t *who, bool must);

/* Chooses who goes on, and goes there; `must`: somebody else, if anybody can. */
void jrt_world_schedule(struct world *world, bool must, bool for_good);

/* Tells its run how much there was. */
void jrt_world_account(const struct world *world);

/* Back to where the execution began, if it is one that can be given up: does not return then. */
void jrt_world_give_up(struct world *world, enum jrt_world_end why);

#endif

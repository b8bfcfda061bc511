/* SPDX-License-Identifier: MIT */
/* Stacks for fibers: a depot shared by a pool, small caches of hot ones in front of it. */
#ifndef JRT_FIBER_STACK_H
#define JRT_FIBER_STACK_H

#include "fiber/slab.h"

#include <pthread.h>

/* 8 KiB, 16 KiB, ... 4 GiB: the largest request, grown for ASan, fits. */
enum { JRT_STACK_CLASSES = 20 };

enum { JRT_SLABS_LEAVING = 4 }; /* about as many as workers that end a crowd at once */

/* Hot stacks of one worker, newest first. Guarded by whatever guards its owner. */
struct jrt_stack_cache {
    size_t bytes; /* of all of them, as if each was used to its end */
    struct {
        struct jrt_stack *newest;
        uint32_t          count;
    } hot[JRT_STACK_CLASSES];
};

struct jrt_depot {
    pthread_mutex_t        lock; /* guards all below */
    struct jrt_ladder      ladder;
    size_t                 guard_bytes; /* asked for; 0: by the stack's size */
    size_t                 idle_max;    /* idle bytes past which memory is given back */
    size_t                 idle;        /* stacks here, not in caches */
    size_t                 idle_bytes;  /* at most so much of these is resident */
    size_t                 given;       /* stacks that are not here */
    size_t                 carved[JANUS_GUARD_CANARY + 1]; /* by rung */
    size_t                 reserved_bytes;
    uint64_t               slabs_released;
    struct jrt_slab       *leaving[JRT_SLABS_LEAVING]; /* partly idle, whose pages may go next */
    unsigned               leaving_next;
    janus_guard            wanted; /* of those that are made by themselves */
    struct iovec           scratch[JRT_RANGES_MAX];
    struct jrt_stack_class classes[JRT_STACK_CLASSES];
};

/* How a depot is made. Zero asks for the default. */
struct jrt_depot_options {
    janus_guard guard;
    size_t      guard_bytes;
    size_t      mappings_max;
    size_t      idle_bytes; /* not zero */
    bool        shared;     /* tasks run on top of others: stacks are larger, [stack-eighth] */
};

/* Sets up an empty depot. UNAVAILABLE when the rung is not to be had. */
janus_status jrt_depot_init(struct jrt_depot *depot, const struct jrt_depot_options *options);

/* Unmaps everything. Every stack is back. */
void jrt_depot_fini(struct jrt_depot *depot);

/* The same for one that is made by itself; in a world the next may get it, stacks and all. */
janus_status jrt_depot_open(janus_guard guard, size_t idle_bytes, struct jrt_depot **out);
void         jrt_depot_close(struct jrt_depot *depot);

/* Ends one that was kept for the next. */
void jrt_depot_drop(struct jrt_depot *depot);

/* The class for a stack of at least this size; JRT_STACK_CLASSES when there is none. */
unsigned jrt_stack_class_of(size_t stack_bytes);

/* A stack for a fiber, hot if there is one. FULL or NO_MEMORY: *out is untouched. */
janus_status jrt_stack_take(struct jrt_stack_cache *cache, struct jrt_depot *depot, unsigned class,
                            struct jrt_stack **out);

/* Takes a stack back. */
void jrt_stack_give(struct jrt_stack_cache *cache, struct jrt_depot *depot, unsigned class,
                    struct jrt_stack *stack);

/* Empties a cache into the depot. */
void jrt_stack_cache_flush(struct jrt_stack_cache *cache, struct jrt_depot *depot);

/* Gives memory back until at most `keep_bytes` of idle stacks may be resident. Returns how many
 * bytes were given back, at most. */
size_t jrt_depot_trim(struct jrt_depot *depot, size_t keep_bytes);

/* The books of a depot, as janus_stack_stats tells them; what caches hold counts as in use. */
void jrt_depot_stats(struct jrt_depot *depot, janus_stack_stats *out);

/* The deepest use of a stack, in bytes from its top, as far as its bytes tell. */
size_t jrt_stack_high_water(const struct jrt_stack *stack);

/* Makes a stack read as zero, whatever was written to it. */
void jrt_stack_scrub(struct jrt_stack *stack);

/* The CANARY rung: whether the words below the stack are untouched. True on other rungs. */
bool jrt_stack_intact(const struct jrt_stack *stack);

/* The same for all bytes that a guard would cover: also a frame that stepped over those words is
 * found. A system call, and a look at each page that was ever touched. */
bool jrt_stack_intact_all(const struct jrt_stack *stack);

/* After the canary was hit: makes the zone below the stack good as new. */
void jrt_stack_mend(struct jrt_stack *stack);

#endif

/* SPDX-License-Identifier: MIT */
/* Stacks for fibers: a depot shared by a pool, and small caches of hot stacks in front of it. */
#ifndef JRT_STACK_STACK_H
#define JRT_STACK_STACK_H

#include "base/atomic.h"
#include "stack/slab.h"

#include <pthread.h>

/* 8 KiB, 16 KiB, ... 4 GiB: enough for the largest request, increased for ASan. */
enum { JRT_STACK_CLASSES = 20 };

/* Hot stacks of one worker, newest first. The owner's lock guards it. */
struct jrt_stack_cache {
    size_t bytes; /* of all stacks, as if each was used to its end */
    struct {
        struct jrt_stack *newest;
        uint32_t          count;
    } hot[JRT_STACK_CLASSES];
};

struct jrt_depot {
    pthread_mutex_t        lock; /* guards all below */
    struct jrt_ladder      ladder;
    size_t                 guard_bytes; /* as requested; 0: by the stack's size */
    size_t                 idle_max;    /* above this many idle bytes, memory is returned */
    size_t                 idle;        /* stacks here, not in caches */
    size_t                 idle_bytes;  /* an upper bound of what is resident of these */
    size_t                 given;       /* stacks that are not here */
    size_t                 carved[JANUS_GUARD_CANARY + 1]; /* by rung */
    size_t                 reserved_bytes;
    uint64_t               slabs_released;
    struct jrt_list_node   leaving; /* slabs to unmap, or to drop idle pages of; oldest last */
    unsigned               leaving_count;
    size_t                 grown_bytes; /* taken past the limit by stacks without memory */
    bool                   later;       /* workers return memory, [depot-later] */
    _Atomic(bool)          over;        /* there is some to return; written under the lock */
    _Atomic(uint64_t)      due_ns;      /* when a busy worker returns some; 0: not known yet */
    janus_guard            wanted;      /* for depots made by jrt_depot_open */
    struct iovec           scratch[JRT_RANGES_MAX];
    struct jrt_stack_class classes[JRT_STACK_CLASSES];
};

/* Options of a depot. Zero asks for the default. */
struct jrt_depot_options {
    janus_guard guard;
    size_t      guard_bytes;
    size_t      mappings_max;
    size_t      idle_bytes; /* not zero */
    bool        shared;     /* tasks run in place: stacks are larger, [stack-eighth] */
    bool        later;      /* workers return memory, [depot-later] */
};

/* Sets up an empty depot. UNAVAILABLE: this machine lacks the rung. */
janus_status jrt_depot_init(struct jrt_depot *depot, const struct jrt_depot_options *options);

/* Unmaps everything. Every stack must be back. */
void jrt_depot_fini(struct jrt_depot *depot);

/* Open allocates a depot and close ends it. In a world the next depot may reuse it with its
 * stacks. */
janus_status jrt_depot_open(janus_guard guard, size_t idle_bytes, struct jrt_depot **out);
void         jrt_depot_close(struct jrt_depot *depot);

/* Ends a depot that was kept for reuse. */
void jrt_depot_drop(struct jrt_depot *depot);

/* The class for a stack of at least this size. JRT_STACK_CLASSES: no class is large enough. */
unsigned jrt_stack_class_of(size_t stack_bytes);

/* Takes a stack for a fiber, a hot one if possible. FULL, NO_MEMORY: *out is unchanged. */
janus_status jrt_stack_take(struct jrt_stack_cache *cache, struct jrt_depot *depot, unsigned class,
                            struct jrt_stack **out);

/* Takes a stack back. */
void jrt_stack_give(struct jrt_stack_cache *cache, struct jrt_depot *depot, unsigned class,
                    struct jrt_stack *stack);

/* Empties a cache into the depot. */
void jrt_stack_cache_flush(struct jrt_stack_cache *cache, struct jrt_depot *depot);

/* Returns memory until at most `keep_bytes` of idle stacks may be resident. Returns an upper bound
 * of the bytes released. */
size_t jrt_depot_trim(struct jrt_depot *depot, size_t keep_bytes);

/* Returns the memory of one slab past the limit, [depot-later]. False: nothing is left to
 * return. */
bool jrt_depot_return_some(struct jrt_depot *depot);

/* Whether jrt_depot_return_some has something to return. A hint. */
static inline bool jrt_depot_is_over(const struct jrt_depot *depot)
{
    return jrt_load_relaxed(&depot->over); /* relaxed: a hint. */
}

/* The part of jrt_depot_look that is rarely needed. */
void jrt_depot_look_late(struct jrt_depot *depot, uint64_t now_ns);

/* A busy worker calls this now and then and passes the time. The call returns memory that waited
 * longer than late_ns. */
static inline void jrt_depot_look(struct jrt_depot *depot, uint64_t now_ns)
{
    if (__builtin_expect(jrt_depot_is_over(depot), 0)) jrt_depot_look_late(depot, now_ns);
}

/* The books of a depot for janus_scheduler_stacks_info. Stacks in caches count as in use. */
void jrt_depot_stats(struct jrt_depot *depot, janus_scheduler_stacks_info *out);

/* The deepest use of a stack, in bytes from its top, as far as its bytes show it. */
size_t jrt_stack_high_water(const struct jrt_stack *stack);

/* Makes a whole stack read as zero. */
void jrt_stack_scrub(struct jrt_stack *stack);

/* On the CANARY rung: whether the words below the stack are untouched. True on other rungs. */
bool jrt_stack_intact(const struct jrt_stack *stack);

/* Checks all bytes that a guard would cover, so it also finds a frame that stepped over the canary.
 * It costs a system call, and a look at each page that was ever touched. */
bool jrt_stack_intact_all(const struct jrt_stack *stack);

/* After the canary was hit: zeroes the zone below the stack again. */
void jrt_stack_mend(struct jrt_stack *stack);

#endif

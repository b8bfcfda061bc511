/* SPDX-License-Identifier: MIT */
/* The fiber, its pool, and the owner of each field in each state. */
#ifndef JRT_FIBER_FIBER_H
#define JRT_FIBER_FIBER_H

#include "fiber/context.h"
#include "fiber/record.h"
#include "fiber/thread.h"
#include "stack/stack.h"

#include <janusrt/fiber.h>
#include <stdatomic.h>

/*
 * Two cache lines. The state decides which thread owns the other fields:
 *   NEW        the thread that made it; no stack
 *   RUNNING    the thread it runs on
 *   SUSPENDED  the thread that will resume it; the stack is kept
 *   COMPLETED, PANICKED  the thread that made it; no stack
 */
struct janus_fiber {
    struct jrt_record   record;    /* first, for the record allocator */
    struct jrt_context  context;   /* its suspended stack */
    struct jrt_context *resumer;   /* RUNNING: where it leaves to; borrowed, waits for us */
    struct jrt_stack   *stack;     /* owned from the first resume to the end, else NULL */
    void               *value;     /* SUSPENDED: what suspend was given */
    void              **out_value; /* SUSPENDED: where suspend wants resume's value, or NULL */
    int64_t             result;    /* what the entry returned */
    janus_entry        *entry;
    void               *argument; /* borrowed */
    janus_fiber_pool   *pool;     /* borrowed; outlives us */
    const char         *name;     /* borrowed */
    uint64_t            id;
    uint8_t             stack_class;
    bool                canary; /* the stack has no better guard: check at each switch */
    _Atomic(uint8_t)    state;  /* janus_fiber_state, [fiber-moves] */
};

_Static_assert(offsetof(struct janus_fiber, record) == 0, "a record is a fiber is a record");
#if !JRT_ASAN && !JRT_TSAN
_Static_assert(sizeof(struct janus_fiber) <= 128, "two cache lines");
#endif

/* The part of a pool that some threads use, so that threads rarely meet at one lock. */
struct jrt_shard {
    pthread_mutex_t        lock; /* guards all below */
    struct jrt_record     *records;
    uint32_t               record_count;
    uint64_t               next_id, ids_end; /* this shard gives out [next_id, ids_end) */
    uint64_t               created, destroyed;
    uint64_t               attached, detached; /* stacks */
    uint64_t               overflows;
    size_t                 high_water_bytes;
    struct jrt_stack_cache stacks;
} __attribute__((aligned(64)));

enum { JRT_SHARDS = 16 }; /* a power of two; threads are spread over them */

struct janus_fiber_pool {
    /* Never change after creation. */
    janus_signal_mode signal_mode;
    bool              scrub, measure;
    unsigned          stack_class;
    size_t            max_fibers; /* 0: no limit */

    _Atomic(uint64_t) ids_given; /* shards take blocks of ids from here */
    _Atomic(size_t)   live;      /* fibers; counted only if there is a max_fibers */

    struct jrt_depot   depot;
    struct jrt_records records;
    struct jrt_shard   shards[JRT_SHARDS];
};

/* The class for a requested stack size, increased for sanitizers. JRT_STACK_CLASSES: out of
 * range. */
unsigned jrt_pool_stack_class(size_t stack_bytes);

/* Returns the calling thread's shard, locked. Until the unlock an overflow ends the
 * process: [fault-locked]. */
struct jrt_shard *jrt_shard_lock(janus_fiber_pool *pool, struct jrt_thread *thread);

void jrt_shard_unlock(struct jrt_shard *shard, struct jrt_thread *thread);

/* Counts the users of the SIGSEGV handler. The first one installs it, and the last one restores the
 * old handler. */
bool jrt_fault_open(void);

/* Makes a broken contract end the task or fiber that broke it. In fiber.c. */
void jrt_contract_watch(void);
void jrt_fault_close(void);

#endif

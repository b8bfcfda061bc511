/* SPDX-License-Identifier: MIT */
/*
 * A world stands in for the system on a thread that simulates one: its clock, its threads, sleeping
 * and waking, and what may fail. The functions of seam.h and memory.h ask it first, so everything
 * above them is the same code in both. sim/world.c has the only one there is.
 */
#ifndef JRT_PLAT_WORLD_H
#define JRT_PLAT_WORLD_H

#include "base/assert.h"
#include "base/atomic.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct janus_trace;
struct jrt_os_thread;

/* What can go one way or another. Where nobody simulates, each has a fast answer of its own. Whom a
 * worker steals from is none of these: its generator, seeded with the scheduler's seed, says so in
 * both. */
enum jrt_choice {
    JRT_CHOOSE_THREAD, /* who goes on; 0: who runs now, if it can */
    JRT_CHOOSE_WAKE,   /* which of those who sleep on a word */
    JRT_CHOOSE_CASE,   /* which case of a select is tried next */
    JRT_CHOOSE_FAULT,  /* 0: no; 1: yes */
    JRT_CHOOSE_SPLIT,  /* whether a parallel call is divided. 0: yes; 1: no */
    JRT_CHOICES,
};

/* What a world can refuse or do though nobody asked for it; bits. */
enum jrt_fault {
    JRT_FAULT_MEMORY = 1,   /* an allocation is refused */
    JRT_FAULT_MAPPING = 2,  /* address space is refused */
    JRT_FAULT_THREAD = 4,   /* a thread is not started */
    JRT_FAULT_BLOCKING = 8, /* a blocking call is refused, or takes long */
    JRT_FAULT_WAKE = 16,    /* a sleep ends for no reason */
    JRT_FAULT_DEATH = 32,   /* a worker's thread ends */
};

/* What one world leaves for the next, where many follow each other: address space is dear. */
enum jrt_spare_kind {
    JRT_SPARE_NONE,
    JRT_SPARE_ALIGNED, /* zeroed, aligned to its size */
    JRT_SPARE_FENCED,  /* zeroed, its first and its last page cannot be touched */
    JRT_SPARE_STACK,   /* of a thread of the world */
};

enum { JRT_SPARES = 64 };

struct jrt_spare {
    struct {
        void               *base;
        size_t              bytes;
        enum jrt_spare_kind kind;
    } maps[JRT_SPARES];
    void *depot; /* of stacks; fiber/stack.c */
};

struct jrt_world {
    uint64_t            (*now_ns)(struct jrt_world *world);
    bool                (*wait)(struct jrt_world *world, _Atomic(uint32_t) *word, uint32_t expected,
                 uint64_t deadline_ns);
    void                (*wake)(struct jrt_world *world, _Atomic(uint32_t) *word, int count);
    void                (*point)(struct jrt_world *world); /* another may go on here */
    void                (*pass)(struct jrt_world *world);  /* another shall, if there is one */
    uint32_t            (*choose)(struct jrt_world *world, enum jrt_choice kind, uint32_t count);
    void                (*spend)(struct jrt_world *world, uint64_t ns); /* so much time passes */
    bool                (*fails)(struct jrt_world *world, enum jrt_fault fault);
    bool                (*start)(struct jrt_world *world, struct jrt_os_thread *thread);
    bool                (*has_ended)(struct jrt_world *world, const struct jrt_os_thread *thread);
    void                (*join)(struct jrt_world *world, struct jrt_os_thread *thread);
    bool                closed; /* no other thread of the process takes part: nobody need be told */
    struct jrt_spare   *spare;  /* borrowed; NULL: nothing is left for others */
    uint32_t            numbers; /* given to what has only an address */
    uint64_t            hash;    /* of what has happened there; sim/world.h */
    struct janus_trace *trace;   /* for the first scheduler that is given none; or NULL */
    uint32_t            fault;   /* enum jrt_fault: which was asked for last */

    /* For who explores. */
    void    (*stale)(const char *call);       /* a handle was used after its end; NULL: so be it */
    void    (*panicked)(const char *message); /* a task has; NULL: it ends, as always */
    void    (*deadlock)(void);                /* all tasks wait; NULL: they are told */
    int64_t channels;                         /* opened and not destroyed */
    bool    audits;                           /* books are compared where a scheduler is closed */
    bool    mute;                             /* nothing is written to stderr */
    void    (*elsewhere)(void); /* another thread uses a scheduler of it; NULL: that is told */
};

/*
 * Who stands in for the system on the calling thread; NULL: nobody. A word of the thread, defined
 * in ctx_<cpu>.S and read by assembly that no compiler moves across a switch: an address of it that
 * was computed on a thread that has ended meanwhile is nobody's.
 */
static inline __attribute__((always_inline)) struct jrt_world *jrt_world_now(void)
{
    struct jrt_world *world;
#if defined(__x86_64__)
    __asm__ volatile("movq jrt_world_here@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(world));
#else
    uint64_t thread;
    __asm__ volatile("adrp %0, :gottprel:jrt_world_here\n\t"
                     "ldr %0, [%0, #:gottprel_lo12:jrt_world_here]\n\t"
                     "mrs %1, tpidr_el0\n\tldr %0, [%1, %0]"
                     : "=&r"(world), "=&r"(thread));
#endif
    return world;
}

/* From now on; for the world. */
void jrt_world_set(struct jrt_world *world);

/* What was kept, or NULL; and keeps it, if there is room. */
void *jrt_spare_take(enum jrt_spare_kind kind, size_t bytes);
bool  jrt_spare_give(enum jrt_spare_kind kind, void *base, size_t bytes);

/* A place where another thread of the simulated system may go on instead. No lock is held. */
static inline void jrt_point(void)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) world->point(world);
}

/* A handle was used after its end: `status` says so. */
static inline int jrt_stale(int status, const char *call)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL && world->stale != NULL)) world->stale(call);
    return status;
}

/* A task is about to end by a panic. */
static inline void jrt_panicked(const char *message)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL && world->panicked != NULL)) world->panicked(message);
}

/* A channel was made, or ended. */
static inline void jrt_count_channels(int more)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) world->channels += more;
}

/* Somebody has computed for so long. The clock of a world would not notice. */
static inline void jrt_spend(uint64_t ns)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) world->spend(world, ns);
}

/* Whether what is about to be tried is to fail. */
static inline bool jrt_fails(enum jrt_fault fault)
{
    struct jrt_world *world = jrt_world_now();
    return jrt_unlikely(world != NULL) && world->fails(world, fault);
}

/* Locks of the library. In a world whoever finds one taken lets its holder go on. */
static inline void jrt_lock(pthread_mutex_t *lock)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_likely(world == NULL)) {
        pthread_mutex_lock(lock);
    } else {
        while (pthread_mutex_trylock(lock) != 0) world->pass(world);
    }
}

static inline void jrt_unlock(pthread_mutex_t *lock) { pthread_mutex_unlock(lock); }

/* Memory, as malloc and its kin give it; free takes it back. */
static inline void *jrt_malloc(size_t bytes)
{
    return jrt_fails(JRT_FAULT_MEMORY) ? NULL : malloc(bytes);
}

static inline void *jrt_calloc(size_t count, size_t bytes)
{
    return jrt_fails(JRT_FAULT_MEMORY) ? NULL : calloc(count, bytes);
}

static inline void *jrt_realloc(void *old, size_t bytes)
{
    return jrt_fails(JRT_FAULT_MEMORY) ? NULL : realloc(old, bytes);
}

static inline void *jrt_aligned_alloc(size_t alignment, size_t bytes)
{
    return jrt_fails(JRT_FAULT_MEMORY) ? NULL : aligned_alloc(alignment, bytes);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A world replaces the system on a thread that simulates one: clock, threads, sleeping and waking,
 * and faults. The functions of seam.h and memory.h ask the world first, so everything above is the
 * same code in both. The only world is in sim/world.c.
 */
#ifndef JRT_PLAT_WORLD_H
#define JRT_PLAT_WORLD_H

#include "base/assert.h"
#include "base/atomic.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct janus_trace;
struct jrt_net;
struct jrt_os_thread;

/* The choices of a world. Without a world each choice has a fast answer of its own. The victim
 * of a thief is not among them: in both cases a generator decides it, seeded with the
 * scheduler's seed. */
enum jrt_choice {
    JRT_CHOOSE_THREAD, /* which part runs next; 0: the current one, if it can */
    JRT_CHOOSE_WAKE,   /* which sleeper of a word wakes */
    JRT_CHOOSE_CASE,   /* which case of a select is tried next */
    JRT_CHOOSE_FAULT,  /* 0: no; 1: yes */
    JRT_CHOOSE_SPLIT,  /* whether a parallel call is divided. 0: yes; 1: no */
    JRT_CHOOSE_CUT,    /* how much of a transfer is done. 0: all */
    JRT_CHOOSE_DELAY,  /* how long bytes travel. 0: the shortest time */
    JRT_CHOOSE_SLICE,  /* how long the next slice is, [preempt-check]. 0: as on a real system */
    JRT_CHOICES,
};

/* The answers to CHOOSE_SLICE: the most operations before the next check that may be preempted. */
enum { JRT_SLICE_ANSWERS = 5 };

static inline int64_t jrt_slice_answer(uint32_t value)
{
    static const int64_t most[JRT_SLICE_ANSWERS] = {INT64_MAX, 0, 1, 4, 32};
    return most[value < JRT_SLICE_ANSWERS ? value : 0];
}

/* What a world can refuse, or do without being asked; bits. */
enum jrt_fault {
    JRT_FAULT_MEMORY = 1,       /* an allocation is refused */
    JRT_FAULT_MAPPING = 2,      /* address space is refused */
    JRT_FAULT_THREAD = 4,       /* a thread is not started */
    JRT_FAULT_BLOCKING = 8,     /* a blocking call is refused, or takes long */
    JRT_FAULT_WAKE = 16,        /* a sleep ends for no reason */
    JRT_FAULT_DEATH = 32,       /* a worker's thread ends */
    JRT_FAULT_RESET = 64,       /* a connection is reset */
    JRT_FAULT_STALL = 128,      /* nothing arrives on a connection for a while */
    JRT_FAULT_REFUSE = 256,     /* a connect is refused */
    JRT_FAULT_DESCRIPTOR = 512, /* the system has no descriptor left */
    JRT_FAULT_EDGE = 1024,      /* an event comes for no reason */
    JRT_FAULT_LOST = 2048,      /* a datagram is lost, or comes twice */
};

/* What one world keeps for the next, because reserving address space is slow. */
enum jrt_spare_kind {
    JRT_SPARE_NONE,
    JRT_SPARE_ALIGNED, /* zeroed, aligned to its size */
    JRT_SPARE_FENCED,  /* zeroed; its first and last page are inaccessible */
    JRT_SPARE_STACK,   /* of a part */
};

enum { JRT_SPARES = 64 };

enum { JRT_WORLD_SIGNALS = 65 }; /* numbers of signals end at 64 */

struct jrt_spare {
    struct {
        void               *base;
        size_t              bytes;
        enum jrt_spare_kind kind;
    } maps[JRT_SPARES];
    void *depot; /* of stacks; stack/stack.c */
};

struct jrt_world {
    uint64_t            (*now_ns)(struct jrt_world *world);
    bool                (*wait)(struct jrt_world *world, _Atomic(uint32_t) *word, uint32_t expected,
                 uint64_t deadline_ns);
    void                (*wake)(struct jrt_world *world, _Atomic(uint32_t) *word, int count);
    void                (*point)(struct jrt_world *world); /* another part may run now */
    void                (*pass)(struct jrt_world *world);  /* another part runs now, if one can */
    uint32_t            (*choose)(struct jrt_world *world, enum jrt_choice kind, uint32_t count);
    void                (*spend)(struct jrt_world *world, uint64_t ns); /* advances the clock by
                                                                         * ns */
    bool                (*fails)(struct jrt_world *world, enum jrt_fault fault);
    bool                (*start)(struct jrt_world *world, struct jrt_os_thread *thread);
    bool                (*has_ended)(struct jrt_world *world, const struct jrt_os_thread *thread);
    void                (*join)(struct jrt_world *world, struct jrt_os_thread *thread);
    bool                closed;  /* no other thread of the process takes part: none needs a
                                 * wake-up */
    struct jrt_spare   *spare;   /* borrowed; NULL: nothing is kept for later worlds */
    uint32_t            numbers; /* numbers given to objects that have only an address */
    uint64_t            hash;    /* of everything that has happened; sim/world.h */
    struct janus_trace *trace;   /* for the first scheduler without a trace; or NULL */
    const struct jrt_net *net;   /* its network; plat/net.h */
    uint32_t              signals[JRT_WORLD_SIGNALS]; /* by number: how many were raised in it */
    uint32_t              fault; /* enum jrt_fault: the kind of the last choice */

    /* For an explorer. */
    void    (*stale)(const char *call);       /* a handle was used after its end; NULL: ignored */
    void    (*panicked)(const char *message); /* a task panicked; NULL: only the task ends */
    void    (*deadlock)(void);                /* all tasks wait; NULL: the library reports it */
    int64_t channels;                         /* opened and not destroyed */
    struct {
        uint64_t place;
        char     name[32];
    } ended[8]; /* the last handles of I/O that had a name, io/label.c */
    uint32_t ended_count;
    bool     audits;             /* a closing scheduler compares its books */
    bool     mute;               /* nothing is written to stderr */
    void     (*elsewhere)(void); /* another thread uses a scheduler of this world; NULL: it gets
                                 * JANUS_STATE */
};

/*
 * The world of the calling thread; NULL: the real system. A thread-local word, defined in
 * peek_<cpu>.S. Assembly reads it, so no compiler moves the read across a switch. An address of the
 * word that was computed on another thread could point to an ended thread.
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

/* Sets the world of the calling thread. For the world itself. */
void jrt_world_set(struct jrt_world *world);

/* Take returns what was kept, or NULL. Give keeps it, or returns false if there is no room. */
void *jrt_spare_take(enum jrt_spare_kind kind, size_t bytes);
bool  jrt_spare_give(enum jrt_spare_kind kind, void *base, size_t bytes);

/* A place at which another part of the world may run instead. The caller holds no lock. */
static inline void jrt_point(void)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) world->point(world);
}

/* Reports to the world that a handle was used after its end, if `status` says so. */
static inline int jrt_stale(int status, const char *call)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL && world->stale != NULL)) world->stale(call);
    return status;
}

/* Reports to the world that a task is about to end by a panic. */
static inline void jrt_panicked(const char *message)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL && world->panicked != NULL)) world->panicked(message);
}

/* Counts channels that were made or destroyed. */
static inline void jrt_count_channels(int more)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) world->channels += more;
}

/* Reports computing time to the world, whose clock does not see it. */
static inline void jrt_spend(uint64_t ns)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) world->spend(world, ns);
}

/* Whether the world lets the next attempt fail. */
static inline bool jrt_fails(enum jrt_fault fault)
{
    struct jrt_world *world = jrt_world_now();
    return jrt_unlikely(world != NULL) && world->fails(world, fault);
}

/* Debug builds count how many of the library's locks a thread holds. The threads of a world share
 * one number, so there it says nothing: 0. */
void jrt_locks_count(int more);
int  jrt_locks_held(void);

/* Locks of the library. In a world, a part that finds a lock taken lets its holder run. */
static inline void jrt_lock(pthread_mutex_t *lock)
{
    struct jrt_world *world = jrt_world_now();
    if (jrt_likely(world == NULL)) {
        pthread_mutex_lock(lock);
    } else {
        while (pthread_mutex_trylock(lock) != 0) world->pass(world);
    }
    if (JRT_DEBUG) jrt_locks_count(1);
}

static inline void jrt_unlock(pthread_mutex_t *lock)
{
    if (JRT_DEBUG) jrt_locks_count(-1);
    pthread_mutex_unlock(lock);
}

/* Memory as from malloc; free releases it. */
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

/* jrt_aligned_alloc for a pool that outlives worlds. What earlier worlds left there must not decide
 * whether a world draws a fault. So the caller draws it, each time it takes something from the
 * pool. */
static inline void *jrt_aligned_alloc_for_ever(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

static inline char *jrt_strndup(const char *text, size_t max_bytes)
{
    return jrt_fails(JRT_FAULT_MEMORY) ? NULL : strndup(text, max_bytes);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A machine with as many cores as wanted, on one thread.
 *
 * It runs the library that is shipped, in a second build of the same sources. That build has the
 * compiler's instrumentation for ThreadSanitizer, but not its library. So it calls hooks.c before
 * every access to memory that others might see. The linker redirects the calls of the system to
 * system.c. Nothing in src/ knows about it.
 *
 * Each thread of the program is a core here, with a clock of its own. What a core does advances its
 * clock by the costs of a table. The core whose clock is behind all others runs. It gives way
 * before every atomic operation, and before every access that needs another core's cache line. So
 * these happen in the order of the clocks. Equal tables and programs give equal runs.
 *
 * Cache lines have the states of MESI (lines.c). A line that moves is busy meanwhile, so cores that
 * want the same line stand in a queue. The longest queue is what this program is for.
 */
#ifndef JANUSRT_SCALE_MACHINE_H
#define JANUSRT_SCALE_MACHINE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MACHINE_CORES = 192, MACHINE_WORDS = MACHINE_CORES / 64 };

/* Times are in picoseconds, because a cached access costs less than a nanosecond. */
#define MACHINE_NS UINT64_C(1000)
#define MACHINE_NEVER UINT64_MAX

/* X(name, default in ps, meaning). measure.c measures them. */
#define MACHINE_COSTS(X)                                                                           \
    X(plain, 105, "a cached access, with the instructions around it")                              \
    X(rmw, 4700, "a locked instruction on an own line")                                            \
    X(fence, 4700, "a full fence")                                                                 \
    X(transfer, 20000, "a line from another core")                                                 \
    X(far, 20000, "a line from a core of another group")                                           \
    X(linger, 11400, "how long an owner keeps a line that another core has asked for")             \
    X(group, 1000000, "cores of a group, in thousands")                                            \
    X(heavy, 230000, "membarrier, alone")                                                          \
    X(heavy_first, 8350000, "membarrier, more if another core runs")                               \
    X(heavy_each, 150000, "membarrier, for each further core that runs")                           \
    X(stolen, 5000000, "membarrier, on each of these cores")                                       \
    X(call, 160000, "any other call of the system")                                                \
    X(clock, 20000, "a look at the clock")                                                         \
    X(relax, 23000, "a pause of a spinning core")                                                  \
    X(yield, 360000, "sched_yield")                                                                \
    X(sleep, 160000, "to fall asleep")                                                             \
    X(wake, 6400000, "to wake a core, for the waker")                                              \
    X(woken, 12500000, "from the wake until the sleeper runs")                                     \
    X(send, 785000, "to send on a connection")                                                     \
    X(receive, 770000, "to receive")                                                               \
    X(look, 407000, "to look for events of connections")

struct machine_costs {
#define X(name, value, meaning) uint64_t name;
    MACHINE_COSTS(X)
#undef X
};

extern struct machine_costs machine_costs;

/* A core that loses its line to another core keeps it until the other core's request arrives. */
struct loser {
    int      core; /* its number + 1; 0: none */
    uint64_t until;
};

enum { MACHINE_LOSERS = 4 };

struct resource;

enum core_state { CORE_READY, CORE_SLEEPS, CORE_ENDED };

/* A store that waits in its core's buffer for its line. Only atomic stores wait: nobody may see the
 * others before a later atomic one. */
struct store {
    struct resource *line;
    volatile void   *at;
    uint64_t         value, done_at;
    unsigned         bytes;
};

enum { MACHINE_STORES = 16 };

struct core {
    unsigned           number;
    enum core_state    state;
    uint64_t           now;                    /* its clock, or its deadline while it is asleep */
    uint64_t           drained;                /* when the stores it has issued are done */
    struct store       stores[MACHINE_STORES]; /* oldest first */
    unsigned           store_count;
    unsigned           at;     /* index in the heap; only while it is there */
    bool               queued; /* it is in the heap */
    bool               late;   /* its deadline ended its sleep */
    const void        *word;   /* asleep on this word, or on this lock; or NULL */
    int                set;    /* asleep in this epoll set; -1: in none */
    const struct core *joins;  /* asleep until that core has ended */
    void              *sp;
    uintptr_t          base;  /* of its thread-local storage */
    pthread_t          donor; /* the thread that the storage belongs to; it only waits */
    sem_t              over;
    void              *(*main)(void *argument);
    void              *argument, *result;
};

/* Something that one core at a time uses: a line, a lock, a call of the system. */
struct resource {
    uintptr_t            key;
    uint64_t             free_at;
    uint64_t             busy, waited; /* since machine_begin: time in use, and time in its queue */
    uint64_t             moves;
    const void          *who;        /* code that moved it, */
    const volatile void *what;       /* and the word wanted most often, as far as votes tell: */
    uint64_t             votes;      /* for that word, less those for others */
    uint64_t             held_since; /* of locks */
    int                  owner;      /* core that may write it; -1: none */
    int                  storer; /* 1 + the core with a waiting store to it, the last; 0: none */
    uint64_t             sharers[MACHINE_WORDS];
    struct loser         losers[MACHINE_LOSERS]; /* the last, in turns */
    unsigned             losses;
    const char          *name; /* constant; NULL: see machine_name */
};

/* True: the simulation has begun. Before, the hooks do nothing. */
extern bool         machine_on;
extern struct core *machine_self;
extern uint64_t     machine_horizon; /* the least clock of the other cores */

/* Begins: the calling thread is core 0. */
void machine_start(const struct machine_costs *costs);

/* Lets cores run that are behind. */
void machine_behind(void);

static inline void machine_point(void)
{
    if (machine_self->now > machine_horizon) machine_behind();
}

static inline void machine_spend(uint64_t ps) { machine_self->now += ps; }

/* Puts the running core to sleep until machine_wake or the deadline. False: the deadline came. */
bool machine_sleep(uint64_t deadline);
void machine_wake(struct core *core, uint64_t when);

/* Adds to the clocks of all other running cores. Returns how many there are. */
unsigned machine_disturb(uint64_t ps);

struct core *machine_core(unsigned number); /* NULL: no more */
struct core *machine_start_core(void *(*main)(void *argument), void *argument);
void         machine_join(struct core *core);

/* What hooks.c tells about memory. */
void machine_read(const volatile void *at, const void *who);
void machine_write(const volatile void *at, const void *who);
void machine_rmw(const volatile void *at, const void *who);

/* An atomic store, which is done when the line is there. */
void machine_store(volatile void *at, uint64_t value, unsigned bytes, const void *who);

/* Waits until the running core's stores are done. */
void machine_drain(void);

/* Waits for the resource and uses it. */
void             machine_use(struct resource *resource, uint64_t ps);
struct resource *machine_line(const volatile void *at);
struct resource *machine_lock_of(const void *lock);

/* Between these two, resources are observed. Times in ps. */
void machine_begin(void);
void machine_end(void);

struct machine_finding {
    char   what[96];
    double busy;   /* share of the time */
    double waited; /* cores that waited for it, on average */
};

/* The busiest resources, lines of one field of many objects apart. Returns how many. */
unsigned machine_findings(struct machine_finding *out, unsigned max);

/* Learns where the scheduler of the running task lies, to name its fields. */
void machine_know(void);

/* Names a resource, in `out`. */
void machine_name(const struct resource *resource, char *out, size_t bytes);

#endif

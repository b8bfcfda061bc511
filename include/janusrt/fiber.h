/* SPDX-License-Identifier: MIT */
/*
 * Fibers: functions with a stack of their own that can be left in the middle and entered again.
 *
 * This is the lowest public layer, for language runtimes, generators and tests. It has no
 * scheduler: somebody resumes a fiber, it runs on that thread until it suspends, ends or
 * panics, and the resumer is told which.
 *
 *     static int64_t ticks(void *argument)
 *     {
 *         for (int i = 0; i < 3; i++) {
 *             printf("%s %d\n", (char *)argument, i);
 *             if (janus_fiber_suspend(NULL, NULL) != JANUS_OK) return -1;
 *         }
 *         return 3;
 *     }
 *
 *     janus_pool *pool;
 *     janus_fiber *fiber;
 *     janus_outcome outcome;
 *     if (janus_pool_create(NULL, &pool) != JANUS_OK) return 1;
 *     if (janus_fiber_create(pool, ticks, "tick", NULL, &fiber) != JANUS_OK) return 1;
 *     while (janus_fiber_resume(fiber, NULL, &outcome) == JANUS_OK) puts("back");
 *     janus_fiber_destroy(fiber);
 *     janus_pool_destroy(pool);
 *
 * A suspended fiber may be resumed by any thread, by one at a time. While it moves, it must not
 * keep the address of a thread-local (errno among them) across a suspend: the compiler may have
 * computed it for the old thread. A fiber may suspend inside a C++ catch block.
 *
 * A thread that resumes a fiber gets an alternate signal stack, unless it has one that is large
 * enough, and SIGSEGV is unblocked there. It must keep both while fibers run on it.
 */
#ifndef JANUSRT_FIBER_H
#define JANUSRT_FIBER_H

#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/profile.h>
#include <janusrt/stack.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct janus_pool  janus_pool;  /* stacks and records; what fibers are made from */
typedef struct janus_fiber janus_fiber; /* one of them */

/* What a fiber runs. The number it returns is handed to the resumer as outcome.result. */
typedef int64_t janus_entry(void *argument);

typedef enum janus_fiber_state {
    JANUS_FIBER_NEW = 0,   /* made, never resumed; has no stack */
    JANUS_FIBER_RUNNING,   /* on a thread, or waiting for a fiber it resumed itself */
    JANUS_FIBER_SUSPENDED, /* off the thread; its stack is kept */
    JANUS_FIBER_COMPLETED, /* its entry returned; the stack went back to the pool */
    JANUS_FIBER_PANICKED,  /* it was ended by a panic; the stack went back to the pool */
} janus_fiber_state;

typedef enum janus_panic_kind {
    JANUS_PANIC_NONE = 0,
    JANUS_PANIC_EXPLICIT,       /* janus_panic() */
    JANUS_PANIC_STACK_OVERFLOW, /* the fiber ran into its guard */
} janus_panic_kind;

/*
 * A name as the library keeps it, with the zero at its end. Names of tasks, nurseries and channels
 * are copied when they are given; the giver may free its own at once. A copy can stand in a line
 * of text between double quotes. Control characters, quotes, backslashes, characters that turn the
 * direction of text and bytes that are no UTF-8 become escapes: \n, \", \x1b. A name that is too
 * long is cut between two characters.
 */
enum { JANUS_NAME_BYTES = 48 };

/* Why a task or a fiber panicked. A plain value; it stays true after both are gone. */
typedef struct janus_panic_info {
    janus_panic_kind kind;
    bool             task; /* a task did, and fiber_id is its id; else a fiber */
    uint64_t         fiber_id;
    size_t           stack_bytes;   /* what it had reserved */
    const void      *fault_address; /* STACK_OVERFLOW: the address that was touched, NULL when
                                       a canary found out afterwards */
    const void      *code_address;  /* STACK_OVERFLOW: the instruction, NULL likewise */
    janus_guard      guard;         /* STACK_OVERFLOW: the rung that noticed */
    char             name[JANUS_NAME_BYTES]; /* of the task or fiber */
    char             message[160];           /* EXPLICIT: what janus_panic was told, cut to fit */
} janus_panic_info;

/* What resuming a fiber led to. */
typedef struct janus_outcome {
    janus_fiber_state state;  /* SUSPENDED, COMPLETED or PANICKED */
    int64_t           result; /* COMPLETED: what the entry returned */
    void             *value;  /* SUSPENDED: what janus_fiber_suspend was given */
    janus_panic_info  panic;  /* PANICKED: why */
} janus_outcome;

/* Who turns a SIGSEGV in a guard into a panic. */
typedef enum janus_fault_mode {
    JANUS_FAULT_HANDLER = 0, /* the library: it installs a SIGSEGV handler with the first pool,
                                passes on everything that is not a fiber's overflow, and puts the
                                old one back with the last pool */
    JANUS_FAULT_MANUAL,      /* the program's own handler, which calls janus_fault_claim */
} janus_fault_mode;

/* How a pool is made. Zero in any field asks for the default named beside it. */
typedef struct janus_pool_options {
    size_t           struct_bytes;       /* sizeof this struct; JANUS_POOL_OPTIONS sets it */
    janus_profile    profile;            /* 0: SERVICE; decides stack_bytes and scrub */
    size_t           stack_bytes;        /* 0: the profile's; JANUS_STACK_BYTES_MIN..MAX */
    size_t           guard_bytes;        /* 0: 64 KiB, 16 KiB below stacks of less than 64 KiB on
 x86-64; rounded up to pages, at most JANUS_GUARD_BYTES_MAX */
    janus_guard      guard;              /* 0: AUTO; any other rung is used or refused, with no
                                             step down */
    uint32_t         guard_mappings_max; /* MPROTECT rung: stacks it may guard. 0: a quarter of
 vm.max_map_count, which is also the limit for all pools together */
    size_t           fibers_max;         /* live fibers; more are FULL. 0: no limit but memory */
    size_t           idle_stack_bytes;   /* memory of unused stacks that the pool keeps. Past
                                             half of it a stack of more than 1 MiB keeps its upper
                                             16 KiB; past all of it slabs go back to the system,
                                             but for up to four that were used last.
                                             0: JANUS_IDLE_STACK_BYTES */
    janus_fault_mode fault_mode;         /* 0: HANDLER */
    bool             scrub;              /* zero what a fiber wrote before another gets the
                                             stack. false: only in :sovereign */
    bool             measure;            /* high-water marks count per fiber, not per stack
                                             (implies scrub), and the pool keeps the deepest */
} janus_pool_options;

#define JANUS_GUARD_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* How one fiber is made. Zero in any field asks for the default named beside it. */
typedef struct janus_fiber_options {
    size_t      struct_bytes; /* sizeof this struct; JANUS_FIBER_OPTIONS sets it */
    size_t      stack_bytes;  /* 0: the pool's; JANUS_STACK_BYTES_MIN..MAX, rounded up */
    const char *name;         /* NULL: "fiber"; borrowed, must outlive the fiber */
} janus_fiber_options;

#define JANUS_POOL_OPTIONS(...) JANUS_OPTIONS_(janus_pool_options, __VA_ARGS__)
#define JANUS_FIBER_OPTIONS(...) JANUS_OPTIONS_(janus_fiber_options, __VA_ARGS__)

/* A pool's books at one moment; other threads may be moving them. */
typedef struct janus_pool_stats {
    size_t      struct_bytes;    /* in: sizeof this struct; the call fills no more than that */
    size_t      fibers_live;     /* made and not yet destroyed */
    size_t      stacks_attached; /* with a fiber that was started and has not ended */
    size_t      stacks_idle;     /* kept for the next one */
    size_t      idle_bytes;      /* memory of these, at most; they may have touched less */
    size_t      stacks_marker;   /* stacks carved so far and still mapped, by their guard rung */
    size_t      stacks_mprotect;
    size_t      stacks_canary;
    size_t      reserved_bytes;   /* address space in slabs, guards included */
    size_t      record_bytes;     /* memory in fiber records */
    uint64_t    fibers_created;   /* since the pool was made */
    uint64_t    overflows;        /* panics of kind STACK_OVERFLOW */
    uint64_t    slabs_released;   /* given back to the system by trimming */
    size_t      high_water_bytes; /* deepest of all ended fibers; 0 unless options.measure */
    janus_guard guard;            /* the rung that the next new stack will get */
} janus_pool_stats;

JANUS_BEGIN_DECLS

/*
 * Makes a pool. It maps nothing yet but its own bookkeeping.
 *
 * Context: anyone, any thread. Pools are independent of one another; a stack never moves from
 *          one to another, so a pool is a trust domain.
 * Yields:  only if the turn is over.
 * Owns:    *out is the library's until janus_pool_destroy; `options` is only read.
 * Cost:    about 12 KiB, and the SIGSEGV handler when it is the first pool.
 * Errors:  INVALID      a size, enum or struct_bytes is out of range; `out` is NULL
 *          UNAVAILABLE  options->guard names a rung this machine cannot do
 *          NO_MEMORY    no memory for the bookkeeping
 *          NO_EXECUTOR_CAP  a restricted task without executor.configure, see scheduler.h
 *          On any error *out is untouched and nothing was made.
 */
JANUS_NODISCARD JANUS_API janus_status janus_pool_create(const janus_pool_options *options,
                                                         janus_pool              **out);

/*
 * Gives everything back. Fibers must be destroyed first: a pool does not kill.
 *
 * Context: any thread, when no other uses the pool any more.
 * Yields:  only if the turn is over.
 * Owns:    takes `pool` when it returns OK. NULL is allowed and does nothing.
 * Cost:    one unmap for each slab.
 * Errors:  STATE  fibers are still alive (janus_pool_stats counts them); nothing happened
 */
JANUS_API janus_status janus_pool_destroy(janus_pool *pool);

/*
 * Gives unused memory back to the system now, until idle stacks hold at most `keep_bytes`. The
 * call unmaps whole slabs; in slabs that are partly in use it drops the pages of idle stacks. The
 * pool does the same by itself past options.idle_stack_bytes.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a system call for each run of idle stacks; takes the pool's lock meanwhile.
 * Errors:  none; returns how many bytes it gave back, at most. 0: nothing was idle, or `pool` is
 *          NULL.
 */
JANUS_API size_t janus_pool_trim(janus_pool *pool, size_t keep_bytes);

/*
 * Reads the pool's books.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    takes each of the pool's locks once, about 1 us.
 * Errors:  INVALID  `out` is NULL or out->struct_bytes is smaller than the first field
 */
JANUS_API janus_status janus_pool_stats_read(janus_pool *pool, janus_pool_stats *out);

/*
 * Makes a fiber that will run `entry(argument)`. It gets no stack before it is first resumed:
 * until then it costs less than 256 bytes.
 *
 * Context: any thread, inside or outside a fiber.
 * Yields:  only if the turn is over.
 * Owns:    *out is the library's until janus_fiber_destroy. `argument` and options->name stay
 *          the caller's and must live as long as the fiber.
 * Cost:    about 20 ns.
 * Errors:  INVALID    `pool`, `entry` or `out` is NULL; stack_bytes is out of range
 *          FULL       options.fibers_max fibers are alive
 *          NO_MEMORY  no memory for the record
 *          On any error *out is untouched and nothing was made.
 */
JANUS_NODISCARD JANUS_API janus_status janus_fiber_create(janus_pool *pool, janus_entry *entry,
                                                          void                      *argument,
                                                          const janus_fiber_options *options,
                                                          janus_fiber              **out);

/*
 * Runs a fiber on this thread until it suspends, ends or panics. `value` is what a suspended
 * fiber's janus_fiber_suspend gives it; a new fiber does not see it.
 *
 * Context: any thread, inside a fiber too (then the caller waits as RUNNING). One thread at a
 *          time for one fiber; handing a fiber from thread to thread is the caller's to order.
 * Yields:  no, it nests: the resumed fiber comes back here.
 * Owns:    *out stays the caller's; NULL when the outcome does not matter.
 * Cost:    two switches, about 15 ns; the first time a stack from the pool.
 * Errors:  INVALID    `fiber` is NULL
 *          STATE      the fiber is RUNNING, COMPLETED or PANICKED; nothing happened
 *          NO_MEMORY  no stack could be had; the fiber is still NEW and can be tried again
 *          FULL       the same, because the mapping budget of a forced MPROTECT rung is spent
 *          A fiber that panics is no error of this call: OK, and the outcome says so.
 */
JANUS_API janus_status janus_fiber_resume(janus_fiber *fiber, void *value, janus_outcome *out);

/*
 * Leaves the current fiber. Its resumer gets `value`; when it is resumed again, *out_value (NULL:
 * not wanted) is what that resumer gave.
 *
 * Context: inside a fiber.
 * Yields:  always, when it returns OK. It may come back on another thread.
 * Owns:    values are passed through, never looked at.
 * Cost:    one switch.
 * Errors:  STATE  the caller is not in a fiber; nothing happened
 */
JANUS_NODISCARD JANUS_API janus_status janus_fiber_suspend(void *value, void **out_value);

/*
 * Ends the current fiber for good; its resumer gets the outcome PANICKED with this message.
 * Nothing on the fiber's stack is unwound.
 *
 * Context: inside a fiber. Elsewhere there is no one to tell: it prints and aborts.
 * Yields:  it does not return.
 * Owns:    `message` is copied, up to 95 bytes; NULL stands for "".
 * Cost:    one switch.
 * Errors:  none.
 */
JANUS_NORETURN JANUS_API void janus_panic(const char *message);

/*
 * Ends a fiber's record. A SUSPENDED fiber is abandoned: its stack is taken back without
 * unwinding, so what it held on it is not released. A NEW one never runs.
 *
 * Context: any thread; not the fiber itself, nor one it resumed.
 * Yields:  only if the turn is over.
 * Owns:    takes `fiber` when it returns OK. NULL is allowed and does nothing.
 * Cost:    about 20 ns.
 * Errors:  STATE  the fiber is RUNNING; nothing happened
 */
JANUS_API janus_status janus_fiber_destroy(janus_fiber *fiber);

/*
 * The fiber the caller runs in, NULL on a plain thread.
 *
 * Context: anyone, any thread. The answer is right also after the fiber changed threads.
 * Yields:  never.
 * Owns:    borrowed.
 * Cost:    a call and a thread-local load.
 * Errors:  none.
 */
JANUS_API janus_fiber *janus_fiber_current(void);

/*
 * A fiber's number, unique in its pool for ever, starting at 1.
 *
 * Context: any thread, while the fiber is not destroyed.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none.
 */
JANUS_API uint64_t janus_fiber_id(const janus_fiber *fiber);

/*
 * A fiber's name, "fiber" if it was given none.
 *
 * Context: any thread, while the fiber is not destroyed.
 * Yields:  never.
 * Owns:    borrowed from whoever gave it.
 * Cost:    a load.
 * Errors:  none.
 */
JANUS_API const char *janus_fiber_name(const janus_fiber *fiber);

/*
 * A fiber's state. Another thread may be changing it.
 *
 * Context: any thread, while the fiber is not destroyed.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none.
 */
JANUS_API janus_fiber_state janus_fiber_state_of(const janus_fiber *fiber);

/*
 * A state's name: "new", "running", "suspended", "completed", "panicked".
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  none; a number that is no state gives "?".
 */
JANUS_API const char *janus_fiber_state_name(janus_fiber_state state);

/*
 * What is known about a fiber's stack, with its high-water mark: the deepest byte ever written,
 * found by asking which pages are resident and looking for the lowest that is not zero. Without
 * options.measure a reused stack also shows the depth of its earlier fibers. Under swap the mark
 * may be too small.
 *
 * Context: any thread, while the fiber is not running elsewhere.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's.
 * Cost:    one system call for each 512 KiB of stack and a scan of one page; not for hot paths.
 * Errors:  INVALID  an argument is NULL
 */
JANUS_API janus_status janus_fiber_stack(const janus_fiber *fiber, janus_stack_info *out);

/*
 * Writes a panic as a sentence for people: which task or fiber, what happened, which limit, what
 * to do.
 *
 * Context: anyone, any thread.
 * Yields:  only if the turn is over.
 * Owns:    writes at most `size` bytes to `buffer`, always terminated if `size` is not 0.
 * Cost:    an snprintf.
 * Errors:  none; returns the length the whole sentence has, as snprintf does.
 */
JANUS_API size_t janus_panic_text(const janus_panic_info *panic, char *buffer, size_t size);

JANUS_END_DECLS
#endif

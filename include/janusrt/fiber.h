/* SPDX-License-Identifier: MIT */
/*
 * Fibers: functions on their own stacks, which can be left in the middle and entered again.
 *
 * This is the lowest public layer, for language runtimes, generators and tests. Most programs use
 * tasks instead (task.h). A fiber has no scheduler: it runs on the thread that resumes it until it
 * suspends, ends or panics. The resumer learns which.
 *
 *     static int64_t ticks(void *argument)
 *     {
 *         for (int i = 0; i < 3; i++) {
 *             printf("%s %d\n", (char *)argument, i);
 *             if (janus_fiber_suspend(NULL, NULL) != JANUS_OK) return -100;
 *         }
 *         return 3;
 *     }
 *
 *     janus_fiber_pool *pool;
 *     janus_fiber *fiber;
 *     janus_outcome outcome;
 *     if (janus_fiber_pool_create(NULL, &pool) != JANUS_OK) return 1;
 *     if (janus_fiber_create(pool, ticks, "tick", NULL, &fiber) != JANUS_OK) return 1;
 *     while (janus_fiber_resume(fiber, NULL, &outcome) == JANUS_OK) puts("back");
 *     janus_fiber_destroy(fiber);
 *     janus_fiber_pool_destroy(pool);
 *
 * Any thread may resume a suspended fiber, one thread at a time. A fiber that changes threads must
 * not keep the address of a thread-local, as errno, across a suspend. The compiler may have
 * computed it for the old thread. A fiber may suspend inside a C++ catch block.
 *
 * A thread that resumes a fiber gets an alternate signal stack, unless it has a large enough one,
 * and SIGSEGV is unblocked. It must keep both while fibers run on it.
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

typedef struct janus_fiber_pool janus_fiber_pool; /* a source of stacks and records for fibers */
typedef struct janus_fiber      janus_fiber;      /* one fiber of a pool */

/* The function of a fiber or task. The resumer gets its result as outcome.result. */
typedef int64_t janus_entry(void *argument);

typedef enum janus_fiber_state {
    JANUS_FIBER_STATE_NEW = 0,   /* never resumed; it has no stack */
    JANUS_FIBER_STATE_RUNNING,   /* on a thread, or waiting for a fiber it resumed itself */
    JANUS_FIBER_STATE_SUSPENDED, /* off the thread; its stack is kept */
    JANUS_FIBER_STATE_COMPLETED, /* its entry returned; the stack went back to the pool */
    JANUS_FIBER_STATE_PANICKED,  /* a panic ended it; the stack went back to the pool */
} janus_fiber_state;

typedef enum janus_panic_kind {
    JANUS_PANIC_KIND_NONE = 0,
    JANUS_PANIC_KIND_EXPLICIT,       /* janus_panic() */
    JANUS_PANIC_KIND_STACK_OVERFLOW, /* the fiber ran into its guard */
} janus_panic_kind;

/*
 * The room for a name, with its zero. The library copies names of tasks, nurseries and channels, so
 * the caller may free its own at once. A copy is safe in a line of text between double quotes.
 * Control characters, quotes, backslashes, characters that turn the direction of text and invalid
 * UTF-8 become escapes: \n, \", \x1b. A name that is too long is cut between two characters.
 */
#define JANUS_NAME_BYTES 48

/* Why a task or a fiber panicked. It is a plain value and stays valid after both have ended. */
typedef struct janus_panic_detail {
    janus_panic_kind kind;
    bool             task; /* true: a task panicked, and fiber_id is its id */
    uint64_t         fiber_id;
    size_t           stack_bytes;   /* the size of its stack */
    const void      *fault_address; /* STACK_OVERFLOW: the address that was touched, NULL when
                                       a canary found out afterwards */
    const void      *code_address;  /* STACK_OVERFLOW: the instruction, NULL likewise */
    janus_guard      guard;         /* STACK_OVERFLOW: the rung that noticed */
    char             name[JANUS_NAME_BYTES]; /* of the task or fiber */
    char             message[160];           /* EXPLICIT: the text of janus_panic, cut to fit */
} janus_panic_detail;

/* The outcome of resuming a fiber. */
typedef struct janus_outcome {
    janus_fiber_state  state;  /* SUSPENDED, COMPLETED or PANICKED */
    int64_t            result; /* COMPLETED: what the entry returned */
    void              *value;  /* SUSPENDED: what janus_fiber_suspend was given */
    janus_panic_detail panic;  /* PANICKED: why */
} janus_outcome;

/* Which handler turns a SIGSEGV in a guard into a panic. */
typedef enum janus_signal_mode {
    JANUS_SIGNAL_MODE_HANDLER =
        0,                    /* the library's: the first pool installs it, the last removes it.
                                It passes on all faults that are not an overflow of a fiber */
    JANUS_SIGNAL_MODE_MANUAL, /* the program's own handler, which calls janus_fault_claim */
} janus_signal_mode;

/* Options of a pool. Zero in any field selects the default named beside it. */
typedef struct janus_fiber_pool_options {
    size_t            struct_bytes;       /* sizeof this struct; JANUS_FIBER_POOL_OPTIONS sets it */
    janus_profile     profile;            /* 0: SERVICE; decides stack_bytes and scrub */
    size_t            stack_bytes;        /* 0: the profile's; JANUS_STACK_BYTES_MIN..MAX */
    size_t            guard_bytes;        /* 0: 64 KiB, 16 KiB below stacks of less than 64 KiB on
 x86-64; rounded up to pages, at most JANUS_GUARD_BYTES_MAX */
    janus_guard       guard;              /* 0: AUTO; any other rung is used or refused, with no
                                             step down */
    uint32_t          max_guard_mappings; /* MPROTECT rung: stacks it may guard. 0: a quarter of
 vm.max_map_count, which is also the limit for all pools together */
    size_t            max_fibers;         /* live fibers; more are FULL. 0: no limit but memory */
    size_t            idle_stack_bytes;   /* memory of unused stacks that the pool keeps. Past
                                             half of it, a stack of more than 1 MiB keeps its upper
                                             16 KiB. Past all of it, all but the last four slabs go
                                             back to the system. 0: JANUS_IDLE_STACK_BYTES */
    janus_signal_mode signal_mode;        /* 0: HANDLER */
    bool              scrub;              /* zero what a fiber wrote before another gets the
                                             stack. false: only in :sovereign */
    bool              measure;            /* high-water marks count per fiber, not per stack
                                             (implies scrub), and the pool keeps the deepest */
} janus_fiber_pool_options;

#define JANUS_GUARD_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* Options of one fiber. Zero in any field selects the default named beside it. */
typedef struct janus_fiber_options {
    size_t      struct_bytes; /* sizeof this struct; JANUS_FIBER_OPTIONS sets it */
    size_t      stack_bytes;  /* 0: the pool's; JANUS_STACK_BYTES_MIN..MAX, rounded up */
    const char *name;         /* NULL: "fiber"; borrowed, must outlive the fiber */
} janus_fiber_options;

#define JANUS_FIBER_POOL_OPTIONS(...) JANUS_OPTIONS_(janus_fiber_pool_options, __VA_ARGS__)
#define JANUS_FIBER_OPTIONS(...) JANUS_OPTIONS_(janus_fiber_options, __VA_ARGS__)

/* The counters of a pool at one moment. Other threads may change them meanwhile. */
typedef struct janus_fiber_pool_info {
    size_t      struct_bytes;    /* sizeof this struct; JANUS_FIBER_POOL_INFO sets it */
    size_t      fibers_live;     /* made and not yet destroyed */
    size_t      stacks_attached; /* with a fiber that was started and has not ended */
    size_t      stacks_idle;     /* kept for later fibers */
    size_t      idle_bytes;      /* memory of idle stacks, at most; they may have touched less */
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
} janus_fiber_pool_info;
#define JANUS_FIBER_POOL_INFO() JANUS_SIZED_(janus_fiber_pool_info)

JANUS_BEGIN_DECLS

/*
 * Creates a pool. It maps only its own bookkeeping.
 *
 * Context: anyone, any thread. A stack never moves from one pool to another, so a pool is a trust
 *          domain.
 * Yields:  only if the turn is over.
 * Owns:    *out is the library's until janus_fiber_pool_destroy; `options` is only read.
 * Cost:    about 12 KiB, and the SIGSEGV handler when it is the first pool.
 * Errors:  INVALID      a size, enum or struct_bytes is out of range; `out` is NULL
 *          UNAVAILABLE  options->guard names a rung this machine cannot do
 *          NO_MEMORY    no memory for the bookkeeping
 *          NO_EXECUTOR_CAP  a restricted task without executor.configure, see scheduler.h
 *          On any error *out is untouched and nothing was made.
 */
JANUS_NODISCARD JANUS_API janus_status
janus_fiber_pool_create(const janus_fiber_pool_options *options, janus_fiber_pool **out);

/*
 * Destroys a pool and frees its memory. The program must destroy all its fibers first.
 *
 * Context: any thread, when no other thread uses the pool any more.
 * Yields:  only if the turn is over.
 * Owns:    takes `pool` when it returns OK. NULL is allowed and does nothing.
 * Cost:    one unmap for each slab.
 * Errors:  STATE  fibers are still alive (janus_fiber_pool_info counts them); nothing happened
 */
JANUS_API janus_status janus_fiber_pool_destroy(janus_fiber_pool *pool);

/*
 * Gives unused memory back to the system now, until idle stacks hold at most `keep_bytes`. The call
 * unmaps whole slabs; in slabs that are partly in use it drops the pages of idle stacks. The pool
 * does so by itself past options.idle_stack_bytes.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a system call for each run of idle stacks; takes the pool's lock meanwhile.
 * Errors:  none. Returns how many bytes it gave back, at most. 0: nothing was idle, or `pool` is
 *          NULL.
 */
JANUS_API size_t janus_fiber_pool_trim(janus_fiber_pool *pool, size_t keep_bytes);

/*
 * Reads the pool's counters.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    takes each of the pool's locks once, about 1 us.
 * Errors:  INVALID  an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_fiber_pool_inspect(janus_fiber_pool      *pool,
                                                                janus_fiber_pool_info *out);

/*
 * Creates a fiber that will run `entry(argument)`. It gets its stack when it is first resumed.
 * Until then it costs less than 256 bytes.
 *
 * Context: any thread, inside or outside a fiber.
 * Yields:  only if the turn is over.
 * Owns:    *out is the library's until janus_fiber_destroy. `argument` and options->name stay
 *          the caller's and must live as long as the fiber.
 * Cost:    about 20 ns.
 * Errors:  INVALID    `pool`, `entry` or `out` is NULL; stack_bytes is out of range
 *          FULL       options.max_fibers fibers are alive
 *          NO_MEMORY  no memory for the record
 *          On any error *out is untouched and nothing was made.
 */
JANUS_NODISCARD JANUS_API janus_status janus_fiber_create(janus_fiber_pool *pool,
                                                          janus_entry *entry, void *argument,
                                                          const janus_fiber_options *options,
                                                          janus_fiber              **out);

/*
 * Runs a fiber on this thread until it suspends, ends or panics. A suspended fiber gets `value`
 * from its janus_fiber_suspend; a new fiber does not see it. A panic is an outcome and no error of
 * this call.
 *
 * Context: any thread, inside a fiber too (then the caller waits as RUNNING). Only one thread at a
 *          time may resume a fiber; the caller orders hand-overs between threads.
 * Yields:  no. It nests: the resumed fiber returns here.
 * Owns:    *out stays the caller's; NULL when the outcome does not matter.
 * Cost:    two switches, about 15 ns; the first time a stack from the pool.
 * Errors:  INVALID    `fiber` is NULL
 *          STATE      the fiber is RUNNING, COMPLETED or PANICKED; nothing happened
 *          NO_MEMORY  memory for a stack was refused; the fiber is still NEW, try again later
 *          FULL       the mapping budget of a forced MPROTECT rung is spent; the fiber is still NEW
 */
JANUS_NODISCARD JANUS_API janus_status janus_fiber_resume(janus_fiber *fiber, void *value,
                                                          janus_outcome *out);

/*
 * Suspends the current fiber. Its resumer gets `value`. When a thread resumes it again, *out_value
 * (NULL: not wanted) is the value of that resume.
 *
 * Context: inside a fiber.
 * Yields:  always, when it returns OK. It may come back on another thread.
 * Owns:    nothing; the library does not look at the values.
 * Cost:    one switch.
 * Errors:  STATE  the caller is not in a fiber; nothing happened
 */
JANUS_NODISCARD JANUS_API janus_status janus_fiber_suspend(void *value, void **out_value);

/*
 * Ends the current fiber or task. A fiber's resumer gets the outcome PANICKED with this message; a
 * task's nursery gets a failed child. The library does not unwind the stack.
 *
 * Context: inside a fiber or task. Elsewhere it prints the message and aborts.
 * Yields:  it does not return.
 * Owns:    `message` is copied, up to 95 bytes; NULL stands for "".
 * Cost:    one switch.
 * Errors:  none.
 */
JANUS_NORETURN JANUS_API void janus_panic(const char *message);

/*
 * Destroys a fiber. The pool takes back the stack of a SUSPENDED fiber without unwinding it, so the
 * fiber releases nothing that it holds. A NEW fiber never runs.
 *
 * Context: any thread, but neither the fiber itself nor a fiber that it resumed.
 * Yields:  only if the turn is over.
 * Owns:    takes `fiber` when it returns OK. NULL is allowed and does nothing.
 * Cost:    about 20 ns.
 * Errors:  STATE  the fiber is RUNNING; nothing happened
 */
JANUS_API janus_status janus_fiber_destroy(janus_fiber *fiber);

/*
 * The fiber that the caller runs in, NULL on a plain thread.
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
 * Errors:  none; 0 for NULL.
 */
JANUS_API uint64_t janus_fiber_id(const janus_fiber *fiber);

/*
 * A fiber's name, "fiber" if it was given none.
 *
 * Context: any thread, while the fiber is not destroyed.
 * Yields:  never.
 * Owns:    borrowed from the creator of the fiber.
 * Cost:    a load.
 * Errors:  none; NULL for NULL.
 */
JANUS_API const char *janus_fiber_name(const janus_fiber *fiber);

/*
 * A fiber's state. Another thread may be changing it.
 *
 * Context: any thread, while the fiber is not destroyed.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; COMPLETED for NULL.
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
 * Reads a fiber's stack and its high-water mark, the deepest byte ever written. The call finds the
 * lowest resident page with a byte that is not zero. Without options.measure a reused stack also
 * shows the depth of earlier fibers. If the system swaps, the mark may be too small.
 *
 * Context: any thread, while the fiber is not running elsewhere.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    one system call for each 512 KiB of stack and a scan of one page; not for hot paths.
 * Errors:  INVALID  an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_fiber_stack_inspect(const janus_fiber      *fiber,
                                                                 janus_fiber_stack_info *out);

/*
 * Writes a panic as a sentence: which task or fiber, what happened, which limit, what to do.
 *
 * Context: anyone, any thread.
 * Yields:  only if the turn is over.
 * Owns:    writes at most `size` bytes to `buffer`, always terminated if `size` is not 0.
 * Cost:    an snprintf.
 * Errors:  none; NULL is no panic. Returns the length of the whole sentence, as snprintf does.
 */
JANUS_API size_t janus_panic_text(const janus_panic_detail *panic, char *buffer, size_t size);

JANUS_END_DECLS
#endif

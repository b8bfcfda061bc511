/* SPDX-License-Identifier: MIT */
/*
 * Backtraces from inside fibers, as profilers, sanitizers and exceptions take them. They show every
 * function of the fiber in order, end at jrt_ctx_entry, and show nothing beyond. tests/debug/
 * checks with a debugger that the rules hold at each instruction of the switch.
 */
#include "world.h"

#include "fiber/fiber.h"

#include <execinfo.h>
#include <pthread.h>
#include <unwind.h>

enum { FRAMES_MAX = 32 };

/* A function with its own address, called and not jumped to. */
#if defined(__clang__)
#define FRAME __attribute__((noinline))
#else
#define FRAME __attribute__((noipa))
#endif
#define STAY __asm__ volatile("" : : : "memory") /* after a call: so it is not a tail call */

/* The registers in which jrt_ctx_entry keeps the main function and its argument, by DWARF number */
#if defined(__x86_64__)
enum { DWARF_MAIN = 3, DWARF_ARGUMENT = 12 };
#else
enum { DWARF_MAIN = 19, DWARF_ARGUMENT = 20 };
#endif

struct trace {
    int       frames;
    uintptr_t functions[FRAMES_MAX]; /* where each begins, innermost first */
    uintptr_t last_main;             /* DWARF_MAIN and DWARF_ARGUMENT of the outermost frame */
    uintptr_t last_argument;
};

/* A fiber: what it saw, and what it does in between. */
struct walker {
    struct trace      trace, backtrace, frame_pointers;
    janus_fiber_pool *pool;
    bool              nests;
};

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *argument)
{
    struct trace *trace = argument;
    if (_Unwind_GetIP(context) == 0) return _URC_END_OF_STACK; /* libgcc reports the end too */
    CHECK(trace->frames < FRAMES_MAX);
    trace->functions[trace->frames++] = (uintptr_t)_Unwind_GetRegionStart(context);
    trace->last_main = (uintptr_t)_Unwind_GetGR(context, DWARF_MAIN);
    trace->last_argument = (uintptr_t)_Unwind_GetGR(context, DWARF_ARGUMENT);
    return _URC_NO_REASON;
}

static uintptr_t function_at(const void *return_address)
{
    return (uintptr_t)_Unwind_FindEnclosingFunction((char *)return_address - 1);
}

/* glibc's backtrace(), which uses the same unwinder. A sanitizer may intercept it; its frame is
 * left out. */
static FRAME void take_backtrace(struct trace *trace)
{
    void *addresses[FRAMES_MAX];
    int   count = backtrace(addresses, FRAMES_MAX);
    int   first = 0;
    while (first < count && function_at(addresses[first]) != (uintptr_t)take_backtrace) first++;
    for (int i = first; i < count; i++) {
        trace->functions[trace->frames++] = function_at(addresses[i]);
    }
}

/* Builds with frame pointers everywhere: all except Release, and gcc for ARM always. */
#if JRT_DEBUG || (defined(__aarch64__) && !defined(__clang__))
enum { FRAME_POINTERS = 1 };
#else
enum { FRAME_POINTERS = 0 };
#endif

/* The oldest way: each frame points to its caller's frame, beside the return address. */
static FRAME void take_frame_pointers(struct trace *trace)
{
    void *const           *frame = __builtin_frame_address(0);
    janus_fiber_stack_info stack = JANUS_FIBER_STACK_INFO();
    CHECK_EQ(janus_fiber_stack_inspect(janus_fiber_current(), &stack), JANUS_OK);
    trace->functions[trace->frames++] = (uintptr_t)take_frame_pointers;
    while (frame != NULL) {
        CHECK(trace->frames < FRAMES_MAX);
        CHECK((uintptr_t)frame - (uintptr_t)stack.low <= stack.reserved_bytes - 2 * sizeof *frame);
        trace->functions[trace->frames++] = function_at(frame[1]);
        frame = frame[0];
    }
}

static FRAME void innermost(struct walker *walker)
{
    walker->trace.frames = 0;
    walker->backtrace.frames = 0;
    walker->frame_pointers.frames = 0;
    _Unwind_Backtrace(note_frame, &walker->trace);
    take_backtrace(&walker->backtrace);
    if (FRAME_POINTERS) take_frame_pointers(&walker->frame_pointers);
    STAY;
}

static int64_t nested(void *argument);
static void    check(const struct walker *walker, const janus_fiber *fiber, janus_entry *entry);

/* Takes traces from a fiber inside this one, which must not show this one. */
static FRAME void nest(struct walker *walker)
{
    struct walker inside = {.pool = walker->pool};
    janus_fiber  *fiber = fiber_new(walker->pool, nested, &inside);
    CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_SUSPENDED);
    check(&inside, fiber, nested);
    CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_COMPLETED);
    check(&inside, fiber, nested);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
}

static FRAME void middle(struct walker *walker)
{
    innermost(walker);
    CHECK_EQ(janus_fiber_suspend(NULL, NULL), JANUS_OK);
    if (walker->nests) nest(walker);
    innermost(walker);
    STAY;
}

static int64_t outermost(void *argument)
{
    middle(argument);
    STAY;
    return 0;
}

static int64_t nested(void *argument)
{
    middle(argument);
    STAY;
    return 0;
}

/* `first`, then the walker's own functions, fiber_main and jrt_ctx_entry. Only the last frame knows
 * the address of fiber_main. */
static void check_trace(const struct trace *trace, const uintptr_t *first, int count,
                        janus_entry *entry, uintptr_t fiber_main)
{
    uintptr_t expected[FRAMES_MAX];
    memcpy(expected, first, (size_t)count * sizeof *first);
    expected[count++] = (uintptr_t)middle;
    expected[count++] = (uintptr_t)entry;
    expected[count++] = fiber_main;
    expected[count++] = (uintptr_t)jrt_ctx_entry;
    for (int i = 0; i < count && i < trace->frames; i++) {
        CHECK_EQ(trace->functions[i], expected[i]);
    }
    CHECK_EQ(trace->frames, count);
}

static void check(const struct walker *walker, const janus_fiber *fiber, janus_entry *entry)
{
    uintptr_t fiber_main = walker->trace.last_main;
    CHECK(walker->trace.last_argument == (uintptr_t)fiber);

    uintptr_t by_unwinder[] = {(uintptr_t)innermost};
    check_trace(&walker->trace, by_unwinder, 1, entry, fiber_main);
    uintptr_t by_glibc[] = {(uintptr_t)take_backtrace, (uintptr_t)innermost};
    check_trace(&walker->backtrace, by_glibc, 2, entry, fiber_main);
    if (!FRAME_POINTERS) return;
    uintptr_t by_pointers[] = {(uintptr_t)take_frame_pointers, (uintptr_t)innermost};
    check_trace(&walker->frame_pointers, by_pointers, 2, entry, fiber_main);
}

TEST("a backtrace in a fiber ends at jrt_ctx_entry, before and after a suspend")
{
    janus_fiber_pool *pool = pool_new();
    struct walker     walker = {.pool = pool};
    janus_fiber      *fiber = fiber_new(pool, outermost, &walker);
    CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_SUSPENDED);
    check(&walker, fiber, outermost);
    memset(&walker.trace, 0, sizeof walker.trace);
    CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_COMPLETED);
    check(&walker, fiber, outermost);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    pool_close(pool);
}

static void *resume_it(void *fiber)
{
    CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_COMPLETED);
    return NULL;
}

TEST("a backtrace in a fiber that moved to another thread ends at jrt_ctx_entry")
{
    janus_fiber_pool *pool = pool_new();
    struct walker     walker = {.pool = pool};
    janus_fiber      *fiber = fiber_new(pool, outermost, &walker);
    pthread_t         thread;
    CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_SUSPENDED);
    memset(&walker.trace, 0, sizeof walker.trace);
    CHECK_EQ(pthread_create(&thread, NULL, resume_it, fiber), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    check(&walker, fiber, outermost);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    pool_close(pool);
}

TEST("a backtrace in a nested fiber ends at that fiber's own jrt_ctx_entry")
{
    janus_fiber_pool *pool = pool_new();
    struct walker     walker = {.pool = pool, .nests = true};
    janus_fiber      *fiber = fiber_new(pool, outermost, &walker);
    CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_SUSPENDED);
    CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_COMPLETED);
    check(&walker, fiber, outermost);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    pool_close(pool);
}

TEST("the chain of frame pointers in a fiber ends in zero")
{
    if (!FRAME_POINTERS) SKIP("this build has no frame pointers");
    janus_fiber_pool *pool = pool_new();
    struct walker     walker = {.pool = pool};
    janus_fiber      *fiber = fiber_new(pool, outermost, &walker);
    CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_SUSPENDED);
    check(&walker, fiber, outermost);
    /* take_frame_pointers, innermost, middle, outermost, fiber_main, jrt_ctx_entry */
    CHECK_EQ(walker.frame_pointers.frames, 6);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    pool_close(pool);
}

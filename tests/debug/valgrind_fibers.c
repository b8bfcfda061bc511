/* SPDX-License-Identifier: MIT */
/*
 * Fibers for Valgrind; see valgrind_test.sh. Without arguments it does everything that is correct.
 * With an argument it does a mistake or an event of that name.
 */
#include <janusrt/janus.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIBERS = 40, ROUNDS = 3, DEPTH = 20 };

static void expect(bool as_it_should, const char *what)
{
    if (as_it_should) return;
    fprintf(stderr, "valgrind_fibers: %s\n", what);
    exit(1);
}

/* Frames that are written before others run on their stacks, and read afterwards. */
__attribute__((noinline)) static int64_t descend(int depth)
{
    char room[200];
    memset(room, depth, sizeof room);
    expect(janus_fiber_suspend(NULL, NULL) == JANUS_OK, "suspend");
    int64_t below = depth > 0 ? descend(depth - 1) : 0;
    expect(janus_fiber_suspend(NULL, NULL) == JANUS_OK, "suspend");
    return below + room[0] + room[199];
}

static int64_t work(void *argument)
{
    char *heap = malloc(1000);
    memset(heap, 1, 1000);
    int64_t sum = descend(*(int *)argument);
    sum += heap[999];
    free(heap);
    return sum;
}

static janus_fiber *make(janus_fiber_pool *pool, janus_entry *entry, void *argument)
{
    janus_fiber *fiber = NULL;
    expect(janus_fiber_create(pool, entry, argument, NULL, &fiber) == JANUS_OK, "create");
    return fiber;
}

static janus_outcome enter(janus_fiber *fiber)
{
    janus_outcome outcome;
    expect(janus_fiber_resume(fiber, NULL, &outcome) == JANUS_OK, "resume");
    return outcome;
}

/* Many fibers side by side. Some run to their end, and some are abandoned halfway. */
static void churn(janus_fiber_pool *pool)
{
    static int   depth = DEPTH;
    janus_fiber *fibers[FIBERS];
    for (int i = 0; i < FIBERS; i++) fibers[i] = make(pool, work, &depth);
    for (int step = 0; step <= 2 * (DEPTH + 1); step++) {
        for (int i = 0; i < FIBERS; i++) {
            if (i % 4 == 3 && step >= i) continue; /* abandoned at various depths */
            janus_outcome outcome = enter(fibers[i]);
            bool          last = step == 2 * (DEPTH + 1);
            expect(outcome.state ==
                       (last ? JANUS_FIBER_STATE_COMPLETED : JANUS_FIBER_STATE_SUSPENDED),
                   "state");
            if (last) expect(outcome.result == DEPTH * (DEPTH + 1) + 1, "result");
        }
    }
    for (int i = 0; i < FIBERS; i++) {
        janus_fiber_stack_info info = JANUS_FIBER_STACK_INFO();
        expect(janus_fiber_stack_inspect(fibers[i], &info) == JANUS_OK, "stack");
        expect(janus_fiber_destroy(fibers[i]) == JANUS_OK, "destroy");
    }
}

static void everything(void)
{
    janus_fiber_pool_options *options[] = {
        NULL,
        JANUS_FIBER_POOL_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN, .measure = true),
        JANUS_FIBER_POOL_OPTIONS(.guard = JANUS_GUARD_CANARY, .stack_bytes = 16384,
                                 .idle_stack_bytes = 8 << 14),
    };
    for (int round = 0; round < ROUNDS; round++) {
        janus_fiber_pool *pools[3];
        for (int i = 0; i < 3; i++) {
            expect(janus_fiber_pool_create(options[i], &pools[i]) == JANUS_OK, "pool");
        }
        for (int i = 0; i < 6; i++) {
            churn(pools[i % 3]);
            (void)janus_fiber_pool_trim(pools[i % 3], (size_t)i << 14);
        }
        for (int i = 0; i < 3; i++) expect(janus_fiber_pool_destroy(pools[i]) == JANUS_OK, "gone");
    }
}

/* Mistakes in a fiber that Valgrind must report, otherwise its silence means nothing. */

static int64_t read_unwritten(void *argument)
{
    (void)argument;
    volatile char room[64];
    room[1] = 1;
    return room[7] == 5 ? 1 : 2;
}

static int64_t read_beyond(void *argument)
{
    (void)argument;
    static volatile int length = 16;
    char *volatile heap = malloc((size_t)length);
    char beyond = heap[length];
    free(heap);
    return beyond;
}

__attribute__((noinline)) static int64_t dig(int64_t depth)
{
    static volatile bool bottomless = true;
    volatile char        room[400];
    room[0] = (char)depth;
    return (bottomless ? dig(depth + 1) : 0) + room[0];
}

static int64_t overflow(void *argument)
{
    (void)argument;
    return dig(0);
}

static janus_outcome run_one(janus_entry *entry, janus_guard guard)
{
    janus_fiber_pool *pool;
    expect(janus_fiber_pool_create(JANUS_FIBER_POOL_OPTIONS(.guard = guard), &pool) == JANUS_OK,
           "pool");
    janus_fiber  *fiber = make(pool, entry, NULL);
    janus_outcome outcome = enter(fiber);
    expect(janus_fiber_destroy(fiber) == JANUS_OK, "destroy");
    expect(janus_fiber_pool_destroy(pool) == JANUS_OK, "gone");
    return outcome;
}

static void overflow_all(void)
{
    static const janus_guard rungs[] = {JANUS_GUARD_MARKER, JANUS_GUARD_MPROTECT};
    for (int i = 0; i < 2; i++) {
        if (!janus_guard_available(rungs[i])) continue;
        janus_outcome outcome = run_one(overflow, rungs[i]);
        expect(outcome.panic.kind == JANUS_PANIC_KIND_STACK_OVERFLOW, "overflow");
        printf("contained by %s\n", janus_guard_name(rungs[i]));
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "everything";
    if (strcmp(what, "everything") == 0) everything();
    if (strcmp(what, "unwritten") == 0)
        return run_one(read_unwritten, JANUS_GUARD_AUTO).result == 1;
    if (strcmp(what, "beyond") == 0) return run_one(read_beyond, JANUS_GUARD_AUTO).result == 1;
    if (strcmp(what, "overflow") == 0) overflow_all();
    return 0;
}

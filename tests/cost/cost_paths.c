/* SPDX-License-Identifier: MIT */
/*
 * How many instructions do the hot paths take? This program walks them, callgrind counts, and
 * cost_test.py compares with budget.txt.
 *
 *     cost_paths             all, under callgrind: two dumps for each path, "NAME OPERATIONS"
 *     cost_paths NAME SIZE   one, of any length, for a profiler; rather cachegrind, because
 *                            callgrind takes switches for calls (its totals are right)
 *
 * It walks a path three times: large, to get its memory, then small, then large. The difference of
 * the last two, divided by the difference of their operations, is the cost of one operation.
 * Beginnings, ends and the counting itself cancel out. A large walk is longer than a small one by a
 * slice, so the number includes the end of one slice.
 *
 * Nothing here depends on time or chance. The clock stands still, as in a deterministic run while
 * code runs, and there are no random numbers (cost_beside.c). Otherwise tasks' turns would end
 * where the machine is slow. (The clock's cost could not be counted anyway: Valgrind asks the
 * kernel.) Each path has a scheduler of its own, with one worker. Only the instructions of the
 * walking thread count, because the work of other threads at their start and end varies.
 *
 * Some paths are walked again beside a second worker, as "yield2". A task keeps that worker and
 * sleeps in the kernel. So nobody steals or has to be woken, and the count is what the possibility
 * costs.
 */
#include "cost_beside.h"
#include "cost_http.h"

#include "fiber/ctx.h"

#include <janusrt/janus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

enum { BATCH = 1000, ROOM = 128, SELECTED = 8, STACK_BYTES = 64 * 1024, BLOCK_BYTES = 64 };
enum { SMALL = 2000, LARGE = SMALL + JANUS_SLICE, SMALL_FIB = 13, LARGE_FIB = 18 };
enum { SMALL_RISE = 200, LARGE_RISE = 2000 };

/* Two tasks that meet keep their order, one always waiting and one always finding it, until one
 * loses its turn in between. To keep one order throughout, the tasks have less to do than a slice,
 * and more channel operations than they use. */
enum { SMALL_MEET = 1000, LARGE_MEET = 4000 };
static const janus_budget meeting = {.ops = 4 * JANUS_SLICE,
                                     .memory = 1 << 20,
                                     .spawn_count = BATCH,
                                     .channel_ops = 4 * JANUS_SLICE};

/* Far beyond the time at which the clock stands: armed, and never due. */
static const uint64_t never_due_ns = UINT64_C(1) << 60;

static void fail(const char *what)
{
    fprintf(stderr, "cost_paths: %s\n", what);
    exit(1);
}

static inline void need(janus_status status)
{
    if (status != JANUS_OK) fail(janus_status_text(status));
}

static int64_t nothing(void *argument)
{
    (void)argument;
    return 0;
}

/* A path walks this far and returns how many operations that was. */

/* Stacks. */

static _Alignas(64) char stack[STACK_BYTES];
static void *here, *there;

static void bounce(void *argument, int message)
{
    (void)argument;
    for (;;) message = jrt_ctx_switch(&there, here, message);
}

static uint64_t walk_switch(uint64_t size)
{
    there = jrt_ctx_make(stack + STACK_BYTES, bounce, NULL);
    for (uint64_t i = 0; i < size; i++) (void)jrt_ctx_switch(&here, there, 0);
    return 2 * size;
}

static int64_t suspend_forever(void *argument)
{
    (void)argument;
    while (janus_fiber_suspend(NULL, NULL) == JANUS_OK) continue;
    return 0;
}

static uint64_t walk_fiber(uint64_t size)
{
    janus_fiber_pool *pool = NULL;
    janus_fiber      *fiber = NULL;
    need(janus_fiber_pool_create(NULL, &pool));
    need(janus_fiber_create(pool, suspend_forever, NULL, NULL, &fiber));
    for (uint64_t i = 0; i < size; i++) need(janus_fiber_resume(fiber, NULL, NULL));
    janus_fiber_destroy(fiber);
    need(janus_fiber_pool_destroy(pool));
    return size;
}

/* Tasks. */

static int64_t yielder(void *argument)
{
    const uint64_t *times = argument;
    for (uint64_t i = 0; i < *times; i++) need(janus_yield());
    return 0;
}

static uint64_t walk_yield(uint64_t size)
{
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        need(janus_spawn(n, yielder, &size));
        need(janus_spawn(n, yielder, &size));
    }
    need(ended);
    return 2 * size;
}

static uint64_t walk_spawn(uint64_t size)
{
    for (uint64_t done = 0; done < size; done += BATCH) {
        janus_status ended;
        JANUS_NURSERY(n, ended)
        {
            for (int i = 0; i < BATCH; i++) need(janus_spawn(n, nothing, NULL));
        }
        need(ended);
    }
    return size;
}

static int64_t fib(void *argument)
{
    int64_t *n = argument;
    if (*n < 2) return 0;
    int64_t      left = *n - 1;
    int64_t      right = *n - 2;
    janus_status ended;
    JANUS_NURSERY(nursery, ended)
    {
        need(janus_spawn(nursery, fib, &left));
        (void)fib(&right);
    }
    *n = left + right;
    return ended;
}

/* fib(n) starts fib(n + 1) - 1 children. */
static uint64_t fib_forks(uint64_t size, int64_t result)
{
    int64_t a = 0, b = 1;
    for (uint64_t i = 0; i < size + 1; i++) {
        int64_t sum = a + b;
        a = b;
        b = sum;
    }
    if (result != b - a) fail("fib is wrong");
    return (uint64_t)a - 1;
}

static uint64_t walk_fib(uint64_t size)
{
    int64_t n = (int64_t)size;
    (void)fib(&n);
    return fib_forks(size, n);
}

static int64_t fork_fib(void *argument)
{
    int64_t *n = argument;
    if (*n < 2) return 0;
    int64_t left = *n - 1;
    int64_t right = *n - 2;
    if (janus_both(fork_fib, &left, fork_fib, &right) < 0) fail("a branch failed");
    *n = left + right;
    return 0;
}

static uint64_t walk_both(uint64_t size)
{
    int64_t n = (int64_t)size;
    (void)fork_fib(&n);
    return fib_forks(size, n);
}

static int64_t empty_body(void *argument, uint64_t begin, uint64_t end)
{
    (void)argument;
    for (uint64_t i = begin; i < end; i++) __asm__ volatile("" : : "r"(i));
    return 0;
}

/* By calls of eight indices: the work between them is counted. */
static uint64_t walk_for(uint64_t size)
{
    if (janus_for(janus_range_by(0, size, 8), empty_body, NULL) != 0) fail("a loop failed");
    return size / 8;
}

static uint64_t walk_nursery(uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) {
        janus_nursery nursery;
        need(janus_nursery_open(&nursery, NULL));
        need(janus_nursery_end(&nursery, NULL));
    }
    return size;
}

/* An error rises through this many nurseries. Each costs the same, whatever their number. */
static int64_t rise(void *argument)
{
    const uint64_t *levels = argument;
    uint64_t        rest = *levels - 1;
    janus_nursery   nursery;
    if (*levels == 0) return -1;
    need(janus_nursery_open(&nursery, NULL));
    need(janus_spawn(&nursery, rise, &rest));
    return janus_nursery_end(&nursery, NULL);
}

static uint64_t walk_rise(uint64_t size)
{
    if (rise(&size) != JANUS_CHILD_FAILED) fail("the error has not risen");
    return size;
}

/* Paying. */

static uint64_t walk_loop(uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) __asm__ volatile("" : "+r"(i));
    return size;
}

static uint64_t walk_check(uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) {
        __asm__ volatile("" : "+r"(i));
        if (janus_check() != JANUS_OK) fail("cancelled");
    }
    return size;
}

static uint64_t walk_charge(uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) need(janus_charge(janus_price_call()));
    return size;
}

static uint64_t walk_alloc(uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) {
        void *block = janus_alloc(BLOCK_BYTES);
        if (block == NULL) fail("no memory");
        janus_free(block);
    }
    return size;
}

/* Channels. */

static janus_channel open_channel(uint64_t capacity)
{
    janus_channel channel;
    need(janus_channel_create(sizeof(int64_t), capacity, NULL, &channel));
    return channel;
}

struct pair {
    janus_channel there, back;
    uint64_t      times;
};

static int64_t answer(void *argument)
{
    struct pair *pair = argument;
    int64_t      value = 0;
    while (janus_channel_recv(pair->there, &value) == JANUS_OK) {
        need(janus_channel_send(pair->back, &value));
    }
    return 0;
}

static int64_t ask(void *argument)
{
    struct pair *pair = argument;
    int64_t      value = 0;
    for (uint64_t i = 0; i < pair->times; i++) {
        need(janus_channel_send(pair->there, &value));
        need(janus_channel_recv(pair->back, &value));
    }
    return janus_channel_close(pair->there);
}

static int64_t ask_until(void *argument)
{
    struct pair *pair = argument;
    int64_t      value = 0;
    for (uint64_t i = 0; i < pair->times; i++) {
        need(janus_channel_send(pair->there, &value));
        need(janus_channel_recv_until(pair->back, &value, never_due_ns));
    }
    return janus_channel_close(pair->there);
}

static bool somebody_waits(janus_channel channel)
{
    janus_channel_info info = JANUS_CHANNEL_INFO();
    need(janus_channel_inspect(channel, &info));
    return info.senders + info.receivers > 0;
}

/* `first` waits for the other when `second` starts. */
static uint64_t meet(janus_entry *first, janus_entry *second, uint64_t times)
{
    struct pair  pair = {open_channel(0), open_channel(0), times};
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        need(janus_spawn(n, first, &pair));
        while (!somebody_waits(pair.there)) need(janus_yield());
        need(janus_spawn(n, second, &pair));
    }
    need(ended);
    need(janus_channel_destroy(pair.there));
    need(janus_channel_destroy(pair.back));
    return times;
}

/* In the first, every receive waits and every send finds the receiver. In the second it is the
 * reverse. */
static uint64_t walk_pingpong(uint64_t size) { return meet(answer, ask, size); }
static uint64_t walk_pongping(uint64_t size) { return meet(ask, answer, size); }
static uint64_t walk_deadline(uint64_t size) { return meet(answer, ask_until, size); }

struct source {
    janus_channel channel;
    uint64_t      times;
};

static int64_t produce(void *argument)
{
    struct source *source = argument;
    for (uint64_t i = 0; i < source->times; i++) need(janus_channel_send(source->channel, &i));
    return 0;
}

static uint64_t walk_buffered(uint64_t size)
{
    struct source source = {open_channel(ROOM), size};
    uint64_t      value = 0;
    janus_status  ended;
    JANUS_NURSERY(n, ended)
    {
        need(janus_spawn(n, produce, &source));
        for (uint64_t i = 0; i < size; i++) need(janus_channel_recv(source.channel, &value));
    }
    need(ended);
    need(janus_channel_destroy(source.channel));
    return size;
}

static uint64_t walk_prompt(uint64_t size)
{
    janus_channel channel = open_channel(ROOM);
    for (uint64_t i = 0, value = 0; i < size; i++) {
        need(janus_channel_send(channel, &value));
        need(janus_channel_recv_until(channel, &value, never_due_ns));
    }
    need(janus_channel_destroy(channel));
    return size;
}

static uint64_t walk_select(uint64_t size)
{
    struct source     sources[SELECTED];
    janus_select_case cases[SELECTED];
    uint64_t          value = 0;
    for (int i = 0; i < SELECTED; i++) {
        sources[i] = (struct source){open_channel(0), size / SELECTED};
        cases[i] = (janus_select_case){.channel = sources[i].channel, .value = &value};
    }
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < SELECTED; i++) need(janus_spawn(n, produce, &sources[i]));
        for (uint64_t i = 0; i < size; i++) {
            size_t chosen = 0;
            need(janus_select(cases, SELECTED, &chosen));
        }
    }
    need(ended);
    for (int i = 0; i < SELECTED; i++) need(janus_channel_destroy(sources[i].channel));
    return size;
}

static uint64_t walk_mutex(uint64_t size)
{
    janus_mutex mutex = JANUS_MUTEX_INIT("cost");
    for (uint64_t i = 0; i < size; i++) {
        need(janus_mutex_lock(&mutex));
        need(janus_mutex_unlock(&mutex));
    }
    return size;
}

/* Capabilities. */

/* A spawn capability of the first task; made when a path first asks for it. */
static bool minted;

static janus_cap spawn_cap(void)
{
    static janus_cap       cap;
    const janus_cap_limits limits = {.spawn = {.max_tasks = 2 * BATCH}};
    if (minted) return cap;
    janus_authority *root = NULL;
    need(janus_authority_take(NULL, &root));
    need(janus_cap_mint(root, 0,
                        JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = JANUS_RIGHTS_ALL,
                                        .limits = &limits),
                        &cap));
    minted = true;
    return cap;
}

static uint64_t walk_cap(uint64_t size)
{
    janus_cap cap = spawn_cap();
    for (uint64_t i = 0; i < size; i++) {
        need(janus_cap_check(cap, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_TASK));
    }
    return size;
}

static uint64_t walk_terms(uint64_t size)
{
    janus_cap cap = spawn_cap();
    for (uint64_t done = 0; done < size; done += BATCH) {
        janus_nursery n;
        need(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = cap)));
        for (int i = 0; i < BATCH; i++) need(janus_spawn(&n, nothing, NULL));
        need(janus_nursery_end(&n, NULL));
    }
    return size;
}

/* Actors, descriptors. */
#include "echo.h"
#include "hello.h"
#include "letters.h"

static const struct path {
    const char         *name;
    uint64_t            (*walk)(uint64_t size);
    uint64_t            small, large;
    bool                outside; /* of tasks */
    const janus_budget *budget;  /* of each task. NULL: the usual */
} paths[] = {
    {"switch", walk_switch, SMALL, LARGE, true, NULL},
    {"fiber", walk_fiber, SMALL, LARGE, true, NULL},
    {"yield", walk_yield, SMALL, LARGE, false, NULL},
    {"spawn", walk_spawn, SMALL, LARGE, false, NULL},
    {"fib", walk_fib, SMALL_FIB, LARGE_FIB, false, NULL},
    {"both", walk_both, SMALL_FIB, LARGE_FIB, false, NULL},
    {"for", walk_for, SMALL, LARGE, false, NULL},
    {"nursery", walk_nursery, SMALL, LARGE, false, NULL},
    {"rise", walk_rise, SMALL_RISE, LARGE_RISE, false, NULL},
    {"loop", walk_loop, SMALL, LARGE, false, NULL},
    {"check", walk_check, SMALL, LARGE, false, NULL},
    {"charge", walk_charge, SMALL, LARGE, false, NULL},
    {"alloc", walk_alloc, SMALL, LARGE, false, NULL},
    {"pingpong", walk_pingpong, SMALL_MEET, LARGE_MEET, false, &meeting},
    {"pongping", walk_pongping, SMALL_MEET, LARGE_MEET, false, &meeting},
    {"buffered", walk_buffered, SMALL, LARGE, false, NULL},
    {"select", walk_select, SMALL, LARGE, false, NULL},
    {"deadline", walk_deadline, SMALL_MEET, LARGE_MEET, false, &meeting},
    {"prompt", walk_prompt, SMALL, LARGE, false, NULL},
    {"mutex", walk_mutex, SMALL, LARGE, false, NULL},
    {"cap", walk_cap, SMALL, LARGE, false, NULL},
    {"terms", walk_terms, SMALL, LARGE, false, NULL},
    {"cast", walk_cast, SMALL, LARGE, false, NULL},
    {"castbusy", walk_castbusy, SMALL, LARGE, false, NULL},
    {"handle", walk_handle, SMALL, LARGE, false, NULL},
    {"head", walk_small_head, SMALL, LARGE, true, NULL},
    {"longhead", walk_large_head, SMALL, LARGE, true, NULL},
    {"chunk", walk_chunk, SMALL, LARGE, true, NULL},
    {"echo", walk_echo, SMALL_MEET, LARGE_MEET, false, NULL},
    {"hello", walk_hello, SMALL_MEET, LARGE_MEET, false, NULL},
};

enum { PATHS = sizeof paths / sizeof paths[0] };

/* Those that are walked beside a second worker, too. */
static const char *const besides[] = {"yield",    "spawn",    "fib",  "both",
                                      "pingpong", "buffered", "mutex"};

enum { BESIDES = sizeof besides / sizeof besides[0] };

static unsigned workers = 1;

/* Dumps what was counted since the last dump, under the name of the path. */
static void dump(const char *name, uint64_t operations)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s%s %llu", name, workers == 2 ? "2" : "",
                   (unsigned long long)operations);
    CALLGRIND_DUMP_STATS_AT(text);
}

static int64_t measure(void *argument)
{
    const struct path *path = argument;
    (void)path->walk(path->large);
    CALLGRIND_ZERO_STATS;
    dump(path->name, path->walk(path->small));
    dump(path->name, path->walk(path->large));
    return 0;
}

static uint64_t profiled_size;

static int64_t walk_once(void *argument)
{
    const struct path *path = argument;
    (void)path->walk(path->small); /* the first walk differs from the rest */
    (void)path->walk(profiled_size);
    return 0;
}

/* An explicit limit, above the number of tasks of any path. */
enum { TASKS_MAX = 4 * BATCH };

static void run(const struct path *path, janus_entry *entry)
{
    if (path->outside) {
        (void)entry((void *)path);
        return;
    }
    minted = false; /* the new scheduler has no capability yet */
    struct cost_beside both = {entry, (void *)path};
    need(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_tasks = TASKS_MAX,
                                           .task_budget = path->budget),
                   workers == 2 ? cost_beside : entry, workers == 2 ? (void *)&both : (void *)path,
                   NULL));
}

static bool is_walked_beside(const struct path *path)
{
    for (int i = 0; i < BESIDES; i++) {
        if (strcmp(path->name, besides[i]) == 0) return true;
    }
    return false;
}

/* Walks one path, or all; how many. */
static int walk_all(const char *only)
{
    int found = 0;
    for (int i = 0; i < PATHS; i++) {
        size_t length = strlen(paths[i].name);
        if (workers == 2 && !is_walked_beside(&paths[i])) continue;
        if (only != NULL && (strncmp(paths[i].name, only, length) != 0 ||
                             strcmp(only + length, workers == 2 ? "2" : "") != 0)) {
            continue;
        }
        run(&paths[i], only != NULL ? walk_once : measure);
        found++;
    }
    return found;
}

int main(int argc, char **argv)
{
    if (argc != 1 && argc != 3) fail("usage: cost_paths [NAME SIZE]");
    if (argc == 3) profiled_size = strtoull(argv[2], NULL, 10);
    const char *only = argc == 3 ? argv[1] : NULL;
    int         found = walk_all(only);
    workers = 2;
    found += walk_all(only);
    if (found == 0) fail("no such path");
    return 0;
}

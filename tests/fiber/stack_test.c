/* SPDX-License-Identifier: MIT */
/* Stacks: sizes, guards, reuse, depth, returning memory. */
#include "world.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if JRT_ASAN || JRT_TSAN
enum { INSTRUMENTED = 1 };
#else
enum { INSTRUMENTED = 0 };
#endif

#if JRT_TSAN /* gcc's TSan supports 8128 fibers */
enum { CROWD = 4000 };
#elif JRT_ASAN || defined(__aarch64__)
enum { CROWD = 10000 };
#else
enum { CROWD = 100000 };
#endif

static int64_t park(void *argument)
{
    if (janus_fiber_suspend(argument, NULL) != JANUS_OK) return -1;
    return 1;
}

TEST("each profile reserves the stack that the documents promise")
{
    CHECK_EQ(janus_profile_stack_bytes(JANUS_PROFILE_CORE), 64 * 1024);
    CHECK_EQ(janus_profile_stack_bytes(JANUS_PROFILE_SERVICE), 256 * 1024);
    CHECK_EQ(janus_profile_stack_bytes(JANUS_PROFILE_CLUSTER), 256 * 1024);
    CHECK_EQ(janus_profile_stack_bytes(JANUS_PROFILE_SOVEREIGN), 512 * 1024);
    CHECK_EQ(janus_profile_stack_bytes(JANUS_PROFILE_DEFAULT), JANUS_STACK_BYTES_SERVICE);
    CHECK_EQ(janus_profile_stack_bytes((janus_profile)5), 0);
    _Static_assert(JANUS_STACK_BYTES_CORE == 65536, "G:stackdefaults");
    _Static_assert(JANUS_STACK_BYTES_SOVEREIGN == 524288, "G:stackdefaults");
    for (janus_profile p = JANUS_PROFILE_CORE; p <= JANUS_PROFILE_SOVEREIGN; p++) {
        janus_fiber_pool      *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.profile = p));
        janus_fiber           *fiber = fiber_new(pool, park, NULL);
        janus_fiber_stack_info info = JANUS_FIBER_STACK_INFO();
        CHECK_EQ(janus_fiber_stack_inspect(fiber, &info), JANUS_OK);
        if (!INSTRUMENTED) CHECK_EQ(info.reserved_bytes, janus_profile_stack_bytes(p));
        CHECK(info.reserved_bytes >= janus_profile_stack_bytes(p));
        janus_fiber_destroy(fiber);
        pool_close(pool);
    }
}

/* A frame of the argument's size in KiB, with every page written, and a printf on top. */
static int64_t big_frame(void *argument)
{
    size_t         bytes = (size_t)(uintptr_t)argument * 1024;
    volatile char *frame = __builtin_alloca(bytes);
    for (size_t i = 0; i < bytes; i += 512) frame[i] = 1;
    char text[64];
    return snprintf(text, sizeof text, "%zu %f", bytes, (double)bytes);
}

static void frame_fits(janus_profile profile, uintptr_t kib)
{
    janus_fiber_pool *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.profile = profile));
    CHECK_EQ(run_once(pool, big_frame, (void *)kib).state, JANUS_FIBER_STATE_COMPLETED);
    pool_close(pool);
}

TEST("the frames that real libraries need fit the default stacks")
{
    frame_fits(JANUS_PROFILE_CORE, 48);
    frame_fits(JANUS_PROFILE_SERVICE, 60);
    frame_fits(JANUS_PROFILE_SERVICE, 200);
    frame_fits(JANUS_PROFILE_SOVEREIGN, 450);
}

TEST("a fiber may ask for more or less stack than its pool gives")
{
    janus_fiber_pool *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.stack_bytes = 64 * 1024));
    size_t            sizes[] = {8 * 1024, 16 * 1024, 100 * 1000, 512 * 1024, 8 << 20, 1 << 30};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        janus_fiber           *fiber = NULL;
        janus_fiber_stack_info info = JANUS_FIBER_STACK_INFO();
        CHECK_EQ(janus_fiber_create(pool, big_frame, (void *)(sizes[i] / 1024 / 2),
                                    JANUS_FIBER_OPTIONS(.stack_bytes = sizes[i]), &fiber),
                 JANUS_OK);
        CHECK_EQ(janus_fiber_stack_inspect(fiber, &info), JANUS_OK);
        CHECK(info.reserved_bytes >= sizes[i]);
        if (i > 0 && i < 5) CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_COMPLETED);
        janus_fiber_destroy(fiber);
    }
    pool_close(pool);
}

TEST("the minimum stack runs a small fiber")
{
    janus_fiber_pool *pool =
        pool_with(JANUS_FIBER_POOL_OPTIONS(.stack_bytes = JANUS_STACK_BYTES_MIN));
    CHECK_EQ(run_once(pool, park, NULL).state, JANUS_FIBER_STATE_SUSPENDED);
    pool_close(pool);
}

TEST("the stack info names the rung in use, and a forced rung is the rung of all stacks")
{
    janus_guard rungs[] = {JANUS_GUARD_MARKER, JANUS_GUARD_MPROTECT, JANUS_GUARD_CANARY};
    for (size_t i = 0; i < 3; i++) {
        if (!janus_guard_available(rungs[i])) {
            janus_fiber_pool *pool = NULL;
            CHECK_EQ(janus_fiber_pool_create(JANUS_FIBER_POOL_OPTIONS(.guard = rungs[i]), &pool),
                     JANUS_UNAVAILABLE);
            continue;
        }
        janus_fiber_pool      *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.guard = rungs[i]));
        janus_fiber           *fiber = fiber_new(pool, park, NULL);
        janus_fiber_stack_info info = JANUS_FIBER_STACK_INFO();
        (void)resume(fiber, NULL);
        CHECK_EQ(janus_fiber_stack_inspect(fiber, &info), JANUS_OK);
        CHECK_EQ(info.guard, rungs[i]);
        CHECK_EQ(stats_of(pool).guard, rungs[i]);
        janus_fiber_destroy(fiber);
        pool_close(pool);
    }
    janus_fiber_pool *pool = pool_new();
    CHECK_EQ(stats_of(pool).guard,
             janus_guard_available(JANUS_GUARD_MARKER) ? JANUS_GUARD_MARKER : JANUS_GUARD_MPROTECT);
    pool_close(pool);
}

TEST("a forced mprotect rung returns FULL when its mappings are used up, and loses nothing")
{
    janus_fiber_pool *pool = pool_with(
        JANUS_FIBER_POOL_OPTIONS(.guard = JANUS_GUARD_MPROTECT, .max_guard_mappings = 20));
    janus_fiber *fibers[21];
    for (int i = 0; i < 20; i++) {
        fibers[i] = fiber_new(pool, park, NULL);
        CHECK_EQ(resume(fibers[i], NULL).state, JANUS_FIBER_STATE_SUSPENDED);
    }
    fibers[20] = fiber_new(pool, park, NULL);
    CHECK_EQ(janus_fiber_resume(fibers[20], NULL, NULL), JANUS_FULL);
    CHECK_EQ(janus_fiber_state_of(fibers[20]), JANUS_FIBER_STATE_NEW);
    CHECK_EQ(stats_of(pool).stacks_mprotect, 20);
    janus_fiber_destroy(fibers[0]);
    CHECK_EQ(resume(fibers[20], NULL).state, JANUS_FIBER_STATE_SUSPENDED);
    for (int i = 1; i < 21; i++) janus_fiber_destroy(fibers[i]);
    CHECK(janus_fiber_pool_trim(pool, 0) > 0);
    CHECK_EQ(stats_of(pool).stacks_mprotect, 0);
    pool_close(pool);
}

static volatile char sink;

static int64_t read_at(void *address)
{
    sink = *(volatile char *)address;
    return 0;
}

/* Reads the byte `offset` below a suspended fiber's stack. A fault there is not an overflow of the
 * reader, so it ends the process. */
static void read_foreign_guard(void *argument)
{
    janus_fiber_pool *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.guard = *(janus_guard *)argument));
    janus_fiber      *fiber = fiber_new(pool, park, NULL);
    janus_fiber_stack_info info = JANUS_FIBER_STACK_INFO();
    (void)resume(fiber, NULL);
    CHECK_EQ(janus_fiber_stack_inspect(fiber, &info), JANUS_OK);
    (void)run_once(pool, read_at, (char *)(uintptr_t)info.low - 1);
}

TEST("a fiber that touches the guard of another fiber's stack ends the process")
{
    janus_guard rungs[] = {JANUS_GUARD_MARKER, JANUS_GUARD_MPROTECT};
    for (size_t i = 0; i < 2; i++) {
        if (!janus_guard_available(rungs[i])) continue;
        int status = 0;
        harness_child(read_foreign_guard, &rungs[i], &status);
        CHECK(status != 0);
    }
}

static int64_t write_deep(void *argument)
{
    size_t         bytes = (size_t)(uintptr_t)argument;
    volatile char *frame = __builtin_alloca(bytes);
    frame[0] = 1;
    if (janus_fiber_suspend(NULL, NULL) != JANUS_OK) return -1;
    return frame[0];
}

TEST("the high-water mark follows the deepest byte written")
{
    janus_fiber_pool *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.measure = true));
    size_t depths[] = {100000, 3000, 50000}; /* the second reuses the first one's stack */
    for (int i = 0; i < 3; i++) {
        janus_fiber           *fiber = fiber_new(pool, write_deep, (void *)depths[i]);
        janus_fiber_stack_info info = JANUS_FIBER_STACK_INFO();
        (void)resume(fiber, NULL);
        CHECK_EQ(janus_fiber_stack_inspect(fiber, &info), JANUS_OK);
        CHECK(info.high_water_bytes >= depths[i]);
        CHECK(info.high_water_bytes < depths[i] + 4096 * (INSTRUMENTED ? 4 : 1));
        CHECK_EQ(resume(fiber, NULL).result, 1);
        janus_fiber_destroy(fiber);
    }
    CHECK(stats_of(pool).high_water_bytes >= 100000);
    CHECK(stats_of(pool).high_water_bytes < 110000 + (INSTRUMENTED ? 8192 : 0));
    pool_close(pool);
}

TEST("a spent budget of mappings stops no fiber while idle stacks are left")
{
    janus_fiber_pool *pool = pool_with(
        JANUS_FIBER_POOL_OPTIONS(.guard = JANUS_GUARD_MPROTECT, .max_guard_mappings = 150));
    janus_fiber *fibers[150];
    for (int i = 0; i < 150; i++) {
        fibers[i] = fiber_new(pool, park, NULL);
        (void)resume(fibers[i], NULL);
    }
    for (int i = 0; i < 120; i++) janus_fiber_destroy(fibers[i]);
    janus_fiber_pool_trim(pool, SIZE_MAX); /* empties the caches, keeps the stacks */
    for (int i = 0; i < 120; i++) {
        fibers[i] = fiber_new(pool, park, NULL);
        CHECK_EQ(resume(fibers[i], NULL).state, JANUS_FIBER_STATE_SUSPENDED);
    }
    for (int i = 0; i < 150; i++) janus_fiber_destroy(fibers[i]);
    pool_close(pool);
}

__attribute__((noinline)) static int64_t dig_in_large_steps(int64_t depth)
{
    static volatile bool bottomless = true;
    volatile char        room[9000];
    room[100] = (char)depth;
    return (bottomless ? dig_in_large_steps(depth + 1) : 0) + room[100];
}

static int64_t overflow_in_large_steps(void *argument)
{
    (void)argument;
    return dig_in_large_steps(0);
}

TEST("frames of several pages do not step over the guard")
{
    for (janus_profile p = JANUS_PROFILE_CORE; p <= JANUS_PROFILE_SOVEREIGN; p++) {
        janus_fiber_pool *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.profile = p));
        CHECK_EQ(run_once(pool, overflow_in_large_steps, NULL).panic.kind,
                 JANUS_PANIC_KIND_STACK_OVERFLOW);
        pool_close(pool);
    }
    janus_fiber_pool *small =
        pool_with(JANUS_FIBER_POOL_OPTIONS(.stack_bytes = JANUS_STACK_BYTES_MIN));
    CHECK_EQ(run_once(small, overflow_in_large_steps, NULL).panic.kind,
             JANUS_PANIC_KIND_STACK_OVERFLOW);
    pool_close(small);
}

static int64_t write_secret(void *argument)
{
    volatile uint64_t secret[2000];
    for (int i = 0; i < 2000; i++) secret[i] = UINT64_C(0xfeedfacecafebeef);
    (void)argument;
    return (int64_t)(secret[7] & 1);
}

/* Searches its own stack for a former fiber's words. */
__attribute__((no_sanitize("address"))) static int64_t find_secret(void *argument)
{
    const char              *here = __builtin_frame_address(0);
    const volatile uint64_t *word = (const volatile uint64_t *)(here - 15000);
    int64_t                  found = 0;
    (void)argument;
    for (; (const char *)word < here - 2000; word++) found += *word == UINT64_C(0xfeedfacecafebeef);
    return found;
}

TEST("a scrubbing pool gives out stacks without the former fiber's words")
{
    janus_fiber_pool *plain = pool_new();
    (void)run_once(plain, write_secret, NULL);
    int64_t seen = run_once(plain, find_secret, NULL).result;
    if (!INSTRUMENTED) CHECK(seen > 0); /* so that the next check means something */
    pool_close(plain);
    janus_fiber_pool *scrubbing = pool_with(JANUS_FIBER_POOL_OPTIONS(.scrub = true));
    janus_fiber_pool *sovereign =
        pool_with(JANUS_FIBER_POOL_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN));
    (void)run_once(scrubbing, write_secret, NULL);
    CHECK_EQ(run_once(scrubbing, find_secret, NULL).result, 0);
    (void)run_once(sovereign, write_secret, NULL);
    CHECK_EQ(run_once(sovereign, find_secret, NULL).result, 0);
    pool_close(scrubbing);
    pool_close(sovereign);
}

static void scrub_locked_memory(void *argument)
{
    (void)argument;
    janus_fiber_pool *before = pool_new(); /* made while markers still work */
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) _exit(77);
    janus_fiber_pool *sovereign =
        pool_with(JANUS_FIBER_POOL_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN));
    (void)run_once(sovereign, write_secret, NULL);
    CHECK_EQ(run_once(sovereign, find_secret, NULL).result, 0);
    CHECK_EQ(run_once(before, park, NULL).state, JANUS_FIBER_STATE_SUSPENDED); /* steps down */
}

TEST("scrubbing and guards also work in locked memory")
{
    int status = 0;
    harness_child(scrub_locked_memory, NULL, &status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) SKIP("memory cannot be locked here");
    CHECK_EQ(status, 0);
}

static size_t read_field(const char *path, const char *field)
{
    char  line[256];
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    size_t kib = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) sscanf(line + strlen(field), " %zu", &kib);
    }
    fclose(file);
    return kib * 1024;
}

/* Resident memory and page tables: what this process costs the machine. */
static size_t footprint(void)
{
    return read_field("/proc/self/status", "VmRSS:") + read_field("/proc/self/status", "VmPTE:");
}

static janus_fiber *crowd[CROWD];

TEST("a crowd of parked, guarded fibers costs little more than a page each, and all of it returns")
{
    janus_fiber_pool *pool = pool_new();
    memset(crowd, 1, sizeof crowd); /* not counted below */
    (void)run_once(pool, park, NULL);
    size_t baseline = footprint();
    for (int i = 0; i < CROWD; i++) crowd[i] = fiber_new(pool, park, (void *)(intptr_t)i);
    size_t unstarted = footprint();
    for (int i = 0; i < CROWD; i++) {
        CHECK_EQ((intptr_t)resume(crowd[i], NULL).value, i);
    }
    size_t                started = footprint();
    janus_fiber_pool_info stats = stats_of(pool);
    CHECK_EQ(stats.stacks_attached, CROWD);
    if (janus_guard_available(JANUS_GUARD_MARKER)) CHECK(stats.stacks_marker >= CROWD);
    for (int i = 0; i < CROWD; i++) {
        if (i % 2 == 0) CHECK_EQ(resume(crowd[i], NULL).result, 1);
        CHECK_EQ(janus_fiber_destroy(crowd[i]), JANUS_OK);
    }
    janus_fiber_pool_trim(pool, 0);
    size_t after = footprint();
    stats = stats_of(pool);
    CHECK_EQ(stats.stacks_idle, 0);
    CHECK_EQ(stats.reserved_bytes, 0);
    CHECK_EQ(stats.record_bytes, 0);
    pool_close(pool);
#if !JRT_ASAN && !JRT_TSAN && !defined(__aarch64__) /* emulation and shadow memory add their own */
    CHECK(unstarted - baseline <= (size_t)CROWD * 256);
    CHECK(started - unstarted <= (size_t)CROWD * 5 * 1024);
    CHECK(after <= baseline + (size_t)CROWD * 16);
#else
    (void)baseline, (void)unstarted, (void)started, (void)after;
#endif
}

TEST("above the limit, idle stacks return to the system without a trim")
{
    janus_fiber_pool *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.idle_stack_bytes = 100 << 14));
    for (int i = 0; i < 2000; i++) {
        crowd[i] = fiber_new(pool, park, NULL);
        (void)resume(crowd[i], NULL);
    }
    size_t reserved = stats_of(pool).reserved_bytes;
    for (int i = 0; i < 2000; i++) janus_fiber_destroy(crowd[i]);
    CHECK(stats_of(pool).slabs_released > 0);
    CHECK(stats_of(pool).reserved_bytes < reserved / 2);
    pool_close(pool);
}

TEST("above the limit, idle pages also return from between stacks in use")
{
#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
    SKIP("emulation and shadow memory have a footprint of their own");
#endif
    enum { MANY = 4000 };
    janus_fiber_pool *pool = pool_with(JANUS_FIBER_POOL_OPTIONS(.idle_stack_bytes = 100 << 14));
    for (int i = 0; i < MANY; i++) {
        crowd[i] = fiber_new(pool, park, NULL);
        (void)resume(crowd[i], NULL);
    }
    size_t all = footprint();
    for (int i = 0; i < MANY; i += 2) janus_fiber_destroy(crowd[i]);
    size_t half = footprint();
    CHECK(all - half > (size_t)MANY / 2 * 4096 * 3 / 4);
    for (int i = 1; i < MANY; i += 2) janus_fiber_destroy(crowd[i]);
    pool_close(pool);
}

TEST("trimming drops idle pages between stacks in use, and those keep their bytes")
{
    janus_fiber_pool *pool = pool_new();
    for (int i = 0; i < 300; i++) {
        crowd[i] = fiber_new(pool, write_deep, (void *)20000);
        (void)resume(crowd[i], NULL);
    }
    for (int i = 0; i < 300; i++) {
        if (i % 3 != 0) janus_fiber_destroy(crowd[i]);
    }
    CHECK(janus_fiber_pool_trim(pool, 0) > 0);
    CHECK_EQ(stats_of(pool).stacks_attached, 100);
    for (int i = 0; i < 300; i += 3) {
        CHECK_EQ(resume(crowd[i], NULL).result, 1);
        janus_fiber_destroy(crowd[i]);
    }
    pool_close(pool);
}

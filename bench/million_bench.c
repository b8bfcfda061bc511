/* SPDX-License-Identifier: MIT */
/*
 * What do a million fibers cost, in memory and in time?
 *
 * Timed: making 1,000,000 fibers, resuming each until it parks, a second round over all of them,
 *        ending them, and returning the memory. Memory is VmRSS + VmPTE, less the value before. In
 *        between, the bench touches as many pages of a plain mapping, equally far apart: the
 *        kernel's cost of the first touch alone.
 * Moves it: the first touch of a page (nearly all of it), guard installation, page tables.
 * Expect: at most 5 KiB for a fiber beyond its record, 256 bytes for an unstarted one.
 */
#include "bench.h"

#include <janusrt/janus.h>
#include <sys/mman.h>

enum { FIBERS = 1000000, PORTION = 10000, TURNS = 3 };

static janus_fiber *fibers[FIBERS];

static int64_t park(void *argument)
{
    (void)argument;
    return janus_fiber_suspend(NULL, NULL) == JANUS_OK ? 0 : -1;
}

static size_t status_bytes(const char *field)
{
    char   line[256];
    size_t kib = 0;
    FILE  *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) sscanf(line + strlen(field), " %zu", &kib);
    }
    if (file != NULL) fclose(file);
    return kib * 1024;
}

static double footprint(void) { return (double)(status_bytes("VmRSS:") + status_bytes("VmPTE:")); }

static void check(janus_status status)
{
    if (status == JANUS_OK) return;
    fprintf(stderr, "million_bench: %s\n", janus_status_text(status));
    exit(1);
}

/* A plain mapping to touch page after page, as far apart as stacks. */
static char *plain_map(size_t spacing)
{
    char *base = mmap(NULL, spacing * FIBERS, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) check(JANUS_NO_MEMORY);
    madvise(base, spacing * FIBERS, MADV_NOHUGEPAGE);
    return base;
}

static double touch_pages(char *base, size_t spacing, size_t from, size_t to)
{
    uint64_t start = bench_now_ns();
    for (size_t i = from; i < to; i++) ((volatile char *)base)[(i + 1) * spacing - 8] = 1;
    return (double)(bench_now_ns() - start);
}

static double resume_some(size_t from, size_t to)
{
    uint64_t start = bench_now_ns();
    for (size_t i = from; i < to; i++) check(janus_fiber_resume(fibers[i], NULL, NULL));
    return (double)(bench_now_ns() - start);
}

/* One turn over a million fibers. */
struct turn {
    double                made, parked, left;                    /* bytes each, each, in all */
    double                make, park, touch, end, destroy, trim; /* nanoseconds each */
    janus_fiber_pool_info stats;
};

static void run_turn(size_t stack_bytes, struct turn *turn)
{
    janus_fiber_pool *pool;
    check(janus_fiber_pool_create(JANUS_FIBER_POOL_OPTIONS(.stack_bytes = stack_bytes), &pool));
    double   base = footprint();
    uint64_t start = bench_now_ns();
    for (size_t i = 0; i < FIBERS; i++)
        check(janus_fiber_create(pool, park, NULL, NULL, &fibers[i]));
    turn->make = (double)(bench_now_ns() - start) / (double)FIBERS;
    double made = footprint();
    turn->made = (made - base) / (double)FIBERS;
    /* In small portions side by side, so that both get memory at the same moments. A page costs
     * more if the host of a virtual machine has to find it first. */
    size_t spacing = (size_t)272 * 1024;
    char  *plain = plain_map(spacing);
    double touched = 0;
    turn->park = turn->touch = 0;
    for (size_t i = 0; i < FIBERS; i += PORTION) {
        turn->park += resume_some(i, i + PORTION) / (double)FIBERS;
        double before = footprint();
        turn->touch += touch_pages(plain, spacing, i, i + PORTION) / (double)FIBERS;
        touched += footprint() - before;
    }
    turn->parked = (footprint() - touched - made) / (double)FIBERS;
    munmap(plain, spacing * FIBERS);

    turn->stats.struct_bytes = sizeof turn->stats;
    check(janus_fiber_pool_inspect(pool, &turn->stats));
    turn->end = resume_some(0, FIBERS) / (double)FIBERS; /* each returns and ends */
    start = bench_now_ns();
    for (size_t i = 0; i < FIBERS; i++) check(janus_fiber_destroy(fibers[i]));
    turn->destroy = (double)(bench_now_ns() - start) / (double)FIBERS;
    start = bench_now_ns();
    (void)janus_fiber_pool_trim(pool, 0);
    turn->trim = (double)(bench_now_ns() - start) / (double)FIBERS;
    turn->left = (footprint() - base) / 1024;
    check(janus_fiber_pool_destroy(pool));
}

static void run(const char *bench, size_t stack_bytes)
{
    struct turn turns[TURNS];
    struct turn best = {0};
    printf("\n%d fibers with %zu KiB of stack each, best of %d turns:\n", FIBERS,
           stack_bytes / 1024, TURNS);
    for (int i = 0; i < TURNS; i++) {
        run_turn(stack_bytes, &turns[i]);
        printf("turn %d: first resume %.0f ns, touch alone %.0f ns\n", i + 1, turns[i].park,
               turns[i].touch);
        if (i == 0) best = turns[0];
        if (turns[i].park < best.park) best.park = turns[i].park;
        if (turns[i].touch < best.touch) best.touch = turns[i].touch;
        if (turns[i].end < best.end) best.end = turns[i].end;
    }
    bench_say(bench, "unstarted, bytes each", best.made, "B");
    bench_say(bench, "parked, bytes each beyond that", best.parked, "B");
    bench_say(bench, "left after trim, all together", best.left, "KiB");
    bench_say(bench, "make", best.make, "ns");
    bench_say(bench, "first resume, until parked", best.park, "ns");
    bench_say(bench, "touching a page, the kernel alone", best.touch, "ns");
    bench_say(bench, "second resume, to the end", best.end, "ns");
    bench_say(bench, "destroy", best.destroy, "ns");
    bench_say(bench, "trim", best.trim, "ns");
    printf("guards: %zu marker, %zu mprotect, %zu canary\n", best.stats.stacks_marker,
           best.stats.stacks_mprotect, best.stats.stacks_canary);
}

int main(void)
{
    memset(fibers, 1, sizeof fibers);
    run("million_256k", (size_t)256 * 1024);
    run("million_16k", (size_t)16 * 1024);
    return 0;
}

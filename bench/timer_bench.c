/* SPDX-License-Identifier: MIT */
/*
 * What does a deadline cost, with a thousand and with a million others waiting?
 *
 * Timed: arm and disarm of one timer that never comes due (a wait that is answered in time). Pop of
 *        the earliest and arming it again later (a sleep). The other timers stay armed, at random
 *        deadlines. Beside it the same on a heap with two children for each node. And once, arming
 *        a million timers one after the other, with all the growing, and popping them.
 * Moves it: cache misses. It takes 16 bytes for an entry, 24 for a timer, so a million take 40 MB.
 * Expect: 15 to 20 ns to arm and disarm. A sleep takes 35 ns among a thousand, 250 among a million.
 */
#include "bench.h"
#include "sched/timer.h"

enum { FEW = 1000, MANY = 1000000, ROUNDS = 100000, SPAN_NS = 1000000000 };

static double each(uint64_t spent_ns, int count) { return (double)spent_ns / count; }

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t random_next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void check(bool works)
{
    if (works) return;
    fprintf(stderr, "timer_bench: no memory\n");
    exit(1);
}

/* The rival: a plain binary heap with the same entries and places. */
struct pair_heap {
    struct jrt_timer_entry *entries; /* root at 1 */
    uint32_t                count;
};

static void pair_put(struct pair_heap *heap, uint32_t slot, struct jrt_timer_entry entry)
{
    heap->entries[slot] = entry;
    entry.timer->index = slot;
}

static void pair_rise(struct pair_heap *heap, uint32_t slot, struct jrt_timer_entry entry)
{
    for (; slot > 1 && entry.deadline_ns < heap->entries[slot / 2].deadline_ns; slot /= 2) {
        pair_put(heap, slot, heap->entries[slot / 2]);
    }
    pair_put(heap, slot, entry);
}

static void pair_sink(struct pair_heap *heap, uint32_t slot, struct jrt_timer_entry entry)
{
    for (uint32_t child; (child = slot * 2) <= heap->count; slot = child) {
        if (child < heap->count &&
            heap->entries[child + 1].deadline_ns < heap->entries[child].deadline_ns) {
            child++;
        }
        if (entry.deadline_ns <= heap->entries[child].deadline_ns) break;
        pair_put(heap, slot, heap->entries[child]);
    }
    pair_put(heap, slot, entry);
}

static void pair_arm(struct pair_heap *heap, struct jrt_timer *timer, uint64_t deadline_ns)
{
    timer->deadline_ns = deadline_ns;
    struct jrt_timer_entry entry = {.deadline_ns = deadline_ns, .timer = timer};
    pair_rise(heap, ++heap->count, entry);
}

static void pair_disarm(struct pair_heap *heap, struct jrt_timer *timer)
{
    struct jrt_timer_entry last = heap->entries[heap->count--];
    uint32_t               slot = timer->index;
    timer->index = 0;
    if (last.timer == timer) return;
    if (slot > 1 && last.deadline_ns < heap->entries[slot / 2].deadline_ns) {
        pair_rise(heap, slot, last);
    } else {
        pair_sink(heap, slot, last);
    }
}

static struct jrt_timers few, many;
static struct pair_heap  pair_few, pair_many;

static void fill(struct jrt_timers *timers, struct pair_heap *pairs, uint32_t count)
{
    struct jrt_timer *mine = calloc(count, sizeof *mine);
    struct jrt_timer *theirs = calloc(count, sizeof *theirs);
    pairs->entries = aligned_alloc(64, ((size_t)count + 4) / 4 * 64 + 64);
    check(mine != NULL && theirs != NULL && pairs->entries != NULL);
    jrt_timers_init(timers);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t deadline_ns = random_next() % SPAN_NS;
        check(jrt_timer_arm(timers, &mine[i], deadline_ns));
        pair_arm(pairs, &theirs[i], deadline_ns);
    }
}

/* One of a few waits: armed behind the others, disarmed before it is due. */
static double arm_disarm(struct jrt_timers *timers)
{
    static struct jrt_timer waits[16];
    uint64_t                base = jrt_timers_next(timers);
    uint64_t                start = bench_now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        struct jrt_timer *timer = &waits[i % 16];
        jrt_timer_disarm(timers, timer);
        check(jrt_timer_arm(timers, timer, base + random_next() % SPAN_NS));
    }
    double spent = each(bench_now_ns() - start, ROUNDS);
    for (int i = 0; i < 16; i++) jrt_timer_disarm(timers, &waits[i]);
    return spent;
}

static double pair_arm_disarm(struct pair_heap *heap)
{
    static struct jrt_timer waits[16];
    uint64_t                base = heap->entries[1].deadline_ns;
    uint64_t                start = bench_now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        struct jrt_timer *timer = &waits[i % 16];
        if (timer->index != 0) pair_disarm(heap, timer);
        pair_arm(heap, timer, base + random_next() % SPAN_NS);
    }
    double spent = each(bench_now_ns() - start, ROUNDS);
    for (int i = 0; i < 16; i++) pair_disarm(heap, &waits[i]);
    return spent;
}

static double pop_arm(struct jrt_timers *timers)
{
    uint64_t start = bench_now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        struct jrt_timer *timer = jrt_timers_pop_due(timers, UINT64_MAX);
        check(jrt_timer_arm(timers, timer, timer->deadline_ns + random_next() % SPAN_NS));
    }
    return each(bench_now_ns() - start, ROUNDS);
}

static double pair_pop_arm(struct pair_heap *heap)
{
    uint64_t start = bench_now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        struct jrt_timer *timer = heap->entries[1].timer;
        pair_disarm(heap, timer);
        pair_arm(heap, timer, timer->deadline_ns + random_next() % SPAN_NS);
    }
    return each(bench_now_ns() - start, ROUNDS);
}

static double few_waits(void) { return arm_disarm(&few); }
static double few_waits_pair(void) { return pair_arm_disarm(&pair_few); }
static double many_waits(void) { return arm_disarm(&many); }
static double many_waits_pair(void) { return pair_arm_disarm(&pair_many); }
static double few_sleeps(void) { return pop_arm(&few); }
static double few_sleeps_pair(void) { return pair_pop_arm(&pair_few); }
static double many_sleeps(void) { return pop_arm(&many); }
static double many_sleeps_pair(void) { return pair_pop_arm(&pair_many); }

static void fill_and_drain(void)
{
    struct jrt_timers timers;
    struct jrt_timer *timer = calloc(MANY, sizeof *timer);
    uint64_t          worst = 0;
    check(timer != NULL);
    for (int i = 0; i < MANY; i++) timer[i].sequence = 1; /* so that its page is resident */
    jrt_timers_init(&timers);
    uint64_t start = bench_now_ns();
    for (int i = 0; i < MANY; i++) {
        bool     grows = timers.count == timers.capacity;
        uint64_t before = grows ? bench_now_ns() : 0;
        check(jrt_timer_arm(&timers, &timer[i], random_next() % SPAN_NS));
        uint64_t spent = grows ? bench_now_ns() - before : 0;
        if (spent > worst) worst = spent;
    }
    uint64_t armed = bench_now_ns();
    for (int i = 0; i < MANY; i++) check(jrt_timers_pop_due(&timers, UINT64_MAX) != NULL);
    uint64_t popped = bench_now_ns();
    bench_say("timer", "a million armed from empty, each", each(armed - start, MANY), "ns");
    bench_say("timer", "the longest doubling among them", (double)worst / 1000, "us");
    bench_say("timer", "a million popped until empty, each", each(popped - armed, MANY), "ns");
    jrt_timers_fini(&timers);
    free(timer);
}

int main(void)
{
    fill(&few, &pair_few, FEW);
    fill(&many, &pair_many, MANY);
    struct contender waits_few[] = {{"arm, disarm, 1000 wait", few_waits, {0}},
                                    {"the same, two children a node", few_waits_pair, {0}}};
    struct contender waits_many[] = {{"arm, disarm, 1000000 wait", many_waits, {0}},
                                     {"the same, two children a node", many_waits_pair, {0}}};
    struct contender sleeps_few[] = {{"pop, arm, 1000 wait", few_sleeps, {0}},
                                     {"the same, two children a node", few_sleeps_pair, {0}}};
    struct contender sleeps_many[] = {{"pop, arm, 1000000 wait", many_sleeps, {0}},
                                      {"the same, two children a node", many_sleeps_pair, {0}}};
    bench_race("timer", waits_few, 2);
    bench_race("timer", waits_many, 2);
    bench_race("timer", sleeps_few, 2);
    bench_race("timer", sleeps_many, 2);
    fill_and_drain();
    return 0;
}

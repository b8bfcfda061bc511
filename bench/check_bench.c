/* SPDX-License-Identifier: MIT */
/*
 * What does a yield check cost where it is used, in a loop that does something?
 *
 * Timed: four loops of about 10, 12, 20 and 50 instructions a round. They are a hash of a number,
 *        arithmetic without a chain, a walk along a chain in an array, a hash of eight bytes of a
 *        text. Each runs without a check, with janus_check, and with janus_check_or_end as
 *        generated code has it. Each also runs charged in batches, and in strips: janus_check_n
 *        before an inner loop of janus_yield_interval() rounds. All run in a task, so the time
 *        includes the ends of its slices. The last lines are an empty loop: the cost of a check
 *        alone.
 * Moves it: whether the loop has room for the check beside its own chain of dependencies. Where the
 *        loop's code lies (some percent, either way). The store to the fuel word, which returns
 *        after about 5 cycles and so bounds shorter loops.
 * Expect: at most 1.03 of the loop without a check, from 10 instructions on, if each round depends
 *        on the one before. A loop that fills every slot of the CPU pays for the check's two
 *        instructions, a tenth of a nanosecond. In strips it pays nothing.
 */
#include "bench.h"
#include "chain.h"

#include <janusrt/janus.h>

enum { ROUNDS = 1000000, TEXT = 4096, TURNS = 41 };

enum way { PLAIN, CHECK, OR_END, BATCH, STRIP, WAYS };

static unsigned char     text[TEXT + 8];
static volatile uint64_t sink;

/* About 10 instructions: a multiplicative hash of a counter, folded. */
static inline __attribute__((always_inline)) uint64_t hash_number(uint64_t state, uint64_t i)
{
    state ^= i;
    state *= UINT64_C(0x9e3779b97f4a7c15);
    state ^= state >> 29;
    state += i << 3;
    return state;
}

/* About 12. Only the sum depends on the round before, so the CPU overlaps rounds and every extra
 * instruction shows. */
static inline __attribute__((always_inline)) uint64_t spread(uint64_t state, uint64_t i)
{
    uint64_t a = i * 3, b = i >> 5;
    a ^= b;
    b += i ^ 0x55;
    a = a + (a << 2);
    b ^= a >> 11;
    __asm__("" : "+r"(a), "+r"(b)); /* neither vectors nor two rounds at once */
    return state + (a ^ b);
}

/* About 50: eight bytes of a text, one after the other. Letters count twice. */
static inline __attribute__((always_inline)) uint64_t scan(uint64_t state, uint64_t i)
{
    const unsigned char *at = &text[i % TEXT];
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        uint64_t c = at[k];
        state = (state ^ c) * UINT64_C(0x100000001b3);
        state += c > 64 ? c : 0;
    }
    return state;
}

static inline __attribute__((always_inline)) uint64_t nothing(uint64_t state, uint64_t i)
{
    __asm__ volatile("" : "+r"(state) : "r"(i));
    return state;
}

/* One loop for each body and way, so that each is compiled separately. */
#define LOOPS(body)                                                                                \
    static __attribute__((noinline, aligned(64))) uint64_t body##_plain(uint64_t rounds)           \
    {                                                                                              \
        uint64_t state = 1;                                                                        \
        for (uint64_t i = 0; i < rounds; i++) state = body(state, i);                              \
        return state;                                                                              \
    }                                                                                              \
    static __attribute__((noinline, aligned(64))) uint64_t body##_check(uint64_t rounds)           \
    {                                                                                              \
        uint64_t state = 1;                                                                        \
        for (uint64_t i = 0; i < rounds; i++) {                                                    \
            if (janus_check() != JANUS_OK) return 0;                                               \
            state = body(state, i);                                                                \
        }                                                                                          \
        return state;                                                                              \
    }                                                                                              \
    static __attribute__((noinline, aligned(64))) uint64_t body##_or_end(uint64_t rounds)          \
    {                                                                                              \
        uint64_t state = 1;                                                                        \
        for (uint64_t i = 0; i < rounds; i++) {                                                    \
            janus_check_or_end(1);                                                                 \
            state = body(state, i);                                                                \
        }                                                                                          \
        return state;                                                                              \
    }                                                                                              \
    static __attribute__((noinline, aligned(64))) uint64_t body##_batch(uint64_t rounds)           \
    {                                                                                              \
        uint64_t    state = 1;                                                                     \
        janus_batch batch = janus_batch_begin();                                                   \
        for (uint64_t i = 0; i < rounds; i++) {                                                    \
            if (janus_batch_next(&batch) != JANUS_OK) return 0;                                    \
            state = body(state, i);                                                                \
        }                                                                                          \
        return janus_batch_end(&batch) == JANUS_OK ? state : 0;                                    \
    }                                                                                              \
    static __attribute__((noinline, aligned(64))) uint64_t body##_strip(uint64_t rounds)           \
    {                                                                                              \
        uint64_t state = 1, interval = janus_yield_interval();                                     \
        for (uint64_t i = 0; i < rounds;) {                                                        \
            uint64_t end = rounds - i < interval ? rounds : i + interval;                          \
            if (janus_check_n((uint32_t)(end - i)) != JANUS_OK) return 0;                          \
            for (; i < end; i++) state = body(state, i);                                           \
        }                                                                                          \
        return state;                                                                              \
    }

LOOPS(hash_number)
LOOPS(spread)
LOOPS(chain_walk)
LOOPS(scan)
LOOPS(nothing)

typedef uint64_t loop(uint64_t rounds);

#define ROW(text, body)                                                                            \
    {                                                                                              \
        text, { body##_plain, body##_check, body##_or_end, body##_batch, body##_strip }            \
    }

static const struct {
    const char *name;
    loop       *ways[WAYS];
} bodies[] = {
    ROW("number, 10", hash_number), ROW("spread, 12", spread), ROW("chain, 20", chain_walk),
    ROW("text, 50", scan),          ROW("nothing", nothing),
};

static const char *const way_names[WAYS] = {"no check", "janus_check", "janus_check_or_end",
                                            "batches", "strips"};

static double timed(loop *run)
{
    uint64_t begin = bench_now_ns();
    sink += run(ROUNDS);
    return (double)(bench_now_ns() - begin) / (double)ROUNDS;
}

/* All ways take turns. Every second round goes backwards, so that no way always follows the same
 * one. */
static void race(const char *name, loop *const *ways)
{
    static double turns[WAYS][TURNS];
    for (int w = 0; w < WAYS; w++) (void)timed(ways[w]);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int k = 0; k < WAYS; k++) {
            int w = turn % 2 == 0 ? k : WAYS - 1 - k;
            turns[w][turn] = timed(ways[w]);
        }
    }
    for (int w = 0; w < WAYS; w++) qsort(turns[w], TURNS, sizeof turns[w][0], bench_compare);
    for (int w = 0; w < WAYS; w++) {
        double min = turns[w][0], median = turns[w][TURNS / 2];
        printf("%-12s %-20s min %6.3f ns  median %6.3f ns   %6.3f x, %6.3f x the loop without\n",
               name, way_names[w], min, median, min / turns[PLAIN][0],
               median / turns[PLAIN][TURNS / 2]);
        printf("{\"bench\":\"check\",\"name\":\"%s: %s\",\"min_ns\":%.4f,\"median_ns\":%.4f,"
               "\"ratio\":%.4f,\"ratio_median\":%.4f}\n",
               name, way_names[w], min, median, min / turns[PLAIN][0],
               median / turns[PLAIN][TURNS / 2]);
    }
}

static int64_t program(void *argument)
{
    (void)argument;
    for (size_t b = 0; b < sizeof bodies / sizeof bodies[0]; b++) {
        race(bodies[b].name, bodies[b].ways);
    }
    return 0;
}

int main(void)
{
    chain_make();
    for (int i = 0; i < TEXT + 8; i++) text[i] = (unsigned char)(32 + i * 7 % 90);
    janus_status status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), program, NULL, NULL);
    return status == JANUS_OK ? 0 : 1;
}

/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include "base/rng.h"

TEST("splitmix64 gives the published numbers for seed 1234567")
{
    static const uint64_t published[] = {
        6457827717110365317u, 3203168211198807973u,  9817491932198370423u,
        4593380528125082431u, 16408922859458223821u,
    };
    uint64_t state = 1234567;
    for (int i = 0; i < 5; i++) CHECK_EQ(jrt_splitmix64(&state), published[i]);
}

TEST("xoshiro256** gives the published numbers for the state 1, 2, 3, 4")
{
    static const uint64_t published[] = {
        11520u,
        0u,
        1509978240u,
        1215971899390074240u,
        1216172134540287360u,
        607988272756665600u,
        16172922978634559625u,
        8476171486693032832u,
        10595114339597558777u,
        2904607092377533576u,
    };
    struct jrt_rng rng = {{1, 2, 3, 4}};
    for (int i = 0; i < 10; i++) CHECK_EQ(jrt_rng_next(&rng), published[i]);
}

TEST("a seed is four steps of splitmix64, and seed zero works")
{
    struct jrt_rng rng;
    jrt_rng_seed(&rng, 1234567);
    CHECK_EQ(rng.s[0], 6457827717110365317u);
    CHECK_EQ(rng.s[3], 4593380528125082431u);
    jrt_rng_seed(&rng, 0);
    CHECK((rng.s[0] | rng.s[1] | rng.s[2] | rng.s[3]) != 0);
}

TEST("equal seeds give equal numbers, and different seeds give different ones")
{
    struct jrt_rng one, same, other;
    jrt_rng_seed(&one, 7);
    jrt_rng_seed(&same, 7);
    jrt_rng_seed(&other, 8);
    int equal = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t drawn = jrt_rng_next(&one);
        CHECK_EQ(drawn, jrt_rng_next(&same));
        equal += drawn == jrt_rng_next(&other);
    }
    CHECK_EQ(equal, 0);
}

/* Pearson's sum over `n` boxes; near n - 1 when all are equally likely. */
static double chi_square(struct jrt_rng *rng, uint32_t n, int draws)
{
    static uint32_t boxes[256];
    double          expected = (double)draws / n;
    double          sum = 0;
    for (uint32_t i = 0; i < n; i++) boxes[i] = 0;
    for (int i = 0; i < draws; i++) {
        uint32_t drawn = jrt_rng_below(rng, n);
        CHECK(drawn < n);
        boxes[drawn]++;
    }
    for (uint32_t i = 0; i < n; i++) {
        double off = (double)boxes[i] - expected;
        sum += off * off / expected;
    }
    return sum;
}

TEST("numbers below n are equally likely for small n")
{
    /* Chance exceeds each bound once in 100,000, and the seed is fixed. */
    static const struct {
        uint32_t n;
        double   bound;
    } rows[] = {{2, 19.6},   {3, 23.1},    {5, 28.5},   {7, 33.2},
                {63, 118.0}, {100, 168.0}, {255, 360.0}};
    struct jrt_rng rng;
    jrt_rng_seed(&rng, 1);
    for (int i = 0; i < 7; i++) CHECK(chi_square(&rng, rows[i].n, 200000) < rows[i].bound);
}

TEST("numbers below three quarters of the range show no bias")
{
    /* Without rejection a third of the results would come twice as often. In the range 3 * 2^30,
     * results with remainder 0 mod 3 would be half of all, not a third. */
    struct jrt_rng rng;
    uint32_t       thirds[3] = {0, 0, 0};
    enum { DRAWS = 300000 };
    jrt_rng_seed(&rng, 2);
    for (int i = 0; i < DRAWS; i++) thirds[jrt_rng_below(&rng, 3u << 30) % 3]++;
    for (int i = 0; i < 3; i++) CHECK(thirds[i] > DRAWS / 3 - 1500 && thirds[i] < DRAWS / 3 + 1500);
}

TEST("numbers below one are zero")
{
    struct jrt_rng rng;
    jrt_rng_seed(&rng, 3);
    for (int i = 0; i < 100; i++) CHECK_EQ(jrt_rng_below(&rng, 1), 0);
}

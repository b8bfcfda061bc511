/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include "sched/victim.h"

#include <stddef.h>

static struct jrt_victims victims(enum jrt_victim_strategy strategy, uint64_t seed)
{
    struct jrt_victims v;
    jrt_victims_init(&v, strategy, seed);
    return v;
}

/* The generator as its authors wrote it, not shared with the library. */
static uint64_t state[4];

static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static uint64_t reference_next(void)
{
    const uint64_t result = rotl(state[1] * 5, 7) * 9;
    const uint64_t t = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= t;
    state[3] = rotl(state[3], 45);
    return result;
}

static void reference_seed(uint64_t x)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = (x += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        state[i] = z ^ (z >> 31);
    }
}

TEST("random victims are those of the reference generator for the seed")
{
    /* The generator rejects three draws of 2^32 for 7 others, so fewer than one in a billion. */
    struct jrt_victims v = victims(JRT_VICTIM_RANDOM, 42);
    reference_seed(42);
    for (unsigned i = 0; i < 10000; i++) {
        unsigned draw = (unsigned)(((reference_next() >> 32) * 7) >> 32);
        CHECK_EQ(jrt_victim_next(&v, 3, 8, i % 4, NULL), (3 + 1 + draw) % 8);
    }
}

TEST("equal seeds give equal random victims, and different seeds different ones")
{
    struct jrt_victims one = victims(JRT_VICTIM_RANDOM, 1), same = one;
    struct jrt_victims other = victims(JRT_VICTIM_RANDOM, 2);
    int                different = 0;
    for (unsigned i = 0; i < 100; i++) {
        unsigned victim = jrt_victim_next(&one, 0, 16, 0, NULL);
        CHECK_EQ(victim, jrt_victim_next(&same, 0, 16, 0, NULL));
        different += victim != jrt_victim_next(&other, 0, 16, 0, NULL);
    }
    CHECK(different > 50);
}

TEST("every other worker is a random victim about equally often, and a worker never its own")
{
    enum { WORKERS = 5, DRAWS = 40000 };
    struct jrt_victims v = victims(JRT_VICTIM_RANDOM, 7);
    for (unsigned self = 0; self < WORKERS; self++) {
        int hits[WORKERS] = {0};
        for (int i = 0; i < DRAWS; i++) hits[jrt_victim_next(&v, self, WORKERS, 0, NULL)]++;
        for (unsigned i = 0; i < WORKERS; i++) {
            if (i == self)
                CHECK_EQ(hits[i], 0);
            else
                CHECK(hits[i] > 9500 && hits[i] < 10500);
        }
    }
}

TEST("of two workers, each one's victim is always the other")
{
    static const uint32_t loads[2] = {0, 0};
    for (unsigned strategy = 0; strategy < JRT_VICTIM_STRATEGIES; strategy++) {
        struct jrt_victims v = victims((enum jrt_victim_strategy)strategy, 9);
        for (unsigned i = 0; i < 100; i++) {
            CHECK_EQ(jrt_victim_next(&v, 0, 2, i, loads), 1);
            CHECK_EQ(jrt_victim_next(&v, 1, 2, i, loads), 0);
        }
    }
}

TEST("round robin visits the workers after the thief in turn and begins again")
{
    static const unsigned expected[] = {3, 4, 0, 1, 3, 4, 0, 1, 3};
    struct jrt_victims    v = victims(JRT_VICTIM_ROUND_ROBIN, 0);
    for (unsigned i = 0; i < 9; i++) {
        CHECK_EQ(jrt_victim_next(&v, 2, 5, i % 4, NULL), expected[i]);
    }
}

TEST("least loaded visits the longest queue first, then the next longest")
{
    static const uint32_t loads[] = {5, 900, 70, 8, 100};
    static const unsigned expected[] = {4, 2, 3, 0};
    struct jrt_victims    v = victims(JRT_VICTIM_LEAST_LOADED, 0);
    for (unsigned i = 0; i < 4; i++) CHECK_EQ(jrt_victim_next(&v, 1, 5, i, loads), expected[i]);
    CHECK_EQ(jrt_victim_next(&v, 1, 5, 4, loads), 4); /* begins again */
    CHECK_EQ(jrt_victim_next(&v, 0, 5, 0, loads), 1);
}

TEST("equally long queues are visited once each, the nearest after the thief first")
{
    static const uint32_t loads[] = {3, 3, 3, 7, 3};
    static const unsigned expected[] = {3, 2, 4, 0};
    struct jrt_victims    v = victims(JRT_VICTIM_LEAST_LOADED, 0);
    for (unsigned i = 0; i < 4; i++) CHECK_EQ(jrt_victim_next(&v, 1, 5, i, loads), expected[i]);
}

TEST("three hundred workers work as three do")
{
    static uint32_t    loads[300];
    struct jrt_victims random = victims(JRT_VICTIM_RANDOM, 1);
    struct jrt_victims longest = victims(JRT_VICTIM_LEAST_LOADED, 1);
    loads[299] = 1;
    CHECK_EQ(jrt_victim_next(&longest, 0, 300, 0, loads), 299);
    for (int i = 0; i < 10000; i++) {
        unsigned victim = jrt_victim_next(&random, 299, 300, 0, NULL);
        CHECK(victim < 299);
    }
}

static void steal_alone(void *argument)
{
    struct jrt_victims v = victims(JRT_VICTIM_RANDOM, 1);
    (void)argument;
    (void)jrt_victim_next(&v, 0, 1, 0, NULL);
}

TEST("a worker that is alone may not ask for a victim")
{
    int status = 0;
    (void)harness_child(steal_alone, NULL, &status);
    CHECK(status != 0);
}

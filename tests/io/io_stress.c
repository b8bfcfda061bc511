/* SPDX-License-Identifier: MIT */
/* Edges that come at every moment of a wait: many answers, after no time or some. */
#include "wire.h"

struct side {
    janus_io io;
    uint64_t rounds, random;
    bool     asks;
};

/* Spins for up to 2 us. */
static void dawdle(struct side *side)
{
    side->random = side->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    uint64_t until = janus_now_ns() + (side->random >> 33) % 2000;
    if (side->random >> 63) return;
    while (janus_now_ns() < until && !rig_simulated()) continue;
}

static int64_t play(void *argument)
{
    struct side *side = argument;
    for (uint64_t i = 0; i < side->rounds; i++) {
        unsigned char byte = wire_byte(i);
        if (side->asks) wire_put(side->io, &byte, 1);
        CHECK_EQ(wire_get(side->io), byte);
        dawdle(side);
        if (!side->asks) wire_put(side->io, &byte, 1);
    }
    return 0;
}

static int64_t many_answers(void *argument)
{
    enum { PAIRS = 4 };
    struct side  sides[PAIRS][2];
    janus_io     ends[PAIRS][2];
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < PAIRS; i++) {
            i % 2 ? wire_pair(ends[i]) : wire_tcp(ends[i]);
            for (int k = 0; k < 2; k++) {
                uint64_t seed = (uint64_t)(i * 2 + k) * 977 + 5;
                sides[i][k] = (struct side){ends[i][k], *(uint64_t *)argument, seed, k == 0};
                CHECK_EQ(janus_spawn(n, play, &sides[i][k]), JANUS_OK);
            }
        }
    }
    CHECK_EQ(status, JANUS_OK);
    for (int i = 0; i < PAIRS; i++) wire_close(ends[i]);
    return 0;
}

TEST("of all answers that come while their reader begins to wait, none is missed")
{
    const char *models = getenv("JANUSRT_MODELS");
    bool        long_run = models != NULL && strcmp(models, "long") == 0;
    uint64_t    rounds = rig_few(long_run ? 100000 : RIG_SLOW ? 300 : 10000);
    rig_all(many_answers, &rounds, 1);
}

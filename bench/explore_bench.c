/* SPDX-License-Identifier: MIT */
/*
 * How many schedules of a small test can be tried in a second?
 *
 * Timed: janus_explore of ten tasks, about a hundred events. Nine tasks yield and send five times
 *        each to the tenth. With one, two and four workers, random and by priorities. Each schedule
 *        makes, runs and closes a scheduler.
 * Moves it: points, 180 to 270 in each schedule. Making a scheduler, whose stacks, records and
 *        tables come from the schedule before.
 * Expect: 13 us with one worker, 24 with two, 40 with four. That is 25,000 in a second.
 */
#include "bench.h"

#include <janusrt/janus.h>

enum { SENDERS = 9, EACH = 5, SCHEDULES = 500 };

static int64_t sender(void *argument)
{
    const janus_channel *channel = argument;
    for (uint64_t i = 0; i < EACH; i++) {
        if (janus_yield() != JANUS_OK) return -1;
        if (janus_channel_send(*channel, &i) != JANUS_OK) return -1;
    }
    return 0;
}

static int64_t receiver(void *argument)
{
    const janus_channel *channel = argument;
    uint64_t             value;
    for (int i = 0; i < SENDERS * EACH; i++) {
        if (janus_channel_recv(*channel, &value) != JANUS_OK) return -1;
    }
    return 0;
}

static int64_t entry(void *argument)
{
    janus_channel channel;
    janus_nursery nursery;
    (void)argument;
    if (janus_channel_create(sizeof(uint64_t), 0, NULL, &channel) != JANUS_OK) return -1;
    if (janus_nursery_open(&nursery, NULL) != JANUS_OK) return -1;
    for (int i = 0; i < SENDERS; i++) JANUS_IGNORE(janus_spawn(&nursery, sender, &channel));
    JANUS_IGNORE(janus_spawn(&nursery, receiver, &channel));
    janus_status status = janus_nursery_end(&nursery, NULL);
    (void)janus_channel_destroy(channel);
    return status;
}

static double explore(uint32_t workers, janus_strategy strategy)
{
    uint64_t     began = bench_now_ns();
    janus_status status =
        janus_explore(JANUS_EXPLORE_OPTIONS(.strategy = strategy, .worker_count = workers,
                                            .schedules = SCHEDULES, .quiet = true),
                      entry, NULL, NULL);
    if (status != JANUS_OK) exit(1);
    return (double)(bench_now_ns() - began) / (double)SCHEDULES;
}

static double random_1(void) { return explore(1, JANUS_STRATEGY_RANDOM); }
static double random_2(void) { return explore(2, JANUS_STRATEGY_RANDOM); }
static double random_4(void) { return explore(4, JANUS_STRATEGY_RANDOM); }
static double pct_4(void) { return explore(4, JANUS_STRATEGY_PCT); }

static struct contender contenders[] = {
    {"a schedule, 1 worker, random", random_1, {0}},
    {"2 workers, random", random_2, {0}},
    {"4 workers, random", random_4, {0}},
    {"4 workers, PCT", pct_4, {0}},
};

int main(void)
{
    bench_race("explore", contenders, sizeof contenders / sizeof contenders[0]);
    return 0;
}

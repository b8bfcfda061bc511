/* SPDX-License-Identifier: MIT */
/* Crowds of resting tasks: their memory, and what happens when all come at once. */
#include "rests.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Others than tasks of its scheduler. */

static void *send_from_thread(void *argument)
{
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(janus_channel_send(*(janus_channel *)argument, &(uint64_t){1}), JANUS_OK);
    }
    CHECK_EQ(janus_channel_close(*(janus_channel *)argument), JANUS_OK);
    return NULL;
}

TEST("a plain thread starts a resting task and sends to it")
{
    RIG_REAL("threads");
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    struct reader    reader = {.sum = 0};
    janus_nursery    root;
    pthread_t        thread;
    CHECK_EQ(janus_channel_create(sizeof(uint64_t), 0, JANUS_CHANNEL_OPTIONS(.outside = true),
                                  &reader.channel),
             JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    janus_rest first = janus_rest_recv(reader.channel, &reader.item);
    CHECK_EQ(janus_spawn_resting(&root, first, read_on, &reader, NULL, NULL), JANUS_OK);
    CHECK_EQ(pthread_create(&thread, NULL, send_from_thread, &reader.channel), 0);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(reader.sum, 100);
    CHECK_EQ(janus_channel_destroy(reader.channel), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* A crowd. */

static size_t footprint(void)
{
    char   line[256];
    size_t sum = 0;
    FILE  *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        size_t kib = 0;
        if (strncmp(line, "VmRSS:", 6) == 0 || strncmp(line, "VmPTE:", 6) == 0) {
            CHECK_EQ(sscanf(line + 6, " %zu", &kib), 1);
            sum += kib * 1024;
        }
    }
    (void)fclose(file);
    return sum;
}

static size_t stacks_used(void)
{
    janus_scheduler_stacks_info info = JANUS_SCHEDULER_STACKS_INFO();
    CHECK_EQ(janus_scheduler_stacks_inspect(janus_scheduler_current(), &info), JANUS_OK);
    return info.stacks_used;
}

enum { MILLION = RIG_SLOW ? 10000 : 1000000, MOST_BYTES = 600, SPARE = 128 };

struct subscriber {
    janus_channel channel;
    uint64_t      item, sum;
};

static janus_rest add_up(void *state, janus_status woke)
{
    struct subscriber *self = state;
    if (woke != JANUS_OK) return janus_rest_done(woke == JANUS_CLOSED ? 0 : woke);
    self->sum += self->item;
    return janus_rest_recv(self->channel, &self->item);
}

/* Half of them have deadlines far away. */
static int64_t rest_by_the_million(void *argument)
{
    size_t             count = rig_few(MILLION), before_stacks = stacks_used();
    struct subscriber *all = calloc(count, sizeof *all);
    janus_channel      channel;
    janus_nursery      n;
    (void)argument;
    CHECK(all != NULL);
    for (size_t i = 0; i < count; i++) all[i].sum = 1; /* touched before the count begins */
    CHECK_EQ(janus_channel_create(sizeof(uint64_t), 0, NULL, &channel), JANUS_OK);
    size_t   before = footprint();
    uint64_t far = in_ms(3600000);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (size_t i = 0; i < count; i++) {
        all[i].channel = channel;
        janus_rest first = janus_rest_recv(channel, &all[i].item);
        if (i % 2 == 0) first.deadline_ns = far;
        CHECK_EQ(janus_spawn_resting(&n, first, add_up, &all[i], NULL, NULL), JANUS_OK);
    }
    janus_channel_info info = JANUS_CHANNEL_INFO();
    for (;;) {
        CHECK_EQ(janus_channel_inspect(channel, &info), JANUS_OK);
        if (info.receivers == count) break;
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    size_t each = (footprint() - before) / count;
    printf("# %zu bytes for each of %zu resting tasks\n", each, count);
    if (!rig_simulated() && !RIG_SLOW) CHECK(each <= MOST_BYTES);
    CHECK(stacks_used() <= before_stacks + SPARE);
    for (uint64_t i = 0; i < count; i++) CHECK_EQ(janus_channel_send(channel, &i), JANUS_OK);
    CHECK_EQ(janus_channel_close(channel), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += all[i].sum;
    CHECK_EQ(sum, (uint64_t)count * (count - 1) / 2 + count);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    free(all);
    return 0;
}

TEST("a million resting tasks need 600 bytes each, no stacks, and answer")
{
    rig_run(2, rest_by_the_million, NULL, 1);
}

/* Races: values, deadlines and cancels come to resting tasks at the same moments. */

enum { RACERS = RIG_SLOW ? 40 : 120, VALUES = RIG_SLOW ? 2000 : 20000, SENDERS = 3 };

struct race {
    janus_channel    channel;
    _Atomic(int64_t) sent, received, late, senders;
};

struct racer {
    struct race *race;
    uint64_t     item, turns;
};

static janus_rest race_on(void *state, janus_status woke)
{
    struct racer *self = state;
    self->turns++;
    if (woke == JANUS_OK) {
        atomic_fetch_add(&self->race->received, (int64_t)self->item);
    } else if (woke == JANUS_DEADLINE) {
        atomic_fetch_add(&self->race->late, 1);
        if (self->turns % 7 == 0) JANUS_IGNORE(janus_yield());
    } else {
        return janus_rest_done(woke == JANUS_CLOSED ? 0 : woke);
    }
    uint64_t soon = janus_now_ns() + 1000 * (1 + self->turns % 40);
    return janus_rest_recv_until(self->race->channel, &self->item, soon);
}

static int64_t send_values(void *argument)
{
    struct race *race = argument;
    for (uint64_t i = 1; i <= rig_few(VALUES); i++) {
        janus_status status = janus_channel_send(race->channel, &i);
        if (status != JANUS_OK) break;
        atomic_fetch_add(&race->sent, (int64_t)i);
        if (i % 64 == 0) JANUS_IGNORE(janus_sleep(1000));
    }
    if (atomic_fetch_sub(&race->senders, 1) == 1) (void)janus_channel_close(race->channel);
    return 0;
}

/* The channel has no room, so that each value was received or not sent. */
static int64_t run_race(void *argument)
{
    static struct racer racers[RACERS];
    uint64_t            cancel_ns = *(uint64_t *)argument;
    struct race         race = {.senders = SENDERS};
    janus_nursery       all, senders;
    CHECK_EQ(janus_channel_create(sizeof(uint64_t), 0, NULL, &race.channel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&senders, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&all, NULL), JANUS_OK);
    memset(racers, 0, sizeof racers);
    for (int i = 0; i < RACERS; i++) {
        racers[i].race = &race;
        janus_rest first =
            janus_rest_recv_until(race.channel, &racers[i].item, janus_now_ns() + 20000);
        CHECK_EQ(janus_spawn_resting(&all, first, race_on, &racers[i], NULL, NULL), JANUS_OK);
    }
    for (int i = 0; i < SENDERS; i++) {
        CHECK_EQ(janus_spawn(cancel_ns != 0 ? &senders : &all, send_values, &race), JANUS_OK);
    }
    if (cancel_ns != 0) {
        CHECK_EQ(janus_sleep(cancel_ns), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&all), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&all, NULL), JANUS_CANCELLED);
        CHECK_EQ(janus_channel_close(race.channel), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&senders, NULL), JANUS_OK);
    } else {
        CHECK_EQ(janus_nursery_end(&all, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&senders, NULL), JANUS_OK);
    }
    CHECK_EQ(atomic_load(&race.sent), atomic_load(&race.received));
    CHECK_EQ(janus_channel_destroy(race.channel), JANUS_OK);
    return 0;
}

TEST("each value is received once, however deadlines race with senders")
{
    rig_all(run_race, &(uint64_t){0}, 3);
}

TEST("a value that was sent was received, however a cancel races with senders")
{
    uint64_t delays[] = {rig_ms / 10, rig_ms / 2, 2 * rig_ms};
    for (int i = 0; i < 3; i++) rig_all(run_race, &delays[i], 5);
}

/* Tickers. */

struct ticker {
    uint64_t next_ns, ticks;
};

enum { TICKERS = RIG_SLOW ? 200 : 2000, TICKS = 20 };

static janus_rest tick(void *state, janus_status woke)
{
    struct ticker *self = state;
    if (woke != JANUS_OK) return janus_rest_done(woke);
    CHECK(janus_now_ns() >= self->next_ns);
    if (++self->ticks == TICKS) return janus_rest_done(0);
    self->next_ns += rig_ms / 4;
    return janus_rest_sleep_until(self->next_ns);
}

static int64_t run_tickers(void *argument)
{
    static struct ticker tickers[TICKERS];
    janus_nursery        n;
    uint64_t             begun = janus_now_ns();
    (void)argument;
    memset(tickers, 0, sizeof tickers);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (uint64_t i = 0; i < TICKERS; i++) {
        tickers[i].next_ns = begun + i * 100;
        janus_rest first = janus_rest_sleep_until(tickers[i].next_ns);
        CHECK_EQ(janus_spawn_resting(&n, first, tick, &tickers[i], NULL, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    for (int i = 0; i < TICKERS; i++) CHECK_EQ(tickers[i].ticks, TICKS);
    return 0;
}

TEST("no ticker steps before its time, and none is forgotten") { rig_all(run_tickers, NULL, 3); }

/* SPDX-License-Identifier: MIT */
/* Resting tasks under many schedules: nothing is lost, also where the system refuses things. */
#include "harness.h"

#include <janusrt/janus.h>
#include <stdio.h>

enum {
    READERS = 3,
    VALUES = 4,
    SCHEDULES = JRT_TSAN                ? 20
                : JRT_ASAN || JRT_DEBUG ? 100
                                        : 1000,
};

struct scene {
    janus_channel channel;
    uint64_t      sent, received;
    int           ended, began;
};

struct reader {
    struct scene *scene;
    uint64_t      item, steps;
};

static void count_end(void *argument) { ++*(int *)argument; }

static janus_rest read_on(void *state, janus_status woke)
{
    struct reader *self = state;
    struct scene  *scene = self->scene;
    if (self->steps++ == 0) {
        if (janus_defer(count_end, &scene->ended) != JANUS_OK) {
            scene->received += woke == JANUS_OK ? self->item : 0;
            return janus_rest_done(0);
        }
        scene->began++;
    }
    if (woke == JANUS_OK) scene->received += self->item;
    if (woke != JANUS_OK && woke != JANUS_DEADLINE) return janus_rest_done(0);
    if (self->steps == 3) JANUS_IGNORE(janus_yield());
    if (self->steps > 6) return janus_rest_sleep(1000 * self->steps);
    return janus_rest_recv_until(scene->channel, &self->item,
                                 janus_now_ns() + 2000 * (1 + self->steps % 3));
}

static int64_t send_all(void *argument)
{
    struct scene *scene = argument;
    for (uint64_t i = 1; i <= VALUES; i++) {
        if (janus_channel_send_until(scene->channel, &i, janus_now_ns() + 5000) != JANUS_OK) break;
        scene->sent += i;
    }
    return 0;
}

/* A cancel ends what the deadlines do not. */
static int64_t play(void *argument)
{
    struct scene  scene = {.sent = 0};
    struct reader readers[READERS];
    janus_nursery n;
    (void)argument;
    if (janus_channel_create(sizeof(uint64_t), 0, NULL, &scene.channel) != JANUS_OK) return 0;
    if (janus_nursery_open(&n, NULL) == JANUS_OK) {
        for (int i = 0; i < READERS; i++) {
            readers[i] = (struct reader){.scene = &scene};
            janus_rest first = janus_rest_recv(scene.channel, &readers[i].item);
            if (i == 0) first = janus_rest_sleep(3000);
            JANUS_IGNORE(janus_spawn_resting(&n, first, read_on, &readers[i], NULL, NULL));
        }
        JANUS_IGNORE(janus_spawn(&n, send_all, &scene));
        JANUS_IGNORE(janus_sleep(8000));
        (void)janus_nursery_cancel(&n);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
        /* A reader that began with its sleep has counted a value of 0. */
        JANUS_EXPECT(scene.sent == scene.received);
        JANUS_EXPECT(scene.ended == scene.began);
    }
    (void)janus_channel_destroy(scene.channel);
    return 0;
}

static void explore(uint32_t faults, uint32_t workers)
{
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    janus_status         status =
        janus_explore(JANUS_EXPLORE_OPTIONS(.schedules = SCHEDULES, .worker_count = workers,
                                            .faults = faults, .faults_every = 20, .quiet = true),
                      play, NULL, &result);
    if (status != JANUS_OK) printf("# %s\n# %s\n", result.message, result.replay);
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(result.schedules, SCHEDULES);
}

TEST("under any schedule each value is received once, and each resting task ends")
{
    explore(0, 1);
    explore(0, 3);
}

TEST("resting tasks survive refused memory, early wake-ups and dying workers")
{
    explore(JANUS_FAULT_MEMORY | JANUS_FAULT_MAPPING, 2);
    explore(JANUS_FAULT_WAKE | JANUS_FAULT_DEATH, 3);
}

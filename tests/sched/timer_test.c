/* SPDX-License-Identifier: MIT */
/* The timer heap against a list that is searched from end to end. */
#include "harness.h"
#include "sched/timer.h"

#include <stdlib.h>
#include <string.h>

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { MODEL_STEPS = 20000, MANY = 100000 };
#else
enum { MODEL_STEPS = 200000, MANY = 1000000 };
#endif

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The order of the heap and the place of every timer are as timer.c promises. */
static void check_shape(const struct jrt_timers *timers)
{
    for (uint32_t i = JRT_TIMERS_ROOT; i < timers->count + JRT_TIMERS_ROOT; i++) {
        const struct jrt_timer *timer = timers->entries[i].timer;
        CHECK_EQ(timer->index, i);
        CHECK(timer->deadline_ns == timers->entries[i].deadline_ns);
        if (i == JRT_TIMERS_ROOT) continue;
        const struct jrt_timer *parent = timers->entries[i / 4 + 2].timer;
        CHECK(parent->deadline_ns < timer->deadline_ns ||
              (parent->deadline_ns == timer->deadline_ns && parent->sequence < timer->sequence));
    }
    CHECK(timers->count <= timers->capacity && timers->reserved <= timers->capacity);
}

TEST("a heap with nothing armed has nothing due and takes no memory")
{
    struct jrt_timers timers;
    jrt_timers_init(&timers);
    CHECK(jrt_timers_next(&timers) == UINT64_MAX);
    CHECK(jrt_timers_pop_due(&timers, UINT64_MAX) == NULL);
    CHECK(timers.entries == NULL);
    jrt_timers_fini(&timers);
}

TEST("a timer is due at its deadline and not before")
{
    struct jrt_timers timers;
    struct jrt_timer  timer = {0};
    jrt_timers_init(&timers);
    CHECK(jrt_timer_arm(&timers, &timer, 100));
    CHECK(jrt_timer_armed(&timer));
    CHECK_EQ(jrt_timers_next(&timers), 100);
    CHECK(jrt_timers_pop_due(&timers, 99) == NULL);
    CHECK(jrt_timers_pop_due(&timers, 100) == &timer);
    CHECK(!jrt_timer_armed(&timer));
    CHECK(jrt_timers_pop_due(&timers, 100) == NULL);
    jrt_timers_fini(&timers);
}

TEST("equal deadlines are due in the order of arming, and arming again goes to the end")
{
    enum { COUNT = 1000 };
    static struct jrt_timer timer[COUNT];
    struct jrt_timers       timers;
    jrt_timers_init(&timers);
    for (int i = 0; i < COUNT; i++) CHECK(jrt_timer_arm(&timers, &timer[i], 7));
    CHECK(jrt_timer_arm(&timers, &timer[0], 7));
    check_shape(&timers);
    for (int i = 1; i < COUNT; i++) CHECK(jrt_timers_pop_due(&timers, 7) == &timer[i]);
    CHECK(jrt_timers_pop_due(&timers, 7) == &timer[0]);
    jrt_timers_fini(&timers);
}

TEST("disarming a timer that is not armed, even twice, changes nothing")
{
    struct jrt_timers timers;
    struct jrt_timer  timer = {0};
    jrt_timers_init(&timers);
    jrt_timer_disarm(&timers, &timer);
    CHECK(jrt_timer_arm(&timers, &timer, 1));
    jrt_timer_disarm(&timers, &timer);
    jrt_timer_disarm(&timers, &timer);
    CHECK(jrt_timers_next(&timers) == UINT64_MAX);
    jrt_timers_fini(&timers);
}

TEST("a reservation holds, and stays when all other memory is given back")
{
    enum { COUNT = 5000 };
    static struct jrt_timer timer[COUNT];
    struct jrt_timers       timers;
    jrt_timers_init(&timers);
    CHECK(!jrt_timers_reserve(&timers, (uint32_t)JRT_TIMERS_MAX + 1));
    CHECK(jrt_timers_reserve(&timers, 1000));
    CHECK(jrt_timers_reserve(&timers, 10));
    const struct jrt_timer_entry *entries = timers.entries;
    for (int i = 0; i < 1000; i++) CHECK(jrt_timer_arm(&timers, &timer[i], (uint64_t)i));
    CHECK(timers.entries == entries);
    for (int i = 1000; i < COUNT; i++) CHECK(jrt_timer_arm(&timers, &timer[i], (uint64_t)i));
    CHECK(timers.capacity >= COUNT);
    for (int i = COUNT - 1; i >= 0; i--) jrt_timer_disarm(&timers, &timer[i]);
    CHECK(timers.capacity >= 1000 && timers.capacity < 2500);
    jrt_timers_fini(&timers);
}

/* The reference: an array of flags. It finds every answer by visiting all of them. */
enum { MODEL_TIMERS = 200 };

struct model {
    struct jrt_timers timers;
    struct jrt_timer  timer[MODEL_TIMERS];
    bool              armed[MODEL_TIMERS];
    uint64_t          deadline_ns[MODEL_TIMERS];
    uint64_t          order[MODEL_TIMERS]; /* when it was armed */
    uint64_t          arms;
};

static int model_first(const struct model *model)
{
    int first = -1;
    for (int i = 0; i < MODEL_TIMERS; i++) {
        if (!model->armed[i]) continue;
        if (first < 0 || model->deadline_ns[i] < model->deadline_ns[first] ||
            (model->deadline_ns[i] == model->deadline_ns[first] &&
             model->order[i] < model->order[first])) {
            first = i;
        }
    }
    return first;
}

static void model_step(struct model *model, uint64_t *seed, uint64_t range)
{
    uint64_t kind = random_next(seed) % 8;
    size_t   i = random_next(seed) % MODEL_TIMERS;
    if (kind < 3) {
        model->armed[i] = true;
        model->deadline_ns[i] = random_next(seed) % range;
        model->order[i] = model->arms++;
        CHECK(jrt_timer_arm(&model->timers, &model->timer[i], model->deadline_ns[i]));
    } else if (kind < 5) {
        model->armed[i] = false;
        jrt_timer_disarm(&model->timers, &model->timer[i]);
    } else {
        uint64_t          now = random_next(seed) % range;
        int               first = model_first(model);
        struct jrt_timer *due = jrt_timers_pop_due(&model->timers, now);
        if (first >= 0 && model->deadline_ns[first] <= now) {
            CHECK(due == &model->timer[first]);
            model->armed[first] = false;
        } else {
            CHECK(due == NULL);
        }
    }
    int first = model_first(model);
    CHECK(jrt_timers_next(&model->timers) == (first >= 0 ? model->deadline_ns[first] : UINT64_MAX));
    CHECK_EQ(jrt_timer_armed(&model->timer[i]), model->armed[i]);
}

TEST("arming, disarming and popping in any order agree with a searched list")
{
    static const uint64_t ranges[] = {4, 50, 1000000000};
    for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
        uint64_t      seed = 0x5f3a91 + r;
        struct model *model = calloc(1, sizeof *model);
        CHECK(model != NULL);
        jrt_timers_init(&model->timers);
        for (int step = 0; step < MODEL_STEPS / 3; step++) {
            model_step(model, &seed, ranges[r]);
            if (step % 64 == 0) check_shape(&model->timers);
        }
        for (int i = 0; i < MODEL_TIMERS; i++) jrt_timer_disarm(&model->timers, &model->timer[i]);
        jrt_timers_fini(&model->timers);
        free(model);
    }
}

TEST("very many timers come out in order while others are disarmed, and the memory goes back")
{
    struct jrt_timers timers;
    struct jrt_timer *timer = calloc(MANY, sizeof *timer);
    uint64_t          seed = 0x9e3779b97f4a7c15u;
    CHECK(timer != NULL);
    jrt_timers_init(&timers);
    for (int i = 0; i < MANY; i++) {
        CHECK(jrt_timer_arm(&timers, &timer[i], random_next(&seed) % MANY));
    }
    check_shape(&timers);
    for (int i = 0; i < MANY; i += 4) jrt_timer_disarm(&timers, &timer[i]);
    uint64_t last_deadline_ns = 0, last_sequence = 0;
    int      popped = 0;
    while (jrt_timers_next(&timers) != UINT64_MAX) {
        const struct jrt_timer *due = jrt_timers_pop_due(&timers, UINT64_MAX);
        CHECK((due - timer) % 4 != 0);
        CHECK(due->deadline_ns > last_deadline_ns || due->sequence >= last_sequence);
        CHECK(due->deadline_ns >= last_deadline_ns);
        last_deadline_ns = due->deadline_ns;
        last_sequence = due->sequence;
        popped++;
    }
    CHECK_EQ(popped, MANY / 4 * 3);
    CHECK(timers.capacity < 256);
    jrt_timers_fini(&timers);
    free(timer);
}

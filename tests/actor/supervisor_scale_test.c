/* SPDX-License-Identifier: MIT */
/*
 * Many children, many restarts, for a long time. Times are CPU time of the only worker, the best of
 * some rounds.
 */
#include "play.h"

#include <time.h>

/* S26. */

static int64_t restart_in_each_period(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    const int         periods = *(const int *)argument;
    janus_supervisor *supervisor = play_open(
        &play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 1, .period_ns = 5 * JANUS_SECONDS));
    janus_actor actor = add_child(supervisor, CHILD(&a));
    for (int i = 0; i < periods; i++) {
        crash(actor);
        MUST_EQ(settle(actor), 0);
        MUST_EQ(janus_sleep(5 * JANUS_SECONDS + 1), JANUS_OK);
        play_read(&play);
        play.length = 0;
    }
    MUST_EQ(play_end(&play, supervisor, JANUS_OK).restarts, periods);
    return 0;
}

TEST("one restart in each of 10,000 periods is no storm")
{
    int periods = 10000;
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.deterministic_seed = 7, .worker_count = 2),
                       restart_in_each_period, &periods, NULL),
             JANUS_OK);
}

/* S37: small first, with arguments that are freed as soon as the child has ended. */

static int64_t read_argument(void *state, void *argument)
{
    *(int64_t *)state = *(int64_t *)argument;
    return JANUS_ACTOR_GO_ON;
}

static int64_t reply_state(void *state, janus_letter *letter)
{
    if (letter->message == NULL || !janus_letter_is_call(letter)) return JANUS_ACTOR_GO_ON;
    MUST_EQ(janus_reply(letter, state), JANUS_OK);
    return JANUS_ACTOR_STOP;
}

static const janus_behaviour small_behaviour = {.struct_bytes = sizeof small_behaviour,
                                                .name = "small",
                                                .state_bytes = sizeof(int64_t),
                                                .message_bytes = 1,
                                                .reply_bytes = sizeof(int64_t),
                                                .init = read_argument,
                                                .handle = reply_state};

static int64_t forgets_arguments(void *argument)
{
    janus_supervisor *supervisor = NULL;
    (void)argument;
    MUST_EQ(
        janus_supervisor_open(
            JANUS_SUPERVISOR_OPTIONS(.name = "crowd", .strategy = JANUS_SUPERVISION_ONE_FOR_ALL),
            &supervisor),
        JANUS_OK);
    for (int64_t i = 0; i < 10; i++) {
        int64_t    *own = malloc(sizeof *own);
        int64_t     reply = -1;
        janus_actor actor = {{0}};
        MUST(own != NULL);
        *own = i;
        MUST_EQ(janus_supervisor_add(supervisor,
                                     JANUS_CHILD(.behaviour = &small_behaviour, .argument = own,
                                                 .restart = JANUS_RESTART_TEMPORARY),
                                     &actor),
                JANUS_OK);
        free(own); /* init has returned, and it never runs again */
        MUST_EQ(janus_call(actor, "", &reply, NEVER), JANUS_OK);
        MUST_EQ(reply, i);
        JANUS_IGNORE(janus_actor_await(actor, NULL, NEVER));
    }
    MUST_EQ(look_in(supervisor).specified, 0);
    MUST_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    return 0;
}

TEST("a TEMPORARY child never needs its argument again, once it has started")
{
    PLAY(forgets_arguments, .panics = true);
}

/* Resident memory of this process, in bytes. */
static size_t footprint(void)
{
    size_t pages = 0;
    FILE  *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%*u %zu", &pages), 1);
    fclose(file);
    return pages * 4096;
}

static void come_and_go(janus_supervisor *supervisor, int64_t times)
{
    for (int64_t i = 0; i < times; i++) {
        janus_actor actor = {{0}};
        CHECK_EQ(janus_supervisor_add(supervisor,
                                      JANUS_CHILD(.behaviour = &small_behaviour, .argument = &i,
                                                  .restart = JANUS_RESTART_TEMPORARY),
                                      &actor),
                 JANUS_OK);
        CHECK_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    }
}

static int64_t memory_is_flat(void *argument)
{
    const int64_t     times = *(const int64_t *)argument;
    janus_supervisor *supervisor = NULL;
    CHECK_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    come_and_go(supervisor, times / 10);
    size_t before = footprint();
    come_and_go(supervisor, times);
    CHECK(footprint() <= before + ((size_t)1 << 20));
    CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    return 0;
}

TEST("memory stays flat while a million TEMPORARY children come and go")
{
    int64_t times = JRT_DEBUG ? 100000 : 1000000;
    RIG_REAL("memory of the system is measured");
    if (RIG_SLOW) SKIP("sanitizers keep freed memory");
    rig_run(1, memory_is_flat, &times, 1);
}

/* S44. */

static uint64_t cpu_ns(void)
{
    struct timespec time;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

enum way { IN_TURN, TOGETHER, BY_HAND, NAMED };

struct measure {
    int         count;
    enum way    way;
    uint64_t    best; /* ns for each child, of all rounds */
    janus_actor actors[100000];
};

static janus_actor add_small(janus_supervisor *supervisor, int64_t *argument, const char *id)
{
    janus_actor actor = {{0}};
    CHECK_EQ(
        janus_supervisor_add(supervisor,
                             JANUS_CHILD(.id = id, .behaviour = &small_behaviour,
                                         .argument = argument, .restart = JANUS_RESTART_TRANSIENT),
                             &actor),
        JANUS_OK);
    return actor;
}

static void start_and_stop(struct measure *measure)
{
    janus_supervisor *supervisor = NULL;
    int64_t           argument = 7;
    char              id[32];
    CHECK_EQ(janus_supervisor_open(
                 JANUS_SUPERVISOR_OPTIONS(.stop_together = measure->way == TOGETHER), &supervisor),
             JANUS_OK);
    for (int i = 0; i < measure->count; i++) {
        snprintf(id, sizeof id, "child %d", i);
        measure->actors[i] = add_small(supervisor, &argument, measure->way == NAMED ? id : NULL);
    }
    for (int i = 0; measure->way == BY_HAND && i < measure->count; i++) {
        CHECK_EQ(janus_supervisor_stop_child(supervisor, measure->actors[i]), JANUS_OK);
    }
    CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
}

static int64_t measure_rounds(void *argument)
{
    struct measure *measure = argument;
    const int       rounds = measure->count < 10000 ? 20 : 3;
    for (int round = 0; round < rounds; round++) {
        uint64_t before = cpu_ns();
        start_and_stop(measure);
        uint64_t took = (cpu_ns() - before) / (uint64_t)measure->count;
        if (took < measure->best) measure->best = took;
        if (took > 100000) break; /* it would take minutes */
    }
    return 0;
}

static uint64_t time_for_each(int count, enum way way)
{
    static struct measure measure;
    const janus_budget    plenty =
        janus_budget_of(UINT64_C(1) << 40, UINT64_C(1) << 30, 1 << 30, UINT64_C(1) << 40, 1 << 30);
    measure.count = count;
    measure.way = way;
    measure.best = UINT64_MAX;
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .task_budget = &plenty,
                                         .max_budget = &plenty)); /* the owner pays */
    rig_do(scheduler, measure_rounds, &measure);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    return measure.best;
}

static void compare_crowds(enum way way)
{
    uint64_t few = time_for_each(1000, way);
    for (int count = 10000; count <= 100000; count *= 10) { /* a square shows early */
        bool linear = false; /* on a busy machine a measurement may fail; a square always does */
        for (int tries = 0; tries < 5 && !linear; tries++) {
            uint64_t many = time_for_each(count, way);
            printf("# %llu ns, %llu ns\n", (unsigned long long)few, (unsigned long long)many);
            linear = many <= (tries == 0 ? 2 : 4) * few;
        }
        CHECK(linear);
    }
}

#define OPTIMISED_ONLY()                                                                           \
    do {                                                                                           \
        RIG_REAL("CPU time is measured");                                                          \
        if (RIG_SLOW || JRT_DEBUG) SKIP("only optimised builds are measured");                     \
    } while (0)

TEST("of 100,000 children each costs at most twice as much as of 1,000, if they end in turn")
{
    OPTIMISED_ONLY();
    compare_crowds(IN_TURN);
}

TEST("of 100,000 children each costs at most twice as much as of 1,000, if they end together")
{
    OPTIMISED_ONLY();
    compare_crowds(TOGETHER);
}

TEST("of 100,000 children each costs at most twice as much as of 1,000, if stop_child ends them")
{
    OPTIMISED_ONLY();
    compare_crowds(BY_HAND);
}

TEST("of 100,000 children each costs at most twice as much as of 1,000, if they have ids")
{
    OPTIMISED_ONLY();
    compare_crowds(NAMED);
}

/* S50. */

static size_t stacks_used(void)
{
    janus_scheduler_stacks_info info = JANUS_SCHEDULER_STACKS_INFO();
    MUST_EQ(janus_scheduler_stacks_inspect(janus_scheduler_current(), &info), JANUS_OK);
    return info.stacks_used;
}

static int64_t has_no_stack(void *argument)
{
    enum { COUNT = 20 };
    janus_supervisor *supervisors[COUNT];
    int64_t           number = 7;
    size_t            before = stacks_used();
    uint64_t          limit = janus_now_ns() + rig_patience;
    (void)argument;
    for (int i = 0; i < COUNT; i++) {
        MUST_EQ(janus_supervisor_open(NULL, &supervisors[i]), JANUS_OK);
        for (int k = 0; k < 2; k++) {
            (void)add_child(supervisors[i],
                            JANUS_CHILD(.behaviour = &small_behaviour, .argument = &number));
        }
    }
    while (stacks_used() > before + 8) { /* workers keep some at hand */
        MUST(janus_now_ns() < limit);
        MUST_EQ(janus_yield(), JANUS_OK);
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        MUST_EQ(janus_supervisor_end(supervisors[i], NULL), JANUS_OK);
    }
    return 0;
}

TEST("supervisors and actors at rest have no stacks") { PLAY(has_no_stack, .panics = true); }

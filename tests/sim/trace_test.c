/* SPDX-License-Identifier: MIT */
/* Traces: what each event shows, what the hash covers, and the three formats. */
#include "sim/world.h"
#include "task/note.h"
#include "traced.h"

/* What a trace shows, with one worker, so that there is one order. */

static void check_outline(janus_entry *entry, void *argument, janus_status status,
                          const char *outline)
{
    janus_trace *trace = open_trace(NULL);
    CHECK_EQ(run_traced(trace, 1, 1, entry, argument), status);
    char *told = outline_of(trace);
    CHECK_STR(told, outline);
    free(told);
    close_trace(trace);
}

static int64_t receive_one(void *argument)
{
    int64_t value = 0;
    CHECK_EQ(janus_channel_recv(*(janus_channel *)argument, &value), JANUS_OK);
    return value;
}

static int64_t send_to_child(void *argument)
{
    janus_nursery n;
    janus_channel channel;
    int64_t       value = 7;
    (void)argument;
    CHECK_EQ(janus_channel_create(sizeof value, 1, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, receive_one, &channel), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
    CHECK_EQ(janus_channel_close(channel), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

TEST("a trace shows a child, a channel and a yield in the order in which they happen")
{
    check_outline(send_to_child, NULL, JANUS_OK,
                  "w- spawn A\n"
                  "w0 start A\n"
                  "w0 spawn B by A\n"
                  "w0 yield A\n"
                  "w0 start B\n"
                  "w0 park B waits for a channel to receive from, channel 1\n"
                  "w0 resume A\n"
                  "w0 send A channel 1\n"
                  "w0 wake B by A\n"
                  "w0 close A channel 1\n"
                  "w0 park A waits for its children\n"
                  "w0 resume B\n"
                  "w0 recv B channel 1, waited\n"
                  "w0 complete B ok\n"
                  "w0 wake A\n"
                  "w0 resume A\n"
                  "w0 complete A ok\n");
}

static int64_t fill_then_wait(void *argument)
{
    janus_channel channel = *(janus_channel *)argument;
    int64_t       value = 1;
    CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
    CHECK_EQ(janus_channel_send_until(channel, &value, UINT64_MAX - 1), JANUS_OK);
    CHECK_EQ(janus_channel_send_until(channel, &value, janus_now_ns() + 1000), JANUS_DEADLINE);
    return 0;
}

static int64_t empty_later(void *argument)
{
    janus_nursery n;
    janus_channel channel;
    int64_t       value = 0;
    (void)argument;
    CHECK_EQ(janus_channel_create(sizeof value, 1, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, fill_then_wait, &channel), JANUS_OK);
    CHECK_EQ(janus_sleep(500), JANUS_OK);
    CHECK_EQ(janus_channel_try_recv(channel, &value), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

TEST("a trace shows timers, deadlines and a full channel")
{
    check_outline(empty_later, NULL, JANUS_OK,
                  "w- spawn A\n"
                  "w0 start A\n"
                  "w0 spawn B by A\n"
                  "w0 park A waits for the clock\n"
                  "w0 start B\n"
                  "w0 send B channel 1\n"
                  "w0 park B waits for a channel to send to, channel 1\n"
                  "w0 timer 0 ns late\n"
                  "w0 wake A\n"
                  "w0 resume A\n"
                  "w0 recv A channel 1\n"
                  "w0 wake B by A\n"
                  "w0 park A waits for its children\n"
                  "w0 resume B\n"
                  "w0 send B channel 1, waited\n"
                  "w0 park B waits for a channel to send to, channel 1\n"
                  "w0 timer 0 ns late\n"
                  "w0 wake B with JANUS_DEADLINE\n"
                  "w0 resume B\n"
                  "w0 complete B ok\n"
                  "w0 wake A\n"
                  "w0 resume A\n"
                  "w0 close A channel 1\n"
                  "w0 complete A ok\n");
}

struct pair {
    janus_channel left, right;
};

static int64_t select_twice(void *argument)
{
    struct pair      *pair = argument;
    int64_t           value;
    size_t            chosen;
    janus_select_case cases[2] = {
        {.kind = JANUS_SELECT_KIND_RECV, .channel = pair->left, .value = &value},
        {.kind = JANUS_SELECT_KIND_RECV, .channel = pair->right, .value = &value}};
    CHECK_EQ(janus_select(cases, 2, &chosen), JANUS_OK);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(janus_select(cases, 2, &chosen), JANUS_OK);
    CHECK_EQ(chosen, 0);
    return 0;
}

static int64_t serve_selects(void *argument)
{
    janus_nursery n;
    struct pair   pair;
    int64_t       value = 1;
    (void)argument;
    CHECK_EQ(janus_channel_create(sizeof value, 1, NULL, &pair.left), JANUS_OK);
    CHECK_EQ(janus_channel_create(sizeof value, 1, NULL, &pair.right), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_send(pair.right, &value), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, select_twice, &pair), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_channel_send(pair.left, &value), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(pair.left), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(pair.right), JANUS_OK);
    return 0;
}

TEST("a trace shows the case of a select, at once and after waiting")
{
    check_outline(serve_selects, NULL, JANUS_OK,
                  "w- spawn A\n"
                  "w0 start A\n"
                  "w0 send A channel 2\n"
                  "w0 spawn B by A\n"
                  "w0 yield A\n"
                  "w0 start B\n"
                  "w0 recv B channel 2\n"
                  "w0 select B case 1 of 2\n"
                  "w0 park B waits for one of several channels\n"
                  "w0 resume A\n"
                  "w0 send A channel 1\n"
                  "w0 wake B by A\n"
                  "w0 park A waits for its children\n"
                  "w0 resume B\n"
                  "w0 recv B channel 1, waited\n"
                  "w0 select B case 0 of 2\n"
                  "w0 complete B ok\n"
                  "w0 wake A\n"
                  "w0 resume A\n"
                  "w0 close A channel 1\n"
                  "w0 close A channel 2\n"
                  "w0 complete A ok\n");
}

/* How tasks end. */

static int64_t sleep_long(void *argument)
{
    (void)argument;
    return janus_sleep(UINT64_C(3600) * 1000000000);
}

static int64_t fail(void *argument)
{
    (void)argument;
    return -7;
}

static int64_t panic(void *argument)
{
    (void)argument;
    janus_panic("on purpose");
}

static int64_t cancel_sleeper(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, sleep_long, NULL), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

static int64_t await_one(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, *(janus_entry **)argument, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("a trace shows whose nursery a cancel ends, by which task and why, and how its child ended")
{
    check_outline(cancel_sleeper, NULL, JANUS_OK,
                  "w- spawn A\n"
                  "w0 start A\n"
                  "w0 spawn B by A\n"
                  "w0 yield A\n"
                  "w0 start B\n"
                  "w0 park B waits for the clock\n"
                  "w0 resume A\n"
                  "w0 cancel A by A: a task or thread called cancel\n"
                  "w0 wake B by A with JANUS_CANCELLED\n"
                  "w0 park A waits for its children\n"
                  "w0 resume B\n"
                  "w0 complete B cancelled\n"
                  "w0 wake A\n"
                  "w0 resume A\n"
                  "w0 complete A ok\n");
}

TEST("a trace shows a child that fails or panics in place, and the cancel of its nursery")
{
    janus_entry *entries[] = {fail, panic};
    const char  *ends[] = {"failed", "panicked"};
    for (int i = 0; i < 2; i++) {
        char outline[512];
        snprintf(outline, sizeof outline,
                 "w- spawn A\n"
                 "w0 start A\n"
                 "w0 spawn B by A\n"
                 "w0 start B on A\n"
                 "w0 cancel A by A: a child failed\n"
                 "w0 complete B %s\n"
                 "w0 complete A ok\n",
                 ends[i]);
        check_outline(await_one, &entries[i], JANUS_OK, outline);
    }
}

/* Budgets. */

static int64_t spend(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_charge(janus_budget_of(50, 0, 0, 0, 0)), JANUS_OK);
    return 0;
}

static int64_t supervise(void *argument)
{
    janus_nursery   n;
    janus_task_id   id;
    janus_exhausted child;
    janus_budget    share = janus_budget_of(10, 0, 0, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_MANUAL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, spend, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), &id),
             JANUS_OK);
    CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_OK);
    CHECK_EQ(janus_nursery_recharge(&n, id, janus_budget_of(100, 0, 0, 0, 3)), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a trace shows the component and the amount of exhaustion and recharge")
{
    check_outline(supervise, NULL, JANUS_OK,
                  "w- spawn A\n"
                  "w0 start A\n"
                  "w0 spawn B by A\n"
                  "w0 park A waits for a child to be exhausted\n"
                  "w0 start B\n"
                  "w0 exhaust B lacks ops\n"
                  "w0 wake A by B\n"
                  "w0 park B waits for more budget\n"
                  "w0 resume A\n"
                  "w0 recharge B by 100 ops\n"
                  "w0 recharge B by 3 syscalls\n"
                  "w0 wake B by A\n"
                  "w0 park A waits for its children\n"
                  "w0 resume B\n"
                  "w0 complete B ok\n"
                  "w0 wake A\n"
                  "w0 resume A\n"
                  "w0 complete A ok\n");
}

/* Several workers, and the hash. */

enum { CROWD = 12, RUNS = RIG_SLOW ? 3 : 10 };

static int64_t pass_on(void *argument)
{
    struct pair *pair = argument;
    int64_t      value;
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(janus_channel_recv(pair->left, &value), JANUS_OK);
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_channel_send(pair->right, &value), JANUS_OK);
        if (i % 2 == 0) CHECK_EQ(janus_sleep(300), JANUS_OK);
    }
    return 0;
}

static int64_t crowd(void *argument)
{
    struct pair   pair;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_channel_create(sizeof(int64_t), CROWD, NULL, &pair.left), JANUS_OK);
    CHECK_EQ(janus_channel_create(sizeof(int64_t), CROWD * 4, NULL, &pair.right), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(&n, pass_on, &pair), JANUS_OK);
    for (int64_t i = 0; i < CROWD * 4; i++) {
        CHECK_EQ(janus_channel_send(pair.left, &i), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(pair.left), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(pair.right), JANUS_OK);
    return 0;
}

static const uint32_t worker_counts[] = {1, 2, 4, 8};

TEST("equal seeds give equal traces, line by line, and another seed gives another")
{
    for (int i = 0; i < 4; i++) {
        char        *first = NULL;
        uint64_t     hash = 0;
        janus_trace *trace = open_trace(NULL);
        for (int run = 0; run < RUNS; run++) { /* one trace, again and again */
            CHECK_EQ(run_traced(trace, worker_counts[i], 5, crowd, NULL), JANUS_OK);
            char *text = text_of(trace, JANUS_TRACE_FORMAT_TEXT);
            if (first == NULL) {
                first = text;
                hash = ask(trace).hash;
                continue;
            }
            CHECK(strcmp(text, first) == 0);
            CHECK(ask(trace).hash == hash && ask(trace).deterministic);
            free(text);
        }
        CHECK_EQ(run_traced(trace, worker_counts[i], 6, crowd, NULL), JANUS_OK);
        char *other = text_of(trace, JANUS_TRACE_FORMAT_TEXT);
        CHECK(ask(trace).hash != hash);
        bool same = strcmp(strchr(other, '\n'), strchr(first, '\n')) == 0; /* but for the head */
        CHECK(!same || worker_counts[i] == 1); /* which has little to choose */
        free(other);
        free(first);
        close_trace(trace);
    }
}

TEST("a trace shows that a task is stolen, and that it goes on with the thief")
{
    janus_trace *trace = open_trace(NULL);
    int          steals = 0;
    CHECK_EQ(run_traced(trace, 4, 5, crowd, NULL), JANUS_OK);
    char *text = text_of(trace, JANUS_TRACE_FORMAT_TEXT);
    for (const char *at = strstr(text, " steal "); at != NULL; at = strstr(at, " steal ")) {
        unsigned long long id;
        unsigned           victim, thief;
        CHECK_EQ(sscanf(at, " steal %llx from w%u", &id, &victim), 2);
        while (*at != 'w') at--;
        CHECK_EQ(sscanf(at, "w%u", &thief), 1);
        CHECK(thief != victim && thief < 4 && victim < 4);
        at = strchr(at, '\n');
        steals++;
    }
    CHECK(steals > 0);
    free(text);
    close_trace(trace);
}

static uint64_t hash_of(janus_trace *trace, uint32_t workers, uint64_t seed)
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .deterministic_seed = seed,
                                         .trace = trace));
    rig_do(scheduler, crowd, NULL);
    CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_OK);
    uint64_t hash = janus_scheduler_trace_hash(scheduler);
    CHECK_EQ(jrt_trace_hash_of(scheduler), hash);
    if (trace != NULL) CHECK_EQ(ask(trace).hash, hash);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    return hash;
}

TEST("the hash is the same whether the trace keeps rings, all events, few or none")
{
    janus_trace *ring = open_trace(NULL);
    janus_trace *all = open_trace(JANUS_TRACE_OPTIONS(.max_bytes = 1 << 20));
    janus_trace *tiny = open_trace(JANUS_TRACE_OPTIONS(.ring_events = 1));
    for (int i = 0; i < 4; i++) {
        uint32_t workers = worker_counts[i];
        uint64_t hash = hash_of(NULL, workers, 9);
        CHECK(hash != 0 && hash != hash_of(NULL, workers, 10));
        CHECK_EQ(hash_of(ring, workers, 9), hash);
        CHECK_EQ(hash_of(all, workers, 9), hash);
        CHECK_EQ(hash_of(tiny, workers, 9), hash);
        char *one = outline_of(ring), *other = outline_of(all);
        CHECK_STR(one, other);
        free(one);
        free(other);
    }
    close_trace(ring);
    close_trace(all);
    close_trace(tiny);
    CHECK_EQ(hash_of(NULL, 1, 0), 0); /* no world, no trace */
}

/* A world whose strategy the test decides. */

struct dice {
    struct jrt_strategy strategy; /* first */
    struct jrt_rng      random;
};

static uint32_t throw_dice(struct jrt_strategy *strategy, enum jrt_choice kind, uint32_t count,
                           const uint32_t *who, bool must)
{
    (void)kind, (void)who, (void)must;
    return jrt_rng_below(&((struct dice *)strategy)->random, count);
}

static void run_crowd(void *argument)
{
    (void)argument;
    CHECK_EQ(run_traced(NULL, 3, 0, crowd, NULL), JANUS_OK);
}

static uint64_t world_hash(uint64_t seed, janus_trace *trace)
{
    struct dice dice = {.strategy = {.decide = throw_dice}};
    jrt_rng_seed(&dice.random, seed);
    struct jrt_world_run run = {.strategy = &dice.strategy,
                                .max_steps = 1000000,
                                .max_time_ns = UINT64_MAX,
                                .main = run_crowd,
                                .trace = trace};
    CHECK_EQ(jrt_world_run(&run), JRT_WORLD_DONE);
    return run.hash;
}

TEST("a world has a hash of what happened in it, and a trace if it is given one")
{
    janus_trace *trace = open_trace(NULL);
    uint64_t     hash = world_hash(1, NULL);
    CHECK_EQ(world_hash(1, trace), hash);
    CHECK(ask(trace).events > 100 && ask(trace).workers == 3);
    uint64_t traced = ask(trace).hash;
    CHECK(world_hash(2, trace) != hash);
    CHECK(ask(trace).hash != traced);
    close_trace(trace);
}

static int64_t wait_for_nobody(void *argument)
{
    janus_waitpoint point;
    (void)argument;
    janus_waitpoint_init(&point, JANUS_WAKER_ANYBODY);
    return janus_waitpoint_wait(&point, "nobody");
}

static void run_stuck(void *argument)
{
    (void)argument;
    (void)run_traced(NULL, 2, 0, wait_for_nobody, NULL);
}

TEST("a world that was given up leaves a trace up to that point, which another scheduler can use")
{
    if (JRT_ASAN) SKIP("what a world that was given up held is leaked");
    janus_trace         *trace = open_trace(NULL);
    struct dice          dice = {.strategy = {.decide = throw_dice}};
    struct jrt_world_run run = {.strategy = &dice.strategy,
                                .max_steps = 1000000,
                                .max_time_ns = UINT64_MAX,
                                .main = run_stuck,
                                .trace = trace};
    jrt_rng_seed(&dice.random, 1);
    CHECK_EQ(jrt_world_run(&run), JRT_WORLD_STUCK);
    CHECK(run.hash != 0);
    char *outline = outline_of(trace);
    CHECK(strstr(outline, "park A waits for a waitpoint\n") != NULL);
    CHECK(strstr(outline, "complete") == NULL);
    free(outline);
    CHECK_EQ(janus_trace_destroy(trace), JANUS_STATE);
    jrt_trace_abandon(trace);
    CHECK_EQ(run_traced(trace, 1, 1, send_to_child, NULL), JANUS_OK);
    close_trace(trace);
}

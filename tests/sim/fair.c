/* SPDX-License-Identifier: MIT */
#include "fair.h"

enum { VALUES = 6, GOODS = 5, DEPTH = 40, HOUR_S = 3600 };

static const uint64_t hour_ns = (uint64_t)HOUR_S * 1000000000;

/* The clock advances at every point. So two executions that differ anywhere differ from there
 * on. */
static void note(struct fair *fair, uint64_t what)
{
    uint64_t words[] = {what, janus_now_ns()};
    for (size_t i = 0; i < 2; i++) fair->seen = (fair->seen ^ words[i]) * UINT64_C(1099511628211);
    fair->events++;
}

static int64_t sender(void *argument)
{
    struct fair *fair = argument;
    for (uint64_t i = 0; i < VALUES; i++) {
        CHECK_EQ(janus_channel_send(i % 2 == 0 ? fair->meet : fair->box, &i), JANUS_OK);
        note(fair, 0x100 + i);
        CHECK_EQ(janus_sleep(i * 700), JANUS_OK);
    }
    return 0;
}

/* Receives everything that the two senders and the child with a thread send. */
static int64_t chooser(void *argument)
{
    struct fair *fair = argument;
    for (int i = 0; i < 2 * VALUES + 1; i++) {
        uint64_t          value = 0;
        size_t            chosen = 9;
        janus_select_case cases[] = {{.channel = fair->meet, .value = &value},
                                     {.channel = fair->box, .value = &value}};
        CHECK_EQ(janus_select(cases, 2, &chosen), JANUS_OK);
        note(fair, 0x200 + 16 * chosen + value);
    }
    return 0;
}

static int64_t buyer(void *argument)
{
    struct fair *fair = argument;
    CHECK_EQ(janus_mutex_lock(&fair->lock), JANUS_OK);
    for (int i = 0; i < GOODS; i++) {
        while (fair->stock == 0) {
            CHECK_EQ(janus_condition_wait(&fair->changed, &fair->lock), JANUS_OK);
        }
        note(fair, 0x300 + (uint64_t)fair->stock--);
    }
    return janus_mutex_unlock(&fair->lock);
}

static int64_t seller(void *argument)
{
    struct fair *fair = argument;
    for (int i = 0; i < GOODS; i++) {
        CHECK_EQ(janus_mutex_lock(&fair->lock), JANUS_OK);
        fair->stock++;
        janus_condition_signal(&fair->changed);
        CHECK_EQ(janus_mutex_unlock(&fair->lock), JANUS_OK);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

static int64_t sleep_long(void *argument)
{
    janus_status status = janus_sleep(hour_ns);
    note(argument, 0x400 + (status == JANUS_CANCELLED));
    return status;
}

static int64_t canceller(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, sleep_long, argument), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, sleep_long, argument), JANUS_OK);
    CHECK_EQ(janus_sleep(5000), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    note(argument, 0x410);
    return 0;
}

static int64_t spender(void *argument)
{
    for (int i = 0; i < 25; i++) CHECK_EQ(janus_check(), JANUS_OK);
    CHECK(janus_alloc(200) != NULL);
    note(argument, 0x500);
    return 0;
}

static int64_t supervisor(void *argument)
{
    static const janus_budget little = {10, 100, 0, 0, 0};
    janus_nursery             n;
    janus_exhausted           child;
    CHECK_EQ(
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
        JANUS_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(
            janus_spawn_with(&n, spender, argument, JANUS_SPAWN_OPTIONS(.budget = &little), NULL),
            JANUS_OK);
    }
    CHECK_EQ(janus_nursery_close(&n), JANUS_OK);
    while (janus_nursery_wait_exhausted(&n, &child) == JANUS_OK) {
        note(argument, 0x510 + (uint64_t)child.lacks);
        CHECK_EQ(janus_nursery_recharge(&n, child.task, little), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t block(void *argument)
{
    note(argument, 0x600);
    return 7;
}

static int64_t blocker(void *argument)
{
    for (int i = 0; i < 3; i++) {
        int64_t result = 0;
        CHECK_EQ(janus_blocking(block, argument, &result), JANUS_OK);
        note(argument, 0x600 + (uint64_t)result);
    }
    return 0;
}

static int64_t thread_body(void *argument)
{
    struct fair *fair = argument;
    uint64_t     value = 15;
    CHECK_EQ(janus_sleep(1000), JANUS_OK);
    CHECK_EQ(janus_channel_send(fair->box, &value), JANUS_OK);
    note(fair, 0x700);
    return 0;
}

static int64_t threader(void *argument)
{
    struct fair  *fair = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.backend = JANUS_BACKEND_SET(JANUS_BACKEND_THREADED))),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, thread_body, fair), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    note(fair, 0x701);
    return 0;
}

struct level {
    struct fair *fair;
    int          depth;
};

static int64_t descend(void *argument)
{
    struct level *level = argument;
    struct level  below = {level->fair, level->depth + 1};
    note(level->fair, 0x800 + (uint64_t)level->depth);
    if (below.depth == DEPTH) return 0;
    janus_status ended;
    JANUS_NURSERY(n, ended) { CHECK_EQ(janus_spawn(n, descend, &below), JANUS_OK); }
    CHECK_EQ(ended, JANUS_OK);
    note(level->fair, 0x900 + (uint64_t)level->depth);
    return 0;
}

static int64_t diver(void *argument)
{
    struct level top = {argument, 0};
    return descend(&top);
}

static int64_t visit(void *argument)
{
    static janus_entry *const entries[] = {sender,    sender,     chooser, buyer,    seller,
                                           canceller, supervisor, blocker, threader, diver};
    struct fair              *fair = argument;
    CHECK_EQ(janus_channel_create(sizeof(uint64_t), 0, NULL, &fair->meet), JANUS_OK);
    CHECK_EQ(janus_channel_create(sizeof(uint64_t), 2, NULL, &fair->box), JANUS_OK);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        CHECK_EQ(janus_spawn(&n, entries[i], fair), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(fair->meet), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(fair->box), JANUS_OK);
    return 0;
}

static janus_cap mint(const janus_authority *root, janus_cap_kind kind, janus_cap_limits *limits)
{
    janus_cap cap;
    CHECK_EQ(janus_cap_mint(
                 root, 0,
                 JANUS_CAP_GRANT(.kind = kind, .rights = JANUS_RIGHTS_ALL, .limits = limits), &cap),
             JANUS_OK);
    return cap;
}

/* :sovereign, for the thread: everything is granted and shown. */
static int64_t first(void *argument)
{
    static const uint64_t all = JANUS_BACKEND_SET(JANUS_BACKEND_COUNT) - 1;
    janus_budget          each = JANUS_BUDGET(.ops = 1000000, .memory = 1 << 20, .spawn_count = 100,
                                              .channel_ops = 1000, .syscalls = 10);
    janus_cap_limits      spawn = {.spawn = {.max_tasks = 100, .task_budget = each}};
    janus_cap_limits      budget = {.budget = {.cpu_budget = 10000, .memory_budget = 10000}};
    janus_cap_limits      channel = {.channel = {.max_channels = 10, .max_buffer_size = 10}};
    janus_cap_limits      executor = {.executor = {.allowed_backends = all}};
    janus_authority      *root;
    janus_nursery         n;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    CHECK_EQ(
        janus_nursery_open(
            &n,
            JANUS_NURSERY_OPTIONS(.spawn_cap = mint(root, JANUS_CAP_KIND_SPAWN, &spawn),
                                  .budget_cap = mint(root, JANUS_CAP_KIND_BUDGET, &budget),
                                  .channel_cap = mint(root, JANUS_CAP_KIND_CHANNEL, &channel),
                                  .executor_cap = mint(root, JANUS_CAP_KIND_EXECUTOR, &executor))),
        JANUS_OK);
    CHECK_EQ(janus_spawn(&n, visit, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* Runs it with a trace. Returns one number for what its tasks saw and for the trace. */
static uint64_t run_traced(janus_scheduler_options *options, janus_entry *entry, struct fair *fair)
{
    janus_trace_info info = JANUS_TRACE_INFO();
    fair->seen = UINT64_C(14695981039346656037);
    CHECK_EQ(janus_trace_create(JANUS_TRACE_OPTIONS(.ring_events = 16), &options->trace), JANUS_OK);
    CHECK_EQ(janus_run(options, entry, fair, NULL), JANUS_OK);
    CHECK_EQ(janus_trace_inspect(options->trace, &info), JANUS_OK);
    CHECK(info.deterministic);
    CHECK_EQ(janus_trace_destroy(options->trace), JANUS_OK);
    return fair->seen ^ info.hash;
}

uint64_t fair_dive(uint32_t workers, uint64_t seed)
{
    struct fair fair = {.events = 0};
    return run_traced(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .deterministic_seed = seed),
                      diver, &fair);
}

uint64_t fair_run(uint32_t workers, uint64_t seed)
{
    struct fair fair = {
        .lock = JANUS_MUTEX_INIT("stock"),
        .changed = JANUS_CONDITION_INIT(JANUS_WAKER_TASKS, "stock"),
    };
    uint64_t seen = run_traced(
        JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .profile = JANUS_PROFILE_SOVEREIGN,
                                .yield_interval = 100, .deterministic_seed = seed),
        first, &fair);
    CHECK(fair.events > 50);
    return seen;
}

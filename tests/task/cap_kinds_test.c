/* SPDX-License-Identifier: MIT */
/* Budget, channel and executor capabilities, as tasks meet them. */
#include "caps.h"
#include "means/terms.h"
#include "task/task.h"
#include "task/worker.h"

/* Budgets. */

static int64_t request(void *argument)
{
    const janus_authority  *root = caps_root();
    const janus_cap_limits  limits = {.budget = {.cpu_budget = 1000,
                                                 .spawn_limit = 20,
                                                 .memory_budget = 3000,
                                                 .channel_budget = 40,
                                                 .syscall_budget = 50}};
    const janus_budget      most = janus_budget_of(1000, 3000, 20, 40, 50);
    janus_cap               cap = caps_mint(root, JANUS_CAP_KIND_BUDGET, JANUS_RIGHTS_ALL, &limits);
    janus_nursery           n;
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget_cap = cap, .budget = &most)),
             JANUS_OK);
    CHECK_EQ(janus_nursery_pool_inspect(&n, &books), JANUS_OK);
    CHECK(janus_budget_equal(books.granted, most));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    for (unsigned field = 0; field < 5; field++) { /* one above the limit in one of the five */
        uint64_t     asked[5] = {1000, 3000, 20, 40, 50};
        janus_budget more;
        asked[field]++;
        more = janus_budget_of(asked[0], asked[1], asked[2], asked[3], asked[4]);
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget_cap = cap, .budget = &more)),
                 JANUS_OK);
        CHECK_EQ(janus_nursery_pool_inspect(&n, &books), JANUS_OK);
        CHECK(janus_budget_equal(books.granted, most));
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

/* CAP:4.2.1/request, CAP:4.2.2, CAP:11.1.1/budget, CAP:11.2.1/BudgetLimitExceeded, C32. */
TEST("a pool is exactly the request up to the limit, and cut to it in each component above")
{
    caps_all(request, NULL);
}

static int64_t ask_itself(void *argument)
{
    janus_status wanted = *(janus_status *)argument;
    janus_budget got = janus_budget_of(7, 7, 7, 7, 7), had = janus_budget_get_current();
    janus_status status = janus_budget_recharge_current(janus_budget_of(100, 0, 0, 0, 9), &got);
    CHECK_EQ(status, wanted);
    if (status < 0) {
        CHECK(janus_budget_equal(janus_budget_get_current(), had));
        CHECK_EQ(got.ops, 7); /* untouched */
        return 0;
    }
    CHECK(janus_budget_equal(got, janus_budget_of(100, 0, 0, 0, 5))); /* there are 5 syscalls */
    CHECK_EQ(janus_budget_get_current().ops, had.ops + 100);
    CHECK_EQ(janus_budget_get_current().syscalls, had.syscalls + 5);
    CHECK_EQ(janus_budget_recharge_current(janus_budget_of(1, 0, 0, 0, 1), &got), JANUS_CLAMPED);
    CHECK(janus_budget_equal(got, janus_budget_of(1, 0, 0, 0, 0))); /* five in all */
    return 0;
}

static int64_t recharge(void *argument)
{
    const uint32_t         all_but = JANUS_RIGHT_BUDGET_REQUEST | JANUS_RIGHT_BUDGET_TRANSFER;
    const janus_authority *root = caps_root();
    janus_cap              spawn = caps_spawn(root, 4);
    janus_cap              none = {0};
    janus_cap              caps[] = {none, caps_budget(root, all_but, 1000, 5),
                                     caps_budget(root, JANUS_RIGHT_BUDGET_RECHARGE, 1000, 5)};
    janus_status           want[] = {JANUS_NO_BUDGET_CAP, JANUS_CAP_RIGHT, JANUS_CLAMPED};
    (void)argument;
    for (int i = 0; i < 3; i++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(
                     &n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn, .budget_cap = caps[i])),
                 JANUS_OK);
        CHECK_EQ(janus_spawn(&n, ask_itself, &want[i]), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

/* CAP:1.1.2/budget, CAP:4.2.1/recharge, CAP:4.3.1/budget.recharge, C32. */
TEST("a task recharges itself with budget.recharge, up to the limit in all, and not without")
{
    caps_all(recharge, NULL);
}

static int64_t no_request(void *argument)
{
    const uint32_t         all_but = JANUS_RIGHT_BUDGET_RECHARGE | JANUS_RIGHT_BUDGET_TRANSFER;
    const janus_authority *root = caps_root();
    const janus_budget     pool = janus_budget_of(10, 0, 0, 0, 0);
    janus_nursery          n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_NO_BUDGET_CAP);
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.budget = &pool,
                                           .budget_cap = caps_budget(root, all_but, 100, 100))),
             JANUS_CAP_RIGHT);
    CHECK_EQ(caps_context().kinds, 0);
    return 0;
}

/* CAP:4.3.1/budget.request, CAP:9.3.1/budget. */
TEST("without budget.request there is no pool") { caps_all(no_request, NULL); }

/* Giving to children. */

static int64_t spend(void *argument)
{
    atomic_int *ops = argument;
    for (;;) {
        JANUS_IGNORE(janus_check());
        atomic_fetch_add(ops, 1);
    }
    return 0;
}

static int64_t supervise(void *argument)
{
    const uint32_t         all_but = JANUS_RIGHT_BUDGET_REQUEST | JANUS_RIGHT_BUDGET_RECHARGE;
    const janus_authority *root = caps_root();
    const janus_budget     fifty = janus_budget_of(50, 0, 0, 0, 0);
    const janus_budget     much = janus_budget_of(51, 0, 0, 0, 0);
    janus_cap              wrong = caps_budget(root, all_but, 50, 50);
    janus_cap              right = caps_budget(root, JANUS_RIGHT_BUDGET_TRANSFER, 50, 50);
    const janus_cap        none = {0};
    atomic_int             ops = 0;
    janus_nursery          n;
    janus_exhausted        child;
    (void)argument;
    CHECK_EQ(
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = caps_spawn(root, 4),
                                                     .exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
        JANUS_OK);
    CHECK_EQ(janus_spawn(&n, spend, &ops), JANUS_OK);
    CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_OK);
    CHECK_EQ(ops, 10000);
    CHECK_EQ(janus_budget_recharge_child(child.task, fifty, &none), JANUS_NO_BUDGET_CAP);
    CHECK_EQ(janus_budget_recharge_child(child.task, fifty, NULL), JANUS_NO_BUDGET_CAP);
    CHECK_EQ(janus_budget_recharge_child(child.task, fifty, &wrong), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_budget_recharge_child(child.task, much, &right), JANUS_CAP_LIMIT);
    CHECK_EQ(janus_budget_recharge_child(child.task + 1, fifty, &right), JANUS_STALE);
    CHECK_EQ(janus_nursery_recharge(&n, child.task, fifty), JANUS_NO_BUDGET_CAP);
    CHECK_EQ(ops, 10000); /* nothing of that changed anything */
    CHECK_EQ(janus_budget_recharge_child(child.task, fifty, &right), 0);
    CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_OK);
    CHECK_EQ(ops, 10050);
    CHECK_EQ(janus_nursery_cancel_exhausted(&n, child.task), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

/* CAP:4.2.1/transfer, CAP:4.3.1/budget.transfer, CAP:8.1.2/cap, CAP:8.1.2/limit,
 * CAP:8.3.1/recharge, C32. */
TEST("a child is given what budget.transfer allows; more is refused and changes nothing")
{
    caps_all(supervise, NULL);
}

/* Channels ask for these before they are made. */

static struct jrt_task *self(void) { return jrt_worker_self()->current; }

static janus_scheduler *here(void) { return jrt_worker_self()->scheduler; }

static int64_t without_channels(void *argument)
{
    struct jrt_terms *terms = NULL;
    (void)argument;
    CHECK_EQ(jrt_terms_channel(self(), 0, &terms), JANUS_NO_CHANNEL_CAP);
    CHECK(terms == NULL);
    return 0;
}

static int64_t channels_of_service(void *argument)
{
    const janus_channel_limits *limits =
        &janus_profile_cap_defaults(JANUS_PROFILE_SERVICE)->channel;
    struct jrt_terms *terms;
    (void)argument;
    CHECK_EQ(jrt_terms_channel(self(), limits->max_buffer_size + 1, &terms), JANUS_CAP_LIMIT);
    for (uint64_t i = 0; i < limits->max_channels; i++) {
        CHECK_EQ(jrt_terms_channel(self(), limits->max_buffer_size, &terms), JANUS_OK);
    }
    CHECK_EQ(jrt_terms_channel(self(), 0, &terms), JANUS_CHANNEL_LIMIT);
    jrt_terms_channel_gone(terms);
    CHECK_EQ(jrt_terms_channel(self(), 0, &terms), JANUS_OK);
    for (uint64_t i = 0; i < limits->max_channels; i++) jrt_terms_channel_gone(terms);
    CHECK_EQ(caps_stats(here()).refused_limit, 2);
    return 0;
}

/* CAP:1.1.2/channel, CAP:7.3.2/channels, CAP:11.2.1/ChannelLimitExceeded (what channels ask). */
TEST("tasks open channels without a capability in :service, and not in :sovereign")
{
    caps_sovereign(1, without_channels, NULL);
    CHECK_EQ(janus_run(NULL, channels_of_service, NULL, NULL), JANUS_OK);
}

static janus_cap channel_cap(const janus_authority *root, uint64_t buffer, uint64_t count)
{
    const janus_cap_limits limits = {.channel = {buffer, count}};
    return caps_mint(root, JANUS_CAP_KIND_CHANNEL, JANUS_RIGHTS_ALL, &limits);
}

static void open_channels(janus_nursery *n, janus_cap cap)
{
    CHECK_EQ(janus_nursery_open(n, JANUS_NURSERY_OPTIONS(.channel_cap = cap)), JANUS_OK);
}

static int64_t limited_channels(void *argument)
{
    const uint32_t         ends = JANUS_RIGHT_CHANNEL_SEND | JANUS_RIGHT_CHANNEL_RECV;
    const janus_cap_limits limits = {.channel = {8, 2}};
    const janus_authority *root = caps_root();
    struct jrt_terms      *one, *two, *none = NULL;
    janus_nursery          n;
    (void)argument;
    open_channels(&n, caps_mint(root, JANUS_CAP_KIND_CHANNEL, ends, &limits));
    CHECK_EQ(jrt_terms_channel(self(), 8, &none), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    open_channels(&n, channel_cap(root, 8, 2));
    CHECK_EQ(jrt_terms_channel(self(), 9, &none), JANUS_CAP_LIMIT);
    CHECK_EQ(jrt_terms_channel(self(), 8, &one), JANUS_OK);
    CHECK_EQ(jrt_terms_channel(self(), 0, &two), JANUS_OK);
    CHECK_EQ(jrt_terms_channel(self(), 0, &none), JANUS_CHANNEL_LIMIT);
    CHECK(none == NULL);
    jrt_terms_channel_gone(one);
    CHECK_EQ(jrt_terms_channel(self(), 0, &one), JANUS_OK);
    jrt_terms_channel_gone(one);
    jrt_terms_channel_gone(two);
    return janus_nursery_end(&n, NULL);
}

/* CAP:5.2.1/buffer, CAP:5.2.1/count, CAP:5.3.1/channel.create, CAP:11.2.1/ChannelLimitExceeded. */
TEST("a channel capability limits buffers and numbers, and needs channel.create")
{
    caps_all(limited_channels, NULL);
}

static int64_t nested_channels(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              three = channel_cap(root, 8, 3);
    struct jrt_terms      *of[3], *none;
    janus_nursery          outer, inner;
    (void)argument;
    open_channels(&outer, three);
    CHECK_EQ(jrt_terms_channel(self(), 0, &of[0]), JANUS_OK);
    open_channels(&inner, three);
    for (int i = 1; i < 3; i++) CHECK_EQ(jrt_terms_channel(self(), 0, &of[i]), JANUS_OK);
    for (int i = 0; i < 5; i++) { /* the outer limit; nothing stays taken in the inner one */
        CHECK_EQ(jrt_terms_channel(self(), 0, &none), JANUS_CHANNEL_LIMIT);
    }
    jrt_terms_channel_gone(of[0]);
    CHECK_EQ(jrt_terms_channel(self(), 0, &of[0]), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    /* They outlive their nurseries, and keep the terms that count them. */
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(of[i]->outer->use.channels, 3 - i);
        jrt_terms_channel_gone(of[i]);
    }
    return 0;
}

/* CAP:5.2.1/count, C36. */
TEST("a channel counts in all nurseries around it that hold a capability, and may outlive them")
{
    caps_all(nested_channels, NULL);
}

/* Executors. Other tests check that backends run what they should. */

static int64_t choose(void *argument)
{
    const janus_status *want = argument;
    janus_nursery       n;
    for (int backend = 0; backend < JANUS_BACKEND_COUNT; backend++) {
        if (want[backend] == JANUS_OK && backend != JANUS_BACKEND_COOPERATIVE) continue;
        janus_status status = janus_nursery_open(
            &n, JANUS_NURSERY_OPTIONS(.backend = JANUS_BACKEND_SET((janus_backend)backend)));
        CHECK_EQ(status, want[backend]);
        if (status != JANUS_OK) continue;
        CHECK_EQ(caps_context().backend, backend);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.backend = 3)), JANUS_INVALID);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.backend = 16)), JANUS_INVALID);
    CHECK_EQ(caps_context().backend, JANUS_BACKEND_COOPERATIVE);
    return 0;
}

/* CAP:7.3.1, CAP:9.3.1/backend, C35. */
TEST("a profile's backends can be chosen, and no others")
{
    const janus_status no = JANUS_CAP_LIMIT, none = JANUS_NO_EXECUTOR_CAP;
    janus_status       service[] = {no, no, JANUS_OK, no};
    janus_status       cluster[] = {no, no, JANUS_OK, JANUS_OK};
    janus_status       sovereign[] = {none, none, none, none};
    const uint64_t     both =
        JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE) | JANUS_BACKEND_SET(JANUS_BACKEND_EVENTED);
    CHECK_EQ(janus_run(NULL, choose, service, NULL), JANUS_OK);
    CHECK_EQ(
        janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CLUSTER), choose, cluster, NULL),
        JANUS_OK);
    caps_sovereign(1, choose, sovereign);
    CHECK_EQ(janus_profile_cap_defaults(JANUS_PROFILE_CLUSTER)->executor.allowed_backends, both);
    CHECK_EQ(janus_profile_cap_defaults(JANUS_PROFILE_CLUSTER)->backend, JANUS_BACKEND_COOPERATIVE);
}

static int64_t with_executor(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.executor = {JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE)}};
    const uint64_t         one = JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE);
    janus_cap              select =
        caps_mint(root, JANUS_CAP_KIND_EXECUTOR, JANUS_RIGHT_EXECUTOR_SELECT, &limits);
    janus_cap config =
        caps_mint(root, JANUS_CAP_KIND_EXECUTOR, JANUS_RIGHT_EXECUTOR_CONFIGURE, &limits);
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.executor_cap = config, .backend = one)),
             JANUS_CAP_RIGHT);
    CHECK_EQ(janus_cap_check(select, JANUS_CAP_KIND_EXECUTOR, JANUS_RIGHT_EXECUTOR_CONFIGURE),
             JANUS_CAP_RIGHT);
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.executor_cap = select,
                                           .backend = JANUS_BACKEND_SET(JANUS_BACKEND_BLOCKING))),
             JANUS_CAP_LIMIT);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.executor_cap = select, .backend = one)),
             JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

/* CAP:6.3.1/executor.select, CAP:6.3.1/executor.configure. */
TEST("choosing a backend needs executor.select, and the backend in the set")
{
    caps_all(with_executor, NULL);
}

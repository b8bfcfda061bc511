/* SPDX-License-Identifier: MIT */
#include "contain.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Thread CPU time: other processes on this machine do not count. */
static const uint64_t window_ns = 60000000;
static const uint64_t work_ns = 5000;
static const double   least = 45; /* per cent */

enum { TRIES = 20 };

struct street {
    struct attack attack;
    uint32_t      workers;
    janus_nursery bad, good;
    struct plugin plugin;
    janus_mutex   mutex;
    atomic_int    holds, over, escaped, neighbours;
    atomic_ulong  begun_ns, ended_ns, own_ns;
    double        whole; /* what a neighbour gets alone */
    double        share; /* per cent of that; where it is measured */
};

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool measures(const struct street *street)
{
    return street->workers == 1 && !RIG_SLOW && !JRT_DEBUG && !rig_simulated() &&
           street->attack.no_share == NULL;
}

/* The plugin. */

static void over(void *argument) { atomic_store((atomic_int *)argument, 1); }

static int64_t plugin_main(void *argument)
{
    struct street *street = argument;
    if (janus_defer(over, &street->over) != JANUS_OK) atomic_store(&street->over, 1);
    street->attack.entry(&street->plugin);
    return 0;
}

void hold(struct plugin *plugin)
{
    atomic_store(plugin->holds, 1);
    JANUS_IGNORE(janus_sleep(3600 * 1000 * rig_ms));
}

/* Neighbours. */

/* Computes on the only worker until the window is over. own_ns: what all neighbours got. */
static void take_share(struct street *street)
{
    unsigned long none = 0;
    atomic_compare_exchange_strong(&street->begun_ns, &none, (unsigned long)cpu_ns());
    for (;;) {
        uint64_t start = cpu_ns(), end = start + work_ns, now = start;
        if (start - atomic_load(&street->begun_ns) >= window_ns) break;
        while (now < end) now = cpu_ns();
        atomic_fetch_add(&street->own_ns, (unsigned long)(now - start));
        CHECK_EQ(janus_check(), JANUS_OK);
    }
    atomic_store(&street->ended_ns, (unsigned long)cpu_ns());
}

static int64_t answer(void *argument) { return argument != NULL ? 42 : 0; }

static void raise_flag(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

static void probe_channel(void)
{
    janus_channel channel;
    int           sent = 7, received = 0;
    CHECK_EQ(janus_channel_create(sizeof sent, 4, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_channel_send(channel, &sent), JANUS_OK);
    CHECK_EQ(janus_channel_recv(channel, &received), JANUS_OK);
    CHECK_EQ(received, 7);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
}

static void probe_token(void)
{
    janus_token *token;
    atomic_int   rang = 0;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, raise_flag, &rang, NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(rang, 1);
    janus_token_release(token);
}

static void probe_memory(void)
{
    char *block = janus_alloc(1000);
    CHECK(block != NULL);
    memset(block, 1, 1000);
    block = janus_detach(block);
    CHECK(block != NULL);
    janus_discard(block);
}

static void probe_children(void)
{
    janus_nursery n;
    janus_task_id child;
    int64_t       result = 0;
    janus_budget  pool = janus_budget_of(1000, 4096, 1, 0, 0);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, answer, &n, NULL, &child), JANUS_OK);
    CHECK_EQ(janus_join(&n, child, &result), JANUS_OK);
    CHECK_EQ(result, 42);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
}

/* Everything that the plugin may have taken away from others. */
static void probe(struct street *street)
{
    int64_t result = 0;
    probe_channel();
    probe_token();
    probe_memory();
    probe_children();
    CHECK_EQ(janus_blocking(answer, street, &result), JANUS_OK);
    CHECK_EQ(result, 42);
    CHECK_EQ(janus_sleep(1000), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&street->mutex), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&street->mutex), JANUS_OK);
}

static int64_t neighbour(void *argument)
{
    struct street *street = argument;
    if (measures(street)) take_share(street);
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 50; k++) CHECK_EQ(janus_check(), JANUS_OK);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    probe(street);
    while (street->attack.ends && !atomic_load(&street->over)) CHECK_EQ(janus_yield(), JANUS_OK);
    probe(street);
    atomic_fetch_add(&street->neighbours, 1);
    return 0;
}

/* The host. */

static void open_street(struct street *street)
{
    int          tasks = street->attack.tasks == 0 ? 1 : street->attack.tasks;
    int          spawns = street->attack.spawns;
    uint64_t     memory = street->attack.memory != 0 ? street->attack.memory : 1 << 20;
    janus_budget pool =
        janus_budget_of(UINT64_C(1) << 40, street->attack.poor ? 0 : memory,
                        (uint64_t)(spawns > tasks ? spawns : tasks), UINT64_C(1) << 40, 1000);
    CHECK_EQ(janus_nursery_open(&street->good, JANUS_NURSERY_OPTIONS(.name = "good")), JANUS_OK);
    CHECK_EQ(
        janus_nursery_open(&street->bad, JANUS_NURSERY_OPTIONS(.name = "bad", .budget = &pool,
                                                               .policy = JANUS_POLICY_WAIT_ALL)),
        JANUS_OK);
    janus_mutex_init(&street->mutex, "shared");
    street->plugin = (struct plugin){.around = &street->bad,
                                     .others = &street->good,
                                     .mutex = &street->mutex,
                                     .holds = &street->holds,
                                     .escaped = &street->escaped};
}

static double part(const struct street *street)
{
    double own = (double)atomic_load(&street->own_ns);
    return own / (double)(atomic_load(&street->ended_ns) - atomic_load(&street->begun_ns));
}

/* What a neighbour gets alone: everything but its checks and its looks at the clock. */
static double part_alone(const struct street *street)
{
    struct street alone = {.attack = street->attack};
    take_share(&alone);
    return part(&alone);
}

static void note_share(struct street *street)
{
    street->share = 100 * part(street) / street->whole;
    if (street->share < least) printf("# the neighbours' share is %.1f %%\n", street->share);
}

static void check_bad(struct street *street, janus_status status)
{
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    janus_failure           failure;
    CHECK_EQ(atomic_load(&street->escaped), 0); /* a line of the plugin */
    CHECK_EQ(janus_nursery_pool_inspect(&street->bad, &books), JANUS_OK);
    janus_budget sum = janus_budget_add(books.left, books.shares);
    sum = janus_budget_add(janus_budget_add(sum, books.nested), books.spent);
    CHECK(janus_budget_equal(janus_budget_add(sum, books.refunded), books.granted));
    if (!street->attack.panics) return;
    CHECK_EQ(status, JANUS_CHILD_FAILED);
    CHECK(janus_nursery_failures(&street->bad, &failure, 1) >= 1);
    CHECK(failure.panic != JANUS_PANIC_KIND_NONE);
}

static int64_t host(void *argument)
{
    struct street *street = argument;
    janus_channel  channel;
    int            tasks = street->attack.tasks == 0 ? 1 : street->attack.tasks;
    if (measures(street)) street->whole = part_alone(street);
    open_street(street);
    CHECK_EQ(janus_token_create(&street->plugin.token), JANUS_OK);
    CHECK_EQ(janus_channel_create(sizeof(int), 4, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_channel_attenuate(channel, JANUS_CHANNEL_MAY_SEND, &street->plugin.send_only),
             JANUS_OK);
    for (int i = 0; i < tasks; i++) {
        CHECK_EQ(janus_spawn(&street->good, neighbour, street), JANUS_OK);
    }
    CHECK_EQ(janus_spawn_with(&street->bad, plugin_main, street,
                              JANUS_SPAWN_OPTIONS(.name = "plugin"), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&street->good, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&street->neighbours), tasks);
    if (measures(street)) note_share(street);
    (void)janus_nursery_cancel(&street->bad); /* STATE: it has ended by itself */
    janus_status status = janus_nursery_await_with(&street->bad, NULL);
    check_bad(street, status);
    CHECK_EQ(janus_nursery_end(&street->bad, NULL), status);
    CHECK_EQ(janus_nursery_end(&street->good, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    CHECK(!janus_token_is_cancelled(street->plugin.token));
    janus_token_release(street->plugin.token);
    return 0;
}

void contain(struct attack attack)
{
    static const janus_budget most = {UINT64_C(1) << 50, UINT64_C(1) << 40, 1 << 20,
                                      UINT64_C(1) << 50, 1 << 20};
    static const uint32_t     workers[] = {1, 2, 8};
    for (int i = 0, tries = 1; i < 3; i++) {
        struct street street = {.attack = attack, .workers = workers[i], .share = 100};
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers[i], .max_budget = &most,
                                                   .max_tasks = 1000, .quiet_panics = true,
                                                   .grace_ns = 20 * rig_ms),
                           host, &street, NULL),
                 JANUS_OK);
        if (street.share >= least) continue;
        /* A busy machine may disturb a measurement. A plugin that starves does so each time. */
        CHECK(tries++ < TRIES);
        i--;
    }
}

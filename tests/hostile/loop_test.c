/* SPDX-License-Identifier: MIT */
/* Plugins that call without end, ignore every status and obey no cancel. */
#include "contain.h"

/* A plugin that repeats the statements for ever. */
#define FOREVER(name, ...)                                                                         \
    static void name(struct plugin *plugin)                                                        \
    {                                                                                              \
        (void)plugin;                                                                              \
        for (;;) {                                                                                 \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    }

/* Checks and charges. */

FOREVER(checks, (void)!janus_check())
FOREVER(generated_checks, janus_check_or_end(1))
FOREVER(large_checks, (void)!janus_check_n(UINT32_MAX))
FOREVER(charges, (void)!janus_charge(janus_price_loop(7)))
FOREVER(channel_charges, (void)!janus_charge(janus_budget_of(0, 0, 0, 1, 0)))
FOREVER(failing_charges, (void)!janus_try_charge(janus_budget_of(0, 1 << 30, 0, 0, 0), NULL))
FOREVER(looks_at_cancelled, (void)janus_cancelled())

TEST("loops of checks, of generated checks and of large checks are contained")
{
    contain((struct attack){.entry = checks});
    contain((struct attack){.entry = generated_checks});
    contain((struct attack){.entry = large_checks});
}

TEST("loops of charges, of channel operations and of charges that fail are contained")
{
    contain((struct attack){.entry = charges});
    contain((struct attack){.entry = channel_charges});
    contain((struct attack){.entry = failing_charges});
}

TEST("a loop that only asks for a cancel is contained")
{
    contain((struct attack){.entry = looks_at_cancelled});
}

static void enormous_charge(struct plugin *plugin)
{
    for (;;) {
        if (janus_charge(janus_budget_of(UINT64_MAX, 0, 0, 0, 0)) == JANUS_OK) ESCAPED(plugin);
    }
}

static void enormous_slow_check(struct plugin *plugin)
{
    (void)plugin;
    for (;;) (void)janus_check_slow(INT64_MAX);
}

TEST("a price of UINT64_MAX neither succeeds nor keeps the worker")
{
    contain((struct attack){.entry = enormous_charge});
}

TEST("the slow check with INT64_MAX is contained")
{
    contain((struct attack){.entry = enormous_slow_check});
}

/* Holds. */

static void holds_for_ever(struct plugin *plugin)
{
    (void)plugin;
    janus_hold_begin();
    for (;;) janus_check_or_end(1);
}

static void holds_and_calls(struct plugin *plugin)
{
    (void)plugin;
    janus_hold_begin();
    for (;;) (void)janus_cancelled();
}

/* Each hold is a little shorter than the loan. */
static void holds_again(struct plugin *plugin)
{
    (void)plugin;
    for (;;) {
        janus_hold_begin();
        for (int i = 0; i < JANUS_SLICE - 1; i++) janus_check_or_end(1);
        janus_hold_end();
    }
}

TEST("holds without end, and one hold after the other, are contained")
{
    contain((struct attack){.entry = holds_for_ever});
    contain((struct attack){.entry = holds_and_calls});
    contain((struct attack){.entry = holds_again});
}

/* Compiled checks. */

static void strips(struct plugin *plugin)
{
    (void)plugin;
    for (;;) (void)janus_strip_slow(1024, 3);
}

static void enormous_strips(struct plugin *plugin)
{
    (void)plugin;
    for (;;) (void)janus_strip_slow(UINT64_MAX, UINT64_MAX);
}

FOREVER(stubs, janus_check_stub(1))
FOREVER(enormous_ops, janus_op(UINT64_MAX))
FOREVER(large_ops, janus_op(UINT64_C(1) << 32))

TEST("the slow paths of compiled code, called without end, are contained")
{
    contain((struct attack){.entry = strips});
    contain((struct attack){.entry = enormous_strips});
    contain((struct attack){.entry = stubs});
    contain((struct attack){.entry = enormous_ops});
    contain((struct attack){.entry = large_ops});
}

/* The word of operations. */

static void negative_fuel(struct plugin *plugin)
{
    (void)plugin;
    for (;;) {
        (void)janus_fuel_take((uint32_t)-1000000000);
        JANUS_IGNORE(janus_check());
    }
}

static void written_fuel(struct plugin *plugin)
{
    (void)plugin;
    for (;;) {
        janus_fuel = INT64_MAX / 2;
        JANUS_IGNORE(janus_yield());
    }
}

TEST("taking a negative number of operations is contained")
{
    contain((struct attack){.entry = negative_fuel,
                            .no_share = "the word can be written until its next look"});
}

TEST("writing the word of operations is contained")
{
    contain((struct attack){.entry = written_fuel,
                            .no_share = "the word can be written until its next look"});
}

/* Waits whose CANCELLED is ignored. */

FOREVER(yields, (void)!janus_yield())
FOREVER(short_sleeps, (void)!janus_sleep(0))
FOREVER(past_sleeps, (void)!janus_sleep_until(1))
FOREVER(scheduler_yields, (void)janus_scheduler_yield())

TEST("loops of yields and of sleeps that ignore a cancel are ended")
{
    contain((struct attack){.entry = yields});
    contain((struct attack){.entry = scheduler_yields});
    contain((struct attack){.entry = short_sleeps});
    contain((struct attack){.entry = past_sleeps});
}

static void waits_at_channel(struct plugin *plugin)
{
    janus_channel channel;
    int           value = 0;
    if (janus_channel_create(sizeof value, 0, NULL, &channel) != JANUS_OK) ESCAPED(plugin);
    for (;;) {
        (void)!janus_channel_recv(channel, &value);
        (void)!janus_channel_send(channel, &value);
    }
}

static void waits_at_closed(struct plugin *plugin)
{
    janus_channel channel;
    int           value = 0;
    if (janus_channel_create(sizeof value, 1, NULL, &channel) != JANUS_OK) ESCAPED(plugin);
    (void)janus_channel_close(channel);
    for (;;) {
        (void)!janus_channel_recv(channel, &value);
        (void)!janus_channel_send(channel, &value);
    }
}

static void tries_at_channel(struct plugin *plugin)
{
    int value = 0;
    for (;;) {
        (void)!janus_channel_try_send(plugin->send_only, &value);
        (void)!janus_channel_try_recv(plugin->send_only, &value);
    }
}

TEST("loops of receives and sends at an empty, a closed and a full channel are contained")
{
    contain((struct attack){.entry = waits_at_channel});
    contain((struct attack){.entry = waits_at_closed});
    contain((struct attack){.entry = tries_at_channel});
}

static void waits_at_point(struct plugin *plugin)
{
    janus_waitpoint point;
    (void)plugin;
    janus_waitpoint_init(&point, JANUS_WAKER_ANYBODY);
    for (;;) (void)!janus_waitpoint_wait(&point, "nothing");
}

static void waits_past_deadline(struct plugin *plugin)
{
    janus_event event;
    (void)plugin;
    janus_event_init(&event, JANUS_WAKER_ANYBODY, "never");
    for (;;) (void)!janus_event_wait_until(&event, 1);
}

static void waits_at_semaphore(struct plugin *plugin)
{
    janus_semaphore semaphore;
    (void)plugin;
    janus_semaphore_init(&semaphore, 0, JANUS_WAKER_ANYBODY, "never");
    for (;;) (void)!janus_semaphore_acquire(&semaphore);
}

TEST("loops of waits at a waitpoint, an event and a semaphore are contained")
{
    contain((struct attack){.entry = waits_at_point});
    contain((struct attack){.entry = waits_past_deadline});
    contain((struct attack){.entry = waits_at_semaphore});
}

/* Selects. */

enum { CASES = 10000 };

static void wide_select(struct plugin *plugin)
{
    janus_select_case *cases = calloc(CASES, sizeof *cases);
    static int         value;
    size_t             chosen;
    if (cases == NULL) return;
    for (int i = 0; i < CASES; i++) {
        cases[i] = (janus_select_case){
            .channel = plugin->send_only, .kind = JANUS_SELECT_KIND_SEND, .value = &value};
    }
    if (janus_defer(free, cases) != JANUS_OK) return;
    for (;;) (void)!janus_try_select(cases, CASES, &chosen);
}

static void empty_select(struct plugin *plugin)
{
    janus_select_case none[2] = {{.value = NULL}};
    size_t            chosen;
    (void)plugin;
    for (;;) (void)!janus_try_select(none, 2, &chosen);
}

TEST("selects of ten thousand cases and of zero cases are contained")
{
    contain((struct attack){.entry = wide_select});
    contain((struct attack){.entry = empty_select});
}

/* Children and nurseries. */

static int64_t leaf(void *argument) { return argument == NULL ? 0 : 1; }

static void refused_spawns(struct plugin *plugin)
{
    for (;;) {
        if (janus_spawn(plugin->around, leaf, NULL) == JANUS_OK) JANUS_IGNORE(janus_check());
    }
}

static void awaited_children(struct plugin *plugin)
{
    (void)plugin;
    for (;;) {
        janus_nursery n;
        if (janus_nursery_open(&n, NULL) != JANUS_OK) continue;
        (void)!janus_spawn(&n, leaf, NULL);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
}

static void nurseries(struct plugin *plugin)
{
    (void)plugin;
    for (;;) {
        janus_nursery n;
        if (janus_nursery_open(&n, NULL) == JANUS_OK) JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
}

static void timed_nurseries(struct plugin *plugin)
{
    (void)plugin;
    for (;;) {
        janus_nursery n;
        if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = UINT64_C(1) << 60)) ==
            JANUS_OK) {
            JANUS_IGNORE(janus_nursery_end(&n, NULL));
        }
    }
}

static void pooled_nurseries(struct plugin *plugin)
{
    janus_budget pool = janus_budget_of(1, 0, 0, 0, 0);
    (void)plugin;
    for (;;) {
        janus_nursery n;
        if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)) == JANUS_OK) {
            JANUS_IGNORE(janus_nursery_end(&n, NULL));
        }
    }
}

TEST("a loop of refused spawns is contained")
{
    contain((struct attack){.entry = refused_spawns, .tasks = 2});
}

TEST("a loop that awaits fresh children is contained")
{
    contain((struct attack){.entry = awaited_children, .tasks = 2});
}

TEST("loops of nurseries, with a deadline and with a pool too, are contained")
{
    contain((struct attack){.entry = nurseries});
    contain((struct attack){.entry = timed_nurseries});
    contain((struct attack){.entry = pooled_nurseries});
}

static int64_t spinning_child(void *argument)
{
    for (;;) JANUS_IGNORE(janus_check());
    return argument != NULL;
}

static int64_t panicking_child(void *argument)
{
    (void)argument;
    janus_panic("on purpose");
}

static void fork_bomb(struct plugin *plugin)
{
    for (int i = 0; i < 1000; i++) (void)!janus_spawn(plugin->around, spinning_child, NULL);
    (void)spinning_child(NULL);
}

static void panics_without_end(struct plugin *plugin)
{
    for (;;) (void)!janus_spawn(plugin->around, panicking_child, NULL);
}

TEST("a fork bomb of spinners is contained")
{
    /* Eight beside eight: each check of a neighbour is 8 us of work, and its turns are cut. */
    contain((struct attack){.entry = fork_bomb, .tasks = 8});
}

TEST("a plugin whose children all panic is contained")
{
    contain((struct attack){.entry = panics_without_end, .tasks = 8});
}

/* Memory. */

static void failing_allocs(struct plugin *plugin)
{
    void *block;
    for (;;) {
        if (janus_try_alloc(1 << 30, &block) == JANUS_OK) ESCAPED(plugin);
    }
}

FOREVER(allocs, janus_free(janus_alloc(64)))
FOREVER(large_allocs, janus_free(janus_alloc(500000)))
FOREVER(detached, janus_discard(janus_detach(janus_alloc(64))))

static void reallocs(struct plugin *plugin)
{
    char *block = janus_alloc(16);
    (void)plugin;
    for (size_t size = 16;; size = size == 16 ? 300000 : 16) {
        char *other = janus_realloc(block, size);
        if (other != NULL) block = other;
    }
}

TEST("loops of allocations that fail are contained")
{
    contain((struct attack){.entry = failing_allocs});
}

TEST("loops of small and of large blocks, detached and reallocated ones are contained")
{
    contain((struct attack){.entry = allocs});
    contain((struct attack){.entry = large_allocs});
    contain((struct attack){.entry = detached});
    contain((struct attack){.entry = reallocs});
}

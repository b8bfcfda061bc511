/* SPDX-License-Identifier: MIT */
/* Plugins that keep the library's objects busy: tokens, locks, capabilities, inspections,
 * callbacks. */
#include "contain.h"

/* Tokens. */

static void nothing_to_do(void *argument) { (void)argument; }

static void tokens(struct plugin *plugin)
{
    (void)plugin;
    for (;;) {
        janus_token *token;
        if (janus_token_create(&token) == JANUS_OK) janus_token_release(token);
    }
}

static void registrations(struct plugin *plugin)
{
    janus_token_handle handle;
    for (;;) {
        if (janus_token_on_cancel(plugin->token, nothing_to_do, NULL, &handle) == JANUS_OK) {
            (void)janus_token_remove(plugin->token, handle);
        }
    }
}

TEST("loops of tokens and of registrations are contained")
{
    contain((struct attack){.entry = tokens});
    contain((struct attack){.entry = registrations});
}

static void spin_in_callback(void *argument)
{
    for (;;) JANUS_IGNORE(janus_check());
    (void)argument;
}

static void panic_in_callback(void *argument)
{
    (void)argument;
    janus_panic("in a callback");
}

static void callback_that(void (*function)(void *), struct plugin *plugin)
{
    janus_token *token;
    if (janus_token_create(&token) != JANUS_OK) return;
    if (janus_token_on_cancel(token, function, plugin, NULL) == JANUS_OK) {
        (void)janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT);
    }
    janus_token_release(token);
}

static void spinning_callback(struct plugin *plugin) { callback_that(spin_in_callback, plugin); }

static void panicking_callback(struct plugin *plugin) { callback_that(panic_in_callback, plugin); }

TEST("a token's callback that spins is contained")
{
    contain((struct attack){.entry = spinning_callback, .ends = true});
}

TEST("a token's callback that panics is contained")
{
    contain((struct attack){.entry = panicking_callback, .ends = true});
}

static void spawn_in_callback(void *argument)
{
    struct plugin *plugin = argument;
    for (int i = 0; i < 100; i++) {
        if (janus_spawn(plugin->others, sleep_an_hour, NULL) == JANUS_OK) ESCAPED(plugin);
        if (janus_spawn(plugin->around, sleep_an_hour, NULL) == JANUS_OK && i > 0) ESCAPED(plugin);
    }
}

static void spawning_callback(struct plugin *plugin) { callback_that(spawn_in_callback, plugin); }

TEST("a token's callback cannot spawn more than the task that registered it")
{
    contain((struct attack){.entry = spawning_callback, .tasks = 2, .ends = true});
}

static void block_in_callback(void *argument)
{
    (void)argument;
    JANUS_IGNORE(janus_sleep(3600 * 1000 * rig_ms));
}

static void blocking_callback(struct plugin *plugin) { callback_that(block_in_callback, plugin); }

TEST("a token's callback that sleeps does not take the worker with it")
{
    contain((struct attack){.entry = blocking_callback});
}

static void lock_in_callback(void *argument)
{
    struct plugin *plugin = argument;
    (void)!janus_mutex_try_lock(plugin->mutex);
}

static void locking_callback(struct plugin *plugin) { callback_that(lock_in_callback, plugin); }

/* With several workers it may begin before the cancel. Then there is nothing to drop. */
static int64_t hardly_begins(void *argument) { return argument == NULL; }

static void locking_drop(struct plugin *plugin)
{
    janus_nursery n;
    if (janus_nursery_open(&n, NULL) != JANUS_OK) return;
    (void)!janus_spawn_with(&n, hardly_begins, plugin,
                            JANUS_SPAWN_OPTIONS(.drop = lock_in_callback), NULL);
    (void)janus_nursery_cancel(&n);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

TEST("a lock taken by a token's callback or a drop is free after it")
{
    contain((struct attack){.entry = locking_callback, .ends = true});
    contain((struct attack){
        .entry = locking_drop, .tasks = 2, .no_share = "it ends at once", .ends = true});
}

static void tries_in_callback(void *argument)
{
    struct plugin *plugin = argument;
    for (;;) (void)!janus_mutex_try_lock(plugin->mutex);
}

static void sends_in_callback(void *argument)
{
    struct plugin *plugin = argument;
    int            value = 1;
    for (;;) (void)!janus_channel_try_send(plugin->send_only, &value);
}

static void charges_in_callback(void *argument)
{
    (void)argument;
    for (;;) JANUS_IGNORE(janus_charge(janus_budget_of(0, 0, 0, 1, 0)));
}

static void shows_in_callback(void *argument)
{
    janus_cap forged = {.nonce = 7};
    (void)argument;
    for (;;) (void)!janus_cap_check(forged, JANUS_CAP_KIND_SPAWN, 1);
}

static void trying_callback(struct plugin *plugin) { callback_that(tries_in_callback, plugin); }

static void sending_callback(struct plugin *plugin) { callback_that(sends_in_callback, plugin); }

static void charging_callback(struct plugin *plugin) { callback_that(charges_in_callback, plugin); }

static void showing_callback(struct plugin *plugin) { callback_that(shows_in_callback, plugin); }

TEST("a token's callback pays for locks, sends, charges and checks of capabilities")
{
    contain((struct attack){.entry = trying_callback, .ends = true});
    contain((struct attack){.entry = sending_callback, .ends = true});
    contain((struct attack){.entry = charging_callback, .ends = true});
    contain((struct attack){.entry = showing_callback, .ends = true});
}

/* Locks and signals. */

static void locks(struct plugin *plugin)
{
    for (;;) {
        if (janus_mutex_lock(plugin->mutex) == JANUS_OK) (void)janus_mutex_unlock(plugin->mutex);
    }
}

static void foreign_unlocks(struct plugin *plugin)
{
    for (;;) {
        if (janus_mutex_unlock(plugin->mutex) == JANUS_OK) ESCAPED(plugin);
    }
}

static void signals(struct plugin *plugin)
{
    janus_event     event;
    janus_condition condition;
    janus_broadcast broadcast;
    (void)plugin;
    janus_event_init(&event, JANUS_WAKER_TASKS, "event");
    janus_condition_init(&condition, JANUS_WAKER_TASKS, "condition");
    janus_broadcast_init(&broadcast, JANUS_WAKER_TASKS, "broadcast");
    for (;;) {
        janus_event_set(&event);
        janus_event_reset(&event);
        janus_condition_signal(&condition);
        janus_condition_broadcast(&condition);
        janus_broadcast_send(&broadcast);
    }
}

TEST("a loop of locks leaves the lock to others now and then")
{
    contain((struct attack){.entry = locks});
}

TEST("unlocking another task's lock is refused")
{
    contain((struct attack){.entry = foreign_unlocks});
}

TEST("a loop of signals without waiters is contained")
{
    contain((struct attack){.entry = signals});
}

/* Inspections. */

static void looks(struct plugin *plugin)
{
    janus_task_info    task = JANUS_TASK_INFO();
    janus_memory_info  memory = JANUS_MEMORY_INFO();
    janus_context_info context = JANUS_CONTEXT_INFO();
    janus_nursery_info nursery = JANUS_NURSERY_INFO();
    char               text[200];
    for (;;) {
        JANUS_IGNORE(janus_task_inspect_current(&task));
        JANUS_IGNORE(janus_memory_inspect(&memory));
        JANUS_IGNORE(janus_context_inspect(&context));
        (void)janus_explain(text, sizeof text);
        if (janus_nursery_inspect(plugin->around, &nursery) == JANUS_OK) ESCAPED(plugin);
        (void)janus_nursery_is_cancelled(plugin->around);
        JANUS_IGNORE(janus_channel_inspect(
            plugin->send_only, &(janus_channel_info){.struct_bytes = sizeof(janus_channel_info)}));
    }
}

TEST("a loop of inspections is contained") { contain((struct attack){.entry = looks}); }

/* Capabilities. */

static void forged_capabilities(struct plugin *plugin)
{
    janus_cap guess = {.slot = 1, .generation = 1, .nonce = 1};
    for (;; guess.nonce++) {
        if (janus_cap_check(guess, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_TASK) == JANUS_OK) {
            ESCAPED(plugin);
        }
    }
}

TEST("guessing capabilities without end is contained")
{
    contain((struct attack){.entry = forged_capabilities});
}

/* Defers and shields. */

static void spin_in_defer(void *argument)
{
    for (;;) JANUS_IGNORE(janus_check());
    (void)argument;
}

static void defer_again(void *argument)
{
    if (janus_defer(defer_again, argument) == JANUS_OK) return;
}

static void yield_in_defer(void *argument)
{
    for (;;) JANUS_IGNORE(janus_yield());
    (void)argument;
}

static void many_spinning_defers(struct plugin *plugin)
{
    for (int i = 0; i < 1000; i++) (void)!janus_defer(spin_in_defer, plugin);
}

static void endless_defers(struct plugin *plugin) { (void)!janus_defer(defer_again, plugin); }

static void yielding_defers(struct plugin *plugin)
{
    for (int i = 0; i < 100; i++) (void)!janus_defer(yield_in_defer, plugin);
}

TEST("a thousand defers that spin get one slice together")
{
    contain((struct attack){.entry = many_spinning_defers});
}

TEST("a defer that defers itself again is contained")
{
    contain((struct attack){.entry = endless_defers});
}

TEST("defers that yield for ever are contained")
{
    contain((struct attack){.entry = yielding_defers});
}

static void shielded_spin(struct plugin *plugin)
{
    (void)plugin;
    janus_shield_begin();
    for (;;) JANUS_IGNORE(janus_check());
}

static void shielded_yields(struct plugin *plugin)
{
    (void)plugin;
    janus_shield_begin();
    for (;;) JANUS_IGNORE(janus_yield());
}

static void shields(struct plugin *plugin)
{
    (void)plugin;
    for (;;) {
        janus_shield_begin();
        janus_shield_end();
    }
}

TEST("a loop of shields is contained") { contain((struct attack){.entry = shields}); }

TEST("a shielded spinner ends some time after the cancel")
{
    contain((struct attack){.entry = shielded_spin});
    contain((struct attack){.entry = shielded_yields});
}

/* Blocking calls and schedulers of its own. */

static int64_t quick(void *argument) { return argument != NULL; }

static void blocking_calls(struct plugin *plugin)
{
    int64_t result;
    (void)plugin;
    for (;;) JANUS_IGNORE(janus_blocking(quick, NULL, &result));
}

TEST("a loop of blocking calls is contained") { contain((struct attack){.entry = blocking_calls}); }

static int64_t free_spin(void *argument)
{
    struct plugin *plugin = argument;
    ESCAPED(plugin);
    return 0;
}

static void own_scheduler(struct plugin *plugin)
{
    janus_scheduler *scheduler = NULL;
    if (janus_run(NULL, free_spin, plugin, NULL) == JANUS_OK) ESCAPED(plugin);
    if (janus_scheduler_create_with(NULL, &scheduler) == JANUS_OK) {
        ESCAPED(plugin);
        (void)janus_scheduler_destroy(scheduler);
    }
}

TEST("a plugin cannot open a scheduler of its own")
{
    contain((struct attack){.entry = own_scheduler, .ends = true});
}

static janus_verdict recharge_with_nothing(void *argument, const janus_exhausted *child,
                                           janus_budget *grant)
{
    (void)argument;
    (void)child;
    *grant = janus_budget_zero();
    return JANUS_VERDICT_RECHARGE;
}

static int64_t spin_child(void *argument)
{
    for (;;) JANUS_IGNORE(janus_check());
    return argument != NULL;
}

static void recharging_with_nothing(struct plugin *plugin)
{
    janus_nursery n;
    janus_budget  pool = janus_budget_of(100, 0, 1, 0, 0);
    janus_status  status = janus_nursery_open(
        &n, JANUS_NURSERY_OPTIONS(.budget = &pool, .exhaustion = JANUS_EXHAUSTION_SUPERVISE,
                                   .on_exhausted = recharge_with_nothing));
    (void)plugin;
    if (status != JANUS_OK) return;
    (void)!janus_spawn(&n, spin_child, NULL);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

TEST("a supervisor that recharges with nothing is contained")
{
    contain((struct attack){.entry = recharging_with_nothing, .tasks = 2, .ends = true});
}

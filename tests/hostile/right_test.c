/* SPDX-License-Identifier: MIT */
/* Plugins that want more rights than they were given, or the rights of others. */
#include "contain.h"

#include <string.h>

/* Channel handles. */

static void try_handle(struct plugin *plugin, janus_channel handle)
{
    int value = 0;
    if (janus_channel_try_recv(handle, &value) == JANUS_OK) ESCAPED(plugin);
    if (janus_channel_close(handle) == JANUS_OK) ESCAPED(plugin);
    if (janus_channel_destroy(handle) == JANUS_OK) ESCAPED(plugin);
}

static void flipped_handles(struct plugin *plugin)
{
    for (int word = 0; word < 2; word++) {
        for (int bit = 0; bit < 64; bit++) {
            janus_channel handle = plugin->send_only;
            handle.opaque[word] ^= UINT64_C(1) << bit;
            try_handle(plugin, handle);
        }
    }
}

static void combined_handles(struct plugin *plugin)
{
    janus_channel mine;
    if (janus_channel_create(sizeof(int), 1, NULL, &mine) != JANUS_OK) return;
    for (uint32_t rights = 1; rights < 8; rights++) {
        janus_channel narrow, handle = plugin->send_only;
        if (janus_channel_attenuate(mine, rights, &narrow) != JANUS_OK) continue;
        for (int word = 0; word < 2; word++) {
            handle = plugin->send_only;
            handle.opaque[word] ^= mine.opaque[word] ^ narrow.opaque[word];
            if (memcmp(&handle, &plugin->send_only, sizeof handle) != 0) try_handle(plugin, handle);
            handle.opaque[word] = mine.opaque[word];
            if (memcmp(&handle, &mine, sizeof handle) != 0 &&
                memcmp(&handle, &plugin->send_only, sizeof handle) != 0) {
                try_handle(plugin, handle);
            }
        }
    }
    (void)janus_channel_destroy(mine);
}

static void wild_handles(struct plugin *plugin)
{
    static const uint64_t words[] = {
        1, 8, 4096, UINT64_C(0xdeadbeef0000), UINT64_MAX, UINT64_MAX / 2, (uint64_t)1 << 47};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
            try_handle(plugin, (janus_channel){{words[i], words[k]}});
            try_handle(plugin, (janus_channel){{words[i], plugin->send_only.opaque[1]}});
            try_handle(plugin, (janus_channel){{plugin->send_only.opaque[0], words[k]}});
        }
    }
}

static void widened_handle(struct plugin *plugin)
{
    janus_channel wide;
    if (janus_channel_attenuate(plugin->send_only, JANUS_CHANNEL_MAY_ALL, &wide) == JANUS_OK) {
        ESCAPED(plugin);
    }
}

TEST("a channel handle with any bit flipped is refused")
{
    contain((struct attack){.entry = flipped_handles, .ends = true});
}

TEST("a channel handle assembled from others is refused")
{
    contain((struct attack){.entry = combined_handles, .ends = true});
}

TEST("a channel handle made of wild addresses is refused and does not fault")
{
    contain((struct attack){.entry = wild_handles, .ends = true});
}

TEST("a channel handle cannot be attenuated to more")
{
    contain((struct attack){.entry = widened_handle, .ends = true});
}

/* Nurseries of the host. */

static void host_nurseries(struct plugin *plugin)
{
    janus_nursery *victims[] = {plugin->around, plugin->others};
    for (int i = 0; i < 2; i++) {
        janus_nursery_result result;
        janus_failure        failure;
        janus_exhausted      exhausted;
        if (janus_nursery_close(victims[i]) == JANUS_OK) ESCAPED(plugin);
        if (janus_nursery_await_with(victims[i], &result) != JANUS_STATE) ESCAPED(plugin);
        if (janus_nursery_end(victims[i], &result) != JANUS_STATE) ESCAPED(plugin);
        if (janus_nursery_destroy(victims[i]) != JANUS_STATE) ESCAPED(plugin);
        if (janus_nursery_failures(victims[i], &failure, 1) != 0) ESCAPED(plugin);
        if (janus_nursery_poll_exhausted(victims[i], &exhausted)) ESCAPED(plugin);
        if (janus_nursery_recharge(victims[i], janus_task_current_id(),
                                   janus_budget_of(1, 1, 1, 1, 1)) == JANUS_OK) {
            ESCAPED(plugin);
        }
        if (janus_join(victims[i], janus_task_current_id(), NULL) == JANUS_OK) ESCAPED(plugin);
    }
}

TEST("a plugin can neither close, wait for, end, join nor recharge its host's nurseries")
{
    contain((struct attack){.entry = host_nurseries, .ends = true});
}

static void spawn_elsewhere(struct plugin *plugin)
{
    if (janus_spawn(plugin->others, nothing, NULL) == JANUS_OK) ESCAPED(plugin);
}

TEST("a plugin cannot spawn in a nursery that it is not below")
{
    contain((struct attack){.entry = spawn_elsewhere, .ends = true});
}

static void cancel_others(struct plugin *plugin)
{
    if (janus_nursery_cancel(plugin->others) == JANUS_OK) ESCAPED(plugin);
    if (janus_nursery_propagate_cancel(plugin->others) == JANUS_OK) ESCAPED(plugin);
}

TEST("a plugin cannot cancel a nursery that it is not below")
{
    contain((struct attack){.entry = cancel_others, .ends = true});
}

/* Energy. */

static void recharge_itself(struct plugin *plugin)
{
    janus_budget granted = janus_budget_zero();
    if (janus_budget_recharge_current(janus_budget_of(1, 1, 1, 1, 1), &granted) == JANUS_OK) {
        ESCAPED(plugin);
    }
    if (!janus_budget_equal(granted, janus_budget_zero())) ESCAPED(plugin);
    if (janus_budget_recharge(janus_budget_of(1, 1, 1, 1, 1)) >= 0) ESCAPED(plugin);
    if (janus_budget_recharge_child(janus_task_current_id(), janus_budget_of(1, 1, 1, 1, 1),
                                    NULL) >= 0) {
        ESCAPED(plugin);
    }
}

static void larger_pool(struct plugin *plugin)
{
    janus_nursery n;
    janus_budget  more = janus_budget_of(UINT64_C(1) << 45, 0, 0, 0, 0);
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &more)) == JANUS_OK) {
        janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
        if (janus_nursery_pool_inspect(&n, &books) != JANUS_OK || books.granted.ops > UINT64_C(1)
                                                                                          << 40) {
            ESCAPED(plugin);
        }
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
}

TEST("a plugin with a pool cannot recharge itself")
{
    contain((struct attack){.entry = recharge_itself, .ends = true});
}

TEST("a pool inside the plugin's pool is not larger than that")
{
    contain((struct attack){.entry = larger_pool, .ends = true});
}

/* Authority. */

static void wants_authority(struct plugin *plugin)
{
    janus_authority *root = NULL;
    janus_cap        cap;
    janus_cap_limits limits = {.spawn = {.max_tasks = 1000}};
    janus_cap_grant *grant = JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
                                             .rights = JANUS_RIGHTS_ALL, .limits = &limits);
    if (janus_authority_take(NULL, &root) == JANUS_OK) ESCAPED(plugin);
    if (janus_cap_mint(NULL, 0, grant, &cap) == JANUS_OK) ESCAPED(plugin);
    for (uint32_t slot = 0; slot < 20; slot++) {
        janus_cap guess = {.slot = slot, .generation = 1, .nonce = slot};
        if (janus_cap_attenuate(guess, grant, &cap) == JANUS_OK) ESCAPED(plugin);
        if (janus_cap_delegate(guess, janus_task_current_id(), grant, &cap) == JANUS_OK)
            ESCAPED(plugin);
        if (janus_cap_revoke(guess, guess) == JANUS_OK) ESCAPED(plugin);
        if (janus_cap_release(guess) == JANUS_OK) ESCAPED(plugin);
    }
}

TEST("a plugin without authority makes, derives and revokes no capability")
{
    contain((struct attack){.entry = wants_authority, .ends = true});
}

/* Ids and handles of others. */

static void guessed_ids(struct plugin *plugin)
{
    janus_task_info info = JANUS_TASK_INFO();
    for (uint64_t slot = 0; slot < 64; slot++) {
        for (uint64_t generation = 0; generation < 8; generation++) {
            janus_task_id id = slot << 32 | generation;
            if (janus_join(plugin->others, id, NULL) == JANUS_OK) ESCAPED(plugin);
            if (janus_task_inspect(plugin->others, id, &info) == JANUS_OK) ESCAPED(plugin);
            if (janus_token_remove(plugin->token, id) == JANUS_OK) ESCAPED(plugin);
        }
    }
}

TEST("guessed ids of tasks and callbacks name nothing")
{
    contain((struct attack){.entry = guessed_ids, .ends = true});
}

/* Backends. */

static void own_threads(struct plugin *plugin)
{
    janus_nursery n;
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.max_threads = 1000,
                                                     .backend = JANUS_BACKEND_SET(
                                                         JANUS_BACKEND_THREADED))) == JANUS_OK) {
        ESCAPED(plugin);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
}

TEST("a plugin cannot raise the number of threads")
{
    contain((struct attack){.entry = own_threads, .ends = true});
}

/* Priority. */

static int64_t spin(void *argument)
{
    for (;;) JANUS_IGNORE(janus_check());
    return argument == NULL;
}

static void hurries(struct plugin *plugin)
{
    for (int i = 0; i < 2; i++) {
        if (janus_spawn_with(plugin->around, spin, NULL,
                             JANUS_SPAWN_OPTIONS(.priority = JANUS_PRIORITY_HIGH),
                             NULL) == JANUS_OK) {
            ESCAPED(plugin);
        }
    }
    (void)spin(NULL);
}

TEST("a plugin cannot start children that run before all others")
{
    contain((struct attack){.entry = hurries, .tasks = 3});
}

/* The scheduler. */

static void asks_for_scheduler(struct plugin *plugin)
{
    for (;;) {
        if (janus_scheduler_current() != NULL) ESCAPED(plugin);
    }
}

static void uses_no_scheduler(struct plugin *plugin)
{
    janus_scheduler *scheduler = janus_scheduler_current();
    if (scheduler != NULL) ESCAPED(plugin);
    if (janus_scheduler_worker_count(scheduler) != 0) ESCAPED(plugin);
    if (janus_scheduler_trace_hash(scheduler) != 0) ESCAPED(plugin);
    if (janus_scheduler_start(scheduler) != JANUS_INVALID) ESCAPED(plugin);
    if (janus_scheduler_stop(scheduler) != JANUS_INVALID) ESCAPED(plugin);
    if (janus_fault_claim(11, NULL, NULL)) ESCAPED(plugin);
}

static void opens_schedulers(struct plugin *plugin)
{
    janus_scheduler *scheduler;
    for (;;) {
        if (janus_scheduler_create_with(NULL, &scheduler) == JANUS_OK) ESCAPED(plugin);
    }
}

TEST("a plugin that asks for its scheduler without end is contained, and does not get it")
{
    contain((struct attack){.entry = asks_for_scheduler});
    contain((struct attack){.entry = uses_no_scheduler, .ends = true});
    contain((struct attack){.entry = opens_schedulers});
}

/* SPDX-License-Identifier: MIT */
/*
 * Capabilities: under the profile :sovereign a spawn without a capability is refused. The host
 * mints one for five tasks, and a plugin that starts as many tasks as it can gets no more.
 */
#include <janusrt/janus.h>
#include <stdio.h>

static int64_t nothing(void *argument)
{
    (void)argument;
    return 0;
}

static int64_t wait_for_ever(void *argument)
{
    (void)argument;
    return janus_sleep(UINT64_MAX); /* returns when the task is cancelled */
}

/* Foreign code: starts as many tasks as it can, then asks for a system call. */
static int64_t plugin(void *argument)
{
    int         *started = argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        while (janus_spawn(n, wait_for_ever, NULL) == JANUS_OK) ++*started;
        (void)janus_nursery_cancel(n);
    }
    if (ended != JANUS_CANCELLED) return ended;
    janus_component missing;
    if (janus_try_charge(janus_price_file_io(), &missing) != JANUS_OK) {
        printf("plugin: no %s\n", janus_component_name(missing));
    }
    return 0;
}

static int64_t program(void *argument)
{
    (void)argument;
    janus_authority *root;
    janus_cap        spawn;
    janus_nursery    n;
    int              started = 0;
    if (janus_nursery_open(&n, NULL) != JANUS_OK) return -100;
    printf("without: %s\n", janus_status_name(janus_spawn(&n, nothing, NULL)));
    JANUS_IGNORE(janus_nursery_end(&n, NULL));

    /* The first task takes the authority once and mints a capability for itself. */
    const janus_cap_limits limits = {.spawn = {.max_tasks = 5, .task_budget = {.ops = 50000}}};
    if (janus_authority_take(NULL, &root) != JANUS_OK) return -100;
    if (janus_cap_mint(root, 0,
                       JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = JANUS_RIGHTS_ALL,
                                       .limits = &limits),
                       &spawn) != JANUS_OK) {
        return -100;
    }
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn)) != JANUS_OK) return -100;
    janus_status spawned = janus_spawn(&n, plugin, &started);
    janus_status status = janus_nursery_end(&n, NULL);
    if (spawned != JANUS_OK) return spawned;
    printf("%s: the plugin and its %d tasks\n", janus_status_name(status), started);
    return 0;
}

int main(void)
{
    return janus_run(
               JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN, .yield_interval = 1024),
               program, NULL, NULL) == JANUS_OK
               ? 0
               : 1;
}

/* Prints:
 * without: JANUS_NO_SPAWN_CAP
 * plugin: no syscalls
 * JANUS_OK: the plugin and its 4 tasks
 */

/* SPDX-License-Identifier: MIT */
/* Plugins that attack by way of resting tasks. */
#include "contain.h"

#include <stdio.h>
#include <unistd.h>

/* Resident bytes of this process. */
static long resident(void)
{
    long  pages = 0, unused;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) return 0;
    if (fscanf(file, "%ld %ld", &unused, &pages) != 2) pages = 0;
    (void)fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static janus_rest sleep_on(void *state, janus_status woke)
{
    (void)state;
    return woke == JANUS_OK ? janus_rest_sleep(JANUS_SECONDS) : janus_rest_done(woke);
}

/* Records of spawns that end their spawner. */

static int64_t wait_long(void *argument)
{
    (void)argument;
    return janus_sleep(3600 * 1000 * rig_ms);
}

struct trap {
    janus_nursery full, n;
};

/* The cancel ends this task in the middle of its spawn, which waits for room. */
static int64_t spawn_and_end(void *argument)
{
    struct trap *trap = argument;
    JANUS_IGNORE(janus_nursery_cancel(&trap->n));
    return janus_spawn_resting(&trap->full, janus_rest_sleep(0), sleep_on, NULL, NULL, NULL);
}

static void broken_spawns(struct plugin *plugin)
{
    enum { ROUNDS = 50000 };
    struct trap trap;
    if (janus_nursery_open(&trap.full, JANUS_NURSERY_OPTIONS(.max_children = 1,
                                                             .when_full = JANUS_WHEN_FULL_WAIT)) !=
        JANUS_OK) {
        return;
    }
    JANUS_IGNORE(janus_spawn(&trap.full, wait_long, NULL));
    long before = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (i == ROUNDS / 10) before = resident();
        if (janus_nursery_open(&trap.n, NULL) != JANUS_OK) break;
        JANUS_IGNORE(janus_spawn_with(&trap.n, spawn_and_end, &trap,
                                      JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND),
                                      NULL));
        if (janus_nursery_end(&trap.n, NULL) != JANUS_CANCELLED) break;
    }
    if (before == 0 || (!RIG_SLOW && resident() - before > 4 << 20)) ESCAPED(plugin);
    JANUS_IGNORE(janus_nursery_cancel(&trap.full));
    JANUS_IGNORE(janus_nursery_end(&trap.full, NULL));
}

TEST("a spawn that ends its spawner loses no record of a resting task")
{
    contain((struct attack){.entry = broken_spawns,
                            .tasks = 3,
                            .spawns = 60000,
                            .ends = true,
                            .no_share = "three neighbours"});
}

/* Steps that take long. */

static const uint64_t nap_ns = 20000; /* long enough to rest */

static void spin_for(uint64_t ns)
{
    uint64_t end = janus_now_ns() + ns;
    while (janus_now_ns() < end) continue;
}

static janus_rest spin_and_nap(void *state, janus_status woke)
{
    (void)state;
    if (woke != JANUS_OK) return janus_rest_done(woke);
    spin_for(rig_ms);
    return janus_rest_sleep(nap_ns);
}

static janus_rest check_and_nap(void *state, janus_status woke)
{
    (void)state;
    if (woke != JANUS_OK) return janus_rest_done(woke);
    for (int i = 0; i < 900; i++) {
        spin_for(1000);
        JANUS_IGNORE(janus_check());
    }
    return janus_rest_sleep(nap_ns);
}

static janus_rest never_rest(void *state, janus_status woke)
{
    (void)state;
    return woke == JANUS_CANCELLED ? janus_rest_done(woke) : janus_rest_sleep_until(0);
}

static janus_rest rest_on_nothing(void *state, janus_status woke)
{
    const janus_channel none = {{1, 2}};
    (void)state;
    return woke == JANUS_CANCELLED ? janus_rest_done(woke) : janus_rest_recv(none, NULL);
}

static janus_rest rest_on_no_handle(void *state, janus_status woke)
{
    const janus_io none = {{3, 4}};
    (void)state;
    return woke == JANUS_CANCELLED ? janus_rest_done(woke) : janus_rest_io_wait(none, 77);
}

static void rest_as(struct plugin *plugin, janus_rest_step *step)
{
    if (janus_spawn_resting(plugin->around, janus_rest_sleep(0), step, NULL, NULL, NULL) !=
        JANUS_OK) {
        ESCAPED(plugin);
    }
    hold(plugin);
}

static void long_steps(struct plugin *plugin) { rest_as(plugin, spin_and_nap); }
static void checking_steps(struct plugin *plugin) { rest_as(plugin, check_and_nap); }
static void endless_steps(struct plugin *plugin) { rest_as(plugin, never_rest); }
static void forged_channels(struct plugin *plugin) { rest_as(plugin, rest_on_nothing); }
static void forged_handles(struct plugin *plugin) { rest_as(plugin, rest_on_no_handle); }

static void long_turns(struct plugin *plugin)
{
    if (janus_spawn(plugin->around, wait_long, NULL) != JANUS_OK) ESCAPED(plugin);
    do spin_for(rig_ms);
    while (janus_yield() == JANUS_OK);
}

TEST("long turns are paid back in full while a timer is armed")
{
    contain((struct attack){.entry = long_turns, .spawns = 2});
}

TEST("long steps are paid back, although the task rests in between")
{
    contain((struct attack){.entry = long_steps, .spawns = 2});
    contain((struct attack){.entry = checking_steps, .spawns = 2});
}

/* New children that take long, and a yield to each. */

static int64_t spin_once(void *argument)
{
    (void)argument;
    spin_for(rig_ms);
    return 0;
}

static void long_children(struct plugin *plugin)
{
    for (;;) {
        JANUS_IGNORE(janus_spawn(plugin->around, spin_once, NULL));
        JANUS_IGNORE(janus_yield());
    }
}

TEST("a yield does not end the debt of long children")
{
    contain((struct attack){.entry = long_children, .tasks = 2, .spawns = 60000});
}

/* Callbacks that the deadline of a nursery runs on any worker. */

static void send_often(void *argument)
{
    const struct plugin *plugin = argument;
    int                  value = 0;
    for (int i = 0; i < 900; i++) JANUS_IGNORE(janus_channel_try_send(plugin->send_only, &value));
}

static void timed_callbacks(struct plugin *plugin)
{
    for (;;) {
        janus_nursery n;
        janus_token  *token = NULL;
        if (janus_nursery_open(
                &n, JANUS_NURSERY_OPTIONS(.deadline_ns = janus_now_ns() + 3 * rig_ms)) != JANUS_OK)
            continue;
        if (janus_nursery_token(&n, &token) == JANUS_OK) {
            int more = rig_simulated() ? 50 : 1000; /* a simulated callback takes no time */
            while (more-- > 0 &&
                   janus_token_on_cancel(token, send_often, plugin, NULL) == JANUS_OK) {
                continue;
            }
        }
        JANUS_IGNORE(janus_sleep(5 * rig_ms));
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
        if (token != NULL) janus_token_release(token);
    }
}

TEST("a task owes the time that its callbacks take from others")
{
    contain((struct attack){.entry = timed_callbacks});
}

TEST("steps without end share the worker")
{
    contain((struct attack){.entry = endless_steps, .spawns = 2});
    contain((struct attack){.entry = forged_channels, .spawns = 2});
    contain((struct attack){.entry = forged_handles, .spawns = 2});
}

/* SPDX-License-Identifier: MIT */
/* What each gate asks, what it counts, and what the profiles grant. */
#include "realm.h"

#include <pthread.h>
#include <stdatomic.h>

static const struct jrt_cap_actor alice = {.holder = ALICE};

TEST("three tasks are allowed, and the fourth is refused until one has ended")
{
    struct realm       realm = realm_open(0);
    janus_cap_limits   limits = {.spawn = {.max_tasks = 3, .task_budget = {.ops = 9}}};
    janus_cap          cap = mint(&realm, ALICE, JANUS_CAP_KIND_SPAWN, &limits, 0);
    struct jrt_cap_use use = {0};
    janus_cap_limits   out;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(jrt_cap_gate_spawn(realm.table, cap, &alice, &use, &out), JANUS_OK);
        CHECK_EQ(out.spawn.task_budget.ops, 9);
    }
    CHECK_EQ(jrt_cap_gate_spawn(realm.table, cap, &alice, &use, &out), JANUS_TASK_LIMIT);
    CHECK_EQ(atomic_load(&use.tasks), 3);
    jrt_cap_give_task(&use);
    CHECK_EQ(jrt_cap_gate_spawn(realm.table, cap, &alice, &use, &out), JANUS_OK);
    CHECK_EQ(stats_of(&realm).refused_limit, 1);
    realm_close(&realm);
}

TEST("the spawn gate needs spawn.task of its own holder, and takes nothing when it refuses")
{
    struct realm         realm = realm_open(0);
    janus_cap            cap = mint_spawn(&realm, ALICE);
    janus_cap            part = without(&realm, cap, ALICE, JANUS_RIGHT_SPAWN_TASK);
    struct jrt_cap_use   use = {0};
    janus_cap_limits     out;
    struct jrt_cap_actor bob = {.holder = BOB};
    CHECK_EQ(jrt_cap_gate_spawn(realm.table, (janus_cap){0}, &alice, &use, &out),
             JANUS_NO_SPAWN_CAP);
    CHECK_EQ(jrt_cap_gate_spawn(realm.table, part, &alice, &use, &out), JANUS_CAP_RIGHT);
    CHECK_EQ(jrt_cap_gate_spawn(realm.table, cap, &bob, &use, &out), JANUS_CAP_FOREIGN);
    CHECK_EQ(atomic_load(&use.tasks), 0);
    CHECK_EQ(janus_cap_check_in(realm.table, part, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_NURSERY,
                                ALICE),
             JANUS_OK);
    realm_close(&realm);
}

TEST("channels are limited in size and in number")
{
    struct realm       realm = realm_open(0);
    janus_cap_limits   limits = {.channel = {.max_buffer_size = 10, .max_channels = 2}};
    janus_cap          cap = mint(&realm, ALICE, JANUS_CAP_KIND_CHANNEL, &limits, 0);
    struct jrt_cap_use use = {0};
    CHECK_EQ(jrt_cap_gate_channel(realm.table, cap, &alice, &use, 11), JANUS_CAP_LIMIT);
    CHECK_EQ(atomic_load(&use.channels), 0);
    CHECK_EQ(jrt_cap_gate_channel(realm.table, cap, &alice, &use, 10), JANUS_OK);
    CHECK_EQ(jrt_cap_gate_channel(realm.table, cap, &alice, &use, 0), JANUS_OK);
    CHECK_EQ(jrt_cap_gate_channel(realm.table, cap, &alice, &use, 0), JANUS_CHANNEL_LIMIT);
    jrt_cap_give_channel(&use);
    CHECK_EQ(jrt_cap_gate_channel(realm.table, cap, &alice, &use, 0), JANUS_OK);
    CHECK_EQ(jrt_cap_gate_channel(realm.table, (janus_cap){0}, &alice, &use, 0),
             JANUS_NO_CHANNEL_CAP);
    realm_close(&realm);
}

TEST("the budget gate clamps to the capability and needs the right that is used")
{
    struct realm           realm = realm_open(0);
    const janus_cap_limits limits = {.budget = {10, 20, 30, 40, 50}};
    janus_cap              cap = mint(&realm, ALICE, JANUS_CAP_KIND_BUDGET, &limits, 0);
    janus_budget           out, asked = {.ops = 11, .memory = 5};
    CHECK_EQ(
        jrt_cap_gate_budget(realm.table, cap, &alice, JANUS_RIGHT_BUDGET_REQUEST, &asked, &out),
        JANUS_CLAMPED);
    CHECK_EQ(out.ops, 10);
    CHECK_EQ(out.memory, 5);
    janus_cap part = without(&realm, cap, ALICE, JANUS_RIGHT_BUDGET_RECHARGE);
    CHECK_EQ(
        jrt_cap_gate_budget(realm.table, part, &alice, JANUS_RIGHT_BUDGET_RECHARGE, &asked, &out),
        JANUS_CAP_RIGHT);
    CHECK_EQ(jrt_cap_gate_budget(realm.table, part, &alice, JANUS_RIGHT_BUDGET_TRANSFER,
                                 &(janus_budget){0}, &out),
             JANUS_OK);
    CHECK_EQ(jrt_cap_gate_budget(realm.table, (janus_cap){0}, &alice, JANUS_RIGHT_BUDGET_RECHARGE,
                                 &asked, &out),
             JANUS_NO_BUDGET_CAP);
    realm_close(&realm);
}

TEST("a backend outside the set is refused, and a backend that does not exist is invalid")
{
    struct realm              realm = realm_open(JANUS_PROFILE_SERVICE);
    const janus_cap_defaults *defaults = janus_profile_cap_defaults(JANUS_PROFILE_SERVICE);
    janus_cap_limits          limits = {.executor = defaults->executor};
    janus_cap                 cap = mint(&realm, ALICE, JANUS_CAP_KIND_EXECUTOR, &limits, 0);
    for (int backend = 0; backend < JANUS_BACKEND_COUNT; backend++) {
        CHECK_EQ(jrt_cap_gate_backend(realm.table, cap, &alice, JANUS_RIGHT_EXECUTOR_SELECT,
                                      (janus_backend)backend),
                 backend == JANUS_BACKEND_COOPERATIVE ? JANUS_OK : JANUS_CAP_LIMIT);
    }
    CHECK_EQ(jrt_cap_gate_backend(realm.table, cap, &alice, JANUS_RIGHT_EXECUTOR_SELECT,
                                  JANUS_BACKEND_COUNT),
             JANUS_INVALID);
    janus_cap part = without(&realm, cap, ALICE, JANUS_RIGHT_EXECUTOR_CONFIGURE);
    CHECK_EQ(jrt_cap_gate_backend(realm.table, part, &alice, JANUS_RIGHT_EXECUTOR_CONFIGURE,
                                  JANUS_BACKEND_COOPERATIVE),
             JANUS_CAP_RIGHT);
    realm_close(&realm);
}

TEST("the name gate allows names that begin with the prefix, and needs the right that is used")
{
    struct realm           realm = realm_open(0);
    const janus_cap_limits limits = {.name = {"web."}};
    janus_cap              cap = mint(&realm, ALICE, JANUS_CAP_KIND_NAME, &limits, 0);
    janus_cap              part = without(&realm, cap, ALICE, JANUS_RIGHT_NAME_REGISTER);
    struct jrt_cap_actor   bob = {.holder = BOB};
    janus_cap_limits       out;
#define GATE(cap, actor, right, name)                                                              \
    jrt_cap_gate_name(realm.table, cap, actor, JANUS_RIGHT_NAME_##right, name, &out)
    CHECK_EQ(GATE(cap, &alice, REGISTER, "web.log"), JANUS_OK);
    CHECK_EQ(GATE(cap, &alice, FIND, "web."), JANUS_OK);
    CHECK_EQ(GATE(cap, &alice, REGISTER, "web"), JANUS_CAP_LIMIT);
    CHECK_STR(out.name.prefix, "web.");
    CHECK_EQ(GATE(cap, &alice, FIND, "db"), JANUS_CAP_LIMIT);
    CHECK_EQ(GATE(cap, &alice, FIND, "Web.log"), JANUS_CAP_LIMIT);
    CHECK_EQ(stats_of(&realm).refused_limit, 3);
    CHECK_EQ(GATE(part, &alice, REGISTER, "web.log"), JANUS_CAP_RIGHT);
    CHECK_EQ(GATE(part, &alice, FIND, "web.log"), JANUS_OK);
    CHECK_EQ(GATE(cap, &bob, FIND, "web.log"), JANUS_CAP_FOREIGN);
    CHECK_EQ(GATE((janus_cap){0}, &alice, FIND, "web.log"), JANUS_NO_NAME_CAP);
    CHECK_EQ(janus_cap_revoke_in(realm.table, cap, cap, ALICE), JANUS_OK);
    CHECK_EQ(GATE(cap, &alice, FIND, "web.log"), JANUS_CAP_REVOKED);
    CHECK_EQ(GATE(part, &alice, FIND, "web.log"), JANUS_CAP_REVOKED);
#undef GATE
    realm_close(&realm);
}

/* Eight threads at one limit. */

enum { THREADS = 8, LIMIT = 1000 };

static struct jrt_cap_use shared_use;
static atomic_ulong       taken, over;

static void *take_to_the_limit(void *argument)
{
    (void)argument;
    while (jrt_cap_take_task(&shared_use, LIMIT) == JANUS_OK) atomic_fetch_add(&taken, 1);
    return NULL;
}

static void *take_and_give(void *argument)
{
    (void)argument;
    for (int i = 0; i < 20000; i++) {
        if (jrt_cap_take_channel(&shared_use, THREADS - 1) != JANUS_OK) continue;
        if (atomic_load(&shared_use.channels) > THREADS - 1) atomic_fetch_add(&over, 1);
        atomic_fetch_add(&taken, 1);
        jrt_cap_give_channel(&shared_use);
    }
    return NULL;
}

static void run_threads(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, body, NULL), 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

TEST("eight threads together spawn exactly up to the limit")
{
    run_threads(take_to_the_limit);
    CHECK_EQ(atomic_load(&taken), LIMIT);
    CHECK_EQ(atomic_load(&shared_use.tasks), LIMIT);
}

TEST("a count never exceeds its limit, not even for a moment, and returns to zero")
{
    atomic_store(&taken, 0);
    run_threads(take_and_give);
    CHECK(atomic_load(&taken) > 0);
    CHECK_EQ(atomic_load(&over), 0);
    CHECK_EQ(atomic_load(&shared_use.channels), 0);
}

/* Profiles. */

/* Every address, every file, every process, every name. */
static void check_whole_world(const janus_cap_defaults *given)
{
    CHECK_EQ(given->net.max_handles, 65536);
    CHECK_EQ(given->net.prefix_bits, 0);
    CHECK_EQ(given->net.unix_sockets, 1);
    CHECK_EQ(given->net.port_first, 0);
    CHECK_EQ(given->net.port_last, 65535);
    CHECK_EQ(given->file.max_handles, 65536);
    CHECK_EQ(given->file.max_written, UINT64_MAX);
    CHECK_EQ(given->process.max_processes, 1024);
    CHECK_STR(given->name.prefix, "");
}

TEST("the service profile grants what its document says")
{
    const janus_cap_defaults *given = janus_profile_cap_defaults(JANUS_PROFILE_SERVICE);
    CHECK_EQ(given->kinds, 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8);
    CHECK_EQ(given->spawn.max_tasks, 100);
    CHECK_EQ(given->spawn.task_budget.ops, 10000);
    CHECK_EQ(given->spawn.task_budget.memory, 1 << 20);
    CHECK_EQ(given->spawn.task_budget.spawn_count, 0);
    CHECK_EQ(given->spawn.task_budget.channel_ops, 100);
    CHECK_EQ(given->spawn.task_budget.syscalls, 10);
    CHECK_EQ(given->budget.cpu_budget, 100000);
    CHECK_EQ(given->budget.spawn_limit, 100);
    CHECK_EQ(given->budget.memory_budget, 10 * 1024 * 1024);
    CHECK_EQ(given->budget.channel_budget, 1000);
    CHECK_EQ(given->budget.syscall_budget, 100);
    CHECK_EQ(given->channel.max_buffer_size, 10000);
    CHECK_EQ(given->channel.max_channels, 1000);
    CHECK_EQ(given->executor.allowed_backends, JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE));
    CHECK_EQ(given->backend, JANUS_BACKEND_COOPERATIVE);
    CHECK(!given->supervisor_recharge);
    check_whole_world(given);
    CHECK(janus_profile_cap_defaults(JANUS_PROFILE_DEFAULT) == given);
}

TEST("the cluster profile grants what its document says")
{
    const janus_cap_defaults *given = janus_profile_cap_defaults(JANUS_PROFILE_CLUSTER);
    CHECK_EQ(given->spawn.max_tasks, 10000);
    CHECK_EQ(given->spawn.task_budget.ops, 100000);
    CHECK_EQ(given->spawn.task_budget.memory, 10 << 20);
    CHECK_EQ(given->spawn.task_budget.channel_ops, 1000);
    CHECK_EQ(given->spawn.task_budget.syscalls, 100);
    CHECK_EQ(given->budget.cpu_budget, 1000000);
    CHECK_EQ(given->budget.spawn_limit, 1000);
    CHECK_EQ(given->budget.memory_budget, 100 * 1024 * 1024);
    CHECK_EQ(given->budget.channel_budget, 10000);
    CHECK_EQ(given->budget.syscall_budget, 1000);
    CHECK_EQ(given->channel.max_buffer_size, 100000);
    CHECK_EQ(given->channel.max_channels, 10000);
    CHECK_EQ(given->executor.allowed_backends, JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE) |
                                                   JANUS_BACKEND_SET(JANUS_BACKEND_EVENTED));
    CHECK_EQ(given->backend, JANUS_BACKEND_COOPERATIVE);
    CHECK(given->supervisor_recharge);
    check_whole_world(given);
}

TEST("core grants blocking execution and nothing else, and sovereign grants nothing")
{
    static const janus_cap_limits zero;
    const janus_cap_defaults     *core = janus_profile_cap_defaults(JANUS_PROFILE_CORE);
    const janus_cap_defaults     *none = janus_profile_cap_defaults(JANUS_PROFILE_SOVEREIGN);
    CHECK_EQ(core->kinds, 1 << JANUS_CAP_KIND_EXECUTOR);
    CHECK_EQ(core->executor.allowed_backends, JANUS_BACKEND_SET(JANUS_BACKEND_BLOCKING));
    CHECK_EQ(core->backend, JANUS_BACKEND_BLOCKING);
    CHECK(memcmp(&core->spawn, &zero, sizeof core->spawn) == 0);
    CHECK(memcmp(&core->net, &zero, sizeof core->net) == 0);
    CHECK(memcmp(&core->file, &zero, sizeof core->file) == 0);
    CHECK(memcmp(&core->process, &zero, sizeof core->process) == 0);
    CHECK_EQ(none->kinds, 0);
    CHECK(memcmp(&none->net, &zero, sizeof none->net) == 0);
    CHECK_EQ(none->executor.allowed_backends, 0);
    CHECK(janus_profile_cap_defaults(77) == NULL);
}

TEST("a profile bounds even what the authority can mint")
{
    struct realm                  core = realm_open(JANUS_PROFILE_CORE), service = realm_open(0);
    struct realm                  sovereign = realm_open(JANUS_PROFILE_SOVEREIGN);
    janus_cap                     cap;
    static const janus_cap_limits ones = {.words = {1, 1, 1, 1, 1, 1}}, zeros;
#define MINT(realm, of, what)                                                                      \
    janus_cap_mint_in((realm).table, (realm).root, ALICE,                                          \
                      JANUS_CAP_GRANT(.kind = of, .rights = JANUS_RIGHTS_ALL, .limits = what),     \
                      &cap)
    CHECK_EQ(MINT(core, JANUS_CAP_KIND_SPAWN, &ones), JANUS_PROFILE);
    CHECK_EQ(MINT(core, JANUS_CAP_KIND_BUDGET, &ones), JANUS_PROFILE);
    CHECK_EQ(MINT(core, JANUS_CAP_KIND_CHANNEL, &ones), JANUS_PROFILE);
    CHECK_EQ(MINT(core, JANUS_CAP_KIND_NET, &zeros), JANUS_PROFILE);
    CHECK_EQ(MINT(core, JANUS_CAP_KIND_FILE, &ones), JANUS_PROFILE);
    CHECK_EQ(MINT(core, JANUS_CAP_KIND_PROCESS, &ones), JANUS_PROFILE);
    CHECK_EQ(MINT(core, JANUS_CAP_KIND_NAME, &zeros), JANUS_PROFILE);
    CHECK_EQ(MINT(core, JANUS_CAP_KIND_EXECUTOR, &ones), JANUS_OK); /* blocking */
    static const janus_cap_limits threaded = {
        .executor = {JANUS_BACKEND_SET(JANUS_BACKEND_THREADED)}};
    CHECK_EQ(MINT(core, JANUS_CAP_KIND_EXECUTOR, &threaded), JANUS_PROFILE);
    CHECK_EQ(MINT(service, JANUS_CAP_KIND_EXECUTOR, &threaded), JANUS_PROFILE);
    CHECK_EQ(MINT(sovereign, JANUS_CAP_KIND_EXECUTOR, &threaded), JANUS_OK);
    CHECK_EQ(MINT(sovereign, JANUS_CAP_KIND_SPAWN, &many_tasks), JANUS_OK);
#undef MINT
    realm_close(&core);
    realm_close(&service);
    realm_close(&sovereign);
}

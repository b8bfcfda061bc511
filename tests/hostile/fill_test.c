/* SPDX-License-Identifier: MIT */
/*
 * Plugins that take everything they can get of one thing and keep it. Neighbours probe everything
 * while the plugin holds it. The probes also run under the plugin's pool with no memory to spend.
 */
#include "contain.h"

#include <stdio.h>
#include <string.h>
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

/* Calls `take` up to `most` times, until it refuses. The memory it costs stays within `bytes`. */
static void fill(struct plugin *plugin, bool (*take)(struct plugin *plugin), int most, long bytes)
{
    long before = resident();
    int  taken = 0;
    while (taken < most && take(plugin)) {
        taken++;
        JANUS_IGNORE(janus_check());
    }
    if (!RIG_SLOW && resident() - before > bytes) ESCAPED(plugin);
    hold(plugin);
}

static bool take_channel(struct plugin *plugin)
{
    janus_channel channel;
    (void)plugin;
    return janus_channel_create(8, 4, NULL, &channel) == JANUS_OK;
}

static bool take_buffer(struct plugin *plugin)
{
    janus_channel channel;
    (void)plugin;
    return janus_channel_create(100, 1000, NULL, &channel) == JANUS_OK;
}

static void many_channels(struct plugin *plugin) { fill(plugin, take_channel, 1000000, 16 << 20); }

static void many_buffers(struct plugin *plugin) { fill(plugin, take_buffer, 1000000, 16 << 20); }

TEST("endless channels leave the neighbours theirs")
{
    contain((struct attack){.entry = many_channels});
    contain((struct attack){.entry = many_channels, .poor = true});
}

TEST("endless channel buffers are paid from the plugin's memory")
{
    contain((struct attack){.entry = many_buffers});
    contain((struct attack){.entry = many_buffers, .poor = true});
}

static bool take_sends(struct plugin *plugin)
{
    static const char value[4096];
    (void)plugin;
    janus_channel channel;
    if (janus_channel_create_unbounded(sizeof value, UINT64_C(1) << 30, NULL, &channel) !=
        JANUS_OK) {
        return false;
    }
    for (int i = 0; i < 1000; i++) {
        if (janus_channel_try_send(channel, value) != JANUS_OK) return false;
    }
    return true;
}

static void many_values(struct plugin *plugin) { fill(plugin, take_sends, 1000, 16 << 20); }

TEST("values in unbounded channels are paid from the plugin's memory")
{
    contain((struct attack){.entry = many_values});
    contain((struct attack){.entry = many_values, .poor = true});
}

static bool take_detached(struct plugin *plugin)
{
    char *block;
    (void)plugin;
    if (janus_try_alloc(100000, (void **)&block) != JANUS_OK) return false;
    if (janus_detach(block) != NULL) return true;
    janus_free(block);
    return false;
}

static void many_detached(struct plugin *plugin) { fill(plugin, take_detached, 100000, 80 << 20); }

TEST("endless detached blocks leave the neighbours theirs")
{
    contain((struct attack){.entry = many_detached});
}

/* Panics. */

static int64_t panic_at_length(void *argument) { janus_panic(argument); }

/* Children that can be joined keep their message until the nursery ends. */
static void long_messages(struct plugin *plugin)
{
    static char        message[8 << 20];
    janus_nursery      n;
    janus_task_id      child;
    janus_nursery_info info = JANUS_NURSERY_INFO();
    memset(message, 'x', sizeof message - 1);
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)) != JANUS_OK)
        return;
    long before = resident();
    while (janus_spawn_with(&n, panic_at_length, message, NULL, &child) == JANUS_OK) continue;
    do {
        JANUS_IGNORE(janus_yield());
    } while (janus_nursery_inspect(&n, &info) == JANUS_OK && info.children > 0);
    if (!RIG_SLOW && resident() - before > 32 << 20) ESCAPED(plugin);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

TEST("long messages of panics are cut before the library keeps them")
{
    contain((struct attack){
        .entry = long_messages, .tasks = 20, .ends = true, .no_share = "twenty neighbours"});
}

static bool take_token(struct plugin *plugin)
{
    janus_token *token;
    (void)plugin;
    return janus_token_create(&token) == JANUS_OK;
}

static void never(void *argument) { (void)argument; }

static bool take_callback(struct plugin *plugin)
{
    return janus_token_on_cancel(plugin->token, never, NULL, NULL) == JANUS_OK;
}

static bool take_child_token(struct plugin *plugin)
{
    janus_token *token;
    return janus_token_create_child(plugin->token, &token) == JANUS_OK;
}

static bool take_binding(struct plugin *plugin)
{
    janus_nursery *n = janus_nursery_create();
    return n != NULL && janus_nursery_cancel_on(n, plugin->token) == JANUS_OK;
}

static bool take_nursery(struct plugin *plugin)
{
    (void)plugin;
    return janus_nursery_create() != NULL;
}

static bool take_defer(struct plugin *plugin)
{
    (void)plugin;
    return janus_defer(never, NULL) == JANUS_OK;
}

static void many_tokens(struct plugin *plugin) { fill(plugin, take_token, 1000000, 16 << 20); }

static void many_callbacks(struct plugin *plugin)
{
    fill(plugin, take_callback, 1000000, 16 << 20);
}

static void many_child_tokens(struct plugin *plugin)
{
    fill(plugin, take_child_token, 1000000, 16 << 20);
}

static void many_bindings(struct plugin *plugin) { fill(plugin, take_binding, 1000, 16 << 20); }

static void many_nurseries(struct plugin *plugin) { fill(plugin, take_nursery, 1000000, 16 << 20); }

static void many_defers(struct plugin *plugin) { fill(plugin, take_defer, 1000000, 16 << 20); }

/* A look upwards costs the depth of the nurseries, so no share is promised while they are
 * nested. */
#define AND_POOR(name)                                                                             \
    contain((struct attack){.entry = (name), .no_share = "filling"});                              \
    contain((struct attack){.entry = (name), .poor = true, .no_share = "filling"})

TEST("endless tokens are paid for or refused") { AND_POOR(many_tokens); }

TEST("tokens below the host's token are paid for or refused") { AND_POOR(many_child_tokens); }

TEST("callbacks at the host's token are paid for or refused") { AND_POOR(many_callbacks); }

TEST("nurseries inside nurseries are paid for or refused") { AND_POOR(many_nurseries); }

TEST("bindings of nurseries to the host's token are paid for or refused")
{
    AND_POOR(many_bindings);
}

TEST("endless defers are refused") { AND_POOR(many_defers); }

/* Nurseries that are open one inside the other, in memory that the plugin has paid for. */

enum { OPEN_MOST = 400 };

static bool take_deadline(struct plugin *plugin)
{
    janus_nursery *n;
    (void)plugin;
    if (janus_try_alloc(sizeof *n, (void **)&n) != JANUS_OK) return false;
    return janus_nursery_open(n, JANUS_NURSERY_OPTIONS(.deadline_ns = UINT64_C(1) << 60)) ==
           JANUS_OK;
}

static bool take_failure(struct plugin *plugin)
{
    janus_nursery *n;
    (void)plugin;
    if (janus_try_alloc(sizeof *n, (void **)&n) != JANUS_OK) return false;
    if (janus_nursery_open(n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)) != JANUS_OK) {
        return false;
    }
    if (janus_spawn(n, minus_seven, NULL) != JANUS_OK) return false;
    return janus_nursery_await_with(n, NULL) == JANUS_CHILD_FAILED;
}

static void many_deadlines(struct plugin *plugin)
{
    fill(plugin, take_deadline, OPEN_MOST, 4 << 20);
}

static void many_failures(struct plugin *plugin) { fill(plugin, take_failure, OPEN_MOST, 4 << 20); }

TEST("endless deadlines of nurseries cost what the nurseries cost") { AND_POOR(many_deadlines); }

TEST("failures that nurseries keep are bounded")
{
    contain((struct attack){.entry = many_failures, .tasks = 150, .no_share = "150 neighbours"});
}

/* Stacks. */

static int64_t touch_stack(void *argument)
{
    volatile char page[60000];
    (void)argument;
    for (size_t i = 0; i < sizeof page; i += 4096) page[i] = 1;
    return janus_sleep(3600 * 1000 * rig_ms) + page[0] - 1;
}

static bool take_stack(struct plugin *plugin)
{
    return janus_spawn_with(plugin->around, touch_stack, NULL,
                            JANUS_SPAWN_OPTIONS(.stack_bytes = (size_t)256 << 20),
                            NULL) == JANUS_OK;
}

static void large_stacks(struct plugin *plugin) { fill(plugin, take_stack, 100000, 64 << 20); }

TEST("stacks of 256 MiB are paid for or refused")
{
    contain((struct attack){.entry = large_stacks, .tasks = 16});
    contain((struct attack){.entry = large_stacks, .tasks = 16, .poor = true});
}

/* Blocking helpers. */

static int pipe_ends[2];

static int64_t read_pipe(void *argument)
{
    char byte;
    (void)argument;
    return read(pipe_ends[0], &byte, 1);
}

static int64_t block_here(void *argument)
{
    (void)argument;
    return janus_blocking(read_pipe, NULL, NULL);
}

static void many_blocked(struct plugin *plugin)
{
    for (int i = 0; i < 199; i++) {
        if (janus_spawn(plugin->around, block_here, NULL) != JANUS_OK) break;
    }
    atomic_store(plugin->holds, 1);
    while (janus_yield() == JANUS_OK) {
    }
    (void)!write(pipe_ends[1],
                 "0123456789012345678901234567890123456789012345678901234567890123"
                 "0123456789012345678901234567890123456789012345678901234567890123"
                 "0123456789012345678901234567890123456789012345678901234567890123",
                 192);
}

TEST("blocking calls that do not end leave the neighbours theirs")
{
    RIG_REAL("blocking calls run on the one thread, and all others wait for them");
    CHECK_EQ(pipe(pipe_ends), 0);
    contain((struct attack){.entry = many_blocked, .tasks = 150, .no_share = "150 neighbours"});
    (void)close(pipe_ends[0]);
    (void)close(pipe_ends[1]);
}

/* Sums. */

static void bank_breaker(struct plugin *plugin)
{
    janus_nursery n;
    janus_budget  all = janus_budget_of(UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &all)) == JANUS_OK) {
        janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
        if (janus_nursery_pool_inspect(&n, &books) == JANUS_OK && books.granted.ops > UINT64_C(1)
                                                                                          << 40) {
            ESCAPED(plugin);
        }
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
    for (int i = 0; i < 100; i++) JANUS_IGNORE(janus_budget_recharge_current(all, NULL));
    hold(plugin);
}

TEST("asking for all the budget there is leaves the neighbours theirs")
{
    contain((struct attack){.entry = bank_breaker});
}

/* Adopted crumbs. */

static void crumbs(struct plugin *plugin)
{
    long  before = resident();
    void *crumb[400];
    int   kept = 0;
    for (int i = 0; i < 400; i++) {
        void *pad[32];
        int   pads = 0;
        while (pads < 32 && janus_try_alloc(8000, &pad[pads]) == JANUS_OK) pads++;
        if (janus_try_alloc(16, &crumb[kept]) == JANUS_OK) {
            void *loose = janus_detach(crumb[kept]);
            if (loose == NULL) {
                janus_free(crumb[kept]);
            } else if (janus_adopt(loose) == JANUS_OK) {
                kept++;
            } else {
                janus_discard(loose);
            }
        }
        while (pads > 0) janus_free(pad[--pads]);
        JANUS_IGNORE(janus_check());
    }
    if (!RIG_SLOW && resident() - before > 8 << 20) ESCAPED(plugin);
    hold(plugin);
}

TEST("sixteen adopted bytes do not keep a chunk without an owner")
{
    contain((struct attack){.entry = crumbs});
}

/* SPDX-License-Identifier: MIT */
/* Plugins that use actors and supervisors to end the process, or to take time from others. */
#include "contain.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* An attack that could not begin shows nothing: the next call of the plugin must be OK. */
static void must(janus_status status)
{
    if (status != JANUS_OK) {
        char why[500] = "";
        (void)janus_explain(why, sizeof why);
        printf("# %s: %s\n", janus_status_name(status), why);
    }
}

static int64_t do_nothing(void *state, janus_letter *letter)
{
    (void)state;
    if (janus_letter_is_call(letter)) JANUS_IGNORE(janus_reply(letter, &(int64_t){1}));
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour idle = {.struct_bytes = sizeof idle,
                                     .name = "idle",
                                     .message_bytes = sizeof(int64_t),
                                     .reply_bytes = sizeof(int64_t),
                                     .handle = do_nothing};

/* With memory for actors. */
static void attack(struct attack attack)
{
    attack.memory = 64 << 20;
    contain(attack);
}

/* Callbacks that break a contract. */

static int deeper(volatile char *above)
{
    volatile char here[512];
    here[0] = above[0];
    return above[0] != 0 ? deeper(here) + here[0] : 0;
}

static void go_too_deep(void)
{
    volatile char here = 1;
    (void)deeper(&here);
}

static void check_for_ever(void)
{
    for (;;) JANUS_IGNORE(janus_check());
}

static void end_the_thread(void) { pthread_exit(NULL); }

static void (*broken)(void);

static int64_t fail(void *state, janus_letter *letter)
{
    (void)state, (void)letter;
    return -100;
}

static const janus_behaviour failing = {
    .struct_bytes = sizeof failing, .name = "failing", .handle = fail};

static janus_decision break_on_end(void *argument, const janus_child_event *event,
                                   uint64_t *delay_ns)
{
    (void)argument, (void)event, (void)delay_ns;
    broken();
    return JANUS_DECISION_RESTART;
}

static void breaks_on_end(struct plugin *plugin)
{
    janus_supervisor *own;
    janus_actor       actor;
    if (janus_supervisor_open(
            JANUS_SUPERVISOR_OPTIONS(.on_end = break_on_end, .max_restarts = 1000), &own) !=
        JANUS_OK)
        return;
    if (janus_supervisor_add(own, JANUS_CHILD(.behaviour = &failing), &actor) == JANUS_OK) {
        for (int i = 0; i < 20; i++) {
            JANUS_IGNORE(janus_cast(actor, NULL));
            JANUS_IGNORE(janus_sleep(rig_ms / 10));
        }
    }
    hold(plugin);
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

TEST("an on_end that overflows the stack is contained")
{
    broken = go_too_deep;
    attack((struct attack){.entry = breaks_on_end, .tasks = 2, .spawns = 1000});
}

TEST("an on_end that never returns is contained")
{
    broken = check_for_ever;
    attack((struct attack){.entry = breaks_on_end, .tasks = 2, .spawns = 1000});
}

TEST("an on_end that ends its thread is contained")
{
    RIG_REAL("a deterministic run has one thread");
    broken = end_the_thread;
    attack((struct attack){.entry = breaks_on_end,
                           .tasks = 2,
                           .spawns = 1000,
                           .no_share = "the thread that is measured ends"});
}

static size_t break_describe(const void *state, char *buffer, size_t size)
{
    (void)state, (void)buffer, (void)size;
    broken();
    return 0;
}

static const janus_behaviour shy = {
    .struct_bytes = sizeof shy, .name = "shy", .handle = do_nothing, .describe = break_describe};

static void breaks_describe(struct plugin *plugin)
{
    janus_supervisor *own;
    janus_actor       actor;
    char              text[100];
    if (janus_supervisor_open(NULL, &own) != JANUS_OK) return;
    if (janus_supervisor_add(own, JANUS_CHILD(.behaviour = &shy), &actor) == JANUS_OK) {
        for (int i = 0; i < 20; i++)
            JANUS_IGNORE(janus_actor_describe(actor, text, sizeof text, 0));
    }
    hold(plugin);
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

TEST("a describe that overflows the stack is contained")
{
    broken = go_too_deep;
    attack((struct attack){.entry = breaks_describe, .tasks = 2});
}

TEST("a describe that never returns is contained")
{
    broken = check_for_ever;
    attack((struct attack){.entry = breaks_describe, .tasks = 2});
}

TEST("a describe that ends its thread is contained")
{
    RIG_REAL("a deterministic run has one thread");
    broken = end_the_thread;
    attack((struct attack){
        .entry = breaks_describe, .tasks = 2, .no_share = "the thread that is measured ends"});
}

/* A terminate that does not end. */

static void wait_for_ever(void *state, const janus_end *end)
{
    (void)state, (void)end;
    for (;;) JANUS_IGNORE(janus_sleep(3600 * 1000 * rig_ms));
}

static const janus_behaviour clinging = {.struct_bytes = sizeof clinging,
                                         .name = "clinging",
                                         .handle = do_nothing,
                                         .terminate = wait_for_ever};

static void clings(struct plugin *plugin)
{
    janus_supervisor *own;
    if (janus_supervisor_open(NULL, &own) != JANUS_OK) return;
    for (int i = 0; i < 3; i++)
        must(janus_supervisor_add(
            own, JANUS_CHILD(.behaviour = &clinging, .stop_within_ns = JANUS_ANY_TIME), NULL));
    hold(plugin);
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

TEST("a terminate that waits for ever is contained")
{
    attack((struct attack){.entry = clings, .tasks = 4});
}

/* A supervisor that is its own child. */

static void nests(struct plugin *plugin)
{
    static janus_supervisor_options options;
    static janus_child              child;
    janus_supervisor               *own;
    child = (janus_child){
        .struct_bytes = sizeof child, .supervisor = &options, .start_within_ns = JANUS_ANY_TIME};
    options = (janus_supervisor_options){
        .struct_bytes = sizeof options, .children = &child, .child_count = 1};
    if (janus_supervisor_open(&options, &own) == JANUS_OK) ESCAPED(plugin);
    hold(plugin);
}

TEST("a supervisor that has itself as a child is contained")
{
    attack((struct attack){.entry = nests, .tasks = 2, .spawns = 200});
}

/* A letter that its handler changes. */

static struct plugin *forger;

static int64_t forge_message(void *state, janus_letter *letter)
{
    (void)state;
    if (letter->kind == JANUS_LETTER_KIND_MESSAGE) {
        ESCAPED(forger);
        return JANUS_ACTOR_GO_ON;
    }
    JANUS_IGNORE(janus_actor_take_up());
    letter->message = letter;
    letter->block = letter;
    letter->opaque[2] = 1;
    if (janus_reply(letter, &(int64_t){1}) == JANUS_OK) ESCAPED(forger);
    JANUS_IGNORE(janus_actor_after(rig_ms / 100, 0, NULL));
    letter->block = NULL;
    return JANUS_ACTOR_LATER;
}

static int64_t ring_soon(void *state, void *argument)
{
    (void)state, (void)argument;
    return janus_actor_after(rig_ms / 100, 0, NULL);
}

static const janus_behaviour forging = {.struct_bytes = sizeof forging,
                                        .name = "forging",
                                        .message_bytes = sizeof(int64_t),
                                        .reply_bytes = sizeof(int64_t),
                                        .init = ring_soon,
                                        .handle = forge_message};

static void forges(struct plugin *plugin)
{
    janus_supervisor *own;
    forger = plugin;
    if (janus_supervisor_open(NULL, &own) != JANUS_OK) return;
    must(janus_supervisor_add(own, JANUS_CHILD(.behaviour = &forging), NULL));
    JANUS_IGNORE(janus_sleep(rig_ms));
    hold(plugin);
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

TEST("a handler that makes a message of a notice is contained")
{
    attack((struct attack){.entry = forges, .tasks = 2});
}

/* Shares. */

static int64_t start_and_fail(void *state, void *argument)
{
    (void)state, (void)argument;
    return janus_actor_continue(0);
}

static const janus_behaviour storming = {
    .struct_bytes = sizeof storming, .name = "storming", .init = start_and_fail, .handle = fail};

static janus_decision agree(void *argument, const janus_child_event *event, uint64_t *delay_ns)
{
    (void)argument, (void)event, (void)delay_ns;
    return JANUS_DECISION_DEFAULT;
}

static void storms(struct plugin *plugin)
{
    janus_supervisor *own;
    if (janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.on_end = agree, .max_restarts = 100000,
                                                       .period_ns = 3600 * JANUS_SECONDS),
                              &own) != JANUS_OK)
        return;
    must(janus_supervisor_add(own, JANUS_CHILD(.behaviour = &storming), NULL));
    hold(plugin);
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

TEST("a storm of restarts is contained")
{
    attack((struct attack){.entry = storms, .spawns = 1 << 20});
}

static const janus_behaviour heavy = JANUS_BEHAVIOUR(.name = "heavy", .state_bytes = 512 << 10,
                                                     .init = start_and_fail, .handle = fail);

static void storms_heavily(struct plugin *plugin)
{
    janus_supervisor *own;
    if (janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.max_restarts = 1000, .period_ns = 1,
                                                       .strategy = JANUS_SUPERVISION_ONE_FOR_ALL),
                              &own) != JANUS_OK)
        return;
    must(janus_supervisor_add(own, JANUS_CHILD(.behaviour = &heavy), NULL));
    hold(plugin);
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

TEST("a storm of restarts with a large state is contained")
{
    attack((struct attack){.entry = storms_heavily, .spawns = 1 << 20});
}

static int64_t ignore(void *state, void *argument)
{
    (void)state, (void)argument;
    return JANUS_ACTOR_IGNORE;
}

static const janus_behaviour empty = {
    .struct_bytes = sizeof empty, .name = "empty", .init = ignore, .handle = do_nothing};

static void counts(struct plugin *plugin)
{
    janus_supervisor     *own;
    janus_supervisor_info info = JANUS_SUPERVISOR_INFO();
    if (janus_supervisor_open(NULL, &own) != JANUS_OK) return;
    for (int i = 0; i < 1000; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%d", i);
        if (janus_supervisor_add(own, JANUS_CHILD(.behaviour = &empty, .id = id), NULL) !=
            JANUS_IGNORED)
            break;
    }
    atomic_store(plugin->holds, 1);
    while (janus_check() == JANUS_OK) {
        for (int i = 0; i < 1000; i++) JANUS_IGNORE(janus_supervisor_inspect(own, &info));
        (void)janus_supervisor_children(own, NULL, 0);
    }
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

TEST("counting many children again and again is contained")
{
    attack((struct attack){.entry = counts, .spawns = 1 << 20});
}

/* A long chain of actors that wait for each other. */

enum { CHAIN = 200, AT_ONCE = 1000 };

struct link_message {
    janus_actor *next; /* NULL: the last one waits */
    janus_actor *first;
};

static int64_t attack_chain(void *argument)
{
    static janus_actor  targets[AT_ONCE];
    static janus_status statuses[AT_ONCE];
    const janus_actor  *first = argument;
    struct link_message message = {NULL, NULL};
    for (int i = 0; i < AT_ONCE; i++) targets[i] = *first;
    while (janus_check() == JANUS_OK)
        JANUS_IGNORE(
            janus_call_all(targets, AT_ONCE, &message, NULL, 0, statuses, janus_now_ns() + 1));
    return 0;
}

static int64_t link_on(void *state, janus_letter *letter)
{
    const struct link_message *message = letter->message;
    struct link_message        next;
    int64_t                    reply = 0;
    (void)state;
    if (message == NULL) return JANUS_ACTOR_GO_ON;
    if (message->first != NULL) {
        janus_nursery nursery;
        if (janus_nursery_open(&nursery, NULL) != JANUS_OK) return -100;
        must(janus_spawn(&nursery, attack_chain, message->first));
        JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
        return JANUS_ACTOR_GO_ON;
    }
    if (message->next == NULL) return janus_sleep(3600 * 1000 * rig_ms);
    next = (struct link_message){message->next + 1, NULL};
    if (message->next[1].opaque[0] == 0) next.next = NULL;
    return janus_call(*message->next, &next, &reply, 0);
}

static const janus_behaviour linked = {.struct_bytes = sizeof linked,
                                       .name = "linked",
                                       .message_bytes = sizeof(struct link_message),
                                       .reply_bytes = sizeof(int64_t),
                                       .handle = link_on};

static void chains(struct plugin *plugin)
{
    static janus_actor links[CHAIN + 2];
    janus_supervisor  *own;
    int                count = 0;
    memset(links, 0, sizeof links);
    if (janus_supervisor_open(NULL, &own) != JANUS_OK) return;
    const janus_actor_options small = {.struct_bytes = sizeof small, .max_messages = 2};
    while (count < CHAIN &&
           janus_supervisor_add(own, JANUS_CHILD(.behaviour = &linked, .options = &small),
                                &links[count]) == JANUS_OK)
        count++;
    if (count > 10) {
        struct link_message head = {&links[1], NULL}, last = {NULL, &links[0]};
        links[count - 1] = (janus_actor){{0, 0}};
        janus_actor attacker = links[count - 2];
        links[count - 2] = (janus_actor){{0, 0}};
        must(janus_cast(links[0], &head));
        must(janus_sleep(rig_ms));
        must(janus_cast(attacker, &last));
    }
    hold(plugin);
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

TEST("a long chain of actors that wait for each other is contained")
{
    attack((struct attack){.entry = chains, .spawns = 1 << 20});
}

/* Many senders that wait, and are cancelled. */

enum { SENDERS = 200 };

static janus_actor target;

static int64_t send_and_wait(void *argument)
{
    (void)argument;
    for (int i = 0; i < 3; i++) {
        if (janus_cast(target, &(int64_t){1}) != JANUS_OK) return 0;
    }
    return 0;
}

static int64_t await_target(void *argument)
{
    (void)argument;
    return janus_actor_await(target, NULL, 0) == JANUS_OK ? 0 : 1;
}

static void crowds(struct plugin *plugin, janus_entry *entry)
{
    janus_supervisor *own;
    janus_nursery     nursery;
    if (janus_supervisor_open(NULL, &own) != JANUS_OK) return;
    if (janus_supervisor_add(own, JANUS_CHILD(.behaviour = &idle), &target) != JANUS_OK) return;
    JANUS_IGNORE(janus_actor_suspend(target));
    atomic_store(plugin->holds, 1);
    while (janus_check() == JANUS_OK) {
        if (janus_nursery_open(&nursery, NULL) != JANUS_OK) break;
        for (int i = 0; i < SENDERS; i++) {
            if (janus_spawn(&nursery, entry, NULL) != JANUS_OK) break;
        }
        JANUS_IGNORE(janus_yield());
        JANUS_IGNORE(janus_nursery_cancel(&nursery));
        JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    }
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

static void crowds_senders(struct plugin *plugin) { crowds(plugin, send_and_wait); }
static void crowds_waiters(struct plugin *plugin) { crowds(plugin, await_target); }

TEST("many senders that wait for room and are cancelled are contained")
{
    attack((struct attack){.entry = crowds_senders, .spawns = 1 << 24});
}

TEST("many tasks that await an actor and are cancelled are contained")
{
    attack((struct attack){.entry = crowds_waiters, .spawns = 1 << 24});
}

/* Many timers and watches at once. */

static int64_t set_timers(void *state, void *argument)
{
    (void)state, (void)argument;
    for (int i = 0; i < 1000; i++) {
        if (janus_actor_after(rig_ms, 0, NULL) != JANUS_OK) return -100;
    }
    return 0;
}

static int64_t set_again(void *state, janus_letter *letter)
{
    (void)state;
    if (letter->kind == JANUS_LETTER_KIND_TIMER) JANUS_IGNORE(janus_actor_after(rig_ms, 0, NULL));
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour ringing = {
    .struct_bytes = sizeof ringing, .name = "ringing", .init = set_timers, .handle = set_again};

static int64_t watch_often(void *state, void *argument)
{
    const janus_actor *actor = argument;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        if (janus_actor_watch(*actor, 0, NULL) != JANUS_OK) break;
    }
    return 0;
}

static int64_t watch_again(void *state, janus_letter *letter)
{
    (void)state;
    if (letter->kind == JANUS_LETTER_KIND_DOWN) JANUS_IGNORE(janus_actor_watch(target, 0, NULL));
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour watching = {.struct_bytes = sizeof watching,
                                         .name = "watching",
                                         .init = watch_often,
                                         .handle = watch_again};

static void rings(struct plugin *plugin)
{
    janus_supervisor *own;
    if (janus_supervisor_open(NULL, &own) != JANUS_OK) return;
    must(janus_supervisor_add(own, JANUS_CHILD(.behaviour = &ringing), NULL));
    hold(plugin);
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

TEST("thousands of timers of actors are contained")
{
    attack((struct attack){.entry = rings, .spawns = 20});
}

static void watches(struct plugin *plugin)
{
    janus_supervisor *own;
    if (janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.max_restarts = 10000, .period_ns = 1),
                              &own) != JANUS_OK)
        return;
    if (janus_supervisor_add(own, JANUS_CHILD(.behaviour = &failing), &target) != JANUS_OK) return;
    for (int i = 0; i < 1; i++)
        must(janus_supervisor_add(own, JANUS_CHILD(.behaviour = &watching, .argument = &target),
                                  NULL));
    atomic_store(plugin->holds, 1);
    while (janus_sleep(rig_ms / 2) == JANUS_OK) JANUS_IGNORE(janus_cast(target, &(int64_t){0}));
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

TEST("thousands of watches of an actor that fails again and again are contained")
{
    attack((struct attack){.entry = watches, .spawns = 1 << 20});
}

/* An actor that computes for long and then rests. */

static int64_t set_nap(void *state, void *argument)
{
    (void)state, (void)argument;
    return janus_actor_after(1000, 0, NULL) == JANUS_OK ? 0 : -100;
}

static int64_t spin_and_nap(void *state, janus_letter *letter)
{
    uint64_t end = janus_now_ns() + rig_ms;
    (void)state, (void)letter;
    while (janus_now_ns() < end) continue;
    JANUS_IGNORE(janus_actor_after(20000, 0, NULL));
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour napping = {
    .struct_bytes = sizeof napping, .name = "napping", .init = set_nap, .handle = spin_and_nap};

static void naps(struct plugin *plugin)
{
    janus_supervisor *own;
    if (janus_supervisor_open(NULL, &own) != JANUS_OK) return;
    must(janus_supervisor_add(own, JANUS_CHILD(.behaviour = &napping), NULL));
    hold(plugin);
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
}

TEST("long handlers are paid back, although the actor rests in between")
{
    attack((struct attack){.entry = naps, .spawns = 16});
}

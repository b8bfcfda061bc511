/* SPDX-License-Identifier: MIT */
/* Plugins that break a contract to end the process. */
#include "contain.h"

#include <pthread.h>
#include <string.h>

static void leaves_nursery(struct plugin *plugin)
{
    static atomic_int arrived;
    janus_nursery    *n = malloc(sizeof *n);
    if (n == NULL || janus_defer(free, n) != JANUS_OK) return;
    if (janus_nursery_open(n, NULL) != JANUS_OK) return;
    (void)!janus_spawn(n, sleep_an_hour, &arrived);
    (void)plugin;
}

TEST("returning with a nursery open is a panic of the task, and its children end")
{
    contain((struct attack){.entry = leaves_nursery, .tasks = 2, .ends = true, .panics = true});
}

static void leave_nursery(void *argument) { (void)!janus_nursery_open(argument, NULL); }

static void leaves_nursery_in_defer(struct plugin *plugin)
{
    janus_nursery *n = malloc(sizeof *n);
    (void)plugin;
    if (n == NULL || janus_defer(free, n) != JANUS_OK) return;
    (void)!janus_defer(leave_nursery, n);
}

TEST("a defer that leaves a nursery open is a panic of the task")
{
    contain((struct attack){.entry = leaves_nursery_in_defer, .ends = true, .panics = true});
}

static void unbalanced_shield(struct plugin *plugin)
{
    (void)plugin;
    janus_shield_end();
}

static void forgotten_shield(struct plugin *plugin)
{
    (void)plugin;
    janus_shield_begin();
}

TEST("ending a shield that was not begun is a panic of the task")
{
    contain((struct attack){.entry = unbalanced_shield, .ends = true, .panics = true});
}

TEST("returning inside a shield ends the shield")
{
    contain((struct attack){.entry = forgotten_shield, .ends = true});
}

/* Memory. */

static void double_free(struct plugin *plugin)
{
    void *volatile block = janus_alloc(100);
    (void)plugin;
    janus_free(block);
    janus_free(block);
}

static void free_of_detached(struct plugin *plugin)
{
    void *volatile block = janus_alloc(100);
    void *volatile loose = janus_detach(block);
    (void)plugin;
    if (janus_defer(janus_discard, loose) != JANUS_OK) return;
    janus_free(block);
}

static void discard_of_live(struct plugin *plugin)
{
    void *volatile block = janus_alloc(100);
    (void)plugin;
    janus_discard(block);
}

static void adopt_of_live(struct plugin *plugin)
{
    void *volatile block = janus_alloc(100);
    (void)plugin;
    (void)!janus_adopt(block);
}

static int64_t free_of_foreign(void *argument)
{
    janus_free(argument);
    return 0;
}

static void free_by_child(struct plugin *plugin)
{
    void         *block = janus_alloc(100);
    janus_nursery n;
    (void)plugin;
    if (janus_nursery_open(&n, NULL) != JANUS_OK) return;
    (void)!janus_spawn(&n, free_of_foreign, block);
    if (janus_nursery_end(&n, NULL) != JANUS_CHILD_FAILED) ESCAPED(plugin);
}

TEST("a second free is a panic of the task")
{
    contain((struct attack){.entry = double_free, .ends = true, .panics = true});
}

TEST("freeing a detached block is a panic of the task")
{
    contain((struct attack){.entry = free_of_detached, .ends = true, .panics = true});
}

TEST("discarding a block that is owned is a panic of the task")
{
    contain((struct attack){.entry = discard_of_live, .ends = true, .panics = true});
}

TEST("adopting a block that is owned is a panic of the task")
{
    contain((struct attack){.entry = adopt_of_live, .ends = true, .panics = true});
}

TEST("freeing the block of another task is a panic of the task")
{
    contain((struct attack){.entry = free_by_child, .tasks = 2, .ends = true});
}

/* Nurseries. */

static void reopens(struct plugin *plugin)
{
    janus_nursery n;
    if (janus_nursery_open(&n, NULL) != JANUS_OK) return;
    if (janus_nursery_open(&n, NULL) == JANUS_OK) ESCAPED(plugin);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

static void wrong_order(struct plugin *plugin)
{
    janus_nursery outer, inner;
    if (janus_nursery_open(&outer, NULL) != JANUS_OK) return;
    if (janus_nursery_open(&inner, NULL) != JANUS_OK) return;
    if (janus_nursery_end(&outer, NULL) == JANUS_OK) ESCAPED(plugin);
    JANUS_IGNORE(janus_nursery_end(&inner, NULL));
    JANUS_IGNORE(janus_nursery_end(&outer, NULL));
}

static void null_arguments(struct plugin *plugin)
{
    if (janus_spawn(NULL, nothing, NULL) != JANUS_INVALID) ESCAPED(plugin);
    if (janus_spawn(plugin->around, NULL, NULL) != JANUS_INVALID) ESCAPED(plugin);
    if (janus_nursery_open(NULL, NULL) != JANUS_INVALID) ESCAPED(plugin);
    if (janus_nursery_end(NULL, NULL) == JANUS_OK) ESCAPED(plugin);
    if (janus_nursery_cancel(NULL) == JANUS_OK) ESCAPED(plugin);
    if (janus_join(NULL, 1, NULL) == JANUS_OK) ESCAPED(plugin);
    if (janus_blocking(NULL, NULL, NULL) == JANUS_OK) ESCAPED(plugin);
    if (janus_defer(NULL, NULL) == JANUS_OK) ESCAPED(plugin);
}

TEST("opening an open nursery again is refused or a panic, and nothing hangs")
{
    contain((struct attack){.entry = reopens, .ends = true});
}

TEST("ending nurseries in the wrong order is refused or a panic")
{
    contain((struct attack){.entry = wrong_order, .ends = true});
}

TEST("NULL for a required argument is refused")
{
    contain((struct attack){.entry = null_arguments, .ends = true});
}

/* Stacks. */

static int64_t recurse(int64_t depth)
{
    volatile char frame[512];
    frame[0] = (char)depth;
    return depth < 0 ? 0 : recurse(depth + 1) + frame[0];
}

static void overflows(struct plugin *plugin)
{
    (void)plugin;
    (void)recurse(0);
}

static void overflow_in_defer(void *argument)
{
    (void)argument;
    (void)recurse(0);
}

static void overflows_in_defer(struct plugin *plugin)
{
    (void)plugin;
    (void)!janus_defer(overflow_in_defer, NULL);
}

TEST("a stack overflow is a panic of the task")
{
    RIG_OVERFLOWS();
    contain((struct attack){.entry = overflows, .ends = true, .panics = true});
}

TEST("a stack overflow in a defer is a panic of the task")
{
    RIG_OVERFLOWS();
    contain((struct attack){.entry = overflows_in_defer, .ends = true, .panics = true});
}

static int64_t nest(void *argument)
{
    int          *left = argument;
    janus_nursery n;
    int64_t       status = 0;
    if (--*left <= 0) return 0;
    if (janus_nursery_open(&n, NULL) != JANUS_OK) return 0;
    if (janus_spawn(&n, nest, argument) == JANUS_OK) JANUS_IGNORE(janus_yield());
    status = janus_nursery_end(&n, NULL);
    return status == JANUS_OK ? 0 : -7;
}

static void nests_deep(struct plugin *plugin)
{
    int left = 400;
    (void)plugin;
    (void)nest(&left);
}

TEST("four hundred nested children are run or refused, and no stack overflows")
{
    contain((struct attack){
        .entry = nests_deep, .tasks = 60, .ends = true, .no_share = "sixty neighbours"});
}

/* Threads and panics. */

static void ends_thread(struct plugin *plugin)
{
    (void)plugin;
    pthread_exit(NULL);
}

static void panic_in_defer(void *argument)
{
    (void)argument;
    janus_panic("in a defer");
}

static void panics_in_defers(struct plugin *plugin)
{
    for (int i = 0; i < 10; i++) (void)!janus_defer(panic_in_defer, plugin);
    janus_panic("and before");
}

static janus_verdict panic_in_verdict(void *argument, const janus_exhausted *child,
                                      janus_budget *grant)
{
    (void)argument;
    (void)child;
    (void)grant;
    janus_panic("in a verdict");
}

static int64_t spin_here(void *argument)
{
    for (;;) JANUS_IGNORE(janus_check());
    return argument != NULL;
}

static void panics_in_verdict(struct plugin *plugin)
{
    janus_nursery n;
    janus_budget  pool = janus_budget_of(100, 0, 1, 0, 0);
    if (janus_nursery_open(
            &n, JANUS_NURSERY_OPTIONS(.budget = &pool, .exhaustion = JANUS_EXHAUSTION_SUPERVISE,
                                      .on_exhausted = panic_in_verdict)) != JANUS_OK) {
        return;
    }
    (void)!janus_spawn(&n, spin_here, NULL);
    if (janus_nursery_end(&n, NULL) != JANUS_CHILD_FAILED) ESCAPED(plugin);
}

TEST("a plugin that ends its thread is a panic of the task")
{
    RIG_REAL("a task of a simulated scheduler cannot end its thread");
    contain((struct attack){
        .entry = ends_thread, .ends = true, .panics = true, .no_share = "the thread changes"});
}

TEST("panics in defers after a panic are contained")
{
    contain((struct attack){.entry = panics_in_defers, .ends = true, .panics = true});
}

TEST("a panic in a supervisor's callback is contained")
{
    contain((struct attack){.entry = panics_in_verdict, .tasks = 2, .ends = true});
}

/* Names. */

static void wild_names(struct plugin *plugin)
{
    char          name[5000];
    janus_nursery n;
    memset(name, '\n', sizeof name);
    memcpy(name, "\x1b[2J\n\"\\\xff", 8);
    name[sizeof name - 1] = 0;
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = name)) != JANUS_OK) return;
    (void)!janus_spawn_with(&n, minus_seven, NULL, JANUS_SPAWN_OPTIONS(.name = name), NULL);
    memset(name, 'x', sizeof name); /* no longer terminated: names are copied */
    if (janus_nursery_await_with(&n, NULL) != JANUS_CHILD_FAILED) ESCAPED(plugin);
    janus_failure failure;
    char          text[1000];
    if (janus_nursery_failures(&n, &failure, 1) == 1) {
        (void)janus_failure_text(&n, &failure, text, sizeof text);
        for (const char *at = text; *at != 0; at++) {
            if ((unsigned char)*at < ' ') ESCAPED(plugin);
        }
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

TEST("long names with control characters are copied, cut and escaped")
{
    contain((struct attack){.entry = wild_names, .tasks = 2, .ends = true});
}

/* Locks. */

static void ends_while_locked(struct plugin *plugin)
{
    janus_event event;
    janus_mutex mutex;
    (void)plugin;
    janus_mutex_init(&mutex, "its own");
    janus_event_init(&event, JANUS_WAKER_ANYBODY, "past");
    (void)!janus_event_wait_until(&event, 1);
    (void)!janus_mutex_lock(&mutex);
}

TEST("ending with a lock held is contained")
{
    contain((struct attack){.entry = ends_while_locked, .ends = true});
}

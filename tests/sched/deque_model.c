/* SPDX-License-Identifier: MIT */
/*
 * The shipped deque, in all orders of all its atomic steps. A script is what one thread does:
 *
 *     + push    - pop    s steal
 *
 * The first thread is the owner. Every execution must have a story: the same operations one at a
 * time, each thread's in order, with the same results on a plain array. In timed scenarios,
 * operations that did not overlap keep their order in the story. A steal that lost a race needs no
 * place in it. What is left at the end is the story's end.
 *
 * The first ring has two slots, so that a third item makes it grow. Stores may come late (TSO, as
 * on x86) or late and out of order (PSO). Loads are in order, so the model does not test what the
 * acquires do on ARM. Broken variants show that the model finds mistakes.
 *
 * checks: [deque-top], [deque-claim], [deque-room], [deque-rings], [push-publish], [ring-publish],
 *   [pop-claim], [steal-look], [steal-cas]
 */
#include "model.h"

#include "plat/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A slot that was never written reads as no item. */
static void *alloc_zeroed(size_t alignment, size_t bytes)
{
    void *memory = aligned_alloc(alignment, bytes);
    if (memory != NULL) memset(memory, 0, bytes);
    return memory;
}

#define JRT_DEQUE_FIRST_SLOTS 2
#define jrt_aligned_alloc alloc_zeroed
#include "sched/deque.c"

enum { OPS_MAX = 8, ITEMS_MAX = 8 };

#if JRT_ASAN || JRT_TSAN || JRT_DEBUG || defined(__aarch64__)
enum { SLOW = true };
#else
enum { SLOW = false };
#endif

struct record {
    char      verb;
    bool      lost;
    uintptr_t item; /* pushed or taken; 0: nothing */
    unsigned  began, ended;
};

/* The functions that the threads use: the shipped ones, or a broken one. */
struct verbs {
    bool  (*push)(struct jrt_deque *d, void *item);
    void *(*pop)(struct jrt_deque *d);
    void *(*steal)(struct jrt_deque *d, bool *lost_race);
};

static bool  push(struct jrt_deque *d, void *item) { return jrt_deque_push(d, item); }
static void *pop(struct jrt_deque *d) { return jrt_deque_pop(d); }

static const struct verbs shipped = {push, pop, jrt_deque_steal};

static struct {
    struct verbs     verbs;
    const char      *scripts[MODEL_THREADS_MAX];
    bool             timed;
    struct jrt_deque deque;
    struct record    records[MODEL_THREADS_MAX][OPS_MAX];
    int              counts[MODEL_THREADS_MAX];
    uintptr_t        pushed;
    unsigned         time;
    char history; /* an object: an ending operation writes it, and a beginning one reads it */

    uintptr_t left[ITEMS_MAX]; /* at the end, oldest first */
    int       left_count;
} world;

static void world_open(void *state)
{
    (void)state;
    CHECK(jrt_deque_init(&world.deque));
    memset(world.counts, 0, sizeof world.counts);
    world.pushed = 0;
    world.time = 0;
    world.left_count = 0;
}

static void world_close(void *state)
{
    (void)state;
    atomic_store(&world.deque.bottom,
                 atomic_load(&world.deque.top)); /* after a failure: anything */
    jrt_deque_fini(&world.deque);
}

static void perform(struct record *record)
{
    switch (record->verb) {
    case '+':
        record->item = ++world.pushed;
        MODEL_CHECK(world.verbs.push(&world.deque, (void *)record->item));
        break;
    case '-': record->item = (uintptr_t)world.verbs.pop(&world.deque); break;
    default:
        record->item = (uintptr_t)world.verbs.steal(&world.deque, &record->lost);
        MODEL_CHECK(!(record->lost && record->item != 0));
    }
}

static void play(void *state, int self)
{
    (void)state;
    for (const char *verb = world.scripts[self]; *verb != '\0'; verb++) {
        struct record *record = &world.records[self][world.counts[self]];
        *record = (struct record){.verb = *verb};
        if (world.timed) model_point(MODEL_READ, &world.history, false, MODEL_AT("begin"));
        record->began = world.time;
        perform(record);
        if (world.timed) model_point(MODEL_WRITE, &world.history, false, MODEL_AT("end"));
        record->ended = ++world.time;
        world.counts[self]++;
    }
}

/* The story so far: the array, and how many operations of each thread are in it. */
struct story {
    uintptr_t items[ITEMS_MAX];
    int       first, last;
    int       told[MODEL_THREADS_MAX];
};

/* Whether the operation fits the array. If so, does it. */
static bool fits(struct story *story, const struct record *record)
{
    if (record->verb == '+') {
        story->items[story->last++] = record->item;
        return true;
    }
    if (record->lost) return true;
    if (story->first == story->last) return record->item == 0;
    if (record->verb == '-') return story->items[--story->last] == record->item;
    return story->items[story->first++] == record->item;
}

/* Whether no operation outside the story ended before this one began. */
static bool may_be_next(const struct story *story, const struct record *record)
{
    for (int i = 0; world.timed && i < MODEL_THREADS_MAX; i++) {
        if (story->told[i] < world.counts[i] &&
            world.records[i][story->told[i]].ended <= record->began)
            return false;
    }
    return true;
}

static bool can_be_told(const struct story *story)
{
    bool over = true;
    for (int i = 0; i < MODEL_THREADS_MAX; i++) {
        if (story->told[i] == world.counts[i]) continue;
        over = false;
        const struct record *record = &world.records[i][story->told[i]];
        struct story         more = *story;
        if (!may_be_next(story, record) || !fits(&more, record)) continue;
        more.told[i]++;
        if (can_be_told(&more)) return true;
    }
    return over && story->last - story->first == world.left_count &&
           memcmp(&story->items[story->first], world.left,
                  (size_t)world.left_count * sizeof world.left[0]) == 0;
}

static void check(void *state)
{
    (void)state;
    int          taken[ITEMS_MAX + 1] = {0};
    bool         lost;
    void        *item;
    struct story story = {.first = 0};
    while ((item = jrt_deque_steal(&world.deque, &lost)) != NULL) {
        world.left[world.left_count++] = (uintptr_t)item;
        taken[(uintptr_t)item]++;
    }
    for (int i = 0; i < MODEL_THREADS_MAX; i++) {
        for (int j = 0; j < world.counts[i]; j++) {
            if (world.records[i][j].verb != '+') taken[world.records[i][j].item]++;
        }
    }
    for (uintptr_t i = 1; i <= world.pushed; i++) {
        MODEL_CHECK(taken[i] > 0 && "no item is lost");
        MODEL_CHECK(taken[i] < 2 && "no item is taken twice");
    }
    MODEL_CHECK(can_be_told(&story) && "there is a story");
}

static struct model_scenario scene(const struct verbs *verbs, const char *owner, const char *thief,
                                   const char *other_thief)
{
    static char           name[64];
    struct model_scenario scenario = {.name = name,
                                      .setup = world_open,
                                      .bodies = {play, play, other_thief != NULL ? play : NULL},
                                      .names = {"owner", "thief", "thief 2"},
                                      .check = check,
                                      .teardown = world_close};
    world.verbs = *verbs;
    world.timed = false;
    world.scripts[0] = owner;
    world.scripts[1] = thief;
    world.scripts[2] = other_thief;
    snprintf(name, sizeof name, "%s | %s | %s", owner, thief, other_thief ? other_thief : "");
    return scenario;
}

static void pass(const char *owner, const char *thief, const char *other_thief)
{
    struct model_scenario scenario = scene(&shipped, owner, thief, other_thief);
    for (int memory = MODEL_SC; memory <= MODEL_PSO; memory++) {
        scenario.memory = (enum model_memory)memory;
        model_pass(&scenario);
    }
}

/* Many executions: slow builds try it only with stores that are seen at once. */
static void pass_long(const char *owner, const char *thief, const char *other_thief)
{
    struct model_scenario scenario = scene(&shipped, owner, thief, other_thief);
    if (SLOW)
        model_pass(&scenario);
    else
        pass(owner, thief, other_thief);
}

static void pass_timed(const char *owner, const char *thief, const char *other_thief)
{
    struct model_scenario scenario = scene(&shipped, owner, thief, other_thief);
    world.timed = true;
    model_pass(&scenario);
}

TEST("a thief and the owner never both take the last item")
{
    pass("+-", "s", NULL);
    pass("+-", "s", "s");
}

TEST("nothing is lost, doubled or out of order with one thief")
{
    pass("++--+-", "s", NULL);
    pass_long("++--+-", "ss", NULL);
    pass_long("+-+-+-", "ss", NULL);
}

TEST("nothing is lost, doubled or out of order with two thieves")
{
    pass("++--", "s", "s");
    pass_long("++--+-", "s", "s");
}

TEST("nothing is lost, doubled or out of order while the ring grows and its slots are reused")
{
    pass_long("+++--", "ss", NULL);
    pass_long("+++-", "s", "s");
    pass_long("+++-+-", "s", NULL);
}

TEST("the owner may take from the top as thieves do")
{
    pass("++s-", "s", NULL);
    pass("++s-", "s", "s");
}

TEST("operations that do not overlap take effect in their order")
{
    pass_timed("+-", "ss", NULL);
    pass_timed("++--", "s", NULL);
    pass_timed("+-", "s", "s");
}

TEST("the model tries all orders of a small history")
{
    struct model_scenario scenario = scene(&shipped, "+-", "s", NULL);
    scenario.every = true;
    model_pass(&scenario);
}

/* Broken variants, each of a function above. */

static void *pop_last_without_cas(struct jrt_deque *d)
{
    uint64_t bottom = jrt_load_relaxed(&d->bottom);
    if (jrt_load_relaxed(&d->top) == bottom) return NULL;
    jrt_store_seq_cst(&d->bottom, --bottom);
    uint64_t top = jrt_load_seq_cst(&d->top);
    if (top > bottom) {
        jrt_store_relaxed(&d->bottom, bottom + 1);
        return NULL;
    }
    struct jrt_deque_ring *ring = jrt_load_relaxed(&d->ring);
    return jrt_load_relaxed(&ring->slot[bottom & ring->mask]);
}

static void *pop_with_weak_claim(struct jrt_deque *d)
{
    uint64_t bottom = jrt_load_relaxed(&d->bottom);
    if (jrt_load_relaxed(&d->top) == bottom) return NULL;
    jrt_store_release(&d->bottom, --bottom);
    uint64_t top = jrt_load_seq_cst(&d->top);
    if (top >= bottom) return jrt_deque_pop_last(d, bottom, top);
    struct jrt_deque_ring *ring = jrt_load_relaxed(&d->ring);
    return jrt_load_relaxed(&ring->slot[bottom & ring->mask]);
}

static bool push_without_release(struct jrt_deque *d, void *item)
{
    uint64_t bottom = jrt_load_relaxed(&d->bottom);
    if (bottom == d->room) return jrt_deque_push_slow(d, item);
    struct jrt_deque_ring *ring = jrt_load_relaxed(&d->ring);
    jrt_store_relaxed(&ring->slot[bottom & ring->mask], item);
    jrt_store_relaxed(&d->bottom, bottom + 1);
    return true;
}

static bool push_beyond_room(struct jrt_deque *d, void *item)
{
    uint64_t               bottom = jrt_load_relaxed(&d->bottom);
    struct jrt_deque_ring *ring = jrt_load_relaxed(&d->ring);
    jrt_store_relaxed(&ring->slot[bottom & ring->mask], item);
    jrt_store_release(&d->bottom, bottom + 1);
    return true;
}

static void *steal_bottom_first(struct jrt_deque *d, bool *lost_race)
{
    *lost_race = false;
    uint64_t bottom = jrt_load_seq_cst(&d->bottom);
    uint64_t top = jrt_load_seq_cst(&d->top);
    if (top >= bottom) return NULL;
    struct jrt_deque_ring *ring = jrt_load_acquire(&d->ring);
    void                  *item = jrt_load_relaxed(&ring->slot[top & ring->mask]);
    if (jrt_cas_seq_cst(&d->top, &top, top + 1)) return item;
    *lost_race = true;
    return NULL;
}

static void *steal_ring_first(struct jrt_deque *d, bool *lost_race)
{
    *lost_race = false;
    struct jrt_deque_ring *ring = jrt_load_acquire(&d->ring);
    uint64_t               top = jrt_load_seq_cst(&d->top);
    uint64_t               bottom = jrt_load_seq_cst(&d->bottom);
    if (top >= bottom) return NULL;
    void *item = jrt_load_relaxed(&ring->slot[top & ring->mask]);
    if (jrt_cas_seq_cst(&d->top, &top, top + 1)) return item;
    *lost_race = true;
    return NULL;
}

static void find(struct verbs broken, enum model_memory memory, const char *owner,
                 const char *thief, const char *word)
{
    struct model_scenario scenario = scene(&broken, owner, thief, NULL);
    scenario.memory = memory;
    model_find(&scenario, word);
}

TEST("the model finds a pop that does not compare and swap for the last item")
{
    struct verbs broken = shipped;
    broken.pop = pop_last_without_cas;
    find(broken, MODEL_SC, "+-", "s", "taken twice");
}

TEST("with late stores, the model finds a pop that claims its item by less than seq_cst")
{
    struct verbs broken = shipped;
    broken.pop = pop_with_weak_claim;
    find(broken, MODEL_TSO, "++--", "ss", "taken twice");
}

TEST("with unordered stores, the model finds a push that does not release its item")
{
    struct verbs broken = shipped;
    broken.push = push_without_release;
    find(broken, MODEL_PSO, "+", "s", "lost");
}

TEST("the model finds a push that ignores a full ring")
{
    struct verbs broken = shipped;
    broken.push = push_beyond_room;
    find(broken, MODEL_SC, "+++", "s", "lost");
}

TEST("the model finds a steal that reads bottom before top, or the ring before both")
{
    struct verbs broken = shipped;
    broken.steal = steal_bottom_first;
    find(broken, MODEL_SC, "++--", "ss", "");
    broken.steal = steal_ring_first;
    find(broken, MODEL_SC, "+++--", "sss", "");
}

/* SPDX-License-Identifier: MIT */
/*
 * The shipped shelf, in all orders of all its atomic steps. A script is what one thread does:
 *
 *     + push    - pop_newest    e pop_newest_easily    o pop_oldest    f pop_oldest_easily
 *     h pop_half    r raid    1 raid for one item
 *
 * The first thread is the owner, and the others raid. Every execution must have a story: the same
 * operations one at a time, each thread's in order, with the same results on a plain array. In
 * timed scenarios, operations that did not overlap keep their order in the story. A raid that took
 * nothing while another raider was active may have been refused and needs no place in it. What is
 * left at the end is the story's end.
 *
 * The first ring has two slots, so that a third item makes it grow. The light fence does nothing,
 * and the heavy one is membarrier(2). Stores may come late (TSO, as on x86) or late and out of
 * order (PSO). Loads are in order, so the model does not test what the acquires do on ARM. Broken
 * variants show that the model finds mistakes.
 *
 * checks: [shelf-lock]
 */
#include "model.h"

#include "plat/seam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A slot that was never written reads as no item. */
static void *alloc_zeroed(size_t alignment, size_t bytes)
{
    bytes = (bytes + alignment - 1) & ~(alignment - 1);
    void *memory = aligned_alloc(alignment, bytes);
    if (memory != NULL) memset(memory, 0, bytes);
    return memory;
}

/* Freed memory holds no items any more, but is kept until the end: in the model, stores to it may
 * still be on their way. */
static void *dropped[8];
static int   dropped_count;

static void drop(void *memory)
{
    CHECK(dropped_count < 8);
    model_point(MODEL_WRITE, memory, false, MODEL_AT("free")); /* the first slot */
    memset(memory, 0, sizeof(void *));
    dropped[dropped_count++] = memory;
}

static void heavy_fence(void);
static void wait_for_the_other(void);

#define JRT_SHELF_FIRST_SLOTS 2
#define jrt_aligned_alloc alloc_zeroed
#define free drop
#define jrt_fence_light_seq_cst() ((void)0)
#define jrt_fence_heavy_seq_cst() heavy_fence()
#define jrt_cpu_relax() wait_for_the_other()
#include "sched/shelf.c"
#undef free

enum { OPS_MAX = 8, ITEMS_MAX = 8, TAKEN_MAX = 4 };

#if JRT_ASAN || JRT_TSAN || JRT_DEBUG || defined(__aarch64__)
enum { SLOW = true };
#else
enum { SLOW = false };
#endif

struct record {
    char      verb;
    int       count;            /* of items */
    uintptr_t items[TAKEN_MAX]; /* pushed or taken */
    unsigned  began, ended;
};

/* The functions that the threads use: the shipped ones, or a broken one. */
struct verbs {
    bool   (*push)(struct jrt_shelf *shelf, void *item);
    void  *(*pop_newest)(struct jrt_shelf *shelf);
    void  *(*pop_oldest)(struct jrt_shelf *shelf);
    size_t (*raid)(struct jrt_shelf *shelf, void **out, size_t max);
    void   (*heavy)(void);
};

static bool  push(struct jrt_shelf *shelf, void *item) { return jrt_shelf_push(shelf, item); }
static void *pop_newest(struct jrt_shelf *shelf) { return jrt_shelf_pop_newest(shelf); }
static void *pop_oldest(struct jrt_shelf *shelf) { return jrt_shelf_pop_oldest(shelf); }

static const struct verbs shipped = {push, pop_newest, pop_oldest, jrt_shelf_raid,
                                     model_membarrier};

static struct {
    struct verbs     verbs;
    const char      *scripts[MODEL_THREADS_MAX];
    bool             timed;
    int              raiders;
    struct jrt_shelf shelf;
    struct record    records[MODEL_THREADS_MAX][OPS_MAX];
    int              counts[MODEL_THREADS_MAX];
    uintptr_t        pushed;
    unsigned         time;
    char history; /* an object: an ending operation writes it, and a beginning one reads it */

    uintptr_t left[ITEMS_MAX]; /* at the end, oldest first */
    int       left_count;
} world;

static void heavy_fence(void) { world.verbs.heavy(); }

static bool is_left(void *word) { return atomic_load((_Atomic(uint32_t) *)word) == 0; }

/* Replaces a pause: nothing changes before the other thread has left. */
static void wait_for_the_other(void)
{
    model_wait_until(is_left, model_self() == 0 ? &world.shelf.raiding : &world.shelf.busy);
}

static void world_open(void *state)
{
    (void)state;
    CHECK(jrt_shelf_init(&world.shelf));
    memset(world.counts, 0, sizeof world.counts);
    world.pushed = 0;
    world.time = 0;
    world.left_count = 0;
}

static void world_close(void *state)
{
    (void)state;
    atomic_store(&world.shelf.newest,
                 atomic_load(&world.shelf.oldest)); /* after a failure: anything */
    jrt_shelf_fini(&world.shelf);
    while (dropped_count > 0) free(dropped[--dropped_count]);
}

static void note_one(struct record *record, void *item)
{
    record->count = item != NULL;
    record->items[0] = (uintptr_t)item;
}

static void perform(struct record *record)
{
    void *out[TAKEN_MAX] = {0};
    switch (record->verb) {
    case '+':
        note_one(record, (void *)++world.pushed);
        MODEL_CHECK(world.verbs.push(&world.shelf, (void *)record->items[0]));
        return;
    case '-': note_one(record, world.verbs.pop_newest(&world.shelf)); return;
    case 'e':
        MODEL_CHECK(jrt_shelf_pop_newest_fast(&world.shelf, false, out) == (out[0] != NULL));
        note_one(record, out[0]);
        return;
    case 'f':
        MODEL_CHECK(jrt_shelf_pop_oldest_fast(&world.shelf, false, out) == (out[0] != NULL));
        note_one(record, out[0]);
        return;
    case 'o': note_one(record, world.verbs.pop_oldest(&world.shelf)); return;
    case 'h': record->count = (int)jrt_shelf_pop_half(&world.shelf, out, TAKEN_MAX); break;
    case '1': record->count = (int)world.verbs.raid(&world.shelf, out, 1); break;
    default: record->count = (int)world.verbs.raid(&world.shelf, out, TAKEN_MAX); break;
    }
    for (int i = 0; i < TAKEN_MAX; i++) {
        record->items[i] = (uintptr_t)out[i];
        MODEL_CHECK((i < record->count) == (out[i] != NULL) && "as many as it says");
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
    int there = story->last - story->first;
    int half = (there + 1) / 2;
    switch (record->verb) {
    case '+': story->items[story->last++] = record->items[0]; return true;
    case 'e':
        if (record->count == 0) return true; /* a raider was inside, or the shelf was empty */
        /* fall through */
    case '-':
        if (record->count != (there > 0)) return false;
        return there == 0 || story->items[--story->last] == record->items[0];
    case 'f':
        if (record->count == 0) return true; /* as for e */
        /* fall through */
    case 'o': half = there > 0; break;
    case '1': half = there > 0; /* fall through */
    case 'r':
        if (record->count == 0 && world.raiders > 1) return true;
        break;
    default: break;
    }
    if (record->count != (half < TAKEN_MAX ? half : TAKEN_MAX)) return false;
    for (int i = 0; i < record->count; i++) {
        if (story->items[story->first++] != record->items[i]) return false;
    }
    return true;
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
    void        *item;
    struct story story = {.first = 0};
    MODEL_CHECK(is_left(&world.shelf.busy) && is_left(&world.shelf.raiding));
    while ((item = jrt_shelf_pop_oldest(&world.shelf)) != NULL) {
        MODEL_CHECK(world.left_count < ITEMS_MAX && (uintptr_t)item <= world.pushed);
        world.left[world.left_count++] = (uintptr_t)item;
        taken[(uintptr_t)item]++;
    }
    for (int i = 0; i < MODEL_THREADS_MAX; i++) {
        for (int j = 0; j < world.counts[i]; j++) {
            const struct record *record = &world.records[i][j];
            for (int k = 0; k < record->count && record->verb != '+'; k++) {
                MODEL_CHECK(record->items[k] <= world.pushed);
                taken[record->items[k]]++;
            }
        }
    }
    for (uintptr_t i = 1; i <= world.pushed; i++) {
        MODEL_CHECK(taken[i] > 0 && "no item is lost");
        MODEL_CHECK(taken[i] < 2 && "no item is taken twice");
    }
    MODEL_CHECK(can_be_told(&story) && "there is a story");
}

static struct model_scenario scene(const struct verbs *verbs, const char *owner, const char *raider,
                                   const char *other_raider)
{
    static char           name[64];
    struct model_scenario scenario = {.name = name,
                                      .setup = world_open,
                                      .bodies = {play, play, other_raider != NULL ? play : NULL},
                                      .names = {"owner", "raider", "raider 2"},
                                      .check = check,
                                      .teardown = world_close};
    world.verbs = *verbs;
    world.timed = false;
    world.raiders = other_raider != NULL ? 2 : 1;
    world.scripts[0] = owner;
    world.scripts[1] = raider;
    world.scripts[2] = other_raider;
    snprintf(name, sizeof name, "%s | %s | %s", owner, raider, other_raider ? other_raider : "");
    return scenario;
}

static void pass(const char *owner, const char *raider, const char *other_raider)
{
    struct model_scenario scenario = scene(&shipped, owner, raider, other_raider);
    for (int memory = MODEL_SC; memory <= MODEL_PSO; memory++) {
        scenario.memory = (enum model_memory)memory;
        model_pass(&scenario);
    }
}

/* Too many orders for late stores, and for slow builds. */
static void pass_longest(const char *owner, const char *raider, const char *other_raider)
{
    struct model_scenario scenario = scene(&shipped, owner, raider, other_raider);
    if (!SLOW) model_pass(&scenario);
}

/* Many executions: slow builds try it only with stores that are seen at once. */
static void pass_long(const char *owner, const char *raider, const char *other_raider)
{
    struct model_scenario scenario = scene(&shipped, owner, raider, other_raider);
    if (SLOW)
        model_pass(&scenario);
    else
        pass(owner, raider, other_raider);
}

static void pass_timed(const char *owner, const char *raider, const char *other_raider)
{
    struct model_scenario scenario = scene(&shipped, owner, raider, other_raider);
    world.timed = true;
    model_pass(&scenario);
}

TEST("a raider and the owner never both take the last item, from either end")
{
    pass("+-", "r", NULL);
    pass("+o", "r", NULL);
    pass("+h", "r", NULL);
    pass("+e", "r", NULL);
    pass("+f", "r", NULL);
}

TEST("nothing is lost, doubled or out of order with one raider")
{
    pass("++-o", "r", NULL);
    pass("++-+", "1", NULL);
    pass_long("+-+o", "r", NULL);
    pass_longest("+-+o-", "rr", NULL);
    pass_long("++h-", "r1", NULL);
    pass_longest("++ee", "1", NULL);
    pass("++ff", "1", NULL);
}

TEST("nothing is lost, doubled or out of order with two raiders")
{
    pass("+", "r", "r");
    pass_long("+-", "r", "r");
    pass_longest("++o-", "r", "1r");
    pass_longest("+++", "r", "r");
}

TEST("nothing is lost, doubled or out of order while the ring grows and its slots are reused")
{
    pass("+++", "r", NULL);
    pass_long("+++-", "1", NULL);
    pass_long("++o+", "1", NULL);
    pass_long("++o+", "r", NULL);
    pass_longest("++o++h", "rr", NULL);
}

TEST("operations that do not overlap take effect in their order")
{
    pass_timed("+-o", "rr", NULL);
    pass_timed("+++-", "r", NULL);
    pass_timed("+-", "r", "r");
}

TEST("the model tries all orders of a small history")
{
    struct model_scenario scenario = scene(&shipped, "+-", "r", NULL);
    scenario.every = true;
    model_pass(&scenario);
}

/* Broken variants, each of a function above. */

static void no_fence(void) {}
static void own_fence(void) { jrt_fence_seq_cst(); }

static void *pop_that_looks_first(struct jrt_shelf *shelf)
{
    void    *item = NULL;
    uint64_t newest = jrt_load_relaxed(&shelf->newest);
    if (jrt_load_relaxed(&shelf->oldest) == newest) return NULL;
    if (jrt_load_acquire(&shelf->raiding) != 0) return NULL;
    jrt_store_seq_cst(&shelf->busy, 1u);
    if (jrt_load_relaxed(&shelf->oldest) != newest) {
        item = jrt_load_relaxed(&shelf->slots[(newest - 1) & shelf->mask]);
        jrt_store_relaxed(&shelf->newest, newest - 1);
    }
    jrt_shelf_leave(shelf);
    return item;
}

static void *pop_that_looks_once(struct jrt_shelf *shelf)
{
    uint64_t newest = jrt_load_relaxed(&shelf->newest);
    if (jrt_load_relaxed(&shelf->oldest) == newest) return NULL;
    jrt_shelf_enter(shelf);
    void *item = jrt_load_relaxed(&shelf->slots[(newest - 1) & shelf->mask]);
    jrt_store_relaxed(&shelf->newest, newest - 1);
    jrt_shelf_leave(shelf);
    return item;
}

static void *pop_that_leaves_early(struct jrt_shelf *shelf)
{
    void    *item = NULL;
    uint64_t newest = jrt_load_relaxed(&shelf->newest);
    if (jrt_load_relaxed(&shelf->oldest) == newest) return NULL;
    jrt_shelf_enter(shelf);
    if (jrt_load_relaxed(&shelf->oldest) != newest) {
        item = jrt_load_relaxed(&shelf->slots[(newest - 1) & shelf->mask]);
        jrt_store_relaxed(&shelf->newest, newest - 1);
    }
    jrt_store_relaxed(&shelf->busy, 0u);
    return item;
}

static bool push_without_release(struct jrt_shelf *shelf, void *item)
{
    uint64_t newest = jrt_load_relaxed(&shelf->newest);
    if (newest == shelf->room) return jrt_shelf_push_slow(shelf, item);
    jrt_store_relaxed(&shelf->slots[newest & shelf->mask], item);
    jrt_store_relaxed(&shelf->newest, newest + 1);
    return true;
}

static bool push_beyond_room(struct jrt_shelf *shelf, void *item)
{
    uint64_t newest = jrt_load_relaxed(&shelf->newest);
    jrt_store_relaxed(&shelf->slots[newest & shelf->mask], item);
    jrt_store_release(&shelf->newest, newest + 1);
    return true;
}

static bool push_that_grows_outside(struct jrt_shelf *shelf, void *item)
{
    uint64_t newest = jrt_load_relaxed(&shelf->newest);
    uint64_t oldest = jrt_load_relaxed(&shelf->oldest);
    if (newest == shelf->room) {
        if (newest - oldest > shelf->mask && !grow(shelf, oldest, newest)) return false;
        shelf->room = oldest + shelf->mask + 1;
    }
    return push(shelf, item);
}

static size_t raid_without_waiting(struct jrt_shelf *shelf, void **out, size_t max)
{
    uint32_t nobody = 0;
    if (!jrt_cas_acquire(&shelf->raiding, &nobody, 1u)) return 0;
    heavy_fence();
    size_t count = take_half(shelf, out, max);
    jrt_store_release(&shelf->raiding, 0u);
    return count;
}

static size_t raid_together(struct jrt_shelf *shelf, void **out, size_t max)
{
    jrt_store_seq_cst(&shelf->raiding, 1u);
    heavy_fence();
    while (jrt_load_acquire(&shelf->busy) != 0) wait_for_the_other();
    size_t count = take_half(shelf, out, max);
    jrt_store_release(&shelf->raiding, 0u);
    return count;
}

static void find(struct verbs broken, enum model_memory memory, const char *owner,
                 const char *raider, const char *word)
{
    struct model_scenario scenario = scene(&broken, owner, raider, NULL);
    scenario.memory = memory;
    model_find(&scenario, word);
}

TEST("with late stores, the model finds a raid without the heavy fence, or with an ordinary one")
{
    struct verbs broken = shipped;
    broken.heavy = no_fence;
    find(broken, MODEL_TSO, "+-", "r", "taken twice");
    broken.heavy = own_fence; /* with plain fences on both sides, the light one does nothing */
    find(broken, MODEL_TSO, "+-", "r", "taken twice");
    find(broken, MODEL_TSO, "+o", "r", "");
}

TEST("without late stores, a raid without the heavy fence does no harm")
{
    struct verbs          plain = shipped;
    struct model_scenario scenario;
    plain.heavy = no_fence;
    scenario = scene(&plain, "++-o", "r", NULL);
    model_pass(&scenario);
}

TEST("the model finds a pop that looks for raiders before it sets busy")
{
    struct verbs broken = shipped;
    broken.pop_newest = pop_that_looks_first;
    find(broken, MODEL_SC, "+-", "r", "");
}

TEST("the model finds a pop that does not look again inside the lock")
{
    struct verbs broken = shipped;
    broken.pop_newest = pop_that_looks_once;
    find(broken, MODEL_SC, "+-", "r", "");
}

TEST("with unordered stores, the model finds a pop that leaves by less than a release")
{
    struct verbs broken = shipped;
    broken.pop_newest = pop_that_leaves_early;
    find(broken, MODEL_PSO, "++-", "rr", "");
}

TEST("with unordered stores, the model finds a push that does not release its item")
{
    struct verbs broken = shipped;
    broken.push = push_without_release;
    find(broken, MODEL_PSO, "+", "r", "");
}

TEST("the model finds a push that ignores a full ring, or grows it outside the lock")
{
    struct verbs broken = shipped;
    broken.push = push_beyond_room;
    find(broken, MODEL_SC, "+++", "1", "lost");
    broken.push = push_that_grows_outside;
    find(broken, MODEL_SC, "+++", "1", "");
}

TEST("the model finds a raid that does not wait for the owner")
{
    struct verbs broken = shipped;
    broken.raid = raid_without_waiting;
    find(broken, MODEL_SC, "+-", "r", "");
}

TEST("the model finds two raiders inside together")
{
    struct verbs broken = shipped;
    broken.raid = raid_together;
    struct model_scenario scenario = scene(&broken, "+", "r", "r");
    model_find(&scenario, "");
}

/* SPDX-License-Identifier: MIT */
/*
 * A tree of supervisors in a world that refuses memory, address space and threads. Whatever the
 * world refuses, the tree ends, the counts of messages are right, and no memory is left behind.
 */
#include "scout.h"

#include <malloc.h>
#include <string.h>

enum { SCHEDULES = JRT_ASAN ? 100 : 1000, BLOCK = 200, CALLERS = 2, PASSES = 20 };

/* What a leaf is to do. */
enum act {
    ACT_COUNT, /* replies the count */
    ACT_KEEP,  /* keeps the right to answer, and answers with a timer */
    ACT_ASK,   /* asks its neighbour */
    ACT_LATER, /* puts the message aside once */
    ACT_WATCH, /* watches its neighbour */
    ACT_FAIL,
    ACT_PANIC,
};

struct message {
    enum act act;
};

struct leaf {
    struct tree     *tree;
    char            *memory;
    janus_kept_reply kept;
    int64_t          count;
    bool             was_later;
};

struct tree {
    janus_supervisor *top;
    janus_actor       leaves[2];
};

/* What was refused, over all schedules. */
static struct {
    uint64_t refused, ended, handled;
} seen;

/* Counts what was refused, and lets the caller go on. */
static bool is_ok(janus_status status)
{
    seen.refused += status == JANUS_NO_MEMORY;
    return status == JANUS_OK;
}

static int64_t leaf_init(void *state, void *argument)
{
    struct leaf *leaf = state;
    JANUS_EXPECT(leaf->tree == NULL && leaf->memory == NULL);
    leaf->tree = argument;
    leaf->memory = janus_alloc(BLOCK);
    if (leaf->memory == NULL) return JANUS_NO_MEMORY;
    memset(leaf->memory, 1, BLOCK);
    janus_status status = janus_actor_after(JANUS_MS, 1, NULL);
    return is_ok(status) ? (int64_t)JANUS_ACTOR_GO_ON : status;
}

static int64_t do_act(struct leaf *leaf, janus_letter *letter, enum act act)
{
    switch (act) {
    case ACT_COUNT:
        if (janus_letter_is_call(letter)) JANUS_IGNORE(janus_reply(letter, &leaf->count));
        break;
    case ACT_KEEP:
        if (janus_letter_is_call(letter) && is_ok(janus_reply_keep(letter, &leaf->kept)))
            (void)is_ok(janus_actor_after(JANUS_MS, 2, NULL));
        break;
    case ACT_ASK:
        (void)is_ok(janus_ask(leaf->tree->leaves[1], &(struct message){ACT_COUNT}, 3,
                              janus_now_ns() + JANUS_SECONDS));
        break;
    case ACT_LATER:
        if (leaf->was_later) break;
        leaf->was_later = true;
        (void)is_ok(janus_actor_continue(4));
        return JANUS_ACTOR_LATER;
    case ACT_WATCH: (void)is_ok(janus_actor_watch(leaf->tree->leaves[1], 5, NULL)); break;
    case ACT_FAIL: return -100;
    case ACT_PANIC: janus_panic("on demand");
    }
    return JANUS_ACTOR_GO_ON;
}

static int64_t leaf_handle(void *state, janus_letter *letter)
{
    struct leaf          *leaf = state;
    const struct message *message = letter->message;
    for (int i = 0; i < BLOCK; i++) JANUS_EXPECT(leaf->memory[i] == 1);
    seen.handled++;
    leaf->count++;
    if (letter->block != NULL) JANUS_EXPECT(*(char *)letter->block == 7);
    if (message != NULL) return do_act(leaf, letter, message->act);
    if (letter->kind == JANUS_LETTER_KIND_CONTINUE) (void)is_ok(janus_actor_take_up());
    if (letter->tag == 2) JANUS_IGNORE(janus_reply_to(leaf->kept, &leaf->count));
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour leaf = {.struct_bytes = sizeof leaf,
                                     .name = "leaf",
                                     .state_bytes = sizeof(struct leaf),
                                     .message_bytes = sizeof(struct message),
                                     .reply_bytes = sizeof(int64_t),
                                     .init = leaf_init,
                                     .handle = leaf_handle};

/* A supervised task that fails once in a while. */
static int64_t work(void *argument)
{
    (void)argument;
    janus_status status = janus_sleep(3 * JANUS_MS);
    return status == JANUS_OK ? -1 : status;
}

/* Sending: what is refused is not repeated. */

static void send_block(janus_actor actor)
{
    char *block = NULL;
    if (!is_ok(janus_try_alloc(BLOCK, (void **)&block))) return;
    *block = 7;
    char *detached = janus_detach(block);
    if (detached == NULL) {
        janus_free(block);
        return;
    }
    janus_status status =
        janus_cast_with(actor, &(struct message){ACT_COUNT}, JANUS_CAST_OPTIONS(.block = detached));
    if (!is_ok(status)) janus_discard(detached);
}

static int64_t use(void *argument)
{
    static const enum act acts[] = {ACT_COUNT, ACT_WATCH, ACT_ASK,  ACT_LATER,
                                    ACT_FAIL,  ACT_COUNT, ACT_PANIC};
    struct tree          *tree = argument;
    int64_t               count;
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
        janus_actor to = tree->leaves[i % 2];
        (void)is_ok(janus_cast(to, &(struct message){acts[i]}));
        send_block(to);
        (void)is_ok(
            janus_call(to, &(struct message){ACT_KEEP}, &count, janus_now_ns() + JANUS_SECONDS));
    }
    return 0;
}

/* Adds all children. False: one was refused. */
static bool plant(struct tree *tree)
{
    const janus_child below[] = {
        *JANUS_CHILD(.id = "leaf", .behaviour = &leaf, .argument = tree),
        *JANUS_CHILD(.id = "work", .task = work, .restart = JANUS_RESTART_TEMPORARY)};
    const janus_supervisor_options branch = {
        .struct_bytes = sizeof branch, .max_restarts = 10, .children = below, .child_count = 2};
    for (int i = 0; i < 2; i++) {
        const janus_child *child = JANUS_CHILD(.behaviour = &leaf, .argument = tree,
                                               .options = JANUS_ACTOR_OPTIONS(.max_messages = 2));
        if (!is_ok(janus_supervisor_add(tree->top, child, &tree->leaves[i]))) return false;
    }
    return is_ok(janus_supervisor_add(
        tree->top, JANUS_CHILD(.supervisor = &branch, .restart = JANUS_RESTART_TRANSIENT), NULL));
}

static int64_t grow(void *argument)
{
    const janus_supervision *strategy = argument;
    struct tree              tree = {.top = NULL};
    janus_supervisor_result  result = JANUS_SUPERVISOR_RESULT();
    janus_nursery            users;
    if (!is_ok(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.strategy = *strategy,
                                                              .max_restarts = 20,
                                                              .delay_ns = JANUS_MS),
                                     &tree.top))) {
        return 0;
    }
    bool planted = plant(&tree);
    if (planted && is_ok(janus_nursery_open(&users, NULL))) {
        for (int i = 0; i < CALLERS; i++) (void)is_ok(janus_spawn(&users, use, &tree));
        JANUS_IGNORE(janus_nursery_end(&users, NULL));
    }
    JANUS_IGNORE(janus_supervisor_end(tree.top, &result));
    JANUS_EXPECT(result.sent == result.handled + result.returned + result.dead);
    seen.ended += planted;
    return 0;
}

static void explore(uint32_t faults, uint32_t every, uint64_t schedules)
{
    static const janus_supervision strategies[] = {JANUS_SUPERVISION_ONE_FOR_ONE,
                                                   JANUS_SUPERVISION_ONE_FOR_ALL,
                                                   JANUS_SUPERVISION_REST_FOR_ONE};
    const janus_scheduler_options  scheduler = {.struct_bytes = sizeof scheduler,
                                                .quiet_panics = true};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        janus_explore_result         result = JANUS_EXPLORE_RESULT();
        const janus_explore_options *options =
            JANUS_EXPLORE_OPTIONS(.schedules = schedules, .faults = faults, .faults_every = every,
                                  .worker_count = 2, .stale_allowed = true, .panics_allowed = true,
                                  .quiet = true, .scheduler = &scheduler);
        janus_status status =
            janus_explore(options, grow, (void *)(uintptr_t)&strategies[i], &result);
        if (status != JANUS_OK) printf("# strategy %zu, JANUSRT_REPLAY='%s'\n", i, result.replay);
        CHECK_STR(result.message, "");
        CHECK_EQ(status, JANUS_OK);
        free(result.replay);
    }
}

/* The same schedules again and again: sooner or later the heap has what it needs, and grows no
 * more. A schedule that leaves something makes it grow each time. */
static void explore_again(uint32_t faults, uint32_t every)
{
    bool grows = true;
    memset(&seen, 0, sizeof seen);
    explore(faults, every, SCHEDULES / 4);
    for (int i = 0; i < PASSES && grows; i++) {
        size_t before = mallinfo2().uordblks;
        explore(faults, every, SCHEDULES / 4);
        grows = mallinfo2().uordblks > before;
    }
    CHECK(!grows);
}

TEST("a tree of supervisors works, and ends, in each schedule")
{
    memset(&seen, 0, sizeof seen);
    explore(0, 0, SCHEDULES);
    CHECK(seen.refused == 0 && seen.ended > 0 && seen.handled > 0);
}

TEST("a tree of supervisors that is refused memory at any place ends, and leaves nothing")
{
    explore_again(JANUS_FAULT_MEMORY, 20);
    CHECK(seen.refused > 0 && seen.handled > 0);
    explore_again(JANUS_FAULT_MEMORY, 50);
    CHECK(seen.refused > 0 && seen.ended > 0);
}

TEST("a tree of supervisors that is refused stacks, threads and memory ends, and leaves nothing")
{
    explore_again(JANUS_FAULT_MAPPING, 4);
    explore_again(JANUS_FAULT_THREAD | JANUS_FAULT_DEATH | JANUS_FAULT_WAKE, 10);
    explore_again(JANUS_FAULT_ALL, 30);
    CHECK(seen.ended > 0);
}

/* Counts the steps of one schedule. */
static uint64_t steps_of(uint64_t seed)
{
    static const janus_supervision strategy = JANUS_SUPERVISION_ONE_FOR_ONE;
    const janus_scheduler_options  scheduler = {.struct_bytes = sizeof scheduler,
                                                .quiet_panics = true};
    janus_explore_result           result = JANUS_EXPLORE_RESULT();
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.schedules = 1, .seed = seed, .worker_count = 2,
                                                 .stale_allowed = true, .panics_allowed = true,
                                                 .quiet = true, .scheduler = &scheduler),
                           grow, (void *)(uintptr_t)&strategy, &result),
             JANUS_OK);
    return result.steps;
}

TEST("the same seed gives the same restarts, with the same delays")
{
    enum { SEEDS = SCHEDULES / 10 };
    uint64_t steps[SEEDS];
    for (uint64_t i = 0; i < SEEDS; i++) steps[i] = steps_of(i + 1);
    for (uint64_t i = 0; i < SEEDS; i++) CHECK_EQ(steps_of(i + 1), steps[i]);
}

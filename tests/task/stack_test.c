/* SPDX-License-Identifier: MIT */
/*
 * The stacks of tasks: as large as promised, checked without a guard, paid for when large. Also
 * what happens without memory for stacks. idle_stacks_test.c has those that are idle.
 */
#include "plat/altstack.h"
#include "rig.h"
#include "task/worker.h"
#include "work/crew.h"

enum { ROUNDS = RIG_SLOW ? 4 : 40, MIB = 1 << 20 };

/* As large as promised. */

struct use {
    size_t stack_bytes, parent_bytes;
};

static int64_t use_all(void *argument)
{
    const struct use *use = argument;
    size_t            bytes = use->stack_bytes - 256; /* and this frame */
    volatile char    *deep = __builtin_alloca(bytes);
    for (size_t i = 0; i < bytes; i += 512) deep[i] = 1;
    deep[0] = 2;
    return deep[0] == 2 ? 0 : -1;
}

static int64_t use_some_and_have_a_child(void *argument)
{
    struct use    *use = argument;
    volatile char *mine = __builtin_alloca(use->parent_bytes + 1);
    janus_nursery  n;
    mine[0] = 7;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, use_all, use), JANUS_OK);
    janus_status status = janus_nursery_end(&n, NULL);
    CHECK_EQ(mine[0], 7);
    return status;
}

TEST("a child has all the stack it was promised, however much its parent uses")
{
    RIG_OVERFLOWS();
    if (JRT_ASAN) SKIP("instrumented frames have no known size");
    static const size_t sizes[] = {16384, 65536, 262144};
    for (size_t i = 0; i < 3; i++) {
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .stack_bytes = sizes[i]));
        struct use use = {.stack_bytes = sizes[i]};
        for (; use.parent_bytes < sizes[i] / 4; use.parent_bytes += sizes[i] / 256) {
            rig_do(scheduler, use_some_and_have_a_child, &use);
        }
        janus_worker_info stats = JANUS_WORKER_INFO();
        CHECK_EQ(janus_worker_inspect(scheduler, JANUS_ALL_WORKERS, &stats), JANUS_OK);
        CHECK(stats.tasks_in_place > 20); /* some of them ran on their parent's stack */
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* Without a guard. */

static char *my_low(void) { return jrt_stack_low(jrt_worker_self()->strand->stack); }

static void damage(size_t below, size_t bytes)
{
    volatile char *at = my_low() - below;
    for (size_t i = 0; i < bytes; i++) at[i] = 1;
}

static int64_t write_below(void *argument)
{
    (void)argument;
    damage(4096, 4096);
    return 0;
}

static int64_t write_a_word_far_below(void *argument)
{
    (void)argument;
    damage(4096, 8);
    return 0;
}

static int64_t write_below_and_yield(void *argument)
{
    damage(64, 64);
    JANUS_IGNORE(janus_yield());
    atomic_fetch_add((atomic_int *)argument, 1); /* never */
    return 0;
}

static int64_t write_below_with_children(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, sleep_an_hour, NULL), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    damage(64, 64);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    atomic_fetch_add((atomic_int *)argument, 1); /* never */
    return 0;
}

__attribute__((noinline)) static int64_t dig_with_calls(int64_t depth)
{
    static volatile bool bottomless = true;
    volatile char        room[400];
    room[0] = (char)depth;
    JANUS_IGNORE(janus_yield());
    return (bottomless ? dig_with_calls(depth + 1) : 0) + room[0];
}

static int64_t dig(void *argument)
{
    (void)argument;
    return dig_with_calls(0);
}

struct misdeed {
    janus_entry *entry;
    atomic_int  *went_on;
};

static int64_t contain(void *argument)
{
    const struct misdeed *misdeed = argument;
    volatile int          mine[64];
    janus_nursery         n;
    janus_nursery_result  result;
    atomic_int            well = 0;
    for (int i = 0; i < 64; i++) mine[i] = i;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&n, count_me, &well), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, misdeed->entry, misdeed->went_on), JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&n, count_me, &well), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, 1);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
    CHECK_EQ(result.panic.guard, JANUS_GUARD_CANARY);
    CHECK(result.panic.fault_address == NULL);
    CHECK_EQ(well, 8); /* on the same stacks */
    for (int i = 0; i < 64; i++) CHECK_EQ(mine[i], i);
    return 0;
}

static void without_guards(janus_entry *entry)
{
    atomic_int     went_on = 0;
    struct misdeed misdeed = {entry, &went_on};
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .guard = JANUS_GUARD_CANARY,
                                             .stack_bytes = 32768));
        for (uint64_t i = 0; i < rig_few(ROUNDS); i++) rig_do(scheduler, contain, &misdeed);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
    CHECK_EQ(went_on, 0);
}

TEST("without guards a task that wrote 4 KiB below its stack has overflowed when it ends")
{
    without_guards(write_below);
}

TEST("without guards one word written far below a stack is found when the task ends")
{
    without_guards(write_a_word_far_below);
}

TEST("without guards a task that has overflowed does not come back from a call that may wait")
{
    without_guards(write_below_and_yield);
}

TEST("without guards a task that has overflowed cancels the children of its open nurseries")
{
    without_guards(write_below_with_children);
}

TEST("without guards a task whose stack ends at a library call panics there")
{
    RIG_OVERFLOWS();
    without_guards(dig);
}

static int64_t fork_and_join(void *argument)
{
    intptr_t      depth = (intptr_t)argument;
    janus_nursery n;
    if (depth == 0) return janus_yield();
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, fork_and_join, (void *)(depth - 1)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, fork_and_join, (void *)(depth - 1)), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("without guards tasks that stay on their stacks end well")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        CHECK_EQ(
            janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .guard = JANUS_GUARD_CANARY),
                      fork_and_join, (void *)5, NULL),
            JANUS_OK);
    }
}

/* Deep trees. */

struct level {
    int         depth;
    atomic_int *done;
};

static int64_t descend(void *argument)
{
    struct level *level = argument;
    struct level  next = {level->depth - 1, level->done};
    janus_nursery n;
    if (level->depth == 0) {
        janus_status status = janus_sleep(1000); /* it links the task, and all around it */
        atomic_store(level->done, 1);
        return status;
    }
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, descend, &next), JANUS_OK);
    while (atomic_load(level->done) == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("a task inside any number of nurseries can wait on a small stack")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        for (int depth = 1; depth <= 600; depth = depth * 3 + 1) {
            atomic_int       done = 0;
            struct level     level = {depth, &done};
            janus_scheduler *scheduler =
                rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .stack_bytes = 8192));
            rig_do(scheduler, descend, &level);
            CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        }
    }
}

/* Without memory for stacks. */

struct shortage {
    janus_scheduler *scheduler;
    atomic_int       ended, refused, begun;
};

static void refuse_stacks(janus_scheduler *scheduler, bool refuse)
{
    struct jrt_ladder *ladder = &scheduler->depot->ladder;
    jrt_lock(&scheduler->depot->lock);
    ladder->guarded_max = refuse ? ladder->guarded : ladder->process_max;
    jrt_unlock(&scheduler->depot->lock);
}

static int64_t sleep_shortly(void *argument)
{
    struct shortage *shortage = argument;
    atomic_fetch_add(&shortage->begun, 1);
    return janus_sleep(1000);
}

/* Its child needs a larger stack, so that it cannot run in place: the end of the nursery waits. */
static int64_t wait_for_larger(void *argument)
{
    struct shortage     *shortage = argument;
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, sleep_shortly, shortage,
                              JANUS_SPAWN_OPTIONS(.stack_bytes = 65536), NULL),
             JANUS_OK);
    janus_status status = janus_nursery_end(&n, &result);
    if (status != JANUS_OK) {
        CHECK_EQ(status, JANUS_CHILD_FAILED);
        CHECK_EQ(result.error, JANUS_NO_MEMORY);
        atomic_fetch_add(&shortage->refused, 1);
    }
    atomic_fetch_add(&shortage->ended, 1);
    return 0;
}

enum { CROWD = 60 };

static int64_t crowd(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < CROWD; i++) {
        CHECK_EQ(janus_spawn_with(&n, wait_for_larger, argument,
                                  JANUS_SPAWN_OPTIONS(.priority = JANUS_PRIORITY_HIGH), NULL),
                 JANUS_OK);
    }
    /* Some of them may not have begun, and then report so. */
    janus_nursery_result result;
    janus_status         status = janus_nursery_end(&n, &result);
    CHECK(status == JANUS_OK || result.error == JANUS_NO_MEMORY);
    return 0;
}

/* The first task may not begin either, if other workers cache the last stacks. */
static void try_crowd(janus_scheduler *scheduler, struct shortage *shortage)
{
    janus_nursery        root;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, crowd, shortage), JANUS_OK);
    janus_status status = janus_nursery_end(&root, &result);
    CHECK(status == JANUS_OK || result.error == JANUS_NO_MEMORY);
}

TEST("without memory for stacks nurseries end, with NO_MEMORY for children that could not begin")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .guard = JANUS_GUARD_MPROTECT,
                                             .stack_bytes = 32768));
        struct shortage shortage = {.scheduler = scheduler};
        for (uint64_t i = 0; i < rig_few(ROUNDS); i++) {
            refuse_stacks(scheduler, true);
            try_crowd(scheduler, &shortage);
        }
        CHECK(shortage.refused > 0);
        refuse_stacks(scheduler, false);
        shortage.refused = shortage.ended = 0;
        rig_do(scheduler, crowd, &shortage);
        CHECK_EQ(shortage.refused, 0);
        CHECK_EQ(shortage.ended, CROWD);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* Stacks of signal handlers. */

TEST("a scheduler whose workers are refused alternate signal stacks does not start, and returns an "
     "error")
{
    RIG_REAL("all threads are one, which has such a stack");
    if (JRT_ASAN) SKIP("AddressSanitizer gives every thread such a stack");
    for (unsigned refusals = 1; refusals <= 4; refusals++) {
        janus_scheduler *scheduler = NULL;
        CHECK_EQ(
            janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = 4), &scheduler),
            JANUS_OK);
        jrt_altstacks_refuse(refusals);
        CHECK_EQ(janus_scheduler_start(scheduler), JANUS_NO_MEMORY);
        jrt_altstacks_refuse(0);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        jrt_altstacks_refuse(refusals);
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 4), nothing, NULL, NULL),
                 JANUS_NO_MEMORY);
        jrt_altstacks_refuse(0);
    }
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 4), nothing, NULL, NULL), JANUS_OK);
}

TEST("a worker whose next thread is refused an alternate signal stack leaves its tasks to others")
{
    RIG_REAL("all threads are one, which has such a stack");
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    for (int i = 0; i < 10; i++) {
        jrt_altstacks_refuse(1);
        jrt_worker_doom(scheduler, (uint32_t)i % 2);
        rig_do(scheduler, use_some_and_have_a_child, &(struct use){.stack_bytes = 4096});
        jrt_altstacks_refuse(0);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Large stacks. */

static const janus_budget plenty = {.ops = 1000000,
                                    .memory = 100 * MIB,
                                    .spawn_count = 10000,
                                    .channel_ops = 10000,
                                    .syscalls = 1000};

static janus_status spawn_large(janus_nursery *n, size_t stack_bytes, uint64_t memory)
{
    janus_budget budget = janus_budget_of(1000, memory, 0, 0, 0);
    return janus_spawn_with(
        n, nothing, NULL, JANUS_SPAWN_OPTIONS(.stack_bytes = stack_bytes, .budget = &budget), NULL);
}

static int64_t ask_for_large_stacks(void *argument)
{
    (void)argument;
    janus_nursery n;
    janus_budget  pool = janus_budget_of(100000, 4 * MIB, 1000, 0, 0);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(spawn_large(&n, MIB, 0), JANUS_SPAWN_BUDGET);
    CHECK_EQ(spawn_large(&n, 65536, 0), JANUS_OK); /* the scheduler's size costs nothing */
    CHECK_EQ(spawn_large(&n, MIB, MIB - 65536 - 1), JANUS_SPAWN_BUDGET);
    CHECK_EQ(spawn_large(&n, MIB, MIB - 65536), JANUS_OK);
    CHECK_EQ(spawn_large(&n, (size_t)1 << 30, 4 * MIB), JANUS_SPAWN_BUDGET);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("the child's memory budget pays for a stack beyond the scheduler's size, or the spawn is "
     "refused")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .stack_bytes = 65536,
                                                   .max_budget = &plenty),
                           ask_for_large_stacks, NULL, NULL),
                 JANUS_OK);
    }
}

static int64_t look_at_my_memory(void *argument)
{
    return janus_budget_get_current().memory == *(uint64_t *)argument ? 0 : -1;
}

static int64_t be_repaid(void *argument)
{
    (void)argument;
    uint64_t     left = 3 * MIB - (MIB - 65536);
    janus_budget pool = janus_budget_of(100000, 3 * MIB, 1000, 0, 0);
    janus_budget share = janus_budget_of(1000, 3 * MIB, 0, 0, 0);
    for (int i = 0; i < 20; i++) { /* each has the whole budget: what the last one paid is back */
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
        for (int j = 0; j < 3; j++) {
            janus_task_id id;
            CHECK_EQ(janus_spawn_with(&n, look_at_my_memory, &left,
                                      JANUS_SPAWN_OPTIONS(.stack_bytes = MIB, .budget = &share),
                                      &id),
                     JANUS_OK);
            CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
        }
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

TEST("the pool gets back what a child paid for its stack when the child has ended")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .stack_bytes = 65536,
                                                   .max_budget = &plenty),
                           be_repaid, NULL, NULL),
                 JANUS_OK);
    }
}

static int64_t pay_without_being_asked(void *argument)
{
    (void)argument;
    janus_nursery n;
    /* The profile's memory of a task is 1 MiB. */
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.stack_bytes = 64 * MIB)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_SPAWN_BUDGET);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.stack_bytes = MIB)), JANUS_OK);
    for (int i = 0; i < 50; i++) CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("children of a nursery with large stacks pay for them, too")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers),
                           pay_without_being_asked, NULL, NULL),
                 JANUS_OK);
    }
}

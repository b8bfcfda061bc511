/* SPDX-License-Identifier: MIT */
/* Purses on the stacks of their tasks. The tests show which lie there. A lodged purse keeps the
 * same amounts as a malloc'd purse, and is gone before its stack is used again. */
#include "rig.h"
#include "task/purse.h"
#include "task/worker.h"

static const janus_budget three = {
    .ops = 10000, .memory = 1 << 20, .spawn_count = 10, .channel_ops = 3};

static struct jrt_purse *my_purse(void) { return jrt_purse_need(jrt_worker_self()->current); }

static const void *my_low(void) { return jrt_stack_low(jrt_worker_self()->strand->stack); }

static bool is_here(const struct jrt_purse *purse)
{
    const struct jrt_stack *stack = jrt_worker_self()->strand->stack;
    const char             *at = (const char *)purse;
    return at >= jrt_stack_low(stack) && at + sizeof *purse <= stack->top;
}

/* Uses up the channel operations, to the last. */
static void use_up(uint64_t count)
{
    const janus_budget one = janus_price_send();
    janus_component    lacks = JANUS_COMPONENT_NONE;
    for (uint64_t i = count; i-- > 0;) {
        CHECK_EQ(janus_try_charge(one, &lacks), JANUS_OK);
        CHECK_EQ(janus_budget_get_current().channel_ops, i);
    }
    CHECK_EQ(janus_try_charge(one, &lacks), JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(lacks, JANUS_COMPONENT_CHANNEL_OPS);
}

struct below {
    const void *low; /* of the parent's stack */
    bool        lodged, in_place;
};

static int64_t child(void *argument)
{
    struct below *below = argument;
    below->in_place = my_low() == below->low;
    CHECK_EQ(janus_budget_get_current().channel_ops, 3);
    use_up(3);
    below->lodged = my_purse()->lodged;
    CHECK_EQ(is_here(my_purse()), below->lodged);
    return 0;
}

static struct below have_child(void)
{
    struct below  below = {.low = my_low()};
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, child, &below), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return below;
}

static int64_t parent(void *argument)
{
    janus_channel channel;
    CHECK_EQ(janus_channel_create(8, 1, NULL, &channel), JANUS_OK); /* needs a purse */
    CHECK(my_purse()->lodged && is_here(my_purse()));
    struct below below = have_child();
    CHECK_EQ(below.lodged, !below.in_place);
    atomic_fetch_add((atomic_int *)argument, below.in_place);
    use_up(3);
    CHECK(my_purse()->lodged && is_here(my_purse()));
    return janus_channel_destroy(channel);
}

static int64_t parents(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 20; i++) CHECK_EQ(janus_spawn(&n, parent, argument), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

static int64_t child_first(void *argument)
{
    (void)argument;
    /* The spawn needs no purse, so the child has the place, and then its parent. */
    struct below below = have_child();
    CHECK(below.lodged);
    CHECK(my_purse()->lodged && is_here(my_purse()));
    return 0;
}

TEST("a task's purse lies on its own stack, but for a task on top of one whose purse does")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        atomic_int       in_place = 0;
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .task_budget = &three,
                                             .exhaustion = JANUS_EXHAUSTION_END));
        rig_do(scheduler, parent, &in_place);
        rig_do(scheduler, child_first, NULL);
        CHECK(workers > 1 || in_place > 0);
        rig_do(scheduler, parents, &in_place);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* A task that waits elsewhere, and goes on there. */

static int64_t wait_and_pay(void *argument)
{
    char                    nothing_sent;
    const struct jrt_purse *purse = my_purse();
    CHECK(purse->lodged);
    CHECK_EQ(janus_channel_recv(*(janus_channel *)argument, &nothing_sent), JANUS_CLOSED);
    CHECK(purse == my_purse() && is_here(purse));
    CHECK_EQ(janus_budget_get_current().channel_ops, 3); /* nothing was received */
    use_up(3);
    return 0;
}

static int64_t wait_together(void *argument)
{
    janus_channel channel;
    janus_nursery n;
    CHECK_EQ(janus_channel_create(1, 0, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 300; i++) CHECK_EQ(janus_spawn(&n, wait_and_pay, &channel), JANUS_OK);
    for (int i = 0; i < 700; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_channel_close(channel), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return argument == NULL ? 0 : -1;
}

TEST("a task that waits, and goes on on another worker, has the purse it had")
{
    static const janus_budget many = {
        .ops = 1000000, .memory = 1 << 20, .spawn_count = 10000, .channel_ops = 3};
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .task_budget = &many,
                                             .exhaustion = JANUS_EXHAUSTION_END));
        for (uint64_t i = 0; i < rig_few(50); i++) rig_do(scheduler, wait_together, NULL);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* A task that ends on a rescue strand. */

/* Runs when the rescuer ends the nursery. */
static void pay_late(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

static atomic_int deferred;

static int64_t wait_with_defer(void *argument)
{
    CHECK_EQ(janus_defer(pay_late, argument), JANUS_OK);
    atomic_fetch_add(&deferred, 1);
    JANUS_IGNORE(janus_sleep(3600 * 1000 * rig_ms));
    return 0;
}

static int64_t overflow(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    atomic_store(&deferred, 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, wait_with_defer, argument), JANUS_OK);
    while (atomic_load(&deferred) < 3) CHECK_EQ(janus_yield(), JANUS_OK);
    char *low = jrt_stack_low(jrt_worker_self()->strand->stack);
    *(volatile char *)(low - 1) = 0;
    return 0;
}

static int64_t overflow_and_go_on(void *argument)
{
    janus_nursery n;
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
                 JANUS_OK);
        CHECK_EQ(janus_spawn(&n, overflow, argument), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
        /* As many as reuse the rescuer's stack, and the spares. */
        CHECK_EQ(wait_together(NULL), 0);
    }
    return 0;
}

TEST("the stack of a rescuer holds no purse, and the next tasks have theirs there")
{
    RIG_OVERFLOWS();
    for (uint32_t workers = 1; workers <= 2; workers++) {
        static const janus_budget many = {
            .ops = 1000000, .memory = 1 << 20, .spawn_count = 100000, .channel_ops = 3};
        atomic_int       late = 0;
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .task_budget = &many,
                                             .exhaustion = JANUS_EXHAUSTION_END));
        rig_do(scheduler, overflow_and_go_on, &late);
        CHECK_EQ(late, 30);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

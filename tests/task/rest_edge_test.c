/* SPDX-License-Identifier: MIT */
/* Resting tasks: what steps do and leave behind, what is refused, and what is paid. */
#include "backends.h"
#include "rests.h"

#include <stdio.h>
#include <string.h>

static atomic_int dropped;

static void count_drop(void *argument)
{
    (void)argument;
    atomic_fetch_add(&dropped, 1);
}

/* What steps leave behind. */

static void count_defer(void *argument) { (*(int *)argument)++; }

static void defer_once(struct script *self)
{
    CHECK_EQ(janus_defer(count_defer, &self->item), JANUS_OK);
}

static void leave_shield(struct script *self)
{
    (void)self;
    janus_shield_begin();
}

static int64_t leave_things(void *argument)
{
    struct script script = {.act = defer_once};
    (void)argument;
    script.rests[0] = script.rests[1] = janus_rest_sleep(rig_ms / 10);
    script.rests[2] = janus_rest_done(0);
    CHECK_EQ(play(&script, janus_rest_sleep(0), NULL, NULL), JANUS_OK);
    CHECK_EQ(script.item, 3); /* each defer ran once, at the end */
    struct script shielded = script;
    janus_nursery n;
    shielded.act = leave_shield;
    shielded.steps = 0;
    shielded.rests[0] = janus_rest_sleep(JANUS_SECONDS);
    shielded.rests[1] = janus_rest_done(JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(0), follow, &shielded, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_sleep(rig_ms), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("defers run at the end of a resting task, and shields end with the step")
{
    rig_all(leave_things, NULL, 5);
}

static void leave_nursery(struct script *self)
{
    static janus_nursery left;
    (void)self;
    CHECK_EQ(janus_nursery_open(&left, NULL), JANUS_OK);
}

static void leave_hold(struct script *self)
{
    (void)self;
    janus_hold_begin();
}

static janus_rest return_stack(void *state, janus_status woke)
{
    int here = 0;
    (void)woke;
    return janus_rest_recv(*(janus_channel *)state, &here);
}

static void expect_panic(janus_nursery *n, const char *words)
{
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_end(n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, INT64_MIN);
    if (strstr(result.panic.message, words) == NULL) printf("# %s\n", result.panic.message);
    CHECK(strstr(result.panic.message, words) != NULL);
}

static int64_t break_rules(void *argument)
{
    struct script script = {.rests[0] = {.kind = (janus_rest_kind)77}};
    janus_channel channel;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(0), follow, &script, NULL, NULL), JANUS_OK);
    expect_panic(&n, "kind 77");

    CHECK_EQ(janus_channel_create(sizeof(int), 1, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(0), return_stack, &channel, NULL, NULL),
             JANUS_OK);
    expect_panic(&n, "on the step's stack");
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);

    script = (struct script){.act = leave_nursery, .rests[0] = janus_rest_sleep(0)};
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(0), follow, &script, NULL, NULL), JANUS_OK);
    expect_panic(&n, "nursery");

    script = (struct script){.act = leave_hold, .rests[0] = janus_rest_sleep(JANUS_SECONDS)};
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(0), follow, &script, NULL, NULL), JANUS_OK);
    expect_panic(&n, "hold");
    return 0;
}

TEST("an unknown kind, a value on the stack, an open nursery or hold makes a resting task panic")
{
    rig_all(break_rules, NULL, 5);
}

/* Steps are ordinary code. */

static int64_t double_it(void *argument)
{
    CHECK_EQ(janus_sleep(rig_ms / 10), JANUS_OK);
    atomic_fetch_add((atomic_int *)argument, 2);
    return 0;
}

static void wait_inside(struct script *self)
{
    atomic_int    sum = 0;
    janus_nursery n;
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_sleep(rig_ms / 10), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, double_it, &sum), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    self->item += atomic_load(&sum);
}

static int64_t work_in_steps(void *argument)
{
    struct script script = {.act = wait_inside};
    (void)argument;
    script.rests[0] = script.rests[1] = janus_rest_sleep(rig_ms / 10);
    script.rests[2] = janus_rest_done(0);
    CHECK_EQ(play(&script, janus_rest_sleep(0), NULL, NULL), JANUS_OK);
    CHECK_EQ(script.item, 18);
    return 0;
}

TEST("a step may yield, sleep, and await a nursery") { rig_all(work_in_steps, NULL, 10); }

/* Refusals. */

static int64_t refuse(void *argument)
{
    struct script       script = {.rests[0] = janus_rest_done(0)};
    janus_rest          bad = {.kind = (janus_rest_kind)3000};
    janus_rest          good = janus_rest_sleep(0);
    janus_nursery       n;
    janus_spawn_options odd = {.struct_bytes = 3};
    (void)argument;
    atomic_store(&dropped, 0);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.max_tasks = 1)), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(NULL, good, follow, &script, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_spawn_resting(&n, good, NULL, &script, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_spawn_resting(&n, bad, follow, &script, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_spawn_resting(&n, good, follow, &script, &odd, NULL), JANUS_INVALID);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(5 * rig_ms), follow, &script, NULL, NULL),
             JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, good, follow, &script, JANUS_SPAWN_OPTIONS(.drop = count_drop),
                                 NULL),
             JANUS_TASK_LIMIT);
    CHECK_EQ(janus_nursery_close(&n), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, good, follow, &script, NULL, NULL), JANUS_CLOSED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    /* Its limits are freed memory now, which the call must not read. */
    CHECK_EQ(janus_spawn_resting(&n, good, follow, &script, NULL, NULL), JANUS_CLOSED);
    CHECK_EQ(script.steps, 1);
    CHECK_EQ(atomic_load(&dropped), 0);
    return 0;
}

TEST("a refused resting task has left nothing behind") { rig_run(2, refuse, NULL, 5); }

static int64_t refuse_backends(void *argument)
{
    struct script script = {.rests[0] = janus_rest_done(0)};
    janus_rest    good = janus_rest_sleep(0);
    janus_nursery n;
    (void)argument;
    const janus_backend backends[] = {JANUS_BACKEND_BLOCKING, JANUS_BACKEND_THREADED};
    for (int i = 0; i < 2; i++) {
        BACKEND_OPEN(&n, backends[i], .max_children = 9);
        CHECK_EQ(janus_spawn_resting(&n, good, follow, &script, NULL, NULL), JANUS_STATE);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    CHECK_EQ(script.steps, 0);
    BACKEND_OPEN(&n, JANUS_BACKEND_EVENTED, .max_children = 9);
    CHECK_EQ(janus_spawn_resting(&n, good, follow, &script, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(script.steps, 1);
    return 0;
}

TEST("children that keep a stack or a thread of their own cannot rest")
{
    backend_run(2, refuse_backends, NULL);
}

/* Budgets. */

static void burn(struct script *self)
{
    (void)self;
    CHECK_EQ(janus_charge(janus_price_loop(100)), JANUS_OK);
}

static janus_budget what_is_left;

static void read_budget(struct script *self)
{
    burn(self);
    what_is_left = janus_budget_get_current();
}

static int64_t pay_for_steps(void *argument)
{
    const janus_budget budget = {1000, 1 << 16, 0, 10, 0};
    janus_channel      channel;
    janus_nursery      n;
    (void)argument;
    CHECK_EQ(janus_channel_create(sizeof(int), 4, NULL, &channel), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_channel_send(channel, &i), JANUS_OK);
    struct script script = {.act = read_budget};
    janus_rest    receive = janus_rest_recv(channel, &script.item);
    script.rests[0] = receive;
    script.rests[1] = janus_rest_recv_until(channel, &script.item, in_ms(2)); /* refunded */
    script.rests[2] = janus_rest_sleep(rig_ms / 10);
    script.rests[3] = janus_rest_done(0);
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.budget = &(janus_budget){10000, 1 << 20, 10, 100, 10})),
             JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, receive, follow, &script,
                                 JANUS_SPAWN_OPTIONS(.budget = &budget), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(script.log[2], JANUS_DEADLINE);
    CHECK_EQ(what_is_left.channel_ops, budget.channel_ops - 2);
    /* Four steps of an op and 100, three receives of an op. */
    CHECK_EQ(what_is_left.ops, budget.ops - 4 * 101 - 3);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

TEST("a resting task pays for its steps, and for its receives as an ordinary one")
{
    rig_run(1, pay_for_steps, NULL, 5);
    rig_run(4, pay_for_steps, NULL, 5);
}

static janus_rest burn_all(void *state, janus_status woke)
{
    (void)woke;
    (*(uint64_t *)state)++;
    JANUS_IGNORE(janus_charge(janus_price_loop(100)));
    return janus_rest_sleep(rig_ms / 10);
}

static int64_t exhaust(void *argument)
{
    const janus_budget   budget = {1000, 1 << 16, 0, 10, 0};
    janus_nursery_result result;
    uint64_t             steps = 0;
    janus_nursery        n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.budget = &(janus_budget){10000, 1 << 20, 10, 100, 10})),
             JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(0), burn_all, &steps,
                                 JANUS_SPAWN_OPTIONS(.budget = &budget), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    CHECK(steps >= 90 && steps <= 99); /* of 101 ops, until the pool of 10,000 is empty */
    return 0;
}

TEST("a resting task that has used up its budget ends in a step") { rig_all(exhaust, NULL, 5); }

/* Budgets that no spawn named. */

struct miser {
    uint64_t steps;
    uint64_t bytes; /* charged in each step */
};

/* Less than a first slice in each step. */
static janus_rest use_little(void *state, janus_status woke)
{
    struct miser *self = state;
    if (woke != JANUS_OK || self->steps == 1000) return janus_rest_done(woke);
    self->steps++;
    for (int i = 0; i < 20; i++) JANUS_IGNORE(janus_check());
    if (self->bytes != 0) JANUS_IGNORE(janus_charge(janus_budget_of(0, self->bytes, 0, 0, 0)));
    return janus_rest_sleep(1000);
}

static int64_t use_up(void *argument)
{
    struct miser        *miser = argument;
    janus_nursery_result result;
    janus_nursery        n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(0), use_little, miser, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    return 0;
}

TEST("a resting task remembers what it used of an implicit budget")
{
    const janus_budget each = {2000, 1 << 20, 100, 100, 100};
    struct miser       miser = {0};
    janus_scheduler   *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .task_budget = &each,
                                         .exhaustion = JANUS_EXHAUSTION_MANUAL));
    rig_do(scheduler, use_up, &miser);
    CHECK(miser.steps >= 80 && miser.steps <= 100); /* of 21 ops */
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a resting task remembers the memory that it charged, although ops are renewed")
{
    const janus_budget each = {2000, 1 << 20, 100, 100, 100};
    struct miser       miser = {.bytes = 1 << 18};
    janus_scheduler   *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .task_budget = &each,
                                         .exhaustion = JANUS_EXHAUSTION_AUTO));
    rig_do(scheduler, use_up, &miser);
    CHECK_EQ(miser.steps, 5);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Children that begin, rest and end elsewhere while their parent looks at them. */

static atomic_int looked_at;

static janus_rest count_end(void *state, janus_status woke)
{
    (void)woke;
    atomic_fetch_add((atomic_int *)state, 1);
    return janus_rest_done(0);
}

static int64_t look_at_children(void *argument)
{
    enum { CHILDREN = 32 };
    janus_task_id ids[CHILDREN];
    atomic_int    ended = 0;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CHILDREN; i++) {
        janus_rest first = i % 2 == 0 ? janus_rest_done(0) : janus_rest_sleep(rig_ms / 100);
        CHECK_EQ(janus_spawn_resting(&n, first, count_end, &ended, NULL, &ids[i]), JANUS_OK);
    }
    uint64_t until = janus_now_ns() + 100 * rig_ms; /* where no other worker takes them */
    while (atomic_load(&ended) < CHILDREN / 2 && janus_now_ns() < until) {
        for (int i = 0; i < CHILDREN; i++) {
            janus_task_info info = JANUS_TASK_INFO();
            CHECK_EQ(janus_task_inspect(&n, ids[i], &info), JANUS_OK);
            CHECK(info.site.file == NULL || strlen(info.site.file) > 0);
            atomic_fetch_add(&looked_at, 1);
        }
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a parent looks at a resting child that begins and ends meanwhile")
{
    atomic_store(&looked_at, 0);
    rig_run(2, look_at_children, NULL, 20);
    rig_run(4, look_at_children, NULL, 20);
    CHECK(atomic_load(&looked_at) > 0);
}

static int64_t exhaust_early(void *argument)
{
    /* The spawn and the receive take both ops. */
    const janus_budget   pool = {2, 1 << 20, 1, 10, 0};
    janus_nursery_result result;
    struct script        script = {.rests[0] = janus_rest_done(0)};
    janus_channel        channel;
    janus_nursery        n;
    (void)argument;
    atomic_store(&dropped, 0);
    CHECK_EQ(janus_channel_create(sizeof(int), 0, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_channel_close(channel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_recv(channel, &script.item), follow, &script,
                                 JANUS_SPAWN_OPTIONS(.drop = count_drop), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(script.steps, 0);
    CHECK_EQ(atomic_load(&dropped), 1);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

TEST("a resting task that cannot pay for its first step drops its state")
{
    rig_all(exhaust_early, NULL, 5);
}

/* SPDX-License-Identifier: MIT */
/* Edges of supervision that a bug could move unseen: two ends at once, prices, delays, exhaustion.
 * tools/actor_mutants.py moves them. */
#include "play.h"

#include "actor/supervisor.h"
#include "means/terms.h"

/* Two children that fail at once. */

/* The second child's end waits in on_end: its task has ended, and its supervisor has not taken the
 * step yet. It waits until the first child's failure has stopped the third child. The explorer has
 * no point there, so threads meet there. */
struct twins {
    atomic_int  second_ends, third_told, starts[3];
    janus_actor actors[3];
};

static struct twins twins;

static void wait_for(const atomic_int *flag)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (!atomic_load(flag)) CHECK(janus_now_ns() < limit);
}

static int64_t twin_init(void *state, void *argument)
{
    *(int *)state = (int)(intptr_t)argument;
    atomic_fetch_add(&twins.starts[*(int *)state], 1);
    return JANUS_ACTOR_GO_ON;
}

static int64_t twin_handle(void *state, janus_letter *letter)
{
    (void)letter;
    if (*(int *)state == 0) wait_for(&twins.second_ends);
    return -100;
}

static void twin_terminate(void *state, const janus_end *end)
{
    (void)end;
    if (*(int *)state == 2) atomic_store(&twins.third_told, 1);
}

static const janus_behaviour twin = {.struct_bytes = sizeof twin,
                                     .name = "twin",
                                     .state_bytes = sizeof(int),
                                     .init = twin_init,
                                     .handle = twin_handle,
                                     .terminate = twin_terminate};

static janus_decision twin_on_end(void *argument, const janus_child_event *event,
                                  uint64_t *delay_ns)
{
    (void)argument, (void)delay_ns;
    if (memcmp(&event->actor, &twins.actors[1], sizeof event->actor) != 0)
        return JANUS_DECISION_DEFAULT;
    atomic_store(&twins.second_ends, 1);
    wait_for(&twins.third_told);
    return JANUS_DECISION_DEFAULT;
}

static int64_t twins_fail(void *argument)
{
    janus_supervisor       *supervisor;
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    const janus_supervision strategy = *(janus_supervision *)argument;
    memset(&twins, 0, sizeof twins);
    CHECK_EQ(janus_supervisor_open(
                 JANUS_SUPERVISOR_OPTIONS(.strategy = strategy, .max_restarts = 100,
                                          .stop_together = true, .on_end = twin_on_end),
                 &supervisor),
             JANUS_OK);
    for (intptr_t i = 0; i < 3; i++) {
        CHECK_EQ(janus_supervisor_add(supervisor,
                                      JANUS_CHILD(.behaviour = &twin, .argument = (void *)i),
                                      &twins.actors[i]),
                 JANUS_OK);
    }
    CHECK_EQ(janus_cast(twins.actors[0], NULL), JANUS_OK);
    CHECK_EQ(janus_cast(twins.actors[1], NULL), JANUS_OK);
    uint64_t limit = janus_now_ns() + rig_patience;
    for (int i = 0; i < 3; i++) {
        while (atomic_load(&twins.starts[i]) < 2) {
            CHECK(janus_now_ns() < limit);
            CHECK_EQ(janus_yield(), JANUS_OK);
        }
    }
    CHECK_EQ(janus_supervisor_end(supervisor, &result), JANUS_OK);
    CHECK_EQ(result.restarts, 1);
    for (int i = 0; i < 3; i++) CHECK_EQ(atomic_load(&twins.starts[i]), 2);
    return 0;
}

TEST("two children that fail at once make one restart of all, and not two")
{
    RIG_REAL("two threads meet inside the end of a task");
    janus_supervision strategies[] = {JANUS_SUPERVISION_ONE_FOR_ALL,
                                      JANUS_SUPERVISION_REST_FOR_ONE};
    for (int i = 0; i < 2; i++) rig_run(4, twins_fail, &strategies[i], 20);
}

/* The price of restarts. */

enum { PRICE = 1000 };

static const janus_budget deep = {100 * PRICE, UINT64_C(4) << 20, 100, 1000, 100};

static uint64_t spent_ops(janus_supervisor *stage)
{
    struct jrt_account_books books;
    jrt_account_read(jrt_supervisor_nursery(stage)->terms->account, &books);
    return books.spent.ops;
}

static janus_supervisor *open_priced(void)
{
    janus_supervisor *stage;
    MUST_EQ(janus_supervisor_open(
                JANUS_SUPERVISOR_OPTIONS(.budget = &deep, .max_restarts = 1000, .price = PRICE),
                &stage),
            JANUS_OK);
    return stage;
}

static int64_t scene_price(void *argument)
{
    struct role       role = {0};
    janus_supervisor *stage = open_priced();
    (void)argument;
    janus_actor actor = ADD(stage, .argument = &role);
    for (int i = 0; i < 5; i++) {
        uint64_t before = spent_ops(stage);
        MUST_EQ(request(actor, act_return, NULL, -100, NULL), JANUS_RESTARTED);
        MUST_EQ(settle(actor), 0);
        uint64_t paid = spent_ops(stage) - before;
        MUST(paid >= PRICE);
        MUST(paid < PRICE + PRICE / 2); /* and what the actor did */
    }
    close_stage(stage);
    return 0;
}

TEST("each restart takes its price from the pool, once") { PLAY(scene_price); }

static int64_t scene_bankrupt(void *argument)
{
    struct role             role = {0};
    janus_supervisor       *stage = open_priced();
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    int                     failed = 0;
    (void)argument;
    janus_actor  actor = ADD(stage, .argument = &role);
    janus_status status = JANUS_RESTARTED;
    while (status == JANUS_RESTARTED) {
        status = request(actor, act_return, NULL, -100, NULL);
        failed++;
    }
    MUST(status == JANUS_GONE || status == JANUS_STALE || status == JANUS_CANCELLED);
    MUST_EQ(janus_supervisor_end(stage, &result), JANUS_BUDGET_EXHAUSTED);
    MUST(result.by_itself);
    MUST(failed <= 100);
    MUST(failed > 50);
    MUST_EQ(result.restarts, role.starts - 1); /* the last failure was not paid for */
    MUST_EQ(result.sent, result.handled + result.returned + result.dead);
    return 0;
}

TEST("a storm of restarts ends when the pool cannot pay, and only paid restarts count")
{
    PLAY(scene_bankrupt, .schedules = 100);
}

/* Delays. */

static int64_t scene_healthy(void *argument)
{
    struct role       role = {0};
    janus_supervisor *stage;
    (void)argument;
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.max_restarts = 100,
                                                           .delay_ns = 100 * JANUS_MS,
                                                           .healthy_ns = 150 * JANUS_MS),
                                  &stage),
            JANUS_OK);
    janus_actor actor = ADD(stage, .argument = &role);
    uint64_t    delay = 100 * JANUS_MS;
    for (int i = 0; i < 3; i++, delay *= 2) {
        uint64_t begin = janus_now_ns();
        MUST_EQ(request(actor, act_return, NULL, -100, NULL), JANUS_RESTARTED);
        MUST_EQ(settle(actor), 0);
        uint64_t took = janus_now_ns() - begin;
        MUST(took >= delay && took <= delay + delay / 5);
        /* Since the failure 200 ms have passed, but it was well for 100 only. */
        MUST_EQ(janus_sleep(100 * JANUS_MS), JANUS_OK);
    }
    close_stage(stage);
    return 0;
}

TEST("the time that a delay lasts does not count as healthy")
{
    PLAY(scene_healthy, .timed = true);
}

/* Exhaustion. */

static const janus_budget little = {1000, 65536, 0, 20, 0};

struct judge {
    janus_verdict verdict;
    int           calls;
};

static janus_verdict judge_one(void *argument, const janus_exhausted *child, janus_budget *grant)
{
    struct judge *judge = argument;
    (void)child, (void)grant;
    judge->calls++;
    return judge->verdict;
}

static int64_t act_burn(struct self *self, janus_letter *letter, const struct line *line)
{
    for (int64_t i = 0; i < line->number; i++) JANUS_IGNORE(janus_check());
    return act_note(self, letter, line);
}

static janus_supervisor *open_judged(struct judge *judge)
{
    janus_supervisor *stage;
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.budget = &deep, .max_restarts = 100,
                                                           .price = 1, .on_exhausted = judge_one,
                                                           .on_exhausted_argument = judge),
                                  &stage),
            JANUS_OK);
    return stage;
}

/* More than the share that an actor without a budget takes from the pool. */
enum { TOO_MUCH = 30000 };

static int64_t scene_forced_once(void *argument)
{
    struct judge      judge = {.verdict = JANUS_VERDICT_RESTART};
    struct role       role = {0};
    janus_supervisor *stage = open_judged(&judge);
    janus_actor       actor = ADD(stage, .argument = &role, .restart = JANUS_RESTART_TEMPORARY);
    (void)argument;
    /* The verdict starts again what would not be started otherwise, once. */
    MUST_EQ(request(actor, act_burn, NULL, TOO_MUCH, NULL), JANUS_RESTARTED);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(role.starts, 2);
    MUST_EQ(judge.calls, 1);
    tell(actor, act_return, NULL, JANUS_ACTOR_STOP);
    (void)await_end(actor);
    close_stage(stage);
    MUST_EQ(role.starts, 2);
    return 0;
}

static int64_t scene_dismissed_once(void *argument)
{
    struct judge      judge = {.verdict = JANUS_VERDICT_CANCEL};
    struct role       role = {0};
    janus_supervisor *stage = open_judged(&judge);
    janus_actor       actor = ADD(stage, .argument = &role, .id = "a");
    (void)argument;
    MUST_EQ(request(actor, act_burn, NULL, TOO_MUCH, NULL), JANUS_GONE);
    (void)await_end(actor);
    MUST_EQ(role.starts, 1);
    /* Started by hand, it is a PERMANENT child as before. */
    MUST_EQ(janus_supervisor_start_child(stage, actor), JANUS_OK);
    MUST_EQ(request(actor, act_return, NULL, -100, NULL), JANUS_RESTARTED);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(role.starts, 3);
    close_stage(stage);
    return 0;
}

TEST("the verdict CANCEL ends an exhausted actor until it is started by hand")
{
    PLAY(scene_dismissed_once);
}

TEST("the verdict RESTART starts a TEMPORARY actor again, and its normal end is the last")
{
    PLAY(scene_forced_once);
}

/* The first message uses the allowance up again and again. */
static int64_t scene_exhausted_too_often(void *argument)
{
    struct role         role = {0};
    janus_supervisor   *stage;
    janus_actor_options options = {.struct_bytes = sizeof options, .budget = &little};
    (void)argument;
    options.allowance.amount = janus_budget_of(100, 0, 0, 10, 0);
    options.allowance.period_ns = JANUS_MS;
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.budget = &deep, .max_restarts = 100,
                                                           .period_ns = 3600 * JANUS_SECONDS,
                                                           .max_exhaustions = 5, .price = 1),
                                  &stage),
            JANUS_OK);
    janus_actor actor = ADD(stage, .argument = &role, .options = &options);
    MUST_EQ(request(actor, act_burn, NULL, 5000, NULL), JANUS_RESTARTED);
    MUST_EQ(role.logged, 0);
    MUST(look(actor).failures >= 1);
    JANUS_IGNORE(janus_supervisor_end(stage, NULL));
    return 0;
}

TEST("a child that is exhausted more often than max_exhaustions has failed")
{
    PLAY(scene_exhausted_too_often, .timed = true);
}

/* An explicit budget, and no verdict. */

static int64_t scene_no_decider(void *argument)
{
    struct role             role = {0};
    janus_supervisor       *stage;
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    (void)argument;
    MUST_EQ(janus_supervisor_open(NULL, &stage), JANUS_OK);
    janus_actor actor = ADD(stage, .argument = &role, .id = "a", .restart = JANUS_RESTART_TEMPORARY,
                            .options = JANUS_ACTOR_OPTIONS(.budget = &little));
    MUST_EQ(request(actor, act_burn, NULL, 5000, NULL), JANUS_GONE);
    await_kind(actor, JANUS_END_KIND_EXHAUSTED);
    MUST_EQ(role.logged, 0);
    MUST_EQ(role.starts, 1);
    MUST_EQ(janus_supervisor_end(stage, &result), JANUS_OK);
    MUST_EQ(result.sent, result.handled + result.returned + result.dead);
    return 0;
}

TEST("an actor that has used up its budget ends, EXHAUSTED, if nobody decides about it")
{
    PLAY(scene_no_decider);
}

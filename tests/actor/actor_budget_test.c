/* SPDX-License-Identifier: MIT */
/* Budgets of actors: exhaustion in the middle of a handler, refills, and the budget of one message.
 * A11.7, A11.8. */
#include "play.h"

static const janus_budget pool = {100000, UINT64_C(10) << 20, 100, 1000, 100};

/* A supervisor that gives what is missing, `times` times. */
struct boss {
    janus_verdict   verdict;
    int             calls, times;
    janus_component lacked;
};

static janus_verdict decide(void *argument, const janus_exhausted *child, janus_budget *grant)
{
    struct boss *boss = argument;
    boss->calls++;
    boss->lacked = child->lacks;
    if (boss->calls > boss->times) return JANUS_VERDICT_CANCEL;
    *grant = janus_budget_of(2000, 0, 0, 0, 0);
    if (child->lacks == JANUS_COMPONENT_MEMORY) grant->memory = child->needs + 4096;
    if (child->lacks == JANUS_COMPONENT_SPAWN_COUNT) grant->spawn_count = 10;
    if (child->lacks == JANUS_COMPONENT_CHANNEL_OPS) grant->channel_ops = 100;
    if (child->lacks == JANUS_COMPONENT_SYSCALLS) grant->syscalls = 10;
    return boss->verdict;
}

static janus_supervisor *open_pool(struct boss *boss)
{
    janus_supervisor *stage = NULL;
    MUST_EQ(janus_supervisor_open(
                JANUS_SUPERVISOR_OPTIONS(.name = "pool", .budget = &pool, .max_restarts = 1000,
                                         .on_exhausted = boss != NULL ? decide : NULL,
                                         .on_exhausted_argument = boss),
                &stage),
            JANUS_OK);
    return stage;
}

/* Acts that need more of one component than the actor has. */

static void spend_ops(void *argument)
{
    (void)argument;
    for (int i = 0; i < 1500; i++) MUST_EQ(janus_check(), JANUS_OK);
}

static void spend_memory(void *argument)
{
    (void)argument;
    char *block = janus_alloc(200000);
    MUST(block != NULL);
    memset(block, 7, 200000);
    janus_free(block);
}

static void spend_spawns(void *argument)
{
    (void)argument;
    for (int i = 0; i < 3; i++) MUST_EQ(janus_charge(janus_price_spawn()), JANUS_OK);
}

static void spend_casts(void *argument)
{
    for (int i = 0; i < 40; i++) tell(*(janus_actor *)argument, act_add, NULL, 1);
}

static void spend_syscalls(void *argument)
{
    (void)argument;
    for (int i = 0; i < 3; i++) MUST_EQ(janus_blocking(nothing, NULL, NULL), JANUS_OK);
}

static const struct spending {
    void            (*spend)(void *argument);
    janus_component component;
} spendings[] = {{spend_ops, JANUS_COMPONENT_OPS},
                 {spend_memory, JANUS_COMPONENT_MEMORY},
                 {spend_spawns, JANUS_COMPONENT_SPAWN_COUNT},
                 {spend_casts, JANUS_COMPONENT_CHANNEL_OPS},
                 {spend_syscalls, JANUS_COMPONENT_SYSCALLS}};

/* Spends in the middle; its locals must be what they were. */
static int64_t act_spend(struct self *self, janus_letter *letter, const struct line *line)
{
    volatile uint64_t locals[32];
    for (uint64_t i = 0; i < 32; i++) locals[i] = i * UINT64_C(0x0101010101010101);
    spendings[line->number].spend(line->argument);
    for (uint64_t i = 0; i < 32; i++) MUST_EQ(locals[i], i * UINT64_C(0x0101010101010101));
    self->sum++;
    return act_note(self, letter, line);
}

static const janus_budget little = {1000, 65536, 0, 12, 1};

static int64_t scene_refill(void *argument)
{
    (void)argument;
    for (int i = 0; i < 5; i++) {
        struct boss       boss = {.verdict = JANUS_VERDICT_RECHARGE, .times = 10};
        struct role       role = {0}, sink = {0};
        int64_t           reply = -1;
        janus_supervisor *stage = open_pool(&boss);
        janus_actor       other =
            ADD(stage, .argument = &sink, .options = JANUS_ACTOR_OPTIONS(.max_messages = 100));
        janus_actor actor =
            ADD(stage, .argument = &role, .options = JANUS_ACTOR_OPTIONS(.budget = &little));
        MUST_EQ(request(actor, act_spend, &other, i, &reply), JANUS_OK);
        MUST_EQ(reply, i);
        MUST(boss.calls >= 1);
        MUST_EQ(boss.lacked, spendings[i].component);
        MUST_EQ(settle(actor), 1);
        LOGGED(&role, i); /* once */
        MUST_EQ(role.starts, 1);
        close_stage(stage);
    }
    return 0;
}

TEST("an actor that runs out of any component in a handler is refilled and goes on where it was")
{
    PLAY(scene_refill, .schedules = 300);
}

/* Allowances. */

static int64_t act_ops(struct self *self, janus_letter *letter, const struct line *line)
{
    for (int i = 0; i < line->number; i++) {
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
    }
    return act_note(self, letter, line);
}

static int64_t scene_cancelled(void *argument)
{
    struct boss       boss = {.verdict = JANUS_VERDICT_RECHARGE, .times = 0};
    struct role       role = {0};
    janus_supervisor *stage = open_pool(&boss);
    janus_actor       actor = ADD(stage, .argument = &role, .restart = JANUS_RESTART_TEMPORARY,
                                  .options = JANUS_ACTOR_OPTIONS(.budget = &little));
    (void)argument;
    MUST_EQ(request(actor, act_ops, NULL, 5000, NULL), JANUS_GONE);
    janus_end end = await_end(actor);
    MUST(end.kind == JANUS_END_KIND_EXHAUSTED || end.kind == JANUS_END_KIND_CANCELLED ||
         end.kind == JANUS_END_KIND_NEVER);
    if (end.kind == JANUS_END_KIND_EXHAUSTED) MUST_EQ(end.lacks, JANUS_COMPONENT_OPS);
    MUST_EQ(boss.calls, 1);
    MUST_EQ(role.logged, 0);
    close_stage(stage);
    return 0;
}

TEST("the caller of an exhausted actor whose supervisor cancels it gets GONE")
{
    PLAY(scene_cancelled);
}

/* A11.1: the owner polls and decides. In :cluster it has the capability for that. */

struct polled {
    janus_actor  actor;
    janus_status wanted;
};

static int64_t act_check(struct self *self, janus_letter *letter, const struct line *line)
{
    for (int i = 0; i < 1500; i++) {
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
    }
    return act_note(self, letter, line);
}

static int64_t spend_one(void *argument)
{
    const struct polled *polled = argument;
    MUST_EQ(request(polled->actor, act_check, NULL, 0, NULL), polled->wanted);
    return 0;
}

static janus_task_id poll(void)
{
    janus_task_id child;
    while ((child = janus_supervisor_poll_exhausted()) == 0) MUST_EQ(janus_yield(), JANUS_OK);
    return child;
}

enum { POLL_RECHARGE, POLL_IGNORE, POLL_CANCEL, POLL_RESTART, POLLS };

static void decide_polled(janus_supervisor *stage, janus_actor actor, janus_task_id child, int how)
{
    const janus_cap own = {0};
    MUST_EQ(look(actor).task, child);
    MUST_EQ(janus_supervisor_poll_exhausted(), 0); /* it is reported once */
    if (how == POLL_IGNORE) play_out();
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_RUNNING);
    if (how == POLL_RECHARGE || how == POLL_IGNORE) {
        MUST_EQ(janus_budget_recharge_child(child, janus_budget_of(2000, 0, 0, 0, 0), &own), 0);
    } else {
        MUST_EQ(janus_supervisor_stop_child(stage, actor), JANUS_OK);
        if (how == POLL_RESTART) MUST_EQ(janus_supervisor_start_child(stage, actor), JANUS_OK);
    }
}

static int64_t scene_polls(void *argument)
{
    (void)argument;
    for (int how = 0; how < POLLS; how++) {
        struct role       role = {0};
        janus_status      ended;
        janus_supervisor *stage = NULL;
        MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.polls = true), &stage), JANUS_OK);
        struct polled polled = {ADD(stage, .id = "a", .argument = &role,
                                    .stop_within_ns = JANUS_NO_TIME,
                                    .options = JANUS_ACTOR_OPTIONS(.budget = &little)),
                                how < POLL_CANCEL ? JANUS_OK : JANUS_GONE};
        JANUS_NURSERY(n, ended)
        {
            MUST_EQ(janus_spawn(n, spend_one, &polled), JANUS_OK);
            decide_polled(stage, polled.actor, poll(), how);
        }
        MUST_EQ(ended, JANUS_OK);
        MUST_EQ(look(polled.actor).incarnation, how == POLL_RESTART ? 2 : 1);
        MUST_EQ(look(polled.actor).state,
                how == POLL_CANCEL ? JANUS_ACTOR_STATE_EMPTY : JANUS_ACTOR_STATE_RUNNING);
        MUST_EQ(role.logged, how < POLL_CANCEL ? 1 : 0);
        close_stage(stage);
    }
    return 0;
}

TEST("an owner that polls recharges an exhausted actor, lets it wait, cancels it, or renews it")
{
    static const janus_scheduler_options cluster = {
        .struct_bytes = sizeof cluster, .profile = JANUS_PROFILE_CLUSTER, .turn_ns = RIG_TURN_NS};
    PLAY(scene_polls, .panics = true, .scheduler = &cluster);
}

static int64_t scene_allowance(void *argument)
{
    struct role         role = {0};
    uint64_t            begin = janus_now_ns();
    janus_actor_options options = {.struct_bytes = sizeof options, .budget = &little};
    janus_supervisor   *stage = open_pool(NULL);
    options.allowance.amount = janus_budget_of(500, 0, 0, 20, 0);
    options.allowance.period_ns = JANUS_SECONDS;
    janus_actor actor = ADD(stage, .argument = &role, .options = &options);
    (void)argument;
    MUST_EQ(request(actor, act_ops, NULL, 2400, NULL), JANUS_OK);
    /* 1000 at first, then 500 for each second in which it runs out. */
    MUST(janus_now_ns() - begin >= 2 * JANUS_SECONDS);
    MUST(janus_now_ns() - begin <= 4 * JANUS_SECONDS);
    LOGGED(&role, 2400);
    MUST_EQ(role.starts, 1);
    close_stage(stage);
    return 0;
}

TEST("an allowance refills an exhausted actor once in a period")
{
    PLAY(scene_allowance, .timed = true);
}

/* The budget of one message. */

static const janus_budget much = {30000, 1 << 20, 0, 500, 10};
static const janus_budget for_one = {300, 1 << 20, 0, 20, 10};

#define LIMITED JANUS_ACTOR_OPTIONS(.budget = &much, .message_budget = &for_one)

static int64_t scene_poison(void *argument)
{
    struct role       role = {0};
    struct door       gate;
    janus_supervisor *stage = open_pool(NULL);
    janus_actor       actor = ADD(stage, .argument = &role, .options = LIMITED);
    (void)argument;
    door_init(&gate);
    tell(actor, act_door, &gate, 1);
    await_inside(&gate);
    tell(actor, act_ops, NULL, 10);
    tell(actor, act_ops, NULL, 5000); /* the poison */
    tell(actor, act_ops, NULL, 20);
    janus_event_set(&gate.open);
    MUST_EQ(settle(actor), 0);
    LOGGED(&role, 1, 10, 20);
    MUST_EQ(role.starts, 2);
    janus_actor_info info = look(actor);
    MUST_EQ(info.last.kind, JANUS_END_KIND_EXHAUSTED);
    MUST_EQ(info.last.lacks, JANUS_COMPONENT_OPS);
    MUST_EQ(info.failures, 1);
    MUST_EQ(request(actor, act_ops, NULL, 5000, NULL), JANUS_RESTARTED);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(close_stage(stage).dead, 0);
    MUST_EQ(role.ends, 1); /* terminate does not run after an exhaustion */
    return 0;
}

TEST("a message that needs more than message_budget fails alone; its neighbours are handled")
{
    PLAY(scene_poison);
}

static int64_t scene_each_message(void *argument)
{
    struct role       role = {0};
    janus_supervisor *stage = open_pool(NULL);
    janus_actor       actor = ADD(stage, .argument = &role, .options = LIMITED);
    (void)argument;
    for (int i = 0; i < 20; i++) tell(actor, act_ops, NULL, 250);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(role.logged, 20);
    MUST_EQ(role.starts, 1);
    close_stage(stage);
    return 0;
}

TEST("each message has the whole message_budget") { PLAY(scene_each_message); }

static int64_t scene_message_budget_alone(void *argument)
{
    struct role       role = {0};
    janus_supervisor *stage = open_stage(); /* no pool */
    (void)argument;
    MUST_EQ(janus_supervisor_add(
                stage,
                JANUS_CHILD(.behaviour = &player, .argument = &role,
                            .options = JANUS_ACTOR_OPTIONS(.message_budget = &for_one)),
                NULL),
            JANUS_INVALID);
    close_stage(stage);
    return 0;
}

TEST("a message_budget without a budget or a pool is refused") { PLAY(scene_message_budget_alone); }

/* Pools. */

/* Two exhaustions are too many, but what the pool pays does not count. */
static int64_t scene_portions(void *argument)
{
    struct role       role = {0};
    janus_supervisor *stage = NULL;
    (void)argument;
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.budget = &pool, .max_exhaustions = 1),
                                  &stage),
            JANUS_OK);
    janus_actor actor = ADD(stage, .argument = &role);
    MUST_EQ(request(actor, act_ops, NULL, 50000, NULL), JANUS_OK);
    MUST_EQ(request(actor, act_ops, NULL, 60000, NULL), JANUS_GONE); /* the pool is empty */
    MUST_EQ(role.starts, 1);
    MUST_EQ(janus_supervisor_end(stage, NULL), JANUS_BUDGET_EXHAUSTED);
    return 0;
}

TEST("a busy actor draws from its pool until the pool is empty") { PLAY(scene_portions); }

/* A boss that always grants more than the pool has. */
static janus_verdict grant_all(void *argument, const janus_exhausted *child, janus_budget *grant)
{
    int *calls = argument;
    MUST(strcmp(child->name, "spender") == 0);
    ++*calls;
    *grant = janus_budget_of(UINT64_MAX, 0, 0, 0, 0);
    return JANUS_VERDICT_RECHARGE;
}

static int64_t scene_grant_all(void *argument)
{
    int               calls = 0;
    struct role       role = {0};
    janus_supervisor *stage = NULL;
    (void)argument;
    MUST_EQ(
        janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.budget = &pool, .on_exhausted = grant_all,
                                                       .on_exhausted_argument = &calls),
                              &stage),
        JANUS_OK);
    janus_actor actor = ADD(stage, .id = "spender", .argument = &role);
    MUST_EQ(request(actor, act_ops, NULL, 80000, NULL), JANUS_OK);
    MUST_EQ(calls, 1); /* it got the rest of the pool */
    MUST_EQ(request(actor, act_ops, NULL, 80000, NULL), JANUS_GONE);
    MUST_EQ(calls, 2);
    MUST_EQ(janus_supervisor_end(stage, NULL), JANUS_BUDGET_EXHAUSTED);
    return 0;
}

TEST("a recharge gives what the pool has; if that is nothing, the child ends and does not wait")
{
    PLAY(scene_grant_all);
}

static const janus_budget for_large = {20000, 1 << 20, 0, 100, 10};

static int64_t scene_large_message(void *argument)
{
    struct role       role = {0};
    janus_supervisor *stage = open_pool(NULL);
    janus_actor       actor =
        ADD(stage, .argument = &role, .options = JANUS_ACTOR_OPTIONS(.message_budget = &for_large));
    (void)argument;
    for (int i = 0; i < 3; i++) MUST_EQ(request(actor, act_ops, NULL, 19000, NULL), JANUS_OK);
    MUST_EQ(role.starts, 1);
    MUST_EQ(request(actor, act_ops, NULL, 21000, NULL), JANUS_RESTARTED);
    MUST_EQ(settle(actor), 0);
    janus_actor_info info = look(actor);
    MUST_EQ(info.last.kind, JANUS_END_KIND_EXHAUSTED);
    MUST_EQ(info.last.lacks, JANUS_COMPONENT_OPS);
    close_stage(stage);
    return 0;
}

TEST("a message may use its whole message_budget, also if the actor has to draw it from the pool")
{
    PLAY(scene_large_message);
}

/* Each refill is 2000 ops, and the limit of a letter lies in the middle of the second. */
static int64_t scene_refill_in_message(void *argument)
{
    static const janus_budget most = {3500, 1 << 20, 0, 100, 10};
    struct boss               boss = {.verdict = JANUS_VERDICT_RECHARGE, .times = 1000};
    struct role               role = {0};
    janus_supervisor         *stage = open_pool(&boss);
    janus_actor               actor =
        ADD(stage, .argument = &role,
            .options = JANUS_ACTOR_OPTIONS(.budget = &little, .message_budget = &most));
    (void)argument;
    MUST_EQ(request(actor, act_ops, NULL, 3300, NULL), JANUS_OK);
    MUST_EQ(request(actor, act_ops, NULL, 3300, NULL), JANUS_OK); /* with what was above */
    MUST(boss.calls >= 3);
    MUST(boss.calls <= 4);
    MUST_EQ(role.starts, 1);
    MUST_EQ(request(actor, act_ops, NULL, 3700, NULL), JANUS_RESTARTED);
    MUST(boss.calls <= 7); /* a letter above its limit asks for nothing more */
    MUST_EQ(settle(actor), 0);
    MUST_EQ(look(actor).last.kind, JANUS_END_KIND_EXHAUSTED);
    close_stage(stage);
    return 0;
}

TEST("a refill in a handler does not raise message_budget") { PLAY(scene_refill_in_message); }

static int64_t scene_part_of_allowance(void *argument)
{
    const janus_budget  dry = {100000, UINT64_C(10) << 20, 100, 1000, 0}; /* no syscalls */
    struct role         role = {0};
    janus_supervisor   *stage = NULL;
    janus_actor_options options = {.struct_bytes = sizeof options, .budget = &little};
    options.allowance.amount = janus_budget_of(500, 0, 0, 20, 10);
    options.allowance.period_ns = JANUS_MS;
    (void)argument;
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.budget = &dry), &stage), JANUS_OK);
    janus_actor actor = ADD(stage, .argument = &role, .options = &options);
    MUST_EQ(request(actor, act_ops, NULL, 2400, NULL), JANUS_OK);
    MUST_EQ(role.starts, 1);
    close_stage(stage);
    return 0;
}

TEST("an allowance gives what the pool has, if the pool lacks another component")
{
    PLAY(scene_part_of_allowance, .timed = true);
}

static int64_t scene_too_often(void *argument)
{
    struct role         role = {0};
    janus_supervisor   *stage = NULL;
    janus_actor_options options = {.struct_bytes = sizeof options, .budget = &little};
    options.allowance.amount = janus_budget_of(500, 0, 0, 20, 0);
    options.allowance.period_ns = JANUS_MS;
    (void)argument;
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.budget = &pool, .max_exhaustions = 5),
                                  &stage),
            JANUS_OK);
    janus_actor actor =
        ADD(stage, .argument = &role, .restart = JANUS_RESTART_TEMPORARY, .options = &options);
    MUST_EQ(request(actor, act_ops, NULL, 3300, NULL), JANUS_OK); /* five refills */
    MUST_EQ(request(actor, act_ops, NULL, 1000, NULL), JANUS_GONE);
    janus_end end = await_end(actor);
    MUST_EQ(end.kind, JANUS_END_KIND_EXHAUSTED);
    MUST_EQ(end.lacks, JANUS_COMPONENT_OPS);
    close_stage(stage);
    return 0;
}

TEST("a child that is exhausted more than max_exhaustions times in a period has failed")
{
    PLAY(scene_too_often, .timed = true);
}

/* Prices. */

static int64_t act_measure(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor  other = *(janus_actor *)line->argument;
    janus_budget before = janus_budget_get_current();
    MUST_EQ(say(other, act_add, NULL, 1), JANUS_OK);
    janus_budget after = janus_budget_get_current();
    note(self, (int64_t)(before.ops - after.ops));
    note(self, (int64_t)(before.channel_ops - after.channel_ops));
    answer(letter, 0);
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_report(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_budget left = janus_budget_get_current();
    (void)line;
    note(self, (int64_t)left.ops);
    note(self, (int64_t)left.channel_ops);
    answer(letter, 0);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_prices(void *argument)
{
    struct role       role = {0}, sink = {0};
    janus_supervisor *stage = open_pool(NULL);
    janus_actor       other =
        ADD(stage, .argument = &sink, .options = JANUS_ACTOR_OPTIONS(.budget = &much));
    janus_actor actor =
        ADD(stage, .argument = &role, .options = JANUS_ACTOR_OPTIONS(.budget = &much));
    (void)argument;
    MUST_EQ(request(actor, act_measure, &other, 0, NULL), JANUS_OK);
    LOGGED(&role, 1, 1);
    MUST_EQ(request(other, act_report, NULL, 0, NULL), JANUS_OK);
    for (int i = 0; i < 10; i++) tell(other, act_add, NULL, 0); /* ten that do nothing else */
    MUST_EQ(request(other, act_report, NULL, 0, NULL), JANUS_OK);
    MUST_EQ(sink.log[1] - sink.log[3], 11); /* ten, and the second report */
    MUST(sink.log[0] - sink.log[2] >= 11);
    MUST(sink.log[0] - sink.log[2] <= 14); /* the reply may cost a little */
    close_stage(stage);
    return 0;
}

TEST("a message costs one op and one channel operation, of its sender and of its receiver")
{
    PLAY(scene_prices);
}

/* Spent is spent. */

static int64_t act_ops_and_fail(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)letter;
    note(self, (int64_t)janus_budget_get_current().ops);
    for (int i = 0; i < line->number; i++) MUST_EQ(janus_check(), JANUS_OK);
    return -100;
}

static int64_t scene_spent(void *argument)
{
    struct role       role = {0};
    janus_supervisor *stage = open_pool(NULL);
    janus_actor       actor =
        ADD(stage, .argument = &role, .options = JANUS_ACTOR_OPTIONS(.budget = &much));
    (void)argument;
    for (int i = 0; i < 5; i++) tell(actor, act_ops_and_fail, NULL, 1000);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(role.starts, 6);
    for (int i = 1; i < 5; i++) {
        int64_t spent = role.log[i - 1] - role.log[i];
        MUST(spent >= 1000);
        MUST(spent <= 1200); /* the pool pays the price of a restart, the actor its own steps */
    }
    close_stage(stage);
    return 0;
}

TEST("what an incarnation spent stays spent: the next has what is left") { PLAY(scene_spent); }

/* SPDX-License-Identifier: MIT */
/* What a supervisor writes to stderr about children that fail. */
#include "play.h"

enum { FAILURES = 500 };

struct secret {
    char text[32];
};

static int64_t fail_with_secret(void *state, janus_letter *letter)
{
    (void)state;
    return letter->message != NULL ? -4711 : JANUS_ACTOR_GO_ON;
}

static const janus_behaviour teller = {.struct_bytes = sizeof teller,
                                       .name = "teller",
                                       .message_bytes = sizeof(struct secret),
                                       .handle = fail_with_secret};

struct plan {
    int failures;
};

static void await_incarnation(janus_actor actor, uint32_t incarnation)
{
    janus_actor_info info = JANUS_ACTOR_INFO();
    do {
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_actor_inspect(actor, &info), JANUS_OK);
    } while (info.incarnation < incarnation || info.state != JANUS_ACTOR_STATE_RUNNING);
}

static int64_t fail_some_times(void *argument)
{
    const struct plan  *plan = argument;
    const struct secret secret = {"hunter2"};
    const janus_budget  budget = janus_budget_actor_default();
    janus_supervisor   *supervisor = NULL;
    janus_actor         actor = {{0}};
    CHECK_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.name = "bank", .period_ns = AN_HOUR,
                                                            .max_restarts = FAILURES + 1),
                                   &supervisor),
             JANUS_OK);
    CHECK_EQ(janus_supervisor_add(supervisor,
                                  JANUS_CHILD(.id = "till", .behaviour = &teller,
                                              .options = JANUS_ACTOR_OPTIONS(.budget = &budget)),
                                  &actor),
             JANUS_OK);
    for (int i = 0; i < plan->failures; i++) {
        CHECK_EQ(janus_cast(actor, &secret), JANUS_OK);
        await_incarnation(actor, (uint32_t)i + 2);
    }
    CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    return 0;
}

static void run_plan(void *argument)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), fail_some_times, argument, NULL),
             JANUS_OK);
}

/* What a process writes whose actor fails so often. */
static const char *report_of(int failures)
{
    int         status;
    struct plan plan = {.failures = failures};
    const char *text = harness_child(run_plan, &plan, &status);
    if (status != 0) fprintf(stderr, "%s", text);
    CHECK_EQ(status, 0);
    return text;
}

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text != '\0'; text++) lines += *text == '\n';
    return lines;
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        if (length > longest) longest = length;
        text += length + (text[length] == '\n');
    }
    return longest;
}

/* S51. */

TEST("a failure makes one line with behaviour, place, reason, restarts and budget")
{
    RIG_REAL("the engine writes no reports");
    const char *text = report_of(1);
    printf("# %s", text);
    CHECK_EQ(count_lines(text), 1);
    CHECK(longest_line(text) < 512);
    CHECK(strstr(text, "till") != NULL);
    CHECK(strstr(text, "teller") != NULL);
    CHECK(strstr(text, "failed") != NULL);
    CHECK(strstr(text, "-4711") != NULL);
    CHECK(strstr(text, "restart") != NULL);
    CHECK(strstr(text, "ops") != NULL); /* what it has spent */
}

/* A child without ops, under a supervisor that allows one restart. */

static int64_t loop(void *state, janus_letter *letter)
{
    (void)state;
    while (letter->message != NULL && janus_check() == JANUS_OK) continue;
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour looper = {.struct_bytes = sizeof looper,
                                       .name = "looper",
                                       .message_bytes = sizeof(struct secret),
                                       .handle = loop};

static janus_decision end_all(void *argument, const janus_child_event *event, uint64_t *delay_ns)
{
    (void)delay_ns;
    (void)event;
    return *(const bool *)argument ? JANUS_DECISION_GIVE_UP : JANUS_DECISION_DEFAULT;
}

static int64_t give_up(void *argument)
{
    const struct secret secret = {"hunter2"};
    const janus_budget  budget = JANUS_BUDGET(.ops = 1000);
    janus_supervisor   *supervisor = NULL;
    janus_actor         actor = {{0}};
    CHECK_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.name = "bank", .period_ns = AN_HOUR,
                                                            .on_end = end_all,
                                                            .on_end_argument = argument),
                                   &supervisor),
             JANUS_OK);
    CHECK_EQ(janus_supervisor_add(supervisor,
                                  JANUS_CHILD(.id = "till", .behaviour = &looper,
                                              .options = JANUS_ACTOR_OPTIONS(.budget = &budget)),
                                  &actor),
             JANUS_OK);
    CHECK_EQ(janus_cast(actor, &secret), JANUS_OK);
    JANUS_IGNORE(janus_cast(actor, &secret));
    CHECK_EQ(janus_supervisor_wait(supervisor, 0), JANUS_OK);
    CHECK(janus_supervisor_end(supervisor, NULL) != JANUS_OK);
    return 0;
}

static void run_give_up(void *argument)
{
    CHECK_EQ(janus_run(NULL, give_up, argument, NULL), JANUS_OK);
}

TEST("the line of the failure for which a supervisor gives up says so, and what was short")
{
    RIG_REAL("the engine writes no reports");
    int         status;
    bool        decides = false;
    const char *text = harness_child(run_give_up, &decides, &status);
    printf("# %s", text);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, "exhausted (no ops left, incarnation 1, 1000 ops spent)") != NULL);
    CHECK(strstr(text, "gives up, with JANUS_TOO_OFTEN: max_restarts is 1 within 3600000 ms") !=
          NULL);
    CHECK(longest_line(text) < 512);
    decides = true;
    text = harness_child(run_give_up, &decides, &status);
    CHECK_EQ(status, 0);
    CHECK_EQ(count_lines(text), 1);
    CHECK(strstr(text, "gives up, as on_end decided") != NULL);
}

TEST("a report never contains the message")
{
    RIG_REAL("the engine writes no reports");
    const char *text = report_of(3);
    CHECK(count_lines(text) > 0);
    CHECK(strstr(text, "hunter2") == NULL);
    CHECK(strstr(text, "68756e746572") == NULL); /* nor in hexadecimal */
}

TEST("many failures make few lines")
{
    RIG_REAL("the engine writes no reports");
    const char *text = report_of(FAILURES);
    CHECK(count_lines(text) >= 1);
    CHECK(count_lines(text) <= 25);
}

TEST("children that end normally, or are stopped, make no line")
{
    RIG_REAL("the engine writes no reports");
    CHECK_STR(report_of(0), "");
}

/* A11.15: of dead letters only the first of an actor makes a line. */

static int64_t drop_many(void *argument)
{
    struct solo solo = {0};
    (void)argument;
    OPEN_SOLO(&solo, .id = "till",
              .options =
                  JANUS_ACTOR_OPTIONS(.max_messages = 2, .overflow = JANUS_OVERFLOW_DROP_OLDEST));
    keep_busy(&solo, 1);
    for (int i = 0; i < 100; i++) tell(solo.actor, act_add, NULL, 1);
    MUST_EQ(look(solo.actor).dead, 98);
    let_go(&solo);
    int64_t sum = settle(solo.actor);
    MUST(sum == 2 || sum == 1); /* the call may have dropped one, too */
    close_stage(solo.stage);
    return 0;
}

static void run_drop(void *argument)
{
    CHECK_EQ(janus_run(NULL, drop_many, argument, NULL), JANUS_OK);
}

TEST("the first dead letter of an actor makes a line, and the others are counted")
{
    RIG_REAL("the engine writes no reports");
    int         status;
    const char *text = harness_child(run_drop, NULL, &status);
    printf("# %s", text);
    CHECK_EQ(status, 0);
    CHECK_EQ(count_lines(text), 1);
    CHECK(strstr(text, "player \"till\"") != NULL);
    CHECK(strstr(text, "its first dead letter") != NULL);
}

/* A11.13: native code that nobody can end. */

struct native {
    atomic_bool inside, leave;
};

static int64_t loop_for_ever(struct self *self, janus_letter *letter, const struct line *line)
{
    struct native *native = line->argument;
    (void)self, (void)letter;
    atomic_store(&native->inside, true);
    while (!atomic_load(&native->leave)) continue; /* no check, no call */
    return JANUS_ACTOR_GO_ON;
}

static int64_t stop_native(void *argument)
{
    struct role       roles[2] = {0};
    struct native     native = {.leave = false};
    janus_supervisor *stage = open_stage();
    janus_actor       deaf = ADD(stage, .id = "deaf", .argument = &roles[0]);
    janus_actor       other = ADD(stage, .id = "other", .argument = &roles[1]);
    (void)argument;
    tell(deaf, loop_for_ever, &native, 0);
    while (!atomic_load(&native.inside)) MUST_EQ(janus_yield(), JANUS_OK);
    MUST_EQ(janus_actor_stop(deaf, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_OK);
    MUST_EQ(janus_supervisor_stop_child(stage, deaf), JANUS_STUCK);
    MUST_EQ(say(deaf, act_add, NULL, 1), JANUS_CLOSED);
    count_up(other);
    MUST_EQ(settle(other), 1);
    MUST_EQ(look_in(stage).stuck, 1);
    atomic_store(&native.leave, true);
    close_stage(stage);
    return 0;
}

static void run_native(void *argument)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 3), stop_native, argument, NULL),
             JANUS_OK);
}

TEST("a line names native code without checks as stuck, a second after AT_ONCE")
{
    RIG_REAL("native code");
    int         status;
    const char *text = harness_child(run_native, NULL, &status);
    printf("# %s", text);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, "player \"deaf\"") != NULL);
    CHECK(strstr(text, "is stuck") != NULL);
}

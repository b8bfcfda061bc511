/* SPDX-License-Identifier: MIT */
/* Actors in every state when the scope around them ends: all end, and every terminate that may run
 * did. A11.17. */
#include "play.h"

#include <stdatomic.h>
#include <sys/wait.h>

/* A town with an actor in each state. */
enum {
    AT_REST,
    WITH_MAIL,
    IN_HANDLER, /* waits for ever */
    IN_CALL,    /* calls the one in the handler */
    IN_CAST,    /* waits for room */
    WITH_ASIDE, /* has put messages aside */
    WITH_TIMER,
    SUSPENDED,
    DELAYED,  /* failed, and waits for its restart */
    KEEPING,  /* has a kept reply, whose caller waits */
    SLEEPING, /* its handler sleeps */
    STATES
};

struct town {
    struct role       roles[STATES];
    janus_actor       actors[STATES];
    struct door       gates[STATES];
    janus_supervisor *stage;
    janus_kept_reply  kept;
    int               asker_ended;
};

static int64_t act_for_ever(struct self *self, janus_letter *letter, const struct line *line)
{
    struct door *gate = line->argument;
    (void)self, (void)letter;
    janus_event_set(&gate->inside);
    JANUS_IGNORE(janus_event_wait(&gate->open));
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_call_for_ever(struct self *self, janus_letter *letter, const struct line *line)
{
    struct town *town = line->argument;
    (void)self, (void)letter;
    janus_event_set(&town->gates[IN_CALL].inside);
    JANUS_IGNORE(request(town->actors[IN_HANDLER], act_add, NULL, 1, NULL));
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_cast_for_ever(struct self *self, janus_letter *letter, const struct line *line)
{
    struct town *town = line->argument;
    (void)self, (void)letter;
    janus_event_set(&town->gates[IN_CAST].inside);
    for (int i = 0; i < 200; i++) {
        if (say(town->actors[IN_HANDLER], act_add, NULL, 1) != JANUS_OK) break;
    }
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_put_aside(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter, (void)line;
    return JANUS_ACTOR_LATER;
}

static int64_t act_timer(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter, (void)line;
    MUST_EQ(janus_actor_after(3600 * JANUS_SECONDS, 1, NULL), JANUS_OK);
    MUST_EQ(janus_actor_idle_after(3600 * JANUS_SECONDS, 1), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_keep(struct self *self, janus_letter *letter, const struct line *line)
{
    struct town *town = line->argument;
    (void)self;
    MUST_EQ(janus_reply_keep(letter, &town->kept), JANUS_OK);
    janus_event_set(&town->gates[KEEPING].inside);
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_nap(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter;
    janus_event_set(line->argument);
    JANUS_IGNORE(janus_sleep(3600 * JANUS_SECONDS));
    return JANUS_ACTOR_GO_ON;
}

static int64_t ask_for_ever(void *argument)
{
    struct town *town = argument;
    janus_status status = request(town->actors[KEEPING], act_keep, town, 0, NULL);
    MUST(status == JANUS_GONE || status == JANUS_CANCELLED || status == JANUS_STALE ||
         status == JANUS_CLOSED);
    town->asker_ended = 1;
    return 0;
}

static void open_town(struct town *town)
{
    memset(town, 0, sizeof *town);
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.name = "town", .max_restarts = 1000,
                                                           .delay_ns = 3600 * JANUS_SECONDS),
                                  &town->stage),
            JANUS_OK);
    for (int i = 0; i < STATES; i++) {
        door_init(&town->gates[i]);
        town->actors[i] =
            ADD(town->stage, .argument = &town->roles[i], .stop_within_ns = 3 * JANUS_SECONDS,
                .options = JANUS_ACTOR_OPTIONS(.max_messages = 4));
    }
}

static void fill_town(struct town *town)
{
    tell(town->actors[IN_HANDLER], act_for_ever, &town->gates[IN_HANDLER], 0);
    await_inside(&town->gates[IN_HANDLER]);
    tell(town->actors[IN_CALL], act_call_for_ever, town, 0);
    await_inside(&town->gates[IN_CALL]);
    tell(town->actors[IN_CAST], act_cast_for_ever, town, 0);
    await_inside(&town->gates[IN_CAST]);
    tell(town->actors[WITH_TIMER], act_timer, NULL, 0);
    for (int i = 0; i < 3; i++) tell(town->actors[WITH_ASIDE], act_put_aside, NULL, i);
    MUST_EQ(janus_actor_suspend(town->actors[SUSPENDED]), JANUS_OK);
    for (int i = 0; i < 2; i++) tell(town->actors[SUSPENDED], act_note, NULL, i);
    tell(town->actors[DELAYED], act_return, NULL, -100);
    tell(town->actors[SLEEPING], act_nap, &town->gates[SLEEPING].inside, 0);
    await_inside(&town->gates[SLEEPING]);
    for (int i = 0; i < 3; i++) tell(town->actors[WITH_MAIL], act_note, NULL, i);
}

/* Every incarnation that started has ended by terminate: none panicked. */
static void check_all_ended(const struct town *town)
{
    for (int i = 0; i < STATES; i++) MUST_EQ(town->roles[i].ends, town->roles[i].starts);
    for (int i = 0; i < STATES; i++) MUST(town->roles[i].starts >= 1);
}

/* Ended by its supervisor. */

static int64_t scene_end(void *argument)
{
    struct town             town;
    janus_status            ended;
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    (void)argument;
    open_town(&town);
    JANUS_NURSERY(n, ended)
    {
        MUST_EQ(janus_spawn(n, ask_for_ever, &town), JANUS_OK);
        await_inside(&town.gates[KEEPING]);
        fill_town(&town);
        /* The asker is in an inner scope: it must end first. */
        MUST_EQ(janus_actor_stop(town.actors[KEEPING], JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
    }
    MUST_EQ(ended, JANUS_OK);
    uint64_t begin = janus_now_ns();
    MUST_EQ(janus_supervisor_end(town.stage, &result), JANUS_OK);
    MUST(janus_now_ns() - begin < 60 * JANUS_SECONDS);
    MUST_EQ(result.sent, result.handled + result.returned + result.dead);
    MUST_EQ(town.asker_ended, 1);
    check_all_ended(&town);
    return 0;
}

TEST("a supervisor ends with actors in every state, and each terminate has run")
{
    PLAY(scene_end, .timed = true, .schedules = 500);
}

/* Ended together. */

static int64_t scene_end_together(void *argument)
{
    struct town             town;
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    (void)argument;
    memset(&town, 0, sizeof town);
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.stop_together = true), &town.stage),
            JANUS_OK);
    for (int i = 0; i < 5; i++) {
        door_init(&town.gates[i]);
        town.actors[i] =
            ADD(town.stage, .argument = &town.roles[i], .stop_within_ns = 3 * JANUS_SECONDS);
        tell(town.actors[i], act_for_ever, &town.gates[i], 0);
        await_inside(&town.gates[i]);
    }
    uint64_t begin = janus_now_ns();
    MUST_EQ(janus_supervisor_end(town.stage, &result), JANUS_OK);
    MUST(janus_now_ns() - begin >= 3 * JANUS_SECONDS);
    MUST(janus_now_ns() - begin < 6 * JANUS_SECONDS);
    for (int i = 0; i < 5; i++) MUST_EQ(town.roles[i].ends, 1);
    return 0;
}

TEST("actors that hang are cancelled after their time, all at once with stop_together")
{
    PLAY(scene_end_together, .timed = true);
}

/* Cancelled from outside. */

static struct town cancelled_town;
static janus_event town_built;

static int64_t live_in_town(void *argument)
{
    struct town *town = argument;
    open_town(town);
    fill_town(town);
    janus_event_set(&town_built);
    JANUS_IGNORE(janus_event_wait(&town->gates[AT_REST].open)); /* CANCELLED */
    MUST_EQ(janus_supervisor_end(town->stage, NULL), JANUS_CANCELLED);
    return JANUS_CANCELLED;
}

static int64_t scene_cancel(void *argument)
{
    struct town *town = &cancelled_town;
    janus_status ended;
    (void)argument;
    janus_event_init(&town_built, JANUS_WAKER_TASKS, "built");
    JANUS_NURSERY(n, ended, .owner_apart = true)
    {
        MUST_EQ(janus_spawn(n, live_in_town, town), JANUS_OK);
        MUST_EQ(janus_event_wait(&town_built), JANUS_OK);
        MUST_EQ(janus_nursery_cancel(n), JANUS_OK);
    }
    MUST_EQ(ended, JANUS_CANCELLED);
    check_all_ended(town);
    for (int i = 0; i < STATES; i++) {
        MUST(town->roles[i].last.kind == JANUS_END_KIND_CANCELLED ||
             town->roles[i].last.kind == JANUS_END_KIND_FAILED ||
             town->roles[i].last.kind == JANUS_END_KIND_STOPPED);
    }
    return 0;
}

TEST("a cancelled nursery ends the actors below it in every state")
{
    PLAY(scene_cancel, .timed = true, .schedules = 500);
}

static int64_t scene_deadline(void *argument)
{
    struct town *town = &cancelled_town;
    janus_status ended;
    (void)argument;
    janus_event_init(&town_built, JANUS_WAKER_TASKS, "built");
    JANUS_NURSERY(n, ended, .owner_apart = true, .deadline_ns = janus_now_ns() + JANUS_SECONDS)
    {
        MUST_EQ(janus_spawn(n, live_in_town, town), JANUS_OK);
    }
    MUST_EQ(ended, JANUS_CANCELLED);
    check_all_ended(town);
    return 0;
}

TEST("the deadline of a nursery ends the actors below it in every state")
{
    PLAY(scene_deadline, .timed = true, .schedules = 500);
}

/* A deadline at any moment: some actors never came to start. */

static uint64_t moment;

static int64_t build_in_time(void *argument)
{
    struct role       roles[4] = {0};
    janus_supervisor *stage = NULL;
    (void)argument;
    janus_status status = janus_supervisor_open(NULL, &stage);
    if (status != JANUS_OK) return 0;
    for (int i = 0; i < 4 && status == JANUS_OK; i++) {
        janus_actor actor;
        status = janus_supervisor_add(
            stage, JANUS_CHILD(.behaviour = &player, .argument = &roles[i]), &actor);
        if (status == JANUS_OK) status = say(actor, act_note, NULL, i);
        if (status == JANUS_OK) status = janus_sleep(JANUS_MS);
    }
    janus_status ended = janus_supervisor_end(stage, NULL);
    MUST(ended == JANUS_OK || ended == JANUS_CANCELLED);
    for (int i = 0; i < 4; i++) MUST_EQ(roles[i].ends, roles[i].starts);
    return 0;
}

static int64_t scene_any_moment(void *argument)
{
    janus_status ended;
    (void)argument;
    JANUS_NURSERY(n, ended, .owner_apart = true, .deadline_ns = janus_now_ns() + moment)
    {
        janus_status status = janus_spawn(n, build_in_time, NULL);
        MUST(status == JANUS_OK || status == JANUS_CLOSED);
    }
    MUST(ended == JANUS_OK || ended == JANUS_CANCELLED);
    return 0;
}

TEST("a deadline at any moment of starting and sending leaves no actor behind")
{
    for (moment = 1; moment < 6 * JANUS_MS; moment += JANUS_MS / 2) {
        PLAY(scene_any_moment, .timed = true, .schedules = 200);
    }
}

/* Stop of the scheduler. */

static atomic_int town_ready;

static int64_t live_until_stop(void *argument)
{
    struct town *town = argument;
    open_town(town);
    fill_town(town);
    atomic_store(&town_ready, 1);
    JANUS_IGNORE(janus_event_wait(&town->gates[AT_REST].open)); /* CANCELLED */
    JANUS_IGNORE(janus_supervisor_end(town->stage, NULL));
    return JANUS_CANCELLED;
}

TEST("a scheduler that is stopped ends actors in every state")
{
    static struct town town;
    janus_scheduler   *scheduler = NULL;
    janus_nursery      root;
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), &scheduler),
             JANUS_OK);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, live_until_stop, &town), JANUS_OK);
    while (!atomic_load(&town_ready)) (void)janus_now_ns();
    CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_CANCELLED);
    check_all_ended(&town);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Exit of the process. */

static void exit_with_town(void *argument)
{
    static struct town town;
    janus_scheduler   *scheduler = NULL;
    janus_nursery      root;
    (void)argument;
    atomic_store(&town_ready, 0);
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), &scheduler),
             JANUS_OK);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, live_until_stop, &town), JANUS_OK);
    while (!atomic_load(&town_ready)) (void)janus_now_ns();
    exit(7);
}

TEST("a process exits with actors in every state")
{
    int status = 0;
    if (JRT_ASAN) SKIP("the leak checker does not look into the table of places");
    (void)harness_child(exit_with_town, NULL, &status);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 7);
}

/* SPDX-License-Identifier: MIT */
/* Trees of supervisors: what climbs up, what comes back, and what cannot hang them. */
#include "play.h"

/* S25. */

/* Three supervisors, one below the other, and a leaf. None of them allows a restart. */
static int64_t fail_at_the_leaf(void *argument)
{
    struct play                    play;
    struct role                    leaf = {.play = &play, .name = 'l'};
    struct role                    beside = {.play = &play, .name = 'b'};
    const janus_child              leaves[] = {*CHILD(&leaf, .id = "leaf"), *CHILD(&beside)};
    const janus_supervisor_options low = {.struct_bytes = sizeof low,
                                          .name = "low",
                                          .max_restarts = JANUS_NO_RESTARTS,
                                          .children = leaves,
                                          .child_count = 2};
    const janus_child              lows = *JANUS_CHILD(.id = "low", .supervisor = &low);
    const janus_supervisor_options middle = {.struct_bytes = sizeof middle,
                                             .name = "middle",
                                             .max_restarts = JANUS_NO_RESTARTS,
                                             .children = &lows,
                                             .child_count = 1};
    (void)argument;
    janus_supervisor *top = play_open(
        &play, JANUS_SUPERVISOR_OPTIONS(.name = "top", .max_restarts = JANUS_NO_RESTARTS));
    (void)add_child(top, JANUS_CHILD(.id = "middle", .supervisor = &middle));
    tell(leaf.self, act_return, NULL, -4242);
    MUST_EQ(janus_supervisor_wait(top, NEVER), JANUS_OK);
    janus_supervisor_result result = play_end(&play, top, JANUS_TOO_OFTEN);
    MUST(result.by_itself);
    MUST_EQ(result.cause.kind, JANUS_END_KIND_FAILED);
    MUST_LOG(&play, "+l+bfl-b");
    return result.cause.error;
}

static int64_t cause_travels_up(void *argument)
{
    MUST_EQ(fail_at_the_leaf(argument), -4242);
    return 0;
}

TEST("the first cause travels up through every supervisor unchanged")
{
    PLAY(cause_travels_up, .panics = true);
}

TEST("the first cause is the result of janus_run")
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        janus_run_result run = JANUS_RUN_RESULT();
        CHECK_EQ(
            janus_run_with(JANUS_SCHEDULER_OPTIONS(.deterministic_seed = seed, .worker_count = 2),
                           fail_at_the_leaf, NULL, &run),
            JANUS_CHILD_FAILED);
        CHECK_EQ(run.result, -4242);
        CHECK_EQ(run.first.error, -4242);
    }
}

/* S41. */

struct stubborn {
    janus_event entered, leave;
};

/* A handler that nobody can end: it waits in a shield. */
static int64_t wait_shielded(void *state, janus_letter *letter)
{
    struct stubborn *stubborn = *(struct stubborn **)state;
    (void)letter;
    janus_shield_begin();
    janus_event_set(&stubborn->entered);
    MUST_EQ(janus_event_wait(&stubborn->leave), JANUS_OK);
    janus_shield_end();
    return JANUS_ACTOR_GO_ON;
}

static int64_t keep_argument(void *state, void *argument)
{
    *(void **)state = argument;
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour stubborn_behaviour = {.struct_bytes = sizeof stubborn_behaviour,
                                                   .name = "stubborn",
                                                   .state_bytes = sizeof(void *),
                                                   .message_bytes = 1,
                                                   .init = keep_argument,
                                                   .handle = wait_shielded};

static int64_t stuck_is_told(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    struct stubborn   stubborn;
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    janus_event_init(&stubborn.entered, JANUS_WAKER_TASKS, "entered");
    janus_event_init(&stubborn.leave, JANUS_WAKER_TASKS, "leave");
    janus_actor actor =
        add_child(supervisor, JANUS_CHILD(.id = "s", .behaviour = &stubborn_behaviour,
                                          .argument = &stubborn, .stop_within_ns = JANUS_NO_TIME));
    janus_actor other = add_child(supervisor, CHILD(&a));
    MUST_EQ(janus_cast(actor, ""), JANUS_OK);
    MUST_EQ(janus_event_wait(&stubborn.entered), JANUS_OK);
    MUST_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_STUCK);
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_STUCK);
    MUST_EQ(look_in(supervisor).stuck, 1);
    MUST_EQ(settle(other), 0); /* the others are unharmed */
    janus_event_set(&stubborn.leave);
    until_state(actor, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(look_in(supervisor).stuck, 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a-a");
    return 0;
}

TEST("stop_child reports a child that does not end as STUCK; the supervisor ends after that child")
{
    PLAY(stuck_is_told, .panics = true);
}

static int64_t let_go_later(void *argument)
{
    MUST_EQ(janus_sleep(play_while()), JANUS_OK);
    janus_event_set(&((struct stubborn *)argument)->leave);
    return 0;
}

static int64_t end_waits_for_stuck(void *argument)
{
    struct play       play;
    struct stubborn   stubborn;
    janus_nursery     around;
    janus_supervisor *supervisor = NULL;
    (void)argument;
    janus_event_init(&stubborn.entered, JANUS_WAKER_TASKS, "entered");
    janus_event_init(&stubborn.leave, JANUS_WAKER_TASKS, "leave");
    MUST_EQ(janus_nursery_open(&around, NULL), JANUS_OK);
    supervisor = play_open(&play, NULL);
    janus_actor actor =
        add_child(supervisor, JANUS_CHILD(.behaviour = &stubborn_behaviour, .argument = &stubborn,
                                          .stop_within_ns = JANUS_NO_TIME));
    MUST_EQ(janus_cast(actor, ""), JANUS_OK);
    MUST_EQ(janus_event_wait(&stubborn.entered), JANUS_OK);
    MUST_EQ(janus_spawn(&around, let_go_later, &stubborn), JANUS_OK);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST(janus_event_is_set(&stubborn.leave)); /* it did not leave the child behind */
    MUST_EQ(janus_nursery_end(&around, NULL), JANUS_OK);
    return 0;
}

TEST("no child outlives its supervisor, not even a STUCK child")
{
    PLAY(end_waits_for_stuck, .panics = true);
}

/* S42. */

static int64_t inner_comes_back(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    const janus_child given[] = {*CHILD(&a, .id = "a"), *CHILD(&b, .id = "b")};
    const janus_supervisor_options inner = {.struct_bytes = sizeof inner,
                                            .max_restarts = JANUS_NO_RESTARTS,
                                            .children = given,
                                            .child_count = 2};
    janus_supervisor              *top = play_open(&play, NULL);
    janus_actor place = add_child(top, JANUS_CHILD(.id = "inner", .supervisor = &inner));
    (void)argument;
    count_up(b.self);
    tell(a.self, act_return, NULL,
         -100); /* that ends the inner supervisor, which is started again */
    play_await(&play, "+b", 2);
    until_state(place, JANUS_ACTOR_STATE_RUNNING);
    MUST_EQ(look(place).incarnation, 2);
    MUST_EQ(settle(a.self), 0);
    MUST_EQ(settle(b.self), 0);
    MUST(same_actor(find(top, "inner"), place));
    janus_supervisor_result result = play_end(&play, top, JANUS_OK);
    MUST_EQ(result.restarts, 1);
    MUST_LOG(&play, "+a+bfa-b+a+b-b-a");
    return 0;
}

TEST("an inner supervisor that ended is started again, with the children it was given")
{
    PLAY(inner_comes_back, .panics = true);
}

/* A task that owns a supervisor, given one child and adding another in its first life. */
struct manager {
    struct role *given, *added;
    atomic_int   lives;
};

static int64_t manage(void *argument)
{
    struct manager   *manager = argument;
    janus_supervisor *supervisor = NULL;
    const janus_child given = *CHILD(manager->given, .id = "given");
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.max_restarts = JANUS_NO_RESTARTS,
                                                           .children = &given, .child_count = 1),
                                  &supervisor),
            JANUS_OK);
    if (atomic_fetch_add(&manager->lives, 1) == 0) {
        (void)add_child(supervisor, CHILD(manager->added));
    }
    JANUS_IGNORE(janus_supervisor_wait(supervisor, NEVER));
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    janus_status            status = janus_supervisor_end(supervisor, &result);
    return status == JANUS_TOO_OFTEN ? result.cause.error : status;
}

static int64_t added_do_not_come_back(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct manager    manager = {.given = &a, .added = &b};
    janus_supervisor *top = play_open(&play, NULL);
    (void)argument;
    (void)add_child(top, JANUS_CHILD(.id = "m", .task = manage, .argument = &manager,
                                     .stop_within_ns = JANUS_NO_TIME));
    play_await(&play, "+b", 1);
    tell(a.self, act_return, NULL, -100);
    play_await(&play, "+a", 2);
    MUST_EQ(settle(a.self), 0);
    janus_supervisor_result result = play_end(&play, top, JANUS_OK);
    MUST_EQ(result.restarts, 1);
    MUST_EQ(play_count(&play, '+', 'a'), 2);
    MUST_EQ(play_count(&play, '+', 'b'), 1);
    return 0;
}

TEST("when a task with a supervisor is started again, children added later do not come back")
{
    PLAY(added_do_not_come_back, .panics = true);
}

/* S45. */

static int64_t name_leads_to_the_new_one(void *argument)
{
    static const janus_actor_options named = {.struct_bytes = sizeof named, .name = "stage.hero"};
    struct play                      play;
    struct role                      a = {.play = &play, .name = 'a'};
    const janus_child                given = *CHILD(&a, .id = "hero", .options = &named);
    const janus_supervisor_options   inner = {.struct_bytes = sizeof inner,
                                              .name = "troupe",
                                              .max_restarts = 1,
                                              .period_ns = AN_HOUR,
                                              .children = &given,
                                              .child_count = 1};
    janus_supervisor                *top = play_open(&play, NULL);
    janus_actor found, place = add_child(top, JANUS_CHILD(.id = "troupe", .supervisor = &inner));
    (void)argument;
    janus_actor before = a.self;
    count_up(before);
    tell(before, act_return, NULL, -100); /* the actor */
    play_await(&play, "+a", 2);
    MUST_EQ(settle(before), 0);
    MUST_EQ(janus_actor_find("stage.hero", &found), JANUS_OK);
    count_up(found);
    MUST_EQ(settle(before), 1);          /* the handle is the same place */
    tell(found, act_return, NULL, -100); /* and with it the supervisor */
    play_await(&play, "+a", 3);
    until_state(place, JANUS_ACTOR_STATE_RUNNING);
    MUST_EQ(look(place).incarnation, 2);
    MUST_EQ(janus_actor_find("stage.hero", &found), JANUS_OK);
    MUST_EQ(settle(found), 0);
    (void)play_end(&play, top, JANUS_OK);
    MUST_EQ(janus_actor_find("stage.hero", &found), JANUS_NOT_FOUND);
    MUST_LOG(&play, "+afa+afa+a-a");
    return 0;
}

TEST("after a restart of the actor, or of its supervisor, the name leads to the new incarnation")
{
    PLAY(name_leads_to_the_new_one, .panics = true);
}

/* S46. */

/* A child that fails, and whose init hangs at the restart. */
static janus_actor hang(struct play *play, struct role *role, janus_supervisor *supervisor)
{
    *role = (struct role){.play = play, .name = 'h', .inits = "ohhho"};
    janus_actor actor =
        add_child(supervisor, CHILD(role, .id = "h", .stop_within_ns = JANUS_NO_TIME));
    tell(actor, act_return, NULL, -100);
    play_await(play, "!h", 1);
    return actor;
}

static int64_t calls_while_init_hangs(void *argument)
{
    struct play       play;
    struct role       h, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 9, .period_ns = AN_HOUR));
    janus_actor actor = hang(&play, &h, supervisor);
    (void)argument;
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_STARTING);
    MUST_EQ(look_in(supervisor).running, 1);
    MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_STARTING);
    MUST_EQ(janus_supervisor_remove_child(supervisor, actor), JANUS_STARTING);
    MUST_EQ(settle(add_child(supervisor, CHILD(&b))), 0); /* with ONE_FOR_ONE others can start */
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_EQ(play_count(&play, '+', 'h'), 1);
    return 0;
}

TEST("while an init hangs at a restart, calls about the child answer STARTING, and end works")
{
    PLAY(calls_while_init_hangs, .panics = true);
}

static int64_t stop_while_init_hangs(void *argument)
{
    struct play       play;
    struct role       h;
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 9, .period_ns = AN_HOUR));
    janus_actor actor = hang(&play, &h, supervisor);
    (void)argument;
    MUST_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(janus_supervisor_remove_child(supervisor, actor), JANUS_OK);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+hfh!h"); /* not tried again */
    return 0;
}

TEST("stop_child ends a restart whose init hangs, and the child is not tried again")
{
    PLAY(stop_while_init_hangs, .panics = true);
}

static int64_t init_takes_too_long(void *argument)
{
    struct play       play;
    struct role       h = {.play = &play, .name = 'h', .inits = "hohh"};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 2, .period_ns = AN_HOUR));
    (void)argument;
    MUST_EQ(janus_supervisor_add(supervisor, CHILD(&h, .start_within_ns = 10 * JANUS_MS), NULL),
            JANUS_DEADLINE);
    MUST_EQ(look_in(supervisor).specified, 0);
    janus_actor actor = {{0}};
    MUST_EQ(janus_supervisor_add(supervisor, CHILD(&h, .start_within_ns = 10 * JANUS_MS), &actor),
            JANUS_OK);
    tell(actor, act_return, NULL, -100);
    MUST_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    (void)play_end(&play, supervisor, JANUS_TOO_OFTEN);
    MUST_LOG(&play, "!h+hfh!h!h");
    return 0;
}

TEST("an init that takes longer than start_within_ns fails, at the first start and at restarts")
{
    PLAY(init_takes_too_long, .panics = true, .timed = true);
}

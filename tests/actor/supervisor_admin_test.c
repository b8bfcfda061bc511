/* SPDX-License-Identifier: MIT */
/* Adding, stopping, starting, removing, listing and counting children. */
#include "play.h"

/* S17. */

static int64_t manages_named(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_actor       again = {{0}}, none = {{0}};
    janus_supervisor *supervisor = play_open(&play, NULL);
    janus_actor       actor = add_child(supervisor, CHILD(&a, .id = "a"));
    (void)argument;
    MUST_EQ(janus_supervisor_add(supervisor, CHILD(&b, .id = "a"), &again), JANUS_EXISTS);
    MUST(same_actor(again, actor));
    MUST_EQ(janus_supervisor_stop_child(supervisor, none), JANUS_STALE);
    MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_STATE);
    MUST_EQ(janus_supervisor_remove_child(supervisor, actor), JANUS_STATE);
    MUST_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    MUST_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_EMPTY);
    again = none;
    MUST_EQ(janus_supervisor_add(supervisor, CHILD(&b, .id = "a"), &again), JANUS_EXISTS);
    MUST(same_actor(again, actor));
    MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_OK);
    MUST_EQ(look(actor).incarnation, 2);
    MUST_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    MUST_EQ(janus_supervisor_remove_child(supervisor, actor), JANUS_OK);
    MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_STALE);
    MUST_EQ(janus_supervisor_remove_child(supervisor, actor), JANUS_STALE);
    MUST_EQ(janus_supervisor_find_child(supervisor, "a", &again), JANUS_NOT_FOUND);
    MUST_EQ(look_in(supervisor).specified, 0);
    janus_actor other = add_child(supervisor, CHILD(&b, .id = "a")); /* the id is free again */
    MUST(!same_actor(other, actor));
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a-a+a-a+b-b");
    return 0;
}

TEST("a named child is added, stopped, started and removed; each call out of turn is refused")
{
    PLAY(manages_named, .panics = true);
}

/* S18. */

static int64_t manages_anonymous(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct role       c = {.play = &play, .name = 'c'};
    janus_supervisor *outer = play_open(&play, NULL), *inner = NULL;
    janus_actor       foreign = add_child(outer, CHILD(&c));
    (void)argument;
    MUST_EQ(janus_supervisor_open(NULL, &inner), JANUS_OK);
    janus_actor first = add_child(inner, CHILD(&a)), second = add_child(inner, CHILD(&b));
    MUST_EQ(janus_supervisor_stop_child(inner, first), JANUS_OK);
    MUST_EQ(look_in(inner).specified, 1);
    janus_status status = janus_supervisor_stop_child(inner, first);
    MUST(status == JANUS_OK || status == JANUS_STALE);
    MUST_EQ(janus_supervisor_stop_child(inner, foreign), JANUS_STALE);
    MUST_EQ(settle(foreign), 0);
    MUST_EQ(settle(second), 0);
    MUST_EQ(janus_supervisor_start_child(inner, first), JANUS_STALE);
    MUST_EQ(janus_supervisor_end(inner, NULL), JANUS_OK);
    (void)play_end(&play, outer, JANUS_OK);
    MUST_LOG(&play, "+c+a+b-a-b-c");
    return 0;
}

TEST("an anonymous child is stopped by its handle; a foreign handle is STALE and its actor lives")
{
    PLAY(manages_anonymous, .panics = true);
}

/* S19: an init tells its starter through the argument. */

struct note {
    int64_t told; /* by init, plainly: add and start_child order it before their return */
    int     starts;
};

static int64_t leave_note(void *state, void *argument)
{
    struct note *note = argument;
    (void)state;
    note->starts++;
    note->told = 1000 + note->starts;
    return JANUS_ACTOR_GO_ON;
}

static int64_t tells_its_starter(void *argument)
{
    static const janus_behaviour writer = {.struct_bytes = sizeof writer,
                                           .name = "writer",
                                           .state_bytes = 8,
                                           .init = leave_note,
                                           .handle = player_handle};
    struct play                  play;
    struct note                  note = {0}, anonymous = {0};
    janus_supervisor            *supervisor = play_open(&play, NULL);
    janus_actor                  actor =
        add_child(supervisor, JANUS_CHILD(.id = "w", .behaviour = &writer, .argument = &note));
    (void)argument;
    MUST_EQ(note.told, 1001);
    MUST_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_OK);
    MUST_EQ(note.told, 1002);
    (void)add_child(supervisor, JANUS_CHILD(.behaviour = &writer, .argument = &anonymous));
    MUST_EQ(anonymous.told, 1001);
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("what init wrote to its argument is seen when add or start_child returns")
{
    PLAY(tells_its_starter, .panics = true);
}

/* S43. */

static int64_t counts(void *argument)
{
    struct play play;
    struct role a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct role c = {.play = &play, .name = 'c'};
    const janus_supervisor_options inner = {.struct_bytes = sizeof inner};
    janus_supervisor              *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.delay_ns = AN_HOUR, .max_restarts = 9));
    (void)argument;
    janus_actor first = add_child(supervisor, CHILD(&a, .id = "a"));
    janus_actor second = add_child(supervisor, CHILD(&b));
    (void)add_child(supervisor, CHILD(&c));
    (void)add_child(supervisor, JANUS_CHILD(.id = "s", .supervisor = &inner));
    (void)add_child(supervisor,
                    JANUS_CHILD(.id = "t", .task = sleep_an_hour, .stop_within_ns = JANUS_NO_TIME));
    janus_supervisor_info info = look_in(supervisor);
    MUST_EQ(info.specified, 5);
    MUST_EQ(info.running, 5);
    MUST_EQ(info.actors, 3);
    MUST_EQ(info.supervisors, 1);
    MUST_EQ(info.tasks, 1);
    MUST_EQ(info.stuck, 0);
    MUST_EQ(janus_supervisor_stop_child(supervisor, first), JANUS_OK);
    tell(second, act_return, NULL, -100); /* it waits for an hour before it is started again */
    until_state(second, JANUS_ACTOR_STATE_DELAYED);
    info = look_in(supervisor);
    MUST_EQ(info.specified, 5);
    MUST_EQ(info.running, 3);
    MUST_EQ(info.actors, 3);
    MUST_EQ(janus_supervisor_start_child(supervisor, second), JANUS_STARTING);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a+b+c-afb-c");
    return 0;
}

TEST("inspect counts specified and running children by sort; a delayed one does not run")
{
    PLAY(counts, .panics = true);
}

static int64_t delayed_child_stops(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.delay_ns = AN_HOUR / 2));
    janus_actor actor = add_child(supervisor, CHILD(&a, .id = "a"));
    (void)argument;
    tell(actor, act_return, NULL, -100);
    until_state(actor, JANUS_ACTOR_STATE_DELAYED);
    MUST_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_OK);
    MUST_EQ(settle(actor), 0);
    if (play_is_virtual()) MUST_EQ(janus_sleep(AN_HOUR * 3 / 4), JANUS_OK);
    MUST_EQ(look(actor).incarnation, 2); /* the delay that was stopped starts nothing */
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+afa+a-a");
    return 0;
}

TEST("a stop during the delay is not lost, and the delay starts nothing later")
{
    PLAY(delayed_child_stops, .panics = true);
}

/* S48. */

static int64_t name_is_taken(void *argument)
{
    struct play               play;
    struct role               a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    const janus_actor_options named = {.struct_bytes = sizeof named, .name = "stage.star"};
    janus_actor               found = {{0}};
    janus_supervisor         *supervisor = play_open(&play, NULL);
    janus_actor first = add_child(supervisor, CHILD(&a, .id = "a", .options = &named));
    (void)argument;
    MUST_EQ(janus_supervisor_add(supervisor, CHILD(&b, .id = "b", .options = &named), NULL),
            JANUS_EXISTS);
    MUST_EQ(look_in(supervisor).specified, 1);
    MUST_EQ(janus_supervisor_find_child(supervisor, "b", &found), JANUS_NOT_FOUND);
    MUST_EQ(janus_supervisor_add(supervisor, CHILD(&b, .options = &named), NULL), JANUS_EXISTS);
    MUST_EQ(look_in(supervisor).specified, 1);
    MUST_EQ(janus_actor_find("stage.star", &found), JANUS_OK);
    count_up(found);
    MUST_EQ(settle(first), 1);
    MUST_EQ(janus_supervisor_stop_child(supervisor, first), JANUS_OK);
    MUST_EQ(janus_actor_find("stage.star", &found), JANUS_NOT_FOUND);
    (void)add_child(supervisor, CHILD(&b, .id = "b", .options = &named)); /* it is free now */
    MUST_EQ(janus_supervisor_start_child(supervisor, first), JANUS_EXISTS);
    MUST_EQ(look(first).state, JANUS_ACTOR_STATE_EMPTY);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_EQ(janus_actor_find("stage.star", &found), JANUS_NOT_FOUND);
    MUST_EQ(play_count(&play, '+', 'b'), play_count(&play, '-', 'b'));
    return 0;
}

TEST("a child whose name is taken is not added: EXISTS, and no actor is left")
{
    PLAY(name_is_taken, .panics = true);
}

/* S49. */

static void expect_child(const janus_child_info *info, const char *id, janus_actor_state state,
                         uint32_t incarnation, uint64_t restarts)
{
    MUST_STR(info->id, id);
    MUST_EQ(info->state, state);
    MUST_EQ(info->incarnation, incarnation);
    MUST_EQ(info->restarts, restarts);
}

static int64_t lists(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct role       c = {.play = &play, .name = 'c'};
    janus_child_info  list[4] = {JANUS_CHILD_INFO(), JANUS_CHILD_INFO(), JANUS_CHILD_INFO(),
                                 JANUS_CHILD_INFO()};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 5, .period_ns = AN_HOUR));
    janus_actor first = add_child(supervisor, CHILD(&a, .id = "first"));
    janus_actor second = add_child(supervisor, CHILD(&b, .id = "second"));
    janus_actor third = add_child(supervisor, CHILD(&c));
    (void)argument;
    crash(third);
    crash(third);
    MUST_EQ(settle(third), 0); /* the third incarnation runs */
    MUST_EQ(janus_supervisor_stop_child(supervisor, second), JANUS_OK);
    MUST_EQ(janus_supervisor_children(supervisor, list, 4), 3);
    expect_child(&list[0], "first", JANUS_ACTOR_STATE_RUNNING, 1, 0);
    expect_child(&list[1], "second", JANUS_ACTOR_STATE_EMPTY, 1, 0);
    expect_child(&list[2], "", JANUS_ACTOR_STATE_RUNNING, 3, 2);
    MUST(same_actor(list[0].actor, first));
    MUST(same_actor(list[1].actor, second));
    MUST(same_actor(list[2].actor, third));
    MUST_STR(list[2].behaviour, "player");
    list[0] = list[1] = JANUS_CHILD_INFO();
    MUST_EQ(janus_supervisor_children(supervisor, list, 1), 3); /* room for one */
    expect_child(&list[0], "first", JANUS_ACTOR_STATE_RUNNING, 1, 0);
    MUST_STR(list[1].id, "");
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("children lists each child with state, incarnation and restarts, stopped ones as EMPTY")
{
    PLAY(lists, .panics = true);
}

static int64_t remembers(void *argument)
{
    struct play        play;
    struct role        a = {.play = &play, .name = 'a'};
    janus_restart_info list[4] = {JANUS_RESTART_INFO(), JANUS_RESTART_INFO(), JANUS_RESTART_INFO(),
                                  JANUS_RESTART_INFO()};
    janus_supervisor  *supervisor = play_open(
        &play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 9, .period_ns = AN_HOUR, .history = 3));
    janus_actor actor = add_child(supervisor, CHILD(&a, .id = "a"));
    (void)argument;
    for (int i = 0; i < 5; i++) {
        MUST_EQ(request(actor, act_return, NULL, -200 - i, NULL), JANUS_RESTARTED);
        MUST_EQ(settle(actor), 0);
    }
    MUST_EQ(janus_supervisor_history(supervisor, list, 4), 3);
    for (int i = 0; i < 3; i++) { /* the newest first */
        MUST_EQ(list[i].end.kind, JANUS_END_KIND_FAILED);
        MUST_EQ(list[i].end.error, -204 + i);
        MUST_EQ(list[i].end.incarnation, 5 - i);
        MUST(list[i].restarted);
        MUST_STR(list[i].child, "a");
    }
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("history remembers as many ends as it has room for, the newest first")
{
    PLAY(remembers, .panics = true);
}

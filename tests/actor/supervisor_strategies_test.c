/* SPDX-License-Identifier: MIT */
/* Strategies: which children a supervisor starts again when a child has failed. */
#include "play.h"

/* Three players under one strategy. */
struct trio {
    struct play       play;
    struct role       players[3];
    janus_actor       actors[3];
    janus_supervisor *supervisor;
};

static void trio_open(struct trio *trio, janus_supervision strategy, uint32_t max_restarts,
                      const char *const *inits)
{
    static const char *const ids[] = {"a", "b", "c"};
    trio->supervisor =
        play_open(&trio->play, JANUS_SUPERVISOR_OPTIONS(.strategy = strategy, .period_ns = AN_HOUR,
                                                        .max_restarts = max_restarts));
    for (int i = 0; i < 3; i++) {
        trio->players[i] = (struct role){.play = &trio->play, .name = ids[i][0], .inits = inits[i]};
        trio->actors[i] = add_child(trio->supervisor, CHILD(&trio->players[i], .id = ids[i]));
        count_up(trio->actors[i]);
    }
}

static const char *const all_well[3] = {"o", "o", "o"};

/* S29. */

static int64_t all_for_one(void *argument)
{
    struct trio trio;
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_ONE_FOR_ALL, 9, all_well);
    for (int which = 0; which < 3; which++) {
        tell(trio.actors[which], act_return, NULL, -100);
        play_await(&trio.play, "+c", 2 + which); /* the last of them has started */
        for (int i = 0; i < 3; i++) {
            MUST_EQ(settle(trio.actors[i]), 0);
            MUST_EQ(look(trio.actors[i]).incarnation, 2 + which);
            MUST_EQ(look(trio.actors[i]).state, JANUS_ACTOR_STATE_RUNNING);
        }
    }
    janus_supervisor_result result = play_end(&trio.play, trio.supervisor, JANUS_OK);
    MUST_EQ(result.restarts, 3); /* one for each failure */
    MUST_LOG(&trio.play, "+a+b+c"
                         "fa-c-b+a+b+c"
                         "fb-c-a+a+b+c"
                         "fc-b-a+a+b+c"
                         "-c-b-a");
    return 0;
}

TEST("ONE_FOR_ALL ends all others in reverse, and starts all again in order")
{
    PLAY(all_for_one, .panics = true);
}

static int64_t two_die_at_once(void *argument)
{
    struct trio trio;
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_ONE_FOR_ALL, 9, all_well);
    tell(trio.actors[0], act_return, NULL, -100);
    JANUS_IGNORE(say(trio.actors[2], act_return, NULL, -100));
    play_await(&trio.play, "+c", 2);
    janus_supervisor_result result = play_end(&trio.play, trio.supervisor, JANUS_OK);
    MUST(result.restarts == 1 || result.restarts == 2);
    for (char who = 'a'; who <= 'c'; who++) { /* nobody runs twice, nobody is left out */
        MUST_EQ(play_count(&trio.play, '+', who),
                play_count(&trio.play, '-', who) + play_count(&trio.play, 'f', who));
        MUST(play_count(&trio.play, '+', who) >= 2);
        MUST(play_count(&trio.play, '+', who) <= 1 + (int)result.restarts);
    }
    return 0;
}

TEST("with ONE_FOR_ALL two failures at once make one common restart, or one after the other")
{
    PLAY(two_die_at_once, .panics = true);
}

/* S30. */

static int64_t all_for_one_escalates(void *argument)
{
    static const char *const inits[3] = {"o", "of", "o"};
    struct trio              trio;
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_ONE_FOR_ALL, 2, inits);
    tell(trio.actors[1], act_return, NULL, -55);
    MUST_EQ(janus_supervisor_wait(trio.supervisor, NEVER), JANUS_OK);
    janus_supervisor_result result = play_end(&trio.play, trio.supervisor, JANUS_TOO_OFTEN);
    MUST_EQ(result.restarts, 2);
    MUST_LOG(&trio.play, "+a+b+cfb-c-a"
                         "+a!b-a"
                         "+a!b-a");
    return 0;
}

TEST("with ONE_FOR_ALL an init that fails at each restart ends the supervisor with TOO_OFTEN")
{
    PLAY(all_for_one_escalates, .panics = true);
}

/* S31. */

static int64_t all_for_one_other_fails(void *argument)
{
    static const char *const inits[3] = {"o", "ofo", "o"};
    struct trio              trio;
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_ONE_FOR_ALL, 9, inits);
    tell(trio.actors[0], act_return, NULL, -100);
    play_await(&trio.play, "+c", 2);
    for (int i = 0; i < 3; i++) MUST_EQ(settle(trio.actors[i]), 0);
    janus_supervisor_result result = play_end(&trio.play, trio.supervisor, JANUS_OK);
    MUST_EQ(result.restarts, 2);
    MUST_LOG(&trio.play, "+a+b+cfa-c-b"
                         "+a!b-a"
                         "+a+b+c"
                         "-c-b-a");
    return 0;
}

TEST("if a child fails in a common restart, those before it are stopped, then all are tried")
{
    PLAY(all_for_one_other_fails, .panics = true);
}

/* S32. */

static int64_t rest_for_one(void *argument)
{
    struct trio trio;
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_REST_FOR_ONE, 9, all_well);
    tell(trio.actors[1], act_return, NULL, -100);
    play_await(&trio.play, "+c", 2);
    MUST_EQ(settle(trio.actors[0]), 1);
    MUST_EQ(settle(trio.actors[1]), 0);
    MUST_EQ(settle(trio.actors[2]), 0);
    MUST_EQ(look(trio.actors[0]).incarnation, 1);
    tell(trio.actors[2], act_return, NULL, -100);
    play_await(&trio.play, "+c", 3);
    MUST_EQ(look(trio.actors[1]).incarnation, 2);
    tell(trio.actors[0], act_return, NULL, -100);
    play_await(&trio.play, "+c", 4);
    janus_supervisor_result result = play_end(&trio.play, trio.supervisor, JANUS_OK);
    MUST_EQ(result.restarts, 3);
    MUST_LOG(&trio.play, "+a+b+c"
                         "fb-c+b+c"
                         "fc+c"
                         "fa-c-b+a+b+c"
                         "-c-b-a");
    return 0;
}

TEST("REST_FOR_ONE ends the later children in reverse, starts them in order, and keeps the others")
{
    PLAY(rest_for_one, .panics = true);
}

/* S33. */

static int64_t rest_for_one_escalates(void *argument)
{
    static const char *const inits[3] = {"o", "of", "o"};
    struct trio              trio;
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_REST_FOR_ONE, 2, inits);
    tell(trio.actors[1], act_return, NULL, -55);
    MUST_EQ(janus_supervisor_wait(trio.supervisor, NEVER), JANUS_OK);
    janus_supervisor_result result = play_end(&trio.play, trio.supervisor, JANUS_TOO_OFTEN);
    MUST_EQ(result.restarts, 2);
    MUST_LOG(&trio.play, "+a+b+cfb-c!b!b-a");
    return 0;
}

TEST("with REST_FOR_ONE an init that fails at each restart ends the supervisor with TOO_OFTEN")
{
    PLAY(rest_for_one_escalates, .panics = true);
}

static int64_t rest_for_one_other_fails(void *argument)
{
    static const char *const inits[3] = {"o", "ofo", "o"};
    struct trio              trio;
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_REST_FOR_ONE, 9, inits);
    tell(trio.actors[0], act_return, NULL, -100);
    play_await(&trio.play, "+c", 2);
    for (int i = 0; i < 3; i++) MUST_EQ(settle(trio.actors[i]), 0);
    (void)play_end(&trio.play, trio.supervisor, JANUS_OK);
    MUST_LOG(&trio.play, "+a+b+cfa-c-b"
                         "+a!b"
                         "+b+c"
                         "-c-b-a");
    return 0;
}

TEST("if a later child fails in a REST_FOR_ONE restart, those started before it are kept")
{
    PLAY(rest_for_one_other_fails, .panics = true);
}

/* S24. */

static void temporary_bystander(janus_supervision strategy)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct role       c = {.play = &play, .name = 'c'};
    janus_actor       found;
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.strategy = strategy, .max_restarts = 1,
                                                  .period_ns = AN_HOUR));
    janus_actor first = add_child(supervisor, CHILD(&a, .id = "a"));
    (void)add_child(supervisor, CHILD(&b, .id = "b", .restart = JANUS_RESTART_TEMPORARY));
    (void)add_child(supervisor, CHILD(&c, .id = "c"));
    tell(first, act_return, NULL, -100);
    play_await(&play, "+c", 2);
    MUST_EQ(settle(first), 0);
    MUST_EQ(janus_supervisor_find_child(supervisor, "b", &found), JANUS_NOT_FOUND);
    MUST_EQ(look_in(supervisor).specified, 2);
    MUST_EQ(look_in(supervisor).restarts, 1);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a+b+cfa-c-b+a+c-c-a");
}

static int64_t temporary_bystanders(void *argument)
{
    (void)argument;
    temporary_bystander(JANUS_SUPERVISION_ONE_FOR_ALL);
    temporary_bystander(JANUS_SUPERVISION_REST_FOR_ONE);
    return 0;
}

TEST("a TEMPORARY child that a sibling's restart ended is not started again and costs no restart")
{
    PLAY(temporary_bystanders, .panics = true);
}

/* While all are started again, nobody can be added. */

static int64_t add_during_restart(void *argument)
{
    static const char *const inits[3] = {"o", "oh", "o"};
    struct trio              trio;
    struct role              d = {.play = &trio.play, .name = 'd'};
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_ONE_FOR_ALL, 9, inits);
    tell(trio.actors[0], act_return, NULL, -100);
    play_await(&trio.play, "!b", 1); /* its init hangs */
    MUST_EQ(janus_supervisor_add(trio.supervisor, CHILD(&d), NULL), JANUS_STARTING);
    MUST_EQ(look(trio.actors[1]).state, JANUS_ACTOR_STATE_STARTING);
    MUST_EQ(janus_supervisor_start_child(trio.supervisor, trio.actors[1]), JANUS_STARTING);
    MUST_EQ(janus_supervisor_remove_child(trio.supervisor, trio.actors[1]), JANUS_STARTING);
    MUST_EQ(look_in(trio.supervisor).specified, 3);
    (void)play_end(&trio.play, trio.supervisor, JANUS_OK);
    MUST_EQ(play_count(&trio.play, '+', 'd'), 0);
    MUST_EQ(play_count(&trio.play, '+', 'a'),
            play_count(&trio.play, '-', 'a') + play_count(&trio.play, 'f', 'a'));
    return 0;
}

TEST("while a common restart goes on, add returns STARTING, and the supervisor can end")
{
    PLAY(add_during_restart, .panics = true);
}

/* S34. */

static int64_t anonymous_argument(void *argument)
{
    struct play       play;
    struct role       players[3];
    janus_actor       actors[3];
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 2, .period_ns = AN_HOUR));
    (void)argument;
    for (int i = 0; i < 3; i++) {
        players[i] = (struct role){.play = &play, .name = (char)('a' + i), .number = 1000 + i};
        actors[i] = add_child(supervisor, CHILD(&players[i]));
    }
    for (int i = 0; i < 2; i++) {
        int64_t number = 0;
        crash(actors[i]);
        MUST_EQ(request(actors[i], act_number, NULL, 0, &number), JANUS_OK);
        MUST_EQ(number, 1000 + i);
    }
    MUST_EQ(look(actors[2]).incarnation, 1);
    MUST_EQ(request(actors[2], act_return, NULL, -9, NULL), JANUS_GONE);
    MUST_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    (void)play_end(&play, supervisor, JANUS_TOO_OFTEN);
    MUST_LOG(&play, "+a+b+cfa+afb+bfc-b-a");
    return 0;
}

TEST("an anonymous child is started again with its own argument; too many failures end all")
{
    PLAY(anonymous_argument, .panics = true);
}

/* S35. */

static int64_t ignore_at_restart(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a', .inits = "oi"};
    struct role       b = {.play = &play, .name = 'b'};
    struct watcher    watcher = {.status = JANUS_OK};
    janus_nursery     n;
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 1, .period_ns = AN_HOUR));
    (void)argument;
    watcher.actor = add_child(supervisor, CHILD(&a));
    janus_actor other = add_child(supervisor, CHILD(&b));
    MUST_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    MUST_EQ(janus_spawn(&n, watch_end, &watcher), JANUS_OK);
    tell(watcher.actor, act_return, NULL, -100);
    MUST_EQ(janus_nursery_end(&n, NULL), JANUS_OK); /* its place is gone */
    MUST(watcher.status == JANUS_OK || watcher.status == JANUS_STALE);
    MUST_EQ(look_in(supervisor).specified, 1);
    MUST_EQ(janus_supervisor_start_child(supervisor, watcher.actor), JANUS_STALE);
    MUST_EQ(settle(other), 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a+bfa!a-b");
    return 0;
}

TEST("an anonymous child whose init returns IGNORE at a restart is removed")
{
    PLAY(ignore_at_restart, .panics = true);
}

static int64_t named_ignore_at_restart(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a', .inits = "oio"};
    janus_supervisor *supervisor = play_open(&play, NULL);
    janus_actor       actor = add_child(supervisor, CHILD(&a, .id = "a"));
    (void)argument;
    tell(actor, act_return, NULL, -100);
    play_await(&play, "!a", 1);
    until_state(actor, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(look_in(supervisor).specified, 1);
    MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_OK);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+afa!a+a-a");
    return 0;
}

TEST("a named child whose init returns IGNORE at a restart keeps its place, EMPTY")
{
    PLAY(named_ignore_at_restart, .panics = true);
}

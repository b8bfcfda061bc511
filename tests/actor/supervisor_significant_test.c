/* SPDX-License-Identifier: MIT */
/* Significant children: the end of one, or of the last, ends the supervisor. */
#include "play.h"

#define STOPS(when)                                                                                \
    JANUS_SUPERVISOR_OPTIONS(.auto_stop = (when), .max_restarts = 9, .period_ns = AN_HOUR)

static janus_end_kind end_of(play_act *act)
{
    return act == act_end ? JANUS_END_KIND_NORMAL : JANUS_END_KIND_FAILED;
}

/* The supervisor ends by itself, without an error. */
static void expect_stopped(struct play *play, janus_supervisor *supervisor)
{
    MUST_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    janus_supervisor_result result = play_end(play, supervisor, JANUS_OK);
    MUST(result.by_itself);
    MUST_EQ(janus_yield(), JANUS_OK);
}

/* S38. */

/* A child that ends and is not started again ends the supervisor. */
static void ends_it(janus_auto_stop when, janus_restart type, play_act *act, const char *id)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor = play_open(&play, STOPS(when));
    janus_actor       actor =
        add_child(supervisor, CHILD(&a, .id = id, .restart = type, .significant = true));
    (void)add_child(supervisor, CHILD(&b));
    tell(actor, act, NULL, -100);
    expect_stopped(&play, supervisor);
    MUST_EQ(a.last.kind, end_of(act));
    MUST_LOG(&play, act == act_end ? "+a+b-a-b" : "+a+bfa-b");
}

static int64_t significant_ends(void *argument)
{
    (void)argument;
    for (janus_auto_stop when = JANUS_AUTO_STOP_ANY; when <= JANUS_AUTO_STOP_ALL; when++) {
        ends_it(when, JANUS_RESTART_TEMPORARY, act_end, "a");
        ends_it(when, JANUS_RESTART_TEMPORARY, act_return, "a");
        ends_it(when, JANUS_RESTART_TRANSIENT, act_end, "a");
    }
    return 0;
}

TEST("a significant child that ends and is not started again ends the supervisor")
{
    PLAY(significant_ends, .panics = true);
}

/* Children whose end leaves the supervisor as it is. */
static void goes_on(janus_auto_stop when, janus_restart type, play_act *act, bool significant)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    bool              again = type == JANUS_RESTART_TRANSIENT && act == act_return;
    janus_supervisor *supervisor = play_open(&play, STOPS(when));
    janus_actor       actor =
        add_child(supervisor, CHILD(&a, .id = "a", .restart = type, .significant = significant));
    janus_actor other = add_child(supervisor, CHILD(&b));
    tell(actor, act, NULL, -100);
    if (again) {
        MUST_EQ(settle(actor), 0);
    } else {
        play_await(&play, act == act_end ? "-a" : "fa", 1);
    }
    MUST_EQ(settle(other), 0);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    MUST(!result.by_itself);
    MUST_EQ(result.restarts, again ? 1 : 0);
}

static int64_t insignificant_goes_on(void *argument)
{
    (void)argument;
    for (janus_auto_stop when = JANUS_AUTO_STOP_NEVER; when <= JANUS_AUTO_STOP_ALL; when++) {
        goes_on(when, JANUS_RESTART_TEMPORARY, act_end, false);
        goes_on(when, JANUS_RESTART_TEMPORARY, act_return, false);
        goes_on(when, JANUS_RESTART_TRANSIENT, act_end, false);
    }
    return 0;
}

TEST("the end of a child that is not significant does not end the supervisor")
{
    PLAY(insignificant_goes_on, .panics = true);
}

static int64_t restarted_goes_on(void *argument)
{
    (void)argument;
    goes_on(JANUS_AUTO_STOP_ANY, JANUS_RESTART_TRANSIENT, act_return, true);
    goes_on(JANUS_AUTO_STOP_ALL, JANUS_RESTART_TRANSIENT, act_return, true);
    return 0;
}

TEST("a significant TRANSIENT child that fails is started again, and the supervisor goes on")
{
    PLAY(restarted_goes_on, .panics = true);
}

static int64_t last_of_all(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct role       c = {.play = &play, .name = 'c'};
    janus_supervisor *supervisor = play_open(&play, STOPS(JANUS_AUTO_STOP_ALL));
    janus_actor       first =
        add_child(supervisor, CHILD(&a, .restart = JANUS_RESTART_TEMPORARY, .significant = true));
    janus_actor second = add_child(
        supervisor, CHILD(&b, .id = "b", .restart = JANUS_RESTART_TRANSIENT, .significant = true));
    janus_actor third = add_child(supervisor, CHILD(&c));
    (void)argument;
    tell(first, act_return, NULL, -100);
    play_await(&play, "fa", 1);
    MUST_EQ(settle(second), 0);
    MUST_EQ(settle(third), 0);
    tell(second, act_end, NULL, 0);
    expect_stopped(&play, supervisor);
    MUST_LOG(&play, "+a+b+cfa-b-c");
    return 0;
}

TEST("with auto_stop ALL the supervisor ends with the last significant child, not before")
{
    PLAY(last_of_all, .panics = true);
}

/* A stop by hand is no end by itself. */

static int64_t stopped_by_hand(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor = play_open(&play, STOPS(JANUS_AUTO_STOP_ANY));
    janus_actor       actor = add_child(
        supervisor, CHILD(&a, .id = "a", .significant = true, .restart = JANUS_RESTART_TRANSIENT));
    janus_actor other = add_child(supervisor, CHILD(&b));
    (void)argument;
    MUST_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    MUST_EQ(settle(other), 0);
    MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_OK);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    MUST(!result.by_itself);
    MUST_LOG(&play, "+a+b-a+a-b-a");
    return 0;
}

TEST("a significant child that stop_child ended does not end the supervisor")
{
    PLAY(stopped_by_hand, .panics = true);
}

/* S39. */

static int64_t significant_anonymous(void *argument)
{
    (void)argument;
    ends_it(JANUS_AUTO_STOP_ANY, JANUS_RESTART_TEMPORARY, act_end, NULL);
    ends_it(JANUS_AUTO_STOP_ANY, JANUS_RESTART_TEMPORARY, act_return, NULL);
    ends_it(JANUS_AUTO_STOP_ALL, JANUS_RESTART_TRANSIENT, act_end, NULL);
    return 0;
}

TEST("a significant anonymous child ends the supervisor as a named one does")
{
    PLAY(significant_anonymous, .panics = true);
}

static int64_t significant_bystander(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct role       c = {.play = &play, .name = 'c'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.strategy = JANUS_SUPERVISION_ONE_FOR_ALL,
                                                  .max_restarts = 9, .period_ns = AN_HOUR,
                                                  .auto_stop = JANUS_AUTO_STOP_ANY));
    janus_actor actor = add_child(supervisor, CHILD(&a, .id = "a"));
    (void)argument;
    (void)add_child(supervisor,
                    CHILD(&b, .id = "b", .restart = JANUS_RESTART_TEMPORARY, .significant = true));
    (void)add_child(supervisor,
                    CHILD(&c, .id = "c", .restart = JANUS_RESTART_TRANSIENT, .significant = true));
    tell(actor, act_return, NULL, -100);
    play_await(&play, "+c", 2);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(look_in(supervisor).specified, 2);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    MUST(!result.by_itself);
    MUST_LOG(&play, "+a+b+cfa-c-b+a+c-c-a");
    return 0;
}

TEST("a significant child that a sibling's restart ended does not end the supervisor")
{
    PLAY(significant_bystander, .panics = true);
}

/* S40. */

struct tree {
    struct play       play;
    struct role       leaf, other;
    janus_supervisor *top;
};

/* A leaf whose end ends the supervisor in the middle, which is significant or not. */
static void tree_open(struct tree *tree, bool significant, janus_child *below,
                      janus_supervisor_options *middle)
{
    tree->leaf = (struct role){.play = &tree->play, .name = 'l'};
    tree->other = (struct role){.play = &tree->play, .name = 'o'};
    *below = *CHILD(&tree->leaf, .restart = JANUS_RESTART_TEMPORARY, .significant = true);
    *middle = *JANUS_SUPERVISOR_OPTIONS(.children = below, .child_count = 1,
                                        .auto_stop = JANUS_AUTO_STOP_ANY);
    tree->top = play_open(&tree->play, STOPS(JANUS_AUTO_STOP_ANY));
    (void)add_child(tree->top,
                    JANUS_CHILD(.id = "middle", .supervisor = middle, .significant = significant,
                                .restart = JANUS_RESTART_TRANSIENT));
}

static int64_t climbs(void *argument)
{
    struct tree              tree;
    janus_child              below;
    janus_supervisor_options middle;
    (void)argument;
    tree_open(&tree, true, &below, &middle);
    (void)add_child(tree.top, CHILD(&tree.other));
    tell(tree.leaf.self, act_end, NULL, 0);
    expect_stopped(&tree.play, tree.top);
    MUST_LOG(&tree.play, "+l+o-l-o");
    return 0;
}

TEST("auto_stop climbs through a significant supervisor") { PLAY(climbs, .panics = true); }

static int64_t does_not_climb(void *argument)
{
    struct tree              tree;
    janus_child              below;
    janus_supervisor_options middle;
    (void)argument;
    tree_open(&tree, false, &below, &middle);
    janus_actor other = add_child(tree.top, CHILD(&tree.other));
    tell(tree.leaf.self, act_end, NULL, 0);
    until_state(find(tree.top, "middle"), JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(look(find(tree.top, "middle")).last.kind, JANUS_END_KIND_NORMAL);
    MUST_EQ(settle(other), 0);
    janus_supervisor_result result = play_end(&tree.play, tree.top, JANUS_OK);
    MUST(!result.by_itself);
    MUST_EQ(result.restarts, 0);
    MUST_LOG(&tree.play, "+l+o-l-o");
    return 0;
}

TEST("auto_stop does not climb through a supervisor that is not significant")
{
    PLAY(does_not_climb, .panics = true);
}

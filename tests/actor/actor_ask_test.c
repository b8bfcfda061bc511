/* SPDX-License-Identifier: MIT */
/* Asks from handlers, whose answers come as notices, and calls of many actors at once. G6, G18. */
#include "play.h"

enum { ASKED = 3, QUESTIONS = 6 };

/* What the asking actor knows. */
struct survey {
    janus_actor  others[ASKED];
    janus_event  over;
    int64_t      answers[QUESTIONS];
    janus_status statuses[QUESTIONS];
    int          came[QUESTIONS];
    int          left;
    play_act    *act;
    uint64_t     within;
};

static void survey_init(struct survey *survey, play_act *act)
{
    *survey = (struct survey){.act = act};
    janus_event_init(&survey->over, JANUS_WAKER_TASKS, "over");
}

static int64_t take_answer(struct self *self, janus_letter *letter)
{
    struct survey *survey = self->role->stage;
    MUST_EQ(letter->kind, JANUS_LETTER_KIND_REPLY);
    MUST(letter->tag < QUESTIONS);
    survey->came[letter->tag]++;
    survey->statuses[letter->tag] = letter->status;
    if (letter->status == JANUS_OK) survey->answers[letter->tag] = *(const int64_t *)letter->reply;
    if (letter->status != JANUS_OK) MUST(letter->reply == NULL);
    if (--survey->left == 0) janus_event_set(&survey->over);
    return JANUS_ACTOR_GO_ON;
}

/* Asks `number` questions, one after the other of each actor. */
static int64_t act_ask(struct self *self, janus_letter *letter, const struct line *line)
{
    struct survey *survey = self->role->stage;
    (void)letter;
    survey->left = (int)line->number;
    for (int i = 0; i < line->number; i++) {
        uint64_t deadline = survey->within != 0 ? janus_now_ns() + survey->within : play_late();
        MUST_EQ(janus_ask(survey->others[i % ASKED], &(struct line){survey->act, survey, i},
                          (uint64_t)i, deadline),
                JANUS_OK);
    }
    return JANUS_ACTOR_GO_ON;
}

struct scene {
    struct role       roles[ASKED], asking;
    struct survey     survey;
    janus_supervisor *stage;
    janus_actor       asker;
};

static void open_survey(struct scene *scene, play_act *act, janus_restart restart)
{
    memset(scene, 0, sizeof *scene);
    survey_init(&scene->survey, act);
    scene->stage = open_stage();
    for (int i = 0; i < ASKED; i++) {
        scene->survey.others[i] =
            ADD(scene->stage, .argument = &scene->roles[i], .restart = restart);
    }
    scene->asking = (struct role){.notice = take_answer, .stage = &scene->survey};
    scene->asker = ADD(scene->stage, .argument = &scene->asking);
}

static void await_survey(struct scene *scene)
{
    MUST_EQ(janus_event_wait(&scene->survey.over), JANUS_OK);
}

static int64_t scene_asks(void *argument)
{
    struct scene scene;
    (void)argument;
    open_survey(&scene, act_note, JANUS_RESTART_PERMANENT);
    tell(scene.asker, act_ask, NULL, QUESTIONS);
    await_survey(&scene);
    MUST_EQ(settle(scene.asker), 0);
    for (int i = 0; i < QUESTIONS; i++) {
        MUST_EQ(scene.survey.came[i], 1);
        MUST_EQ(scene.survey.statuses[i], JANUS_OK);
        MUST_EQ(scene.survey.answers[i], i);
    }
    MUST_EQ(look(scene.asker).notices, QUESTIONS);
    close_stage(scene.stage);
    return 0;
}

TEST("many asks are answered once each, with the tag of the question") { PLAY(scene_asks); }

static int64_t scene_asks_without_answer(void *argument)
{
    static const struct {
        play_act     *act;
        janus_restart restart;
        janus_status  wanted;
    } cases[] = {{act_return, JANUS_RESTART_PERMANENT, JANUS_NO_REPLY}, /* number 0: GO_ON */
                 {act_panic, JANUS_RESTART_PERMANENT, JANUS_RESTARTED},
                 {act_panic, JANUS_RESTART_TEMPORARY, JANUS_GONE}};
    (void)argument;
    for (int i = 0; i < 3; i++) {
        struct scene scene;
        open_survey(&scene, cases[i].act, cases[i].restart);
        tell(scene.asker, act_ask, NULL, 1);
        await_survey(&scene);
        MUST_EQ(scene.survey.statuses[0], cases[i].wanted);
        MUST_EQ(settle(scene.asker), 0);
        MUST_EQ(scene.survey.came[0], 1);
        close_stage(scene.stage);
    }
    return 0;
}

TEST("an ask that is not answered brings the status that says why, once")
{
    PLAY(scene_asks_without_answer, .panics = true);
}

static int64_t act_never(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_kept_reply kept;
    (void)line;
    MUST_EQ(janus_reply_keep(letter, &kept), JANUS_OK);
    memcpy(self->words, &kept, sizeof kept);
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_answer_now(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_kept_reply kept;
    (void)letter;
    memcpy(&kept, self->words, sizeof kept);
    note(self, janus_reply_to(kept, &line->number));
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_ask_deadline(void *argument)
{
    struct scene scene;
    (void)argument;
    open_survey(&scene, act_never, JANUS_RESTART_PERMANENT);
    scene.survey.within = JANUS_SECONDS;
    tell(scene.asker, act_ask, NULL, ASKED);
    await_survey(&scene);
    for (int i = 0; i < ASKED; i++) {
        MUST_EQ(scene.survey.statuses[i], JANUS_DEADLINE);
        tell(scene.survey.others[i], act_answer_now, NULL, 5);
        MUST_EQ(settle(scene.survey.others[i]), 0);
        LOGGED(&scene.roles[i], JANUS_STALE);
    }
    MUST_EQ(settle(scene.asker), 0);
    for (int i = 0; i < ASKED; i++) MUST_EQ(scene.survey.came[i], 1);
    close_stage(scene.stage);
    return 0;
}

TEST("an ask whose deadline passes brings DEADLINE once, and the late reply is STALE")
{
    PLAY(scene_ask_deadline, .timed = true);
}

static int64_t scene_asker_restarts(void *argument)
{
    struct scene scene;
    (void)argument;
    open_survey(&scene, act_never, JANUS_RESTART_PERMANENT);
    tell(scene.asker, act_ask, NULL, ASKED);
    tell(scene.asker, act_return, NULL, -100);
    MUST_EQ(settle(scene.asker), 0);
    for (int i = 0; i < ASKED; i++) {
        tell(scene.survey.others[i], act_answer_now, NULL, 5);
        MUST_EQ(settle(scene.survey.others[i]), 0);
        LOGGED(&scene.roles[i], JANUS_STALE);
    }
    MUST_EQ(settle(scene.asker), 0);
    for (int i = 0; i < QUESTIONS; i++) MUST_EQ(scene.survey.came[i], 0);
    MUST_EQ(look(scene.asker).notices, 0);
    close_stage(scene.stage);
    return 0;
}

TEST("the answer to an ask never reaches a later incarnation") { PLAY(scene_asker_restarts); }

/* Refusals. */

static int64_t act_ask_full(struct self *self, janus_letter *letter, const struct line *line)
{
    struct survey *survey = self->role->stage;
    struct line    question = {act_note, NULL, 1};
    janus_actor    narrow;
    (void)letter, (void)line;
    MUST_EQ(janus_ask(survey->others[0], &question, 0, play_late()), JANUS_WOULD_WAIT);
    MUST_EQ(janus_actor_attenuate(survey->others[0], JANUS_ACTOR_MAY_CAST, &narrow), JANUS_OK);
    MUST_EQ(janus_ask(narrow, &question, 0, play_late()), JANUS_CAP_RIGHT);
    note(self, 1);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_ask_refused(void *argument)
{
    struct role       full = {0}, asking = {.notice = take_answer};
    struct survey     survey;
    struct door       gate;
    janus_supervisor *stage = open_stage();
    (void)argument;
    survey_init(&survey, act_note);
    door_init(&gate);
    asking.stage = &survey;
    survey.others[0] =
        ADD(stage, .argument = &full, .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    janus_actor asker = ADD(stage, .argument = &asking);
    MUST_EQ(janus_ask(survey.others[0], &(struct line){act_note, NULL, 1}, 0, play_late()),
            JANUS_STATE); /* not a handler */
    tell(survey.others[0], act_door, &gate, 1);
    await_inside(&gate);
    tell(survey.others[0], act_note, NULL, 2);
    tell(asker, act_ask_full, NULL, 0);
    MUST_EQ(settle(asker), 0);
    LOGGED(&asking, 1);
    janus_event_set(&gate.open);
    MUST_EQ(look(asker).notices, 0);
    close_stage(stage);
    return 0;
}

TEST("an ask never waits: a full mailbox is WOULD_WAIT, and no notice comes")
{
    PLAY(scene_ask_refused);
}

/* Two that ask each other. */

static int64_t act_ask_back(struct self *self, janus_letter *letter, const struct line *line)
{
    struct survey *survey = self->role->stage;
    (void)letter, (void)line;
    MUST_EQ(janus_ask(survey->others[0], &(struct line){act_note, NULL, 4}, 0, play_late()),
            JANUS_OK);
    survey->left++;
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_ask_each_other(void *argument)
{
    struct role       roles[2] = {{.notice = take_answer}, {.notice = take_answer}};
    struct survey     surveys[2];
    janus_actor       actors[2];
    janus_supervisor *stage = open_stage();
    (void)argument;
    for (int i = 0; i < 2; i++) {
        survey_init(&surveys[i], act_note);
        roles[i].stage = &surveys[i];
        actors[i] = ADD(stage, .argument = &roles[i]);
    }
    for (int i = 0; i < 2; i++) surveys[i].others[0] = actors[1 - i];
    for (int i = 0; i < 2; i++) tell(actors[i], act_ask_back, NULL, 0);
    for (int i = 0; i < 2; i++) MUST_EQ(janus_event_wait(&surveys[i].over), JANUS_OK);
    for (int i = 0; i < 2; i++) MUST_EQ(surveys[i].answers[0], 4);
    close_stage(stage);
    return 0;
}

TEST("two actors that ask each other are both answered: an ask makes no circle")
{
    PLAY(scene_ask_each_other);
}

/* Calls of many. */

enum { MANY = 5 };

static int64_t scene_call_all(void *argument)
{
    struct role       roles[MANY] = {0};
    janus_actor       actors[MANY];
    janus_status      statuses[MANY];
    int64_t           replies[MANY];
    janus_supervisor *stage = open_stage();
    (void)argument;
    for (int i = 0; i < MANY; i++) {
        actors[i] = ADD(stage, .argument = &roles[i], .restart = JANUS_RESTART_TEMPORARY);
        tell(actors[i], act_add, NULL, i);
    }
    struct line line = {act_add, NULL, 10};
    MUST_EQ(janus_call_all(actors, MANY, &line, replies, sizeof(int64_t), statuses, play_late()),
            JANUS_OK);
    for (int i = 0; i < MANY; i++) MUST_EQ(statuses[i], JANUS_OK);
    for (int i = 0; i < MANY; i++) MUST_EQ(replies[i], 10 + i);
    MUST_EQ(janus_call_all(actors, MANY, &line, NULL, 0, statuses, play_late()), JANUS_OK);
    MUST_EQ(janus_call_all(actors, 0, &line, NULL, 0, statuses, play_late()), JANUS_OK);
    MUST_EQ(janus_call_all(NULL, MANY, &line, NULL, 0, statuses, play_late()), JANUS_INVALID);
    MUST_EQ(janus_call_all(actors, MANY, &line, NULL, 0, NULL, play_late()), JANUS_INVALID);
    MUST_EQ(janus_call_all(actors, 4097, &line, NULL, 0, statuses, play_late()), JANUS_INVALID);
    for (int i = 0; i < MANY; i++) MUST_EQ(settle(actors[i]), 20 + i);
    close_stage(stage);
    return 0;
}

TEST("a call of many actors gives each one's answer at its own place") { PLAY(scene_call_all); }

static int64_t act_by_order(struct self *self, janus_letter *letter, const struct line *line)
{
    struct door *gate = self->role->stage;
    if (self->sum == 0) return act_note(self, letter, line);
    if (self->sum == 1) return -100;                          /* it fails */
    if (self->sum == 2) return JANUS_ACTOR_GO_ON;             /* it does not answer */
    if (self->sum == 3) return janus_event_wait(&gate->open); /* it takes too long */
    return act_note(self, letter, line);
}

static int64_t scene_call_all_down(void *argument)
{
    struct role       roles[MANY] = {0};
    struct door       gate;
    janus_actor       actors[MANY];
    janus_status      statuses[MANY];
    int64_t           replies[MANY] = {0};
    janus_supervisor *stage = open_stage();
    (void)argument;
    door_init(&gate);
    for (int i = 0; i < MANY; i++) {
        roles[i].stage = &gate;
        actors[i] = ADD(stage, .argument = &roles[i], .restart = JANUS_RESTART_TEMPORARY);
        tell(actors[i], act_add, NULL, i);
    }
    MUST_EQ(janus_actor_stop(actors[4], JANUS_STOP_HOW_AT_ONCE, 0), JANUS_OK);
    (void)await_end(actors[4]);
    struct line line = {act_by_order, NULL, 6};
    MUST_EQ(janus_call_all(actors, MANY, &line, replies, sizeof(int64_t), statuses,
                           janus_now_ns() + JANUS_SECONDS),
            JANUS_OK);
    MUST_EQ(statuses[0], JANUS_OK);
    MUST_EQ(replies[0], 6);
    MUST_EQ(statuses[1], JANUS_GONE);
    MUST_EQ(statuses[2], JANUS_NO_REPLY);
    MUST_EQ(statuses[3], JANUS_DEADLINE);
    MUST_EQ(statuses[4], JANUS_STALE);
    janus_event_set(&gate.open);
    close_stage(stage);
    return 0;
}

TEST("a call of many lists each failure once, and has one deadline")
{
    PLAY(scene_call_all_down, .timed = true);
}

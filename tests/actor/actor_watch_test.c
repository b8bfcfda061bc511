/* SPDX-License-Identifier: MIT */
/* Watches: exactly one DOWN for each watch and end, whenever it was made. A2, A6, A11.11. */
#include "play.h"

struct seen {
    janus_event come;
    janus_end   ends[8];
    uint64_t    tags[8];
    int         count, wanted;
    const char *name; /* must be free by then. NULL: none */
};

static void seen_init(struct seen *seen, int wanted)
{
    *seen = (struct seen){.wanted = wanted};
    janus_event_init(&seen->come, JANUS_WAKER_TASKS, "DOWN");
}

static int64_t take_down(struct self *self, janus_letter *letter)
{
    struct seen *seen = self->role->stage;
    MUST_EQ(letter->kind, JANUS_LETTER_KIND_DOWN);
    MUST(seen->count < 8);
    seen->ends[seen->count] = letter->end;
    seen->tags[seen->count++] = letter->tag;
    if (seen->name != NULL) {
        janus_actor found;
        MUST_EQ(janus_actor_find(seen->name, &found), JANUS_NOT_FOUND);
    }
    if (seen->count == seen->wanted) janus_event_set(&seen->come);
    return JANUS_ACTOR_GO_ON;
}

struct target {
    janus_actor actor;
    janus_watch watch;
};

static int64_t act_watch(struct self *self, janus_letter *letter, const struct line *line)
{
    struct target *target = line->argument;
    (void)self;
    MUST_EQ(janus_actor_watch(target->actor, (uint64_t)line->number, &target->watch), JANUS_OK);
    answer(letter, 0);
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_unwatch(struct self *self, janus_letter *letter, const struct line *line)
{
    struct target *target = line->argument;
    (void)self;
    answer(letter, janus_actor_unwatch(target->watch));
    return JANUS_ACTOR_GO_ON;
}

/* A watcher and a mortal. */
struct pair {
    struct role       watching, living;
    struct seen       seen;
    janus_supervisor *stage;
    janus_actor       watcher;
    struct target     target;
};

static void open_pair(struct pair *pair, janus_restart restart, int wanted, const char *name)
{
    *pair = (struct pair){.watching = {.notice = take_down}};
    seen_init(&pair->seen, wanted);
    pair->watching.stage = &pair->seen;
    pair->stage = open_stage();
    pair->watcher = ADD(pair->stage, .argument = &pair->watching);
    pair->target.actor = ADD(pair->stage, .argument = &pair->living, .restart = restart,
                             .options = JANUS_ACTOR_OPTIONS(.name = name));
}

static void await_downs(struct pair *pair)
{
    MUST_EQ(janus_event_wait(&pair->seen.come), JANUS_OK);
    MUST_EQ(settle(pair->watcher), 0);
    MUST_EQ(pair->seen.count, pair->seen.wanted);
}

/* Each end. */

static int64_t scene_each_end(void *argument)
{
    static play_act *const      acts[] = {act_return, act_return, act_panic};
    static const int64_t        numbers[] = {JANUS_ACTOR_STOP, -42, 0};
    static const janus_end_kind kinds[] = {JANUS_END_KIND_NORMAL, JANUS_END_KIND_FAILED,
                                           JANUS_END_KIND_PANICKED};
    (void)argument;
    for (int i = 0; i < 3; i++) {
        struct pair pair;
        open_pair(&pair, JANUS_RESTART_TEMPORARY, 1, NULL);
        MUST_EQ(request(pair.watcher, act_watch, &pair.target, 3, NULL), JANUS_OK);
        tell(pair.target.actor, acts[i], NULL, numbers[i]);
        await_downs(&pair);
        MUST_EQ(pair.seen.tags[0], 3);
        MUST_EQ(pair.seen.ends[0].kind, kinds[i]);
        MUST_EQ(pair.seen.ends[0].error, i == 1 ? -42 : 0);
        MUST(pair.seen.ends[0].final);
        MUST_EQ(pair.seen.ends[0].incarnation, 1);
        close_stage(pair.stage);
    }
    return 0;
}

TEST("a watcher gets one DOWN that says how the actor ended")
{
    PLAY(scene_each_end, .panics = true);
}

static int64_t scene_stopped(void *argument)
{
    struct pair pair;
    (void)argument;
    open_pair(&pair, JANUS_RESTART_PERMANENT, 1, NULL);
    MUST_EQ(request(pair.watcher, act_watch, &pair.target, 3, NULL), JANUS_OK);
    MUST_EQ(janus_actor_stop(pair.target.actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
    await_downs(&pair);
    MUST_EQ(pair.seen.ends[0].kind, JANUS_END_KIND_STOPPED);
    MUST(pair.seen.ends[0].final);
    close_stage(pair.stage);
    return 0;
}

TEST("a watcher learns that an actor was stopped for good") { PLAY(scene_stopped); }

static int64_t scene_restarted(void *argument)
{
    struct pair pair;
    (void)argument;
    open_pair(&pair, JANUS_RESTART_PERMANENT, 1, NULL);
    MUST_EQ(request(pair.watcher, act_watch, &pair.target, 3, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        tell(pair.target.actor, act_return, NULL, -100 - i);
        MUST_EQ(settle(pair.target.actor), 0);
    }
    await_downs(&pair); /* one: a watch is for one end */
    MUST_EQ(pair.seen.ends[0].error, -100);
    MUST(!pair.seen.ends[0].final);
    pair.seen.wanted = 2;
    janus_event_reset(&pair.seen.come);
    MUST_EQ(request(pair.watcher, act_watch, &pair.target, 4, NULL), JANUS_OK);
    tell(pair.target.actor, act_return, NULL, -200);
    await_downs(&pair);
    MUST_EQ(pair.seen.ends[1].incarnation, 4);
    MUST_EQ(pair.seen.tags[1], 4);
    close_stage(pair.stage);
    return 0;
}

TEST("a watch reports the end of one incarnation, not of those that follow")
{
    PLAY(scene_restarted);
}

/* Watch and end at the same time. */

static int64_t scene_race(void *argument)
{
    struct pair pair;
    (void)argument;
    open_pair(&pair, JANUS_RESTART_TEMPORARY, 4, NULL);
    for (int i = 0; i < 4; i++) {
        tell(pair.watcher, act_watch, &pair.target, i);
        if (i == 1) tell(pair.target.actor, act_return, NULL, -100);
    }
    await_downs(&pair);
    int seen = 0;
    for (int i = 0; i < 4; i++) seen |= 1 << pair.seen.tags[i];
    MUST_EQ(seen, 15); /* each once */
    for (int i = 0; i < 4; i++) {
        MUST(pair.seen.ends[i].kind == JANUS_END_KIND_FAILED ||
             pair.seen.ends[i].kind == JANUS_END_KIND_NEVER);
    }
    close_stage(pair.stage);
    return 0;
}

TEST("a watch made while the actor ends brings exactly one DOWN") { PLAY(scene_race); }

static int64_t scene_watch_the_dead(void *argument)
{
    struct pair pair;
    (void)argument;
    open_pair(&pair, JANUS_RESTART_TEMPORARY, 2, NULL);
    struct target nobody = {.actor = {{0, 0}}};
    tell(pair.target.actor, act_return, NULL, JANUS_ACTOR_STOP);
    (void)await_end(pair.target.actor);
    MUST_EQ(request(pair.watcher, act_watch, &pair.target, 1, NULL), JANUS_OK);
    MUST_EQ(request(pair.watcher, act_watch, &nobody, 2, NULL), JANUS_OK);
    await_downs(&pair);
    for (int i = 0; i < 2; i++) {
        MUST(pair.seen.ends[i].final);
        if (pair.seen.tags[i] == 2) MUST_EQ(pair.seen.ends[i].kind, JANUS_END_KIND_NEVER);
    }
    close_stage(pair.stage);
    return 0;
}

TEST("a watch of an actor that has ended brings DOWN at once, and of none NEVER")
{
    PLAY(scene_watch_the_dead);
}

/* Unwatch. */

static int64_t scene_unwatch(void *argument)
{
    struct pair pair;
    int64_t     status = 1;
    (void)argument;
    open_pair(&pair, JANUS_RESTART_TEMPORARY, 1, NULL);
    MUST_EQ(request(pair.watcher, act_watch, &pair.target, 1, NULL), JANUS_OK);
    tell(pair.target.actor, act_return, NULL, JANUS_ACTOR_STOP);
    MUST_EQ(request(pair.watcher, act_unwatch, &pair.target, 0, &status), JANUS_OK);
    int before = pair.seen.count;
    MUST_EQ(status, before == 1 ? JANUS_STALE : JANUS_OK);
    (void)await_end(pair.target.actor);
    MUST_EQ(settle(pair.watcher), 0);
    MUST_EQ(pair.seen.count, before); /* none after unwatch */
    MUST_EQ(request(pair.watcher, act_unwatch, &pair.target, 0, &status), JANUS_OK);
    MUST_EQ(status, JANUS_STALE);
    close_stage(pair.stage);
    return 0;
}

TEST("after unwatch no DOWN comes, even if the actor has ended meanwhile") { PLAY(scene_unwatch); }

static int64_t scene_watcher_restarts(void *argument)
{
    struct pair pair;
    (void)argument;
    open_pair(&pair, JANUS_RESTART_TEMPORARY, 1, NULL);
    MUST_EQ(request(pair.watcher, act_watch, &pair.target, 1, NULL), JANUS_OK);
    tell(pair.watcher, act_return, NULL, -100);
    MUST_EQ(settle(pair.watcher), 0);
    tell(pair.target.actor, act_return, NULL, JANUS_ACTOR_STOP);
    (void)await_end(pair.target.actor);
    MUST_EQ(settle(pair.watcher), 0);
    MUST_EQ(pair.seen.count, 0);
    close_stage(pair.stage);
    return 0;
}

TEST("a watch ends with the incarnation that made it") { PLAY(scene_watcher_restarts); }

/* Names. */

static int64_t scene_name_is_free(void *argument)
{
    struct pair pair;
    (void)argument;
    open_pair(&pair, JANUS_RESTART_TEMPORARY, 1, "mortal");
    pair.seen.name = "mortal";
    MUST_EQ(request(pair.watcher, act_watch, &pair.target, 1, NULL), JANUS_OK);
    tell(pair.target.actor, act_return, NULL, -100);
    await_downs(&pair);
    struct role heir = {0};
    (void)ADD(pair.stage, .argument = &heir, .options = JANUS_ACTOR_OPTIONS(.name = "mortal"));
    close_stage(pair.stage);
    return 0;
}

TEST("the name of an ended actor is free when its DOWN comes") { PLAY(scene_name_is_free); }

/* Two watchers of each other, and many of one. */

static int64_t scene_many_watchers(void *argument)
{
    struct role       watching[4], living = {0};
    struct seen       seen[4];
    struct target     targets[4];
    janus_actor       watchers[4];
    janus_supervisor *stage = open_stage();
    janus_actor       mortal = ADD(stage, .argument = &living, .restart = JANUS_RESTART_TEMPORARY);
    (void)argument;
    for (int i = 0; i < 4; i++) {
        seen_init(&seen[i], 1);
        watching[i] = (struct role){.notice = take_down, .stage = &seen[i]};
        watchers[i] = ADD(stage, .argument = &watching[i]);
        targets[i] = (struct target){.actor = mortal};
        MUST_EQ(request(watchers[i], act_watch, &targets[i], i, NULL), JANUS_OK);
    }
    MUST_EQ(janus_actor_stop(mortal, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_OK);
    for (int i = 0; i < 4; i++) {
        MUST_EQ(janus_event_wait(&seen[i].come), JANUS_OK);
        MUST_EQ(settle(watchers[i]), 0);
        MUST_EQ(seen[i].count, 1);
        MUST_EQ(seen[i].tags[0], i);
    }
    close_stage(stage);
    return 0;
}

TEST("every watcher of an actor gets its own DOWN") { PLAY(scene_many_watchers); }

static int64_t act_watch_too_many(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor me;
    (void)letter, (void)line;
    MUST_EQ(janus_actor_current(&me), JANUS_OK);
    for (int i = 0; i < 1024; i++) MUST_EQ(janus_actor_watch(me, 1, NULL), JANUS_OK);
    MUST_EQ(janus_actor_watch(me, 1, NULL), JANUS_FULL);
    note(self, 1);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_too_many(void *argument)
{
    struct role       role = {0};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    MUST_EQ(janus_actor_watch(actor, 1, NULL), JANUS_STATE); /* not in an actor */
    MUST_EQ(janus_actor_unwatch((janus_watch){{1, 1}}), JANUS_STATE);
    tell(actor, act_watch_too_many, NULL, 0);
    MUST_EQ(settle(actor), 0);
    LOGGED(&role, 1);
    close_stage(stage);
    return 0;
}

TEST("an actor has up to 1024 watches, and only actors watch")
{
    PLAY(scene_too_many, .schedules = 50);
}

/* Await. */

static int64_t await_one(void *argument)
{
    janus_end end = {.kind = JANUS_END_KIND_NEVER};
    MUST_EQ(janus_actor_await(*(janus_actor *)argument, &end, play_late()), JANUS_OK);
    MUST_EQ(end.kind, JANUS_END_KIND_FAILED);
    MUST_EQ(end.error, -100);
    MUST(end.final);
    return 0;
}

static int64_t scene_await(void *argument)
{
    struct role       role = {0};
    janus_status      ended;
    janus_end         end;
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role, .restart = JANUS_RESTART_TEMPORARY);
    (void)argument;
    MUST_EQ(janus_actor_await(actor, &end, janus_now_ns() + JANUS_SECONDS), JANUS_DEADLINE);
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 3; i++) MUST_EQ(janus_spawn(n, await_one, &actor), JANUS_OK);
        tell(actor, act_return, NULL, -100);
    }
    MUST_EQ(ended, JANUS_OK);
    MUST_EQ(janus_actor_await(actor, NULL, 1), JANUS_OK); /* its place is not used again */
    close_stage(stage);
    return 0;
}

TEST("any number of tasks await an actor, even after it has ended, and learn how")
{
    PLAY(scene_await, .timed = true);
}

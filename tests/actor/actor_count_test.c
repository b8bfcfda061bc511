/* SPDX-License-Identifier: MIT */
/* Every message ends in exactly one way: handled, returned, a dead letter, or it still lies in a
 * mailbox. A11.3, with everything that may happen to a message at once. */
#include "play.h"

enum { ACTORS = 2, TASKS = 3, STEPS = 12 };

/* What the handlers did, counted by themselves. */
struct tally {
    int64_t handled, aside;
};

struct crowd {
    struct role       roles[ACTORS];
    struct tally      tallies[ACTORS];
    janus_actor       actors[ACTORS];
    janus_supervisor *stage;
};

struct walker {
    struct crowd *crowd;
    uint64_t      state;
    uint64_t      sent[ACTORS]; /* casts that returned OK */
};

static uint64_t seed; /* of the play; a schedule must not change it */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

enum { DO_NOTE, DO_FAIL, DO_PANIC, DO_LATER, DO_TAKE_UP, DO_YIELD, DO_SLEEP, DOINGS };

static int64_t act_any(struct self *self, janus_letter *letter, const struct line *line)
{
    struct tally *tally = self->role->stage;
    if (line->number == DO_LATER && self->sum == 0) {
        tally->aside++;
        return JANUS_ACTOR_LATER;
    }
    tally->handled++;
    if (letter->block != NULL) janus_free(letter->block);
    if (line->number == DO_FAIL) return -100;
    if (line->number == DO_PANIC) janus_panic("by chance");
    if (line->number == DO_YIELD) JANUS_IGNORE(janus_yield());
    if (line->number == DO_SLEEP) JANUS_IGNORE(janus_sleep(2 * JANUS_MS));
    if (line->number == DO_TAKE_UP) {
        self->sum = 1;
        MUST_EQ(janus_actor_take_up(), JANUS_OK);
    }
    answer(letter, self->sum);
    return JANUS_ACTOR_GO_ON;
}

/* Messages that were put aside may fill the mailbox for ever, so a sender waits for a while. */
static janus_status cast_until(janus_actor actor, const struct line *line)
{
    return janus_cast_with(actor, line,
                           JANUS_CAST_OPTIONS(.deadline_ns = janus_now_ns() + 3 * JANUS_MS));
}

static janus_status cast_block(janus_actor actor, const struct line *line)
{
    void        *block = janus_detach(janus_alloc(100));
    janus_status status = janus_cast_with(
        actor, line,
        JANUS_CAST_OPTIONS(.block = block, .deadline_ns = janus_now_ns() + 3 * JANUS_MS));
    if (status != JANUS_OK) janus_discard(block);
    return status;
}

static void step(struct walker *walker)
{
    uint64_t     random = next_random(&walker->state);
    int          which = (int)(random % ACTORS);
    janus_actor  actor = walker->crowd->actors[which];
    struct line  line = {act_any, NULL, (int64_t)(random / 8 % DOINGS)};
    janus_status status = JANUS_WOULD_WAIT;
    switch (random / 256 % 5) {
    case 0: status = cast_until(actor, &line); break;
    case 1: status = janus_try_cast(actor, &line); break;
    case 2: status = cast_block(actor, &line); break;
    case 3: JANUS_IGNORE(janus_call(actor, &line, NULL, janus_now_ns() + JANUS_MS)); break;
    default: JANUS_IGNORE(janus_call(actor, &line, NULL, janus_now_ns() + 20 * JANUS_MS)); break;
    }
    walker->sent[which] += status == JANUS_OK;
    (void)look(actor); /* balanced at every step */
}

static int64_t walk(void *argument)
{
    struct walker *walker = argument;
    for (int i = 0; i < STEPS; i++) step(walker);
    return 0;
}

static void open_crowd(struct crowd *crowd, janus_overflow overflow)
{
    memset(crowd, 0, sizeof *crowd);
    crowd->stage = open_stage();
    for (int i = 0; i < ACTORS; i++) {
        crowd->roles[i].stage = &crowd->tallies[i];
        crowd->actors[i] =
            ADD(crowd->stage, .argument = &crowd->roles[i], .drops_mail = overflow != 0 && i == 1,
                .options = JANUS_ACTOR_OPTIONS(.max_messages = 3, .overflow = overflow));
    }
}

static janus_overflow overflow_of_play;

static int64_t scene_count(void *argument)
{
    struct crowd  crowd;
    struct walker walkers[TASKS];
    janus_status  ended;
    (void)argument;
    open_crowd(&crowd, overflow_of_play);
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < TASKS; i++) {
            walkers[i] = (struct walker){.crowd = &crowd,
                                         .state = (seed * TASKS + (uint64_t)i + 1) *
                                                  UINT64_C(0x9e3779b97f4a7c15)};
            MUST_EQ(janus_spawn(n, walk, &walkers[i]), JANUS_OK);
        }
    }
    MUST_EQ(ended, JANUS_OK);
    for (int i = 0; i < ACTORS; i++) {
        uint64_t casts = 0;
        for (int k = 0; k < TASKS; k++) casts += walkers[k].sent[i];
        MUST(look(crowd.actors[i]).sent >= casts);
    }
    /* All that lies there and nobody takes up dies. */
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    MUST_EQ(janus_supervisor_end(crowd.stage, &result), JANUS_OK);
    MUST_EQ(result.sent, result.handled + result.returned + result.dead);
    MUST_EQ(result.handled, crowd.tallies[0].handled + crowd.tallies[1].handled);
    return 0;
}

static void count_with(janus_overflow overflow)
{
    overflow_of_play = overflow;
    for (seed = 1; seed <= harness_part(20, 4); seed++) {
        PLAY(scene_count, .panics = true, .schedules = 50);
    }
}

TEST("what was sent was handled, returned or is dead, when senders wait for room")
{
    count_with(JANUS_OVERFLOW_BLOCK);
}

TEST("what was sent was handled, returned or is dead, when full mailboxes refuse")
{
    count_with(JANUS_OVERFLOW_FAIL);
}

TEST("what was sent was handled, returned or is dead, when full mailboxes drop")
{
    count_with(JANUS_OVERFLOW_DROP_OLDEST);
}

/* Dead letters of a place that ends, whatever lies there. */

static int64_t act_aside(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter, (void)line;
    return JANUS_ACTOR_LATER;
}

static int64_t scene_dead_letters(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY);
    for (int i = 0; i < 3; i++) tell(solo.actor, act_aside, NULL, 0);
    keep_busy(&solo, 1);
    for (int i = 0; i < 4; i++) tell(solo.actor, act_note, NULL, 2);
    janus_actor_info info = look(solo.actor);
    MUST_EQ(info.messages, 7); /* put aside and waiting; one is in hand */
    MUST_EQ(info.handled, 1);
    tell(solo.actor, act_panic, NULL, 0);
    let_go(&solo);
    await_kind(solo.actor, JANUS_END_KIND_PANICKED);
    janus_supervisor_result result = close_stage(solo.stage);
    MUST_EQ(result.sent, 9);
    MUST_EQ(result.handled, 6); /* the gate, four notes, the panic */
    MUST_EQ(result.dead, 3);    /* put aside */
    return 0;
}

TEST("messages that were put aside and never taken up are dead letters at the end")
{
    PLAY(scene_dead_letters, .panics = true);
}

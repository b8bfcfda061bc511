/* SPDX-License-Identifier: MIT */
/* Blocks that travel with messages: the payer, the owner, and blocks of messages that die. */
#include "play.h"

enum { BYTES = 1000 };

/* Makes a block and detaches it. */
static char *make_block(int number)
{
    char *block = janus_alloc(BYTES);
    MUST(block != NULL);
    memset(block, number, BYTES);
    block = janus_detach(block);
    MUST(block != NULL);
    return block;
}

static size_t live_bytes(void)
{
    janus_memory_info info = JANUS_MEMORY_INFO();
    MUST_EQ(janus_memory_inspect(&info), JANUS_OK);
    return info.live_bytes;
}

static janus_status send_block(janus_actor actor, play_act *act, int number, void *block)
{
    struct line line = {act, NULL, number};
    return janus_cast_with(actor, &line, JANUS_CAST_OPTIONS(.block = block));
}

/* Checks the block, and frees it if its number is even. */
static int64_t act_take_block(struct self *self, janus_letter *letter, const struct line *line)
{
    const char *block = letter->block;
    MUST(block != NULL);
    MUST(live_bytes() >= BYTES);
    for (int i = 0; i < BYTES; i++) MUST_EQ(block[i], line->number);
    if (line->number % 2 == 0) janus_free(letter->block);
    note(self, line->number);
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_no_block(struct self *self, janus_letter *letter, const struct line *line)
{
    MUST(letter->block == NULL);
    note(self, line->number);
    answer(letter, (int64_t)live_bytes());
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_travel(void *argument)
{
    struct solo solo = {.role = {0}};
    int64_t     before = 0, after = 0;
    size_t      mine = live_bytes();
    (void)argument;
    OPEN_SOLO(&solo);
    MUST_EQ(request(solo.actor, act_no_block, NULL, 100, &before), JANUS_OK);
    for (int i = 2; i <= 5; i++) {
        MUST_EQ(send_block(solo.actor, act_take_block, i, make_block(i)), JANUS_OK);
        MUST_EQ(live_bytes(), mine); /* it has left */
    }
    MUST_EQ(request(solo.actor, act_no_block, NULL, 101, &after), JANUS_OK);
    LOGGED(&solo.role, 100, 2, 3, 4, 5, 101);
    MUST_EQ(after - before, 2 * ((BYTES + 15) / 16 * 16)); /* 3 and 5 are the actor's */
    close_stage(solo.stage);
    return 0;
}

TEST("a detached block travels with a message, and is the actor's memory in the handler")
{
    PLAY(scene_travel);
}

/* Forwarding. */

static int64_t act_forward(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor *next = self->role->stage;
    if (next == NULL) return act_take_block(self, letter, line);
    size_t before = live_bytes();
    void  *block = janus_detach(letter->block);
    MUST(block != NULL);
    MUST_EQ(send_block(*next, act_forward, (int)line->number, block), JANUS_OK);
    MUST(live_bytes() + BYTES <= before);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_forward(void *argument)
{
    struct role       roles[3] = {0};
    janus_actor       actors[3];
    janus_supervisor *stage = open_stage();
    (void)argument;
    for (int i = 2; i >= 0; i--) {
        if (i < 2) roles[i].stage = &actors[i + 1];
        actors[i] = ADD(stage, .argument = &roles[i]);
    }
    for (int i = 0; i < 4; i++) {
        MUST_EQ(send_block(actors[0], act_forward, i, make_block(i)), JANUS_OK);
    }
    for (int i = 0; i < 3; i++) MUST_EQ(settle(actors[i]), 0);
    LOGGED(&roles[2], 0, 1, 2, 3);
    close_stage(stage);
    return 0;
}

TEST("an actor passes a block on with another message") { PLAY(scene_forward); }

/* Refusals: the block is still the caller's. */

static int64_t scene_refused(void *argument)
{
    struct solo solo = {.role = {0}};
    struct line line = {act_take_block, NULL, 2};
    size_t      mine = live_bytes();
    char       *block = make_block(2);
    (void)argument;
    OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    keep_busy(&solo, 0);
    tell(solo.actor, act_note, NULL, 1);
    MUST_EQ(janus_cast_with(solo.actor, &line, JANUS_CAST_OPTIONS(.block = block, .refuses = true)),
            JANUS_WOULD_WAIT);
    for (int i = 0; i < BYTES; i++) MUST_EQ(block[i], 2);
    janus_actor narrow;
    MUST_EQ(janus_actor_attenuate(solo.actor, JANUS_ACTOR_MAY_CALL, &narrow), JANUS_OK);
    MUST_EQ(send_block(narrow, act_take_block, 2, block), JANUS_CAP_RIGHT);
    let_go(&solo);
    MUST_EQ(settle(solo.actor), 0);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_OK);
    (void)await_end(solo.actor);
    MUST_EQ(send_block(solo.actor, act_take_block, 2, block), JANUS_STALE);
    for (int i = 0; i < BYTES; i++) MUST_EQ(block[i], 2);
    janus_discard(block);
    MUST_EQ(live_bytes(), mine);
    close_stage(solo.stage);
    return 0;
}

TEST("a cast that fails leaves the block with its sender, detached") { PLAY(scene_refused); }

static int64_t scene_max_bytes(void *argument)
{
    struct solo solo = {.role = {0}};
    struct line line = {act_take_block, NULL, 4};
    (void)argument;
    OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_bytes = 2500));
    keep_busy(&solo, 0);
    for (int i = 0; i < 2; i++) {
        MUST_EQ(send_block(solo.actor, act_take_block, 4, make_block(4)), JANUS_OK);
    }
    char        *third = make_block(4);
    janus_status status =
        janus_cast_with(solo.actor, &line, JANUS_CAST_OPTIONS(.block = third, .refuses = true));
    MUST(status == JANUS_FULL || status == JANUS_WOULD_WAIT);
    tell(solo.actor, act_note, NULL, 9); /* without a block there is room */
    let_go(&solo);
    MUST_EQ(settle(solo.actor), 0);
    MUST_EQ(send_block(solo.actor, act_take_block, 4, third), JANUS_OK);
    MUST_EQ(settle(solo.actor), 0);
    LOGGED(&solo.role, 0, 4, 4, 9, 4);
    char *large = janus_detach(janus_alloc(5000)); /* it never fits */
    MUST(large != NULL);
    MUST_EQ(send_block(solo.actor, act_take_block, 4, large), JANUS_FULL);
    janus_discard(large);
    close_stage(solo.stage);
    return 0;
}

TEST("blocks in a mailbox have at most max_bytes together") { PLAY(scene_max_bytes); }

/* Death. */

static int64_t scene_dead_blocks(void *argument)
{
    struct solo solo = {.role = {0}};
    size_t      mine = live_bytes();
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY);
    keep_busy(&solo, 0);
    for (int i = 0; i < 5; i++) {
        MUST_EQ(send_block(solo.actor, act_take_block, i, make_block(i)), JANUS_OK);
    }
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
    let_go(&solo);
    (void)await_end(solo.actor);
    MUST_EQ(close_stage(solo.stage).dead, 5);
    MUST_EQ(live_bytes(), mine);
    return 0;
}

/* The explorer finds a block that nobody frees. */
TEST("the library frees the blocks of messages that die") { PLAY(scene_dead_blocks); }

static int64_t act_fail_with_block(struct self *self, janus_letter *letter, const struct line *line)
{
    MUST(letter->block != NULL);
    note(self, line->number);
    return line->number % 2 == 0 ? -100 : JANUS_ACTOR_GO_ON;
}

static int64_t scene_restart_blocks(void *argument)
{
    struct solo solo = {.role = {0}};
    int64_t     fresh = 0, after = 0;
    (void)argument;
    OPEN_SOLO(&solo);
    MUST_EQ(request(solo.actor, act_no_block, NULL, 100, &fresh), JANUS_OK);
    keep_busy(&solo, 101);
    for (int i = 1; i <= 4; i++) {
        MUST_EQ(send_block(solo.actor, act_fail_with_block, i, make_block(i)), JANUS_OK);
    }
    let_go(&solo);
    MUST_EQ(request(solo.actor, act_no_block, NULL, 102, &after), JANUS_OK);
    LOGGED(&solo.role, 100, 101, 1, 2, 3, 4, 102);
    MUST_EQ(after, fresh); /* those of failed incarnations were freed */
    MUST_EQ(solo.role.starts, 3);
    close_stage(solo.stage);
    return 0;
}

TEST("a block that waits through a restart comes once, and ends with the incarnation that has it")
{
    PLAY(scene_restart_blocks);
}

static int64_t act_block_later(struct self *self, janus_letter *letter, const struct line *line)
{
    if (self->sum == 0) return JANUS_ACTOR_LATER;
    return act_take_block(self, letter, line);
}

static int64_t act_open_up(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)letter, (void)line;
    self->sum = 1;
    MUST_EQ(janus_actor_take_up(), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_later_blocks(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    for (int i = 0; i < 4; i++) {
        MUST_EQ(send_block(solo.actor, act_block_later, i, make_block(i)), JANUS_OK);
    }
    tell(solo.actor, act_return, NULL, -100); /* they survive a restart, too */
    tell(solo.actor, act_open_up, NULL, 0);
    MUST_EQ(settle(solo.actor), 1);
    LOGGED(&solo.role, 0, 1, 2, 3);
    close_stage(solo.stage);
    return 0;
}

TEST("a block is put aside with its message, and comes back with it") { PLAY(scene_later_blocks); }

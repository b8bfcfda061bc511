/* SPDX-License-Identifier: MIT */
/* Circles of calls and of full mailboxes are refused at once, by name; all else goes on. G11,
 * A11.6. */
#include "play.h"

enum { RING_MAX = 5 };

/* Actors that call each other. */
struct ring {
    struct role       roles[RING_MAX];
    janus_actor       actors[RING_MAX];
    janus_behaviour   behaviours[RING_MAX];
    janus_supervisor *stage;
    int               size, deadlocks;
    char              text[1000];
};

static const char *const names[RING_MAX] = {"ada", "bob", "cyd", "dan", "eve"};

static void open_ring(struct ring *ring, int size, uint32_t room)
{
    *ring = (struct ring){.size = size, .stage = open_stage()};
    for (int i = 0; i < size; i++) {
        ring->behaviours[i] = player;
        ring->behaviours[i].name = names[i];
        ring->roles[i].stage = ring;
        ring->actors[i] = add_child(
            ring->stage, JANUS_CHILD(.behaviour = &ring->behaviours[i], .argument = &ring->roles[i],
                                     .options = JANUS_ACTOR_OPTIONS(.max_messages = room)));
    }
}

static void check_names(const char *text, int from, int count)
{
    for (int i = from; i < from + count; i++) MUST(strstr(text, names[i]) != NULL);
}

/* Calls the next actor, which does the same. The call that closes the circle is refused. */
static int64_t act_chain(struct self *self, janus_letter *letter, const struct line *line)
{
    struct ring *ring = self->role->stage;
    int64_t      reply = 0;
    int          next = (int)(line->number + 1) % ring->size;
    janus_status status = request(ring->actors[next], act_chain, NULL, next, &reply);
    if (status == JANUS_DEADLOCK) {
        ring->deadlocks++;
        MUST(janus_explain(ring->text, sizeof ring->text) > 0);
        reply = 100;
    }
    MUST(status == JANUS_OK || status == JANUS_DEADLOCK);
    answer(letter, reply + 1);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_ring_of_calls(void *argument)
{
    (void)argument;
    for (int size = 1; size <= 4; size++) {
        struct ring ring;
        int64_t     reply = 0;
        open_ring(&ring, size, 0);
        uint64_t begin = janus_now_ns();
        MUST_EQ(request(ring.actors[0], act_chain, NULL, 0, &reply), JANUS_OK);
        MUST_EQ(reply, 100 + size); /* all others were answered */
        MUST_EQ(ring.deadlocks, 1);
        MUST(!play_explored || janus_now_ns() - begin < JANUS_SECONDS); /* no deadline passed */
        check_names(ring.text, 0, size);
        MUST(strstr(ring.text, "JANUS_DEADLOCK") != NULL);
        for (int i = 0; i < size; i++) MUST_EQ(settle(ring.actors[i]), 0);
        close_stage(ring.stage);
    }
    return 0;
}

TEST("the call that closes a circle of calls is DEADLOCK at once, and janus_explain has all names")
{
    PLAY(scene_ring_of_calls);
}

static int64_t act_call_myself(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor me;
    (void)letter, (void)line;
    MUST_EQ(janus_actor_current(&me), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        MUST_EQ(request(me, act_note, NULL, 1, NULL), JANUS_DEADLOCK);
    }
    MUST_EQ(say(me, act_note, NULL, 2), JANUS_OK); /* a cast makes no circle */
    note(self, 3);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_call_myself(void *argument)
{
    struct role       role = {0};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    tell(actor, act_call_myself, NULL, 0);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(settle(actor), 0);
    LOGGED(&role, 3, 2);
    close_stage(stage);
    return 0;
}

/* G11. */
TEST("an actor that calls itself gets DEADLOCK at once") { PLAY(scene_call_myself); }

/* Two calls that meet. */

static int64_t act_call_other(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_status status = request(*(janus_actor *)line->argument, act_add, NULL, 1, NULL);
    (void)letter;
    MUST(status == JANUS_OK || status == JANUS_DEADLOCK);
    note(self, status);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_two_calls_meet(void *argument)
{
    struct ring ring;
    int         refused = 0;
    (void)argument;
    open_ring(&ring, 2, 0);
    for (int i = 0; i < 2; i++) tell(ring.actors[i], act_call_other, &ring.actors[1 - i], 0);
    for (int i = 0; i < 2; i++) JANUS_IGNORE(settle(ring.actors[i]) == 0);
    for (int i = 0; i < 2; i++) {
        MUST_EQ(ring.roles[i].logged, 1);
        refused += ring.roles[i].log[0] == JANUS_DEADLOCK;
    }
    MUST(refused <= 1); /* the other one is answered */
    close_stage(ring.stage);
    return 0;
}

TEST("of two actors that call each other at most one is refused, and the other is answered")
{
    PLAY(scene_two_calls_meet);
}

/* Full mailboxes. */

/* Casts until the other mailbox is full, and once more. */
static int64_t act_flood(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor other = *(janus_actor *)line->argument;
    (void)letter;
    for (int i = 0; i < line->number; i++) {
        janus_status status = say(other, act_add, NULL, 1);
        MUST(status == JANUS_OK || status == JANUS_DEADLOCK);
        if (status == JANUS_OK) continue;
        char text[1000];
        MUST(janus_explain(text, sizeof text) > 0);
        check_names(text, 0, 2);
        note(self, status);
        break;
    }
    return JANUS_ACTOR_GO_ON;
}

static int floods_refused; /* in all schedules */

static int64_t scene_full_mailboxes(void *argument)
{
    struct ring ring;
    struct door gates[2];
    (void)argument;
    open_ring(&ring, 2, 2);
    for (int i = 0; i < 2; i++) {
        door_init(&gates[i]);
        tell(ring.actors[i], act_door, &gates[i], 0);
        await_inside(&gates[i]);
        tell(ring.actors[i], act_flood, &ring.actors[1 - i], 5);
    }
    for (int i = 0; i < 2; i++) janus_event_set(&gates[i].open);
    for (int i = 0; i < 2; i++) JANUS_IGNORE(settle(ring.actors[i]) == 0);
    for (int i = 0; i < 2; i++) JANUS_IGNORE(settle(ring.actors[i]) == 0);
    janus_supervisor_result result = close_stage(ring.stage);
    MUST_EQ(result.dead, 0);
    int refused = ring.roles[0].logged - 1 + ring.roles[1].logged - 1;
    MUST(refused <= 1); /* the cast that closed the circle */
    floods_refused += refused;
    return 0;
}

TEST("two actors with full mailboxes that cast to each other: one is refused by name, none hangs")
{
    PLAY(scene_full_mailboxes);
    CHECK(JRT_TSAN || floods_refused > 0);
}

static int64_t act_flood_myself(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor me;
    (void)letter;
    MUST_EQ(janus_actor_current(&me), JANUS_OK);
    for (int i = 0; i < 2; i++) MUST_EQ(say(me, act_note, NULL, i), JANUS_OK);
    MUST_EQ(say(me, act_note, NULL, 2), JANUS_DEADLOCK);
    note(self, 9);
    janus_event_set(line->argument);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_flood_myself(void *argument)
{
    struct ring ring;
    janus_event done;
    (void)argument;
    janus_event_init(&done, JANUS_WAKER_TASKS, "done");
    open_ring(&ring, 1, 2);
    tell(ring.actors[0], act_flood_myself, &done, 0);
    MUST_EQ(janus_event_wait(&done), JANUS_OK);
    MUST_EQ(settle(ring.actors[0]), 0);
    LOGGED(&ring.roles[0], 9, 0, 1);
    close_stage(ring.stage);
    return 0;
}

TEST("an actor that waits for room in its own mailbox gets DEADLOCK at once")
{
    PLAY(scene_flood_myself);
}

/* A call and a full mailbox in one circle: ada calls bob, and bob casts to ada. */

static int64_t act_cast_back(struct self *self, janus_letter *letter, const struct line *line)
{
    int64_t refused = 0;
    for (int i = 0; i < 4; i++) {
        janus_status status = say(*(janus_actor *)line->argument, act_add, NULL, 1);
        MUST(status == JANUS_OK || status == JANUS_DEADLOCK);
        refused += status == JANUS_DEADLOCK;
    }
    (void)self;
    answer(letter, refused);
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_call_bob(struct self *self, janus_letter *letter, const struct line *line)
{
    struct ring *ring = self->role->stage;
    int64_t      refused = 0;
    (void)letter;
    MUST_EQ(request(ring->actors[1], act_cast_back, &ring->actors[0], 0, &refused), JANUS_OK);
    note(self, refused);
    janus_event_set(line->argument);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_mixed(void *argument)
{
    struct ring ring;
    janus_event done;
    (void)argument;
    janus_event_init(&done, JANUS_WAKER_TASKS, "done");
    open_ring(&ring, 2, 2);
    tell(ring.actors[0], act_call_bob, &done, 0);
    MUST_EQ(janus_event_wait(&done), JANUS_OK);
    MUST_EQ(settle(ring.actors[0]), 2);
    LOGGED(&ring.roles[0], 2); /* two found room, two did not */
    close_stage(ring.stage);
    return 0;
}

TEST("a call and a wait for room make a circle, too") { PLAY(scene_mixed); }

/* A task between: a handler awaits a child task that calls back. */

struct through {
    janus_actor  actor;
    janus_status status;
};

static int64_t call_back(void *argument)
{
    struct through *through = argument;
    through->status = janus_call(through->actor, &(struct line){act_add, NULL, 1}, NULL,
                                 janus_now_ns() + JANUS_SECONDS);
    return 0;
}

static int64_t act_through_task(struct self *self, janus_letter *letter, const struct line *line)
{
    struct through *through = line->argument;
    janus_status    ended;
    (void)letter;
    JANUS_NURSERY(n, ended) { MUST_EQ(janus_spawn(n, call_back, through), JANUS_OK); }
    MUST_EQ(ended, JANUS_OK);
    note(self, 1);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_through_task(void *argument)
{
    struct ring    ring;
    struct through through;
    (void)argument;
    open_ring(&ring, 1, 0);
    through = (struct through){ring.actors[0], JANUS_OK};
    tell(ring.actors[0], act_through_task, &through, 0);
    JANUS_IGNORE(settle(ring.actors[0]) == 0);
    MUST(through.status == JANUS_DEADLOCK || through.status == JANUS_DEADLINE);
    close_stage(ring.stage);
    return 0;
}

TEST("a handler that awaits a task that calls the actor is found, or ends by the deadline")
{
    PLAY(scene_through_task, .timed = true);
}

/* No false alarms: an actor calls only those with larger numbers. */

struct graph {
    struct ring ring;
    uint64_t    state;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* `number`: the actor's own number, and random bits above. */
static int64_t act_downward(struct self *self, janus_letter *letter, const struct line *line)
{
    struct ring *ring = self->role->stage;
    int          me = (int)(line->number % 8);
    uint64_t     bits = (uint64_t)line->number / 8;
    int64_t      sum = 1;
    for (int i = me + 1; i < ring->size; i++, bits /= 2) {
        int64_t reply = 0;
        if (bits % 2 == 0) continue;
        MUST_EQ(request(ring->actors[i], act_downward, NULL, (int64_t)(bits / 2 * 8) + i, &reply),
                JANUS_OK);
        sum += reply;
    }
    answer(letter, sum);
    return JANUS_ACTOR_GO_ON;
}

static int64_t call_graph(void *argument)
{
    struct graph *graph = argument;
    for (int i = 0; i < 3; i++) {
        uint64_t bits = next_random(&graph->state) % 256;
        int      first = (int)(next_random(&graph->state) % (uint64_t)graph->ring.size);
        int64_t  reply = 0;
        MUST_EQ(request(graph->ring.actors[first], act_downward, NULL, (int64_t)(bits * 8) + first,
                        &reply),
                JANUS_OK);
        MUST(reply >= 1);
    }
    return 0;
}

static uint64_t graph_seed; /* a schedule must not change it */

static int64_t scene_no_false_alarm(void *argument)
{
    struct graph graph, tasks[3];
    janus_status ended;
    int          rounds = play_explored ? 1 : (int)harness_part(2000, 10);
    uint64_t     seed = graph_seed * 10000;
    (void)argument;
    open_ring(&graph.ring, RING_MAX, 3);
    for (int round = 0; round < rounds; round++) {
        JANUS_NURSERY(n, ended)
        {
            for (int i = 0; i < 3; i++) {
                tasks[i] = graph;
                tasks[i].state = ++seed * UINT64_C(0x9e3779b97f4a7c15);
                MUST_EQ(janus_spawn(n, call_graph, &tasks[i]), JANUS_OK);
            }
        }
        MUST_EQ(ended, JANUS_OK);
    }
    close_stage(graph.ring.stage);
    return 0;
}

TEST("random graphs of calls without a circle are all answered")
{
    for (graph_seed = 0; graph_seed < 10; graph_seed++) {
        PLAY(scene_no_false_alarm, .schedules = 100);
    }
}

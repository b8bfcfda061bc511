/* SPDX-License-Identifier: MIT */
/* Messages that an actor takes without the lock, [mail-window]: while senders wait for room, the
 * ring grows, a notice comes, or the actor ends. */
#include "../task/rig.h"

#include <janusrt/actor.h>
#include <janusrt/channel.h>
#include <janusrt/supervisor.h>

#define NEVER UINT64_MAX

enum { SENDERS = 4 };

struct note {
    int32_t  sender;
    uint32_t number;
};

struct book {
    uint32_t    seen[SENDERS]; /* the last number of each sender */
    uint64_t    handled;
    atomic_uint begun;   /* messages whose cast has begun */
    uint32_t    ahead;   /* the handler waits until this many more have begun */
    uint32_t    expects; /* messages in all */
    uint32_t    fails_at, stops_at, notices_at;
    uint32_t    notice_after; /* messages handled when the notice came */
    janus_actor self;
};

struct desk {
    struct book *book;
};

static int64_t sit_down(void *state, void *argument)
{
    struct desk *desk = state;
    desk->book = argument;
    return JANUS_ACTOR_GO_ON;
}

static int64_t read_note(void *state, janus_letter *letter)
{
    struct book       *book = ((struct desk *)state)->book;
    const struct note *note = letter->message;
    if (note == NULL) {
        book->notice_after = (uint32_t)book->handled;
        return JANUS_ACTOR_GO_ON;
    }
    CHECK_EQ(note->number, book->seen[note->sender] + 1); /* in order, none twice, none lost */
    book->seen[note->sender]++;
    book->handled++;
    if (book->ahead > 0) {
        uint64_t wanted = book->handled + book->ahead;
        if (wanted > book->expects) wanted = book->expects;
        while (atomic_load(&book->begun) < wanted) JANUS_IGNORE(janus_yield());
    }
    if (book->handled == book->notices_at) {
        janus_actor_timer timer;
        CHECK_EQ(janus_actor_after(1, 7, &timer), JANUS_OK);
        CHECK_EQ(janus_sleep(JANUS_MS), JANUS_OK);
    }
    if (book->handled == book->stops_at) CHECK_EQ(janus_actor_suspend(book->self), JANUS_OK);
    if (book->handled == book->fails_at) return -7;
    if (janus_letter_is_call(letter)) CHECK_EQ(janus_reply(letter, &book->handled), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour reader = {.struct_bytes = sizeof reader,
                                       .name = "reader",
                                       .state_bytes = sizeof(struct desk),
                                       .message_bytes = sizeof(struct note),
                                       .reply_bytes = sizeof(uint64_t),
                                       .init = sit_down,
                                       .handle = read_note};

static janus_supervisor *open_reader(struct book *book, uint32_t room)
{
    janus_supervisor *supervisor = NULL;
    CHECK_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    CHECK_EQ(janus_supervisor_add(supervisor,
                                  JANUS_CHILD(.behaviour = &reader, .argument = book,
                                              .options = JANUS_ACTOR_OPTIONS(.max_messages = room)),
                                  &book->self),
             JANUS_OK);
    return supervisor;
}

struct sender {
    struct book *book;
    int32_t      which;
    uint32_t     count;
};

static int64_t send_notes(void *argument)
{
    const struct sender *sender = argument;
    for (uint32_t i = 1; i <= sender->count; i++) {
        const struct note note = {sender->which, i};
        atomic_fetch_add(&sender->book->begun, 1);
        CHECK_EQ(janus_cast(sender->book->self, &note), JANUS_OK);
    }
    return 0;
}

/* All send at once; then a call, behind all messages. */
static void crowd(struct book *book, uint32_t each)
{
    struct sender senders[SENDERS];
    janus_status  ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < SENDERS; i++) {
            senders[i] = (struct sender){book, i, i == 0 ? each - 1 : each};
            CHECK_EQ(janus_spawn(n, send_notes, &senders[i]), JANUS_OK);
        }
    }
    CHECK_EQ(ended, JANUS_OK);
    uint64_t          handled = 0;
    const struct note last = {0, each};
    CHECK_EQ(janus_call(book->self, &last, &handled, NEVER), JANUS_OK);
    CHECK_EQ(handled, (uint64_t)each * SENDERS);
}

static int64_t play_order(void *argument)
{
    static const uint32_t rooms[] = {1, 2, 3, 64, 4096};
    (void)argument;
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
        struct book       book = {.expects = UINT32_MAX};
        janus_supervisor *supervisor = open_reader(&book, rooms[i]);
        crowd(&book, (uint32_t)rig_few(5000));
        CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    }
    return 0;
}

TEST("messages of four senders come in order, in rings of all sizes, while they grow")
{
    rig_all(play_order, NULL, 1);
}

/* The handler waits until a sender has filled the room and begun one cast more. The sender can do
 * so only if it goes on for each room that was made. */
static int64_t play_exact(void *argument)
{
    (void)argument;
    for (uint32_t room = 1; room <= 3; room++) {
        uint32_t          each = (uint32_t)rig_few(2000);
        struct book       book = {.ahead = room + 1, .expects = each - 1};
        janus_supervisor *supervisor = open_reader(&book, room);
        struct sender     sender = {&book, 0, each - 1};
        janus_status      ended;
        JANUS_NURSERY(n, ended) { CHECK_EQ(janus_spawn(n, send_notes, &sender), JANUS_OK); }
        CHECK_EQ(ended, JANUS_OK);
        uint64_t          handled = 0;
        const struct note last = {0, each};
        CHECK_EQ(janus_call(book.self, &last, &handled, NEVER), JANUS_OK);
        CHECK_EQ(handled, each);
        CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    }
    return 0;
}

TEST("a sender goes on for each room that was made, while the handler waits for it")
{
    rig_all(play_exact, NULL, 1);
}

/* Ten messages lie in the mailbox before the actor takes the first. */
static void send_ten(struct book *book)
{
    struct sender sender = {book, 0, 10};
    CHECK_EQ(send_notes(&sender), 0);
}

static janus_actor_info look_at(const struct book *book)
{
    janus_actor_info info = {.struct_bytes = sizeof info};
    CHECK_EQ(janus_actor_inspect(book->self, &info), JANUS_OK);
    return info;
}

static int64_t play_notice(void *argument)
{
    struct book       book = {.notices_at = 3};
    janus_supervisor *supervisor = open_reader(&book, 64);
    uint64_t          handled = 0;
    const struct note last = {0, 11};
    (void)argument;
    send_ten(&book);
    CHECK_EQ(janus_call(book.self, &last, &handled, NEVER), JANUS_OK);
    CHECK_EQ(book.notice_after, 3);
    CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    return 0;
}

TEST("a notice goes before the rest of a window") { rig_run(1, play_notice, NULL, 1); }

static int64_t play_suspend(void *argument)
{
    struct book       book = {.stops_at = 4};
    janus_supervisor *supervisor = open_reader(&book, 64);
    uint64_t          handled = 0;
    const struct note last = {0, 11};
    (void)argument;
    send_ten(&book);
    for (int i = 0; i < 100; i++) JANUS_IGNORE(janus_yield());
    CHECK_EQ(look_at(&book).messages, 6);
    CHECK_EQ(look_at(&book).handled, 4);
    CHECK_EQ(janus_actor_resume(book.self), JANUS_OK);
    CHECK_EQ(janus_call(book.self, &last, &handled, NEVER), JANUS_OK);
    CHECK_EQ(handled, 11);
    CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    return 0;
}

TEST("a suspended actor takes no more of its window, and all of it afterwards")
{
    rig_run(1, play_suspend, NULL, 1);
}

static int64_t play_failure(void *argument)
{
    struct book       book = {.fails_at = 5};
    janus_supervisor *supervisor = open_reader(&book, 64);
    uint64_t          handled = 0;
    const struct note last = {0, 11};
    (void)argument;
    send_ten(&book);
    CHECK_EQ(janus_call(book.self, &last, &handled, NEVER), JANUS_OK);
    CHECK_EQ(handled, 11);
    CHECK_EQ(look_at(&book).incarnation, 2);
    CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    return 0;
}

TEST("the next incarnation gets the rest of a window") { rig_all(play_failure, NULL, 1); }

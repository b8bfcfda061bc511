/* SPDX-License-Identifier: MIT */
/*
 * A client sends questions to a server, and has one channel for all answers. It gives up on its
 * first question when the deadline has passed. The late answer is then taken for that of the
 * second.
 */
#include "gallery.h"

struct inquiry {
    janus_channel questions, answers;
    janus_actor   server;
    janus_event   loaded;
    bool          mended;
};

/* What the answers need is loaded in about a millisecond. */
static int64_t load(void *argument)
{
    struct inquiry *inquiry = argument;
    JANUS_EXPECT(janus_sleep(JANUS_MS) == JANUS_OK);
    janus_event_set(&inquiry->loaded);
    return 0;
}

/* The answer is the question's square. */
static int64_t answer(struct inquiry *inquiry, int64_t question)
{
    JANUS_EXPECT(janus_event_wait(&inquiry->loaded) == JANUS_OK);
    return question * question;
}

static int64_t serve(void *argument)
{
    struct inquiry *inquiry = argument;
    int64_t         number;
    while (janus_channel_recv(inquiry->questions, &number) == JANUS_OK) {
        number = answer(inquiry, number);
        JANUS_EXPECT(janus_channel_send(inquiry->answers, &number) == JANUS_OK);
    }
    return 0;
}

static int64_t begin(void *state, void *argument)
{
    *(struct inquiry **)state = argument;
    return JANUS_ACTOR_GO_ON;
}

static int64_t handle(void *state, janus_letter *letter)
{
    int64_t number = answer(*(struct inquiry **)state, *(const int64_t *)letter->message);
    JANUS_IGNORE(janus_reply(letter, &number)); /* STALE: the client has given up */
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour server = {.struct_bytes = sizeof server,
                                       .name = "server",
                                       .state_bytes = sizeof(struct inquiry *),
                                       .message_bytes = sizeof(int64_t),
                                       .reply_bytes = sizeof(int64_t),
                                       .init = begin,
                                       .handle = handle};

static janus_status ask(const struct inquiry *inquiry, int64_t question, int64_t *out,
                        uint64_t within_ns)
{
    uint64_t deadline = janus_now_ns() + within_ns;
    if (inquiry->mended) return janus_call(inquiry->server, &question, out, deadline);
    JANUS_EXPECT(janus_channel_send(inquiry->questions, &question) == JANUS_OK);
    return janus_channel_recv_until(inquiry->answers, out, deadline);
}

static int64_t client(void *argument)
{
    struct inquiry *inquiry = argument;
    int64_t         number = 0;
    janus_status    status = ask(inquiry, 2, &number, JANUS_MS);
    JANUS_EXPECT(status == JANUS_DEADLINE || (status == JANUS_OK && number == 4));
    JANUS_EXPECT(ask(inquiry, 3, &number, JANUS_SECONDS) == JANUS_OK);
    JANUS_EXPECT(number == 9);
    return janus_channel_close(inquiry->questions);
}

static int64_t late_reply(void *mended)
{
    struct inquiry    inquiry = {.mended = mended != NULL};
    janus_supervisor *supervisor;
    janus_event_init(&inquiry.loaded, JANUS_WAKER_TASKS, "loaded");
    JANUS_EXPECT(janus_channel_create(sizeof(int64_t), 2, NULL, &inquiry.questions) == JANUS_OK);
    JANUS_EXPECT(janus_channel_create(sizeof(int64_t), 2, NULL, &inquiry.answers) == JANUS_OK);
    JANUS_EXPECT(janus_supervisor_open(NULL, &supervisor) == JANUS_OK);
    JANUS_EXPECT(janus_supervisor_add(supervisor,
                                      JANUS_CHILD(.behaviour = &server, .argument = &inquiry),
                                      &inquiry.server) == JANUS_OK);
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        JANUS_EXPECT(janus_spawn(n, load, &inquiry) == JANUS_OK);
        JANUS_EXPECT(janus_spawn(n, serve, &inquiry) == JANUS_OK);
        JANUS_EXPECT(janus_spawn(n, client, &inquiry) == JANUS_OK);
    }
    JANUS_EXPECT(janus_supervisor_end(supervisor, NULL) == JANUS_OK);
    (void)janus_channel_destroy(inquiry.questions);
    (void)janus_channel_destroy(inquiry.answers);
    return status;
}

const struct gallery_bug gallery_late_reply = {
    "late_reply", "the right to answer is used again: a late answer is taken for the next",
    late_reply};

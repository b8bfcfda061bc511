/* SPDX-License-Identifier: MIT */
/*
 * A server ends when its work is done. Its supervisor starts it again, and its init says that there
 * is nothing to do. The supervisor then forgets the server, but leaves its mailbox open. A client
 * that comes late waits for an answer.
 */
#include "gallery.h"

enum { ROOM = 2, CLIENTS = 2 };

struct desk {
    janus_channel questions, answers;
    atomic_int    left; /* answers to give, then there is nothing to do */
    bool          mended;
};

/* One life. False: init had nothing to do. */
static bool live(struct desk *desk)
{
    int question, none = -1;
    if (atomic_load(&desk->left) == 0) { /* IGNORE */
        if (!desk->mended) return false;
        (void)janus_channel_close(desk->questions);
        while (janus_channel_try_recv(desk->questions, &question) == JANUS_OK)
            JANUS_EXPECT(janus_channel_send(desk->answers, &none) == JANUS_OK);
        return false;
    }
    JANUS_EXPECT(janus_channel_recv(desk->questions, &question) == JANUS_OK);
    JANUS_EXPECT(janus_channel_send(desk->answers, &question) == JANUS_OK);
    atomic_fetch_sub(&desk->left, 1);
    return true;
}

static int64_t supervise(void *argument)
{
    while (live(argument)) {
    }
    return 0;
}

static int64_t client(void *argument)
{
    struct desk *desk = argument;
    int          question = 1, answer;
    if (atomic_load(&desk->left) == 0) return 0; /* it is closed */
    janus_status status = janus_channel_send(desk->questions, &question);
    if (status == JANUS_CLOSED) return 0;
    JANUS_EXPECT(status == JANUS_OK);
    return janus_channel_recv(desk->answers, &answer);
}

static int64_t ignored_place(void *mended)
{
    struct desk  desk = {.left = 1, .mended = mended != NULL};
    janus_status status;
    JANUS_EXPECT(janus_channel_create(sizeof(int), ROOM, NULL, &desk.questions) == JANUS_OK);
    JANUS_EXPECT(janus_channel_create(sizeof(int), ROOM, NULL, &desk.answers) == JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        JANUS_EXPECT(janus_spawn(n, supervise, &desk) == JANUS_OK);
        for (int i = 0; i < CLIENTS; i++) {
            JANUS_EXPECT(janus_spawn(n, client, &desk) == JANUS_OK);
            JANUS_IGNORE(janus_yield());
        }
    }
    (void)janus_channel_destroy(desk.questions);
    (void)janus_channel_destroy(desk.answers);
    return status;
}

const struct gallery_bug gallery_ignored_place = {
    "ignored_place", "init has nothing to do at a restart, and the mailbox stays open",
    ignored_place};

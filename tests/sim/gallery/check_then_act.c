/* SPDX-License-Identifier: MIT */
/*
 * The first task that needs a connection makes it, and there is a licence for one. Two tasks that
 * need it at the same time both find that there is no connection.
 */
#include "gallery.h"

struct client {
    janus_semaphore licences;
    janus_once      once;
    atomic_bool     connected;
    bool            mended;
};

static int64_t connect(void *argument)
{
    struct client *client = argument;
    JANUS_EXPECT(janus_semaphore_try_acquire(&client->licences) == JANUS_OK);
    atomic_store(&client->connected, true);
    return 0;
}

static int64_t query(void *argument)
{
    struct client *client = argument;
    if (client->mended) {
        JANUS_EXPECT(janus_once_call(&client->once, connect, client, NULL) == JANUS_OK);
    } else if (!atomic_load(&client->connected)) {
        (void)connect(client);
    }
    JANUS_EXPECT(atomic_load(&client->connected));
    return 0;
}

static int64_t check_then_act(void *mended)
{
    struct client client = {
        .licences = JANUS_SEMAPHORE_INIT(1, JANUS_WAKER_TASKS, "licences"),
        .once = JANUS_ONCE_INIT("connection"),
        .mended = mended != NULL,
    };
    return gallery_both(query, query, &client);
}

const struct gallery_bug gallery_check_then_act = {
    "check_then_act", "what is made once, when it is first needed, is made twice", check_then_act};

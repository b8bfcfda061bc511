/* SPDX-License-Identifier: MIT */
/*
 * A mailbox with room for one letter, by hand: a lock, and a condition on which senders wait for
 * room. When its owner ends, it wakes one sender. The other waits for ever.
 */
#include "gallery.h"

enum { SENDERS = 3 };

struct mailbox {
    janus_mutex     lock;
    janus_condition room, mail;
    int             letters;
    bool            closed, mended;
};

static int64_t sender(void *argument)
{
    struct mailbox *box = argument;
    JANUS_EXPECT(janus_mutex_lock(&box->lock) == JANUS_OK);
    janus_status status = JANUS_OK;
    while (status == JANUS_OK && box->letters > 0 && !box->closed) {
        status = janus_condition_wait(&box->room, &box->lock);
    }
    if (status == JANUS_OK && !box->closed) {
        box->letters++;
        janus_condition_signal(&box->mail);
    }
    (void)janus_mutex_unlock(&box->lock);
    return status;
}

/* Handles one letter, then ends. */
static int64_t owner(void *argument)
{
    struct mailbox *box = argument;
    JANUS_EXPECT(janus_mutex_lock(&box->lock) == JANUS_OK);
    while (box->letters == 0) {
        JANUS_EXPECT(janus_condition_wait(&box->mail, &box->lock) == JANUS_OK);
    }
    box->letters--;
    box->closed = true;
    if (box->mended) {
        janus_condition_broadcast(&box->room);
    } else {
        janus_condition_signal(&box->room);
    }
    (void)janus_mutex_unlock(&box->lock);
    return 0;
}

static int64_t deaf_sender(void *mended)
{
    struct mailbox box = {.lock = JANUS_MUTEX_INIT("mailbox"),
                          .room = JANUS_CONDITION_INIT(JANUS_WAKER_TASKS, "room"),
                          .mail = JANUS_CONDITION_INIT(JANUS_WAKER_TASKS, "mail"),
                          .mended = mended != NULL};
    janus_status   status;
    JANUS_NURSERY(n, status)
    {
        JANUS_EXPECT(janus_spawn(n, owner, &box) == JANUS_OK);
        for (int i = 0; i < SENDERS; i++) {
            JANUS_EXPECT(janus_spawn(n, sender, &box) == JANUS_OK);
            JANUS_IGNORE(janus_yield());
        }
    }
    return status;
}

const struct gallery_bug gallery_deaf_sender = {
    "deaf_sender", "a sender that waits for room is not woken when the mailbox ends", deaf_sender};

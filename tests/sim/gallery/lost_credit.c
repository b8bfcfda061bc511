/* SPDX-License-Identifier: MIT */
/*
 * A sender needs a credit for each letter, and the receiver gives it back when it has handled the
 * letter. A receiver that is cancelled in the middle of a letter gives none back. After enough
 * restarts the sender waits for ever.
 */
#include "gallery.h"

enum { CREDITS = 1, LETTERS = 3 };

struct line {
    janus_channel   letters;
    janus_semaphore credits;
    janus_event     begun;
    bool            mended;
};

static void give_back(void *argument)
{
    struct line *line = argument;
    (void)janus_semaphore_release(&line->credits, 1);
}

/* Takes one letter, and needs a while for it. */
static janus_status handle(struct line *line)
{
    int          letter;
    janus_status status = janus_channel_recv(line->letters, &letter);
    if (status != JANUS_OK) return status;
    janus_event_set(&line->begun);
    if (line->mended) give_back(line); /* as soon as the letter has left the queue */
    status = janus_yield();
    if (status == JANUS_OK && !line->mended) give_back(line);
    return status;
}

static int64_t receive(void *argument)
{
    janus_status status;
    while ((status = handle(argument)) == JANUS_OK) {
    }
    return status == JANUS_CLOSED ? 0 : status;
}

static int64_t send(void *argument)
{
    struct line *line = argument;
    for (int i = 0; i < LETTERS; i++) {
        janus_status status = janus_semaphore_acquire(&line->credits);
        if (status != JANUS_OK) return status;
        JANUS_EXPECT(janus_channel_send(line->letters, &i) == JANUS_OK);
    }
    return janus_channel_close(line->letters);
}

/* The first life of the receiver is ended in the middle; the second goes on. */
static int64_t supervise(void *argument)
{
    struct line  *line = argument;
    janus_nursery life;
    JANUS_EXPECT(janus_nursery_open(&life, JANUS_NURSERY_OPTIONS(.owner_apart = true)) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&life, receive, line) == JANUS_OK);
    JANUS_EXPECT(janus_event_wait(&line->begun) == JANUS_OK);
    (void)janus_nursery_cancel(&life);
    JANUS_IGNORE(janus_nursery_end(&life, NULL));
    return receive(line);
}

static int64_t lost_credit(void *mended)
{
    struct line line = {.mended = mended != NULL};
    janus_semaphore_init(&line.credits, CREDITS, JANUS_WAKER_TASKS, "credits");
    janus_event_init(&line.begun, JANUS_WAKER_TASKS, "begun");
    JANUS_EXPECT(janus_channel_create(sizeof(int), CREDITS, NULL, &line.letters) == JANUS_OK);
    janus_status status = gallery_both(send, supervise, &line);
    (void)janus_channel_destroy(line.letters);
    return status;
}

const struct gallery_bug gallery_lost_credit = {
    "lost_credit", "a receiver that is restarted in the middle of a letter gives no credit back",
    lost_credit};

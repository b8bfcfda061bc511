/* SPDX-License-Identifier: MIT */
/*
 * A task asks two servers, and the first answer counts. If one answer is there at once, the task
 * returns at once. The nursery is still open then, and the other server is still about to answer.
 */
#include "gallery.h"

struct question {
    janus_channel answers;
    bool          mended;
};

static int64_t server(void *argument)
{
    struct question *question = argument;
    int              answer = 42;
    return janus_channel_send(question->answers, &answer);
}

static int64_t ask(void *argument)
{
    struct question *question = argument;
    janus_nursery    nursery;
    int              answer = 0;
    JANUS_EXPECT(janus_nursery_open(&nursery, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, server, question) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, server, question) == JANUS_OK);
    if (janus_channel_try_recv(question->answers, &answer) == JANUS_OK && !question->mended) {
        return answer == 42 ? 0 : -1;
    }
    if (answer == 0) JANUS_EXPECT(janus_channel_recv(question->answers, &answer) == JANUS_OK);
    (void)janus_nursery_cancel(&nursery);
    JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    return answer == 42 ? 0 : -1;
}

static int64_t forgotten_await(void *mended)
{
    struct question question = {.mended = mended != NULL};
    int64_t         status = 0;
    JANUS_EXPECT(janus_channel_create(sizeof(int), 2, NULL, &question.answers) == JANUS_OK);
    janus_status ended;
    JANUS_NURSERY(nursery, ended)
    {
        janus_task_id task;
        JANUS_EXPECT(janus_spawn_with(nursery, ask, &question, NULL, &task) == JANUS_OK);
        JANUS_IGNORE(janus_join(nursery, task, &status));
    }
    JANUS_EXPECT(ended == JANUS_OK && status == 0);
    return janus_channel_destroy(question.answers);
}

const struct gallery_bug gallery_forgotten_await = {
    "forgotten_await", "a short way out of a function that has children", forgotten_await};

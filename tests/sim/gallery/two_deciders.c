/* SPDX-License-Identifier: MIT */
/*
 * Two workers fail with a job in hand. A worker that expects to be started again puts its job back
 * for its next life. Its supervisor decides by itself, and starts only one worker again.
 */
#include "gallery.h"

enum { WORKERS = 2, LIMIT = 1 };

struct factory {
    janus_channel jobs, failures; /* a failure: the job in hand, or none */
    atomic_int    restarts;
    int           done, given_up;
    bool          mended;
};

enum { NONE = -1 };

/* Fails with its first job. */
static int64_t fail(void *argument)
{
    struct factory *factory = argument;
    int             job;
    JANUS_EXPECT(janus_channel_recv(factory->jobs, &job) == JANUS_OK);
    bool again = !factory->mended && atomic_load(&factory->restarts) < LIMIT;
    if (again) {
        JANUS_EXPECT(janus_channel_send(factory->jobs, &job) == JANUS_OK);
        job = NONE;
    }
    return janus_channel_send(factory->failures, &job);
}

/* The life after a restart: does one job. */
static int64_t work(void *argument)
{
    struct factory *factory = argument;
    int             job;
    JANUS_EXPECT(janus_channel_recv(factory->jobs, &job) == JANUS_OK);
    factory->done++;
    return 0;
}

/* Decides about each failure. */
static int64_t supervise(void *argument)
{
    struct factory *factory = argument;
    janus_status    status;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < WORKERS; i++) {
            int job;
            JANUS_EXPECT(janus_channel_recv(factory->failures, &job) == JANUS_OK);
            bool again = atomic_load(&factory->restarts) < LIMIT;
            if (job != NONE && !again) factory->given_up++;
            if (!again) continue;
            atomic_fetch_add(&factory->restarts, 1);
            if (job != NONE) JANUS_EXPECT(janus_channel_send(factory->jobs, &job) == JANUS_OK);
            JANUS_EXPECT(janus_spawn(n, work, factory) == JANUS_OK);
        }
    }
    return status;
}

static int64_t two_deciders(void *mended)
{
    struct factory factory = {.mended = mended != NULL};
    janus_status   status;
    JANUS_EXPECT(janus_channel_create(sizeof(int), WORKERS, NULL, &factory.jobs) == JANUS_OK);
    JANUS_EXPECT(janus_channel_create(sizeof(int), WORKERS, NULL, &factory.failures) == JANUS_OK);
    for (int i = 0; i < WORKERS; i++)
        JANUS_EXPECT(janus_channel_send(factory.jobs, &i) == JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        JANUS_EXPECT(janus_spawn(n, supervise, &factory) == JANUS_OK);
        for (int i = 0; i < WORKERS; i++) {
            JANUS_EXPECT(janus_spawn(n, fail, &factory) == JANUS_OK);
            JANUS_IGNORE(janus_yield());
        }
    }
    JANUS_EXPECT(status == JANUS_OK && factory.done + factory.given_up == WORKERS);
    (void)janus_channel_destroy(factory.failures);
    return janus_channel_destroy(factory.jobs);
}

const struct gallery_bug gallery_two_deciders = {
    "two_deciders", "a child and its supervisor both decide whether it is started again",
    two_deciders};

/* SPDX-License-Identifier: MIT */
/*
 * A nursery and a channel that live together: when the children have ended, the channel ends too. A
 * reporter is started beside the nursery instead of inside it. It checks whether the channel still
 * exists, and then reports. The nursery may end in between.
 */
#include "gallery.h"

struct scope {
    janus_channel reports;
    atomic_bool   alive;
    bool          mended;
};

static int64_t reporter(void *argument)
{
    struct scope *scope = argument;
    int           report = 1;
    if (!atomic_load(&scope->alive)) return 0;
    JANUS_EXPECT(janus_channel_try_send(scope->reports, &report) == JANUS_OK);
    return 0;
}

static int64_t work(void *argument)
{
    (void)argument;
    return janus_yield();
}

static void run(struct scope *scope, janus_nursery *outer)
{
    janus_nursery inner;
    JANUS_EXPECT(janus_nursery_open(&inner, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_channel_create(sizeof(int), 1, NULL, &scope->reports) == JANUS_OK);
    atomic_store(&scope->alive, true);
    JANUS_EXPECT(janus_spawn(scope->mended ? &inner : outer, reporter, scope) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&inner, work, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_nursery_end(&inner, NULL) == JANUS_OK);
    atomic_store(&scope->alive, false);
    (void)janus_channel_destroy(scope->reports);
}

static int64_t use_after_end(void *mended)
{
    struct scope  scope = {.mended = mended != NULL};
    janus_nursery outer;
    JANUS_EXPECT(janus_nursery_open(&outer, NULL) == JANUS_OK);
    run(&scope, &outer);
    return janus_nursery_end(&outer, NULL);
}

const struct gallery_bug gallery_use_after_end = {
    "use_after_end", "what ends with a nursery is used by a task outside of it", use_after_end};

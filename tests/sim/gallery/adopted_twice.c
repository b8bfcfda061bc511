/* SPDX-License-Identifier: MIT */
/*
 * An actor keeps the block that it works on where its next life finds it. It may be cancelled after
 * it has adopted the block and before it has cleared that place. Its next life then adopts a block
 * that was freed with the first.
 */
#include "gallery.h"

enum { BYTES = 100 };

struct desk {
    _Atomic(void *) block; /* detached; NULL: nothing to do */
    int             taken;
    bool            mended;
};

/* Works on the block, if there is one. */
static int64_t work(void *argument)
{
    struct desk *desk = argument;
    void *block = desk->mended ? atomic_exchange(&desk->block, NULL) : atomic_load(&desk->block);
    if (block == NULL) return 0;
    JANUS_EXPECT(janus_adopt(block) == JANUS_OK);
    desk->taken++;
    if (janus_yield() != JANUS_OK) return JANUS_CANCELLED;
    atomic_store(&desk->block, NULL);
    return 0;
}

static int64_t adopted_twice(void *mended)
{
    struct desk   desk = {.mended = mended != NULL};
    janus_nursery life;
    void         *block = janus_alloc(BYTES);
    JANUS_EXPECT(block != NULL);
    block = janus_detach(block);
    JANUS_EXPECT(block != NULL);
    atomic_store(&desk.block, block);
    JANUS_EXPECT(janus_nursery_open(&life, JANUS_NURSERY_OPTIONS(.owner_apart = true)) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&life, work, &desk) == JANUS_OK);
    janus_point();
    (void)janus_nursery_cancel(&life);
    JANUS_IGNORE(janus_nursery_end(&life, NULL));
    JANUS_EXPECT(work(&desk) == 0); /* the next life */
    JANUS_EXPECT(desk.taken == 1);
    return 0;
}

const struct gallery_bug gallery_adopted_twice = {
    "adopted_twice", "a restart hands over a block that the last life had taken", adopted_twice};

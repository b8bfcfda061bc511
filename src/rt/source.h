/* SPDX-License-Identifier: MIT */
/*
 * What a select can wait for besides channels: the interface between selects and rooms above them.
 *
 * A select joins a source with a lookout, which lies in its case, and leaves it before it returns.
 * When the source becomes ready it claims each lookout in its queue, and wakes those that it
 * claimed. A claim succeeds at most once for each select, as [chan-claim] says of channels.
 */
#ifndef JRT_RT_SOURCE_H
#define JRT_RT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

enum { JRT_LOOKOUT_WORDS = 8 };

struct jrt_lookout {
    uint64_t room[JRT_LOOKOUT_WORDS]; /* the source's, from join to leave */
    bool     (*claim)(struct jrt_lookout *lookout);
    void     (*wake)(struct jrt_lookout *lookout); /* once, after a claim that succeeded */
    void    *party;                                /* who selects */
    uint32_t index;                                /* of the case */
};

struct janus_select_source {
    bool (*is_ready)(void *object);
    /* False: it is ready, and was not joined. *outside: others than tasks of the scheduler may
     * make it ready. */
    bool (*join)(void *object, struct jrt_lookout *lookout, bool *outside);
    /* When it returns the source has touched the lookout for the last time. */
    void (*leave)(void *object, struct jrt_lookout *lookout);
};

#endif

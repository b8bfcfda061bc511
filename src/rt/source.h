/* SPDX-License-Identifier: MIT */
/*
 * What a select can wait for besides channels: the interface between selects and rooms above them.
 *
 * A select joins a source with a lookout, which lies in its case, and leaves it before it returns.
 * A source that becomes ready claims each lookout in its queue, and wakes those that it claimed. A
 * claim succeeds at most once for each select, as [chan-claim] demands of channels.
 */
#ifndef JRT_RT_SOURCE_H
#define JRT_RT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

enum { JRT_LOOKOUT_WORDS = 8 };

struct jrt_lookout {
    uint64_t room[JRT_LOOKOUT_WORDS]; /* the source's memory, from join to leave */
    bool     (*claim)(struct jrt_lookout *lookout);
    void     (*wake)(struct jrt_lookout *lookout); /* once, after a successful claim */
    void    *party;                                /* the selecting task or thread */
    uint32_t index;                                /* the case's number */
};

struct janus_select_source {
    bool (*is_ready)(void *object);
    /* False: the source is ready, and was not joined. *outside: not only tasks of the scheduler can
     * make it ready. */
    bool (*join)(void *object, struct jrt_lookout *lookout, bool *outside);
    /* After it returns, the source never touches the lookout again. */
    void (*leave)(void *object, struct jrt_lookout *lookout);
};

#endif

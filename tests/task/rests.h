/* SPDX-License-Identifier: MIT */
/* Helpers for tests of resting tasks: a task that follows a script, and a reader of a channel. */
#ifndef JANUSRT_TESTS_TASK_RESTS_H
#define JANUSRT_TESTS_TASK_RESTS_H

#include "rig.h"

/* A task that does what a list says. `log` has the statuses that its steps got. */

enum { STEPS_MAX = 8 };

struct script {
    janus_rest   rests[STEPS_MAX]; /* after step i */
    janus_status log[STEPS_MAX];
    int          steps;
    int          item;
    void         (*act)(struct script *self); /* in each step, or NULL */
};

static inline janus_rest follow(void *state, janus_status woke)
{
    struct script *self = state;
    CHECK(self->steps < STEPS_MAX);
    self->log[self->steps] = woke;
    if (self->act != NULL) self->act(self);
    return self->rests[self->steps++];
}

/* The script's only resting child, in a nursery of its own. */
static inline janus_status play(struct script *script, janus_rest first,
                                const janus_spawn_options *options, janus_nursery_result *out)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    janus_status status = janus_spawn_resting(&n, first, follow, script, options, NULL);
    if (status != JANUS_OK) {
        CHECK_EQ(janus_nursery_end(&n, out), JANUS_OK);
        return status;
    }
    return janus_nursery_end(&n, out);
}

static inline uint64_t in_ms(uint64_t ms) { return janus_now_ns() + ms * rig_ms; }

/* Receives numbers until the channel is closed. */
struct reader {
    janus_channel channel;
    uint64_t      item, sum, steps;
    janus_status  last;
};

static inline janus_rest read_on(void *state, janus_status woke)
{
    struct reader *self = state;
    self->steps++;
    self->last = woke;
    if (woke != JANUS_OK) return janus_rest_done(woke == JANUS_CLOSED ? 0 : woke);
    self->sum += self->item;
    return janus_rest_recv(self->channel, &self->item);
}

#endif

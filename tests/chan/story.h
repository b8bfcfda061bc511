/* SPDX-License-Identifier: MIT */
/*
 * Whether what several parties saw of two channels has a story. That is their operations one at a
 * time, each party's in its order, with the same results on a plain queue. In a channel without
 * room a send and a receive happen together. Without room a send waits, is refused, or drops the
 * oldest value, as the channel's `overflow` says. A cancelled or late operation has done nothing.
 * What is left at the end is the story's end. If `timed`, operations that did not overlap keep
 * their order in the story.
 *
 *     s send   r receive   S try to send   R try to receive   c close   x select   X try to select
 */
#ifndef JANUSRT_TESTS_CHAN_STORY_H
#define JANUSRT_TESTS_CHAN_STORY_H

#include <janusrt/janus.h>
#include <string.h>

enum { STORY_PARTIES = 4, STORY_OPS = 4, STORY_CHANNELS = 2, STORY_CASES = 3, STORY_ITEMS = 24 };

struct op {
    char       verb;
    int        channel;
    int        value; /* to send */
    struct op *cases; /* of a select: s and r */
    int        count;
    uint64_t   deadline_ns; /* of a wait; 0: no deadline */
    /* The result. */
    janus_status status;
    size_t       chosen;
    int64_t      got;
    unsigned     began, ended;
};

static struct {
    uint64_t       capacity[STORY_CHANNELS];
    janus_overflow overflow[STORY_CHANNELS];
    bool           unbounded[STORY_CHANNELS]; /* its capacity is then what its bytes allow */
    struct op      ops[STORY_PARTIES][STORY_OPS];
    int            counts[STORY_PARTIES], parties;
    bool           timed;
    /* At the end: */
    int64_t left[STORY_CHANNELS][STORY_ITEMS];
    int     left_count[STORY_CHANNELS];
    int     dropped[STORY_CHANNELS];
    bool    closed[STORY_CHANNELS];
} story;

static janus_channel story_channels[STORY_CHANNELS];

static inline void story_open(bool outside)
{
    for (int c = 0; c < STORY_CHANNELS; c++) {
        janus_channel_options options = {.struct_bytes = sizeof options,
                                         .overflow = story.overflow[c],
                                         .outside = outside,
                                         .kept = true};
        janus_status          status =
            story.unbounded[c]
                         ? janus_channel_create_unbounded(8, story.capacity[c] * 8, &options,
                                                          &story_channels[c])
                         : janus_channel_create(8, story.capacity[c], &options, &story_channels[c]);
        CHECK_EQ(status, JANUS_OK);
    }
}

/* Doing it. */

static inline janus_status story_select(struct op *op, bool waits)
{
    janus_select_case cases[STORY_CASES];
    int64_t           values[STORY_CASES] = {0};
    for (int i = 0; i < op->count; i++) {
        values[i] = op->cases[i].value;
        cases[i] = (janus_select_case){.channel = story_channels[op->cases[i].channel],
                                       .kind = op->cases[i].verb == 's' ? JANUS_SELECT_KIND_SEND
                                                                        : JANUS_SELECT_KIND_RECV,
                                       .value = &values[i]};
    }
    uint64_t     until = op->deadline_ns != 0 ? op->deadline_ns : UINT64_MAX;
    janus_status status = waits ? janus_select_until(cases, (size_t)op->count, &op->chosen, until)
                                : janus_try_select(cases, (size_t)op->count, &op->chosen);
    if (status == JANUS_OK) op->got = values[op->chosen];
    return status;
}

__attribute__((noinline, unused)) static void story_do(struct op *op)
{
    janus_channel channel = story_channels[op->channel];
    int64_t       value = op->value;
    uint64_t      until = op->deadline_ns != 0 ? op->deadline_ns : UINT64_MAX;
    switch (op->verb) {
    case 's': op->status = janus_channel_send_until(channel, &value, until); break;
    case 'r': op->status = janus_channel_recv_until(channel, &value, until); break;
    case 'S': op->status = janus_channel_try_send(channel, &value); break;
    case 'R': op->status = janus_channel_try_recv(channel, &value); break;
    case 'c': op->status = janus_channel_close(channel); break;
    case 'x': op->status = story_select(op, true); break;
    case 'X': op->status = story_select(op, false); break;
    default: CHECK(false);
    }
    if (op->verb == 'r' || op->verb == 'R') op->got = value;
}

/* Finding a story. */

struct model {
    int64_t queue[STORY_CHANNELS][STORY_ITEMS];
    int     length[STORY_CHANNELS];
    int     dropped[STORY_CHANNELS];
    bool    closed[STORY_CHANNELS];
    int     next[STORY_PARTIES];
};

/* A select that did a case counts as that case. */
static inline struct op story_as_done(const struct op *op)
{
    struct op done = *op;
    bool      chose = op->status == JANUS_OK || op->status == JANUS_CLOSED;
    if ((op->verb != 'x' && op->verb != 'X') || !chose) return done;
    done = op->cases[op->chosen];
    done.status = op->status;
    done.got = op->got;
    return done;
}

static inline bool story_has_room(const struct model *model, int channel)
{
    return (uint64_t)model->length[channel] < story.capacity[channel];
}

/* Whether a select with such a case does not wait. */
static inline bool story_can_send(const struct model *model, int channel)
{
    return model->closed[channel] || story.overflow[channel] == JANUS_OVERFLOW_DROP_OLDEST ||
           story_has_room(model, channel);
}

static inline bool story_can_receive(const struct model *model, int channel)
{
    return model->closed[channel] || model->length[channel] > 0;
}

static inline void story_take_first(struct model *model, int c)
{
    memmove(model->queue[c], model->queue[c] + 1,
            sizeof model->queue[c] - sizeof model->queue[c][0]);
    model->length[c]--;
}

/* Whether an operation that did nothing would have had to wait. */
static inline bool story_would_wait(const struct model *model, const struct op *op)
{
    if (op->verb == 'R') return !story_can_receive(model, op->channel);
    if (op->verb == 'S') {
        return !story_can_send(model, op->channel) &&
               story.overflow[op->channel] == JANUS_OVERFLOW_BLOCK;
    }
    for (int i = 0; i < op->count; i++) {
        const struct op *one = &op->cases[i];
        if (one->verb == 's' ? story_can_send(model, one->channel)
                             : story_can_receive(model, one->channel))
            return false;
    }
    return op->verb == 'X';
}

/* One operation alone. False: it does not fit here. */
static inline bool story_tell_one(struct model *model, const struct op *op)
{
    struct op done = story_as_done(op);
    int       c = done.channel;
    bool      sends = done.verb == 's' || done.verb == 'S';
    switch (done.status) {
    case JANUS_CANCELLED: return true;
    case JANUS_DEADLINE: return done.verb != 's' || story.overflow[c] == JANUS_OVERFLOW_BLOCK;
    case JANUS_WOULD_WAIT: return story_would_wait(model, op);
    case JANUS_FULL:
        return sends && story.overflow[c] == JANUS_OVERFLOW_FAIL && !story_can_send(model, c);
    case JANUS_CLOSED: return model->closed[c] && (sends || model->length[c] == 0);
    case JANUS_OK: break;
    default: return false;
    }
    if (done.verb == 'c') {
        model->closed[c] = true;
        return true;
    }
    if (sends) {
        if (model->closed[c] || !story_can_send(model, c)) return false;
        if (!story_has_room(model, c)) {
            story_take_first(model, c);
            model->dropped[c]++;
        }
        model->queue[c][model->length[c]++] = done.value;
        return true;
    }
    if (model->length[c] == 0 || model->queue[c][0] != done.got) return false;
    story_take_first(model, c);
    return true;
}

/* Two operations that meet. */
static inline bool story_tell_two(const struct model *model, const struct op *left,
                                  const struct op *right)
{
    struct op send = story_as_done(left), receive = story_as_done(right);
    return (send.verb == 's' || send.verb == 'S') && send.status == JANUS_OK &&
           (receive.verb == 'r' || receive.verb == 'R') && receive.status == JANUS_OK &&
           send.channel == receive.channel && story.capacity[send.channel] == 0 &&
           !model->closed[send.channel] && send.value == receive.got;
}

static inline bool story_ends_right(const struct model *model)
{
    for (int c = 0; c < STORY_CHANNELS; c++) {
        if (model->length[c] != story.left_count[c] || model->closed[c] != story.closed[c] ||
            model->dropped[c] != story.dropped[c])
            return false;
        for (int i = 0; i < model->length[c]; i++) {
            if (model->queue[c][i] != story.left[c][i]) return false;
        }
    }
    return true;
}

/* Whether party i's next operation may come now, before the remaining ones of others. */
static inline bool story_in_time(const struct model *model, int i)
{
    unsigned began = story.ops[i][model->next[i]].began;
    for (int k = 0; k < story.parties && story.timed; k++) {
        if (k == i || model->next[k] == story.counts[k]) continue;
        if (story.ops[k][model->next[k]].ended < began) return false;
    }
    return true;
}

static inline bool story_holds(struct model model)
{
    bool all = true;
    for (int i = 0; i < story.parties; i++) {
        if (model.next[i] == story.counts[i]) continue;
        all = false;
        if (!story_in_time(&model, i)) continue;
        const struct op *op = &story.ops[i][model.next[i]];
        struct model     then = model;
        then.next[i]++;
        if (story_tell_one(&then, op) && story_holds(then)) return true;
        for (int k = 0; k < story.parties; k++) {
            if (k == i || model.next[k] == story.counts[k] || !story_in_time(&model, k)) continue;
            if (!story_tell_two(&model, op, &story.ops[k][model.next[k]])) continue;
            then = model;
            then.next[i]++, then.next[k]++;
            if (story_holds(then)) return true;
        }
    }
    return all && story_ends_right(&model);
}

#endif

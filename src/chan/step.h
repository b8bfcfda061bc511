/* SPDX-License-Identifier: MIT */
/* The steps of send and receive: inline, because they are short and frequent. */
#ifndef JRT_CHAN_STEP_H
#define JRT_CHAN_STEP_H

#include "chan/chan.h"
#include "task/worker.h"

#include <stdlib.h>

#ifndef JRT_CHAN_KEPT_BYTES       /* a model sets another */
#define JRT_CHAN_KEPT_BYTES 65536 /* of an empty unbounded channel */
#endif

/* The ring. */

static inline void jrt_chan_copy(const struct jrt_chan *chan, void *to, const void *from)
{
    if (jrt_likely(chan->item_bytes == sizeof(uint64_t))) {
        memcpy(to, from, sizeof(uint64_t));
    } else if (chan->item_bytes != 0) {
        memcpy(to, from, chan->item_bytes);
    }
}

static inline char *jrt_chan_slot(const struct jrt_chan *chan, uint64_t number)
{
    uint64_t at = chan->first + number;
    if (at >= chan->slots) at -= chan->slots;
    return chan->ring + at * chan->item_bytes;
}

static inline void jrt_chan_put(struct jrt_chan *chan, const void *value)
{
    jrt_chan_copy(chan, jrt_chan_slot(chan, chan->length), value);
    chan->length++;
    if (chan->length > chan->high_water) chan->high_water = chan->length;
}

static inline void jrt_chan_drop_first(struct jrt_chan *chan)
{
    if (++chan->first == chan->slots) chan->first = 0;
    chan->length--;
}

/* Steps. */

/* Claims the waiting party for the caller, [chan-claim]. Under the lock. */
static inline bool jrt_chan_claim(struct jrt_chan_entry *entry)
{
    uint32_t nobody = 0;
    if (jrt_likely(!entry->party->selects)) return true;
    /* acq_rel: once for each wait. The lock orders what the party wrote before. */
    return jrt_cas_acq_rel(&entry->party->claimed, &nobody, entry->index + 1);
}

/* As jrt_chan_pop, for a queue that is not empty. Inline if the first party waits in one channel
 * only. */
static inline struct jrt_chan_entry *jrt_chan_pop_some(struct jrt_chan_queue *queue)
{
    struct jrt_chan_entry *first = jrt_list_entry(queue->entries.next, struct jrt_chan_entry, link);
    if (jrt_unlikely(first->party->selects)) return jrt_chan_pop(queue);
    jrt_chan_dequeue(queue, first);
    return first;
}

static inline struct jrt_chan_party *jrt_chan_done_with(struct jrt_chan_entry *entry)
{
    entry->party->outcome = JANUS_OK;
    return entry->party;
}

static inline __attribute__((always_inline)) janus_status
jrt_chan_send_step(struct jrt_chan *chan, const void *value, struct jrt_chan_party **out_wake)
{
    if (jrt_unlikely(chan->closed)) return JANUS_CLOSED;
    if (chan->receivers.count > 0) {
        struct jrt_chan_entry *receiver = jrt_chan_pop_some(&chan->receivers);
        if (receiver != NULL) {
            jrt_invariant("chan-waits", chan->length == 0);
            jrt_chan_copy(chan, receiver->value, value);
            *out_wake = jrt_chan_done_with(receiver);
            return JANUS_OK;
        }
    }
    if (chan->length >= chan->slots) return jrt_chan_overflow(chan, value);
    jrt_chan_put(chan, value);
    return JANUS_OK;
}

static inline __attribute__((always_inline)) janus_status
jrt_chan_recv_step(struct jrt_chan *chan, void *value, struct jrt_chan_party **out_wake)
{
    struct jrt_chan_entry *sender = NULL;
    bool                   some = chan->length > 0;
    if (!some && chan->closed) return JANUS_CLOSED;
    if (chan->senders.count > 0 && !chan->closed) sender = jrt_chan_pop_some(&chan->senders);
    if (some) {
        jrt_chan_copy(chan, value, jrt_chan_slot(chan, 0));
        jrt_invariant("chan-waits", sender == NULL || chan->length == chan->slots);
        jrt_chan_drop_first(chan);
        if (sender != NULL) jrt_chan_put(chan, sender->value);
    } else if (sender != NULL) {
        jrt_chan_copy(chan, value, sender->value);
    } else {
        return JANUS_WOULD_WAIT;
    }
    if (sender != NULL) *out_wake = jrt_chan_done_with(sender);
    return JANUS_OK;
}

/*
 * One step of a channel, under its lock: does it, or returns why not (WOULD_WAIT, FULL, GROW,
 * CLOSED, INVALID). *out_wake is the party to wake after the unlock, or NULL.
 */
static inline __attribute__((always_inline)) janus_status jrt_chan_step(
    struct jrt_chan *chan, enum jrt_chan_kind kind, void *value, struct jrt_chan_party **out_wake)
{
    *out_wake = NULL;
    if (jrt_unlikely(value == NULL && chan->item_bytes != 0)) return JANUS_INVALID;
    if (kind == JRT_CHAN_SEND) return jrt_chan_send_step(chan, value, out_wake);
    return jrt_chan_recv_step(chan, value, out_wake);
}

/* Detaches a large empty ring, under the lock. Returns it, or NULL. */
static inline char *jrt_chan_shrink(struct jrt_chan *chan)
{
    if (jrt_likely(!chan->unbounded || chan->length > 0)) return NULL;
    if (chan->slots * chan->item_bytes <= JRT_CHAN_KEPT_BYTES) return NULL;
    char *ring = chan->ring;
    chan->ring = NULL;
    chan->slots = chan->first = 0;
    return ring;
}

/* A step for a handle: also returns STALE. The caller frees *out_free after the unlock. */
static inline __attribute__((always_inline)) janus_status
jrt_chan_step_valid(struct jrt_chan *chan, janus_channel handle, enum jrt_chan_kind kind,
                    void *value, struct jrt_chan_party **out_wake, char **out_free)
{
    if (jrt_unlikely(!jrt_chan_is(chan, handle))) return jrt_stale(JANUS_STALE, __func__);
    janus_status status = jrt_chan_step(chan, kind, value, out_wake);
    /* A party that must wait frees nothing, and a ring that just grew is about to be used. */
    if (kind == JRT_CHAN_RECV && status == JANUS_OK) *out_free = jrt_chan_shrink(chan);
    return status;
}

/* Takes the lock, makes a step, and grows the ring if it must. */
static inline janus_status jrt_chan_attempt(struct jrt_chan *chan, janus_channel handle,
                                            struct jrt_worker *worker, enum jrt_chan_kind kind,
                                            void *value)
{
    for (;;) {
        struct jrt_chan_party *wake = NULL;
        char                  *large = NULL;
        bool                   own = jrt_chan_enter(chan, worker);
        janus_status status = jrt_chan_step_valid(chan, handle, kind, value, &wake, &large);
        uint64_t     slots = chan->slots;
        jrt_chan_note(worker, kind, chan, status);
        jrt_chan_leave(chan, own);
        if (wake != NULL) jrt_chan_wake(wake);
        if (jrt_unlikely(large != NULL)) free(large);
        if (jrt_likely(status != JRT_CHAN_GROW)) return status;
        status = jrt_chan_grow(handle, worker, slots);
        if (status != JANUS_OK) return status;
    }
}

#endif

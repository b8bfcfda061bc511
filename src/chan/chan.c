/* SPDX-License-Identifier: MIT */
/*
 * Channels: the steps, and how a waiting party is woken.
 *
 * One lock guards the whole channel, for a copy and a few links. The steps:
 *
 *     send    closed               CLOSED
 *             a receiver waits     its value is written where it wants it; it is woken
 *             room in the ring     the value goes there
 *             no room              WOULD_WAIT, or what `overflow` says
 *     recv    the ring has one     the oldest; the value of a waiting sender takes its place
 *             a sender waits       its value, from where it lies; it is woken
 *             closed               CLOSED
 *             neither              WOULD_WAIT
 *
 * [chan-waits]  receivers wait only while the ring is empty and no sender waits. Senders wait only
 *   while it is full. While the channel is closed nobody waits, except entries that close has not
 *   reached, which no step looks at. Selects that were served elsewhere may still stand in a queue.
 *   They do not count, and steps skip them.
 *
 * [chan-claim]  a thread that takes an entry off a queue, under the lock, has claimed the waiting
 *   party. It writes the outcome, and no other thread will. A select stands in several queues under
 *   several locks. So a thread claims it by changing `claimed` from 0. A thread whose change fails
 *   skips the entry. A select that gives up makes the same change.
 *
 * [chan-last]  the waker's last touch, as [point-last]: it wakes with no lock held. If its wake
 *   ended the wait, it touches the party no more. Otherwise a cancel, an alarm or a deadlock ended
 *   the wait. Then the task finds itself claimed and stays, awake, until the waker sets `done`. The
 *   waker's wake has met an awake task and done nothing. The claimed operation has happened, so the
 *   task returns its outcome, and its next call reports the cancel. So a value is neither lost nor
 *   received twice, and no wake meets a later wait. A thread always waits for `done`.
 *
 * [chan-close]  a close takes effect when it sets `closed`. Then it claims and wakes the waiting
 *   parties in batches, so that a million of them do not hold the lock.
 *
 * Locks: a channel's. Selects take several, by address. No thread holds one across a wait, a wake
 * or an allocation.
 */
#include "chan/chan.h"

#include "chan/step.h"
#include "task/worker.h"
#include "work/work.h"

#include <stdlib.h>

bool jrt_chan_enter_slow(struct jrt_chan *chan, struct jrt_worker *worker)
{
    const _Atomic(uint32_t) *held = jrt_chan_lock_fast(&chan->lock, worker->bias);
    uint64_t                 since = held == NULL ? jrt_clock_now_ns() : 0;
    bool                     own = held == NULL ? jrt_chan_lock(&chan->lock, worker->bias)
                                                : jrt_chan_lock_owned(&chan->lock, held);
    if (chan->last != worker) jrt_chan_met(chan, worker);
    if (held != NULL) return own;
    worker->herd.waited_ns += jrt_clock_now_ns() - since; /* [herd-gather] */
    return own;
}

/* Steps. */

struct jrt_chan_entry *jrt_chan_pop(struct jrt_chan_queue *queue)
{
    while (queue->count > 0) {
        struct jrt_chan_entry *entry =
            jrt_list_entry(queue->entries.next, struct jrt_chan_entry, link);
        jrt_chan_dequeue(queue, entry);
        if (jrt_chan_claim(entry)) return entry; /* the other entries may be gone at once */
    }
    return NULL;
}

/* A send without room. */
janus_status jrt_chan_overflow(struct jrt_chan *chan, const void *value)
{
    if (chan->slots < chan->capacity) return JRT_CHAN_GROW;
    switch ((janus_overflow)chan->overflow) {
    case JANUS_OVERFLOW_BLOCK: return JANUS_WOULD_WAIT;
    case JANUS_OVERFLOW_FAIL: return JANUS_FULL;
    case JANUS_OVERFLOW_DROP_OLDEST: break;
    }
    jrt_chan_drop_first(chan);
    jrt_chan_put(chan, value);
    chan->dropped++;
    return JANUS_OK;
}

/* Growing, for unbounded channels. */

enum { FIRST_SLOTS = 16 };

/* Moves the values to a larger ring, under the lock. Returns the old ring. */
static char *move_to(struct jrt_chan *chan, char *larger, uint64_t slots)
{
    char    *old = chan->ring;
    uint64_t until_end = chan->slots - chan->first;
    uint64_t straight = chan->length < until_end ? chan->length : until_end;
    size_t   bytes = chan->item_bytes;
    if (straight > 0 && bytes > 0) {
        memcpy(larger, old + chan->first * bytes, straight * bytes);
        memcpy(larger + straight * bytes, old, (chan->length - straight) * bytes);
    }
    chan->ring = larger;
    chan->slots = slots;
    chan->first = 0;
    return old;
}

/* Doubles the slots, unless another thread was faster. The lock is not held. */
janus_status jrt_chan_grow(janus_channel handle, struct jrt_worker *worker, uint64_t slots)
{
    struct jrt_chan *chan = jrt_chan_of(handle);
    bool             own = jrt_chan_enter(chan, worker);
    bool             valid = jrt_chan_is(chan, handle);
    uint64_t         wanted = slots < FIRST_SLOTS ? FIRST_SLOTS : slots * 2;
    if (valid && wanted > chan->capacity) wanted = chan->capacity;
    size_t bytes = valid ? wanted * chan->item_bytes : 0;
    jrt_chan_leave(chan, own);
    if (!valid) return jrt_stale(JANUS_STALE, __func__);
    char *ring = jrt_malloc(bytes > 0 ? bytes : 1);
    if (ring == NULL) return JANUS_NO_MEMORY;
    own = jrt_chan_enter(chan, worker);
    if (jrt_chan_is(chan, handle) && chan->slots == slots) ring = move_to(chan, ring, wanted);
    jrt_chan_leave(chan, own);
    free(ring);
    return JANUS_OK;
}

/* Waking and being woken. */

void jrt_chan_wake(struct jrt_chan_party *party)
{
    if (party->task == NULL) {
        jrt_store_release(&party->done, 1u); /* release: publishes the outcome, [chan-last]. */
        jrt_futex_wake(&party->done, 1);
    } else if (jrt_unlikely(!jrt_task_serve_from_anywhere(party->task))) {
        jrt_store_release(&party->done, 1u); /* release: [chan-last]. */
    }
}

void jrt_chan_await_done(struct jrt_chan_party *party)
{
    /* acquire: the waker's last touch, and the outcome. */
    while (jrt_load_acquire(&party->done) == 0) jrt_thread_yield();
}

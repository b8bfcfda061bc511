/* SPDX-License-Identifier: MIT */
/*
 * Channels: what one step does, and how somebody who waits is told.
 *
 * All that a channel is lies under one lock, held for a copy and a few links. What a step does:
 *
 *     send    closed               CLOSED
 *             a receiver waits     its value is written where it wants it; it is woken
 *             room in the ring     the value goes there
 *             none                 WOULD_WAIT, or what `overflow` says
 *     recv    the ring has one     the oldest; the value of a sender that waits takes its place
 *             a sender waits       its value, from where it lies; it is woken
 *             closed               CLOSED
 *             neither              WOULD_WAIT
 *
 * [chan-waits]  receivers wait only while the ring is empty and no sender waits; senders only while
 *   it is full; nobody while it is closed, but those that closing has not come to yet, whom no
 *   step looks at any more. Selects that were served elsewhere may still stand in a queue; they do
 *   not count and are passed over.
 *
 * [chan-claim]  who takes an entry off a queue, under the lock, has claimed whoever waits there: it
 *   writes the outcome, and nobody else will. One that waits in several channels stands in several
 *   queues under several locks; it is claimed by a step of `claimed` from 0. Whose step fails
 *   passes it over. The one that waits makes the same step when it gives up.
 *
 * [chan-last]  the waker's last touch, as [point-last]: it wakes with no lock held. If its wake was
 *   the one that ended the wait, it has no more business with it. Otherwise the wait was ended by
 *   a cancel, an alarm or a deadlock; then the task finds that it was claimed, and stays, awake,
 *   until the waker, whose wake has met an awake task and done nothing, sets `done`. What it was
 *   claimed for has happened: it says so, and the cancel is told at its next call. So a value is
 *   neither lost nor received twice, and no wake meets a later wait. A thread always waits for
 *   `done`.
 *
 * [chan-close]  closing sets `closed`, which is when it happens, and then claims and wakes those
 *   who wait, some at a time, so that a million of them do not keep the lock.
 *
 * Locks: a channel's; selects take several, by address. None is held across a wait, a wake, or an
 * allocation.
 */
#include "chan/step.h"

#include <stdlib.h>

/* Steps. */

struct jrt_chan_entry *jrt_chan_pop(struct jrt_chan_queue *queue)
{
    while (queue->count > 0) {
        struct jrt_chan_entry *entry =
            jrt_list_entry(queue->entries.next, struct jrt_chan_entry, link);
        jrt_chan_dequeue(queue, entry);
        if (jrt_chan_claim(entry)) return entry; /* the others may be gone at once */
    }
    return NULL;
}

/* No room. */
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

/* Growing, for unbounded ones. */

enum { FIRST_SLOTS = 16 };

/* Moves the values to a larger ring; under the lock. Returns the old one. */
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

/* Twice the slots, unless somebody else was faster. The lock is not held. */
janus_status jrt_chan_grow(janus_channel handle, const struct jrt_worker *worker, uint64_t slots)
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
        jrt_store_release(&party->done, 1u); /* release: the outcome, [chan-last]. */
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

janus_status jrt_chan_park_thread(struct jrt_chan_party *party, uint64_t deadline_ns)
{
    if (jrt_thread_self()->calls_back) deadline_ns = 0; /* [callback-plain] */
    while (jrt_load_acquire(&party->done) == 0) {       /* acquire: the outcome. */
        if (!jrt_futex_wait_until(&party->done, 0, deadline_ns)) return JANUS_DEADLINE;
    }
    return JANUS_OK;
}

static void ring_deadline(struct jrt_alarm *alarm)
{
    (void)jrt_task_wake(alarm->subject, JANUS_DEADLINE);
}

janus_status jrt_chan_park_begin(struct jrt_worker *worker, enum jrt_wait wait,
                                 struct jrt_alarm *alarm, uint64_t deadline_ns)
{
    struct jrt_task *task = worker->current;
    bool             timed = deadline_ns != JRT_NEVER;
    if (timed && jrt_clock_now_ns() >= deadline_ns) return JANUS_DEADLINE;
    if (jrt_unlikely(!jrt_worker_can_leave(worker))) return JANUS_NO_MEMORY;
    jrt_task_park_begin(task, wait);
    if (!timed) return JANUS_OK;
    *alarm = (struct jrt_alarm){.ring = ring_deadline, .subject = task};
    if (jrt_sched_timer_arm(worker->scheduler, &alarm->timer, deadline_ns)) return JANUS_OK;
    (void)jrt_task_park_cancel(task);
    return JANUS_NO_MEMORY;
}

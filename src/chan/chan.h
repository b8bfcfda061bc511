/* SPDX-License-Identifier: MIT */
/*
 * The channel: a ring of values and two queues of waiting parties. The essay is in chan.c.
 */
#ifndef JRT_CHAN_CHAN_H
#define JRT_CHAN_CHAN_H

#include "base/list.h"
#include "chan/lock.h"
#include "chan/pay.h"
#include "look/places.h"
#include "task/note.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

#include <janusrt/channel.h>
#include <string.h>

enum jrt_chan_kind {
    JRT_CHAN_RECV = JANUS_SELECT_KIND_RECV,
    JRT_CHAN_SEND = JANUS_SELECT_KIND_SEND,
};

/* Internal: an unbounded channel must grow before it can take the value. */
#define JRT_CHAN_GROW JANUS_CLAMPED

/* A waiting task or plain thread, in one channel or, in a select, in several. It lies in the
 * waiter's frame. */
struct jrt_chan_party {
    struct jrt_task       *task;    /* NULL: a plain thread */
    bool                   selects; /* `claimed` decides, [chan-claim] */
    janus_status           outcome; /* written by the claimer */
    _Atomic(uint32_t)      claimed; /* selects: 0, or 1 + the case, or JRT_CHAN_GAVE_UP */
    _Atomic(uint32_t)      done;    /* futex; 1: the claimer has let go, [chan-last] */
    struct jrt_chan_party *next;    /* in a list of parties to wake */
};

#define JRT_CHAN_GAVE_UP UINT32_MAX

struct jrt_chan_queue {
    struct jrt_list_node entries; /* first come, first served */
    uint64_t             count;
};

/* A party's place in one channel's queue, guarded by that channel's lock. */
struct jrt_chan_entry {
    struct jrt_list_node   link;
    struct jrt_chan_queue *queue; /* the queue it stands in; NULL: none */
    struct jrt_chan_party *party;
    void                  *value;
    uint32_t               index; /* of the case; without a select the channel's number */
};

/* What only opening, destroying and inspecting a channel need. */
struct jrt_chan_cold {
    struct jrt_chan_charge charge; /* what counts it and pays for it */
    char                   name[JANUS_CHANNEL_NAME_BYTES];
};

struct jrt_chan {
    _Alignas(64) _Atomic(uint64_t) keys[8]; /* [chan-key] by rights */

    struct jrt_chan_lock lock; /* guards all that follows */
    const void          *last; /* the worker that entered last; compared, never followed */
    size_t               item_bytes;
    uint64_t             slots; /* of the ring; below capacity while it still grows */
    uint64_t             length;
    uint64_t             first; /* slot of the oldest value */
    char                *ring;  /* owned; NULL: no slots, or no bytes */

    struct jrt_chan_queue senders, receivers;
    union {
        struct {
            uint8_t overflow; /* janus_overflow */
            bool    closed;
            bool    unbounded;
            bool    outside;
        };
        uint32_t any_flag; /* any of them; 0: open, full-sized ring, a full channel waits */
    };
    uint32_t number; /* for traces: in the order of opening */
    uint64_t high_water;
    uint64_t dropped;
    uint64_t capacity; /* in values */

    struct jrt_chan_cold *cold;         /* owned */
    struct jrt_chan      *next_free;    /* in the pool */
    uint32_t              place;        /* in the table; constant */
    uint32_t              adopts_after; /* [chan-adopt] */
};

_Static_assert(offsetof(struct jrt_chan, senders) == 128, "a line to check, a line to send");

/*
 * A handle's first word has, from below: 3 bits of rights, 5 zero bits, the number of a place in
 * the table, and zero bits. The second word is the first word XOR the key. A handle is passed by
 * value, in two registers.
 */
enum { JRT_CHAN_PLACE_AT = 8 }; /* a place's number is then its offset in bytes */

_Static_assert(sizeof(struct jrt_chan) == 1 << JRT_CHAN_PLACE_AT, "see there");

struct jrt_chan_table {
    _Atomic(char *)   base;
    _Atomic(uint64_t) mask; /* for offsets; 0: one place, which is never used */
};

extern struct jrt_chan_table jrt_chan_table;

static inline unsigned jrt_chan_rights(janus_channel handle)
{
    return (unsigned)handle.opaque[0] & JANUS_CHANNEL_MAY_ALL;
}

static inline bool jrt_chan_is_none(janus_channel handle)
{
    return (handle.opaque[0] | handle.opaque[1]) == 0;
}

/* The handle's place in the table. Every handle has one, even a forged one. */
static inline struct jrt_chan *jrt_chan_of(janus_channel handle)
{
    /* acquire: a thread that reads the mask reads the base that belongs to it. */
    uint64_t mask = jrt_load_acquire(&jrt_chan_table.mask);
    char    *base = jrt_load_relaxed(&jrt_chan_table.base); /* relaxed: after the mask. */
    return (struct jrt_chan *)(void *)(base + (handle.opaque[0] & mask));
}

/* The key in the handle. Hidden from the compiler, so that it keeps one word less. */
static inline __attribute__((always_inline)) uint64_t jrt_chan_key(janus_channel handle)
{
    uint64_t key = handle.opaque[0] ^ handle.opaque[1];
    __asm__("" : "+r"(key));
    return key;
}

static inline bool jrt_chan_has_key(const struct jrt_chan *chan, uint64_t name, uint64_t key)
{
    /* relaxed: [chan-key]. */
    return jrt_load_relaxed(&chan->keys[name & JANUS_CHANNEL_MAY_ALL]) == key;
}

/* Whether the handle belongs to the channel that lives at this place, [chan-key]. Certain only
 * under the lock. */
static inline bool jrt_chan_is(const struct jrt_chan *chan, janus_channel handle)
{
    uint64_t key = jrt_chan_key(handle);
    return jrt_likely(key != 0) && jrt_chan_has_key(chan, handle.opaque[0], key);
}

/* Under the lock: counts that another worker was here before, [herd-gather]. */
static inline void jrt_chan_met(struct jrt_chan *chan, struct jrt_worker *worker)
{
    if (chan->last != NULL) {
        worker->herd.met = chan->last;
        worker->herd.meets++;
    }
    chan->last = worker;
    chan->lock.until_adopts = chan->adopts_after;
}

/* Under the word: counts a call of the worker that was the last to enter, [chan-adopt]. */
static inline __attribute__((always_inline)) void jrt_chan_came_again(
    struct jrt_chan *chan, const struct jrt_worker *worker)
{
    if (jrt_likely(--chan->lock.until_adopts != 0)) return;
    jrt_chan_lock_adopt(&chan->lock, worker->bias);
    chan->adopts_after <<= chan->adopts_after < JRT_CHAN_ADOPTS_AFTER_MAX;
}

/* Enters, and counts the time if another thread is inside. */
bool jrt_chan_enter_slow(struct jrt_chan *chan, struct jrt_worker *worker);

static inline bool jrt_chan_enter(struct jrt_chan *chan, struct jrt_worker *worker)
{
    bool own = jrt_chan_lock(&chan->lock, jrt_worker_bias(worker));
    if (!own && worker != NULL && chan->last != worker) jrt_chan_met(chan, worker);
    return own;
}

/* As jrt_chan_enter, for a select, which may be inside others. */
static inline bool jrt_chan_enter_more(struct jrt_chan *chan, struct jrt_worker *worker)
{
    bool own = jrt_chan_lock_more(&chan->lock, jrt_worker_bias(worker));
    if (!own && worker != NULL && chan->last != worker) jrt_chan_met(chan, worker);
    return own;
}

static inline void jrt_chan_leave(struct jrt_chan *chan, bool as_owner)
{
    jrt_chan_unlock(&chan->lock, as_owner ? jrt_worker_self()->bias : NULL);
}

/* Checks a handle before anything happens: OK, INVALID, STALE, CAP_RIGHT. *out is the channel, if
 * OK. */
static inline janus_status jrt_chan_decode(janus_channel handle, unsigned right,
                                           struct jrt_chan **out)
{
    struct jrt_chan *chan = jrt_chan_of(handle);
    if (jrt_unlikely(!jrt_chan_is(chan, handle))) {
        if (jrt_chan_is_none(handle)) return JANUS_INVALID;
        return jrt_stale(JANUS_STALE, __func__);
    }
    *out = chan;
    return jrt_likely(jrt_chan_rights(handle) & right) ? JANUS_OK : JANUS_CAP_RIGHT;
}

static inline unsigned jrt_chan_right_for(enum jrt_chan_kind kind)
{
    return kind == JRT_CHAN_SEND ? JANUS_CHANNEL_MAY_SEND : JANUS_CHANNEL_MAY_RECV;
}

/* Take and return heads of channels; pool.c, [chan-table]. OK. NO_MEMORY. CHANNEL_LIMIT: the table
 * is full. UNAVAILABLE: the system has no random numbers for keys. */
janus_status jrt_chan_take(struct jrt_chan **out);
void         jrt_chan_give(struct jrt_chan *chan);

/* How many places were ever used, including the first, which never is a channel. */
uint32_t jrt_chan_places_used(void);

/* Reports the tasks that wait at named channels, [place-list]; from waits.c. */
void jrt_chan_tell_waits(jrt_place_told *told, void *subject);

/* Give the channel new keys, or none. No old handle matches afterwards. Under the lock. */
void jrt_chan_new_keys(struct jrt_chan *chan);
void jrt_chan_drop_keys(struct jrt_chan *chan);

/* Takes the first entry that still waits off a queue and claims it. Under the lock. */
struct jrt_chan_entry *jrt_chan_pop(struct jrt_chan_queue *queue);

/* Takes an entry off its queue. */
static inline void jrt_chan_dequeue(struct jrt_chan_queue *queue, struct jrt_chan_entry *entry)
{
    jrt_list_remove(&entry->link);
    queue->count--;
    entry->queue = NULL;
}

static inline void jrt_chan_enqueue(struct jrt_chan *chan, enum jrt_chan_kind kind,
                                    struct jrt_chan_entry *entry)
{
    struct jrt_chan_queue *queue = kind == JRT_CHAN_SEND ? &chan->senders : &chan->receivers;
    entry->queue = queue;
    queue->count++;
    jrt_list_push_front(queue->entries.prev, &entry->link); /* behind the last */
}

/* Wakes a claimed party. No lock is held. The party may be gone afterwards. */
void jrt_chan_wake(struct jrt_chan_party *party);

/* A send without room, under the lock: returns as jrt_chan_step. */
janus_status jrt_chan_overflow(struct jrt_chan *chan, const void *value);

/* Enlarges the ring of an unbounded channel, unless it no longer has `slots` slots. The lock is not
 * held. OK, STALE, NO_MEMORY. */
janus_status jrt_chan_grow(janus_channel handle, struct jrt_worker *worker, uint64_t slots);

/* Waits until the claimer sets `done`, which it is about to do. */
void jrt_chan_await_done(struct jrt_chan_party *party);

/* Traces a step that ended at once, for the current task of `worker`, or NULL. Under the lock, so
 * that a trace has the real order. Only successful steps are traced. */
static inline void jrt_chan_note(const struct jrt_worker *worker, enum jrt_chan_kind kind,
                                 const struct jrt_chan *chan, janus_status status)
{
    if (jrt_unlikely(worker != NULL && worker->trace != NULL) && status == JANUS_OK) {
        jrt_note_now(worker, kind == JRT_CHAN_SEND ? JRT_TRACE_SEND : JRT_TRACE_RECV,
                     worker->current, chan->number, 0);
    }
}

/* Traces a step that ended after a wait. */
static inline void jrt_chan_note_waited(const struct jrt_worker *worker, enum jrt_chan_kind kind,
                                        uint32_t number)
{
    enum jrt_trace_kind event = kind == JRT_CHAN_SEND ? JRT_TRACE_SEND : JRT_TRACE_RECV;
    if (worker != NULL) jrt_note(worker, event, worker->current, number, 1);
}

/* Called after a step that did not wait: other tasks may need the CPU. */
static inline void jrt_chan_took_a_turn(struct jrt_worker *worker)
{
    if (jrt_unlikely(jrt_others_wait(worker))) jrt_task_give_way(worker, worker->current);
}

#endif

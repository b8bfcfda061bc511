/* SPDX-License-Identifier: MIT */
/* Which tasks wait at named channels: for dumps, [place-list]. */
#include "chan/chan.h"
#include "look/places.h"
#include "task/task.h"
#include "task/worker.h"

/* A first look without the lock. Most channels have no waiters, and taking the lock of a channel
 * that a worker owns costs microseconds, [chan-bias]. */
__attribute__((noinline, no_sanitize("thread"))) static bool has_waiters(const struct jrt_chan *c)
{
    return *(const volatile uint64_t *)&c->senders.count != 0 ||
           *(const volatile uint64_t *)&c->receivers.count != 0;
}

/* Reports one queue, under the channel's lock. */
static bool tell_queue(const struct jrt_chan_queue *queue, const char *name, jrt_place_told *told,
                       void *subject)
{
    const struct jrt_list_node *node = queue->entries.next;
    for (; node != &queue->entries; node = node->next) {
        const struct jrt_chan_entry *entry = jrt_list_entry(node, struct jrt_chan_entry, link);
        const struct jrt_task       *task = entry->party->task;
        if (task != NULL && !told(subject, task, name)) return false;
    }
    return true;
}

void jrt_chan_tell_waits(jrt_place_told *told, void *subject)
{
    struct jrt_worker *worker = jrt_worker_self();
    uint32_t           used = jrt_chan_places_used();
    char              *base = jrt_load_relaxed(&jrt_chan_table.base); /* relaxed: as `used`. */
    bool               room = true;
    for (uint32_t place = 1; place < used && room; place++) {
        struct jrt_chan *chan = (struct jrt_chan *)(void *)base + place;
        if (!has_waiters(chan)) continue;
        bool own = jrt_chan_enter(chan, worker);
        /* relaxed: under the lock. A channel without keys has ended. */
        bool lives = jrt_load_relaxed(&chan->keys[JANUS_CHANNEL_MAY_ALL]) != 0;
        if (lives && chan->cold->name[0] != '\0') {
            room = tell_queue(&chan->senders, chan->cold->name, told, subject) &&
                   tell_queue(&chan->receivers, chan->cold->name, told, subject);
        }
        jrt_chan_leave(chan, own);
    }
}

/* SPDX-License-Identifier: MIT */
/* Creates channels, narrows handles, closes, inspects and destroys. */
#include "base/options.h"
#include "chan/chan.h"
#include "means/call.h"
#include "sim/world.h"
#include "task/note.h"
#include "task/worker.h"

#include <stdlib.h>

#ifndef JRT_CHAN_CLOSE_BATCH    /* a model sets another */
#define JRT_CHAN_CLOSE_BATCH 64 /* woken at a time, [chan-close] */
#endif

/* The caller holds the lock. */
static janus_channel handle_of(const struct jrt_chan *chan, unsigned rights)
{
    uint64_t key = jrt_load_relaxed(&chan->keys[rights]); /* relaxed: under the lock. */
    uint64_t name = (uint64_t)chan->place << JRT_CHAN_PLACE_AT | rights;
    return (janus_channel){{name, name ^ key}};
}

/* Copies as many options as the caller's struct has. */
static bool read_options(const janus_channel_options *given, janus_channel_options *out)
{
    *out = (janus_channel_options){.struct_bytes = sizeof *out};
    if (given == NULL) return true;
    if (!jrt_struct_sane(given->struct_bytes, sizeof *out)) return false;
    memcpy(out, given, given->struct_bytes);
    return (unsigned)out->overflow <= JANUS_OVERFLOW_DROP_OLDEST;
}

/* The channel that will be made. */
struct plan {
    janus_channel_options options;
    size_t                item_bytes;
    uint64_t              capacity;
    bool                  unbounded;
    struct jrt_chan_cold *cold;
};

/* A name for the channel that does not depend on an address. */
static uint32_t next_number(void)
{
    static _Atomic(uint32_t) opened;
    struct jrt_world        *world = jrt_world_now();
    if (world != NULL) return jrt_world_number(world);
    return jrt_fetch_add_relaxed(&opened, 1u) + 1; /* relaxed: a number. */
}

static void note_close(const struct jrt_chan *chan)
{
    const struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL || worker->current == NULL) return; /* its maker has ended */
    jrt_note(worker, JRT_TRACE_CLOSE, worker->current, chan->number, 0);
}

/* Claims some waiting parties, under the lock. Returns a list to wake; NULL: no party is left. */
static struct jrt_chan_party *collect(struct jrt_chan *chan)
{
    struct jrt_chan_party *list = NULL, **end = &list;
    for (int i = 0; i < JRT_CHAN_CLOSE_BATCH; i++) {
        struct jrt_chan_entry *entry = jrt_chan_pop(&chan->receivers);
        if (entry == NULL) entry = jrt_chan_pop(&chan->senders);
        if (entry == NULL) break;
        entry->party->outcome = JANUS_CLOSED;
        entry->party->next = NULL;
        *end = entry->party;
        end = &entry->party->next;
    }
    return list;
}

static void wake_list(struct jrt_chan_party *list)
{
    while (list != NULL) {
        struct jrt_chan_party *party = list;
        list = party->next; /* a woken party may be gone */
        jrt_chan_wake(party);
    }
}

/* OK, CAP_RIGHT, STALE. */
static janus_status end_channel(janus_channel channel)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_chan   *chan = jrt_chan_of(channel);
    if (!jrt_chan_is(chan, channel)) return JANUS_STALE;
    if (jrt_chan_rights(channel) != JANUS_CHANNEL_MAY_ALL) return JANUS_CAP_RIGHT;
    bool own = jrt_chan_enter(chan, worker);
    bool valid = jrt_chan_is(chan, channel);
    if (valid) jrt_chan_drop_keys(chan); /* no other thread can enter from here on */
    if (valid && !chan->closed) note_close(chan);
    if (valid) chan->closed = true;
    jrt_chan_leave(chan, own);
    if (!valid) return JANUS_STALE;
    struct jrt_chan_party *list = NULL;
    do {
        own = jrt_chan_enter(chan, worker); /* parties that give up remove their entries */
        list = collect(chan);
        jrt_chan_leave(chan, own);
        wake_list(list);
    } while (list != NULL);
    struct jrt_chan_cold *cold = chan->cold;
    free(chan->ring);
    chan->ring = NULL;
    jrt_chan_give(chan);
    jrt_count_channels(-1);
    jrt_chan_closed(&cold->charge);
    free(cold);
    return JANUS_OK;
}

static janus_status perform(const struct plan *plan, janus_channel *out)
{
    size_t           bytes = plan->unbounded ? 0 : plan->item_bytes * plan->capacity;
    bool             ringed = !plan->unbounded && plan->capacity > 0;
    char            *ring = ringed ? jrt_malloc(bytes > 0 ? bytes : 1) : NULL;
    struct jrt_chan *chan = NULL;
    janus_status     status = ringed && ring == NULL ? JANUS_NO_MEMORY : jrt_chan_take(&chan);
    if (status != JANUS_OK) {
        free(ring);
        return status;
    }
    struct jrt_worker *worker = jrt_worker_self();
    /* Nobody meets here: `last` is the worker of the channel that had this place before. */
    bool own = jrt_chan_lock(&chan->lock, jrt_worker_bias(worker));
    chan->item_bytes = plan->item_bytes;
    chan->capacity = plan->capacity;
    chan->slots = plan->unbounded ? 0 : plan->capacity;
    chan->length = chan->first = chan->high_water = chan->dropped = 0;
    chan->ring = ring;
    chan->last = NULL;
    chan->adopts_after = JRT_CHAN_ADOPTS_AFTER;
    chan->senders.count = chan->receivers.count = 0;
    jrt_list_init(&chan->senders.entries);
    jrt_list_init(&chan->receivers.entries);
    chan->overflow = (uint8_t)plan->options.overflow;
    chan->closed = false;
    chan->unbounded = plan->unbounded;
    chan->cold = plan->cold;
    chan->outside = plan->options.outside;
    chan->number = next_number();
    jrt_chan_new_keys(chan);
    *out = handle_of(chan, JANUS_CHANNEL_MAY_ALL);
    if (!own && worker != NULL && worker->alone) {
        jrt_chan_lock_adopt(&chan->lock, worker->bias); /* [chan-adopt] */
    }
    jrt_chan_leave(chan, own);
    jrt_count_channels(1);
    return JANUS_OK;
}

static void end_by_name(const uint64_t name[2])
{
    (void)end_channel((janus_channel){{name[0], name[1]}});
}

/* The channel is counted and paid for. */
static janus_status perform_on(struct plan *plan, const struct jrt_chan_charge *charge,
                               janus_channel *out)
{
    janus_channel made;
    jrt_debug_invariant("callback-account", jrt_thread_self()->callback == NULL);
    plan->cold = jrt_malloc(sizeof *plan->cold);
    if (plan->cold == NULL) return JANUS_NO_MEMORY;
    plan->cold->charge = *charge;
    memset(plan->cold->name, 0, sizeof plan->cold->name);
    if (plan->options.name != NULL) {
        (void)jrt_name_copy(plan->cold->name, sizeof plan->cold->name, plan->options.name);
    }
    janus_status status = perform(plan, &made);
    if (status != JANUS_OK) {
        free(plan->cold);
        return status;
    }
    jrt_chan_opened(&plan->cold->charge, made, end_by_name); /* no other thread knows it yet */
    *out = made;
    return JANUS_OK;
}

static janus_status open_planned(struct plan *plan, const janus_channel_options *options,
                                 janus_channel *out)
{
    struct jrt_chan_charge charge;
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || !read_options(options, &plan->options)) return JANUS_INVALID;
    size_t item = plan->item_bytes > 0 ? plan->item_bytes : 1;
    if (item > PTRDIFF_MAX || plan->capacity > PTRDIFF_MAX / item) return JANUS_INVALID;
    if (plan->capacity == 0 && plan->options.overflow == JANUS_OVERFLOW_DROP_OLDEST) {
        return JANUS_INVALID;
    }
    uint64_t     bytes = plan->item_bytes * plan->capacity;
    janus_status status = jrt_chan_may_open(plan->capacity, bytes, plan->options.kept, &charge);
    if (status != JANUS_OK) return status;
    status = perform_on(plan, &charge, out);
    if (status != JANUS_OK) jrt_chan_closed(&charge);
    return status;
}

janus_status janus_channel_create(size_t item_bytes, uint64_t capacity,
                                  const janus_channel_options *options, janus_channel *out)
{
    struct plan plan = {.item_bytes = item_bytes, .capacity = capacity};
    return open_planned(&plan, options, out);
}

janus_status janus_channel_create_unbounded(size_t item_bytes, uint64_t max_bytes,
                                            const janus_channel_options *options,
                                            janus_channel               *out)
{
    uint64_t    capacity = max_bytes / (item_bytes > 0 ? item_bytes : 1);
    struct plan plan = {.item_bytes = item_bytes, .capacity = capacity, .unbounded = true};
    if (capacity == 0) return JANUS_INVALID;
    return open_planned(&plan, options, out);
}

janus_status janus_channel_close(janus_channel channel)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_chan       *chan = NULL;
    struct jrt_chan_party *list = NULL;
    janus_status           status = jrt_chan_decode(channel, JANUS_CHANNEL_MAY_CLOSE, &chan);
    if (status != JANUS_OK) return status;
    bool first = true;
    do {
        bool own = jrt_chan_enter(chan, jrt_worker_self());
        bool valid = jrt_chan_is(chan, channel); /* a destroying thread wakes the rest */
        if (first && !valid) status = jrt_stale(JANUS_STALE, __func__);
        if (valid && !chan->closed) note_close(chan);
        if (valid) chan->closed = true;
        list = valid ? collect(chan) : NULL;
        jrt_chan_leave(chan, own);
        first = false;
        wake_list(list);
    } while (list != NULL);
    return status;
}

janus_status janus_channel_destroy(janus_channel channel)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (jrt_chan_is_none(channel)) return JANUS_OK;
    janus_status status = end_channel(channel);
    return status == JANUS_STALE ? jrt_stale(status, __func__) : status;
}

janus_status janus_channel_attenuate(janus_channel channel, uint32_t rights, janus_channel *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || rights == 0 || (rights & ~(uint32_t)JANUS_CHANNEL_MAY_ALL) != 0) {
        return JANUS_INVALID;
    }
    struct jrt_chan *chan = NULL;
    janus_status     status = jrt_chan_decode(channel, JANUS_CHANNEL_MAY_ALL, &chan);
    if (status != JANUS_OK) return status;
    if ((rights & ~jrt_chan_rights(channel)) != 0) return JANUS_CAP_WIDENS;
    bool own = jrt_chan_enter(chan, jrt_worker_self());
    if (jrt_chan_is(chan, channel)) {
        *out = handle_of(chan, rights);
    } else {
        status = jrt_stale(JANUS_STALE, __func__);
    }
    jrt_chan_leave(chan, own);
    return status;
}

janus_status janus_channel_inspect(janus_channel channel, janus_channel_info *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_chan *chan = NULL;
    if (out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    janus_status status = jrt_chan_decode(channel, JANUS_CHANNEL_MAY_ALL, &chan);
    if (status != JANUS_OK) return status;
    janus_channel_info info = {.rights = jrt_chan_rights(channel)};
    bool               own = jrt_chan_enter(chan, jrt_worker_self());
    bool               valid = jrt_chan_is(chan, channel);
    if (valid) {
        info.item_bytes = chan->item_bytes;
        info.capacity = chan->capacity;
        info.length = chan->length;
        info.high_water = chan->high_water;
        info.dropped = chan->dropped;
        info.senders = chan->senders.count;
        info.receivers = chan->receivers.count;
        info.overflow = (janus_overflow)chan->overflow;
        info.unbounded = chan->unbounded;
        info.closed = chan->closed;
        memcpy(info.name, chan->cold->name, sizeof info.name);
    }
    jrt_chan_leave(chan, own);
    if (!valid) return jrt_stale(JANUS_STALE, __func__);
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

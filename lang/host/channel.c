/* SPDX-License-Identifier: MIT */
/* Channels. */
#include "host/state.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL = 256 };

/* The channels of a task whose values have texts or slices, for one defer of the task. */
struct jl_drains {
    struct drain {
        struct drain          *next;
        janus_channel          channel;
        const struct jl_shape *shape;
    } *first;
};

/* Nobody sends to a closed channel, so its length only falls. */
static void drain(janus_channel channel, const struct jl_shape *shape)
{
    janus_channel_info info = JANUS_CHANNEL_INFO();
    (void)janus_channel_close(channel);
    if (janus_channel_inspect(channel, &info) != JANUS_OK || info.length == 0) return;
    _Alignas(16) char small[SMALL];
    char             *value = shape->bytes <= SMALL ? small : malloc(shape->bytes);
    while (value && janus_channel_try_recv(channel, value) == JANUS_OK) {
        jl_unpack_drop(value, shape);
    }
    if (value != small) free(value);
}

static void drain_all(void *argument)
{
    struct jl_drains *drains = argument;
    while (drains->first) {
        struct drain one = *drains->first;
        free(drains->first);
        drains->first = one.next;
        drain(one.channel, one.shape);
    }
    free(drains);
}

/* Without memory for it, the values that nobody receives stay until the program ends. */
static void drain_at_end(struct jl_task *self, janus_channel channel, const struct jl_shape *shape)
{
    struct drain *made = malloc(sizeof *made);
    if (made && !self->drains) {
        struct jl_drains *drains = calloc(1, sizeof *drains);
        if (drains && janus_defer(drain_all, drains) == JANUS_OK) self->drains = drains;
        if (!self->drains) free(drains);
    }
    if (!made || !self->drains) {
        free(made);
        return;
    }
    *made = (struct drain){self->drains->first, channel, shape};
    self->drains->first = made;
}

static void forget(void *held) { atomic_fetch_sub(&((struct jl_held *)held)->channels, 1); }

/* The limits of a CapChannel. The task's end gives its channels back. */
static janus_status take_room(struct jl_held *held, uint64_t capacity)
{
    const janus_channel_limits *limits = &held->limits.channel;
    if (capacity > limits->max_buffer_size) return JANUS_CAP_LIMIT;
    if (atomic_fetch_add(&held->channels, 1) >= limits->max_channels) {
        forget(held);
        return JANUS_CHANNEL_LIMIT;
    }
    janus_status status = janus_defer(forget, held);
    if (status != JANUS_OK) forget(held);
    return status;
}

janus_channel jl_channel_new(uint32_t element_bytes, const struct jl_shape *shape, int64_t capacity,
                             const janus_cap *cap, uint64_t place)
{
    janus_channel   channel = {{0, 0}};
    struct jl_task *self = jl_self();
    if (capacity < 0) {
        static const char text[] = "the capacity of a channel is negative";
        jl_panic((struct jl_text){text, sizeof text - 1}, place);
    }
    struct jl_held *held = cap ? jl_held_of(self->world, *cap) : NULL;
    if (held) {
        (void)jl_cap_here(*cap); /* the task may hold it */
        janus_status room = take_room(held, (uint64_t)capacity);
        if (room != JANUS_OK) jl_end_task(room, place);
    }
    janus_status status = janus_channel_create(element_bytes, (uint64_t)capacity, NULL, &channel);
    if (status != JANUS_OK) jl_end_task(status, place);
    if (shape) drain_at_end(self, channel, shape);
    return channel;
}

/* A copy of the value whose texts and slices belong to nobody: the receiver adopts them. */
static int64_t send_packed(janus_channel channel, const void *value, const struct jl_shape *shape)
{
    _Alignas(16) char small[SMALL];
    char             *copy = shape->bytes <= SMALL ? small : jl_task_memory(shape->bytes);
    memcpy(copy, value, shape->bytes);
    jl_pack(copy, shape);
    janus_status status = janus_channel_send(channel, copy);
    if (status != JANUS_OK) jl_unpack_drop(copy, shape);
    if (copy != small) janus_free(copy);
    return status;
}

int64_t jl_channel_send(janus_channel channel, const void *value, const struct jl_shape *shape)
{
    if (shape) return send_packed(channel, value, shape);
    return janus_channel_send(channel, value);
}

int64_t jl_channel_recv(janus_channel channel, void *value, const struct jl_shape *shape)
{
    janus_status status = janus_channel_recv(channel, value);
    if (status == JANUS_OK) jl_unpack(value, shape);
    return status;
}

void jl_channel_close(janus_channel channel) { (void)janus_channel_close(channel); }

/* SPDX-License-Identifier: MIT */
/* Channels. */
#include "host/state.h"

#include <string.h>

enum { SMALL = 256 };

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

janus_channel jl_channel_new(uint32_t element_bytes, int64_t capacity, const janus_cap *cap,
                             uint64_t place)
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

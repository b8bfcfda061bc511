/* SPDX-License-Identifier: MIT */
/* Which tasks wait at which handles: for dumps, [place-list]. */
#include "io/io.h"
#include "look/places.h"
#include "plat/address.h"

#include <stdio.h>

/* Enters without a handle. False: the place is free, or its handle is being closed. */
static bool enter(struct jrt_io *io)
{
    uint32_t use = jrt_load_relaxed(&io->use); /* relaxed: the cas decides. */
    do {
        if (jrt_load_acquire(&io->key) == 0) return false; /* acquire: the record. */
        if ((use & JRT_IO_CLOSING) != 0 || (use & JRT_IO_COUNT) == JRT_IO_COUNT) return false;
        /* acq_rel: [io-use]. */
    } while (!jrt_cas_acq_rel(&io->use, &use, use + 1));
    return true;
}

/* The other end, or for a listener its own, or the name that the program gave. */
static void describe(const struct jrt_io *io, char *out, size_t bytes)
{
    janus_address address;
    bool          listens = io->kind == JANUS_IO_KIND_LISTENER;
    if (io->cold->name[0] != '\0') {
        snprintf(out, bytes, "\"%s\"", io->cold->name);
    } else if (io->socket &&
               (listens ? jrt_net()->local : jrt_net()->peer)(io->fd, &address) == 0 &&
               address.family != JANUS_FAMILY_NONE) {
        (void)jrt_address_text(&address, out, bytes);
    } else {
        snprintf(out, bytes, "descriptor %d", io->fd);
    }
}

static bool tell_ways(const struct jrt_io *io, jrt_place_told *told, void *subject)
{
    char name[JANUS_ADDRESS_TEXT_BYTES];
    bool room = true, described = false;
    for (int way = 0; way < JRT_READY_WAYS && room; way++) {
        uint64_t word = jrt_load_relaxed(&io->ready.words[way]); /* relaxed: to compare. */
        if (word <= JRT_READY_EDGE || (word & JRT_READY_THREAD) != 0) continue;
        if (!described) describe(io, name, sizeof name);
        described = true;
        room = told(subject, (const struct jrt_task *)(uintptr_t)word, name);
    }
    return room;
}

void jrt_io_tell_waits(jrt_place_told *told, void *subject)
{
    bool     room = true;
    uint32_t places = jrt_load_acquire(&jrt_ready_table.places); /* acquire: the base. */
    for (uint32_t place = 0; place < places && room; place++) {
        /* relaxed: `places` was read, with acquire. */
        char          *base = jrt_load_relaxed(&jrt_ready_table.base);
        struct jrt_io *io = (struct jrt_io *)(void *)base + place;
        /* relaxed, both: a first look. */
        bool waits =
            jrt_load_relaxed(&io->ready.words[0]) > JRT_READY_EDGE ||
            jrt_load_relaxed(&io->ready.words[1]) > JRT_READY_EDGE; /* relaxed: as above. */
        if (!waits || !enter(io)) continue;
        room = tell_ways(io, told, subject);
        jrt_io_leave(io, 0);
    }
}

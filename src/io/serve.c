/* SPDX-License-Identifier: MIT */
/* A task for each connection. */
#include "base/options.h"
#include "io/io.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "task/worker.h"

#include <janusrt/net.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* From the accept to the child, which frees it. */
struct guest {
    janus_io                io;
    janus_connection_entry *entry;
    void                   *argument;
};

static int64_t serve_one(void *argument)
{
    struct guest guest = *(struct guest *)argument;
    free(argument);
    janus_status status = janus_io_take(guest.io);
    int64_t      result = status == JANUS_OK ? guest.entry(guest.io, guest.argument) : status;
    JANUS_IGNORE(jrt_io_close(guest.io)); /* STALE: the entry has closed it */
    return result;
}

static void turn_away(void *argument)
{
    struct guest *guest = argument;
    JANUS_IGNORE(janus_io_close(guest->io));
    free(guest);
}

/* Starts the child. On an error the connection is closed. */
static janus_status start(janus_nursery *nursery, const struct guest *accepted,
                          const janus_spawn_options *each)
{
    struct guest *guest = jrt_malloc(sizeof *guest);
    if (guest == NULL) {
        JANUS_IGNORE(janus_io_close(accepted->io));
        return JANUS_NO_MEMORY;
    }
    *guest = *accepted;
    janus_status status = janus_spawn_with(nursery, serve_one, guest, each, NULL);
    if (status != JANUS_OK) turn_away(guest);
    return status;
}

static janus_status serve(janus_nursery *nursery, janus_io listener, struct guest *guest,
                          const janus_spawn_options *each)
{
    janus_status status = JANUS_OK;
    while (status == JANUS_OK) {
        status = jrt_io_accept(listener, &guest->io);
        if (status == JANUS_OK) status = start(nursery, guest, each);
        if (status == JANUS_NO_MEMORY) status = janus_yield(); /* one is lost, others may come */
    }
    return status;
}

/* The first handle's rights are checked before anything is opened. */
static janus_status check(janus_io listener)
{
    struct jrt_io *io = NULL;
    janus_status   status = jrt_io_enter(listener, JANUS_IO_MAY_ACCEPT, 0, &io);
    if (status != JANUS_OK) return status;
    if (io->kind != JANUS_IO_KIND_LISTENER) status = JANUS_STATE;
    jrt_io_leave(io, 0);
    return status;
}

/* The caller's options, and those that a server sets. Its owner accepts and recharges nobody, so
 * connections end when their budget is used up. */
static janus_status set_up(const janus_nursery_options *given, const janus_spawn_options *each,
                           janus_nursery_options *options, janus_spawn_options *child)
{
    if (given != NULL && !jrt_struct_sane(given->struct_bytes, sizeof *options)) {
        return JANUS_INVALID;
    }
    if (each != NULL && !jrt_struct_sane(each->struct_bytes, sizeof *child)) return JANUS_INVALID;
    if (each != NULL && each->struct_bytes > offsetof(janus_spawn_options, drop) &&
        each->drop != NULL) {
        return JANUS_INVALID;
    }
    if (given != NULL) memcpy(options, given, given->struct_bytes);
    if (each != NULL) memcpy(child, each, each->struct_bytes);
    options->struct_bytes = sizeof *options;
    options->when_full = JANUS_WHEN_FULL_WAIT;
    options->policy = JANUS_POLICY_WAIT_ALL; /* a connection fails alone */
    if (options->exhaustion == JANUS_EXHAUSTION_DEFAULT && options->on_exhausted == NULL) {
        options->exhaustion = JANUS_EXHAUSTION_END;
    }
    child->struct_bytes = sizeof *child;
    child->when_full = JANUS_WHEN_FULL_WAIT;
    child->unjoinable = true;
    child->drop = turn_away;
    if (child->name == NULL) child->name = "connection";
    return JANUS_OK;
}

janus_status janus_serve(janus_io listener, janus_connection_entry *entry, void *argument,
                         const janus_nursery_options *given, const janus_spawn_options *each)
{
    struct guest          guest = {.entry = entry, .argument = argument};
    janus_nursery_options options = {.struct_bytes = sizeof options};
    janus_spawn_options   child = {.struct_bytes = sizeof child};
    jrt_stack_check(); /* [stack-reserve] */
    if (entry == NULL) return jrt_io_told(JANUS_INVALID);
    janus_status status = set_up(given, each, &options, &child);
    if (status == JANUS_OK) status = check(listener);
    if (status != JANUS_OK) return jrt_io_told(status);
    janus_nursery nursery;
    status = janus_nursery_open(&nursery, &options);
    if (status < JANUS_OK) return jrt_io_told(status);
    janus_status served = serve(&nursery, listener, &guest, &child);
    status = janus_nursery_end(&nursery, NULL);
    bool closed = served == JANUS_CLOSED;
    if (status != JANUS_OK || closed) return jrt_io_told(status);
    return jrt_io_told(served);
}

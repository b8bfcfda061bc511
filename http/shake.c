/* SPDX-License-Identifier: MIT */
/*
 * The wire of a connection, and its handshake.
 *
 * A child of the connection's task does the handshake. Its calls go deep, and the pages that they
 * touch return with the child's stack. Otherwise an idle connection would keep them. From the
 * accept to the end of the handshake a client has head_ns, as for a head.
 *
 * However the connection's task ends, a defer destroys the wire.
 */
#include "http/server.h"

#include <janusrt/dump.h>
#include <janusrt/memory.h>
#include <stdlib.h>

static void let_go(void *argument)
{
    struct jrt_http_wire_holder *holder = argument;
    jrt_wire_destroy(holder->wire);
    free(holder);
}

janus_status jrt_http_wire_stack(struct jrt_http_server *server, janus_nursery *nursery)
{
    janus_nursery_info info = JANUS_NURSERY_INFO();
    if (server->options.wire == NULL) return JANUS_OK;
    size_t       least = server->options.wire->stack_bytes, *asked = &server->options.stack_bytes;
    janus_status status = janus_nursery_inspect(nursery, &info);
    if (status != JANUS_OK) return status;
    if (info.stack_bytes < least) server->wire_stack_bytes = least;
    if (*asked < least && (*asked != 0 || info.stack_bytes < least)) *asked = least;
    return JANUS_OK;
}

bool jrt_http_wire_may(const struct jrt_http_server *server)
{
    const janus_wire_maker *maker = server->options.wire;
    janus_memory_info       own = JANUS_MEMORY_INFO();
    if (maker == NULL) return true;
    return janus_memory_inspect(&own) == JANUS_OK && own.stack_bytes >= maker->stack_bytes;
}

/* Makes the wire, which the connection's task owns. */
static bool make(struct jrt_http_connection *c)
{
    const janus_wire_maker *maker = c->server->options.wire;
    if (!jrt_http_wire_may(c->server)) return false;
    struct jrt_http_wire_holder *holder = calloc(1, sizeof *holder);
    if (holder == NULL) return false;
    if (janus_defer(let_go, holder) != JANUS_OK) {
        free(holder);
        return false;
    }
    if (maker->create(maker, c->io, NULL, &holder->wire) != JANUS_OK) return false;
    c->holder = holder;
    return true;
}

/* The child. */
static int64_t open_wire(void *argument)
{
    struct jrt_http_connection *c = argument;
    const char                 *why = NULL;
    janus_wire                 *wire = c->holder->wire;
    return wire->maker->open(wire, &why);
}

static janus_status start(struct jrt_http_connection *c, janus_nursery *nursery, size_t stack_bytes)
{
    return janus_spawn_with(nursery, open_wire, c,
                            JANUS_SPAWN_OPTIONS(.name = "handshake", .unjoinable = true,
                                                .stack_bytes = stack_bytes,
                                                .when_full = JANUS_WHEN_FULL_WAIT),
                            NULL);
}

bool jrt_http_shake(struct jrt_http_connection *c)
{
    janus_nursery     nursery;
    janus_memory_info own = JANUS_MEMORY_INFO();
    uint64_t          end = jrt_http_after(janus_now_ns(), c->server->options.head_ns);
    if (c->server->options.wire == NULL) return true;
    if (!make(c) || janus_memory_inspect(&own) != JANUS_OK) return false;
    JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_BOTH, end));
    janus_status status = janus_nursery_open(
        &nursery, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_END, .name = "handshake",
                                        .deadline_ns = end)); /* the spawn may wait for a task */
    if (status < JANUS_OK) return false;
    status = start(c, &nursery, own.stack_bytes + 1); /* not on this stack */
    if (status == JANUS_SPAWN_BUDGET) status = start(c, &nursery, c->server->wire_stack_bytes);
    janus_status ended = janus_nursery_end(&nursery, NULL);
    JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_WRITE, JANUS_IO_NEVER));
    return status == JANUS_OK && ended == JANUS_OK;
}

void jrt_http_unwire(struct jrt_http_connection *c)
{
    if (c->holder == NULL) return;
    janus_wire *wire = c->holder->wire;
    c->holder->wire = NULL;
    jrt_wire_destroy(wire);
}

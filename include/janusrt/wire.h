/* SPDX-License-Identifier: MIT */
/*
 * What a library puts between HTTP and its connections, to change the bytes on their way: TLS.
 * tls.h makes such an object. A program passes it to the options of a server or a client:
 *
 *     JANUS_HTTP_OPTIONS(.wire = janus_tls_server_wire(tls))
 *
 * The rest of this header is for the author of such a library. libjanusrt-http calls the functions
 * of a janus_wire_maker instead of janus_io_read and the like. Deadlines are those of the handle:
 * the functions of a wire wait only in janus_io_read, janus_io_write and janus_io_wait.
 *
 * A task may end inside of each function that may wait, as in any call of io.h. Afterwards
 * `destroy` must still work. If the task ended in a read, writes must still work, and the other way
 * round.
 */
#ifndef JANUSRT_WIRE_H
#define JANUSRT_WIRE_H

#include <janusrt/export.h>
#include <janusrt/io.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct janus_wire_maker janus_wire_maker;

/* One connection. A library puts this at the beginning of its own struct. */
typedef struct janus_wire {
    const janus_wire_maker *maker;
} janus_wire;

/* Makes wires for one server, or for one client. It outlives all of its wires. */
struct janus_wire_maker {
    size_t struct_bytes; /* sizeof this struct */
    size_t stack_bytes;  /* the stack that a task needs to call these functions */

    /*
     * Makes a wire for a connection, which stays the caller's. Never waits. `host` is the server's
     * name, for a client; NULL on a server.
     */
    janus_status (*create)(const janus_wire_maker *maker, janus_io io, const char *host,
                           janus_wire **out);

    /*
     * Does what has to be done before the first byte: the handshake. Until it has returned OK, the
     * other functions but `destroy` are not called. On an error *out_why may get a sentence, which
     * is constant.
     */
    janus_status (*open)(janus_wire *wire, const char **out_why);

    /* As janus_io_read. CLOSED: the other end has said so. A connection that was cut is a RESET. */
    janus_status (*read)(janus_wire *wire, void *to, size_t max, size_t *out_got);
    /* As janus_io_try_read. */
    janus_status (*try_read)(janus_wire *wire, void *to, size_t max, size_t *out_got);
    /* Until a byte can be read, or the end of the stream, or an error. */
    janus_status (*wait)(janus_wire *wire);

    /*
     * As janus_io_writev, with any number of pieces. *out_done counts bytes that the wire has
     * taken. After an error the wire may still have to send a part of them. The next call sends
     * them first, also if it brings no piece. One task at a time writes, another may read.
     */
    janus_status (*write)(janus_wire *wire, const janus_io_piece *pieces, uint32_t count,
                          size_t *out_done);

    /* Says that no byte follows, and half-closes the connection. Without `waits` it only tries. */
    janus_status (*end)(janus_wire *wire, bool waits);

    /* Frees the wire, and says nothing to the other end. The connection stays open. */
    void (*destroy)(janus_wire *wire);
};

#endif

/* SPDX-License-Identifier: MIT */
/* Calls of io.h, on the connection itself, or on the wire that lies before it. */
#ifndef JANUSRT_HTTP_WIRE_H
#define JANUSRT_HTTP_WIRE_H

#include <janusrt/io.h>
#include <janusrt/wire.h>

/* Plain connections are the usual ones: for them a call is one test longer. */
static inline bool jrt_wire_is(const janus_wire *wire) { return __builtin_expect(wire != NULL, 0); }

static inline janus_status jrt_wire_read(janus_wire *wire, janus_io io, void *to, size_t max,
                                         size_t *got)
{
    if (jrt_wire_is(wire)) return wire->maker->read(wire, to, max, got);
    return janus_io_read(io, to, max, got);
}

static inline janus_status jrt_wire_try_read(janus_wire *wire, janus_io io, void *to, size_t max,
                                             size_t *got)
{
    if (jrt_wire_is(wire)) return wire->maker->try_read(wire, to, max, got);
    return janus_io_try_read(io, to, max, got);
}

static inline janus_status jrt_wire_wait(janus_wire *wire, janus_io io)
{
    return jrt_wire_is(wire) ? wire->maker->wait(wire) : janus_io_wait(io, JANUS_IO_READ);
}

static inline janus_status jrt_wire_write(janus_wire *wire, janus_io io,
                                          const janus_io_piece *pieces, uint32_t count,
                                          size_t *done)
{
    if (jrt_wire_is(wire)) return wire->maker->write(wire, pieces, count, done);
    if (count == 1) return janus_io_write(io, pieces->bytes, pieces->count, done);
    return janus_io_writev(io, pieces, count, done);
}

/* Half-closes. */
static inline janus_status jrt_wire_end(janus_wire *wire, janus_io io)
{
    if (jrt_wire_is(wire)) return wire->maker->end(wire, true);
    return janus_io_shutdown(io, JANUS_IO_WRITE);
}

static inline void jrt_wire_destroy(janus_wire *wire)
{
    if (jrt_wire_is(wire)) wire->maker->destroy(wire);
}

/* Whether this library can use options.wire. NULL will do. */
static inline bool jrt_wire_fits(const janus_wire_maker *maker)
{
    return maker == NULL || maker->struct_bytes == sizeof *maker;
}

#endif

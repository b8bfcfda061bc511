/* SPDX-License-Identifier: MIT */
/* Bytes to the client: what was gathered, and more behind it, in one write if the client is fast.
 */
#include "http/server.h"

enum { PIECES = 4 };

/* Skips `done` bytes of the pieces. Returns how many pieces are gone. */
static uint32_t skip(janus_io_piece *pieces, uint32_t count, size_t done)
{
    uint32_t gone = 0;
    while (gone < count && done >= pieces[gone].count) done -= pieces[gone++].count;
    if (gone < count) {
        pieces[gone].bytes = (char *)pieces[gone].bytes + done;
        pieces[gone].count -= done;
    }
    return gone;
}

/*
 * Writes all. A client that takes no byte for write_ns ends the call with DEADLINE: the tick sees
 * that. A deadline that it set for an earlier write does not count.
 */
static janus_status write_all(struct janus_http *http, janus_io_piece *pieces, uint32_t count)
{
    for (;;) {
        size_t       done = 0;
        janus_status status = jrt_wire_write(http->wire, http->io, pieces, count, &done);
        if (status != JANUS_DEADLINE) return status;
        if (atomic_load(&http->stalled) == atomic_load(&http->writing)) return status;
        JANUS_IGNORE(janus_io_set_deadline(http->io, JANUS_IO_WRITE, JANUS_IO_NEVER));
        uint32_t gone = skip(pieces, count, done);
        pieces += gone;
        count -= gone;
        if (count == 0 && !jrt_wire_is(http->wire)) return JANUS_OK;
    }
}

janus_status jrt_http_send(struct janus_http *http, const janus_io_piece *more, uint32_t count)
{
    janus_io_piece pieces[PIECES];
    uint32_t       all = 0;
    if (http->broken != JANUS_OK) return http->broken;
    if (http->out.bytes > 0) pieces[all++] = (janus_io_piece){http->out.at, http->out.bytes};
    for (uint32_t i = 0; i < count && all < PIECES; i++) {
        if (more[i].count > 0) pieces[all++] = more[i];
    }
    if (all == 0) return JANUS_OK;
    /* relaxed, all: only this task writes it. The tick may see it later. */
    uint32_t writing = atomic_load_explicit(&http->writing, memory_order_relaxed);
    atomic_store_explicit(&http->writing, writing + 1,
                          memory_order_relaxed); /* relaxed: as above */
    http->broken = write_all(http, pieces, all);
    atomic_store_explicit(&http->writing, writing + 2,
                          memory_order_relaxed); /* relaxed: as above */
    http->out = (struct jrt_http_out){http->small, JRT_HTTP_SMALL_BYTES, 0};
    return http->broken;
}

/* What is in the small buffer moves to the large one. If that is too small, it is sent first. */
janus_status jrt_http_make_room_slow(struct janus_http *http, size_t bytes)
{
    if (http->broken != JANUS_OK) return http->broken;
    if (http->out.bytes + bytes > JRT_HTTP_OUT_BYTES) {
        janus_status status = jrt_http_send(http, NULL, 0);
        if (status != JANUS_OK || bytes <= JRT_HTTP_SMALL_BYTES) return status;
    }
    if (http->out.at == http->large) return JANUS_OK;
    memcpy(http->large, http->small, http->out.bytes);
    http->out.at = http->large;
    http->out.room = JRT_HTTP_OUT_BYTES;
    return JANUS_OK;
}

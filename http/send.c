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

/* Writes all. Each byte that the client takes gives it another write_ns. */
static janus_status write_all(struct janus_http *http, janus_io_piece *pieces, uint32_t count)
{
    struct jrt_http_connection *c = http->connection;
    uint64_t                    patience = c->server->options.write_ns;
    uint64_t                    now = http->now = janus_now_ns();
    if (c->write_deadline < now + patience || c->write_deadline - now > 2 * patience) {
        c->write_deadline = jrt_http_after(now, patience + patience / 4);
        JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_WRITE, c->write_deadline));
    }
    for (;;) {
        size_t       done = 0;
        janus_status status = count == 1
                                  ? janus_io_write(c->io, pieces->bytes, pieces->count, &done)
                                  : janus_io_writev(c->io, pieces, count, &done);
        if (status != JANUS_DEADLINE || done == 0) return status;
        uint32_t gone = skip(pieces, count, done);
        pieces += gone;
        count -= gone;
        if (count == 0) return JANUS_OK;
        c->write_deadline = jrt_http_after(janus_now_ns(), patience);
        JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_WRITE, c->write_deadline));
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
    http->writing = true;
    http->broken = write_all(http, pieces, all);
    http->writing = false;
    http->out.bytes = 0;
    return http->broken;
}

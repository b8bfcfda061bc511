/* SPDX-License-Identifier: MIT */
/*
 * Chunked bodies (RFC 9112, 7.1), decoded where they lie and in pieces of any size.
 *
 *     jrt_http_chunks_begin(&chunks);
 *     step = jrt_http_chunks_next(&chunks, at, count, &used, &data);
 *     JRT_HTTP_CHUNK_DATA: use the data, then call again with at + used and count - used
 *     JRT_HTTP_CHUNK_MORE: all bytes are used; call again with new bytes
 *     JRT_HTTP_CHUNK_LAST: at + used is the first byte of the trailers; see head.h
 *     JRT_HTTP_CHUNK_BAD:  answer with 400, then close
 *
 * The last chunk is not the end of the body: trailers follow, or an empty line. The caller parses
 * them by jrt_http_trailers_begin and jrt_http_parse, with at most JRT_HTTP_TRAILER_BYTES.
 *
 * The decoder is as strict as the parser of heads. CR LF ends the line of a chunk and its data.
 * Extensions are checked against their grammar and then dropped. RFC 9112 allows spaces around the
 * ";" and "=" of an extension, and so does the decoder, but never before the CR LF.
 */
#ifndef JANUSRT_HTTP_CHUNK_H
#define JANUSRT_HTTP_CHUNK_H

#include "http/text.h"

enum jrt_http_chunk_step {
    JRT_HTTP_CHUNK_MORE,
    JRT_HTTP_CHUNK_DATA,
    JRT_HTTP_CHUNK_LAST,
    JRT_HTTP_CHUNK_BAD,
};

enum {
    JRT_HTTP_CHUNK_LINE_BYTES = 256, /* of a chunk's line with its CR LF */
    /* A peer may send this many bytes of lines beyond 16 for each chunk and 2 for each byte of
     * data. Without this limit 256 bytes of line could come with each byte of data, for ever. */
    JRT_HTTP_CHUNK_EXCESS_BYTES = 16384,
    JRT_HTTP_CHUNK_HEAD_BYTES = 18, /* of a line that we write: 16 digits, CR LF */
};

struct jrt_http_chunks {
    uint64_t    left;       /* of the current chunk: its data that has not come yet */
    uint32_t    excess;     /* see JRT_HTTP_CHUNK_EXCESS_BYTES */
    uint16_t    line_bytes; /* of the current line */
    uint8_t     state;      /* enum state in chunk.c */
    const char *why;        /* after BAD: a sentence without a full stop; else NULL */
};

void jrt_http_chunks_begin(struct jrt_http_chunks *chunks);

/*
 * Decodes from the front of `bytes` to the end of the next piece of data. *out_used is how many
 * bytes were decoded. DATA: *out_data is the piece, not empty, inside of `bytes`. After LAST or BAD
 * every further call returns the same and uses nothing.
 */
enum jrt_http_chunk_step jrt_http_chunks_next(struct jrt_http_chunks *chunks, const char *bytes,
                                              size_t count, size_t *out_used,
                                              struct jrt_http_text *out_data);

/*
 * Writes the line of a chunk. `data_bytes` must not be 0, because that would end the body. Returns
 * the bytes of the line. The data and JRT_HTTP_CHUNK_END follow it.
 */
size_t jrt_http_chunk_head(char out[JRT_HTTP_CHUNK_HEAD_BYTES], uint64_t data_bytes);

#define JRT_HTTP_CHUNK_END "\r\n"
#define JRT_HTTP_LAST_CHUNK "0\r\n" /* then trailers, then CR LF */

#endif

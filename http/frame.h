/* SPDX-License-Identifier: MIT */
/*
 * Frames of WebSocket (RFC 6455, 5), decoded in pieces of any size, and UTF-8.
 *
 *     jrt_http_frames_init(&frames, true, 1 << 20, 1024);
 *     step = jrt_http_frames_next(&frames, at, count, &used, &data);
 *     JRT_HTTP_FRAME_MORE:    all bytes are used; call again with new bytes
 *     JRT_HTTP_FRAME_DATA:    `data` belongs to the message; call again with at + used
 *     JRT_HTTP_FRAME_MESSAGE: the message is complete; frames.kind says what it is
 *     JRT_HTTP_FRAME_CONTROL: frames.control_kind, with the payload frames.control
 *     JRT_HTTP_FRAME_BAD:     close with frames.code; frames.why says what is wrong
 *
 * The decoder removes the mask where the bytes lie, so it writes to them. It is strict:
 *   - a client's frames are masked, and a server's are not
 *   - the three reserved bits are 0, because no extension was agreed on
 *   - unknown kinds are refused
 *   - a control frame is whole, and has at most 125 bytes
 *   - lengths are written in the shortest form, and below 2^63
 *   - a continuation follows a beginning, and nothing else begins in between
 *   - text is UTF-8, and its first wrong byte is refused at once
 *   - a close has no payload, or a code that may be sent and a reason in UTF-8
 *
 * The verdict depends on the bytes alone and never on how they arrived.
 */
#ifndef JANUSRT_HTTP_FRAME_H
#define JANUSRT_HTTP_FRAME_H

#include "http/text.h"

enum jrt_http_frame_kind {
    JRT_HTTP_FRAME_CONTINUATION = 0,
    JRT_HTTP_FRAME_TEXT = 1,
    JRT_HTTP_FRAME_BINARY = 2,
    JRT_HTTP_FRAME_CLOSE = 8,
    JRT_HTTP_FRAME_PING = 9,
    JRT_HTTP_FRAME_PONG = 10,
};

enum jrt_http_frame_step {
    JRT_HTTP_FRAME_MORE,
    JRT_HTTP_FRAME_DATA,
    JRT_HTTP_FRAME_MESSAGE,
    JRT_HTTP_FRAME_CONTROL,
    JRT_HTTP_FRAME_BAD,
};

enum {
    JRT_HTTP_FRAME_HEAD_BYTES = 14, /* at most */
    JRT_HTTP_CONTROL_BYTES = 125,   /* at most, of the payload of a control frame */
    /* Codes of a close. */
    JRT_HTTP_CLOSE_NORMAL = 1000,
    JRT_HTTP_CLOSE_AWAY = 1001,
    JRT_HTTP_CLOSE_PROTOCOL = 1002,
    JRT_HTTP_CLOSE_NO_CODE = 1005,  /* never sent: a close without a code was received */
    JRT_HTTP_CLOSE_ABNORMAL = 1006, /* never sent: no close was received */
    JRT_HTTP_CLOSE_TEXT = 1007,
    JRT_HTTP_CLOSE_TOO_BIG = 1009,
};

/* Checks UTF-8 in parts. All zero: at the beginning of a character. */
struct jrt_http_utf8 {
    uint8_t left;      /* bytes that the current character still needs */
    uint8_t low, high; /* the range of the next byte */
};

/* Whether the bytes can be UTF-8. At the end of a text utf8->left must be 0. */
bool jrt_http_utf8_check(struct jrt_http_utf8 *utf8, const char *bytes, size_t count);

struct jrt_http_frames {
    /* Set by init. */
    bool     masked; /* the other end is a client */
    uint32_t max_frames;
    uint64_t max_bytes;

    /* The frame. */
    uint8_t  head[JRT_HTTP_FRAME_HEAD_BYTES];
    uint8_t  head_bytes, head_need;
    uint8_t  key[4];
    uint8_t  phase; /* of the mask: the next byte uses key[phase] */
    bool     in_frame, final;
    uint8_t  opcode;
    uint64_t left; /* of the payload */

    /* The message: its kind, the bytes and frames so far. */
    uint8_t              kind; /* CONTINUATION: no message has begun */
    bool                 over; /* the next frame begins another message */
    uint32_t             count;
    uint64_t             bytes;
    struct jrt_http_utf8 utf8;

    uint8_t control_kind, control_bytes;
    char    control[JRT_HTTP_CONTROL_BYTES];

    uint16_t    code; /* after BAD: of the close that answers it; after a CLOSE: its code */
    const char *why;  /* after BAD: a sentence without a full stop; else NULL */
};

/* Prepares a decoder. A message has at most max_bytes, in at most max_frames frames. */
void jrt_http_frames_init(struct jrt_http_frames *frames, bool masked, uint64_t max_bytes,
                          uint32_t max_frames);

/*
 * Decodes from the front of `bytes` to the next event. *out_used is how many bytes were decoded.
 * DATA: *out_data is a piece of the payload inside of `bytes`, not empty, with its mask removed.
 * After BAD every further call returns the same and uses nothing.
 */
enum jrt_http_frame_step jrt_http_frames_next(struct jrt_http_frames *frames, char *bytes,
                                              size_t count, size_t *out_used,
                                              struct jrt_http_text *out_data);

/*
 * Writes the head of a frame. `key` is the mask of a client's frame; NULL: no mask. Returns the
 * bytes of the head, behind which the payload follows.
 */
size_t jrt_http_frame_head(uint8_t out[JRT_HTTP_FRAME_HEAD_BYTES], enum jrt_http_frame_kind kind,
                           bool final, uint64_t payload_bytes, const uint8_t key[4]);

/* Masks, or removes a mask. `phase` is the number of bytes that the mask covered before. */
void jrt_http_mask(char *bytes, size_t count, const uint8_t key[4], size_t phase);

/* Whether a close may have this code (RFC 6455, 7.4). */
bool jrt_http_is_close_code(unsigned code);

#endif

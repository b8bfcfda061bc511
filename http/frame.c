/* SPDX-License-Identifier: MIT */
#include "http/frame.h"

/*
 * The first byte of a character says how many follow and, of the first of them, the range. The
 * ranges leave out forms that are too long, surrogates, and what lies above U+10FFFF (RFC 3629).
 */
static bool utf8_begin(struct jrt_http_utf8 *utf8, uint8_t byte)
{
    utf8->low = 0x80;
    utf8->high = 0xbf;
    if (byte < 0x80) return true;
    if (byte < 0xc2 || byte > 0xf4) return false;
    utf8->left = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    if (byte == 0xe0) utf8->low = 0xa0;
    if (byte == 0xed) utf8->high = 0x9f;
    if (byte == 0xf0) utf8->low = 0x90;
    if (byte == 0xf4) utf8->high = 0x8f;
    return true;
}

bool jrt_http_utf8_check(struct jrt_http_utf8 *utf8, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t byte = (uint8_t)bytes[i];
        if (utf8->left > 0) {
            if (byte < utf8->low || byte > utf8->high) return false;
            utf8->low = 0x80;
            utf8->high = 0xbf;
            utf8->left--;
            continue;
        }
        uint64_t eight;
        while (count - i > 8) { /* ASCII, eight at a time */
            memcpy(&eight, bytes + i, 8);
            if ((eight & UINT64_C(0x8080808080808080)) != 0) break;
            i += 8;
        }
        if (!utf8_begin(utf8, (uint8_t)bytes[i])) return false;
    }
    return true;
}

void jrt_http_mask(char *bytes, size_t count, const uint8_t key[4], size_t phase)
{
    uint8_t  turned[8];
    uint64_t word, mask;
    size_t   i = 0;
    for (size_t j = 0; j < 8; j++) turned[j] = key[(phase + j) % 4];
    memcpy(&mask, turned, 8);
    for (; count - i >= 8; i += 8) {
        memcpy(&word, bytes + i, 8);
        word ^= mask;
        memcpy(bytes + i, &word, 8);
    }
    for (size_t j = 0; i < count; i++, j++) bytes[i] = (char)((uint8_t)bytes[i] ^ turned[j]);
}

bool jrt_http_is_close_code(unsigned code)
{
    if (code >= 3000 && code <= 4999) return true;
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}

size_t jrt_http_frame_head(uint8_t out[JRT_HTTP_FRAME_HEAD_BYTES], enum jrt_http_frame_kind kind,
                           bool final, uint64_t payload_bytes, const uint8_t key[4])
{
    size_t  bytes = 2, width = payload_bytes < 126 ? 0 : payload_bytes < 65536 ? 2 : 8;
    uint8_t length = width == 0 ? (uint8_t)payload_bytes : width == 2 ? 126 : 127;
    out[0] = (uint8_t)((final ? 0x80 : 0) | kind);
    out[1] = (uint8_t)((key != NULL ? 0x80 : 0) | length);
    for (size_t i = 0; i < width; i++) {
        out[bytes++] = (uint8_t)(payload_bytes >> 8 * (width - 1 - i));
    }
    if (key == NULL) return bytes;
    memcpy(out + bytes, key, 4);
    return bytes + 4;
}

void jrt_http_frames_init(struct jrt_http_frames *frames, bool masked, uint64_t max_bytes,
                          uint32_t max_frames)
{
    memset(frames, 0, sizeof *frames);
    frames->masked = masked;
    frames->max_bytes = max_bytes;
    frames->max_frames = max_frames;
    frames->head_need = 2;
    frames->over = true;
}

static enum jrt_http_frame_step bad(struct jrt_http_frames *frames, uint16_t code, const char *why)
{
    frames->code = code;
    frames->why = why;
    return JRT_HTTP_FRAME_BAD;
}

static enum jrt_http_frame_step wrong(struct jrt_http_frames *frames, const char *why)
{
    return bad(frames, JRT_HTTP_CLOSE_PROTOCOL, why);
}

/* Judges the first byte of a frame. */
static enum jrt_http_frame_step judge_first(struct jrt_http_frames *frames)
{
    uint8_t first = frames->head[0];
    frames->final = (first & 0x80) != 0;
    frames->opcode = first & 15;
    if ((first & 0x70) != 0) return wrong(frames, "a reserved bit is set");
    bool control = frames->opcode >= 8;
    if (control ? frames->opcode > JRT_HTTP_FRAME_PONG : frames->opcode > JRT_HTTP_FRAME_BINARY) {
        return wrong(frames, "the kind of the frame is unknown");
    }
    if (control) {
        if (!frames->final) return wrong(frames, "a control frame is in parts");
        return JRT_HTTP_FRAME_MORE;
    }
    bool continues = frames->opcode == JRT_HTTP_FRAME_CONTINUATION;
    if (continues && frames->over) return wrong(frames, "a continuation has no beginning");
    if (!continues && !frames->over) return wrong(frames, "a message begins inside of another");
    return JRT_HTTP_FRAME_MORE;
}

/* Judges the second byte, which says how long the head is. */
static enum jrt_http_frame_step judge_second(struct jrt_http_frames *frames)
{
    uint8_t second = frames->head[1], length = second & 127;
    bool    masked = (second & 0x80) != 0;
    if (masked != frames->masked) {
        return wrong(frames,
                     masked ? "a server's frame is masked" : "a client's frame has no mask");
    }
    if (frames->opcode >= 8 && length > JRT_HTTP_CONTROL_BYTES) {
        return wrong(frames, "a control frame is too long");
    }
    frames->head_need = (uint8_t)(2 + (length == 126 ? 2 : length == 127 ? 8 : 0) + 4 * masked);
    return JRT_HTTP_FRAME_MORE;
}

/* Judges a whole head. */
static enum jrt_http_frame_step judge_head(struct jrt_http_frames *frames)
{
    uint8_t  length = frames->head[1] & 127;
    size_t   width = length == 126 ? 2 : length == 127 ? 8 : 0;
    uint64_t bytes = width == 0 ? length : 0;
    for (size_t i = 0; i < width; i++) bytes = bytes << 8 | frames->head[2 + i];
    if ((width == 2 && bytes < 126) || (width == 8 && bytes < 65536)) {
        return wrong(frames, "the length is not in its shortest form");
    }
    if (bytes >> 63 != 0) return wrong(frames, "the length is above 2^63");
    if (frames->masked) memcpy(frames->key, frames->head + 2 + width, 4);
    frames->phase = 0;
    frames->left = bytes;
    frames->in_frame = true;
    if (frames->opcode >= 8) {
        frames->control_kind = frames->opcode;
        frames->control_bytes = 0;
        return JRT_HTTP_FRAME_MORE;
    }
    if (frames->over) {
        frames->kind = frames->opcode;
        frames->over = false;
        frames->count = 0;
        frames->bytes = 0;
        frames->utf8 = (struct jrt_http_utf8){0, 0, 0};
    }
    if (++frames->count > frames->max_frames) {
        return bad(frames, JRT_HTTP_CLOSE_TOO_BIG, "the message has too many frames");
    }
    if (bytes > frames->max_bytes - frames->bytes) {
        return bad(frames, JRT_HTTP_CLOSE_TOO_BIG, "the message is too long");
    }
    frames->bytes += bytes;
    return JRT_HTTP_FRAME_MORE;
}

/* Takes bytes of a head. MORE: the head is complete, or all bytes are used. */
static enum jrt_http_frame_step take_head(struct jrt_http_frames *frames, const char *bytes,
                                          size_t count, size_t *used)
{
    enum jrt_http_frame_step step = JRT_HTTP_FRAME_MORE;
    while (step == JRT_HTTP_FRAME_MORE && !frames->in_frame && *used < count) {
        frames->head[frames->head_bytes++] = (uint8_t)bytes[(*used)++];
        if (frames->head_bytes == 1) step = judge_first(frames);
        if (frames->head_bytes == 2) step = judge_second(frames);
        if (step == JRT_HTTP_FRAME_MORE && frames->head_bytes == frames->head_need) {
            step = judge_head(frames);
        }
    }
    return step;
}

/* A close has no payload, or a code and a reason. */
static enum jrt_http_frame_step judge_close(struct jrt_http_frames *frames)
{
    struct jrt_http_utf8 utf8 = {0, 0, 0};
    if (frames->control_bytes == 0) {
        frames->code = JRT_HTTP_CLOSE_NO_CODE;
        return JRT_HTTP_FRAME_CONTROL;
    }
    if (frames->control_bytes == 1) return wrong(frames, "a close has half a code");
    unsigned code = (unsigned)(uint8_t)frames->control[0] << 8 | (uint8_t)frames->control[1];
    if (!jrt_http_is_close_code(code)) return wrong(frames, "the code of a close is not allowed");
    if (!jrt_http_utf8_check(&utf8, frames->control + 2, frames->control_bytes - 2u) ||
        utf8.left > 0) {
        return bad(frames, JRT_HTTP_CLOSE_TEXT, "the reason of a close is no UTF-8");
    }
    frames->code = (uint16_t)code;
    return JRT_HTTP_FRAME_CONTROL;
}

/* The frame is complete. MORE: the message goes on. */
static enum jrt_http_frame_step end_frame(struct jrt_http_frames *frames)
{
    frames->in_frame = false;
    frames->head_bytes = 0;
    frames->head_need = 2;
    if (frames->opcode == JRT_HTTP_FRAME_CLOSE) return judge_close(frames);
    if (frames->opcode >= 8) return JRT_HTTP_FRAME_CONTROL;
    if (!frames->final) return JRT_HTTP_FRAME_MORE;
    frames->over = true;
    if (frames->kind == JRT_HTTP_FRAME_TEXT && frames->utf8.left > 0) {
        return bad(frames, JRT_HTTP_CLOSE_TEXT, "the text ends inside of a character");
    }
    return JRT_HTTP_FRAME_MESSAGE;
}

/* Takes a piece of a payload that is not empty. MORE: of a control frame. */
static enum jrt_http_frame_step take_payload(struct jrt_http_frames *frames, char *bytes,
                                             size_t count, size_t *used,
                                             struct jrt_http_text *out_data)
{
    char  *at = bytes + *used;
    size_t here = count - *used;
    if (here > frames->left) here = (size_t)frames->left;
    if (frames->masked) {
        jrt_http_mask(at, here, frames->key, frames->phase);
        frames->phase = (uint8_t)((frames->phase + here) % 4);
    }
    *used += here;
    frames->left -= here;
    if (frames->opcode >= 8) {
        memcpy(frames->control + frames->control_bytes, at, here);
        frames->control_bytes = (uint8_t)(frames->control_bytes + here);
        return JRT_HTTP_FRAME_MORE;
    }
    if (frames->kind == JRT_HTTP_FRAME_TEXT && !jrt_http_utf8_check(&frames->utf8, at, here)) {
        return bad(frames, JRT_HTTP_CLOSE_TEXT, "the text is no UTF-8");
    }
    *out_data = (struct jrt_http_text){at, here};
    return JRT_HTTP_FRAME_DATA;
}

enum jrt_http_frame_step jrt_http_frames_next(struct jrt_http_frames *frames, char *bytes,
                                              size_t count, size_t *out_used,
                                              struct jrt_http_text *out_data)
{
    enum jrt_http_frame_step step = JRT_HTTP_FRAME_MORE;
    *out_used = 0;
    if (frames->why != NULL) return JRT_HTTP_FRAME_BAD;
    while (step == JRT_HTTP_FRAME_MORE) {
        if (!frames->in_frame) step = take_head(frames, bytes, count, out_used);
        if (step != JRT_HTTP_FRAME_MORE || !frames->in_frame) break;
        if (frames->left == 0) {
            step = end_frame(frames);
        } else if (*out_used < count) {
            step = take_payload(frames, bytes, count, out_used, out_data);
        } else {
            break;
        }
    }
    return step;
}

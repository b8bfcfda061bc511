/* SPDX-License-Identifier: MIT */
/* Frames of WebSocket: a table of bytes and what they mean, in every split. And UTF-8. */
#include "harness.h"
#include "http/frame.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_BYTES = 70000, MAX_FRAMES = 3, SAID_BYTES = 400 };

/* Bytes in hexadecimal; a space says nothing. What they mean: events, "?" at the end if more is
 * needed. A client's frames are masked. */
struct row {
    bool        masked;
    const char *hex, *said;
};

static const struct row rows[] = {
    /* The examples of RFC 6455, 5.7. */
    {false, "81 05 48656c6c6f", "text(Hello)"},
    {true, "81 85 37fa213d 7f9f4d5158", "text(Hello)"},
    {false, "01 03 48656c 80 02 6c6f", "text(Hello)"},
    {false, "89 05 48656c6c6f", "ping(Hello)"},
    {true, "8a 85 37fa213d 7f9f4d5158", "pong(Hello)"},

    {false, "", "?"},
    {false, "81", "?"},
    {false, "81 05 4865", "?"},
    {false, "81 00", "text()"},
    {false, "82 00", "binary()"},
    {false, "82 01 ff", "binary(\xff)"},
    {true, "81 80 00000000", "text()"},
    {false, "81 01 61 81 01 62", "text(a)text(b)"},
    {false, "01 00 00 00 80 00", "text()"},
    {false, "01 01 61 89 01 70 80 01 62", "ping(p)text(ab)"},
    {false, "01 01 61 88 00", "close(1005,)?"},
    {false, "01 01 61 00 01 62 80 01 63", "text(abc)"},
    {false, "01 01 61 00 01 62 00 01 63 80 01 64", "bad(1009)"}, /* a fourth frame */

    /* Reserved bits, unknown kinds, masks. */
    {false, "c1 00", "bad(1002)"},
    {false, "a1 00", "bad(1002)"},
    {false, "91 00", "bad(1002)"},
    {false, "83 00", "bad(1002)"},
    {false, "87 00", "bad(1002)"},
    {false, "8b 00", "bad(1002)"},
    {false, "8f 00", "bad(1002)"},
    {false, "81 80 00000000", "bad(1002)"},
    {true, "81 00", "bad(1002)"},
    {true, "89 00", "bad(1002)"},

    /* Control frames are whole and short. */
    {false, "09 00", "bad(1002)"},
    {false, "08 00", "bad(1002)"},
    {false, "89 7e 007e", "bad(1002)"},
    {false, "89 7f 0000000000000001", "bad(1002)"},

    /* Lengths. */
    {false, "82 7e 007d", "bad(1002)"},
    {false, "82 7f 000000000000ffff", "bad(1002)"},
    {false, "82 7f 8000000000000000", "bad(1002)"},
    {false, "82 7f 7fffffffffffffff", "bad(1009)"},
    {false, "82 7f 0000000000011171", "bad(1009)"},
    {false, "82 7f 0000000000011170", "?"},
    {false, "02 01 61 80 7f 0000000000011170", "bad(1009)"},

    /* Continuations. */
    {false, "80 00", "bad(1002)"},
    {false, "00 00", "bad(1002)"},
    {false, "81 00 80 00", "text()bad(1002)"},
    {false, "01 01 61 81 01 62", "bad(1002)"},
    {false, "01 01 61 02 01 62", "bad(1002)"},

    /* Text. */
    {false, "81 02 c3a9", "text(\xc3\xa9)"},
    {false, "01 01 c3 80 01 a9", "text(\xc3\xa9)"},
    {false, "01 01 c3 89 00 80 01 a9", "ping()text(\xc3\xa9)"},
    {false, "81 01 c3", "bad(1007)"},
    {false, "01 01 c3 80 00", "bad(1007)"},
    {false, "01 01 c3 00 01 41", "bad(1007)"},
    {false, "81 02 c080", "bad(1007)"},
    {false, "81 03 eda080", "bad(1007)"},
    {false, "81 7f 0000000000010000 ff", "bad(1007)"}, /* at once */
    {true, "81 81 ffffffff 00", "bad(1007)"},

    /* Close. */
    {false, "88 00", "close(1005,)"},
    {false, "88 02 03e8", "close(1000,)"},
    {false, "88 05 03e9 627965", "close(1001,bye)"},
    {false, "88 02 0bb8", "close(3000,)"},
    {false, "88 02 1387", "close(4999,)"},
    {false, "88 01 03", "bad(1002)"},
    {false, "88 02 03e7", "bad(1002)"},
    {false, "88 02 03ec", "bad(1002)"},
    {false, "88 02 03ed", "bad(1002)"},
    {false, "88 02 03ee", "bad(1002)"},
    {false, "88 02 03f7", "bad(1002)"},
    {false, "88 02 0bb7", "bad(1002)"},
    {false, "88 02 1388", "bad(1002)"},
    {false, "88 03 03e8 ff", "bad(1007)"},
    {false, "88 03 03e8 c3", "bad(1007)"},
};

static size_t unhex(const char *hex, char out[64])
{
    size_t bytes = 0;
    while (*hex != '\0') {
        if (*hex == ' ') {
            hex++;
            continue;
        }
        unsigned byte = 0;
        CHECK_EQ(sscanf(hex, "%2x", &byte), 1);
        out[bytes++] = (char)byte;
        hex += 2;
    }
    return bytes;
}

struct said {
    char   text[SAID_BYTES], message[SAID_BYTES];
    size_t bytes, message_bytes;
    bool   bad;
};

static void add(struct said *said, const char *text, size_t bytes)
{
    CHECK(said->bytes + bytes < SAID_BYTES);
    memcpy(said->text + said->bytes, text, bytes);
    said->bytes += bytes;
}

static void add_event(struct said *said, const char *name, const char *payload, size_t bytes)
{
    add(said, name, strlen(name));
    add(said, payload, bytes);
    add(said, ")", 1);
}

static void note(struct said *said, struct jrt_http_frames *frames, enum jrt_http_frame_step step)
{
    char name[32];
    switch (step) {
    case JRT_HTTP_FRAME_MESSAGE:
        add_event(said, frames->kind == JRT_HTTP_FRAME_TEXT ? "text(" : "binary(", said->message,
                  said->message_bytes);
        said->message_bytes = 0;
        break;
    case JRT_HTTP_FRAME_CONTROL:
        if (frames->control_kind == JRT_HTTP_FRAME_CLOSE) {
            size_t skip = frames->control_bytes < 2 ? frames->control_bytes : 2;
            (void)snprintf(name, sizeof name, "close(%u,", frames->code);
            add_event(said, name, frames->control + skip, frames->control_bytes - skip);
        } else {
            add_event(said, frames->control_kind == JRT_HTTP_FRAME_PING ? "ping(" : "pong(",
                      frames->control, frames->control_bytes);
        }
        break;
    case JRT_HTTP_FRAME_BAD:
        (void)snprintf(name, sizeof name, "bad(%u", frames->code);
        add_event(said, name, "", 0);
        CHECK(frames->why != NULL);
        said->bad = true;
        break;
    default: break;
    }
}

/* Decodes a part that lies in a block of just this size. */
static void feed(struct said *said, struct jrt_http_frames *frames, const char *bytes, size_t count)
{
    char                    *block = malloc(count + (count == 0));
    size_t                   at = 0;
    enum jrt_http_frame_step step = JRT_HTTP_FRAME_DATA;
    CHECK(block != NULL);
    memcpy(block, bytes, count);
    while (step != JRT_HTTP_FRAME_MORE && step != JRT_HTTP_FRAME_BAD) {
        size_t               used = 0;
        struct jrt_http_text data = {NULL, 0};
        step = jrt_http_frames_next(frames, block + at, count - at, &used, &data);
        CHECK(used <= count - at);
        at += used;
        if (step == JRT_HTTP_FRAME_MORE) CHECK_EQ(at, count);
        if (step == JRT_HTTP_FRAME_DATA) {
            CHECK(data.bytes > 0 && data.at + data.bytes == block + at);
            CHECK(said->message_bytes + data.bytes <= SAID_BYTES);
            memcpy(said->message + said->message_bytes, data.at, data.bytes);
            said->message_bytes += data.bytes;
        }
        note(said, frames, step);
    }
    free(block);
}

/* Decodes in parts: the first has `first` bytes, the others `part`. */
static const char *decode(const struct row *row, size_t first, size_t part)
{
    static struct said     said;
    struct jrt_http_frames frames;
    char                   bytes[64];
    size_t                 count = unhex(row->hex, bytes), at = 0, here = first;
    memset(&said, 0, sizeof said);
    jrt_http_frames_init(&frames, row->masked, MAX_BYTES, MAX_FRAMES);
    do {
        if (here > count - at) here = count - at;
        feed(&said, &frames, bytes + at, here);
        at += here;
        here = part;
    } while (at < count && !said.bad);
    bool whole = frames.over && !frames.in_frame && frames.head_bytes == 0 && count > 0;
    if (!said.bad && !whole) add(&said, "?", 1);
    said.text[said.bytes] = '\0';
    return said.text;
}

TEST("every row of the table of frames means what it should, in every split")
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char   bytes[64];
        size_t count = unhex(rows[i].hex, bytes);
        for (size_t first = 0; first <= count; first++) {
            CHECK_STR(decode(&rows[i], first, count + 1), rows[i].said);
            CHECK_STR(decode(&rows[i], first, 1), rows[i].said);
        }
    }
}

TEST("a frame that was written is read again, with and without a mask")
{
    static const uint64_t lengths[] = {0, 1, 125, 126, 127, 65535, 65536, 69999};
    static const uint8_t  key[4] = {0x12, 0x34, 0x56, 0x78};
    static const size_t   heads[] = {2, 2, 2, 4, 4, 4, 10, 10};
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof lengths[0]; i++) {
        bool                   masked = i % 2 == 1;
        size_t                 length = (size_t)lengths[i / 2], used = 0, got = 0;
        struct jrt_http_frames frames;
        struct jrt_http_text   data;
        char                  *all = malloc(length + JRT_HTTP_FRAME_HEAD_BYTES);
        CHECK(all != NULL);
        size_t head = jrt_http_frame_head((uint8_t *)all, JRT_HTTP_FRAME_BINARY, true, length,
                                          masked ? key : NULL);
        CHECK_EQ(head, heads[i / 2] + 4 * masked);
        for (size_t j = 0; j < length; j++) all[head + j] = (char)(j * 7);
        if (masked) jrt_http_mask(all + head, length, key, 0);
        jrt_http_frames_init(&frames, masked, MAX_BYTES, 1);
        size_t                   at = 0;
        enum jrt_http_frame_step step;
        while ((step = jrt_http_frames_next(&frames, all + at, head + length - at, &used, &data)) ==
               JRT_HTTP_FRAME_DATA) {
            for (size_t j = 0; j < data.bytes; j++) {
                CHECK_EQ((uint8_t)data.at[j], (uint8_t)((got + j) * 7));
            }
            got += data.bytes;
            at += used;
        }
        CHECK_EQ(step, JRT_HTTP_FRAME_MESSAGE);
        CHECK_EQ(got, length);
        free(all);
    }
}

/* As a plain definition says it, of at most four bytes. */
static bool is_utf8(const uint8_t *b, size_t count)
{
    while (count > 0) {
        uint32_t point = b[0];
        size_t   bytes = point < 0x80 ? 1 : point < 0xe0 ? 2 : point < 0xf0 ? 3 : 4;
        if (point >= 0x80 && (point < 0xc0 || point >= 0xf8)) return false;
        if (count < bytes) return false;
        if (bytes > 1) point &= 0x7fu >> bytes;
        for (size_t i = 1; i < bytes; i++) {
            if ((b[i] & 0xc0) != 0x80) return false;
            point = point << 6 | (b[i] & 0x3fu);
        }
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        if (point < least[bytes] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
            return false;
        }
        b += bytes;
        count -= bytes;
    }
    return true;
}

TEST("the check accepts UTF-8 as its definition does, in two parts, too")
{
    static const uint8_t edges[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                    0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                                    0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xff};
    enum { EDGES = sizeof edges };
    for (size_t i = 0; i < (size_t)EDGES * EDGES * EDGES * EDGES; i++) {
        uint8_t              bytes[4] = {edges[i % EDGES], edges[i / EDGES % EDGES],
                                         edges[i / EDGES / EDGES % EDGES],
                                         edges[i / EDGES / EDGES / EDGES % EDGES]};
        struct jrt_http_utf8 utf8 = {0, 0, 0};
        size_t               part = i % 5;
        bool                 good = jrt_http_utf8_check(&utf8, (const char *)bytes, part) &&
                    jrt_http_utf8_check(&utf8, (const char *)bytes + part, 4 - part) &&
                    utf8.left == 0;
        CHECK_EQ(good, is_utf8(bytes, 4));
    }
}

TEST("a wrong byte is found wherever it stands in a long text")
{
    char text[64];
    for (size_t wrong = 0; wrong < sizeof text; wrong++) {
        struct jrt_http_utf8 utf8 = {0, 0, 0}, other = {0, 0, 0};
        memset(text, 'a', sizeof text);
        CHECK(jrt_http_utf8_check(&other, text, sizeof text));
        text[wrong] = (char)0xff;
        CHECK(!jrt_http_utf8_check(&utf8, text, sizeof text));
    }
}

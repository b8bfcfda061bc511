/* SPDX-License-Identifier: MIT */
/*
 * Frames of WebSocket. The first byte of the input chooses the length of the parts and whether the
 * frames come from a client.
 *
 * What must hold for all bytes: the length of the parts does not change what the frames mean, and
 * why they are refused. Data lies inside of the bytes, and no
 * step stands still. Text is UTF-8. Messages obey their limits.
 */
#include "fuzz.h"
#include "http/frame.h"

enum { MAX_BYTES = 512, MAX_FRAMES = 8 };

/* All that was understood: each event as its kind, its length and its bytes. */
struct understood {
    char                    *log;
    size_t                   bytes, message; /* where the current message begins */
    enum jrt_http_frame_step step;
    uint16_t                 code;
    const char              *why;
};

static void put(struct understood *all, const void *bytes, size_t count)
{
    if (count > 0) memcpy(all->log + all->bytes, bytes, count);
    all->bytes += count;
}

static void note(struct understood *all, struct jrt_http_frames *frames)
{
    if (all->step == JRT_HTTP_FRAME_MESSAGE) {
        struct jrt_http_utf8 utf8 = {0, 0, 0};
        size_t               bytes = all->bytes - all->message;
        MUST(bytes == frames->bytes && bytes <= MAX_BYTES && frames->count <= MAX_FRAMES);
        if (frames->kind == JRT_HTTP_FRAME_TEXT) {
            MUST(jrt_http_utf8_check(&utf8, all->log + all->message, bytes) && utf8.left == 0);
        }
        put(all, &frames->kind, 1);
        all->message = all->bytes;
    }
    if (all->step == JRT_HTTP_FRAME_CONTROL) { /* it may stand inside of a message */
        size_t bytes = all->bytes - all->message, added = frames->control_bytes + 2u;
        memmove(all->log + all->message + added, all->log + all->message, bytes);
        memcpy(all->log + all->message, frames->control, frames->control_bytes);
        all->log[all->message + frames->control_bytes] = (char)frames->control_kind;
        all->log[all->message + frames->control_bytes + 1u] = (char)frames->control_bytes;
        all->message += added;
        all->bytes += added;
    }
}

/* Decodes in parts of `part` bytes. */
static struct understood decode(const char *bytes, size_t count, size_t part, bool masked)
{
    struct jrt_http_frames frames;
    struct understood      all = {malloc(4 * count + 16), 0, 0, JRT_HTTP_FRAME_MORE, 0, NULL};
    size_t                 at = 0;
    MUST(all.log != NULL);
    jrt_http_frames_init(&frames, masked, MAX_BYTES, MAX_FRAMES);
    while (at < count && all.step != JRT_HTTP_FRAME_BAD) {
        size_t here = count - at < part ? count - at : part, done = 0;
        char  *copy = exact_copy(bytes + at, here);
        do {
            struct jrt_http_text data = {NULL, 0};
            size_t               used = 0;
            all.step = jrt_http_frames_next(&frames, copy + done, here - done, &used, &data);
            MUST(used <= here - done);
            done += used;
            if (all.step == JRT_HTTP_FRAME_MORE) MUST(done == here);
            if (all.step == JRT_HTTP_FRAME_DATA) {
                MUST(data.bytes > 0 && data.at >= copy && data.at + data.bytes == copy + done);
                put(&all, data.at, data.bytes);
            }
            note(&all, &frames);
        } while (all.step != JRT_HTTP_FRAME_MORE && all.step != JRT_HTTP_FRAME_BAD);
        at += here;
        free(copy);
    }
    MUST((all.step == JRT_HTTP_FRAME_BAD) == (frames.why != NULL));
    all.why = frames.why;
    all.code = frames.code;
    if (all.step == JRT_HTTP_FRAME_BAD) all.bytes = all.message; /* pieces depend on the parts */
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const char       *bytes = (const char *)data + 1;
    bool              masked = data[0] >= 128;
    struct understood whole = decode(bytes, size - 1, size, masked);
    struct understood parts = decode(bytes, size - 1, data[0] % 16 + 1u, masked);
    MUST(whole.step == parts.step && whole.code == parts.code && whole.why == parts.why);
    MUST(whole.bytes == parts.bytes && memcmp(whole.log, parts.log, whole.bytes) == 0);
    free(whole.log);
    free(parts.log);
    return 0;
}

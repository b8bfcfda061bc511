/* SPDX-License-Identifier: MIT */
/*
 * A trace as a file: a header and events, all of little-endian 64-bit words.
 *
 *     "JANUSTRC"   version 1   workers << 1 | deterministic   seed   hash   happened   lost
 *     began_ns   count   sum, the hash of all words before it and after it
 *     time_ns   task   object   kind | worker << 8 | amount << 24      `count` times
 *
 * A reader trusts nothing: it takes memory as events come, not as the header promises.
 */
#include "base/hash.h"
#include "base/outside.h"
#include "trace/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    VERSION = 1,
    HEADER_WORDS = 10,
    EVENT_WORDS = 4,
    PIECE_EVENTS = 32, /* a task's stack is small */
};

static const char magic[8] = "JANUSTRC";

static void put_word(unsigned char *bytes, uint64_t word)
{
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(word >> (8 * i));
}

static uint64_t get_word(const unsigned char *bytes)
{
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

static uint64_t hash_event(uint64_t sum, const struct jrt_trace_event *event)
{
    sum = jrt_hash_add(jrt_hash_add(sum, event->time_ns), event->task);
    return jrt_hash_add(jrt_hash_add(sum, event->object), event->rest);
}

static uint64_t hash_words(const uint64_t *words, int count)
{
    uint64_t sum = 0;
    for (int i = 0; i < count; i++) sum = jrt_hash_add(sum, words[i]);
    return sum;
}

void jrt_trace_put_binary(struct jrt_trace_out *out, const struct jrt_trace_copy *copy)
{
    unsigned char bytes[HEADER_WORDS * 8];
    uint64_t      words[HEADER_WORDS] = {get_word((const unsigned char *)magic),
                                         VERSION,
                                         (uint64_t)copy->workers << 1 | copy->deterministic,
                                         copy->seed,
                                         copy->hash,
                                         copy->happened,
                                         copy->lost,
                                         copy->began_ns,
                                         copy->count};
    uint64_t      sum = hash_words(words, HEADER_WORDS - 1);
    for (size_t i = 0; i < copy->count; i++) sum = hash_event(sum, &copy->events[i]);
    words[HEADER_WORDS - 1] = sum;
    for (size_t i = 0; i < HEADER_WORDS; i++) put_word(bytes + 8 * i, words[i]);
    jrt_trace_put_bytes(out, bytes, sizeof bytes);
    for (size_t i = 0; i < copy->count; i++) {
        const struct jrt_trace_event *event = &copy->events[i];
        put_word(bytes, event->time_ns);
        put_word(bytes + 8, event->task);
        put_word(bytes + 16, event->object);
        put_word(bytes + 24, event->rest);
        jrt_trace_put_bytes(out, bytes, (size_t)EVENT_WORDS * 8);
    }
}

/* Reading. */

static bool read_all(int fd, unsigned char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t got = read(fd, bytes, count);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        bytes += got;
        count -= (size_t)got;
    }
    return true;
}

/* Whether an event can be drawn: its time does not go back and its kind is known. */
static bool is_sane(const struct jrt_trace_event *event, uint64_t before_ns)
{
    return jrt_trace_kind_of(event) < JRT_TRACE_KINDS && event->time_ns >= before_ns;
}

/* Reads some more events and continues *sum. */
static janus_status read_piece(int fd, struct jrt_trace_copy *copy, size_t some, uint64_t *sum)
{
    unsigned char           bytes[PIECE_EVENTS * EVENT_WORDS * 8];
    uint64_t                before = copy->count > 0 ? copy->events[copy->count - 1].time_ns : 0;
    struct jrt_trace_event *events = copy->events;
    if (!read_all(fd, bytes, some * EVENT_WORDS * 8)) return JANUS_INVALID;
    for (size_t i = 0; i < some; i++) {
        const unsigned char    *from = bytes + i * EVENT_WORDS * 8;
        struct jrt_trace_event *event = &events[copy->count++];
        *event = (struct jrt_trace_event){get_word(from), get_word(from + 8), get_word(from + 16),
                                          get_word(from + 24)};
        if (!is_sane(event, before)) return JANUS_INVALID;
        before = event->time_ns;
        *sum = hash_event(*sum, event);
    }
    return JANUS_OK;
}

static janus_status read_copy(int fd, struct jrt_trace_copy *copy)
{
    unsigned char bytes[HEADER_WORDS * 8];
    uint64_t      words[HEADER_WORDS];
    if (!read_all(fd, bytes, sizeof bytes)) return JANUS_INVALID;
    for (size_t i = 0; i < HEADER_WORDS; i++) words[i] = get_word(bytes + 8 * i);
    if (memcmp(bytes, magic, sizeof magic) != 0 || words[1] != VERSION) return JANUS_INVALID;
    uint64_t sum = hash_words(words, HEADER_WORDS - 1), left = words[8];
    copy->workers = (uint32_t)(words[2] >> 1);
    copy->deterministic = words[2] & 1;
    copy->seed = words[3];
    copy->hash = words[4];
    copy->happened = words[5];
    copy->lost = words[6];
    copy->began_ns = words[7];
    for (size_t room = 0; left > 0;) {
        size_t some = left < PIECE_EVENTS ? (size_t)left : PIECE_EVENTS;
        if (room < copy->count + some) {
            room = room > 0 ? room * 2 : (size_t)PIECE_EVENTS * 8;
            struct jrt_trace_event *larger = realloc(copy->events, room * sizeof *larger);
            if (larger == NULL) return JANUS_NO_MEMORY;
            copy->events = larger;
        }
        janus_status status = read_piece(fd, copy, some, &sum);
        if (status != JANUS_OK) return status;
        left -= some;
    }
    return sum == words[HEADER_WORDS - 1] ? JANUS_OK : JANUS_INVALID;
}

janus_status janus_trace_read(int fd, janus_trace **out)
{
    jrt_outside_call_long(); /* [turn-call] */
    janus_trace *trace;
    if (out == NULL || fd < 0) return JANUS_INVALID;
    janus_status status = janus_trace_create(NULL, &trace);
    if (status != JANUS_OK) return status;
    trace->frozen = true;
    status = read_copy(fd, &trace->copy);
    if (status == JANUS_OK) {
        *out = trace;
    } else {
        (void)janus_trace_destroy(trace);
    }
    return status;
}

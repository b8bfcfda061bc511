/* SPDX-License-Identifier: MIT */
/*
 * Events as lines of JSON.
 *
 * Ids are strings, because a reader that takes numbers for doubles would change them. Counts and
 * times are numbers. The program chooses the names, which may hold any bytes.
 *
 * [json-name]  every byte of a name becomes part of valid JSON and valid UTF-8, and none a control
 *   character. So a name can neither end its line nor control a terminal. Bytes that are not UTF-8
 *   become U+FFFD.
 *
 * [json-room]  the longest line fits: all fields together take less than 1000 bytes, and a name
 *   grows at most sixfold.
 */
#include "audit/audit.h"

#include <janusrt/cap.h>
#include <string.h>

struct text {
    char *at, *end;
};

static void put_bytes(struct text *text, const char *bytes, size_t count)
{
    jrt_invariant("json-room", (size_t)(text->end - text->at) > count);
    memcpy(text->at, bytes, count);
    text->at += count;
}

static void put(struct text *text, const char *string) { put_bytes(text, string, strlen(string)); }

static void put_number(struct text *text, uint64_t number)
{
    char  digits[20];
    char *at = digits + sizeof digits;
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    put_bytes(text, at, (size_t)(digits + sizeof digits - at));
}

/* ,"key":number */
static void put_count(struct text *text, const char *key, uint64_t number)
{
    put(text, ",\"");
    put(text, key);
    put(text, "\":");
    put_number(text, number);
}

/* ,"key":"text". The text needs no escaping. */
static void put_word(struct text *text, const char *key, const char *word)
{
    put(text, ",\"");
    put(text, key);
    put(text, "\":\"");
    put(text, word);
    put(text, "\"");
}

static void put_id(struct text *text, const char *key, uint64_t id)
{
    put_word(text, key, "");
    text->at--;
    put_number(text, id);
    put(text, "\"");
}

/* ,"key":"slot.generation" */
static void put_cap(struct text *text, const char *key, uint64_t cap)
{
    if (cap == 0) return;
    put_word(text, key, "");
    text->at--;
    put_number(text, (uint32_t)cap);
    put(text, ".");
    put_number(text, cap >> 32);
    put(text, "\"");
}

static void put_rights(struct text *text, const char *key, uint32_t rights)
{
    const char *between = "";
    if (rights == 0) return;
    put_word(text, key, "");
    text->at--;
    for (uint32_t left = rights; left != 0; left &= left - 1) {
        put(text, between);
        put(text, janus_right_name(left & (0 - left)));
        between = ",";
    }
    put(text, "\"");
}

static void put_escape(struct text *text, unsigned point)
{
    static const char hex[] = "0123456789abcdef";
    char              escape[6] = {
        '\\',           'u', hex[point >> 12 & 15], hex[point >> 8 & 15], hex[point >> 4 & 15],
        hex[point & 15]};
    put_bytes(text, escape, sizeof escape);
}

/* The length of the character at `at`; 0: not a whole valid one (RFC 3629). */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    unsigned lead = at[0];
    size_t   length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (length == 0 || length > left || lead > 0xf4) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
    }
    if (lead == 0xe0 && at[1] < 0xa0) return 0; /* overlong */
    if (lead == 0xed && at[1] > 0x9f) return 0; /* half of a surrogate pair */
    if (lead == 0xf0 && at[1] < 0x90) return 0; /* overlong */
    if (lead == 0xf4 && at[1] > 0x8f) return 0; /* beyond the last character */
    return length;
}

/* Whether the bytes can stand in a JSON string: no control character, a quote only in an escape. */
static bool is_safe(const char *from, const char *to)
{
    while (from < to) {
        const unsigned char *at = (const unsigned char *)from;
        size_t               length = utf8_length(at, (size_t)(to - from));
        bool                 control = *at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0);
        if (length == 0 || control || *at == '"') return false;
        from += *at == '\\' ? 2 : length;
    }
    return from == to;
}

/* Writes a name by [json-name]. */
static void put_name(struct text *text, const char *key, const char *name, size_t bytes)
{
    put_word(text, key, "");
    text->at--;
    const char *begin = text->at;
    for (size_t i = 0; i < bytes;) {
        const unsigned char *at = (const unsigned char *)name + i;
        size_t               length = utf8_length(at, bytes - i);
        if (length == 0) {
            put_escape(text, 0xfffd);
            length = 1;
        } else if (*at < 0x20 || *at == 0x7f) {
            put_escape(text, *at);
        } else if (*at == 0xc2 && at[1] < 0xa0) { /* the C1 controls */
            put_escape(text, at[1]);
        } else if (*at == '"' || *at == '\\') {
            char escape[2] = {'\\', (char)*at};
            put_bytes(text, escape, sizeof escape);
        } else {
            put_bytes(text, name + i, length);
        }
        i += length;
    }
    jrt_debug_invariant("json-name", is_safe(begin, text->at));
    (void)begin;
    put(text, "\"");
}

static const char *what_name(unsigned what)
{
    static const char *const names[] = {
#define X(name, text) [JRT_AUDIT_##name] = text,
        JRT_AUDIT_MAP(X)
#undef X
    };
    return what < sizeof names / sizeof names[0] ? names[what] : "?";
}

static const char *component_name(unsigned component)
{
    static const char *const names[] = {
        [JRT_AUDIT_OPS] = "ops",
        [JRT_AUDIT_MEMORY] = "memory",
        [JRT_AUDIT_SPAWN_COUNT] = "spawn_count",
        [JRT_AUDIT_CHANNEL_OPS] = "channel_ops",
        [JRT_AUDIT_SYSCALLS] = "syscalls",
    };
    return component < sizeof names / sizeof names[0] ? names[component] : "?";
}

static struct text line_begin(char *out, size_t bytes, uint32_t writer, uint64_t seq)
{
    struct text text = {out, out + bytes};
    put(&text, "{\"writer\":");
    put_number(&text, writer);
    put_count(&text, "seq", seq);
    return text;
}

static size_t line_end(struct text *text, const char *out)
{
    put(text, "}\n");
    *text->at = '\0'; /* put_bytes leaves room for it */
    return (size_t)(text->at - out);
}

size_t jrt_audit_format(char *out, size_t bytes, uint32_t writer,
                        const struct jrt_audit_event *event)
{
    struct text text = line_begin(out, bytes, writer, event->seq);
    put_count(&text, "mono_ns", event->mono_ns);
    put_word(&text, "event", what_name(event->what));
    put_cap(&text, "cap", event->cap);
    put_cap(&text, "origin", event->origin);
    if (event->kind != 0) put_word(&text, "kind", janus_cap_kind_name(event->kind));
    if (event->holder != 0) put_id(&text, "holder", event->holder);
    if (event->to_holder != 0) put_id(&text, "to_holder", event->to_holder);
    put_rights(&text, "rights", event->rights);
    put_rights(&text, "wanted", event->wanted);
    if (event->what == JRT_AUDIT_USE) {
        put_count(&text, "count", event->count);
        put_count(&text, "first_ns", event->first);
    } else if (event->what == JRT_AUDIT_REVOCATION) {
        put_count(&text, "count", event->count);
    } else if (event->what == JRT_AUDIT_EXHAUSTION || event->what == JRT_AUDIT_RECHARGE) {
        put_word(&text, "component", component_name(event->component));
        put_count(&text, "before", event->first);
        put_count(&text, "after", event->after);
    }
    bool has_port = event->what == JRT_AUDIT_DENIAL && event->after > 0;
    if (has_port) put_count(&text, "port", event->after - 1);
    if (event->status != 0) put_word(&text, "status", janus_status_name(event->status));
    if (event->name_bytes > 0) put_name(&text, "name", event->name, event->name_bytes);
    return line_end(&text, out);
}

size_t jrt_audit_format_gap(char *out, size_t bytes, const struct jrt_audit_writer *writer,
                            uint64_t lost)
{
    struct text text = line_begin(out, bytes, writer->id, writer->next_seq);
    put_word(&text, "event", "gap");
    put_count(&text, "lost", lost);
    if (writer->party) put_name(&text, "pool", writer->name, strlen(writer->name));
    return line_end(&text, out);
}

size_t jrt_audit_format_begin(char *out, size_t bytes, uint64_t now_ns, bool fail_closed)
{
    struct text text = {out, out + bytes};
    put(&text, "{\"event\":\"begin\",\"format\":1");
    put_count(&text, "mono_ns", now_ns);
    put_word(&text, "when_full", fail_closed ? "refuse" : "lose");
    return line_end(&text, out);
}

/* SPDX-License-Identifier: MIT */
/* Names, ranges, entity tags and types of files. */
#include "http/file.h"

/* Decodes one byte at the front of *rest. -1: it must not stand in a name. */
static int decode(struct jrt_http_text *rest)
{
    unsigned byte = (uint8_t)rest->at[0];
    size_t   used = 1;
    if (byte == '%') {
        if (rest->bytes < 3 || !jrt_http_is(rest->at[1], JRT_HTTP_HEX) ||
            !jrt_http_is(rest->at[2], JRT_HTTP_HEX))
            return -1;
        byte = jrt_http_hex(rest->at[1]) << 4 | jrt_http_hex(rest->at[2]);
        if (byte == '/') return -1;
        used = 3;
    }
    if (byte == '\\' || byte < 0x20 || byte == 0x7f) return -1;
    rest->at += used;
    rest->bytes -= used;
    return (int)byte;
}

/* Where the last segment of `name` begins, which is complete and ends with a slash. */
static size_t parent(const char *name, size_t bytes)
{
    bytes--;
    while (bytes > 0 && name[bytes - 1] != '/') bytes--;
    return bytes;
}

janus_status jrt_http_path_decode(struct jrt_http_text path, char *out, size_t room,
                                  size_t *out_bytes)
{
    size_t bytes = 0, segment = 0; /* of the name so far; where its last segment begins */
    if (path.bytes == 0 || path.at[0] != '/') return JANUS_INVALID;
    path.at++;
    path.bytes--;
    for (bool over = false; !over;) {
        over = path.bytes == 0;
        bool slash = !over && path.at[0] == '/';
        if (!over && !slash) {
            int byte = decode(&path);
            if (byte < 0) return JANUS_INVALID;
            if (bytes + 1 >= room) return JANUS_FULL;
            out[bytes++] = (char)byte;
            continue;
        }
        if (slash) {
            path.at++;
            path.bytes--;
        }
        size_t length = bytes - segment;
        if (length == 2 && out[segment] == '.' && out[segment + 1] == '.') {
            if (segment == 0) return JANUS_INVALID;
            bytes = parent(out, segment);
        } else if (length == 1 && out[segment] == '.') {
            bytes = segment;
        } else if (slash && length > 0) {
            if (bytes + 1 >= room) return JANUS_FULL;
            out[bytes++] = '/';
        }
        segment = bytes;
    }
    if (room == 0) return JANUS_FULL;
    out[bytes] = '\0';
    *out_bytes = bytes;
    return JANUS_OK;
}

/* Takes a number off the front; what does not fit becomes the largest. False: no digit stands
 * there. */
static bool take_number(struct jrt_http_text *rest, uint64_t *out_number)
{
    size_t   digits = 0;
    uint64_t number = 0;
    for (; digits < rest->bytes && jrt_http_is_digit(rest->at[digits]); digits++) {
        uint64_t digit = (uint64_t)(rest->at[digits] - '0');
        number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
    }
    rest->at += digits;
    rest->bytes -= digits;
    *out_number = number;
    return digits > 0;
}

enum jrt_http_range jrt_http_range_read(struct jrt_http_text value, uint64_t size,
                                        uint64_t *out_first, uint64_t *out_bytes)
{
    const struct jrt_http_text unit = JRT_HTTP_TEXT("bytes=");
    uint64_t                   first, last;
    if (value.bytes < unit.bytes ||
        !jrt_http_same((struct jrt_http_text){value.at, unit.bytes}, unit))
        return JRT_HTTP_RANGE_WHOLE;
    struct jrt_http_text rest =
        jrt_http_trim((struct jrt_http_text){value.at + unit.bytes, value.bytes - unit.bytes});

    bool has_first = take_number(&rest, &first);
    if (rest.bytes == 0 || rest.at[0] != '-') return JRT_HTTP_RANGE_WHOLE;
    rest.at++;
    rest.bytes--;
    bool has_last = take_number(&rest, &last);
    if (rest.bytes > 0 || (!has_first && !has_last)) return JRT_HTTP_RANGE_WHOLE;

    if (!has_first) { /* the last bytes */
        if (last == 0) return JRT_HTTP_RANGE_NONE;
        if (size == 0) return JRT_HTTP_RANGE_WHOLE;
        *out_bytes = last < size ? last : size;
        *out_first = size - *out_bytes;
        return JRT_HTTP_RANGE_PART;
    }
    if (has_last && last < first) return JRT_HTTP_RANGE_WHOLE;
    if (first >= size) return JRT_HTTP_RANGE_NONE;
    if (!has_last || last > size - 1) last = size - 1;
    *out_first = first;
    *out_bytes = last - first + 1;
    return JRT_HTTP_RANGE_PART;
}

static bool starts_weak(struct jrt_http_text text)
{
    return text.bytes >= 2 && text.at[0] == 'W' && text.at[1] == '/';
}

static struct jrt_http_text without_weak(struct jrt_http_text text)
{
    return starts_weak(text) ? (struct jrt_http_text){text.at + 2, text.bytes - 2} : text;
}

/* Takes a tag off the front of a list. A tag has no escapes: a backslash is a byte as any other. */
static bool take_etag(struct jrt_http_text *rest, struct jrt_http_text *out_tag)
{
    size_t at = 0;
    while (at < rest->bytes && (jrt_http_is_space(rest->at[at]) || rest->at[at] == ',')) at++;
    struct jrt_http_text tag = {rest->at + at, rest->bytes - at};
    size_t               quote = starts_weak(tag) ? 2 : 0;
    if (quote >= tag.bytes || tag.at[quote] != '"') return false;
    size_t end = quote + 1;
    while (end < tag.bytes && tag.at[end] != '"') {
        if (!jrt_http_is(tag.at[end], JRT_HTTP_VALUE) || jrt_http_is_space(tag.at[end]))
            return false;
        end++;
    }
    if (end == tag.bytes) return false;
    *out_tag = (struct jrt_http_text){tag.at, end + 1};
    rest->at = tag.at + end + 1;
    rest->bytes = tag.bytes - end - 1;
    return true;
}

bool jrt_http_etag_in(struct jrt_http_text list, struct jrt_http_text etag, bool weak)
{
    struct jrt_http_text tag;
    if (jrt_http_equal(jrt_http_trim(list), JRT_HTTP_TEXT("*"))) return true;
    while (take_etag(&list, &tag)) {
        if (!weak && (starts_weak(tag) || starts_weak(etag))) continue;
        if (jrt_http_equal(without_weak(tag), without_weak(etag))) return true;
    }
    return false;
}

static const struct {
    const char *suffix, *type;
} types[] = {
    {"avif", "image/avif"},
    {"bin", "application/octet-stream"},
    {"bmp", "image/bmp"},
    {"css", "text/css; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"htm", "text/html; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
    {"ico", "image/vnd.microsoft.icon"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"jsonl", "application/jsonl"},
    {"md", "text/markdown; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"ogg", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain; charset=utf-8"},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xml", "application/xml"},
    {"zip", "application/zip"},
};

struct jrt_http_text jrt_http_type_of(struct jrt_http_text name)
{
    size_t dot = name.bytes;
    while (dot > 0 && name.at[dot - 1] != '.' && name.at[dot - 1] != '/') dot--;
    if (dot > 0 && name.at[dot - 1] == '.') {
        struct jrt_http_text suffix = {name.at + dot, name.bytes - dot};
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
            if (jrt_http_same(suffix,
                              (struct jrt_http_text){types[i].suffix, strlen(types[i].suffix)}))
                return (struct jrt_http_text){types[i].type, strlen(types[i].type)};
    }
    return JRT_HTTP_TEXT("application/octet-stream");
}

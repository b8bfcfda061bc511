/* SPDX-License-Identifier: MIT */
/* Classes of bytes, lists, hosts and numbers. */
#include "http/text.h"

/*
 * Bits by byte. Beyond RFC 3986 a path may have [ ] | ^, and a query also { } \ and the backtick:
 * browsers send these unescaped (WHATWG URL, percent-encode sets). None of them can end a line, a
 * target or a field, so no two parsers disagree about what follows.
 */
/* clang-format off */
const uint8_t jrt_http_classes[256] = {
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x60, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x60, 0x6f, 0x20, 0x61, 0x6f, 0x61, 0x6f, 0x6f, 0x6e, 0x6e, 0x6f, 0x6f, 0x6e, 0xef, 0xef, 0x66,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x66, 0x6e, 0x60, 0x6e, 0x60, 0x64,
    0x66, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef,
    0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0x66, 0x24, 0x66, 0x67, 0xef,
    0x65, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef,
    0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0x64, 0x67, 0x64, 0xef, 0x00,
    0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60,
    0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60,
    0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60,
    0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60,
    0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60,
    0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60,
    0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60,
    0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60,
};
/* clang-format on */

bool jrt_http_same(struct jrt_http_text left, struct jrt_http_text right)
{
    if (left.bytes != right.bytes) return false;
    for (size_t i = 0; i < left.bytes; i++)
        if (jrt_http_lower(left.at[i]) != jrt_http_lower(right.at[i])) return false;
    return true;
}

struct jrt_http_text jrt_http_trim(struct jrt_http_text text)
{
    while (text.bytes > 0 && jrt_http_is_space(text.at[0])) {
        text.at++;
        text.bytes--;
    }
    while (text.bytes > 0 && jrt_http_is_space(text.at[text.bytes - 1])) text.bytes--;
    return text;
}

/* How many bytes of `text` stand before the first comma outside of quotes. */
static size_t member_bytes(struct jrt_http_text text)
{
    bool   quoted = false;
    size_t i = 0;
    for (; i < text.bytes && (quoted || text.at[i] != ','); i++) {
        if (text.at[i] == '"') quoted = !quoted;
        if (quoted && text.at[i] == '\\' && i + 1 < text.bytes) i++;
    }
    return i;
}

bool jrt_http_list_next(struct jrt_http_text *rest, struct jrt_http_text *out_member)
{
    while (rest->bytes > 0) {
        size_t               bytes = member_bytes(*rest);
        struct jrt_http_text member = jrt_http_trim((struct jrt_http_text){rest->at, bytes});
        size_t               used = bytes < rest->bytes ? bytes + 1 : bytes;
        rest->at += used;
        rest->bytes -= used;
        if (member.bytes > 0) {
            *out_member = member;
            return true;
        }
    }
    return false;
}

bool jrt_http_list_has(struct jrt_http_text list, struct jrt_http_text member)
{
    struct jrt_http_text next;
    while (jrt_http_list_next(&list, &next))
        if (jrt_http_same(next, member)) return true;
    return false;
}

bool jrt_http_is_token(struct jrt_http_text text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (!jrt_http_is(text.at[i], JRT_HTTP_TOKEN)) return false;
    return text.bytes > 0;
}

/* The bytes of "[::1]" at the beginning of `text`; 0 if it is no such address. */
static size_t literal_bytes(struct jrt_http_text text)
{
    size_t i = 1;
    while (i < text.bytes &&
           (jrt_http_is(text.at[i], JRT_HTTP_HEX) || text.at[i] == ':' || text.at[i] == '.'))
        i++;
    return i > 2 && i < text.bytes && text.at[i] == ']' ? i + 1 : 0;
}

/* The bytes of a registered name at the beginning of `text`. */
static size_t name_bytes(struct jrt_http_text text)
{
    size_t i = 0;
    while (i < text.bytes) {
        if (jrt_http_is(text.at[i], JRT_HTTP_HOST))
            i++;
        else if (text.at[i] == '%' && i + 2 < text.bytes &&
                 jrt_http_is(text.at[i + 1], JRT_HTTP_HEX) &&
                 jrt_http_is(text.at[i + 2], JRT_HTTP_HEX))
            i += 3;
        else
            break;
    }
    return i;
}

bool jrt_http_is_authority(struct jrt_http_text text)
{
    const char *at = text.at, *end = text.at + text.bytes;
    while (at < end && jrt_http_is(*at, JRT_HTTP_HOST)) at++;
    if (at < end && *at != ':') /* an escape, or [::1] */
        at = text.at + (text.at[0] == '[' ? literal_bytes(text) : name_bytes(text));
    if (at == text.at) return false;
    if (at == end) return true;
    if (*at != ':') return false;

    uint32_t port = 0;
    while (++at < end) {
        if (!jrt_http_is_digit(*at)) return false;
        port = port * 10 + (uint32_t)(*at - '0');
        if (port > UINT16_MAX) return false;
    }
    return true;
}

bool jrt_http_number(struct jrt_http_text text, uint64_t *out_number)
{
    uint64_t number = 0;
    if (text.bytes == 0) return false;
    for (size_t i = 0; i < text.bytes; i++) {
        if (!jrt_http_is_digit(text.at[i])) return false;
        uint64_t digit = (uint64_t)(text.at[i] - '0');
        if (number > (INT64_MAX - digit) / 10) return false;
        number = number * 10 + digit;
    }
    *out_number = number;
    return true;
}

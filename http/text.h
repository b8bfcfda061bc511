/* SPDX-License-Identifier: MIT */
/* Texts without an end, classes of bytes, and comparisons that every other file here uses. */
#ifndef JANUSRT_HTTP_TEXT_H
#define JANUSRT_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Some bytes of somebody's buffer. No NUL ends them. */
struct jrt_http_text {
    const char *at;
    size_t      bytes;
};

/* The text of a string literal. */
#define JRT_HTTP_TEXT(literal) ((struct jrt_http_text){(literal), sizeof(literal) - 1})

/* Bits of jrt_http_classes. */
enum {
    JRT_HTTP_TOKEN = 1,    /* names of fields, methods, list members (RFC 9110, 5.6.2) */
    JRT_HTTP_PATH = 2,     /* the path of a target, without % and ? */
    JRT_HTTP_QUERY = 4,    /* the query of a target, without % */
    JRT_HTTP_HOST = 8,     /* a registered name, without % (RFC 3986, 3.2.2) */
    JRT_HTTP_HEX = 16,     /* a digit of base 16 */
    JRT_HTTP_VALUE = 32,   /* field values: HTAB, and all but controls */
    JRT_HTTP_QUOTED = 64,  /* inside of a quoted string: VALUE without " and \ */
    JRT_HTTP_COMMON = 128, /* letters, digits and -._~ (RFC 3986, unreserved) */
};

extern const uint8_t jrt_http_classes[256];

static inline bool jrt_http_is(char byte, uint8_t class)
{
    return (jrt_http_classes[(uint8_t)byte] & class) != 0;
}

static inline bool jrt_http_is_digit(char byte) { return (uint8_t)(byte - '0') < 10; }
static inline bool jrt_http_is_space(char byte) { return byte == ' ' || byte == '\t'; }

static inline char jrt_http_lower(char byte)
{
    bool capital = (uint8_t)(byte - 'A') < 26;
    return (char)(byte + capital * ('a' - 'A'));
}

/* The value of a digit of base 16. The caller has checked JRT_HTTP_HEX. */
static inline unsigned jrt_http_hex(char byte)
{
    unsigned value = (uint8_t)byte;
    return value <= '9' ? value - '0' : (value | 0x20) - 'a' + 10;
}

/* Whether two texts have the same bytes, but for the case of ASCII letters. */
bool jrt_http_same(struct jrt_http_text left, struct jrt_http_text right);

/*
 * Whether the token at `at` is a name of `bytes` bytes, 4 to 24, given in small letters and with
 * dashes only. The bit 0x20 makes letters small, and no other byte of a token becomes one of these.
 */
static inline bool jrt_http_named(const char *at, const char *name, size_t bytes)
{
    const uint64_t small = UINT64_C(0x2020202020202020);
    uint64_t       word, other;
    if (bytes < 8) {
        uint32_t half[2], want[2];
        memcpy(&half[0], at, 4);
        memcpy(&half[1], at + bytes - 4, 4);
        memcpy(&want[0], name, 4);
        memcpy(&want[1], name + bytes - 4, 4);
        return (half[0] | (uint32_t)small) == want[0] && (half[1] | (uint32_t)small) == want[1];
    }
    for (size_t i = 0; i + 8 < bytes; i += 8) {
        memcpy(&word, at + i, 8);
        memcpy(&other, name + i, 8);
        if ((word | small) != other) return false;
    }
    memcpy(&word, at + bytes - 8, 8);
    memcpy(&other, name + bytes - 8, 8);
    return (word | small) == other;
}

static inline bool jrt_http_equal(struct jrt_http_text left, struct jrt_http_text right)
{
    if (left.bytes != right.bytes) return false;
    return left.bytes == 0 || memcmp(left.at, right.at, left.bytes) == 0; /* NULL has no bytes */
}

/* `text` without the spaces and tabs around it. */
struct jrt_http_text jrt_http_trim(struct jrt_http_text text);

/*
 * Takes the next member off a list with commas ("close, TE"), without spaces around it. False: the
 * list has no more members. Skips empty members, as RFC 9110, 5.6.1 asks. A comma inside of a
 * quoted string separates nothing.
 */
bool jrt_http_list_next(struct jrt_http_text *rest, struct jrt_http_text *out_member);

/* Whether a list has this member, in any case of letters: ("Keep-Alive, TE", "te"). */
bool jrt_http_list_has(struct jrt_http_text list, struct jrt_http_text member);

/* Whether `text` is a token: not empty, and each byte is JRT_HTTP_TOKEN. */
bool jrt_http_is_token(struct jrt_http_text text);

/*
 * Whether `text` is a host with or without a port: "example.org", "127.0.0.1:8080", "[::1]:80". An
 * empty host, a user's name ("a@b"), a port above 65535 and a bad escape are refused.
 */
bool jrt_http_is_authority(struct jrt_http_text text);

/* Digits only, without sign, space or overflow of 63 bits. False: *out_number is as before. */
bool jrt_http_number(struct jrt_http_text text, uint64_t *out_number);

#endif

/* SPDX-License-Identifier: MIT */
#include "plat/name.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/hash.h"
#include "plat/peek.h"
#include "plat/world.h"

#include <stdlib.h>
#include <string.h>

/* Whether a character may stand unchanged in a line of text. */
static bool is_plain(uint32_t character, bool quoted)
{
    bool control = character < 0x20 || (character >= 0x7f && character < 0xa0);
    bool turns = (character >= 0x2028 && character <= 0x202e) ||
                 (character >= 0x2066 && character <= 0x2069);
    bool quote = quoted && (character == '"' || character == '\\');
    return !control && !turns && !quote;
}

/* Decodes the UTF-8 character that begins at `at`. Returns its length; 0: it is not valid. */
static unsigned decode(const unsigned char *at, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned              length = at[0] < 0x80   ? 1
                                   : at[0] < 0xc2 ? 0
                                   : at[0] < 0xe0 ? 2
                                   : at[0] < 0xf0 ? 3
                                   : at[0] < 0xf5 ? 4
                                                  : 0;
    uint32_t              character = at[0];
    if (length > 1) character &= 0x7fu >> length;
    for (unsigned i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0; /* also at the end of the text */
        character = character << 6 | (at[i] & 0x3f);
    }
    bool wrong = length > 1 && (character < least[length] || character > 0x10ffff ||
                                (character >= 0xd800 && character <= 0xdfff));
    *out = character;
    return wrong ? 0 : length;
}

/* Writes one byte as an escape of up to four characters. Returns how many. */
static unsigned escape(unsigned char byte, char *to)
{
    static const char from[] = "\n\t\r\"\\", letters[] = "ntr\"\\", digits[] = "0123456789abcdef";
    const char       *known = byte != 0 ? strchr(from, byte) : NULL;
    to[0] = '\\';
    if (known != NULL) {
        to[1] = letters[known - from];
        return 2;
    }
    to[1] = 'x';
    to[2] = digits[byte >> 4];
    to[3] = digits[byte & 15];
    return 4;
}

/* Reads the whole character at `from`, or its first byte. A byte that cannot be read becomes a
 * zero, which ends the name. */
static void fetch(unsigned char raw[4], const char *from)
{
    memset(raw, 0, 4);
    for (unsigned i = 0; i < 4; i++) {
        int64_t byte = jrt_peek_byte(from + i);
        if (byte == JRT_PEEK_NOTHING || byte == 0) return;
        raw[i] = (unsigned char)byte;
        bool more = i == 0 ? byte >= 0xc2 : (byte & 0xc0) == 0x80;
        if (!more) return;
    }
}

/* Whether text has only characters that may stand in a line, and a quote only in an escape. */
static bool is_clean(const char *text, size_t bytes, bool quoted)
{
    for (size_t at = 0; at < bytes;) {
        uint32_t character = 0;
        unsigned length = decode((const unsigned char *)text + at, &character);
        bool     escaped = quoted && character == '\\' && at + 1 < bytes;
        if (length == 0 || !(escaped || is_plain(character, quoted))) return false;
        at += escaped ? 2 : length;
    }
    return true;
}

/* Copies text and escapes every character that must not stand in a line. Escapes quotes only if
 * `quoted`. */
static size_t copy(char *to, size_t size, const char *from, bool quoted)
{
    size_t used = 0, at = 0;
    if (size == 0) return 0;
    for (;;) {
        unsigned char raw[4];
        char          piece[16];
        uint32_t      character = 0;
        int64_t       first = jrt_peek_byte(from + at);
        if (first > 0 && first < 0x80 && is_plain((uint32_t)first, quoted)) { /* most are */
            if (used + 1 > size - 1) break;
            to[used++] = (char)first;
            at++;
            continue;
        }
        fetch(raw, from + at);
        if (raw[0] == 0) break;
        unsigned length = decode(raw, &character), bytes = 0;
        bool     plain = length > 0 && is_plain(character, quoted);
        if (length == 0) length = 1;
        if (plain) {
            memcpy(piece, raw, length);
            bytes = length;
        } else {
            for (unsigned i = 0; i < length; i++) bytes += escape(raw[i], piece + bytes);
        }
        if (used + bytes > size - 1) break;
        memcpy(to + used, piece, bytes);
        used += bytes;
        at += length;
    }
    to[used] = '\0';
    jrt_debug_invariant("name-clean", used < size && is_clean(to, used, quoted));
    return used;
}

size_t jrt_name_copy(char *to, size_t size, const char *from)
{
    if (size > 1 && jrt_peek_byte(from) == JRT_PEEK_NOTHING) from = "?";
    return copy(to, size, from, true);
}

size_t jrt_text_copy(char *to, size_t size, const char *from)
{
    return copy(to, size, from, false);
}

void jrt_name_again(char *to, size_t size, const char *clean)
{
    size_t length = strnlen(clean, size);
    if (length == size) {
        length--;
        while (length > 0 && ((unsigned char)clean[length] & 0xc0) == 0x80) length--;
    }
    memcpy(to, clean, length);
    to[length] = '\0';
}

enum { KEPT_NAMES = 64, KEPT_TRIES = 4 };

const char *jrt_name_keep(const char *clean, bool *out_own)
{
    static _Atomic(const char *) names[KEPT_NAMES];
    uint64_t                     hash = 0;
    char                        *copy = NULL;
    *out_own = false;
    if (jrt_fails(JRT_FAULT_MEMORY)) return NULL; /* whatever the table has from other worlds */
    for (const char *at = clean; *at != '\0'; at++) hash = jrt_hash_add(hash, (uint8_t)*at);
    for (uint64_t tries = 0; tries < KEPT_TRIES; tries++) {
        _Atomic(const char *) *place = &names[(hash + tries) % KEPT_NAMES];
        const char            *kept = jrt_load_acquire(place); /* acquire: its bytes. */
        if (kept == NULL) {
            if (copy == NULL) copy = strdup(clean);
            if (copy == NULL) return NULL;
            /* acq_rel: the bytes of the copy, or those of another one. */
            if (jrt_cas_acq_rel(place, &kept, (const char *)copy)) return copy;
        }
        if (strcmp(kept, clean) == 0) {
            free(copy);
            return kept;
        }
    }
    if (copy == NULL) copy = strdup(clean);
    *out_own = copy != NULL;
    return copy;
}

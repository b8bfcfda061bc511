/* SPDX-License-Identifier: MIT */
#include "http/sha1.h"

static uint32_t turn(uint32_t word, int bits) { return word << bits | word >> (32 - bits); }

static uint32_t choose(int round, uint32_t b, uint32_t c, uint32_t d)
{
    if (round < 20) return ((b & c) | (~b & d)) + 0x5a827999;
    if (round < 40) return (b ^ c ^ d) + 0x6ed9eba1;
    if (round < 60) return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void add_block(uint32_t state[5], const uint8_t block[64])
{
    uint32_t words[80], s[5];
    for (size_t i = 0; i < 16; i++) {
        const uint8_t *at = block + 4 * i;
        words[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    }
    for (size_t i = 16; i < 80; i++) {
        words[i] = turn(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    }
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 80; i++) {
        uint32_t next = turn(s[0], 5) + choose(i, s[1], s[2], s[3]) + s[4] + words[i];
        s[4] = s[3];
        s[3] = s[2];
        s[2] = turn(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (int i = 0; i < 5; i++) state[i] += s[i];
}

void jrt_http_sha1(const void *bytes, size_t count, uint8_t out[JRT_HTTP_SHA1_BYTES])
{
    uint32_t       state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const uint8_t *at = bytes;
    uint8_t        last[128] = {0};
    size_t         left = count;
    for (; left >= 64; left -= 64, at += 64) add_block(state, at);
    if (left > 0) memcpy(last, at, left);
    last[left] = 0x80;
    size_t end = left < 56 ? 64 : 128; /* the length in bits needs eight bytes */
    for (size_t i = 0; i < 8; i++) last[end - 1 - i] = (uint8_t)((uint64_t)count * 8 >> 8 * i);
    for (size_t i = 0; i < end; i += 64) add_block(state, last + i);
    for (size_t i = 0; i < JRT_HTTP_SHA1_BYTES; i++) {
        out[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t jrt_http_base64(const void *bytes, size_t count, char *out)
{
    const uint8_t *at = bytes;
    size_t         written = 0;
    for (size_t i = 0; i < count; i += 3) {
        size_t   here = count - i < 3 ? count - i : 3;
        uint32_t group = (uint32_t)at[i] << 16;
        if (here > 1) group |= (uint32_t)at[i + 1] << 8;
        if (here > 2) group |= at[i + 2];
        for (size_t j = 0; j < 4; j++) {
            out[written] = '=';
            if (j <= here) out[written] = letters[group >> (18 - 6 * j) & 63];
            written++;
        }
    }
    return written;
}

bool jrt_http_unbase64(struct jrt_http_text text, uint8_t *out, size_t count)
{
    size_t   pad = (3 - count % 3) % 3, done = 0;
    uint32_t bits = 0, have = 0;
    if (text.bytes != (count + 2) / 3 * 4) return false;
    for (size_t i = 0; i < text.bytes; i++) {
        if (i >= text.bytes - pad) {
            if (text.at[i] != '=') return false;
            continue;
        }
        const char *letter = memchr(letters, text.at[i], 64);
        if (letter == NULL) return false;
        bits = bits << 6 | (uint32_t)(letter - letters);
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[done++] = (uint8_t)(bits >> have);
            bits &= (1u << have) - 1;
        }
    }
    return bits == 0;
}

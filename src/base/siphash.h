/* SPDX-License-Identifier: MIT */
/*
 * SipHash-2-4 by Aumasson and Bernstein, for messages of 16 bytes and for texts: a keyed function.
 * Without the key, a caller cannot predict the result of a new message. Known messages and results
 * help neither with that nor with finding the key.
 */
#ifndef JRT_BASE_SIPHASH_H
#define JRT_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct jrt_sip_key {
    uint64_t k[2]; /* secret */
};

static inline uint64_t jrt_sip_rotate(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

static inline void jrt_sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = jrt_sip_rotate(v[1], 13) ^ v[0];
    v[3] = jrt_sip_rotate(v[3], 16) ^ v[2];
    v[0] = jrt_sip_rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = jrt_sip_rotate(v[1], 17) ^ v[2];
    v[3] = jrt_sip_rotate(v[3], 21) ^ v[0];
    v[2] = jrt_sip_rotate(v[2], 32);
}

static inline void jrt_sip_take(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    jrt_sip_round(v);
    jrt_sip_round(v);
    v[0] ^= word;
}

static inline void jrt_sip_begin(const struct jrt_sip_key *key, uint64_t v[4])
{
    v[0] = key->k[0] ^ UINT64_C(0x736f6d6570736575);
    v[1] = key->k[1] ^ UINT64_C(0x646f72616e646f6d);
    v[2] = key->k[0] ^ UINT64_C(0x6c7967656e657261);
    v[3] = key->k[1] ^ UINT64_C(0x7465646279746573);
}

/* `last`: the message's length << 56 | the bytes that fill no word. */
static inline uint64_t jrt_sip_end(uint64_t v[4], uint64_t last)
{
    jrt_sip_take(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) jrt_sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The message is `first`, then `second`, each with its lowest byte first. */
static inline uint64_t jrt_siphash(const struct jrt_sip_key *key, uint64_t first, uint64_t second)
{
    uint64_t v[4];
    jrt_sip_begin(key, v);
    jrt_sip_take(v, first);
    jrt_sip_take(v, second);
    return jrt_sip_end(v, UINT64_C(16) << 56);
}

/* The first `count` of at most 8 bytes as a word, the lowest byte first. */
static inline uint64_t jrt_sip_word(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

/* The message is any bytes. */
static inline uint64_t jrt_siphash_bytes(const struct jrt_sip_key *key, const void *message,
                                         size_t length)
{
    const unsigned char *at = message;
    size_t               left = length;
    uint64_t             v[4];
    jrt_sip_begin(key, v);
    for (; left >= 8; left -= 8, at += 8) jrt_sip_take(v, jrt_sip_word(at, 8));
    return jrt_sip_end(v, (uint64_t)length << 56 | jrt_sip_word(at, left));
}

#endif

/* SPDX-License-Identifier: MIT */
/* A small LZ77 in the manner of LZ4: hash of 4 bytes, greedy, byte-oriented output; and back. */
#include "kernel.h"
enum { HASH = 4096 };
static uint32_t read4(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}
static size_t put_len(uint8_t *o, size_t n)
{
    size_t k = 0;
    while (n >= 255) {
        o[k++] = 255;
        n -= 255;
    }
    o[k++] = (uint8_t)n;
    return k;
}
static size_t pack(const uint8_t *in, size_t n, uint8_t *out)
{
    uint32_t table[HASH];
    memset(table, 0, sizeof table);
    size_t i = 1, lit = 0, o = 0;
    while (i + 8 < n) {
        uint32_t h = (read4(in + i) * 2654435761u) >> 20, c = table[h];
        table[h] = (uint32_t)i;
        if (i - c < 65536 && c < i && read4(in + c) == read4(in + i)) {
            size_t m = 4;
            while (i + m < n && in[c + m] == in[i + m]) m++;
            o += put_len(out + o, i - lit);
            memcpy(out + o, in + lit, i - lit);
            o += i - lit;
            out[o++] = (uint8_t)(i - c);
            out[o++] = (uint8_t)((i - c) >> 8);
            o += put_len(out + o, m);
            i += m;
            lit = i;
        } else
            i++;
    }
    o += put_len(out + o, n - lit);
    memcpy(out + o, in + lit, n - lit);
    o += n - lit;
    out[o++] = 0;
    out[o++] = 0;
    return o;
}
static size_t unpack(const uint8_t *in, size_t n, uint8_t *out)
{
    size_t i = 0, o = 0;
    while (i < n) {
        size_t l = 0, m = 0;
        do l += in[i];
        while (in[i++] == 255);
        for (size_t k = 0; k < l; k++) out[o + k] = in[i + k];
        o += l;
        i += l;
        size_t d = in[i] | (size_t)in[i + 1] << 8;
        i += 2;
        if (d == 0) break;
        do m += in[i];
        while (in[i++] == 255);
        for (size_t k = 0; k < m; k++) out[o + k] = out[o + k - d];
        o += m;
    }
    return o;
}
uint64_t kernel(void)
{
    enum { N = ROUNDS(1 << 21, 1 << 15) };
    static uint8_t a[N], z[2 * N], b[2 * N];
    uint64_t       s = 5, sum = 0;
    for (size_t i = 0; i < N;) {
        uint64_t r = random_next(&s);
        if (i > 1000 && r % 3) {
            size_t d = r % 900 + 1, l = (r >> 20) % 30 + 4;
            for (size_t k = 0; k < l && i < N; k++, i++) a[i] = a[i - d];
        } else
            a[i++] = (uint8_t)(r % 40);
    }
    for (int r = 0; r < ROUNDS(6, 1); r++) {
        size_t n = pack(a, N, z), m = unpack(z, n, b);
        sum += n + (m == N && memcmp(a, b, N) == 0 ? 0 : 1000000000);
    }
    return sum;
}

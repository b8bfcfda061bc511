/* SPDX-License-Identifier: MIT */
#include "kernel.h"
uint64_t kernel(void)
{
    static uint32_t t[256];
    static uint8_t  d[ROUNDS(1 << 20, 1 << 15)];
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
        t[i] = c;
    }
    for (size_t i = 0; i < sizeof d; i++) d[i] = (uint8_t)(i ^ i >> 8);
    uint32_t c = ~0u;
    for (int r = 0; r < ROUNDS(40, 1); r++)
        for (size_t i = 0; i < sizeof d; i++) c = t[(c ^ d[i]) & 255] ^ (c >> 8);
    return ~c;
}

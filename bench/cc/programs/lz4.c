/* SPDX-License-Identifier: MIT */
/* lz4: 4 MiB of text packed and unpacked, eight times. */
#include "text.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>

uint64_t program(void);

static unsigned char plain[TEXT_BYTES], packed[2 * TEXT_BYTES], back[TEXT_BYTES];

uint64_t program(void)
{
    int packed_bytes = 0;
    text_fill(plain);
    for (int i = 0; i < 8; i++) {
        packed_bytes =
            LZ4_compress_default((const char *)plain, (char *)packed, sizeof plain, sizeof packed);
        int back_bytes =
            LZ4_decompress_safe((const char *)packed, (char *)back, packed_bytes, sizeof back);
        if (back_bytes != TEXT_BYTES) abort();
    }
    if (memcmp(plain, back, sizeof plain) != 0) abort();
    return text_hash(packed, (size_t)packed_bytes);
}

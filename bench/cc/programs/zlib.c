/* SPDX-License-Identifier: MIT */
/* zlib: 4 MiB of text packed at level 6, and unpacked. */
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

uint64_t program(void);

static unsigned char plain[TEXT_BYTES], packed[TEXT_BYTES + TEXT_BYTES / 8], back[TEXT_BYTES];

uint64_t program(void)
{
    uLongf packed_bytes = sizeof packed, back_bytes = sizeof back;
    text_fill(plain);
    if (compress2(packed, &packed_bytes, plain, sizeof plain, 6) != Z_OK) abort();
    if (uncompress(back, &back_bytes, packed, packed_bytes) != Z_OK) abort();
    if (memcmp(plain, back, sizeof plain) != 0) abort();
    return text_hash(packed, packed_bytes);
}

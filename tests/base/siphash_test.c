/* SPDX-License-Identifier: MIT */
/* The keyed function behind handles and tables of names. */
#include "base/siphash.h"

#include "harness.h"

/* Key 00 01 .. 0f, message 00 01 .. 0f. */
TEST("SipHash-2-4 of 16 bytes is what its authors' implementation computes")
{
    const struct jrt_sip_key key = {{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
    CHECK_EQ(jrt_siphash(&key, UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)),
             UINT64_C(0x3f2acc7f57c29bdb));
}

TEST("another message, or another key, gives another result")
{
    const struct jrt_sip_key key = {{1, 2}}, other = {{1, 3}};
    uint64_t                 result = jrt_siphash(&key, 5, 6);
    CHECK(jrt_siphash(&key, 5, 7) != result);
    CHECK(jrt_siphash(&key, 4, 6) != result);
    CHECK(jrt_siphash(&other, 5, 6) != result);
}

/* The authors' vectors: key 00 01 .. 0f, message 00 01 .. of each length. */
TEST("SipHash-2-4 of 0 to 16 bytes is what its authors' implementation computes")
{
    static const uint64_t expected[] = {
        UINT64_C(0x726fdb47dd0e0e31), UINT64_C(0x74f839c593dc67fd), UINT64_C(0x0d6c8009d9a94f5a),
        UINT64_C(0x85676696d7fb7e2d), UINT64_C(0xcf2794e0277187b7), UINT64_C(0x18765564cd99a68d),
        UINT64_C(0xcbc9466e58fee3ce), UINT64_C(0xab0200f58b01d137), UINT64_C(0x93f5f5799a932462),
        UINT64_C(0x9e0082df0ba9e4b0), UINT64_C(0x7a5dbbc594ddb9f3), UINT64_C(0xf4b32f46226bada7),
        UINT64_C(0x751e8fbc860ee5fb), UINT64_C(0x14ea5627c0843d90), UINT64_C(0xf723ca908e7af2ee),
        UINT64_C(0xa129ca6149be45e5), UINT64_C(0x3f2acc7f57c29bdb)};
    const struct jrt_sip_key key = {{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
    unsigned char            message[16];
    for (unsigned i = 0; i < sizeof message; i++) message[i] = (unsigned char)i;
    for (unsigned length = 0; length <= sizeof message; length++) {
        CHECK_EQ(jrt_siphash_bytes(&key, message, length), expected[length]);
    }
}

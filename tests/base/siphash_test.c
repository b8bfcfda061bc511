/* SPDX-License-Identifier: MIT */
/* The keyed function behind handles. */
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

/* SPDX-License-Identifier: MIT */
/* What the wrappers share: how they pay, and the prices. */
#ifndef JANUSRT_CC_SUPPORT_SUPPORT_H
#define JANUSRT_CC_SUPPORT_SUPPORT_H

#include <janusrt/counted.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BYTES_AN_OP = 64,
    PORTION_BYTES = 64 << 10, /* between two checks of a large copy */
    COMPARED_BYTES = 4096     /* a comparison pays when so much was equal */
};

/* Pays for work of `bytes` bytes, rounded down. Portions, so that a task with too few ops uses up
 * nearly all of them. */
static inline void pay_bytes(size_t bytes)
{
    for (; bytes > PORTION_BYTES; bytes -= PORTION_BYTES) janus_op(PORTION_BYTES / BYTES_AN_OP);
    if (bytes >= BYTES_AN_OP) janus_op(bytes / BYTES_AN_OP);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Texts of callers are as long as the callers like. A call that scans one pays an op for 64 bytes,
 * piece by piece, so that others run meanwhile. A call that takes short texts alone stops to look
 * where they are too long.
 */
#ifndef JANUSRT_HTTP_PAY_H
#define JANUSRT_HTTP_PAY_H

#include "http/text.h"

#include <janusrt/status.h>
#include <janusrt/yield.h>

enum {
    JRT_HTTP_OP_BYTES = 64,
    JRT_HTTP_PIECE_BYTES = 4096,
    JRT_HTTP_PIECE_OPS = JRT_HTTP_PIECE_BYTES / JRT_HTTP_OP_BYTES,
};

/* Pays for whole pieces of what was scanned. The rest stays in *unpaid. OK, CANCELLED. */
static inline janus_status jrt_http_pay(size_t *unpaid)
{
    if (*unpaid < JRT_HTTP_PIECE_BYTES) return JANUS_OK;
    size_t pieces = *unpaid / JRT_HTTP_PIECE_BYTES;
    *unpaid %= JRT_HTTP_PIECE_BYTES;
    return janus_check_n((uint32_t)pieces * JRT_HTTP_PIECE_OPS);
}

/* The length of a text, paid. OK, CANCELLED. */
static inline janus_status jrt_http_measure(const char *text, size_t *out_bytes)
{
    janus_status status = JANUS_OK;
    size_t       bytes = 0, here = 0;
    do {
        size_t unpaid = here = strnlen(text + bytes, JRT_HTTP_PIECE_BYTES);
        bytes += here;
        status = jrt_http_pay(&unpaid);
    } while (status == JANUS_OK && here == JRT_HTTP_PIECE_BYTES);
    *out_bytes = bytes;
    return status;
}

/* A text of at most `max` bytes. A longer one is cut to one byte more. */
static inline struct jrt_http_text jrt_http_up_to(const char *text, size_t max)
{
    return (struct jrt_http_text){text, strnlen(text, max + 1)};
}

#endif

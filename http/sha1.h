/* SPDX-License-Identifier: MIT */
/*
 * SHA-1 (RFC 3174) and base64 (RFC 4648), for the handshake of WebSocket alone. SHA-1 protects
 * nothing any more: here it only proves that the other end has understood the request.
 */
#ifndef JANUSRT_HTTP_SHA1_H
#define JANUSRT_HTTP_SHA1_H

#include "http/text.h"

enum { JRT_HTTP_SHA1_BYTES = 20 };

void jrt_http_sha1(const void *bytes, size_t count, uint8_t out[JRT_HTTP_SHA1_BYTES]);

/* Writes (count + 2) / 3 * 4 letters, without a NUL. Returns how many. */
size_t jrt_http_base64(const void *bytes, size_t count, char *out);

/*
 * Reads base64 with its padding. False: a letter, the length or the padding is wrong, unused bits
 * are not 0, or there are not exactly `count` bytes.
 */
bool jrt_http_unbase64(struct jrt_http_text text, uint8_t *out, size_t count);

#endif

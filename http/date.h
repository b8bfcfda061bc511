/* SPDX-License-Identifier: MIT */
/* Dates of HTTP (RFC 9110, 5.6.7), in seconds since 1970. They use no locale and no time zone. */
#ifndef JANUSRT_HTTP_DATE_H
#define JANUSRT_HTTP_DATE_H

#include "http/text.h"

enum { JRT_HTTP_DATE_BYTES = 29 };

/*
 * Writes "Sun, 06 Nov 1994 08:49:37 GMT", without a NUL. The form has four
 * digits for the year: a time before the year 0 or after 9999 becomes the first or last of these.
 */
void jrt_http_date_write(char out[JRT_HTTP_DATE_BYTES], int64_t seconds);

/*
 * Reads a date in any of the three forms:
 *     Sun, 06 Nov 1994 08:49:37 GMT
 *     Sunday, 06-Nov-94 08:49:37 GMT
 *     Sun Nov  6 08:49:37 1994
 * The second form has two digits of the year. The reader takes the latest such year that is at most
 * 50 years after `now`. False: the text is not exactly one of these forms, or no such day exists,
 * or it is another day of the week. Then *out_seconds is as before.
 */
bool jrt_http_date_read(struct jrt_http_text text, int64_t now, int64_t *out_seconds);

#endif

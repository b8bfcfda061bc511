/* SPDX-License-Identifier: MIT */
/* The parser once more, with scans of one byte at a time, under other names. */
#undef JRT_HTTP_SCAN
#define JRT_HTTP_SCAN "http/scan_plain.h"
#define jrt_http_parse plain_parse
#define jrt_http_fail plain_fail
#define jrt_http_cut plain_cut
#define jrt_http_fields_parse plain_fields_parse
#define jrt_http_head_init plain_head_init
#define jrt_http_request_begin plain_request_begin
#define jrt_http_answer_begin plain_answer_begin
#define jrt_http_trailers_begin plain_trailers_begin
#define jrt_http_find plain_find
#define jrt_http_has plain_has
#include "http/fields.c"
#include "http/head.c"

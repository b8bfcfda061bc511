/* SPDX-License-Identifier: MIT */
/* Names to addresses. The essay is in resolve.c. */
#ifndef JRT_IO_RESOLVE_H
#define JRT_IO_RESOLVE_H

#include <janusrt/net.h>

/* Looks up a name as janus_resolve does, until a deadline. */
janus_status jrt_resolve_until(const char *host, const char *service, janus_address *out,
                               size_t max, size_t *out_count, uint64_t deadline_ns);

#endif

/* SPDX-License-Identifier: MIT */
/* Addresses under capabilities for the network. The rules are in <janusrt/cap.h> and net.c. */
#ifndef JRT_CAP_NET_H
#define JRT_CAP_NET_H

#include "cap/cap.h"

#include <janusrt/net.h>

/* Whether prefix, ports and the rest have a meaning. */
bool jrt_net_limits_sane(const janus_net_limits *limits);

/* Whether `narrow` allows nothing that `wide` forbids. Both are sane. */
bool jrt_net_limits_within(const janus_net_limits *narrow, const janus_net_limits *wide);

/* Whether a holder of these limits may use the address, by [net-same] and [net-all]. */
bool jrt_net_limits_allow(const janus_net_limits *limits, const janus_address *address);

/* The bytes of an IP address by [net-same]. False: it has another family. */
bool jrt_net_address_bytes(const janus_address *address, uint8_t out[16]);

enum { JRT_NET_TEXT_BYTES = 80 };

/* "127.0.0.0/8, ports 8000 to 8999", with a zero, cut to `size`. */
void jrt_net_limits_text(const janus_net_limits *limits, char *text, size_t size);

/* "127.0.0.1:80", "[::1]:80", "unix:/run/x", "unix:@name", with a zero, cut to `size`. Bytes that
 * could disturb a terminal become '?'. */
void jrt_net_address_text(const janus_address *address, char *text, size_t size);

/* What the audit log says about an address. */
void jrt_net_target(const janus_address *address, struct jrt_cap_target *out);

#endif

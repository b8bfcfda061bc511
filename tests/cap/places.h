/* SPDX-License-Identifier: MIT */
/* Addresses for tests of capabilities for the network. */
#ifndef JANUSRT_TESTS_PLACES_H
#define JANUSRT_TESTS_PLACES_H

#include "harness.h"

#include <arpa/inet.h>
#include <janusrt/cap.h>
#include <janusrt/net.h>
#include <string.h>

/* "127.0.0.1", "::1", "unix" or "abstract". */
static inline janus_address place_at(const char *text, uint16_t port)
{
    janus_address at = {.family = JANUS_FAMILY_IPV4, .count = 4, .port = port};
    if (strcmp(text, "unix") == 0 || strcmp(text, "abstract") == 0) {
        bool path = strcmp(text, "unix") == 0;
        at.family = path ? JANUS_FAMILY_UNIX : JANUS_FAMILY_ABSTRACT;
        at.count = (uint8_t)strlen("/run/x");
        memcpy(at.bytes, "/run/x", sizeof "/run/x");
    } else if (strchr(text, ':') != NULL) {
        at.family = JANUS_FAMILY_IPV6;
        at.count = 16;
        CHECK_EQ(inet_pton(AF_INET6, text, at.bytes), 1);
    } else {
        CHECK_EQ(inet_pton(AF_INET, text, at.bytes), 1);
    }
    return at;
}

static inline janus_net_limits place_range(const char *text, uint64_t max_handles)
{
    janus_net_limits limits;
    CHECK_EQ(janus_net_limits_parse(text, max_handles, &limits), JANUS_OK);
    return limits;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Addresses under capabilities for the network.
 *
 * [net-same]  One place in the network has one address here, whatever the program calls it. An
 *   IPv4 address becomes ::ffff:a.b.c.d before anything is compared. So a limit that forbids
 *   10.0.0.1 also forbids its spelling in IPv6.
 *
 * [net-all]  Some addresses stand for many: 0.0.0.0 for all of IPv4, and :: for everything. The
 *   system also connects them to this machine. Such an address is inside a prefix only if the
 *   prefix holds all that it stands for. Port 0 stands for all ports.
 *
 * Limits of zeros allow nothing: the only port is 0, which needs all the others. So a field that
 * was forgotten never opens the network.
 */
#include "cap/net.h"

#include "base/outside.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAPPED_BITS = 96, ALL_BITS = 128 };

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* ::ffff:0:0/96 */

/* Whether the first `bits` bits of a and b are the same. */
static bool same_bits(const uint8_t a[16], const uint8_t b[16], unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, whole) != 0) return false;
    return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

/* Whether all bits behind the first `bits` are 0. */
static bool ends_in_zeros(const uint8_t prefix[16], unsigned bits)
{
    for (unsigned i = bits; i < ALL_BITS; i++) {
        if ((prefix[i / 8] >> (7 - i % 8) & 1) != 0) return false;
    }
    return true;
}

bool jrt_net_limits_sane(const janus_net_limits *limits)
{
    return limits->prefix_bits <= ALL_BITS && limits->unix_sockets <= 1 && limits->reserved == 0 &&
           limits->port_first <= limits->port_last &&
           ends_in_zeros(limits->prefix, limits->prefix_bits);
}

bool jrt_net_limits_within(const janus_net_limits *narrow, const janus_net_limits *wide)
{
    return narrow->max_handles <= wide->max_handles && narrow->prefix_bits >= wide->prefix_bits &&
           same_bits(narrow->prefix, wide->prefix, wide->prefix_bits) &&
           narrow->port_first >= wide->port_first && narrow->port_last <= wide->port_last &&
           narrow->unix_sockets <= wide->unix_sockets;
}

static bool is_mapped(const uint8_t bytes[16]) { return memcmp(bytes, mapped, 12) == 0; }

bool jrt_net_address_bytes(const janus_address *address, uint8_t out[16])
{
    if (address->family == JANUS_FAMILY_IPV6) {
        memcpy(out, address->bytes, 16);
        return true;
    }
    if (address->family != JANUS_FAMILY_IPV4) return false;
    memcpy(out, mapped, sizeof mapped);
    memcpy(out + sizeof mapped, address->bytes, 4);
    return true;
}

static bool is_unix(const janus_address *address)
{
    return address->family == JANUS_FAMILY_UNIX || address->family == JANUS_FAMILY_ABSTRACT;
}

/* By [net-all]. */
static bool port_allowed(const janus_net_limits *limits, uint16_t port)
{
    if (port == 0) return limits->port_first <= 1 && limits->port_last == UINT16_MAX;
    return port >= limits->port_first && port <= limits->port_last;
}

bool jrt_net_limits_allow(const janus_net_limits *limits, const janus_address *address)
{
    static const uint8_t all_of_ipv4[16] = {[10] = 0xff, [11] = 0xff}, all[16] = {0};
    uint8_t              bytes[16];
    if (is_unix(address)) return limits->unix_sockets != 0;
    if (!jrt_net_address_bytes(address, bytes)) return false;
    if (memcmp(bytes, all, sizeof all) == 0 && limits->prefix_bits > 0) return false;
    if (memcmp(bytes, all_of_ipv4, sizeof bytes) == 0 && limits->prefix_bits > MAPPED_BITS) {
        return false;
    }
    jrt_debug_invariant("net-same", address->family == JANUS_FAMILY_IPV6 || is_mapped(bytes));
    bool inside = same_bits(bytes, limits->prefix, limits->prefix_bits) &&
                  port_allowed(limits, address->port);
    jrt_debug_invariant("net-all", !inside || address->port != 0 ||
                                       limits->port_last - limits->port_first >= UINT16_MAX - 1);
    return inside;
}

/* Texts. */

/* The address without a port, with brackets if it is IPv6 and `brackets` is set. */
static void put_bytes(const uint8_t bytes[16], bool brackets, char *text, size_t size)
{
    char at[INET6_ADDRSTRLEN];
    bool four = is_mapped(bytes);
    (void)inet_ntop(four ? AF_INET : AF_INET6, four ? bytes + 12 : bytes, at, sizeof at);
    brackets = brackets && !four;
    (void)snprintf(text, size, "%s%s%s", brackets ? "[" : "", at, brackets ? "]" : "");
}

/* Whether no IP address is inside. */
static bool allows_none(const janus_net_limits *limits)
{
    static const uint8_t zeros[16];
    return limits->port_last == 0 ||
           (limits->prefix_bits == ALL_BITS && memcmp(limits->prefix, zeros, sizeof zeros) == 0);
}

static void put_prefix(const janus_net_limits *limits, char *text, size_t size)
{
    char     at[INET6_ADDRSTRLEN + 2];
    unsigned bits = limits->prefix_bits;
    bool     four = bits >= MAPPED_BITS && is_mapped(limits->prefix);
    if (bits == 0) {
        (void)snprintf(text, size, "all addresses");
        return;
    }
    put_bytes(limits->prefix, true, at, sizeof at);
    (void)snprintf(text, size, "%s/%u", at, four ? bits - MAPPED_BITS : bits);
}

void jrt_net_limits_text(const janus_net_limits *limits, char *text, size_t size)
{
    char     at[INET6_ADDRSTRLEN + 8], ports[32];
    unsigned first = limits->port_first, last = limits->port_last;
    if (allows_none(limits)) {
        (void)snprintf(text, size, limits->unix_sockets ? "Unix sockets" : "no address");
        return;
    }
    put_prefix(limits, at, sizeof at);
    if (first == last) {
        (void)snprintf(ports, sizeof ports, "port %u", first);
    } else if (first <= 1 && last == UINT16_MAX) {
        (void)snprintf(ports, sizeof ports, "all ports");
    } else {
        (void)snprintf(ports, sizeof ports, "ports %u to %u", first, last);
    }
    (void)snprintf(text, size, "%s, %s", at, ports);
}

/* Writes a path or a name. */
static void put_unix(const janus_address *address, char *text, size_t size)
{
    bool   abstract = address->family == JANUS_FAMILY_ABSTRACT;
    size_t count = address->count < JANUS_UNIX_MAX ? address->count : JANUS_UNIX_MAX;
    size_t length = (size_t)snprintf(text, size, "unix:%s", abstract ? "@" : "");
    for (size_t i = 0; i < count && length + 1 < size; i++) {
        char byte = (char)address->bytes[i];
        if (byte == 0 && !abstract) break;
        bool control = (unsigned char)byte < 0x20 || byte == 0x7f;
        text[length++] = '?';
        if (!control) text[length - 1] = byte;
    }
    if (length < size) text[length] = '\0';
}

void jrt_net_address_text(const janus_address *address, char *text, size_t size)
{
    char    at[INET6_ADDRSTRLEN + 2];
    uint8_t bytes[16];
    if (size == 0) return;
    if (is_unix(address)) {
        put_unix(address, text, size);
    } else if (jrt_net_address_bytes(address, bytes)) {
        put_bytes(bytes, true, at, sizeof at);
        (void)snprintf(text, size, "%s:%u", at, (unsigned)address->port);
    } else {
        (void)snprintf(text, size, "?");
    }
}

void jrt_net_target(const janus_address *address, struct jrt_cap_target *out)
{
    uint8_t bytes[16];
    *out = (struct jrt_cap_target){.port = 0};
    if (is_unix(address)) {
        put_unix(address, out->name, sizeof out->name);
    } else if (jrt_net_address_bytes(address, bytes)) {
        put_bytes(bytes, false, out->name, sizeof out->name);
        out->port = address->port;
        out->has_port = true;
    }
}

/* Reading a text. */

/* A number of digits alone, up to `most`. Moves *at behind it. */
static bool read_number(const char **at, unsigned most, unsigned *out)
{
    unsigned    number = 0;
    const char *from = *at;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        number = number * 10 + (unsigned)(**at - '0');
        if (number > most) return false;
    }
    *out = number;
    return *at != from;
}

/* The address before "/", ":" or the end. *bits is what one such address has. */
static bool read_address(const char **at, janus_net_limits *out, unsigned *least, unsigned *bits)
{
    char   text[INET6_ADDRSTRLEN];
    bool   six = **at == '[';
    size_t length = six ? strcspn(*at, "]") : strcspn(*at, "/:");
    if (**at == '*') {
        *least = *bits = 0;
        ++*at;
        return true;
    }
    const char *from = *at + six;
    if (six && (*at)[length] != ']') return false;
    *at += length + six;
    length -= six;
    if (length >= sizeof text) return false;
    memcpy(text, from, length);
    text[length] = '\0';
    *least = six ? 0 : MAPPED_BITS;
    *bits = ALL_BITS;
    if (!six) memcpy(out->prefix, mapped, sizeof mapped);
    return inet_pton(six ? AF_INET6 : AF_INET, text, out->prefix + *least / 8) == 1;
}

static bool read_range(const char *at, janus_net_limits *out)
{
    unsigned least, bits, given, first = 0, last = UINT16_MAX;
    bool     any = *at == '*';
    if (!read_address(&at, out, &least, &bits)) return false;
    if (*at == '/') {
        at++;
        if (any || !read_number(&at, ALL_BITS - least, &given)) return false;
        bits = least + given;
    }
    if (*at == ':') {
        at++;
        if (!read_number(&at, UINT16_MAX, &first)) return false;
        last = first;
        if (*at == '-') {
            at++;
            if (!read_number(&at, UINT16_MAX, &last)) return false;
        }
    }
    out->prefix_bits = (uint8_t)bits;
    out->port_first = (uint16_t)first;
    out->port_last = (uint16_t)last;
    return *at == '\0';
}

janus_status janus_net_limits_parse(const char *text, uint64_t max_handles, janus_net_limits *out)
{
    jrt_outside_call(); /* [turn-call] */
    janus_net_limits limits = {.max_handles = max_handles};
    if (text == NULL || out == NULL) return JANUS_INVALID;
    if (strcmp(text, "all") == 0) {
        limits.unix_sockets = 1;
        limits.port_last = UINT16_MAX;
    } else if (strcmp(text, "unix") == 0) {
        limits.unix_sockets = 1;
        limits.prefix_bits = ALL_BITS; /* ::, which is never inside, [net-all] */
    } else if (strcmp(text, "none") != 0 && !read_range(text, &limits)) {
        return JANUS_INVALID;
    }
    if (!jrt_net_limits_sane(&limits)) return JANUS_INVALID;
    *out = limits;
    return JANUS_OK;
}

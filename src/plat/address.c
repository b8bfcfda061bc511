/* SPDX-License-Identifier: MIT */
/* Addresses: from and to text, from and to the system. */
#include "plat/address.h"

#include "base/outside.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

_Static_assert(JANUS_UNIX_MAX < sizeof(((struct sockaddr_un *)NULL)->sun_path), "it fits");

int jrt_address_domain(janus_family family)
{
    switch (family) {
    case JANUS_FAMILY_IPV4: return AF_INET;
    case JANUS_FAMILY_IPV6: return AF_INET6;
    case JANUS_FAMILY_UNIX:
    case JANUS_FAMILY_ABSTRACT: return AF_UNIX;
    case JANUS_FAMILY_NONE: break;
    }
    return -1;
}

static socklen_t unix_to_native(const janus_address *address, struct sockaddr_storage *out)
{
    struct sockaddr_un *un = (struct sockaddr_un *)out;
    bool                abstract = address->family == JANUS_FAMILY_ABSTRACT;
    if (address->count == 0 || address->count > JANUS_UNIX_MAX) return 0;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path + abstract, address->bytes, address->count);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + address->count + 1);
}

socklen_t jrt_address_to_native(const janus_address *address, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (address->family == JANUS_FAMILY_IPV4 && address->count == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)out;
        in->sin_family = AF_INET;
        in->sin_port = htons(address->port);
        memcpy(&in->sin_addr, address->bytes, 4);
        return sizeof *in;
    }
    if (address->family == JANUS_FAMILY_IPV6 && address->count == 16) {
        struct sockaddr_in6 *in = (struct sockaddr_in6 *)out;
        in->sin6_family = AF_INET6;
        in->sin6_port = htons(address->port);
        in->sin6_scope_id = address->scope;
        memcpy(&in->sin6_addr, address->bytes, 16);
        return sizeof *in;
    }
    if (address->family == JANUS_FAMILY_UNIX || address->family == JANUS_FAMILY_ABSTRACT) {
        return unix_to_native(address, out);
    }
    return 0;
}

static void unix_from_native(const struct sockaddr_un *un, socklen_t bytes, janus_address *out)
{
    size_t start = offsetof(struct sockaddr_un, sun_path);
    size_t length = bytes > start ? bytes - start : 0;
    if (length == 0) return; /* unnamed */
    bool abstract = un->sun_path[0] == '\0';
    if (abstract) {
        length--;
    } else {
        length = strnlen(un->sun_path, length);
    }
    if (length == 0 || length > JANUS_UNIX_MAX) return;
    out->family = abstract ? JANUS_FAMILY_ABSTRACT : JANUS_FAMILY_UNIX;
    out->count = (uint8_t)length;
    memcpy(out->bytes, un->sun_path + abstract, length);
}

void jrt_address_from_native(const struct sockaddr_storage *native, socklen_t bytes,
                             janus_address *out)
{
    memset(out, 0, sizeof *out);
    if (bytes < sizeof native->ss_family) return;
    if (native->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)native;
        out->family = JANUS_FAMILY_IPV4;
        out->count = 4;
        out->port = ntohs(in->sin_port);
        memcpy(out->bytes, &in->sin_addr, 4);
    } else if (native->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)native;
        out->family = JANUS_FAMILY_IPV6;
        out->count = 16;
        out->port = ntohs(in->sin6_port);
        out->scope = in->sin6_scope_id;
        memcpy(out->bytes, &in->sin6_addr, 16);
    } else if (native->ss_family == AF_UNIX) {
        unix_from_native((const struct sockaddr_un *)native, bytes, out);
    }
}

bool jrt_address_equal(const janus_address *a, const janus_address *b)
{
    return a->family == b->family && a->count == b->count && a->port == b->port &&
           a->scope == b->scope && memcmp(a->bytes, b->bytes, a->count) == 0;
}

/* Text. */

/* Reads a port, to the end of the text: digits only, at most 65535. */
static bool read_port(const char *text, uint16_t *out)
{
    uint32_t port = 0;
    if (*text == '\0' || strlen(text) > 5) return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return false;
        port = port * 10 + (uint32_t)(*text - '0');
    }
    *out = (uint16_t)port;
    return port <= 65535;
}

static bool read_unix(const char *text, janus_address *out)
{
    bool abstract = *text == '@';
    if (abstract) text++;
    size_t length = strlen(text);
    if (length == 0 || length > JANUS_UNIX_MAX) return false;
    out->family = abstract ? JANUS_FAMILY_ABSTRACT : JANUS_FAMILY_UNIX;
    out->count = (uint8_t)length;
    memcpy(out->bytes, text, length);
    return true;
}

/* The interface of a link-local address: a name, or a number. */
static bool read_scope(const char *text, uint32_t *out)
{
    *out = if_nametoindex(text);
    if (*out != 0) return true;
    char         *end = NULL;
    unsigned long number = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    *out = (uint32_t)number;
    return number > 0 && number <= UINT32_MAX && *end == '\0';
}

static bool read_v6(const char *text, janus_address *out)
{
    char        host[80];
    const char *end = strchr(text, ']');
    if (end == NULL || end[1] != ':' || (size_t)(end - text) >= sizeof host) return false;
    memcpy(host, text, (size_t)(end - text));
    host[end - text] = '\0';
    char *scope = strchr(host, '%');
    if (scope != NULL) {
        *scope = '\0';
        if (!read_scope(scope + 1, &out->scope)) return false;
    }
    out->family = JANUS_FAMILY_IPV6;
    out->count = 16;
    return inet_pton(AF_INET6, host, out->bytes) == 1 && read_port(end + 2, &out->port);
}

static bool read_v4(const char *text, janus_address *out)
{
    char        host[16];
    const char *end = strchr(text, ':');
    if (end == NULL || (size_t)(end - text) >= sizeof host) return false;
    memcpy(host, text, (size_t)(end - text));
    host[end - text] = '\0';
    out->family = JANUS_FAMILY_IPV4;
    out->count = 4;
    return inet_pton(AF_INET, host, out->bytes) == 1 && read_port(end + 1, &out->port);
}

janus_status jrt_address_parse(const char *text, janus_address *out)
{
    janus_address address = {0};
    if (text == NULL || out == NULL) return JANUS_INVALID;
    bool valid = false;
    if (strncmp(text, "unix:", 5) == 0) {
        valid = read_unix(text + 5, &address);
    } else if (*text == '[') {
        valid = read_v6(text + 1, &address);
    } else {
        valid = read_v4(text, &address);
    }
    if (!valid) return JANUS_INVALID;
    *out = address;
    return JANUS_OK;
}

/* A path as it can be printed: control characters become '?'. */
static void clean(const janus_address *address, char *out)
{
    for (uint8_t i = 0; i < address->count; i++) {
        char byte = (char)address->bytes[i];
        bool printable = byte >= 0x20 && byte < 0x7f;
        out[i] = '?';
        if (printable) out[i] = byte;
    }
    out[address->count] = '\0';
}

const char *jrt_address_text(const janus_address *address, char *buffer, size_t bytes)
{
    char host[JANUS_UNIX_MAX + 1] = "?", scope[16] = "";
    if (buffer == NULL || bytes == 0) return buffer;
    janus_family family = address != NULL ? (janus_family)address->family : JANUS_FAMILY_NONE;
    switch (family) {
    case JANUS_FAMILY_IPV4:
        inet_ntop(AF_INET, address->bytes, host, sizeof host);
        snprintf(buffer, bytes, "%s:%u", host, address->port);
        break;
    case JANUS_FAMILY_IPV6:
        inet_ntop(AF_INET6, address->bytes, host, sizeof host);
        if (address->scope != 0) snprintf(scope, sizeof scope, "%%%u", address->scope);
        snprintf(buffer, bytes, "[%s%s]:%u", host, scope, address->port);
        break;
    case JANUS_FAMILY_UNIX:
    case JANUS_FAMILY_ABSTRACT:
        if (address->count <= JANUS_UNIX_MAX) clean(address, host);
        snprintf(buffer, bytes, "unix:%s%s", family == JANUS_FAMILY_ABSTRACT ? "@" : "", host);
        break;
    default: snprintf(buffer, bytes, "?"); break;
    }
    return buffer;
}

/* Public calls. They take tolls, [turn-call]. */

janus_status janus_address_parse(const char *text, janus_address *out)
{
    /* The system is asked for the number of an interface. */
    if (text != NULL && *text == '[' && strchr(text, '%') != NULL) {
        jrt_outside_call_long();
    } else {
        jrt_outside_call();
    }
    return jrt_address_parse(text, out);
}

const char *janus_address_text(const janus_address *address, char *buffer, size_t bytes)
{
    jrt_outside_call();
    return jrt_address_text(address, buffer, bytes);
}

/* SPDX-License-Identifier: MIT */
#include "http/url.h"

static janus_status wrong(const char **why, const char *sentence)
{
    *why = sentence;
    return JANUS_INVALID;
}

/* Splits "host:port", "[::1]:80". The authority has been checked. */
static bool split(struct jrt_http_text authority, struct jrt_http_url *out)
{
    const char          *at = authority.at, *end = at + authority.bytes, *colon;
    struct jrt_http_text host, port = JRT_HTTP_TEXT("80");
    if (out->secure) port = JRT_HTTP_TEXT("443");
    if (*at == '[') {
        const char *bracket = memchr(at, ']', authority.bytes);
        if (bracket == NULL) return false;
        host = (struct jrt_http_text){at + 1, (size_t)(bracket - at - 1)};
        colon = bracket + 1 < end ? bracket + 1 : NULL;
    } else {
        colon = memchr(at, ':', authority.bytes);
        host = (struct jrt_http_text){at, (size_t)((colon != NULL ? colon : end) - at)};
    }
    if (colon != NULL && colon + 1 < end) {
        port = (struct jrt_http_text){colon + 1, (size_t)(end - colon - 1)};
    }
    if (host.bytes == 0 || host.bytes >= sizeof out->host || port.bytes >= sizeof out->port) {
        return false;
    }
    for (size_t i = 0; i < host.bytes; i++) {
        if (host.at[i] == '%') return false;
        out->host[i] = jrt_http_lower(host.at[i]);
    }
    out->host[host.bytes] = '\0';
    memcpy(out->port, port.at, port.bytes);
    out->port[port.bytes] = '\0';
    return true;
}

janus_status jrt_http_url_read(const char *text, const char *scheme, struct jrt_http_url *out,
                               const char **why)
{
    size_t      bytes = strlen(scheme);
    const char *colon = strchr(text, ':');
    if (colon == NULL || strncmp(colon, "://", 3) != 0) {
        return wrong(why, "the address has no scheme, as http://");
    }
    struct jrt_http_text given = {text, (size_t)(colon - text)};
    out->secure = given.bytes == bytes + 1 && jrt_http_lower(text[bytes]) == 's';
    if (out->secure) given.bytes--;
    if (!jrt_http_same(given, (struct jrt_http_text){scheme, bytes})) {
        *why = "the scheme of the address is not supported";
        return JANUS_UNAVAILABLE;
    }
    const char *at = colon + 3;
    out->authority = (struct jrt_http_text){at, strcspn(at, "/?#")};
    if (!jrt_http_is_authority(out->authority) || !split(out->authority, out)) {
        return wrong(why, "the address has no host, or a malformed one");
    }
    at += out->authority.bytes;
    out->target = (struct jrt_http_text){at, strlen(at)};
    if (strchr(at, '#') != NULL) return wrong(why, "a fragment is not sent to a server");
    return JANUS_OK;
}

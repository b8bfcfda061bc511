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

/* The bytes of a scheme and its colon at the beginning of a reference. 0: it has no scheme. */
static size_t scheme_bytes(struct jrt_http_text reference)
{
    for (size_t i = 0; i < reference.bytes; i++) {
        char byte = jrt_http_lower(reference.at[i]);
        bool letter = byte >= 'a' && byte <= 'z';
        bool other = (byte >= '0' && byte <= '9') || byte == '+' || byte == '-' || byte == '.';
        if (byte == ':' && i > 0) return i + 1;
        if (!letter && (i == 0 || !other)) return 0;
    }
    return 0;
}

janus_status jrt_http_url_read(const char *text, const char *scheme, struct jrt_http_url *out,
                               const char **why)
{
    size_t bytes = strlen(scheme), first = scheme_bytes((struct jrt_http_text){text, strlen(text)});
    if (first == 0) return wrong(why, "the address has no scheme, as http://");
    struct jrt_http_text given = {text, first - 1};
    out->secure = given.bytes == bytes + 1 && jrt_http_lower(text[bytes]) == 's';
    if (out->secure) given.bytes--;
    if (!jrt_http_same(given, (struct jrt_http_text){scheme, bytes})) {
        *why = "the scheme of the address is not supported";
        return JANUS_UNAVAILABLE;
    }
    const char *at = text + first + 2;
    if (strncmp(text + first, "//", 2) != 0) {
        return wrong(why, "the address has no host, or a malformed one");
    }
    out->authority = (struct jrt_http_text){at, strcspn(at, "/?#")};
    if (!jrt_http_is_authority(out->authority) || !split(out->authority, out)) {
        return wrong(why, "the address has no host, or a malformed one");
    }
    at += out->authority.bytes;
    out->target = (struct jrt_http_text){at, strlen(at)};
    if (strchr(at, '#') != NULL) return wrong(why, "a fragment is not sent to a server");
    return JANUS_OK;
}

static struct jrt_http_text before(struct jrt_http_text text, char byte)
{
    const char *found = text.bytes > 0 ? memchr(text.at, byte, text.bytes) : NULL;
    if (found != NULL) text.bytes = (size_t)(found - text.at);
    return text;
}

/* Removes the segments "." and ".." of the path at `path`, which ends before `end`. */
static char *remove_dots(char *path, const char *end)
{
    char       *to = path;
    const char *from = path;
    while (from < end) { /* a slash is at `from` */
        const char *next = memchr(from + 1, '/', (size_t)(end - from - 1));
        if (next == NULL) next = end;
        size_t bytes = (size_t)(next - from);
        bool   one = bytes == 2 && from[1] == '.';
        bool   two = bytes == 3 && from[1] == '.' && from[2] == '.';
        if (two) { /* the segment before goes, too */
            while (to > path) {
                to--;
                if (*to == '/') break;
            }
        }
        if (!one && !two) {
            memmove(to, from, bytes);
            to += bytes;
        } else if (next == end) {
            *to++ = '/'; /* "/a/.." is "/" */
        }
        from = next;
    }
    return to;
}

static bool put(char **at, const char *end, struct jrt_http_text text)
{
    if ((size_t)(end - *at) <= text.bytes) return false;
    if (text.bytes > 0) memcpy(*at, text.at, text.bytes);
    *at += text.bytes;
    return true;
}

/* The path that a reference without a host is put behind. */
static struct jrt_http_text floor_of(const struct jrt_http_url *base, char first)
{
    struct jrt_http_text path = before(base->target, '?');
    if (first == '/') return (struct jrt_http_text){"", 0};
    if (path.bytes == 0) return JRT_HTTP_TEXT("/");
    if (first == '?') return path;
    while (path.at[path.bytes - 1] != '/') path.bytes--;
    return path;
}

janus_status jrt_http_url_resolve(const struct jrt_http_url *base, const char *scheme,
                                  struct jrt_http_text reference, char *out, size_t room)
{
    char                *at = out, *end = out + room;
    struct jrt_http_text own = {scheme, strlen(scheme)};
    reference = before(reference, '#');
    if (reference.bytes == 0) return JANUS_INVALID;
    bool whole = scheme_bytes(reference) > 0;
    bool host = reference.bytes > 1 && reference.at[0] == '/' && reference.at[1] == '/';
    bool fits = true;
    if (!whole) fits = put(&at, end, own) && put(&at, end, JRT_HTTP_TEXT(":"));
    if (!whole && !host) {
        fits = fits && put(&at, end, JRT_HTTP_TEXT("//")) && put(&at, end, base->authority) &&
               put(&at, end, floor_of(base, reference.at[0]));
    }
    if (!fits || !put(&at, end, reference)) return JANUS_FULL;
    *at = '\0';
    char *path = strstr(out, "://");
    if (path != NULL) path += 3 + strcspn(path + 3, "/?");
    if (path == NULL || *path != '/') return JANUS_OK;
    char *query = path + strcspn(path, "?"), *stop = remove_dots(path, query);
    memmove(stop, query, (size_t)(at - query) + 1);
    return JANUS_OK;
}

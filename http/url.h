/* SPDX-License-Identifier: MIT */
/* Addresses of the web: "http://host:port/path?query". */
#ifndef JANUSRT_HTTP_URL_H
#define JANUSRT_HTTP_URL_H

#include "http/text.h"

#include <janusrt/status.h>

enum { JRT_HTTP_HOST_BYTES = 256 }; /* of a host, with its NUL */

struct jrt_http_url {
    struct jrt_http_text authority; /* "host:port", as written */
    struct jrt_http_text target;    /* "/path?query"; without a path, "?query" or nothing */
    char                 host[JRT_HTTP_HOST_BYTES]; /* in small letters, without brackets */
    char                 port[8];                   /* "80" or "443" if none is named */
    bool                 secure;                    /* the scheme is https, or wss */
};

/*
 * Reads an address. `scheme` is in small letters, without the colon; an "s" may follow it in the
 * address. UNAVAILABLE: another scheme.
 * INVALID: *why is a sentence without a full stop. It refuses a user's name, a fragment, and an
 * escape in the host. The bytes of the target are checked when it is written, in write.h.
 */
janus_status jrt_http_url_read(const char *text, const char *scheme, struct jrt_http_url *out,
                               const char **why);

/*
 * Writes the address that a reference means, which stood in an answer from `base`: "../a", "/a",
 * "//host/a", "?b", "http://host/a" (RFC 3986, 5.2). It leaves out a fragment, and solves dots in
 * paths. `scheme` is that of `base`. A NUL follows, uncounted. INVALID: it is empty.
 */
janus_status jrt_http_url_resolve(const struct jrt_http_url *base, const char *scheme,
                                  struct jrt_http_text reference, char *out, size_t room);

#endif

/* SPDX-License-Identifier: MIT */
/* Addresses of the web. */
#include "harness.h"
#include "http/url.h"

#include <stdio.h>

struct row {
    const char  *text;
    janus_status status;
    const char  *host, *port, *target;
};

static const struct row rows[] = {
    {"http://a", JANUS_OK, "a", "80", ""},
    {"HTTP://EXAMPLE.org/", JANUS_OK, "example.org", "80", "/"},
    {"http://a:8080/b?c=d", JANUS_OK, "a", "8080", "/b?c=d"},
    {"http://a:/b", JANUS_OK, "a", "80", "/b"},
    {"http://a?c", JANUS_OK, "a", "80", "?c"},
    {"http://[::1]:81/x", JANUS_OK, "::1", "81", "/x"},
    {"http://[::1]", JANUS_OK, "::1", "80", ""},
    {"http://127.0.0.1:1/http://b", JANUS_OK, "127.0.0.1", "1", "/http://b"},
    {"https://a/", JANUS_OK, "a", "443", "/"},
    {"HTTPS://a:80/", JANUS_OK, "a", "80", "/"},
    {"httpx://a/", JANUS_UNAVAILABLE, NULL, NULL, NULL},
    {"httpss://a/", JANUS_UNAVAILABLE, NULL, NULL, NULL},
    {"http", JANUS_INVALID, NULL, NULL, NULL},
    {"ftp://a/", JANUS_UNAVAILABLE, NULL, NULL, NULL},
    {"", JANUS_INVALID, NULL, NULL, NULL},
    {"a/b", JANUS_INVALID, NULL, NULL, NULL},
    {"http:/a", JANUS_INVALID, NULL, NULL, NULL},
    {"http://", JANUS_INVALID, NULL, NULL, NULL},
    {"http:///a", JANUS_INVALID, NULL, NULL, NULL},
    {"http://user@a/", JANUS_INVALID, NULL, NULL, NULL},
    {"http://user:secret@a/", JANUS_INVALID, NULL, NULL, NULL},
    {"http://a:65536/", JANUS_INVALID, NULL, NULL, NULL},
    {"http://a:8x/", JANUS_INVALID, NULL, NULL, NULL},
    {"http://a b/", JANUS_INVALID, NULL, NULL, NULL},
    {"http://a\r\nX: y/", JANUS_INVALID, NULL, NULL, NULL},
    {"http://a%2e/", JANUS_INVALID, NULL, NULL, NULL},
    {"http://[::1/", JANUS_INVALID, NULL, NULL, NULL},
    {"http://a/#b", JANUS_INVALID, NULL, NULL, NULL},
};

TEST("an address is split into host, port and target, or refused with a reason")
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row   *row = &rows[i];
        struct jrt_http_url url;
        const char         *why = NULL;
        CHECK_EQ(jrt_http_url_read(row->text, "http", &url, &why), row->status);
        CHECK_EQ(why == NULL, row->status == JANUS_OK);
        if (row->status != JANUS_OK) continue;
        CHECK_STR(url.host, row->host);
        CHECK_STR(url.port, row->port);
        CHECK_STR(url.target.at, row->target);
        CHECK_EQ(url.target.bytes, strlen(row->target));
    }
}

TEST("a host that is too long is refused")
{
    char                text[400];
    struct jrt_http_url url;
    const char         *why = NULL;
    (void)snprintf(text, sizeof text, "http://%0*d/", JRT_HTTP_HOST_BYTES, 1);
    CHECK_EQ(jrt_http_url_read(text, "http", &url, &why), JANUS_INVALID);
    (void)snprintf(text, sizeof text, "http://%0*d/", JRT_HTTP_HOST_BYTES - 1, 1);
    CHECK_EQ(jrt_http_url_read(text, "http", &url, &why), JANUS_OK);
}

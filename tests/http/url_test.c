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
    {"mailto:a@b", JANUS_UNAVAILABLE, NULL, NULL, NULL},
    {"http:a", JANUS_INVALID, NULL, NULL, NULL},
    {"1http://a/", JANUS_INVALID, NULL, NULL, NULL},
    {"://a/", JANUS_INVALID, NULL, NULL, NULL},
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

/* RFC 3986, 5.4: what a reference means at http://a/b/c/d;p?q. */
static const char *const references[][2] = {
    {"g", "http://a/b/c/g"},
    {"./g", "http://a/b/c/g"},
    {"g/", "http://a/b/c/g/"},
    {"/g", "http://a/g"},
    {"//g", "http://g"},
    {"//g/x/../y", "http://g/y"},
    {"?y", "http://a/b/c/d;p?y"},
    {"g?y", "http://a/b/c/g?y"},
    {"g#s", "http://a/b/c/g"},
    {"g?y#s", "http://a/b/c/g?y"},
    {";x", "http://a/b/c/;x"},
    {".", "http://a/b/c/"},
    {"./", "http://a/b/c/"},
    {"..", "http://a/b/"},
    {"../", "http://a/b/"},
    {"../g", "http://a/b/g"},
    {"../..", "http://a/"},
    {"../../", "http://a/"},
    {"../../g", "http://a/g"},
    {"../../../g", "http://a/g"},
    {"../../../../g", "http://a/g"},
    {"/./g", "http://a/g"},
    {"/../g", "http://a/g"},
    {"g.", "http://a/b/c/g."},
    {".g", "http://a/b/c/.g"},
    {"g..", "http://a/b/c/g.."},
    {"..g", "http://a/b/c/..g"},
    {"./../g", "http://a/b/g"},
    {"./g/.", "http://a/b/c/g/"},
    {"g/./h", "http://a/b/c/g/h"},
    {"g/../h", "http://a/b/c/h"},
    {"g?y/../x", "http://a/b/c/g?y/../x"},
    {"http:g", "http:g"},
    {"g:h", "g:h"},
    {"HTTPS://x/a/../b?c", "HTTPS://x/b?c"},
};

static struct jrt_http_text text_of(const char *text)
{
    return (struct jrt_http_text){text, strlen(text)};
}

TEST("a reference is put behind the address that it stood at")
{
    struct jrt_http_url base;
    const char         *why = NULL;
    CHECK_EQ(jrt_http_url_read("http://a/b/c/d;p?q", "http", &base, &why), JANUS_OK);
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
        char   out[64];
        size_t bytes = strlen(references[i][1]);
        CHECK_EQ(jrt_http_url_resolve(&base, "http", text_of(references[i][0]), out, sizeof out),
                 JANUS_OK);
        CHECK_STR(out, references[i][1]);
        CHECK_EQ(jrt_http_url_resolve(&base, "http", text_of(references[i][0]), out, bytes),
                 JANUS_FULL);
    }
}

TEST("a reference is put behind an address without a path, and an empty one is refused")
{
    struct jrt_http_url base;
    const char         *why = NULL;
    char                out[64];
    CHECK_EQ(jrt_http_url_read("https://a:1?q", "http", &base, &why), JANUS_OK);
    CHECK_EQ(jrt_http_url_resolve(&base, "https", text_of("g"), out, sizeof out), JANUS_OK);
    CHECK_STR(out, "https://a:1/g");
    CHECK_EQ(jrt_http_url_resolve(&base, "https", text_of("?x"), out, sizeof out), JANUS_OK);
    CHECK_STR(out, "https://a:1/?x");
    CHECK_EQ(jrt_http_url_resolve(&base, "https", text_of(""), out, sizeof out), JANUS_INVALID);
    CHECK_EQ(jrt_http_url_resolve(&base, "https", text_of("#f"), out, sizeof out), JANUS_INVALID);
}

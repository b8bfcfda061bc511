/* SPDX-License-Identifier: MIT */
/* Names of files, ranges, tags and types. */
#include "harness.h"
#include "http/file.h"

#include <stdio.h>

static struct jrt_http_text text(const char *string)
{
    return (struct jrt_http_text){string, strlen(string)};
}

static bool decodes(const char *path, const char *want)
{
    char         name[64];
    size_t       bytes = 0;
    janus_status status = jrt_http_path_decode(text(path), name, sizeof name, &bytes);
    return status == JANUS_OK && bytes == strlen(want) && strcmp(name, want) == 0;
}

static janus_status refuses(struct jrt_http_text path)
{
    char         name[64];
    size_t       bytes = 77;
    janus_status status = jrt_http_path_decode(path, name, sizeof name, &bytes);
    CHECK(status == JANUS_OK || bytes == 77);
    return status;
}

TEST("a path becomes a name below a directory")
{
    CHECK(decodes("/", ""));
    CHECK(decodes("/a", "a"));
    CHECK(decodes("/a/", "a/"));
    CHECK(decodes("/a/b.html", "a/b.html"));
    CHECK(decodes("//a///b//", "a/b/"));
    CHECK(decodes("/%41%20b", "A b"));
    CHECK(decodes("/%c3%A4", "\xc3\xa4"));
    CHECK(decodes("/%2541", "%41"));
    CHECK(decodes("/.a/..b/c../...", ".a/..b/c../..."));
}

TEST("segments of dots are resolved, escaped or not")
{
    CHECK(decodes("/.", ""));
    CHECK(decodes("/./a/./", "a/"));
    CHECK(decodes("/a/.", "a/"));
    CHECK(decodes("/a/..", ""));
    CHECK(decodes("/a/b/..", "a/"));
    CHECK(decodes("/a/b/../../c", "c"));
    CHECK(decodes("/a/%2e%2E/b", "b"));
    CHECK(decodes("/a/.%2e/b", "b"));
    CHECK(decodes("/a//../b", "b"));
}

TEST("no path leads out of its directory")
{
    static const char *const wrong[] = {"/..",      "/../",        "/../a",
                                        "/a/../..", "/./..",       "/%2e%2e/a",
                                        "/.%2E",    "/a/..//../b", "/a/b/../../../c"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_EQ(refuses(text(wrong[i])), JANUS_INVALID);
}

TEST("no escape hides a slash, a backslash or a control byte")
{
    static const char *const wrong[] = {"/a%2fb", "/%2Fetc", "/a%5cb", "/a\\b", "/..%2f..%2fa",
                                        "/a%00",  "/a%0a",   "/%7f",   "/a%1f", "/..%5c.."};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_EQ(refuses(text(wrong[i])), JANUS_INVALID);
    CHECK_EQ(refuses(JRT_HTTP_TEXT("/a\0b")), JANUS_INVALID);
}

TEST("a path with a bad escape, or without its first slash, is refused")
{
    static const char *const wrong[] = {"", "a", "*", "/%", "/%4", "/%zz", "/a%"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_EQ(refuses(text(wrong[i])), JANUS_INVALID);
}

TEST("a name that does not fit is refused, and a name that fits exactly is not")
{
    char   name[4];
    size_t bytes;
    CHECK_EQ(jrt_http_path_decode(text("/abc"), name, 4, &bytes), JANUS_OK);
    CHECK_EQ(jrt_http_path_decode(text("/abcd"), name, 4, &bytes), JANUS_FULL);
    CHECK_EQ(jrt_http_path_decode(text("/abc/"), name, 4, &bytes), JANUS_FULL);
    CHECK_EQ(jrt_http_path_decode(text("/"), name, 0, &bytes), JANUS_FULL);
    CHECK_EQ(jrt_http_path_decode(text("/"), name, 1, &bytes), JANUS_OK);
}

static bool part(const char *value, uint64_t size, uint64_t want_first, uint64_t want_bytes)
{
    uint64_t first, bytes;
    return jrt_http_range_read(text(value), size, &first, &bytes) == JRT_HTTP_RANGE_PART &&
           first == want_first && bytes == want_bytes;
}

static enum jrt_http_range range(const char *value, uint64_t size)
{
    uint64_t first, bytes;
    return jrt_http_range_read(text(value), size, &first, &bytes);
}

TEST("a range is cut to what exists")
{
    CHECK(part("bytes=0-0", 10, 0, 1));
    CHECK(part("Bytes=2-5", 10, 2, 4));
    CHECK(part("bytes=2-", 10, 2, 8));
    CHECK(part("bytes=2-99", 10, 2, 8));
    CHECK(part("bytes=-3", 10, 7, 3));
    CHECK(part("bytes=-99", 10, 0, 10));
    CHECK(part("bytes=9-99999999999999999999999", 10, 9, 1));
    CHECK(part("bytes=0-18446744073709551617", 10, 0, 10)); /* 1 in 64 bits */
    CHECK(part("bytes= 1-2 ", 10, 1, 2));
}

TEST("a range that lies behind the end is not satisfiable")
{
    CHECK_EQ(range("bytes=10-", 10), JRT_HTTP_RANGE_NONE);
    CHECK_EQ(range("bytes=99999999999999999999-", 10), JRT_HTTP_RANGE_NONE);
    CHECK_EQ(range("bytes=-0", 10), JRT_HTTP_RANGE_NONE);
    CHECK_EQ(range("bytes=0-0", 0), JRT_HTTP_RANGE_NONE);
}

TEST("several ranges, and mistakes, ask for the whole")
{
    static const char *const whole[] = {"",          "bytes",         "bytes=",    "bytes=-",
                                        "bytes=a-b", "bytes=1-2,4-5", "bytes=5-2", "items=0-1",
                                        "bytes=1",   "bytes=1-2x",    "bytes=--1", "bytes=1 - 2"};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        CHECK_EQ(range(whole[i], 10), JRT_HTTP_RANGE_WHOLE);
    CHECK_EQ(range("bytes=-5", 0), JRT_HTTP_RANGE_WHOLE);
}

TEST("a tag is found in a list, weak or strong as asked")
{
    struct jrt_http_text tag = text("\"a\""), weak = text("W/\"a\"");
    CHECK(jrt_http_etag_in(text("\"a\""), tag, false));
    CHECK(jrt_http_etag_in(text("\"b\", \"a\""), tag, false));
    CHECK(jrt_http_etag_in(text(" * "), tag, false));
    CHECK(jrt_http_etag_in(text("W/\"a\""), tag, true));
    CHECK(!jrt_http_etag_in(text("W/\"a\""), tag, false));
    CHECK(jrt_http_etag_in(text("\"a\""), weak, true));
    CHECK(!jrt_http_etag_in(text("W/\"a\""), weak, false));
    CHECK(!jrt_http_etag_in(text("\"A\""), tag, true));
    CHECK(jrt_http_etag_in(text("\"x,\\\",\"a\""), tag, true)); /* a backslash escapes nothing */
}

TEST("a list of tags with a mistake names only what stands before it")
{
    struct jrt_http_text tag = text("\"a\"");
    CHECK(jrt_http_etag_in(text("\"a\", oops"), tag, true));
    CHECK(!jrt_http_etag_in(text("oops, \"a\""), tag, true));
    CHECK(!jrt_http_etag_in(text("\"a"), tag, true));
    CHECK(!jrt_http_etag_in(text("w/\"a\""), tag, true));
    CHECK(!jrt_http_etag_in(text(""), tag, true));
    CHECK(!jrt_http_etag_in(text("*, \"a\""), tag, true));
}

TEST("the suffix of the last segment gives the type, in any case")
{
    CHECK(jrt_http_equal(jrt_http_type_of(text("a.b/c.PNG")), text("image/png")));
    CHECK(jrt_http_equal(jrt_http_type_of(text("a.tar.gz")), text("application/gzip")));
    CHECK(jrt_http_equal(jrt_http_type_of(text("index.html")), text("text/html; charset=utf-8")));
    static const char *const unknown[] = {"", "a", "a.png/b", "a.", ".", "a.pngx", "png"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        CHECK(jrt_http_equal(jrt_http_type_of(text(unknown[i])), text("application/octet-stream")));
}

/* SPDX-License-Identifier: MIT */
/* SHA-1 and base64, with the vectors of RFC 3174, RFC 4648 and RFC 6455. */
#include "harness.h"
#include "http/sha1.h"

#include <stdio.h>
#include <stdlib.h>

static const char *sha1_of(const char *bytes, size_t count)
{
    static char text[2 * JRT_HTTP_SHA1_BYTES + 1];
    uint8_t     sum[JRT_HTTP_SHA1_BYTES];
    jrt_http_sha1(bytes, count, sum);
    for (size_t i = 0; i < sizeof sum; i++) (void)snprintf(text + 2 * i, 3, "%02x", sum[i]);
    return text;
}

TEST("SHA-1 gives the sums of RFC 3174")
{
    CHECK_STR(sha1_of("", 0), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    CHECK_STR(sha1_of("abc", 3), "a9993e364706816aba3e25717850c26c9cd0d89d");
    CHECK_STR(sha1_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
              "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    char *many = malloc(1000000);
    CHECK(many != NULL);
    memset(many, 'a', 1000000);
    CHECK_STR(sha1_of(many, 1000000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    CHECK_STR(sha1_of(many, 55), "c1c8bbdc22796e28c0e15163d20899b65621d65a");
    CHECK_STR(sha1_of(many, 64), "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    free(many);
}

TEST("base64 gives the letters of RFC 4648, and reads them back")
{
    static const char *const rows[][2] = {{"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"fooba", "Zm9vYmE="},
                                          {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char    text[16];
        uint8_t back[16];
        size_t  bytes = strlen(rows[i][0]), count = jrt_http_base64(rows[i][0], bytes, text);
        CHECK_EQ(count, strlen(rows[i][1]));
        CHECK(memcmp(text, rows[i][1], count) == 0);
        CHECK(jrt_http_unbase64((struct jrt_http_text){text, count}, back, bytes));
        CHECK(memcmp(back, rows[i][0], bytes) == 0);
        CHECK(!jrt_http_unbase64((struct jrt_http_text){text, count}, back, bytes + 3));
    }
}

TEST("base64 of another length, with foreign letters or with stray bits is refused")
{
    static const char *const wrong[] = {"Zg=",  "Zg",   "Zh==", "Zg=a",
                                        "Z===", "====", "Zg= ", "Z-=="};
    uint8_t                  back[4];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(!jrt_http_unbase64((struct jrt_http_text){wrong[i], strlen(wrong[i])}, back, 1));
    }
}

TEST("the key of RFC 6455 is accepted with the value of RFC 6455")
{
    static const char key[] = "dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint8_t           sum[JRT_HTTP_SHA1_BYTES];
    char              text[29] = {0};
    jrt_http_sha1(key, sizeof key - 1, sum);
    CHECK_EQ(jrt_http_base64(sum, sizeof sum, text), 28);
    CHECK_STR(text, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

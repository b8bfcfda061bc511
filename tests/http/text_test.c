/* SPDX-License-Identifier: MIT */
/* Classes of bytes, lists, hosts and numbers. */
#include "harness.h"
#include "http/text.h"

#include <ctype.h>

static struct jrt_http_text text(const char *string)
{
    return (struct jrt_http_text){string, strlen(string)};
}

static bool among(int byte, const char *set) { return byte != 0 && strchr(set, byte) != NULL; }

/* The classes of a byte, by the words of the standards. */
static unsigned classes_of(int byte)
{
    bool     ascii = byte < 128;
    bool     letter = ascii && isalnum(byte);
    bool     common = letter || (ascii && among(byte, "-._~"));
    bool     delimiter = ascii && among(byte, "!$&'()*+,;=");
    bool     path = common || delimiter || (ascii && among(byte, ":@/[]|^"));
    bool     value = byte == '\t' || (byte >= ' ' && byte != 0x7f);
    unsigned classes = 0;
    if (letter || (ascii && among(byte, "!#$%&'*+-.^_`|~"))) classes |= JRT_HTTP_TOKEN;
    if (path) classes |= JRT_HTTP_PATH;
    if (path || (ascii && among(byte, "?{}\\`"))) classes |= JRT_HTTP_QUERY;
    if (common || delimiter) classes |= JRT_HTTP_HOST;
    if (ascii && isxdigit(byte)) classes |= JRT_HTTP_HEX;
    if (value) classes |= JRT_HTTP_VALUE;
    if (value && byte != '"' && byte != '\\') classes |= JRT_HTTP_QUOTED;
    if (common) classes |= JRT_HTTP_COMMON;
    return classes;
}

TEST("the table of classes is what the standards say, for each byte")
{
    for (int byte = 0; byte < 256; byte++) CHECK_EQ(jrt_http_classes[byte], classes_of(byte));
}

TEST("no class lets a byte through that ends a line")
{
    CHECK_EQ(jrt_http_classes['\r'] | jrt_http_classes['\n'] | jrt_http_classes[0], 0);
}

TEST("texts are the same in any case of letters, and other bytes have no case")
{
    CHECK(jrt_http_same(text("Content-LENGTH"), text("content-length")));
    CHECK(!jrt_http_same(text("content-length"), text("content-lengt")));
    CHECK(!jrt_http_same(text("a["), text("a{"))); /* 0x5b and 0x7b */
    CHECK(!jrt_http_same(text("@"), text("`")));
    CHECK(jrt_http_same(text(""), text("")));
}

TEST("a name of any length from 4 to 24 is known in any case, and one changed letter is seen")
{
    const char *name = "abcdefghij-klmnopqrstuvw";
    for (size_t bytes = 4; bytes <= 24; bytes++) {
        char other[24];
        memcpy(other, name, bytes);
        CHECK(jrt_http_named(other, name, bytes));
        for (size_t i = 0; i < bytes; i++) {
            other[i] = (char)toupper(name[i]);
            CHECK(jrt_http_named(other, name, bytes));
            other[i] = name[i] == 'x' ? 'y' : 'x';
            CHECK(!jrt_http_named(other, name, bytes));
            other[i] = name[i];
        }
    }
}

TEST("a list gives its members one by one, and skips empty ones")
{
    struct jrt_http_text list = text(" , a ,,b\t,\"c, \\\" d\" ,"), member;
    CHECK(jrt_http_list_next(&list, &member) && jrt_http_equal(member, text("a")));
    CHECK(jrt_http_list_next(&list, &member) && jrt_http_equal(member, text("b")));
    CHECK(jrt_http_list_next(&list, &member) && jrt_http_equal(member, text("\"c, \\\" d\"")));
    CHECK(!jrt_http_list_next(&list, &member));
    CHECK(jrt_http_list_has(text("gzip, Chunked"), text("chunked")));
    CHECK(!jrt_http_list_has(text("gzip, xchunked"), text("chunked")));
    CHECK(!jrt_http_list_has(text(""), text("chunked")));
}

TEST("a list that ends in an open quote or a backslash ends there")
{
    struct jrt_http_text list = text("a, \"b, c\\"), member;
    CHECK(jrt_http_list_next(&list, &member) && jrt_http_equal(member, text("a")));
    CHECK(jrt_http_list_next(&list, &member) && jrt_http_equal(member, text("\"b, c\\")));
    CHECK(!jrt_http_list_next(&list, &member));
}

TEST("a number has digits only and fits into 63 bits")
{
    uint64_t number = 7;
    CHECK(jrt_http_number(text("9223372036854775807"), &number));
    CHECK(number == (uint64_t)INT64_MAX);
    const char *wrong[] = {
        "",   "9223372036854775808", "99999999999999999999", "+1", "-1", " 1", "1 ", "0x1", "1,1",
        "1.0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(!jrt_http_number(text(wrong[i]), &number));
    CHECK(number == (uint64_t)INT64_MAX); /* refusals leave it alone */
    CHECK(jrt_http_number(text("000"), &number) && number == 0);
}

TEST("a host may have a port, and nothing else beside it")
{
    const char *right[] = {"a",       "a.b-c_d~", "127.0.0.1:1", "[::1]", "[::ffff:1.2.3.4]:80",
                           "a:65535", "a:",       "a%41b",       "%41",   "a!$&'()*+,;="};
    const char *wrong[] = {"",      ":",   ":80", "a:65536", "a:1x",        "a b",
                           "a/",    "u@a", "[",   "[]",      "[::1",        "[::1]x",
                           "[a]b:", "a%4", "a%",  "a%zz",    "a[b]",        "a:80:1",
                           "[::g]", "a\t", "a?",  "\xff",    "a:4294967297"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        CHECK(jrt_http_is_authority(text(right[i])));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(!jrt_http_is_authority(text(wrong[i])));
}

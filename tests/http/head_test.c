/* SPDX-License-Identifier: MIT */
/* What a parsed head offers beyond its verdict. nasty_test.c has the verdicts. */
#include "harness.h"
#include "http/head.h"

static struct jrt_http_field fields[8];

static enum jrt_http_step parse(struct jrt_http_head *head, const char *bytes,
                                const struct jrt_http_limits *limits)
{
    jrt_http_head_init(head, fields, 8, limits);
    jrt_http_request_begin(head);
    return jrt_http_parse(head, bytes, strlen(bytes));
}

static bool is(const char *bytes, struct jrt_http_part part, const char *want)
{
    return part.bytes == strlen(want) && memcmp(bytes + part.at, want, part.bytes) == 0;
}

TEST("a head names its parts where they lie in the buffer")
{
    const char *bytes = "\r\nPOST /a/b?c=d HTTP/1.1\r\nHost: e:1\r\nX-Y:  z w \r\n\r\nmore";
    struct jrt_http_head head;
    CHECK_EQ(parse(&head, bytes, NULL), JRT_HTTP_DONE);
    CHECK_EQ(head.bytes, strlen(bytes) - 4);
    CHECK(is(bytes, head.method_text, "POST"));
    CHECK(is(bytes, head.target, "/a/b?c=d"));
    CHECK(is(bytes, head.path, "/a/b"));
    CHECK(is(bytes, head.query, "c=d"));
    CHECK(is(bytes, head.host, "e:1"));
    CHECK_EQ(head.field_count, 2);
    CHECK(is(bytes, fields[1].name, "X-Y"));
    CHECK(is(bytes, fields[1].value, "z w"));
}

TEST("the host of a target counts, and a target without a path has the path /")
{
    const char          *bytes = "GET http://A.b:80?q HTTP/1.1\r\nHost: a.B:80\r\n\r\n";
    struct jrt_http_head head;
    CHECK_EQ(parse(&head, bytes, NULL), JRT_HTTP_DONE);
    CHECK(is(bytes, head.host, "A.b:80"));
    CHECK(is(bytes, head.path, "/"));
    CHECK(is(bytes, head.query, "q"));
    CHECK(is(bytes, head.target, "http://A.b:80?q"));
}

TEST("a refused head says where and why, and stays refused")
{
    const char          *bytes = "GET / HTTP/1.1\r\nHost: a\r\nFoo : b\r\n\r\n";
    struct jrt_http_head head;
    CHECK_EQ(parse(&head, bytes, NULL), JRT_HTTP_BAD);
    CHECK_EQ(head.status, 400);
    CHECK_EQ(head.wrong, 28);
    CHECK_STR(head.why, "a space stands before the colon of a field");
    CHECK_EQ(jrt_http_parse(&head, bytes, strlen(bytes)), JRT_HTTP_BAD);
    jrt_http_request_begin(&head);
    CHECK_EQ(jrt_http_parse(&head, "GET / HTTP/1.0\r\n\r\n", 18), JRT_HTTP_DONE);
    CHECK(head.why == NULL);
}

TEST("a finished head stays finished, whatever follows it")
{
    const char          *bytes = "GET / HTTP/1.0\r\n\r\n\x01\x02";
    struct jrt_http_head head;
    jrt_http_head_init(&head, fields, 8, NULL);
    jrt_http_request_begin(&head);
    CHECK_EQ(jrt_http_parse(&head, bytes, 18), JRT_HTTP_DONE);
    CHECK_EQ(jrt_http_parse(&head, bytes, 20), JRT_HTTP_DONE);
    CHECK_EQ(head.bytes, 18);
}

TEST("each limit has its own answer, and a head at the limit is accepted")
{
    struct jrt_http_head head;
    const char *bytes = "GET /abcdef HTTP/1.1\r\nHost: a\r\nB: c\r\n\r\n"; /* 22, 9, 6, 2 */
    CHECK_EQ(parse(&head, bytes, &(struct jrt_http_limits){22, 39, 2}), JRT_HTTP_DONE);
    CHECK_EQ(parse(&head, bytes, &(struct jrt_http_limits){21, 39, 2}), JRT_HTTP_BAD);
    CHECK_EQ(head.status, 414);
    CHECK_EQ(parse(&head, bytes, &(struct jrt_http_limits){22, 38, 2}), JRT_HTTP_BAD);
    CHECK_EQ(head.status, 431);
    CHECK_EQ(parse(&head, bytes, &(struct jrt_http_limits){22, 39, 1}), JRT_HTTP_BAD);
    CHECK_EQ(head.status, 431);
}

TEST("limits of zero are the defaults, and the array bounds the fields")
{
    struct jrt_http_head head;
    jrt_http_head_init(&head, fields, 8, &(struct jrt_http_limits){.fields = 100});
    CHECK_EQ(head.max_fields, 8);
    CHECK_EQ(head.max_line_bytes, JRT_HTTP_LINE_BYTES);
    CHECK_EQ(head.max_head_bytes, JRT_HTTP_HEAD_BYTES);
}

TEST("fields are found in any case, one after the other, and their lists are searched")
{
    const char          *bytes = "GET / HTTP/1.0\r\nA: x\r\nb: y\r\na: z, W\r\n\r\n";
    struct jrt_http_head head;
    CHECK_EQ(parse(&head, bytes, NULL), JRT_HTTP_DONE);
    CHECK_EQ(jrt_http_find(&head, bytes, JRT_HTTP_TEXT("a"), 0), 0);
    CHECK_EQ(jrt_http_find(&head, bytes, JRT_HTTP_TEXT("A"), 1), 2);
    CHECK_EQ(jrt_http_find(&head, bytes, JRT_HTTP_TEXT("a"), 3), -1);
    CHECK_EQ(jrt_http_find(&head, bytes, JRT_HTTP_TEXT("c"), 0), -1);
    CHECK(jrt_http_has(&head, bytes, JRT_HTTP_TEXT("a"), JRT_HTTP_TEXT("w")));
    CHECK(!jrt_http_has(&head, bytes, JRT_HTTP_TEXT("b"), JRT_HTTP_TEXT("w")));
}

TEST("a field of 8 bytes holds the four offsets, so that 64 fields take 512 bytes")
{
    CHECK_EQ(sizeof(struct jrt_http_field), 8);
    CHECK(sizeof(struct jrt_http_head) <= 112);
}

/* SPDX-License-Identifier: MIT */
/* Heads that we write. */
#include "harness.h"
#include "http/head.h"
#include "http/write.h"

static char buffer[256];

static struct jrt_http_out empty(size_t room)
{
    memset(buffer, '#', sizeof buffer);
    return (struct jrt_http_out){buffer, room, 0};
}

static bool has(const struct jrt_http_out *out, const char *want)
{
    return out->bytes == strlen(want) && memcmp(out->at, want, out->bytes) == 0;
}

TEST("an answer is written line by line")
{
    struct jrt_http_out out = empty(sizeof buffer);
    CHECK_EQ(jrt_http_put_status(&out, 404), JANUS_OK);
    CHECK_EQ(jrt_http_put_number(&out, JRT_HTTP_TEXT("Content-Length"), 0), JANUS_OK);
    CHECK_EQ(jrt_http_put_number(&out, JRT_HTTP_TEXT("Age"), UINT64_MAX), JANUS_OK);
    CHECK_EQ(jrt_http_put_field(&out, JRT_HTTP_TEXT("A"), JRT_HTTP_TEXT(" b\xff c\t")), JANUS_OK);
    CHECK_EQ(jrt_http_put_end(&out), JANUS_OK);
    CHECK(has(&out, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n"
                    "Age: 18446744073709551615\r\nA: b\xff c\r\n\r\n"));
}

TEST("a status without a phrase is written with an empty one, and no status beyond 100 to 599 is")
{
    struct jrt_http_out out = empty(sizeof buffer);
    CHECK_EQ(jrt_http_put_status(&out, 299), JANUS_OK);
    CHECK(has(&out, "HTTP/1.1 299 \r\n"));
    CHECK_EQ(jrt_http_put_status(&out, 99), JANUS_INVALID);
    CHECK_EQ(jrt_http_put_status(&out, 600), JANUS_INVALID);
    CHECK(has(&out, "HTTP/1.1 299 \r\n"));
}

TEST("no value can end its line: each control byte but HTAB is refused, wherever it stands")
{
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < 3; at++) {
            char                value[3] = {'a', 'b', 'c'};
            struct jrt_http_out out = empty(sizeof buffer);
            value[at] = (char)byte;
            bool         control = (byte < 32 && byte != '\t') || byte == 127;
            janus_status status =
                jrt_http_put_field(&out, JRT_HTTP_TEXT("X"), (struct jrt_http_text){value, 3});
            CHECK_EQ(status, control ? JANUS_INVALID : JANUS_OK);
            if (control) CHECK(out.bytes == 0 && buffer[0] == '#');
        }
    }
}

TEST("no name but a token is written")
{
    struct jrt_http_out        out = empty(sizeof buffer);
    const struct jrt_http_text wrong[] = {JRT_HTTP_TEXT(""),      JRT_HTTP_TEXT("a b"),
                                          JRT_HTTP_TEXT("a:"),    JRT_HTTP_TEXT("a\r\nb"),
                                          JRT_HTTP_TEXT("a\0b"),  JRT_HTTP_TEXT("\xc3\xa4"),
                                          JRT_HTTP_TEXT("a\x7f"), JRT_HTTP_TEXT(" a")};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(jrt_http_put_field(&out, wrong[i], JRT_HTTP_TEXT("x")), JANUS_INVALID);
        CHECK_EQ(jrt_http_put_number(&out, wrong[i], 1), JANUS_INVALID);
        CHECK_EQ(jrt_http_put_request(&out, wrong[i], JRT_HTTP_TEXT("/")), JANUS_INVALID);
    }
    CHECK_EQ(out.bytes, 0);
}

TEST("no target can end the request line or add a part to it")
{
    struct jrt_http_out        out = empty(sizeof buffer);
    const struct jrt_http_text wrong[] = {
        JRT_HTTP_TEXT(""),           JRT_HTTP_TEXT("/a b"), JRT_HTTP_TEXT("/\r\nX: y"),
        JRT_HTTP_TEXT("/\0"),        JRT_HTTP_TEXT("/a#b"), JRT_HTTP_TEXT("/\xc3\xa4"),
        JRT_HTTP_TEXT("/ HTTP/1.0"), JRT_HTTP_TEXT("/\t"),  JRT_HTTP_TEXT("/\"")};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_EQ(jrt_http_put_request(&out, JRT_HTTP_TEXT("GET"), wrong[i]), JANUS_INVALID);
    CHECK_EQ(jrt_http_put_request(&out, JRT_HTTP_TEXT("GET"), JRT_HTTP_TEXT("/a%20b?c=d")),
             JANUS_OK);
    CHECK(has(&out, "GET /a%20b?c=d HTTP/1.1\r\n"));
}

TEST("a line without room is not begun")
{
    for (size_t room = 0; room < 6; room++) { /* "A: b" CR LF */
        struct jrt_http_out out = empty(room);
        CHECK_EQ(jrt_http_put_field(&out, JRT_HTTP_TEXT("A"), JRT_HTTP_TEXT("b")), JANUS_FULL);
        CHECK(out.bytes == 0 && buffer[0] == '#');
    }
    struct jrt_http_out out = empty(6);
    CHECK_EQ(jrt_http_put_field(&out, JRT_HTTP_TEXT("A"), JRT_HTTP_TEXT("b")), JANUS_OK);
    CHECK_EQ(jrt_http_put_end(&out), JANUS_FULL);
    CHECK(has(&out, "A: b\r\n"));
}

TEST("the reasons are sorted, so that each is found")
{
    static const unsigned known[] = {100, 101, 200, 206, 304, 400, 416, 431, 451, 500, 505, 511};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        CHECK(jrt_http_reason(known[i]).bytes > 0);
    unsigned found = 0;
    for (unsigned status = 0; status < 1000; status++) found += jrt_http_reason(status).bytes > 0;
    CHECK_EQ(found, 52);
}

TEST("fields that frame a message are known in any case")
{
    CHECK(jrt_http_is_framing(JRT_HTTP_TEXT("Content-Length")));
    CHECK(jrt_http_is_framing(JRT_HTTP_TEXT("TRANSFER-ENCODING")));
    CHECK(jrt_http_is_framing(JRT_HTTP_TEXT("connection")));
    CHECK(!jrt_http_is_framing(JRT_HTTP_TEXT("Content-Type")));
    CHECK(!jrt_http_is_framing(JRT_HTTP_TEXT("")));
}

TEST("our parser reads what we write")
{
    struct jrt_http_head  head;
    struct jrt_http_field fields[4];
    struct jrt_http_out   out = empty(sizeof buffer);
    CHECK_EQ(jrt_http_put_status(&out, 206), JANUS_OK);
    CHECK_EQ(jrt_http_put_number(&out, JRT_HTTP_TEXT("Content-Length"), 77), JANUS_OK);
    CHECK_EQ(jrt_http_put_end(&out), JANUS_OK);
    jrt_http_head_init(&head, fields, 4, NULL);
    jrt_http_answer_begin(&head, false);
    CHECK_EQ(jrt_http_parse(&head, buffer, out.bytes), JRT_HTTP_DONE);
    CHECK(head.status == 206 && head.content_length == 77 && head.bytes == out.bytes);
}

/* SPDX-License-Identifier: MIT */
/* The fields of a head, and what they say together about the body and the connection. */
#include "http/head.h"
#include "http/parse.h"

#define IS(text, literal) jrt_http_same((text), JRT_HTTP_TEXT(literal))
#define NAMED(name, literal) jrt_http_named((name).at, (literal), sizeof(literal) - 1)

/* A field that may come once. */
static bool second(struct jrt_http_head *head, uint8_t bit)
{
    bool seen = (head->seen & bit) != 0;
    head->seen |= bit;
    return seen;
}

/* What is wrong with a field, and the status to answer with. No `why`: the field is right. */
struct flaw {
    const char *why;
    uint16_t    status;
};

static const struct flaw flawless = {NULL, 0};

static struct flaw flaw(const char *why) { return (struct flaw){why, 400}; }

/* "example.org" and "localhost:8080", in few instructions. False says nothing. */
static bool is_simple_host(const char *floor, struct jrt_http_text text)
{
    const char *end = text.at + text.bytes, *at = jrt_http_scan_host(floor, text.at, end);
    if (at == end || at == text.at) return text.bytes > 0 && at == end;
    if (*at != ':' || end - at > 5) return false; /* a port of four digits is below 65536 */
    while (++at < end)
        if (!jrt_http_is_digit(*at)) return false;
    return true;
}

static struct flaw judge_host(struct jrt_http_head *head, const char *floor,
                              struct jrt_http_part part)
{
    struct jrt_http_text value = jrt_http_text_of(floor, part);
    if (head->kind != JRT_HTTP_REQUEST) return flawless; /* in an answer it means nothing */
    if (second(head, JRT_HTTP_SEEN_HOST)) return flaw("Host came twice");
    if (!is_simple_host(floor, value) && !jrt_http_is_authority(value))
        return flaw("Host is not a host");
    if ((head->seen & JRT_HTTP_SEEN_ABSOLUTE) == 0)
        head->host = part;
    else if (!jrt_http_same(jrt_http_text_of(floor, head->host), value))
        return flaw("Host differs from the host in the target");
    return flawless;
}

static struct flaw judge_length(struct jrt_http_head *head, struct jrt_http_text value)
{
    if (second(head, JRT_HTTP_SEEN_LENGTH)) return flaw("Content-Length came twice");
    if (!jrt_http_number(value, &head->content_length))
        return flaw("Content-Length is not a number below 2^63");
    if ((head->seen & JRT_HTTP_SEEN_CHUNKED) != 0)
        return flaw("Content-Length and Transfer-Encoding exclude each other");
    return flawless;
}

/* 501 is for codings that another server may know, as in "gzip, chunked". */
static struct flaw judge_coding(struct jrt_http_head *head, struct jrt_http_text value)
{
    if (second(head, JRT_HTTP_SEEN_CHUNKED)) return flaw("Transfer-Encoding came twice");
    if (head->minor == 0) return flaw("HTTP/1.0 has no Transfer-Encoding");
    if ((head->seen & JRT_HTTP_SEEN_LENGTH) != 0)
        return flaw("Content-Length and Transfer-Encoding exclude each other");
    if (IS(value, "chunked")) return flawless;

    struct jrt_http_text coding;
    bool                 chunked = false;
    int                  codings = 0;
    for (; jrt_http_list_next(&value, &coding); codings++) {
        if (!jrt_http_is_token(coding)) return flaw("Transfer-Encoding is not a list of codings");
        if (chunked) return flaw("a coding follows chunked, which must be the last");
        chunked = IS(coding, "chunked");
    }
    if (codings == 0) return flaw("Transfer-Encoding is empty");
    if (chunked && codings == 1) return flaw("Transfer-Encoding has a comma too many");
    return (struct flaw){"only the coding chunked is known here", 501};
}

static struct flaw judge_connection(struct jrt_http_head *head, struct jrt_http_text value)
{
    struct jrt_http_text member;
    if (value.bytes == 10 && NAMED(value, "keep-alive")) { /* what most browsers send */
        head->stay = true;
        return flawless;
    }
    while (jrt_http_list_next(&value, &member)) {
        if (!jrt_http_is_token(member)) return flaw("Connection is not a list of names");
        if (IS(member, "close")) head->close = true;
        if (IS(member, "keep-alive")) head->stay = true;
        if (IS(member, "upgrade")) head->switching = true;
    }
    return flawless;
}

static struct flaw judge_expect(struct jrt_http_head *head, struct jrt_http_text value)
{
    if (head->kind != JRT_HTTP_REQUEST) return flawless;
    head->expect_continue = head->minor == 1;
    if (IS(value, "100-continue")) return flawless;
    return (struct flaw){"only 100-continue can be expected", 417};
}

/* Fields that must not come behind a body (RFC 9110, 6.5.1). They frame, route or authorise the
 * message, or change how it is processed, and all that was decided before the body. */
static bool is_forbidden_trailer(struct jrt_http_text name)
{
    static const char *const forbidden[] = {
        "age",
        "authorization",
        "cache-control",
        "connection",
        "content-encoding",
        "content-length",
        "content-range",
        "content-type",
        "cookie",
        "date",
        "expect",
        "expires",
        "host",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "if-unmodified-since",
        "keep-alive",
        "location",
        "max-forwards",
        "pragma",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "range",
        "retry-after",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "vary",
        "via",
        "warning",
        "www-authenticate",
    };
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
        if (jrt_http_same(name, (struct jrt_http_text){forbidden[i], strlen(forbidden[i])}))
            return true;
    return false;
}

/* Lengths of the names that judge() knows: one bit each. */
static const uint32_t known_lengths = 1u << 4 | 1u << 6 | 1u << 7 | 1u << 10 | 1u << 14 | 1u << 17;

/* Judges a field, and takes in what it says about the head. */
static struct flaw judge(struct jrt_http_head *head, const char *floor,
                         const struct jrt_http_field *field)
{
    struct jrt_http_text name = jrt_http_text_of(floor, field->name);
    struct jrt_http_text value = jrt_http_text_of(floor, field->value);
    if (head->kind == JRT_HTTP_TRAILERS)
        return is_forbidden_trailer(name) ? flaw("this field must not be a trailer") : flawless;
    switch (name.bytes) {
    case 4: return NAMED(name, "host") ? judge_host(head, floor, field->value) : flawless;
    case 6: return NAMED(name, "expect") ? judge_expect(head, value) : flawless;
    case 7:
        if (NAMED(name, "upgrade") && value.bytes > 0) head->seen |= JRT_HTTP_SEEN_UPGRADE;
        return flawless;
    case 10: return NAMED(name, "connection") ? judge_connection(head, value) : flawless;
    case 14: return NAMED(name, "content-length") ? judge_length(head, value) : flawless;
    case 17: return NAMED(name, "transfer-encoding") ? judge_coding(head, value) : flawless;
    default: return flawless;
    }
}

/* Whether a field with a name of this length says nothing about the head. */
static bool is_plain(const struct jrt_http_head *head, size_t name_bytes)
{
    return (name_bytes > 17 || (known_lengths >> name_bytes & 1) == 0) &&
           head->kind != JRT_HTTP_TRAILERS;
}

/* Which byte may not stand where a field's name is expected to end. */
__attribute__((noinline, cold)) static const char *bad_name(struct jrt_http_head       *head,
                                                            const struct jrt_http_line *line,
                                                            const char                 *stop)
{
    if (stop == line->start && jrt_http_is_space(*stop))
        return jrt_http_fail(head, line, stop, 400, "a line of the head begins with a space");
    if (stop == line->start && *stop == ':')
        return jrt_http_fail(head, line, stop, 400, "a field has no name");
    if (jrt_http_is_space(*stop))
        return jrt_http_fail(head, line, stop, 400, "a space stands before the colon of a field");
    if (*stop == '\r' || *stop == '\n')
        return jrt_http_fail(head, line, stop, 400, "a line of the head has no colon");
    return jrt_http_fail(head, line, stop, 400, "a byte must not stand in the name of a field");
}

/* "Name: value", from line->start. */
static const char *field_line(struct jrt_http_head *head, const struct jrt_http_line *line)
{
    const char *name = line->start, *end = line->end;
    const char *colon = jrt_http_scan_token(line->floor, name, end);
    if (colon == end) return jrt_http_cut(head, line);
    if (*colon != ':' || colon == name) return bad_name(head, line, colon);

    const char *value = colon + 1;
    if (end - value >= 2 && *value == ' ' && (uint8_t)value[1] > ' ')
        value++; /* one space stands in most lines */
    else
        while (value < end && jrt_http_is_space(*value)) value++;
    const char *stop = jrt_http_scan_value(line->floor, value, end);
    if (end - stop < 2 && (stop == end || *stop == '\r')) return jrt_http_cut(head, line);
    if (*stop != '\r')
        return jrt_http_fail(head, line, stop, 400, "a control byte must not stand in a value");
    if (stop[1] != '\n') return jrt_http_fail(head, line, stop, 400, "LF must follow CR");
    const char *next = stop + 2;
    while (stop > value && jrt_http_is_space(stop[-1])) stop--;

    if (head->field_count == head->max_fields)
        return jrt_http_fail(head, line, name, 431, "the head has too many fields");
    struct jrt_http_field *field = &head->fields[head->field_count];
    field->name = jrt_http_part_of(line, name, colon);
    field->value = jrt_http_part_of(line, value, stop);

    if (!is_plain(head, (size_t)(colon - name))) {
        struct flaw found = judge(head, line->floor, field);
        if (found.why != NULL) return jrt_http_fail(head, line, name, found.status, found.why);
    }
    head->field_count++;
    return next;
}

/* What is wrong with a request whose lines are right, or NULL. */
static const char *judge_request(struct jrt_http_head *head)
{
    if (head->minor == 1 && (head->seen & JRT_HTTP_SEEN_HOST) == 0) return "Host is missing";
    if ((head->seen & JRT_HTTP_SEEN_CHUNKED) != 0) head->framing = JRT_HTTP_CHUNKED;
    if ((head->seen & JRT_HTTP_SEEN_LENGTH) != 0) head->framing = JRT_HTTP_LENGTH;
    return NULL;
}

/* What is wrong with an answer whose lines are right, or NULL. */
static const char *judge_answer(struct jrt_http_head *head)
{
    bool bodiless = head->status < 200 || head->status == 204;
    bool chunked = (head->seen & JRT_HTTP_SEEN_CHUNKED) != 0;
    if (bodiless && (chunked || head->content_length > 0))
        return "an answer with this status has no body, yet it announces one";
    if (bodiless || head->status == 304 || head->to_head) {
        head->framing = JRT_HTTP_NO_BODY;
    } else if (chunked) {
        head->framing = JRT_HTTP_CHUNKED;
    } else if ((head->seen & JRT_HTTP_SEEN_LENGTH) != 0) {
        head->framing = JRT_HTTP_LENGTH;
    } else {
        head->framing = JRT_HTTP_CLOSE;
    }
    return NULL;
}

/* The whole head: the body's framing, and what happens to the connection. */
static const char *judge_head(struct jrt_http_head *head, const struct jrt_http_line *line,
                              const char *next)
{
    const char *why = NULL;
    if (head->kind == JRT_HTTP_REQUEST) why = judge_request(head);
    if (head->kind == JRT_HTTP_ANSWER) why = judge_answer(head);
    if (why != NULL) return jrt_http_fail(head, line, line->start, 400, why);
    bool stays = head->minor == 1 || head->stay;
    head->keep_alive = stays && !head->close && head->framing != JRT_HTTP_CLOSE;
    head->upgrade =
        head->minor == 1 && head->switching && (head->seen & JRT_HTTP_SEEN_UPGRADE) != 0;
    return next;
}

const char *jrt_http_fields_parse(struct jrt_http_head *head, struct jrt_http_line *line)
{
    for (;;) {
        const char *at = line->start, *end = line->end;
        if (at == end) return jrt_http_cut(head, line);
        if (*at == '\r') {
            if (end - at < 2) return jrt_http_cut(head, line);
            if (at[1] == '\n') return judge_head(head, line, at + 2);
            return jrt_http_fail(head, line, at, 400, "LF must follow CR");
        }
        const char *next = field_line(head, line);
        if (next == NULL) return NULL;
        jrt_http_line_set(line, head, next);
    }
}

int jrt_http_find(const struct jrt_http_head *head, const char *bytes, struct jrt_http_text name,
                  int from)
{
    for (int i = from; i < head->field_count; i++)
        if (jrt_http_same(jrt_http_text_of(bytes, head->fields[i].name), name)) return i;
    return -1;
}

bool jrt_http_has(const struct jrt_http_head *head, const char *bytes, struct jrt_http_text name,
                  struct jrt_http_text member)
{
    for (int i = -1; (i = jrt_http_find(head, bytes, name, i + 1)) >= 0;)
        if (jrt_http_list_has(jrt_http_text_of(bytes, head->fields[i].value), member)) return true;
    return false;
}

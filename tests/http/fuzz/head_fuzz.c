/* SPDX-License-Identifier: MIT */
/*
 * Heads. The first byte of the input chooses the kind of head, the second where it is split.
 *
 * What must hold for all bytes: whole and split input get the same verdict, and so do both scans.
 * All parts lie inside of the bytes that were used. A request that was accepted is understood in
 * the same way after we have written it anew.
 */
#include "../understand.h"
#include "fuzz.h"
#include "http/write.h"

enum { REQUEST, ANSWER, ANSWER_TO_HEAD, TRAILERS, KINDS };

struct parsed {
    struct jrt_http_head  head;
    struct jrt_http_field fields[ROOM_FIELDS];
    enum jrt_http_step    step;
};

static void begin(struct parsed *parsed, int kind)
{
    jrt_http_head_init(&parsed->head, parsed->fields, ROOM_FIELDS, NULL);
    if (kind == REQUEST) jrt_http_request_begin(&parsed->head);
    if (kind == ANSWER || kind == ANSWER_TO_HEAD)
        jrt_http_answer_begin(&parsed->head, kind == ANSWER_TO_HEAD);
    if (kind == TRAILERS) jrt_http_trailers_begin(&parsed->head);
}

static bool same_part(struct jrt_http_part left, struct jrt_http_part right)
{
    return left.at == right.at && left.bytes == right.bytes;
}

/* Both parsers read the same bytes: everything must be equal. */
static void must_be_same(const struct parsed *left, const struct parsed *right)
{
    const struct jrt_http_head *a = &left->head, *b = &right->head;
    MUST(left->step == right->step);
    if (left->step == JRT_HTTP_MORE) return;
    MUST(a->status == b->status && a->wrong == b->wrong);
    MUST((a->why == NULL) == (b->why == NULL));
    if (a->why != NULL) MUST(strcmp(a->why, b->why) == 0);
    if (left->step == JRT_HTTP_BAD) return;
    MUST(a->bytes == b->bytes && a->field_count == b->field_count);
    MUST(a->method == b->method && a->minor == b->minor && a->framing == b->framing);
    MUST(a->keep_alive == b->keep_alive && a->expect_continue == b->expect_continue);
    MUST(a->upgrade == b->upgrade && a->has_query == b->has_query);
    MUST(a->content_length == b->content_length);
    MUST(same_part(a->path, b->path) && same_part(a->query, b->query));
    MUST(same_part(a->host, b->host) && same_part(a->target, b->target));
    MUST(same_part(a->method_text, b->method_text) && same_part(a->reason, b->reason));
    for (int i = 0; i < a->field_count; i++)
        MUST(same_part(left->fields[i].name, right->fields[i].name) &&
             same_part(left->fields[i].value, right->fields[i].value));
}

static void must_lie_inside(const struct jrt_http_head *head, struct jrt_http_part part)
{
    MUST((size_t)part.at + part.bytes <= head->bytes);
}

static void must_be_sound(const struct parsed *parsed, const char *bytes, size_t count)
{
    const struct jrt_http_head *head = &parsed->head;
    MUST((parsed->step == JRT_HTTP_BAD) == (head->why != NULL));
    if (parsed->step == JRT_HTTP_BAD) {
        MUST(head->wrong <= count);
        MUST(head->status >= 400 && head->status <= 599);
    }
    if (parsed->step != JRT_HTTP_DONE) return;
    MUST(head->bytes >= 2 && head->bytes <= count && head->field_count <= ROOM_FIELDS);
    MUST(memcmp(bytes + head->bytes - 2, "\r\n", 2) == 0);
    const struct jrt_http_part parts[] = {head->method_text, head->target, head->path,
                                          head->query,       head->host,   head->reason};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) must_lie_inside(head, parts[i]);
    for (int i = 0; i < head->field_count; i++) {
        struct jrt_http_text name = jrt_http_text_of(bytes, parsed->fields[i].name);
        struct jrt_http_text value = jrt_http_text_of(bytes, parsed->fields[i].value);
        must_lie_inside(head, parsed->fields[i].name);
        must_lie_inside(head, parsed->fields[i].value);
        MUST(jrt_http_is_token(name));
        for (size_t byte = 0; byte < value.bytes; byte++)
            MUST(jrt_http_is(value.at[byte], JRT_HTTP_VALUE));
        MUST(jrt_http_trim(value).bytes == value.bytes);
    }
}

static bool same_text(const char *left_bytes, struct jrt_http_part left, const char *right_bytes,
                      struct jrt_http_part right)
{
    return jrt_http_equal(jrt_http_text_of(left_bytes, left), jrt_http_text_of(right_bytes, right));
}

/* Writes an accepted request of HTTP/1.1 and parses that. */
static void must_survive_writing(const struct parsed *parsed, const char *bytes)
{
    static char                 anew[2 * JRT_HTTP_HEAD_BYTES];
    static struct parsed        again;
    struct jrt_http_out         out = {anew, sizeof anew, 0};
    const struct jrt_http_head *head = &parsed->head;
    MUST(jrt_http_put_request(&out, jrt_http_text_of(bytes, head->method_text),
                              jrt_http_text_of(bytes, head->target)) == JANUS_OK);
    for (int i = 0; i < head->field_count; i++)
        MUST(jrt_http_put_field(&out, jrt_http_text_of(bytes, parsed->fields[i].name),
                                jrt_http_text_of(bytes, parsed->fields[i].value)) == JANUS_OK);
    MUST(jrt_http_put_end(&out) == JANUS_OK);
    begin(&again, REQUEST);
    again.step = jrt_http_parse(&again.head, anew, out.bytes);
    const struct jrt_http_head *other = &again.head;
    MUST(again.step == JRT_HTTP_DONE && other->bytes == out.bytes);
    MUST(head->method == other->method && head->framing == other->framing);
    MUST(head->content_length == other->content_length && head->upgrade == other->upgrade);
    MUST(head->keep_alive == other->keep_alive && head->expect_continue == other->expect_continue);
    MUST(head->has_query == other->has_query && head->field_count == other->field_count);
    MUST(same_text(bytes, head->path, anew, other->path));
    MUST(same_text(bytes, head->query, anew, other->query));
    MUST(same_text(bytes, head->host, anew, other->host));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct parsed whole, parts, plain;
    if (size < 2) return 0;
    int    kind = data[0] % KINDS;
    size_t count = size - 2, split = count * data[1] / 255;
    char  *bytes = exact_copy(data + 2, count), *front = exact_copy(data + 2, split);

    begin(&whole, kind);
    whole.step = jrt_http_parse(&whole.head, bytes, count);
    must_be_sound(&whole, bytes, count);

    begin(&parts, kind);
    parts.step = jrt_http_parse(&parts.head, front, split);
    must_be_sound(&parts, front, split);
    if (parts.step == JRT_HTTP_MORE) parts.step = jrt_http_parse(&parts.head, bytes, count);
    must_be_same(&whole, &parts);

    begin(&plain, kind);
    plain.step = plain_parse(&plain.head, bytes, count);
    must_be_same(&whole, &plain);

    if (kind == REQUEST && whole.step == JRT_HTTP_DONE && whole.head.minor == 1)
        must_survive_writing(&whole, bytes);
    free(bytes);
    free(front);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* What a handler reads from the head of a request. */
#include "http/server.h"

janus_status jrt_http_do_field(const janus_http *http, const char *name, janus_http_text *out_value)
{
    if (http == NULL || name == NULL || out_value == NULL) return JANUS_INVALID;
    const char *bytes = http->in + http->at;
    int found = jrt_http_find(&http->head, bytes, jrt_http_up_to(name, http->head.bytes), 0);
    if (found < 0) return JANUS_NOT_FOUND;
    *out_value = jrt_http_public(jrt_http_text_of(bytes, http->head.fields[found].value));
    return JANUS_OK;
}

janus_status jrt_http_do_field_at(const janus_http *http, size_t index, janus_http_text *out_name,
                                  janus_http_text *out_value)
{
    if (http == NULL || out_name == NULL || out_value == NULL) return JANUS_INVALID;
    if (index >= http->head.field_count) return JANUS_NOT_FOUND;
    const struct jrt_http_field *field = &http->head.fields[index];
    *out_name = jrt_http_public(jrt_http_text_of(http->in + http->at, field->name));
    *out_value = jrt_http_public(jrt_http_text_of(http->in + http->at, field->value));
    return JANUS_OK;
}

janus_status jrt_http_do_peer(const janus_http *http, janus_address *out)
{
    if (http == NULL) return JANUS_INVALID;
    return janus_io_peer(http->io, out);
}

janus_status janus_http_decode(janus_http_text text, bool form, char *out, size_t room,
                               size_t *out_bytes)
{
    size_t bytes = 0;
    if ((text.at == NULL && text.bytes > 0) || out == NULL || out_bytes == NULL) {
        return JANUS_INVALID;
    }
    for (size_t i = 0; i < text.bytes; i++) {
        char byte = text.at[i];
        if (byte == '+' && form) byte = ' ';
        if (byte == '%') {
            if (text.bytes - i < 3 || !jrt_http_is(text.at[i + 1], JRT_HTTP_HEX) ||
                !jrt_http_is(text.at[i + 2], JRT_HTTP_HEX)) {
                return JANUS_INVALID;
            }
            byte = (char)(jrt_http_hex(text.at[i + 1]) * 16 + jrt_http_hex(text.at[i + 2]));
            i += 2;
        }
        if (byte == '\0') return JANUS_INVALID;
        if (room < 2 || bytes > room - 2) return JANUS_FULL;
        out[bytes++] = byte;
    }
    if (room < 1) return JANUS_FULL;
    out[bytes] = '\0';
    *out_bytes = bytes;
    return JANUS_OK;
}

bool janus_http_text_equal(janus_http_text text, const char *other)
{
    return other != NULL &&
           jrt_http_equal(jrt_http_private(text), jrt_http_up_to(other, text.bytes));
}

janus_status janus_http_text_number(janus_http_text text, uint64_t *out)
{
    uint64_t number = 0;
    if (out == NULL || text.at == NULL || text.bytes == 0) return JANUS_INVALID;
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') return JANUS_INVALID;
    }
    for (size_t i = 0; i < text.bytes; i++) {
        uint64_t digit = (uint64_t)(text.at[i] - '0');
        if (number > (UINT64_MAX - digit) / 10) return JANUS_FULL;
        number = number * 10 + digit;
    }
    *out = number;
    return JANUS_OK;
}

janus_status janus_http_query(const janus_http_request *request, const char *name,
                              janus_http_text *out_value)
{
    if (request == NULL || name == NULL || out_value == NULL) return JANUS_INVALID;
    const char *at = request->query.at, *end = at + request->query.bytes;
    size_t      bytes = strnlen(name, request->query.bytes + 1);
    while (at != NULL && at <= end) {
        const char *next = memchr(at, '&', (size_t)(end - at));
        if (next == NULL) next = end;
        const char *equals = memchr(at, '=', (size_t)(next - at));
        const char *name_end = equals != NULL ? equals : next;
        if ((size_t)(name_end - at) == bytes && memcmp(at, name, bytes) == 0) {
            const char *value = equals != NULL ? equals + 1 : next;
            *out_value = (janus_http_text){value, (size_t)(next - value)};
            return JANUS_OK;
        }
        at = next + 1;
    }
    return JANUS_NOT_FOUND;
}

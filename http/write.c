/* SPDX-License-Identifier: MIT */
/* Heads, line by line. */
#include "http/write.h"

/* Appends the parts if all of them have room. A part may lie in the room, behind its place. */
static janus_status put(struct jrt_http_out *out, const struct jrt_http_text *parts, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].bytes > out->room - out->bytes - bytes) return JANUS_FULL;
        bytes += parts[i].bytes;
    }
    for (size_t i = 0; i < count; i++) {
        memmove(out->at + out->bytes, parts[i].at, parts[i].bytes);
        out->bytes += parts[i].bytes;
    }
    return JANUS_OK;
}

/* Sorted by status. */
static const struct {
    uint16_t    status;
    const char *reason;
} reasons[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {207, "Multi-Status"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
    {511, "Network Authentication Required"},
};

struct jrt_http_text jrt_http_reason(unsigned status)
{
    size_t low = 0, high = sizeof reasons / sizeof reasons[0];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (reasons[middle].status == status)
            return (struct jrt_http_text){reasons[middle].reason, strlen(reasons[middle].reason)};
        if (reasons[middle].status < status)
            low = middle + 1;
        else
            high = middle;
    }
    return JRT_HTTP_TEXT("");
}

janus_status jrt_http_put_status(struct jrt_http_out *out, unsigned status)
{
    if (status < 100 || status > 599) return JANUS_INVALID;
    char                 digits[4] = {(char)('0' + status / 100), (char)('0' + status / 10 % 10),
                                      (char)('0' + status % 10), ' '};
    struct jrt_http_text parts[] = {
        JRT_HTTP_TEXT("HTTP/1.1 "), {digits, 4}, jrt_http_reason(status), JRT_HTTP_TEXT("\r\n")};
    return put(out, parts, 4);
}

janus_status jrt_http_put_request(struct jrt_http_out *out, struct jrt_http_text method,
                                  struct jrt_http_text target)
{
    if (!jrt_http_is_token(method) || target.bytes == 0) return JANUS_INVALID;
    for (size_t i = 0; i < target.bytes; i++)
        if (!jrt_http_is(target.at[i], JRT_HTTP_QUERY) && target.at[i] != '%') return JANUS_INVALID;
    struct jrt_http_text parts[] = {method, JRT_HTTP_TEXT(" "), target,
                                    JRT_HTTP_TEXT(" HTTP/1.1\r\n")};
    return put(out, parts, 4);
}

janus_status jrt_http_put_field(struct jrt_http_out *out, struct jrt_http_text name,
                                struct jrt_http_text value)
{
    if (!jrt_http_is_token(name)) return JANUS_INVALID;
    for (size_t i = 0; i < value.bytes; i++)
        if (!jrt_http_is(value.at[i], JRT_HTTP_VALUE)) return JANUS_INVALID;
    struct jrt_http_text parts[] = {name, JRT_HTTP_TEXT(": "), jrt_http_trim(value),
                                    JRT_HTTP_TEXT("\r\n")};
    return put(out, parts, 4);
}

janus_status jrt_http_put_number(struct jrt_http_out *out, struct jrt_http_text name,
                                 uint64_t number)
{
    char   digits[20];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return jrt_http_put_field(out, name,
                              (struct jrt_http_text){digits + first, sizeof digits - first});
}

janus_status jrt_http_put_end(struct jrt_http_out *out)
{
    return put(out, &JRT_HTTP_TEXT("\r\n"), 1);
}

bool jrt_http_is_framing(struct jrt_http_text name)
{
    static const char *const framing[] = {"connection", "content-length",   "keep-alive",
                                          "te",         "proxy-connection", "trailer",
                                          "upgrade",    "transfer-encoding"};
    for (size_t i = 0; i < sizeof framing / sizeof framing[0]; i++)
        if (jrt_http_same(name, (struct jrt_http_text){framing[i], strlen(framing[i])}))
            return true;
    return false;
}

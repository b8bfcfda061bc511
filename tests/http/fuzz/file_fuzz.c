/* SPDX-License-Identifier: MIT */
/*
 * Names, ranges, tags, dates, lists, hosts and addresses: all of them read the same bytes.
 *
 * What must hold: a name stays below its directory, and decodes to itself if it has no percent
 * sign. An address of a redirect has no segments of dots, and means itself. A range lies inside of
 * the file. A date is read back. A value that is written stays one line.
 */
#include "fuzz.h"
#include "http/date.h"
#include "http/file.h"
#include "http/url.h"
#include "http/write.h"

/* No name begins with a slash, or has an empty segment or one of dots. */
static void must_stay_below(const char *name, size_t bytes)
{
    size_t segment = 0;
    MUST(strlen(name) == bytes && name[0] != '/');
    for (size_t i = 0; i <= bytes; i++) {
        if (i < bytes && name[i] != '/') continue;
        size_t length = i - segment;
        MUST(length > 0 || i == bytes);
        MUST(!(length == 1 && name[segment] == '.'));
        MUST(!(length == 2 && name[segment] == '.' && name[segment + 1] == '.'));
        segment = i + 1;
    }
}

static void try_path(struct jrt_http_text text)
{
    char   name[512], again[520], path[520];
    size_t bytes = 0, again_bytes = 0;
    if (jrt_http_path_decode(text, name, sizeof name, &bytes) != JANUS_OK) return;
    must_stay_below(name, bytes);
    if (memchr(name, '%', bytes) != NULL) return;
    path[0] = '/';
    memcpy(path + 1, name, bytes);
    MUST(jrt_http_path_decode((struct jrt_http_text){path, bytes + 1}, again, sizeof again,
                              &again_bytes) == JANUS_OK);
    MUST(bytes == again_bytes && memcmp(name, again, bytes) == 0);
}

static void try_range(struct jrt_http_text text, uint64_t size)
{
    uint64_t first, bytes;
    if (jrt_http_range_read(text, size, &first, &bytes) == JRT_HTTP_RANGE_PART)
        MUST(bytes > 0 && bytes <= size && first <= size - bytes);
}

static void try_date(struct jrt_http_text text)
{
    int64_t seconds, again = 0, now = INT64_C(1794000000);
    char    anew[JRT_HTTP_DATE_BYTES];
    if (!jrt_http_date_read(text, now, &seconds)) return;
    jrt_http_date_write(anew, seconds);
    MUST(jrt_http_date_read((struct jrt_http_text){anew, sizeof anew}, now, &again) ||
         seconds > INT64_C(253402300799));
    MUST(again == seconds || seconds > INT64_C(253402300799));
}

static void try_field(struct jrt_http_text name, struct jrt_http_text value)
{
    char                line[2048];
    struct jrt_http_out out = {line, sizeof line, 0};
    if (jrt_http_put_field(&out, name, value) != JANUS_OK) {
        MUST(out.bytes == 0);
        return;
    }
    MUST(out.bytes >= 5 && memcmp(line + out.bytes - 2, "\r\n", 2) == 0);
    MUST(memchr(line, '\r', out.bytes) == line + out.bytes - 2);
    MUST(memchr(line, '\n', out.bytes) == line + out.bytes - 1);
    MUST(memchr(line, '\0', out.bytes) == NULL);
}

static void try_list(struct jrt_http_text text)
{
    struct jrt_http_text rest = text, member;
    while (jrt_http_list_next(&rest, &member)) {
        MUST(member.bytes > 0 && member.at >= text.at);
        MUST(member.at + member.bytes <= text.at + text.bytes);
        MUST(jrt_http_list_has(text, member));
    }
    MUST(rest.bytes == 0);
}

/* No segment of a path is "." or "..". */
static void must_have_no_dots(struct jrt_http_text target)
{
    const char *query = memchr(target.at, '?', target.bytes);
    size_t      bytes = query != NULL ? (size_t)(query - target.at) : target.bytes;
    for (size_t i = 0, segment = 0; i <= bytes; i++) {
        if (i < bytes && target.at[i] != '/') continue;
        size_t length = i - segment;
        MUST(!(length == 1 && target.at[segment] == '.'));
        MUST(!(length == 2 && target.at[segment] == '.' && target.at[segment + 1] == '.'));
        segment = i + 1;
    }
}

static void try_address(struct jrt_http_text text)
{
    struct jrt_http_url base, found;
    const char         *why = "";
    size_t              room = text.bytes + 32;
    char               *out = malloc(room), *again = malloc(room + 32);
    MUST(out != NULL && again != NULL);
    MUST(jrt_http_url_read("http://a:1/b/c?d", "http", &base, &why) == JANUS_OK);
    if (jrt_http_url_resolve(&base, "http", text, out, room) == JANUS_OK &&
        jrt_http_url_read(out, "http", &found, &why) == JANUS_OK) {
        must_have_no_dots(found.target);
        MUST(found.host[0] != '\0' && strchr(found.host, '@') == NULL);
        MUST(jrt_http_url_resolve(&base, "http", (struct jrt_http_text){out, strlen(out)}, again,
                                  room + 32) == JANUS_OK);
        MUST(strcmp(out, again) == 0);
    }
    free(out);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t             number;
    char                *bytes = exact_copy(data, size);
    struct jrt_http_text text = {bytes, size}, half = {bytes, size / 2};
    struct jrt_http_text rest = {bytes + size / 2, size - size / 2};
    try_path(text);
    try_range(text, size);
    try_range(text, UINT64_MAX);
    try_range(text, 0);
    try_date(text);
    try_field(half, rest);
    try_field(JRT_HTTP_TEXT("X"), text);
    try_list(text);
    try_address(text);
    (void)jrt_http_etag_in(text, half, size % 2 == 0);
    if (jrt_http_is_authority(text)) MUST(size > 0 && memchr(bytes, '@', size) == NULL);
    if (jrt_http_number(text, &number)) MUST(number <= (uint64_t)INT64_MAX);
    MUST(jrt_http_type_of(text).bytes > 0);
    free(bytes);
    return 0;
}

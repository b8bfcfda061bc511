/* SPDX-License-Identifier: MIT */
/* Answers with files below a directory. */
#include "http/block.h"
#include "http/server.h"

#include "http/date.h"
#include "http/file.h"

#include <janusrt/file.h>
#include <janusrt/memory.h>
#include <stdio.h>
#include <time.h>

enum { NAME_BYTES = 1024, PIECE_BYTES = 32768, TAG_BYTES = 48 };

/* What is known about a file and asked of it. */
struct served {
    janus_io             file;
    janus_file_info      info;
    struct jrt_http_text type;
    char                 tag[TAG_BYTES]; /* with its quotes */
    char                 modified[JRT_HTTP_DATE_BYTES + 1];
    uint64_t             first, bytes; /* to send */
};

static int64_t say(janus_http *http, unsigned status, const char *text)
{
    return jrt_http_do_answer_text(http, status, text);
}

static int64_t say_missing(janus_http *http) { return say(http, 404, "there is no such file\n"); }

/* The name of the file below the directory, from a path as sent. False: it is no name. */
static bool find_name(janus_http_text path, char name[NAME_BYTES])
{
    static const char index[] = "index.html";
    char              slashed[NAME_BYTES];
    size_t            bytes = 0;
    if (path.bytes >= NAME_BYTES - 1) return false;
    slashed[0] = '/';
    memcpy(slashed + 1, path.at, path.bytes);
    bool                 has = path.bytes > 0 && path.at[0] == '/';
    struct jrt_http_text whole = {slashed + has, path.bytes + 1 - has};
    if (jrt_http_path_decode(whole, name, NAME_BYTES - sizeof index, &bytes) != JANUS_OK) {
        return false;
    }
    if (bytes == 0 || name[bytes - 1] == '/') memcpy(name + bytes, index, sizeof index);
    return true;
}

/* The path is a directory, and its slash is missing. */
static int64_t redirect(janus_http *http)
{
    const janus_http_request *request = &http->request;
    char                      place[NAME_BYTES];
    /* "//host" would name another server. */
    if (request->path.bytes < 2 || request->path.at[1] == '/') return say_missing(http);
    int bytes =
        snprintf(place, sizeof place, "%.*s/%s%.*s", (int)request->path.bytes, request->path.at,
                 request->query.at != NULL ? "?" : "", (int)request->query.bytes,
                 request->query.bytes > 0 ? request->query.at : "");
    if (bytes < 0 || (size_t)bytes >= sizeof place) return say_missing(http);
    janus_status status = jrt_http_do_set_field(http, "Location", place);
    return status != JANUS_OK ? status : say(http, 301, "it is a folder\n");
}

/* Opens the file. OK: it is open. CLOSED: *result is what the handler returns. */
static janus_status open_file(janus_http *http, janus_io dir, const char *name, struct served *self,
                              int64_t *result)
{
    janus_status status = janus_file_open(dir, name, JANUS_OPEN_READ, NULL, &self->file);
    self->info = JANUS_FILE_INFO();
    if (status == JANUS_OK) {
        status = janus_file_inspect(self->file, &self->info);
        if (status == JANUS_OK && self->info.kind == JANUS_FILE_KIND_FILE) return JANUS_OK;
        JANUS_IGNORE(janus_io_close(self->file));
        if (status != JANUS_OK) return status;
        *result = say_missing(http);
        return JANUS_CLOSED;
    }
    bool folder = status == JANUS_STATE && janus_dir_inspect(dir, name, &self->info) == JANUS_OK &&
                  self->info.kind == JANUS_FILE_KIND_DIRECTORY;
    if (status != JANUS_NOT_FOUND && status != JANUS_DENIED && status != JANUS_STATE) return status;
    *result = folder ? redirect(http) : say_missing(http);
    return JANUS_CLOSED;
}

static void describe(struct served *self, const char *name)
{
    int64_t seconds = self->info.modified_ns / (int64_t)JANUS_SECONDS;
    (void)snprintf(self->tag, sizeof self->tag, "\"%llx-%llx\"",
                   (unsigned long long)self->info.modified_ns,
                   (unsigned long long)self->info.bytes);
    jrt_http_date_write(self->modified, seconds);
    self->modified[JRT_HTTP_DATE_BYTES] = '\0';
    self->type = jrt_http_type_of(jrt_http_of(name));
    self->first = 0;
    self->bytes = self->info.bytes;
}

static bool field(const janus_http *http, const char *name, struct jrt_http_text *out)
{
    janus_http_text value;
    if (jrt_http_do_field(http, name, &value) != JANUS_OK) return false;
    *out = jrt_http_private(value);
    return true;
}

static bool is_since(const struct served *self, struct jrt_http_text date)
{
    int64_t seconds;
    if (!jrt_http_date_read(date, (int64_t)time(NULL), &seconds)) return true;
    return self->info.modified_ns / (int64_t)JANUS_SECONDS > seconds;
}

/* The status that the conditions of the request ask for: 200, 304 or 412. */
static unsigned judge(const janus_http *http, const struct served *self)
{
    struct jrt_http_text value, tag = jrt_http_of(self->tag);
    if (field(http, "if-match", &value)) {
        if (!jrt_http_etag_in(value, tag, false)) return 412;
    } else if (field(http, "if-unmodified-since", &value)) {
        int64_t seconds;
        bool    read = jrt_http_date_read(value, (int64_t)time(NULL), &seconds);
        if (read && is_since(self, value)) return 412;
    }
    if (field(http, "if-none-match", &value)) return jrt_http_etag_in(value, tag, true) ? 304 : 200;
    if (field(http, "if-modified-since", &value) && !is_since(self, value)) return 304;
    return 200;
}

/* The part of the file that is wanted. Returns 200, 206 or 416. */
static unsigned choose_range(const janus_http *http, struct served *self)
{
    struct jrt_http_text range, other;
    if (http->request.method != JANUS_HTTP_METHOD_GET || !field(http, "range", &range)) return 200;
    if (field(http, "if-range", &other)) {
        bool tag = other.bytes > 0 && other.at[0] == '"';
        bool same = tag ? jrt_http_equal(other, jrt_http_of(self->tag))
                        : jrt_http_equal(other, jrt_http_of(self->modified));
        if (!same) return 200;
    }
    switch (jrt_http_range_read(range, self->info.bytes, &self->first, &self->bytes)) {
    case JRT_HTTP_RANGE_PART: return 206;
    case JRT_HTTP_RANGE_NONE: return 416;
    default: return 200;
    }
}

static janus_status set_fields(janus_http *http, const struct served *self, unsigned status)
{
    char         range[96];
    const size_t before = http->lines_bytes;
    janus_status said = jrt_http_offer_field(http, "Last-Modified", self->modified);
    if (said == JANUS_OK) said = jrt_http_offer_field(http, "ETag", self->tag);
    if (said == JANUS_OK) said = jrt_http_offer_field(http, "Accept-Ranges", "bytes");
    unsigned long long size = self->info.bytes, first = self->first;
    if (status == 206) {
        (void)snprintf(range, sizeof range, "bytes %llu-%llu/%llu", first, first + self->bytes - 1,
                       size);
    } else {
        (void)snprintf(range, sizeof range, "bytes */%llu", size);
    }
    bool ranged = status == 206 || status == 416;
    if (said == JANUS_OK && ranged) said = jrt_http_do_set_field(http, "Content-Range", range);
    if (said != JANUS_OK) http->lines_bytes = before; /* the handler answers without these */
    return said;
}

/* Sends the bytes. A file that became shorter meanwhile cuts the answer off. */
static janus_status send_bytes(janus_http *http, const struct served *self)
{
    char        *piece = NULL;
    uint64_t     at = self->first, end = self->first + self->bytes;
    janus_status status = jrt_http_alloc(PIECE_BYTES, (void **)&piece);
    while (status == JANUS_OK && at < end) {
        size_t got = 0, want = end - at < PIECE_BYTES ? (size_t)(end - at) : PIECE_BYTES;
        status = janus_file_read_at(self->file, at, piece, want, &got);
        if (status == JANUS_OK) status = jrt_http_do_write(http, piece, got);
        at += got;
    }
    janus_free(piece);
    return status;
}

static janus_status serve_file(janus_http *http, struct served *self)
{
    char     type[128];
    unsigned status = judge(http, self);
    if (status == 200) status = choose_range(http, self);
    janus_status said = set_fields(http, self, status);
    if (said != JANUS_OK) return said;
    if (status == 304) return jrt_http_do_answer(http, 304, NULL, NULL, 0);
    if (status == 412) return jrt_http_do_answer_text(http, 412, "it has changed\n");
    if (status == 416) return jrt_http_do_answer_text(http, 416, "it has no such part\n");
    (void)snprintf(type, sizeof type, "%.*s", (int)self->type.bytes, self->type.at);
    said = jrt_http_do_begin(http, status, type, self->bytes);
    if (said != JANUS_OK) return said;
    return http->bodiless ? JANUS_OK : send_bytes(http, self);
}

janus_status jrt_http_do_answer_file(janus_http *http, janus_io dir, janus_http_text path)
{
    char          name[NAME_BYTES];
    struct served self;
    int64_t       result = 0;
    if (http == NULL || (path.at == NULL && path.bytes > 0)) return JANUS_INVALID;
    if (http->stage != JRT_HTTP_STAGE_NONE) return JANUS_STATE;
    janus_http_method method = http->request.method;
    if (method != JANUS_HTTP_METHOD_GET && method != JANUS_HTTP_METHOD_HEAD) {
        janus_status status = jrt_http_do_set_field(http, "Allow", "GET, HEAD");
        return status != JANUS_OK ? status : (janus_status)say(http, 405, "files are only read\n");
    }
    if (!find_name(path, name)) return (janus_status)say_missing(http);
    janus_status status = open_file(http, dir, name, &self, &result);
    if (status == JANUS_CLOSED) return (janus_status)result;
    if (status != JANUS_OK) return status;
    describe(&self, name);
    status = serve_file(http, &self);
    JANUS_IGNORE(janus_io_close(self.file));
    return status;
}

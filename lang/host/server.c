/* SPDX-License-Identifier: MIT */
/*
 * A small server of HTTP/1.1, for programs that accept, read a body and write a response. One
 * request a connection: every answer says "Connection: close". Whoever needs more writes the host
 * in C and takes libjanusrt-http.
 *
 * What a client does wrong is no error of the program. The client gets a status of 400 and above,
 * if it still listens, and the task that serves it ends quietly. Main gets an error instead.
 */
#include "host/server.h"

#include "host/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEAD_MAX = 16384, BODY_MAX = 1 << 20, CONNECTIONS_MAX = 65536, WORD_MAX = 1024 };
#define PATIENCE (30 * JANUS_SECONDS)

struct connection {
    janus_io      io;
    janus_task_id owner; /* its end closes the connection; 0: nobody has used it */
    bool          is_read, is_answered, is_head;
    char          method[16], path[WORD_MAX];
};

/* Handles name a place and its use, because a program may keep a handle of what has ended. */
struct place {
    struct connection *connection;
    uint32_t           use;
};

static struct place *places;
static uint32_t      place_count, place_room, first_free_hint;
static atomic_flag   places_lock = ATOMIC_FLAG_INIT;

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&places_lock, memory_order_acquire)) {
    }
}

static void unlock(void) { atomic_flag_clear_explicit(&places_lock, memory_order_release); }

/* A free place; UINT32_MAX: there is none. The lock is held. */
static uint32_t free_place(void)
{
    for (uint32_t i = first_free_hint; i < place_count; i++) {
        if (!places[i].connection) return i;
    }
    if (place_count == CONNECTIONS_MAX) return UINT32_MAX;
    if (place_count == place_room) {
        uint32_t      room = place_room ? place_room * 2 : 64;
        struct place *more = realloc(places, room * sizeof *more);
        if (!more) return UINT32_MAX;
        memset(more + place_room, 0, (room - place_room) * sizeof *more);
        places = more;
        place_room = room;
    }
    return place_count++;
}

static bool keep(struct connection *connection, struct jl_handle *out)
{
    lock();
    uint32_t index = free_place();
    if (index != UINT32_MAX) {
        first_free_hint = index + 1;
        places[index].connection = connection;
        out->word[0] = (uint64_t)index + 1;
        out->word[1] = ++places[index].use;
    }
    unlock();
    return index != UINT32_MAX;
}

/* What a handle names, if this task owns it. The first that asks becomes its owner, and finds
 * *owner 0. No other task may even look: the owner's end frees it. */
static struct connection *find(const struct jl_handle *handle, janus_task_id *owner)
{
    struct connection *found = NULL;
    lock();
    uint64_t index = handle->word[0] - 1;
    if (index < place_count && places[index].use == handle->word[1]) {
        found = places[index].connection;
    }
    if (found) {
        *owner = found->owner;
        if (*owner == 0) found->owner = janus_task_current_id();
    }
    unlock();
    return found;
}

static void forget(struct connection *connection)
{
    lock();
    for (uint32_t i = 0; i < place_count; i++) {
        if (places[i].connection != connection) continue;
        places[i].connection = NULL;
        if (i < first_free_hint) first_free_hint = i;
        break;
    }
    unlock();
    (void)janus_io_close(connection->io);
    free(connection);
}

static void forget_at_end(void *connection) { forget(connection); }

static void disown(struct connection *connection)
{
    lock();
    connection->owner = 0;
    unlock();
}

/* The connection, for the task that owns it. */
static struct connection *take(const struct jl_handle *handle, int64_t *error)
{
    janus_task_id      owner = 0;
    struct connection *connection = find(handle, &owner);
    *error = connection ? 0 : JANUS_STALE;
    if (!connection || owner == janus_task_current_id()) return connection;
    if (owner != 0) {
        *error = JANUS_IN_USE;
        return NULL;
    }
    *error = janus_io_take(connection->io);
    if (*error == 0) *error = janus_defer(forget_at_end, connection);
    if (*error != 0) {
        disown(connection);
        return NULL;
    }
    (void)janus_io_set_deadline(connection->io, JANUS_IO_BOTH, janus_now_ns() + PATIENCE);
    return connection;
}

static const char *reason_of(unsigned status)
{
    switch (status) {
    case 200: return "OK";
    case 408: return "Request Timeout";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 431: return "Request Header Fields Too Large";
    case 505: return "HTTP Version Not Supported";
    default: return "Bad Request";
    }
}

static int64_t answer(struct connection *connection, unsigned status, const char *type,
                      const char *bytes, size_t count)
{
    char           head[256];
    int            used = snprintf(head, sizeof head,
                                   "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                                              "Connection: close\r\n\r\n",
                                   status, reason_of(status), type, count);
    janus_io_piece pieces[2] = {{head, (size_t)used}, {(void *)(uintptr_t)bytes, count}};
    uint32_t       parts = connection->is_head || count == 0 ? 1 : 2;
    size_t         done;
    connection->is_answered = true;
    int64_t error = janus_io_writev(connection->io, pieces, parts, &done);
    (void)janus_io_shutdown(connection->io, JANUS_IO_WRITE);
    return error;
}

/* The client is at fault: the task that serves it ends, and is no failure. */
static int64_t client_failed(struct connection *connection, unsigned status, int64_t error)
{
    if (status != 0 && !connection->is_answered) {
        (void)answer(connection, status, "text/plain", reason_of(status),
                     strlen(reason_of(status)));
    }
    if (jl_self()->parent) jl_finish_task();
    return error;
}

/* A head as it is read. */
struct request {
    char    *bytes; /* HEAD_MAX */
    size_t   count, head_count;
    uint64_t length;
    bool     has_length, continues;
};

static bool read_line_words(struct connection *connection, char *line, unsigned *status)
{
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
    *status = 400;
    if (!version || target == line) return false;
    *target++ = '\0';
    *version++ = '\0';
    if (strlen(line) >= sizeof connection->method || target[0] == '\0') return false;
    if (strlen(target) >= sizeof connection->path) {
        *status = 414;
        return false;
    }
    if (strncmp(version, "HTTP/", 5) != 0) return false;
    *status = 505;
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0) return false;
    memcpy(connection->method, line, strlen(line) + 1);
    memcpy(connection->path, target, strlen(target) + 1);
    connection->is_head = strcmp(line, "HEAD") == 0;
    return true;
}

static bool read_length(struct request *request, const char *value)
{
    uint64_t length = 0;
    size_t   digits = strspn(value, "0123456789");
    if (digits == 0 || digits > 18 || value[digits + strspn(value + digits, " \t")] != '\0') {
        return false;
    }
    length = strtoull(value, NULL, 10);
    if (request->has_length && request->length != length) return false;
    request->has_length = true;
    request->length = length;
    return true;
}

static bool read_field(struct request *request, char *line, unsigned *status)
{
    size_t name = strcspn(line, ":");
    *status = 400;
    if (name == 0 || line[name] != ':' || strcspn(line, " \t") < name) return false;
    line[name] = '\0';
    const char *value = line + name + 1;
    value += strspn(value, " \t");
    if (strcasecmp(line, "transfer-encoding") == 0) {
        *status = 411;
        return false;
    }
    if (strcasecmp(line, "content-length") == 0) return read_length(request, value);
    if (strcasecmp(line, "expect") == 0)
        request->continues = strcasecmp(value, "100-continue") == 0;
    return true;
}

/* Reads the lines of a whole head, which ends with an empty line. */
static bool read_head(struct connection *connection, struct request *request, unsigned *status)
{
    char *at = request->bytes, *end = request->bytes + request->head_count - 2;
    bool  is_first = true;
    *status = 400;
    if (memchr(at, 0, request->head_count)) return false;
    while (at < end) {
        char *stop = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (!stop) return false;
        *stop = '\0';
        if (strpbrk(at, "\r\n")) return false;
        bool good =
            is_first ? read_line_words(connection, at, status) : read_field(request, at, status);
        if (!good) return false;
        is_first = false;
        at = stop + 2;
    }
    *status = 413;
    return !is_first && request->length <= BODY_MAX;
}

/* Reads bytes until the head is whole. The result is an error, or 0. */
static int64_t await_head(struct connection *connection, struct request *request, unsigned *status)
{
    for (;;) {
        size_t  got = 0;
        int64_t error = janus_io_read(connection->io, request->bytes + request->count,
                                      HEAD_MAX - request->count, &got);
        *status = error == JANUS_DEADLINE && request->count > 0 ? 408 : 0;
        if (error != 0) return error;
        size_t from = request->count > 3 ? request->count - 3 : 0;
        request->count += got;
        const char *end = memmem(request->bytes + from, request->count - from, "\r\n\r\n", 4);
        if (end) {
            request->head_count = (size_t)(end + 4 - request->bytes);
            return 0;
        }
        *status = 431;
        if (request->count == HEAD_MAX) return JANUS_INVALID;
    }
}

static int64_t read_body(struct connection *connection, struct request *request,
                         struct jl_text *out)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    size_t            have = request->count - request->head_count;
    size_t            length = (size_t)request->length, got = 0;
    int64_t           error = 0;
    if (length == 0) return 0;
    char *body = jl_environment(length);
    if (have > length) have = length;
    memcpy(body, request->bytes + request->head_count, have);
    if (request->continues && have < length) {
        error = janus_io_write(connection->io, go_on, sizeof go_on - 1, NULL);
    }
    if (error == 0 && have < length) {
        error = janus_io_read_full(connection->io, body + have, length - have, &got);
    }
    *out = (struct jl_text){body, (int64_t)length};
    return error;
}

int64_t jl_prelude_connection_read_body(void *result, const void *const *arguments)
{
    int64_t            error;
    struct connection *connection = take(arguments[0], &error);
    struct jl_text     body = {"", 0};
    unsigned           status = 0;
    if (!connection) return error;
    if (connection->is_read) return JANUS_STATE;
    connection->is_read = true;
    struct request request = {.bytes = jl_environment(HEAD_MAX)};
    error = await_head(connection, &request, &status);
    if (error == 0 && !read_head(connection, &request, &status)) error = JANUS_INVALID;
    if (error == 0) {
        status = 408;
        error = read_body(connection, &request, &body);
        if (error != 0 && error != JANUS_DEADLINE) status = 0;
    }
    if (!jl_core_task) janus_free(request.bytes);
    if (error != 0) return client_failed(connection, status, error);
    memcpy(result, &body, sizeof body);
    return 0;
}

static int64_t word(void *result, const void *const *arguments, bool method)
{
    int64_t            error;
    struct connection *connection = take(arguments[0], &error);
    if (!connection) return error;
    const char    *text = method ? connection->method : connection->path;
    size_t         length = strlen(text);
    struct jl_text made = {"", (int64_t)length};
    if (length > 0) {
        char *copy = jl_environment(length);
        memcpy(copy, text, length);
        made.bytes = copy;
    }
    memcpy(result, &made, sizeof made);
    return 0;
}

int64_t jl_prelude_connection_method(void *result, const void *const *arguments)
{
    return word(result, arguments, true);
}

int64_t jl_prelude_connection_path(void *result, const void *const *arguments)
{
    return word(result, arguments, false);
}

int64_t jl_prelude_connection_write_response(void *result, const void *const *arguments)
{
    (void)result;
    int64_t               error;
    struct connection    *connection = take(arguments[0], &error);
    const struct jl_text *text = arguments[1];
    if (!connection) return error;
    if (connection->is_answered) return JANUS_STATE;
    bool is_page = text->length > 0 && text->bytes[0] == '<';
    error =
        answer(connection, 200, is_page ? "text/html; charset=utf-8" : "text/plain; charset=utf-8",
               text->bytes, (size_t)text->length);
    return error == 0 ? 0 : client_failed(connection, 0, error);
}

int64_t jl_prelude_connection_end(void *result, const void *const *arguments)
{
    (void)result;
    int64_t            error;
    struct connection *connection = take(arguments[0], &error);
    if (!connection) return error == JANUS_STALE ? 0 : error;
    (void)!janus_undefer(forget_at_end, connection);
    forget(connection);
    return 0;
}

int64_t jl_prelude_bind(void *result, const void *const *arguments)
{
    const struct jl_text *text = arguments[0];
    char                  name[160];
    janus_address         at;
    janus_io              io;
    if (text->length < 1 || text->length >= (int64_t)sizeof name) return JANUS_INVALID;
    memcpy(name, text->bytes, (size_t)text->length);
    name[text->length] = '\0';
    janus_status status = janus_address_parse(name, &at);
    if (status == JANUS_OK) status = janus_listen(&at, NULL, &io);
    if (status != JANUS_OK) return status;
    (void)fflush(stdout); /* a server may never end */
    _Static_assert(sizeof io == sizeof(struct jl_handle), "a handle holds a listener");
    memcpy(result, &io, sizeof io);
    return 0;
}

int64_t jl_prelude_server_accept(void *result, const void *const *arguments)
{
    janus_io           listener;
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection) return JANUS_NO_MEMORY;
    memcpy(&listener, arguments[0], sizeof listener);
    /* A task that is cancelled in accept ends there, so that the memory is a defer's. */
    int64_t error = janus_defer(free, connection);
    if (error == 0) {
        error = janus_accept(listener, &connection->io, NULL);
        (void)!janus_undefer(free, connection);
    }
    if (error == 0 && !keep(connection, result)) {
        (void)janus_io_close(connection->io);
        error = JANUS_HANDLE_LIMIT;
    }
    if (error != 0) free(connection);
    return error;
}

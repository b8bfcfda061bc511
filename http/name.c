/* SPDX-License-Identifier: MIT */
/* The public calls of a handler: they check the name of the request. The essay is in server.h. */
#include "http/server.h"
#include "http/websocket.h"

bool jrt_http_name_end(struct janus_http *http)
{
    atomic_store(&http->tag, 0); /* seq_cst: a guest counts itself, then reads the tag */
    return atomic_load(&http->guests) == 0;
}

uint32_t jrt_http_tags = (1u << 28) - 1;

/* A guest has ended inside of a call. Nobody knows what is left of a write that it had begun. */
static void carry_out(void *argument)
{
    struct janus_http *http = argument;
    if (atomic_load(&http->writing) % 2 != 0) http->broken = JANUS_BROKEN;
    atomic_fetch_sub(&http->guests, 1); /* seq_cst: rare */
}

static void go_out(const janus_http *name)
{
    struct janus_http *http = jrt_http_block(name);
    JANUS_IGNORE(janus_undefer(carry_out, http)); /* a guest that ends here is carried out, too */
    atomic_fetch_sub(&http->guests, 1);           /* seq_cst: rare */
}

/* Another task comes in. Between the defer and the count no call may end it. */
__attribute__((noinline)) static janus_status come_in(const janus_http *name)
{
    struct janus_http *http = jrt_http_block(name);
    uint32_t           tag = jrt_http_tag(name);
    if (name == NULL) return JANUS_INVALID;
    if (tag == 0 || atomic_load(&http->tag) != tag) return JANUS_STATE;
    janus_status status = janus_defer(carry_out, http); /* STATE: it is no task */
    if (status != JANUS_OK) return status;
    atomic_fetch_add(&http->guests, 1); /* seq_cst: before the second look, see name_end */
    if (atomic_load(&http->tag) == tag) return JANUS_OK;
    go_out(name);
    return JANUS_STATE;
}

/* Makes the call; the request's own task need not be counted. */
#define INSIDE(name, call)                                                                         \
    do {                                                                                           \
        if (jrt_http_is_own(name)) return call;                                                    \
        janus_status status_ = come_in(name);                                                      \
        if (status_ != JANUS_OK) return status_;                                                   \
        status_ = call;                                                                            \
        go_out(name);                                                                              \
        return status_;                                                                            \
    } while (0)

janus_status janus_http_field(const janus_http *http, const char *name, janus_http_text *out_value)
{
    INSIDE(http, jrt_http_do_field(jrt_http_block(http), name, out_value));
}

janus_status janus_http_field_at(const janus_http *http, size_t index, janus_http_text *out_name,
                                 janus_http_text *out_value)
{
    INSIDE(http, jrt_http_do_field_at(jrt_http_block(http), index, out_name, out_value));
}

janus_status janus_http_peer(const janus_http *http, janus_address *out)
{
    INSIDE(http, jrt_http_do_peer(jrt_http_block(http), out));
}

janus_status janus_http_read(janus_http *http, void *to, size_t max, size_t *out_got)
{
    if (out_got != NULL) *out_got = 0;
    INSIDE(http, jrt_http_do_read(jrt_http_block(http), to, max, out_got));
}

janus_status janus_http_read_all(janus_http *http, char **out, size_t *out_bytes)
{
    INSIDE(http, jrt_http_do_read_all(jrt_http_block(http), out, out_bytes));
}

janus_status janus_http_limit_body(janus_http *http, uint64_t max_bytes)
{
    INSIDE(http, jrt_http_do_limit_body(jrt_http_block(http), max_bytes));
}

janus_status janus_http_trailer(const janus_http *http, const char *name,
                                janus_http_text *out_value)
{
    INSIDE(http, jrt_http_do_trailer(jrt_http_block(http), name, out_value));
}

janus_status janus_http_set_field(janus_http *http, const char *name, const char *value)
{
    INSIDE(http, jrt_http_do_set_field(jrt_http_block(http), name, value));
}

janus_status janus_http_set_trailer(janus_http *http, const char *name, const char *value)
{
    INSIDE(http, jrt_http_do_set_trailer(jrt_http_block(http), name, value));
}

janus_status janus_http_answer(janus_http *http, unsigned status, const char *type,
                               const void *bytes, size_t count)
{
    INSIDE(http, jrt_http_do_answer(jrt_http_block(http), status, type, bytes, count));
}

janus_status janus_http_answer_text(janus_http *http, unsigned status, const char *text)
{
    INSIDE(http, jrt_http_do_answer_text(jrt_http_block(http), status, text));
}

janus_status janus_http_begin(janus_http *http, unsigned status, const char *type, uint64_t length)
{
    INSIDE(http, jrt_http_do_begin(jrt_http_block(http), status, type, length));
}

janus_status janus_http_write(janus_http *http, const void *bytes, size_t count)
{
    INSIDE(http, jrt_http_do_write(jrt_http_block(http), bytes, count));
}

janus_status janus_http_flush(janus_http *http)
{
    INSIDE(http, jrt_http_do_flush(jrt_http_block(http)));
}

janus_status janus_http_event(janus_http *http, const char *event, const char *id, const char *data)
{
    INSIDE(http, jrt_http_do_event(jrt_http_block(http), event, id, data));
}

janus_status janus_http_answer_file(janus_http *http, janus_io dir, janus_http_text path)
{
    INSIDE(http, jrt_http_do_answer_file(jrt_http_block(http), dir, path));
}

janus_status janus_websocket_accept(janus_http *http, const janus_websocket_options *given,
                                    janus_websocket **out)
{
    /* The socket uses the connection until its task ends. Only the request's own task is sure to
     * end before the connection. */
    if (http == NULL) return JANUS_INVALID;
    if (!jrt_http_is_own(http)) return JANUS_STATE;
    return jrt_websocket_accept(jrt_http_block(http), given, out);
}

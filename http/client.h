/* SPDX-License-Identifier: MIT */
/*
 * Inside the client:
 *
 *     pool.c   connections: kept, shared, limited; the tasks that use them
 *     call.c   a request: its head, its body, and the head of the answer
 *     reply.c  the rest of the answer
 *     redirect.c  answers that name another address
 *     forward.c   requests of a server that are passed on, and their answers
 *
 * The handle of a connection is `kept`: it belongs to no task, because the next task uses it again.
 * The client knows all of its connections and the task that uses each. The first call of
 * a task registers a defer (struct jrt_client_user). When the task ends, however it ends, the defer
 * closes what the task still uses. The defer of the task that created the client closes all. The
 * client's memory lives until the last of these defers has run.
 *
 * An answer lies in memory of the task that called. No list of the client leads to it.
 */
#ifndef JANUSRT_HTTP_CLIENT_INTERNAL_H
#define JANUSRT_HTTP_CLIENT_INTERNAL_H

#include "http/chunk.h"
#include "http/head.h"
#include "http/url.h"
#include "http/wire.h"
#include "http/write.h"

#include <janusrt/http_client.h>
#include <janusrt/sync.h>
#include <janusrt/task.h>
#include <stdatomic.h>

enum {
    JRT_CLIENT_BUCKETS = 64,
    JRT_CLIENT_SPARE_BYTES = 4096, /* of the buffer, beyond the longest head */
    JRT_CLIENT_TRAILERS_MAX = 32,
    JRT_CLIENT_INTERIM_MAX = 16, /* answers below 200 before an answer */
};

/* A task that has used the client, until it ends. */
struct jrt_client_user {
    janus_http_client      *client; /* NULL: it is in no list */
    struct jrt_client_user *next;   /* in its bucket */
    janus_task_id           task;
    bool                    owner; /* it created the client */
};

/*
 * A connection, or a place for one:
 *
 *                user  open  opening
 *     placed     yes   no    no       a call has taken a place
 *     opening    yes   no    yes      it connects; it alone writes `io`
 *     in use     yes   yes   no
 *     idle       no    yes   no       any call may take it
 *     cut off    yes   no    any      the client has ended; the user frees the line
 */
struct jrt_client_line {
    struct jrt_client_line *next;
    struct jrt_client_user *user; /* NULL: idle. Only the user and the client's end touch `io` */
    janus_io                io;
    janus_wire             *wire;     /* NULL: none. Only the user touches it */
    bool                    secure;   /* it has a wire, or gets one */
    bool                    open;     /* `io` is a connection */
    bool                    opening;  /* the user alone writes `io`, which may name none */
    bool                    used;     /* it has served a call */
    uint64_t                since_ns; /* idle */
    char                    host[JRT_HTTP_HOST_BYTES], port[8];
};

struct janus_http_client {
    janus_http_client_options options;
    struct jrt_http_limits    limits;
    size_t                    in_bytes;

    atomic_uint user_count; /* the last one frees the client */

    janus_mutex             mutex; /* guards the rest */
    janus_condition         change;
    struct jrt_client_line *lines;
    struct jrt_client_user *users[JRT_CLIENT_BUCKETS];
    bool                    closed;
    uint64_t                calls, connects, repeats;
};

/* What is sent. */
struct jrt_client_request {
    struct jrt_http_text    method;
    struct jrt_http_url     url;
    janus_http_call_options options;
    struct jrt_http_text    upgrade; /* whole lines that ask for another protocol, or empty */
    bool                    away;    /* a redirect led to another origin: fields may be secret */
    bool                    turned;  /* a redirect made it a GET: fields about the body are wrong */
    char                   *address; /* the text behind `url`, after a redirect; or NULL */
    uint64_t                deadline;
    const char             *why;
};

struct janus_http_reply {
    janus_http_client      *client;
    struct jrt_client_line *line; /* NULL: given back */
    struct jrt_http_head    head, trailers;
    struct jrt_http_chunks  chunks;
    uint64_t                left; /* of a body with a length */
    size_t       body, end;       /* bytes that came and are not taken; the head lies before them */
    size_t       piece;           /* decoded and not taken, at `body` */
    size_t       trailers_at;
    bool         body_over, last_chunk;
    bool         keep;    /* the connection serves the next call */
    bool         dry;     /* nothing more is read */
    bool         heard;   /* a byte came back */
    uint8_t      interim; /* answers below 200 so far */
    janus_status body_status;
    char        *in;
    struct jrt_http_field trailer_fields[JRT_CLIENT_TRAILERS_MAX];
    struct jrt_http_field fields[]; /* then the buffer */
};

/* pool.c */

/* Finds or makes the record of the current task. */
janus_status jrt_client_user_of(janus_http_client *client, struct jrt_client_user **out);
/* Takes a connection to the host, or a place for one. Waits at a limit. */
janus_status jrt_client_take(janus_http_client *client, struct jrt_client_user *user,
                             const struct jrt_http_url *url, uint64_t deadline,
                             struct jrt_client_line **out);
/* Opens the connection of a place, anew if it is open. */
janus_status jrt_client_open(janus_http_client *client, struct jrt_client_line *line,
                             uint64_t deadline, const char **why);
/* Gives a connection back for the next call, or closes it. */
void jrt_client_give(janus_http_client *client, struct jrt_client_line *line, bool keep);
void jrt_client_count(janus_http_client *client, uint64_t *counter);

/* call.c. Sends the request, waits for the head of the answer. On an error nothing is left. */
janus_status jrt_client_call(janus_http_client *client, struct jrt_client_request *request,
                             janus_http_reply **out);
/* Copies the caller's options, and reads method and address. */
janus_status jrt_client_request_init(janus_http_client *client, const char *method, const char *url,
                                     const char *scheme, struct jrt_client_request *request);

/* redirect.c. As jrt_client_call, and follows redirects, as the options say. */
janus_status jrt_client_call_on(janus_http_client *client, struct jrt_client_request *request,
                                janus_http_reply **out);
/* Whether a field of the caller is sent, after redirects. */
bool jrt_client_may_send(const struct jrt_client_request *request, const char *name);

/* forward.c: a request of a server that is passed on. */
janus_status jrt_client_forward_begin(struct jrt_client_request *request);
/* Writes path and query into the second half of the buffer. */
janus_status jrt_client_forward_target(const struct jrt_http_out       *out,
                                       const struct jrt_client_request *request,
                                       struct jrt_http_text            *target);
janus_status jrt_client_forward_fields(struct jrt_http_out             *out,
                                       const struct jrt_client_request *request);

/* reply.c */
void jrt_client_body_begin(janus_http_reply *reply);

/* A handle that is gone was closed by the client's end. */
static inline janus_status jrt_client_status(janus_status status)
{
    return status == JANUS_STALE ? JANUS_CLOSED : status;
}

static inline struct jrt_http_text jrt_client_text(const char *text)
{
    return (struct jrt_http_text){text, strlen(text)};
}

#endif

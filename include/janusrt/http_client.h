/* SPDX-License-Identifier: MIT */
/*
 * A client of HTTP/1.1. Link with libjanusrt-http. A task that asks another service is:
 *
 *     janus_http_client *client;
 *     janus_http_reply  *reply;
 *     char              *text;
 *     size_t             bytes;
 *     janus_status       status = janus_http_client_create(NULL, &client);
 *     if (status != JANUS_OK) return status;
 *     status = janus_http_call(client, "GET", "http://127.0.0.1:8080/a?b=c", NULL, &reply);
 *     if (status != JANUS_OK) return status;
 *     if (janus_http_reply_status(reply) == 200)
 *         status = janus_http_reply_read_all(reply, 1 << 20, &text, &bytes);
 *     janus_http_reply_destroy(reply);
 *
 * A client keeps connections for the next call to the same host and port. Any number of tasks of a
 * scheduler use one client at the same time. The task that created the client owns it: the end of
 * that task closes all connections. If a task ends in the middle of a call, the client closes the
 * connection of that call.
 *
 * The client is strict. It sends nothing that its own parser would refuse. It refuses an answer
 * that is malformed, and then closes the connection. It keeps a connection only after a whole
 * answer, and only if the server has sent no byte behind that answer. A call that fails or is
 * cancelled closes its connection.
 *
 * The server may close a kept connection while the next request is on its way. If it sent no byte
 * of an answer, the client sends the request once more, on a fresh connection. It does so only for
 * requests that may be repeated: GET, HEAD, PUT, DELETE, OPTIONS and TRACE, and calls with
 * options.repeatable. It never repeats a body that comes from a function.
 *
 * The client follows redirects if a call asks for it, and stores no cookie. With options.wire it
 * also knows https.
 */
#ifndef JANUSRT_HTTP_CLIENT_H
#define JANUSRT_HTTP_CLIENT_H

#include <janusrt/export.h>
#include <janusrt/http.h>
#include <janusrt/nursery.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <janusrt/wire.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Connections to servers, shared by the calls of many tasks. */
typedef struct janus_http_client janus_http_client;

/* The answer to a call. It belongs to the task that called. */
typedef struct janus_http_reply janus_http_reply;

/* Options of a client. Zero in any field selects the default named beside it. */
typedef struct janus_http_client_options {
    size_t   struct_bytes;        /* sizeof this struct; JANUS_HTTP_CLIENT_OPTIONS sets it */
    uint32_t max_connections;     /* open at a time. 0: 64 */
    uint32_t max_per_host;        /* of them, to one host and port. 0: 8 */
    bool     refuses;             /* at these limits a call returns FULL, and does not wait */
    uint64_t idle_ns;             /* a kept connection that was unused for longer is not used
                                        again, and the next call closes it. 0: 20 s */
    uint64_t call_ns;             /* for a call without a deadline, with its answer. UINT64_MAX: no
                                        limit. 0: 60 s */
    uint32_t max_head_bytes;      /* of an answer, and of a request; at most 57344. 0: 16384 */
    uint32_t max_fields;          /* of an answer; at most 1024. 0: 64 */
    const janus_wire_maker *wire; /* for https and wss, as janus_tls_client_wire gives it. It must
                                     exist as long as the client. NULL: these are UNAVAILABLE */
} janus_http_client_options;
#define JANUS_HTTP_CLIENT_OPTIONS(...) JANUS_OPTIONS_(janus_http_client_options, __VA_ARGS__)

/* A field of a request. */
typedef struct janus_http_pair {
    const char *name, *value;
} janus_http_pair;

/*
 * Gives the next part of a request's body: at least one byte and at most `max`. Returns CLOSED
 * after the last part, with *out_got 0. Any other error ends the call with this error. The function
 * runs in the task that calls, and may wait.
 */
typedef janus_status janus_http_source(void *argument, void *to, size_t max, size_t *out_got);

/* Options of a call. Zero in any field selects the default named beside it. */
typedef struct janus_http_call_options {
    size_t                 struct_bytes; /* sizeof this struct; JANUS_HTTP_CALL_OPTIONS sets it */
    const janus_http_pair *fields;       /* sent in this order. The client writes Host, Connection,
                                            Content-Length, Transfer-Encoding and the like itself */
    size_t                 field_count;
    const char            *type;          /* the field Content-Type. NULL: no such field */
    const void            *body;          /* the whole body, in memory */
    size_t                 body_bytes;    /* its size. 0: the body is not in memory */
    janus_http_source     *source;        /* a function that gives the body instead. NULL: none */
    void                  *argument;      /* of `source` */
    uint64_t               length;        /* the bytes that `source` gives in all. UNKNOWN: the
                                             client sends chunks */
    bool                   repeatable;    /* the client may send the request twice, see above */
    bool                   expects;       /* the client sends "Expect: 100-continue", and the body
                                             only when the server asks for it, or after a second.
                                             A server that refuses the request need not read it */
    uint32_t               max_redirects; /* that the call follows, see janus_http_call. 0: none */
    janus_http            *forwards;      /* a request of a server that the call passes on, see
                                             janus_http_answer_reply. NULL: none */
    uint64_t     deadline_ns; /* a moment, for all from the look-up of the name to the last byte of
                                       the answer. 0: options.call_ns of the client from now on */
    const char **out_why;     /* gets a constant sentence when the call returns INVALID, DENIED or
                                       UNAVAILABLE; NULL: not wanted */
} janus_http_call_options;
#define JANUS_HTTP_CALL_OPTIONS(...) JANUS_OPTIONS_(janus_http_call_options, __VA_ARGS__)

/* What a client has done so far. */
typedef struct janus_http_client_info {
    size_t   struct_bytes;             /* sizeof this struct; JANUS_HTTP_CLIENT_INFO sets it */
    uint32_t connection_count;         /* open now, those that are being opened included */
    uint32_t idle_count;               /* of them, those that no call uses */
    uint64_t calls, connects, repeats; /* so far; requests that were sent once more */
} janus_http_client_info;
#define JANUS_HTTP_CLIENT_INFO() JANUS_SIZED_(janus_http_client_info)

JANUS_BEGIN_DECLS

/*
 * Creates a client without connections.
 *
 * Context: a task.
 * Yields:  only if the turn is over.
 * Owns:    *out is the task's: its end destroys the client, if nobody did before.
 * Cost:    a small allocation and a defer.
 * Errors:  INVALID    an option is out of range, or `out` is NULL
 *          STATE      not in a task
 *          FULL       the task has 4,096 defers
 *          NO_MEMORY  memory was refused
 */
JANUS_NODISCARD JANUS_API janus_status
janus_http_client_create(const janus_http_client_options *options, janus_http_client **out);

/*
 * Closes all connections of a client. Calls of other tasks that use one return CLOSED. Their
 * answers must still be destroyed.
 *
 * Context: a task, usually the owner. No task begins another call.
 * Yields:  only if the turn is over.
 * Owns:    takes `client`; NULL does nothing. The library frees its memory when the task that
 *          created it, and all tasks that used it, have ended.
 * Cost:    closes each connection.
 * Errors:  none.
 */
JANUS_API void janus_http_client_destroy(janus_http_client *client);

/*
 * Closes the kept connections that no call uses.
 *
 * Context: a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    closes each of these connections.
 * Errors:  none; NULL does nothing.
 */
JANUS_API void janus_http_client_drop_idle(janus_http_client *client);

/*
 * Copies what is known about a client.
 *
 * Context: a task.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; JANUS_HTTP_CLIENT_INFO initialises it.
 * Cost:    a lock; a step for each connection.
 * Errors:  INVALID  an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_client_inspect(janus_http_client      *client,
                                                                 janus_http_client_info *out);

/*
 * Sends a request and waits for the head of the answer. `method` is "GET" or the like. `url` is
 * "http://host:port/path?query"; the port is 80 if none is named, and 443 with "https". Escapes in
 * it are the caller's: the client sends it as it is. The client skips answers with a status below
 * 200. A status of 400 and above is an answer like any other: the call returns OK.
 *
 * With options.max_redirects the call follows redirects: 301, 302, 303, 307 and 308. A POST becomes
 * a GET after 301, 302 and 303. To another scheme, host or port the client sends only GET and HEAD,
 * without a body. From then on it leaves out all fields of the caller but Accept, Accept-Language
 * and User-Agent. It follows no redirect from https to http, and none that asks again for a body
 * from a function. A redirect that it does not follow, or one too many, is the answer of the call.
 *
 * Context: a task, which needs the rights net.connect and net.resolve. `client` may be another
 *          task's of the same scheduler.
 * Yields:  always.
 * Owns:    *out is the calling task's: janus_http_reply_destroy gives it back, and so does the end
 *          of the task. The texts stay the caller's.
 * Cost:    as janus_io_try_read, janus_io_write and janus_io_read; janus_connect_name for a fresh
 *          connection; 24 KiB of memory. The first call of a task costs a defer.
 * Errors:  INVALID    `method` is no token, or CONNECT, or `url` is malformed
 *          INVALID    the client writes one of the fields itself, or a field has a CR, an LF, a NUL
 *                     or another control byte
 *          INVALID    the answer is malformed, and the connection was closed. *out_why says which
 *                     of these it is
 *          UNAVAILABLE  `url` has another scheme than http, or it has https and the client no wire
 *          DENIED     the client does not trust the certificate of the server
 *          FULL       the request's head is longer than max_head_bytes, or its source gave more or
 *                     fewer bytes than `length`. Or a limit of connections is reached, and the
 *                     client refuses
 *          DEADLINE   the deadline passed first. Or it had passed before the call
 *          CANCELLED  the task is cancelled; the server may have seen the request
 *          RESET      the server closed the connection before the answer, or while it came
 *          CLOSED     the client was destroyed
 *          STATE      not in a task
 *          BUDGET_EXHAUSTED, NO_MEMORY, and those of janus_connect_name and `source`
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_call(janus_http_client *client,
                                                       const char *method, const char *url,
                                                       const janus_http_call_options *options,
                                                       janus_http_reply             **out);

/*
 * The status of an answer: 200 to 599.
 *
 * Context: the task that called.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  0: `reply` is NULL
 */
JANUS_API unsigned janus_http_reply_status(const janus_http_reply *reply);

/*
 * Finds the first field of the answer with this name, in any case of letters.
 *
 * Context: the task that called.
 * Yields:  never.
 * Owns:    *out_value is valid until the answer is destroyed.
 * Cost:    a comparison for each field.
 * Errors:  NOT_FOUND  there is no such field; *out_value is not changed
 *          INVALID    an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_reply_field(const janus_http_reply *reply,
                                                              const char             *name,
                                                              janus_http_text        *out_value);

/*
 * Reads field number `index` of the answer, from 0, in the order of the head.
 *
 * Context: the task that called.
 * Yields:  never.
 * Owns:    as janus_http_reply_field.
 * Cost:    some loads.
 * Errors:  NOT_FOUND  the answer has fewer fields
 *          INVALID    an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_reply_field_at(const janus_http_reply *reply,
                                                                 size_t                  index,
                                                                 janus_http_text        *out_name,
                                                                 janus_http_text        *out_value);

/*
 * The length of the body as the head says it; JANUS_HTTP_UNKNOWN if the head does not.
 *
 * Context: the task that called.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  0: `reply` is NULL, or no body follows
 */
JANUS_API uint64_t janus_http_reply_length(const janus_http_reply *reply);

/*
 * Reads what is there of the body, at least one byte and at most `max`. After an error every later
 * read returns the same error.
 *
 * Context: the task that called, or a child that it awaits.
 * Yields:  if nothing is there, or the turn is over.
 * Owns:    `to` stays the caller's.
 * Cost:    as janus_io_read.
 * Errors:  CLOSED     the body has ended, as its framing asks; *out_got is 0. Or the client was
 *                     destroyed
 *          RESET      the server closed the connection before the end of the body
 *          DEADLINE   the deadline of the call passed
 *          INVALID    the chunks of the body are malformed. Or an argument is NULL, or max is 0
 *          and those of janus_io_read
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_reply_read(janus_http_reply *reply, void *to,
                                                             size_t max, size_t *out_got);

/*
 * Reads the whole body into a block of the calling task. A NUL follows the body, uncounted.
 *
 * Context: as janus_http_reply_read.
 * Yields:  as janus_http_reply_read.
 * Owns:    *out is the task's; janus_free frees it. Without a body it is an empty block.
 * Cost:    as janus_http_reply_read, and memory of the budget.
 * Errors:  FULL  the body has more than `max` bytes
 *          and those of janus_http_reply_read, without CLOSED at its end. BUDGET_EXHAUSTED,
 *          NO_MEMORY: no memory for it. On any error the rest of the body is lost.
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_reply_read_all(janus_http_reply *reply,
                                                                 size_t max, char **out,
                                                                 size_t *out_bytes);

/*
 * Finds a trailer: a field that followed a chunked body.
 *
 * Context: the task that called, after janus_http_reply_read returned CLOSED.
 * Yields:  never.
 * Owns:    *out_value is valid until the answer is destroyed.
 * Cost:    as janus_http_reply_field.
 * Errors:  STATE      the body has not ended
 *          NOT_FOUND  there is no such trailer; *out_value is not changed
 *          INVALID    an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_reply_trailer(const janus_http_reply *reply,
                                                                const char             *name,
                                                                janus_http_text        *out_value);

/*
 * Answers a request with the answer of another server: its status, its fields, and its body, which
 * is sent as it comes. Together with options.forwards, this is a proxy:
 *
 *     status = janus_http_call(client, NULL, "http://127.0.0.1:9000",
 *                              JANUS_HTTP_CALL_OPTIONS(.forwards = http), &reply);
 *     if (status != JANUS_OK) return janus_http_answer_text(http, 502, "no answer\n");
 *     return janus_http_answer_reply(http, reply);
 *
 * A call with options.forwards sends the fields of the request, if options.fields has none of the
 * same name. The field Host is that of `url`, not that of the request. It sends the method, the
 * path with its query, and the body of the request, if the call has none of its own. It adds a
 * field Via, and follows no redirect. Trailers, and fields that concern one connection only, go in
 * neither direction.
 *
 * Context: the handler's own task, once. Nobody has read the body of `reply`.
 * Yields:  as janus_http_reply_read and janus_http_write.
 * Owns:    takes `reply`.
 * Cost:    as janus_http_reply_read and janus_http_write, for each 4 KiB.
 * Errors:  STATE    an answer has begun before, or another task calls
 *          FULL     the fields of `reply` have more than 4 KiB together
 *          INVALID  an argument is NULL
 *          and those of janus_http_reply_read and janus_http_write. A handler that returns the
 *          error cuts the answer off.
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_answer_reply(janus_http       *http,
                                                               janus_http_reply *reply);

/*
 * Gives an answer back. If the body was read to its end, or its rest has come already, the
 * connection serves the next call. Otherwise it is closed.
 *
 * Context: the task that called.
 * Yields:  only if the turn is over.
 * Owns:    takes `reply`; NULL does nothing.
 * Cost:    a lock; maybe a system call.
 * Errors:  none.
 */
JANUS_API void janus_http_reply_destroy(janus_http_reply *reply);

JANUS_END_DECLS
#endif

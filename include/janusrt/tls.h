/* SPDX-License-Identifier: MIT */
/*
 * TLS for HTTP, by OpenSSL. Link with libjanusrt-tls. A server that speaks HTTPS is:
 *
 *     janus_tls_server     *tls;
 *     janus_tls_why         why;
 *     janus_tls_certificate own = {.chain_path = "chain.pem", .key_path = "key.pem"};
 *     if (janus_tls_server_create(&own, 1, NULL, &tls, &why) != JANUS_OK) return -100;
 *     status = janus_http_serve(listener, greet, NULL,
 *                               JANUS_HTTP_OPTIONS(.wire = janus_tls_server_wire(tls)));
 *     janus_tls_server_destroy(tls);
 *
 * A client that knows https and wss is:
 *
 *     if (janus_tls_client_create(NULL, &tls, &why) != JANUS_OK) return -100;
 *     status = janus_http_client_create(
 *         JANUS_HTTP_CLIENT_OPTIONS(.wire = janus_tls_client_wire(tls)), &client);
 *
 * OpenSSL never touches a socket. It gets bytes that janus_io_read brought, so only tasks wait, and
 * never threads. A handshake has two or three steps. A step computes for up to a millisecond
 * without a pause. Then the task pays 25,000 operations for it, 5,000 at a time. Other tasks run in
 * between.
 *
 * Both ends speak TLS 1.2 and 1.3, with forward secrecy and authenticated ciphers only. There is no
 * renegotiation, no compression and no early data. ALPN: both ends speak "http/1.1". A client that
 * offers only other protocols gets the alert no_application_protocol.
 *
 * Sessions. The server resumes sessions by tickets. It keeps the keys of the tickets in memory,
 * makes a new one every hour, and forgets each after two hours. It stores no session.
 *
 * Ends. A stream that is cut without a close_notify gives RESET, never CLOSED. So a body without a
 * length cannot be cut off unnoticed.
 *
 * Memory. A connection has about 20 KiB when it is idle, and up to 200 KiB while bytes flow. No
 * budget pays for it: max_connections of the server or the client bounds it. The stacks of its
 * tasks have at least JANUS_TLS_STACK_BYTES.
 *
 * Simulated runs have TLS, too. OpenSSL takes its random bytes from the system, also in such a run.
 * So the encrypted bytes differ from run to run. A seed still replays a run exactly if their
 * lengths do not differ: with the same certificates, and keys of RSA.
 */
#ifndef JANUSRT_TLS_H
#define JANUSRT_TLS_H

#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <janusrt/wire.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The stack of a task that speaks TLS has at least this size. OpenSSL 3.0 needs 8 KiB of it. */
#define JANUS_TLS_STACK_BYTES ((size_t)32 * 1024)

/* The most certificates of a server. */
#define JANUS_TLS_CERTIFICATES_MAX 64

/* The certificates and keys of a server, and its connections. */
typedef struct janus_tls_server janus_tls_server;

/* The certificates that a client trusts. */
typedef struct janus_tls_client janus_tls_client;

/* A sentence that says what is wrong, with the name of a file. */
typedef struct janus_tls_why {
    char text[256];
} janus_tls_why;

/*
 * A certificate and its key, as PEM: in files, or in memory. The chain begins with the server's own
 * certificate. The texts stay the caller's. The key must not be encrypted.
 */
typedef struct janus_tls_certificate {
    const char *chain_path, *key_path; /* both, or NULL */
    const char *chain_text, *key_text; /* both, or NULL */
} janus_tls_certificate;

/* Options of a server. Zero in any field selects the default named beside it. */
typedef struct janus_tls_server_options {
    size_t   struct_bytes; /* sizeof this struct; JANUS_TLS_SERVER_OPTIONS sets it */
    bool     no_tickets;   /* every handshake is a full one */
    uint64_t ticket_ns;    /* how long the server encrypts tickets with one key. It accepts these
                              tickets for as long again. 0: an hour */
} janus_tls_server_options;
#define JANUS_TLS_SERVER_OPTIONS(...) JANUS_OPTIONS_(janus_tls_server_options, __VA_ARGS__)

/* What a server has done so far. */
typedef struct janus_tls_server_info {
    size_t   struct_bytes; /* sizeof this struct; JANUS_TLS_SERVER_INFO sets it */
    uint32_t certificates;
    uint64_t handshakes; /* that succeeded */
    uint64_t resumed;    /* of them, by a ticket */
    uint64_t failures;   /* handshakes that failed, for whatever reason */
    uint64_t reloads;    /* that succeeded */
    char     last[128];  /* why a handshake failed last; "": none has */
} janus_tls_server_info;
#define JANUS_TLS_SERVER_INFO() JANUS_SIZED_(janus_tls_server_info)

/* Options of a client. Zero in any field selects the default named beside it. */
typedef struct janus_tls_client_options {
    size_t      struct_bytes; /* sizeof this struct; JANUS_TLS_CLIENT_OPTIONS sets it */
    const char *ca_path;      /* a file with the certificates to trust, as PEM. */
    const char *ca_text;      /* or these certificates. NULL, both: those of the system */

    /* Trusts every certificate of every host. Anybody on the way can read and change all bytes.
     * Only for tests of other things. */
    bool dangerously_unverified;
} janus_tls_client_options;
#define JANUS_TLS_CLIENT_OPTIONS(...) JANUS_OPTIONS_(janus_tls_client_options, __VA_ARGS__)

JANUS_BEGIN_DECLS

/*
 * Creates the TLS of a server. Of several certificates, the server shows the first that is for the
 * host that the client names. If none is, or the client names no host, it shows the first of all.
 *
 * Context: a task, or a plain thread. Files need the right file.read.
 * Yields:  if it reads files, or the turn is over.
 * Owns:    *out is the caller's: janus_tls_server_destroy. *out_why gets a sentence if an error
 *          occurs; NULL: not wanted.
 * Cost:    as janus_file_open and janus_io_read; some 100 us for each certificate.
 * Errors:  INVALID    a file has no certificate or no key, or they do not fit each other, or
 *                     OpenSSL finds the key too weak. Or an argument makes no sense
 *          FULL       a file has more than 1 MiB, or there are more than
 *                     JANUS_TLS_CERTIFICATES_MAX
 *          NO_MEMORY  memory was refused
 *          and those of janus_file_open and janus_io_read. On any error nothing happened.
 */
JANUS_NODISCARD JANUS_API janus_status janus_tls_server_create(
    const janus_tls_certificate *certificates, size_t count,
    const janus_tls_server_options *options, janus_tls_server **out, janus_tls_why *out_why);

/*
 * Replaces all certificates. Handshakes that begin later use the new certificates. Connections that
 * are open stay open. If `count` is 0, the call reads the files of the last certificates again.
 *
 * Context: as janus_tls_server_create; several may call it at once.
 * Yields:  as janus_tls_server_create.
 * Owns:    as janus_tls_server_create.
 * Cost:    as janus_tls_server_create.
 * Errors:  as janus_tls_server_create. STATE: `count` is 0, and one of the last certificates came
 *          from memory. On any error the server keeps the certificates that it has.
 */
JANUS_NODISCARD JANUS_API janus_status
janus_tls_server_reload(janus_tls_server *server, const janus_tls_certificate *certificates,
                        size_t count, janus_tls_why *out_why);

/*
 * Destroys the TLS of a server. No call of janus_http_serve uses it any more.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    takes `server`; NULL does nothing. The library frees it with its last connection.
 * Cost:    some us.
 * Errors:  none.
 */
JANUS_API void janus_tls_server_destroy(janus_tls_server *server);

/*
 * The object for janus_http_options.wire.
 *
 * Context: anyone.
 * Yields:  never.
 * Owns:    the result is a part of `server`.
 * Cost:    none.
 * Errors:  NULL: `server` is NULL
 */
JANUS_API const janus_wire_maker *janus_tls_server_wire(const janus_tls_server *server);

/*
 * Copies what is known about a server.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; JANUS_TLS_SERVER_INFO initialises it.
 * Cost:    a lock and a copy.
 * Errors:  INVALID  an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_tls_server_inspect(janus_tls_server      *server,
                                                                janus_tls_server_info *out);

/*
 * Creates the TLS of a client. A certificate of a server must be valid now. It must be for the host
 * of the address, and an authority that the client trusts must vouch for it. Otherwise a call
 * returns DENIED.
 *
 * Context: as janus_tls_server_create. The certificates of the system need no right.
 * Yields:  if it reads a file.
 * Owns:    *out is the caller's: janus_tls_client_destroy. *out_why as in janus_tls_server_create.
 * Cost:    as janus_tls_server_create; for the certificates of the system janus_blocking, some
 *          30 ms. So create one for the whole program, not one for each call.
 * Errors:  INVALID      the file has no certificate, or both ca_path and ca_text are given
 *          UNAVAILABLE  the system has no file of certificates where it is looked for
 *          FULL, NO_MEMORY, and those of janus_file_open as janus_tls_server_create
 */
JANUS_NODISCARD JANUS_API janus_status janus_tls_client_create(
    const janus_tls_client_options *options, janus_tls_client **out, janus_tls_why *out_why);

/*
 * Destroys the TLS of a client. No client of HTTP uses it any more: they are destroyed.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    takes `client`; NULL does nothing. The library frees it with its last connection.
 * Cost:    some us.
 * Errors:  none.
 */
JANUS_API void janus_tls_client_destroy(janus_tls_client *client);

/*
 * The object for janus_http_client_options.wire.
 *
 * Context: anyone.
 * Yields:  never.
 * Owns:    the result is a part of `client`.
 * Cost:    none.
 * Errors:  NULL: `client` is NULL
 */
JANUS_API const janus_wire_maker *janus_tls_client_wire(const janus_tls_client *client);

JANUS_END_DECLS
#endif

/* SPDX-License-Identifier: MIT */
/*
 * Inside libjanusrt-tls. The files:
 *
 *     server.c   certificates of a server: create, reload, choose by name; ALPN
 *     client.c   what a client trusts
 *     ticket.c   the keys of session tickets
 *     context.c  what all contexts of OpenSSL have in common; PEM
 *     load.c     files, read with the caller's rights
 *     wire.c     a connection: handshake, read, write, end
 *     bio.c      the bytes between OpenSSL and a connection
 *
 * Rules for calls of OpenSSL. A task may move to another thread in each call of janusrt, and it may
 * end there. OpenSSL keeps its errors in thread-locals. So between a call of OpenSSL and the look
 * at its errors there is no call of janusrt. No callback of OpenSSL calls janusrt: in simulated
 * runs even janus_now_ns lets others run. Each call of OpenSSL begins with ERR_clear_error.
 */
#ifndef JANUSRT_TLS_INTERNAL_H
#define JANUSRT_TLS_INTERNAL_H

#include <janusrt/sync.h>
#include <janusrt/tls.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    JRT_TLS_FILE_BYTES_MAX = 1 << 20,
    JRT_TLS_KEY_NAME_BYTES = 16,
    JRT_TLS_KEYS = 2, /* of tickets: the newest, and the one before */
};

/* What servers and clients have in common. The owner and each wire hold one of `refs`. */
struct jrt_tls_side {
    janus_wire_maker maker; /* first: wires lead here */
    atomic_size_t    refs;
    bool             is_server;
    pthread_mutex_t  mutex; /* held for loads and stores, and never over a yield */
    SSL_CTX         *context;
};

/* A key of tickets. */
struct jrt_tls_ticket_key {
    uint64_t      born_ns; /* 0: none */
    unsigned char name[JRT_TLS_KEY_NAME_BYTES], cipher[32], mac[32];
};

struct janus_tls_server {
    struct jrt_tls_side      side; /* its context shows the first certificate */
    janus_tls_server_options options;
    janus_mutex              reloading; /* held over yields; guards `own` */
    janus_tls_certificate   *own;       /* paths, to be read again */
    size_t                   own_count;

    /* With the side's mutex. */
    struct jrt_tls_ticket_key keys[JRT_TLS_KEYS];
    uint32_t                  certificates;
    uint64_t                  handshakes, resumed, failures, reloads;
    char                      last[128];
};

struct janus_tls_client {
    struct jrt_tls_side side;
};

/* A connection. */
struct jrt_tls_wire {
    janus_wire           head; /* first */
    struct jrt_tls_side *side;
    janus_io             io;
    SSL                 *ssl;
    bool                 open;   /* the handshake is done */
    uint64_t             now_ns; /* at this step of the handshake, for the keys of tickets */

    /* The reader's. */
    janus_status read_over; /* why nothing can be read any more; OK: it can */
    bool         owes;      /* a read has caused bytes that are not sent */

    /* Guards `ssl` and the buffers of the BIO. Nobody calls janusrt while holding it. */
    janus_mutex state;
    const char *why;                 /* the last error of OpenSSL, constant */
    int         reason;              /* its number */
    char       *in;                  /* from the connection; NULL: none */
    size_t      in_at, in_end;       /* what OpenSSL has not taken */
    char       *out;                 /* for the connection; NULL: none */
    size_t      out_bytes, out_room; /* of it */
    bool        failed;              /* OpenSSL cannot use `ssl` any more */

    /* Guards what is being sent. It is held over yields. If its holder has ended, nobody knows how
     * much was sent, and nothing can be sent any more. */
    janus_mutex writing;
    char       *together; /* small pieces that are being encrypted; NULL: none */
    char       *sending;  /* taken from `out`; NULL: none */
    size_t      sending_at, sending_bytes;
};

/* load.c. Memory of the task: if that ends in the middle of a call, it is freed. Or memory of the
 * process, on a plain thread. A text has a NUL behind it. */
struct jrt_tls_text {
    char  *at;
    size_t bytes, room;
    bool   of_task;
};
/* Makes a block of zeros. */
janus_status jrt_tls_make(struct jrt_tls_text *text, size_t room);
janus_status jrt_tls_load(const char *path, struct jrt_tls_text *out, janus_tls_why *why);
/* Overwrites the text and frees it. */
void jrt_tls_forget(struct jrt_tls_text *text);

/* context.c */
void jrt_tls_say(janus_tls_why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says what OpenSSL found wrong. */
janus_status jrt_tls_blame(janus_tls_why *why, const char *what, const char *where);
/* A context with our rules. NULL: no memory. */
SSL_CTX *jrt_tls_context(bool server);
/* Reads a chain and a key into a context. */
struct jrt_tls_pem {
    const char *chain, *key, *chain_name, *key_name;
};
janus_status jrt_tls_use(SSL_CTX *context, const struct jrt_tls_pem *pem, janus_tls_why *why);
/* Adds all certificates of a text to those that the context trusts. */
janus_status jrt_tls_trust(SSL_CTX *context, const char *text, const char *where,
                           janus_tls_why *why);

/* ticket.c */
void jrt_tls_tickets(SSL_CTX *context, const janus_tls_server_options *options);

/* wire.c. Pays, in portions that every budget can grant, and lets others run. */
janus_status jrt_tls_pay(uint32_t ops);
void         jrt_tls_side_init(struct jrt_tls_side *side, bool is_server);
void         jrt_tls_side_release(struct jrt_tls_side *side);

/* bio.c */
BIO *jrt_tls_bio(struct jrt_tls_wire *wire);

/* server.c */
void jrt_tls_count(struct jrt_tls_wire *wire, bool good, const char *why);
void jrt_tls_server_free(janus_tls_server *server);

#endif

/* SPDX-License-Identifier: MIT */
/* The acts of `make soak` over TLS, with OpenSSL. */
#include "talk.h"

#include "../net/protocol.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <unistd.h>

enum { REQUESTS_MAX = 20, ANSWER_MAX = 4096 };

static SSL_CTX       *context;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_context(void)
{
    context = SSL_CTX_new(TLS_client_method());
    net_need(context != NULL, "OpenSSL");
}

static void hello(SSL *ssl)
{
    const int body = sizeof NET_BODY - 1;
    char      bytes[ANSWER_MAX];
    int       have = 0, got;
    net_need(SSL_write(ssl, NET_REQUEST, sizeof NET_REQUEST - 1) == sizeof NET_REQUEST - 1,
             "TLS: send");
    while (have < body || memcmp(bytes + have - body, NET_BODY, (size_t)body) != 0) {
        got = SSL_read(ssl, bytes + have, (int)sizeof bytes - have);
        net_need(got > 0, "TLS: the server closed");
        have += got;
    }
    net_need(memcmp(bytes, "HTTP/1.1 200", 12) == 0, "TLS: a wrong answer");
}

/* Some requests, an early end, or bytes that are no TLS. */
void talk_tls(struct talk *talk)
{
    int      fd = talk_connect(talk, talk->tls_port);
    uint64_t kind = talk_chance(talk, 10);
    if (kind == 0) {
        (void)!write(fd, "no TLS at all\r\n", talk_chance(talk, 16));
        talk_drop(talk, fd, talk_chance(talk, 2) == 0);
        return;
    }
    (void)pthread_once(&once, make_context);
    SSL *ssl = SSL_new(context);
    net_need(ssl != NULL && SSL_set_fd(ssl, fd) == 1, "OpenSSL");
    net_need(SSL_connect(ssl) == 1, "TLS: the handshake");
    for (uint64_t left = kind == 1 ? 0 : 1 + talk_chance(talk, REQUESTS_MAX); left > 0; left--) {
        hello(ssl);
        talk->requests++;
    }
    if (kind < 6) (void)SSL_shutdown(ssl);
    SSL_free(ssl);
    talk_drop(talk, fd, talk_chance(talk, 4) == 0);
}

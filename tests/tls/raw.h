/* SPDX-License-Identifier: MIT */
/* One end of TLS in the hands of a test: OpenSSL on memory, and janus_io below. */
#ifndef JANUSRT_TESTS_TLS_RAW_H
#define JANUSRT_TESTS_TLS_RAW_H

#include "secure.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

struct raw {
    SSL_CTX     *context;
    SSL         *ssl;
    BIO         *in, *out;
    janus_io     io;
    janus_status status; /* of the connection, when a call failed */
};

/* A client, or with a certificate a server. The test may change the context before raw_start. */
static inline struct raw raw_make(janus_io io, const struct paper *own)
{
    struct raw raw = {.io = io};
    raw.context = SSL_CTX_new(own != NULL ? TLS_server_method() : TLS_client_method());
    CHECK(raw.context != NULL);
    SSL_CTX_set_security_level(raw.context, 0); /* it may ask for what the other end refuses */
    if (own == NULL) return raw;
    BIO      *chain = BIO_new_mem_buf(own->chain, -1), *secret = BIO_new_mem_buf(own->key, -1);
    X509     *certificate = PEM_read_bio_X509(chain, NULL, NULL, NULL);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(secret, NULL, NULL, NULL);
    CHECK_EQ(SSL_CTX_use_certificate(raw.context, certificate), 1);
    CHECK_EQ(SSL_CTX_use_PrivateKey(raw.context, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    BIO_free(chain);
    BIO_free(secret);
    return raw;
}

static inline void raw_start(struct raw *raw, bool server)
{
    raw->ssl = SSL_new(raw->context);
    raw->in = BIO_new(BIO_s_mem());
    raw->out = BIO_new(BIO_s_mem());
    CHECK(raw->ssl != NULL && raw->in != NULL && raw->out != NULL);
    SSL_set_bio(raw->ssl, raw->in, raw->out);
    if (server) {
        SSL_set_accept_state(raw->ssl);
    } else {
        SSL_set_connect_state(raw->ssl);
    }
}

/* Sends what OpenSSL has written. */
static inline bool raw_flush(struct raw *raw)
{
    char *bytes = NULL;
    long  count = BIO_get_mem_data(raw->out, &bytes);
    if (count == 0) return true;
    raw->status = janus_io_write(raw->io, bytes, (size_t)count, NULL);
    (void)BIO_reset(raw->out);
    return raw->status == JANUS_OK;
}

/* After a call of OpenSSL: sends, and reads if more is needed. True: call again. */
static inline bool raw_again(struct raw *raw, int error)
{
    char   bytes[4096];
    size_t got = 0;
    ERR_clear_error();
    if (!raw_flush(raw) || error != SSL_ERROR_WANT_READ) return false;
    raw->status = janus_io_read(raw->io, bytes, sizeof bytes, &got);
    if (raw->status != JANUS_OK) return false;
    CHECK_EQ(BIO_write(raw->in, bytes, (int)got), (int)got);
    return true;
}

/* The reason of the last error of OpenSSL, or 0. Ask before anything else. */
static int raw_reason;

static inline int raw_judge(struct raw *raw, int result)
{
    int error = SSL_get_error(raw->ssl, result);
    raw_reason = error == SSL_ERROR_SSL ? ERR_GET_REASON(ERR_peek_error()) : 0;
    return error;
}

static inline bool raw_shake(struct raw *raw)
{
    int result, error;
    do {
        ERR_clear_error();
        result = SSL_do_handshake(raw->ssl);
        error = raw_judge(raw, result);
    } while (raw_again(raw, error));
    return result == 1;
}

static inline bool raw_put(struct raw *raw, const char *text)
{
    ERR_clear_error();
    return SSL_write(raw->ssl, text, (int)strlen(text)) == (int)strlen(text) && raw_flush(raw);
}

/* Reads until the other end closes. Returns the error of OpenSSL: ZERO_RETURN, SSL, or WANT_READ if
 * the connection was cut. */
static inline int raw_rest(struct raw *raw, char *text, size_t room)
{
    int    result, error;
    size_t have = 0;
    do {
        ERR_clear_error();
        result = SSL_read(raw->ssl, text + have, (int)(room - 1 - have));
        if (result > 0) have += (size_t)result;
        error = raw_judge(raw, result);
    } while (result > 0 || raw_again(raw, error));
    text[have] = '\0';
    talk_undate(text);
    return error;
}

static inline void raw_end(struct raw *raw)
{
    SSL_free(raw->ssl);
    SSL_CTX_free(raw->context);
    CHECK_EQ(janus_io_close(raw->io), JANUS_OK);
}

#endif

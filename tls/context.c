/* SPDX-License-Identifier: MIT */
/* What all contexts of OpenSSL have in common, and what PEM brings into them. */
#include "tls/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdarg.h>
#include <stdio.h>

/* Forward secrecy and authenticated ciphers: all of TLS 1.3, and these of TLS 1.2. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL"

void jrt_tls_say(janus_tls_why *why, const char *format, ...)
{
    va_list arguments;
    if (why == NULL) return;
    va_start(arguments, format);
    (void)vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
}

janus_status jrt_tls_blame(janus_tls_why *why, const char *what, const char *where)
{
    unsigned long error = ERR_peek_last_error();
    const char   *reason = ERR_reason_error_string(error);
    bool          memory = ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE;
    jrt_tls_say(why, "%s %s: %s", where, what,
                reason != NULL ? reason : "OpenSSL does not say why");
    ERR_clear_error();
    return memory ? JANUS_NO_MEMORY : JANUS_INVALID;
}

SSL_CTX *jrt_tls_context(bool server)
{
    /* At the exit of the process, tasks may still use OpenSSL: it does not clean up then. */
    if (OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1) return NULL;
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    if (context == NULL) return NULL;
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(context, CIPHERS) != 1) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_quiet_shutdown(context, 0);
    return context;
}

/* Nobody is asked for a password: the process may have no terminal. */
static int no_password(char *to, int room, int writing, void *argument)
{
    (void)to;
    (void)room;
    (void)writing;
    (void)argument;
    return -1;
}

/* The next certificate. *out is NULL at the end of the text. False: it is malformed. */
static bool next_certificate(BIO *bio, X509 **out)
{
    *out = PEM_read_bio_X509(bio, NULL, no_password, NULL);
    if (*out != NULL) return true;
    bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (end) ERR_clear_error();
    return end;
}

/* The first certificate is the server's own, the others vouch for it. */
static janus_status use_chain(SSL_CTX *context, BIO *bio, const char *where, janus_tls_why *why)
{
    X509 *one = NULL;
    bool  good = next_certificate(bio, &one);
    if (good && one == NULL) {
        jrt_tls_say(why, "%s has no certificate", where);
        return JANUS_INVALID;
    }
    if (good) good = SSL_CTX_use_certificate(context, one) == 1;
    X509_free(one);
    while (good) {
        good = next_certificate(bio, &one);
        if (!good || one == NULL) break;
        good = SSL_CTX_add0_chain_cert(context, one) == 1;
        if (!good) X509_free(one);
    }
    return good ? JANUS_OK : jrt_tls_blame(why, "has a certificate that cannot be used", where);
}

static janus_status use_key(SSL_CTX *context, BIO *bio, const char *where, janus_tls_why *why)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    if (key == NULL) return jrt_tls_blame(why, "has no key that can be read", where);
    bool good =
        SSL_CTX_use_PrivateKey(context, key) == 1 && SSL_CTX_check_private_key(context) == 1;
    EVP_PKEY_free(key);
    return good ? JANUS_OK
                : jrt_tls_blame(why, "has another key than that of the first certificate", where);
}

janus_status jrt_tls_use(SSL_CTX *context, const struct jrt_tls_pem *pem, janus_tls_why *why)
{
    janus_status status = JANUS_NO_MEMORY;
    ERR_clear_error();
    BIO *chain_bio = BIO_new_mem_buf(pem->chain, -1), *key_bio = BIO_new_mem_buf(pem->key, -1);
    if (chain_bio != NULL && key_bio != NULL)
        status = use_chain(context, chain_bio, pem->chain_name, why);
    if (status == JANUS_OK) status = use_key(context, key_bio, pem->key_name, why);
    BIO_free(chain_bio);
    BIO_free(key_bio);
    ERR_clear_error();
    return status;
}

janus_status jrt_tls_trust(SSL_CTX *context, const char *text, const char *where,
                           janus_tls_why *why)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    bool        good = true;
    size_t      count = 0;
    ERR_clear_error();
    BIO *bio = BIO_new_mem_buf(text, -1);
    if (bio == NULL) return JANUS_NO_MEMORY;
    for (X509 *one = NULL; good; count++) {
        good = next_certificate(bio, &one);
        if (!good || one == NULL) break;
        good = X509_STORE_add_cert(store, one) == 1;
        X509_free(one);
    }
    BIO_free(bio);
    if (!good) return jrt_tls_blame(why, "has a certificate that cannot be used", where);
    if (count > 0) return JANUS_OK;
    jrt_tls_say(why, "%s has no certificate", where);
    return JANUS_INVALID;
}

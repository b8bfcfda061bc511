/* SPDX-License-Identifier: MIT */
/*
 * The TLS of a server. Each certificate has a context of OpenSSL. New connections begin with the
 * context of the first. The name that the client asks for may lead them to another one.
 *
 * A reload builds all contexts anew, and then replaces one pointer. A connection holds the context
 * that it began with, and that context holds the others of its time.
 */
#include "tls/tls.h"

#include <janusrt/nursery.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUILD_OPS = 200000 }; /* for a certificate: OpenSSL takes half a millisecond */

/* The contexts of one time, behind the first. It belongs to the first context. */
struct others {
    size_t   count;
    SSL_CTX *contexts[JANUS_TLS_CERTIFICATES_MAX - 1];
};

static int            others_index = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void free_others(void *parent, void *pointer, CRYPTO_EX_DATA *data, int index, long number,
                        void *argument)
{
    struct others *others = pointer;
    (void)parent;
    (void)data;
    (void)index;
    (void)number;
    (void)argument;
    if (others == NULL) return;
    for (size_t i = 0; i < others->count; i++) SSL_CTX_free(others->contexts[i]);
    free(others);
}

static void make_index(void)
{
    others_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_others);
}

/* Chooses the first certificate that is for the name. */
static int choose_certificate(SSL *ssl, int *alert, void *argument)
{
    SSL_CTX             *first = argument;
    const struct others *others = SSL_CTX_get_ex_data(first, others_index);
    const char          *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert;
    if (name == NULL || others == NULL) return SSL_TLSEXT_ERR_OK;
    if (X509_check_host(SSL_CTX_get0_certificate(first), name, 0, 0, NULL) == 1) {
        return SSL_TLSEXT_ERR_OK;
    }
    for (size_t i = 0; i < others->count; i++) {
        X509 *one = SSL_CTX_get0_certificate(others->contexts[i]);
        if (X509_check_host(one, name, 0, 0, NULL) != 1) continue;
        return SSL_set_SSL_CTX(ssl, others->contexts[i]) != NULL ? SSL_TLSEXT_ERR_OK
                                                                 : SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    return SSL_TLSEXT_ERR_OK;
}

/* A client that offers protocols must offer ours. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_bytes,
                           const unsigned char *offered, unsigned bytes, void *argument)
{
    static const unsigned char ours[] = "http/1.1";
    (void)ssl;
    (void)argument;
    for (unsigned at = 0; at < bytes; at += 1u + offered[at]) {
        if (offered[at] != sizeof ours - 1 || at + offered[at] >= bytes) continue;
        if (memcmp(offered + at + 1, ours, sizeof ours - 1) != 0) continue;
        *out = offered + at + 1;
        *out_bytes = offered[at];
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *make_context(const janus_tls_server_options *options)
{
    SSL_CTX *context = jrt_tls_context(true);
    if (context == NULL) return NULL;
    static const unsigned char id[] = "janusrt";
    jrt_tls_tickets(context, options);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    if (SSL_CTX_set_session_id_context(context, id, sizeof id - 1) == 1) return context;
    SSL_CTX_free(context);
    return NULL;
}

/* A certificate, with its texts in memory. */
struct source {
    struct jrt_tls_text chain, key;
    struct jrt_tls_pem  pem;
};

/* All certificates of one call. */
struct sources {
    struct jrt_tls_text block; /* where `at` lies */
    struct source      *at;
    size_t              count;
};

static void forget(struct sources *sources)
{
    for (size_t i = 0; i < sources->count; i++) {
        jrt_tls_forget(&sources->at[i].chain);
        jrt_tls_forget(&sources->at[i].key);
    }
    jrt_tls_forget(&sources->block);
}

/* Reads what is in files. It may wait. */
static janus_status load(const janus_tls_certificate *given, struct source *out, janus_tls_why *why)
{
    bool paths = given->chain_path != NULL && given->key_path != NULL;
    bool texts = given->chain_text != NULL && given->key_text != NULL;
    bool mixed = (given->chain_path != NULL || given->key_path != NULL) &&
                 (given->chain_text != NULL || given->key_text != NULL);
    if (paths == texts || mixed) {
        jrt_tls_say(why, "a certificate needs a chain and a key, both in files or both in memory");
        return JANUS_INVALID;
    }
    if (texts) {
        out->pem = (struct jrt_tls_pem){given->chain_text, given->key_text, "the chain in memory",
                                        "the key in memory"};
        return JANUS_OK;
    }
    janus_status status = jrt_tls_load(given->chain_path, &out->chain, why);
    if (status == JANUS_OK) status = jrt_tls_load(given->key_path, &out->key, why);
    out->pem = (struct jrt_tls_pem){out->chain.at, out->key.at, given->chain_path, given->key_path};
    return status;
}

/* Reads all. It may wait, and the task may end in it. */
static janus_status load_all(const janus_tls_certificate *given, size_t count, struct sources *out,
                             janus_tls_why *why)
{
    *out = (struct sources){.count = 0};
    if (count > JANUS_TLS_CERTIFICATES_MAX) {
        jrt_tls_say(why, "a server has at most %d certificates", JANUS_TLS_CERTIFICATES_MAX);
        return JANUS_FULL;
    }
    janus_status status = jrt_tls_make(&out->block, count * sizeof *out->at);
    out->at = (struct source *)(void *)out->block.at;
    while (status == JANUS_OK && out->count < count) {
        size_t i = out->count++;
        status = load(&given[i], &out->at[i], why);
        if (status == JANUS_OK) status = jrt_tls_pay(BUILD_OPS); /* for what follows */
    }
    if (status != JANUS_OK) forget(out);
    return status;
}

/* Builds the contexts of all certificates. It never waits. */
static janus_status build(const struct sources *sources, const janus_tls_server_options *options,
                          SSL_CTX **out, janus_tls_why *why)
{
    size_t         count = sources->count;
    SSL_CTX       *first = make_context(options);
    struct others *others = count > 1 ? calloc(1, sizeof *others) : NULL;
    (void)pthread_once(&once, make_index);
    if (first == NULL || (count > 1 && others == NULL) || others_index < 0 ||
        SSL_CTX_set_ex_data(first, others_index, others) != 1) {
        SSL_CTX_free(first);
        free(others);
        return JANUS_NO_MEMORY;
    }
    janus_status status = jrt_tls_use(first, &sources->at[0].pem, why);
    for (size_t i = 1; i < count && status == JANUS_OK; i++) {
        SSL_CTX *next = make_context(options);
        if (next == NULL) {
            status = JANUS_NO_MEMORY;
            break;
        }
        others->contexts[others->count++] = next;
        status = jrt_tls_use(next, &sources->at[i].pem, why);
    }
    if (status != JANUS_OK) {
        SSL_CTX_free(first); /* and the others */
        return status;
    }
    SSL_CTX_set_tlsext_servername_callback(first, choose_certificate);
    SSL_CTX_set_tlsext_servername_arg(first, first);
    *out = first;
    return JANUS_OK;
}

static void free_paths(janus_tls_certificate *own, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)own[i].chain_path);
        free((void *)(uintptr_t)own[i].key_path);
    }
    free(own);
}

/* Copies the paths, to be read again. What came from memory leaves an empty entry. */
static janus_tls_certificate *copy_paths(const janus_tls_certificate *given, size_t count)
{
    janus_tls_certificate *own = calloc(count, sizeof *own);
    bool                   good = own != NULL;
    for (size_t i = 0; good && i < count; i++) {
        if (given[i].chain_path == NULL) continue;
        own[i].chain_path = strdup(given[i].chain_path);
        own[i].key_path = strdup(given[i].key_path);
        good = own[i].chain_path != NULL && own[i].key_path != NULL;
    }
    if (good) return own;
    if (own != NULL) free_paths(own, count);
    return NULL;
}

/* Uses new certificates from now on. Takes `context` and `own`. */
static void replace(janus_tls_server *server, SSL_CTX *context, janus_tls_certificate *own,
                    size_t count)
{
    (void)pthread_mutex_lock(&server->side.mutex);
    SSL_CTX *before = server->side.context;
    server->side.context = context;
    server->certificates = (uint32_t)count;
    if (before != NULL) server->reloads++;
    (void)pthread_mutex_unlock(&server->side.mutex);
    SSL_CTX_free(before);
    if (own == NULL) return;
    if (server->own != NULL) free_paths(server->own, server->own_count);
    server->own = own;
    server->own_count = count;
}

/* Builds contexts of what was read, and uses them. It never waits. */
static janus_status renew(janus_tls_server *server, const janus_tls_certificate *given,
                          const struct sources *sources, janus_tls_why *why)
{
    SSL_CTX     *context = NULL;
    janus_status status = build(sources, &server->options, &context, why);
    if (status != JANUS_OK) return status;
    janus_tls_certificate *own = NULL;
    if (given != server->own) own = copy_paths(given, sources->count);
    if (given != server->own && own == NULL) {
        SSL_CTX_free(context);
        return JANUS_NO_MEMORY;
    }
    replace(server, context, own, sources->count);
    return JANUS_OK;
}

static bool set_options(janus_tls_server *server, const janus_tls_server_options *given)
{
    janus_tls_server_options *options = &server->options;
    if (given != NULL) {
        size_t bytes = given->struct_bytes;
        if (bytes < sizeof bytes || bytes > sizeof *options || bytes % 8 != 0) return false;
        memcpy(options, given, bytes);
    }
    options->struct_bytes = sizeof *options;
    if (options->ticket_ns == 0) options->ticket_ns = UINT64_C(3600000000000);
    return options->ticket_ns <= UINT64_MAX / 4;
}

void jrt_tls_server_free(janus_tls_server *server)
{
    if (server->own != NULL) free_paths(server->own, server->own_count);
    OPENSSL_cleanse(server->keys, sizeof server->keys);
}

/* Sets *out_why if nobody did. */
static janus_status tell(janus_status status, janus_tls_why *why)
{
    if (status == JANUS_OK) jrt_tls_say(why, "%s", "");
    if (why != NULL && status != JANUS_OK && why->text[0] == '\0') {
        jrt_tls_say(why, "%s", janus_status_text(status));
    }
    return status;
}

static janus_status make_server(const janus_tls_certificate    *certificates,
                                const janus_tls_server_options *options,
                                const struct sources *sources, janus_tls_server **out,
                                janus_tls_why *why)
{
    janus_tls_server *server = calloc(1, sizeof *server);
    if (server == NULL) return JANUS_NO_MEMORY;
    jrt_tls_side_init(&server->side, true);
    janus_mutex_init(&server->reloading, "tls reload");
    janus_status status = set_options(server, options) ? JANUS_OK : JANUS_INVALID;
    if (status == JANUS_OK) status = renew(server, certificates, sources, why);
    if (status == JANUS_OK) {
        *out = server;
    } else {
        janus_tls_server_destroy(server);
    }
    return status;
}

janus_status janus_tls_server_create(const janus_tls_certificate *certificates, size_t count,
                                     const janus_tls_server_options *options,
                                     janus_tls_server **out, janus_tls_why *out_why)
{
    struct sources sources;
    jrt_tls_say(out_why, "%s", "");
    if (certificates == NULL || count == 0 || out == NULL) return tell(JANUS_INVALID, out_why);
    janus_status status = load_all(certificates, count, &sources, out_why);
    if (status == JANUS_OK) {
        status = make_server(certificates, options, &sources, out, out_why);
        forget(&sources);
    }
    return tell(status, out_why);
}

/* With `reloading` held. */
static janus_status reload(janus_tls_server *server, const janus_tls_certificate *given,
                           size_t count, janus_tls_why *why)
{
    struct sources sources;
    if (count == 0) {
        given = server->own;
        count = server->own_count;
        for (size_t i = 0; i < count; i++) {
            if (given[i].chain_path != NULL) continue;
            jrt_tls_say(why, "a certificate that came from memory cannot be read again");
            return JANUS_STATE;
        }
    }
    janus_status status = load_all(given, count, &sources, why);
    if (status != JANUS_OK) return status;
    status = renew(server, given, &sources, why);
    forget(&sources);
    return status;
}

janus_status janus_tls_server_reload(janus_tls_server            *server,
                                     const janus_tls_certificate *certificates, size_t count,
                                     janus_tls_why *out_why)
{
    jrt_tls_say(out_why, "%s", "");
    if (server == NULL || (certificates == NULL) != (count == 0)) {
        return tell(JANUS_INVALID, out_why);
    }
    janus_status status = janus_mutex_lock(&server->reloading);
    if (status == JANUS_OK) {
        status = reload(server, certificates, count, out_why);
        JANUS_IGNORE(janus_mutex_unlock(&server->reloading));
    }
    return tell(status, out_why);
}

void janus_tls_server_destroy(janus_tls_server *server)
{
    if (server != NULL) jrt_tls_side_release(&server->side);
}

const janus_wire_maker *janus_tls_server_wire(const janus_tls_server *server)
{
    return server != NULL ? &server->side.maker : NULL;
}

void jrt_tls_count(struct jrt_tls_wire *wire, bool good, const char *why)
{
    if (!wire->side->is_server) return;
    janus_tls_server *server = (janus_tls_server *)wire->side;
    bool              resumed = good && SSL_session_reused(wire->ssl) == 1;
    (void)pthread_mutex_lock(&server->side.mutex);
    server->handshakes += good;
    server->resumed += resumed;
    server->failures += !good;
    if (!good) (void)snprintf(server->last, sizeof server->last, "%s", why);
    (void)pthread_mutex_unlock(&server->side.mutex);
}

janus_status janus_tls_server_inspect(janus_tls_server *server, janus_tls_server_info *out)
{
    janus_tls_server_info info = {0};
    if (server == NULL || out == NULL) return JANUS_INVALID;
    size_t bytes = out->struct_bytes;
    if (bytes < sizeof bytes || bytes > sizeof info || bytes % 8 != 0) return JANUS_INVALID;
    (void)pthread_mutex_lock(&server->side.mutex);
    info.certificates = server->certificates;
    info.handshakes = server->handshakes;
    info.resumed = server->resumed;
    info.failures = server->failures;
    info.reloads = server->reloads;
    memcpy(info.last, server->last, sizeof info.last);
    (void)pthread_mutex_unlock(&server->side.mutex);
    info.struct_bytes = bytes;
    memcpy(out, &info, bytes);
    return JANUS_OK;
}

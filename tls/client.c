/* SPDX-License-Identifier: MIT */
/*
 * The TLS of a client: the certificates that it trusts. They are all in memory. OpenSSL could also
 * look them up in a directory, but it would do so during handshakes, and block the thread.
 */
#include "tls/tls.h"

#include <janusrt/task.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

/* Where systems keep the certificates that they trust, in one file. */
static const char *const bundles[] = {
    NULL, /* the environment's */
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

struct search {
    SSL_CTX *context; /* NULL: no memory */
    bool     found;
};

/* Makes a context with the certificates of the system. It runs on a helper thread. */
static int64_t load_bundle(void *argument)
{
    struct search *search = argument;
    const char    *chosen = secure_getenv(X509_get_default_cert_file_env());
    search->context = jrt_tls_context(false);
    if (search->context == NULL) return 0;
    for (size_t i = 0; i < sizeof bundles / sizeof bundles[0] && !search->found; i++) {
        const char *path = i == 0 ? chosen : bundles[i];
        if (path == NULL) continue;
        search->found = SSL_CTX_load_verify_file(search->context, path) == 1;
        if (i == 0) break; /* the environment names one: no other will do */
    }
    ERR_clear_error();
    return 0;
}

static janus_status trust_system(SSL_CTX **out, janus_tls_why *why)
{
    struct search search = {NULL, false};
    janus_status  status = janus_blocking(load_bundle, &search, NULL);
    *out = search.context;
    if (status != JANUS_OK || search.found || search.context == NULL) return status;
    jrt_tls_say(why, "no certificates of the system were found, as in %s; set ca_path", bundles[1]);
    return JANUS_UNAVAILABLE;
}

/* Makes a context that trusts what the options say. If it reads a file, it does so first: the task
 * may end there. */
static janus_status trust(const janus_tls_client_options *options, SSL_CTX **out,
                          janus_tls_why *why)
{
    struct jrt_tls_text text = {.at = NULL};
    janus_status        status = JANUS_OK;
    if (options->ca_path == NULL && options->ca_text == NULL && !options->dangerously_unverified) {
        return trust_system(out, why);
    }
    if (options->ca_path != NULL) status = jrt_tls_load(options->ca_path, &text, why);
    if (status != JANUS_OK) return status;
    *out = jrt_tls_context(false);
    if (*out != NULL && options->ca_path != NULL) {
        status = jrt_tls_trust(*out, text.at, options->ca_path, why);
    } else if (*out != NULL && options->ca_text != NULL) {
        status = jrt_tls_trust(*out, options->ca_text, "the text in memory", why);
    }
    jrt_tls_forget(&text);
    return status;
}

static janus_status make_context(const janus_tls_client_options *options, SSL_CTX **out,
                                 janus_tls_why *why)
{
    static const unsigned char protocols[] = "\x08http/1.1";
    janus_status               status = trust(options, out, why);
    if (status != JANUS_OK) return status;
    if (*out == NULL || SSL_CTX_set_alpn_protos(*out, protocols, sizeof protocols - 1) != 0) {
        return JANUS_NO_MEMORY;
    }
    SSL_CTX_set_verify(*out, options->dangerously_unverified ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                       NULL);
    return JANUS_OK;
}

janus_status janus_tls_client_create(const janus_tls_client_options *options,
                                     janus_tls_client **out, janus_tls_why *out_why)
{
    janus_tls_client_options own = {0};
    SSL_CTX                 *context = NULL;
    jrt_tls_say(out_why, "an argument makes no sense");
    if (out == NULL) return JANUS_INVALID;
    if (options != NULL) {
        size_t bytes = options->struct_bytes;
        if (bytes < sizeof bytes || bytes > sizeof own || bytes % 8 != 0) return JANUS_INVALID;
        memcpy(&own, options, bytes);
    }
    if (own.ca_path != NULL && own.ca_text != NULL) return JANUS_INVALID;
    jrt_tls_say(out_why, "%s", "");
    janus_status      status = make_context(&own, &context, out_why);
    janus_tls_client *client = status == JANUS_OK ? calloc(1, sizeof *client) : NULL;
    if (status == JANUS_OK && client == NULL) status = JANUS_NO_MEMORY;
    if (status != JANUS_OK) {
        SSL_CTX_free(context);
        if (out_why != NULL && out_why->text[0] == '\0') {
            jrt_tls_say(out_why, "%s", janus_status_text(status));
        }
        return status;
    }
    jrt_tls_side_init(&client->side, false);
    client->side.context = context;
    *out = client;
    return JANUS_OK;
}

void janus_tls_client_destroy(janus_tls_client *client)
{
    if (client != NULL) jrt_tls_side_release(&client->side);
}

const janus_wire_maker *janus_tls_client_wire(const janus_tls_client *client)
{
    return client != NULL ? &client->side.maker : NULL;
}

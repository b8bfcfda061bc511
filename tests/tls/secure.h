/* SPDX-License-Identifier: MIT */
/* A server of HTTPS and a client that trusts it, in one scheduler. */
#ifndef JANUSRT_TESTS_TLS_SECURE_H
#define JANUSRT_TESTS_TLS_SECURE_H

#include "../http/caller.h"
#include "paper.h"

#include <janusrt/tls.h>

#define NAMES "DNS:localhost,IP:127.0.0.1"

/* The authority of all tests of a process, and a certificate by it. */
static inline struct paper authority(void)
{
    static struct paper made;
    if (made.chain == NULL) made = paper_authority();
    return made;
}

static inline struct paper own_paper(void)
{
    static struct paper made;
    if (made.chain == NULL) made = paper_for(authority(), NAMES);
    return made;
}

static inline janus_tls_server *server_of(struct paper                    paper,
                                          const janus_tls_server_options *options)
{
    janus_tls_server     *server = NULL;
    janus_tls_why         why = {""};
    janus_tls_certificate one = {.chain_text = paper.chain, .key_text = paper.key};
    janus_status          status = janus_tls_server_create(&one, 1, options, &server, &why);
    CHECK_STR(why.text, "");
    CHECK_EQ(status, JANUS_OK);
    return server;
}

/* A client that trusts the authority of the tests. */
static inline janus_tls_client *trusting(void)
{
    janus_tls_client *client = NULL;
    janus_tls_why     why = {""};
    janus_status      status = janus_tls_client_create(
        JANUS_TLS_CLIENT_OPTIONS(.ca_text = authority().chain), &client, &why);
    CHECK_STR(why.text, "");
    CHECK_EQ(status, JANUS_OK);
    return client;
}

static inline janus_tls_server_info look_tls(janus_tls_server *server)
{
    janus_tls_server_info info = JANUS_TLS_SERVER_INFO();
    CHECK_EQ(janus_tls_server_inspect(server, &info), JANUS_OK);
    return info;
}

/* The server of one test, which the functions below use. */
static janus_tls_server *tls_server;
static janus_tls_client *tls_client;

/* Runs a server of HTTPS and a client. The options need not name the wire. */
static inline void secure_run(struct talk talk)
{
    janus_http_options options = {.struct_bytes = sizeof options};
    if (talk.options != NULL) options = *talk.options;
    if (tls_server == NULL) tls_server = server_of(own_paper(), NULL);
    if (tls_client == NULL) tls_client = trusting();
    options.wire = janus_tls_server_wire(tls_server);
    talk.options = &options;
    talk_run(&talk);
    janus_tls_server_destroy(tls_server);
    janus_tls_client_destroy(tls_client);
    tls_server = NULL;
    tls_client = NULL;
}

/* "https://127.0.0.1:PORT" and a path. */
static inline const char *secure_url(const struct talk *talk, const char *path, char url[URL_BYTES])
{
    (void)snprintf(url, URL_BYTES, "https://127.0.0.1:%u%s", (unsigned)talk->at.port, path);
    return url;
}

static inline janus_http_client *secure_client(void)
{
    return client_with(JANUS_HTTP_CLIENT_OPTIONS(.wire = janus_tls_client_wire(tls_client)));
}

/* Calls, and reads the whole answer. Returns the body, or NULL and the status. */
static inline char *secure_call(const struct talk *talk, janus_http_client *client,
                                const char *method, const char *path,
                                const janus_http_call_options *options, janus_status *status)
{
    char              url[URL_BYTES], *text = NULL;
    janus_http_reply *reply = NULL;
    size_t            bytes = 0;
    *status = janus_http_call(client, method, secure_url(talk, path, url), options, &reply);
    if (*status != JANUS_OK) return NULL;
    *status = janus_http_reply_read_all(reply, 16 << 20, &text, &bytes);
    janus_http_reply_destroy(reply);
    return text;
}

/* A GET that must give this text. */
static inline void secure_get(const struct talk *talk, janus_http_client *client, const char *path,
                              const char *body)
{
    janus_status status;
    char        *text = secure_call(talk, client, "GET", path, NULL, &status);
    CHECK_EQ(status, JANUS_OK);
    CHECK_STR(text, body);
    janus_free(text);
}

#endif

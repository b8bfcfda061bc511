/* SPDX-License-Identifier: MIT */
/*
 * A server of HTTPS. It reads its certificate again when SIGHUP comes, and drops no connection.
 *
 *     openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
 *         -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
 *         -keyout key.pem -out chain.pem
 *     build/gcc-release/examples/https chain.pem key.pem 127.0.0.1:8443
 *     curl --cacert chain.pem https://localhost:8443/
 */
#include <janusrt/http.h>
#include <janusrt/janus.h>
#include <janusrt/tls.h>
#include <signal.h>
#include <stdio.h>

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, "text/plain", "Hello, over TLS!\n", 17);
}

static int64_t reload_on_signal(void *argument)
{
    uint64_t     count = 0;
    janus_status status = janus_signal_catch(SIGHUP, &count);
    while (status == JANUS_OK) {
        janus_tls_why why;
        status = janus_signal_wait_next(SIGHUP, &count, JANUS_IO_NEVER);
        if (status != JANUS_OK) break;
        bool good = janus_tls_server_reload(argument, NULL, 0, &why) == JANUS_OK;
        (void)printf("%s%s\n", good ? "reloaded" : "not reloaded: ", why.text);
        (void)fflush(stdout);
    }
    return status;
}

static int64_t serve(void *argument)
{
    char                **words = argument;
    janus_tls_certificate own = {.chain_path = words[1], .key_path = words[2]};
    janus_tls_server     *tls = NULL;
    janus_tls_why         why;
    janus_address         at;
    janus_io              listener;
    janus_nursery         helpers;
    char                  text[JANUS_ADDRESS_TEXT_BYTES];
    janus_status          status = janus_tls_server_create(&own, 1, NULL, &tls, &why);
    if (status != JANUS_OK) {
        (void)fprintf(stderr, "%s\n", why.text);
        return status;
    }
    status = janus_address_parse(words[3], &at);
    if (status == JANUS_OK) status = janus_listen(&at, NULL, &listener);
    if (status == JANUS_OK) status = janus_io_local(listener, &at);
    if (status == JANUS_OK) status = janus_nursery_open(&helpers, NULL);
    if (status < JANUS_OK) {
        (void)fprintf(stderr, "cannot listen at %s: %s\n", words[3], janus_status_text(status));
        return status;
    }
    status = janus_spawn(&helpers, reload_on_signal, tls);
    (void)printf("open https://%s/\n", janus_address_text(&at, text, sizeof text));
    (void)fflush(stdout);
    if (status == JANUS_OK)
        status = janus_http_serve(
            listener, greet, NULL,
            JANUS_HTTP_OPTIONS(.wire = janus_tls_server_wire(tls), .stop_on_signals = true));
    JANUS_IGNORE(janus_nursery_cancel(&helpers));
    JANUS_IGNORE(janus_nursery_end(&helpers, NULL));
    janus_tls_server_destroy(tls);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fprintf(stderr, "usage: https CHAIN KEY ADDRESS\n");
        return 2;
    }
    return janus_run(NULL, serve, argv, NULL) == JANUS_OK ? 0 : 1;
}

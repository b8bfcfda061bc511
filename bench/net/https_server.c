/* SPDX-License-Identifier: MIT */
/*
 * Ours, with libjanusrt-tls (protocol.h, mode https). NET_TLS names a folder with cert.pem and
 * key.pem. Everything but the numbers of connections and requests is as by default.
 */
#include "protocol.h"

#include <janusrt/http.h>
#include <janusrt/janus.h>
#include <janusrt/tls.h>

static inline void need(janus_status status, const char *why)
{
    if (status == JANUS_OK) return;
    fprintf(stderr, "janusrt: %s %s\n", janus_status_text(status), why);
    exit(1);
}

static int64_t hello(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, "text/plain", NET_BODY, sizeof NET_BODY - 1);
}

static int64_t serve(void *argument)
{
    const char           *folder = getenv("NET_TLS");
    char                  chain[512], key[512];
    janus_tls_certificate own = {.chain_path = chain, .key_path = key};
    janus_tls_why         why = {.text = ""};
    janus_tls_server     *tls;
    janus_address         at;
    janus_io              listener;
    snprintf(chain, sizeof chain, "%s/cert.pem", folder == NULL ? "." : folder);
    snprintf(key, sizeof key, "%s/key.pem", folder == NULL ? "." : folder);
    need(janus_tls_server_create(&own, 1, NULL, &tls, &why), why.text);
    need(janus_address_parse("127.0.0.1:0", &at), "");
    need(janus_listen(&at, JANUS_LISTEN_OPTIONS(.backlog = NET_BACKLOG), &listener), "");
    need(janus_io_local(listener, &at), "");
    net_announce(at.port, "janusrt", JANUS_VERSION_STRING);
    need(
        janus_http_serve(listener, hello, argument,
                         JANUS_HTTP_OPTIONS(.max_connections = 10000, .max_requests = UINT32_MAX,
                                            .server = "bench", .wire = janus_tls_server_wire(tls))),
        "");
    janus_tls_server_destroy(tls);
    return 0;
}

int main(int argc, char **argv)
{
    struct net_order order = net_order_read(argc, argv);
    need(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = order.workers,
                                           .max_tasks = JANUS_HTTP_TASKS(10000)),
                   serve, NULL, NULL),
         "");
    return 0;
}

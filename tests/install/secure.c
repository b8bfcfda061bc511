/* SPDX-License-Identifier: MIT */
/* Uses the installed library of TLS, beside that of HTTP. */
#include <janusrt/http_client.h>
#include <janusrt/janus.h>
#include <janusrt/tls.h>
#include <stdio.h>

static int64_t call(void *argument)
{
    janus_tls_client  *tls = NULL;
    janus_http_client *client = NULL;
    janus_http_reply  *reply = NULL;
    janus_status       status = janus_tls_client_create(
        JANUS_TLS_CLIENT_OPTIONS(.dangerously_unverified = true), &tls, NULL);
    (void)argument;
    if (status == JANUS_OK)
        status = janus_http_client_create(
            JANUS_HTTP_CLIENT_OPTIONS(.wire = janus_tls_client_wire(tls)), &client);
    if (status != JANUS_OK) return status;
    /* Nobody listens at this port, but the client knows what to do. */
    status = janus_http_call(client, "GET", "https://127.0.0.1:1/", NULL, &reply);
    janus_http_client_destroy(client);
    janus_tls_client_destroy(tls);
    return status == JANUS_REFUSED ? 0 : -100;
}

int main(void)
{
    if (janus_run(NULL, call, NULL, NULL) != JANUS_OK) return 1;
    puts("installed and working");
    return 0;
}

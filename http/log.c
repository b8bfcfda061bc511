/* SPDX-License-Identifier: MIT */
#include "http/server.h"
void         jrt_http_log_request(struct janus_http *http) { (void)http; }
void         jrt_http_log_close(struct jrt_http_server *server) { (void)server; }
void         jrt_http_log_free(struct jrt_http_server *server) { (void)server; }
janus_status jrt_http_log_open(struct jrt_http_server *server, janus_nursery *nursery)
{
    (void)server;
    (void)nursery;
    return JANUS_UNAVAILABLE;
}

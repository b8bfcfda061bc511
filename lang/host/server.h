/* SPDX-License-Identifier: MIT */
/* The prelude's small server of HTTP: code of a host table. */
#ifndef JANUSRT_LANG_HOST_SERVER_H
#define JANUSRT_LANG_HOST_SERVER_H

#include <stdint.h>

int64_t jl_prelude_bind(void *result, const void *const *arguments);
int64_t jl_prelude_server_accept(void *result, const void *const *arguments);
int64_t jl_prelude_connection_read_body(void *result, const void *const *arguments);
int64_t jl_prelude_connection_method(void *result, const void *const *arguments);
int64_t jl_prelude_connection_path(void *result, const void *const *arguments);
int64_t jl_prelude_connection_write_response(void *result, const void *const *arguments);
int64_t jl_prelude_connection_end(void *result, const void *const *arguments);

#endif

/* SPDX-License-Identifier: MIT */
/* The prelude's call that loads a plugin. */
#ifndef JANUSRT_LANG_HOST_PLUGIN_H
#define JANUSRT_LANG_HOST_PLUGIN_H

#include <stdint.h>

/* load_untrusted_plugin(path: str) -> Plugin, code of a host table. */
int64_t jl_prelude_load_plugin(void *result, const void *const *arguments);

#endif

/* SPDX-License-Identifier: MIT */
/* Counted code, as schedulers see it. */
#ifndef JRT_RT_COUNTED_H
#define JRT_RT_COUNTED_H

#include <stdbool.h>

/* The program has counted code: janus_counted_code was called. */
extern _Atomic(bool) jrt_code_is_counted;

#endif

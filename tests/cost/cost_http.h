/* SPDX-License-Identifier: MIT */
/* The walks of cost_http.c, for the table in cost_paths.c. */
#ifndef TESTS_COST_HTTP_H
#define TESTS_COST_HTTP_H

#include <stdint.h>

uint64_t walk_small_head(uint64_t size);
uint64_t walk_large_head(uint64_t size);
uint64_t walk_chunk(uint64_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* How many rounds a long test runs in a slow build. */
#ifndef JANUSRT_TESTS_PART_H
#define JANUSRT_TESTS_PART_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if JRT_DEBUG || JRT_ASAN || JRT_TSAN || defined(__aarch64__) /* the last mostly emulated */
enum { HARNESS_SLOW = 1 };
#else
enum { HARNESS_SLOW = 0 };
#endif

/* Whether `make test-long` runs this. */
static inline bool harness_long(void)
{
    const char *models = getenv("JANUSRT_MODELS");
    return models != NULL && strcmp(models, "long") == 0;
}

/*
 * The number of rounds or schedules. Optimised builds run all of them. Other builds, sanitizers and
 * the emulator run one of `part`, except in `make test-long`.
 */
static inline uint64_t harness_part(uint64_t count, uint64_t part)
{
    return !HARNESS_SLOW || harness_long() ? count : (count + part - 1) / part;
}

#endif

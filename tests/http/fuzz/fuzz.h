/* SPDX-License-Identifier: MIT */
/* What the fuzzers share. libFuzzer calls the function below with bytes that it invents. */
#ifndef TESTS_HTTP_FUZZ_H
#define TESTS_HTTP_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #condition);             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy that ends where its memory ends: a read beyond it is found by AddressSanitizer. */
static inline char *exact_copy(const void *bytes, size_t count)
{
    char *copy = malloc(count > 0 ? count : 1);
    MUST(copy != NULL);
    if (count > 0) memcpy(copy, bytes, count);
    return copy;
}

#endif

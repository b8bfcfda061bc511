/* SPDX-License-Identifier: MIT */
/* Runs all kernels and prints for each its name, its result and its ops. Built without the pass. */
#include "counting.h"

#include <stdio.h>

#define KERNELS(X)                                                                                 \
    X(bignum)                                                                                      \
    X(collatz)                                                                                     \
    X(crc32)                                                                                       \
    X(distance)                                                                                    \
    X(fib)                                                                                         \
    X(hashtable)                                                                                   \
    X(interpreter)                                                                                 \
    X(json)                                                                                        \
    X(lz)                                                                                          \
    X(mandelbrot)                                                                                  \
    X(matmul)                                                                                      \
    X(nbody)                                                                                       \
    X(queens)                                                                                      \
    X(quicksort)                                                                                   \
    X(regex)                                                                                       \
    X(search)                                                                                      \
    X(sha256)                                                                                      \
    X(sieve)                                                                                       \
    X(spectral)                                                                                    \
    X(strings)                                                                                     \
    X(sum)                                                                                         \
    X(tree)

#define X(name) uint64_t kernel_##name(void);
KERNELS(X)
#undef X

static void run(const char *name, uint64_t (*kernel)(void))
{
    uint64_t before = count_spent(), result = kernel();
    printf("%s %llu %llu\n", name, (unsigned long long)result,
           (unsigned long long)(count_spent() - before));
}

int main(void)
{
#define X(name) run(#name, kernel_##name);
    KERNELS(X)
#undef X
    return 0;
}

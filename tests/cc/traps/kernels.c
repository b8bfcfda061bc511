/* SPDX-License-Identifier: MIT */
/* Kernels that make no call, for gcc with loops.h and for the pass. */
#include <stdint.h>

static uint32_t list[4096];

uint64_t kernel_sum(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += list[i & 4095] * i;
    return sum;
}

uint64_t kernel_collatz(uint64_t n)
{
    uint64_t rounds = 0;
    for (uint64_t i = 1; i < n; i++) {
        uint64_t at = i;
        while (at != 1) {
            at = at % 2 == 0 ? at / 2 : at * 3 + 1;
            rounds++;
        }
    }
    return rounds;
}

uint64_t kernel_sieve(uint64_t n)
{
    static uint8_t marked[65536];
    uint64_t       primes = 0;
    for (uint64_t i = 0; i < n; i++) marked[i] = 0;
    for (uint64_t i = 2; i < n; i++) {
        if (marked[i]) continue;
        primes++;
        for (uint64_t j = i * i; j < n; j += i) marked[j] = 1;
    }
    return primes;
}

uint64_t kernel_do(uint64_t n)
{
    uint64_t i = 0, sum = 0;
    do {
        uint64_t j = 0;
        do sum += i ^ j;
        while (++j < 5);
    } while (++i < n);
    return sum;
}

uint64_t kernel_continue(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t j = 0; j <= i % 17; j++) {
            if (j % 3 == 1) continue;
            sum += j;
        }
    }
    return sum;
}

uint64_t kernel_matrix(uint64_t n)
{
    static double a[64][64], b[64][64];
    double        sum = 0;
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < n; j++) {
            double cell = 0;
            for (uint64_t k = 0; k < n; k++) cell += a[i][k] * b[k][j] + 1;
            sum += cell;
        }
    return (uint64_t)sum;
}

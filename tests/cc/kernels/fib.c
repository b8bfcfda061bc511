/* SPDX-License-Identifier: MIT */
#include "kernel.h"
static uint64_t fib(uint64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
uint64_t        kernel(void)
{
    volatile uint64_t n = ROUNDS(35, 20);
    return fib(n);
}

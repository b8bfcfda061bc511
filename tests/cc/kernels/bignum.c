/* SPDX-License-Identifier: MIT */
/* Factorials in base 2^32: do-while loops with carries, memmove and memset of changing lengths. */
#include "kernel.h"

struct number {
    uint32_t digits[600];
    size_t   used;
};

static void multiply(struct number *n, uint32_t by)
{
    uint64_t carry = 0;
    size_t   i = 0;
    do {
        carry += (uint64_t)n->digits[i] * by;
        n->digits[i] = (uint32_t)carry;
        carry >>= 32;
    } while (++i < n->used);
    if (carry > 0) n->digits[n->used++] = (uint32_t)carry;
}

static void shift(struct number *n)
{
    memmove(n->digits + 1, n->digits, n->used * sizeof n->digits[0]);
    n->digits[0] = 1;
    n->used++;
}

uint64_t kernel(void)
{
    static struct number n;
    uint64_t             sum = 0;
    for (int r = 0; r < ROUNDS(30, 1); r++) {
        memset(n.digits, 0, n.used * sizeof n.digits[0]);
        n.digits[0] = 1;
        n.used = 1;
        for (uint32_t i = 2; i < ROUNDS(1200, 200); i++) {
            multiply(&n, i);
            if (i % 16 == 0) shift(&n);
        }
        for (size_t i = 0; i < n.used; i++) sum = sum * 31 + n.digits[i];
    }
    return sum;
}

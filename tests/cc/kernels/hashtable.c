/* SPDX-License-Identifier: MIT */
#include "kernel.h"
struct entry {
    uint64_t key, value;
};
struct table {
    struct entry *e;
    size_t        mask, used;
};
static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    return x;
}
static struct entry *slot(struct table *t, uint64_t key)
{
    size_t i = mix(key) & t->mask;
    while (t->e[i].key != 0 && t->e[i].key != key) i = (i + 1) & t->mask;
    return &t->e[i];
}
static void grow(struct table *t)
{
    struct table n = {calloc((t->mask + 1) * 2, sizeof *t->e), t->mask * 2 + 1, t->used};
    for (size_t i = 0; i <= t->mask; i++)
        if (t->e[i].key) *slot(&n, t->e[i].key) = t->e[i];
    free(t->e);
    *t = n;
}
static void put(struct table *t, uint64_t key, uint64_t value)
{
    struct entry *e = slot(t, key);
    if (e->key == 0) {
        if (t->used * 4 > t->mask * 3) {
            grow(t);
            e = slot(t, key);
        }
        e->key = key;
        t->used++;
    }
    e->value += value;
}
uint64_t kernel(void)
{
    struct table t = {calloc(16, sizeof *t.e), 15, 0};
    uint64_t     s = 1234567, sum = 0;
    for (int i = 0; i < ROUNDS(2000000, 20000); i++)
        put(&t, (random_next(&s) & 0xffff) + 1, (uint64_t)i);
    for (uint64_t k = 1; k <= ROUNDS(65536, 4096); k++) sum = sum * 3 + slot(&t, k)->value;
    free(t.e);
    return sum;
}

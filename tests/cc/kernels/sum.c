/* SPDX-License-Identifier: MIT */
#include "kernel.h"
static float dot(const float *a, const float *b, long n)
{
    float s = 0;
    for (long i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}
static uint32_t total(const uint32_t *v, long n)
{
    uint32_t s = 0;
    for (long i = 0; i < n; i++) s += v[i] * v[i];
    return s;
}
static void axpy(float *y, const float *x, float a, long n)
{
    for (long i = 0; i < n; i++) y[i] += a * x[i];
}
uint64_t kernel(void)
{
    enum { N = 8192 };
    static float    a[N], b[N];
    static uint32_t v[N];
    for (long i = 0; i < N; i++) {
        a[i] = (float)(i % 7);
        b[i] = 0.5f;
        v[i] = (uint32_t)i;
    }
    uint64_t s = 0;
    float    f = 0;
    for (int r = 0; r < ROUNDS(8000, 20); r++) {
        v[r % N]++;
        s += total(v, N);
        axpy(b, a, 0.0001f, N);
        if (r % 16 == 0) f += dot(a, b, N);
    }
    return s + (uint64_t)f;
}

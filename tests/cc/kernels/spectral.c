/* SPDX-License-Identifier: MIT */
#include "kernel.h"
#include <math.h>
enum { N = ROUNDS(700, 60) };
static double A(int i, int j) { return 1.0 / ((i + j) * (i + j + 1) / 2 + i + 1); }
static void   mulAv(const double *v, double *o)
{
    for (int i = 0; i < N; i++) {
        double s = 0;
        for (int j = 0; j < N; j++) s += A(i, j) * v[j];
        o[i] = s;
    }
}
static void mulAtv(const double *v, double *o)
{
    for (int i = 0; i < N; i++) {
        double s = 0;
        for (int j = 0; j < N; j++) s += A(j, i) * v[j];
        o[i] = s;
    }
}
uint64_t kernel(void)
{
    static double u[N], v[N], t[N];
    for (int i = 0; i < N; i++) u[i] = 1;
    for (int r = 0; r < ROUNDS(25, 2); r++) {
        mulAv(u, t);
        mulAtv(t, v);
        mulAv(v, t);
        mulAtv(t, u);
    }
    double a = 0, b = 0;
    for (int i = 0; i < N; i++) {
        a += u[i] * v[i];
        b += v[i] * v[i];
    }
    return (uint64_t)(sqrt(a / b) * 1e9);
}

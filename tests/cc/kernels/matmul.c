/* SPDX-License-Identifier: MIT */
#include "kernel.h"
enum { N = ROUNDS(320, 40) };
static double a[N][N], b[N][N], c[N][N];
uint64_t      kernel(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = i + j;
            b[i][j] = i - j;
            c[i][j] = 0;
        }
    for (int r = 0; r < ROUNDS(4, 2); r++)
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++)
                for (int j = 0; j < N; j++) c[i][j] += a[i][k] * b[k][j];
    return (uint64_t)(int64_t)c[17][33];
}

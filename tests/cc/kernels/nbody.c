/* SPDX-License-Identifier: MIT */
#include "kernel.h"
#include <math.h>
struct body {
    double x[3], v[3], m;
};
static struct body b[5];
static void        step(double dt)
{
    for (int i = 0; i < 5; i++)
        for (int j = i + 1; j < 5; j++) {
            double d[3], d2 = 0;
            for (int k = 0; k < 3; k++) {
                d[k] = b[i].x[k] - b[j].x[k];
                d2 += d[k] * d[k];
            }
            double mag = dt / (d2 * sqrt(d2));
            for (int k = 0; k < 3; k++) {
                b[i].v[k] -= d[k] * b[j].m * mag;
                b[j].v[k] += d[k] * b[i].m * mag;
            }
        }
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 3; k++) b[i].x[k] += dt * b[i].v[k];
}
uint64_t kernel(void)
{
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 3; k++) {
            b[i].x[k] = i * 1.7 + k;
            b[i].v[k] = 0.1 * (i - k);
        }
        b[i].m = 1 + 0.5 * i;
    }
    for (int i = 0; i < ROUNDS(800000, 2000); i++) step(0.0001);
    return (uint64_t)(int64_t)(b[2].x[1] * 1e6);
}

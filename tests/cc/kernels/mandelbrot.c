/* SPDX-License-Identifier: MIT */
#include "kernel.h"
uint64_t kernel(void)
{
    uint64_t sum = 0;
    for (int y = 0; y < ROUNDS(400, 20); y++)
        for (int x = 0; x < 400; x++) {
            double cr = x * 3.0 / 400 - 2, ci = y * 2.4 / 400 - 1.2, zr = 0, zi = 0;
            int    n = 0;
            while (n < 200 && zr * zr + zi * zi < 4) {
                double t = zr * zr - zi * zi + cr;
                zi = 2 * zr * zi + ci;
                zr = t;
                n++;
            }
            sum += (uint64_t)n;
        }
    return sum;
}

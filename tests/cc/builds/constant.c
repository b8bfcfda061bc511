/* SPDX-License-Identifier: MIT */
/* What the compiler knows differs between levels; the way that the program takes must not. */
#include <stdio.h>

__attribute__((noinline)) static int slow(int x) { return x * 3; }

static inline int triple(int x) { return __builtin_constant_p(x) ? x * 3 : slow(x); }

int main(void)
{
    int sum = 0;
    for (int i = 0; i < 100; i++) sum += triple(7);
    printf("%d\n", sum);
    return 0;
}

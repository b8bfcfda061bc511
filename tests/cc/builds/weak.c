/* SPDX-License-Identifier: MIT */
/* A weak function without loops that weak_other.c replaces, and a function that only calls the
 * runtime, which runs other code. */
#include <stdio.h>

long janus_other(void);

__attribute__((weak)) void hook(int rounds) { (void)rounds; }

__attribute__((noinline)) static long relay(void) { return janus_other(); }

int main(void)
{
    long sum = 0;
    for (int i = 0; i < 3000; i++) hook(i);
    for (int i = 0; i < 3000; i++) sum += relay();
    printf("%ld\n", sum);
    return 0;
}

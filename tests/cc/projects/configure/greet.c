/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>

void greet(long number);

void greet(long number)
{
    long sum = 0;
    for (long i = 0; i < number; i++) sum += i;
    printf("%s %ld\n", GREETING, sum);
}

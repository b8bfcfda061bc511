/* SPDX-License-Identifier: MIT */
/* See weak.c. */
static volatile long touched;

void hook(int rounds);
long janus_other(void);

void hook(int rounds)
{
    for (int i = 0; i < rounds % 10; i++) touched++;
}

long janus_other(void)
{
    for (int i = 0; i < 4; i++) touched++;
    return 1;
}

/* SPDX-License-Identifier: MIT */
/* Backtracking matcher in the manner of Pike: c . * + ? ^ $ */
#include "kernel.h"
static int here(const char *re, const char *t);
static int star(int c, const char *re, const char *t)
{
    const char *p;
    for (p = t; *p && (*p == c || c == '.'); p++);
    do
        if (here(re, p)) return 1;
    while (p-- > t);
    return 0;
}
static int here(const char *re, const char *t)
{
    if (re[0] == 0) return 1;
    if (re[1] == '*') return star(re[0], re + 2, t);
    if (re[1] == '+') return (*t && (*t == re[0] || re[0] == '.')) && star(re[0], re + 2, t + 1);
    if (re[1] == '?')
        return (*t && (*t == re[0] || re[0] == '.') && here(re + 2, t + 1)) || here(re + 2, t);
    if (re[0] == '$' && re[1] == 0) return *t == 0;
    if (*t && (re[0] == '.' || re[0] == *t)) return here(re + 1, t + 1);
    return 0;
}
static int match(const char *re, const char *t)
{
    if (re[0] == '^') return here(re + 1, t);
    do
        if (here(re, t)) return 1;
    while (*t++);
    return 0;
}
uint64_t kernel(void)
{
    static char        line[ROUNDS(40000, 400)][48];
    static const char *res[] = {"a.*b.*c$", "^x?y+z*", "ab*c+d", "e.?f.*gh", "a*a*a*b"};
    uint64_t           s = 3, sum = 0;
    for (int i = 0; i < ROUNDS(40000, 400); i++)
        for (int k = 0; k < 47; k++) line[i][k] = (char)('a' + random_next(&s) % 8);
    for (int r = 0; r < 5; r++)
        for (int i = 0; i < ROUNDS(40000, 400); i++) sum += (uint64_t)match(res[r], line[i]) << r;
    return sum;
}

/* SPDX-License-Identifier: MIT */
#include "count.h"

#include <math.h>
#include <stdio.h>

int main(void)
{
    char   line[4096];
    size_t words = 0, lines = 0;
    while (fgets(line, sizeof line, stdin) != NULL) {
        words += count_words(line);
        lines++;
    }
    printf("%zu words, %zu lines, root %.0f\n", words, lines, sqrt((double)words));
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Compares the ops of each small program with the number beside it. Built without the pass. */
#include "exact.h"

#include "counting.h"

#include <stdio.h>

int main(void)
{
    int wrong = 0;
    for (unsigned i = 0; i < exact_count; i++) {
        const struct exact *one = &exact_cases[i];
        uint64_t            before = count_spent();
        one->run(one->n);
        uint64_t ops = count_spent() - before;
        if (one->ops == EXACT_PRINT) {
            printf("%s %llu %llu\n", one->name, (unsigned long long)one->n,
                   (unsigned long long)ops);
            continue;
        }
        if (ops >= one->ops && ops - one->ops <= one->ahead) continue;
        printf("%s, n = %llu: %llu ops, should be %llu\n", one->name, (unsigned long long)one->n,
               (unsigned long long)ops, (unsigned long long)one->ops);
        wrong++;
    }
    printf("%u cases, %d wrong\n", exact_count, wrong);
    return wrong > 0;
}

/* SPDX-License-Identifier: MIT */
/* Small programs whose ops can be counted by hand. */
#ifndef EXACT_H
#define EXACT_H

#include <stdint.h>

#define EXACT_PRINT UINT64_MAX

struct exact {
    const char *name;
    void        (*run)(uint64_t n);
    uint64_t    n, ops;
    uint64_t    ahead; /* ops paid ahead that a longjmp may leave behind */
};

#ifdef __cplusplus
extern "C" {
#endif

extern const struct exact exact_cases[];
extern const unsigned     exact_count;

#ifdef __cplusplus
}
#endif

#endif

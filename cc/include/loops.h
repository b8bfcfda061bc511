/* SPDX-License-Identifier: MIT */
/*
 * For compilers without the pass: gcc -include loops.h makes each round of for, while and do pay
 * one operation, as `janusrt cc` counts them. n rounds of for and while pay n, n rounds of do pay
 * n - 1. A round that ends with a break pays here, too, because a macro pays when a round begins.
 * Not covered: calls, goto, recursion, memcpy and locks. No loop is vectorised. C only.
 */
#ifndef JANUSRT_LOOPS_H
#define JANUSRT_LOOPS_H
#pragma GCC system_header /* programs that compile without warnings still do */

/* Before the macros, so that these headers stay as they are. */
#include <ctype.h>
#include <janusrt/yield.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define while(...) while ((__VA_ARGS__) && (janus_check_or_end(1), 1))
#define for(...)                                                                                   \
    for (__VA_ARGS__)                                                                              \
        if (janus_check_or_end(1), 0) {                                                            \
        } else
#endif

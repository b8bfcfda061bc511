// SPDX-License-Identifier: MIT
// Exceptions and destructors, each with its number of ops. Built with the pass.
#include "exact.h"

#include "counting.h"

#include <string>
#include <vector>

static volatile uint64_t sink;

[[gnu::noinline]] static void thrower(uint64_t n) { throw n; } // 2: allocate, throw

static void catches(uint64_t n) // a round: edge, call, 2 in the call, begin_catch, end_catch
{
    for (uint64_t i = 0; i < n; i++) {
        try {
            thrower(i);
        } catch (uint64_t value) {
            sink = value;
        }
    }
}

struct Guard {
    [[gnu::noinline]] ~Guard() { sink = 1; }
};

[[gnu::noinline]] static void throughCleanup(uint64_t n) // call, 2 in it, destructor, its base
{
    Guard guard;
    thrower(n);
    sink = 2; // not reached
}

static void cleans(uint64_t n) // a round: edge, call, 5 in it, begin_catch, end_catch
{
    for (uint64_t i = 0; i < n; i++) {
        try {
            throughCleanup(i);
        } catch (...) {
            sink = i;
        }
    }
}

[[gnu::noinline]] static void maybe(uint64_t n)
{
    if (n % 2 == 0) throw 1;
    sink = n;
}

[[gnu::noinline]] static void stretch(uint64_t n) // calls behind a call that may throw
{
    maybe(n); // 1, and 2 if even
    maybe(n + 2);
    maybe(n + 4);
}

static void stretches(uint64_t n) // n = 0: stretch 1, its call 1, throw 2, catch 2; n = 1: 1, 3
{
    try {
        stretch(n);
    } catch (int) {
        sink = 3;
    }
}

static void retries(uint64_t n) // `goto` out of a handler
{
again:
    try {
        if (n > 0) thrower(n);
    } catch (uint64_t) {
        n--;
        goto again;
    }
}

static void vectors(uint64_t n) // the same count in every build; the sum has no meaning
{
    std::vector<uint64_t> all;
    for (uint64_t i = 0; i < n; i++) all.push_back(i);
    std::string text;
    for (uint64_t i : all) text += (char)('a' + i % 26);
    sink = text.size();
}

extern "C" const struct exact exact_cases[] = {
    {"catches", catches, 100, 600, 0},         {"cleans", cleans, 100, 900, 0},
    {"stretches", stretches, 0, 6, 0},         {"stretches", stretches, 1, 4, 0},
    {"retries", retries, 100, 600, 0},         {"vectors", vectors, 0, EXACT_PRINT, 0},
    {"vectors", vectors, 100, EXACT_PRINT, 0},
};
extern "C" const unsigned exact_count = sizeof exact_cases / sizeof exact_cases[0];

/* SPDX-License-Identifier: MIT */
/* "Did you mean": the nearest name by edit distance. */
#include "meaning/check.h"

#include <string.h>

enum { LENGTH_MAX = 40 };

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Inserted, removed, replaced letters, and swapped neighbours, cost 1 each. */
static unsigned distance(const char *left, const char *right, unsigned limit)
{
    size_t   n = strlen(left), m = strlen(right);
    unsigned rows[3][LENGTH_MAX + 1];
    if (n > LENGTH_MAX || m > LENGTH_MAX || (n > m ? n - m : m - n) > limit) return limit + 1;
    for (unsigned j = 0; j <= m; j++) rows[0][j] = j;
    for (unsigned i = 1; i <= n; i++) {
        unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (unsigned j = 1; j <= m; j++) {
            unsigned differs = left[i - 1] != right[j - 1];
            now[j] = least(last[j] + 1, now[j - 1] + 1, last[j - 1] + differs);
            bool swapped =
                i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
            if (swapped && before[j - 2] + 1 < now[j]) now[j] = before[j - 2] + 1;
        }
    }
    return rows[n % 3][m];
}

struct jl_guess jl_guess_of(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    return (struct jl_guess){name, NULL, length < 3 ? 1 : length < 6 ? 2 : 3};
}

void jl_guess(struct jl_guess *guess, const char *candidate)
{
    if (!guess->name || !candidate || guess->distance == 1) return;
    unsigned found = distance(guess->name, candidate, guess->distance - 1);
    if (found >= guess->distance) return;
    guess->distance = found;
    guess->best = candidate;
}

const char *jl_suggest_name(struct jl_checker *c, const char *name)
{
    if (c->diagnostics->errors >= JL_DIAGNOSTICS_MAX) return NULL;
    struct jl_guess guess = jl_guess_of(name);
    for (uint32_t i = c->binding_count; i-- > 0;) jl_guess(&guess, c->bindings[i].name);
    return guess.best;
}

const char *jl_did_you_mean(struct jl_checker *c, const char *best)
{
    return best ? jl_format(c->arena, "did you mean `%.60s`?", best) : NULL;
}

/* Types of other languages, and what is nearest in Janus. */
const char *jl_own_type(const char *name)
{
    static const char *const types[][2] = {
        {"int", "i64"},    {"integer", "i64"},  {"long", "i64"},  {"short", "i16"},
        {"uint", "u64"},   {"usize", "i64"},    {"isize", "i64"}, {"size_t", "i64"},
        {"float", "f64"},  {"double", "f64"},   {"f32", "f64"},   {"number", "f64"},
        {"string", "str"}, {"String", "str"},   {"text", "str"},  {"char", "u8"},
        {"byte", "u8"},    {"boolean", "bool"}, {"Bool", "bool"}, {"Int", "i64"},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i][0], name)) return types[i][1];
    return NULL;
}

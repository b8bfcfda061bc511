/* SPDX-License-Identifier: MIT */
#include "count.h"

#include <ctype.h>
#include <stdbool.h>

size_t count_words(const char *line)
{
    size_t words = 0;
    bool   inside = false;
    for (; *line != '\0'; line++) {
        bool letter = isspace((unsigned char)*line) == 0;
        if (letter && !inside) words++;
        inside = letter;
    }
    return words;
}

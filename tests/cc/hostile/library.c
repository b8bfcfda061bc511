/* SPDX-License-Identifier: MIT */
/* Long calls of the C library, locks and signals. */
#include "hostile.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BIG = 1 << 22, TEXT = 1 << 20 };

static char big[BIG], other[BIG]; /* other is a copy of big */

static uint64_t memset_giants(uint64_t n) /* 65,536 ops each, and some */
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        memset(big, (int)i, (size_t)BIG - (size_t)hostile_zero);
        sum = sum * 3 + (uint8_t)big[i];
        TICK();
    }
    return sum;
}

static uint64_t memcpy_giants(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        other[i] = (char)i;
        memcpy(big, other, (size_t)BIG - (size_t)hostile_zero);
        sum = sum * 3 + (uint8_t)big[i];
        TICK();
    }
    return sum;
}

static uint64_t memmove_giants(uint64_t n)
{
    memset(big, 3, BIG);
    for (uint64_t i = 0; i < n; i++) {
        big[0] = (char)i;
        memmove(big + 1, big, (size_t)BIG - 1 - (size_t)hostile_zero);
    }
    uint64_t sum = 0;
    for (int i = 0; i < 64; i++) sum = sum * 3 + (uint8_t)big[i];
    return sum;
}

static void fill_text(void)
{
    memset(big, 'a', TEXT);
    memset(other, 'a', TEXT);
    big[TEXT] = other[TEXT] = 0;
}

static uint64_t lengths(uint64_t n)
{
    uint64_t sum = 0;
    fill_text();
    for (uint64_t i = 0; i < n; i++) sum += strlen(big + i);
    return sum;
}

static uint64_t comparisons(uint64_t n)
{
    uint64_t sum = 0;
    fill_text();
    for (uint64_t i = 0; i < n; i++) {
        sum += (uint64_t)(strcmp(big, other) == 0);
        sum += (uint64_t)(memcmp(big + i, other, (size_t)TEXT - i) == 0);
    }
    return sum;
}

static uint64_t searched_bytes(uint64_t n)
{
    uint64_t sum = 0;
    fill_text();
    for (uint64_t i = 0; i < n; i++) {
        const char *at = strchr(big + i, 'b');
        sum += at == NULL;
        at = memchr(big, 0, (size_t)TEXT + 1 - (size_t)hostile_zero);
        sum += (uint64_t)(at - big);
    }
    return sum;
}

static uint64_t needles(uint64_t n)
{
    uint64_t sum = 0;
    char     needle[200];
    fill_text();
    memset(needle, 'a', sizeof needle);
    needle[sizeof needle - 2] = 'b';
    needle[sizeof needle - 1] = 0;
    for (uint64_t i = 0; i < n; i++) sum += strstr(big + TEXT - 65536 + i, needle) == NULL;
    return sum;
}

static uint64_t copies(uint64_t n)
{
    uint64_t sum = 0;
    fill_text();
    for (uint64_t i = 0; i < n; i++) {
        other[0] = (char)('a' + i % 20);
        strcpy(big, other);
        sum = sum * 3 + (uint8_t)big[0];
    }
    return sum;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    TICK();
    return x < y ? -1 : x > y;
}

static uint64_t sorts(uint64_t n)
{
    static uint32_t list[70000];
    uint64_t        sum = 0;
    for (uint64_t i = 0; i < n; i++) list[i] = (uint32_t)i * 2654435761u;
    qsort(list, (size_t)n, sizeof list[0], compare);
    for (uint64_t i = 0; i < n; i++) sum = sum * 3 + list[i];
    return sum;
}

static int compare_with(const void *a, const void *b, void *argument)
{
    uint32_t x = *(const uint32_t *)a % 1009, y = *(const uint32_t *)b % 1009;
    *(uint64_t *)argument += 1;
    return x < y ? -1 : x > y;
}

static uint64_t sorts_equal(uint64_t n) /* many are equal */
{
    static uint32_t list[70000];
    uint64_t        sum = 0, calls = 0;
    for (uint64_t i = 0; i < n; i++) list[i] = (uint32_t)i * 2654435761u;
    qsort_r(list, (size_t)n, sizeof list[0], compare_with, &calls);
    for (uint64_t i = 0; i < n; i++) sum = sum * 3 + list[i] % 1009;
    return sum;
}

static uint64_t allocations(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t *block = malloc(16 + i % 1000);
        if (block == NULL) return 0;
        *block = i;
        sum += *block;
        free(block);
    }
    return sum;
}

static uint64_t prints(uint64_t n)
{
    char     text[64];
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        int length = snprintf(text, sizeof text, "%d of %d", (int)i, (int)n);
        for (int j = 0; j < length; j++) sum = sum * 3 + (uint8_t)text[j];
    }
    return sum;
}

static uint64_t tokens(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        char  text[] = "one two three four", *rest = text;
        char *word;
        while ((word = strtok_r(rest, " ", &rest)) != NULL) sum = sum * 3 + (uint8_t)word[0];
    }
    return sum;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t locks(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        pthread_mutex_lock(&lock);
        for (uint64_t j = 0; j < 200; j++) sum = sum * 3 + j;
        pthread_mutex_unlock(&lock);
    }
    return sum;
}

static uint64_t streams(uint64_t n)
{
    FILE    *file = tmpfile();
    uint64_t sum = 0;
    if (file == NULL) return 0;
    for (uint64_t i = 0; i < n; i++) {
        flockfile(file);
        for (int j = 0; j < 100; j++) putc_unlocked('a' + j % 26, file);
        funlockfile(file);
        fputs("line\n", file);
    }
    sum = (uint64_t)ftell(file);
    fclose(file);
    return sum;
}

static volatile sig_atomic_t caught;
NO_OPS static void           on_signal(int number)
{
    (void)number;
    for (int i = 0; i < 100; i++) caught = caught + 1;
}

static uint64_t signals(uint64_t n)
{
    struct sigaction action = {0}, before;
    uint64_t         sum = 0;
    caught = 0;
    action.sa_handler = on_signal;
    sigaction(SIGSYS, &action, &before); /* workers do not block it */
    for (uint64_t i = 0; i < n; i++) {
        raise(SIGSYS);
        for (uint64_t j = 0; j < 500; j++) sum = sum * 3 + j;
    }
    sigaction(SIGSYS, &before, NULL);
    return sum + (uint64_t)caught;
}

static uint64_t errors(uint64_t n)
{
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < n; i++) {
        errno = (int)(i & 1023);
        for (int j = 0; j < 10; j++) TICK();
        wrong += errno != (int)(i & 1023);
    }
    return wrong;
}

static uint64_t numbers(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        char text[24];
        for (int j = 0; j < 20; j++) text[j] = (char)('0' + (i + (uint64_t)j) % 10);
        text[20] = 0;
        sum += (uint64_t)strtol(text + 5, NULL, 10) + (uint64_t)atoi(text + 14);
    }
    return sum;
}

const struct hostile hostile_library[] = {
    {"memset_giants", memset_giants, 30, 65536},
    {"memcpy_giants", memcpy_giants, 30, 65536},
    {"memmove_giants", memmove_giants, 30, 0},
    {"lengths", lengths, 150, 0},
    {"comparisons", comparisons, 60, 0},
    {"searched_bytes", searched_bytes, 60, 0},
    {"needles", needles, 1300, 0},
    {"copies", copies, 80, 0},
    {"sorts", sorts, 70000, 1},
    {"sorts_equal", sorts_equal, 70000, 0},
    {"allocations", allocations, 500000, 0},
    {"prints", prints, 100000, 0},
    {"tokens", tokens, 150000, 0},
    {"locks", locks, 6000, 0},
    {"streams", streams, 10000, 0},
    {"signals", signals, 3000, 0},
    {"errors", errors, 130000, 1},
    {"numbers", numbers, 60000, 0},
    {0},
};

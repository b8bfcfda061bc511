/* SPDX-License-Identifier: MIT */
/*
 * qsort and bsearch. Each call of the comparison pays one op, and each merge pays for its moves. A
 * task may yield, or end, inside a comparison.
 *
 * The sort is stable, as glibc's is in practice: programs rely on it. It merges, with a buffer for
 * half of the elements. If there is no memory for the buffer, it sorts by a heap instead, which is
 * not stable; glibc does likewise.
 */
#include "cc/support/support.h"

#include <janusrt/task.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 1024 };

typedef int compare_function(const void *, const void *);
typedef int compare_with_function(const void *, const void *, void *);

void  janus_cc_qsort(void *base, size_t count, size_t size, compare_function *compare);
void  janus_cc_qsort_r(void *base, size_t count, size_t size, compare_with_function *compare,
                       void *argument);
void *janus_cc_bsearch(const void *key, const void *base, size_t count, size_t size,
                       compare_function *compare);

struct sort {
    size_t                 size;
    compare_with_function *compare;
    void                  *argument;
    char                  *buffer;
};

static int compare(const struct sort *sort, const void *one, const void *other)
{
    janus_op(1);
    return sort->compare(one, other, sort->argument);
}

static void move(const struct sort *sort, char *to, const char *from)
{
    if (sort->size == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else if (sort->size == sizeof(uint32_t))
        memcpy(to, from, sizeof(uint32_t));
    else
        memcpy(to, from, sort->size);
}

/* Joins two sorted neighbours. The left one moves to the buffer. */
static void merge(const struct sort *sort, char *base, size_t left, size_t right)
{
    size_t size = sort->size;
    char  *from = sort->buffer, *from_end = from + left * size;
    char  *other = base + left * size, *other_end = other + right * size, *to = base;
    if (compare(sort, other - size, other) <= 0) return; /* sorted already */
    pay_bytes((left + right) * size);
    memcpy(from, base, left * size);
    while (from < from_end && other < other_end) {
        bool later = compare(sort, from, other) > 0;
        move(sort, to, later ? other : from);
        if (later)
            other += size;
        else
            from += size;
        to += size;
    }
    memcpy(to, from, (size_t)(from_end - from));
}

static void sort_range(const struct sort *sort, char *base, size_t count)
{
    if (count < 2) return;
    size_t left = count / 2;
    sort_range(sort, base, left);
    sort_range(sort, base + left * sort->size, count - left);
    merge(sort, base, left, count - left);
}

static void swap(char *one, char *other, size_t size)
{
    for (; size > 0; size--, one++, other++) {
        char byte = *one;
        *one = *other;
        *other = byte;
    }
}

static void sink(const struct sort *sort, char *base, size_t at, size_t count)
{
    size_t size = sort->size;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count &&
            compare(sort, base + child * size, base + (child + 1) * size) < 0) {
            child++;
        }
        if (compare(sort, base + at * size, base + child * size) >= 0) return;
        pay_bytes(size);
        swap(base + at * size, base + child * size, size);
    }
}

static void sort_by_heap(const struct sort *sort, char *base, size_t count)
{
    for (size_t at = count / 2; at-- > 0;) sink(sort, base, at, count);
    for (size_t last = count - 1; last > 0; last--) {
        swap(base, base + last * sort->size, sort->size);
        sink(sort, base, 0, last);
    }
}

/* The task may end inside a comparison: then a defer frees the buffer. */
static char *take_buffer(size_t bytes, bool *deferred)
{
    char *buffer = malloc(bytes);
    if (buffer == NULL) return NULL;
    janus_status status = janus_defer(free, buffer);
    *deferred = status == JANUS_OK;
    if (status == JANUS_OK || status == JANUS_STATE) return buffer; /* STATE: not in a task */
    free(buffer);
    return NULL;
}

void janus_cc_qsort_r(void *base, size_t count, size_t size, compare_with_function *function,
                      void *argument)
{
    struct sort sort = {size, function, argument, NULL};
    char        small[STACK_BYTES] __attribute__((aligned(16)));
    bool        deferred = false;
    if (count < 2 || size == 0) return;
    size_t bytes = count / 2 * size;
    sort.buffer = bytes <= sizeof small ? small : take_buffer(bytes, &deferred);
    if (sort.buffer == NULL) {
        sort_by_heap(&sort, base, count);
        return;
    }
    sort_range(&sort, base, count);
    if (sort.buffer == small) return;
    if (deferred) JANUS_IGNORE(janus_undefer(free, sort.buffer));
    free(sort.buffer);
}

static int compare_plain(const void *one, const void *other, void *argument)
{
    return (*(compare_function **)argument)(one, other);
}

void janus_cc_qsort(void *base, size_t count, size_t size, compare_function *function)
{
    janus_cc_qsort_r(base, count, size, compare_plain, (void *)&function);
}

void *janus_cc_bsearch(const void *key, const void *base, size_t count, size_t size,
                       compare_function *function)
{
    const char *low = base;
    while (count > 0) {
        const char *middle = low + count / 2 * size;
        janus_op(1);
        int order = function(key, middle);
        if (order == 0) return (void *)middle;
        if (order > 0) {
            low = middle + size;
            count = count - count / 2 - 1;
        } else {
            count /= 2;
        }
    }
    return NULL;
}

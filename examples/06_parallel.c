/* SPDX-License-Identifier: MIT */
/*
 * Data parallelism: the program fills an array, sorts it and adds it up, with janus_for, janus_both
 * and janus_reduce. Idle workers take parts of the work; one worker alone runs it as plain calls.
 */
#include <janusrt/janus.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 200000, SMALL = 500 };

static uint32_t numbers[COUNT], spare[COUNT];

/* Fills one range of the array. It is a plain loop, so the compiler may vectorise it. */
static int64_t fill(void *argument, uint64_t begin, uint64_t end)
{
    uint32_t *to = argument;
    for (uint64_t i = begin; i < end; i++) to[i] = (uint32_t)i * 2654435761u;
    return 0;
}

struct part {
    uint32_t *from, *spare;
    size_t    count;
};

static int compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static void merge(const struct part *left, const struct part *right, uint32_t *to)
{
    size_t l = 0, r = 0;
    while (l < left->count || r < right->count) {
        bool from_left = r == right->count || (l < left->count && left->from[l] <= right->from[r]);
        *to++ = from_left ? left->from[l++] : right->from[r++];
    }
}

/* Sorts on one worker and on many: janus_both decides which worker runs which half. */
static int64_t sort(void *argument)
{
    struct part *part = argument;
    size_t       half = part->count / 2;
    if (part->count <= SMALL) {
        qsort(part->from, part->count, sizeof *part->from, compare);
        return 0;
    }
    struct part left = {part->from, part->spare, half};
    struct part right = {part->from + half, part->spare + half, part->count - half};
    int64_t     status = janus_both(sort, &left, sort, &right);
    if (status < 0) return status;
    merge(&left, &right, part->spare);
    for (size_t i = 0; i < part->count; i++) part->from[i] = part->spare[i];
    return 0;
}

static int64_t is_sorted(void *argument, uint64_t begin, uint64_t end)
{
    const uint32_t *at = argument;
    for (uint64_t i = begin; i < end; i++) {
        if (at[i] > at[i + 1]) return -100;
    }
    return 0;
}

/*
 * Rounding makes this sum depend on the order of additions. janus_reduce derives that order from
 * the range alone, so every run gets the same sum.
 */
static int64_t add(void *argument, uint64_t begin, uint64_t end, void *value)
{
    const uint32_t *at = argument;
    for (uint64_t i = begin; i < end; i++) *(double *)value += 1.0 / (1.0 + at[i]);
    return 0;
}

static int64_t plus(void *argument, void *value, const void *right)
{
    (void)argument;
    *(double *)value += *(const double *)right;
    return 0;
}

static int64_t check_thousands(void *argument, uint64_t begin, uint64_t end)
{
    (void)argument, (void)end;
    return begin == 7000 ? -107 : 0;
}

static int64_t first_task(void *argument)
{
    struct part            all = {numbers, spare, COUNT};
    janus_parallel_failure failure;
    double                 sum = 0, again = 0;
    (void)argument;

    int64_t status = janus_for(janus_range_of(0, COUNT), fill, numbers);
    if (status == 0) status = sort(&all);
    if (status == 0) status = janus_for(janus_range_of(0, COUNT - 1), is_sorted, numbers);
    if (status < 0) return status;
    printf("%d numbers are sorted\n", COUNT);

    janus_range range = janus_range_of(0, COUNT);
    status = janus_reduce(range, add, plus, numbers, &sum, sizeof sum);
    if (status == 0) status = janus_reduce(range, add, plus, numbers, &again, sizeof again);
    if (status < 0) return status;
    printf("both sums are %.17g: %s\n", sum, sum == again ? "the same" : "not the same");

    status = janus_for_with(janus_range_by(0, 10000, 1000), check_thousands, NULL, &failure);
    printf("the loop returned %d, for indices %d to %d\n", (int)status, (int)failure.begin,
           (int)failure.end);
    return 0;
}

int main(void) { return janus_run(NULL, first_task, NULL, NULL) == JANUS_OK ? 0 : 1; }

/* Prints:
 * 200000 numbers are sorted
 * both sums are 1.0005590491688738: the same
 * the loop returned -107, for indices 7000 to 8000
 */

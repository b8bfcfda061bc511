/* SPDX-License-Identifier: MIT */
/*
 * Structured concurrency: a nursery ends only when all its children have ended. If one child fails,
 * the nursery cancels the other children and reports the error.
 */
#include <janusrt/janus.h>
#include <stdio.h>

static int64_t square(void *argument)
{
    int *number = argument;
    *number *= *number;
    return 0;
}

static int64_t fail(void *argument)
{
    (void)argument;
    return -107;
}

static int64_t wait_for_ever(void *argument)
{
    (void)argument;
    return janus_sleep(UINT64_MAX); /* returns when the task is cancelled */
}

static int64_t program(void *argument)
{
    (void)argument;
    int          numbers[] = {1, 2, 3, 4};
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < 4; i++) {
            if (janus_spawn(n, square, &numbers[i]) != JANUS_OK) return -100; /* after the others */
        }
    }
    if (status != JANUS_OK) return status; /* a child failed, or no nursery was opened */
    printf("%d %d %d %d\n", numbers[0], numbers[1], numbers[2], numbers[3]);

    janus_nursery        nursery;
    janus_nursery_result result;
    if (janus_nursery_open(&nursery, NULL) != JANUS_OK) return -100;
    status = janus_spawn(&nursery, wait_for_ever, NULL);
    if (status == JANUS_OK) status = janus_spawn(&nursery, fail, NULL);
    if (status != JANUS_OK) (void)janus_nursery_cancel(&nursery);
    status = janus_nursery_end(&nursery, &result);
    printf("%s: error %d\n", janus_status_name(status), (int)result.error);
    return 0;
}

int main(void) { return janus_run(NULL, program, NULL, NULL) == JANUS_OK ? 0 : 1; }

/* Prints:
 * 1 4 9 16
 * JANUS_CHILD_FAILED: error -107
 */

/* SPDX-License-Identifier: MIT */
/*
 * Runs program() some times and prints the CPU time of each run in ms, and at last its result.
 * With IN_TASK it runs inside a task, as code of `janusrt cc` does in earnest.
 *
 *     PROGRAM RUNS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t program(void);

static int runs;

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void measure(void)
{
    uint64_t result = 0;
    for (int i = 0; i < runs; i++) {
        double begin = now_ms();
        result = program();
        printf("%.4f\n", now_ms() - begin);
    }
    printf("%llu\n", (unsigned long long)result);
}

#ifdef IN_TASK
#include <janusrt/janus.h>

static int64_t task(void *argument)
{
    measure();
    return argument != NULL;
}

static int begin(void)
{
    return janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .stack_bytes = 1 << 20), task, NULL,
                     NULL);
}
#else
static int begin(void)
{
    measure();
    return 0;
}
#endif

int main(int count, char **words)
{
    runs = count > 1 ? atoi(words[1]) : 3;
    return begin() == 0 ? 0 : 1;
}

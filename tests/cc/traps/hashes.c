/* SPDX-License-Identifier: MIT */
/* Prints the hash of a deterministic run for some seeds: tasks that compute, and send what they
 * found. Compiled by `janusrt cc` at several levels, which must not differ. */
#include <inttypes.h>
#include <janusrt/janus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t lists[14][3000]; /* of each task */

static int64_t compute(void *argument)
{
    uint32_t seed = *(uint32_t *)argument, sum = 0, *list = lists[seed];
    for (int i = 0; i < 3000; i++) list[i] = (uint32_t)i * seed; /* a strip */
    for (int i = 0; i < 100; i++) sum += list[i * 7];            /* folded */
    while (sum % 1009 != 0) sum = sum * 31 + 7;                  /* in registers */
    for (int i = 0; i < 20; i++) JANUS_IGNORE(janus_yield());
    return 0;
}

static int64_t first(void *argument)
{
    static uint32_t seeds[5] = {3, 5, 7, 11, 13};
    janus_nursery   n;
    JANUS_EXPECT(janus_nursery_open(&n, NULL) == JANUS_OK);
    for (int i = 0; i < 5; i++) JANUS_EXPECT(janus_spawn(&n, compute, &seeds[i]) == JANUS_OK);
    JANUS_EXPECT(janus_nursery_end(&n, NULL) == JANUS_OK);
    return argument != NULL;
}

int main(int words, char **arguments)
{
    for (uint64_t seed = 1; seed <= 5 && words == 1; seed++) {
        janus_trace *trace = NULL;
        JANUS_EXPECT(janus_trace_create(NULL, &trace) == JANUS_OK);
        JANUS_EXPECT(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .trace = trace,
                                                       .deterministic_seed = seed),
                               first, NULL, NULL) == JANUS_OK);
        janus_trace_info info = JANUS_TRACE_INFO();
        JANUS_EXPECT(janus_trace_inspect(trace, &info) == JANUS_OK);
        printf("%" PRIx64 "\n", info.hash);
        janus_trace_destroy(trace);
    }
    return arguments == NULL;
}

/* SPDX-License-Identifier: MIT */
/* What a user's first program does; must compile as C11 and as C++17. */
#include <janusrt/janus.h>
#include <stdio.h>

static int64_t answer(void *argument) { return *(int *)argument + 1; }

int main(void)
{
    int               number = 41;
    janus_fiber_pool *pool = NULL;
    janus_fiber      *fiber = NULL;
    janus_outcome     outcome;

    if (janus_version() != JANUS_VERSION) return 1;
    if (janus_fiber_pool_create(NULL, &pool) != JANUS_OK) return 2;
    if (janus_fiber_create(pool, answer, &number, NULL, &fiber) != JANUS_OK) return 3;
    if (janus_fiber_resume(fiber, NULL, &outcome) != JANUS_OK) return 4;
    if (outcome.state != JANUS_FIBER_STATE_COMPLETED || outcome.result != 42) return 5;
    if (janus_fiber_destroy(fiber) != JANUS_OK) return 6;
    if (janus_fiber_pool_destroy(pool) != JANUS_OK) return 7;
    puts("installed and working");
    return 0;
}

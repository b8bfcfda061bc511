/* SPDX-License-Identifier: MIT */
/*
 * A raw fiber as a generator: it hands out one number and keeps its place until it is resumed. Raw
 * fibers are the lowest layer; most programs use tasks and never see a fiber.
 */
#include <janusrt/janus.h>
#include <stdio.h>

static int64_t fibonacci(void *argument)
{
    (void)argument;
    intptr_t a = 0, b = 1;
    while (a < 60) {
        if (janus_fiber_suspend((void *)a, NULL) != JANUS_OK) return -100;
        intptr_t next = a + b;
        a = b;
        b = next;
    }
    return 0;
}

int main(void)
{
    janus_fiber_pool *pool;
    janus_fiber      *fiber;
    janus_outcome     outcome;
    if (janus_fiber_pool_create(NULL, &pool) != JANUS_OK) return 1;
    if (janus_fiber_create(pool, fibonacci, NULL, NULL, &fiber) != JANUS_OK) return 1;
    while (janus_fiber_resume(fiber, NULL, &outcome) == JANUS_OK &&
           outcome.state == JANUS_FIBER_STATE_SUSPENDED) {
        printf("%d ", (int)(intptr_t)outcome.value);
    }
    printf("\n%s\n", janus_fiber_state_name(janus_fiber_state_of(fiber)));
    janus_fiber_destroy(fiber);
    return janus_fiber_pool_destroy(pool) == JANUS_OK ? 0 : 1;
}

/* Prints:
 * 0 1 1 2 3 5 8 13 21 34 55
 * completed
 */

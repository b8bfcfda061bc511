/* SPDX-License-Identifier: MIT */
/* Is not to compile with -Werror=unused-result: each call drops a status that must be looked at.
 * IGNORED is the number of the call. */
#include <janusrt/janus.h>

static int64_t child(void *argument)
{
    (void)argument;
    return 0;
}

static int64_t call(void *argument, void *value)
{
    (void)value;
    return child(argument);
}

int64_t drop(janus_nursery *n, janus_async *async);
int64_t drop(janus_nursery *n, janus_async *async)
{
    if (IGNORED == 0) {
        JANUS_IGNORE(janus_spawn(n, child, n)); /* this one is meant */
        return janus_async_start(n, async, call, n, n);
    }
#if IGNORED == 1
    janus_spawn(n, child, n);
#elif IGNORED == 2
    janus_async_start(n, async, call, n, n);
#elif IGNORED == 3
    janus_async_start_number(n, async, child, n);
#endif
    return 0;
}

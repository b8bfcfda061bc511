/* SPDX-License-Identifier: MIT */
/* What tests of exploring share: a quiet exploration, and an entry whose handle is stale. */
#ifndef JANUSRT_TESTS_SIM_SCOUT_H
#define JANUSRT_TESTS_SIM_SCOUT_H

#include "harness.h"

#include <janusrt/janus.h>

/* Explores quietly and returns what was found. */
static inline janus_explore_result scout(janus_explore_options options, janus_entry *entry)
{
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    options.struct_bytes = sizeof options;
    options.quiet = true;
    janus_status status = janus_explore(&options, entry, NULL, &result);
    CHECK_EQ(status, result.failing == JANUS_FAILING_NOT ? JANUS_OK : JANUS_CHILD_FAILED);
    CHECK_EQ(result.failing != JANUS_FAILING_NOT, result.replay != NULL);
    return result;
}

static inline int64_t use_an_old_channel(void *argument)
{
    janus_channel channel;
    int64_t       value = 0;
    (void)argument;
    if (janus_channel_create(8, 1, NULL, &channel) != JANUS_OK) return -1;
    (void)janus_channel_destroy(channel);
    return janus_channel_try_send(channel, &value) == JANUS_STALE ? 0 : -1;
}

#endif

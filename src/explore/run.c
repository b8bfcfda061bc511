/* SPDX-License-Identifier: MIT */
#include "explore/session.h"

janus_status janus_run(const janus_scheduler_options *options, janus_entry *entry, void *argument,
                       int64_t *out_result)
{
    struct jrt_run_end end;
    janus_status status = jrt_session_wanted() ? jrt_session_run(options, entry, argument, &end)
                                               : jrt_run(options, entry, argument, &end);
    if (out_result != NULL) *out_result = end.result;
    return status;
}

/* SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/outside.h"
#include "explore/session.h"

#include <string.h>

static janus_status run(const janus_scheduler_options *options, janus_entry *entry, void *argument,
                        struct jrt_run_end *end)
{
    jrt_outside_call_long(); /* [turn-call] */
    return jrt_session_wanted() ? jrt_session_run(options, entry, argument, end)
                                : jrt_run(options, entry, argument, end);
}

janus_status janus_run(const janus_scheduler_options *options, janus_entry *entry, void *argument,
                       int64_t *out_result)
{
    struct jrt_run_end end = {.told = NULL};
    janus_status       status = run(options, entry, argument, &end);
    if (out_result != NULL) *out_result = end.result;
    return status;
}

janus_status janus_run_with(const janus_scheduler_options *options, janus_entry *entry,
                            void *argument, janus_run_result *out)
{
    janus_run_result   told = {.struct_bytes = 0};
    struct jrt_run_end end = {.told = &told};
    if (out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof told)) {
        jrt_outside_call(); /* [turn-call] */
        return JANUS_INVALID;
    }
    told.status = run(options, entry, argument, &end);
    jrt_struct_give(out, &told);
    return told.status;
}

janus_status janus_scheduler_create_with(const janus_scheduler_options *options,
                                         janus_scheduler              **out)
{
    jrt_outside_call_long(); /* [turn-call] */
    return jrt_session_open(options, out);
}

janus_status janus_scheduler_start(janus_scheduler *scheduler)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (scheduler == NULL) return JANUS_INVALID;
    janus_status status = jrt_scheduler_start(scheduler);
    if (status == JANUS_OK) jrt_session_started();
    return status;
}

janus_status janus_scheduler_destroy(janus_scheduler *scheduler)
{
    jrt_outside_call_long(); /* [turn-call] */
    janus_status status = jrt_scheduler_close(scheduler);
    if (status == JANUS_OK && scheduler != NULL) jrt_session_closed();
    return status;
}

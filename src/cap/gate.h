/* SPDX-License-Identifier: MIT */
/*
 * The gates: what is asked of capabilities before a task is started, a channel made, budget given
 * or a backend chosen. Each checks, takes what is counted, and writes down the use or the denial;
 * on any error nothing was taken.
 */
#ifndef JRT_CAP_GATE_H
#define JRT_CAP_GATE_H

#include "cap/cap.h"
#include "cap/use.h"

/* For one more task: takes it from `use`, to be given back by jrt_cap_give_task when it ends.
 * out->spawn is what the capability allows, unless it is refused. As janus_cap_check, and
 * TASK_LIMIT. */
janus_status jrt_cap_gate_spawn(janus_cap_table *table, janus_cap cap,
                                const struct jrt_cap_actor *actor, struct jrt_cap_use *use,
                                janus_cap_limits *out);

/* For one more channel: takes it from `use`, to be given back by jrt_cap_give_channel. As
 * janus_cap_check; CAP_LIMIT: the buffer is too large; CHANNEL_LIMIT. */
janus_status jrt_cap_gate_channel(janus_cap_table *table, janus_cap cap,
                                  const struct jrt_cap_actor *actor, struct jrt_cap_use *use,
                                  uint64_t buffer_size);

/* For budget: *out is `requested`, cut to what the capability allows. `right` is one of the BUDGET
 * rights. As janus_cap_check, and CLAMPED. */
janus_status jrt_cap_gate_budget(janus_cap_table *table, janus_cap cap,
                                 const struct jrt_cap_actor *actor, uint32_t right,
                                 const janus_budget *requested, janus_budget *out);

/* For running on a backend, or configuring it. `right` is one of the EXECUTOR rights. As
 * janus_cap_check; CAP_LIMIT: not this backend; INVALID: there is no such backend. */
janus_status jrt_cap_gate_backend(janus_cap_table *table, janus_cap cap,
                                  const struct jrt_cap_actor *actor, uint32_t right,
                                  janus_backend backend);

#endif

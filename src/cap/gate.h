/* SPDX-License-Identifier: MIT */
/*
 * The gates: the checks of capabilities before a task starts, a channel is made, budget is given or
 * a backend is chosen. Names have a gate, too. Each gate checks, takes what is counted, and records
 * the use or the denial. On an error nothing was taken.
 */
#ifndef JRT_CAP_GATE_H
#define JRT_CAP_GATE_H

#include "cap/cap.h"
#include "cap/use.h"

#include <janusrt/net.h>

/* Allows one more task: takes it from `use`. jrt_cap_give_task returns it when the task ends. On OK
 * out->spawn holds what the capability allows. Returns as janus_cap_check_in, and TASK_LIMIT. */
janus_status jrt_cap_gate_spawn(janus_cap_table *table, janus_cap cap,
                                const struct jrt_cap_actor *actor, struct jrt_cap_use *use,
                                janus_cap_limits *out);

/* Allows one more channel: takes it from `use`. jrt_cap_give_channel returns it. Returns as
 * janus_cap_check_in. CAP_LIMIT: the buffer is too large. CHANNEL_LIMIT. */
janus_status jrt_cap_gate_channel(janus_cap_table *table, janus_cap cap,
                                  const struct jrt_cap_actor *actor, struct jrt_cap_use *use,
                                  uint64_t buffer_size);

/* Allows a budget: *out is `requested`, cut to what the capability allows. `right` is one of the
 * BUDGET rights. Returns as janus_cap_check_in, and CLAMPED. */
janus_status jrt_cap_gate_budget(janus_cap_table *table, janus_cap cap,
                                 const struct jrt_cap_actor *actor, uint32_t right,
                                 const janus_budget *requested, janus_budget *out);

/* Allows running on a backend, or configuring it. `right` is one of the EXECUTOR rights. Returns as
 * janus_cap_check_in. CAP_LIMIT: the capability forbids this backend. INVALID: there is no such
 * backend. */
janus_status jrt_cap_gate_backend(janus_cap_table *table, janus_cap cap,
                                  const struct jrt_cap_actor *actor, uint32_t right,
                                  janus_backend backend);

/* A handle that somebody wants to make. */
struct jrt_cap_wish {
    janus_cap_kind       kind;    /* NET, FILE, PROCESS; NAME for the log */
    uint32_t             right;   /* 0: none, it comes from another handle */
    const janus_address *address; /* NET; NULL: none is asked for */
    const char          *name;    /* a path, a program, a host, for the log; NULL: none */
};

/* Allows one more handle: takes it from `use`, unless that is NULL. jrt_cap_give_handle returns it.
 * Returns as janus_cap_check_in. CAP_LIMIT: the address is outside; *out holds the limits.
 * HANDLE_LIMIT. */
janus_status jrt_cap_gate_handle(janus_cap_table *table, janus_cap cap,
                                 const struct jrt_cap_actor *actor, struct jrt_cap_use *use,
                                 const struct jrt_cap_wish *wish, janus_cap_limits *out);

/* What the audit log says about the wish. */
void jrt_cap_wish_target(const struct jrt_cap_wish *wish, struct jrt_cap_target *out);

/* Allows registering or finding a name. `right` is one of the NAME rights. Returns as
 * janus_cap_check_in. CAP_LIMIT: the name is outside; *out holds the limits. */
janus_status jrt_cap_gate_name(janus_cap_table *table, janus_cap cap,
                               const struct jrt_cap_actor *actor, uint32_t right, const char *name,
                               janus_cap_limits *out);

/* How many handles these limits allow. */
uint64_t jrt_cap_handles_max(janus_cap_kind kind, const janus_cap_limits *limits);

#endif
